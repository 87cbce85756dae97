//! `bench compare`: what changed from base to head, with a verdict. Results, runs, logs and what is recorded of engines in
//! other programs are read; our engines and configurations are measured.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;

use super::Place;
use crate::cli::source::CatalogSource;
use crate::cli::{Format, Outcome, print_json};
use contextweaver_bench::comparison::outcomes::{ItemSet, Outcomes};
use contextweaver_bench::comparison::read::{self, Part};
use contextweaver_bench::comparison::{self, Comparison};
use contextweaver_bench::eval::collection::Collection;
use contextweaver_bench::eval::context::scenario::Scenario;
use contextweaver_bench::eval::context::sweep::{self, Candidate};
use contextweaver_bench::eval::decision::{MARGIN, Word};
use contextweaver_bench::eval::engine::{Engine, RouterEngine};
use contextweaver_bench::eval::imported::read_run;
use contextweaver_bench::eval::matrix;
use contextweaver_bench::eval::measure::Measure;
use contextweaver_bench::eval::rival::RESULTS_FILE;
use contextweaver_bench::eval::run::{PromptTokens, evaluate, evaluate_imported};
use contextweaver_bench::eval::workspace::Workspace;
use contextweaver_bench::own::{self, Home};
use contextweaver_bench::report;
use contextweaver_context::ContextConfig;
use contextweaver_context::adapters::Conversation;
use contextweaver_context::summary::StructureSummarizer;
use contextweaver_core::files::ReadError;
use contextweaver_routing::RoutingConfig;

pub(super) const EXAMPLE: &str = "\
BASE and HEAD are each one of
  a results file      scorecard/results/default.json, the results.json of a
                      workspace, or what `bench eval --format json` wrote
  a revision of one   main:scorecard/results/default.json
  an engine           default, lexical, bm25 …, or a program of
                      scenarios/engines.toml, whose recorded results are read
  a configuration     a TOML file of the router; two of the context engine are
                      compared scenario by scenario
  a run file          TREC or tab-separated, with --catalog and --queries
  a log               of inspect-ai, promptfoo, lm-eval or ir_measures, with a
                      score for each item

A higher score of a log counts as better; where lower is better, such as a perplexity,
name HEAD first.

For a results file with several engines, add a name: scorecard/results/rivals.json#minilm, gate/results.json#bm25.
Without one, a file of `bench eval` or of a workspace gives the engine that the other side names. For a log of lm-eval
with several filters, add the name of one: samples.jsonl#strict-match.

Engines and configurations are measured on every collection of the checkout, on the catalog of the workspace, or on --catalog
and --queries. Next to a third-party program, our engine is read from the same records, and the output says
`recorded`.

Two configurations of the context engine, or one and `default`, are compared by what they keep. It takes six scenarios
that lose to show that HEAD has regressed; with fewer it is inconclusive.

Examples:
  contextweaver bench compare main:scorecard/results/default.json \\
    scorecard/results/default.json
  contextweaver bench compare lexical default
  contextweaver bench compare minilm default
  contextweaver bench compare --catalog tools.json --queries queries.jsonl base.tsv head.tsv
  contextweaver bench compare --root gate default routing.toml
  contextweaver bench compare before.eval after.eval --measure accuracy

Exit codes: 0 not regressed, 1 regressed, 2 error or not comparable.";

/// Compare two results, engines or configurations, with a verdict
#[derive(Debug, Args)]
pub(in crate::cli) struct CompareArgs {
    #[command(flatten)]
    place: Place,
    /// What to compare with
    #[arg(value_name = "BASE")]
    base: String,
    /// What to judge
    #[arg(value_name = "HEAD")]
    head: String,
    /// The measure that decides [default: recall@5]; for a log, the name of a score [default: its first]
    #[arg(long, value_name = "NAME")]
    measure: Option<String>,
    /// Compare the queries that both have, even if the catalog or the queries changed
    #[arg(long)]
    changed_inputs: bool,
    /// Catalog file, or a folder with one file per server; may be repeated
    #[arg(long, value_name = "PATH", requires = "queries")]
    catalog: Vec<PathBuf>,
    /// Queries, one JSON object per line
    #[arg(long, value_name = "FILE", requires = "catalog")]
    queries: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// One of the two, before anything is measured.
enum Side {
    Context(Box<ContextConfig>),
    Engine(Box<RouterEngine>),
    File { name: PathBuf, bytes: Vec<u8>, engine: Option<String> },
}

impl Side {
    /// The engine that it names.
    fn engine(&self) -> Option<String> {
        match self {
            Self::Context(_) => None,
            Self::Engine(engine) => Some(engine.name().to_owned()),
            Self::File { engine, .. } => engine.clone(),
        }
    }

