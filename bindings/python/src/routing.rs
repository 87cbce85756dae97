//! Routers and what they answer.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use contextweaver_core::catalog::Safety;
use contextweaver_core::files::{ReadError, replace_file};
use contextweaver_routing::semantic::model::place;
use contextweaver_routing::{
    self as core, FeedbackLog, Filter, History, Observation, PartSource, Path, Placement, Provider, Request,
    RoutingConfig, SCORE_UNITS, render_cards,
};

use crate::catalog::{Catalog, Tool, catalog_of};
use crate::errors::{self, InputError, RouteError};
use crate::json;
use crate::threads::together;

/// Ranks the tools of one catalog. Immutable, so threads may share it, and the interpreter lock is released while it
/// works.
///
/// `catalog` is a Catalog, a list of definitions, or a path. `config` is a mapping, or the path of a TOML file; it
/// states what differs from the default. With `model` the sentence encoder ranks too: it finds more on most collections,
/// at milliseconds per query. `feedback` is a log of `contextweaver feedback`.
///
/// Raises CatalogError, ConfigError or RouteError.
#[pyclass(frozen, module = "contextweaver_rs")]
pub(crate) struct Router {
    router: core::Router,
    catalog: Py<Catalog>,
    model: bool,
    /// What `feedback` said, for the pickle.
    observations: Option<Vec<Observation>>,
}

fn config(value: Option<&Bound<'_, PyAny>>) -> PyResult<RoutingConfig> {
    json::config(value, RoutingConfig::validate)
}

/// The router with its encoder, where it is to have one. That the vectors could not be kept changes nothing but time.
fn with_model(router: core::Router, model: bool) -> PyResult<core::Router> {
    match model {
        true => Ok(place::attach(router, place::encoder().map_err(errors::config)?).0),
        false => Ok(router),
    }
}

/// The router with what was observed, where something was.
fn with_feedback(router: core::Router, observations: Option<&[Observation]>) -> core::Router {
    match observations {
        Some(observations) => router.with_feedback(observations),
        None => router,
    }
}

/// The router that was pickled.
#[pyfunction]
#[pyo3(signature = (index, catalog, config, model, observations=None))]
pub(crate) fn _router(
    py: Python<'_>,
    index: &[u8],
    catalog: Py<Catalog>,
    config: &str,
    model: bool,
    observations: Option<&str>,
) -> PyResult<Router> {
    let (inner, config) = (Arc::clone(&catalog.get().inner), json::read(config)?);
    let observations: Option<Vec<Observation>> = observations.map(json::read).transpose()?;
    let router = together(py, || {
        let router = with_model(core::load(index.to_vec(), inner, config).map_err(errors::route)?, model)?;
        Ok::<_, PyErr>(with_feedback(router, observations.as_deref()))
    })?;
    Ok(Router { router, catalog, model, observations })
}

/// Seconds that the routes of these queries take without Python, one after another, `times` over: what a call from
/// Python is held against.
#[pyfunction]
pub(crate) fn _engine_seconds(py: Python<'_>, router: Py<Router>, queries: Vec<String>, times: usize) -> PyResult<f64> {
    let router = &router.get().router;
    py.detach(|| {
        let started = Instant::now();
        for _ in 0..times {
            for query in &queries {
                router.route(&Request::new(query)).map_err(errors::route)?;
            }
        }
        Ok(started.elapsed().as_secs_f64())
    })
}

#[pymethods]
impl Router {
    #[new]
    #[pyo3(signature = (catalog, /, *, config=None, model=false, feedback=None))]
    fn new(
        py: Python<'_>,
        catalog: &Bound<'_, PyAny>,
        config: Option<&Bound<'_, PyAny>>,
        model: bool,
        feedback: Option<PathBuf>,
    ) -> PyResult<Self> {
        let (catalog, config) = (catalog_of(catalog)?, self::config(config)?);
        let inner = Arc::clone(&catalog.get().inner);
        let (router, observations) = together(py, || {
            let router = with_model(core::Router::build(inner, config).map_err(errors::route)?, model)?;
            let log = feedback.map(|path| FeedbackLog::read(&path)).transpose();
            let log = log.map_err(|error| RouteError::new_err(errors::chain(&error)))?;
            let observations = log.map(|log| log.observations);
            Ok::<_, PyErr>((with_feedback(router, observations.as_deref()), observations))
        })?;
        Ok(Self { router, catalog, model, observations })
    }

