//! Listens: connections within bounds, the checks before every request, and an orderly end. What a request is answered with
//! is an [`Endpoint`]'s business.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{ALLOW, EXPECT, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::admission::{Admission, Settings};
use super::cors;
use super::forwarded;
use super::patience::Patient;
use super::reply::{Lease, Refused, Reply, empty, whole};
use super::tls::{Certificate, handshake};
use crate::config::http::HttpConfig;
use crate::protocol::headers::JSON;
use crate::session::identity::Identity;
use crate::transport::PULSE;
use crate::transport::crowd::{Crowd, neighbour};

/// What answers at an address.
pub(super) trait Endpoint: Send + Sync + 'static {
    /// Answers a request whose host and origin may be served. `client` is who shows a token, or why nobody is admitted: some
    /// paths are for everybody. What it leaves of the body of a request that it refuses is read within bounds.
    fn answer(
        self: Arc<Self>,
        client: Result<Arc<Identity>, Refused>,
        head: Parts,
        body: &mut Incoming,
    ) -> impl Future<Output = Result<Response<Reply>, Refused>> + Send;

    /// The response to a request that is refused.
    fn refused(&self, refused: Refused) -> Response<Reply> {
        refused.into_response()
    }

    /// Is called now and then, to drop what has expired.
    fn sweep(self: &Arc<Self>) {}

    /// How long after that it is called again.
    fn sweeps_every(&self) -> Duration {
        SWEEP
    }

    /// Is called when nothing more is accepted, to end what would never end by itself.
    fn close(&self) {}
}

/// The host that a request comes from, as [`neighbour`] tells hosts apart and trusted proxies name them; every request has
/// it among its extensions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Neighbour(pub(super) IpAddr);

/// Connections at a time, at most; more wait to be accepted.
const MOST_CONNECTIONS: usize = 4_096;

/// Connections for the open files that the system permits: a half, since upstreams and artifacts need the rest.
fn most_connections() -> usize {
    #[cfg(unix)]
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    // Windows has no such limit.
    #[cfg(not(unix))]
    let files: Option<u64> = None;
    let half = files.and_then(|files| usize::try_from(files / 2).ok()).unwrap_or(MOST_CONNECTIONS);
    half.clamp(16, MOST_CONNECTIONS)
}

/// How long a client may leave an answer unread while more of it waits.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The answer to a connection from an address that has too many.
const CROWDED: &[u8] =
    b"HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 39\r\n\
    content-type: text/plain\r\n\r\ntoo many connections from this address\n";

/// How long connections that were broken off may take to end.
const LAST_WORK: Duration = Duration::from_millis(500);

/// How long the rest of a body is read that nobody wants, at most.
const DISCARDS: Duration = Duration::from_secs(5);

/// How often an endpoint drops what has expired, unless it says otherwise.
pub(super) const SWEEP: Duration = Duration::from_secs(30);

/// Nothing can be served over HTTP.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Others could reach it without showing anything.
    #[error(
        "`{0}` can be reached from other machines, and no token is set; give it one with --token-file (in a configuration: `http.tokens`, `http.token`, `http.token_file`, `http.oauth` or `http.tls.client_ca`), or listen on 127.0.0.1"
    )]
    Exposed(SocketAddr),
    /// The same of what has no configuration with a section `http`.
    #[error(
        "`{0}` can be reached from other machines, and no token is set; give it one with --token-file, or each caller \
         its own with --callers, or listen on 127.0.0.1"
    )]
    ExposedEngines(SocketAddr),
    /// The address cannot be listened at.
    #[error("cannot listen on `{listen}`: {}", said(.reason))]
    Listen {
        /// The address in the configuration.
        listen: SocketAddr,
        /// The error of the system.
        reason: std::io::Error,
    },
    /// The keys of the authorization server cannot be fetched.
    #[error("`http.oauth`: {0}")]
    OAuth(String),
}

/// An address that is listened at.
#[derive(Debug)]
pub(super) struct Listener {
    listener: TcpListener,
    door: Doors,
    /// Dropped when nothing more is accepted.
    open: watch::Sender<()>,
}

