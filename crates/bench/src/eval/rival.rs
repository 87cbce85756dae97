//! Engines of others as the matrix names them: programs of `docs/engines.md` with a version, a place and limits; and what
//! is recorded of one on one collection.
//!
//! Nothing here is computed again by a check: these engines need an installation. What is recorded has the rank of every
//! relevant tool, so that each mean can be recomputed and any two engines compared query by query.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::collection::Collection;
use super::everyday;
use super::measure::Measure;
use super::process::confine::confined;
use super::process::mcp::SearchTool;
use super::process::{Door, Hiding, Limits, ProcessEngine, ProcessError, ProcessReport};
use super::ranks::Ranks;
use super::record::{Estimate, Outcome};
use super::run::{Evaluation, PromptTokens, evaluate_imported};
use super::statistics::estimate_all;
use contextweaver_core::text::sha256_hex;

/// The folder of the engines in a checkout.
pub const FOLDER: &str = "benches/engines";

/// Where `scripts/engines` installs them in a checkout, one environment for each folder.
const INSTALLED: &str = "target/engines";

/// The file of their times, in `scorecard/timings/`.
pub const TIMES_FILE: &str = "engines.csv";

/// In a command, the program of the engine's environment.
const PYTHON: &str = "python";

/// In a command, this program: our own engines come in by the same door.
const OURS: &str = "{contextweaver}";

/// The results file of engines that rank, in `scorecard/results/`.
pub const RESULTS_FILE: &str = "rivals.json";

/// How the text of a query is put to an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// As it is.
    Whole,
    /// Line by line; the answers are taken in turn.
    LineByLine,
}

/// The case of an engine on a collection.
#[must_use]
pub fn case(engine: &str, collection: &str) -> String {
    format!("{engine}/{collection}")
}

/// The engine and the collection of a case.
#[must_use]
pub fn parts(case: &str) -> (&str, &str) {
    case.split_once('/').unwrap_or((case, ""))
}

/// The measures that are recorded, in the order of the page.
pub const MEASURES: [&str; 5] = ["recall@1", "recall@5", "recall@10", "nDCG@10", "hit@1"];

/// A row `[[process]]` or `[[context]]` of `engines.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessEntry {
    name: String,
    analysis: String,
    folder: Option<String>,
    version: Vec<String>,
    install: Option<String>,
    run: Vec<String>,
    /// For a gateway: the tool that is asked.
    mcp: Option<McpEntry>,
    #[serde(default)]
    limits: LimitsEntry,
}

/// The search tool of a gateway.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct McpEntry {
    tool: String,
    argument: String,
    ids: String,
}

/// The limits of a row; what is not said is the default of [`Limits`].
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsEntry {
    load_s: Option<u64>,
    route_ms: Option<u64>,
    all_s: Option<u64>,
    rss_mib: Option<u64>,
}

/// An engine that is a program, as the matrix names it: one that ranks tools, or one that makes prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rival {
    /// Its name: a-z, 0-9, - and _.
    pub name: String,
    /// What it is, in a sentence.
    pub analysis: String,
    /// Its folder below [`FOLDER`]; `None` for our own.
    pub folder: Option<String>,
    /// How it is installed, as a command line for a person; `None` where nothing is needed.
    pub install: Option<String>,
    /// The command that prints its version.
    version: Vec<String>,
    /// The command that answers.
    run: Vec<String>,
    /// The tool that is asked, its argument and where its result names tools, for a gateway.
    mcp: Option<[String; 3]>,
    /// The bounds of a run.
    pub limits: Limits,
}

/// What an engine does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// It ranks tools.
    Process,
    /// It makes prompts of conversations, or shortens results.
    Context,
}

impl Sort {
    /// The name of its rows.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Context => "context",
        }
    }
}

