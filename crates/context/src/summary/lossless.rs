//! Writes a literal in full in fewer tokens: as a table that names its columns once, or as JSON without white space.

use std::borrow::Cow;

use super::profile::{Mode, mode};
use crate::literal::{Kind, Value};

/// The forms of `root` of at most `limit` bytes, the cheapest first.
pub(crate) fn forms(root: Value<'_>, limit: usize) -> Vec<String> {
    [tabular(root, limit), root.minified(limit)].into_iter().flatten().collect()
}

/// Rows below one line of names; for an object, each member on its own line.
fn tabular(root: Value<'_>, limit: usize) -> Option<String> {
    let mut lines = Vec::new();
    match root.kind() {
        Kind::Array => lines = table(root, limit)?,
        Kind::Object if mode(root) == Mode::Keys => {
            let mut tables = 0;
            // A member takes four bytes at least: its key, a colon, a blank and a value, and a line feed between.
            if root.len().saturating_mul(4) > limit.saturating_add(1) {
                return None;
            }
            for (key, member) in root.members() {
                let key = plain_key(key)?;
                match table(member, limit) {
                    Some(rows) => {
                        tables += 1;
                        lines.push(format!("{key}:"));
                        lines.extend(rows);
                    }
                    None => lines.push(format!("{key}: {}", member.minified(limit)?)),
                }
            }
            if tables == 0 {
                return None;
            }
        }
        _ => return None,
    }
    let length: usize = lines.iter().map(|line| line.len() + 1).sum();
    (length <= limit).then(|| lines.join("\n"))
}

/// The names and the rows of an array of objects with the same keys in the same order; the rows of an array of arrays.
fn table(rows: Value<'_>, limit: usize) -> Option<Vec<String>> {
    if rows.kind() != Kind::Array || rows.len() < 2 || rows.span().len() > limit.saturating_mul(8) {
        return None;
    }
    let cells = |row: Value<'_>| {
        let cells: Option<Vec<Cow<'_, str>>> = row.items().map(|cell| field(cell, limit)).collect();
        cells.map(|cells| cells.join(","))
    };
    if mode(rows) == Mode::Rows {
        let same = rows.items().all(|row| row.kind() == Kind::Array && !row.is_empty());
        return if same { rows.items().map(cells).collect() } else { None };
    }
    let first = rows.items().next().filter(|first| first.kind() == Kind::Object && !first.is_empty())?;
    let names: Vec<String> = first.members().map(|(key, _)| plain_key(key)).collect::<Option<_>>()?;
    let mut lines = vec![names.join(",")];
    for row in rows.items() {
        let named = row.members().zip(&names).all(|((key, _), name)| key.is_text(name));
        if row.kind() != Kind::Object || row.len() != names.len() || !named {
            return None;
        }
        lines.push(cells(row)?);
    }
    Some(lines)
}

/// A key, if it needs no quotes.
fn plain_key(key: Value<'_>) -> Option<String> {
    let name = key.plain();
    let plain = !name.is_empty() && !name.contains([',', ':', '"']) && !name.contains(char::is_control);
    (plain && key.kind() == Kind::String).then(|| name.into_owned())
}

/// A cell: JSON, or a text without quotes if it looks neither like another kind of value nor like two cells.
fn field(cell: Value<'_>, limit: usize) -> Option<Cow<'_, str>> {
    if cell.kind() == Kind::String {
        let text = cell.plain();
        let first = text.chars().next().is_some_and(char::is_alphabetic);
        let word = !matches!(text.as_ref(), "true" | "false" | "null");
        if first && word && !text.contains([',', '"']) && !text.contains(char::is_control) && text.trim() == text {
            return Some(text);
        }
    }
    cell.minified(limit).map(Cow::Owned)
}
