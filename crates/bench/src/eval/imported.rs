//! Rankings from a file that somebody else wrote: the way in for an engine that the harness cannot run.
//!
//! Two forms are read, and a file may have only one: lines of TREC (`query Q0 tool rank score tag`) and those of
//! `bench eval --run-out`. What a file says is taken at its word and never called measured: nobody here ran the engine.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::collection::Collection;
use super::engine::Ranking;

/// A tool more often than this in one ranking, or a ranking longer than this, is no ranking of tools.
const LONGEST: usize = 100_000;

/// A file is no run of the collection.
#[derive(Debug, thiserror::Error)]
#[error("{}:{line}: {reason}", path.display())]
pub struct RunFileError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and the way out.
    pub reason: String,
}

/// One line of a run.
struct Line<'t> {
    query: &'t str,
    tool: u32,
    rank: u64,
    score: f64,
}

/// Reads a run of `collection`. Queries that the file does not name have an empty ranking.
///
/// # Errors
/// [`RunFileError`] at the first line that is of neither form or names an unknown query or tool, a tool twice for a query,
/// or a score that is not a number.
pub fn read_run(path: &Path, text: &str, collection: &Collection) -> Result<Vec<Ranking>, RunFileError> {
    let numbers: BTreeMap<&str, usize> =
        collection.queries.iter().enumerate().map(|(number, query)| (query.id.as_str(), number)).collect();
    let tools = names(collection);
    let mut lines: Vec<Vec<Line<'_>>> = collection.queries.iter().map(|_| Vec::new()).collect();
    let mut seen: BTreeSet<(usize, u32)> = BTreeSet::new();
    for (number, text) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        if text.trim().is_empty() {
            continue;
        }
        let refuse = |reason: String| RunFileError { path: path.to_owned(), line: number, reason };
        let line = parse(text, &tools).map_err(refuse)?;
        let Some(&query) = numbers.get(line.query) else {
            return Err(refuse(format!("query `{}` is not in the queries file", line.query)));
        };
        if !seen.insert((query, line.tool)) {
            return Err(refuse(format!("query `{}` has this tool twice", line.query)));
        }
        if lines[query].len() == LONGEST {
            return Err(refuse(format!("query `{}` has more than {LONGEST} tools", line.query)));
        }
        lines[query].push(line);
    }
    Ok(lines.into_iter().map(ranking).collect())
}

/// Every name by which a run may call a tool: as a queries file does, `server:name`, the id, and each as TREC forms write
/// it.
fn names(collection: &Collection) -> BTreeMap<String, u32> {
    let mut names = BTreeMap::new();
    for (number, item) in (0..).zip(collection.catalog.items()) {
        let server = item.server.as_deref().map(|server| format!("{server}:{}", item.name));
        for name in [item.id.clone()].into_iter().chain(server).chain([collection.tool_handle(number).to_owned()]) {
            names.insert(super::trec::word(&name).into_owned(), number);
            names.insert(name, number);
        }
    }
    // Where two tools share a name, the one that the queries file means is that of the handle.
    for number in 0..collection.catalog.len() as u32 {
        names.insert(collection.tool_handle(number).to_owned(), number);
    }
    names
}

fn parse<'t>(line: &'t str, tools: &BTreeMap<String, u32>) -> Result<Line<'t>, String> {
    let tool = |name: &str| {
        tools.get(name).copied().ok_or_else(|| {
            let hint = if name.contains("%g") { "; of a TREC export only `run.strict` can be read back" } else { "" };
            format!("tool `{name}` is not in the catalog{hint}")
        })
    };
    let score = |text: &str| match text.parse::<f64>() {
        Ok(score) if score.is_finite() => Ok(score),
        _ => Err(format!("the score `{text}` is not a number")),
    };
    let rank = |text: &str| text.parse::<u64>().map_err(|_| format!("the rank `{text}` is not a whole number"));
    let tabs: Vec<&str> = line.split('\t').collect();
    if let [query, place, name, rest @ ..] = tabs.as_slice()
        && *place != "Q0"
    {
        let rank = rank(place)?;
        // Without scores the rank decides.
        let score = rest.first().map_or(Ok(-(rank as f64)), |text| score(text))?;
        return Ok(Line { query, tool: tool(name)?, rank, score });
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let [query, _, name, place, value, _] = words.as_slice() else {
        return Err("neither `query Q0 tool rank score tag` nor `query<TAB>rank<TAB>tool<TAB>score`".to_owned());
    };
    Ok(Line { query, tool: tool(name)?, rank: rank(place)?, score: score(value)? })
}