impl ProcessEntry {
    /// The entry, checked.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence without its end.
    pub(super) fn checked(self, sort: Sort) -> Result<Rival, String> {
        let Self { name, analysis, folder, version, install, run, mcp, limits } = self;
        let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        let is_name = |text: &str| !text.is_empty() && text.chars().all(valid);
        let refuse = |reason: &str| Err(format!("{} `{name}`: {reason}", sort.name()));
        if !is_name(&name) {
            return refuse("a name consists of a-z, 0-9, - and _");
        }
        if analysis.trim().is_empty() {
            return refuse("`analysis` is empty; say what the engine is");
        }
        if folder.as_deref().is_some_and(|folder| !is_name(folder)) {
            return refuse("`folder` is the name of a folder in benches/engines");
        }
        if run.is_empty() || version.is_empty() {
            return refuse("`run` and `version` are commands; without a version there is no row");
        }
        let is_ours = run[0] == OURS;
        if is_ours == folder.is_some() {
            return refuse("an engine has a `folder`, or runs `{contextweaver}`");
        }
        if sort == Sort::Context && mcp.is_some() {
            return refuse("a gateway makes no prompts; leave `mcp` out");
        }
        let mcp = mcp.map(|McpEntry { tool, argument, ids }| [tool, argument, ids]);
        if let Some([tool, argument, ids]) = &mcp
            && (tool.is_empty() || argument.is_empty() || !ids.starts_with('/'))
        {
            return refuse("`mcp` names a tool, its argument, and a JSON pointer that begins with `/`");
        }
        let usual = Limits::default();
        let seconds = |value: Option<u64>| value.map(Duration::from_secs);
        let limits = Limits {
            load: seconds(limits.load_s).unwrap_or(usual.load),
            route: limits.route_ms.map_or(usual.route, Duration::from_millis),
            all: seconds(limits.all_s).or(usual.all),
            peak_mib: limits.rss_mib.or(usual.peak_mib),
        };
        if [limits.load, limits.route].contains(&Duration::ZERO) || limits.all == Some(Duration::ZERO) {
            return refuse("a limit is zero");
        }
        Ok(Rival { name, analysis, folder, install, version, run, mcp, limits })
    }
}

/// What is recorded of an engine on a collection. No time is among it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RivalFacts {
    /// What its version command printed.
    pub version: String,
    /// SHA-256 (hex) of the file that pins what was installed; `None` where nothing was.
    pub requirements_sha256: Option<String>,
    /// Tools in the catalog.
    pub tools: usize,
    /// Measure name to its estimate, for [`MEASURES`]; a declared equivalent counts as the tool it stands for.
    pub measures: BTreeMap<String, Estimate>,
    /// Queries that a second process was asked, which got the catalog in another order.
    pub order_asked: usize,
    /// How many of those had another list of up to a hundred tools, orders of equal scores aside.
    pub order_changes: usize,
    /// For each query that a tool answers, the number of the first tool that it needs: queries of one number stand or fall
    /// together. It is the same for every engine, so that only our own records have it; empty elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_tools: Vec<u32>,
    /// For each query that a tool answers, in the order of the queries file, the rank of each needed tool, from 1; `None`
    /// where it was not among the first hundred.
    pub ranks: Ranks,
}

impl RivalFacts {
    /// The values of a measure by query, recomputed from the ranks; `None` for a name that is no measure.
    #[must_use]
    pub fn by_query(&self, measure: &str) -> Option<Vec<f64>> {
        let measure: Measure = measure.parse().ok()?;
        Some(self.ranks.values(measure))
    }

    /// The measures as the ranks give them.
    #[must_use]
    pub fn recomputed(&self) -> BTreeMap<String, Estimate> {
        let columns: Vec<Vec<f64>> = MEASURES.iter().filter_map(|measure| self.by_query(measure)).collect();
        let rows: Vec<Vec<f64>> =
            (0..self.ranks.queries()).map(|query| columns.iter().map(|column| column[query]).collect()).collect();
        MEASURES.into_iter().map(str::to_owned).zip(estimate_all(&rows)).collect()
    }

    fn of(
        version: String,
        requirements_sha256: Option<String>,
        report: &ProcessReport,
        first_tools: Vec<u32>,
        evaluation: &Evaluation,
    ) -> Self {
        let facts = Self {
            version,
            requirements_sha256,
            tools: evaluation.facts.tools,
            measures: BTreeMap::new(),
            order_asked: report.order_asked,
            order_changes: report.order_changes,
            first_tools,
            ranks: evaluation.facts.ranks.clone(),
        };
        Self { measures: facts.recomputed(), ..facts }
    }
}

