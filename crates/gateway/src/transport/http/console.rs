//! The console: one page for the operator of a running gateway, at an address of its own.
//!
//! | request | answer |
//! |---|---|
//! | `GET /`, `/console.css`, `/console.js` | the page; it holds nothing of the gateway |
//! | `GET /api/events` | with the token: a stream of what there is and of every call |
//! | `GET /api/state` | with the token: what there is now |
//! | `GET /healthz`, `GET /livez`, `GET /metrics` | as where MCP is served over HTTP |
//! | `POST /api/approvals/ID` | with the token: `{"approve": true}` answers a call that waits; 409 where it was answered before, 410 where it does not wait any more, 404 where there never was one |
//!
//! The token stands behind the `#` of the address that is printed, which no browser sends; the page sends it as a bearer
//! token. Nothing from outside is part of the page: it comes as JSON, and is only ever set as text.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{broadcast, mpsc, watch};

use super::admission::{Settings, check_content_type};
use super::listener::{Endpoint, HttpError, Listener, not_allowed, read};
use super::probes::{self, HEALTH, METRICS};
use super::reply::{End, Refused, Reply, events, whole};
use crate::common::sync::lock;
use crate::config::http::{HostRule, HttpConfig, OriginRule, Token, TokenHolder};
use crate::guard::desk::{Answered, Case, Ending};
use crate::protocol::headers::JSON;
use crate::server::live::Live;
use crate::server::overview::Slow;
use crate::session::identity::Identity;
use crate::telemetry::activity::SeenCall;
use contextweaver_core::text::hex;

/// The page, its style and its program.
const PAGE: &str = include_str!("console/page.html");
const STYLE: &str = include_str!("console/console.css");
const PROGRAM: &str = include_str!("console/console.js");

/// What the page may do: load these files and speak to the address that it comes from.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What is said of a call that cannot be answered.
const APPROVED_BEFORE: &str = "it was approved before";
const DECLINED_BEFORE: &str = "it was declined before";
const GONE: &str = "it is no longer waiting: its client answered or disconnected, or the time ran out";
const UNKNOWN: &str = "no call with that number has been waiting";

/// Messages that wait for a page, at most; what comes meanwhile is skipped.
const QUEUE: usize = 16;

/// Connections from one address.
const MOST_CONNECTIONS: usize = 32;

/// How often it is looked whether something changed.
const LOOK: Duration = Duration::from_millis(1_000);

/// How often what was spared is noted, and how often at most.
const NOTE: Duration = Duration::from_secs(10);
const MOST_NOTES: usize = 720;

/// Where the console is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsoleConfig {
    /// The address to listen at.
    pub listen: SocketAddr,
    /// Whether it may be an address that other machines reach.
    pub remote: bool,
}

/// The console cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// Other machines could reach it.
    #[error("`{0}` can be reached from other machines; use 127.0.0.1, or pass `--console-remote` if that is intended")]
    Exposed(SocketAddr),
    /// There is no token.
    #[error("the system provides no randomness for a token")]
    NoToken,
    /// The address cannot be listened at.
    #[error(transparent)]
    Listen(#[from] HttpError),
}

/// A console that listens.
#[derive(Debug)]
pub struct ConsoleServer {
    listener: Listener,
    shared: Arc<Shared>,
    token: String,
}

#[derive(Debug)]
struct Shared {
    live: Live,
    config: Arc<HttpConfig>,
    /// What there is now, as JSON; empty until somebody looked.
    state: watch::Sender<Arc<str>>,
    looking: tokio::sync::Mutex<Looking>,
    history: Mutex<Vec<(u64, u64, u64)>>,
    start: Instant,
    closing: watch::Receiver<()>,
}

#[derive(Debug, Default)]
struct Looking {
    slow: Arc<Mutex<Slow>>,
    last: Option<Instant>,
    /// The cases that waited then: who answers one wants to see that at once.
    cases: Vec<Case>,
}

impl ConsoleServer {
    /// Whether [`Self::bind`] would refuse the address, which is known before any upstream starts.
    ///
    /// # Errors
    /// [`ConsoleError::Exposed`].
    pub fn check(config: &ConsoleConfig) -> Result<(), ConsoleError> {
        if !config.remote && !config.listen.ip().is_loopback() {
            return Err(ConsoleError::Exposed(config.listen));
        }
        Ok(())
    }

