//! How a call of an upstream fails.
//!
//! What a fault says of itself is for logs and reports: the texts of upstreams in it are one bounded line without
//! secrets. Where an upstream's own error goes on to its caller it goes as it came.

use std::time::Duration;

use crate::common::error::{Code, GatewayError, presentable, presentable_with};
use crate::common::masks::Masks;
use crate::protocol::message::RpcError;

/// An upstream gave no answer to a request, or refused it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Fault {
    /// No answer came in time.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// It cannot be reached, is not running, or went away in the middle.
    #[error("{}", presentable(.0))]
    Unavailable(String),
    /// Its process has ended, and was not told to.
    #[error("{}", presentable(.how))]
    Ended {
        /// How.
        how: String,
        /// What it printed last for people, a bounded line without secrets: for whoever runs the gateway, and not for models.
        said: String,
    },
    /// Nothing can be shown to it on behalf of the caller, so that it is not asked.
    #[error("{}", presentable(.0))]
    Credentials(String),
    /// The tool is withheld for its pin, or is served no longer; nothing was asked.
    #[error("{}", presentable(.0))]
    Withheld(String),
    /// It failed too often: its circuit breaker is open, and nothing is asked of it for a while.
    #[error("circuit open after {failures} failures in a row; the next try is in {:.1} s", .wait.as_secs_f64())]
    CircuitOpen {
        /// The failures in a row that opened it.
        failures: u32,
        /// How long it stays open.
        wait: Duration,
    },
    /// It answered with an HTTP status that is not a success.
    #[error("it answered with HTTP status {status}")]
    Status {
        /// The HTTP status, not a success.
        status: u16,
        /// Seconds after which it wants to be asked again, if it says so.
        retry_after: Option<u64>,
    },
    /// It answered with an HTTP status by which it says that it does not know the session, so that it did nothing.
    #[error("it answered with HTTP status {0}, since it does not know the session")]
    UnknownSession(u16),
    /// It took no handshake at its address and gave this HTTP status, as servers of the older HTTP alone do.
    #[error(
        "it answered `initialize` with HTTP status {0}: perhaps its `url` is not that of an MCP endpoint, or \
         perhaps it speaks only the older transport HTTP+SSE, which needs `type: sse`"
    )]
    NoHandshake(u16),
    /// Its answer is not a message of the protocol.
    #[error("its answer is not usable: {}", presentable(.0))]
    Malformed(String),
    /// There is no server, and what answers in its place has no answer for this.
    #[error("{}", presentable(.0))]
    Unanswered(String),
    /// It answered with an error.
    #[error("it answered with error {}: {}", .0.code, presentable(&.0.message))]
    Rpc(RpcError),
}

impl Fault {
    /// The same, with the method that was asked for where it has a text of its own.
    pub(super) fn of(self, method: &str) -> Self {
        match self {
            Self::Rpc(mut error) => {
                error.message = format!("`{method}`: {}", error.message);
                Self::Rpc(error)
            }
            Self::Malformed(reason) => Self::Malformed(format!("`{method}`: {reason}")),
            other => other,
        }
    }

    /// The same, with what came from the environment covered. It is for logs and reports: its texts are bounded.
    pub(super) fn covered(self, masks: &Masks) -> Self {
        let cover = |text: String| presentable_with(&text, masks);
        match self {
            Self::Unavailable(reason) => Self::Unavailable(cover(reason)),
            // What was said is bounded already, and longer.
            Self::Ended { how, said } => Self::Ended { how: cover(how), said: masks.cover(&said).into_owned() },
            Self::Malformed(reason) => Self::Malformed(cover(reason)),
            Self::Rpc(error) => Self::Rpc(RpcError { message: cover(error.message), ..error }),
            other => other,
        }
    }

    /// The same for whoever has asked: the upstream's own error stays as it came.
    pub(super) fn covered_for_caller(self, masks: &Masks) -> Self {
        if matches!(self, Self::Rpc(_)) { self } else { self.covered(masks) }
    }

