//! Values on a line of a summary: in full when short, otherwise cut between words, with their length.

use std::borrow::Cow;

use crate::literal::{Kind, Value};

/// The most characters of a key that is shown whole: addresses, paths of files and names of classes have no more.
const WHOLE_KEY: usize = 160;
/// The number of characters of a longer key that are shown of its beginning, and of its end.
const KEY_END: usize = 40;

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

/// A key on one line, as [`line()`]. It is cut only if it is far longer than names are: keys tell values from each other,
/// and those of one object often begin and end alike.
pub(super) fn key(key: &str) -> String {
    line(&cut_key(key), WHOLE_KEY)
}

/// The key; of a very long one both ends, with its length.
fn cut_key(key: &str) -> Cow<'_, str> {
    if key.char_indices().nth(WHOLE_KEY).is_none() {
        return Cow::Borrowed(key);
    }
    let head: String = key.chars().take(KEY_END).collect();
    let tail = key.char_indices().rev().nth(KEY_END - 1).map_or(key, |(at, _)| key.get(at..).unwrap_or_default());
    Cow::Owned(format!("{head}…{tail} ({} characters)", key.chars().count()))
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

/// The path of `key` below `path`, for people: a very long key is cut.
pub(super) fn member_path(path: &str, key: &str) -> String {
    let shown = cut_key(key);
    match (is_plain(key), path.is_empty()) {
        (true, true) => shown.into_owned(),
        (true, false) => format!("{path}.{shown}"),
        (false, _) => format!("{path}[{}]", serde_json::Value::from(&*shown)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_short_however_long_the_key_is() {
        for (plain, path) in [("k", "a."), (".", "a[\"")] {
            let whole = plain.repeat(WHOLE_KEY);
            assert!(member_path("a", &whole).contains(&whole) && key(&whole) == whole);
            let cut = format!("{0}…{0} (100000 characters)", plain.repeat(KEY_END));
            let shown = member_path("a", &plain.repeat(100_000));
            assert_eq!(shown.trim_end_matches("\"]"), format!("{path}{cut}"));
            assert_eq!(key(&plain.repeat(100_000)), cut);
        }
    }
}
