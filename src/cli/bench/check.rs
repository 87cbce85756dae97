//! `bench check`: the code still produces the committed numbers, the pages still show them, nothing vanished.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::run::progress;
use super::{Everything, Place};
use crate::cli::{Format, Outcome, print_json};
use contextweaver_bench::scorecard::check::{self, Verdict};

/// Differences of one results file, and wrong records, that are printed before the rest is only counted.
const SHOWN: usize = 20;

/// Compute the results again and compare: exit 1 and the first differences when anything moved
#[derive(Debug, Args)]
pub(in crate::cli) struct CheckArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    everything: Everything,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &CheckArgs, out: &mut dyn Write) -> Result<Outcome> {
    let bench = args.place.bench(args.everything.scope())?;
    let bar = progress(0);
    let step = |what: &str| {
        bar.set_message(what.to_owned());
        bar.inc(1);
    };
    let verdict = check::run(&bench, &step)?;
    bar.finish_and_clear();
    match args.format {
        Format::Json => print_json(out, "bench check", &verdict)?,
        Format::Text => print(&verdict, out)?,
    }
    Ok(if verdict.same { Outcome::Ok } else { Outcome::Drift })
}

fn print(verdict: &Verdict, out: &mut dyn Write) -> Result<()> {
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
        writeln!(out, "… and {} more of such records", verdict.wrong.len() - SHOWN)?;
    }
    for page in &verdict.pages {
        writeln!(out, "{page}: does not show the committed results")?;
    }
    for stray in &verdict.strays {
        writeln!(out, "{stray}")?;
    }
    writeln!(out, "{}", verdict.summary())?;
    Ok(())
}

/// A value short enough for one line.
fn abbreviated(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 { text } else { text.chars().take(59).chain(['…']).collect() }
}
