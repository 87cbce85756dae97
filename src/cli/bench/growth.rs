//! `bench growth`: how counters and times grow with the catalog.

use std::io::Write;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use super::Place;
use super::run::progress;
use crate::cli::{Format, Outcome, note, print_json};
use contextweaver_bench::chapters::collections::default_engine;
use contextweaver_bench::chapters::scaling::{ScalingFacts, count, counters_table, times_table};
use contextweaver_bench::eval::machine;
use contextweaver_bench::eval::record::Outcome as Measured;
use contextweaver_bench::eval::scaling::{self, COLLECTION, SIZES};
use contextweaver_bench::eval::tables;
use contextweaver_bench::eval::timing::TimingRow;
use contextweaver_bench::eval::workspace::Scope;
use contextweaver_bench::report;

pub(super) const EXAMPLE: &str = "\
The catalogs are made around the queries of `workbench`, with the statistics of real ones. A million tools take a few
gigabytes of memory and a few minutes. Without --record nothing is written; afterwards `bench render` shows what was
recorded.

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
    /// Write the times to scorecard/timings/, replacing those already there
    #[arg(long, conflicts_with = "sizes")]
    record: bool,
    /// The machine's name in the timings file
    #[arg(long, value_name = "NAME", requires = "record", value_parser = machine::parse_name)]
    machine: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Output<'a> {
    counters: &'a [Measured<ScalingFacts>],
    times: &'a [TimingRow],
}

pub(super) fn run(args: &GrowthArgs, out: &mut dyn Write) -> Result<Outcome> {
    let bench = args.place.bench(Scope::Usual)?;
    let base = bench.collections.get(COLLECTION).with_context(|| format!("no collection `{COLLECTION}` in gold/"))?;
    let default = default_engine(&bench)?;
    let lexical = bench.matrix.engine(LEXICAL).with_context(|| format!("no engine `{LEXICAL}` in engines.toml"))?;
    let folder = tempfile::tempdir()?;
    let bar = progress(args.sizes.len());
    let (mut counters, mut samples) = (Vec::new(), Vec::new());
    for &size in &args.sizes {
        bar.set_message(format!("{} tools", report::count(size)));
        counters.push(count(base, default, size));
        let timed = scaling::times(base, &[default, lexical], size, rounds(size), folder.path());
        samples.extend(timed.with_context(|| format!("{size} tools"))?);
        bar.inc(1);
    }
    let times = machine::rows(&samples, args.machine.as_deref(), &bench.workspace.path(""));
    if args.record {
        tables::write_growth(&bench.workspace, &times)?;
        note(
            "recorded; `contextweaver bench render` shows the times, `contextweaver bench run --all` writes the counters",
        );
    }
    bar.finish_and_clear();
    match args.format {
        Format::Json => print_json(out, "bench growth", &Output { counters: &counters, times: &times })?,
        Format::Text => {
            writeln!(out, "{}", counters_table(&counters).plain())?;
            write!(out, "{}", times_table(&times.iter().collect::<Vec<_>>()).plain())?;
        }
    }
    Ok(Outcome::Ok)
}

/// Enough passes for steady percentiles, and no more than a million tools can bear.
fn rounds(size: usize) -> usize {
    (1_000_000 / size.max(1)).clamp(2, 10)
}
