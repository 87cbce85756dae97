//! An upstream that is code of this process: a recording that is played back, or a server for a test.

use std::fmt;
use std::sync::Arc;

use super::fault::Fault;
use crate::protocol::message::Raw;

/// Answers the requests of a client.
pub trait Answer: Send + Sync {
    /// The answer to a request, beginning with `initialize` (or `server/discover`, when the era is not the legacy one).
    ///
    /// It is asked from many calls at once and must not wait: what it does, the runtime waits for.
    ///
    /// # Errors
    /// How the upstream fails: [`Fault::Rpc`] for the error that a server answers with, another to play its absence.
    fn answer(&self, method: &str, params: Option<&Raw>) -> Result<Raw, Fault>;
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

    pub(super) fn answer(&self, method: &str, params: Option<&Raw>) -> Result<Raw, Fault> {
        self.0.answer(method, params)
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
