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
use crate::session::context::{Account, Ending, Entry, Record};

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

impl AuditConfig {
    /// Lines go into this file.
    #[must_use]
    pub fn to(file: PathBuf) -> Self {
        Self { file, on_failure: OnFailure::default(), sync: false }
    }
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

/// Who waits for the line of a decision.
struct Waiting {
    /// Gets the number of the line. It outlives the request, which may be dropped at any moment.
    record: Record,
    /// Hears that it was written, or why it was not.
    written: oneshot::Sender<Result<(), String>>,
}

enum Note {
    Line(Box<AuditLine>, Option<Waiting>),
    /// Another configuration is in force, whose text has this SHA-256.
    Reloaded(String),
    Close(oneshot::Sender<()>),
}

/// The queue of lines to the thread that writes them.
#[derive(Debug)]
pub(crate) struct AuditLog {
    notes: mpsc::Sender<Note>,
    /// How long a request waits for its line.
    patience: Duration,
    on_failure: OnFailure,
    run: Run,
    /// Lines that were not written so far.
    failures: Arc<AtomicU64>,
    /// Those of them that the next line is to speak of.
    lost: Arc<AtomicU64>,
}

impl AuditLog {
    /// Goes on with the file that `config` names, which is made when it is missing, readable by its owner alone; `digest`
    /// is the SHA-256 of the text of the whole configuration.
    ///
    /// # Errors
    /// It cannot be written, is in use, or is not an audit log.
    pub(crate) fn open(config: &AuditConfig, digest: &str) -> Result<Self, AuditError> {
        let (failures, lost) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let clock: WallClock = OffsetDateTime::now_utc;
        let mut sink = Sink {
            file: open(&config.file)?,
            path: config.file.clone(),
            config: digest.to_owned(),
            sync: config.sync,
            clock,
            end: None,
            lost: Arc::clone(&lost),
        };
        match sink.resume(None) {
            Err(AuditError::Io(error)) if config.on_failure == OnFailure::Warn => {
                tracing::warn!(%error, file = %config.file.display(), "the audit log cannot be written");
            }
            resumed => resumed?,
        }
        let (notes, queue) = mpsc::channel(QUEUE);
        let counter = Arc::clone(&failures);
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || write(sink, queue, &counter))?;
        let (patience, on_failure, run) = (PATIENCE, config.on_failure, Run::new(clock));
        Ok(Self { notes, patience, on_failure, run, failures, lost })
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
        let began = Instant::now();
        let (sender, written) = oneshot::channel();
        let writing = async {
            let place = self.notes.reserve().await.map_err(|_| "its thread has ended".to_owned())?;
            record.note(|account| account.entry = Entry::Queued);
            place.send(Note::Line(Box::new(line), Some(Waiting { record: record.clone(), written: sender })));
            written.await.map_err(|_| "its thread has ended".to_owned())?
        };
        let outcome = tokio::time::timeout(self.patience, writing).await;
        let outcome = outcome.unwrap_or_else(|_| Err(format!("it was not written in {} s", self.patience.as_secs())));
        let Err(reason) = outcome else { return Ok(()) };
        if self.on_failure == OnFailure::Refuse {
            // Its line may still be written, and must not stand there as that of a request that was served.
            let ending = Ending { code: Code::AuditFailed.word().to_owned(), took: began.elapsed() };
            if record.note(|account| end_unwritten(account, ending)).is_some() {
                // It was written after all.
                return Ok(());
            }
        }
        tracing::error!(%reason, "a decision is missing from the audit log");
        match self.on_failure {
            OnFailure::Warn => Ok(()),
            OnFailure::Refuse => {
                let reason = "the audit log of this gateway cannot be written, so nothing is done; tell its operator";
                Err(GatewayError::new(Code::AuditFailed, reason))
            }
        }
    }

