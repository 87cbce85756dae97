//! Programs and services of others that summarise, count tokens or redact in place of ours; a program that embeds the engine
//! can give functions of its own ([`Hooks::with`]).
//!
//! A hook is asked one JSON object on one line and answers one on one line:
//!
//! | hook | is asked | answers |
//! |---|---|---|
//! | summarizer | `{"do": "summarize", "content", "media_type", "tokens"}` | `{"text"}`, of that many tokens at most |
//! | token counter | `{"do": "count", "text"}` | `{"tokens"}` |
//! | redactor | `{"do": "redact", "text"}` | `{"text"}` |
//!
//! A program gets the `id` of the question beside that, as its first member. An answer that repeats an id answers the question
//! with that id and no other; one without an id is taken for the answer, as long as the program writes one line for each
//! question.
//!
//! Time and size of each answer are bounded. Where a hook fails (no answer in time, an end, something else than such an
//! object, a summary over its cap), ours does the work, and the record of the prompt says so. What a redactor that is required
//! does not answer for is withheld. A hook that failed several times in a row rests, so that it costs a small part of the time,
//! and is asked again. Where one process serves many, each request counts by itself ([`Hooks::for_request`]): nobody's texts
//! switch off the redactor of others.
//!
//! The token counter is asked about finished prompts. One that is over its budget by that count is compiled again for a
//! smaller one until it is not, so the budget is a promise under both counts.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::compile::CompileError;
use super::firewall::Redactor;
use super::stats::ContextPack;
use super::summary::{StructureSummarizer, Summarizer};
pub use crate::config::{HookConfig, HookKind, HooksConfig};
use crate::literal::Document;
use crate::store::redact;
use contextweaver_core::sync::lock;
use contextweaver_core::text::{Estimator, sha256_hex};

/// Failures in a row after which a hook rests.
const MOST_FAILURES: usize = 3;

/// How long it rests: a hook that is never right takes a few seconds of each minute.
const REST: Duration = Duration::from_secs(60);

/// What stands for a text for which a required redactor has no answer.
const WITHHELD: &str = "[WITHHELD: the redactor gave no answer]";

/// Prompts that are compiled for one count of an outer counter at most, before the last one, which is empty.
const MOST_ROUNDS: usize = 10;

/// Lines of a program that are held, and those that are passed over for one question, at most.
const MOST_STRAYED: usize = 16;

/// Characters of the id of a question.
const ID_CHARS: usize = 16;

/// How a hook is reached.
pub trait Exchange: Send + Sync {
    /// The line that answers a line, which holds a JSON object. Who asks waits for `patience` at most, also where the hook
    /// itself has longer and where it is asked by others first. A function of the program cannot be stopped, and takes as
    /// long as it takes.
    ///
    /// # Errors
    /// What happened instead.
    fn ask(&self, line: &str, patience: Duration) -> Result<String, String>;
}

/// A hook cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`hooks.{hook}`: {reason}")]
pub struct HookError {
    /// Which hook.
    pub hook: &'static str,
    /// What is wrong, and what to do.
    pub reason: String,
}

struct Hook {
    exchange: Arc<dyn Exchange>,
    max_bytes: usize,
    failures: Mutex<Failures>,
}

/// The failures of a hook since its last answer.
#[derive(Default)]
struct Failures {
    in_a_row: usize,
    last: Option<Instant>,
}

impl Failures {
    fn is_resting(&self) -> bool {
        self.in_a_row >= MOST_FAILURES && self.last.is_some_and(|last| last.elapsed() < REST)
    }

    fn add(&mut self) {
        *self = Self { in_a_row: self.in_a_row.saturating_add(1), last: Some(Instant::now()) };
    }
}

impl Hook {
    fn new(exchange: Arc<dyn Exchange>, max_bytes: usize) -> Self {
        Self { exchange, max_bytes, failures: Mutex::default() }
    }

    fn failures(&self) -> MutexGuard<'_, Failures> {
        lock(&self.failures)
    }
}

/// The hooks of a conversation. Threads share them by reference.
#[derive(Default)]
pub struct Hooks {
    by_kind: BTreeMap<HookKind, Hook>,
    /// Whether a text is withheld for which the redactor has no answer. It holds for each redactor, also one that comes in
    /// place of another.
    withholds: bool,
    notes: Mutex<BTreeMap<String, usize>>,
    /// How long they may be waited for altogether, and until when that is.
    patience: Option<(Duration, Instant)>,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds: Vec<&HookKind> = self.by_kind.keys().collect();
        formatter.debug_tuple("Hooks").field(&kinds).finish()
    }
}

/// Makes what reaches a hook that has an address, or says why it cannot.
pub type Reach<'r> = dyn Fn(&HookConfig) -> Result<Box<dyn Exchange>, String> + 'r;

impl Hooks {
    /// The hooks of a configuration. Programs are started when they are first asked. `http` reaches hooks that have an
    /// address.
    ///
    /// # Errors
    /// That of `http`.
    pub fn open(config: &HooksConfig, http: &Reach<'_>) -> Result<Self, HookError> {
        let mut hooks = Self::default();
        for (kind, hook) in config.all() {
            let Some(hook) = hook else { continue };
            let exchange: Box<dyn Exchange> = match hook.url {
                None => Box::new(Process::new(hook.clone())),
                Some(_) => http(hook).map_err(|reason| HookError { hook: kind.name(), reason })?,
            };
            hooks = hooks.with(kind, exchange, hook.max_bytes);
            hooks.withholds |= hook.required;
        }
        Ok(hooks)
    }

