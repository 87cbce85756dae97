//! Engines in other programs, on their standard streams: by protocol 1 of `docs/engines.md` (`lines.rs`), or as MCP servers
//! before upstreams that are played from the catalog (`mcp.rs`). Context engines come by the same lines (`context.rs`), and
//! so do programs that choose among cards (`choose.rs`).
//!
//! The program gets the catalog and the queries one by one, and nothing else: it starts in a folder that holds the catalog
//! alone, with an environment of a few variables; tools and queries come in a shuffled order, in protocol 1 with ids that
//! are made up for the run. A tenth of the queries is asked twice, and a second process gets the catalog in another order.
//! An answer that is late, torn, unknown, doubled or given before it was asked for ends the run with an error that says so.
//! On Linux the kernel keeps the judgements from it (`confine.rs`).

pub mod choose;
pub(crate) mod confine;
pub mod conformance;
pub mod context;
mod lines;
pub mod mcp;
mod program;
mod running;
mod speaker;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

pub use self::confine::{Hiding, hiding};
use self::lines::Lines;
use self::mcp::{Gateway, SearchTool};
use self::program::Launch;
pub(super) use self::program::bounded;
use self::running::Folder;
pub use self::running::end_all;
use super::collection::Collection;
use super::engine::Ranking;
use super::probe;
use super::rng::Rng;

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// The order of tools and queries is drawn from this.
const SEED: u64 = 0x00e4_67e5;

/// Tools asked for each query.
pub(crate) const TOP: usize = 100;

/// Questions before the first that counts, and questions that measure the way there and back.
const WARM_UP: usize = 20;
const PINGS: usize = 21;

/// Queries that the second process is asked, at most.
pub(crate) const SECOND_ORDER: usize = 200;

/// A program that ranks tools.
#[derive(Debug, Clone)]
pub struct ProcessEngine {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// How it is spoken to.
    pub door: Door,
    /// Files and folders that it must not read; those that are not there are no matter.
    pub hidden: Vec<PathBuf>,
    /// The bounds of a run.
    pub limits: Limits,
}

/// How a program takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Door {
    /// By protocol 1.
    Lines,
    /// As an MCP server whose tool is asked; its upstreams are played.
    Mcp(SearchTool),
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
    /// Whether the kernel kept the judgements from it.
    pub hiding: Hiding,
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

impl ProcessError {
    /// The word for it in tables: missing, unsupported, failed or timed out.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing",
            Self::Unsupported(_) => "unsupported",
            Self::Failed(_) => "failed",
            Self::TimedOut { .. } => "timed out",
        }
    }
}

