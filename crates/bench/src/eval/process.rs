//! Engines in other programs, over lines of JSON on their standard streams: protocol 1 of `docs/engines.md`.
//!
//! The program gets the catalog as a file and the queries one by one, and nothing else: it starts in a folder that holds
//! the catalog alone, with an environment of a few variables; ids of tools and queries are made up for the run, and both
//! come in a shuffled order. A tenth of the queries is asked twice, and a second process gets the catalog in another
//! order. An answer that is late, torn, unknown, doubled or given before it was asked for ends the run with an error that
//! says so. This keeps mistakes and shortcuts out, not a program that searches the disk for the judgements: that needs a
//! sandbox around the harness.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::collection::Collection;
use super::engine::Ranking;
use super::rng::Rng;
use contextweaver_core::text::hex;

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// The order of tools and queries is drawn from this.
const SEED: u64 = 0x00e4_67e5;

/// Tools asked for each query.
const TOP: usize = 100;

/// Questions before the first that counts, made of tools' names, and questions that measure the way there and back.
const WARM_UP: usize = 20;
const PINGS: usize = 21;

/// Queries that the second process is asked, at most.
const SECOND_ORDER: usize = 200;

/// An answer is at most so long.
const LONGEST_LINE: u64 = 4 << 20;

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

/// A program that ranks tools.
#[derive(Debug, Clone)]
pub struct ProcessEngine {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The bounds of a run.
    pub limits: Limits,
}

/// The bounds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long hello and loading a catalog may take.
    pub load: Duration,
    /// How long an answer may take.
    pub route: Duration,
    /// How long all answers together may take; it is known after the first few. `None` for as long as it takes.
    pub all: Option<Duration>,
    /// How much memory the process may have had, in MiB.
    pub peak_mib: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { load: Duration::from_secs(120), route: Duration::from_secs(10), all: None, peak_mib: None }
    }
}

/// What a run gave.
#[derive(Debug)]
pub struct ProcessRun {
    /// The rankings of the collection's queries.
    pub rankings: Vec<Ranking>,
    /// What it took.
    pub report: ProcessReport,
}

/// What a run took. Everything but the names depends on the machine and its load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessReport {
    /// The engine's name for itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// From the start of the process to the answer to hello, in microseconds.
    pub start_us: u64,
    /// From the name of the catalog to its being loaded, in microseconds.
    pub load_us: u64,
    /// The median way there and back of a ping, in microseconds: what the pipe alone takes.
    pub ping_us: u64,
    /// The median time of an answer as we saw it, in microseconds.
    pub route_p50_us: u64,
    /// Its 95th percentile.
    pub route_p95_us: u64,
    /// Its 99th percentile.
    pub route_p99_us: u64,
    /// The median that the engine states itself, where it does.
    pub own_p50_us: Option<u64>,
    /// The largest memory of the process in KiB, where the system tells.
    pub peak_kib: Option<u64>,
    /// Of the queries asked again with the catalog in another order, how many were answered otherwise.
    pub order_changes: usize,
    /// Queries asked with the catalog in another order.
    pub order_asked: usize,
}

/// A program did not take part to the end.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProcessError {
    /// There is no such program.
    #[error("missing: {program}: {reason}")]
    Missing {
        /// The program.
        program: String,
        /// What the system said.
        reason: String,
    },
    /// The program says that it does not do this.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// It answered against the protocol, or ended.
    #[error("failed: {0}")]
    Failed(String),
    /// It did not answer in time.
    #[error("timed out: {what} took more than {} ms", limit.as_millis())]
    TimedOut {
        /// What was asked.
        what: String,
        /// The bound.
        limit: Duration,
    },
}

