//! Measures of routing on a catalog and queries of one's own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use serde::{Deserialize, Serialize};

use contextweaver_bench::chapters::routing::facts;
use contextweaver_bench::eval::collection::{Collection, Source};
use contextweaver_bench::eval::engine::{EncoderChoice, RouterEngine};
use contextweaver_bench::eval::imported::rankings_of;
use contextweaver_bench::eval::matrix::builtin_engine;
use contextweaver_bench::eval::record::{Facts, Origin};
use contextweaver_bench::eval::run::{self, PromptTokens, evaluate_imported};
use contextweaver_core::files::ReadError;
use contextweaver_routing::RoutingConfig;

use crate::catalog::catalog_of;
use crate::errors::{self, EvaluationError};
use crate::json;
use crate::threads::together;

/// Measures an engine on queries, as `contextweaver bench eval` does.
///
/// `catalog` is a Catalog, a list of definitions, or a path. `queries` is the path of a file of JSON lines, or a list
/// of mappings: `{"id": "q1", "query": "who is on call", "relevant": ["get_oncall"]}`. `engine` is the name of an
/// engine of the scorecard (`default`, `bm25`, `best` …), or a function that takes a query and returns names or ids of
/// tools, best first. `config` is as for a Router, and replaces the engine's.
///
/// Raises CatalogError, ConfigError or EvaluationError; what a function raises is passed on.
#[pyfunction]
#[pyo3(signature = (catalog, queries, /, *, engine=None, config=None, model=false))]
pub(crate) fn evaluate(
    py: Python<'_>,
    catalog: &Bound<'_, PyAny>,
    queries: &Bound<'_, PyAny>,
    engine: Option<&Bound<'_, PyAny>>,
    config: Option<&Bound<'_, PyAny>>,
    model: bool,
) -> PyResult<Evaluation> {
    let catalog = catalog_of(catalog)?;
    let (path, bytes) = self::queries(queries)?;
    let collection = together(py, || {
        let source = Source { path: &path, bytes: &bytes };
        Collection::of_parts("yours", Origin::Public, Arc::clone(&catalog.get().inner), source)
    });
    let collection = collection.map_err(errors::evaluation)?;
    let evaluation = match engine.filter(|engine| engine.is_callable()) {
        Some(function) => {
            let found = answers(&collection, function)?;
            together(py, || {
                let rankings = rankings_of(&found, &collection).map_err(errors::evaluation)?;
                evaluate_imported(&collection, rankings, PromptTokens::Count).map_err(errors::evaluation)
            })?
        }
        None => {
            let engine = self::engine(engine, config, model)?;
            together(py, || run::evaluate(&collection, &engine, PromptTokens::Count)).map_err(errors::evaluation)?
        }
    };
    let outcomes = collection.queries.iter().zip(&evaluation.outcomes);
    let ranks = outcomes
        .filter_map(|(query, outcome)| Some((query.id.clone(), outcome.as_ref()?.found.ranks().to_vec())))
        .collect();
    Ok(Evaluation(Measured { facts: evaluation.facts, ranks }))
}

/// The queries as JSON lines, and what errors call them.
fn queries(value: &Bound<'_, PyAny>) -> PyResult<(PathBuf, Vec<u8>)> {
    let Ok(path) = value.extract::<PathBuf>() else {
        let mut lines = String::new();
        for query in value.try_iter()? {
            let _ = writeln!(lines, "{}", json::dumps(&query?)?);
        }
        return Ok(("queries".into(), lines.into_bytes()));
    };
    let bytes =
        std::fs::read(&path).map_err(|error| EvaluationError::new_err(ReadError::at(&path)(error).to_string()))?;
    Ok((path, bytes))
}

/// The engine of the scorecard that was named, or the router of a configuration.
fn engine(name: Option<&Bound<'_, PyAny>>, config: Option<&Bound<'_, PyAny>>, model: bool) -> PyResult<RouterEngine> {
    let named = match name {
        None => RouterEngine::new("default", RoutingConfig::default()),
        Some(name) => builtin_engine(name.cast::<PyString>()?.to_str()?).map_err(errors::evaluation)?,
    };
    let engine = match config {
        None => named,
        Some(config) => {
            let with = RouterEngine::new("yours", json::config(Some(config), RoutingConfig::validate)?);
            if named.has_encoder() { with.with(EncoderChoice::MiniLm) } else { with }
        }
    };
    Ok(if model { engine.with(EncoderChoice::MiniLm) } else { engine })
}

/// What a function answers to each query in turn.
fn answers(collection: &Collection, function: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<String>>> {
    let answer = |query: &str| {
        let found = function.call1((query,))?;
        found.try_iter()?.map(|tool| Ok(tool?.cast::<PyString>()?.to_str()?.to_owned())).collect::<PyResult<Vec<_>>>()
    };
    collection.queries.iter().map(|query| answer(&query.text)).collect()
}

#[derive(Serialize, Deserialize)]
struct Measured {
    facts: Facts,
    /// The rank of each relevant tool by query; only queries with an answer.
    ranks: BTreeMap<String, Vec<Option<usize>>>,
}

/// What was measured. `str()` gives it as `contextweaver bench eval` prints it.
#[pyclass(frozen, module = "contextweaver_rs")]
pub(crate) struct Evaluation(Measured);

/// The evaluation that was pickled.
#[pyfunction]
pub(crate) fn _evaluation(text: &str) -> PyResult<Evaluation> {
    Ok(Evaluation(json::read(text)?))
}

#[pymethods]
impl Evaluation {
    /// The mean of each measure: `recall@5`, `nDCG@10` and others.
    #[getter]
    fn measures(&self) -> BTreeMap<&str, f64> {
        self.0.facts.measures.iter().map(|(name, estimate)| (name.as_str(), estimate.mean)).collect()
    }

    /// The 95 % interval of each measure.
    #[getter]
    fn intervals(&self) -> BTreeMap<&str, (f64, f64)> {
        let measures = self.0.facts.measures.iter();
        measures.map(|(name, estimate)| (name.as_str(), (estimate.low, estimate.high))).collect()
    }

    /// The rank of each relevant tool by the id of the query; None where it was not found.
    #[getter]
    fn ranks(&self) -> BTreeMap<String, Vec<Option<usize>>> {
        self.0.ranks.clone()
    }

    /// Everything that was measured, as in `contextweaver bench eval --format json`.
    #[getter]
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::object(py, &self.0.facts)
    }

    fn __str__(&self) -> String {
        facts(&self.0.facts)
    }

    fn __repr__(&self) -> String {
        let measures = self.measures();
        let recall = measures.get("recall@5").copied().unwrap_or_default();
        format!("<Evaluation of {} queries, recall@5 {recall:.3}>", self.0.facts.answerable)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let arguments = (json::text(&self.0)?,).into_pyobject(py)?;
        Ok((json::restorer(py, "_evaluation")?, arguments))
    }
}
