//! `bench check`: the code still produces the committed numbers, the pages still show them, nothing vanished.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::Value;

use super::own::{self, CheckFormat};
use super::run::progress;
use super::{Everything, Place, refuse_in_workspace};
use crate::cli::{Outcome, print_json};
use contextweaver_bench::eval::workspace::{Bench, Scope};
use contextweaver_bench::own::Home;
use contextweaver_bench::scorecard::check::{self, Verdict};

/// Differences of one results file, and wrong records, that are printed before the rest is only counted.
const SHOWN: usize = 20;

pub(super) const EXAMPLE: &str = "\
In a workspace of `bench init`, your catalog is measured again and compared with the committed
results.json, and the gate of gate.toml judges it: against --base, the results of another state
such as the base branch, or else against results.json.

Examples:
  contextweaver bench check
  contextweaver bench check --root gate
  git show origin/main:gate/results.json > base.json
  contextweaver bench check --root gate --base base.json --format markdown > comment.md

Exit codes: 0 nothing moved and no gate failed, 1 something moved or a gate failed, 2 error, or a
base that is not comparable.";

/// Compute the results again and compare: if anything moved, show the first differences and exit with 1
#[derive(Debug, Args)]
pub(in crate::cli) struct CheckArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    everything: Everything,
    /// In a workspace: judge against this results file, such as the base branch's
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,
    /// In a workspace: write a report as one HTML file: the failures, the confusions, every query, the gate
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: CheckFormat,
}

pub(super) fn run(args: &CheckArgs, out: &mut dyn Write) -> Result<Outcome> {
    let workspace = match args.place.home()? {
        Home::Own(home) => {
            refuse_in_workspace(&[("--all or --large", args.everything.scope() != Scope::Usual)])?;
            return own::check(&home, args.base.as_deref(), args.html.as_deref(), args.format, out);
        }
        Home::Checkout(_) if args.base.is_some() || args.html.is_some() || args.format == CheckFormat::Markdown => {
            bail!("--base, --html and --format markdown are for a workspace; make one with `contextweaver bench init`")
        }
        Home::Checkout(workspace) => workspace,
    };
    let bench = Bench::open(workspace, args.everything.scope())?;
    let bar = progress(0);
    let step = |what: &str| {
        bar.set_message(what.to_owned());
        bar.inc(1);
    };
    let verdict = check::run(&bench, &step)?;
    bar.finish_and_clear();
    match args.format {
        CheckFormat::Json => print_json(out, "bench check", &verdict)?,
        CheckFormat::Text | CheckFormat::Markdown => print(&verdict, out)?,
    }
    Ok(if verdict.same { Outcome::Ok } else { Outcome::Drift })
}

fn print(verdict: &Verdict, out: &mut dyn Write) -> Result<()> {
    // Long, and the same each time: what differs stands below it, where a reader looks first.
    for line in verdict.not_computed() {
        writeln!(out, "{line}")?;
    }
    for of_one_file in verdict.facts.chunk_by(|left, right| left.results == right.results) {
        for difference in of_one_file.iter().take(SHOWN) {
            let show = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), abbreviated);
            let (committed, computed) = (show(&difference.committed), show(&difference.computed));
            let place = [&difference.results, &difference.case, &difference.fact];
            let place: Vec<&str> = place.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            writeln!(out, "{}: committed {committed}, computed {computed}", place.join(" · "))?;
        }
        if let Some(first) = of_one_file.get(SHOWN) {
            writeln!(out, "{}: … and {} more facts", first.results, of_one_file.len() - SHOWN)?;
        }
    }
    for wrong in verdict.wrong.iter().take(SHOWN) {
        writeln!(out, "{} · {}: {}", wrong.results, wrong.case, wrong.reason)?;
    }
    if verdict.wrong.len() > SHOWN {
        writeln!(out, "… and {} more such records", verdict.wrong.len() - SHOWN)?;
    }
    for page in &verdict.pages {
        writeln!(out, "{page}: does not show the committed results")?;
    }
    for stray in &verdict.strays {
        writeln!(out, "{stray}")?;
    }
    writeln!(out, "{}", verdict.ending())?;
    Ok(())
}

/// A value short enough for one line.
fn abbreviated(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 { text } else { text.chars().take(59).chain(['…']).collect() }
}
