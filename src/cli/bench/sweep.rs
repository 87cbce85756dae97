//! `bench sweep`: a grid of configurations, and which of them are worth having.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};

use super::compare::scenarios_here;
use super::run::progress;
use super::{Place, own};
use crate::cli::{Format, Outcome, note, print_json};
use contextweaver_bench::eval::collection::Collection;
use contextweaver_bench::eval::context::sweep::{self, Swept};
use contextweaver_bench::eval::sweep as routing;
use contextweaver_bench::eval::vary::Vary;
use contextweaver_bench::eval::workspace::Workspace;
use contextweaver_bench::own::Home;
use contextweaver_bench::report;
use contextweaver_bench::report::number::{count, share};
use contextweaver_context::summary::StructureSummarizer;

pub(super) const EXAMPLE: &str = "\
Every configuration is compared with the default, case by case. `better` and
`worse` mean that a sign-flip test finds a difference at the 5 % level,
after Holm's correction for the number of configurations, and that its interval
excludes zero; `same` that no answer differs or the interval stays within one
point, whatever the test finds. One measure of all configurations is corrected together: over the
scenarios, over the collections, or on one collection. In JSON `p` is the
probability before the correction and `p_holm` that after it. The figures are
not corrected: the best of many looks better than it is.

Parameters of --vary; scorecard/sweep.md has the values that the grid tries:
  context  summary, dedup, budget (a factor of all budgets), and
           weights (default, recency, similarity, kind)
  routing  name-share, name-prior, name-pairs, k3, spelling, semantic, k1, b,
           and factors of the weights of fields: name-x, description-x,
           parameters-x, tags-x, server-x

Examples:
  contextweaver bench sweep
  contextweaver bench sweep --vary summary=200,400 --vary weights=default
  contextweaver bench sweep --what routing --all --format json
  contextweaver bench sweep --root gate --vary k1=0.4,0.8,1.2";

/// What is varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// The context engine, on the context scenarios.
    Context,
    /// The router, on every collection that is there: macro means, and what choosing gives where it did not look.
    Routing,
}

/// Try a grid of configurations and show the ones that nothing beats
#[derive(Debug, Args)]
pub(in crate::cli) struct SweepArgs {
    #[command(flatten)]
    place: Place,
    /// What is varied [default: context; in a workspace: routing]
    #[arg(long, value_enum)]
    what: Option<What>,
    /// Try these values of a parameter instead of the grid's, e.g. summary=200,400; may be repeated
    #[arg(long, value_name = "PARAMETER=V1,V2")]
    vary: Vec<Vary>,
    /// Show every configuration, not only the default and the fronts; for the router, every collection too
    #[arg(long)]
    all: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &SweepArgs, out: &mut dyn Write) -> Result<Outcome> {
    match (args.place.home()?, args.what) {
        (Home::Own(_), Some(What::Context)) => {
            bail!("a workspace has a catalog and no context scenarios; leave out --what")
        }
        (Home::Own(home), _) => own::sweep(&home, &args.vary, args.all, args.format, out),
        (Home::Checkout(workspace), None | Some(What::Context)) => context(&workspace, args, out),
        (Home::Checkout(workspace), Some(What::Routing)) => routing_grid(&workspace, args, out),
    }
}

