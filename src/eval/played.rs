//! Chapters with one record for each collection: which records are made here, and which are kept.

use super::collection::Collection;
use super::engine::RouterEngine;
use super::record::Origin;
use super::results::{Chapter, ChapterRecord};

/// A record about one engine on one collection, whose name is the case.
pub trait CollectionRecord: ChapterRecord + Clone {
    /// Measures `engine` on `collection`; that it cannot be run is a record too.
    fn measure(collection: &Collection, engine: &RouterEngine) -> Self;

    /// Who wrote the collection.
    fn origin(&self) -> Origin;

    /// The version of the engine.
    fn engine_version(&self) -> &str;
}

/// The committed records of the public collections `absent`, which are not on this machine.
#[must_use]
pub fn kept_records<R: CollectionRecord>(absent: &[&str], committed: Option<&Chapter<R>>) -> Vec<R> {
    let kept = |record: &&R| record.origin() == Origin::Public && absent.contains(&record.case());
    committed.into_iter().flat_map(|results| &results.records).filter(kept).cloned().collect()
}

/// What is wrong with the rows that cannot be computed here: each must be made by this `version`.
#[must_use]
pub fn wrong_rows<R: CollectionRecord>(absent: &[&str], committed: Option<&Chapter<R>>, version: &str) -> Vec<String> {
    let kept = kept_records(absent, committed).into_iter().filter(|record| record.engine_version() != version);
    let wrong = kept.map(|record| {
        let (case, made_by) = (record.case(), record.engine_version());
        format!("{} · {case}: the row is of version {made_by}, the engine here is {version}", R::NAME)
    });
    wrong.collect()
}
