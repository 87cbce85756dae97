//! `bench eval`: the measures of the scorecard on anybody's catalog and queries.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use crate::cli::source::{CatalogSource, read_config};
use crate::cli::{Format, Outcome, note, print_json};
use contextweaver_bench::chapters::routing::facts;
use contextweaver_bench::eval::engine::RouterEngine;
use contextweaver_bench::eval::export;
use contextweaver_bench::eval::files::{make_folder, replace_file};
use contextweaver_bench::eval::record::Facts;
use contextweaver_bench::eval::run::{Evaluation, PromptTokens, against, evaluate};

pub(super) const EXAMPLE: &str = "\
Queries are JSON lines; `relevant` names tools as in the catalog, an empty list means that no tool answers:
  {\"id\": \"q1\", \"query\": \"who is on call\", \"relevant\": [\"get_oncall\"]}
  {\"id\": \"q2\", \"query\": \"order a pizza\", \"relevant\": []}

Examples:
  contextweaver bench eval --catalog tools.json --queries queries.jsonl
  contextweaver bench eval --catalog tools.json --queries queries.jsonl --config a.toml --config b.toml
  contextweaver bench eval --catalog tools.json --queries queries.jsonl --run-out run.tsv --format json

With several configurations each is compared with the first, query by query.";

/// Measure the engine on your own catalog and queries
#[derive(Debug, Args)]
pub(in crate::cli) struct EvalArgs {
    #[command(flatten)]
    source: CatalogSource,
    /// Queries, one JSON object a line
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Routing configuration (TOML); may be repeated to compare [default: built in]
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// Write the ranking of the first configuration: query_id, rank and tool name, tab-separated
    #[arg(long, value_name = "FILE")]
    run_out: Option<PathBuf>,
    /// Write qrels and runs in TREC form, and our measures, into this folder
    #[arg(long, value_name = "DIR")]
    trec_out: Option<PathBuf>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Output<'a> {
    inputs_sha256: &'a str,
    evaluations: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    configuration: &'a str,
    facts: &'a Facts,
}

pub(super) fn run(args: &EvalArgs, out: &mut dyn Write) -> Result<Outcome> {
    let collection = args.source.collection(&args.queries)?;
    let mut evaluations: Vec<(String, Evaluation)> = Vec::new();
    for (name, path) in configurations(&args.config) {
        let engine = RouterEngine::new(&name, read_config(path)?);
        let mut evaluation = evaluate(&collection, &engine, PromptTokens::Count).with_context(|| name.clone())?;
        if let Some((first, baseline)) = evaluations.first() {
            let paired = against(first, &baseline.recall_at_5, &evaluation.recall_at_5);
            evaluation.facts.versus_control = Some(paired);
        }
        evaluations.push((name, evaluation));
    }
    let Some((_, first)) = evaluations.first() else { return Ok(Outcome::Ok) };
    // Everything is made before the first file is written.
    let mut files = Vec::new();
    if let Some(folder) = &args.trec_out {
        let exported = export::trec(&collection, first)?;
        make_folder(folder)?;
        files.extend(exported.into_iter().map(|(name, bytes)| (folder.join(name), bytes)));
    }
    if let Some(path) = &args.run_out {
        files.push((path.clone(), export::tab_run(&collection, first)?));
    }
    for (path, bytes) in &files {
        replace_file(path, bytes)?;
    }
    if first.facts.answerable == 0 {
        note("no query has a relevant tool: there is nothing to measure but abstention and tokens");
    }
    match args.format {
        Format::Json => {
            let evaluations = evaluations
                .iter()
                .map(|(configuration, evaluation)| Entry { configuration, facts: &evaluation.facts })
                .collect();
            print_json(out, &Output { inputs_sha256: &collection.inputs_sha256, evaluations })?;
        }
        Format::Text => {
            for (number, (name, evaluation)) in evaluations.iter().enumerate() {
                if number > 0 {
                    writeln!(out)?;
                }
                writeln!(out, "configuration: {name}")?;
                write!(out, "{}", facts(&evaluation.facts))?;
            }
        }
    }
    Ok(Outcome::Ok)
}

/// The configurations by name: the file stem, or `default` for the one built in.
fn configurations(paths: &[PathBuf]) -> Vec<(String, Option<&Path>)> {
    if paths.is_empty() {
        return vec![("default".to_owned(), None)];
    }
    paths.iter().map(|path| (path.display().to_string(), Some(path.as_path()))).collect()
}
