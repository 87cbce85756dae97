//! The report of a checkout as one HTML file: the embedded collections ranked by the built-in engines for it, query by query,
//! and the pictures of the committed records.

use anyhow::{Context, Result};

use super::files::committed;
use crate::chapters::CHAPTERS;
use crate::eval::collection::Collection;
use crate::eval::engine::{Engine, RouterEngine};
use crate::eval::record::Origin;
use crate::eval::run::{Evaluation, PromptTokens, evaluate};
use crate::eval::tables::Tables;
use crate::eval::workspace::Workspace;
use crate::report::document::Document;
use crate::report::html::{Evidence, Extra, Ranked, Section, render};

/// A collection with what each engine gave on it.
type Measured<'m> = (Collection, Vec<(&'m RouterEngine, Evaluation)>);

/// The report of `workspace`; `step` is called before every collection.
///
/// # Errors
/// A collection or a results file that cannot be read, or an engine that fails.
pub fn html(workspace: &Workspace, step: &(dyn Fn(&str) + Sync)) -> Result<String> {
    let matrix = workspace.matrix()?;
    let engines: Vec<&RouterEngine> =
        matrix.engines.iter().map(|spec| &spec.engine).filter(|engine| !engine.has_encoder()).collect();
    let mut measured: Vec<Measured<'_>> = Vec::new();
    for case in matrix.cases.iter().filter(|case| case.origin == Origin::Embedded && case.growth.is_none()) {
        if measured.iter().any(|(collection, _)| collection.name == case.collection) {
            continue;
        }
        step(&case.collection);
        let collection = Collection::load(&workspace.path("gold").join(&case.collection), case.origin)?;
        let evaluated = engines.iter().map(|engine| {
            let evaluation = evaluate(&collection, *engine, PromptTokens::Count);
            Ok((*engine, evaluation.with_context(|| format!("{} on {}", engine.name(), case.collection))?))
        });
        let evaluated = evaluated.collect::<Result<Vec<_>>>()?;
        measured.push((collection, evaluated));
    }
    let named: Vec<String> = engines.iter().map(|engine| format!("--engine {}", engine.name())).collect();
    let command = |collection: &Collection| {
        let folder = format!("gold/{}", collection.name);
        let files = format!("--catalog {folder}/catalog.json --queries {folder}/queries.jsonl");
        format!("contextweaver bench eval {files} {}", named.join(" "))
    };
    let sections: Vec<Section<'_>> = measured
        .iter()
        .map(|one| Section {
            name: &one.0.name,
            collection: &one.0,
            ranked: one
                .1
                .iter()
                .map(|(engine, evaluation)| Ranked { engine: engine.name(), evidence: Evidence::Computed, evaluation })
                .collect(),
            command: command(&one.0),
        })
        .collect();
    Ok(render("contextweaver, measured", &sections, &pictures(workspace)?)?)
}

/// The pictures of the committed records, by page of the scorecard.
fn pictures(workspace: &Workspace) -> Result<Vec<Extra>> {
    let recordings = committed(workspace, &workspace.matrix()?)?;
    let tables = Tables::read(workspace)?;
    let mut extras = Vec::new();
    for chapter in CHAPTERS {
        let mut document = Document::default();
        chapter.render(&recordings, &tables, &mut document)?;
        extras.extend(document.into_leaves().into_iter().filter(|leaf| !leaf.figures.is_empty()).map(|leaf| Extra {
            title: leaf.title,
            reading: "From the committed records, which `contextweaver bench check` computes again; scorecard/ has the tables."
                .to_owned(),
            evidence: Evidence::Recorded,
            table: None,
            figures: leaf.figures,
            command: "contextweaver bench render".to_owned(),
        }));
    }
    Ok(extras)
}
