//! `bench rot`: what is left of recall on your queries as your catalog grows.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;

use crate::cli::source::{CatalogSource, read_config};
use crate::cli::{Format, Outcome as Exit, note, print_json};
use contextweaver_bench::chapters::routing::context_rot;
use contextweaver_bench::eval::engine::RouterEngine;
use contextweaver_bench::eval::files::replace_file;
use contextweaver_bench::eval::record::{Estimate, Grade, Growth};
use contextweaver_bench::eval::run::{PromptTokens, evaluate, grown};

pub(super) const EXAMPLE: &str = "\
Examples:
  contextweaver bench rot --catalog tools.json --queries queries.jsonl
  contextweaver bench rot --catalog tools.json --queries queries.jsonl --grade near_duplicate --size 200 --size 2000
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
    /// Draw the curve into this file
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
    queries: usize,
    recall_at_5: Estimate,
}

pub(super) fn run(args: &RotArgs, out: &mut dyn Write) -> Result<Exit> {
    let collection = args.source.collection(&args.queries)?;
    if collection.counts().answerable == 0 {
        bail!("{}: no query has a relevant tool, so there is no recall to lose", args.queries.display());
    }
    let collection = std::sync::Arc::new(collection);
    let engine = RouterEngine::new("yours", read_config(args.config.as_deref())?);
    let grades: Vec<Grade> = if args.grade.is_empty() { Grade::DISTRACTORS.to_vec() } else { args.grade.clone() };
    let sizes: Vec<usize> = if args.size.is_empty() {
        contextweaver_bench::eval::growth::SIZES.to_vec()
    } else {
        args.size.iter().map(|&size| size as usize).collect()
    };
    let mut points = Vec::new();
    let mut outcomes = Vec::new();
    for &grade in &grades {
        for &size in &sizes {
            let growth = Growth { grade, size };
            let grown = match grown(&collection, Some(growth)) {
                Ok(grown) => grown,
                // The usual sizes are tried as far as they go; a size that was asked for must work.
                Err(error) if args.size.is_empty() => {
                    note(&error.to_string());
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let facts = evaluate(&grown, &engine, PromptTokens::Skip)?.facts;
            let Some(&recall_at_5) = facts.measures.get("recall@5") else { continue };
            points.push(Point { grade, tools: facts.tools, queries: facts.answerable, recall_at_5 });
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
            writeln!(out, "{:<16} {:>7} {:>8}   recall@5 (95 % interval)", "distractors", "tools", "queries")?;
            for point in &points {
                let Estimate { mean, low, high } = point.recall_at_5;
                let (grade, tools, queries) = (point.grade.name(), point.tools, point.queries);
                writeln!(out, "{grade:<16} {tools:>7} {queries:>8}   {mean:.3} [{low:.3}, {high:.3}]")?;
            }
        }
    }
    Ok(Exit::Ok)
}
