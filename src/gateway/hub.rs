//! The gateway itself: its upstreams, what it serves of them now, and how that is kept fresh.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::artifacts::Artifacts;
use super::config::{GatewayConfig, Mode, StartMode, UpstreamConfig};
use super::diagnostics::Diagnostics;
use super::guard::{GuardError, Guards};
use super::metrics::Metrics;
use super::session::{Caller, Session, lock};
use super::snapshot::{Snapshot, items_of};
use super::subscriptions::Subscriptions;
use super::upstream::{Event, EventSender, Fault, Listing, Upstream};
use super::wire::Raw;
use crate::catalog::{LoadOptions, Strictness, load};
use crate::store::StoreError;

/// How long changes of an upstream's lists are gathered before they are read again.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// A gateway that runs.
#[derive(Debug)]
pub struct Gateway {
    pub(super) config: GatewayConfig,
    upstreams: BTreeMap<String, Arc<Upstream>>,
    snapshot: ArcSwap<Snapshot>,
    pub(super) guards: Guards,
    pub(super) artifacts: Artifacts,
    /// Where events go, when they are recorded.
    pub(super) diagnostics: Option<Diagnostics>,
    /// Why lists could not be read when it was last tried, by the server name of their items.
    faults: Mutex<BTreeMap<String, Fault>>,
    sessions: Mutex<Vec<Weak<Session>>>,
    /// Who wants to hear of which resource.
    pub(super) subscriptions: Subscriptions,
    pub(super) metrics: Metrics,
    /// Held while the lists are read again.
    refreshing: tokio::sync::Mutex<()>,
}

