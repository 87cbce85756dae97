//! A request to an upstream.

use crate::protocol::message::Raw;
use crate::session::client::Caller;
use crate::session::elicitation::Questions;

/// The largest message that is read, in bytes.
pub const MESSAGE_LIMIT: usize = 64 * 1024 * 1024;

/// A request for an upstream.
#[derive(Debug, Clone, Copy)]
pub struct Call<'c> {
    /// The method, e.g. `tools/call`.
    pub method: &'c str,
    /// The parameters of the method, a JSON object.
    pub params: Option<&'c Raw>,
    /// On whose behalf; `None` for the gateway's own.
    pub caller: Option<&'c Caller>,
    /// The caller's progress token, when it wants to hear of progress.
    pub progress: Option<&'c Raw>,
    /// How what the upstream asks meanwhile is put to the caller.
    pub questions: Questions,
}

impl<'c> Call<'c> {
    /// A request of the gateway's own.
    #[must_use]
    pub fn own(method: &'c str, params: Option<&'c Raw>) -> Self {
        Self { method, params, caller: None, progress: None, questions: Questions::AsTheyCame }
    }
}
