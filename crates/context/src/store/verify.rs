//! A session file checked whole: everything that is wrong with it, each with its line.
//!
//! [`Session::parse`] refuses a file at the first broken rule. This names all of them. A file that is not JSON as a whole is
//! read line by line, as [`Session::write`] lays it out, so that one broken line hides no other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::session::{Content, SCHEMA, Session, agrees};
use crate::event::{ArtifactRef, ContentHash, ContextItem, Episode, Fact, ItemId, TranscriptError};

/// What a session file has, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Verification {
    /// The number of events.
    pub events: usize,
    /// The number of artifacts.
    pub artifacts: usize,
    /// The number of facts.
    pub facts: usize,
    /// The number of episodes.
    pub episodes: usize,
    /// What is wrong, in the order of the lines; empty where nothing is.
    pub problems: Vec<SessionProblem>,
}

/// One thing that is wrong with a session file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SessionProblem {
    /// The line, from 1; none for what no line shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What is wrong, with the event, artifact, content, fact or episode that it is about.
    pub reason: String,
}

/// A member of the file that is an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Events,
    Artifacts,
    Contents,
    Facts,
    Episodes,
}

impl Part {
    /// Each part: its name in the file, and what one of its items is called.
    const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Events, "events", "event"),
        (Self::Artifacts, "artifacts", "artifact"),
        (Self::Contents, "contents", "content"),
        (Self::Facts, "facts", "fact"),
        (Self::Episodes, "episodes", "episode"),
    ];

    fn one(self) -> &'static str {
        Self::ALL.iter().find(|(part, ..)| *part == self).map_or("", |(_, _, one)| one)
    }
}

/// The members of a file, their items not read yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Members<'f> {
    format: String,
    schema: u32,
    #[serde(default, rename = "source")]
    _source: String,
    #[serde(borrow)]
    events: Vec<&'f RawValue>,
    #[serde(borrow, default)]
    artifacts: Vec<&'f RawValue>,
    #[serde(borrow, default)]
    contents: Vec<&'f RawValue>,
    #[serde(borrow, default)]
    facts: Vec<&'f RawValue>,
    #[serde(borrow, default)]
    episodes: Vec<&'f RawValue>,
}

/// An item of a part, with its place in the file.
struct Row<'f> {
    part: Part,
    /// Its position within its part, from 1.
    position: usize,
    line: usize,
    text: &'f str,
}

impl Row<'_> {
    fn read<'r, T: Deserialize<'r>>(&'r self, problems: &mut Vec<SessionProblem>) -> Option<T> {
        match serde_json::from_str(self.text) {
            Ok(item) => Some(item),
            Err(error) => {
                problems.push(problem(self.line + error.line().max(1) - 1, self.said(&reason(&error))));
                None
            }
        }
    }

    fn said(&self, what: &str) -> String {
        format!("{} {}: {what}", self.part.one(), self.position)
    }
}

/// Checks the bytes of a session file; gives the session too where nothing is wrong with it.
#[must_use]
pub fn verify_session(bytes: &[u8]) -> (Verification, Option<Session>) {
    let mut found = Verification::default();
    let rows = rows(bytes, &mut found.problems);
    let of = |part: Part| rows.iter().filter(move |row| row.part == part);
    let problems = &mut found.problems;
    let events: Vec<(&Row<'_>, ContextItem)> =
        of(Part::Events).filter_map(|row| Some((row, row.read(problems)?))).collect();
    let artifacts: Vec<(&Row<'_>, ArtifactRef)> =
        of(Part::Artifacts).filter_map(|row| Some((row, row.read(problems)?))).collect();
    order(&events, problems);
    let known = contents(of(Part::Contents), &artifacts, problems);
    for (row, item) in &events {
        let Some(named) = &item.artifact else { continue };
        let what = format!("event {} (`{}`): its artifact `{}`", row.position, item.id, named.handle);
        match known.get(named.handle.as_str()) {
            None => problems.push(problem(row.line, format!("{what} is not in the file"))),
            Some(kept) if *kept != named => {
                problems.push(problem(row.line, format!("{what} is described differently in `artifacts`")));
            }
            Some(_) => {}
        }
    }
    let facts = of(Part::Facts).filter_map(|row| Some((row, row.read::<Fact>(problems)?.key))).collect();
    distinct("fact", facts, problems);
    let episodes = of(Part::Episodes).filter_map(|row| Some((row, row.read::<Episode>(problems)?.id))).collect();
    distinct("episode", episodes, problems);
    [found.events, found.artifacts, found.facts, found.episodes] =
        [Part::Events, Part::Artifacts, Part::Facts, Part::Episodes].map(|part| of(part).count());
    // What reads sessions has the last word.
    if !found.problems.is_empty() {
        found.problems.sort();
        return (found, None);
    }
    let session = Session::parse(bytes, Path::new("session"));
    found.problems.extend(session.as_ref().err().map(|error| SessionProblem { line: None, reason: error.to_string() }));
    (found, session.ok())
}

/// The items of a file; what is wrong with the file around them goes to `problems`.
fn rows<'f>(bytes: &'f [u8], problems: &mut Vec<SessionProblem>) -> Vec<Row<'f>> {
    let error = match serde_json::from_slice::<Members<'f>>(bytes) {
        Ok(members) if members.format != Session::FORMAT => {
            let reason = format!("its format is `{}`; a session has `{}`", members.format, Session::FORMAT);
            problems.push(SessionProblem { line: None, reason });
            return Vec::new();
        }
        Ok(members) if members.schema != SCHEMA => {
            let reason = format!("it has schema {}; this version reads schema {SCHEMA}", members.schema);
            problems.push(SessionProblem { line: None, reason });
            return Vec::new();
        }
        Ok(members) => return members.rows(bytes),
        Err(error) => error,
    };
    let (rows, mut broken) = by_lines(bytes);
    if broken.is_empty() {
        broken.push(problem(error.line().max(1), format!("not a session: {}", reason(&error))));
    }
    problems.append(&mut broken);
    rows
}

