//! Transcripts of Claude Code: JSON lines, those of type `user` and `assistant` with a message of the Anthropic API, both
//! ways.
//!
//! Other lines (summaries, snapshots of files, notes of the program) are counted and left out, and so are messages of
//! other agents (`isSidechain`). `toolUseResult` repeats a result in a form of its own, and is not read.

use serde_json::{Map, Value, json};

use super::Conversation;
use super::anthropic;
use super::error::AdapterError;
use super::transcripts::{Transcript, as_parts, uuid_of};
use super::wire::Dialect;
use super::writer::{Rules, Writer};
use crate::event::ContextItem;

const TRANSCRIPT: Transcript = Transcript {
    dialect: Dialect::ClaudeCode,
    inside: "message",
    repeats: &["toolUseResult"],
    has_message,
    is_aside: |line| line.get("isSidechain") == Some(&Value::Bool(true)),
    read: anthropic::read_message,
};

fn has_message(line: &Map<String, Value>) -> bool {
    let kind = line.get("type").and_then(Value::as_str);
    matches!(kind, Some("user" | "assistant")) && line.get("message").is_some_and(Value::is_object)
}

/// Whether an object is a line of such a transcript, and of no other format.
pub(super) fn is_line(line: &Value) -> bool {
    let has = |key: &str| line.get(key).is_some();
    let of_session = has("uuid") || has("parentUuid") || has("sessionId") || has("leafUuid");
    line.get("type").is_some_and(Value::is_string) && of_session && !has("text") || has("snapshot") && has("messageId")
}

/// Reads a transcript.
///
/// # Errors
/// [`AdapterError`] with the number of the line, from 1, for the first that is not a JSON object or whose message is
/// malformed.
pub fn from_claude_code(bytes: &[u8]) -> Result<Conversation, AdapterError> {
    TRANSCRIPT.read(bytes)
}

/// Writes a transcript: the inverse of [`from_claude_code`]. Events from other formats become lines whose ids are made from
/// theirs; they have no time and no folder. Policies are left out: a transcript does not have them.
///
/// # Errors
/// [`AdapterError`] when an event's metadata was edited so that it no longer fits.
pub fn to_claude_code(conversation: &Conversation) -> Result<String, AdapterError> {
    Transcript::write(&WRITER, conversation, |line, before, number| {
        let parent = before.and_then(|line| line.get("uuid")).cloned().unwrap_or_default();
        let id = uuid_of(&format!("{number} {line}"));
        line["parentUuid"] = parent;
        line["uuid"] = id.into();
    })
}

pub(super) const WRITER: Writer = Writer {
    dialect: Dialect::ClaudeCode,
    list: &[],
    fresh: Some(fresh),
    grows: &[],
    rules: Rules::Nowhere,
    ..anthropic::WRITER
};

