//! How an engine grows with the catalog, from a hundred tools to a million: counters and times.
//!
//! Catalogs come from [`scaled`] and queries from the collection around which they are made, so that only the size
//! differs from row to row. Counters are facts: the same on every machine, and computed again by `bench check` up to
//! [`GATED`] tools; the rows above take minutes and are kept as they were committed. Times are recorded apart.
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

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::collection::Collection;
use super::engine::{Engine, RouterEngine};
use super::growth::{SEED, scaled};
use super::latency::{self, Sample};
use super::record::Outcome;
use super::results::{Chapter, ChapterRecord};
use super::statistics::{mean, percentile, round6};
use super::timing::{Subject, Unit};
use crate::catalog::Catalog;
use crate::routing::{Depth, Index, Router, RoutingConfig, Scratch, TreeBuilder, open_index, save};
use crate::store::files_io::mapped;

/// The sizes at which growth is measured, ascending.
pub const SIZES: [usize; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];

/// The largest of them whose counters every run computes.
pub const GATED: usize = 100_000;

/// The collection around which the catalogs are made.
pub const COLLECTION: &str = "workbench";

/// The file of the times, in `scorecard/timings/`.
pub const TIMINGS_FILE: &str = "growth.csv";

/// The file of what `benches/rivals` measured, in `scorecard/timings/`.
pub const RIVALS_FILE: &str = "rivals.csv";

/// The content of `scorecard/results/scaling.json`.
pub type ScalingResults = Chapter<ScalingRecord>;

/// The default engine at one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalingRecord {
    /// The number of tools.
    pub case: String,
    /// The version of the engine: rows that are not computed again must not be taken for the work of another one.
    pub engine_version: String,
    /// SHA-256 (hex) of the collection around which the catalog was made.
    pub inputs_sha256: String,
    /// What was counted, or why nothing could be.
    pub outcome: Outcome<ScalingFacts>,
}

/// What was counted at one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalingFacts {
    /// Tools in the catalog.
    pub tools: usize,
    /// Servers that they are of.
    pub namespaces: usize,
    /// Distinct terms of the index.
    pub terms: usize,
    /// Postings of the index.
    pub postings: usize,
    /// Bytes of the index without vectors.
    pub index_bytes: usize,
    /// Queries that were asked.
    pub queries: usize,
    /// Postings of the terms of a query: the mean over the queries.
    pub touched_mean: f64,
    /// The same, 95th percentile.
    pub touched_p95: f64,
    /// Postings that a search by words for the first ten reads, since it may pass over some: the mean over the queries.
    pub read_mean: f64,
}

impl ChapterRecord for ScalingRecord {
    const NAME: &'static str = "scaling";
    const SCHEMA: u32 = 1;

    fn case(&self) -> &str {
        &self.case
    }
}

impl ScalingRecord {
    /// Counts at `size` tools around `base`.
    #[must_use]
    pub fn of(base: &Collection, engine: &RouterEngine, size: usize) -> Self {
        let counted = scaled(base, size, SEED).map(|catalog| facts(&catalog, base, engine));
        Self {
            case: size.to_string(),
            engine_version: engine.version(),
            inputs_sha256: base.inputs_sha256.clone(),
            outcome: counted.map_or_else(|error| Outcome::Failed(error.to_string()), Outcome::Measured),
        }
    }
}

/// The counters at all of `sizes`.
#[must_use]
pub fn count(base: &Collection, engine: &RouterEngine, sizes: &[usize]) -> Vec<ScalingRecord> {
    sizes.iter().map(|&size| ScalingRecord::of(base, engine, size)).collect()
}

fn facts(catalog: &Catalog, base: &Collection, engine: &RouterEngine) -> ScalingFacts {
    // The postings are the same with and without meaning, and the vectors would take most of the time.
    let index = Index::build(catalog, &RoutingConfig { semantic: 0.0, ..engine.config().clone() });
    let counts = |scratch: &mut Scratch, query: &super::collection::Query| {
        let analyzed = index.analyze(&query.text);
        black_box(index.search_query(&analyzed, Depth::Exactly(latency::TOP), |_| true, scratch));
        (index.postings_read(&analyzed) as f64, scratch.postings_read() as f64)
    };
    let counted: Vec<(f64, f64)> = base.queries.par_iter().map_init(Scratch::default, counts).collect();
    let mut touched: Vec<f64> = counted.iter().map(|(touched, _)| *touched).collect();
    touched.sort_by(f64::total_cmp);
    ScalingFacts {
        tools: catalog.len(),
        namespaces: catalog.namespaces().len(),
        terms: index.terms(),
        postings: index.postings_total(),
        index_bytes: index.bytes(),
        queries: touched.len(),
        touched_mean: round6(mean(touched.iter().copied())),
        touched_p95: round6(percentile(&touched, 95.0)),
        read_mean: round6(mean(counted.iter().map(|(_, read)| *read))),
    }
}

