//! Combines lexical and semantic scores into one ranking.
//!
//! With `L` an item's lexical score, `R` the idf of a word that no item has, `cos` the cosine of item and query and `C` the best
//! cosine:
//!
//! `score = L + ⌊w · R · (max(cos, 0) / C)²⌋`
//!
//! Lexical scores grow with what the words of a query find, and `R` does not. So how far meaning is trusted depends on the query: it
//! decides where words found less than about `w` rare words, and hardly counts where they found many. Cosines shrink with the
//! length of a query, so they are divided by the best; the square lets only those gain that are nearly as near. `C` is taken
//! over all items, not only the allowed ones, so that a filter changes no score. The table knows nothing of a query in another
//! script, which is then ranked by words alone. Where it knows a part, as in German or of a misspelled word, that part helps:
//! gating it by the share of known words did harm.

use pulp::{Arch, NullaryFnOnce};

use super::vectors::Near;
use crate::hit::{Hit, TopK, at_least};
use crate::index::Depth;

/// Where not everything is compared, each side proposes so many items, or as many as are asked for where those are more:
/// a search for five and one for a hundred then rank the same items, and what is served is what was measured.
const PROPOSED: usize = 128;

/// Each side's first items are scored at once, this many times the number asked for: how far down any other can be among
/// the first is read from them.
const FIRST_SCORED: usize = 2;

/// An item that shares no word with the query is found when its similarity is at least the best one divided by this:
/// items further away would only fill the list.
const FOUND_WITHIN: i32 = 2;

/// Scores in 32 bits of floating point are off by less than this share of them, with room: each of six roundings is off by
/// 2⁻²⁴ at most, on either side of a comparison, and each of two of the bound.
const ROUNDED: f32 = 1.0 / (1 << 19) as f32;

/// And by this many units, since parts are rounded down.
const ROUNDED_OFF: f32 = 4.0;

/// The units in a weight of 1.
const WEIGHT_UNITS: u64 = 1024;

/// How much the semantic table, or the encoder, counts for one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fusion {
    /// What the best cosine adds: `w · R`, in score units.
    most: u64,
    /// The best cosine, in the units of [`super::Near::similarity`]; 0 where this side takes no part.
    best: i32,
}

impl Fusion {
    /// The fusion at weight `w` from 0 to 100 (in steps of 1/1024) over items of which an unknown word has the idf `rarity`, in
    /// score units and below 2³², for a query whose best similarity is `best_similarity`.
    #[must_use]
    pub fn new(weight: f64, rarity: u64, best_similarity: i32) -> Self {
        if best_similarity <= 0 {
            return Self::default();
        }
        let weight = (weight.clamp(0.0, 100.0) * WEIGHT_UNITS as f64).round() as u64;
        Self { most: weight * rarity / WEIGHT_UNITS, best: best_similarity }
    }

