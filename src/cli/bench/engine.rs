//! `bench engine`: our router as a program of the protocol in `docs/engines.md`, so that it comes in by the door of others.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, anyhow};
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::Outcome;
use crate::cli::source::read_config;
use contextweaver_bench::eval::engine::{Engine, Prepared, RouterEngine};
use contextweaver_bench::eval::matrix;
use contextweaver_bench::eval::process::PROTOCOL;
use contextweaver_core::catalog::Catalog;
use contextweaver_core::files::ReadError;

pub(super) const EXAMPLE: &str = "\
Example:
  contextweaver bench eval --catalog tools.json --queries queries.jsonl \\
    --engine default --process 'same=contextweaver bench engine'";

/// Answer queries over standard input and output, by the protocol of docs/engines.md
#[derive(Debug, Args)]
pub(in crate::cli) struct EngineArgs {
    /// An engine of the scorecard [default: default]
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    engine: Option<String>,
    /// Routing configuration (TOML) [default: built in]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// What may be asked.
#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Request {
    Hello { protocol: u32 },
    Load { catalog: PathBuf },
    Route { id: String, query: String, k: usize },
    Ping { id: String },
}

/// A catalog that is ready, with the id of each item.
struct Loaded {
    prepared: Box<dyn Prepared>,
    ids: Vec<String>,
}

pub(super) fn run(args: &EngineArgs, out: &mut dyn Write) -> Result<Outcome> {
    let engine = match &args.engine {
        Some(name) => matrix::builtin_engine(name)?,
        None => RouterEngine::new("default", read_config(args.config.as_deref())?),
    };
    let mut loaded: Option<Loaded> = None;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let answer = match serde_json::from_str::<Request>(&line) {
            Err(error) => json!({"error": format!("not a request of protocol {PROTOCOL}: {error}")}),
            Ok(Request::Hello { protocol }) if protocol != PROTOCOL => {
                json!({"unsupported": format!("protocol {protocol}; this is {PROTOCOL}")})
            }
            Ok(Request::Hello { .. }) => json!({
                "ok": true, "name": "contextweaver", "version": env!("CARGO_PKG_VERSION"), "can": ["route"],
                "deterministic": true
            }),
            Ok(Request::Load { catalog }) => {
                let start = Instant::now();
                match load(&engine, &catalog) {
                    Ok(one) => {
                        let tools = one.ids.len();
                        loaded = Some(one);
                        json!({"ok": true, "tools": tools, "us": micros(start)})
                    }
                    Err(error) => json!({"error": format!("{error:#}")}),
                }
            }
            Ok(Request::Route { id, query, k }) => match &loaded {
                None => json!({"id": id, "error": "no catalog is loaded"}),
                Some(loaded) => {
                    let start = Instant::now();
                    let mut hits = loaded.prepared.rank(&query, k).hits;
                    // Equal scores go on beyond the last place.
                    hits.truncate(k);
                    let tools: Vec<&str> = hits.iter().map(|hit| loaded.ids[hit.item as usize].as_str()).collect();
                    let scores: Vec<u64> = hits.iter().map(|hit| hit.score).collect();
                    json!({"id": id, "tools": tools, "scores": scores, "us": micros(start)})
                }
            },
            Ok(Request::Ping { id }) => json!({"id": id}),
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(Outcome::Ok)
}

fn load(engine: &RouterEngine, path: &PathBuf) -> Result<Loaded> {
    let text = std::fs::read_to_string(path).map_err(ReadError::at(path))?;
    let lines: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let catalog = Arc::new(Catalog::from_values(&lines, None)?);
    let id = |raw: &str| serde_json::from_str::<Value>(raw).ok()?.get("id")?.as_str().map(str::to_owned);
    let ids = catalog.items().iter().map(|item| id(item.raw.as_ref()?.get()));
    let ids = ids.collect::<Option<Vec<String>>>().ok_or_else(|| anyhow!("a tool without an id"))?;
    Ok(Loaded { prepared: engine.prepare(&catalog)?, ids })
}

fn micros(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
}
