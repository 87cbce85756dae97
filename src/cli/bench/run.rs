//! `bench run`: measure everything, write the records and the pages.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::{Everything, Place, own, refuse_in_workspace};
use crate::cli::{Format, Outcome, note, print_json};
use contextweaver_bench::eval::machine;
use contextweaver_bench::eval::timing::TimingRow;
use contextweaver_bench::eval::workspace::{Bench, Scope};
use contextweaver_bench::own::Home;
use contextweaver_bench::report;
use contextweaver_bench::results::Results;
use contextweaver_bench::scorecard::{self, Ran, Recorder};

pub(super) const EXAMPLE: &str = "\
In a checkout, the matrix is run and the scorecard written. In a workspace of `bench init`, your
catalog is measured, results.json is written, and the gate of gate.toml judges it: also against the
results of the last run.

Examples:
  contextweaver bench run
  contextweaver bench run --record-timings
  contextweaver bench run --root gate

Exit codes in a workspace: 0 the gate passed, 1 it failed or regressed, 2 error.";

/// Run the matrix and write the scorecard; in a workspace, measure your catalog and judge it
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
    let workspace = match args.place.home()? {
        Home::Own(home) => {
            let scoped = args.everything.scope() != Scope::Usual;
            refuse_in_workspace(&[("--all or --large", scoped), ("--record-timings", args.record_timings)])?;
            return own::run(&home, args.format, out);
        }
        Home::Checkout(workspace) => workspace,
    };
    let bench = Bench::open(workspace, args.everything.scope())?;
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
