//! Conversations and the prompts that they give.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use contextweaver_context::adapters::read_envelope;
use contextweaver_context::event::{ContextItem, ItemKind, Phase, Sensitivity};
use contextweaver_context::hooks::HookKind;
use contextweaver_context::memory::{MemorySource, RecallBounds};
use contextweaver_context::store::{self, Stores};
use contextweaver_context::summary::StructureSummarizer;
use contextweaver_context::view::Bounds;
use contextweaver_context::{
    self as core, ContextConfig, ContextConfigError, ContextPack, HandoffRequest, IngestError, Request, RoutePrompt,
};

use crate::errors::{self, InputError};
use crate::firewall::{Artifact, Envelope, View, artifacts, output, read, shown};
use crate::json;
use crate::memory::Memory;
use crate::outside::{self, Functions};
use crate::routing::Route;
use crate::session::Session;

/// The configuration of the context engine: the default, a TOML file, or a mapping.
pub(crate) fn config(value: Option<&Bound<'_, PyAny>>) -> PyResult<ContextConfig> {
    json::config::<ContextConfig, ContextConfigError>(value, ContextConfig::validate)
}

/// One of a fixed set of names.
pub(crate) fn named<T: std::str::FromStr>(text: &str) -> PyResult<T>
where
    T::Err: std::error::Error,
{
    text.parse().map_err(errors::input)
}

/// A conversation: events go in, prompts come out. Threads may share it.
///
/// It lives as long as the object, or in the SQLite file at `path`, which is created if it does not exist and may be
/// open in other processes too. `config` is a mapping, or the path of a TOML file; its hooks are commands or addresses.
/// `memory` is a Memory, the path of a memory file, a session, facts, episodes or an SQLite store, or the address of a
/// service with the interface of Mem0, whose key is in the variable `MEM0_API_KEY`. It is searched for each prompt of a
/// phase that reads memory.
///
/// Functions replace the built-in ones, and the hooks of `config`: `summarizer(content, media_type, tokens)` returns
/// a summary of a large result, with at most `tokens` tokens; `token_counter(text)` returns the number of tokens of a
/// finished prompt, which is then within its budget by that count too; `redactor(text)` returns a text without what
/// nobody may see, after the built-in one and before it is stored. If one raises an exception, or returns something
/// else, the built-in does the work, and the notes in the `stats` of the next prompt say so; after three failures in
/// a row it is not called for a minute. While it runs, it cannot use the conversation that calls it.
///
/// With `require_redactor`, a text for which the redactor fails is withheld, and a mark is stored in its place. It needs
/// a `redactor`, or one in `config`.
///
/// `on_build(phase, stats)` is called for each prompt that is built, before it is returned, with what Pack.stats gives.
/// An exception in it becomes a RuntimeWarning, and the prompt is still returned.
#[pyclass(frozen, module = "contextweaver_rs")]
pub(crate) struct ContextManager {
    manager: core::ContextManager,
    functions: Arc<Functions>,
}

impl ContextManager {
    pub(crate) fn open(
        path: Option<PathBuf>,
        config: ContextConfig,
        memory: Option<Box<dyn MemorySource>>,
        functions: Arc<Functions>,
    ) -> PyResult<Self> {
        let stores = match path {
            None => Stores::default(),
            Some(path) => Stores::sqlite(path).map_err(errors::context)?,
        };
        let hooks = (!config.hooks.is_empty()).then(|| outside::hooks(&config)).transpose()?;
        let mut manager = core::ContextManager::new(stores, Box::new(StructureSummarizer), config);
        if let Some(hooks) = functions.over(hooks) {
            manager = manager.with_hooks(hooks);
        }
        if let Some(memory) = memory {
            manager = manager.with_memory(memory, RecallBounds::default());
        }
        Ok(Self { manager, functions })
    }

    pub(crate) fn stores(&self) -> &Stores {
        self.manager.stores()
    }

