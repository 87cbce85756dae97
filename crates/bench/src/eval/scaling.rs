//! The times of an engine as the catalog grows, from a hundred tools to a million.
//!
//! Catalogs come from [`scaled`] and queries from the collection around which they are made, so that only the size
//! differs from row to row. Counters are facts and not here (they are of the chapter `scaling`).
//!
//! Growth is summed up as a slope: quantity ∝ tools^slope, fitted by least squares to the logarithms of both. A slope
//! of 0 is what the number of tools does not change, 1 what is in proportion to it.
//!
//! What the tools are makes no difference here; whether the right ones are found is not asked.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::collection::Collection;
use super::engine::{Engine, RouterEngine};
use super::error::EvalError;
use super::growth::{SEED, scaled};
use super::latency::{self, Sample};
use super::statistics::mean;
use super::timing::{Subject, Unit};
use contextweaver_core::catalog::Catalog;
use contextweaver_core::files::mapped;
use contextweaver_routing::{Depth, RouteError, Router, Scratch, TreeBuilder, open_index, save};

/// The sizes at which growth is measured, ascending.
pub const SIZES: [usize; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];

/// The collection around which the catalogs are made.
pub const COLLECTION: &str = "workbench";

/// The file of the times, in `scorecard/timings/`.
pub const TIMINGS_FILE: &str = "growth.csv";

/// The file of what `benches/rivals` measured, in `scorecard/timings/`.
pub const RIVALS_FILE: &str = "rivals.csv";

/// The times at `size` tools around `base`: searches and builds of each of `engines`, and of the first one the opening
/// of a saved index by mapping its file, alone and up to the answer to a first query, and the choice graph.
///
/// # Errors
/// What an engine says when it cannot serve the catalog, or the file system when nothing can be saved in `folder`.
pub fn times(
    base: &Collection,
    engines: &[&RouterEngine],
    size: usize,
    rounds: usize,
    folder: &Path,
) -> Result<Vec<Sample>, EvalError> {
    let catalog = Arc::new(scaled(base, size, SEED)?);
    let mut samples = Vec::new();
    for engine in engines {
        samples.extend(latency::search(*engine, &catalog, &base.queries, rounds)?);
    }
    if let Some(engine) = engines.first() {
        samples.extend(opening(base, engine, &catalog, rounds, folder)?);
        samples.push(tree(engine, &catalog, rounds)?);
    }
    Ok(samples)
}

fn opening(
    base: &Collection,
    engine: &RouterEngine,
    catalog: &Arc<Catalog>,
    rounds: usize,
    folder: &Path,
) -> Result<[Sample; 2], EvalError> {
    let router = Router::build(Arc::clone(catalog), engine.config().clone())?;
    let path = folder.join(format!("{}.router", catalog.len()));
    let failed = |error: &dyn std::fmt::Display| EvalError::failed(&path.display().to_string(), error);
    fs::write(&path, save(&router)?).map_err(|error| failed(&error))?;
    drop(router);
    let query = base.queries.first().map_or("", |query| query.text.as_str());
    let (mut ready, mut answered) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let start = Instant::now();
        let bytes = mapped(&path).map_err(|error| failed(&error))?;
        let opened = open_index(bytes).map_err(RouteError::from)?;
        let open = start.elapsed();
        let depth = Depth::Exactly(latency::TOP);
        black_box(opened.search(query, depth, |_| true, &mut Scratch::default()));
        // The first round warms the system's cache of the file up.
        if round > 0 {
            answered.push(start.elapsed().as_secs_f64() * 1e3);
            ready.push(open.as_secs_f64() * 1e3);
        }
    }
    let sample =
        |subject, times| Sample::of(subject, Some(engine.name()), Some(catalog.len()), Unit::Milliseconds, times);
    Ok([sample(Subject::Open, ready), sample(Subject::OpenAndAnswer, answered)])
}

fn tree(engine: &RouterEngine, catalog: &Catalog, rounds: usize) -> Result<Sample, EvalError> {
    let mut times = Vec::new();
    for _ in 0..rounds.max(1) {
        let start = Instant::now();
        black_box(TreeBuilder::new(engine.config().tree).build(catalog).map_err(RouteError::from)?);
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Sample::of(Subject::TreeBuild, None, Some(catalog.len()), Unit::Milliseconds, times))
}

/// The least-squares slope of log y over log x; `None` with fewer than two sizes or where something is not above zero.
#[must_use]
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    if points.iter().any(|(x, y)| !(*x > 0.0 && *y > 0.0)) {
        return None;
    }
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (libm::log(*x), libm::log(*y))).collect();
    let (x_mean, y_mean) = (mean(logs.iter().map(|log| log.0)), mean(logs.iter().map(|log| log.1)));
    let spread: f64 = logs.iter().map(|(x, _)| (x - x_mean) * (x - x_mean)).sum();
    let shared: f64 = logs.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    (spread > 0.0).then(|| shared / spread)
}

/// One value that `benches/rivals` measured, of this project's engines or another library. The fields are the columns
/// of
/// [`RIVALS_FILE`], in this order. Values belong to the machine and the day on which they were taken, and are shown,
/// never gated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RivalRow {
    /// The engine of this project, or the name of the library.
    pub engine: String,
    /// Tools in the catalog.
    pub tools: usize,
    /// What was measured: `search p50`, `search p95`, `index build`, `index bytes` or `top 10 shared`.
    pub measure: String,
    /// The measured value, in `unit`.
    pub value: f64,
    /// The unit of the value.
    pub unit: String,
}

#[cfg(test)]
mod tests {
    use super::super::collection::Source;
    use super::super::record::Origin;
    use super::*;
    use contextweaver_routing::RoutingConfig;

    fn base() -> Collection {
        let source = |text: &'static str| Source { path: Path::new("test"), bytes: text.as_bytes() };
        let tools = r#"[{"name": "create_issue", "description": "Open a ticket", "server": "forge"}]"#;
        let queries = r#"{"id": "1", "query": "open a ticket", "relevant": ["create_issue"]}"#;
        Collection::from_bytes("test", Origin::Embedded, source(tools), source(queries)).unwrap()
    }

    fn engine() -> RouterEngine {
        RouterEngine::new("lexical", RoutingConfig { semantic: 0.0, ..RoutingConfig::default() })
    }

    #[test]
    fn a_slope_is_the_exponent_of_a_power() {
        let power = |exponent: f64| SIZES.map(|size| (size as f64, 3.0 * (size as f64).powf(exponent)));
        for exponent in [0.0, 0.5, 1.0, -1.0] {
            assert!((slope(&power(exponent)).unwrap() - exponent).abs() < 1e-12, "{exponent}");
        }
        // By hand: logarithms to the base 10 are (0, 0), (1, 1), (2, 1); 1/2.
        assert!((slope(&[(1.0, 1.0), (10.0, 10.0), (100.0, 10.0)]).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(slope(&[(1.0, 1.0)]), None);
        assert_eq!(slope(&[(1.0, 1.0), (10.0, 0.0)]), None);
    }

    #[test]
    fn every_time_is_taken_once() {
        use Subject::{IndexBuild, Open, OpenAndAnswer, Search, TreeBuild};
        let folder = tempfile::tempdir().unwrap();
        let samples = times(&base(), &[&engine()], 60, 1, folder.path()).unwrap();
        let subjects: Vec<Subject> = samples.iter().map(|sample| sample.subject).collect();
        assert_eq!(subjects, [Search, IndexBuild, Open, OpenAndAnswer, TreeBuild]);
    }
}
