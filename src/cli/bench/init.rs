//! `bench init`: a folder with a catalog of one's own, its queries and its gate.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;

use crate::cli::init::write_all;
use crate::cli::{Outcome, schema};
use contextweaver_bench::eval::collection::Collection;
use contextweaver_bench::eval::draft::Requests;
use contextweaver_bench::eval::engine::RouterEngine;
use contextweaver_bench::eval::files::replace_file;
use contextweaver_bench::eval::matrix::DEFAULT;
use contextweaver_bench::eval::measure::Measure;
use contextweaver_bench::eval::record::Origin;
use contextweaver_bench::eval::run::{PromptTokens, evaluate};
use contextweaver_bench::own::template::{self, CATALOG, QUERIES, README, SCHEMA, Start};
use contextweaver_bench::own::workspace::{GATE_FILE, YOURS};
use contextweaver_core::catalog::{Catalog, LoadOptions, inspect, load};
use contextweaver_core::files::ReadError;
use contextweaver_core::text::Estimator;
use contextweaver_gateway::quoted;
use contextweaver_routing::RoutingConfig;

pub(super) const EXAMPLE: &str = "\
The folder gets gate.toml, with a paragraph for each threshold, and its schema for editors,
catalog.json, queries.jsonl and a short README.md. Without --catalog it must already contain a catalog.json, which is
kept. Without --queries it gets drafts, which are not measured until they are reviewed. No file is overwritten.

Examples:
  contextweaver bench init gate --catalog tools.json --queries queries.jsonl
  contextweaver mcp capture --out catalog.json -- uvx mcp-server-git
  contextweaver bench init gate --catalog catalog.json";

/// Make a workspace for your own catalog: its gate, its queries, and how to run it in CI
#[derive(Debug, Args)]
pub(in crate::cli) struct InitArgs {
    /// The folder of the workspace
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The catalog: a file, or a folder with one file per server
    #[arg(long, value_name = "PATH")]
    catalog: Option<PathBuf>,
    /// Queries, one JSON object per line
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
}

pub(super) fn run(args: &InitArgs, out: &mut dyn Write) -> Result<Outcome> {
    let place = |name: &str| args.folder.join(name);
    let kept = args.catalog.is_none();
    for name in [GATE_FILE, QUERIES, README, SCHEMA].into_iter().chain((!kept).then_some(CATALOG)) {
        if place(name).exists() {
            bail!(
                "{}: it already exists, and nothing is overwritten; name another folder, or remove it",
                place(name).display()
            );
        }
    }
    let source = args.catalog.clone().unwrap_or_else(|| place(CATALOG));
    if kept && !source.is_file() {
        bail!(
            "{}: no such catalog; name one with --catalog; `contextweaver mcp capture --out FILE -- COMMAND` writes \
             one",
            source.display()
        );
    }
    // Everything is made, and checked, before the first file is written.
    let files = workspace(&args.folder, &source, args.queries.as_deref())?;
    let drafts = args.queries.is_none();
    if args.folder.exists() {
        for (name, bytes) in files.iter().filter(|(name, _)| !kept || *name != CATALOG) {
            replace_file(&place(name), bytes)?;
        }
    } else {
        write_all(&args.folder, &files)?;
    }
    let folder = args.folder.display();
    writeln!(out, "{folder}: a workspace with {GATE_FILE}, {SCHEMA}, {CATALOG}, {QUERIES} and {README}")?;
    if drafts {
        writeln!(out, "next: review the drafts in {}, then run", place(QUERIES).display())?;
    } else {
        writeln!(out, "next: read {}, then run", place(GATE_FILE).display())?;
    }
    writeln!(out, "  contextweaver bench run --root {}", quoted(&folder.to_string()))?;
    Ok(Outcome::Ok)
}

/// The files of a workspace in `folder`, by name: a catalog of `source`, and the queries or drafts for it. Nothing is written.
/// The last one is the gate: with it, a folder is a workspace.
///
/// # Errors
/// A catalog or queries that cannot be read, a catalog without a tool, a query that fits none.
pub(in crate::cli) fn workspace(
    folder: &Path,
    source: &Path,
    queries: Option<&Path>,
) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let catalog = load(&[source], LoadOptions::default())?.catalog;
    if catalog.items().is_empty() {
        bail!("{}: it holds no tool", source.display());
    }
    let bytes = snapshot(source, &catalog)?;
    let tokens = inspect(&catalog, Estimator::Cl100kBase).tokens;
    let (asked, recall_at_5) = match queries {
        Some(path) => (std::fs::read(path).map_err(ReadError::at(path))?, measured(catalog, path)?),
        None => (Requests::default().drafts(Some(&catalog)).to_jsonl().into_bytes(), None),
    };
    Ok(vec![
        (CATALOG, bytes),
        (QUERIES, asked),
        (README, template::readme(folder, queries.is_none()).into_bytes()),
        (SCHEMA, schema::GATE.as_bytes().to_vec()),
        (GATE_FILE, template::gate(Start { recall_at_5, tokens }).into_bytes()),
    ])
}

/// The bytes of the workspace's own catalog: those of a JSON file, which keep its lines; else the native form.
fn snapshot(source: &Path, catalog: &Catalog) -> Result<Vec<u8>> {
    let is_json = source.is_file() && source.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    if is_json {
        return Ok(std::fs::read(source).map_err(ReadError::at(source))?);
    }
    Ok(catalog.to_native_json().into_bytes())
}

/// recall@5 of the default engine; `None` when no query has an answer.
fn measured(catalog: Catalog, queries: &Path) -> Result<Option<f64>> {
    let collection = Collection::of_catalog(YOURS, Origin::Public, Arc::new(catalog), queries)?;
    let engine = RouterEngine::new(DEFAULT, RoutingConfig::default());
    let facts = evaluate(&collection, &engine, PromptTokens::Skip)?.facts;
    Ok(facts.measures.get(&Measure::RECALL_5.to_string()).map(|estimate| estimate.mean))
}
