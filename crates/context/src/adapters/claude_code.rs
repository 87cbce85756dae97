//! Transcripts of Claude Code: JSON lines, those of type `user` and `assistant` with a message of the Anthropic API, both
//! ways.
//!
//! Other lines (summaries, snapshots of files, notes of the program) are counted and left out, and so are messages of
//! other agents (`isSidechain`). Each line names the one that it follows (`parentUuid`). Where the user went back and asked
//! something else, what followed the earlier request is left out, too. `toolUseResult` repeats a result in a form of its
//! own, and is not read.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::Conversation;
use super::anthropic;
use super::error::AdapterError;
use super::transcripts::{Line, Transcript, as_parts, uuid_of};
use super::wire::Dialect;
use super::writer::{Rules, Writer};
use crate::event::ContextItem;

const TRANSCRIPT: Transcript = Transcript {
    dialect: Dialect::ClaudeCode,
    inside: "message",
    repeats: &["toolUseResult"],
    has_message,
    is_aside: |line| is_true(line, "isSidechain"),
    abandoned,
    read: anthropic::read_message,
};

fn has_message(line: &Map<String, Value>) -> bool {
    let kind = line.get("type").and_then(Value::as_str);
    matches!(kind, Some("user" | "assistant")) && line.get("message").is_some_and(Value::is_object)
}

fn is_true(line: &Line, key: &str) -> bool {
    line.get(key) == Some(&Value::Bool(true))
}

/// A member that is a text.
fn text<'l>(line: &'l Line, key: &str) -> Option<&'l str> {
    line.get(key).and_then(Value::as_str)
}

/// The id of the line that a line follows. The mark of a compaction names it under another key.
fn parent(line: &Line) -> Option<&str> {
    text(line, "parentUuid").or_else(|| text(line, "logicalParentUuid"))
}

/// Whether a message of a user answers calls.
fn has_results(line: &Line) -> bool {
    let content = line.get("message").and_then(|message| message.get("content")?.as_array());
    content.into_iter().flatten().any(|block| block.get("type").is_some_and(|kind| kind == "tool_result"))
}

/// Whether a message is what a user asked: no result, and nothing that the program says in their name.
fn is_request(line: &Line) -> bool {
    let is_own = !is_true(line, "isMeta") && !is_true(line, "isCompactSummary");
    text(line, "type") == Some("user") && is_own && !has_results(line)
}

/// The messages that a later request replaced: the requests that the last message does not follow from, and what followed
/// those. Results of calls that ran side by side are not on the way back from the last message either, so nothing but a
/// request begins a branch. Where lines do not name the ones before them, all are kept.
fn abandoned(lines: &[Line], messages: &[usize]) -> HashSet<usize> {
    way_back(lines, messages).map_or_else(HashSet::new, |(places, way)| {
        let root = way.iter().min().and_then(|&root| Some((root, lines.get(root)?)));
        // A conversation that begins with a summary goes on from the one before it, and a file may hold several sessions.
        let replaces = |line: &Line| {
            root.is_some_and(|(_, root)| is_request(root) && text(root, "sessionId") == text(line, "sessionId"))
        };
        let mut left = HashSet::new();
        for (place, line) in lines.iter().enumerate().filter(|(place, _)| !way.contains(place)) {
            let before = parent(line).map(|id| places.get(id).copied());
            let begins_branch = is_request(line)
                && match before {
                    Some(before) => before.is_some(),
                    None => root.is_some_and(|(root, _)| place < root) && replaces(line),
                };
            if begins_branch || before.flatten().is_some_and(|before| left.contains(&before)) {
                left.insert(place);
            }
        }
        left
    })
}

/// Lines by their ids.
type Places<'l> = HashMap<&'l str, usize>;

