//! Turns what earlier queries led to into lifts for the same and for similar queries.
//!
//! A site knows what no catalog says: that "the board" means the tracker here, and that "who is on call" is answered by
//! the pager. Every observation says that a query led to a tool, or that it did not. Three things are made of them.
//!
//! **A query that comes again word for word** (case and punctuation aside) is answered by what it led to: the tool
//! that has more votes for it than against it stands just above the first. Where several tools have, the first of them must
//! have half as many votes again as the next, so that a query which led here and there decides nothing.
//!
//! **A query with the same words.** An observation gives the words of its query to the tool, and a later query is answered by a
//! vote of its words. With `w(t, q)` the weight of the observations in which word `q` led to tool `t`, and `W(q)` the same over
//! all tools:
//!
//! | quantity | value |
//! |---|---|
//! | vote of a word | `√(w(t, q) / (W(q) + 1))`, so that words that led everywhere say little |
//! | share of the query | the votes of its words weighted by their rarity in the catalog, divided by the rarity of the whole query |
//! | agreement | the largest `w(t, q)` of the query's words |
//! | doubt | covered · (1 − min(1, 0.2 · the mean of `w(t, q)` over the query's words, by their rarity)) |
//! | lift | the best score · share · min(1, 0.2 · agreement) · (1 − doubt) |
//!
//! *covered* is the best score divided by the rarity of the whole query, at most 1: where the words already account for the query,
//! a few observations with some of its words say little, and five that agree on all of them say as much as anywhere.
//!
//! **A query of the same meaning.** Observed queries whose cosine with the query by the semantic table is above [`NEAR`] vote for
//! their tools, each with `((cosine − NEAR) / (1 − NEAR))²`. With `v(t)` the votes of a tool and `V` those of all:
//!
//! | quantity | value |
//! |---|---|
//! | lift | the best score · `v(t) / (V + 3)` · (1 − covered), which needs both many votes and one opinion |
//!
//! The larger of both lifts counts, at most [`FeedbackConfig::most`] of the best score.
//!
//! Decided: a lift is relative to the best score, because BM25 scores have no upper bound. One observation of a similar query
//! settles close calls and overturns nothing that is clear. Similarity and agreement are multiplied: if agreement were only a
//! limit, one observation would lift as much for a shared word as for the same query, and queries of one form (create
//! …, list …) would teach each other wrong answers. Feedback adds and never subtracts; an observation that a tool was
//! not useful takes back what others gave. A tool that shares no word with the query can be found. A query that gives a
//! tool's name is answered by the name alone. An observation loses half its weight every [`FeedbackConfig::half_life`]
//! later ones; age is counted in observations and not in days, so that a quiet site forgets nothing and a ranking reads
//! no clock.
//!
//! Tried and left out: squaring the share of words, which does as little harm and halves the gain; a smaller lift where the best
//! tool covers the query however many observations agree, which keeps even agreed feedback from ever overturning the words; votes by
//! meaning in proportion to the cosine and with a doubt of one, where a single near query lifted a wrong tool by a third of the best
//! score. What wrong observations still cost where half of them are wrong is likely from queries that come again word for word: one
//! observation cannot tell that it is wrong, and one is enough there.

mod log;

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::hit::SCORE_UNITS;
use super::index::{Index, MAX_QUERY_TERMS};
use super::semantic::QueryVector;
use contextweaver_core::catalog::Catalog;
use contextweaver_core::text::{Analyzer, for_each_word, is_stop_word};

pub use log::{FeedbackError, FeedbackLog, MAX_LOG_BYTES, MAX_OBSERVATIONS, Observation};

/// The number of observations that every word is assumed to have had without an outcome, so that rare words count for
/// less.
const DOUBT: f64 = 1.0;

/// The votes that every meaning is assumed to have had without an outcome: a near query is less than the same words.
const DOUBT_OF_MEANING: f64 = 3.0;

/// What one observation with the same words lifts at most, as a share of the best score.
const SINGLE: f64 = 0.2;

/// The cosine by the semantic table above which two queries mean the same to some degree.
const NEAR: f64 = 0.5;

/// A tool answers a repeated query where it has so many times the votes of any other.
const UNOPPOSED: f64 = 1.5;

/// How much feedback may add. Used only by a router that was given some.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeedbackConfig {
    /// The number of later observations after which an observation counts half, above 0.
    pub half_life: f64,
    /// The largest lift by similar queries, as a share of the best score, in [0, 1]; 0 turns feedback off.
    pub most: f64,
}

impl Default for FeedbackConfig {
    fn default() -> Self {
        Self { half_life: 1000.0, most: 1.0 }
    }
}

