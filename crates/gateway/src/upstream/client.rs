//! One server behind the gateway: its connection, and when that is made again.
//!
//! An upstream is connected when it is first needed and again after its connection broke. One that fails again and
//! again is behind an open circuit breaker (`breaker`) for growing times, in which calls of it fail at once. No upstream
//! holds up another: each has its own tasks, time-out and breaker.
//!
//! A connection (`Link`) is a child process, HTTP in either form, or code of this process. The requests on it that are
//! not answered yet are kept by its `peer`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::breaker::{self, Circuit, CircuitBreaker, CircuitState, Ends, PATIENCE};
use super::built_in::{BuiltInError, database, documents};
use super::call::{Call, MESSAGE_LIMIT};
use super::config::{Era, Target, UpstreamConfig};
use super::credentials::{Credentials, Passthrough};
use super::exchange;
use super::fault::Fault;
use super::http::{self, HttpLink};
use super::in_process::InProcess;
use super::mailbox::{Event, EventSender};
use super::peer::Peer;
use super::per_caller::{Connection, PerCaller};
use super::stdio::{LineLink, Program};
use super::toolset::Toolset;
use super::vetting::{Reviewed, Vetting};
use crate::common::masks::Masks;
use crate::common::secret::Secret;
use crate::common::settings::unset;
use crate::common::sync::lock;
use crate::common::{glob, program};
use crate::protocol::listing::{Listing, ServerInfo};
use crate::protocol::message::{self, METHOD_NOT_FOUND, Members, Raw, RpcError};
use crate::protocol::stateless::{self, CAPABILITIES_KEY};
use crate::protocol::transport::Transport;
use crate::protocol::versions::{LEGACY_VERSIONS, MODERN_VERSION};
use crate::session::client::Caller;
use crate::session::identity::Presented;

/// How long an upstream of which nothing was heard has for a sign of life.
const PROBE: Duration = Duration::from_secs(5);

/// How often it is looked whether the calls of a connection have ended whose place another has taken.
const LOOK: Duration = Duration::from_millis(100);

/// Why nothing is asked any more.
const CLOSED: &str = "the gateway is shutting down, or goes on without this server";

/// Pages of a list, at most.
const MOST_PAGES: usize = 1_000;

/// Bytes of all pages of a list, at most: as many as one page may have.
const MOST_LIST_BYTES: usize = MESSAGE_LIMIT;

/// Bytes of what a server says about itself, at most: it is kept, and read, for as long as the server is connected.
const LONGEST_HANDSHAKE: usize = 256 * 1024;

/// A server behind the gateway.
#[derive(Debug)]
pub struct Upstream {
    name: Arc<str>,
    config: UpstreamConfig,
    link: ArcSwapOption<Connected>,
    /// Held while a connection is made, so that one is made at a time.
    connecting: tokio::sync::Mutex<()>,
    breaker: Mutex<CircuitBreaker>,
    /// The protocol that it was found to speak, or what the configuration says.
    era: Mutex<Era>,
    /// Whether a task is at work to make the connection again.
    reviving: AtomicBool,
    /// Whether a connection was ever made.
    was_connected: AtomicBool,
    /// Whether no connection is to be made any more.
    closed: AtomicBool,
    /// The client of its HTTP connections, with their pool.
    client: OnceLock<reqwest::Client>,
    /// The resources of whose changes somebody wants to hear, where its stream has to name them.
    watched: watch::Sender<BTreeSet<String>>,
    events: EventSender,
    /// The connections of callers, where each has its own.
    callers: Option<Arc<PerCaller<Upstream>>>,
    /// The client of the token endpoint.
    exchanging: Arc<OnceLock<reqwest::Client>>,
    /// The tools that were listed last, where a connection does not list them itself.
    tools: ArcSwapOption<Vec<Box<RawValue>>>,
    /// What it said about itself last time, before it is connected.
    remembered: OnceLock<Arc<ServerInfo>>,
    /// Whether calls wait until its tools have been compared with their pins.
    vetting: Vetting,
}

#[derive(Debug)]
struct Connected {
    link: Link,
    /// Which of its connections this is, from one on.
    number: u64,
    server: Arc<ServerInfo>,
    /// What every request of the stateless protocol carries.
    meta: Option<Value>,
    since: Instant,
    /// The task that hears what the upstream says unasked, in the stateless protocol.
    listening: OnceLock<AbortHandle>,
}

/// The way to a server: its standard streams, HTTP, or code of this process.
#[derive(Debug)]
enum Link {
    Lines(LineLink),
    Http(HttpLink),
    InProcess(InProcess),
}

impl Link {
    /// The server at the other end; `None` for code of this process.
    fn peer(&self) -> Option<&Arc<Peer>> {
        match self {
            Self::Lines(link) => Some(link.peer()),
            Self::Http(link) => Some(link.peer()),
            Self::InProcess(_) => None,
        }
    }
}

