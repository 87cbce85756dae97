//! `/v1/compact`: what a prompt gets in place of one result.

use std::num::NonZeroUsize;

use contextweaver_context::adapters::recognise_output;
use contextweaver_context::event::{ContextItem, ItemKind};
use contextweaver_context::store::MemoryArtifacts;
use contextweaver_context::{Firewall, FirewallConfig, RawCount, Secrets, Seen};
use contextweaver_core::text::Estimator;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Remarked, document, named_if_present, read, text_of, whole};
use crate::engines::Engines;
use crate::problem::Problem;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// A string, or the result of an MCP tool, or any other JSON.
    result: Box<RawValue>,
    /// The tool that gave it.
    #[serde(default = "unnamed")]
    tool: String,
    #[serde(default, deserialize_with = "whole")]
    tokens: Option<NonZeroUsize>,
    #[serde(default, deserialize_with = "named_if_present")]
    tokenizer: Option<Estimator>,
    #[serde(default)]
    original_tokens: bool,
    #[serde(default)]
    redact: bool,
}

fn unnamed() -> String {
    "result".to_owned()
}

pub(super) fn answer(engines: &Engines, body: &[u8]) -> Result<Value, Problem> {
    let request: Request = read(body)?;
    let defaults = engines.context.firewall;
    let config = FirewallConfig {
        summary_tokens: request.tokens.map_or(defaults.summary_tokens, NonZeroUsize::get),
        raw_count: if request.original_tokens { RawCount::Exact } else { RawCount::Skip },
        secrets: if request.redact { Secrets::Redact } else { defaults.secrets },
        ..defaults
    };
    let output = recognise_output(text_of(&request.result)?.into_bytes(), "result").output;
    let artifacts = MemoryArtifacts::default();
    let tokenizer = request.tokenizer.unwrap_or(engines.context.estimator);
    let hooks = engines.hooks();
    let firewall = Firewall::new(&config, tokenizer, &hooks, &artifacts).redacted_by(hooks.redactor());
    let call = ContextItem::new("file", ItemKind::ToolCall, request.tool);
    let taken = firewall.ingest(&call, &output, &mut Seen::default());
    let (_, answer) = taken.map_err(|error| Problem::of_member("result", &error))?;
    document("firewall", &Remarked { answer, remarks: hooks.notes() })
}