/// The observations, prepared for queries to one catalog.
#[derive(Debug)]
pub(super) struct Feedback {
    analyzer: Analyzer,
    most: f64,
    words: FxHashMap<Box<str>, Votes>,
    /// What each query led to, by its words in their order.
    repeats: FxHashMap<Box<str>, Led>,
    /// The queries that the table knows something of, with what they led to.
    meanings: Vec<(QueryVector, Led)>,
}

/// The tools that one query led to, with their weights: above zero, ascending by item.
type Led = Vec<(u32, f64)>;

/// What one word led to.
#[derive(Debug, Default)]
struct Votes {
    /// The word's idf in the catalog; for a word that the catalog does not know, the idf of a word in no tool.
    rarity: f64,
    /// The weight of all observations with the word.
    total: f64,
    /// The weight per item, ascending by item; above zero.
    tools: Led,
}

/// What the words of a query add up to for one item.
#[derive(Debug, Default)]
struct Support {
    /// The votes of the words, by their rarity.
    votes: f64,
    /// The weights of the observations, by the rarity of their words.
    weights: f64,
    /// The largest weight of a word.
    agreement: f64,
}

/// What feedback says to one query.
#[derive(Debug, Default)]
pub(super) struct Lifts {
    /// What each item gains, by item and above zero.
    pub(super) by_item: BTreeMap<u32, u64>,
    /// The item that is to stand just above the first, since it answered the very same query.
    pub(super) repeated: Option<u32>,
}

impl Feedback {
    /// Learns from `observations`, the oldest first. Observations of tools that `catalog` does not have only age the
    /// others, since catalogs change; a tool whose definition changed is recognised by its namespace and name.
    pub(super) fn learn(
        observations: &[Observation],
        catalog: &Catalog,
        index: &Index,
        config: FeedbackConfig,
    ) -> Self {
        let analyzer = Analyzer::default();
        let tools = Tools::of(catalog);
        let mut weights: BTreeMap<String, BTreeMap<u32, f64>> = BTreeMap::new();
        let mut queries: BTreeMap<String, (&str, BTreeMap<u32, f64>)> = BTreeMap::new();
        for (age, observation) in observations.iter().rev().enumerate() {
            let Some(item) = tools.find(&observation.tool) else { continue };
            let weight = libm::exp2(-(age as f64) / config.half_life);
            let signed = if observation.useful { weight } else { -weight };
            let mut words = BTreeSet::new();
            for_each_term(&analyzer, &observation.query, |word| _ = words.insert(word.to_owned()));
            for word in words {
                *weights.entry(word).or_default().entry(item).or_default() += signed;
            }
            let (_, led) = queries.entry(key(&observation.query)).or_insert((&observation.query, BTreeMap::new()));
            *led.entry(item).or_default() += signed;
        }
        let votes = |(word, weights): (String, BTreeMap<u32, f64>)| {
            let tools = above_zero(weights)?;
            let total = tools.iter().map(|(_, weight)| weight).sum();
            let votes = Votes { rarity: index.rarity(&word), total, tools };
            Some((word.into_boxed_str(), votes))
        };
        let words = weights.into_iter().filter_map(votes).collect();
        let mut repeats = FxHashMap::default();
        let mut meanings = Vec::new();
        for (key, (query, led)) in queries {
            let Some(led) = above_zero(led).filter(|_| !key.is_empty()) else { continue };
            meanings.extend(index.meaning(query).map(|meaning| (meaning, led.clone())));
            repeats.insert(key.into_boxed_str(), led);
        }
        Self { analyzer, most: config.most, words, repeats, meanings }
    }

    /// What feedback says to the query `text` of this `meaning`, in the units of `best`, the best score without feedback.
    /// `ceiling` is the rarity of the whole query.
    pub(super) fn lifts(&self, text: &str, meaning: Option<&QueryVector>, ceiling: f64, best: u64) -> Lifts {
        let covered = if ceiling > 0.0 { (best as f64 / SCORE_UNITS as f64 / ceiling).min(1.0) } else { 0.0 };
        let mut shares = self.by_words(text, ceiling, covered);
        for (item, share) in meaning.map(|meaning| self.by_meaning(meaning)).unwrap_or_default() {
            let known = shares.entry(item).or_default();
            *known = known.max(share * (1.0 - covered));
        }
        let lifts =
            shares.into_iter().map(|(item, share)| (item, (share.min(self.most).min(1.0) * best as f64) as u64));
        let repeated = self.repeats.get(key(text).as_str()).filter(|_| self.most > 0.0).and_then(leader);
        Lifts { by_item: lifts.filter(|(_, lift)| *lift > 0).collect(), repeated }
    }

