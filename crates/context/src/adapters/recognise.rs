//! The formats as a table: how each is recognised, read and written.
//!
//! The members that only one format has decide which format a file is in; where two formats agree (plain messages with
//! roles), they mean the same and the first is taken.

use std::fmt;

use serde_json::Value;

use super::error::{AdapterError, describe, parse, shown};
use super::{
    Conversation, anthropic, claude_code, codex, from_a2a_task_conversation, from_anthropic, from_claude_code,
    from_codex, from_gemini, from_langchain, from_langsmith, from_openai_chat, from_openai_responses, from_otel,
    from_pydantic_ai, from_recorded, from_session_json, from_session_lines, gemini, langchain, langsmith, openai, otel,
    pydantic_ai, responses, session_lines, spans, to_a2a_task_conversation, to_anthropic, to_claude_code, to_codex,
    to_gemini, to_langchain, to_langsmith, to_openai_chat, to_openai_responses, to_otel, to_pydantic_ai, to_recorded,
    to_session_json, to_session_lines,
};
use crate::event::ItemKind;

/// Longer lines of a file that is read line by line are refused: no event is that large, and a line is held whole.
pub const MAX_LINE_BYTES: usize = 100 << 20;

/// The value of the member `format` of a session file of ours, which is not a conversation but what one becomes.
pub const SESSION_FILE: &str = "contextweaver session";

/// A format of conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Session JSONL: one event per line.
    SessionLines,
    /// The session document of the Python implementation.
    SessionJson,
    /// A recorded session: a goal with calls of MCP tools and their results.
    Recorded,
    /// Messages of OpenAI Chat Completions.
    OpenaiChat,
    /// Items of OpenAI Responses.
    OpenaiResponses,
    /// Messages of the Anthropic API.
    Anthropic,
    /// Contents of the Gemini API.
    Gemini,
    /// A task of the Agent2Agent protocol.
    A2aTask,
    /// A transcript of Claude Code.
    ClaudeCode,
    /// A transcript of Codex.
    Codex,
    /// OpenTelemetry's spans of generative AI.
    Otel,
    /// Runs of LangSmith.
    LangSmith,
    /// Messages of LangChain.
    LangChain,
    /// A message history of Pydantic AI.
    PydanticAi,
}

impl Format {
    /// All formats, in the order in which they are listed to people.
    pub const ALL: [Self; 14] = [
        Self::SessionLines,
        Self::SessionJson,
        Self::Recorded,
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::A2aTask,
        Self::ClaudeCode,
        Self::Codex,
        Self::Otel,
        Self::LangSmith,
        Self::LangChain,
        Self::PydanticAi,
    ];

