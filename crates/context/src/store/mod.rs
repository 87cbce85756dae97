//! Stores for events, artifacts, facts and episodes.
//!
//! Four traits, so that the engine does not depend on a backend. Every method takes `&self`: a store is shared between
//! threads and does its own locking. The module `conformance`, in builds with the feature of that name, checks the
//! rules of the four traits on any backend.
//!
//! | backend | keeps | shared between |
//! |---|---|---|
//! | `Memory…` | all four | threads |
//! | `SqliteStore` (feature `sqlite`) | all four, in one file | threads and processes |
//! | [`FileArtifacts`] | artifacts, one file per content | threads and processes |
//!
//! [`Stores`] holds the four stores that a conversation needs. [`Limited`] gives any artifact store a time to live and
//! quotas. [`Session`] holds everything that compiling again needs, in one file.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
#[cfg(feature = "sqlite")]
pub mod database;
mod error;
mod files;
mod limits;
mod memory;
mod secrets;
mod session;
#[cfg(feature = "sqlite")]
mod sqlite;
mod verify;

pub use error::StoreError;
pub use files::FileArtifacts;
pub use limits::{Clock, Ledger, Limited, Limits, SystemClock};
pub use memory::{MemoryArtifacts, MemoryEpisodes, MemoryEvents, MemoryFacts};
pub(crate) use secrets::redact_member;
pub use secrets::{Family, Redacted, redact, redact_named};
pub use session::{Results, Session, SessionError};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteArtifacts, SqliteEpisodes, SqliteEvents, SqliteFacts, SqliteStore};
pub use verify::{SessionProblem, Verification, verify_session};

use std::sync::Arc;
use std::time::Duration;

use crate::event::{ArtifactRef, ContentHash, ContextItem, Episode, Fact, Handle, Transcript};

/// The stores of a conversation.
pub struct Stores {
    /// The log of events.
    pub events: Box<dyn EventLog>,
    /// Content that is kept out of prompts.
    pub artifacts: Box<dyn ArtifactStore>,
    /// Statements remembered by key.
    pub facts: Box<dyn FactStore>,
    /// Summaries of earlier conversations.
    pub episodes: Box<dyn EpisodicStore>,
}

impl Default for Stores {
    /// Stores that live as long as the process.
    fn default() -> Self {
        Self {
            events: Box::new(MemoryEvents::default()),
            artifacts: Box::new(MemoryArtifacts::default()),
            facts: Box::new(MemoryFacts::default()),
            episodes: Box::new(MemoryEpisodes::default()),
        }
    }
}

#[cfg(feature = "sqlite")]
impl Stores {
    /// Stores in the SQLite file at `path`, which is created when it is missing. Other processes may have it open as
    /// well.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub fn sqlite(path: impl AsRef<std::path::Path>) -> Result<Self, StoreError> {
        let store = SqliteStore::open(path)?;
        Ok(Self {
            events: Box::new(store.events()),
            artifacts: Box::new(store.artifacts()),
            facts: Box::new(store.facts()),
            episodes: Box::new(store.episodes()),
        })
    }
}

/// An append-only log of events.
pub trait EventLog: Send + Sync {
    /// Adds an event at the end.
    ///
    /// # Errors
    /// [`StoreError::Event`] when the event's id is taken or its parent is not in the log; [`StoreError::Backend`] when
    /// the backend failed. The log is then unchanged.
    fn append(&self, item: ContextItem) -> Result<(), StoreError>;

    /// Adds events at the end, in their order. A backend that can adds all of them or none, and faster than one by one.
    ///
    /// # Errors
    /// As [`EventLog::append`]. Where a backend adds one by one, those before the event with the error stay.
    fn append_all(&self, items: &[ContextItem]) -> Result<(), StoreError> {
        items.iter().try_for_each(|item| self.append(item.clone()))
    }

    /// The event with this id.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the backend failed or holds something that is not an event.
    fn get(&self, id: &str) -> Result<Option<ContextItem>, StoreError>;

    /// All events in the order in which they were added.
    ///
    /// # Errors
    /// As [`EventLog::get`].
    fn transcript(&self) -> Result<Transcript, StoreError>;

    /// The number of events.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the backend failed.
    fn len(&self) -> Result<usize, StoreError>;

