//! Earlier sessions become a memory, and the prompt of a later one searches it: what `consolidate` and `replay --memory` do.

use serde::Deserialize;

use super::mem0::Service;
use super::{Ready, Start, told};
use contextweaver_context::memory::{
    Consolidated, Day, LocalMemories, MemorySource, RecallBounds, Remembered, Rules, SourceError, SqliteMemories,
    consolidate, recall,
};
use contextweaver_context::store::{Session, Stores};
use contextweaver_context::summary::StructureSummarizer;
use contextweaver_context::{ContextConfig, ContextManager, ingest};

/// The table `memory`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memories {
    /// The earlier sessions, the first one first.
    pub session: Vec<EarlierSession>,
    /// The day for which the memory is; without it nothing fades.
    pub as_of: Option<Day>,
    /// Sessions that must speak of a fact before it is in force; without it as many as usual.
    pub min_sessions: Option<usize>,
    /// Tokens of what the memory gives at most; without it as many as usual.
    pub tokens: Option<usize>,
    /// Where it is kept between the sessions.
    #[serde(default)]
    pub kept: Kept,
}

/// Where a memory is kept between sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// In memory.
    #[default]
    Memory,
    /// In a memory file, which is written and read.
    File,
    /// As facts and episodes in an SQLite store, as a program keeps them.
    Sqlite,
    /// Behind an address with the interface of Mem0, which is asked over HTTP on this machine.
    Mem0,
}

/// What a memory is called in prompts: the same wherever it is kept, so that prompts can be compared.
const NAME: &str = "memory";

/// An earlier session.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierSession {
    /// The file of its log.
    pub events: String,
    /// Its day; without it the latest that its events name.
    pub day: Option<Day>,
}

impl Memories {
    pub(super) fn check(&self) -> Result<(), String> {
        match () {
            () if self.session.is_empty() => Err("`memory.session` is empty".to_owned()),
            () if self.session.iter().any(|session| session.events.trim().is_empty()) => {
                Err("`memory.session.events` is empty".to_owned())
            }
            () if self.min_sessions == Some(0) => Err("`memory.min_sessions` must be at least 1".to_owned()),
            () if self.tokens == Some(0) => Err("`memory.tokens` must be at least 1".to_owned()),
            () => Ok(()),
        }
    }

    pub(super) fn ready(&self, start: &Start<'_>) -> Result<Ready, String> {
        let Start { scenario, config, logs, .. } = start;
        let mut sessions: Vec<(&str, Option<Day>, Session)> = Vec::new();
        for (about, log) in self.session.iter().zip(*logs) {
            // As the command names a session: after its file.
            let name = about.events.split('.').next().unwrap_or_default();
            sessions.push((name, about.day, ingest(log.clone(), name, name, config).map_err(told)?.session));
        }
        let source = self.source(&sessions, config)?;
        let bounds = RecallBounds::default();
        let bounds = RecallBounds { tokens: self.tokens.unwrap_or(bounds.tokens), ..bounds };
        let carried =
            recall(source.as_ref(), (scenario.phase, &scenario.query), bounds, config, None).map_err(told)?.tokens;
        let own = ingest(start.log(), &scenario.name, &scenario.name, config).map_err(told)?.session;
        let manager = ContextManager::new(Stores::default(), Box::new(StructureSummarizer), (*config).clone());
        own.copy_to(manager.stores()).map_err(told)?;
        Ok(Ready { manager: manager.with_memory(source, bounds), carried: Some(carried) })
    }

    /// What is searched.
    fn source(
        &self,
        sessions: &[(&str, Option<Day>, Session)],
        config: &ContextConfig,
    ) -> Result<Box<dyn MemorySource>, String> {
        let usual = Rules::default();
        let rules = Rules { as_of: self.as_of, min_sessions: self.min_sessions.unwrap_or(usual.min_sessions), ..usual };
        let taken: Vec<Consolidated<'_>> =
            sessions.iter().map(|(name, day, session)| Consolidated { name, day: *day, session }).collect();
        let made = consolidate(&taken, &[], &rules, config).map_err(told)?;
        Ok(match self.kept {
            Kept::Memory => Box::new(LocalMemories::of(NAME, made.memory())),
            Kept::File => {
                let folder = tempfile::tempdir().map_err(told)?;
                let path = folder.path().join("memory.json");
                made.save(&path).map_err(told)?;
                Box::new(LocalMemories::load(&path).map_err(told)?)
            }
            Kept::Sqlite => {
                let (folder, memory) = (tempfile::tempdir().map_err(told)?, made.memory());
                let path = folder.path().join("memory.db");
                let stores = Stores::sqlite(&path).map_err(told)?;
                memory.facts.into_iter().try_for_each(|fact| stores.facts.put(fact)).map_err(told)?;
                memory.episodes.into_iter().try_for_each(|one| stores.episodes.put(one)).map_err(told)?;
                Box::new(With { source: SqliteMemories::open(&path).map_err(told)?, _needed: folder })
            }
            Kept::Mem0 => {
                let service = Service::start(LocalMemories::of(NAME, made.memory()))?;
                Box::new(With { source: service.source(), _needed: service })
            }
        })
    }
}

/// A memory, and what must be there as long as it is searched: the folder of its file, the service that has it.
struct With<S, N> {
    source: S,
    _needed: N,
}

impl<S: MemorySource, N: Send + Sync> MemorySource for With<S, N> {
    fn name(&self) -> &str {
        NAME
    }

    fn search(&self, query: &str, bounds: RecallBounds) -> Result<Vec<Remembered>, SourceError> {
        self.source.search(query, bounds)
    }

    fn search_masked(&self, query: &str, bounds: RecallBounds) -> Result<Vec<Remembered>, SourceError> {
        self.source.search_masked(query, bounds)
    }
}
