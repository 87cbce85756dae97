//! An upstream that speaks in lines: a child process on its standard streams.
//!
//! A child gets pipes of its own for all three streams: it must not read our standard input, and what it prints on its
//! standard output that is not a message is skipped. Its standard error goes to the log, line by line, and its last lines
//! say why it ended. It leads a
//! process group, so that what it started ends with it: a launcher such as `npx` or `uvx` is not the server itself.
//! A task of its own watches each child; at the end of a connection it closes the child's input, waits, asks it to end,
//! and kills what is left.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;

use super::bubblewrap::{Launch, SandboxError, on_lasting_thread};
use super::config::Confinement;
use super::environment::Inherit;
use super::executable;
use super::fault::Fault;
use super::mailbox::EventSender;
use super::peer::{Peer, Ticket, parsed};
use super::sandbox::Sandbox;
use crate::common::error::presentable;
use crate::common::masks::Masks;
use crate::common::sync::lock;
use crate::protocol::framing::{Line, LineReader, widen, write_lines};
use crate::protocol::message::Raw;
use contextweaver_context::clean::clean;
use contextweaver_context::store::redact;

/// How long a child has to leave when its input ends, and again when it is asked to.
const GRACE: Duration = Duration::from_secs(2);

/// How long the output of a child that has ended is still read.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Bytes of a line of a child's standard error that go to the log.
const LONGEST_LOG_LINE: usize = 8 * 1024;

/// Lines of a child's standard error that say why it ended, at most.
const MOST_LINES: usize = 5;

/// Characters of all these lines, at most.
const MOST_CHARACTERS: usize = 500;

/// A connection on which each message is a line.
#[derive(Debug)]
pub(super) struct LineLink {
    peer: Arc<Peer>,
    alive: Arc<AtomicBool>,
    /// What ends the other side, when the gateway has started it.
    process: Option<Process>,
}

/// What is started, and what is not to be told of it.
pub(super) struct Program<'s> {
    /// The program, as its entry names it.
    pub(super) command: &'s str,
    /// Its arguments.
    pub(super) args: &'s [String],
    /// The variables of its entry.
    pub(super) env: &'s BTreeMap<String, String>,
    /// What covers the values from the environment in what it prints.
    pub(super) masks: &'s Masks,
}

/// The way to the task that watches a child.
#[derive(Debug)]
struct Process {
    /// Dropped to end the child.
    closing: Mutex<Option<oneshot::Sender<()>>>,
    watching: Mutex<JoinHandle<()>>,
}

/// The tasks of a pair of streams.
struct Streams {
    reading: JoinHandle<()>,
    writing: JoinHandle<()>,
}

/// The task that logs what a child prints for people, and the last of it.
struct Printing {
    task: JoinHandle<()>,
    /// Nothing is covered in these lines yet: a value may begin on one and end on the next.
    last: Arc<std::sync::Mutex<VecDeque<String>>>,
    masks: Masks,
}

impl Printing {
    fn of(stderr: tokio::process::ChildStderr, upstream: Arc<str>, masks: Masks) -> Self {
        let last = Arc::<std::sync::Mutex<VecDeque<String>>>::default();
        let kept = Arc::clone(&last);
        let task = tokio::spawn(log(LineReader::new(stderr, LONGEST_LOG_LINE), upstream, masks.clone(), kept));
        Self { task, last, masks }
    }

    /// What it printed last, when all is read or there has been time for it.
    async fn said(mut self) -> String {
        if tokio::time::timeout(LAST_WORDS, &mut self.task).await.is_err() {
            self.task.abort();
        }
        let printed = lock(&self.last).make_contiguous().join("\n");
        let covered = self.masks.cover(&printed);
        let (mut said, mut left) = (Vec::new(), MOST_CHARACTERS);
        for line in covered.lines().rev().map(presentable).filter(|line| !line.is_empty()) {
            let length = line.chars().count() + 3;
            if length > left {
                break;
            }
            left -= length;
            said.push(line);
        }
        said.reverse();
        said.join(" / ")
    }
}