impl ProcessEngine {
    /// The engine of a command line: words at white space, with quotes as in a shell. Arguments that name files are made
    /// absolute, since the program runs in a folder of its own. Nothing is hidden from it.
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
        let command = words.into_iter().map(absolute).collect();
        Ok(Self { command, door: Door::Lines, hidden: Vec::new(), limits: Limits::default() })
    }

    /// Runs the program on every query of `collection`.
    ///
    /// # Errors
    /// [`ProcessError`]; nothing of a run that did not end well is returned.
    pub fn run(&self, collection: &Collection) -> Result<ProcessRun, ProcessError> {
        let rng = Rng::new(SEED);
        let mut session = self.open(collection, &rng.fork("first"))?;
        let hello = session.hello()?;
        let load_us = session.load()?;
        let order = asked(collection.queries.len(), &rng);
        self.warm(session.as_mut(), &warm_up(&rng), order.len())?;
        let mut pings: Vec<u64> = (0..PINGS).map(|_| session.ping()).collect::<Result<_, _>>()?;
        let mut times = Times::default();
        let mut rankings: Vec<Option<Vec<(u32, f64)>>> = vec![None; collection.queries.len()];
        for number in order {
            let answer = session.route(&collection.queries[number].text)?;
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
        session.was_read()?;
        let (peak_kib, hiding) = (session.peak_kib(), session.hiding().clone());
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
            ping_us: nearest_rank(&mut pings, 50),
            route_p50_us: nearest_rank(&mut times.seen, 50),
            route_p95_us: nearest_rank(&mut times.seen, 95),
            route_p99_us: nearest_rank(&mut times.seen, 99),
            own_p50_us: (!times.own.is_empty()).then(|| nearest_rank(&mut times.own, 50)),
            peak_kib,
            order_changes,
            order_asked,
            hiding,
        };
        let rankings =
            rankings.into_iter().map(|tools| Ranking::of_scores(TOP as u64, &tools.unwrap_or_default())).collect();
        Ok(ProcessRun { rankings, report })
    }

    /// Starts it; the order of the tools is drawn from `rng`.
    fn open(&self, collection: &Collection, rng: &Rng) -> Result<Box<dyn Session>, ProcessError> {
        let launch = Launch { command: &self.command, hidden: &self.hidden, variables: &[] };
        Ok(match &self.door {
            Door::Lines => Box::new(Lines::start(launch, self.limits, collection, rng)?),
            Door::Mcp(tool) => Box::new(Gateway::start(launch, tool, self.limits, collection, rng)?),
        })
    }

    /// Asks what is not counted. By its times all `count` queries must be answered within the limit, so that hours are not
    /// spent on finding out that they are not.
    fn warm(&self, session: &mut dyn Session, queries: &[String], count: usize) -> Result<(), ProcessError> {
        let mut spent = Duration::ZERO;
        for (number, query) in (1..).zip(queries) {
            spent += Duration::from_micros(session.route(query)?.seen_us);
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
        let mut session = self.open(collection, &rng.fork("second"))?;
        session.hello()?;
        session.load()?;
        let mut numbers: Vec<usize> = (0..collection.queries.len()).collect();
        rng.fork("second queries").shuffle(&mut numbers);
        numbers.truncate(SECOND_ORDER);
        let mut changes = 0;
        for &number in &numbers {
            let answer = session.route(&collection.queries[number].text)?;
            changes += usize::from(before[number].as_deref().map(without_ties) != Some(without_ties(&answer.tools)));
        }
        session.end()?;
        Ok((numbers.len(), changes))
    }
}

