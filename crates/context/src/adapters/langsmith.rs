//! Runs of LangSmith: a list of runs, an object with `runs`, or one run a line, each with its `child_runs` or with theirs
//! beside it; both ways.
//!
//! Runs are read in the order in which they began. A run of a model is a turn, and says each message once however often
//! later runs repeat it; a run of a tool adds a call and a result that no model was told. Chains, parsers and retrievers
//! are counted and left out.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Conversation;
use super::error::{AdapterError, check_nesting, object, shown};
use super::spans::{Messages, ToolRun, Turn, as_text, call, content, documents, left_out, object_at, split};
use super::transcripts::uuid_of;
use super::wire::IS_ERROR;

/// Whether a value is a run.
pub(super) fn is_run(value: &Value) -> bool {
    value.get("run_type").is_some_and(Value::is_string)
        && ["inputs", "outputs", "child_runs", "dotted_order"].iter().any(|key| value.get(key).is_some())
}

/// Whether a document holds runs.
pub(super) fn is_document(document: &Value) -> bool {
    let runs = document.get("runs").unwrap_or(document);
    is_run(runs) || runs.as_array().and_then(|runs| runs.first()).is_some_and(is_run)
}

/// Reads runs.
///
/// # Errors
/// [`AdapterError`] when no run is of a model or a tool, or a message is malformed.
pub fn from_langsmith(mut document: Value) -> Result<Conversation, AdapterError> {
    check_nesting(&document, "")?;
    if let Some(runs) = document.get_mut("runs") {
        document = runs.take();
    }
    let mut runs = Vec::new();
    let mut pending = documents(document);
    pending.reverse();
    while let Some(mut run) = pending.pop() {
        if let Some(children) = run.get_mut("child_runs").and_then(Value::as_array_mut) {
            pending.extend(std::mem::take(children).into_iter().rev());
        }
        runs.push(object(run, "runs")?);
    }
    // The order of a trace; where runs do not say it, their beginnings.
    let began = |run: &Map<String, Value>| {
        let time = |key: &str| run.get(key).map(as_text).unwrap_or_default();
        (time("start_time"), time("dotted_order"))
    };
    runs.sort_by_cached_key(began);
    let mut messages = Messages::default();
    let mut others: BTreeMap<String, usize> = BTreeMap::new();
    let mut read = 0;
    for run in &runs {
        let text = |key: &str| run.get(key).and_then(Value::as_str).unwrap_or_default();
        let place = format!("run `{}`", shown(text("id")));
        let (inputs, outputs) = (run.get("inputs"), run.get("outputs"));
        match text("run_type") {
            "llm" => {
                let all = |list: Vec<Value>| -> Result<Vec<Value>, AdapterError> {
                    let read: Result<Vec<_>, _> = list.iter().map(|message| read_message(message, &place)).collect();
                    Ok(read?.concat())
                };
                let sent = all(inputs.map_or_else(Vec::new, sent))?;
                let answered = all(outputs.map_or_else(Vec::new, answered))?;
                let within = run.get("parent_run_id").and_then(Value::as_str);
                messages.turn(Turn { sent, answered, from: text("id"), within });
                read += 1;
            }
            "tool" => {
                let (id, result) = outcome(outputs, run.get("error"));
                let input = inputs.map(|inputs| only(inputs, "input")).unwrap_or(&Value::Null);
                let failed = run.get("error").is_some_and(|error| !error.is_null());
                let result = result.as_ref();
                messages.tool(&ToolRun { id, name: text("name"), arguments: input, result, failed }, text("id"));
                read += 1;
            }
            kind => *others.entry(shown(kind)).or_default() += 1,
        }
    }
    if read == 0 {
        return Err(AdapterError::new(
            "",
            "no run has the `run_type` `llm` or `tool`; export whole traces, not only their roots",
        ));
    }
    let mut conversation = messages.finish()?;
    conversation.remarks.extend(left_out("runs that are not messages", &others));
    Ok(conversation)
}

/// The only member of an object, if it is called so; otherwise the object.
fn only<'v>(value: &'v Value, key: &str) -> &'v Value {
    value.as_object().filter(|members| members.len() == 1).and_then(|members| members.get(key)).unwrap_or(value)
}