impl Upstream {
    /// An upstream that is not connected yet; what it says unasked goes to `events` under its name.
    #[must_use]
    pub fn new(name: &str, config: UpstreamConfig, events: EventSender) -> Self {
        Self {
            name: Arc::from(name),
            era: Mutex::new(config.era),
            reviving: AtomicBool::new(false),
            was_connected: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            callers: config.credentials.is_per_caller().then(PerCaller::new),
            exchanging: Arc::default(),
            tools: ArcSwapOption::empty(),
            remembered: OnceLock::new(),
            vetting: Vetting::default(),
            config,
            link: ArcSwapOption::empty(),
            connecting: tokio::sync::Mutex::default(),
            breaker: Mutex::default(),
            client: OnceLock::new(),
            watched: watch::Sender::default(),
            events,
        }
    }

    /// Its name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name that its items carry as their server: the configured namespace, or its own name.
    pub(crate) fn server_name(&self) -> &str {
        self.config.namespace.as_deref().unwrap_or(&self.name)
    }

    /// How it is reached and what is taken of it.
    #[must_use]
    pub fn config(&self) -> &UpstreamConfig {
        &self.config
    }

    /// What its requests go over; `None` for what this process answers itself.
    pub(crate) fn transport(&self) -> Option<Transport> {
        match self.config.target {
            Target::Stdio { .. } => Some(Transport::Pipe),
            Target::Http { .. } | Target::Sse { .. } => Some(Transport::Tcp),
            Target::Unset { .. } | Target::Documents { .. } | Target::Database { .. } | Target::InProcess(_) => None,
        }
    }

    /// What it says about itself, when it is connected.
    #[must_use]
    pub fn server(&self) -> Option<Arc<ServerInfo>> {
        self.link.load().as_ref().map(|connected| Arc::clone(&connected.server))
    }

    /// What it says about itself, or said last time while it is not connected for the first time yet.
    pub(crate) fn introduced(&self) -> Option<Arc<ServerInfo>> {
        self.server().or_else(|| self.remembered.get().cloned())
    }

    /// Takes in what it said last time.
    pub(crate) fn remember(&self, server: ServerInfo, listing: &Listing) {
        let _ = self.remembered.set(Arc::new(server));
        // A connection to a stateless server needs its tools for the headers of calls.
        self.tools.store(Some(Arc::new(listing.tools.clone())));
    }

    /// Whether calls of its tools wait, after it was connected, until these have been compared with their pins.
    pub(crate) fn hold_until_reviewed(&self, holds: bool) {
        self.vetting.hold(holds);
    }

    /// What this says has been reviewed, with this of its tools.
    pub(crate) fn reviewed(&self, listing: &Listing, tools: BTreeMap<String, Reviewed>) {
        self.vetting.reviewed(listing.connection, tools);
    }

    /// Its lists could not be read.
    pub(crate) fn not_listed(&self) {
        self.vetting.failed();
    }

    /// The state of its circuit breaker.
    #[must_use]
    pub fn circuit(&self) -> CircuitState {
        lock(&self.breaker).circuit(Instant::now()).state()
    }

    /// Why it could not be asked at this moment: its circuit is open, or its connection is gone.
    #[must_use]
    pub fn trouble(&self) -> Option<Fault> {
        match self.way() {
            (Circuit::Open(fault), _) => Some(fault),
            (_, None) => Some(Fault::Unavailable("it is not connected".to_owned())),
            _ => None,
        }
    }

    /// Whether its tool of that name is served: it follows a pattern of `include_tools`, if there is any, and none of
    /// `exclude_tools`.
    #[must_use]
    pub fn takes(&self, tool: &str) -> bool {
        let follows = |patterns: &[String]| patterns.iter().any(|pattern| glob::matches(pattern, tool));
        let UpstreamConfig { include_tools, exclude_tools, .. } = &self.config;
        (include_tools.is_empty() || follows(include_tools)) && !follows(exclude_tools)
    }

    /// Whether all its tools are served.
    #[must_use]
    pub fn takes_all(&self) -> bool {
        self.config.include_tools.is_empty() && self.config.exclude_tools.is_empty()
    }

    /// Leaves of definitions of tools those that are served.
    fn select(&self, tools: &mut Vec<Box<RawValue>>) {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        if !self.takes_all() {
            // What has no name is left for the catalog to report.
            tools.retain(|tool| serde_json::from_str::<Named>(tool.get()).map_or(true, |tool| self.takes(&tool.name)));
        }
    }

    /// A page of `tools/list` with the tools that are served.
    pub(crate) fn select_of(&self, page: Raw) -> Raw {
        if self.takes_all() {
            return page;
        }
        let Ok(mut members) = page.read::<Members<'_>>() else { return page };
        let tools = members.get("tools").and_then(|tools| serde_json::from_str::<Vec<Box<RawValue>>>(tools.get()).ok());
        let mut tools = tools.unwrap_or_default();
        self.select(&mut tools);
        members.set("tools", &Raw::of(&tools));
        Raw::of(&members)
    }