    /// The name of the format, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionLines => "session JSONL",
            Self::SessionJson => "session JSON",
            Self::Recorded => "recorded session",
            Self::OpenaiChat => "OpenAI chat messages",
            Self::OpenaiResponses => "OpenAI Responses items",
            Self::Anthropic => "Anthropic messages",
            Self::Gemini => "Gemini contents",
            Self::A2aTask => "A2A task",
            Self::ClaudeCode => "Claude Code transcript",
            Self::Codex => "Codex transcript",
            Self::Otel => "OpenTelemetry spans",
            Self::LangSmith => "LangSmith runs",
            Self::LangChain => "LangChain messages",
            Self::PydanticAi => "Pydantic AI messages",
        }
    }

    /// The name of the format on a command line.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::SessionLines => "lines",
            Self::SessionJson => "session-json",
            Self::Recorded => "recorded",
            Self::OpenaiChat => "openai",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::A2aTask => "a2a",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Otel => "otel",
            Self::LangSmith => "langsmith",
            Self::LangChain => "langchain",
            Self::PydanticAi => "pydantic-ai",
        }
    }

    /// Writes a conversation in this format: the inverse of [`recognise`] for a conversation that was read from it, and
    /// the closest equivalent for any other. The text ends with a line break.
    ///
    /// # Errors
    /// [`AdapterError`] when the metadata of an event was edited so that it no longer fits or, for
    /// [`Format::Recorded`], when an event is from another format.
    pub fn write(self, conversation: &Conversation) -> Result<String, AdapterError> {
        let document = match self {
            Self::SessionLines => return to_session_lines(conversation),
            Self::SessionJson => to_session_json(conversation),
            Self::Recorded => to_recorded(conversation)?,
            Self::OpenaiChat => to_openai_chat(conversation)?,
            Self::OpenaiResponses => to_openai_responses(conversation)?,
            Self::Anthropic => to_anthropic(conversation)?,
            Self::Gemini => to_gemini(conversation)?,
            Self::A2aTask => to_a2a_task_conversation(conversation),
            Self::ClaudeCode => return to_claude_code(conversation),
            Self::Codex => return to_codex(conversation),
            Self::Otel => to_otel(conversation)?,
            Self::LangSmith => to_langsmith(conversation)?,
            Self::LangChain => to_langchain(conversation)?,
            Self::PydanticAi => to_pydantic_ai(conversation)?,
        };
        Ok(format!("{document:#}\n"))
    }

    /// What [`Self::write`] leaves out of a conversation or changes, for people. What came in this format is written as
    /// it was.
    #[must_use]
    pub fn remarks(self, conversation: &Conversation) -> Vec<String> {
        let writer = match self {
            Self::OpenaiChat => openai::WRITER,
            Self::Otel | Self::LangSmith => spans::WRITER,
            Self::OpenaiResponses => responses::WRITER,
            Self::Anthropic => anthropic::WRITER,
            Self::Gemini => gemini::WRITER,
            Self::ClaudeCode => claude_code::WRITER,
            Self::Codex => codex::WRITER,
            Self::LangChain => langchain::WRITER,
            Self::PydanticAi => pydantic_ai::WRITER,
            // They hold all that an event says, or refuse it.
            Self::SessionLines | Self::SessionJson | Self::Recorded | Self::A2aTask => return Vec::new(),
        };
        writer.remarks(conversation)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// Reads a conversation in any of the formats. `prefix` is for the ids of events that have none.
///
/// # Errors
/// [`AdapterError`] when the bytes are not UTF-8, are empty, are in no known format (the message lists the formats), or
/// are malformed.
pub fn recognise(bytes: &[u8], prefix: &str) -> Result<(Format, Conversation), AdapterError> {
    let text = check_utf8(bytes)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(AdapterError::new("", "the file is empty; expected a conversation"));
    }
    let whole = match serde_json::from_str::<Value>(text) {
        Ok(document) => document,
        Err(error) => return read_lines(bytes, prefix, &error),
    };
    if whole.get("format").and_then(Value::as_str) == Some(SESSION_FILE) {
        let reason = "this is already a session; read it with --session, as in `contextweaver replay --session FILE`";
        return Err(AdapterError::new("", reason));
    }
    let format = format_of(&whole)?;
    let conversation = match format {
        Format::SessionLines => from_session_lines(bytes, prefix),
        Format::SessionJson => {
            drop(whole);
            from_session_json(text)
        }
        Format::Recorded => {
            drop(whole);
            from_recorded(text)
        }
        Format::OpenaiChat => from_openai_chat(whole),
        Format::OpenaiResponses => from_openai_responses(whole),
        Format::Anthropic => from_anthropic(whole),
        Format::Gemini => from_gemini(whole),
        Format::A2aTask => from_a2a_task_conversation(whole),
        Format::ClaudeCode => from_claude_code(bytes),
        Format::Codex => from_codex(bytes),
        Format::Otel => from_otel(whole),
        Format::LangSmith => from_langsmith(whole),
        Format::LangChain => from_langchain(whole),
        Format::PydanticAi => from_pydantic_ai(whole),
    };
    conversation.map(|conversation| (format, conversation))
}