/// What a model was sent: its rules, which providers take beside the messages, and the messages.
fn sent(inputs: &Value) -> Vec<Value> {
    let member = |key: &str| inputs.get(key).filter(|found| !found.is_null());
    let rules = ["system", "instructions"].into_iter().find_map(member);
    let mut sent: Vec<Value> = rules.map(|rules| json!({"role": "system", "content": rules})).into_iter().collect();
    sent.extend(["messages", "prompts", "input", "prompt"].into_iter().find_map(member).map_or_else(Vec::new, batch));
    sent
}

/// What a model answered.
fn answered(outputs: &Value) -> Vec<Value> {
    let first = |list: &Value| batch(list).into_iter().next();
    let message = |choice: &Value| match choice.get("message") {
        Some(message) => message.clone(),
        None => json!({"role": "assistant", "content": choice.get("text")}),
    };
    if let Some(found) = outputs.get("generations").or_else(|| outputs.get("choices")) {
        return first(found).iter().map(message).collect();
    }
    let found = ["messages", "message", "output"].into_iter().find_map(|key| outputs.get(key));
    let said = |value: Value| match value {
        Value::String(text) => json!({"role": "assistant", "content": text}),
        other => other,
    };
    match found {
        Some(found) => batch(found).into_iter().map(said).collect(),
        None if outputs.get("content").is_some() => vec![with_role(outputs, "assistant")],
        None => Vec::new(),
    }
}

fn with_role(message: &Value, role: &str) -> Value {
    let mut message = message.clone();
    if message.get("role").is_none() && message.get("kwargs").is_none() {
        message["role"] = role.into();
    }
    message
}

/// The messages of a value: a list, the first list of a batch, or one message.
fn batch(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(entries) => match entries.first() {
            Some(first @ Value::Array(_)) => batch(first),
            _ => entries.clone(),
        },
        Value::Null => Vec::new(),
        one => vec![one.clone()],
    }
}

/// The id of the call that a run of a tool answers, where it says it, and the result.
fn outcome<'v>(outputs: Option<&'v Value>, error: Option<&Value>) -> (Option<&'v str>, Option<Value>) {
    let output = outputs.map(|outputs| only(outputs, "output"));
    let message = output.map(|output| output.get("kwargs").unwrap_or(output));
    let id = message.and_then(|message| message.get("tool_call_id")?.as_str());
    let result = match (id, message) {
        (Some(_), Some(message)) => message.get("content").cloned(),
        (None, Some(message)) if !message.is_null() => Some(message.clone()),
        _ => error.filter(|error| !error.is_null()).map(|error| format!("Error: {}", as_text(error)).into()),
    };
    (id, result)
}

/// A message as messages of OpenAI's chat: calls and results may be parts of it, or items beside it.
fn read_message(message: &Value, place: &str) -> Result<Vec<Value>, AdapterError> {
    if let Value::String(text) = message {
        return Ok(vec![json!({"role": "user", "content": text})]);
    }
    let class = message.get("id").and_then(Value::as_array).and_then(|path| path.last()).and_then(Value::as_str);
    let members = match object_at(message, "kwargs").or_else(|| object_at(message, "data")) {
        Some(members) => members,
        None => message.as_object().ok_or_else(|| {
            AdapterError::new(place, format!("a message must be an object, not {}", super::error::describe(message)))
        })?,
    };
    let said = members.get("role").and_then(Value::as_str);
    let kind = said.or(class).or_else(|| message.get("type").and_then(Value::as_str)).unwrap_or_default();
    let role = match kind.trim_end_matches("Chunk").trim_end_matches("Message").to_ascii_lowercase().as_str() {
        "human" | "user" => "user",
        "ai" | "assistant" | "model" => "assistant",
        "system" | "developer" => "system",
        "tool" => "tool",
        item => {
            let unknown = || {
                let reason = format!("unknown kind of message `{}`; use human, ai, system or tool", shown(kind));
                AdapterError::new(place, reason)
            };
            return read_item(item, members).map(|read| vec![read]).ok_or_else(unknown);
        }
    };
    let list = |value: &Value| value.as_array().filter(|calls| !calls.is_empty()).cloned();
    let calls = members.get("tool_calls").and_then(list);
    let calls = calls.or_else(|| list(object_at(message, "kwargs")?.get("additional_kwargs")?.get("tool_calls")?));
    let mut calls: Vec<Value> = calls.into_iter().flatten().map(as_call).collect();
    let mut messages = Vec::new();
    let text = match members.get("content") {
        Some(Value::Array(parts)) => {
            // Blocks of calls may say again what `tool_calls` says.
            let listed: Vec<Value> = calls.iter().map(|call| call["id"].clone()).collect();
            let mut said = Vec::new();
            for part in parts {
                match part_in(part) {
                    Part::Call(call) if listed.is_empty() || !call["id"].is_null() && !listed.contains(&call["id"]) => {
                        calls.push(call);
                    }
                    Part::Call(_) => {}
                    Part::Result(result) => messages.push(result),
                    Part::Said(part) => said.push(part),
                }
            }
            content(said)
        }
        found => found.cloned().unwrap_or_default(),
    };
    let refusal = members.get("refusal").filter(|refusal| refusal.is_string());
    let text = match refusal {
        Some(refusal) if text.is_null() || text == "" => json!([{"type": "refusal", "refusal": refusal}]),
        _ => text,
    };
    if !messages.is_empty() && text.is_null() && calls.is_empty() {
        return Ok(messages);
    }
    let mut written = json!({"role": role, "content": text});
    if let Some(id) = members.get("tool_call_id") {
        written["tool_call_id"] = id.clone();
    }
    let has_failed = members.get(IS_ERROR) == Some(&Value::Bool(true))
        || members.get("status").is_some_and(|status| status == "error");
    if role == "tool" && has_failed {
        written[IS_ERROR] = true.into();
    }
    if !calls.is_empty() {
        written["tool_calls"] = calls.into();
    }
    messages.push(written);
    Ok(messages)
}

