//! The gateway that serves now. When the configuration is read again, another takes its place while clients stay connected.
//!
//! Requests that have begun end where they began. What the configuration does not change is handed over: connections to
//! upstreams, clients, results, counters, quotas. Nothing is replaced unless all of the new one works.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use super::gateway::Gateway;
use crate::catalog::serving::StartError;
use crate::config::file::GatewayConfig;
use crate::upstream::client::Upstream;

/// How often it is looked whether requests of a gateway that was replaced have ended.
const LOOK: Duration = Duration::from_millis(100);

/// How long such requests may take longer than their upstreams may.
const SPARE: Duration = Duration::from_secs(5);

/// The gateway that serves now.
#[derive(Debug, Clone)]
pub struct Live(Arc<ArcSwap<Gateway>>);

impl From<Arc<Gateway>> for Live {
    fn from(gateway: Arc<Gateway>) -> Self {
        Self(Arc::new(ArcSwap::new(gateway)))
    }
}

impl Live {
    /// The gateway of now.
    #[must_use]
    pub fn now(&self) -> Arc<Gateway> {
        self.0.load_full()
    }

    /// Starts a gateway with this configuration, and puts it in place of that of now. Clients are told that their lists
    /// may be others. The fields that take effect only after a restart, and are others than before, are returned.
    ///
    /// # Errors
    /// [`StartError`]; that of now stays.
    pub async fn replace(&self, config: GatewayConfig) -> Result<Vec<&'static str>, StartError> {
        let before = self.now();
        before.opened().await;
        let (next, kept) = Gateway::start_after(&before, config).await?;
        self.0.store(Arc::clone(&next));
        next.tell_of_changes();
        let is_kept = |upstream: &&Arc<Upstream>| next.upstreams().iter().any(|other| Arc::ptr_eq(other, upstream));
        let gone = before.upstreams().iter().filter(|upstream| !is_kept(upstream)).cloned().collect();
        tokio::spawn(retire(before, gone));
        Ok(kept)
    }
}

/// Ends these upstreams of a gateway, which the next one has not, when no request needs them any more.
async fn retire(before: Arc<Gateway>, gone: Vec<Arc<Upstream>>) {
    let longest = gone.iter().map(|upstream| upstream.config().timeout).max().unwrap_or_default();
    let end = tokio::time::Instant::now() + longest + SPARE;
    while !gone.is_empty() && Arc::strong_count(&before) > 1 && tokio::time::Instant::now() < end {
        tokio::time::sleep(LOOK).await;
    }
    for upstream in gone {
        upstream.close().await;
    }
}
