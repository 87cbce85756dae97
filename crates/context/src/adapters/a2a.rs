//! The Agent2Agent protocol: tasks as outputs and conversations. Agent cards are catalogs, which the core reads.
//!
//! The spellings of version 0.3 (`kind`, `file`, `input-required`, role `agent`), of versions before it (`type`) and
//! of 1.0 (parts without a kind, `TASK_STATE_INPUT_REQUIRED`, `ROLE_AGENT`) are read. Sessions of several agents are
//! [session JSONL](super::from_session_lines).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::error::{AdapterError, array, check_nesting, object, shown, text};
use super::mcp::add_missing;
use super::wire::FUNCTION_NAME;
use super::{Conversation, Event};
use crate::event::{ContextItem, ItemKind, Part, PartBody, Status, ToolOutput};

/// The metadata key of a task's result that says which of the task's lists the parts are from.
const PARTS: &str = "a2a_parts";

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskState {
    /// Given to the agent, which has not started yet.
    Submitted,
    /// Being worked on.
    Working,
    /// Waiting for an answer from whoever gave the task.
    InputRequired,
    /// Waiting for credentials.
    AuthRequired,
    /// Finished as asked.
    Completed,
    /// Stopped by whoever gave the task.
    Canceled,
    /// Ended with an error.
    Failed,
    /// Refused by the agent.
    Rejected,
    /// The agent does not say, or uses a name that this version does not know.
    Unknown,
}

impl TaskState {
    /// The state with this name in any version of the protocol.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let name = name.strip_prefix("TASK_STATE_").unwrap_or(name).to_ascii_lowercase().replace('_', "-");
        match name.as_str() {
            "submitted" => Self::Submitted,
            "working" => Self::Working,
            "input-required" => Self::InputRequired,
            "auth-required" => Self::AuthRequired,
            "completed" => Self::Completed,
            "canceled" | "cancelled" => Self::Canceled,
            "failed" => Self::Failed,
            "rejected" => Self::Rejected,
            _ => Self::Unknown,
        }
    }

    /// The status of the call that gave the task: an unfinished task is partial.
    #[must_use]
    pub fn status(self) -> Status {
        match self {
            Self::Completed => Status::Ok,
            Self::Submitted | Self::Working | Self::InputRequired | Self::AuthRequired | Self::Unknown => {
                Status::Partial
            }
            Self::Canceled | Self::Failed | Self::Rejected => Status::Error,
        }
    }
}

/// The state and the output of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskOutcome {
    /// The state of the task.
    pub state: TaskState,
    /// The parts of its artifacts, then those of the message of its status: a question, or why it failed.
    pub output: ToolOutput,
    /// The task without the content of those parts, for round trips.
    task: Map<String, Value>,
    /// The list that the parts are from.
    source: Source,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Source {
    /// The artifacts, with the number of parts of each.
    Artifacts(Vec<usize>),
    /// The artifacts, and behind them the message of the status.
    ArtifactsAndMessage(Vec<usize>),
    Message,
    Nowhere,
}

/// Reads a task: its state and its output. Text parts become texts, data parts their compact JSON, files bytes or
/// links; other parts stay as they are.
///
/// # Errors
/// [`AdapterError`] with the place when the value is not a task or its artifacts are malformed.
pub fn from_a2a_task(task: Value) -> Result<TaskOutcome, AdapterError> {
    check_nesting(&task, "")?;
    let mut task = object(task, "")?;
    let status = task.get("status");
    let state = status.and_then(|status| status.get("state")).and_then(Value::as_str);
    let Some(state) = state.map(TaskState::named) else {
        return Err(AdapterError::wrong("status", "state", "the name of a state", status.and_then(|s| s.get("state"))));
    };
    let mut parts = Vec::new();
    let mut source = Source::Nowhere;
    if let Some(artifacts) = task.get_mut("artifacts").and_then(Value::as_array_mut).filter(|list| !list.is_empty()) {
        let mut counts = Vec::with_capacity(artifacts.len());
        for (number, artifact) in artifacts.iter_mut().enumerate() {
            let before = parts.len();
            take_parts(artifact, &format!("artifacts[{number}]"), &mut parts)?;
            counts.push(parts.len() - before);
        }
        let message = task.get_mut("status").and_then(|status| status.get_mut("message"));
        source = match message.filter(|message| message.get("parts").is_some_and(Value::is_array)) {
            Some(message) => {
                take_parts(message, "status.message", &mut parts)?;
                Source::ArtifactsAndMessage(counts)
            }
            None => Source::Artifacts(counts),
        };
    } else if let Some(message) = task.get_mut("status").and_then(|status| status.get_mut("message"))
        && message.is_object()
    {
        take_parts(message, "status.message", &mut parts)?;
        source = Source::Message;
    }
    let output = ToolOutput { parts, is_error: state.status() == Status::Error, ..ToolOutput::default() };
    Ok(TaskOutcome { state, output, task, source })
}

