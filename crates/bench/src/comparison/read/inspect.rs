//! Logs of inspect-ai: one JSON object with `samples`, or an archive with one file for each of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use contextweaver_core::files::{Unread, read_at_most};
use contextweaver_core::text::sha256_hex;
use serde::Deserialize;
use serde_json::Value as Json;

use super::super::outcomes::Outcomes;
use super::{Content, Scored, chosen, identity, number, scored};

/// The most bytes that one file of an archive may unpack to.
const MOST: u64 = 64 << 20;

/// The most bytes that all files of an archive together may unpack to.
const MOST_ALL: u64 = 1 << 30;

/// The most samples that are read.
const MOST_SAMPLES: usize = 1_000_000;

#[derive(Deserialize)]
struct Log {
    eval: Eval,
    samples: Vec<Sample>,
}

#[derive(Deserialize)]
struct Header {
    eval: Eval,
}

#[derive(Deserialize)]
struct Eval {
    task: String,
}

/// A sample as it is written.
#[derive(Deserialize)]
struct Written {
    id: Json,
    /// What is asked: a text or messages.
    #[serde(default)]
    input: Option<Json>,
    #[serde(default)]
    scores: Option<BTreeMap<String, Score>>,
}

#[derive(Deserialize)]
struct Score {
    value: Json,
}

/// What is kept of a sample: the conversation that it was asked in is long, and only a digest of it is needed.
#[derive(Deserialize)]
#[serde(from = "Written")]
struct Sample {
    id: Option<String>,
    asked: Option<String>,
    /// The value of each score; `None` where it is not a number.
    scores: BTreeMap<String, Option<f64>>,
}

impl From<Written> for Sample {
    fn from(Written { id, input, scores }: Written) -> Self {
        let scores = scores.into_iter().flatten();
        Self {
            id: identity(&id),
            asked: input.map(|input| sha256_hex(input.to_string().as_bytes())),
            scores: scores.map(|(name, score)| (name, number(&score.value))).collect(),
        }
    }
}

pub(super) fn read(content: &Content<'_>) -> Option<Result<Outcomes, String>> {
    if content.bytes.starts_with(b"PK") {
        return Some(
            archive(content.bytes, MOST_ALL).and_then(|(task, samples)| outcomes(&task, &samples, content.part.score)),
        );
    }
    let json = content.json.as_ref()?;
    json.get("samples")?;
    json.get("eval")?;
    let log = Log::deserialize(json).map_err(|error| error.to_string());
    Some(log.and_then(|log| outcomes(&log.eval.task, &log.samples, content.part.score)))
}

/// The task and the samples of an archive whose files unpack to at most `most` bytes.
fn archive(bytes: &[u8], most: u64) -> Result<(String, Vec<Sample>), String> {
    let broken = |error: zip::result::ZipError| format!("it is not a complete archive: {error}");
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    let names = archive.file_names().map(|name| name.map(Cow::into_owned));
    let names = names.collect::<Result<Vec<String>, _>>().map_err(broken)?;
    let mut left = most;
    let mut file = |name: &str| -> Result<Vec<u8>, String> {
        let file = archive.by_name(name).map_err(|error| format!("`{name}`: {error}"))?;
        let bytes = read_at_most(file, MOST.min(left)).map_err(|error| match error {
            Unread::TooLarge { most: allowed } if allowed < MOST => {
                let all = Unread::TooLarge { most };
                format!("the archive unpacks to too much data with `{name}`: {all}; use fewer samples")
            }
            error => format!("`{name}`: {error}"),
        })?;
        left -= bytes.len() as u64;
        Ok(bytes)
    };
    let header: Header =
        serde_json::from_slice(&file("header.json")?).map_err(|error| format!("header.json: {error}"))?;
    let mut samples = Vec::new();
    for name in names.iter().filter(|name| name.starts_with("samples/") && name.ends_with(".json")) {
        if samples.len() == MOST_SAMPLES {
            return Err(format!("it has more than {MOST_SAMPLES} samples"));
        }
        samples.push(serde_json::from_slice(&file(name)?).map_err(|error| format!("`{name}`: {error}"))?);
    }
    Ok((header.eval.task, samples))
}

fn outcomes(task: &str, samples: &[Sample], score: Option<&str>) -> Result<Outcomes, String> {
    let names: BTreeSet<&String> = samples.iter().flat_map(|sample| sample.scores.keys()).collect();
    let names: Vec<String> = names.into_iter().cloned().collect();
    let name = chosen(&names, score)?;
    let mut items = Vec::new();
    for (place, sample) in (1..).zip(samples) {
        let id = sample.id.clone().ok_or("a sample has no id")?;
        let score = sample.scores.get(&name).ok_or_else(|| format!("sample `{id}` has no score `{name}`"))?;
        let score = score.ok_or_else(|| format!("sample `{id}`: `{name}` is not a number"))?;
        items.push(Scored { place, id, score, asked: sample.asked.clone() });
    }
    scored(task, &name, "sample", items)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn an_archive_is_bounded_as_a_whole() {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let header = r#"{"eval":{"task":"tools"}}"#;
        let sample = r#"{"id":1,"input":"x","scores":{"match":{"value":"C"}}}"#;
        for (name, text) in [("header.json", header), ("samples/1.json", sample), ("samples/2.json", sample)] {
            archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            archive.write_all(text.as_bytes()).unwrap();
        }
        let bytes = archive.finish().unwrap().into_inner();
        let whole = (header.len() + 2 * sample.len()) as u64;
        let read = |most: u64| super::archive(&bytes, most).map(|(task, samples)| (task, samples.len()));
        assert_eq!(read(whole), Ok(("tools".to_owned(), 2)));
        let refused = format!(
            "the archive unpacks to too much data with `samples/2.json`: it has more than {} bytes; use fewer samples",
            whole - 1
        );
        assert_eq!(read(whole - 1), Err(refused));
    }
}