/// A gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An upstream without which it must not start did not answer.
    #[error("upstream `{name}` did not start: {fault}; mend it, or set `startup.mode: degraded` and `required: false`")]
    Upstream {
        /// Which.
        name: String,
        /// Why.
        fault: Fault,
    },
    /// Too few upstreams answered.
    #[error("{healthy} of {of} upstreams started, and `startup.min_healthy_upstreams` is {least}: {reasons}")]
    TooFew {
        /// How many started.
        healthy: usize,
        /// Of how many.
        of: usize,
        /// How many must.
        least: usize,
        /// Why the others did not.
        reasons: String,
    },
    /// There is nothing to serve.
    #[error(
        "no tool, resource or prompt is served; check `include_tools` or set `startup.fail_on_empty_catalog: false`"
    )]
    Empty,
    /// The catalog cannot be read.
    #[error(transparent)]
    Catalog(#[from] crate::catalog::CatalogError),
    /// A guard cannot do its work, or the tools cannot be indexed.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// What keeps results cannot be opened.
    #[error("`artifacts.path`: {0}")]
    Artifacts(#[from] StoreError),
    /// Events cannot be recorded.
    #[error("diagnostics: {}: {reason}", path.display())]
    Diagnostics {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: std::io::Error,
    },
}

/// How an upstream started.
#[derive(Debug, Clone, Serialize)]
pub struct UpstreamReport {
    /// Its name.
    pub name: String,
    /// Tools, resources and prompts that are taken of it.
    pub tools: usize,
    /// Resources.
    pub resources: usize,
    /// Prompts.
    pub prompts: usize,
    /// The protocol version, when it is connected.
    pub version: Option<String>,
    /// Why it is not.
    pub fault: Option<String>,
}

impl Gateway {
    /// Connects every upstream, side by side, and reads their lists.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(config: GatewayConfig) -> Result<Arc<Self>, StartError> {
        let artifacts = Artifacts::open(&config.artifacts)?;
        let started = Instant::now();
        let open = |path: &PathBuf| {
            Diagnostics::open(path).map_err(|reason| StartError::Diagnostics { path: path.clone(), reason })
        };
        let diagnostics = config.diagnostics.as_ref().map(open).transpose()?;
        let (sender, events) = EventSender::channel();
        let upstreams: BTreeMap<String, Arc<Upstream>> = config
            .upstreams
            .iter()
            .map(|(name, upstream)| (name.clone(), Arc::new(Upstream::new(name, upstream.clone(), sender.clone()))))
            .collect();
        let timeout = Duration::try_from_secs_f64(config.startup.upstream_timeout_seconds).unwrap_or_default();
        let listed = list_all(upstreams.values(), timeout).await;
        let faults = faults_of(&listed);
        let absent: Vec<Weak<Upstream>> = upstreams
            .values()
            .filter(|upstream| listed.get(namespace_of(upstream.name(), upstream.config())).is_some_and(Result::is_err))
            .map(Arc::downgrade)
            .collect();
        let guards = Guards::new(config.guards.clone()).map_err(GuardError::from)?;
        let snapshot = match &config.catalog {
            Some(path) => {
                let loaded = load(&[path], LoadOptions { strictness: Strictness::Lenient })?;
                let items = loaded.catalog.items().to_vec();
                guards.snapshot(1, items, loaded.left_out, BTreeMap::new(), &config.routing)?
            }
            None => {
                check_start(&config, &listed)?;
                let listings = listed.into_iter().filter_map(|(name, listing)| Some((name, Arc::new(listing.ok()?))));
                let listings = listings.collect();
                let (items, left_out) = items_of(&listings);
                guards.snapshot(1, items, left_out, listings, &config.routing)?
            }
        };
        let counts = snapshot.counts();
        if config.startup.fail_on_empty_catalog && counts.tools + counts.resources + counts.prompts == 0 {
            return Err(StartError::Empty);
        }
        let gateway = Arc::new(Self {
            config,
            upstreams,
            snapshot: ArcSwap::from_pointee(snapshot),
            guards,
            artifacts,
            diagnostics,
            faults: Mutex::new(faults),
            sessions: Mutex::default(),
            subscriptions: Subscriptions::default(),
            metrics: Metrics::default(),
            refreshing: tokio::sync::Mutex::default(),
        });
        gateway.observe_catalog(&gateway.snapshot(), started.into_std());
        tokio::spawn(follow(Arc::downgrade(&gateway), events));
        for upstream in absent {
            tokio::spawn(Upstream::revive(upstream));
        }
        Ok(gateway)
    }

    /// What is served now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// What the caller is shown of it.
    #[must_use]
    pub(super) fn snapshot_for(&self, caller: &Caller) -> Arc<Snapshot> {
        self.guards.shown(caller, self.snapshot())
    }

    /// How it is configured.
    #[must_use]
    pub fn config(&self) -> &GatewayConfig {
        &self.config
    }

    /// The upstreams by name.
    #[must_use]
    pub fn upstreams(&self) -> &BTreeMap<String, Arc<Upstream>> {
        &self.upstreams
    }

    /// How the upstreams are.
    #[must_use]
    pub fn reports(&self) -> Vec<UpstreamReport> {
        let snapshot = self.snapshot();
        let faults = lock(&self.faults);
        let report = |(name, upstream): (&String, &Arc<Upstream>)| {
            let server = namespace_of(name, upstream.config());
            let listing = snapshot.listings.get(server);
            UpstreamReport {
                name: name.clone(),
                tools: listing.map_or(0, |listing| listing.tools.len()),
                resources: listing.map_or(0, |listing| listing.resources.len()),
                prompts: listing.map_or(0, |listing| listing.prompts.len()),
                version: upstream.server().map(|server| server.version),
                fault: faults.get(server).map(ToString::to_string),
            }
        };
        self.upstreams.iter().map(report).collect()
    }

    /// The upstream whose items carry `server`.
    pub(super) fn upstream_of(&self, server: Option<&str>) -> Option<&Arc<Upstream>> {
        let server = server?;
        self.upstreams.iter().find(|(name, upstream)| namespace_of(name, upstream.config()) == server).map(|(_, up)| up)
    }

    /// A client is there, and hears of changes while its session is held.
    pub fn enter(&self, session: &Arc<Session>) {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|other| other.strong_count() > 0 && !std::ptr::eq(other.as_ptr(), Arc::as_ptr(session)));
        sessions.push(Arc::downgrade(session));
    }

    /// Reads the lists of every upstream again. One that does not answer keeps what it listed before.
    ///
    /// # Errors
    /// The tools cannot be indexed, or a guard cannot do its work; what was served stays.
    pub async fn refresh(&self) -> Result<(), GuardError> {
        self.refresh_of(self.upstreams.values()).await
    }

    async fn refresh_of(&self, upstreams: impl Iterator<Item = &Arc<Upstream>>) -> Result<(), GuardError> {
        let started = Instant::now();
        let _one_at_a_time = self.refreshing.lock().await;
        let timeout = Duration::try_from_secs_f64(self.config.startup.upstream_timeout_seconds).unwrap_or_default();
        let listed = list_all(upstreams, timeout).await;
        let before = self.snapshot();
        let mut listings = before.listings.clone();
        for (name, listing) in listed {
            match listing {
                Ok(listing) => {
                    lock(&self.faults).remove(&name);
                    listings.insert(name, Arc::new(listing));
                }
                Err(fault) => {
                    tracing::warn!(upstream = %name, %fault, "its lists could not be read again");
                    lock(&self.faults).insert(name, fault);
                }
            }
        }
        let (items, left_out) = items_of(&listings);
        let snapshot = self.guards.snapshot(before.generation + 1, items, left_out, listings, &self.config.routing)?;
        self.observe_catalog(&snapshot, started.into_std());
        self.snapshot.store(Arc::new(snapshot));
        self.guards.forget_results().await;
        Ok(())
    }

    async fn reread(self: Arc<Self>, changes: Changes) {
        let changed = changes.upstreams.iter().filter_map(|name| self.upstreams.get(&**name));
        match self.refresh_of(changed).await {
            // A client of the meta-tools knows of tools alone, and which there are depends on all lists.
            Ok(()) if self.config.mode == Mode::Gateway => self.tell_all("notifications/tools/list_changed", None),
            Ok(()) => changes.methods.iter().for_each(|method| self.tell_all(method, None)),
            Err(error) => tracing::warn!(%error, "what was served before stays"),
        }
    }

    fn tell_all(&self, method: &str, params: Option<&Raw>) {
        let sessions: Vec<Arc<Session>> = lock(&self.sessions).iter().filter_map(Weak::upgrade).collect();
        sessions.iter().for_each(|session| session.tell(method, params));
    }

    /// What was counted, in the text form of Prometheus.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        let sessions = lock(&self.sessions).iter().filter(|session| session.strong_count() > 0).count();
        let reports = self.reports();
        let upstreams = reports.iter().map(|report| (report.name.as_str(), report.fault.is_none()));
        self.metrics.text(sessions, upstreams)
    }

    /// Ends every upstream.
    pub async fn close(&self) {
        let mut closing = tokio::task::JoinSet::new();
        for upstream in self.upstreams.values() {
            let upstream = Arc::clone(upstream);
            closing.spawn(async move { upstream.close().await });
        }
        closing.join_all().await;
        if let Some(diagnostics) = &self.diagnostics {
            diagnostics.flush().await;
        }
    }
}