    /// The same with `exchange` as the hook of this kind, in place of one that is there: a function of the program itself,
    /// say. Questions of more than `max_bytes` bytes are not asked; who answers bounds the time and the size of an answer.
    #[must_use]
    pub fn with(mut self, kind: HookKind, exchange: Box<dyn Exchange>, max_bytes: usize) -> Self {
        self.by_kind.insert(kind, Hook::new(exchange.into(), max_bytes));
        self
    }

    /// The same, where the redactor is required: a text for which it has no answer is withheld as a whole, and a mark stands
    /// in its place. Otherwise such a text is what the built-in redactor makes of it.
    #[must_use]
    pub fn withholding(mut self) -> Self {
        self.withholds = true;
        self
    }

    /// The same with another way to each of them.
    #[must_use]
    pub fn through(mut self, way: impl Fn(Arc<dyn Exchange>) -> Arc<dyn Exchange>) -> Self {
        for hook in self.by_kind.values_mut() {
            hook.exchange = way(Arc::clone(&hook.exchange));
        }
        self
    }

    /// The same hooks for one request among many: with failures and notes of its own, and no answer is waited for any more
    /// when `patience` is over.
    #[must_use]
    pub fn for_request(&self, patience: Duration) -> Self {
        let same = |hook: &Hook| Hook::new(Arc::clone(&hook.exchange), hook.max_bytes);
        Self {
            by_kind: self.by_kind.iter().map(|(kind, hook)| (*kind, same(hook))).collect(),
            withholds: self.withholds,
            notes: Mutex::default(),
            patience: Some((patience, Instant::now() + patience)),
        }
    }

    /// What failed since this was last asked, and how often: for the record of a prompt.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let notes = std::mem::take(&mut *lock(&self.notes));
        let told = |(note, times): (String, usize)| if times > 1 { format!("{note} ({times} times)") } else { note };
        notes.into_iter().map(told).collect()
    }

    fn note(&self, kind: HookKind, what: &str) {
        let instead = match kind {
            HookKind::Redactor if self.withholds => "the text was withheld",
            _ => "the built-in was used",
        };
        let note = format!("hook {}: {what}; {instead}", kind.name());
        *lock(&self.notes).entry(note).or_default() += 1;
    }

    /// What a hook answers, read by `read`; `None` where there is none, or where it failed, which is then noted.
    fn asked<T>(&self, kind: HookKind, question: &Value, read: impl FnOnce(&Value) -> Result<T, String>) -> Option<T> {
        let hook = self.by_kind.get(&kind)?;
        if hook.failures().is_resting() {
            self.note(kind, &format!("not asked for {} s after {MOST_FAILURES} failures", REST.as_secs()));
            return None;
        }
        let left = self.patience.map(|(patience, until)| (patience, until.saturating_duration_since(Instant::now())));
        if let Some((patience, Duration::ZERO)) = left {
            let seconds = patience.as_secs_f64();
            self.note(kind, &format!("not asked after {seconds} s of one request"));
            return None;
        }
        let left = left.map_or(Duration::MAX, |(_, left)| left);
        let answer = || {
            let line = question.to_string();
            if line.len() > hook.max_bytes {
                return Err((format!("the question has more than {} bytes", hook.max_bytes), false));
            }
            let answer = hook.exchange.ask(&line, left).map_err(|reason| (reason, true))?;
            let answer =
                serde_json::from_str(&answer).map_err(|error| (format!("the answer is not JSON: {error}"), true))?;
            read(&answer).map_err(|reason| (reason, true))
        };
        match answer() {
            Ok(answer) => {
                *hook.failures() = Failures::default();
                Some(answer)
            }
            Err((reason, counts)) => {
                if counts {
                    hook.failures().add();
                }
                self.note(kind, &reason);
                None
            }
        }
    }

    fn has(&self, kind: HookKind) -> bool {
        self.by_kind.contains_key(&kind)
    }

    /// The summariser, where there is one.
    #[must_use]
    pub fn summarizer(&self) -> Option<&dyn Summarizer> {
        self.has(HookKind::Summarizer).then_some(self as &dyn Summarizer)
    }

    /// The redactor, where there is one.
    #[must_use]
    pub fn redactor(&self) -> Option<&dyn Redactor> {
        self.has(HookKind::Redactor).then_some(self as &dyn Redactor)
    }

    /// The tokens of a text by the token counter; `None` without one, or where it fails.
    #[must_use]
    pub fn count(&self, text: &str) -> Option<usize> {
        let question = json!({"do": "count", "text": text});
        self.asked(HookKind::TokenCounter, &question, |answer| {
            let tokens = answer.get("tokens").and_then(whole);
            tokens.ok_or_else(|| "the answer has no `tokens`, or it is no whole number".to_owned())
        })
    }

    /// A prompt that is within `budget` under the token counter too: `compiled` makes one for a budget that may be smaller.
    ///
    /// # Errors
    /// That of `compiled`.
    pub fn within<T>(
        &self,
        budget: usize,
        mut compiled: impl FnMut(usize) -> Result<T, CompileError>,
        pack: impl Fn(&mut T) -> &mut ContextPack,
    ) -> Result<T, CompileError> {
        let mut room = budget;
        let mut made = compiled(room)?;
        let mut notes = Vec::new();
        // Header and footer stay, however little room there is.
        let mut least = 0;
        if self.has(HookKind::TokenCounter) {
            for round in 0.. {
                let one = pack(&mut made);
                let Some(tokens) = (if one.prompt.is_empty() { Some(0) } else { self.count(&one.prompt) }) else {
                    break;
                };
                if tokens <= budget {
                    notes.push(format!("hook token_counter: {tokens} of {budget} tokens"));
                    break;
                }
                if room <= least {
                    return Err(CompileError::FrameTooLarge { phase: one.phase, needed: tokens, budget });
                }
                // As much less as the counts differ, and somewhat more each time.
                let smaller = room.saturating_mul(budget) / tokens;
                room = if round < MOST_ROUNDS {
                    smaller.saturating_sub(round).min(room - room.div_ceil(16)).max(least)
                } else {
                    least
                };
                made = match compiled(room) {
                    Err(CompileError::FrameTooLarge { needed, .. }) => {
                        (least, room) = (needed, needed);
                        compiled(room)?
                    }
                    made => made?,
                };
            }
        }
        let stats = &mut pack(&mut made).stats;
        stats.budget = budget;
        stats.notes.extend(notes);
        stats.notes.extend(self.notes());
        Ok(made)
    }
}

