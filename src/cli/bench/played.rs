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

/// A collection and the engine that it is measured with.
type Subject = (Arc<Collection>, RouterEngine);

/// The collections of a matrix as they are, and the results that the workspace holds for them.
pub(super) struct Played<F> {
    engine: RouterEngine,
    /// By name; `None` where the collection, or what its engine needs, is not on this machine.
    collections: BTreeMap<String, Option<Subject>>,
    pub(super) committed: Option<CollectionResults<F>>,
}

impl<F: CollectionFacts> Played<F> {
    pub(super) fn of(workspace: &Workspace, matrix: &Matrix, collections: &Collections) -> Result<Self> {
        Self::by(workspace, matrix, collections, |default, _| Ok(Some(default.clone())))
    }

    /// As [`Self::of`], each collection measured with what `engine_for` makes of the default engine for it.
    pub(super) fn by(
        workspace: &Workspace,
        matrix: &Matrix,
        collections: &Collections,
        engine_for: impl Fn(&RouterEngine, &str) -> Result<Option<RouterEngine>>,
    ) -> Result<Self> {
        let engine = matrix.engine(DEFAULT).context("no default engine in engines.toml")?.clone();
        let names = matrix.cases.iter().filter(|case| case.growth.is_none()).map(|case| &case.collection);
        let subject = |name: &String| -> Result<_> {
            let Some(collection) = collections.get(name) else { return Ok((name.clone(), None)) };
            let engine = engine_for(&engine, name)?;
            Ok((name.clone(), engine.map(|engine| (Arc::clone(collection), engine))))
        };
        let collections = names.map(subject).collect::<Result<_>>()?;
        Ok(Self { engine, collections, committed: workspace.read_chapter()? })
    }

    /// Measures on every collection that is here; the others keep their committed records.
    pub(super) fn compute(&self) -> CollectionResults<F> {
        let bar = progress(self.collections.len());
        let mut records = Vec::new();
        for (collection, engine) in self.collections.values().flatten() {
            bar.set_message(format!("{} of {}", F::NAME, collection.name));
            records.push(CollectionRecord::of(collection, engine));
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

    /// The collections that are not measured here.
    pub(super) fn absent(&self) -> Vec<&str> {
        let absent = self.collections.iter().filter(|(_, subject)| subject.is_none());
        absent.map(|(name, _)| name.as_str()).collect()
    }
}