    /// Sends a request and waits for its result.
    ///
    /// # Errors
    /// [`Fault`]: it cannot be reached, gives no answer in time, or an error.
    pub async fn request(&self, call: Call<'_>) -> Result<Raw, Fault> {
        if let (Some(callers), Some(caller)) = (&self.callers, call.caller) {
            if let "resources/subscribe" | "resources/unsubscribe" = call.method {
                // What changes is told to all who watch, and one caller's server is not that of another.
                return Err(Fault::Rpc(RpcError::method_not_found(call.method)));
            }
            let own = self.request_as(callers, caller, call);
            return Box::pin(own).await.map_err(|fault| fault.covered_for_caller(&self.config.masks));
        }
        let connected = self.connected(self.config.timeout).await?;
        if connected.meta.is_some() && self.watches(&call) {
            return Ok(Raw::of(&json!({})));
        }
        self.vetted(&connected, &call).await?;
        let sent = Instant::now();
        let answer = connected.request(&call, self.config.timeout).await;
        if !matches!(answer, Err(Fault::UnknownSession(_))) {
            self.note(&connected, sent, &answer);
            return answer.map_err(|fault| fault.covered_for_caller(&self.config.masks));
        }
        // It was started anew or has forgotten us, and did nothing: once more in a new session.
        let connected = self.connected(self.config.timeout).await?;
        self.vetted(&connected, &call).await?;
        let sent = Instant::now();
        let answer = connected.request(&call, self.config.timeout).await;
        self.note(&connected, sent, &answer);
        answer.map_err(|fault| fault.covered_for_caller(&self.config.masks))
    }

    /// A fault of it as it is logged and as models read it.
    pub(crate) fn shown(&self, fault: Fault) -> Fault {
        fault.covered(&self.config.masks)
    }

    /// Says that it knows nothing of what is watched for clients, which may have been asked of an earlier connection,
    /// or of another upstream in its place.
    pub(crate) fn is_connected_anew(&self) {
        self.events.send(&self.name, Event::Connected);
    }

    /// Whether there is a connection that may be used.
    pub(crate) fn is_connected(&self) -> bool {
        self.usable().is_some()
    }

    /// Sends a notification, which is lost where the upstream is not connected or does not keep up.
    pub(crate) fn tell(&self, method: &str, params: Option<&Raw>) {
        let text = || message::notification(method, params);
        if let Some(Connected { link, meta: None, .. }) = self.usable().as_deref()
            && let Some(peer) = link.peer()
        {
            peer.try_send(text());
        }
    }

    /// Waits until the tool that is called may be, where changed tools are withheld.
    async fn vetted(&self, connected: &Connected, call: &Call<'_>) -> Result<(), Fault> {
        if call.method != "tools/call" || call.caller.is_none() || !self.vetting.holds() {
            return Ok(());
        }
        // In a box: it is seldom needed, and part of every request otherwise.
        Box::pin(async {
            let tool = stateless::named(call.method, call.params).unwrap_or_default();
            let ask = || self.events.send(&self.name, Event::ToolsWanted);
            self.vetting.wait(connected.number, &tool, self.config.timeout, ask).await
        })
        .await
    }

    /// Sends a request as this caller. An exchanged token that the server refuses is exchanged anew, and the request, of
    /// which nothing was done, is made again.
    async fn request_as(&self, callers: &Arc<PerCaller<Self>>, caller: &Caller, call: Call<'_>) -> Result<Raw, Fault> {
        let shown = caller.presented().ok_or_else(|| {
            let reason = "it is asked as the caller, and this one has shown no token of the authorization server; sign \
                          in there, and do not use a fixed token";
            Fault::Credentials(reason.to_owned())
        })?;
        let own = self.own_of(callers, caller, shown).await?;
        let answer = own.request(call).await;
        let is_refused = matches!(answer, Err(Fault::Status { status: 401, .. }));
        if !is_refused || !matches!(self.config.credentials, Credentials::Exchange(_)) {
            return answer;
        }
        match callers.give_up(caller, shown, own) {
            true => self.own_of(callers, caller, shown).await?.request(call).await,
            false => answer,
        }
    }

