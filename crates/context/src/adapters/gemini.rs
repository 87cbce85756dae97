//! Gemini: a list of contents, or the body of a request around one (`systemInstruction`, `contents`), both ways.
//!
//! A result names the function and only sometimes the call: without an id it belongs to the first call of that name
//! that has no result yet. Code that the API ran itself is a call, too. Members are read in both spellings that the API
//! accepts (`functionCall`, `function_call`); those that are null are not there.

use serde_json::{Map, Value, json};

use super::Conversation;
use super::error::{AdapterError, Alike, array, check_nesting, object, shown, text};
use super::openai::unwrap;
use super::parts::{Picture, placeholder};
use super::wire::{Dialect, Reader, Taken, Which};
use super::writer::{CallForm, Rules, Writer, arguments, call_of, called_name, failed, function_name};
use crate::event::{ContextItem, ItemKind};
use contextweaver_core::catalog::ToolFormat;

/// Reads contents, or a request with `contents`.
///
/// # Errors
/// [`AdapterError`] when a content or part is malformed, and when no part has a member that the API has.
pub fn from_gemini(mut document: Value) -> Result<Conversation, AdapterError> {
    check_nesting(&document, "")?;
    let mut reader = Reader::new(Dialect::Gemini);
    let mut alike = Alike::default();
    for key in ["systemInstruction", "system_instruction"] {
        if let Some(system @ Value::Object(_)) = document.get_mut(key) {
            read_content(object(system.take(), key)?, Some(key), key, &mut reader, &mut alike)?;
        }
    }
    let (document, contents) = unwrap(document, &["contents"])?;
    for (number, content) in contents.into_iter().enumerate() {
        let place = format!("contents[{number}]");
        read_content(object(content, &place)?, None, &place, &mut reader, &mut alike)?;
    }
    alike.check()?;
    Ok(reader.finish(document))
}

fn read_content(
    mut content: Map<String, Value>,
    member: Option<&str>,
    place: &str,
    reader: &mut Reader,
    alike: &mut Alike,
) -> Result<(), AdapterError> {
    let role = content.get("role").filter(|role| !role.is_null());
    let kind = match role.map(|role| role.as_str().unwrap_or_default()) {
        _ if member.is_some() => ItemKind::Policy,
        None | Some("user" | "function") => ItemKind::UserTurn,
        Some("model") => ItemKind::AgentMsg,
        Some(other) => {
            return Err(AdapterError::new(place, format!("unknown role `{}`; use user or model", shown(other))));
        }
    };
    let parts = match content.get_mut("parts") {
        Some(list @ Value::Array(_)) => array(std::mem::replace(list, Value::Array(Vec::new())), place)?,
        // An answer that was cut off or blocked has no parts.
        None | Some(Value::Null) => Vec::new(),
        Some(other) => return Err(AdapterError::wrong(place, "parts", "an array", Some(other))),
    };
    reader.open(Value::Object(content), member);
    for (number, part) in parts.into_iter().enumerate() {
        let place = format!("{place}.parts[{number}]");
        let part = object(part, &place)?;
        match part.keys().any(|key| MEMBERS.contains(&key.replace('_', "").to_ascii_lowercase().as_str())) {
            true => alike.known(),
            false => alike.unknown(&place, || match part.keys().next() {
                Some(key) => format!("no part has a member `{}`", shown(key)),
                None => "the part is empty".to_owned(),
            }),
        }
        read_part(part, kind, &place, reader)?;
    }
    reader.close(kind, "");
    Ok(())
}

const LIST: &str = "/parts";

/// The members by which a part is known, without what differs between the spellings.
const MEMBERS: [&str; 11] = [
    "text",
    "thought",
    "thoughtsignature",
    "inlinedata",
    "filedata",
    "functioncall",
    "functionresponse",
    "executablecode",
    "codeexecutionresult",
    "toolcall",
    "toolresponse",
];

