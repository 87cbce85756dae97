//! Judges what a workspace gives: by its own thresholds, and against an earlier results file.
//!
//! The comparison is over the queries that were asked alike in both, so that it still means something when the catalog
//! changed, which is what a gate is for. They are paired as [`ItemSet::alike`] pairs them: one that only got another id is
//! the same, and one whose text or answer changed is another query and is counted apart.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value as Json;

use super::results::{EngineFacts, Measured};
use super::threshold::{at_least, at_most};
use super::workspace::Limits;
use crate::comparison::evaluations::Evaluations;
use crate::comparison::outcomes::{Alike, ItemSet, Value};
use crate::eval::collection::Collection;
use crate::eval::decision::{ASSUMED, Decision, Pair, Word, decide};
use crate::eval::measure::{FIRST, Found, Measure};
use crate::eval::record::Estimate;
use crate::eval::statistics::{mean, minimum_detectable_difference, round6};
use crate::report::number::apart;

/// What is to be said about a workspace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// The engine that is judged.
    pub engine: String,
    /// Tools in the catalog.
    pub tools: usize,
    /// Queries that a tool answers.
    pub queries: usize,
    /// The share of needed tools among the first five.
    pub recall_at_5: Estimate,
    /// How high they stand among the first ten.
    pub ndcg_at_10: Estimate,
    /// Tokens of all definitions.
    pub tokens: Option<usize>,
    /// What changed since an earlier file; `None` without one.
    pub against: Option<Against>,
    /// What these queries can show.
    pub power: Power,
    /// The gates that failed, in sentences.
    pub failed: Vec<String>,
}

/// What changed since an earlier file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Against {
    /// The engine of the earlier file that is compared with.
    pub engine: String,
    /// The engine that the earlier file judged: its first.
    pub judged: String,
    /// The limits of the gate that are not those of the earlier file, which states some, each as a sentence.
    pub limits: Vec<String>,
    /// The verdict, with the margin of the workspace.
    pub decision: Decision,
    /// recall@5 of the queries that are compared, then.
    pub recall_before: f64,
    /// The same, now.
    pub recall_after: f64,
    /// The figures of the earlier file as a whole.
    pub before: Figures,
    /// Needed tools whose rank changed, the largest loss first.
    pub moved: Vec<Moved>,
    /// Queries that the earlier file does not have, or that were worded or answered otherwise.
    pub not_in_base: usize,
    /// Queries of the earlier file that are gone, or that were worded or answered otherwise.
    pub only_in_base: usize,
    /// Whether catalog and queries are those of the earlier file.
    pub same_inputs: bool,
}

/// The figures of a results file; `None` where it does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Tools in the catalog.
    pub tools: Option<usize>,
    /// Queries that a tool answers.
    pub queries: Option<usize>,
    /// Tokens of all definitions.
    pub tokens: Option<usize>,
    /// recall@5 over all queries.
    pub recall_at_5: Option<f64>,
    /// nDCG@10 over all queries.
    pub ndcg_at_10: Option<f64>,
}

impl Figures {
    /// The figures that the facts of an engine state.
    fn of(facts: &Json) -> Self {
        let number = |path: &str| facts.pointer(path)?.as_u64()?.try_into().ok();
        let mean = |measure: &str| facts.pointer(&format!("/measures/{measure}/mean"))?.as_f64();
        Self {
            tools: number("/tools"),
            queries: number("/answerable"),
            tokens: number("/tokens/naive"),
            recall_at_5: mean("recall@5"),
            ndcg_at_10: mean("nDCG@10"),
        }
    }
}

/// A needed tool whose rank changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// The id of the query.
    pub query: String,
    /// Its text.
    pub text: String,
    /// The tool, as a queries file names it.
    pub tool: String,
    /// Its rank then; `None`: not found.
    pub before: Option<usize>,
    /// Its rank now.
    pub after: Option<usize>,
}

impl Moved {
    /// What the change is worth: the difference of the gain that nDCG gives to the two ranks; below 0 for a loss.
    #[must_use]
    pub fn gain(&self) -> f64 {
        let gain = |rank: Option<usize>| rank.map_or(0.0, |rank| 1.0 / libm::log2(rank as f64 + 1.0));
        gain(self.after) - gain(self.before)
    }

    /// Whether the tool stood among the first five and no longer does.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        let within = |rank: Option<usize>| rank.is_some_and(|rank| rank <= FIRST);
        within(self.before) && !within(self.after)
    }
}

