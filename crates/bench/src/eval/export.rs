//! An evaluation as files that other tools read: runs, judgements, and our measures beside them.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;

use super::collection::Collection;
use super::measure::Judgement;
use super::record::Estimate;
use super::run::Evaluation;

use super::trec::{Ranked, View, write_qrels, write_run, write_tab_run};

/// The ranking of every query, exactly as it was measured: `query_id<TAB>rank<TAB>tool<TAB>score<TAB>id`. `tool` is the
/// name by which a queries file names the tool, with its server where the name alone would be ambiguous; `id` is the id
/// in the catalog. A query for which nothing was found has no line.
///
/// # Errors
/// A query id or tool name that would break its line.
pub fn tab_run(collection: &Collection, evaluation: &Evaluation) -> io::Result<Vec<u8>> {
    let judgements = judgements(collection);
    let ranked = ranked(collection, evaluation, &judgements);
    let id_of = |item: u32| collection.catalog.items().get(item as usize).map_or("", |item| item.id.as_str());
    let mut bytes = Vec::new();
    write_tab_run(&mut bytes, &ranked, &name_of(collection), &id_of)?;
    Ok(bytes)
}

/// The names of the files of a TREC export.
pub const TREC_FILES: [&str; 5] = ["qrels", "run", "qrels.strict", "run.strict", "measures.json"];

/// The files of a TREC export by name: `qrels` and `run`, the same in the strict view, and `measures.json` with our
/// means for `scripts/cross-check-measures`.
///
/// # Errors
/// Never in practice: the bytes go to memory.
pub fn trec(collection: &Collection, evaluation: &Evaluation) -> io::Result<Vec<(&'static str, Vec<u8>)>> {
    #[derive(Serialize)]
    struct Measures {
        aware: BTreeMap<String, f64>,
        strict: BTreeMap<String, f64>,
    }
    let means = |estimates: &BTreeMap<String, Estimate>| {
        estimates.iter().map(|(name, estimate)| (name.clone(), estimate.mean)).collect()
    };
    let measures = Measures { aware: means(&evaluation.facts.measures), strict: means(&evaluation.facts.strict) };
    let judgements = judgements(collection);
    let ranked = ranked(collection, evaluation, &judgements);
    let name = name_of(collection);
    let mut files = Vec::new();
    let [aware_qrels, aware_run, strict_qrels, strict_run, means_of] = TREC_FILES;
    for (view, qrels, run) in [(View::Aware, aware_qrels, aware_run), (View::Strict, strict_qrels, strict_run)] {
        let (mut judged, mut ranking) = (Vec::new(), Vec::new());
        write_qrels(&mut judged, &ranked, &name, view)?;
        write_run(&mut ranking, &ranked, &name, view, "contextweaver")?;
        files.extend([(qrels, judged), (run, ranking)]);
    }
    files.push((means_of, serde_json::to_vec_pretty(&measures)?));
    Ok(files)
}

fn judgements(collection: &Collection) -> Vec<Judgement> {
    collection.queries.iter().map(|query| Judgement { groups: query.groups.clone() }).collect()
}

fn ranked<'a>(collection: &'a Collection, evaluation: &'a Evaluation, judgements: &'a [Judgement]) -> Vec<Ranked<'a>> {
    let queries = collection.queries.iter().zip(judgements).zip(&evaluation.rankings);
    queries
        .map(|((query, judgement), ranking)| Ranked { query: &query.id, judgement, ranking: &ranking.hits })
        .collect()
}

fn name_of(collection: &Collection) -> impl Fn(u32) -> String + '_ {
    |item| collection.tool_handle(item).to_owned()
}
