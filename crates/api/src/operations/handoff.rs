//! `/v1/handoff`: what the next agent must know of a conversation, within a budget.

use contextweaver_context::store::{EpisodicStore, FactStore};
use contextweaver_context::{Audience, HandoffRequest, Memory, hand_off};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Remarked, compile, document, named, read, whole};
use crate::engines::Engines;
use crate::problem::Problem;

/// Tokens at most, where a request says nothing.
const BUDGET: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// In any form that `contextweaver ingest` reads: an object or list, or a string with lines.
    conversation: Box<RawValue>,
    #[serde(default)]
    query: String,
    #[serde(default, deserialize_with = "whole")]
    budget: Option<usize>,
    #[serde(default, rename = "for", deserialize_with = "named")]
    audience: Audience,
}

pub(super) fn answer(engines: &Engines, body: &[u8]) -> Result<Value, Problem> {
    let request: Request = read(body)?;
    let (session, _, remarks) = compile::session(engines, &engines.hooks(), &request.conversation)?;
    let failed = |error: &dyn std::error::Error| Problem::internal(error);
    let memory = Memory {
        facts: session.facts.all().map_err(|error| failed(&error))?,
        episodes: session.episodes.all().map_err(|error| failed(&error))?,
    };
    let budget = request.budget.unwrap_or(BUDGET);
    let wanted = HandoffRequest { query: &request.query, budget, audience: request.audience };
    let answer = hand_off(&session.transcript, &memory, &wanted, &engines.context);
    document("handoff", &Remarked { answer, remarks })
}