impl Judged {
    /// Whether the next run may be judged against what was measured now. That is not so after a failed gate, where nothing
    /// was compared, or after any loss: one that is not shown, or within the margin, would be the base of the next one, and any
    /// number of them could follow each other without one that fails.
    #[must_use]
    pub fn may_be_recorded(&self) -> bool {
        self.failed.is_empty() && self.is_comparable() && !self.has_loss()
    }

    /// Whether anything could be compared with the earlier results, or there are none.
    #[must_use]
    pub fn is_comparable(&self) -> bool {
        self.against.as_ref().is_none_or(|one| one.decision.word != Word::NotComparable)
    }

    /// Whether recall@5 is lower than before, be it shown or not.
    #[must_use]
    pub fn has_loss(&self) -> bool {
        self.against.as_ref().is_some_and(|one| one.decision.difference < 0.0)
    }
}

/// Puts the largest loss first; equal ones by query and tool.
pub(crate) fn sort_worst_first(moved: &mut [Moved]) {
    moved.sort_by(|left, right| {
        let lost = right.is_lost().cmp(&left.is_lost());
        let gain = left.gain().total_cmp(&right.gain());
        lost.then(gain).then_with(|| (&left.query, &left.tool).cmp(&(&right.query, &right.tool)))
    });
}

/// What so many queries can show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Power {
    /// The queries that count.
    pub queries: usize,
    /// The share of them whose answers are assumed to differ.
    pub differing: f64,
    /// The loss that is seen four times out of five.
    pub could_have_seen: f64,
    /// How many queries more would show a loss of one margin as often.
    pub more_queries: usize,
    /// That margin.
    pub margin: f64,
    /// Whether the queries are so few that the gate can hardly fail.
    pub hardly_fails: bool,
}

impl Power {
    /// Of `queries` queries of which a share `differing` was seen to differ. Where little differed, a tenth is assumed: no
    /// one knows before a change how much it will move.
    fn of(queries: usize, differing: f64, limits: &Limits) -> Self {
        let differing = differing.max(ASSUMED);
        let seen = minimum_detectable_difference(queries, differing.sqrt()).unwrap_or(1.0).min(1.0);
        let margin = limits.margin.max(0.001);
        let alone = minimum_detectable_difference(1, differing.sqrt()).unwrap_or(1.0);
        let needed = (alone / margin).powi(2).ceil() as usize;
        Self {
            queries,
            differing: round6(differing),
            could_have_seen: round6(seen),
            more_queries: needed.saturating_sub(queries),
            margin,
            hardly_fails: queries < limits.fewest_queries,
        }
    }
}

/// Judges the first engine of `measured`, and against `base` where there is one.
#[must_use]
pub fn judge(
    limits: &Limits,
    collection: &Collection,
    measured: &Measured,
    base: Option<&Evaluations>,
) -> Option<Judged> {
    let first = measured.evaluations.first()?;
    let against = base.and_then(|base| against(limits, collection, measured, first, base));
    let share = against.as_ref().map_or(0.0, |one| one.decision.differing as f64 / one.decision.queries.max(1) as f64);
    let queries = against.as_ref().map_or(first.facts.answerable, |one| one.decision.queries);
    let failed = failed(limits, first, against.as_ref());
    let estimate = |measure: Measure| {
        let none = Estimate { mean: 0.0, low: 0.0, high: 0.0 };
        first.facts.measures.get(&measure.to_string()).copied().unwrap_or(none)
    };
    Some(Judged {
        engine: first.configuration.clone(),
        tools: first.facts.tools,
        queries: first.facts.answerable,
        recall_at_5: estimate(Measure::RECALL_5),
        ndcg_at_10: estimate(Measure::NDCG_10),
        tokens: first.facts.tokens.as_ref().map(|tokens| tokens.naive),
        power: Power::of(queries, share, limits),
        against,
        failed,
    })
}

/// The limits that differ, by their place in `gate.toml`; none where the earlier file states none.
fn changed(limits: &Limits, base: &Evaluations) -> Vec<String> {
    if base.limits.is_empty() {
        return Vec::new();
    }
    let own = limits.stated();
    let names: BTreeSet<&String> = base.limits.keys().chain(own.keys()).collect();
    let stated = |value: Option<&f64>| value.map_or_else(|| "none".to_owned(), f64::to_string);
    let differ = names.into_iter().filter(|name| base.limits.get(*name) != own.get(*name));
    differ.map(|name| format!("{name} {} -> {}", stated(base.limits.get(name)), stated(own.get(name)))).collect()
}

