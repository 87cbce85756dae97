//! The files of a collection as text, byte for byte in the forms of the measured ones.
//!
//! Those were written by Python's `json` module, so its separators and its way of writing numbers are kept here: the
//! checksums of the manifest are of these bytes.

use std::collections::BTreeSet;
use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use serde_json::{Map, Value};

/// What a rule makes of the published files, before it is checked and written.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Tool definitions in the order of the catalog; of two with one name the first stays.
    pub(super) tools: Vec<Map<String, Value>>,
    /// Requests in the order of the file; those that cannot be judged are dropped.
    pub(super) queries: Vec<Asked>,
    /// How the files are laid out.
    pub(super) layout: Layout,
}

/// A request and the tools that it needs.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) id: String,
    pub(super) query: String,
    /// Names of tools; one that comes again is left out.
    pub(super) relevant: Vec<String>,
    /// For a relevant tool those that would do as well.
    pub(super) equivalent: Vec<(String, Vec<String>)>,
    pub(super) category: Option<String>,
}

impl Asked {
    /// A request with neither equivalent tools nor a category.
    pub(super) fn new(id: String, query: &str, relevant: impl IntoIterator<Item = String>) -> Self {
        let relevant = relevant.into_iter().collect();
        Self { id, query: query.to_owned(), relevant, equivalent: Vec::new(), category: None }
    }
}

/// How files are laid out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Layout {
    /// A line for every tool; letters of all scripts as they are.
    #[default]
    ToolPerLine,
    /// A line for every value of the catalog; letters outside ASCII escaped in the queries.
    ValuePerLine,
}

/// The two files of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// `catalog.json`.
    pub catalog: String,
    /// `queries.jsonl`.
    pub queries: String,
}

impl Draft {
    /// The files. Dropped are requests without text, without tools, with a tool that the catalog lacks, and those whose
    /// text and tools came before.
    pub(super) fn files(mut self) -> serde_json::Result<Files> {
        let mut names = BTreeSet::new();
        self.tools.retain(|tool| names.insert(tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()));
        let mut seen = BTreeSet::new();
        let mut queries = String::new();
        for asked in self.queries {
            let text = asked.query.trim().to_owned();
            let mut relevant: Vec<String> = Vec::new();
            for tool in asked.relevant {
                if !relevant.contains(&tool) {
                    relevant.push(tool);
                }
            }
            let judged = !text.is_empty() && !relevant.is_empty() && relevant.iter().all(|tool| names.contains(tool));
            if !judged || !seen.insert((text.clone(), relevant.clone())) {
                continue;
            }
            let mut line = Map::new();
            line.insert("id".to_owned(), Value::String(asked.id));
            line.insert("query".to_owned(), Value::String(text));
            line.insert("relevant".to_owned(), relevant.into());
            if !asked.equivalent.is_empty() {
                let equivalent = asked.equivalent.into_iter().map(|(tool, others)| (tool, others.into()));
                line.insert("equivalent".to_owned(), Value::Object(equivalent.collect()));
            }
            if let Some(category) = asked.category {
                line.insert("category".to_owned(), Value::String(category));
            }
            queries.push_str(&one_line(&line, self.layout)?);
            queries.push('\n');
        }
        Ok(Files { catalog: catalog(&self.tools, self.layout)?, queries })
    }
}

fn catalog(tools: &[Map<String, Value>], layout: Layout) -> serde_json::Result<String> {
    match layout {
        Layout::ToolPerLine => {
            let lines: Vec<String> = tools.iter().map(|tool| one_line(tool, layout)).collect::<Result<_, _>>()?;
            Ok(format!("[\n{}\n]\n", lines.join(",\n")))
        }
        Layout::ValuePerLine => written(&tools, PrettyFormatter::with_indent(b"")),
    }
}

fn one_line(value: &Map<String, Value>, layout: Layout) -> serde_json::Result<String> {
    written(value, Spaced { ascii: layout == Layout::ValuePerLine })
}

fn written(value: &impl Serialize, formatter: impl Formatter) -> serde_json::Result<String> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter))?;
    String::from_utf8(bytes).map_err(serde::ser::Error::custom)
}

/// One line with a space behind commas and colons.
struct Spaced {
    /// Whether letters outside ASCII are escaped.
    ascii: bool,
}

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, out: &mut W, number: f64) -> io::Result<()> {
        out.write_all(float(number).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        if !self.ascii {
            return out.write_all(text.as_bytes());
        }
        for character in text.chars() {
            if character.is_ascii() {
                write!(out, "{character}")?;
            } else {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}

/// A number with the fewest digits that give it back; an exponent of two digits below 0.0001 and from 10^16 on.
fn float(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-4..1e16).contains(&size) {
        return format!("{number:?}");
    }
    match format!("{number:e}").split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => format!("{number}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        let table = [
            (0.0, "0.0"),
            (-0.5, "-0.5"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
            (0.1 + 0.2, "0.30000000000000004"),
        ];
        for (number, expected) in table {
            assert_eq!(float(number), expected);
        }
    }

    #[test]
    fn requests_that_cannot_be_judged_are_dropped() {
        let ask = |id: &str, text: &str, tools: &[&str]| {
            Asked::new(id.to_owned(), text, tools.iter().map(|tool| (*tool).to_owned()))
        };
        let mut choice = ask("8", "or", &["a"]);
        choice.equivalent.push(("a".to_owned(), vec!["b".to_owned()]));
        choice.category = Some("é".to_owned());
        let draft = |layout| Draft {
            tools: vec![
                tool(&json!({"name": "a", "list": [1, 0.5, []]})),
                tool(&json!({"name": "b"})),
                tool(&json!({"name": "a"})),
            ],
            queries: vec![
                ask("1", " one ", &["a", "b", "a"]),
                ask("2", "one", &["a", "b"]),
                ask("3", "one", &["b"]),
                ask("4", "  ", &["a"]),
                ask("5", "none", &[]),
                ask("6", "absent", &["a", "c"]),
            ],
            layout,
        };
        let per_tool = draft(Layout::ToolPerLine).files().unwrap();
        insta::assert_snapshot!(format!("{}{}", per_tool.catalog, per_tool.queries), @r#"
        [
        {"name": "a", "list": [1, 0.5, []]},
        {"name": "b"}
        ]
        {"id": "1", "query": "one", "relevant": ["a", "b"]}
        {"id": "3", "query": "one", "relevant": ["b"]}
        "#);
        let mut value_per_line = draft(Layout::ValuePerLine);
        value_per_line.queries = vec![choice];
        let value_per_line = value_per_line.files().unwrap();
        insta::assert_snapshot!(format!("{}\n{}", value_per_line.catalog, value_per_line.queries), @r#"
        [
        {
        "name": "a",
        "list": [
        1,
        0.5,
        []
        ]
        },
        {
        "name": "b"
        }
        ]
        {"id": "8", "query": "or", "relevant": ["a"], "equivalent": {"a": ["b"]}, "category": "\u00e9"}
        "#);
    }
}
