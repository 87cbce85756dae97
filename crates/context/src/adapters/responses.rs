//! OpenAI Responses: a list of items, the body of a request around one (`input`), or a response (`output`), both
//! ways.
//!
//! `instructions` and `system` or `developer` messages become policies; reasoning becomes a thought of the agent. A
//! call that the provider ran itself (`mcp_call`, `code_interpreter_call` …) holds its result and becomes two events.
//! Items of other kinds are kept and appear in the log under their kind, with what can be read in them.

use serde_json::{Map, Value, json};

use super::Conversation;
use super::blocks::{BlockNames, output_of, to_blocks};
use super::error::{AdapterError, Alike, array, check_nesting, object, shown, text};
use super::openai::{read_parts, unwrap};
use super::parts::{Picture, placeholder};
use super::wire::{Content, Dialect, Reader, Taken};
use super::writer::{CallForm, Rules, Writer, arguments_as_text, call_of, function_name};
use crate::event::{ContextItem, ItemKind};
use contextweaver_core::catalog::ToolFormat;

/// Reads items, a request with `input`, or a response with `output`.
///
/// # Errors
/// [`AdapterError`] when an item is malformed, and when no item is of a type that the API has.
pub fn from_openai_responses(mut document: Value) -> Result<Conversation, AdapterError> {
    check_nesting(&document, "")?;
    let mut reader = Reader::new(Dialect::OpenaiResponses);
    read_member(&mut document, "instructions", ItemKind::Policy, &mut reader);
    read_member(&mut document, "input", ItemKind::UserTurn, &mut reader);
    let is_text = document.get("input").is_some_and(Value::is_null);
    let (document, items) = match document {
        Value::Object(around) if is_text => (Some(around), Vec::new()),
        other => unwrap(other, &["input", "output"])?,
    };
    let mut alike = Alike::default();
    for (number, item) in items.into_iter().enumerate() {
        let place = format!("items[{number}]");
        match item.get("type").and_then(Value::as_str).filter(|kind| !is_known(kind)) {
            Some(kind) => alike.unknown(&place, || format!("no item has the type `{}`", shown(kind))),
            None => alike.known(),
        }
        read_item(object(item, &place)?, &place, &mut reader)?;
    }
    alike.check()?;
    Ok(reader.finish(document))
}

/// Whether the API has items of a type: calls and results have new ones every few months, which end alike.
fn is_known(kind: &str) -> bool {
    let named = ["message", "reasoning", "compaction", "item_reference"].contains(&kind);
    named || kind.starts_with("mcp_") || kind.ends_with("_call") || kind.ends_with("_output")
}

/// Reads a member of the document that is a single text as a message of its own.
fn read_member(document: &mut Value, key: &str, kind: ItemKind, reader: &mut Reader) {
    if let Some(member @ Value::String(_)) = document.get_mut(key) {
        reader.whole(kind, Taken::text(member.take(), "", |_| String::new()), Some(key));
    }
}

pub(super) fn read_item(item: Map<String, Value>, place: &str, reader: &mut Reader) -> Result<(), AdapterError> {
    let kind = match item.get("type") {
        None | Some(Value::Null) if item.contains_key("role") => "message".to_owned(),
        _ => text(&item, "type", place)?.to_owned(),
    };
    let call_id = item.get("call_id").and_then(Value::as_str).map(str::to_owned);
    let has = |key: &str| item.get(key).is_some_and(|value| !value.is_null());
    match (kind.as_str(), call_id) {
        ("message", _) => read_message(item, place, reader),
        ("reasoning", _) => {
            let said = item.get("summary").and_then(Value::as_array).into_iter().flatten();
            let said: Vec<&str> = said.filter_map(|part| part.get("text")?.as_str()).collect();
            let said = if said.is_empty() { "[reasoning]".to_owned() } else { said.join("\n") };
            reader.whole(ItemKind::AgentMsg, Taken::nothing(Value::Object(item), |_| said), None);
            reader.is_thought();
            Ok(())
        }
        ("mcp_call", _) => {
            let name = text(&item, "name", place)?.to_owned();
            read_own_call(item, &name, "/arguments", reader)
        }
        (call, None) if call.ends_with("_call") && OWN_CALLS.iter().any(|key| item.contains_key(*key)) => {
            let member = OWN_CALLS.into_iter().find(|key| has(key)).unwrap_or_default();
            read_own_call(item, call, &format!("/{member}"), reader)
        }
        (output, Some(id)) if output.ends_with("_output") => {
            let taken = match item.get("output") {
                Some(Value::Array(_)) => Taken::output(Value::Object(item), "/output", |value| Ok(output_of(value)))?,
                Some(Value::String(_)) | None => Taken::text(Value::Object(item), "/output", |_| String::new()),
                Some(_) => Taken::json(Value::Object(item), "/output", |_| String::new()),
            };
            reader.result(&id, None, taken);
            Ok(())
        }
        (call, Some(id)) if call.ends_with("_call") => {
            let name = item.get("name").and_then(Value::as_str).unwrap_or(call).to_owned();
            let at = ["/arguments", "/input", "/action", "/operation"];
            let member = at.into_iter().find(|at| has(&at[1..])).unwrap_or("/arguments");
            reader.call(Some(&id), &name, None, Taken::arguments(Value::Object(item), member));
            Ok(())
        }
        ("function_call" | "function_call_output", None) => {
            Err(AdapterError::wrong(place, "call_id", "a string", item.get("call_id")))
        }
        _ => {
            reader.whole(ItemKind::AgentMsg, Taken::nothing(Value::Object(item), placeholder), None);
            Ok(())
        }
    }
}

