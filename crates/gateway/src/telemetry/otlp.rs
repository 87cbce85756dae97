//! OpenTelemetry: a span for each request and for each time that an upstream is asked, and the metrics, over OTLP/HTTP.
//!
//! Nothing waits for the collector: spans that have ended go through a bounded queue to a thread with a runtime of its own.
//! What finds the queue full is dropped, and so is what the collector does not take after some tries; both are counted in
//! the metrics.
//!
//! The messages are written here and not by the `opentelemetry` crates: these bring ten more crates and a second version of
//! two that are there already, and their queue does not say what it drops.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use time::OffsetDateTime;
use tokio::sync::{mpsc, oneshot};

use super::otlp_form::{Attributes, Counted, Exported, Resource, Said, Span, SpanKind, metrics, traces};
use super::run::Run;
use crate::common::settings::{FieldError, duration, expand};
use crate::protocol::trace_context::TraceContext;
use crate::session::client::Session;

/// Spans that wait to be sent, at most.
const QUEUE: usize = 2_048;

/// Spans of one message, at most.
const TOGETHER: usize = 512;

/// How long a span waits for others.
const GATHER: Duration = Duration::from_secs(1);

/// How long the collector has for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pauses before a message is sent again.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// How long the end waits for what is queued.
const LAST: Duration = Duration::from_secs(3);

/// Characters of a name in a span, at most.
const LONGEST_NAME: usize = 256;

/// The section `otlp` of a configuration file, before it is checked.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OtlpSection {
    endpoint: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default = "default_name")]
    service_name: String,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default = "yes")]
    traces: bool,
    #[serde(default = "yes")]
    metrics: bool,
    #[serde(default = "minute")]
    interval_seconds: f64,
    #[serde(default = "whole")]
    sample: f64,
}

fn default_name() -> String {
    "contextweaver".to_owned()
}

fn yes() -> bool {
    true
}

fn minute() -> f64 {
    60.0
}

fn whole() -> f64 {
    1.0
}

/// Where traces and metrics go.
#[derive(Clone, PartialEq)]
pub struct OtlpConfig {
    /// The address of the collector; `/v1/traces` and `/v1/metrics` are added to it.
    pub endpoint: String,
    /// Headers of every message; their values may be secrets and are not shown.
    pub headers: BTreeMap<String, String>,
    /// What the gateway is called there.
    pub service_name: String,
    /// Further attributes of the resource.
    pub attributes: BTreeMap<String, String>,
    /// Whether traces are sent.
    pub traces: bool,
    /// Whether metrics are sent.
    pub metrics: bool,
    /// How often metrics are sent.
    pub interval: Duration,
    /// The share of the traces that begin here and are recorded, from 0 to 1.
    pub sample: f64,
}

impl fmt::Debug for OtlpConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.headers.keys().collect();
        formatter
            .debug_struct("OtlpConfig")
            .field("service_name", &self.service_name)
            .field("headers", &names)
            .field("traces", &self.traces)
            .field("metrics", &self.metrics)
            .finish_non_exhaustive()
    }
}

impl OtlpSection {
    /// The checked section.
    ///
    /// # Errors
    /// [`FieldError`] for the first field that cannot be used.
    pub(crate) fn checked(self, environment: &dyn Fn(&str) -> Option<String>) -> Result<OtlpConfig, FieldError> {
        let field = |name: &str| format!("otlp.{name}");
        let endpoint =
            expand(&self.endpoint, environment).map_err(|error| FieldError::new(field("endpoint"), error))?;
        let is_address = reqwest::Url::parse(&endpoint).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !is_address {
            let reason = "must be the address of a collector, such as http://127.0.0.1:4318";
            return Err(FieldError::new(field("endpoint"), reason));
        }
        let mut headers = BTreeMap::new();
        for (name, value) in &self.headers {
            let place = || field(&format!("headers.{name}"));
            let value = expand(value, environment).map_err(|error| FieldError::new(place(), error))?;
            if HeaderName::try_from(name.as_str()).is_err() || HeaderValue::try_from(value.as_str()).is_err() {
                return Err(FieldError::new(place(), "is not a header; names and values are printable ASCII"));
            }
            headers.insert(name.clone(), value);
        }
        if !(0.0..=1.0).contains(&self.sample) {
            return Err(FieldError::new(field("sample"), format!("is {}; it must be from 0 to 1", self.sample)));
        }
        let interval =
            duration(self.interval_seconds).map_err(|error| FieldError::new(field("interval_seconds"), error))?;
        Ok(OtlpConfig {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            headers,
            service_name: self.service_name,
            attributes: self.attributes,
            traces: self.traces,
            metrics: self.metrics,
            interval,
            sample: self.sample,
        })
    }
}

