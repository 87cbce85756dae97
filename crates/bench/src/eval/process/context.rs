//! The door of programs that compile prompts and shorten results, by protocol 1 of `docs/engines.md`.
//!
//! What comes back is text; counting it and looking for facts in it is for who asked.

use std::ffi::OsString;

use serde_json::{Value, json};

use super::speaker::Speaker;
use super::{Limits, ProcessError};

/// A program that runs.
pub struct ContextProgram {
    speaker: Speaker,
}

impl ContextProgram {
    /// Starts `command`, and hears its name and version and one ping.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub fn start(command: &[OsString], limits: Limits) -> Result<Self, ProcessError> {
        let mut speaker = Speaker::start(command, limits)?;
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
            Err(ProcessError::Failed(format!("{what} was asked for twice and was another one the second time")))
        }
    }

    fn answer(&mut self, what: &str, request: Value) -> Result<String, ProcessError> {
        let (reply, _) = self.speaker.ask_by_id(what, request)?;
        reply.text.ok_or_else(|| self.speaker.program.failed(format!("{what}: the answer has no `text`")))
    }
}