/// A file that is not one JSON document is a list of lines if its first line is an object. The first line that only one
/// format has decides which it is: a transcript may begin with notes of its program.
fn read_lines(bytes: &[u8], prefix: &str, error: &serde_json::Error) -> Result<(Format, Conversation), AdapterError> {
    /// A transcript has its first message within these.
    const LOOKED_AT: usize = 100;
    let mut format = None;
    for (number, line) in lines(bytes).take(LOOKED_AT).enumerate() {
        let line = line.map(|(_, line)| serde_json::from_str::<Value>(line));
        match line {
            Ok(Ok(line)) if number == 0 && is_message(&line) => {
                // The same as the messages in a list, which is what their formats have.
                return recognise(documents(bytes)?.to_string().as_bytes(), prefix);
            }
            Ok(Ok(line)) if number == 0 && line.get("messages").is_some_and(Value::is_array) => {
                let reason = "each line is a conversation of its own; read them one by one, each from a file";
                return Err(AdapterError::new("", reason));
            }
            Ok(Ok(line @ Value::Object(_))) => format = of_line(&line),
            Err(error) if number == 0 => return Err(error),
            _ if number == 0 => {
                let fix = "give a conversation as JSON; docs/formats.md#conversations has examples";
                return Err(AdapterError::new("", format!("neither JSON nor JSON lines: {error}; {fix}")));
            }
            // Its reader says what is wrong there.
            _ => break,
        }
        if format.is_some() {
            break;
        }
    }
    let format = format.unwrap_or(Format::SessionLines);
    let conversation = match format {
        Format::ClaudeCode => from_claude_code(bytes),
        Format::Codex => from_codex(bytes),
        Format::Otel => documents(bytes).and_then(from_otel),
        Format::LangSmith => documents(bytes).and_then(from_langsmith),
        _ => from_session_lines(bytes, prefix),
    };
    conversation.map(|conversation| (format, conversation))
}

/// Whether a line is a message of a chat, which no format has that is made of lines.
fn is_message(line: &Value) -> bool {
    line.get("role").is_some_and(Value::is_string) && line.get("type").is_none()
}

/// The documents of a file that has one a line.
fn documents(bytes: &[u8]) -> Result<Value, AdapterError> {
    lines(bytes).map(|line| line.and_then(|(number, line)| parse(line, &format!("line {number}")))).collect()
}

/// The format of a line that only one format has.
fn of_line(line: &Value) -> Option<Format> {
    match line {
        line if codex::is_line(line) => Some(Format::Codex),
        line if claude_code::is_line(line) => Some(Format::ClaudeCode),
        line if otel::is_document(line) => Some(Format::Otel),
        line if langsmith::is_run(line) => Some(Format::LangSmith),
        line if session_lines::looks_like_a_line(line) => Some(Format::SessionLines),
        _ => None,
    }
}

fn format_of(document: &Value) -> Result<Format, AdapterError> {
    let has = |key: &str| document.get(key).is_some();
    let found = match document {
        Value::Object(_) if codex::is_line(document) => Some(Format::Codex),
        Value::Object(_) if claude_code::is_line(document) => Some(Format::ClaudeCode),
        _ if otel::is_document(document) => Some(Format::Otel),
        _ if langsmith::is_document(document) => Some(Format::LangSmith),
        Value::Object(_) if has("calls") && has("goal") => Some(Format::Recorded),
        Value::Object(_) if has("events") => Some(Format::SessionJson),
        Value::Object(_) if has("contents") => Some(Format::Gemini),
        _ if langchain::is_document(document) => Some(Format::LangChain),
        _ if pydantic_ai::is_document(document) => Some(Format::PydanticAi),
        Value::Object(members) => match members.get("messages") {
            Some(messages) => Some(of_messages(messages, has("system"))),
            None if has("status") && (has("artifacts") || has("history")) => Some(Format::A2aTask),
            None if session_lines::looks_like_a_line(document) => Some(Format::SessionLines),
            None if has("input") || has("output") => Some(Format::OpenaiResponses),
            None => None,
        },
        Value::Array(entries) => match entries.first() {
            Some(first) if first.get("parts").is_some() => Some(Format::Gemini),
            Some(first) if first.get("role").is_some() && entries.iter().all(|entry| entry.get("role").is_some()) => {
                Some(of_messages(document, false))
            }
            Some(first) if first.get("type").is_some() || first.get("role").is_some() => Some(Format::OpenaiResponses),
            _ => None,
        },
        _ => None,
    };
    found.ok_or_else(|| unknown(document))
}

