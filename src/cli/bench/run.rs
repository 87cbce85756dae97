//! `bench run`: the whole matrix, the timings, the scorecard.

use std::fs;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;
use serde::Serialize;

use super::context::Scenarios;
use super::gateway::GatewayCases;
use super::growth::Scaling;
use super::left_out::Tables;
use super::played::Played;
use super::{Pages, Place, absent};
use crate::cli::{Format, Outcome, note, print_json};
use crate::context::summary::StructureSummarizer;
use crate::eval::capability::CopiesResults;
use crate::eval::confidence::ConfidenceResults;
use crate::eval::context::record::ContextResults;
use crate::eval::context::timing as context_timing;
use crate::eval::engine::RouterEngine;
use crate::eval::feedback::FeedbackResults;
use crate::eval::files::replace_file;
use crate::eval::gateway::record::GatewayResults;
use crate::eval::latency::{self, Sample};
use crate::eval::left_out::LeftOutResults;
use crate::eval::matrix::{Case, Matrix};
use crate::eval::record::{Grade, Growth, Record, Results};
use crate::eval::scaling::ScalingResults;
use crate::eval::timing::{Subject, TimingRow};
use crate::eval::workspace::{Collections, Workspace, kept_records};
use crate::eval::{machine, run as runner};
use crate::report;

/// Run the matrix and write the scorecard
#[derive(Debug, Args)]
pub(in crate::cli) struct RunArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    tables: Tables,
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
    results: &'a [Results],
    context: &'a ContextResults,
    gateway: &'a GatewayResults,
    feedback: &'a FeedbackResults,
    confidence: &'a ConfidenceResults,
    copies: &'a CopiesResults,
    scaling: &'a ScalingResults,
    left_out: &'a LeftOutResults,
    timings: &'a [TimingRow],
}

pub(super) fn run(args: &RunArgs, out: &mut dyn Write) -> Result<Outcome> {
    let workspace = args.place.workspace()?;
    let matrix = workspace.matrix()?;
    let collections = workspace.collections(&matrix.cases)?;
    let committed = kept_results(&workspace, &matrix, &collections)?;
    let results = compute(&matrix, &collections, &committed)?;
    let scenarios = Scenarios::of(&workspace)?;
    let context = scenarios.compute(&workspace)?;
    let cases = GatewayCases::of(&workspace)?;
    let gateway = cases.compute()?;
    let feedback = Played::of(&workspace, &matrix, &collections)?.compute();
    let confidence = Played::of(&workspace, &matrix, &collections)?.compute();
    let copies = Played::of(&workspace, &matrix, &collections)?.compute();
    let scaling = Scaling::of(&workspace, &matrix, &collections)?.compute();
    let left_out = args.tables.played(&workspace, &matrix, &collections)?.compute();
    let samples = timings(&matrix, &collections, args.record_timings)?;
    // Everything is computed before anything is written.
    let mut recorded = workspace.read_timings()?;
    let rows = machine::rows(&samples, args.machine.as_deref(), &workspace.path(""));
    if args.record_timings && rows.is_empty() {
        bail!("no timings to record: the collection `{TIMED_COLLECTION}` is not in gold/ or in no scenario");
    }
    if args.record_timings {
        // As the file of the day and machine will be.
        recorded.retain(|row| rows.iter().all(|new| (&new.date, &new.machine) != (&row.date, &row.machine)));
        recorded.extend(rows.iter().cloned());
    }
    let (overhead, growth, rivals) = (workspace.read_overhead()?, workspace.read_growth()?, workspace.read_rivals()?);
    let records = report::Records {
        results: &results,
        context: Some(&context),
        gateway: Some(&gateway),
        feedback: Some(&feedback),
        confidence: Some(&confidence),
        copies: Some(&copies),
        scaling: Some(&scaling),
        growth: &growth,
        rivals: &rivals,
        left_out: Some(&left_out),
        timings: &recorded,
        overhead: &overhead,
    };
    let pages = render(&workspace, &records)?;
    workspace.write_results(&results)?;
    workspace.write_chapter(&context)?;
    workspace.write_chapter(&gateway)?;
    workspace.write_chapter(&feedback)?;
    workspace.write_chapter(&confidence)?;
    workspace.write_chapter(&copies)?;
    workspace.write_chapter(&scaling)?;
    workspace.write_chapter(&left_out)?;
    if args.record_timings {
        workspace.write_timings(&rows)?;
    }
    write_pages(&workspace, &pages)?;
    name_absent(&matrix, &collections);
    let missing: Vec<String> = scenarios.absent(&workspace).into_iter().chain(cases.absent()).collect();
    if !missing.is_empty() {
        note(&format!("not re-run, their files are not here: {}", missing.join(", ")));
    }
    if args.format == Format::Json {
        let (context, gateway, feedback) = (&context, &gateway, &feedback);
        let (confidence, copies, scaling) = (&confidence, &copies, &scaling);
        let (left_out, timings) = (&left_out, &rows[..]);
        let output =
            Output { results: &results, context, gateway, feedback, confidence, copies, scaling, left_out, timings };
        print_json(out, &output)?;
        return Ok(Outcome::Ok);
    }
    write!(out, "{}", report::terminal::summary(&results))?;
    write!(out, "\n{}", report::terminal::context(&context))?;
    write!(out, "\n{}", report::terminal::gateway(&gateway))?;
    write!(out, "\n{}", report::terminal::feedback(&feedback))?;
    write!(out, "\n{}", report::terminal::confidence(&confidence))?;
    write!(out, "\n{}", report::terminal::copies(&copies))?;
    write!(out, "\n{}", report::terminal::scaling(&scaling))?;
    write!(out, "\n{}", report::terminal::left_out(&left_out))?;
    write!(out, "\n{}", report::terminal::timings(&rows))?;
    writeln!(out, "\nWrote scorecard/ — read scorecard/SCORECARD.md")?;
    Ok(Outcome::Ok)
}

