//! `/v1/compile`: the prompt that a conversation gives for a phase, within a budget.

use contextweaver_context::event::{Handle, Phase};
use contextweaver_context::hooks::Hooks;
use contextweaver_context::memory::{RecallBounds, recall_for};
use contextweaver_context::store::{ArtifactStore, EpisodicStore, FactStore, Session};
use contextweaver_context::{BuildStats, Firewall, Memory, Request as Wanted, compile, ingest_with};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{document, named, read, text_of, whole};
use crate::engines::Engines;
use crate::problem::{Kind, Problem};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// In any form that `contextweaver ingest` reads: an object or list, or a string with lines.
    conversation: Box<RawValue>,
    #[serde(default = "answering", deserialize_with = "named")]
    phase: Phase,
    #[serde(default)]
    query: String,
    #[serde(default, deserialize_with = "whole")]
    budget: Option<usize>,
    /// Tokens of what the memory of the start gives at most.
    #[serde(default, deserialize_with = "whole")]
    memory: Option<usize>,
}

fn answering() -> Phase {
    Phase::Answer
}

#[derive(Serialize)]
struct Compiled {
    format: &'static str,
    phase: Phase,
    prompt: String,
    /// What `/v1/view` can show more of, with the same conversation.
    artifacts: Vec<Handle>,
    remarks: Vec<String>,
    stats: BuildStats,
}

/// The conversation of a request as a session, with the format and what is odd about it.
pub(super) fn session(
    engines: &Engines,
    hooks: &Hooks,
    conversation: &RawValue,
) -> Result<(Session, &'static str, Vec<String>), Problem> {
    let bytes = text_of(conversation)?.into_bytes();
    let taken = ingest_with(Some(hooks), bytes, "session", "a request", &engines.context);
    let taken = taken.map_err(|error| Problem::of_member("conversation", &error))?;
    Ok((taken.session, taken.format.key(), taken.remarks))
}

pub(super) fn answer(engines: &Engines, body: &[u8]) -> Result<Value, Problem> {
    let request: Request = read(body)?;
    let hooks = engines.hooks();
    let (session, format, remarks) = session(engines, &hooks, &request.conversation)?;
    let failed = |error: &dyn std::error::Error| Problem::internal(error);
    let mut memory = Memory {
        facts: session.facts.all().map_err(|error| failed(&error))?,
        episodes: session.episodes.all().map_err(|error| failed(&error))?,
    };
    let config = &engines.context;
    let budget = request.budget.unwrap_or_else(|| config.budgets.of(request.phase));
    let wanted = Wanted { budget: Some(budget), ..Wanted::new(request.phase, &request.query) };
    let mut notes = Vec::new();
    if let Some(tokens) = request.memory {
        let missing = || Problem {
            kind: Kind::Unprocessable,
            message: "`memory`: the server was started without a memory (`contextweaver serve --memory`)".to_owned(),
        };
        let source = engines.memory.as_deref().ok_or_else(missing)?;
        let bounds = RecallBounds { tokens, ..RecallBounds::default() };
        let recalled = recall_for(source, &wanted, bounds, (&session.transcript, &memory), config, hooks.redactor());
        // A memory that is not reached stops no prompt; who asked learns it from the account.
        match recalled {
            Ok(recalled) => {
                notes.push(recalled.note(source.name()));
                memory.facts.extend(recalled.facts);
            }
            Err(error) => notes.push(error.to_string()),
        }
    }
    let firewall = Firewall::new(&config.firewall, config.estimator, &hooks, &session.artifacts);
    let compiled = |budget| {
        let wanted = Wanted { budget: Some(budget), ..wanted };
        compile(&session.transcript, &memory, &firewall, &wanted, config)
    };
    let pack = hooks.within(budget, compiled, |pack| pack);
    let mut pack = pack.map_err(|error| Problem::unprocessable(&error))?;
    pack.stats.notes.extend(notes);
    let artifacts = session.artifacts.list().map_err(|error| failed(&error))?;
    let artifacts = artifacts.into_iter().map(|artifact| artifact.handle).collect();
    let (phase, prompt, stats) = (pack.phase, pack.prompt, pack.stats);
    document("compile", &Compiled { format, phase, prompt, artifacts, remarks, stats })
}