/// Best first, equal scores by rank.
fn ranking(mut lines: Vec<Line<'_>>) -> Ranking {
    lines.sort_by(|left, right| {
        right.score.partial_cmp(&left.score).unwrap_or(Ordering::Equal).then(left.rank.cmp(&right.rank))
    });
    let tools: Vec<(u32, f64)> = lines.iter().map(|line| (line.tool, line.score)).collect();
    Ranking::of_scores(LONGEST as u64, &tools)
}

#[cfg(test)]
mod tests {
    use super::super::collection::Source;
    use super::super::record::Origin;
    use super::*;

    fn collection() -> Collection {
        let tools = r#"[{"name": "create_issue", "server": "forge", "description": "Open a ticket"},
            {"name": "send mail", "server": "post", "description": "Send a letter"}]"#;
        let queries = r#"{"id": "1", "query": "open a ticket", "relevant": ["create_issue"]}
            {"id": "2", "query": "phone home", "relevant": []}"#;
        let source = |text: &'static str| Source { path: Path::new("test"), bytes: text.as_bytes() };
        Collection::from_bytes("test", Origin::Embedded, source(tools), source(queries)).unwrap()
    }

    fn read(text: &str) -> Result<Vec<Vec<u32>>, String> {
        let imported = read_run(Path::new("run"), text, &collection()).map_err(|error| error.to_string())?;
        Ok(imported.iter().map(|ranking| ranking.hits.iter().map(|hit| hit.item).collect()).collect())
    }

    #[test]
    fn both_forms_are_read_by_score_and_rank() {
        let table = [
            ("1\t1\tsend mail\n1\t2\tcreate_issue\n", vec![vec![1, 0], vec![]]),
            ("1\t1\tsend mail\t3\n1\t2\tforge:create_issue\t5.5\n", vec![vec![0, 1], vec![]]),
            ("\u{feff}2 Q0 send%20mail 2 1.5 me\n2 Q0 create_issue 1 1.5 me\n\n", vec![vec![], vec![0, 1]]),
            ("", vec![vec![], vec![]]),
        ];
        for (text, expected) in table {
            assert_eq!(read(text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn ties_are_kept() {
        let imported =
            read_run(Path::new("run"), "1\t1\tsend mail\t3\n1\t2\tcreate_issue\t3\n", &collection()).unwrap();
        let hits = &imported[0].hits;
        assert_eq!(hits[0].score, hits[1].score);
    }

    #[test]
    fn what_is_no_run_is_refused_with_its_line() {
        let table = [
            ("hello", "run:1: neither `query Q0 tool rank score tag` nor `query<TAB>rank<TAB>tool<TAB>score`"),
            ("1\t1\tsend mail\n3\t1\tsend mail", "run:2: query `3` is not in the queries file"),
            ("1\t1\tsend mail\n1\t2\tsend mail", "run:2: query `1` has this tool twice"),
            ("1\t1\tsing", "run:1: tool `sing` is not in the catalog"),
            ("1\tone\tsend mail", "run:1: the rank `one` is not a whole number"),
            ("1 Q0 create_issue 1 NaN me", "run:1: the score `NaN` is not a number"),
            (
                "1 Q0 create_issue%g1 1 1 me",
                "run:1: tool `create_issue%g1` is not in the catalog; of a TREC export only `run.strict` can be read back",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(read(text).unwrap_err(), expected, "{text:?}");
        }
    }
}
