//! An upstream that is reached over HTTP.
//!
//! In the streamable form every request is a POST of its own and its answer is the body of the response, as JSON or as
//! server-sent events; the older form takes requests by POST and answers all of them on one stream. One client with
//! kept connections serves an upstream for as long as the gateway runs: a connection a call costs more than the call.
//!
//! Answers are read as bytes and never as a model. Addresses are not shown: they may hold secrets.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::breaker::Ends;
use super::call::Call;
use super::fault::Fault;
use super::headers::Mirrored;
use super::mailbox::EventSender;
use super::peer::{Peer, Queued, Ticket, parsed};
use super::sse::EventReader;
use crate::common::error::presentable_with;
use crate::common::masks::Masks;
use crate::common::program;
use crate::common::sync::lock;
use crate::protocol::headers::{EVENTS, JSON, LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};
use crate::protocol::message::{Message, Raw, RpcError};
use crate::protocol::versions::MODERN_VERSION;
use contextweaver_core::text::unknown_host;

/// How long a connection may take to be made.
const CONNECTING: Duration = Duration::from_secs(10);

/// How long a connection is kept that nobody uses. Common servers close theirs after five seconds.
const IDLE: Duration = Duration::from_secs(4);

/// How long what belongs to no request may take: answers to the upstream's questions, and cancellations.
const ASIDE: Duration = Duration::from_secs(10);

/// How long the end of a session may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long the end of a response is waited for, so that its connection can be used again.
const DRAINING: Duration = Duration::from_secs(1);

/// The pause before a stream that ended is opened again, unless the server names one.
const REOPENING: Duration = Duration::from_secs(1);

/// The shortest and the longest of these pauses.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// Answers to the server's questions that are being sent, at most.
const MOST_ANSWERS: usize = 64;

/// What takes something back: so many of these messages are being sent, and wait to be, at most.
const MOST_REVOCATIONS: (usize, usize) = (8, 256);

/// The code of the error by which servers say that they do not know a session.
const UNKNOWN_SESSION: i64 = -32_001;

/// Bytes of the body of an error that are read.
const LONGEST_ERROR: usize = 64 * 1024;

/// Redirections that are followed, within the origin.
const MOST_REDIRECTIONS: usize = 4;

