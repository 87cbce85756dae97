//! Typed reading of the members of a definition, with messages that say which member is wrong.
//!
//! Written by hand and not derived because a derived reader takes an array for a struct, cannot tell a person what
//! it found, and would read each schema twice.

use serde_json::{Map, Value};

/// The members of one definition that nobody has read yet.
pub(super) struct Fields {
    members: Map<String, Value>,
}

/// What is wrong with a definition, as a sentence without a subject.
pub(super) type Reason = String;

impl Fields {
    pub(super) fn new(value: Value) -> Result<Self, Reason> {
        match value {
            Value::Object(members) => Ok(Self { members }),
            other => Err(format!("an object is expected, not {}", describe(&other))),
        }
    }

    /// The member, absent when it is `null`.
    fn take(&mut self, key: &str) -> Option<Value> {
        self.members.swap_remove(key).filter(|value| !value.is_null())
    }

    pub(super) fn text(&mut self, key: &str) -> Result<Option<String>, Reason> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(key, "a string", &other)),
        }
    }

    /// A text that says something: empty ones count as absent.
    pub(super) fn nonempty_text(&mut self, key: &str) -> Result<Option<String>, Reason> {
        Ok(self.text(key)?.filter(|text| !text.trim().is_empty()))
    }

    pub(super) fn required_text(&mut self, key: &str) -> Result<String, Reason> {
        self.nonempty_text(key)?.ok_or_else(|| format!("`{key}` is missing or empty"))
    }

    pub(super) fn object(&mut self, key: &str) -> Result<Option<Map<String, Value>>, Reason> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Object(members)) => Ok(Some(members)),
            Some(other) => Err(wrong(key, "an object", &other)),
        }
    }

    /// The members of an object member; none when it is absent.
    pub(super) fn nested(&mut self, key: &str) -> Result<Self, Reason> {
        Ok(Self { members: self.object(key)?.unwrap_or_default() })
    }

    pub(super) fn list(&mut self, key: &str) -> Result<Vec<Value>, Reason> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => Ok(values),
            Some(other) => Err(wrong(key, "an array", &other)),
        }
    }

    pub(super) fn texts(&mut self, key: &str) -> Result<Vec<String>, Reason> {
        let values = self.list(key)?.into_iter().map(|value| match value {
            Value::String(text) => Ok(text),
            other => Err(wrong(key, "an array of strings", &other)),
        });
        values.collect()
    }

    pub(super) fn flag(&mut self, key: &str) -> Result<bool, Reason> {
        match self.take(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(wrong(key, "true or false", &other)),
        }
    }
}

fn wrong(key: &str, expected: &str, found: &Value) -> Reason {
    format!("`{key}` must be {expected}, not {}", describe(found))
}

/// What kind of value it is, for messages.
pub(crate) fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
