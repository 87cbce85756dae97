//! Memories made of several sessions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyTuple};

use contextweaver_context::memory::{self as core, Consolidated, Day, LocalMemories, MemoryFile, Rules};
use contextweaver_context::store;

use crate::context::config;
use crate::errors::{self, InputError};
use crate::json;
use crate::session::{Session, loaded};

/// A session to consolidate: a file that is still to be read, or an object.
enum Held<'s> {
    File(PathBuf),
    Object(&'s store::Session),
}

/// Consolidates several sessions into one memory, as `contextweaver consolidate` does: facts and episodes, each with
/// the sessions and events they come from.
///
/// `sessions` is a list of paths, of session files or SQLite stores, which are named after their files; or a mapping of
/// names to paths and Sessions. `memories` are earlier memories, as objects or paths. `days` are the days of sessions,
/// by name; by default, the latest day that the events of a session name. `as_of` is the day to count as today; without
/// it nothing fades. `min_sessions` is the number of sessions that must mention a fact before it is in force,
/// `similarity` the percentage of their words that two statements must share to count as one, `forget_after` the days
/// after which something fades if no session mentions it. Days are texts such as `2026-11-24`, or dates. `config` is
/// that of a ContextManager, for what is too sensitive.
///
/// Raises SessionError for a session that cannot be read, ContextError for a memory, and InputError.
#[pyfunction]
#[pyo3(signature = (
    sessions, /, *, memories=None, days=None, as_of=None, min_sessions=2, similarity=60, forget_after=None, config=None
))]
#[allow(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn consolidate(
    py: Python<'_>,
    sessions: &Bound<'_, PyAny>,
    memories: Option<&Bound<'_, PyAny>>,
    days: Option<&Bound<'_, PyMapping>>,
    as_of: Option<&Bound<'_, PyAny>>,
    min_sessions: usize,
    similarity: u8,
    forget_after: Option<u64>,
    config: Option<&Bound<'_, PyAny>>,
) -> PyResult<Memory> {
    let config = self::config(config)?;
    if forget_after.is_some() && as_of.is_none() {
        return Err(InputError::new_err("`forget_after` needs `as_of`, the day to count as today"));
    }
    let usual = Rules::default().forget_after;
    let rules = Rules {
        as_of: as_of.map(day).transpose()?,
        min_sessions,
        similarity,
        forget_after: forget_after.unwrap_or(usual),
    };
    let objects = self::sessions(sessions)?;
    let held = objects
        .iter()
        .map(|(name, object)| {
            Ok(match object.cast::<Session>() {
                Ok(session) => (name.as_str(), Held::Object(&session.get().0)),
                Err(_) => (name.as_str(), Held::File(object.extract()?)),
            })
        })
        .collect::<PyResult<Vec<_>>>()?;
    let days = self::days(days, &held)?;
    let memories = self::memories(memories)?;
    let made = py.detach(|| {
        let read = held.iter().map(|(_, held)| match held {
            Held::File(path) => loaded(path).map(Some),
            Held::Object(_) => Ok(None),
        });
        let read = read.collect::<PyResult<Vec<_>>>()?;
        let sessions = held.iter().zip(&read).filter_map(|((name, held), read)| {
            let session = match held {
                Held::Object(session) => *session,
                Held::File(_) => read.as_ref()?,
            };
            let day = days.iter().find(|(named, _)| named == name).map(|(_, day)| *day);
            Some(Consolidated { name, day, session })
        });
        core::consolidate(&sessions.collect::<Vec<_>>(), &memories, &rules, &config).map_err(errors::memory)
    })?;
    Ok(Memory(made))
}

/// The sessions with their names.
fn sessions<'py>(value: &Bound<'py, PyAny>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    if let Ok(named) = value.cast::<PyMapping>() {
        return named.items()?.iter().map(|item| item.extract()).collect();
    }
    if value.extract::<PathBuf>().is_ok() {
        return Err(InputError::new_err("`sessions` must be a list of paths or a mapping of names, not one path"));
    }
    let paths = value.try_iter()?.map(|item| {
        let item = item?;
        if item.cast::<Session>().is_ok() {
            return Err(InputError::new_err("a Session has no name; give a mapping of names to sessions"));
        }
        let path: PathBuf = item.extract()?;
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        Ok((name, item))
    });
    paths.collect()
}

