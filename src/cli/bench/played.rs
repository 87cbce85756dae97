//! Chapters with one record for each collection, as `bench run` and `check` treat them.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};

use super::check::chapter_differences;
use super::run::progress;
use crate::eval::collection::Collection;
use crate::eval::engine::{Engine, RouterEngine};
use crate::eval::matrix::{DEFAULT, Matrix};
use crate::eval::played::{CollectionFacts, CollectionRecord, CollectionResults, kept_records, wrong_rows};
use crate::eval::results::{Chapter, Difference};
use crate::eval::workspace::{Collections, Workspace};

/// The collections of a matrix as they are, and the results that the workspace holds for them.
pub(super) struct Played<F> {
    engine: RouterEngine,
    /// By name; `None` where the collection is not on this machine.
    collections: BTreeMap<String, Option<Arc<Collection>>>,
    pub(super) committed: Option<CollectionResults<F>>,
}

impl<F: CollectionFacts> Played<F> {
    pub(super) fn of(workspace: &Workspace, matrix: &Matrix, collections: &Collections) -> Result<Self> {
        let engine = matrix.engine(DEFAULT).context("no default engine in engines.toml")?.clone();
        let names = matrix.cases.iter().filter(|case| case.growth.is_none()).map(|case| &case.collection);
        let collections = names.map(|name| (name.clone(), collections.get(name).cloned())).collect();
        Ok(Self { engine, collections, committed: workspace.read_chapter()? })
    }

    /// Measures on every collection that is here; the others keep their committed records.
    pub(super) fn compute(&self) -> CollectionResults<F> {
        let bar = progress(self.collections.len());
        let mut records = Vec::new();
        for collection in self.collections.values().flatten() {
            bar.set_message(format!("{} of {}", F::NAME, collection.name));
            records.push(CollectionRecord::of(collection, &self.engine));
            bar.inc(1);
        }
        bar.finish_and_clear();
        records.extend(kept_records(&self.absent(), self.committed.as_ref()));
        Chapter::new(self.engine.configuration(), records)
    }

    /// Every fact in which the committed results differ from those that are computed now.
    pub(super) fn differences(&self) -> Result<Vec<Difference>> {
        chapter_differences(self.committed.as_ref(), &self.compute())
    }

    /// What is wrong with the committed rows that cannot be computed here.
    pub(super) fn wrong_rows(&self) -> Vec<String> {
        wrong_rows(&self.absent(), self.committed.as_ref(), &self.engine.version())
    }

    fn absent(&self) -> Vec<&str> {
        let absent = self.collections.iter().filter(|(_, collection)| collection.is_none());
        absent.map(|(name, _)| name.as_str()).collect()
    }
}
