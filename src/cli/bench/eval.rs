//! `bench eval`: the measures of the scorecard on anybody's catalog, queries and engines, as figures or as a gate.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::choose::{Choices, ChooseArgs, Chosen, choices, keep, keep_at_a_signal, partial};
use super::end_engines_at_a_signal;
use crate::cli::files::{writable, writable_in, write};
use crate::cli::source::{CatalogSource, read_config};
use crate::cli::{Outcome, note, print_json};
use contextweaver_api::envelope;
use contextweaver_bench::chapters::routing::facts;
use contextweaver_bench::comparison::evaluations::Evaluations;
use contextweaver_bench::comparison::text::power;
use contextweaver_bench::eval::collection::Collection;
use contextweaver_bench::eval::decision::{MARGIN, Standing, Word};
use contextweaver_bench::eval::engine::{Engine, RouterEngine};
use contextweaver_bench::eval::error::EvalError;
use contextweaver_bench::eval::export;
use contextweaver_bench::eval::files::make_folder;
use contextweaver_bench::eval::imported::read_run;
use contextweaver_bench::eval::matrix;
use contextweaver_bench::eval::measure::Measure;
use contextweaver_bench::eval::process::mcp::SearchTool;
use contextweaver_bench::eval::process::{Door, ProcessEngine, ProcessError, ProcessReport};
use contextweaver_bench::eval::record::{Estimate, Evidence, Facts};
use contextweaver_bench::eval::rival::{Rival, RivalPlace};
use contextweaver_bench::eval::run::{Evaluation, PromptTokens, against, evaluate, evaluate_imported};
use contextweaver_bench::eval::workspace::{Workspace, judgements_around};
use contextweaver_bench::own::RESULTS_FILE;
use contextweaver_bench::own::baseline::VersusBaseline;
use contextweaver_bench::own::bounds::{Bounds, Gate};
use contextweaver_bench::own::failures::Failure;
use contextweaver_bench::own::results::read_base;
use contextweaver_bench::own::workspace::least;
use contextweaver_bench::report::html::{self, Failed, Ranked, Section};
use contextweaver_bench::report::markup::visible;
use contextweaver_bench::report::number::share;
use contextweaver_bench::report::table::Table;
use contextweaver_core::files::ReadError;
use contextweaver_gateway::quoted;

