//! Combines words, table and encoder into one ranking.
//!
//! With `L` an item's lexical score, `R` the idf of a word that no item has, and for each side `cos` the cosine of item and query and
//! `C` its best one:
//!
//! `score = L + ⌊w_table · R · (max(cos_table, 0) / C_table)²⌋ + ⌊w_model · R · (max(cos_model, 0) / C_model)²⌋`
//!
//! Encoding the query costs more than comparing it with every tool of a large catalog, so nothing is pruned here: every
//! item is scored in full.

use super::super::fuse::Fusion;
use crate::hit::Hit;
use crate::index::Depth;

/// How much the table and the encoder count for one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fusions {
    /// The part of the semantic table.
    pub table: Fusion,
    /// The part of the sentence encoder.
    pub model: Fusion,
}

impl Fusions {
    /// What an item gains that is the nearest by both, in score units.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.table.most() + self.model.most()
    }
}

/// The best items. An item that shares no word with the query is found when it is at least half as near as the nearest,
/// by the table or by the encoder. `scores` are the lexical scores and `table` the similarities by the table, both by
/// item number.
pub(crate) fn rank(
    scores: &[u32],
    fusions: &Fusions,
    table: impl Fn(u32) -> i32,
    model: impl Iterator<Item = i32>,
    depth: Depth,
    allow: impl Fn(u32) -> bool,
) -> Vec<Hit> {
    let hits = (0u32..).zip(scores.iter().zip(model)).filter_map(|(item, (&score, by_model))| {
        let by_table = table(item);
        let found = score > 0 || by_table >= fusions.table.least() || by_model >= fusions.model.least();
        let meaning = fusions.table.part(by_table) + fusions.model.part(by_model);
        found.then_some(Hit { item, score: u64::from(score) + meaning })
    });
    let mut hits: Vec<Hit> = hits.filter(|hit| allow(hit.item)).collect();
    hits.sort_unstable_by_key(Hit::order);
    depth.cut(&mut hits);
    hits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_item_has_the_sum_of_its_parts(
            rows in prop::collection::vec((-3i8..4, -3i8..4, 0u32..4), 0..20),
            k in 0usize..8,
            ties in any::<bool>(),
            with_table in any::<bool>(),
        ) {
            let best = |of: fn(&(i8, i8, u32)) -> i8| rows.iter().map(|row| i32::from(of(row))).max().unwrap_or(0).max(0);
            let scores: Vec<u32> = rows.iter().map(|row| row.2 << 18).collect();
            let fusions = Fusions {
                table: if with_table { Fusion::new(0.5, 3 << 18, best(|row| row.1)) } else { Fusion::default() },
                model: Fusion::new(0.25, 3 << 18, best(|row| row.0)),
            };
            let table = |item: u32| i32::from(rows[item as usize].1);
            let model = rows.iter().map(|row| i32::from(row.0).max(0));
            let depth = if ties { Depth::ThroughTies(k) } else { Depth::Exactly(k) };
            let hits = rank(&scores, &fusions, table, model, depth, |item| item != 2);
            let part = |item: u32| {
                let row = rows[item as usize];
                (fusions.table.part(i32::from(row.1)), fusions.model.part(i32::from(row.0)))
            };
            let found = |item: u32| {
                let row = rows[item as usize];
                let is_near = |value: i8, best: i8| value > 0 && i32::from(value) >= i32::from(best) / 2;
                let table = with_table && is_near(row.1, rows.iter().map(|row| row.1).max().unwrap_or(0));
                scores[item as usize] > 0 || table || is_near(row.0, rows.iter().map(|row| row.0).max().unwrap_or(0))
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
