//! Results of calls: what a prompt gets in their place, and looking into the rest.

use std::fmt::Write as _;
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use contextweaver_context::adapters::{FrameLabels, recognise_output, to_weaver_frame};
use contextweaver_context::clean::one_line;
use contextweaver_context::event::{
    ArtifactRef, ContextItem, Handle, ItemKind, ResultEnvelope, Selector, Status, ToolOutput,
};
use contextweaver_context::store::{ArtifactStore, MemoryArtifacts, StoreError};
use contextweaver_context::summary::StructureSummarizer;
use contextweaver_context::view::{self, Bounds, Cursor};
use contextweaver_context::{self as core, FirewallConfig, RawCount, Secrets, Seen};
use contextweaver_core::sync::lock;
use contextweaver_core::text::Estimator;

use crate::errors::{self, ConfigError};
use crate::json;

/// The number of tokens of a text, exact for `cl100k_base` and `o200k_base`; `chars/4` is an estimate.
#[pyfunction]
#[pyo3(signature = (text, /, estimator="cl100k_base"))]
pub(crate) fn count_tokens(py: Python<'_>, text: &str, estimator: &str) -> PyResult<usize> {
    let estimator = self::estimator(estimator)?;
    Ok(py.detach(|| estimator.count(text)))
}

fn estimator(name: &str) -> PyResult<Estimator> {
    name.parse().map_err(errors::config)
}

/// What a call returned, from a text, bytes, the result of an MCP tool, or any other data.
pub(crate) fn output(value: &Bound<'_, PyAny>, place: &str, is_error: bool) -> PyResult<ToolOutput> {
    let bytes = json::bytes(value)?;
    let mut output = recognise_output(bytes, place).output;
    output.is_error |= is_error;
    Ok(output)
}

/// What a prompt gets in place of one result, as `contextweaver firewall` prints it: the result itself where it is
/// small, otherwise its shorter notation or a summary within `tokens`.
///
/// `output` is a text, bytes, the result of an MCP tool (a mapping or an object of pydantic), or any other data. `name`
/// is that of the call. With `redact`, passwords, keys and tokens are masked; with `count_original`, the tokens of the
/// whole result are counted, which can take long. To look into the rest later, use a Firewall.
#[pyfunction]
#[pyo3(signature = (
    output, /, *, name="result", tokens=None, threshold=None, estimator="cl100k_base", redact=false,
    count_original=false, is_error=false
))]
#[allow(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn compact(
    py: Python<'_>,
    output: &Bound<'_, PyAny>,
    name: &str,
    tokens: Option<usize>,
    threshold: Option<usize>,
    estimator: &str,
    redact: bool,
    count_original: bool,
    is_error: bool,
) -> PyResult<Envelope> {
    let firewall = Firewall::new(tokens, threshold, estimator, redact, count_original)?;
    let output = self::output(output, name, is_error)?;
    py.detach(|| firewall.take("file", name, &output))
}

/// Keeps large results out of prompts, and reachable: each is stored whole, and a result that was shown before is not
/// shown again. Threads may share it.
///
/// Options are those of `compact`.
#[pyclass(frozen, module = "contextweaver_rs")]
pub(crate) struct Firewall {
    config: FirewallConfig,
    estimator: Estimator,
    artifacts: MemoryArtifacts,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    seen: Seen,
    /// The number of results so far.
    calls: usize,
}

impl Firewall {
    fn take(&self, id: &str, name: &str, output: &ToolOutput) -> PyResult<Envelope> {
        let mut state = lock(&self.state);
        state.calls += 1;
        let id = if id.is_empty() { state.calls.to_string() } else { id.to_owned() };
        let call = ContextItem::new(id, ItemKind::ToolCall, name);
        let firewall = core::Firewall::new(&self.config, self.estimator, &StructureSummarizer, &self.artifacts);
        let (_, envelope) = firewall.ingest(&call, output, &mut state.seen).map_err(errors::context)?;
        Ok(Envelope(envelope))
    }
}

