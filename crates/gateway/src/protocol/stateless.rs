//! What the stateless protocol asks of results and requests beyond the handshake era.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use memchr::memmem;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::protocol::client_info::{Capabilities, ClientInfo, LONGEST_INTRODUCTION, LogLevel};
use crate::protocol::message::{INVALID_PARAMS, METHOD_NOT_FOUND, Members, RESOURCE_NOT_FOUND, Raw, RpcError};
use crate::protocol::versions::{LEGACY_VERSIONS, MODERN_VERSION};

/// The headers of a request contradict its body.
pub(crate) const HEADER_MISMATCH: i64 = -32_020;
/// The client does not have a capability that the request needs.
pub(crate) const MISSING_CAPABILITY: i64 = -32_021;
/// The client's protocol version is not spoken here.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32_022;

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// Where a request of the stateless protocol says what its client can be asked.
pub(crate) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// Where it says the lowest level of log messages that its client wants.
pub(crate) const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// What a request says of its client.
#[derive(Debug, Default)]
pub(crate) struct RequestMeta {
    /// The protocol version; `None` in the handshake era.
    pub(crate) version: Option<String>,
    capabilities: Option<Capabilities>,
    log: Option<LogLevel>,
    /// What it says at too great length, which is not read: the key, and its bytes.
    too_long: Option<(&'static str, usize)>,
}

impl RequestMeta {
    /// Reads the `_meta` of parameters. What has another type than it should counts as absent.
    pub(crate) fn read(params: Option<&Raw>) -> Self {
        #[derive(Deserialize, Default)]
        struct Params<'p> {
            #[serde(rename = "_meta", borrow, default)]
            meta: Option<Written<'p>>,
        }
        #[derive(Deserialize, Default)]
        struct Written<'w> {
            #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow)]
            version: Option<&'w RawValue>,
            #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow)]
            capabilities: Option<&'w RawValue>,
            #[serde(rename = "io.modelcontextprotocol/logLevel", borrow)]
            log: Option<&'w RawValue>,
        }
        // Most requests of the handshake era are done here, without a look at large arguments.
        let Some(params) = params.filter(|params| memmem::find(params.bytes(), b"io.modelcontextprotocol").is_some())
        else {
            return Self::default();
        };
        let written = params.read::<Params<'_>>().unwrap_or_default().meta.unwrap_or_default();
        let said = [(VERSION_KEY, written.version), (CAPABILITIES_KEY, written.capabilities)];
        let lengths = said.into_iter().filter_map(|(key, value)| Some((key, value?.get().len())));
        if let Some(too_long) = lengths.into_iter().find(|(_, length)| *length > LONGEST_INTRODUCTION) {
            // Whoever says so much of this speaks the stateless protocol, in a version that is none.
            return Self { version: Some(String::new()), too_long: Some(too_long), ..Self::default() };
        }
        Self {
            version: written.version.and_then(|version| serde_json::from_str(version.get()).ok()),
            capabilities: written.capabilities.and_then(Capabilities::of),
            log: written.log.and_then(|log| serde_json::from_str(log.get()).ok()),
            too_long: None,
        }
    }

    /// The client of the stateless protocol that it describes; `None` in the handshake era.
    ///
    /// # Errors
    /// The gateway does not speak the version, or the client does not declare its capabilities, or says too much.
    pub(crate) fn client(self) -> Result<Option<ClientInfo>, RpcError> {
        if let Some((key, bytes)) = self.too_long {
            let reason =
                format!("`_meta.{key}` has {bytes} bytes; a client introduces itself in {LONGEST_INTRODUCTION}");
            return Err(RpcError::invalid_params(reason));
        }
        let Some(version) = self.version else { return Ok(None) };
        if version != MODERN_VERSION && !LEGACY_VERSIONS.contains(&version.as_str()) {
            return Err(unsupported(&version));
        }
        let Some(capabilities) = self.capabilities else { return Err(missing(&[CAPABILITIES_KEY])) };
        Ok(Some(ClientInfo { version, capabilities, log: self.log }))
    }
}

/// The error for a version that the gateway does not speak.
fn unsupported(version: &str) -> RpcError {
    let mut error = RpcError::new(UNSUPPORTED_VERSION, format!("protocol version `{version}` is not supported here"));
    let data = json!({"supported": versions(), "requested": version});
    error.data = serde_json::value::to_raw_value(&data).ok();
    error
}

/// The protocol versions of both eras, the newest first.
pub(crate) fn versions() -> Vec<&'static str> {
    std::iter::once(MODERN_VERSION).chain(LEGACY_VERSIONS).collect()
}

/// A request of the stateless protocol does not say who asks.
pub(crate) fn meta_required() -> RpcError {
    missing(&[VERSION_KEY, CAPABILITIES_KEY])
}

