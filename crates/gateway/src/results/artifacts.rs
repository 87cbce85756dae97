//! Where results are kept, and for how long.
//!
//! In memory unless a path is given. The age of what a file or folder holds outlives the process, and so does the key
//! that its handles are made with.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::holdings::{HandleKey, Holdings};
use crate::guard::sign::Key;
use crate::session::client::Session;
use contextweaver_context::event::{ArtifactRef, Handle};
use contextweaver_context::store::{
    ArtifactStore, FileArtifacts, Ledger, Limited, Limits, MemoryArtifacts, SqliteStore, StoreError, SystemClock,
};

/// What is kept of results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArtifactsConfig {
    /// How long a result is kept, in seconds; without an end when `None`.
    pub ttl_seconds: Option<NonZeroU64>,
    /// The size of all results together, in bytes; no bound when `None`.
    pub max_bytes: Option<NonZeroU64>,
    /// The number of handles; no bound when `None`.
    pub max_artifacts: Option<NonZeroUsize>,
    /// Whether secrets are taken out before anything is stored or shown.
    pub redact_secrets: bool,
    /// A folder, or a database of SQLite when it ends in `.sqlite` or `.db`; memory when `None`.
    pub path: Option<PathBuf>,
}

impl Default for ArtifactsConfig {
    fn default() -> Self {
        Self {
            ttl_seconds: NonZeroU64::new(24 * 60 * 60),
            max_bytes: NonZeroU64::new(256 << 20),
            max_artifacts: NonZeroUsize::new(10_000),
            redact_secrets: false,
            path: None,
        }
    }
}

/// Where results are kept.
#[derive(Clone)]
pub(crate) struct Artifacts {
    store: Arc<dyn ArtifactStore>,
    /// What handles are made with.
    pub(crate) key: HandleKey,
    /// Whether it waits for a disk.
    pub(crate) on_disk: bool,
}

impl std::fmt::Debug for Artifacts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Artifacts").field("on_disk", &self.on_disk).finish_non_exhaustive()
    }
}

impl Artifacts {
    /// Opens what `config` names.
    ///
    /// # Errors
    /// The file or folder cannot be opened or made, or there is no key for its handles.
    pub(crate) fn open(config: &ArtifactsConfig) -> Result<Self, StoreError> {
        let bare = |place: &str, reason: String| StoreError::Backend { place: place.to_owned(), reason };
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| {
            bare("artifacts", format!("no key for handles, since the system gives no randomness: {error}"))
        })?;
        let store = match &config.path {
            None => limited(MemoryArtifacts::default(), config)?,
            Some(path) if is_database(path) => {
                let store = SqliteStore::open(path)?;
                key = store.key(&key)?;
                limited(store.artifacts(), config)?
            }
            Some(path) => {
                let store = FileArtifacts::open(path)?;
                key = store.key(&key)?;
                limited(store, config)?
            }
        };
        let key = Key::new(key).map_err(|error| bare("artifacts", error.to_string()))?;
        Ok(Self { store, key: HandleKey::Secret(key), on_disk: config.path.is_some() })
    }

    /// The same with handles that are made without a key: for the only client of a gateway in its own process.
    pub(crate) fn without_key(self) -> Self {
        Self { key: HandleKey::Open, ..self }
    }

    /// The results that all callers have there, the largest first, with their handles as the callers know them.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn all(&self) -> Result<Vec<ArtifactRef>, StoreError> {
        let mut all = self.store.list()?;
        for artifact in &mut all {
            // What is before the handle stands for its owner.
            artifact.handle = Handle::new(artifact.handle.as_str().rsplit('/').next().unwrap_or_default());
        }
        all.sort_by(|left, right| {
            right.size_bytes.cmp(&left.size_bytes).then_with(|| left.handle.as_str().cmp(right.handle.as_str()))
        });
        Ok(all)
    }

    /// What the caller of this session has there.
    pub(crate) fn of(&self, session: &Session) -> Holdings {
        Holdings::new(&self.store, &self.key, session.tenant())
    }
}

/// Whether results are kept in a database there, as opposed to a folder.
pub(crate) fn is_database(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "sqlite" || end == "db")
}

fn limited(
    store: impl ArtifactStore + 'static,
    config: &ArtifactsConfig,
) -> Result<Arc<dyn ArtifactStore>, StoreError> {
    let limits = Limits {
        ttl: config.ttl_seconds.map(|seconds| Duration::from_secs(seconds.get())),
        max_bytes: config.max_bytes,
        max_artifacts: config.max_artifacts,
    };
    Ok(Arc::new(Limited::new(store, limits, SystemClock, Ledger::default())?))
}
