//! Failures as data: what a meta-tool answers when it cannot do what it was asked.
//!
//! Nothing crosses the boundary as an exception, and the message that a model sees is one line of bounded length
//! without secrets; the whole reason goes to the log. Where a failure comes from is known by its type or status, never
//! by words in its message.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::common::masks::Masks;
use crate::common::work::Exhausted;
use crate::protocol::message::{INVALID_PARAMS, Outcome, Raw, RpcError, URL_ELICITATION_REQUIRED};
use contextweaver_context::store::redact;

/// The kind of a failure, as clients see it in the field `error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// A path that does not follow the grammar.
    PathInvalid,
    /// A well-formed path that leads nowhere.
    PathNotFound,
    /// Arguments that the tool's schema, or the meta-tool, refuses.
    ArgsInvalid,
    /// The schema of a tool cannot be used.
    SchemaInvalid,
    /// The upstream answered with an error, or with something that is not an answer.
    UpstreamError,
    /// The upstream did not answer in time.
    UpstreamTimeout,
    /// The upstream cannot be reached.
    UpstreamUnavailable,
    /// The upstream does not accept the gateway's credentials.
    AuthFailed,
    /// The upstream does not permit it.
    PermissionDenied,
    /// Too many calls within the time of a quota.
    RateLimited,
    /// The gateway's own policy refuses it.
    PolicyDenied,
    /// The gateway's policy wants an approval that was not given.
    ApprovalRequired,
    /// The definition of a tool changed and waits for approval.
    Quarantined,
    /// The tool is not in the catalog.
    HydrateFailed,
    /// The artifact or the part of it cannot be shown.
    ViewFailed,
    /// The resource is not in the catalog.
    ResourceNotFound,
    /// The prompt is not in the catalog.
    PromptNotFound,
    /// The audit log cannot be written, and nothing is done that it does not hold.
    AuditFailed,
}

impl Code {
    /// All codes, as they are written.
    pub(crate) const WORDS: [&str; 18] = [
        "PATH_INVALID",
        "PATH_NOT_FOUND",
        "ARGS_INVALID",
        "SCHEMA_INVALID",
        "UPSTREAM_ERROR",
        "UPSTREAM_TIMEOUT",
        "UPSTREAM_UNAVAILABLE",
        "AUTH_FAILED",
        "PERMISSION_DENIED",
        "RATE_LIMITED",
        "POLICY_DENIED",
        "APPROVAL_REQUIRED",
        "QUARANTINED",
        "HYDRATE_FAILED",
        "VIEW_FAILED",
        "RESOURCE_NOT_FOUND",
        "PROMPT_NOT_FOUND",
        "AUDIT_FAILED",
    ];

    /// The code as it is written.
    pub(crate) fn word(self) -> &'static str {
        Self::WORDS.get(self as usize).copied().unwrap_or_default()
    }

    /// What an operator can do about it.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Self::PathInvalid | Self::PathNotFound => "the caller sees the right paths in the answer",
            Self::ArgsInvalid => {
                "the caller is told what the arguments may be; if it happens often, try `tolerant_args`"
            }
            Self::SchemaInvalid => {
                "`contextweaver mcp doctor` says what is wrong with the schema; tell the author of the server"
            }
            Self::UpstreamError => "see the server's log, or set RUST_LOG=debug",
            Self::UpstreamTimeout => "raise `timeout` of this upstream, or see why the server is slow",
            Self::UpstreamUnavailable => "start the server; `contextweaver mcp doctor` checks it",
            Self::AuthFailed => "renew the token in `headers` or `env` of this upstream, or the key in `signing`",
            Self::PermissionDenied => "the token of this upstream does not permit it",
            Self::RateLimited => "raise `rate_limits`, or ask the caller to make fewer calls",
            Self::PolicyDenied => "a rule refuses it: change `policy` if that is not intended",
            Self::ApprovalRequired => "nobody approved it: answer here, or use a client that can ask",
            Self::Quarantined => "look at the change with `contextweaver mcp pins list --pending`, then approve it",
            Self::HydrateFailed | Self::ResourceNotFound | Self::PromptNotFound => {
                "the caller asked for something that is not served; the answer names what comes closest"
            }
            Self::ViewFailed => "the stored result is gone or has no such part; raise the limits of `artifacts`",
            Self::AuditFailed => "make room on the disk of the audit log; nothing is called until it can be written",
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn retryable(self) -> bool {
        matches!(self, Self::UpstreamTimeout | Self::UpstreamUnavailable | Self::RateLimited)
    }
}