/// The days of sessions, by name.
fn days(value: Option<&Bound<'_, PyMapping>>, held: &[(&str, Held<'_>)]) -> PyResult<Vec<(String, Day)>> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let known: BTreeSet<&str> = held.iter().map(|(name, _)| *name).collect();
    let days = value.items()?;
    let days = days.iter().map(|item| {
        let (name, when): (String, Bound<'_, PyAny>) = item.extract()?;
        if !known.contains(name.as_str()) {
            let known: Vec<&str> = known.iter().copied().collect();
            return Err(InputError::new_err(format!(
                "days: no session is called `{name}`; use one of {}",
                known.join(", ")
            )));
        }
        Ok((name, day(&when)?))
    });
    days.collect()
}

/// A day, from a text, a date, or a time on it.
fn day(value: &Bound<'_, PyAny>) -> PyResult<Day> {
    let value = match value.getattr_opt("date")? {
        Some(date) => date.call0()?,
        None => value.clone(),
    };
    value.str()?.to_str()?.parse().map_err(errors::input)
}

/// Earlier memories.
fn memories(value: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<MemoryFile>> {
    let Some(value) = value else { return Ok(Vec::new()) };
    if value.extract::<PathBuf>().is_ok() {
        return Err(InputError::new_err("`memories` must be a list, not one path"));
    }
    let memories = value.try_iter()?.map(|item| {
        let item = item?;
        match item.cast::<Memory>() {
            Ok(memory) => Ok(memory.get().0.clone()),
            Err(_) => MemoryFile::load(&item.extract::<PathBuf>()?).map_err(errors::memory),
        }
    });
    memories.collect()
}

/// What several sessions say: facts and episodes, with their sources. Immutable.
///
/// Made by `consolidate` or `Memory.load`. A ContextManager searches it: `ContextManager(memory=memory)`.
#[pyclass(frozen, module = "contextweaver_rs")]
pub(crate) struct Memory(MemoryFile);

impl Memory {
    /// What is in force, to be searched.
    pub(crate) fn source(&self) -> LocalMemories {
        LocalMemories::of("memory", self.0.memory())
    }
}

/// The memory that was pickled.
#[pyfunction]
pub(crate) fn _memory(text: &str) -> PyResult<Memory> {
    MemoryFile::parse(text.as_bytes(), Path::new("pickle")).map(Memory).map_err(errors::memory)
}

#[pymethods]
impl Memory {
    /// Reads a memory file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| MemoryFile::load(&path)).map(Self).map_err(errors::memory)
    }

    /// Writes the memory to a file, which is replaced whole or not at all: that of `contextweaver consolidate`.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.save(&path)).map_err(errors::memory)
    }

    /// The facts that are in force, by key. A value that is contradicted names what contradicts it.
    #[getter]
    fn facts(&self) -> Vec<(String, String)> {
        self.0.memory().facts.into_iter().map(|fact| (fact.key, fact.value)).collect()
    }

    /// The episodes that are in force: pairs of id and summary, oldest first.
    #[getter]
    fn episodes(&self) -> Vec<(String, String)> {
        self.0.memory().episodes.into_iter().map(|episode| (episode.id, episode.summary)).collect()
    }

    /// The facts whose values differ, in force or not, each with its values and their sources.
    #[getter]
    fn conflicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::object(py, &self.0.conflicts().collect::<Vec<_>>())
    }

    /// The sessions it was made from: digest, name, day, number of events, and statements that were not read, because
    /// there are too many.
    #[getter]
    fn sessions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::object(py, &self.0.sessions)
    }

    /// The whole memory as JSON text, with what waits for a further session and what has faded: what
    /// `contextweaver consolidate --format json` prints, without `schema_version` and `kind`.
    #[pyo3(signature = (*, indented=false))]
    fn to_json(&self, indented: bool) -> PyResult<String> {
        json::written(&self.0, indented)
    }

    fn __repr__(&self) -> String {
        format!("<Memory of {} sessions>", self.0.sessions.len())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let arguments = (json::text(&self.0)?,).into_pyobject(py)?;
        Ok((json::restorer(py, "_memory")?, arguments))
    }
}
