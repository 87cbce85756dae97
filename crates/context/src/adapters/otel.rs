//! OpenTelemetry's spans of generative AI, as OTLP writes them in JSON (`resourceSpans`), one document or one a line; both
//! ways.
//!
//! Spans are read in the order in which they began. Those with `gen_ai.input.messages` and `gen_ai.output.messages` are
//! turns, and say each message once however often later spans repeat it. `execute_tool` adds calls and results that no
//! model was told. What else a span says (times, counts of tokens, the model) is not kept.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Conversation;
use super::error::{AdapterError, array, check_nesting, shown};
use super::spans::{Messages, ToolRun, as_json, as_text, call, content, documents, left_out, split};
use contextweaver_core::text::sha256_hex;

const SPANS: &str = "resourceSpans";
const OPERATION: &str = "gen_ai.operation.name";
const INSTRUCTIONS: &str = "gen_ai.system_instructions";
const INPUT: &str = "gen_ai.input.messages";
const OUTPUT: &str = "gen_ai.output.messages";

/// Whether a document holds spans.
pub(super) fn is_document(document: &Value) -> bool {
    document.get(SPANS).is_some_and(Value::is_array)
}

/// A span: its id, and what it says.
struct Span {
    began: u128,
    id: String,
    name: String,
    attributes: Map<String, Value>,
    /// What went wrong, if something did.
    error: Option<Value>,
}

impl Span {
    fn text(&self, key: &str) -> Option<&str> {
        self.attributes.get(key).and_then(Value::as_str)
    }

    /// A list that is an attribute, or JSON in one.
    fn list(&self, key: &str) -> Result<Vec<Value>, AdapterError> {
        let Some(value) = self.attributes.get(key) else { return Ok(Vec::new()) };
        let place = format!("span `{}`, `{key}`", shown(&self.id));
        let value = match value {
            Value::String(text) => super::error::parse(text, &place)?,
            other => other.clone(),
        };
        array(value, &place)
    }

    fn is_agent(&self) -> bool {
        self.text(OPERATION).is_some_and(|operation| operation.ends_with("_agent") || operation == "invoke_workflow")
    }

    fn has_messages(&self) -> bool {
        [INPUT, OUTPUT].iter().any(|key| self.attributes.contains_key(*key))
    }
}

/// Reads spans: a document with `resourceSpans`, or a list of them.
///
/// # Errors
/// [`AdapterError`] when no span has messages, or a message is malformed.
pub fn from_otel(document: Value) -> Result<Conversation, AdapterError> {
    check_nesting(&document, "")?;
    let mut spans: Vec<Span> = documents(document).iter().flat_map(spans_of).collect();
    spans.sort_by_key(|span| span.began);
    // What an agent was asked and answered is what its models were told and said, where those are there.
    let has_models = spans.iter().any(|span| span.has_messages() && !span.is_agent());
    let mut messages = Messages::default();
    let mut others: BTreeMap<String, usize> = BTreeMap::new();
    let mut read = 0;
    for span in &spans {
        if span.text(OPERATION) == Some("execute_tool") {
            let name = span.text("gen_ai.tool.name").unwrap_or(&span.name);
            let arguments = span.attributes.get("gen_ai.tool.call.arguments").cloned().unwrap_or_else(|| json!({}));
            let result = span.attributes.get("gen_ai.tool.call.result").or(span.error.as_ref());
            let (id, failed) = (span.text("gen_ai.tool.call.id"), span.error.is_some());
            messages.tool(&ToolRun { id, name, arguments: &arguments, result, failed }, &span.id);
            read += usize::from(result.is_some());
        } else if span.has_messages() && !(has_models && span.is_agent()) {
            messages.turn(turn(span)?, &span.id);
            read += 1;
        } else {
            let kind = span.text(OPERATION).unwrap_or("other");
            *others.entry(shown(kind)).or_default() += 1;
        }
    }
    if read == 0 {
        let reason = "no span has `gen_ai.input.messages` or `gen_ai.output.messages`; let the program record the content of \
                      messages (often OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true)";
        return Err(AdapterError::new("", reason));
    }
    let mut conversation = messages.finish()?;
    conversation.remarks.extend(left_out("spans that are not messages", &others));
    Ok(conversation)
}

fn spans_of(document: &Value) -> Vec<Span> {
    let lists = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let scopes = lists(document, SPANS).into_iter().flat_map(|resource| lists(&resource, "scopeSpans"));
    scopes.flat_map(|scope| lists(&scope, "spans")).map(|span| span_of(&span)).collect()
}

