//! Facts and episodes, which are remembered beyond one conversation.

use serde::{Deserialize, Serialize};

/// A remembered statement. A later fact under the same key replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// The key, which says what the fact is about, e.g. `user_timezone` or `result:tc1:fact:0`.
    pub key: String,
    /// The statement itself.
    pub value: String,
}

/// A summary of something that happened before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Episode {
    /// An id that is unique within its store.
    pub id: String,
    /// A summary of what happened, in a few sentences.
    pub summary: String,
}