    /// Listens, and serves nobody yet. From now on calls are kept to be shown, and approvals can be answered there.
    ///
    /// # Errors
    /// [`ConsoleError`].
    pub async fn bind(live: impl Into<Live>, config: ConsoleConfig) -> Result<Self, ConsoleError> {
        Self::check(&config)?;
        let mut random = [0; 24];
        getrandom::fill(&mut random).map_err(|_| ConsoleError::NoToken)?;
        let token = hex(&random);
        let holder = TokenHolder::anyone(Token::new(&token).map_err(|_| ConsoleError::NoToken)?);
        let mut http = HttpConfig {
            listen: config.listen,
            tokens: vec![holder],
            max_connections_per_address: MOST_CONNECTIONS,
            body_limit: 4 * 1024,
            shutdown: Duration::from_millis(500),
            ..HttpConfig::default()
        };
        if config.remote {
            // Whoever leads a browser here by another name does not have the token, which no browser sends by itself.
            (http.allowed_hosts, http.allowed_origins) = (vec![HostRule::Any], vec![OriginRule::Any]);
        }
        let listener = Listener::bind(http, Settings::Gateway).await?;
        let live = live.into();
        // Both outlive a change of the configuration.
        let gateway = live.now();
        gateway.telemetry().activity.watch();
        gateway.desk().open();
        let shared = Shared {
            live,
            config: Arc::clone(&listener.doors().now().config),
            state: watch::channel(Arc::from("")).0,
            looking: tokio::sync::Mutex::default(),
            history: Mutex::default(),
            start: Instant::now(),
            closing: listener.closing(),
        };
        Ok(Self { listener, shared: Arc::new(shared), token })
    }

    /// The address of the page, with the token.
    ///
    /// # Errors
    /// The system does not say where it listens.
    pub fn url(&self) -> std::io::Result<String> {
        Ok(format!("http://{}/#token={}", self.listener.address()?, self.token))
    }

    /// What a request to the console presents as a bearer token.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Whether `text` is what a console says of a call that cannot be answered: another server at its address, such as a proxy
    /// whose page is missing, says something else.
    #[must_use]
    pub fn says_of_a_call(text: &str) -> bool {
        [APPROVED_BEFORE, DECLINED_BEFORE, GONE, UNKNOWN].contains(&text.trim_end())
    }

    /// Serves until `shutdown` ends.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let shared = Arc::clone(&self.shared);
        let noting = async {
            loop {
                shared.note();
                tokio::time::sleep(NOTE).await;
            }
        };
        tokio::select! {
            () = noting => {}
            () = self.listener.serve(Arc::clone(&self.shared), shutdown) => {}
        }
        self.shared.live.now().desk().close();
    }
}

