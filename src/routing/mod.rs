//! Query + catalog -> ranking with an explanation.

mod card;
mod config;
mod filter;
mod history;
mod selection;

pub use card::{CARD_CAP, CARD_TAGS, CARD_TARGET, CardDeck, ChoiceCard, DESCRIPTION_RESERVE, render_cards, sort_cards};
pub use config::{BeamConfig, Field, FieldWeights, Navigation, RoutingConfig, Scorer, TreeConfig};
pub use filter::{AllowSet, Filter, FilterError, Placed, Placement, Subject};
pub use history::{History, PreparedHistory, SCORE_UNITS, ScorePart, ScoreSource, total_score};
pub use selection::{
    Provider, SelectionError, SelectionReason, SelectionStatus, SelectionValidation, selection_schema,
    validate_selection,
};