    /// What the nearest item gains, in score units.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most
    }

    /// What a similarity adds to an item's score, in score units.
    #[must_use]
    pub fn part(&self, similarity: i32) -> u64 {
        let [similarity, best] = [similarity.clamp(0, self.best), self.best].map(|of| u128::from(of.unsigned_abs()));
        // At most `most`, since no similarity is above the best.
        (u128::from(self.most) * similarity * similarity).checked_div(best * best).unwrap_or(0) as u64
    }

    /// The similarity from which on an item that shares no word with the query is found.
    pub(crate) fn least(&self) -> i32 {
        if self.most > 0 { (self.best / FOUND_WITHIN).max(1) } else { i32::MAX }
    }

    /// The number of items that each side proposes where `k` are asked for.
    pub(crate) fn proposed(k: usize) -> usize {
        k.max(PROPOSED)
    }

    /// The best items where all are compared: by their lexical scores and by their similarities, both by item number.
    /// Found is what shares a word with the query or is near enough.
    pub(crate) fn rank_all(
        &self,
        scores: &[u32],
        similarities: &[i32],
        depth: Depth,
        allow: &impl Fn(u32) -> bool,
    ) -> Vec<Hit> {
        if depth.k() == 0 {
            return Vec::new();
        }
        let about = Arch::new().dispatch(About { fusion: self, scores, similarities });
        let mut top = TopK::new(depth.k());
        top.scan(0, &about, allow);
        // The rounded scores tell which items can be among the best; these are then scored in full.
        let least = (f32::from_bits(top.threshold()) * (1.0 - ROUNDED) - ROUNDED_OFF).max(0.0).to_bits();
        let score = |item: u32| {
            let (score, similarity) = (scores.get(item as usize)?, similarities.get(item as usize)?);
            Some(Hit { item, score: u64::from(*score) + self.part(*similarity) })
        };
        let items = at_least(&about, least.max(1)).into_iter().filter(|item| allow(*item));
        let mut hits: Vec<Hit> = items.filter_map(score).collect();
        hits.sort_unstable_by_key(Hit::order);
        depth.cut(&mut hits);
        hits
    }

    /// The best items by both sides: `hits` are the [`Self::proposed`] best that the words propose, `near` those that
    /// the meaning proposes, both best first. `lexical` and `similarity` give the parts of an item. The result is that
    /// of scoring all of them in full, which is done only for those that can be among the first.
    pub(crate) fn rank(
        &self,
        hits: &[Hit],
        near: &[Near],
        lexical: impl Fn(u32) -> u32,
        similarity: impl Fn(u32) -> i32,
        depth: Depth,
    ) -> Vec<Hit> {
        let near = &near[..near.partition_point(|near| near.similarity >= self.least())];
        let first = depth.k().max(1).saturating_mul(FIRST_SCORED);
        let score = |hits: &[Hit], near: &[Near]| self.scored(hits, near, &lexical, &similarity, depth);
        let head = score(&hits[..hits.len().min(first)], &near[..near.len().min(first)]);
        if hits.len().max(near.len()) <= first {
            return head;
        }
        let Some(last) = head.get(depth.k().wrapping_sub(1)) else { return score(hits, near) };
        // No item gains more by meaning than the nearest, nor by words than the last that the words propose where they
        // do not propose it: nothing, where they propose all that they found.
        let full = hits.len() >= Self::proposed(depth.k());
        let unproposed = hits.last().filter(|_| full).map_or(0, |hit| hit.score);
        let hits = &hits[..hits.partition_point(|hit| hit.score + self.most >= last.score)];
        let near = &near[..near.partition_point(|near| self.part(near.similarity) + unproposed >= last.score)];
        if hits.len().max(near.len()) <= first { head } else { score(hits, near) }
    }

    /// These items, scored in full.
    fn scored(
        &self,
        hits: &[Hit],
        near: &[Near],
        lexical: impl Fn(u32) -> u32,
        similarity: impl Fn(u32) -> i32,
        depth: Depth,
    ) -> Vec<Hit> {
        let mut known: Vec<(u32, Option<u64>, Option<i32>)> =
            hits.iter().map(|hit| (hit.item, Some(hit.score), None)).collect();
        known.extend(near.iter().map(|near| (near.item, None, Some(near.similarity))));
        known.sort_unstable_by_key(|(item, ..)| *item);
        let score = |of_item: &[(u32, Option<u64>, Option<i32>)]| {
            let item = of_item[0].0;
            let words = of_item.iter().find_map(|(_, words, _)| *words).unwrap_or_else(|| u64::from(lexical(item)));
            let similarity =
                of_item.iter().find_map(|(.., similarity)| *similarity).unwrap_or_else(|| similarity(item));
            Hit { item, score: words + self.part(similarity) }
        };
        let mut hits: Vec<Hit> = known.chunk_by(|one, next| one.0 == next.0).map(score).collect();
        hits.sort_unstable_by_key(Hit::order);
        depth.cut(&mut hits);
        hits
    }
}

/// The scores of all items, rounded, to be computed in the machine's widest instructions.
struct About<'a> {
    fusion: &'a Fusion,
    scores: &'a [u32],
    similarities: &'a [i32],
}

