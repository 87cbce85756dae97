//! The cache: results of calls that change nothing, kept for a while.
//!
//! Only the operator says which tools change nothing: a server's own `readOnlyHint` would let it answer a call that was
//! never made. Failures are never kept, nor what asks the caller for more, and all are forgotten when the upstreams
//! list anew or another configuration takes effect. A result is that of an upstream as it is configured: where the
//! state outlives the process, another server under the same name has results of its own.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::call::{CacheKey, Clearance, Guard, GuardedCall, Waiting};
use super::canonical::{canonical, canonical_list};
use super::glob::Glob;
use super::policy::{PolicyConfig, ToolSensitivity};
use super::shared::Shared;
use crate::common::error::GatewayError;
use crate::common::settings::{FieldError, duration};
use crate::protocol::message::Raw;
use contextweaver_core::catalog::SelectableItem;
use contextweaver_core::text::sha256_hex;

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
    /// Checks the values of the fields.
    ///
    /// # Errors
    /// The field with a value that cannot be used.
    pub(super) fn check(&self) -> Result<(), FieldError> {
        duration(self.ttl_seconds).map(drop).map_err(|error| FieldError::new("ttl_seconds", error))
    }

    fn ttl(&self) -> Duration {
        duration(self.ttl_seconds).unwrap_or_default()
    }

    /// Whether results of the item may be kept; `is_read_only` is what the policy says of it.
    fn keeps(&self, item: &SelectableItem, is_read_only: bool) -> bool {
        self.read_only && (is_read_only || self.allow.iter().any(|glob| glob.names(item)))
    }

    /// Whether this result may be kept.
    fn takes(&self, result: &Raw) -> bool {
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

/// Answers repeated calls from earlier results.
#[derive(Clone)]
pub(super) struct Cache {
    /// Which results are kept, and how long.
    pub(super) config: CacheConfig,
    /// What the operator says of tools.
    pub(super) policy: Arc<PolicyConfig>,
    /// What stands for the upstreams as they are configured, by the server name of their items.
    pub(super) sources: Arc<BTreeMap<String, String>>,
    /// Where results are kept.
    pub(super) shared: Shared,
    /// How often the kept results were forgotten.
    pub(super) epoch: Arc<AtomicU64>,
}

impl Cache {
    fn keeps(&self, call: &GuardedCall<'_>) -> bool {
        // A call that answers an earlier question is not a repetition of it.
        let item = call.item.filter(|_| self.config.read_only && !call.context.is_answer());
        item.is_some_and(|item| {
            self.config.keeps(item, self.policy.is_read_only(item))
                && self.policy.of_tool(item).sensitivity < ToolSensitivity::High
        })
    }

    /// Forgets every kept result.
    pub(super) async fn forget(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        if self.config.read_only
            && let Err(error) = self.shared.run(|state| state.clear_cache()).await
        {
            tracing::error!(%error, "cached results cannot be discarded");
        }
    }
}

impl Guard for Cache {
    fn waits(&self, call: &GuardedCall<'_>) -> bool {
        self.keeps(call)
    }

    /// Looks the result up. One that cannot be read counts as absent.
    fn wait<'g>(&'g self, call: &'g mut GuardedCall<'_>) -> Waiting<'g, Result<Clearance, GatewayError>> {
        Box::pin(async move {
            let Some(item) = call.item else { return Ok(Clearance::Go) };
            let source = item.server.as_ref().and_then(|server| self.sources.get(server));
            let text = key(item, source, &call.canonical_in_turn().await?, call.caller.session().tenant());
            call.cache_key = Some(CacheKey { text: text.clone(), epoch: self.epoch.load(Ordering::Acquire) });
            let now = self.shared.steady.now();
            let found = self.shared.run(move |state| state.cached(&text, now)).await;
            let found = found.inspect_err(|error| tracing::warn!(%error, "a cached result cannot be read"));
            let found = found.ok().flatten();
            call.cached = found.and_then(|found| serde_json::from_slice::<&RawValue>(&found).ok().map(Raw::of));
            Ok(Clearance::Go)
        })
    }

    /// Keeps a result of the right kind, if the lists are still those that the call was made on.
    fn keep<'g>(&'g self, call: &'g GuardedCall<'_>, result: &'g Raw) -> Option<Waiting<'g, ()>> {
        let key = call.cache_key.as_ref().filter(|_| call.cached.is_none() && self.config.takes(result))?;
        Some(Box::pin(async move {
            if key.epoch != self.epoch.load(Ordering::Acquire) {
                return;
            }
            let until = self.shared.steady.now() + self.config.ttl();
            let (text, bytes, most) = (key.text.clone(), result.bytes().clone(), self.config.max_entries.get());
            let kept = self.shared.run(move |state| state.cache(&text, &bytes, until, most)).await;
            if let Err(error) = kept {
                tracing::warn!(%error, "a result cannot be cached");
            }
        }))
    }
}

