//! How the gateway presents its upstreams to clients.

use serde::{Deserialize, Serialize};

/// What clients are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Three meta-tools: browse, execute, view.
    #[default]
    Gateway,
    /// Every tool in `tools/list`, without its schema, beside `tool_hydrate` and `tool_execute`.
    Proxy,
    /// Every tool as its server defines it; calls and results pass unchanged.
    Passthrough,
}

/// The text of an answer to `tool_browse`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CardForm {
    /// One short line a card.
    #[default]
    Lines,
    /// A JSON array of cards with all their fields.
    Json,
}

/// Whether answers also carry `structuredContent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Structured {
    /// Text alone: some clients put both into the prompt.
    #[default]
    Off,
    /// The content also stands beside the text, as JSON.
    On,
}
