//! The engines: every one on every case of the matrix, against the control on the same queries.
//!
//! One results file for each engine. Facts are measured in [`crate::eval::run`]; here they are planned, verified and shown.

mod answers;
mod figures;
mod page;
#[cfg(test)]
pub(crate) mod sample;
mod scores;
mod terminal;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use rayon::prelude::*;

use self::scores::Scores;
use super::collections::{inputs_of, stated};
use crate::chapter::{Absent, Answer, Chapter, Fresh, Inputs, Plan, Planned, Recordings, Step, Wrong};
use crate::eval::collection::Collection;
use crate::eval::engine::{Engine, RouterEngine};
use crate::eval::identity;
use crate::eval::matrix::{CONTROL, Case, DEFAULT, Matrix};
use crate::eval::record::{Facts, Growth, Origin, Outcome, Slice};
use crate::eval::run::{follows_from_ranks, grown, grown_sha256, run_case};
use crate::eval::tables::Tables;
use crate::eval::version;
use crate::eval::workspace::{Bench, Scope};
use crate::report::document::Document;
use crate::results::{Day, Provenance, Record, Results, State};

pub use terminal::facts;

/// The name of the chapter.
pub const NAME: &str = "routing";

/// The chapter.
#[derive(Debug)]
pub struct Routing;

impl Chapter for Routing {
    type Facts = Box<Facts>;

