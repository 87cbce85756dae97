//! Running the engines of others and recording what they gave: the one way to the records of the chapter of rivals, and
//! to those of context engines of others in the chapter of context.
//!
//! Every engine on every collection or scenario is written as soon as it is measured, so that a run which is stopped keeps
//! what it has. Records and times of other engines stay as they are.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::files;
use crate::chapter::Plan;
use crate::chapters::{self, context, rivals};
use crate::eval::collection::Collection;
use crate::eval::context::rival::{ContextRivalFacts, take_part};
use crate::eval::context::run::inputs;
use crate::eval::context::scenario::Scenario;
use crate::eval::everyday::{self, Manner};
use crate::eval::record::{Origin, Outcome};
use crate::eval::rival::{Put, Rival, RivalFacts, RivalPlace, RivalRun};
use crate::eval::tables;
use crate::eval::workspace::Bench;
use crate::results::{Day, Provenance, Record, Results, State};

/// What is run.
#[derive(Debug)]
pub struct Selection<'s> {
    /// Engines in the order of `engines.toml`.
    pub engines: Vec<&'s Rival>,
    /// Collections that are here: those of the matrix, then the everyday requests in their manners.
    pub collections: Vec<Ground>,
    /// Context engines in the order of `engines.toml`.
    pub context_engines: Vec<&'s Rival>,
    /// Scenarios that are here, in the order of their names.
    pub scenarios: Vec<Scenario>,
}

/// A collection that engines are run on.
#[derive(Debug)]
pub struct Ground {
    /// The name that it is asked for by.
    pub name: String,
    /// The results file of its records.
    file: &'static str,
    /// Its part of the names of records.
    case: String,
    /// How its queries are put.
    put: Put,
    /// The catalog and the queries.
    collection: Arc<Collection>,
}

impl Ground {
    /// The name of an everyday collection: `everyday-said`.
    fn everyday_name(manner: Manner) -> String {
        format!("{}-{}", everyday::COLLECTION, manner.name())
    }

    fn everyday(manner: Manner, collection: Collection) -> Self {
        Self {
            name: Self::everyday_name(manner),
            file: rivals::EVERYDAY,
            case: manner.name().to_owned(),
            put: Put::LineByLine,
            collection: Arc::new(collection),
        }
    }
}

/// What one engine gave on one collection.
#[derive(Debug)]
pub struct Performance<'s> {
    /// The engine.
    pub engine: &'s str,
    /// The collection.
    pub ground: &'s Ground,
    /// What came of it.
    pub run: RivalRun,
    /// What is recorded of it; `None` where nothing is.
    pub recorded: Option<Outcome<RivalFacts>>,
}