/// The first engine against the same one of an earlier file, or the first there; `None` when that has no engine.
fn against(
    limits: &Limits,
    collection: &Collection,
    measured: &Measured,
    first: &EngineFacts,
    base: &Evaluations,
) -> Option<Against> {
    let (earlier, judged) = (base.engine(&first.configuration)?, base.evaluations.first()?);
    let same_inputs = base.inputs_sha256 == measured.inputs_sha256;
    let (then, now) = (base.items_on(earlier, collection), ItemSet::of(collection, &first.facts.ranks));
    let alike: BTreeMap<&str, Alike<'_>> = then.alike(&now).into_iter().map(|one| (one.head_id, one)).collect();
    let mut pairs = Vec::new();
    let mut moved = Vec::new();
    for query in &collection.queries {
        let Some(Alike { base: Value::Ranks(before), head: Value::Ranks(after), .. }) = alike.get(query.id.as_str())
        else {
            continue;
        };
        pairs.push((recall(before), recall(after)));
        for ((group, before), after) in query.groups.iter().zip(before).zip(after) {
            if before != after {
                moved.push(Moved {
                    query: query.id.clone(),
                    text: query.text.clone(),
                    tool: group.first().map_or(String::new(), |item| collection.tool_handle(*item).to_owned()),
                    before: *before,
                    after: *after,
                });
            }
        }
    }
    sort_worst_first(&mut moved);
    let decision = decide(&[Pair::single(pairs.iter().copied())], limits.margin);
    let decision = match pairs.is_empty() {
        true => Decision { word: Word::NotComparable, ..decision },
        false => decision,
    };
    Some(Against {
        engine: earlier.configuration.clone(),
        judged: judged.configuration.clone(),
        limits: changed(limits, base),
        decision,
        recall_before: round6(mean(pairs.iter().map(|pair| pair.0))),
        recall_after: round6(mean(pairs.iter().map(|pair| pair.1))),
        before: Figures::of(&earlier.facts),
        moved,
        not_in_base: first.ranks.len() - pairs.len(),
        only_in_base: earlier.ranks.len().saturating_sub(pairs.len()),
        same_inputs,
    })
}

fn recall(ranks: &[Option<usize>]) -> f64 {
    Found::at(ranks.to_vec()).as_ref().map_or(0.0, |found| Measure::RECALL_5.of(found))
}

