//! Covers secrets in what an operator gives to somebody else: a configuration, findings, events, what a gateway says.
//!
//! Two things work together. What a configuration holds is shown only where its place or its form says that it is not a secret. And
//! whatever was not shown there, or has a telling name in the environment, is a *value*: it is covered in every other text too,
//! wherever a server or the system repeated it. Values of fewer than [`SHORTEST`] characters are not looked for: they would cover
//! what is not a value.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use super::likely_secrets::{divided, is_harmless, is_secret_name, is_short_secret, is_user_flag};
use crate::common::masks::LARGEST_SECRET;
use crate::common::settings::Reference;
use contextweaver_context::store::redact;
use contextweaver_core::text::percent_encoded;

/// Characters of a value that is covered, at least.
const SHORTEST: usize = 4;

/// Characters of a value that is looked for in other encodings and by its beginning, at least.
const LONG: usize = 8;

/// Entries of a list that are shown, at most.
const MOST_ENTRIES: usize = 1000;

/// Characters of a text that are shown, at most.
const LONGEST_TEXT: usize = 4000;

/// What stands in place of a value that has no name.
const REMOVED: &str = "(removed)";

/// Maps of which only the names are shown.
const NAMES_ALONE: [&str; 2] = ["env", "headers"];

/// The values that are covered, each with what stands in its place.
#[derive(Clone, Default)]
pub(super) struct Cover {
    values: BTreeMap<String, String>,
    /// The values, the longest first: one may be a part of another.
    order: Vec<String>,
}

impl std::fmt::Debug for Cover {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cover").field("values", &self.values.len()).finish()
    }
}

impl Cover {
    /// How many values are covered.
    pub(super) fn count(&self) -> usize {
        self.order.len()
    }

    /// From now on `value` is covered by `sign`. What was noted first keeps its sign.
    pub(super) fn note(&mut self, value: &str, sign: String) {
        let value = value.trim();
        if value.chars().count() < SHORTEST || self.values.contains_key(value) {
            return;
        }
        let at = self.order.partition_point(|other| other.len() >= value.len());
        self.order.insert(at, value.to_owned());
        self.values.insert(value.to_owned(), sign);
    }

    /// Notes the value of a variable of an environment.
    pub(super) fn note_variable(&mut self, name: &str, value: &str) {
        self.note(value, format!("${{env:{name}}}"));
    }

    /// Notes what a file with a secret holds; one that cannot be read holds nothing.
    pub(super) fn note_file(&mut self, path: &Path) {
        use std::io::Read;
        let mut text = String::new();
        let read = std::fs::File::open(path).and_then(|file| {
            let is_file = file.metadata()?.is_file();
            if is_file { file.take(LARGEST_SECRET).read_to_string(&mut text) } else { Ok(0) }
        });
        if read.is_ok() {
            let text = text.trim_start_matches('\u{feff}');
            self.note(text, REMOVED.to_owned());
            text.lines().for_each(|line| self.note(line, REMOVED.to_owned()));
        }
    }

