//! The files in `scorecard/results/`: what was measured, by what, when, and whether the run that wrote the file did it.
//!
//! One type for every chapter. A file has one record a line and a digest of its own content; it is read strictly, so
//! that nothing but what [`Results::to_json`] writes is taken for a recording. Comparing two of them is in
//! [`compare`]; nothing here knows what the facts mean.

pub mod compare;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::eval::day::{Day, ParseDayError};
use crate::eval::record::{Origin, Outcome};
use contextweaver_core::text::sha256_hex;

/// The number of the format; a file with another number is refused.
pub const SCHEMA: u32 = 2;

/// The content of one results file. `F` are the facts of its chapter; with [`Value`] they are not looked into.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Results<F = Value> {
    /// The name of the file without its ending: the engine, or the chapter where engines are not compared.
    pub name: String,
    /// The configuration that was measured, as text that a person can read.
    pub configuration: String,
    /// The version of what is measured, as it was when the file was written. A record of another version is stale.
    pub version: String,
    /// In ascending order of their cases, without repeats.
    pub records: Vec<Record<F>>,
}

/// What was measured on one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record<F = Value> {
    /// What tells the records of a file apart, e.g. `workbench` or `workbench/mixed@1000`.
    pub case: String,
    /// Who wrote the inputs, and with it whether a checkout alone can measure them.
    pub origin: Origin,
    /// Where the record comes from.
    pub provenance: Provenance,
    /// What was measured, or why nothing could be.
    pub outcome: Outcome<F>,
}

/// Where a record comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Whether the run that wrote the file computed it.
    pub state: State,
    /// The version of what made it: equal versions give equal facts on equal inputs.
    pub version: String,
    /// SHA-256 (hex) of everything that was read to compute it.
    pub inputs_sha256: String,
    /// The day on which these facts were first recorded by this version from these inputs.
    pub recorded: Day,
}

/// The days on which records were made, as a sentence names them: the first and the last, or that there is none.
pub(crate) fn days<'r, F: 'r>(records: impl IntoIterator<Item = &'r Record<F>>) -> String {
    let days: BTreeSet<String> = records.into_iter().map(|record| record.provenance.recorded.to_string()).collect();
    match (days.first(), days.last()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(day), _) => day.clone(),
        _ => "never".to_owned(),
    }
}

/// Whether the run that wrote a file computed a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The run computed it.
    Computed,
    /// The run could not compute it, and kept the record of an earlier one.
    Kept,
}

/// A results file is not what this version writes. Every message says how to repair the file.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// Not JSON, or with unknown or missing fields.
    #[error("not a results file: {0}; {REPAIR}")]
    Malformed(#[from] serde_json::Error),
    /// A number of the format that this version does not read.
    #[error("it has results format {0}, but this version reads {SCHEMA}; {REPAIR}")]
    Schema(u32),
    /// The results of something else.
    #[error("it holds the results of `{0}`; {REPAIR}")]
    Name(String),
    /// A case occurs twice, or out of order.
    #[error("case `{0}` is out of order or occurs twice; {REPAIR}")]
    Repeated(String),
    /// The content is not what the digest was taken of.
    #[error("its digest does not match its content: the file was changed by hand; {REPAIR}")]
    Digest,
}

/// How a results file is repaired.
pub const REPAIR: &str = "restore it with `git checkout`, or write it again with `contextweaver bench run --all`";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<F> {
    #[serde(rename = "schema")]
    _schema: u32,
    name: String,
    configuration: String,
    version: String,
    digest: String,
    records: Vec<Record<F>>,
}

impl<F: Serialize> Results<F> {
    /// Puts records together, in the order of their cases.
    #[must_use]
    pub fn new(name: &str, configuration: &str, version: &str, mut records: Vec<Record<F>>) -> Self {
        records.sort_by(|left, right| left.case.cmp(&right.case));
        let [name, configuration, version] = [name, configuration, version].map(str::to_owned);
        Self { name, configuration, version, records }
    }