pub(super) const EXAMPLE: &str = "\
Queries are JSON lines; `relevant` names tools as in the catalog, an empty list means that no tool fits:
  {\"id\": \"q1\", \"query\": \"who is on call\", \"relevant\": [\"get_oncall\"]}
  {\"id\": \"q2\", \"query\": \"order a pizza\", \"relevant\": []}

Examples:
  contextweaver bench eval --catalog tools.json --queries queries.jsonl
  contextweaver bench eval --catalog tools.json --queries queries.jsonl --failures
  contextweaver bench eval --catalog tools.json --queries queries.jsonl --engine default --engine bm25 --html report.html
  contextweaver bench eval --catalog tools.json --queries queries.jsonl --engine default --engine bm25 \\
    --process 'mine=python3 engine.py' --run theirs=run.tsv
  contextweaver bench eval --catalog tools.json --queries queries.jsonl --format json > base.json
  contextweaver bench eval --catalog tools.json --queries queries.jsonl --baseline base.json \\
    --fail-under recall@5=.80 --max-tokens 40000
  contextweaver bench eval --catalog tools.json --queries queries.jsonl --choose 'model=python3 chooser.py' \\
    --choose-env OPENAI_API_KEY --record answers.jsonl

Engines are measured in the order engines, configurations, processes, runs; each is compared with the first, query by
query, and gates judge the first. docs/engines.md says how a program takes part. One that does not (missing, unsupported,
failed, timed out) is a row with that word; the others are measured and printed.

Exit codes: 0 measured and no gate failed, 1 a gate failed, 2 error, an engine without results, or a baseline with
other inputs.";

/// Measure engines on your own catalog and queries, and gate on the result
#[derive(Debug, Args)]
pub(in crate::cli) struct EvalArgs {
    #[command(flatten)]
    source: CatalogSource,
    /// Queries, one JSON object per line
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// An engine of the scorecard (`default`, `lexical`, `best`, `bm25` …), or in a checkout a program of
    /// scenarios/engines.toml (`bm25s`, `minilm` …); may be repeated [default: default]
    #[arg(long, value_name = "NAME", help_heading = "Engines")]
    engine: Vec<String>,
    /// Routing configuration (TOML); may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Engines")]
    config: Vec<PathBuf>,
    /// A program that answers by the protocol of docs/engines.md; may be repeated
    #[arg(long, value_name = "NAME=COMMAND", help_heading = "Engines", value_parser = named_command)]
    process: Vec<(String, String)>,
    /// A gateway: an MCP server whose search tool is called, in front of servers simulated from the catalog. In the
    /// command, `{config}` becomes a file with a member `mcpServers`, `{upstreams}` one for `contextweaver mcp serve`
    #[arg(long, value_name = "NAME=COMMAND", help_heading = "Engines", value_parser = named_command,
        requires_all = ["mcp_search_tool", "mcp_query_argument", "mcp_ids"])]
    mcp: Option<(String, String)>,
    /// The tool of the gateway that searches
    #[arg(long, value_name = "TOOL", help_heading = "Engines", requires = "mcp")]
    mcp_search_tool: Option<String>,
    /// The argument of that tool that takes the query
    #[arg(long, value_name = "ARGUMENT", help_heading = "Engines", requires = "mcp")]
    mcp_query_argument: Option<String>,
    /// Where its result names tools: a JSON pointer, `*` for every element, e.g. /structuredContent/result/*/name
    #[arg(long, value_name = "POINTER", help_heading = "Engines", requires = "mcp")]
    mcp_ids: Option<String>,
    /// Rankings that another program wrote, as TREC or tab-separated lines; may be repeated
    #[arg(long, value_name = "NAME=FILE", help_heading = "Engines", value_parser = named_file)]
    run: Vec<(String, String)>,
    #[command(flatten)]
    choose: ChooseArgs,
    /// List the queries whose tools are not among the first five: what was found instead, and why
    #[arg(long)]
    failures: bool,
    /// Compare the first engine with the one of its name in an earlier `--format json`, or with the first there; a
    /// regression fails
    #[arg(long, value_name = "FILE", help_heading = "Gates")]
    baseline: Option<PathBuf>,
    /// Compare the queries that both have, even if the catalog or the queries changed
    #[arg(long, requires = "baseline", help_heading = "Gates")]
    changed_inputs: bool,
    /// Fail when a measure of the first engine is below a value; may be repeated
    #[arg(long, value_name = "MEASURE=VALUE", help_heading = "Gates", value_parser = threshold)]
    fail_under: Vec<(Measure, f64)>,
    /// Fail when all definitions of the catalog take more tokens than this
    #[arg(long, value_name = "TOKENS", help_heading = "Gates")]
    max_tokens: Option<usize>,
    /// Write the ranking of the first engine: query id, rank, tool, score and tool id, tab-separated
    #[arg(long, value_name = "FILE")]
    run_out: Option<PathBuf>,
    /// Write qrels and runs in TREC form, and our measures, into this folder
    #[arg(long, value_name = "DIR")]
    trec_out: Option<PathBuf>,
    /// Write a report of all engines as one HTML file: the failures, the confusions, every query
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Form,
}

/// The form of the output of `bench eval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Form {
    /// For people.
    #[default]
    Text,
    /// One JSON document, which `--baseline` reads.
    Json,
    /// One line of JSON for each engine.
    Jsonl,
    /// A table with one row for each engine, comma-separated.
    Csv,
    /// The same table as Markdown.
    Markdown,
}

/// `NAME=COMMAND`.
pub(super) fn named_command(text: &str) -> Result<(String, String), String> {
    named(text, "NAME=COMMAND")
}

/// `NAME=FILE`.
fn named_file(text: &str) -> Result<(String, String), String> {
    named(text, "NAME=FILE")
}

/// A name and what it stands for, both of which say something; `form` is for the message.
fn named(text: &str, form: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("not of the form {form}")),
    }
}

/// `MEASURE=VALUE`, the least value of a measure.
pub(in crate::cli) fn threshold(text: &str) -> Result<(Measure, f64), String> {
    let (name, value) = text.split_once('=').ok_or("not of the form MEASURE=VALUE")?;
    let value = value.trim().parse().map_err(|_| format!("`{value}` is not a number from 0 to 1"))?;
    least(name.trim(), value)
}

