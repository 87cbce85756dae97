//! The engines at work: an MCP server in front of any number of MCP servers.
//!
//! | mode | what a client sees |
//! |---|---|
//! | gateway | `tool_browse`, `tool_execute`, `tool_view` |
//! | proxy | every tool without its schema, `tool_hydrate`, `tool_execute` |
//! | passthrough | every tool as its server defines it; nothing is changed |
//!
//! A message comes in on a face (standard streams or HTTP), is answered by the [`Gateway`] on one [`Snapshot`] of what
//! the upstreams list, and where it calls a tool goes through the guards to an [`Upstream`](upstream::Upstream). The
//! room ranks and packs nothing itself, and it is the only one that knows of tasks, sockets and processes. The
//! library's typed models are not on the way of calls and results: what is passed on stays the bytes that came in.

mod browse;
mod client;
mod config;
mod error;
mod execute;
mod glob;
mod hub;
mod lines;
mod protocol;
mod session;
mod snapshot;
mod stdio;
mod subscriptions;
mod surface;
pub mod upstream;
mod view;
pub mod wire;

pub use client::{LocalClient, LocalError};
pub use config::{
    CardForm, ConfigError, Era, GatewayConfig, Mode, StartConfig, StartMode, Structured, Target, UpstreamConfig,
};
pub use error::{Code, GatewayError, text_result};
pub use hub::{Gateway, StartError, UpstreamReport};
pub use session::{Caller, ClientInfo, LEGACY_VERSIONS, MODERN_VERSION, Session};
pub use snapshot::{Counts, Shelf, Snapshot, published_name};
pub use stdio::{serve, serve_stdio};
