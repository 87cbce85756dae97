//! `schema`: the JSON Schemas of the files that users write or read, for editors and for checks of one's own.

use std::io::Write;

use anyhow::{Result, anyhow};
use serde::Serialize;

use super::{Format, Outcome, print_json};

/// Declares every schema once: its name, and the files it is of. The text is `schemas/NAME.json`.
macro_rules! schemas {
    ($($name:literal: $files:literal,)+) => {
        /// Every schema, by name.
        const SCHEMAS: &[Schema] = &[$(Schema {
            name: $name,
            files: $files,
            text: include_str!(concat!("../../schemas/", $name, ".json")),
        }),+];
    };
}

schemas! {
    "answers": "answers to the calls of a catalog without servers, `mcp serve --answers` (JSON)",
    "audit": "a line of the audit log of a gateway (JSON lines)",
    "callers": "the callers of `serve`, `--callers` (YAML or JSON)",
    "catalog": "catalogs of tools (JSON or YAML)",
    "choice": "a line of the answers that `bench eval --record` writes (JSON lines)",
    "collection": "gold/*/collection.toml",
    "context": "configurations of the context engine (TOML)",
    "context-scenario": "scenarios/context/*.toml",
    "engines": "scenarios/engines.toml",
    "eval": "the output of `bench eval --format json`",
    "events": "a line of the events of a gateway, `diagnostics` (JSON lines)",
    "gate": "gate.toml of a workspace",
    "gateway": "gateway.yaml",
    "gateway-scenario": "scenarios/gateway/*.toml",
    "graph": "the output of `print-tree --format json`",
    "memory": "memory files (JSON)",
    "output": "the output of any command with `--format json`",
    "query": "a line of a queries file (JSON lines)",
    "results": "scorecard/results/*.json",
    "routing": "configurations of the router (TOML)",
    "scenario": "scenarios/*.toml",
    "session": "session files (JSON)",
    "timings": "scorecard/timings/timings.json",
    "workspace-results": "results.json of a workspace",
}

/// A JSON Schema of one kind of file.
#[derive(Debug, Serialize)]
struct Schema {
    name: &'static str,
    files: &'static str,
    #[serde(skip)]
    text: &'static str,
}

/// The schema of `gate.toml`, for the workspace that names it.
pub(super) const GATE: &str = include_str!("../../schemas/gate.json");

/// Print the JSON Schema of a kind of file, for editors and checks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  contextweaver schema
  contextweaver schema gateway > gateway.schema.json

Editors complete a file that names its schema in the first line:
  # yaml-language-server: $schema=gateway.schema.json
  #:schema routing.schema.json")]
pub(super) struct Args {
    /// The kind of file; without it, the kinds are listed
    name: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t, conflicts_with = "name")]
    format: Format,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    match (&args.name, args.format) {
        (Some(name), _) => {
            let found = SCHEMAS.iter().find(|schema| schema.name == name);
            let names = || SCHEMAS.iter().map(|schema| schema.name).collect::<Vec<_>>().join(", ");
            let found = found.ok_or_else(|| anyhow!("unknown schema `{name}`; use one of {}", names()))?;
            write!(out, "{}", found.text)?;
        }
        (None, Format::Json) => print_json(out, "schema", &SCHEMAS)?,
        (None, Format::Text) => {
            SCHEMAS.iter().try_for_each(|Schema { name, files, .. }| writeln!(out, "{name:<18}{files}"))?;
        }
    }
    Ok(Outcome::Ok)
}
