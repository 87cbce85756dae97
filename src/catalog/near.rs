//! All pairs of similar term sets, without comparing all pairs.
//!
//! Prefix filtering (Chaudhuri, Ganti and Kaushik, "A primitive operator for similarity joins in data cleaning",
//! ICDE 2006): when every set is ordered by how rare its terms are, two sets that share most of their terms share
//! one of their first few. Candidates come from an index over those rare prefixes and each is then compared exactly,
//! so the result is that of comparing all pairs.

use std::collections::BTreeMap;

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
    let ranked = by_rarity(sets);
    let mut by_size: Vec<usize> = (0..sets.len()).filter(|position| !sets[*position].is_empty()).collect();
    by_size.sort_by_key(|position| sets[*position].len());

    let mut index: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    let mut compared_with = vec![usize::MAX; sets.len()];
    let mut pairs = Vec::new();
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
                    pairs.push(NearPair { first: position.min(other), second: position.max(other), similarity });
                }
            }
            posted.push(position);
        }
    }
    pairs.sort_unstable_by_key(|pair| (pair.first, pair.second));
    pairs
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
            prop_assert_eq!(near_duplicates(&sets, threshold), all_pairs(&sets, threshold));
        }
    }
}