fn missing(keys: &[&str]) -> RpcError {
    let reason = format!("`_meta` is missing {}, or it has the wrong type", keys.join(" and "));
    RpcError::new(INVALID_PARAMS, format!("invalid params: {reason}"))
}

/// Refuses what the stateless protocol has no more.
///
/// # Errors
/// The method is one of the handshake era.
pub(crate) fn check_method(method: &str) -> Result<(), RpcError> {
    const GONE: [&str; 5] = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
    if GONE.contains(&method) {
        let reason = format!("method `{method}` is not part of protocol version {MODERN_VERSION}");
        return Err(RpcError::new(METHOD_NOT_FOUND, reason));
    }
    Ok(())
}

/// An error as the stateless protocol has it: a resource that is not there is a parameter that does not fit.
pub(crate) fn translated(mut error: RpcError) -> RpcError {
    if error.code == RESOURCE_NOT_FOUND {
        error.code = INVALID_PARAMS;
    }
    error
}

/// The result of `method` with the members that the stateless protocol wants of every result and of every list.
pub(crate) fn completed(method: &str, result: Raw) -> Raw {
    /// Each member with the value that promises nothing.
    const RESULT: [(&str, &str); 1] = [("resultType", "\"complete\"")];
    const LIST: [(&str, &str); 3] = [("resultType", "\"complete\""), ("ttlMs", "0"), ("cacheScope", "\"private\"")];
    let wanted: &[(&str, &str)] = match method {
        "server/discover"
        | "tools/list"
        | "resources/list"
        | "resources/templates/list"
        | "resources/read"
        | "prompts/list" => &LIST,
        _ => &RESULT,
    };
    with_members(result, wanted)
}

/// The object `result` with those of `wanted` that it does not have, in front.
///
/// Large results are not parsed: a key that occurs nowhere is missing, and where the last or first member is the one
/// wanted nothing else is looked at.
fn with_members(result: Raw, wanted: &[(&str, &str)]) -> Raw {
    let text = result.bytes();
    let [b'{', inner @ ..] = &text[..] else { return result };
    if let [(key, _)] = wanted
        && (starts_with_key(inner, key) || ends_with_text_member(inner, key))
    {
        return result;
    }
    let occurs = |key: &str| memmem::find(text, key.as_bytes()).is_some();
    let members = match wanted.iter().any(|(key, _)| occurs(key)) {
        true => result.read::<Members<'_>>().unwrap_or_default(),
        false => Members::default(),
    };
    let lacking: Vec<_> = wanted.iter().filter(|(key, _)| members.get(key).is_none()).collect();
    if lacking.is_empty() {
        return result;
    }
    let length: usize = lacking.iter().map(|(key, value)| key.len() + value.len() + 4).sum();
    let mut longer = BytesMut::with_capacity(text.len() + length);
    longer.put_u8(b'{');
    for (at, (key, value)) in lacking.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        longer.put_slice(format!("{comma}\"{key}\":{value}").as_bytes());
    }
    if inner.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'}') {
        longer.put_u8(b',');
    }
    longer.put_slice(inner);
    Raw::from_object(longer.freeze())
}

fn starts_with_key(inner: &[u8], key: &str) -> bool {
    let quoted = inner.strip_prefix(b"\"").and_then(|rest| rest.strip_prefix(key.as_bytes()));
    quoted.is_some_and(|rest| rest.starts_with(b"\":"))
}

/// Whether the object that ends here ends in `,"key":"word"`. The comma before the quote tells that no string is open.
fn ends_with_text_member(inner: &[u8], key: &str) -> bool {
    let Some(rest) = inner.strip_suffix(b"\"}") else { return false };
    let word = rest.iter().rev().take_while(|byte| byte.is_ascii_lowercase() || **byte == b'_').count();
    let rest = rest.get(..rest.len() - word).unwrap_or_default();
    let opened = rest.strip_suffix(b"\":\"").and_then(|rest| rest.strip_suffix(key.as_bytes()));
    opened.is_some_and(|rest| rest.ends_with(b",\""))
}

