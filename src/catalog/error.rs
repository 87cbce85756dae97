//! Why a catalog was refused.

use std::path::PathBuf;

/// A catalog, an id or one of its files is not usable. Every message names the place and the way out.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// A file could not be read at all.
    #[error("{}: {reason}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said, or what was expected instead.
        reason: String,
    },
    /// A file was read and holds something else than a catalog.
    #[error("{}: {place}: {reason}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line and column, or the list, index and name of the definition.
        place: String,
        /// What is wrong there.
        reason: String,
    },
    /// A definition that came from code is not one.
    #[error("{place}: {reason}")]
    Definition {
        /// The index and name of the definition.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Two different items have one id.
    #[error("duplicate id `{id}`: {first} and {second}; remove one, or give its server another name")]
    Collision {
        /// The id.
        id: String,
        /// Where it first occurred.
        first: String,
        /// Where it occurred again.
        second: String,
    },
    /// No item at all.
    #[error("the catalog is empty: {0}")]
    Empty(String),
    /// A text is not an id.
    #[error("`{text}` is not a tool id (namespace:name[@version][#hash8]): {reason}")]
    Id {
        /// The text.
        text: String,
        /// Which rule it breaks.
        reason: String,
    },
    /// The rendered card of an item exceeds the hard cap even after truncation.
    #[error("the card of `{id}` has {tokens} cl100k_base tokens, over the cap of {cap}; shorten its name or tags")]
    CardTooLarge {
        /// The item.
        id: String,
        /// Tokens of the rendered line.
        tokens: usize,
        /// The cap.
        cap: usize,
    },
}
