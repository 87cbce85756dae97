//! The file that keeps what a program was asked and what it said, so that the same figures come of it without the program.
//!
//! JSON lines: for each program one line about it, then one for each question in the order of the queries. The definitions of
//! tools are not repeated in every line; a digest of the whole question stands for them, and answers to other questions are
//! refused.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};

use super::{Answers, Asking, FORMS, MOST_CARDS, Questions};
use crate::eval::collection::Collection;
use crate::eval::engine::Ranking;
use crate::eval::error::EvalError;
use crate::eval::process::bounded;
use crate::eval::process::choose::Said;
use contextweaver_core::catalog::ToolFormat;

/// The version of the form.
const SCHEMA: u32 = 1;

/// Bytes of a line at most: a prompt has at most 100,000 tokens, and no token more than 128 bytes.
const LONGEST_LINE: u64 = 16 << 20;

/// Bytes of a file at most.
const MOST_BYTES: u64 = 4 << 30;

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// A program; the lines after it are what it said.
    Chooser(Head),
    /// A question and what was said.
    Choice(Exchange),
}

/// What is known of a program and what it was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    schema_version: u32,
    /// The name under which its results are shown.
    chooser: String,
    /// What it calls itself.
    program: String,
    version: String,
    /// The digest of catalog and queries.
    inputs_sha256: String,
    /// Cards at most.
    cards: usize,
    /// The form of the definitions beside them.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    tools_as: Option<String>,
}

/// A question and what was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// The id of the query.
    query: String,
    prompt: String,
    /// The ids of the cards, in their order.
    shown: Vec<String>,
    /// The digest of the question as it was put.
    asked_sha256: String,
    /// What was said; null for no tool.
    #[serde(deserialize_with = "present")]
    choice: Option<String>,
    /// How long it took, in microseconds.
    us: u64,
}

/// A member that is there, be it null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)
}

/// A file is not a transcript of these questions.
#[derive(Debug, thiserror::Error)]
#[error("{}:{line}: {reason}", path.display())]
pub struct TranscriptError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and the way out.
    pub reason: String,
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("it cannot be read: {0}; name a file that `bench eval --record` wrote")]
    Unread(io::Error),
    #[error("it is not UTF-8 text; name a file that `bench eval --record` wrote")]
    Utf8,
    #[error("a line has more than {LONGEST_LINE} bytes; name a file that `bench eval --record` wrote")]
    LongLine,
    #[error("the file has more than {MOST_BYTES} bytes; record fewer programs in one file")]
    LongFile,
    #[error("it is not a line of a transcript of `bench eval --record`: {0}")]
    Form(serde_json::Error),
    #[error("it has the form {0}, and this is {SCHEMA}; record it again")]
    Schema(u32),
    #[error("it begins with an answer; the first line says who answers")]
    NoHead,
    #[error("it holds no line; record it with `bench eval --choose … --record FILE`")]
    Empty,
    #[error("`{0}` appears twice; give each program its own name")]
    TwoChoosers(String),
    #[error("it was recorded on another catalog or other queries; record it again")]
    Inputs,
    #[error("`cards` is {0}, but a question has 1 to {MOST_CARDS}")]
    Cards(usize),
    #[error(
        "definitions cannot be shown in the form `{0}`; use one of {forms}",
        forms = FORMS.map(ToolFormat::key).join(", ")
    )]
    As(String),
    #[error("query `{0}` is not in the queries file")]
    Query(String),
    #[error("query `{0}` is answered twice")]
    Twice(String),
    #[error(
        "query `{0}` was asked with different cards; name first the engine that it was recorded with, or record it \
         again"
    )]
    Other(String),
    #[error("`{member}` of query `{query}` is not what its digest stands for; record it again")]
    Altered { query: String, member: &'static str },
    #[error(
        "`{chooser}` has no answer to {missing} of {asked} queries, the first of them `{query}`; only a whole run is scored: \
         record it again"
    )]
    Missing { chooser: String, missing: usize, asked: usize, query: String },
    #[error(transparent)]
    Question(#[from] EvalError),
}

