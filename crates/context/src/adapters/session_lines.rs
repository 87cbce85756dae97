//! Session JSONL: one event per line, both ways. MCP and A2A sessions share this form.
//!
//! A line is `{"type", "id"?, "text" or "content", "parent_id"?, "token_estimate"?, "sensitivity"?, "metadata"?,
//! "artifact"?, "result"?, "envelope"?}`; `result` holds a `CallToolResult` for the firewall, `envelope` what something
//! else has made of a result. Blank lines are ignored. An unknown `type` is an error, since taking it for another type
//! would change who said what. Other members are kept. A line that is written again has an id and `text`.

use serde_json::{Map, Value, json};

use super::error::{AdapterError, object, parse, shown, text};
use super::mcp::{from_mcp_result, to_mcp_result};
use super::recognise::lines;
use super::weaver::read_envelope;
use super::{Conversation, Event};
use crate::event::{ContentHash, ContextItem, ItemKind, ResultEnvelope, Sensitivity};

/// The metadata key with members of a line that our types do not have.
const OTHER: &str = "session_line";

/// Reads a session. An event without an id gets the id `<prefix>-line-<number>`.
///
/// # Errors
/// [`AdapterError`] with the number of the line, from 1, for the first line that is not UTF-8, is longer than
/// [`MAX_LINE_BYTES`](super::MAX_LINE_BYTES), is not a JSON object, or has an unknown type or a member of the wrong
/// type.
pub fn from_session_lines(bytes: &[u8], prefix: &str) -> Result<Conversation, AdapterError> {
    let mut events = Vec::new();
    for line in lines(bytes) {
        let (number, line) = line?;
        let place = format!("line {number}");
        events.push(read_line(object(parse(line, &place)?, &place)?, &place, || format!("{prefix}-line-{number}"))?);
    }
    Ok(Conversation { events, ..Conversation::default() })
}

fn read_line(mut line: Map<String, Value>, place: &str, name: impl FnOnce() -> String) -> Result<Event, AdapterError> {
    let bad = |reason: String| AdapterError::new(place, reason);
    let kind: ItemKind = text(&line, "type", place)?.parse().map_err(|error| bad(format!("{error}")))?;
    let id = match line.get("id") {
        None | Some(Value::Null) => name(),
        Some(_) => text(&line, "id", place)?.to_owned(),
    };
    let output = match line.get("result") {
        Some(result) if kind == ItemKind::ToolResult => {
            Some(from_mcp_result(&result.to_string()).map_err(|error| bad(format!("`result`: {error}")))?)
        }
        _ => None,
    };
    let envelope = match line.get("envelope") {
        Some(envelope) if kind == ItemKind::ToolResult && !envelope.is_null() => {
            let read = read_envelope(envelope.clone()).map_err(|error| bad(format!("`envelope`: {error}")))?;
            Some(Box::new(read))
        }
        _ => None,
    };
    if output.is_some() && envelope.is_some() {
        return Err(bad("`result` and `envelope` stand for the same result; leave one out".to_owned()));
    }
    let content = match (line.get("text"), line.get("content"), &output, &envelope) {
        (Some(_), Some(_), ..) => return Err(bad("`text` and `content` mean the same; leave one out".to_owned())),
        (Some(_), None, ..) => text(&line, "text", place)?.to_owned(),
        (None, Some(_), ..) => text(&line, "content", place)?.to_owned(),
        (None, None, Some(output), _) => super::blocks::text_of(output),
        (None, None, None, Some(envelope)) => envelope.summary.clone(),
        (None, None, None, None) => return Err(AdapterError::wrong(place, "text", "a string", None)),
    };
    if envelope.as_ref().is_some_and(|envelope| !is_of(envelope, &content)) {
        let reason =
            "`text` is neither the summary of `envelope` nor the content of one of its artifacts; leave it out";
        return Err(bad(reason.to_owned()));
    }
    let mut item = ContextItem::new(id, kind, content);
    if line.get("parent_id").is_some_and(|parent| !parent.is_null()) {
        item.parent_id = Some(text(&line, "parent_id", place)?.into());
    }
    item.token_estimate = match line.get("token_estimate") {
        None | Some(Value::Null) => None,
        Some(count) => {
            let wrong = || AdapterError::wrong(place, "token_estimate", "a whole number of at least 0", Some(count));
            Some(count.as_u64().ok_or_else(wrong)?)
        }
    };
    if line.get("sensitivity").is_some_and(|level| !level.is_null()) {
        let level: Result<Sensitivity, _> = text(&line, "sensitivity", place)?.parse();
        item.sensitivity = level.map_err(|error| bad(format!("`sensitivity`: {error}")))?;
    }
    item.metadata = match line.shift_remove("metadata") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(members)) => members,
        Some(other) => return Err(AdapterError::wrong(place, "metadata", "an object", Some(&other))),
    };
    item.artifact = match line.shift_remove("artifact") {
        None | Some(Value::Null) => None,
        Some(artifact) => Some(serde_json::from_value(artifact).map_err(|error| bad(format!("`artifact`: {error}")))?),
    };
    for key in ["type", "id", "text", "content", "parent_id", "token_estimate", "sensitivity"] {
        line.shift_remove(key);
    }
    if output.is_some() {
        line.shift_remove("result");
    }
    if envelope.is_some() {
        line.shift_remove("envelope");
    }
    if !line.is_empty() {
        item.metadata.insert(OTHER.to_owned(), Value::Object(line));
    }
    Ok(Event { item, output, envelope })
}

