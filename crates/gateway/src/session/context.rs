//! What accompanies a call besides its arguments.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

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
    pub(crate) trace: Trace,
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
pub(crate) struct Trace(Arc<Marks>);

#[derive(Debug, Default)]
struct Marks {
    attempts: AtomicU32,
    cached: AtomicBool,
    /// Each one more than the number; zero where nobody looked.
    result_tokens: AtomicU64,
    answer_tokens: AtomicU64,
}

impl Trace {
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
