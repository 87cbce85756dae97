//! A gateway that runs: its parts, put together.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::dispatch::Dispatcher;
use super::passthrough::Passthrough;
use crate::catalog::answers::Answered;
use crate::catalog::follow::{follow, watch_pins};
use crate::catalog::from_file::FileCatalog;
use crate::catalog::serving::{OpeningCatalog, Serving, StartError, UpstreamReport};
use crate::catalog::view::CatalogView;
use crate::common::work::work_of;
use crate::config::file::GatewayConfig;
use crate::guard::desk::Desk;
use crate::guard::pipeline::{GuardError, Guards};
use crate::guard::state::State;
use crate::protocol::message::{Outcome, Raw};
use crate::results::artifacts::Artifacts;
use crate::results::firewall::ResultFirewall;
use crate::session::client::{Caller, Session};
use crate::session::clients::Clients;
use crate::session::seen::Histories;
use crate::session::subscriptions::Subscriptions;
use crate::surface::mode::Mode;
use crate::telemetry::audit::{AuditConfig, AuditLog};
use crate::telemetry::diagnostics::Diagnostics;
use crate::telemetry::metrics::{Sessions, UpstreamState};
use crate::telemetry::observer::Telemetry;
use crate::telemetry::savings::{Savings, Spent};
use crate::tools::browse::Cards;
use crate::tools::calls::Calls;
use crate::tools::own_tools::OwnTools;
use crate::tools::questions::QuestionRules;
use crate::upstream::breaker::CircuitState;
use crate::upstream::config::UpstreamConfig;
use crate::upstream::mailbox::{EventSender, Events};
use crate::upstream::registry::Upstreams;
use crate::upstream::stdio::children_ended;

/// How long upstreams have to end, and events to be written.
const CLOSING: Duration = Duration::from_secs(6);

/// A gateway that runs. It ends when it is dropped; [`Gateway::close`] ends it in order.
#[derive(Debug)]
pub struct Gateway {
    config: GatewayConfig,
    answered: Option<Answered>,
    upstreams: Arc<Upstreams>,
    serving: Arc<Serving>,
    telemetry: Arc<Telemetry>,
    clients: Arc<Clients>,
    dispatcher: Dispatcher,
    kept: Kept,
}

/// What outlives a change of the configuration, besides what is found in the parts of a gateway.
#[derive(Debug, Clone)]
struct Kept {
    artifacts: Artifacts,
    telemetry: Arc<Telemetry>,
    clients: Arc<Clients>,
    histories: Arc<Histories>,
    subscriptions: Arc<Subscriptions>,
    /// Where upstreams say what nobody asked.
    events: EventSender,
    /// Who acts on it.
    following: Arc<ArcSwap<Weak<Serving>>>,
}

/// A gateway that knows what its upstreams list, and makes its catalog of that.
///
/// It introduces itself to clients; what else they ask waits until [`Opening::open`] has ended. When that fails nobody is
/// answered, and the gateway is to be dropped.
pub struct Opening {
    gateway: Arc<Gateway>,
    catalog: OpeningCatalog,
    /// What upstreams say unasked, where nobody acts on it yet.
    events: Option<Events>,
}

impl Opening {
    /// The gateway, to serve clients with meanwhile.
    #[must_use]
    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// Makes the catalog and serves it. The gateway that clients are served by is returned.
    ///
    /// # Errors
    /// [`StartError::Guard`] and [`StartError::Empty`].
    pub async fn open(self) -> Result<Arc<Gateway>, StartError> {
        let Self { gateway, catalog, events } = self;
        catalog.open().await?;
        let serving = Arc::downgrade(&gateway.serving);
        gateway.kept.following.store(Arc::new(serving.clone()));
        if let Some(events) = events {
            let Kept { following, subscriptions, .. } = &gateway.kept;
            tokio::spawn(follow(Arc::clone(following), Arc::clone(subscriptions), events));
        } else {
            // Not before: where this one does not start, the results of the gateway before are those of the one that
            // goes on.
            gateway.dispatcher.tools.calls.guards.forget_results().await;
        }
        if gateway.serving.shares_pins() {
            tokio::spawn(watch_pins(serving));
        }
        Ok(gateway)
    }
}

