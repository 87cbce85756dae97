//! The errors of stores.

use crate::event::{ContentHash, Handle, TranscriptError};

/// A store could not do what was asked. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No artifact has ever had this handle.
    #[error("no artifact `{0}`")]
    NoArtifact(Handle),
    /// The artifact was removed by the policy of the store.
    #[error("the artifact `{handle}` was evicted ({reason}); call the tool again to get its content")]
    Evicted {
        /// The handle of the artifact.
        handle: Handle,
        /// The limit that removed it.
        reason: String,
    },
    /// The bytes differ from those that were stored.
    #[error("the artifact `{handle}` was altered: its content has the hash {found}, not {expected}")]
    Altered {
        /// The handle of the artifact.
        handle: Handle,
        /// The hash of the stored bytes.
        expected: ContentHash,
        /// The hash of the bytes that were found.
        found: ContentHash,
    },
    /// An artifact is larger than the store may hold.
    #[error("the artifact `{handle}` has {size} bytes; the store holds at most {limit}")]
    TooLarge {
        /// The handle of the artifact.
        handle: Handle,
        /// The size of the artifact in bytes.
        size: u64,
        /// The number of bytes that the store holds at most.
        limit: u64,
    },
    /// The handle belongs to another content.
    #[error("the artifact `{0}` is there already with other content; use another store, or another handle")]
    Taken(Handle),
    /// The event breaks a rule of the log.
    #[error(transparent)]
    Event(#[from] TranscriptError),
    /// The backend failed.
    #[error("{place}: {reason}")]
    Backend {
        /// The path of the file or database.
        place: String,
        /// The system's error, with a fix where one is known.
        reason: String,
    },
}

impl StoreError {
    /// The same in words, for a message that names the file itself.
    #[must_use]
    pub fn without_place(self) -> String {
        match self {
            Self::Backend { reason, .. } => reason,
            other => other.to_string(),
        }
    }
}
