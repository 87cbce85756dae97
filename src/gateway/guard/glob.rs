//! Patterns that name items.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::catalog::SelectableItem;
use crate::gateway::glob::matches;

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

    /// Whether the item's id, its id without version and hash, or its name at the upstream fits.
    #[must_use]
    pub fn names(&self, item: &SelectableItem) -> bool {
        let short = item.id.split(['@', '#']).next().unwrap_or(&item.id);
        [item.id.as_str(), short, item.name.as_str()].into_iter().any(|name| self.matches(name))
    }
}

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
}