    /// Whether there are no events.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the backend failed.
    fn is_empty(&self) -> Result<bool, StoreError> {
        Ok(self.len()? == 0)
    }
}

/// Content that is kept out of prompts, by handle. Equal bytes are kept once.
pub trait ArtifactStore: Send + Sync {
    /// Keeps `bytes` under `handle`. Earlier content of the handle, with its media type and label, is replaced.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] when the limits leave no room, [`StoreError::Backend`] when the backend failed; nothing
    /// is then changed.
    fn put(&self, handle: &Handle, bytes: &[u8], media_type: &str, label: &str) -> Result<ArtifactRef, StoreError>;

    /// The bytes under `handle`, verified against their hash.
    ///
    /// # Errors
    /// [`StoreError::NoArtifact`], [`StoreError::Evicted`], [`StoreError::Altered`], or [`StoreError::Backend`] when
    /// the backend failed.
    fn get(&self, handle: &Handle) -> Result<Arc<[u8]>, StoreError>;

    /// The description of the artifact.
    ///
    /// # Errors
    /// As [`ArtifactStore::get`], without reading the bytes.
    fn reference(&self, handle: &Handle) -> Result<ArtifactRef, StoreError>;

    /// The descriptions of all artifacts, by handle.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the backend failed.
    fn list(&self) -> Result<Vec<ArtifactRef>, StoreError>;

    /// Removes the handle. Returns whether it was known.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the backend failed.
    fn delete(&self, handle: &Handle) -> Result<bool, StoreError>;

    /// The times at which artifacts were stored, since the start of 1970, as far as the backend knows them.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the backend failed.
    fn stored(&self) -> Result<Vec<(Handle, Duration)>, StoreError> {
        Ok(Vec::new())
    }

    /// Whether its handles are made of what they stand for, so that none can be taken by other content: then nobody has to ask
    /// before each [`ArtifactStore::put`].
    fn names_by_content(&self) -> bool {
        false
    }
}

/// Statements that outlive a conversation, by key.
pub trait FactStore: Send + Sync {
    /// Keeps a fact; it replaces an earlier one under the same key.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the backend failed.
    fn put(&self, fact: Fact) -> Result<(), StoreError>;

    /// The fact under `key`.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the backend failed.
    fn get(&self, key: &str) -> Result<Option<Fact>, StoreError>;

    /// All facts, by key.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the backend failed.
    fn all(&self) -> Result<Vec<Fact>, StoreError>;

    /// Removes a fact. Returns whether it was known.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the backend failed.
    fn delete(&self, key: &str) -> Result<bool, StoreError>;
}

/// Summaries of earlier events, in the order in which they were added.
pub trait EpisodicStore: Send + Sync {
    /// Keeps an episode; one with the same id is replaced in its place.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the backend failed.
    fn put(&self, episode: Episode) -> Result<(), StoreError>;

    /// The last `count` episodes, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the backend failed.
    fn latest(&self, count: usize) -> Result<Vec<Episode>, StoreError>;

    /// All episodes, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the backend failed.
    fn all(&self) -> Result<Vec<Episode>, StoreError>;

    /// Removes an episode. Returns whether it was known.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the backend failed.
    fn delete(&self, id: &str) -> Result<bool, StoreError>;
}

/// Whether `handle` belongs to another content than that with `hash`, which is asked for only where there is content.
///
/// # Errors
/// [`StoreError::Backend`] when the backend failed.
pub(crate) fn is_taken(
    store: &dyn ArtifactStore,
    handle: &Handle,
    hash: impl FnOnce() -> ContentHash,
) -> Result<bool, StoreError> {
    match store.reference(handle) {
        Ok(kept) => Ok(kept.content_hash != hash()),
        Err(StoreError::NoArtifact(_) | StoreError::Evicted { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The description that a store keeps of `bytes`.
fn reference(handle: &Handle, bytes: &[u8], media_type: &str, label: &str) -> ArtifactRef {
    ArtifactRef {
        handle: handle.clone(),
        media_type: media_type.to_owned(),
        size_bytes: bytes.len() as u64,
        label: label.to_owned(),
        content_hash: ContentHash::of(bytes),
    }
}

/// A borrowed store is a store, so that a decorator can wrap one that others use too.
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
