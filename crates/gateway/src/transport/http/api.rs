//! An interface of JSON over HTTP that is not MCP: documents in, documents out.
//!
//! What there is to ask and what the answers are, an [`Api`] says. Connections, hosts, tokens, bounds on requests, turns for
//! long work, `/livez`, `/healthz` and `/metrics` are those of the gateway.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use serde_json::json;
use tokio::sync::Semaphore;

use super::admission::{Settings, check_content_type};
use super::headers::trace_of;
use super::listener::{Doors, Endpoint, HttpError, Listener, Neighbour, read};
use super::load::Load;
use super::reply::{Refused, Reply, whole};
use crate::common::budget::{Spent, WorkConfig};
use crate::common::sync::lock;
use crate::common::work::{Exhausted, aside, in_time, places, work_of};
use crate::config::caller::CallerBounds;
use crate::config::http::HttpConfig;
use crate::guard::quota::Quota;
use crate::guard::state::{MINUTE, MemoryState, Quotas, Take, Want};
use crate::protocol::headers::JSON;
use crate::session::identity::Identity;
use crate::telemetry::metrics::{Durations, Text};
use crate::telemetry::otlp::{OpenSpan, Otlp, OtlpConfig};
use crate::telemetry::otlp_form::{Counted, Said, SeriesWriter, SpanKind};

/// What the conventions of OpenTelemetry call the path that was asked.
const ROUTE: &str = "http.route";

/// What they call the status of an answer.
const STATUS: &str = "http.response.status_code";

/// The attribute that names a caller.
const CALLER: &str = "contextweaver.caller";

/// The methods that a span names.
const METHODS: [Method; 9] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
    Method::TRACE,
    Method::CONNECT,
];

/// A document to answer with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// JSON text.
    pub body: String,
}

/// What can be asked.
pub trait Api: Send + Sync + 'static {
    /// The known path that is equal to `path`, where documents are sent to.
    fn path(&self, path: &str) -> Option<&'static str>;

    /// Whether answering a document that is sent to a known path may take many seconds.
    fn is_long(&self, path: &'static str) -> bool;

    /// Answers a document that was sent to a known path. Runs beside the threads that serve messages, and may be long.
    fn answer(&self, path: &'static str, body: &[u8]) -> Answer;

    /// The document that describes all paths; it is served at `/openapi.json`.
    fn description(&self) -> &'static str;

    /// The document that says that a request is refused.
    fn refusal(&self, message: &str) -> String;
}

/// An interface that listens.
#[derive(Debug)]
pub struct ApiServer<A> {
    listener: Listener,
    served: Served<A>,
}

#[derive(Debug)]
struct Served<A> {
    api: Arc<A>,
    doors: Doors,
    /// What the requests that are being served take up. A caller with bounds of its own is one, whatever its hosts; who shows
    /// the token that all have, or none, is told apart by host.
    load: Load,
    /// The requests of callers that may send so many a minute.
    counted: MemoryState,
    /// When counting them began.
    start: Instant,
    /// Turns of answers that may take many seconds: one less than there are, so that no short one waits for them.
    long: Arc<Semaphore>,
    answers: Arc<Answers>,
    /// Where traces and metrics go, when they are sent.
    otlp: Option<Otlp>,
}

/// How many answers there were, by path and status, and by caller where callers have bounds of their own, and how long they
/// took, with the wait for a turn.
#[derive(Debug, Default)]
struct Answers(Mutex<BTreeMap<Answered, Durations>>);

/// The path, the status, and the name of the caller, which is one of the configuration.
type Answered = (&'static str, u16, Option<String>);

impl Counted for Answers {
    fn write(&self, into: &mut SeriesWriter<'_>) {
        let answers = lock(&self.0).clone();
        let points: Vec<_> = answers
            .into_iter()
            .map(|((path, status, caller), took)| {
                let mut about = vec![(ROUTE, Said::from(path)), (STATUS, Said::Number(status.into()))];
                about.extend(caller.map(|caller| (CALLER, Said::Text(caller))));
                (about, took)
            })
            .collect();
        into.histogram("http.server.request.duration", "Time to answer, by path, status and caller.", &points);
    }
}

impl<A: Api> ApiServer<A> {
    /// Listens, and serves nobody yet. Of `config`, what is about sessions plays no part.
    ///
    /// # Errors
    /// The address cannot be listened at, or must not without a token.
    pub async fn bind(api: Arc<A>, config: HttpConfig) -> Result<Self, HttpError> {
        let listener = Listener::bind(config, Settings::Engines).await?;
        let doors = listener.doors().clone();
        let load = Load::new(&doors.now().config);
        let long = Arc::new(Semaphore::new(places() - 1));
        let (counted, start) = (MemoryState::default(), Instant::now());
        let served = Served { api, doors, load, counted, start, long, answers: Arc::default(), otlp: None };
        Ok(Self { listener, served })
    }

    /// The same, and a span of each question and the metrics are sent.
    ///
    /// # Errors
    /// A thread or a client cannot be made.
    pub fn exporting(mut self, config: &OtlpConfig) -> io::Result<Self> {
        self.served.otlp = Some(Otlp::start(config, Arc::<Answers>::downgrade(&self.served.answers))?);
        Ok(self)
    }

    /// What changes who may ask while it serves.
    #[must_use]
    pub fn control(&self) -> ApiControl {
        ApiControl { doors: self.served.doors.clone(), load: self.served.load.clone() }
    }

    /// The address that it listens at.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.address()
    }

    /// Serves until `shutdown` ends; then requests have a while to finish, and what is to be sent, to be sent.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let served = Arc::new(self.served);
        self.listener.serve(Arc::clone(&served), shutdown).await;
        if let Some(otlp) = &served.otlp {
            otlp.flush().await;
        }
    }
}

