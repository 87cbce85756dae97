//! Converts foreign formats of conversations into our types and back.
//!
//! One file per format; pure functions, no I/O. Fields of a format that our types do not have are kept in the metadata
//! of an item, so that they survive a round trip. A malformed document is an error that names the place; nothing is
//! guessed, and what is left out is said in a remark.

mod a2a;
mod anthropic;
mod blocks;
mod claude_code;
mod codex;
mod error;
mod gemini;
mod langchain;
mod langsmith;
mod mcp;
mod memory;
mod openai;
mod otel;
mod output;
mod parts;
mod pydantic_ai;
mod recognise;
mod recorded;
mod responses;
mod session_json;
mod session_lines;
mod spans;
#[cfg(test)]
mod testing;
mod transcripts;
mod values;
mod weaver;
mod wire;
mod writer;

pub use a2a::{
    TaskOutcome, TaskState, from_a2a_task, from_a2a_task_conversation, to_a2a_task, to_a2a_task_conversation,
};
pub use anthropic::{from_anthropic, to_anthropic};
pub use claude_code::{from_claude_code, to_claude_code};
pub use codex::{from_codex, to_codex};
pub use error::AdapterError;
pub use gemini::{from_gemini, to_gemini};
pub use langchain::{from_langchain, to_langchain};
pub use langsmith::{from_langsmith, to_langsmith};
pub use mcp::{Bounds, from_mcp_result, from_mcp_result_within, to_mcp_result};
pub(crate) use memory::of_card;
pub use memory::{episodes_to_lines, facts_to_lines, read_episodes, read_facts};
pub use openai::{from_openai_chat, to_openai_chat};
pub use otel::{from_otel, to_otel};
pub use output::{Recognised, recognise_output};
pub use pydantic_ai::{from_pydantic_ai, to_pydantic_ai};
pub use recognise::{Format, MAX_LINE_BYTES, SESSION_FILE, recognise};
pub use recorded::{from_recorded, to_recorded};
pub use responses::{from_openai_responses, to_openai_responses};
pub use session_json::{from_session_json, to_session_json};
pub use session_lines::{from_session_lines, to_session_lines};
pub use weaver::{FrameLabels, from_weaver_frame, read_envelope, to_weaver_frame};
pub(crate) use wire::foreign_in;

use serde_json::{Map, Value};

use crate::event::{ContextItem, Episode, Fact, ResultEnvelope, ToolOutput};

/// One event of a foreign conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The event for the log.
    pub item: ContextItem,
    /// For a result that is more than one text: everything that was returned, for the firewall. The item's text is then
    /// the text of its parts.
    pub output: Option<ToolOutput>,
    /// For a result that something else has processed: what prompts show of it. The item's text is then the summary, or
    /// the content of an artifact.
    pub envelope: Option<Box<ResultEnvelope>>,
}

/// A foreign conversation. Its order, ids and parents are checked by [`Transcript`](crate::event::Transcript), not
/// here.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    /// The events, in the order in which they happened.
    pub events: Vec<Event>,
    /// Remembered statements, where the format carries them.
    pub facts: Vec<Fact>,
    /// Summaries of earlier events, where the format carries them.
    pub episodes: Vec<Episode>,
    /// The members of the document around the events (`model`, `tools` …), for round trips; `None` for formats and
    /// documents that are bare lists of events.
    pub document: Option<Map<String, Value>>,
    /// What of the document is not part of the conversation, for people.
    pub remarks: Vec<String>,
}

impl From<ContextItem> for Event {
    fn from(item: ContextItem) -> Self {
        Self { item, output: None, envelope: None }
    }
}
