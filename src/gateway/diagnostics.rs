//! What happened, line by line, for operators: counts, durations and error codes, never content.
//!
//! An event holds names alone: the meta-tool, the id and namespace of a tool that is in the catalog, the names of those
//! arguments that its schema has, the code of an error. Queries, paths, values and results never get there, and neither
//! does what may be any text: an id that the catalog does not know, a name of an argument that no schema has. Sessions have numbers of this file's own: the id of an HTTP session
//! opens it.
//!
//! Recording never holds up or fails a call: events go through a bounded queue to a thread that writes, and what
//! finds the queue full is counted and dropped. Calls of a passthrough in front of a single upstream are not events:
//! they are not looked into.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use tokio::sync::{mpsc, oneshot};

use super::error::GatewayError;
use super::guard::sign::SignatureError;
use super::hub::Gateway;
use super::question::is_question;
use super::session::Session;
use super::snapshot::Snapshot;
use super::surface::MetaTool;
use super::wire::{Members, Raw};
use crate::text::sha256_hex;

/// The version of the form of events.
pub const EVENT_VERSION: u32 = 1;

/// Events that wait to be written, at most.
const QUEUE: usize = 4096;

/// How long the end waits for what is queued.
const LAST_WRITE: Duration = Duration::from_secs(2);

/// Names of arguments in an event, at most.
const MOST_NAMES: usize = 64;

/// Characters of such a name, at most: a longer one counts as unknown.
const LONGEST_NAME: usize = 64;

/// Digits of the number of a session.
const SESSION_DIGITS: usize = 32;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EventName {
    /// The lists of the upstreams, or a file of tools, were read.
    #[serde(rename = "catalog.loaded")]
    CatalogLoaded,
    /// Cards were given.
    #[serde(rename = "browse.completed")]
    BrowseCompleted,
    /// They were not.
    #[serde(rename = "browse.failed")]
    BrowseFailed,
    /// A definition was given.
    #[serde(rename = "hydrate.completed")]
    HydrateCompleted,
    /// It was not.
    #[serde(rename = "hydrate.failed")]
    HydrateFailed,
    /// An upstream answered; `success` is false when it answered that the tool failed.
    #[serde(rename = "execute.completed")]
    ExecuteCompleted,
    /// A call was refused or got no answer.
    #[serde(rename = "execute.failed")]
    ExecuteFailed,
    /// A call was checked and not made.
    #[serde(rename = "execute.dry_run")]
    ExecuteDryRun,
    /// A call was answered from the cache.
    #[serde(rename = "execute.cache_hit")]
    ExecuteCacheHit,
    /// A part of a result was given.
    #[serde(rename = "view.completed")]
    ViewCompleted,
    /// It was not.
    #[serde(rename = "view.failed")]
    ViewFailed,
    /// The signature of a call, or of an answer to one, was missing or wrong.
    #[serde(rename = "signature.refused")]
    SignatureRefused,
}

/// A line of the file. The fields are in the order of their names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// More of it: `meta_tool`, `argument_names`, `unknown_arguments` (how many further ones), `attempts` where there
    /// were several, and `code` and `retryable` of a failure.
    #[serde(default)]
    pub attributes: Map<String, Value>,
    /// Milliseconds that it took, to three decimals.
    pub duration_ms: Option<f64>,
    /// What happened.
    pub event: EventName,
    /// The namespace of the tool.
    pub namespace: Option<String>,
    /// Tells clients apart within one run, 32 hexadecimal digits; the run's own for what no client asked for.
    pub session_id: String,
    /// Whether it went well.
    pub success: bool,
    /// When it ended, UTC.
    pub timestamp: String,
    /// The tool that it is about, when the catalog knows it.
    pub tool_id: Option<String>,
    /// [`EVENT_VERSION`].
    pub version: u32,
}

/// What happened, without what every event has.
#[derive(Debug, Clone)]
pub struct Happening {
    /// What.
    pub event: EventName,
    /// Whether it went well.
    pub success: bool,
    /// How long it took.
    pub duration: Option<Duration>,
    /// The id and the namespace of the tool.
    pub tool: Option<(String, String)>,
    /// More of it.
    pub attributes: Map<String, Value>,
}

