//! Where results are kept, and for how long.
//!
//! In memory unless a path or a bucket is given. The age of what a file, folder or bucket holds outlives the process, and
//! so does the key that its handles are made with.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::holdings::{HandleKey, Holdings};
#[cfg(feature = "s3")]
use super::s3::S3Artifacts;
use super::s3::S3Config;
use crate::common::settings::{ExpandError, FieldError};
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
    /// A bucket, instead of a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Config>,
}

impl Default for ArtifactsConfig {
    fn default() -> Self {
        Self {
            ttl_seconds: NonZeroU64::new(24 * 60 * 60),
            max_bytes: NonZeroU64::new(256 << 20),
            max_artifacts: NonZeroUsize::new(10_000),
            redact_secrets: false,
            path: None,
            s3: None,
        }
    }
}

impl ArtifactsConfig {
    /// The same with its path in `folder`, and with the variables of its bucket in place.
    ///
    /// # Errors
    /// The field that is wrong, and why.
    pub(crate) fn checked(
        mut self,
        folder: &Path,
        expand: &dyn Fn(&str) -> Result<String, ExpandError>,
    ) -> Result<Self, FieldError> {
        self.path = self.path.map(|path| folder.join(path));
        let Some(s3) = &mut self.s3 else { return Ok(self) };
        s3.check(expand).map_err(|error| error.under("s3"))?;
        match &self.path {
            Some(_) => Err(FieldError::new("s3", "is set together with `path`; remove one of the two")),
            None => Ok(self),
        }
    }

    /// Asks whether the bucket can be read, where there is one; nothing is written.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn look_at_bucket(&self) -> Result<(), StoreError> {
        #[cfg(feature = "s3")]
        if let Some(bucket) = &self.s3 {
            return S3Artifacts::look(bucket);
        }
        Ok(())
    }

    /// Whether results are kept outside of the process, so that looking at them waits.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.path.is_some() || self.s3.is_some()
    }
}

/// Where results are kept.
#[derive(Clone)]
pub(crate) struct Artifacts {
    store: Arc<dyn ArtifactStore>,
    /// What handles are made with.
    pub(crate) key: HandleKey,
    /// Whether it waits for a disk or a network.
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
            bare("artifacts", format!("no key for handles, since the system provides no randomness: {error}"))
        })?;
        let store = match &config.path {
            None if config.s3.is_some() => in_bucket(config, &mut key)?,
            None => limited(MemoryArtifacts::default(), config)?,
            Some(path) if is_for_database(path) => {
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
        Ok(Self { store, key: HandleKey::Secret(key), on_disk: config.is_elsewhere() })
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

/// The store in the bucket that `config` names; its key replaces `key`.
#[cfg(feature = "s3")]
fn in_bucket(config: &ArtifactsConfig, key: &mut [u8; 32]) -> Result<Arc<dyn ArtifactStore>, StoreError> {
    let Some(bucket) = &config.s3 else { return limited(MemoryArtifacts::default(), config) };
    let store = S3Artifacts::new(bucket)?;
    *key = store.key(key)?;
    limited(store, config)
}

/// Refuses: this build has no S3.
#[cfg(not(feature = "s3"))]
fn in_bucket(_: &ArtifactsConfig, _: &mut [u8; 32]) -> Result<Arc<dyn ArtifactStore>, StoreError> {
    let reason = "this build has no S3 support; build it with the feature `s3` of contextweaver-gateway".to_owned();
    Err(StoreError::Backend { place: "artifacts.s3".to_owned(), reason })
}

/// Whether results are kept in a database there, as opposed to a folder: the ending of the name says so.
pub(crate) fn is_for_database(path: &Path) -> bool {
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