#[pymethods]
impl Firewall {
    #[new]
    #[pyo3(signature = (*, tokens=None, threshold=None, estimator="cl100k_base", redact=false, count_original=false))]
    fn new(
        tokens: Option<usize>,
        threshold: Option<usize>,
        estimator: &str,
        redact: bool,
        count_original: bool,
    ) -> PyResult<Self> {
        let defaults = FirewallConfig::default();
        if tokens == Some(0) {
            return Err(ConfigError::new_err("tokens is 0; it must be at least 1"));
        }
        let config = FirewallConfig {
            threshold_chars: threshold.unwrap_or(defaults.threshold_chars),
            summary_tokens: tokens.unwrap_or(defaults.summary_tokens),
            raw_count: if count_original { RawCount::Exact } else { RawCount::Skip },
            secrets: if redact { Secrets::Redact } else { Secrets::Keep },
            ..defaults
        };
        let (estimator, artifacts) = (self::estimator(estimator)?, MemoryArtifacts::default());
        Ok(Self { config, estimator, artifacts, state: Mutex::default() })
    }

    /// Takes a result and says what the prompt gets in its place. `call` is the id of the call, which is part of the
    /// handles; a number by default. Where a handle has other content already, the next one has a `~` behind it. `name` is
    /// what was called.
    #[pyo3(signature = (output, /, *, call="", name="", is_error=false))]
    fn compact(
        &self,
        py: Python<'_>,
        output: &Bound<'_, PyAny>,
        call: &str,
        name: &str,
        is_error: bool,
    ) -> PyResult<Envelope> {
        let output = self::output(output, name, is_error)?;
        py.detach(|| self.take(call, name, &output))
    }

    /// The stored artifacts, by handle.
    #[getter]
    fn artifacts(&self, py: Python<'_>) -> PyResult<Vec<Artifact>> {
        py.detach(|| artifacts(&self.artifacts))
    }

    /// The whole content under a handle, byte for byte.
    fn read<'py>(&self, py: Python<'py>, handle: &str) -> PyResult<Bound<'py, PyBytes>> {
        read(py, &self.artifacts, handle)
    }

    /// A bounded part of an artifact: `head:500`, `lines:0..20`, `rows:-10..`, `json_keys:a,b`, `json_path:$.a`,
    /// `grep:ERROR`, `sample:10`, or the form that models write. `cursor` continues where the last answer ended.
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
        let bounds = Bounds::new(max_bytes, max_tokens, self.estimator);
        shown(py, &self.artifacts, handle, selector, cursor, bounds)
    }
}

/// The descriptions of what a store keeps.
pub(crate) fn artifacts(store: &dyn ArtifactStore) -> PyResult<Vec<Artifact>> {
    Ok(store.list().map_err(errors::context)?.into_iter().map(Artifact).collect())
}

/// A handle that is not known, or was let go, is a view that cannot be shown.
fn stored(error: StoreError) -> PyErr {
    match error {
        StoreError::Backend { .. } => errors::context(error),
        other => errors::view(other),
    }
}

/// The whole content under a handle.
pub(crate) fn read<'py>(py: Python<'py>, store: &dyn ArtifactStore, handle: &str) -> PyResult<Bound<'py, PyBytes>> {
    let content = py.detach(|| store.get(&Handle::new(handle))).map_err(stored)?;
    Ok(PyBytes::new(py, &content))
}

/// A part of the content under a handle.
pub(crate) fn shown(
    py: Python<'_>,
    store: &dyn ArtifactStore,
    handle: &str,
    selector: &Bound<'_, PyAny>,
    cursor: Option<&str>,
    bounds: Bounds,
) -> PyResult<View> {
    let written = match selector.extract::<String>() {
        Ok(text) => text,
        Err(_) => json::dumps(selector)?,
    };
    let selector: Selector = written.parse().map_err(errors::view)?;
    let cursor: Cursor = cursor.map_or(Ok(Cursor::default()), str::parse).map_err(errors::view)?;
    py.detach(|| {
        let handle = Handle::new(handle);
        let media_type = store.reference(&handle).map_err(stored)?.media_type;
        let content = store.get(&handle).map_err(stored)?;
        let view = view::view(&handle, &content, &media_type, &selector, cursor, bounds).map_err(errors::view)?;
        Ok(View { text: view.text, next: view.next.map(|next| next.to_string()) })
    })
}

/// A part of an artifact. `str()` gives the text.
#[pyclass(frozen, get_all, module = "contextweaver_rs")]
pub(crate) struct View {
    /// The lines, rows or values.
    text: String,
    /// The cursor to continue with; None at the end.
    next: Option<String>,
}

/// The view that was pickled.
#[pyfunction]
pub(crate) fn _view(text: String, next: Option<String>) -> View {
    View { text, next }
}

#[pymethods]
impl View {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        let more = self.next.as_ref().map_or_else(String::new, |next| format!(", next {next}"));
        format!("<View of {} bytes{more}>", self.text.len())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let arguments = (&self.text, &self.next).into_pyobject(py)?;
        Ok((json::restorer(py, "_view")?, arguments))
    }
}

