//! Changes entries in the files of others and leaves every other byte where it is.
//!
//! A client's file holds more than servers: settings, comments, the order that a person chose. An edit cuts entries out of the
//! text and puts others in. The result is read again and compared with the same edit of the data; where the text cannot be
//! edited so (a YAML file in flow style), it is written anew from the data.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::common::yaml;

/// What a client's file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// JSON, in which comments and trailing commas are permitted.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

/// A change of one object of entries.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Edit {
    /// The keys that lead to the object.
    pub(crate) place: Vec<String>,
    /// The entries that go.
    pub(crate) remove: Vec<String>,
    /// The entries that come, where the first of the others stood, or at the end.
    pub(crate) insert: Vec<(String, Value)>,
}

impl Edit {
    /// The edit of the data; whether there is such an object.
    fn apply(&self, document: &mut Value) -> bool {
        let object = self.place.iter().try_fold(document, |value, key| value.get_mut(key));
        let Some(entries) = object.and_then(Value::as_object_mut) else { return false };
        let at = entries.keys().position(|key| self.remove.contains(key)).unwrap_or(entries.len());
        entries.retain(|key, _| !self.remove.contains(key));
        for (offset, (key, value)) in self.insert.iter().enumerate() {
            entries.shift_insert((at + offset).min(entries.len()), key.clone(), value.clone());
        }
        true
    }
}

/// The data of a text.
///
/// # Errors
/// What is wrong with the text, and where.
pub(crate) fn read(form: Form, text: &str) -> Result<Value, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match form {
        Form::Json => serde_json::from_str(&plain_json(text)).map_err(|error| error.to_string()),
        Form::Toml => {
            let document: toml_edit::DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
                let line = error.span().map(|span| line_of(text, span.start));
                let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
                format!("{place}{}", error.message())
            })?;
            Ok(of_table(document.as_table()))
        }
        Form::Yaml if text.trim().is_empty() => Ok(Value::Object(Map::new())),
        Form::Yaml => yaml::read(text).map_err(|error| error.to_string()),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// The text of a document.
pub(crate) fn rendered(form: Form, document: &Value) -> String {
    match form {
        Form::Json => serde_json::to_string_pretty(document).unwrap_or_default(),
        Form::Toml => {
            let mut table = toml_edit::DocumentMut::new();
            if let Value::Object(members) = document {
                fill(table.as_table_mut(), members);
            }
            table.to_string().trim_end().to_owned()
        }
        Form::Yaml => serde_saphyr::to_string(document).unwrap_or_default().trim_end().to_owned(),
    }
}

/// The text after the edits.
///
/// # Errors
/// The text cannot be read, has no object at the place of an edit, or could not be edited without changing something else.
pub(crate) fn edited(form: Form, text: &str, edits: &[Edit]) -> Result<String, String> {
    let mut expected = read(form, text)?;
    let mut changed = text.to_owned();
    for edit in edits {
        if !edit.apply(&mut expected) {
            return Err(format!("there is nothing at `{}`", edit.place.join(".")));
        }
        let next = match form {
            Form::Json => edited_json(&changed, edit),
            Form::Toml => edited_toml(&changed, edit),
            Form::Yaml => edited_yaml(&changed, edit),
        };
        changed = match next {
            Some(next) if read(form, &next).is_ok_and(|data| data == expected) => next,
            // The data is right in any case; what is lost are comments.
            _ => rendered(form, &expected) + "\n",
        };
    }
    match read(form, &changed) {
        Ok(data) if data == expected => Ok(changed),
        _ => Err("it cannot be changed without changing something else".to_owned()),
    }
}

/// A member of an object in a text: its key, and where it begins and its value ends.
struct Member {
    key: String,
    start: usize,
    end: usize,
}

/// The members of the object that begins at `open` in a text that is JSON, and where the object ends.
fn members(plain: &str, open: usize) -> Option<(Vec<Member>, usize)> {
    let bytes = plain.as_bytes();
    let mut found: Vec<Member> = Vec::new();
    let (mut at, mut depth) = (open + 1, 0_usize);
    let (mut key, mut start): (Option<String>, Option<usize>) = (None, None);
    let mut last = at;
    loop {
        let byte = *bytes.get(at)?;
        match byte {
            b'"' => {
                let end = end_of_text(bytes, at)?;
                if depth == 0 && key.is_none() {
                    (key, start) = (Some(serde_json::from_str(plain.get(at..end)?).ok()?), Some(at));
                }
                (at, last) = (end, end);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' if depth == 0 => {
                found.extend(key.zip(start).map(|(key, start)| Member { key, start, end: last }));
                return Some((found, at));
            }
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                found.extend(key.take().zip(start).map(|(key, start)| Member { key, start, end: last }));
                at += 1;
                continue;
            }
            _ => {}
        }
        at += 1;
        if !byte.is_ascii_whitespace() {
            last = at;
        }
    }
}

