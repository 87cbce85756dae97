//! Scored items, and the selection of the best few.

use std::cmp::Reverse;

use pulp::{Arch, NullaryFnOnce};

/// Units in a score of 1.0: scores are whole numbers of 2⁻¹⁸.
pub const SCORE_UNITS: u64 = 1 << 18;

/// An item with its score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hit {
    /// The item's position in [`contextweaver_core::catalog::Catalog::items`], which is in id order.
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

/// Collects the `k` best items from score tables.
#[derive(Debug)]
pub(crate) struct TopK {
    k: usize,
    /// The keys of the best items so far: best first in a short ranking; in a long one in no order, and with more than
    /// `k` of them within a scan.
    keys: Vec<Key>,
    /// The key that a new item must precede to enter: that of the last of `k` items, or one that every item with a
    /// score precedes.
    last: Key,
}

/// The number of scores examined together: a block that cannot change the result costs one vectorised comparison.
const BLOCK: usize = 64;

/// The number of scores examined together within a block that can change the result.
const PART: usize = 8;

/// Rankings up to this length are kept sorted by inserting hits one by one. Longer ones collect twice their length before
/// the worse half is dropped, since an insertion moves half of the list.
const MOST_INSERTED: usize = 24;

impl TopK {
    /// For tables of some items each, in any order.
    pub(crate) fn new(k: usize) -> Self {
        let last = if k == 0 { Key(u64::MAX) } else { Key::of(0, 0) };
        Self { k, keys: Vec::with_capacity(if k > MOST_INSERTED { k.min(1024) * 2 } else { k + 1 }), last }
    }

    /// The lowest score that can enter, at least 1.
    pub(crate) fn threshold(&self) -> u32 {
        self.last.score().max(1)
    }

    /// Offers every score that is not 0 and that `allow` lets through; `first` is the item of the first score. Returns
    /// the highest score of all, allowed or not.
    pub(crate) fn scan(&mut self, first: u32, scores: &[u32], allow: &impl Fn(u32) -> bool) -> u32 {
        Arch::new().dispatch(Scan { top: self, first, scores, allow })
    }

    fn offer(&mut self, key: Key) {
        if self.k > MOST_INSERTED {
            self.keys.push(key);
            if self.keys.len() / 2 >= self.k {
                self.cut();
            }
            return;
        }
        let at = self.keys.partition_point(|other| *other > key);
        if self.keys.len() == self.k {
            self.keys.pop();
        }
        self.keys.insert(at, key);
        if self.keys.len() == self.k {
            self.last = self.keys[self.k - 1];
        }
    }

    /// Drops what is behind the `k` best of a long ranking.
    fn cut(&mut self) {
        if self.k > MOST_INSERTED && self.keys.len() >= self.k {
            let (_, last, _) = self.keys.select_nth_unstable_by(self.k - 1, |left, right| right.cmp(left));
            self.last = *last;
            self.keys.truncate(self.k);
        }
    }

    /// The best items, in the order of a ranking.
    pub(super) fn into_hits(mut self) -> Vec<Hit> {
        self.keys.sort_unstable_by(|left, right| right.cmp(left));
        self.keys.iter().map(|key| Hit { item: key.item(), score: u64::from(key.score()) }).collect()
    }
}

/// A score and an item in one number: an earlier hit of a ranking has a larger key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64);

impl Key {
    fn of(score: u32, item: u32) -> Self {
        Self(u64::from(score) << 32 | u64::from(!item))
    }

    fn score(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn item(self) -> u32 {
        !(self.0 as u32)
    }
}

/// [`TopK::scan`], to be run in the machine's widest instructions: everything is inlined where it is run.
struct Scan<'s, A> {
    top: &'s mut TopK,
    first: u32,
    scores: &'s [u32],
    allow: &'s A,
}

impl<A: Fn(u32) -> bool> NullaryFnOnce for Scan<'_, A> {
    type Output = u32;

    #[inline(always)]
    fn call(self) -> u32 {
        let Self { top, first, scores, allow } = self;
        let mut best = 0;
        for (block, first) in scores.chunks(BLOCK).zip((first..).step_by(BLOCK)) {
            let in_block = highest(block);
            best = best.max(in_block);
            // An item with the same score that comes after the last one stays behind it.
            let threshold = top.last.score().saturating_add(u32::from(first > top.last.item()));
            if in_block < threshold {
                continue;
            }
            for (part, first) in block.chunks(PART).zip((first..).step_by(PART)) {
                if highest(part) < threshold {
                    continue;
                }
                for (item, &score) in (first..).zip(part) {
                    let key = Key::of(score, item);
                    if key > top.last && allow(item) {
                        top.offer(key);
                    }
                }
            }
        }
        top.cut();
        best
    }
}

/// The places of the scores that are at least `least`.
pub(crate) fn at_least(scores: &[u32], least: u32) -> Vec<u32> {
    Arch::new().dispatch(AtLeast { scores, least })
}

/// [`at_least`], to be run in the machine's widest instructions.
struct AtLeast<'s> {
    scores: &'s [u32],
    least: u32,
}

impl NullaryFnOnce for AtLeast<'_> {
    type Output = Vec<u32>;

    #[inline(always)]
    fn call(self) -> Vec<u32> {
        let mut places = Vec::new();
        for (block, first) in self.scores.chunks(BLOCK).zip((0u32..).step_by(BLOCK)) {
            if highest(block) >= self.least {
                let there = (first..).zip(block).filter(|(_, score)| **score >= self.least);
                places.extend(there.map(|(place, _)| place));
            }
        }
        places
    }
}

#[inline(always)]
fn highest(scores: &[u32]) -> u32 {
    scores.iter().fold(0, |highest, &score| highest.max(score))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_best_of_tables_in_any_order_are_those_of_sorting_everything(
            scores in prop::collection::vec(prop_oneof![Just(0u32), 0u32..6, any::<u32>()], 0..700),
            k in prop_oneof![0usize..12, 20usize..30, 200usize..300],
            table in 1usize..300,
            backwards in any::<bool>(),
            modulus in 1u32..4,
        ) {
            let allow = |item: u32| item.is_multiple_of(modulus);
            let mut expected: Vec<Hit> = (0u32..)
                .zip(&scores)
                .filter(|(item, score)| **score > 0 && allow(*item))
                .map(|(item, &score)| Hit { item, score: u64::from(score) })
                .collect();
            expected.sort_by_key(Hit::order);
            expected.truncate(k);
            let mut tables: Vec<(u32, &[u32])> = (0u32..).step_by(table).zip(scores.chunks(table)).collect();
            if backwards {
                tables.reverse();
            }
            let mut top = TopK::new(k);
            let best = tables.iter().map(|(first, scores)| top.scan(*first, scores, &allow)).max().unwrap_or(0);
            prop_assert_eq!(best, scores.iter().copied().max().unwrap_or(0));
            prop_assert_eq!(top.threshold(), match expected.get(k.wrapping_sub(1)) {
                _ if k == 0 => u32::MAX,
                Some(last) => last.score as u32,
                None => 1,
            });
            prop_assert_eq!(top.into_hits(), expected);
        }
    }
}
