//! `bench cells`, `bench cell` and `bench merge`: the work of a run as lines, a filter that does it, and what puts it
//! together. How lines come to other machines is somebody else's business (docs/scale.md).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use serde_json::json;

use super::{Everything, Place, run};
use crate::cli::{Format, Outcome, chain};
use contextweaver_bench::report::count;
use contextweaver_bench::scorecard;
use contextweaver_bench::scorecard::cells::{Batch, Cell, CellResult, Share, Store, Work};

pub(super) const CELLS_EXAMPLE: &str = "\
Examples:
  contextweaver bench cells | contextweaver bench cell > results.jsonl
  contextweaver bench cells --plan --cells .cells

Every line is a cell: a results file, a case, and what their record depends on.";

/// Print the cells of a run, one JSON object per line
#[derive(Debug, Args)]
pub(in crate::cli) struct CellsArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    everything: Everything,
    /// Only one share of several, e.g. 1/4
    #[arg(long, value_name = "I/N")]
    shard: Option<Share>,
    /// Show what would run and roughly how long it takes, for people
    #[arg(long)]
    plan: bool,
    /// With --plan: a folder of stored cells, which are not run again
    #[arg(long, value_name = "DIR", requires = "plan")]
    cells: Option<PathBuf>,
}

pub(super) fn cells(args: &CellsArgs, out: &mut dyn Write) -> Result<Outcome> {
    let bench = args.place.bench(args.everything.scope())?;
    let work = Work::of(&bench)?;
    let batches = args.shard.map_or_else(|| work.batches(), |share| work.share(share));
    if args.plan {
        return plan(&work, &batches, args.cells.as_deref(), out);
    }
    for batch in batches {
        for cell in work.cells(batch)? {
            writeln!(out, "{}", serde_json::to_string(&cell)?)?;
        }
    }
    Ok(Outcome::Ok)
}

/// What would be run, in a line for each case of a chapter.
fn plan(work: &Work<'_>, batches: &[&Batch], store: Option<&Path>, out: &mut dyn Write) -> Result<Outcome> {
    let store = store.map(Store::open).transpose()?;
    let (mut all, mut stored, mut cost_ms) = (0, 0, 0);
    for batch in batches {
        let mut known = 0;
        if let Some(store) = &store {
            for cell in work.cells(batch)? {
                known += usize::from(store.read(&cell)?.is_some());
            }
        }
        let (label, cells) = (batch.label(), batch.len());
        let left = if known == cells { 0 } else { batch.cost_ms };
        writeln!(out, "{label:<52} {cells:>3} cells {known:>3} stored {:>8.1} s", left as f64 / 1_000.0)?;
        (all, stored, cost_ms) = (all + cells, stored + known, cost_ms + left);
    }
    let seconds = cost_ms as f64 / 1_000.0;
    writeln!(out, "{} cells, {} stored; the rest takes one core about {seconds:.1} s", count(all), count(stored))?;
    Ok(Outcome::Ok)
}

pub(super) const CELL_EXAMPLE: &str = "\
Example:
  contextweaver bench cells | contextweaver bench cell > results.jsonl

One line is written for each line of standard input: the result of the cell, or
  {\"line\": 3, \"error\": \"...\"}
for a line that is not a cell, or is a cell of another version or other inputs.";

/// Compute the cells read from standard input, and write one result line each to standard output
#[derive(Debug, Args)]
pub(in crate::cli) struct CellArgs {
    #[command(flatten)]
    place: Place,
}

/// The most bytes of a line that is read: a cell is a few hundred.
const MOST_CELL: u64 = 1 << 16;

pub(super) fn cell(args: &CellArgs, out: &mut dyn Write) -> Result<Outcome> {
    // Whoever sends a cell of minutes wants it.
    let everything = Everything { all: false, large: true };
    let bench = args.place.bench(everything.scope())?;
    let work = Work::of(&bench)?;
    let mut lines = io::stdin().lock();
    for number in 1.. {
        let mut line = Vec::new();
        if lines.by_ref().take(MOST_CELL).read_until(b'\n', &mut line).context("standard input")? == 0 {
            break;
        }
        ensure!(line.len() < MOST_CELL as usize, "line {number}: longer than any cell");
        if line.trim_ascii().is_empty() {
            continue;
        }
        let cell = serde_json::from_slice::<Cell>(&line).map_err(|error| anyhow!("not a cell: {error}"));
        match cell.and_then(|cell| work.answer(&cell)) {
            Ok(result) => writeln!(out, "{}", serde_json::to_string(&result)?)?,
            Err(error) => writeln!(out, "{}", json!({"line": number, "error": chain(&error)}))?,
        }
        out.flush()?;
    }
    Ok(Outcome::Ok)
}

pub(super) const MERGE_EXAMPLE: &str = "\
Examples:
  contextweaver bench merge --cells .cells
  contextweaver bench merge --cells shard-1 --cells shard-2
  contextweaver bench merge --results results.jsonl

Writes what one run would have written, byte for byte, if no cell is missing.";

/// Merge cells that were computed elsewhere, and write the scorecard
#[derive(Debug, Args)]
pub(in crate::cli) struct MergeArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    everything: Everything,
    /// A folder of cells that `bench run --cells` stored; may be repeated
    #[arg(long, value_name = "DIR", required_unless_present = "results")]
    cells: Vec<PathBuf>,
    /// Lines that `bench cell` wrote; may be repeated
    #[arg(long, value_name = "FILE")]
    results: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn merge(args: &MergeArgs, out: &mut dyn Write) -> Result<Outcome> {
    let stores = args.cells.iter().map(|folder| Store::open(folder)).collect::<Result<Vec<_>>>()?;
    let mut answers = BTreeMap::new();
    for path in &args.results {
        read_results(path, &mut answers)?;
    }
    let bench = args.place.bench(args.everything.scope())?;
    run::print(&scorecard::merge(&bench, &stores, &answers)?, args.format, out)
}

/// The most bytes of a line of results.
const MOST_RESULT: u64 = 64 << 20;

fn read_results(path: &Path, answers: &mut BTreeMap<String, CellResult>) -> Result<()> {
    let shown = path.display();
    let mut lines = BufReader::new(File::open(path).with_context(|| shown.to_string())?);
    for number in 1.. {
        let mut line = Vec::new();
        if lines.by_ref().take(MOST_RESULT).read_until(b'\n', &mut line).with_context(|| shown.to_string())? == 0 {
            break;
        }
        let result: CellResult = serde_json::from_slice(&line).map_err(|error| {
            let line: Option<serde_json::Value> = serde_json::from_slice(&line).ok();
            let told = line.and_then(|line| line.get("error").and_then(|told| told.as_str().map(str::to_owned)));
            match told {
                Some(told) => anyhow!("{shown}:{number}: a cell was not computed: {told}"),
                None => {
                    anyhow!("{shown}:{number}: not a line of `contextweaver bench cell`: {error}; compute it again")
                }
            }
        })?;
        ensure!(
            result.key == result.cell.key(),
            "{shown}:{number}: the key does not belong to the cell; compute it again"
        );
        if let Some(other) = answers.insert(result.key.clone(), result.clone()) {
            let text = |one: &CellResult| serde_json::to_string(&one.outcome);
            ensure!(
                text(&other)? == text(&result)?,
                "{shown}:{number}: another line has different facts for {}; compute it again",
                result.cell.label()
            );
        }
    }
    Ok(())
}
