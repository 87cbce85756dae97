//! Rankings from a file that somebody else wrote: the way in for an engine that the harness cannot run.
//!
//! Two forms are read, and a file may have only one: lines of TREC (`query Q0 tool rank score tag`) and those of
//! `bench eval --run-out`. What a file says is taken at its word and never called measured: nobody here ran the engine.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::collection::Collection;
use super::engine::Ranking;
use super::process::conformance::{Conformance, Row, Sheet};
use super::trec::word;

/// A tool more often than this in one ranking, or a ranking longer than this, is not a ranking of tools.
const LONGEST: usize = 100_000;

/// A file is not a run of the collection.
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

/// One line of a run, without its query.
struct Line {
    tool: u32,
    rank: u64,
    score: f64,
    /// Whether it states the score; else that follows from the rank.
    is_scored: bool,
}

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Trec,
    Tabs,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Trec => "TREC",
            Self::Tabs => "tab-separated",
        }
    }
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("neither `query Q0 tool rank score tag` nor `query<TAB>rank<TAB>tool<TAB>score`")]
    Form,
    #[error("query `{0}` is not in the queries file")]
    Query(String),
    #[error("tool `{name}` is not in the catalog{hint}")]
    Tool { name: String, hint: &'static str },
    #[error("query `{0}` has this tool twice")]
    Twice(String),
    #[error("the rank `{0}` is not a whole number")]
    Rank(String),
    #[error("the score `{0}` is not a number")]
    Score(String),
    #[error("query `{0}` has more than {LONGEST} tools")]
    Longest(String),
    #[error("`{name}` does not have the id `{id}`, which is another tool")]
    Id { name: String, id: String },
    #[error("this line is {0} and those above are not; write all in one form")]
    Mixed(&'static str),
    #[error("this line has {} and those above {}; write one on every line or on none", if *.is_scored { "a score" } else { "no score" }, if *.is_scored { "have none" } else { "have one" })]
    Scores { is_scored: bool },
    #[error("no query is answered; write a line for each tool that is found for a query")]
    Empty,
}

/// Reads lines of a run, one by one.
struct Reader<'c> {
    queries: BTreeMap<&'c str, usize>,
    /// The queries as lines of TREC name them.
    words: BTreeMap<String, usize>,
    tools: BTreeMap<String, u32>,
    seen: BTreeSet<(usize, u32)>,
    /// Whether the lines so far have scores.
    has_scores: Option<bool>,
    /// The lines of each query.
    lines: Vec<Vec<Line>>,
}

impl<'c> Reader<'c> {
    fn new(collection: &'c Collection) -> Self {
        let queries = &collection.queries;
        let numbered = || queries.iter().map(|query| query.id.as_str()).zip(0..);
        Self {
            queries: numbered().collect(),
            words: numbered().map(|(id, number)| (word(id).into_owned(), number)).collect(),
            tools: names(collection),
            seen: BTreeSet::new(),
            has_scores: None,
            lines: queries.iter().map(|_| Vec::new()).collect(),
        }
    }

    /// Takes a line that is not empty.
    fn take(&mut self, text: &str) -> Result<(), Fault> {
        let (name, line) = parse(text, &self.tools)?;
        // Different ids are different words, and a file of another program may have the ids as they are.
        let by_word = self.words.get(name).filter(|_| form(text) == Some(Form::Trec));
        let query = by_word.or_else(|| self.queries.get(name)).copied();
        let query = query.ok_or_else(|| Fault::Query(name.to_owned()))?;
        let is_scored = line.is_scored;
        if *self.has_scores.get_or_insert(is_scored) != is_scored {
            // A rank and a score cannot be set against each other.
            return Err(Fault::Scores { is_scored });
        }
        if !self.seen.insert((query, line.tool)) {
            return Err(Fault::Twice(name.to_owned()));
        }
        if self.lines[query].len() == LONGEST {
            return Err(Fault::Longest(name.to_owned()));
        }
        self.lines[query].push(line);
        Ok(())
    }
}