    /// Does what may ask the functions, with the interpreter lock released.
    fn asking<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&core::ContextManager) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.functions.check_free()?;
        let done = py.detach(|| work(&self.manager));
        outside::take_ended().map_or(done, Err)
    }

    /// A prompt that was built, after `on_build` was told.
    fn built(&self, py: Python<'_>, pack: ContextPack, cards_shown: Option<usize>) -> PyResult<Pack> {
        self.functions.built(py, pack.phase.name(), || Ok(json::object(py, &pack.stats)?.unbind()))?;
        Ok(Pack { pack, cards_shown })
    }
}

#[pymethods]
impl ContextManager {
    #[new]
    #[pyo3(signature = (
        path=None, *, config=None, memory=None, summarizer=None, token_counter=None, redactor=None,
        require_redactor=false, on_build=None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        config: Option<&Bound<'_, PyAny>>,
        memory: Option<&Bound<'_, PyAny>>,
        summarizer: Option<&Bound<'_, PyAny>>,
        token_counter: Option<&Bound<'_, PyAny>>,
        redactor: Option<&Bound<'_, PyAny>>,
        require_redactor: bool,
        on_build: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let config = self::config(config)?;
        if require_redactor && redactor.is_none() && config.hooks.redactor.is_none() {
            return Err(InputError::new_err("`require_redactor` needs a `redactor`; give one, here or in `config`"));
        }
        let hooks = [
            (HookKind::Summarizer, summarizer),
            (HookKind::TokenCounter, token_counter),
            (HookKind::Redactor, redactor),
        ];
        let functions = Functions::new(hooks, require_redactor, on_build)?;
        let memory: Option<Box<dyn MemorySource>> = match memory {
            None => None,
            Some(memory) => Some(match memory.cast::<Memory>() {
                Ok(memory) => Box::new(memory.get().source()),
                Err(_) => {
                    let place: PathBuf = memory.extract()?;
                    py.detach(|| outside::memory(&place))?
                }
            }),
        };
        py.detach(|| Self::open(path, config, memory, Arc::clone(&functions)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.functions.traverse(&visit)
    }

    fn __clear__(&self) {
        self.functions.clear();
    }

    /// Adds an event. `kind` is `user_turn`, `agent_msg`, `tool_call`, `doc_snippet`, `retrieved_doc`, `memory_fact`,
    /// `plan_state` or `policy`; results are added with `ingest_tool_result`. `parent` is the id of the event that this
    /// one depends on. Events that are `confidential` or `restricted` are kept out of prompts, unless configured
    /// otherwise.
    ///
    /// Raises ContextError if the id is taken or the parent does not exist.
    #[pyo3(signature = (id, kind, text, *, parent=None, sensitivity="public", metadata=None))]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn ingest(
        &self,
        py: Python<'_>,
        id: &str,
        kind: &str,
        text: &str,
        parent: Option<&str>,
        sensitivity: &str,
        metadata: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let kind = named::<ItemKind>(kind)?;
        if kind == ItemKind::ToolResult {
            return Err(InputError::new_err(
                "results are added with `ingest_tool_result`, which keeps large ones out of prompts",
            ));
        }
        let mut item = ContextItem::new(id, kind, text);
        item.parent_id = parent.map(Into::into);
        item.sensitivity = named::<Sensitivity>(sensitivity)?;
        if let Some(metadata) = metadata {
            let text = json::dumps(metadata)?;
            json::check_integers(metadata)?;
            item.metadata = json::read(&text)?;
        }
        self.asking(py, |manager| manager.ingest(item).map_err(errors::context))
    }

    /// Adds the result of the call with the id `call`. A large one is stored whole, and prompts get a summary of it.
    ///
    /// `output` is a text, bytes, the result of an MCP tool (a mapping or an object of pydantic), or any other data.
    #[pyo3(signature = (call, output, *, is_error=false))]
    fn ingest_tool_result(
        &self,
        py: Python<'_>,
        call: &str,
        output: &Bound<'_, PyAny>,
        is_error: bool,
    ) -> PyResult<Envelope> {
        let output = self::output(output, call, is_error)?;
        let envelope = self.asking(py, |manager| manager.ingest_tool_result(call, &output).map_err(errors::context))?;
        Ok(Envelope(envelope))
    }