    /// The bytes of the file: JSON with one record a line, keys in the order of the types, LF. The member `digest` is the
    /// SHA-256 (hex) of these bytes with the member itself empty.
    ///
    /// # Errors
    /// A number that JSON cannot hold.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let digest = sha256_hex(self.lines("")?.as_bytes());
        self.lines(&digest)
    }

    fn lines(&self, digest: &str) -> Result<String, serde_json::Error> {
        let head = serde_json::json!({
            "schema": SCHEMA,
            "name": self.name,
            "configuration": self.configuration,
            "version": self.version,
            "digest": digest,
        });
        let head = serde_json::to_string(&head)?;
        let mut text = format!("{},\"records\":[", head.trim_end_matches('}'));
        for (number, record) in self.records.iter().enumerate() {
            let separator = if number == 0 { "\n" } else { ",\n" };
            let _ = write!(text, "{separator}{}", serde_json::to_string(record)?);
        }
        text.push_str("\n]}\n");
        Ok(text)
    }

    /// The same without knowledge of the facts.
    ///
    /// # Errors
    /// A number that JSON cannot hold.
    pub fn erased(&self) -> Result<Results, serde_json::Error> {
        let record = |record: &Record<F>| Ok(record.with(record.outcome.as_ref().try_map(serde_json::to_value)?));
        Ok(self.with(self.records.iter().map(record).collect::<Result<_, serde_json::Error>>()?))
    }
}

impl<F: Serialize + DeserializeOwned> Results<F> {
    /// Reads the file of the results called `name`.
    ///
    /// # Errors
    /// [`ResultsError`]: anything but what [`Results::to_json`] writes for these results.
    pub fn from_json(name: &str, text: &str) -> Result<Self, ResultsError> {
        #[derive(Deserialize)]
        struct Head {
            schema: u32,
        }
        let Head { schema } = serde_json::from_str(text)?;
        if schema != SCHEMA {
            return Err(ResultsError::Schema(schema));
        }
        let file: File<F> = serde_json::from_str(text)?;
        if file.name != name {
            return Err(ResultsError::Name(file.name));
        }
        if let Some(pair) = file.records.windows(2).find(|pair| pair[0].case >= pair[1].case) {
            return Err(ResultsError::Repeated(pair[1].case.clone()));
        }
        let File { name, configuration, version, digest, records, .. } = file;
        let results = Self { name, configuration, version, records };
        // The bytes themselves are compared, so that a file cannot say one thing to this program and another to a reader.
        if results.lines(&digest)? == text && sha256_hex(results.lines("")?.as_bytes()) == digest {
            Ok(results)
        } else {
            Err(ResultsError::Digest)
        }
    }
}

impl<F: DeserializeOwned> Results<F> {
    /// Reads a file of these results that another version of this program may have written: `F` has what is needed of its
    /// facts. That nobody changed it is told by its digest alone.
    ///
    /// # Errors
    /// [`ResultsError`]: another format, without a member of `F`, or changed by hand.
    pub fn of_any_version(text: &str) -> Result<Self, ResultsError> {
        let File { name, configuration, version, digest, records, .. } = serde_json::from_str(text)?;
        let bare = text.replacen(&format!("\"digest\":\"{digest}\""), "\"digest\":\"\"", 1);
        if sha256_hex(bare.as_bytes()) == digest {
            Ok(Self { name, configuration, version, records })
        } else {
            Err(ResultsError::Digest)
        }
    }
}

impl<F> Results<F> {
    /// The same with what `pick` takes of the facts; records of which it takes nothing are left out.
    #[must_use]
    pub fn picked<G>(&self, pick: impl Fn(&F) -> Option<G>) -> Results<G> {
        let record = |record: &Record<F>| {
            let outcome = record.outcome.as_ref().try_map(|facts| pick(facts).ok_or(()));
            Some(record.with(outcome.ok()?))
        };
        self.with(self.records.iter().filter_map(record).collect())
    }

    /// The same with other records.
    fn with<G>(&self, records: Vec<Record<G>>) -> Results<G> {
        let [name, configuration, version] = [&self.name, &self.configuration, &self.version].map(String::clone);
        Results { name, configuration, version, records }
    }