#[derive(Serialize)]
struct Output<'a> {
    inputs_sha256: &'a str,
    /// A digest of each query with an answer.
    queries: BTreeMap<String, String>,
    evaluations: Vec<Entry<'a>>,
    /// What programs chose among the cards of the first engine.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    choices: &'a [Chosen],
    /// The engines that gave nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<FailedEntry<'a>>,
    /// The tools that each query with an answer needs.
    wanted: BTreeMap<&'a str, Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    versus_baseline: Option<&'a VersusBaseline>,
    failed_gates: &'a [&'a str],
}

#[derive(Serialize)]
struct Entry<'a> {
    /// The name of the engine, by the key that files which were written have.
    configuration: &'a str,
    origin: Evidence,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<&'a ProcessReport>,
    facts: &'a Facts,
    /// What its recall@5 is beside that of the first engine; absent of the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Standing>,
    /// The rank of each relevant tool by query; only queries with an answer.
    ranks: BTreeMap<&'a str, &'a [Option<usize>]>,
    /// The queries that lack a tool among the first five, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<Vec<Failure<'a>>>,
}

/// An engine that gave nothing.
#[derive(Serialize)]
struct FailedEntry<'a> {
    configuration: &'a str,
    origin: &'static str,
    /// missing, unsupported, failed or timed out.
    word: &'static str,
    /// The word, and why.
    reason: &'a str,
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// An engine.
    Engine(Evidence),
    /// A program that chooses among the cards of the first engine.
    Chooser,
}

/// An engine with what it gave.
struct Measured {
    name: String,
    origin: Evidence,
    process: Option<ProcessReport>,
    evaluation: Evaluation,
}

/// An engine that gave nothing, and why; or a program that was to choose.
pub(super) struct Absent {
    name: String,
    role: Role,
    word: &'static str,
    reason: String,
}

impl Absent {
    pub(super) fn of(name: &str, role: Role, error: &ProcessError) -> Self {
        Self { name: name.to_owned(), role, word: error.word(), reason: error.to_string() }
    }

    /// The same, with what there is all the same.
    pub(super) fn but(mut self, more: &str) -> Self {
        self.reason += more;
        self
    }
}

/// What all engines gave.
#[derive(Default)]
struct Ran {
    measured: Vec<Measured>,
    absent: Vec<Absent>,
    /// Whether the first engine that was asked for is among those that gave nothing: there is nothing to judge or to compare
    /// with.
    lacks_first: bool,
}

impl Ran {
    fn add(&mut self, one: Result<Measured, Absent>) {
        match one {
            Ok(one) => self.measured.push(one),
            Err(absent) => {
                self.lacks_first |= self.measured.is_empty() && self.absent.is_empty();
                self.absent.push(absent);
            }
        }
    }

    /// Puts each engine beside the first, where that is there.
    fn compare_with_the_first(&mut self) {
        let Some((first, others)) = self.measured.split_first_mut().filter(|_| !self.lacks_first) else { return };
        for one in others {
            let paired = against(&first.name, &first.evaluation.recall_at_5, &one.evaluation.recall_at_5);
            one.evaluation.facts.versus_control = Some(paired);
        }
    }
}

pub(super) fn run(args: &EvalArgs, out: &mut dyn Write) -> Result<Outcome> {
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    refuse_overwriting(args)?;
    refuse_unwritable(args)?;
    refuse_two_of_one_name(args)?;
    args.choose.check()?;
    let collection = args.source.collection(&args.queries)?;
    refuse_in_a_table(args)?;
    if !args.process.is_empty() || args.mcp.is_some() || args.choose.starts() {
        end_engines_at_a_signal(keep_at_a_signal)?;
    }
    let mut ran = measure(args, &collection)?;
    ran.compare_with_the_first();
    let Some(first) = ran.measured.first() else { bail!("no engine produced results: {}", reasons(&ran.absent)) };
    let judged = (!ran.lacks_first).then_some(first);
    let choices = match judged {
        Some(first) if args.choose.is_asked() => {
            choices(&args.choose, &hidden(args), &collection, &first.name, &first.evaluation)?
        }
        _ => Choices::default(),
    };
    // Answers cost time and money: they are kept before anything else can fail, and their figures are printed even where
    // they are not kept. So are the others where a file cannot be written.
    let unkept = keep().err();
    ran.absent.extend(choices.absent);
    let unwritten = write_files(args, &collection, first, &ran).err();
    if first.evaluation.facts.answerable == 0 {
        note("no query has a relevant tool: there is nothing to measure but abstention and tokens");
    }
    let decision = match (judged, &baseline) {
        (Some(first), Some(baseline)) => {
            let now = (first.name.as_str(), &first.evaluation.facts);
            Some(VersusBaseline::of(now, &collection, baseline, args.changed_inputs)?)
        }
        _ => None,
    };
    let bounds = Bounds { least: &args.fail_under, most_tokens: args.max_tokens };
    let of_baseline = decision.as_ref().map(|one| &one.decision);
    let gates = judged.map_or_else(Vec::new, |first| bounds.of(&first.name, &first.evaluation, of_baseline));
    let said = Said { args, collection: &collection, ran: &ran, chosen: &choices.chosen, decision, gates: &gates };
    said.print(out)?;
    if let Some(error) = unkept {
        return Err(error).context("--record: the answers could not be saved");
    }
    if let Some(error) = unwritten {
        return Err(error);
    }
    said.ended()
}

