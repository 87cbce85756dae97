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
//! One new file, `chapters/NAME.rs`, with the type of its facts and the trait, and one line for it in the list of
//! `chapters/mod.rs`. A chapter with one record for each collection writes less: `CollectionChapter` of
//! `chapters/collections.rs` plans and measures, and the file says what is measured on one collection and how it is
//! shown. Then `contextweaver bench run --all` writes `scorecard/results/NAME.json` and the
//! pages, and `bench check` compares them. Nothing else names a chapter.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use anyhow::Result;
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

    /// Writes its part of the page. `own` are its results, one for each of [`Self::files`].
    fn render(&self, own: &[Results<Self::Facts>], tables: &Tables, page: &mut Document);

    /// What a run prints of it.
    fn terminal(&self, own: &[Results<Self::Facts>]) -> String;

    /// Its blocks of the front page, in Markdown.
    fn front(&self, own: &[Results<Self::Facts>]) -> Vec<String> {
        let _ = own;
        Vec::new()
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
    /// The sentence encoder is not, or this program was built without it.
    Model,
    /// It takes minutes and is measured only when everything is asked for.
    TooLarge,
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
            Self::Model => "sentence encoder not here",
            Self::TooLarge => "only with --large or --all",
            Self::Recorded => "recorded by `contextweaver bench run --engines`",
        })
    }
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

    fn measure(&self, bench: &Bench, plans: &[Plan], step: Step<'_>) -> Result<Vec<Fresh>> {
        let erased = |fresh: Fresh<C::Facts>| {
            let outcome = match fresh.outcome {
                Outcome::Measured(facts) => Outcome::Measured(serde_json::to_value(facts)?),
                Outcome::Failed(message) => Outcome::Failed(message),
            };
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
}

fn typed<C: Chapter>(chapter: &C, all: &Recordings) -> Result<Vec<Results<C::Facts>>> {
    Ok(all.of(chapter.name()).iter().map(Results::typed).collect::<Result<_, _>>()?)
}
