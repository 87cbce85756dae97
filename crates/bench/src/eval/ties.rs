//! How much of a recall is luck of the order in which equal scores happen to stand.
//!
//! Rankings break ties by id, which says nothing about relevance. Here the recall is taken over every order of the
//! equal scores: exactly, by following the distribution over found groups from place to place, without sampling.
//! Only scores decide what is tied; the order of the given ranking among equal scores changes nothing.

use std::collections::BTreeMap;

use super::measure::Judgement;
use super::record::Ties;
use super::statistics::{mean as mean_of, round6};
use contextweaver_routing::Hit;

/// recall@k of one query over all orders of equal scores: the best, the worst and the mean over all orders.
/// `None` when no tool answers the query.
///
/// `ranking` must hold every hit that has the score of the k-th one; what follows is not read.
#[must_use]
pub fn recall_over_orders(ranking: &[Hit], judgement: &Judgement, k: usize) -> Option<Ties> {
    let groups = judgement.groups.len();
    if groups == 0 {
        return None;
    }
    let apart = apart(judgement);
    let mut outcomes = Outcomes::from([(State { found: vec![false; groups], more: 0 }, 1.0)]);
    let mut places = k;
    for tied in ranking.chunk_by(|left, right| left.score == right.score) {
        if places == 0 {
            break;
        }
        let open = places.min(tied.len());
        outcomes = fill(open, tied, judgement, &apart, outcomes);
        places -= open;
    }
    let recall = |state: &State| state.groups() as f64 / groups as f64;
    Some(Ties {
        best: outcomes.keys().map(recall).fold(0.0, f64::max),
        worst: outcomes.keys().map(recall).fold(1.0, f64::min),
        expected: outcomes.iter().map(|(state, probability)| recall(state) * probability).sum(),
    })
}

/// The mean over queries, rounded to six decimals.
#[must_use]
pub fn mean(queries: &[Ties]) -> Ties {
    let over = |part: fn(&Ties) -> f64| round6(mean_of(queries.iter().map(part)));
    Ties { best: over(|ties| ties.best), worst: over(|ties| ties.worst), expected: over(|ties| ties.expected) }
}

/// What is found so far.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    /// One flag per group, in the order of the judgement.
    found: Vec<bool>,
    /// Further groups of which it does not matter which they are.
    more: usize,
}

impl State {
    fn groups(&self) -> usize {
        self.found.iter().filter(|found| **found).count() + self.more
    }
}

/// The probability of each state.
type Outcomes = BTreeMap<State, f64>;

/// Which groups share no item with another.
fn apart(judgement: &Judgement) -> Vec<bool> {
    let mut groups_of: BTreeMap<u32, usize> = BTreeMap::new();
    judgement.groups.iter().flatten().for_each(|item| *groups_of.entry(*item).or_default() += 1);
    judgement.groups.iter().map(|group| group.iter().all(|item| groups_of[item] == 1)).collect()
}

/// Draws the items of `open` places from the tied hits, each order being equally likely. `apart` are the groups that share no
/// item: a tie that is drawn whole finds those that it has, and of one that is not, which is the last, it matters only how many
/// of them have how many of its items. So the number of states does not double with each group.
fn fill(open: usize, tied: &[Hit], judgement: &Judgement, apart: &[bool], outcomes: Outcomes) -> Outcomes {
    let is_apart = |(groups, _): &(Vec<usize>, usize)| groups.as_slice().iter().all(|group| apart[*group]);
    let (own, kinds): (BTreeMap<_, _>, BTreeMap<_, _>) = kinds_of(tied, judgement).into_iter().partition(is_apart);
    let is_whole = open == tied.len();
    let counts: Vec<usize> = kinds.values().copied().collect();
    let kinds: Vec<Vec<usize>> = kinds.into_keys().collect();
    let mut draws: BTreeMap<Draw, f64> = BTreeMap::new();
    for (State { mut found, more }, probability) in outcomes {
        let mut own_left: BTreeMap<usize, usize> = BTreeMap::new();
        for (groups, items) in &own {
            match groups.first() {
                Some(group) if is_whole => found[*group] = true,
                Some(group) if !found[*group] => *own_left.entry(*items).or_default() += 1,
                _ => {}
            }
        }
        let mut draw = Draw { state: State { found, more }, useful: counts.clone(), own: own_left };
        draw.drop_useless(&kinds);
        *draws.entry(draw).or_default() += probability;
    }
    let open = if draws.keys().all(Draw::is_over) { 0 } else { open };
    for drawn in 0..open {
        let left = (tied.len() - drawn) as f64;
        let mut next: BTreeMap<Draw, f64> = BTreeMap::new();
        for (draw, probability) in draws {
            let of_own = draw.own.iter().map(|(items, groups)| items * groups);
            let useless = left - draw.useful.iter().copied().chain(of_own).sum::<usize>() as f64;
            for (items, groups) in &draw.own {
                *next.entry(draw.take_own(*items)).or_default() += probability * (items * groups) as f64 / left;
            }
            for (kind, count) in draw.useful.iter().enumerate().filter(|(_, count)| **count > 0) {
                *next.entry(draw.take(kind, &kinds)).or_default() += probability * *count as f64 / left;
            }
            if useless > 0.0 {
                *next.entry(draw).or_default() += probability * useless / left;
            }
        }
        draws = next;
    }
    let mut outcomes = Outcomes::new();
    for (draw, probability) in draws {
        *outcomes.entry(draw.state).or_default() += probability;
    }
    outcomes
}

