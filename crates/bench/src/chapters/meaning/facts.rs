//! What the table adds on one collection, and over all.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::eval::collection::Collection;
use crate::eval::engine::RouterEngine;
use crate::eval::error::EvalError;
use crate::eval::measure::Measure;
use crate::eval::record::{Estimate, Loss, Paired};
use crate::eval::run::{Evaluation, PromptTokens, evaluate};
use crate::eval::statistics::{clustered_macro, mean, paired_by_tool, paired_macro, round6};
use crate::results::Results;
use contextweaver_routing::RoutingConfig;

/// What the differences are taken from: the same engine without a semantic side.
pub const LEXICAL: &str = "lexical";

/// What was measured on one collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeaningFacts {
    /// Tools in the catalog.
    pub tools: usize,
    /// Queries that a tool answers.
    pub queries: usize,
    /// By words alone.
    pub lexical: Side,
    /// With the table.
    pub default: Side,
    /// The difference of nDCG@10.
    pub ndcg_at_10: Paired,
    /// The difference of recall@5.
    pub recall_at_5: Paired,
    /// The differences query by query, equal ones counted: of nDCG@10, of recall@5, and how many queries have both.
    /// They are what an interval over several collections is made of.
    pub changes: Vec<(f64, f64, usize)>,
    /// The same differences by the first tool that a query needs: the sums of its queries' differences of nDCG@10 and of
    /// recall@5, and the number of its queries; in the order of those tools in the catalog.
    pub by_tool: Vec<(f64, f64, usize)>,
}

/// What one engine gives on one collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// Mean nDCG@10 with its interval.
    pub ndcg_at_10: Estimate,
    /// Mean recall@5 with its interval.
    pub recall_at_5: Estimate,
    /// Where the recall that is missing at 5 was lost.
    pub loss: Loss,
}

/// One measure over all collections.
#[derive(Debug, Clone, PartialEq)]
pub struct Overall {
    /// The mean over collections by words alone.
    pub lexical: f64,
    /// The same with the table.
    pub default: f64,
    /// The mean of the differences, by bootstrap of the queries within every collection.
    pub difference: Paired,
    /// The same difference when queries that need the same tool are resampled together.
    pub by_tool: Estimate,
}

impl MeaningFacts {
    /// Measures `engine` on `collection`.
    pub(super) fn measure(collection: &Collection, engine: &RouterEngine) -> Result<Self, EvalError> {
        let words = RouterEngine::new(LEXICAL, RoutingConfig { semantic: 0.0, ..engine.config().clone() });
        let lexical = evaluate(collection, &words, PromptTokens::Skip)?;
        let default = evaluate(collection, engine, PromptTokens::Skip)?;
        let pairs = |of: fn(&Evaluation) -> &Vec<f64>| -> Vec<(f64, f64)> {
            of(&default).iter().copied().zip(of(&lexical).iter().copied()).collect()
        };
        let (ndcg, recall) = (pairs(|one| &one.ndcg_at_10), pairs(|one| &one.recall_at_5));
        let tools = collection.first_tools();
        Ok(Self {
            tools: default.facts.tools,
            queries: default.facts.answerable,
            lexical: Side::of(&lexical)?,
            default: Side::of(&default)?,
            ndcg_at_10: paired_by_tool(LEXICAL, &ndcg, &tools),
            recall_at_5: paired_by_tool(LEXICAL, &recall, &tools),
            changes: changes(&ndcg, &recall),
            by_tool: by_tool(&tools, &ndcg, &recall),
        })
    }
}

impl Side {
    fn of(evaluation: &Evaluation) -> Result<Self, EvalError> {
        let facts = &evaluation.facts;
        let estimate =
            |measure: Measure| facts.measures.get(&measure.to_string()).copied().ok_or(EvalError::NothingToAnswer);
        Ok(Self {
            ndcg_at_10: estimate(Measure::NDCG_10)?,
            recall_at_5: estimate(Measure::RECALL_5)?,
            loss: facts.loss,
        })
    }
}

/// The differences of two measures by query, equal ones counted, ascending.
fn changes(first: &[(f64, f64)], second: &[(f64, f64)]) -> Vec<(f64, f64, usize)> {
    // In millionths, as results files have them.
    let whole = |(engine, control): (f64, f64)| ((engine - control) * 1e6).round() as i64;
    let mut counts: BTreeMap<(i64, i64), usize> = BTreeMap::new();
    for (first, second) in first.iter().zip(second) {
        *counts.entry((whole(*first), whole(*second))).or_default() += 1;
    }
    let share = |millionths: i64| round6(millionths as f64 / 1e6);
    counts.into_iter().map(|((first, second), count)| (share(first), share(second), count)).collect()
}

/// The differences of two measures by query, summed over the queries of a tool, with their number.
fn by_tool(tools: &[u32], first: &[(f64, f64)], second: &[(f64, f64)]) -> Vec<(f64, f64, usize)> {
    let mut sums: BTreeMap<u32, (f64, f64, usize)> = BTreeMap::new();
    for ((tool, first), second) in tools.iter().zip(first).zip(second) {
        let sum = sums.entry(*tool).or_default();
        *sum = (sum.0 + first.0 - first.1, sum.1 + second.0 - second.1, sum.2 + 1);
    }
    sums.into_values().map(|(first, second, queries)| (round6(first), round6(second), queries)).collect()
}

/// nDCG@10 and recall@5 over all collections that were measured; `None` without one.
#[must_use]
pub fn overall(results: &Results<MeaningFacts>) -> Option<[Overall; 2]> {
    results.measured().next()?;
    let over = |side: fn(&Side) -> f64, change: fn(&(f64, f64, usize)) -> f64| {
        let pairs = |facts: &MeaningFacts| -> Vec<(f64, f64)> {
            facts.changes.iter().flat_map(|one| std::iter::repeat_n((change(one), 0.0), one.2)).collect()
        };
        let sets: Vec<Vec<(f64, f64)>> = results.measured().map(|(_, facts)| pairs(facts)).collect();
        let of_tools = |facts: &MeaningFacts| facts.by_tool.iter().map(|one| (change(one), one.2)).collect();
        let tools: Vec<Vec<(f64, usize)>> = results.measured().map(|(_, facts)| of_tools(facts)).collect();
        Overall {
            lexical: mean(results.measured().map(|(_, facts)| side(&facts.lexical))),
            default: mean(results.measured().map(|(_, facts)| side(&facts.default))),
            difference: paired_macro(LEXICAL, &sets),
            by_tool: clustered_macro(&tools),
        }
    };
    let ndcg = over(|side| side.ndcg_at_10.mean, |change| change.0);
    Some([ndcg, over(|side| side.recall_at_5.mean, |change| change.1)])
}
