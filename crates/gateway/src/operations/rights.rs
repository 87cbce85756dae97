//! What callers may do: which tools each visibility profile shows, and what the policy makes of calls of them.

use serde::Serialize;

use crate::guard::config::GuardConfig;
use crate::guard::policy::{Action, PolicyConfig};
use crate::server::gateway::Gateway;

/// What the callers of one profile may do with the tools that are served, by their ids.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Rights {
    /// The profile; `None` for callers without one.
    pub profile: Option<String>,
    /// Whether callers that name no profile have it.
    pub is_default: bool,
    /// Tools that may be called.
    pub allowed: Vec<String>,
    /// Tools of which a person must approve each call.
    pub approved: Vec<String>,
    /// Tools that are shown, and of which calls are refused.
    pub refused: Vec<String>,
    /// Tools that do not exist for these callers.
    pub hidden: Vec<String>,
}

impl Rights {
    /// Those of each profile, and of callers without one; none where the configuration has neither a policy nor profiles.
    #[must_use]
    pub fn of(gateway: &Gateway) -> Vec<Self> {
        let GuardConfig { policy, visibility_profiles, visibility_profile: default, .. } = &gateway.config().guards;
        if *policy == PolicyConfig::default() && visibility_profiles.is_empty() {
            return Vec::new();
        }
        let view = gateway.catalog();
        let tools = view.tools.as_ref().map_or(&[][..], |shelf| shelf.router.catalog().items());
        let unnamed = default.is_none().then_some((None, None));
        let named = visibility_profiles.iter().map(|(name, profile)| (Some(name), Some(profile)));
        let rights = unnamed.into_iter().chain(named).map(|(name, profile)| {
            let mut rights = Self { profile: name.cloned(), is_default: name == default.as_ref(), ..Self::default() };
            for tool in tools {
                let is_hidden = profile.is_some_and(|profile| !policy.shows(profile, tool));
                let list = match policy.action(profile, tool) {
                    _ if is_hidden => &mut rights.hidden,
                    Action::Allow => &mut rights.allowed,
                    Action::RequireApproval => &mut rights.approved,
                    Action::Deny => &mut rights.refused,
                };
                list.push(tool.id.clone());
            }
            rights
        });
        rights.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::GatewayConfig;

    #[tokio::test]
    async fn each_profile_has_its_rights() {
        let folder = tempfile::tempdir().unwrap();
        let tools = r#"{"server": "shop", "tools": [{"name": "buy"}, {"name": "drop"}, {"name": "price"}]}"#;
        std::fs::write(folder.path().join("tools.json"), tools).unwrap();
        let path = folder.path().join("gateway.yaml");
        let rights = async |more: &str| {
            std::fs::write(&path, format!("{{catalog: tools.json{more}}}")).unwrap();
            let config = GatewayConfig::load(&path).unwrap();
            let gateway = Gateway::start(config.for_a_look()).await.unwrap();
            let names = |ids: &[String]| {
                let names: Vec<&str> = ids.iter().filter_map(|id| id.split([':', '#']).nth(1)).collect();
                if names.is_empty() { "-".to_owned() } else { names.join(" ") }
            };
            let line = |rights: &Rights| {
                let Rights { profile, is_default, allowed, approved, refused, hidden } = rights;
                let lists = [allowed, approved, refused, hidden].map(|ids| names(ids)).join(" | ");
                format!("{} {is_default}: {lists}\n", profile.as_deref().unwrap_or("-"))
            };
            Rights::of(&gateway).iter().map(line).collect::<String>()
        };
        assert_eq!(rights("").await, "");
        assert_eq!(rights(", policy_preset: safe").await, "- true: - | buy drop price | - | -\n");
        let policy = ", policy: {rules: [{action: deny, tool: drop}, {action: require_approval, tool: buy}], \
                      tools: {price: {required_scopes: [look]}}}";
        let profiles = ", visibility_profiles: {clerk: {scopes: [look]}, guest: {exclude_tools: [drop]}}";
        insta::assert_snapshot!(rights(&format!("{policy}{profiles}")).await, @r"
        - true: - | buy | drop price | -
        clerk false: price | buy | drop | -
        guest false: - | buy | price | drop
        ");
        let default = rights(&format!("{profiles}, visibility_profile: guest")).await;
        assert_eq!(default, "clerk false: buy drop price | - | - | -\nguest true: buy price | - | - | drop\n");
    }
}
