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

/// How long such requests may take longer than their deadline.
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
        // Whoever asks from now on asks the next gateway. Clients may watch many resources.
        let watching = (Arc::clone(&next), Arc::clone(&before));
        if let Err(error) = tokio::task::spawn_blocking(move || watching.0.watch_on(&watching.1)).await {
            tracing::error!(%error, "what clients watch could not be held against the configuration");
        }
        next.tell_of_changes();
        let gone = before.upstreams().iter().filter(|upstream| !next.upstreams().has(upstream)).cloned().collect();
        tokio::spawn(retire(before, gone, SPARE));
        Ok(kept)
    }
}

/// Ends these upstreams of a gateway, which the next one has not, when no request needs them any more: at the latest
/// when the last one must have ended, with all questions to people, and `spare` later.
async fn retire(before: Arc<Gateway>, gone: Vec<Arc<Upstream>>, spare: Duration) {
    let end = tokio::time::Instant::now() + before.config().deadline + spare;
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

    use serde_json::json;

    use super::*;
    use crate::guard::config::StatePlace;
    use crate::tests::shop::{Scene, Who, configured, run, upstream};
    use crate::upstream::call::Call;
    use crate::upstream::config::UpstreamConfig;
    use crate::upstream::fault::Fault;

    #[test]
    fn an_upstream_that_is_gone_ends_with_the_last_request_that_may_need_it_or_with_its_deadline() {
        run(async {
            let (mut config, _) = configured("upstreams: {}", &["shop"]);
            config.upstreams.values_mut().for_each(|shop| shop.timeout = Duration::from_millis(50));
            let begin = async |deadline| {
                let gateway = Gateway::start(GatewayConfig { deadline, ..config.clone() }).await.unwrap();
                let gone: Vec<_> = gateway.upstreams().iter().cloned().collect();
                tokio::spawn(retire(Arc::clone(&gateway), gone.clone(), Duration::ZERO));
                (gateway, gone)
            };
            let is_open = async |gone: &[Arc<Upstream>]| {
                tokio::time::sleep(4 * LOOK).await;
                gone[0].request(Call::own("prompts/list", None)).await.is_ok()
            };
            // A call that waits for a person holds the gateway where it began, longer than an upstream may take.
            let (waiting, gone) = begin(Duration::from_secs(3600)).await;
            assert!(is_open(&gone).await);
            drop(waiting);
            assert!(!is_open(&gone).await);
            let (_held, gone) = begin(Duration::from_millis(100)).await;
            assert!(!is_open(&gone).await);
        });
    }

    #[test]
    fn cached_results_are_of_the_gateway_that_serves() {
        run(async {
            let (config, shop) = configured("cache: {read_only: true, allow: ['shop:price']}", &["shop"]);
            let live = Live::from(Gateway::start(config.clone()).await.unwrap());
            let price = async || {
                let scene = Scene { shop: Arc::clone(&shop), gateway: live.now() };
                scene.execute(&scene.client(Who::Mute), "price", json!({"id": 1})).await["content"].to_string()
            };
            let first = price().await;
            let mut refused = config.clone();
            refused.upstreams.insert("absent".to_owned(), UpstreamConfig { required: true, ..absent() });
            live.replace(refused).await.unwrap_err();
            assert_eq!(price().await, first);
            live.replace(config).await.unwrap();
            assert_ne!(price().await, first);
        });
    }

    #[test]
    fn what_guards_remember_stays_where_it_is() {
        run(async {
            let folder = tempfile::tempdir().unwrap();
            let (config, _) = configured("pins: {mode: strict}", &["shop"]);
            let live = Live::from(Gateway::start(config.clone()).await.unwrap());
            let mut elsewhere = config.clone();
            elsewhere.guards.pins.file = Some(folder.path().join("pins.json"));
            elsewhere.guards.state = Some(StatePlace::File(folder.path().join("state.db")));
            assert_eq!(live.replace(elsewhere).await.unwrap(), ["pins.file", "state"]);
            assert_eq!(live.now().config().guards, config.guards);
            assert!(live.replace(config).await.unwrap().is_empty());
        });
    }

    /// An upstream that does not start.
    fn absent() -> UpstreamConfig {
        upstream(|_, _| Err(Fault::Unavailable("it is not there".to_owned())))
    }

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
