//! The report of a checkout as one HTML file: the collections that are here and the everyday requests in people's own words,
//! ranked by the built-in engines for it, query by query, the committed ranks of all other engines beside them, and the
//! pictures of the committed records.

use anyhow::{Context, Result};

use super::files::committed;
use crate::chapter::Recordings;
use crate::chapters::{CHAPTERS, everyday, rivals, routing};
use crate::eval::collection::{CATALOG_FILE, Collection, QUERIES_FILE};
use crate::eval::engine::{Engine, RouterEngine};
use crate::eval::everyday::{COLLECTION, Manner};
use crate::eval::record::{Evidence, Facts, Origin, Outcome};
use crate::eval::rival::RivalFacts;
use crate::eval::run::{Evaluation, PromptTokens, evaluate};
use crate::eval::tables::Tables;
use crate::eval::workspace::{Bench, Scope, Workspace};
use crate::public::USUAL_FOLDER;
use crate::report::document::Document;
use crate::report::html::{Extra, Failed, Ranked, Recorded, Section, render};
use crate::results::{Provenance, Results};

/// What people ask for in their own words: the manner of the everyday requests that takes each for one query, as
/// `bench eval` does.
const SAID: Manner = Manner::Said;

/// A collection with what each engine gave on it.
struct Measured<'m> {
    collection: &'m Collection,
    /// Its folder below the one of all collections.
    folder: &'m str,
    /// The case of its records.
    case: &'m str,
    /// Whether it is one of those that the scorecard has the mean of.
    counts: bool,
    ranked: Vec<(&'m RouterEngine, Evaluation)>,
}

/// The report of `workspace`; `step` is called before every collection.
///
/// # Errors
/// A collection or a results file that cannot be read, or an engine that fails.
pub fn html(workspace: Workspace, step: &(dyn Fn(&str) + Sync)) -> Result<String> {
    let bench = Bench::open(workspace, Scope::Usual)?;
    let recordings = committed(&bench.workspace, &bench.matrix)?;
    let recorded = RecordedEngines::of(&recordings);
    let engines: Vec<&RouterEngine> =
        bench.matrix.engines.iter().map(|spec| &spec.engine).filter(|engine| !engine.has_encoder()).collect();
    let rank = |collection: &Collection| {
        step(&collection.name);
        let evaluated = engines.iter().map(|engine| {
            let evaluation = evaluate(collection, *engine, PromptTokens::Count);
            Ok((*engine, evaluation.with_context(|| format!("{} on {}", engine.name(), collection.name))?))
        });
        evaluated.collect::<Result<Vec<_>>>()
    };
    let said = Manner::of(&bench.workspace).find(|manner| *manner == SAID);
    let said = said.map(|manner| manner.collection(&bench.workspace)).transpose()?.flatten();
    let mut measured: Vec<Measured<'_>> = Vec::new();
    for (name, _) in bench.matrix.plain_cases() {
        let Some(collection) = bench.collections.get(name) else { continue };
        measured.push(Measured { collection, folder: name, case: name, counts: true, ranked: rank(collection)? });
    }
    if let Some(collection) = &said {
        measured.push(Measured {
            collection,
            folder: COLLECTION,
            case: SAID.name(),
            counts: false,
            ranked: rank(collection)?,
        });
    }
    let named: Vec<String> = engines.iter().map(|engine| format!("--engine {}", engine.name())).collect();
    let command = |Measured { collection, folder, .. }: &Measured<'_>| {
        let above = match collection.origin {
            Origin::Embedded => "gold",
            Origin::Public => USUAL_FOLDER,
        };
        let files = format!("--catalog {above}/{folder}/{CATALOG_FILE} --queries {above}/{folder}/{QUERIES_FILE}");
        format!("contextweaver bench eval {files} {}", named.join(" "))
    };
    let sections: Vec<Section<'_>> = measured
        .iter()
        .map(|one| Section {
            name: &one.collection.name,
            collection: one.collection,
            ranked: (one.ranked.iter())
                .map(|(engine, evaluation)| Ranked { engine: engine.name(), evidence: Evidence::Computed, evaluation })
                .collect(),
            recorded: recorded.on(one, &engines),
            failed: recorded.failed_on(one),
            counts: one.counts,
            command: command(one),
        })
        .collect();
    Ok(render("contextweaver, measured", &sections, &pictures(&bench.workspace, &recordings)?)?)
}

