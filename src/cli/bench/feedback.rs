//! `bench feedback`, and the feedback chapter as `bench run` and `check` treat it.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;

use super::Place;
use super::run::progress;
use crate::cli::{Format, Outcome, print_json};
use crate::eval::collection::Collection;
use crate::eval::engine::{Engine, RouterEngine};
use crate::eval::feedback::{FeedbackResults, kept_records, record, wrong_rows};
use crate::eval::matrix::{DEFAULT, Matrix};
use crate::eval::workspace::{Collections, Workspace};
use crate::report;

pub(super) const EXAMPLE: &str = "\
The collections are played as sites that learn: the default engine is taught with observations of some queries and asked
others. `bench run` does the same and writes the results.

Example:
  contextweaver bench feedback";

/// Measure what learning from feedback gains, and what wrong feedback costs
#[derive(Debug, Args)]
pub(in crate::cli) struct FeedbackArgs {
    #[command(flatten)]
    place: Place,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The collections that are played, and the results that the workspace holds for them.
pub(super) struct Lessons {
    engine: RouterEngine,
    /// By name; `None` where the collection is not on this machine.
    collections: BTreeMap<String, Option<Arc<Collection>>>,
    pub(super) committed: Option<FeedbackResults>,
}

impl Lessons {
    pub(super) fn of(workspace: &Workspace, matrix: &Matrix, collections: &Collections) -> Result<Self> {
        let engine = matrix.engine(DEFAULT).context("no default engine in engines.toml")?.clone();
        let names = matrix.cases.iter().filter(|case| case.growth.is_none()).map(|case| &case.collection);
        let collections = names.map(|name| (name.clone(), collections.get(name).cloned())).collect();
        Ok(Self { engine, collections, committed: workspace.read_chapter()? })
    }

    /// Plays every collection that is here; the others keep their committed records.
    pub(super) fn compute(&self) -> FeedbackResults {
        let bar = progress(self.collections.len());
        let mut records = Vec::new();
        for collection in self.collections.values().flatten() {
            bar.set_message(format!("feedback on {}", collection.name));
            records.push(record(collection, &self.engine));
            bar.inc(1);
        }
        bar.finish_and_clear();
        records.extend(kept_records(&self.absent(), self.committed.as_ref()));
        FeedbackResults::new(self.engine.configuration(), records)
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

pub(super) fn run(args: &FeedbackArgs, out: &mut dyn Write) -> Result<Outcome> {
    let workspace = args.place.workspace()?;
    let matrix = workspace.matrix()?;
    let collections = workspace.collections(&matrix.cases)?;
    let results = Lessons::of(&workspace, &matrix, &collections)?.compute();
    match args.format {
        Format::Json => print_json(out, &results)?,
        Format::Text => write!(out, "{}", report::terminal::feedback(&results))?,
    }
    Ok(Outcome::Ok)
}
