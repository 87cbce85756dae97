//! All pairs of similar term sets, without comparing all pairs.
//!
//! Prefix filtering (Chaudhuri, Ganti and Kaushik, "A primitive operator for similarity joins in data cleaning",
//! ICDE 2006): when every set is ordered by how rare its terms are, two sets that share most of their terms share
//! one of their first few. Candidates come from an index over those rare prefixes and each is then compared exactly,
//! so the result is that of comparing all pairs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rustc_hash::FxHashMap;

use crate::text::{TermSet, jaccard};

/// Two similar sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearPair {
    /// The position of one set.
    pub first: usize,
    /// The position of the other; larger than `first`.
    pub second: usize,
    /// Their Jaccard similarity.
    pub similarity: f64,
}

/// Keeps rounding from losing a pair in the filters; the final comparison is exact.
const SLACK: f64 = 1e-9;

/// Every pair of non-empty sets whose Jaccard similarity is at least `threshold` (above 0), in ascending order of
/// positions. Near-linear when few sets are similar.
#[must_use]
pub fn near_duplicates(sets: &[TermSet], threshold: f64) -> Vec<NearPair> {
    let mut pairs = Vec::new();
    for_each_near_pair(sets, threshold, |pair| pairs.push(pair));
    pairs.sort_unstable_by_key(|pair| (pair.first, pair.second));
    pairs
}

/// The sets that are similar to one.
#[cfg(feature = "lint")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Neighbours {
    /// The position of the most similar one, the lowest of several.
    pub(super) nearest: usize,
    /// Its Jaccard similarity.
    pub(super) similarity: f64,
    /// How many there are.
    pub(super) count: usize,
}

/// For every set what [`near_duplicates`] finds about it. The pairs themselves are not kept: those of many copies would
/// fill the memory. Equal sets are compared once.
#[cfg(feature = "lint")]
pub(super) fn neighbours(sets: &[TermSet], threshold: f64) -> Vec<Option<Neighbours>> {
    let mut equal: BTreeMap<&[u64], Vec<usize>> = BTreeMap::new();
    for (position, set) in sets.iter().enumerate().filter(|(_, set)| !set.is_empty()) {
        equal.entry(set.hashes()).or_default().push(position);
    }
    let groups: Vec<Vec<usize>> = equal.into_values().collect();
    let distinct: Vec<TermSet> = groups.iter().map(|group| sets[group[0]].clone()).collect();
    let mut around: Vec<Option<Neighbours>> = vec![None; groups.len()];
    for_each_near_pair(&distinct, threshold, |NearPair { first, second, similarity }| {
        for (one, other) in [(first, second), (second, first)] {
            let nearest = groups[other][0];
            let found = around[one].get_or_insert(Neighbours { nearest, similarity, count: 0 });
            found.count += groups[other].len();
            if (similarity, found.nearest) > (found.similarity, nearest) {
                (found.nearest, found.similarity) = (nearest, similarity);
            }
        }
    });
    let mut all = vec![None; sets.len()];
    for (group, around) in groups.iter().zip(around) {
        let beyond = around.map_or(0, |found| found.count);
        for position in group {
            all[*position] = match group.iter().find(|other| *other != position) {
                None => around,
                Some(copy) => Some(Neighbours { nearest: *copy, similarity: 1.0, count: beyond + group.len() - 1 }),
            };
        }
    }
    all
}