/// The committed ranks of engines that are not run for the report: ours with the encoder, and those of others.
struct RecordedEngines {
    ours: Vec<Results<Box<Facts>>>,
    everyday: Vec<Results<Box<Facts>>>,
    others: Vec<Results<RivalFacts>>,
}

impl RecordedEngines {
    fn of(recordings: &Recordings) -> Self {
        // Results were read with their facts; what is of another shape has been refused.
        let facts = |chapter: &str| recordings.of(chapter).iter().filter_map(|results| results.typed().ok()).collect();
        let others = recordings.of(rivals::NAME).iter().filter_map(|results| results.typed().ok());
        Self { ours: facts(routing::NAME), everyday: facts(everyday::NAME), others: others.collect() }
    }

    /// What is recorded on this very collection of engines that are not among `computed`.
    fn on(&self, measured: &Measured<'_>, computed: &[&RouterEngine]) -> Vec<Recorded<'_>> {
        let is_new = |name: &str| computed.iter().all(|engine| engine.name() != name);
        let plain = self.ours.iter().flat_map(|results| {
            let own = results.measured().filter(|(record, _)| record.case == measured.case);
            own.map(|(record, facts)| (results.name.as_str(), &record.provenance, &facts.measures, &facts.ranks))
        });
        let everyday = self.everyday.iter().flat_map(Results::measured).filter_map(|(record, facts)| {
            let engine = record.case.strip_prefix(measured.case)?.strip_prefix('/')?;
            Some((engine, &record.provenance, &facts.measures, &facts.ranks))
        });
        let same = |provenance: &Provenance| provenance.inputs_sha256 == measured.collection.inputs_sha256;
        let mut all: Vec<Recorded<'_>> = Vec::new();
        let ours = plain.chain(everyday).filter(|(engine, ..)| is_new(engine));
        let others = self.others.iter().flat_map(Results::measured).filter_map(|(record, facts)| {
            let (engine, case) = rivals::parts(&record.case);
            // Ours are there too, through the door of the others; what they gave inside is above.
            let is_wanted = case == measured.case && facts.requirements_sha256.is_some();
            is_wanted.then_some((engine, &record.provenance, &facts.measures, &facts.ranks))
        });
        for (engine, provenance, measures, ranks) in ours.chain(others).filter(|(_, provenance, ..)| same(provenance)) {
            all.push(Recorded { engine, day: &provenance.recorded, measures, ranks });
        }
        let mean = |one: &Recorded<'_>| one.measures.get("recall@5").map_or(0.0, |estimate| estimate.mean);
        all.sort_by(|left, right| mean(right).total_cmp(&mean(left)).then(left.engine.cmp(right.engine)));
        all
    }

    /// The engines of others that gave nothing on this very collection when they were recorded, with the reason.
    fn failed_on(&self, measured: &Measured<'_>) -> Vec<Failed<'_>> {
        let records = self.others.iter().flat_map(|results| &results.records);
        let here = records.filter(|record| record.provenance.inputs_sha256 == measured.collection.inputs_sha256);
        let failed = here.filter_map(|record| match (rivals::parts(&record.case), &record.outcome) {
            ((engine, case), Outcome::Failed(reason)) if case == measured.case => Some(Failed { engine, reason }),
            _ => None,
        });
        failed.collect()
    }
}

/// The pictures of the committed records, by page of the scorecard.
fn pictures(workspace: &Workspace, recordings: &Recordings) -> Result<Vec<Extra>> {
    let tables = Tables::read(workspace)?;
    let mut extras = Vec::new();
    for chapter in CHAPTERS {
        let mut document = Document::default();
        chapter.render(recordings, &tables, &mut document)?;
        extras.extend(document.into_leaves().into_iter().filter(|leaf| !leaf.figures.is_empty()).map(|leaf| Extra {
            title: leaf.title,
            reading: match chapter.name() {
                rivals::NAME => {
                    "From recorded results of third-party engines, which are never computed again; scorecard/ has the \
                     tables."
                }
                _ => "From the committed records, which contextweaver bench check computes again; scorecard/ has the tables.",
            }
            .to_owned(),
            evidence: Evidence::Recorded,
            table: None,
            figures: leaf.figures,
            // Engines of others are recorded by a command of their own; pages are drawn from what is recorded.
            command: match chapter.name() {
                rivals::NAME => "contextweaver bench run --engines all && contextweaver bench render".to_owned(),
                _ => "contextweaver bench run --all && contextweaver bench render".to_owned(),
            },
        }));
    }
    Ok(extras)
}
