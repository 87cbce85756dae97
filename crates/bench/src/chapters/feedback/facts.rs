//! What learning gains and costs on one collection.

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::eval::collection::{Collection, Query};
use crate::eval::engine::RouterEngine;
use crate::eval::error::EvalError;
use crate::eval::measure::{Found, Judgement, Measure};
use crate::eval::record::Paired;
use crate::eval::rng::Rng;
use crate::eval::statistics::{mean, paired_by_tool, round6};
use contextweaver_routing::{Observation, Router, Scratch};

/// Numbers of observations that are tried, as far as a collection has so many.
pub const OBSERVATIONS: [usize; 5] = [10, 30, 100, 300, 1000];

/// Shares of wrong observations, in tenths.
pub const WRONG_TENTHS: [usize; 4] = [0, 1, 3, 5];

/// Parts into which the queries are cut.
const FOLDS: usize = 5;

/// A wrong observation names one of so many tools that are shown.
const SHOWN: usize = 5;

/// Rankings are read to this depth.
const DEPTH: usize = 10;

/// The seed of orders and of wrong observations.
const SEED: u64 = 5;

/// What the differences are taken from.
const WITHOUT: &str = "without feedback";

/// What was measured on one collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackFacts {
    /// Tools in the catalog.
    pub tools: usize,
    /// Queries that were asked.
    pub queries: usize,
    /// Observations that the smallest four parts together have.
    pub available: usize,
    /// recall@5 without feedback.
    pub recall_at_5: f64,
    /// nDCG@10 without feedback.
    pub ndcg_at_10: f64,
    /// By number of observations, then by share of wrong ones.
    pub lessons: Vec<Lesson>,
}

/// What so much feedback changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lesson {
    /// Observations that the router was taught with.
    pub observations: usize,
    /// The share of them that was wrong, in tenths.
    pub wrong_tenths: usize,
    /// The difference of recall@5 from no feedback.
    pub recall_at_5: Paired,
    /// The difference of nDCG@10 from no feedback.
    pub ndcg_at_10: Paired,
}

/// recall@5 and nDCG@10 of one query.
type Scores = [f64; 2];

impl FeedbackFacts {
    /// Measures `engine` on `collection`.
    pub(super) fn measure(collection: &Collection, engine: &RouterEngine) -> Result<Self, EvalError> {
        let build = || Router::build(Arc::clone(&collection.catalog), engine.config().clone());
        let plain = build()?;
        let folds = folds(collection);
        let pools: Vec<Vec<Lead>> =
            (0..folds.len()).map(|held_out| pool(collection, &plain, &folds, held_out)).collect();
        let available = pools.iter().map(Vec::len).min().unwrap_or(0);
        let before: Vec<Scores> = folds.iter().flat_map(|fold| ask(&plain, fold)).collect();
        // The values are in the order of the folds.
        let tools: Vec<u32> = folds.iter().flatten().filter_map(|query| query.first_tool()).collect();
        let mut router = plain;
        let mut lessons = Vec::new();
        for observations in OBSERVATIONS.into_iter().filter(|number| *number <= available) {
            for wrong_tenths in WRONG_TENTHS {
                let mut after = Vec::with_capacity(before.len());
                for (fold, pool) in folds.iter().zip(&pools) {
                    let taught: Vec<Observation> =
                        pool.iter().take(observations).map(|lead| lead.observation(collection, wrong_tenths)).collect();
                    router = router.with_feedback(&taught);
                    after.extend(ask(&router, fold));
                }
                let difference = |measure: usize| {
                    let pairs: Vec<(f64, f64)> =
                        after.iter().zip(&before).map(|(after, before)| (after[measure], before[measure])).collect();
                    paired_by_tool(WITHOUT, &pairs, &tools)
                };
                let (recall_at_5, ndcg_at_10) = (difference(0), difference(1));
                lessons.push(Lesson { observations, wrong_tenths, recall_at_5, ndcg_at_10 });
            }
        }
        let mean = |measure: usize| round6(mean(before.iter().map(|scores| scores[measure])));
        Ok(Self {
            tools: collection.catalog.len(),
            queries: before.len(),
            available,
            recall_at_5: mean(0),
            ndcg_at_10: mean(1),
            lessons,
        })
    }
}

/// The answerable queries in parts.
fn folds(collection: &Collection) -> Vec<Vec<&Query>> {
    let mut queries: Vec<&Query> = collection.queries.iter().filter(|query| !query.groups.is_empty()).collect();
    Rng::new(SEED).fork(&collection.name).shuffle(&mut queries);
    (0..FOLDS).map(|fold| queries.iter().skip(fold).step_by(FOLDS).copied().collect()).collect()
}

