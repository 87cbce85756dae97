//! Why something could not be measured.

use super::growth::GrowthError;
use contextweaver_core::catalog::CatalogError;
use contextweaver_routing::RouteError;
use contextweaver_routing::semantic::model::place::OpenError;

/// An engine could not be measured. In a record it is the reason of a failed outcome.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The router refused the catalog or a card of it.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// A card of the catalog cannot be made within its bounds.
    #[error(transparent)]
    Card(#[from] CatalogError),
    /// The sentence encoder cannot be opened.
    #[error(transparent)]
    Model(#[from] OpenError),
    /// The matrix has no such engine.
    #[error("engine `{0}` is not in engines.toml")]
    UnknownEngine(String),
    /// The catalog could not be grown.
    #[error(transparent)]
    Growth(#[from] GrowthError),
    /// No query of the collection has an answer.
    #[error("no query has an answer")]
    NothingToAnswer,
    /// A measurement that is neither of a router nor of its inputs.
    #[error("{what}: {reason}")]
    Failed {
        /// What was being done.
        what: String,
        /// What went wrong.
        reason: String,
    },
}

impl EvalError {
    /// `what` failed for a reason that its own room states.
    pub(crate) fn failed(what: &str, reason: impl std::fmt::Display) -> Self {
        Self::Failed { what: what.to_owned(), reason: reason.to_string() }
    }
}
