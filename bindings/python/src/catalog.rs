//! Catalogs and their tools.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping, PySequence, PyString, PyTuple};
use serde_json::value::RawValue;

use contextweaver_core::catalog::{self as core, CallNames, LoadOptions, SelectableItem, Strictness, ToolFormat};
use contextweaver_routing::catalog_sha256;

use crate::errors::{self, InputError};
use crate::json;

/// Tools to route over: a checked set with unique ids, in the order of the ids. Immutable.
///
/// `tools` is a list of definitions in any common form (MCP, OpenAI, Anthropic, Gemini, Bedrock, LangChain, LlamaIndex,
/// smolagents, Cohere, Vercel AI, weaver-spec), or a document that holds one: the answer to `tools/list`, an OpenAPI
/// document, an agent card. Definitions that do not name a server belong to `server`, if it is given.
///
/// Raises CatalogError for a definition that cannot be used, and for two tools with one id.
#[pyclass(frozen, module = "contextweaver_rs")]
pub(crate) struct Catalog {
    pub(crate) inner: Arc<core::Catalog>,
    left_out: Vec<(String, String)>,
    names: [OnceLock<CallNames>; ToolFormat::WRITTEN.len()],
}

/// The form of a list of tools with this name, of those that go into a request.
pub(crate) fn format(key: &str) -> PyResult<ToolFormat> {
    ToolFormat::of_request(key).map_err(|error| InputError::new_err(error.to_string()))
}

impl Catalog {
    pub(crate) fn of(inner: core::Catalog) -> Self {
        Self { inner: Arc::new(inner), left_out: Vec::new(), names: Default::default() }
    }

    /// The names under which the tools are called in this form: made once, since they are those of the whole catalog.
    pub(crate) fn names(&self, format: ToolFormat) -> &CallNames {
        let at = ToolFormat::WRITTEN.iter().position(|one| *one == format).unwrap_or_default();
        self.names[at].get_or_init(|| CallNames::new(self.inner.items(), format))
    }

    /// The definitions of these items as an object of Python.
    pub(crate) fn written<'py>(
        &self,
        py: Python<'py>,
        form: &str,
        ids: Option<&[&str]>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let format = format(form)?;
        let items = match ids {
            None => self.inner.items().iter().collect(),
            Some(ids) => ids.iter().map(|id| self.item(id)).collect::<PyResult<Vec<&SelectableItem>>>()?,
        };
        let text = py.detach(|| json::text(&format.write(items, self.names(format)).unwrap_or_default()))?;
        json::loads(py, &text)
    }

    fn item(&self, id: &str) -> PyResult<&SelectableItem> {
        self.inner.get(id).ok_or_else(|| no_tool(id))
    }
}

fn no_tool(id: &str) -> PyErr {
    PyKeyError::new_err(format!("no tool has the id `{id}`"))
}

/// The catalog that was pickled.
#[pyfunction]
#[pyo3(signature = (native, raw, left_out=Vec::new()))]
pub(crate) fn _catalog(
    py: Python<'_>,
    native: &str,
    raw: Vec<(String, String)>,
    left_out: Vec<(String, String)>,
) -> PyResult<Catalog> {
    py.detach(|| {
        let mut items = core::Catalog::from_json(native).map_err(errors::catalog)?.items().to_vec();
        for (id, text) in raw {
            let raw = RawValue::from_string(text).map_err(errors::input)?;
            if let Ok(at) = items.binary_search_by(|item| item.id.as_str().cmp(&id)) {
                items[at].raw = Some(Arc::from(raw));
            }
        }
        Ok(Catalog { left_out, ..Catalog::of(core::Catalog::new(items).map_err(errors::catalog)?) })
    })
}

#[pymethods]
impl Catalog {
    #[new]
    #[pyo3(signature = (tools, /, *, server=None))]
    fn new(py: Python<'_>, tools: &Bound<'_, PyAny>, server: Option<&str>) -> PyResult<Self> {
        if let Ok(catalog) = tools.cast::<Self>() {
            if server.is_some() {
                return Err(InputError::new_err(
                    "`server` is for definitions; the tools of a Catalog have their ids already",
                ));
            }
            return Ok(Self::of(core::Catalog::new(catalog.get().inner.items().to_vec()).map_err(errors::catalog)?));
        }
        let text = json::dumps(tools)?;
        py.detach(|| core::Catalog::from_json_of(&text, server)).map(Self::of).map_err(errors::catalog)
    }