/// The name that the items of an upstream carry as their server.
fn namespace_of<'n>(name: &'n str, config: &'n UpstreamConfig) -> &'n str {
    config.namespace.as_deref().unwrap_or(name)
}

/// The lists of all upstreams, by the server name of their items.
async fn list_all(
    upstreams: impl Iterator<Item = &Arc<Upstream>>,
    timeout: Duration,
) -> BTreeMap<String, Result<Listing, Fault>> {
    let mut listing = tokio::task::JoinSet::new();
    for upstream in upstreams {
        let upstream = Arc::clone(upstream);
        listing.spawn(async move {
            let listed = tokio::time::timeout(timeout, upstream.list(timeout)).await;
            let listed = listed.unwrap_or(Err(Fault::Timeout(timeout)));
            (namespace_of(upstream.name(), upstream.config()).to_owned(), listed)
        });
    }
    listing.join_all().await.into_iter().collect()
}

fn faults_of(listed: &BTreeMap<String, Result<Listing, Fault>>) -> BTreeMap<String, Fault> {
    listed.iter().filter_map(|(name, listing)| Some((name.clone(), listing.as_ref().err()?.clone()))).collect()
}

fn check_start(config: &GatewayConfig, listed: &BTreeMap<String, Result<Listing, Fault>>) -> Result<(), StartError> {
    let mut reasons = Vec::new();
    for (name, upstream) in &config.upstreams {
        if let Some(Err(fault)) = listed.get(namespace_of(name, upstream)) {
            if upstream.required || config.startup.mode == StartMode::Strict {
                return Err(StartError::Upstream { name: name.clone(), fault: fault.clone() });
            }
            tracing::warn!(upstream = %name, %fault, "did not start; the others are served");
            reasons.push(format!("{name}: {fault}"));
        }
    }
    let (of, least) = (config.upstreams.len(), config.startup.min_healthy_upstreams.min(config.upstreams.len()));
    let healthy = of - reasons.len();
    if healthy < least {
        return Err(StartError::TooFew { healthy, of, least, reasons: reasons.join("; ") });
    }
    Ok(())
}

/// What upstreams said that their lists are no longer, since when.
#[derive(Debug, Default)]
struct Changes {
    upstreams: BTreeSet<Arc<str>>,
    methods: BTreeSet<&'static str>,
    due: Option<Instant>,
}

impl Changes {
    fn note(&mut self, upstream: Arc<str>, method: &'static str) {
        self.upstreams.insert(upstream);
        self.methods.insert(method);
        self.due.get_or_insert_with(|| Instant::now() + DEBOUNCE);
    }

    /// Ends when it is time to read the lists again.
    async fn due(&self) {
        match self.due {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }
}

/// Acts on what upstreams say unasked: lists are read again, and clients are told.
async fn follow(gateway: Weak<Gateway>, mut events: mpsc::Receiver<(Arc<str>, Event)>) {
    let mut changes = Changes::default();
    loop {
        let heard = tokio::select! {
            heard = events.recv() => heard,
            () = changes.due() => {
                let Some(gateway) = gateway.upgrade() else { return };
                // Events are heard while the lists are read.
                tokio::spawn(gateway.reread(std::mem::take(&mut changes)));
                continue;
            }
        };
        let (Some((upstream, event)), Some(gateway)) = (heard, gateway.upgrade()) else { return };
        tracing::debug!(%upstream, ?event, "heard");
        match event {
            Event::ToolsChanged => changes.note(upstream, "notifications/tools/list_changed"),
            Event::ResourcesChanged => changes.note(upstream, "notifications/resources/list_changed"),
            Event::PromptsChanged => changes.note(upstream, "notifications/prompts/list_changed"),
            Event::ResourceUpdated(params) => {
                gateway.tell_all("notifications/resources/updated", params.as_ref());
            }
            Event::Lost => {
                if let Some(upstream) = gateway.upstreams.get(&*upstream) {
                    tokio::spawn(Upstream::revive(Arc::downgrade(upstream)));
                }
            }
        }
    }
}
