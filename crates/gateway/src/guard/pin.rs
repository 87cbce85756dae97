//! A pin: the definition of a tool that was approved, and the one that waits for approval.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::canonical::canonical;
use contextweaver_core::text::sha256_hex;

/// The hashes of a definition: SHA-256 of its canonical JSON, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// The name of the tool.
    pub name: String,
    /// Of the whole definition.
    pub whole: String,
    /// Of the definition without its name.
    pub body: String,
    /// Of each member of the definition.
    pub members: BTreeMap<String, String>,
}

impl Fingerprint {
    /// The hashes of a definition as the server gave it.
    #[must_use]
    pub fn of(definition: &Value) -> Self {
        let hash = |value: &Value| sha256_hex(canonical(value).as_bytes());
        let mut body = definition.clone();
        let name = body.as_object_mut().and_then(|members| members.shift_remove("name")).unwrap_or_default();
        let members = body.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), hash(value)));
        Self {
            name: name.as_str().unwrap_or_default().to_owned(),
            whole: hash(definition),
            body: hash(&body),
            members: members.collect(),
        }
    }

    /// The members that are others in `other`, or in one of both only.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let keys: BTreeSet<&String> = self.members.keys().chain(other.members.keys()).collect();
        keys.into_iter().filter(|key| self.members.get(*key) != other.members.get(*key)).cloned().collect()
    }
}

/// Why a definition waits for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reason {
    /// It is not the one that is pinned.
    Changed,
    /// It is that of another tool, under a new name.
    Renamed {
        /// The name that it is pinned under.
        from: String,
    },
    /// The server did not have the tool before.
    New,
}

/// Bytes of a waiting definition that are kept, at most.
const LONGEST_SHOWN: usize = 64 << 10;

/// A definition that waits for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// The hashes of the definition.
    pub fingerprint: Fingerprint,
    /// The definition as canonical JSON, for whoever reviews it; `None` where it is too long to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Why the definition waits.
    #[serde(flatten)]
    pub reason: Reason,
}

impl Pending {
    /// A definition that waits for this reason.
    #[must_use]
    pub fn new(fingerprint: &Fingerprint, definition: &Value, reason: Reason) -> Self {
        let text = Some(canonical(definition)).filter(|text| text.len() <= LONGEST_SHOWN);
        Self { fingerprint: fingerprint.clone(), definition: text, reason }
    }
}

/// What is known of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The name of its server.
    pub server: String,
    /// The name of the tool on its server.
    pub name: String,
    /// The definition that is approved; `None` while the tool was never approved.
    pub approved: Option<Fingerprint>,
    /// The one that waits.
    pub pending: Option<Pending>,
}

impl Pin {
    /// The pin of a definition that is approved.
    #[must_use]
    pub fn new(server: &str, fingerprint: Fingerprint) -> Self {
        Self { server: server.to_owned(), name: fingerprint.name.clone(), approved: Some(fingerprint), pending: None }
    }

    /// What has to be read before the waiting definition is approved, by member: the members that changed, or all where nothing
    /// was approved before. A member without a text is not in the definition any more. `None` where nothing waits, or its text
    /// is not kept.
    #[must_use]
    pub fn to_review(&self) -> Option<Vec<(String, Option<String>)>> {
        let pending = self.pending.as_ref()?;
        let definition: Value = serde_json::from_str(pending.definition.as_deref()?).ok()?;
        let names = match &self.approved {
            Some(approved) => approved.differences(&pending.fingerprint),
            None => pending.fingerprint.members.keys().cloned().collect(),
        };
        let text = |name: String| {
            let text = definition.get(&name).map(canonical);
            (name, text)
        };
        Some(names.into_iter().map(text).collect())
    }

    /// Why its tool is quarantined, in words; `None` when it is not.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        let pending = self.pending.as_ref()?;
        let Self { server, name, .. } = self;
        Some(match (&pending.reason, &self.approved) {
            (Reason::Changed, Some(approved)) => {
                let members = approved.differences(&pending.fingerprint).join(", ");
                format!("the definition of `{name}` of `{server}` changed ({members}) since it was approved")
            }
            (Reason::Renamed { from }, _) => format!("`{name}` of `{server}` has the definition of `{from}`"),
            _ => format!("`{name}` of `{server}` was not there when the server was approved"),
        })
    }
}