    /// Loads files and folders of files: JSON, or YAML by the ending of the name. Each file of a folder is one server.
    ///
    /// With `lenient`, what is malformed is left out, see `left_out`; otherwise it raises CatalogError.
    #[staticmethod]
    #[pyo3(signature = (*paths, lenient=false))]
    fn from_path(py: Python<'_>, paths: Vec<PathBuf>, lenient: bool) -> PyResult<Self> {
        let strictness = if lenient { Strictness::Lenient } else { Strictness::Strict };
        let loaded = py.detach(|| core::load(&paths, LoadOptions { strictness })).map_err(errors::catalog)?;
        let left_out = loaded.left_out.into_iter().map(|one| (one.place, one.reason)).collect();
        Ok(Self { left_out, ..Self::of(loaded.catalog) })
    }

    /// Reads the catalog in a JSON text, in any form that a file may have.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        py.detach(|| core::Catalog::from_json(text)).map(Self::of).map_err(errors::catalog)
    }

    /// What a lenient load left out: pairs of place and reason.
    #[getter]
    fn left_out(&self) -> Vec<(String, String)> {
        self.left_out.clone()
    }

    /// The ids of all tools, ascending.
    #[getter]
    fn ids(&self) -> Vec<&str> {
        self.inner.items().iter().map(|item| item.id.as_str()).collect()
    }

    /// The namespaces of the tools, ascending.
    #[getter]
    fn namespaces(&self) -> Vec<&str> {
        self.inner.namespaces().into_iter().collect()
    }

    /// SHA-256 of everything that routing reads of the catalog.
    #[getter]
    fn sha256(&self, py: Python<'_>) -> String {
        py.detach(|| catalog_sha256(&self.inner))
    }

    /// The catalog as JSON text in the native form, which keeps everything about a tool.
    fn to_json(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.to_native_json())
    }

    /// Full definitions as the list that goes into a request: `openai`, `openai-responses`, `anthropic`, `gemini` or
    /// `mcp`; `weaver-spec` gives its choice cards. All tools, or those of `ids` in that order. Resources and prompts
    /// are left out.
    #[pyo3(signature = (form, ids=None))]
    fn as_tools<'py>(&self, py: Python<'py>, form: &str, ids: Option<Vec<String>>) -> PyResult<Bound<'py, PyAny>> {
        let ids: Option<Vec<&str>> = ids.as_ref().map(|ids| ids.iter().map(String::as_str).collect());
        self.written(py, form, ids.as_deref())
    }

    /// The name that a model calls each tool by in this form, with its id.
    fn call_names<'py>(&self, py: Python<'py>, form: &str) -> PyResult<Bound<'py, PyDict>> {
        let (format, names) = (format(form)?, PyDict::new(py));
        py.detach(|| self.names(format)).iter().try_for_each(|(name, id)| names.set_item(name, id))?;
        Ok(names)
    }

    /// The id of the tool that a model called by `name` in this form, and the arguments of the call under the names that
    /// the tool's server knows: providers that do not allow a name get another. `arguments` is a mapping, or the JSON
    /// text of one, as OpenAI sends it.
    ///
    /// Raises KeyError if no tool is called by this name, InputError for arguments that are not an object.
    fn resolve_call<'py>(
        &self,
        py: Python<'py>,
        form: &str,
        name: &str,
        arguments: &Bound<'py, PyAny>,
    ) -> PyResult<(String, Bound<'py, PyDict>)> {
        let names = self.names(format(form)?);
        let id = names.id(name).ok_or_else(|| PyKeyError::new_err(format!("no tool is called `{name}` in {form}")))?;
        let given = match arguments.cast::<PyString>() {
            Ok(text) => json::loads(py, text.to_str()?)
                .map_err(|error| InputError::new_err(format!("arguments of `{name}`: no JSON: {}", error.value(py))))?,
            Err(_) => arguments.clone(),
        };
        let given = given
            .cast_into::<PyMapping>()
            .map_err(|_| InputError::new_err(format!("arguments of `{name}`: they must be an object")))?;
        let (original, restored) = (names.arguments(id), PyDict::new(py));
        for pair in given.items()?.iter() {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
            let known = key.extract::<&str>().ok().and_then(|key| original?.get(key));
            match known {
                Some(known) => restored.set_item(known, value)?,
                None => restored.set_item(key, value)?,
            }
        }
        Ok((id.to_owned(), restored))
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn __contains__(&self, id: &str) -> bool {
        self.inner.get(id).is_some()
    }

    fn __getitem__(slf: &Bound<'_, Self>, id: &str) -> PyResult<Tool> {
        let at = slf.get().inner.position(id).ok_or_else(|| no_tool(id))?;
        Ok(Tool { catalog: slf.clone().unbind(), at })
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let tools = (0..slf.get().inner.len()).map(|at| Tool { catalog: slf.clone().unbind(), at });
        Ok(PyList::new(slf.py(), tools.collect::<Vec<_>>())?.try_iter()?.into_any())
    }

    fn __repr__(&self) -> String {
        format!("<Catalog of {} tools>", self.inner.len())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let raw = |item: &SelectableItem| Some((item.id.clone(), item.raw.as_ref()?.get().to_owned()));
        let raw: Vec<(String, String)> = self.inner.items().iter().filter_map(raw).collect();
        let arguments = (self.inner.to_native_json(), raw, &self.left_out).into_pyobject(py)?;
        Ok((json::restorer(py, "_catalog")?, arguments))
    }
}

