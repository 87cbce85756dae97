//! MCP over HTTP: many clients of both eras at one endpoint.
//!
//! | request | handshake era | stateless protocol |
//! |---|---|---|
//! | `POST /mcp` | in the session of `Mcp-Session-Id`, which `initialize` opens | by itself; the headers repeat the body |
//! | `GET /mcp` | the stream of notifications | 405: `subscriptions/listen` is its stream |
//! | `DELETE /mcp` | ends the session | 405 |
//! | `GET /healthz`, `GET /metrics` | for operators | the same |
//!
//! A `POST` is answered with JSON, or with a stream when a notification or a question of an upstream comes before the
//! answer, or when the answer takes long. The stream of notifications can be taken up again with `Last-Event-ID`, at any
//! replica: the client is told what has changed since. So can the stream of a `POST` in a session ([`streams`](super::streams)).
//! Nothing on the way of a call is typed: a body is read once, and its parts are what goes to the upstream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response, StatusCode};
use serde_json::json;
use tokio::sync::{mpsc, watch};

use super::admission::{Settings, check_accept, check_content_type};
use super::headers::{self, single, trace_of};
use super::listener::{Door, Doors, Endpoint, HttpError, Listener, SWEEP, check_exposure, not_allowed, read};
use super::load::{Load, Taken};
use super::probes::{self, HEALTH, METRICS};
use super::replicas::{self, Known};
use super::reply::{End, Leave, Mark, Refused, Reply, Work, empty, events, following, nothing, whole};
use super::sessions::{NoSession, Sessions, Visit};
use super::streams::{Position, QUEUE};
use crate::common::work::{LONG_MESSAGE, in_turn, work_of};
use crate::config::http::HttpConfig;
use crate::guard::state::SessionBounds;
use crate::protocol::headers::{EVENTS, JSON, LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};
use crate::protocol::message::{
    self, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, Message, Outcome, Raw, RpcError, WireError,
};
use crate::protocol::stateless::{self, HEADER_MISMATCH, MISSING_CAPABILITY, RequestMeta, UNSUPPORTED_VERSION};
use crate::protocol::transport::Transport;
use crate::protocol::versions::{LEGACY_VERSIONS, MODERN_VERSION};
use crate::server::live::Live;
use crate::server::requests::{Asked, serve_request};
use crate::session::client::{Caller, Session};
use crate::session::identity::{Identity, Presented};
use crate::surface::mode::Mode;

/// The path of the endpoint.
const ENDPOINT: &str = "/mcp";

/// The version since which clients take an event that has an id and nothing else.
const PRIMED_VERSION: &str = "2025-11-25";

/// How often sessions are swept at most, however short they may rest.
const LEAST_SWEEP: Duration = Duration::from_millis(100);

/// The code of the error under which an unknown session is refused; the status says it.
const SESSION_NOT_FOUND: i64 = -32_001;

/// A gateway that listens.
#[derive(Debug)]
pub struct HttpServer {
    listener: Listener,
    shared: Arc<Shared>,
}

/// What every request uses.
#[derive(Debug)]
struct Shared {
    live: Live,
    doors: Doors,
    sessions: Sessions,
    /// What the requests that are being served take up.
    load: Load,
    /// Changes when the server ends.
    closing: watch::Receiver<()>,
    /// Whether sessions in use are being told to the other replicas.
    is_touching: AtomicBool,
}

impl HttpServer {
    /// Whether [`Self::bind`] would refuse the configuration for its address, which is known before any upstream starts.
    ///
    /// # Errors
    /// [`HttpError::Exposed`].
    pub fn check(config: &HttpConfig) -> Result<(), HttpError> {
        check_exposure(config, Settings::Gateway)
    }

