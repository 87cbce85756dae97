//! What traces share: calls of models that each repeat the conversation before them, and calls of tools beside.
//!
//! Both become messages of OpenAI's chat, each once, in the order in which they were first said.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value, json};

use super::error::AdapterError;
use super::wire::{Dialect, IS_ERROR, KEY, Opening, wire_of};
use super::{Conversation, Event, from_openai_chat, to_openai_chat};

/// The messages of a trace so far.
#[derive(Debug, Default)]
pub(super) struct Messages {
    said: Vec<Value>,
    /// How often each message was said.
    times: HashMap<String, usize>,
    called: HashSet<String>,
    answered: HashSet<String>,
    /// Calls in order, by the name of what is called.
    waiting: HashMap<String, VecDeque<String>>,
}

/// What a trace says of a call of a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolRun<'v> {
    /// The id of the call, where the trace knows it.
    pub(super) id: Option<&'v str>,
    pub(super) name: &'v str,
    pub(super) arguments: &'v Value,
    pub(super) result: Option<&'v Value>,
    /// Whether it failed.
    pub(super) failed: bool,
}

/// The member of a message that says which span or run it is from.
pub(super) const FROM: &str = "from";

impl Messages {
    /// Adds what one call of a model was sent and what it answered, without what was there before.
    pub(super) fn turn(&mut self, messages: Vec<Value>, from: &str) {
        let mut times: HashMap<String, usize> = HashMap::new();
        for message in messages {
            let key = key_of(&message);
            let number = times.entry(key.clone()).or_default();
            *number += 1;
            if self.times.get(&key).copied().unwrap_or(0) < *number {
                self.times.insert(key, *number);
                self.say(message, from);
            }
        }
    }

    fn say(&mut self, mut message: Value, from: &str) {
        if let Some(id) = message.get("tool_call_id").and_then(Value::as_str)
            && !self.answered.insert(id.to_owned())
        {
            return;
        }
        if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
            let id = |call: &Value| call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            calls.retain(|call| !self.called.contains(&id(call)));
            for call in calls.iter() {
                let name = call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
                self.called.insert(id(call));
                self.waiting.entry(name.to_owned()).or_default().push_back(id(call));
            }
            if calls.is_empty() && message.get("content").is_none_or(Value::is_null) {
                return;
            }
        }
        if let Value::Object(members) = &mut message {
            members.insert(FROM.to_owned(), from.into());
        }
        self.said.push(message);
    }

    /// Adds a call of a tool, unless a model has said it, and its result, unless a model was told it. A call without an id
    /// is the first of its name that waits for a result.
    pub(super) fn tool(&mut self, run: &ToolRun, from: &str) {
        let ToolRun { id, name, arguments, result, failed } = *run;
        let id = id.map(str::to_owned).or_else(|| {
            let waiting = self.waiting.get_mut(name)?;
            std::iter::from_fn(|| waiting.pop_front()).find(|id| !self.answered.contains(id))
        });
        let id = id.unwrap_or_else(|| from.to_owned());
        if !self.called.contains(&id) {
            self.say(json!({"role": "assistant", "content": null, "tool_calls": [call(&id, name, arguments)]}), from);
        }
        if let Some(result) = result {
            let mut message = json!({"role": "tool", "content": as_text(result), "tool_call_id": id});
            if failed {
                message[IS_ERROR] = true.into();
            }
            self.say(message, from);
        }
    }

    /// The conversation.
    pub(super) fn finish(self) -> Result<Conversation, AdapterError> {
        from_openai_chat(Value::Array(self.said))
    }
}

/// What makes two messages the same: the ids of calls and results, otherwise role and content.
fn key_of(message: &Value) -> String {
    if let Some(id) = message.get("tool_call_id") {
        return format!("result {id}");
    }
    let calls = message.get("tool_calls").and_then(Value::as_array).filter(|calls| !calls.is_empty());
    match calls {
        Some(calls) => calls.iter().map(|call| format!("call {} ", call["id"])).collect(),
        None => format!("{} {}", message["role"], message["content"]),
    }
}

/// A call in a message of OpenAI's chat.
pub(super) fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": as_text(arguments)}})
}

/// A text as it is, other values as JSON.
pub(super) fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The JSON in a text, or the text.
pub(super) fn as_json(text: &Value) -> Value {
    text.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| text.clone())
}

/// Message parts as the content of a message: a single text is a string.
pub(super) fn content(mut parts: Vec<Value>) -> Value {
    let single = parts.len() == 1 && parts[0].get("type").is_some_and(|kind| kind == "text");
    let text = parts.first_mut().filter(|_| single).and_then(|part| part.get_mut("text")).map(Value::take);
    match text {
        Some(text @ Value::String(_)) => text,
        _ if parts.is_empty() => Value::Null,
        _ => parts.into(),
    }
}

/// The messages of a conversation, and the last of them apart where a model says it.
pub(super) fn split(conversation: &Conversation) -> Result<(Vec<Value>, Option<Value>), AdapterError> {
    let bare = Conversation { events: newer(conversation)?, ..Conversation::default() };
    let Value::Array(mut messages) = to_openai_chat(&bare)? else { return Ok((Vec::new(), None)) };
    for members in messages.iter_mut().filter_map(Value::as_object_mut) {
        [FROM, IS_ERROR].into_iter().for_each(|key| drop(members.shift_remove(key)));
    }
    let last = messages.pop_if(|message| message.get("role").is_some_and(|role| role == "assistant"));
    Ok((messages, last))
}

/// The events without what is kept of messages with the older form of calls, which traces do not have.
fn newer(conversation: &Conversation) -> Result<Vec<Event>, AdapterError> {
    let mut is_older = HashMap::new();
    let mut events = conversation.events.clone();
    for Event { item, .. } in &mut events {
        let Some(wire) = wire_of(item)?.filter(|wire| wire.format == Dialect::OpenaiChat) else { continue };
        if let Some(Opening { value, .. }) = wire.opens {
            is_older.insert(wire.message, value["role"] == "function" || value["function_call"].is_object());
        }
        if is_older.get(&wire.message) == Some(&true) {
            item.metadata.shift_remove(KEY);
        }
    }
    Ok(events)
}

/// The documents of a file: one, or one a line.
pub(super) fn documents(document: Value) -> Vec<Value> {
    match document {
        Value::Array(documents) => documents,
        document => vec![document],
    }
}

/// A remark about what was left out, by kind.
pub(super) fn left_out(what: &str, counts: &std::collections::BTreeMap<String, usize>) -> Option<String> {
    let counts: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    (!counts.is_empty()).then(|| format!("{what} were left out: {}", counts.join(", ")))
}

/// A member that is an object, if it is there.
pub(super) fn object_at<'v>(value: &'v Value, key: &str) -> Option<&'v Map<String, Value>> {
    value.get(key)?.as_object()
}