    fn name(&self) -> &'static str {
        NAME
    }

    fn files(&self, matrix: &Matrix) -> Vec<String> {
        matrix.engines.iter().map(|spec| spec.engine.name().to_owned()).collect()
    }

    fn plan(&self, bench: &Bench) -> Result<Vec<Plan>> {
        let plan = |engine: &RouterEngine| {
            let takes_minutes = engine.has_encoder() && bench.scope == Scope::Usual;
            let own = bench.matrix.cases.iter().filter(|case| case.engines.iter().any(|name| name == engine.name()));
            let planned = |case: &Case| {
                let collection = bench.collections.get(&case.collection);
                Planned {
                    case: case.id.clone(),
                    origin: case.origin,
                    absent: match collection {
                        None => Some(Absent::Inputs),
                        Some(_) if takes_minutes => Some(Absent::TooLarge),
                        Some(_) => None,
                    },
                    // What a grown collection is made of is known when it is grown.
                    inputs_sha256: case
                        .growth
                        .is_none()
                        .then(|| inputs_of(case, collection.map(AsRef::as_ref)))
                        .flatten(),
                }
            };
            Plan {
                name: engine.name().to_owned(),
                configuration: engine.configuration(),
                version: version::of_engine(engine).to_owned(),
                cases: own.map(planned).collect(),
            }
        };
        Ok(bench.matrix.engines.par_iter().map(|spec| plan(&spec.engine)).collect())
    }

    fn inputs(&self, bench: &Bench, planned: &Planned) -> Result<Inputs> {
        let case = case(bench, &planned.case)?;
        let sha256 = match (&planned.inputs_sha256, case.growth) {
            (Some(known), _) => known.clone(),
            (None, Some(growth)) => grown_sha256(collection(bench, case)?, growth)?,
            (None, None) => collection(bench, case)?.inputs_sha256.clone(),
        };
        // Every engine is compared with the control, and tokens are counted where the scenario says so.
        let control = bench.matrix.engine(CONTROL).map(version::of_engine).unwrap_or_default();
        let tokens = if case.tokens { " and tokens" } else { "" };
        Ok(Inputs { sha256, beside: format!("{CONTROL} {control}{tokens}") })
    }

    fn cost_ms(&self, bench: &Bench, plan: &Plan, planned: &Planned) -> u64 {
        let Ok(case) = case(bench, &planned.case) else { return 0 };
        let Ok(collection) = collection(bench, case) else { return 0 };
        let tools = case.growth.map_or(collection.catalog.len(), |growth| growth.size) as u64;
        let queries = collection.queries.len() as u64;
        let is_encoded = bench.matrix.engine(&plan.name).is_some_and(RouterEngine::has_encoder);
        // A sentence takes the encoder milliseconds, a posting takes nanoseconds.
        let encoded = if is_encoded { (tools + queries) * 5 } else { 0 };
        5 + tools / 20 + queries * (20 + tools / 50) / 1_000 + encoded
    }

    fn measure(&self, bench: &Bench, plans: &[Plan], step: Step<'_>) -> Result<Vec<Fresh<Box<Facts>>>> {
        let mut wanted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for plan in plans {
            for planned in plan.cases.iter().filter(|planned| planned.absent.is_none()) {
                wanted.entry(&planned.case).or_default().push(&plan.name);
            }
        }
        let run = |(id, engines): (&&str, &Vec<&str>)| {
            step(id);
            let case = case(bench, id)?;
            let collection = grown(collection(bench, case)?, case.growth).with_context(|| case.id.clone())?;
            let outcomes = run_case(case, engines, &bench.matrix, &collection).into_iter();
            let fresh = outcomes.map(|(results, outcome)| Fresh {
                results,
                case: case.id.clone(),
                inputs_sha256: collection.inputs_sha256.clone(),
                outcome,
            });
            Ok(fresh.collect::<Vec<_>>())
        };
        let measured = wanted.par_iter().map(run).collect::<Result<Vec<_>>>()?;
        Ok(measured.into_iter().flatten().collect())
    }

    fn wrong(&self, own: &[Results<Box<Facts>>], all: &Recordings) -> Vec<Wrong> {
        let ranked = Ranked::of(all);
        let mut wrong = Vec::new();
        for (results, (record, facts)) in own.iter().flat_map(|one| one.measured().map(move |row| (one, row))) {
            let mut reasons = identity::of_facts(facts);
            let case = &record.case;
            if let Some(control) = ranked.facts(CONTROL, case) {
                reasons.extend(beside_the_control(facts, control));
            }
            if let Some(inputs) = ranked.inputs(CONTROL, case).filter(|one| **one != record.provenance.inputs_sha256) {
                reasons.push(format!("the control has different inputs there: {inputs}"));
            }
            if let Some(public) = stated(record.origin, case) {
                let own = (facts.tools, facts.answerable + facts.unanswerable);
                if own != (public.tools, public.queries) {
                    reasons.push("its tools and queries are not those that the public manifest states".to_owned());
                }
            }
            wrong.extend(Wrong::each(&results.name, &record.case, reasons));
        }
        for (results, (case, message)) in own.iter().flat_map(|one| one.failed().map(move |row| (one, row))) {
            if results.name != CONTROL && ranked.facts(CONTROL, case).is_some() {
                let reason = format!("the control was measured there, but this failed: {message}");
                wrong.push(Wrong { results: results.name.clone(), case: case.to_owned(), reason });
            }
        }
        wrong
    }

    fn render(&self, own: &[Results<Box<Facts>>], tables: &Tables, document: &mut Document) {
        page::chapter(document, &Scores::new(own), tables);
    }

    fn terminal(&self, own: &[Results<Box<Facts>>]) -> String {
        terminal::summary(own)
    }

    fn front(&self, own: &[Results<Box<Facts>>]) -> Vec<String> {
        page::front(&Scores::new(own))
    }

    fn answers(&self, own: &[Results<Box<Facts>>], tables: &Tables) -> Vec<Answer> {
        answers::answers(&Scores::new(own), &tables.engines)
    }
}

/// The case of a plan.
fn case<'b>(bench: &'b Bench, id: &str) -> Result<&'b Case> {
    bench.matrix.cases.iter().find(|case| case.id == id).context("a plan for no case")
}

/// The collection that a case is made of.
fn collection<'b>(bench: &'b Bench, case: &Case) -> Result<&'b Arc<Collection>> {
    bench.collections.get(&case.collection).context("a case without its collection")
}

