//! The catalog that is served now, and how it is kept fresh.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde::Serialize;
use serde_json::json;
use tokio::sync::SetOnce;
use tokio::time::Instant;

use super::build::{Contents, note_absent, vetted};
use super::from_file::FileCatalogError;
use super::lessons::Lessons;
use super::list_cache::{ListCache, Remembered};
use super::view::CatalogView;
use crate::common::sync::lock;
use crate::config::file::GatewayConfig;
use crate::config::startup::StartMode;
use crate::guard::config::Access;
use crate::guard::pipeline::{GuardError, Guards};
use crate::protocol::listing::Listing;
use crate::session::client::Caller;
use crate::session::clients::Clients;
use crate::surface::mode::Mode;
use crate::telemetry::audit::AuditError;
use crate::telemetry::observer::Telemetry;
use crate::upstream::breaker::CircuitState;
use crate::upstream::client::Upstream;
use crate::upstream::config::Target;
use crate::upstream::fault::Fault;
use crate::upstream::registry::{Listed, Upstreams, list_all};
use crate::upstream::vetting::Reviewed;
use contextweaver_context::store::StoreError;
use contextweaver_core::catalog::server_namespace;
use contextweaver_routing::{FeedbackError, RoutingConfig};

/// A gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An upstream that must start did not answer.
    #[error("upstream `{name}` did not start: {}; fix it, or set `startup.mode: degraded` and `required: false`", .fault.in_full())]
    Upstream {
        /// The name of the upstream.
        name: String,
        /// How the upstream failed.
        fault: Fault,
    },
    /// Too few upstreams answered.
    #[error("{healthy} of {of} upstreams started, but `startup.min_healthy_upstreams` is {least}: {reasons}")]
    TooFew {
        /// Upstreams that started.
        healthy: usize,
        /// Upstreams that are configured.
        of: usize,
        /// Upstreams that must start.
        least: usize,
        /// Why the others did not start.
        reasons: String,
    },
    /// There is nothing to serve.
    #[error(
        "no tool, resource or prompt is served; check `include_tools` or set `startup.fail_on_empty_catalog: false`"
    )]
    Empty,
    /// The configuration has neither upstreams nor a catalog.
    #[error("the configuration lists no servers under `upstreams`; add one: contextweaver mcp add NAME -- COMMAND")]
    NoServers,
    /// The catalog, or the file of answers to its calls, cannot be read.
    #[error(transparent)]
    Catalog(#[from] FileCatalogError),
    /// A guard cannot do its work, or the tools cannot be indexed.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// The store of results cannot be opened.
    #[error("`artifacts`: {0}")]
    Artifacts(#[from] StoreError),
    /// The file of feedback cannot be read.
    #[error("`feedback`: {0}")]
    Feedback(#[from] FeedbackError),
    /// Decisions cannot be written.
    #[error("audit.file: {}: {reason}", path.display())]
    Audit {
        /// The file of decisions.
        path: PathBuf,
        /// Why.
        reason: AuditError,
    },
    /// Traces and metrics cannot be sent.
    #[error("otlp: {0}")]
    Otlp(#[source] std::io::Error),
    /// Events cannot be recorded.
    #[error("diagnostics: {}: {reason}", path.display())]
    Diagnostics {
        /// The file of events.
        path: PathBuf,
        /// The error of the system.
        reason: std::io::Error,
    },
}

/// The state of an upstream.
#[derive(Debug, Clone, Serialize)]
pub struct UpstreamReport {
    /// Its name in the configuration.
    pub name: String,
    /// Tools that it lists and that are served.
    pub tools: usize,
    /// Resources that it lists.
    pub resources: usize,
    /// Prompts that it lists.
    pub prompts: usize,
    /// The protocol version, when it is connected.
    pub version: Option<String>,
    /// The state of its circuit breaker: `closed`, `half-open` or `open`.
    pub circuit: CircuitState,
    /// Why it cannot be asked, or why its lists could not be read.
    pub fault: Option<String>,
}

/// The catalog that is served now.
#[derive(Debug)]
pub(crate) struct Serving {
    upstreams: Arc<Upstreams>,
    guards: Arc<Guards>,
    telemetry: Arc<Telemetry>,
    clients: Arc<Clients>,
    mode: Mode,
    routing: RoutingConfig,
    encoder: bool,
    /// What calls have taught about searches, where that is used.
    lessons: Option<Arc<Lessons>>,
    /// The file that they are kept in.
    feedback: Option<PathBuf>,
    /// How long an upstream has for all of its lists.
    timeout: Duration,
    /// Where what is listed is kept for the next start.
    list_cache: Option<Arc<ListCache>>,
    /// Whether the catalog comes from a file.
    is_file: bool,
    view: ArcSwap<CatalogView>,
    /// Set when the first view is served.
    is_open: SetOnce<()>,
    /// Why lists could not be read when it was last tried, by the server name of their items.
    faults: Mutex<BTreeMap<String, Fault>>,
    /// Held while a view takes the place of another.
    refreshing: tokio::sync::Mutex<()>,
    /// Whether the gateway is shutting down, when nothing that goes away is worth a warning.
    closing: AtomicBool,
}

/// A catalog of which it is known what the upstreams list, and which serves nothing yet.
pub(crate) struct OpeningCatalog {
    serving: Arc<Serving>,
    generation: u64,
    contents: Box<dyn FnOnce() -> Contents + Send>,
    /// The names of the servers whose lists are those of last time.
    remembered: BTreeSet<String>,
    must_serve: bool,
    started: Instant,
}

impl OpeningCatalog {
    /// The catalog, of which the first view is not there yet.
    pub(crate) fn serving(&self) -> &Arc<Serving> {
        &self.serving
    }

    /// Makes the first view and serves it.
    ///
    /// # Errors
    /// [`StartError::Guard`] and [`StartError::Empty`]; nothing is served then.
    pub(crate) async fn open(self) -> Result<(), StartError> {
        let Self { serving, generation, contents, remembered, must_serve, started } = self;
        let view = serving.vetted(generation, contents, None).await?;
        let counts = view.counts();
        if must_serve && counts.tools + counts.resources + counts.prompts == 0 {
            return Err(StartError::Empty);
        }
        let view = Arc::new(view);
        // Before any call is answered: rows of calls say what was served by the event that stands before them.
        serving.observe(&view, started);
        serving.view.store(Arc::clone(&view));
        serving.tell_upstreams(&view);
        // Not before: they may be upstreams of the gateway before as well, which goes on when this one does not start.
        // With a single upstream of a passthrough nothing is withheld.
        let holds = serving.guards.withholds_changed() && serving.upstreams.only().is_none();
        serving.upstreams.iter().for_each(|upstream| upstream.hold_until_reviewed(holds));
        let _ = serving.is_open.set(());
        if let Some(lessons) = &serving.lessons {
            let (all, absent) = lessons.counts(&view);
            tracing::info!(observations = all, of_tools_not_served = absent, "searches learn from calls");
        }
        serving.prepare_search();
        for upstream in serving.upstreams.iter() {
            let name = upstream.server_name();
            if lock(&serving.faults).contains_key(name) {
                tokio::spawn(Upstream::revive(Arc::downgrade(upstream)));
            } else if remembered.contains(name) {
                tokio::spawn(Serving::verify(Arc::downgrade(&serving), Arc::clone(upstream)));
            } else if let Some(listing) = view.listings.get(name) {
                serving.keep(upstream, Arc::clone(listing));
            }
        }
        Ok(())
    }
}

impl Serving {
    /// Connects every upstream, side by side, and reads their lists; or takes the contents of a file. An upstream that
    /// `before` has too and that does not answer now keeps what it listed there. One of which it is known what it listed
    /// last time is not waited for.
    ///
    /// # Errors
    /// [`StartError`].
    pub(crate) async fn start(
        config: &GatewayConfig,
        upstreams: Arc<Upstreams>,
        guards: Arc<Guards>,
        (telemetry, clients): (Arc<Telemetry>, Arc<Clients>),
        of_file: Option<Contents>,
        before: Option<&Self>,
    ) -> Result<OpeningCatalog, StartError> {
        let started = Instant::now();
        let timeout = config.startup.upstream_timeout;
        let keeps = config.guards.access == Access::Full;
        let lessons = match before.filter(|before| before.feedback == config.feedback) {
            Some(before) => before.lessons.clone(),
            None => config.feedback.as_ref().map(|path| Lessons::open(path, keeps)).transpose()?.map(Arc::new),
        };
        let list_cache = config.startup.list_cache.clone().map(|folder| Arc::new(ListCache::new(folder)));
        // Another configuration takes the place of one that serves only when all is known to work.
        let last_time = match &list_cache {
            Some(cache) if before.is_none() && of_file.is_none() => recall(config, cache, &upstreams),
            _ => BTreeMap::new(),
        };
        let remembered = last_time.keys().cloned().collect();
        let is_waited_for = |upstream: &&Arc<Upstream>| !last_time.contains_key(upstream.server_name());
        let listed = list_all(upstreams.iter().filter(is_waited_for), timeout).await;
        let faults = faults_of(&listed);
        let is_file = of_file.is_some();
        let must_serve = config.startup.fail_on_empty_catalog;
        let mut listings = BTreeMap::new();
        let contents: Box<dyn FnOnce() -> Contents + Send> = match of_file {
            Some(contents) => Box::new(|| contents),
            None => {
                let kept = before.map(|before| before.listings_of(&upstreams)).unwrap_or_default();
                check_start(config, &listed, &kept)?;
                let now = listed.into_iter().filter_map(|(name, listing)| {
                    let listing = listing.ok().map(Arc::new).or_else(|| kept.get(&name).cloned())?;
                    Some((name, listing))
                });
                listings.extend(now.chain(last_time));
                if must_serve && config.upstreams.is_empty() {
                    return Err(StartError::NoServers);
                }
                if must_serve && listings.values().all(|listing| listing.is_empty()) {
                    return Err(StartError::Empty);
                }
                let listings = listings.clone();
                Box::new(|| Contents::of(listings))
            }
        };
        let generation = before.map_or(1, |before| before.view().generation + 1);
        let serving = Arc::new(Self {
            upstreams,
            guards,
            telemetry,
            clients,
            mode: config.mode,
            routing: config.routing.clone(),
            encoder: config.encoder,
            lessons,
            feedback: config.feedback.clone(),
            timeout,
            list_cache,
            is_file,
            view: ArcSwap::from_pointee(CatalogView::opening(listings)),
            is_open: SetOnce::new(),
            faults: Mutex::new(faults),
            refreshing: tokio::sync::Mutex::default(),
            closing: AtomicBool::new(false),
        });
        Ok(OpeningCatalog { serving, generation, contents, remembered, must_serve, started })
    }

    /// Ends when the first view is served, at once from then on.
    pub(crate) async fn opened(&self) {
        self.is_open.wait().await;
    }

    /// Whether it is known what the upstreams list, also before the first view is served; a catalog from a file has no lists.
    pub(crate) fn knows_lists(&self) -> bool {
        !self.is_file
    }

    /// Keeps in the background what an upstream lists, for the next start.
    fn keep(&self, upstream: &Arc<Upstream>, listing: Arc<Listing>) {
        if let Some(cache) = self.list_cache.clone() {
            let upstream = Arc::clone(upstream);
            tokio::task::spawn_blocking(move || cache.write(&upstream, &listing));
        }
    }

    /// Compares what an upstream listed last time, which is served, with what it lists now. Clients hear of a difference.
    async fn verify(serving: Weak<Self>, upstream: Arc<Upstream>) {
        let Some(serving) = serving.upgrade() else { return };
        match serving.doubt(&upstream).await {
            Ok(relisted) if relisted.differs => serving.tell_of_changes(),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "what it listed last time is still served"),
        }
        if lock(&serving.faults).contains_key(upstream.server_name()) {
            // Neither is held by the task that waits for the other end.
            let revived = Arc::downgrade(&upstream);
            drop((serving, upstream));
            Upstream::revive(revived).await;
        }
    }

    /// What those of these upstreams list that are here too, by the server name of their items.
    fn listings_of(&self, upstreams: &Upstreams) -> BTreeMap<String, Arc<Listing>> {
        let view = self.view();
        let here = upstreams.iter().filter(|upstream| self.upstreams.has(upstream));
        here.filter_map(|upstream| {
            let name = upstream.server_name();
            Some((name.to_owned(), Arc::clone(view.listings.get(name)?)))
        })
        .collect()
    }

    /// The view that is served now.
    pub(crate) fn view(&self) -> Arc<CatalogView> {
        self.view.load_full()
    }

    /// What the caller's visibility profile shows of it; nothing when the configuration has no such profile.
    pub(crate) fn view_for(&self, caller: &Caller) -> Arc<CatalogView> {
        let all = self.view();
        match self.guards.profile_of(caller) {
            None => all,
            Some(name) => {
                all.profiles.get(name).cloned().unwrap_or_else(|| Arc::new(CatalogView::nothing(all.generation)))
            }
        }
    }

    /// Learns in the background that these queries led to a tool that answered well.
    pub(crate) fn observe_success(&self, queries: Vec<String>, tool: String) {
        let Some(lessons) = self.lessons.clone().filter(|_| !queries.is_empty()) else { return };
        let view = self.view();
        tokio::task::spawn_blocking(move || lessons.observe(&view, &queries, &tool));
    }

    /// Whether searches learn from calls.
    pub(crate) fn learns(&self) -> bool {
        self.lessons.is_some()
    }

    /// Tells all clients that their lists may be others.
    pub(crate) fn tell_of_changes(&self) {
        self.mode.list_changes().iter().for_each(|method| self.clients.tell_all(method, None));
    }

    /// The clients that hear of changes.
    pub(super) fn clients(&self) -> &Clients {
        &self.clients
    }

    /// The upstreams that are listed.
    pub(super) fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// The guards that vet what is listed.
    pub(super) fn guards(&self) -> &Arc<Guards> {
        &self.guards
    }

    /// Whether clients see meta-tools alone.
    pub(super) fn shows_meta_tools_alone(&self) -> bool {
        self.mode == Mode::Gateway
    }

    /// Whether somebody else can change the pins of what is served.
    pub(crate) fn shares_pins(&self) -> bool {
        self.guards.shares_pins() && !self.is_file
    }

    /// The state of each upstream.
    pub(crate) fn reports(&self) -> Vec<UpstreamReport> {
        let view = self.view();
        let faults = lock(&self.faults);
        let report = |upstream: &Arc<Upstream>| {
            let listing = view.listings.get(upstream.server_name());
            let fault = faults.get(upstream.server_name()).cloned().or_else(|| upstream.trouble());
            UpstreamReport {
                name: upstream.name().to_owned(),
                tools: listing.map_or(0, |listing| listing.tools.len()),
                resources: listing.map_or(0, |listing| listing.resources.len()),
                prompts: listing.map_or(0, |listing| listing.prompts.len()),
                version: upstream.server().map(|server| server.version.clone()),
                circuit: upstream.circuit(),
                fault: fault.map(|fault| fault.to_string()),
            }
        };
        self.upstreams.iter().map(report).collect()
    }

    /// Reads the lists of every upstream again. One that does not answer keeps what it listed before.
    ///
    /// # Errors
    /// The tools cannot be indexed, or a guard cannot do its work; what was served stays.
    pub(crate) async fn refresh(&self) -> Result<(), GuardError> {
        self.refresh_of(self.upstreams.iter()).await.map(drop)
    }

    /// Reads the lists of these upstreams again.
    ///
    /// # Errors
    /// As [`Serving::refresh`].
    pub(super) async fn refresh_of(
        &self,
        upstreams: impl Iterator<Item = &Arc<Upstream>>,
    ) -> Result<Relisted, GuardError> {
        self.relist(upstreams, Serve::Always).await
    }

    /// Reads the lists of an upstream again, of which nobody said that they are others; what is the same stays as it is.
    ///
    /// # Errors
    /// As [`Serving::refresh`].
    pub(super) async fn doubt(&self, upstream: &Arc<Upstream>) -> Result<Relisted, GuardError> {
        self.relist(std::iter::once(upstream), Serve::WhatDiffers).await
    }

    /// Reads the lists of these upstreams again.
    async fn relist(
        &self,
        upstreams: impl Iterator<Item = &Arc<Upstream>>,
        serve: Serve,
    ) -> Result<Relisted, GuardError> {
        let started = Instant::now();
        // An upstream that answers slowly must not delay what others list.
        let listed = list_all(upstreams, self.timeout).await;
        let _one_at_a_time = self.refreshing.lock().await;
        let before = self.view();
        let mut listings = before.listings.clone();
        let mut relisted = Relisted::default();
        let mut is_any_listed = false;
        for (name, listing) in listed {
            match listing {
                Ok(listing) => {
                    is_any_listed = true;
                    lock(&self.faults).remove(&name);
                    let listing = Arc::new(listing);
                    if let Some(upstream) = self.upstreams.of_server(Some(&name)) {
                        self.keep(upstream, Arc::clone(&listing));
                    }
                    let old = listings.insert(name, Arc::clone(&listing));
                    relisted.differs |= !old.is_some_and(|old| old.is_same(&listing));
                }
                Err(fault) => {
                    relisted.failed = true;
                    if let Some(upstream) = self.upstreams.of_server(Some(&name)) {
                        upstream.not_listed();
                    }
                    let text = fault.to_string();
                    let before = lock(&self.faults).insert(name.clone(), fault);
                    // It is tried again and again.
                    let is_known = before.is_some_and(|before| before.to_string() == text);
                    if !is_known && !self.closing.load(Ordering::Acquire) {
                        tracing::warn!(upstream = %name, fault = %text, "its lists could not be read again");
                    }
                }
            }
        }
        // Where changed tools are withheld, calls wait for the review of what was listed, also where it is the same.
        let is_to_serve = relisted.differs || matches!(serve, Serve::Always) && is_any_listed;
        if is_to_serve || self.guards.withholds_changed() {
            self.serve(before.generation + 1, listings, started).await?;
            self.guards.forget_results().await;
        }
        Ok(relisted)
    }

    /// Compares what is listed with the pins again; whether something else is served now.
    ///
    /// # Errors
    /// As [`Serving::refresh`].
    pub(super) async fn review(&self) -> Result<bool, GuardError> {
        let started = Instant::now();
        let _one_at_a_time = self.refreshing.lock().await;
        let before = self.view();
        self.serve(before.generation + 1, before.listings.clone(), started).await?;
        Ok(self.view().quarantined != before.quarantined)
    }

    async fn serve(
        &self,
        generation: u64,
        listings: BTreeMap<String, Arc<Listing>>,
        started: Instant,
    ) -> Result<(), GuardError> {
        let before = Some(self.view());
        let contents = || Contents::of(listings);
        let view = self.vetted(generation, contents, before).await?;
        self.observe(&view, started);
        let view = Arc::new(view);
        self.view.store(Arc::clone(&view));
        self.tell_upstreams(&view);
        self.prepare_search();
        Ok(())
    }

    /// The view of what is listed, after the guards have looked at it; it knows which servers are silent.
    ///
    /// # Errors
    /// As [`Serving::refresh`].
    async fn vetted(
        &self,
        generation: u64,
        contents: impl FnOnce() -> Contents + Send + 'static,
        before: Option<Arc<CatalogView>>,
    ) -> Result<CatalogView, GuardError> {
        let mut view = vetted(&self.guards, generation, contents, before, &self.routing).await?;
        let absent = self.absent(&view);
        note_absent(&mut view, &self.guards, absent);
        Ok(view)
    }

    /// The namespaces of the servers of which `view` has no list, since they have not answered yet.
    fn absent(&self, view: &CatalogView) -> BTreeSet<String> {
        let silent = self.upstreams.iter().filter(|upstream| !view.listings.contains_key(upstream.server_name()));
        silent.map(|upstream| server_namespace(upstream.server_name())).collect()
    }

    /// Tells upstreams which of their tools are served and which are withheld, for calls that wait to know.
    fn tell_upstreams(&self, view: &CatalogView) {
        let mut tools: BTreeMap<&str, BTreeMap<String, Reviewed>> = BTreeMap::new();
        for item in view.tools.iter().flat_map(|shelf| shelf.router.catalog().items()) {
            let of_server = tools.entry(item.server.as_deref().unwrap_or_default()).or_default();
            of_server.insert(item.name.clone(), Reviewed::Served);
        }
        // After those that are served: where two have one name, nobody knows which of them a call is of.
        for (id, changed) in &view.changed {
            let reason = view.quarantined.get(id).cloned().unwrap_or_default();
            let of_server = tools.entry(&changed.server).or_default();
            of_server.insert(changed.name.clone(), Reviewed::Withheld(reason));
        }
        for upstream in self.upstreams.iter() {
            let server = upstream.server_name();
            if let Some(listing) = view.listings.get(server) {
                upstream.reviewed(listing, tools.remove(server).unwrap_or_default());
            }
        }
    }

    fn observe(&self, view: &CatalogView, started: Instant) {
        let counts = view.counts();
        let mut attributes = json!({
            "generation": view.generation,
            "left_out": counts.left_out,
            "prompts": counts.prompts,
            "resources": counts.resources,
            "tools": counts.tools,
        });
        if self.mode == Mode::Gateway && self.telemetry.records() {
            let (definitions, surface) = view.definition_tokens();
            attributes["definition_tokens"] = definitions.into();
            attributes["surface_tokens"] = surface.into();
        }
        self.telemetry.catalog_loaded(attributes, started.elapsed());
    }

    /// Builds the indexes of what is served now in the background, so that the first search need not wait.
    fn prepare_search(&self) {
        if self.mode == Mode::Gateway {
            let (view, encoder, lessons) = (self.view(), self.encoder, self.lessons.clone());
            let teach = move |view: &CatalogView| lessons.iter().for_each(|lessons| lessons.teach(view));
            tokio::task::spawn_blocking(move || view.prepare_search(encoder, &teach));
        }
    }

    /// Notes that the gateway is shutting down.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }
}

/// What came of reading lists again.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Relisted {
    /// Whether any is another than before.
    pub(super) differs: bool,
    /// Whether any could not be read.
    pub(super) failed: bool,
}

/// When a view takes the place of that of now.
#[derive(Debug, Clone, Copy)]
enum Serve {
    /// Also when the same is listed: what the guards say of it may have changed.
    Always,
    /// When something else is listed.
    WhatDiffers,
}

/// What upstreams listed last time, by the server name of their items: of those that the gateway may start without.
fn recall(config: &GatewayConfig, cache: &ListCache, upstreams: &Upstreams) -> BTreeMap<String, Arc<Listing>> {
    let is_optional = |upstream: &&Arc<Upstream>| {
        let is_reached =
            matches!(upstream.config().target, Target::Stdio { .. } | Target::Http { .. } | Target::Sse { .. });
        is_reached && !upstream.config().required && config.startup.mode != StartMode::Strict
    };
    let recalled = |upstream: &Arc<Upstream>| {
        let Remembered { server, listing, .. } = cache.read(upstream)?;
        upstream.remember(server, &listing);
        Some((upstream.server_name().to_owned(), Arc::new(listing)))
    };
    upstreams.iter().filter(is_optional).filter_map(recalled).collect()
}

fn faults_of(listed: &Listed) -> BTreeMap<String, Fault> {
    listed.iter().filter_map(|(name, listing)| Some((name.clone(), listing.as_ref().err()?.clone()))).collect()
}

fn check_start(
    config: &GatewayConfig,
    listed: &Listed,
    kept: &BTreeMap<String, Arc<Listing>>,
) -> Result<(), StartError> {
    let mut failed = Vec::new();
    for (name, upstream) in &config.upstreams {
        let server = upstream.namespace.as_deref().unwrap_or(name);
        if let Some(Err(fault)) = listed.get(server).filter(|_| !kept.contains_key(server)) {
            if upstream.required || config.startup.mode == StartMode::Strict {
                return Err(StartError::Upstream { name: name.clone(), fault: fault.clone() });
            }
            failed.push((name, fault.in_full()));
        }
    }
    let (of, least) = (config.upstreams.len(), config.startup.min_healthy_upstreams.min(config.upstreams.len()));
    let healthy = of - failed.len();
    if healthy < least {
        let reasons: Vec<String> = failed.iter().map(|(name, fault)| format!("{name}: {fault}")).collect();
        return Err(StartError::TooFew { healthy, of, least, reasons: reasons.join("; ") });
    }
    for (name, fault) in failed {
        match healthy {
            0 => tracing::warn!(upstream = %name, %fault, "did not start"),
            _ => tracing::warn!(upstream = %name, %fault, "did not start; the others are served"),
        }
    }
    Ok(())
}