    /// The lift of each item by queries with the same words, as a share of the best score; `covered` is the share of the query
    /// that the best score accounts for.
    fn by_words(&self, text: &str, ceiling: f64, covered: f64) -> BTreeMap<u32, f64> {
        let mut supports: BTreeMap<u32, Support> = BTreeMap::new();
        let mut words = BTreeSet::new();
        for_each_term(&self.analyzer, text, |word| {
            if words.len() < MAX_QUERY_TERMS && self.words.contains_key(word) {
                words.insert(word.to_owned());
            }
        });
        for votes in words.iter().filter_map(|word| self.words.get(word.as_str())) {
            for &(item, weight) in &votes.tools {
                let support = supports.entry(item).or_default();
                support.votes += votes.rarity * (weight / (votes.total + DOUBT)).sqrt();
                support.weights += votes.rarity * weight;
                support.agreement = support.agreement.max(weight);
            }
        }
        let lift = |support: Support| {
            let share = |sum: f64| if ceiling > 0.0 { sum / ceiling } else { 0.0 };
            let doubt = covered * (1.0 - (SINGLE * share(support.weights)).min(1.0));
            share(support.votes) * (SINGLE * support.agreement).min(1.0) * (1.0 - doubt)
        };
        supports.into_iter().map(|(item, support)| (item, lift(support))).collect()
    }

    /// The lift of each item by queries of the same meaning, as a share of the best score, where the words account for nothing.
    fn by_meaning(&self, meaning: &QueryVector) -> BTreeMap<u32, f64> {
        let mut votes: BTreeMap<u32, f64> = BTreeMap::new();
        let mut all = 0.0;
        for (other, led) in &self.meanings {
            let near = (meaning.cosine(other) - NEAR) / (1.0 - NEAR);
            if near > 0.0 {
                let near = near * near;
                for (item, weight) in led {
                    let vote = near * weight;
                    *votes.entry(*item).or_default() += vote;
                    all += vote;
                }
            }
        }
        votes.into_iter().map(|(item, vote)| (item, vote / (all + DOUBT_OF_MEANING))).collect()
    }
}

/// The tools with a weight above zero; `None` where none has.
fn above_zero(weights: BTreeMap<u32, f64>) -> Option<Led> {
    let tools: Led = weights.into_iter().filter(|(_, weight)| *weight > 0.0).collect();
    (!tools.is_empty()).then_some(tools)
}

/// The one tool that a query led to, or that it led to clearly more than to any other.
fn leader(led: &Led) -> Option<u32> {
    let (first, most) = led.iter().copied().reduce(|one, other| if other.1 > one.1 { other } else { one })?;
    led.iter().all(|(item, weight)| *item == first || UNOPPOSED * weight <= most).then_some(first)
}

/// The words of a query, by which it is known again.
fn key(query: &str) -> String {
    let mut key = String::new();
    for_each_word(log::bounded(query), |word| {
        key.push_str(word);
        key.push(' ');
    });
    key
}

/// Calls `emit` with the stem of every word that counts.
fn for_each_term(analyzer: &Analyzer, text: &str, mut emit: impl FnMut(&str)) {
    for_each_word(text, |word| {
        if !is_stop_word(word) {
            emit(&analyzer.stem(word));
        }
    });
}

/// Finds the items of a catalog by the ids in observations.
struct Tools<'c> {
    catalog: &'c Catalog,
    /// By the id without the part that changes with a definition; `None` where two items share it.
    stable: BTreeMap<&'c str, Option<u32>>,
}

impl<'c> Tools<'c> {
    fn of(catalog: &'c Catalog) -> Self {
        let mut stable = BTreeMap::new();
        for (item, number) in catalog.items().iter().zip(0..) {
            stable.entry(without_hash(&item.id)).and_modify(|shared| *shared = None).or_insert(Some(number));
        }
        Self { catalog, stable }
    }

    fn find(&self, id: &str) -> Option<u32> {
        let same = self.catalog.position(id).map(|position| position as u32);
        same.or_else(|| self.stable.get(without_hash(id)).copied().flatten())
    }
}