fn span_of(span: &Value) -> Span {
    let text = |key: &str| span.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let began = match span.get("startTimeUnixNano") {
        Some(Value::String(nanos)) => nanos.parse().unwrap_or(0),
        Some(nanos) => nanos.as_u64().map_or(0, u128::from),
        None => 0,
    };
    let mut attributes = named_values(span.get("attributes"));
    // Some programs record messages in an event of the span.
    for event in span.get("events").and_then(Value::as_array).into_iter().flatten() {
        let name = event.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.starts_with("gen_ai.client.inference") {
            attributes.extend(named_values(event.get("attributes")));
        }
    }
    let error = error_of(span);
    Span { began, id: text("spanId"), name: text("name"), attributes, error }
}

/// What went wrong in a span, for a model that gets no other result.
fn error_of(span: &Value) -> Option<Value> {
    let status = span.get("status")?;
    let code = status.get("code")?;
    let message = status.get("message").and_then(Value::as_str).unwrap_or_default();
    (code == 2 || code == "STATUS_CODE_ERROR").then(|| format!("Error: {message}").into())
}

/// A list of `{"key", "value"}`.
fn named_values(list: Option<&Value>) -> Map<String, Value> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|one| Some((one.get("key")?.as_str()?.to_owned(), any_value(one.get("value")?)))).collect()
}

/// A value of OTLP as JSON.
fn any_value(value: &Value) -> Value {
    let Some((kind, inner)) = value.as_object().and_then(|members| members.iter().next()) else { return Value::Null };
    match kind.as_str() {
        "arrayValue" => inner.get("values").and_then(Value::as_array).into_iter().flatten().map(any_value).collect(),
        "kvlistValue" => Value::Object(named_values(inner.get("values"))),
        // Whole numbers of 64 bits are texts in OTLP's JSON.
        "intValue" => as_json(inner),
        _ => inner.clone(),
    }
}

/// What a model was sent and what it answered, as messages of a chat.
fn turn(span: &Span) -> Result<Vec<Value>, AdapterError> {
    let mut messages = Vec::new();
    let instructions = span.list(INSTRUCTIONS)?;
    if !instructions.is_empty() {
        read_message(json!({"role": "system", "parts": instructions}), "", span, &mut messages)?;
    }
    for key in [INPUT, OUTPUT] {
        for (number, message) in span.list(key)?.into_iter().enumerate() {
            let place = format!("span `{}`, `{key}`[{number}]", shown(&span.id));
            read_message(message, &place, span, &mut messages)?;
        }
    }
    Ok(messages)
}

fn read_message(message: Value, place: &str, span: &Span, messages: &mut Vec<Value>) -> Result<(), AdapterError> {
    let mut message = super::error::object(message, place)?;
    let role = match super::error::text(&message, "role", place)? {
        "model" => "assistant".to_owned(),
        role => role.to_owned(),
    };
    let parts = match (message.shift_remove("parts"), message.shift_remove("content")) {
        (Some(parts), _) => array(parts, place)?,
        (None, Some(Value::String(text))) => vec![json!({"type": "text", "content": text})],
        (None, found) => return Err(AdapterError::wrong(place, "parts", "an array", found.as_ref())),
    };
    let (mut said, mut calls) = (Vec::new(), Vec::new());
    for (number, part) in parts.into_iter().enumerate() {
        let text = |key: &str| part.get(key).and_then(Value::as_str);
        let id = || text("id").map_or_else(|| format!("{}:{number}", span.id), str::to_owned);
        match text("type") {
            Some("tool_call") => {
                let arguments = part.get("arguments").filter(|arguments| !arguments.is_null());
                let name = super::error::text(part.as_object().unwrap_or(&Map::new()), "name", place)?.to_owned();
                calls.push(call(&id(), &name, arguments.unwrap_or(&json!({}))));
            }
            Some("tool_call_response") => {
                let result = part.get("response").or_else(|| part.get("result")).unwrap_or(&Value::Null);
                messages.push(json!({"role": "tool", "tool_call_id": id(), "content": as_text(result)}));
            }
            Some(kind @ ("text" | "reasoning")) if text("content").is_some() => {
                said.push(json!({"type": kind, "text": text("content")}));
            }
            _ => said.push(part),
        }
    }
    if role == "tool" {
        return Ok(());
    }
    let mut written = json!({"role": role, "content": content(said)});
    if !calls.is_empty() {
        written["tool_calls"] = calls.into();
    }
    messages.push(written);
    Ok(())
}

