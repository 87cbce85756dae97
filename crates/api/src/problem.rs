//! What is wrong with a request, for the one who sent it.

use serde_json::{Value, json};

use super::SCHEMA_VERSION;
use contextweaver_core::text::causes;

/// Why a request has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The body is not JSON, or not of the form that the path takes.
    BadRequest,
    /// The request has the right form, and what it says cannot be done.
    Unprocessable,
    /// An engine failed although the request is good.
    Internal,
}

impl Kind {
    /// The status of HTTP that says so.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unprocessable => 422,
            Self::Internal => 500,
        }
    }
}

/// A request that has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// What sort of fault it is.
    pub kind: Kind,
    /// What is wrong, where, and what to do.
    pub message: String,
}

impl Problem {
    /// What a request says cannot be done, for the reason of an error and its causes.
    pub(crate) fn unprocessable(error: &dyn std::error::Error) -> Self {
        Self { kind: Kind::Unprocessable, message: causes(error).join(": ") }
    }

    /// The same, with the member of the request that is at fault.
    pub(crate) fn of_member(member: &str, error: &dyn std::error::Error) -> Self {
        Self { kind: Kind::Unprocessable, message: format!("`{member}`: {}", causes(error).join(": ")) }
    }

    /// What a request says cannot be done, in words.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { kind: Kind::Unprocessable, message: message.into() }
    }

    /// The request lacks something, or has too much.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self { kind: Kind::BadRequest, message: message.into() }
    }

    /// An engine failed.
    pub(crate) fn internal(error: &dyn std::error::Error) -> Self {
        Self { kind: Kind::Internal, message: causes(error).join(": ") }
    }

    /// The document that says so, in the form in which commands print an error.
    #[must_use]
    pub fn document(message: &str) -> Value {
        json!({"schema_version": SCHEMA_VERSION, "kind": "error", "message": message})
    }
}