/// Changes who may ask an interface, and within which bounds, without ending a connection.
#[derive(Debug, Clone)]
pub struct ApiControl {
    doors: Doors,
    load: Load,
}

impl ApiControl {
    /// Puts a configuration in force, from the next request on. The address that is listened at stays.
    ///
    /// # Errors
    /// The address must not be listened at without a token. Nothing has then changed.
    pub fn put(&self, config: HttpConfig) -> Result<(), HttpError> {
        let door = self.doors.next(config)?;
        self.load.limit(&door.config);
        self.doors.put(door);
        Ok(())
    }
}

impl<A: Api> Endpoint for Served<A> {
    async fn answer(
        self: Arc<Self>,
        client: Result<Arc<Identity>, Refused>,
        head: Parts,
        body: &mut Incoming,
    ) -> Result<Response<Reply>, Refused> {
        let start = Instant::now();
        let config = Arc::clone(&self.doors.now().config);
        let known = self.api.path(head.uri.path());
        let caller = client.as_ref().ok().filter(|client| config.callers.contains_key(&client.name));
        let caller = caller.map(|client| client.name.clone());
        let span = known.and_then(|path| self.span(path, &head, client.as_deref().ok()));
        let response = match (known, head.uri.path(), &head.method) {
            (Some(path), _, &Method::POST) => self.operation(client, path, &head, body, &config).await,
            (Some(_), ..) => Ok(self.not_allowed("POST")),
            (None, "/openapi.json", &Method::GET | &Method::HEAD) => {
                Ok(whole(StatusCode::OK, JSON, self.api.description()))
            }
            (None, "/healthz", &Method::GET | &Method::HEAD) => {
                Ok(whole(StatusCode::OK, JSON, json!({"live": true, "ready": true}).to_string()))
            }
            (None, "/metrics", &Method::GET | &Method::HEAD) => {
                client.and_then(|client| match config.bounds_of(&client.name) {
                    Some(CallerBounds { may_read_metrics: false, .. }) => {
                        Err(Refused::text(StatusCode::FORBIDDEN, "metrics are for callers that have `metrics: true`"))
                    }
                    _ => Ok(whole(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", self.metrics())),
                })
            }
            (None, "/openapi.json" | "/healthz" | "/metrics", _) => Ok(self.not_allowed("GET, HEAD")),
            _ => Err(Refused::text(
                StatusCode::NOT_FOUND,
                "there is nothing here; `/openapi.json` lists what there \
                                                           is",
            )),
        };
        let response = response.unwrap_or_else(|refused| self.refused(refused));
        if let Some(path) = known {
            let answered = (path, response.status().as_u16(), caller);
            lock(&self.answers.0).entry(answered).or_default().add(start.elapsed());
        }
        if let Some(mut span) = span {
            let status = response.status();
            span.set_number(STATUS, status.as_u16().into());
            // What a client does wrong is not a failure of the server.
            if status.is_server_error() {
                span.fail(status.as_str());
            }
        }
        Ok(response)
    }

    /// A document like all others.
    fn refused(&self, refused: Refused) -> Response<Reply> {
        let body = self.api.refusal(&refused.reason());
        let mut response = refused.into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        *response.body_mut() = Reply::Whole(Some(body.into()));
        response
    }
}

impl<A: Api> Served<A> {
    /// A span of a question; `None` when traces are not sent.
    fn span(&self, path: &'static str, head: &Parts, client: Option<&Identity>) -> Option<OpenSpan<'_>> {
        let mut span = self.otlp.as_ref()?.begin(SpanKind::Server, trace_of(&head.headers).as_ref())?;
        // A client may write any word there; the conventions have two for those that nobody knows.
        let known = METHODS.contains(&head.method).then(|| head.method.as_str());
        span.named(known.unwrap_or("HTTP"), Some(path));
        span.set("http.request.method", known.unwrap_or("_OTHER"));
        span.set(ROUTE, path);
        if let Some(client) = client {
            span.set(CALLER, &client.name);
        }
        Some(span)
    }

    async fn operation(
        &self,
        client: Result<Arc<Identity>, Refused>,
        path: &'static str,
        head: &Parts,
        body: &mut Incoming,
        config: &HttpConfig,
    ) -> Result<Response<Reply>, Refused> {
        let client = client?;
        check_content_type(&head.headers)?;
        let own = config.bounds_of(&client.name);
        let whose = match (own, head.extensions.get()) {
            (None, Some(Neighbour(host))) => format!("{} at {host}", client.name),
            _ => client.name.clone(),
        };
        let own = own.unwrap_or_default();
        let most = own.max_requests.map_or(config.max_requests_per_caller, NonZeroUsize::get);
        let longest = own.body_limit.map_or(config.body_limit, NonZeroUsize::get);
        let mut taken = self.load.take_within(&whose, most, body, longest)?;
        self.count(&client.name, own)?;
        let body: Bytes = read(body, longest, config.read_timeout).await?;
        taken.shrink(body.len());
        let answer = self.worked_out(path, &whose, body).await.map_err(|error| {
            // Its budget is set nowhere.
            let error = match error {
                Exhausted::Spent(Spent::Seconds(limit)) => Exhausted::TooLong(limit),
                other => other,
            };
            let status = match error {
                Exhausted::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
                Exhausted::TooLong(_) => StatusCode::GATEWAY_TIMEOUT,
                Exhausted::TooMuch(_) | Exhausted::Unreadable | Exhausted::Spent(_) | Exhausted::Stopped => {
                    StatusCode::INTERNAL_SERVER_ERROR
                }
            };
            Refused::text(status, format!("the request {error}"))
        })?;
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Ok(whole(status, JSON, answer.body))
    }

    /// Counts a request of a caller that may send so many a minute.
    fn count(&self, caller: &str, own: CallerBounds) -> Result<(), Refused> {
        let Some(most) = own.max_requests_per_minute else { return Ok(()) };
        let want = Want { subject: caller.to_owned(), scope: String::new(), quota: Quota::per_minute(most) };
        let taken = self.counted.take(&[want], self.start.elapsed(), Take::Use).map_err(|error| {
            Refused::text(StatusCode::SERVICE_UNAVAILABLE, format!("requests cannot be counted: {error}"))
        })?;
        taken.map_err(|exceeded| {
            let wait = exceeded.retry_after.unwrap_or(MINUTE);
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            let reason = format!("you may send {most} requests a minute; try again in {seconds} s");
            Refused::text(StatusCode::TOO_MANY_REQUESTS, reason).with_retry_after(seconds)
        })
    }

    /// Answers in the turns of the caller; what may take long has turns of its own.
    async fn worked_out(&self, path: &'static str, whose: &str, body: Bytes) -> Result<Answer, Exhausted> {
        let (api, budget) = (Arc::clone(&self.api), WorkConfig::default());
        if !self.api.is_long(path) {
            return work_of(whose, budget, aside(move || api.answer(path, &body))).await;
        }
        let turn = Arc::clone(&self.long).acquire_owned();
        let working = async move {
            let turn = in_time(turn).await?;
            // The turn ends with the work, also where nobody waits for it any more.
            let answering = aside(move || {
                let answer = api.answer(path, &body);
                drop(turn);
                answer
            });
            answering.await
        };
        work_of(&format!("{whose}, long"), budget, working).await
    }

    fn not_allowed(&self, allowed: &'static str) -> Response<Reply> {
        let message = format!("the method is not allowed here; use {allowed}");
        let mut response = whole(StatusCode::METHOD_NOT_ALLOWED, JSON, self.api.refusal(&message));
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        response
    }

    /// What has been answered, in the text format of Prometheus.
    fn metrics(&self) -> String {
        let answers = lock(&self.answers.0);
        let mut text = Text::default();
        text.head("answers_total", "counter", "Answers by path, status and caller.");
        for ((path, status, caller), took) in &*answers {
            let status = status.to_string();
            text.sample("answers_total", &labels(path, &status, caller.as_deref()), &took.count());
        }
        text.head(
            "answer_seconds_total",
            "counter",
            "Time to answer, by path, status and caller, including the wait for a turn.",
        );
        for ((path, status, caller), took) in &*answers {
            let (status, seconds) = (status.to_string(), took.sum().as_secs_f64());
            text.sample("answer_seconds_total", &labels(path, &status, caller.as_deref()), &seconds);
        }
        if let Some((dropped, failed)) = self.otlp.as_ref().map(Otlp::lost) {
            text.spans_lost(dropped, failed);
        }
        text.0
    }
}

/// The labels of a sample; a caller without bounds of its own is not named.
fn labels<'l>(path: &'l str, status: &'l str, caller: Option<&'l str>) -> Vec<(&'static str, &'l str)> {
    let mut labels = vec![("path", path), ("status", status)];
    labels.extend(caller.map(|caller| ("caller", caller)));
    labels
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpSocket, TcpStream};

    use super::*;
    use crate::config::caller_file::CallersConfig;
    use crate::config::http::ProxyRule;

    /// `/long` answers when it is told to, `/short` at once.
    struct TwoPaths(Mutex<Receiver<()>>);

    impl Api for TwoPaths {
        fn path(&self, path: &str) -> Option<&'static str> {
            ["/long", "/short"].into_iter().find(|known| *known == path)
        }

        fn is_long(&self, path: &'static str) -> bool {
            path == "/long"
        }

        fn answer(&self, path: &'static str, _: &[u8]) -> Answer {
            if self.is_long(path) {
                let _ = lock(&self.0).recv();
            }
            Answer { status: 200, body: json!(path).to_string() }
        }

        fn description(&self) -> &'static str {
            "{}"
        }

