//! Where the parts of a text stand, whatever it is written in: the members, lists and values of JSON, TOML and YAML.

use std::ops::Range;

use serde_saphyr::granit_parser::{Event, Parser, Span, StructureStyle};

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

/// Levels of a text, at most.
const DEEPEST: usize = 128;

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// Where it stands, in bytes.
    pub(super) span: Range<usize>,
    pub(super) what: What,
}

/// What a part is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    Scalar,
    List(Vec<Part>),
    Members {
        members: Vec<Named>,
        /// Whether each member of a YAML mapping stands on lines of its own.
        is_block: bool,
    },
}

/// A member with its name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Named {
    pub(super) name: String,
    /// Where the name stands; `None` where it stands in several places.
    pub(super) key: Option<Range<usize>>,
    pub(super) value: Part,
}

impl Part {
    /// The member of this name.
    pub(super) fn member(&self, name: &str) -> Option<&Named> {
        match &self.what {
            What::Members { members, .. } => members.iter().find(|member| member.name == name),
            _ => None,
        }
    }

    /// Where the last of its values ends.
    pub(super) fn end(&self) -> usize {
        match &self.what {
            What::List(items) => items.last().map_or(self.span.end, |last| last.end().max(self.span.end)),
            What::Members { members, is_block: true } => members.last().map_or(self.span.end, |last| last.value.end()),
            What::Members { .. } | What::Scalar => self.span.end,
        }
    }
}

/// The parts of a text without a mark of its byte order; `None` where it has another form or is too deep.
pub(super) fn parts(form: Form, text: &str) -> Option<Part> {
    match form {
        Form::Json => {
            let plain = plain_json(text);
            let mut at = 0;
            json(&plain, &mut at, 0)
        }
        Form::Toml => {
            let document = toml_edit::Document::parse(text).ok()?;
            toml_table(document.as_table(), 0..text.len())
        }
        Form::Yaml => {
            let is_node = |event: &Event<'_>| {
                !matches!(event, Event::StreamStart | Event::DocumentStart(..) | Event::Comment(..) | Event::Anchor(..))
            };
            let events = Parser::new_from_str(text).map_while(Result::ok);
            let events: Vec<(Event<'_>, Span)> = events.filter(|(event, _)| is_node(event)).collect();
            yaml(&events, &mut 0, 0)
        }
    }
}

/// Where the text ends that begins with a quotation mark at `at`.
pub(super) fn end_of_text(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
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

fn skip_space(bytes: &[u8], at: &mut usize) {
    while bytes.get(*at).is_some_and(u8::is_ascii_whitespace) {
        *at += 1;
    }
}

fn json(plain: &str, at: &mut usize, depth: usize) -> Option<Part> {
    let bytes = plain.as_bytes();
    skip_space(bytes, at);
    let start = *at;
    if depth > DEEPEST {
        return None;
    }
    let what = match bytes.get(start)? {
        b'{' => {
            *at += 1;
            let mut members = Vec::new();
            loop {
                skip_space(bytes, at);
                match bytes.get(*at)? {
                    b'}' => break,
                    b',' => *at += 1,
                    b'"' => {
                        let key = *at..end_of_text(bytes, *at)?;
                        let name = serde_json::from_str(plain.get(key.clone())?).ok()?;
                        *at = key.end;
                        skip_space(bytes, at);
                        if bytes.get(*at)? != &b':' {
                            return None;
                        }
                        *at += 1;
                        members.push(Named { name, key: Some(key), value: json(plain, at, depth + 1)? });
                    }
                    _ => return None,
                }
            }
            *at += 1;
            What::Members { members, is_block: false }
        }
        b'[' => {
            *at += 1;
            let mut items = Vec::new();
            loop {
                skip_space(bytes, at);
                match bytes.get(*at)? {
                    b']' => break,
                    b',' => *at += 1,
                    _ => items.push(json(plain, at, depth + 1)?),
                }
            }
            *at += 1;
            What::List(items)
        }
        b'"' => {
            *at = end_of_text(bytes, start)?;
            What::Scalar
        }
        _ => {
            let rest = bytes.get(start..)?;
            let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}' | b':');
            let length = rest.iter().position(is_end).unwrap_or(rest.len());
            if length == 0 {
                return None;
            }
            *at += length;
            What::Scalar
        }
    };
    Some(Part { span: start..*at, what })
}

fn toml_table(table: &dyn toml_edit::TableLike, span: Range<usize>) -> Option<Part> {
    let mut members = Vec::new();
    for (name, item) in table.iter() {
        let key = table.key(name).and_then(toml_edit::Key::span);
        members.push(Named { name: name.to_owned(), key, value: toml_item(item)? });
    }
    Some(Part { span, what: What::Members { members, is_block: false } })
}