fn read_part(part: Map<String, Value>, kind: ItemKind, place: &str, reader: &mut Reader) -> Result<(), AdapterError> {
    // The library writes the members that a part does not have as null.
    let has = |name: &str| part.get(name).is_some_and(|value| !value.is_null());
    let member = |names: [&'static str; 2]| names.into_iter().find(|name| has(name));
    let of = |key: &str| -> Result<(Option<String>, String), AdapterError> {
        let place = format!("{place}.{key}");
        let members = object(part.get(key).cloned().unwrap_or_default(), &place)?;
        let id = members.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned);
        Ok((id, text(&members, "name", &place)?.to_owned()))
    };
    if let Some(key) = member(["functionCall", "function_call"]) {
        let (id, name) = of(key)?;
        let taken = Taken::json(Value::Object(part), &format!("/{key}/args"), |_| "{}".to_owned());
        reader.call(id.as_deref(), &name, Some(LIST), taken);
        return Ok(());
    }
    if let Some(key) = member(["functionResponse", "function_response"]) {
        let (id, name) = of(key)?;
        let response = part.get(key).and_then(|members| members.get("response"));
        let failed = response.is_some_and(|response| response["output"].is_null() && !response["error"].is_null());
        let taken = Taken::json(Value::Object(part), &format!("/{key}/response"), |_| String::new());
        match id {
            Some(id) => reader.result(&id, Some(LIST), taken),
            None => reader.result_by_name(&name, Which::First, Some(LIST), taken),
        }
        reader.is_error(failed);
        return Ok(());
    }
    if let Some(key) = member(["executableCode", "executable_code"]) {
        reader.call(None, CODE, Some(LIST), Taken::text(Value::Object(part), &format!("/{key}/code"), placeholder));
        return Ok(());
    }
    if let Some(key) = member(["codeExecutionResult", "code_execution_result"]) {
        let outcome = part.get(key).and_then(|members| members.get("outcome")?.as_str()).unwrap_or_default().to_owned();
        let taken = Taken::text(Value::Object(part), &format!("/{key}/output"), |_| outcome.clone());
        reader.result_by_name(CODE, Which::First, Some(LIST), taken);
        reader.is_error(outcome.ends_with("FAILED") || outcome.ends_with("EXCEEDED"));
        return Ok(());
    }
    let is_thought = part.get("thought") == Some(&Value::Bool(true));
    reader.part(kind, LIST, Taken::text(Value::Object(part), "/text", placeholder));
    if is_thought {
        reader.is_thought();
    }
    Ok(())
}

/// What code that the API runs is a call of.
const CODE: &str = "code_execution";

/// Writes the contents of a conversation: the inverse of [`from_gemini`]. From other formats, what the agent says and
/// calls in a turn becomes one content, and so do the results of its calls; policies go into `systemInstruction`, and
/// other kinds that the API does not have become user contents.
///
/// # Errors
/// [`AdapterError`] when an event's metadata was edited so that it no longer fits.
pub fn to_gemini(conversation: &Conversation) -> Result<Value, AdapterError> {
    WRITER.write(conversation)
}

pub(super) const WRITER: Writer = Writer {
    dialect: Dialect::Gemini,
    list: &["contents"],
    fresh: Some(fresh),
    output: |output| Ok(Value::String(super::blocks::words_of(output))),
    picture,
    pictures_in_results: false,
    grows: &["/parts"],
    rules: Rules::Member { name: "systemInstruction", list: "/parts" },
    calls: Some(CallForm { tools: ToolFormat::Gemini, longest_id: 64 }),
};

fn picture(picture: &Picture) -> Value {
    match picture {
        Picture::Data { media_type, base64 } => json!({"inlineData": {"mimeType": media_type, "data": base64}}),
        Picture::At(url) => json!({"fileData": {"fileUri": url}}),
    }
}

