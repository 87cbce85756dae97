//! What of a request of the stateless protocol is repeated in headers, for those who route it without reading it.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call::Call;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Arguments that go into headers, by tool: where they are, and under which name they go.
#[derive(Debug, Default)]
pub(super) struct Mirrored(BTreeMap<String, Vec<(Vec<String>, HeaderName)>>);

impl Mirrored {
    /// Those that the definitions of tools mark with `x-mcp-header`.
    pub(super) fn of(tools: &[Box<RawValue>]) -> Self {
        let marked = tools.iter().filter_map(|tool| {
            // Hardly any tool has it.
            memchr::memmem::find(tool.get().as_bytes(), b"x-mcp-header")?;
            let tool: Value = serde_json::from_str(tool.get()).ok()?;
            let mut found = Vec::new();
            collect(tool.get("inputSchema")?, &mut Vec::new(), &mut found);
            Some((tool.get("name")?.as_str()?.to_owned(), found))
        });
        Self(marked.collect())
    }

    /// The headers of a request.
    pub(super) fn headers(&self, call: &Call<'_>) -> HeaderMap {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase")]
        struct Subject {
            name: Option<String>,
            uri: Option<String>,
            task_id: Option<String>,
        }
        #[derive(Deserialize)]
        struct Arguments {
            arguments: Value,
        }
        let mut headers = HeaderMap::new();
        let mut put = |name: &HeaderName, text: &str| {
            if let Ok(value) = HeaderValue::from_str(&header_form(text)) {
                headers.insert(name.clone(), value);
            }
        };
        put(&METHOD, call.method);
        let subject: Subject = call.params.and_then(|params| params.read().ok()).unwrap_or_default();
        let subject = match call.method {
            "tools/call" | "prompts/get" => subject.name,
            "resources/read" => subject.uri,
            "tasks/get" | "tasks/update" | "tasks/cancel" => subject.task_id,
            _ => None,
        };
        if let Some(subject) = &subject {
            put(&NAME, subject);
        }
        let marked = subject.filter(|_| call.method == "tools/call").and_then(|tool| self.0.get(&tool));
        let arguments = marked.and_then(|_| call.params?.read::<Arguments>().ok());
        if let (Some(marked), Some(Arguments { arguments })) = (marked, &arguments) {
            for (path, header) in marked {
                match path.iter().try_fold(arguments, |value, key| value.get(key)) {
                    Some(Value::String(text)) => put(header, text),
                    Some(value @ (Value::Bool(_) | Value::Number(_))) => put(header, &value.to_string()),
                    _ => {}
                }
            }
        }
        headers
    }
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, HeaderName)>) {
    for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        path.push(name.clone());
        let header = schema.get("x-mcp-header").and_then(Value::as_str).filter(|header| !header.is_empty());
        if let Some(Ok(header)) = header.map(|header| HeaderName::from_bytes(format!("mcp-param-{header}").as_bytes()))
        {
            found.push((path.clone(), header));
        }
        collect(schema, path, found);
        path.pop();
    }
}

/// A text as the value of a header: what would not survive there goes in base64.
fn header_form(text: &str) -> String {
    const MARK: (&str, &str) = ("=?base64?", "?=");
    let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let padded = text.starts_with(' ') || text.ends_with(' ');
    let marked = text.starts_with(MARK.0) && text.ends_with(MARK.1);
    let plain = printable && !padded && !marked;
    if plain { text.to_owned() } else { format!("{}{}{}", MARK.0, BASE64_STANDARD.encode(text), MARK.1) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::message::Raw;

    #[test]
    fn what_survives_in_a_header_goes_as_it_is() {
        let cases = [
            ("get_weather", "get_weather"),
            ("file:///a b", "file:///a b"),
            ("", ""),
            (" a", "=?base64?IGE=?="),
            ("é", "=?base64?w6k=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ];
        for (text, expected) in cases {
            assert_eq!(header_form(text), expected);
        }
    }

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