    /// Writes how a request that was allowed has ended; where the line of the decision still waits to be written, that
    /// is left to who writes it. Never waits.
    fn ended(&self, caller: &Caller, record: &Record, code: &str, took: Duration) {
        let ending = Ending { code: code.to_owned(), took };
        if let Some((call, ending)) = record.note(|account| end_unwritten(account, ending)) {
            self.put(end_of(&self.line_of(caller, record, AuditEvent::Decided), call, ending));
        }
    }

    /// Writes that another configuration is in force; `digest` is the SHA-256 of its text. Where the file was moved away
    /// meanwhile, a new one is begun in its place. Never waits.
    pub(crate) fn reloaded(&self, digest: &str) {
        self.send(Note::Reloaded(digest.to_owned()));
    }

    fn put(&self, line: AuditLine) {
        self.send(Note::Line(Box::new(line), None));
    }

    fn send(&self, note: Note) {
        if self.notes.try_send(note).is_err() {
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

/// Notes how a request has ended whose line waits to be written. Where the line stands in the log already, its number
/// is returned with the ending.
fn end_unwritten(account: &mut Account, ending: Ending) -> Option<(u64, Ending)> {
    match account.entry {
        Entry::Written(call) => return Some((call, ending)),
        Entry::Queued => account.entry = Entry::Over(ending),
        Entry::Missing | Entry::Over(_) => {}
    }
    None
}

/// The line that says how the request ended which was allowed by this line with this number.
fn end_of(decided: &AuditLine, call: u64, Ending { code, took }: Ending) -> AuditLine {
    AuditLine {
        call: Some(call),
        code: Some(code),
        event: AuditEvent::Ended,
        ms: Some((took.as_secs_f64() * 1e6).round() / 1e3),
        // These stand in the line of the decision.
        decision: None,
        arguments: None,
        rule: None,
        guard: None,
        approver: None,
        credentials: None,
        ..decided.clone()
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
        if account.entry == Entry::Missing {
            let decision = AuditDecision::of(&account, failed);
            // What was not allowed has no other line.
            self.has_ended = decision != AuditDecision::Allow;
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
        if !self.has_ended {
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

/// Whether the path leads to another file, or to none: the one that is open was moved away or removed.
#[cfg(unix)]
fn leads_elsewhere(path: &Path, file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;

    let open = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) != (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// As above; here, a file that is in use keeps its name.
#[cfg(not(unix))]
fn leads_elsewhere(_: &Path, _: &File) -> io::Result<bool> {
    Ok(false)
}

/// Whether no name leads to the file any more. What is written to it then is gone with the process.
#[cfg(unix)]
fn is_removed(path: &Path, file: &File) -> io::Result<bool> {
    let names = std::os::unix::fs::MetadataExt::nlink(&file.metadata()?);
    // What never had one, such as a pipe, is still where the path leads.
    Ok(names == 0 && leads_elsewhere(path, file)?)
}

/// As above.
#[cfg(not(unix))]
fn is_removed(_: &Path, _: &File) -> io::Result<bool> {
    Ok(false)
}

/// The end of the chain.
struct End {
    seq: u64,
    hash: String,
}

struct Sink {
    file: File,
    /// Where it was opened.
    path: PathBuf,
    /// SHA-256 of the text of the configuration that is in force.
    config: String,
    sync: bool,
    clock: WallClock,
    /// `None` when what the file ends with is not known: at the start, and after a failure.
    end: Option<End>,
    lost: Arc<AtomicU64>,
}

impl Sink {
    /// Finds the end of the file, and writes that the chain goes on from there; `after` is the hash of the last line of
    /// the file whose place this one takes.
    fn resume(&mut self, after: Option<String>) -> Result<(), AuditError> {
        let Found { end, torn, open } = last(&mut self.file)?;
        if open {
            self.file.write_all(b"\n")?;
        }
        self.end = Some(end);
        let lost = Some(self.lost.load(Ordering::Relaxed)).filter(|lost| *lost > 0);
        let config = Some(self.config.clone());
        let line = AuditLine { after, config, torn, lost, ..AuditLine::new(AuditEvent::Started) };
        self.append(&mut [line])?;
        self.lost.fetch_sub(lost.unwrap_or_default(), Ordering::Relaxed);
        Ok(())
    }

    /// Begins a file where the path leads now. Its first line names the last one of the file before, which thereby is
    /// known to be there.
    fn begin_anew(&mut self) -> Result<(), AuditError> {
        let file = open(&self.path)?;
        let end = self.end.take().or_else(|| last(&mut self.file).ok().map(|found| found.end));
        let after = end.as_ref().filter(|end| end.seq > 0).map(|end| end.hash.clone());
        let before = std::mem::replace(&mut self.file, file);
        self.resume(after).inspect_err(|_| (self.file, self.end) = (before, end))
    }

    /// Writes that another configuration is in force, into the file that the path leads to now.
    fn reloaded(&mut self, digest: String) -> Result<(), AuditError> {
        self.config = digest;
        // Where that cannot be, the lines go on where they were.
        let moved = leads_elsewhere(&self.path, &self.file).map_err(AuditError::from);
        let moved = moved.and_then(|is_moved| if is_moved { self.begin_anew() } else { Ok(()) });
        let line = AuditLine { config: Some(self.config.clone()), ..AuditLine::new(AuditEvent::Reloaded) };
        self.append_again(&mut [line]).and(moved)
    }

    /// Writes lines after the end of the chain; the number of the first.
    fn append(&mut self, lines: &mut [AuditLine]) -> io::Result<u64> {
        let Some(End { mut seq, hash: mut prev }) = self.end.take() else { return Err(io::ErrorKind::NotFound.into()) };
        let (first, mut text) = (seq + 1, Vec::new());
        for line in lines {
            seq += 1;
            (line.seq, line.prev, line.time) = (seq, prev, timestamp((self.clock)()));
            let start = text.len();
            serde_json::to_writer(&mut text, line)?;
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

    /// The same, after finding the end again where a failure left it unknown, and in a new file where that in use was
    /// removed.
    fn append_again(&mut self, lines: &mut [AuditLine]) -> Result<u64, AuditError> {
        if is_removed(&self.path, &self.file)? {
            tracing::warn!(file = %self.path.display(), "the audit log was removed while it was in use; a new one is begun");
            self.begin_anew()?;
        } else if self.end.is_none() {
            self.resume(None)?;
        }
        Ok(self.append(lines)?)
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
    /// How the first line of a file begins.
    const MARKS: [&[u8]; 2] = [b"{\"after\":\"", b"{\"config\":\""];
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
    let is_cut = || serde_json::from_slice::<serde::de::IgnoredAny>(text).is_err();
    let begins = || MARKS.iter().any(|mark| text.starts_with(mark) || mark.starts_with(text));
    let is_first = length <= LONGEST_LINE as u64 && begins() && is_cut();
    match is_first {
        true => Ok(Found { end: End { seq: 0, hash: hash(text) }, torn: true, open }),
        false => Err(AuditError::Foreign(why)),
    }
}

/// Gives a request the number of its line, or none where it was not written; how it has ended where it did not wait.
fn take_entry(account: &mut Account, number: Option<u64>) -> Option<Ending> {
    match std::mem::replace(&mut account.entry, number.map_or(Entry::Missing, Entry::Written)) {
        Entry::Over(ending) => Some(ending),
        _ => None,
    }
}

/// Writes lines in one go; the number of the first, or why they are lost, which is counted.
fn write_all(sink: &mut Sink, lines: &mut [AuditLine], failures: &AtomicU64) -> Result<u64, String> {
    let count = lines.len() as u64;
    sink.append_again(lines).map_err(|error| error.to_string()).inspect_err(|reason| {
        failures.fetch_add(count, Ordering::Relaxed);
        sink.lost.fetch_add(count, Ordering::Relaxed);
        tracing::error!(reason, lines = count, "the audit log cannot be written");
    })
}

fn write(mut sink: Sink, mut queue: mpsc::Receiver<Note>, failures: &AtomicU64) {
    /// Lines that are written in one go, at most.
    const TOGETHER: usize = 256;
    while let Some(first) = queue.blocking_recv() {
        let (mut lines, mut waiting) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(Note::Line(line, written)) = next {
            lines.push(*line);
            waiting.push(written);
            next = if lines.len() < TOGETHER { queue.try_recv().ok() } else { None };
        }
        if !lines.is_empty() {
            let first = write_all(&mut sink, &mut lines, failures);
            let mut ends = Vec::new();
            for ((at, line), waiting) in (0..).zip(&lines).zip(waiting) {
                let Some(Waiting { record, written }) = waiting else { continue };
                let number = first.as_ref().ok().map(|first| first + at);
                let ending = record.note(|account| take_entry(account, number));
                if let (Some(AuditDecision::Allow), Some(number), Some(ending)) = (line.decision, number, ending) {
                    ends.push(end_of(line, number, ending));
                }
                let _ = written.send(first.as_ref().map(|_| ()).map_err(String::clone));
            }
            if !ends.is_empty() {
                let _ = write_all(&mut sink, &mut ends, failures);
            }
        }
        match next {
            Some(Note::Close(done)) => {
                // Another gateway may go on with the file from now on.
                drop(sink);
                let _ = done.send(());
                return;
            }
            Some(Note::Reloaded(digest)) => {
                if let Err(error) = sink.reloaded(digest) {
                    tracing::error!(%error, file = %sink.path.display(), "a reload could not be written to the audit log");
                }
            }
            Some(Note::Line(..)) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::client_info::ClientInfo;
    use crate::session::client::Session;

    #[test]
    fn lines_that_were_lost_are_counted_in_the_next_that_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let lost = Arc::new(AtomicU64::new(0));
        let mut sink = sink(&path, true, Arc::clone(&lost));
        sink.resume(None).unwrap();
        // A disk that takes a part of a line and no more.
        sink.file.write_all(b"{\"approver\":").unwrap();
        (sink.end, _) = (None, lost.fetch_add(3, Ordering::Relaxed));
        assert_eq!(sink.append_again(&mut [AuditLine::new(AuditEvent::Stopped)]).unwrap(), 3);
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

    #[tokio::test]
    async fn a_request_that_does_not_wait_for_its_line_has_its_end_in_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let clock: WallClock = || OffsetDateTime::UNIX_EPOCH;
        let (notes, queue) = mpsc::channel(QUEUE);
        let patience = Duration::from_millis(20);
        let log = |on_failure, patience| {
            let (notes, run) = (notes.clone(), Run::new(clock));
            AuditLog { notes, patience, on_failure, run, failures: Arc::default(), lost: Arc::default() }
        };
        let (refusing, warning) = (log(OnFailure::Refuse, patience), log(OnFailure::Warn, patience));
        let patient = log(OnFailure::Refuse, PATIENCE);
        let caller = Caller::new(Session::new("s"), ClientInfo::default(), mpsc::channel(1).0);
        let begun = |log, operation| {
            let record = Record::default();
            record.note(|account| (account.operation, account.allowed) = (Some(operation), true));
            (Audited::new(log, &caller, record.clone()), record)
        };
        // Nobody writes yet. The callers of these hang up, before the upstream is asked and after the answer is there.
        for (operation, has_answer) in [("dropped", false), ("dropped at its end", true)] {
            let (audited, record) = begun(&patient, operation);
            let waiting = async {
                if !has_answer {
                    patient.decided(&caller, &record, AuditDecision::Allow, None).await.unwrap();
                }
                audited.end("OK", false).await.unwrap();
            };
            assert!(tokio::time::timeout(patience, waiting).await.is_err());
        }
        let (audited, record) = begun(&refusing, "late");
        let refused = refusing.decided(&caller, &record, AuditDecision::Allow, None).await.unwrap_err();
        assert_eq!(refused.code, Code::AuditFailed);
        drop(audited);
        let (audited, record) = begun(&warning, "served");
        warning.decided(&caller, &record, AuditDecision::Allow, None).await.unwrap();
        audited.end("OK", false).await.unwrap();
        let (audited, record) = begun(&refusing, "refused");
        record.note(|account| account.allowed = false);
        assert!(audited.end("POLICY_DENIED", true).await.is_err());
        drop((refusing, warning, patient, notes));
        let sink = sink(&path, false, Arc::default());
        std::thread::spawn(move || write(sink, queue, &AtomicU64::new(0))).join().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let told = |line: AuditLine| {
            let decision = line.decision.map(|decision| decision.name().to_owned());
            let call = line.call.map(|call| call.to_string());
            let parts = [Some(line.event.name().to_owned()), call, line.operation, decision, line.code];
            format!("{} {}", line.seq, parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
        };
        let told: Vec<String> = text.lines().map(|line| told(serde_json::from_str(line).unwrap())).collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        1 started
        2 decided dropped allow
        3 decided dropped at its end allow
        4 decided late allow
        5 decided served allow
        6 decided refused refuse POLICY_DENIED
        7 ended 2 dropped CANCELLED
        8 ended 3 dropped at its end CANCELLED
        9 ended 4 late AUDIT_FAILED
        10 ended 5 served OK
        ");
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_takes_the_place_of_one_that_was_moved_away_or_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("audit.jsonl"), folder.path().join("audit-1.jsonl"));
        let mut sink = sink(&path, false, Arc::default());
        sink.resume(None).unwrap();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let told = |path: &Path| {
            let told = |line: &str| {
                let line = AuditLine::read(line.as_bytes()).unwrap();
                format!("{} {} {}", line.seq, line.event.name(), line.config.unwrap_or_default())
            };
            read(path).lines().map(told).collect::<Vec<_>>()
        };
        let last = |path: &Path| hash(read(path).lines().last().unwrap().as_bytes());
        let follows = |path: &Path| AuditLine::read(read(path).lines().next().unwrap().as_bytes()).unwrap().after;
        let mut stopped = || sink.append_again(&mut [AuditLine::new(AuditEvent::Stopped)]).unwrap();
        // Until it is told, it goes on with a file that was moved away.
        std::fs::rename(&path, &moved).unwrap();
        assert_eq!(stopped(), 2);
        sink.reloaded("b".to_owned()).unwrap();
        assert_eq!(told(&moved), ["1 started a", "2 stopped "]);
        assert_eq!(told(&path), ["1 started b", "2 reloaded b"]);
        assert_eq!(follows(&path), Some(last(&moved)));
        // Where the file is the same, so is the chain.
        sink.reloaded("c".to_owned()).unwrap();
        assert_eq!(told(&path), ["1 started b", "2 reloaded b", "3 reloaded c"]);
        let end = last(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(sink.append_again(&mut [AuditLine::new(AuditEvent::Stopped)]).unwrap(), 2);
        assert_eq!(told(&path), ["1 started c", "2 stopped "]);
        assert_eq!(follows(&path), Some(end));
        // Another gateway has taken the name: the lines go on where they were.
        std::fs::rename(&path, &moved).unwrap();
        let other = open(&path).unwrap();
        assert!(sink.reloaded("d".to_owned()).unwrap_err().to_string().contains("another gateway"));
        drop(other);
        assert_eq!(told(&moved), ["1 started c", "2 stopped ", "3 reloaded d"]);
        // So they do where something else has taken it.
        std::fs::write(&path, "hello\nworld\n").unwrap();
        assert!(sink.reloaded("e".to_owned()).unwrap_err().to_string().contains("not a line of an audit log"));
        assert_eq!(told(&moved)[3..], ["4 reloaded e"]);
        assert_eq!(read(&path), "hello\nworld\n");
    }

    fn sink(path: &Path, sync: bool, lost: Arc<AtomicU64>) -> Sink {
        let clock: WallClock = || OffsetDateTime::UNIX_EPOCH;
        let (file, path) = (open(path).unwrap(), path.to_owned());
        Sink { file, path, config: "a".to_owned(), sync, clock, end: None, lost }
    }
}
