//! The servers behind the gateway.
//!
//! An upstream is connected when it is first needed and again after it went away, with growing pauses; while it rests,
//! calls of it fail at once. Nothing that one does holds up another: each has its own tasks, time-out and rest.

mod fault;
mod peer;
mod stdio;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

pub use fault::Fault;

use self::stdio::StdioLink;
use super::config::{Era, Target, UpstreamConfig};
use super::session::{Caller, LEGACY_VERSIONS, MODERN_VERSION, lock};
use super::wire::Raw;

/// What an upstream says unasked.
#[derive(Debug, Clone)]
pub enum Event {
    /// Its tools are others now.
    ToolsChanged,
    /// Its resources are others now.
    ResourcesChanged,
    /// Its prompts are others now.
    PromptsChanged,
    /// A resource has other content now; the parameters of the notification.
    ResourceUpdated(Option<Raw>),
}

/// A request for an upstream.
#[derive(Debug, Clone, Copy)]
pub struct Call<'c> {
    /// The method.
    pub method: &'c str,
    /// Its parameters.
    pub params: Option<&'c Raw>,
    /// On whose behalf; `None` for the gateway's own.
    pub caller: Option<&'c Caller>,
    /// The caller's progress token, when it wants to hear of progress.
    pub progress: Option<&'c Raw>,
}

impl<'c> Call<'c> {
    /// A request of the gateway's own.
    #[must_use]
    pub fn own(method: &'c str, params: Option<&'c Raw>) -> Self {
        Self { method, params, caller: None, progress: None }
    }
}

/// What an upstream says about itself at the start.
#[derive(Debug, Clone, Default)]
pub struct ServerInfo {
    /// The protocol version that both sides speak.
    pub version: String,
    /// What it offers.
    pub capabilities: Map<String, Value>,
    /// Its name and version.
    pub info: Option<Value>,
    /// How it wants to be used.
    pub instructions: Option<String>,
}

/// What an upstream lists.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Its tools.
    pub tools: Vec<Box<RawValue>>,
    /// Its resources.
    pub resources: Vec<Box<RawValue>>,
    /// The templates of its resources.
    pub templates: Vec<Box<RawValue>>,
    /// Its prompts.
    pub prompts: Vec<Box<RawValue>>,
}

/// Bytes of a message of an upstream, at most.
pub const MESSAGE_LIMIT: usize = 64 * 1024 * 1024;

/// Failures in a row after which an upstream rests.
const PATIENCE: u32 = 5;

/// The first rest; it doubles with every further failure.
const FIRST_REST: Duration = Duration::from_millis(500);

/// The longest rest.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// Pages of a list, at most.
const MOST_PAGES: usize = 1_000;

/// A server behind the gateway.
#[derive(Debug)]
pub struct Upstream {
    name: Arc<str>,
    config: UpstreamConfig,
    link: ArcSwapOption<Connected>,
    /// Held while a connection is made, so that one is made at a time.
    connecting: tokio::sync::Mutex<()>,
    health: Mutex<Health>,
    events: mpsc::UnboundedSender<(Arc<str>, Event)>,
}

#[derive(Debug)]
struct Connected {
    link: StdioLink,
    server: ServerInfo,
    /// What every request of the stateless protocol carries.
    meta: Option<Value>,
}

#[derive(Debug, Default)]
struct Health {
    /// Illnesses since the last answer.
    failures: u32,
    /// Not before then.
    rest_until: Option<Instant>,
}

impl Health {
    fn resting(&self) -> Option<Fault> {
        let wait = self.rest_until?.checked_duration_since(Instant::now())?;
        Some(Fault::Resting { failures: self.failures, wait })
    }

    fn failed(&mut self, patience: u32) {
        self.failures = self.failures.saturating_add(1);
        if let Some(over) = self.failures.checked_sub(patience) {
            let rest = FIRST_REST.saturating_mul(1 << over.min(16)).min(LONGEST_REST);
            self.rest_until = Some(Instant::now() + rest);
        }
    }
}

