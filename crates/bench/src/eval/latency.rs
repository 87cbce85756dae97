//! What a search takes: wall time on one thread, after warm-up, in memory.
//!
//! Timings depend on the machine and its load. They are printed by every run and recorded only on request, in files
//! of their own; nothing is ever gated on them.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use super::collection::{Collection, Query};
use super::engine::Engine;
use super::error::EvalError;
use super::statistics::{mad, median, percentile};
use super::timing::{Subject, Unit};
use contextweaver_core::catalog::Catalog;
use contextweaver_routing::ChoiceCard;

/// Tools returned by a timed search.
pub const TOP: usize = 10;

/// A distribution of times.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// What was timed.
    pub subject: Subject,
    /// The engine, where one takes part.
    pub engine: Option<String>,
    /// Tools in the catalog, events in the log or megabytes of the result, as the subject says.
    pub tools: Option<usize>,
    /// The unit of the figures.
    pub unit: Unit,
    /// Number of samples.
    pub runs: usize,
    /// Median, in `unit`.
    pub median: f64,
    /// 95th percentile, in `unit`.
    pub p95: f64,
    /// 99th percentile, in `unit`.
    pub p99: f64,
    /// Median absolute deviation from the median.
    pub mad: f64,
}

impl Sample {
    /// The distribution of `times`, in any order.
    pub(super) fn of(
        subject: Subject,
        engine: Option<&str>,
        tools: Option<usize>,
        unit: Unit,
        mut times: Vec<f64>,
    ) -> Self {
        times.sort_by(f64::total_cmp);
        Self {
            subject,
            engine: engine.map(str::to_owned),
            tools,
            unit,
            runs: times.len(),
            median: median(&times),
            p95: percentile(&times, 95.0),
            p99: percentile(&times, 99.0),
            mad: mad(&times),
        }
    }
}

/// Times the preparation of `engine` for `catalog` and then every one of `queries`, `rounds` times each after a round
/// that is not counted. Every search is one sample.
///
/// # Errors
/// The engine's message when it cannot serve the catalog.
pub fn search(
    engine: &dyn Engine,
    catalog: &Arc<Catalog>,
    queries: &[Query],
    rounds: usize,
) -> Result<[Sample; 2], EvalError> {
    let tools = Some(catalog.len());
    let prepared = engine.prepare(catalog)?;
    let mut builds = Vec::new();
    for _ in 0..rounds.max(1) {
        let start = Instant::now();
        black_box(engine.prepare(catalog)?);
        builds.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let mut times = Vec::new();
    for round in 0..=rounds.max(1) {
        for query in queries {
            let start = Instant::now();
            black_box(prepared.top(&query.text, TOP));
            let time = start.elapsed().as_secs_f64() * 1e6;
            // The first round warms caches and branch predictors up.
            if round > 0 {
                times.push(time);
            }
        }
    }
    let name = Some(engine.name());
    Ok([
        Sample::of(Subject::Search, name, tools, Unit::Microseconds, times),
        Sample::of(Subject::IndexBuild, name, tools, Unit::Milliseconds, builds),
    ])
}

/// Times the cards of a whole catalog, per card: from the item to the bounded line with its exact token count.
///
/// # Errors
/// A card that breaks its bounds.
pub fn cards(collection: &Collection) -> Result<Sample, EvalError> {
    let mut times = Vec::new();
    for item in collection.catalog.items() {
        let start = Instant::now();
        black_box(ChoiceCard::of(item).map_err(EvalError::from)?);
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(Sample::of(Subject::Card, None, Some(times.len()), Unit::Microseconds, times))
}

/// Times whole processes: `program` with `arguments`, from start to exit, output thrown away.
///
/// # Errors
/// The program cannot be started or fails.
pub fn process(
    subject: Subject,
    tools: Option<usize>,
    program: &Path,
    arguments: &[&str],
    runs: usize,
) -> Result<Sample, EvalError> {
    let failed = |reason: &dyn std::fmt::Display| {
        EvalError::failed(&format!("{} {}", program.display(), arguments.join(" ")), reason)
    };
    let mut times = Vec::new();
    for run in 0..=runs {
        let start = Instant::now();
        let status = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).status();
        let status = status.map_err(|error| failed(&error))?;
        if !status.success() {
            return Err(failed(&status));
        }
        if run > 0 {
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(Sample::of(subject, None, tools, Unit::Milliseconds, times))
}
