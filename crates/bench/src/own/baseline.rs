//! An engine against what a file says of it, or of another.

use anyhow::{Result, bail};
use serde::Serialize;

use crate::comparison::evaluations::Evaluations;
use crate::comparison::outcomes::{ItemSet, Value};
use crate::eval::collection::Collection;
use crate::eval::decision::{Decision, MARGIN, Pair, Word, decide};
use crate::eval::measure::Measure;
use crate::eval::record::Facts;

/// What a baseline says of an engine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VersusBaseline {
    /// The engine of the baseline: the one of the same name where there is one, else the first.
    pub engine: String,
    /// The verdict on recall@5.
    #[serde(flatten)]
    pub decision: Decision,
    /// Queries of the baseline that are gone or were changed, and are not compared.
    pub gone: usize,
    /// All queries of the baseline that need a tool.
    pub of: usize,
}

impl VersusBaseline {
    /// The engine of this name, with the facts that `collection` gave of it, over the queries that both have. Where the inputs
    /// differ the verdict is [`Word::NotComparable`], unless `changed_inputs` asks for what both have.
    ///
    /// # Errors
    /// The baseline has no evaluation, shares no query, or does not say which of its queries are still the same.
    pub fn of(
        (name, facts): (&str, &Facts),
        collection: &Collection,
        baseline: &Evaluations,
        changed_inputs: bool,
    ) -> Result<Self> {
        let Some(base) = baseline.engine(name) else { bail!("the baseline has no evaluation") };
        let (then, now) = (baseline.items_on(base, collection), ItemSet::of(collection, &facts.ranks));
        let recall = |value: &Value| value.of(Measure::RECALL_5);
        let alike = then.alike(&now);
        let decision = decide(&[Pair::single(alike.iter().map(|one| (recall(one.base), recall(one.head))))], MARGIN);
        let versus = |decision| {
            let (engine, of) = (base.configuration.clone(), then.items.len());
            Self { engine, decision, gone: of - alike.len(), of }
        };
        let same_inputs = baseline.inputs_sha256 == collection.inputs_sha256;
        let is_the_same = same_inputs && alike.len() == then.items.len() && alike.len() == now.items.len();
        if !is_the_same && !changed_inputs {
            return Ok(versus(Decision { word: Word::NotComparable, ..decision }));
        }
        if !same_inputs && baseline.queries.is_empty() {
            bail!(
                "the baseline `{}` has no digests of its queries, so it is unknown which of them are still the same; \
                 record it again",
                base.configuration
            );
        }
        if alike.is_empty() {
            bail!("the baseline `{}` and the queries file have no query in common", base.configuration);
        }
        Ok(versus(decision))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value as Json, json};

    use super::*;
    use crate::eval::engine::RouterEngine;
    use crate::eval::probe;
    use crate::eval::run::{Evaluation, PromptTokens, evaluate};
    use contextweaver_routing::RoutingConfig;

    #[test]
    fn a_baseline_is_compared_over_what_both_have() {
        let collection = &**probe::collection();
        let engine = RouterEngine::new("default", RoutingConfig::default());
        let Evaluation { facts, outcomes, .. } = evaluate(collection, &engine, PromptTokens::Skip).unwrap();
        let ranks = collection.queries.iter().zip(&outcomes);
        let ranks: BTreeMap<&str, &[Option<usize>]> =
            ranks.filter_map(|(query, outcome)| Some((&*query.id, outcome.as_ref()?.found.ranks()))).collect();
        let file = json!({"schema_version": 1, "inputs_sha256": collection.inputs_sha256, "queries": collection.digests(),
            "evaluations": [{"configuration": "other", "ranks": ranks}]});
        let with = |key: &str, value: Json| {
            let mut file = file.clone();
            file[key] = value;
            file
        };
        let versus = |file: &Json, changed_inputs| {
            let baseline = Evaluations::parse(file.to_string().as_bytes()).unwrap();
            let versus = VersusBaseline::of(("default", &facts), collection, &baseline, changed_inputs);
            versus.map(|one| (one.engine, one.decision.word, one.gone)).map_err(|error| error.to_string())
        };
        let found = |word, gone| Ok(("other".to_owned(), word, gone));
        assert_eq!(versus(&file, false), found(Word::Same, 0));
        let elsewhere = with("inputs_sha256", "x".into());
        assert_eq!(versus(&elsewhere, false), found(Word::NotComparable, 0));
        assert_eq!(versus(&elsewhere, true), found(Word::Same, 0));
        let mut other = elsewhere;
        other["evaluations"][0]["ranks"]["gone"] = json!([1]);
        assert_eq!(versus(&other, true), found(Word::Same, 1));
        other["queries"] = json!({});
        assert!(versus(&other, true).unwrap_err().contains("has no digests of its queries"));
        other["queries"] = json!({"gone": "x"});
        other["evaluations"][0]["ranks"] = json!({"gone": [1]});
        assert!(versus(&other, true).unwrap_err().contains("have no query in common"));
    }
}
