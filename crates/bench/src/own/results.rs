//! What the engines of a workspace give, and the file that holds it.
//!
//! The file has the form of `bench eval --format json`, so that every command that reads one reads the other, and one
//! member more: a digest of each query, by which two files find the queries that were asked alike in both.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::gate::Figures;
use super::workspace::OwnWorkspace;
use crate::eval::collection::{Collection, Query};
use crate::eval::engine::Engine;
use crate::eval::record::Facts;
use crate::eval::run::{Evaluation, PromptTokens, against, evaluate};
use crate::results::compare::{self, Difference};
use contextweaver_core::files::without_mark;
use contextweaver_core::text::sha256_hex;

/// The name of the file in a workspace.
pub const RESULTS_FILE: &str = "results.json";

/// The version of the form of the file.
const SCHEMA: u32 = 1;

/// What was measured in a workspace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    schema_version: u32,
    /// The digest of catalog and queries.
    pub inputs_sha256: String,
    /// A digest of each query that a tool answers, by its id: of its text and the tools that answer it.
    pub queries: BTreeMap<String, String>,
    /// One entry per engine, the one that is judged first.
    pub evaluations: Vec<EngineFacts>,
}

/// What one engine gave.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EngineFacts {
    /// The name of the engine.
    pub configuration: String,
    /// Says that this program ranked.
    origin: &'static str,
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

/// What tells a query from another with the same id: its text and what answers it, in twelve hexadecimal digits.
fn digest(collection: &Collection, query: &Query) -> String {
    let groups: Vec<Vec<&str>> =
        query.groups.iter().map(|group| group.iter().map(|item| collection.tool_handle(*item)).collect()).collect();
    // Texts and lists: writing them cannot fail.
    let text = serde_json::to_string(&(&query.text, groups)).unwrap_or_default();
    sha256_hex(text.as_bytes()).get(..12).unwrap_or_default().to_owned()
}

impl Measured {
    /// What engines gave on `collection`, in the form of the file.
    #[must_use]
    pub fn of(collection: &Collection, evaluations: &[(String, Evaluation)]) -> Self {
        let facts = |(name, evaluation): &(String, Evaluation)| {
            let outcomes = collection.queries.iter().zip(&evaluation.outcomes);
            let ranks = outcomes
                .filter_map(|(query, outcome)| Some((query.id.clone(), outcome.as_ref()?.found.ranks().to_vec())));
            let (configuration, facts) = (name.clone(), evaluation.facts.clone());
            EngineFacts { configuration, origin: "computed", facts, ranks: ranks.collect() }
        };
        let answerable = collection.queries.iter().filter(|query| !query.groups.is_empty());
        Self {
            schema_version: SCHEMA,
            inputs_sha256: collection.inputs_sha256.clone(),
            queries: answerable.map(|query| (query.id.clone(), digest(collection, query))).collect(),
            evaluations: evaluations.iter().map(facts).collect(),
        }
    }

    /// In what this differs from the text of a committed file: the inputs, then by engine its facts and its ranks.
    ///
    /// # Errors
    /// When the text is no JSON.
    pub fn differences(&self, committed: &str) -> Result<Vec<Difference>> {
        let committed: Value = serde_json::from_slice(without_mark(committed.as_bytes())).context(RESULTS_FILE)?;
        let computed: Value = serde_json::from_str(&self.to_json()?).context(RESULTS_FILE)?;
        let engines = |file: &Value| -> BTreeMap<String, Value> {
            let all = file.get("evaluations").and_then(Value::as_array).into_iter().flatten();
            all.map(|one| (one["configuration"].as_str().unwrap_or_default().to_owned(), one.clone())).collect()
        };
        let (mut then, mut now) = (engines(&committed), engines(&computed));
        let names: BTreeSet<String> = then.keys().chain(now.keys()).cloned().collect();
        let rest = |mut file: Value| {
            file.as_object_mut().and_then(|members| members.remove("evaluations"));
            file
        };
        let mut found = compare::facts(RESULTS_FILE, "", Some(rest(committed)), Some(rest(computed)));
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

/// An earlier file, of this program or of `bench eval --format json`, as far as a comparison needs it.
#[derive(Debug, Clone, Deserialize)]
pub struct Base {
    #[serde(default)]
    schema_version: u32,
    /// The digest of catalog and queries.
    pub inputs_sha256: String,
    /// A digest of each query; empty in a file of `bench eval`.
    #[serde(default)]
    pub queries: BTreeMap<String, String>,
    /// One entry per engine.
    pub evaluations: Vec<BaseEngine>,
}

/// What one engine gave earlier.
#[derive(Debug, Clone, Deserialize)]
pub struct BaseEngine {
    /// The name of the engine.
    pub configuration: String,
    /// The facts; an earlier program may have had others.
    #[serde(default)]
    pub facts: Value,
    /// The rank of each needed tool by query.
    #[serde(default)]
    pub ranks: BTreeMap<String, Vec<Option<usize>>>,
}

impl BaseEngine {
    /// The figures that the file states.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let number = |path: &str| self.facts.pointer(path)?.as_u64()?.try_into().ok();
        let mean = |measure: &str| self.facts.pointer(&format!("/measures/{measure}/mean"))?.as_f64();
        Figures {
            tools: number("/tools"),
            queries: number("/answerable"),
            tokens: number("/tokens/naive"),
            recall_at_5: mean("recall@5"),
            ndcg_at_10: mean("nDCG@10"),
        }
    }
}

impl Base {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is no results file, has another form, or has no engine.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(path, &text)
    }

    /// Reads the text of the file `path`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Self> {
        let place = path.display();
        let hint = "is it the results.json of a workspace or the output of `bench eval --format json`?";
        let base: Self =
            serde_json::from_slice(without_mark(text.as_bytes())).with_context(|| format!("{place}: {hint}"))?;
        if base.schema_version != SCHEMA {
            bail!("{place}: it has the form {}, and this is {SCHEMA}; record it again", base.schema_version);
        }
        if base.evaluations.is_empty() {
            bail!("{place}: it has no evaluation; {hint}");
        }
        Ok(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_results_file_is_refused_by_name() {
        let table = [
            ("{}", "base.json: is it the results.json of a workspace"),
            ("[", "base.json: is it the results.json of a workspace"),
            (
                r#"{"schema_version": 2, "inputs_sha256": "x", "evaluations": []}"#,
                "base.json: it has the form 2, and this is 1",
            ),
            (r#"{"schema_version": 1, "inputs_sha256": "x", "evaluations": []}"#, "base.json: it has no evaluation"),
        ];
        for (text, expected) in table {
            let message = Base::parse(Path::new("base.json"), text).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{text}: {message}");
        }
        let least = r#"{"schema_version": 1, "inputs_sha256": "x", "evaluations": [{"configuration": "a"}]}"#;
        assert_eq!(Base::parse(Path::new(""), least).unwrap().evaluations[0].figures(), Figures::default());
    }
}
