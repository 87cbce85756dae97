//! `bench run`: measure everything, write the records and the pages.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::{Everything, Place, end_engines_at_a_signal, own, refuse_in_workspace};
use crate::cli::{Format, Outcome, note, print_json};
use contextweaver_bench::eval::context::rival::{ContextRivalFacts, RivalCap};
use contextweaver_bench::eval::machine;
use contextweaver_bench::eval::process::{Hiding, hiding};
use contextweaver_bench::eval::record::Outcome as Measured;
use contextweaver_bench::eval::rival::{RivalFacts, RivalRun, RivalTimes};
use contextweaver_bench::eval::timing::TimingRow;
use contextweaver_bench::eval::workspace::{Bench, Scope};
use contextweaver_bench::own::Home;
use contextweaver_bench::report::{self, number::share};
use contextweaver_bench::results::Results;
use contextweaver_bench::scorecard::cells::{Share, Store, Work};
use contextweaver_bench::scorecard::engines::{ContextPerformance, Performance, Selection, record, record_context};
use contextweaver_bench::scorecard::{self, Course, Ran, Recorder, Watch, check};
use contextweaver_core::sync::lock;

pub(super) const EXAMPLE: &str = "\
In a checkout, the matrix is run and the scorecard written. In a workspace of `bench init`, your
catalog is measured, and the gate of gate.toml judges it: also against the results of the last run
in results.json. If the gate passes, the new results are written there; if it fails, the last ones stay, so it fails
again until the catalog is fixed or --accept is given. They also stay if recall@5 fell at all: losses that are chance,
or within the margin, add up.

Examples:
  contextweaver bench run
  contextweaver bench run --record-timings
  contextweaver bench run --root gate
  contextweaver bench run --root gate --html report.html
  contextweaver bench run --root gate --accept

Exit codes in a workspace: 0 the gate passed, 1 it failed or regressed, 2 error.";

/// Run the matrix and write the scorecard; in a workspace, measure your catalog and judge it
#[derive(Debug, Args)]
pub(in crate::cli) struct RunArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    everything: Everything,
    /// Write the timings to scorecard/timings/ and show them on the pages
    #[arg(long, conflicts_with_all = ["shard", "budget"])]
    record_timings: bool,
    /// The machine's name in the timings file
    #[arg(long, value_name = "NAME", requires = "record_timings", value_parser = machine::parse_name)]
    machine: Option<String>,
    /// Store what is measured in this folder and reuse what is there: a stopped run continues
    #[arg(long, value_name = "DIR")]
    cells: Option<PathBuf>,
    /// Measure one share of several, e.g. 1/4, and write no scorecard: `bench merge` does
    #[arg(long, value_name = "I/N", requires = "cells")]
    shard: Option<Share>,
    /// Start nothing new after this time, e.g. 60s or 5m: the cheapest runs first, the rest is kept as recorded
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "all")]
    budget: Option<Duration>,
    /// Report progress on standard error even if it is not a terminal
    #[arg(long)]
    progress: bool,
    /// Run third-party engines and ours through one interface, all or by name, and record it; see docs/engines.md
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with_all = ["record_timings", "all", "large"])]
    engines: Vec<String>,
    /// Only on these collections, for engines that rank tools [default: all that are here]
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "engines")]
    collections: Vec<String>,
    /// Only on these scenarios of scenarios/context, for context engines [default: all that are here]
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "engines")]
    scenarios: Vec<String>,
    /// Compare with what is recorded, to six decimals, and write nothing: exit with 1 if it differs
    #[arg(long, requires = "engines")]
    check: bool,
    /// In a workspace: write a report as one HTML file: the failures, the confusions, every query, the gate
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// In a workspace: write results.json even if the gate fails or a loss is neither shown nor excluded; later runs are
    /// judged against it
    #[arg(long)]
    accept: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// `60s`, `5m` or `2h`.
