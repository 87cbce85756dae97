//! What a caller may be held to, and what makes an entry of one unusable, whichever way the caller is known by.

use std::num::{NonZeroU32, NonZeroUsize};

use crate::common::settings::FieldError;

/// The longest name of a caller, in characters.
const LONGEST_NAME: usize = 64;

/// What one caller is held to. Where a bound is `None`, that of all callers applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallerBounds {
    /// Requests within any sixty seconds, at most; as many as it likes when `None`.
    pub max_requests_per_minute: Option<NonZeroU32>,
    /// Requests that are served at a time, at most.
    pub max_requests: Option<NonZeroUsize>,
    /// Bytes of a request, at most.
    pub body_limit: Option<NonZeroUsize>,
    /// Whether it may read the metrics, which name all callers.
    pub may_read_metrics: bool,
}

/// An entry of `http.tokens`, of `http.tls.clients` or of a file of callers cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryError {
    #[error("the name `{0}` must be 1 to {LONGEST_NAME} printable ASCII characters")]
    Name(String),
    #[error("{}", .0.reason)]
    Token(FieldError),
    #[error("`{0}` has neither `token` nor `token_file`")]
    NoToken(String),
    #[error("there is another entry with the name `{0}`")]
    SameName(String),
    #[error("`{0}` has the same token as `{1}`; give each its own")]
    SameToken(String, String),
    #[error("`{0}` needs exactly one of `dns`, `uri` and `common_name`")]
    NoCertificate(String),
    #[error("`{0}` has the same certificate as `{1}`; give each its own")]
    SameCertificate(String, String),
}

/// Checks the name of a caller. It has no spaces, so that no caller of an authorization server has it too.
pub(super) fn check_name(name: &str) -> Result<(), EntryError> {
    match name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Err(EntryError::Name(name.to_owned())),
        false => Ok(()),
    }
}
