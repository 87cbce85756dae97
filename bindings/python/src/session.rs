//! Sessions: whole conversations in one file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use contextweaver_context::adapters::Format;
use contextweaver_context::event::Phase;
use contextweaver_context::store::database::Database;
use contextweaver_context::store::{self, EpisodicStore, FactStore, Results, Stores};
use contextweaver_context::view::Bounds;
use contextweaver_context::{Firewall, HandoffRequest, Memory, Request, compile, hand_off, ingest_with};
use contextweaver_core::text::Estimator;

use crate::context::{ContextManager, Handoff, Pack, config, named};
use crate::errors::{self, InputError};
use crate::firewall::{Artifact, View, artifacts, read, shown};
use crate::json;
use crate::outside;

/// A conversation with what it stored, facts and episodes: everything that a prompt is compiled from. Immutable.
///
/// Made by `Session.ingest`, `Session.load` or `ContextManager.session`.
#[pyclass(frozen, module = "contextweaver_rs")]
pub(crate) struct Session(pub(crate) store::Session);

/// The session that was pickled.
#[pyfunction]
pub(crate) fn _session(py: Python<'_>, bytes: &[u8]) -> PyResult<Session> {
    py.detach(|| store::Session::parse(bytes, Path::new("pickle"))).map(Session).map_err(errors::session)
}

/// The session in a session file or in an SQLite store.
pub(crate) fn loaded(path: &Path) -> PyResult<store::Session> {
    if !Database::is_at(path) {
        return store::Session::load(path).map_err(errors::session);
    }
    let stores = Stores::sqlite(path).map_err(errors::session)?;
    let source = format!("SQLite store, {}", path.display());
    store::Session::from_stores(source, &stores).map_err(errors::session)
}

#[pymethods]
impl Session {
    /// Takes in a conversation: messages of OpenAI (chat or responses), Anthropic or Gemini, an A2A task, a recorded
    /// session, session lines. As text, bytes, or data. Large results are stored, and prompts get summaries of them.
    /// Session lines without an id are named after `name`; `source` says where the conversation came from. A hook of
    /// `config` that fails is a RuntimeWarning: it says what was done instead.
    ///
    /// Raises SessionError with the place of the first problem.
    #[staticmethod]
    #[pyo3(signature = (conversation, /, *, name="session", source="a program", config=None))]
    fn ingest(
        py: Python<'_>,
        conversation: &Bound<'_, PyAny>,
        name: &str,
        source: &str,
        config: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (bytes, config) = (json::bytes(conversation)?, self::config(config)?);
        let taken = py.detach(|| {
            let hooks = outside::hooks(&config)?;
            ingest_with(Some(&hooks), bytes, name, source, &config).map_err(errors::session)
        })?;
        for remark in taken.remarks.iter().filter(|remark| remark.starts_with("hook ")) {
            outside::warn(py, &format!("Session.ingest: {remark}"))?;
        }
        Ok(Self(taken.session))
    }

