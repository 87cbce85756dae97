//! Which namespace a server or a tool name gets.
//!
//! The configured server name decides; without one, a prefix of the tool's name is used. Real server names hold
//! capitals, spaces, dots and slashes, so they are converted to the grammar here. When that makes two servers equal, a
//! hash of their own names tells them apart: no order of servers or files changes a namespace.

use std::collections::{BTreeMap, BTreeSet};

use super::tool_id::{MAX_NAMESPACE, is_namespace, short_sha256};

/// The namespace of tools whose server is unknown.
pub const FALLBACK_NAMESPACE: &str = "mcp";

/// A tool's name split by the inference rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inferred<'n> {
    /// The part that names the server, as written: what [`server_namespace`] takes.
    pub prefix: &'n str,
    /// The name without a prefix that `.` or `/` separates; the whole name otherwise.
    pub rest: &'n str,
}

/// Infers the server from the name of a tool: what is before the first `.`, else before the first `/`, else the
/// first of at least three `_` segments, else [`FALLBACK_NAMESPACE`]. Empty parts infer nothing.
#[must_use]
pub fn infer_namespace(name: &str) -> Inferred<'_> {
    for separator in ['.', '/'] {
        match name.split_once(separator) {
            Some((prefix, rest)) if !prefix.is_empty() && !rest.is_empty() => return Inferred { prefix, rest },
            _ => {}
        }
    }
    match name.split_once('_') {
        Some((prefix, rest)) if !prefix.is_empty() && rest.contains('_') => Inferred { prefix, rest: name },
        _ => Inferred { prefix: FALLBACK_NAMESPACE, rest: name },
    }
}

/// A server name within the namespace grammar: lower case, every run of other characters one `-`, none at the
/// ends, `mcp-` before what does not begin with a letter, cut at 64 characters. Two names may become one; see
/// [`assign_namespaces`].
#[must_use]
pub fn server_namespace(server: &str) -> String {
    if is_namespace(server) {
        return server.to_owned();
    }
    let mut namespace = String::with_capacity(server.len().min(MAX_NAMESPACE));
    for character in server.chars().map(|character| character.to_ascii_lowercase()) {
        match character {
            'a'..='z' | '0'..='9' | '_' => namespace.push(character),
            _ if namespace.is_empty() || namespace.ends_with('-') => {}
            _ => namespace.push('-'),
        }
        if namespace.len() > MAX_NAMESPACE {
            break;
        }
    }
    if !namespace.starts_with(|first: char| first.is_ascii_lowercase()) {
        namespace.insert(0, '-');
        namespace.insert_str(0, FALLBACK_NAMESPACE);
    }
    cut(&mut namespace, MAX_NAMESPACE);
    namespace
}

/// Cuts a namespace to at most `length` characters that do not end in `-`.
fn cut(namespace: &mut String, length: usize) {
    namespace.truncate(length);
    namespace.truncate(namespace.trim_end_matches('-').len());
}

/// Hexadecimal digits of the hash that tells apart servers of one namespace. More than the first step is needed
/// only when the short hashes of two such servers are equal as well.
const SUFFIX_DIGITS: [usize; 5] = [0, 4, 8, 16, 32];

/// The namespace of every server name of one catalog, all different. Names that would share one get `-` and
/// digits of the SHA-256 of the name, unless the name is the namespace already.
#[must_use]
pub fn assign_namespaces(servers: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut steps: BTreeMap<&String, usize> = servers.iter().map(|server| (server, 0)).collect();
    loop {
        let assigned: BTreeMap<String, String> =
            steps.iter().map(|(server, step)| ((*server).clone(), suffixed(server, SUFFIX_DIGITS[*step]))).collect();
        let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
        for namespace in assigned.values() {
            *owners.entry(namespace).or_default() += 1;
        }
        let mut changed = false;
        for (server, step) in &mut steps {
            let namespace = &assigned[*server];
            if owners[namespace.as_str()] > 1 && namespace != *server && *step + 1 < SUFFIX_DIGITS.len() {
                *step += 1;
                changed = true;
            }
        }
        if !changed {
            return assigned;
        }
    }
}