/// The lines of a run that are not empty, with their numbers from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.trim_start_matches('\u{feff}').lines()).filter(|(_, line)| !line.trim().is_empty())
}

/// Reads a run of `collection`. Queries that the file does not name have an empty ranking.
///
/// # Errors
/// [`RunFileError`] at the first line that is of neither form or of another than those above, or names an unknown query or
/// tool, a tool by the id of another, a tool twice for a query, or a score that is not a number, or has a score where those
/// above have none; and for a file without lines.
pub fn read_run(path: &Path, text: &str, collection: &Collection) -> Result<Vec<Ranking>, RunFileError> {
    let mut reader = Reader::new(collection);
    let refuse = |line: usize, fault: &Fault| RunFileError { path: path.to_owned(), line, reason: fault.to_string() };
    let first = lines(text).next().ok_or_else(|| refuse(1, &Fault::Empty))?;
    let of_all = form(first.1);
    for (line, text) in lines(text) {
        match form(text) {
            Some(other) if of_all != Some(other) => return Err(refuse(line, &Fault::Mixed(other.name()))),
            _ => reader.take(text).map_err(|fault| refuse(line, &fault))?,
        }
    }
    Ok(reader.lines.into_iter().map(ranking).collect())
}

/// The answer of an engine names what is not in the collection, or a tool twice.
#[derive(Debug, thiserror::Error)]
#[error("the answer to query `{query}`: {reason}")]
pub struct AnswerError {
    /// The id of the query.
    pub query: String,
    /// What is wrong.
    pub reason: String,
}

/// The rankings that an engine gave by naming tools, the best first, for each query of `collection` in turn. A query for which
/// it found nothing has an empty ranking.
///
/// # Errors
/// [`AnswerError`] for the first query with an unknown tool, a tool twice, or more tools than a ranking has.
pub fn rankings_of(found: &[Vec<String>], collection: &Collection) -> Result<Vec<Ranking>, AnswerError> {
    let tools = names(collection);
    let ranked = |found: &Vec<String>| {
        if found.len() > LONGEST {
            return Err(format!("it has more than {LONGEST} tools"));
        }
        let mut seen = BTreeSet::new();
        let mut lines = Vec::with_capacity(found.len());
        for (rank, name) in (1..).zip(found) {
            let tool = *tools.get(name).ok_or_else(|| format!("tool `{name}` is not in the catalog"))?;
            if !seen.insert(tool) {
                return Err(format!("it has the tool `{name}` twice"));
            }
            lines.push(Line { tool, rank, score: -(rank as f64), is_scored: false });
        }
        Ok(ranking(lines))
    };
    let answers = collection.queries.iter().zip(found);
    let refused = |query: &str, reason| AnswerError { query: query.to_owned(), reason };
    answers.map(|(query, found)| ranked(found).map_err(|reason| refused(&query.id, reason))).collect()
}

const RULES: [Row; 8] = [
    (
        "form",
        "every line has one of the two forms, and all have the same",
        "write `query Q0 tool rank score tag`, or query, rank, tool and score with tabs between them",
    ),
    ("numbers", "ranks are whole numbers, scores are numbers", "write ranks as 1, 2, 3 and scores as 17.25"),
    ("queries", "queries are named as in the queries file", "name each query by its `id` in the queries file"),
    (
        "tools",
        "tools are named as in the queries file, as server:name, or by id",
        "name each tool as in the catalog; in TREC forms a space is %20",
    ),
    ("once", "no query lists a tool twice", "keep the best of the lines"),
    ("answered", "the file answers queries", "write a line for each tool that is found for a query"),
    ("length", "queries have tools", ""),
    ("ties", "equal scores are ties", ""),
];

/// Faults that are listed for a rule, at most.
const SHOWN: usize = 20;

