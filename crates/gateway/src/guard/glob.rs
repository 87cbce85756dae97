//! Patterns that name items.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::common::glob::matches;
use contextweaver_core::catalog::{Kind, SelectableItem};

/// A pattern over ids and names; case counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Glob(String);

impl Glob {
    /// The pattern that this text is.
    #[must_use]
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Whether the whole of `text` fits.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        matches(&self.0, text)
    }

    /// The pattern as it is written.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// What it says of the namespace, with its wildcards; `None` where it is about names alone, or any kind of item.
    pub(super) fn namespace(&self) -> Option<&str> {
        let bare = KINDS.iter().find_map(|kind| self.0.strip_prefix(kind)).unwrap_or(&self.0);
        let (namespace, _) = bare.split_once(':')?;
        // `resource:*` is about every resource.
        let is_kind = KINDS.iter().any(|kind| kind.strip_suffix("::") == Some(namespace));
        (!is_kind).then_some(namespace)
    }

    /// Whether the item's id, its id without version and hash, that without the kind, a resource's address behind its
    /// namespace, or the name at the upstream fits.
    ///
    /// A pattern with a colon names a namespace, which is the operator's; it is not compared with names and addresses
    /// alone, in which an upstream can write a namespace of its choice.
    #[must_use]
    pub fn names(&self, item: &SelectableItem) -> bool {
        let short = item.id.split(['@', '#']).next().unwrap_or(&item.id);
        let bare = KINDS.iter().find_map(|kind| short.strip_prefix(kind)).unwrap_or(short);
        let by_address = || {
            let address = item.metadata.get("uri").and_then(Value::as_str).filter(|_| item.kind == Kind::Resource);
            address.is_some_and(|address| self.matches(&format!("{}:{address}", item.namespace)))
        };
        [item.id.as_str(), short, bare].into_iter().any(|name| self.matches(name))
            || (!self.0.contains(':') && self.matches(&item.name))
            || by_address()
    }
}

/// What ids of resources and prompts begin with.
const KINDS: [&str; 2] = ["resource::", "prompt::"];

impl fmt::Display for Glob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_named_by_id_short_id_or_name() {
        let item = SelectableItem::tool("fs:read@1#0123abcd", "fs", "read", "");
        for pattern in ["fs:read@1#0123abcd", "fs:read", "read", "fs:*"] {
            assert!(Glob::new(pattern).names(&item), "{pattern}");
        }
        assert!(!Glob::new("fs").names(&item));
    }

    #[test]
    fn a_namespace_in_a_pattern_is_the_operators() {
        let claims = SelectableItem::tool("evil:fs_read#0123abcd", "evil", "fs:read", "");
        assert!(!Glob::new("fs:*").names(&claims) && Glob::new("evil:*").names(&claims));
        let mut resource = SelectableItem::tool("resource::evil:notes#0123abcd", "evil", "notes", "");
        resource.kind = Kind::Resource;
        resource.metadata.insert("uri".to_owned(), "fs:etc/notes".into());
        for (pattern, expected) in [
            ("fs:*", false),
            ("evil:*", true),
            ("evil:notes", true),
            ("evil:fs:etc/*", true),
            ("*:fs:etc/*", true),
            ("*etc*", true),
            ("notes", true),
            ("resource::evil:notes", true),
        ] {
            assert_eq!(Glob::new(pattern).names(&resource), expected, "{pattern}");
        }
    }
}
