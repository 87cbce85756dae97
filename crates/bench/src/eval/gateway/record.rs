//! What is measured on a case of the gateway.
//!
//! Tokens are exact counts of cl100k. Facts are exact on every machine and gated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::scenario::Shelf;
use crate::eval::ranks::Ranks;
use crate::eval::record::{Estimate, Paired};

/// What was measured on a case, by its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum GatewayFacts {
    /// What a client is shown of a catalog.
    Surface(SurfaceFacts),
    /// A recorded session, played again through the gateway.
    Session(SessionFacts),
    /// A scenario of this project.
    Scenario(ScenarioFacts),
    /// A collection of this project with requests for each kind of item.
    Kinds(KindsFacts),
}

/// What a client is shown of a catalog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurfaceFacts {
    /// Servers behind the gateway.
    pub servers: usize,
    /// Tools that are served.
    pub tools: usize,
    /// Definitions that are listed and not usable.
    pub unusable: usize,
    /// Tokens of the definitions as the servers list them.
    pub direct_tokens: usize,
    /// Tokens of what gateway mode lists.
    pub gateway_tokens: usize,
    /// Tokens of what proxy mode lists.
    pub proxy_tokens: usize,
    /// Queries that were browsed: the names of the tools, without repeats.
    pub queries: usize,
    /// Tokens of the largest answer to them, at most ten cards.
    pub page_tokens: usize,
    /// The query that it answers; the first of equals.
    pub page_query: Option<String>,
}

/// What is listed and found of each kind of item, through one gateway.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindsFacts {
    /// Servers behind the gateway.
    pub servers: usize,
    /// Tools, resources and prompts, in this order.
    pub kinds: Vec<KindFacts>,
}

/// What is listed and found of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindFacts {
    /// The kind.
    pub kind: Shelf,
    /// Items of it.
    pub items: usize,
    /// Tokens of the definitions as the servers list them.
    pub list_tokens: usize,
    /// Tokens of the definitions that stand for them: the gateway's own tools for this kind.
    pub surface_tokens: usize,
    /// Searches: every request in both wordings.
    pub pages: usize,
    /// Tokens of the answers to them together, at most ten cards each.
    pub page_tokens: usize,
    /// Tokens of the largest.
    pub largest_page: usize,
    /// What is found for requests as people say them.
    pub said: SearchFacts,
    /// What is found for the same requests as a model would ask for them.
    pub asked: SearchFacts,
}

/// What searches of one kind found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchFacts {
    /// Through a gateway as it comes.
    pub ours: RecallFacts,
    /// Through one whose indexes rank by flat BM25.
    pub control: RecallFacts,
    /// recall@5 of the first less that of the second.
    pub versus_control: Paired,
    /// For each request the number of the first item that it needs: requests of one number stand or fall together.
    pub first_tools: Vec<u32>,
}

/// How much of what was needed stood on the first page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecallFacts {
    /// recall@1, an equivalent counting as the item that it stands for.
    pub recall_at_1: Estimate,
    /// recall@5, likewise.
    pub recall_at_5: Estimate,
    /// The place on the page at which each needed item stood: both recalls follow from it.
    pub ranks: Ranks,
}

/// Tokens of calls and their answers, and what was stored of the results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Injected {
    /// Tokens of the texts of the results as the servers gave them; pictures and other bytes count nothing, and
    /// structured content counts where no text stands beside it.
    pub raw_tokens: usize,
    /// Tokens of the results as they are on the wire, base64 and structured content included.
    pub wire_tokens: usize,
    /// Tokens of the texts of the gateway's answers to the same calls.
    pub answer_tokens: usize,
    /// Contents in the store.
    pub artifacts: usize,
    /// Bytes of these contents.
    pub artifact_bytes: u64,
    /// Those that are, byte for byte, a content that a server gave.
    pub recovered: usize,
    /// Texts among them into which `tool_view` looked, and whose beginning it showed as it is.
    pub viewed: usize,
    /// Texts among them.
    pub texts: usize,
}

/// What came of a recorded session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionFacts {
    /// Calls in the recording.
    pub calls: usize,
    /// Calls that the gateway passed on with other bytes than the recording has.
    pub altered: usize,
    /// Calls that the gateway did not pass on.
    pub refused: Vec<Refusal>,
    /// Servers of which no list is there: they count with the tools that are called, without schemas.
    pub unlisted: Vec<String>,
    /// Tokens of the definitions of the session's servers, as they list them.
    pub direct_tokens: usize,
    /// Tokens of what gateway mode lists.
    pub gateway_tokens: usize,
    /// What the calls that were passed on cost.
    pub injected: Injected,
}

/// A call that the gateway did not pass on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Its number in the recording.
    pub call: usize,
    /// The server and the tool, as `server:tool`.
    pub tool: String,
    /// The code of the failure.
    pub code: String,
    /// What the caller is told.
    pub message: String,
}

/// What came of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFacts {
    /// Steps that the client takes.
    pub steps: usize,
    /// What went otherwise than the scenario says, step by step.
    pub failures: Vec<String>,
    /// Steps that answered with a failure, by code.
    pub codes: BTreeMap<String, usize>,
    /// Tokens of the definitions, as the servers list them.
    pub direct_tokens: usize,
    /// Tokens of what gateway mode lists.
    pub gateway_tokens: usize,
    /// Tokens of the answers to browsing.
    pub browse_tokens: usize,
    /// Tokens of the answers to views.
    pub view_tokens: usize,
    /// What the calls cost.
    pub injected: Injected,
}

impl ScenarioFacts {
    /// Steps that went as the scenario says.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.steps - self.failures.len().min(self.steps)
    }
}