/// What the provider's own calls say of themselves: the code that ran, what was looked for, or what was done.
const OWN_CALLS: [&str; 3] = ["code", "queries", "action"];

/// Reads a call that the provider ran itself, with its arguments at `at`. Its result is its output or its error; of a
/// call that tells neither, whether it succeeded.
fn read_own_call(item: Map<String, Value>, name: &str, at: &str, reader: &mut Reader) -> Result<(), AdapterError> {
    let id = item.get("id").and_then(Value::as_str).map(str::to_owned);
    let mut item = Value::Object(item);
    let says = |at: &&str| match item.pointer(at) {
        Some(Value::String(_)) => true,
        Some(Value::Array(list)) => !list.is_empty(),
        _ => false,
    };
    let from = ["/output", "/outputs", "/results", "/error", "/status"].into_iter().find(says);
    let failed = from == Some("/error") || item["status"] == "failed";
    let returned = from.map(|from| match item.pointer(from).and_then(Value::as_array) {
        None => Ok(Content::text(&mut item, from, |_| String::new())),
        Some(list) if list.iter().all(|block| block["type"].is_string()) => {
            Content::output(&mut item, from, |list| Ok(output_of(list)))
        }
        Some(_) => Ok(Content::json(&mut item, from, |_| String::new())),
    });
    reader.call(id.as_deref(), name, None, Taken::arguments(item, at));
    if let Some(content) = returned.transpose()? {
        reader.result_within(content);
        reader.is_error(failed);
    }
    Ok(())
}

fn read_message(mut message: Map<String, Value>, place: &str, reader: &mut Reader) -> Result<(), AdapterError> {
    let kind = match text(&message, "role", place)? {
        "system" | "developer" => ItemKind::Policy,
        "user" => ItemKind::UserTurn,
        "assistant" => ItemKind::AgentMsg,
        other => {
            let reason = format!("unknown role `{}`; use system, developer, user or assistant", shown(other));
            return Err(AdapterError::new(place, reason));
        }
    };
    match message.get_mut("content") {
        Some(Value::String(_)) => {
            reader.whole(kind, Taken::text(Value::Object(message), "/content", |_| String::new()), None);
        }
        Some(list @ Value::Array(_)) => {
            let parts = array(std::mem::replace(list, Value::Array(Vec::new())), place)?;
            read_parts(message, parts, kind, reader);
            reader.close(kind, "");
        }
        other => return Err(AdapterError::wrong(place, "content", "a string or an array of parts", other.as_deref())),
    }
    Ok(())
}

/// Writes the items of a conversation: the inverse of [`from_openai_responses`]. Events from other formats become items
/// of their own; kinds that the API does not have become developer messages.
///
/// # Errors
/// [`AdapterError`] when an event's metadata was edited so that it no longer fits.
pub fn to_openai_responses(conversation: &Conversation) -> Result<Value, AdapterError> {
    WRITER.write(conversation)
}

