//! Questions with known answers about one result, derived from the whole of it with a fixed seed.
//!
//! A probe is a label and a value. It survives in a text that states both together (the rules are those of `matching`);
//! where the label would say nothing that the value does not (a path, a heading, a set of column names), the value alone
//! must stand there between word boundaries. What is asked, by class:
//!
//! | class | tables (rows, csv) | trees | lines (log, diff, code, listing, trace, html, markdown, keyvalue, plain) |
//! |---|---|---|---|
//! | shape | number of rows; names of columns, or their number above twelve | number of members; top-level keys | number of lines, files, entries, pairs or frames |
//! | ends | two cells each of the first and the last row | first and last scalar of the first and the last member | first and last line, file, entry or pair |
//! | stat | least and greatest value or number of distinct values of a column | how often a frequent value occurs | entries by level; lines added and removed |
//! | sum | sum of a numeric column whose values repeat | – | – |
//! | leaf | scalars beside the table | scalars close to the root | totals, the commit, pairs, the title |
//! | error | – | the message of an `error` | the first error, the exception |
//! | outline | – | – | files of a diff, definitions, headings |
//! | needle | one row, drawn | one scalar, drawn | one line, drawn |
//!
//! The first six are the core: what a summary should always say. A needle carries the selector that an informed reader
//! would ask for. Nothing here reads the summary while it asks.

mod lines;
mod matching;
mod parse;
mod tree;

use serde::{Deserialize, Serialize};

use crate::eval::rng::Rng;
use contextweaver_context::event::Selector;
use contextweaver_core::names::named;

pub use matching::Haystack;

/// The seed of every probe.
pub const SEED: u64 = 2_026;

/// Needles drawn from one result at most.
const NEEDLES: usize = 5;

named! {
    /// What a probe asks for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[allow(missing_docs, reason = "the table of the module says what each asks")]
    pub enum Class {
        Shape = "shape",
        Ends = "ends",
        Stat = "stat",
        Sum = "sum",
        Leaf = "leaf",
        Error = "error",
        Outline = "outline",
        Needle = "needle",
    }
}

impl Class {
    /// Whether every summary should answer it.
    #[must_use]
    pub fn is_core(self) -> bool {
        !matches!(self, Self::Outline | Self::Needle)
    }
}

named! {
    /// What kind of content a result is, as the harness sees it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum Kind {
        /// A table as JSON, JSON lines or Python literals.
        Rows = "rows",
        /// Any other JSON or Python literal.
        Tree = "tree",
        /// Delimited text.
        Csv = "csv",
        /// Lines with times and levels.
        Log = "log",
        /// A unified diff.
        Diff = "diff",
        /// Source text.
        Code = "code",
        /// Names of files, one a line.
        Listing = "listing",
        /// An exception with its frames.
        Trace = "trace",
        /// A web page.
        Html = "html",
        /// Markdown.
        Markdown = "markdown",
        /// Lines of keys and values.
        Keyvalue = "keyvalue",
        /// Anything else.
        Plain = "plain",
    }
}

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// What it asks for.
    pub class: Class,
    /// Any of them names what is asked for; none where the answer speaks for itself.
    pub labels: Vec<String>,
    /// Any of them is the answer; all values of an answer must be there.
    pub answers: Vec<Vec<String>>,
    /// Where the answer stands in the result; needles have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Selector>,
}

impl Probe {
    fn new(class: Class, labels: &[&str], answer: impl Into<String>) -> Self {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        Self { class, labels, answers: vec![vec![answer.into()]], place: None }
    }

    fn or(mut self, answer: &[String]) -> Self {
        self.answers.push(answer.to_vec());
        self
    }

    fn at(mut self, place: Selector) -> Self {
        self.place = Some(place);
        self
    }

    /// Whether `text` answers it.
    #[must_use]
    pub fn survives(&self, text: &Haystack) -> bool {
        text.states(&self.labels, &self.answers)
    }

    /// A text that answers it and says nothing else.
    #[must_use]
    pub fn statement(&self) -> String {
        let label = self.labels.first().map(String::as_str).unwrap_or_default();
        let answer = self.answers.first().map(Vec::as_slice).unwrap_or_default();
        format!("{label}: {}", answer.join(" | "))
    }
}

/// What is asked about one result.
#[derive(Debug, Clone, PartialEq)]
pub struct Questions {
    /// What the result is.
    pub kind: Kind,
    /// In the order of their classes.
    pub probes: Vec<Probe>,
}

/// The questions about `text`; the same for the same text.
#[must_use]
pub fn questions(text: &str) -> Questions {
    let mut rng = Rng::new(SEED).fork(&text.len().to_string());
    let (kind, mut probes) = ask(text, &mut rng);
    probes.retain(|probe| probe.answers.iter().any(|answer| answer.iter().any(|value| !value.trim().is_empty())));
    probes.sort_by_key(|probe| probe.class);
    Questions { kind, probes }
}

fn ask(text: &str, rng: &mut Rng) -> (Kind, Vec<Probe>) {
    if let Some(value) = parse::value(text) {
        return tree::ask(&value, rng);
    }
    if let Some(values) = parse::json_lines(text) {
        return tree::ask_lines(values, rng);
    }
    let kind = lines::detect(text);
    if !matches!(kind, Kind::Diff | Kind::Trace | Kind::Html)
        && let Some(rows) = parse::delimited(text)
    {
        return (Kind::Csv, tree::ask_delimited(rows, rng));
    }
    (kind, lines::ask(kind, text, rng))
}

/// Different numbers below `count`, at most `most`, ascending.
fn draw(rng: &mut Rng, count: usize, most: usize) -> Vec<usize> {
    let mut drawn: Vec<usize> = (0..most.min(count)).map(|_| rng.below(count)).collect();
    drawn.sort_unstable();
    drawn.dedup();
    drawn
}

/// The first `most` characters of a text up to a line break, quote or backslash (which notations write differently),
/// ended between words: earlier, or later where the first word is longer, but never behind 80 characters.
fn excerpt(text: &str, most: usize) -> &str {
    let text = text.trim();
    let plain = text.find(['\n', '"', '\\', '\r', '\t']).and_then(|end| text.get(..end)).unwrap_or(text).trim();
    let Some((limit, _)) = plain.char_indices().nth(most) else { return plain };
    let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let ends_word = |end: usize| {
        let (before, after) = plain.split_at_checked(end).unwrap_or((plain, ""));
        !(in_word(before.chars().next_back()) && in_word(after.chars().next()))
    };
    let ends: Vec<usize> = plain.char_indices().map(|(at, _)| at).chain([plain.len()]).take(81).skip(1).collect();
    let earlier = ends.iter().rev().filter(|end| **end <= limit).find(|end| ends_word(**end) && **end * 2 >= limit);
    let end = earlier.or_else(|| ends.iter().find(|end| **end > limit && ends_word(**end)));
    end.and_then(|end| plain.get(..*end)).unwrap_or_default().trim()
}

/// Whether a text says something on its own: six characters, a letter among them.
fn is_distinctive(text: &str) -> bool {
    text.chars().count() >= 6 && text.chars().any(char::is_alphabetic)
}

#[cfg(test)]
mod tests;
