//! An event, the unit of the log.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::artifact::ArtifactRef;
use contextweaver_core::names::named;

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

named! {
    /// The kind of an event.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum ItemKind as "kind of event" {
        /// Something the user said.
        UserTurn = "user_turn",
        /// Something the agent said.
        AgentMsg = "agent_msg",
        /// A call of a tool, or a task given to another agent.
        ToolCall = "tool_call",
        /// What a call returned. Its parent is the call.
        ToolResult = "tool_result",
        /// A piece of documentation.
        DocSnippet = "doc_snippet",
        /// A document found by retrieval.
        RetrievedDoc = "retrieved_doc",
        /// A remembered fact.
        MemoryFact = "memory_fact",
        /// The state of the agent's plan.
        PlanState = "plan_state",
        /// A rule that the agent must follow.
        Policy = "policy",
    }
}

named! {
    /// What the model is about to do.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum Phase as "phase" {
        /// Choose tools for the query.
        Route = "route",
        /// Write the arguments of a call.
        Call = "call",
        /// Understand a result.
        Interpret = "interpret",
        /// Answer the user.
        Answer = "answer",
    }
}

named! {
    /// How sensitive an item is, in ascending order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    pub enum Sensitivity as "sensitivity" {
        /// May be shown to anyone.
        #[default]
        Public = "public",
        /// For members of the organisation.
        Internal = "internal",
        /// For those who need to know; the default floor of the filter.
        Confidential = "confidential",
        /// For named people only.
        Restricted = "restricted",
    }
}

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
