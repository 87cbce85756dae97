//! Whether a program keeps the rules of its door: every rule by itself, with what was sent, what came back and what to do.
//!
//! A run ends at the first mistake, since nothing of it could be trusted. Here a mistake is noted and the rest is tried as
//! far as it can be, so that an author hears of all mistakes at once. The catalog and the queries are those of the probe,
//! which is part of the program.

mod context;
mod gateway;
mod lines;
mod talk;

pub use context::check as check_context;

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use self::talk::{Exchange, Talk};
use super::program::bounded;
use super::{Door, ProcessEngine, ProcessError};

/// Whether a rule is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is, as far as was tried.
    Ok,
    /// It is not.
    Wrong,
    /// It could not be tried, or there was nothing to try.
    NotTried,
}

impl Verdict {
    /// The words for it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Wrong => "wrong",
            Self::NotTried => "not tried",
        }
    }
}

/// A rule, and whether it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// A word for it.
    pub rule: &'static str,
    /// What it asks for.
    pub says: String,
    /// Whether it is kept.
    pub verdict: Verdict,
    /// What was found: the first mistake, or what there is to know. Empty where there is nothing to say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<String>,
    /// What was sent before the mistake, shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
    /// What came back, shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got: Option<String>,
    /// What to do about a mistake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conformance {
    /// The rules in the order in which they are tried.
    pub rules: Vec<Rule>,
}

impl Conformance {
    /// How many rules have this verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rules.iter().filter(|rule| rule.verdict == verdict).count()
    }
}

/// A rule before it is tried: a word, what it asks for, and what to do where it is broken.
pub(crate) type Row = (&'static str, &'static str, &'static str);

/// A program answers a ping.
const PING: Row = ("ping", "ping is answered", "answer {\"op\":\"ping\",\"id\":\"…\"} with {\"id\":\"…\"} at once");

/// It says which request it answers.
const ID: Row = ("id", "every answer has the id of its request", "copy `id` from the request into the answer");

/// It says nothing else.
const SILENT: Row =
    ("quiet", "nothing but answers on standard output", "print messages and progress on standard error");

/// It ends by itself, whatever its door.
const ENDS: Row = (
    "ends",
    "it exits with 0 at the end of its input",
    "leave the loop at the end of the input, and stop everything that was started",
);

/// The rules of a door, being tried.
#[derive(Debug)]
pub(crate) struct Sheet {
    rules: Vec<Rule>,
    fixes: Vec<&'static str>,
}

impl Sheet {
    pub(crate) fn new(rows: &[Row]) -> Self {
        let rule = |&(rule, says, _): &Row| Rule {
            rule,
            says: says.to_owned(),
            verdict: Verdict::NotTried,
            found: Vec::new(),
            sent: None,
            got: None,
            fix: None,
        };
        Self { rules: rows.iter().map(rule).collect(), fixes: rows.iter().map(|row| row.2).collect() }
    }

    /// The rule is kept, unless a mistake was found before.
    pub(crate) fn ok(&mut self, rule: &str) {
        if let Some(rule) = self.rules.iter_mut().find(|one| one.rule == rule)
            && rule.verdict == Verdict::NotTried
        {
            rule.verdict = Verdict::Ok;
            rule.found.clear();
        }
    }

    /// What there is to know of a rule that no mistake was found in.
    pub(crate) fn note(&mut self, rule: &str, found: Vec<String>) {
        if let Some(rule) = self.rules.iter_mut().find(|one| one.rule == rule)
            && rule.verdict != Verdict::Wrong
        {
            rule.found = found;
        }
    }

    /// Why a rule is not tried, as far as it is not.
    pub(crate) fn note_untried(&mut self, rule: &str, found: &str) {
        if self.rules.iter().any(|one| one.rule == rule && one.verdict == Verdict::NotTried) {
            self.note(rule, vec![found.to_owned()]);
        }
    }

    /// The rule is broken; only the first mistake is kept.
    pub(crate) fn wrong(&mut self, rule: &str, found: Vec<String>, exchange: Option<&Exchange>) {
        let place = self.rules.iter().position(|one| one.rule == rule);
        if let Some((rule, fix)) = place.and_then(|at| Some((self.rules.get_mut(at)?, self.fixes.get(at)?)))
            && rule.verdict != Verdict::Wrong
        {
            rule.verdict = Verdict::Wrong;
            rule.found = found;
            rule.sent = exchange.map(|one| bounded(&one.sent));
            rule.got = exchange.map(|one| one.got.as_deref().map_or_else(|| "nothing".to_owned(), bounded));
            rule.fix = Some((*fix).to_owned());
        }
    }

    pub(crate) fn done(self) -> Conformance {
        Conformance { rules: self.rules }
    }
}

/// Tries every rule of the door of `engine`.
///
/// # Errors
/// [`ProcessError::Missing`] when it cannot be started.
pub fn check(engine: &ProcessEngine) -> Result<Conformance, ProcessError> {
    match &engine.door {
        Door::Lines => lines::check(engine),
        Door::Mcp(tool) => gateway::check(engine, tool),
    }
}

/// What is long enough to find a buffer that is too small, or a pipe that nobody reads, in bytes.
const LONG: usize = 20_000;

/// A long text of words.
fn long() -> String {
    "open a ticket about the login bug, please; ".repeat(LONG.div_ceil(43))
}

/// Texts of other languages, signs and quotes.
const LANGUAGES: [&str; 5] = [
    "wie heißt das auf Französisch",
    "把厨房的灯打开",
    "أغلق الباب الأمامي",
    "🎵 play 🎷 jazz 👩‍🍳",
    "a \"quoted\" \\ word\nand\ta tab",
];

/// How long lines are waited for that nobody asked for.
const QUIET: Duration = Duration::from_millis(100);

/// A ping: the rules `ping` and `id`.
fn ping(talk: &mut Talk<'_>) {
    if talk.is_running() && talk.ask_by_id("ping", json!({"op": "ping"})).is_some() {
        talk.sheet.ok("ping");
    }
}

/// A member of an answer that is a text with something in it.
fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name)?.as_str().filter(|text| !text.trim().is_empty())
}