/// One tool of a catalog, or a resource, prompt, skill or agent.
#[pyclass(frozen, module = "contextweaver_rs")]
pub(crate) struct Tool {
    pub(crate) catalog: Py<Catalog>,
    pub(crate) at: usize,
}

impl Tool {
    fn item(&self) -> &SelectableItem {
        &self.catalog.get().inner.items()[self.at]
    }
}

#[pymethods]
impl Tool {
    /// The id, which is unique in the catalog.
    #[getter]
    fn id(&self) -> &str {
        &self.item().id
    }

    /// The name exactly as the source gave it.
    #[getter]
    fn name(&self) -> &str {
        &self.item().name
    }

    /// The part of the id before the name.
    #[getter]
    fn namespace(&self) -> &str {
        &self.item().namespace
    }

    /// The name of the server, if there was one.
    #[getter]
    fn server(&self) -> Option<&str> {
        self.item().server.as_deref()
    }

    /// The version of the tool, if its source gives one.
    #[getter]
    fn version(&self) -> Option<&str> {
        self.item().version.as_deref()
    }

    /// The version of the whole server, agent or API, if the source gives one.
    #[getter]
    fn server_version(&self) -> Option<&str> {
        self.item().server_version.as_deref()
    }

    /// `tool`, `agent`, `skill`, `resource` or `prompt`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.item().kind.name()
    }

    /// What it does; empty if the source said nothing.
    #[getter]
    fn description(&self) -> &str {
        &self.item().description
    }

    /// The tags, sorted; `read-only` and `destructive` are what the tool declares.
    #[getter]
    fn tags(&self) -> Vec<&str> {
        self.item().tags.iter().map(String::as_str).collect()
    }

    /// JSON Schema of the arguments.
    #[getter]
    fn args_schema<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.item().args_schema.as_deref().map(|schema| json::object(py, schema)).transpose()
    }

    /// JSON Schema of the structured result.
    #[getter]
    fn output_schema<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.item().output_schema.as_deref().map(|schema| json::object(py, schema)).transpose()
    }

    /// The definition that a model would be shown without routing, as compact JSON text.
    #[getter]
    fn definition(&self) -> String {
        self.item().definition_json()
    }

    fn __repr__(&self) -> String {
        format!("<Tool {}>", self.item().id)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let arguments = (self.catalog.clone_ref(py), self.item().id.as_str()).into_pyobject(py)?;
        Ok((py.import("operator")?.getattr("getitem")?, arguments))
    }
}

/// A catalog, or what makes one.
pub(crate) fn catalog_of(value: &Bound<'_, PyAny>) -> PyResult<Py<Catalog>> {
    let py = value.py();
    if let Ok(catalog) = value.cast::<Catalog>() {
        return Ok(catalog.clone().unbind());
    }
    if let Ok(path) = value.extract::<PathBuf>() {
        return Py::new(py, Catalog::from_path(py, vec![path], false)?);
    }
    if value.cast::<PySequence>().is_ok() || value.cast::<PyMapping>().is_ok() {
        return Py::new(py, Catalog::new(py, value, None)?);
    }
    Err(InputError::new_err("a catalog is a Catalog, a list of definitions, or the path of a file or folder"))
}
