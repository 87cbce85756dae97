//! Helpers for the tests of all formats.

use std::cell::Cell;
use std::fmt::Debug;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use super::parts::is_thought;
use super::writer::failed;
use super::{Conversation, Event};
use crate::event::Transcript;

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

/// Objects with a list of `lists` under `key`, and other members.
pub(super) fn wrapped(key: &'static str, lists: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (lists, extra()).prop_map(move |(list, extra)| with(json!({key: list}), extra))
}

/// Any JSON, and documents in which other values stand in some places.
pub(super) fn near(documents: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any_json()), 1..3);
    let changed = (documents, changes).prop_map(|(mut document, changes)| {
        for (place, value) in changes {
            let mut places = Vec::new();
            pointers(&document, String::new(), &mut places);
            if let Some(there) = document.pointer_mut(&places[place.index(places.len())]) {
                *there = value;
            }
        }
        document
    });
    prop_oneof![1 => any_json(), 3 => changed]
}

/// The pointers to a value that stands at `at`, and to all in it.
fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(place, value)| pointers(value, format!("{at}/{place}"), found));
        }
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| pointers(value, format!("{at}/{key}"), found));
        }
        _ => {}
    }
    found.push(at);
}

/// What `read` takes of `documents` is a conversation that `write` writes as it was. It takes `least` of a hundred, or more.
pub(super) fn round_trips<E: Debug>(
    least: u32,
    documents: impl Strategy<Value = Value>,
    read: impl Fn(Value) -> Result<Conversation, E>,
    write: impl Fn(&Conversation) -> Result<Value, E>,
) {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let taken = Cell::new(0);
    let result = runner.run(&documents, |document| {
        if let Ok(conversation) = read(document.clone()) {
            taken.set(taken.get() + 1);
            prop_assert_eq!(write(&conversation).unwrap(), document);
            let events = conversation.events.into_iter().map(|event| event.item).collect();
            prop_assert!(Transcript::new(events).is_ok());
        }
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
    let (taken, all) = (taken.get(), runner.config().cases);
    assert!(taken * 100 >= least * all, "{taken} of {all} documents were read");
}

/// As [`round_trips`], for a form with one line for each element of the documents.
pub(super) fn round_trips_in_lines<E: Debug>(
    least: u32,
    documents: impl Strategy<Value = Value>,
    read: impl Fn(&[u8]) -> Result<Conversation, E>,
    write: impl Fn(&Conversation) -> Result<String, E>,
) {
    let lists = documents.prop_map(|document| if document.is_array() { document } else { json!([document]) });
    let text = |list: &Value| list.as_array().unwrap().iter().map(|line| format!("{line}\n")).collect::<String>();
    let list = |text: String| text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
    round_trips(least, lists, |document| read(text(&document).as_bytes()), |read| write(read).map(list));
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
