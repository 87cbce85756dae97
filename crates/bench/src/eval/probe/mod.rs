//! A small collection that is part of the program, for versions: what is measured on it changes with the code and the
//! tables that rank, and costs milliseconds.
//!
//! Its queries touch what an engine is made of: names and their parts, words in other forms, wrong spelling, other words
//! for the same, two tools of one name, several tools for a query, other languages, and nothing at all. It is no
//! benchmark: nothing is concluded from how many of them an engine answers.

pub mod encoder;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::collection::{Collection, Source};
use super::growth::{SEED, scaled};
use super::record::Origin;
use contextweaver_core::catalog::Catalog;

const TOOLS: &[u8] = include_bytes!("tools.json");
const QUERIES: &[u8] = include_bytes!("queries.jsonl");

/// The collection, parsed once.
///
/// # Panics
/// Never: its files are part of the program, and a test reads them.
#[must_use]
pub fn collection() -> &'static Arc<Collection> {
    static COLLECTION: OnceLock<Arc<Collection>> = OnceLock::new();
    COLLECTION.get_or_init(|| {
        let source = |name, bytes| Source { path: Path::new(name), bytes };
        let tools = source("probe/tools.json", TOOLS);
        let queries = source("probe/queries.jsonl", QUERIES);
        let collection = Collection::from_bytes("probe", Origin::Embedded, tools, queries);
        Arc::new(collection.expect("the probe of the program is a collection"))
    })
}

/// Tools of [`many`].
const MANY: usize = 600;

/// A larger catalog around the tools of the collection, made once.
///
/// # Panics
/// Never: a catalog can be made of this number of tools.
#[must_use]
pub fn many() -> &'static Arc<Catalog> {
    static MANY_TOOLS: OnceLock<Arc<Catalog>> = OnceLock::new();
    MANY_TOOLS.get_or_init(|| Arc::new(scaled(collection(), MANY, SEED).expect("a catalog of some hundred tools")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_is_a_collection_of_some_tens() {
        let counts = collection().counts();
        assert_eq!((counts.tools, counts.queries, counts.unanswerable), (33, 40, 3));
        assert!(counts.multi_tool >= 2, "{counts:?}");
        assert_eq!(many().len(), MANY);
    }
}