/// A client for one upstream.
///
/// # Errors
/// The system's certificates cannot be used.
pub(super) fn client() -> Result<Client, Fault> {
    let same_origin = reqwest::redirect::Policy::custom(|attempt| {
        let from = attempt.previous().last().map(Url::origin);
        // Headers with credentials must not go anywhere else.
        if from == Some(attempt.url().origin()) && attempt.previous().len() <= MOST_REDIRECTIONS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    let builder = builder().tcp_nodelay(true).connect_timeout(CONNECTING).pool_idle_timeout(IDLE).redirect(same_origin);
    builder.build().map_err(|error| Fault::Unavailable(format!("no HTTP client: {}", chain(error))))
}

/// A client for what is not an upstream: it is led nowhere else, and each request has `timeout` for its answer.
///
/// # Errors
/// The system's certificates cannot be used.
pub(crate) fn plain_client(timeout: Duration) -> Result<Client, String> {
    let builder = builder().timeout(timeout).redirect(reqwest::redirect::Policy::none());
    builder.build().map_err(|error| format!("no HTTP client: {}", chain(error)))
}

fn builder() -> reqwest::ClientBuilder {
    static PROVIDER: OnceLock<()> = OnceLock::new();
    PROVIDER.get_or_init(|| {
        // Another part of the program may have chosen one already; any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    // Another crate turns on HTTP/2, which nobody here has asked for or tried.
    Client::builder().http1_only().user_agent(format!("{}/{}", program::NAME, program::VERSION))
}

/// A connection over HTTP.
#[derive(Debug)]
pub(super) struct HttpLink {
    peer: Arc<Peer>,
    server: Arc<Server>,
    answers: Answers,
    /// The tasks beside the requests; they end with the connection.
    tasks: Mutex<JoinSet<()>>,
}

/// Where the answers to requests come.
#[derive(Debug, Clone, Copy)]
enum Answers {
    InResponse,
    OnStream,
}

/// What the headers say.
#[derive(Debug, Clone)]
enum Dialect {
    /// No stream was opened yet.
    Handshake,
    Legacy(HeaderValue),
    Modern,
}

/// The server at the other end.
#[derive(Debug)]
struct Server {
    client: Client,
    url: Url,
    headers: HeaderMap,
    dialect: Mutex<Dialect>,
    session: OnceLock<HeaderValue>,
    mirrored: Mutex<Arc<Mirrored>>,
    state: State,
    /// Bytes of a message, at most.
    limit: usize,
    /// What covers the values from the environment in what is said of it.
    masks: Masks,
}

#[derive(Debug, Default)]
struct State {
    closed: AtomicBool,
    session_lost: AtomicBool,
}

impl HttpLink {
    /// A connection to a server of streamable HTTP; nothing is sent yet.
    pub(super) fn open(
        (upstream, masks): (&Arc<str>, &Masks),
        client: Client,
        (url, headers): (&str, &BTreeMap<String, String>),
        limit: usize,
        events: EventSender,
    ) -> Result<Self, Fault> {
        let server = Server::new(client, parse_url(url)?, headers, (limit, masks))?;
        let (peer, queued) = Peer::new(Arc::clone(upstream), masks.clone(), events);
        Ok(Self::with(peer, queued, server, Answers::InResponse))
    }

    /// A connection to a server of the older HTTP: its stream is opened, and says where requests go.
    pub(super) async fn open_stream(
        (upstream, masks): (&Arc<str>, &Masks),
        client: Client,
        (url, headers): (&str, &BTreeMap<String, String>),
        limit: usize,
        events: EventSender,
    ) -> Result<Self, Fault> {
        let base = Server::new(client.clone(), parse_url(url)?, headers, (limit, masks))?;
        let mut stream = base.stream(base.get(None).await?);
        let endpoint = loop {
            match stream.next().await? {
                Some(Said::Endpoint(endpoint)) => break endpoint,
                Some(Said::Message(_)) => {}
                None => return Err(Fault::Malformed("its stream ended before it named an endpoint".to_owned())),
            }
        };
        let endpoint = base.url.join(&endpoint).map_err(|error| Fault::Malformed(format!("its endpoint: {error}")))?;
        if endpoint.origin() != base.url.origin() {
            return Err(Fault::Malformed("its endpoint is of another origin".to_owned()));
        }
        let server = Server { url: endpoint, ..base };
        let (peer, queued) = Peer::new(Arc::clone(upstream), masks.clone(), events);
        let link = Self::with(peer, queued, server, Answers::OnStream);
        let (peer, server) = (Arc::clone(&link.peer), Arc::clone(&link.server));
        lock(&link.tasks).spawn(async move {
            let reason = loop {
                match stream.next().await {
                    Ok(Some(Said::Message(message))) => peer.receive(message, None),
                    Ok(Some(Said::Endpoint(_))) => {}
                    Ok(None) => break "its stream has ended".to_owned(),
                    Err(fault) => break fault.covered(&server.masks).to_string(),
                }
            };
            server.state.closed.store(true, Ordering::Release);
            peer.lost(Fault::Unavailable(reason));
        });
        Ok(link)
    }

    fn with(peer: Arc<Peer>, queued: mpsc::Receiver<Queued>, server: Server, answers: Answers) -> Self {
        let mut tasks = JoinSet::new();
        let server = Arc::new(server);
        tasks.spawn(send_queued(Arc::clone(&server), queued));
        Self { peer, server, answers, tasks: Mutex::new(tasks) }
    }

    /// What is asked on it.
    pub(super) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// Whether requests may go on it.
    pub(super) fn is_alive(&self) -> bool {
        let State { closed, session_lost } = &self.server.state;
        !closed.load(Ordering::Acquire) && !session_lost.load(Ordering::Acquire)
    }

    /// Whether the server has forgotten the session.
    pub(super) fn has_lost_session(&self) -> bool {
        self.server.state.session_lost.load(Ordering::Acquire)
    }

    /// The handshake is over: the version goes with every request, and the server may speak unasked.
    pub(super) fn greeted(&self, version: &str) {
        *lock(&self.server.dialect) = HeaderValue::from_str(version).map_or(Dialect::Handshake, Dialect::Legacy);
        if matches!(self.answers, Answers::InResponse) {
            lock(&self.tasks).spawn(listen(Arc::clone(&self.server), Arc::clone(&self.peer)));
        }
    }

    /// Requests carry the headers of the stateless protocol from now on, or none of a protocol.
    pub(super) fn set_stateless(&self, stateless: bool) {
        *lock(&self.server.dialect) = if stateless { Dialect::Modern } else { Dialect::Handshake };
    }

    /// These are the server's tools.
    pub(super) fn learn(&self, tools: &[Box<RawValue>]) {
        if self.server.is_stateless() {
            *lock(&self.server.mirrored) = Arc::new(Mirrored::of(tools));
        }
    }

    /// Sends a notification; the server's reply is dropped.
    pub(super) async fn tell(&self, text: Bytes) -> Result<(), Fault> {
        self.server.post(text, None).await.map(drop)
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn exchange(&self, mut ticket: Ticket<'_>, text: Bytes, call: &Call<'_>) -> Result<Raw, Fault> {
        let answer = self.ask(&mut ticket, text, call).await;
        // A stream that broke off does not say that the server has.
        if !matches!(answer, Err(Fault::Unavailable(_))) {
            ticket.not_taken();
        }
        ticket.forget();
        answer
    }

    async fn ask(&self, ticket: &mut Ticket<'_>, text: Bytes, call: &Call<'_>) -> Result<Raw, Fault> {
        let posted = self.server.post(text, Some((call, ticket))).await;
        if matches!(self.answers, Answers::OnStream) {
            posted?;
            return ticket.answer().await;
        }
        let response = match posted {
            // The protocol tells clients to take these for the sign of a server of the older HTTP.
            Err(Fault::Status { status: status @ (404 | 405), .. }) if call.method == "initialize" => {
                return Err(Fault::NoHandshake(status));
            }
            posted => posted?,
        };
        if call.method == "initialize"
            && let Some(session) = response.headers().get(SESSION_ID)
        {
            let _ = self.server.session.set(session.clone());
        }
        match content_type(&response) {
            Some(JSON) => {
                let text = body(response, self.server.limit).await?;
                match parsed(text.clone()) {
                    Ok(message) => self.peer.receive(message, Some(ticket.id())),
                    Err(_) if self.peer.received_batch(&text, Some(ticket.id())) => {}
                    Err(error) => return Err(Fault::Malformed(error.to_string())),
                }
                let other = || Err(Fault::Malformed("its response is not to the request".to_owned()));
                ticket.answered().unwrap_or_else(other)
            }
            Some(EVENTS) => self.follow(ticket, self.server.stream(response)).await,
            kind => Err(Fault::Malformed(format!("its response is of type `{}`", kind.unwrap_or_default()))),
        }
    }

    /// Reads the stream that answers a request.
    async fn follow(&self, ticket: &mut Ticket<'_>, mut stream: Stream) -> Result<Raw, Fault> {
        loop {
            let end = loop {
                match stream.next().await {
                    Ok(Some(Said::Message(message))) => {
                        self.peer.receive(message, Some(ticket.id()));
                        if let Some(answer) = ticket.answered() {
                            stream.drain();
                            return answer;
                        }
                    }
                    Ok(Some(Said::Endpoint(_))) => {}
                    Ok(None) => break Fault::Unavailable("its stream ended before the answer".to_owned()),
                    Err(fault @ Fault::Unavailable(_)) => break fault,
                    Err(fault) => return Err(fault),
                }
            };
            // A server may end a stream early and go on where the client has left off.
            let Some(id) = stream.events.last_id.clone() else { return Err(end) };
            tokio::time::sleep(reopening(stream.events.retry, REOPENING)).await;
            // Whatever the reason is, the request itself was taken.
            let gone = |fault: Fault| Fault::Unavailable(format!("its stream cannot be resumed: {fault}"));
            stream.go_on(self.server.get(Some(&id)).await.map_err(gone)?);
        }
    }

    /// Ends the connection and its session.
    pub(super) async fn close(&self, reason: &str) {
        self.server.state.closed.store(true, Ordering::Release);
        self.peer.close(reason);
        lock(&self.tasks).abort_all();
        // One that the server is said to have lost may be there: it was said of one request.
        if self.server.session.get().is_some() {
            let farewell = self.server.dressed(Method::DELETE).send();
            let _ = tokio::time::timeout(FAREWELL, farewell).await;
        }
    }
}

impl Server {
    fn new(
        client: Client,
        url: Url,
        headers: &BTreeMap<String, String>,
        (limit, masks): (usize, &Masks),
    ) -> Result<Self, Fault> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            // The value is not shown: it may be a secret.
            let bad = || Fault::Unavailable(format!("the header `{name}` cannot be sent; check its name and value"));
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
            value.set_sensitive(true);
            map.insert(header, value);
        }
        Ok(Self {
            client,
            url,
            headers: map,
            dialect: Mutex::new(Dialect::Handshake),
            session: OnceLock::new(),
            mirrored: Mutex::default(),
            state: State::default(),
            limit,
            masks: masks.clone(),
        })
    }

    /// The events of a response of it.
    fn stream(&self, response: Response) -> Stream {
        Stream { response, events: EventReader::new(self.limit), masks: self.masks.clone() }
    }

    /// A request with the headers that all requests carry.
    fn dressed(&self, method: Method) -> RequestBuilder {
        let mut request = self.client.request(method, self.url.clone()).headers(self.headers.clone());
        if let Some(session) = self.session.get() {
            request = request.header(SESSION_ID, session);
        }
        match &*lock(&self.dialect) {
            Dialect::Handshake => request,
            Dialect::Legacy(version) => request.header(PROTOCOL_VERSION, version),
            Dialect::Modern => request.header(PROTOCOL_VERSION, MODERN_VERSION),
        }
    }

    /// Sends a message; `asked` is what it asks, when it asks something.
    async fn post(&self, text: Bytes, mut asked: Option<(&Call<'_>, &mut Ticket<'_>)>) -> Result<Response, Fault> {
        let mut request = self.dressed(Method::POST).header(CONTENT_TYPE, JSON);
        request = request.header(ACCEPT, "application/json, text/event-stream");
        if let (Some((call, _)), true) = (&asked, self.is_stateless()) {
            let mirrored = Arc::clone(&lock(&self.mirrored));
            request = request.headers(mirrored.headers(call));
        }
        let is_in_session = self.session.get().is_some();
        if let Some((_, ticket)) = &mut asked {
            ticket.sent();
        }
        let response = request.body(text).send().await.map_err(|error| {
            if let (Some((_, ticket)), true) = (&mut asked, error.is_connect()) {
                ticket.not_taken();
            }
            unreachable(error)
        })?;
        match asked {
            _ if response.status().is_success() => Ok(response),
            Some((_, ticket)) if is_in_session => Err(self.refusal_in_session(response, ticket.id()).await),
            None if is_in_session => Err(status_of(&response)),
            _ => Err(refusal(response).await),
        }
    }

    /// Why the server does not answer the request `id` in its session. The specification wants 404 of a server that
    /// does not know the session; widely used ones say 400.
    async fn refusal_in_session(&self, response: Response, id: u64) -> Fault {
        let (status, fault) = (response.status(), status_of(&response));
        if !matches!(status, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST) {
            return fault;
        }
        let reason = body(response, LONGEST_ERROR).await.unwrap_or_default();
        match serde_json::from_slice::<Refusal>(&reason).ok().filter(|refusal| refusal.is_to(id)) {
            Some(Refusal { error, .. }) if status == StatusCode::BAD_REQUEST || error.code != UNKNOWN_SESSION => {
                return Fault::Rpc(error);
            }
            _ => self.state.session_lost.store(true, Ordering::Release),
        }
        // What says only that the request is bad may have been said after a part of it was done.
        let names_session = || String::from_utf8_lossy(&reason).to_ascii_lowercase().contains("session");
        match status == StatusCode::NOT_FOUND || names_session() {
            true => Fault::UnknownSession(status.as_u16()),
            false => fault,
        }
    }

    /// Opens a stream, from the event called `last` on.
    async fn get(&self, last: Option<&str>) -> Result<Response, Fault> {
        let mut request = self.dressed(Method::GET).header(ACCEPT, EVENTS);
        if let Some(last) = last {
            request = request.header(LAST_EVENT_ID, last);
        }
        let response = request.send().await.map_err(unreachable)?;
        if !response.status().is_success() {
            return Err(status_of(&response));
        }
        match content_type(&response) {
            Some(EVENTS) => Ok(response),
            kind => Err(Fault::Malformed(format!("its stream is of type `{}`", kind.unwrap_or_default()))),
        }
    }

    fn is_stateless(&self) -> bool {
        matches!(*lock(&self.dialect), Dialect::Modern)
    }
}

/// An error of the protocol in the body of a refusal.
#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    id: Value,
    error: RpcError,
}

impl Refusal {
    /// Whether it answers our request with this number.
    fn is_to(&self, id: u64) -> bool {
        self.id.as_u64() == Some(id) || self.id.as_str().is_some_and(|text| text.parse() == Ok(id))
    }
}

/// The status of a response that is not a success.
fn status_of(response: &Response) -> Fault {
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    Fault::Status { status: response.status().as_u16(), retry_after }
}

/// Why the server did not take a message: its error, or its status.
async fn refusal(response: Response) -> Fault {
    let (status, fault) = (response.status(), status_of(&response));
    if !matches!(status, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST) {
        return fault;
    }
    let reason = body(response, LONGEST_ERROR).await.ok();
    let refusal = reason.and_then(|text| serde_json::from_slice::<Refusal>(&text).ok());
    refusal.map_or(fault, |refusal| Fault::Rpc(refusal.error))
}

/// Sends what belongs to no request: answers, which the server waits for, and apart from them what takes something
/// back.
async fn send_queued(server: Arc<Server>, mut queued: mpsc::Receiver<Queued>) {
    let (answers, waiting_answers) = mpsc::channel(MOST_ANSWERS);
    let (revocations, waiting_revocations) = mpsc::channel(MOST_REVOCATIONS.1);
    let sort = async move {
        while let Some(message) = queued.recv().await {
            if message.may_be_lost() {
                let _ = revocations.try_send(message);
            } else if answers.send(message).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(
        sort,
        send_each(&server, waiting_answers, MOST_ANSWERS),
        send_each(&server, waiting_revocations, MOST_REVOCATIONS.0)
    );
}

/// Sends messages, so many at a time: none waits for the server to accept another.
async fn send_each(server: &Arc<Server>, mut messages: mpsc::Receiver<Queued>, at_a_time: usize) {
    let mut sending = JoinSet::new();
    while let Some(message) = messages.recv().await {
        // The stateless protocol has requests alone; they are taken back by the end of their stream.
        if server.is_stateless() {
            continue;
        }
        while sending.try_join_next().is_some() {}
        if sending.len() >= at_a_time {
            sending.join_next().await;
        }
        let server = Arc::clone(server);
        sending.spawn(async move {
            match tokio::time::timeout(ASIDE, server.post(message.text().clone(), None)).await {
                Ok(Ok(_)) => {}
                Ok(Err(fault)) => {
                    let fault = fault.covered(&server.masks);
                    tracing::debug!(%fault, "the server did not accept a message");
                }
                Err(_) => tracing::debug!("the server did not accept a message in time"),
            }
        });
    }
    sending.join_all().await;
}

/// Hears what the server says unasked. Servers need not offer it.
async fn listen(server: Arc<Server>, peer: Arc<Peer>) {
    let mut last: Option<String> = None;
    let (mut ends, mut was_open) = (Ends::default(), false);
    loop {
        let (began, mut wanted) = (Instant::now(), None);
        match server.get(last.as_deref()).await {
            Ok(response) => {
                // A server that numbers what it says repeats what was missed. Another told it to nobody.
                if std::mem::replace(&mut was_open, true) && last.is_none() {
                    peer.may_have_missed();
                }
                let mut stream = server.stream(response);
                while let Ok(Some(said)) = stream.next().await {
                    ends = Ends::default();
                    if let Said::Message(message) = said {
                        peer.receive(message, None);
                    }
                }
                last = stream.events.last_id.clone().or(last);
                wanted = stream.events.retry;
            }
            Err(Fault::Unavailable(_) | Fault::Timeout(_)) => {}
            Err(Fault::Status { status, .. }) if status >= 500 => {}
            Err(fault) => {
                let fault = fault.covered(&server.masks);
                return tracing::debug!(upstream = %peer.upstream(), %fault, "it sends no notifications");
            }
        }
        tokio::time::sleep(reopening(wanted, ends.pause(began.elapsed()))).await;
    }
}

/// The pause before a stream is opened again: what the server wanted, within bounds, else `otherwise`.
fn reopening(wanted: Option<Duration>, otherwise: Duration) -> Duration {
    wanted.unwrap_or(otherwise).clamp(PAUSES.0, PAUSES.1)
}

/// What a stream brings.
enum Said {
    Message(Message),
    /// Where requests go, in the older HTTP.
    Endpoint(String),
}

/// The events of a response.
struct Stream {
    response: Response,
    events: EventReader,
    masks: Masks,
}

impl Stream {
    /// The same stream, in another response.
    fn go_on(&mut self, response: Response) {
        self.response = response;
        self.events.restart();
    }

    /// What comes next; `None` at its end.
    async fn next(&mut self) -> Result<Option<Said>, Fault> {
        loop {
            while let Some(event) = self.events.next() {
                let limit = self.events.limit();
                let event = event.map_err(|_| Fault::Malformed(format!("an event is over the limit of {limit}")))?;
                match event.kind.as_str() {
                    "" | "message" if event.data.iter().all(u8::is_ascii_whitespace) => {}
                    "" | "message" => match parsed(event.data) {
                        Ok(message) => return Ok(Some(Said::Message(message))),
                        Err(error) => {
                            let shown = || presentable_with(&error.to_string(), &self.masks);
                            tracing::debug!(error = shown(), "skipped an event that is not a message");
                        }
                    },
                    "endpoint" => return Ok(Some(Said::Endpoint(String::from_utf8_lossy(&event.data).into_owned()))),
                    _ => {}
                }
            }
            match self.response.chunk().await.map_err(unreachable)? {
                Some(chunk) => self.events.push(&chunk),
                None => return Ok(None),
            }
        }
    }

    /// Waits for the end beside the next request, which may then use the same connection.
    fn drain(mut self) {
        tokio::spawn(tokio::time::timeout(
            DRAINING,
            async move { while let Ok(Some(_)) = self.response.chunk().await {} },
        ));
    }
}

/// The body of a response of at most `limit` bytes.
async fn body(response: Response, limit: usize) -> Result<Bytes, Fault> {
    let body = body_within(response, limit).await.map_err(unreachable)?;
    body.ok_or_else(|| Fault::Malformed(format!("its response is over the limit of {limit} bytes")))
}

/// The body of a response; `None` where it has more than `limit` bytes, of which no more are read then.
///
/// # Errors
/// It breaks off.
pub(crate) async fn body_within(mut response: Response, limit: usize) -> Result<Option<Bytes>, reqwest::Error> {
    let announced = usize::try_from(response.content_length().unwrap_or(0)).unwrap_or(usize::MAX);
    if announced > limit {
        return Ok(None);
    }
    let mut body = BytesMut::with_capacity(announced);
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > limit {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body.freeze()))
}

/// The media type of a response, when it is one of the two that the protocol knows.
fn content_type(response: &Response) -> Option<&'static str> {
    let written = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let media = written.split(';').next().unwrap_or_default().trim();
    [JSON, EVENTS].into_iter().find(|known| media.eq_ignore_ascii_case(known))
}

fn parse_url(url: &str) -> Result<Url, Fault> {
    Url::parse(url).map_err(|error| Fault::Unavailable(format!("its `url` is not a URL: {error}")))
}

fn unreachable(error: reqwest::Error) -> Fault {
    Fault::Unavailable(chain(error))
}

/// An error and what it came of, without the address.
fn chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    if let Some(unknown) = unknown_host(&error) {
        return unknown;
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