/// What a part of a message is.
enum Part {
    /// A call in the form of OpenAI's chat.
    Call(Value),
    /// A message with the result of a call.
    Result(Value),
    Said(Value),
}

fn part_in(part: &Value) -> Part {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    match text("type").unwrap_or_default() {
        kind if kind.ends_with("tool_use") || kind == "tool_call" => {
            let arguments = ["input", "args", "arguments"].into_iter().find_map(|key| part.get(key));
            Part::Call(call(text("id"), text("name").unwrap_or(kind), arguments.unwrap_or(&json!({}))))
        }
        kind if kind.ends_with("tool_result") => {
            Part::Result(result(text("tool_use_id"), part.get("content"), part.get("is_error")))
        }
        "thinking" => Part::Said(json!({"type": "reasoning", "text": text("thinking")})),
        "output_text" | "input_text" => Part::Said(json!({"type": "text", "text": text("text")})),
        _ => Part::Said(match part {
            Value::String(text) => json!({"type": "text", "text": text}),
            part => part.clone(),
        }),
    }
}

fn result(call: Option<&str>, returned: Option<&Value>, failed: Option<&Value>) -> Value {
    let returned = match returned {
        Some(Value::Null) | None => "".into(),
        Some(Value::Array(parts)) => content(parts.clone()),
        Some(Value::String(text)) => text.as_str().into(),
        Some(other) => Value::String(other.to_string()),
    };
    let mut message = json!({"role": "tool", "tool_call_id": call, "content": returned});
    if failed == Some(&Value::Bool(true)) {
        message[IS_ERROR] = true.into();
    }
    message
}

/// An item of OpenAI's Responses that is no message; `None` for anything else.
fn read_item(kind: &str, item: &Map<String, Value>) -> Option<Value> {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    match (kind, text("call_id")) {
        ("reasoning", _) => {
            let said = item.get("summary").and_then(Value::as_array).into_iter().flatten();
            let said: Vec<&str> = said.filter_map(|part| part.get("text")?.as_str()).collect();
            let said = if said.is_empty() { "[reasoning]".to_owned() } else { said.join("\n") };
            Some(json!({"role": "assistant", "content": [{"type": "reasoning", "text": said}]}))
        }
        (output, Some(id)) if output.ends_with("_output") => Some(result(Some(id), item.get("output"), None)),
        (of, Some(id)) if of.ends_with("_call") => {
            let arguments = ["arguments", "input", "action", "operation"].into_iter().find_map(|key| item.get(key));
            let call = call(Some(id), text("name").unwrap_or(of), arguments.unwrap_or(&json!({})));
            Some(json!({"role": "assistant", "content": null, "tool_calls": [call]}))
        }
        // What the provider ran itself.
        (own, None) if own.ends_with("_call") => Some(json!({"role": "assistant", "content": [item]})),
        _ => None,
    }
}

