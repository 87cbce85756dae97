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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Instant;

    use super::*;
    use crate::tests::shop::{Scene, Who, configured, run};

    #[test]
    fn an_upstream_that_never_answers_holds_up_neither_the_calls_nor_the_next_configuration_for_long() {
        const DEAF: &str = r#"
startup: {upstream_timeout_seconds: 0.5}
upstreams: {deaf: {command: sh, args: [-c, "cat > /dev/null"], era: legacy, required: true}}
"#;
        run(async {
            let (mut config, shop) = configured(DEAF, &["shop"]);
            let next = config.clone();
            config.upstreams.remove("deaf");
            let live = Live::from(Gateway::start(config).await.unwrap());
            let before = live.now();
            let call = async || {
                let scene = Scene { shop: Arc::clone(&shop), gateway: live.now() };
                scene.outcome(&scene.client(Who::Mute), "price", r#"{"id": 1}"#).await
            };
            assert_eq!(call().await, "ok");
            let began = Instant::now();
            let mut replaced = pin!(live.replace(next));
            let meanwhile = tokio::select! {
                biased;
                replaced = &mut replaced => panic!("it is not waited for: {replaced:?}"),
                outcome = call() => outcome,
            };
            assert_eq!(meanwhile, "ok");
            let refused = replaced.await.unwrap_err().to_string();
            assert!(refused.contains("`deaf` did not start: no answer within 0.5 s"), "{refused}");
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
            assert!(Arc::ptr_eq(&before, &live.now()));
            assert_eq!(call().await, "ok");
        });
    }
}
