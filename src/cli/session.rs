//! The arguments that the commands on sessions share: a session file, and what a prompt is compiled for.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::context::summary::StructureSummarizer;
use crate::context::{ContextConfig, ContextPack, Firewall, Memory, Request, compile};
use crate::event::Phase;
use crate::store::{EpisodicStore, FactStore, Session};

/// Which session
#[derive(Debug, Args)]
pub(super) struct SessionSource {
    /// Session file, as `contextweaver ingest` writes it
    #[arg(long, value_name = "FILE")]
    pub(super) session: PathBuf,
}

impl SessionSource {
    pub(super) fn load(&self) -> Result<Session> {
        Ok(Session::load(&self.session)?)
    }
}

/// What a prompt is compiled for
#[derive(Debug, Args)]
pub(super) struct PromptArgs {
    /// What the events are compared with: what is asked or being done
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(super) query: String,
    /// Tokens of the prompt at most [default: the phase's of the configuration]
    #[arg(long, value_name = "N")]
    pub(super) budget: Option<usize>,
    /// Context configuration (TOML) [default: built in]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

impl PromptArgs {
    /// The prompt of `session` for `phase`, with its account.
    pub(super) fn compile(&self, session: &Session, phase: Phase, config: &ContextConfig) -> Result<ContextPack> {
        let memory = Memory { facts: session.facts.all()?, episodes: session.episodes.all()? };
        let firewall = Firewall::new(&config.firewall, config.estimator, &StructureSummarizer, &session.artifacts);
        let request = Request { budget: self.budget, ..Request::new(phase, &self.query) };
        Ok(compile(&session.transcript, &memory, &firewall, &request, config)?)
    }
}

/// The configuration at `path`, or the built-in one.
pub(super) fn context_config(path: Option<&Path>) -> Result<ContextConfig> {
    Ok(path.map(ContextConfig::load).transpose()?.unwrap_or_default())
}
