//! Query + catalog -> ranking with an explanation.

mod config;
mod exact;
mod fuzzy;
mod hit;
mod index;

pub use config::{BeamConfig, Field, FieldWeights, Navigation, RoutingConfig, Scorer, TreeConfig};
pub use hit::{Hit, SCALE};
pub use index::{Depth, FULL_WEIGHT, Index, MAX_IMPACT, MAX_QUERY_TERMS, Posting, Query, QueryTerm, Scratch, TermId};