fn toml_item(item: &toml_edit::Item) -> Option<Part> {
    match item {
        toml_edit::Item::Value(value) => toml_value(value),
        toml_edit::Item::Table(table) => toml_table(table, table.span().unwrap_or_default()),
        toml_edit::Item::ArrayOfTables(tables) => {
            let items = tables.iter().map(|table| toml_table(table, table.span().unwrap_or_default()));
            Some(Part { span: tables.span().unwrap_or_default(), what: What::List(items.collect::<Option<_>>()?) })
        }
        toml_edit::Item::None => None,
    }
}

fn toml_value(value: &toml_edit::Value) -> Option<Part> {
    match value {
        // One that was written with dots has no place of its own.
        toml_edit::Value::InlineTable(table) => toml_table(table, value.span().unwrap_or_default()),
        toml_edit::Value::Array(values) => {
            let items = values.iter().map(toml_value).collect::<Option<_>>()?;
            Some(Part { span: value.span()?, what: What::List(items) })
        }
        _ => Some(Part { span: value.span()?, what: What::Scalar }),
    }
}

/// The node that begins at one of the events.
fn yaml(events: &[(Event<'_>, Span)], at: &mut usize, depth: usize) -> Option<Part> {
    let bytes = |span: &Span| Some(span.start.byte_offset()?..span.end.byte_offset()?);
    let (event, span) = events.get(*at)?;
    let range = bytes(span)?;
    if depth > DEEPEST {
        return None;
    }
    *at += 1;
    match event {
        Event::MappingStart(style, ..) => {
            let mut members = Vec::new();
            loop {
                let (key, span) = events.get(*at)?;
                *at += 1;
                let name = match key {
                    Event::MappingEnd => {
                        let what = What::Members { members, is_block: *style == StructureStyle::Block };
                        return Some(Part { span: range.start..bytes(span)?.end, what });
                    }
                    Event::Scalar(name, ..) => name.to_string(),
                    _ => return None,
                };
                members.push(Named { name, key: Some(bytes(span)?), value: yaml(events, at, depth + 1)? });
            }
        }
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            loop {
                if let (Event::SequenceEnd, span) = events.get(*at)? {
                    *at += 1;
                    return Some(Part { span: range.start..bytes(span)?.end, what: What::List(items) });
                }
                items.push(yaml(events, at, depth + 1)?);
            }
        }
        Event::Scalar(..) | Event::Alias(..) => Some(Part { span: range, what: What::Scalar }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names and values of a text, each as it stands there.
    fn shown(text: &str, part: &Part, out: &mut Vec<String>) {
        match &part.what {
            What::Scalar => out.push(text[part.span.clone()].trim_end().to_owned()),
            What::List(items) => items.iter().for_each(|item| shown(text, item, out)),
            What::Members { members, .. } => {
                for member in members {
                    out.push(format!("{}:", &text[member.key.clone().unwrap_or_default()]));
                    shown(text, &member.value, out);
                }
            }
        }
    }

    #[test]
    fn parts_stand_where_they_are() {
        let cases = [
            (
                Form::Json,
                r#"{"a": [1, "x\/y", /* no */ {"b": null}], // c
                "d": true,}"#,
                r#""a": 1 "x\/y" "b": null "d": true"#,
            ),
            (
                Form::Toml,
                "a = 'p\\w' # x\n[b.c]\nd = [1, \"é\"]\ne = {f = 2}\n[[g]]\nh = 3\n",
                "a: 'p\\w' : : d: 1 \"é\" e: f: 2 : h: 3",
            ),
            (
                Form::Yaml,
                "# x\na: é y # c\n\"b\":\n  - 1\n  - c: 'd'\ne: |\n  # f\n  g\nh: {i: [j]}\nk:\n",
                "a: é y \"b\": 1 c: 'd' e: # f\n  g h: i: j k: ",
            ),
        ];
        for (form, text, expected) in cases {
            let mut found = Vec::new();
            shown(text, &parts(form, text).unwrap(), &mut found);
            let found = found.join(" ");
            // A table that is named in a header has its name there.
            let found = found.replace("b: c:", ": :").replace("g: h:", ": h:");
            assert_eq!(found, expected, "{text}");
        }
        for (form, text) in [(Form::Json, "{\"a\""), (Form::Toml, "a = "), (Form::Yaml, "[1")] {
            assert_eq!(parts(form, text), None, "{text}");
        }
    }
}
