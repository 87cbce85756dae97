//! Scored items, and the selection of the best few.

use std::cmp::Reverse;

/// Units in a score of 1.0: scores are whole numbers of 2⁻¹⁸.
pub const SCORE_UNITS: u64 = 1 << 18;

/// An item with its score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hit {
    /// The item's position in [`crate::catalog::Catalog::items`], which is also its place in id order.
    pub item: u32,
    /// The score in units of 1/[`SCORE_UNITS`].
    pub score: u64,
}

impl Hit {
    /// The sort key of every ranking: score descending, then item (so: id) ascending.
    #[must_use]
    pub fn order(&self) -> (Reverse<u64>, u32) {
        (Reverse(self.score), self.item)
    }

    /// The score as a number.
    #[must_use]
    pub fn score(&self) -> f64 {
        self.score as f64 / SCORE_UNITS as f64
    }
}

/// Collects the `k` best items from score tables, in ranking order.
#[derive(Debug)]
pub(super) struct TopK {
    k: usize,
    hits: Vec<Hit>,
    /// The lowest score that can enter.
    threshold: u32,
    /// Whether items come in ascending order, so that an equal score stays behind those that are there.
    ascending: bool,
}

/// Scores looked at together: a block without a candidate costs one vectorised comparison.
const BLOCK: usize = 64;

/// Up to this depth hits are inserted one by one.
pub(super) const MOST_INSERTED: usize = 256;

impl TopK {
    /// For one table of all items.
    pub(super) fn ascending(k: usize) -> Self {
        Self { k, hits: Vec::with_capacity(k.min(1024) + 1), threshold: 1, ascending: true }
    }

    /// For tables of some items each, in any order; `k` is at most [`MOST_INSERTED`].
    pub(super) fn unordered(k: usize) -> Self {
        Self { ascending: false, ..Self::ascending(k) }
    }

    /// The lowest score that can enter, at least 1.
    pub(super) fn threshold(&self) -> u32 {
        self.threshold
    }

    /// Offers every score that is not 0 and that `allow` lets through; `first` is the item of the first.
    pub(super) fn scan(&mut self, first: u32, scores: &[u32], allow: &impl Fn(u32) -> bool) {
        if self.k == 0 {
            return;
        }
        if self.k > MOST_INSERTED {
            self.sort(first, scores, allow);
            return;
        }
        for (chunk, first) in scores.chunks(BLOCK).zip((first..).step_by(BLOCK)) {
            let threshold = self.threshold;
            if !chunk.iter().fold(false, |any, &score| any | (score >= threshold)) {
                continue;
            }
            for (item, &score) in (first..).zip(chunk) {
                if score >= self.threshold && allow(item) {
                    self.insert(Hit { item, score: u64::from(score) });
                }
            }
        }
    }

    /// For deep rankings, where keeping a sorted list would cost more than sorting once.
    fn sort(&mut self, first: u32, scores: &[u32], allow: &impl Fn(u32) -> bool) {
        let scored = (first..).zip(scores).filter(|&(item, &score)| score > 0 && allow(item));
        self.hits.extend(scored.map(|(item, &score)| Hit { item, score: u64::from(score) }));
        self.hits.sort_unstable_by_key(Hit::order);
        self.hits.truncate(self.k);
    }

    fn insert(&mut self, hit: Hit) {
        let at = self.hits.partition_point(|other| other.order() < hit.order());
        self.hits.insert(at, hit);
        self.hits.truncate(self.k);
        if let Some(last) = self.hits.last().filter(|_| self.hits.len() == self.k) {
            self.threshold = last.score as u32 + u32::from(self.ascending);
        }
    }

    pub(super) fn into_hits(self) -> Vec<Hit> {
        self.hits
    }
}
