//! What is measured on a scenario of the context engine.
//!
//! Facts are exact on every machine and gated; times are elsewhere.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fidelity::Fidelity;
use contextweaver_context::event::Phase;

/// Everything measured on one scenario. Shares are rounded to six decimals; tokens are exact counts of the configured
/// estimator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextFacts {
    /// What the prompt is for.
    pub phase: Phase,
    /// Events in the log.
    pub events: usize,
    /// Events that the phase may show, their ancestors included.
    pub candidates: usize,
    /// Events in the prompt.
    pub included: usize,
    /// Candidates that are not, by reason.
    pub dropped: BTreeMap<String, usize>,
    /// Events shown in a shorter form than the firewall's, to fit.
    pub condensed: usize,
    /// Tokens allowed.
    pub budget: usize,
    /// Tokens of the prompt, counted again as a whole.
    pub prompt_tokens: usize,
    /// `prompt_tokens` / `budget`.
    pub budget_use: f64,
    /// What a prompt without the engine would hold.
    pub naive: Naive,
    /// What the firewall did.
    pub firewall: Screening,
    /// What must be there and is, or is not.
    pub kept: Kept,
    /// How much of a prompt stays the same when the conversation goes on; `None` with fewer than two turns.
    pub prefix: Option<Prefix>,
    /// Survival in summaries and through views, over all results above the threshold; `None` without any.
    pub fidelity: Option<Fidelity>,
}

/// Tokens of a prompt that holds what the conversation carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Naive {
    /// The texts of all events, one below the other, without a word about who speaks: a call with the name of its
    /// function, and parts of a result that are not text as JSON without their bytes.
    pub history: usize,
    /// The definitions of all tools, one line of compact JSON each; `None` without a catalog of which all calls are.
    pub definitions: Option<usize>,
    /// 1 − prompt / (definitions + history).
    pub reduction: f64,
}

/// What the firewall did with the results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Screening {
    /// Results by what was shown of them.
    pub strategies: BTreeMap<String, usize>,
    /// Bytes of the results that are not shown as they are.
    pub original_bytes: u64,
    /// Tokens of what is shown for them.
    pub shown_tokens: usize,
    /// Tokens of all results that the firewall was asked about, those that it passed untouched included.
    pub result_tokens: usize,
    /// Artifacts in the store.
    pub artifacts: usize,
    /// Their bytes.
    pub artifact_bytes: u64,
    /// Contents that must come back: results over the threshold, pictures, recordings and files.
    pub contents: usize,
    /// Those that the store gives back byte for byte.
    pub recovered: usize,
}

/// What must be in the prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// Items that must be in the prompt.
    pub required: usize,
    /// Those that are not.
    pub missing: Vec<String>,
    /// Planted facts.
    pub facts: usize,
    /// Those that the prompt states.
    pub facts_in_prompt: usize,
    /// Others that one view reaches.
    pub facts_by_view: usize,
    /// The most tokens that such a view costs.
    pub view_tokens: usize,
    /// Facts that are neither in the prompt nor reached, as `label: value`.
    pub lost: Vec<String>,
    /// Texts that must not be in the prompt.
    pub forbidden_asked: usize,
    /// Those that are.
    pub forbidden: Vec<String>,
    /// Calls of tools in the log.
    pub calls: usize,
    /// Those that the prompt or the ledger of what was left out names.
    pub calls_accounted: usize,
    /// Whether the items stand in the order in which they happened.
    pub in_order: bool,
}

/// Prompts compiled after one user turn and after the next, compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    /// Pairs of prompts.
    pub pairs: usize,
    /// Mean share of the earlier prompt that begins the later one.
    pub mean: f64,
    /// The least such share.
    pub least: f64,
}
