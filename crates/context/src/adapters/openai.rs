//! OpenAI Chat Completions: a list of messages, or the body of a request around one (`messages`), both ways.
//!
//! `system` and `developer` messages become policies. A refusal is the text of its message. In the older form of calls
//! (`function_call`, role `function`), a result belongs to the last call of its function that has none.

use serde_json::{Map, Value, json};

use super::Conversation;
use super::blocks::{BlockNames, output_of, to_blocks};
use super::error::{AdapterError, array, check_nesting, describe, object, shown, text};
use super::parts::{Picture, placeholder};
use super::wire::{Content, Dialect, IS_ERROR, Reader, Taken, Which};
use super::writer::{CallForm, Rules, Writer, arguments_as_text, call_of, function_name};
use crate::event::{ContextItem, ItemKind};
use contextweaver_core::catalog::ToolFormat;

/// Reads messages, or a request with `messages`.
///
/// # Errors
/// [`AdapterError`] when a message is malformed.
pub fn from_openai_chat(document: Value) -> Result<Conversation, AdapterError> {
    check_nesting(&document, "")?;
    let (document, messages) = unwrap(document, &["messages"])?;
    let mut reader = Reader::new(Dialect::OpenaiChat);
    for (number, message) in messages.into_iter().enumerate() {
        let place = format!("messages[{number}]");
        read_message(object(message, &place)?, &place, &mut reader)?;
    }
    Ok(reader.finish(document))
}

/// The object around a list of messages, if there is one, and the messages.
type Unwrapped = (Option<Map<String, Value>>, Vec<Value>);

/// The list of messages and, if it is in an object, that object with an empty list in its place.
pub(super) fn unwrap(document: Value, keys: &[&str]) -> Result<Unwrapped, AdapterError> {
    match document {
        Value::Array(messages) => Ok((None, messages)),
        Value::Object(mut around) => {
            let Some(key) = keys.iter().find(|key| around.contains_key(**key)) else {
                return Err(AdapterError::new("", format!("`{}` is missing", keys.join("` or `"))));
            };
            let list = around.insert((*key).to_owned(), Value::Array(Vec::new())).unwrap_or_default();
            Ok((Some(around), array(list, key)?))
        }
        other => Err(AdapterError::new("", format!("expected a list of messages, not {}", describe(&other)))),
    }
}

/// Reads the parts of a message, each an event of `kind`; `message` holds an empty list in their place.
pub(super) fn read_parts(message: Map<String, Value>, parts: Vec<Value>, kind: ItemKind, reader: &mut Reader) {
    reader.open(Value::Object(message), None);
    for part in parts {
        let part_type = part.get("type").and_then(Value::as_str);
        let at = if part_type == Some("refusal") { "/refusal" } else { "/text" };
        let is_thought = part_type == Some("reasoning");
        reader.part(kind, "/content", Taken::text(part, at, placeholder));
        if is_thought {
            reader.is_thought();
        }
    }
}

fn read_message(mut message: Map<String, Value>, place: &str, reader: &mut Reader) -> Result<(), AdapterError> {
    let kind = match text(&message, "role", place)? {
        "system" | "developer" => ItemKind::Policy,
        "user" => ItemKind::UserTurn,
        "assistant" => ItemKind::AgentMsg,
        "tool" | "function" => return read_result(message, place, reader),
        other => {
            let reason = format!("unknown role `{}`; use system, developer, user, assistant or tool", shown(other));
            return Err(AdapterError::new(place, reason));
        }
    };
    let calls = match message.get_mut("tool_calls") {
        None | Some(Value::Null) => Vec::new(),
        Some(list @ Value::Array(_)) => array(std::mem::replace(list, Value::Array(Vec::new())), place)?,
        Some(other) => return Err(AdapterError::wrong(place, "tool_calls", "an array", Some(other))),
    };
    let function = function_call(&mut message, place)?;
    let refusal = message.get("refusal").and_then(Value::as_str).unwrap_or_default().to_owned();
    match message.get_mut("content") {
        None | Some(Value::Null) => reader.open(Value::Object(message), None),
        Some(Value::String(content)) if content.is_empty() => reader.open(Value::Object(message), None),
        Some(Value::String(_)) => {
            reader.whole(kind, Taken::text(Value::Object(message), "/content", |_| String::new()), None);
        }
        Some(list @ Value::Array(_)) => {
            let parts = array(std::mem::replace(list, Value::Array(Vec::new())), place)?;
            read_parts(message, parts, kind, reader);
        }
        Some(other) => return Err(AdapterError::wrong(place, "content", "a string or an array of parts", Some(other))),
    }
    for (number, call) in calls.into_iter().enumerate() {
        read_call(call, &format!("{place}.tool_calls[{number}]"), reader)?;
    }
    if let Some((name, arguments)) = function {
        reader.call_within(None, &name, arguments);
    }
    reader.close(kind, refusal);
    Ok(())
}

