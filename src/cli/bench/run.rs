//! `bench run`: measure everything, write the records and the pages.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::{Everything, Place};
use crate::cli::{Format, Outcome, note, print_json};
use contextweaver_bench::eval::machine;
use contextweaver_bench::eval::record::Outcome as Measured;
use contextweaver_bench::eval::rival::{RivalFacts, RivalRun, RivalTimes};
use contextweaver_bench::eval::timing::TimingRow;
use contextweaver_bench::eval::workspace::Bench;
use contextweaver_bench::report;
use contextweaver_bench::results::Results;
use contextweaver_bench::scorecard::engines::{Cell, Selection, record};
use contextweaver_bench::scorecard::{self, Ran, Recorder};

/// Run the matrix and write the scorecard
#[derive(Debug, Args)]
pub(in crate::cli) struct RunArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    everything: Everything,
    /// Write the timings to scorecard/timings/ and show them on the pages
    #[arg(long)]
    record_timings: bool,
    /// The machine's name in the timings file
    #[arg(long, value_name = "NAME", requires = "record_timings", value_parser = machine::parse_name)]
    machine: Option<String>,
    /// Run engines of others and ours through one door, all or by name, and record what they give; see docs/engines.md
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with_all = ["record_timings", "all", "large"])]
    engines: Vec<String>,
    /// Only on these collections [default: all that are here]
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "engines")]
    collections: Vec<String>,
    /// Compare with what is recorded, to six decimals, and write nothing: exit 1 where it differs
    #[arg(long, requires = "engines")]
    check: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Output<'a> {
    results: Vec<&'a Results>,
    timings: &'a [TimingRow],
}

pub(super) fn run(args: &RunArgs, out: &mut dyn Write) -> Result<Outcome> {
    let bench = args.place.bench(args.everything.scope())?;
    if !args.engines.is_empty() {
        return engines(args, &bench, out);
    }
    let program = args.record_timings.then(std::env::current_exe).transpose().context("this program's own file")?;
    let recorder = program.as_deref().map(|program| Recorder { program, machine: args.machine.as_deref() });
    let bar = progress(0);
    let Ran { recordings, kept, missing, timings } = scorecard::run(&bench, recorder, &|what| {
        bar.set_message(what.to_owned());
        bar.inc(1);
    })?;
    bar.finish_and_clear();
    if !kept.is_empty() {
        let kept: Vec<String> = kept.iter().map(ToString::to_string).collect();
        note(&format!("kept as recorded, not measured here: {}", kept.join(", ")));
    }
    if !missing.is_empty() {
        let missing = missing.join(", ");
        note(&format!("neither measured here nor recorded, and `contextweaver bench check` fails for it: {missing}"));
    }
    match args.format {
        Format::Json => print_json(out, &Output { results: recordings.iter().collect(), timings: &timings })?,
        Format::Text => {
            write!(out, "{}", scorecard::terminal(&recordings)?)?;
            write!(out, "\n{}", report::recording::times(&timings.iter().collect::<Vec<_>>()).plain())?;
            writeln!(out, "\nWrote scorecard/ — read scorecard/SCORECARD.md")?;
        }
    }
    Ok(Outcome::Ok)
}

#[derive(Serialize)]
struct EngineLine<'a> {
    engine: &'a str,
    collection: &'a str,
    outcome: &'a Measured<RivalFacts>,
    times: Option<&'a RivalTimes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    same_as_recorded: Option<bool>,
}

/// `bench run --engines`: one line for each engine on each collection.
fn engines(args: &RunArgs, bench: &Bench, out: &mut dyn Write) -> Result<Outcome> {
    let program = std::env::current_exe().context("this program's own file")?;
    let selection = Selection::of(bench, &args.engines, &args.collections)?;
    let bar = progress(selection.engines.len() * selection.collections.len());
    let mut same = true;
    let step = |what: &str| {
        bar.set_message(what.to_owned());
        bar.inc(1);
    };
    selection.run(bench, &program, &step, |cell, collection, case| {
        let is_same = args.check.then(|| cell.recorded.as_ref() == Some(&cell.run.outcome));
        same &= is_same != Some(false);
        if !args.check {
            record(bench, cell, collection, case)?;
        }
        let RivalRun { outcome, times } = &cell.run;
        match args.format {
            Format::Json => {
                let (engine, collection, times) = (cell.engine, cell.collection, times.as_ref());
                let line = EngineLine { engine, collection, outcome, times, same_as_recorded: is_same };
                writeln!(out, "{}", serde_json::to_string(&line)?)?;
            }
            Format::Text => writeln!(out, "{}", line(cell, is_same))?,
        }
        out.flush()?;
        Ok(())
    })?;
    bar.finish_and_clear();
    Ok(if same { Outcome::Ok } else { Outcome::Drift })
}

/// A cell in a line for a terminal.
fn line(cell: &Cell<'_>, is_same: Option<bool>) -> String {
    let head = format!("{:<20} {:<18}", cell.engine, cell.collection);
    let found = match &cell.run.outcome {
        Measured::Failed(reason) => reason.clone(),
        Measured::Measured(facts) => {
            let mean = |name: &str| facts.measures.get(name).map_or(0.0, |estimate| estimate.mean);
            let time = cell.run.times.as_ref().map_or(0, |times| times.p50_us);
            format!("nDCG@10 {:.3}  recall@5 {:.3}  {time} us", mean("nDCG@10"), mean("recall@5"))
        }
    };
    let beside = match is_same {
        Some(true) => "  as recorded",
        Some(false) => "  NOT as recorded",
        None => "",
    };
    format!("{head} {found}{beside}")
}

/// A bar of so many steps on a terminal, a spinner of unknown length with 0; hidden elsewhere.
pub(super) fn progress(steps: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    }
    let (bar, template) = match steps {
        0 => (ProgressBar::new_spinner(), "{spinner} {pos} {wide_msg}"),
        steps => (ProgressBar::new(steps as u64), "{bar:30} {pos}/{len} {wide_msg}"),
    };
    let style = ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar());
    let bar = bar.with_style(style);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