enum Note {
    Span(Box<Span>),
    Flush(oneshot::Sender<()>),
}

/// The queue of spans to the thread that sends them.
#[derive(Debug)]
pub(crate) struct Otlp {
    notes: mpsc::Sender<Note>,
    traces: bool,
    sample: f64,
    counts: Arc<Counts>,
    run: Run,
}

#[derive(Debug, Default)]
struct Counts {
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    fn now(&self) -> Exported {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Exported { dropped: of(&self.dropped), failed: of(&self.failed) }
    }
}

impl Otlp {
    /// Begins to send what `counted` counts, and spans.
    ///
    /// # Errors
    /// A thread or a client cannot be made.
    pub(crate) fn start(config: &OtlpConfig, counted: Weak<dyn Counted>) -> io::Result<Self> {
        let (notes, queue) = mpsc::channel(QUEUE);
        let counts = Arc::new(Counts::default());
        let sending = Sending::new(config, counted, Arc::clone(&counts))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("otlp".to_owned()).spawn(move || runtime.block_on(sending.run(queue)))?;
        let run = Run::new(OffsetDateTime::now_utc);
        Ok(Self { notes, traces: config.traces, sample: config.sample, counts, run })
    }

    /// Spans that found the queue full, and those that the collector did not take.
    pub(crate) fn lost(&self) -> (u64, u64) {
        let Exported { dropped, failed } = self.counts.now();
        (dropped, failed)
    }

    /// A span that begins now, below `parent` or as the first of a trace; `None` when traces are not sent.
    pub(crate) fn begin(&self, kind: SpanKind, parent: Option<&TraceContext>) -> Option<OpenSpan<'_>> {
        if !self.traces {
            return None;
        }
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes).ok()?;
        let (trace, span) = bytes.split_at(16);
        let (mut trace, span) = (<[u8; 16]>::try_from(trace).ok()?, <[u8; 8]>::try_from(span).ok()?);
        let sampled = match parent {
            Some(parent) => {
                trace = parent.trace;
                parent.sampled
            }
            // The last bytes are random in every trace, whoever begins it.
            None => {
                let random = trace.iter().skip(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
                (random as f64 / u64::MAX as f64) < self.sample || self.sample >= 1.0
            }
        };
        let state = parent.and_then(|parent| parent.state.clone());
        Some(OpenSpan {
            otlp: self,
            context: TraceContext { trace, span, sampled, state },
            parent: parent.map(|parent| parent.span),
            name: String::new(),
            kind,
            start: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            began: Instant::now(),
            attributes: Vec::new(),
            error: None,
        })
    }

    /// A number for a session, which does not open it.
    pub(crate) fn number_of(&self, session: &Session) -> String {
        self.run.number_of(Some(session))
    }

    /// Waits, for a bounded time, until everything is sent.
    pub(crate) async fn flush(&self) {
        let (done, sent) = oneshot::channel();
        let flush = async {
            if self.notes.send(Note::Flush(done)).await.is_ok() {
                let _ = sent.await;
            }
        };
        let in_time = tokio::time::timeout(LAST, flush).await.is_ok();
        let Exported { dropped, failed } = self.counts.now();
        if !in_time || dropped + failed > 0 {
            tracing::warn!(dropped, failed, in_time, "some spans were not exported");
        }
    }
}

/// A span that has not ended; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct OpenSpan<'o> {
    otlp: &'o Otlp,
    context: TraceContext,
    parent: Option<[u8; 8]>,
    name: String,
    kind: SpanKind,
    start: Duration,
    began: Instant,
    attributes: Attributes,
    error: Option<String>,
}

impl OpenSpan<'_> {
    /// Its place in the trace, for what is below it.
    pub(crate) fn context(&self) -> &TraceContext {
        &self.context
    }

    /// Names it after a method and what it is about.
    pub(crate) fn named(&mut self, method: &str, target: Option<&str>) {
        let target = target.map(|target| format!(" {target}")).unwrap_or_default();
        self.name = format!("{method}{target}").chars().take(LONGEST_NAME).collect();
    }

    /// Adds an attribute.
    pub(crate) fn set(&mut self, key: &'static str, value: &str) {
        self.attributes.push((key, Said::Text(value.chars().take(LONGEST_NAME).collect())));
    }

    /// Adds an attribute that is a number.
    pub(crate) fn set_number(&mut self, key: &'static str, value: u64) {
        self.attributes.push((key, Said::Number(value)));
    }

    /// Says how it failed, in a word.
    pub(crate) fn fail(&mut self, error: impl Into<String>) {
        self.error = Some(error.into());
    }
}

