//! Who may call what: rules, scopes, visibility and approvals.
//!
//! Rules are tried in their order and the first that fits decides; what none fits, the default decides. What a server
//! says of its own tools is trusted for none of it: tags and side effects are those of the operator's own lists, and a
//! tool that is on no list counts as one that changes something.
//!
//! A caller is shown what its profile shows; the rest does not exist for it. An approval is asked of the person at the
//! client, by elicitation; where that cannot be, it counts as refused. How that goes in the stateless protocol is the
//! matter of `consent`.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::glob::Glob;
use super::limits::Quota;
use super::sanitize::SanitizeConfig;
use crate::catalog::SelectableItem;
use crate::gateway::error::{Code, GatewayError};
use crate::gateway::session::Caller;
use crate::gateway::surface::MetaTool;
use crate::gateway::wire::Raw;
use crate::gateway::written::read;
use crate::store::redact;

/// What is decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is made.
    #[default]
    Allow,
    /// It is refused.
    Deny,
    /// It is made when a person approves it.
    RequireApproval,
}

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

/// How bad it is when what a tool returns gets into wrong hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSensitivity {
    /// Not bad.
    #[default]
    Low,
    /// Bad.
    Medium,
    /// Very bad: results are never kept in the cache.
    High,
}

/// A rule. It fits a call that meets every condition it has; without conditions, every call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What it decides.
    pub action: Action,
    /// The meta-tool. Without it the rule is about calls of tools, resources and prompts, and not about browsing.
    #[serde(default)]
    pub meta_tool: Option<Glob>,
    /// The namespace.
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
    /// How bad it is when what the tool returns gets into wrong hands.
    pub sensitivity: ToolSensitivity,
    /// Calls of a caller within any sixty seconds.
    pub rate_limit: Option<NonZeroU32>,
    /// Whether a person must approve each call.
    pub requires_approval: bool,
}

impl ToolPolicy {
    /// What both demand.
    fn and(mut self, other: &Self) -> Self {
        self.required_scopes.extend(other.required_scopes.iter().cloned());
        self.required_scopes.sort_unstable();
        self.required_scopes.dedup();
        self.sensitivity = self.sensitivity.max(other.sensitivity);
        self.rate_limit = match (self.rate_limit, other.rate_limit) {
            (Some(left), Some(right)) => Some(left.min(right)),
            (left, right) => left.or(right),
        };
        self.requires_approval |= other.requires_approval;
        self
    }

    pub(super) fn quota(&self) -> Quota {
        self.rate_limit.map(Quota::per_minute).unwrap_or_default()
    }
}

/// Who may call what.
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

/// What was decided about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gateway) enum Verdict {
    /// It is made.
    Allow,
    /// It is refused, and why.
    Deny(String),
    /// A person is to approve it, and why.
    Ask(String),
}

impl Verdict {
    /// The stricter of two; this one of equals.
    pub(super) fn or_stricter(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Allow, _) | (Self::Ask(_), Self::Deny(_)) => other,
            _ => self,
        }
    }
}

