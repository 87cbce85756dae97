//! How often a caller may call: by meta-tool and by tool.
//!
//! Counted is by the caller's name and not by session, which a client over HTTP may open as often as it likes.
//!
//! The window slides: it holds the calls of the last sixty seconds, whenever that is. Without limits nothing is
//! counted. The counting itself is that of the shared [state](super::state).

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::glob::Glob;
use super::state::{Exceeded, Want};
use crate::catalog::SelectableItem;
use crate::gateway::error::{Code, GatewayError};
use crate::gateway::surface::MetaTool;
use crate::store::{Clock, SystemClock};

/// How often something may be called. Without a number it is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quota {
    /// Calls within any sixty seconds.
    pub max_calls_per_minute: Option<NonZeroU32>,
    /// Calls of a caller in all, until it has made none for 24 hours.
    pub max_calls_per_session: Option<NonZeroU64>,
}

impl Quota {
    /// So many calls a minute.
    #[must_use]
    pub fn per_minute(most: NonZeroU32) -> Self {
        Self { max_calls_per_minute: Some(most), max_calls_per_session: None }
    }

    /// What both permit.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            max_calls_per_minute: tighter(self.max_calls_per_minute, other.max_calls_per_minute),
            max_calls_per_session: tighter(self.max_calls_per_session, other.max_calls_per_session),
        }
    }

    fn is_limited(self) -> bool {
        self != Self::default()
    }
}

fn tighter<N: Ord>(left: Option<N>, right: Option<N>) -> Option<N> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (left, right) => left.or(right),
    }
}

/// How often a caller may call what.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimits {
    /// Searching and listing tools.
    pub tool_browse: Quota,
    /// Calling tools, whichever.
    pub tool_execute: Quota,
    /// Looking into results.
    pub tool_view: Quota,
    /// Reading definitions.
    pub tool_hydrate: Quota,
    /// Searching and listing resources.
    pub resource_browse: Quota,
    /// Reading resources.
    pub resource_read: Quota,
    /// Searching and listing prompts.
    pub prompt_browse: Quota,
    /// Filling in prompts.
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
    pub(super) fn wants(&self, tool: MetaTool, item: Option<&SelectableItem>, own: Quota, subject: &str) -> Vec<Want> {
        let want = |scope: &str, quota| Want { subject: subject.to_owned(), scope: scope.to_owned(), quota };
        let of_item = item.map(|item| {
            let fitting = self.per_tool.iter().filter(|(glob, _)| glob.names(item));
            want(&item.id, fitting.fold(own, |quota, (_, more)| quota.and(*more)))
        });
        let all = [Some(want(tool.name(), self.of(tool))), of_item];
        all.into_iter().flatten().filter(|want| want.quota.is_limited()).collect()
    }
}

/// What a meta-tool answers when a quota is used up.
pub(super) fn limited(exceeded: &Exceeded) -> GatewayError {
    let scope = exceeded.scope.as_str();
    let error = match exceeded.retry_after {
        Some(wait) => {
            let seconds = wait.as_millis().div_ceil(1000) as u64;
            let reason = format!("too many calls of `{scope}` within a minute; try again in {seconds} s");
            GatewayError::new(Code::RateLimited, reason).with("retry_after", seconds)
        }
        None => {
            let reason = format!("this caller has used up its calls of `{scope}`");
            let mut error = GatewayError::new(Code::RateLimited, reason);
            error.retryable = false;
            error
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
        s fs:read#00000000 Some(4) Some(3)
        ");
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
