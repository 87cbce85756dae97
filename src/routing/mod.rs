//! Query + catalog -> ranking with an explanation.

mod beam;
mod config;
mod graph;
mod path;
mod tree;

pub use beam::{BeamResult, Postings, beam_search};
pub use config::{BeamConfig, Field, FieldWeights, Navigation, RoutingConfig, Scorer, TreeConfig};
pub use graph::{ChoiceGraph, GraphError, Node, NodeId, NodeKind};
pub use path::{Listing, Path, PathError, resolve};
pub use tree::TreeBuilder;
