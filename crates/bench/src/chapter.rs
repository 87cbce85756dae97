//! What a chapter of the scorecard is: one trait, with measuring, verifying and rendering apart.
//!
//! A chapter says which records it has ([`Chapter::plan`]), measures those that can be measured here
//! ([`Chapter::measure`], which returns facts and sees no page), says what is wrong with recorded ones
//! ([`Chapter::wrong`]), and writes them down ([`Chapter::render`] and its two smaller forms, which see records and no
//! engine). Everything else is done once for all chapters in the room `scorecard`: which records are kept, how they are
//! compared, read and written.
//!
//! # Adding a chapter
//!
//! One new file, `chapters/NAME.rs`, with the type of its facts and the trait, its module and its place on the list in
//! `chapters/mod.rs`. A chapter with one record for each collection writes less: `CollectionChapter` of
//! `chapters/collections.rs` plans and measures, and the file says what is measured on one collection and how it is
//! shown. Then `contextweaver bench run --all` writes `scorecard/results/NAME.json` and the
//! pages, and `bench check` compares them. Nothing else has to name it: the room `scorecard` names a chapter only where
//! engines of others are recorded and shown.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::eval::matrix::Matrix;
use crate::eval::record::{Origin, Outcome};
use crate::eval::tables::Tables;
use crate::eval::workspace::Bench;
use crate::report::document::Document;
use crate::results::{Results, ResultsError};

/// Called with a few words before every piece of work, from any thread.
pub type Step<'s> = &'s (dyn Fn(&str) + Sync);

/// A chapter of the scorecard.
pub trait Chapter: Sync {
    /// What a record of it holds.
    type Facts: Serialize + DeserializeOwned + Send;

    /// The name: a-z and `-`.
    fn name(&self) -> &'static str;

    /// The names of its results files without their ending: its own name, where it does not compare engines.
    fn files(&self, matrix: &Matrix) -> Vec<String> {
        let _ = matrix;
        vec![self.name().to_owned()]
    }

    /// Its records, those included that cannot be measured on this machine: one plan for each of [`Self::files`].
    ///
    /// # Errors
    /// Inputs of the checkout that cannot be read.
    fn plan(&self, bench: &Bench) -> Result<Vec<Plan>>;

    /// Measures every planned record that is not [`Planned::absent`].
    ///
    /// # Errors
    /// Inputs that cannot be read. That an engine fails on them is an outcome.
    fn measure(&self, bench: &Bench, plans: &[Plan], step: Step<'_>) -> Result<Vec<Fresh<Self::Facts>>>;

    /// The inputs of a planned record that is not [`Planned::absent`], without measuring it: what it is stored by.
    ///
    /// # Errors
    /// Inputs that cannot be read, and a chapter that neither plans its inputs nor says them here.
    fn inputs(&self, bench: &Bench, planned: &Planned) -> Result<Inputs> {
        let _ = bench;
        let inputs = planned.inputs_sha256.clone();
        Ok(Inputs {
            sha256: inputs.with_context(|| format!("{}: inputs unknown", planned.case))?,
            beside: String::new(),
        })
    }

    /// About how long a planned record takes, in milliseconds: what shares are balanced and progress is estimated by. No
    /// fact depends on it.
    fn cost_ms(&self, bench: &Bench, plan: &Plan, planned: &Planned) -> u64 {
        let _ = (bench, plan, planned);
        100
    }

    /// What can be seen to be wrong with recorded facts without measuring: parts that do not add up to their whole, sides
    /// that do not give the difference, figures that another chapter has otherwise.
    fn wrong(&self, own: &[Results<Self::Facts>], all: &Recordings) -> Vec<Wrong> {
        let _ = (own, all);
        Vec::new()
    }

    /// What recorded tables say otherwise than its records.
    fn wrong_tables(&self, own: &[Results<Self::Facts>], tables: &Tables) -> Vec<Wrong> {
        let _ = (own, tables);
        Vec::new()
    }

    /// Writes its pages. `own` are its results, one for each of [`Self::files`]. The first heading is the title of the
    /// page; a chapter that is too long for one begins others with [`Document::page`].
    fn render(&self, own: &[Results<Self::Facts>], tables: &Tables, page: &mut Document);

    /// What a run prints of it.
    fn terminal(&self, own: &[Results<Self::Facts>]) -> String;

    /// Its blocks of the front page, in Markdown.
    fn front(&self, own: &[Results<Self::Facts>]) -> Vec<String> {
        let _ = own;
        Vec::new()
    }

    /// What it says to the questions that the scorecard opens with.
    fn answers(&self, own: &[Results<Self::Facts>], tables: &Tables) -> Vec<Answer> {
        let _ = (own, tables);
        Vec::new()
    }

    /// Whether what it says outside of its pages rests on the results called `name`, so that it bears their mark. What rests
    /// on others marks itself.
    fn speaks_of(&self, name: &str) -> bool {
        let _ = name;
        true
    }
}

/// A question that a reader of the scorecard has first, in the order in which they are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// How well engines find tools, each beside its control.
    Good,
    /// Time and memory.
    Cost,
    /// Tokens.
    Saving,
    /// Where figures are worst, and where a control is better.
    Failure,
    /// When something simpler is the better choice.
    Avoid,
}