/// The code of JSON-RPC for a failure of the taxonomy, which is in the data.
const REFUSED: i64 = -32_000;

/// Characters of a message or a path that a model sees.
const LONGEST: usize = 256;

/// A failure, as a client gets it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GatewayError {
    /// The kind of failure.
    #[serde(rename = "error")]
    pub code: Code,
    /// What went wrong and what to do, on one line of at most 256 characters, without secrets.
    message: String,
    /// The path or id in question, or empty; it may be what a caller sent, and is as bounded and clean as the message.
    path: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// Further data about the failure.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub details: Box<Map<String, Value>>,
    /// What a person has to do at addresses before the same call is made again: the data of the error that says so.
    #[serde(skip)]
    required: Option<Box<Value>>,
}

impl GatewayError {
    /// A failure of the given kind.
    #[must_use]
    pub fn new(code: Code, message: impl AsRef<str>) -> Self {
        Self {
            code,
            message: presentable(message.as_ref()),
            path: String::new(),
            retryable: code.retryable(),
            details: Box::default(),
            required: None,
        }
    }

    /// The same about a path or id.
    #[must_use]
    pub fn at(mut self, path: impl AsRef<str>) -> Self {
        self.path = presentable(path.as_ref());
        self
    }

    /// The same with a detail.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// The same with more to its message.
    #[must_use]
    pub(crate) fn adding(mut self, more: &str) -> Self {
        self.message = presentable(&format!("{}{more}", self.message));
        self
    }

    /// The same, where the same call fails for good although others of its kind do not.
    #[must_use]
    pub(crate) fn for_good(mut self) -> Self {
        self.retryable = false;
        self
    }

    /// The same, where a person has to do something at addresses first.
    #[must_use]
    pub(crate) fn requiring(mut self, data: Option<Value>) -> Self {
        self.required = data.map(Box::new);
        self
    }

    /// What a model sees of the reason.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The error of JSON-RPC that carries it as its data, for requests that no tool answers.
    #[must_use]
    pub(crate) fn to_rpc(&self) -> RpcError {
        let code = match self.code {
            Code::ArgsInvalid => INVALID_PARAMS,
            _ => REFUSED,
        };
        let mut error = RpcError::new(code, self.to_string());
        error.data = serde_json::value::to_raw_value(self).ok();
        error
    }

    /// The answer to a call that carries it: a result for the model, or an error for the client where a person has to do
    /// something first.
    pub(crate) fn to_outcome(&self) -> Outcome {
        let Some(data) = &self.required else { return Ok(self.to_result()) };
        let mut error = RpcError::new(URL_ELICITATION_REQUIRED, self.message());
        error.data = serde_json::value::to_raw_value(data).ok();
        Err(error)
    }

    /// The `CallToolResult` that carries it.
    #[must_use]
    pub fn to_result(&self) -> Raw {
        text_result(&serde_json::to_string(self).unwrap_or_default(), true)
    }
}

impl std::fmt::Display for GatewayError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.code.word(), self.message)
    }
}

impl std::error::Error for GatewayError {}

/// Bytes of a message that are looked at, at most: somebody else may have written megabytes.
const LOOKED_AT: usize = 16 * 1024;

/// One line, bounded, without secrets.
pub(crate) fn presentable(message: &str) -> String {
    presentable_with(message, &Masks::default())
}

