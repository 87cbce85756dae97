//! A client's file as it is shown: without its secrets, and otherwise as it is.
//!
//! What stands under `env`, `headers` and the like is covered by its place, whether its server was imported or not. Everything else
//! is covered as in a configuration ([`Cover`]). Covered values are found by where they stand in the text, so that it does not matter
//! how they are written.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::client_edit::{Form, read};
use super::clients::Place;
use super::cover::Cover;
use super::references::{refers, replaced};
use super::text_parts::{Part, What, parts};

/// Members of which no value is shown, in the letters of `is_secret_place`.
const SECRET_PLACES: [&str; 12] = [
    "env",
    "envs",
    "environment",
    "headers",
    "httpheaders",
    "auth",
    "oauth",
    "authentication",
    "authorization",
    "credentials",
    "secrets",
    "cookies",
];

/// What stands in place of a value.
const SIGN: &str = "***";

/// The text of the file at `place` without secrets, those of `values` among them; `None` where it cannot be told what is one.
#[must_use]
pub fn without_secrets(place: &Place, text: &str, values: &BTreeMap<String, String>) -> Option<String> {
    covered(place.form(), text, values)
}

fn covered(form: Form, text: &str, values: &BTreeMap<String, String>) -> Option<String> {
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    let tree = read(form, bare).ok()?;
    if bare.trim().is_empty() {
        return Some(text.to_owned());
    }
    let root = parts(form, bare)?;
    let mut cover = Cover::default();
    for value in values.values().filter(|value| !refers(value)) {
        cover.note(value, SIGN.to_owned());
    }
    // What is found late may stand early too.
    let folder = Path::new("/");
    let _ = cover.configuration(&tree, folder, true);
    let shown = cover.configuration(&tree, folder, true);
    let mut hidden = Vec::new();
    hide(&root, Some(&tree), Some(&shown), false, &cover, &mut hidden);
    hidden.sort_by_key(|range| range.start);
    let mut done = String::new();
    let mut from = 0;
    for range in hidden {
        // A text of several lines may end with the space before what follows.
        let end = range.start + bare.get(range.clone())?.trim_end().len();
        let range = range.start..end;
        if range.is_empty() || range.start < from {
            continue;
        }
        done.push_str(&outside(bare.get(from..range.start)?, &cover));
        let value = bare.get(range.clone())?;
        let is_quoted = form == Form::Json || value.starts_with(['"', '\'']);
        done.push_str(&if is_quoted { format!("\"{SIGN}\"") } else { SIGN.to_owned() });
        from = range.end;
    }
    done.push_str(&outside(bare.get(from..)?, &cover));
    Some(done)
}

/// Comments may hold what was a value once.
fn outside(text: &str, cover: &Cover) -> String {
    if !text.contains(['#', '/']) {
        return text.to_owned();
    }
    let lines = text.split_inclusive('\n').map(|line| match line.contains(['#', '/']) {
        true => cover.text(line),
        false => line.to_owned(),
    });
    lines.collect()
}

/// Collects where values stand that are not shown. `tree` is what stands there, and `shown` what a configuration would show of it.
fn hide(
    part: &Part,
    tree: Option<&Value>,
    shown: Option<&Value>,
    is_secret: bool,
    cover: &Cover,
    hidden: &mut Vec<std::ops::Range<usize>>,
) {
    match &part.what {
        What::Scalar => {
            let is_shown = match tree {
                _ if is_secret => tree.is_some_and(says_nothing),
                Some(_) => tree == shown || tree.is_some_and(says_nothing),
                None => false,
            };
            if !is_shown {
                hidden.push(part.span.clone());
            }
        }
        What::List(items) => {
            for (at, item) in items.iter().enumerate() {
                let (tree, shown) = (tree.and_then(|tree| tree.get(at)), shown.and_then(|shown| shown.get(at)));
                hide(item, tree, shown, is_secret, cover, hidden);
            }
        }
        What::Members { members, .. } => {
            for member in members {
                let name = member.name.as_str();
                let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
                let is_place = SECRET_PLACES.contains(&letters.to_ascii_lowercase().as_str());
                // Of two with one name only the last is known.
                let is_known = members.iter().filter(|other| other.name == name).nth(1).is_none();
                let (tree, shown) = (tree.and_then(|tree| tree.get(name)), shown.and_then(|shown| shown.get(name)));
                hide(&member.value, tree, shown, is_secret || is_place || !is_known, cover, hidden);
                if let Some(key) = member.key.clone().filter(|_| cover.text(name) != name) {
                    hidden.push(key);
                }
            }
        }
    }
}