/// What programs were asked and said, as lines, while they are asked: whole runs, and the answers of runs that ended too early.
#[derive(Debug, Default)]
pub struct Record {
    whole: String,
    part: String,
    now: Run,
}

/// The lines of a program.
#[derive(Debug, Default)]
struct Run {
    head: String,
    /// By the number of the query.
    answers: BTreeMap<usize, String>,
}

impl Run {
    /// The lines in the order of the queries.
    fn lines(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.head).chain(self.answers.values()).map(String::as_str)
    }
}

impl Record {
    pub(super) fn begin(&mut self, head: String) {
        self.now = Run { head, answers: BTreeMap::new() };
    }

    pub(super) fn add(&mut self, query: usize, line: String) {
        self.now.answers.insert(query, line);
    }

    /// Ends the run that was begun; one without any answer leaves nothing, unless there was nothing to ask.
    pub(super) fn end(&mut self, is_whole: bool) {
        let run = std::mem::take(&mut self.now);
        if is_whole {
            self.whole.extend(run.lines());
        } else if !run.answers.is_empty() {
            self.part.extend(run.lines());
        }
    }

    /// The lines of the runs in which every question was answered.
    #[must_use]
    pub fn whole(&self) -> &str {
        &self.whole
    }

    /// The lines of the others, and of the run that goes on.
    #[must_use]
    pub fn part(&self) -> String {
        let now = self.now.lines().filter(|_| !self.now.answers.is_empty());
        std::iter::once(self.part.as_str()).chain(now).collect()
    }
}

/// The line about a program.
pub(super) fn head(questions: &Questions<'_>, answers: &Answers) -> Result<String, EvalError> {
    line(&Line::Chooser(Head {
        schema_version: SCHEMA,
        chooser: answers.chooser.clone(),
        program: answers.program.clone(),
        version: answers.version.clone(),
        inputs_sha256: questions.collection.inputs_sha256.clone(),
        cards: questions.asking.cards,
        tools_as: questions.asking.tools_as.map(|format| format.key().to_owned()),
    }))
}

/// The line of a question, as it was put, and what was said to it.
pub(super) fn exchange(
    questions: &Questions<'_>,
    number: usize,
    prompt: String,
    sha256: String,
    said: &Said,
) -> Result<String, EvalError> {
    line(&Line::Choice(Exchange {
        query: questions.collection.queries[number].id.clone(),
        prompt,
        shown: questions.ids(number).into_iter().map(str::to_owned).collect(),
        asked_sha256: sha256,
        choice: said.choice.clone(),
        us: said.us,
    }))
}

fn line(line: &Line) -> Result<String, EvalError> {
    let text = serde_json::to_string(line).map_err(|error| EvalError::failed("the transcript", error))?;
    Ok(text + "\n")
}

/// A program while its lines are read.
struct Reading<'c> {
    questions: Questions<'c>,
    answers: Answers,
}

impl Reading<'_> {
    /// What is said where a query lacks an answer.
    fn missing(&self) -> Option<Fault> {
        let first = self.questions.unanswered(&self.answers).next()?;
        Some(Fault::Missing {
            chooser: self.answers.chooser.clone(),
            missing: self.questions.unanswered(&self.answers).count(),
            asked: self.questions.asked().count(),
            query: self.questions.collection.queries[first].id.clone(),
        })
    }
}

/// The lines of a file one by one, within bounds, so that no file takes all memory or never ends.
struct Lines<R> {
    input: io::Take<R>,
    number: usize,
}

impl<R: BufRead> Lines<R> {
    fn new(input: R) -> Self {
        Self { input: input.take(MOST_BYTES + 1), number: 0 }
    }