/// A clock that tells the time of day.
pub type WallClock = fn() -> OffsetDateTime;

enum Note {
    Line(Vec<u8>),
    Flush(oneshot::Sender<()>),
}

/// Where events go.
#[derive(Debug)]
pub struct Diagnostics {
    notes: mpsc::Sender<Note>,
    dropped: Arc<AtomicU64>,
    /// Tells this run from others.
    run: String,
    clock: WallClock,
}

impl Diagnostics {
    /// Appends to the file at `path`, which is made when it is missing, readable by its owner alone.
    ///
    /// # Errors
    /// The file cannot be opened, or a thread cannot be started.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        end_last_line(&mut file)?;
        Self::to(file, OffsetDateTime::now_utc)
    }

    /// Writes to `sink`, with the times of `clock`.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn to(sink: impl Write + Send + 'static, clock: WallClock) -> io::Result<Self> {
        let (notes, queue) = mpsc::channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&dropped);
        // Files block: a task would hold up the calls that share its thread.
        std::thread::Builder::new().name("diagnostics".to_owned()).spawn(move || write(sink, queue, &counter))?;
        let run = format!("{}/{}", clock().unix_timestamp_nanos(), std::process::id());
        Ok(Self { notes, dropped, run, clock })
    }

    /// Records what happened, on behalf of a client or the gateway's own. Never waits.
    pub fn record(&self, session: Option<&Session>, happening: Happening) {
        let (tool_id, namespace) = happening.tool.unzip();
        let event = Event {
            attributes: happening.attributes,
            duration_ms: happening.duration.map(|time| (time.as_secs_f64() * 1e6).round() / 1e3),
            event: happening.event,
            namespace,
            session_id: self.number_of(session),
            success: happening.success,
            timestamp: timestamp((self.clock)()),
            tool_id,
            version: EVENT_VERSION,
        };
        let Ok(mut line) = serde_json::to_vec(&event) else { return };
        line.push(b'\n');
        if self.notes.try_send(Note::Line(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Events that were not written: the queue was full, or the file could not be written.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits, for a bounded time, until everything recorded so far is written.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        let flush = async {
            if self.notes.send(Note::Flush(done)).await.is_ok() {
                let _ = written.await;
            }
        };
        let in_time = tokio::time::timeout(LAST_WRITE, flush).await.is_ok();
        let dropped = self.dropped();
        if dropped > 0 || !in_time {
            tracing::warn!(dropped, in_time, "some diagnostics were not written");
        }
    }

    fn number_of(&self, session: Option<&Session>) -> String {
        let id = session.map_or("", Session::id);
        let mut digits = sha256_hex(format!("{}/{id}", self.run).as_bytes());
        digits.truncate(SESSION_DIGITS);
        digits
    }
}

/// A line that an earlier run left unfinished must not take the next one with it.
fn end_last_line(file: &mut File) -> io::Result<()> {
    if file.metadata()?.is_file() && file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(())
}

fn write(mut sink: impl Write, mut queue: mpsc::Receiver<Note>, dropped: &AtomicU64) {
    /// Bytes that are written in one go, about.
    const TOGETHER: usize = 64 * 1024;
    let (mut batch, mut waiting) = (Vec::new(), Vec::new());
    while let Some(first) = queue.blocking_recv() {
        let (mut next, mut lines) = (Some(first), 0);
        while let Some(note) = next {
            match note {
                Note::Line(line) => {
                    batch.extend_from_slice(&line);
                    lines += 1;
                }
                Note::Flush(done) => waiting.push(done),
            }
            next = if batch.len() < TOGETHER { queue.try_recv().ok() } else { None };
        }
        if let Err(error) = sink.write_all(&batch).and_then(|()| sink.flush())
            && dropped.fetch_add(lines, Ordering::Relaxed) == 0
        {
            tracing::warn!(%error, "diagnostics cannot be written");
        }
        batch.clear();
        for done in waiting.drain(..) {
            let _ = done.send(());
        }
    }
}

fn timestamp(time: OffsetDateTime) -> String {
    let (date, clock) = (time.date(), time.time());
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}+00:00",
        date.year(),
        u8::from(date.month()),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second(),
        clock.microsecond()
    )
}