impl NullaryFnOnce for About<'_> {
    /// The bits of each score as a floating-point number, which are in the order of the numbers; 0 for an item that is not
    /// found.
    type Output = Vec<u32>;

    #[inline(always)]
    fn call(self) -> Vec<u32> {
        let Fusion { most, best } = *self.fusion;
        let square = best as f32 * best as f32;
        let factor = if best > 0 { most as f32 / square } else { 0.0 };
        let least = self.fusion.least();
        let mut all = vec![0; self.scores.len().min(self.similarities.len())];
        for (about, (&score, &similarity)) in all.iter_mut().zip(self.scores.iter().zip(self.similarities)) {
            let near = similarity.clamp(0, best) as f32;
            let sum = score as f32 + near * near * factor;
            *about = if score > 0 || similarity >= least { sum.to_bits() } else { 0 };
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hit::SCORE_UNITS;

    #[test]
    fn the_best_similarity_adds_the_weight() {
        let part = |weight, rarity, best, similarity| Fusion::new(weight, rarity, best).part(similarity);
        let rare = 3 * SCORE_UNITS;
        let table = [
            ("the best", part(0.5, rare, 9000, 9000), rare / 2),
            ("half of it", part(0.5, rare, 9000, 4500), rare / 8),
            ("the opposite", part(0.5, rare, 9000, -9000), 0),
            ("nothing is near", part(0.5, rare, 0, 0), 0),
            ("no weight", part(0.0, rare, 9000, 9000), 0),
            ("the largest", part(1e300, u64::from(u32::MAX), 1 << 22, i32::MAX), 100 * u64::from(u32::MAX)),
        ];
        for (what, value, expected) in table {
            assert_eq!(value, expected, "{what}");
        }
    }

    proptest! {
        #[test]
        fn both_sides_equal_scoring_everything(
            rows in prop_oneof![
                prop::collection::vec((-9000i32..9000, 0u32..9), 0..30),
                prop::collection::vec((-9000i32..9000, 0u32..9), 0..400),
                prop::collection::vec((1000i32..1100, 0u32..40), 200..500),
            ],
            k in prop_oneof![0usize..12, 0usize..160], ties in any::<bool>(), halves in 0u32..3,
        ) {
            let lexical = |item: u32| rows[item as usize].1 << (18 - halves);
            let similarity = |item: u32| rows[item as usize].0;
            let all = || 0..rows.len() as u32;
            let proposed = Fusion::proposed(k);
            let mut hits: Vec<Hit> = all().map(|item| Hit { item, score: u64::from(lexical(item)) }).collect();
            hits.retain(|hit| hit.score > 0);
            hits.sort_by_key(Hit::order);
            hits.truncate(proposed);
            let mut near: Vec<Near> = all().map(|item| Near { item, similarity: similarity(item) }).collect();
            near.retain(|near| near.similarity > 0);
            near.sort_by_key(|near| (std::cmp::Reverse(near.similarity), near.item));
            near.truncate(proposed);
            let best = near.first().map_or(0, |near| near.similarity);
            let fusion = Fusion::new(0.7, 5 << 18, best);
            let proposes = |item: u32| {
                let near = near.iter().any(|near| near.item == item && near.similarity >= best / FOUND_WITHIN);
                near || hits.iter().any(|hit| hit.item == item)
            };
            let mut expected: Vec<Hit> = all()
                .filter(|item| proposes(*item))
                .map(|item| Hit { item, score: u64::from(lexical(item)) + fusion.part(similarity(item)) })
                .collect();
            expected.sort_by_key(Hit::order);
            let last = if k == 0 { u64::MAX } else { expected.get(k - 1).map_or(0, |hit| hit.score) };
            let depth = if ties { Depth::ThroughTies(k) } else { Depth::Exactly(k) };
            if ties { expected.retain(|hit| hit.score >= last) } else { expected.truncate(k) }
            prop_assert_eq!(fusion.rank(&hits, &near, lexical, similarity, depth), expected);
        }

        #[test]
        fn all_that_is_compared_equals_sorting_everything(
            rows in prop_oneof![
                prop::collection::vec((-9000i32..9000, prop_oneof![Just(0u32), any::<u32>()]), 0..30),
                prop::collection::vec((80_000i32..80_100, 0u32..9), 0..400),
                prop::collection::vec((-9i32..9, 0u32..2), 0..400),
            ],
            weight in prop_oneof![Just(0.0), Just(0.7), 0.0f64..100.0], rarity in prop_oneof![0u64..9, 1u64 << 20..1 << 32],
            k in prop_oneof![0usize..12, 0usize..160], ties in any::<bool>(), modulus in 1u32..4,
        ) {
            let (similarities, scores): (Vec<i32>, Vec<u32>) = rows.iter().copied().unzip();
            let fusion = Fusion::new(weight, rarity, similarities.iter().copied().max().unwrap_or(0));
            let allow = |item: u32| item.is_multiple_of(modulus);
            let score = |item: usize| u64::from(scores[item]) + fusion.part(similarities[item]);
            let mut expected: Vec<Hit> = (0..rows.len())
                .filter(|item| allow(*item as u32) && (scores[*item] > 0 || similarities[*item] >= fusion.least()))
                .map(|item| Hit { item: item as u32, score: score(item) })
                .collect();
            expected.sort_by_key(Hit::order);
            let last = if k == 0 { u64::MAX } else { expected.get(k - 1).map_or(0, |hit| hit.score) };
            let depth = if ties { Depth::ThroughTies(k) } else { Depth::Exactly(k) };
            if ties { expected.retain(|hit| hit.score >= last) } else { expected.truncate(k) }
            prop_assert_eq!(fusion.rank_all(&scores, &similarities, depth, &allow), expected);
        }
    }
}
