//! Reads structured results: JSON, JSON lines and Python literals, as values; delimited text as a table.
//!
//! A plain reader for the harness alone, so that the parser under test cannot hide its own mistakes.

use serde_json::{Map, Number, Value};

/// Containers inside each other at most; deeper texts are taken as plain text.
const DEPTH: usize = 120;

/// The value of a JSON document or a Python literal.
#[must_use]
pub(super) fn value(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with(['[', '{', '(']) {
        return None;
    }
    serde_json::from_str(text).ok().or_else(|| python(text))
}

/// The values of JSON lines, at least two of them objects or arrays, with their line numbers.
#[must_use]
pub(super) fn json_lines(text: &str) -> Option<Vec<(usize, Value)>> {
    let mut values = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if !line.trim_start().starts_with(['{', '[']) {
            return None;
        }
        values.push((number, serde_json::from_str(line).ok()?));
    }
    (values.len() > 1).then_some(values)
}

fn python(text: &str) -> Option<Value> {
    let mut reader = Python { text, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    (reader.at == text.len()).then_some(value)
}

struct Python<'t> {
    text: &'t str,
    at: usize,
}

impl Python<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        self.space();
        if depth > DEPTH {
            return None;
        }
        match self.rest().chars().next()? {
            '[' => self.list("[", "]", depth),
            '(' => self.list("(", ")", depth),
            '{' => self.dict(depth),
            '\'' | '"' => self.string().map(Value::String),
            _ => self.word(depth),
        }
    }

    fn list(&mut self, open: &str, close: &str, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        self.take(open);
        while !self.take(close) {
            items.push(self.value(depth + 1)?);
            if !self.take(",") {
                return self.take(close).then_some(Value::Array(items));
            }
        }
        Some(Value::Array(items))
    }

    fn dict(&mut self, depth: usize) -> Option<Value> {
        let mut members = Map::new();
        self.take("{");
        while !self.take("}") {
            let key = match self.value(depth + 1)? {
                Value::String(key) => key,
                other => other.to_string(),
            };
            if !self.take(":") {
                return None;
            }
            members.insert(key, self.value(depth + 1)?);
            if !self.take(",") {
                return self.take("}").then_some(Value::Object(members));
            }
        }
        Some(Value::Object(members))
    }

    fn string(&mut self) -> Option<String> {
        let mut chars = self.rest().char_indices();
        let (_, quote) = chars.next()?;
        let mut out = String::new();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next()?.1 {
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    'r' => out.push('\r'),
                    'x' => {
                        let code: String = chars.by_ref().take(2).map(|(_, c)| c).collect();
                        out.push(char::from(u8::from_str_radix(&code, 16).ok()?));
                    }
                    other => out.push(other),
                },
                c if c == quote => {
                    self.at += at + 1;
                    return Some(out);
                }
                c => out.push(c),
            }
        }
        None
    }

    /// A number, a constant, or a call such as `Decimal('1.5')`, which is read as its only argument or as its text.
    fn word(&mut self, depth: usize) -> Option<Value> {
        let length = self.rest().find([',', ']', '}', ')', ':', '(']).unwrap_or(self.rest().len());
        let word = self.rest().get(..length)?.trim_end().to_owned();
        self.at += length;
        if self.rest().starts_with('(') {
            let start = self.at;
            let arguments = self.list("(", ")", depth + 1)?;
            let written = self.text.get(start..self.at)?;
            return Some(match arguments {
                Value::Array(mut one) if one.len() == 1 => one.pop()?,
                _ => Value::String(format!("{word}{written}")),
            });
        }
        match word.as_str() {
            "None" | "null" => Some(Value::Null),
            "True" | "true" => Some(Value::Bool(true)),
            "False" | "false" => Some(Value::Bool(false)),
            "nan" | "inf" | "-inf" => Some(Value::String(word)),
            _ => number(&word).map(Value::Number),
        }
    }
}

fn number(word: &str) -> Option<Number> {
    if let Ok(integer) = word.parse::<i64>() {
        return Some(integer.into());
    }
    word.parse::<f64>().ok().and_then(Number::from_f64)
}

/// The cells of delimited text, all rows of one width: at least three rows and two columns.
#[must_use]
pub(super) fn delimited(text: &str) -> Option<Vec<Vec<String>>> {
    let first = text.lines().next()?;
    [b',', b'\t', b';', b'|'].into_iter().filter(|&by| first.contains(char::from(by))).find_map(|by| {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).delimiter(by).from_reader(text.as_bytes());
        let rows: Vec<Vec<String>> = reader
            .records()
            .map(|row| Some(row.ok()?.iter().map(|cell| cell.trim().to_owned()).collect()))
            .collect::<Option<_>>()?;
        let header = rows.first()?;
        let is_name = |cell: &String| {
            let opens = cell.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
            opens && cell.len() <= 40 && !cell.contains([':', ';', '{', '('])
        };
        let named = header.iter().all(is_name);
        (rows.len() > 2 && header.len() > 1 && named).then_some(rows)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn python_literals_are_read_as_values() {
        let text = r#"[{'a': 1, "b": 'it\'s', 'c': None, 'd': (1, 2.5,), 'e': Decimal('7.50'), 'f': True}, {}]"#;
        let expected = json!([{"a": 1, "b": "it's", "c": null, "d": [1, 2.5], "e": "7.50", "f": true}, {}]);
        assert_eq!(value(text), Some(expected));
        assert_eq!(value("{'t': datetime.date(2026, 1, 2)}"), Some(json!({"t": "datetime.date(2026, 1, 2)"})));
        for wrong in ["", "[", "{'a'}", "[1 2]", "['a", "plain", "[1] x", &"[".repeat(500)] {
            assert_eq!(value(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn delimited_text_has_one_width() {
        assert_eq!(delimited("a,b\n1,\"x,y\"\n2,z\n").map(|rows| rows[1][1].clone()), Some("x,y".to_owned()));
        for wrong in ["", "a,b\n1,2", "a,b\n1\n2,3", "no\ncommas\nhere", "1,2\n3,4\n5,6"] {
            assert_eq!(delimited(wrong), None, "{wrong}");
        }
    }
}