/// The name and the arguments of a call in the older form, the arguments taken out of the message.
fn function_call(message: &mut Map<String, Value>, place: &str) -> Result<Option<(String, Content)>, AdapterError> {
    const AT: &str = "/function_call/arguments";
    let Some(Value::Object(function)) = message.get("function_call") else { return Ok(None) };
    let name = text(function, "name", &format!("{place}.function_call"))?.to_owned();
    let mut rest = Value::Object(std::mem::take(message));
    let arguments =
        Content::text(&mut rest, AT, |rest| rest.pointer(AT).map_or_else(|| "{}".to_owned(), Value::to_string));
    *message = object(rest, place)?;
    Ok(Some((name, arguments)))
}

fn read_call(call: Value, place: &str, reader: &mut Reader) -> Result<(), AdapterError> {
    let call = object(call, place)?;
    let id = text(&call, "id", place)?.to_owned();
    let (member, at) = if call.get("custom").is_some_and(|custom| !custom.is_null()) {
        ("custom", "/custom/input")
    } else {
        ("function", "/function/arguments")
    };
    let Some(Value::Object(function)) = call.get(member) else {
        return Err(AdapterError::wrong(place, member, "an object", call.get(member)));
    };
    let name = text(function, "name", &format!("{place}.{member}"))?.to_owned();
    let taken =
        Taken::text(Value::Object(call), at, |call| call.pointer(at).map_or_else(|| "{}".to_owned(), Value::to_string));
    reader.call(Some(&id), &name, Some("/tool_calls"), taken);
    Ok(())
}

fn read_result(message: Map<String, Value>, place: &str, reader: &mut Reader) -> Result<(), AdapterError> {
    let is_function = message.get("role").is_some_and(|role| role == "function");
    let answers = text(&message, if is_function { "name" } else { "tool_call_id" }, place)?.to_owned();
    let failed = message.get(IS_ERROR).and_then(Value::as_bool) == Some(true);
    let is_list = match message.get("content") {
        Some(Value::Array(_)) => true,
        None | Some(Value::String(_) | Value::Null) => false,
        Some(other) => return Err(AdapterError::wrong(place, "content", "a string or an array of parts", Some(other))),
    };
    let message = Value::Object(message);
    let taken = match is_list {
        true => Taken::output(message, "/content", |content| Ok(output_of(content)))?,
        false => Taken::text(message, "/content", |_| String::new()),
    };
    match is_function {
        true => reader.result_by_name(&answers, Which::Last, None, taken),
        false => reader.result(&answers, None, taken),
    }
    reader.is_error(failed);
    Ok(())
}

/// Writes the messages of a conversation: the inverse of [`from_openai_chat`]. From other formats, what the agent says
/// and calls in a turn becomes one message, every other event one of its own; kinds that a chat does not have become
/// system messages.
///
/// # Errors
/// [`AdapterError`] when an event's metadata was edited so that it no longer fits.
pub fn to_openai_chat(conversation: &Conversation) -> Result<Value, AdapterError> {
    WRITER.write(conversation)
}

pub(super) const WRITER: Writer = Writer {
    dialect: Dialect::OpenaiChat,
    list: &["messages"],
    fresh: Some(fresh),
    output: |output| to_blocks(output, &NAMES),
    picture: NAMES.picture,
    // A message of the role `tool` takes nothing but text.
    pictures_in_results: false,
    grows: &["/content", "/tool_calls"],
    rules: Rules::Messages,
    calls: Some(CallForm { tools: ToolFormat::OpenAi, longest_id: 40 }),
};

pub(super) const NAMES: BlockNames = BlockNames { text: "text", picture };

fn picture(picture: &Picture) -> Value {
    json!({"type": "image_url", "image_url": {"url": picture.url()}})
}

