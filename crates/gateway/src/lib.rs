//! An MCP gateway: one MCP server in front of any number of MCP servers.
//!
//! | mode | what a client sees |
//! |---|---|
//! | gateway | `tool_browse`, `tool_execute`, `tool_view` |
//! | proxy | every tool without its schema, `tool_hydrate`, `tool_execute` |
//! | passthrough | every tool as its server defines it; nothing is changed |
//!
//! A message comes in on a transport (standard streams or HTTP), is dispatched by its method, and is answered from an
//! immutable view of what the upstreams list. A call passes the guards on its way to an upstream, and its result passes
//! them and the result firewall on its way back. The crate ranks and packs nothing itself, and it is the only library crate
//! with an asynchronous runtime. No typed models are on the way of calls and results: what is passed on stays the bytes that
//! came in.
//!
//! The folders, each of which uses only those before it: `protocol`, `common`, `surface`, `session`, `guard`,
//! `telemetry`, `upstream`, `results`, `config`, `catalog`, `tools`, `server`, `transport`, `operations`.

mod catalog;
mod common;
mod config;
pub mod guard;
mod operations;
mod protocol;
mod results;
mod server;
mod session;
mod surface;
mod telemetry;
#[cfg(test)]
mod tests;
mod tools;
mod transport;
pub mod upstream;

pub use catalog::answer_forms::AnswersFault;
pub use catalog::answers::{Answered, Answers, AnswersError, Share};
pub use catalog::from_file::FileCatalogError;
pub use catalog::names::published_name;
pub use catalog::serving::{StartError, UpstreamReport};
pub use catalog::shelf::Shelf;
pub use catalog::view::{CatalogView, Counts};
pub use common::budget::WorkConfig;
pub use common::error::{Code, GatewayError, text_result};
pub use common::masks::Masks;
pub use common::program::quoted;
pub use common::sanitize;
pub use common::secret::Secret;
pub use common::settings::FieldError;
pub use common::work::while_waiting;
pub use common::yaml::YamlError;
pub use config::caller::CallerBounds;
pub use config::caller_file::CallersConfig;
pub use config::error::ConfigError;
pub use config::file::{CatalogFile, GatewayConfig};
pub use config::http::{HostRule, HttpConfig, OriginRule, ProxyRule, RuleError, Token, TokenError, TokenHolder};
pub use config::oauth::{Algorithm, OAuthConfig, ScopeRule};
pub use config::startup::{StartConfig, StartMode};
pub use config::tls::{CertificateHolder, CertificateName, TlsConfig};
pub use operations::applied::{Beside, Change, NewGateway, Restored, apply, restored};
pub use operations::audit_trail::{AuditCheck, AuditFilter, Misfit};
pub use operations::capture::Capture;
pub use operations::client_cover::without_secrets;
pub use operations::client_files::{ClientFile, ClientFileError, GatewayEntry};
pub use operations::clients::{Client, Place, Snippet, discover, entry, snippet};
pub use operations::doctor::{Complaint, Confusable, Environment, Examination, Health, Outlook, examine};
pub use operations::event_feed::{EventFeed, Seen};
pub use operations::event_lines::{BadLine, BadLines, Window};
pub use operations::event_rows::{CallRow, CallRows, SessionRow, SessionRows};
pub use operations::event_stats::{Durations, EventStats, Tally};
pub use operations::import::{Addition, Conversion, Converted, Present, Skipped, convert, convert_beside};
pub use operations::incident::{Incident, IncidentEntry, IncidentFile, IncidentGap, IncidentManifest};
pub use operations::memory::{MemoryBounds, MemoryServer};
pub use operations::playback::{Playback, PlaybackError, serve_playback};
pub use operations::preview::{Preview, PreviewedTool};
pub use operations::recording::{Direction, RecordError, RecordReport, Recorder, Times, record};
pub use operations::references::resolved;
pub use operations::rights::Rights;
pub use operations::running_stats::{RunningStats, RunningTool};
pub use operations::servers::new_server;
pub use operations::tool_rows::{NeverCalled, ToolRow, ToolRows};
pub use protocol::client_info::{Capabilities, ClientInfo, LogLevel};
pub use protocol::listing::{Listing, ServerInfo};
pub use protocol::message as wire;
pub use protocol::versions::{LEGACY_VERSIONS, MODERN_VERSION};
pub use results::artifacts::ArtifactsConfig;
pub use server::gateway::{Gateway, Opening};
pub use server::live::Live;
pub use server::local_client::{LocalClient, LocalError, LocalSession};
pub use session::client::{Caller, Session};
pub use session::elicitation::Questions;
pub use session::identity::Identity;
pub use surface::mode::{CardForm, Mode, Structured};
pub use telemetry::audit::{AuditConfig, AuditError, OnFailure};
pub use telemetry::audit_line::{AUDIT_VERSION, AuditDecision, AuditEvent, AuditLine};
pub use telemetry::diagnostics::{Diagnostics, EVENT_VERSION, Event, EventName, Happening, WallClock};
pub use telemetry::otlp::OtlpConfig;
pub use telemetry::savings::{Savings, Spent};
pub use transport::http::api::{Answer, Api, ApiControl, ApiServer};
pub use transport::http::console::{ConsoleConfig, ConsoleError, ConsoleServer};
pub use transport::http::listener::HttpError;
pub use transport::http::server::{HttpControl, HttpServer, Prepared};
pub use transport::stdio::{serve, serve_stdio};
pub use upstream::breaker::CircuitState;
pub use upstream::config::{Confinement, Era, Target, UpstreamConfig};
pub use upstream::credentials::{ClientAuthentication, Credentials, Exchange, Passthrough};
pub use upstream::environment::Inherit;
pub use upstream::sandbox::{ByteSize, Home, Network, Reach, Right, Sandbox};
