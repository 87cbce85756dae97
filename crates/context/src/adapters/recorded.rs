//! Recorded sessions: a goal, and the calls of MCP tools that were made for it with their results, both ways.
//!
//! The document is `{"session", "goal", "recorded", "servers", "calls": [{"seq", "server", "tool", "arguments",
//! "result", …}]}`, one document per session. The goal is the user's turn and the parent of every call. A call has the
//! id `call:<seq>`, its result `result:call:<seq>` and the whole output for the firewall.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::error::{AdapterError, parse, text};
use super::mcp::{members, read, to_mcp_result};
use super::wire::{Content, Dialect, Reader, Taken};
use super::writer::{Rules, Writer};
use super::{Conversation, Event};
use crate::event::ItemKind;

/// Reads a recorded session.
///
/// # Errors
/// [`AdapterError`] when the text is not JSON, a call has no `seq`, `tool` or `result`, or a result is not one of MCP.
pub fn from_recorded(json: &str) -> Result<Conversation, AdapterError> {
    let mut document = Map::new();
    let mut calls = Vec::new();
    for (key, raw) in members(json, "")?.0 {
        if key == "calls" {
            calls = Vec::<&RawValue>::deserialize(&mut serde_json::Deserializer::from_str(raw.get()))
                .map_err(|_| AdapterError::new("", "`calls` must be an array"))?;
            document.insert(key.into_owned(), Value::Array(Vec::new()));
        } else {
            let value = parse(raw.get(), &key)?;
            document.insert(key.into_owned(), value);
        }
    }
    let mut reader = Reader::new(Dialect::Recorded);
    let goal = text(&document, "goal", "")?.to_owned();
    document.insert("goal".to_owned(), Value::Null);
    reader.whole(ItemKind::UserTurn, Taken::text(Value::String(goal), "", |_| String::new()), Some("goal"));
    for (number, call) in calls.iter().enumerate() {
        read_call(call.get(), &format!("calls[{number}]"), &mut reader)?;
    }
    let mut conversation = reader.finish(Some(document));
    let goal = conversation.events.first().map(|goal| goal.item.id.clone());
    for Event { item, .. } in &mut conversation.events {
        if item.kind == ItemKind::ToolCall {
            item.parent_id.clone_from(&goal);
        }
    }
    Ok(conversation)
}

fn read_call(json: &str, place: &str, reader: &mut Reader) -> Result<(), AdapterError> {
    let mut call = Map::new();
    let mut output = None;
    for (key, raw) in members(json, place)?.0 {
        let place = format!("{place}.{key}");
        let value = if key == "result" {
            output = Some(read(raw.get(), &place)?);
            Value::Null
        } else {
            parse(raw.get(), &place)?
        };
        call.insert(key.into_owned(), value);
    }
    let Some(output) = output else {
        return Err(AdapterError::wrong(place, "result", "the result of an MCP tool", None));
    };
    let Some(seq) = call.get("seq").and_then(Value::as_u64) else {
        return Err(AdapterError::wrong(place, "seq", "a number", call.get("seq")));
    };
    let name = text(&call, "tool", place)?.to_owned();
    let name = match call.get("server").and_then(Value::as_str) {
        Some(server) => format!("{server}.{name}"),
        None => name,
    };
    let taken = Taken::json(Value::Object(call), "/arguments", |_| "{}".to_owned());
    reader.call(Some(&format!("call:{seq}")), &name, None, taken);
    reader.result_within(Content::of_output(output, "/result"));
    Ok(())
}

/// Writes the document of a recorded session: the inverse of [`from_recorded`].
///
/// # Errors
/// [`AdapterError`] when an event is not from a recorded session, its metadata was edited so that it no longer fits, or
/// a structured content is not JSON.
pub fn to_recorded(conversation: &Conversation) -> Result<Value, AdapterError> {
    let writer = Writer {
        dialect: Dialect::Recorded,
        list: &["calls"],
        fresh: None,
        output: to_mcp_result,
        picture: |_| Value::Null,
        pictures_in_results: true,
        grows: &[],
        rules: Rules::Messages,
        calls: None,
    };
    writer.write(conversation)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = r#"{"session": "s", "goal": "Find the bug", "recorded": "2026-11-21", "servers": {"git": {}},
        "calls": [
          {"seq": 1, "server": "git", "tool": "log", "arguments": {"n": 2}, "elapsed_ms": 1.5, "is_error": false,
           "result": {"content": [{"type": "text", "text": "a\nb"}], "isError": false}},
          {"seq": 2, "tool": "show", "arguments": {}, "result": {"content": [], "structuredContent": {"a": 1.50}}}]}"#;

    #[test]
    fn a_session_becomes_a_goal_calls_and_results() {
        let conversation = from_recorded(SESSION).unwrap();
        let shown = conversation.events.iter().map(|Event { item, output, .. }| {
            let parent = item.parent_id.as_ref().map_or("-", |id| id.as_str());
            let name = item.metadata.get("function_name").and_then(Value::as_str).unwrap_or("-");
            let structured = output.as_ref().and_then(|output| output.structured.as_deref()).unwrap_or("-");
            format!("{} {} < {parent} | {name} | {:?} | {structured}", item.kind, item.id, item.text)
        });
        insta::assert_snapshot!(shown.collect::<Vec<_>>().join("\n"), @r#"
        user_turn m1 < - | - | "Find the bug" | -
        tool_call call:1 < m1 | git.log | "{\"n\":2}" | -
        tool_result result:call:1 < call:1 | - | "a\nb" | -
        tool_call call:2 < m1 | show | "{}" | -
        tool_result result:call:2 < call:2 | - | "" | {"a": 1.50}
        "#);
        assert_eq!(to_recorded(&conversation).unwrap(), serde_json::from_str::<Value>(SESSION).unwrap());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let error = |json: &str| from_recorded(json).unwrap_err().to_string();
        let call = |call: &str| error(&format!(r#"{{"goal": "g", "calls": [{call}]}}"#));
        insta::assert_snapshot!(error("[1]"), @"not a JSON object: invalid type: sequence, expected an object at line 1 column 0");
        insta::assert_snapshot!(error(r#"{"calls": []}"#), @"`goal` is missing; expected a string");
        insta::assert_snapshot!(error(r#"{"goal": "g", "calls": 1}"#), @"`calls` must be an array");
        insta::assert_snapshot!(call(r#"{"tool": "t", "result": {"content": []}}"#), @"calls[0]: `seq` is missing; expected a number");
        insta::assert_snapshot!(call(r#"{"seq": 1, "tool": "t"}"#), @"calls[0]: `result` is missing; expected the result of an MCP tool");
        insta::assert_snapshot!(call(r#"{"seq": 1, "tool": "t", "result": {"content": [7, {}], "isError": 1}}"#), @"calls[0].result: `isError` must be true or false");
    }
}
