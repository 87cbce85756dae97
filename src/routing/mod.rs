//! Query + catalog -> ranking with an explanation.
//!
//! [`Router::route`] is the room in one function: retrieve, navigate, rerank, pack. Everything is synchronous and
//! deterministic; ties are broken by id, and the order in which a catalog was loaded changes nothing. Cards never
//! hold schemas.

mod beam;
mod capability;
mod card;
mod confidence;
mod config;
mod exact;
mod feedback;
mod filter;
mod fuzzy;
mod graph;
mod history;
mod hit;
mod index;
mod path;
mod router;
mod selection;
pub mod semantic;
mod snapshot;
mod spelling;
mod tree;

pub use card::{CARD_CAP, CARD_TAGS, CARD_TARGET, CardDeck, ChoiceCard, DESCRIPTION_RESERVE, render_cards};
pub use config::{
    BeamConfig, ConfigError, Copies, Field, FieldWeights, NameMatch, Navigation, RoutingConfig, Scorer, TreeConfig,
};
pub use feedback::{FeedbackConfig, FeedbackError, FeedbackLog, MAX_LOG_BYTES, MAX_OBSERVATIONS, Observation};
pub use filter::{AllowSet, Filter, FilterError, Placement, Subject};
pub use graph::{ChoiceGraph, GraphError, Node, NodeId, NodeKind};
pub use history::{History, ScoreSource};
pub use hit::{Hit, SCORE_UNITS};
pub use index::{Depth, FULL_WEIGHT, Index, MAX_QUERY_TERMS, Posting, Query, QueryTerm, Scratch, TermId};
pub use path::{Listing, Path, PathError, resolve};
pub use router::{
    Ambiguity, Choice, Explored, Part, PartSource, Pruned, Request, Route, RouteError, Router, SHOWN_PRUNED,
};
pub use selection::{
    Provider, SelectionError, SelectionReason, SelectionStatus, SelectionValidation, selection_schema,
    validate_selection,
};
pub use snapshot::{SnapshotError, catalog_sha256, load, load_graph, save};
pub use tree::TreeBuilder;
