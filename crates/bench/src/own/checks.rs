//! The checks of a change of a catalog: what must hold, whether it does, and which definition is at fault.

use serde::Serialize;

use super::impact::{Definition, Impact, Kind};
use super::place::Place;
use super::threshold::{Threshold, at_least, at_most};
use crate::eval::decision::Word;
use crate::eval::measure::Measure;
use crate::report::number::{count, counted, rank, share, signed};

/// What must hold of a changed catalog.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Budget {
    /// The most tokens that all definitions may take.
    pub most_tokens: Option<usize>,
    /// The least value of each of these measures.
    pub least: Vec<(Measure, f64)>,
}

/// The kind of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// recall@5 over all queries does not regress.
    Routing,
    /// Every tool that a query needs is still there.
    ToolsStay,
    /// A measure keeps its least value.
    LeastValue,
    /// All definitions stay within their tokens.
    TokenBudget,
    /// A changed definition does not make recall@5 regress alone.
    Definition,
    /// A changed definition pushes no needed tool out of the first five. It warns and does not fail.
    FirstFive,
}

impl Rule {
    /// All rules, in the order in which they are shown.
    pub const ALL: [Self; 6] =
        [Self::Routing, Self::ToolsStay, Self::LeastValue, Self::TokenBudget, Self::Definition, Self::FirstFive];

    /// The name in files.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Routing => "routing",
            Self::ToolsStay => "tools-stay",
            Self::LeastValue => "least-value",
            Self::TokenBudget => "token-budget",
            Self::Definition => "definition",
            Self::FirstFive => "first-five",
        }
    }

    /// What the rule asks for, in one sentence.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Routing => "recall@5 over all queries does not regress.",
            Self::ToolsStay => "Every tool that a query needs is still in the catalog.",
            Self::LeastValue => "A routing measure does not fall below its minimum.",
            Self::TokenBudget => "All definitions together stay within their token budget.",
            Self::Definition => "A changed definition does not make recall@5 regress alone.",
            Self::FirstFive => "A changed definition pushes no needed tool out of the first five.",
        }
    }
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It holds.
    Passed,
    /// Someone should look, and the change may stand.
    Warning,
    /// It does not hold.
    Failed,
}

/// A check with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What is checked.
    pub rule: Rule,
    /// What it is about: a measure, a definition, or the rule itself.
    pub subject: String,
    /// How it ended.
    pub status: Status,
    /// What was found, in one sentence.
    pub message: String,
    /// The lines of the definition at fault.
    pub place: Option<Place>,
}

/// All checks of a change.
#[must_use]
pub fn checks(impact: &Impact, budget: &Budget) -> Vec<Check> {
    let mut found = vec![routing(impact)];
    found.push(tools_stay(impact));
    for (measure, least) in &budget.least {
        let measure = measure.to_string();
        let value = impact.measures.get(&measure).copied().unwrap_or(0.0);
        let Threshold { holds, said } = at_least(&measure, value, *least);
        found.push(check(Rule::LeastValue, &measure, !holds, said, worst(impact)));
    }
    if let Some(most) = budget.most_tokens {
        let Threshold { holds, said } = at_most(impact.tokens_after, most);
        let largest = impact.definitions.iter().filter(|one| one.growth() > 0).max_by_key(|one| one.growth());
        found.push(check(Rule::TokenBudget, "tokens", !holds, said, largest));
    }
    found.extend(others(impact));
    found.extend(impact.definitions.iter().flat_map(of_definition));
    found
}

/// Whether a check failed.
#[must_use]
pub fn fails(checks: &[Check]) -> bool {
    checks.iter().any(|check| check.status == Status::Failed)
}

fn check(rule: Rule, subject: &str, fails: bool, message: String, fault: Option<&Definition>) -> Check {
    let (status, place) = if fails { (Status::Failed, fault.and_then(in_new)) } else { (Status::Passed, None) };
    Check { rule, subject: subject.to_owned(), status, message, place }
}

/// The place of a definition that the new catalog still has: a line of the old files is not a line of the change.
fn in_new(definition: &Definition) -> Option<Place> {
    definition.place.clone().filter(|_| definition.kind != Kind::Removed)
}

/// The definition whose change alone costs the most.
fn worst(impact: &Impact) -> Option<&Definition> {
    let cost = |one: &&Definition| one.alone.as_ref().map_or(0.0, |alone| alone.recall_at_5 + alone.ndcg_at_10 / 1e3);
    impact.definitions.iter().min_by(|left, right| cost(left).total_cmp(&cost(right)))
}

fn routing(impact: &Impact) -> Check {
    let decision = &impact.decision;
    let (before, after) = (share(impact.recall_at_5_before), share(impact.recall_at_5_after));
    let message = format!(
        "recall@5 {before} -> {after} ({}, {}) over {}",
        signed(decision.difference),
        decision.word,
        counted(decision.queries, "query", "queries")
    );
    check(Rule::Routing, "recall@5", decision.word == Word::Regressed, message, worst(impact))
}

fn tools_stay(impact: &Impact) -> Check {
    let message = match impact.lost.as_slice() {
        [] => "every tool that a query needs is there".to_owned(),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
            format!("query {} needs {}, which is gone{more}", first.query, first.tool)
        }
    };
    check(Rule::ToolsStay, "tools", !impact.lost.is_empty(), message, None)
}

/// The definitions that were not judged, where there are any: a small change may do much.
fn others(impact: &Impact) -> Option<Check> {
    let others = impact.definitions.iter().filter(|one| one.alone.is_none()).count();
    let message = match others {
        0 => return None,
        1 => "1 definition was not measured alone".to_owned(),
        others => format!("{} definitions were not measured alone", count(others)),
    };
    let (rule, subject) = (Rule::Definition, "others".to_owned());
    Some(Check { rule, subject, status: Status::Warning, message, place: None })
}

fn of_definition(definition: &Definition) -> Vec<Check> {
    let Some(alone) = &definition.alone else { return Vec::new() };
    let message = format!("recall@5 {} by this change alone ({})", signed(alone.recall_at_5), alone.word);
    let regressed = alone.word == Word::Regressed;
    let mut found = vec![check(Rule::Definition, &definition.id, regressed, message, Some(definition))];
    // That a removed tool is no longer found is said by another check.
    let pushed = alone.worst.as_ref().filter(|worst| worst.is_lost() && definition.kind != Kind::Removed);
    if let Some(worst) = pushed {
        let (before, after) = (rank(worst.before), rank(worst.after));
        let message = format!("query {} finds {} at rank {before} -> {after}", worst.query, worst.tool);
        found.push(Check {
            rule: Rule::FirstFive,
            subject: definition.id.clone(),
            status: Status::Warning,
            message,
            place: in_new(definition),
        });
    }
    found
}