impl Upstream {
    /// An upstream that is not connected yet; what it says unasked goes to `events` under its name.
    #[must_use]
    pub fn new(name: &str, config: UpstreamConfig, events: mpsc::UnboundedSender<(Arc<str>, Event)>) -> Self {
        Self {
            name: Arc::from(name),
            config,
            link: ArcSwapOption::empty(),
            connecting: tokio::sync::Mutex::default(),
            health: Mutex::default(),
            events,
        }
    }

    /// Its name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is reached and what is taken of it.
    #[must_use]
    pub fn config(&self) -> &UpstreamConfig {
        &self.config
    }

    /// What it says about itself, when it is connected.
    #[must_use]
    pub fn server(&self) -> Option<ServerInfo> {
        self.link.load().as_ref().map(|connected| connected.server.clone())
    }

    /// Sends a request and waits for its result.
    ///
    /// # Errors
    /// [`Fault`]: it cannot be reached, gives no answer in time, or an error.
    pub async fn request(&self, call: Call<'_>) -> Result<Raw, Fault> {
        let connected = self.connected(self.config.timeout).await?;
        let answer = connected.request(&call, self.config.timeout).await;
        self.note(&answer);
        answer
    }

    /// Everything that it lists, page by page. What it does not offer is empty.
    ///
    /// # Errors
    /// [`Fault`] of the first request that fails.
    pub async fn list(&self, timeout: Duration) -> Result<Listing, Fault> {
        let connected = self.connected(timeout).await?;
        let offers = |capability: &str| connected.server.capabilities.contains_key(capability);
        let mut listing = Listing::default();
        if offers("tools") {
            listing.tools = connected.list("tools/list", "tools", timeout).await?;
        }
        if offers("resources") {
            listing.resources = connected.list("resources/list", "resources", timeout).await?;
            // Older servers have no templates.
            let templates = connected.list("resources/templates/list", "resourceTemplates", timeout).await;
            listing.templates = templates.unwrap_or_default();
        }
        if offers("prompts") {
            listing.prompts = connected.list("prompts/list", "prompts", timeout).await?;
        }
        Ok(listing)
    }

    /// Ends the connection.
    pub async fn close(&self) {
        if let Some(connected) = self.link.swap(None) {
            connected.link.close().await;
        }
    }

    fn note<T>(&self, answer: &Result<T, Fault>) {
        let mut health = lock(&self.health);
        match answer {
            Err(fault) if fault.is_illness() => health.failed(PATIENCE),
            Err(Fault::Cancelled | Fault::Resting { .. }) => {}
            _ => *health = Health::default(),
        }
    }

