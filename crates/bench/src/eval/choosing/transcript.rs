//! The file that keeps what a program was asked and what it said, so that the same figures come of it without the program.
//!
//! JSON lines: for each program one line about it, then one for each question in the order of the queries. The definitions of
//! tools are not repeated in every line; a digest of the whole question stands for them, and answers to other questions are
//! refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};

use super::{Answers, Asking, MOST_CARDS, Questions};
use crate::eval::collection::Collection;
use crate::eval::engine::Ranking;
use crate::eval::error::EvalError;
use crate::eval::process::choose::Said;
use contextweaver_core::catalog::ToolFormat;

/// The version of the form.
const SCHEMA: u32 = 1;

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

/// A file is no transcript of these questions.
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
    #[error("it is no line of a transcript of `bench eval --record`: {0}")]
    Form(serde_json::Error),
    #[error("it has the form {0}, and this is {SCHEMA}; record it again")]
    Schema(u32),
    #[error("it begins with an answer; the first line says who answers")]
    NoHead,
    #[error("it holds no line; record it with `bench eval --choose … --record FILE`")]
    Empty,
    #[error("`{0}` is there twice; give each program a name of its own")]
    TwoChoosers(String),
    #[error("it was recorded on another catalog or other queries; record it again")]
    Inputs,
    #[error("`cards` is {0}, and a question has 1 to {MOST_CARDS}")]
    Cards(usize),
    #[error("no list of tools is written in the form `{0}`")]
    As(String),
    #[error("query `{0}` is not in the queries file")]
    Query(String),
    #[error("query `{0}` is answered twice")]
    Twice(String),
    #[error(
        "query `{0}` was asked with other cards; name the engine that it was recorded with first, or record it again"
    )]
    Other(String),
    #[error("`{chooser}` has no answer to query `{query}`; the file is not whole")]
    Missing { chooser: String, query: String },
    #[error(transparent)]
    Question(#[from] EvalError),
}

/// The lines of a program's answers to `questions`.
///
/// # Errors
/// A question that cannot be made.
pub fn write(questions: &Questions<'_>, answers: &Answers) -> Result<String, EvalError> {
    let collection = questions.collection;
    let head = Head {
        schema_version: SCHEMA,
        chooser: answers.chooser.clone(),
        program: answers.program.clone(),
        version: answers.version.clone(),
        inputs_sha256: collection.inputs_sha256.clone(),
        cards: questions.asking.cards,
        tools_as: questions.asking.tools_as.map(|format| format.key().to_owned()),
    };
    let mut text = String::new();
    let mut push = |line: &Line| -> Result<(), EvalError> {
        let line = serde_json::to_string(line).map_err(|error| EvalError::failed("the transcript", error))?;
        text.push_str(&line);
        text.push('\n');
        Ok(())
    };
    push(&Line::Chooser(head))?;
    for (number, said) in answers.said.iter().enumerate() {
        let Some(Said { choice, us }) = said else { continue };
        let question = questions.question(number)?;
        push(&Line::Choice(Exchange {
            query: collection.queries[number].id.clone(),
            prompt: question.prompt,
            shown: questions.ids(number).into_iter().map(str::to_owned).collect(),
            asked_sha256: question.sha256,
            choice: choice.clone(),
            us: *us,
        }))?;
    }
    Ok(text)
}

/// A program while its lines are read.
struct Reading<'c> {
    questions: Questions<'c>,
    answers: Answers,
}

impl Reading<'_> {
    /// The first query that lacks an answer, by its id.
    fn missing(&self) -> Option<Fault> {
        let open = |number: &usize| !self.questions.shown[*number].is_empty() && self.answers.said[*number].is_none();
        let query = (0..self.answers.said.len()).find(open)?;
        let query = self.questions.collection.queries[query].id.clone();
        Some(Fault::Missing { chooser: self.answers.chooser.clone(), query })
    }
}

