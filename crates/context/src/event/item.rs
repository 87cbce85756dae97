//! An event, the unit of the log.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::artifact::ArtifactRef;

/// The identity of an event within its log. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ItemId(Arc<str>);

impl ItemId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for ItemId {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl Borrow<str> for ItemId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

/// A text is not one of a fixed set of names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{name}`; use {choices}")]
pub struct ParseNameError {
    what: &'static str,
    name: String,
    choices: String,
}

impl ParseNameError {
    /// `name` is none of `choices`, which are the names of `what`.
    pub(crate) fn new(what: &'static str, name: &str, choices: &[&str]) -> Self {
        Self { what, name: name.to_owned(), choices: choices.join(", ") }
    }
}

/// Gives a fieldless enum the list of its values, their names and a parser, so that files, commands and messages agree.
macro_rules! named {
    ($type:ident, $what:literal, { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// All values, in their order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in files and on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.pad(self.name())
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::event::ParseNameError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let named = Self::ALL.iter().copied().find(|one| one.name() == text);
                named.ok_or_else(|| $crate::event::ParseNameError::new($what, text, &[$($name),+]))
            }
        }
    };
}
pub(crate) use named;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// Something the user said.
    UserTurn,
    /// Something the agent said.
    AgentMsg,
    /// A call of a tool, or a task given to another agent.
    ToolCall,
    /// What a call returned. Its parent is the call.
    ToolResult,
    /// A piece of documentation.
    DocSnippet,
    /// A document found by retrieval.
    RetrievedDoc,
    /// A remembered fact.
    MemoryFact,
    /// The state of the agent's plan.
    PlanState,
    /// A rule that the agent must follow.
    Policy,
}

named!(ItemKind, "kind of event", {
    UserTurn = "user_turn",
    AgentMsg = "agent_msg",
    ToolCall = "tool_call",
    ToolResult = "tool_result",
    DocSnippet = "doc_snippet",
    RetrievedDoc = "retrieved_doc",
    MemoryFact = "memory_fact",
    PlanState = "plan_state",
    Policy = "policy",
});

/// What the model is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Choose tools for the query.
    Route,
    /// Write the arguments of a call.
    Call,
    /// Understand a result.
    Interpret,
    /// Answer the user.
    Answer,
}

named!(Phase, "phase", { Route = "route", Call = "call", Interpret = "interpret", Answer = "answer" });

/// How sensitive an item is, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sensitivity {
    /// May be shown to anyone.
    #[default]
    Public,
    /// For members of the organisation.
    Internal,
    /// For those who need to know; the default floor of the filter.
    Confidential,
    /// For named people only.
    Restricted,
}

named!(Sensitivity, "sensitivity", {
    Public = "public",
    Internal = "internal",
    Confidential = "confidential",
    Restricted = "restricted",
});

/// An event: a turn, a call, a result, a document, a fact, a plan or a rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextItem {
    /// An id that is unique within its log.
    pub id: ItemId,
    /// The kind of the event.
    pub kind: ItemKind,
    /// The text that a prompt shows: the content, or the summary where an artifact holds the content.
    pub text: String,
    /// The event that this one depends on, e.g. the call of a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<ItemId>,
    /// Tokens as the source of the event counted them. Kept for round trips; never trusted for a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_estimate: Option<u64>,
    /// How sensitive the item is.
    #[serde(default)]
    pub sensitivity: Sensitivity,
    /// Other data from the source of the event.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// A reference to the whole content, when `text` is only a summary of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactRef>,
}

impl ContextItem {
    /// A public item without parent or metadata.
    #[must_use]
    pub fn new(id: impl Into<ItemId>, kind: ItemKind, text: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            kind,
            text: text.into(),
            parent_id: None,
            token_estimate: None,
            sensitivity: Sensitivity::default(),
            metadata: Map::new(),
            artifact: None,
        }
    }

    /// The item without its content: what the rules of a [`Transcript`](super::Transcript) are about.
    pub(crate) fn bare(&self) -> Self {
        Self { parent_id: self.parent_id.clone(), ..Self::new(self.id.clone(), self.kind, "") }
    }

    /// The item as a child of `parent`.
    #[must_use]
    pub fn under(mut self, parent: impl Into<ItemId>) -> Self {
        self.parent_id = Some(parent.into());
        self
    }

    /// The item with another sensitivity.
    #[must_use]
    pub fn with_sensitivity(mut self, sensitivity: Sensitivity) -> Self {
        self.sensitivity = sensitivity;
        self
    }
}