impl LineLink {
    /// A connection on two streams, for messages of at most `limit` bytes.
    fn open<R, W>(
        (upstream, masks): (&Arc<str>, Masks),
        input: R,
        output: W,
        limit: usize,
        events: EventSender,
    ) -> (Arc<Peer>, Arc<AtomicBool>, Streams)
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (peer, queued) = Peer::new(Arc::clone(upstream), masks, events);
        let alive = Arc::new(AtomicBool::new(true));
        let writing = tokio::spawn(write_lines(output, queued));
        let reading = tokio::spawn(read(LineReader::new(input, limit), Arc::clone(&peer), Arc::clone(&alive), limit));
        (peer, alive, Streams { reading, writing })
    }

    /// A connection to a server that somebody else runs.
    #[cfg(test)]
    pub(super) fn over<R, W>(upstream: &Arc<str>, input: R, output: W, limit: usize, events: EventSender) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (peer, alive, streams) = Self::open((upstream, Masks::default()), input, output, limit, events);
        let closing = Arc::clone(&peer);
        tokio::spawn(async move {
            let _ = streams.reading.await;
            closing.close(ENDED_OUTPUT);
        });
        Self { peer, alive, process: None }
    }

    /// Starts a child, with the environment that its confinement gives it and no more.
    pub(super) async fn spawn(
        upstream: &Arc<str>,
        program: Program<'_>,
        confinement: &Confinement,
        limit: usize,
        events: EventSender,
    ) -> Result<Self, Fault> {
        let Program { command, masks, .. } = program;
        let mut child = match confinement {
            Confinement::Open { inherit, cwd } => start_openly(&program, inherit, cwd.as_deref())?,
            Confinement::Sandbox(sandbox) => {
                start_in(sandbox, &program).await.map_err(|error| Fault::Unavailable(error.whole()))??
            }
        };
        let group = Group::of(&child);
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Fault::Unavailable(format!("`{command}` has no standard streams")));
        };
        widen(&stdin);
        widen(&stdout);
        let printing = Printing::of(stderr, Arc::clone(upstream), masks.clone());
        let (peer, alive, streams) = Self::open((upstream, masks.clone()), stdout, stdin, limit, events);
        let (closing, closed) = oneshot::channel();
        let watching = watch(child, group, (streams, printing), closed, Arc::clone(&peer), Arc::clone(&alive));
        let counted = Counted::begin();
        let watching = tokio::spawn(async move {
            let _counted = counted;
            watching.await;
        });
        let process = Process { closing: Mutex::new(Some(closing)), watching: Mutex::new(watching) };
        Ok(Self { peer, alive, process: Some(process) })
    }

    /// What is asked on it.
    pub(super) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// Whether the other side still speaks.
    pub(super) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn exchange(&self, mut ticket: Ticket<'_>, text: Bytes) -> Result<Raw, Fault> {
        self.peer.send(text).await?;
        ticket.sent();
        ticket.answer().await
    }

    /// Ends the connection, and the child with all that it started.
    pub(super) async fn close(&self, reason: &str) {
        self.alive.store(false, Ordering::Release);
        self.peer.close(reason);
        if let Some(process) = &self.process {
            drop(process.closing.lock().await.take());
            let mut watching = process.watching.lock().await;
            if !watching.is_finished() {
                let _ = (&mut *watching).await;
            }
        }
    }
}

/// How many children of this process are watched.
static WATCHED: LazyLock<tokio::sync::watch::Sender<usize>> = LazyLock::new(tokio::sync::watch::Sender::default);

/// A child that is watched, until it is dropped.
struct Counted;

impl Counted {
    fn begin() -> Self {
        WATCHED.send_modify(|count| *count += 1);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        WATCHED.send_modify(|count| *count -= 1);
    }
}

/// Waits until every child that this process has started has ended with all that it started.
pub(crate) async fn children_ended() {
    // The sender lives as long as the process.
    let _ = WATCHED.subscribe().wait_for(|count| *count == 0).await;
}

/// A child that is to have these variables and no others, leads its own processes, and speaks on pipes.
fn prepared(mut process: Command, env: BTreeMap<OsString, OsString>) -> Command {
    process.env_clear().envs(env).kill_on_drop(true);
    #[cfg(unix)]
    process.process_group(0);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    process
}

fn start_openly(program: &Program<'_>, inherit: &Inherit, cwd: Option<&Path>) -> Result<Child, Fault> {
    let mut process = Command::new(program.command);
    process.args(program.args);
    if let Some(cwd) = cwd {
        process.current_dir(cwd);
    }
    let started = prepared(process, inherit.environment(std::env::vars_os(), program.env)).spawn();
    // The system's error is the same for a folder and a program that are not there.
    started.map_err(|error| match cwd.filter(|cwd| !cwd.is_dir()) {
        Some(cwd) => Fault::Unavailable(format!("its `cwd` {} is not a folder", cwd.display())),
        None => cannot_be_started(program.command, &error),
    })
}