/// A whole number. Programs write one with a fraction too, which JSON does not tell apart.
fn whole(number: &Value) -> Option<usize> {
    /// From here on, not every whole number is one that JSON can carry.
    const MOST: f64 = 9_007_199_254_740_991.0;
    let exact = number.as_u64().and_then(|number| usize::try_from(number).ok());
    let is_whole = |number: &f64| (0.0..=MOST).contains(number) && number.fract() == 0.0;
    exact.or_else(|| number.as_f64().filter(is_whole).map(|number| number as usize))
}

fn text_of(answer: &Value) -> Result<String, String> {
    answer.get("text").and_then(Value::as_str).map(str::to_owned).ok_or_else(|| "the answer has no `text`".to_owned())
}

impl Redactor for Hooks {
    /// Ours works first and in any case, so that a redactor that fails lets nothing through that ours knows.
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let ours = redact(text).text;
        let question = json!({"do": "redact", "text": ours});
        match self.asked(HookKind::Redactor, &question, text_of) {
            Some(theirs) => Cow::Owned(theirs),
            // There is nothing to see in a text of white space, and metadata has many such.
            None if self.withholds && !ours.trim().is_empty() => Cow::Owned(WITHHELD.to_owned()),
            None => ours,
        }
    }
}

impl Summarizer for Hooks {
    fn summarize(&self, content: &str, media_type: &str, cap: usize, estimator: Estimator) -> String {
        self.summary(content, media_type, cap, estimator)
            .unwrap_or_else(|| StructureSummarizer.summarize(content, media_type, cap, estimator))
    }

    fn summarize_literal(&self, document: &Document<'_>, media_type: &str, cap: usize, estimator: Estimator) -> String {
        self.summary(document.source(), media_type, cap, estimator)
            .unwrap_or_else(|| StructureSummarizer.summarize_literal(document, media_type, cap, estimator))
    }
}

impl Hooks {
    fn summary(&self, content: &str, media_type: &str, cap: usize, estimator: Estimator) -> Option<String> {
        let question = json!({"do": "summarize", "content": content, "media_type": media_type, "tokens": cap});
        self.asked(HookKind::Summarizer, &question, |answer| {
            let text = text_of(answer)?;
            match estimator.count(&text) {
                tokens if tokens > cap => Err(format!("the summary has more than the {cap} tokens allowed")),
                0 => Err("the summary is empty".to_owned()),
                _ => Ok(text),
            }
        })
    }
}

/// A hook that is a program.
struct Process {
    config: HookConfig,
    turns: Turns,
    running: Mutex<Option<Running>>,
}

impl Process {
    fn new(config: HookConfig) -> Self {
        Self { config, turns: Turns::default(), running: Mutex::default() }
    }
}

/// One at a time, and who waits longest is next: a request with many questions does not keep one with a single question
/// waiting. A lock of the standard library promises neither that nor a bounded wait.
#[derive(Default)]
struct Turns {
    queue: Mutex<Queue>,
    moved: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Whose turn it is, and who waits behind it.
    waiting: VecDeque<u64>,
    /// The number of who comes next.
    next: u64,
}

/// What ends with this is somebody's turn.
struct Turn<'t>(&'t Turns);

impl Turns {
    /// The next turn, if it comes within `patience`.
    fn next(&self, patience: Duration) -> Option<Turn<'_>> {
        let mut queue = lock(&self.queue);
        let own = queue.next;
        queue.next += 1;
        queue.waiting.push_back(own);
        let waits = |queue: &mut Queue| queue.waiting.front() != Some(&own);
        let (mut queue, _) =
            self.moved.wait_timeout_while(queue, patience, waits).unwrap_or_else(PoisonError::into_inner);
        if queue.waiting.front() == Some(&own) {
            return Some(Turn(self));
        }
        // Nobody waits for this one.
        queue.waiting.retain(|other| *other != own);
        None
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        lock(&self.0.queue).waiting.pop_front();
        self.0.moved.notify_all();
    }
}