/// The committed results, where some of them will be kept; a run that replaces all of them does not need them, and must
/// not fail because they are damaged.
fn kept_results(workspace: &Workspace, matrix: &Matrix, collections: &Collections) -> Result<Vec<Results>> {
    let all = absent(&matrix.cases, collections).is_empty() && matrix.engines.iter().all(|spec| spec.engine.is_here());
    if all { Ok(Vec::new()) } else { workspace.read_results(matrix) }
}

/// Runs every case whose collection is here on every engine that is; the others keep their committed records.
pub(super) fn compute(matrix: &Matrix, collections: &Collections, committed: &[Results]) -> Result<Vec<Results>> {
    let here = |case: &Case| collections.get(&case.collection).is_some();
    let cases: Vec<&Case> = matrix.cases.iter().filter(|case| here(case)).collect();
    let bar = progress(cases.len());
    let ran: Vec<Vec<(String, Record)>> = cases
        .par_iter()
        .map(|case| {
            bar.set_message(case.id.clone());
            let collection = collections.get(&case.collection).context("a case without its collection")?;
            let collection = runner::grown(collection, case.growth).map_err(|error| anyhow!("{}: {error}", case.id))?;
            let engines = case.engines.iter().filter(|name| matrix.is_here(name)).cloned().collect();
            let records = runner::run_case(&Case { engines, ..(*case).clone() }, matrix, &collection);
            bar.inc(1);
            Ok(records)
        })
        .collect::<Result<_>>()?;
    bar.finish_and_clear();
    let kept = kept_records(matrix, committed, |case, engine| here(case) && matrix.is_here(engine));
    Ok(runner::results(matrix, ran.into_iter().flatten().chain(kept).collect()))
}

pub(super) fn progress(steps: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}").unwrap_or(ProgressStyle::default_bar());
    let bar = ProgressBar::new(steps as u64).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Sizes at which searches are timed.
const TIMED_SIZES: [usize; 5] = [50, 250, 1000, 5000, 10_000];

/// The collection whose growth is timed.
const TIMED_COLLECTION: &str = "workbench";

/// The size at which engines with a sentence encoder are timed.
const ENCODED_SIZE: usize = 1_000;

