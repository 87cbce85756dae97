//! Chapters with one record for each collection of the matrix, all measured with the default engine.
//!
//! [`PerCollection`] makes a [`Chapter`] of what such a chapter does on one collection.

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::routing::Ranked;
use crate::chapter::{Absent, Answer, Chapter, Fresh, Plan, Planned, Recordings, Step, Wrong, measurable};
use crate::eval::collection::Collection;
use crate::eval::engine::{Engine, RouterEngine};
use crate::eval::error::EvalError;
use crate::eval::identity::Broken;
use crate::eval::matrix::{Case, DEFAULT};
use crate::eval::probe;
use crate::eval::record::{Origin, Outcome};
use crate::eval::tables::Tables;
use crate::eval::version;
use crate::eval::workspace::{Bench, Workspace};
use crate::public::{Manifest, PublicCollection};
use crate::report::document::Document;
use crate::report::table::{self, Table};
use crate::results::Results;

/// A collection that a chapter takes beside those of the matrix.
#[derive(Debug)]
pub struct Own {
    /// The case of its record; none of the matrix.
    pub case: String,
    /// Who wrote it.
    pub origin: Origin,
    /// The collection; `None` where it is not here.
    pub collection: Option<Collection>,
}

/// What a chapter does on one collection.
pub trait CollectionChapter: Sync {
    /// What it measures there.
    type Facts: Serialize + DeserializeOwned + Send;

    /// See [`Chapter::name`].
    fn name(&self) -> &'static str;

    /// The collections beside those of the matrix that it measures.
    ///
    /// # Errors
    /// A collection that is there and cannot be read.
    fn own(&self, workspace: &Workspace) -> Result<Vec<Own>> {
        let _ = workspace;
        Ok(Vec::new())
    }

    /// Measures `engine` on `collection`.
    ///
    /// # Errors
    /// Why the engine cannot be measured on it.
    fn measure(&self, collection: &Collection, engine: &RouterEngine) -> Result<Self::Facts, EvalError>;

    /// What the version of the chapter is taken of: what it measures on the probe, or less where that takes long.
    ///
    /// # Errors
    /// As [`Self::measure`].
    fn probe(&self, engine: &RouterEngine) -> Result<Self::Facts, EvalError> {
        self.measure(probe::collection(), engine)
    }

    /// Notes what is wrong with recorded facts of the collection `case`; `ranked` has what the engines were measured to give.
    fn check(&self, case: &str, facts: &Self::Facts, ranked: &Ranked, broken: &mut Broken);

    /// See [`Chapter::render`].
    fn render(&self, own: &Results<Self::Facts>, tables: &Tables, page: &mut Document);

    /// The tables of the chapter, for a terminal.
    fn tables(&self, own: &Results<Self::Facts>) -> Vec<Table>;

    /// See [`Chapter::front`].
    fn front(&self, own: &Results<Self::Facts>) -> Vec<String> {
        let _ = own;
        Vec::new()
    }

    /// See [`Chapter::answers`].
    fn answers(&self, own: &Results<Self::Facts>) -> Vec<Answer> {
        let _ = own;
        Vec::new()
    }
}

/// The chapter of a [`CollectionChapter`].
#[derive(Debug)]
pub struct PerCollection<C>(pub C);

impl<C: CollectionChapter> Chapter for PerCollection<C> {
    type Facts = C::Facts;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn plan(&self, bench: &Bench) -> Result<Vec<Plan>> {
        let engine = default_engine(bench)?;
        let on_probe = self.0.probe(engine).map_err(|error| error.to_string());
        let planned = bench.matrix.plain_cases().into_iter().map(|(name, case)| {
            let collection = bench.collections.get(name);
            Planned {
                case: name.to_owned(),
                origin: case.origin,
                absent: collection.is_none().then_some(Absent::Inputs),
                inputs_sha256: inputs_of(case, collection.map(AsRef::as_ref)),
            }
        });
        let mut cases: Vec<Planned> = planned.collect();
        cases.extend(self.0.own(&bench.workspace)?.into_iter().map(|own| Planned {
            case: own.case,
            origin: own.origin,
            absent: own.collection.is_none().then_some(Absent::Inputs),
            inputs_sha256: own.collection.map(|collection| collection.inputs_sha256),
        }));
        Ok(vec![Plan {
            name: self.0.name().to_owned(),
            configuration: engine.configuration(),
            version: version::of(version::of_engine(engine), &on_probe),
            cases,
        }])
    }

