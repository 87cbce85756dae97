//! The output of `ir_measures` by query: query, measure and value, apart by tabs.

use std::collections::BTreeSet;

use super::super::outcomes::Outcomes;
use super::{Content, Scored, chosen, scored};

/// The line of the mean over all queries.
const ALL: &str = "all";

pub(super) fn read(content: &Content<'_>) -> Option<Result<Outcomes, String>> {
    let text = content.text?;
    let first: Vec<&str> = text.lines().find(|line| !line.trim().is_empty())?.split('\t').collect();
    (first.len() == 3).then(|| outcomes(text, content.part.score))
}

fn outcomes(text: &str, score: Option<&str>) -> Result<Outcomes, String> {
    let mut rows = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let [query, measure, value] = line.split('\t').collect::<Vec<_>>()[..] else {
            return Err(format!("line {number}: it does not have three columns"));
        };
        let value: f64 = value.trim().parse().map_err(|_| {
            format!("line {number}: `{value}` is not a number; a run file needs --catalog and --queries")
        })?;
        rows.push((number, query, measure, value));
    }
    let mut known = BTreeSet::new();
    let measures = rows.iter().map(|(_, _, measure, _)| *measure);
    let names: Vec<String> = measures.filter(|measure| known.insert(*measure)).map(str::to_owned).collect();
    let name = chosen(&names, score)?;
    let items = rows.into_iter().filter(|(_, query, measure, _)| *measure == name && *query != ALL);
    let items = items.map(|(place, query, _, score)| Scored { place, id: query.to_owned(), score, asked: None });
    scored("ir_measures", &name, "line", items)
}