impl ProcessEngine {
    /// The engine of a command line: words at white space, with quotes as in a shell. Arguments that name files are made
    /// absolute, since the program runs in a folder of its own.
    ///
    /// # Errors
    /// [`ProcessError::Missing`] for an empty command line or an open quote.
    pub fn parse(command: &str) -> Result<Self, ProcessError> {
        let missing = |reason: &str| ProcessError::Missing { program: command.to_owned(), reason: reason.to_owned() };
        let words = words(command).ok_or_else(|| missing("a quote is not closed"))?;
        if words.is_empty() {
            return Err(missing("no program is named"));
        }
        // Links stay links: an interpreter finds its environment by the path that it was called by.
        let absolute = |word: String| {
            let path = Path::new(&word);
            let is_named = path.exists() && (word.contains('/') || path.is_file());
            match std::path::absolute(path) {
                Ok(path) if is_named => path.into_os_string(),
                _ => OsString::from(word),
            }
        };
        Ok(Self { command: words.into_iter().map(absolute).collect(), limits: Limits::default() })
    }

    /// Runs the program on every query of `collection`.
    ///
    /// # Errors
    /// [`ProcessError`]; nothing of a run that did not end well is returned.
    pub fn run(&self, collection: &Collection) -> Result<ProcessRun, ProcessError> {
        let rng = Rng::new(SEED);
        let first = Catalog::of(collection, &rng.fork("first"));
        let mut session = Session::start(&self.command, self.limits)?;
        let hello = session.hello()?;
        let load_us = session.load(&first)?;
        let order = asked(collection.queries.len(), &rng);
        self.warm(&mut session, &first, &warm_up(collection, &rng), order.len())?;
        let mut pings: Vec<u64> = (0..PINGS).map(|_| session.ping()).collect::<Result<_, _>>()?;
        let mut times = Times::default();
        let mut rankings: Vec<Option<Vec<(u32, f64)>>> = vec![None; collection.queries.len()];
        for number in order {
            let answer = session.route(&first, &collection.queries[number].text)?;
            times.add(&answer);
            match &rankings[number] {
                Some(before) if *before != answer.tools => {
                    let query = &collection.queries[number].id;
                    return Err(ProcessError::Failed(format!(
                        "query `{query}` was asked twice and answered differently the second time"
                    )));
                }
                _ => rankings[number] = Some(answer.tools),
            }
        }
        let peak_kib = session.peak_kib();
        session.end()?;
        if let (Some(most), Some(kib)) = (self.limits.peak_mib, peak_kib)
            && kib > most * 1024
        {
            return Err(ProcessError::Failed(format!("it took more than {most} MiB of memory")));
        }
        let (order_asked, order_changes) = self.second_order(collection, &rng, &rankings)?;
        let report = ProcessReport {
            name: hello.name,
            version: hello.version,
            start_us: hello.us,
            load_us,
            ping_us: percentile(&mut pings, 50),
            route_p50_us: percentile(&mut times.seen, 50),
            route_p95_us: percentile(&mut times.seen, 95),
            route_p99_us: percentile(&mut times.seen, 99),
            own_p50_us: (!times.own.is_empty()).then(|| percentile(&mut times.own, 50)),
            peak_kib,
            order_changes,
            order_asked,
        };
        let rankings =
            rankings.into_iter().map(|tools| Ranking::of_scores(TOP as u64, &tools.unwrap_or_default())).collect();
        Ok(ProcessRun { rankings, report })
    }

    /// Asks what is not counted. By its times all `count` queries must be answered within the limit, so that hours are not
    /// spent on finding out that they are not.
    fn warm(
        &self,
        session: &mut Session,
        catalog: &Catalog,
        queries: &[String],
        count: usize,
    ) -> Result<(), ProcessError> {
        let mut spent = Duration::ZERO;
        for (number, query) in (1..).zip(queries) {
            spent += Duration::from_micros(session.route(catalog, query)?.seen_us);
            let Some(limit) = self.limits.all.filter(|_| number == queries.len()) else { continue };
            if spent.mul_f64(count as f64 / f64::from(number as u32)) > limit {
                return Err(ProcessError::TimedOut { what: format!("all {count} queries, by the first few,"), limit });
            }
        }
        Ok(())
    }

