//! Masks what nobody may see in structured data: every text in it and what stands under a telling name, while its form
//! stays.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use super::Firewall;
use super::encoded::Encoded;
use crate::adapters::foreign_in;
use crate::config::Secrets;
use crate::event::{ContextItem, Episode, Fact};
use crate::store::redact_member;

/// Answers of a redactor of others that are remembered at most: forms of messages repeat the same words.
const MOST_ANSWERS: usize = 4096;

/// Longer texts hardly repeat.
const LONGEST_REPEATED: usize = 64;

/// Masks what a conversation brings along, before it is stored. Where the configuration keeps secrets and there is no
/// redactor of others, nothing changes.
pub(crate) struct Mask<'f> {
    firewall: &'f Firewall<'f>,
    answers: HashMap<String, String>,
}

impl<'f> Mask<'f> {
    pub(crate) fn of(firewall: &'f Firewall<'f>) -> Self {
        Self { firewall, answers: HashMap::new() }
    }

    fn is_idle(&self) -> bool {
        self.firewall.redactor.is_none() && self.firewall.config.secrets == Secrets::Keep
    }

    /// Masks the content of an event, the label of its artifact, and what is kept of the form in which it came.
    pub(crate) fn item(&mut self, item: &mut ContextItem) {
        self.text(&mut item.text);
        self.members(&mut item.metadata);
        if let Some(artifact) = &mut item.artifact {
            self.text(&mut artifact.label);
        }
    }

    /// Masks a fact, whose key may tell that it is a secret.
    pub(crate) fn fact(&mut self, fact: &mut Fact) {
        let mut value = Value::String(std::mem::take(&mut fact.value));
        self.value(&fact.key, &mut value);
        if let Value::String(text) = value {
            fact.value = text;
        }
    }

    /// Masks the summary of an episode.
    pub(crate) fn episode(&mut self, episode: &mut Episode) {
        self.text(&mut episode.summary);
    }

    /// Masks a text.
    pub(crate) fn text(&mut self, text: &mut String) {
        if self.firewall.redactor.is_none() || text.len() > LONGEST_REPEATED {
            let clean = match self.firewall.taken_in(text) {
                Cow::Borrowed(same) if std::ptr::eq(same, text.as_str()) => None,
                clean => Some(clean.into_owned()),
            };
            if let Some(clean) = clean {
                *text = clean;
            }
        } else if let Some(clean) = self.answers.get(text.as_str()) {
            text.clone_from(clean);
        } else {
            let clean = self.firewall.taken_in(text).into_owned();
            let asked = std::mem::replace(text, clean);
            if self.answers.len() < MOST_ANSWERS {
                self.answers.insert(asked, text.clone());
            }
        }
    }

    /// Masks the text for which another stands: a file or a drawing in a message.
    fn encoded(&mut self, text: &mut String) {
        let Some(encoded) = Encoded::of(text) else { return };
        let mut clean = encoded.text.clone();
        self.text(&mut clean);
        if clean != encoded.text {
            *text = encoded.with(&clean);
        }
    }

    /// Masks bytes that are a text: drawings are, and so is what a server sends as a file. Nobody is asked about others.
    pub(crate) fn bytes(&mut self, bytes: &mut Vec<u8>) {
        *bytes = match String::from_utf8(std::mem::take(bytes)) {
            Ok(mut text) => {
                self.text(&mut text);
                text.into_bytes()
            }
            Err(other) => other.into_bytes(),
        };
    }

    /// Masks the values of members.
    pub(crate) fn members(&mut self, members: &mut Map<String, Value>) {
        members.iter_mut().for_each(|(key, value)| self.value(key, value));
    }

    /// Masks a value that stands under `key`. Keys stay. Documents are not nested so deeply that this could exhaust the
    /// stack.
    pub(crate) fn value(&mut self, key: &str, value: &mut Value) {
        if self.is_idle() {
            return;
        }
        if let Some(foreign) = foreign_in(key, value) {
            foreign.into_iter().for_each(|value| self.value("", value));
            return;
        }
        match value {
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(key, value)),
            Value::Object(members) => self.members(members),
            Value::Null | Value::Bool(_) => {}
            Value::Number(_) | Value::String(_) => {
                if let Some(clean) = redact_member(key, value) {
                    *value = clean;
                }
                if let Value::String(text) = value {
                    self.encoded(text);
                    self.text(text);
                }
            }
        }
    }
}
