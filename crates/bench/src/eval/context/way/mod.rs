//! Scenarios whose prompt rests on more than the events of one log as they are: earlier sessions that became a memory, a
//! hand-over of what was before, results that were processed elsewhere, and hooks.
//!
//! A scenario names one of these ways by the table of that name. Each has a file here: its table, and how a conversation
//! is made ready for its prompt. Beside the prompt stands a control of the same budget, see [`run`].

mod envelopes;
mod handoff;
mod hooks;
mod mem0;
mod memory;
pub mod record;
pub mod run;

use std::path::{Path, PathBuf};

pub use self::envelopes::Envelopes;
pub use self::handoff::Handover;
pub use self::hooks::{Counting, Lines, Masking, StandIns};
pub use self::memory::{EarlierSession, Kept, Memories};
pub use self::record::WayKind;
use super::scenario::Scenario;
use contextweaver_context::adapters::Conversation;
use contextweaver_context::{ContextConfig, ContextManager};

/// How something comes into the prompt that its log alone does not give.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// Earlier sessions are consolidated into a memory, which the prompt searches.
    Memory(Memories),
    /// What was before an event becomes a hand-over, and a new session goes on from it.
    Handoff(Handover),
    /// Results come as envelopes of a program that processed them.
    Envelopes(Envelopes),
    /// Other programs summarise, count or mask.
    Hooks(StandIns),
}

/// The tables of a scenario file that name a way.
pub(super) struct Tables {
    pub(super) memory: Option<Memories>,
    pub(super) handoff: Option<Handover>,
    pub(super) envelopes: Option<Envelopes>,
    pub(super) hooks: Option<StandIns>,
}

/// The conversation of a scenario before its prompt is compiled.
struct Ready {
    /// The conversation.
    manager: ContextManager,
    /// Tokens of what comes from before; `None` where nothing does.
    carried: Option<usize>,
}

/// What a way starts from.
struct Start<'s> {
    scenario: &'s Scenario,
    config: &'s ContextConfig,
    /// The bytes of each log, the one of the prompt last.
    logs: &'s [Vec<u8>],
    /// What was read of them.
    conversations: &'s [Conversation],
}

impl Start<'_> {
    /// The log of the prompt.
    fn log(&self) -> Vec<u8> {
        self.logs.last().cloned().unwrap_or_default()
    }

    /// The conversation of the prompt.
    fn conversation(&self) -> Conversation {
        self.conversations.last().cloned().unwrap_or_default()
    }
}

impl Tables {
    /// The way that is named, if any.
    ///
    /// # Errors
    /// There is more than one, or a field is wrong.
    pub(super) fn way(self) -> Result<Option<Way>, String> {
        let mut ways: Vec<Way> = [
            self.memory.map(Way::Memory),
            self.handoff.map(Way::Handoff),
            self.envelopes.map(Way::Envelopes),
            self.hooks.map(Way::Hooks),
        ]
        .into_iter()
        .flatten()
        .collect();
        if let [first, second, ..] = ways.as_slice() {
            return Err(format!(
                "`{}` and `{}`: a scenario has one of them",
                first.kind().name(),
                second.kind().name()
            ));
        }
        let way = ways.pop();
        if let Some(way) = &way {
            way.check()?;
        }
        Ok(way)
    }
}

impl Way {
    /// Which one it is.
    #[must_use]
    pub fn kind(&self) -> WayKind {
        match self {
            Self::Memory(memory) => match memory.kept {
                Kept::Memory => WayKind::Memory,
                Kept::File => WayKind::MemoryFile,
                Kept::Sqlite => WayKind::MemorySqlite,
                Kept::Mem0 => WayKind::MemoryMem0,
            },
            Self::Handoff(_) => WayKind::Handoff,
            Self::Envelopes(_) => WayKind::Envelopes,
            Self::Hooks(_) => WayKind::Hooks,
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Memory(memory) => memory.check(),
            Self::Handoff(handover) => handover.check(),
            Self::Envelopes(envelopes) => envelopes.check(),
            Self::Hooks(stand_ins) => stand_ins.check(),
        }
    }

    /// The logs of earlier sessions, the first one first.
    pub(super) fn earlier(&self, folder: &Path) -> Vec<PathBuf> {
        match self {
            Self::Memory(memory) => memory.session.iter().map(|session| folder.join(&session.events)).collect(),
            Self::Handoff(_) | Self::Envelopes(_) | Self::Hooks(_) => Vec::new(),
        }
    }

    /// What the table asks of the conversation of the prompt.
    ///
    /// # Errors
    /// What it lacks, with the field that names it.
    pub(super) fn fits(&self, conversation: &Conversation) -> Result<(), String> {
        match self {
            Self::Memory(_) | Self::Hooks(_) => Ok(()),
            Self::Handoff(handover) => handover.fits(conversation),
            Self::Envelopes(envelopes) => envelopes.fits(conversation),
        }
    }

    fn ready(&self, start: &Start<'_>) -> Result<Ready, String> {
        match self {
            Self::Memory(memory) => memory.ready(start),
            Self::Handoff(handover) => handover.ready(start),
            Self::Envelopes(envelopes) => envelopes.ready(start),
            Self::Hooks(stand_ins) => stand_ins.ready(start),
        }
    }
}

/// An error as text.
fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}