impl PolicyConfig {
    /// Adds what the file of tools says. It holds a mapping from tools to policies, or that under `tools`.
    pub(super) fn read_tools(&mut self, folder: &Path) -> Result<(), String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Under {
            tools: BTreeMap<Glob, ToolPolicy>,
        }
        let Some(path) = self.tools_file.as_ref().map(|path| folder.join(path)) else { return Ok(()) };
        let place = |reason: String| format!("policy.tools_file: {}: {reason}", path.display());
        let text = std::fs::read_to_string(&path).map_err(|error| place(error.to_string()))?;
        let bare = |_| read::<BTreeMap<Glob, ToolPolicy>>(&text);
        let under = read::<Under>(&text).map(|under| under.tools);
        let more = under.or_else(bare).map_err(place)?;
        for (glob, policy) in more {
            let merged = self.tools.remove(&glob).unwrap_or_default().and(&policy);
            self.tools.insert(glob, merged);
        }
        Ok(())
    }

    /// What is wrong with it: a name that nothing has would silently decide nothing.
    pub(super) fn check(&self) -> Result<(), String> {
        for (number, rule) in self.rules.iter().enumerate() {
            if let Some(glob) =
                rule.meta_tool.as_ref().filter(|glob| !MetaTool::ALL.iter().any(|tool| glob.matches(tool.name())))
            {
                return Err(format!("policy.rules[{number}].meta_tool: there is no `{glob}`"));
            }
            self.check_tags(&rule.tags, &format!("policy.rules[{number}].tags"))?;
        }
        Ok(())
    }

    pub(super) fn check_tags(&self, tags: &[String], place: &str) -> Result<(), String> {
        match tags.iter().find(|tag| !self.tags.contains_key(*tag)) {
            Some(tag) => Err(format!("{place}: `{tag}` is not in `policy.tags`; list there which tools have it")),
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

    /// Whether a caller of this profile is shown the item.
    pub(super) fn shows(&self, profile: &Visibility, item: &SelectableItem) -> bool {
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
        let is_call = matches!(tool, MetaTool::Execute | MetaTool::ResourceRead | MetaTool::PromptGet);
        let fits_tool = rule.meta_tool.as_ref().map_or(is_call, |glob| glob.matches(tool.name()));
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

    /// What is decided about a call by a caller with these scopes.
    pub(super) fn decide(
        &self,
        default: Action,
        tool: MetaTool,
        item: Option<&SelectableItem>,
        scopes: &BTreeSet<String>,
    ) -> Verdict {
        let rule = self.rules.iter().find(|rule| self.fits(rule, tool, item));
        let is_call = matches!(tool, MetaTool::Execute | MetaTool::ResourceRead | MetaTool::PromptGet);
        let action = rule.map_or(if is_call { default } else { Action::Allow }, |rule| rule.action);
        let reason = rule.map(|rule| rule.reason.as_str()).filter(|reason| !reason.is_empty());
        if action == Action::Deny {
            return Verdict::Deny(reason.unwrap_or("the policy of this gateway refuses it").to_owned());
        }
        let own = item.map(|item| self.of_tool(item)).unwrap_or_default();
        let missing: Vec<&str> =
            own.required_scopes.iter().filter(|scope| !scopes.contains(*scope)).map(String::as_str).collect();
        if !missing.is_empty() {
            return Verdict::Deny(format!("the caller lacks the scope `{}`", missing.join("`, `")));
        }
        if action == Action::RequireApproval || own.requires_approval {
            return Verdict::Ask(
                reason.unwrap_or("the policy of this gateway wants a person to approve it").to_owned(),
            );
        }
        Verdict::Allow
    }
}

fn names(globs: &[Glob], item: &SelectableItem) -> bool {
    globs.iter().any(|glob| glob.names(item))
}

/// Arguments that a person is shown, at most.
const MOST_SHOWN: usize = 20;

/// Characters of a name or value that a person is shown, at most.
const LONGEST_SHOWN: usize = 80;

/// Whether the person at the client can be asked.
pub(super) fn can_ask(caller: &Caller) -> bool {
    let elicitation = caller.client().capabilities.get("elicitation").and_then(Value::as_object);
    // An empty object means forms, as do clients from before there was anything else.
    elicitation.is_some_and(|modes| modes.is_empty() || modes.contains_key("form"))
}

/// The refusal of a call that needs an approval.
pub(super) fn unapproved(item: &SelectableItem, reason: &str, why: &str) -> GatewayError {
    GatewayError::new(Code::ApprovalRequired, format!("{why}: {reason}")).at(&item.id)
}

/// Asks the person at the client; anything but a plain yes is a no.
pub(super) async fn ask(
    caller: &Caller,
    item: &SelectableItem,
    arguments: &Value,
    reason: &str,
) -> Result<(), GatewayError> {
    let params = question(item, arguments, reason);
    match caller.ask("elicitation/create", Some(&Raw::of(&params))).await {
        Ok(answer) => judge(item, reason, &answer),
        Err(error) => Err(unapproved(item, reason, &format!("nobody approved it ({})", error.message))),
    }
}

/// Reads the answer of the person; anything but a plain yes is a no.
pub(super) fn judge(item: &SelectableItem, reason: &str, answer: &Raw) -> Result<(), GatewayError> {
    #[derive(Deserialize)]
    struct Answer {
        action: String,
        #[serde(default)]
        content: Value,
    }
    let answer: Answer =
        answer.read().map_err(|error| unapproved(item, reason, &format!("nobody approved it ({error})")))?;
    match (answer.action.as_str(), answer.content.get("approve")) {
        ("accept", Some(Value::Bool(true))) => Ok(()),
        ("cancel", _) => Err(unapproved(item, reason, "the request for approval was dismissed")),
        _ => Err(unapproved(item, reason, "it was not approved")),
    }
}

pub(super) fn question(item: &SelectableItem, arguments: &Value, reason: &str) -> Value {
    let mut lines = vec![format!("Allow a call of `{}`? {reason}", item.id)];
    let members = arguments.as_object();
    for (name, value) in members.into_iter().flatten().take(MOST_SHOWN) {
        let text = value.as_str().map_or_else(|| value.to_string(), |text| format!("{text:?}"));
        lines.push(format!("{} = {}", shown(name), shown(&text)));
    }
    let more = members.map_or(0, |members| members.len().saturating_sub(MOST_SHOWN));
    if more > 0 {
        lines.push(format!("and {more} more arguments"));
    }
    json!({
        "message": lines.join("\n"),
        "requestedSchema": {
            "type": "object",
            "properties": {"approve": {"type": "boolean", "title": "Allow this call", "default": false}},
            "required": ["approve"],
        },
    })
}

/// A text on one bounded line, without secrets or what could deceive the reader.
fn shown(text: &str) -> String {
    let clean = redact(text).text.into_owned();
    let clean = SanitizeConfig::default().clean(&clean).replace(['\n', '\r', '\t'], " ");
    match clean.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}… ({} characters)", clean.get(..end).unwrap_or_default(), clean.chars().count()),
        None => clean,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use proptest::prelude::*;
    use tokio::sync::mpsc;

    use super::*;
    use crate::gateway::session::{ClientInfo, MODERN_VERSION, Session};
    use crate::gateway::wire::{Message, RpcError};

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
            Verdict::Allow => "allow".to_owned(),
            Verdict::Deny(reason) => format!("deny: {reason}"),
            Verdict::Ask(reason) => format!("ask: {reason}"),
        };
        let items =
            ["fs:delete_me", "fs:read", "fs:write", "fs:format", "fs:invoice", "pay:card", "crm:read", "web:get"];
        let mut lines: Vec<String> =
            items.iter().map(|id| format!("{id} {}", decide(MetaTool::Execute, Some(&tool(id))))).collect();
        lines.push(format!("crm:post {}", decide(MetaTool::Execute, Some(&item_with_tags))));
        lines.push(format!("browse {}", decide(MetaTool::Browse, None)));
        lines.push(format!("view {}", decide(MetaTool::View, None)));
        insta::assert_snapshot!(lines.join("\n"), @r"
        fs:delete_me deny: nothing is deleted here
        fs:read allow
        fs:write allow
        fs:format ask: it cannot be undone
        fs:invoice ask: the policy of this gateway wants a person to approve it
        pay:card ask: the policy of this gateway wants a person to approve it
        crm:read deny: the policy of this gateway refuses it
        web:get deny: the policy of this gateway refuses it
        crm:post deny: the policy of this gateway refuses it
        browse allow
        view deny: the policy of this gateway refuses it
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
            policy.decide(Action::Allow, MetaTool::Execute, Some(&tool(id)), &scopes)
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
        std::fs::write(folder.path().join("tools.yaml"), "web_search: {rate: 10}\n").unwrap();
        let mut policy = policy("tools_file: tools.yaml");
        assert!(policy.read_tools(folder.path()).unwrap_err().contains("tools.yaml"));
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

    fn caller(capabilities: Value, version: &str) -> (Caller, mpsc::Receiver<Bytes>) {
        let (out, messages) = mpsc::channel(8);
        let Value::Object(capabilities) = capabilities else { panic!() };
        let client = ClientInfo { version: version.to_owned(), capabilities, ..ClientInfo::default() };
        (Caller::new(Session::new("s"), client, out), messages)
    }

    #[test]
    fn only_clients_that_can_are_asked() {
        let cases = [
            (json!({"elicitation": {}}), "2025-11-25", true),
            (json!({"elicitation": {"form": {}, "url": {}}}), "2025-11-25", true),
            (json!({"elicitation": {"url": {}}}), "2025-11-25", false),
            (json!({"elicitation": true}), "2025-11-25", false),
            (json!({}), "2025-11-25", false),
            (json!({"elicitation": {}}), MODERN_VERSION, true),
            (json!({}), MODERN_VERSION, false),
        ];
        for (capabilities, version, expected) in cases {
            assert_eq!(can_ask(&caller(capabilities.clone(), version).0), expected, "{capabilities} {version}");
        }
    }

    #[test]
    fn the_question_shows_names_and_shortened_values() {
        let secret = format!("AKIA{}", "IOSFODNN7EXAMPLE");
        let arguments =
            json!({"path": "/etc/x\n\u{1b}[2JApproved by admin", "key": secret, "n": 5, "text": "y".repeat(500)});
        let params = question(&tool("fs:write"), &arguments, "it writes");
        assert!(!params.to_string().contains(&secret));
        let lines: Vec<&str> = params["message"].as_str().unwrap().lines().collect();
        let text = format!("text = \"{}… (502 characters)", "y".repeat(79));
        assert_eq!(
            lines[..2],
            ["Allow a call of `fs:write#00000000`? it writes", r#"path = "/etc/x\n\u{1b}[2JApproved by admin""#]
        );
        assert!(lines[2].starts_with("key = ") && lines[2].contains("[REDACTED: "), "{}", lines[2]);
        assert_eq!(lines[3..], ["n = 5", text.as_str()]);
        let many: serde_json::Map<String, Value> = (0..30).map(|n| (format!("a{n}"), n.into())).collect();
        let message = question(&tool("fs:write"), &Value::Object(many), "")["message"].as_str().unwrap().to_owned();
        assert!(message.ends_with("and 10 more arguments"), "{message}");
    }

    #[test]
    fn only_a_plain_yes_approves() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(ask_with_every_answer());
    }

    async fn ask_with_every_answer() {
        let answers: Vec<(Result<Value, RpcError>, bool)> = vec![
            (Ok(json!({"action": "accept", "content": {"approve": true}})), true),
            (Ok(json!({"action": "accept", "content": {"approve": false}})), false),
            (Ok(json!({"action": "accept", "content": {"approve": "true"}})), false),
            (Ok(json!({"action": "accept", "content": {}})), false),
            (Ok(json!({"action": "accept"})), false),
            (Ok(json!({"action": "decline", "content": {"approve": true}})), false),
            (Ok(json!({"action": "cancel"})), false),
            (Ok(json!([])), false),
            (Err(RpcError::new(-1, "no")), false),
        ];
        for (answer, expected) in answers {
            let (caller, mut messages) = caller(json!({"elicitation": {}}), "2025-11-25");
            let session = Arc::clone(caller.session());
            let shown = format!("{answer:?}");
            let client = tokio::spawn(async move {
                let Message::Request { id, method, .. } = Message::parse(messages.recv().await.unwrap()).unwrap()
                else {
                    panic!()
                };
                assert_eq!(method, "elicitation/create");
                session.answered(&id, answer.map(|answer| Raw::of(&answer)));
            });
            let result = ask(&caller, &tool("fs:write"), &json!({}), "it writes").await;
            client.await.unwrap();
            assert_eq!(result.is_ok(), expected, "{shown}");
            assert!(result.is_ok() || result.unwrap_err().code == Code::ApprovalRequired);
        }
        let (caller, messages) = caller(json!({"elicitation": {}}), "2025-11-25");
        drop(messages);
        assert!(
            ask(&caller, &tool("fs:write"), &json!({}), "").await.is_err(),
            "a client that is gone approves nothing"
        );
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
            let decided = match policy.decide(Action::Deny, MetaTool::Execute, Some(&item), &BTreeSet::new()) {
                Verdict::Allow => Action::Allow,
                Verdict::Deny(_) => Action::Deny,
                Verdict::Ask(_) => Action::RequireApproval,
            };
            prop_assert_eq!(decided, expected);
        }
    }
}
