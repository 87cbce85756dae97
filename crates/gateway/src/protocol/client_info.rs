//! What a client says about itself, in the handshake or with each request.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::message::{Members, Raw, is_object};

/// Bytes of what a client says about itself, at most: it is kept for as long as the session or the request.
pub(crate) const LONGEST_INTRODUCTION: usize = 64 * 1024;

/// The severity of a log message, in ascending order (RFC 5424, as MCP uses it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

/// What a server may ask of a client, by name. It stays the text that came: read, it would take sixty times the room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities(Raw);

impl Capabilities {
    /// The capabilities that this text says; `None` where it is not an object.
    pub(crate) fn of(written: &RawValue) -> Option<Self> {
        is_object(written.get().as_bytes()).then(|| Self(Raw::of(written)))
    }

    /// The text, an object.
    pub(crate) fn text(&self) -> &Raw {
        &self.0
    }

    /// What is said about the capability. Of several members of one name the last counts, as in most parsers.
    fn get(&self, capability: &str) -> Option<Raw> {
        let members = self.0.read::<Members<'_>>().ok()?;
        members.0.iter().rfind(|(name, _)| name == capability).map(|(_, value)| Raw::of(&**value))
    }

    /// Whether the capability is declared with this member.
    fn has(&self, capability: &str, member: &str) -> bool {
        let Some(capability) = self.get(capability) else { return false };
        capability.read::<Members<'_>>().is_ok_and(|members| members.get(member).is_some())
    }

    /// Whether the person behind the client can be asked in this mode of elicitation, e.g. `form`.
    fn elicits(&self, mode: &str) -> bool {
        let Some(elicitation) = self.get("elicitation") else { return false };
        // Where no mode is named, forms are meant: there was nothing else when the capability was introduced.
        let modes = elicitation.read::<Members<'_>>();
        modes.is_ok_and(|modes| modes.get(mode).is_some() || (mode == "form" && modes.get("url").is_none()))
    }
}

impl Default for Capabilities {
    fn default() -> Self {
        std::iter::empty().collect()
    }
}

impl FromIterator<(String, Value)> for Capabilities {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        Self(Raw::of(&Map::from_iter(members)))
    }
}

impl Serialize for Capabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.to_raw_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Box::<RawValue>::deserialize(deserializer)?;
        Self::of(&written).ok_or_else(|| serde::de::Error::custom("`capabilities` must be an object"))
    }
}

/// What a client says about itself.
#[derive(Debug, Clone, Default)]
pub struct ClientInfo {
    /// The protocol version that both sides speak; empty before the handshake.
    pub version: String,
    /// Its capabilities.
    pub capabilities: Capabilities,
    /// The lowest level of log messages that it wants. When `None`, it gets no messages in the stateless protocol, and all
    /// in the handshake era.
    pub log: Option<LogLevel>,
}

impl ClientInfo {
    /// Whether the client declared the capability.
    #[must_use]
    pub fn can(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some()
    }

    /// Whether its model can be asked to use tools.
    pub(crate) fn samples_with_tools(&self) -> bool {
        self.capabilities.has("sampling", "tools")
    }

    /// Whether it offers to ask its user in this mode of elicitation, e.g. `form`.
    pub(crate) fn elicits(&self, mode: &str) -> bool {
        self.capabilities.elicits(mode)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn capabilities_are_kept_as_they_were_written_and_read_by_name() {
        let text = r#"{"roots":{"n":1.50},"elicitation":{"url":{}},"elicitation":{"form":{}},"x":[0,0]}"#;
        let capabilities: Capabilities = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&capabilities).unwrap(), text);
        let client = ClientInfo { capabilities, ..ClientInfo::default() };
        assert!(client.can("roots") && client.can("x") && !client.can("sampling"));
        assert!(client.elicits("form"));
        for other in ["[]", "null", "\"roots\""] {
            assert!(serde_json::from_str::<Capabilities>(other).is_err(), "{other}");
        }
        let forms = |elicitation: Value| Capabilities::from_iter([("elicitation".to_owned(), elicitation)]);
        let cases = [
            (json!({}), true),
            (json!({"applyDefaults": true}), true),
            (json!({"form": {}}), true),
            (json!({"form": {}, "url": {}}), true),
            (json!({"url": {}}), false),
            (json!([]), false),
        ];
        for (elicitation, expected) in cases {
            assert_eq!(forms(elicitation.clone()).elicits("form"), expected, "{elicitation}");
        }
    }
}
