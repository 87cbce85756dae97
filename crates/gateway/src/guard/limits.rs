//! How often a caller may call: by meta-tool and by tool.
//!
//! Calls are counted by the caller's name and not by session, which a client over HTTP may open as often as it likes.
//!
//! The window slides: it holds the calls of the last sixty seconds, whenever that is. Without limits nothing is
//! counted. The counting itself is that of the shared [state](super::state).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::call::{Clearance, Guard, GuardedCall, Waiting};
use super::glob::Glob;
use super::policy::PolicyConfig;
use super::quota::Quota;
use super::shared::Shared;
use super::state::{Exceeded, Take, Want};
use crate::common::error::{Code, GatewayError};
use crate::surface::meta_tools::MetaTool;
use contextweaver_context::store::{Clock, SystemClock};
use contextweaver_core::catalog::{Kind, SelectableItem};

/// How often a caller may call what.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimits {
    /// Searching and listing tools.
    pub tool_browse: Quota,
    /// Calling tools, whichever.
    pub tool_execute: Quota,
    /// The quota of looking into results.
    pub tool_view: Quota,
    /// The quota of reading definitions.
    pub tool_hydrate: Quota,
    /// Searching and listing resources.
    pub resource_browse: Quota,
    /// The quota of reading resources.
    pub resource_read: Quota,
    /// Searching and listing prompts.
    pub prompt_browse: Quota,
    /// The quota of filling in prompts.
    pub prompt_get: Quota,
    /// Calling particular tools, by id or pattern; each tool is counted on its own, and every entry that fits applies.
    pub per_tool: BTreeMap<Glob, Quota>,
}

impl RateLimits {
    fn of(&self, tool: MetaTool) -> Quota {
        match tool {
            MetaTool::Browse => self.tool_browse,
            MetaTool::Execute => self.tool_execute,
            MetaTool::View => self.tool_view,
            MetaTool::Hydrate => self.tool_hydrate,
            MetaTool::ResourceBrowse => self.resource_browse,
            MetaTool::ResourceRead => self.resource_read,
            MetaTool::PromptBrowse => self.prompt_browse,
            MetaTool::PromptGet => self.prompt_get,
        }
    }

    /// What a call of `tool` by the caller `subject` has to be permitted by; `item` is what it calls, and `own` the
    /// quota that the policy file gives that.
    fn wants(&self, tool: MetaTool, item: Option<&SelectableItem>, own: Quota, subject: &str) -> Vec<Want> {
        let want = |scope: String, quota| Want { subject: subject.to_owned(), scope, quota };
        // Most calls are limited by nothing, and cost nothing here.
        let of_tool =
            Some(self.of(tool)).filter(|quota| quota.is_limited()).map(|quota| want(tool.name().to_owned(), quota));
        let of_item = item.and_then(|item| {
            let fitting = self.per_tool.iter().filter(|(glob, _)| glob.names(item));
            let quota = fitting.fold(own, |quota, (_, more)| quota.and(*more));
            quota.is_limited().then(|| want(counted_as(item), quota))
        });
        of_tool.into_iter().chain(of_item).collect()
    }
}

/// The name under which calls of an item are counted. It says nothing of the definition, as an id does: a server must not
/// give its callers new quotas by changing a description.
fn counted_as(item: &SelectableItem) -> String {
    match item.metadata.get("uri").and_then(Value::as_str).filter(|_| item.kind == Kind::Resource) {
        Some(address) => format!("resource::{}:{address}", item.namespace),
        None => item.id.split(['@', '#']).next().unwrap_or(&item.id).to_owned(),
    }
}

/// Counts calls, and refuses those for which no quota is left.
pub(super) struct Quotas {
    /// The quotas of meta-tools and tools.
    pub(super) limits: RateLimits,
    /// The quotas that the policy gives to tools.
    pub(super) policy: Arc<PolicyConfig>,
    /// Where calls are counted.
    pub(super) shared: Shared,
}

impl Quotas {
    fn wants(&self, call: &GuardedCall<'_>) -> Vec<Want> {
        let own = call.item.map(|item| self.policy.of_tool(item).quota()).unwrap_or_default();
        self.limits.wants(call.operation, call.item, own, &call.caller.session().identity().name)
    }

    /// Whether the quotas permit the call.
    ///
    /// # Errors
    /// That cannot be known now.
    async fn take(&self, wants: Vec<Want>, take: Take) -> Result<Result<(), Exceeded>, GatewayError> {
        let now = self.shared.steady.now();
        self.shared.run(move |state| state.take(&wants, now, take)).await.map_err(|error| {
            tracing::error!(%error, "quotas cannot be counted");
            GatewayError::new(Code::RateLimited, "the gateway cannot count calls now; try again later")
        })
    }
}

fn exceeded(call: &GuardedCall<'_>, exceeded: &Exceeded) -> GatewayError {
    let error = limited(exceeded);
    match call.item {
        Some(item) => error.at(&item.id),
        None => error,
    }
}

