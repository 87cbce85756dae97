//! Transcripts of Codex: JSON lines, those of type `response_item` with an item of the Responses API, both ways.
//!
//! What the program notes beside (`session_meta`, `turn_context`, and `event_msg`, which repeats messages for its screen)
//! is counted and left out.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::Conversation;
use super::error::AdapterError;
use super::responses;
use super::transcripts::{Transcript, as_parts};
use super::wire::Dialect;
use super::writer::Writer;
use crate::event::ContextItem;

const ITEM: &str = "response_item";
const PAYLOAD: &str = "payload";

const TRANSCRIPT: Transcript = Transcript {
    dialect: Dialect::Codex,
    inside: PAYLOAD,
    repeats: &[],
    has_message,
    is_aside: |_| false,
    abandoned: |_, _| HashSet::new(),
    read: responses::read_item,
};

fn has_message(line: &Map<String, Value>) -> bool {
    line.get("type").is_some_and(|kind| kind == ITEM) && line.get(PAYLOAD).is_some_and(Value::is_object)
}

/// Whether an object is a line of such a transcript, and of no other format.
pub(super) fn is_line(line: &Value) -> bool {
    const KINDS: [&str; 5] = [ITEM, "session_meta", "event_msg", "turn_context", "compacted"];
    let kind = line.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| KINDS.contains(&kind)) && line.get(PAYLOAD).is_some_and(Value::is_object)
}

/// Reads a transcript.
///
/// # Errors
/// [`AdapterError`] with the number of the line, from 1, for the first that is not a JSON object or whose item is malformed.
pub fn from_codex(bytes: &[u8]) -> Result<Conversation, AdapterError> {
    TRANSCRIPT.read(bytes)
}

/// Writes a transcript: the inverse of [`from_codex`]. Events from other formats become items without a time.
///
/// # Errors
/// [`AdapterError`] when an event's metadata was edited so that it no longer fits.
pub fn to_codex(conversation: &Conversation) -> Result<String, AdapterError> {
    Transcript::write(&WRITER, conversation, |_, _, _| {})
}

pub(super) const WRITER: Writer =
    Writer { dialect: Dialect::Codex, list: &[], fresh: Some(fresh), ..responses::WRITER };

fn fresh(item: &ContextItem, content: &Value) -> Value {
    let mut payload = responses::fresh(item, content);
    if let Some(role) = payload.get("role") {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        payload["content"] = as_parts(payload["content"].take(), kind);
    }
    json!({"type": ITEM, PAYLOAD: payload})
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::adapters::from_openai_chat;
    use crate::adapters::testing::{near, round_trips_in_lines, shown};

    const LINES: &str = r#"{"timestamp":"2026-11-01T10:00:00Z","type":"session_meta","payload":{"id":"s","cwd":"/w","cli_version":"0.60.0"}}
{"timestamp":"2026-11-01T10:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Why?"}]}}
{"timestamp":"2026-11-01T10:00:00Z","type":"event_msg","payload":{"type":"user_message","message":"Why?"}}
{"timestamp":"2026-11-01T10:00:01Z","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"Look."}],"content":null,"encrypted_content":"gA"}}
{"timestamp":"2026-11-01T10:00:02Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"df\"]}","call_id":"c1"}}
{"timestamp":"2026-11-01T10:00:03Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"full"}}
{"timestamp":"2026-11-01T10:00:04Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"The disk is full."}]}}
{"timestamp":"2026-11-01T10:00:04Z","type":"event_msg","payload":{"type":"token_count","info":null}}
"#;

    #[test]
    fn lines_become_events_and_lines_again() {
        let conversation = from_codex(LINES.as_bytes()).unwrap();
        insta::assert_snapshot!(shown(&conversation), @r#"
        user_turn m1 "Why?"
        agent_msg m2 (thought) "Look."
        tool_call c1 shell "{\"command\":[\"df\"]}"
        tool_result result:c1 < c1 "full"
        agent_msg m5 "The disk is full."
        "#);
        insta::assert_snapshot!(conversation.remarks.join("\n"), @"lines that are not messages were left out: 2 event_msg, 1 session_meta");
        assert_eq!(to_codex(&conversation).unwrap(), LINES);
        let session = Conversation { document: None, ..conversation.clone() };
        assert_eq!(from_codex(to_codex(&session).unwrap().as_bytes()).unwrap().events, conversation.events);
    }

    #[test]
    fn messages_of_others_become_items() {
        let messages = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]);
        let written = to_codex(&from_openai_chat(messages).unwrap()).unwrap();
        insta::assert_snapshot!(written, @r#"
        {"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}}
        {"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Ho"}]}}
        "#);
    }

    #[test]
    fn what_reads_writes_the_same() {
        let lines: Value = LINES.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
        round_trips_in_lines(10, near(Just(lines)), from_codex, to_codex);
    }
}