    /// Listens, and serves nobody yet.
    ///
    /// # Errors
    /// The address cannot be listened at, or must not without a token.
    pub async fn bind(gateway: impl Into<Live>, config: HttpConfig) -> Result<Self, HttpError> {
        let listener = Listener::bind(config, Settings::Gateway).await?;
        let doors = listener.doors().clone();
        let config = Arc::clone(&doors.now().config);
        let sessions = Sessions::new(limits(&config), Instant::now);
        let load = Load::new(&config);
        let (live, closing) = (gateway.into(), listener.closing());
        let is_touching = AtomicBool::new(false);
        let shared = Shared { live, doors, sessions, load, closing, is_touching };
        Ok(Self { listener, shared: Arc::new(shared) })
    }

    /// The address that it listens at.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.address()
    }

    /// What changes how it serves while it does.
    #[must_use]
    pub fn control(&self) -> HttpControl {
        HttpControl(Arc::clone(&self.shared))
    }

    /// Serves until `shutdown` ends; then streams are closed, and requests have a while to finish.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        self.listener.serve(self.shared, shutdown).await;
    }
}

fn limits(config: &HttpConfig) -> SessionBounds {
    let most_of_one = config.sessions_of_one();
    SessionBounds { idle: config.session_idle, most: config.max_sessions, most_of_one }
}

/// Changes how a server serves, without ending a connection: who is let in, by which certificates, within which bounds.
#[derive(Debug, Clone)]
pub struct HttpControl(Arc<Shared>);

/// A configuration that can be put in force.
#[derive(Debug)]
pub struct Prepared(Door);

impl HttpControl {
    /// Checks that a configuration can be put in force. The address that is listened at stays.
    ///
    /// # Errors
    /// The address must not be listened at without a token.
    pub fn prepare(&self, config: HttpConfig) -> Result<Prepared, HttpError> {
        self.0.doors.next(config).map(Prepared)
    }

    /// Puts it in force. Streams end whose callers are not let in any more; other connections stay.
    pub fn put(&self, prepared: Prepared) {
        let config = Arc::clone(&prepared.0.config);
        self.0.doors.put(prepared.0);
        self.0.sessions.limit(limits(&config));
        self.0.load.limit(&config);
    }
}

impl Endpoint for Shared {
    async fn answer(
        self: Arc<Self>,
        client: Result<Arc<Identity>, Refused>,
        head: Parts,
        body: &mut Incoming,
    ) -> Result<Response<Reply>, Refused> {
        dispatch(&self, client, head, body).await
    }

    fn sweep(self: &Arc<Self>) {
        self.sessions.sweep();
        self.live.now().sweep_watched();
        if self.live.now().state().sessions().is_none() {
            return;
        }
        // What is in use here must not expire elsewhere.
        let (shared, visits) = (Arc::clone(self), self.sessions.in_use());
        if visits.is_empty() {
            return;
        }
        // One pass at a time, however long the server of the state takes.
        if shared.is_touching.swap(true, Ordering::AcqRel) {
            return;
        }
        tokio::spawn(async move {
            let state = Arc::clone(shared.live.now().state());
            for ended in replicas::touch(&state, visits, shared.sessions.limits()).await {
                shared.sessions.close(ended.id());
            }
            shared.is_touching.store(false, Ordering::Release);
        });
    }

    fn sweeps_every(&self) -> Duration {
        sweep_of(self.sessions.limits().idle)
    }

    fn close(&self) {
        self.sessions.close_streams();
    }
}

/// How often sessions are swept that may rest so long: where replicas share them, those in use must be told of in time.
fn sweep_of(idle: Duration) -> Duration {
    (idle / 3).clamp(LEAST_SWEEP, SWEEP)
}

async fn dispatch(
    shared: &Arc<Shared>,
    authorized: Result<Arc<Identity>, Refused>,
    head: Parts,
    body: &mut Incoming,
) -> Result<Response<Reply>, Refused> {
    match (head.uri.path(), &head.method) {
        (ENDPOINT, method) => {
            let client = authorized?;
            match *method {
                Method::POST => post(shared, &client, &head, body).await,
                Method::GET => listen(shared, &client, &head).await,
                Method::DELETE => end_session(shared, &client, &head).await,
                _ => Ok(not_allowed("GET, POST, DELETE")),
            }
        }
        (HEALTH | METRICS, _) => probes::answer(&shared.live, authorized, &head),
        _ => Err(Refused::text(StatusCode::NOT_FOUND, format!("there is nothing here; the endpoint is {ENDPOINT}"))),
    }
}

