//! `bench growth`: how counters and times grow with the catalog.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde::Serialize;

use super::Place;
use super::check::chapter_differences;
use super::run::progress;
use crate::cli::{Format, Outcome, note, print_json};
use crate::eval::collection::Collection;
use crate::eval::engine::{Engine, RouterEngine};
use crate::eval::machine;
use crate::eval::matrix::{DEFAULT, Matrix};
use crate::eval::results::{Chapter, Difference};
use crate::eval::scaling::{self, COLLECTION, GATED, SIZES, ScalingRecord, ScalingResults};
use crate::eval::timing::TimingRow;
use crate::eval::workspace::{Collections, Workspace};
use crate::report;

pub(super) const EXAMPLE: &str = "\
The catalogs are made around the queries of `workbench`, with the statistics of real ones. A million tools take some
gigabytes of memory and some minutes. Without --record nothing is written; afterwards `bench render` shows what was recorded.

Example:
  contextweaver bench growth --sizes 1000,10000
  contextweaver bench growth --record";

/// The engine by words alone, timed beside the default.
const LEXICAL: &str = "lexical";

/// Measure how cost grows with the catalog, up to a million tools
#[derive(Debug, Args)]
pub(in crate::cli) struct GrowthArgs {
    #[command(flatten)]
    place: Place,
    /// Numbers of tools [default: 100 to a million]
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', default_values_t = SIZES, hide_default_value = true)]
    sizes: Vec<usize>,
    /// Write counters to scorecard/results/ and times to scorecard/timings/, in place of those that are there
    #[arg(long, conflicts_with = "sizes")]
    record: bool,
    /// The machine's name in the timings file
    #[arg(long, value_name = "NAME", requires = "record", value_parser = machine::parse_name)]
    machine: Option<String>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Output<'a> {
    counters: &'a ScalingResults,
    times: &'a [TimingRow],
}

pub(super) fn run(args: &GrowthArgs, out: &mut dyn Write) -> Result<Outcome> {
    let workspace = args.place.workspace()?;
    let matrix = workspace.matrix()?;
    let collections = workspace.collections(&matrix.cases)?;
    let scaling = Scaling::of(&workspace, &matrix, &collections)?;
    let base = scaling.base.as_deref().with_context(|| format!("no collection `{COLLECTION}` in gold/"))?;
    let lexical = matrix.engine(LEXICAL).with_context(|| format!("no engine `{LEXICAL}` in engines.toml"))?;
    let folder = tempfile::tempdir()?;
    let bar = progress(args.sizes.len());
    let (mut records, mut samples) = (Vec::new(), Vec::new());
    for &size in &args.sizes {
        bar.set_message(format!("{} tools", report::count(size)));
        records.extend(scaling::count(base, &scaling.engine, &[size]));
        let engines = [&scaling.engine, lexical];
        let timed = scaling::times(base, &engines, size, rounds(size), folder.path());
        samples.extend(timed.map_err(|error| anyhow!("{size} tools: {error}"))?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let counters = Chapter::new(scaling.engine.configuration(), records);
    let times = machine::rows(&samples, args.machine.as_deref(), &workspace.path(""));
    if args.record {
        workspace.write_chapter(&counters)?;
        workspace.write_growth(&times)?;
        note("recorded; `contextweaver bench render` shows it");
    }
    match args.format {
        Format::Json => print_json(out, &Output { counters: &counters, times: &times })?,
        Format::Text => {
            write!(out, "{}", report::terminal::scaling(&counters))?;
            write!(out, "\n{}", report::terminal::growth_times(&times))?;
        }
    }
    Ok(Outcome::Ok)
}

/// Enough passes for steady percentiles, and no more than a million tools can bear.
fn rounds(size: usize) -> usize {
    (1_000_000 / size.max(1)).clamp(2, 10)
}

/// The counters as `bench run` and `check` treat them: those of small sizes are computed, the others kept.
pub(super) struct Scaling {
    /// `None` in a checkout without it, where there is nothing to compute.
    base: Option<Arc<Collection>>,
    engine: RouterEngine,
    pub(super) committed: Option<ScalingResults>,
}

impl Scaling {
    pub(super) fn of(workspace: &Workspace, matrix: &Matrix, collections: &Collections) -> Result<Self> {
        let engine = matrix.engine(DEFAULT).context("no default engine in engines.toml")?.clone();
        Ok(Self { base: collections.get(COLLECTION).cloned(), engine, committed: workspace.read_chapter()? })
    }

    pub(super) fn compute(&self) -> ScalingResults {
        let sizes: Vec<usize> = SIZES.into_iter().filter(|size| *size <= GATED).collect();
        let mut records: Vec<ScalingRecord> = Vec::new();
        if let Some(base) = &self.base {
            records.extend(scaling::count(base, &self.engine, &sizes));
            records.extend(scaling::kept_records(self.committed.as_ref()));
        }
        Chapter::new(self.engine.configuration(), records)
    }

    /// Every fact in which the committed counters differ from those that are computed now.
    pub(super) fn differences(&self) -> Result<Vec<Difference>> {
        chapter_differences(self.committed.as_ref(), &self.compute())
    }

    /// What is wrong with the committed rows that are not computed again.
    pub(super) fn wrong_rows(&self) -> Vec<String> {
        let wrong = |base: &Arc<Collection>| scaling::wrong_rows(base, &self.engine, self.committed.as_ref());
        self.base.as_ref().map(wrong).unwrap_or_default()
    }
}
