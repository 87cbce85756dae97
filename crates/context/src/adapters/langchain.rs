//! LangChain: a list of messages as `messages_to_dict` writes them (`type` and `data`), as its serialiser does (`id` and
//! `kwargs`) or with their members alone; also in an object with `messages`. Both ways.
//!
//! A message becomes the reasoning beside it, its texts and its calls. What a provider's block says of a call that
//! `tool_calls` lists is said once. A call whose arguments are not JSON is a call too. The older form of calls (messages
//! of the type `function`) is refused: it does not say which result answers which call.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Conversation;
use super::blocks::{output_of, to_block, to_blocks};
use super::error::{AdapterError, array, check_nesting, shown, text};
use super::openai::{NAMES, unwrap};
use super::parts::placeholder;
use super::spans::left_out;
use super::wire::{Content, Dialect, Piece, Reader};
use super::writer::{Rules, Writer, arguments, call_of, called_name, failed, function_name};
use crate::event::{ContextItem, ItemKind, Part, PartBody, ToolOutput};

/// Whether a list, or an object with one, holds messages of LangChain.
pub(super) fn is_document(document: &Value) -> bool {
    let messages = document.get("messages").unwrap_or(document);
    messages.as_array().and_then(|messages| messages.first()).and_then(frame).is_some_and(|(base, kind)| {
        // Members alone are no sign: other formats have a `type` and a `content` too.
        !base.is_empty() || speaker(kind).is_some()
    })
}

/// Where a message has its members (a JSON Pointer), and what it calls itself.
fn frame(message: &Value) -> Option<(&'static str, &str)> {
    let kind = message.get("type").and_then(Value::as_str);
    let holds = |key: &str| message.get(key).is_some_and(|members| members.get("content").is_some());
    if holds("data") {
        return Some(("/data", kind?));
    }
    if holds("kwargs") {
        return Some(("/kwargs", message.get("id")?.as_array()?.last()?.as_str()?));
    }
    message.get("content").and(kind).map(|kind| ("", kind))
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy)]
enum Speaker {
    /// One that LangChain has a type for.
    Known(ItemKind),
    /// One whom the message names.
    Named,
    /// A tool.
    Tool,
}

/// Who speaks in messages of a type or class, e.g. `ai`, `AIMessage` or `AIMessageChunk`.
fn speaker(kind: &str) -> Option<Speaker> {
    let kind = kind.trim_end_matches("Chunk").trim_end_matches("Message");
    Some(match kind.to_ascii_lowercase().as_str() {
        "human" => Speaker::Known(ItemKind::UserTurn),
        "ai" => Speaker::Known(ItemKind::AgentMsg),
        "system" => Speaker::Known(ItemKind::Policy),
        "chat" => Speaker::Named,
        "tool" => Speaker::Tool,
        _ => return None,
    })
}

/// Reads messages, or an object with `messages`.
///
/// # Errors
/// [`AdapterError`] when a message is malformed or of an unknown type.
pub fn from_langchain(document: Value) -> Result<Conversation, AdapterError> {
    check_nesting(&document, "")?;
    let (document, messages) = unwrap(document, &["messages"])?;
    let mut reader = Reader::new(Dialect::LangChain);
    let mut removals = 0;
    for (number, message) in messages.into_iter().enumerate() {
        if frame(&message).is_some_and(|(_, kind)| kind == "remove" || kind == "RemoveMessage") {
            removals += 1;
            continue;
        }
        read_message(message, &format!("messages[{number}]"), &mut reader)?;
    }
    let mut conversation = reader.finish(document);
    let removals = (removals > 0).then(|| BTreeMap::from([("remove".to_owned(), removals)]));
    conversation.remarks.extend(removals.and_then(|removals| left_out("messages that say nothing", &removals)));
    Ok(conversation)
}