    /// A router from the index that `save` or `contextweaver build` wrote, for the same catalog and configuration.
    ///
    /// Raises RouteError for an index that is damaged, or of another catalog, configuration or version.
    #[staticmethod]
    #[pyo3(signature = (path, catalog, /, *, config=None, model=false))]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        catalog: &Bound<'_, PyAny>,
        config: Option<&Bound<'_, PyAny>>,
        model: bool,
    ) -> PyResult<Self> {
        let (catalog, config) = (catalog_of(catalog)?, self::config(config)?);
        let inner = Arc::clone(&catalog.get().inner);
        let router = together(py, || {
            let place = path.display().to_string();
            let bytes =
                std::fs::read(&path).map_err(|error| RouteError::new_err(ReadError::at(&path)(error).to_string()))?;
            let router =
                core::load(bytes, inner, config).map_err(|error| errors::at(&place, &error, RouteError::new_err))?;
            with_model(router, model)
        })?;
        Ok(Self { router, catalog, model, observations: None })
    }

    /// Writes index and choice graph to a file, which is replaced whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        together(py, || {
            let bytes = core::save(&self.router).map_err(errors::route)?;
            replace_file(&path, &bytes).map_err(|error| RouteError::new_err(errors::chain(&error)))
        })
    }

    /// Index and choice graph as bytes: what `save` writes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = together(py, || core::save(&self.router)).map_err(errors::route)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The catalog that is routed over.
    #[getter]
    fn catalog(&self, py: Python<'_>) -> Py<Catalog> {
        self.catalog.clone_ref(py)
    }

    /// The whole configuration, defaults included.
    #[getter]
    fn config<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::object(py, self.router.config())
    }

    /// The tools that fit `query`, best first, with the reasons.
    ///
    /// `top_k` is the number of tools, that of the configuration by default. `namespaces` and `tags` allow only tools
    /// that have one of them, `exclude` (ids) and `exclude_tags` leave tools out, `no_destructive` those declared
    /// destructive, `callable_only` the resources and prompts, which no list of a request has (see `as_tools`). `pins`
    /// (ids) always come first. `quota` is the maximum number of tools of one namespace. `called`
    /// are the ids of the calls made so far, `last_result` is what the last one said.
    ///
    /// Raises RouteError for a name that the catalog does not have.
    #[pyo3(signature = (
        query, /, top_k=None, *, namespaces=None, tags=None, exclude=None, exclude_tags=None, no_destructive=false,
        callable_only=false, pins=None, quota=None, called=None, last_result=None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn route(
        &self,
        py: Python<'_>,
        query: &str,
        top_k: Option<usize>,
        namespaces: Option<Vec<String>>,
        tags: Option<Vec<String>>,
        exclude: Option<Vec<String>>,
        exclude_tags: Option<Vec<String>>,
        no_destructive: bool,
        callable_only: bool,
        pins: Option<Vec<String>>,
        quota: Option<usize>,
        called: Option<Vec<String>>,
        last_result: Option<String>,
    ) -> PyResult<Route> {
        let filter = Filter {
            exclude_ids: exclude.unwrap_or_default(),
            exclude_tags: exclude_tags.unwrap_or_default(),
            allow_namespaces: namespaces.unwrap_or_default(),
            allow_tags: tags.unwrap_or_default(),
            refuse_safety: no_destructive.then_some(Safety::Destructive).into_iter().collect(),
            callable_only,
            pins: pins.unwrap_or_default(),
            namespace_quota: at_least_one("quota", quota)?,
        };
        let history = History { called: called.unwrap_or_default(), last_summary: last_result, available: Vec::new() };
        let top_k = at_least_one("top_k", top_k)?.map(NonZeroUsize::get);
        let request = Request { query: query.to_owned(), top_k, filter, history };
        let route = py.detach(|| self.router.route(&request)).map_err(errors::route)?;
        Ok(Route { route, catalog: self.catalog.clone_ref(py) })
    }

    /// The cards at a path of the choice graph, `/` first, as lines for a model.
    #[pyo3(signature = (path="/", /))]
    fn browse(&self, py: Python<'_>, path: &str) -> PyResult<Vec<String>> {
        together(py, || {
            let path: Path =
                path.parse().map_err(|error: core::PathError| RouteError::new_err(errors::chain(&error)))?;
            let cards = self.router.browse(&path).map_err(errors::route)?;
            Ok(cards.iter().enumerate().map(|(number, card)| card.line(number + 1, cards.len())).collect())
        })
    }

    fn __repr__(&self) -> String {
        format!("<Router over {} tools>", self.router.catalog().len())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (index, catalog, config) =
            (self.to_bytes(py)?, self.catalog.clone_ref(py), json::text(self.router.config())?);
        let observations = self.observations.as_ref().map(json::text).transpose()?;
        let arguments = (index, catalog, config, self.model, observations);
        Ok((json::restorer(py, "_router")?, arguments.into_pyobject(py)?))
    }
}

