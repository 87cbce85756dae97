//! Results files: written with one record a line, read strictly, compared fact by fact.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::record::{RESULTS_SCHEMA, Results};

/// A results file is not what this version writes.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// Not JSON, or with unknown or missing fields.
    #[error("not a results file: {0}; restore it or delete it, then `contextweaver bench run`")]
    Malformed(#[from] serde_json::Error),
    /// Another format.
    #[error("results format {0}, this version reads {RESULTS_SCHEMA}; delete it, then `contextweaver bench run`")]
    Schema(u32),
    /// A case occurs twice.
    #[error("case `{0}` is out of order or occurs twice; restore it or delete it, then `contextweaver bench run`")]
    Repeated(String),
}

/// The bytes of a results file: JSON with one record a line, keys in the order of the types, LF.
///
/// # Errors
/// Never for values made by this crate; a number that JSON cannot hold would be refused.
pub fn to_json(results: &Results) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Head<'a> {
        schema: u32,
        engine: &'a str,
        configuration: &'a str,
    }
    lines(
        &Head { schema: results.schema, engine: &results.engine, configuration: &results.configuration },
        &results.records,
    )
}

/// One record of a chapter's results.
pub trait ChapterRecord: Serialize + DeserializeOwned {
    /// The chapter: the name under which differences are reported, and of its file without the ending.
    const NAME: &'static str;
    /// The number of the format; a file with another number is refused.
    const SCHEMA: u32;

    /// What tells the records of a file apart.
    fn case(&self) -> &str;
}

/// The results of a chapter that is not about engines: the content of one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chapter<R> {
    /// [`ChapterRecord::SCHEMA`].
    schema: u32,
    /// The configuration that was measured, as text that a person can read.
    pub configuration: String,
    /// In ascending order of their cases, without repeats.
    pub records: Vec<R>,
}

impl<R: ChapterRecord> Chapter<R> {
    /// Puts records together, in the order of their cases.
    #[must_use]
    pub fn new(configuration: String, mut records: Vec<R>) -> Self {
        records.sort_by(|left, right| left.case().cmp(right.case()));
        Self { schema: R::SCHEMA, configuration, records }
    }

    /// The bytes of the file: JSON with one record a line, keys in the order of the types, LF.
    ///
    /// # Errors
    /// Never for values made by this crate; a number that JSON cannot hold would be refused.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        #[derive(Serialize)]
        struct Head<'a> {
            schema: u32,
            configuration: &'a str,
        }
        lines(&Head { schema: self.schema, configuration: &self.configuration }, &self.records)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Not JSON, of another format, or with records out of order.
    pub fn from_json(text: &str) -> Result<Self, ResultsError> {
        let results: Self = serde_json::from_str(text)?;
        if results.schema != R::SCHEMA {
            return Err(ResultsError::Schema(results.schema));
        }
        match results.records.windows(2).find(|pair| pair[0].case() >= pair[1].case()) {
            Some(pair) => Err(ResultsError::Repeated(pair[1].case().to_owned())),
            None => Ok(results),
        }
    }

    /// Every fact in which what was `committed` differs from what was computed.
    ///
    /// # Errors
    /// A number that JSON cannot hold.
    pub fn differences(&self, committed: &Self) -> Result<Vec<Difference>, serde_json::Error> {
        Ok(compared(R::NAME, committed.side()?, self.side()?))
    }

    fn side(&self) -> Result<Side<'_>, serde_json::Error> {
        let row = |record: &R| Ok((record.case().to_owned(), serde_json::to_value(record)?));
        let rows: Result<_, serde_json::Error> = self.records.iter().map(row).collect();
        Ok(Side { configuration: &self.configuration, rows: rows? })
    }
}

/// `head` (an object with members) with `records`, one a line.
fn lines(head: &impl Serialize, records: &[impl Serialize]) -> Result<String, serde_json::Error> {
    let head = serde_json::to_string(head)?;
    let mut text = format!("{},\"records\":[", head.trim_end_matches('}'));
    for (number, record) in records.iter().enumerate() {
        let separator = if number == 0 { "\n" } else { ",\n" };
        let _ = write!(text, "{separator}{}", serde_json::to_string(record)?);
    }
    text.push_str("\n]}\n");
    Ok(text)
}

/// Reads a results file.
///
/// # Errors
/// [`ResultsError`].
pub fn from_json(text: &str) -> Result<Results, ResultsError> {
    let results: Results = serde_json::from_str(text)?;
    if results.schema != RESULTS_SCHEMA {
        return Err(ResultsError::Schema(results.schema));
    }
    let repeated = results.records.windows(2).find(|pair| pair[0].case >= pair[1].case);
    match repeated {
        Some(pair) => Err(ResultsError::Repeated(pair[1].case.clone())),
        None => Ok(results),
    }
}

/// One fact that is not what the file says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The engine.
    pub engine: String,
    /// The case, or empty for the file as a whole.
    pub case: String,
    /// The fact, as the path of keys that leads to it; empty for the whole record.
    pub fact: String,
    /// What the file says; `None` when it has no such fact.
    pub committed: Option<Value>,
    /// What the code produces; `None` when it produces no such fact.
    pub computed: Option<Value>,
}

