//! Measurements from files: results of the scorecard, output of `bench eval`, and the logs of other harnesses.
//!
//! A form is one file here and one row in `FORMS`, recognised by its content. Files are taken at their word: what they say
//! is compared and never called measured.

mod evaluation;
mod inspect;
mod ir_measures;
mod lm_eval;
mod promptfoo;
mod results;

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::outcomes::{ItemSet, Outcomes, Value};

/// A file is of no known form, or not a whole one.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct ReadError {
    path: PathBuf,
    reason: String,
}

/// What a form makes of the content of a file: `None` when it is of another form, a reason when it is broken.
type Form = fn(&Content<'_>) -> Option<Result<Outcomes, String>>;

/// The forms, in the order in which they are tried.
const FORMS: [(&str, Form); 6] = [
    ("scorecard/results/*.json", results::read),
    ("the output of `bench eval --format json`", evaluation::read),
    ("a log of inspect-ai (.eval or JSON)", inspect::read),
    ("the JSON output of promptfoo", promptfoo::read),
    ("samples of lm-eval (JSON lines)", lm_eval::read),
    ("the output of ir_measures by query", ir_measures::read),
];

/// A file, looked at in the ways in which forms differ.
struct Content<'f> {
    bytes: &'f [u8],
    /// The text; `None` for other bytes.
    text: Option<&'f str>,
    /// The text as one JSON value; `None` when it is none.
    json: Option<Json>,
    /// The score that was asked for by name.
    score: Option<&'f str>,
    /// The engine that was asked for by name.
    engine: Option<&'f str>,
}

/// What is taken from a file that holds several things.
#[derive(Debug, Clone, Copy, Default)]
pub struct Part<'f> {
    /// The score of a log; `None` for its first.
    pub score: Option<&'f str>,
    /// The engine of a results file; `None` for the only one.
    pub engine: Option<&'f str>,
}

/// Reads the measurement in `bytes`, the content of `path`; `part` says which where there are several.
///
/// # Errors
/// [`ReadError`] with the forms that are read.
pub fn read(path: &Path, bytes: &[u8], part: Part<'_>) -> Result<Outcomes, ReadError> {
    let text = std::str::from_utf8(bytes).ok();
    let json = text.and_then(|text| serde_json::from_str(text).ok());
    let Part { score, engine } = part;
    let content = Content { bytes, text, json, score, engine };
    let refuse = |reason: String| ReadError { path: path.to_owned(), reason };
    let found = FORMS.iter().find_map(|(_, form)| form(&content));
    let mut outcomes = found
        .ok_or_else(|| refuse(format!("its form is not known; read are {}", FORMS.map(|form| form.0).join(", "))))?
        .map_err(refuse)?;
    if outcomes.sets.values().all(|set| set.items.is_empty()) {
        return Err(refuse("it has no item to compare".to_owned()));
    }
    if outcomes.name.is_empty() {
        outcomes.name = path.display().to_string();
    }
    Ok(outcomes)
}

/// Scores of one name as the only set of a measurement. An item that occurs several times, as in repeated trials, has the
/// mean of its scores.
fn scored(set: &str, score: &str, items: impl IntoIterator<Item = (String, f64)>) -> Outcomes {
    let mut sums: std::collections::BTreeMap<String, (f64, u32)> = std::collections::BTreeMap::new();
    for (id, value) in items {
        let sum = sums.entry(id).or_default();
        *sum = (sum.0 + value, sum.1 + 1);
    }
    let items = sums.into_iter().map(|(id, (sum, count))| (id, Value::Score(sum / f64::from(count)))).collect();
    let set_items = ItemSet { items, ..ItemSet::default() };
    Outcomes { score: Some(score.to_owned()), sets: [(set.to_owned(), set_items)].into(), ..Outcomes::default() }
}

/// A number, a truth value, or a grade as harnesses write it: `C` correct, `P` partly, `I` incorrect, `N` no answer.
fn number(value: &Json) -> Option<f64> {
    match value {
        Json::Number(number) => number.as_f64().filter(|number| number.is_finite()),
        Json::Bool(truth) => Some(f64::from(u8::from(*truth))),
        Json::String(grade) => match grade.as_str() {
            "C" => Some(1.0),
            "P" => Some(0.5),
            "I" | "N" => Some(0.0),
            other => other.parse().ok().filter(|number: &f64| number.is_finite()),
        },
        _ => None,
    }
}

