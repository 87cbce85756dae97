//! How an upstream is reached, and what is taken of it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::credentials::Credentials;
use super::environment::Inherit;
use super::in_process::InProcess;
use super::sandbox::Sandbox;
use crate::common::masks::Masks;
use contextweaver_context::store::redact;
use contextweaver_core::text::sha256_hex;

/// The protocol of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Asks for the stateless protocol and falls back to the handshake.
    #[default]
    Auto,
    /// `initialize`, up to 2025-11-25.
    Legacy,
    /// `server/discover`, from 2026-07-28.
    Modern,
}

/// What a child process may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confinement {
    /// What the user may reach that the gateway runs as.
    Open {
        /// What it inherits of the gateway's environment.
        inherit: Inherit,
        /// Its working folder; the gateway's when `None`.
        cwd: Option<PathBuf>,
    },
    /// What a sandbox lets through. It inherits no variables.
    Sandbox(Box<Sandbox>),
}

impl Default for Confinement {
    fn default() -> Self {
        Self::Open { inherit: Inherit::default(), cwd: None }
    }
}

/// How an upstream is reached. What is shown of it for debugging has no values of variables and headers, and nothing
/// that looks like a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Target {
    /// A child process that speaks on its standard streams.
    Stdio {
        /// The program to start.
        command: String,
        /// The arguments of the program.
        args: Vec<String>,
        /// Variables of its own entry.
        env: BTreeMap<String, String>,
        /// What it may reach.
        confinement: Confinement,
    },
    /// A server of streamable HTTP.
    Http {
        /// The URL of the endpoint.
        url: String,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
    },
    /// A server of the older HTTP with server-sent events.
    Sse {
        /// The endpoint of the event stream.
        url: String,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
    },
    /// A server whose configuration names variables that are not set: it cannot be reached, and the others can.
    Unset {
        /// The variables, sorted.
        variables: Vec<String>,
    },
    /// The texts below a folder, which this process searches and reads.
    Documents {
        /// The folder.
        folder: PathBuf,
    },
    /// A database of SQLite, which this process reads.
    Database {
        /// The file.
        file: PathBuf,
    },
    /// Code of this process; no file can say it.
    InProcess(InProcess),
}

impl fmt::Debug for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |values: &BTreeMap<String, String>| values.keys().cloned().collect::<Vec<_>>();
        let shown = |text: &str| redact(text).text.into_owned();
        match self {
            Self::Stdio { command, args, env, confinement } => formatter
                .debug_struct("Stdio")
                .field("command", &shown(command))
                .field("args", &shown(&args.join(" ")))
                .field("env", &names(env))
                .field("confinement", confinement)
                .finish(),
            Self::Http { url, headers } => {
                formatter.debug_struct("Http").field("url", &shown(url)).field("headers", &names(headers)).finish()
            }
            Self::Sse { url, headers } => {
                formatter.debug_struct("Sse").field("url", &shown(url)).field("headers", &names(headers)).finish()
            }
            Self::Unset { variables } => formatter.debug_struct("Unset").field("variables", variables).finish(),
            Self::Documents { folder } => formatter.debug_struct("Documents").field("folder", folder).finish(),
            Self::Database { file } => formatter.debug_struct("Database").field("file", file).finish(),
            Self::InProcess(answer) => formatter.debug_tuple("InProcess").field(answer).finish(),
        }
    }
}

impl Target {
    /// All of it in one text, also what is not shown; each value in it as `written` has it.
    pub(crate) fn in_full(&self, written: impl Fn(&str) -> String) -> String {
        let all = |values: &BTreeMap<String, String>| -> Vec<(String, String)> {
            values.iter().map(|(name, value)| (name.clone(), written(value))).collect()
        };
        match self {
            Self::Stdio { command, args, env, confinement } => {
                let args: Vec<String> = args.iter().map(|argument| written(argument)).collect();
                format!("{:?}", ("stdio", written(command), args, all(env), confinement))
            }
            Self::Http { url, headers } => format!("{:?}", ("http", written(url), all(headers))),
            Self::Sse { url, headers } => format!("{:?}", ("sse", written(url), all(headers))),
            other => format!("{other:?}"),
        }
    }
}

/// One upstream, checked. What is shown of it for debugging has nothing that came from the environment.
#[derive(Clone, PartialEq)]
pub struct UpstreamConfig {
    /// How it is reached.
    pub target: Target,
    /// The namespace of its tools; its name when `None`.
    pub namespace: Option<String>,
    /// Whether the gateway must not start without it.
    pub required: bool,
    /// Globs of the tools that are taken; all when empty.
    pub include_tools: Vec<String>,
    /// Globs of the tools that are not.
    pub exclude_tools: Vec<String>,
    /// How long it has for an answer.
    pub timeout: Duration,
    /// The era of the protocol that it speaks.
    pub era: Era,
    /// As whom it is asked.
    pub credentials: Credentials,
    /// What covers the values from the environment, wherever it is spoken of.
    pub masks: Masks,
}

impl fmt::Debug for UpstreamConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, namespace, required, include_tools, exclude_tools, timeout, era, credentials, masks } = self;
        formatter
            .debug_struct("UpstreamConfig")
            .field("target", &format_args!("{}", masks.cover(&format!("{target:?}"))))
            .field("namespace", namespace)
            .field("required", required)
            .field("include_tools", include_tools)
            .field("exclude_tools", exclude_tools)
            .field("timeout", timeout)
            .field("era", era)
            .field("credentials", credentials)
            .field("masks", masks)
            .finish()
    }
}

impl UpstreamConfig {
    /// A digest of what is asked, and as whom: answers of one are no answers of another.
    pub(crate) fn source(&self) -> String {
        sha256_hex(format!("{} {:?}", self.target.in_full(str::to_owned), self.credentials).as_bytes())
    }

    /// An upstream reached so, and for the rest as if a file said nothing of it.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            namespace: None,
            required: false,
            include_tools: Vec::new(),
            exclude_tools: Vec::new(),
            timeout: Duration::from_secs_f64(DEFAULT_TIMEOUT_SECONDS),
            era: Era::default(),
            credentials: Credentials::default(),
            masks: Masks::default(),
        }
    }
}

/// Seconds that an upstream has for an answer when the file says nothing.
pub(crate) const DEFAULT_TIMEOUT_SECONDS: f64 = 30.0;