/// Refuses what a CSV table has no place for.
fn refuse_in_a_table(args: &EvalArgs) -> Result<()> {
    if args.failures && args.format == Form::Csv {
        bail!("--failures has no place in a CSV table; use text, json, jsonl or markdown");
    }
    if args.choose.is_asked() && args.format == Form::Csv {
        bail!("--choose and --replay have no place in a CSV table; use text, json, jsonl or markdown");
    }
    Ok(())
}

/// Writes the files that were asked for; everything is made before the first of them is written.
fn write_files(args: &EvalArgs, collection: &Collection, first: &Measured, ran: &Ran) -> Result<()> {
    let mut files = Vec::new();
    if let Some(folder) = &args.trec_out {
        let exported = export::trec(collection, &first.evaluation)?;
        make_folder(folder)?;
        files.extend(exported.into_iter().map(|(name, bytes)| (folder.join(name), bytes)));
    }
    if let Some(path) = &args.run_out {
        files.push((path.clone(), export::tab_run(collection, &first.evaluation)?));
    }
    if let Some(path) = &args.html {
        files.push((path.clone(), report(args, collection, &ran.measured, &ran.absent)?.into()));
    }
    files.iter().try_for_each(|(path, bytes)| write(path, bytes))
}

/// What there is to say.
struct Said<'a> {
    args: &'a EvalArgs,
    collection: &'a Collection,
    ran: &'a Ran,
    /// What programs chose among the cards of the first engine.
    chosen: &'a [Chosen],
    /// What became of the baseline, where there is one.
    decision: Option<VersusBaseline>,
    gates: &'a [Gate],
}