/// Where the text ends that begins with a quotation mark at `at`.
fn end_of_text(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// The white space in front of `at`, where nothing else stands before it on its line.
fn indentation(text: &str, at: usize) -> Option<&str> {
    let line = text.get(..at)?.rsplit('\n').next()?;
    line.bytes().all(|byte| matches!(byte, b' ' | b'\t')).then_some(line)
}

fn edited_json(text: &str, edit: &Edit) -> Option<String> {
    let plain = plain_json(text);
    let mut open = plain.find('{')?;
    let mut outer = "";
    for key in &edit.place {
        let member = members(&plain, open)?.0.into_iter().find(|member| member.key == *key)?;
        outer = indentation(text, member.start).unwrap_or(outer);
        // The key may hold a brace itself.
        let after_key = end_of_text(plain.as_bytes(), member.start)?;
        open = after_key + plain.get(after_key..member.end)?.find('{')?;
    }
    let (members, close) = members(&plain, open)?;
    let inner = members.first().map(|first| indentation(text, first.start));
    // Entries on lines of their own go into lines of their own.
    let indent = match inner {
        Some(indent) => indent.map(str::to_owned),
        None => Some(format!("{outer}{}", if outer.starts_with('\t') { "\t" } else { "  " })),
    };
    let unit = match &indent {
        Some(indent) => indent.strip_prefix(outer).filter(|unit| !unit.is_empty()).unwrap_or("  "),
        None => "",
    };
    let written: Vec<String> =
        edit.insert.iter().map(|(key, value)| member_text(key, value, indent.as_deref(), unit)).collect();
    let between = indent.as_ref().map_or(", ".to_owned(), |indent| format!(",\n{indent}"));
    let written = written.join(&between);
    let mut cuts: Vec<(usize, usize, &str)> = Vec::new();
    let gone: Vec<usize> =
        members.iter().enumerate().filter(|(_, member)| edit.remove.contains(&member.key)).map(|(at, _)| at).collect();
    let mut is_placed = written.is_empty();
    let around;
    for at in &gone {
        let member = members.get(*at)?;
        if is_placed {
            match (at.checked_sub(1).and_then(|before| members.get(before)), members.get(at + 1)) {
                // What was put in place of the first is before it too.
                (Some(before), _) => cuts.push((before.end, member.end, "")),
                (None, Some(after)) => cuts.push((member.start, after.start, "")),
                (None, None) => cuts.push((member.start, member.end, "")),
            }
        } else {
            cuts.push((member.start, member.end, &written));
            is_placed = true;
        }
    }
    if !is_placed {
        match (members.last(), &indent) {
            (Some(last), _) => {
                around = format!("{between}{written}");
                cuts.push((last.end, last.end, &around));
            }
            (None, Some(indent)) => {
                around = format!("\n{indent}{written}\n{outer}");
                // A comment in an object without members stays.
                let end = if plain.get(open + 1..close) == text.get(open + 1..close) { close } else { open + 1 };
                cuts.push((open + 1, end, &around));
            }
            (None, None) => return None,
        }
    }
    let mut changed = String::with_capacity(text.len());
    let mut from = 0;
    for (start, end, with) in cuts {
        // Two that go next to each other at the beginning of the object share the space between them.
        changed.push_str(text.get(from..start.max(from))?);
        changed.push_str(with);
        from = end.max(from);
    }
    changed.push_str(text.get(from..)?);
    Some(changed)
}

fn member_text(key: &str, value: &Value, indent: Option<&str>, unit: &str) -> String {
    let key = Value::from(key).to_string();
    let Some(indent) = indent else { return format!("{key}: {value}") };
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // Data in memory is always written.
    let _ = value.serialize(&mut serializer);
    let text = String::from_utf8(bytes).unwrap_or_default();
    format!("{key}: {}", text.replace('\n', &format!("\n{indent}")))
}

fn edited_toml(text: &str, edit: &Edit) -> Option<String> {
    let mut document: toml_edit::DocumentMut = text.parse().ok()?;
    let mut item = document.as_item_mut();
    for key in &edit.place {
        item = item.as_table_like_mut()?.get_mut(key)?;
    }
    let is_inline = item.is_inline_table();
    let table = item.as_table_like_mut()?;
    for key in &edit.remove {
        table.remove(key);
    }
    for (key, value) in &edit.insert {
        match value {
            Value::Object(members) if !is_inline => {
                let mut entry = toml_edit::Table::new();
                fill(&mut entry, members);
                table.insert(key, toml_edit::Item::Table(entry));
            }
            _ => {
                table.insert(key, toml_edit::Item::Value(to_toml(value)?));
            }
        }
    }
    Some(document.to_string())
}

/// Puts members into a table, objects as tables of their own; what TOML cannot say (null) is left out.
fn fill(table: &mut toml_edit::Table, members: &Map<String, Value>) {
    for (key, value) in members {
        if let Value::Object(inner) = value {
            let mut below = toml_edit::Table::new();
            // A table that only holds tables needs no header.
            below.set_implicit(inner.values().all(Value::is_object) && !inner.is_empty());
            fill(&mut below, inner);
            table.insert(key, toml_edit::Item::Table(below));
        } else if let Some(value) = to_toml(value) {
            table.insert(key, toml_edit::Item::Value(value));
        }
    }
}

fn to_toml(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(values) => toml_edit::Value::Array(values.iter().filter_map(to_toml).collect()),
        Value::Object(members) => {
            let members = members.iter().filter_map(|(key, value)| Some((key.as_str(), to_toml(value)?)));
            toml_edit::Value::InlineTable(members.collect())
        }
    })
}