/// Calls `emit` with every pair of [`near_duplicates`], in no particular order.
fn for_each_near_pair(sets: &[TermSet], threshold: f64, mut emit: impl FnMut(NearPair)) {
    let ranked = by_rarity(sets);
    let mut by_size: Vec<usize> = (0..sets.len()).filter(|position| !sets[*position].is_empty()).collect();
    by_size.sort_by_key(|position| sets[*position].len());

    let mut index: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    let mut compared_with = vec![usize::MAX; sets.len()];
    for position in by_size {
        let set = &sets[position];
        // At least this many terms are shared with any similar set, so one of the others is in the prefix.
        let shared = (threshold * set.len() as f64 - SLACK).ceil().max(1.0) as usize;
        let smallest = threshold * set.len() as f64 - SLACK;
        for term in ranked[position].iter().take(set.len() + 1 - shared.min(set.len())) {
            let posted = index.entry(*term).or_default();
            for other in posted.iter().copied() {
                if (sets[other].len() as f64) < smallest || compared_with[other] == position {
                    continue;
                }
                compared_with[other] = position;
                let similarity = jaccard(set, &sets[other]);
                if similarity >= threshold {
                    emit(NearPair { first: position.min(other), second: position.max(other), similarity });
                }
            }
            posted.push(position);
        }
    }
}

/// Pairs of a set of `old` and one of `new` by position whose Jaccard similarity is at least `threshold` (above 0):
/// the most similar first, then by position, each set in one pair at most.
///
/// Exact as long as a set meets at most [`MOST_COMPARED`] candidates, found by its rarest terms. Further candidates are
/// not compared, so that thousands of sets that are all alike take no quadratic time.
pub(super) fn pair_most_similar(old: &[TermSet], new: &[TermSet], threshold: f64) -> Vec<(usize, usize)> {
    let mut pool = Pool::new(old);
    let mut queue: BinaryHeap<(u64, Reverse<usize>, Reverse<usize>)> = BinaryHeap::new();
    // The bits of floats that are not negative are in the order of the floats.
    let entry = |new, (similarity, old): (f64, usize)| (similarity.to_bits(), Reverse(new), Reverse(old));
    for (position, set) in new.iter().enumerate() {
        queue.extend(pool.nearest(set, threshold).map(|found| entry(position, found)));
    }
    let mut pairs = Vec::new();
    while let Some((_, Reverse(position), Reverse(candidate))) = queue.pop() {
        if pool.taken[candidate] {
            queue.extend(pool.nearest(&new[position], threshold).map(|found| entry(position, found)));
        } else {
            pool.taken[candidate] = true;
            pairs.push((candidate, position));
        }
    }
    pairs
}

/// The number of candidates compared with one set at most.
const MOST_COMPARED: usize = 256;

/// Sets to be paired, each at most once.
struct Pool<'s> {
    sets: &'s [TermSet],
    taken: Vec<bool>,
    /// Per term the sets that have it, in descending order, so that taken sets drop off the end.
    index: FxHashMap<u64, Vec<usize>>,
    /// Per term the number of sets that have it.
    frequency: FxHashMap<u64, usize>,
}

impl<'s> Pool<'s> {
    fn new(sets: &'s [TermSet]) -> Self {
        let mut index: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
        for (position, set) in sets.iter().enumerate().rev() {
            for term in set.hashes() {
                index.entry(*term).or_default().push(position);
            }
        }
        let frequency = index.iter().map(|(term, posted)| (*term, posted.len())).collect();
        Self { sets, taken: vec![false; sets.len()], index, frequency }
    }

    /// The most similar set that is still free, the first of several.
    fn nearest(&mut self, set: &TermSet, threshold: f64) -> Option<(f64, usize)> {
        let Self { sets, taken, index, frequency } = self;
        let mut terms = set.hashes().to_vec();
        terms.sort_unstable_by_key(|term| (frequency.get(term).copied().unwrap_or_default(), *term));
        let shared = (threshold * set.len() as f64 - SLACK).ceil().max(1.0) as usize;
        let mut room = MOST_COMPARED;
        let mut best: Option<(f64, usize)> = None;
        for term in terms.iter().take((set.len() + 1).saturating_sub(shared)) {
            let Some(posted) = index.get_mut(term) else { continue };
            while posted.last().is_some_and(|last| taken[*last]) {
                posted.pop();
            }
            for candidate in posted.iter().rev().copied().filter(|candidate| !taken[*candidate]).take(room) {
                room -= 1;
                let similarity = jaccard(set, &sets[candidate]);
                let better = best.is_none_or(|best| (similarity, best.1) > (best.0, candidate));
                if similarity >= threshold && better {
                    best = Some((similarity, candidate));
                }
            }
        }
        best
    }
}