    /// Asks a second process that gets the catalog in another order; how many queries, and how many were answered
    /// otherwise.
    fn second_order(
        &self,
        collection: &Collection,
        rng: &Rng,
        before: &[Option<Vec<(u32, f64)>>],
    ) -> Result<(usize, usize), ProcessError> {
        let second = Catalog::of(collection, &rng.fork("second"));
        let mut session = Session::start(&self.command, self.limits)?;
        session.hello()?;
        session.load(&second)?;
        let mut numbers: Vec<usize> = (0..collection.queries.len()).collect();
        rng.fork("second queries").shuffle(&mut numbers);
        numbers.truncate(SECOND_ORDER);
        let mut changes = 0;
        for &number in &numbers {
            let answer = session.route(&second, &collection.queries[number].text)?;
            let items = |tools: &[(u32, f64)]| tools.iter().map(|(item, _)| *item).collect::<Vec<u32>>();
            changes += usize::from(before[number].as_deref().map(items) != Some(items(&answer.tools)));
        }
        session.end()?;
        Ok((numbers.len(), changes))
    }
}

/// The words of a command line; `None` when a quote is open at its end.
fn words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = command.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(characters.next()),
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// The numbers of the queries in the order in which they are asked: all of them, with a tenth twice.
fn asked(queries: usize, rng: &Rng) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..queries).collect();
    rng.fork("queries").shuffle(&mut numbers);
    let again: Vec<usize> = numbers.iter().take(queries.div_ceil(10)).copied().collect();
    numbers.extend(again);
    rng.fork("queries and again").shuffle(&mut numbers);
    numbers
}

/// Questions that are in no collection: names of tools, spelled as words.
fn warm_up(collection: &Collection, rng: &Rng) -> Vec<String> {
    let mut names: Vec<String> =
        collection.catalog.items().iter().map(|item| item.name.replace(['_', '-', '.'], " ")).collect();
    rng.fork("warm-up").shuffle(&mut names);
    names.truncate(WARM_UP);
    names
}

/// A catalog as the program sees it.
struct Catalog {
    text: String,
    sha256: String,
    /// The item behind each id.
    items: BTreeMap<String, u32>,
}

impl Catalog {
    fn of(collection: &Collection, rng: &Rng) -> Self {
        let mut order: Vec<u32> = (0..collection.catalog.len() as u32).collect();
        rng.fork("tools").shuffle(&mut order);
        // The ids of two catalogs differ, so that nothing can be told from one about the other.
        let offset = rng.fork("ids").below(1_000_000);
        let (mut text, mut items) = (String::new(), BTreeMap::new());
        for (place, number) in order.into_iter().enumerate() {
            let item = &collection.catalog.items()[number as usize];
            let id = format!("t{}", offset + place);
            let mut line = json!({"id": id, "name": item.name, "description": item.description});
            if let Some(server) = &item.server {
                line["server"] = json!(server);
            }
            if !item.tags.is_empty() {
                line["tags"] = json!(item.tags);
            }
            if let Some(schema) = &item.args_schema {
                line["inputSchema"] = json!(schema);
            }
            text.push_str(&line.to_string());
            text.push('\n');
            items.insert(id, number);
        }
        let sha256 = hex(&Sha256::digest(text.as_bytes()));
        Self { text, sha256, items }
    }
}

/// What the engine says of itself.
struct Hello {
    name: String,
    version: String,
    us: u64,
}

/// An answer, checked.
struct Answer {
    /// Items with scores that fall or stay.
    tools: Vec<(u32, f64)>,
    seen_us: u64,
    own_us: Option<u64>,
}

#[derive(Default)]
struct Times {
    seen: Vec<u64>,
    own: Vec<u64>,
}

impl Times {
    fn add(&mut self, answer: &Answer) {
        self.seen.push(answer.seen_us);
        self.own.extend(answer.own_us);
    }
}

/// What a program may answer. Fields that we do not know are its own business.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Reply {
    id: Option<String>,
    ok: Option<bool>,
    name: Option<String>,
    version: Option<String>,
    tools: Option<Value>,
    scores: Option<Vec<f64>>,
    us: Option<f64>,
    unsupported: Option<String>,
    error: Option<String>,
}

