//! What a run times: every engine as a catalog grows, a card, a prompt, and whole processes.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use super::collection::Collection;
use super::context::timing as context_timing;
use super::engine::{Engine, RouterEngine};
use super::error::EvalError;
use super::latency::{self, Sample};
use super::record::{Grade, Growth};
use super::run::grown;
use super::timing::Subject;
use super::workspace::Bench;
use contextweaver_context::summary::StructureSummarizer;

/// Sizes at which searches are timed.
const SIZES: [usize; 5] = [50, 250, 1000, 5000, 10_000];

/// The collection whose growth is timed.
pub const COLLECTION: &str = "workbench";

/// The size at which engines with a sentence encoder are timed: encoding thousands of tools takes minutes.
const ENCODED_SIZE: usize = 1_000;

/// The size at which whole processes are timed.
const PROCESS_SIZE: usize = 1_000;

/// The times of a run; none in a checkout without [`COLLECTION`]. With `program`, the path of this program, more rounds
/// are taken and whole processes of it are timed too, as a recording needs. `step` is called before every engine.
///
/// # Errors
/// An engine that cannot serve a catalog, or a process that cannot be started.
pub fn samples(bench: &Bench, program: Option<&Path>, step: &(dyn Fn(&str) + Sync)) -> Result<Vec<Sample>, EvalError> {
    let rounds = if program.is_some() { 9 } else { 3 };
    let Some(collection) = bench.collections.get(COLLECTION) else { return Ok(Vec::new()) };
    let mut samples = Vec::new();
    let mut last = Arc::clone(collection);
    for size in SIZES {
        last = grown(collection, Some(Growth { grade: Grade::Mixed, size }))?;
        let is_timed = |engine: &RouterEngine| !engine.has_encoder() || size == ENCODED_SIZE;
        for spec in bench.matrix.engines.iter().filter(|spec| is_timed(&spec.engine)) {
            step(&format!("timing {} at {size} tools", spec.engine.name()));
            samples.extend(latency::search(&spec.engine, &last.catalog, &last.queries, rounds)?);
        }
        if let Some(program) = program.filter(|_| size == PROCESS_SIZE) {
            samples.extend(cold_processes(program, &last)?);
        }
    }
    samples.push(latency::cards(&last)?);
    let context = context_timing::samples(&StructureSummarizer, rounds);
    samples.extend(context.map_err(|reason| EvalError::failed("timing the context engine", reason))?);
    Ok(samples)
}

/// Whole processes of `program`: `route` on the catalog of `collection`, and `--help`.
fn cold_processes(program: &Path, collection: &Collection) -> Result<[Sample; 2], EvalError> {
    const RUNS: usize = 30;
    let failed = |error: std::io::Error| EvalError::failed("a catalog for timed processes", error);
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().map_err(failed)?;
    file.write_all(collection.catalog.to_native_json().as_bytes()).map_err(failed)?;
    let path = file.path().to_string_lossy().into_owned();
    let tools = Some(collection.catalog.len());
    let route = ["route", "--catalog", path.as_str(), "open a ticket about the login bug"];
    Ok([
        latency::process(Subject::RouteColdProcess, tools, program, &route, RUNS)?,
        latency::process(Subject::HelpColdProcess, None, program, &["--help"], RUNS)?,
    ])
}