impl<'s> Selection<'s> {
    /// The engines of these names, or `all`, with the collections and scenarios of these names; without any, all that are
    /// here. Names of collections alone leave context engines out, those of scenarios alone the engines that rank.
    ///
    /// # Errors
    /// A name of nothing, something that is not here, or a scenario that says something wrong.
    pub fn of(bench: &'s Bench, engines: &[String], collections: &[String], scenarios: &[String]) -> Result<Self> {
        let (ranking, context) = (&bench.matrix.rivals, &bench.matrix.context_rivals);
        let known = |name: &String| name == "all" || ranking.iter().chain(context).any(|rival| rival.name == *name);
        if let Some(unknown) = engines.iter().find(|name| !known(name)) {
            let names: BTreeSet<&str> = ranking.iter().chain(context).map(|rival| rival.name.as_str()).collect();
            let names: Vec<&str> = names.into_iter().collect();
            bail!(
                "no engine `{unknown}` in engines.toml that is a process or a context; there are {}",
                names.join(", ")
            );
        }
        let plain = bench.matrix.plain_cases();
        let everyday: Vec<Manner> = Manner::of(&bench.workspace).collect();
        for name in collections {
            let is_everyday = everyday.iter().any(|manner| Ground::everyday_name(*manner) == *name);
            ensure!(is_everyday || plain.contains_key(name.as_str()), "no collection `{name}` in scenarios/");
            ensure!(
                is_everyday || bench.collections.get(name).is_some(),
                "the collection `{name}` is not on this machine"
            );
        }
        let all = bench.workspace.scenarios()?;
        for name in scenarios {
            let found = all.iter().find(|scenario| scenario.name == *name);
            let found = found.with_context(|| format!("no scenario `{name}` of one log in scenarios/context/"))?;
            ensure!(found.is_present(), "the log of the scenario `{name}` is not on this machine");
        }
        let is_asked = |asked: &[String], other: &[String], name: &String| match asked {
            [] => other.is_empty(),
            names => names.contains(name),
        };
        let is_wanted = |rival: &&Rival| engines.iter().any(|name| name == "all" || *name == rival.name);
        let mut grounds: Vec<Ground> = plain
            .into_keys()
            .filter(|name| is_asked(collections, scenarios, &(*name).to_owned()))
            .filter_map(|name| Some((name, bench.collections.get(name)?)))
            .map(|(name, collection)| Ground {
                name: name.to_owned(),
                file: rivals::NAME,
                case: name.to_owned(),
                put: Put::Whole,
                collection: Arc::clone(collection),
            })
            .collect();
        for manner in everyday {
            let name = Ground::everyday_name(manner);
            if is_asked(collections, scenarios, &name) {
                let found = manner.collection(&bench.workspace)?;
                // Only one that was asked for by name is missed.
                ensure!(collections.is_empty() || found.is_some(), "the collection `{name}` is not on this machine");
                grounds.extend(found.map(|collection| Ground::everyday(manner, collection)));
            }
        }
        let asked = all.into_iter().filter(|scenario| is_asked(scenarios, collections, &scenario.name));
        Ok(Self {
            engines: ranking.iter().filter(is_wanted).collect(),
            collections: grounds,
            context_engines: context.iter().filter(is_wanted).collect(),
            scenarios: asked.filter(Scenario::is_present).collect(),
        })
    }

    /// How many pairs of an engine and what it runs on there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.engines.len() * self.collections.len() + self.context_engines.len() * self.scenarios.len()
    }

    /// Whether there is nothing to run.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Runs every engine on every collection; `program` is this program. Each is handed to `done` with what is recorded of
    /// it.
    ///
    /// # Errors
    /// A damaged results file, or what `done` says.
    pub fn run(
        &'s self,
        bench: &Bench,
        program: &Path,
        step: &dyn Fn(&str),
        mut done: impl FnMut(&Performance<'s>) -> Result<()>,
    ) -> Result<()> {
        let (root, hidden) = (bench.workspace.path(""), bench.workspace.judgements());
        let place = RivalPlace { root: &root, program, hidden: &hidden };
        for engine in &self.engines {
            for ground in &self.collections {
                step(&format!("{} on {}", engine.name, ground.name));
                let mut run = engine.take_part(&ground.collection, ground.put, &place);
                // The table of times is that of the collections of the matrix.
                run.times = run.times.filter(|_| ground.put == Put::Whole);
                let name = rivals::case(&engine.name, &ground.case);
                let recorded = recorded(bench, rivals::NAME, ground.file)?.outcome(&name);
                done(&Performance { engine: &engine.name, ground, run, recorded })?;
            }
        }
        Ok(())
    }
}

/// What one context engine gave on one scenario.
#[derive(Debug)]
pub struct ContextPerformance<'s> {
    /// The engine.
    pub engine: &'s str,
    /// The scenario.
    pub scenario: &'s Scenario,
    /// What came of it.
    pub outcome: Outcome<ContextRivalFacts>,
    /// What is recorded of it; `None` where nothing is.
    pub recorded: Option<Outcome<ContextRivalFacts>>,
}