fn at_least_one(name: &str, value: Option<usize>) -> PyResult<Option<NonZeroUsize>> {
    let refuse = || InputError::new_err(format!("{name} is 0; it must be at least 1"));
    value.map(|value| NonZeroUsize::new(value).ok_or_else(refuse)).transpose()
}

/// What a router answered: a sequence of choices, pins first, then best first. `str()` gives the cards, one on a line,
/// as a prompt takes them.
#[pyclass(frozen, sequence, module = "contextweaver_rs")]
pub(crate) struct Route {
    pub(crate) route: core::Route,
    catalog: Py<Catalog>,
}

/// The route that was pickled.
#[pyfunction]
pub(crate) fn _route(route: &str, catalog: Py<Catalog>) -> PyResult<Route> {
    Ok(Route { route: json::read(route)?, catalog })
}

#[pymethods]
impl Route {
    /// The query as it was asked.
    #[getter]
    fn query(&self) -> &str {
        &self.route.query
    }

    /// The choices.
    #[getter]
    fn choices<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyList>> {
        let all = (0..slf.get().route.choices.len()).map(|at| Choice { route: slf.clone().unbind(), at });
        PyList::new(slf.py(), all.collect::<Vec<_>>())
    }

    /// The ids of the choices.
    #[getter]
    fn ids(&self) -> Vec<&str> {
        self.route.ids()
    }

    /// How likely it is that one of the first five tools fits, from 0 to 1.
    #[getter]
    fn confidence(&self) -> f64 {
        self.route.confidence
    }

    /// Whether the confidence is so low that the choices are only the nearest tools.
    #[getter]
    fn no_tool_fits(&self) -> bool {
        self.route.no_tool_fits
    }

    /// The number of words of the query that no tool has, stop words aside.
    #[getter]
    fn unknown_words(&self) -> usize {
        self.route.unknown_words
    }

    /// A question to the user, where the first tools are too close to call.
    #[getter]
    fn question(&self) -> Option<&str> {
        self.route.ambiguity.as_ref().map(|ambiguity| ambiguity.question.as_str())
    }

