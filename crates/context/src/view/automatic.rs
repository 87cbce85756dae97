//! The views that are worth offering for an artifact, and the tool by which a model asks for views.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value as Json, json};

use crate::event::{ArtifactRef, Selector, ViewSpec};
use crate::literal::{Dialect, Document, Kind};
use crate::split::line_count;
use crate::summary::{
    count_of_rows, document_in, has_lines, has_rows, inner_text, row_count, rows_below, rows_in, rows_of,
};
use crate::xml;

/// The number of keys that get a view of their own at most.
const MOST_KEYS: usize = 10;

/// The number of rows or lines of an offered view.
const ROWS: i64 = 10;

/// The number of lines of an offered view of a text.
const LINES: i64 = 20;

/// What lines that speak of errors have in them.
const ERRORS: &str = "(?i)error|exception|fail|fatal|panic";

static SPEAKS_OF_ERRORS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(ERRORS).ok());

/// The views that are worth offering for `content`, the artifact that `reference` names: by its content, not by its
/// media type. Content that is not text has none.
#[must_use]
pub fn automatic(reference: &ArtifactRef, content: &[u8]) -> Vec<ViewSpec> {
    let Ok(text) = std::str::from_utf8(content) else { return Vec::new() };
    automatic_for(reference, text, document_in(text).as_ref())
}

/// As [`automatic`], for a text that was parsed already: `document` is the literal that it is or holds.
pub(crate) fn automatic_for(reference: &ArtifactRef, text: &str, document: Option<&Document<'_>>) -> Vec<ViewSpec> {
    let mut offers: Vec<(String, Selector)> = Vec::new();
    let mut offer = |label: String, selector: Selector| offers.push((label, selector));
    let mut place = String::new();
    let rows = match document.map(Document::root) {
        Some(root) => match inner_text(root, has_rows) {
            Some(inner) => {
                place = format!(" at {}", inner.path);
                count_of_rows(&inner.text)
            }
            None => rows_of(root).map(row_count),
        },
        None => rows_of_xml(text),
    };
    let records = if document.is_none() && rows.is_none() { rows_in(text).map(|spans| spans.rows.len()) } else { None };
    let records = records.filter(|total| *total > 1);
    if let Some(total) = rows.or(records).filter(|total| *total > 1) {
        offer(format!("first rows of {total}{place}"), Selector::Rows { start: 0, end: Some(ROWS) });
        offer(format!("last rows of {total}{place}"), Selector::Rows { start: -ROWS, end: None });
        offer(format!("{ROWS} rows spread over {total}{place}"), Selector::Sample { count: ROWS as usize });
    }
    match document {
        Some(document) => {
            let root = document.root();
            if root.kind() == Kind::Object {
                for (key, _) in root.members().take(MOST_KEYS) {
                    let key = key.plain().into_owned();
                    offer(format!("the value of {key}"), Selector::JsonKeys { keys: vec![key] });
                }
            }
            if let Some(inner) = inner_text(root, has_lines) {
                offer_lines(&inner.text, &format!(" at {}", inner.path), &mut offer);
                offer_errors(&inner.text, &mut offer);
            }
        }
        None => {
            if records.is_none() {
                offer_lines(text, "", &mut offer);
            }
            offer_errors(text, &mut offer);
        }
    }
    let spec = |(number, (label, selector)): (usize, (String, Selector))| ViewSpec {
        view_id: format!("{}#{number}", reference.handle),
        label,
        handle: reference.handle.clone(),
        selector,
    };
    offers.into_iter().enumerate().map(spec).collect()
}

/// Offers the first and the last lines of a text.
fn offer_lines(text: &str, place: &str, offer: &mut impl FnMut(String, Selector)) {
    let total = line_count(text);
    if total > 0 {
        offer(format!("first lines of {total}{place}"), Selector::Lines { start: 0, end: Some(LINES) });
    }
    if total > LINES as usize {
        offer(format!("last lines of {total}{place}"), Selector::Lines { start: -LINES, end: None });
    }
}