/// The terms of every set as ranks, the rarest term of all sets first.
fn by_rarity(sets: &[TermSet]) -> Vec<Vec<u32>> {
    let mut frequency: BTreeMap<u64, u32> = BTreeMap::new();
    for hash in sets.iter().flat_map(TermSet::hashes) {
        *frequency.entry(*hash).or_default() += 1;
    }
    let mut rarest: Vec<(u32, u64)> = frequency.into_iter().map(|(hash, count)| (count, hash)).collect();
    rarest.sort_unstable();
    let ranks: FxHashMap<u64, u32> = rarest.iter().map(|(_, hash)| *hash).zip(0..).collect();
    let ranked = sets.iter().map(|set| {
        let mut terms: Vec<u32> = set.hashes().iter().filter_map(|hash| ranks.get(hash).copied()).collect();
        terms.sort_unstable();
        terms
    });
    ranked.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::Analyzer;

    fn all_pairs(sets: &[TermSet], threshold: f64) -> Vec<NearPair> {
        let mut pairs = Vec::new();
        for first in 0..sets.len() {
            for second in first + 1..sets.len() {
                let similarity = jaccard(&sets[first], &sets[second]);
                if similarity >= threshold {
                    pairs.push(NearPair { first, second, similarity });
                }
            }
        }
        pairs
    }

    proptest! {
        #[test]
        fn the_join_equals_all_pairs(
            texts in proptest::collection::vec("([a-h]x ?){0,9}", 0..40),
            threshold in proptest::sample::select(vec![0.2, 1.0 / 3.0, 0.5, 0.6, 0.75, 0.8, 0.85, 1.0]),
        ) {
            let analyzer = Analyzer::default();
            let sets: Vec<TermSet> = texts.iter().map(|text| TermSet::of(&analyzer, text)).collect();
            let pairs = all_pairs(&sets, threshold);
            prop_assert_eq!(&near_duplicates(&sets, threshold), &pairs);
            let plain = (0..sets.len()).map(|one| {
                let around: Vec<(f64, Reverse<usize>)> = pairs
                    .iter()
                    .filter(|pair| pair.first == one || pair.second == one)
                    .map(|pair| (pair.similarity, Reverse(pair.first + pair.second - one)))
                    .collect();
                let nearest = around.iter().copied().max_by(|left, right| left.partial_cmp(right).unwrap());
                nearest.map(|(similarity, Reverse(nearest))| Neighbours { nearest, similarity, count: around.len() })
            });
            prop_assert_eq!(neighbours(&sets, threshold), plain.collect::<Vec<_>>());
        }

        #[test]
        fn the_most_similar_are_paired_first(
            old in proptest::collection::vec("([a-h]x ?){0,9}", 0..20),
            new in proptest::collection::vec("([a-h]x ?){0,9}", 0..20),
        ) {
            let analyzer = Analyzer::default();
            let sets = |texts: &[String]| -> Vec<TermSet> { texts.iter().map(|text| TermSet::of(&analyzer, text)).collect() };
            let (old, new) = (sets(&old), sets(&new));
            let mut all: Vec<(f64, usize, usize)> = (0..new.len())
                .flat_map(|after| (0..old.len()).map(move |before| (after, before)))
                .map(|(after, before)| (jaccard(&old[before], &new[after]), after, before))
                .filter(|(similarity, ..)| *similarity >= 0.5)
                .collect();
            all.sort_by(|left, right| right.0.total_cmp(&left.0).then((left.1, left.2).cmp(&(right.1, right.2))));
            let mut plain: Vec<(usize, usize)> = Vec::new();
            for (_, after, before) in all {
                if plain.iter().all(|pair| pair.0 != before && pair.1 != after) {
                    plain.push((before, after));
                }
            }
            prop_assert_eq!(pair_most_similar(&old, &new, 0.5), plain);
        }
    }
}
