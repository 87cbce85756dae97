//! What was said and done: the plain data that the context engine compiles prompts from.
//!
//! Items, the checked order of them, artifacts, envelopes, selectors, facts and episodes. Nothing here reads or
//! writes files, and nothing here decides what a prompt shows.

mod artifact;
mod envelope;
mod item;
mod memory;
mod output;
mod selector;
mod transcript;

pub use artifact::{ArtifactRef, ContentHash, Handle};
pub use envelope::{FirewallStats, ResultEnvelope, Status, Strategy, ViewSpec};
pub use item::{ContextItem, ItemId, ItemKind, Phase, Sensitivity};
pub use memory::{Episode, Fact};
pub use output::{Part, PartBody, ToolOutput};
pub use selector::{ParseSelectorError, Selector};
pub use transcript::{Transcript, TranscriptError};

pub use contextweaver_core::names::ParseNameError;
