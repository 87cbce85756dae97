//! The arguments that the commands on sessions share: a session file, and what a prompt is compiled for.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Error, Result, anyhow, bail};
use clap::Args;

use super::files::{Overwrite, begins_as, is_stream};
use super::outside;
use contextweaver_context::adapters::SESSION_FILE;
use contextweaver_context::event::Phase;
use contextweaver_context::memory::{RecallBounds, recall_for};
use contextweaver_context::store::database::Database;
use contextweaver_context::store::{EpisodicStore, FactStore, Session, SessionError, StoreError, Stores};
use contextweaver_context::summary::Summarizer;
use contextweaver_context::{ContextConfig, ContextConfigError, ContextPack, Firewall, Memory, Request, compile};

/// Which session
#[derive(Debug, Args)]
pub(super) struct SessionSource {
    /// Session file, as `contextweaver ingest` writes it, or a program's SQLite store
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
    match Database::is_at(path) {
        true => Ok(Session::from_stores(format!("SQLite store, {}", path.display()), &Stores::sqlite(path)?)?),
        false => Session::load(path).map_err(|error| match error {
            SessionError::Foreign { .. } => anyhow!(
                "{error}; to make one of a conversation, run `contextweaver ingest --events {} --out NAME.session`",
                path.display()
            ),
            error => error.into(),
        }),
    }
}

/// Refuses to write a session in the place of something else.
///
/// # Errors
/// Names the file.
pub(super) fn refuse_other(path: &Path, overwrite: &Overwrite) -> Result<()> {
    // What is in a store is looked at when it is opened.
    if is_store(path) {
        return Ok(());
    }
    overwrite.check(path, "a session", |bytes| begins_as(bytes, SESSION_FILE))
}

/// Whether the name of a file says that it is an SQLite store.
fn is_store(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "sqlite" || end == "db")
}

/// Writes a session as what the name of the file says: `.sqlite` and `.db` are SQLite stores, `-` is standard output,
/// everything else is a session file.
///
/// A session file is replaced. A store is not: a program may be at work in it, so it must be new or empty.
///
/// # Errors
/// Names the file, when it cannot be written or is a store with something in it.
pub(super) fn save(session: &Session, path: &Path, out: &mut dyn Write) -> Result<()> {
    if is_stream(path) {
        return Ok(session.write(out)?);
    }
    if !is_store(path) {
        return Ok(session.save(path)?);
    }
    let is_new = !path.exists();
    let stores = Stores::sqlite(path)?;
    if !is_empty(&stores)? {
        bail!("{}: this store is not empty; name a new file", path.display());
    }
    let copied = session.copy_to(&stores);
    drop(stores);
    if copied.is_err() && is_new {
        // Half a conversation is none.
        for end in ["", "-wal", "-shm"] {
            let mut name = path.as_os_str().to_owned();
            name.push(end);
            let _ = std::fs::remove_file(name);
        }
    }
    Ok(copied?)
}

fn is_empty(stores: &Stores) -> Result<bool, StoreError> {
    let (artifacts, facts) = (stores.artifacts.list()?, stores.facts.all()?);
    Ok(stores.events.is_empty()? && artifacts.is_empty() && facts.is_empty() && stores.episodes.latest(1)?.is_empty())
}

/// What a prompt is compiled for
#[derive(Debug, Args)]
pub(super) struct PromptArgs {
    /// What is being asked or done; events that fit it are kept first
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(super) query: String,
    /// The budget to compile the prompt for, in tokens [default: the configuration's for the phase]
    #[arg(long, value_name = "N")]
    pub(super) budget: Option<usize>,
    /// Context configuration (TOML) [default: built in]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Memory to search for what the query asks: memory file, session, facts, Markdown
    /// document or folder of them, cards (JSON), SQLite store, or address of a Mem0 service
    #[arg(long, value_name = "SOURCE")]
    pub(super) memory: Option<String>,
    /// Maximum tokens to take from the memory
    #[arg(long, value_name = "N", default_value_t = RecallBounds::default().tokens, requires = "memory")]
    pub(super) memory_tokens: usize,
}

impl PromptArgs {
    /// The prompt of `session` for `phase`, with its account.
    pub(super) fn compile(&self, session: &Session, phase: Phase, config: &ContextConfig) -> Result<ContextPack> {
        let mut memory = Memory { facts: session.facts.all()?, episodes: session.episodes.all()? };
        let hooks = outside::hooks(config)?.unwrap_or_default();
        let mut notes = Vec::new();
        if let Some(source) = self.memory.as_deref().map(outside::memory).transpose()? {
            let bounds = RecallBounds { tokens: self.memory_tokens, ..RecallBounds::default() };
            let request = Request { budget: self.budget, ..Request::new(phase, &self.query) };
            let own = (&session.transcript, &memory);
            let recalled = recall_for(source.as_ref(), &request, bounds, own, config, hooks.redactor())?;
            notes.push(recalled.note(source.name()));
            memory.facts.extend(recalled.facts);
        }
        // Without one of its own it is the summariser of structure.
        let summarizer: &dyn Summarizer = &hooks;
        let firewall = Firewall::new(&config.firewall, config.estimator, summarizer, &session.artifacts);
        let compiled = |budget| {
            let request = Request { budget: Some(budget), ..Request::new(phase, &self.query) };
            compile(&session.transcript, &memory, &firewall, &request, config)
        };
        let budget = self.budget.unwrap_or_else(|| config.budgets.of(phase));
        let mut pack = hooks.within(budget, compiled, |pack| pack)?;
        pack.stats.notes.extend(notes);
        Ok(pack)
    }
}

/// The configuration at `path`, or the built-in one.
pub(super) fn context_config(path: Option<&Path>) -> Result<ContextConfig> {
    let Some(path) = path else { return Ok(ContextConfig::default()) };
    ContextConfig::load(path).map_err(|error| match error {
        // It names the file already.
        ContextConfigError::Read(_) => error.into(),
        error => Error::from(error).context(path.display().to_string()),
    })
}