/// Whether a file is a run of `collection`: what [`read_run`] says of its first mistake, of all of them, and what is in it.
#[must_use]
pub fn check_run(text: &str, collection: &Collection) -> Conformance {
    let (mut reader, mut sheet) = (Reader::new(collection), Sheet::new(&RULES));
    let mut forms: BTreeMap<&str, usize> = BTreeMap::new();
    let mut faults: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut count = 0;
    for (number, line) in lines(text) {
        count += 1;
        let name = form(line).map_or("neither", Form::name);
        *forms.entry(name).or_default() += 1;
        if let Err(fault) = reader.take(line) {
            let rule = match fault {
                Fault::Form | Fault::Mixed(_) | Fault::Scores { .. } => "form",
                Fault::Rank(_) | Fault::Score(_) => "numbers",
                Fault::Query(_) => "queries",
                Fault::Tool { .. } | Fault::Id { .. } => "tools",
                Fault::Empty => "answered",
                Fault::Twice(_) | Fault::Longest(_) => "once",
            };
            faults.entry(rule).or_default().push(format!("line {number}: {fault}"));
        }
    }
    let mixed: Vec<String> = forms.iter().map(|(name, lines)| format!("{name}: {lines} lines")).collect();
    if forms.len() > 1 {
        faults.entry("form").or_default().insert(0, mixed.join(", "));
    }
    for (rule, mut found) in faults {
        let surplus = found.len().saturating_sub(SHOWN);
        found.truncate(SHOWN);
        found.extend((surplus > 0).then(|| format!("and {surplus} more")));
        sheet.wrong(rule, found, None);
    }
    let mut lengths: Vec<usize> = reader.lines.iter().map(Vec::len).filter(|length| *length > 0).collect();
    lengths.sort_unstable();
    let answered = format!("{} of {} queries", lengths.len(), reader.lines.len());
    match lengths.as_slice() {
        [] => sheet.wrong("answered", vec![answered], None),
        [least, ..] => {
            RULES.iter().for_each(|row| sheet.ok(row.0));
            let (middle, most) = (lengths[lengths.len() / 2], lengths[lengths.len() - 1]);
            sheet.note("form", vec![mixed.join(", ")]);
            sheet.note("answered", vec![format!("{answered}; the others count as unanswered")]);
            sheet.note("length", vec![format!("from {least} to {most} tools, {middle} in the middle")]);
            let is_tied = |lines: &&Vec<Line>| {
                let mut scores: Vec<f64> = lines.iter().map(|line| line.score).collect();
                scores.sort_by(f64::total_cmp);
                scores.windows(2).any(|pair| pair[0] == pair[1])
            };
            let tied = reader.lines.iter().filter(is_tied).count();
            sheet.note("ties", vec![format!("{tied} of the answered queries have equal scores; {count} lines in all")]);
        }
    }
    sheet.done()
}

/// The form of a line, by what separates its words.
fn form(line: &str) -> Option<Form> {
    let tabs: Vec<&str> = line.split('\t').collect();
    match tabs.as_slice() {
        [_, place, _, ..] if *place != "Q0" => Some(Form::Tabs),
        _ => (line.split_whitespace().count() == 6).then_some(Form::Trec),
    }
}

/// Every name by which a run may call a tool: as a queries file does, `server:name`, the id, and each as TREC forms write
/// it.
fn names(collection: &Collection) -> BTreeMap<String, u32> {
    let mut names = BTreeMap::new();
    for (number, item) in (0..).zip(collection.catalog.items()) {
        let server = item.server.as_deref().map(|server| format!("{server}:{}", item.name));
        for name in [item.id.clone()].into_iter().chain(server).chain([collection.tool_handle(number).to_owned()]) {
            names.insert(word(&name).into_owned(), number);
            names.insert(name, number);
        }
    }
    // Where two tools share a name, the one that the queries file means is that of the handle.
    for number in 0..collection.catalog.len() as u32 {
        names.insert(collection.tool_handle(number).to_owned(), number);
    }
    names
}

