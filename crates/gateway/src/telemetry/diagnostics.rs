//! Diagnostics: a file of events for operators, one a line, with counts, durations and error codes and no content.
//!
//! An event holds only names: the meta-tool, the id and namespace of a tool in the catalog, the names of those arguments
//! that its schema has, the code of an error, the caller as the configuration or the authorization server names it.
//! Queries, paths, values and results are never written, nor is any text that a client could choose: an id that the
//! catalog does not know, an argument that no schema has. Sessions have numbers of this file's own, since the id of an
//! HTTP session gives access to it.
//!
//! Recording never delays or fails a call: events go through a bounded queue to a thread that writes; what finds the
//! queue full is counted and dropped. Calls of a passthrough with a single upstream are not events: they are not looked
//! into.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use tokio::sync::{mpsc, oneshot};

pub use super::run::WallClock;
use super::run::{Run, timestamp};
use crate::session::client::Session;

/// The version of the form of events.
pub const EVENT_VERSION: u32 = 1;

/// Events that wait to be written, at most.
const QUEUE: usize = 4096;

/// How long the end waits for what is queued.
const LAST_WRITE: Duration = Duration::from_secs(2);

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EventName {
    /// The lists of the upstreams, or a file of tools, were read.
    #[serde(rename = "catalog.loaded")]
    CatalogLoaded,
    /// A search or listing of cards was answered.
    #[serde(rename = "browse.completed")]
    BrowseCompleted,
    /// A search or listing of cards failed.
    #[serde(rename = "browse.failed")]
    BrowseFailed,
    /// The definition of a tool was given.
    #[serde(rename = "hydrate.completed")]
    HydrateCompleted,
    /// The definition of a tool could not be given.
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
    /// A part of a stored result was shown.
    #[serde(rename = "view.completed")]
    ViewCompleted,
    /// The part of a stored result could not be shown.
    #[serde(rename = "view.failed")]
    ViewFailed,
    /// The signature of a call, or of an answer to one, was missing or wrong.
    #[serde(rename = "signature.refused")]
    SignatureRefused,
}

/// As events write it.
impl fmt::Display for EventName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

/// An event: one line of the file. The fields are in alphabetical order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Further attributes: `meta_tool`, `caller`, `decision` (`allow`, `refuse` or `ask`), `argument_names`,
    /// `unknown_arguments` (how many further ones), `attempts` where there were several, `code` and `retryable` of a failure,
    /// and `answer_tokens` and `result_tokens` where they are counted. Files of earlier versions lack some of them.
    #[serde(default)]
    pub attributes: Map<String, Value>,
    /// Milliseconds that it took, to three decimals.
    pub duration_ms: Option<f64>,
    /// The kind of event.
    pub event: EventName,
    /// The namespace of the tool.
    pub namespace: Option<String>,
    /// Tells clients apart within one run, 32 hexadecimal digits; the run's own for what no client asked for.
    pub session_id: String,
    /// Whether the operation succeeded.
    pub success: bool,
    /// When it ended, UTC.
    pub timestamp: String,
    /// The tool that it is about, when the catalog knows it.
    pub tool_id: Option<String>,
    /// [`EVENT_VERSION`].
    pub version: u32,
}

impl Event {
    /// An attribute that is a number of tokens; `None` where the event does not have it.
    pub(crate) fn tokens(&self, attribute: &str) -> Option<u64> {
        self.attributes.get(attribute).and_then(Value::as_u64)
    }

    /// An attribute that is a word; `None` where the event does not have it.
    pub(crate) fn word(&self, attribute: &str) -> Option<&str> {
        self.attributes.get(attribute).and_then(Value::as_str)
    }

    /// Whether it has an attribute that is true.
    pub(crate) fn has(&self, attribute: &str) -> bool {
        self.attributes.get(attribute) == Some(&Value::Bool(true))
    }
}

/// An event without the fields that every event has.
#[derive(Debug, Clone)]
pub struct Happening {
    /// The kind of event.
    pub event: EventName,
    /// Whether the operation succeeded.
    pub success: bool,
    /// How long it took, where that was measured.
    pub duration: Option<Duration>,
    /// The id and the namespace of the tool.
    pub tool: Option<(String, String)>,
    /// Further attributes; see [`Event::attributes`].
    pub attributes: Map<String, Value>,
}

enum Note {
    Line(Vec<u8>),
    Flush(oneshot::Sender<()>),
}

/// The queue of events to the thread that writes them.
#[derive(Debug)]
pub struct Diagnostics {
    notes: mpsc::Sender<Note>,
    dropped: Arc<AtomicU64>,
    run: Run,
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
        Ok(Self { notes, dropped, run: Run::new(clock), clock })
    }

    /// Records what happened, on behalf of a client or the gateway's own. Never waits.
    pub fn record(&self, session: Option<&Session>, happening: Happening) {
        let (tool_id, namespace) = happening.tool.unzip();
        let event = Event {
            attributes: happening.attributes,
            duration_ms: happening.duration.map(|time| (time.as_secs_f64() * 1e6).round() / 1e3),
            event: happening.event,
            namespace,
            session_id: self.run.number_of(session),
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::run::SESSION_DIGITS;
    use super::*;
    use crate::common::sync::lock;

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
}