impl Said<'_> {
    /// Says it in the form that was asked for.
    fn print(&self, out: &mut dyn Write) -> Result<()> {
        if self.args.format != Form::Text {
            self.failed().iter().for_each(|failure| note(&format!("failed: {failure}")));
        }
        match self.args.format {
            Form::Json => self.json(out),
            Form::Jsonl => self.json_lines(out),
            Form::Csv => {
                let table = table(&self.ran.measured, &self.ran.absent, |value| value.to_string());
                Ok(write!(out, "{}", table.csv())?)
            }
            Form::Markdown => self.markdown(out),
            Form::Text => self.text(out),
        }
    }

    /// The gates that failed.
    fn failed(&self) -> Vec<&str> {
        self.gates.iter().filter(|gate| !gate.passed).map(|gate| gate.said.as_str()).collect()
    }

    fn json(&self, out: &mut dyn Write) -> Result<()> {
        let Self { args, collection, ran, .. } = self;
        let output = Output {
            inputs_sha256: &collection.inputs_sha256,
            queries: collection.digests(),
            evaluations: ran.measured.iter().map(|one| entry(args, collection, one)).collect(),
            choices: self.chosen,
            failed: ran.absent.iter().map(Absent::entry).collect(),
            wanted: wanted(collection),
            versus_baseline: self.decision.as_ref(),
            failed_gates: &self.failed(),
        };
        print_json(out, "bench eval", &output)
    }

    fn json_lines(&self, out: &mut dyn Write) -> Result<()> {
        for one in &self.ran.measured {
            let line = envelope("bench eval engine", &entry(self.args, self.collection, one))?;
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
        }
        for one in self.chosen {
            writeln!(out, "{}", serde_json::to_string(&envelope("bench eval choices", one)?)?)?;
        }
        for one in &self.ran.absent {
            let line = envelope("bench eval failed", &one.entry())?;
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> Result<()> {
        write!(out, "{}", table(&self.ran.measured, &self.ran.absent, share).markdown())?;
        for one in self.ran.measured.iter().filter(|_| self.args.failures) {
            write!(out, "\n{}", Failure::markdown(&one.name, self.collection, &one.evaluation))?;
        }
        for one in self.chosen {
            write!(out, "\n{}", one.markdown())?;
        }
        Ok(())
    }

    fn text(&self, out: &mut dyn Write) -> Result<()> {
        for (number, one) in self.ran.measured.iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            print_one(out, one)?;
            if self.args.failures {
                write!(out, "{}", Failure::text(self.collection, &one.evaluation))?;
            }
        }
        for one in self.chosen {
            write!(out, "\n{}", one.text())?;
        }
        for one in &self.ran.absent {
            writeln!(out, "\n{}: {}\n{}", one.role.name(), one.name, one.reason)?;
        }
        if let Some(decision) = &self.decision {
            let VersusBaseline { engine, decision, gone, of } = decision;
            let base = match self.ran.measured.first() {
                Some(first) if first.name == *engine => "the baseline".to_owned(),
                _ => format!("`{}` of the baseline", visible(engine)),
            };
            writeln!(out, "\nrecall@5 against {base}: {}\n{}", decision.word, power(decision, 1, MARGIN))?;
            if *gone > 0 {
                writeln!(
                    out,
                    "  {gone} of {of} queries of the baseline are gone or were changed, and are not compared"
                )?;
            }
        }
        if !self.gates.is_empty() && self.decision.is_none() {
            writeln!(out)?;
        }
        for Gate { passed, said, known } in self.gates {
            writeln!(out, "{}: {said}", if *passed { "passed" } else { "failed" })?;
            known.iter().try_for_each(|known| writeln!(out, "  {known}"))?;
        }
        Ok(())
    }

    /// How the command ends.
    fn ended(&self) -> Result<Outcome> {
        let Self { args, ran: Ran { absent, lacks_first, .. }, .. } = self;
        if !absent.is_empty() {
            let gates = !args.fail_under.is_empty() || args.max_tokens.is_some() || args.baseline.is_some();
            let unjudged =
                if *lacks_first && gates { "; the gates judge the first engine, which has no results" } else { "" };
            let engines = absent.iter().any(|one| one.role != Role::Chooser);
            let what =
                if engines { "some engines produced no results" } else { "some programs did not finish choosing" };
            bail!("{what}: {}{unjudged}", reasons(absent));
        }
        if self.decision.as_ref().is_some_and(|one| one.decision.word == Word::NotComparable) {
            bail!(
                "the baseline was measured on another catalog or other queries; record it again, or compare the queries \
                 that both have with --changed-inputs"
            );
        }
        Ok(if self.failed().is_empty() { Outcome::Ok } else { Outcome::Drift })
    }
}

/// Who gave nothing, and why.
fn reasons(absent: &[Absent]) -> String {
    absent.iter().map(|one| format!("`{}`: {}", one.name, one.reason)).collect::<Vec<_>>().join("; ")
}

/// Refuses two engines of one name: their rows could not be told apart, and a file holds one of each name.
fn refuse_two_of_one_name(args: &EvalArgs) -> Result<()> {
    let configs = args.config.iter().map(|path| ("--config", path.display().to_string()));
    let named = [("--process", &args.process), ("--run", &args.run)];
    let named = named.into_iter().flat_map(|(option, all)| all.iter().map(move |(name, _)| (option, name.clone())));
    let mcp = args.mcp.iter().map(|(name, _)| ("--mcp", name.clone()));
    let engines = args.engine.iter().map(|name| ("--engine", name.clone()));
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (option, name) in engines.chain(configs).chain(named).chain(mcp) {
        if let Some(other) = seen.insert(name.clone(), option) {
            bail!(
                "{other} and {option} both name an engine `{name}`; give each engine a name of its own, and each once"
            );
        }
    }
    Ok(())
}

/// Refuses to write over what is measured with.
fn refuse_overwriting(args: &EvalArgs) -> Result<()> {
    let exported = args.trec_out.iter().flat_map(|folder| export::TREC_FILES.map(|name| folder.join(name)));
    let files = args.source.files().read("--queries", [&args.queries]).read("--config", &args.config);
    let files = files.read("--run", args.run.iter().map(|(_, path)| path)).read("--baseline", &args.baseline);
    let files = files.read("--replay", args.choose.replay()).written("--record", args.choose.record());
    let files = files.written("--record", args.choose.record().map(|path| partial(path)));
    files.written("--trec-out", exported).written("--run-out", &args.run_out).page(&args.html).check()
}