/// The query of a line, and the rest of it.
fn parse<'t>(line: &'t str, tools: &BTreeMap<String, u32>) -> Result<(&'t str, Line), Fault> {
    let tool = |name: &str| {
        let hint = if name.contains("%g") { "; of a TREC export only `run.strict` can be read back" } else { "" };
        tools.get(name).copied().ok_or_else(|| Fault::Tool { name: name.to_owned(), hint })
    };
    let score = |text: &str| match text.parse::<f64>() {
        Ok(score) if score.is_finite() => Ok(score),
        _ => Err(Fault::Score(text.to_owned())),
    };
    let rank = |text: &str| text.parse::<u64>().map_err(|_| Fault::Rank(text.to_owned()));
    let tabs: Vec<&str> = line.split('\t').collect();
    if let (Some(Form::Tabs), [query, place, name, rest @ ..]) = (form(line), tabs.as_slice()) {
        let rank = rank(place)?;
        // Without scores the rank decides.
        let score = rest.first().map_or(Ok(-(rank as f64)), |text| score(text))?;
        let tool = tool(name)?;
        // An id that no tool has is of an earlier definition; the name tells which tool is meant.
        if let Some(id) = rest.get(1)
            && tools.get(*id).is_some_and(|other| *other != tool)
        {
            return Err(Fault::Id { name: (*name).to_owned(), id: (*id).to_owned() });
        }
        return Ok((query, Line { tool, rank, score, is_scored: !rest.is_empty() }));
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let [query, _, name, place, value, _] = words.as_slice() else { return Err(Fault::Form) };
    Ok((query, Line { tool: tool(name)?, rank: rank(place)?, score: score(value)?, is_scored: true }))
}

/// Best first, equal scores by rank.
fn ranking(mut lines: Vec<Line>) -> Ranking {
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
            (
                "1\t1\tsend mail\t3\tpost:send mail\n1\t2\tcreate_issue\t1\tof-an-earlier-definition",
                vec![vec![1, 0], vec![]],
            ),
            ("\u{feff}2 Q0 send%20mail 2 1.5 me\n2 Q0 create_issue 1 1.5 me\n\n", vec![vec![], vec![0, 1]]),
        ];
        for (text, expected) in table {
            assert_eq!(read(text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn queries_of_any_id_come_back_from_a_trec_export() {
        let ids = ["q 1", "q%201", "100%", "\u{a0}é", "plain"];
        let tools = r#"[{"name": "send mail", "description": "Send a letter"}]"#;
        let line = |id: &str| serde_json::json!({"id": id, "query": "x", "relevant": ["send mail"]}).to_string() + "\n";
        let lines: String = ids.into_iter().map(line).collect();
        let source = |text| Source { path: Path::new("test"), bytes: str::as_bytes(text) };
        let collection = Collection::from_bytes("test", Origin::Embedded, source(tools), source(&lines)).unwrap();
        for (number, id) in ids.into_iter().enumerate() {
            let text = format!("{} Q0 send%20mail 1 1 me\n", word(id));
            let read = read_run(Path::new("run"), &text, &collection).unwrap();
            let found: Vec<usize> = (0..ids.len()).filter(|place| !read[*place].hits.is_empty()).collect();
            assert_eq!(found, [number], "{text}");
        }
        // As other programs write them, and in lines with tabs.
        for (text, expected) in
            [("100% Q0 send%20mail 1 1 me", 2), ("q%201\t1\tsend mail", 1), ("q 1\t1\tsend mail", 0)]
        {
            let read = read_run(Path::new("run"), text, &collection).unwrap();
            assert!(!read[expected].hits.is_empty(), "{text}");
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
            ("", "run:1: no query is answered; write a line for each tool that is found for a query"),
            ("\n \n", "run:1: no query is answered; write a line for each tool that is found for a query"),
            (
                "1 Q0 send%20mail 1 2 me\n1\t2\tcreate_issue",
                "run:2: this line is tab-separated and those above are not; write all in one form",
            ),
            (
                "1\t1\tsend mail\t3\tforge:create_issue",
                "run:1: `send mail` does not have the id `forge:create_issue`, which is another tool",
            ),
            (
                "1\t1\tsend mail\n1\t2\tcreate_issue\t5",
                "run:2: this line has a score and those above have none; write one on every line or on none",
            ),
            (
                "1\t1\tsend mail\t5\n2\t1\tcreate_issue",
                "run:2: this line has no score and those above have one; write one on every line or on none",
            ),
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