/// The format of messages with roles: Anthropic's when a block is of a type that only they have.
fn of_messages(messages: &Value, has_system: bool) -> Format {
    let blocks = |message: &Value| message.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
    let types = |kinds: &[&str]| {
        messages.as_array().into_iter().flatten().any(|message| {
            let is_one =
                |block: &Value| block.get("type").and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind));
            blocks(message).iter().any(is_one)
        })
    };
    if types(&["input_text", "output_text", "input_image"]) {
        return Format::OpenaiResponses;
    }
    let only_theirs =
        ["tool_use", "tool_result", "server_tool_use", "thinking", "redacted_thinking", "image", "document"];
    if has_system || types(&only_theirs) { Format::Anthropic } else { Format::OpenaiChat }
}

fn unknown(document: &Value) -> AdapterError {
    if document.as_array().is_some_and(Vec::is_empty) {
        return AdapterError::new("", "it is empty; a conversation has at least one message");
    }
    let known: Vec<&str> = Format::ALL.into_iter().map(Format::name).collect();
    let hint = match document {
        document if is_tools(document) => "; it looks like a list of tools, which commands take with --catalog",
        Value::Object(members) if members.contains_key("content") || members.contains_key("structuredContent") => {
            "; it looks like one result of an MCP tool"
        }
        Value::Object(members) if members.contains_key("type") => {
            return AdapterError::new(
                "",
                format!(
                    "its only line is not an event: `type` is `{}` and there is no `text`; types are {}",
                    session_lines::kind_of(document),
                    ItemKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
                ),
            );
        }
        _ => "",
    };
    let keys = match document {
        Value::Object(members) => {
            let keys: Vec<String> = members.keys().take(5).map(|key| format!("`{}`", shown(key))).collect();
            if keys.is_empty() { "an empty object".to_owned() } else { format!("an object with {}", keys.join(", ")) }
        }
        other => describe(other).to_owned(),
    };
    let known = known.join(", ");
    let reason =
        format!("{keys} is not a conversation{hint}; known are {known}; docs/formats.md#conversations shows each");
    AdapterError::new("", reason)
}

/// Whether a document is a list of definitions of tools.
fn is_tools(document: &Value) -> bool {
    const SCHEMAS: [&str; 4] = ["inputSchema", "input_schema", "parameters", "function"];
    let list = document.as_array().or_else(|| {
        let within = document.get("result").unwrap_or(document);
        within.get("tools")?.as_array()
    });
    let is_tool = |tool: &Value| SCHEMAS.iter().any(|key| tool.get(*key).is_some());
    list.is_some_and(|tools| tools.first().is_some_and(is_tool))
}

/// The bytes as text, checked.
pub(super) fn check_utf8(bytes: &[u8]) -> Result<&str, AdapterError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let column = before.len() - memchr::memrchr(b'\n', before).map_or(0, |at| at + 1) + 1;
        AdapterError::new(format!("line {line}"), format!("byte {column} is not UTF-8; save the file as UTF-8"))
    })
}