/// Refuses what cannot be written, before anything is measured.
fn refuse_unwritable(args: &EvalArgs) -> Result<()> {
    args.trec_out.iter().try_for_each(|folder| writable_in("--trec-out", folder, export::TREC_FILES))?;
    args.run_out.iter().try_for_each(|path| writable("--run-out", path))?;
    args.html.iter().try_for_each(|path| writable("--html", path))
}

/// Every engine that was asked for, in the order of the help.
fn measure(args: &EvalArgs, collection: &Collection) -> Result<Ran> {
    let mut ran = Ran::default();
    let hidden = hidden(args);
    for asked in asked(args)? {
        ran.add(match asked {
            Asked::Router(engine) => {
                let (name, origin) = (engine.name().to_owned(), Evidence::Computed);
                let evaluation = evaluate(collection, &engine, PromptTokens::Count);
                let failed = |error: EvalError| {
                    Absent::of(&name, Role::Engine(origin), &ProcessError::Failed(error.to_string()))
                };
                let measured = |evaluation| Measured { name: name.clone(), origin, process: None, evaluation };
                evaluation.map(measured).map_err(failed)
            }
            Asked::Program(rival, checkout) => {
                let program = std::env::current_exe().context("this program's own file")?;
                let hidden = [hidden.clone(), checkout.judgements()].concat();
                let place = RivalPlace { root: &checkout.path(""), program: &program, hidden: &hidden };
                of_program(&rival.name, rival.engine(&place), collection)
            }
        });
    }
    for (name, command, door) in programs(args)? {
        let engine = |engine| ProcessEngine { door, hidden: hidden.clone(), ..engine };
        ran.add(of_program(name, ProcessEngine::parse(command).map(engine), collection));
    }
    for (name, path) in &args.run {
        let text = fs::read_to_string(path).map_err(ReadError::at(Path::new(path)))?;
        let imported = read_run(Path::new(path), &text, collection)?;
        let evaluation = evaluate_imported(collection, imported, PromptTokens::Count)?;
        ran.add(Ok(Measured { name: name.clone(), origin: Evidence::Imported, process: None, evaluation }));
    }
    Ok(ran)
}

/// What no program may read: the queries with the tools that they need, and files of earlier measurements.
fn hidden(args: &EvalArgs) -> Vec<PathBuf> {
    let recorded = args.queries.with_file_name(RESULTS_FILE);
    let written = [&args.baseline, &args.run_out, &args.trec_out, &args.html].into_iter().flatten();
    let answers = [args.choose.record(), args.choose.replay()].into_iter().flatten();
    let part = args.choose.record().map(|path| partial(path));
    let files = [&args.queries, &recorded].into_iter().chain(written).chain(answers).chain(&part);
    let files: Vec<&Path> = files.map(PathBuf::as_path).collect();
    judgements_around(&files)
}

/// Programs with their doors: processes, then the gateway.
fn programs(args: &EvalArgs) -> Result<Vec<(&String, &String, Door)>> {
    let lines = args.process.iter().map(|(name, command)| (name, command, Door::Lines));
    let mut programs: Vec<_> = lines.collect();
    if let Some((name, command)) = &args.mcp {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let tool = SearchTool {
            name: text(&args.mcp_search_tool),
            argument: text(&args.mcp_query_argument),
            ids: text(&args.mcp_ids),
            player: std::env::current_exe().context("this program's own file")?,
        };
        programs.push((name, command, Door::Mcp(tool)));
    }
    Ok(programs)
}

/// What a program gives.
fn of_program(
    name: &str,
    engine: Result<ProcessEngine, ProcessError>,
    collection: &Collection,
) -> Result<Measured, Absent> {
    let measured = engine.and_then(|engine| engine.run(collection)).and_then(|run| {
        let evaluation = evaluate_imported(collection, run.rankings, PromptTokens::Count);
        let evaluation = evaluation.map_err(|error| ProcessError::Failed(error.to_string()))?;
        Ok(Measured { name: name.to_owned(), origin: Evidence::Process, process: Some(run.report), evaluation })
    });
    measured.map_err(|error| Absent::of(name, Role::Engine(Evidence::Process), &error))
}

/// An engine that was asked for by name or as a configuration.
enum Asked {
    Router(RouterEngine),
    /// A program, with the checkout that it is in.
    Program(Rival, Workspace),
}

