//! Stage 5: scores every candidate.
//!
//! The score is a weighted sum of four values in [0, 1]: recency, similarity to the query, priority of the kind, and
//! low cost. Scores are integers, so that equal scores are real ties, which the id breaks.

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
}

/// The candidates, best first, ties by id.
pub(super) fn rank<'t>(
    candidates: Vec<Candidate<'t>>,
    request: &Request,
    config: &ScoringConfig,
    meter: Meter,
    terms: &mut Terms,
) -> Vec<Scored<'t>> {
    let count = candidates.len() as f64;
    let query = terms.set(request.query);
    let mut scored: Vec<Scored> = Vec::with_capacity(candidates.len());
    for (place, Candidate { position, item }) in candidates.into_iter().enumerate() {
        let section = render::section(&item, &item.text);
        let cost = meter.units(&section);
        let terms = terms.set(&item.text);
        let similarity =
            if request.tags.is_empty() { jaccard(&terms, &query) } else { tag_similarity(&item, request.tags) };
        let worth = config.recency * ((place + 1) as f64 / count)
            + config.similarity * similarity
            + config.kind * priority(config, item.kind)
            + config.cost * (1.0 / (1.0 + meter.tokens(cost) as f64 / 500.0));
        let score = (worth * UNITS).round() as i64;
        scored.push(Scored { position, item, section, cost, terms, score });
    }
    scored.sort_by(|left, right| (Reverse(left.score), &left.item.id).cmp(&(Reverse(right.score), &right.item.id)));
    scored
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
