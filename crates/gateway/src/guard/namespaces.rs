//! Namespaces that patterns name, against those that there are.
//!
//! The name of an upstream is brought into the form of a namespace (`Lab X` becomes `lab-x`), and patterns are compared
//! with that form. A pattern with another spelling would fit nothing: a rule that refuses would let through, and no
//! call would show it. So a configuration with such a pattern is refused, with what it has to say. A wildcard may stand
//! for upstreams that come later; of it only characters that no namespace has are refused.

use std::collections::BTreeMap;

use super::config::GuardConfig;
use super::glob::Glob;
use crate::common::settings::FieldError;
use contextweaver_core::catalog::server_namespace;

impl GuardConfig {
    /// Refuses patterns that can fit nothing because no upstream has the namespace they name. `owners` are the names of
    /// the upstreams by namespace; where there are none the namespaces are a catalog's, of which only the form is known.
    ///
    /// # Errors
    /// The field and what is wrong with it.
    pub(crate) fn check_namespaces(&self, owners: &BTreeMap<String, String>) -> Result<(), FieldError> {
        let alone =
            |place: String, globs: &[Glob]| globs.iter().try_for_each(|glob| check(&place, glob.text(), owners));
        for (number, rule) in self.policy.rules.iter().enumerate() {
            alone(format!("policy.rules[{number}].namespace"), rule.namespace.as_slice())?;
        }
        for (name, profile) in &self.visibility_profiles {
            alone(format!("visibility_profiles.{name}.include_namespaces"), &profile.include_namespaces)?;
            alone(format!("visibility_profiles.{name}.exclude_namespaces"), &profile.exclude_namespaces)?;
        }
        let mut named = self.item_patterns().filter_map(|(place, glob)| Some((place, glob.namespace()?)));
        named.try_for_each(|(place, namespace)| check(&place, namespace, owners))
    }

    /// Every pattern that names items, with the field that it is in.
    pub(super) fn item_patterns(&self) -> impl Iterator<Item = (String, &Glob)> {
        let (policy, limits) = (&self.policy, &self.rate_limits);
        let rules = policy.rules.iter().enumerate();
        let rules = rules.filter_map(|(at, rule)| Some((format!("policy.rules[{at}].tool"), rule.tool.as_ref()?)));
        let tags = policy.tags.iter().flat_map(|(tag, globs)| all(format!("policy.tags.{tag}"), globs));
        let read_only = all("policy.read_only".to_owned(), &policy.read_only);
        let destructive = all("policy.destructive".to_owned(), &policy.destructive);
        let profiles = self.visibility_profiles.iter().flat_map(|(name, profile)| {
            let place = |field: &str| format!("visibility_profiles.{name}.{field}");
            let included = all(place("include_tools"), &profile.include_tools);
            included.chain(all(place("exclude_tools"), &profile.exclude_tools))
        });
        rules
            .chain(tags)
            .chain(read_only)
            .chain(destructive)
            .chain(all("policy.tools".to_owned(), policy.tools.keys()))
            .chain(profiles)
            .chain(all("rate_limits.per_tool".to_owned(), limits.per_tool.keys()))
            .chain(all("cache.allow".to_owned(), &self.cache.allow))
    }
}

fn all<'g>(place: String, globs: impl IntoIterator<Item = &'g Glob>) -> impl Iterator<Item = (String, &'g Glob)> {
    globs.into_iter().map(move |glob| (place.clone(), glob))
}

