//! What accompanies a call besides its arguments.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::sync::lock;
use crate::protocol::message::{Members, Raw};

/// The members of a client's request that go on with the call that it causes, and the record of how it was answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallContext {
    /// The client's progress token.
    pub(crate) progress: Option<Raw>,
    /// The client's answers to what the upstream asked in place of a result.
    pub(crate) input_responses: Option<Raw>,
    /// The state that the upstream wants back with the answers.
    pub(crate) request_state: Option<Raw>,
    /// How the call was answered.
    pub(crate) record: Record,
}

impl CallContext {
    /// Whether it brings answers to what the upstream asked.
    pub(crate) fn is_answer(&self) -> bool {
        self.input_responses.is_some() || self.request_state.is_some()
    }

    /// The parameters of the upstream's call: `params` with the client's answers.
    pub(crate) fn params(&self, params: Raw) -> Raw {
        if !self.is_answer() {
            return params;
        }
        let mut members: Members<'_> = params.read().unwrap_or_default();
        for (name, answer) in [("inputResponses", &self.input_responses), ("requestState", &self.request_state)] {
            if let Some(answer) = answer {
                members.set(name, answer);
            }
        }
        Raw::of(&members)
    }
}

/// How a call was answered, noted on its way; clones share one record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record(Arc<Marks>);

#[derive(Debug, Default)]
struct Marks {
    attempts: AtomicU32,
    cached: AtomicBool,
    /// Each one more than the number; zero where nobody looked.
    result_tokens: AtomicU64,
    answer_tokens: AtomicU64,
    /// Whether a digest of the arguments is wanted.
    digests: bool,
    account: Mutex<Account>,
}

/// What a call is and what was decided about it, for those who answer for it later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// The operation: the name of a meta-tool, or the method of a request that passes to the only upstream.
    pub(crate) operation: Option<&'static str>,
    /// The id of what is called, as the catalog has it.
    pub(crate) item: Option<String>,
    /// The name of its upstream.
    pub(crate) server: Option<String>,
    /// SHA-256 of the arguments as the client wrote them, in hexadecimal; only where that is wanted.
    pub(crate) arguments: Option<String>,
    /// The guard that refused the call or asked about it.
    pub(crate) guard: Option<&'static str>,
    /// The rule by which the policy decided, as the place in the configuration.
    pub(crate) rule: Option<String>,
    /// The rule by which its upstream is asked, as the place in the configuration.
    pub(crate) credentials: Option<String>,
    /// Whether it may be made, since all guards have agreed.
    pub(crate) allowed: bool,
    /// Whether the caller was asked something in place of an answer.
    pub(crate) asked: bool,
    /// Who approved or declined it.
    pub(crate) approver: Option<String>,
    /// Where the audit log says what was decided.
    pub(crate) entry: Entry,
}

/// How far the line in the audit log is that says what was decided about a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Entry {
    /// There is none.
    #[default]
    Missing,
    /// It waits to be written.
    Queued,
    /// It was written, with this number.
    Written(u64),
    /// It waits to be written, and the call has ended so meanwhile.
    Over(Ending),
}

/// How a call has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    /// `OK`, or the code of the failure.
    pub(crate) code: String,
    /// How long it took.
    pub(crate) took: Duration,
}

impl Record {
    /// A record that also wants a digest of the arguments, where `digests`.
    pub(crate) fn new(digests: bool) -> Self {
        Self(Arc::new(Marks { digests, ..Marks::default() }))
    }

    /// Whether a digest of the arguments is wanted.
    pub(crate) fn wants_digest(&self) -> bool {
        self.0.digests
    }

    /// Notes what was decided about the call.
    pub(crate) fn note<T>(&self, note: impl FnOnce(&mut Account) -> T) -> T {
        note(&mut lock(&self.0.account))
    }

    /// What has been decided about the call so far.
    pub(crate) fn account(&self) -> Account {
        lock(&self.0.account).clone()
    }

    /// Notes how often the upstream was asked.
    pub(crate) fn set_attempts(&self, attempts: u32) {
        self.0.attempts.store(attempts, Ordering::Relaxed);
    }

    /// Notes that the answer comes from the cache.
    pub(crate) fn set_cached(&self) {
        self.0.cached.store(true, Ordering::Relaxed);
    }

    /// Notes how many tokens the upstream's result had, about, and how many the answer has where that is known.
    pub(crate) fn set_tokens(&self, result: u64, answer: Option<u64>) {
        self.0.result_tokens.store(result + 1, Ordering::Relaxed);
        self.0.answer_tokens.store(answer.map_or(0, |answer| answer + 1), Ordering::Relaxed);
    }

    /// How many tokens the upstream's result had, about; `None` where nobody looked.
    pub(crate) fn result_tokens(&self) -> Option<u64> {
        self.0.result_tokens.load(Ordering::Relaxed).checked_sub(1)
    }

    /// How many tokens the answer has; `None` where nobody counted.
    pub(crate) fn answer_tokens(&self) -> Option<u64> {
        self.0.answer_tokens.load(Ordering::Relaxed).checked_sub(1)
    }

    /// How often the upstream was asked; zero when it was not.
    pub(crate) fn attempts(&self) -> u32 {
        self.0.attempts.load(Ordering::Relaxed)
    }

    /// Whether the answer comes from the cache.
    pub(crate) fn was_cached(&self) -> bool {
        self.0.cached.load(Ordering::Relaxed)
    }
}
