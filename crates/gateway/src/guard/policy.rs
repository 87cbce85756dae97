//! Who may call what: rules, scopes, visibility and approvals.
//!
//! Rules are tried in their order and the first that fits decides; what none fits, the default decides. What a server
//! says of its own tools is trusted for none of it: tags and side effects are those of the operator's own lists, and a
//! tool that is on no list counts as one that changes something.
//!
//! Where a rule demands an approval, the person behind the client is asked (`approval`); where that is impossible, the
//! call is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::call::{Guard, GuardedCall, Waiting};
use super::desk::Desk;
use super::glob::Glob;
use super::profiles::{Profiles, SideEffect, Visibility};
use super::quota::{Quota, tighter};
use crate::common::error::{Code, GatewayError};
use crate::common::settings::FieldError;
use crate::common::yaml::read;
use crate::surface::meta_tools::MetaTool;
use contextweaver_context::event::Sensitivity;
use contextweaver_core::catalog::SelectableItem;
use contextweaver_core::files::read_text_file;

/// A file of policies of more bytes is not read.
const MOST_BYTES: u64 = 16 << 20;

/// What is decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The call is made.
    #[default]
    Allow,
    /// The call is refused.
    Deny,
    /// It is made when a person approves it.
    RequireApproval,
}

/// How sensitive the results of a tool are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSensitivity {
    /// Anybody may see them.
    #[default]
    Low,
    /// They are for internal use.
    Medium,
    /// They are confidential, and never kept in the cache.
    High,
}

/// A rule. It fits a call that meets every condition it has; without conditions, every call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The action for calls that fit.
    pub action: Action,
    /// The meta-tool. Without it the rule is about calls of tools, resources and prompts, and not about browsing.
    #[serde(default)]
    pub meta_tool: Option<Glob>,
    /// A pattern that the namespace has to match.
    #[serde(default)]
    pub namespace: Option<Glob>,
    /// The id, the id without version and hash, or the name.
    #[serde(default)]
    pub tool: Option<Glob>,
    /// Tags of the operator's, any of them.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What the call may do.
    #[serde(default)]
    pub side_effect: Option<SideEffect>,
    /// Why; the caller and the person who approves are told.
    #[serde(default)]
    pub reason: String,
}

/// What a policy file says of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolPolicy {
    /// Scopes that a caller must have, all of them.
    pub required_scopes: Vec<String>,
    /// How sensitive the results of the tool are.
    pub sensitivity: ToolSensitivity,
    /// Calls of a caller within any sixty seconds.
    pub rate_limit: Option<NonZeroU32>,
    /// Whether a person must approve each call.
    pub requires_approval: bool,
}

impl ToolPolicy {
    /// The policy that demands what both demand.
    fn and(mut self, other: &Self) -> Self {
        self.required_scopes.extend(other.required_scopes.iter().cloned());
        self.required_scopes.sort_unstable();
        self.required_scopes.dedup();
        self.sensitivity = self.sensitivity.max(other.sensitivity);
        self.rate_limit = tighter(self.rate_limit, other.rate_limit);
        self.requires_approval |= other.requires_approval;
        self
    }

    pub(super) fn quota(&self) -> Quota {
        self.rate_limit.map(Quota::per_minute).unwrap_or_default()
    }
}

/// The rules that say who may call what, and the operator's lists of tools.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyConfig {
    /// What becomes of calls that no rule fits; the preset's, or `allow`, when `None`.
    pub default: Option<Action>,
    /// The rules, the first that fits decides.
    pub rules: Vec<Rule>,
    /// Tags, and the tools that have them.
    pub tags: BTreeMap<String, Vec<Glob>>,
    /// Tools that change nothing.
    pub read_only: Vec<Glob>,
    /// Tools that may destroy something; this list wins.
    pub destructive: Vec<Glob>,
    /// Scopes, sensitivity, limits and approvals by tool; every entry that fits applies.
    pub tools: BTreeMap<Glob, ToolPolicy>,
    /// A file with more of them.
    pub tools_file: Option<PathBuf>,
}

/// A policy with values for all that a deployment of that kind wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// Every call is approved by a person; 30 calls a minute.
    Safe,
    /// Calls are made; 120 a minute.
    Balanced,
    /// Calls are made, without limit; results of tools that are listed as read-only are cached.
    Throughput,
}

