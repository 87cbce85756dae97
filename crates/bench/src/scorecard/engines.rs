//! Running the engines of others and recording what they gave: the one way to the records of the chapter of rivals.
//!
//! Every engine on every collection is written as soon as it is measured, so that a run which is stopped keeps what it
//! has. Records and times of other engines stay as they are.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::files;
use crate::chapters::{self, rivals};
use crate::eval::collection::Collection;
use crate::eval::matrix::Case;
use crate::eval::record::Outcome;
use crate::eval::rival::{Rival, RivalFacts, RivalRun};
use crate::eval::tables;
use crate::eval::workspace::Bench;
use crate::results::{Day, Provenance, Record, Results, State};

/// What is run.
#[derive(Debug)]
pub struct Selection<'s> {
    /// Engines in the order of `engines.toml`.
    pub engines: Vec<&'s Rival>,
    /// Collections that are here, in the order of their names.
    pub collections: Vec<&'s Case>,
}

/// What one engine gave on one collection.
#[derive(Debug)]
pub struct Cell<'s> {
    /// The engine.
    pub engine: &'s str,
    /// The collection.
    pub collection: &'s str,
    /// What came of it.
    pub run: RivalRun,
    /// What is recorded of it; `None` where nothing is.
    pub recorded: Option<Outcome<RivalFacts>>,
}

impl<'s> Selection<'s> {
    /// The engines and collections of these names; `all` engines, and without names all collections that are here.
    ///
    /// # Errors
    /// A name of no engine or collection, or a collection that is not here.
    pub fn of(bench: &'s Bench, engines: &[String], collections: &[String]) -> Result<Self> {
        let all = &bench.matrix.rivals;
        let known = |name: &String| name == "all" || all.iter().any(|rival| rival.name == *name);
        if let Some(unknown) = engines.iter().find(|name| !known(name)) {
            let names: Vec<&str> = all.iter().map(|rival| rival.name.as_str()).collect();
            bail!("no process `{unknown}` in engines.toml; there are {}", names.join(", "));
        }
        let is_wanted = |rival: &&Rival| engines.iter().any(|name| name == "all" || *name == rival.name);
        let plain: Vec<&Case> = bench.matrix.cases.iter().filter(|case| case.growth.is_none()).collect();
        for name in collections {
            ensure!(plain.iter().any(|case| case.collection == *name), "no collection `{name}` in scenarios/");
            ensure!(bench.collections.get(name).is_some(), "the collection `{name}` is not on this machine");
        }
        let is_asked = |case: &&Case| collections.is_empty() || collections.contains(&case.collection);
        let is_here = |case: &&Case| bench.collections.get(&case.collection).is_some();
        Ok(Self {
            engines: all.iter().filter(is_wanted).collect(),
            collections: plain.into_iter().filter(is_asked).filter(is_here).collect(),
        })
    }

    /// Runs every engine on every collection; `program` is this program. Each is handed to `done` with what is recorded of
    /// it.
    ///
    /// # Errors
    /// A damaged results file, or what `done` says.
    pub fn run(
        &self,
        bench: &Bench,
        program: &Path,
        step: &dyn Fn(&str),
        mut done: impl FnMut(&Cell<'s>, &Collection, &'s Case) -> Result<()>,
    ) -> Result<()> {
        for engine in &self.engines {
            for case in &self.collections {
                let Some(collection) = bench.collections.get(&case.collection) else { continue };
                step(&format!("{} on {}", engine.name, case.collection));
                let run = engine.take_part(collection, &bench.workspace.path(""), program);
                let name = rivals::case(&engine.name, &case.collection);
                let recorded = recorded(bench)?.records.into_iter().find(|record| record.case == name);
                let recorded = recorded.map(|record| record.outcome);
                done(&Cell { engine: &engine.name, collection: &case.collection, run, recorded }, collection, case)?;
            }
        }
        Ok(())
    }
}

/// Writes what an engine gave into the results file and, with times, into their table. A record with the same facts of the
/// same inputs keeps its day.
///
/// # Errors
/// A damaged results file, or what the file system says.
pub fn record(bench: &Bench, cell: &Cell<'_>, collection: &Collection, case: &Case) -> Result<()> {
    let name = rivals::case(cell.engine, cell.collection);
    // Two runs at a time would each write the file without what the other has added.
    let matrix = bench.workspace.path("scenarios/engines.toml");
    let held = File::open(&matrix).with_context(|| matrix.display().to_string())?;
    held.lock().with_context(|| matrix.display().to_string())?;
    let mut results = recorded(bench)?;
    let mut record = Record {
        case: name.clone(),
        origin: case.origin,
        provenance: Provenance {
            // A run of the scorecard writes this file again without computing it, and says so.
            state: State::Kept,
            version: results.version.clone(),
            inputs_sha256: collection.inputs_sha256.clone(),
            recorded: Day::now(),
        },
        outcome: cell.run.outcome.clone(),
    };
    let planned: Vec<String> = plan(bench)?.cases.into_iter().map(|planned| planned.case).collect();
    results.records.retain(|known| planned.contains(&known.case));
    if let Some(at) = results.records.iter().position(|known| known.case == name) {
        let known = results.records.swap_remove(at);
        let is_same = known.outcome == record.outcome && known.provenance.inputs_sha256 == collection.inputs_sha256;
        if is_same {
            record.provenance.recorded = known.provenance.recorded;
        }
    }
    results.records.push(record);
    let results = Results::new(&results.name, &results.configuration, &results.version, results.records);
    files::write_one(&results.erased()?, &bench.workspace)?;
    match (&cell.run.times, &cell.run.outcome) {
        // Measured and not timed: what was timed before still holds.
        (None, Outcome::Measured(_)) => Ok(()),
        (times, _) => tables::write_engine_times(&bench.workspace, [cell.engine, cell.collection], times.as_ref()),
    }
}

fn plan(bench: &Bench) -> Result<crate::chapter::Plan> {
    let chapter = chapters::find(rivals::NAME).context("no chapter of rivals")?;
    chapter.plan(bench)?.pop().context("no [[process]] in engines.toml")
}

/// What is recorded, with the configuration and version of now; empty without a file.
fn recorded(bench: &Bench) -> Result<Results<RivalFacts>> {
    let chapter = chapters::find(rivals::NAME).context("no chapter of rivals")?;
    let plan = plan(bench)?;
    let known = files::read(chapter, rivals::NAME, &bench.workspace)?;
    let records = known.map(|known| known.typed::<RivalFacts>()).transpose()?.map_or(Vec::new(), |known| known.records);
    Ok(Results::new(rivals::NAME, &plan.configuration, &plan.version, records))
}