    fn cost_ms(&self, bench: &Bench, _: &Plan, planned: &Planned) -> u64 {
        let collection = bench.collections.get(&planned.case);
        collection.map_or(0, |collection| 20 + (collection.catalog.len() + collection.queries.len()) as u64 / 2)
    }

    fn measure(&self, bench: &Bench, plans: &[Plan], step: Step<'_>) -> Result<Vec<Fresh<C::Facts>>> {
        let engine = default_engine(bench)?;
        let own = self.0.own(&bench.workspace)?;
        let own_of = |case: &str| own.iter().find(|own| own.case == case).and_then(|own| own.collection.as_ref());
        let mut measured = Vec::new();
        for case in measurable(plans) {
            let Some(collection) = bench.collections.get(case).map(AsRef::as_ref).or_else(|| own_of(case)) else {
                continue;
            };
            step(&format!("{} of {case}", self.0.name()));
            let outcome = self.0.measure(collection, engine);
            measured.push(Fresh {
                results: self.0.name().to_owned(),
                case: case.to_owned(),
                inputs_sha256: collection.inputs_sha256.clone(),
                outcome: outcome.map_or_else(|error| Outcome::Failed(error.to_string()), Outcome::Measured),
            });
        }
        Ok(measured)
    }

    fn wrong(&self, own: &[Results<C::Facts>], all: &Recordings) -> Vec<Wrong> {
        let ranked = Ranked::of(all);
        let mut wrong = Vec::new();
        for (results, (record, facts)) in own.iter().flat_map(|one| one.measured().map(move |row| (one, row))) {
            let mut broken = Broken::default();
            self.0.check(&record.case, facts, &ranked, &mut broken);
            let inputs = ranked.inputs(DEFAULT, &record.case);
            let is_same = inputs.is_none_or(|inputs| *inputs == record.provenance.inputs_sha256);
            broken.unless(is_same, format!("it has different inputs than `{DEFAULT}` there"));
            wrong.extend(Wrong::each(&results.name, &record.case, broken.reasons()));
        }
        for (results, (case, message)) in own.iter().flat_map(|one| one.failed().map(move |row| (one, row))) {
            if ranked.facts(DEFAULT, case).is_some() {
                let reason = format!("`{DEFAULT}` was measured there, but this failed: {message}");
                wrong.push(Wrong { results: results.name.clone(), case: case.to_owned(), reason });
            }
        }
        wrong
    }

    fn render(&self, own: &[Results<C::Facts>], tables: &Tables, page: &mut Document) {
        own.iter().for_each(|results| self.0.render(results, tables, page));
    }

    fn terminal(&self, own: &[Results<C::Facts>]) -> String {
        own.iter().map(|results| table::plain(&self.0.tables(results))).collect()
    }

    fn front(&self, own: &[Results<C::Facts>]) -> Vec<String> {
        own.iter().flat_map(|results| self.0.front(results)).collect()
    }

    fn answers(&self, own: &[Results<C::Facts>], _: &Tables) -> Vec<Answer> {
        own.iter().flat_map(|results| self.0.answers(results)).collect()
    }
}

/// The digest of the inputs of a case that is not grown: of the collection where it is here, else of the public one that
/// the manifest states.
#[must_use]
pub fn inputs_of(case: &Case, collection: Option<&Collection>) -> Option<String> {
    let stated = || stated(case.origin, &case.collection).map(|public| public.sha256.together());
    collection.map(|collection| collection.inputs_sha256.clone()).or_else(stated)
}

/// What the manifest states of a public collection; `None` for any other.
#[must_use]
pub fn stated(origin: Origin, collection: &str) -> Option<&'static PublicCollection> {
    // A test holds that the manifest of the program can be read.
    Manifest::builtin().ok().filter(|_| origin == Origin::Public)?.collection(collection)
}

/// The engine that users get.
///
/// # Errors
/// A matrix without it.
pub fn default_engine(bench: &Bench) -> Result<&RouterEngine> {
    bench.matrix.engine(DEFAULT).with_context(|| format!("no engine `{DEFAULT}` in engines.toml"))
}