    /// The upstream as this caller is connected to it.
    async fn own_of(
        &self,
        callers: &Arc<PerCaller<Self>>,
        caller: &Caller,
        shown: &Presented,
    ) -> Result<Arc<Self>, Fault> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Fault::Unavailable(CLOSED.to_owned()));
        }
        let make = || {
            let (credentials, shown, own) = (self.config.credentials.clone(), shown.clone(), self.on_behalf());
            let exchanging = Arc::clone(&self.exchanging);
            async move {
                let (token, until) = match &credentials {
                    Credentials::Passthrough(rule) => (passed_on(rule, &shown)?, shown.until),
                    Credentials::Exchange(rule) => {
                        let make = || http::plain_client(exchange::TIMEOUT).map_err(Fault::Unavailable);
                        let exchanged = exchange::exchange(rule, &made_once(&exchanging, make)?, &shown).await?;
                        (exchanged.token, exchanged.until)
                    }
                    Credentials::Headers | Credentials::Static => {
                        return Err(Fault::Credentials("it is not asked as the caller".to_owned()));
                    }
                };
                Ok((own(&token), until))
            }
        };
        let timeout = self.config.timeout;
        let own = tokio::time::timeout(timeout, callers.of(caller, shown, make)).await;
        own.unwrap_or_else(|_| {
            let seconds = timeout.as_secs_f64();
            Err(Fault::Unavailable(format!("no token for it within {seconds} s; it is still waited for, so try again")))
        })
    }

    /// What makes the same upstream with a token. What it says unasked is for one caller, and told to nobody.
    fn on_behalf(&self) -> impl FnOnce(&Secret) -> Self + Send + 'static {
        let mut config = UpstreamConfig { credentials: Credentials::Headers, ..self.config.clone() };
        let (name, tools) = (Arc::clone(&self.name), self.tools.load_full());
        move |token| {
            if let Target::Http { headers, .. } | Target::Sse { headers, .. } = &mut config.target {
                headers.retain(|name, _| !name.eq_ignore_ascii_case("authorization"));
                headers.insert("authorization".to_owned(), format!("Bearer {}", token.text()));
            }
            let (events, _) = EventSender::channel();
            let own = Self::new(&name, config, events);
            own.tools.store(tools);
            own
        }
    }

    /// The place in the configuration of the rule by which it is asked, where there is one.
    pub(crate) fn credentials_rule(&self) -> Option<String> {
        self.config.credentials.rule().map(|rule| format!("upstreams.{}.credentials.{rule}", self.name))
    }

    /// Takes in that a resource is to be watched, or not any more, for a server that has no such request: the stream of
    /// its changes names the resources. Whether the call was about that.
    fn watches(&self, call: &Call<'_>) -> bool {
        let Some(uri) = call.params.and_then(|params| stateless::named(call.method, Some(params))) else {
            return false;
        };
        match call.method {
            "resources/subscribe" => self.watched.send_if_modified(|uris| uris.insert(uri.into_owned())),
            "resources/unsubscribe" => self.watched.send_if_modified(|uris| uris.remove(&*uri)),
            _ => return false,
        };
        true
    }

    /// Everything that it lists, page by page. What it does not offer is empty, and tools that are not served are left
    /// out.
    ///
    /// # Errors
    /// [`Fault`] of the first request that fails.
    pub async fn list(&self, timeout: Duration) -> Result<Listing, Fault> {
        let connected = self.connected(timeout).await?;
        let sent = Instant::now();
        let listing = connected.list_all(timeout).await.map_err(|fault| fault.covered(&self.config.masks));
        self.note(&connected, sent, &listing);
        let mut listing = listing?;
        // What was remembered has done its work: a connection that lists tools has learned them.
        self.tools.store(self.callers.as_ref().map(|_| Arc::new(listing.tools.clone())));
        self.select(&mut listing.tools);
        listing.connection = connected.number;
        Ok(listing)
    }

    /// Ends the connection, for good.
    pub async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if let Some(callers) = &self.callers {
            callers.close().await;
        }
        if let Some(connected) = self.link.swap(None) {
            connected.close(CLOSED).await;
        }
    }

    /// Makes the connection again after it broke or could not be made, as often as that takes; then the lists are
    /// read again. Ends when it is there, and when the upstream itself is not needed any more.
    pub(crate) async fn revive(upstream: Weak<Self>) {
        {
            let Some(upstream) = upstream.upgrade() else { return };
            if upstream.reviving.swap(true, Ordering::AcqRel) {
                return;
            }
            if upstream.usable().is_none()
                && let Some(connected) = &*upstream.link.load()
            {
                lock(&upstream.breaker).disconnected(connected.since.elapsed(), Instant::now());
            }
        }
        for attempt in 0.. {
            let pause = upstream.upgrade().map(|upstream| lock(&upstream.breaker).open_for(Instant::now()));
            // Not every failure opens the circuit.
            tokio::time::sleep(pause.unwrap_or_default().max(breaker::pause(attempt))).await;
            let Some(upstream) = upstream.upgrade() else { return };
            if upstream.closed.load(Ordering::Acquire) {
                return;
            }
            if upstream.connected(upstream.config.timeout).await.is_ok() {
                upstream.reviving.store(false, Ordering::Release);
                upstream.events.send(&upstream.name, Event::MayDiffer);
                return;
            }
        }
    }

    /// Takes in what came of a request that was sent at `sent`.
    fn note<T>(&self, connected: &Connected, sent: Instant, answer: &Result<T, Fault>) {
        let (mut breaker, now) = (lock(&self.breaker), Instant::now());
        match answer {
            // A broken connection is noted where it breaks, and not by all who wait on it.
            Err(Fault::Unavailable(_) | Fault::Ended { .. }) if !connected.is_usable() => {}
            Err(Fault::Timeout(_)) => breaker.timed_out(sent, PATIENCE, now),
            Err(fault) if fault.is_failure() => breaker.failed(PATIENCE, now),
            Err(Fault::CircuitOpen { .. }) => {}
            _ => breaker.answered(now),
        }
    }

    /// The connection; a new one is made where there is none.
    async fn connected(&self, timeout: Duration) -> Result<Arc<Connected>, Fault> {
        match self.way() {
            (Circuit::Open(fault), _) => Err(fault),
            (Circuit::Closed, Some(connected)) => Ok(connected),
            // In a box: it is large, seldom needed, and part of every request otherwise.
            _ => Box::pin(self.reconnected(timeout)).await,
        }
    }

    /// Whether it may be asked now, and on which connection.
    fn way(&self) -> (Circuit, Option<Arc<Connected>>) {
        (lock(&self.breaker).circuit(Instant::now()), self.usable())
    }

    /// The connection that another request has made meanwhile, or one that is made now.
    async fn reconnected(&self, timeout: Duration) -> Result<Arc<Connected>, Fault> {
        let _one_at_a_time = self.connecting.lock().await;
        match self.way() {
            (Circuit::Open(fault), _) => return Err(fault),
            (Circuit::Closed, Some(connected)) => return Ok(connected),
            // What hangs does not recover by being waited for, and what only was slow must not be killed.
            (Circuit::HalfOpen, Some(connected)) if connected.is_responsive(PROBE.min(timeout)).await => {
                lock(&self.breaker).answered(Instant::now());
                return Ok(connected);
            }
            _ => {}
        }
        if self.closed.load(Ordering::Acquire) {
            return Err(Fault::Unavailable(CLOSED.to_owned()));
        }
        if let Some(old) = self.link.swap(None) {
            tokio::spawn(async move { old.retire().await });
        }
        let made = tokio::time::timeout(timeout, self.connect(timeout)).await.unwrap_or(Err(Fault::Timeout(timeout)));
        // What cannot be started is named with what it was started with.
        let made = made.map_err(|fault| fault.covered(&self.config.masks));
        match made {
            Ok(connected) if self.closed.load(Ordering::Acquire) => {
                connected.close(CLOSED).await;
                Err(Fault::Unavailable(CLOSED.to_owned()))
            }
            Ok(mut connected) => {
                connected.number = self.vetting.connected();
                let connected = Arc::new(connected);
                if let (Link::Http(link), Some(tools)) = (&connected.link, &*self.tools.load()) {
                    link.learn(tools);
                }
                let (events, name) = (self.events.clone(), Arc::clone(&self.name));
                let masks = self.config.masks.clone();
                connected.listen(self.watched.subscribe(), masks, move |event| events.send(&name, event));
                self.link.store(Some(Arc::clone(&connected)));
                if self.was_connected.swap(true, Ordering::AcqRel) {
                    self.is_connected_anew();
                    // It may be another version by now.
                    self.events.send(&self.name, Event::MayDiffer);
                }
                Ok(connected)
            }
            Err(fault) => {
                // A start that fails costs more than a request that fails: the circuit opens the first time.
                lock(&self.breaker).failed(1, Instant::now());
                Err(fault)
            }
        }
    }

    fn usable(&self) -> Option<Arc<Connected>> {
        self.link.load_full().filter(|connected| connected.is_usable())
    }

    async fn connect(&self, timeout: Duration) -> Result<Connected, Fault> {
        let era = *lock(&self.era);
        let made = self.introduce(era, timeout).await;
        // A server that was replaced by another version may speak the other protocol.
        *lock(&self.era) = made.as_ref().map_or(self.config.era, |(_, found)| *found);
        made.map(|(connected, _)| connected)
    }

    async fn introduce(&self, era: Era, timeout: Duration) -> Result<(Connected, Era), Fault> {
        let mut connected = Connected::on(self.open().await?);
        let mut may_be_slow = false;
        if era != Era::Legacy {
            let patience = if era == Era::Auto { timeout / 2 } else { timeout };
            connected.try_out(era == Era::Auto);
            let discovered = connected.discover(patience).await;
            connected.try_out(false);
            match discovered {
                Ok(()) => return Ok((connected, Era::Modern)),
                Err(fault) if era == Era::Modern => return Err(fault),
                Err(fault) => {
                    let fault = fault.covered(&self.config.masks);
                    tracing::debug!(upstream = %self.name, %fault, "not stateless; trying the handshake");
                    may_be_slow = matches!(fault, Fault::Timeout(_));
                }
            }
            if !connected.is_usable() {
                connected.close("it does not speak the stateless protocol").await;
                connected = Connected::on(self.open().await?);
            }
        }
        match connected.initialize(timeout).await {
            Ok(()) => Ok((connected, Era::Legacy)),
            // It was still starting when it was asked first, and has no handshake.
            Err(Fault::Rpc(_)) if may_be_slow => {
                connected.discover(timeout).await?;
                Ok((connected, Era::Modern))
            }
            Err(fault) => Err(fault),
        }
    }

    async fn open(&self) -> Result<Link, Fault> {
        let events = self.events.clone();
        let named = (&self.name, &self.config.masks);
        Ok(match &self.config.target {
            Target::Stdio { command, args, env, confinement } => {
                let program = Program { command, args, env, masks: &self.config.masks };
                Link::Lines(LineLink::spawn(&self.name, program, confinement, MESSAGE_LIMIT, events).await?)
            }
            Target::Http { url, headers } => {
                let client = made_once(&self.client, http::client)?;
                Link::Http(HttpLink::open(named, client, (url, headers), MESSAGE_LIMIT, events)?)
            }
            Target::Sse { url, headers } => {
                let (client, address) = (made_once(&self.client, http::client)?, (url.as_str(), headers));
                Link::Http(HttpLink::open_stream(named, client, address, MESSAGE_LIMIT, events).await?)
            }
            Target::Unset { variables } => {
                let unset = unset(variables);
                let reason = format!("{unset}; set it in the gateway's environment and start it again");
                return Err(Fault::Unavailable(reason));
            }
            Target::Documents { folder } => {
                Link::InProcess(InProcess::new(made(folder.clone(), documents::server).await?))
            }
            Target::Database { file } => Link::InProcess(InProcess::new(made(file.clone(), database::server).await?)),
            Target::InProcess(answer) => Link::InProcess(answer.clone()),
        })
    }
}