        fn refusal(&self, message: &str) -> String {
            json!(message).to_string()
        }
    }

    /// Serves both paths; what is sent to the channel ends a long answer each.
    async fn serving(most: usize) -> (SocketAddr, Sender<()>) {
        let (address, _, end) = serving_as(HttpConfig { max_requests_per_caller: most, ..HttpConfig::default() }).await;
        (address, end)
    }

    /// The same with this configuration, which can be changed.
    async fn serving_as(config: HttpConfig) -> (SocketAddr, ApiControl, Sender<()>) {
        let (end, ended) = channel();
        let config = HttpConfig { listen: "127.0.0.1:0".parse().unwrap(), ..config };
        let server = ApiServer::bind(Arc::new(TwoPaths(Mutex::new(ended))), config).await.unwrap();
        let (address, control) = (server.address().unwrap(), server.control());
        tokio::spawn(server.serve(std::future::pending()));
        (address, control, end)
    }

    /// Sends a request from an address of this machine, with `body` of the two bytes that it announces.
    async fn sent(to: SocketAddr, from: &str, what: &str, body: &str) -> TcpStream {
        sent_with(to, from, what, "accept: */*", body).await
    }

    /// The same with one more line in its head.
    async fn sent_with(to: SocketAddr, from: &str, what: &str, line: &str, body: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
        let mut stream = socket.connect(to).await.unwrap();
        let head = format!("{what} HTTP/1.1\r\nhost: {to}\r\ncontent-type: application/json\r\ncontent-length: 2");
        stream.write_all(format!("{head}\r\n{line}\r\n\r\n{body}").as_bytes()).await.unwrap();
        stream
    }

    /// The whole answer to a request of the holder of this token.
    async fn told(to: SocketAddr, token: &str, what: &str) -> String {
        let lines = format!("authorization: Bearer {token}\r\nconnection: close");
        let mut answer = String::new();
        let mut stream = sent_with(to, "127.0.0.1", what, &lines, "{}").await;
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_string(&mut answer)).await;
        read.expect("an answer in time").unwrap();
        answer
    }

    /// What lets in the callers of a file.
    fn callers(text: &str) -> HttpConfig {
        let mut config = HttpConfig::default();
        CallersConfig::parse(text, Path::new(""), &|_| None).unwrap().admit(&mut config).unwrap();
        config
    }

    async fn status(mut stream: TcpStream) -> String {
        let mut answer = [0; 12];
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read_exact(&mut answer)).await;
        read.expect("an answer in time").unwrap();
        String::from_utf8_lossy(&answer[9..]).into_owned()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn long_answers_leave_turns_to_short_ones() {
        let (address, end) = serving(256).await;
        let mut long = Vec::new();
        for _ in 0..20 {
            long.push(sent(address, "127.0.0.1", "POST /long", "{}").await);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        for _ in 0..3 {
            assert_eq!(status(sent(address, "127.0.0.1", "POST /short", "{}").await).await, "200");
        }
        drop(end);
        for one in long {
            assert_eq!(status(one).await, "200");
        }
    }

    #[tokio::test]
    async fn methods_are_those_of_the_paths() {
        let (address, _end) = serving(256).await;
        for (what, expected) in [
            ("HEAD /livez", "200"),
            ("HEAD /healthz", "200"),
            ("HEAD /openapi.json", "200"),
            ("PUT /livez", "405"),
            ("POST /healthz", "405"),
            ("GET /short", "405"),
            ("POST /nowhere", "404"),
        ] {
            assert_eq!(status(sent(address, "127.0.0.1", what, "{}").await).await, expected, "{what}");
        }
    }

    /// Linux answers at every address that begins with 127.
    #[cfg(target_os = "linux")]
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn requests_of_one_host_take_no_place_of_another() {
        let (address, _end) = serving(2).await;
        let mut slow = Vec::new();
        for _ in 0..2 {
            slow.push(sent(address, "127.0.0.2", "POST /short", "{").await);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(status(sent(address, "127.0.0.2", "POST /short", "{}").await).await, "429");
        assert_eq!(status(sent(address, "127.0.0.3", "POST /short", "{}").await).await, "200");
        for mut one in slow {
            one.write_all(b"}").await.unwrap();
            assert_eq!(status(one).await, "200");
        }
    }

    /// Those that a trusted proxy names are told apart too, and nobody else can say who it is.
    #[cfg(target_os = "linux")]
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn behind_a_trusted_proxy_a_caller_is_the_host_that_it_names() {
        let (proxy, own) = (ProxyRule::parse("127.0.0.2").unwrap(), "x-forwarded-for: 198.51.100.1");
        let (address, _, _end) = serving_as(HttpConfig {
            max_requests_per_caller: 1,
            trusted_proxies: vec![proxy],
            ..HttpConfig::default()
        })
        .await;
        let mut slow = Vec::new();
        for (from, line) in [("127.0.0.2", own), ("127.0.0.3", own)] {
            slow.push(sent_with(address, from, "POST /short", line, "{").await);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        for (from, line, expected) in [
            ("127.0.0.2", own, "429"),
            ("127.0.0.2", "x-forwarded-for: 198.51.100.2, 198.51.100.1", "429"),
            ("127.0.0.2", "x-forwarded-for: 198.51.100.1, 198.51.100.2", "200"),
            ("127.0.0.2", "accept: */*", "200"),
            ("127.0.0.3", "x-forwarded-for: 198.51.100.2", "429"),
            ("127.0.0.4", own, "200"),
        ] {
            let answered = status(sent_with(address, from, "POST /short", line, "{}").await).await;
            assert_eq!(answered, expected, "{from}, {line}");
        }
        for mut one in slow {
            one.write_all(b"}").await.unwrap();
            assert_eq!(status(one).await, "200");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn each_caller_is_held_to_its_own_bounds() {
        let text = "callers:\n- {name: few, token: t1, max_requests_per_minute: 2}\n- {name: small, token: t2, body_limit_bytes: 1}\n\
                    - {name: one, token: t3, max_requests: 1}\n- {name: operator, token: t4, metrics: true}\n";
        let (address, _, _end) = serving_as(callers(text)).await;
        // The head of an answer without what the machine adds.
        let shown = |answer: &str| {
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            let wanted =
                |line: &&str| line.starts_with("HTTP") || line.contains("authenticate") || line.contains("retry");
            let head: Vec<&str> = head.lines().filter(wanted).collect();
            format!("{} {body}", head.join("; "))
        };
        let mut answers = Vec::new();
        for (token, what) in [
            ("t0", "POST /short"),
            ("t0", "GET /metrics"),
            ("t1", "POST /short"),
            ("t1", "GET /short"),
            ("t1", "POST /short"),
            ("t2", "POST /short"),
            ("t2", "GET /metrics"),
            ("t4", "POST /short"),
        ] {
            answers.push(format!("{token}: {}", shown(&told(address, token, what).await)));
        }
        insta::assert_snapshot!(answers.join("\n"), @r#"
        t0: HTTP/1.1 401 Unauthorized; www-authenticate: Bearer error="invalid_token" "the bearer token is not known"
        t0: HTTP/1.1 401 Unauthorized; www-authenticate: Bearer error="invalid_token" "the bearer token is not known"
        t1: HTTP/1.1 200 OK "/short"
        t1: HTTP/1.1 405 Method Not Allowed "the method is not allowed here; use POST"
        t1: HTTP/1.1 200 OK "/short"
        t2: HTTP/1.1 413 Payload Too Large "the body has more than 1 bytes"
        t2: HTTP/1.1 403 Forbidden "metrics are for callers that have `metrics: true`"
        t4: HTTP/1.1 200 OK "/short"
        "#);
        let over = told(address, "t1", "POST /short").await;
        let wait: u64 = over.split("retry-after: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
        assert!(over.starts_with("HTTP/1.1 429") && (30..=60).contains(&wait), "{over}");
        assert!(over.ends_with(&format!("\"you may send 2 requests a minute; try again in {wait} s\"")), "{over}");
        // What one has open takes no place of another.
        let mut slow = sent_with(address, "127.0.0.1", "POST /short", "authorization: Bearer t3", "{").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(told(address, "t3", "POST /short").await.starts_with("HTTP/1.1 429"));
        assert!(told(address, "t4", "POST /short").await.starts_with("HTTP/1.1 200"));
        slow.write_all(b"}").await.unwrap();
        assert_eq!(status(slow).await, "200");
        let metrics = told(address, "t4", "GET /metrics").await;
        let counted: Vec<&str> =
            metrics.lines().filter_map(|line| line.strip_prefix("contextweaver_answers_total")).collect();
        insta::assert_snapshot!(counted.join("\n"), @r#"
        {path="/short",status="200",caller="few"} 2
        {path="/short",status="200",caller="one"} 1
        {path="/short",status="200",caller="operator"} 2
        {path="/short",status="401"} 1
        {path="/short",status="405",caller="few"} 1
        {path="/short",status="413",caller="small"} 1
        {path="/short",status="429",caller="few"} 1
        {path="/short",status="429",caller="one"} 1
        "#);
    }

    /// A caller keeps its places whatever its host, unlike those who share a token.
    #[cfg(target_os = "linux")]
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_caller_of_a_file_is_one_at_all_its_hosts() {
        let (address, _, _end) = serving_as(callers("{callers: [{name: a, token: t, max_requests: 1}]}")).await;
        let line = "authorization: Bearer t";
        let mut slow = sent_with(address, "127.0.0.2", "POST /short", line, "{").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(status(sent_with(address, "127.0.0.3", "POST /short", line, "{}").await).await, "429");
        slow.write_all(b"}").await.unwrap();
        assert_eq!(status(slow).await, "200");
    }

    #[tokio::test]
    async fn callers_change_while_it_serves_and_nobody_else_is_let_in() {
        let (address, control, _end) = serving_as(callers("{callers: [{name: a, token: t1}]}")).await;
        let statuses = async |tokens: [&str; 2]| {
            let mut all = Vec::new();
            for token in tokens {
                all.push(told(address, token, "POST /short").await[9..12].to_owned());
            }
            all
        };
        assert_eq!(statuses(["t1", "t2"]).await, ["200", "401"]);
        control.put(callers("{callers: [{name: b, token: t2, max_requests_per_minute: 1}]}")).unwrap();
        assert_eq!(statuses(["t1", "t2"]).await, ["401", "200"]);
        // What was counted stays counted.
        control.put(callers("{callers: [{name: b, token: t1, max_requests_per_minute: 1}]}")).unwrap();
        assert_eq!(statuses(["t1", "t2"]).await, ["429", "401"]);
    }
}