fn duration(text: &str) -> Result<Duration, String> {
    let refused = || format!("`{text}` is not a time; write 60s, 5m or 2h");
    let unit = text.chars().last().ok_or_else(refused)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        _ => return Err(refused()),
    };
    let number: u32 = text.strip_suffix(unit).and_then(|number| number.parse().ok()).ok_or_else(refused)?;
    Ok(Duration::from_secs(u64::from(number) * seconds))
}

#[derive(Serialize)]
struct Output<'a> {
    results: Vec<&'a Results>,
    timings: &'a [TimingRow],
}

/// What a share of a run says.
#[derive(Serialize)]
struct ShareOutput {
    cells: usize,
    left_out: Vec<String>,
}

pub(super) fn run(args: &RunArgs, out: &mut dyn Write) -> Result<Outcome> {
    let until = args.budget.map(|budget| Instant::now() + budget);
    let workspace = match args.place.home()? {
        Home::Own(home) => {
            let foreign = [
                ("--all or --large", args.everything.scope() != Scope::Usual),
                ("--record-timings", args.record_timings),
                ("--cells", args.cells.is_some()),
                ("--shard", args.shard.is_some()),
                ("--budget", args.budget.is_some()),
                ("--engines", !args.engines.is_empty()),
            ];
            refuse_in_workspace(&foreign)?;
            return own::run(&home, args.html.as_deref(), args.accept, args.format, out);
        }
        Home::Checkout(_) if args.accept => {
            bail!("--accept is for a workspace; a checkout records with `contextweaver bench run` alone")
        }
        Home::Checkout(_) if args.html.is_some() => {
            bail!("--html writes the report of a workspace; in a checkout `contextweaver bench render --html` does")
        }
        Home::Checkout(workspace) => workspace,
    };
    let bench = Bench::open(workspace, args.everything.scope())?;
    if !args.engines.is_empty() {
        return engines(args, &bench, out);
    }
    let program = args.record_timings.then(std::env::current_exe).transpose().context("this program's own file")?;
    let recorder = program.as_deref().map(|program| Recorder { program, machine: args.machine.as_deref() });
    let store = args.cells.as_deref().map(Store::create).transpose()?;
    let watch = Progress::new(args.progress);
    let course = Course { store: store.as_ref(), until, watch: &watch };
    if let Some(shard) = args.shard {
        let work = Work::of(&bench)?;
        let batches = work.share(shard);
        let cells = batches.iter().map(|batch| batch.len()).sum();
        let left_out = scorecard::share(&work, batches, course)?;
        watch.finish();
        let done = ShareOutput { cells, left_out: left_out.iter().map(|batch| batch.label()).collect() };
        match args.format {
            Format::Json => print_json(out, "bench run", &done)?,
            Format::Text => {
                let left_out: usize = left_out.iter().map(|batch| batch.len()).sum();
                writeln!(out, "{} of the {cells} cells of this share are stored", cells - left_out)?;
                done.left_out.iter().try_for_each(|what| writeln!(out, "out of time: {what}"))?;
            }
        }
        return Ok(Outcome::Ok);
    }
    let ran = scorecard::run(&bench, recorder, course)?;
    watch.finish();
    print(&ran, args.format, out)
}

/// Prints what a run left behind.
pub(super) fn print(ran: &Ran, format: Format, out: &mut dyn Write) -> Result<Outcome> {
    let Ran { recordings, kept, missing, timings } = ran;
    if !kept.is_empty() {
        let kept: Vec<String> = kept.iter().map(ToString::to_string).collect();
        note(&format!("kept as recorded, not measured here: {}", kept.join(", ")));
    }
    if !missing.is_empty() {
        let missing = missing.join(", ");
        note(&format!("neither measured here nor recorded, so `contextweaver bench check` fails: {missing}"));
    }
    let wrong: BTreeSet<String> = check::wrong(recordings)?.into_iter().map(|one| one.reason).collect();
    for reason in wrong {
        note(&format!("what was kept does not fit what was measured, so `contextweaver bench check` fails: {reason}"));
    }
    match format {
        Format::Json => print_json(out, "bench run", &Output { results: recordings.iter().collect(), timings })?,
        Format::Text => {
            write!(out, "{}", scorecard::terminal(recordings)?)?;
            if !timings.is_empty() {
                write!(out, "\n{}", report::recording::times(&timings.iter().collect::<Vec<_>>()).plain())?;
            }
            writeln!(out, "\nWrote scorecard/ — read scorecard/SCORECARD.md")?;
        }
    }
    Ok(Outcome::Ok)
}