/// The places of the lines by their ids, and those on the way back from the last message; `None` where an id is missing
/// or not the only one of its kind, or a message other than a request follows nothing.
fn way_back<'l>(lines: &'l [Line], messages: &[usize]) -> Option<(Places<'l>, HashSet<usize>)> {
    let mut places = Places::new();
    for (place, line) in lines.iter().enumerate() {
        if let Some(id) = text(line, "uuid")
            && places.insert(id, place).is_some()
        {
            return None;
        }
    }
    let is_placed = |line: &Line| {
        let begins = text(line, "type") == Some("user") && !has_results(line);
        text(line, "uuid").is_some() && (parent(line).is_some() || begins)
    };
    if !messages.iter().all(|&place| lines.get(place).is_some_and(is_placed)) {
        return None;
    }
    let mut at = *messages.last()?;
    let mut way = HashSet::from([at]);
    while let Some(id) = lines.get(at).and_then(parent) {
        // A line follows an earlier one, so this ends.
        at = places.get(id).copied().filter(|before| *before < at)?;
        way.insert(at);
    }
    Some((places, way))
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
    use crate::adapters::testing::{near, round_trips_in_lines, shown};

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
        // Some files begin with what another agent said.
        let lines = [line("b", true), line("c", true), line("a", false)].concat();
        let conversation = from_claude_code(lines.as_bytes()).unwrap();
        insta::assert_snapshot!(shown(&conversation), @r#"agent_msg m1 "a""#);
        assert_eq!(to_claude_code(&conversation).unwrap(), lines);
    }

    /// Lines of a transcript, each with its id, the id of the line that it follows, and what it says: `?` before a request,
    /// `+` before a call and `=` before its result, `!` before a summary; other words are the agent's.
    fn chain(lines: &[(&str, &str, &str)]) -> String {
        let line = |(id, parent, says): &(&str, &str, &str)| {
            let (kind, rest) = says.split_at(1);
            let (role, content) = match kind {
                "?" | "!" => ("user", json!(rest)),
                "+" => ("assistant", json!([{"type": "tool_use", "id": rest, "name": "f", "input": {}}])),
                "=" => ("user", json!([{"type": "tool_result", "tool_use_id": rest, "content": "ok"}])),
                _ => ("assistant", json!([{"type": "text", "text": says}])),
            };
            let parent = Some(parent).filter(|parent| !parent.is_empty());
            let mut line = json!({"parentUuid": parent, "type": role, "message": {"role": role, "content": content}, "uuid": id, "sessionId": "s"});
            if kind == "!" {
                line["isCompactSummary"] = true.into();
            }
            format!("{line}\n")
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn what_followed_a_request_that_was_taken_back_is_left_out() {
        for (about, lines, expected) in [
            ("nothing", &[("1", "", "?a"), ("2", "1", "b"), ("3", "2", "?c")][..], "abc"),
            (
                "the second request",
                &[
                    ("1", "", "?a"),
                    ("2", "1", "b"),
                    ("3", "2", "?c"),
                    ("4", "3", "d"),
                    ("5", "2", "?e"),
                    ("6", "5", "f"),
                ],
                "abef",
            ),
            ("the first request", &[("1", "", "?a"), ("2", "1", "b"), ("3", "", "?c"), ("4", "3", "d")], "cd"),
            (
                "calls side by side",
                &[
                    ("1", "", "?a"),
                    ("2", "1", "b"),
                    ("3", "2", "+x"),
                    ("4", "3", "+y"),
                    ("5", "3", "=x"),
                    ("6", "4", "=y"),
                    ("7", "6", "c"),
                ],
                "ab+x+y=x=yc",
            ),
            (
                "calls side by side in a branch that was left",
                &[
                    ("1", "", "?a"),
                    ("2", "1", "+x"),
                    ("3", "2", "+y"),
                    ("4", "2", "=x"),
                    ("5", "3", "=y"),
                    ("6", "5", "b"),
                    ("7", "", "?c"),
                ],
                "c",
            ),
            ("a summary", &[("1", "", "?a"), ("2", "1", "b"), ("3", "", "!c"), ("4", "3", "d")], "abcd"),
            (
                "a line that is not there",
                &[("1", "0", "?a"), ("2", "1", "b"), ("3", "1", "?c"), ("4", "1", "d")],
                "abcd",
            ),
            ("no chain", &[("1", "", "?a"), ("2", "", "b"), ("3", "", "?c"), ("4", "", "d")], "abcd"),
            ("an id twice", &[("1", "", "?a"), ("1", "1", "b"), ("3", "", "?c"), ("4", "3", "d")], "abcd"),
            ("a circle", &[("1", "2", "?a"), ("2", "1", "b"), ("3", "2", "?c"), ("4", "2", "d")], "abcd"),
        ] {
            let text = chain(lines);
            let conversation = from_claude_code(text.as_bytes()).unwrap();
            let said = conversation.events.iter().map(|event| match event.item.kind {
                crate::event::ItemKind::ToolCall => format!("+{}", event.item.id),
                crate::event::ItemKind::ToolResult => format!("={}", event.item.parent_id.as_ref().unwrap()),
                _ => event.item.text.clone(),
            });
            assert_eq!(said.collect::<String>(), expected, "{about}");
            let left = lines.len() - conversation.events.len();
            let remark = format!("messages of abandoned branches were left out: {left}");
            assert_eq!(conversation.remarks.contains(&remark), left > 0, "{about}: {:?}", conversation.remarks);
            assert_eq!(to_claude_code(&conversation).unwrap(), text, "{about}");
        }
        // The mark of a compaction follows what it summarises under another key.
        let boundary = json!({"type": "system", "subtype": "compact_boundary", "parentUuid": null, "logicalParentUuid": "2", "uuid": "3", "sessionId": "s"});
        let before = chain(&[("0", "", "?z"), ("1", "", "?a"), ("2", "1", "b")]);
        let text = format!("{before}{boundary}\n{}", chain(&[("4", "3", "!c"), ("5", "4", "d")]));
        let conversation = from_claude_code(text.as_bytes()).unwrap();
        assert_eq!(conversation.events.iter().map(|event| event.item.text.as_str()).collect::<String>(), "abcd");
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

    #[test]
    fn what_reads_writes_the_same() {
        let said = |text: &str| json!({"type": "text", "text": text});
        let lines = json!([
            {"type": "user", "message": {"role": "user", "content": "Why?"}, "uuid": "1"},
            {"type": "assistant", "uuid": "2", "message": {"role": "assistant", "content": [
                said("Look."), {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]}},
            {"type": "user", "uuid": "3", "toolUseResult": {"stdout": "full"}, "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [said("full")]}]}},
        ]);
        round_trips_in_lines(10, near(Just(lines)), from_claude_code, to_claude_code);
    }
}