/// The engines and configurations that were asked for; the default when nothing was.
fn asked(args: &EvalArgs) -> Result<Vec<Asked>> {
    let mut asked = args.engine.iter().map(|name| named_engine(name)).collect::<Result<Vec<_>>>()?;
    for path in &args.config {
        asked.push(Asked::Router(RouterEngine::new(&path.display().to_string(), read_config(Some(path))?)));
    }
    if asked.is_empty() && args.process.is_empty() && args.mcp.is_none() && args.run.is_empty() {
        asked.push(Asked::Router(RouterEngine::new("default", read_config(None)?)));
    }
    Ok(asked)
}

/// An engine of this program, or a program of the checkout that is here.
fn named_engine(name: &str) -> Result<Asked> {
    let unknown = match matrix::builtin_engine(name) {
        Ok(engine) => return Ok(Asked::Router(engine)),
        Err(unknown) => unknown,
    };
    let checkout = Workspace::find(None, None).ok();
    let programs = match &checkout {
        Some(checkout) => checkout.matrix()?.rivals,
        None => matrix::builtin_programs()?,
    };
    let others = programs.iter().filter(|rival| matrix::builtin_engine(&rival.name).is_err());
    let names: Vec<&str> = others.map(|rival| rival.name.as_str()).collect();
    match (programs.iter().find(|rival| rival.name == name), checkout) {
        (Some(rival), Some(checkout)) => Ok(Asked::Program(rival.clone(), checkout)),
        (Some(_), None) => bail!(
            "`{name}` is a program of scenarios/engines.toml, which is in a contextweaver checkout: run this inside one, or \
             start it with --process"
        ),
        (None, _) => bail!("{unknown}; and in a checkout the programs {}", names.join(", ")),
    }
}

/// The report of everything that was measured.
fn report(args: &EvalArgs, collection: &Collection, measured: &[Measured], absent: &[Absent]) -> Result<String> {
    let ranked =
        measured.iter().map(|one| Ranked { engine: &one.name, evidence: one.origin, evaluation: &one.evaluation });
    let name = args.source.catalog.first().and_then(|path| path.file_stem()).unwrap_or_default().to_string_lossy();
    let failed = absent.iter().map(|one| Failed { engine: &one.name, reason: &one.reason });
    let section = Section {
        counts: true,
        name: &name,
        collection,
        ranked: ranked.collect(),
        recorded: Vec::new(),
        failed: failed.collect(),
        command: command(args),
    };
    Ok(html::render(&format!("Routing on {name}"), &[section], &[])?)
}

/// The command that measures the same again, for a shell.
fn command(args: &EvalArgs) -> String {
    let path = |name: &str, path: &Path| (name.to_owned(), path.display().to_string());
    let pair = |name: &str, (left, right): &(String, String)| (name.to_owned(), format!("{left}={right}"));
    let mut words: Vec<(String, String)> = args.source.catalog.iter().map(|one| path("--catalog", one)).collect();
    words.push(path("--queries", &args.queries));
    words.extend(args.engine.iter().map(|one| ("--engine".to_owned(), one.clone())));
    words.extend(args.config.iter().map(|one| path("--config", one)));
    words.extend(args.process.iter().map(|one| pair("--process", one)));
    words.extend(args.mcp.iter().map(|one| pair("--mcp", one)));
    let of_mcp = [
        ("--mcp-search-tool", &args.mcp_search_tool),
        ("--mcp-query-argument", &args.mcp_query_argument),
        ("--mcp-ids", &args.mcp_ids),
    ];
    words.extend(of_mcp.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))));
    words.extend(args.run.iter().map(|one| pair("--run", one)));
    let words: Vec<String> = words.iter().map(|(name, value)| format!("{name} {}", quoted(value))).collect();
    format!("contextweaver bench eval {}{}", words.join(" "), if args.source.lenient { " --lenient" } else { "" })
}

fn entry<'a>(args: &EvalArgs, collection: &'a Collection, one: &'a Measured) -> Entry<'a> {
    let outcomes = collection.queries.iter().zip(&one.evaluation.outcomes);
    Entry {
        configuration: &one.name,
        origin: one.origin,
        process: one.process.as_ref(),
        facts: &one.evaluation.facts,
        verdict: one.evaluation.facts.versus_control.as_ref().map(Standing::of),
        ranks: outcomes
            .filter_map(|(query, outcome)| Some((query.id.as_str(), outcome.as_ref()?.found.ranks())))
            .collect(),
        failures: args.failures.then(|| Failure::all(collection, &one.evaluation)),
    }
}

