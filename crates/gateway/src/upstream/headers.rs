//! What of a request of the stateless protocol is repeated in headers, for those who route it without reading it.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call::Call;
use crate::protocol::headers::{METHOD, NAME, ParamHeaders, encoded, param_headers};
use crate::protocol::listing::too_large;
use crate::protocol::stateless::named;

/// The arguments that go into headers, by tool.
#[derive(Debug, Default)]
pub(super) struct Mirrored(ParamHeaders);

impl Mirrored {
    /// Those that the definitions of tools ask for.
    pub(super) fn of(tools: &[Box<RawValue>]) -> Self {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let marked = tools.iter().filter(|tool| too_large(tool).is_none()).filter_map(|tool| {
            let headers = param_headers(tool.get());
            if headers.is_empty() {
                return None;
            }
            let Named { name } = serde_json::from_str(tool.get()).ok()?;
            Some((name, headers))
        });
        Self(marked.collect())
    }

    /// The headers of a request.
    pub(super) fn headers(&self, call: &Call<'_>) -> HeaderMap {
        #[derive(Deserialize)]
        struct Params {
            arguments: Value,
        }
        let mut headers = HeaderMap::new();
        let mut put = |name: &HeaderName, text: &str| {
            if let Ok(value) = HeaderValue::from_str(&encoded(text)) {
                headers.insert(name.clone(), value);
            }
        };
        put(&METHOD, call.method);
        let Some(subject) = named(call.method, call.params) else { return headers };
        put(&NAME, &subject);
        let marked = if call.method == "tools/call" { self.0.get(&*subject) } else { None };
        let params = marked.and_then(|_| call.params?.read::<Params>().ok());
        if let (Some(marked), Some(Params { arguments })) = (marked, &params) {
            for wanted in marked {
                if let Some(argument) = wanted.of(arguments) {
                    put(&wanted.header, &argument);
                }
            }
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::message::Raw;

    #[test]
    fn the_method_the_subject_and_the_marked_arguments() {
        let tool = json!({"name": "t", "inputSchema": {"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "bad": {"x-mcp-header": "no good"},
            "absent": {"x-mcp-header": "Absent"},
        }}});
        let mirrored = Mirrored::of(&[serde_json::value::to_raw_value(&tool).unwrap()]);
        let headers = |method: &str, params: &Value| {
            let params = Raw::of(params);
            let headers = mirrored.headers(&Call::own(method, Some(&params)));
            let mut rows: Vec<String> =
                headers.iter().map(|(name, value)| format!("{name}={}", value.to_str().unwrap())).collect();
            rows.sort();
            rows.join(" ")
        };
        let arguments = json!({"region": "eu", "deep": {"n": 7}, "bad": "x"});
        assert_eq!(
            headers("tools/call", &json!({"name": "t", "arguments": arguments})),
            "mcp-method=tools/call mcp-name=t mcp-param-n=7 mcp-param-region=eu"
        );
        assert_eq!(headers("tools/call", &json!({"name": "u"})), "mcp-method=tools/call mcp-name=u");
        assert_eq!(headers("resources/read", &json!({"uri": "a:b"})), "mcp-method=resources/read mcp-name=a:b");
        assert_eq!(headers("tools/list", &json!({"name": "t"})), "mcp-method=tools/list");
    }
}