/// How many of the tied items belong to exactly the same groups; items of no group are left out.
fn kinds_of(tied: &[Hit], judgement: &Judgement) -> BTreeMap<Vec<usize>, usize> {
    let mut kinds = BTreeMap::new();
    for hit in tied {
        let of = |(number, group): (usize, &Vec<u32>)| group.contains(&hit.item).then_some(number);
        let groups: Vec<usize> = judgement.groups.iter().enumerate().filter_map(of).collect();
        if !groups.is_empty() {
            *kinds.entry(groups).or_default() += 1;
        }
    }
    kinds
}

/// A state between two places of one tie.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Draw {
    state: State,
    /// How many items of each kind are left; 0 once every group of the kind is found, because its items are then as
    /// useless as all others. This keeps the number of states small.
    useful: Vec<usize>,
    /// How many of the groups that share no item are not found, by the number of their items that are left.
    own: BTreeMap<usize, usize>,
}

impl Draw {
    /// Whether no further item finds anything.
    fn is_over(&self) -> bool {
        self.own.is_empty() && self.useful.iter().all(|count| *count == 0)
    }

    /// The state after drawing an item of a group that shares none and has so many left, which are useless then.
    fn take_own(&self, items: usize) -> Self {
        let mut next = self.clone();
        match next.own.get_mut(&items) {
            Some(groups) if *groups > 1 => *groups -= 1,
            _ => drop(next.own.remove(&items)),
        }
        next.state.more += 1;
        next
    }

    /// The state after drawing an item of `kind`, which finds the first of its groups that is still missing.
    fn take(&self, kind: usize, kinds: &[Vec<usize>]) -> Self {
        let mut next = self.clone();
        next.useful[kind] -= 1;
        if let Some(group) = kinds[kind].iter().find(|group| !self.state.found[**group]) {
            next.state.found[*group] = true;
        }
        next.drop_useless(kinds);
        next
    }

