//! Stage 5: what each candidate is worth.
//!
//! A weighted sum of four values in [0, 1]: how late it is, how alike the query, how much its kind matters, and how
//! little it costs. Scores are integers, so equal worth is a real tie, which the id breaks.

use std::borrow::Cow;
use std::cmp::Reverse;

use serde_json::Value;

use super::meter::Meter;
use super::{Candidate, Request, render};
use crate::context::config::ScoringConfig;
use crate::event::{ContextItem, ItemKind};
use crate::text::{TermSet, Terms, jaccard};

/// Units of one point of score.
const UNITS: f64 = 1e9;

/// A candidate, what it is worth and what it costs.
pub(super) struct Scored<'t> {
    /// Where it stands in the transcript.
    pub(super) position: usize,
    /// The item as the prompt would show it.
    pub(super) item: Cow<'t, ContextItem>,
    /// Its section with the separator behind it.
    pub(super) section: String,
    /// What the section costs, in units of the meter.
    pub(super) cost: usize,
    /// The terms of its text.
    pub(super) terms: TermSet,
    /// Its worth in units of 1e-9.
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

/// The Jaccard similarity of the item's tags with those of the request, 0 without any.
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
