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
use super::spans::{Messages, ToolRun, Turn, as_json, call, content, documents, left_out, returned, split};
use super::wire::IS_ERROR;
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
    /// The span around it.
    parent: Option<String>,
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
            messages.turn(turn(span)?);
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
    let parent = Some(text("parentSpanId")).filter(|id| !id.is_empty());
    Span { began, id: text("spanId"), parent, name: text("name"), attributes, error }
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
fn turn(span: &Span) -> Result<Turn<'_>, AdapterError> {
    let mut sent = Vec::new();
    let instructions = span.list(INSTRUCTIONS)?;
    if !instructions.is_empty() {
        read_message(json!({"role": "system", "parts": instructions}), "", &mut sent)?;
    }
    read_list(span, INPUT, &mut sent)?;
    let mut answered = Vec::new();
    read_list(span, OUTPUT, &mut answered)?;
    Ok(Turn { sent, answered, from: &span.id, within: span.parent.as_deref() })
}

fn read_list(span: &Span, key: &str, messages: &mut Vec<Value>) -> Result<(), AdapterError> {
    for (number, message) in span.list(key)?.into_iter().enumerate() {
        read_message(message, &format!("span `{}`, `{key}`[{number}]", shown(&span.id)), messages)?;
    }
    Ok(())
}

