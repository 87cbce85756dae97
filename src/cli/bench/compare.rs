//! `bench compare`: two configurations side by side, case by case.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use serde::Serialize;

use super::Place;
use crate::cli::{Format, Outcome, print_json};
use contextweaver_bench::eval::context::sweep::{self, Candidate};
use contextweaver_bench::eval::engine::RouterEngine;
use contextweaver_bench::eval::record::{Origin, Paired};
use contextweaver_bench::eval::run::{PromptTokens, against, evaluate};
use contextweaver_bench::report;
use contextweaver_context::ContextConfig;
use contextweaver_context::summary::StructureSummarizer;
use contextweaver_routing::RoutingConfig;

pub(super) const EXAMPLE: &str = "\
Both files are configurations (TOML) of the same engine, which is told by their fields.

Example:
  contextweaver bench compare default.toml cheaper.toml";

/// Compare two configurations case by case
#[derive(Debug, Args)]
pub(in crate::cli) struct CompareArgs {
    #[command(flatten)]
    place: Place,
    /// The configuration to compare with
    #[arg(value_name = "CONFIG_A")]
    first: PathBuf,
    /// The configuration that is judged
    #[arg(value_name = "CONFIG_B")]
    second: PathBuf,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The configurations of two files.
enum Pair {
    Context(Box<[ContextConfig; 2]>),
    Routing(Box<[RoutingConfig; 2]>),
}

pub(super) fn run(args: &CompareArgs, out: &mut dyn Write) -> Result<Outcome> {
    match read(&args.first, &args.second)? {
        Pair::Context(configs) => context(args, *configs, out),
        Pair::Routing(configs) => routing(args, *configs, out),
    }
}

fn read(first: &Path, second: &Path) -> Result<Pair> {
    let text = |path: &Path| fs::read_to_string(path).with_context(|| path.display().to_string());
    let (left, right) = (text(first)?, text(second)?);
    let context = [&left, &right].map(|text| toml::from_str::<ContextConfig>(text));
    let routing = [&left, &right].map(|text| toml::from_str::<RoutingConfig>(text));
    match (context, routing) {
        ([Ok(left), Ok(right)], _) => Ok(Pair::Context(Box::new([left, right]))),
        (_, [Ok(left), Ok(right)]) => {
            left.validate().with_context(|| first.display().to_string())?;
            right.validate().with_context(|| second.display().to_string())?;
            Ok(Pair::Routing(Box::new([left, right])))
        }
        ([context, _], [routing, _]) if context.is_err() && routing.is_err() => {
            let reasons = context.err().into_iter().chain(routing.err()).map(|error| error.message().to_owned());
            let reasons: Vec<String> = reasons.collect();
            bail!("{}: no configuration of either engine: {}", first.display(), reasons.join("; "))
        }
        _ => bail!(
            "{} and {} are not configurations of the same engine; compare two of the context engine or two of the router",
            first.display(),
            second.display()
        ),
    }
}

fn context(args: &CompareArgs, configs: [ContextConfig; 2], out: &mut dyn Write) -> Result<Outcome> {
    let workspace = args.place.workspace()?;
    let all = workspace.scenarios()?;
    let mut scenarios = Vec::new();
    for scenario in all.iter().filter(|scenario| scenario.is_present()) {
        let (_, conversation) = scenario.log()?;
        scenarios.push((scenario, conversation));
    }
    let [first, second] = configs;
    let candidates = [("A", first), ("B", second)].map(|(name, config)| Candidate { name: name.to_owned(), config });
    let outcomes =
        sweep::sweep(&candidates, &scenarios, &StructureSummarizer, || ()).map_err(|error| anyhow!(error))?;
    match args.format {
        Format::Json => print_json(out, "bench compare", &outcomes)?,
        Format::Text => write!(out, "{}", report::trials::side_by_side_trials(&outcomes))?,
    }
    Ok(Outcome::Ok)
}

#[derive(Serialize)]
struct Case {
    case: String,
    a: f64,
    b: f64,
    difference: Paired,
}

fn routing(args: &CompareArgs, configs: [RoutingConfig; 2], out: &mut dyn Write) -> Result<Outcome> {
    let workspace = args.place.workspace()?;
    let matrix = workspace.matrix()?;
    let cases: Vec<_> = matrix.cases.iter().filter(|case| case.growth.is_none()).cloned().collect();
    let collections = workspace.collections(&cases)?;
    let [first, second] = configs;
    let (first, second) = (RouterEngine::new("A", first), RouterEngine::new("B", second));
    let mut rows = Vec::new();
    for case in &cases {
        let Some(collection) = collections.get(&case.collection) else { continue };
        let evaluated = |engine: &RouterEngine| {
            let evaluated = evaluate(collection, engine, PromptTokens::Skip);
            evaluated.map(|one| one.recall_at_5).with_context(|| case.id.clone())
        };
        let (left, right) = (evaluated(&first)?, evaluated(&second)?);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let (a, b) = (mean(&left), mean(&right));
        rows.push(Case { case: case.id.clone(), a, b, difference: against("A", &left, &right) });
    }
    if args.format == Format::Json {
        print_json(out, "bench compare", &rows)?;
        return Ok(Outcome::Ok);
    }
    let embedded = |id: &str| cases.iter().any(|case| case.id == id && case.origin == Origin::Embedded);
    writeln!(out, "{:<28} {:>6} {:>6}  B - A (recall@5)", "case", "A", "B")?;
    for row in &rows {
        let mark = if embedded(&row.case) { "" } else { "  (public)" };
        let difference = report::trials::paired(&row.difference);
        writeln!(out, "{:<28} {:>6.3} {:>6.3}  {difference}{mark}", row.case, row.a, row.b)?;
    }
    Ok(Outcome::Ok)
}