/// How far a run is: a bar on a terminal, lines elsewhere where they are asked for.
struct Progress {
    bar: ProgressBar,
    lines: bool,
    start: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    cells: usize,
    cost_ms: u64,
    done: usize,
    done_ms: u64,
    /// When a line was last written.
    said: Option<Instant>,
}

/// Between two lines.
const PAUSE: Duration = Duration::from_secs(2);

impl Progress {
    fn new(asked: bool) -> Self {
        let lines = asked && !std::io::stderr().is_terminal();
        Self { bar: progress(0), lines, start: Instant::now(), state: Mutex::default() }
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl State {
    /// What is left, by what was done of the estimated cost; `None` before anything is done.
    fn left(&self, elapsed: Duration) -> Option<Duration> {
        let left = self.cost_ms.saturating_sub(self.done_ms) as f64;
        (self.done_ms > 0).then(|| elapsed.mul_f64(left / self.done_ms as f64))
    }
}

impl Watch for Progress {
    fn begins(&self, cells: usize, cost_ms: u64) {
        let mut state = lock(&self.state);
        (state.cells, state.cost_ms) = (cells, cost_ms);
    }

    fn step(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    fn done(&self, cells: usize, cost_ms: u64) {
        let mut state = lock(&self.state);
        state.done += cells;
        state.done_ms += cost_ms;
        let left = state.left(self.start.elapsed()).unwrap_or_default().as_secs();
        let text = format!("{} of {} cells, about {left} s left", state.done, state.cells);
        if self.lines && (state.done == state.cells || state.said.is_none_or(|said| said.elapsed() >= PAUSE)) {
            state.said = Some(Instant::now());
            note(&text);
        }
        self.bar.set_prefix(text);
    }
}

#[derive(Serialize)]
struct EngineLine<'a> {
    engine: &'a str,
    collection: &'a str,
    outcome: &'a Measured<RivalFacts>,
    times: Option<&'a RivalTimes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hiding: Option<&'a Hiding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    same_as_recorded: Option<bool>,
}

#[derive(Serialize)]
struct ContextLine<'a> {
    engine: &'a str,
    scenario: &'a str,
    outcome: &'a Measured<ContextRivalFacts>,
    hiding: &'a Hiding,
    #[serde(skip_serializing_if = "Option::is_none")]
    same_as_recorded: Option<bool>,
}

/// `bench run --engines`: one line for each engine on each collection, then for each context engine on each scenario.
fn engines(args: &RunArgs, bench: &Bench, out: &mut dyn Write) -> Result<Outcome> {
    end_engines_at_a_signal(|| ())?;
    let program = std::env::current_exe().context("this program's own file")?;
    let selection = Selection::of(bench, &args.engines, &args.collections, &args.scenarios)?;
    let can_hide = hiding(&bench.workspace.judgements());
    if matches!(can_hide, Hiding::NotHidden(_)) {
        note(&format!("an engine could read the judgements of this checkout; {}", can_hide.sentence()));
    }
    let bar = progress(selection.len());
    let mut same = true;
    let step = |what: &str| {
        bar.set_message(what.to_owned());
        bar.inc(1);
    };
    selection.run(bench, &program, &step, |given| {
        let is_same = args.check.then(|| given.recorded.as_ref() == Some(&given.run.outcome));
        same &= is_same != Some(false);
        if !args.check {
            record(bench, given)?;
        }
        let RivalRun { outcome, times, hiding } = &given.run;
        match args.format {
            Format::Json => {
                let (engine, collection, times) = (given.engine, given.ground.name.as_str(), times.as_ref());
                let hiding = hiding.as_ref();
                let line = EngineLine { engine, collection, outcome, times, hiding, same_as_recorded: is_same };
                writeln!(out, "{}", serde_json::to_string(&line)?)?;
            }
            Format::Text => writeln!(out, "{}", line(given, is_same))?,
        }
        out.flush()?;
        Ok(())
    })?;
    selection.run_context(bench, &program, &step, |given| {
        let is_same = args.check.then(|| given.recorded.as_ref() == Some(&given.outcome));
        same &= is_same != Some(false);
        if !args.check {
            record_context(bench, given)?;
        }
        let ContextPerformance { engine, scenario, outcome, .. } = given;
        match args.format {
            Format::Json => {
                let (scenario, hiding) = (scenario.name.as_str(), &can_hide);
                let line = ContextLine { engine, scenario, outcome, hiding, same_as_recorded: is_same };
                writeln!(out, "{}", serde_json::to_string(&line)?)?;
            }
            Format::Text => writeln!(out, "{}", context_line(given, is_same))?,
        }
        out.flush()?;
        Ok(())
    })?;
    bar.finish_and_clear();
    Ok(if same { Outcome::Ok } else { Outcome::Drift })
}

/// What an engine gave, in a line for a terminal.
fn line(given: &Performance<'_>, is_same: Option<bool>) -> String {
    let head = format!("{:<20} {:<18}", given.engine, given.ground.name);
    let found = match &given.run.outcome {
        Measured::Failed(reason) => reason.clone(),
        Measured::Measured(facts) => {
            let mean = |name: &str| facts.measures.get(name).map_or(0.0, |estimate| estimate.mean);
            let time = given.run.times.as_ref().map_or_else(String::new, |times| format!("  {} us", times.p50_us));
            format!("nDCG@10 {}  recall@5 {}{time}", share(mean("nDCG@10")), share(mean("recall@5")))
        }
    };
    format!("{head} {found}{}", beside(is_same))
}

/// What a context engine gave, in a line for a terminal.
fn context_line(given: &ContextPerformance<'_>, is_same: Option<bool>) -> String {
    let head = format!("{:<20} {:<20}", given.engine, given.scenario.name);
    let found = match &given.outcome {
        Measured::Failed(reason) => reason.clone(),
        Measured::Measured(facts) => {
            let prompt = match &facts.prompt {
                Measured::Failed(reason) => reason.clone(),
                Measured::Measured(one) => {
                    let (tokens, budget, held, facts) = (one.tokens, one.budget, one.facts_in_prompt, one.facts);
                    format!("{tokens} tokens of {budget}, {held} of {facts} facts")
                }
            };
            let results = match &facts.results {
                None => "no large result".to_owned(),
                Some(Measured::Failed(reason)) => reason.clone(),
                Some(Measured::Measured(results)) => {
                    let cap = |at: &RivalCap| {
                        let all = at.probes.all;
                        format!("at {}: {} tokens, {} of {} probes", at.cap, at.probes.tokens, all.kept, all.asked)
                    };
                    results.caps.iter().map(cap).collect::<Vec<_>>().join(", ")
                }
            };
            format!("{prompt}; {results}")
        }
    };
    format!("{head} {found}{}", beside(is_same))
}

fn beside(is_same: Option<bool>) -> &'static str {
    match is_same {
        Some(true) => "  as recorded",
        Some(false) => "  NOT as recorded",
        None => "",
    }
}

/// A bar of so many steps on a terminal, a spinner of unknown length with 0; hidden elsewhere.
pub(super) fn progress(steps: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    }
    let (bar, template) = match steps {
        0 => (ProgressBar::new_spinner(), "{spinner} {prefix} {wide_msg}"),
        steps => (ProgressBar::new(steps as u64), "{bar:30} {pos}/{len}, about {eta} left {wide_msg}"),
    };
    let style = ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar());
    let bar = bar.with_style(style);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
