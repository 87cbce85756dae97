//! The output of `bench eval --format json`: the first engine on one's own catalog.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::outcomes::{ItemSet, Outcomes, Value};
use super::Content;
use crate::eval::collection::YOURS;

/// The number of the form.
const SCHEMA: u32 = 1;

#[derive(Deserialize)]
struct Output {
    schema_version: u32,
    inputs_sha256: String,
    evaluations: Vec<Entry>,
    /// The tools that each query needs.
    #[serde(default)]
    wanted: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct Entry {
    ranks: BTreeMap<String, Vec<Option<usize>>>,
}

pub(super) fn read(content: &Content<'_>) -> Option<Result<Outcomes, String>> {
    let json = content.json.as_ref()?;
    json.get("evaluations")?;
    Some(Output::deserialize(json).map_err(|error| error.to_string()).and_then(outcomes))
}

fn outcomes(output: Output) -> Result<Outcomes, String> {
    if output.schema_version != SCHEMA {
        return Err(format!("it has the form {}, and this reads {SCHEMA}; record it again", output.schema_version));
    }
    let first = output.evaluations.into_iter().next().ok_or("it has no evaluation")?;
    let set = ItemSet {
        inputs: Some(output.inputs_sha256),
        items: first.ranks.into_iter().map(|(id, ranks)| (id, Value::Ranks(ranks))).collect(),
        tools: output.wanted,
        texts: BTreeMap::new(),
    };
    Ok(Outcomes { sets: [(YOURS.to_owned(), set)].into(), ..Outcomes::default() })
}
