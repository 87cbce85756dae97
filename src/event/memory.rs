//! What outlives a conversation.

use serde::{Deserialize, Serialize};

/// A remembered statement. A later fact under the same key replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// What it is about, e.g. `user_timezone` or `result:tc1:fact:0`.
    pub key: String,
    /// What is known.
    pub value: String,
}

/// A summary of something that happened before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Episode {
    /// Unique in its store.
    pub id: String,
    /// What happened.
    pub summary: String,
}