/// A program that was started. Two threads write and read, so that a program that does neither holds nobody.
struct Running {
    child: Child,
    questions: Sender<Vec<u8>>,
    answers: Receiver<Result<Line, Failed>>,
}

/// Why a question to a program has no answer.
enum Failed {
    /// The program has ended before it began to answer.
    Ended,
    /// There was no answer in time.
    Late,
    /// Something else, in words.
    Other(String),
}

impl From<String> for Failed {
    fn from(reason: String) -> Self {
        Self::Other(reason)
    }
}

impl From<&str> for Failed {
    fn from(reason: &str) -> Self {
        Self::Other(reason.to_owned())
    }
}

/// A line that a program wrote.
struct Line {
    text: Vec<u8>,
    /// Whether more came with it.
    has_more: bool,
}

impl Line {
    /// The id that an answer repeats; `None` for an answer without one, and for what is no answer.
    fn id(&self) -> Option<Value> {
        let answer: Value = serde_json::from_slice(&self.text).ok()?;
        answer.get("id").filter(|id| !id.is_null()).cloned()
    }
}

/// The id of a question, and its line with that id. Equal questions have one id: the answer to one is an answer to the other,
/// and what a program makes of a line does not depend on what it was asked before.
fn identified(question: &str) -> (String, String) {
    let mut id = sha256_hex(question.as_bytes());
    id.truncate(ID_CHARS);
    let line = match question.strip_prefix('{') {
        Some(members) => format!("{{\"id\":\"{id}\",{members}\n"),
        None => format!("{question}\n"),
    };
    (id, line)
}

/// What this process started.
struct Started {
    /// The programs that were not ended yet, each behind the process that started it: one that was forked has the list of its
    /// parent.
    programs: BTreeSet<(u32, u32)>,
    /// Whether no more are started.
    is_over: bool,
}

static STARTED: Mutex<Started> = Mutex::new(Started { programs: BTreeSet::new(), is_over: false });

/// Ends the programs of hooks that this process started, with all that they started, and starts no more. For the end of a
/// process: what is at work for a thread that nobody waits for would outlive it.
pub fn end_programs() {
    let mut started = lock(&STARTED);
    started.is_over = true;
    let own = std::process::id();
    started.programs.iter().filter(|(by, _)| *by == own).for_each(|(_, program)| end_group(*program));
}

/// Ends what a program started, which holds on to its streams, and on Unix the program. All of it may have ended already.
fn end_group(program: u32) {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        if let Some(group) = i32::try_from(program).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
    #[cfg(not(unix))]
    let _ = program;
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut started = lock(&STARTED);
        end_group(self.child.id());
        started.programs.remove(&(std::process::id(), self.child.id()));
        drop(started);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(config: &HookConfig) -> Result<Self, String> {
        let (program, arguments) = config.command.split_first().ok_or("no command")?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut started = lock(&STARTED);
        if started.is_over {
            return Err("the process is about to end".to_owned());
        }
        let mut child = command.spawn().map_err(|error| format!("`{program}` cannot be started: {error}"))?;
        started.programs.insert((std::process::id(), child.id()));
        drop(started);
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("`{program}` has no streams"));
        };
        let (questions, asked) = channel::<Vec<u8>>();
        std::thread::spawn(move || {
            for line in asked {
                if input.write_all(&line).and_then(|()| input.flush()).is_err() {
                    break;
                }
            }
        });
        let (given, answers) = sync_channel(MOST_STRAYED);
        let most = config.max_bytes;
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = Vec::new();
                let read = output.by_ref().take(most as u64 + 1).read_until(b'\n', &mut line);
                let answer = match read {
                    Err(error) => Err(Failed::Other(error.to_string())),
                    Ok(_) if line.last() == Some(&b'\n') => {
                        Ok(Line { text: line, has_more: !output.buffer().is_empty() })
                    }
                    Ok(0) => Err(Failed::Ended),
                    Ok(_) if line.len() > most => Err(format!("the answer has more than {most} bytes").into()),
                    Ok(_) => Err("the program ended in the middle of its answer".into()),
                };
                let ends = answer.is_err();
                if given.send(answer).is_err() || ends {
                    break;
                }
            }
        });
        Ok(Self { child, questions, answers })
    }

    /// The line that answers `question`, within `patience`. Lines with the id of another question are passed over.
    fn answer(&self, question: &str, patience: Duration) -> Result<String, Failed> {
        let (id, question) = identified(question);
        let mut passed = 0;
        let mut pass_over = || {
            passed += 1;
            if passed > MOST_STRAYED { Err(STRAYED) } else { Ok(()) }
        };
        // What came before the question does not answer it.
        loop {
            match self.answers.try_recv() {
                Ok(line) => line?.id().ok_or(UNASKED)?,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(Failed::Ended),
            };
            pass_over()?;
        }
        let _ = self.questions.send(question.into_bytes());
        let asked = Instant::now();
        loop {
            let line = self.answers.recv_timeout(patience.saturating_sub(asked.elapsed())).map_err(
                |error| match error {
                    RecvTimeoutError::Timeout => Failed::Late,
                    RecvTimeoutError::Disconnected => Failed::Ended,
                },
            )??;
            match line.id() {
                Some(theirs) if theirs != id => pass_over()?,
                None if line.has_more => return Err(UNASKED.into()),
                Some(_) | None => {
                    return String::from_utf8(line.text).map_err(|_| "the answer is not UTF-8".into());
                }
            }
        }
    }
}