/// Times of an engine on a collection: a row of [`TIMES_FILE`]. They belong to a machine and a day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RivalTimes {
    /// The engine.
    pub engine: String,
    /// The collection.
    pub collection: String,
    /// Tools in its catalog.
    pub tools: usize,
    /// The day.
    pub recorded: String,
    /// From the start of the process to its first answer, in ms.
    pub start_ms: f64,
    /// From the name of the catalog to its being loaded, in ms.
    pub load_ms: f64,
    /// The median of a ping, in µs: what the pipe alone takes.
    pub ping_us: u64,
    /// The median of an answer, the pipe included, in µs.
    pub p50_us: u64,
    /// Its 99th percentile.
    pub p99_us: u64,
    /// The median that the engine states itself, where it does.
    pub own_p50_us: Option<u64>,
    /// The largest memory of the process in MiB, where the system tells.
    pub peak_mib: Option<u64>,
}

/// The times of each engine on the collection with the largest catalog.
#[must_use]
pub fn on_largest(times: &[RivalTimes]) -> Vec<&RivalTimes> {
    let largest = times.iter().max_by_key(|row| row.tools);
    times.iter().filter(|row| largest.is_some_and(|largest| row.collection == largest.collection)).collect()
}

/// What a run of an engine on a collection left.
#[derive(Debug)]
pub struct RivalRun {
    /// The facts, or one of the four words (missing, unsupported, failed, timed out) and why.
    pub outcome: Outcome<RivalFacts>,
    /// The times, where it came to the end; of our own engines only in a release build.
    pub times: Option<RivalTimes>,
    /// Whether the kernel kept the judgements from it; `None` where it did not come to the end.
    pub hiding: Option<Hiding>,
}

/// Where engines of others run.
#[derive(Debug, Clone, Copy)]
pub struct RivalPlace<'a> {
    /// The checkout.
    pub root: &'a Path,
    /// This program.
    pub program: &'a Path,
    /// Files and folders that no engine may read.
    pub hidden: &'a [PathBuf],
}

/// An engine as it is installed here.
#[derive(Debug)]
pub(super) struct Installed {
    /// What its version command printed.
    pub(super) version: String,
    /// SHA-256 (hex) of the file that pins what was installed; `None` where nothing was.
    pub(super) requirements_sha256: Option<String>,
    /// The command that answers, with paths.
    pub(super) command: Vec<OsString>,
}

