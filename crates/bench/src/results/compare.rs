//! Two results of one name against each other, fact by fact.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// One fact that is not what the file says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The results: the name of the file.
    pub results: String,
    /// The case; empty for the file as a whole.
    pub case: String,
    /// The fact, as the path of keys that leads to it; empty for the whole record.
    pub fact: String,
    /// What the file says; `None` when it has no such fact.
    pub committed: Option<Value>,
    /// What the code produces; `None` when it produces no such fact.
    pub computed: Option<Value>,
}

impl Difference {
    /// A difference of one value.
    #[must_use]
    pub fn of(results: &str, case: &str, fact: &str, committed: Option<Value>, computed: Option<Value>) -> Self {
        let [results, case, fact] = [results, case, fact].map(str::to_owned);
        Self { results, case, fact, committed, computed }
    }
}

/// The lines in which two configurations differ, each with the table that it stands in: what is committed and what is
/// computed.
#[must_use]
pub fn configurations(results: &str, committed: &str, computed: &str) -> Vec<Difference> {
    let (left, right) = (keyed_lines(committed), keyed_lines(computed));
    let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let differing = keys.into_iter().filter(|key| left.get(*key) != right.get(*key));
    let row = |key: &String| {
        let value = |lines: &BTreeMap<String, &str>| lines.get(key).copied().map(Value::from);
        Difference::of(results, "", &format!("configuration.{key}"), value(&left), value(&right))
    };
    let mut found: Vec<Difference> = differing.map(row).collect();
    if found.is_empty() && committed != computed {
        found.push(Difference::of(results, "", "configuration", Some(committed.into()), Some(computed.into())));
    }
    found
}

/// The values of a configuration as it is written, which is TOML with one value a line, by `table.key`.
#[must_use]
pub fn keyed_lines(text: &str) -> BTreeMap<String, &str> {
    let mut table = String::new();
    let mut lines = BTreeMap::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table = format!("{name}.");
        } else if let Some((key, value)) = line.split_once(" = ") {
            lines.insert(format!("{table}{key}"), value);
        }
    }
    lines
}

/// Every value in which two JSON trees differ, in the order of their keys, as differences of `case` of `results`.
#[must_use]
pub fn facts(results: &str, case: &str, committed: Option<Value>, computed: Option<Value>) -> Vec<Difference> {
    let mut found = Vec::new();
    walk("", committed, computed, &mut |fact, left, right| {
        found.push(Difference::of(results, case, fact, left, right));
    });
    found
}

fn walk(
    path: &str,
    left: Option<Value>,
    right: Option<Value>,
    report: &mut impl FnMut(&str, Option<Value>, Option<Value>),
) {
    match (left, right) {
        (Some(Value::Object(mut left)), Some(Value::Object(mut right))) => {
            let mut keys: Vec<String> = left.keys().chain(right.keys()).cloned().collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                // The keys of an outcome and of its facts say nothing on their own.
                let next = match (path, key.as_str()) {
                    ("", "outcome") | ("", "measured") => String::new(),
                    ("", key) => key.to_owned(),
                    (path, key) => format!("{path}.{key}"),
                };
                walk(&next, left.remove(&key), right.remove(&key), report);
            }
        }
        // Rows that have names by these, so that a difference is a figure and not the whole table.
        (Some(Value::Array(left)), Some(Value::Array(right)))
            if names(&left).is_some() && names(&left) == names(&right) =>
        {
            for (left, right) in left.into_iter().zip(right) {
                let next = format!("{path}.{}", name(&left).unwrap_or_default());
                walk(&next, Some(left), Some(right), report);
            }
        }
        // As text, since -0.0 equals 0.0 as a number and stands otherwise on a page.
        (left, right) if written(&left) != written(&right) => report(path, left, right),
        _ => {}
    }
}

/// The names of rows; `None` where one has none, and for no rows.
fn names(rows: &[Value]) -> Option<Vec<&str>> {
    if rows.is_empty() { None } else { rows.iter().map(name).collect() }
}

fn name(row: &Value) -> Option<&str> {
    row.get("name")?.as_str()
}

fn written(value: &Option<Value>) -> Option<String> {
    value.as_ref().map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_zero_is_another_fact() {
        let value = |text: &str| Some(serde_json::from_str::<Value>(text).unwrap());
        let found = facts("a", "b", value(r#"{"x":{"y":0.0,"z":[0.0]}}"#), value(r#"{"x":{"y":-0.0,"z":[-0.0]}}"#));
        let paths: Vec<&str> = found.iter().map(|one| one.fact.as_str()).collect();
        assert_eq!(paths, ["x.y", "x.z"]);
        assert!(facts("a", "b", value("[1, 0.5]"), value("[1, 0.5]")).is_empty());
    }

    #[test]
    fn rows_are_told_by_their_names() {
        let value = |text: &str| Some(serde_json::from_str::<Value>(text).unwrap());
        let paths = |left: &str, right: &str| -> Vec<String> {
            facts("a", "b", value(left), value(right)).into_iter().map(|one| one.fact).collect()
        };
        let two = r#"{"x":[{"name":"k1 2","y":1},{"name":"b 1","y":2,"z":0}]}"#;
        assert_eq!(paths(two, r#"{"x":[{"name":"k1 2","y":1},{"name":"b 1","y":3}]}"#), ["x.b 1.y", "x.b 1.z"]);
        // Other rows, or rows without names, are another table.
        assert_eq!(paths(two, r#"{"x":[{"name":"k1 2","y":1}]}"#), ["x"]);
        assert_eq!(paths(r#"{"x":[{"y":1},{"y":2}]}"#, r#"{"x":[{"y":1},{"y":3}]}"#), ["x"]);
    }
}