/// What is kept of a result.
#[pyclass(frozen, module = "contextweaver_rs")]
pub(crate) struct Artifact(ArtifactRef);

/// The artifact that was pickled.
#[pyfunction]
pub(crate) fn _artifact(text: &str) -> PyResult<Artifact> {
    Ok(Artifact(json::read(text)?))
}

#[pymethods]
impl Artifact {
    /// The name to read or view it by.
    #[getter]
    fn handle(&self) -> &str {
        self.0.handle.as_str()
    }

    /// The media type, e.g. `application/json`.
    #[getter]
    fn media_type(&self) -> &str {
        &self.0.media_type
    }

    /// The size in bytes.
    #[getter]
    fn size_bytes(&self) -> u64 {
        self.0.size_bytes
    }

    /// A description for people.
    #[getter]
    fn label(&self) -> &str {
        &self.0.label
    }

    /// SHA-256 of the content.
    #[getter]
    fn sha256(&self) -> &str {
        self.0.content_hash.as_str()
    }

    fn __repr__(&self) -> String {
        format!("<Artifact {}, {}, {} bytes>", self.0.handle, self.0.media_type, self.0.size_bytes)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let arguments = (json::text(&self.0)?,).into_pyobject(py)?;
        Ok((json::restorer(py, "_artifact")?, arguments))
    }
}

/// What a prompt gets in place of a result. `str()` gives the summary.
#[pyclass(frozen, module = "contextweaver_rs")]
pub(crate) struct Envelope(pub(crate) ResultEnvelope);

/// The envelope that was pickled.
#[pyfunction]
pub(crate) fn _envelope(text: &str) -> PyResult<Envelope> {
    Ok(Envelope(json::read(text)?))
}

#[pymethods]
impl Envelope {
    /// The text for the prompt.
    #[getter]
    fn summary(&self) -> &str {
        &self.0.summary
    }

    /// The summary, and a line for each handle by which the model can look into the rest.
    #[getter]
    fn for_model(&self) -> String {
        let mut text = self.0.summary.clone();
        for ArtifactRef { handle, media_type, size_bytes, .. } in &self.0.artifacts {
            let _ = write!(text, "\n[whole result: {handle}, {}, {size_bytes} bytes]", one_line(media_type));
        }
        text
    }

    /// `ok`, `partial` or `error`.
    #[getter]
    fn status(&self) -> &'static str {
        match self.0.status {
            Status::Ok => "ok",
            Status::Partial => "partial",
            Status::Error => "error",
        }
    }

    /// Statements taken from the result.
    #[getter]
    fn facts(&self) -> Vec<String> {
        self.0.facts.clone()
    }

    /// What was kept of it.
    #[getter]
    fn artifacts(&self) -> Vec<Artifact> {
        self.0.artifacts.iter().cloned().map(Artifact).collect()
    }

    /// Whether the summary stands for content that is kept elsewhere, in whole or in part.
    #[getter]
    fn is_compacted(&self) -> bool {
        !self.0.artifacts.is_empty()
    }

    /// The envelope as JSON text: what `contextweaver firewall --format json` prints, without `schema_version` and
    /// `kind`.
    #[pyo3(signature = (*, indented=false))]
    fn to_json(&self, indented: bool) -> PyResult<String> {
        json::written(&self.0, indented)
    }

    /// The envelope as a Frame of weaver-spec. `capability_id` is what was called, and `created_at` when, as
    /// `2026-11-27T10:00:00Z`. All three must be given for a result from here.
    ///
    /// Raises InputError for what the contract does not allow.
    #[pyo3(signature = (*, frame_id=None, capability_id=None, created_at=None))]
    fn to_frame<'py>(
        &self,
        py: Python<'py>,
        frame_id: Option<&str>,
        capability_id: Option<&str>,
        created_at: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let labels = FrameLabels { frame_id, capability_id, created_at };
        json::object(py, &to_weaver_frame(&self.0, &labels).map_err(errors::input)?)
    }

    fn __str__(&self) -> &str {
        &self.0.summary
    }

    fn __repr__(&self) -> String {
        format!("<Envelope {}, {} bytes, {} artifacts>", self.status(), self.0.summary.len(), self.0.artifacts.len())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let arguments = (json::text(&self.0)?,).into_pyobject(py)?;
        Ok((json::restorer(py, "_envelope")?, arguments))
    }
}
