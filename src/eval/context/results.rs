//! The rows of scenarios that cannot be run here.

use super::record::{ContextRecord, ContextResults};
use super::scenario::Scenario;
use crate::eval::results::ChapterRecord;

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
        None => Some(format!("{} · {}: no committed row", ContextRecord::NAME, scenario.name)),
        Some(record) if record.engine_version != version => Some(format!(
            "{} · {}: the row is of version {}, the engine here is {version}",
            ContextRecord::NAME,
            scenario.name,
            record.engine_version
        )),
        Some(_) => None,
    };
    scenarios.iter().filter(|scenario| !ran(scenario)).filter_map(wrong).collect()
}