/// What of the configuration is in force, for connections and requests from now on.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) config: Arc<HttpConfig>,
    pub(super) admission: Admission,
}

/// The door of now; another can take its place while connections stay.
#[derive(Debug, Clone)]
pub(super) struct Doors(Arc<ArcSwap<Door>>);

impl Doors {
    fn new(config: HttpConfig, settings: Settings) -> Result<Self, HttpError> {
        Ok(Self(Arc::new(ArcSwap::from_pointee(Door::new(config, settings, None)?))))
    }

    /// The one of now.
    pub(super) fn now(&self) -> Arc<Door> {
        self.0.load_full()
    }

    /// One that could take the place of that of now. The address is not another.
    ///
    /// # Errors
    /// The address must not be listened at without a token.
    pub(super) fn next(&self, config: HttpConfig) -> Result<Door, HttpError> {
        let now = self.now();
        let config = HttpConfig { listen: now.config.listen, ..config };
        Door::new(config, now.admission.settings, Some(&now.admission))
    }

    /// Puts it in place.
    pub(super) fn put(&self, door: Door) {
        self.0.store(Arc::new(door));
    }
}

/// Whether it may listen where it is configured to: an address that other machines reach needs something to show.
///
/// # Errors
/// [`HttpError::Exposed`], or the same of the engines.
pub(super) fn check_exposure(config: &HttpConfig, settings: Settings) -> Result<(), HttpError> {
    if config.is_for_everybody() && !config.listen.ip().is_loopback() {
        return Err(match settings {
            Settings::Gateway => HttpError::Exposed(config.listen),
            Settings::Engines => HttpError::ExposedEngines(config.listen),
        });
    }
    Ok(())
}

impl Door {
    fn new(config: HttpConfig, settings: Settings, before: Option<&Admission>) -> Result<Self, HttpError> {
        check_exposure(&config, settings)?;
        let admission = Admission::new(&config, settings, before).map_err(HttpError::OAuth)?;
        Ok(Self { config: Arc::new(config), admission })
    }
}

impl Listener {
    /// Listens, and serves nobody yet.
    ///
    /// # Errors
    /// The address cannot be listened at, or must not without a token.
    pub(super) async fn bind(config: HttpConfig, settings: Settings) -> Result<Self, HttpError> {
        let listen = config.listen;
        let door = Doors::new(config, settings)?;
        let listener = open(listen).map_err(|reason| HttpError::Listen { listen, reason })?;
        Ok(Self { listener, door, open: watch::channel(()).0 })
    }

    /// The address that it listens at.
    ///
    /// # Errors
    /// The system does not say.
    pub(super) fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What is in force.
    pub(super) fn doors(&self) -> &Doors {
        &self.door
    }

    /// Changes when nothing more is accepted.
    pub(super) fn closing(&self) -> watch::Receiver<()> {
        self.open.subscribe()
    }