/// Whether a text is the summary of an envelope, or what one of its artifacts holds.
fn is_of(envelope: &ResultEnvelope, text: &str) -> bool {
    let is_kept = |hash: ContentHash| envelope.artifacts.iter().any(|artifact| artifact.content_hash == hash);
    text == envelope.summary || is_kept(ContentHash::of(text.as_bytes()))
}

/// Writes a conversation, one line per event, each with a line break: the inverse of [`from_session_lines`]. Facts and
/// episodes are not part of it.
///
/// # Errors
/// [`AdapterError`] when a structured content is not JSON.
pub fn to_session_lines(conversation: &Conversation) -> Result<String, AdapterError> {
    let mut written = String::new();
    for Event { item, output, envelope } in &conversation.events {
        let mut line = Map::new();
        let mut put = |key: &str, value: Value| line.insert(key.to_owned(), value);
        put("type", json!(item.kind));
        put("id", json!(item.id));
        put("text", json!(item.text));
        if let Some(parent) = &item.parent_id {
            put("parent_id", json!(parent));
        }
        if let Some(count) = item.token_estimate {
            put("token_estimate", json!(count));
        }
        if item.sensitivity != Sensitivity::default() {
            put("sensitivity", json!(item.sensitivity));
        }
        if let Some(artifact) = &item.artifact {
            put("artifact", json!(artifact));
        }
        if let Some(output) = output {
            put("result", to_mcp_result(output)?);
        }
        if let Some(envelope) = envelope {
            put("envelope", json!(envelope));
        }
        let mut metadata = item.metadata.clone();
        match metadata.shift_remove(OTHER) {
            Some(Value::Object(other)) => super::mcp::add_missing(&mut line, &other),
            Some(other) => {
                metadata.insert(OTHER.to_owned(), other);
            }
            None => {}
        }
        if !metadata.is_empty() {
            line.insert("metadata".to_owned(), Value::Object(metadata));
        }
        written.push_str(&Value::Object(line).to_string());
        written.push('\n');
    }
    Ok(written)
}

/// Whether an object with this `type` is a line of a session, known or not.
pub(super) fn looks_like_a_line(first: &Value) -> bool {
    let has = |key: &&str| first.get(key).is_some();
    first.get("type").is_some_and(Value::is_string) && ["text", "content", "result", "envelope"].iter().any(has)
}

