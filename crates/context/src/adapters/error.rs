//! The error of all adapters, and readers of members that return it.

use contextweaver_core::text::on_one_line;
use serde_json::{Map, Value};

pub(super) use contextweaver_core::catalog::describe;

/// A document is not in the format that it was read as.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", prefix(place))]
pub struct AdapterError {
    /// The line or the path of the member, e.g. `line 3` or `messages[2].content[0]`; empty for the whole document.
    pub place: String,
    /// What is wrong there, and what to do about it.
    pub reason: String,
}

fn prefix(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!("{place}: ") }
}

impl AdapterError {
    pub(super) fn new(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { place: place.into(), reason: reason.into() }
    }

    /// The member `key` at `place` is missing or of the wrong type.
    pub(super) fn wrong(place: &str, key: &str, expected: &str, found: Option<&Value>) -> Self {
        match found {
            None => Self::new(place, format!("`{key}` is missing; expected {expected}")),
            Some(found) => Self::new(place, format!("`{key}` must be {expected}, not {}", describe(found))),
        }
    }
}

/// Tells a document of a format from one that only looks alike: what is unknown is kept where something else is known, but
/// of a document of nothing else all content would be lost.
#[derive(Debug, Default)]
pub(super) struct Alike {
    known: bool,
    unknown: Option<AdapterError>,
}

impl Alike {
    /// Something that the format has.
    pub(super) fn known(&mut self) {
        self.known = true;
    }

    /// Something at `place` that it does not have; `what` it is.
    pub(super) fn unknown(&mut self, place: &str, what: impl FnOnce() -> String) {
        if !self.known && self.unknown.is_none() {
            let reason = format!("{}, and nothing else here is known either; this is a different format", what());
            self.unknown = Some(AdapterError::new(place, reason));
        }
    }

    /// # Errors
    /// The first unknown thing, where nothing was known.
    pub(super) fn check(self) -> Result<(), AdapterError> {
        match self.unknown {
            Some(error) if !self.known => Err(error),
            _ => Ok(()),
        }
    }
}

/// More deeply nested documents are refused: what is kept of them is nested a few levels deeper in a session file,
/// which the JSON reader would then refuse.
const MAX_NESTING: usize = 100;

/// Parses `text` as JSON that is not nested too deeply to be kept.
pub(super) fn parse(text: &str, place: &str) -> Result<Value, AdapterError> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| AdapterError::new(place, format!("not JSON: {error}")))?;
    check_nesting(&value, place)?;
    Ok(value)
}

pub(super) fn check_nesting(value: &Value, place: &str) -> Result<(), AdapterError> {
    if contextweaver_core::catalog::nesting_depth(value) > MAX_NESTING {
        return Err(AdapterError::new(
            place,
            format!("it is nested deeper than {MAX_NESTING} levels; make it flatter"),
        ));
    }
    Ok(())
}

pub(super) fn object(value: Value, place: &str) -> Result<Map<String, Value>, AdapterError> {
    match value {
        Value::Object(members) => Ok(members),
        other => Err(AdapterError::new(place, format!("expected an object, not {}", describe(&other)))),
    }
}

pub(super) fn array(value: Value, place: &str) -> Result<Vec<Value>, AdapterError> {
    match value {
        Value::Array(values) => Ok(values),
        other => Err(AdapterError::new(place, format!("expected an array, not {}", describe(&other)))),
    }
}

pub(super) fn text<'m>(members: &'m Map<String, Value>, key: &str, place: &str) -> Result<&'m str, AdapterError> {
    let found = members.get(key);
    found.and_then(Value::as_str).ok_or_else(|| AdapterError::wrong(place, key, "a string", found))
}

/// A piece of a document as it appears in a message: on one line and of bounded length.
pub(super) fn shown(text: &str) -> String {
    on_one_line(text, 60)
}

/// The first few names of a list, for a remark, and how many more there are; `None` for an empty list.
pub(super) fn some_of<T: AsRef<str>>(names: &[T]) -> Option<String> {
    const SHOWN: usize = 5;
    let first: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{}`", shown(name.as_ref()))).collect();
    let more = names.len().saturating_sub(SHOWN);
    match first.is_empty() {
        true => None,
        false if more > 0 => Some(format!("{} and {more} more", first.join(", "))),
        false => Some(first.join(", ")),
    }
}