/// Writes a conversation as the span of one call of a model, whose ids are made from the messages: it has no time, and
/// [`from_otel`] reads the same messages.
///
/// # Errors
/// [`AdapterError`] when an event's metadata was edited so that it no longer fits.
pub fn to_otel(conversation: &Conversation) -> Result<Value, AdapterError> {
    let (input, output) = split(conversation)?;
    let messages = |list: Vec<Value>| -> Vec<Value> { list.iter().map(write_message).collect() };
    let mut attributes = vec![json!({"key": OPERATION, "value": {"stringValue": "chat"}})];
    let mut put = |key: &str, list: Vec<Value>| {
        attributes.push(json!({"key": key, "value": {"stringValue": Value::Array(list).to_string()}}));
    };
    put(INPUT, messages(input));
    if let Some(output) = output {
        let mut message = write_message(&output);
        message["finish_reason"] = "stop".into();
        put(OUTPUT, vec![message]);
    }
    let digest = sha256_hex(Value::from(attributes.clone()).to_string().as_bytes());
    let id = |from: usize, to: usize| digest.get(from..to).unwrap_or_default();
    Ok(json!({SPANS: [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "contextweaver"}, "spans": [{
        "traceId": id(0, 32), "spanId": id(32, 48), "name": "chat", "kind": 3,
        "startTimeUnixNano": "0", "endTimeUnixNano": "0", "attributes": attributes,
    }]}]}]}))
}