    /// Full definitions of the choices as the list that goes into a request: `openai`, `openai-responses`, `anthropic`,
    /// `gemini` or `mcp`; `weaver-spec` gives its choice cards. Resources and prompts are left out: route
    /// with `callable_only` for a list as long as `top_k`.
    fn as_tools<'py>(&self, py: Python<'py>, form: &str) -> PyResult<Bound<'py, PyAny>> {
        let catalog = self.catalog.get();
        let known: Vec<&str> = self.route.ids().into_iter().filter(|id| catalog.inner.get(id).is_some()).collect();
        catalog.written(py, form, Some(&known))
    }

    /// The name that a model calls each choice by in this form, with its id.
    fn call_names<'py>(&self, py: Python<'py>, form: &str) -> PyResult<Bound<'py, PyDict>> {
        let (format, found) = (crate::catalog::format(form)?, PyDict::new(py));
        let names = self.catalog.get().names(format);
        for id in self.route.ids() {
            if let Some(name) = names.name(id) {
                found.set_item(name, id)?;
            }
        }
        Ok(found)
    }

    /// A JSON Schema that lets a model choose only among these tools: `json-schema`, or as `openai` or `anthropic` take
    /// it.
    ///
    /// Raises RouteError for a route without choices.
    #[pyo3(signature = (provider="json-schema", /))]
    fn selection_schema<'py>(&self, py: Python<'py>, provider: &str) -> PyResult<Bound<'py, PyAny>> {
        let provider = match provider {
            "json-schema" => Provider::JsonSchema,
            "openai" => Provider::OpenAi,
            "anthropic" => Provider::Anthropic,
            other => {
                let text = format!("unknown provider `{other}`; use json-schema, openai or anthropic");
                return Err(InputError::new_err(text));
            }
        };
        let schema = self.route.selection_schema(provider);
        json::object(py, &schema.map_err(|error| RouteError::new_err(errors::chain(&error)))?)
    }

    /// The id of the choice that a model meant by its selection, or None if it is none of them.
    fn selected(&self, written: &str) -> Option<String> {
        self.route.validate_selection(written).id
    }

    /// The route as JSON text: what `contextweaver route --format json` prints, without `schema_version` and `kind`.
    #[pyo3(signature = (*, indented=false))]
    fn to_json(&self, py: Python<'_>, indented: bool) -> PyResult<String> {
        py.detach(|| json::written(&self.route, indented))
    }

    fn __len__(&self) -> usize {
        self.route.choices.len()
    }

    fn __getitem__(slf: &Bound<'_, Self>, index: isize) -> PyResult<Choice> {
        let length = slf.get().route.choices.len();
        let at = if index < 0 { index + length as isize } else { index };
        match usize::try_from(at) {
            Ok(at) if at < length => Ok(Choice { route: slf.clone().unbind(), at }),
            _ => Err(PyIndexError::new_err(format!("the route has {length} choices; there is none at {index}"))),
        }
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Ok(Self::choices(slf)?.try_iter()?.into_any())
    }

    fn __str__(&self) -> String {
        let cards: Vec<&core::ChoiceCard> = self.route.choices.iter().map(|choice| &choice.card).collect();
        render_cards(&cards)
    }

    fn __repr__(&self) -> String {
        format!("<Route of {} choices, confidence {:.2}>", self.route.choices.len(), self.route.confidence)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let arguments = (json::text(&self.route)?, self.catalog.clone_ref(py)).into_pyobject(py)?;
        Ok((json::restorer(py, "_route")?, arguments))
    }
}

/// One tool of a route.
#[pyclass(frozen, module = "contextweaver_rs")]
pub(crate) struct Choice {
    route: Py<Route>,
    at: usize,
}

impl Choice {
    fn choice(&self) -> &core::Choice {
        &self.route.get().route.choices[self.at]
    }
}

#[pymethods]
impl Choice {
    /// The id of the tool.
    #[getter]
    fn id(&self) -> &str {
        self.choice().card.id()
    }

    /// The name of the tool.
    #[getter]
    fn name(&self) -> &str {
        self.choice().card.name()
    }

    /// The description as the card has it: shortened where it is long.
    #[getter]
    fn description(&self) -> &str {
        self.choice().card.description()
    }

    /// `tool`, `agent`, `skill`, `resource` or `prompt`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.choice().card.kind().name()
    }

    /// The score: the sum of the parts.
    #[getter]
    fn score(&self) -> f64 {
        self.choice().score as f64 / SCORE_UNITS as f64
    }

    /// What the score is made of: pairs of a source (a word of the query, or what is in parentheses) and what it adds.
    #[getter]
    fn parts(&self) -> Vec<(String, f64)> {
        let parts = self.choice().parts.iter();
        parts.map(|part| (PartSource::to_string(&part.source), part.value as f64 / SCORE_UNITS as f64)).collect()
    }

    /// The same in words, with numbers that add up.
    #[getter]
    fn explanation(&self) -> String {
        self.choice().explanation()
    }

    /// Whether it is there because it was pinned.
    #[getter]
    fn pinned(&self) -> bool {
        self.choice().placement == Placement::Pinned
    }

    /// The line that a model reads: number, id, kind and what the tool does, within 80 tokens.
    #[getter]
    fn card(&self) -> String {
        self.choice().card.line(self.at + 1, self.route.get().route.choices.len())
    }

    /// The whole tool.
    #[getter]
    fn tool(&self, py: Python<'_>) -> PyResult<Tool> {
        let catalog = &self.route.get().catalog;
        let at = catalog
            .get()
            .inner
            .position(self.id())
            .ok_or_else(|| RouteError::new_err(format!("the catalog has no tool `{}`", self.id())))?;
        Ok(Tool { catalog: catalog.clone_ref(py), at })
    }

    fn __repr__(&self) -> String {
        format!("<Choice {}, score {:.2}>", self.id(), self.score())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let arguments = (self.route.clone_ref(py), self.at).into_pyobject(py)?;
        Ok((py.import("operator")?.getattr("getitem")?, arguments))
    }
}
