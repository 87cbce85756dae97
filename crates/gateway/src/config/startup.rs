//! How the gateway starts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::common::settings::{FieldError, duration};

/// What happens when an upstream cannot be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StartMode {
    /// The others are served.
    #[default]
    Degraded,
    /// The gateway does not start.
    Strict,
}

/// How a gateway starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartConfig {
    /// What happens when an upstream cannot be started. One that is `required` counts as strict.
    pub mode: StartMode,
    /// The time that an upstream has for its handshake and lists.
    pub upstream_timeout: Duration,
    /// Upstreams that must have started, at least.
    pub min_healthy_upstreams: usize,
    /// Whether a gateway without a tool is an error.
    pub fail_on_empty_catalog: bool,
    /// A folder for what upstreams list, so that the next start serves that at once and compares it when they are there.
    pub list_cache: Option<PathBuf>,
}

impl Default for StartConfig {
    fn default() -> Self {
        Self {
            mode: StartMode::Degraded,
            upstream_timeout: Duration::from_secs(10),
            min_healthy_upstreams: 1,
            fail_on_empty_catalog: true,
            list_cache: None,
        }
    }
}

/// The section `startup` of a file.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StartSection {
    mode: StartMode,
    upstream_timeout_seconds: f64,
    min_healthy_upstreams: usize,
    fail_on_empty_catalog: bool,
    list_cache: Option<PathBuf>,
}

impl Default for StartSection {
    fn default() -> Self {
        let StartConfig { mode, upstream_timeout, min_healthy_upstreams, fail_on_empty_catalog, list_cache } =
            StartConfig::default();
        let upstream_timeout_seconds = upstream_timeout.as_secs_f64();
        Self { mode, upstream_timeout_seconds, min_healthy_upstreams, fail_on_empty_catalog, list_cache }
    }
}

impl StartSection {
    /// The checked section. Its path is relative to `folder`.
    ///
    /// # Errors
    /// [`FieldError`]: the time is not a usable wait.
    pub(super) fn checked(self, folder: &Path) -> Result<StartConfig, FieldError> {
        let Self { mode, upstream_timeout_seconds, min_healthy_upstreams, fail_on_empty_catalog, list_cache } = self;
        let in_startup = |reason| FieldError::new("startup.upstream_timeout_seconds", reason);
        Ok(StartConfig {
            mode,
            upstream_timeout: duration(upstream_timeout_seconds).map_err(in_startup)?,
            min_healthy_upstreams,
            fail_on_empty_catalog,
            list_cache: list_cache.map(|path| folder.join(path)),
        })
    }
}
