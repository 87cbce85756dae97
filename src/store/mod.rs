//! Where events, artifacts, facts and episodes are kept.
//!
//! Four traits, so that the engines above do not know the backend. Every method takes `&self`: a store is shared
//! between threads, and guards itself. [`conformance`] checks the rules of the four traits on any backend.
//!
//! | backend | keeps | shared between |
//! |---|---|---|
//! | `Memory…` | all four | threads |
//! | [`SqliteStore`] | all four, in one file | threads and processes |
//! | [`FileArtifacts`] | artifacts, one file per content | threads and processes |
//!
//! Two decorators add a policy to any artifact store: [`Limited`] (time to live and quotas) and [`Redacting`] (secrets
//! are taken out before they are stored). [`Session`] is everything that a replay needs, in one file.

pub mod conformance;
mod error;
mod files;
pub mod files_io;
mod limits;
mod memory;
mod secrets;
mod session;
mod sqlite;

pub use error::StoreError;
pub use files::FileArtifacts;
pub use limits::{Clock, Ledger, Limited, Limits, SystemClock};
pub use memory::{MemoryArtifacts, MemoryEpisodes, MemoryEvents, MemoryFacts};
pub use secrets::{Family, Redacted, Redacting, redact};
pub use session::{Session, SessionError};
pub use sqlite::{SqliteArtifacts, SqliteEpisodes, SqliteEvents, SqliteFacts, SqliteStore};

use std::sync::Arc;
use std::time::Duration;

use crate::event::{ArtifactRef, ContentHash, ContextItem, Episode, Fact, Handle, Transcript};

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
    /// Keeps `bytes` under `handle`. What the handle meant before, with its media type and label, is replaced.
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

    /// When artifacts were stored, since the start of 1970, for those of which the backend knows it.
    ///
    /// # Errors
    /// The backend failed.
    fn stored(&self) -> Result<Vec<(Handle, Duration)>, StoreError> {
        Ok(Vec::new())
    }
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

/// What a store says about `bytes`.
fn reference(handle: &Handle, bytes: &[u8], media_type: &str, label: &str) -> ArtifactRef {
    ArtifactRef {
        handle: handle.clone(),
        media_type: media_type.to_owned(),
        size_bytes: bytes.len() as u64,
        label: label.to_owned(),
        content_hash: ContentHash::of(bytes),
    }
}

/// A borrowed store is a store, so that a decorator can stand before one that others use too.
impl<S: ArtifactStore + ?Sized> ArtifactStore for &S {
    fn put(&self, handle: &Handle, bytes: &[u8], media_type: &str, label: &str) -> Result<ArtifactRef, StoreError> {
        (**self).put(handle, bytes, media_type, label)
    }

    fn get(&self, handle: &Handle) -> Result<Arc<[u8]>, StoreError> {
        (**self).get(handle)
    }

    fn reference(&self, handle: &Handle) -> Result<ArtifactRef, StoreError> {
        (**self).reference(handle)
    }

    fn list(&self) -> Result<Vec<ArtifactRef>, StoreError> {
        (**self).list()
    }

    fn delete(&self, handle: &Handle) -> Result<bool, StoreError> {
        (**self).delete(handle)
    }

    fn stored(&self) -> Result<Vec<(Handle, Duration)>, StoreError> {
        (**self).stored()
    }
}