impl Gateway {
    /// Connects every upstream, side by side, reads their lists and makes the catalog.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(config: GatewayConfig) -> Result<Arc<Self>, StartError> {
        Self::begin(config).await?.open().await
    }

    /// Connects every upstream, side by side, and reads their lists; the catalog is made by what is returned.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn begin(config: GatewayConfig) -> Result<Opening, StartError> {
        let artifacts = Artifacts::open(&config.artifacts)?;
        Self::begin_on(config, artifacts).await
    }

    /// Waits, within the grace of [`Gateway::close`], for the end of the servers that a start which was dropped had started.
    pub async fn abandoned() {
        if tokio::time::timeout(CLOSING, children_ended()).await.is_err() {
            tracing::warn!(seconds = CLOSING.as_secs_f64(), "upstreams that did not stop in time are abandoned");
        }
    }

    /// The same as [`Gateway::begin`] with a store that is open.
    pub(super) async fn begin_on(config: GatewayConfig, artifacts: Artifacts) -> Result<Opening, StartError> {
        let open = |path: &PathBuf| {
            Diagnostics::open(path).map_err(|reason| StartError::Diagnostics { path: path.clone(), reason })
        };
        let audit = |audit: &AuditConfig| {
            AuditLog::open(audit, &config.digest)
                .map_err(|reason| StartError::Audit { path: audit.file.clone(), reason })
        };
        let diagnostics = config.diagnostics.as_ref().map(open).transpose()?;
        let telemetry = Telemetry::new(diagnostics, config.audit.as_ref().map(audit).transpose()?);
        let telemetry = Arc::new(telemetry.exporting(config.otlp.as_ref()).map_err(StartError::Otlp)?);
        let (sender, events) = EventSender::channel();
        let kept = Kept {
            artifacts,
            telemetry,
            clients: Arc::default(),
            histories: Arc::new(Histories::new(config.http.sessions_memory)),
            subscriptions: Arc::default(),
            events: sender,
            following: Arc::new(ArcSwap::from_pointee(Weak::new())),
        };
        Self::begin_with(config, kept, Some(events), None).await
    }

    /// Starts a gateway that goes on with what `before` has, as far as the configuration has not changed it. The fields of
    /// which the values of before stay in force are named.
    ///
    /// # Errors
    /// [`StartError`]; nothing of `before` is changed.
    pub(super) async fn start_after(
        before: &Arc<Self>,
        mut config: GatewayConfig,
    ) -> Result<(Arc<Self>, Vec<&'static str>), StartError> {
        let mut stays = Vec::new();
        let old = &before.config;
        // Whether secrets are taken out is a matter of the firewall, which is made anew.
        let redacts = config.artifacts.redact_secrets;
        let mut artifacts = old.artifacts.clone();
        artifacts.redact_secrets = redacts;
        let restart = [
            ("artifacts", config.artifacts != artifacts),
            ("audit", config.audit != old.audit),
            ("diagnostics", config.diagnostics != old.diagnostics),
            ("http.listen", config.http.listen != old.http.listen),
            ("http.sessions_memory_bytes", config.http.sessions_memory != old.http.sessions_memory),
            ("otlp", config.otlp != old.otlp),
        ];
        stays.extend(restart.into_iter().filter(|(_, is_other)| *is_other).map(|(field, _)| field));
        config.artifacts = artifacts;
        config.audit.clone_from(&old.audit);
        config.diagnostics.clone_from(&old.diagnostics);
        config.otlp.clone_from(&old.otlp);
        config.http.listen = old.http.listen;
        config.http.sessions_memory = old.http.sessions_memory;
        stays.extend(config.guards.stay_where(&old.guards));
        let next = Self::begin_with(config, before.kept.clone(), None, Some(before)).await?.open().await?;
        next.kept.telemetry.reloaded(&next.config.digest);
        Ok((next, stays))
    }

    async fn begin_with(
        config: GatewayConfig,
        kept: Kept,
        events: Option<Events>,
        before: Option<&Arc<Self>>,
    ) -> Result<Opening, StartError> {
        let passes = config.mode == Mode::Passthrough;
        let (of_file, answering, answered) = match config.catalog.as_ref().map(FileCatalog::load).transpose()? {
            Some(FileCatalog { contents, upstreams, answered }) => (Some(contents), upstreams, answered),
            None => (None, BTreeMap::new(), None),
        };
        let earlier = before.map(|before| &*before.upstreams);
        let upstreams = Arc::new(Upstreams::new(&config.upstreams, answering, passes, &kept.events, earlier));
        let guards = before.map(|before| &*before.dispatcher.tools.calls.guards);
        let source = |(name, upstream): (&String, &UpstreamConfig)| {
            (upstream.namespace.clone().unwrap_or_else(|| name.clone()), upstream.source())
        };
        let sources = config.upstreams.iter().map(source).collect();
        let guards = Guards::after(config.guards.clone(), config.tolerant_args, sources, guards);
        let guards = Arc::new(guards.map_err(GuardError::from)?);
        let Kept { artifacts, telemetry, clients, histories, subscriptions, .. } = kept.clone();
        let catalog = Serving::start(
            &config,
            Arc::clone(&upstreams),
            Arc::clone(&guards),
            (Arc::clone(&telemetry), Arc::clone(&clients)),
            of_file,
            before.map(|before| &*before.serving),
        )
        .await?;
        let serving = Arc::clone(catalog.serving());
        let questions =
            QuestionRules::new(config.mode, upstreams.only().is_some(), *guards.sanitize(), config.firewall.secrets);
        let dispatcher = Dispatcher {
            mode: config.mode,
            name: config.name.clone(),
            serving: Arc::clone(&serving),
            telemetry: Arc::clone(&telemetry),
            tools: OwnTools {
                cards: Cards {
                    top_k: config.top_k,
                    form: config.cards,
                    structured: config.structured,
                    stable: config.cache_stable,
                    learns: serving.learns(),
                },
                calls: Calls {
                    guards: Arc::clone(&guards),
                    upstreams: Arc::clone(&upstreams),
                    telemetry: Arc::clone(&telemetry),
                    firewall: ResultFirewall {
                        config: config.firewall,
                        artifacts,
                        structured: config.structured,
                        media_bytes: config.media_bytes,
                        session_memory: config.http.session_memory,
                        histories,
                    },
                    questions,
                    retry: config.retry.clone(),
                    mode: config.mode,
                    durations: config.durations,
                },
            },
            passthrough: Passthrough {
                mode: config.mode,
                serving: Arc::clone(&serving),
                upstreams: Arc::clone(&upstreams),
                guards,
                telemetry: Arc::clone(&telemetry),
                questions,
                subscriptions,
            },
        };
        let gateway = Arc::new(Self { config, answered, upstreams, serving, telemetry, clients, dispatcher, kept });
        Ok(Opening { gateway, catalog, events })
    }

    /// Ends when the catalog is served, at once from then on.
    pub(crate) async fn opened(&self) {
        self.serving.opened().await;
    }

    /// Answers a request of a client, within the budget of a request and in the turns of its caller.
    ///
    /// # Errors
    /// An error of JSON-RPC, for what is not a request of the protocol. Failures of tools are results.
    pub async fn answer(&self, caller: &Caller, method: &str, params: Option<&Raw>) -> Outcome {
        // Without a name, whoever runs the gateway is its only client.
        let tenant = caller.session().tenant();
        work_of(tenant, self.config.work, self.dispatcher.answer(caller, method, params)).await
    }

    /// Takes a notification of a client.
    pub fn take(&self, session: &Session, method: &str, params: Option<&Raw>) {
        self.dispatcher.take(session, method, params);
    }

    /// The catalog that is served now.
    #[must_use]
    pub fn catalog(&self) -> Arc<CatalogView> {
        self.serving.view()
    }

    /// The configuration that it was started with.
    #[must_use]
    pub fn config(&self) -> &GatewayConfig {
        &self.config
    }

    /// The upstreams behind it, by name.
    #[must_use]
    pub fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// How much of a catalog from a file is answered from another file; `None` where there is no such file.
    #[must_use]
    pub fn answered(&self) -> Option<Answered> {
        self.answered
    }

    /// The state of each upstream.
    #[must_use]
    pub fn reports(&self) -> Vec<UpstreamReport> {
        self.serving.reports()
    }

    /// What replicas share.
    pub(crate) fn state(&self) -> &Arc<dyn State> {
        self.dispatcher.tools.calls.guards.state()
    }

    /// Enters a client, which hears of changes for as long as its session is held.
    pub fn enter(&self, session: &Arc<Session>) {
        self.clients.enter(session);
    }

    /// Tells all clients that their lists may be others.
    pub(crate) fn tell_of_changes(&self) {
        self.serving.tell_of_changes();
    }

    /// Tells one client that its lists may be others.
    pub(crate) fn tell_of_changes_to(&self, session: &Session) {
        self.config.mode.list_changes().iter().for_each(|method| session.tell(method, None));
    }

    /// Watches resources for a client that listens to a stream of changes, or has asked another replica to watch them. What
    /// cannot be watched is left out.
    pub(crate) async fn watch(&self, caller: &Caller, uris: &[String]) {
        for uri in uris {
            if let Err(error) = self.dispatcher.passthrough.watch(caller, uri).await {
                tracing::debug!(code = error.code, "a resource cannot be watched");
            }
        }
    }

    /// Goes on with what clients watch at the gateway before this one: what they may not hear of any more ends, and upstreams
    /// that are others now are asked for the rest.
    pub(super) fn watch_on(&self, before: &Self) {
        self.dispatcher.passthrough.review_watched(&before.dispatcher.passthrough);
        let new = self.upstreams.iter().filter(|upstream| !before.upstreams.has(upstream));
        new.for_each(|upstream| upstream.is_connected_anew());
    }

    /// Ends what no client watches any more of what was watched for one.
    pub(crate) fn sweep_watched(&self) {
        self.dispatcher.passthrough.sweep_watched();
    }

    /// The client has ended its session: what was watched for it alone is not any more.
    pub(crate) fn unwatch_all(&self, session: &Arc<Session>) {
        self.dispatcher.passthrough.unwatch(session, &session.watched());
    }

    /// Reads the lists of every upstream again. One that does not answer keeps what it listed before.
    ///
    /// # Errors
    /// The tools cannot be indexed, or a guard cannot do its work; what was served stays.
    pub async fn refresh(&self) -> Result<(), GuardError> {
        self.serving.refresh().await
    }

    /// The metrics in the text format of Prometheus.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        let reports = self.reports();
        let upstreams = reports.iter().map(|report| {
            let circuits = CircuitState::ALL.map(|state| (state.name(), report.circuit == state));
            UpstreamState { name: &report.name, up: report.fault.is_none(), circuits }
        });
        let definitions = self.definition_tokens();
        let sessions = Sessions { open: self.clients.count(), all: self.clients.entered() };
        self.telemetry.metrics.text(sessions, upstreams, definitions, self.telemetry.exports())
    }

    /// Tokens of the definitions of all tools as their servers list them, and of those that are listed in their place;
    /// `None` in other modes than `gateway`.
    #[must_use]
    pub fn definition_tokens(&self) -> Option<(u64, u64)> {
        (self.config.mode == Mode::Gateway).then(|| self.catalog().definition_tokens())
    }

    /// What it has spared so far, in tokens, if it is in mode `gateway` and anything was called. Over HTTP each session
    /// that is open or was counts once.
    #[must_use]
    pub fn savings(&self) -> Option<Savings> {
        let spent = self.telemetry.metrics.all_spent();
        if self.config.mode != Mode::Gateway || spent == Spent::default() {
            return None;
        }
        let (definitions, surface) = self.definition_tokens()?;
        let sessions = self.clients.entered().max(1);
        Some(Savings { sessions, definitions: definitions * sessions, surface: surface * sessions, spent })
    }

    /// What is counted and recorded.
    pub(crate) fn telemetry(&self) -> &Arc<Telemetry> {
        &self.telemetry
    }

    /// The part that answers requests by their methods.
    pub(crate) fn dispatcher(&self) -> &Dispatcher {
        &self.dispatcher
    }

    /// Where an operator answers what waits for an approval.
    pub(crate) fn desk(&self) -> &Arc<Desk> {
        self.dispatcher.tools.calls.guards.desk()
    }

    /// Where results are kept.
    pub(super) fn artifacts(&self) -> &Artifacts {
        &self.dispatcher.tools.calls.firewall.artifacts
    }

    /// Ends every upstream, and waits for events that are not written yet.
    pub async fn close(&self) {
        self.serving.close();
        let closing = async {
            self.upstreams.close().await;
            self.telemetry.close().await;
        };
        if tokio::time::timeout(CLOSING, closing).await.is_err() {
            tracing::warn!(
                seconds = CLOSING.as_secs_f64(),
                "upstreams or events that did not stop in time are \
                                                             abandoned"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::sync::mpsc;

    use super::*;
    use crate::tests::shop::{Shop, upstream};
    use crate::{CatalogFile, ClientInfo};

    fn of_file(folder: &std::path::Path, tools: &Value) -> GatewayConfig {
        let path = folder.join("tools.json");
        std::fs::write(&path, json!({"server": "mail", "tools": tools}).to_string()).unwrap();
        GatewayConfig { catalog: Some(CatalogFile::from(path)), ..GatewayConfig::default() }
    }

    #[tokio::test]
    async fn a_client_is_greeted_before_the_catalog_is_made_and_shown_it_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let tools = json!([{"name": "send", "description": "Sends a mail."}]);
        for mode in [Mode::Gateway, Mode::Proxy] {
            let opening = Gateway::begin(GatewayConfig { mode, ..of_file(folder.path(), &tools) }).await.unwrap();
            let gateway = Arc::clone(opening.gateway());
            let caller = Caller::new(Session::new("s"), ClientInfo::default(), mpsc::channel(16).0);
            let ask = |method: &'static str, params: Value| {
                let (gateway, caller) = (Arc::clone(&gateway), caller.clone());
                tokio::spawn(async move { gateway.answer(&caller, method, Some(&Raw::of(&params))).await })
            };
            let hello = ask("initialize", json!({"protocolVersion": "2025-06-18"}));
            let list = ask("tools/list", json!({}));
            let ping = ask("ping", json!({}));
            ping.await.unwrap().unwrap();
            // What a proxy declares depends on its catalog, where nothing else is known of it.
            assert_eq!((hello.is_finished(), list.is_finished()), (mode == Mode::Gateway, false));
            assert_eq!(gateway.catalog().counts().tools, 0);
            opening.open().await.unwrap();
            let hello = hello.await.unwrap().unwrap().read::<Value>().unwrap();
            assert!(hello["serverInfo"].is_object() && hello["capabilities"]["logging"].is_object(), "{hello}");
            let listed = list.await.unwrap().unwrap().read::<Value>().unwrap();
            assert!(!listed["tools"].as_array().unwrap().is_empty());
            assert_eq!(gateway.catalog().counts().tools, 1);
        }
    }

    #[tokio::test]
    async fn meta_tools_are_listed_before_the_catalog_is_made_where_upstreams_list_tools_alone() {
        for (offers_tools_alone, kinds) in [(true, 1), (false, 3)] {
            let shop = Shop::called("shop");
            let answers = upstream(move |method, params| match method {
                "initialize" if offers_tools_alone => {
                    let mut hello: Value = shop.answer(method, params)?.read().unwrap();
                    hello["capabilities"] = json!({"tools": {}});
                    Ok(Raw::of(&hello))
                }
                _ => shop.answer(method, params),
            });
            let mut config = GatewayConfig { mode: Mode::Gateway, ..GatewayConfig::default() };
            config.upstreams.insert("shop".to_owned(), answers);
            let opening = Gateway::begin(config).await.unwrap();
            let gateway = Arc::clone(opening.gateway());
            let caller = Caller::new(Session::new("s"), ClientInfo::default(), mpsc::channel(16).0);
            let list = |gateway: Arc<Gateway>| {
                let caller = caller.clone();
                let tools = async move { gateway.answer(&caller, "tools/list", Some(&Raw::of(&json!({})))).await };
                tokio::spawn(async { tools.await.unwrap().read::<Value>().unwrap()["tools"].clone() })
            };
            let early = list(Arc::clone(&gateway));
            gateway.answer(&caller, "ping", None).await.unwrap();
            tokio::task::yield_now().await;
            assert_eq!(early.is_finished(), offers_tools_alone);
            opening.open().await.unwrap();
            let (early, late) = (early.await.unwrap(), list(gateway).await.unwrap());
            assert_eq!(early, late);
            let names: Vec<&str> = late.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
            let has = |kind: &str| names.iter().any(|name| name.starts_with(kind));
            assert_eq!(["tool_", "resource_", "prompt_"].into_iter().filter(|kind| has(kind)).count(), kinds);
        }
    }

    #[tokio::test]
    async fn a_proxy_declares_what_its_upstreams_list_before_the_catalog_is_made_and_afterwards() {
        for names in [&["shop"][..], &["shop", "other"]] {
            for mode in [Mode::Proxy, Mode::Passthrough] {
                let mut config = GatewayConfig { mode, ..GatewayConfig::default() };
                for name in names {
                    let shop = Shop::called(name);
                    let answers = upstream(move |method, params| shop.answer(method, params));
                    config.upstreams.insert((*name).to_owned(), answers);
                }
                let opening = Gateway::begin(config).await.unwrap();
                let gateway = Arc::clone(opening.gateway());
                let declared = async || {
                    let caller = Caller::new(Session::new("s"), ClientInfo::default(), mpsc::channel(16).0);
                    let params = Raw::of(&json!({"protocolVersion": "2025-06-18"}));
                    let hello = gateway.answer(&caller, "initialize", Some(&params)).await.unwrap();
                    hello.read::<Value>().unwrap()["capabilities"].clone()
                };
                let before = declared().await;
                assert_eq!(gateway.catalog().counts().tools, 0);
                assert_eq!(before["resources"]["subscribe"], true, "{before}");
                assert!(before["prompts"].is_object() && before["completions"].is_object(), "{before}");
                opening.open().await.unwrap();
                assert_eq!(declared().await, before);
            }
        }
    }
}