async fn start_in(sandbox: &Sandbox, program: &Program<'_>) -> Result<Result<Child, Fault>, SandboxError> {
    let launch = Launch::find(sandbox, program.command, program.env, &|name| std::env::var_os(name))?;
    launch.try_out(sandbox).await?;
    let (process, env) = launch.command(sandbox, program.args, program.env);
    let mut process = prepared(process, env);
    let started = on_lasting_thread(move || process.spawn())?;
    Ok(started.map_err(|error| cannot_be_started(program.command, &error)))
}

fn cannot_be_started(command: &str, error: &std::io::Error) -> Fault {
    let reason = match error.kind() == std::io::ErrorKind::NotFound && !executable::is_path(command) {
        true => "it is not a program on the PATH; install it, or write its full path".to_owned(),
        false => error.to_string(),
    };
    Fault::Unavailable(format!("`{command}` cannot be started: {reason}"))
}

/// The processes that a child leads; they are killed when this is dropped.
#[cfg(unix)]
struct Group(Option<Pid>);

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)))
    }

    /// Asks them to end.
    fn ask(&self) {
        self.signal(Signal::TERM);
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // There may be none left.
            let _ = kill_process_group(group, signal);
        }
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Windows has no groups that a signal reaches: the child alone is killed, when it is dropped.
#[cfg(not(unix))]
struct Group;

#[cfg(not(unix))]
impl Group {
    fn of(_child: &Child) -> Self {
        Self
    }

    fn ask(&self) {}
}

/// Why nothing is asked of a program that is still there.
const ENDED_OUTPUT: &str = "it has ended its output";

/// Waits until a child ends or is to end, and sees to it that nothing of it stays.
async fn watch(
    mut child: Child,
    group: Group,
    (mut streams, printing): (Streams, Printing),
    closed: oneshot::Receiver<()>,
    peer: Arc<Peer>,
    alive: Arc<AtomicBool>,
) {
    enum Cause {
        Ended,
        Silent,
        Closed,
    }
    let cause = tokio::select! {
        // A link that is dropped without being closed is as good as closed.
        _ = closed => Cause::Closed,
        _ = child.wait() => Cause::Ended,
        _ = &mut streams.reading => Cause::Silent,
    };
    alive.store(false, Ordering::Release);
    // A program that ends closes its output first, and whoever waits is told how it ended.
    if matches!(cause, Cause::Silent) && tokio::time::timeout(LAST_WORDS, child.wait()).await.is_err() {
        peer.close(ENDED_OUTPUT);
    }
    // The end of its input is how a server learns that it is not needed any more.
    streams.writing.abort();
    let left = match tokio::time::timeout(GRACE, child.wait()).await {
        Ok(left) => left.ok(),
        Err(_) => {
            group.ask();
            tokio::time::timeout(GRACE, child.wait()).await.ok().and_then(Result::ok)
        }
    };
    drop(group);
    let how = left.map_or_else(|| "it was killed".to_owned(), |status| status.to_string());
    if matches!(cause, Cause::Closed) {
        tracing::debug!(upstream = %peer.upstream(), how, "the process has ended");
        streams.reading.abort();
        return;
    }
    // Its last answers may still be in the pipe.
    if !streams.reading.is_finished() && tokio::time::timeout(LAST_WORDS, &mut streams.reading).await.is_err() {
        streams.reading.abort();
    }
    let said = printing.said().await;
    peer.lost(Fault::Ended { how: format!("the process has ended ({how})"), said });
}

async fn read<R: AsyncRead + Unpin>(mut lines: LineReader<R>, peer: Arc<Peer>, alive: Arc<AtomicBool>, limit: usize) {
    let upstream = peer.upstream();
    loop {
        match lines.next().await {
            Ok(Some(Line::Text(line))) => match parsed(line.clone()) {
                Ok(message) => peer.receive(message, None),
                Err(error) if claims_to_be_a_message(&line) => {
                    peer.fail(id_in(&line, &line), Fault::Malformed(error.to_string()));
                }
                Err(error) if !peer.received_batch(&line, None) => {
                    let shown = || peer.shown(&error.to_string());
                    tracing::debug!(%upstream, error = shown(), "skipped a line that is not a message");
                }
                Err(_) => {}
            },
            Ok(Some(Line::TooLong { head, tail, length })) => {
                let reason = format!("it has {length} bytes, over the limit of {limit}");
                peer.fail(id_in(&head, &tail), Fault::Malformed(reason));
            }
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%upstream, %error, "its output cannot be read");
                break;
            }
        }
    }
    alive.store(false, Ordering::Release);
}