    /// Adds the result of the call with the id `call` that something else has processed already: an Envelope, the
    /// mapping that `contextweaver firewall --format json` prints, or a Frame of weaver-spec. Prompts show its summary
    /// as it is. Returns the id of the event.
    fn ingest_envelope(&self, py: Python<'_>, call: &str, envelope: &Bound<'_, PyAny>) -> PyResult<String> {
        let envelope = match envelope.cast::<Envelope>() {
            Ok(envelope) => envelope.get().0.clone(),
            Err(_) => read_envelope(json::read(&json::dumps(envelope)?)?).map_err(errors::input)?,
        };
        let id = self.asking(py, |manager| manager.ingest_envelope(call, &envelope).map_err(errors::context))?;
        Ok(id.to_string())
    }

    /// Adds a whole conversation in any format that `Session.ingest` reads, after what is there; large results are
    /// stored. Returns the number of events.
    ///
    /// Raises ContextError if the id of an event is taken; nothing is added then. In formats whose messages have no ids,
    /// such as OpenAI's, every conversation begins with `m1`, so a second one cannot be added: `name` is only used for
    /// session lines.
    #[pyo3(signature = (conversation, *, name="session"))]
    fn ingest_conversation(&self, py: Python<'_>, conversation: &Bound<'_, PyAny>, name: &str) -> PyResult<usize> {
        let bytes = json::bytes(conversation)?;
        self.asking(py, |manager| {
            let (events, _) = manager.ingest_conversation(bytes, name).map_err(|error| match error {
                IngestError::Store(error) => errors::context(error),
                other => errors::session(other),
            })?;
            Ok(events)
        })
    }

    /// Remembers a fact; it replaces an earlier one under the same key.
    fn add_fact(&self, py: Python<'_>, key: &str, value: &str) -> PyResult<()> {
        self.asking(py, |manager| manager.add_fact(key, value).map_err(errors::context))
    }

    /// Remembers what happened before; it replaces an earlier episode with the same id.
    fn add_episode(&self, py: Python<'_>, id: &str, summary: &str) -> PyResult<()> {
        self.asking(py, |manager| manager.add_episode(id, summary).map_err(errors::context))
    }