impl Preset {
    pub(super) fn default_action(self) -> Action {
        match self {
            Self::Safe => Action::RequireApproval,
            Self::Balanced | Self::Throughput => Action::Allow,
        }
    }

    pub(super) fn calls_per_minute(self) -> Option<NonZeroU32> {
        match self {
            Self::Safe => NonZeroU32::new(30),
            Self::Balanced => NonZeroU32::new(120),
            Self::Throughput => None,
        }
    }
}

/// What was decided about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// The call is made.
    Allow,
    /// It is refused, and why.
    Deny(String),
    /// A person is to approve it, and why.
    Ask(String),
}

/// What decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Basis {
    /// The rule at this place.
    Rule(usize),
    /// The default, since no rule fits.
    Default,
    /// What the policy says of the tool itself: its scopes, or that it needs an approval.
    Tool,
    /// Nothing is said about tools of the gateway that ask no upstream.
    Unruled,
}

impl std::fmt::Display for Basis {
    /// The place in the configuration.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rule(number) => write!(formatter, "policy.rules[{number}]"),
            Self::Default => formatter.write_str("policy.default"),
            Self::Tool => formatter.write_str("policy.tools"),
            Self::Unruled => formatter.write_str("none"),
        }
    }
}

/// A verdict, and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Decision {
    verdict: Verdict,
    basis: Basis,
}

impl Decision {
    /// The stricter of two; this one of equals.
    fn or_stricter(self, other: Self) -> Self {
        match (&self.verdict, &other.verdict) {
            (Verdict::Allow, _) | (Verdict::Ask(_), Verdict::Deny(_)) => other,
            _ => self,
        }
    }
}

/// Whether a text is a mapping with the one key `tools`.
fn has_only_tools(text: &str) -> bool {
    read::<BTreeMap<String, IgnoredAny>>(text).is_ok_and(|keys| keys.keys().eq(["tools"]))
}

