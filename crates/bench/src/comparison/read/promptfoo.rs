//! The JSON output of promptfoo: one result for each test, prompt and provider.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value as Json;

use super::super::outcomes::Outcomes;
use super::{Content, Scored, chosen, scored};

#[derive(Deserialize)]
struct Output {
    results: Results,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(rename = "testIdx")]
    test: u64,
    #[serde(default, rename = "promptIdx")]
    prompt: u64,
    #[serde(default)]
    provider: Json,
    /// What the test puts into the prompt.
    #[serde(default)]
    vars: Option<BTreeMap<String, Json>>,
    score: f64,
    #[serde(default)]
    success: bool,
}

/// The scores that a result has.
const SCORES: [&str; 2] = ["score", "success"];

pub(super) fn read(content: &Content<'_>) -> Option<Result<Outcomes, String>> {
    let json = content.json.as_ref()?;
    json.get("results")?.get("results")?;
    let output = Output::deserialize(json).map_err(|error| error.to_string());
    Some(output.and_then(|output| outcomes(&output.results.results, content.part.score)))
}

fn outcomes(rows: &[Row], score: Option<&str>) -> Result<Outcomes, String> {
    let kinds: BTreeSet<(u64, String)> = rows.iter().map(|row| (row.prompt, row.provider.to_string())).collect();
    if kinds.len() > 1 {
        return Err(format!("it has {} providers or prompts; write one of them to a file of its own", kinds.len()));
    }
    let name = chosen(&SCORES.map(str::to_owned), score)?;
    let value = |row: &Row| if name == SCORES[0] { row.score } else { f64::from(u8::from(row.success)) };
    // What a run itself puts beside them is not part of the question.
    let asked = |vars: &BTreeMap<String, Json>| {
        let own = vars.iter().filter(|(name, _)| !name.starts_with('_') && *name != "sessionId");
        Json::Object(own.map(|(name, value)| (name.clone(), value.clone())).collect()).to_string()
    };
    let items = (1..).zip(rows).map(|(place, row)| Scored {
        place,
        id: row.test.to_string(),
        score: value(row),
        asked: row.vars.as_ref().map(asked),
    });
    scored("promptfoo", &name, "result", items)
}
