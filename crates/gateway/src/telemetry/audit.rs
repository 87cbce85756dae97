//! The audit log: who asked for what, what was decided by which guard and rule, who approved it, and how it ended.
//!
//! One line a decision, before an upstream is asked, and one when a request that was allowed has ended. Lines are only
//! appended, and each holds the hash of the one before (see [`super::audit_line`]). Nothing of what a call carries is
//! written: arguments are there as a digest.
//!
//! Nothing is left out silently. A request whose decision cannot be written is refused, unless `on_failure: warn` says
//! otherwise; lines that are lost are counted in the next one that can be written, in the metrics and in the log.
//!
//! A thread writes: disks block. Requests wait for their lines, and those that wait at the same time are written, and
//! with `sync` brought to the disk, in one go.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use tokio::sync::{mpsc, oneshot};

use super::audit_line::{AuditDecision, AuditEvent, AuditLine, FIRST, LONGEST_LINE, hash};
use super::run::{Run, WallClock, timestamp};
use crate::common::error::{Code, GatewayError};
use crate::common::sanitize::SanitizeConfig;
use crate::session::client::Caller;
use crate::session::context::{Account, Record};

/// Lines that wait to be written, at most.
const QUEUE: usize = 4096;

/// How long a request waits for its line.
const PATIENCE: Duration = Duration::from_secs(10);

/// Characters of a name in a line, at most.
const LONGEST_NAME: usize = 512;

/// What becomes of a request whose decision cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It is refused.
    #[default]
    Refuse,
    /// It is served, and the log says that the line is missing.
    Warn,
}

/// Where decisions are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditConfig {
    /// The file that lines are appended to.
    pub file: PathBuf,
    /// What becomes of a request whose decision cannot be written.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Whether every line is brought to the disk before the request goes on, and so outlives a loss of power.
    #[serde(default)]
    pub sync: bool,
}

/// The audit log cannot be written from the start.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The system refuses.
    #[error("cannot be written: {0}")]
    Io(#[from] io::Error),
    /// Two processes would tear the chain.
    #[error("another gateway is writing to it; give each its own file")]
    InUse,
    /// The file is something else, or its end was changed.
    #[error(
        "its last complete line is not a line of an audit log ({0}); see `contextweaver mcp audit verify`, or name \
         another file"
    )]
    Foreign(String),
}

/// Who waits for a line gets its number, or the reason why it was not written.
type Written = oneshot::Sender<Result<u64, String>>;

enum Note {
    Line(Box<AuditLine>, Option<Written>),
    Close(oneshot::Sender<()>),
}

/// The queue of lines to the thread that writes them.
#[derive(Debug)]
pub(crate) struct AuditLog {
    notes: mpsc::Sender<Note>,
    on_failure: OnFailure,
    run: Run,
    /// Lines that were not written so far.
    failures: Arc<AtomicU64>,
    /// Those of them that the next line is to speak of.
    lost: Arc<AtomicU64>,
}