async fn post(
    shared: &Arc<Shared>,
    client: &Arc<Identity>,
    head: &Parts,
    body: &mut Incoming,
) -> Result<Response<Reply>, Refused> {
    check_accept(&head.headers, &[JSON, EVENTS])?;
    check_content_type(&head.headers)?;
    let config = Arc::clone(&shared.doors.now().config);
    let mut place = shared.load.take(&client.name, body, config.body_limit)?;
    let text = read(body, config.body_limit, config.read_timeout).await?;
    place.shrink(text.len());
    let refused = |error: RpcError| Refused::rpc(StatusCode::BAD_REQUEST, None, error);
    let of_text = |error: WireError| Refused::rpc(StatusCode::BAD_REQUEST, error.id().cloned(), error.to_rpc());
    match parsed(shared, client, text).await?.map_err(of_text)? {
        Message::Request { id, method, params } => {
            let asking = Asking { id, method, params };
            match asking.is_modern(&head.headers) {
                true => stateless(shared, client, head, (asking, place)).await,
                false => in_session(shared, client, head, (asking, place)).await,
            }
        }
        Message::Notification { method, params } => {
            match single(&head.headers, &PROTOCOL_VERSION).map_err(refused)? {
                // Closing a response is the only thing left to tell a server unasked, and there is no session to
                // tell it in.
                Some(MODERN_VERSION) => {
                    headers::check(&head.headers, None, &method, params.as_ref()).map_err(refused)?;
                }
                _ => {
                    let visited = visit(shared, client, &head.headers).await?;
                    shared.live.now().take(&visited, &method, params.as_ref());
                }
            }
            Ok(empty(StatusCode::ACCEPTED))
        }
        Message::Response { id, outcome } => {
            let visited = visit(shared, client, &head.headers).await?;
            let unavailable = |error| Refused::rpc(StatusCode::SERVICE_UNAVAILABLE, None, error);
            replicas::answered(shared.live.now().state(), &visited, &id, outcome).await.map_err(unavailable)?;
            Ok(empty(StatusCode::ACCEPTED))
        }
    }
}

/// The message that a text is. A long one is read in the turns of its caller, as all of its long work is; what request it is is
/// not known before, so that this has a budget of its own.
async fn parsed(shared: &Shared, client: &Identity, text: Bytes) -> Result<Result<Message, WireError>, Refused> {
    if text.len() <= LONG_MESSAGE {
        return Ok(Message::parse_of_client(text));
    }
    let (tenant, budget) = (client.tenant(), shared.live.now().config().work);
    let read = Box::pin(work_of(&tenant, budget, in_turn(|| Message::parse_of_client(text))));
    read.await
        .map_err(|exhausted| Refused::text(StatusCode::SERVICE_UNAVAILABLE, format!("reading the request {exhausted}")))
}

/// A request, taken apart.
struct Asking {
    id: Raw,
    method: String,
    params: Option<Raw>,
}

impl Asking {
    /// Whether it belongs to the stateless protocol. A client that shakes hands may name a newer version in the header.
    fn is_modern(&self, headers: &HeaderMap) -> bool {
        let in_body = || RequestMeta::read(self.params.as_ref()).version.is_some();
        match self.method.as_str() {
            "initialize" => in_body(),
            "server/discover" => true,
            _ => is_stateless(headers) || in_body(),
        }
    }

