//! What learning gains and costs on one collection.

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::eval::collection::{Collection, Query};
use crate::eval::engine::{Ranking, RouterEngine};
use crate::eval::error::EvalError;
use crate::eval::everyday::{in_turn, searches_of};
use crate::eval::measure::{Found, Judgement, Measure};
use crate::eval::record::Paired;
use crate::eval::rng::Rng;
use crate::eval::statistics::{mean, paired_by_tool, round6};
use contextweaver_routing::{FeedbackConfig, Hit, Observation, Router, RoutingConfig, Scratch};

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
    /// The same where nothing is learned but the tool of a query that comes again word for word.
    pub word_for_word: Paired,
    /// The queries that can gain: a tool that they need is among those that the observations name.
    pub observed: usize,
    /// The difference of nDCG@10 on those.
    pub ndcg_at_10_of_observed: Paired,
}

/// recall@5 and nDCG@10 of one query.
type Scores = [f64; 2];

impl FeedbackFacts {
    /// Measures `engine` on `collection`.
    pub(super) fn measure(collection: &Collection, engine: &RouterEngine) -> Result<Self, EvalError> {
        let build = |config: &RoutingConfig| Router::build(Arc::clone(&collection.catalog), config.clone());
        let mut router = build(engine.config())?;
        // The smallest lift there is counts for nothing, and leaves a query that comes again its tool.
        let feedback = FeedbackConfig { most: f64::MIN_POSITIVE, ..engine.config().feedback };
        let mut repeats = build(&RoutingConfig { feedback, ..engine.config().clone() })?;
        let folds = folds(collection);
        let pools: Vec<Vec<Lead>> =
            (0..folds.len()).map(|held_out| pool(collection, &router, &folds, held_out)).collect();
        let available = pools.iter().map(Vec::len).min().unwrap_or(0);
        let before: Vec<Scores> = folds.iter().flat_map(|fold| ask(collection, &router, fold)).collect();
        // The values are in the order of the folds.
        let tools: Vec<u32> = folds.iter().flatten().filter_map(|query| query.first_tool()).collect();
        let mut lessons = Vec::new();
        for observations in OBSERVATIONS.into_iter().filter(|number| *number <= available) {
            for wrong_tenths in WRONG_TENTHS {
                let (mut after, mut repeated, mut can_gain) = (Vec::new(), Vec::new(), Vec::new());
                for (fold, pool) in folds.iter().zip(&pools) {
                    let leads = pool.iter().take(observations);
                    let named: BTreeSet<u32> = leads.clone().map(|lead| lead.named(wrong_tenths)).collect();
                    let taught: Vec<Observation> =
                        leads.map(|lead| lead.observation(collection, wrong_tenths)).collect();
                    router = router.with_feedback(&taught);
                    after.extend(ask(collection, &router, fold));
                    repeats = repeats.with_feedback(&taught);
                    repeated.extend(ask(collection, &repeats, fold));
                    can_gain.extend(
                        fold.iter().map(|query| query.groups.iter().flatten().any(|tool| named.contains(tool))),
                    );
                }
                let difference = |after: &[Scores], measure: usize, counts: &dyn Fn(usize) -> bool| {
                    let counted = || (0..before.len()).filter(|query| counts(*query));
                    let pairs: Vec<(f64, f64)> =
                        counted().map(|query| (after[query][measure], before[query][measure])).collect();
                    let tools: Vec<u32> = counted().filter_map(|query| tools.get(query).copied()).collect();
                    paired_by_tool(WITHOUT, &pairs, &tools)
                };
                lessons.push(Lesson {
                    observations,
                    wrong_tenths,
                    recall_at_5: difference(&after, 0, &|_| true),
                    ndcg_at_10: difference(&after, 1, &|_| true),
                    word_for_word: difference(&repeated, 1, &|_| true),
                    observed: can_gain.iter().filter(|can| **can).count(),
                    ndcg_at_10_of_observed: difference(&after, 1, &|query| can_gain[query]),
                });
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

/// A search that led to a tool, and the tool of a wrong observation.
struct Lead<'q> {
    /// Of several searches for one request that which did best for the tool.
    search: &'q str,
    tool: u32,
    other: u32,
    /// The observation is right up to this share of wrong ones, in tenths.
    right_until: usize,
}

impl Lead<'_> {
    /// The tool that the observation names.
    fn named(&self, wrong_tenths: usize) -> u32 {
        if wrong_tenths > self.right_until { self.other } else { self.tool }
    }

    fn observation(&self, collection: &Collection, wrong_tenths: usize) -> Observation {
        let items = collection.catalog.items();
        let id = items.get(self.named(wrong_tenths) as usize).map(|item| item.id.clone()).unwrap_or_default();
        Observation { at: 0, query: self.search.to_owned(), tool: id, useful: true }
    }
}

/// Everything that a site sees before the part `held_out` is asked, in the order in which it sees it.
fn pool<'q>(collection: &Collection, plain: &Router, folds: &[Vec<&'q Query>], held_out: usize) -> Vec<Lead<'q>> {
    let mut rng = Rng::new(SEED).fork(&collection.name).fork(&held_out.to_string());
    let mut scratch = Scratch::default();
    let mut leads = Vec::new();
    for query in folds.iter().enumerate().filter(|(fold, _)| *fold != held_out).flat_map(|(_, queries)| queries) {
        let relevant: BTreeSet<u32> = query.groups.iter().flatten().copied().collect();
        let searches = searches_of(collection, query);
        let shown = found(plain, &searches, SHOWN + relevant.len(), &mut scratch);
        let mut wrong: Vec<u32> = shown.iter().map(|hit| hit.item).filter(|item| !relevant.contains(item)).collect();
        wrong.truncate(SHOWN);
        for tool in query.groups.iter().filter_map(|group| group.first().copied()) {
            let any = rng.below(collection.catalog.len()) as u32;
            let other = wrong.get(rng.below(wrong.len())).copied().unwrap_or(any);
            let search = leading(plain, &searches, tool, &mut scratch);
            leads.push(Lead { search, tool, other, right_until: rng.below(10) });
        }
    }
    rng.shuffle(&mut leads);
    leads
}

