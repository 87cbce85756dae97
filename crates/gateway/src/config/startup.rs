//! How the gateway starts.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What happens when an upstream cannot be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StartMode {
    /// The others are served.
    #[default]
    Degraded,
    /// The gateway does not start.
    Strict,
}

/// How a gateway starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StartConfig {
    /// What happens when an upstream cannot be started. One that is `required` counts as strict.
    pub mode: StartMode,
    /// Seconds that an upstream has for its handshake and lists.
    pub upstream_timeout_seconds: f64,
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
            upstream_timeout_seconds: 10.0,
            min_healthy_upstreams: 1,
            fail_on_empty_catalog: true,
            list_cache: None,
        }
    }
}
