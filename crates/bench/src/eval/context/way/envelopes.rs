//! Results come as envelopes of a program that processed them: what `ContextManager::ingest_envelope` takes. The log has the
//! whole content as the text of the event, and the envelope in its metadata.

use serde::Deserialize;

use super::{Ready, Start, told};
use contextweaver_context::ContextManager;
use contextweaver_context::adapters::{Conversation, Event};
use contextweaver_context::event::{ContextItem, ItemKind, ResultEnvelope};
use contextweaver_context::store::Stores;
use contextweaver_context::summary::StructureSummarizer;

/// What the metadata of a result calls its envelope.
const ENVELOPE: &str = "envelope";

/// The table `envelopes`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelopes {
    /// The results that come as envelopes. Each is called `result:` and its call, as the event of an envelope is.
    pub results: Vec<String>,
}

impl Envelopes {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.results.is_empty() { Err("`envelopes.results` is empty".to_owned()) } else { Ok(()) }
    }

    pub(super) fn fits(&self, conversation: &Conversation) -> Result<(), String> {
        for id in &self.results {
            let event = conversation.events.iter().find(|event| event.item.id.as_str() == id);
            let Some(Event { item, .. }) = event.filter(|event| event.item.kind == ItemKind::ToolResult) else {
                return Err(format!("no result `{id}`, which `envelopes.results` names"));
            };
            envelope(item)?;
        }
        Ok(())
    }

    pub(super) fn ready(&self, start: &Start<'_>) -> Result<Ready, String> {
        let manager = ContextManager::new(Stores::default(), Box::new(StructureSummarizer), start.config.clone());
        for Event { item, .. } in start.conversation().events {
            if !self.results.iter().any(|id| id == item.id.as_str()) {
                manager.ingest(item).map_err(told)?;
                continue;
            }
            let (call, envelope) = envelope(&item)?;
            for artifact in &envelope.artifacts {
                let kept = &manager.stores().artifacts;
                kept.put(&artifact.handle, item.text.as_bytes(), &artifact.media_type, &artifact.label)
                    .map_err(told)?;
            }
            manager.ingest_envelope(call, &envelope).map_err(told)?;
        }
        Ok(Ready { manager, carried: None })
    }
}

/// The call of a result and its envelope.
fn envelope(item: &ContextItem) -> Result<(&str, ResultEnvelope), String> {
    let id = &item.id;
    let call = item.parent_id.as_ref().map(|parent| parent.as_str()).unwrap_or_default();
    if id.as_str() != format!("result:{call}") {
        return Err(format!("event `{id}`, which `envelopes.results` names, is not called `result:` and its call"));
    }
    let stated = item.metadata.get(ENVELOPE);
    let stated = stated.ok_or_else(|| format!("event `{id}` has no `{ENVELOPE}` in its metadata"))?;
    let envelope = serde_json::from_value(stated.clone());
    Ok((call, envelope.map_err(|error| format!("event `{id}`: its `{ENVELOPE}`: {error}"))?))
}