/// The client that is kept, which is made where there is none yet.
fn made_once(
    kept: &OnceLock<reqwest::Client>,
    make: impl FnOnce() -> Result<reqwest::Client, Fault>,
) -> Result<reqwest::Client, Fault> {
    if let Some(client) = kept.get() {
        return Ok(client.clone());
    }
    let client = make()?;
    Ok(kept.get_or_init(|| client).clone())
}

/// The server that this process makes of what is at a path; a disk may be slow.
async fn made(path: PathBuf, server: fn(&Path) -> Result<Toolset, BuiltInError>) -> Result<Toolset, Fault> {
    let made = tokio::task::spawn_blocking(move || server(&path)).await;
    let made = made.map_err(|error| Fault::Unavailable(error.to_string()))?;
    made.map_err(|error| Fault::Unavailable(error.to_string()))
}

/// The caller's own token, where it was issued for the upstream.
fn passed_on(rule: &Passthrough, shown: &Presented) -> Result<Secret, Fault> {
    if shown.issuer != rule.issuer {
        let reason =
            format!("the token of the caller is not of `{}`, whose tokens it takes; sign in there", rule.issuer);
        return Err(Fault::Credentials(reason));
    }
    if !shown.audiences.contains(&rule.audience) {
        let reason = format!(
            "the token of the caller is not for it, since its `aud` lacks `{}`; ask for a token that is for both",
            rule.audience
        );
        return Err(Fault::Credentials(reason));
    }
    Ok(shown.token.clone())
}