fn suffixed(server: &str, digits: usize) -> String {
    let mut namespace = server_namespace(server);
    if digits > 0 {
        cut(&mut namespace, MAX_NAMESPACE - 1 - digits);
        namespace.push('-');
        namespace.push_str(&short_sha256(server, digits));
    }
    namespace
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_rule_of_inference() {
        for (name, prefix, rest) in [
            ("github.create_issue", "github", "create_issue"),
            ("admin.audit.export", "admin", "audit.export"),
            ("files/read", "files", "read"),
            ("a/b.c", "a/b", "c"),
            ("slack_send_message", "slack", "slack_send_message"),
            ("read_file", "mcp", "read_file"),
            ("GitHub.X", "GitHub", "X"),
            ("_a_b", "mcp", "_a_b"),
            (".hidden", "mcp", ".hidden"),
            ("ends.", "mcp", "ends."),
            ("/v1/users", "mcp", "/v1/users"),
            ("", "mcp", ""),
        ] {
            assert_eq!(infer_namespace(name), Inferred { prefix, rest }, "{name}");
        }
    }

    #[test]
    fn server_names_become_namespaces() {
        for (server, namespace) in [
            ("github", "github"),
            ("a--b-", "a--b-"),
            ("Google Analytics MCP Server", "google-analytics-mcp-server"),
            ("@cyanheads/git-mcp-server", "cyanheads-git-mcp-server"),
            ("awslabs.cloudwatch.-x ", "awslabs-cloudwatch-x"),
            ("monday.com", "monday-com"),
            ("360 Learning", "mcp-360-learning"),
            ("_x", "mcp-_x"),
            ("日本", "mcp"),
            ("", "mcp"),
        ] {
            assert_eq!(server_namespace(server), namespace, "{server}");
        }
        assert_eq!(server_namespace(&format!("{} y", "X".repeat(63))), "x".repeat(63));
    }

    fn assigned(servers: &[&str]) -> String {
        let servers = servers.iter().map(|server| (*server).to_owned()).collect();
        let pairs = assign_namespaces(&servers);
        pairs.iter().map(|(server, namespace)| format!("{server} -> {namespace}\n")).collect()
    }

    #[test]
    fn servers_of_one_namespace_are_told_apart() {
        insta::assert_snapshot!(assigned(&["GitHub", "github", "git hub", "Slack"]), @r"
        GitHub -> github-f911
        Slack -> slack
        git hub -> git-hub
        github -> github
        ");
        insta::assert_snapshot!(assigned(&["A b", "a B"]), @r"
        A b -> a-b-a760
        a B -> a-b-26a4
        ");
    }

    #[test]
    fn equal_short_hashes_get_longer_ones() {
        // Names that differ in case only and whose SHA-256 begin with the same four digits.
        let variants: Vec<String> = (0u32..2048).map(case_variant).collect();
        let mut by_hash: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for variant in &variants {
            by_hash.entry(short_sha256(variant, 4)).or_default().push(variant);
        }
        let twins = by_hash.into_values().find(|twins| twins.len() > 1).unwrap();
        let pairs = assign_namespaces(&twins.iter().map(|twin| (*twin).to_owned()).collect());
        assert!(pairs.values().all(|namespace| namespace.len() == "abcdefghijkl-".len() + 8), "{pairs:?}");
    }

    fn case_variant(bits: u32) -> String {
        let letters = "Abcdefghijkl".char_indices();
        letters.map(|(i, c)| if i > 0 && bits >> (i - 1) & 1 == 1 { c.to_ascii_uppercase() } else { c }).collect()
    }

    proptest! {
        #[test]
        fn every_server_name_becomes_a_namespace(server in any::<String>()) {
            prop_assert!(is_namespace(&server_namespace(&server)));
        }

        #[test]
        fn namespaces_are_distinct_and_valid(
            servers in proptest::collection::btree_set("[aA][bB]?[ .]?[cC]?|[a-c]{60,70}|\\PC{0,3}", 0..24),
        ) {
            let pairs = assign_namespaces(&servers);
            let distinct: BTreeSet<&String> = pairs.values().collect();
            prop_assert_eq!(distinct.len(), servers.len());
            prop_assert!(pairs.values().all(|namespace| is_namespace(namespace)));
            prop_assert!(pairs.iter().all(|(server, namespace)| !is_namespace(server) || server == namespace));
        }
    }
}
