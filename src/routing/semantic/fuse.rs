//! Lexical and semantic scores as one ranking.
//!
//! With `L` an item's lexical score, `B` the best lexical score of the query, `cos` the cosine of item and query and `C`
//! the best cosine:
//!
//! `score = L + ⌊w · B · max(cos, 0) / C⌋`
//!
//! Lexical scores have no upper bound and grow with the query, and cosines shrink with its length, so each side is
//! measured by its best. `B` and `C` are taken over all items, not only the allowed ones, so that a filter changes no
//! score. The table knows nothing of a query in another script, which is then ranked by words alone. Where it knows a part,
//! as in German or of a misspelled word, that part helps: a gate by the share of known words did harm.

use super::table::QueryVector;
use super::vectors::DocumentVectors;
use crate::routing::hit::{Hit, SCORE_UNITS, TopK};
use crate::routing::index::Depth;

/// Each side proposes this many items for each one that is asked for, and never fewer than [`LEAST_PROPOSED`].
const PROPOSED: usize = 2;
const LEAST_PROPOSED: usize = 32;

/// An item that shares no word with the query is found when its similarity is at least the best one over this: what is
/// less near would only fill the list.
pub(super) const FOUND_WITHIN: u64 = 2;

/// Units of a weight of 1.
const WEIGHT_UNITS: u64 = 1024;

/// How much a semantic side counts for one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fusion {
    /// What the best cosine adds: `w · B`, in score units.
    most: u64,
    /// The best cosine, as [`super::Near::similarity`] has it; 0 where the semantic side has no say.
    best: i32,
}

impl Fusion {
    /// The fusion at weight `w` from 0 to 100 (its steps are 1/1024) for a query whose best lexical score is
    /// `best_score` and whose best similarity is `best_similarity`.
    #[must_use]
    pub fn new(weight: f64, best_score: u32, best_similarity: i32) -> Self {
        if best_similarity <= 0 {
            return Self::default();
        }
        let weight = (weight.clamp(0.0, 100.0) * WEIGHT_UNITS as f64).round() as u64;
        // Where no tool shares a word with the query, similarity is all there is, and any scale gives the same ranking.
        let best_score = if best_score == 0 { SCORE_UNITS } else { u64::from(best_score) };
        Self { most: weight * best_score / WEIGHT_UNITS, best: best_similarity }
    }

    /// What the nearest item gains, in score units.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most
    }

    /// What a similarity adds to an item's score, in score units.
    #[must_use]
    pub fn part(&self, similarity: i32) -> u64 {
        // Below 2³⁹ · 2²⁴, since a similarity is a product of two vectors of bytes.
        let similarity = u64::from(similarity.clamp(0, self.best).unsigned_abs());
        (self.most * similarity).checked_div(u64::from(self.best.unsigned_abs())).unwrap_or(0)
    }

    /// The best items by both sides, and the fusion that scored them: each side proposes its best, and all that were
    /// proposed are scored in full. `scores` are the lexical scores by item number.
    pub(in crate::routing) fn rank(
        weight: f64,
        scores: &[u32],
        vectors: &DocumentVectors,
        query: &QueryVector,
        depth: Depth,
        allow: impl Fn(u32) -> bool,
    ) -> (Vec<Hit>, Self) {
        let proposed = depth.k().saturating_mul(PROPOSED).max(LEAST_PROPOSED);
        let (mut near, best) = vectors.nearest_and_best(query, proposed, |_| true);
        if !near.iter().all(|near| allow(near.item)) {
            near = vectors.nearest(query, proposed, &allow);
        }
        let fusion = Self::new(weight, scores.iter().copied().max().unwrap_or(0), best);
        let mut top = TopK::new(proposed);
        top.scan(scores, &allow);
        let mut items: Vec<u32> = top.into_hits().iter().map(|hit| hit.item).collect();
        if fusion.most > 0 {
            let found = near.iter().filter(|near| near.similarity >= best / FOUND_WITHIN as i32);
            items.extend(found.map(|near| near.item));
        }
        items.sort_unstable();
        items.dedup();
        let score = |item: u32| {
            let lexical = scores.get(item as usize).copied().unwrap_or(0);
            u64::from(lexical) + fusion.part(vectors.similarity(item, query))
        };
        let mut hits: Vec<Hit> = items.into_iter().map(|item| Hit { item, score: score(item) }).collect();
        hits.sort_unstable_by_key(Hit::order);
        depth.cut(&mut hits);
        (hits, fusion)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::table::{DIMS, ToolVector};
    use super::*;

    fn query(first: i8) -> QueryVector {
        let mut values = [0; DIMS];
        (values[0], values[1]) = (first, 100);
        QueryVector(values)
    }

    #[test]
    fn the_best_similarity_adds_the_weight() {
        let part = |weight, best_score, best, similarity| Fusion::new(weight, best_score, best).part(similarity);
        let best = 3 * SCORE_UNITS as u32;
        let table = [
            ("the best", part(0.5, best, 9000, 9000), u64::from(best) / 2),
            ("half of it", part(0.5, best, 9000, 4500), u64::from(best) / 4),
            ("the opposite", part(0.5, best, 9000, -9000), 0),
            ("nothing is near", part(0.5, best, 0, 0), 0),
            ("no word is found", part(0.5, 0, 9000, 9000), SCORE_UNITS / 2),
            ("no weight", part(0.0, best, 9000, 9000), 0),
            ("the largest", part(1e300, u32::MAX, 1 << 22, i32::MAX), 100 * u64::from(u32::MAX)),
        ];
        for (what, value, expected) in table {
            assert_eq!(value, expected, "{what}");
        }
    }

    proptest! {
        #[test]
        fn both_sides_equal_scoring_everything(
            rows in prop::collection::vec((any::<i8>(), any::<i8>(), 0u32..9), 0..30),
            first in any::<i8>(),
            k in 0usize..12,
            ties in any::<bool>(),
        ) {
            let query = query(first);
            let vector = |(a, b, _): &(i8, i8, u32)| {
                let mut values = [0; DIMS];
                (values[0], values[1]) = (*a, *b);
                ToolVector(values)
            };
            let vectors: DocumentVectors = rows.iter().map(vector).collect();
            let scores: Vec<u32> = rows.iter().map(|row| row.2 << 18).collect();
            let best = vectors.nearest_and_best(&query, 1, |_| true).1;
            let fusion = Fusion::new(0.7, scores.iter().copied().max().unwrap_or(0), best);
            let mut expected: Vec<Hit> = (0..rows.len() as u32)
                .map(|item| {
                    let part = fusion.part(vectors.similarity(item, &query));
                    Hit { item, score: u64::from(scores[item as usize]) + part }
                })
                .filter(|hit| {
                    let similarity = vectors.similarity(hit.item, &query);
                    scores[hit.item as usize] > 0 || (similarity > 0 && similarity >= best / FOUND_WITHIN as i32)
                })
                .collect();
            expected.sort_by_key(Hit::order);
            let last = if k == 0 { u64::MAX } else { expected.get(k - 1).map_or(0, |hit| hit.score) };
            let depth = if ties { Depth::ThroughTies(k) } else { Depth::Exactly(k) };
            if ties { expected.retain(|hit| hit.score >= last) } else { expected.truncate(k) }
            prop_assert_eq!(Fusion::rank(0.7, &scores, &vectors, &query, depth, |_| true), (expected, fusion));
        }
    }
}
