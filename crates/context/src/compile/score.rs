//! Stage 5: scores every candidate.
//!
//! The score is a weighted sum of four values in [0, 1]: recency, similarity to the query, priority of the kind, and
//! low cost. Scores are integers, so that equal scores are real ties, which the id breaks.
//!
//! Recency counts the events that are newer, and not what share of the conversation they are, so that the last turns are as far
//! apart in a long conversation as in a short one.
//!
//! Who names an incident, an order or a version asks for the few events that name it too, however old they are: these count
//! as the newest and as similar to the query as can be, and the limit per kind does not hold for them.

use std::borrow::Cow;
use std::cmp::Reverse;

use serde_json::Value;

use super::meter::Meter;
use super::{Candidate, Request, render};
use crate::config::ScoringConfig;
use crate::event::{ContextItem, ItemKind};
use contextweaver_core::text::{TermSet, Terms, jaccard};

/// The number of units in a score of 1.
const UNITS: f64 = 1e9;

/// An event with so many newer ones is half as recent as the newest.
const HALF_AS_RECENT: f64 = 16.0;

/// The number of characters of a word with a digit from which it names something.
const LEAST_NAME: usize = 3;

/// The number of names in a query that are looked for.
const MOST_NAMES: usize = 16;

/// Of so many events, one may hold a name in the query; what more of them hold tells none from the others.
const EVENTS_PER_NAMED: usize = 5;

/// A candidate with its score and its cost.
#[derive(Clone)]
pub(super) struct Scored<'t> {
    /// Its position in the transcript.
    pub(super) position: usize,
    /// The item as the prompt would show it.
    pub(super) item: Cow<'t, ContextItem>,
    /// Its section with the separator after it.
    pub(super) section: String,
    /// The cost of the section, in units of the meter.
    pub(super) cost: usize,
    /// The terms of its text.
    pub(super) terms: TermSet,
    /// Its score in units of 1e-9.
    pub(super) score: i64,
    /// Whether it is one of the few that hold a name in the query.
    pub(super) is_named: bool,
}

/// The candidates, best first, ties by id.
pub(super) fn rank<'t>(
    candidates: Vec<Candidate<'t>>,
    request: &Request,
    config: &ScoringConfig,
    meter: Meter,
    terms: &mut Terms,
) -> Vec<Scored<'t>> {
    let query = terms.set(request.query);
    let written = |Candidate { position, item }| {
        let section = render::section(&item, &item.text);
        let (cost, terms) = (meter.units(&section), terms.set(&item.text));
        Scored { position, item, section, cost, terms, score: 0, is_named: false }
    };
    let mut scored: Vec<Scored> = candidates.into_iter().map(written).collect();
    if request.tags.is_empty() {
        names(request.query, terms).iter().for_each(|name| mark(&mut scored, name));
    }
    for (newer, one) in scored.iter_mut().rev().enumerate() {
        let (recency, similarity) = match request.tags {
            _ if one.is_named => (1.0, 1.0),
            [] => (recency(newer), jaccard(&one.terms, &query)),
            tags => (recency(newer), tag_similarity(&one.item, tags)),
        };
        let worth = config.recency * recency
            + config.similarity * similarity
            + config.kind * priority(config, one.item.kind)
            + config.cost * (1.0 / (1.0 + meter.tokens(one.cost) as f64 / 500.0));
        one.score = (worth * UNITS).round() as i64;
    }
    scored.sort_by(|left, right| (Reverse(left.score), &left.item.id).cmp(&(Reverse(right.score), &right.item.id)));
    scored
}

/// How recent an event is that has so many newer ones.
fn recency(newer: usize) -> f64 {
    HALF_AS_RECENT / (HALF_AS_RECENT + newer as f64)
}

/// The words of the query that name something, e.g. `INC-4012`, each as its terms.
fn names(query: &str, terms: &mut Terms) -> Vec<TermSet> {
    let words = query.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let names = words.filter(|word| word.contains(|c: char| c.is_ascii_digit()) && word.chars().count() >= LEAST_NAME);
    names.map(|word| terms.set(word)).filter(|name| !name.is_empty()).take(MOST_NAMES).collect()
}

/// Marks the items that hold `name`, if they are few.
fn mark(scored: &mut [Scored], name: &TermSet) {
    let holds = |one: &&mut Scored| one.terms.intersection(name) == name.len();
    let most = scored.len() / EVENTS_PER_NAMED;
    let named: Vec<&mut Scored> = scored.iter_mut().filter(holds).take(most + 1).collect();
    if named.len() <= most {
        named.into_iter().for_each(|one| one.is_named = true);
    }
}

/// The Jaccard similarity of the item's tags and the tags of the request; 0 when either has none.
fn tag_similarity(item: &ContextItem, wanted: &[String]) -> f64 {
    let tags = item.metadata.get("tags").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut own: Vec<&str> = tags.iter().filter_map(Value::as_str).collect();
    let mut wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    for list in [&mut own, &mut wanted] {
        list.sort_unstable();
        list.dedup();
    }
    let shared = own.iter().filter(|tag| wanted.binary_search(tag).is_ok()).count();
    let union = own.len() + wanted.len() - shared;
    if union == 0 { 0.0 } else { shared as f64 / union as f64 }
}

fn priority(config: &ScoringConfig, kind: ItemKind) -> f64 {
    let priority = &config.priority;
    match kind {
        ItemKind::UserTurn => priority.user_turn,
        ItemKind::AgentMsg => priority.agent_msg,
        ItemKind::ToolCall => priority.tool_call,
        ItemKind::ToolResult => priority.tool_result,
        ItemKind::DocSnippet => priority.doc_snippet,
        ItemKind::RetrievedDoc => priority.retrieved_doc,
        ItemKind::MemoryFact => priority.memory_fact,
        ItemKind::PlanState => priority.plan_state,
        ItemKind::Policy => priority.policy,
    }
}