fn timings(matrix: &Matrix, collections: &Collections, record: bool) -> Result<Vec<Sample>> {
    let rounds = if record { 9 } else { 3 };
    let Some(collection) = collections.get(TIMED_COLLECTION) else { return Ok(Vec::new()) };
    let bar = progress(TIMED_SIZES.len() * matrix.engines.len());
    let mut samples = Vec::new();
    let mut last = Arc::clone(collection);
    for size in TIMED_SIZES {
        let growth = Growth { grade: Grade::Mixed, size };
        last = runner::grown(collection, Some(growth)).map_err(|error| anyhow!(error))?;
        // Encoding thousands of tools takes minutes.
        let is_timed = |engine: &RouterEngine| engine.is_here() && (!engine.has_encoder() || size == ENCODED_SIZE);
        for spec in matrix.engines.iter().filter(|spec| is_timed(&spec.engine)) {
            bar.set_message(format!("timing {} at {size} tools", crate::eval::engine::Engine::name(&spec.engine)));
            let timed = latency::search(&spec.engine, &last.catalog, &last.queries, rounds);
            samples.extend(timed.map_err(|error| anyhow!(error))?);
            bar.inc(1);
        }
        if record && size == 1000 {
            samples.extend(cold_processes(&last)?);
        }
    }
    bar.finish_and_clear();
    samples.push(latency::cards(&last).map_err(|error| anyhow!(error))?);
    samples.extend(context_timing::samples(&StructureSummarizer, rounds).map_err(|error| anyhow!(error))?);
    Ok(samples)
}

/// Whole processes of this very program: `route` on a catalog of 1 000 tools, and `--help`.
fn cold_processes(collection: &crate::eval::collection::Collection) -> Result<[Sample; 2]> {
    const RUNS: usize = 30;
    let program = std::env::current_exe().context("this program's own file")?;
    let mut file = tempfile::Builder::new().suffix(".json").tempfile()?;
    file.write_all(collection.catalog.to_native_json().as_bytes())?;
    let path = file.path().to_string_lossy().into_owned();
    let tools = Some(collection.catalog.len());
    let route = ["route", "--catalog", path.as_str(), "open a ticket about the login bug"];
    let route = latency::process(Subject::RouteColdProcess, tools, &program, &route, RUNS);
    let help = latency::process(Subject::HelpColdProcess, None, &program, &["--help"], RUNS);
    Ok([route.map_err(|error| anyhow!(error))?, help.map_err(|error| anyhow!(error))?])
}

/// The pages of these results with the timings that are recorded.
pub(super) fn pages(workspace: &Workspace, records: &report::Records<'_>) -> Result<Pages> {
    let (timings, overhead) = (workspace.read_timings()?, workspace.read_overhead()?);
    let (growth, rivals) = (workspace.read_growth()?, workspace.read_rivals()?);
    let recorded =
        report::Records { timings: &timings, growth: &growth, rivals: &rivals, overhead: &overhead, ..*records };
    render(workspace, &recorded)
}

fn render(workspace: &Workspace, records: &report::Records<'_>) -> Result<Pages> {
    let mut pages = report::pages(records);
    pages.iter_mut().for_each(|page| page.path.insert_str(0, "scorecard/"));
    let readme = workspace.path("README.md");
    let text = fs::read_to_string(&readme).with_context(|| readme.display().to_string())?;
    let block = report::readme::block(records);
    let spliced = report::readme::splice(&text, &block).with_context(|| readme.display().to_string())?;
    pages.push(report::Page { path: "README.md".to_owned(), bytes: spliced.into_bytes() });
    Ok(pages)
}

pub(super) fn write_pages(workspace: &Workspace, pages: &Pages) -> Result<()> {
    for page in pages {
        replace_file(&workspace.path(&page.path), &page.bytes)?;
    }
    Ok(())
}

pub(super) fn name_absent(matrix: &Matrix, collections: &Collections) {
    let absent = absent(&matrix.cases, collections);
    if !absent.is_empty() {
        note(&format!("not re-run, their collections are not here: {}", absent.join(", ")));
    }
}