impl Drop for OpenSpan<'_> {
    fn drop(&mut self) {
        if !self.context.sampled {
            return;
        }
        if let Some(error) = self.error.take() {
            self.set("error.type", &error);
            self.error = Some(String::new());
        }
        let span = Span {
            context: self.context.clone(),
            parent: self.parent,
            name: std::mem::take(&mut self.name),
            kind: self.kind,
            start: self.start,
            took: self.began.elapsed(),
            attributes: std::mem::take(&mut self.attributes),
            is_error: self.error.is_some(),
        };
        if self.otlp.notes.try_send(Note::Span(Box::new(span))).is_err() {
            self.otlp.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The other end of the queue.
struct Sending {
    client: reqwest::Client,
    endpoint: String,
    headers: HeaderMap,
    resource: Resource,
    /// How often metrics are sent; `None` when they are not.
    interval: Option<Duration>,
    metrics: Weak<dyn Counted>,
    counts: Arc<Counts>,
    start: Duration,
    /// Whether the log says already that the collector cannot be reached.
    complained: bool,
}

impl Sending {
    fn new(config: &OtlpConfig, metrics: Weak<dyn Counted>, counts: Arc<Counts>) -> io::Result<Self> {
        let mut headers = HeaderMap::new();
        for (name, value) in &config.headers {
            let name = HeaderName::try_from(name.as_str()).map_err(io::Error::other)?;
            let mut value = HeaderValue::try_from(value.as_str()).map_err(io::Error::other)?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        // What the operator says comes after what is said anyway, and wins.
        let mut attributes: BTreeMap<String, String> = BTreeMap::new();
        attributes.insert("service.name".to_owned(), config.service_name.clone());
        attributes.insert("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        attributes.insert("telemetry.sdk.language".to_owned(), "rust".to_owned());
        attributes.insert("telemetry.sdk.name".to_owned(), "contextweaver".to_owned());
        attributes.extend(config.attributes.clone());
        // One that is there already stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .http1_only()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(io::Error::other)?;
        Ok(Self {
            client,
            endpoint: config.endpoint.clone(),
            headers,
            resource: Resource { attributes: attributes.into_iter().collect() },
            interval: config.metrics.then_some(config.interval),
            metrics,
            counts,
            start: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            complained: false,
        })
    }

    async fn run(mut self, mut queue: mpsc::Receiver<Note>) {
        let mut spans: Vec<Span> = Vec::new();
        let every = self.interval.unwrap_or(Duration::from_secs(86_400));
        let mut tick = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut due = None;
        loop {
            let until: Option<tokio::time::Instant> = due;
            let gathered = async move {
                match until {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let mut waiting = None;
            let mut count_now = false;
            tokio::select! {
                note = queue.recv() => match note {
                    Some(Note::Span(span)) => {
                        spans.push(*span);
                        due.get_or_insert_with(|| tokio::time::Instant::now() + GATHER);
                        if spans.len() < TOGETHER {
                            continue;
                        }
                    }
                    Some(Note::Flush(done)) => (waiting, count_now) = (Some(done), true),
                    None => return,
                },
                () = gathered => {}
                _ = tick.tick() => count_now = true,
            }
            if !spans.is_empty() {
                let body = traces(&self.resource, &spans);
                if !self.send("/v1/traces", &body).await {
                    self.counts.failed.fetch_add(spans.len() as u64, Ordering::Relaxed);
                }
                spans.clear();
            }
            due = None;
            if let (true, Some(_), Some(counted)) = (count_now, self.interval, self.metrics.upgrade()) {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let body = metrics(&self.resource, &*counted, self.counts.now(), self.start, now);
                self.send("/v1/metrics", &body).await;
            }
            if let Some(done) = waiting {
                let _ = done.send(());
            }
        }
    }

    /// Whether the collector took a message.
    async fn send(&mut self, path: &str, body: &[u8]) -> bool {
        let mut pauses = PAUSES.into_iter();
        loop {
            let request = self.client.post(format!("{}{path}", self.endpoint));
            let answer = request.headers(self.headers.clone()).body(body.to_vec()).send().await;
            let (reason, again) = match answer {
                Ok(answer) if answer.status().is_success() => {
                    self.complained = false;
                    return true;
                }
                Ok(answer) => {
                    let status = answer.status().as_u16();
                    (format!("it answers {status}"), matches!(status, 429 | 502 | 503 | 504))
                }
                Err(error) => (error.without_url().to_string(), true),
            };
            match pauses.next().filter(|_| again) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => {
                    if !std::mem::replace(&mut self.complained, true) {
                        tracing::warn!(reason, path, "the collector rejects what is exported");
                    }
                    return false;
                }
            }
        }
    }
}
