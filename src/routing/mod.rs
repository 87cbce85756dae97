//! Query + catalog -> ranking with an explanation.

mod config;

pub use config::{BeamConfig, Field, FieldWeights, Navigation, RoutingConfig, Scorer, TreeConfig};