/// The part of a request's parameters that `Mcp-Name` repeats, for methods that name something.
pub(crate) fn named<'p>(method: &str, params: Option<&'p Raw>) -> Option<Cow<'p, str>> {
    #[derive(Deserialize)]
    struct Text<'t>(#[serde(borrow)] Cow<'t, str>);
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Names<'n> {
        #[serde(borrow)]
        name: Option<Text<'n>>,
        #[serde(borrow)]
        uri: Option<Text<'n>>,
        #[serde(borrow)]
        task_id: Option<Text<'n>>,
    }
    let member = match method {
        "tools/call" | "prompts/get" => |names: Names<'p>| names.name,
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => |names: Names<'p>| names.uri,
        "tasks/get" | "tasks/update" | "tasks/cancel" => |names: Names<'p>| names.task_id,
        _ => return None,
    };
    member(params?.read().ok()?).map(|Text(text)| text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    fn completed_text(method: &str, text: &str) -> String {
        let result: Box<serde_json::value::RawValue> = serde_json::from_str(text).unwrap();
        format!("{:?}", completed(method, Raw::of(&result)))
    }

    #[test]
    fn a_result_gets_what_it_lacks() {
        let cases = [
            ("tools/call", "{}", r#"{"resultType":"complete"}"#),
            ("tools/call", r#"{"content":[]}"#, r#"{"resultType":"complete","content":[]}"#),
            ("tools/call", r#"{"resultType":"task","a":1}"#, r#"{"resultType":"task","a":1}"#),
            ("tools/call", r#"{"a":1,"resultType":"input_required"}"#, r#"{"a":1,"resultType":"input_required"}"#),
            ("tools/call", r#"{"a":1,"resultType":"x","b":2}"#, r#"{"a":1,"resultType":"x","b":2}"#),
            (
                "tools/call",
                r#"{"a":{"b":1,"resultType":"x"}}"#,
                r#"{"resultType":"complete","a":{"b":1,"resultType":"x"}}"#,
            ),
            (
                "tools/call",
                r#"{"a":"\",\"resultType\":\"x"}"#,
                r#"{"resultType":"complete","a":"\",\"resultType\":\"x"}"#,
            ),
            (
                "tools/list",
                r#"{"tools":[],"ttlMs":5}"#,
                r#"{"resultType":"complete","cacheScope":"private","tools":[],"ttlMs":5}"#,
            ),
        ];
        for (method, text, expected) in cases {
            assert_eq!(completed_text(method, text), expected);
        }
    }

    proptest! {
        #[test]
        fn what_is_completed_has_each_member_once(
            parts in proptest::collection::vec(
                prop_oneof!["\"resultType\"", ",", "\\\\", "\"", "\\{", "\\}", ":", "resultType", "x"], 0..8,
            ),
            at in 0_usize..3,
        ) {
            let mut object = Map::new();
            for (n, key) in ["a", "b", "c"].into_iter().enumerate() {
                if n == at {
                    object.insert("resultType".to_owned(), "input_required".into());
                }
                object.insert(key.to_owned(), json!({"resultType": parts.concat(), "t": parts.concat()}));
            }
            let done = completed("tools/call", Raw::of(&object));
            prop_assert_eq!(done.read::<Value>().unwrap(), Value::Object(object.clone()));
            object.remove("resultType");
            object.insert("d".to_owned(), parts.concat().into());
            let done: Value = completed("tools/call", Raw::of(&object)).read().unwrap();
            prop_assert_eq!(&done["resultType"], "complete");
            object.insert("resultType".to_owned(), "complete".into());
            prop_assert_eq!(done, Value::Object(object));
        }
    }

    #[test]
    fn a_client_says_who_it_is_or_is_refused() {
        let meta = |meta: Value| RequestMeta::read(Some(&Raw::of(&json!({"_meta": meta})))).client();
        assert!(RequestMeta::read(None).client().unwrap().is_none());
        assert!(meta(json!({"progressToken": 1})).unwrap().is_none());
        let client = meta(json!({
            VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: {"elicitation": {}},
            "io.modelcontextprotocol/logLevel": "warning",
        }));
        let client = client.unwrap().unwrap();
        assert!(client.can("elicitation") && client.log == Some(LogLevel::Warning));
        let cases = [
            (json!({VERSION_KEY: MODERN_VERSION}), INVALID_PARAMS),
            (json!({VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: null}), INVALID_PARAMS),
            (json!({VERSION_KEY: "1999-01-01", CAPABILITIES_KEY: {}}), UNSUPPORTED_VERSION),
        ];
        for (written, code) in cases {
            assert_eq!(meta(written.clone()).unwrap_err().code, code, "{written}");
        }
    }

    #[test]
    fn what_a_request_says_of_its_client_is_bounded() {
        let long = "x".repeat(LONGEST_INTRODUCTION);
        for meta in [
            json!({VERSION_KEY: long, CAPABILITIES_KEY: {}}),
            json!({VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: {"experimental": long}}),
            json!({CAPABILITIES_KEY: [long]}),
        ] {
            let meta = RequestMeta::read(Some(&Raw::of(&json!({ "_meta": meta }))));
            assert!(meta.version.is_some(), "it is of the stateless protocol");
            let error = meta.client().unwrap_err();
            assert_eq!((error.code, error.message.contains("65536")), (INVALID_PARAMS, true), "{}", error.message);
        }
    }

    #[test]
    fn the_name_is_the_one_of_the_method() {
        let params = Raw::of(&json!({"name": "a\"b", "uri": "u", "taskId": "t"}));
        let cases = [
            ("tools/call", Some("a\"b")),
            ("resources/read", Some("u")),
            ("tasks/get", Some("t")),
            ("tools/list", None),
        ];
        for (method, expected) in cases {
            assert_eq!(named(method, Some(&params)).as_deref(), expected, "{method}");
        }
    }
}
