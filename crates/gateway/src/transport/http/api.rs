//! An interface of JSON over HTTP that is not MCP: documents in, documents out.
//!
//! What there is to ask and what the answers are, an [`Api`] says. Connections, hosts, tokens, bounds on requests, turns for
//! long work, `/livez`, `/healthz` and `/metrics` are those of the gateway.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use serde_json::json;
use tokio::sync::Semaphore;

use super::admission::check_content_type;
use super::headers::trace_of;
use super::listener::{Doors, Endpoint, HttpError, Listener, Neighbour, read};
use super::load::Load;
use super::reply::{Refused, Reply, whole};
use crate::common::sync::lock;
use crate::common::work::{BUDGET, Exhausted, aside, places, work_of};
use crate::config::http::HttpConfig;
use crate::protocol::headers::JSON;
use crate::session::identity::Identity;
use crate::telemetry::metrics::{Durations, Text};
use crate::telemetry::otlp::{OpenSpan, Otlp, OtlpConfig};
use crate::telemetry::otlp_form::{Counted, Said, SeriesWriter, SpanKind};

/// What the conventions of OpenTelemetry call the path that was asked.
const ROUTE: &str = "http.route";

/// What they call the status of an answer.
const STATUS: &str = "http.response.status_code";

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
    /// What the requests that are being served take up. Who shows the same token, or none, is told apart by host.
    load: Load,
    /// Turns of answers that may take many seconds: one less than there are, so that no short one waits for them.
    long: Arc<Semaphore>,
    answers: Arc<Answers>,
    /// Where traces and metrics go, when they are sent.
    otlp: Option<Otlp>,
}

/// How many answers there were, by path and status, and how long they took, with the wait for a turn.
#[derive(Debug, Default)]
struct Answers(Mutex<BTreeMap<(&'static str, u16), Durations>>);

impl Counted for Answers {
    fn write(&self, into: &mut SeriesWriter<'_>) {
        let answers = lock(&self.0).clone();
        let points: Vec<_> = answers
            .into_iter()
            .map(|((path, status), took)| {
                (vec![(ROUTE, Said::from(path)), (STATUS, Said::Number(status.into()))], took)
            })
            .collect();
        into.histogram("http.server.request.duration", "Time to answer, by path and status.", &points);
    }
}

impl<A: Api> ApiServer<A> {
    /// Listens, and serves nobody yet. Of `config`, what is about sessions plays no part.
    ///
    /// # Errors
    /// The address cannot be listened at, or must not without a token.
    pub async fn bind(api: Arc<A>, config: HttpConfig) -> Result<Self, HttpError> {
        let listener = Listener::bind(config).await?;
        let doors = listener.doors().clone();
        let load = Load::new(&doors.now().config);
        let long = Arc::new(Semaphore::new(places() - 1));
        let served = Served { api, doors, load, long, answers: Arc::default(), otlp: None };
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

impl<A: Api> Endpoint for Served<A> {
    async fn answer(
        self: Arc<Self>,
        client: Result<Arc<Identity>, Refused>,
        head: Parts,
        body: Incoming,
    ) -> Result<Response<Reply>, Refused> {
        let start = Instant::now();
        let known = self.api.path(head.uri.path());
        let span = known.and_then(|path| self.span(path, &head, client.as_deref().ok()));
        let response = match (known, head.uri.path(), &head.method) {
            (Some(path), _, &Method::POST) => self.operation(client, path, &head, body).await,
            (Some(_), ..) => Ok(self.not_allowed("POST")),
            (None, "/openapi.json", &Method::GET | &Method::HEAD) => {
                Ok(whole(StatusCode::OK, JSON, self.api.description()))
            }
            (None, "/healthz", &Method::GET | &Method::HEAD) => {
                Ok(whole(StatusCode::OK, JSON, json!({"live": true, "ready": true}).to_string()))
            }
            (None, "/metrics", &Method::GET | &Method::HEAD) => {
                client.map(|_| whole(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", self.metrics()))
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
            lock(&self.answers.0).entry((path, response.status().as_u16())).or_default().add(start.elapsed());
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
            span.set("contextweaver.caller", &client.name);
        }
        Some(span)
    }

    async fn operation(
        &self,
        client: Result<Arc<Identity>, Refused>,
        path: &'static str,
        head: &Parts,
        body: Incoming,
    ) -> Result<Response<Reply>, Refused> {
        let client = client?;
        check_content_type(&head.headers)?;
        let config = Arc::clone(&self.doors.now().config);
        let whose = match head.extensions.get() {
            Some(Neighbour(host)) => format!("{} at {host}", client.name),
            None => client.name.clone(),
        };
        let mut taken = self.load.take(&whose, &body, config.body_limit)?;
        let body: Bytes = read(body, &config).await?;
        taken.shrink(body.len());
        let answer = self.worked_out(path, &whose, body).await.map_err(|error| {
            let status = match error {
                Exhausted::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
                Exhausted::TooLong(_) => StatusCode::GATEWAY_TIMEOUT,
                Exhausted::TooMuch(_) | Exhausted::Stopped => StatusCode::INTERNAL_SERVER_ERROR,
            };
            Refused::text(status, format!("the request {error}"))
        })?;
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Ok(whole(status, JSON, answer.body))
    }

    /// Answers in the turns of the caller; what may take long has turns of its own.
    async fn worked_out(&self, path: &'static str, whose: &str, body: Bytes) -> Result<Answer, Exhausted> {
        let api = Arc::clone(&self.api);
        if !self.api.is_long(path) {
            return work_of(whose, aside(move || api.answer(path, &body))).await;
        }
        let turn = tokio::time::timeout(BUDGET, Arc::clone(&self.long).acquire_owned());
        let turn = turn.await.map_err(|_| Exhausted::Busy(BUDGET))?;
        // The turn ends with the work, also where nobody waits for it any more.
        let working = aside(move || {
            let answer = api.answer(path, &body);
            drop(turn);
            answer
        });
        work_of(&format!("{whose}, long"), working).await
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
        text.head("answers_total", "counter", "Answers by path and status.");
        for ((path, status), took) in &*answers {
            text.sample("answers_total", &[("path", path), ("status", &status.to_string())], &took.count());
        }
        text.head(
            "answer_seconds_total",
            "counter",
            "Time to answer, by path and status, including the wait for a turn.",
        );
        for ((path, status), took) in &*answers {
            let labels = [("path", *path), ("status", &status.to_string())];
            text.sample("answer_seconds_total", &labels, &took.sum().as_secs_f64());
        }
        if let Some((dropped, failed)) = self.otlp.as_ref().map(Otlp::lost) {
            text.spans_lost(dropped, failed);
        }
        text.0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpSocket, TcpStream};

    use super::*;

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
        let (end, ended) = channel();
        let listen = "127.0.0.1:0".parse().unwrap();
        let config = HttpConfig { listen, max_requests_per_caller: most, ..HttpConfig::default() };
        let server = ApiServer::bind(Arc::new(TwoPaths(Mutex::new(ended))), config).await.unwrap();
        let address = server.address().unwrap();
        tokio::spawn(server.serve(std::future::pending()));
        (address, end)
    }

    /// Sends a request from an address of this machine, with `body` of the two bytes that it announces.
    async fn sent(to: SocketAddr, from: &str, what: &str, body: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
        let mut stream = socket.connect(to).await.unwrap();
        let head = format!("{what} HTTP/1.1\r\nhost: {to}\r\ncontent-type: application/json\r\ncontent-length: 2");
        stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.unwrap();
        stream
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
}
