//! What can go wrong in a store.

use crate::event::{ContentHash, Handle, TranscriptError};

/// A store did not do what it was asked. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No artifact has ever had this handle.
    #[error("no artifact `{0}`")]
    NoArtifact(Handle),
    /// The artifact was removed by the policy of the store.
    #[error("the artifact `{handle}` was evicted ({reason}); call the tool again to get its content")]
    Evicted {
        /// The artifact.
        handle: Handle,
        /// Which limit removed it.
        reason: String,
    },
    /// The bytes are not those that were stored.
    #[error("the artifact `{handle}` was altered: its content has the hash {found}, stored was {expected}")]
    Altered {
        /// The artifact.
        handle: Handle,
        /// The hash of what was stored.
        expected: ContentHash,
        /// The hash of what is there.
        found: ContentHash,
    },
    /// An artifact is larger than the store may hold.
    #[error("the artifact `{handle}` has {size} bytes; the store holds at most {limit}")]
    TooLarge {
        /// The artifact.
        handle: Handle,
        /// Its size in bytes.
        size: u64,
        /// The most that the store holds, in bytes.
        limit: u64,
    },
    /// The event breaks a rule of the log.
    #[error(transparent)]
    Event(#[from] TranscriptError),
    /// The backend failed.
    #[error("{place}: {reason}")]
    Backend {
        /// The file or database.
        place: String,
        /// What the system said.
        reason: String,
    },
}
