//! `bench rot`: what is left of recall on your queries as your catalog grows.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use rayon::prelude::*;
use serde::Serialize;

use crate::cli::source::{CatalogSource, read_config};
use crate::cli::{Format, Outcome as Exit, note, print_json};
use contextweaver_bench::chapters::routing::context_rot;
use contextweaver_bench::eval::collection::Collection;
use contextweaver_bench::eval::engine::RouterEngine;
use contextweaver_bench::eval::files::replace_file;
use contextweaver_bench::eval::growth::{CORE_TOOLS, GrowthError, SEED, grow};
use contextweaver_bench::eval::record::{Estimate, Facts, Grade, Growth};
use contextweaver_bench::eval::run::{PromptTokens, evaluate};
use contextweaver_bench::eval::statistics::mean;
use contextweaver_bench::report::number::{count, estimate, share};
use contextweaver_bench::report::table::Table;

pub(super) const EXAMPLE: &str = "\
Examples:
  contextweaver bench rot --catalog tools.json --queries queries.jsonl
  contextweaver bench rot --catalog tools.json --queries queries.jsonl --grade near_duplicate --size 200 --size 2000
  contextweaver bench rot --catalog tools.json --queries queries.jsonl --seeds 20 --grade mixed --size 1000
  contextweaver bench rot --catalog tools.json --queries queries.jsonl --svg rot.svg";