impl AuditLog {
    /// Goes on with the file that `config` names, which is made when it is missing, readable by its owner alone.
    ///
    /// # Errors
    /// It cannot be written, is in use, or is not an audit log.
    pub(crate) fn open(config: &AuditConfig) -> Result<Self, AuditError> {
        let (failures, lost) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let clock: WallClock = OffsetDateTime::now_utc;
        let file = open(&config.file)?;
        let had_name = has_name(&file)?;
        let mut sink = Sink { file, had_name, sync: config.sync, clock, end: None, lost: Arc::clone(&lost) };
        match sink.resume() {
            Err(AuditError::Io(error)) if config.on_failure == OnFailure::Warn => {
                tracing::warn!(%error, file = %config.file.display(), "the audit log cannot be written");
            }
            resumed => resumed?,
        }
        let (notes, queue) = mpsc::channel(QUEUE);
        let counter = Arc::clone(&failures);
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || write(sink, queue, &counter))?;
        Ok(Self { notes, on_failure: config.on_failure, run: Run::new(clock), failures, lost })
    }

    /// Lines that were not written so far.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Writes what was decided about a request, and waits until that is written; `code` is that of a refusal.
    ///
    /// # Errors
    /// It cannot be written, and the request is to be refused.
    pub(crate) async fn decided(
        &self,
        caller: &Caller,
        record: &Record,
        decision: AuditDecision,
        code: Option<&str>,
    ) -> Result<(), GatewayError> {
        let mut line = self.line_of(caller, record, AuditEvent::Decided);
        line.decision = Some(decision);
        line.code = code.map(str::to_owned);
        let (sender, written) = oneshot::channel();
        let note = Note::Line(Box::new(line), Some(sender));
        let writing = async {
            self.notes.send(note).await.map_err(|_| "its thread has ended".to_owned())?;
            written.await.map_err(|_| "its thread has ended".to_owned())?
        };
        let outcome = tokio::time::timeout(PATIENCE, writing).await;
        match outcome.unwrap_or_else(|_| Err(format!("it was not written in {} s", PATIENCE.as_secs()))) {
            Ok(number) => {
                record.note(|account| account.entry = Some(number));
                Ok(())
            }
            Err(reason) => {
                tracing::error!(%reason, "a decision is missing from the audit log");
                match self.on_failure {
                    OnFailure::Warn => Ok(()),
                    OnFailure::Refuse => {
                        let reason =
                            "the audit log of this gateway cannot be written, so nothing is done; tell its operator";
                        Err(GatewayError::new(Code::AuditFailed, reason))
                    }
                }
            }
        }
    }

    /// Writes how a request that was allowed has ended. Never waits.
    fn ended(&self, caller: &Caller, record: &Record, code: &str, took: Duration) {
        let mut line = self.line_of(caller, record, AuditEvent::Ended);
        // These stand in the line of the decision.
        (line.arguments, line.rule, line.guard, line.approver, line.credentials) = (None, None, None, None, None);
        line.call = record.account().entry;
        line.code = Some(code.to_owned());
        line.ms = Some((took.as_secs_f64() * 1e6).round() / 1e3);
        self.put(line);
    }

    fn put(&self, line: AuditLine) {
        if self.notes.try_send(Note::Line(Box::new(line), None)).is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
            self.lost.fetch_add(1, Ordering::Relaxed);
            tracing::error!("too many lines are waiting for the audit log; one was dropped");
        }
    }

    fn line_of(&self, caller: &Caller, record: &Record, event: AuditEvent) -> AuditLine {
        let session = caller.session();
        let identity = session.identity();
        let Account { operation, item, server, arguments, guard, rule, approver, credentials, .. } = record.account();
        // What no guard stopped, the rules let pass.
        let guard = guard.or(rule.as_ref().map(|_| "policy"));
        let short = |text: String| text.chars().take(LONGEST_NAME).collect::<String>();
        AuditLine {
            approver,
            arguments,
            caller: Some(short(session.label().to_owned())),
            credentials,
            guard: guard.map(str::to_owned),
            item: item.map(|item| short(SanitizeConfig::default().clean(&item).into_owned())),
            operation: operation.map(str::to_owned),
            profile: identity.profile.clone().map(short),
            rule,
            server: server.map(short),
            session: Some(self.run.number_of(Some(session))),
            ..AuditLine::new(event)
        }
    }

    /// Writes that the gateway ends, and waits for a bounded time until everything is written.
    pub(crate) async fn close(&self) {
        self.put(AuditLine::new(AuditEvent::Stopped));
        let (done, written) = oneshot::channel();
        let flush = async {
            if self.notes.send(Note::Close(done)).await.is_ok() {
                let _ = written.await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, flush).await.is_ok();
        let lines = self.failures();
        if lines > 0 || !in_time {
            tracing::error!(lines, in_time, "lines are missing from the audit log");
        }
    }
}

/// A request on its way; one that is dropped has ended as cancelled.
pub(crate) struct Audited<'a> {
    log: &'a AuditLog,
    caller: &'a Caller,
    record: Record,
    began: Instant,
    has_ended: bool,
}

impl<'a> Audited<'a> {
    /// A request of `caller` that begins now, with its record.
    pub(crate) fn new(log: &'a AuditLog, caller: &'a Caller, record: Record) -> Self {
        Self { log, caller, record, began: Instant::now(), has_ended: false }
    }