    /// The cases on which something was measured, with that.
    pub fn measured(&self) -> impl Iterator<Item = (&Record<F>, &F)> {
        self.records.iter().filter_map(|record| match &record.outcome {
            Outcome::Measured(facts) => Some((record, facts)),
            Outcome::Failed(_) => None,
        })
    }

    /// The other cases, with the reason.
    pub fn failed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.records.iter().filter_map(|record| match &record.outcome {
            Outcome::Measured(_) => None,
            Outcome::Failed(message) => Some((record.case.as_str(), message.as_str())),
        })
    }

    /// Whether the record is of another version than what is measured now.
    #[must_use]
    pub fn is_stale(&self, record: &Record<F>) -> bool {
        record.provenance.version != self.version
    }

    /// What stands behind figures of this record on a page: nothing for those that the run computed.
    #[must_use]
    pub fn mark(&self, record: &Record<F>) -> &'static str {
        match record.provenance.state {
            _ if self.is_stale(record) => STALE,
            State::Kept => KEPT,
            State::Computed => "",
        }
    }

    /// What stands behind a figure of all records: that of the one that says most against it.
    #[must_use]
    pub fn worst_mark(&self) -> &'static str {
        worst(self.records.iter().map(|record| self.mark(record)))
    }

    /// The case of a record with its [`Self::mark`].
    #[must_use]
    pub fn label(&self, record: &Record<F>) -> String {
        format!("{}{}", record.case, self.mark(record))
    }
}

/// Stands behind figures that the run which wrote the page did not compute.
pub const KEPT: &str = " †";

/// Stands behind figures that another version of the engine gave.
pub const STALE: &str = " ‡";

