//! The HTTP headers of the protocol: sent to upstreams, and read of clients.
//!
//! A request of the stateless protocol repeats in them what its body says, for those who route it without reading it. Both
//! sides of the gateway have the same rules for that.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::header::HeaderName;
use memchr::memmem;
use serde_json::Value;

/// The media type of JSON.
pub(crate) const JSON: &str = "application/json";
/// The media type of a stream of server-sent events.
pub(crate) const EVENTS: &str = "text/event-stream";
/// The header with the session of a client of the handshake era.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header with the protocol version.
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The header with the id of the last event that a client got of a stream.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The header that repeats the method.
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The header that repeats what a request names.
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// What is around a value in base64.
const MARK: (&str, &str) = ("=?base64?", "?=");

/// The headers that repeat arguments, by the name under which a tool is called; most tools have none.
pub(crate) type ParamHeaders = BTreeMap<String, Vec<ParamHeader>>;

/// A header that repeats an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamHeader {
    /// The keys that lead to the argument.
    pub(crate) path: Vec<String>,
    /// The header that repeats it.
    pub(crate) header: HeaderName,
}

impl ParamHeader {
    /// What the header says of these arguments, before it is [encoded]; `None` where they have none that it could repeat.
    pub(crate) fn of<'a>(&self, arguments: &'a Value) -> Option<Cow<'a, str>> {
        match self.path.iter().try_fold(arguments, |value, key| value.get(key))? {
            Value::String(text) => Some(text.into()),
            value @ (Value::Bool(_) | Value::Number(_)) => Some(value.to_string().into()),
            _ => None,
        }
    }
}

/// The headers that the definition of a tool asks for. A name that cannot be that of a header is ignored.
pub(crate) fn param_headers(definition: &str) -> Vec<ParamHeader> {
    const ANNOTATION: &str = "x-mcp-header";
    fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<ParamHeader>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            path.push(name.clone());
            let header = property[ANNOTATION].as_str().filter(|header| !header.is_empty());
            let header = header.and_then(|header| format!("mcp-param-{header}").parse().ok());
            found.extend(header.map(|header| ParamHeader { path: path.clone(), header }));
            collect(property, path, found);
            path.pop();
        }
    }
    let mut found = Vec::new();
    // Hardly any tool has it.
    if memmem::find(definition.as_bytes(), ANNOTATION.as_bytes()).is_some() {
        let definition: Value = serde_json::from_str(definition).unwrap_or_default();
        collect(&definition["inputSchema"], &mut Vec::new(), &mut found);
    }
    found
}

/// A text as the value of a header: what would not survive there goes in base64.
pub(crate) fn encoded(text: &str) -> Cow<'_, str> {
    let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let padded = text.starts_with(' ') || text.ends_with(' ');
    let marked = text.starts_with(MARK.0) && text.ends_with(MARK.1);
    match printable && !padded && !marked {
        true => text.into(),
        false => format!("{}{}{}", MARK.0, BASE64_STANDARD.encode(text), MARK.1).into(),
    }
}

/// The text that the value of a header stands for; `None` where it is marked as base64 but is not.
pub(crate) fn decoded(written: &str) -> Option<Cow<'_, str>> {
    match written.strip_prefix(MARK.0).and_then(|rest| rest.strip_suffix(MARK.1)) {
        Some(inner) => Some(String::from_utf8(BASE64_STANDARD.decode(inner).ok()?).ok()?.into()),
        None => Some(written.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_survives_in_a_header_goes_as_it_is_and_all_comes_back() {
        let cases = [
            ("get_weather", "get_weather"),
            ("file:///a b", "file:///a b"),
            ("", ""),
            (" a", "=?base64?IGE=?="),
            ("é", "=?base64?w6k=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ];
        for (text, written) in cases {
            assert_eq!(encoded(text), written);
            assert_eq!(decoded(written).as_deref(), Some(text));
        }
        for wrong in ["=?base64?!?=", "=?base64?/w==?="] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
