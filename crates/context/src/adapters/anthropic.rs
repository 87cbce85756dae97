//! Anthropic Messages: a list of messages, or the body of a request around one (`system`, `messages`), both ways.
//!
//! Every block is an event of its own: text, thinking, calls (`tool_use` and the kinds that the provider runs itself),
//! results (`tool_result` and theirs). Other blocks are kept and appear in the log under their type, with what can be
//! read in them.

use serde_json::{Map, Value, json};

use super::Conversation;
use super::blocks::{BlockNames, output_of, to_blocks};
use super::error::{AdapterError, array, check_nesting, object, shown, text};
use super::openai::unwrap;
use super::parts::{Picture, placeholder};
use super::wire::{Dialect, IS_ERROR, Reader, Taken};
use super::writer::{CallForm, Rules, Writer, arguments, call_of, failed, function_name};
use crate::event::{ContextItem, ItemKind};
use contextweaver_core::catalog::ToolFormat;

/// Reads messages, or a request with `messages`.
///
/// # Errors
/// [`AdapterError`] when a message or block is malformed.
pub fn from_anthropic(mut document: Value) -> Result<Conversation, AdapterError> {
    check_nesting(&document, "")?;
    let mut reader = Reader::new(Dialect::Anthropic);
    if let Some(system) = document.get_mut("system") {
        read_system(system.take(), &mut reader)?;
    }
    let (document, messages) = unwrap(document, &["messages"])?;
    for (number, message) in messages.into_iter().enumerate() {
        let place = format!("messages[{number}]");
        read_message(object(message, &place)?, &place, &mut reader)?;
    }
    Ok(reader.finish(document))
}

fn read_system(system: Value, reader: &mut Reader) -> Result<(), AdapterError> {
    match system {
        Value::Array(blocks) => {
            reader.open(Value::Array(Vec::new()), Some("system"));
            for block in blocks {
                reader.part(ItemKind::Policy, "", Taken::text(block, "/text", placeholder));
            }
            reader.close(ItemKind::Policy, "");
        }
        Value::String(_) => reader.whole(ItemKind::Policy, Taken::text(system, "", |_| String::new()), Some("system")),
        Value::Null => {}
        other => return Err(AdapterError::wrong("", "system", "a string or an array of blocks", Some(&other))),
    }
    Ok(())
}

pub(super) fn read_message(
    mut message: Map<String, Value>,
    place: &str,
    reader: &mut Reader,
) -> Result<(), AdapterError> {
    let kind = match text(&message, "role", place)? {
        "user" => ItemKind::UserTurn,
        "assistant" => ItemKind::AgentMsg,
        "system" => ItemKind::Policy,
        other => {
            let reason = format!("unknown role `{}`; use user or assistant, and `system` beside them", shown(other));
            return Err(AdapterError::new(place, reason));
        }
    };
    match message.get_mut("content") {
        Some(Value::String(_)) => {
            reader.whole(kind, Taken::text(Value::Object(message), "/content", |_| String::new()), None);
        }
        Some(list @ Value::Array(_)) => {
            let blocks = array(std::mem::replace(list, Value::Array(Vec::new())), place)?;
            reader.open(Value::Object(message), None);
            for (number, block) in blocks.into_iter().enumerate() {
                let place = format!("{place}.content[{number}]");
                read_block(object(block, &place)?, kind, &place, reader)?;
            }
            reader.close(kind, "");
        }
        other => return Err(AdapterError::wrong(place, "content", "a string or an array of blocks", other.as_deref())),
    }
    Ok(())
}

const LIST: &str = "/content";