/// Offers the lines of a long text that speak of errors, where there are some.
fn offer_errors(text: &str, offer: &mut impl FnMut(String, Selector)) {
    let speaks = SPEAKS_OF_ERRORS.as_ref().is_some_and(|expression| expression.is_match(text));
    if speaks && line_count(text) > LINES as usize {
        let errors = Selector::Grep { pattern: ERRORS.to_owned(), context: 1 };
        offer("lines that speak of errors".to_owned(), errors);
    }
}

/// The number of rows of an XML document.
fn rows_of_xml(text: &str) -> Option<usize> {
    let json = xml::as_json(text)?;
    let document = Document::parse(&json, Dialect::Json).ok()?;
    rows_below(document.root()).map(row_count)
}

/// The MCP definition of the tool by which a model looks into artifacts: `handle`, `selector`, and the `cursor` of the
/// previous answer.
#[must_use]
pub fn drilldown_tool_spec() -> Json {
    let selector = |kind: &str, about: &str, properties: Json, required: &[&str]| {
        let mut all = json!({"type": {"const": kind}});
        if let (Some(all), Json::Object(properties)) = (all.as_object_mut(), properties) {
            all.extend(properties);
        }
        let required: Vec<&str> = std::iter::once("type").chain(required.iter().copied()).collect();
        json!({
            "type": "object", "description": about, "properties": all, "required": required,
            "additionalProperties": false,
        })
    };
    let range = json!({
        "start": {"type": "integer", "description": "from 0; negative counts from the end"},
        "end": {"type": "integer", "description": "exclusive; negative counts from the end"},
    });
    json!({
        "name": "drilldown",
        "description": "Shows a part of a stored result. Ask for as little as answers the question; a long answer names a cursor to go on with.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "handle": {"type": "string", "description": "the handle of the artifact, e.g. artifact:result:c4"},
                "selector": {"oneOf": [
                    selector("head", "the first characters", json!({"chars": {"type": "integer", "minimum": 1}}), &[]),
                    selector("lines", "lines of a text", range.clone(), &[]),
                    selector("rows", "rows of a table or items of an array", range, &[]),
                    selector("json_keys", "values of top-level keys",
                        json!({"keys": {"type": "array", "items": {"type": "string"}, "minItems": 1}}), &["keys"]),
                    selector("json_path", "values at a JSON Pointer or JSONPath, e.g. $.rows[?(@.id == 7)].name",
                        json!({"path": {"type": "string"}}), &["path"]),
                    selector("grep", "lines that match a regular expression, with lines around them",
                        json!({"pattern": {"type": "string"}, "context": {"type": "integer", "minimum": 0}}), &["pattern"]),
                    selector("sample", "rows spread evenly over the whole",
                        json!({"count": {"type": "integer", "minimum": 1}}), &[]),
                ]},
                "cursor": {"type": "string", "description": "where the last answer stopped"},
            },
            "required": ["handle", "selector"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ContentHash, Handle};
    use crate::view::{Bounds, Cursor, view};

    fn offered(content: &str) -> String {
        let reference = ArtifactRef {
            handle: Handle::new("artifact:result:c1"),
            media_type: "text/plain".to_owned(),
            size_bytes: content.len() as u64,
            label: String::new(),
            content_hash: ContentHash::of(content.as_bytes()),
        };
        let views = automatic(&reference, content.as_bytes());
        // What is offered can be had.
        for spec in &views {
            let shown =
                view(&spec.handle, content.as_bytes(), "", &spec.selector, Cursor::default(), Bounds::default());
            assert!(shown.is_ok(), "{}: {shown:?}", spec.selector);
        }
        views.iter().map(|spec| format!("{} {}: {}\n", spec.view_id, spec.label, spec.selector)).collect()
    }

    #[test]
    fn views_are_offered_by_what_the_content_is() {
        insta::assert_snapshot!(offered(r#"{"ok": true, "rows": [{"a": 1}, {"a": 2}]}"#), @r"
        artifact:result:c1#0 first rows of 2: rows:0..10
        artifact:result:c1#1 last rows of 2: rows:-10..
        artifact:result:c1#2 10 rows spread over 2: sample:10
        artifact:result:c1#3 the value of ok: json_keys:ok
        artifact:result:c1#4 the value of rows: json_keys:rows
        ");
        insta::assert_snapshot!(offered("[{'a': None}, {'a': 2}]"), @r"
        artifact:result:c1#0 first rows of 2: rows:0..10
        artifact:result:c1#1 last rows of 2: rows:-10..
        artifact:result:c1#2 10 rows spread over 2: sample:10
        ");
        insta::assert_snapshot!(offered(&"a line\n".repeat(30)), @r"
        artifact:result:c1#0 first lines of 30: lines:0..20
        artifact:result:c1#1 last lines of 30: lines:-20..
        ");
        let tests = "=== RUN TestA\n".repeat(30) + "--- FAIL: TestA (0.00s)\n";
        insta::assert_snapshot!(offered(&tests), @r#"
        artifact:result:c1#0 first lines of 31: lines:0..20
        artifact:result:c1#1 last lines of 31: lines:-20..
        artifact:result:c1#2 lines that speak of errors: {"type":"grep","pattern":"(?i)error|exception|fail|fatal|panic","context":1}
        "#);
        let shell = json!({"stdout": tests.repeat(3), "exit_code": 1}).to_string();
        insta::assert_snapshot!(offered(&shell), @r#"
        artifact:result:c1#0 the value of stdout: json_keys:stdout
        artifact:result:c1#1 the value of exit_code: json_keys:exit_code
        artifact:result:c1#2 first lines of 93 at $.stdout: lines:0..20
        artifact:result:c1#3 last lines of 93 at $.stdout: lines:-20..
        artifact:result:c1#4 lines that speak of errors: {"type":"grep","pattern":"(?i)error|exception|fail|fatal|panic","context":1}
        "#);
        let rows = serde_json::to_string(&(0..40).map(|at| json!({"at": at})).collect::<Vec<_>>()).unwrap();
        insta::assert_snapshot!(offered(&format!("Found:\n{rows}")), @r"
        artifact:result:c1#0 first rows of 40: rows:0..10
        artifact:result:c1#1 last rows of 40: rows:-10..
        artifact:result:c1#2 10 rows spread over 40: sample:10
        ");
        let inside = json!({"args": ["-x", "-y"], "result": format!("{rows}{}", " ".repeat(600))}).to_string();
        insta::assert_snapshot!(offered(&inside), @r"
        artifact:result:c1#0 first rows of 40 at $.result: rows:0..10
        artifact:result:c1#1 last rows of 40 at $.result: rows:-10..
        artifact:result:c1#2 10 rows spread over 40 at $.result: sample:10
        artifact:result:c1#3 the value of args: json_keys:args
        artifact:result:c1#4 the value of result: json_keys:result
        ");
        let table = (0..40).fold("id,state\n".to_owned(), |text, at| text + &format!("{at},ok\n"));
        insta::assert_snapshot!(offered(&table), @r"
        artifact:result:c1#0 first rows of 40: rows:0..10
        artifact:result:c1#1 last rows of 40: rows:-10..
        artifact:result:c1#2 10 rows spread over 40: sample:10
        ");
        assert_eq!(offered(""), "");
    }

    #[test]
    fn the_tool_takes_what_selectors_are_written_as() {
        let spec = drilldown_tool_spec();
        let validator = jsonschema::validator_for(&spec["inputSchema"]).unwrap();
        for selector in [
            json!({"type": "head"}),
            json!({"type": "lines", "start": -3}),
            json!({"type": "json_keys", "keys": ["a"]}),
            json!({"type": "grep", "pattern": "x", "context": 2}),
            json!({"type": "sample", "count": 4}),
        ] {
            assert!(serde_json::from_value::<Selector>(selector.clone()).is_ok());
            assert!(validator.is_valid(&json!({"handle": "h", "selector": selector})));
        }
        assert!(!validator.is_valid(&json!({"handle": "h", "selector": {"type": "tail"}})));
    }
}