fn fresh(item: &ContextItem, content: &Value) -> Value {
    let mut message = anthropic::fresh(item, content);
    let role = message["role"].clone();
    // What an assistant says is always a list there.
    if role == "assistant" {
        message["content"] = as_parts(message["content"].take(), "text");
    }
    json!({"parentUuid": null, "isSidechain": false, "type": role, "message": message, "uuid": null})
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::adapters::from_anthropic;
    use crate::adapters::testing::{any_json, shown};

    const LINES: &str = r#"{"type":"summary","summary":"A log","leafUuid":"l"}
{"parentUuid":null,"isSidechain":false,"cwd":"/w","sessionId":"s","type":"user","message":{"role":"user","content":"Why?"},"uuid":"u1","timestamp":"2026-11-01T10:00:00Z"}
{"parentUuid":"u1","type":"assistant","message":{"id":"msg","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"Look.","signature":"s"}],"usage":{"input_tokens":4}},"requestId":"r","uuid":"u2","sessionId":"s"}
{"parentUuid":"u2","type":"assistant","message":{"id":"msg","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"df"}}]},"uuid":"u3","sessionId":"s"}
{"parentUuid":"u3","type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"full"}]},"toolUseResult":{"stdout":"full","stderr":""},"uuid":"u4","sessionId":"s"}
{"parentUuid":"u4","type":"system","content":"note","level":"info","uuid":"u5","sessionId":"s"}
{"parentUuid":"u5","type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"The disk is full."}]},"uuid":"u6","sessionId":"s"}
"#;

    #[test]
    fn lines_become_events_and_lines_again() {
        let conversation = from_claude_code(LINES.as_bytes()).unwrap();
        insta::assert_snapshot!(shown(&conversation), @r#"
        user_turn m1 "Why?"
        agent_msg m2 (thought) "Look."
        tool_call t1 Bash "{\"command\":\"df\"}"
        tool_result result:t1 < t1 "full"
        agent_msg m5 "The disk is full."
        "#);
        insta::assert_snapshot!(conversation.remarks.join("\n"), @"lines that are not messages were left out: 1 summary, 1 system");
        assert_eq!(to_claude_code(&conversation).unwrap(), LINES);
        // A session has no document: what is written is read the same, and holds a result once.
        let session = Conversation { document: None, ..conversation.clone() };
        let written = to_claude_code(&session).unwrap();
        assert_eq!(written.matches("full").count(), 2, "{written}");
        assert_eq!(from_claude_code(written.as_bytes()).unwrap().events, conversation.events);
    }

    #[test]
    fn what_other_agents_said_is_not_part_of_the_conversation() {
        let line = |text: &str, aside: bool| {
            let message = json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
            format!(
                "{}\n",
                json!({"parentUuid": null, "isSidechain": aside, "type": "assistant", "message": message, "uuid": text})
            )
        };
        let lines = [line("a", false), line("b", true), line("c", true), line("d", false)].concat();
        let conversation = from_claude_code(lines.as_bytes()).unwrap();
        insta::assert_snapshot!(shown(&conversation), @r#"
        agent_msg m1 "a"
        agent_msg m2 "d"
        "#);
        insta::assert_snapshot!(conversation.remarks.join("\n"), @"messages of conversations beside the main one were left out: 2");
        assert_eq!(to_claude_code(&conversation).unwrap(), lines);
        // Their own transcripts are read.
        let own = [line("b", true), line("c", true)].concat();
        assert_eq!(from_claude_code(own.as_bytes()).unwrap().events.len(), 2);
    }

    #[test]
    fn messages_of_others_become_lines_in_a_chain() {
        let messages = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]);
        let written = to_claude_code(&from_anthropic(messages).unwrap()).unwrap();
        insta::assert_snapshot!(written, @r#"
        {"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"Hi"},"uuid":"4a966f3b-bbc1-87ea-8d54-14641b3481ec"}
        {"parentUuid":"4a966f3b-bbc1-87ea-8d54-14641b3481ec","isSidechain":false,"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Ho"}]},"uuid":"dd0358d7-2058-87d0-80e8-b601bf2a2fbd"}
        "#);
        let again = from_claude_code(written.as_bytes()).unwrap();
        assert_eq!(again.events.iter().map(|event| event.item.text.as_str()).collect::<Vec<_>>(), ["Hi", "Ho"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let error = |line: &str| from_claude_code(format!("\n{line}").as_bytes()).unwrap_err().to_string();
        insta::assert_snapshot!(error("[]"), @"line 2: expected an object, not an array");
        insta::assert_snapshot!(error(r#"{"type":"user","message":{"role":"user"},"uuid":"u"}"#), @"line 2.message: `content` is missing; expected a string or an array of blocks");
    }

    proptest! {
        #[test]
        fn what_reads_writes_the_same(messages in prop::collection::vec((any_json(), any_json(), any::<bool>()), 0..4)) {
            let line = |(message, other, user)| json!({"type": if user { "user" } else { "assistant" }, "message": message, "toolUseResult": other, "uuid": "u"});
            let lines: Vec<Value> = messages.into_iter().map(line).collect();
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            if let Ok(conversation) = from_claude_code(text.as_bytes()) {
                let written = to_claude_code(&conversation).unwrap();
                let again: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
                prop_assert_eq!(again, lines);
            }
        }
    }
}