    /// Whether it is a configuration of our router, as far as a name tells.
    fn is_ours(&self) -> bool {
        match self {
            Self::Context(_) => false,
            Self::Engine(_) | Self::File { engine: None, .. } => true,
            Self::File { engine: Some(name), .. } => matrix::builtin_engine(name).is_ok(),
        }
    }
}

/// Whether one of the sets is a collection on which the default's constants were chosen: those of the checkout's scenarios.
fn is_in_sample(args: &CompareArgs, comparison: &Comparison) -> Result<bool> {
    let Some(checkout) = checkout(args).filter(|_| args.queries.is_none()) else { return Ok(false) };
    let matrix = checkout.matrix()?;
    let cases = matrix.plain_cases();
    Ok(comparison.sets.iter().any(|set| cases.contains_key(set.set.as_str())))
}

/// What `bench run --engines` left in the checkout.
struct Records {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Records {
    /// Where there are some: in a checkout, and where nothing else is asked for.
    fn of(args: &CompareArgs) -> Option<Self> {
        let workspace = checkout(args).filter(|_| args.queries.is_none())?;
        let path = workspace.path("scorecard/results").join(RESULTS_FILE);
        let bytes = fs::read(&path).ok()?;
        Some(Self { path, bytes })
    }

    /// What is recorded of an engine.
    fn engine(&self, name: &str) -> Result<Side, read::ReadError> {
        read::read(&self.path, &self.bytes, Part { engine: Some(name), ..Part::default() })?;
        Ok(Side::File { name: self.path.clone(), bytes: self.bytes.clone(), engine: Some(name.to_owned()) })
    }
}

pub(super) fn run(args: &CompareArgs, out: &mut dyn Write) -> Result<Outcome> {
    let (base, head) = sides(args)?;
    if let (Side::Context(base), Side::Context(head)) = (&base, &head) {
        return context(args, [base.as_ref().clone(), head.as_ref().clone()], out);
    }
    let collections = collections(args)?;
    let is_ours = [&base, &head].map(Side::is_ours) != [false, false];
    let (of_base, of_head) = (base.engine(), head.engine());
    let base = outcomes(args, &collections, base, of_head.as_deref())?;
    let head = outcomes(args, &collections, head, of_base.as_deref())?;
    // A name that is no measure is the name of a score, which reading has looked for.
    let measure = match (&args.measure, &head.score) {
        (Some(name), None) => Measure::named(name).map_err(|_| {
            anyhow!("no measure `{name}`; there are {}", Measure::ALL.map(|measure| measure.to_string()).join(", "))
        })?,
        (Some(name), Some(_)) => Measure::named(name).unwrap_or(Measure::RECALL_5),
        (None, _) => Measure::RECALL_5,
    };
    let mut comparison = comparison::compare(&base, &head, measure, margin(args), args.changed_inputs)?;
    comparison.in_sample = is_ours && is_in_sample(args, &comparison)?;
    match args.format {
        Format::Json => print_json(out, "bench compare", &comparison)?,
        Format::Text => write!(out, "{}", comparison::text::plain(&comparison))?,
    }
    match comparison.verdict.word {
        Word::Regressed => Ok(Outcome::Drift),
        Word::NotComparable => bail!(
            "the inputs differ: {}; measure both on the same inputs, or compare what both have with --changed-inputs",
            comparison.differing_inputs.join("; ")
        ),
        _ => Ok(Outcome::Ok),
    }
}

/// The margin of the workspace whose catalog is compared on, else the usual one.
fn margin(args: &CompareArgs) -> f64 {
    match args.place.home() {
        Ok(Home::Own(own)) if args.queries.is_none() => own.limits.margin,
        _ => MARGIN,
    }
}

/// What both arguments name. An engine of ours beside the records of another is taken from them too, where it is there.
fn sides(args: &CompareArgs) -> Result<(Side, Side)> {
    let (base, head) = match (side(args, &args.base)?, side(args, &args.head)?) {
        (Side::Engine(own), Side::Context(head)) if own.name() == DEFAULT => (default_context(), Side::Context(head)),
        (Side::Context(base), Side::Engine(own)) if own.name() == DEFAULT => (Side::Context(base), default_context()),
        both => both,
    };
    let beside = |own: &Side, other: &Side| match (own, other) {
        (Side::Engine(own), Side::File { name, bytes, engine: Some(_) }) => {
            let part = Part { engine: Some(own.name()), ..Part::default() };
            let is_recorded = read::read(name, bytes, part).is_ok_and(|outcomes| outcomes.is_recorded);
            let engine = Some(own.name().to_owned());
            is_recorded.then(|| Side::File { name: name.clone(), bytes: bytes.clone(), engine })
        }
        _ => None,
    };
    let (left, right) = (beside(&base, &head), beside(&head, &base));
    Ok((left.unwrap_or(base), right.unwrap_or(head)))
}

/// The name of what both engines do without a configuration.
const DEFAULT: &str = "default";

fn default_context() -> Side {
    Side::Context(Box::default())
}

/// A file and what stands behind its `#`. Names of files and of engines may hold a `#` too, so the longest part that is a
/// file is one.
fn file_and_engine(argument: &str) -> (&str, Option<&str>) {
    if Path::new(argument).is_file() {
        return (argument, None);
    }
    let mut cuts = argument.rmatch_indices('#').map(|(at, _)| (&argument[..at], &argument[at + 1..]));
    let of_file = cuts.clone().find(|(file, _)| Path::new(file).is_file());
    of_file.or_else(|| cuts.next()).map_or((argument, None), |(file, engine)| (file, Some(engine)))
}

/// What an argument names: a file, a revision of one, or an engine.
fn side(args: &CompareArgs, argument: &str) -> Result<Side> {
    let (argument, engine) = file_and_engine(argument);
    let unnamed = || bail!("{argument}: there is no name after `#`; name an engine of the file, or leave out the `#`");
    let engine = match engine {
        Some("") => return unnamed(),
        Some(name) => Some(name.to_owned()),
        None => None,
    };
    let path = Path::new(argument);
    if path.is_file() && path.extension().is_none_or(|ending| ending != "toml") {
        let bytes = fs::read(path).map_err(ReadError::at(path))?;
        return Ok(Side::File { name: path.to_owned(), bytes, engine });
    }
    let engines = matrix::builtin_engines()?;
    let built_in = engines.iter().find(|engine| engine.name() == argument);
    if !path.is_file() && built_in.is_none() && argument.contains(':') {
        return Ok(Side::File { name: path.to_owned(), bytes: revision(args, argument)?, engine });
    }
    if let Some(engine) = engine {
        bail!("{argument}: it is not a results file, so `#{engine}` names nothing; leave it out");
    }
    if path.is_file() {
        return configuration(path, &fs::read(path).map_err(ReadError::at(path))?);
    }
    if let Some(engine) = built_in {
        return Ok(Side::Engine(Box::new(engine.clone())));
    }
    let matrix = checkout(args).map(|workspace| workspace.matrix()).transpose()?;
    let programs: Vec<String> = matrix.into_iter().flat_map(|matrix| matrix.rivals).map(|rival| rival.name).collect();
    if programs.iter().any(|name| name == argument) {
        if args.queries.is_some() {
            bail!(
                "{argument}: a program of scenarios/engines.toml is recorded on the collections of the checkout; leave out \
                 --catalog and --queries, or measure it with `bench eval --process` and name its output here"
            );
        }
        let record = format!("`contextweaver bench run --engines {argument}` records it");
        let records = Records::of(args).with_context(|| format!("{argument}: nothing is recorded for it; {record}"))?;
        return records.engine(argument).with_context(|| format!("{argument}: {record}"));
    }
    if path.is_dir() {
        bail!("{argument}: it is a folder; name a file in it, such as {}", path.join(own::RESULTS_FILE).display());
    }
    let own = engines.iter().map(|engine| engine.name());
    let others = programs.iter().map(String::as_str).filter(|name| engines.iter().all(|engine| engine.name() != *name));
    let names: Vec<&str> = own.chain(others).collect();
    bail!("{argument}: neither a file, nor REVISION:FILE, nor an engine ({})", names.join(", "))
}

fn configuration(path: &Path, bytes: &[u8]) -> Result<Side> {
    let name = path.display().to_string();
    let text = std::str::from_utf8(bytes).with_context(|| name.clone())?;
    match (toml::from_str::<RoutingConfig>(text), toml::from_str::<ContextConfig>(text)) {
        (Ok(config), _) => {
            config.validate().with_context(|| name.clone())?;
            Ok(Side::Engine(Box::new(RouterEngine::new(&name, config))))
        }
        (_, Ok(config)) => {
            config.validate().with_context(|| name.clone())?;
            Ok(Side::Context(Box::new(config)))
        }
        (Err(routing), Err(context)) => bail!(
            "{name}: not a configuration of either engine; for the router: {}; for the context engine: {}",
            routing.message(),
            context.message()
        ),
    }
}

/// The content of `REVISION:FILE` in the repository of the checkout or of the working folder.
fn revision(args: &CompareArgs, argument: &str) -> Result<Vec<u8>> {
    let folder = args.place.root.clone().unwrap_or_else(|| PathBuf::from("."));
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["cat-file", "blob", "--end-of-options", argument]);
    let shown = git.output().context("git cannot be started; it is needed for REVISION:FILE")?;
    if !shown.status.success() {
        bail!("{argument}: {}", String::from_utf8_lossy(&shown.stderr).trim());
    }
    Ok(shown.stdout)
}

/// The checkout, where that is what there is.
fn checkout(args: &CompareArgs) -> Option<Workspace> {
    match args.place.home() {
        Ok(Home::Checkout(workspace)) => Some(workspace),
        _ => None,
    }
}

/// What engines are measured on, and what names the queries of results: the files of the arguments, the catalog of the
/// workspace, or the collections of the checkout; none where there is neither.
fn collections(args: &CompareArgs) -> Result<Vec<Arc<Collection>>> {
    if let Some(queries) = &args.queries {
        let source = CatalogSource { catalog: args.catalog.clone(), lenient: false };
        return Ok(vec![Arc::new(source.collection(queries)?)]);
    }
    let workspace = match args.place.home() {
        Ok(Home::Own(own)) => return Ok(vec![Arc::new(own.collection()?)]),
        Ok(Home::Checkout(workspace)) => workspace,
        Err(_) => return Ok(Vec::new()),
    };
    let matrix = workspace.matrix()?;
    let cases: Vec<_> = matrix.cases.iter().filter(|case| case.growth.is_none()).cloned().collect();
    let found = workspace.collections(&cases)?;
    Ok(cases.iter().filter_map(|case| found.get(&case.collection).cloned()).collect())
}

/// What a side gave. `beside` is the engine that the other side names.
fn outcomes(args: &CompareArgs, collections: &[Arc<Collection>], side: Side, beside: Option<&str>) -> Result<Outcomes> {
    match side {
        Side::Context(_) => {
            bail!("a configuration of the context engine is compared with another one, or with `default`")
        }
        Side::Engine(engine) => measured(args, &engine, collections),
        Side::File { name, bytes, engine } => {
            if let (Some(_), [collection]) = (&args.queries, collections)
                && serde_json::from_slice::<serde_json::Value>(&bytes).is_err()
            {
                if let Some(engine) = engine {
                    bail!("{}: a run file holds one engine; leave out `#{engine}`", name.display());
                }
                let text = std::str::from_utf8(&bytes).with_context(|| name.display().to_string())?;
                let evaluation = evaluate_imported(collection, read_run(&name, text, collection)?, PromptTokens::Skip)?;
                let set = ItemSet::of(collection, &evaluation.facts.ranks);
                let sets = [(collection.name.clone(), set)].into();
                return Ok(Outcomes { name: name.display().to_string(), sets, ..Outcomes::default() });
            }
            let part = Part { score: args.measure.as_deref(), engine: engine.as_deref(), beside };
            let mut outcomes = read::read(&name, &bytes, part)?;
            for collection in collections {
                if let Some(set) = outcomes.sets.remove(&collection.name) {
                    outcomes.sets.insert(collection.name.clone(), set.named_by(collection));
                }
            }
            Ok(outcomes)
        }
    }
}

/// The scenarios of the context engine that are on this machine, with their conversations; one at least.
pub(super) fn scenarios_here(all: &[Scenario]) -> Result<Vec<(&Scenario, Conversation)>> {
    let mut here = Vec::new();
    for scenario in all.iter().filter(|scenario| scenario.is_present()) {
        let (_, conversation) = scenario.log()?;
        here.push((scenario, conversation));
    }
    if here.is_empty() {
        bail!("no scenario of scenarios/context is on this machine, so there is nothing to measure on");
    }
    Ok(here)
}

fn measured(args: &CompareArgs, engine: &RouterEngine, collections: &[Arc<Collection>]) -> Result<Outcomes> {
    if collections.is_empty() {
        let nothing = format!("`{}` has nothing to be measured on; name --catalog and --queries", engine.name());
        args.place.home().with_context(|| nothing.clone())?;
        bail!("{nothing}");
    }
    let mut outcomes = Outcomes { name: engine.name().to_owned(), ..Outcomes::default() };
    for collection in collections {
        let evaluation = evaluate(collection, engine, PromptTokens::Skip);
        let evaluation = evaluation.with_context(|| format!("{} on {}", engine.name(), collection.name))?;
        outcomes.sets.insert(collection.name.clone(), ItemSet::of(collection, &evaluation.facts.ranks));
    }
    Ok(outcomes)
}

fn context(args: &CompareArgs, configs: [ContextConfig; 2], out: &mut dyn Write) -> Result<Outcome> {
    let options = [
        ("--measure", args.measure.is_some()),
        ("--changed-inputs", args.changed_inputs),
        ("--catalog and --queries", args.queries.is_some()),
    ];
    if let Some((option, _)) = options.iter().find(|(_, is_given)| *is_given) {
        bail!(
            "configurations of the context engine are compared by what they keep of the context scenarios; leave out {option}"
        );
    }
    let Home::Checkout(workspace) = args.place.home()? else {
        bail!("a workspace has a catalog and no context scenarios; name a contextweaver checkout with --root")
    };
    let all = workspace.scenarios()?;
    let scenarios = scenarios_here(&all)?;
    let [first, second] = configs;
    let candidate = |(name, config): (&str, _)| Candidate { name: name.to_owned(), config, numbers: Vec::new() };
    let candidates = [("A", first), ("B", second)].map(candidate);
    let outcomes =
        sweep::sweep(&candidates, &scenarios, &StructureSummarizer, || ()).map_err(|error| anyhow!(error))?;
    let [base, head] = outcomes.as_slice() else { bail!("two configurations give two outcomes") };
    let verdict = sweep::verdict(base, head);
    match args.format {
        Format::Json => {
            let found = serde_json::json!({ "in_sample": true, "verdict": verdict, "configurations": outcomes });
            print_json(out, "bench compare", &found)?;
        }
        Format::Text => write!(out, "{}", report::trials::side_by_side_trials(&outcomes, &verdict))?,
    }
    Ok(if verdict.word == Word::Regressed { Outcome::Drift } else { Outcome::Ok })
}
