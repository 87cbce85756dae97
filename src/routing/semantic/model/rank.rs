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