    /// Notes what the files hold that texts of a configuration refer to by `${file:PATH}`.
    fn note_files_of(&mut self, tree: &Value, folder: &Path) {
        match tree {
            Value::String(text) => {
                let mut rest = text.as_str();
                while let Ok(Some((_, reference, after))) = Reference::first(rest) {
                    if let Reference::File(path) = reference {
                        self.note_file(&folder.join(path));
                    }
                    rest = after;
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.note_files_of(item, folder)),
            Value::Object(members) => members.values().for_each(|value| self.note_files_of(value, folder)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The text without any value, and without what has the form of a secret.
    pub(super) fn text(&self, text: &str) -> String {
        let mut covered = text.to_owned();
        for value in &self.order {
            let Some(sign) = self.values.get(value) else { continue };
            if covered.contains(value.as_str()) {
                covered = covered.replace(value.as_str(), sign);
            }
            // A message that was cut off may end in the middle of a value.
            let starts = value.char_indices().map(|(at, _)| at).filter(|at| *at >= LONG).rev();
            if let Some(start) = starts.filter_map(|at| value.get(..at)).find(|start| covered.ends_with(start)) {
                covered.truncate(covered.len() - start.len());
                covered.push_str(sign);
            }
        }
        let mut clean = redact(&covered).text.into_owned();
        if let Some((at, _)) = clean.char_indices().nth(LONGEST_TEXT) {
            clean.truncate(at);
            clean.push('…');
        }
        clean
    }

    /// The value with every text in it covered, names too, and long lists cut off.
    pub(super) fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => {
                let mut covered: Vec<Value> = items.iter().take(MOST_ENTRIES).map(|item| self.value(item)).collect();
                if items.len() > MOST_ENTRIES {
                    covered.push(format!("… and {} more", items.len() - MOST_ENTRIES).into());
                }
                covered.into()
            }
            Value::Object(members) => {
                let covered = members.iter().map(|(name, value)| (self.text(name), self.value(value)));
                Value::Object(covered.collect())
            }
            other => other.clone(),
        }
    }

    /// Whether a text holds a long value, as it is or as JSON, addresses or base64 write it.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.order.iter().filter(|value| value.chars().count() >= LONG).any(|value| {
            let json = Value::from(value.as_str()).to_string();
            let json = json.trim_matches('"');
            let bytes = value.as_bytes();
            text.contains(value.as_str())
                || text.contains(json)
                || text.contains(&percent_encoded(bytes, b""))
                || text.contains(base64(bytes).trim_end_matches('='))
        })
    }

    /// A configuration as it is shown. What is not shown is noted; paths of files with secrets are below `folder`. Of one that
    /// is not `accepted`, where a field may be anything, only the names and numbers are shown.
    pub(super) fn configuration(&mut self, tree: &Value, folder: &Path, accepted: bool) -> Value {
        self.note_files_of(tree, folder);
        self.section(tree, folder, accepted)
    }

    fn section(&mut self, tree: &Value, folder: &Path, accepted: bool) -> Value {
        match tree {
            Value::Object(members) => {
                let shown = members.iter().map(|(name, value)| {
                    let shown = self.field(name, value, folder, accepted);
                    (self.text(name), shown)
                });
                Value::Object(shown.collect::<Map<_, _>>())
            }
            other => self.field("", other, folder, accepted),
        }
    }

    fn field(&mut self, name: &str, value: &Value, folder: &Path, accepted: bool) -> Value {
        match value {
            Value::Object(members) if NAMES_ALONE.contains(&name) => {
                let hidden = members.iter().map(|(name, value)| {
                    let hidden = self.hide(name, value);
                    (name.clone(), hidden)
                });
                Value::Object(hidden.collect::<Map<_, _>>())
            }
            Value::Object(_) => self.section(value, folder, accepted),
            Value::Array(items) if name == "args" && accepted => self.arguments(items),
            Value::Array(items) => items.iter().map(|item| self.field(name, item, folder, accepted)).collect(),
            Value::String(text) if !accepted => self.hide(name, &text.as_str().into()),
            Value::String(text) if is_secret_name(name) && name.ends_with("_file") => {
                self.note_file(&folder.join(text));
                self.text(text).into()
            }
            Value::String(text) if text.contains("://") => self.address(text).into(),
            Value::String(_) if is_secret_name(name) => self.hide(name, value),
            Value::String(text) if name == "command" && divided(text).is_some() => {
                divided(text).into_iter().for_each(|(_, secret)| self.note_word(secret));
                self.hide(name, value)
            }
            Value::String(text) => self.text(text).into(),
            Value::Number(_) if is_secret_name(name) && !is_amount(name) => self.hide(name, value),
            other => other.clone(),
        }
    }

    /// What stands for a value that is not shown: the reference that it consists of, else nothing of it.
    fn hide(&mut self, name: &str, value: &Value) -> Value {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Null | Value::Bool(_) => return value.clone(),
            Value::Number(number) => number.to_string(),
            Value::Array(items) => return items.iter().map(|item| self.hide(name, item)).collect(),
            Value::Object(members) => {
                let hidden = members.iter().map(|(name, value)| (name.clone(), self.hide(name, value)));
                return Value::Object(hidden.collect::<Map<_, _>>());
            }
        };
        let rest = without_references(&text);
        let bare = ["Bearer", "Basic", "Token"].iter().find_map(|scheme| rest.strip_prefix(scheme)).unwrap_or(&rest);
        if bare.trim().is_empty() && !text.trim().is_empty() {
            return text.into();
        }
        // What begins as a path does and is nowhere may be anything.
        if !is_harmless(name, &text) || text.starts_with('/') && !Path::new(&text).exists() {
            self.note(&text, REMOVED.to_owned());
            // `Bearer TOKEN`: the token is a value of its own.
            text.split_whitespace().skip(1).for_each(|word| self.note_word(word));
        }
        REMOVED.into()
    }

    fn note_word(&mut self, word: &str) {
        if word.chars().count() >= LONG || !is_harmless("", word) {
            self.note(word, REMOVED.to_owned());
        }
    }

    /// Arguments of a program: flags, paths, plain words and numbers, packages. The others are not shown.
    fn arguments(&mut self, items: &[Value]) -> Value {
        let mut after = None;
        let mut shown = Vec::with_capacity(items.len());
        for item in items {
            let Value::String(text) = item else {
                shown.push(self.hide("", item));
                continue;
            };
            let flag: Option<&str> = after.take();
            let is_flag = text.starts_with('-');
            shown.push(match (flag, divided(text)) {
                (Some(flag), _) if !is_flag => self.hide(flag, item),
                (_, Some((name, value))) => {
                    let divider = text.get(name.len()..text.len() - value.len()).unwrap_or_default();
                    let value =
                        self.hide(name.rsplit(['=', ':', '?', '&', '/', ' ']).next().unwrap_or(name), &value.into());
                    format!("{}{divider}{}", self.text(name), value.as_str().unwrap_or(REMOVED)).into()
                }
                _ if text.contains("://") => self.address(text).into(),
                _ if is_flag && !text.contains('=') => self.text(text).into(),
                // What is there is a place, however it is called.
                _ if is_plain(text) || text.starts_with('/') && Path::new(text).exists() => self.text(text).into(),
                _ => self.hide("", item),
            });
            if is_flag && !text.contains('=') && (is_secret_name(text) || is_short_secret(text) || is_user_flag(text)) {
                after = Some(text.as_str());
            }
        }
        shown.into()
    }

    /// An address without its user, its query and what may be a secret in its path.
    fn address(&mut self, text: &str) -> String {
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let end = rest.find(['?', '#']).unwrap_or(rest.len());
        let (rest, query) = rest.split_at(end);
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        for word in user.into_iter().flat_map(|user| user.split(':')) {
            self.note(word, REMOVED.to_owned());
        }
        for pair in query.split(['?', '#', '&']) {
            let value = pair.split_once('=').map_or(pair, |(_, value)| value);
            if without_references(value) == value {
                self.note_word(value);
            }
        }
        let mut segments = Vec::new();
        for segment in path.split('/') {
            let is_shown = segment.is_empty() || is_plain(segment) || without_references(segment).is_empty();
            if !is_shown {
                self.note(segment, REMOVED.to_owned());
            }
            segments.push(if is_shown { segment } else { REMOVED });
        }
        let user = if user.is_some() { "(removed)@" } else { "" };
        let query = if query.is_empty() { "" } else { "?(removed)" };
        // What stands before the scheme may be more than one.
        format!("{}://{user}{}{}{query}", self.text(scheme), self.text(host), segments.join("/"))
    }
}