    /// Serves it; what is `used` is held meanwhile. `unkept` is set where its answer is that the session could not be kept for
    /// the other replicas.
    fn work<U: Send + 'static>(
        self,
        shared: &Arc<Shared>,
        caller: Caller,
        leave: Leave,
        (used, unkept): (U, Arc<AtomicBool>),
    ) -> Work {
        // At once: the next message may take it back.
        let running = caller.session().begin(&self.id);
        // A stream of changes keeps nothing of the gateway where it began.
        let state = (!caller.is_modern()).then(|| Arc::clone(shared.live.now().state()));
        let (shared, mut closing) = (Arc::clone(shared), shared.closing.clone());
        Work::new(leave, async move {
            let _used = used;
            let asked = Asked { id: &self.id, method: &self.method, params: self.params.as_ref() };
            let closing = async {
                let _ = closing.changed().await;
            };
            let outcome = serve_request(&shared.live, &caller, (&asked, running), closing).await;
            let Some(state) = state else { return outcome };
            let (limits, asked) = (shared.sessions.limits(), (asked.method, asked.params));
            match replicas::keep(&state, caller.session(), asked, limits, outcome.as_ref()).await {
                Ok(()) => outcome,
                Err(error) => {
                    unkept.store(true, Ordering::Release);
                    Some(Err(error))
                }
            }
        })
    }
}

/// Serves a request of the stateless protocol.
async fn stateless(
    shared: &Arc<Shared>,
    identity: &Arc<Identity>,
    head: &Parts,
    (asking, place): (Asking, Taken),
) -> Result<Response<Reply>, Refused> {
    let headers = &head.headers;
    let meta = RequestMeta::read(asking.params.as_ref());
    let checked = headers::check(headers, meta.version.as_deref(), &asking.method, asking.params.as_ref());
    let checked = checked.and_then(|()| check_params(shared, headers, &asking));
    let client = checked.and_then(|()| meta.client()?.ok_or_else(stateless::meta_required));
    let client = client.map_err(|error| Refused::rpc(StatusCode::BAD_REQUEST, Some(asking.id.clone()), error))?;
    let (out, messages) = mpsc::channel(QUEUE);
    let id = asking.id.clone();
    let caller = Caller::new(Session::of("stateless", Arc::clone(identity)), client, out).over(Transport::Tcp);
    let caller = caller.within(trace_of(headers)).presenting(presented(head));
    // It has no session that could be kept.
    let work = asking.work(shared, caller, Leave::Cancel, (place, Arc::default()));
    Ok(match exchange(shared, work, messages).await {
        Exchanged::Answer(outcome) => whole(status(&outcome), JSON, message::response(Some(&id), &outcome)),
        Exchanged::Stream { first, messages, work } => events(first, messages, End::Answer(id, work)),
        Exchanged::TakenBack => nothing(),
    })
}

/// The token of an authorization server that a request came with.
fn presented(head: &Parts) -> Option<Arc<Presented>> {
    head.extensions.get().cloned()
}

/// Checks the headers that repeat arguments, where tools are listed as their servers define them.
fn check_params(shared: &Shared, headers: &HeaderMap, asking: &Asking) -> Result<(), RpcError> {
    if asking.method != "tools/call" {
        return Ok(());
    }
    let gateway = shared.live.now();
    if gateway.config().mode != Mode::Passthrough {
        return Ok(());
    }
    let view = gateway.catalog();
    let by_tool = view.param_headers();
    if by_tool.is_empty() {
        return Ok(());
    }
    let params = asking.params.as_ref();
    let wanted = stateless::named(&asking.method, params).and_then(|name| by_tool.get(&*name));
    wanted.map_or(Ok(()), |wanted| headers::check_params(headers, wanted, params))
}