fn context(workspace: &Workspace, args: &SweepArgs, out: &mut dyn Write) -> Result<Outcome> {
    let candidates = sweep::grid_of(&args.vary).context("--vary")?;
    let all = workspace.scenarios()?;
    let scenarios = scenarios_here(&all)?;
    let bar = progress(candidates.len());
    let swept = Swept::of(&candidates, &scenarios, &StructureSummarizer, || bar.inc(1));
    bar.finish_and_clear();
    let Swept { configurations, held_out, at_the_edge } = swept.map_err(|message| anyhow!(message))?;
    let shown: Vec<&sweep::Row> = configurations
        .iter()
        .enumerate()
        .filter(|(at, one)| args.all || *at == 0 || one.on_front_of_kept || one.on_front_of_fidelity)
        .map(|(_, one)| one)
        .collect();
    if args.format == Format::Json {
        let found = serde_json::json!({
            "in_sample": true, "configurations": shown, "held_out": held_out, "at_the_edge": at_the_edge
        });
        print_json(out, "bench sweep", &found)?;
        return Ok(Outcome::Ok);
    }
    note(&format!("{} configurations on {} scenarios", configurations.len(), scenarios.len()));
    write!(out, "{}", report::trials::sweep(&shown))?;
    writeln!(
        out,
        "\nAll rows are in-sample: measured on the scenarios that you would choose by. {}",
        corrected(configurations.len())
    )?;
    if let Some(held) = held_out {
        let (kept, tokens) = (share(held.kept), count(held.tokens));
        writeln!(out, "chosen without the scenario that is scored: kept {kept}, {tokens} tokens")?;
        writeln!(out, "by {}", chosen(&held.chosen))?;
    }
    print_edges(&at_the_edge, out)
}

/// What words and figures of a grid are worth, in two sentences.
pub(super) fn corrected(configurations: usize) -> String {
    let compared = count(configurations.saturating_sub(1));
    format!(
        "The words are corrected for {compared} comparisons of each measure (Holm).\n\
         The figures are not: of so many, the best looks better than it is."
    )
}

/// The candidates that were chosen, and how often.
fn chosen(chosen: &BTreeMap<String, usize>) -> String {
    chosen.iter().map(|(name, times)| format!("{name} ({times})")).collect::<Vec<_>>().join(", ")
}

/// Names the parameters whose best value may lie beyond the grid.
pub(super) fn print_edges(edges: &[(String, f64)], out: &mut dyn Write) -> Result<Outcome> {
    for (parameter, value) in edges {
        writeln!(
            out,
            "{parameter}: the best value tried, {value}, is at the edge of the grid; a better one may lie beyond it"
        )?;
    }
    Ok(Outcome::Ok)
}

fn routing_grid(workspace: &Workspace, args: &SweepArgs, out: &mut dyn Write) -> Result<Outcome> {
    let candidates = routing::grid_of(&args.vary).context("--vary")?;
    let cases: Vec<_> = workspace.matrix()?.cases.into_iter().filter(|case| case.growth.is_none()).collect();
    let found = workspace.collections(&cases)?;
    let names: BTreeSet<&str> = cases.iter().map(|case| case.collection.as_str()).collect();
    let collections: Vec<&Collection> = names.iter().filter_map(|name| found.get(name)).map(Arc::as_ref).collect();
    let bar = progress(candidates.len());
    let swept = routing::Swept::of(&candidates, &collections, || bar.inc(1));
    bar.finish_and_clear();
    let routing::Swept { configurations, held_out, at_the_edge, .. } = swept?;
    if args.format == Format::Json {
        let found = serde_json::json!({
            "in_sample": true, "configurations": configurations, "held_out": held_out, "at_the_edge": at_the_edge
        });
        print_json(out, "bench sweep", &found)?;
        return Ok(Outcome::Ok);
    }
    note(&format!("{} configurations on {} collections", configurations.len(), collections.len()));
    write!(out, "{}", report::trials::routing_sweep(&configurations, args.all))?;
    writeln!(
        out,
        "\nAll rows are in-sample: the default's constants were chosen on these collections, and a row that is chosen here is\n\
         chosen by what it is shown on. {}",
        corrected(configurations.len())
    )?;
    if let Some(held) = held_out {
        let (ndcg, recall) = (held.ndcg_at_10, held.recall_at_5);
        writeln!(
            out,
            "chosen without the collection that is scored: nDCG@10 {}, recall@5 {}",
            share(ndcg),
            share(recall)
        )?;
        writeln!(out, "by {}", chosen(&held.chosen))?;
    }
    print_edges(&at_the_edge, out)
}
