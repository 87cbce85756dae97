//! `scorecard/results/*.json`: ranks by collection, without the names of queries. The file of one of our engines has one
//! engine; that of engines by the door of others has several, of which one is asked for by name.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::super::outcomes::{ItemSet, Outcomes};
use super::{Content, one_of};
use crate::eval::ranks::Ranks;
use crate::eval::record::Growth;
use crate::eval::rival::parts;
use crate::results::{Day, Results};

/// A member that every record of an engine by the door of others has, and no other record.
const BY_THE_DOOR: &str = "order_asked";

/// What is needed of the facts: what else they have is another in other versions.
#[derive(Deserialize)]
struct Ranked {
    ranks: Ranks,
}

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "schema")]
    _schema: u32,
    #[serde(rename = "digest")]
    _digest: String,
    records: Vec<Peek>,
}

#[derive(Deserialize)]
struct Peek {
    outcome: serde_json::Value,
}

pub(super) fn read(content: &Content<'_>) -> Option<Result<Outcomes, String>> {
    let head = Head::deserialize(content.json.as_ref()?).ok()?;
    let is_by_door = |one: &Peek| one.outcome.get("measured").is_some_and(|facts| facts.get(BY_THE_DOOR).is_some());
    let results = match Results::<Ranked>::of_any_version(content.text?) {
        Ok(results) => results,
        Err(error) => return Some(Err(error.to_string())),
    };
    Some(match content.part.engine {
        engine if head.records.iter().any(is_by_door) => by_the_door(&results, engine),
        None => outcomes(&results),
        Some(engine) => Err(format!("it holds one engine; leave out `#{engine}`")),
    })
}

/// The collections as they are: grown ones ask the same queries again.
fn outcomes(results: &Results<Ranked>) -> Result<Outcomes, String> {
    results.measured().try_for_each(|(record, facts)| check(&record.case, &facts.ranks))?;
    let as_it_is = |case: &str| Growth::of_case(case).1.is_none();
    let measured = results.measured().filter(|(record, _)| as_it_is(&record.case));
    let sets = measured.map(|(record, facts)| {
        (record.case.clone(), ItemSet::in_order(&record.provenance.inputs_sha256, &facts.ranks))
    });
    let failed = results.failed().map(|(case, reason)| (case.to_owned(), reason.to_owned()));
    Ok(Outcomes { sets: sets.collect(), failed: failed.collect(), ..Outcomes::default() })
}

/// One of the engines of a file, with the days on which it was recorded.
fn by_the_door(results: &Results<Ranked>, asked: Option<&str>) -> Result<Outcomes, String> {
    let engines: BTreeSet<&str> = results.records.iter().map(|record| parts(&record.case).0).collect();
    let engine = one_of(&engines.into_iter().collect::<Vec<_>>(), asked)?;
    results.measured().try_for_each(|(record, facts)| check(&record.case, &facts.ranks))?;
    let own =
        |case: &str| Some(parts(case)).filter(|(name, _)| *name == engine).map(|(_, collection)| collection.to_owned());
    let sets = results.measured().filter_map(|(record, facts)| {
        Some((own(&record.case)?, ItemSet::in_order(&record.provenance.inputs_sha256, &facts.ranks)))
    });
    let failed = results.failed().filter_map(|(case, reason)| Some((own(case)?, reason.to_owned())));
    let days: BTreeSet<&Day> = results
        .records
        .iter()
        .filter(|record| own(&record.case).is_some())
        .map(|record| &record.provenance.recorded)
        .collect();
    let recorded = match (days.first(), days.last()) {
        (Some(first), Some(last)) if first != last => format!("{engine} (recorded {first} to {last})"),
        (Some(day), _) => format!("{engine} (recorded {day})"),
        _ => engine.to_owned(),
    };
    let (sets, failed) = (sets.collect(), failed.collect());
    Ok(Outcomes { name: recorded, sets, failed, is_recorded: true, ..Outcomes::default() })
}

/// Refuses a rank that cannot be.
fn check(case: &str, ranks: &Ranks) -> Result<(), String> {
    match ranks.iter().position(|ranks| ranks.contains(&Some(0))) {
        Some(at) => Err(format!("record `{case}`: a rank of answerable query {} is 0, and ranks count from 1", at + 1)),
        None => Ok(()),
    }
}
