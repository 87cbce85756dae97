//! The results file of the context scenarios: written with one record a line, read strictly, compared fact by fact.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::record::{CONTEXT_SCHEMA, ContextRecord, ContextResults};
use super::scenario::Scenario;
use crate::eval::results::{Difference, ResultsError, Side, compared, lines};

/// The name under which differences are reported, and of the file without its ending.
pub const NAME: &str = "context";

/// The bytes of the file: JSON with one record a line, keys in the order of the types, LF.
///
/// # Errors
/// Never for values made by this crate; a number that JSON cannot hold would be refused.
pub fn to_json(results: &ContextResults) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Head<'a> {
        schema: u32,
        configuration: &'a str,
    }
    lines(&Head { schema: results.schema, configuration: &results.configuration }, &results.records)
}

/// Reads the file.
///
/// # Errors
/// Not JSON, of another format, or with records out of order.
pub fn from_json(text: &str) -> Result<ContextResults, ResultsError> {
    let results: ContextResults = serde_json::from_str(text)?;
    if results.schema != CONTEXT_SCHEMA {
        return Err(ResultsError::Schema(results.schema));
    }
    match results.records.windows(2).find(|pair| pair[0].scenario >= pair[1].scenario) {
        Some(pair) => Err(ResultsError::Repeated(pair[1].scenario.clone())),
        None => Ok(results),
    }
}

/// Every fact in which two results differ.
///
/// # Errors
/// A number that JSON cannot hold.
pub fn differences(
    committed: &ContextResults,
    computed: &ContextResults,
) -> Result<Vec<Difference>, serde_json::Error> {
    let side = |results: &'_ ContextResults| -> Result<BTreeMap<String, Value>, serde_json::Error> {
        let row = |record: &ContextRecord| Ok((record.scenario.clone(), serde_json::to_value(record)?));
        results.records.iter().map(row).collect()
    };
    let left = Side { configuration: &committed.configuration, rows: side(committed)? };
    let right = Side { configuration: &computed.configuration, rows: side(computed)? };
    Ok(compared(NAME, left, right))
}

/// The committed records of scenarios that were not run again, where they still exist.
#[must_use]
pub fn kept_records(
    scenarios: &[Scenario],
    committed: Option<&ContextResults>,
    ran: impl Fn(&Scenario) -> bool,
) -> Vec<ContextRecord> {
    let wanted =
        |record: &&ContextRecord| scenarios.iter().any(|scenario| scenario.name == record.scenario && !ran(scenario));
    committed.into_iter().flat_map(|results| &results.records).filter(wanted).cloned().collect()
}

/// What is wrong with the rows that cannot be computed here: each scenario must have one, made by this `version`.
#[must_use]
pub fn wrong_rows(
    scenarios: &[Scenario],
    committed: Option<&ContextResults>,
    version: &str,
    ran: impl Fn(&Scenario) -> bool,
) -> Vec<String> {
    let records = committed.map(|results| results.records.as_slice()).unwrap_or_default();
    let wrong = |scenario: &Scenario| match records.iter().find(|record| record.scenario == scenario.name) {
        None => Some(format!("{NAME} · {}: no committed row", scenario.name)),
        Some(record) if record.engine_version != version => Some(format!(
            "{NAME} · {}: the row is of version {}, the engine here is {version}",
            scenario.name, record.engine_version
        )),
        Some(_) => None,
    };
    scenarios.iter().filter(|scenario| !ran(scenario)).filter_map(wrong).collect()
}