/// What a signature belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Signed {
    /// A call of a client.
    Call,
    /// An upstream's answer.
    Answer,
}

impl Signed {
    /// The word under which it is counted and recorded.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Answer => "answer",
        }
    }
}

/// A call as far as it is recorded.
#[derive(Debug, Clone, Copy)]
pub(super) enum Called<'c> {
    /// A meta-tool with its arguments.
    Meta(MetaTool, Option<&'c RawValue>),
    /// A tool by the name under which it is listed, with its own arguments.
    Published(&'c str, Option<&'c RawValue>),
}

/// How a call was answered, written down on its way; copies are of one record.
#[derive(Debug, Clone, Default)]
pub(super) struct Trace(Arc<Marks>);

#[derive(Debug, Default)]
struct Marks {
    attempts: AtomicU32,
    kept: AtomicBool,
}

impl Trace {
    /// The upstream was asked so often.
    pub(super) fn set_attempts(&self, attempts: u32) {
        self.0.attempts.store(attempts, Ordering::Relaxed);
    }

    /// The answer is a kept one.
    pub(super) fn set_kept(&self) {
        self.0.kept.store(true, Ordering::Relaxed);
    }

    fn attempts(&self) -> u32 {
        self.0.attempts.load(Ordering::Relaxed)
    }

    fn was_kept(&self) -> bool {
        self.0.kept.load(Ordering::Relaxed)
    }
}

#[derive(Deserialize, Default)]
struct Arguments<'a> {
    tool_id: Option<String>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(default)]
    dry_run: bool,
}