fn read_message(message: Value, place: &str, messages: &mut Vec<Value>) -> Result<(), AdapterError> {
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
    let (mut said, mut calls, before) = (Vec::new(), Vec::new(), messages.len());
    for part in parts {
        let text = |key: &str| part.get(key).and_then(Value::as_str);
        match text("type") {
            Some("tool_call") => {
                let arguments = part.get("arguments").filter(|arguments| !arguments.is_null());
                let name = super::error::text(part.as_object().unwrap_or(&Map::new()), "name", place)?.to_owned();
                calls.push(call(text("id"), &name, arguments.unwrap_or(&json!({}))));
            }
            Some("tool_call_response") => {
                let result = part.get("response").or_else(|| part.get("result")).unwrap_or(&Value::Null);
                let mut message = json!({"role": "tool", "tool_call_id": text("id"), "content": returned(result)});
                if part.get(IS_ERROR) == Some(&Value::Bool(true)) {
                    message[IS_ERROR] = true.into();
                }
                messages.push(message);
            }
            Some(kind @ ("text" | "reasoning")) if text("content").is_some() => {
                said.push(json!({"type": kind, "text": text("content")}));
            }
            _ => said.push(part),
        }
    }
    let has_only_results = messages.len() > before && said.is_empty() && calls.is_empty();
    if role == "tool" || has_only_results {
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
        let mut part =
            json!({"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]});
        if message.get(IS_ERROR) == Some(&Value::Bool(true)) {
            part[IS_ERROR] = true.into();
        }
        return json!({"role": role, "parts": [part]});
    }
    let mut parts = match &message["content"] {
        Value::String(text) => vec![json!({"type": "text", "content": text})],
        Value::Array(parts) => parts.iter().map(write_part).collect(),
        _ => Vec::new(),
    };
    if let Some(refusal) = message.get("refusal").filter(|refusal| refusal.is_string()) {
        parts.push(json!({"type": "refusal", "refusal": refusal}));
    }
    for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let (of, arguments) = match call.get("custom").filter(|custom| custom.is_object()) {
            Some(custom) => (custom, custom["input"].clone()),
            None => (&call["function"], as_json(&call["function"]["arguments"])),
        };
        parts.push(json!({"type": "tool_call", "id": call["id"], "name": of["name"], "arguments": arguments}));
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
    use super::super::spans::as_text;
    use super::*;
    use crate::adapters::testing::shown as events;
    use crate::adapters::{from_langsmith, from_openai_chat, to_langsmith};

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

    fn said(role: &str, text: &str) -> Value {
        json!({"role": role, "parts": [{"type": "text", "content": text}]})
    }

    fn called(id: Option<&str>, name: &str, arguments: &Value) -> Value {
        json!({"role": "assistant", "parts": [{"type": "tool_call", "id": id, "name": name, "arguments": arguments}]})
    }

    fn returned(id: Option<&str>, text: &str) -> Value {
        json!({"role": "tool", "parts": [{"type": "tool_call_response", "id": id, "response": text}]})
    }

    /// Spans of a model, each of what it was sent and what it answered.
    fn chats(turns: &[(Value, Value)]) -> Vec<Value> {
        let chat = |(number, (sent, answered)): (usize, &(Value, Value))| {
            let attributes = [(OPERATION, json!("chat")), (INPUT, sent.clone()), (OUTPUT, answered.clone())];
            span(&format!("s{number}"), 10 * (number as u64 + 1), &attributes)
        };
        turns.iter().enumerate().map(chat).collect()
    }

    fn tool(began: u64, name: &str, arguments: Value, result: &str) -> Value {
        span(
            &format!("t{began}"),
            began,
            &[
                (OPERATION, json!("execute_tool")),
                ("gen_ai.tool.name", json!(name)),
                ("gen_ai.tool.call.arguments", arguments),
                ("gen_ai.tool.call.result", json!(result)),
            ],
        )
    }

    fn read(spans: &[Value]) -> String {
        events(&from_otel(json!({SPANS: [{"scopeSpans": [{"spans": spans}]}]})).unwrap())
    }

    #[test]
    fn calls_without_ids_are_told_apart_by_their_place() {
        let (ask, paris, rome) = (said("user", "Weather?"), json!({"city": "Paris"}), json!({"city": "Rome"}));
        let calls = |ids: [Option<&str>; 2]| {
            let (paris, rome) = (called(ids[0], "weather", &paris), called(ids[1], "weather", &rome));
            let (rainy, sunny) = (returned(ids[0], "rainy"), returned(ids[1], "sunny"));
            chats(&[
                (json!([ask]), json!([paris])),
                (json!([ask, paris, rainy]), json!([rome])),
                (json!([ask, paris, rainy, rome, sunny]), json!([said("assistant", "Go to Rome.")])),
            ])
        };
        let without = read(&calls([None, None]));
        insta::assert_snapshot!(without, @r#"
        user_turn m1 "Weather?"
        tool_call s0:0 weather "{\"city\":\"Paris\"}"
        tool_result result:s0:0 < s0:0 "rainy"
        tool_call s1:1 weather "{\"city\":\"Rome\"}"
        tool_result result:s1:1 < s1:1 "sunny"
        agent_msg m6 "Go to Rome."
        "#);
        // With ids it is the same, and with the spans of the tools in any order too.
        assert_eq!(
            read(&calls([Some("a"), Some("b")]))
                .replace(" a ", " s0:0 ")
                .replace(":a ", ":s0:0 ")
                .replace(" b ", " s1:1 ")
                .replace(":b ", ":s1:1 "),
            without
        );
        let mut spans = calls([None, None]);
        spans.extend([tool(12, "weather", paris.clone(), "rainy"), tool(22, "weather", rome.clone(), "sunny")]);
        assert_eq!(read(&spans), without);
        // The same call once more is another one, and so are two of them in one message.
        let twice = json!({"role": "assistant", "parts": [called(None, "weather", &paris)["parts"][0], called(None, "weather", &paris)["parts"][0]]});
        let spans = chats(&[
            (json!([ask]), json!([twice])),
            (json!([ask, twice, returned(None, "1"), returned(None, "2")]), json!([called(None, "weather", &paris)])),
            (
                json!([
                    ask,
                    twice,
                    returned(None, "1"),
                    returned(None, "2"),
                    called(None, "weather", &paris),
                    returned(None, "3")
                ]),
                json!([said("assistant", "Done.")]),
            ),
        ]);
        insta::assert_snapshot!(read(&spans), @r#"
        user_turn m1 "Weather?"
        tool_call s0:0 weather "{\"city\":\"Paris\"}"
        tool_call s0:1 weather "{\"city\":\"Paris\"}"
        tool_result result:s0:0 < s0:0 "1"
        tool_result result:s0:1 < s0:1 "2"
        tool_call s1:2 weather "{\"city\":\"Paris\"}"
        tool_result result:s1:2 < s1:2 "3"
        agent_msg m7 "Done."
        "#);
    }

    #[test]
    fn words_are_repeated_only_where_a_history_is() {
        let (yes, rule, other) = (said("user", "yes"), said("system", "Be brief."), said("system", "Judge."));
        let told = |text: &str| said("assistant", text);
        for (about, turns, expected) in [
            ("no history", vec![(json!([yes]), "1"), (json!([yes]), "2"), (json!([yes]), "3")], "yes 1 yes 2 yes 3"),
            ("no history, rules", vec![(json!([rule, yes]), "1"), (json!([rule, yes]), "1")], "Be brief. yes 1 yes 1"),
            (
                "history",
                vec![
                    (json!([yes]), "1"),
                    (json!([yes, told("1"), yes]), "2"),
                    (json!([yes, told("1"), yes, told("2"), yes]), "2"),
                ],
                "yes 1 yes 2 yes 2",
            ),
            (
                "a history of which the beginning was left out",
                vec![
                    (json!([yes]), "1"),
                    (json!([yes, told("1"), yes]), "2"),
                    (json!([yes, told("2"), yes]), "3"),
                    (json!([told("3"), yes]), "4"),
                ],
                "yes 1 yes 2 yes 3 yes 4",
            ),
            (
                "a history of which the beginning was summarised",
                vec![
                    (json!([yes]), "1"),
                    (json!([yes, told("1"), yes]), "2"),
                    (json!([said("user", "So far: 1"), told("2"), yes]), "3"),
                ],
                "yes 1 yes 2 So far: 1 yes 3",
            ),
            (
                "asked again",
                vec![(json!([yes]), "1"), (json!([yes, told("1"), yes]), "2"), (json!([yes, told("1"), yes]), "3")],
                "yes 1 yes 2 yes 3",
            ),
            ("two models", vec![(json!([rule, yes]), "ok"), (json!([other, yes]), "1")], "Be brief. yes ok Judge. 1"),
            (
                "more was said before an answer",
                vec![(json!([yes]), ""), (json!([yes]), ""), (json!([yes, said("user", "no")]), "1")],
                "yes no 1",
            ),
            (
                "two conversations with one answer",
                vec![
                    (json!([yes]), "ok"),
                    (json!([said("user", "no")]), "ok"),
                    (json!([yes, told("ok"), said("user", "more")]), "1"),
                ],
                "yes ok no ok more 1",
            ),
            (
                "an answer that is repeated in another form",
                vec![
                    (json!([yes]), "1"),
                    (json!([yes, told("one"), yes]), "2"),
                    (json!([yes, told("one"), yes, told("two"), yes]), "3"),
                ],
                "yes 1 one yes 2 two yes 3",
            ),
        ] {
            let turns: Vec<(Value, Value)> = turns
                .into_iter()
                .map(|(sent, text)| (sent, if text.is_empty() { json!([]) } else { json!([told(text)]) }))
                .collect();
            let lines = read(&chats(&turns));
            let words: Vec<&str> = lines.lines().filter_map(|line| line.split('"').nth(1)).collect();
            assert_eq!(words.join(" "), expected, "{about}");
        }
        // A span within another one that says the same is the same call.
        let mut spans = chats(&[(json!([yes]), json!([told("1")])), (json!([yes]), json!([told("1")]))]);
        spans[1]["parentSpanId"] = "s0".into();
        assert_eq!(read(&spans).lines().count(), 2);
    }

    proptest::proptest! {
        #[test]
        fn a_history_that_grows_is_read_as_if_it_stood_there_once(
            rounds in proptest::collection::vec(("[yn]", proptest::collection::vec(("[fg]", 0..2, "[ab]"), 0..3), "[12]"), 1..6),
            has_ids in proptest::bool::ANY,
            is_cut in proptest::bool::ANY,
        ) {
            let (mut history, mut spans): (Vec<Value>, Vec<(Value, Value)>) = (Vec::new(), Vec::new());
            let mut say = |history: &mut Vec<Value>, message: Value| {
                // Where the history is cut, the answer before still stands in it.
                let from = if is_cut { history.len().saturating_sub(4) } else { 0 };
                spans.push((history[from..].into(), json!([message])));
                history.push(message);
            };
            for (number, (words, calls, answer)) in rounds.iter().enumerate() {
                history.push(said("user", words));
                for (place, (name, argument, result)) in calls.iter().enumerate() {
                    let id = format!("c{number}.{place}");
                    let id = has_ids.then_some(id.as_str());
                    say(&mut history, called(id, name, &json!({"x": argument})));
                    history.push(returned(id, result));
                }
                say(&mut history, said("assistant", &format!("{answer}{}", if is_cut { number.to_string() } else { String::new() })));
            }
            let shape = |lines: String| -> Vec<String> {
                lines.lines().map(|line| format!("{} {}", line.split(' ').next().unwrap_or_default(), line.split_once('"').unwrap_or_default().1)).collect()
            };
            let at_once = chats(&[(history.into(), json!([]))]);
            proptest::prop_assert_eq!(shape(read(&chats(&spans))), shape(read(&at_once)));
        }
    }

    #[test]
    fn results_go_to_the_calls_with_their_arguments() {
        let both = json!({"role": "assistant", "parts": [
            called(Some("c1"), "f", &json!({"x": 1}))["parts"][0], called(Some("c2"), "f", &json!({"x": 2, "y": [true]}))["parts"][0],
            called(Some("c3"), "f", &json!({"x": 3}))["parts"][0]]});
        let mut spans = chats(&[(json!([said("user", "Go")]), json!([both]))]);
        // The second says its arguments as Python does, the third says none of a call.
        spans.extend([
            tool(12, "f", json!("{'y': [True], 'x': 2}"), "two"),
            tool(13, "f", json!({"x": 1}), "one"),
            tool(14, "f", json!({"z": 9}), "rest"),
        ]);
        insta::assert_snapshot!(read(&spans), @r#"
        user_turn m1 "Go"
        tool_call c1 f "{\"x\":1}"
        tool_call c2 f "{\"x\":2,\"y\":[true]}"
        tool_call c3 f "{\"x\":3}"
        tool_result result:c2 < c2 "two"
        tool_result result:c1 < c1 "one"
        tool_result result:c3 < c3 "rest"
        "#);
        // A call that only a tool's span knows is the one that a model is told of later, under whatever id.
        for id in [None, Some("c9")] {
            let call = called(id, "f", &json!({"x": 1}));
            let mut spans = chats(&[
                (json!([said("user", "Go")]), json!([])),
                (json!([said("user", "Go"), call, returned(id, "one")]), json!([call])),
            ]);
            spans.push(tool(12, "f", json!({"x": 1}), "one"));
            let lines = read(&spans);
            assert_eq!(
                lines.matches("tool_call").count() + lines.matches("tool_result").count(),
                if id.is_none() { 3 } else { 2 },
                "{lines}"
            );
        }
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
    fn what_chats_say_in_their_own_ways_is_written_and_read_again() {
        let messages = json!([
            {"role": "user", "content": "Look"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "custom", "custom": {"name": "run", "input": "ls"}},
                {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "no such folder", "is_error": true},
            {"role": "tool", "tool_call_id": "c2", "content": [
                {"type": "text", "text": "A cat"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}}]},
            {"role": "assistant", "content": null, "refusal": "No."},
            {"role": "user", "content": "Why?"},
            {"role": "assistant", "content": null, "refusal": "Because."}]);
        let conversation = from_openai_chat(messages).unwrap();
        let again = from_otel(to_otel(&conversation).unwrap()).unwrap();
        insta::assert_snapshot!(events(&again), @r#"
        user_turn m1 "Look"
        tool_call c1 run "ls"
        tool_call c2 look "{\"at\":1}"
        tool_result result:c1 < c1 (failed) "no such folder"
        tool_result result:c2 < c2 "A cat" +2 parts
        agent_msg m5 "No."
        user_turn m6 "Why?"
        agent_msg m7 "Because."
        "#);
        // Runs of LangSmith say the same.
        assert_eq!(events(&from_langsmith(to_langsmith(&conversation).unwrap()).unwrap()), events(&again));
        // So do sessions, in which nothing is left of the messages, but for arguments that are no JSON.
        let mut bare = conversation;
        bare.events.iter_mut().for_each(|event| drop(event.item.metadata.shift_remove("wire")));
        for read in [from_otel(to_otel(&bare).unwrap()), from_langsmith(to_langsmith(&bare).unwrap())] {
            assert_eq!(events(&read.unwrap()).replace(r#"{\"text\":\"ls\"}"#, "ls"), events(&again));
        }
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
