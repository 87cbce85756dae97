//! What a client says about itself, in the handshake or with each request.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The severity of a log message, in ascending order (RFC 5424, as MCP uses it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Details that help with debugging.
    Debug,
    /// Messages about normal operation.
    Info,
    /// A normal event that deserves attention.
    Notice,
    /// A condition that may become an error.
    Warning,
    /// An operation failed, the server goes on.
    Error,
    /// A component does not work.
    Critical,
    /// A person must act at once.
    Alert,
    /// The whole server is unusable.
    Emergency,
}

/// What a client says about itself.
#[derive(Debug, Clone, Default)]
pub struct ClientInfo {
    /// The protocol version that both sides speak; empty before the handshake.
    pub version: String,
    /// Its capabilities: what the server may ask of it, by name.
    pub capabilities: Map<String, Value>,
    /// The lowest level of log messages that it wants, in the stateless protocol; no messages when `None`.
    pub log: Option<LogLevel>,
}

impl ClientInfo {
    /// Whether the client declared the capability.
    #[must_use]
    pub fn can(&self, capability: &str) -> bool {
        self.capabilities.contains_key(capability)
    }

    /// Whether it offers to ask its user in this mode of elicitation, e.g. `form`.
    pub(crate) fn elicits(&self, mode: &str) -> bool {
        let modes = self.capabilities.get("elicitation").and_then(Value::as_object);
        // An empty object means forms: there was nothing else when the capability was introduced.
        modes.is_some_and(|modes| modes.contains_key(mode) || (modes.is_empty() && mode == "form"))
    }
}