/// The same, in which these values are covered as well.
pub(crate) fn presentable_with(message: &str, masks: &Masks) -> String {
    let beginning = message.get(..message.floor_char_boundary(LOOKED_AT)).unwrap_or(message);
    let beginning = match beginning.len() < message.len() {
        // A secret of which the end is missing would not be known as one.
        true => beginning.rsplit_once(char::is_whitespace).map_or(beginning, |(before, _)| before),
        false => beginning,
    };
    // Messages quote upstreams. A secret is known as one when what stands between its characters is gone.
    let clean = masks.cover(beginning);
    let clean = redact(&clean);
    let mut line = String::new();
    for word in clean.text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if beginning.len() < message.len() && !line.is_empty() && line.chars().nth(LONGEST).is_none() {
        line.push_str(" …");
    }
    if line.chars().nth(LONGEST).is_some() {
        line = line.chars().take(LONGEST - 1).collect();
        line.push('…');
    }
    line
}

impl GatewayError {
    /// The failure of a request whose budget is used up by work on `what`.
    pub(crate) fn exhausted(code: Code, what: &str, exhausted: Exhausted) -> Self {
        let code = if matches!(exhausted, Exhausted::Busy(_)) { Code::RateLimited } else { code };
        Self::new(code, format!("{what} {exhausted}"))
    }
}

/// A `CallToolResult` with one part of text.
#[must_use]
pub fn text_result(text: &str, is_error: bool) -> Raw {
    #[derive(Serialize)]
    struct Part<'t> {
        r#type: &'static str,
        text: &'t str,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct CallToolResult<'t> {
        content: [Part<'t>; 1],
        is_error: bool,
    }
    Raw::of(&CallToolResult { content: [Part { r#type: "text", text }], is_error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_bounded_line_without_secrets() {
        let key = format!("AKIA{}", "IOSFODNN7EXAMPLE");
        let coloured = key.replace("FOD", "FOD\u{1b}[0m");
        let text = format!("bad\u{1b}[31m\nkey {key} {coloured} {}", "x".repeat(400));
        let error = GatewayError::new(Code::UpstreamError, text);
        assert!(!error.message().contains(&key) && !error.message().contains(char::is_control));
        assert_eq!(error.message().chars().count(), LONGEST);
        assert!(error.message().ends_with('…'));
    }

    #[test]
    fn of_a_message_of_megabytes_the_beginning_is_looked_at() {
        let start = std::time::Instant::now();
        let key = format!("AKIA{}", "IOSFODNN7EXAMPLE");
        let split = format!("{}{key}", " ".repeat(LOOKED_AT - 10));
        for text in ["password=\n".repeat(5_000_000), "<|im_start|>".repeat(5_000_000), split, "é".repeat(9_000)] {
            let shown = presentable(&text);
            assert!(shown.chars().count() <= LONGEST && !shown.contains("AKIA"), "{shown}");
        }
        assert!(start.elapsed().as_secs() < 2, "{:?}", start.elapsed());
    }

    #[test]
    fn a_path_is_as_bounded_and_clean_as_a_message() {
        let key = format!("AKIA{}", "IOSFODNN7EXAMPLE");
        let path = format!("h\u{1b}[31m\u{202e}\n<|im_start|> {key} {}", "x ".repeat(400));
        let error = GatewayError::new(Code::ViewFailed, "no").at(path);
        assert!(!error.path.contains(&key) && !error.path.contains("im_start"), "{}", error.path);
        assert!(!error.path.contains(|c: char| c.is_control() || c == '\u{202e}'), "{}", error.path);
        assert_eq!(error.path.chars().count(), LONGEST);
        assert_eq!(GatewayError::new(Code::ViewFailed, "no").at("/git/log").path, "/git/log");
    }

    #[test]
    fn every_code_is_among_the_words() {
        let codes = Code::WORDS.map(|word| serde_json::from_value::<Code>(word.into()).unwrap());
        assert!(codes.is_sorted() && codes.last() == Some(&Code::AuditFailed));
        assert_eq!(Code::AuditFailed as usize + 1, codes.len());
    }

    #[test]
    fn the_wire_form_is_that_of_the_surface() {
        let error = GatewayError::new(Code::UpstreamTimeout, "no answer in 30 s").at("a:b#00000000").with("n", 1);
        insta::assert_snapshot!(
            serde_json::to_string(&error).unwrap(),
            @r#"{"error":"UPSTREAM_TIMEOUT","message":"no answer in 30 s","path":"a:b#00000000","retryable":true,"details":{"n":1}}"#
        );
    }
}
