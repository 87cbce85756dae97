//! Words, table and model as one ranking.
//!
//! With `L` an item's lexical score, `B` the best lexical score of the query, and for each side `cos` the cosine of item
//! and query and `C` its best one:
//!
//! `score = L + ⌊w_table · B · max(cos_table, 0) / C_table⌋ + ⌊w_model · B · max(cos_model, 0) / C_model⌋`
//!
//! Encoding the query costs more than comparing it with every tool of a large catalog, so nothing is proposed and
//! nothing pruned here: every item is scored in full.

use super::super::fuse::{FOUND_WITHIN, Fusion};
use super::super::{DocumentVectors, QueryVector};
use super::{Model, ModelVector};
use crate::routing::hit::Hit;
use crate::routing::index::Depth;

/// How much each semantic side counts for one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fusions {
    /// The table.
    pub table: Fusion,
    /// The model.
    pub model: Fusion,
}

impl Fusions {
    /// What an item that is the nearest on both sides gains, in score units.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.table.most() + self.model.most()
    }
}

/// What a query is compared with, each side with its weight.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'q> {
    /// The table, where it has a say.
    pub table: Option<(f64, &'q DocumentVectors, &'q QueryVector)>,
    /// The model.
    pub model: (f64, &'q Model, &'q ModelVector),
}

impl Sides<'_> {
    /// How much each side counts, where `scores` are the lexical scores by item number.
    #[must_use]
    pub fn fusions(&self, scores: &[u32]) -> Fusions {
        let best_score = scores.iter().copied().max().unwrap_or(0);
        let table = self.table.map(|(weight, vectors, query)| {
            Fusion::new(weight, best_score, vectors.nearest_and_best(query, 1, |_| true).1)
        });
        let (weight, model, query) = self.model;
        let best = model.similarities(query).max().unwrap_or(0);
        Fusions { table: table.unwrap_or_default(), model: Fusion::new(weight, best_score, best) }
    }
}

/// The best items, and how much each side counted. An item that shares no word with the query is found when it is at
/// least half as near as the nearest, by the table or by the model. `scores` are the lexical scores by item number.
pub(in crate::routing) fn rank(
    scores: &[u32],
    sides: &Sides,
    depth: Depth,
    allow: impl Fn(u32) -> bool,
) -> (Vec<Hit>, Fusions) {
    let fusions = sides.fusions(scores);
    let is_near = |part: u64, fusion: &Fusion| part > 0 && part >= fusion.most() / FOUND_WITHIN;
    let (_, model, query) = sides.model;
    let hits = (0u32..).zip(scores.iter().zip(model.similarities(query))).filter_map(|(item, (&score, similarity))| {
        let table = sides.table.map_or(0, |(_, vectors, query)| fusions.table.part(vectors.similarity(item, query)));
        let model = fusions.model.part(similarity);
        let found = score > 0 || is_near(table, &fusions.table) || is_near(model, &fusions.model);
        found.then_some(Hit { item, score: u64::from(score) + table + model })
    });
    let mut hits: Vec<Hit> = hits.filter(|hit| allow(hit.item)).collect();
    hits.sort_unstable_by_key(Hit::order);
    depth.cut(&mut hits);
    (hits, fusions)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::tests::Toy;
    use super::*;
    use crate::routing::semantic::{DIMS, ToolVector};

    proptest! {
        #[test]
        fn every_item_has_the_sum_of_its_parts(
            rows in prop::collection::vec((-3i8..4, -3i8..4, 0u32..4), 0..20),
            k in 0usize..8,
            ties in any::<bool>(),
            with_table in any::<bool>(),
        ) {
            let vector = |row: &(i8, i8, u32)| ModelVector::of(&[f32::from(row.0), f32::from(row.1)]);
            let model = Model { encoder: Arc::new(Toy), vectors: rows.iter().map(vector).collect() };
            let meaning = ModelVector::of(&[1.0, 0.5]);
            let tool = |row: &(i8, i8, u32)| {
                let mut values = [0; DIMS];
                values[0] = row.1;
                ToolVector(values)
            };
            let vectors: DocumentVectors = rows.iter().map(tool).collect();
            let mut values = [0; DIMS];
            values[0] = 100;
            let query = QueryVector(values);
            let table = with_table.then_some((0.5, &vectors, &query));
            let sides = Sides { table, model: (0.25, &model, &meaning) };
            let scores: Vec<u32> = rows.iter().map(|row| row.2 << 18).collect();
            let depth = if ties { Depth::ThroughTies(k) } else { Depth::Exactly(k) };
            let (hits, fusions) = rank(&scores, &sides, depth, |item| item != 2);

            let best_score = scores.iter().copied().max().unwrap_or(0);
            let best = |all: &mut dyn Iterator<Item = i32>| all.max().unwrap_or(0).max(0);
            let best_model = best(&mut rows.iter().map(|row| vector(row).similarity(&meaning)));
            let best_table = best(&mut (0..rows.len() as u32).map(|item| vectors.similarity(item, &query)));
            let expected_fusions = Fusions {
                table: if with_table { Fusion::new(0.5, best_score, best_table) } else { Fusion::default() },
                model: Fusion::new(0.25, best_score, best_model),
            };
            prop_assert_eq!(fusions, expected_fusions);
            prop_assert_eq!(sides.fusions(&scores), fusions);
            let part = |item: u32| {
                let table = fusions.table.part(vectors.similarity(item, &query));
                let model = fusions.model.part(vector(&rows[item as usize]).similarity(&meaning));
                (table, model)
            };
            let found = |item: u32| {
                let (table, model) = part(item);
                scores[item as usize] > 0
                    || table > 0 && table >= fusions.table.most() / 2
                    || model > 0 && model >= fusions.model.most() / 2
            };
            let mut expected: Vec<Hit> = (0..rows.len() as u32)
                .filter(|&item| item != 2 && found(item))
                .map(|item| Hit { item, score: u64::from(scores[item as usize]) + part(item).0 + part(item).1 })
                .collect();
            expected.sort_by_key(Hit::order);
            let last = expected.get(k.wrapping_sub(1)).map_or(0, |hit| hit.score);
            let all = expected.clone();
            expected.truncate(k);
            if ties && k > 0 {
                expected = all.into_iter().filter(|hit| hit.score >= last).collect();
            }
            prop_assert_eq!(hits, expected);
        }
    }
}
