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

mod artifacts;
mod browse;
mod capture;
mod client;
mod clients;
mod config;
mod convert;
mod diagnostics;
mod doctor;
#[cfg(feature = "minilm")]
mod download;
mod error;
mod execute;
mod face;
mod follow;
mod glob;
pub mod guard;
mod http;
mod hub;
mod inspect;
mod lines;
mod lists;
mod metrics;
mod modern;
mod passing;
mod primitives;
mod protocol;
mod question;
mod recording;
mod replay;
mod screen;
mod session;
mod snapshot;
mod stats;
mod stdio;
mod subscribe;
mod subscriptions;
mod surface;
pub mod upstream;
mod view;
pub mod wire;
mod written;

pub use artifacts::ArtifactsConfig;
pub use capture::Capture;
pub use client::{LocalClient, LocalError};
pub use clients::{Client, ClientFile, ClientFileError, Place, Snippet, discover, quoted, snippet};
pub use config::{
    CardForm, ConfigError, Era, GatewayConfig, Mode, StartConfig, StartMode, Structured, Target, UpstreamConfig,
};
pub use convert::{Conversion, Converted, Skipped, convert};
pub use diagnostics::{Diagnostics, EVENT_VERSION, Event, EventName, Happening, WallClock};
pub use doctor::{Complaint, Environment, Examination, Health, examine};
#[cfg(feature = "minilm")]
pub use download::{DownloadError, download};
pub use error::{Code, GatewayError, text_result};
pub use http::{HostRule, HttpConfig, HttpError, HttpFace, OriginRule, Token, TokenHolder};
pub use hub::{Gateway, StartError, UpstreamReport};
pub use inspect::{InspectedTool, Inspection};
pub use modern::LogLevel;
pub use question::Questions;
pub use recording::{Direction, RecordError, RecordReport, Recorder, Times, record};
pub use replay::{Replay, ReplayError, serve_replay};
pub use session::{Caller, ClientInfo, Identity, LEGACY_VERSIONS, MODERN_VERSION, Session};
pub use snapshot::{Counts, Shelf, Snapshot, published_name};
pub use stats::{BadLine, Durations, EventStats, Tally};
pub use stdio::{serve, serve_stdio};
pub use upstream::Inherit;
