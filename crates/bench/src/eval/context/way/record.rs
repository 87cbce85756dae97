//! What is measured on a scenario that has a [`Way`](super::Way).

use serde::{Deserialize, Serialize};

use crate::eval::context::record::Kept;

/// The ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WayKind {
    /// A memory of earlier sessions.
    Memory,
    /// The same, in a file.
    MemoryFile,
    /// The same, in an SQLite store.
    MemorySqlite,
    /// The same, behind an address with the interface of Mem0.
    MemoryMem0,
    /// A hand-over.
    Handoff,
    /// Results that were processed elsewhere.
    Envelopes,
    /// Programs of others.
    Hooks,
}

impl WayKind {
    /// The name of its table in a scenario.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory | Self::MemoryFile | Self::MemorySqlite | Self::MemoryMem0 => "memory",
            Self::Handoff => "handoff",
            Self::Envelopes => "envelopes",
            Self::Hooks => "hooks",
        }
    }

    /// What a scenario of it exercises, for readers.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Memory => "sessions become a memory, a later prompt searches it",
            Self::MemoryFile => "the same, kept in a memory file",
            Self::MemorySqlite => "the same, kept in an SQLite store",
            Self::MemoryMem0 => "the same, asked over HTTP in the shape of Mem0",
            Self::Handoff => "a hand-over, from which a new session goes on",
            Self::Envelopes => "results that another program processed",
            Self::Hooks => "other programs summarise, count and mask",
        }
    }

    /// The commands, or the call of a program, that do the same.
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            Self::Memory | Self::MemoryFile | Self::MemorySqlite | Self::MemoryMem0 => "consolidate, replay --memory",
            Self::Handoff => "handoff --out, replay",
            Self::Envelopes => "ingest, replay",
            Self::Hooks => "ingest --config, replay --config",
        }
    }
}

/// Everything measured on one scenario. Tokens are exact counts of the configured estimator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WayFacts {
    /// Which way it is.
    pub way: WayKind,
    /// Logs, that of the prompt included.
    pub logs: usize,
    /// Events in all of them.
    pub events: usize,
    /// Tokens of the texts of all events, one below the other.
    pub history: usize,
    /// Tokens of what the memory or the hand-over gives; `None` where nothing comes from before.
    pub carried: Option<usize>,
    /// Tokens allowed, for the prompt and for the control.
    pub budget: usize,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// What must be there and is, or is not.
    pub kept: Kept,
    /// What the control has of it.
    pub control: ControlKept,
    /// What the record of the prompt says of the memory and the hooks.
    pub notes: Vec<String>,
}

/// What the newest texts alone have of the planted facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlKept {
    /// Its tokens.
    pub tokens: usize,
    /// Planted facts that it states.
    pub facts_in_prompt: usize,
    /// The others, as `label: value`.
    pub lost: Vec<String>,
    /// Texts that must not be there and are.
    pub forbidden: Vec<String>,
}
