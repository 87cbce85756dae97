//! The rows of cases that cannot be run here.

use super::record::{GatewayRecord, GatewayResults};
use crate::eval::record::Origin;
use crate::eval::results::ChapterRecord;

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
        let chapter = GatewayRecord::NAME;
        format!("{chapter} · {case}: the row is of version {gateway_version}, the gateway here is {version}")
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
        GatewayResults::new("top_k = 10\n".to_owned(), records)
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
