//! An upstream that is code of this process: a recording that is played back, or a server for a test.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::fault::Fault;
use crate::common::work::{Exhausted, aside_after};
use crate::protocol::message::{INTERNAL_ERROR, Raw, RpcError};

/// The end of the time that long work has, before that of its upstream: what ends in time says why, and an upstream that
/// says so is none that does not answer.
const MARGIN: Duration = Duration::from_millis(500);

/// Says to long work when it is to end: its time is over, or nobody waits for it any more.
#[derive(Debug, Clone)]
pub struct Stop {
    limit: Duration,
    /// `None` where the time has no end.
    until: Option<Instant>,
    given_up: Arc<AtomicBool>,
}

impl Stop {
    /// For work that has so much time from now on.
    #[must_use]
    pub fn after(limit: Duration) -> Self {
        Self { limit, until: Instant::now().checked_add(limit), given_up: Arc::default() }
    }

    /// Whether the work is to end.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.given_up.load(Ordering::Relaxed) || self.until.is_some_and(|until| until <= Instant::now())
    }

    /// What the work may take in all.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.limit
    }
}

/// Whoever waits for work; when it is dropped, the work is given up.
struct Waiting(Stop);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.given_up.store(true, Ordering::Relaxed);
    }
}

/// Answers the requests of a client.
pub trait Answer: Send + Sync {
    /// The answer to a request, beginning with `initialize` (or `server/discover`, when the era is not the legacy one).
    ///
    /// It is asked from many calls at once and must not wait: what it does, the runtime waits for.
    ///
    /// # Errors
    /// How the upstream fails: [`Fault::Rpc`] for the error that a server answers with, another to play its absence.
    fn answer(&self, method: &str, params: Option<&Raw>) -> Result<Raw, Fault>;

    /// Whether requests of this method may take long. They are then answered by [`Answer::work`].
    fn takes_long(&self, _: &str) -> bool {
        false
    }

    /// The answer to a request that may take long. It is worked out beside the runtime, when the turn of the caller comes,
    /// and must end soon after `stop` is due.
    ///
    /// # Errors
    /// As [`Answer::answer`].
    fn work(&self, method: &str, params: Option<&Raw>, _: &Stop) -> Result<Raw, Fault> {
        self.answer(method, params)
    }
}

impl<F: Fn(&str, Option<&Raw>) -> Result<Raw, Fault> + Send + Sync> Answer for F {
    fn answer(&self, method: &str, params: Option<&Raw>) -> Result<Raw, Fault> {
        self(method, params)
    }
}

/// A shared [`Answer`], equal to its copies alone.
#[derive(Clone)]
pub struct InProcess(Arc<dyn Answer>);

impl InProcess {
    /// An upstream that answers so.
    #[must_use]
    pub fn new(answer: impl Answer + 'static) -> Self {
        Self(Arc::new(answer))
    }

    /// The answer to a request, for which there is so much time.
    pub(super) async fn answer(&self, method: &str, params: Option<&Raw>, timeout: Duration) -> Result<Raw, Fault> {
        if !self.0.takes_long(method) {
            return self.0.answer(method, params);
        }
        let limit = timeout - MARGIN.min(timeout / 10);
        let stop = Stop::after(limit);
        let _waiting = Waiting(stop.clone());
        let (answer, method, params) = (Arc::clone(&self.0), method.to_owned(), params.cloned());
        let done = aside_after(limit, timeout, move || answer.work(&method, params.as_ref(), &stop)).await;
        done.unwrap_or_else(|exhausted| {
            Err(match exhausted {
                Exhausted::TooLong(_) => Fault::Timeout(timeout),
                // It was not asked, or there is an error in its code: neither is over when its connection is made again.
                Exhausted::Busy(_)
                | Exhausted::TooMuch(_)
                | Exhausted::Unreadable
                | Exhausted::Spent(_)
                | Exhausted::Stopped => Fault::Rpc(RpcError::new(INTERNAL_ERROR, exhausted.to_string())),
            })
        })
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("InProcess")
    }
}

impl PartialEq for InProcess {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for InProcess {}