/// Reads a transcript of questions about `collection`, whose cards are the first of `rankings`; each program with the
/// questions that it was asked, in the order of the file.
///
/// # Errors
/// [`TranscriptError`] at the first line that is none of the form, or belongs to other questions, and where an answer is
/// missing.
pub fn read<'c>(
    path: &Path,
    text: &str,
    collection: &'c Collection,
    rankings: &[Ranking],
) -> Result<Vec<(Questions<'c>, Answers)>, TranscriptError> {
    let numbers: BTreeMap<&str, usize> =
        collection.queries.iter().enumerate().map(|(number, query)| (query.id.as_str(), number)).collect();
    let refuse =
        |line: usize, fault: &Fault| TranscriptError { path: path.to_owned(), line, reason: fault.to_string() };
    let (mut done, mut names): (Vec<Reading<'c>>, BTreeSet<String>) = (Vec::new(), BTreeSet::new());
    let mut last = 1;
    let lines = (1..).zip(text.trim_start_matches('\u{feff}').lines());
    for (number, text) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        last = number;
        let line = serde_json::from_str(text).map_err(|error| refuse(number, &Fault::Form(error)))?;
        match line {
            Line::Chooser(head) => {
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
    let written = |key: String| {
        let found = ToolFormat::WRITTEN.into_iter().find(|format| *format != ToolFormat::Native && format.key() == key);
        found.ok_or(Fault::As(key))
    };
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
    if questions.shown[number].is_empty() || questions.question(number)?.sha256 != one.asked_sha256 {
        return Err(Fault::Other(one.query));
    }
    match &mut reading.answers.said[number] {
        Some(_) => Err(Fault::Twice(one.query)),
        said => {
            *said = Some(Said { choice: one.choice, us: one.us });
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
        let said = vec![said(Some("forge:create_issue")), said(None), said(Some("pizza \"1\"\n")), None];
        Answers { chooser: chooser.to_owned(), program: "p".to_owned(), version: "1".to_owned(), asking, said }
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
            text += &write(&questions, expected.last().unwrap()).unwrap();
        }
        let read = read(Path::new("t.jsonl"), &text, &collection, &rankings).unwrap();
        assert_eq!(read.into_iter().map(|(_, answers)| answers).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let collection = collection();
        let rankings = rankings(&collection);
        let asking = Asking { cards: 2, tools_as: None };
        let questions = Questions::of(&collection, &rankings, asking).unwrap();
        let whole = write(&questions, &answers(asking, "one")).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        let [head, first, second, third] = lines[..] else { panic!("{whole}") };
        let join = |lines: &[&str]| lines.join("\n");
        let table = [
            (String::new(), "t.jsonl:1: it holds no line"),
            (first.to_owned(), "t.jsonl:1: it begins with an answer"),
            (join(&[head, "{}"]), "t.jsonl:2: it is no line of a transcript"),
            (join(&[head, &first.replace("\"us\"", "\"ms\"")]), "t.jsonl:2: it is no line of a transcript"),
            (join(&[head, &second.replace("\"choice\":null,", "")]), "missing field `choice`"),
            (head.replace("\"schema_version\":1", "\"schema_version\":2"), "it has the form 2"),
            (head.replace("\"cards\":2", "\"cards\":0"), "`cards` is 0, and a question has 1 to"),
            (head.replace("\"cards\":2", "\"cards\":2,\"as\":\"native\""), "in the form `native`"),
            (head.replace("\"inputs_sha256\":\"", "\"inputs_sha256\":\"0"), "on another catalog or other queries"),
            (join(&[head, head]), "t.jsonl:2: `one` has no answer to query `1`"),
            (join(&[&whole, head]), "`one` is there twice"),
            (join(&[head, first, first]), "t.jsonl:3: query `1` is answered twice"),
            (
                join(&[head, &first.replace("\"query\":\"1\"", "\"query\":\"9\"")]),
                "query `9` is not in the queries file",
            ),
            (
                join(&[head, &first.replace("\"query\":\"1\"", "\"query\":\"2\"")]),
                "query `2` was asked with other cards",
            ),
            (
                join(&[head, &first.replace("\"query\":\"1\"", "\"query\":\"4\"")]),
                "query `4` was asked with other cards",
            ),
            (join(&[head, first, third]), "t.jsonl:3: `one` has no answer to query `2`; the file is not whole"),
        ];
        for (text, expected) in table {
            let found = read(Path::new("t.jsonl"), &text, &collection, &rankings);
            let Err(error) = found else { panic!("{expected}: it is read") };
            assert!(error.to_string().contains(expected), "{expected}: {error}");
        }
    }
}
