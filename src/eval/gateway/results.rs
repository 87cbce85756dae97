//! The results file of the gateway chapter: written with one record a line, read strictly, compared fact by fact.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::record::{GATEWAY_SCHEMA, GatewayRecord, GatewayResults};
use crate::eval::record::Origin;
use crate::eval::results::{Difference, ResultsError, Side, compared, lines};

/// The name under which differences are reported, and of the file without its ending.
pub const NAME: &str = "gateway";

/// The bytes of the file: JSON with one record a line, keys in the order of the types, LF.
///
/// # Errors
/// Never for values made by this crate; a number that JSON cannot hold would be refused.
pub fn to_json(results: &GatewayResults) -> Result<String, serde_json::Error> {
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
pub fn from_json(text: &str) -> Result<GatewayResults, ResultsError> {
    let results: GatewayResults = serde_json::from_str(text)?;
    if results.schema != GATEWAY_SCHEMA {
        return Err(ResultsError::Schema(results.schema));
    }
    match results.records.windows(2).find(|pair| pair[0].case >= pair[1].case) {
        Some(pair) => Err(ResultsError::Repeated(pair[1].case.clone())),
        None => Ok(results),
    }
}

/// Every fact in which two results differ.
///
/// # Errors
/// A number that JSON cannot hold.
pub fn differences(
    committed: &GatewayResults,
    computed: &GatewayResults,
) -> Result<Vec<Difference>, serde_json::Error> {
    let side = |results: &'_ GatewayResults| -> Result<BTreeMap<String, Value>, serde_json::Error> {
        let row = |record: &GatewayRecord| Ok((record.case.clone(), serde_json::to_value(record)?));
        results.records.iter().map(row).collect()
    };
    let left = Side { configuration: &committed.configuration, rows: side(committed)? };
    let right = Side { configuration: &computed.configuration, rows: side(computed)? };
    Ok(compared(NAME, left, right))
}

/// The committed records of public cases of which nothing is on this machine: which there are is known from their
/// folder alone, so the kinds (`surface`, `session`) of `absent` folders are kept whole.
#[must_use]
pub fn kept_records(absent: &[&str], committed: Option<&GatewayResults>) -> Vec<GatewayRecord> {
    let kept = |record: &&GatewayRecord| {
        record.origin == Origin::Public && absent.contains(&record.case.split('/').next().unwrap_or_default())
    };
    committed.into_iter().flat_map(|results| &results.records).filter(kept).cloned().collect()
}

/// What is wrong with the rows that cannot be computed here: each must be made by this `version`.
#[must_use]
pub fn wrong_rows(absent: &[&str], committed: Option<&GatewayResults>, version: &str) -> Vec<String> {
    let kept = kept_records(absent, committed).into_iter().filter(|record| record.gateway_version != version);
    let wrong = kept.map(|GatewayRecord { case, gateway_version, .. }| {
        format!("{NAME} · {case}: the row is of version {gateway_version}, the gateway here is {version}")
    });
    wrong.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::gateway::record::GatewayOutcome;

    fn record(case: &str, origin: Origin, version: &str) -> GatewayRecord {
        GatewayRecord {
            case: case.to_owned(),
            origin,
            gateway_version: version.to_owned(),
            inputs_sha256: String::new(),
            outcome: GatewayOutcome::Failed("why".to_owned()),
        }
    }

    fn results() -> GatewayResults {
        let records = vec![
            record("scenario/a", Origin::Embedded, "1"),
            record("session/a", Origin::Public, "1"),
            record("surface/a", Origin::Public, "1"),
        ];
        GatewayResults { schema: GATEWAY_SCHEMA, configuration: "top_k = 10\n".to_owned(), records }
    }

    #[test]
    fn what_is_written_reads_the_same_and_disorder_is_refused() {
        let text = to_json(&results()).unwrap();
        assert_eq!(text.lines().count(), results().records.len() + 2);
        assert_eq!(from_json(&text).unwrap(), results());
        assert!(from_json(&text.replace("\"schema\":1", "\"schema\":2")).is_err());
        assert!(from_json(&text.replace("scenario/a", "z")).is_err());
        assert!(from_json(&text.replace("\"case\"", "\"cases\"")).is_err());
    }

    #[test]
    fn a_changed_fact_is_named_with_its_case() {
        let mut other = results();
        other.records[1].inputs_sha256 = "x".to_owned();
        let found = differences(&results(), &other).unwrap();
        assert_eq!((found.len(), found[0].case.as_str(), found[0].fact.as_str()), (1, "session/a", "inputs_sha256"));
    }

    #[test]
    fn rows_of_absent_folders_are_kept_and_must_be_of_this_version() {
        let committed = results();
        let kept: Vec<String> = kept_records(&["session"], Some(&committed)).into_iter().map(|one| one.case).collect();
        assert_eq!(kept, ["session/a"]);
        assert_eq!(wrong_rows(&["session"], Some(&committed), "1"), Vec::<String>::new());
        assert!(wrong_rows(&["session"], Some(&committed), "2")[0].contains("of version 1, the gateway here is 2"));
        assert_eq!(wrong_rows(&[], Some(&committed), "2"), Vec::<String>::new());
    }
}