fn take_parts(holder: &mut Value, place: &str, parts: &mut Vec<Part>) -> Result<(), AdapterError> {
    let Some(list) = holder.get_mut("parts") else {
        return Err(AdapterError::wrong(place, "parts", "an array", None));
    };
    let list = array(std::mem::replace(list, Value::Array(Vec::new())), &format!("{place}.parts"))?;
    parts.extend(list.into_iter().map(read_part));
    Ok(())
}

fn read_part(part: Value) -> Part {
    let Value::Object(mut rest) = part else { return Part::new(PartBody::Unknown(part)) };
    match read_body(&mut rest) {
        Some(body) => Part { body, annotations: Map::new(), other: rest },
        None => Part::new(PartBody::Unknown(Value::Object(rest))),
    }
}

/// The content of a part, replaced by `null` in the part.
fn read_body(part: &mut Map<String, Value>) -> Option<PartBody> {
    if let Some(place @ Value::String(_)) = part.get_mut("text") {
        return place.take().as_str().map(|text| PartBody::Text(text.to_owned()));
    }
    if let Some(place) = part.get_mut("data").filter(|data| !data.is_null()) {
        let json = place.to_string();
        // A number may lose its last digit on the way through text; such data stays as it is.
        if serde_json::from_str::<Value>(&json).ok()? != *place {
            return None;
        }
        *place = Value::Null;
        return Some(PartBody::Text(json));
    }
    let is_nested = part.get("file").is_some_and(Value::is_object);
    let file = if is_nested { part.get_mut("file")?.as_object_mut()? } else { part };
    let about = |keys: [&str; 2]| keys.iter().find_map(|key| file.get(*key)?.as_str()).map(str::to_owned);
    let (name, media_type) = (about(["name", "filename"]), about(["mimeType", "mediaType"]));
    let link = ["uri", "url"].into_iter().find_map(|key| file.get(key)?.as_str()).map(str::to_owned);
    if let Some(uri) = link {
        let name = name.unwrap_or_else(|| uri.clone());
        return Some(PartBody::ResourceLink { uri, name, about: Map::new() });
    }
    let place = ["bytes", "raw"].into_iter().find(|key| file.contains_key(*key))?;
    let place = file.get_mut(place)?;
    let data = place.as_str()?;
    let bytes = STANDARD.decode(data).ok().filter(|bytes| STANDARD.encode(bytes) == data)?;
    *place = Value::Null;
    Some(PartBody::ResourceBlob { uri: name.unwrap_or_default(), media_type, bytes })
}

/// Writes the task of an outcome: the inverse of [`from_a2a_task`].
#[must_use]
pub fn to_a2a_task(outcome: &TaskOutcome) -> Value {
    let mut task = outcome.task.clone();
    let mut parts = outcome.output.parts.iter().map(write_part);
    if let Source::Artifacts(counts) | Source::ArtifactsAndMessage(counts) = &outcome.source {
        for (number, count) in counts.iter().enumerate() {
            let some = parts.by_ref().take(*count).collect();
            put_parts(task.get_mut("artifacts").and_then(|artifacts| artifacts.get_mut(number)), some);
        }
    }
    if let Source::Message | Source::ArtifactsAndMessage(_) = &outcome.source {
        put_parts(task.get_mut("status").and_then(|status| status.get_mut("message")), parts.collect());
    }
    Value::Object(task)
}

