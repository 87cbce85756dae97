//! `catalog diff --impact`: what a change of a catalog does to routing and tokens, and whether that is allowed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::cli::bench::threshold;
use crate::cli::source::read_config;
use crate::cli::{Outcome, print_document, print_json};
use contextweaver_bench::eval::collection::asked;
use contextweaver_bench::eval::engine::RouterEngine;
use contextweaver_bench::eval::matrix::DEFAULT;
use contextweaver_bench::eval::measure::Measure;
use contextweaver_bench::own::checks::{Budget, Check, checks, fails};
use contextweaver_bench::own::formats;
use contextweaver_bench::own::impact::{Impact, Sides, measure};
use contextweaver_core::catalog::{Catalog, DiffReport};

/// What is measured of a change, and what must hold.
#[derive(Debug, Args)]
pub(super) struct ImpactArgs {
    /// Measure what the change does to routing, and judge it; needs --queries
    #[arg(long, requires = "queries", help_heading = "Impact")]
    pub(super) impact: bool,
    /// Queries, one JSON object per line, naming tools of either catalog
    #[arg(long, value_name = "FILE", requires = "impact", help_heading = "Impact")]
    queries: Option<PathBuf>,
    /// Routing configuration (TOML) [default: built in]
    #[arg(long, value_name = "FILE", requires = "impact", help_heading = "Impact")]
    config: Option<PathBuf>,
    /// Fail when all definitions of the new catalog take more tokens than this
    #[arg(long, value_name = "TOKENS", requires = "impact", help_heading = "Impact")]
    max_tokens: Option<usize>,
    /// Fail when a measure of the new catalog is below a value; may be repeated
    #[arg(long, value_name = "MEASURE=VALUE", requires = "impact", help_heading = "Impact", value_parser = threshold)]
    fail_under: Vec<(Measure, f64)>,
}

/// The form of the output of `catalog diff`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum DiffFormat {
    /// For people.
    #[default]
    Text,
    /// For machines: one JSON document.
    Json,
    /// For a comment; with --impact.
    Markdown,
    /// JUnit XML, one case per check; with --impact.
    Junit,
    /// SARIF 2.1.0, which points at the definition at fault; with --impact.
    Sarif,
}

#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    impact: &'a Impact,
    checks: &'a [Check],
}

/// Measures and prints what the change does; a failed check is exit code 1.
pub(super) fn run(
    args: &ImpactArgs,
    format: DiffFormat,
    [old_path, new_path]: [&Path; 2],
    [old, new]: [Catalog; 2],
    diff: &DiffReport,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let queries_path = args.queries.as_deref().unwrap_or(Path::new(""));
    let queries = asked(queries_path)?;
    let engine = RouterEngine::new(DEFAULT, read_config(args.config.as_deref())?);
    let (old, new) = (Arc::new(old), Arc::new(new));
    let sides = Sides { old_path, old: &old, new_path, new: &new, diff };
    let impact = measure(sides, queries_path, &queries, &engine)?;
    let budget = Budget { most_tokens: args.max_tokens, least: args.fail_under.clone() };
    let checks = checks(&impact, &budget);
    match format {
        DiffFormat::Text => write!(out, "{}", formats::text(&impact, &checks))?,
        DiffFormat::Markdown => write!(out, "{}", formats::markdown(&impact, &checks))?,
        DiffFormat::Json => print_json(out, "catalog diff", &Output { impact: &impact, checks: &checks })?,
        DiffFormat::Junit => write!(out, "{}", formats::junit(&checks))?,
        DiffFormat::Sarif => print_document(out, &formats::sarif(&checks, new_path))?,
    }
    Ok(if fails(&checks) { Outcome::Drift } else { Outcome::Ok })
}
