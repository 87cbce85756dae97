//! The headers in which a request of MCP repeats what its body says, for those on the way that do not read bodies.
//!
//! A header that contradicts the body is refused: a proxy that routes or permits by the header would otherwise let through
//! what it does not see.

use hyper::HeaderMap;
use hyper::header::HeaderName;
use serde::Deserialize;
use serde_json::Value;

use crate::protocol::headers::{METHOD, NAME, PROTOCOL_VERSION, ParamHeader, decoded};
use crate::protocol::message::{Raw, RpcError};
use crate::protocol::stateless::{HEADER_MISMATCH, named};
use crate::protocol::trace_context::{PARENT, STATE, TraceContext};

/// The place in a trace that the headers name.
pub(super) fn trace_of(headers: &HeaderMap) -> Option<TraceContext> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    TraceContext::parse(text(PARENT)?, text(STATE))
}

/// The value of a header that may stand once.
///
/// # Errors
/// It appears more than once, or is not ASCII text.
pub(super) fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            value.to_str().map(Some).map_err(|_| mismatch(format!("the header `{name}` contains non-ASCII text")))
        }
        (Some(_), Some(_)) => Err(mismatch(format!("the header `{name}` appears more than once"))),
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
    for wanted in wanted {
        let header = &wanted.header;
        match wanted.of(&arguments) {
            Some(argument) => compare(headers, header, &argument)?,
            None if headers.contains_key(header) => {
                let path = wanted.path.join(".");
                return Err(mismatch(format!(
                    "the header `{header}` is present, but the argument `{path}` is missing"
                )));
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
    let said = decoded(written).ok_or_else(|| mismatch(format!("the header `{name}` is not base64: `{written}`")))?;
    match said == body {
        true => Ok(()),
        false => Err(mismatch(format!("the header `{name}` says `{said}`, but the body says `{body}`"))),
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
    use crate::protocol::headers::param_headers;

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