    fn drop_useless(&mut self, kinds: &[Vec<usize>]) {
        for (useful, groups) in self.useful.iter_mut().zip(kinds) {
            if groups.iter().all(|group| self.state.found[*group]) {
                *useful = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::measure::Found;
    use super::*;

    fn hits(scores: &[u64]) -> Vec<Hit> {
        let mut hits: Vec<Hit> = (0..).zip(scores).map(|(item, score)| Hit { item, score: *score }).collect();
        hits.sort_by_key(|hit| (std::cmp::Reverse(hit.score), hit.item));
        hits
    }

    fn recall(ranking: &[Hit], judgement: &Judgement, k: usize) -> f64 {
        Found::of(ranking, judgement).unwrap().within(k) as f64 / judgement.groups.len() as f64
    }

    /// Calls `visit` with every order of `hits` in which scores descend.
    fn for_each_order(done: &mut Vec<Hit>, left: &[Hit], visit: &mut impl FnMut(&[Hit])) {
        let Some(top) = left.iter().map(|hit| hit.score).max() else { return visit(done) };
        for next in left.iter().filter(|hit| hit.score == top) {
            done.push(*next);
            let rest: Vec<Hit> = left.iter().filter(|hit| hit != &next).copied().collect();
            for_each_order(done, &rest, visit);
            done.pop();
        }
    }

    /// What it shows, the score of each item, the groups, and recall@2 at best, at worst and on average.
    type Case<'a> = (&'a str, &'a [u64], &'a [&'a [u32]], [f64; 3]);

    #[test]
    fn ties_worked_by_hand() {
        let table: [Case<'_>; 7] = [
            ("no tie", &[9, 8, 7, 6], &[&[1], &[3]], [0.5, 0.5, 0.5]),
            ("tie inside the first two", &[9, 9, 7, 6], &[&[1], &[3]], [0.5, 0.5, 0.5]),
            ("one place for three", &[9, 5, 5, 5], &[&[2]], [1.0, 0.0, 1.0 / 3.0]),
            ("two members for one place of three", &[9, 5, 5, 5], &[&[1, 2]], [1.0, 0.0, 2.0 / 3.0]),
            // 1 − C(2,2)/C(4,2) that a place goes to one of the two members.
            ("two places for four", &[5, 5, 5, 5], &[&[0, 1]], [1.0, 0.0, 5.0 / 6.0]),
            ("short ranking", &[9], &[&[0], &[1]], [0.5, 0.5, 0.5]),
            // Item 0 serves both groups: before item 1 it finds the first of them, after it the second.
            ("shared item", &[5, 5], &[&[0, 1], &[0]], [1.0, 0.5, 0.75]),
        ];
        for (what, scores, groups, expected) in table {
            let judgement = Judgement { groups: groups.iter().map(|group| group.to_vec()).collect() };
            let ties = recall_over_orders(&hits(scores), &judgement, 2).unwrap();
            let found = [ties.best, ties.worst, ties.expected];
            assert!(found.iter().zip(expected).all(|(left, right)| (left - right).abs() < 1e-12), "{what}: {found:?}");
        }
        assert_eq!(recall_over_orders(&hits(&[1]), &Judgement::default(), 2), None);
    }

    #[test]
    fn ten_thousand_equal_scores_are_exact_and_quick() {
        let judgement = Judgement { groups: vec![vec![7], vec![8, 9], vec![9_999]] };
        let ties = recall_over_orders(&hits(&[1; 10_000]), &judgement, 5).unwrap();
        let n = 10_000.0_f64;
        let two_members =
            1.0 - (0..5).map(|place| (n - 2.0 - f64::from(place)) / (n - f64::from(place))).product::<f64>();
        assert!((ties.expected - (5.0 / n + two_members + 5.0 / n) / 3.0).abs() < 1e-12);
        assert_eq!([ties.best, ties.worst], [1.0, 0.0]);
    }

    #[test]
    fn many_needed_tools_in_one_tie_are_exact_and_quick() {
        // The mean is 1 − C(n − m, 5) / C(n, 5) for each, of which `n` are tied and `m` answer.
        for (items, expected) in [(1u32, 0.025), (2, 1.0 - 195.0 * 194.0 / (200.0 * 199.0))] {
            let groups = (0..100).map(|group| (group * items..(group + 1) * items).collect()).collect();
            let ties = recall_over_orders(&hits(&[1; 200]), &Judgement { groups }, 5).unwrap();
            assert!((ties.expected - expected).abs() < 1e-12, "{items}: {ties:?}");
            assert_eq!([ties.best, ties.worst], [0.05, if items == 1 { 0.0 } else { 0.03 }]);
        }
    }

    #[test]
    fn the_mean_is_taken_part_by_part() {
        let queries =
            [Ties { best: 1.0, worst: 0.0, expected: 1.0 / 3.0 }, Ties { best: 1.0, worst: 1.0, expected: 1.0 }];
        assert_eq!(mean(&queries), Ties { best: 1.0, worst: 0.5, expected: 0.666667 });
    }

    proptest! {
        #[test]
        fn every_order_is_counted(
            scores in prop::collection::vec(1u64..4, 1..7),
            groups in prop::collection::vec(prop::collection::btree_set(0u32..8, 1..4), 1..4),
            k in 1usize..6,
        ) {
            let ranking = hits(&scores);
            let judgement = Judgement { groups: groups.into_iter().map(|group| group.into_iter().collect()).collect() };
            let ties = recall_over_orders(&ranking, &judgement, k).unwrap();
            let mut recalls = Vec::new();
            for_each_order(&mut Vec::new(), &ranking, &mut |order| recalls.push(recall(order, &judgement, k)));
            prop_assert_eq!(ties.best, recalls.iter().copied().fold(0.0, f64::max));
            prop_assert_eq!(ties.worst, recalls.iter().copied().fold(1.0, f64::min));
            prop_assert!((ties.expected - mean_of(recalls.iter().copied())).abs() < 1e-12);
            let by_id = recall(&ranking, &judgement, k);
            prop_assert!(ties.worst <= by_id && by_id <= ties.best);
        }
    }
}
