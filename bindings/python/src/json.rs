//! Data of Python as JSON text, and back, by Python's own `json`: what it writes is what a file would hold.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyInt, PyList, PyMapping, PySequence, PyString};
use serde::Serialize;
use serde::de::DeserializeOwned;

use contextweaver_core::files::ReadError;

use crate::errors::{ConfigError, InputError, input};

/// `value` as JSON text, without spaces. Objects with a method `model_dump` (those of pydantic) are written as what it
/// gives.
pub(crate) fn dumps(value: &Bound<'_, PyAny>) -> PyResult<String> {
    static DUMPS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    let options = PyDict::new(py);
    options.set_item(intern!(py, "default"), wrap_pyfunction!(plain, py)?)?;
    options.set_item(intern!(py, "ensure_ascii"), false)?;
    options.set_item(intern!(py, "allow_nan"), false)?;
    options.set_item(intern!(py, "separators"), (",", ":"))?;
    let text = DUMPS.import(py, "json", "dumps")?.call((value,), Some(&options));
    let text = text.and_then(|text| text.extract::<String>());
    text.map_err(|error| {
        let refused = InputError::new_err(format!("this value cannot be written as JSON: {}", error.value(py)));
        refused.set_cause(py, Some(error));
        refused
    })
}

/// What `json` asks about an object that it does not know. Any mapping is an object, and any other sequence a list.
#[pyfunction]
fn plain<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let name = intern!(py, "model_dump");
    if !object.hasattr(name)? {
        if object.cast::<PyMapping>().is_ok() {
            return py.get_type::<PyDict>().call1((object,));
        }
        let is_bytes = object.cast::<PyBytes>().is_ok() || object.cast::<PyByteArray>().is_ok();
        if object.cast::<PySequence>().is_ok() && !is_bytes {
            return py.get_type::<PyList>().call1((object,));
        }
        let kind = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("an object of type {kind} is not JSON")));
    }
    let options = PyDict::new(py);
    options.set_item(intern!(py, "mode"), "json")?;
    options.set_item(intern!(py, "by_alias"), true)?;
    options.set_item(intern!(py, "exclude_none"), true)?;
    object.call_method(name, (), Some(&options))
}

/// Refuses integers that a number of JSON cannot carry here: they would become others. `value` is one that can be written.
pub(crate) fn check_integers(value: &Bound<'_, PyAny>) -> PyResult<()> {
    if value.cast::<PyInt>().is_ok() && value.cast::<PyBool>().is_err() {
        let fits = value.extract::<i64>().is_ok() || value.extract::<u64>().is_ok();
        return match fits {
            true => Ok(()),
            false => Err(InputError::new_err(format!("{value} has more than 64 bits; give it as a text"))),
        };
    }
    if value.cast::<PyString>().is_ok() {
        return Ok(());
    }
    let values = match value.cast::<PyMapping>() {
        Ok(mapping) => mapping.values()?.into_any(),
        Err(_) if value.cast::<PySequence>().is_ok() => value.clone(),
        Err(_) => return Ok(()),
    };
    values.try_iter()?.try_for_each(|value| check_integers(&value?))
}

/// The object that JSON text says.
pub(crate) fn loads<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOADS.import(py, "json", "loads")?.call1((text,))
}

/// `value` as an object of Python.
pub(crate) fn object<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    loads(py, &text(value)?)
}

/// `value` as JSON text on one line.
pub(crate) fn text(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(input)
}

/// `value` as JSON text, indented by two as the command prints it where `indented`.
pub(crate) fn written(value: &impl Serialize, indented: bool) -> PyResult<String> {
    if indented { serde_json::to_string_pretty(value).map_err(input) } else { text(value) }
}

/// The value that JSON text says.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(input)
}

/// The bytes of a text, of bytes, or of data as JSON.
pub(crate) fn bytes(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    match value.cast::<PyString>() {
        Ok(text) => Ok(utf8(text)?.into_bytes()),
        Err(_) => Ok(dumps(value)?.into_bytes()),
    }
}

/// The text of a string, which may hold halves of characters that no file can hold.
fn utf8(text: &Bound<'_, PyString>) -> PyResult<String> {
    Ok(text.to_str().map_err(|error| InputError::new_err(format!("this text is not Unicode: {error}")))?.to_owned())
}

/// A configuration: the default, the TOML file at a path, or the same as a mapping. `parse` reads TOML, `check` says
/// what is out of range.
pub(crate) fn config<T: DeserializeOwned + Default, E: std::error::Error>(
    value: Option<&Bound<'_, PyAny>>,
    check: impl FnOnce(&T) -> Result<(), E>,
) -> PyResult<T> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(T::default()) };
    let config: T = if let Ok(path) = value.extract::<PathBuf>() {
        let shown = path.display();
        let refuse = |error: &dyn std::fmt::Display| ConfigError::new_err(format!("{shown}\n  caused by: {error}"));
        let text = std::fs::read_to_string(&path)
            .map_err(|error| ConfigError::new_err(ReadError::at(&path)(error).to_string()))?;
        toml::from_str(&text).map_err(|error| refuse(&error))?
    } else {
        let text = dumps(value)?;
        // A list would be taken for the fields in their order.
        if !text.starts_with('{') {
            return Err(ConfigError::new_err("a configuration is a mapping, or the path of a TOML file"));
        }
        serde_json::from_str(&text).map_err(|error| ConfigError::new_err(error.to_string()))?
    };
    check(&config).map_err(crate::errors::config)?;
    Ok(config)
}

/// The function of the module that makes a pickled object again. Pickles name it, so it must be the module's own.
pub(crate) fn restorer<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import(intern!(py, "contextweaver_rs._native"))?.getattr(name)
}