/// What is said of a program of which nobody knows which line answers which question.
const UNASKED: &str = "more than one line for one question, so answers cannot be told apart; write one line for each";

/// What is said of a program that goes on answering what it was not asked.
const STRAYED: &str = "too many lines that answer other questions; write one line for each question, with its `id`";

impl Exchange for Process {
    fn ask(&self, line: &str, patience: Duration) -> Result<String, String> {
        let began = Instant::now();
        let turn = self.turns.next(patience);
        let _turn = turn.ok_or("it answered other requests for all of the time that this one had")?;
        let mut running = lock(&self.running);
        let (timeout, left) = (Duration::from_millis(self.config.timeout_ms), patience.saturating_sub(began.elapsed()));
        let patience = timeout.min(left);
        let told = |failed| match failed {
            Failed::Ended => "the program has ended".to_owned(),
            Failed::Late if left < timeout => "no answer in the time that the request had".to_owned(),
            Failed::Late => format!("no answer within {} ms", timeout.as_millis()),
            Failed::Other(reason) => reason,
        };
        // Where anything fails the program is ended, so that no late answer is taken for that of the next question, and
        // no line too many either.
        if let Some(one) = running.take() {
            match one.answer(line, patience) {
                Ok(answer) => {
                    *running = Some(one);
                    return Ok(answer);
                }
                // It ended after an earlier answer: a new one knows nothing of that, and is asked.
                Err(Failed::Ended) => {}
                Err(failed) => return Err(told(failed)),
            }
        }
        let one = Running::start(&self.config)?;
        let answer = one.answer(line, patience).map_err(told)?;
        *running = Some(one);
        Ok(answer)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::compile::Request;
    use crate::config::ContextConfig;
    use crate::event::{ContextItem, ItemKind, Phase, ToolOutput};
    use crate::manager::ContextManager;
    use crate::store::Stores;

    /// A hook that is this script of the shell.
    fn script(script: &str) -> Option<HookConfig> {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        Some(HookConfig { command, url: None, timeout_ms: 400, max_bytes: 200_000, required: false })
    }

    fn manager(hooks: HooksConfig) -> ContextManager {
        let config = ContextConfig { hooks, ..ContextConfig::default() };
        let hooks = Hooks::open(&config.hooks, &|_| Err("nothing here reaches an address".to_owned())).unwrap();
        told(ContextManager::new(Stores::default(), Box::new(StructureSummarizer), config).with_hooks(hooks))
    }

    /// The same with a conversation that has large results.
    fn told(manager: ContextManager) -> ContextManager {
        manager.ingest(ContextItem::new("u1", ItemKind::UserTurn, "Read the log.")).unwrap();
        for number in 0..6 {
            let call = format!("c{number}");
            manager.ingest(ContextItem::new(call.as_str(), ItemKind::ToolCall, "read_log()").under("u1")).unwrap();
            let log: String = (0..300).map(|line| format!("10:00 INFO job {number} block {line} copied\n")).collect();
            manager.ingest_tool_result(&call, &ToolOutput::text(log)).unwrap();
        }
        manager
    }

    #[test]
    fn a_summariser_of_others_is_asked() {
        let summarizer = script(r#"while read -r line; do echo '{"text": "all blocks were copied"}'; done"#);
        let pack = manager(HooksConfig { summarizer, ..HooksConfig::default() }).build(Phase::Answer, "log").unwrap();
        assert!(pack.prompt.contains("all blocks were copied"), "{}", pack.prompt);
        assert_eq!(pack.stats.notes, [""; 0]);
    }

    #[test]
    fn a_hook_may_be_a_part_of_the_program() {
        type Answer = fn(&Value) -> Result<Value, String>;
        struct Here(Answer);
        impl Exchange for Here {
            fn ask(&self, line: &str, _: Duration) -> Result<String, String> {
                (self.0)(&serde_json::from_str(line).unwrap()).map(|answer| answer.to_string())
            }
        }
        let answers: [(HookKind, Answer, &str); 6] = [
            (
                HookKind::Summarizer,
                |asked| Ok(json!({"text": format!("short {}", asked["media_type"])})),
                "short \"text/plain\"",
            ),
            (HookKind::TokenCounter, |_| Ok(json!({"tokens": 7})), "hook token_counter: 7 of "),
            (HookKind::TokenCounter, |_| Ok(json!({"tokens": 7.0})), "hook token_counter: 7 of "),
            (HookKind::TokenCounter, |_| Ok(json!({"tokens": 7.5})), "it is no whole number"),
            (
                HookKind::Redactor,
                |asked| Ok(json!({"text": asked["text"].as_str().unwrap().replace("copied", "***")})),
                "block 0 ***",
            ),
            (HookKind::Summarizer, |_| Err("no model".to_owned()), "hook summarizer: no model; the built-in was used"),
        ];
        for (kind, answer, expected) in answers {
            let hooks = Hooks::default().with(kind, Box::new(Here(answer)), usize::MAX);
            let pack = told(ContextManager::default().with_hooks(hooks)).build(Phase::Answer, "log").unwrap();
            let said = format!("{}\n{:?}", pack.prompt, pack.stats.notes);
            assert!(said.contains(expected), "{}: {said}", kind.name());
        }
    }

    #[test]
    fn header_and_footer_stay_under_any_counter() {
        struct Letters;
        impl Exchange for Letters {
            fn ask(&self, line: &str, _: Duration) -> Result<String, String> {
                let asked: Value = serde_json::from_str(line).unwrap();
                Ok(json!({"tokens": asked["text"].as_str().unwrap().chars().count()}).to_string())
            }
        }
        let hooks = Hooks::default().with(HookKind::TokenCounter, Box::new(Letters), usize::MAX);
        let manager = told(ContextManager::default().with_hooks(hooks));
        let (header, footer) = ("head ".repeat(8), "foot ".repeat(8));
        let frame = format!("{header}\n\n{footer}").len();
        for budget in 40..400 {
            let request = Request {
                budget: Some(budget),
                header: &header,
                footer: &footer,
                ..Request::new(Phase::Answer, "log")
            };
            match manager.build_request(&request) {
                Ok(pack) => {
                    assert!(pack.prompt.contains(&header) && pack.prompt.contains(&footer), "{budget}");
                    assert!(pack.prompt.chars().count() <= budget && pack.stats.budget == budget, "{budget}");
                }
                Err(error) => {
                    let said =
                        format!("header and footer of the answer prompt need {frame} tokens, the budget is {budget}; ");
                    assert!(budget < frame && error.to_string().starts_with(&said), "{error}");
                }
            }
        }
    }

    #[test]
    fn ours_does_what_a_hook_does_not() {
        let ours = manager(HooksConfig::default()).build(Phase::Answer, "log").unwrap();
        for (bad, said) in [
            ("sleep 30", "no answer within 400 ms"),
            ("exit 3", "the program has ended"),
            ("while read -r line; do echo rubbish; done", "the answer is not JSON"),
            ("while read -r line; do echo '{\"words\": 1}'; done", "the answer has no `text`"),
            (
                "while read -r line; do printf '{\"text\": \"a\"}\\n{\"text\": \"b\"}\\n'; done",
                "more than one line for one",
            ),
            ("yes x | tr -d '\\n'", "the answer has more than 200000 bytes"),
            (
                "while read -r line; do printf '{\"text\": \"'; yes word | head -n 5000 | tr '\\n' ' '; echo '\"}'; done",
                "more than the 300 tokens",
            ),
        ] {
            let began = Instant::now();
            let manager = manager(HooksConfig { summarizer: script(bad), ..HooksConfig::default() });
            let pack = manager.build(Phase::Answer, "log").unwrap();
            assert_eq!(pack.prompt, ours.prompt, "{bad}");
            let notes = pack.stats.notes.join("\n");
            assert!(
                notes.contains("hook summarizer: ")
                    && notes.contains(said)
                    && notes.contains("; the built-in was used"),
                "{bad}: {notes}"
            );
            assert!(notes.contains("not asked for 60 s after 3 failures"), "{bad}: {notes}");
            assert!(began.elapsed() < Duration::from_secs(20), "{bad}");
        }
        let absent = HookConfig { command: vec!["/nonexistent".to_owned()], ..script("").unwrap() };
        let pack = manager(HooksConfig { summarizer: Some(absent), ..HooksConfig::default() })
            .build(Phase::Answer, "log")
            .unwrap();
        assert!(pack.stats.ledger().contains("`/nonexistent` cannot be started"), "{}", pack.stats.ledger());
    }

    #[test]
    fn a_program_that_ends_after_its_answer_is_started_for_the_next_question() {
        let hook = script(r#"read -r line; echo '{"text": "once"}'"#).unwrap();
        let process = Process::new(hook);
        for pause in [0, 0, 50, 0] {
            std::thread::sleep(Duration::from_millis(pause));
            assert_eq!(process.ask("{}", Duration::MAX).unwrap().trim(), r#"{"text": "once"}"#);
        }
    }

    #[test]
    fn what_fails_for_one_request_fails_for_no_other() {
        let redactor = script(
            r#"while read -r line; do case "$line" in *BAD*) echo '{}';; *) echo '{"text": "masked"}';; esac; done"#,
        );
        let config = HooksConfig { redactor, ..HooksConfig::default() };
        let hooks = Hooks::open(&config, &|_| Err("nothing here reaches an address".to_owned())).unwrap();
        let [one, other] = [Duration::from_secs(60); 2].map(|patience| hooks.for_request(patience));
        for _ in 0..=MOST_FAILURES {
            assert_eq!(Redactor::redact(&one, "BAD"), "BAD");
        }
        assert_eq!(Redactor::redact(&one, "fine"), "fine");
        assert_eq!(Redactor::redact(&other, "fine"), "masked");
        assert_eq!(other.notes(), [""; 0]);
        assert_eq!(one.notes().len(), 2);
        let over = hooks.for_request(Duration::ZERO);
        assert_eq!(Redactor::redact(&over, "fine"), "fine");
        assert_eq!(over.notes(), ["hook redactor: not asked after 0 s of one request; the built-in was used"]);
    }

    #[test]
    fn a_hook_that_failed_is_asked_again_after_a_rest() {
        struct Counted(Arc<Mutex<usize>>);
        impl Exchange for Counted {
            fn ask(&self, _: &str, _: Duration) -> Result<String, String> {
                let mut asked = self.0.lock().unwrap();
                *asked += 1;
                if *asked > 4 { Ok(json!({"text": "masked"}).to_string()) } else { Err("no".to_owned()) }
            }
        }
        let asked = Arc::default();
        let hooks = Hooks::default().with(HookKind::Redactor, Box::new(Counted(Arc::clone(&asked))), usize::MAX);
        let rested = || {
            let mut failures = hooks.by_kind[&HookKind::Redactor].failures();
            failures.last = failures.last.and_then(|last| last.checked_sub(REST));
        };
        let redacted =
            |times: usize| (0..times).map(|_| Redactor::redact(&hooks, "text")).collect::<Vec<_>>().join(" ");
        assert_eq!((redacted(5).as_str(), *asked.lock().unwrap()), ("text text text text text", 3));
        rested();
        // One more failure, and it rests again.
        assert_eq!((redacted(2).as_str(), *asked.lock().unwrap()), ("text text", 4));
        rested();
        assert_eq!((redacted(2).as_str(), *asked.lock().unwrap()), ("masked masked", 6));
    }

    #[test]
    fn what_a_required_redactor_does_not_answer_for_is_withheld() {
        let hook = |answers: &str| script(answers).map(|hook| HookConfig { required: true, ..hook });
        for (answers, shown, said) in [
            ("exit 1", false, "hook redactor: the program has ended; the text was withheld"),
            (r#"while read -r line; do echo '{"text": "a log"}'; done"#, true, ""),
        ] {
            let manager = manager(HooksConfig { redactor: hook(answers), ..HooksConfig::default() });
            let pack = manager.build(Phase::Answer, "log").unwrap();
            assert_eq!(pack.prompt.contains("a log"), shown, "{}", pack.prompt);
            assert_eq!(pack.prompt.contains("[WITHHELD: the redactor"), !shown, "{}", pack.prompt);
            assert!(!pack.prompt.contains("Read the log") && !pack.prompt.contains("block"), "{}", pack.prompt);
            assert!(pack.stats.notes.join("\n").contains(said), "{:?}", pack.stats.notes);
        }
        let hooks = Hooks::open(&HooksConfig { redactor: hook("exit 1"), ..HooksConfig::default() }, &|_| {
            Err("nothing here reaches an address".to_owned())
        });
        assert_eq!(Redactor::redact(&hooks.unwrap().for_request(Duration::ZERO), "text"), WITHHELD);
    }

    #[test]
    fn a_request_waits_for_no_longer_than_it_has() {
        const SLOW: &str = r#"while read -r line; do sleep 0.2; echo '{"text": "masked"}'; done"#;
        let redactor = script(SLOW).map(|hook| HookConfig { timeout_ms: 60_000, ..hook });
        let config = HooksConfig { redactor, ..HooksConfig::default() };
        let hooks = Hooks::open(&config, &|_| Err("nothing here reaches an address".to_owned())).unwrap();
        let asked = |patience: u64, questions: usize| {
            let (of_request, began) = (hooks.for_request(Duration::from_millis(patience)), Instant::now());
            let masked = (0..questions).filter(|_| Redactor::redact(&of_request, "text") == "masked").count();
            (masked, of_request.notes().join("; "), began.elapsed())
        };
        let (masked, notes, took) = asked(100, 1);
        assert_eq!(
            (masked, &*notes),
            (0, "hook redactor: no answer in the time that the request had; the built-in was used")
        );
        assert!(took < Duration::from_secs(5), "{took:?}");
        std::thread::scope(|scope| {
            let many = scope.spawn(|| asked(60_000, 12));
            std::thread::sleep(Duration::from_millis(300));
            // One question comes after the one that is asked, and not after all twelve.
            let (masked, notes, took) = asked(60_000, 1);
            assert_eq!((masked, &*notes), (1, ""));
            assert!(!many.is_finished(), "{took:?}");
            let (masked, notes, _) = asked(20, 1);
            let busy = "hook redactor: it answered other requests for all of the time that this one had; the built-in was used";
            assert_eq!((masked, &*notes), (0, busy));
            assert_eq!(many.join().unwrap().0, 12);
        });
    }

    #[test]
    fn a_line_too_many_never_becomes_the_answer_of_another_question() {
        let asked = |hook: &str| {
            let process = Process::new(script(hook).unwrap());
            let answers = [1, 2, 3].map(|number| {
                let answer = process.ask(&number.to_string(), Duration::MAX);
                // What the program writes later has come by the next question.
                std::thread::sleep(Duration::from_millis(700));
                answer.map(|line| line.trim().to_owned()).unwrap_or_else(|error| error)
            });
            answers.join("; ")
        };
        let at_once = asked(r"while read -r line; do printf 'first\nsecond\n'; done");
        assert_eq!(at_once, [UNASKED; 3].join("; "));
        // A program that broke the rule was ended, and the next question goes to a new one.
        let later = asked("read -r line; echo first; sleep 0.01; echo second; while read -r line; do echo third; done");
        assert_eq!(later, format!("first; {UNASKED}; first"));
    }

    /// Reads the id of a question in the shell.
    const WITH_ID: &str = r#"while read -r line; do id=${line#*'"id":"'}; id=${id%%'"'*};"#;

    #[test]
    fn an_answer_that_repeats_an_id_answers_that_question_alone() {
        let asked = |hook: &str| {
            let process = Process::new(script(hook).unwrap());
            let answers = [1, 2, 1].map(|number| {
                let answer = process.ask(&json!({"do": "count", "n": number}).to_string(), Duration::MAX);
                let answer = answer.map(|line| serde_json::from_str::<Value>(&line).unwrap());
                answer.map_or_else(|error| error, |answer| answer["tokens"].to_string())
            });
            answers.join("; ")
        };
        let answered = r#"n=${line#*'"n":'}; printf '{"id": "%s", "tokens": %s}\n' "$id" "${n%\}}""#;
        let late = r#"if [ -n "$old" ]; then printf '{"id": "%s", "tokens": 99}\n' "$old"; sleep 0.1; fi; old=$id"#;
        let more = r#"; printf '{"id": "another", "tokens": 99}\n'"#;
        let many = r#"yes '{"id": 7, "tokens": 99}'"#;
        for (hook, expected) in [
            // What was said of the question before comes when the next one was sent.
            (format!("{WITH_ID} {late}; {answered}; done"), "1; 2; 1".to_owned()),
            (format!("{WITH_ID} {answered}{more}; done"), "1; 2; 1".to_owned()),
            // Who repeats no id is taken at its word, as long as it writes one line for each question.
            (r#"while read -r line; do echo '{"tokens": 5}'; done"#.to_owned(), "5; 5; 5".to_owned()),
            (format!("{WITH_ID} {more}; done").replace("; ;", ";"), ["no answer within 400 ms"; 3].join("; ")),
            (many.to_owned(), [STRAYED; 3].join("; ")),
        ] {
            let began = Instant::now();
            assert_eq!(asked(&hook), expected, "{hook}");
            assert!(began.elapsed() < Duration::from_secs(10), "{hook}");
        }
    }

    #[test]
    fn the_id_of_a_question_follows_from_the_question() {
        let process = Process::new(script("cat").unwrap());
        let ask = |text: &str| process.ask(&json!({"do": "redact", "text": text}).to_string(), Duration::MAX).unwrap();
        let (first, other) = (ask("first"), ask("other"));
        assert_eq!(ask("first"), first);
        assert_ne!(first.get(..24), other.get(..24));
        insta::assert_snapshot!(first.trim_end(), @r#"{"id":"de27cd3c357d4bd2","do":"redact","text":"first"}"#);
    }

    #[test]
    fn what_a_hook_starts_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("alive");
        let script = script(&format!("(while true; do date +%N >> {}; sleep 0.02; done); echo", file.display()));
        let process = Process::new(script.unwrap());
        assert_eq!(process.ask("1", Duration::MAX), Err("no answer within 400 ms".to_owned()));
        let read = || std::fs::read(&file).unwrap_or_default();
        let before = read();
        std::thread::sleep(Duration::from_millis(200));
        assert!(!before.is_empty() && read() == before);
    }

    #[test]
    fn the_budget_holds_under_an_outer_counter() {
        // One token for every two bytes of the question: many more than ours.
        let counts = "LC_ALL=C; while read -r line; do echo \"{\\\"tokens\\\": $((${#line} / 2))}\"; done";
        let manager = |counter: &str| manager(HooksConfig { token_counter: script(counter), ..HooksConfig::default() });
        let counted = |prompt: &str| json!({"do": "count", "text": prompt}).to_string().len() / 2;
        let one = manager(counts);
        for budget in [40, 200, 1000, 3000] {
            let pack = one
                .build_request(&crate::Request { budget: Some(budget), ..crate::Request::new(Phase::Answer, "log") })
                .unwrap();
            assert!(counted(&pack.prompt) <= budget && pack.stats.budget == budget, "{budget}: {}", pack.prompt);
            assert!(budget < 200 || pack.prompt.contains("Read the log."), "{budget}: {}", pack.prompt);
        }
        // A counter that no prompt pleases gets the empty one.
        let pack =
            manager("while read -r line; do echo '{\"tokens\": 1000000}'; done").build(Phase::Answer, "log").unwrap();
        assert_eq!(pack.prompt, "");
        let pack = manager("exit 1").build(Phase::Answer, "log").unwrap();
        assert!(
            !pack.prompt.is_empty() && pack.stats.notes[0].contains("hook token_counter: "),
            "{:?}",
            pack.stats.notes
        );
    }

    #[test]
    fn a_redactor_of_others_works_behind_ours() {
        let hooks = |redactor: &str| {
            let manager = manager(HooksConfig { redactor: script(redactor), ..HooksConfig::default() });
            manager.ingest(ContextItem::new("s", ItemKind::ToolCall, "who()").under("u1")).unwrap();
            manager.ingest_tool_result("s", &ToolOutput::text("Ada has the key AKIAIOSFODNN7EXAMPLE")).unwrap();
            manager.build(Phase::Answer, "key").unwrap()
        };
        let pack = hooks(r#"while read -r line; do echo '{"text": "[a person] has a key"}'; done"#);
        assert!(pack.prompt.contains("[a person] has a key") && !pack.prompt.contains("Ada"), "{}", pack.prompt);
        let pack = hooks("exit 1");
        assert!(
            pack.prompt.contains("Ada has the key") && !pack.prompt.contains("AKIAIOSFODNN7EXAMPLE"),
            "{}",
            pack.prompt
        );
        assert!(pack.stats.notes.join("\n").contains("hook redactor: "), "{:?}", pack.stats.notes);
    }
}