/// What failed, in sentences.
fn failed(limits: &Limits, first: &EngineFacts, against: Option<&Against>) -> Vec<String> {
    let mut thresholds = Vec::new();
    for (measure, least) in &limits.least {
        // The mean as it is: the facts hold it rounded, which may be on the other side.
        let found = first.ranks.values().filter_map(|ranks| Found::at(ranks.clone()));
        let value = mean(found.map(|found| measure.of(&found)));
        thresholds.push(at_least(&measure.to_string(), value, *least));
    }
    if let (Some(most), Some(tokens)) = (limits.most_tokens, &first.facts.tokens) {
        thresholds.push(at_most(tokens.naive, most));
    }
    let broken = thresholds.into_iter().filter(|threshold| !threshold.holds);
    let mut failed: Vec<String> = broken.map(|threshold| threshold.said).collect();
    if let Some(against) = against.filter(|one| one.decision.word == Word::Regressed) {
        let (before, after) = apart(against.recall_before, against.recall_after);
        failed.push(format!("recall@5 fell from {before} to {after}"));
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(query: &str, before: Option<usize>, after: Option<usize>) -> Moved {
        let text = |text: &str| text.to_owned();
        Moved { query: text(query), text: text("x"), tool: text("t"), before, after }
    }

    #[test]
    fn the_worst_comes_first() {
        let mut all = [
            moved("better", Some(9), Some(1)),
            moved("a little", Some(1), Some(2)),
            moved("out of sight", Some(4), None),
            moved("out of the first five", Some(5), Some(6)),
            moved("from the first to the tenth", Some(1), Some(10)),
        ];
        sort_worst_first(&mut all);
        let order: Vec<&str> = all.iter().map(|one| one.query.as_str()).collect();
        let expected = ["from the first to the tenth", "out of sight", "out of the first five", "a little", "better"];
        assert_eq!(order, expected);
    }

    /// What is judged when of so many queries some lose their tool and some find it.
    fn judged(queries: usize, lost: usize, won: usize, failed: &[&str]) -> Judged {
        let hit = |number: usize, from: usize, to: usize| f64::from(u8::from((from..to).contains(&number)));
        let pair = |number| (1.0 - hit(number, lost, lost + won), 1.0 - hit(number, 0, lost));
        let decision = decide(&[Pair::single((0..queries).map(pair))], 0.01);
        let (limits, none) = (Limits { least: vec![], most_tokens: None, margin: 0.01, fewest_queries: 20 }, 0.0);
        let against = Against {
            engine: "default".to_owned(),
            judged: "default".to_owned(),
            limits: vec![],
            decision,
            recall_before: none,
            recall_after: none,
            before: Figures::default(),
            moved: vec![],
            not_in_base: 0,
            only_in_base: 0,
            same_inputs: false,
        };
        Judged {
            engine: "default".to_owned(),
            tools: 1,
            queries,
            recall_at_5: Estimate { mean: none, low: none, high: none },
            ndcg_at_10: Estimate { mean: none, low: none, high: none },
            tokens: None,
            power: Power::of(queries, none, &limits),
            against: Some(against),
            failed: failed.iter().map(|one| (*one).to_owned()).collect(),
        }
    }

    #[test]
    fn a_loss_is_not_what_the_next_is_judged_against() {
        let table = [
            ("equal answers", judged(26, 0, 0, &[]), Word::Same, true),
            ("equal answers of few", judged(3, 0, 0, &[]), Word::Same, true),
            ("a gain that proves nothing", judged(5, 0, 1, &[]), Word::Inconclusive, true),
            ("as much won as lost", judged(26, 2, 2, &[]), Word::Inconclusive, true),
            ("a gain", judged(26, 0, 9, &[]), Word::Improved, true),
            ("a loss that is not shown", judged(26, 5, 0, &[]), Word::Inconclusive, false),
            ("a loss of few", judged(3, 1, 0, &[]), Word::Inconclusive, false),
            ("one lost of some hundreds", judged(300, 1, 0, &[]), Word::Inconclusive, false),
            ("a loss within the margin", judged(600, 1, 0, &[]), Word::Same, false),
            ("more of it", judged(10_000, 20, 0, &[]), Word::Same, false),
            ("a gain within the margin", judged(10_000, 0, 20, &[]), Word::Same, true),
            ("a loss", judged(26, 9, 0, &["recall@5 fell"]), Word::Regressed, false),
            ("a threshold", judged(26, 0, 0, &["recall@5 is low"]), Word::Same, false),
        ];
        for (what, judged, word, expected) in table {
            assert_eq!(judged.against.as_ref().map(|one| one.decision.word), Some(word), "{what}");
            assert_eq!(judged.may_be_recorded(), expected, "{what}");
        }
        let mut other = judged(26, 0, 0, &[]);
        other.against.iter_mut().for_each(|one| one.decision.word = Word::NotComparable);
        assert!(!other.may_be_recorded());
        assert!(Judged { against: None, ..other }.may_be_recorded());
    }

    #[test]
    fn figures_are_those_that_a_file_states() {
        assert_eq!(Figures::of(&Json::Null), Figures::default());
        let facts = serde_json::json!({"tools": 3, "tokens": null, "measures": {"recall@5": {"mean": 0.5}}});
        let some = Figures { tools: Some(3), recall_at_5: Some(0.5), ..Figures::default() };
        assert_eq!(Figures::of(&facts), some);
        // No rank is too large for the gain.
        assert!(moved("q", Some(usize::MAX), Some(1)).gain() > 0.9);
    }

    #[test]
    fn power_says_how_many_queries_are_missing() {
        let limits = Limits { least: vec![], most_tokens: None, margin: 0.01, fewest_queries: 20 };
        let few = Power::of(10, 0.0, &limits);
        assert!(few.hardly_fails && few.could_have_seen > 0.25, "{few:?}");
        // (2.8)² · 0.1 / 0.01² queries show one point.
        assert!((7_700..8_000).contains(&(few.queries + few.more_queries)), "{few:?}");
        let many = Power::of(10_000, 0.02, &limits);
        assert!(!many.hardly_fails && many.more_queries == 0 && many.could_have_seen < 0.01, "{many:?}");
        assert_eq!(Power::of(0, 0.0, &limits).could_have_seen, 1.0);
    }
}