/// The kind that a line claims, for messages.
pub(super) fn kind_of(first: &Value) -> String {
    shown(first.get("type").and_then(Value::as_str).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::{Part, PartBody, Status, ToolOutput};

    #[test]
    fn lines_become_events_and_lines_again() {
        let session = r#"{"type": "user_turn", "text": "Hi", "lang": "en"}

{"type": "tool_call", "id": "tc1", "content": "f(x=1)", "parent_id": "s-line-1", "token_estimate": 7}
{"type": "tool_result", "id": "tr1", "parent_id": "tc1", "sensitivity": "internal", "metadata": {"a": [1]}, "result": {"content": [{"type": "text", "text": "ok"}]}}
{"type": "tool_result", "id": "tr2", "parent_id": "tc1", "envelope": {"schema_version": 1, "kind": "firewall", "status": "ok", "summary": "900 keys", "facts": ["a: 1"], "artifacts": [], "views": []}}
"#;
        let conversation = from_session_lines(session.as_bytes(), "s").unwrap();
        let written = to_session_lines(&conversation).unwrap();
        insta::assert_snapshot!(written, @r#"
        {"type":"user_turn","id":"s-line-1","text":"Hi","lang":"en"}
        {"type":"tool_call","id":"tc1","text":"f(x=1)","parent_id":"s-line-1","token_estimate":7}
        {"type":"tool_result","id":"tr1","text":"ok","parent_id":"tc1","sensitivity":"internal","result":{"content":[{"type":"text","text":"ok"}]},"metadata":{"a":[1]}}
        {"type":"tool_result","id":"tr2","text":"900 keys","parent_id":"tc1","envelope":{"status":"ok","summary":"900 keys","facts":["a: 1"],"artifacts":[],"views":[]}}
        "#);
        assert_eq!(from_session_lines(written.as_bytes(), "other").unwrap(), conversation);
    }

    #[test]
    fn a_wrong_line_is_named_by_its_number() {
        let error = |bytes: &[u8]| from_session_lines(bytes, "s").unwrap_err().to_string();
        insta::assert_snapshot!(error(b"{\"type\":\"user_turn\",\"text\":\"a\"}\n\n[]"), @"line 3: expected an object, not an array");
        insta::assert_snapshot!(error(b"\n{\"type\":"), @"line 2: not JSON: EOF while parsing a value at line 1 column 8");
        insta::assert_snapshot!(error(br#"{"type":"thought","text":"a"}"#), @"line 1: unknown kind of event `thought`; use user_turn, agent_msg, tool_call, tool_result, doc_snippet, retrieved_doc, memory_fact, plan_state, policy");
        insta::assert_snapshot!(error(b"{}"), @"line 1: `type` is missing; expected a string");
        insta::assert_snapshot!(error(br#"{"type":"policy"}"#), @"line 1: `text` is missing; expected a string");
        insta::assert_snapshot!(error(br#"{"type":"policy","text":"a","content":"b"}"#), @"line 1: `text` and `content` mean the same; leave one out");
        insta::assert_snapshot!(error(br#"{"type":"policy","text":["a"]}"#), @"line 1: `text` must be a string, not an array");
        insta::assert_snapshot!(error(br#"{"type":"policy","text":"a","token_estimate":-1}"#), @"line 1: `token_estimate` must be a whole number of at least 0, not a number");
        insta::assert_snapshot!(error(br#"{"type":"policy","text":"a","sensitivity":"secret"}"#), @"line 1: `sensitivity`: unknown sensitivity `secret`; use public, internal, confidential, restricted");
        insta::assert_snapshot!(error(br#"{"type":"tool_result","id":"r","result":{"content":"a"}}"#), @"line 1: `result`: `content` must be an array of parts, as in the result of an MCP tool");
        let envelope = |more: &str| error(format!(r#"{{"type":"tool_result","id":"r",{more}}}"#).as_bytes());
        let ours = r#""envelope":{"status":"ok","summary":"a","facts":[],"artifacts":[],"views":[]}"#;
        insta::assert_snapshot!(envelope(r#""envelope":"a""#), @"line 1: `envelope`: expected an object, not a string");
        insta::assert_snapshot!(envelope(r#""envelope":{"status":"ok","summary":"a","facts":[]}"#), @"line 1: `envelope`: not an envelope: missing field `artifacts`");
        insta::assert_snapshot!(envelope(r#""envelope":{"frame_id":"f","capability_id":"c","summary":"s"}"#), @"line 1: `envelope`: `created_at` is missing; expected a string");
        insta::assert_snapshot!(envelope(&format!(r#""text":"b",{ours}"#)), @"line 1: `text` is neither the summary of `envelope` nor the content of one of its artifacts; leave it out");
        insta::assert_snapshot!(envelope(&format!(r#""result":{{"content":[]}},{ours}"#)), @"line 1: `result` and `envelope` stand for the same result; leave one out");
        insta::assert_snapshot!(error(b"{\"type\":\"policy\",\"text\":\"a\"}\nab\xff"), @"line 2: byte 3 is not UTF-8; save the file as UTF-8");
    }

    fn some_json() -> impl Strategy<Value = Value> {
        prop_oneof![Just(Value::Null), any::<i32>().prop_map(Value::from), ".{0,6}".prop_map(Value::from)]
    }

    prop_compose! {
        fn some_event()(
            kind in prop::sample::select(&ItemKind::ALL[..]), id in ".{0,6}", text in "(?s).{0,12}",
            parent in prop::option::of(".{0,4}"), count in prop::option::of(any::<u64>()),
            level in prop::sample::select(&Sensitivity::ALL[..]),
            metadata in prop::collection::btree_map("[a-z]{1,3}", some_json(), 0..3),
            output in prop::option::of((prop::collection::vec(".{0,6}", 0..3), any::<bool>())),
            is_processed in any::<bool>(),
        ) -> Event {
            let mut item = ContextItem::new(id, kind, text.clone()).with_sensitivity(level);
            item.parent_id = parent.map(Into::into);
            item.token_estimate = count;
            item.metadata = metadata.into_iter().collect();
            let output = output.filter(|_| kind == ItemKind::ToolResult).map(|(texts, is_error)| ToolOutput {
                parts: texts.into_iter().map(|text| Part::new(PartBody::Text(text))).collect(),
                is_error,
                ..ToolOutput::default()
            });
            let is_processed = is_processed && kind == ItemKind::ToolResult && output.is_none();
            let envelope = is_processed.then(|| Box::new(ResultEnvelope {
                status: Status::Partial,
                summary: text,
                facts: vec!["a: 1".to_owned()],
                artifacts: Vec::new(),
                views: Vec::new(),
                provenance: Map::new(),
                firewall: None,
            }));
            Event { item, output, envelope }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(events in prop::collection::vec(some_event(), 0..5)) {
            let conversation = Conversation { events, ..Conversation::default() };
            let written = to_session_lines(&conversation).unwrap();
            prop_assert_eq!(from_session_lines(written.as_bytes(), "x").unwrap(), conversation);
        }

        #[test]
        fn no_bytes_stop_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = from_session_lines(&bytes, "x");
        }
    }
}