/// A query that led to a tool, and the tool of a wrong observation.
struct Lead<'q> {
    query: &'q Query,
    tool: u32,
    other: u32,
    /// The observation is right up to this share of wrong ones, in tenths.
    right_until: usize,
}

impl Lead<'_> {
    fn observation(&self, collection: &Collection, wrong_tenths: usize) -> Observation {
        let tool = if wrong_tenths > self.right_until { self.other } else { self.tool };
        let items = collection.catalog.items();
        let id = items.get(tool as usize).map(|item| item.id.clone()).unwrap_or_default();
        Observation { at: 0, query: self.query.text.clone(), tool: id, useful: true }
    }
}

/// Everything that a site sees before the part `held_out` is asked, in the order in which it sees it.
fn pool<'q>(collection: &Collection, plain: &Router, folds: &[Vec<&'q Query>], held_out: usize) -> Vec<Lead<'q>> {
    let mut rng = Rng::new(SEED).fork(&collection.name).fork(&held_out.to_string());
    let mut scratch = Scratch::default();
    let mut leads = Vec::new();
    for query in folds.iter().enumerate().filter(|(fold, _)| *fold != held_out).flat_map(|(_, queries)| queries) {
        let relevant: BTreeSet<u32> = query.groups.iter().flatten().copied().collect();
        let shown = plain.search(&query.text, SHOWN + relevant.len(), &mut scratch);
        let mut wrong: Vec<u32> = shown.iter().map(|hit| hit.item).filter(|item| !relevant.contains(item)).collect();
        wrong.truncate(SHOWN);
        for tool in query.groups.iter().filter_map(|group| group.first().copied()) {
            let any = rng.below(collection.catalog.len()) as u32;
            let other = wrong.get(rng.below(wrong.len())).copied().unwrap_or(any);
            leads.push(Lead { query, tool, other, right_until: rng.below(10) });
        }
    }
    rng.shuffle(&mut leads);
    leads
}

fn ask(router: &Router, queries: &[&Query]) -> Vec<Scores> {
    let score = |scratch: &mut Scratch, query: &&Query| -> Scores {
        let hits = router.search(&query.text, DEPTH, scratch);
        let found = Found::of(&hits, &Judgement { groups: query.groups.clone() });
        let value = |measure: Measure| found.as_ref().map_or(0.0, |found| measure.of(found));
        [value(Measure::RECALL_5), value(Measure::NDCG_10)]
    };
    queries.par_iter().map_init(Scratch::default, score).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::eval::collection::Source;
    use crate::eval::record::Origin;
    use contextweaver_routing::RoutingConfig;

    /// Tools whose names say nothing; half of the queries call them by words of the site, half by their own.
    fn collection() -> Collection {
        let names = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"];
        let tools: Vec<String> =
            names.iter().map(|name| format!(r#"{{"name": "{name}", "description": "Does {name} things"}}"#)).collect();
        let words = ["rota", "board", "ledger", "inbox", "wiki", "radar"];
        let queries: Vec<String> = (0..60)
            .map(|n| {
                let (name, word) = (names[n % 6], words[n % 6]);
                let text = if n < 30 { format!("the {word} please {n}x") } else { format!("{name} things {n}x") };
                format!(r#"{{"id": "{n}", "query": "{text}", "relevant": ["{name}"]}}"#)
            })
            .collect();
        let (tools, queries) = (format!("[{}]", tools.join(",")), queries.join("\n"));
        let source = |text| Source { path: Path::new("test"), bytes: str::as_bytes(text) };
        Collection::from_bytes("test", Origin::Embedded, source(&tools), source(&queries)).unwrap()
    }

    fn facts() -> FeedbackFacts {
        let words = RouterEngine::new("default", RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        FeedbackFacts::measure(&collection(), &words).unwrap()
    }

    #[test]
    fn a_site_learns_its_words() {
        let facts = facts();
        assert_eq!((facts.tools, facts.queries, facts.available), (6, 60, 48));
        let gain = |observations, wrong_tenths| {
            let is = |lesson: &&Lesson| (lesson.observations, lesson.wrong_tenths) == (observations, wrong_tenths);
            facts.lessons.iter().find(is).unwrap().ndcg_at_10.difference.mean
        };
        assert!(gain(30, 0) > 0.2 && gain(30, 0) > gain(10, 0), "{:?}", facts.lessons);
        assert!(gain(30, 5) < gain(30, 0));
        assert_eq!(facts.lessons.len(), 2 * WRONG_TENTHS.len(), "no more observations than there are");
    }

    #[test]
    fn the_number_of_threads_changes_no_digit() {
        let text = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            serde_json::to_string(&pool.install(facts)).unwrap()
        };
        assert_eq!(text(1), text(3));
    }
}