impl<'f> Members<'f> {
    fn rows(self, bytes: &[u8]) -> Vec<Row<'f>> {
        let ends: Vec<usize> = memchr::memchr_iter(b'\n', bytes).collect();
        // An item borrows from the bytes: where it begins there tells its line.
        let line = |text: &str| {
            let at = (text.as_ptr() as usize).saturating_sub(bytes.as_ptr() as usize);
            ends.partition_point(|end| *end < at) + 1
        };
        let parts = [
            (Part::Events, self.events),
            (Part::Artifacts, self.artifacts),
            (Part::Contents, self.contents),
            (Part::Facts, self.facts),
            (Part::Episodes, self.episodes),
        ];
        let row = |part: Part, (position, item): (usize, &'f RawValue)| Row {
            part,
            position,
            line: line(item.get()),
            text: item.get(),
        };
        parts.into_iter().flat_map(|(part, items)| (1..).zip(items).map(move |item| row(part, item))).collect()
    }
}

/// The items of a file that has one on each line, and the lines that hold none.
fn by_lines(bytes: &[u8]) -> (Vec<Row<'_>>, Vec<SessionProblem>) {
    let (mut rows, mut broken) = (Vec::new(), Vec::new());
    let mut open: Option<(Part, usize)> = None;
    for (line, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let text = text.trim_ascii();
        let (text, begins) = (text.strip_suffix(b",").unwrap_or(text), |name: &str| {
            text.strip_prefix(format!("\"{name}\": [").as_bytes())
        });
        if let Some((part, rest)) = Part::ALL.iter().find_map(|(part, name, _)| Some((*part, begins(name)?))) {
            open = rest.is_empty().then_some((part, 0));
        } else if text == b"]" || text == b"}" {
            open = None;
        } else if let Some((part, position)) = &mut open
            && !text.is_empty()
        {
            *position += 1;
            match serde_json::from_slice::<&RawValue>(text) {
                Ok(item) => rows.push(Row { part: *part, position: *position, line, text: item.get() }),
                Err(error) => broken.push(problem(line, format!("{} {position}: {}", part.one(), reason(&error)))),
            }
        }
    }
    (rows, broken)
}