impl<'s> Selection<'s> {
    /// Runs every context engine on every scenario, as [`Self::run`] does with engines that rank.
    ///
    /// # Errors
    /// As there, and a log that cannot be read.
    pub fn run_context(
        &'s self,
        bench: &Bench,
        program: &Path,
        step: &dyn Fn(&str),
        mut done: impl FnMut(&ContextPerformance<'s>) -> Result<()>,
    ) -> Result<()> {
        let (root, hidden) = (bench.workspace.path(""), bench.workspace.judgements());
        let place = RivalPlace { root: &root, program, hidden: &hidden };
        for engine in &self.context_engines {
            for scenario in &self.scenarios {
                step(&format!("{} on {}", engine.name, scenario.name));
                let outcome = take_part(engine, scenario, &place)?;
                let name = rivals::case(&engine.name, &scenario.name);
                let recorded = recorded(bench, context::NAME, context::RIVALS)?.outcome(&name);
                done(&ContextPerformance { engine: &engine.name, scenario, outcome, recorded })?;
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
pub fn record(bench: &Bench, given: &Performance<'_>) -> Result<()> {
    let Ground { file, case, collection, put, .. } = given.ground;
    let (name, inputs) = (rivals::case(given.engine, case), &collection.inputs_sha256);
    let held = hold(bench)?;
    write(bench, [rivals::NAME, file], name, collection.origin, inputs, given.run.outcome.clone())?;
    let written = match (&given.run.times, &given.run.outcome) {
        // Measured and not timed: what was timed before still holds.
        (None, Outcome::Measured(_)) => Ok(()),
        _ if *put == Put::LineByLine => Ok(()),
        (times, _) => tables::write_engine_times(&bench.workspace, [given.engine, case], times.as_ref()),
    };
    drop(held);
    written
}

/// Writes what a context engine gave into its results file; the day as [`record`] does.
///
/// # Errors
/// As there.
pub fn record_context(bench: &Bench, given: &ContextPerformance<'_>) -> Result<()> {
    let name = rivals::case(given.engine, &given.scenario.name);
    let held = hold(bench)?;
    let inputs = inputs(given.scenario, None)?;
    let written =
        write(bench, [context::NAME, context::RIVALS], name, given.scenario.origin, &inputs, given.outcome.clone());
    drop(held);
    written
}

/// Two runs at a time would each write a file without what the other has added.
fn hold(bench: &Bench) -> Result<File> {
    let matrix = bench.workspace.path("scenarios/engines.toml");
    let held = File::open(&matrix).with_context(|| matrix.display().to_string())?;
    held.lock().with_context(|| matrix.display().to_string())?;
    Ok(held)
}

/// Puts one record into the results `file` of `chapter`.
fn write<F: Serialize + DeserializeOwned + PartialEq>(
    bench: &Bench,
    [chapter, file]: [&str; 2],
    case: String,
    origin: Origin,
    inputs_sha256: &str,
    outcome: Outcome<F>,
) -> Result<()> {
    let Recorded { plan, mut records } = recorded(bench, chapter, file)?;
    records.retain(|known: &Record<F>| plan.cases.iter().any(|planned| planned.case == known.case));
    let known = records.iter().position(|known| known.case == case).map(|at| records.swap_remove(at));
    let is_same = |known: &Record<F>| known.outcome == outcome && known.provenance.inputs_sha256 == inputs_sha256;
    let provenance = Provenance {
        // A run of the scorecard writes this file again without computing it, and says so.
        state: State::Kept,
        version: plan.version.clone(),
        inputs_sha256: inputs_sha256.to_owned(),
        recorded: known.filter(is_same).map_or_else(Day::now, |known| known.provenance.recorded),
    };
    records.push(Record { case, origin, provenance, outcome });
    let results = Results::new(&plan.name, &plan.configuration, &plan.version, records);
    files::write_one(&results.erased()?, &bench.workspace)
}

/// What is recorded in a file, and what it is to hold now.
struct Recorded<F> {
    plan: Plan,
    records: Vec<Record<F>>,
}

impl<F> Recorded<F> {
    fn outcome(self, case: &str) -> Option<Outcome<F>> {
        self.records.into_iter().find(|record| record.case == case).map(|record| record.outcome)
    }
}

/// What is recorded in the results `file` of `chapter`; nothing without a file.
fn recorded<F: Serialize + DeserializeOwned>(bench: &Bench, chapter: &str, file: &str) -> Result<Recorded<F>> {
    let chapter = chapters::find(chapter).with_context(|| format!("no chapter {chapter}"))?;
    let plan = chapter.plan(bench)?.into_iter().find(|plan| plan.name == file);
    let plan = plan.with_context(|| format!("{file}: no such engine in engines.toml"))?;
    let known = files::read(chapter, file, &bench.workspace)?;
    let records = known.map(|known| known.typed::<F>()).transpose()?.map_or(Vec::new(), |known| known.records);
    Ok(Recorded { plan, records })
}
