//! Typed reading of the members of a definition, with messages that say which member is wrong.
//!
//! Written by hand because a derived reader would take an array for a struct, cannot tell a person what it found, and
//! would read each schema twice.

use serde_json::{Map, Value};

use super::super::Fault;

/// The members of one definition that have not been read yet.
pub(super) struct Fields {
    members: Map<String, Value>,
}

impl Fields {
    pub(super) fn new(value: Value) -> Result<Self, Fault> {
        match value {
            Value::Object(members) => Ok(Self { members }),
            other => Err(Fault::new(format!("an object is expected, not {}", describe(&other)))),
        }
    }

    /// Takes a member out; `null` counts as absent.
    fn take(&mut self, key: &str) -> Option<Value> {
        self.members.swap_remove(key).filter(|value| !value.is_null())
    }

    pub(super) fn text(&mut self, key: &str) -> Result<Option<String>, Fault> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(key, "a string", &other)),
        }
    }

    /// Takes a text out; an empty one counts as absent.
    pub(super) fn nonempty_text(&mut self, key: &str) -> Result<Option<String>, Fault> {
        Ok(self.text(key)?.filter(|text| !text.trim().is_empty()))
    }

    pub(super) fn required_text(&mut self, key: &str) -> Result<String, Fault> {
        self.nonempty_text(key)?.ok_or_else(|| Fault::new(format!("`{key}` is missing or empty")))
    }

    pub(super) fn object(&mut self, key: &str) -> Result<Option<Map<String, Value>>, Fault> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Object(members)) => Ok(Some(members)),
            Some(other) => Err(wrong(key, "an object", &other)),
        }
    }

    /// The members of an object member; no members when it is absent.
    pub(super) fn nested(&mut self, key: &str) -> Result<Self, Fault> {
        Ok(Self { members: self.object(key)?.unwrap_or_default() })
    }

    pub(super) fn list(&mut self, key: &str) -> Result<Vec<Value>, Fault> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => Ok(values),
            Some(other) => Err(wrong(key, "an array", &other)),
        }
    }

    pub(super) fn texts(&mut self, key: &str) -> Result<Vec<String>, Fault> {
        let values = self.list(key)?.into_iter().map(|value| match value {
            Value::String(text) => Ok(text),
            other => Err(wrong(key, "an array of strings", &other)),
        });
        values.collect()
    }

    pub(super) fn flag(&mut self, key: &str) -> Result<bool, Fault> {
        match self.take(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(wrong(key, "true or false", &other)),
        }
    }
}

fn wrong(key: &str, expected: &str, found: &Value) -> Fault {
    Fault::new(format!("`{key}` must be {expected}, not {}", describe(found)))
}

/// What kind of value it is, for messages.
pub fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