    /// Writes how it ended. A request about which no decision is written yet, since no upstream was asked, gets its line
    /// first; `failed` says whether it was refused then, unless it had been allowed.
    ///
    /// # Errors
    /// The decision cannot be written, and the request is to be refused.
    pub(crate) async fn end(mut self, code: &str, failed: bool) -> Result<(), GatewayError> {
        let account = self.record.account();
        if account.entry.is_none() {
            self.has_ended = true;
            let decision = AuditDecision::of(&account, failed);
            let refusal = (decision == AuditDecision::Refuse).then_some(code);
            Box::pin(self.log.decided(self.caller, &self.record, decision, refusal)).await?;
            if decision != AuditDecision::Allow {
                return Ok(());
            }
        }
        self.has_ended = true;
        self.log.ended(self.caller, &self.record, code, self.began.elapsed());
        Ok(())
    }
}

impl Drop for Audited<'_> {
    fn drop(&mut self) {
        if !self.has_ended && self.record.account().entry.is_some() {
            self.log.ended(self.caller, &self.record, "CANCELLED", self.began.elapsed());
        }
    }
}

fn open(path: &Path) -> Result<File, AuditError> {
    let mut options = File::options();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(AuditError::InUse),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Whether a name leads to the file. What is written to one without a name is gone with the process.
#[cfg(unix)]
fn has_name(file: &File) -> io::Result<bool> {
    Ok(std::os::unix::fs::MetadataExt::nlink(&file.metadata()?) > 0)
}

/// As above; here, a file that is in use keeps its name.
#[cfg(not(unix))]
fn has_name(_: &File) -> io::Result<bool> {
    Ok(true)
}

/// The end of the chain.
struct End {
    seq: u64,
    hash: String,
}

struct Sink {
    file: File,
    /// Whether a name led to the file when it was opened.
    had_name: bool,
    sync: bool,
    clock: WallClock,
    /// `None` when what the file ends with is not known: at the start, and after a failure.
    end: Option<End>,
    lost: Arc<AtomicU64>,
}

impl Sink {
    /// Finds the end of the file, and writes that the chain goes on from there.
    fn resume(&mut self) -> Result<(), AuditError> {
        let Found { end, torn, open } = last(&mut self.file)?;
        if open {
            self.file.write_all(b"\n")?;
        }
        self.end = Some(end);
        let lost = Some(self.lost.load(Ordering::Relaxed)).filter(|lost| *lost > 0);
        let line = AuditLine { torn, lost, ..AuditLine::new(AuditEvent::Started) };
        self.append(std::iter::once(line))?;
        self.lost.fetch_sub(lost.unwrap_or_default(), Ordering::Relaxed);
        Ok(())
    }

    /// Writes lines after the end of the chain; the number of the first.
    fn append(&mut self, lines: impl Iterator<Item = AuditLine>) -> io::Result<u64> {
        if self.had_name && !has_name(&self.file)? {
            let reason = "the file was removed while it was in use; restart the gateway, which makes a new one";
            return Err(io::Error::other(reason));
        }
        let Some(End { mut seq, hash: mut prev }) = self.end.take() else { return Err(io::ErrorKind::NotFound.into()) };
        let (first, mut text) = (seq + 1, Vec::new());
        for line in lines {
            seq += 1;
            let line = AuditLine { seq, prev, time: timestamp((self.clock)()), ..line };
            let start = text.len();
            serde_json::to_writer(&mut text, &line)?;
            prev = hash(text.get(start..).unwrap_or_default());
            text.push(b'\n');
        }
        self.file.write_all(&text)?;
        if self.sync {
            self.file.sync_data()?;
        }
        self.end = Some(End { seq, hash: prev });
        Ok(first)
    }

    /// The same, after finding the end again where a failure left it unknown.
    fn append_again(&mut self, lines: Vec<AuditLine>) -> Result<u64, AuditError> {
        if self.end.is_none() {
            self.resume()?;
        }
        Ok(self.append(lines.into_iter())?)
    }
}

/// The end of the chain in a file.
struct Found {
    end: End,
    /// Whether text that is not a line comes after the last line: it was not finished.
    torn: bool,
    /// Whether the text lacks its end of line.
    open: bool,
}

/// Finds the end of the chain. Unfinished text after the last line is hashed together with that line.
fn last(file: &mut File) -> Result<Found, AuditError> {
    const WINDOW: u64 = 4 * LONGEST_LINE as u64;
    /// How the first line of every file begins.
    const MARK: &[u8] = b"{\"event\":\"started\"";
    let nothing = Found { end: End { seq: 0, hash: FIRST.to_owned() }, torn: false, open: false };
    if !file.metadata()?.is_file() {
        return Ok(nothing);
    }
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(WINDOW)))?;
    let mut tail = Vec::new();
    file.take(WINDOW).read_to_end(&mut tail)?;
    let open = !tail.is_empty() && !tail.ends_with(b"\n");
    let text = tail.strip_suffix(b"\n").unwrap_or(&tail);
    let mut start = text.len();
    let mut why = "it has none".to_owned();
    while start > 0 {
        let end = start;
        start = text[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        match AuditLine::read(&text[start..end]) {
            Ok(line) => {
                let (seq, hash) = (line.seq, hash(&text[start..]));
                return Ok(Found { end: End { seq, hash }, torn: end < text.len(), open });
            }
            Err(reason) => why = reason,
        }
        start = start.saturating_sub(1);
    }
    if tail.is_empty() {
        return Ok(nothing);
    }
    // The first line was not finished, or this is something else.
    let is_first = length <= LONGEST_LINE as u64 && (text.starts_with(MARK) || MARK.starts_with(text));
    match is_first {
        true => Ok(Found { end: End { seq: 0, hash: hash(text) }, torn: true, open }),
        false => Err(AuditError::Foreign(why)),
    }
}