impl Connection for Upstream {
    fn end(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { self.close().await })
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // That task holds the connection.
        if let Some(listening) = self.link.load().as_ref().and_then(|connected| connected.listening.get()) {
            listening.abort();
        }
    }
}

impl Connected {
    /// A connection on which the server has not introduced itself.
    fn on(link: Link) -> Self {
        let (since, listening) = (Instant::now(), OnceLock::new());
        Self { link, number: 0, server: Arc::default(), meta: None, since, listening }
    }

    fn is_usable(&self) -> bool {
        match &self.link {
            Link::Lines(link) => link.is_alive(),
            Link::Http(link) => link.is_alive(),
            Link::InProcess(_) => true,
        }
    }

    /// Whether another connection is made when this one breaks, which is no news then: some servers end on a request that
    /// they do not know.
    fn try_out(&self, is_tried_out: bool) {
        if let Some(peer) = self.link.peer() {
            peer.try_out(is_tried_out);
        }
    }

    async fn request(&self, call: &Call<'_>, timeout: Duration) -> Result<Raw, Fault> {
        let patience = async {
            match self.link.peer() {
                Some(peer) => peer.patience(call.caller, timeout).await,
                None => tokio::time::sleep(timeout).await,
            }
        };
        tokio::select! {
            biased;
            answer = self.exchange(call, timeout) => answer,
            () = patience => Err(Fault::Timeout(timeout)),
        }
    }

    /// The answer to a call, for which so much time is meant; code of this process has no more.
    async fn exchange(&self, call: &Call<'_>, timeout: Duration) -> Result<Raw, Fault> {
        match &self.link {
            Link::Lines(link) => {
                let (ticket, text) = link.peer().enter(call, self.meta.as_ref(), timeout)?;
                link.exchange(ticket, text).await
            }
            Link::Http(link) => {
                let (ticket, text) = link.peer().enter(call, self.meta.as_ref(), timeout)?;
                // In a box, as below: it is large, and would be copied with every request to a child process.
                Box::pin(link.exchange(ticket, text, call)).await
            }
            Link::InProcess(answer) => Box::pin(answer.answer(call.method, call.params, timeout)).await,
        }
    }

    /// Whether it still answers anything at all, an error too.
    async fn is_responsive(&self, timeout: Duration) -> bool {
        let method = if self.meta.is_some() { "server/discover" } else { "ping" };
        let answer = self.request(&Call::own(method, None), timeout).await;
        !matches!(answer, Err(fault) if fault.is_failure())
    }

    /// Ends it, since another takes its place. The server may have said to one call only that it has lost the session:
    /// those that it is serving go on to their ends.
    async fn retire(&self) {
        if let Link::Http(link) = &self.link {
            while link.has_lost_session() && !link.peer().is_idle() {
                tokio::time::sleep(LOOK).await;
            }
        }
        self.close("the connection is being replaced").await;
    }

    async fn close(&self, reason: &str) {
        if let Some(listening) = self.listening.get() {
            listening.abort();
        }
        match &self.link {
            Link::Lines(link) => link.close(reason).await,
            Link::Http(link) => link.close(reason).await,
            Link::InProcess(_) => {}
        }
    }