/// Grow your own catalog with distractors and see what recall is left
#[derive(Debug, Args)]
pub(in crate::cli) struct RotArgs {
    #[command(flatten)]
    source: CatalogSource,
    /// Queries, one JSON object a line
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Routing configuration (TOML) [default: built in]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Kind of distractors: unrelated, sibling, near_duplicate, keyword_stuffed, mixed or copies; may be repeated
    /// [default: all but copies]
    #[arg(long, value_name = "GRADE")]
    grade: Vec<Grade>,
    /// Number of tools after growth; may be repeated [default: 50 to 10 000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    size: Vec<u32>,
    /// Draw the distractors with so many seeds: least and most say how much of a figure is the draw
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// Draw the curve of the first seed into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// One point of a curve.
#[derive(Debug, Clone, Serialize)]
struct Point {
    grade: Grade,
    tools: usize,
    /// Tools of the catalog that are among them: its core, or for copies all.
    own_tools: usize,
    /// Tools of the catalog as it is.
    of_tools: usize,
    /// Queries that are asked: those that these tools answer in full.
    queries: usize,
    /// Queries of the file that a tool answers.
    of_queries: usize,
    /// With the first seed: the mean over the queries, and its interval.
    recall_at_5: Estimate,
    /// The mean over the queries with each seed.
    by_seed: Vec<f64>,
    /// The least of these.
    least: f64,
    /// The most.
    most: f64,
}

/// What a kind and number of distractors leave, with each seed; the facts are those of the first.
struct Drawn {
    facts: Facts,
    by_seed: Vec<f64>,
}

/// Grows and measures with each seed; `None` where no recall is known.
fn drawn(collection: &Collection, engine: &RouterEngine, growth: Growth, seeds: u64) -> Result<Option<Drawn>> {
    let one = |seed: u64| Ok(evaluate(&grow(collection, growth, seed)?, engine, PromptTokens::Skip)?.facts);
    let all = (SEED..SEED + seeds).into_par_iter().map(one).collect::<Result<Vec<Facts>>>()?;
    let by_seed: Option<Vec<f64>> = all.iter().map(|facts| Some(facts.measures.get("recall@5")?.mean)).collect();
    Ok(by_seed.and_then(|by_seed| Some(Drawn { facts: all.into_iter().next()?, by_seed })))
}

pub(super) fn run(args: &RotArgs, out: &mut dyn Write) -> Result<Exit> {
    let collection = args.source.collection(&args.queries)?;
    if collection.counts().answerable == 0 {
        bail!("{}: no query has a relevant tool, so there is no recall to lose", args.queries.display());
    }
    let engine = RouterEngine::new("yours", read_config(args.config.as_deref())?);
    let grades: Vec<Grade> = if args.grade.is_empty() { Grade::DISTRACTORS.to_vec() } else { args.grade.clone() };
    let sizes: Vec<usize> = if args.size.is_empty() {
        contextweaver_bench::eval::growth::SIZES.to_vec()
    } else {
        args.size.iter().map(|&size| size as usize).collect()
    };
    let (own, answerable) = (collection.catalog.len(), collection.counts().answerable);
    let mut points: Vec<Point> = Vec::new();
    let mut outcomes = Vec::new();
    for &grade in &grades {
        for &size in &sizes {
            let growth = Growth { grade, size };
            let drawn = match drawn(&collection, &engine, growth, args.seeds) {
                Ok(drawn) => drawn,
                // The usual sizes are tried as far as they go; a size that was asked for must work.
                Err(error) if args.size.is_empty() && error.is::<GrowthError>() => {
                    note(&error.to_string());
                    continue;
                }
                Err(error) => return Err(error),
            };
            let Some(Drawn { facts, by_seed }) = drawn else { continue };
            let Some(&recall_at_5) = facts.measures.get("recall@5") else { continue };
            let ends = |of: fn(f64, f64) -> f64| by_seed.iter().copied().reduce(of).unwrap_or(recall_at_5.mean);
            let (least, most) = (ends(f64::min), ends(f64::max));
            points.push(Point {
                grade,
                tools: facts.tools,
                own_tools: if grade == Grade::Copies { own } else { own.min(CORE_TOOLS) },
                of_tools: own,
                of_queries: answerable,
                queries: facts.answerable,
                recall_at_5,
                by_seed,
                least,
                most,
            });
            outcomes.push((growth, facts));
        }
    }
    if let Some(path) = &args.svg {
        let svg = context_rot(outcomes).context("nothing to draw: no query can be answered at these sizes")?;
        replace_file(path, svg.as_bytes())?;
    }
    match args.format {
        Format::Json => print_json(out, "bench rot", &points)?,
        Format::Text => {
            let titles = ["distractors", "tools", "queries", "recall@5", "mean of the seeds", "least", "most"];
            let mut table = Table::new(titles);
            for point in &points {
                table.row([
                    point.grade.name().to_owned(),
                    count(point.tools),
                    count(point.queries),
                    estimate(&point.recall_at_5),
                    share(mean(point.by_seed.iter().copied())),
                    share(point.least),
                    share(point.most),
                ]);
            }
            write!(out, "{}", table.plain())?;
            writeln!(out, "\nrecall@5 with the first seed and its 95 % interval over queries; seeds: {}", args.seeds)?;
            for line in parts(&points) {
                writeln!(out, "{line}")?;
            }
        }
    }
    Ok(Exit::Ok)
}

/// Which part of the catalog and of the queries was used, and which sizes have fewer tools than the catalog.
fn parts(points: &[Point]) -> Vec<String> {
    let mut lines = Vec::new();
    let core = points.iter().find(|point| point.grade != Grade::Copies);
    if let Some(Point { own_tools, of_tools, queries, of_queries, .. }) = core {
        lines.push(format!(
            "of your catalog its core stands in every size: {} of {} tools, and the {} of {} queries that these answer",
            count(*own_tools),
            count(*of_tools),
            count(*queries),
            count(*of_queries)
        ));
    }
    let smaller: BTreeSet<usize> =
        points.iter().filter(|point| point.tools < point.of_tools).map(|point| point.tools).collect();
    if !smaller.is_empty() {
        let sizes: Vec<String> = smaller.into_iter().map(count).collect();
        lines.push(format!("sizes with fewer tools than your catalog, so easier than it is: {}", sizes.join(", ")));
    }
    lines
}