fn read_message(mut message: Value, place: &str, reader: &mut Reader) -> Result<(), AdapterError> {
    let Some((base, name)) = frame(&message) else {
        return Err(AdapterError::new(place, "it is not a message; expected `type`, and `data` with `content`"));
    };
    let inside = format!("{place}{}", base.replace('/', "."));
    let Some(members) = message.pointer(base).and_then(Value::as_object) else {
        return Err(AdapterError::new(inside, "expected an object"));
    };
    let kind = match speaker(name) {
        Some(Speaker::Known(kind)) => kind,
        Some(Speaker::Named) => match text(members, "role", &inside)? {
            "user" | "human" => ItemKind::UserTurn,
            "assistant" | "ai" | "model" => ItemKind::AgentMsg,
            "system" | "developer" => ItemKind::Policy,
            other => {
                let reason = format!("unknown role `{}`; use user, assistant or system", shown(other));
                return Err(AdapterError::new(inside, reason));
            }
        },
        Some(Speaker::Tool) => {
            let result = read_result(&mut message, base, &inside)?;
            reader.message(message, ItemKind::ToolResult, vec![result]);
            return Ok(());
        }
        None => {
            let reason = format!("unknown type of message `{}`; use human, ai, system or tool", shown(name));
            return Err(AdapterError::new(place, reason));
        }
    };
    let calls = listed(&message, base, &inside)?;
    let mut pieces = Vec::new();
    say(&mut message, &format!("{base}/additional_kwargs/reasoning_content"), Piece::Thought, &mut pieces);
    let content = format!("{base}/content");
    match message.pointer(&content) {
        Some(Value::Array(blocks)) => {
            for number in 0..blocks.len() {
                read_block(&mut message, &format!("{content}/{number}"), kind, &calls, &mut pieces)?;
            }
        }
        Some(Value::String(_)) => say(&mut message, &content, |said| Piece::Said(kind, said), &mut pieces),
        None | Some(Value::Null) => {}
        other => return Err(AdapterError::wrong(&inside, "content", "a string or an array of blocks", other)),
    }
    for Listed { id, name, at } in calls {
        let content = Content::arguments(&mut message, &at);
        pieces.push(Piece::Call { id, name, content });
    }
    reader.message(message, kind, pieces);
    Ok(())
}

/// Takes the text at `at`. An empty one says nothing and stays where it is.
fn say(message: &mut Value, at: &str, piece: impl Fn(Content) -> Piece, pieces: &mut Vec<Piece>) {
    if message.pointer(at).and_then(Value::as_str).is_some_and(|text| !text.is_empty()) {
        pieces.push(piece(Content::text(message, at, |_| String::new())));
    }
}

fn read_block(
    message: &mut Value,
    at: &str,
    kind: ItemKind,
    calls: &[Listed],
    pieces: &mut Vec<Piece>,
) -> Result<(), AdapterError> {
    let Some(block) = message.pointer(at) else { return Ok(()) };
    let of = |key: &str| block.get(key).and_then(Value::as_str);
    let has = |key: &str| block.get(key).is_some_and(|value| !value.is_null());
    let member = |keys: &[&str]| keys.iter().find(|key| has(key)).map(|key| format!("{at}/{key}"));
    let id = || of("call_id").or_else(|| of("id")).map(str::to_owned);
    let answers = || of("tool_use_id").or_else(|| of("tool_call_id")).map(str::to_owned);
    match of("type").unwrap_or_default() {
        call if call.ends_with("tool_use") || call.ends_with("tool_call") || call == "function_call" => {
            let id = id();
            if id.is_some() && calls.iter().any(|listed| listed.id == id) {
                return Ok(());
            }
            let name = of("name").unwrap_or(call).to_owned();
            let at = member(&["input", "args", "arguments"]).unwrap_or_else(|| format!("{at}/input"));
            pieces.push(Piece::Call { id, name, content: Content::arguments(message, &at) });
        }
        result if result.ends_with("tool_result") && answers().is_some_and(|id| is_called(pieces, &id)) => {
            let call = answers().unwrap_or_default();
            let at = member(&["content", "output"]).unwrap_or_else(|| format!("{at}/content"));
            let failed = of("status") == Some("error");
            pieces.push(Piece::Result { call, failed, content: returned(message, &at, failed)? });
        }
        block_type => {
            let is_thought = ["thinking", "redacted_thinking", "reasoning"].contains(&block_type);
            let piece = move |content| if is_thought { Piece::Thought(content) } else { Piece::Said(kind, content) };
            let at = match block_type {
                _ if block.is_string() => Some(at.to_owned()),
                _ => member(&["text", "thinking", "reasoning", "refusal"]),
            };
            match at.filter(|at| message.pointer(at).is_some_and(Value::is_string)) {
                Some(at) => say(message, &at, piece, pieces),
                None => pieces.push(piece(Content::nothing(described(block)))),
            }
        }
    }
    Ok(())
}