/// Whether a value is none that could be a secret: a reference alone, a switch, nothing.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::String(text) => {
            let text = text.replace("{env:", "${env:").replace("$${env:", "${env:");
            let rest = replaced(&text, &mut |inner| inner.split_once(":-").map_or("", |(_, value)| value).to_owned());
            let bare = ["Bearer", "Basic", "Token"].iter().find_map(|kind| rest.strip_prefix(kind)).unwrap_or(&rest);
            bare.trim().is_empty()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_clients_file_no_secret_is_shown_whatever_it_is_written_in() {
        let cases = [
            (
                Form::Json,
                "{\n  // was s3cret-known once\n  \"mcpServers\": {\n    \"off\": {\"command\": \"off\", \"disabled\": true, \"env\": {\"T\": \"hunter\", \"P\": 77}},\n    \
                 \"b\": {\"url\": \"https://b.example/mcp\", \"auth\": {\"CLIENT_SECRET\": \"plain\", \"scopes\": [\"wide\"]}},\n    \
                 \"c\": {\"args\": [\"--token\", \"hunter\", \"s3cret-known\"], \"headers\": {\"A\": \"abc\\/S3cret\", \"B\": \"Bearer ${env:B}\", \"C\": \"${C:-hunter}\"}}\n  },\n  \"theme\": \"dark\",\n}\n",
                "{\n  // was *** once\n  \"mcpServers\": {\n    \"off\": {\"command\": \"off\", \"disabled\": true, \"env\": {\"T\": \"***\", \"P\": \"***\"}},\n    \
                 \"b\": {\"url\": \"https://b.example/mcp\", \"auth\": {\"CLIENT_SECRET\": \"***\", \"scopes\": [\"***\"]}},\n    \
                 \"c\": {\"args\": [\"--token\", \"***\", \"***\"], \"headers\": {\"A\": \"***\", \"B\": \"Bearer ${env:B}\", \"C\": \"***\"}}\n  },\n  \"theme\": \"dark\",\n}\n",
            ),
            (
                Form::Toml,
                "# mine\n[mcp_servers.a]\ncommand = 'npx'\n[mcp_servers.a.env]\nT = 'p\\w\"Secret9'\nU = \"\"\"\nhunter\n\"\"\"\n[mcp_servers.b]\nhttp_headers = {A = \"hunter\"}\nurl = \"https://b.example/mcp\"\n",
                "# mine\n[mcp_servers.a]\ncommand = 'npx'\n[mcp_servers.a.env]\nT = \"***\"\nU = \"***\"\n[mcp_servers.b]\nhttp_headers = {A = \"***\"}\nurl = \"https://b.example/mcp\"\n",
            ),
            (
                Form::Yaml,
                "extensions:\n  # off\n  a:\n    cmd: npx\n    envs:\n      T: hunter two # why\n      U: |\n        one\n        two\n      V: [x, 'y']\n    timeout: 300\nkey: word\n",
                "extensions:\n  # off\n  a:\n    cmd: npx\n    envs:\n      T: *** # why\n      U: |\n        ***\n      V: [***, \"***\"]\n    timeout: 300\nkey: ***\n",
            ),
        ];
        let known = BTreeMap::from([("K".to_owned(), "s3cret-known".to_owned())]);
        for (form, text, expected) in cases {
            assert_eq!(covered(form, text, &known).as_deref(), Some(expected));
        }
        assert_eq!(covered(Form::Json, "{", &known), None);
    }
}