/// The lines that are not blank, with their numbers from 1. A byte order mark in front is ignored.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = Result<(usize, &str), AdapterError>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.split(|&byte| byte == b'\n').enumerate().filter_map(|(number, line)| {
        let number = number + 1;
        let place = || format!("line {number}");
        if line.len() > MAX_LINE_BYTES {
            let reason = format!("it has {} bytes; a line may have at most {MAX_LINE_BYTES}", line.len());
            return Some(Err(AdapterError::new(place(), reason)));
        }
        match check_utf8(line) {
            Err(error) => Some(Err(AdapterError::new(place(), error.reason))),
            Ok(line) if line.trim().is_empty() => None,
            Ok(line) => Some(Ok((number, line))),
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::adapters::testing::any_json;

    fn format(text: &str) -> String {
        match recognise(text.as_bytes(), "x") {
            Ok((format, conversation)) => format!("{format}: {}", conversation.events.len()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn each_format_is_told_from_the_others() {
        let line = r#"{"type": "user_turn", "text": "Hi"}"#;
        assert_eq!(format(line), "session JSONL: 1");
        assert_eq!(format(&format!("\u{feff}{line}\r\n\r\n{line}\r\n")), "session JSONL: 2");
        let said = json!({"role": "user", "content": "Hi"});
        assert_eq!(format(&format!("{said}\n\n{said}\n")), "OpenAI chat messages: 2");
        let thought =
            json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "a", "signature": "b"}]});
        assert_eq!(format(&format!("{said}\n{thought}\n")), "Anthropic messages: 2");
        let block = |block: Value| json!([{"role": "user", "content": [block]}]).to_string();
        for (document, expected) in [
            (json!({"event_count": 0, "events": []}).to_string(), "session JSON: 0"),
            (json!({"goal": "g", "calls": []}).to_string(), "recorded session: 1"),
            (json!([said]).to_string(), "OpenAI chat messages: 1"),
            (json!({"model": "m", "messages": [said]}).to_string(), "OpenAI chat messages: 1"),
            (json!({"system": "s", "messages": [said]}).to_string(), "Anthropic messages: 2"),
            (block(json!({"type": "image", "source": {}})), "Anthropic messages: 1"),
            (block(json!({"type": "text", "text": "a"})), "OpenAI chat messages: 1"),
            (block(json!({"type": "input_text", "text": "a"})), "OpenAI Responses items: 1"),
            (json!([said, {"type": "reasoning", "summary": []}]).to_string(), "OpenAI Responses items: 2"),
            (json!({"input": "Hi"}).to_string(), "OpenAI Responses items: 1"),
            (json!([{"role": "user", "parts": []}]).to_string(), "Gemini contents: 1"),
            (json!({"contents": []}).to_string(), "Gemini contents: 0"),
            (json!({"status": {"state": "completed"}, "artifacts": []}).to_string(), "A2A task: 2"),
            (json!({"type": "user", "uuid": "u", "message": said}).to_string(), "Claude Code transcript: 1"),
            (json!({"type": "response_item", "payload": said}).to_string(), "Codex transcript: 1"),
            (json!([{"type": "human", "data": {"content": "Hi"}}]).to_string(), "LangChain messages: 1"),
            (json!({"messages": [{"type": "human", "content": "Hi"}]}).to_string(), "LangChain messages: 1"),
            (json!([{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]}]).to_string(), "Pydantic AI messages: 1"),
            (json!({"messages": [{"kind": "response", "parts": []}]}).to_string(), "Pydantic AI messages: 1"),
            (json!([{"run_type": "llm", "events": [], "inputs": {"messages": [said]}}]).to_string(), "LangSmith runs: 1"),
            (json!({"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": [{"key": "gen_ai.input.messages", "value": {"stringValue": json!([said]).to_string()}}]}]}]}]}).to_string(), "OpenTelemetry spans: 1"),
        ] {
            assert_eq!(format(&document), expected, "{document}");
        }
    }

    #[test]
    fn what_is_no_conversation_says_what_is() {
        insta::assert_snapshot!(format(" \n"), @"the file is empty; expected a conversation");
        insta::assert_snapshot!(format(r#"{"a": 1}"#), @"an object with `a` is not a conversation; known are session JSONL, session JSON, recorded session, OpenAI chat messages, OpenAI Responses items, Anthropic messages, Gemini contents, A2A task, Claude Code transcript, Codex transcript, OpenTelemetry spans, LangSmith runs, LangChain messages, Pydantic AI messages; docs/formats.md#conversations shows each");
        insta::assert_snapshot!(format(r#"{"content": []}"#), @"an object with `content` is not a conversation; it looks like one result of an MCP tool; known are session JSONL, session JSON, recorded session, OpenAI chat messages, OpenAI Responses items, Anthropic messages, Gemini contents, A2A task, Claude Code transcript, Codex transcript, OpenTelemetry spans, LangSmith runs, LangChain messages, Pydantic AI messages; docs/formats.md#conversations shows each");
        let tools = "an array is not a conversation; it looks like a list of tools, which commands take with --catalog; known are";
        assert!(format(r#"[{"name": "a", "inputSchema": {}}]"#).starts_with(tools));
        assert!(
            format(r#"{"jsonrpc": "2.0", "result": {"tools": [{"name": "a", "inputSchema": {}}]}}"#)
                .contains("--catalog")
        );
        insta::assert_snapshot!(format("{\"messages\": []}\n{\"messages\": []}\n"), @"each line is a conversation of its own; read them one by one, each from a file");
        insta::assert_snapshot!(format(r#"{"type": "user_turn"}"#), @"its only line is not an event: `type` is `user_turn` and there is no `text`; types are user_turn, agent_msg, tool_call, tool_result, doc_snippet, retrieved_doc, memory_fact, plan_state, policy");
        insta::assert_snapshot!(format(r#"{"format": "contextweaver session", "schema": 1, "events": []}"#), @"this is already a session; read it with --session, as in `contextweaver replay --session FILE`");
        insta::assert_snapshot!(format("[]"), @"it is empty; a conversation has at least one message");
        insta::assert_snapshot!(format("7"), @"a number is not a conversation; known are session JSONL, session JSON, recorded session, OpenAI chat messages, OpenAI Responses items, Anthropic messages, Gemini contents, A2A task, Claude Code transcript, Codex transcript, OpenTelemetry spans, LangSmith runs, LangChain messages, Pydantic AI messages; docs/formats.md#conversations shows each");
        insta::assert_snapshot!(format("{\"goal\": \"g\", \"calls\": ["), @"neither JSON nor JSON lines: EOF while parsing a list at line 1 column 24; give a conversation as JSON; docs/formats.md#conversations has examples");
        insta::assert_snapshot!(format("{\n  \"goal\": \"g\",\n"), @"neither JSON nor JSON lines: EOF while parsing a value at line 3 column 0; give a conversation as JSON; docs/formats.md#conversations has examples");
        insta::assert_snapshot!(format(&"[".repeat(1_000_000)), @"neither JSON nor JSON lines: recursion limit exceeded at line 1 column 128; give a conversation as JSON; docs/formats.md#conversations has examples");
        insta::assert_snapshot!(recognise(b"{}\n\xc3\x28", "x").unwrap_err(), @"line 2: byte 1 is not UTF-8; save the file as UTF-8");
    }

    #[test]
    fn a_line_beyond_the_bound_is_refused_by_number() {
        let mut bytes = b"{\"type\":\"policy\",\"text\":\"a\"}\n".to_vec();
        bytes.resize(bytes.len() + MAX_LINE_BYTES + 1, b' ');
        insta::assert_snapshot!(from_session_lines(&bytes, "x").unwrap_err(), @"line 2: it has 104857601 bytes; a line may have at most 104857600");
    }

    proptest! {
        #[test]
        fn no_file_stops_the_reader(document in any_json(), second in any_json(), cut in 0usize..200, bytes in prop::collection::vec(any::<u8>(), 0..30)) {
            let text = document.to_string();
            let _ = recognise(text.as_bytes(), "x");
            let _ = recognise(format!("{text}\n{second}").as_bytes(), "x");
            let _ = recognise(&text.as_bytes()[..cut.min(text.len())], "x");
            let _ = recognise(&bytes, "x");
            let _ = from_recorded(&text);
            let spans = format!(r#"{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{text}, {second}]}}]}}]}}"#);
            let runs = format!(r#"[{{"run_type": "llm", "inputs": {text}, "outputs": {second}}}, {{"run_type": "tool", "inputs": {second}, "outputs": {text}}}]"#);
            let lines = format!(r#"{{"type": "user", "uuid": "u", "message": {text}}}"#) + "\n" + &format!(r#"{{"type": "user", "message": {second}}}"#);
            let items = format!(r#"{{"type": "response_item", "payload": {text}}}"#) + "\n" + &format!(r#"{{"type": "response_item", "payload": {second}}}"#);
            for text in [spans, runs, lines, items] {
                if let Ok((_, conversation)) = recognise(text.as_bytes(), "x") {
                    for format in Format::ALL {
                        let _ = format.write(&conversation);
                    }
                }
            }
            let _ = from_session_json(&text);
        }
    }
}