fn is_called(pieces: &[Piece], call: &str) -> bool {
    pieces.iter().any(|piece| matches!(piece, Piece::Call { id: Some(id), .. } if id == call))
}

/// What stands for a block that has no text of its own: the summary of reasoning, otherwise its type.
fn described(block: &Value) -> String {
    let summary = block.get("summary").and_then(Value::as_array).into_iter().flatten();
    let summary: Vec<&str> = summary.filter_map(|part| part.get("text")?.as_str()).collect();
    if summary.is_empty() { placeholder(block) } else { summary.join("\n") }
}

/// A call that a message lists beside its content.
struct Listed {
    id: Option<String>,
    name: String,
    /// The JSON Pointer to its arguments.
    at: String,
}

/// The calls of a message: with arguments that were understood, with others, or as OpenAI writes them where it has no
/// other.
fn listed(message: &Value, base: &str, place: &str) -> Result<Vec<Listed>, AdapterError> {
    let mut calls = Vec::new();
    for (list, inside, arguments) in [
        ("/tool_calls", "", "/args"),
        ("/invalid_tool_calls", "", "/args"),
        ("/additional_kwargs/tool_calls", "/function", "/function/arguments"),
    ] {
        let at = format!("{base}{list}");
        let entries = match message.pointer(&at) {
            Some(Value::Array(entries)) if calls.is_empty() || inside.is_empty() => entries,
            _ if !inside.is_empty() => break,
            None | Some(Value::Null) => continue,
            other => return Err(AdapterError::wrong(place, &list[1..], "an array", other)),
        };
        for (number, call) in entries.iter().enumerate() {
            let place = format!("{place}{}[{number}]", list.replace('/', "."));
            let Some(members) = call.pointer(inside).and_then(Value::as_object) else {
                return Err(AdapterError::new(place, "a call must be an object"));
            };
            let name = match members.get("name") {
                None | Some(Value::Null) if list.starts_with("/invalid") => "invalid",
                _ => text(members, "name", &place)?,
            };
            let id = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
            let at = format!("{at}/{number}{arguments}");
            calls.push(Listed { id: id.map(str::to_owned), name: name.to_owned(), at });
        }
    }
    Ok(calls)
}

fn read_result(message: &mut Value, base: &str, place: &str) -> Result<Piece, AdapterError> {
    let empty = Map::new();
    let members = message.pointer(base).and_then(Value::as_object).unwrap_or(&empty);
    let call = text(members, "tool_call_id", place)?.to_owned();
    let failed = members.get("status").is_some_and(|status| status == "error");
    let content = match members.get("content") {
        Some(Value::Array(_) | Value::String(_) | Value::Null) | None => {
            returned(message, &format!("{base}/content"), failed)?
        }
        other => return Err(AdapterError::wrong(place, "content", "a string or an array of blocks", other)),
    };
    Ok(Piece::Result { call, failed, content })
}

/// What a call returned: a list of blocks and texts, a text, or JSON.
fn returned(message: &mut Value, at: &str, is_error: bool) -> Result<Content, AdapterError> {
    match message.pointer(at) {
        Some(Value::Array(_)) => Content::output(message, at, |value| {
            let mut parts = Vec::new();
            for entry in array(value, "")? {
                match entry {
                    Value::String(text) => parts.push(Part::new(PartBody::Text(text))),
                    block => parts.extend(output_of(Value::Array(vec![block])).parts),
                }
            }
            Ok(ToolOutput { parts, is_error, ..ToolOutput::default() })
        }),
        Some(Value::String(_) | Value::Null) | None => Ok(Content::text(message, at, |_| String::new())),
        Some(_) => Ok(Content::json(message, at, |_| String::new())),
    }
}

/// Writes the messages of a conversation, as `messages_from_dict` reads them: the inverse of [`from_langchain`]. From
/// other formats, what the agent says and calls in a turn becomes one message, every other event one of its own; kinds
/// that LangChain does not have become system messages.
///
/// # Errors
/// [`AdapterError`] when an event's metadata was edited so that it no longer fits.
pub fn to_langchain(conversation: &Conversation) -> Result<Value, AdapterError> {
    WRITER.write(conversation)
}