    /// Hears of changes, where the stateless protocol wants that to be asked for; of resources those that are `watched`.
    /// What may have changed while nothing was heard is told to `tell`.
    fn listen(
        self: &Arc<Self>,
        mut watched: watch::Receiver<BTreeSet<String>>,
        masks: Masks,
        tell: impl Fn(Event) + Send + Sync + 'static,
    ) {
        let has = |capability: &str, feature: &str| {
            let has = self.server.capabilities.get(capability).and_then(|offer| offer.get(feature));
            has == Some(&Value::Bool(true))
        };
        let changes = ["tools", "resources", "prompts"].map(|capability| has(capability, "listChanged"));
        let (lists, resources) = (changes.contains(&true), has("resources", "subscribe"));
        if self.meta.is_none() || !(lists || resources) {
            return;
        }
        let connected = Arc::clone(self);
        let listening = tokio::spawn(async move {
            let (mut ends, mut has_ended) = (Ends::default(), false);
            while connected.is_usable() {
                let is_again = std::mem::take(&mut has_ended);
                let uris = if resources { watched.borrow_and_update().clone() } else { BTreeSet::new() };
                let call = async {
                    if !lists && uris.is_empty() {
                        return std::future::pending().await;
                    }
                    let params = listen_params(changes, &uris);
                    let call = Call::own("subscriptions/listen", Some(&params));
                    let heard = connected.exchange(&call, Duration::MAX);
                    // The stream is asked for first, so that nothing falls between it and what is read again.
                    let missed = async {
                        let told = [Event::ToolsChanged, Event::ResourcesChanged, Event::PromptsChanged]
                            .into_iter()
                            .zip(changes)
                            .filter(|(_, is_heard)| is_again && *is_heard);
                        told.for_each(|(event, _)| tell(event));
                    };
                    tokio::join!(biased; heard, missed).0
                };
                let began = Instant::now();
                tokio::select! {
                    answer = call => if let Err(fault @ Fault::Rpc(_)) = answer {
                        let fault = fault.covered(&masks);
                        return tracing::debug!(%fault, "it sends no notifications");
                    },
                    // Another stream takes the place of this one, which is taken back.
                    Ok(()) = watched.changed(), if resources => continue,
                }
                has_ended = true;
                tokio::time::sleep(ends.pause(began.elapsed())).await;
            }
        });
        let _ = self.listening.set(listening.abort_handle());
    }

    async fn initialize(&mut self, timeout: Duration) -> Result<(), Fault> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InitializeResult {
            protocol_version: String,
            #[serde(default)]
            capabilities: Map<String, Value>,
            server_info: Option<Value>,
            instructions: Option<String>,
        }
        self.meta = None;
        if let Link::Http(link) = &self.link {
            link.set_stateless(false);
        }
        let hello = |capabilities: Value| {
            let version = LEGACY_VERSIONS[0];
            Raw::of(&json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": own_info()}))
        };
        let introduced = self.introduction(&Call::own("initialize", Some(&hello(own_capabilities()))), timeout).await;
        let result = match introduced {
            // Libraries that were made when these capabilities were empty objects may refuse all others.
            Err(fault) if may_mind_members(&fault) => {
                self.introduction(&Call::own("initialize", Some(&hello(plain_capabilities()))), timeout).await?
            }
            introduced => introduced?,
        };
        let result: InitializeResult = result.read().map_err(|error| malformed(&error))?;
        self.server = Arc::new(ServerInfo {
            version: result.protocol_version,
            capabilities: result.capabilities,
            info: result.server_info,
            instructions: result.instructions,
            handshakes: Vec::new(),
        });
        let ready = message::notification("notifications/initialized", None);
        match &self.link {
            Link::Lines(link) => link.peer().send(ready).await,
            Link::Http(link) => {
                link.greeted(&self.server.version);
                link.tell(ready).await
            }
            Link::InProcess(_) => Ok(()),
        }
    }