    /// The connection, made anew when there is none.
    async fn connected(&self, timeout: Duration) -> Result<Arc<Connected>, Fault> {
        if let Some(connected) = self.usable() {
            return match lock(&self.health).resting() {
                Some(fault) => Err(fault),
                None => Ok(connected),
            };
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(connected) = self.usable() {
            return Ok(connected);
        }
        if let Some(fault) = lock(&self.health).resting() {
            return Err(fault);
        }
        let made = match tokio::time::timeout(timeout, self.connect(timeout)).await {
            Ok(made) => made,
            Err(_) => Err(Fault::Timeout(timeout)),
        };
        match made {
            Ok(connected) => {
                let connected = Arc::new(connected);
                self.link.store(Some(Arc::clone(&connected)));
                Ok(connected)
            }
            Err(fault) => {
                // Starting what does not start costs more than asking what does not answer: rest from the first time.
                lock(&self.health).failed(1);
                Err(fault)
            }
        }
    }

    fn usable(&self) -> Option<Arc<Connected>> {
        self.link.load_full().filter(|connected| connected.link.is_alive())
    }

    async fn connect(&self, timeout: Duration) -> Result<Connected, Fault> {
        let link = match &self.config.target {
            Target::Stdio { command, args, env, cwd } => {
                let events = self.events.clone();
                StdioLink::spawn(&self.name, (command, args), env, cwd.as_deref(), MESSAGE_LIMIT, events)?
            }
            Target::Http { .. } | Target::Sse { .. } => {
                return Err(Fault::Unavailable("HTTP upstreams are not built in".to_owned()));
            }
        };
        let mut connected = Connected { link, server: ServerInfo::default(), meta: None };
        match self.config.era {
            Era::Legacy => connected.initialize(timeout).await?,
            Era::Modern => connected.discover(timeout).await?,
            Era::Auto => {
                if let Err(fault) = connected.discover(timeout / 2).await {
                    tracing::debug!(upstream = %self.name, %fault, "not stateless; trying the handshake");
                    connected.meta = None;
                    connected.initialize(timeout).await?;
                }
            }
        }
        Ok(connected)
    }
}

impl Connected {
    async fn request(&self, call: &Call<'_>, timeout: Duration) -> Result<Raw, Fault> {
        let (ticket, text) = self.link.peer.enter(call, self.meta.as_ref());
        let closed = || Fault::Unavailable("the connection is closed".to_owned());
        // What is entered after the connection has failed its requests would wait in vain.
        if !self.link.is_alive() {
            return Err(closed());
        }
        let exchange = async {
            self.link.peer.outgoing.send(text).await.map_err(|_| closed())?;
            ticket.answer().await
        };
        tokio::time::timeout(timeout, exchange).await.unwrap_or(Err(Fault::Timeout(timeout)))
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
        let params = Raw::of(&json!({
            "protocolVersion": LEGACY_VERSIONS[0],
            "capabilities": own_capabilities(),
            "clientInfo": own_info(),
        }));
        let result = self.request(&Call::own("initialize", Some(&params)), timeout).await?;
        let result: InitializeResult = result.read().map_err(malformed)?;
        self.server = ServerInfo {
            version: result.protocol_version,
            capabilities: result.capabilities,
            info: result.server_info,
            instructions: result.instructions,
        };
        let ready = super::wire::notification("notifications/initialized", None);
        let _ = self.link.peer.outgoing.send(ready).await;
        Ok(())
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
            "io.modelcontextprotocol/clientCapabilities": own_capabilities(),
        }));
        let result = self.request(&Call::own("server/discover", None), timeout).await?;
        let mut result: DiscoverResult = result.read().map_err(malformed)?;
        if !result.supported_versions.iter().any(|version| version == MODERN_VERSION) {
            let versions = result.supported_versions.join(", ");
            return Err(Fault::Malformed(format!("it speaks {versions} and not {MODERN_VERSION}")));
        }
        self.server = ServerInfo {
            version: MODERN_VERSION.to_owned(),
            capabilities: result.capabilities,
            info: result.meta.remove("io.modelcontextprotocol/serverInfo"),
            instructions: result.instructions,
        };
        Ok(())
    }

    /// All pages of a list.
    async fn list(&self, method: &str, key: &str, timeout: Duration) -> Result<Vec<Box<RawValue>>, Fault> {
        let mut all: Vec<Box<RawValue>> = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let params = cursor.as_ref().map(|cursor| Raw::of(&json!({ "cursor": cursor })));
            let page = self.request(&Call::own(method, params.as_ref()), timeout).await?;
            let members: super::wire::Members<'_> = page.read().map_err(malformed)?;
            let items = members.get(key).map(|items| serde_json::from_str::<Vec<Box<RawValue>>>(items.get()));
            all.extend(items.transpose().map_err(malformed)?.unwrap_or_default());
            let next = members.get("nextCursor").map(|next| serde_json::from_str::<Option<String>>(next.get()));
            match next.transpose().map_err(malformed)?.flatten() {
                None => return Ok(all),
                next if next == cursor => {
                    return Err(Fault::Malformed(format!("`{method}` gives the same cursor again and again")));
                }
                next => cursor = next,
            }
        }
        Err(Fault::Malformed(format!("`{method}` does not end after {MOST_PAGES} pages")))
    }
}

fn malformed(error: serde_json::Error) -> Fault {
    Fault::Malformed(error.to_string())
}

/// What upstreams may ask of the gateway; it passes the question on to the client that it serves.
fn own_capabilities() -> Value {
    json!({"roots": {}, "sampling": {}, "elicitation": {}})
}

/// Who the gateway says it is.
pub(super) fn own_info() -> Value {
    json!({"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")})
}