fn of_table(table: &dyn toml_edit::TableLike) -> Value {
    Value::Object(table.iter().map(|(key, item)| (key.to_owned(), of_item(item))).collect())
}

fn of_item(item: &toml_edit::Item) -> Value {
    match item {
        toml_edit::Item::Value(value) => of_value(value),
        toml_edit::Item::Table(table) => of_table(table),
        toml_edit::Item::ArrayOfTables(tables) => tables.iter().map(|table| of_table(table)).collect(),
        toml_edit::Item::None => Value::Null,
    }
}

fn of_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => text.value().as_str().into(),
        toml_edit::Value::Integer(number) => (*number.value()).into(),
        toml_edit::Value::Float(number) => (*number.value()).into(),
        toml_edit::Value::Boolean(value) => (*value.value()).into(),
        toml_edit::Value::Datetime(time) => time.value().to_string().into(),
        toml_edit::Value::Array(values) => values.iter().map(of_value).collect(),
        toml_edit::Value::InlineTable(table) => of_table(table),
    }
}

/// The edit of a block mapping; `None` where the text has another style.
fn edited_yaml(text: &str, edit: &Edit) -> Option<String> {
    let [key] = edit.place.as_slice() else { return None };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let depth = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let head = lines.iter().position(|line| {
        let line = line.trim_end();
        line.strip_suffix(':').is_some_and(|name| name == key || name.trim_matches(['"', '\'']) == key)
    })?;
    let body = lines.get(head + 1..)?;
    let length = body.iter().position(|line| !is_blank(line) && depth(line) == 0).unwrap_or(body.len());
    let body = body.get(..length)?;
    let indent = body.iter().find(|line| !is_blank(line)).map(|line| depth(line))?;
    // Each entry: its name, its first line, and the line after its last.
    let mut entries: Vec<(String, usize, usize)> = Vec::new();
    for (at, line) in body.iter().enumerate().filter(|(_, line)| !is_blank(line)) {
        if depth(line) == indent {
            let name = line.trim().split(": ").next()?.trim_end_matches(':').trim_matches(['"', '\'']);
            entries.push((name.to_owned(), at, at + 1));
        } else {
            entries.last_mut()?.2 = at + 1;
        }
    }
    let written: String = edit
        .insert
        .iter()
        .map(|(name, value)| {
            let mut one = Map::new();
            one.insert(name.clone(), value.clone());
            let text = rendered(Form::Yaml, &Value::Object(one));
            text.lines().map(|line| format!("{}{line}\n", " ".repeat(indent))).collect::<String>()
        })
        .collect();
    let first = entries.iter().find(|(name, ..)| edit.remove.contains(name)).map(|(_, start, _)| *start);
    let at = first.unwrap_or(entries.last()?.2);
    let is_gone = |line: usize| {
        entries.iter().any(|(name, start, end)| edit.remove.contains(name) && (*start..*end).contains(&line))
    };
    let mut changed: String = lines.get(..=head)?.concat();
    for line in 0..=body.len() {
        if line == at {
            if !changed.ends_with('\n') {
                changed.push('\n');
            }
            changed.push_str(&written);
        }
        if line < body.len() && !is_gone(line) {
            changed.push_str(body.get(line)?);
        }
    }
    changed.push_str(&lines.get(head + 1 + length..)?.concat());
    Some(changed)
}