    /// The same for whoever runs the gateway: with what a process printed before it ended.
    #[must_use]
    pub fn in_full(&self) -> String {
        match self {
            Self::Ended { said, .. } if !said.is_empty() => format!("{self}; it printed: {said}"),
            _ => self.to_string(),
        }
    }

    /// Whether the upstream itself failed, as opposed to refusing a request; only such faults open its circuit.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Timeout(_) | Self::Unavailable(_) | Self::Ended { .. } | Self::Malformed(_) => true,
            Self::Status { status, .. } => *status >= 500,
            Self::CircuitOpen { .. }
            | Self::UnknownSession(_)
            | Self::NoHandshake(_)
            | Self::Rpc(_)
            | Self::Credentials(_)
            | Self::Withheld(_)
            | Self::Unanswered(_) => false,
        }
    }

    /// Whether the same request fails again, whatever its kind.
    pub(crate) fn is_for_good(&self) -> bool {
        matches!(self, Self::Unanswered(_))
    }

    /// Its kind, by type and status alone.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Timeout(_) => Code::UpstreamTimeout,
            Self::Unavailable(_) | Self::Ended { .. } | Self::CircuitOpen { .. } | Self::Unanswered(_) => {
                Code::UpstreamUnavailable
            }
            Self::Malformed(_) | Self::Rpc(_) | Self::UnknownSession(_) | Self::NoHandshake(_) => Code::UpstreamError,
            Self::Credentials(_) => Code::AuthFailed,
            Self::Withheld(_) => Code::Quarantined,
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
        if self.is_for_good() {
            return GatewayError::new(self.code(), self.to_string()).for_good();
        }
        let error = GatewayError::new(self.code(), format!("upstream `{name}`: {self}")).with("upstream", name);
        match self {
            Self::Rpc(rpc) => error.with("rpc_code", rpc.code),
            Self::UnknownSession(status) | Self::NoHandshake(status) => error.with("http_status", *status),
            Self::Status { status, retry_after } => {
                let error = error.with("http_status", *status);
                match retry_after {
                    Some(seconds) => error.with("retry_after", *seconds),
                    None => error,
                }
            }
            Self::CircuitOpen { wait, .. } => error.with("retry_after", wait.as_secs_f64().ceil()),
            _ => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::common::masks::Noted;

    #[test]
    fn what_an_upstream_says_is_one_bounded_line_without_secrets() {
        let key = format!("AKIA{}", "IOSFODNN7EXAMPLE");
        let text = format!("no\nkey {key} {}", "x".repeat(400));
        let faults =
            [Fault::Unavailable(text.clone()), Fault::Malformed(text.clone()), Fault::Rpc(RpcError::new(-1, text))];
        for fault in faults {
            let shown = fault.to_string();
            assert!(shown.contains("no key [REDACTED: aws_access_key]"), "{shown}");
            assert!(shown.chars().count() < 300 && !shown.contains('\n'), "{shown}");
        }
    }

    #[test]
    fn what_came_from_the_environment_is_covered_in_what_is_seen() {
        let environment = |_: &str| Some("s3cr3t/Value+with=odd".to_owned());
        let noted = Noted::new(&environment, Path::new("."));
        noted.expand("${env:V}").unwrap();
        let masks = noted.masks();
        for between in ["\u{1b}[0m", "\0", "\u{200b}", "<|im_start|>", "\n"] {
            // In the second it stands where the text is cut.
            for before in [0, 250] {
                let text = format!("{}s3cr3t/Va{between}lue+with=odd {}", "x".repeat(before), "y".repeat(20_000));
                let faults = [
                    Fault::Unavailable(text.clone()),
                    Fault::Malformed(text.clone()),
                    Fault::Ended { how: "ended".to_owned(), said: text.clone() },
                    Fault::Rpc(RpcError::new(-1, text)),
                ];
                for fault in faults {
                    let shown = fault.covered(&masks).in_full();
                    assert!(!shown.contains("s3c") && shown.contains("${"), "{shown}");
                }
            }
        }
    }
}
