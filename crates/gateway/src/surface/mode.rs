//! How the gateway presents its upstreams to clients.

use std::fmt;

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

/// As a configuration writes it.
impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

impl Mode {
    /// The notifications of changed lists that clients of this mode know of.
    pub(crate) fn list_changes(self) -> &'static [&'static str] {
        const ALL: [&str; 3] = [
            "notifications/tools/list_changed",
            "notifications/resources/list_changed",
            "notifications/prompts/list_changed",
        ];
        // A client of the meta-tools knows of tools alone.
        if self == Self::Gateway { &ALL[..1] } else { &ALL }
    }
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