fn write(mut sink: Sink, mut queue: mpsc::Receiver<Note>, failures: &AtomicU64) {
    /// Lines that are written in one go, at most.
    const TOGETHER: usize = 256;
    while let Some(first) = queue.blocking_recv() {
        let (mut lines, mut waiting, mut closed) = (Vec::new(), Vec::new(), None);
        let mut next = Some(first);
        while let Some(note) = next {
            match note {
                Note::Line(line, written) => {
                    lines.push(*line);
                    waiting.push(written);
                }
                Note::Close(done) => closed = Some(done),
            }
            next = if lines.len() < TOGETHER && closed.is_none() { queue.try_recv().ok() } else { None };
        }
        let count = lines.len() as u64;
        if count > 0 {
            let written = sink.append_again(lines).map_err(|error| error.to_string());
            if let Err(reason) = &written {
                failures.fetch_add(count, Ordering::Relaxed);
                sink.lost.fetch_add(count, Ordering::Relaxed);
                tracing::error!(reason, lines = count, "the audit log cannot be written");
            }
            for (at, waiting) in (0..).zip(waiting) {
                if let Some(waiting) = waiting {
                    let _ = waiting.send(written.clone().map(|first| first + at));
                }
            }
        }
        if let Some(done) = closed {
            // Another gateway may go on with the file from now on.
            drop(sink);
            let _ = done.send(());
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_were_lost_are_counted_in_the_next_that_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let lost = Arc::new(AtomicU64::new(0));
        let clock: WallClock = || OffsetDateTime::UNIX_EPOCH;
        let mut sink =
            Sink { file: open(&path).unwrap(), had_name: true, sync: true, clock, end: None, lost: Arc::clone(&lost) };
        sink.resume().unwrap();
        // A disk that takes a part of a line and no more.
        sink.file.write_all(b"{\"approver\":").unwrap();
        (sink.end, _) = (None, lost.fetch_add(3, Ordering::Relaxed));
        assert_eq!(sink.append_again(vec![AuditLine::new(AuditEvent::Stopped)]).unwrap(), 3);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<AuditLine> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let shown: Vec<_> = lines.iter().map(|line| (line.seq, line.event, line.torn, line.lost)).collect();
        let started = AuditEvent::Started;
        assert_eq!(
            shown,
            [(1, started, false, None), (2, started, true, Some(3)), (3, AuditEvent::Stopped, false, None)]
        );
        assert_eq!(lost.load(Ordering::Relaxed), 0);
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_into_a_file_that_was_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("audit.jsonl"), folder.path().join("audit-1.jsonl"));
        let clock: WallClock = || OffsetDateTime::UNIX_EPOCH;
        let mut sink =
            Sink { file: open(&path).unwrap(), had_name: true, sync: false, clock, end: None, lost: Arc::default() };
        sink.resume().unwrap();
        // A file that was moved away for a new one is still a file.
        std::fs::rename(&path, &moved).unwrap();
        assert_eq!(sink.append_again(vec![AuditLine::new(AuditEvent::Stopped)]).unwrap(), 2);
        std::fs::remove_file(&moved).unwrap();
        for _ in 0..2 {
            let error = sink.append_again(vec![AuditLine::new(AuditEvent::Stopped)]).unwrap_err().to_string();
            assert!(error.contains("was removed"), "{error}");
        }
    }
}
