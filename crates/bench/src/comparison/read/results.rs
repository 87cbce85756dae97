//! `scorecard/results/*.json` of an engine: ranks by collection, without the names of queries.

use serde::Deserialize;

use super::super::outcomes::{ItemSet, Outcomes};
use super::Content;
use crate::eval::record::{Facts, Growth};
use crate::results::Results;

#[derive(Deserialize)]
struct Head {
    name: String,
    #[serde(rename = "schema")]
    _schema: u32,
    #[serde(rename = "digest")]
    _digest: String,
}

pub(super) fn read(content: &Content<'_>) -> Option<Result<Outcomes, String>> {
    let head = Head::deserialize(content.json.as_ref()?).ok()?;
    let results = Results::<Box<Facts>>::from_json(&head.name, content.text?);
    Some(results.map(|results| outcomes(&results)).map_err(|error| error.to_string()))
}

/// The collections as they are: grown ones ask the same queries again.
fn outcomes(results: &Results<Box<Facts>>) -> Outcomes {
    let as_it_is = |case: &str| Growth::of_case(case).1.is_none();
    let measured = results.measured().filter(|(record, _)| as_it_is(&record.case));
    let sets = measured.map(|(record, facts)| {
        (record.case.clone(), ItemSet::in_order(&record.provenance.inputs_sha256, &facts.ranks))
    });
    let failed = results.failed().map(|(case, reason)| (case.to_owned(), reason.to_owned()));
    Outcomes { sets: sets.collect(), failed: failed.collect(), ..Outcomes::default() }
}
