//! A conversation with its stores, for programs that embed the engine.
//!
//! Thin: every method is a few calls of the stores, the firewall and the compiler, which are all usable without it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::compile::{CompileError, Memory, Request, Workspace, compile_in};
use super::config::ContextConfig;
use super::firewall::{Firewall, FirewallError, Seen};
use super::prompt::{RoutePrompt, build_call_prompt, build_route_prompt};
use super::stats::ContextPack;
use super::summary::Summarizer;
use crate::event::{ContextItem, Episode, Fact, ItemId, Phase, ResultEnvelope, ToolOutput};
use crate::store::{
    ArtifactStore, EpisodicStore, EventLog, FactStore, MemoryArtifacts, MemoryEpisodes, MemoryEvents, MemoryFacts,
    StoreError,
};

/// Where a conversation is kept.
pub struct Stores {
    /// What was said and done.
    pub events: Box<dyn EventLog>,
    /// Content kept out of prompts.
    pub artifacts: Box<dyn ArtifactStore>,
    /// Remembered statements.
    pub facts: Box<dyn FactStore>,
    /// Summaries of earlier conversations.
    pub episodes: Box<dyn EpisodicStore>,
}

impl Default for Stores {
    /// Stores that live as long as the process.
    fn default() -> Self {
        Self {
            events: Box::new(MemoryEvents::default()),
            artifacts: Box::new(MemoryArtifacts::default()),
            facts: Box::new(MemoryFacts::default()),
            episodes: Box::new(MemoryEpisodes::default()),
        }
    }
}

/// A conversation: events go in, prompts come out. Shared between threads by reference.
pub struct ContextManager {
    stores: Stores,
    summarizer: Box<dyn Summarizer>,
    config: ContextConfig,
    workspace: Mutex<Workspace>,
    seen: Mutex<Seen>,
}

/// The manager could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// A store failed, or the event breaks a rule of the log.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A result could not be stored.
    #[error(transparent)]
    Firewall(#[from] FirewallError),
    /// The prompt cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A result names a call that is not in the log.
    #[error("no event `{0}`; ingest the call before its result")]
    NoCall(ItemId),
}

/// A lock whose holder panicked guards nothing that could be half done: caches and hashes of what was shown.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ContextManager {
    /// A conversation in `stores` whose large results are summarised by `summarizer`.
    #[must_use]
    pub fn new(stores: Stores, summarizer: Box<dyn Summarizer>, config: ContextConfig) -> Self {
        Self { stores, summarizer, config, workspace: Mutex::default(), seen: Mutex::default() }
    }

    /// Its stores.
    #[must_use]
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &ContextConfig {
        &self.config
    }

    fn firewall(&self) -> Firewall<'_> {
        let artifacts = self.stores.artifacts.as_ref();
        Firewall::new(&self.config.firewall, self.config.estimator, self.summarizer.as_ref(), artifacts)
    }

    /// Adds an event.
    ///
    /// # Errors
    /// As [`EventLog::append`].
    pub fn ingest(&self, item: ContextItem) -> Result<(), ManagerError> {
        Ok(self.stores.events.append(item)?)
    }

    /// Adds the result of the call `call`: large content goes to the artifact store, facts taken from it to the fact
    /// store as `<item id>:fact:<number>`.
    ///
    /// # Errors
    /// [`ManagerError::NoCall`], or a store failed.
    pub fn ingest_tool_result(&self, call: &str, output: &ToolOutput) -> Result<ResultEnvelope, ManagerError> {
        let call = self.stores.events.get(call)?.ok_or_else(|| ManagerError::NoCall(call.into()))?;
        let mut seen = lock(&self.seen);
        let (item, envelope) = self.firewall().ingest(&call, output, &mut seen)?;
        let id = item.id.clone();
        if let Err(error) = self.stores.events.append(item) {
            // What the log refuses was not shown. Forgetting all of it only costs tokens.
            *seen = Seen::default();
            return Err(error.into());
        }
        for (number, value) in envelope.facts.iter().enumerate() {
            self.stores.facts.put(Fact { key: format!("{id}:fact:{number}"), value: value.clone() })?;
        }
        Ok(envelope)
    }

    /// Remembers a fact; the last under a key stands.
    ///
    /// # Errors
    /// The store failed.
    pub fn add_fact(&self, key: &str, value: &str) -> Result<(), ManagerError> {
        Ok(self.stores.facts.put(Fact { key: key.to_owned(), value: value.to_owned() })?)
    }

    /// Remembers an episode.
    ///
    /// # Errors
    /// The store failed.
    pub fn add_episode(&self, id: &str, summary: &str) -> Result<(), ManagerError> {
        Ok(self.stores.episodes.put(Episode { id: id.to_owned(), summary: summary.to_owned() })?)
    }

    /// The prompt for `phase` and `query` in the phase's budget.
    ///
    /// # Errors
    /// A store failed.
    pub fn build(&self, phase: Phase, query: &str) -> Result<ContextPack, ManagerError> {
        self.build_request(&Request::new(phase, query))
    }

    /// The prompt of `request`.
    ///
    /// # Errors
    /// As [`compile_in`].
    pub fn build_request(&self, request: &Request) -> Result<ContextPack, ManagerError> {
        let (transcript, memory) = (self.stores.events.transcript()?, self.memory()?);
        let workspace = &mut lock(&self.workspace);
        Ok(compile_in(workspace, &transcript, &memory, &self.firewall(), request, &self.config)?)
    }

    /// The prompt for choosing among `cards`, the best first.
    ///
    /// # Errors
    /// As [`build_route_prompt`].
    pub fn build_route_prompt(&self, query: &str, cards: &[String]) -> Result<RoutePrompt, ManagerError> {
        let (transcript, memory) = (self.stores.events.transcript()?, self.memory()?);
        let (workspace, request) = (&mut lock(&self.workspace), Request::new(Phase::Route, query));
        let log = (&transcript, &memory);
        Ok(build_route_prompt(workspace, log, &self.firewall(), &request, cards, &self.config)?)
    }

    /// The prompt for writing the arguments of `tool`, whose definition is `schema`.
    ///
    /// # Errors
    /// As [`build_call_prompt`].
    pub fn build_call_prompt(&self, query: &str, tool: &str, schema: &str) -> Result<ContextPack, ManagerError> {
        let (transcript, memory) = (self.stores.events.transcript()?, self.memory()?);
        let (workspace, request) = (&mut lock(&self.workspace), Request::new(Phase::Call, query));
        let log = (&transcript, &memory);
        Ok(build_call_prompt(workspace, log, &self.firewall(), &request, (tool, schema), &self.config)?)
    }

    fn memory(&self) -> Result<Memory, StoreError> {
        let episodes = self.stores.episodes.latest(self.config.memory.max_episodes)?;
        Ok(Memory { facts: self.stores.facts.all()?, episodes })
    }
}