fn check(place: &str, namespace: &str, owners: &BTreeMap<String, String>) -> Result<(), FieldError> {
    let complain = |reason: String| Err(FieldError::new(place, reason));
    if namespace.contains(['*', '?']) {
        let fits = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-' | '*' | '?');
        let begins = namespace.starts_with(|c: char| c.is_ascii_lowercase() || matches!(c, '*' | '?'));
        if begins && namespace.chars().all(fits) {
            return Ok(());
        }
        return complain(format!(
            "`{namespace}` cannot match any namespace: namespaces consist of lower-case letters, digits, `_` and `-`, \
             and begin with a letter; a pattern for names or addresses with a colon begins with `*:`"
        ));
    }
    let canonical = server_namespace(namespace);
    if canonical == namespace && (owners.is_empty() || owners.contains_key(namespace)) {
        return Ok(());
    }
    let of_that_name = owners.iter().find(|(_, name)| *name == namespace).map(|(own, _)| own);
    let meant = of_that_name.or_else(|| owners.get_key_value(&canonical).map(|(own, _)| own));
    complain(match meant {
        Some(own) => {
            format!("no upstream has the namespace `{namespace}`; the tools of `{namespace}` are in `{own}`")
        }
        None if owners.is_empty() => {
            format!("`{namespace}` is not a namespace; the tools of a server of that name are in `{canonical}`")
        }
        None => {
            let known = owners.keys().map(String::as_str).collect::<Vec<_>>().join("`, `");
            format!("no upstream has the namespace `{namespace}`; there are `{known}`")
        }
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::GatewayConfig;

    fn complaint(text: &str) -> Option<String> {
        GatewayConfig::parse(text, Path::new("/"), &|_| None).err().map(|error| error.to_string())
    }

    #[test]
    fn a_pattern_of_no_upstreams_namespace_is_refused() {
        let upstreams =
            "upstreams: {GitHub: {command: x}, 'Lab X': {command: x}, gh: {command: x, namespace: 360 Learning}}";
        for (guard, expected) in [
            (
                "policy: {rules: [{action: deny, namespace: GitHub}]}",
                "policy.rules[0].namespace: no upstream has the \
              namespace `GitHub`; the tools of `GitHub` are in `github`",
            ),
            ("policy: {rules: [{action: deny, tool: 'Lab X:*'}]}", "the tools of `Lab X` are in `lab-x`"),
            ("policy: {rules: [{action: deny, tool: 'resource::GitHub:*'}]}", "policy.rules[0].tool: no upstream"),
            ("policy: {rules: [{action: deny, namespace: gh}]}", "the tools of `gh` are in `mcp-360-learning`"),
            ("policy: {rules: [{action: deny, namespace: githob}]}", "`githob`; there are `github`, `lab-x`, `mcp-360"),
            ("policy: {rules: [{action: deny, tool: '*Hub:*'}]}", "`*Hub` cannot match any namespace"),
            ("policy: {rules: [{action: deny, namespace: '360*'}]}", "`360*` cannot match any namespace"),
            ("policy: {tags: {t: ['GitHub:a']}}", "policy.tags.t: "),
            ("policy: {read_only: ['GitHub:a']}", "policy.read_only: "),
            ("policy: {destructive: ['GitHub:a']}", "policy.destructive: "),
            ("policy: {tools: {'GitHub:a': {requires_approval: true}}}", "policy.tools: "),
            ("visibility_profiles: {p: {include_namespaces: [GitHub]}}", "visibility_profiles.p.include_namespaces: "),
            ("visibility_profiles: {p: {exclude_namespaces: [GitHub]}}", "visibility_profiles.p.exclude_namespaces: "),
            ("visibility_profiles: {p: {include_tools: ['GitHub:a']}}", "visibility_profiles.p.include_tools: "),
            ("visibility_profiles: {p: {exclude_tools: ['GitHub:a']}}", "visibility_profiles.p.exclude_tools: "),
            ("rate_limits: {per_tool: {'GitHub:a': {max_calls_per_minute: 1}}}", "rate_limits.per_tool: "),
            ("cache: {allow: ['GitHub:a']}", "cache.allow: "),
        ] {
            let found = complaint(&format!("{{{upstreams}, {guard}}}")).unwrap_or_default();
            assert!(found.contains(expected), "{guard}: {found}");
        }
        for guard in [
            "policy: {rules: [{action: deny, namespace: github}, {action: deny, tool: 'lab-x:*'}]}",
            "policy: {rules: [{action: deny, namespace: 'internal-*'}, {action: deny, tool: '*:Fs:etc/*'}]}",
            "policy: {rules: [{action: deny, tool: 'resource:*'}, {action: deny, tool: 'prompt::github:a'}]}",
            "policy: {rules: [{action: deny, tool: 'GitHub*'}, {action: deny, tool: deleteAll}]}",
        ] {
            assert_eq!(complaint(&format!("{{{upstreams}, {guard}}}")), None, "{guard}");
        }
    }

    #[test]
    fn of_a_catalogs_namespaces_the_form_is_known() {
        let rule = |namespace: &str| {
            complaint(&format!("{{catalog: c.json, policy: {{rules: [{{action: deny, namespace: {namespace}}}]}}}}"))
        };
        assert!(rule("GitHub").unwrap().contains("are in `github`"));
        assert_eq!(rule("github"), None);
    }
}