fn put_parts(holder: Option<&mut Value>, parts: Vec<Value>) {
    if let Some(place) = holder.and_then(|holder| holder.get_mut("parts")) {
        *place = Value::Array(parts);
    }
}

fn write_part(part: &Part) -> Value {
    let mut rest = part.other.clone();
    let (keys, value) = match &part.body {
        PartBody::Unknown(value) => return value.clone(),
        PartBody::Text(text) if rest.get("data").is_some_and(Value::is_null) => {
            (["data", "data"], serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())))
        }
        PartBody::Text(text) => (["text", "text"], Value::String(text.clone())),
        PartBody::ResourceBlob { bytes, .. } => (["bytes", "raw"], Value::String(STANDARD.encode(bytes))),
        _ => return Value::Object(rest),
    };
    let holder = match rest.get_mut("file") {
        Some(Value::Object(file)) => file,
        _ => &mut rest,
    };
    let key = keys.into_iter().find(|key| holder.contains_key(*key)).unwrap_or(keys[1]);
    holder.insert(key.to_owned(), value);
    add_missing(&mut rest, &part.other);
    Value::Object(rest)
}

/// Reads a task as a conversation: the messages of its history, then its output as the result of a call that represents
/// giving the task.
///
/// # Errors
/// As [`from_a2a_task`], and for a message of the history without a known role.
pub fn from_a2a_task_conversation(task: Value) -> Result<Conversation, AdapterError> {
    let outcome = from_a2a_task(task)?;
    let mut events: Vec<Event> = Vec::new();
    let history = outcome.task.get("history").and_then(Value::as_array).cloned().unwrap_or_default();
    for (number, message) in history.into_iter().enumerate() {
        let place = format!("history[{number}]");
        let mut message = object(message, &place)?;
        let kind = match text(&message, "role", &place)? {
            "user" | "ROLE_USER" => ItemKind::UserTurn,
            "agent" | "ROLE_AGENT" => ItemKind::AgentMsg,
            other => {
                let reason = format!("unknown role `{}`; use user or agent", shown(other));
                return Err(AdapterError::new(place, reason));
            }
        };
        let parts = array(message.shift_remove("parts").unwrap_or_default(), &format!("{place}.parts"))?;
        let said: Vec<String> = parts.into_iter().filter_map(|part| said(&read_part(part).body)).collect();
        let mut item = ContextItem::new(format!("m{}", number + 1), kind, said.join("\n"));
        item.metadata.insert("a2a".to_owned(), Value::Object(message));
        events.push(item.into());
    }
    let name = outcome.task.get("id").and_then(Value::as_str).unwrap_or("task");
    let call = ContextItem::new(format!("task:{name}"), ItemKind::ToolCall, format!("task {name}"));
    let text = super::blocks::text_of(&outcome.output);
    let mut result = ContextItem::new(format!("result:task:{name}"), ItemKind::ToolResult, text).under(call.id.clone());
    // Where the parts of the output were always serialises.
    result.metadata.insert(PARTS.to_owned(), serde_json::to_value(&outcome.source).unwrap_or_default());
    events.push(call.into());
    events.push(Event { item: result, output: Some(outcome.output), envelope: None });
    Ok(Conversation { events, document: Some(outcome.task), ..Conversation::default() })
}

/// What a prompt shows of a part of a message: its text, or a word for a file.
fn said(body: &PartBody) -> Option<String> {
    let file = |words: &[&str]| {
        let words: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
        [&["[file]"], words.as_slice()].concat().join(" ")
    };
    match body {
        PartBody::Text(text) => Some(text.clone()),
        PartBody::ResourceBlob { uri: name, media_type, .. } => {
            Some(file(&[name, media_type.as_deref().filter(|_| name.is_empty()).unwrap_or_default()]))
        }
        PartBody::ResourceLink { uri, name, .. } => Some(file(&[name.as_str(), if name == uri { "" } else { uri }])),
        _ => None,
    }
}