/// Checks ids and parents.
fn order(events: &[(&Row<'_>, ContextItem)], problems: &mut Vec<SessionProblem>) {
    let mut first: HashMap<&ItemId, usize> = HashMap::new();
    for (row, item) in events {
        let first = *first.entry(&item.id).or_insert(row.position);
        if first != row.position {
            let error = TranscriptError::Duplicate { id: item.id.clone(), first, second: row.position };
            problems.push(problem(row.line, error.to_string()));
        }
    }
    for (row, item) in events {
        let (Some(parent), position) = (&item.parent_id, row.position) else { continue };
        let (id, parent_id) = (item.id.clone(), parent.clone());
        let error = match first.get(parent) {
            None => TranscriptError::MissingParent { id, parent: parent_id, position },
            Some(first) if *parent == id && *first == position => {
                TranscriptError::Cycle { id, through: vec![parent_id], position }
            }
            Some(later) if *later > position => {
                TranscriptError::LateParent { id, parent: parent_id, position, later: *later }
            }
            Some(_) => continue,
        };
        problems.push(problem(row.line, error.to_string()));
    }
}

/// The line of a content, and its bytes, unless it was altered.
type Kept = (usize, Option<Arc<[u8]>>);

/// Checks contents and artifacts against each other; gives the artifacts by their handles.
fn contents<'a, 'f: 'a>(
    rows: impl Iterator<Item = &'a Row<'f>>,
    artifacts: &'a [(&'a Row<'f>, ArtifactRef)],
    problems: &mut Vec<SessionProblem>,
) -> BTreeMap<&'a str, &'a ArtifactRef> {
    let mut bytes: BTreeMap<ContentHash, Kept> = BTreeMap::new();
    for row in rows {
        let Some(content) = row.read::<Content>(problems) else { continue };
        let hash = content.content_hash.clone();
        if bytes.contains_key(&hash) {
            problems.push(problem(row.line, row.said(&format!("the hash {hash} appears twice"))));
            continue;
        }
        // One that was altered is there, and said to be altered once.
        let body = content.bytes(row.position).map_err(|reason| problems.push(problem(row.line, reason))).ok();
        bytes.insert(hash, (row.line, body));
    }
    let mut unused: BTreeSet<&ContentHash> = bytes.keys().collect();
    let mut known: BTreeMap<&str, &ArtifactRef> = BTreeMap::new();
    for (row, reference) in artifacts {
        if known.insert(reference.handle.as_str(), reference).is_some() {
            problems.push(problem(row.line, format!("artifact `{}` appears twice", reference.handle)));
        }
        unused.remove(&reference.content_hash);
        let content = bytes.get(&reference.content_hash);
        if matches!(content, Some((_, None))) {
            continue;
        }
        if let Err(reason) = agrees(reference, content.and_then(|(_, content)| content.as_ref())) {
            problems.push(problem(row.line, reason));
        }
    }
    for hash in unused {
        problems.push(problem(bytes[hash].0, format!("the content {hash} belongs to no artifact")));
    }
    known
}

/// Names the second of two equal names.
fn distinct(what: &str, names: Vec<(&Row<'_>, String)>, problems: &mut Vec<SessionProblem>) {
    let mut seen = BTreeSet::new();
    for (row, name) in names {
        if !seen.insert(name.clone()) {
            problems.push(problem(row.line, format!("{what} `{name}` appears twice")));
        }
    }
}

fn problem(line: usize, reason: String) -> SessionProblem {
    SessionProblem { line: Some(line), reason }
}

/// What a parser says, without its place, which is that of the item.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{
"format": "contextweaver session",
"schema": 1,
"source": "a test",
"events": [
{"id":"u1","kind":"user_turn","text":"Why?","sensitivity":"public"},
{"id":"tc1","kind":"tool_call","text":"look()","parent_id":"u1","sensitivity":"public"},
{"id":"r1","kind":"tool_result","text":"rows","parent_id":"tc1","sensitivity":"public","artifact":{"handle":"a","media_type":"text/plain","size_bytes":5,"label":"why","content_hash":"c73b73af8851e9e91bc6b4dc12e7dace0a2bfb931c1d0b8b36ef367319f58cd1"}}
],
"artifacts": [
{"handle":"a","media_type":"text/plain","size_bytes":5,"label":"why","content_hash":"c73b73af8851e9e91bc6b4dc12e7dace0a2bfb931c1d0b8b36ef367319f58cd1"}
],
"contents": [
{"content_hash":"c73b73af8851e9e91bc6b4dc12e7dace0a2bfb931c1d0b8b36ef367319f58cd1","body":{"text":"line\n"}}
],
"facts": [
{"key":"zone","value":"UTC"},
{"key":"region","value":"eu-west-1"}
],
"episodes": [
{"id":"e1","summary":"first"}
]
}
"#;

    fn shown(text: &str) -> String {
        let (found, _) = verify_session(text.as_bytes());
        let line = |line: Option<usize>| line.map_or_else(|| "-".to_owned(), |line| line.to_string());
        found.problems.iter().map(|one| format!("{}: {}\n", line(one.line), one.reason)).collect()
    }

    #[test]
    fn a_good_file_is_counted() {
        let (found, _) = verify_session(GOOD.as_bytes());
        let counts = (found.events, found.artifacts, found.facts, found.episodes);
        assert_eq!((counts, found.problems), ((3, 1, 2, 1), Vec::new()));
        // Its layout is not part of the form.
        let compact: serde_json::Value = serde_json::from_str(GOOD).unwrap();
        assert_eq!(shown(&compact.to_string()), "");
        assert_eq!(shown(&serde_json::to_string_pretty(&compact).unwrap()), "");
    }

    #[test]
    fn everything_that_is_wrong_is_named_with_its_line() {
        let table: &[&[(&str, &str)]] = &[
            &[("\"id\":\"tc1\"", "\"id\":\"u1\"")],
            &[("\"parent_id\":\"u1\"", "\"parent_id\":\"r1\"")],
            &[("\"parent_id\":\"u1\"", "\"parent_id\":\"tc1\"")],
            &[("user_turn", "user_trun"), ("\"key\":\"region\"", "\"key\":\"zone\""), ("line\\n", "lime\\n")],
            &[("artifact\":{\"handle\":\"a\"", "artifact\":{\"handle\":\"b\"")],
            &[(
                "artifact\":{\"handle\":\"a\",\"media_type\":\"text/plain\"",
                "artifact\":{\"handle\":\"a\",\"media_type\":\"text/html\"",
            )],
            &[(
                "{\"handle\":\"a\",\"media_type\":\"text/plain\",\"size_bytes\":5,\"label\":\"why\",\"content_hash\":\"c73b73af8851e9e91bc6b4dc12e7dace0a2bfb931c1d0b8b36ef367319f58cd1\"}\n",
                "",
            )],
            &[
                ("{\"id\":\"tc1\"", "{\"id\":\"tc1"),
                ("{\"key\":\"zone\"", "{key:\"zone\""),
                ("\"id\":\"e1\"", "\"id\":1"),
            ],
            &[("\"sensitivity\":\"public\"},\n{\"id\":\"tc1\"", "\"sensitivity\":\"public\"}\n{\"id\":\"tc1\"")],
            &[("\"schema\": 1", "\"schema\": 2")],
            &[("\"schema\": 1", "\"schema\": 1, \"later\": 0"), ("\"parent_id\":\"u1\"", "\"parent_id\":\"u0\"")],
            &[("contextweaver session", "other")],
            &[("\n}\n", "")],
        ];
        let mut said = String::new();
        for changes in table {
            let mut text = GOOD.to_owned();
            for (from, to) in *changes {
                assert!(text.contains(from), "{from}");
                text = text.replacen(from, to, 1);
            }
            let found = shown(&text);
            assert!(!found.is_empty(), "{changes:?}");
            assert!(
                Session::parse(text.as_bytes(), Path::new("s")).is_err() || found.contains("its artifact"),
                "{found}"
            );
            said += &format!("{found}\n");
        }
        for (name, text) in [("empty", ""), ("a list", "[]"), ("prose", "no session"), ("deep", &"[".repeat(100_000))] {
            said += &format!("{name}: {}", shown(text));
        }
        insta::assert_snapshot!(said, @r"
        7: event 2: event 1 already has the id `u1`; ids must be unique
        8: event 3 (`r1`): its parent `tc1` is not in the log

        7: event 2 (`tc1`): its parent `r1` comes later, as event 3; write events in time order

        7: event 2 (`tc1`) is its own ancestor, via `tc1`

        6: event 1: unknown variant `user_trun`, expected one of `user_turn`, `agent_msg`, `tool_call`, `tool_result`, `doc_snippet`, `retrieved_doc`, `memory_fact`, `plan_state`, `policy`
        7: event 2 (`tc1`): its parent `u1` is not in the log
        14: content 1 was altered: it has the hash 17aa564790a08dff4491734166551228529c3c6f2f3f3334f10c1815fc29b197, not c73b73af8851e9e91bc6b4dc12e7dace0a2bfb931c1d0b8b36ef367319f58cd1
        18: fact `zone` appears twice

        8: event 3 (`r1`): its artifact `b` is not in the file

        8: event 3 (`r1`): its artifact `a` is described differently in `artifacts`

        8: event 3 (`r1`): its artifact `a` is not in the file
        13: the content c73b73af8851e9e91bc6b4dc12e7dace0a2bfb931c1d0b8b36ef367319f58cd1 belongs to no artifact

        7: event 2: expected `,` or `}`
        8: event 3 (`r1`): its parent `tc1` is not in the log
        17: fact 1: key must be a string
        21: episode 1: invalid type: integer `1`, expected a string

        7: not a session: expected `,` or `]`

        -: it has schema 2; this version reads schema 1

        3: not a session: unknown field `later`, expected one of `format`, `schema`, `source`, `events`, `artifacts`, `contents`, `facts`, `episodes`
        7: event 2 (`tc1`): its parent `u0` is not in the log

        -: its format is `other`; a session has `contextweaver session`

        22: not a session: EOF while parsing an object

        empty: 1: not a session: EOF while parsing a value
        a list: 1: not a session: invalid length 0, expected struct Members with 8 elements
        prose: 1: not a session: expected ident
        deep: 1: not a session: invalid type: sequence, expected a string
        ");
    }
}