/// Of several marks the one that says most against a figure that all of them stand behind.
pub fn worst(marks: impl IntoIterator<Item = &'static str>) -> &'static str {
    let marks: Vec<&str> = marks.into_iter().collect();
    [STALE, KEPT].into_iter().find(|mark| marks.contains(mark)).unwrap_or("")
}

impl<F> Record<F> {
    /// The same with another outcome.
    fn with<G>(&self, outcome: Outcome<G>) -> Record<G> {
        Record { case: self.case.clone(), origin: self.origin, provenance: self.provenance.clone(), outcome }
    }
}

impl Results {
    /// The same with facts of a known type.
    ///
    /// # Errors
    /// Facts of another shape.
    pub fn typed<F: DeserializeOwned>(&self) -> Result<Results<F>, serde_json::Error> {
        let record = |record: &Record| Ok(record.with(record.outcome.as_ref().try_map(F::deserialize)?));
        Ok(self.with(self.records.iter().map(record).collect::<Result<_, serde_json::Error>>()?))
    }
}

/// Results of computed records, for tests.
#[cfg(test)]
pub(crate) fn recorded<F: Serialize>(name: &str, outcomes: Vec<(&str, Outcome<F>)>) -> Results<F> {
    let provenance = Provenance {
        state: State::Computed,
        version: "1".to_owned(),
        inputs_sha256: "0".repeat(64),
        recorded: Day::try_from("2026-01-31".to_owned()).unwrap(),
    };
    let record = |(case, outcome): (&str, Outcome<F>)| {
        let (case, provenance) = (case.to_owned(), provenance.clone());
        Record { case, origin: Origin::Public, provenance, outcome }
    };
    Results::new(name, "", "1", outcomes.into_iter().map(record).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Shot {
        hits: u32,
    }

    fn record(case: &str, state: State, version: &str, outcome: Outcome<Shot>) -> Record<Shot> {
        let provenance = Provenance {
            state,
            version: version.to_owned(),
            inputs_sha256: "ab".to_owned(),
            recorded: Day::try_from("2026-01-31".to_owned()).unwrap(),
        };
        Record { case: case.to_owned(), origin: Origin::Embedded, provenance, outcome }
    }

    fn shots() -> Results<Shot> {
        let records = vec![
            record("b", State::Kept, "2", Outcome::Failed("rain".to_owned())),
            record("a", State::Computed, "2", Outcome::Measured(Shot { hits: 1 })),
        ];
        Results::new("shots", "top_k = 10\n", "2", records)
    }

    #[test]
    fn a_file_is_in_order_and_reads_the_same() {
        let text = shots().to_json().unwrap();
        insta::assert_snapshot!(text, @r#"
        {"schema":2,"name":"shots","configuration":"top_k = 10\n","version":"2","digest":"f82833c1c2a037628d9db3979564614bd9bca2b47c2c1cc7a85f65a00cc018ee","records":[
        {"case":"a","origin":"embedded","provenance":{"state":"computed","version":"2","inputs_sha256":"ab","recorded":"2026-01-31"},"outcome":{"measured":{"hits":1}}},
        {"case":"b","origin":"embedded","provenance":{"state":"kept","version":"2","inputs_sha256":"ab","recorded":"2026-01-31"},"outcome":{"failed":"rain"}}
        ]}
        "#);
        assert_eq!(Results::from_json("shots", &text).unwrap(), shots());
        assert_eq!(shots().erased().unwrap().to_json().unwrap(), text);
        assert_eq!(shots().erased().unwrap().typed::<Shot>().unwrap(), shots());
    }

    #[test]
    fn whatever_else_a_file_says_is_refused_with_the_repair() {
        let text = shots().to_json().unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let cases = [
            ("unknown field", text.replace("\"hits\":1", "\"hits\":1,\"misses\":2")),
            ("missing field", text.replace("\"origin\":\"embedded\",", "")),
            ("torn line", text[..text.len() - 20].to_owned()),
            ("other format", text.replace("\"schema\":2", "\"schema\":1")),
            ("other results", text.replace("\"shots\"", "\"slots\"")),
            ("no day", text.replace("2026-01-31", "2026-02-31")),
            (
                "out of order",
                [lines[0], &format!("{},", lines[2]), lines[1].trim_end_matches(','), lines[3]].join("\n"),
            ),
            ("a forged fact", text.replace("\"hits\":1", "\"hits\":9")),
            ("a forged digest", text.replace("\"digest\":\"", "\"digest\":\"0")),
            ("a space", text.replace("\"hits\":1", "\"hits\": 1")),
        ];
        for (name, forged) in cases {
            assert_ne!(forged, text, "{name}");
            let error = Results::<Shot>::from_json("shots", &forged).unwrap_err().to_string();
            assert!(error.contains("git checkout") && error.contains("bench run --all"), "{name}: {error}");
        }
    }

    #[test]
    fn a_file_of_another_version_says_what_is_asked_of_it() {
        #[derive(Debug, Deserialize)]
        struct Hits {
            hits: u32,
        }
        let text = shots().to_json().unwrap().replace("\"hits\":1", "\"hits\":1,\"misses\":2");
        assert!(matches!(Results::<Hits>::of_any_version(&text), Err(ResultsError::Digest)), "changed by hand");
        let digest = text.split("\"digest\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        let bare = text.replace(digest, "");
        let other = text.replace(digest, &sha256_hex(bare.as_bytes()));
        assert!(Results::<Shot>::from_json("shots", &other).is_err(), "this version has no misses");
        let read = Results::<Hits>::of_any_version(&other).unwrap();
        assert_eq!(read.measured().map(|(_, facts)| facts.hits).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn records_that_the_run_did_not_compute_are_marked() {
        let mut shots = shots();
        let labels =
            |shots: &Results<Shot>| -> Vec<String> { shots.records.iter().map(|record| shots.label(record)).collect() };
        assert_eq!(labels(&shots), ["a", "b †"]);
        assert_eq!(shots.worst_mark(), KEPT);
        shots.version = "3".to_owned();
        assert_eq!((shots.worst_mark(), worst([]), worst(["", KEPT, STALE, KEPT])), (STALE, "", STALE));
        assert_eq!(labels(&shots), ["a ‡", "b ‡"]);
    }
}