impl PolicyConfig {
    /// Adds what the file of tools says. It holds a mapping from tools to policies, or that under `tools`.
    ///
    /// # Errors
    /// The file cannot be read, or has another form.
    pub(super) fn read_tools(&mut self, folder: &Path) -> Result<(), FieldError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Under {
            tools: BTreeMap<Glob, ToolPolicy>,
        }
        let Some(path) = self.tools_file.as_ref().map(|path| folder.join(path)) else { return Ok(()) };
        let failed = |reason: &dyn std::fmt::Display| {
            FieldError::new("policy.tools_file", format!("{}: {reason}", path.display()))
        };
        let text = read_text_file(&path, MOST_BYTES).map_err(|error| failed(&error.reason))?;
        let bare = || read::<BTreeMap<Glob, ToolPolicy>>(&text);
        let more = match read::<Under>(&text) {
            Ok(under) => under.tools,
            // Whoever writes nothing but `tools` means that form.
            Err(under) => bare().map_err(|bare| failed(if has_only_tools(&text) { &under } else { &bare }))?,
        };
        for (glob, policy) in more {
            let merged = self.tools.remove(&glob).unwrap_or_default().and(&policy);
            self.tools.insert(glob, merged);
        }
        Ok(())
    }

    /// Refuses names that nothing has: a rule with one would silently decide nothing.
    ///
    /// # Errors
    /// The field with such a name.
    pub(super) fn check(&self) -> Result<(), FieldError> {
        for (number, rule) in self.rules.iter().enumerate() {
            if let Some(glob) =
                rule.meta_tool.as_ref().filter(|glob| !MetaTool::ALL.iter().any(|tool| glob.matches(tool.name())))
            {
                let field = format!("policy.rules[{number}].meta_tool");
                return Err(FieldError::new(field, format!("there is no `{glob}`")));
            }
            self.check_tags(&rule.tags, &format!("policy.rules[{number}].tags"))?;
        }
        Ok(())
    }

    /// Refuses tags that `policy.tags` does not have.
    ///
    /// # Errors
    /// `place` names the first of them.
    pub(super) fn check_tags(&self, tags: &[String], place: &str) -> Result<(), FieldError> {
        match tags.iter().find(|tag| !self.tags.contains_key(*tag)) {
            Some(tag) => {
                let reason = format!("`{tag}` is not in `policy.tags`; list there which tools have it");
                Err(FieldError::new(place, reason))
            }
            None => Ok(()),
        }
    }

    /// Whether the operator says that the item changes nothing.
    pub(super) fn is_read_only(&self, item: &SelectableItem) -> bool {
        names(&self.read_only, item) && !names(&self.destructive, item)
    }

    fn may(&self, item: &SelectableItem, effect: SideEffect) -> bool {
        match effect {
            SideEffect::ReadOnly => self.is_read_only(item),
            SideEffect::Mutating => !self.is_read_only(item),
            SideEffect::Destructive => names(&self.destructive, item),
        }
    }

    fn has_tag(&self, item: &SelectableItem, tags: &[String]) -> bool {
        tags.iter().filter_map(|tag| self.tags.get(tag)).any(|globs| names(globs, item))
    }

    /// What the policy says of a tool.
    pub(super) fn of_tool(&self, item: &SelectableItem) -> ToolPolicy {
        let fitting = self.tools.iter().filter(|(glob, _)| glob.names(item));
        fitting.fold(ToolPolicy::default(), |policy, (_, more)| policy.and(more))
    }

    /// How sensitive the results of a tool are.
    pub(super) fn sensitivity(&self, item: &SelectableItem) -> Sensitivity {
        match self.of_tool(item).sensitivity {
            ToolSensitivity::Low => Sensitivity::Public,
            ToolSensitivity::Medium => Sensitivity::Internal,
            ToolSensitivity::High => Sensitivity::Confidential,
        }
    }

    /// Whether a caller of this profile is shown the item.
    pub(crate) fn shows(&self, profile: &Visibility, item: &SelectableItem) -> bool {
        let in_namespace = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(&item.namespace));
        let includes = (profile.include_namespaces.is_empty() || in_namespace(&profile.include_namespaces))
            && (profile.include_tags.is_empty() || self.has_tag(item, &profile.include_tags))
            && (profile.include_tools.is_empty() || names(&profile.include_tools, item));
        let excludes = in_namespace(&profile.exclude_namespaces)
            || self.has_tag(item, &profile.exclude_tags)
            || names(&profile.exclude_tools, item)
            || profile.exclude_side_effects.iter().any(|effect| self.may(item, *effect));
        includes && !excludes
    }

    fn fits(&self, rule: &Rule, tool: MetaTool, item: Option<&SelectableItem>) -> bool {
        let fits_tool = rule.meta_tool.as_ref().map_or(tool.is_call(), |glob| glob.matches(tool.name()));
        let about_items =
            rule.namespace.is_some() || rule.tool.is_some() || !rule.tags.is_empty() || rule.side_effect.is_some();
        fits_tool
            && item.map_or(!about_items, |item| {
                rule.namespace.as_ref().is_none_or(|glob| glob.matches(&item.namespace))
                    && rule.tool.as_ref().is_none_or(|glob| glob.names(item))
                    && (rule.tags.is_empty() || self.has_tag(item, &rule.tags))
                    && rule.side_effect.is_none_or(|effect| self.may(item, effect))
            })
    }

    /// What becomes of calls of a tool by callers of this profile, if it shows the tool.
    pub(crate) fn action(&self, profile: Option<&Visibility>, tool: &SelectableItem) -> Action {
        let none = BTreeSet::new();
        let scopes = profile.map_or(&none, |profile| &profile.scopes);
        match self.decide(self.default.unwrap_or_default(), MetaTool::Execute, Some(tool), scopes).verdict {
            Verdict::Allow => Action::Allow,
            Verdict::Deny(_) => Action::Deny,
            Verdict::Ask(_) => Action::RequireApproval,
        }
    }

    /// What is decided about a call by a caller with these scopes.
    fn decide(
        &self,
        default: Action,
        tool: MetaTool,
        item: Option<&SelectableItem>,
        scopes: &BTreeSet<String>,
    ) -> Decision {
        let rule = self.rules.iter().enumerate().find(|(_, rule)| self.fits(rule, tool, item));
        let (action, basis) = match rule {
            Some((number, rule)) => (rule.action, Basis::Rule(number)),
            None if tool.is_call() => (default, Basis::Default),
            None => (Action::Allow, Basis::Unruled),
        };
        let reason = rule.map(|(_, rule)| rule.reason.as_str()).filter(|reason| !reason.is_empty());
        if action == Action::Deny {
            let verdict = Verdict::Deny(reason.unwrap_or("the policy of this gateway refuses it").to_owned());
            return Decision { verdict, basis };
        }
        let own = item.map(|item| self.of_tool(item)).unwrap_or_default();
        let missing: Vec<&str> =
            own.required_scopes.iter().filter(|scope| !scopes.contains(*scope)).map(String::as_str).collect();
        if !missing.is_empty() {
            let verdict = Verdict::Deny(format!("the caller lacks the scope `{}`", missing.join("`, `")));
            return Decision { verdict, basis: Basis::Tool };
        }
        if action == Action::RequireApproval || own.requires_approval {
            let reason = reason.unwrap_or("the policy of this gateway wants a person to approve it").to_owned();
            let basis = if action == Action::RequireApproval { basis } else { Basis::Tool };
            return Decision { verdict: Verdict::Ask(reason), basis };
        }
        Decision { verdict: Verdict::Allow, basis }
    }
}

