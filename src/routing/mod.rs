//! Query + catalog -> ranking with an explanation.

mod config;

pub use config::{BeamConfig, Field, FieldWeights, Navigation, RoutingConfig, Scorer, TreeConfig};

/// One ranked tool. A ranking is a slice of hits, score descending, then item ascending, without repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hit {
    /// The item's number: its position in the catalog's id order.
    pub item: u32,
    /// The score in fixed point, units of 2^-18: integers, so that equal scores are equal on every machine.
    pub score: u64,
}
