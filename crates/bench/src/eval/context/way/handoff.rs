//! What was before an event becomes a hand-over within a budget, and a new session goes on from it: what `handoff --out`
//! and `replay` do.

use serde::Deserialize;

use super::{Ready, Start, told};
use contextweaver_context::adapters::Conversation;
use contextweaver_context::store::{MemoryArtifacts, Stores};
use contextweaver_context::summary::StructureSummarizer;
use contextweaver_context::{ContextManager, Firewall, HandoffRequest, Memory, hand_off, take_in};

/// The table `handoff`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handover {
    /// The event with which the new session begins.
    pub before: String,
    /// Tokens of the hand-over at most.
    pub budget: usize,
    /// What the next agent is about to do, as far as the one before knows.
    #[serde(default)]
    pub query: String,
}

impl Handover {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.budget == 0 { Err("`handoff.budget` must be at least 1".to_owned()) } else { Ok(()) }
    }

    pub(super) fn fits(&self, conversation: &Conversation) -> Result<(), String> {
        let place = conversation.events.iter().position(|event| event.item.id.as_str() == self.before);
        match place {
            None => Err(format!("no event `{}`, which `handoff.before` names", self.before)),
            Some(0) => Err(format!("nothing is before event `{}`, which `handoff.before` names", self.before)),
            Some(_) => Ok(()),
        }
    }

    pub(super) fn ready(&self, start: &Start<'_>) -> Result<Ready, String> {
        let Start { scenario, config, .. } = start;
        let mut before = start.conversation();
        let place = before.events.iter().position(|event| event.item.id.as_str() == self.before);
        let after = before.events.split_off(place.unwrap_or_default());
        let episodes = std::mem::take(&mut before.episodes);
        let (artifacts, summarizer) = (MemoryArtifacts::default(), StructureSummarizer);
        let firewall = Firewall::new(&config.firewall, config.estimator, &summarizer, &artifacts);
        let taken = take_in(before, &firewall).map_err(told)?;
        let memory = Memory { facts: taken.facts, episodes };
        let request = HandoffRequest { query: &self.query, budget: self.budget, ..HandoffRequest::default() };
        let pack = hand_off(&taken.transcript, &memory, &request, config);
        let next = pack.session(&scenario.name, &artifacts).map_err(told)?;
        let manager = ContextManager::new(Stores::default(), Box::new(summarizer), (*config).clone());
        let stores = manager.stores();
        next.copy_to(stores).map_err(told)?;
        let firewall = Firewall::new(&config.firewall, config.estimator, &summarizer, stores.artifacts.as_ref());
        let taken = take_in(Conversation { events: after, ..Conversation::default() }, &firewall).map_err(told)?;
        taken.transcript.items().iter().try_for_each(|item| stores.events.append(item.clone())).map_err(told)?;
        taken.facts.into_iter().try_for_each(|fact| stores.facts.put(fact)).map_err(told)?;
        Ok(Ready { manager, carried: Some(pack.tokens) })
    }
}
