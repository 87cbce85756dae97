//! A program that runs as a child, with lines on its standard streams.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::ProcessError;
use super::confine::{Hiding, confined, is_above};
use super::running::{Folder, end_group, running};
use contextweaver_core::sync::lock;

/// An answer is at most so long.
const LONGEST_LINE: u64 = 16 << 20;

/// What is kept of the program's standard error.
const LAST_WORDS: usize = 2_000;

/// How long a program has to end after its input has.
const GRACE: Duration = Duration::from_secs(5);

/// The variables that the program keeps of our environment.
const ENVIRONMENT: [&str; 9] = [
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "NODE_PATH",
    "CONTEXTWEAVER_MODEL",
];

/// A program that is to be started, and what it must not read.
#[derive(Clone, Copy)]
pub(super) struct Launch<'a> {
    /// The program and its arguments.
    pub(super) command: &'a [OsString],
    /// Files and folders; what is not there is no matter.
    pub(super) hidden: &'a [PathBuf],
    /// Names of variables that it keeps of our environment beside the few that every program keeps.
    pub(super) variables: &'a [String],
}

/// A program that runs. What it started ends with it.
pub(super) struct Program {
    child: Child,
    /// Lines on their way to its input: a program that does not read must not hold us up.
    input: Option<Sender<String>>,
    lines: Receiver<Result<String, String>>,
    last_words: Arc<Mutex<VecDeque<u8>>>,
    folder: Folder,
    /// Where it makes its temporary files, if it may not make them in the usual place.
    _temporary: Option<Folder>,
    hiding: Hiding,
    started: Instant,
}

