//! Where events, artifacts, facts and episodes are kept.
//!
//! Four traits, so that the engines above do not know the backend. Every method takes `&self`: a store is shared
//! between threads, and guards itself.

mod error;
mod memory;

pub use error::StoreError;
pub use memory::{MemoryArtifacts, MemoryEpisodes, MemoryEvents, MemoryFacts};

use std::sync::Arc;

use crate::event::{ArtifactRef, ContextItem, Episode, Fact, Handle, Transcript};

/// An append-only log of events.
pub trait EventLog: Send + Sync {
    /// Adds an event at the end.
    ///
    /// # Errors
    /// The event's id is taken, its parent is not in the log, or the backend failed; the log is then unchanged.
    fn append(&self, item: ContextItem) -> Result<(), StoreError>;

    /// The event called `id`.
    ///
    /// # Errors
    /// The backend failed or holds something that is no event.
    fn get(&self, id: &str) -> Result<Option<ContextItem>, StoreError>;

    /// All events in the order in which they were added.
    ///
    /// # Errors
    /// As [`EventLog::get`].
    fn transcript(&self) -> Result<Transcript, StoreError>;

    /// The number of events.
    ///
    /// # Errors
    /// The backend failed.
    fn len(&self) -> Result<usize, StoreError>;

    /// Whether there are no events.
    ///
    /// # Errors
    /// The backend failed.
    fn is_empty(&self) -> Result<bool, StoreError> {
        Ok(self.len()? == 0)
    }
}

/// Content that is kept out of prompts, by handle. Equal bytes are kept once.
pub trait ArtifactStore: Send + Sync {
    /// Keeps `bytes` under `handle`. The same bytes under the same handle are no change; other bytes replace what the
    /// handle meant.
    ///
    /// # Errors
    /// The backend failed, or the policy leaves no room; nothing is then changed.
    fn put(&self, handle: &Handle, bytes: &[u8], media_type: &str, label: &str) -> Result<ArtifactRef, StoreError>;

    /// The bytes under `handle`, verified against their hash.
    ///
    /// # Errors
    /// [`StoreError::NoArtifact`], [`StoreError::Evicted`], [`StoreError::Altered`], or the backend failed.
    fn get(&self, handle: &Handle) -> Result<Arc<[u8]>, StoreError>;

    /// What is known about the artifact.
    ///
    /// # Errors
    /// As [`ArtifactStore::get`], without reading the bytes.
    fn reference(&self, handle: &Handle) -> Result<ArtifactRef, StoreError>;

    /// All artifacts, by handle.
    ///
    /// # Errors
    /// The backend failed.
    fn list(&self) -> Result<Vec<ArtifactRef>, StoreError>;

    /// Forgets the handle. Returns whether it was known.
    ///
    /// # Errors
    /// The backend failed.
    fn delete(&self, handle: &Handle) -> Result<bool, StoreError>;
}

/// Statements that outlive a conversation, by key.
pub trait FactStore: Send + Sync {
    /// Keeps a fact; the last under a key stands.
    ///
    /// # Errors
    /// The backend failed.
    fn put(&self, fact: Fact) -> Result<(), StoreError>;

    /// The fact under `key`.
    ///
    /// # Errors
    /// The backend failed.
    fn get(&self, key: &str) -> Result<Option<Fact>, StoreError>;

    /// All facts, by key.
    ///
    /// # Errors
    /// The backend failed.
    fn all(&self) -> Result<Vec<Fact>, StoreError>;

    /// Forgets a fact. Returns whether it was known.
    ///
    /// # Errors
    /// The backend failed.
    fn delete(&self, key: &str) -> Result<bool, StoreError>;
}

/// Summaries of what happened before, in the order in which they were added.
pub trait EpisodicStore: Send + Sync {
    /// Keeps an episode; one with the same id is replaced in its place.
    ///
    /// # Errors
    /// The backend failed.
    fn put(&self, episode: Episode) -> Result<(), StoreError>;

    /// The last `count` episodes, oldest first.
    ///
    /// # Errors
    /// The backend failed.
    fn latest(&self, count: usize) -> Result<Vec<Episode>, StoreError>;

    /// All episodes, oldest first.
    ///
    /// # Errors
    /// The backend failed.
    fn all(&self) -> Result<Vec<Episode>, StoreError>;

    /// Forgets an episode. Returns whether it was known.
    ///
    /// # Errors
    /// The backend failed.
    fn delete(&self, id: &str) -> Result<bool, StoreError>;
}