/// An id as text.
fn identity(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The name that was asked for, or the first of those that there are.
fn chosen(names: &[String], asked: Option<&str>) -> Result<String, String> {
    match asked {
        Some(asked) if names.iter().any(|name| name == asked) => Ok(asked.to_owned()),
        Some(asked) => Err(format!("it has no score `{asked}`; there are {}", names.join(", "))),
        None => names.first().cloned().ok_or_else(|| "it has no score".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str, score: Option<&str>) -> Result<Outcomes, String> {
        read(Path::new("log"), text.as_bytes(), Part { score, engine: None }).map_err(|error| error.to_string())
    }

    /// Name of the score, and the items with their values.
    fn shown(outcomes: &Outcomes) -> String {
        let score = outcomes.score.as_deref().unwrap_or("ranks");
        let set = |(name, set): (&String, &ItemSet)| {
            let items: Vec<String> = set.items.iter().map(|(id, value)| format!("{id}={value:?}")).collect();
            format!("{name}[{}]", items.join(" "))
        };
        format!("{score}: {}", outcomes.sets.iter().map(set).collect::<Vec<_>>().join(" "))
    }

    const INSPECT: &str = r#"{"version":2,"status":"success","eval":{"task":"tools"},"samples":[
        {"id":1,"epoch":1,"scores":{"match":{"value":"C"},"f1":{"value":0.5}}},
        {"id":1,"epoch":2,"scores":{"match":{"value":"I"},"f1":{"value":0.7}}},
        {"id":"b","epoch":1,"scores":{"match":{"value":"I"},"f1":{"value":0}}}]}"#;

    #[test]
    fn logs_of_other_harnesses_are_read() {
        let promptfoo = r#"{"evalId":"e","results":{"version":3,"results":[
            {"testIdx":0,"promptIdx":0,"provider":{"id":"m"},"score":1,"success":true},
            {"testIdx":1,"promptIdx":0,"provider":{"id":"m"},"score":0.25,"success":false}]}}"#;
        let lm_eval = "{\"doc_id\":0,\"filter\":\"none\",\"metrics\":[\"acc\"],\"acc\":1.0}\n\
            {\"doc_id\":1,\"filter\":\"none\",\"metrics\":[\"acc\"],\"acc\":0.0}\n";
        let ir_measures = "q1\tnDCG@10\t0.5\nq2\tnDCG@10\t1.0\nall\tnDCG@10\t0.75\nq1\tRR\t1.0\nq2\tRR\t1.0\n";
        let table = [
            (INSPECT, None, "f1: tools[1=Score(0.6) b=Score(0.0)]"),
            (INSPECT, Some("match"), "match: tools[1=Score(0.5) b=Score(0.0)]"),
            (promptfoo, None, "score: promptfoo[0=Score(1.0) 1=Score(0.25)]"),
            (lm_eval, None, "acc: lm-eval[0=Score(1.0) 1=Score(0.0)]"),
            (ir_measures, None, "nDCG@10: ir_measures[q1=Score(0.5) q2=Score(1.0)]"),
            (ir_measures, Some("RR"), "RR: ir_measures[q1=Score(1.0) q2=Score(1.0)]"),
        ];
        for (text, score, expected) in table {
            assert_eq!(shown(&read_text(text, score).unwrap()), expected);
        }
    }

    #[test]
    fn broken_logs_are_refused_with_what_is_missing() {
        let two = r#"{"results":{"results":[{"testIdx":0,"provider":"a","score":1},{"testIdx":0,"provider":"b","score":1}]}}"#;
        let table = [
            ("", "its form is not known"),
            ("[1, 2]", "its form is not known"),
            (r#"{"samples":[],"eval":{"task":"t"}}"#, "it has no score"),
            (r#"{"samples":[{"id":1}],"eval":{"task":"t"}}"#, "it has no score"),
            (two, "it has 2 providers or prompts"),
            ("{\"doc_id\":0,\"acc\":1.0}\n", "line 1: it names no metrics"),
            ("{\"doc_id\":0,\"metrics\":[\"acc\"]}\n", "line 1: it has no number `acc`"),
            ("q1\tRR\tbig\n", "line 1: `big` is no number"),
        ];
        for (text, expected) in table {
            let error = read_text(text, None).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = read_text(INSPECT, Some("bleu")).unwrap_err();
        assert_eq!(error, "log: it has no score `bleu`; there are f1, match");
    }

    #[test]
    fn an_archive_of_samples_is_read_like_its_json() {
        use std::io::Write as _;
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default();
        for (name, text) in [
            ("header.json", r#"{"eval":{"task":"tools"},"status":"success"}"#),
            ("samples/1_epoch_1.json", r#"{"id":1,"epoch":1,"scores":{"match":{"value":"C"}}}"#),
            ("samples/2_epoch_1.json", r#"{"id":2,"epoch":1,"scores":{"match":{"value":"I"}}}"#),
        ] {
            archive.start_file(name, options).unwrap();
            archive.write_all(text.as_bytes()).unwrap();
        }
        let bytes = archive.finish().unwrap().into_inner();
        let outcomes = read(Path::new("a.eval"), &bytes, Part::default()).unwrap();
        assert_eq!(shown(&outcomes), "match: tools[1=Score(1.0) 2=Score(0.0)]");
        let torn = read(Path::new("a.eval"), &bytes[..bytes.len() / 2], Part::default()).unwrap_err().to_string();
        assert!(torn.contains("no whole archive"), "{torn}");
    }
}