    /// The prompt for a phase: `route`, `call`, `interpret` or `answer`. Events are compared with `query`, or with
    /// `tags` instead. The prompt has at most `budget` tokens, `header` and `footer` included; by default, the phase's
    /// budget in the configuration.
    ///
    /// Raises ContextError when header and footer alone exceed the budget.
    #[pyo3(signature = (phase="answer", query="", *, budget=None, header="", footer="", tags=None))]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn build(
        &self,
        py: Python<'_>,
        phase: &str,
        query: &str,
        budget: Option<usize>,
        header: &str,
        footer: &str,
        tags: Option<Vec<String>>,
    ) -> PyResult<Pack> {
        let (phase, tags) = (named::<Phase>(phase)?, tags.unwrap_or_default());
        let request = Request { phase, query, tags: &tags, budget, header, footer };
        let pack = self.asking(py, |manager| manager.build_request(&request).map_err(errors::context))?;
        self.built(py, pack, None)
    }

    /// The prompt for choosing among tools: `cards` is a Route, or lines. As many are shown as fit into three quarters
    /// of the budget.
    fn build_route_prompt(&self, py: Python<'_>, query: &str, cards: &Bound<'_, PyAny>) -> PyResult<Pack> {
        let cards: Vec<String> = match cards.cast::<Route>() {
            Ok(route) => {
                let choices = &route.get().route.choices;
                choices.iter().enumerate().map(|(at, choice)| choice.card.line(at + 1, choices.len())).collect()
            }
            Err(_) => cards.extract()?,
        };
        let prompt = self.asking(py, |manager| manager.build_route_prompt(query, &cards).map_err(errors::context))?;
        let RoutePrompt { pack, cards_shown } = prompt;
        self.built(py, pack, Some(cards_shown))
    }

    /// The prompt for writing the arguments of `tool`, whose definition is `schema`: text, or data.
    fn build_call_prompt(&self, py: Python<'_>, query: &str, tool: &str, schema: &Bound<'_, PyAny>) -> PyResult<Pack> {
        let schema = match schema.extract::<String>() {
            Ok(text) => text,
            Err(_) => json::dumps(schema)?,
        };
        let pack =
            self.asking(py, |manager| manager.build_call_prompt(query, tool, &schema).map_err(errors::context))?;
        self.built(py, pack, None)
    }

    /// The stored artifacts, by handle.
    #[getter]
    fn artifacts(&self, py: Python<'_>) -> PyResult<Vec<Artifact>> {
        py.detach(|| artifacts(self.stores().artifacts.as_ref()))
    }

    /// The whole content under a handle, byte for byte.
    fn read<'py>(&self, py: Python<'py>, handle: &str) -> PyResult<Bound<'py, PyBytes>> {
        read(py, self.stores().artifacts.as_ref(), handle)
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
        let bounds = Bounds::new(max_bytes, max_tokens, self.manager.config().estimator);
        shown(py, self.stores().artifacts.as_ref(), handle, selector, cursor, bounds)
    }

    /// What the next agent must know, within `budget` tokens: the goal, rules, the open plan, decisions, what failed,
    /// what was found and what is remembered. `query` says what the next agent is about to do; what the user asked for
    /// first and last by default. With the `audience` `advisor` it is for a model that is asked for advice, and `query`
    /// is the question: first what was asked, what was tried and failed and what is still open, each statement with its
    /// source.
    #[pyo3(signature = (query="", *, budget=1000, audience="agent"))]
    fn handoff(&self, py: Python<'_>, query: &str, budget: usize, audience: &str) -> PyResult<Handoff> {
        let request = HandoffRequest { query, budget, audience: named(audience)? };
        py.detach(|| {
            let pack = self.manager.hand_off(&request).map_err(errors::context)?;
            let next = pack.session("a program", self.stores().artifacts.as_ref()).map_err(errors::context)?;
            Handoff::new(&pack, &next)
        })
    }

    /// The events so far, as a list of mappings.
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let transcript = py.detach(|| self.stores().events.transcript()).map_err(errors::context)?;
        json::object(py, &transcript.items())
    }

    /// A copy of everything, to save or to hand over.
    #[pyo3(signature = (source="a program"))]
    fn session(&self, py: Python<'_>, source: &str) -> PyResult<Session> {
        let session = py.detach(|| store::Session::from_stores(source, self.stores()));
        Ok(Session(session.map_err(errors::context)?))
    }

    /// The number of events.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| self.stores().events.len()).map_err(errors::context)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<ContextManager with {} events>", self.__len__(py)?))
    }
}

/// What the next agent, or an advisor, must know of a conversation. `str()` gives the text.
///
/// Made by `ContextManager.handoff` and `Session.handoff`.
#[pyclass(frozen, module = "contextweaver_rs")]
pub(crate) struct Handoff {
    told: Told,
    /// The whole as JSON text on one line.
    json: String,
    /// The session that the next agent goes on from, as the bytes of a file.
    next: Vec<u8>,
}

/// What a hand-over says, read from its JSON.
#[derive(Deserialize)]
struct Told {
    text: String,
    budget: usize,
    tokens: usize,
    sections: Box<RawValue>,
    withheld: usize,
}

impl Handoff {
    pub(crate) fn new(pack: &core::Handoff, next: &store::Session) -> PyResult<Self> {
        let mut bytes = Vec::new();
        next.write(&mut bytes).map_err(errors::session)?;
        Self::of(json::text(pack)?, bytes)
    }

