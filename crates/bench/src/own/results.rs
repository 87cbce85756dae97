//! What the engines of a workspace give, and the file that holds it.
//!
//! The file has the form of `bench eval --format json`, so that every command that reads one reads the other: a digest of
//! each query, by which two files find the queries that were asked alike in both, and the ranks of each engine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use serde_json::Value;

use super::workspace::{Limits, OwnWorkspace};
use crate::comparison::evaluations::{Evaluations, SCHEMA};
use crate::eval::collection::Collection;
use crate::eval::engine::Engine;
use crate::eval::record::{Evidence, Facts};
use crate::eval::run::{Evaluation, PromptTokens, against, evaluate};
use crate::results::compare::{self, Difference};
use contextweaver_core::files::{ReadError, without_mark};

/// The name of the file in a workspace.
pub const RESULTS_FILE: &str = "results.json";

/// What was measured in a workspace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    schema_version: u32,
    /// The digest of catalog and queries.
    pub inputs_sha256: String,
    /// A digest of each query that a tool answers, by its id, as [`Collection::digests`] has it.
    pub queries: BTreeMap<String, String>,
    /// What was to hold of the first engine, as [`Limits::stated`] has it.
    pub limits: BTreeMap<String, f64>,
    /// One entry per engine, the one that is judged first.
    pub evaluations: Vec<EngineFacts>,
}

/// What one engine gave.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EngineFacts {
    /// The name of the engine.
    pub configuration: String,
    /// This program ranked.
    origin: Evidence,
    /// The facts, as on the scorecard.
    pub facts: Facts,
    /// The rank of each needed tool by query; only queries that a tool answers.
    pub ranks: BTreeMap<String, Vec<Option<usize>>>,
}

/// Measures the engines of `workspace` on `collection`, by name, each compared with the first.
///
/// # Errors
/// The message of an engine that cannot serve the catalog.
pub fn measure(workspace: &OwnWorkspace, collection: &Collection) -> Result<Vec<(String, Evaluation)>> {
    let mut evaluations = Vec::new();
    let mut first: Option<(String, Vec<f64>)> = None;
    for engine in workspace.engines()? {
        let name = engine.name().to_owned();
        let mut evaluation = evaluate(collection, &engine, PromptTokens::Count).with_context(|| name.clone())?;
        match &first {
            None => first = Some((name.clone(), evaluation.recall_at_5.clone())),
            Some((control, recall)) => {
                evaluation.facts.versus_control = Some(against(control, recall, &evaluation.recall_at_5));
            }
        }
        evaluations.push((name, evaluation));
    }
    Ok(evaluations)
}

impl Measured {
    /// What engines gave on `collection`, in the form of the file.
    #[must_use]
    pub fn of(limits: &Limits, collection: &Collection, evaluations: &[(String, Evaluation)]) -> Self {
        let facts = |(name, evaluation): &(String, Evaluation)| {
            let outcomes = collection.queries.iter().zip(&evaluation.outcomes);
            let ranks = outcomes
                .filter_map(|(query, outcome)| Some((query.id.clone(), outcome.as_ref()?.found.ranks().to_vec())));
            let (configuration, facts) = (name.clone(), evaluation.facts.clone());
            EngineFacts { configuration, origin: Evidence::Computed, facts, ranks: ranks.collect() }
        };
        Self {
            schema_version: SCHEMA,
            inputs_sha256: collection.inputs_sha256.clone(),
            queries: collection.digests(),
            limits: limits.stated(),
            evaluations: evaluations.iter().map(facts).collect(),
        }
    }

    /// In what this differs from the text of a committed file: the inputs, the engines in their order, of which the first is
    /// judged, then by engine its facts and its ranks.
    ///
    /// # Errors
    /// When the text is not JSON.
    pub fn differences(&self, committed: &str) -> Result<Vec<Difference>> {
        let committed: Value = serde_json::from_slice(without_mark(committed.as_bytes())).context(RESULTS_FILE)?;
        let computed: Value = serde_json::from_str(&self.to_json()?).context(RESULTS_FILE)?;
        let engines = |file: &Value| -> BTreeMap<String, Value> {
            let all = file.get("evaluations").and_then(Value::as_array).into_iter().flatten();
            all.map(|one| (one["configuration"].as_str().unwrap_or_default().to_owned(), one.clone())).collect()
        };
        let (mut then, mut now) = (engines(&committed), engines(&computed));
        let names: BTreeSet<String> = then.keys().chain(now.keys()).cloned().collect();
        let order = |file: &Value| -> Vec<Value> {
            let all = file.get("evaluations").and_then(Value::as_array).into_iter().flatten();
            all.map(|one| one["configuration"].clone()).collect()
        };
        let (order_then, order_now) = (order(&committed), order(&computed));
        let rest = |mut file: Value| {
            file.as_object_mut().and_then(|members| members.remove("evaluations"));
            file
        };
        let mut found = compare::facts(RESULTS_FILE, "", Some(rest(committed)), Some(rest(computed)));
        // An engine that one of them lacks is named below.
        if then.keys().eq(now.keys()) && order_then != order_now {
            let [then, now] = [order_then, order_now].map(|order| Some(Value::from(order)));
            found.push(Difference::of(RESULTS_FILE, "", "engines", then, now));
        }
        for name in names {
            found.extend(compare::facts(RESULTS_FILE, &name, then.remove(&name), now.remove(&name)));
        }
        Ok(found)
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// Never in practice: the facts are plain data.
    pub fn to_json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// Reads an earlier file, of a workspace or of `bench eval --format json`.
///
/// # Errors
/// When it cannot be read, is not a results file, has another form, or has no engine; the message names it.
pub fn read_base(path: &Path) -> Result<Evaluations> {
    parse_base(path, &fs::read(path).map_err(ReadError::at(path))?)
}

/// Reads the content of the file `path`.
///
/// # Errors
/// As [`read_base`].
pub fn parse_base(path: &Path, bytes: &[u8]) -> Result<Evaluations> {
    Evaluations::parse(bytes).map_err(|error| anyhow!("{}: {error}", path.display()))
}