    /// The next line that says something, with its number from 1; `None` at the end.
    fn next(&mut self) -> Result<Option<(usize, String)>, (usize, Fault)> {
        loop {
            self.number += 1;
            let refuse = |fault| (self.number, fault);
            let mut line = Vec::new();
            let read = self.input.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut line);
            let read = read.map_err(|error| refuse(Fault::Unread(error)))?;
            if read as u64 > LONGEST_LINE {
                return Err(refuse(Fault::LongLine));
            }
            if self.input.limit() == 0 {
                return Err(refuse(Fault::LongFile));
            }
            if read == 0 {
                return Ok(None);
            }
            let text = String::from_utf8(line).map_err(|_| refuse(Fault::Utf8))?;
            let text = if self.number == 1 { text.trim_start_matches('\u{feff}') } else { text.as_str() };
            if !text.trim().is_empty() {
                return Ok(Some((self.number, text.to_owned())));
            }
        }
    }
}

/// Reads a transcript of questions about `collection`, whose cards are the first of `rankings`; each program with the
/// questions that it was asked, in the order of the file. `path` is for messages.
///
/// # Errors
/// [`TranscriptError`] at the first line that is not of the form, is too long, or belongs to other questions, and where an
/// answer is missing.
pub fn read<'c>(
    path: &Path,
    input: impl BufRead,
    collection: &'c Collection,
    rankings: &[Ranking],
) -> Result<Vec<(Questions<'c>, Answers)>, TranscriptError> {
    let numbers: BTreeMap<&str, usize> =
        collection.queries.iter().enumerate().map(|(number, query)| (query.id.as_str(), number)).collect();
    // A fault repeats words of the file, which must not steer a terminal.
    let refuse = |line: usize, fault: &Fault| {
        let reason = fault.to_string().chars().filter(|character| !character.is_control()).collect();
        TranscriptError { path: path.to_owned(), line, reason }
    };
    let (mut done, mut names): (Vec<Reading<'c>>, BTreeSet<String>) = (Vec::new(), BTreeSet::new());
    let mut last = 1;
    let mut lines = Lines::new(input);
    while let Some((number, text)) = lines.next().map_err(|(number, fault)| refuse(number, &fault))? {
        last = number;
        let line = serde_json::from_str(&text).map_err(|error| refuse(number, &Fault::Form(error)))?;
        match line {
            Line::Chooser(mut head) => {
                // As they are where a program says them: one line, short, without what could steer a terminal.
                for name in [&mut head.chooser, &mut head.program, &mut head.version] {
                    *name = bounded(name);
                }
                if let Some(fault) = done.last().and_then(Reading::missing) {
                    return Err(refuse(number, &fault));
                }
                if !names.insert(head.chooser.clone()) {
                    return Err(refuse(number, &Fault::TwoChoosers(head.chooser)));
                }
                done.push(begin(head, collection, rankings).map_err(|fault| refuse(number, &fault))?);
            }
            Line::Choice(one) => {
                let reading = done.last_mut().ok_or_else(|| refuse(number, &Fault::NoHead))?;
                take(reading, one, &numbers).map_err(|fault| refuse(number, &fault))?;
            }
        }
    }
    match done.last().map(Reading::missing) {
        None => Err(refuse(last, &Fault::Empty)),
        Some(Some(fault)) => Err(refuse(last, &fault)),
        Some(None) => Ok(done.into_iter().map(|one| (one.questions, one.answers)).collect()),
    }
}

/// A program from its line.
fn begin<'c>(head: Head, collection: &'c Collection, rankings: &[Ranking]) -> Result<Reading<'c>, Fault> {
    if head.schema_version != SCHEMA {
        return Err(Fault::Schema(head.schema_version));
    }
    if head.inputs_sha256 != collection.inputs_sha256 {
        return Err(Fault::Inputs);
    }
    if !(1..=MOST_CARDS).contains(&head.cards) {
        return Err(Fault::Cards(head.cards));
    }
    let written = |key: String| FORMS.into_iter().find(|format| format.key() == key).ok_or(Fault::As(key));
    let asking = Asking { cards: head.cards, tools_as: head.tools_as.map(written).transpose()? };
    let Head { chooser, program, version, .. } = head;
    let said = vec![None; collection.queries.len()];
    let questions = Questions::of(collection, rankings, asking)?;
    Ok(Reading { questions, answers: Answers { chooser, program, version, asking, said } })
}

