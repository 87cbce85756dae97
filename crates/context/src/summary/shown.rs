//! Values on a line of a summary: in full when short, otherwise cut between words, with their length.

use std::borrow::Cow;

use crate::literal::{Kind, Value};

/// A text of at most about `limit` characters: in full, or cut at the last word that fits, with its length.
pub(super) fn cut(text: &str, limit: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(limit) else { return text.to_owned() };
    // The note must be worth its room.
    let rest = text.get(end..).unwrap_or_default();
    if rest.chars().nth(limit / 4).is_none() {
        return text.to_owned();
    }
    let head = text.get(..end).unwrap_or_default();
    let inside = rest.starts_with(|next: char| !next.is_whitespace());
    let word = if inside { head.rfind(char::is_whitespace).unwrap_or(0) } else { end };
    let kept = head.get(..word).unwrap_or_default().trim_end();
    let kept = if kept.len() * 2 < head.len() { "" } else { kept };
    let length = text.chars().count();
    if kept.is_empty() { format!("({length} characters)") } else { format!("{kept} … ({length} characters)") }
}

/// As [`cut`], on one line: with quotes and escapes if the text has line breaks or other control characters.
pub(super) fn line(text: &str, limit: usize) -> String {
    let shown = cut(text, limit);
    if !shown.contains(char::is_control) && !shown.is_empty() && shown.trim().len() == shown.len() {
        return shown;
    }
    serde_json::Value::from(shown).to_string()
}

/// A value on one line. Arrays and objects are written without white space if that takes at most `limit` bytes;
/// otherwise their size is given.
pub(super) fn value(value: Value<'_>, limit: usize) -> String {
    match value.kind() {
        Kind::Object => value.minified(limit).unwrap_or_else(|| {
            let keys: Vec<Cow<'_, str>> = value.members().take(4).map(|(key, _)| key.plain()).collect();
            let more = if value.len() > keys.len() { ", …" } else { "" };
            cut(&format!("{{{} keys: {}{more}}}", value.len(), keys.join(", ")), limit.max(24))
        }),
        Kind::Array => value.minified(limit).unwrap_or_else(|| format!("[{} items]", value.len())),
        Kind::String => line(&value.plain(), limit),
        _ => value.plain().into_owned(),
    }
}

/// A value of a row after `name=`: quoted if blanks or punctuation would hide where it ends.
pub(super) fn cell(value: Value<'_>, limit: usize) -> String {
    let shown = self::value(value, limit);
    if value.kind() == Kind::String { text_cell(&shown) } else { shown }
}

/// As [`cell`], for a text that is already short.
pub(super) fn text_cell(shown: &str) -> String {
    let hides = |character: char| character.is_whitespace() || matches!(character, '=' | ',');
    if (shown.contains(hides) || shown.is_empty()) && !shown.starts_with('"') {
        format!("\"{shown}\"")
    } else {
        shown.to_owned()
    }
}

/// A count with its noun: `1 thing`, `2 things`.
pub(super) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// The path of `key` below `path`, for people: a long key is cut.
pub(super) fn member_path(path: &str, key: &str) -> String {
    match (is_plain(key), path.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{path}.{key}"),
        (false, _) => format!("{path}[{}]", serde_json::Value::from(cut(key, 60))),
    }
}

/// The JSONPath of `key` below the JSONPath `path`: a selector that leads there, however long the key is.
pub(crate) fn selector_path(path: &str, key: &str) -> String {
    if is_plain(key) && key != "*" && key.trim() == key {
        format!("{path}.{key}")
    } else {
        format!("{path}[{}]", serde_json::Value::from(key))
    }
}

/// Whether a key needs no quotes in a path.
fn is_plain(key: &str) -> bool {
    !key.is_empty() && !key.contains(['.', '[', ']', '"']) && !key.contains(char::is_control)
}