impl Rival {
    /// Whether it is this program.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.folder.is_none()
    }

    /// The command that answers queries, as text that a person can read.
    #[must_use]
    pub fn command(&self) -> String {
        self.run.join(" ")
    }

    /// Runs it on `collection`.
    #[must_use]
    pub fn take_part(&self, collection: &Collection, put: Put, place: &RivalPlace<'_>) -> RivalRun {
        match self.measured(collection, put, place) {
            Ok((facts, report)) => {
                // Other programs are built for speed; what a build for tests takes says nothing about ours.
                let is_fair = !self.is_ours() || !cfg!(debug_assertions);
                let times = is_fair.then(|| self.times(collection, &report));
                RivalRun { outcome: Outcome::Measured(facts), times, hiding: Some(report.hiding) }
            }
            Err(error) => RivalRun { outcome: Outcome::Failed(error.to_string()), times: None, hiding: None },
        }
    }

    fn measured(
        &self,
        collection: &Collection,
        put: Put,
        place: &RivalPlace<'_>,
    ) -> Result<(RivalFacts, ProcessReport), ProcessError> {
        let Installed { version, requirements_sha256, command } = self.installed(place)?;
        let engine = self.started_by(command, place);
        let (rankings, report) = match put {
            Put::Whole => engine.run(collection).map(|run| (run.rankings, run.report))?,
            Put::LineByLine => {
                let run = engine.run(&everyday::line_by_line(collection))?;
                (everyday::together(collection, run.rankings), run.report)
            }
        };
        let evaluation = evaluate_imported(collection, rankings, PromptTokens::Skip)
            .map_err(|error| ProcessError::Failed(error.to_string()))?;
        let first_tools = if self.is_ours() { collection.first_tools() } else { Vec::new() };
        Ok((RivalFacts::of(version, requirements_sha256, &report, first_tools, &evaluation), report))
    }

    /// It as a program that answers queries.
    ///
    /// # Errors
    /// [`ProcessError::Missing`] where it is not installed; the message says how it is.
    pub fn engine(&self, place: &RivalPlace<'_>) -> Result<ProcessEngine, ProcessError> {
        Ok(self.started_by(self.resolved(&self.run, place.root, place.program)?, place))
    }

    fn started_by(&self, command: Vec<OsString>, place: &RivalPlace<'_>) -> ProcessEngine {
        let door = match self.mcp.clone() {
            None => Door::Lines,
            Some([name, argument, ids]) => {
                Door::Mcp(SearchTool { name, argument, ids, player: place.program.to_owned() })
            }
        };
        ProcessEngine { command, door, hidden: place.hidden.to_vec(), limits: self.limits }
    }

    /// What is here of it.
    ///
    /// # Errors
    /// [`ProcessError::Missing`] where it is not installed, [`ProcessError::Failed`] where it states no version.
    pub(super) fn installed(&self, place: &RivalPlace<'_>) -> Result<Installed, ProcessError> {
        let RivalPlace { root, program, .. } = *place;
        let version = self.stated_version(place)?;
        let requirements = self.folder.as_ref().map(|folder| root.join(FOLDER).join(folder).join("requirements.txt"));
        let requirements = requirements.and_then(|path| std::fs::read(path).ok());
        Ok(Installed {
            version,
            requirements_sha256: requirements.map(|bytes| sha256_hex(&bytes)),
            command: self.resolved(&self.run, root, program)?,
        })
    }

    /// The first line that the version command prints.
    fn stated_version(&self, place: &RivalPlace<'_>) -> Result<String, ProcessError> {
        let command = self.resolved(&self.version, place.root, place.program)?;
        let shown = command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        // It is the engine's own code: what it could read here, it could keep for the run.
        let output = confined(place.hidden, &[], || Command::new(&command[0]).args(&command[1..]).output());
        let output = output
            .and_then(|(output, _)| output)
            .map_err(|error| ProcessError::Missing { program: shown.clone(), reason: error.to_string() })?;
        let text = String::from_utf8_lossy(&output.stdout);
        match text.lines().next().map(str::trim) {
            Some(version) if output.status.success() && !version.is_empty() && version.len() <= 100 => {
                Ok(version.to_owned())
            }
            _ => Err(ProcessError::Failed(format!(
                "`{}` prints no version; without one there is no row",
                self.version.join(" ")
            ))),
        }
    }

    /// A command with paths where it names this program, the interpreter of its environment and files of its folder.
    fn resolved(&self, words: &[String], root: &Path, program: &Path) -> Result<Vec<OsString>, ProcessError> {
        let folder = self.folder.as_ref().map(|folder| root.join(FOLDER).join(folder));
        let interpreter = self.folder.as_ref().map(|folder| root.join(INSTALLED).join(folder).join("bin").join(PYTHON));
        words
            .iter()
            .map(|word| match (&folder, &interpreter) {
                _ if word == OURS => Ok(program.as_os_str().to_owned()),
                (_, Some(python)) if word == PYTHON => match python.exists() {
                    true => absolute(python),
                    false => Err(ProcessError::Missing {
                        program: self.name.clone(),
                        reason: match &self.install {
                            Some(install) => format!("not installed; run `{install}` in the checkout"),
                            None => {
                                format!("not installed; see {FOLDER}/{}", self.folder.as_deref().unwrap_or_default())
                            }
                        },
                    }),
                },
                (Some(folder), _) if folder.join(word).is_file() => absolute(&folder.join(word)),
                _ => Ok(OsString::from(word)),
            })
            .collect()
    }

    fn times(&self, collection: &Collection, report: &ProcessReport) -> RivalTimes {
        let ms = |us: u64| (us as f64 / 100.0).round() / 10.0;
        RivalTimes {
            engine: self.name.clone(),
            collection: collection.name.clone(),
            tools: collection.catalog.len(),
            recorded: super::day::Day::now().to_string(),
            start_ms: ms(report.start_us),
            load_ms: ms(report.load_us),
            ping_us: report.ping_us,
            p50_us: report.route_p50_us,
            p99_us: report.route_p99_us,
            own_p50_us: report.own_p50_us,
            peak_mib: report.peak_kib.map(|kib| kib.div_ceil(1024)),
        }
    }
}

fn absolute(path: &PathBuf) -> Result<OsString, ProcessError> {
    std::path::absolute(path)
        .map(PathBuf::into_os_string)
        .map_err(|error| ProcessError::Missing { program: path.display().to_string(), reason: error.to_string() })
}
