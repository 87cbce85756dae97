//! The processed output of a call.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::artifact::{ArtifactRef, Handle};
use super::selector::Selector;
use contextweaver_core::text::Estimator;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It did what it was asked to do.
    Ok,
    /// It did a part of it.
    Partial,
    /// It failed; the summary holds the message.
    Error,
}

/// What a model gets of a result: a summary, facts, and ways to reach the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultEnvelope {
    /// How the call ended.
    pub status: Status,
    /// The text that the prompt shows.
    pub summary: String,
    /// Statements taken from the result, bounded in number and length.
    pub facts: Vec<String>,
    /// References to the stored content. Everything that was stored is named here.
    pub artifacts: Vec<ArtifactRef>,
    /// Views of the artifacts that are worth offering.
    pub views: Vec<ViewSpec>,
    /// Where the result came from and what was done to it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provenance: Map<String, Value>,
    /// What the firewall did; `None` where it was not involved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firewall: Option<FirewallStats>,
}

/// A view of an artifact that is worth offering.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewSpec {
    /// An id that is unique within its envelope.
    pub view_id: String,
    /// A description of what it shows, for the model.
    pub label: String,
    /// The handle of the artifact.
    pub handle: Handle,
    /// The part of the artifact that it shows.
    pub selector: Selector,
}

/// What the firewall showed in place of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The result itself, because it was small.
    Passthrough,
    /// The whole result in a shorter notation.
    Compact,
    /// A summary by structure.
    Summary,
    /// A line that names where the conversation showed the same before.
    Repeat,
    /// A line that says that the result is the call's own arguments.
    Echo,
}

/// What the firewall did with one result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirewallStats {
    /// What was shown in place of the result.
    pub strategy: Strategy,
    /// The size above which the firewall acts, in characters.
    pub threshold_chars: usize,
    /// The size of the result, in bytes.
    pub original_bytes: u64,
    /// The exact number of tokens of the result; `None` unless it was asked for, since counting megabytes takes long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_tokens: Option<usize>,
    /// The exact number of tokens of what the prompt shows.
    pub summary_tokens: usize,
    /// The estimator of both counts.
    pub estimator: Estimator,
}