pub(super) const WRITER: Writer = Writer {
    dialect: Dialect::OpenaiResponses,
    list: &["input", "output"],
    fresh: Some(fresh),
    output: |output| to_blocks(output, &NAMES),
    picture: NAMES.picture,
    pictures_in_results: true,
    grows: &[],
    rules: Rules::Messages,
    calls: Some(CallForm { tools: ToolFormat::OpenAiResponses, longest_id: 64 }),
};

const NAMES: BlockNames = BlockNames { text: "input_text", picture };

fn picture(picture: &Picture) -> Value {
    json!({"type": "input_image", "image_url": picture.url()})
}

pub(super) fn fresh(item: &ContextItem, content: &Value) -> Value {
    match item.kind {
        ItemKind::UserTurn => json!({"type": "message", "role": "user", "content": content}),
        ItemKind::AgentMsg => json!({"type": "message", "role": "assistant", "content": content}),
        ItemKind::ToolCall => json!({"type": "function_call", "call_id": item.id, "name": function_name(item),
            "arguments": arguments_as_text(item)}),
        ItemKind::ToolResult => {
            json!({"type": "function_call_output", "call_id": call_of(item), "output": content})
        }
        ItemKind::Policy
        | ItemKind::PlanState
        | ItemKind::MemoryFact
        | ItemKind::DocSnippet
        | ItemKind::RetrievedDoc => json!({"type": "message", "role": "developer", "content": content}),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::adapters::testing::{extra, near, round_trips, shown as events, with, wrapped};
    use crate::adapters::{from_openai_chat, to_openai_chat};

    #[test]
    fn arguments_keep_every_digit() {
        let arguments = r#"{"id": 123456789012345678901, "share": 0.10, "at": 1e400}"#;
        let call = json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}]});
        let mut conversation = from_openai_chat(json!([call])).unwrap();
        assert_eq!(to_openai_responses(&conversation).unwrap()[0]["arguments"], arguments);
        conversation.events[0].item.metadata.shift_remove("wire");
        assert_eq!(to_openai_chat(&conversation).unwrap()[0], call);
    }

    #[test]
    fn items_become_events_and_items_again() {
        let request = json!({"model": "m", "instructions": "Be brief.", "input": [
            {"role": "user", "content": "Look it up"},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "this"}, {"type": "input_image", "image_url": "https://example.org/a"}]},
            {"type": "reasoning", "id": "rs1", "summary": [{"type": "summary_text", "text": "Search first."}],
             "encrypted_content": "gAAA"},
            {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "find", "arguments": "{\"q\":1}", "status": "completed"},
            {"type": "local_shell_call", "call_id": "c2", "action": {"type": "exec", "command": ["ls"]}},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "found"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAEC"}]},
            {"type": "local_shell_call_output", "call_id": "c2", "output": "a.txt"},
            {"type": "mcp_call", "id": "mcp1", "server_label": "s", "name": "ask", "arguments": "{}", "output": "yes", "error": null},
            {"type": "web_search_call", "id": "ws1", "status": "completed"},
            {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [
                {"type": "output_text", "text": "Done", "annotations": []}]}]});
        let conversation = from_openai_responses(request.clone()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        policy m1 "Be brief."
        user_turn m2 "Look it up"
        user_turn m3 "this"
        user_turn m3.2 "[input_image] https://example.org/a"
        agent_msg m4 (thought) "Search first."
        tool_call c1 find "{\"q\":1}"
        tool_call c2 local_shell_call "{\"type\":\"exec\",\"command\":[\"ls\"]}"
        tool_result result:c1 < c1 "found" +2 parts
        tool_result result:c2 < c2 "a.txt"
        tool_call mcp1 ask "{}"
        tool_result result:mcp1 < mcp1 "yes"
        agent_msg m10 "[web_search_call]"
        agent_msg m11 "Done"
        "#);
        assert_eq!(to_openai_responses(&conversation).unwrap(), request);
        for document in
            [json!({"input": "Hi"}), json!({"object": "response", "output": [request["input"][9]]}), json!([])]
        {
            assert_eq!(to_openai_responses(&from_openai_responses(document.clone()).unwrap()).unwrap(), document);
        }
    }

    #[test]
    fn what_the_provider_ran_itself_is_a_call() {
        let items = json!([
            {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "go bug"}},
            {"type": "code_interpreter_call", "id": "ci", "status": "completed", "container_id": "c", "code": "print(1)",
             "outputs": [{"type": "logs", "logs": "1"}, {"type": "image", "url": "https://example.org/plot.png"}]},
            {"type": "code_interpreter_call", "id": "ci2", "status": "completed", "code": "pass", "outputs": null},
            {"type": "file_search_call", "id": "fs", "status": "completed", "queries": ["port"],
             "results": [{"file_id": "f1", "filename": "run.md", "score": 0.5, "text": "Use port 8443."}]},
            {"type": "mcp_call", "id": "m", "server_label": "s", "name": "ask", "arguments": "{}", "output": null, "error": "gone"},
            {"type": "image_generation_call", "id": "ig", "status": "completed", "result": "AAEC"},
            {"type": "function_call_output", "call_id": "zz", "output": "of nothing"}]);
        let conversation = from_openai_responses(items.clone()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        tool_call ws web_search_call "{\"type\":\"search\",\"query\":\"go bug\"}"
        tool_result result:ws < ws "completed"
        tool_call ci code_interpreter_call "print(1)"
        tool_result result:ci < ci "[logs] 1\n[image] https://example.org/plot.png" +2 parts
        tool_call ci2 code_interpreter_call "pass"
        tool_result result:ci2 < ci2 "completed"
        tool_call fs file_search_call "[\"port\"]"
        tool_result result:fs < fs "[{\"file_id\":\"f1\",\"filename\":\"run.md\",\"score\":0.5,\"text\":\"Use port 8443.\"}]"
        tool_call m ask "{}"
        tool_result result:m < m (failed) "gone"
        agent_msg m6 "[image_generation_call]"
        tool_result result:zz "of nothing"
        "#);
        assert_eq!(to_openai_responses(&conversation).unwrap(), items);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let error = |items: Value| from_openai_responses(items).unwrap_err().to_string();
        insta::assert_snapshot!(error(json!({"model": "m"})), @"`input` or `output` is missing");
        insta::assert_snapshot!(error(json!([{"type": "function_call", "name": "f"}])), @"items[0]: `call_id` is missing; expected a string");
        insta::assert_snapshot!(error(json!([{"type": "message", "role": "user"}])), @"items[0]: `content` is missing; expected a string or an array of parts");
    }

    #[test]
    fn what_only_looks_alike_is_refused() {
        let robot = json!({"type": "robot", "data": {"text": "Hi"}});
        let error = from_openai_responses(json!([robot, {"type": "human"}])).unwrap_err().to_string();
        insta::assert_snapshot!(error, @"items[0]: no item has the type `robot`, and nothing else here is known either; this is a different format");
        for known in [
            json!({"role": "user", "content": "Hi"}),
            json!({"type": "web_search_call"}),
            json!({"type": "mcp_list_tools"}),
            json!({"type": "item_reference", "id": "m1"}),
        ] {
            let document = json!([robot, known]);
            assert_eq!(to_openai_responses(&from_openai_responses(document.clone()).unwrap()).unwrap(), document);
        }
    }

    fn items() -> impl Strategy<Value = Value> {
        let part = ("(?s).{0,6}", extra(), prop::sample::select(&["input_text", "output_text", "input_image"][..]))
            .prop_map(|(text, extra, kind)| match kind {
                "input_image" => with(json!({"type": kind, "image_url": text}), extra),
                _ => with(json!({"type": kind, "text": text}), extra),
            });
        let content =
            prop_oneof!["(?s).{0,6}".prop_map(Value::from), prop::collection::vec(part, 0..3).prop_map(Value::from),]
                .boxed();
        let said = (prop::sample::select(&["developer", "user", "assistant"][..]), content.clone(), extra())
            .prop_map(|(role, content, extra)| vec![with(json!({"role": role, "content": content}), extra)]);
        let called = ("[a-c]", "(?s).{0,6}", content, extra()).prop_map(|(id, arguments, output, extra)| {
            vec![
                with(json!({"type": "function_call", "call_id": id, "name": "f", "arguments": arguments}), extra),
                json!({"type": "reasoning", "summary": []}),
                json!({"type": "function_call_output", "call_id": id, "output": output}),
            ]
        });
        prop::collection::vec(prop_oneof![said, called], 0..6).prop_map(|turns| turns.concat().into())
    }

    #[test]
    fn nothing_is_lost() {
        round_trips(100, wrapped("input", items()), from_openai_responses, to_openai_responses);
    }

    #[test]
    fn what_reads_writes_the_same() {
        round_trips(10, near(wrapped("input", items())), from_openai_responses, to_openai_responses);
    }
}