/// A call of LangChain as one of OpenAI's chat, which stays as it is.
fn as_call(found: Value) -> Value {
    match found.get("name").and_then(Value::as_str) {
        Some(name) => call(found.get("id").and_then(Value::as_str), name, found.get("args").unwrap_or(&json!({}))),
        None => found,
    }
}

/// Writes a conversation as the run of one call of a model, whose id is made from the messages: it has no time, and
/// [`from_langsmith`] reads the same messages.
///
/// # Errors
/// [`AdapterError`] when an event's metadata was edited so that it no longer fits.
pub fn to_langsmith(conversation: &Conversation) -> Result<Value, AdapterError> {
    let (input, output) = split(conversation)?;
    let mut run = json!({"name": "conversation", "run_type": "llm", "inputs": {"messages": input}});
    run["outputs"] = json!({"messages": output.into_iter().collect::<Vec<_>>()});
    let id = uuid_of(&run.to_string());
    let mut ids = json!({"id": id, "trace_id": id});
    if let (Value::Object(ids), Value::Object(run)) = (&mut ids, run) {
        ids.extend(run);
    }
    Ok(json!([ids]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::testing::shown as events;

    fn message(class: &str, kwargs: &Value) -> Value {
        json!({"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", class], "kwargs": kwargs})
    }

    fn runs() -> Value {
        let human = message("HumanMessage", &json!({"content": "Why?", "type": "human"}));
        let called = message(
            "AIMessage",
            &json!({"content": [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "c1", "name": "df", "input": {}}],
            "tool_calls": [{"name": "df", "args": {"path": "/"}, "id": "c1", "type": "tool_call"}]}),
        );
        let answered = message("ToolMessage", &json!({"content": "full", "tool_call_id": "c1", "name": "df"}));
        let said = message("AIMessage", &json!({"content": "Full."}));
        let run = |id: &str, kind: &str, began: &str, inputs: Value, outputs: Value| json!({"id": id, "run_type": kind, "name": if kind == "tool" { "df" } else { "m" }, "start_time": began, "inputs": inputs, "outputs": outputs, "events": []});
        let mut root = run("r", "chain", "1", json!({"input": "Why?"}), json!({"output": "Full."}));
        root["child_runs"] = json!([
            run(
                "c",
                "llm",
                "4",
                json!({"messages": [[human, called, answered]]}),
                json!({"generations": [[{"text": "Full.", "message": said}]]})
            ),
            run("b", "tool", "3", json!({"input": "{'path': '/'}"}), json!({"output": "full"})),
            run(
                "a",
                "llm",
                "2",
                json!({"messages": [[human]]}),
                json!({"generations": [[{"text": "I look.", "message": called}]]})
            ),
        ]);
        json!([root])
    }

    #[test]
    fn what_runs_repeat_is_said_once() {
        let conversation = from_langsmith(runs()).unwrap();
        insta::assert_snapshot!(events(&conversation), @r#"
        user_turn m1 "Why?"
        agent_msg m2 "I look."
        tool_call c1 df "{\"path\":\"/\"}"
        tool_result result:c1 < c1 "full"
        agent_msg m4 "Full."
        "#);
        insta::assert_snapshot!(conversation.remarks.join("\n"), @"runs that are not messages were left out: 1 chain");
        assert_eq!(from_langsmith(json!({"runs": runs()})).unwrap(), conversation);
        let again = from_langsmith(to_langsmith(&conversation).unwrap()).unwrap();
        assert_eq!(events(&again), events(&conversation));
        assert_eq!(to_langsmith(&again).unwrap(), to_langsmith(&conversation).unwrap());
    }

    #[test]
    fn the_forms_of_messages_are_read() {
        let llm =
            |inputs: Value, outputs: Value| json!({"id": "a", "run_type": "llm", "inputs": inputs, "outputs": outputs});
        let failed = json!({"id": "t", "run_type": "tool", "name": "df", "inputs": {"path": "/"}, "outputs": null, "error": "gone"});
        let runs = [
            json!([llm(
                json!({"messages": [{"role": "user", "content": "Hi"}]}),
                json!({"choices": [{"message": {"role": "assistant", "content": "Ho"}}]})
            )]),
            json!([llm(json!({"prompts": ["Hi"]}), json!({"generations": [[{"text": "Ho"}]]}))]),
            json!([llm(json!({"messages": [{"type": "human", "data": {"content": "Hi"}}]}), json!({"content": "Ho"}))]),
            json!([llm(json!({"input": "Hi"}), json!({"output": "Ho"})), failed]),
        ];
        insta::assert_snapshot!(runs.map(|runs| events(&from_langsmith(runs).unwrap())).join("\n\n"), @r#"
        user_turn m1 "Hi"
        agent_msg m2 "Ho"

        user_turn m1 "Hi"
        agent_msg m2 "Ho"

        user_turn m1 "Hi"
        agent_msg m2 "Ho"

        user_turn m1 "Hi"
        agent_msg m2 "Ho"
        tool_call t df "{\"path\":\"/\"}"
        tool_result result:t < t (failed) "Error: gone"
        "#);
    }

    #[test]
    fn rules_and_calls_of_providers_are_read() {
        let run = |id: &str, inputs: Value, outputs: Value| json!({"id": id, "run_type": "llm", "start_time": id, "inputs": inputs, "outputs": outputs});
        let ask = json!({"role": "user", "content": "Weather in Paris?"});
        let called = json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Paris"}}]});
        let answered = json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": [{"type": "text", "text": "no such city"}]},
            {"type": "text", "text": "And Rome?"}]});
        let said = json!({"role": "assistant", "content": [{"type": "text", "text": "No idea."}]});
        let anthropic = json!([
            run("1", json!({"system": "Never guess.", "messages": [ask]}), json!({"message": called})),
            run(
                "2",
                json!({"system": [{"type": "text", "text": "Never guess."}], "messages": [ask, called, answered]}),
                said
            ),
        ]);
        let items = json!([
            {"id": "rs", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": null},
            {"id": "ws", "type": "web_search_call", "action": {"type": "search", "query": "Paris"}, "status": "completed"},
            {"id": "fc", "type": "function_call", "call_id": "t1", "name": "weather", "arguments": "{\"city\": \"Paris\"}", "status": "completed"}]);
        let mut history = vec![ask.clone()];
        history.extend(items.as_array().cloned().unwrap_or_default());
        history.push(json!({"type": "function_call_output", "call_id": "t1", "output": "rainy"}));
        let said = json!([{"id": "m", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rain.", "annotations": []}]}]);
        let responses = json!([
            run(
                "1",
                json!({"instructions": "Never guess.", "input": [ask], "tools": []}),
                json!({"id": "resp", "output": items})
            ),
            run(
                "2",
                json!({"instructions": "Never guess.", "input": history, "messages": null}),
                json!({"output": said})
            ),
        ]);
        insta::assert_snapshot!([anthropic, responses].map(|runs| events(&from_langsmith(runs).unwrap())).join("\n\n"), @r#"
        policy m1 "Never guess."
        user_turn m2 "Weather in Paris?"
        agent_msg m3 (thought) "Hm."
        agent_msg m3.2 "Let me look."
        tool_call t1 weather "{\"city\":\"Paris\"}"
        tool_result result:t1 < t1 (failed) "no such city"
        user_turn m5 "And Rome?"
        agent_msg m6 "No idea."

        policy m1 "Never guess."
        user_turn m2 "Weather in Paris?"
        agent_msg m3 (thought) "Hm."
        agent_msg m4 "[web_search_call] Paris"
        tool_call t1 weather "{\"city\": \"Paris\"}"
        tool_result result:t1 < t1 "rainy"
        agent_msg m7 "Rain."
        "#);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_run() {
        let error = |runs: Value| from_langsmith(runs).unwrap_err().to_string();
        insta::assert_snapshot!(error(json!([{"id": "a", "run_type": "chain", "inputs": {}}])), @"no run has the `run_type` `llm` or `tool`; export whole traces, not only their roots");
        insta::assert_snapshot!(error(json!([{"id": "a", "run_type": "llm", "inputs": {"messages": [{"type": "robot", "content": ""}]}}])), @"run `a`: unknown kind of message `robot`; use human, ai, system or tool");
        insta::assert_snapshot!(error(json!([{"id": "a", "run_type": "llm", "inputs": {"messages": [7]}}])), @"run `a`: a message must be an object, not a number");
    }
}
