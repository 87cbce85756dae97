//! How a call of an upstream fails.

use std::time::Duration;

use crate::gateway::error::{Code, GatewayError};
use crate::gateway::wire::RpcError;

/// An upstream gave no answer to a request, or refused it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Fault {
    /// No answer came in time.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// It cannot be reached, is not running, or went away in the middle.
    #[error("{0}")]
    Unavailable(String),
    /// It failed too often of late and is left alone for a while.
    #[error("it failed {failures} times in a row; the next try is in {:.1} s", .wait.as_secs_f64())]
    Resting {
        /// How often.
        failures: u32,
        /// Until when.
        wait: Duration,
    },
    /// It answered with a status of HTTP that is no success.
    #[error("it answered with HTTP status {status}")]
    Status {
        /// The status.
        status: u16,
        /// Seconds after which it wants to be asked again, if it says so.
        retry_after: Option<u64>,
    },
    /// Its answer is no message of the protocol.
    #[error("its answer is not usable: {0}")]
    Malformed(String),
    /// It answered with an error.
    #[error("it answered with error {}: {}", .0.code, .0.message)]
    Rpc(RpcError),
    /// The caller took the request back.
    #[error("the caller took the request back")]
    Cancelled,
}

impl Fault {
    /// Whether it tells that the upstream is not well, as opposed to that it did not like a request.
    #[must_use]
    pub fn is_illness(&self) -> bool {
        match self {
            Self::Timeout(_) | Self::Unavailable(_) | Self::Malformed(_) => true,
            Self::Status { status, .. } => *status >= 500,
            Self::Resting { .. } | Self::Rpc(_) | Self::Cancelled => false,
        }
    }

    /// Its kind, by type and status alone.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Timeout(_) => Code::UpstreamTimeout,
            Self::Unavailable(_) | Self::Resting { .. } => Code::UpstreamUnavailable,
            Self::Malformed(_) | Self::Rpc(_) => Code::UpstreamError,
            Self::Cancelled => Code::Cancelled,
            Self::Status { status, .. } => match status {
                401 => Code::AuthFailed,
                403 => Code::PermissionDenied,
                408 | 504 => Code::UpstreamTimeout,
                429 => Code::RateLimited,
                502 | 503 => Code::UpstreamUnavailable,
                _ => Code::UpstreamError,
            },
        }
    }

    /// What a meta-tool answers: the upstream called `name` failed.
    #[must_use]
    pub fn to_error(&self, name: &str) -> GatewayError {
        let error = GatewayError::new(self.code(), format!("upstream `{name}`: {self}")).with("upstream", name);
        match self {
            Self::Rpc(rpc) => error.with("rpc_code", rpc.code),
            Self::Status { status, retry_after } => {
                let error = error.with("http_status", *status);
                match retry_after {
                    Some(seconds) => error.with("retry_after", *seconds),
                    None => error,
                }
            }
            Self::Resting { wait, .. } => error.with("retry_after", wait.as_secs_f64().ceil()),
            _ => error,
        }
    }
}
