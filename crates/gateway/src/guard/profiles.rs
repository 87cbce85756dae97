//! Visibility profiles: what a caller is shown, and which scopes it has.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::glob::Glob;
use crate::session::client::Caller;

/// What a call may do, by the operator's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffect {
    /// It changes nothing: the tool is listed as read-only.
    ReadOnly,
    /// It may change something: every tool that is not listed as read-only.
    Mutating,
    /// It may destroy something: the tool is listed as destructive.
    Destructive,
}

/// What a caller is shown and may do. Empty lists include everything and exclude nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Visibility {
    /// Only these namespaces are shown.
    pub include_namespaces: Vec<Glob>,
    /// These namespaces are not.
    pub exclude_namespaces: Vec<Glob>,
    /// Only items with one of these tags of the operator's are shown.
    pub include_tags: Vec<String>,
    /// Items with one of these are not.
    pub exclude_tags: Vec<String>,
    /// Only these ids or names are shown.
    pub include_tools: Vec<Glob>,
    /// These ids or names are not.
    pub exclude_tools: Vec<Glob>,
    /// Tools that may do this are not shown.
    pub exclude_side_effects: Vec<SideEffect>,
    /// The scopes that the caller has.
    pub scopes: BTreeSet<String>,
}

/// The visibility profiles, and which one a caller has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Profiles {
    named: BTreeMap<String, Visibility>,
    /// The profile of callers that have no other.
    default: Option<String>,
}

impl Profiles {
    pub(super) fn new(named: BTreeMap<String, Visibility>, default: Option<String>) -> Self {
        Self { named, default }
    }

    /// The name of the caller's profile; `None` when it is shown everything.
    pub(crate) fn name_of<'c>(&'c self, caller: &'c Caller) -> Option<&'c str> {
        caller.session().identity().profile.as_deref().or(self.default.as_deref())
    }

    /// The caller's profile; `None` also when the configuration does not have the one that it names.
    pub(super) fn of(&self, caller: &Caller) -> Option<&Visibility> {
        self.named.get(self.name_of(caller)?)
    }

    /// All profiles, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Visibility)> {
        self.named.iter()
    }
}
