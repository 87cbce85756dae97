//! Results of calls that change nothing, kept for a while.
//!
//! What changes nothing is what the operator says changes nothing: a server's own `readOnlyHint` would let it answer
//! a call that was never made. Failures are never kept, nor what asks the caller for more, and all are forgotten when
//! the upstreams list anew.

use std::num::NonZeroUsize;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::canonical::canonical;
use super::glob::Glob;
use crate::catalog::SelectableItem;
use crate::gateway::wire::Raw;
use crate::text::sha256_hex;

/// Which results are kept, and how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheConfig {
    /// Whether results are kept at all.
    pub read_only: bool,
    /// How long, in seconds.
    pub ttl_seconds: f64,
    /// Results kept, at most.
    pub max_entries: NonZeroUsize,
    /// Bytes of a result that is kept, at most.
    pub max_result_bytes: usize,
    /// Patterns of the tools whose results are kept, beside those that the policy lists as read-only.
    pub allow: Vec<Glob>,
}

impl Default for CacheConfig {
    fn default() -> Self {
        const ENTRIES: NonZeroUsize = NonZeroUsize::new(256).unwrap();
        Self { read_only: false, ttl_seconds: 60.0, max_entries: ENTRIES, max_result_bytes: 1 << 20, allow: Vec::new() }
    }
}

impl CacheConfig {
    /// What is wrong with it.
    pub(super) fn check(&self) -> Result<(), String> {
        match Duration::try_from_secs_f64(self.ttl_seconds) {
            Ok(ttl) if !ttl.is_zero() => Ok(()),
            _ => Err(format!("cache.ttl_seconds: is {}; it must be seconds above 0", self.ttl_seconds)),
        }
    }

    pub(super) fn ttl(&self) -> Duration {
        Duration::try_from_secs_f64(self.ttl_seconds).unwrap_or_default()
    }

    /// Whether results of the item may be kept; `is_read_only` is what the policy says of it.
    pub(super) fn keeps(&self, item: &SelectableItem, is_read_only: bool) -> bool {
        self.read_only && (is_read_only || self.allow.iter().any(|glob| glob.names(item)))
    }

    /// Whether this result may be kept.
    pub(super) fn takes(&self, result: &Raw) -> bool {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Kind {
            #[serde(default)]
            is_error: bool,
            result_type: Option<String>,
        }
        let complete = |kind: Kind| !kind.is_error && kind.result_type.is_none_or(|kind| kind == "complete");
        result.bytes().len() <= self.max_result_bytes && result.read::<Kind>().is_ok_and(complete)
    }
}

/// What the result of a call is kept under, and the lists that the call was made on.
#[derive(Debug, Clone)]
pub(in crate::gateway) struct Key {
    pub(super) text: String,
    pub(super) epoch: u64,
}

/// The text of a key: the order of the arguments does not matter, the whole definition of the tool does.
pub(super) fn key(item: &SelectableItem, arguments: &Value) -> String {
    let definition = item.raw.as_ref().map(|raw| sha256_hex(raw.get().as_bytes()));
    sha256_hex(canonical(&json!([item.server, item.id, definition, arguments])).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(id: &str) -> SelectableItem {
        SelectableItem::tool(id, "fs", "read", "")
    }

    #[test]
    fn only_what_the_operator_listed_is_kept() {
        let off = CacheConfig::default();
        let on = CacheConfig { read_only: true, ..CacheConfig::default() };
        let listed = CacheConfig { allow: vec![Glob::new("fs:r*")], read_only: true, ..CacheConfig::default() };
        let mut item = tool("fs:read#00000000");
        assert!(!on.keeps(&item, false) && on.keeps(&item, true) && listed.keeps(&item, false));
        assert!(!off.keeps(&item, true));
        // What the server says of itself changes nothing.
        item.safety = crate::catalog::Safety::ReadOnly;
        item.side_effects = false;
        assert!(!on.keeps(&item, false));
    }

    #[test]
    fn only_complete_results_of_bounded_size_are_kept() {
        let config = CacheConfig { max_result_bytes: 60, ..CacheConfig::default() };
        let cases = [
            (json!({"content": []}), true),
            (json!({"content": [], "isError": false, "resultType": "complete"}), true),
            (json!({"content": [], "isError": true}), false),
            (json!({"resultType": "input_required"}), false),
            (json!({"content": ["x".repeat(60)]}), false),
            (json!({"isError": "no"}), false),
            (json!([]), false),
        ];
        for (result, expected) in cases {
            assert_eq!(config.takes(&Raw::of(&result)), expected, "{result}");
        }
    }

    #[test]
    fn the_order_of_arguments_does_not_matter_and_all_else_does() {
        let arguments = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let one = key(&tool("a"), &arguments(r#"{"x":1,"y":{"a":[1,2],"b":2}}"#));
        assert_eq!(one, key(&tool("a"), &arguments(r#"{"y":{"b":2,"a":[1,2]},"x":1.0}"#)));
        for other in [r#"{"x":1,"y":{"a":[2,1],"b":2}}"#, r#"{"x":"1","y":{"a":[1,2],"b":2}}"#, "{}"] {
            assert_ne!(one, key(&tool("a"), &arguments(other)));
        }
        assert_ne!(one, key(&tool("b"), &arguments(r#"{"x":1,"y":{"a":[1,2],"b":2}}"#)));
        let mut elsewhere = tool("a");
        elsewhere.server = Some("s".to_owned());
        assert_ne!(key(&tool("a"), &json!({})), key(&elsewhere, &json!({})));
    }
}