/// The text of a key, with the canonical text of the arguments: the order of the arguments does not matter, the whole
/// definition of the tool does, and the source, which stands for its upstream. What one caller was given is no answer
/// to another.
fn key(item: &SelectableItem, source: Option<&String>, arguments: &str, tenant: &str) -> String {
    let definition = item.raw.as_ref().map(|raw| sha256_hex(raw.get().as_bytes()));
    let [server, source, id, definition, tenant] =
        [json!(item.server), json!(source), json!(item.id), json!(definition), json!(tenant)]
            .map(|value| canonical(&value));
    sha256_hex(canonical_list(&[&server, &source, &id, &definition, arguments, &tenant]).as_bytes())
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::guard::call::Route;
    use crate::guard::canonical::canonical_as_written;
    use crate::guard::state::MemoryState;
    use crate::protocol::client_info::ClientInfo;
    use crate::session::client::{Caller, Session};
    use crate::session::context::CallContext;
    use crate::surface::meta_tools::MetaTool;
    use crate::upstream::config::{Confinement, Target, UpstreamConfig};
    use contextweaver_context::store::SystemClock;

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
        item.safety = contextweaver_core::catalog::Safety::ReadOnly;
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
        let arguments = |text: &str| canonical_as_written(text, &serde_json::from_str(text).unwrap());
        let key = |item: &SelectableItem, arguments: &str, tenant| key(item, None, arguments, tenant);
        let one = key(&tool("a"), &arguments(r#"{"x":1,"y":{"a":[1,2],"b":2}}"#), "");
        assert_eq!(one, key(&tool("a"), &arguments(r#"{"y":{"b":2,"a":[1,2]},"x":1.0}"#), ""));
        for other in [r#"{"x":1,"y":{"a":[2,1],"b":2}}"#, r#"{"x":"1","y":{"a":[1,2],"b":2}}"#, "{}"] {
            assert_ne!(one, key(&tool("a"), &arguments(other), ""));
        }
        assert_ne!(one, key(&tool("b"), &arguments(r#"{"x":1,"y":{"a":[1,2],"b":2}}"#), ""));
        let mut elsewhere = tool("a");
        elsewhere.server = Some("s".to_owned());
        assert_ne!(key(&tool("a"), "{}", ""), key(&elsewhere, "{}", ""));
        let wei = |wei: &str| key(&tool("a"), &arguments(&format!(r#"{{"wei":{wei}}}"#)), "");
        assert_ne!(wei("20000000000000000001"), wei("20000000000000000002"));
    }

    #[tokio::test]
    async fn what_one_server_answered_is_no_answer_of_another_in_its_place() {
        let clock = || Arc::new(SystemClock);
        let shared = Shared::new(Arc::new(MemoryState::default()), clock(), clock());
        let cache_of = |target| {
            let config = CacheConfig { allow: vec![Glob::new("*")], read_only: true, ..CacheConfig::default() };
            let sources = Arc::new(BTreeMap::from([("fs".to_owned(), UpstreamConfig::new(target).source())]));
            Cache { config, policy: Arc::default(), sources, shared: shared.clone(), epoch: Arc::default() }
        };
        let http = |url: &str, key: &str| Target::Http {
            url: url.to_owned(),
            headers: BTreeMap::from([("x-key".to_owned(), key.to_owned())]),
        };
        let stdio = |args: &[&str], database: &str| Target::Stdio {
            command: "fs".to_owned(),
            args: args.iter().map(|argument| (*argument).to_owned()).collect(),
            env: BTreeMap::from([("DATABASE".to_owned(), database.to_owned())]),
            confinement: Confinement::default(),
        };
        let targets = || {
            [
                http("https://a.example/mcp", "a"),
                http("https://b.example/mcp", "a"),
                http("https://a.example/mcp", "b"),
                stdio(&["--now"], "a"),
                stdio(&[], "a"),
                stdio(&["--now"], "b"),
            ]
        };
        let caller = Caller::new(Session::new("s"), ClientInfo::default(), mpsc::channel(1).0);
        let item = SelectableItem { server: Some("fs".to_owned()), ..tool("fs:read#00000000") };
        let looked_up = async |cache: &Cache| {
            let mut call = GuardedCall::new(Route::Tool, MetaTool::Execute, &caller, CallContext::default()).of(&item);
            cache.wait(&mut call).await.unwrap();
            call.cached
        };
        for (number, target) in targets().into_iter().enumerate() {
            let cache = cache_of(target);
            assert!(looked_up(&cache).await.is_none(), "target {number}");
            let mut call = GuardedCall::new(Route::Tool, MetaTool::Execute, &caller, CallContext::default()).of(&item);
            cache.wait(&mut call).await.unwrap();
            cache.keep(&call, &Raw::of(&json!({"content": [], "number": number}))).unwrap().await;
        }
        for (number, target) in targets().into_iter().enumerate() {
            let found = looked_up(&cache_of(target)).await;
            assert_eq!(found, Some(Raw::of(&json!({"content": [], "number": number}))));
        }
    }

    #[tokio::test]
    async fn a_result_that_comes_after_a_refresh_is_not_kept() {
        let config = CacheConfig { allow: vec![Glob::new("*")], read_only: true, ..CacheConfig::default() };
        let clock = || Arc::new(SystemClock);
        let shared = Shared::new(Arc::new(MemoryState::default()), clock(), clock());
        let (policy, sources, epoch) = (Arc::default(), Arc::default(), Arc::default());
        let cache = Cache { config, policy, sources, shared, epoch };
        let caller = Caller::new(Session::new("s"), ClientInfo::default(), mpsc::channel(1).0);
        let item = tool("fs:read#00000000");
        let changed = SelectableItem { raw: Some(Arc::from(Raw::of(&json!({})).to_raw_value())), ..item.clone() };
        let result = Raw::of(&json!({"content": []}));
        let looked_up = async |item| {
            let context = CallContext::default();
            let mut call = GuardedCall::new(Route::Tool, MetaTool::Execute, &caller, context).of(item);
            assert!(cache.waits(&call));
            cache.wait(&mut call).await.unwrap();
            call
        };
        let early = looked_up(&item).await;
        cache.forget().await;
        cache.keep(&early, &result).unwrap().await;
        let next = looked_up(&item).await;
        assert_eq!(next.cached, None);
        cache.keep(&next, &result).unwrap().await;
        assert_eq!(looked_up(&item).await.cached, Some(result));
        assert_eq!(looked_up(&changed).await.cached, None, "another definition");
    }
}