impl Guard for Quotas {
    fn waits(&self, call: &GuardedCall<'_>) -> bool {
        !self.wants(call).is_empty()
    }

    fn wait<'g>(&'g self, call: &'g mut GuardedCall<'_>) -> Waiting<'g, Result<Clearance, GatewayError>> {
        Box::pin(async move {
            // Of a call that will be asked about in a result, the call that brings the answer counts.
            let take = if call.is_to_be_asked_about() { Take::Look } else { Take::Use };
            let taken = self.take(self.wants(call), take).await?;
            taken.map(|()| Clearance::Go).map_err(|over| exceeded(call, &over))
        })
    }

    fn report<'g>(&'g self, call: &'g GuardedCall<'_>) -> Waiting<'g, Result<Vec<Value>, GatewayError>> {
        Box::pin(async move {
            let wants = self.wants(call);
            let taken = if wants.is_empty() { Ok(()) } else { self.take(wants, Take::Look).await? };
            Ok(vec![match taken {
                Ok(()) => json!({"name": "rate_limit", "status": "pass"}),
                Err(over) => {
                    json!({"name": "rate_limit", "status": "fail", "details": exceeded(call, &over).details})
                }
            }])
        })
    }
}

/// What a meta-tool answers when a quota is used up.
fn limited(exceeded: &Exceeded) -> GatewayError {
    let scope = exceeded.scope.as_str();
    let error = match exceeded.retry_after {
        Some(wait) => {
            let seconds = wait.as_millis().div_ceil(1000) as u64;
            let reason = format!("too many calls of `{scope}` within a minute; try again in {seconds} s");
            GatewayError::new(Code::RateLimited, reason).with("retry_after", seconds)
        }
        None => {
            let reason = format!("this caller has used up its calls of `{scope}`");
            GatewayError::new(Code::RateLimited, reason).for_good()
        }
    };
    error.with("scope", scope)
}

/// The time of the machine when the gateway started, and from then on one that never jumps: setting the machine's
/// clock neither opens nor closes a window.
#[derive(Debug, Clone, Copy)]
pub struct SteadyClock {
    at_start: Duration,
    start: Instant,
}

impl Default for SteadyClock {
    fn default() -> Self {
        Self { at_start: SystemClock.now(), start: Instant::now() }
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Duration {
        self.at_start + self.start.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn every_limit_that_fits_applies() {
        let text = "tool_execute: {max_calls_per_minute: 9}\nper_tool:\n  'fs:*': {max_calls_per_minute: 5}\n  \
                    'read*': {max_calls_per_session: 3}\n  other: {max_calls_per_minute: 1}\n";
        let limits: RateLimits = serde_saphyr::from_str(text).unwrap();
        let item = SelectableItem::tool("fs:read#00000000", "fs", "read", "");
        let own = Quota::per_minute(NonZeroU32::new(4).unwrap());
        let shown = |wants: Vec<Want>| {
            let line = |want: &Want| {
                let Quota { max_calls_per_minute: minute, max_calls_per_session: session } = want.quota;
                format!("{} {} {minute:?} {session:?}", want.subject, want.scope)
            };
            wants.iter().map(line).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(shown(limits.wants(MetaTool::Execute, Some(&item), own, "s")), @r"
        s tool_execute Some(9) None
        s fs:read Some(4) Some(3)
        ");
        let changed = SelectableItem::tool("fs:read@2#11111111", "fs", "read", "");
        assert_eq!(counted_as(&changed), counted_as(&item));
        let mut resource = SelectableItem::tool("resource::fs:notes#0123abcd", "fs", "notes", "");
        resource.kind = Kind::Resource;
        resource.metadata.insert("uri".to_owned(), "file:///a#b".into());
        assert_eq!(counted_as(&resource), "resource::fs:file:///a#b");
        assert!(limits.wants(MetaTool::Browse, None, Quota::default(), "s").is_empty());
    }

    #[test]
    fn the_answer_says_when_to_come_again() {
        let exceeded = |retry_after| Exceeded { scope: "tool_execute".to_owned(), retry_after };
        let text = |error: &GatewayError| serde_json::to_string(error).unwrap();
        insta::assert_snapshot!(text(&limited(&exceeded(Some(Duration::from_millis(1001))))), @r#"{"error":"RATE_LIMITED","message":"too many calls of `tool_execute` within a minute; try again in 2 s","path":"","retryable":true,"details":{"retry_after":2,"scope":"tool_execute"}}"#);
        insta::assert_snapshot!(text(&limited(&exceeded(None))), @r#"{"error":"RATE_LIMITED","message":"this caller has used up its calls of `tool_execute`","path":"","retryable":false,"details":{"scope":"tool_execute"}}"#);
    }

    #[test]
    fn a_limit_that_is_none_is_refused() {
        for text in ["tool_run: {}", "tool_view: {max_calls_per_minute: 0}", "per_tool: {a: {max_calls: 1}}"] {
            assert!(serde_saphyr::from_str::<RateLimits>(text).is_err(), "{text}");
        }
    }
}