pub(super) const WRITER: Writer = Writer {
    dialect: Dialect::LangChain,
    list: &["messages"],
    fresh: Some(fresh),
    output,
    picture: NAMES.picture,
    pictures_in_results: true,
    grows: &["/data/content", "/data/tool_calls"],
    rules: Rules::Messages,
    calls: None,
};

fn output(output: &ToolOutput) -> Result<Value, AdapterError> {
    if output.parts.is_empty() {
        return to_blocks(output, &NAMES);
    }
    let parts = output.parts.iter().map(|part| match &part.body {
        PartBody::Text(text) if part.other.is_empty() => Ok(Value::String(text.clone())),
        _ => to_block(part, &NAMES),
    });
    parts.collect()
}

fn fresh(item: &ContextItem, content: &Value) -> Value {
    let said = |kind: &str| json!({"type": kind, "data": {"content": content, "type": kind}});
    match item.kind {
        ItemKind::UserTurn => said("human"),
        ItemKind::AgentMsg => said("ai"),
        ItemKind::ToolCall => {
            let call =
                json!({"name": function_name(item), "args": arguments(item), "id": item.id, "type": "tool_call"});
            json!({"type": "ai", "data": {"content": "", "type": "ai", "tool_calls": [call]}})
        }
        ItemKind::ToolResult => {
            let mut data =
                json!({"content": content, "type": "tool", "name": called_name(item), "tool_call_id": call_of(item)});
            if failed(item) {
                data["status"] = "error".into();
            }
            json!({"type": "tool", "data": data})
        }
        ItemKind::Policy
        | ItemKind::PlanState
        | ItemKind::MemoryFact
        | ItemKind::DocSnippet
        | ItemKind::RetrievedDoc => said("system"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::adapters::testing::{extra, near, round_trips, shown as events, with, wrapped};

    /// As `messages_to_dict` of langchain-core 1.8 writes it.
    const SAMPLE: &str = r#"[
        {"type":"system","data":{"content":"Be brief.","additional_kwargs":{},"response_metadata":{},"type":"system","name":null,"id":null}},
        {"type":"human","data":{"content":[{"type":"text","text":"Why did it fail?"},{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}],"additional_kwargs":{},"response_metadata":{},"type":"human","name":null,"id":null}},
        {"type":"ai","data":{"content":[{"type":"thinking","thinking":"Look first.","signature":"EqQB"},{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"read_log","input":{"job":"nightly"}}],"additional_kwargs":{},"response_metadata":{},"type":"ai","name":null,"id":null,"tool_calls":[{"name":"read_log","args":{"job":"nightly"},"id":"c1","type":"tool_call"}],"invalid_tool_calls":[],"usage_metadata":null}},
        {"type":"tool","data":{"content":"disk full","additional_kwargs":{},"response_metadata":{},"type":"tool","name":"read_log","id":null,"tool_call_id":"c1","artifact":null,"status":"success"}},
        {"type":"ai","data":{"content":"","additional_kwargs":{"reasoning_content":"Ask df."},"response_metadata":{},"type":"ai","name":null,"id":null,"tool_calls":[{"name":"df","args":{},"id":"c2","type":"tool_call"}],"invalid_tool_calls":[{"type":"invalid_tool_call","id":"c3","name":"df","args":"{\"path\": ","error":"not JSON"}],"usage_metadata":null}},
        {"type":"tool","data":{"content":["a","b"],"additional_kwargs":{},"response_metadata":{},"type":"tool","name":null,"id":null,"tool_call_id":"c2","artifact":null,"status":"success"}},
        {"type":"tool","data":{"content":[{"type":"text","text":"bad arguments"}],"additional_kwargs":{},"response_metadata":{},"type":"tool","name":null,"id":null,"tool_call_id":"c3","artifact":null,"status":"error"}},
        {"type":"ai","data":{"content":["The disk ","was full."],"additional_kwargs":{},"response_metadata":{},"type":"ai","name":null,"id":null,"tool_calls":[],"invalid_tool_calls":[],"usage_metadata":null}}]"#;

    fn sample() -> Value {
        serde_json::from_str(SAMPLE).unwrap()
    }

    #[test]
    fn messages_become_events_and_messages_again() {
        let conversation = from_langchain(sample()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        policy m1 "Be brief."
        user_turn m2 "Why did it fail?"
        user_turn m2.2 "[image_url] https://example.org/a.png"
        agent_msg m3 (thought) "Look first."
        agent_msg m3.2 "I look."
        tool_call c1 read_log "{\"job\":\"nightly\"}"
        tool_result result:c1 < c1 "disk full"
        agent_msg m5 (thought) "Ask df."
        tool_call c2 df "{}"
        tool_call c3 df "{\"path\": "
        tool_result result:c2 < c2 "a\nb" +2 parts
        tool_result result:c3 < c3 (failed) "bad arguments" +1 parts
        agent_msg m8 "The disk "
        agent_msg m8.2 "was full."
        "#);
        assert_eq!(to_langchain(&conversation).unwrap(), sample());
        let failed: Vec<&str> = conversation
            .events
            .iter()
            .filter(|event| event.item.metadata.contains_key("is_error"))
            .map(|event| event.item.id.as_str())
            .collect();
        assert_eq!(failed, ["result:c3"]);
    }

    #[test]
    fn every_form_of_messages_is_read() {
        let expected = events(&from_langchain(sample()).unwrap());
        let class = |kind: &str| match kind {
            "ai" => "AIMessage",
            "human" => "HumanMessageChunk",
            "tool" => "ToolMessage",
            _ => "SystemMessage",
        };
        let form = |form: fn(&str, &str, &Value) -> Value| -> Value {
            let Value::Array(messages) = sample() else { panic!("a list") };
            let kind = |message: &Value| message["type"].as_str().unwrap().to_owned();
            messages.iter().map(|message| form(&kind(message), class(&kind(message)), &message["data"])).collect()
        };
        for list in [
            form(
                |_, class, data| json!({"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", class], "kwargs": data}),
            ),
            form(|_, _, data| data.clone()),
            form(|_, class, data| json!({"type": class, "data": data})),
        ] {
            for document in [json!({"messages": list, "next": 1}), list] {
                assert!(is_document(&document));
                let conversation = from_langchain(document.clone()).unwrap();
                assert_eq!(events(&conversation), expected);
                assert_eq!(to_langchain(&conversation).unwrap(), document);
            }
        }
    }

    #[test]
    fn what_providers_put_into_messages_is_read() {
        let ai = |data: Value| with(json!({"type": "ai"}), Map::from_iter([("data".to_owned(), data)]));
        let document = json!([
            ai(json!({"content": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Search."}]},
                {"type": "reasoning", "reasoning": "Then ask."},
                {"type": "server_tool_use", "id": "s1", "name": "web", "input": {"q": 1}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "u"}]},
                {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "f", "arguments": "{}"},
                {"type": "refusal", "refusal": "No."}],
                "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "c1"}, {"name": "g", "args": {}, "id": null}]})),
            ai(json!({"content": "", "tool_calls": [], "additional_kwargs": {"tool_calls": [
                {"id": "c2", "type": "function", "function": {"name": "h", "arguments": "{\"b\": 2}"}}]}})),
            {"type": "chat", "data": {"content": "Do it.", "role": "developer"}},
            ai(json!({"content": "", "response_metadata": {"finish_reason": "stop"}}))]);
        let conversation = from_langchain(document.clone()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        agent_msg m1 (thought) "Search."
        agent_msg m1.2 (thought) "Then ask."
        tool_call s1 web "{\"q\":1}"
        tool_result result:s1 < s1 "[web_search_result] u" +1 parts
        agent_msg m1.5 "No."
        tool_call c1 f "{\"a\":1}"
        tool_call call:7 g "{}"
        tool_call c2 h "{\"b\": 2}"
        policy m3 "Do it."
        agent_msg m4 ""
        "#);
        assert_eq!(to_langchain(&conversation).unwrap(), document);
    }

    #[test]
    fn a_message_that_removes_another_says_nothing() {
        let said = json!({"type": "human", "data": {"content": "Hi"}});
        let removes = json!({"type": "remove", "data": {"id": "x", "content": ""}});
        let lc = json!({"lc": 1, "type": "constructor", "id": ["langchain", "RemoveMessage"], "kwargs": {"content": "", "id": "y"}});
        let conversation = from_langchain(json!([said, removes, lc])).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"user_turn m1 "Hi""#);
        insta::assert_snapshot!(conversation.remarks.join("\n"), @"messages that say nothing were left out: 2 remove");
        assert_eq!(to_langchain(&conversation).unwrap(), json!([said]));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let error = |messages: Value| from_langchain(messages).unwrap_err().to_string();
        let of = |kind: &str, data: Value| json!([{"type": kind, "data": data}]);
        insta::assert_snapshot!(error(json!([7])), @"messages[0]: it is not a message; expected `type`, and `data` with `content`");
        insta::assert_snapshot!(error(of("chat", json!({"content": "a", "role": "critic"}))), @"messages[0].data: unknown role `critic`; use user, assistant or system");
        insta::assert_snapshot!(error(of("human", json!({"content": 7}))), @"messages[0].data: `content` must be a string or an array of blocks, not a number");
        insta::assert_snapshot!(error(of("ai", json!({"content": "", "tool_calls": [7]}))), @"messages[0].data.tool_calls[0]: a call must be an object");
        insta::assert_snapshot!(error(of("ai", json!({"content": "", "tool_calls": [{"id": "c"}]}))), @"messages[0].data.tool_calls[0]: `name` is missing; expected a string");
    }

    #[test]
    fn what_only_looks_alike_is_refused() {
        let error =
            |kind: &str| from_langchain(json!([{"type": kind, "data": {"content": "a"}}])).unwrap_err().to_string();
        insta::assert_snapshot!(error("robot"), @"messages[0]: unknown type of message `robot`; use human, ai, system or tool");
        insta::assert_snapshot!(error("function"), @"messages[0]: unknown type of message `function`; use human, ai, system or tool");
        for other in [
            json!([{"type": "message", "role": "user", "content": "a"}]),
            json!([{"type": "human", "text": "a"}]),
            json!([{"type": "human", "data": "a"}]),
            json!([{"role": "user", "content": "a"}]),
            json!([]),
        ] {
            assert!(!is_document(&other), "{other}");
        }
    }

    #[test]
    fn events_from_elsewhere_become_messages() {
        let call = |text: &str| json!([{"type": "ai", "data": {"content": "", "type": "ai", "tool_calls": [{"name": "f", "args": {"text": text}, "id": "c", "type": "tool_call"}]}}]);
        for text in ["f(x=1)", "[1]"] {
            let mut item = ContextItem::new("c", ItemKind::ToolCall, text);
            item.metadata.insert("function_name".to_owned(), "f".into());
            let conversation = Conversation { events: vec![item.into()], ..Conversation::default() };
            assert_eq!(to_langchain(&conversation).unwrap(), call(text));
        }
    }

    fn messages() -> impl Strategy<Value = Value> {
        let block =
            ("(?s).{0,6}", extra(), prop::sample::select(&["text", "thinking", "image_url", "tool_use", ""][..]))
                .prop_map(|(text, extra, kind)| match kind {
                    "" => json!(text),
                    "tool_use" => with(json!({"type": kind, "id": "c", "name": "f", "input": {"a": text}}), extra),
                    "image_url" => with(json!({"type": kind, "image_url": {"url": text}}), extra),
                    _ => with(json!({"type": kind, kind: text}), extra),
                });
        let blocks = prop::collection::vec(block, 0..3).prop_map(Value::from);
        let content = prop_oneof!["(?s).{0,6}".prop_map(Value::from), blocks].boxed();
        let said = (prop::sample::select(&["human", "ai", "system"][..]), content.clone(), extra()).prop_map(
            |(kind, content, extra)| vec![json!({"type": kind, "data": with(json!({"content": content}), extra)})],
        );
        let called = ("[a-c]", extra(), content.clone(), content, prop::sample::select(&["success", "error"][..]))
            .prop_map(|(id, args, before, content, status)| {
                vec![
                    json!({"type": "ai", "data": {"content": before, "additional_kwargs": {"reasoning_content": "Hm."},
                        "tool_calls": [{"name": "f", "args": args, "id": id, "type": "tool_call"}],
                        "invalid_tool_calls": [{"name": null, "args": "{", "id": null}]}}),
                    json!({"type": "tool", "data": {"content": content, "tool_call_id": id, "status": status}}),
                ]
            });
        prop::collection::vec(prop_oneof![said, called], 0..6).prop_map(|turns| turns.concat().into())
    }

    #[test]
    fn nothing_is_lost() {
        round_trips(100, prop_oneof![messages(), wrapped("messages", messages())], from_langchain, to_langchain);
    }

    #[test]
    fn what_reads_writes_the_same() {
        round_trips(10, near(prop_oneof![messages(), wrapped("messages", messages())]), from_langchain, to_langchain);
    }
}
