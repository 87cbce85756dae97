//! Ranks the tools of a catalog for a query, and explains the ranking.
//!
//! [`Router::route`] is the whole crate in one function: retrieve, navigate, rerank, pack. Everything is synchronous
//! and deterministic; ties are broken by id, and the order in which a catalog was loaded changes nothing. Cards never
//! hold schemas.

mod beam;
mod card;
mod confidence;
mod config;
mod copies;
mod dictionary;
mod exact;
mod explanation;
mod feedback;
mod filter;
mod fuzzy;
mod graph;
mod history;
mod hit;
mod image;
mod index;
mod index_file;
mod indexing;
mod pasted;
mod patch;
mod path;
mod postings;
mod router;
mod selection;
pub mod semantic;
mod sentence;
mod spelling;
mod tree;

pub use card::{CARD_CAP, CARD_TAGS, CARD_TARGET, CardDeck, ChoiceCard, DESCRIPTION_RESERVE, render_cards};
pub use config::{
    BeamConfig, ConfigError, Copies, Field, FieldWeights, ModelConfig, NOTHING_FITS_BELOW, NameMatch, Navigation,
    RoutingConfig, Scorer, TreeConfig,
};
pub use feedback::{FeedbackConfig, FeedbackError, FeedbackLog, MAX_LOG_BYTES, MAX_OBSERVATIONS, Observation};
pub use filter::{AllowSet, Filter, FilterError, Placement, Subject, nearest};
pub use graph::{ChoiceGraph, GraphError, Node, NodeId, NodeKind};
pub use history::{History, ScoreSource};
pub use hit::{Hit, SCORE_UNITS};
pub use index::{Depth, FULL_WEIGHT, Index, MAX_QUERY_TERMS, Query, QueryTerm, Scratch, TermId};
pub use index_file::{INDEX_FILE, IndexFileError, catalog_sha256, load, load_graph, open_index, save};
pub use path::{Listing, Path, PathError, resolve};
pub use postings::Posting;
pub use router::{
    Ambiguity, Choice, Explored, Part, PartSource, Pruned, Request, Route, RouteError, Router, SHOWN_PRUNED,
};
pub use selection::{
    Provider, SelectionError, SelectionReason, SelectionStatus, SelectionValidation, selection_schema,
    validate_selection,
};
pub use tree::TreeBuilder;
