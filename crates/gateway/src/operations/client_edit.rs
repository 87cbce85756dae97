//! Changes entries in the files of others and leaves every other byte where it is.
//!
//! A client's file holds more than servers: settings, comments, the order that a person chose. An edit cuts entries out of the
//! text and puts others in. The result is read again and compared with the same edit of the data; where the text cannot be
//! edited so (most of YAML in flow style), it is written anew from the data, and that is said.

use serde::Serialize;
use serde_json::{Map, Value};

pub(crate) use super::text_parts::Form;
use super::text_parts::{What, end_of_text, parts, plain_json};
use crate::common::yaml;

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
    /// The edit of the data; whether there is an object at its place, or nothing yet.
    fn apply(&self, document: &mut Value) -> bool {
        let object = self.place.iter().try_fold(document, |value, key| {
            let inner = value.as_object_mut()?.entry(key.clone()).or_insert(Value::Null);
            if inner.is_null() {
                *inner = Value::Object(Map::new());
            }
            Some(inner)
        });
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
        Form::Yaml if text.lines().all(is_empty_line) => Ok(Value::Object(Map::new())),
        Form::Yaml => yaml::read(text).map_err(|error| error.to_string()),
    }
}

/// Whether a line of YAML has nothing or a comment alone.
fn is_empty_line(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
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

/// A text after edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edited {
    pub(crate) text: String,
    /// Whether it was written anew: its comments are lost.
    pub(crate) is_rewritten: bool,
}