    async fn discover(&mut self, timeout: Duration) -> Result<(), Fault> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct DiscoverResult {
            supported_versions: Vec<String>,
            #[serde(default)]
            capabilities: Map<String, Value>,
            instructions: Option<String>,
            #[serde(rename = "_meta", default)]
            meta: Map<String, Value>,
        }
        self.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
            "io.modelcontextprotocol/clientInfo": own_info(),
            CAPABILITIES_KEY: own_capabilities(),
        }));
        if let Link::Http(link) = &self.link {
            link.set_stateless(true);
        }
        let result = self.introduction(&Call::own("server/discover", None), timeout).await?;
        let mut result: DiscoverResult = result.read().map_err(|error| malformed(&error))?;
        if !result.supported_versions.iter().any(|version| version == MODERN_VERSION) {
            let versions = result.supported_versions.join(", ");
            return Err(Fault::Malformed(format!("it speaks {versions} and not {MODERN_VERSION}")));
        }
        result.supported_versions.retain(|version| LEGACY_VERSIONS.contains(&version.as_str()));
        self.server = Arc::new(ServerInfo {
            version: MODERN_VERSION.to_owned(),
            capabilities: result.capabilities,
            info: result.meta.remove("io.modelcontextprotocol/serverInfo"),
            instructions: result.instructions,
            handshakes: result.supported_versions,
        });
        Ok(())
    }

    /// The answer with which the server introduces itself, which is bounded.
    async fn introduction(&self, call: &Call<'_>, timeout: Duration) -> Result<Raw, Fault> {
        let result = self.request(call, timeout).await?;
        match result.bytes().len() {
            0..=LONGEST_HANDSHAKE => Ok(result),
            bytes => {
                let reason = format!("it introduces itself in {bytes} bytes, over {LONGEST_HANDSHAKE}");
                Err(Fault::Malformed(reason).of(call.method))
            }
        }
    }

    /// All that it offers.
    async fn list_all(&self, timeout: Duration) -> Result<Listing, Fault> {
        let offers = |capability: &str| self.server.capabilities.contains_key(capability);
        let mut listing = Listing::default();
        if offers("tools") {
            listing.tools = self.list("tools/list", "tools", timeout).await?;
            if let Link::Http(link) = &self.link {
                link.learn(&listing.tools);
            }
        }
        if offers("resources") {
            listing.resources = self.list_if_known("resources/list", "resources", timeout).await?;
            // Older servers have no templates.
            let templates = self.list("resources/templates/list", "resourceTemplates", timeout).await;
            listing.templates = templates.unwrap_or_default();
        }
        if offers("prompts") {
            listing.prompts = self.list_if_known("prompts/list", "prompts", timeout).await?;
        }
        Ok(listing)
    }

    /// All pages of a list, none where the server does not know the method: some declare what they do not have, and
    /// their tools are wanted all the same.
    async fn list_if_known(&self, method: &str, key: &str, timeout: Duration) -> Result<Vec<Box<RawValue>>, Fault> {
        match self.list(method, key, timeout).await {
            Err(Fault::Rpc(error)) if error.code == METHOD_NOT_FOUND => {
                let server = self.server.info.as_ref().map(Value::to_string).unwrap_or_default();
                tracing::warn!(%server, method, "the server declares this list and does not know its method; treated as empty");
                Ok(Vec::new())
            }
            listed => listed,
        }
    }

    /// All pages of a list; what fails says the method.
    async fn list(&self, method: &str, key: &str, timeout: Duration) -> Result<Vec<Box<RawValue>>, Fault> {
        self.pages(method, key, timeout).await.map_err(|fault| fault.of(method))
    }

    async fn pages(&self, method: &str, key: &str, timeout: Duration) -> Result<Vec<Box<RawValue>>, Fault> {
        let mut all: Vec<Box<RawValue>> = Vec::new();
        let (mut cursor, mut bytes): (Option<String>, usize) = (None, 0);
        for _ in 0..MOST_PAGES {
            let params = cursor.as_ref().map(|cursor| Raw::of(&json!({ "cursor": cursor })));
            let page = self.request(&Call::own(method, params.as_ref()), timeout).await?;
            bytes += page.bytes().len();
            if bytes > MOST_LIST_BYTES {
                return Err(Fault::Malformed(format!("it has more than {MOST_LIST_BYTES} bytes")));
            }
            let members: Members<'_> = page.read().map_err(|error| malformed(&error))?;
            let items = members.get(key).map(|items| serde_json::from_str::<Vec<Box<RawValue>>>(items.get()));
            all.extend(items.transpose().map_err(|error| malformed(&error))?.unwrap_or_default());
            let next = members.get("nextCursor").map(|next| serde_json::from_str::<Option<String>>(next.get()));
            match next.transpose().map_err(|error| malformed(&error))?.flatten() {
                None => return Ok(all),
                next if next == cursor => {
                    return Err(Fault::Malformed("it gives the same cursor again and again".to_owned()));
                }
                next => cursor = next,
            }
        }
        Err(Fault::Malformed(format!("it does not end after {MOST_PAGES} pages")))
    }
}

/// The parameters of `subscriptions/listen`: changes of the lists of tools, resources and prompts, and of resources.
fn listen_params([tools, resources, prompts]: [bool; 3], uris: &BTreeSet<String>) -> Raw {
    let mut wanted =
        json!({"toolsListChanged": tools, "resourcesListChanged": resources, "promptsListChanged": prompts});
    if !uris.is_empty() {
        wanted["resourceSubscriptions"] = json!(uris);
    }
    Raw::of(&json!({ "notifications": wanted }))
}

fn malformed(error: &serde_json::Error) -> Fault {
    Fault::Malformed(error.to_string())
}

/// What upstreams may ask of the gateway; it passes the question on to the client that it serves.
fn own_capabilities() -> Value {
    json!({"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}})
}

/// The same without members, as the first versions of the protocol have it.
fn plain_capabilities() -> Value {
    json!({"roots": {}, "sampling": {}, "elicitation": {}})
}

/// Whether a server may have failed to read what capabilities have in them.
fn may_mind_members(fault: &Fault) -> bool {
    match fault {
        Fault::Rpc(error) => error.code != METHOD_NOT_FOUND,
        Fault::Status { status, .. } => matches!(status, 400 | 500),
        _ => false,
    }
}

/// The name and version with which the gateway introduces itself.
pub(crate) fn own_info() -> Value {
    json!({"name": program::NAME, "version": program::VERSION})
}

#[cfg(test)]
mod credential_tests;
#[cfg(test)]
pub(crate) mod http_tests;
#[cfg(all(test, unix))] // Their servers are scripts of a shell.
mod tests;