    /// Reads a session file, or an SQLite file of a ContextManager.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| loaded(&path)).map(Self)
    }

    /// Writes the session to a file, which is replaced whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.save(&path)).map_err(errors::session)
    }

    /// The session as the bytes of a file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        py.detach(|| self.0.write(&mut bytes)).map_err(errors::session)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The conversation in the format of a provider: `openai`, `anthropic`, `gemini` and others. Large results are what
    /// prompts show, or `whole`.
    #[pyo3(signature = (form, /, *, whole=false))]
    fn export(&self, py: Python<'_>, form: &str, whole: bool) -> PyResult<String> {
        let format = Format::ALL.iter().copied().find(|format| format.key() == form).ok_or_else(|| {
            let keys: Vec<&str> = Format::ALL.iter().map(|format| format.key()).collect();
            InputError::new_err(format!("unknown format `{form}`; use one of {}", keys.join(", ")))
        })?;
        py.detach(|| {
            let results = if whole { Results::Whole } else { Results::Shown };
            let conversation = self.0.conversation(results).map_err(errors::session)?;
            format.write(&conversation).map_err(errors::session)
        })
    }

    /// The prompt for a phase, as `contextweaver replay` prints it; see ContextManager.build.
    #[pyo3(signature = (phase="answer", query="", *, budget=None, header="", footer="", config=None))]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn build(
        &self,
        py: Python<'_>,
        phase: &str,
        query: &str,
        budget: Option<usize>,
        header: &str,
        footer: &str,
        config: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Pack> {
        let (phase, config) = (named::<Phase>(phase)?, self::config(config)?);
        let pack = py.detach(|| {
            let facts = self.0.facts.all().map_err(errors::session)?;
            let memory = Memory { facts, episodes: self.0.episodes.all().map_err(errors::session)? };
            // Without hooks it summarises by structure, and counts nothing again.
            let hooks = outside::hooks(&config)?;
            let firewall = Firewall::new(&config.firewall, config.estimator, &hooks, &self.0.artifacts);
            let compiled = |budget| {
                let request = Request { budget: Some(budget), header, footer, ..Request::new(phase, query) };
                compile(&self.0.transcript, &memory, &firewall, &request, &config)
            };
            let budget = budget.unwrap_or_else(|| config.budgets.of(phase));
            hooks.within(budget, compiled, |pack| pack).map_err(errors::context)
        })?;
        Ok(Pack { pack, cards_shown: None })
    }

    /// What the next agent or an advisor must know, as `contextweaver handoff` prints it; see ContextManager.handoff.
    /// Its `--for` is `audience` here.
    #[pyo3(signature = (query="", *, budget=1000, audience="agent", config=None))]
    fn handoff(
        &self,
        py: Python<'_>,
        query: &str,
        budget: usize,
        audience: &str,
        config: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Handoff> {
        let request = HandoffRequest { query, budget, audience: named(audience)? };
        let config = self::config(config)?;
        py.detach(|| {
            let facts = self.0.facts.all().map_err(errors::session)?;
            let memory = Memory { facts, episodes: self.0.episodes.all().map_err(errors::session)? };
            let pack = hand_off(&self.0.transcript, &memory, &request, &config);
            let next = pack.session(&self.0.source, &self.0.artifacts).map_err(errors::session)?;
            Handoff::new(&pack, &next)
        })
    }

    /// A conversation that continues from here, in memory or in the SQLite file at `path`.
    ///
    /// Raises ContextError if the file has an event with the id of one of this session, or other content under a handle
    /// of it; nothing is added then.
    #[pyo3(signature = (path=None, *, config=None))]
    fn manager(
        &self,
        py: Python<'_>,
        path: Option<PathBuf>,
        config: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<ContextManager> {
        let config = self::config(config)?;
        py.detach(|| {
            let manager = ContextManager::open(path, config, None, Arc::default())?;
            self.0.copy_to(manager.stores()).map_err(errors::context)?;
            Ok(manager)
        })
    }

    /// Where the conversation came from.
    #[getter]
    fn source(&self) -> &str {
        &self.0.source
    }

    /// The events, as a list of mappings.
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::object(py, &self.0.transcript.items())
    }

    /// What it remembers, by key.
    #[getter]
    fn facts(&self) -> PyResult<Vec<(String, String)>> {
        let facts = self.0.facts.all().map_err(errors::session)?;
        Ok(facts.into_iter().map(|fact| (fact.key, fact.value)).collect())
    }

    /// What happened before it: pairs of id and summary, oldest first.
    #[getter]
    fn episodes(&self) -> PyResult<Vec<(String, String)>> {
        let episodes = self.0.episodes.all().map_err(errors::session)?;
        Ok(episodes.into_iter().map(|episode| (episode.id, episode.summary)).collect())
    }

    /// The stored artifacts, by handle.
    #[getter]
    fn artifacts(&self) -> PyResult<Vec<Artifact>> {
        artifacts(&self.0.artifacts)
    }

    /// The whole content under a handle, byte for byte.
    fn read<'py>(&self, py: Python<'py>, handle: &str) -> PyResult<Bound<'py, PyBytes>> {
        read(py, &self.0.artifacts, handle)
    }

    /// A bounded part of an artifact; see Firewall.view.
    #[pyo3(signature = (handle, selector, /, *, cursor=None, max_bytes=8000, max_tokens=2000))]
    fn view(
        &self,
        py: Python<'_>,
        handle: &str,
        selector: &Bound<'_, PyAny>,
        cursor: Option<&str>,
        max_bytes: usize,
        max_tokens: usize,
    ) -> PyResult<View> {
        let bounds = Bounds::new(max_bytes, max_tokens, Estimator::default());
        shown(py, &self.0.artifacts, handle, selector, cursor, bounds)
    }

    /// The number of events.
    fn __len__(&self) -> usize {
        self.0.transcript.len()
    }

    fn __repr__(&self) -> String {
        format!("<Session of {} events>", self.0.transcript.len())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let arguments = (self.to_bytes(py)?,).into_pyobject(py)?;
        Ok((json::restorer(py, "_session")?, arguments))
    }
}