/// The tools of an answer with those of equal scores in the order of the catalog: ids say nothing, so an engine has no
/// reason to prefer one. Where the answer is full, the last of equal scores may be cut anywhere and are left out.
fn without_ties(tools: &[(u32, f64)]) -> Vec<u32> {
    let cut = tools.last().filter(|_| tools.len() == TOP).map(|(_, score)| *score);
    let mut all = Vec::new();
    for ties in tools.chunk_by(|left, right| left.1 == right.1) {
        let mut items: Vec<u32> = ties.iter().filter(|(_, score)| Some(*score) != cut).map(|(item, _)| *item).collect();
        items.sort_unstable();
        all.extend(items);
    }
    all
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

/// Questions of another collection: what an engine keeps of them helps it with none that counts.
fn warm_up(rng: &Rng) -> Vec<String> {
    let mut queries: Vec<String> = probe::collection().queries.iter().map(|query| query.text.clone()).collect();
    rng.fork("warm-up").shuffle(&mut queries);
    queries.truncate(WARM_UP);
    queries
}

/// A program that runs and is asked, whatever it speaks.
trait Session {
    /// Its name and version.
    fn hello(&mut self) -> Result<Hello, ProcessError>;

    /// Gives it the catalog; how long that took, in microseconds.
    fn load(&mut self) -> Result<u64, ProcessError>;

    /// The way there and back, in microseconds.
    fn ping(&mut self) -> Result<u64, ProcessError>;

    /// Its answer to a query, checked.
    fn route(&mut self, query: &str) -> Result<Answer, ProcessError>;

    /// Whether what it answered was read at the right place, as far as all answers together tell.
    fn was_read(&self) -> Result<(), ProcessError> {
        Ok(())
    }

    /// What the kernel keeps from it.
    fn hiding(&self) -> &Hiding;

    /// Its largest memory, where the system tells.
    fn peak_kib(&self) -> Option<u64>;

    /// Ends its input; it has to end by itself, and well.
    fn end(self: Box<Self>) -> Result<(), ProcessError>;
}

/// A folder for a program to run in.
fn folder() -> Result<Folder, ProcessError> {
    let missing = |error: std::io::Error| ProcessError::Missing {
        program: "a temporary folder".to_owned(),
        reason: error.to_string(),
    };
    Folder::new().map_err(missing)
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

/// The value below which `percent` of the values are, by nearest rank; 0 of none.
pub(super) fn nearest_rank(values: &mut [u64], percent: usize) -> u64 {
    values.sort_unstable();
    values.get((values.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::collection::Source;
    use crate::eval::record::Origin;

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
        loading("3", route)
    }

    /// The same, which says that it has `loaded` tools.
    fn loading(loaded: &str, route: &str) -> ProcessEngine {
        let script = format!(
            r#"while IFS= read -r line; do
                id=$(printf '%s' "$line" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
                case $line in
                *'"hello"'*) echo '{{"ok":true,"name":"shell","version":"1"}}' ;;
                *'"load"'*)
                    issue=$(sed -n 's/^{{"id":"\([^"]*\)".*create_issue.*/\1/p' catalog.jsonl)
                    mail=$(sed -n 's/^{{"id":"\([^"]*\)".*send_mail.*/\1/p' catalog.jsonl)
                    first=$(sed -n '1s/^{{"id":"\([^"]*\)".*/\1/p' catalog.jsonl)
                    echo '{{"ok":true,"tools":{loaded}}}' ;;
                *'"ping"'*) echo "{{\"id\":\"$id\"}}" ;;
                *) {route} ;;
                esac
            done"#
        );
        let command = ["sh", "-c", script.as_str()].map(OsString::from).to_vec();
        let limits = Limits { load: Duration::from_secs(20), route: Duration::from_secs(2), ..Limits::default() };
        ProcessEngine { command, door: Door::Lines, hidden: Vec::new(), limits }
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
                "\"create_issue\" is not an id of the catalog",
            ),
            ("double", r#"echo "{\"id\":\"$id\",\"tools\":[\"$mail\",\"$mail\"]}""#, "appears twice"),
            ("other id", r#"echo '{"id":"a0","tools":[]}'"#, "the answer has the id Some(\"a0\")"),
            ("no list", r#"echo "{\"id\":\"$id\"}""#, "the answer has no list `tools`"),
            ("no JSON", "echo pizza", "the answer \"pizza\" is not a JSON object of the protocol"),
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
                // Seen before the next query is sent, or as the answer to another one after that.
                "answer",
            ),
            ("torn", "printf '{'; exit", "the answer is cut off"),
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
    fn a_number_of_loaded_tools_is_that_of_the_catalog() {
        let table = [
            ("3", None),
            ("null", None),
            ("2", Some("it loaded 2 tools of a catalog of 3")),
            ("true", Some("load: `tools` is true, which is no number of tools")),
            ("-3", Some("load: `tools` is -3, which is no number of tools")),
            ("3.5", Some("load: `tools` is 3.5, which is no number of tools")),
            ("\"3\"", Some("load: `tools` is \"3\", which is no number of tools")),
        ];
        for (loaded, expected) in table {
            let error = loading(loaded, HONEST).run(&collection()).err().map(|error| error.to_string());
            let said = error.as_deref().zip(expected).is_some_and(|(error, expected)| error.contains(expected));
            assert!(said || (error.is_none() && expected.is_none()), "{loaded}: {error:?}");
        }
    }

    /// A gateway as a shell script: `$id` is that of the request, and `list` and `call` print what follows it.
    fn gateway(list: &str, call: &str, ids: &str) -> ProcessEngine {
        let script = format!(
            r#"while IFS= read -r line; do
                id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
                start="{{\"jsonrpc\":\"2.0\",\"id\":$id"
                case $line in
                *'"initialize"'*) echo "$start,\"result\":{{\"serverInfo\":{{\"name\":\"shell\",\"version\":\"1\"}}}}}}" ;;
                *'"ping"'*) echo "$start,\"result\":{{}}}}" ;;
                *'"tools/list"'*) {list} ;;
                *'"tools/call"'*) {call} ;;
                esac
            done"#
        );
        let command = ["sh", "-c", script.as_str()].map(OsString::from).to_vec();
        let limits = Limits { load: Duration::from_secs(20), route: Duration::from_secs(5), ..Limits::default() };
        let [name, argument] = ["find", "q"].map(str::to_owned);
        let door = Door::Mcp(SearchTool { name, argument, ids: ids.to_owned(), player: PathBuf::from("no-player") });
        ProcessEngine { command, door, hidden: Vec::new(), limits }
    }

    #[test]
    fn a_gateway_is_read_as_its_protocol_says() {
        const LIST: &str = r#"echo "$start,\"result\":{\"tools\":[{\"name\":\"find\"}]}}""#;
        const CALL: &str = r#"echo "$start,\"result\":{\"content\":[{\"text\":\"send_mail\"}]}}""#;
        const IDS: &str = "/content/*/text";
        let pages = r#"case $line in
            *'"cursor":"2"'*) echo "$start,\"result\":{\"tools\":[{\"name\":\"find\"}]}}" ;;
            *) echo "$start,\"result\":{\"tools\":[{\"name\":\"other\"}],\"nextCursor\":\"2\"}}" ;;
            esac"#;
        let endless = r#"echo "$start,\"result\":{\"tools\":[],\"nextCursor\":\"2\"}}""#;
        let refused = r#"echo "$start,\"result\":{},\"error\":{\"code\":1,\"message\":\"no index\"}}""#;
        let no_error = r#"echo "$start,\"error\":null,\"result\":{\"content\":[{\"text\":\"send_mail\"}]}}""#;
        let table = [
            ("a list", LIST, CALL, IDS, None),
            ("a list in pages", pages, CALL, IDS, None),
            ("a list without end", endless, CALL, IDS, Some("the list of tools has more than 100 pages")),
            ("an error beside a result", LIST, refused, IDS, Some("\"message\":\"no index\"")),
            ("an error that is null", LIST, no_error, IDS, None),
            (
                "a pointer at nothing",
                LIST,
                CALL,
                "/structured/*/id",
                Some("no answer has a text at `/structured/*/id`"),
            ),
        ];
        for (what, list, call, ids, expected) in table {
            let error = gateway(list, call, ids).run(&collection()).err().map(|error| error.to_string());
            let said = error.as_deref().zip(expected).is_some_and(|(error, expected)| error.contains(expected));
            assert!(said || (error.is_none() && expected.is_none()), "{what}: {error:?}");
        }
    }

    #[test]
    fn missing_unsupported_failed_and_late_are_four_words() {
        let error = |engine: ProcessEngine| engine.run(&collection()).unwrap_err().to_string();
        assert!(error(ProcessEngine::parse("no-such-program --x").unwrap()).starts_with("missing: no-such-program: "));
        assert!(error(engine(r#"echo '{"unsupported":"no queries"}'"#)).starts_with("unsupported: the query "));
        assert!(error(engine("sleep 9")).starts_with("timed out: the query "));
        let silent = ["sh", "-c", r#"read -r line; echo '{"ok":true}'"#].map(OsString::from).to_vec();
        let silent = ProcessEngine { command: silent, ..ProcessEngine::parse("sh").unwrap() };
        assert!(error(silent).contains("without a version there is no row"));
    }

    #[test]
    fn equal_scores_have_no_order() {
        let full = |last: u32| -> Vec<(u32, f64)> {
            let best = (0..99).map(|item| (item, f64::from(200 - item)));
            best.chain([(last, 1.0)]).collect()
        };
        for (left, right, same) in [
            (vec![(1, 2.0), (2, 2.0), (3, 1.0)], vec![(2, 2.0), (1, 2.0), (3, 1.0)], true),
            (vec![(1, 2.0), (2, 1.0)], vec![(2, 2.0), (1, 1.0)], false),
            (full(500), full(501), true),
            (full(500), full(500)[..99].to_vec(), true),
            (vec![], vec![(1, 1.0)], false),
        ] {
            assert_eq!(without_ties(&left) == without_ties(&right), same, "{left:?} {right:?}");
        }
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
