//! Samples of lm-eval (`--log_samples`): JSON lines with `doc_id`, the metrics that they name, and `doc_hash`, which tells
//! documents apart.

use serde_json::Value as Json;

use super::super::outcomes::Outcomes;
use super::{Content, Scored, chosen, identity, number, scored};

pub(super) fn read(content: &Content<'_>) -> Option<Result<Outcomes, String>> {
    let text = content.text?;
    let first: Json = serde_json::from_str(text.lines().find(|line| !line.trim().is_empty())?).ok()?;
    first.get("doc_id")?;
    Some(outcomes(text, content.part.score))
}

fn outcomes(text: &str, score: Option<&str>) -> Result<Outcomes, String> {
    let mut name = None;
    let mut items = Vec::new();
    for (number_of, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let refuse = |reason: String| format!("line {number_of}: {reason}");
        let row: Json = serde_json::from_str(line).map_err(|_| refuse("it is no JSON object".to_owned()))?;
        let id = row.get("doc_id").and_then(identity).ok_or_else(|| refuse("it has no `doc_id`".to_owned()))?;
        let name = match &name {
            Some(name) => name,
            None => {
                let metrics = row.get("metrics").and_then(Json::as_array);
                let metrics: Vec<String> = metrics.into_iter().flatten().filter_map(identity).collect();
                if metrics.is_empty() {
                    return Err(refuse("it names no metrics".to_owned()));
                }
                name.insert(chosen(&metrics, score).map_err(refuse)?)
            }
        };
        let value = row.get(name).and_then(number).ok_or_else(|| refuse(format!("it has no number `{name}`")))?;
        let asked = row.get("doc_hash").and_then(identity);
        items.push(Scored { place: number_of, id, score: value, asked });
    }
    scored("lm-eval", &name.unwrap_or_default(), "line", items)
}