    /// Serves until `shutdown` ends; then streams are closed, and requests have a while to finish.
    pub(super) async fn serve<E: Endpoint>(self, endpoint: Arc<E>, shutdown: impl Future<Output = ()>) {
        let Self { listener, door, open } = self;
        let graceful = GracefulShutdown::new();
        let room = Arc::new(Semaphore::new(most_connections()));
        let most_of_one = |config: &HttpConfig| config.max_connections_per_address.min(most_connections() / 2);
        let neighbours = Crowd::new(most_of_one(&door.now().config));
        let mut connections = tokio::task::JoinSet::new();
        let (mut swept, mut pulse) = (Instant::now(), tokio::time::interval(PULSE));
        tokio::pin!(shutdown);
        loop {
            let accepted = async {
                // The semaphore is never closed.
                let place = Arc::clone(&room).acquire_owned().await.ok();
                (accept(&listener).await, place)
            };
            let ((stream, address), place) = tokio::select! {
                accepted = accepted => accepted,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                _ = pulse.tick() => continue,
                // Looked up each time: another configuration may have made it shorter.
                () = tokio::time::sleep_until(swept + endpoint.sweeps_every()) => {
                    endpoint.sweep();
                    swept = Instant::now();
                    continue;
                }
                () = &mut shutdown => break,
            };
            // Not the whole door: what it admits must end with it.
            let config = Arc::clone(&door.now().config);
            neighbours.set_most(most_of_one(&config));
            let host = neighbour(address.ip());
            let Some(neighbour) = neighbours.enter(host) else {
                tracing::debug!(%address, most = neighbours.most(), "too many connections from one address");
                // It fits into the buffer of a connection that is new.
                let _ = stream.try_write(CROWDED);
                continue;
            };
            let (watcher, stream) = (graceful.watcher(), Patient::new(stream, WRITE_TIMEOUT));
            let served = (Arc::clone(&endpoint), door.clone(), address.ip());
            connections.spawn(async move {
                match &config.tls {
                    None => converse(served, None, stream, watcher).await,
                    Some(tls) => match handshake(tls, stream).await {
                        Ok((stream, certificate)) => converse(served, certificate, stream, watcher).await,
                        Err(error) => tracing::debug!(%error, %address, "a client did not complete the TLS handshake"),
                    },
                }
                drop((place, neighbour));
            });
        }
        drop((listener, open));
        endpoint.close();
        let bound = door.now().config.shutdown;
        if tokio::time::timeout(bound, graceful.shutdown()).await.is_err() {
            tracing::warn!(seconds = bound.as_secs_f64(), "requests that did not finish in time are dropped");
        }
        // Work on a thread of its own cannot be broken off: what is left of it is not waited for.
        if tokio::time::timeout(LAST_WORK, connections.shutdown()).await.is_err() {
            tracing::warn!("work that did not finish in time is abandoned");
        }
    }
}

/// Serves the requests of a connection to its end.
async fn converse<E: Endpoint>(
    (endpoint, door, peer): (Arc<E>, Doors, IpAddr),
    certificate: Option<Arc<Certificate>>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    watcher: Watcher,
) {
    let mut connection = http1::Builder::new();
    connection.timer(TokioTimer::new()).header_read_timeout(door.now().config.read_timeout);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (endpoint, door, certificate) = (Arc::clone(&endpoint), door.now(), certificate.clone());
        let sender = forwarded::sender(peer, request.headers(), &door.config.trusted_proxies);
        request.extensions_mut().insert(Neighbour(neighbour(sender)));
        async move { Ok::<_, Infallible>(respond(endpoint, door, certificate.as_deref(), request).await) }
    });
    if let Err(error) = watcher.watch(connection.serve_connection(TokioIo::new(stream), service)).await {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Why an address cannot be listened at, and what to do where that is known.
fn said(reason: &std::io::Error) -> String {
    match reason.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!("{reason}; another program uses this port: choose another with --listen ADDRESS:PORT")
        }
        std::io::ErrorKind::AddrNotAvailable => {
            format!("{reason}; this machine does not have that address: 127.0.0.1 is for programs on this machine")
        }
        _ => reason.to_string(),
    }
}

/// Listens at an address. As many connections may wait as may be served: of one that finds no place to wait the system drops
/// the first packet, and it tries again after a second.
fn open(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // As `TcpListener::bind`: a gateway that is started again takes up its address at once.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(MOST_CONNECTIONS as u32)
}

/// Accepts the next connection.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    /// A pause after a failure that is not the connection's own, such as too many open files.
    const PAUSE: Duration = Duration::from_millis(50);
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                // Otherwise small writes wait for the client's delayed acknowledgement: 40 ms a call.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a connection without TCP_NODELAY");
                }
                return (stream, address);
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn respond<E: Endpoint>(
    endpoint: Arc<E>,
    door: Arc<Door>,
    certificate: Option<&Certificate>,
    request: Request<Incoming>,
) -> Response<Reply> {
    let (head, mut body) = request.into_parts();
    let page = cors::Page::of(&head.headers, &door.admission);
    // What is answered at once is answered in turns: a client that sends many requests in a row does not hold up others.
    if head.method == Method::GET {
        tokio::task::yield_now().await;
    }
    let (most, waits_for_leave) = (door.config.body_limit.saturating_mul(2), head.headers.contains_key(EXPECT));
    let answered = admitted(Arc::clone(&endpoint), door, certificate, (head, &mut body)).await;
    let mut response = answered.unwrap_or_else(|refused| {
        tracing::debug!(?refused, "a request is refused");
        endpoint.refused(refused)
    });
    page.into_iter().for_each(|page| page.read(&mut response));
    let status = response.status();
    let is_refused = status.is_client_error() || status.is_server_error();
    // Who does not send, or waits for leave to send, has not begun to send what is not wanted.
    if is_refused && status != StatusCode::REQUEST_TIMEOUT && !waits_for_leave {
        discard(body, most);
    }
    response
}

