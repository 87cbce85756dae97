//! What outlives a conversation: memories made of several sessions, and sources that are searched for them.

mod cards;
mod consolidate;
mod day;
mod knowledge;
mod same;
mod source;

pub use consolidate::{
    Agreement, Consolidated, MemoryEpisode, MemoryFact, MemoryFile, MemoryFileError, MemorySession, MemoryValue, Rules,
    Seen, Standing, consolidate,
};
pub use day::{Day, ParseDayError};
#[cfg(feature = "sqlite")]
pub use source::SqliteMemories;
pub use source::{
    LocalMemories, MemorySource, RecallBounds, Recalled, Remembered, SourceError, mem0, recall, recall_for, shareable,
};