/// The search that finds `tool` at the best rank; the first where several do or none does.
fn leading<'q>(plain: &Router, searches: &[&'q str], tool: u32, scratch: &mut Scratch) -> &'q str {
    if let [only] = searches {
        return only;
    }
    let mut rank = |search: &&&str| {
        let hits = plain.search(search, plain.catalog().len(), scratch);
        hits.iter().position(|hit| hit.item == tool).unwrap_or(usize::MAX)
    };
    searches.iter().min_by_key(|search| rank(search)).copied().unwrap_or_default()
}

/// The first `k` tools for a request, whose searches are answered in turn.
fn found(router: &Router, searches: &[&str], k: usize, scratch: &mut Scratch) -> Vec<Hit> {
    let mut ranking = |search: &&str| {
        let hits = router.search(search, k, scratch);
        Ranking { hits, confidence: 0.0, postings: 0 }
    };
    let mut hits = in_turn(searches.iter().map(&mut ranking).collect()).hits;
    hits.truncate(k);
    hits
}

fn ask(collection: &Collection, router: &Router, queries: &[&Query]) -> Vec<Scores> {
    let score = |scratch: &mut Scratch, query: &&Query| -> Scores {
        let hits = found(router, &searches_of(collection, query), DEPTH, scratch);
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
        for lesson in &facts.lessons {
            assert!((1..=60).contains(&lesson.observed), "{lesson:?}");
            assert_eq!(lesson.word_for_word.differing, 0, "no query comes again: {lesson:?}");
        }
        // Thirty observations name all six tools.
        let all = facts.lessons.iter().find(|lesson| (lesson.observations, lesson.wrong_tenths) == (30, 0)).unwrap();
        assert_eq!((all.observed, &all.ndcg_at_10_of_observed), (60, &all.ndcg_at_10));
    }

    #[test]
    fn a_query_that_comes_again_is_all_that_the_simple_rule_learns() {
        let tools = r#"[{"name": "alpha", "description": "One"}, {"name": "beta", "description": "Two"}]"#;
        let line = |n: usize| {
            let (text, tool) = if n.is_multiple_of(2) { ("the rota", "alpha") } else { ("the board", "beta") };
            format!(r#"{{"id": "{n}", "query": "{text}", "relevant": ["{tool}"]}}"#)
        };
        let queries: Vec<String> = (0..40).map(line).collect();
        let source = |text| Source { path: Path::new("test"), bytes: str::as_bytes(text) };
        let queries = queries.join("\n");
        let collection = Collection::from_bytes("test", Origin::Embedded, source(tools), source(&queries)).unwrap();
        let words = RouterEngine::new("default", RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        let facts = FeedbackFacts::measure(&collection, &words).unwrap();
        let last = facts.lessons.iter().rfind(|lesson| lesson.wrong_tenths == 0).unwrap();
        // Nothing but what was observed finds these tools.
        assert_eq!((facts.ndcg_at_10, last.word_for_word.difference.mean), (0.0, 1.0));
    }

    #[test]
    fn a_request_of_two_searches_teaches_by_the_one_that_found_the_tool() {
        let collection = collection();
        let router = Router::build(Arc::clone(&collection.catalog), RoutingConfig::default()).unwrap();
        let mut scratch = Scratch::default();
        let item = |name: &str| collection.catalog.items().iter().position(|item| item.name == name).unwrap() as u32;
        let searches = ["alpha things", "beta things"];
        assert_eq!(leading(&router, &searches, item("beta"), &mut scratch), "beta things");
        assert_eq!(leading(&router, &searches, item("alpha"), &mut scratch), "alpha things");
        let hits = found(&router, &searches, 2, &mut scratch);
        assert_eq!(hits.iter().map(|hit| hit.item).collect::<Vec<_>>(), [item("alpha"), item("beta")]);
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