/// A program that runs.
struct Session {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Result<String, String>>,
    last_words: Arc<Mutex<VecDeque<u8>>>,
    folder: tempfile::TempDir,
    limits: Limits,
    started: Instant,
    asked: usize,
}

impl Session {
    fn start(command: &[OsString], limits: Limits) -> Result<Self, ProcessError> {
        let (program, arguments) = command.split_first().ok_or_else(|| ProcessError::Missing {
            program: String::new(),
            reason: "no program is named".to_owned(),
        })?;
        let missing = |error: std::io::Error| ProcessError::Missing {
            program: program.to_string_lossy().into_owned(),
            reason: error.to_string(),
        };
        let folder = tempfile::tempdir().map_err(missing)?;
        let kept = ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(folder.path())
            .env_clear()
            .envs(kept)
            // What it starts ends with it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(missing)?;
        let started = Instant::now();
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
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.extend(&bytes[..count]);
                    let surplus = kept.len().saturating_sub(LAST_WORDS);
                    kept.drain(..surplus);
                }
            });
        }
        Ok(Self { input: child.stdin.take(), child, lines, last_words, folder, limits, started, asked: 0 })
    }

    fn hello(&mut self) -> Result<Hello, ProcessError> {
        let limit = self.limits.load;
        let (reply, _) = self.ask("hello", &json!({"op": "hello", "protocol": PROTOCOL}), limit)?;
        let us = micros(self.started.elapsed());
        self.confirmed("hello", &reply)?;
        match (reply.name, reply.version) {
            (Some(name), Some(version)) if !name.trim().is_empty() && !version.trim().is_empty() => {
                Ok(Hello { name: bounded(&name), version: bounded(&version), us })
            }
            _ => Err(self.failed("the answer to hello has no name and version; without a version there is no row")),
        }
    }

    fn load(&mut self, catalog: &Catalog) -> Result<u64, ProcessError> {
        let path = self.folder.path().join("catalog.jsonl");
        std::fs::write(&path, &catalog.text).map_err(|error| self.failed(format!("catalog.jsonl: {error}")))?;
        let request = json!({"op": "load", "catalog": path, "sha256": catalog.sha256});
        let limit = self.limits.load;
        let (reply, us) = self.ask("load", &request, limit)?;
        self.confirmed("load", &reply)?;
        match reply.tools.as_ref().and_then(Value::as_u64) {
            Some(tools) if tools != catalog.items.len() as u64 => {
                let held = catalog.items.len();
                Err(self.failed(format!("it loaded {tools} tools of a catalog of {held}")))
            }
            _ => Ok(us),
        }
    }

    fn ping(&mut self) -> Result<u64, ProcessError> {
        let id = self.id();
        let limit = self.limits.route;
        let (reply, us) = self.ask("ping", &json!({"op": "ping", "id": id}), limit)?;
        if reply.id.as_deref() == Some(id.as_str()) {
            Ok(us)
        } else {
            Err(self.failed("a ping came back with another id"))
        }
    }

    fn route(&mut self, catalog: &Catalog, query: &str) -> Result<Answer, ProcessError> {
        let id = self.id();
        let what = format!("the query {:?}", bounded(query));
        let limit = self.limits.route;
        let request = json!({"op": "route", "id": id, "query": query, "k": TOP});
        let (reply, seen_us) = self.ask(&what, &request, limit)?;
        if reply.id.as_deref() != Some(id.as_str()) {
            return Err(self.failed(format!("{what}: the answer has the id {:?} and not {id:?}", reply.id)));
        }
        let Some(Value::Array(tools)) = &reply.tools else {
            return Err(self.failed(format!("{what}: the answer has no list `tools`")));
        };
        if tools.len() > TOP {
            return Err(self.failed(format!("{what}: {} tools were returned, {TOP} were asked for", tools.len())));
        }
        let scores = match &reply.scores {
            Some(scores) if scores.len() != tools.len() => {
                return Err(self.failed(format!("{what}: {} scores for {} tools", scores.len(), tools.len())));
            }
            Some(scores) if scores.windows(2).any(|pair| pair[0] < pair[1]) => {
                return Err(self.failed(format!("{what}: a later tool has a better score")));
            }
            Some(scores) => scores.clone(),
            None => (0..tools.len()).map(|place| -(place as f64)).collect(),
        };
        let (mut ranked, mut seen) = (Vec::with_capacity(tools.len()), BTreeSet::new());
        for (tool, score) in tools.iter().zip(scores) {
            let Some(&item) = tool.as_str().and_then(|id| catalog.items.get(id)) else {
                return Err(self.failed(format!("{what}: {tool} is no id of the catalog")));
            };
            if !seen.insert(item) {
                return Err(self.failed(format!("{what}: {tool} is there twice")));
            }
            ranked.push((item, score));
        }
        let own_us = match reply.us {
            Some(us) if us >= 0.0 && us <= seen_us as f64 + 1.0 => Some(us.round() as u64),
            Some(us) => return Err(self.failed(format!("{what}: it claims {us} us, and the answer took {seen_us} us"))),
            None => None,
        };
        Ok(Answer { tools: ranked, seen_us, own_us })
    }

    /// An id that says nothing: a number of no collection.
    fn id(&mut self) -> String {
        self.asked += 1;
        format!("a{}", self.asked)
    }

    /// Sends one line and waits for one.
    fn ask(&mut self, what: &str, request: &Value, limit: Duration) -> Result<(Reply, u64), ProcessError> {
        match self.lines.try_recv() {
            Ok(line) => {
                let shown = bounded(&line.unwrap_or_else(|reason| reason));
                return Err(self.failed(format!("it answered before {what} was asked: {shown:?}")));
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
        }
        let start = Instant::now();
        let line = format!("{request}\n");
        let sent = self.input.as_mut().map(|input| input.write_all(line.as_bytes()).and_then(|()| input.flush()));
        if !matches!(sent, Some(Ok(()))) {
            return Err(self.failed(format!("it ended before {what}")));
        }
        let text = match self.next(start + limit) {
            Ok(Ok(text)) => text,
            Ok(Err(reason)) => return Err(self.failed(format!("{what}: {reason}"))),
            Err(RecvTimeoutError::Timeout) => return Err(ProcessError::TimedOut { what: what.to_owned(), limit }),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(self.failed(format!("it ended without answering {what}")));
            }
        };
        let us = micros(start.elapsed());
        let reply: Reply = serde_json::from_str(&text).map_err(|error| {
            let shown = bounded(&text);
            self.failed(format!("{what}: the answer {shown:?} is no JSON object of the protocol: {error}"))
        })?;
        if let Some(why) = reply.unsupported {
            return Err(ProcessError::Unsupported(format!("{what}: {}", bounded(&why))));
        }
        if let Some(why) = &reply.error {
            return Err(self.failed(format!("{what}: it says {:?}", bounded(why))));
        }
        Ok((reply, us))
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

    fn confirmed(&self, what: &str, reply: &Reply) -> Result<(), ProcessError> {
        if reply.ok == Some(true) {
            Ok(())
        } else {
            Err(self.failed(format!("{what}: the answer has no `\"ok\": true`")))
        }
    }

    /// An error with what the program printed last.
    fn failed(&self, reason: impl fmt::Display) -> ProcessError {
        let words: Vec<u8> = self.last_words.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let words = String::from_utf8_lossy(&words);
        match words.trim() {
            "" => ProcessError::Failed(reason.to_string()),
            words => ProcessError::Failed(format!("{reason}; it printed last: {}", bounded(last_line(words)))),
        }
    }

    /// `VmHWM` of the process.
    fn peak_kib(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    }

    /// Ends the input; the program has to end by itself, and well.
    fn end(mut self) -> Result<(), ProcessError> {
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

impl Drop for Session {
    fn drop(&mut self) {
        // The group outlives its first process, which need not have waited for what it started.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
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
        Ok(_) if line.last() != Some(&b'\n') => return Some(Err("the answer is torn: it has no line end".to_owned())),
        Ok(_) => {}
        Err(error) => return Some(Err(error.to_string())),
    }
    Some(String::from_utf8(line).map_err(|_| "the answer is not UTF-8".to_owned()))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The value below which `percent` of the values are, by nearest rank; 0 of none.
fn percentile(values: &mut [u64], percent: usize) -> u64 {
    values.sort_unstable();
    values.get((values.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0)
}

fn last_line(text: &str) -> &str {
    text.lines().next_back().unwrap_or_default()
}

/// At most 200 characters, without what could steer a terminal.
fn bounded(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::super::collection::Source;
    use super::super::record::Origin;
    use super::*;

    fn collection() -> Collection {
        let tools = r#"[{"name": "create_issue", "server": "forge", "description": "Open a ticket"},
            {"name": "send_mail", "server": "post", "description": "Send a letter"},
            {"name": "play_song", "server": "radio", "description": "Music"}]"#;
        let queries = r#"{"id": "1", "query": "open a ticket", "relevant": ["create_issue"]}
            {"id": "2", "query": "send a letter", "relevant": ["send_mail"]}
            {"id": "3", "query": "say nothing", "relevant": []}"#;
        let source = |text: &'static str| Source { path: Path::new("test"), bytes: text.as_bytes() };
        Collection::from_bytes("test", Origin::Embedded, source(tools), source(queries)).unwrap()
    }

    /// An engine as a shell script: `$line` is the request, `$id` its id, `$ids` the ids of the catalog in its order.
    fn engine(route: &str) -> ProcessEngine {
        let script = format!(
            r#"while IFS= read -r line; do
                id=$(printf '%s' "$line" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
                case $line in
                *'"hello"'*) echo '{{"ok":true,"name":"shell","version":"1"}}' ;;
                *'"load"'*)
                    issue=$(sed -n 's/^{{"id":"\([^"]*\)".*create_issue.*/\1/p' catalog.jsonl)
                    mail=$(sed -n 's/^{{"id":"\([^"]*\)".*send_mail.*/\1/p' catalog.jsonl)
                    first=$(sed -n '1s/^{{"id":"\([^"]*\)".*/\1/p' catalog.jsonl)
                    echo '{{"ok":true,"tools":3}}' ;;
                *'"ping"'*) echo "{{\"id\":\"$id\"}}" ;;
                *) {route} ;;
                esac
            done"#
        );
        let command = ["sh", "-c", script.as_str()].map(OsString::from).to_vec();
        let limits = Limits { load: Duration::from_secs(20), route: Duration::from_secs(2), ..Limits::default() };
        ProcessEngine { command, limits }
    }

    const HONEST: &str = r#"
        case $line in
        *ticket*) echo "{\"id\":\"$id\",\"tools\":[\"$issue\",\"$mail\"]}" ;;
        *letter*) echo "{\"id\":\"$id\",\"tools\":[\"$mail\"],\"scores\":[2.5]}" ;;
        *) echo "{\"id\":\"$id\",\"tools\":[]}" ;;
        esac"#;

    #[test]
    fn an_honest_engine_is_measured() {
        let run = engine(HONEST).run(&collection()).unwrap();
        let items: Vec<Vec<u32>> =
            run.rankings.iter().map(|ranking| ranking.hits.iter().map(|hit| hit.item).collect()).collect();
        let of = |name: &str| collection().catalog.items().iter().position(|item| item.name == name).unwrap() as u32;
        let (issue, mail) = (of("create_issue"), of("send_mail"));
        assert_eq!(items, [vec![issue, mail], vec![mail], vec![]]);
        assert_eq!((run.report.name.as_str(), run.report.version.as_str()), ("shell", "1"));
        assert_eq!((run.report.order_asked, run.report.order_changes), (3, 0));
    }

    #[test]
    fn an_engine_that_follows_the_order_of_the_catalog_is_flagged() {
        let run = engine(r#"echo "{\"id\":\"$id\",\"tools\":[\"$first\"]}""#).run(&collection()).unwrap();
        assert_eq!((run.report.order_asked, run.report.order_changes), (3, 3));
    }

    #[test]
    fn what_breaks_the_rules_is_named() {
        let table = [
            (
                "unknown",
                r#"echo "{\"id\":\"$id\",\"tools\":[\"create_issue\"]}""#,
                "\"create_issue\" is no id of the catalog",
            ),
            ("double", r#"echo "{\"id\":\"$id\",\"tools\":[\"$mail\",\"$mail\"]}""#, "is there twice"),
            ("other id", r#"echo '{"id":"a0","tools":[]}'"#, "the answer has the id Some(\"a0\")"),
            ("no list", r#"echo "{\"id\":\"$id\"}""#, "the answer has no list `tools`"),
            ("no JSON", "echo pizza", "the answer \"pizza\" is no JSON object of the protocol"),
            ("leaves a child", "sleep 9 & exit 3", "it ended without answering"),
            (
                "rising",
                r#"echo "{\"id\":\"$id\",\"tools\":[\"$mail\",\"$issue\"],\"scores\":[1,2]}""#,
                "a later tool has a better score",
            ),
            ("two scores", r#"echo "{\"id\":\"$id\",\"tools\":[\"$mail\"],\"scores\":[1,2]}""#, "2 scores for 1 tools"),
            ("clock", r#"echo "{\"id\":\"$id\",\"tools\":[],\"us\":9000000}""#, "it claims 9000000 us"),
            (
                "early",
                r#"echo "{\"id\":\"$id\",\"tools\":[]}"; echo '{"id":"a2","tools":[]}'; sleep 0.2"#,
                "it answered before",
            ),
            ("torn", "printf '{'; exit", "the answer is torn"),
            ("dies", "echo 'out of memory' >&2; exit 3", "it ended without answering"),
            ("an error", r#"echo '{"error":"no index"}'"#, "it says \"no index\""),
            (
                "random",
                r#"n=$((${n:-0} + 1)); if [ $((n % 2)) = 0 ]; then echo "{\"id\":\"$id\",\"tools\":[\"$mail\"]}"; else echo "{\"id\":\"$id\",\"tools\":[\"$issue\"]}"; fi"#,
                "answered differently the second time",
            ),
        ];
        let mut wrong = Vec::new();
        for (what, route, expected) in table {
            match engine(route).run(&collection()) {
                Err(ProcessError::Failed(reason)) if reason.contains(expected) => {}
                other => wrong.push(format!("{what}: {:?}", other.map(|run| run.rankings))),
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn missing_unsupported_failed_and_late_are_four_words() {
        let error = |engine: ProcessEngine| engine.run(&collection()).unwrap_err().to_string();
        assert!(error(ProcessEngine::parse("no-such-program --x").unwrap()).starts_with("missing: no-such-program: "));
        assert!(error(engine(r#"echo '{"unsupported":"no queries"}'"#)).starts_with("unsupported: the query "));
        assert!(error(engine("sleep 9")).starts_with("timed out: the query "));
        let silent = ["sh", "-c", r#"read -r line; echo '{"ok":true}'"#].map(OsString::from).to_vec();
        let silent = ProcessEngine { command: silent, limits: Limits::default() };
        assert!(error(silent).contains("without a version there is no row"));
    }

    #[test]
    fn a_command_line_is_split_as_in_a_shell() {
        let table = [
            ("python3 engine.py --k 5", Some(vec!["python3", "engine.py", "--k", "5"])),
            (r#"sh -c 'a "b"' "c d" e\ f"#, Some(vec!["sh", "-c", "a \"b\"", "c d", "e f"])),
            ("  ''  ", Some(vec![""])),
            ("'open", None),
        ];
        for (command, expected) in table {
            assert_eq!(
                words(command),
                expected.map(|words| words.into_iter().map(str::to_owned).collect()),
                "{command}"
            );
        }
        assert!(ProcessEngine::parse(" ").is_err());
    }
}
