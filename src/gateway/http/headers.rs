//! The headers in which a request of MCP repeats what its body says, for those on the way that do not read bodies.
//!
//! A header that contradicts the body is refused: who routes or permits by the header would otherwise let through
//! what it does not see.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::HeaderMap;
use hyper::header::HeaderName;
use serde::Deserialize;
use serde_json::Value;

use crate::gateway::modern::{HEADER_MISMATCH, named};
use crate::gateway::wire::{Raw, RpcError};

/// The session of a client of the handshake era.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The protocol version.
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The value of a header that may stand once.
///
/// # Errors
/// It stands more often, or is no text.
pub(super) fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            value.to_str().map(Some).map_err(|_| mismatch(format!("the header `{name}` holds what is no text")))
        }
        (Some(_), Some(_)) => Err(mismatch(format!("the header `{name}` stands more than once"))),
    }
}

/// Checks the headers of a request of the stateless protocol against its body, in which the client says that it speaks
/// `version`.
///
/// # Errors
/// One is missing where the body has the value, or says otherwise.
pub(super) fn check(
    headers: &HeaderMap,
    version: Option<&str>,
    method: &str,
    params: Option<&Raw>,
) -> Result<(), RpcError> {
    if let Some(version) = version {
        compare(headers, &PROTOCOL_VERSION, version)?;
    }
    compare(headers, &METHOD, method)?;
    match named(method, params) {
        Some(name) => compare(headers, &NAME, &name),
        None => Ok(()),
    }
}

/// The headers that repeat arguments, by the name under which a tool is called; most tools have none.
pub(in crate::gateway) type ParamHeaders = BTreeMap<String, Vec<ParamHeader>>;

/// A header that repeats an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gateway) struct ParamHeader {
    /// Where the argument is.
    path: Vec<String>,
    header: HeaderName,
}

/// The headers that the definition of a tool asks for. A name that is no header's asks for nothing.
pub(in crate::gateway) fn param_headers(definition: &str) -> Vec<ParamHeader> {
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
    if memchr::memmem::find(definition.as_bytes(), ANNOTATION.as_bytes()).is_some() {
        let definition: Value = serde_json::from_str(definition).unwrap_or_default();
        collect(&definition["inputSchema"], &mut Vec::new(), &mut found);
    }
    found
}

/// Checks the headers that repeat arguments of a call.
///
/// # Errors
/// One is missing where the call has the argument, stands where it has none, or says otherwise.
pub(super) fn check_params(headers: &HeaderMap, wanted: &[ParamHeader], params: Option<&Raw>) -> Result<(), RpcError> {
    #[derive(Deserialize, Default)]
    struct Params {
        #[serde(default)]
        arguments: Value,
    }
    let arguments = params.and_then(|params| params.read::<Params>().ok()).unwrap_or_default().arguments;
    for ParamHeader { path, header } in wanted {
        let argument = path.iter().try_fold(&arguments, |value, key| value.get(key));
        let argument = argument.and_then(|value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
            _ => None,
        });
        match argument {
            Some(argument) => compare(headers, header, &argument)?,
            None if headers.contains_key(header) => {
                let path = path.join(".");
                return Err(mismatch(format!("the header `{header}` is there and the argument `{path}` is not")));
            }
            None => {}
        }
    }
    Ok(())
}

fn compare(headers: &HeaderMap, name: &HeaderName, body: &str) -> Result<(), RpcError> {
    let Some(written) = single(headers, name)? else {
        return Err(mismatch(format!("the header `{name}` is missing; the body says `{body}`")));
    };
    let said = decoded(written).ok_or_else(|| mismatch(format!("the header `{name}` is no base64: `{written}`")))?;
    match said == body {
        true => Ok(()),
        false => Err(mismatch(format!("the header `{name}` says `{said}` and the body `{body}`"))),
    }
}

/// The value of a header; one that cannot stand in a header as it is comes as `=?base64?…?=`.
fn decoded(written: &str) -> Option<Cow<'_, str>> {
    match written.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(inner) => Some(String::from_utf8(BASE64_STANDARD.decode(inner).ok()?).ok()?.into()),
        None => Some(written.into()),
    }
}

fn mismatch(reason: String) -> RpcError {
    RpcError::new(HEADER_MISMATCH, reason)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn headers_say_what_the_body_says() {
        let params = Raw::of(&json!({"name": "grün"}));
        let good = [(&PROTOCOL_VERSION, "v"), (&METHOD, "tools/call"), (&NAME, "=?base64?Z3LDvG4=?=")];
        let check = |lines: &[(&HeaderName, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, HeaderValue::from_str(value).unwrap());
            }
            super::check(&headers, Some("v"), "tools/call", Some(&params)).map_err(|error| error.message)
        };
        assert_eq!(check(&good), Ok(()));
        for (at, (name, _)) in good.iter().enumerate() {
            let mut lines = good.to_vec();
            lines.remove(at);
            assert!(check(&lines).unwrap_err().contains("is missing"), "{name}");
            for wrong in ["x", "=?base64?!?=", "Tools/call"] {
                lines.push((*name, wrong));
                assert!(check(&lines).is_err(), "{name}: {wrong}");
                lines.pop();
            }
            lines.extend([good[at], good[at]]);
            assert!(check(&lines).unwrap_err().contains("more than once"), "{name}");
        }
    }

    #[test]
    fn arguments_are_repeated_where_the_definition_says_so() {
        let definition = json!({"name": "t", "inputSchema": {"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "other": {"type": "string", "x-mcp-header": "not a name"},
        }}});
        let wanted = param_headers(&definition.to_string());
        assert_eq!(wanted.len(), 2);
        type Headers<'h> = &'h [(&'h str, &'h str)];
        let cases: [(Value, Headers<'_>, bool); 6] = [
            (json!({"region": "eu", "deep": {"n": 3}}), &[("mcp-param-region", "eu"), ("mcp-param-n", "3")], true),
            (json!({"region": "eu"}), &[("mcp-param-region", "=?base64?ZXU=?=")], true),
            (json!({"region": "eu"}), &[("mcp-param-region", "us")], false),
            (json!({"region": "eu"}), &[], false),
            (json!({"region": null}), &[("mcp-param-region", "eu")], false),
            (json!({}), &[], true),
        ];
        for (arguments, lines, expected) in cases {
            let lines =
                lines.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap()));
            let params = Raw::of(&json!({"name": "t", "arguments": arguments}));
            let checked = check_params(&lines.collect(), &wanted, Some(&params));
            assert_eq!(checked.is_ok(), expected, "{arguments}");
        }
    }
}
