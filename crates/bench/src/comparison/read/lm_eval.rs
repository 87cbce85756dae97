//! Samples of lm-eval (`--log_samples`): JSON lines with `doc_id`, the metrics that they name, and `doc_hash`, which tells
//! documents apart.
//!
//! A task may take the answer out of a model's text by several filters, and then the log has a line for each filter of a
//! document. Those are different measurements: a filter is to a log what an engine is to a results file.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::super::outcomes::Outcomes;
use super::{Content, Part, Scored, chosen, identity, number, scored};

/// What lm-eval calls the filter of a task that has none.
const NO_FILTER: &str = "none";

/// The samples of one filter.
struct Filter {
    name: String,
    /// The score that is taken of it, or why there is none.
    score: Result<String, String>,
    /// Its scores, or the first that cannot be taken.
    items: Result<Vec<Scored>, String>,
}

pub(super) fn read(content: &Content<'_>) -> Option<Result<Outcomes, String>> {
    let text = content.text?;
    let first: Json = serde_json::from_str(text.lines().find(|line| !line.trim().is_empty())?).ok()?;
    first.get("doc_id")?;
    Some(outcomes(text, content))
}

fn outcomes(text: &str, content: &Content<'_>) -> Result<Outcomes, String> {
    let Part { score, engine, .. } = content.part;
    let mut filters: Vec<Filter> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (place, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let refuse = |reason: &str| format!("line {place}: {reason}");
        let row: Json = serde_json::from_str(line).map_err(|_| refuse("it is not a JSON object"))?;
        let id = row.get("doc_id").and_then(identity).ok_or_else(|| refuse("it has no `doc_id`"))?;
        let name = match row.get("filter") {
            None | Some(Json::Null) => NO_FILTER.to_owned(),
            Some(filter) => identity(filter).ok_or_else(|| refuse("its `filter` is not a name"))?,
        };
        let at = *places.entry(name).or_insert_with_key(|name| {
            let score = named(&row, score).map_err(|reason| refuse(&reason));
            filters.push(Filter { name: name.clone(), score, items: Ok(Vec::new()) });
            filters.len() - 1
        });
        let Filter { score: Ok(score), items, .. } = &mut filters[at] else { continue };
        let Ok(taken) = items else { continue };
        match row.get(&*score).and_then(number) {
            Some(value) => {
                taken.push(Scored { place, id, score: value, asked: row.get("doc_hash").and_then(identity) });
            }
            None => *items = Err(refuse(&format!("it has no number `{score}`"))),
        }
    }
    let names: Vec<String> = filters.iter().map(|filter| format!("`{}`", filter.name)).collect();
    let several = names.len() > 1;
    let taken = match engine {
        Some(asked) => filters
            .into_iter()
            .find(|filter| filter.name == asked)
            .ok_or_else(|| format!("it has no samples of the filter `{asked}`; its filters: {}", names.join(", ")))?,
        None if several => {
            let first = filters.first().map_or("FILTER", |filter| filter.name.as_str());
            return Err(format!(
                "it has samples of several filters; name one after the file, as in `FILE#{first}`; its filters: {}",
                names.join(", ")
            ));
        }
        None => filters.into_iter().next().ok_or_else(|| "it has no sample".to_owned())?,
    };
    let outcomes = scored("lm-eval", &taken.score?, "line", taken.items?)?;
    let name = if several { format!("{}#{}", content.path.display(), taken.name) } else { String::new() };
    Ok(Outcomes { name, ..outcomes })
}

/// The name of the score that is asked for among those that a sample names, or of its first.
fn named(row: &Json, asked: Option<&str>) -> Result<String, String> {
    let metrics = row.get("metrics").and_then(Json::as_array);
    let metrics: Vec<String> = metrics.into_iter().flatten().filter_map(identity).collect();
    if metrics.is_empty() {
        return Err("it names no metrics".to_owned());
    }
    chosen(&metrics, asked)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Part, Value, read};

    /// Two documents by two filters: the strict one fails where the other finds the answer.
    const TWO: &str = r#"{"doc_id":0,"filter":"strict-match","metrics":["exact_match"],"exact_match":0.0}
{"doc_id":1,"filter":"strict-match","metrics":["exact_match"],"exact_match":1.0}
{"doc_id":0,"filter":"flexible-extract","metrics":["exact_match"],"exact_match":1.0}
{"doc_id":1,"filter":"flexible-extract","metrics":["exact_match"],"exact_match":1.0}
"#;

    fn of(text: &str, engine: Option<&str>) -> Result<(String, Vec<f64>), String> {
        let part = Part { engine, ..Part::default() };
        let found = read(Path::new("samples.jsonl"), text.as_bytes(), part).map_err(|error| error.to_string())?;
        let scores = found.sets["lm-eval"].items.values().map(|value| match value {
            Value::Score(score) => *score,
            Value::Ranks(_) => f64::NAN,
        });
        Ok((found.name, scores.collect()))
    }

    #[test]
    fn a_filter_is_a_measurement_of_its_own() {
        assert_eq!(of(TWO, Some("strict-match")), Ok(("samples.jsonl#strict-match".to_owned(), vec![0.0, 1.0])));
        assert_eq!(
            of(TWO, Some("flexible-extract")),
            Ok(("samples.jsonl#flexible-extract".to_owned(), vec![1.0, 1.0]))
        );
        let filters = "its filters: `strict-match`, `flexible-extract`";
        let several = format!(
            "samples.jsonl: it has samples of several filters; name one after the file, as in `FILE#strict-match`; \
             {filters}"
        );
        assert_eq!(of(TWO, None), Err(several));
        assert_eq!(
            of(TWO, Some("strict")),
            Err(format!("samples.jsonl: it has no samples of the filter `strict`; {filters}"))
        );
    }

    #[test]
    fn one_filter_needs_no_name_and_may_have_it() {
        let none = r#"{"doc_id":0,"metrics":["acc"],"acc":1.0}"#;
        let strict = r#"{"doc_id":0,"filter":"strict","metrics":["acc"],"acc":1.0}"#;
        for (text, filter) in [(none, "none"), (strict, "strict")] {
            assert_eq!(of(text, None), Ok(("samples.jsonl".to_owned(), vec![1.0])));
            assert_eq!(of(text, Some(filter)), of(text, None));
        }
        let list = r#"{"doc_id":0,"filter":["a"],"metrics":["acc"],"acc":1.0}"#;
        assert_eq!(of(list, None), Err("samples.jsonl: line 1: its `filter` is not a name".to_owned()));
    }

    #[test]
    fn what_is_wrong_with_one_filter_is_no_matter_to_another() {
        let torn = TWO.replacen("\"exact_match\":1.0", "\"exact_match\":\"big\"", 1);
        assert_eq!(of(&torn, Some("flexible-extract")).unwrap().1, [1.0, 1.0]);
        assert_eq!(
            of(&torn, Some("strict-match")),
            Err("samples.jsonl: line 2: it has no number `exact_match`".to_owned())
        );
    }
}