/// Writes a conversation as a task: the inverse of [`from_a2a_task_conversation`]. A conversation from another format
/// becomes a completed task: its events are the history, with the role `agent` for what the agent said or called and
/// `user` for everything else, and the agent's last message is the artifact.
#[must_use]
pub fn to_a2a_task_conversation(conversation: &Conversation) -> Value {
    if let (Some(task), Some(last)) = (&conversation.document, conversation.events.last())
        && let Some(Ok(source)) = last.item.metadata.get(PARTS).map(Source::deserialize)
        && let Some(output) = &last.output
    {
        let outcome = TaskOutcome { state: TaskState::Unknown, output: output.clone(), task: task.clone(), source };
        return to_a2a_task(&outcome);
    }
    let message = |item: &ContextItem| {
        let role = match item.kind {
            ItemKind::AgentMsg | ItemKind::ToolCall => "agent",
            _ => "user",
        };
        // The text of some calls is their arguments alone.
        let text = match item.metadata.get(FUNCTION_NAME).and_then(Value::as_str) {
            Some(name) => format!("{name}({})", item.text),
            None => item.text.clone(),
        };
        json!({"kind": "message", "role": role, "messageId": item.id, "parts": [{"kind": "text", "text": text}]})
    };
    let history: Vec<Value> = conversation.events.iter().map(|event| message(&event.item)).collect();
    let answer = conversation.events.iter().rev().find(|event| event.item.kind == ItemKind::AgentMsg);
    let artifacts: Vec<Value> = answer
        .map(|event| json!({"artifactId": event.item.id, "parts": [{"kind": "text", "text": event.item.text}]}))
        .into_iter()
        .collect();
    json!({"kind": "task", "id": "conversation", "status": {"state": "completed"}, "history": history, "artifacts": artifacts})
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::adapters::testing::{any_json, extra, shown as events, with};

    #[test]
    fn states_of_all_versions_have_a_status() {
        let status = |name: &str| TaskState::named(name).status();
        for name in ["completed", "TASK_STATE_COMPLETED"] {
            assert_eq!(status(name), Status::Ok, "{name}");
        }
        for name in ["submitted", "working", "input-required", "TASK_STATE_AUTH_REQUIRED", "unknown", "new"] {
            assert_eq!(status(name), Status::Partial, "{name}");
        }
        for name in ["failed", "canceled", "cancelled", "TASK_STATE_REJECTED"] {
            assert_eq!(status(name), Status::Error, "{name}");
        }
    }

    #[test]
    fn a_task_becomes_an_output_and_a_conversation() {
        let task = json!({"kind": "task", "id": "t1", "contextId": "c1",
            "status": {"state": "input-required", "message": {"role": "agent", "parts": [{"kind": "text", "text": "Which?"}]}},
            "artifacts": [
                {"artifactId": "a1", "name": "report", "parts": [
                    {"kind": "text", "text": "Revenue"},
                    {"kind": "data", "data": {"q4": 2.5}},
                    {"kind": "file", "file": {"name": "a.bin", "mimeType": "x/y", "bytes": "AAEC"}}]},
                {"artifactId": "a2", "parts": [
                    {"text": "new", "mediaType": "text/plain"},
                    {"url": "https://example.org/b", "filename": "b"},
                    {"raw": "AAEC"},
                    {"kind": "other"}]}],
            "history": [
                {"role": "user", "messageId": "h1", "parts": [{"kind": "text", "text": "Report!"}]},
                {"role": "ROLE_AGENT", "parts": [{"text": "On it"}]},
                {"role": "user", "parts": [
                    {"kind": "text", "text": "With this"},
                    {"kind": "file", "file": {"name": "q4.csv", "mimeType": "text/csv", "bytes": "AAEC"}},
                    {"kind": "file", "file": {"mimeType": "image/png", "bytes": "AAEC"}},
                    {"url": "https://example.org/c", "filename": "c"},
                    {"url": "https://example.org/d"},
                    {"kind": "other"}]}]});
        let outcome = from_a2a_task(task.clone()).unwrap();
        assert_eq!((outcome.state, outcome.output.is_error), (TaskState::InputRequired, false));
        let bodies: Vec<String> = outcome.output.parts.iter().map(|part| format!("{:?}", part.body)).collect();
        insta::assert_snapshot!(bodies.join("\n"), @r#"
        Text("Revenue")
        Text("{\"q4\":2.5}")
        ResourceBlob { uri: "a.bin", media_type: Some("x/y"), bytes: [0, 1, 2] }
        Text("new")
        ResourceLink { uri: "https://example.org/b", name: "b", about: {} }
        ResourceBlob { uri: "", media_type: None, bytes: [0, 1, 2] }
        Unknown(Object {"kind": String("other")})
        Text("Which?")
        "#);
        assert_eq!(to_a2a_task(&outcome), task);
        let conversation = from_a2a_task_conversation(task.clone()).unwrap();
        assert_eq!(to_a2a_task_conversation(&conversation), task);
        insta::assert_snapshot!(events(&conversation), @r#"
        user_turn m1 "Report!"
        agent_msg m2 "On it"
        user_turn m3 "With this\n[file] q4.csv\n[file] image/png\n[file] c https://example.org/c\n[file] https://example.org/d"
        tool_call task:t1 "task t1"
        tool_result result:task:t1 < task:t1 "Revenue\n{\"q4\":2.5}\nnew\nWhich?" +8 parts
        "#);
        let error = |task: Value| from_a2a_task_conversation(task).unwrap_err().to_string();
        insta::assert_snapshot!(error(json!({"id": "t"})), @"status: `state` is missing; expected the name of a state");
        insta::assert_snapshot!(error(json!({"status": {"state": "working"}, "artifacts": [{}]})), @"artifacts[0]: `parts` is missing; expected an array");
        insta::assert_snapshot!(error(json!({"status": {"state": "working"}, "history": [{"role": "x", "parts": []}]})), @"history[0]: unknown role `x`; use user or agent");
    }

    proptest! {
        #[test]
        fn nothing_is_lost(parts in prop::collection::vec((any_json(), "(?s).{0,6}", 0..6, extra()), 0..4), in_message in any::<bool>(), parts_of_status in prop::option::of(".{0,4}")) {
            let parts: Vec<Value> = parts.into_iter().map(|(data, text, kind, extra)| match kind {
                0 => with(json!({"kind": "text", "text": text}), extra),
                1 => with(json!({"kind": "data", "data": data}), extra),
                2 => with(json!({"raw": text}), extra),
                3 => with(json!({"kind": "file", "file": {"bytes": "AAEC", "name": text}}), extra),
                4 => with(json!({"type": "file", "file": {"uri": text}}), extra),
                _ => data,
            }).collect();
            let task = match in_message {
                true => json!({"status": {"state": "failed", "message": {"parts": parts}}}),
                false => json!({"status": {"state": "completed"}, "artifacts": [{"parts": parts}, {"parts": []}]}),
            };
            let task = match (in_message, parts_of_status) {
                (false, Some(text)) => with(task, json!({"status": {"state": "failed", "message": {"parts": [{"text": text}]}}}).as_object().cloned().unwrap_or_default()),
                _ => task,
            };
            prop_assert_eq!(to_a2a_task(&from_a2a_task(task.clone()).unwrap()), task);
        }

        #[test]
        fn no_json_stops_the_readers(value in any_json()) {
            if let Ok(outcome) = from_a2a_task(value.clone()) {
                prop_assert_eq!(&to_a2a_task(&outcome), &value);
            }
            if let Ok(conversation) = from_a2a_task_conversation(value.clone()) {
                prop_assert_eq!(&to_a2a_task_conversation(&conversation), &value);
            }
        }
    }
}
