//! Helpers for the tests of all formats.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::parts::is_thought;
use super::writer::failed;
use super::{Conversation, Event};

const WORDS: &[&str] = &[
    "text",
    "user",
    "assistant",
    "model",
    "tool",
    "function",
    "tool_use",
    "tool_result",
    "c1",
    "message",
    "human",
    "ai",
    "request",
    "response",
    "tool-call",
    "tool-return",
];

const KEYS: &[&str] = &[
    "role",
    "content",
    "type",
    "text",
    "id",
    "name",
    "input",
    "parts",
    "messages",
    "contents",
    "tool_calls",
    "tool_call_id",
    "call_id",
    "function",
    "functionCall",
    "functionResponse",
    "tool_use_id",
    "system",
    "events",
    "kind",
    "calls",
    "goal",
    "result",
    "status",
    "state",
    "artifacts",
    "history",
    "seq",
    "tool",
    "output",
    "arguments",
    "other",
    "uuid",
    "message",
    "payload",
    "run_type",
    "inputs",
    "outputs",
    "generations",
    "kwargs",
    "resourceSpans",
    "scopeSpans",
    "spans",
    "attributes",
    "key",
    "value",
    "arrayValue",
    "kvlistValue",
    "values",
    "data",
    "part_kind",
    "tool_name",
    "args",
    "instructions",
    "additional_kwargs",
];

/// JSON of any shape, with a preference for the member names that the readers look for.
pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        prop::sample::select(WORDS).prop_map(Value::from),
        "(?s).{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(KEYS), inner), 0..5)
                .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

/// Members that no format knows.
pub(super) fn extra() -> impl Strategy<Value = Map<String, Value>> {
    let value =
        prop_oneof![Just(json!(null)), Just(json!({"a": [1, {"b": null}]})), any::<i32>().prop_map(Value::from)];
    prop::collection::btree_map("x_[a-z]{1,2}", value, 0..2).prop_map(|members| members.into_iter().collect())
}

/// `value` with the members of `extra`.
pub(super) fn with(mut value: Value, extra: Map<String, Value>) -> Value {
    if let Value::Object(members) = &mut value {
        members.extend(extra);
    }
    value
}

/// The events on one line each, for snapshots.
pub(super) fn shown(conversation: &Conversation) -> String {
    let lines = conversation.events.iter().map(|Event { item, output, .. }| {
        let parent = item.parent_id.as_ref().map_or(String::new(), |parent| format!(" < {parent}"));
        let name = item.metadata.get("function_name").and_then(Value::as_str);
        let name = name.map_or(String::new(), |name| format!(" {name}"));
        let marks = [(is_thought(item), " (thought)"), (failed(item), " (failed)")];
        let marks: String = marks.iter().filter(|(has_it, _)| *has_it).map(|(_, mark)| *mark).collect();
        let parts = output.as_ref().map_or(String::new(), |output| format!(" +{} parts", output.parts.len()));
        format!("{} {}{parent}{name}{marks} {:?}{parts}", item.kind, item.id, item.text)
    });
    lines.collect::<Vec<_>>().join("\n")
}