/// The text after the edits. It keeps the ends of its lines, and the mark of its byte order.
///
/// # Errors
/// The text cannot be read, has something else than an object at the place of an edit, or could not be edited without changing
/// something else.
pub(crate) fn edited(form: Form, text: &str, edits: &[Edit]) -> Result<Edited, String> {
    let mut expected = read(form, text)?;
    let (mark, bare) = text.strip_prefix('\u{feff}').map_or(("", text), |bare| ("\u{feff}", bare));
    let lines = bare.replace("\r\n", "\n");
    // Where both kinds of ends occur, each line keeps its own.
    let is_crlf = lines.matches('\n').count() + lines.len() == bare.len() && lines.contains('\n');
    let mut changed = if is_crlf { lines } else { bare.to_owned() };
    let mut is_rewritten = false;
    for edit in edits {
        if !edit.apply(&mut expected) {
            return Err(format!("there is something else than servers at `{}`", edit.place.join(".")));
        }
        let next = match form {
            Form::Json => edited_json(&changed, edit),
            Form::Toml => edited_toml(&changed, edit),
            Form::Yaml => edited_yaml(&changed, edit),
        };
        changed = match next {
            Some(next) if read(form, &next).is_ok_and(|data| data == expected) => next,
            // The data is right in any case; what is lost are comments.
            _ => {
                is_rewritten = true;
                rendered(form, &expected) + "\n"
            }
        };
    }
    if is_crlf {
        changed = changed.replace('\n', "\r\n");
    }
    changed.insert_str(0, mark);
    match read(form, &changed) {
        Ok(data) if data == expected => Ok(Edited { text: changed, is_rewritten }),
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

/// The white space in front of `at`, where nothing else stands before it on its line.
fn indentation(text: &str, at: usize) -> Option<&str> {
    let line = text.get(..at)?.rsplit('\n').next()?;
    line.bytes().all(|byte| matches!(byte, b' ' | b'\t')).then_some(line)
}

fn edited_json(text: &str, edit: &Edit) -> Option<String> {
    let plain = plain_json(text);
    let mut open = plain.find('{')?;
    let mut outer = "";
    for (depth, key) in edit.place.iter().enumerate() {
        let found = members(&plain, open)?.0.into_iter().find(|member| member.key == *key);
        let is_object = |member: &Member| {
            let value = end_of_text(plain.as_bytes(), member.start).and_then(|at| plain.get(at..member.end));
            value.is_some_and(|value| value.contains('{'))
        };
        let Some(member) = found.filter(is_object) else {
            // There is nothing yet: an object comes first.
            let (place, rest) = edit.place.split_at(depth);
            let (name, below) = rest.split_first()?;
            let entries = edit.insert.iter().cloned().collect::<Map<_, _>>();
            let inner = below.iter().rev().fold(Value::Object(entries), |inner, key| {
                Value::Object(std::iter::once((key.clone(), inner)).collect())
            });
            let remove = vec![name.clone()];
            return edited_json(text, &Edit { place: place.to_vec(), remove, insert: vec![(name.clone(), inner)] });
        };
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
    let between = indent.as_ref().map_or(" ".to_owned(), |indent| format!("\n{indent}"));
    let new = |text: &str| Chunk { lead: between.clone(), body: text.to_owned(), ..Chunk::default() };
    let mut changed = text.get(..=open)?.to_owned();
    let Some(first) = members.first() else {
        let Some(indent) = indent.filter(|_| !written.is_empty()) else { return Some(text.to_owned()) };
        // A comment in an object without members stays.
        let is_plain = plain.get(open + 1..close) == text.get(open + 1..close);
        let end = if is_plain { close } else { open + 1 };
        changed.push_str(&format!("\n{indent}{}\n{outer}", written.join(&format!(",\n{indent}"))));
        changed.push_str(text.get(end..)?);
        return Some(changed);
    };
    // What stands behind the brace on its line belongs to the object.
    let mut from = same_line(text, open + 1);
    changed.push_str(text.get(open + 1..from)?);
    let lead_of_first = text.get(from..first.start)?;
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut written = written.into_iter().peekable();
    let has_written = written.peek().is_some();
    let mut ends_with_comma = false;
    let mut left = String::new();
    for member in &members {
        let mut chunk = Chunk {
            lead: std::mem::take(&mut left) + text.get(from..member.start)?,
            body: text.get(member.start..member.end)?.to_owned(),
            ..Chunk::default()
        };
        let after = skip_blank(text, member.end);
        from = member.end;
        if after < close && text.as_bytes().get(after) == Some(&b',') {
            chunk.gap = text.get(member.end..after)?.to_owned();
            (chunk.has_comma, from) = (true, after + 1);
        }
        let trail = same_line(text, from).min(close);
        chunk.trail = text.get(from..trail)?.to_owned();
        from = trail;
        ends_with_comma = chunk.has_comma;
        if !edit.remove.contains(&member.key) {
            chunks.push(chunk);
        } else if let Some(body) = written.next() {
            // What comes stands where the first stood that goes.
            chunks.push(Chunk { body, gap: String::new(), ..chunk });
            chunks.extend(written.by_ref().map(|body| new(&body)));
        } else {
            // What is said above a blank line is about more than the one that goes.
            left =
                chunk.lead.rfind("\n\n").and_then(|at| chunk.lead.get(..at)).unwrap_or_default().trim_end().to_owned();
        }
    }
    if has_written {
        chunks.extend(written.map(|body| new(&body)));
    }
    let is_moved = !chunks
        .first()
        .is_some_and(|chunk| chunk.body.starts_with(text.get(first.start..first.end).unwrap_or_default()));
    if let Some(chunk) = chunks.first_mut().filter(|chunk| is_moved && chunk.lead.trim().is_empty()) {
        lead_of_first.clone_into(&mut chunk.lead);
    }
    let count = chunks.len();
    for (at, chunk) in chunks.into_iter().enumerate() {
        let comma = if at + 1 < count || ends_with_comma { "," } else { "" };
        changed.push_str(&chunk.lead);
        changed.push_str(&chunk.body);
        match chunk.has_comma {
            true => changed.push_str(&format!("{}{comma}", chunk.gap)),
            false => changed.push_str(&format!("{comma}{}", chunk.gap)),
        }
        changed.push_str(&chunk.trail);
    }
    changed.push_str(&left);
    changed.push_str(text.get(from..)?);
    Some(changed)
}

/// A member of an object with what stands around it.
#[derive(Debug, Clone, Default)]
struct Chunk {
    /// What stands before it: space, and comments about it.
    lead: String,
    body: String,
    /// What stands between its value and the comma.
    gap: String,
    has_comma: bool,
    /// A comment behind it, on the same line.
    trail: String,
}

/// Where the space and the comments end that begin at `at` in a text that is JSON with comments.
fn skip_blank(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    loop {
        let rest = text.get(at..).unwrap_or_default();
        at += match bytes.get(at) {
            Some(byte) if byte.is_ascii_whitespace() => 1,
            Some(b'/') if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            Some(b'/') if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ => return at,
        };
    }
}

/// Where the line ends on which `at` is, when only space and comments are left on it; else `at`.
fn same_line(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let line = rest.find('\n').map_or(text.len(), |length| at + length);
    // The end of a comment of several lines is on a later line.
    if skip_blank(text, at) >= line
        && !text.get(at..line).is_some_and(|rest| rest.contains("/*") && !rest.contains("*/"))
    {
        line
    } else {
        at
    }
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

/// The edit of a mapping; `None` where the text has a style that is not edited.
fn edited_yaml(text: &str, edit: &Edit) -> Option<String> {
    let entries: Map<String, Value> = edit.insert.iter().cloned().collect();
    let block = |indent: usize| {
        let text =
            if entries.is_empty() { String::new() } else { rendered(Form::Yaml, &Value::Object(entries.clone())) };
        text.lines().map(|line| format!("{}{line}\n", " ".repeat(indent))).collect::<String>()
    };
    let ended =
        |text: &str| if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
    let root = parts(Form::Yaml, text);
    let mut at = root.as_ref();
    let mut key = None;
    for name in &edit.place {
        let Some(member) = at.and_then(|part| part.member(name)) else {
            // There is nothing yet.
            let [name] = edit.place.as_slice() else { return None };
            return Some(format!("{}{name}:\n{}", ended(text), block(2)));
        };
        (at, key) = (Some(&member.value), member.key.clone());
    }
    let (part, key) = (at?, key?);
    let line_of = |at: usize| text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    let line_after = |at: usize| text.get(at..).and_then(|rest| rest.find('\n')).map_or(text.len(), |end| at + end + 1);
    match &part.what {
        What::Members { members, is_block: true } => {
            let first = members.first()?.key.clone()?;
            let indent = first.start - line_of(first.start);
            // The entries are on lines of their own.
            if !text.get(line_of(first.start)..first.start)?.bytes().all(|byte| byte == b' ') {
                return None;
            }
            let mut changed = text.get(..line_of(first.start))?.to_owned();
            if entries.is_empty() && members.iter().all(|member| edit.remove.contains(&member.name)) {
                // Nothing at all would be null.
                let colon = key.end + text.get(key.end..)?.find(':')? + 1;
                changed.insert_str(colon, " {}");
            }
            let (mut from, mut is_placed) = (line_of(first.start), entries.is_empty());
            for member in members {
                let start = line_of(member.key.clone()?.start);
                let end = member.value.end().max(member.key.clone()?.end);
                let mut whole = text.get(..end)?.trim_end();
                // A list ends where the next thing begins: comments between are not its own.
                while let Some((before, last)) = whole.rsplit_once('\n') {
                    if before.len() <= start || !last.trim_start().starts_with('#') {
                        break;
                    }
                    whole = before.trim_end();
                }
                let end = line_after(whole.len());
                changed.push_str(text.get(from..start)?);
                from = end;
                match edit.remove.contains(&member.name) {
                    false => changed.push_str(text.get(start..end)?),
                    true if !is_placed => {
                        changed.push_str(&block(indent));
                        is_placed = true;
                    }
                    true => {}
                }
            }
            if !is_placed {
                changed = ended(&changed) + &block(indent);
            }
            changed.push_str(text.get(from..)?);
            Some(changed)
        }
        What::Members { members, .. } if !members.is_empty() => {
            if !edit.remove.is_empty() {
                return None;
            }
            // JSON within braces is YAML.
            let last = members.last()?.value.end();
            let written: Vec<String> =
                edit.insert.iter().map(|(name, value)| format!(", {}: {value}", Value::from(name.as_str()))).collect();
            Some(format!("{}{}{}", text.get(..last)?, written.concat(), text.get(last..)?))
        }
        What::List(_) => None,
        // `{}`, `~` or nothing.
        _ => {
            let indent = key.start - line_of(key.start) + 2;
            let value = part.span.clone();
            let start = if value.is_empty() { key.end } else { value.start };
            let value_end = if value.is_empty() { key.end } else { value.end };
            let line = line_after(value_end);
            let before = text.get(..start)?;
            let before = if value.is_empty() { before } else { before.trim_end_matches(' ') };
            let rest = text.get(value_end..line)?;
            Some(format!("{}{}{}", ended(&format!("{before}{rest}")), block(indent), text.get(line..)?))
        }
    }
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

    #[test]
    fn what_is_not_edited_stays_as_it_is() {
        let entry = |key: &str| (key.to_owned(), json!({"c": "x"}));
        let edit = |place: &[&str], remove: &[&str], insert: &[&str]| Edit {
            place: place.iter().map(|key| (*key).to_owned()).collect(),
            remove: remove.iter().map(|key| (*key).to_owned()).collect(),
            insert: insert.iter().map(|key| entry(key)).collect(),
        };
        let both = || edit(&["s"], &["a", "b"], &["g"]);
        let add = || edit(&["s"], &[], &["g"]);
        let (json_form, yaml_form, toml_form) = (Form::Json, Form::Yaml, Form::Toml);
        let cases = [
            // JSON: comments of what stays, and of sections.
            (
                json_form,
                both(),
                "{\n  \"s\": { // all\n    \"a\": 1, // a\n    // about off\n    \"off\": 2, // off, until\n    // about b\n    \"b\": 3 // b\n  }\n}\n",
                "{\n  \"s\": { // all\n    \"g\": {\n      \"c\": \"x\"\n    }, // a\n    // about off\n    \"off\": 2 // off, until\n  }\n}\n",
            ),
            (
                json_form,
                both(),
                "{\"s\": {\"off\": {}, /* x */ \"b\": 3, \"a\": 1}}",
                "{\"s\": {\"off\": {}, /* x */ \"g\": {\"c\":\"x\"}}}",
            ),
            (
                json_form,
                both(),
                "{\n\t\"s\": {\n\t\t\"z\": 0,\n\t\t// all of these\n\n\t\t\"a\": 1,\n\t\t\"b\": 1,\n\t},\n}",
                "{\n\t\"s\": {\n\t\t\"z\": 0,\n\t\t// all of these\n\n\t\t\"g\": {\n\t\t\t\"c\": \"x\"\n\t\t},\n\t},\n}",
            ),
            (
                json_form,
                add(),
                "{\n  \"s\": {}\n}\n",
                "{\n  \"s\": {\n    \"g\": {\n      \"c\": \"x\"\n    }\n  }\n}\n",
            ),
            (
                json_form,
                add(),
                "{\n  \"t\": 1 // t\n}\n",
                "{\n  \"t\": 1, // t\n  \"s\": {\n    \"g\": {\n      \"c\": \"x\"\n    }\n  }\n}\n",
            ),
            (
                json_form,
                add(),
                "{\r\n  \"s\": {\r\n    \"a\": 1\r\n  }\r\n}\r\n",
                "{\r\n  \"s\": {\r\n    \"a\": 1,\r\n    \"g\": {\r\n      \"c\": \"x\"\r\n    }\r\n  }\r\n}\r\n",
            ),
            // YAML.
            (
                yaml_form,
                add(),
                "# x\ns: # the servers\n  a: {c: y} # a\n  # later\nt: 1\n",
                "# x\ns: # the servers\n  a: {c: y} # a\n  g:\n    c: x\n  # later\nt: 1\n",
            ),
            (
                yaml_form,
                both(),
                "s: # mine\n    a:\n        c: |\n            # no\n            y\n    # about off\n    off: 2 # off\n    b: 1\n",
                "s: # mine\n    g:\n      c: x\n    # about off\n    off: 2 # off\n",
            ),
            (
                yaml_form,
                add(),
                "\u{feff}# x\r\n\"s\":\r\n  a: 1\r\n",
                "\u{feff}# x\r\n\"s\":\r\n  a: 1\r\n  g:\r\n    c: x\r\n",
            ),
            (yaml_form, add(), "s: {} # none\nt: 1 # t\n", "s: # none\n  g:\n    c: x\nt: 1 # t\n"),
            (yaml_form, add(), "s: # none\n# more\nt: 1\n", "s: # none\n  g:\n    c: x\n# more\nt: 1\n"),
            (yaml_form, add(), "s:", "s:\n  g:\n    c: x\n"),
            (yaml_form, add(), "# nothing\n", "# nothing\ns:\n  g:\n    c: x\n"),
            (yaml_form, add(), "t: 1 # t", "t: 1 # t\ns:\n  g:\n    c: x\n"),
            (yaml_form, add(), "s: {a: 1} # a\n", "s: {a: 1, \"g\": {\"c\":\"x\"}} # a\n"),
            // TOML.
            (
                toml_form,
                both(),
                "# x\r\n[s.a]\r\nc = 1\r\n[s.off] # off\r\nc = 2\r\n",
                "[s.off] # off\r\nc = 2\r\n\r\n[s.g]\r\nc = \"x\"\r\n",
            ),
        ];
        for (form, edit, text, expected) in cases {
            let edited = edited(form, text, &[edit]).unwrap();
            assert_eq!(edited, Edited { text: expected.to_owned(), is_rewritten: false }, "{text}");
        }
        let lost = edited(yaml_form, "s: {a: 1, # one\n  b: 2}\n", &[both()]).unwrap();
        assert_eq!(lost, Edited { text: "s:\n  g:\n    c: x\n".to_owned(), is_rewritten: true });
        assert!(edited(yaml_form, "s: [a]\n", &[add()]).is_err());
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