/// The status under which an answer of the stateless protocol goes out.
fn status(outcome: &Outcome) -> StatusCode {
    match outcome.as_ref().map_err(|error| error.code) {
        Err(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Err(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// Serves a request of the handshake era.
async fn in_session(
    shared: &Arc<Shared>,
    client: &Arc<Identity>,
    head: &Parts,
    (asking, place): (Asking, Taken),
) -> Result<Response<Reply>, Refused> {
    let headers = &head.headers;
    let opens = asking.method == "initialize" && !headers.contains_key(SESSION_ID);
    let visited = match opens {
        true => open_session(shared, client, &asking.id)?,
        false => visit(shared, client, headers).await?,
    };
    let (out, messages) = mpsc::channel(QUEUE);
    let (id, session) = (asking.id.clone(), Arc::clone(&visited));
    let caller = Caller::new(Arc::clone(&session), session.client(), out).over(Transport::Tcp);
    let caller = caller.within(trace_of(headers)).presenting(presented(head));
    let unkept = Arc::new(AtomicBool::new(false));
    let work = asking.work(shared, caller, Leave::Finish, ((visited.clone(), place), Arc::clone(&unkept)));
    let exchanged = exchange(shared, work, messages).await;
    if let Exchanged::Answer(Err(error)) = &exchanged {
        if opens {
            shared.sessions.close(session.id());
        }
        if unkept.load(Ordering::Acquire) {
            return Err(Refused::rpc(StatusCode::SERVICE_UNAVAILABLE, Some(id), error.clone()));
        }
    }
    let is_opened = opens && !matches!(exchanged, Exchanged::Answer(Err(_)));
    let mut response = match exchanged {
        Exchanged::Answer(outcome) => whole(StatusCode::OK, JSON, message::response(Some(&id), &outcome)),
        Exchanged::Stream { first, messages, work } => stream(shared, visited, id, (first, messages, work)).await,
        Exchanged::TakenBack => nothing(),
    };
    if let (true, Ok(id)) = (is_opened, HeaderValue::from_str(session.id())) {
        response.headers_mut().insert(SESSION_ID, id);
    }
    Ok(response)
}

/// What a request led to.
enum Exchanged {
    /// Its answer came first.
    Answer(Outcome),
    /// Something else came first, or nothing for a while.
    Stream { first: Option<Bytes>, messages: mpsc::Receiver<Bytes>, work: Work },
    /// It was taken back before anything came.
    TakenBack,
}

/// Waits for the answer, or for what comes before it; no longer than the configuration says.
async fn exchange(shared: &Shared, mut work: Work, mut messages: mpsc::Receiver<Bytes>) -> Exchanged {
    let patience = shared.doors.now().config.stream_after;
    let outcome = tokio::select! {
        biased;
        outcome = &mut work => outcome,
        Some(first) = messages.recv() => return Exchanged::Stream { first: Some(first), messages, work },
        () = tokio::time::sleep(patience) => return Exchanged::Stream { first: None, messages, work },
    };
    match (messages.try_recv(), outcome) {
        (Err(_), Some(outcome)) => Exchanged::Answer(outcome),
        (Err(_), None) => Exchanged::TakenBack,
        (Ok(first), outcome) => {
            let work = Work::new(Leave::Finish, std::future::ready(outcome));
            Exchanged::Stream { first: Some(first), messages, work }
        }
    }
}

/// The stream of a request in a session, which is served to its end whether or not anybody reads it.
async fn stream(
    shared: &Arc<Shared>,
    visited: Visit,
    id: Raw,
    (first, messages, work): (Option<Bytes>, mpsc::Receiver<Bytes>, Work),
) -> Response<Reply> {
    let start = Position { stream: visited.number(), event: 0 };
    let state = Arc::clone(shared.live.now().state());
    let stream = visited.streams().begin(start);
    first.into_iter().for_each(|first| stream.take(first));
    let response = following(stream.follow(start.event), takes_primers(&visited), visited.clone());
    tokio::spawn(async move {
        let expected = replicas::expect(&state, &visited, stream.number());
        let (unsent, ()) = tokio::join!(stream.serve(&id, work, messages), expected);
        visited.streams().sweep(Instant::now());
        replicas::leave(&state, &visited, stream.number(), unsent).await;
    });
    response
}

/// Whether the client of a session takes an event that has an id and nothing else.
fn takes_primers(session: &Session) -> bool {
    session.client().version == PRIMED_VERSION
}

/// Takes up the stream of a request where a client was cut off.
async fn take_up(shared: &Shared, visited: Visit, from: Position) -> Result<Response<Reply>, Refused> {
    // With an id, a client goes on from there when this stream breaks too. Without one it asks for the stream of the session,
    // and ends that which it has.
    let is_primed = takes_primers(&visited);
    if let Some(follower) = visited.streams().follow(from) {
        // A stream without events is taken for one that broke off, and is asked for again and again.
        return Ok(match follower.is_at_end() {
            true => empty(StatusCode::NO_CONTENT),
            false => following(follower, is_primed, visited),
        });
    }
    let state = Arc::clone(shared.live.now().state());
    let elsewhere = replicas::is_elsewhere(&state, &visited, from.stream).await;
    if !elsewhere.map_err(|error| Refused::rpc(StatusCode::SERVICE_UNAVAILABLE, None, error))? {
        let reason = "what follows this event is no longer kept; send the request again";
        return Err(Refused::text(StatusCode::GONE, reason));
    }
    let stream = visited.streams().begin(from);
    let response = following(stream.follow(from.event), is_primed, visited.clone());
    tokio::spawn(async move { replicas::fetch(&state, &visited, &stream).await });
    Ok(response)
}

/// A session for a client that shakes hands.
fn open_session(shared: &Shared, client: &Arc<Identity>, id: &Raw) -> Result<Visit, Refused> {
    let is_shared = shared.live.now().state().sessions().is_some();
    let visit = shared.sessions.open(client, is_shared).map_err(|none| {
        let status = match none {
            NoSession::OwnInUse(_) => StatusCode::TOO_MANY_REQUESTS,
            NoSession::Full | NoSession::NoRandomness => StatusCode::SERVICE_UNAVAILABLE,
        };
        Refused::rpc(status, Some(id.clone()), RpcError::new(INTERNAL_ERROR, none.to_string()))
    })?;
    let gateway = shared.live.now();
    replicas::prepare(gateway.state(), &visit).map_err(|error| {
        shared.sessions.close(visit.id());
        Refused::rpc(StatusCode::SERVICE_UNAVAILABLE, Some(id.clone()), error)
    })?;
    gateway.enter(&visit);
    Ok(visit)
}

/// The session of this client with this id: one that is held here, or one that another replica has opened.
async fn find(shared: &Shared, client: &Arc<Identity>, id: &str) -> Result<Option<Visit>, Refused> {
    let gateway = shared.live.now();
    let unavailable = |error| Refused::rpc(StatusCode::SERVICE_UNAVAILABLE, None, error);
    let held = || shared.sessions.visit(id, client);
    match replicas::look_up(gateway.state(), id, client, shared.sessions.limits()).await.map_err(unavailable)? {
        Known::Own => Ok(held()),
        Known::Closed => {
            if let Some(ended) = held() {
                shared.sessions.close(ended.id());
            }
            Ok(None)
        }
        Known::Open(record) => {
            let full = |none: NoSession| unavailable(RpcError::new(INTERNAL_ERROR, none.to_string()));
            let visit = match held() {
                Some(visit) => visit,
                None => {
                    let visit = shared.sessions.adopt(id, client).map_err(full)?;
                    replicas::prepare(gateway.state(), &visit).map_err(unavailable)?;
                    visit
                }
            };
            replicas::restore(&visit, &record).map_err(unavailable)?;
            gateway.enter(&visit);
            Ok(Some(visit))
        }
    }
}

/// The session that a request names.
async fn visit(shared: &Shared, client: &Arc<Identity>, headers: &HeaderMap) -> Result<Visit, Refused> {
    let bad = |error: RpcError| Refused::rpc(StatusCode::BAD_REQUEST, None, error);
    let id = single(headers, &SESSION_ID).map_err(bad)?;
    let missing =
        || bad(RpcError::new(INVALID_REQUEST, "the header `Mcp-Session-Id` is missing; get it with `initialize`"));
    let visit = find(shared, client, id.ok_or_else(missing)?).await?.ok_or_else(|| {
        let error =
            RpcError::new(SESSION_NOT_FOUND, "the session is no longer known here; start another with `initialize`");
        Refused::rpc(StatusCode::NOT_FOUND, None, error)
    })?;
    match single(headers, &PROTOCOL_VERSION).map_err(bad)? {
        Some(version) if !LEGACY_VERSIONS.contains(&version) => {
            let reason = format!("protocol version `{version}` is not supported here in a session");
            Err(bad(RpcError::new(INVALID_REQUEST, reason)))
        }
        _ => Ok(visit),
    }
}

/// Opens the stream of messages that belong to no request.
async fn listen(shared: &Shared, client: &Arc<Identity>, head: &Parts) -> Result<Response<Reply>, Refused> {
    check_accept(&head.headers, &[EVENTS])?;
    if is_stateless(&head.headers) {
        return Ok(not_allowed("POST"));
    }
    let visited = visit(shared, client, &head.headers).await?;
    let bad = |error: RpcError| Refused::rpc(StatusCode::BAD_REQUEST, None, error);
    let last = single(&head.headers, &LAST_EVENT_ID).map_err(bad)?;
    if let Some(position) = last.and_then(Position::parse) {
        return take_up(shared, visited, position).await;
    }
    let (out, messages) = mpsc::channel(QUEUE);
    visited.open_stream(out.clone());
    resume(shared, &visited, last, out, head);
    let is_primed = takes_primers(&visited);
    let (live, stream, mut count) = (shared.live.clone(), visited.number(), 0_u64);
    // What is served decides what is told anew; the rest makes the id one of its own in the session.
    let mark = Mark::new(is_primed, move || {
        count += 1;
        format!("{}.{stream}.{count}", live.now().catalog().mark())
    });
    let mut response = events(None, messages, End::Closed { _used: visited });
    response.body_mut().marked(mark);
    Ok(response)
}

/// Tells a client whose stream broke off what it may have missed, also where the stream was at another replica: which lists
/// are others than those that the last event stood for, and every resource that it watches. The notifications have no
/// content, so that one too many does no harm. What it watches is watched from here.
fn resume(shared: &Shared, session: &Arc<Session>, last: Option<&str>, out: mpsc::Sender<Bytes>, head: &Parts) {
    let gateway = shared.live.now();
    let watched = session.watched();
    if let Some(last) = last {
        if last.split('.').next() != Some(gateway.catalog().mark()) {
            gateway.tell_of_changes_to(session);
        }
        for uri in &watched {
            session.tell("notifications/resources/updated", Some(&Raw::of(&json!({ "uri": uri }))));
        }
    }
    if gateway.state().sessions().is_some() && !watched.is_empty() {
        let caller = Caller::new(Arc::clone(session), session.client(), out).presenting(presented(head));
        tokio::spawn(async move { gateway.watch(&caller, &watched).await });
    }
}

/// Ends the session that a request names.
async fn end_session(shared: &Shared, client: &Arc<Identity>, head: &Parts) -> Result<Response<Reply>, Refused> {
    if is_stateless(&head.headers) {
        return Ok(not_allowed("POST"));
    }
    let visited = visit(shared, client, &head.headers).await?;
    let unavailable = |error| Refused::rpc(StatusCode::SERVICE_UNAVAILABLE, None, error);
    replicas::end(shared.live.now().state(), &visited).await.map_err(unavailable)?;
    shared.sessions.close(visited.id());
    shared.live.now().unwatch_all(&visited);
    Ok(empty(StatusCode::NO_CONTENT))
}

fn is_stateless(headers: &HeaderMap) -> bool {
    headers.get(PROTOCOL_VERSION).is_some_and(|version| version == MODERN_VERSION)
}

#[cfg(test)]
#[path = "tests.rs"]
pub(crate) mod tests;

#[cfg(test)]
#[path = "door_tests.rs"]
mod door_tests;

#[cfg(test)]
#[path = "credential_tests.rs"]
mod credential_tests;

#[cfg(test)]
#[path = "replica_tests.rs"]
mod replica_tests;
