//! The door of programs that compile prompts and shorten results, by protocol 1 of `docs/engines.md`.
//!
//! What comes back is text; counting it and looking for facts in it is for who asked.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::program::Launch;
use super::speaker::Speaker;
use super::{Limits, ProcessError};

/// A program that runs.
pub struct ContextProgram {
    speaker: Speaker,
}

impl ContextProgram {
    /// Starts `command`, which cannot read `hidden` where the kernel can keep it from that, and hears its name and version
    /// and one ping.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub fn start(command: &[OsString], hidden: &[PathBuf], limits: Limits) -> Result<Self, ProcessError> {
        let mut speaker = Speaker::start(Launch { command, hidden, variables: &[] }, limits)?;
        speaker.hello()?;
        speaker.ping()?;
        Ok(Self { speaker })
    }

    /// The prompt that it makes of `conversation` (its members are in `docs/engines.md`) for `query` in `budget` tokens.
    ///
    /// # Errors
    /// [`ProcessError`]; [`ProcessError::Unsupported`] when it does not make prompts.
    pub fn compile(&mut self, conversation: &Value, query: &str, budget: usize) -> Result<String, ProcessError> {
        let request = json!({"op": "compile", "conversation": conversation, "query": query, "budget": budget});
        self.text("the prompt", request)
    }

    /// What it makes of one result of a call in `cap` tokens.
    ///
    /// # Errors
    /// [`ProcessError`]; [`ProcessError::Unsupported`] when it does not shorten results.
    pub fn compact(&mut self, result: &str, cap: usize) -> Result<String, ProcessError> {
        self.text("a result", json!({"op": "compact", "result": result, "cap": cap}))
    }

    /// Ends its input; it has to end by itself, and well.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub fn end(self) -> Result<(), ProcessError> {
        self.speaker.program.end()
    }

    /// The text that answers, which is asked for twice and must be the same.
    fn text(&mut self, what: &str, request: Value) -> Result<String, ProcessError> {
        let text = self.answer(what, request.clone())?;
        if self.answer(what, request)? == text {
            Ok(text)
        } else {
            Err(ProcessError::Failed(format!("{what} was asked for twice and was different the second time")))
        }
    }

    fn answer(&mut self, what: &str, request: Value) -> Result<String, ProcessError> {
        let (reply, _) = self.speaker.ask_by_id(what, request)?;
        reply.text.ok_or_else(|| self.speaker.program.failed(format!("{what}: the answer has no `text`")))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// An engine as a shell script: `$line` is the request and `$id` its id.
    fn engine(answer: &str) -> Result<ContextProgram, ProcessError> {
        let script = format!(
            r#"while IFS= read -r line; do
                id=$(printf '%s' "$line" | sed -n 's/.*"id":"\(a[0-9]*\)".*/\1/p')
                case $line in
                *'"hello"'*) echo '{{"ok":true,"name":"shell","version":"1"}}' ;;
                *'"ping"'*) echo "{{\"id\":\"$id\"}}" ;;
                *) {answer} ;;
                esac
            done"#
        );
        let command = ["sh", "-c", script.as_str()].map(OsString::from);
        let limits = Limits { load: Duration::from_secs(20), route: Duration::from_secs(2), ..Limits::default() };
        ContextProgram::start(&command, &[], limits)
    }

    const HONEST: &str = r#"
        case $line in
        *'"compile"'*) echo "{\"id\":\"$id\",\"text\":\"a prompt\"}" ;;
        *) echo "{\"id\":\"$id\",\"unsupported\":\"no results\"}" ;;
        esac"#;

    #[test]
    fn an_honest_engine_answers_and_says_what_it_does_not_do() {
        let mut honest = engine(HONEST).unwrap();
        assert_eq!(honest.compile(&json!({"events": []}), "what", 9).unwrap(), "a prompt");
        let unsupported = honest.compact("rows", 9).unwrap_err();
        assert_eq!(unsupported, ProcessError::Unsupported("a result: no results".to_owned()));
        honest.end().unwrap();
    }

    #[test]
    fn what_breaks_the_rules_is_named() {
        let table = [
            (
                r#"n=$((${n:-0} + 1)); echo "{\"id\":\"$id\",\"text\":\"prompt $n\"}""#,
                "failed: the prompt was asked for twice and was different the second time",
            ),
            (r#"echo "{\"id\":\"$id\"}""#, "failed: the prompt: the answer has no `text`"),
            (r#"echo '{"id":"a0","text":"x"}'"#, "failed: the prompt: the answer has the id"),
            (r#"echo "{\"id\":\"$id\",\"error\":\"no model\"}""#, "failed: the prompt: it says \"no model\""),
            ("sleep 9", "timed out: the prompt took more than 2000 ms"),
            ("exit 3", "failed: it ended without answering the prompt"),
        ];
        for (answer, expected) in table {
            let error = engine(answer).unwrap().compile(&json!({}), "what", 9).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{expected}: {error}");
        }
    }

    #[test]
    fn a_program_that_does_not_read_does_not_hold_us_up() {
        let command = [
            "sh",
            "-c",
            r#"
            read -r line; echo '{"ok":true,"name":"deaf","version":"1"}'; read -r line; echo '{"id":"a1"}'; sleep 30"#,
        ];
        let limits = Limits { route: Duration::from_secs(1), ..Limits::default() };
        let mut deaf = ContextProgram::start(&command.map(OsString::from), &[], limits).unwrap();
        let error = deaf.compact(&"more than a pipe holds ".repeat(50_000), 9).unwrap_err();
        assert!(matches!(error, ProcessError::TimedOut { .. }), "{error}");
    }
}
