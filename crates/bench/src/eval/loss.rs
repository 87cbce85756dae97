//! Why needed tools are missing from the first five.
//!
//! Every missing group is put down to exactly one cause, tested in the order in which the tool could have been lost:
//! it shares no word with the query (vocabulary), the scorer ranks it high enough but the navigation never reached it
//! (pruning), it stands level with the fifth tool and the id decided (tie), or five tools simply score higher
//! (ranking). The yardstick is the same scorer over all tools; which tools share a word is a property of the collection
//! ([`Wording`]) and the same for every engine. Groups that share none and are found all the same are counted too.

use super::measure::{FIRST, Found, Judgement};
use super::record::Loss;
use super::statistics::{mean as mean_of, round6};
use std::sync::Arc;

use contextweaver_core::catalog::Catalog;
use contextweaver_routing::{Hit, RouteError, Router, RoutingConfig, Scorer};

/// Which tools share a word with a query: a flat ranking by words, without corrected spelling or meaning.
#[derive(Debug)]
pub struct Wording(Router);

impl Wording {
    /// Indexes the words of a catalog.
    ///
    /// # Errors
    /// The router's own, for a catalog that it cannot serve.
    pub fn of(catalog: &Arc<Catalog>) -> Result<Self, RouteError> {
        let words = RoutingConfig { scorer: Scorer::Bm25, spelling: 0.0, semantic: 0.0, ..RoutingConfig::default() };
        Ok(Self(Router::build(Arc::clone(catalog), words)?))
    }

    /// For every item whether it shares a word with `text`, after stemming and without stop words.
    #[must_use]
    pub fn shared(&self, text: &str) -> Vec<bool> {
        let index = self.0.index();
        index.score_all(&index.analyze(text)).into_iter().map(|score| score > 0).collect()
    }
}

impl Loss {
    /// What it was lost to, in words; empty where nothing was.
    #[must_use]
    pub fn causes(&self) -> Vec<&'static str> {
        let causes = [
            (self.vocabulary, "no word of the query is in the tool's definition"),
            (self.pruning, "the navigation left the tool out"),
            (self.tie, "the fifth tool has the same score and an earlier id"),
            (self.ranking, "other tools score higher"),
        ];
        causes.into_iter().filter(|(share, _)| *share > 0.0).map(|(_, cause)| cause).collect()
    }
}

/// The shares of the groups of one query that are missing from the first five of `engine`, by cause; with recall@5
/// they sum to 1. `None` when no tool answers the query.
///
/// `flat` is the exhaustive ranking by the same scorer, at least its first five; `score_of` gives the exhaustive
/// score of any item, and `shares_word` says whether it shares a word with the query.
#[must_use]
pub fn loss_at_5(
    engine: &[Hit],
    flat: &[Hit],
    score_of: impl Fn(u32) -> u64,
    shares_word: impl Fn(u32) -> bool,
    judgement: &Judgement,
) -> Option<Loss> {
    let in_engine = Found::of(first(engine), judgement)?;
    let in_flat = Found::of(first(flat), judgement)?;
    let fifth = engine.get(FIRST - 1).map(|hit| hit.score);
    let mut loss = Loss { vocabulary: 0.0, pruning: 0.0, tie: 0.0, ranking: 0.0, rescued: 0.0 };
    let fates = in_engine.ranks().iter().zip(in_flat.ranks());
    for (group, (rank, flat_rank)) in judgement.groups.iter().zip(fates) {
        let seen = group.iter().any(|item| shares_word(*item));
        if rank.is_some() {
            loss.rescued += f64::from(u8::from(!seen));
            continue;
        }
        let best = group.iter().map(|item| score_of(*item)).max().unwrap_or(0);
        let cause = if !seen {
            &mut loss.vocabulary
        } else if flat_rank.is_some() {
            &mut loss.pruning
        } else if fifth == Some(best) {
            &mut loss.tie
        } else {
            &mut loss.ranking
        };
        *cause += 1.0;
    }
    let groups = judgement.groups.len() as f64;
    Some(Loss {
        vocabulary: loss.vocabulary / groups,
        pruning: loss.pruning / groups,
        tie: loss.tie / groups,
        ranking: loss.ranking / groups,
        rescued: loss.rescued / groups,
    })
}

/// The mean over queries, rounded to six decimals.
#[must_use]
pub fn mean(queries: &[Loss]) -> Loss {
    let over = |part: fn(&Loss) -> f64| round6(mean_of(queries.iter().map(part)));
    Loss {
        vocabulary: over(|loss| loss.vocabulary),
        pruning: over(|loss| loss.pruning),
        tie: over(|loss| loss.tie),
        ranking: over(|loss| loss.ranking),
        rescued: over(|loss| loss.rescued),
    }
}

