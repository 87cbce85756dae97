//! Typed reading of the members of a definition, with messages that say which member is wrong.
//!
//! Written by hand because a derived reader would take an array for a struct, cannot tell a person what it found, and
//! would read each schema twice.

use serde_json::{Map, Value};

use super::super::Fault;

/// The members of one definition that have not been read yet.
#[derive(Debug)]
pub(in crate::catalog) struct Fields {
    members: Map<String, Value>,
}

impl Fields {
    pub(in crate::catalog) fn new(value: Value) -> Result<Self, Fault> {
        match value {
            Value::Object(members) => Ok(Self { members }),
            other => Err(Fault::new(format!("expected an object, not {}", describe(&other)))),
        }
    }

    /// Whether there is a member that is not `null`.
    pub(in crate::catalog) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(in crate::catalog) fn get(&self, key: &str) -> Option<&Value> {
        self.members.get(key).filter(|value| !value.is_null())
    }

    /// The members that nothing took out; those that are `null` are left out.
    pub(in crate::catalog) fn rest(self) -> impl Iterator<Item = (String, Value)> {
        self.members.into_iter().filter(|(_, value)| !value.is_null())
    }

    /// Takes a member out; `null` counts as absent.
    pub(in crate::catalog) fn take(&mut self, key: &str) -> Option<Value> {
        self.members.swap_remove(key).filter(|value| !value.is_null())
    }

    pub(in crate::catalog) fn text(&mut self, key: &str) -> Result<Option<String>, Fault> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(key, "a string", &other)),
        }
    }

    /// Takes a text out; an empty one counts as absent.
    pub(in crate::catalog) fn nonempty_text(&mut self, key: &str) -> Result<Option<String>, Fault> {
        Ok(self.text(key)?.filter(|text| !text.trim().is_empty()))
    }

    pub(in crate::catalog) fn required_text(&mut self, key: &str) -> Result<String, Fault> {
        self.nonempty_text(key)?.ok_or_else(|| Fault::new(format!("`{key}` is missing or empty")))
    }

    /// Takes a version out. What is none stays: see [`version_text`].
    pub(in crate::catalog) fn version(&mut self, key: &str) -> Option<String> {
        let version = version_text(self.get(key)?)?;
        self.members.swap_remove(key);
        Some(version)
    }

    pub(in crate::catalog) fn object(&mut self, key: &str) -> Result<Option<Map<String, Value>>, Fault> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Object(members)) => Ok(Some(members)),
            Some(other) => Err(wrong(key, "an object", &other)),
        }
    }

    /// The members of an object member; no members when it is absent.
    pub(in crate::catalog) fn nested(&mut self, key: &str) -> Result<Self, Fault> {
        Ok(Self { members: self.object(key)?.unwrap_or_default() })
    }

    pub(in crate::catalog) fn list(&mut self, key: &str) -> Result<Vec<Value>, Fault> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => Ok(values),
            Some(other) => Err(wrong(key, "an array", &other)),
        }
    }

    pub(in crate::catalog) fn texts(&mut self, key: &str) -> Result<Vec<String>, Fault> {
        let values = self.list(key)?.into_iter().map(|value| match value {
            Value::String(text) => Ok(text),
            other => Err(wrong(key, "an array of strings", &other)),
        });
        values.collect()
    }

    pub(in crate::catalog) fn flag(&mut self, key: &str) -> Result<bool, Fault> {
        match self.take(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(wrong(key, "true or false", &other)),
        }
    }
}

/// A version as a text. Numbers count, because YAML reads `1.0` as one. `None` for what is no version: values of other
/// types, and texts that are empty, have control characters or are longer than any version in use.
pub(in crate::catalog) fn version_text(value: &Value) -> Option<String> {
    const LONGEST: usize = 100;
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (1..=LONGEST).contains(&text.len()).then_some(text).filter(|text| !text.contains(char::is_control))
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
