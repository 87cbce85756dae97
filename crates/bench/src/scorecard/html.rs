//! The report of a checkout as one HTML file: the collections that are here, ranked by the built-in engines for it, query by
//! query, the committed ranks of all other engines beside them, and the pictures of the committed records.

use anyhow::{Context, Result};

use super::files::committed;
use crate::chapter::Recordings;
use crate::chapters::{CHAPTERS, rivals, routing};
use crate::eval::collection::Collection;
use crate::eval::engine::{Engine, RouterEngine};
use crate::eval::record::{Facts, Origin};
use crate::eval::rival::RivalFacts;
use crate::eval::run::{Evaluation, PromptTokens, evaluate};
use crate::eval::tables::Tables;
use crate::eval::workspace::{Bench, Scope, Workspace};
use crate::public::USUAL_FOLDER;
use crate::report::document::Document;
use crate::report::html::{Evidence, Extra, Ranked, Recorded, Section, render};
use crate::results::{Provenance, Results};

/// A collection with what each engine gave on it.
type Measured<'m> = (&'m Collection, Vec<(&'m RouterEngine, Evaluation)>);

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
    let mut measured: Vec<Measured<'_>> = Vec::new();
    for (name, _) in bench.matrix.plain_cases() {
        let Some(collection) = bench.collections.get(name) else { continue };
        step(name);
        let evaluated = engines.iter().map(|engine| {
            let evaluation = evaluate(collection, *engine, PromptTokens::Count);
            Ok((*engine, evaluation.with_context(|| format!("{} on {name}", engine.name()))?))
        });
        measured.push((collection.as_ref(), evaluated.collect::<Result<Vec<_>>>()?));
    }
    let named: Vec<String> = engines.iter().map(|engine| format!("--engine {}", engine.name())).collect();
    let command = |collection: &Collection| {
        let folder = match collection.origin {
            Origin::Embedded => format!("gold/{}", collection.name),
            Origin::Public => format!("{USUAL_FOLDER}/{}", collection.name),
        };
        let files = format!("--catalog {folder}/catalog.json --queries {folder}/queries.jsonl");
        format!("contextweaver bench eval {files} {}", named.join(" "))
    };
    let sections: Vec<Section<'_>> = measured
        .iter()
        .map(|(collection, ranked)| Section {
            name: &collection.name,
            collection,
            ranked: ranked
                .iter()
                .map(|(engine, evaluation)| Ranked { engine: engine.name(), evidence: Evidence::Computed, evaluation })
                .collect(),
            recorded: recorded.on(collection, &engines),
            failed: Vec::new(),
            command: command(collection),
        })
        .collect();
    Ok(render("contextweaver, measured", &sections, &pictures(&bench.workspace, &recordings)?)?)
}

/// The committed ranks of engines that are not run for the report: ours with the encoder, and those of others.
struct RecordedEngines {
    ours: Vec<Results<Box<Facts>>>,
    others: Vec<Results<RivalFacts>>,
}

impl RecordedEngines {
    fn of(recordings: &Recordings) -> Self {
        // Results were read with their facts; what is of another shape has been refused.
        let ours = recordings.of(routing::NAME).iter().filter_map(|results| results.typed().ok());
        let others = recordings.of(rivals::NAME).iter().filter_map(|results| results.typed().ok());
        Self { ours: ours.collect(), others: others.collect() }
    }

    /// What is recorded on this very collection of engines that are not among `computed`.
    fn on(&self, collection: &Collection, computed: &[&RouterEngine]) -> Vec<Recorded<'_>> {
        let is_new = |name: &str| computed.iter().all(|engine| engine.name() != name);
        let ours = self.ours.iter().filter(|results| is_new(&results.name)).flat_map(|results| {
            let own = results.measured().filter(|(record, _)| record.case == collection.name);
            own.map(|(record, facts)| (results.name.as_str(), &record.provenance, &facts.measures, &facts.ranks))
        });
        let others = self.others.iter().flat_map(Results::measured).filter_map(|(record, facts)| {
            let (engine, name) = rivals::parts(&record.case);
            let is_wanted =
                name == collection.name && is_new(engine) && self.ours.iter().all(|ours| ours.name != engine);
            is_wanted.then_some((engine, &record.provenance, &facts.measures, &facts.ranks))
        });
        let same = |provenance: &Provenance| provenance.inputs_sha256 == collection.inputs_sha256;
        let of_this = ours.chain(others).filter(|(_, provenance, ..)| same(provenance));
        let mut all: Vec<Recorded<'_>> = of_this
            .map(|(engine, provenance, measures, ranks)| Recorded {
                engine,
                day: &provenance.recorded,
                measures,
                ranks,
            })
            .collect();
        let mean = |one: &Recorded<'_>| one.measures.get("recall@5").map_or(0.0, |estimate| estimate.mean);
        all.sort_by(|left, right| mean(right).total_cmp(&mean(left)).then(left.engine.cmp(right.engine)));
        all
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
            reading: "From the committed records, which `contextweaver bench check` computes again; scorecard/ has the tables."
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