/// The text with spaces in place of comments and trailing commas: every other byte stays where it is, so that places in
/// errors are those of the file.
pub(super) fn plain_json(text: &str) -> String {
    enum Within {
        Json,
        Text,
        Line,
        Block,
    }
    let mut bytes = text.as_bytes().to_vec();
    let source = text.as_bytes();
    let (mut within, mut comma, mut at) = (Within::Json, None, 0);
    if source.starts_with(b"\xef\xbb\xbf") {
        bytes.splice(0..3, *b"   ");
        at = 3;
    }
    let blank = |bytes: &mut Vec<u8>, range: std::ops::Range<usize>| {
        for byte in bytes.iter_mut().take(range.end).skip(range.start).filter(|byte| !matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
    };
    while let Some(&byte) = source.get(at) {
        let pair = (byte, source.get(at + 1));
        let mut step = 1;
        within = match within {
            Within::Json => match pair {
                (b'"', _) => {
                    comma = None;
                    Within::Text
                }
                (b'/', Some(b'/')) => {
                    blank(&mut bytes, at..at + 1);
                    Within::Line
                }
                (b'/', Some(b'*')) => {
                    blank(&mut bytes, at..at + 2);
                    step = 2;
                    Within::Block
                }
                (b',', _) => {
                    comma = Some(at);
                    Within::Json
                }
                (b'}' | b']', _) => {
                    if let Some(comma) = comma.take() {
                        blank(&mut bytes, comma..comma + 1);
                    }
                    Within::Json
                }
                (byte, _) => {
                    if !byte.is_ascii_whitespace() {
                        comma = None;
                    }
                    Within::Json
                }
            },
            Within::Text => match byte {
                b'\\' => {
                    step = 2;
                    Within::Text
                }
                b'"' => Within::Json,
                _ => Within::Text,
            },
            Within::Line if byte == b'\n' => Within::Json,
            Within::Line => {
                blank(&mut bytes, at..at + 1);
                Within::Line
            }
            Within::Block if pair == (b'*', Some(&b'/')) => {
                blank(&mut bytes, at..at + 2);
                step = 2;
                Within::Json
            }
            Within::Block => {
                blank(&mut bytes, at..at + 1);
                Within::Block
            }
        };
        at += step;
    }
    // Whole characters were replaced, so the text is still one.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn comments_and_trailing_commas_are_taken() {
        let cases = [
            ("{\"a\": 1, // one, {\n \"b\": [1, 2, /* ] */ ], }", json!({"a": 1, "b": [1, 2]})),
            ("\u{feff}/* é */ {\"a\": \"// no /* comment */ ,}\"}", json!({"a": "// no /* comment */ ,}"})),
            ("{\"a\": \"\\\"//\", \"b\": \"\\\\\"} // end", json!({"a": "\"//", "b": "\\"})),
            ("{\"a\": [[],],}", json!({"a": [[]]})),
        ];
        for (text, expected) in cases {
            let plain = plain_json(text);
            assert_eq!(plain.len(), text.len());
            assert_eq!(serde_json::from_str::<Value>(&plain).unwrap(), expected, "{text}");
        }
        for text in ["{,}", "[1,,]", "{\"a\" /* open", "/"] {
            assert!(serde_json::from_str::<Value>(&plain_json(text)).is_err() || text == "{,}", "{text}");
        }
    }

    proptest! {
        #[test]
        fn json_without_comments_stays_as_it_is(text in "[ -~é]{0,40}", number in any::<i32>()) {
            let json = json!({"a": text, "b": [number, {"c": null}]}).to_string();
            prop_assert_eq!(plain_json(&json), json);
        }

        #[test]
        fn any_text_is_taken(text in "[/*\",\\\\\\[\\]{}\né ]{0,60}") {
            prop_assert_eq!(plain_json(&text).len(), text.len());
        }
    }
}