/// Whether a number under this name is an amount, as the fields of a configuration are.
fn is_amount(name: &str) -> bool {
    name.starts_with("max_") || ["tokens", "_seconds", "_bytes", "sessions"].iter().any(|end| name.ends_with(end))
}

/// Whether a text is made of words, small numbers and versions: a package, a path, an image.
fn is_plain(text: &str) -> bool {
    let parts = || text.split(['/', '@', ':', '-', '_', '.', '~', ' ']);
    let is_one = parts().count() == 1;
    let is_part = |part: &str| {
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        let is_number = digits == part.len() && digits <= 6;
        // A word with digits alone may be a password.
        let is_version = digits == 0 || part.len() <= 3;
        let is_word = (is_version || !is_one && digits <= 2)
            && part.len() <= 20
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let upper = part.bytes().filter(u8::is_ascii_uppercase).count();
        is_number || (is_word && (upper <= 1 || upper + digits == part.len() && part.len() <= 8))
    };
    text.is_ascii() && !text.contains("${") && redact(text).found.is_empty() && parts().all(is_part)
        || (!text.is_empty() && without_references(text).is_empty())
}

/// The text without its references to variables.
fn without_references(text: &str) -> String {
    let mut rest = text;
    let mut left = String::new();
    while let Some((before, after)) = rest.split_once("${") {
        left.push_str(before);
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    left.push_str(rest);
    left
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_configuration_only_what_is_no_secret_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "in-a-file-99\n").unwrap();
        let cases = [
            (json!({"env": {"A": "debug", "B": "${env:X}", "C": "Bearer ${env:X}", "D": 7}}), 0),
            (json!({"headers": {"Authorization": "Bearer in-a-header"}}), 2),
            (json!({"token_file": "key", "max_sessions": 5, "summary_tokens": 9}), 1),
            (json!({"secret_key": "one", "pin": 123_456, "passwords": ["two-and-more"]}), 2),
            (
                json!({"args": ["--token", "word", "--token=w0rd", "-t", "w0rd", "-t", "8080", "-v", "/a/b", "x", "pass77"]}),
                3,
            ),
            (
                json!({"args": ["@scope/package@1.2.3", "python3", "A1b2C3d4E5f6", "--url=https://h/p", "-e", "X=y9z9w9"]}),
                3,
            ),
            (json!({"args": ["postgres://me:hunter2@db:5432/shop?sslmode=require"]}), 1),
            (json!({"url": "https://u:pw77@h.example:1/v1/A8f3K2q9Zx/mcp?key=${env:K}#x"}), 2),
            (json!({"command": "/bin/x --token=abcdefgh9"}), 3),
            (json!({"name": "ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2"}), 0),
        ];
        let mut shown = String::new();
        for (tree, expected) in cases {
            let mut cover = Cover::default();
            let text = cover.configuration(&tree, folder.path(), true).to_string();
            let noted: Vec<&String> = cover.order.iter().collect();
            shown += &format!("{text} {noted:?}\n");
            assert_eq!(cover.count(), expected, "{text} {noted:?}");
        }
        let mut cover = Cover::default();
        shown += &cover
            .configuration(&json!({"a": {"b": "anything at all", "c": [1, true]}}), folder.path(), false)
            .to_string();
        insta::assert_snapshot!(shown);
    }

    #[test]
    fn values_are_covered_wherever_they_stand() {
        let mut cover = Cover::default();
        cover.note_variable("KEY", "s3cret-value");
        cover.note("s3cret", REMOVED.to_owned());
        cover.note("abc", REMOVED.to_owned());
        for (text, expected) in [
            ("s3cret-value and s3cret and abc", "${env:KEY} and (removed) and abc"),
            ("cut off: s3cret-val", "cut off: ${env:KEY}"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(cover.text(text), expected);
        }
        assert_eq!(cover.text(&"é".repeat(LONGEST_TEXT + 1)).chars().count(), LONGEST_TEXT + 1);
        let many = cover.value(&json!({"s3cret": vec!["s3cret-value"; MOST_ENTRIES + 3]}));
        let list = many["(removed)"].as_array().unwrap();
        assert_eq!(
            (list.len(), &list[0], &list[MOST_ENTRIES]),
            (MOST_ENTRIES + 1, &json!("${env:KEY}"), &json!("… and 3 more"))
        );
        let mut cover = Cover::default();
        cover.note("a/b \"c\" d", REMOVED.to_owned());
        for text in ["x a/b \"c\" d", r#"{"x":"a/b \"c\" d"}"#, "?q=a%2Fb%20%22c%22%20d", "YS9iICJjIiBk"] {
            assert!(cover.is_in(text), "{text}");
        }
        assert!(!cover.is_in("a/b"));
    }
}
