//! The gateway itself: its upstreams, what it serves of them now, and how that is kept fresh.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde::Serialize;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::Instant;

use super::artifacts::Artifacts;
use super::config::{GatewayConfig, Mode, StartMode, UpstreamConfig};
use super::diagnostics::Diagnostics;
use super::follow::{follow, watch_pins};
use super::guard::{GuardError, Guards};
use super::metrics::Metrics;
use super::session::{Caller, Session, lock};
use super::snapshot::{Snapshot, items_of};
use super::subscriptions::Subscriptions;
use super::upstream::{EventSender, Fault, Listing, Upstream};
use super::wire::Raw;
use crate::catalog::{LeftOut, LoadOptions, SelectableItem, Strictness, load};
use crate::store::StoreError;

/// A gateway that runs.
#[derive(Debug)]
pub struct Gateway {
    pub(super) config: GatewayConfig,
    upstreams: BTreeMap<String, Arc<Upstream>>,
    snapshot: ArcSwap<Snapshot>,
    pub(super) guards: Arc<Guards>,
    pub(super) artifacts: Artifacts,
    /// Where events go, when they are recorded.
    pub(super) diagnostics: Option<Diagnostics>,
    /// Why lists could not be read when it was last tried, by the server name of their items.
    faults: Mutex<BTreeMap<String, Fault>>,
    sessions: Mutex<Vec<Weak<Session>>>,
    /// Who wants to hear of which resource.
    pub(super) subscriptions: Subscriptions,
    pub(super) metrics: Metrics,
    /// Held while a snapshot takes the place of another.
    refreshing: tokio::sync::Mutex<()>,
    /// Whether it is ending: then nothing that goes away is worth a warning.
    closing: AtomicBool,
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
        let guards = Arc::new(Guards::new(config.guards.clone()).map_err(GuardError::from)?);
        let snapshot = match &config.catalog {
            Some(path) => {
                let loaded = load(&[path], LoadOptions { strictness: Strictness::Lenient })?;
                let items = loaded.catalog.items().to_vec();
                let contents = Contents { items, left_out: loaded.left_out, listings: BTreeMap::new() };
                guarded(&guards, 1, contents, None, &config).await?
            }
            None => {
                check_start(&config, &listed)?;
                let listings = listed.into_iter().filter_map(|(name, listing)| Some((name, Arc::new(listing.ok()?))));
                let listings = listings.collect();
                guarded(&guards, 1, Contents::of(listings), None, &config).await?
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
            closing: AtomicBool::new(false),
        });
        gateway.observe_catalog(&gateway.snapshot(), started.into_std());
        gateway.prepare_search();
        tokio::spawn(follow(Arc::downgrade(&gateway), events));
        if gateway.guards.shares_pins() && gateway.config.catalog.is_none() {
            tokio::spawn(watch_pins(Arc::downgrade(&gateway)));
        }
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

    /// Makes beside all else what the first search of what is served now would wait for.
    fn prepare_search(&self) {
        if self.config.mode == Mode::Gateway {
            let snapshot = self.snapshot();
            tokio::task::spawn_blocking(move || snapshot.prepare_search());
        }
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
                fault: faults.get(server).cloned().or_else(|| upstream.trouble()).map(|fault| fault.to_string()),
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

    pub(super) async fn refresh_of(&self, upstreams: impl Iterator<Item = &Arc<Upstream>>) -> Result<(), GuardError> {
        let started = Instant::now();
        let timeout = Duration::try_from_secs_f64(self.config.startup.upstream_timeout_seconds).unwrap_or_default();
        // One that answers slowly must not delay what others list.
        let listed = list_all(upstreams, timeout).await;
        let _one_at_a_time = self.refreshing.lock().await;
        let before = self.snapshot();
        let mut listings = before.listings.clone();
        for (name, listing) in listed {
            match listing {
                Ok(listing) => {
                    lock(&self.faults).remove(&name);
                    listings.insert(name, Arc::new(listing));
                }
                Err(fault) => {
                    if !self.is_closing() {
                        tracing::warn!(upstream = %name, %fault, "its lists could not be read again");
                    }
                    lock(&self.faults).insert(name, fault);
                }
            }
        }
        self.serve(before.generation + 1, listings, started).await?;
        self.guards.forget_results().await;
        Ok(())
    }

    /// Holds what is listed against the pins again; whether something else is served now.
    ///
    /// # Errors
    /// As [`Gateway::refresh`].
    pub(super) async fn review(&self) -> Result<bool, GuardError> {
        let started = Instant::now();
        let _one_at_a_time = self.refreshing.lock().await;
        let before = self.snapshot();
        self.serve(before.generation + 1, before.listings.clone(), started).await?;
        Ok(self.snapshot().quarantined != before.quarantined)
    }

    async fn serve(
        &self,
        generation: u64,
        listings: BTreeMap<String, Arc<Listing>>,
        started: Instant,
    ) -> Result<(), GuardError> {
        let before = Some(self.snapshot());
        let snapshot = guarded(&self.guards, generation, Contents::of(listings), before, &self.config).await?;
        self.observe_catalog(&snapshot, started.into_std());
        self.snapshot.store(Arc::new(snapshot));
        self.prepare_search();
        Ok(())
    }

    /// Whether it is ending.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    pub(super) fn tell_all(&self, method: &str, params: Option<&Raw>) {
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
        self.closing.store(true, Ordering::Release);
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

/// What is to be served.
struct Contents {
    items: Vec<SelectableItem>,
    left_out: Vec<LeftOut>,
    listings: BTreeMap<String, Arc<Listing>>,
}

impl Contents {
    fn of(listings: BTreeMap<String, Arc<Listing>>) -> Self {
        let (items, left_out) = items_of(&listings);
        Self { items, left_out, listings }
    }
}

/// What the guards let of it be served, made off the threads of the runtime: it takes a while, and may wait for a disk.
async fn guarded(
    guards: &Arc<Guards>,
    generation: u64,
    contents: Contents,
    before: Option<Arc<Snapshot>>,
    config: &GatewayConfig,
) -> Result<Snapshot, GuardError> {
    let (guards, routing) = (Arc::clone(guards), config.routing.clone());
    let work = move || {
        let Contents { items, left_out, listings } = contents;
        let mut snapshot = guards.snapshot(generation, items, left_out, listings, &routing)?;
        before.iter().for_each(|before| snapshot.follow(before));
        Ok(snapshot)
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(GuardError::State(StoreError::Backend { place: "catalog".to_owned(), reason: error.to_string() }))
    })
}

/// Does what takes long so that the calls of others go on meanwhile, where the runtime has threads for that.
pub(super) fn at_length<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
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
