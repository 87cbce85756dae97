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

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::outcomes::{ItemSet, Outcomes, Value};
use contextweaver_core::files::without_mark;
use contextweaver_core::text::sha256_hex;

/// A file is of no known form, or not a whole one.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct ReadError {
    path: PathBuf,
    reason: String,
}

/// A form of a file.
struct Form {
    name: &'static str,
    /// Whether the reader takes the engine that is asked for, and refuses it itself where there is none.
    has_engines: bool,
    read: Reader,
}

/// What a form makes of the content of a file: `None` when it is of another form, a reason when it is broken.
type Reader = fn(&Content<'_>) -> Option<Result<Outcomes, String>>;

/// The forms, in the order in which they are tried.
const FORMS: [Form; 6] = [
    Form { name: "scorecard/results/*.json", has_engines: true, read: results::read },
    Form {
        name: "the output of `bench eval --format json` or the results.json of a workspace",
        has_engines: true,
        read: evaluation::read,
    },
    Form { name: "a log of inspect-ai (.eval or JSON)", has_engines: false, read: inspect::read },
    Form { name: "the JSON output of promptfoo", has_engines: false, read: promptfoo::read },
    Form { name: "samples of lm-eval (JSON lines)", has_engines: true, read: lm_eval::read },
    Form { name: "the output of ir_measures by query", has_engines: false, read: ir_measures::read },
];

/// The most that a score may be apart from 0. It is far above the scores of any harness, and sums and squares of so many
/// keep their digits.
const MOST_SCORE: f64 = 1e9;

/// A file, looked at in the ways in which forms differ.
struct Content<'f> {
    path: &'f Path,
    bytes: &'f [u8],
    /// The text; `None` for other bytes.
    text: Option<&'f str>,
    /// The text as one JSON value; `None` when it is not one.
    json: Option<Json>,
    part: Part<'f>,
}

/// What is taken from a file that holds several things.
#[derive(Debug, Clone, Copy, Default)]
pub struct Part<'f> {
    /// The score of a log; `None` for its first.
    pub score: Option<&'f str>,
    /// The engine of a results file, or the filter of a log of lm-eval; `None` for the only one.
    pub engine: Option<&'f str>,
    /// The engine that it is compared with, by name: where `engine` is `None`, it is taken from the results of a catalog of
    /// one's own that hold several.
    pub beside: Option<&'f str>,
}

/// Reads the measurement in `bytes`, the content of `path`; `part` says which where there are several.
///
/// # Errors
/// [`ReadError`] with what is wrong and where, or with the forms that are read.
pub fn read(path: &Path, bytes: &[u8], part: Part<'_>) -> Result<Outcomes, ReadError> {
    let refuse = |reason: String| ReadError { path: path.to_owned(), reason };
    let bytes = without_mark(bytes);
    if bytes.trim_ascii().is_empty() {
        return Err(refuse("it is empty".to_owned()));
    }
    let text = std::str::from_utf8(bytes).ok();
    let (json, broken) = match text.map(serde_json::from_str::<Json>) {
        Some(Ok(json)) => (Some(json), None),
        Some(Err(error)) => (None, Some(error).filter(|_| is_torn(bytes))),
        None => (None, None),
    };
    let content = Content { path, bytes, text, json, part };
    let found = FORMS.iter().find_map(|form| (form.read)(&content).map(|found| (form, found)));
    let (form, found) = found.ok_or_else(|| match broken {
        Some(error) => refuse(format!("it is not complete JSON: {error}")),
        None => refuse(format!("its format is unknown; known formats are {}", FORMS.map(|form| form.name).join(", "))),
    })?;
    let mut outcomes = found.map_err(refuse)?;
    if let Some(engine) = part.engine.filter(|_| !form.has_engines) {
        return Err(refuse(format!("{} holds one measurement; leave out `#{engine}`", form.name)));
    }
    if outcomes.sets.values().all(|set| set.items.is_empty()) {
        return Err(refuse("it has no items to compare".to_owned()));
    }
    if outcomes.name.is_empty() {
        outcomes.name = path.display().to_string();
    }
    Ok(outcomes)
}

/// Whether bytes begin like one JSON value, and not with a line that is one.
fn is_torn(bytes: &[u8]) -> bool {
    let bytes = bytes.trim_ascii();
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    matches!(bytes.first(), Some(b'{' | b'[')) && serde_json::from_slice::<Json>(line).is_err()
}

/// One score of a log.
struct Scored {
    /// Its place, from 1: of a line, a sample or a result.
    place: usize,
    /// The id of the item.
    id: String,
    score: f64,
    /// What tells the item from another with the same id, where the log says it.
    asked: Option<String>,
}