fn fresh(item: &ContextItem, content: &Value) -> Value {
    let parts = match content {
        Value::Array(parts) => parts.clone(),
        text => vec![json!({"text": text})],
    };
    match item.kind {
        ItemKind::Policy => json!({"parts": parts}),
        ItemKind::AgentMsg => json!({"role": "model", "parts": parts}),
        ItemKind::ToolCall => json!({"role": "model", "parts": [
            {"functionCall": {"id": item.id, "name": function_name(item), "args": arguments(item)}}]}),
        ItemKind::ToolResult => {
            let key = if failed(item) { "error" } else { "output" };
            json!({"role": "user", "parts": [
                {"functionResponse": {"id": call_of(item), "name": called_name(item), "response": {key: content}}}]})
        }
        ItemKind::UserTurn
        | ItemKind::PlanState
        | ItemKind::MemoryFact
        | ItemKind::DocSnippet
        | ItemKind::RetrievedDoc => json!({"role": "user", "parts": parts}),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::adapters::testing::{extra, near, round_trips, shown as events, with, wrapped};

    #[test]
    fn parts_become_events_and_parts_again() {
        let request = json!({
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Weather?"}, {"inlineData": {"mimeType": "image/png", "data": "AAEC"}}]},
                {"role": "model", "parts": [
                    {"text": "Hm.", "thought": true},
                    {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}, "thoughtSignature": "x"},
                    {"functionCall": {"name": "weather", "args": {"city": "Rome"}}},
                    {"functionCall": {"id": "f3", "name": "time"}}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "weather", "response": {"c": -3}}},
                    {"functionResponse": {"name": "time", "response": {"t": 12}}},
                    {"function_response": {"name": "weather", "response": {"c": 21}}}]},
                {"role": "model"}],
            "generationConfig": {"temperature": 0}});
        let conversation = from_gemini(request.clone()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        policy m1 "Be brief."
        user_turn m2 "Weather?"
        user_turn m2.2 "[inlineData]"
        agent_msg m3 (thought) "Hm."
        tool_call call:5 weather "{\"city\":\"Oslo\"}"
        tool_call call:6 weather "{\"city\":\"Rome\"}"
        tool_call f3 time "{}"
        tool_result result:call:5 < call:5 "{\"c\":-3}"
        tool_result result:f3 < f3 "{\"t\":12}"
        tool_result result:call:6 < call:6 "{\"c\":21}"
        agent_msg m5 ""
        "#);
        assert_eq!(to_gemini(&conversation).unwrap(), request);
    }

    #[test]
    fn code_that_the_provider_ran_is_a_call() {
        let contents = json!([
            {"role": "model", "parts": [
                {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                {"executable_code": {"code": "1/0"}},
                {"code_execution_result": {"outcome": "OUTCOME_FAILED"}},
                {"text": "done"}]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "f", "response": {"c": 1}}},
                {"functionResponse": {"id": "gone", "name": "f", "response": {"error": "no such city"}}}]}]);
        let conversation = from_gemini(contents.clone()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        tool_call call:1 code_execution "print(1)"
        tool_result result:call:1 < call:1 "1"
        tool_call call:3 code_execution "1/0"
        tool_result result:call:3 < call:3 (failed) "OUTCOME_FAILED"
        agent_msg m1.5 "done"
        tool_result result:f f "{\"c\":1}"
        tool_result result:gone (failed) "{\"error\":\"no such city\"}"
        "#);
        insta::assert_snapshot!(conversation.remarks.join("\n"), @"results of calls that are not in the conversation were kept without them: `f`, `gone`");
        assert_eq!(to_gemini(&conversation).unwrap(), contents);
    }

    #[test]
    fn members_that_are_null_are_not_there() {
        let part = |key: &str, value: Value| {
            let mut part = json!({"video_metadata": null, "thought": null, "inline_data": null, "file_data": null,
                "thought_signature": null, "function_call": null, "code_execution_result": null,
                "executable_code": null, "function_response": null, "text": null});
            part[key] = value;
            part
        };
        let contents = json!([
            {"role": "user", "parts": [part("text", json!("hi"))]},
            {"role": "model", "parts": [part("function_call", json!({"id": null, "name": "f", "args": {"a": 1}}))]},
            {"role": "user", "parts": [part("function_response", json!({"id": null, "name": "f", "response": {"b": 2}}))]},
            {"role": "model", "parts": [part("executable_code", json!({"code": "1"})), part("code_execution_result", json!({"outcome": "OUTCOME_OK", "output": "2"}))]},
            {"role": null, "parts": [part("inline_data", json!({"mime_type": "image/png", "data": "AAEC"}))]},
            {"role": "model", "parts": null}]);
        let conversation = from_gemini(contents.clone()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        user_turn m1 "hi"
        tool_call call:2 f "{\"a\":1}"
        tool_result result:call:2 < call:2 "{\"b\":2}"
        tool_call call:4 code_execution "1"
        tool_result result:call:4 < call:4 "2"
        user_turn m5 "[inline_data]"
        agent_msg m6 ""
        "#);
        assert_eq!(to_gemini(&conversation).unwrap(), contents);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let error = |contents: Value| from_gemini(contents).unwrap_err().to_string();
        insta::assert_snapshot!(error(json!([{"role": "assistant", "parts": []}])), @"contents[0]: unknown role `assistant`; use user or model");
        insta::assert_snapshot!(error(json!([{"parts": [{"functionCall": 7}]}])), @"contents[0].parts[0].functionCall: expected an object, not a number");
    }

    #[test]
    fn what_only_looks_alike_is_refused() {
        let said = json!({"part_kind": "said", "content": "Hi"});
        let error = |parts: Value| from_gemini(json!([{"parts": []}, {"parts": parts}])).unwrap_err().to_string();
        insta::assert_snapshot!(error(json!([said, {}])), @"contents[1].parts[0]: no part has a member `part_kind`, and nothing else here is known either; this is a different format");
        insta::assert_snapshot!(error(json!([{}])), @"contents[1].parts[0]: the part is empty, and nothing else here is known either; this is a different format");
        for known in [json!({"text": "Hi"}), json!({"inline_data": {}}), json!({"codeExecutionResult": {}})] {
            let document = json!([{"parts": [said]}, {"parts": [known]}]);
            assert_eq!(to_gemini(&from_gemini(document.clone()).unwrap()).unwrap(), document);
        }
    }

    fn contents() -> impl Strategy<Value = Value> {
        let part = ("(?s).{0,6}", extra(), any::<bool>()).prop_map(|(text, extra, is_text)| match is_text {
            true => with(json!({"text": text}), extra),
            false => with(json!({"inlineData": {"mimeType": "image/png", "data": text}}), extra),
        });
        let said = (prop::sample::select(&["user", "model"][..]), prop::collection::vec(part, 0..3), extra())
            .prop_map(|(role, parts, extra)| vec![with(json!({"role": role, "parts": parts}), extra)]);
        let called = (prop::collection::vec(("[fg]", extra(), extra()), 1..4)).prop_map(|calls| {
            let made: Vec<Value> =
                calls.iter().map(|(name, args, _)| json!({"functionCall": {"name": name, "args": args}})).collect();
            let answered = calls
                .iter()
                .map(|(name, _, response)| json!({"functionResponse": {"name": name, "response": response}}));
            let answered: Vec<Value> = answered.collect();
            vec![json!({"role": "model", "parts": made}), json!({"role": "user", "parts": answered})]
        });
        prop::collection::vec(prop_oneof![said, called], 0..6).prop_map(|turns| turns.concat().into())
    }

    #[test]
    fn nothing_is_lost() {
        round_trips(100, wrapped("contents", contents()), from_gemini, to_gemini);
    }

    #[test]
    fn what_reads_writes_the_same() {
        round_trips(10, near(wrapped("contents", contents())), from_gemini, to_gemini);
    }
}