fn read_block(block: Map<String, Value>, kind: ItemKind, place: &str, reader: &mut Reader) -> Result<(), AdapterError> {
    let block_type = text(&block, "type", place)?.to_owned();
    match block_type.as_str() {
        "thinking" | "redacted_thinking" => {
            reader.part(kind, LIST, Taken::text(Value::Object(block), "/thinking", placeholder));
            reader.is_thought();
        }
        "document" if block.get("source").is_some_and(|source| source["type"] == "text") => {
            reader.part(kind, LIST, Taken::text(Value::Object(block), "/source/data", placeholder));
        }
        call if call.ends_with("tool_use") => {
            let (id, name) = (text(&block, "id", place)?.to_owned(), text(&block, "name", place)?.to_owned());
            let taken = Taken::json(Value::Object(block), "/input", |_| "{}".to_owned());
            reader.call(Some(&id), &name, Some(LIST), taken);
        }
        result if result.ends_with("tool_result") => {
            let id = text(&block, "tool_use_id", place)?.to_owned();
            let failed = block.get(IS_ERROR).and_then(Value::as_bool) == Some(true);
            let taken = match block.get("content") {
                Some(Value::Array(_)) => Taken::output(Value::Object(block), LIST, |content| {
                    Ok(crate::event::ToolOutput { is_error: failed, ..output_of(content) })
                })?,
                Some(Value::String(_)) | None => Taken::text(Value::Object(block), LIST, |_| String::new()),
                Some(_) => Taken::json(Value::Object(block), LIST, |_| String::new()),
            };
            reader.result(&id, Some(LIST), taken);
            reader.is_error(failed);
        }
        _ => reader.part(kind, LIST, Taken::text(Value::Object(block), "/text", placeholder)),
    }
    Ok(())
}

/// Writes the messages of a conversation: the inverse of [`from_anthropic`]. From other formats, what the agent says and
/// calls in a turn becomes one message, and so do the results of its calls; policies go into `system`, and other kinds
/// that the API does not have become user messages.
///
/// # Errors
/// [`AdapterError`] when an event's metadata was edited so that it no longer fits.
pub fn to_anthropic(conversation: &Conversation) -> Result<Value, AdapterError> {
    WRITER.write(conversation)
}

pub(super) const WRITER: Writer = Writer {
    dialect: Dialect::Anthropic,
    list: &["messages"],
    fresh: Some(fresh),
    output: |output| to_blocks(output, &NAMES),
    picture: NAMES.picture,
    pictures_in_results: true,
    grows: &["/content"],
    rules: Rules::Member { name: "system", list: "" },
    calls: Some(CallForm { tools: ToolFormat::Anthropic, longest_id: 64 }),
};

pub(super) const NAMES: BlockNames = BlockNames { text: "text", picture };

fn picture(picture: &Picture) -> Value {
    let source = match picture {
        Picture::Data { media_type, base64 } => json!({"type": "base64", "media_type": media_type, "data": base64}),
        Picture::At(url) => json!({"type": "url", "url": url}),
    };
    json!({"type": "image", "source": source})
}