async fn log(
    mut lines: LineReader<tokio::process::ChildStderr>,
    upstream: Arc<str>,
    masks: Masks,
    last: Arc<std::sync::Mutex<VecDeque<String>>>,
) {
    while let Ok(Some(line)) = lines.next().await {
        let (Line::Text(text) | Line::TooLong { head: text, .. }) = line;
        let text = String::from_utf8_lossy(&text);
        // A sequence that does not end is kept from hiding the next lines.
        let text = clean(&text);
        tracing::debug!(%upstream, "{}", redact(&masks.cover(&text)).text);
        if !text.trim().is_empty() {
            let mut last = lock(&last);
            if last.len() == MOST_LINES {
                last.pop_front();
            }
            last.push_back(text.into_owned());
        }
    }
}

/// Whether a line that is not a message was meant as one, as opposed to what programs print for people, and is whole, as
/// opposed to the last that a program wrote before it died.
fn claims_to_be_a_message(line: &[u8]) -> bool {
    line.starts_with(b"{") && line.ends_with(b"}") && memchr::memmem::find(line, b"\"jsonrpc\"").is_some()
}

/// The id of a message of which only the ends are known: servers write it first or last. What stands deeper in it is no
/// id, and a request of the server has one of its own.
fn id_in(head: &[u8], tail: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Last {
        id: u64,
        method: Option<IgnoredAny>,
    }
    const KEY: &[u8] = b"\"id\":";
    let number = |text: &[u8]| {
        let digits = text.iter().copied().skip_while(u8::is_ascii_whitespace).take_while(u8::is_ascii_digit);
        String::from_utf8(digits.collect()).ok()?.parse().ok()
    };
    let members = top_members(head);
    if members.iter().any(|at| head[*at..].starts_with(b"\"method\"")) {
        return None;
    }
    let first = members.into_iter().take_while(|at| *at < 64).find(|at| head[*at..].starts_with(KEY));
    first.and_then(|at| number(&head[at + KEY.len()..])).or_else(|| {
        // Members at the end of the whole message, and nothing else, end with its last brace.
        let end = [b"{", &tail[memchr::memmem::rfind(tail, KEY)?..]].concat();
        let last = serde_json::from_slice::<Last>(&end).ok()?;
        last.method.is_none().then_some(last.id)
    })
}

/// Where the names of members of the outermost object begin, as far as the text goes. It need not be JSON.
fn top_members(text: &[u8]) -> Vec<usize> {
    let (mut depth, mut at, mut names) = (0_usize, 0, Vec::new());
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let begin = at;
                at += 1;
                while let Some(byte) = text.get(at).filter(|byte| **byte != b'"') {
                    at += if *byte == b'\\' { 2 } else { 1 };
                }
                let is_name = text.get(at + 1..).is_some_and(|rest| rest.trim_ascii_start().starts_with(b":"));
                if depth == 1 && is_name {
                    names.push(begin);
                }
            }
            _ => {}
        }
        at += 1;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::id_in;

    #[test]
    fn the_id_of_a_long_message_is_at_one_of_its_ends() {
        let cases: [(&str, &str, Option<u64>); 4] = [
            (r#"{"jsonrpc":"2.0","id":17,"result":{"content":[{"id":3"#, r#"x"}]}}"#, Some(17)),
            (r#"{"result":{"content":["#, r#"{"id":4}]},"jsonrpc":"2.0","id": 18}"#, Some(18)),
            (r#"{"result":{"content":["#, r#"xxxx"#, None),
            (r#"{"jsonrpc":"2.0","id":"a","result":"#, r#"}"#, None),
        ];
        for (head, tail, expected) in cases {
            assert_eq!(id_in(head.as_bytes(), tail.as_bytes()), expected, "{head}");
        }
    }

    #[test]
    fn what_stands_deeper_in_a_message_or_numbers_a_question_is_no_id_of_a_call() {
        let cases: [(&str, Option<u64>); 7] = [
            ("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"data\":\"\u{1}\",\"x\":{\"id\":9}}}", None),
            ("{\"params\":{\"data\":\"\u{1}\",\"x\":{\"id\":9}},\"jsonrpc\":\"2.0\"}", None),
            (r#"{"jsonrpc":"2.0","params":{"id":9},"result":[}"#, None),
            (r#"{"jsonrpc":"2.0","id":9,"method":"roots/list","params":[}"#, None),
            (r#"{"params":[},"id":9,"method":"roots/list","jsonrpc":"2.0"}"#, None),
            (r#"{"jsonrpc":"2.0","result":"\"id\":9}","id":8}"#, Some(8)),
            (r#"{"jsonrpc":"2.0","id":8,"result":[{"method":"m"}}"#, Some(8)),
        ];
        for (text, expected) in cases {
            assert_eq!(id_in(text.as_bytes(), text.as_bytes()), expected, "{text}");
        }
    }
}
