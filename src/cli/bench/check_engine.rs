//! `bench check-engine`: whether a program keeps the rules of its door, rule by rule.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Args};

use super::end_engines_at_a_signal;
use crate::cli::source::CatalogSource;
use crate::cli::{Format, Outcome, print_json};
use contextweaver_bench::eval::imported::check_run;
use contextweaver_bench::eval::process::conformance::{Conformance, Rule, Verdict, check, check_context};
use contextweaver_bench::eval::process::mcp::SearchTool;
use contextweaver_bench::eval::process::{Door, ProcessEngine};
use contextweaver_core::files::ReadError;

pub(super) const EXAMPLE: &str = "\
Every rule of docs/engines.md is tried on a small built-in catalog, and a mistake does not end the check. Each line says
ok, wrong or not tried; a mistake is followed by what was sent, what came back, and what to do.

Examples:
  contextweaver bench check-engine --process 'python3 engine.py'
  contextweaver bench check-engine --context 'python3 context.py'
  contextweaver bench check-engine --mcp 'contextweaver mcp serve --config {upstreams}' \\
    --mcp-search-tool tool_browse --mcp-query-argument query --mcp-ids '/content/*/text'
  contextweaver bench check-engine --run theirs.tsv --catalog tools.json --queries queries.jsonl

Exit codes: 0 nothing is wrong, 1 something is, 2 it could not be started or read.";

/// Check your own engine rule by rule, before it is measured
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("engine").required(true).args(["process", "context", "mcp", "run"])))]
pub(in crate::cli) struct CheckEngineArgs {
    /// A program that ranks tools
    #[arg(long, value_name = "COMMAND")]
    process: Option<String>,
    /// A program that makes prompts, or shortens results
    #[arg(long, value_name = "COMMAND")]
    context: Option<String>,
    /// A gateway, with `{config}` or `{upstreams}` as in `bench eval`
    #[arg(long, value_name = "COMMAND", requires_all = ["mcp_search_tool", "mcp_query_argument", "mcp_ids"])]
    mcp: Option<String>,
    /// The tool of the gateway that searches
    #[arg(long, value_name = "TOOL", requires = "mcp")]
    mcp_search_tool: Option<String>,
    /// The argument of that tool that takes the query
    #[arg(long, value_name = "ARGUMENT", requires = "mcp")]
    mcp_query_argument: Option<String>,
    /// Where its result names tools: a JSON pointer, `*` for every element
    #[arg(long, value_name = "POINTER", requires = "mcp")]
    mcp_ids: Option<String>,
    /// A run file: rankings that another program wrote
    #[arg(long, value_name = "FILE", requires_all = ["catalog", "queries"])]
    run: Option<PathBuf>,
    /// The catalog of the run file; may be repeated
    #[arg(long, value_name = "PATH", requires = "run")]
    catalog: Vec<PathBuf>,
    /// The queries of the run file
    #[arg(long, value_name = "FILE", requires = "run")]
    queries: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &CheckEngineArgs, out: &mut dyn Write) -> Result<Outcome> {
    end_engines_at_a_signal(|| ())?;
    let found = found(args)?;
    let wrong = found.count(Verdict::Wrong);
    match args.format {
        Format::Json => print_json(out, "bench check-engine", &found)?,
        Format::Text => {
            found.rules.iter().try_for_each(|rule| print(rule, out))?;
            let (ok, untried) = (found.count(Verdict::Ok), found.count(Verdict::NotTried));
            writeln!(out, "\n{ok} ok, {wrong} wrong, {untried} not tried")?;
        }
    }
    Ok(if wrong == 0 { Outcome::Ok } else { Outcome::Drift })
}

fn found(args: &CheckEngineArgs) -> Result<Conformance> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    match args {
        CheckEngineArgs { process: Some(command), .. } => Ok(check(&ProcessEngine::parse(command)?)?),
        CheckEngineArgs { context: Some(command), .. } => Ok(check_context(&ProcessEngine::parse(command)?)?),
        CheckEngineArgs { mcp: Some(command), .. } => {
            let tool = SearchTool {
                name: text(&args.mcp_search_tool),
                argument: text(&args.mcp_query_argument),
                ids: text(&args.mcp_ids),
                player: std::env::current_exe().context("this program's own file")?,
            };
            Ok(check(&ProcessEngine { door: Door::Mcp(tool), ..ProcessEngine::parse(command)? })?)
        }
        CheckEngineArgs { run: Some(path), queries: Some(queries), catalog, .. } => {
            let source = CatalogSource { catalog: catalog.clone(), lenient: false };
            let collection = source.collection(queries)?;
            let text = fs::read_to_string(path).map_err(ReadError::at(path))?;
            Ok(check_run(&text, &collection))
        }
        _ => bail!("name an engine with --process, --context, --mcp or --run"),
    }
}

/// A line for the rule, and for a mistake what it is, what was sent, what came back, and what to do.
fn print(rule: &Rule, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{:<10} {:<10} {}", rule.verdict.words(), rule.rule, rule.says)?;
    let found = rule.found.iter().map(|found| ("found", found));
    let rest = [("sent", &rule.sent), ("got", &rule.got), ("do", &rule.fix)];
    let rest = rest.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
    found.chain(rest).try_for_each(|(name, text)| writeln!(out, "{:21} {name:<6} {text}", ""))?;
    Ok(())
}
