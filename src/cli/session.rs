//! The arguments that the commands on sessions share: a session file, and what a prompt is compiled for.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use contextweaver_context::event::Phase;
use contextweaver_context::store::{EpisodicStore, FactStore, Session, Stores};
use contextweaver_context::summary::StructureSummarizer;
use contextweaver_context::{ContextConfig, ContextPack, Firewall, Memory, Request, compile};

/// Which session
#[derive(Debug, Args)]
pub(super) struct SessionSource {
    /// Session file, as `contextweaver ingest` writes it, or SQLite store of a program
    #[arg(long, value_name = "FILE")]
    pub(super) session: PathBuf,
}

impl SessionSource {
    pub(super) fn load(&self) -> Result<Session> {
        load(&self.session)
    }
}

/// The session in a session file or in an SQLite store.
pub(super) fn load(path: &Path) -> Result<Session> {
    let mut start = [0; DATABASE.len()];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    let is_database = read.is_ok() && start == *DATABASE;
    match is_database {
        true => Ok(Session::from_stores(format!("SQLite store, {}", path.display()), &Stores::sqlite(path)?)?),
        false => Ok(Session::load(path)?),
    }
}

/// What every SQLite file begins with.
const DATABASE: &[u8; 16] = b"SQLite format 3\0";

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