impl Gateway {
    /// Records a call that has ended.
    pub(super) fn observe(
        &self,
        session: &Session,
        snapshot: &Snapshot,
        called: Called<'_>,
        started: Instant,
        result: &Result<Raw, GatewayError>,
        trace: &Trace,
    ) {
        let Some(diagnostics) = &self.diagnostics else { return };
        let duration = started.elapsed();
        let (tool, own, arguments) = match called {
            Called::Meta(tool, arguments) => {
                let own = arguments.and_then(|text| serde_json::from_str::<Arguments<'_>>(text.get()).ok());
                let own = own.unwrap_or_default();
                let is_call = tool == MetaTool::Execute;
                let arguments = if is_call { own.args } else { arguments };
                (tool, own, arguments)
            }
            Called::Published(name, arguments) => {
                let own = Arguments { tool_id: Some(name.to_owned()), ..Arguments::default() };
                (MetaTool::Execute, own, arguments)
            }
        };
        let found = own.tool_id.as_deref().and_then(|id| snapshot.tool(id));
        let mut attributes = Map::new();
        let known = match (called, found) {
            (Called::Meta(tool, _), _) if tool != MetaTool::Execute => properties(&tool.definition()["inputSchema"]),
            (_, Some((_, item))) => item.args_schema.as_deref().map(properties).unwrap_or_default(),
            _ => BTreeSet::new(),
        };
        let (names, unknown) = names(arguments, &known);
        attributes.insert("argument_names".to_owned(), names.into());
        if trace.attempts() > 1 {
            attributes.insert("attempts".to_owned(), trace.attempts().into());
        }
        let mut success = true;
        match result {
            Err(error) => {
                success = false;
                attributes.insert("code".to_owned(), json!(error.code));
            }
            Ok(result) if tool == MetaTool::Execute && is_error(result) => {
                success = false;
                attributes.insert("tool_error".to_owned(), true.into());
            }
            Ok(result) if is_question(result) => {
                attributes.insert("input_required".to_owned(), true.into());
            }
            Ok(_) => {}
        }
        attributes.insert("meta_tool".to_owned(), tool.name().into());
        if let Err(error) = result {
            attributes.insert("retryable".to_owned(), error.retryable.into());
        }
        if unknown > 0 {
            attributes.insert("unknown_arguments".to_owned(), unknown.into());
        }
        let from_cache = result.is_ok() && trace.was_kept();
        let event = if from_cache { EventName::ExecuteCacheHit } else { event_of(tool, result.is_ok(), own.dry_run) };
        diagnostics.record(
            Some(session),
            Happening {
                event,
                success,
                duration: Some(duration),
                tool: found.map(|(_, item)| (item.id.clone(), item.namespace.clone())),
                attributes,
            },
        );
    }

    /// Counts and records that a signature was not taken, and why; nothing of what was signed.
    pub(super) fn signature_refused(&self, session: &Session, signed: Signed, error: &SignatureError) {
        self.metrics.signature_refused(signed.label(), error.reason());
        tracing::warn!(of = signed.label(), %error, "a signature is refused");
        let Some(diagnostics) = &self.diagnostics else { return };
        let mut attributes = Map::new();
        attributes.insert("reason".to_owned(), error.reason().into());
        attributes.insert("signed".to_owned(), signed.label().into());
        let event = EventName::SignatureRefused;
        diagnostics.record(Some(session), Happening { event, success: false, duration: None, tool: None, attributes });
    }

    /// Records that a snapshot is served from now on.
    pub(super) fn observe_catalog(&self, snapshot: &Snapshot, started: Instant) {
        let Some(diagnostics) = &self.diagnostics else { return };
        let counts = snapshot.counts();
        let Value::Object(attributes) = json!({
            "generation": snapshot.generation,
            "left_out": counts.left_out,
            "prompts": counts.prompts,
            "resources": counts.resources,
            "tools": counts.tools,
        }) else {
            return;
        };
        let (event, duration) = (EventName::CatalogLoaded, Some(started.elapsed()));
        diagnostics.record(None, Happening { event, success: true, duration, tool: None, attributes });
    }
}

fn event_of(tool: MetaTool, completed: bool, dry_run: bool) -> EventName {
    match (tool, completed) {
        (MetaTool::Browse | MetaTool::ResourceBrowse | MetaTool::PromptBrowse, true) => EventName::BrowseCompleted,
        (MetaTool::Browse | MetaTool::ResourceBrowse | MetaTool::PromptBrowse, false) => EventName::BrowseFailed,
        (MetaTool::Hydrate, true) => EventName::HydrateCompleted,
        (MetaTool::Hydrate, false) => EventName::HydrateFailed,
        (MetaTool::View, true) => EventName::ViewCompleted,
        (MetaTool::View, false) => EventName::ViewFailed,
        (MetaTool::Execute, true) if dry_run => EventName::ExecuteDryRun,
        (MetaTool::Execute | MetaTool::ResourceRead | MetaTool::PromptGet, true) => EventName::ExecuteCompleted,
        (MetaTool::Execute | MetaTool::ResourceRead | MetaTool::PromptGet, false) => EventName::ExecuteFailed,
    }
}

/// The names of an object's members that are known, in ascending order, and how many others there are.
fn names(arguments: Option<&RawValue>, known: &BTreeSet<String>) -> (Vec<String>, usize) {
    let members = arguments.and_then(|text| serde_json::from_str::<Members<'_>>(text.get()).ok()).unwrap_or_default();
    let names: BTreeSet<&str> = members.0.iter().map(|(name, _)| name.as_ref()).collect();
    let (known, unknown): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| known.contains(*name));
    (known.into_iter().take(MOST_NAMES).map(str::to_owned).collect(), unknown.len())
}

/// The names that a schema gives to arguments.
fn properties(schema: &Value) -> BTreeSet<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let short = |name: &&String| name.chars().nth(LONGEST_NAME).is_none();
    properties.into_iter().flat_map(|properties| properties.keys()).filter(short).cloned().collect()
}