fn write_message(message: &Value) -> Value {
    let role = message["role"].clone();
    if role == "tool" {
        let part = json!({"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]});
        return json!({"role": role, "parts": [part]});
    }
    let mut parts = match &message["content"] {
        Value::String(text) => vec![json!({"type": "text", "content": text})],
        Value::Array(parts) => parts.iter().map(write_part).collect(),
        _ => Vec::new(),
    };
    for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let arguments = as_json(&call["function"]["arguments"]);
        parts.push(
            json!({"type": "tool_call", "id": call["id"], "name": call["function"]["name"], "arguments": arguments}),
        );
    }
    json!({"role": role, "parts": parts})
}

fn write_part(part: &Value) -> Value {
    match (part.get("type").and_then(Value::as_str), part.get("text").and_then(Value::as_str)) {
        (Some(kind @ ("text" | "reasoning")), Some(text)) => json!({"type": kind, "content": text}),
        _ => part.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::testing::shown as events;

    fn attribute(key: &str, value: &Value) -> Value {
        json!({"key": key, "value": {"stringValue": as_text(value)}})
    }

    fn span(id: &str, began: u64, attributes: &[(&str, Value)]) -> Value {
        let attributes: Vec<Value> = attributes.iter().map(|(key, value)| attribute(key, value)).collect();
        json!({"traceId": "t", "spanId": id, "name": id, "startTimeUnixNano": began.to_string(), "attributes": attributes})
    }

    fn trace() -> Value {
        let user = json!({"role": "user", "parts": [{"type": "text", "content": "Why?"}]});
        let called = json!({"role": "assistant", "finish_reason": "tool_call", "parts": [
            {"type": "reasoning", "content": "Look."},
            {"type": "tool_call", "id": "c1", "name": "df", "arguments": {"path": "/"}}]});
        let answered =
            json!({"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "full"}]});
        let said =
            json!({"role": "assistant", "finish_reason": "stop", "parts": [{"type": "text", "content": "Full."}]});
        let instructions = json!([{"type": "text", "content": "Be brief."}]);
        let spans = [
            span(
                "b",
                30,
                &[
                    (OPERATION, json!("chat")),
                    (INSTRUCTIONS, instructions.clone()),
                    (INPUT, json!([user, called, answered])),
                    (OUTPUT, json!([said])),
                ],
            ),
            span("agent", 5, &[(OPERATION, json!("invoke_agent")), (INPUT, json!([user])), (OUTPUT, json!([said]))]),
            span(
                "tool",
                20,
                &[
                    (OPERATION, json!("execute_tool")),
                    ("gen_ai.tool.name", json!("df")),
                    ("gen_ai.tool.call.id", json!("c1")),
                    ("gen_ai.tool.call.result", json!("full")),
                ],
            ),
            span(
                "a",
                10,
                &[
                    (OPERATION, json!("chat")),
                    (INSTRUCTIONS, instructions),
                    (INPUT, json!([user])),
                    (OUTPUT, json!([called])),
                ],
            ),
            span("http", 1, &[]),
        ];
        json!({SPANS: [{"scopeSpans": [{"spans": spans}]}]})
    }

    #[test]
    fn what_spans_repeat_is_said_once() {
        let conversation = from_otel(trace()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        policy m1 "Be brief."
        user_turn m2 "Why?"
        agent_msg m3 (thought) "Look."
        tool_call c1 df "{\"path\":\"/\"}"
        tool_result result:c1 < c1 "full"
        agent_msg m5 "Full."
        "#);
        insta::assert_snapshot!(conversation.remarks.join("\n"), @"spans that are not messages were left out: 1 invoke_agent, 1 other");
        // One document a line is the same.
        assert_eq!(from_otel(json!([trace()])).unwrap(), conversation);
        let again = from_otel(to_otel(&conversation).unwrap()).unwrap();
        assert_eq!(events(&again), events(&conversation));
        assert_eq!(to_otel(&again).unwrap(), to_otel(&conversation).unwrap());
    }

    #[test]
    fn structured_attributes_and_tools_alone_are_read() {
        let text = json!({"stringValue": "text"});
        let part = json!({"kvlistValue": {"values": [{"key": "type", "value": text}, {"key": "content", "value": {"stringValue": "Hi"}}]}});
        let message = json!({"kvlistValue": {"values": [{"key": "role", "value": {"stringValue": "user"}}, {"key": "parts", "value": {"arrayValue": {"values": [part]}}}]}});
        let event = json!({"name": "gen_ai.client.inference.operation.details", "attributes": [{"key": INPUT, "value": {"arrayValue": {"values": [message]}}}]});
        let tool = span(
            "t",
            2,
            &[
                (OPERATION, json!("execute_tool")),
                ("gen_ai.tool.name", json!("df")),
                ("gen_ai.tool.call.arguments", json!({"a": 1})),
                ("gen_ai.tool.call.result", json!({"free": 0})),
            ],
        );
        let document = json!({SPANS: [{"scopeSpans": [{"spans": [tool, {"spanId": "s", "startTimeUnixNano": 1, "events": [event]}]}]}]});
        insta::assert_snapshot!(events(&from_otel(document).unwrap()), @r#"
        user_turn m1 "Hi"
        tool_call t df "{\"a\":1}"
        tool_result result:t < t "{\"free\":0}"
        "#);
    }

    #[test]
    fn what_a_tool_says_when_it_fails_is_marked() {
        let tool = |id: &str, result: &[(&str, Value)], code: Value| {
            let known = [(OPERATION, json!("execute_tool")), ("gen_ai.tool.name", json!("logs"))];
            let mut span = span(id, 1, &[&known, result].concat());
            span["status"] = json!({"code": code, "message": "connection refused"});
            span
        };
        let said = [("gen_ai.tool.call.result", json!("no route"))];
        let spans =
            [tool("a", &said, json!(2)), tool("b", &[], json!("STATUS_CODE_ERROR")), tool("c", &said, json!(1))];
        let conversation = from_otel(json!({SPANS: [{"scopeSpans": [{"spans": spans}]}]})).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        tool_call a logs "{}"
        tool_result result:a < a (failed) "no route"
        tool_call b logs "{}"
        tool_result result:b < b (failed) "Error: connection refused"
        tool_call c logs "{}"
        tool_result result:c < c "no route"
        "#);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_span() {
        let error =
            |spans: Value| from_otel(json!({SPANS: [{"scopeSpans": [{"spans": spans}]}]})).unwrap_err().to_string();
        insta::assert_snapshot!(error(json!([])), @"no span has `gen_ai.input.messages` or `gen_ai.output.messages`; let the program record the content of messages (often OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true)");
        insta::assert_snapshot!(error(json!([span("a", 1, &[(INPUT, json!("no"))])])), @"span `a`, `gen_ai.input.messages`: not JSON: expected ident at line 1 column 2");
        insta::assert_snapshot!(error(json!([span("a", 1, &[(INPUT, json!([{"role": "user"}]))])])), @"span `a`, `gen_ai.input.messages`[0]: `parts` is missing; expected an array");
    }
}