pub(super) fn fresh(item: &ContextItem, content: &Value) -> Value {
    match item.kind {
        ItemKind::Policy => content.clone(),
        ItemKind::AgentMsg => json!({"role": "assistant", "content": content}),
        ItemKind::ToolCall => json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": item.id, "name": function_name(item), "input": arguments(item)}]}),
        ItemKind::ToolResult => {
            let mut result = json!({"type": "tool_result", "tool_use_id": call_of(item), "content": content});
            if failed(item) {
                result[IS_ERROR] = true.into();
            }
            json!({"role": "user", "content": [result]})
        }
        ItemKind::UserTurn
        | ItemKind::PlanState
        | ItemKind::MemoryFact
        | ItemKind::DocSnippet
        | ItemKind::RetrievedDoc => json!({"role": "user", "content": content}),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::adapters::testing::{extra, near, round_trips, shown as events, with, wrapped};

    #[test]
    fn blocks_become_events_and_blocks_again() {
        let request = json!({"model": "m", "max_tokens": 9,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAEC"}},
                {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}, "title": "t"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
                {"type": "redacted_thinking", "data": "Emw"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1.5}},
                {"type": "tool_use", "id": "t2", "name": "look", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [
                    {"type": "text", "text": "A cat"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAEC"}},
                    {"type": "search_result", "title": "x"}]},
                {"type": "tool_result", "tool_use_id": "t2", "is_error": true, "content": "gone"},
                {"type": "text", "text": "And now?"}]},
            {"role": "assistant", "content": "A cat."}]});
        let conversation = from_anthropic(request.clone()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        policy m1 "Be brief."
        user_turn m2 "What is this?"
        user_turn m2.2 "[image image/png]"
        user_turn m2.3 "[document] https://example.org/a.pdf\nt"
        agent_msg m3 (thought) "Hm."
        agent_msg m3.2 (thought) "[redacted_thinking]"
        agent_msg m3.3 "I look."
        tool_call t1 look "{\"at\":1.5}"
        tool_call t2 look "{}"
        tool_result result:t1 < t1 "A cat\n[search_result] x" +3 parts
        tool_result result:t2 < t2 (failed) "gone"
        user_turn m4.3 "And now?"
        agent_msg m5 "A cat."
        "#);
        assert_eq!(to_anthropic(&conversation).unwrap(), request);
        let plain = json!({"system": "Be brief.", "messages": []});
        assert_eq!(to_anthropic(&from_anthropic(plain.clone()).unwrap()).unwrap(), plain);
    }

    #[test]
    fn what_blocks_say_under_other_names_is_read() {
        let document = json!({"type": "document", "title": "Runbook",
            "source": {"type": "text", "media_type": "text/plain", "data": "Use port 8443."}});
        let found = json!({"type": "web_search_result", "url": "https://example.org/ports", "title": "Ports",
            "encrypted_content": "EqQB", "page_age": null});
        let messages = json!([
            {"role": "user", "content": [
                document,
                {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "Restart at 3."}]}},
                {"type": "search_result", "source": "https://example.org/run", "title": "Ops",
                 "content": [{"type": "text", "text": "Ask kim."}]}]},
            {"role": "assistant", "content": [
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "port"}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [found, found]},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [
                    document,
                    {"type": "tool_reference", "tool_name": "x"}]},
                {"type": "tool_result", "tool_use_id": "t9", "is_error": true, "content": "connection refused"}]}]);
        let conversation = from_anthropic(messages.clone()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        user_turn m1 "Use port 8443."
        user_turn m1.2 "[document] Restart at 3."
        user_turn m1.3 "[search_result] https://example.org/run\nOps\nAsk kim."
        tool_call s1 web_search "{\"query\":\"port\"}"
        tool_result result:s1 < s1 "[web_search_result] https://example.org/ports\nPorts\n[web_search_result] https://example.org/ports\nPorts" +2 parts
        tool_call t1 read "{}"
        tool_result result:t1 < t1 "Use port 8443." +2 parts
        tool_result result:t9 (failed) "connection refused"
        "#);
        insta::assert_snapshot!(conversation.remarks.join("\n"), @"results of calls that are not in the conversation were kept without them: `t9`");
        assert_eq!(to_anthropic(&conversation).unwrap(), messages);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let error = |messages: Value| from_anthropic(messages).unwrap_err().to_string();
        insta::assert_snapshot!(error(json!([{"role": "tool", "content": "a"}])), @"messages[0]: unknown role `tool`; use user or assistant, and `system` beside them");
        insta::assert_snapshot!(error(json!([{"role": "user", "content": [{"text": "a"}]}])), @"messages[0].content[0]: `type` is missing; expected a string");
        insta::assert_snapshot!(error(json!({"system": 7, "messages": []})), @"`system` must be a string or an array of blocks, not a number");
    }

    fn messages() -> impl Strategy<Value = Value> {
        let block = ("(?s).{0,6}", extra(), prop::sample::select(&["text", "thinking", "image"][..])).prop_map(
            |(text, extra, kind)| {
                let block = match kind {
                    "image" => {
                        json!({"type": kind, "source": {"type": "base64", "media_type": "image/png", "data": text}})
                    }
                    _ => json!({"type": kind, kind: text}),
                };
                with(block, extra)
            },
        );
        let blocks = prop::collection::vec(block, 0..3).boxed();
        let content = prop_oneof!["(?s).{0,6}".prop_map(Value::from), blocks.clone().prop_map(Value::from)].boxed();
        let said = (prop::sample::select(&["user", "assistant"][..]), content.clone(), extra())
            .prop_map(|(role, content, extra)| vec![with(json!({"role": role, "content": content}), extra)]);
        let called = (blocks, "[a-c]", extra(), content, any::<bool>()).prop_map(
            |(mut before, id, input, content, is_error)| {
                before.push(json!({"type": "tool_use", "id": id, "name": "f", "input": input}));
                vec![
                    json!({"role": "assistant", "content": before}),
                    json!({"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}]}),
                ]
            },
        );
        prop::collection::vec(prop_oneof![said, called], 0..6).prop_map(|turns| turns.concat().into())
    }

    #[test]
    fn nothing_is_lost() {
        round_trips(100, wrapped("messages", messages()), from_anthropic, to_anthropic);
    }

    #[test]
    fn what_reads_writes_the_same() {
        round_trips(10, near(wrapped("messages", messages())), from_anthropic, to_anthropic);
    }
}
