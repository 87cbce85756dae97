//! Logs of inspect-ai: one JSON object with `samples`, or an archive with one file for each of them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Cursor;

use contextweaver_core::files::read_at_most;
use serde::Deserialize;
use serde_json::Value as Json;

use super::super::outcomes::Outcomes;
use super::{Content, Scored, chosen, identity, number, scored};

/// The most bytes that one file of an archive may unpack to.
const MOST: u64 = 64 << 20;

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

#[derive(Deserialize)]
struct Sample {
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

pub(super) fn read(content: &Content<'_>) -> Option<Result<Outcomes, String>> {
    if content.bytes.starts_with(b"PK") {
        return Some(archive(content.bytes).and_then(|(task, samples)| outcomes(&task, &samples, content.part.score)));
    }
    let json = content.json.as_ref()?;
    json.get("samples")?;
    json.get("eval")?;
    let log = Log::deserialize(json).map_err(|error| error.to_string());
    Some(log.and_then(|log| outcomes(&log.eval.task, &log.samples, content.part.score)))
}

fn archive(bytes: &[u8]) -> Result<(String, Vec<Sample>), String> {
    let broken = |error: zip::result::ZipError| format!("no whole archive: {error}");
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    let names = archive.file_names().map(|name| name.map(Cow::into_owned));
    let names = names.collect::<Result<Vec<String>, _>>().map_err(broken)?;
    let mut file = |name: &str| -> Result<Vec<u8>, String> {
        let file = archive.by_name(name).map_err(|error| format!("`{name}`: {error}"))?;
        read_at_most(file, MOST).map_err(|error| format!("`{name}`: {error}"))
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
    let mut names: Vec<String> =
        samples.iter().flat_map(|sample| sample.scores.iter().flatten()).map(|(name, _)| name.clone()).collect();
    names.sort();
    names.dedup();
    let name = chosen(&names, score)?;
    let mut items = Vec::new();
    for (place, sample) in (1..).zip(samples) {
        let id = identity(&sample.id).ok_or("a sample has no id")?;
        let score = sample.scores.as_ref().and_then(|scores| scores.get(&name));
        let score = score.ok_or_else(|| format!("sample `{id}` has no score `{name}`"))?;
        let score = number(&score.value).ok_or_else(|| format!("sample `{id}`: `{name}` is no number"))?;
        items.push(Scored { place, id, score, asked: sample.input.as_ref().map(Json::to_string) });
    }
    scored(task, &name, "sample", items)
}