    fn of(json: String, next: Vec<u8>) -> PyResult<Self> {
        Ok(Self { told: json::read(&json)?, json, next })
    }
}

/// The hand-over that was pickled.
#[pyfunction]
pub(crate) fn _handoff(text: String, next: Vec<u8>) -> PyResult<Handoff> {
    Handoff::of(text, next)
}

#[pymethods]
impl Handoff {
    /// The text for the next agent or the advisor; empty when nothing fits.
    #[getter]
    fn text(&self) -> &str {
        &self.told.text
    }

    /// Exact tokens of the text.
    #[getter]
    fn tokens(&self) -> usize {
        self.told.tokens
    }

    /// Maximum tokens.
    #[getter]
    fn budget(&self) -> usize {
        self.told.budget
    }

    /// Events that are too sensitive to be handed over.
    #[getter]
    fn withheld(&self) -> usize {
        self.told.withheld
    }

    /// The parts, each with its statements, where they are taken from, and what is left out.
    #[getter]
    fn sections<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::loads(py, self.told.sections.get())
    }

    /// The session for the next agent to continue from, with the contents that the text names.
    fn session(&self, py: Python<'_>) -> PyResult<Session> {
        py.detach(|| store::Session::parse(&self.next, std::path::Path::new("hand-over")))
            .map(Session)
            .map_err(errors::session)
    }

    /// The hand-over as JSON text: what `contextweaver handoff --format json` prints, without `schema_version` and
    /// `kind`.
    #[pyo3(signature = (*, indented=false))]
    fn to_json(&self, indented: bool) -> PyResult<String> {
        match indented {
            true => json::written(&json::read::<Value>(&self.json)?, true),
            false => Ok(self.json.clone()),
        }
    }

    fn __str__(&self) -> &str {
        &self.told.text
    }

    fn __repr__(&self) -> String {
        format!("<Handoff, {} of {} tokens>", self.told.tokens, self.told.budget)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let arguments = (&self.json, PyBytes::new(py, &self.next)).into_pyobject(py)?;
        Ok((json::restorer(py, "_handoff")?, arguments))
    }
}

/// A prompt, and the record of what it holds and what it leaves out. `str()` gives the prompt.
#[pyclass(frozen, module = "contextweaver_rs")]
pub(crate) struct Pack {
    pub(crate) pack: ContextPack,
    pub(crate) cards_shown: Option<usize>,
}

/// The prompt that was pickled.
#[pyfunction]
pub(crate) fn _pack(text: &str, cards_shown: Option<usize>) -> PyResult<Pack> {
    Ok(Pack { pack: json::read(text)?, cards_shown })
}

#[pymethods]
impl Pack {
    /// The text of the prompt.
    #[getter]
    fn prompt(&self) -> &str {
        &self.pack.prompt
    }

    /// The phase that it is for.
    #[getter]
    fn phase(&self) -> &'static str {
        self.pack.phase.name()
    }

    /// Exact tokens of the prompt.
    #[getter]
    fn tokens(&self) -> usize {
        self.pack.stats.prompt_tokens
    }

    /// Maximum tokens.
    #[getter]
    fn budget(&self) -> usize {
        self.pack.stats.budget
    }

    /// The number of cards in it, counted from the first; None for a prompt without cards.
    #[getter]
    fn cards_shown(&self) -> Option<usize> {
        self.cards_shown
    }

    /// The whole record, as `contextweaver stats --format json` prints it.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::object(py, &self.pack.stats)
    }

    /// The same for people: what is shown, what is left out, and why.
    #[getter]
    fn ledger(&self) -> String {
        self.pack.stats.ledger()
    }

    fn __str__(&self) -> &str {
        &self.pack.prompt
    }

    fn __repr__(&self) -> String {
        format!("<Pack for {}, {} of {} tokens>", self.pack.phase, self.tokens(), self.budget())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let arguments = (json::text(&self.pack)?, self.cards_shown).into_pyobject(py)?;
        Ok((json::restorer(py, "_pack")?, arguments))
    }
}