fn first(ranking: &[Hit]) -> &[Hit] {
    &ranking[..ranking.len().min(FIRST)]
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use proptest::prelude::*;

    use super::super::measure::Measure;
    use super::*;

    /// The exhaustive ranking of items whose scores are their places in `scores`; unscored items are left out.
    fn flat(scores: &[u64]) -> Vec<Hit> {
        let mut hits: Vec<Hit> =
            (0..).zip(scores).map(|(item, score)| Hit { item, score: *score }).filter(|hit| hit.score > 0).collect();
        hits.sort_by_key(|hit| (Reverse(hit.score), hit.item));
        hits
    }

    fn loss(scores: &[u64], pruned: &[u32], groups: &[Vec<u32>]) -> (Loss, f64) {
        let flat = flat(scores);
        let engine: Vec<Hit> = flat.iter().filter(|hit| !pruned.contains(&hit.item)).copied().collect();
        let judgement = Judgement { groups: groups.to_vec() };
        let score_of = |item: u32| scores.get(item as usize).copied().unwrap_or(0);
        let recall = Measure::RECALL_5.of(&Found::of(&engine, &judgement).unwrap());
        (loss_at_5(&engine, &flat, score_of, |item| score_of(item) > 0, &judgement).unwrap(), recall)
    }

    /// What it shows, the pruned items, the needed group, and the shares in field order.
    type Case<'a> = (&'a str, &'a [u32], &'a [u32], [f64; 4]);

    #[test]
    fn each_cause_is_told_apart() {
        let scores = [90, 80, 70, 60, 50, 50, 40, 0, 0];
        let table: [Case<'_>; 8] = [
            ("found", &[], &[0], [0.0; 4]),
            ("no term in common", &[], &[7], [1.0, 0.0, 0.0, 0.0]),
            ("pruned", &[1], &[1], [0.0, 1.0, 0.0, 0.0]),
            ("level with the fifth", &[], &[5], [0.0, 0.0, 1.0, 0.0]),
            ("beaten", &[], &[6], [0.0, 0.0, 0.0, 1.0]),
            ("an equivalent is visible", &[], &[7, 6], [0.0, 0.0, 0.0, 1.0]),
            ("the best equivalent decides", &[], &[6, 5], [0.0, 0.0, 1.0, 0.0]),
            ("beaten where fewer than five are left", &[0, 1, 6], &[6], [0.0, 0.0, 0.0, 1.0]),
        ];
        for (what, pruned, group, expected) in table {
            let (loss, _) = loss(&scores, pruned, &[group.to_vec()]);
            assert_eq!([loss.vocabulary, loss.pruning, loss.tie, loss.ranking], expected, "{what}");
        }
        assert_eq!(loss_at_5(&[], &[], |_| 0, |_| true, &Judgement::default()), None);
    }

    #[test]
    fn what_shares_no_word_is_lost_to_vocabulary_whatever_its_score_and_rescued_when_found() {
        let flat = flat(&[90, 80, 70, 60, 50, 40]);
        let judgement = Judgement { groups: vec![vec![0], vec![1], vec![5]] };
        let score_of = |item: u32| flat.iter().find(|hit| hit.item == item).map_or(0, |hit| hit.score);
        let loss = loss_at_5(&flat, &flat, score_of, |item| item == 1, &judgement).unwrap();
        let third = 1.0 / 3.0;
        assert_eq!(loss, Loss { vocabulary: third, pruning: 0.0, tie: 0.0, ranking: 0.0, rescued: third });
    }

    #[test]
    fn a_word_is_shared_after_stemming_and_not_by_its_spelling() {
        let tools = [
            serde_json::json!({"name": "open_issue", "description": "Tickets for developers"}),
            serde_json::json!({"name": "send_mail", "description": "Letters of the office"}),
        ];
        let wording = Wording::of(&Arc::new(Catalog::from_values(&tools, None).unwrap())).unwrap();
        assert_eq!(wording.shared("ticket"), [true, false]);
        assert_eq!(wording.shared("the tickt of the"), [false, false]);
    }

    #[test]
    fn the_mean_is_taken_part_by_part() {
        let (lost, _) = loss(&[5], &[], &[vec![0], vec![1], vec![2]]);
        let (found, _) = loss(&[5], &[], &[vec![0]]);
        assert_eq!(
            mean(&[lost, found]),
            Loss { vocabulary: 0.333333, pruning: 0.0, tie: 0.0, ranking: 0.0, rescued: 0.0 }
        );
    }

    proptest! {
        #[test]
        fn shares_and_recall_sum_to_one(
            scores in prop::collection::vec(0u64..6, 0..14),
            pruned in prop::collection::vec(0u32..14, 0..6),
            groups in prop::collection::vec(prop::collection::vec(0u32..16, 1..4), 1..6),
        ) {
            let (loss, recall) = loss(&scores, &pruned, &groups);
            let sum = loss.vocabulary + loss.pruning + loss.tie + loss.ranking + recall;
            prop_assert!((sum - 1.0).abs() < 1e-12, "{loss:?} {recall}");
            if pruned.is_empty() {
                prop_assert_eq!(loss.pruning, 0.0);
            }
        }
    }
}
