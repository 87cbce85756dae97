//! Events, a phase and a budget give a prompt; what is too large for it stays reachable.
//!
//! This room knows nothing of routing: cards and schemas come in as data.

pub mod brief;
mod compile;
mod config;
mod firewall;
pub mod literal;
mod stats;
pub mod summary;

pub use compile::{CompileError, Memory, Request, Workspace, compile, compile_in, unescape};
pub use config::{
    Budgets, ContextConfig, DedupConfig, FirewallConfig, KindPriority, MemoryConfig, Order, Policy, RawCount,
    RenderConfig, ScoringConfig, SensitivityAction,
};
pub use firewall::{Firewall, FirewallError, Screened, Seen, fact_records};
pub use stats::{BuildStats, ContextPack, DropReason, DroppedItem, FirewallCause, FirewallEvent, Form, IncludedItem};
