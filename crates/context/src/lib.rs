//! Compiles events, a phase and a budget into a prompt, and keeps what is too large for it reachable.
//!
//! This crate knows nothing of routing: cards and schemas come in as text.

pub mod adapters;
pub mod brief;
pub mod clean;
mod compile;
mod config;
pub mod event;
mod firewall;
pub mod handoff;
pub mod hooks;
mod intake;
pub mod literal;
mod manager;
pub mod memory;
mod prompt;
mod split;
mod stats;
pub mod store;
pub mod summary;
pub mod view;
mod xml;

pub use compile::{CompileError, Memory, Request, Workspace, compile, compile_in, one_line};
pub use config::{
    Budgets, ContextConfig, ContextConfigError, DedupConfig, FirewallConfig, Headings, KindPriority, MemoryConfig,
    Order, Policy, RawCount, RenderConfig, ScoringConfig, Secrets, SensitivityAction,
};
pub use firewall::{Firewall, FirewallError, Redactor, Screened, Seen, fact_records};
pub use handoff::{Audience, Handoff, HandoffRequest, hand_off};
pub use intake::{IngestError, Ingested, Intake, IntakeError, count_kinds, ingest, ingest_with, remember, take_in};
pub use manager::{ContextManager, ManagerError};
pub use prompt::{RoutePrompt, build_call_prompt, build_route_prompt};
pub use stats::{BuildStats, ContextPack, DropReason, DroppedItem, FirewallCause, FirewallEvent, Form, IncludedItem};