/// What does not depend on the engine must be as the control has it on the same case, and the difference from the control
/// must be that of the two means. So even an engine that cannot be run here is held by one that can.
fn beside_the_control(facts: &Facts, control: &Facts) -> Vec<String> {
    let mut reasons = Vec::new();
    let counts = |facts: &Facts| [facts.tools, facts.namespaces, facts.answerable, facts.unanswerable];
    if counts(facts) != counts(control) {
        reasons.push("its tools and queries are not those of the control".to_owned());
    }
    let asked = |slices: &BTreeMap<String, Slice>| -> Vec<(String, usize)> {
        slices.iter().map(|(name, slice)| (name.clone(), slice.queries)).collect()
    };
    let parts = |facts: &Facts| [asked(&facts.by_namespace), asked(&facts.by_register)];
    if parts(facts) != parts(control) {
        reasons.push("its parts of the queries are not those of the control".to_owned());
    }
    // Words that others write as one are terms beside those of the control.
    if facts.work.terms < control.work.terms {
        reasons.push("its index has fewer terms than that of the control".to_owned());
    }
    let naive = |facts: &Facts| facts.tokens.as_ref().map(|tokens| (tokens.estimator.clone(), tokens.naive));
    if naive(facts) != naive(control) {
        reasons.push("the definitions cost a different number of tokens than with the control".to_owned());
    }
    if !follows_from_ranks(facts, control) {
        reasons.push("recall@5: the ranks give another difference from the control".to_owned());
    }
    reasons
}

/// What the engines were measured to give, for chapters that measure the same engines otherwise.
#[derive(Debug, Default)]
pub struct Ranked(BTreeMap<(String, String), (String, Box<Facts>)>);

impl Ranked {
    /// The facts of this chapter.
    #[must_use]
    pub fn of(all: &Recordings) -> Self {
        let mut facts = BTreeMap::new();
        // Results were read with their facts; what is of another shape has been refused.
        for results in all.of(NAME).iter().filter_map(|one| one.typed::<Box<Facts>>().ok()) {
            for (record, measured) in results.measured() {
                let inputs = record.provenance.inputs_sha256.clone();
                facts.insert((results.name.clone(), record.case.clone()), (inputs, measured.clone()));
            }
        }
        Self(facts)
    }

    /// The facts of an engine on a case; `None` where it was not run or failed.
    #[must_use]
    pub fn facts(&self, engine: &str, case: &str) -> Option<&Facts> {
        self.0.get(&(engine.to_owned(), case.to_owned())).map(|(_, facts)| facts.as_ref())
    }

    /// The digest of what an engine was measured on, as its record states it.
    #[must_use]
    pub fn inputs(&self, engine: &str, case: &str) -> Option<&String> {
        self.0.get(&(engine.to_owned(), case.to_owned())).map(|(inputs, _)| inputs)
    }
}

/// The picture of recall@5 by size and kind of distractors for one engine and collection, each with the control beside it, as
/// SVG; `None` when there is nothing to draw.
#[must_use]
pub fn context_rot(engine: Vec<(Growth, Facts)>, control: Vec<(Growth, Facts)>) -> Option<String> {
    const COLLECTION: &str = "yours";
    let record = |(growth, facts): (Growth, Facts)| {
        let provenance = Provenance {
            state: State::Computed,
            version: String::new(),
            inputs_sha256: String::new(),
            recorded: Day::now(),
        };
        let outcome = Outcome::Measured(Box::new(facts));
        Record { case: growth.case(COLLECTION), origin: Origin::Public, provenance, outcome }
    };
    let sides = [(DEFAULT, engine), (CONTROL, control)];
    let results = sides.map(|(name, measured)| Results::new(name, "", "", measured.into_iter().map(record).collect()));
    figures::context_rot(&Scores::new(&results), COLLECTION).map(|figure| figure.svg)
}