/// The committed rows that are not computed again.
#[must_use]
pub fn kept_records(committed: Option<&ScalingResults>) -> Vec<ScalingRecord> {
    let is_kept = |record: &&ScalingRecord| record.case.parse().is_ok_and(|size: usize| size > GATED);
    committed.into_iter().flat_map(|results| &results.records).filter(is_kept).cloned().collect()
}

/// What is wrong with the rows that are not computed again: each must be made by this engine, around this collection.
#[must_use]
pub fn wrong_rows(base: &Collection, engine: &RouterEngine, committed: Option<&ScalingResults>) -> Vec<String> {
    let version = engine.version();
    let is_wrong =
        |record: &ScalingRecord| record.engine_version != version || record.inputs_sha256 != base.inputs_sha256;
    let wrong = kept_records(committed).into_iter().filter(is_wrong);
    let message = |record: ScalingRecord| {
        format!("{} · {}: not of this engine and collection; `bench growth --record`", ScalingRecord::NAME, record.case)
    };
    wrong.map(message).collect()
}

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
) -> Result<Vec<Sample>, String> {
    let catalog = Arc::new(scaled(base, size, SEED).map_err(|error| error.to_string())?);
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
) -> Result<[Sample; 2], String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let router = Router::build(Arc::clone(catalog), engine.config().clone()).map_err(|error| text(&error))?;
    let path = folder.join(format!("{}.router", catalog.len()));
    fs::write(&path, save(&router).map_err(|error| text(&error))?).map_err(|error| text(&error))?;
    drop(router);
    let query = base.queries.first().map_or("", |query| query.text.as_str());
    let (mut ready, mut answered) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let start = Instant::now();
        let bytes = mapped(&path).map_err(|error| text(&error))?;
        let opened = open_index(bytes).map_err(|error| text(&error))?;
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

fn tree(engine: &RouterEngine, catalog: &Catalog, rounds: usize) -> Result<Sample, String> {
    let mut times = Vec::new();
    for _ in 0..rounds.max(1) {
        let start = Instant::now();
        black_box(TreeBuilder::new(engine.config().tree).build(catalog).map_err(|error| error.to_string())?);
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
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

#[cfg(test)]
mod tests {
    use super::super::collection::Source;
    use super::super::record::Origin;
    use super::*;

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
    fn counters_are_those_of_the_catalog_of_that_size() {
        let records = count(&base(), &engine(), &[100, 300]);
        let results = ScalingResults::new(engine().configuration(), records);
        let facts: Vec<ScalingFacts> = results
            .records
            .iter()
            .map(|record| match &record.outcome {
                Outcome::Measured(facts) => *facts,
                Outcome::Failed(message) => panic!("{message}"),
            })
            .collect();
        assert_eq!(facts.iter().map(|facts| facts.tools).collect::<Vec<_>>(), [100, 300]);
        assert!(facts[0].terms < facts[1].terms && facts[0].postings < facts[1].postings, "{facts:?}");
        assert!(facts[0].touched_mean >= 1.0, "{facts:?}");
        assert_eq!(ScalingResults::from_json(&results.to_json().unwrap()).unwrap(), results);
    }

    #[test]
    fn rows_that_are_not_computed_again_must_be_of_this_engine() {
        let mut record = ScalingRecord::of(&base(), &engine(), 60);
        record.case = (GATED * 10).to_string();
        let committed = ScalingResults::new(String::new(), vec![record.clone()]);
        assert_eq!(kept_records(Some(&committed)), [record]);
        assert_eq!(wrong_rows(&base(), &engine(), Some(&committed)), Vec::<String>::new());
        let other = RouterEngine::new("default", RoutingConfig::default());
        assert_eq!(wrong_rows(&base(), &other, Some(&committed)).len(), 1);
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
