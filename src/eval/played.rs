//! Chapters with one record for each collection: what a record holds, which are made here, and which are kept.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::collection::Collection;
use super::engine::{Engine, RouterEngine};
use super::record::{Origin, Outcome};
use super::results::{Chapter, ChapterRecord};

/// What such a chapter measures on one collection.
pub trait CollectionFacts: Serialize + DeserializeOwned + Clone {
    /// The chapter: see [`ChapterRecord::NAME`].
    const NAME: &'static str;
    /// The number of the format; a file with another number is refused.
    const SCHEMA: u32;

    /// Measures `engine` on `collection`.
    ///
    /// # Errors
    /// Why the engine cannot be run on it.
    fn measure(collection: &Collection, engine: &RouterEngine) -> Result<Self, String>;
}

/// One engine on one collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectionRecord<F> {
    /// The collection.
    pub case: String,
    /// Who wrote it, and with it whether it can be re-run from a checkout alone.
    pub origin: Origin,
    /// The version of the engine.
    pub engine_version: String,
    /// SHA-256 (hex) of its catalog and queries.
    pub inputs_sha256: String,
    /// What was measured, or why nothing was.
    pub outcome: Outcome<F>,
}

impl<F: CollectionFacts> CollectionRecord<F> {
    /// Measures `engine` on `collection`; that it cannot be run is a record too.
    #[must_use]
    pub fn of(collection: &Collection, engine: &RouterEngine) -> Self {
        Self {
            case: collection.name.clone(),
            origin: collection.origin,
            engine_version: engine.version(),
            inputs_sha256: collection.inputs_sha256.clone(),
            outcome: F::measure(collection, engine).map_or_else(Outcome::Failed, Outcome::Measured),
        }
    }
}

impl<F: CollectionFacts> ChapterRecord for CollectionRecord<F> {
    const NAME: &'static str = F::NAME;
    const SCHEMA: u32 = F::SCHEMA;

    fn case(&self) -> &str {
        &self.case
    }
}

/// The content of such a chapter's file.
pub type CollectionResults<F> = Chapter<CollectionRecord<F>>;

impl<F> CollectionResults<F> {
    /// The collections on which something was measured, with that.
    pub fn measured(&self) -> impl Iterator<Item = (&str, &F)> {
        self.records.iter().filter_map(|record| match &record.outcome {
            Outcome::Measured(facts) => Some((record.case.as_str(), facts)),
            Outcome::Failed(_) => None,
        })
    }

    /// The other ones, with the reason.
    pub fn failed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.records.iter().filter_map(|record| match &record.outcome {
            Outcome::Measured(_) => None,
            Outcome::Failed(message) => Some((record.case.as_str(), message.as_str())),
        })
    }
}

/// The committed records of the public collections `absent`, which are not on this machine.
#[must_use]
pub fn kept_records<F: Clone>(absent: &[&str], committed: Option<&CollectionResults<F>>) -> Vec<CollectionRecord<F>> {
    let kept =
        |record: &&CollectionRecord<F>| record.origin == Origin::Public && absent.contains(&record.case.as_str());
    committed.into_iter().flat_map(|results| &results.records).filter(kept).cloned().collect()
}

/// What is wrong with the rows that cannot be computed here: each must be made by this `version`.
#[must_use]
pub fn wrong_rows<F: CollectionFacts>(
    absent: &[&str],
    committed: Option<&CollectionResults<F>>,
    version: &str,
) -> Vec<String> {
    let kept = kept_records(absent, committed).into_iter().filter(|record| record.engine_version != version);
    let wrong = kept.map(|CollectionRecord { case, engine_version, .. }| {
        format!("{} · {case}: the row is of version {engine_version}, the engine here is {version}", F::NAME)
    });
    wrong.collect()
}