/// Scores of one name as the only set of a measurement; `kind` says what a place is. An item that occurs several times, as in
/// repeated trials, has the mean of its scores.
///
/// # Errors
/// The place of a score that is not a finite number, or too large, and of an item that asks something else than an earlier one
/// with its id.
fn scored(set: &str, score: &str, kind: &str, items: impl IntoIterator<Item = Scored>) -> Result<Outcomes, String> {
    let mut sums: BTreeMap<String, (f64, u32)> = BTreeMap::new();
    let mut digests: BTreeMap<String, String> = BTreeMap::new();
    for Scored { place, id, score: value, asked } in items {
        // Not a number is within no bounds.
        if !(-MOST_SCORE..=MOST_SCORE).contains(&value) {
            return Err(format!(
                "{kind} {place}: `{score}` of item `{id}` is {value}, which is not a number from -{MOST_SCORE} to {MOST_SCORE}"
            ));
        }
        if let Some(asked) = asked {
            let digest = sha256_hex(asked.as_bytes());
            if digests.get(&id).is_some_and(|earlier| *earlier != digest) {
                return Err(format!("{kind} {place}: an earlier {kind} asks something else under the id `{id}`"));
            }
            digests.insert(id.clone(), digest);
        }
        let sum = sums.entry(id).or_default();
        *sum = (sum.0 + value, sum.1 + 1);
    }
    let items = sums.into_iter().map(|(id, (sum, count))| (id, Value::Score(sum / f64::from(count)))).collect();
    let sets = [(set.to_owned(), ItemSet { items, digests, ..ItemSet::default() })].into();
    Ok(Outcomes { score: Some(score.to_owned()), sets, ..Outcomes::default() })
}

/// The engine that was asked for, or the only one.
fn one_of<'n>(names: &[&'n str], asked: Option<&str>) -> Result<&'n str, String> {
    let all = || names.join(", ");
    match (asked, names) {
        (Some(asked), _) => {
            let found = names.iter().find(|name| **name == asked).copied();
            found.ok_or_else(|| format!("it has no engine `{asked}`; there are {}", all()))
        }
        (None, [one]) => Ok(one),
        (None, _) => Err(format!(
            "it has several engines; name one after the file, as in `FILE#{}`; there are {}",
            names.first().unwrap_or(&"NAME"),
            all()
        )),
    }
}

/// A number, a truth value, or a grade as harnesses write it: `C` correct, `P` partly, `I` incorrect, `N` no answer.
fn number(value: &Json) -> Option<f64> {
    match value {
        Json::Number(number) => number.as_f64(),
        Json::Bool(truth) => Some(f64::from(u8::from(*truth))),
        Json::String(grade) => match grade.as_str() {
            "C" => Some(1.0),
            "P" => Some(0.5),
            "I" | "N" => Some(0.0),
            other => other.parse().ok(),
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
        read(Path::new("log"), text.as_bytes(), Part { score, ..Part::default() }).map_err(|error| error.to_string())
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
            ("", "it is empty"),
            (" \n", "it is empty"),
            ("pizza", "its format is unknown"),
            ("{}\n{}\n", "its format is unknown"),
            ("{\"doc_id\":0,\"metrics\":[\"acc\"],\"acc\":1}\nq1\n", "line 2: it is not a JSON object"),
            ("[1, 2]", "its format is unknown"),
            ("{\"samples\": [", "it is not complete JSON: EOF while parsing a list at line 1"),
            (
                "q1\tRR\t1\nq2\tRR\tNaN\n",
                "line 2: `RR` of item `q2` is NaN, which is not a number from -1000000000 to 1000000000",
            ),
            ("q1\tRR\t-inf\n", "line 1: `RR` of item `q1` is -inf"),
            ("q1\tRR\t1e300\n", "line 1: `RR` of item `q1` is 1000000"),
            (
                r#"{"samples":[{"id":1,"scores":{"m":{"value":"C"}}},{"id":2,"scores":{"m":{"value":"inf"}}}],"eval":{"task":"t"}}"#,
                "sample 2: `m` of item `2` is inf",
            ),
            (
                r#"{"results":{"results":[{"testIdx":7,"score":1e12}]}}"#,
                "result 1: `score` of item `7` is 1000000000000",
            ),
            (
                r#"{"results":{"results":[{"testIdx":0,"score":1,"vars":{"a":1}},{"testIdx":0,"score":1,"vars":{"a":2}}]}}"#,
                "result 2: an earlier result asks something else under the id `0`",
            ),
            ("{\"doc_id\":0,\"metrics\":[\"acc\"],\"acc\":-1e10}\n", "line 1: `acc` of item `0` is -10000000000"),
            (r#"{"samples":[],"eval":{"task":"t"}}"#, "it has no score"),
            (r#"{"samples":[{"id":1}],"eval":{"task":"t"}}"#, "it has no score"),
            (two, "it has 2 providers or prompts"),
            ("{\"doc_id\":0,\"acc\":1.0}\n", "line 1: it names no metrics"),
            ("{\"doc_id\":0,\"metrics\":[\"acc\"]}\n", "line 1: it has no number `acc`"),
            ("q1\tRR\tbig\n", "line 1: `big` is not a number"),
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
        assert!(torn.contains("not a complete archive"), "{torn}");
    }
}