pub(super) fn fresh(item: &ContextItem, content: &Value) -> Value {
    match item.kind {
        ItemKind::UserTurn => json!({"role": "user", "content": content}),
        ItemKind::AgentMsg => json!({"role": "assistant", "content": content}),
        ItemKind::ToolCall => json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": item.id, "type": "function",
             "function": {"name": function_name(item), "arguments": arguments_as_text(item)}}]}),
        ItemKind::ToolResult => json!({"role": "tool", "tool_call_id": call_of(item), "content": content}),
        ItemKind::Policy
        | ItemKind::PlanState
        | ItemKind::MemoryFact
        | ItemKind::DocSnippet
        | ItemKind::RetrievedDoc => json!({"role": "system", "content": content}),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::adapters::testing::{extra, near, round_trips, shown as events, with, wrapped};
    use crate::adapters::{Format, recognise};

    #[test]
    fn messages_become_events_and_messages_again() {
        let messages = json!({"model": "m", "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "name": "kim", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]},
            {"role": "assistant", "content": null, "refusal": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\": 1}"}},
                {"id": "c2", "type": "custom", "custom": {"name": "run", "input": "ls"}}]},
            {"role": "tool", "tool_call_id": "c2", "content": "a.txt"},
            {"role": "tool", "tool_call_id": "c1", "content": [
                {"type": "text", "text": "A cat"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC", "detail": "low"}}]},
            {"role": "assistant", "content": null, "refusal": "No."},
            {"role": "assistant", "content": ""}], "tools": []});
        let conversation = from_openai_chat(messages.clone()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        policy m1 "Be brief."
        user_turn m2 "What is this?"
        user_turn m2.2 "[image_url] https://example.org/a.png"
        tool_call c1 look "{\"at\": 1}"
        tool_call c2 run "ls"
        tool_result result:c2 < c2 "a.txt"
        tool_result result:c1 < c1 "A cat" +2 parts
        agent_msg m6 "No."
        agent_msg m7 ""
        "#);
        assert_eq!(to_openai_chat(&conversation).unwrap(), messages);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let error = |messages: Value| from_openai_chat(messages).unwrap_err().to_string();
        let user = json!({"role": "user", "content": "Hi"});
        insta::assert_snapshot!(error(json!("x")), @"expected a list of messages, not a string");
        insta::assert_snapshot!(error(json!({"model": "m"})), @"`messages` is missing");
        insta::assert_snapshot!(error(json!([user, 7])), @"messages[1]: expected an object, not a number");
        insta::assert_snapshot!(error(json!([{"content": "a"}])), @"messages[0]: `role` is missing; expected a string");
        insta::assert_snapshot!(error(json!([{"role": "robot", "content": "a"}])), @"messages[0]: unknown role `robot`; use system, developer, user, assistant or tool");
        insta::assert_snapshot!(error(json!([{"role": "user", "content": 7}])), @"messages[0]: `content` must be a string or an array of parts, not a number");
        insta::assert_snapshot!(error(json!([user, {"role": "assistant", "tool_calls": [{"id": "a"}]}])), @"messages[1].tool_calls[0]: `function` is missing; expected an object");
    }

    #[test]
    fn events_from_elsewhere_become_messages() {
        let events = vec![
            ContextItem::new("u", ItemKind::UserTurn, "Hi").into(),
            ContextItem::new("c", ItemKind::ToolCall, "f(x=1)").into(),
            ContextItem::new("r", ItemKind::ToolResult, "ok").under("c").into(),
            ContextItem::new("p", ItemKind::PlanState, "step 2").into(),
        ];
        let messages = to_openai_chat(&Conversation { events, ..Conversation::default() }).unwrap();
        assert_eq!(
            messages,
            json!([
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function",
                    "function": {"name": "f", "arguments": "{\"text\":\"f(x=1)\"}"}}]},
                {"role": "tool", "tool_call_id": "c", "content": "ok"},
                {"role": "system", "content": "step 2"},
            ])
        );
        assert_eq!(to_openai_chat(&from_openai_chat(messages.clone()).unwrap()).unwrap(), messages);
    }

    #[test]
    fn calls_that_share_an_id_stay_apart() {
        let turn = |text: &str| {
            [
                json!({"role": "assistant", "tool_calls": [
                    {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": text}}]}),
                json!({"role": "tool", "tool_call_id": "call_0", "content": text}),
            ]
        };
        let messages: Value = [turn("1"), turn("2")].concat().into();
        let conversation = from_openai_chat(messages.clone()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        tool_call call_0 f "1"
        tool_result result:call_0 < call_0 "1"
        tool_call call_0~2 f "2"
        tool_result result:call_0~2 < call_0~2 "2"
        "#);
        assert_eq!(to_openai_chat(&conversation).unwrap(), messages);
    }

    #[test]
    fn the_older_form_of_calls_is_read() {
        let call = |arguments: &str| json!({"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": arguments}});
        let messages = json!([
            {"role": "user", "content": "Twice, please"},
            call("{\"n\": 1}"),
            call("{\"n\": 2}"),
            {"role": "function", "name": "f", "content": "two"},
            {"role": "assistant", "content": "Once more.", "function_call": {"name": "g"}},
            {"role": "function", "name": "g", "content": "three"},
            {"role": "function", "name": "h", "content": "of nothing"}]);
        let conversation = from_openai_chat(messages.clone()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        user_turn m1 "Twice, please"
        tool_call call:2 f "{\"n\": 1}"
        tool_call call:3 f "{\"n\": 2}"
        tool_result result:call:3 < call:3 "two"
        agent_msg m5 "Once more."
        tool_call call:6 g "{}"
        tool_result result:call:6 < call:6 "three"
        tool_result result:h h "of nothing"
        "#);
        assert_eq!(to_openai_chat(&conversation).unwrap(), messages);
        // Traces have only the newer form.
        for format in [Format::Otel, Format::LangSmith] {
            let (_, again) = recognise(format.write(&conversation).unwrap().as_bytes(), "x").unwrap();
            let results = again.events.iter().filter(|event| event.item.parent_id.is_some());
            let results: Vec<&str> = results.map(|event| event.item.text.as_str()).collect();
            assert_eq!(results, ["two", "three", "of nothing"], "{format}");
        }
    }

    #[test]
    fn a_result_without_its_call_is_kept() {
        let messages = json!([
            {"role": "tool", "tool_call_id": "gone", "content": "disk full"},
            {"role": "assistant", "content": "The disk is full."}]);
        let conversation = from_openai_chat(messages.clone()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        tool_result result:gone "disk full"
        agent_msg m2 "The disk is full."
        "#);
        insta::assert_snapshot!(conversation.remarks.join("\n"), @"results of calls that are not in the conversation were kept without them: `gone`");
        assert_eq!(to_openai_chat(&conversation).unwrap(), messages);
        // Cut in this way, results of many calls may be left.
        let many: Value =
            (0..9).map(|id| json!({"role": "tool", "tool_call_id": id.to_string(), "content": ""})).collect();
        insta::assert_snapshot!(from_openai_chat(many).unwrap().remarks.join("\n"), @"results of calls that are not in the conversation were kept without them: `0`, `1`, `2`, `3`, `4` and 4 more");
    }

    fn messages() -> impl Strategy<Value = Value> {
        let content = || {
            prop_oneof![
                Just(json!(null)),
                "(?s).{0,6}".prop_map(Value::from),
                prop::collection::vec(
                    ("(?s).{0,6}", extra(), 0..3).prop_map(|(text, extra, kind)| with(
                        match kind {
                            0 => json!({"type": "image_url", "image_url": {"url": text}}),
                            1 => json!({"type": "refusal", "refusal": text}),
                            _ => json!({"type": "text", "text": text}),
                        },
                        extra
                    )),
                    0..3
                )
                .prop_map(Value::from),
            ]
        };
        let said = (prop::sample::select(&["system", "developer", "user", "assistant"][..]), content(), extra())
            .prop_map(|(role, content, extra)| vec![with(json!({"role": role, "content": content}), extra)]);
        let called = (content(), prop::collection::vec(("[a-c]{1}", ".{0,4}", content(), extra()), 1..3)).prop_map(
            |(content, calls)| {
                let made: Vec<Value> = calls
                    .iter()
                    .map(|(id, arguments, _, extra)| {
                        let function = with(json!({"name": "f", "arguments": arguments}), extra.clone());
                        json!({"id": id, "type": "function", "function": function})
                    })
                    .collect();
                let mut messages = vec![json!({"role": "assistant", "content": content, "tool_calls": made})];
                messages.extend(calls.into_iter().rev().map(|(id, _, content, extra)| {
                    with(json!({"role": "tool", "tool_call_id": id, "content": content}), extra)
                }));
                messages
            },
        );
        prop::collection::vec(prop_oneof![said, called], 0..6).prop_map(|turns| turns.concat().into())
    }

    #[test]
    fn nothing_is_lost() {
        round_trips(100, prop_oneof![messages(), wrapped("messages", messages())], from_openai_chat, to_openai_chat);
    }

    #[test]
    fn what_reads_writes_the_same() {
        round_trips(
            10,
            near(prop_oneof![messages(), wrapped("messages", messages())]),
            from_openai_chat,
            to_openai_chat,
        );
    }
}
