//! A line of the audit log, and how lines hang together.
//!
//! Every line holds the SHA-256 of the line before it. Who changes, removes or puts in a line has to write every later one
//! anew; who has noted the hash of a line elsewhere sees that too, and that the end was cut off.

use serde::{Deserialize, Serialize};

use crate::session::context::Account;
use contextweaver_core::text::sha256_hex;

/// The version of the form of lines.
pub const AUDIT_VERSION: u32 = 1;

/// What the first line of a file follows.
pub(crate) const FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Bytes of a line, at most.
pub(crate) const LONGEST_LINE: usize = 16 * 1024;

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditEvent {
    /// A gateway begins to write the file, or goes on after it could not write.
    Started,
    /// Another configuration is in force from here on.
    Reloaded,
    /// It is decided what becomes of a request.
    Decided,
    /// A request that was allowed has ended.
    Ended,
    /// The gateway has ended in order.
    Stopped,
}

impl AuditEvent {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Reloaded => "reloaded",
            Self::Decided => "decided",
            Self::Ended => "ended",
            Self::Stopped => "stopped",
        }
    }
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditDecision {
    /// It is done.
    Allow,
    /// It is not done.
    Refuse,
    /// The caller is asked something first.
    Ask,
}

impl AuditDecision {
    /// What became of a request with this account; `failed` says whether it has. One that failed without having been allowed
    /// was refused.
    pub(crate) fn of(account: &Account, failed: bool) -> Self {
        match (account.asked, failed && !account.allowed) {
            (true, _) => Self::Ask,
            (false, true) => Self::Refuse,
            (false, false) => Self::Allow,
        }
    }

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Refuse => "refuse",
            Self::Ask => "ask",
        }
    }
}

/// A line. What does not belong to an event is left out; the fields are in alphabetical order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditLine {
    /// SHA-256 of the last line of the file that this one took the place of, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Who approved or declined it: `client`, the person behind the client that called, or `operator`, at the console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approver: Option<String>,
    /// SHA-256 of the arguments as the client wrote them, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The number of the line with the decision about the request that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// The name of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// `OK`, `TOOL_ERROR` where the tool says that it failed, `CANCELLED`, or the code of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// SHA-256 of the text of the configuration that is in force from here on, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// The rule by which the upstream is asked as the caller or as the gateway, as its place in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
    /// What becomes of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<AuditDecision>,
    /// What the line says.
    pub event: AuditEvent,
    /// The guard that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
    /// The id of the tool, resource or prompt, when the catalog knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Lines that could not be written since the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Milliseconds that the request took, to three decimals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    /// What is asked for: the name of one of the gateway's tools, or a method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// SHA-256 of the line before, in hexadecimal; of the first line zeros.
    pub prev: String,
    /// The visibility profile of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The rule by which the policy decided, as its place in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The number of the line, from 1.
    pub seq: u64,
    /// The upstream of the item, by its name in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Tells clients apart within one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// When it was written, UTC.
    pub time: String,
    /// Whether the text before this line is one that was not finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub torn: bool,
    /// [`AUDIT_VERSION`].
    pub version: u32,
}

impl AuditLine {
    /// A line that says so and nothing else; number, time and the hash of the line before come when it is written.
    pub(crate) fn new(event: AuditEvent) -> Self {
        Self {
            after: None,
            approver: None,
            arguments: None,
            call: None,
            caller: None,
            code: None,
            config: None,
            credentials: None,
            decision: None,
            event,
            guard: None,
            item: None,
            lost: None,
            ms: None,
            operation: None,
            prev: String::new(),
            profile: None,
            rule: None,
            seq: 0,
            server: None,
            session: None,
            time: String::new(),
            torn: false,
            version: AUDIT_VERSION,
        }
    }

    /// Reads a line, without its end.
    ///
    /// # Errors
    /// It is not one, or of a version that this program does not read.
    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        let line: Self = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        match line.version {
            AUDIT_VERSION => Ok(line),
            version => Err(format!("it has version {version}; this program reads {AUDIT_VERSION}")),
        }
    }
}

/// The hash of a line without its end, as the next one holds it.
pub(crate) fn hash(line: &[u8]) -> String {
    sha256_hex(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_without_having_been_allowed_was_refused() {
        let cases = [
            // asked, allowed, failed
            ([false, false, false], "allow"),
            ([false, false, true], "refuse"),
            ([false, true, false], "allow"),
            ([false, true, true], "allow"),
            ([true, false, false], "ask"),
            ([true, true, false], "ask"),
        ];
        for ([asked, allowed, failed], word) in cases {
            let account = Account { asked, allowed, ..Account::default() };
            assert_eq!(AuditDecision::of(&account, failed).name(), word, "{account:?}");
        }
    }
}