fn without_hash(id: &str) -> &str {
    id.rsplit_once('#').map_or(id, |(stable, _)| stable)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::{PartSource, Request, Router, RoutingConfig, Scratch};
    use super::*;
    use contextweaver_core::catalog::SelectableItem;

    fn catalog() -> Arc<Catalog> {
        let tool = |namespace: &str, name: &str, description: &str| {
            SelectableItem::tool(&format!("{namespace}:{name}#00000001"), namespace, name, description)
        };
        let items = vec![
            tool("forge", "create_issue", "Open a new issue in a repository"),
            tool("forge", "list_issues", "List the issues of a repository"),
            tool("tracker", "create_ticket", "Open a new issue in the tracker"),
            tool("mail", "send_mail", "Send a letter about an issue"),
            tool("pager", "get_schedule", "Read a rota"),
        ];
        Arc::new(Catalog::new(items).unwrap())
    }

    fn observation(query: &str, tool: &str, useful: bool) -> Observation {
        Observation { at: 0, query: query.to_owned(), tool: format!("{tool}#00000001"), useful }
    }

    fn observations(listed: &[(&str, &str)]) -> Vec<Observation> {
        listed.iter().map(|(query, tool)| observation(query, tool, true)).collect()
    }

    fn router(observations: &[Observation]) -> Router {
        Router::build(catalog(), RoutingConfig { semantic: 0.0, ..RoutingConfig::default() })
            .unwrap()
            .with_feedback(observations)
    }

    /// The names of the choices with what feedback adds to each, in thousandths of the best score without it.
    fn routed(observations: &[Observation], query: &str) -> String {
        let request = Request { query: query.to_owned(), ..Request::default() };
        let best = router(&[]).route(&request).unwrap().choices.first().map_or(1 << 18, |choice| choice.score);
        let route = router(observations).route(&request).unwrap();
        let show = |choice: &crate::Choice| {
            let lift =
                choice.parts.iter().find(|part| part.source == PartSource::Feedback).map_or(0, |part| part.value);
            format!("{} {}", choice.card.name(), lift * 1000 / best as i64)
        };
        route.choices.iter().map(show).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn similar_queries_find_what_others_led_to() {
        let learnt = observations(&[
            ("who is on call tonight", "pager:get_schedule"),
            ("who is on call this weekend", "pager:get_schedule"),
            ("tell me who has the call", "pager:get_schedule"),
        ]);
        assert_eq!(routed(&[], "on call tomorrow"), "");
        assert_eq!(routed(&learnt, "on call tomorrow"), "get_schedule 223");
        assert_eq!(routed(&learnt, "open a new issue"), routed(&[], "open a new issue"));
    }

    #[test]
    fn one_similar_query_overturns_nothing_that_is_clear_and_agreement_does() {
        let query = "list the issues please";
        assert!(routed(&[], query).starts_with("list_issues"));
        let wrong = |times: usize| observations(&vec![("list the issues", "mail:send_mail"); times]);
        // The words account for the query, so one observation with most of its words hardly counts.
        assert_eq!(routed(&wrong(1), query), "list_issues 0, create_issue 0, send_mail 28, create_ticket 0");
        assert!(routed(&wrong(9), query).starts_with("send_mail"), "{}", routed(&wrong(9), query));
        let mut outvoted = wrong(2);
        outvoted.extend(observations(&[("list the issues", "forge:list_issues"); 4]));
        assert!(routed(&outvoted, query).starts_with("list_issues"), "{}", routed(&outvoted, query));
    }

    #[test]
    fn a_query_that_comes_again_has_what_it_led_to_first() {
        let asked = "List the issues!";
        assert!(routed(&[], asked).starts_with("list_issues"));
        let led = |listed: &[(&str, bool)]| {
            let one = |&(tool, useful): &(&str, bool)| observation("list the issues", tool, useful);
            routed(&listed.iter().map(one).collect::<Vec<_>>(), asked)
        };
        let (mail, own) = ("mail:send_mail", "forge:list_issues");
        let table: [(&[(&str, bool)], &str); 6] = [
            (&[(mail, true)], "send_mail"),
            (&[(mail, true), (mail, false)], "list_issues"),
            // Half of the votes are no verdict, and two in three are one.
            (&[(mail, true), (own, true)], "list_issues"),
            (&[(mail, true), (mail, true), (own, true)], "send_mail"),
            (&[(mail, true), (own, true), (own, true)], "list_issues"),
            (&[("gone:tool", true)], "list_issues"),
        ];
        for (listed, first) in table {
            assert!(led(listed).starts_with(first), "{listed:?}: {}", led(listed));
        }
        let config = FeedbackConfig { most: 0.0, ..FeedbackConfig::default() };
        let config = RoutingConfig { semantic: 0.0, feedback: config, ..RoutingConfig::default() };
        let off =
            Router::build(catalog(), config).unwrap().with_feedback(&[observation("list the issues", mail, true)]);
        let found = off.search(asked, 1, &mut Scratch::default());
        assert_eq!(catalog_id(&off, found[0].item), "forge:list_issues#00000001");
    }

    #[test]
    fn queries_of_the_same_meaning_vote_without_a_word_in_common() {
        let learnt = observations(&[("erase the picture", "pager:get_schedule"); 5]);
        let learned = |semantic: f64| {
            let config = RoutingConfig { semantic, ..RoutingConfig::default() };
            let router = Router::build(catalog(), config).unwrap().with_feedback(&learnt);
            let route = router.route(&Request::new("delete images")).unwrap();
            let is_lifted =
                |choice: &crate::Choice| choice.parts.iter().any(|part| part.source == PartSource::Feedback);
            route
                .choices
                .iter()
                .filter(|choice| is_lifted(choice))
                .map(|choice| choice.card.name().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(learned(0.5), ["get_schedule"]);
        assert!(learned(0.0).is_empty());
    }

    #[test]
    fn what_was_not_useful_takes_back_and_never_less_than_nothing() {
        let learnt = [
            observation("ping the board", "tracker:create_ticket", true),
            observation("ping the board", "tracker:create_ticket", false),
            observation("open an issue", "forge:create_issue", false),
        ];
        assert_eq!(routed(&learnt, "ping the board"), "");
        assert_eq!(routed(&learnt, "open an issue"), routed(&[], "open an issue"));
    }

    #[test]
    fn old_observations_fade() {
        let mut learnt = observations(&[("ping the board", "tracker:create_ticket")]);
        let fresh = routed(&learnt, "ping the board");
        learnt.extend(vec![observation("x", "gone:tool", true); 1000]);
        assert_eq!((fresh.as_str(), &*routed(&learnt, "ping the board")), ("create_ticket 118", "create_ticket 47"));
    }

    #[test]
    fn a_tool_is_known_when_its_definition_changed() {
        let tool = "tracker:create_ticket#ffffffff".to_owned();
        let changed = Observation { at: 0, query: "ping the board".to_owned(), tool, useful: true };
        assert!(routed(&[changed], "ping the board").starts_with("create_ticket"));
    }

    #[test]
    fn a_name_is_answered_by_the_name_alone() {
        let learnt = observations(&[("create_ticket", "mail:send_mail"); 9]);
        assert_eq!(routed(&learnt, "create_ticket"), routed(&[], "create_ticket"));
    }

    const QUERIES: [&str; 6] = ["issue", "open the board", "list mail", "who is on call", "new letter tonight", ""];
    const TOOLS: [&str; 4] = ["forge:create_issue", "mail:send_mail", "pager:get_schedule", "gone:tool"];

    proptest! {
        #[test]
        fn parts_add_up_and_a_lift_is_bounded(
            listed in prop::collection::vec((0usize..6, 0usize..4, any::<bool>()), 0..40),
            query in prop::sample::select(&QUERIES[..]),
            top_k in 1usize..6,
        ) {
            let learnt: Vec<Observation> =
                listed.iter().map(|&(query, tool, useful)| observation(QUERIES[query], TOOLS[tool], useful)).collect();
            let request = Request { query: query.to_owned(), top_k: Some(top_k), ..Request::default() };
            let (plain, lifted) = (router(&[]), router(&learnt));
            let best = plain.route(&request).unwrap().choices.first().map_or(crate::SCORE_UNITS, |one| one.score);
            let route = lifted.route(&request).unwrap();
            for choice in &route.choices {
                prop_assert_eq!(choice.parts.iter().map(|part| part.value).sum::<i64>(), choice.score as i64);
                let lift = choice.parts.iter().filter(|part| part.source == PartSource::Feedback);
                // A repeated query stands above what others are lifted to, which is at most one best score.
                prop_assert!(lift.map(|part| part.value).sum::<i64>() <= 2 * best as i64 + 1);
            }
            // The first tools are the same however many are asked for, and those of the short way.
            let all = lifted.route(&Request { top_k: Some(5), ..request }).unwrap();
            prop_assert_eq!(route.ids(), all.ids().into_iter().take(top_k).collect::<Vec<_>>());
            let found = lifted.search(query, top_k, &mut Scratch::default());
            let found: Vec<&str> = found.iter().map(|hit| catalog_id(&lifted, hit.item)).collect();
            prop_assert_eq!(route.ids(), found);
        }

        #[test]
        fn no_observation_panics(query in any::<String>(), tool in any::<String>(), asked in any::<String>()) {
            let learnt = [Observation { at: 1, query, tool, useful: true }];
            let _ = router(&learnt).search(&asked, 3, &mut Scratch::default());
        }
    }

    fn catalog_id(router: &Router, item: u32) -> &str {
        &router.catalog().items()[item as usize].id
    }
}