fn names(globs: &[Glob], item: &SelectableItem) -> bool {
    globs.iter().any(|glob| glob.names(item))
}

/// Decides whether a caller may make a call, by the rules.
pub(super) struct Rules {
    /// The rules, and the operator's lists of tools.
    pub(super) policy: Arc<PolicyConfig>,
    /// The profiles, which give scopes to callers.
    pub(super) profiles: Arc<Profiles>,
    /// Where an operator may answer.
    pub(super) desk: Arc<Desk>,
}

impl Guard for Rules {
    /// Refuses the call, or notes that a person has to approve it. An approval that this client cannot give counts as
    /// refused.
    fn check(&self, call: &mut GuardedCall<'_>) -> Result<(), GatewayError> {
        let none = BTreeSet::new();
        let scopes = self.profiles.of(call.caller).map_or(&none, |profile| &profile.scopes);
        let default = self.policy.default.unwrap_or_default();
        let decide = |item| self.policy.decide(default, call.operation, item, scopes);
        let Decision { verdict, basis } =
            call.spellings.iter().fold(decide(call.item), |decided, other| decided.or_stricter(decide(Some(other))));
        call.context.record.note(|account| account.rule = (basis != Basis::Unruled).then(|| basis.to_string()));
        match (verdict, call.item) {
            (Verdict::Allow, _) => {}
            (Verdict::Deny(reason), _) => return Err(GatewayError::new(Code::PolicyDenied, reason).at(call.subject())),
            (Verdict::Ask(reason), Some(_)) if call.caller.can_fill_forms() || self.desk.is_open() => {
                call.approval = Some(reason);
            }
            (Verdict::Ask(reason), Some(item)) => {
                let why = "it needs an approval, and this client cannot ask for one";
                return Err(unapproved(item, &reason, why));
            }
            (Verdict::Ask(reason), None) => {
                let reason = format!("only calls of tools can be approved: {reason}");
                return Err(GatewayError::new(Code::ApprovalRequired, reason).at(call.subject()));
            }
        }
        Ok(())
    }

    fn report<'g>(&'g self, call: &'g GuardedCall<'_>) -> Waiting<'g, Result<Vec<Value>, GatewayError>> {
        let mut checks = vec![json!({"name": "policy", "status": "pass"})];
        if let Some(reason) = &call.approval {
            checks.push(json!({"name": "approval", "status": "required", "reason": reason}));
        }
        Box::pin(std::future::ready(Ok(checks)))
    }
}