/// Takes an answer.
fn take(reading: &mut Reading<'_>, one: Exchange, numbers: &BTreeMap<&str, usize>) -> Result<(), Fault> {
    let Some(&number) = numbers.get(one.query.as_str()) else { return Err(Fault::Query(one.query)) };
    let questions = &reading.questions;
    if questions.shown[number].is_empty() {
        return Err(Fault::Other(one.query));
    }
    let question = questions.question(number)?;
    if question.sha256 != one.asked_sha256 {
        return Err(Fault::Other(one.query));
    }
    for (member, is_same) in [("prompt", question.prompt == one.prompt), ("shown", questions.ids(number) == one.shown)]
    {
        if !is_same {
            return Err(Fault::Altered { query: one.query, member });
        }
    }
    match &mut reading.answers.said[number] {
        Some(_) => Err(Fault::Twice(one.query)),
        said => {
            *said = Some(Said::of(one.choice.as_deref(), one.us));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{collection, ranking};
    use super::*;

    fn answers(asking: Asking, chooser: &str) -> Answers {
        let said = |choice: Option<&str>| Some(Said { choice: choice.map(str::to_owned), us: 5 });
        let said = vec![said(Some("forge:create_issue")), said(None), said(Some("pizza \"1\"\nfor two")), None];
        Answers { chooser: chooser.to_owned(), program: "p".to_owned(), version: "1".to_owned(), asking, said }
    }

    /// The lines of a program that gave `answers`.
    fn write(questions: &Questions<'_>, answers: &Answers) -> String {
        let mut record = Record::default();
        record.begin(head(questions, answers).unwrap());
        // In another order than that of the queries.
        for (number, said) in answers.said.iter().enumerate().rev() {
            let Some(said) = said else { continue };
            let question = questions.question(number).unwrap();
            record.add(number, exchange(questions, number, question.prompt, question.sha256, said).unwrap());
        }
        let part = record.part();
        record.end(true);
        assert_eq!((record.part(), record.whole()), (String::new(), part.as_str()));
        part
    }

    fn rankings(collection: &Collection) -> [Ranking; 4] {
        [&["create_issue"][..], &["play_song", "send_mail"], &["send_mail"], &[]]
            .map(|names| ranking(collection, names))
    }

    #[test]
    fn what_was_written_is_read() {
        let collection = collection();
        let rankings = rankings(&collection);
        let (mut text, mut expected) = (String::new(), Vec::new());
        for (chooser, tools_as) in [("one", None), ("two", Some(ToolFormat::Gemini))] {
            let asking = Asking { cards: 2, tools_as };
            let questions = Questions::of(&collection, &rankings, asking).unwrap();
            expected.push(answers(asking, chooser));
            text += &write(&questions, expected.last().unwrap());
        }
        let read = read(Path::new("t.jsonl"), text.as_bytes(), &collection, &rankings).unwrap();
        assert_eq!(read.into_iter().map(|(_, answers)| answers).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_run_that_ends_too_early_is_kept_apart() {
        let mut record = Record::default();
        let line = |text: &str| text.to_owned();
        record.begin(line("silent\n"));
        assert_eq!(record.part(), "", "nothing is said yet");
        record.end(false);
        record.begin(line("early\n"));
        record.add(1, line("b\n"));
        record.end(false);
        record.begin(line("now\n"));
        record.add(3, line("d\n"));
        record.add(0, line("a\n"));
        assert_eq!((record.whole(), record.part().as_str()), ("", "early\nb\nnow\na\nd\n"));
        record.end(true);
        assert_eq!((record.whole(), record.part().as_str()), ("now\na\nd\n", "early\nb\n"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let collection = collection();
        let rankings = rankings(&collection);
        let asking = Asking { cards: 2, tools_as: None };
        let questions = Questions::of(&collection, &rankings, asking).unwrap();
        let whole = write(&questions, &answers(asking, "one"));
        let lines: Vec<&str> = whole.lines().collect();
        let [head, first, second, third] = lines[..] else { panic!("{whole}") };
        let join = |lines: &[&str]| lines.join("\n");
        let table = [
            (String::new(), "t.jsonl:1: it holds no line"),
            (first.to_owned(), "t.jsonl:1: it begins with an answer"),
            (join(&[head, "{}"]), "t.jsonl:2: it is not a line of a transcript"),
            (join(&[head, &first.replace("\"us\"", "\"ms\"")]), "t.jsonl:2: it is not a line of a transcript"),
            (join(&[head, &second.replace("\"choice\":null,", "")]), "missing field `choice`"),
            (head.replace("\"schema_version\":1", "\"schema_version\":2"), "it has the form 2"),
            (head.replace("\"cards\":2", "\"cards\":0"), "`cards` is 0, but a question has 1 to"),
            (head.replace("\"cards\":2", "\"cards\":2,\"as\":\"native\""), "in the form `native`; use one of openai,"),
            (head.replace("\"cards\":2", "\"cards\":2,\"as\":\"weaver-spec\""), "in the form `weaver-spec`"),
            (
                join(&[head, &first.replace("open a ticket", "close a ticket")]),
                "t.jsonl:2: `prompt` of query `1` is not what its digest stands for",
            ),
            (
                join(&[head, &first.replace("\"shown\":[\"forge:", "\"shown\":[\"forget:")]),
                "t.jsonl:2: `shown` of query `1` is not what its digest stands for",
            ),
            (join(&[head, &first.replace("\"query\":\"1\"", "\"query\":\"\\u001b\\n9\"")]), "query `9` is not in"),
            (join(&[head, first, &" ".repeat(LONGEST_LINE as usize + 1)]), "t.jsonl:3: a line has more than 16777216"),
            (head.replace("\"inputs_sha256\":\"", "\"inputs_sha256\":\"0"), "on another catalog or other queries"),
            (join(&[head, head]), "t.jsonl:2: `one` has no answer to 3 of 3 queries, the first of them `1`"),
            (join(&[&whole, head]), "`one` appears twice"),
            (join(&[head, first, first]), "t.jsonl:3: query `1` is answered twice"),
            (
                join(&[head, &first.replace("\"query\":\"1\"", "\"query\":\"9\"")]),
                "query `9` is not in the queries file",
            ),
            (
                join(&[head, &first.replace("\"query\":\"1\"", "\"query\":\"2\"")]),
                "query `2` was asked with different cards",
            ),
            (
                join(&[head, &first.replace("\"query\":\"1\"", "\"query\":\"4\"")]),
                "query `4` was asked with different cards",
            ),
            (
                join(&[head, first, third]),
                "t.jsonl:3: `one` has no answer to 1 of 3 queries, the first of them `2`; only",
            ),
        ];
        for (text, expected) in table {
            let found = read(Path::new("t.jsonl"), text.as_bytes(), &collection, &rankings);
            let Err(error) = found else { panic!("{expected}: it is read") };
            assert!(error.to_string().contains(expected), "{expected}: {error}");
        }
        let bytes = [head.as_bytes(), b"\n\xff\n"].concat();
        let Err(error) = read(Path::new("t.jsonl"), &bytes[..], &collection, &rankings) else { panic!("it is read") };
        assert_eq!(error.to_string(), "t.jsonl:2: it is not UTF-8 text; name a file that `bench eval --record` wrote");
    }

    #[test]
    fn names_of_a_file_cannot_write_lines_of_their_own() {
        let collection = collection();
        let rankings = rankings(&collection);
        let asking = Asking { cards: 2, tools_as: None };
        let questions = Questions::of(&collection, &rankings, asking).unwrap();
        let whole = write(&questions, &answers(asking, "one"));
        let forged = whole
            .replace("\"program\":\"p\"", r#""program":"p\u001b]0;x\u0007\nright 1.000""#)
            .replace("\"chooser\":\"one\"", r#""chooser":"one\r\ntwo""#);
        let read = read(Path::new("t.jsonl"), forged.as_bytes(), &collection, &rankings).unwrap();
        assert_eq!((read[0].1.chooser.as_str(), read[0].1.program.as_str()), ("onetwo", "p]0;xright 1.000"));
    }
}