impl Endpoint for Shared {
    async fn answer(
        self: Arc<Self>,
        client: Result<Arc<Identity>, Refused>,
        head: Parts,
        body: &mut Incoming,
    ) -> Result<Response<Reply>, Refused> {
        let mut response = self.answered(client, &head, body).await.unwrap_or_else(Refused::into_response);
        let headers = response.headers_mut();
        for (name, value) in [
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (X_FRAME_OPTIONS, "DENY"),
            (REFERRER_POLICY, "no-referrer"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
            (CACHE_CONTROL, "no-store"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        Ok(response)
    }
}

impl Shared {
    async fn answered(
        self: &Arc<Self>,
        client: Result<Arc<Identity>, Refused>,
        head: &Parts,
        body: &mut Incoming,
    ) -> Result<Response<Reply>, Refused> {
        let file = |media_type, text: &'static str| Ok(whole(StatusCode::OK, media_type, text));
        match (head.uri.path(), &head.method) {
            ("/", &Method::GET) => file("text/html; charset=utf-8", PAGE),
            ("/console.css", &Method::GET) => file("text/css; charset=utf-8", STYLE),
            ("/console.js", &Method::GET) => file("text/javascript; charset=utf-8", PROGRAM),
            ("/api/state", &Method::GET) => {
                client?;
                let state = self.look().await;
                Ok(whole(StatusCode::OK, JSON, state.to_string()))
            }
            ("/api/events", &Method::GET) => {
                client?;
                let (out, messages) = mpsc::channel(QUEUE);
                tokio::spawn(feed(Arc::clone(self), out));
                Ok(events(None, messages, End::Feed))
            }
            (HEALTH | METRICS, _) => probes::answer(&self.live, client, head),
            ("/" | "/console.css" | "/console.js" | "/api/state" | "/api/events", _) => Ok(not_allowed("GET")),
            (path, method) => {
                let id = path.strip_prefix("/api/approvals/").and_then(|id| id.parse::<u64>().ok());
                let Some(id) = id else {
                    return Err(Refused::text(StatusCode::NOT_FOUND, "there is nothing here; the page is /"));
                };
                if *method != Method::POST {
                    return Ok(not_allowed("POST"));
                }
                client?;
                self.approve(id, head, body).await
            }
        }
    }

    async fn approve(&self, id: u64, head: &Parts, body: &mut Incoming) -> Result<Response<Reply>, Refused> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Answer {
            approve: bool,
        }
        check_content_type(&head.headers)?;
        let body = read(body, self.config.body_limit, self.config.read_timeout).await?;
        let answer: Answer = serde_json::from_slice(&body).map_err(|error| {
            Refused::text(StatusCode::BAD_REQUEST, format!("{error}; send {{\"approve\": true}} or false"))
        })?;
        match self.live.now().desk().answer(id, answer.approve) {
            Answered::Now => {}
            Answered::TooLate(Ending::Approved) => {
                return Err(Refused::text(StatusCode::CONFLICT, APPROVED_BEFORE));
            }
            Answered::TooLate(Ending::Declined) => {
                return Err(Refused::text(StatusCode::CONFLICT, DECLINED_BEFORE));
            }
            Answered::TooLate(Ending::Gone) => {
                return Err(Refused::text(StatusCode::GONE, GONE));
            }
            Answered::Unknown => {
                return Err(Refused::text(StatusCode::NOT_FOUND, UNKNOWN));
            }
        }
        tracing::info!(id, approve = answer.approve, "the operator answered");
        Ok(whole(StatusCode::OK, JSON, json!({"approve": answer.approve}).to_string()))
    }

    /// Notes what was spared so far.
    fn note(&self) {
        let Some(savings) = self.live.now().savings() else { return };
        let mut history = lock(&self.history);
        if history.len() == MOST_NOTES {
            // Twice as far apart from now on: the beginning stays.
            let mut at = 0;
            history.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
        history.push((self.start.elapsed().as_secs(), savings.without(), savings.with()));
    }

    /// What there is now; looked up again when that is a while ago.
    async fn look(&self) -> Arc<str> {
        let mut looking = self.looking.lock().await;
        let is_old = looking.last.is_none_or(|last| last.elapsed() >= LOOK / 2);
        if is_old || looking.cases != self.live.now().desk().cases() {
            let (slow, gateway) = (Arc::clone(&looking.slow), self.live.now());
            let found = tokio::task::spawn_blocking(move || {
                let mut slow = lock(&slow);
                slow.look(&gateway);
                gateway.overview(&slow)
            });
            if let Ok(mut overview) = found.await {
                overview.history = lock(&self.history).clone();
                if let Some(savings) = self.live.now().savings() {
                    let sums = (savings.without(), savings.with());
                    // Where nothing was called since, nothing is new on the page.
                    if overview.history.last().is_none_or(|(_, without, with)| (*without, *with) != sums) {
                        overview.history.push((self.start.elapsed().as_secs(), sums.0, sums.1));
                    }
                }
                let text = serde_json::to_string(&overview).unwrap_or_default();
                // Those that the page is told of: cases come and go while it is looked up.
                looking.cases = overview.approvals;
                self.state.send_if_modified(|state| {
                    let changed = **state != *text;
                    if changed {
                        *state = Arc::from(text);
                    }
                    changed
                });
            }
            looking.last = Some(Instant::now());
        }
        Arc::clone(&self.state.borrow())
    }
}

/// Sends a page what there is whenever it changes, and every call. A page that does not keep up skips calls.
async fn feed(shared: Arc<Shared>, out: mpsc::Sender<Bytes>) {
    let (last, mut calls) = shared.live.now().telemetry().activity.follow();
    let mut closing = shared.closing.clone();
    let mut shown: Arc<str> = Arc::from("");
    let mut tick = tokio::time::interval(LOOK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut waiting = last;
    let mut missed = 0;
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            call = calls.recv() => match call {
                Ok(call) => {
                    waiting.push(call);
                    loop {
                        match calls.try_recv() {
                            Ok(call) => waiting.push(call),
                            Err(broadcast::error::TryRecvError::Lagged(count)) => missed += count,
                            Err(_) => break,
                        }
                    }
                }
                Err(broadcast::error::RecvError::Lagged(count)) => missed += count,
                Err(broadcast::error::RecvError::Closed) => return,
            },
            _ = closing.changed() => return,
            () = out.closed() => return,
        }
        if missed > 0 && out.try_send(text(&json!({"type": "missed", "count": missed}))).is_ok() {
            missed = 0;
        }
        if !waiting.is_empty() {
            #[derive(Serialize)]
            struct Calls<'c> {
                r#type: &'static str,
                calls: Vec<&'c SeenCall>,
            }
            let message = text(&Calls { r#type: "calls", calls: waiting.iter().map(|call| &**call).collect() });
            match out.try_send(message) {
                Ok(()) => waiting.clear(),
                // What it has not read by then is skipped.
                Err(_) if waiting.len() > 200 => missed += waiting.drain(..).count() as u64,
                Err(_) => {}
            }
        }
        let now = shared.look().await;
        if now != shown && out.try_send(Bytes::from(format!("{{\"type\":\"state\",\"state\":{now}}}"))).is_ok() {
            shown = now;
        }
    }
}

fn text(message: &impl Serialize) -> Bytes {
    Bytes::from(serde_json::to_string(message).unwrap_or_default())
}

#[cfg(test)]
mod tests;