impl Question {
    /// Every question, in order.
    pub const ALL: [Self; 5] = [Self::Good, Self::Cost, Self::Saving, Self::Failure, Self::Avoid];

    /// The question as a heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Good => "How good it is",
            Self::Cost => "What it costs",
            Self::Saving => "What it saves",
            Self::Failure => "Where it fails",
            Self::Avoid => "When not to use it",
        }
    }
}

/// What a chapter says to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The question.
    pub question: Question,
    /// Markdown: a sentence that ends with a full stop, or a table with its own marks.
    pub text: String,
}

impl Answer {
    /// An answer to `question`.
    #[must_use]
    pub fn new(question: Question, text: String) -> Self {
        Self { question, text }
    }
}

/// What one results file is to hold.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The name of the file without its ending.
    pub name: String,
    /// The configuration that is measured, as text that a person can read.
    pub configuration: String,
    /// The version of what is measured: another one where equal inputs may give other facts.
    pub version: String,
    /// The records that the file is to hold, those included that cannot be measured here.
    pub cases: Vec<Planned>,
}

/// The cases that can be measured here.
pub fn measurable(plans: &[Plan]) -> impl Iterator<Item = &str> {
    let cases = plans.iter().flat_map(|plan| &plan.cases).filter(|planned| planned.absent.is_none());
    cases.map(|planned| planned.case.as_str())
}

/// One record that a results file is to hold.
#[derive(Debug, Clone)]
pub struct Planned {
    /// See [`crate::results::Record::case`].
    pub case: String,
    /// Who wrote the inputs.
    pub origin: Origin,
    /// Why it cannot be measured here; `None` where it can.
    pub absent: Option<Absent>,
    /// SHA-256 (hex) of its inputs, where it is known without measuring.
    pub inputs_sha256: Option<String>,
}

/// Why a record is not measured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Absent {
    /// Its public inputs are not on this machine.
    Inputs,
    /// It takes minutes and is measured only when everything is asked for.
    TooLarge,
    /// The time that was given had run out.
    OutOfTime,
    /// Other programs gave it, which have to be installed: it is recorded, whatever is asked for.
    Recorded,
}

impl Absent {
    /// Whether something is missing where everything is asked for.
    #[must_use]
    pub fn is_gap(&self) -> bool {
        *self != Self::Recorded
    }
}

impl Display for Absent {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Inputs => "public data not here",
            Self::TooLarge => "only with --large or --all",
            Self::OutOfTime => "out of time",
            Self::Recorded => "recorded by `contextweaver bench run --engines`",
        })
    }
}

/// What a record depends on besides the version of what is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    /// SHA-256 (hex) of its inputs, as its provenance has it.
    pub sha256: String,
    /// What else gives other facts: the version of an engine that it is compared with, what is left out; empty for nothing.
    pub beside: String,
}

/// What was measured of a planned record.
#[derive(Debug)]
pub struct Fresh<F = Value> {
    /// The name of the results file.
    pub results: String,
    /// The case, as in the plan.
    pub case: String,
    /// SHA-256 (hex) of the inputs.
    pub inputs_sha256: String,
    /// The facts, or why there are none.
    pub outcome: Outcome<F>,
}

/// What is wrong with a recorded record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// The results: the name of the file.
    pub results: String,
    /// The case of the record.
    pub case: String,
    /// What is wrong, as a sentence without its end.
    pub reason: String,
}

impl Wrong {
    /// One for each of the reasons of the record of `case` in `results`.
    pub fn each(results: &str, case: &str, reasons: impl IntoIterator<Item = String>) -> impl Iterator<Item = Self> {
        reasons.into_iter().map(move |reason| Self { results: results.to_owned(), case: case.to_owned(), reason })
    }
}

/// The results of all chapters, by chapter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recordings(pub BTreeMap<&'static str, Vec<Results>>);

impl Recordings {
    /// The results of a chapter; empty for one that is not here.
    #[must_use]
    pub fn of(&self, chapter: &str) -> &[Results] {
        self.0.get(chapter).map(Vec::as_slice).unwrap_or_default()
    }

    /// Every results file.
    pub fn iter(&self) -> impl Iterator<Item = &Results> {
        self.0.values().flatten()
    }
}

/// A [`Chapter`] whose facts are not looked into: what a list of chapters holds. Nobody implements it by hand.
pub trait AnyChapter: Sync {
    /// See [`Chapter::name`].
    fn name(&self) -> &'static str;

    /// See [`Chapter::files`].
    fn files(&self, matrix: &Matrix) -> Vec<String>;

    /// See [`Chapter::plan`].
    ///
    /// # Errors
    /// As there.
    fn plan(&self, bench: &Bench) -> Result<Vec<Plan>>;