/// Every fact in which two results of one engine differ: in the order of the records and keys.
///
/// # Errors
/// A number that JSON cannot hold.
pub fn differences(committed: &Results, computed: &Results) -> Result<Vec<Difference>, serde_json::Error> {
    let engine = &computed.engine;
    let rows = |results: &Results| {
        let row = |record: &super::record::Record| Ok((record.case.clone(), serde_json::to_value(record)?));
        results.records.iter().map(row).collect::<Result<_, serde_json::Error>>()
    };
    let (committed, computed) = (
        Side { configuration: &committed.configuration, rows: rows(committed)? },
        Side { configuration: &computed.configuration, rows: rows(computed)? },
    );
    Ok(compared(engine, committed, computed))
}

/// One of two files that are compared: its configuration, and its records by case.
struct Side<'a> {
    configuration: &'a str,
    rows: BTreeMap<String, Value>,
}

/// Every line of the configurations and every fact of the records in which the sides differ.
fn compared(engine: &str, mut committed: Side, mut computed: Side) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut push = |case: &str, fact: &str, committed: Option<Value>, computed: Option<Value>| {
        let (case, fact) = (case.to_owned(), fact.to_owned());
        found.push(Difference { engine: engine.to_owned(), case, fact, committed, computed });
    };
    for (fact, left, right) in configuration_lines(committed.configuration, computed.configuration) {
        push("", &fact, left, right);
    }
    let mut cases: Vec<String> = committed.rows.keys().chain(computed.rows.keys()).cloned().collect();
    cases.sort_unstable();
    cases.dedup();
    for case in cases {
        let (left, right) = (committed.rows.remove(&case), computed.rows.remove(&case));
        walk("", left, right, &mut |fact, left, right| push(&case, fact, left, right));
    }
    found
}

/// The lines in which two configurations differ, each with the table that it stands in.
fn configuration_lines(committed: &str, computed: &str) -> Vec<(String, Option<Value>, Option<Value>)> {
    let (left, right) = (keyed_lines(committed), keyed_lines(computed));
    let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let row = |key: &String| {
        let value = |lines: &BTreeMap<String, String>| lines.get(key).cloned().map(Value::from);
        (format!("configuration.{key}"), value(&left), value(&right))
    };
    keys.into_iter().map(row).filter(|(_, left, right)| left != right).collect()
}

/// The values of a TOML text by `table.key`.
fn keyed_lines(text: &str) -> BTreeMap<String, String> {
    let mut table = String::new();
    let mut lines = BTreeMap::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table = format!("{name}.");
        } else if let Some((key, value)) = line.split_once(" = ") {
            lines.insert(format!("{table}{key}"), value.to_owned());
        }
    }
    lines
}

fn walk(
    path: &str,
    left: Option<Value>,
    right: Option<Value>,
    report: &mut impl FnMut(&str, Option<Value>, Option<Value>),
) {
    match (left, right) {
        (Some(Value::Object(mut left)), Some(Value::Object(mut right))) => {
            let mut keys: Vec<String> = left.keys().chain(right.keys()).cloned().collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                // The keys of an outcome and of its facts say nothing on their own.
                let next = match (path, key.as_str()) {
                    ("", "outcome") | ("", "measured") => String::new(),
                    ("", key) => key.to_owned(),
                    (path, key) => format!("{path}.{key}"),
                };
                walk(&next, left.remove(&key), right.remove(&key), report);
            }
        }
        (left, right) if left != right => report(path, left, right),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Shot {
        case: String,
        hits: u32,
    }

    impl ChapterRecord for Shot {
        const NAME: &'static str = "shots";
        const SCHEMA: u32 = 1;

        fn case(&self) -> &str {
            &self.case
        }
    }

    fn shots() -> Chapter<Shot> {
        let shot = |case: &str, hits| Shot { case: case.to_owned(), hits };
        Chapter::new("top_k = 10\n".to_owned(), vec![shot("b", 2), shot("a", 1)])
    }

    #[test]
    fn a_chapter_is_in_order_reads_the_same_and_disorder_is_refused() {
        let text = shots().to_json().unwrap();
        insta::assert_snapshot!(text, @r#"
        {"schema":1,"configuration":"top_k = 10\n","records":[
        {"case":"a","hits":1},
        {"case":"b","hits":2}
        ]}
        "#);
        assert_eq!(Chapter::from_json(&text).unwrap(), shots());
        for (from, to) in [("\"schema\":1", "\"schema\":2"), ("\"a\"", "\"z\""), ("\"hits\":1", "\"misses\":1")] {
            assert!(Chapter::<Shot>::from_json(&text.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn a_changed_fact_is_named_with_its_case() {
        let mut other = shots();
        other.records[1].hits = 3;
        let found = other.differences(&shots()).unwrap();
        let [only] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&*only.engine, &*only.case, &*only.fact), ("shots", "b", "hits"));
        assert_eq!((&only.committed, &only.computed), (&Some(2.into()), &Some(3.into())));
    }
}