/// Whether a `CallToolResult` says that the tool failed.
fn is_error(result: &Raw) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Outcome {
        #[serde(default)]
        is_error: bool,
    }
    result.read::<Outcome>().is_ok_and(|outcome| outcome.is_error)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::gateway::error::Code;
    use crate::gateway::session::lock;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            lock(&self.0).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn noon() -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_795_348_800).unwrap() + time::Duration::microseconds(42)
    }

    fn happening(event: EventName) -> Happening {
        Happening {
            event,
            success: true,
            duration: Some(Duration::from_nanos(1_234_567)),
            tool: Some(("a:b#00000000".to_owned(), "a".to_owned())),
            attributes: Map::new(),
        }
    }

    #[tokio::test]
    async fn an_event_is_one_line_with_its_keys_in_order() {
        let sink = Sink::default();
        let diagnostics = Diagnostics::to(sink.clone(), noon).unwrap();
        let session = Session::new("secret-session");
        diagnostics.record(Some(&session), happening(EventName::ExecuteCacheHit));
        diagnostics.flush().await;
        let text = String::from_utf8(lock(&sink.0).clone()).unwrap();
        let event: Event = serde_json::from_str(&text).unwrap();
        assert_eq!(event.session_id.len(), SESSION_DIGITS);
        let shown = text.replace(&event.session_id, "SESSION");
        insta::assert_snapshot!(
            shown,
            @r#"{"attributes":{},"duration_ms":1.235,"event":"execute.cache_hit","namespace":"a","session_id":"SESSION","success":true,"timestamp":"2026-11-22T12:00:00.000042+00:00","tool_id":"a:b#00000000","version":1}"#
        );
    }

    #[tokio::test]
    async fn a_sink_that_fails_or_stalls_costs_events_and_nothing_else() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let diagnostics = Diagnostics::to(Full, noon).unwrap();
        diagnostics.record(None, happening(EventName::BrowseCompleted));
        diagnostics.flush().await;
        assert_eq!(diagnostics.dropped(), 1);

        struct Stalled(std::sync::mpsc::Receiver<()>);
        impl Write for Stalled {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let _ = self.0.recv();
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (go_on, stalled) = std::sync::mpsc::channel();
        let diagnostics = Diagnostics::to(Stalled(stalled), noon).unwrap();
        for _ in 0..3 * QUEUE {
            diagnostics.record(None, happening(EventName::BrowseCompleted));
        }
        assert!(diagnostics.dropped() >= QUEUE as u64);
        drop(go_on);
    }

    #[test]
    fn a_file_with_an_unfinished_line_gets_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        std::fs::write(&path, "{\"torn\":").unwrap();
        drop(Diagnostics::open(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"torn\":\n");
        drop(Diagnostics::open(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"torn\":\n");
    }

    #[tokio::test]
    async fn calls_are_recorded_without_what_they_carry() {
        let folder = tempfile::tempdir().unwrap();
        let (catalog, events) = (folder.path().join("tools.json"), folder.path().join("events.jsonl"));
        let tools = r#"[{"name":"send_mail","description":"Send a mail","inputSchema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}}]"#;
        std::fs::write(&catalog, tools).unwrap();
        let config = crate::gateway::GatewayConfig {
            catalog: Some(catalog),
            diagnostics: Some(events.clone()),
            ..Default::default()
        };
        let gateway = Gateway::start(config).await.unwrap();
        let id = gateway.snapshot().tools.as_ref().unwrap().router.catalog().items()[0].id.clone();
        let (out, _client) = mpsc::channel(16);
        let caller = crate::gateway::Caller::new(Session::new("s"), crate::gateway::ClientInfo::default(), out);
        let calls = [
            json!({"name": "tool_browse", "arguments": {"query": "SECRET words"}}),
            json!({"name": "tool_browse", "arguments": {"path": "/SECRET"}}),
            json!({"name": "tool_execute", "arguments": {"tool_id": id, "args": {"to": "SECRET"}, "dry_run": true}}),
            json!({"name": "tool_execute", "arguments": {"tool_id": id, "args": {"to": "SECRET"}}}),
            json!({"name": "tool_execute", "arguments": {"tool_id": "SECRET", "args": {"a": 1}}}),
            json!({"name": "tool_execute", "arguments": {"tool_id": id, "args": {"to": "", "SECRET": 1, "SECRET2": 2}}}),
            json!({"name": "tool_view", "arguments": {"handle": "SECRET", "selector": "SECRET"}}),
        ];
        for call in calls {
            gateway.answer(&caller, "tools/call", Some(&Raw::of(&call))).await.unwrap();
        }
        gateway.close().await;
        let text = std::fs::read_to_string(events).unwrap();
        assert!(!text.contains("SECRET"), "{text}");
        let shown: Vec<String> = text
            .lines()
            .map(|line| serde_json::from_str::<Event>(line).unwrap())
            .map(|event| {
                format!("{} {} {:?} {}", json!(event.event), event.success, event.namespace, json!(event.attributes))
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
    "catalog.loaded" true None {"generation":1,"left_out":0,"prompts":0,"resources":0,"tools":1}
    "browse.completed" true None {"argument_names":["query"],"meta_tool":"tool_browse"}
    "browse.failed" false None {"argument_names":["path"],"code":"PATH_INVALID","meta_tool":"tool_browse","retryable":false}
    "execute.dry_run" true Some("mcp") {"argument_names":["to"],"meta_tool":"tool_execute"}
    "execute.failed" false Some("mcp") {"argument_names":["to"],"code":"UPSTREAM_UNAVAILABLE","meta_tool":"tool_execute","retryable":true}
    "execute.failed" false None {"argument_names":[],"code":"HYDRATE_FAILED","meta_tool":"tool_execute","retryable":false,"unknown_arguments":1}
    "execute.failed" false Some("mcp") {"argument_names":["to"],"code":"UPSTREAM_UNAVAILABLE","meta_tool":"tool_execute","retryable":true,"unknown_arguments":2}
    "view.failed" false None {"argument_names":["handle","selector"],"code":"VIEW_FAILED","meta_tool":"tool_view","retryable":false}
    "#);
    }

    #[tokio::test]
    async fn attempts_and_kept_results_are_told_apart() {
        use crate::gateway::config::{Era, GatewayConfig, Target, UpstreamConfig};
        use crate::gateway::upstream::{Fault, InProcess};
        let folder = tempfile::tempdir().unwrap();
        let events = folder.path().join("events.jsonl");
        let calls = AtomicU32::new(0);
        let answer = move |method: &str, _: Option<&Raw>| match method {
            "initialize" => Ok(Raw::of(&json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}))),
            "tools/list" => Ok(Raw::of(&json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}))),
            _ if calls.fetch_add(1, Ordering::Relaxed) == 0 => Err(Fault::Timeout(Duration::ZERO)),
            _ => Ok(Raw::of(&json!({"content": []}))),
        };
        let text = "{cache: {read_only: true, allow: ['*']}, retry: {max_attempts: 2, base_delay: 0}}";
        let mut config = GatewayConfig::parse(text, Path::new("/"), &|_| None).unwrap();
        let target = Target::InProcess(InProcess::new(answer));
        let upstream = UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(target) };
        config.upstreams.insert("u".to_owned(), upstream);
        config.diagnostics = Some(events.clone());
        let gateway = Gateway::start(config).await.unwrap();
        let id = gateway.snapshot().tools.as_ref().unwrap().router.catalog().items()[0].id.clone();
        let (out, _client) = mpsc::channel(16);
        let caller = crate::gateway::Caller::new(Session::new("s"), crate::gateway::ClientInfo::default(), out);
        for _ in 0..2 {
            let call = Raw::of(&json!({"name": "tool_execute", "arguments": {"tool_id": id}}));
            gateway.answer(&caller, "tools/call", Some(&call)).await.unwrap();
        }
        gateway.close().await;
        let text = std::fs::read_to_string(events).unwrap();
        let events = text.lines().skip(1).map(|line| serde_json::from_str::<Event>(line).unwrap());
        let shown: Vec<String> =
            events.map(|event| format!("{} {}", json!(event.event), json!(event.attributes.get("attempts")))).collect();
        assert_eq!(shown, [r#""execute.completed" 2"#, r#""execute.cache_hit" null"#]);
    }

    #[test]
    fn every_meta_tool_has_its_event() {
        let error = GatewayError::new(Code::PromptNotFound, "x");
        assert_eq!(json!(event_of(MetaTool::PromptGet, false, false)), "execute.failed", "{error}");
        assert_eq!(json!(event_of(MetaTool::Execute, true, true)), "execute.dry_run");
        assert_eq!(json!(event_of(MetaTool::Execute, false, true)), "execute.failed");
        assert_eq!(json!(event_of(MetaTool::ResourceBrowse, true, false)), "browse.completed");
    }
}