    /// See [`Chapter::inputs`].
    ///
    /// # Errors
    /// As there.
    fn inputs(&self, bench: &Bench, planned: &Planned) -> Result<Inputs>;

    /// See [`Chapter::cost_ms`].
    fn cost_ms(&self, bench: &Bench, plan: &Plan, planned: &Planned) -> u64;

    /// See [`Chapter::measure`].
    ///
    /// # Errors
    /// As there, and a number that JSON cannot hold.
    fn measure(&self, bench: &Bench, plans: &[Plan], step: Step<'_>) -> Result<Vec<Fresh>>;

    /// The results called `name` from the text of their file.
    ///
    /// # Errors
    /// [`ResultsError`].
    fn read(&self, name: &str, text: &str) -> Result<Results, ResultsError>;

    /// See [`Chapter::wrong`].
    ///
    /// # Errors
    /// Facts of another chapter.
    fn wrong(&self, all: &Recordings) -> Result<Vec<Wrong>>;

    /// See [`Chapter::wrong_tables`].
    ///
    /// # Errors
    /// Facts of another chapter.
    fn wrong_tables(&self, all: &Recordings, tables: &Tables) -> Result<Vec<Wrong>>;

    /// See [`Chapter::render`].
    ///
    /// # Errors
    /// Facts of another chapter.
    fn render(&self, all: &Recordings, tables: &Tables, page: &mut Document) -> Result<()>;

    /// See [`Chapter::terminal`].
    ///
    /// # Errors
    /// Facts of another chapter.
    fn terminal(&self, all: &Recordings) -> Result<String>;

    /// See [`Chapter::front`].
    ///
    /// # Errors
    /// Facts of another chapter.
    fn front(&self, all: &Recordings) -> Result<Vec<String>>;

    /// See [`Chapter::answers`].
    ///
    /// # Errors
    /// Facts of another chapter.
    fn answers(&self, all: &Recordings, tables: &Tables) -> Result<Vec<Answer>>;

    /// See [`Chapter::speaks_of`].
    fn speaks_of(&self, name: &str) -> bool;
}

impl<C: Chapter> AnyChapter for C {
    fn name(&self) -> &'static str {
        Chapter::name(self)
    }

    fn files(&self, matrix: &Matrix) -> Vec<String> {
        Chapter::files(self, matrix)
    }

    fn plan(&self, bench: &Bench) -> Result<Vec<Plan>> {
        Chapter::plan(self, bench)
    }

    fn inputs(&self, bench: &Bench, planned: &Planned) -> Result<Inputs> {
        Chapter::inputs(self, bench, planned)
    }

    fn cost_ms(&self, bench: &Bench, plan: &Plan, planned: &Planned) -> u64 {
        Chapter::cost_ms(self, bench, plan, planned)
    }

    fn measure(&self, bench: &Bench, plans: &[Plan], step: Step<'_>) -> Result<Vec<Fresh>> {
        let erased = |fresh: Fresh<C::Facts>| {
            let outcome = fresh.outcome.try_map(serde_json::to_value)?;
            Ok(Fresh { results: fresh.results, case: fresh.case, inputs_sha256: fresh.inputs_sha256, outcome })
        };
        Chapter::measure(self, bench, plans, step)?.into_iter().map(erased).collect()
    }

    fn read(&self, name: &str, text: &str) -> Result<Results, ResultsError> {
        Ok(Results::<C::Facts>::from_json(name, text)?.erased()?)
    }

    fn wrong(&self, all: &Recordings) -> Result<Vec<Wrong>> {
        Ok(Chapter::wrong(self, &typed::<C>(self, all)?, all))
    }

    fn wrong_tables(&self, all: &Recordings, tables: &Tables) -> Result<Vec<Wrong>> {
        Ok(Chapter::wrong_tables(self, &typed::<C>(self, all)?, tables))
    }

    fn render(&self, all: &Recordings, tables: &Tables, page: &mut Document) -> Result<()> {
        Chapter::render(self, &typed::<C>(self, all)?, tables, page);
        Ok(())
    }

    fn terminal(&self, all: &Recordings) -> Result<String> {
        Ok(Chapter::terminal(self, &typed::<C>(self, all)?))
    }

    fn front(&self, all: &Recordings) -> Result<Vec<String>> {
        Ok(Chapter::front(self, &typed::<C>(self, all)?))
    }

    fn answers(&self, all: &Recordings, tables: &Tables) -> Result<Vec<Answer>> {
        Ok(Chapter::answers(self, &typed::<C>(self, all)?, tables))
    }

    fn speaks_of(&self, name: &str) -> bool {
        Chapter::speaks_of(self, name)
    }
}

fn typed<C: Chapter>(chapter: &C, all: &Recordings) -> Result<Vec<Results<C::Facts>>> {
    Ok(all.of(chapter.name()).iter().map(Results::typed).collect::<Result<_, _>>()?)
}
