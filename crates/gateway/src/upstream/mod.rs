//! The servers behind the gateway.

pub(crate) mod breaker;
pub(crate) mod bubblewrap;
pub(crate) mod built_in;
pub mod call;
pub mod client;
pub(crate) mod config;
pub(crate) mod credentials;
pub(crate) mod environment;
mod exchange;
pub(crate) mod executable;
pub mod fault;
mod headers;
pub(crate) mod http;
pub mod in_process;
pub mod mailbox;
mod peer;
mod per_caller;
pub mod registry;
pub mod retry;
pub(crate) mod sandbox;
pub(crate) mod sse;
pub(crate) mod stdio;
pub mod toolset;
pub(crate) mod vetting;

pub use self::fault::Fault;
pub use self::in_process::{Answer, InProcess, Stop};
pub use self::toolset::{DuplicateTool, Tool, Toolset};

#[cfg(test)]
pub(crate) use exchange::tests::token_answers;