/// The refusal of a call that needs an approval.
pub(super) fn unapproved(item: &SelectableItem, reason: &str, why: &str) -> GatewayError {
    GatewayError::new(Code::ApprovalRequired, format!("{why}: {reason}")).at(&item.id)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tool(id: &str) -> SelectableItem {
        let (namespace, name) = id.split_once(':').unwrap();
        SelectableItem::tool(&format!("{id}#00000000"), namespace, name, "")
    }

    fn policy(text: &str) -> PolicyConfig {
        let policy: PolicyConfig = serde_saphyr::from_str(text).unwrap();
        policy.check().unwrap();
        policy
    }

    const RULES: &str = "
default: deny
rules:
  - {action: deny, tool: '*delete*', reason: nothing is deleted here}
  - {action: allow, namespace: fs, side_effect: read_only}
  - {action: require_approval, side_effect: destructive, reason: it cannot be undone}
  - {action: require_approval, tags: [money]}
  - {action: allow, namespace: fs}
  - {action: deny, meta_tool: tool_view}
tags: {money: ['pay:*', 'fs:invoice']}
read_only: ['read*', 'fs:list', 'fs:delete_me']
destructive: ['fs:format']
tools:
  'web:*': {required_scopes: ['tool:web'], sensitivity: low, rate_limit: 60}
  'web:db': {required_scopes: ['tool:database'], sensitivity: high, rate_limit: 30, requires_approval: true}
";

    #[test]
    fn the_first_rule_that_fits_decides() {
        let policy = policy(RULES);
        let mut item_with_tags = tool("crm:post");
        // What a server says of its tool opens nothing.
        item_with_tags.tags = vec!["money".to_owned(), "read-only".to_owned()];
        item_with_tags.side_effects = false;
        let decide = |tool: MetaTool, item: Option<&SelectableItem>| match policy.decide(
            Action::Deny,
            tool,
            item,
            &BTreeSet::new(),
        ) {
            Decision { verdict: Verdict::Allow, basis } => format!("allow by {basis}"),
            Decision { verdict: Verdict::Deny(reason), basis } => format!("deny by {basis}: {reason}"),
            Decision { verdict: Verdict::Ask(reason), basis } => format!("ask by {basis}: {reason}"),
        };
        let items =
            ["fs:delete_me", "fs:read", "fs:write", "fs:format", "fs:invoice", "pay:card", "crm:read", "web:get"];
        let mut lines: Vec<String> =
            items.iter().map(|id| format!("{id} {}", decide(MetaTool::Execute, Some(&tool(id))))).collect();
        lines.push(format!("crm:post {}", decide(MetaTool::Execute, Some(&item_with_tags))));
        lines.push(format!("browse {}", decide(MetaTool::Browse, None)));
        lines.push(format!("view {}", decide(MetaTool::View, None)));
        insta::assert_snapshot!(lines.join("\n"), @r"
        fs:delete_me deny by policy.rules[0]: nothing is deleted here
        fs:read allow by policy.rules[1]
        fs:write allow by policy.rules[4]
        fs:format ask by policy.rules[2]: it cannot be undone
        fs:invoice ask by policy.rules[3]: the policy of this gateway wants a person to approve it
        pay:card ask by policy.rules[3]: the policy of this gateway wants a person to approve it
        crm:read deny by policy.default: the policy of this gateway refuses it
        web:get deny by policy.default: the policy of this gateway refuses it
        crm:post deny by policy.default: the policy of this gateway refuses it
        browse allow by none
        view deny by policy.rules[5]: the policy of this gateway refuses it
        ");
    }

    #[test]
    fn a_policy_of_a_tool_is_all_that_fits() {
        let policy = policy(RULES);
        let own = policy.of_tool(&tool("web:db"));
        assert_eq!(own.required_scopes, ["tool:database", "tool:web"]);
        assert_eq!(
            (own.sensitivity, own.rate_limit, own.requires_approval),
            (ToolSensitivity::High, NonZeroU32::new(30), true)
        );
        let decide = |id: &str, scopes: &[&str]| {
            let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
            policy.decide(Action::Allow, MetaTool::Execute, Some(&tool(id)), &scopes).verdict
        };
        assert_eq!(decide("web:get", &[]), Verdict::Deny("the caller lacks the scope `tool:web`".to_owned()));
        assert_eq!(decide("web:get", &["tool:web"]), Verdict::Allow);
        assert_eq!(
            decide("web:db", &["tool:web"]),
            Verdict::Deny("the caller lacks the scope `tool:database`".to_owned())
        );
        assert!(matches!(decide("web:db", &["tool:web", "tool:database"]), Verdict::Ask(_)));
        assert!(matches!(decide("fs:delete", &[]), Verdict::Deny(_)), "a rule that refuses stays");
    }

    #[test]
    fn a_file_of_tools_adds_and_never_loosens() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["web_search: {rate_limit: 10}\n", "tools:\n  web_search: {rate_limit: 10}\n"] {
            std::fs::write(folder.path().join("tools.yaml"), text).unwrap();
            let mut policy =
                policy("tools: {web_search: {rate_limit: 60, requires_approval: true}}\ntools_file: tools.yaml\n");
            policy.read_tools(folder.path()).unwrap();
            let own = policy.of_tool(&tool("web:web_search"));
            assert_eq!((own.rate_limit, own.requires_approval), (NonZeroU32::new(10), true));
        }
        // What is wrong is said of the form that the file has.
        for text in ["web_search: {rate: 10}\n", "tools:\n  web_search: {rate: 10}\n"] {
            std::fs::write(folder.path().join("tools.yaml"), text).unwrap();
            let reason = policy("tools_file: tools.yaml").read_tools(folder.path()).unwrap_err().reason;
            assert!(reason.contains("tools.yaml") && reason.contains("unknown field `rate`"), "{reason}");
        }
    }

    #[test]
    fn what_would_decide_nothing_is_refused() {
        for text in ["rules: [{action: deny, meta_tool: tool_run}]", "rules: [{action: deny, tags: [monney]}]"] {
            let policy: PolicyConfig = serde_saphyr::from_str(text).unwrap();
            assert!(policy.check().is_err(), "{text}");
        }
        for text in [
            "rules: [{action: allow, tols: a}]",
            "rules: [{}]",
            "defualt: deny",
            "tools: {a: {scopes: []}}",
            "default: maybe",
        ] {
            assert!(serde_saphyr::from_str::<PolicyConfig>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_profile_shows_what_it_includes_and_does_not_exclude() {
        let policy = policy(RULES);
        let shown = |text: &str| {
            let profile: Visibility = serde_saphyr::from_str(text).unwrap();
            let all = ["fs:read", "fs:format", "fs:invoice", "pay:card", "web:get"];
            all.into_iter().filter(|id| policy.shows(&profile, &tool(id))).collect::<Vec<_>>().join(" ")
        };
        let cases = [
            ("{}", "fs:read fs:format fs:invoice pay:card web:get"),
            ("include_namespaces: [fs, web]", "fs:read fs:format fs:invoice web:get"),
            ("{include_namespaces: ['*'], exclude_namespaces: [fs]}", "pay:card web:get"),
            ("include_tags: [money]", "fs:invoice pay:card"),
            ("exclude_tags: [money]", "fs:read fs:format web:get"),
            ("{include_tools: ['fs:*'], exclude_tools: [format]}", "fs:read fs:invoice"),
            ("exclude_side_effects: [destructive]", "fs:read fs:invoice pay:card web:get"),
            ("exclude_side_effects: [mutating]", "fs:read"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn rules_agree_with_reading_them_one_by_one(
            actions in proptest::collection::vec((0usize..3, 0usize..4), 0..6), which in 0usize..4,
        ) {
            let globs = ["a:*", "*:x", "b:y", "*"];
            let item = tool(["a:x", "a:y", "b:x", "b:y"][which]);
            let all = [Action::Allow, Action::Deny, Action::RequireApproval];
            let rule = |(action, glob): &(usize, usize)| Rule {
                action: all[*action], meta_tool: None, namespace: None, tool: Some(Glob::new(globs[*glob])),
                tags: Vec::new(), side_effect: None, reason: String::new(),
            };
            let policy = PolicyConfig { rules: actions.iter().map(rule).collect(), ..PolicyConfig::default() };
            let expected = policy.rules.iter().find(|rule| rule.tool.as_ref().unwrap().names(&item)).map_or(Action::Deny, |rule| rule.action);
            let decided = match policy.decide(Action::Deny, MetaTool::Execute, Some(&item), &BTreeSet::new()).verdict {
                Verdict::Allow => Action::Allow,
                Verdict::Deny(_) => Action::Deny,
                Verdict::Ask(_) => Action::RequireApproval,
            };
            prop_assert_eq!(decided, expected);
        }
    }
}