/// Reads what is left of a body that nobody wants while the response goes out, unless it has more than `most` bytes. A
/// connection that is closed while its client still sends is reset, and many clients then see no answer.
fn discard(body: Incoming, most: usize) {
    if body.is_end_stream() || body.size_hint().lower() > most as u64 {
        return;
    }
    let mut left = Limited::new(body, most);
    tokio::spawn(tokio::time::timeout(DISCARDS, async move { while let Some(Ok(_)) = left.frame().await {} }));
}

async fn admitted<E: Endpoint>(
    endpoint: Arc<E>,
    door: Arc<Door>,
    certificate: Option<&Certificate>,
    (mut head, body): (Parts, &mut Incoming),
) -> Result<Response<Reply>, Refused> {
    let admission = &door.admission;
    admission.admit(&head.headers)?;
    if head.method == Method::OPTIONS && cors::is_preflight(&head.headers) {
        return Ok(cors::preflight(&head.headers));
    }
    if let Some(published) = admission.oauth().and_then(|oauth| oauth.published(head.uri.path())) {
        return Ok(if head.method == Method::GET { published } else { not_allowed("GET") });
    }
    match (head.uri.path(), &head.method) {
        // Whether the process serves at all: it answers.
        ("/livez", &Method::GET | &Method::HEAD) => Ok(whole(StatusCode::OK, JSON, json!({"live": true}).to_string())),
        ("/livez", _) => {
            let reason = "the method is not allowed here; use GET or HEAD";
            let mut response = endpoint.refused(Refused::text(StatusCode::METHOD_NOT_ALLOWED, reason));
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            Ok(response)
        }
        _ => {
            let (client, lease) = match admission.authorize(&head.headers, certificate).await {
                Ok(admitted) => {
                    // What is needed where a call is made on behalf of the caller goes with the request.
                    admitted.presented.into_iter().for_each(|presented| drop(head.extensions.insert(presented)));
                    (Ok(admitted.identity), admitted.lease)
                }
                Err(refused) => (Err(refused), Lease::default()),
            };
            // Not held while the request is served, which a client may draw out: streams of callers that another door
            // does not let in end with this one.
            drop(door);
            let mut response = endpoint.answer(client, head, body).await?;
            response.body_mut().lent(lease);
            Ok(response)
        }
    }
}

/// The answer to a method that a path does not have.
pub(super) fn not_allowed(allowed: &'static str) -> Response<Reply> {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// The body of a request of at most `longest` bytes, in one piece where it came in one.
///
/// # Errors
/// It is too large, breaks off, or does not arrive within `patience`.
pub(super) async fn read(body: &mut Incoming, longest: usize, patience: Duration) -> Result<Bytes, Refused> {
    let too_large = || {
        let reason = format!("the body has more than {longest} bytes");
        Refused::text(StatusCode::PAYLOAD_TOO_LARGE, reason)
    };
    if body.size_hint().lower() > longest as u64 {
        return Err(too_large());
    }
    let collected = tokio::time::timeout(patience, Limited::new(body, longest).collect()).await;
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Refused::text(StatusCode::BAD_REQUEST, format!("the body cannot be read: {error}"))),
        Err(_) => Err(Refused::text(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn accepted_sockets_do_not_delay_small_writes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        assert!(accept(&listener).await.0.nodelay().unwrap());
    }
}