impl Absent {
    fn entry(&self) -> FailedEntry<'_> {
        FailedEntry { configuration: &self.name, origin: self.role.name(), word: self.word, reason: &self.reason }
    }
}

impl Role {
    /// The word in tables and in JSON.
    fn name(self) -> &'static str {
        match self {
            Self::Engine(origin) => origin.name(),
            Self::Chooser => "chooser",
        }
    }
}

fn wanted(collection: &Collection) -> BTreeMap<&str, Vec<&str>> {
    let answerable = collection.queries.iter().filter(|query| !query.groups.is_empty());
    let tools = answerable.map(|query| {
        let first = query.groups.iter().filter_map(|group| group.first());
        (query.id.as_str(), first.map(|item| collection.tool_handle(*item)).collect())
    });
    tools.collect()
}

/// One row for each engine: every measure, the interval of recall@5, and the difference of it from the first engine.
/// An engine that gave nothing has the word for it as its verdict.
fn table(measured: &[Measured], absent: &[Absent], number: impl Fn(f64) -> String) -> Table {
    let measures = Measure::ALL.map(|measure| measure.to_string());
    let front = ["engine", "origin", "tools", "queries"].map(str::to_owned);
    let back = ["recall@5 low", "recall@5 high", "difference", "difference low", "difference high", "verdict"];
    let titles: Vec<String> = front.into_iter().chain(measures.clone()).chain(back.map(str::to_owned)).collect();
    let columns = titles.len();
    let mut table = Table::new(titles).words(&["origin", "verdict"]);
    for Measured { name, origin, evaluation, .. } in measured {
        let facts = &evaluation.facts;
        let mut row =
            vec![name.clone(), origin.name().to_owned(), facts.tools.to_string(), facts.answerable.to_string()];
        row.extend(measures.iter().map(|one| facts.measures.get(one).map_or_else(String::new, |one| number(one.mean))));
        let recall = facts.measures.get(&Measure::RECALL_5.to_string());
        row.extend(recall.map_or_else(|| vec![String::new(); 2], |one| vec![number(one.low), number(one.high)]));
        if let Some(paired) = &facts.versus_control {
            let Estimate { mean, low, high } = paired.difference;
            row.extend([mean, low, high].map(&number));
            row.push(Standing::of(paired).to_string());
        }
        table.row(row);
    }
    for one in absent {
        let mut row = vec![one.name.clone(), one.role.name().to_owned()];
        row.resize(columns - 1, String::new());
        row.push(one.word.to_owned());
        table.row(row);
    }
    table
}

fn print_one(out: &mut dyn Write, one: &Measured) -> Result<()> {
    match (one.origin, &one.process) {
        (Evidence::Computed, _) => writeln!(out, "configuration: {}", one.name)?,
        (Evidence::Imported | Evidence::Recorded, _) => writeln!(out, "run: {} (imported, not run here)", one.name)?,
        (Evidence::Process, report) => {
            let version = report.as_ref().map(|report| format!("{} {}", report.name, report.version));
            writeln!(out, "process: {} ({})", one.name, version.unwrap_or_default())?;
        }
    }
    write!(out, "{}", facts(&one.evaluation.facts))?;
    if let Some(report) = &one.process {
        let peak = report.peak_kib.map_or_else(|| "unknown".to_owned(), |kib| format!("{} MiB", kib / 1024));
        let own = report.own_p50_us.map_or_else(String::new, |us| format!(" ({us} us by its own clock)"));
        writeln!(
            out,
            "\nstarted in {} ms, loaded in {} ms; a query takes {} us{own}, 95th percentile {} us; of that the pipe {} us; \
             at most {peak}",
            report.start_us / 1000,
            report.load_us / 1000,
            report.route_p50_us,
            report.route_p95_us,
            report.ping_us,
        )?;
        writeln!(out, "{}", report.hiding.sentence())?;
        if report.order_changes > 0 {
            let (changes, asked) = (report.order_changes, report.order_asked);
            writeln!(out, "{changes} of {asked} answers changed with the order of the catalog")?;
        }
    }
    Ok(())
}

fn read_baseline(path: &Path) -> Result<Evaluations> {
    let baseline = read_base(path)?;
    if baseline.evaluations.first().is_some_and(|first| first.ranks.is_empty()) {
        bail!("{}: none of its queries has a relevant tool, so there is nothing to compare", path.display());
    }
    Ok(baseline)
}
