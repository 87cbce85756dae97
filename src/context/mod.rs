//! Events, a phase and a budget give a prompt; what is too large for it stays reachable.
//!
//! This room knows nothing of routing: cards and schemas come in as data.

pub mod brief;
mod config;
mod firewall;
pub mod summary;

pub use config::{
    Budgets, ContextConfig, DedupConfig, FirewallConfig, KindPriority, MemoryConfig, Order, Policy, RenderConfig,
    ScoringConfig, SensitivityAction,
};
pub use firewall::{Firewall, FirewallError, Screened, Seen};