impl Program {
    /// Starts a command in `folder` with the few variables of the environment that programs keep.
    pub(super) fn start(launch: Launch<'_>, folder: Folder) -> Result<Self, ProcessError> {
        let (program, arguments) = launch.command.split_first().ok_or_else(|| ProcessError::Missing {
            program: String::new(),
            reason: "no program is named".to_owned(),
        })?;
        let missing = |error: std::io::Error| ProcessError::Missing {
            program: program.to_string_lossy().into_owned(),
            reason: error.to_string(),
        };
        let named = launch.variables.iter().map(String::as_str);
        let kept = ENVIRONMENT.into_iter().chain(named).filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut command = Command::new(program);
        // What it starts ends with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
            .args(arguments)
            .current_dir(folder.path())
            .env_clear()
            .envs(kept)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let is_closed = is_above(&std::env::temp_dir(), launch.hidden);
        let temporary = is_closed.then(super::folder).transpose()?;
        if let Some(temporary) = &temporary {
            command.env("TMPDIR", temporary.path());
        }
        let own: Vec<_> = [Some(&folder), temporary.as_ref()].into_iter().flatten().map(|one| one.path()).collect();
        // What hiding takes is not the program's time.
        let start = || command.spawn().map(|child| (child, Instant::now()));
        let mut all = running();
        let (started, hiding) = confined(launch.hidden, &own, start).map_err(missing)?;
        let (mut child, started) = started.map_err(missing)?;
        all.groups.insert(child.id());
        drop(all);
        let (input, to_write) = channel::<String>();
        if let Some(mut stdin) = child.stdin.take() {
            thread::spawn(move || {
                for line in to_write {
                    if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
                        break;
                    }
                }
            });
        }
        let (send, lines) = sync_channel(4);
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                let mut output = BufReader::new(output);
                while let Some(line) = next_line(&mut output) {
                    if send.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(mut errors) = child.stderr.take() {
            let kept = Arc::clone(&last_words);
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = errors.read(&mut bytes) {
                    let mut kept = lock(&kept);
                    kept.extend(&bytes[..count]);
                    let surplus = kept.len().saturating_sub(LAST_WORDS);
                    kept.drain(..surplus);
                }
            });
        }
        Ok(Self { input: Some(input), child, lines, last_words, folder, _temporary: temporary, hiding, started })
    }

    /// A file that is in the folder where it runs.
    pub(super) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// What is kept from it.
    pub(super) fn hiding(&self) -> &Hiding {
        &self.hiding
    }

    /// How long it has been running, in microseconds.
    pub(super) fn age_us(&self) -> u64 {
        micros(self.started.elapsed())
    }

    /// A line that is there although none was asked for.
    pub(super) fn waiting(&self) -> Option<String> {
        self.lines.try_recv().ok().map(|line| line.unwrap_or_else(|reason| reason))
    }

    /// Sends one line.
    pub(super) fn send(&self, what: &str, line: &str) -> Result<(), ProcessError> {
        let sent = self.input.as_ref().map(|input| input.send(format!("{line}\n")));
        if matches!(sent, Some(Ok(()))) { Ok(()) } else { Err(self.failed(format!("it ended before {what}"))) }
    }

    /// The next line, at most `limit` after `start`.
    pub(super) fn receive(&mut self, what: &str, start: Instant, limit: Duration) -> Result<String, ProcessError> {
        match self.next(start + limit) {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(reason)) => Err(self.failed(format!("{what}: {reason}"))),
            Err(RecvTimeoutError::Timeout) => Err(ProcessError::TimedOut { what: what.to_owned(), limit }),
            Err(RecvTimeoutError::Disconnected) => Err(self.failed(format!("it ended without answering {what}"))),
        }
    }

    /// The next line until a time. A process that ended is not waited for, even where what it started keeps its output open.
    fn next(&mut self, until: Instant) -> Result<Result<String, String>, RecvTimeoutError> {
        const SLICE: Duration = Duration::from_millis(200);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(SLICE)) {
                Err(RecvTimeoutError::Timeout) if left <= SLICE => return Err(RecvTimeoutError::Timeout),
                Err(RecvTimeoutError::Timeout) if matches!(self.child.try_wait(), Ok(Some(_))) => {
                    return self.lines.recv_timeout(SLICE).map_err(|_| RecvTimeoutError::Disconnected);
                }
                Err(RecvTimeoutError::Timeout) => {}
                other => return other,
            }
        }
    }

    /// An error with what the program printed last.
    pub(super) fn failed(&self, reason: impl fmt::Display) -> ProcessError {
        let words: Vec<u8> = lock(&self.last_words).iter().copied().collect();
        let words = String::from_utf8_lossy(&words);
        match words.trim() {
            "" => ProcessError::Failed(reason.to_string()),
            words => ProcessError::Failed(format!("{reason}; it printed last: {}", bounded(last_line(words)))),
        }
    }

    /// `VmHWM` of the process.
    pub(super) fn peak_kib(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    }

    /// Ends the input; the program has to end by itself, and well.
    pub(super) fn end(mut self) -> Result<(), ProcessError> {
        drop(self.input.take());
        let until = Instant::now() + GRACE;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(self.failed(format!("it ended with {status} after its input"))),
                Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(2)),
                _ => return Err(ProcessError::TimedOut { what: "ending after its input".to_owned(), limit: GRACE }),
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The group outlives its first process, which need not have waited for what it started.
        let mut all = running();
        all.groups.remove(&self.child.id());
        end_group(self.child.id());
        drop(all);
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The next line, or why there is none; `None` at the end.
fn next_line(output: &mut impl BufRead) -> Option<Result<String, String>> {
    let mut line = Vec::new();
    match output.take(LONGEST_LINE).read_until(b'\n', &mut line) {
        Ok(0) => return None,
        Ok(_) if line.last() != Some(&b'\n') && line.len() as u64 == LONGEST_LINE => {
            return Some(Err(format!("an answer is longer than {LONGEST_LINE} bytes")));
        }
        Ok(_) if line.last() != Some(&b'\n') => {
            return Some(Err("the answer is cut off: it has no line ending".to_owned()));
        }
        Ok(_) => {}
        Err(error) => return Some(Err(error.to_string())),
    }
    Some(String::from_utf8(line).map_err(|_| "the answer is not UTF-8".to_owned()))
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn last_line(text: &str) -> &str {
    text.lines().next_back().unwrap_or_default()
}

/// At most 200 characters, without what could steer a terminal.
pub(in crate::eval) fn bounded(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}
