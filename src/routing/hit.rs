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

/// Collects the `k` best items from a dense score table, in ranking order.
#[derive(Debug)]
pub(super) struct TopK {
    k: usize,
    hits: Vec<Hit>,
    /// Scores up to here cannot enter: 0 while there is room.
    threshold: u32,
}

/// Scores looked at together: a block without a candidate costs one vectorised comparison.
const BLOCK: usize = 64;

/// Up to this depth hits are inserted one by one.
const MOST_INSERTED: usize = 256;

impl TopK {
    pub(super) fn new(k: usize) -> Self {
        Self { k, hits: Vec::with_capacity(k.min(1024) + 1), threshold: 0 }
    }

    /// Offers every non-zero score that `allow` lets through.
    pub(super) fn scan(&mut self, scores: &[u32], allow: &impl Fn(u32) -> bool) {
        if self.k == 0 {
            return;
        }
        if self.k > MOST_INSERTED {
            self.sort(scores, allow);
            return;
        }
        for (block, chunk) in scores.chunks(BLOCK).enumerate() {
            let threshold = self.threshold;
            if !chunk.iter().fold(false, |any, &score| any | (score > threshold)) {
                continue;
            }
            for (offset, &score) in chunk.iter().enumerate() {
                if score > self.threshold {
                    let item = (block * BLOCK + offset) as u32;
                    if allow(item) {
                        self.insert(item, score);
                    }
                }
            }
        }
    }

    /// For deep rankings, where keeping a sorted list would cost more than sorting once.
    fn sort(&mut self, scores: &[u32], allow: &impl Fn(u32) -> bool) {
        let scored = scores.iter().enumerate().filter(|&(item, &score)| score > 0 && allow(item as u32));
        self.hits.extend(scored.map(|(item, &score)| Hit { item: item as u32, score: u64::from(score) }));
        self.hits.sort_unstable_by_key(Hit::order);
        self.hits.truncate(self.k);
    }

    /// Items arrive in ascending order, so an equal score always goes behind.
    fn insert(&mut self, item: u32, score: u32) {
        let hit = Hit { item, score: u64::from(score) };
        let at = self.hits.partition_point(|other| other.score >= hit.score);
        self.hits.insert(at, hit);
        self.hits.truncate(self.k);
        if self.hits.len() == self.k {
            self.threshold = self.hits.last().map_or(0, |last| last.score as u32);
        }
    }

    pub(super) fn into_hits(self) -> Vec<Hit> {
        self.hits
    }
}
