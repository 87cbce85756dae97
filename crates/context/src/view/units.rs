//! Finds the units that a selector selects.

use std::borrow::Cow;

use super::path::Path;
use super::{JsonFault, Units, View, ViewError, grep};
use crate::clean::without_sequences;
use crate::event::Selector;
use crate::literal::{Dialect, Document, Kind, LiteralError, Value};
use crate::split::{line_count, lines};
use crate::summary::{
    Delimited, Format, RowSpans, document_and_rest, document_in, has_lines, has_rows, header_of, inner_text, row_count,
    rows_below, rows_in, rows_of, spans_of,
};
use crate::xml;

/// A value is written without line breaks if it then has at most this many bytes; larger ones are shown as written.
const MOST_MINIFIED: usize = 64 * 1024;

/// Calls `then` with the units that `selector` selects in `text`.
pub(super) fn select(
    text: &str,
    media_type: &str,
    selector: &Selector,
    then: impl FnOnce(Units<'_, '_>) -> Result<View, ViewError>,
) -> Result<View, ViewError> {
    let nothing = |found: String| ViewError::Nothing { selector: selector.clone(), found };
    match selector {
        Selector::Head { chars } => {
            let end = text.char_indices().nth(*chars).map_or(text.len(), |(at, _)| at);
            if end == 0 {
                return Err(nothing(format!("the text has {} bytes", text.len())));
            }
            then(&mut std::iter::once(Cow::Borrowed(&text[..end])))
        }
        Selector::Lines { start, end } => {
            let document = document_in(text);
            let inner = document.as_ref().and_then(|document| inner_text(document.root(), has_lines));
            let place = inner.as_ref().map(|inner| &inner.path);
            let text = inner.as_ref().map_or(text, |inner| &*inner.text);
            let total = line_count(text);
            let (start, end) = resolve(*start, *end, total);
            if start >= end {
                let which = place.map_or_else(|| "the text".to_owned(), |path| format!("the text at {path}"));
                return Err(nothing(format!("{which} has {}", number(total, "line"))));
            }
            let chosen = lines(text).skip(start).take(end - start).map(Cow::Borrowed);
            then(&mut place.map(|path| Cow::Owned(lines_of(path))).into_iter().chain(chosen))
        }
        Selector::Rows { start, end } => with_rows(text, media_type, |place, rows| {
            let total = rows.len();
            let (start, end) = resolve(*start, *end, total);
            if start >= end {
                return Err(nothing(counted_rows(total)));
            }
            let chosen = rows.iter().skip(start).take(end - start);
            then(&mut above(place, rows).chain(chosen))
        }),
        Selector::Sample { count } => with_rows(text, media_type, |place, rows| {
            let total = rows.len();
            if total == 0 || *count == 0 {
                return Err(nothing(counted_rows(total)));
            }
            let mut chosen = spread(total, *count).into_iter().peekable();
            let numbered = rows
                .iter()
                .enumerate()
                .filter_map(|(row, text)| chosen.next_if_eq(&row).map(|row| Cow::Owned(format!("{row}: {text}"))));
            then(&mut above(place, rows).chain(numbered))
        }),
        Selector::JsonKeys { keys } => with_document(text, selector, |root| {
            if root.kind() != Kind::Object {
                let fault = JsonFault::NoKeys(kind_name(root));
                return Err(ViewError::NotJson { selector: selector.clone(), fault });
            }
            let mut members =
                root.members().filter(|(key, _)| keys.iter().any(|wanted| key.is_text(wanted))).peekable();
            if members.peek().is_none() {
                let known: Vec<String> = root.members().take(20).map(|(key, _)| key.plain().into_owned()).collect();
                return Err(nothing(format!("the keys are {}", known.join(", "))));
            }
            then(&mut members.map(|(key, value)| Cow::Owned(format!("{}: {}", key.plain(), written(value)))))
        }),
        Selector::JsonPath { path } => {
            let path: Path = path.parse()?;
            with_document(text, selector, |root| at_path(root, &path, nothing, then))
        }
        Selector::Grep { pattern, context } => {
            let search = grep::Search::new(pattern, *context)?;
            let is_readable = grep::has_readable_lines(text);
            let has_main = |document: &Document<'_>| inner_text(document.root(), has_lines).is_some();
            let document = document_and_rest(text).filter(|(document, _)| !is_readable || has_main(document));
            let mut found = match &document {
                Some((document, rest)) => search.document(document, rest, "$"),
                None if is_readable => Vec::new(),
                None => with_rows(text, media_type, |_, rows| search.lines(rows.iter())),
            };
            // A pattern may be of how values are written.
            if found.is_empty() && (is_readable || document.is_some()) {
                found = search.lines(lines(text).map(Cow::Borrowed));
            }
            if found.is_empty() {
                return Err(nothing("no line matches".to_owned()));
            }
            then(&mut found.drain(..).map(Cow::Owned))
        }
    }
}

/// What stands above the lines of a text inside a document.
pub(super) fn lines_of(path: &str) -> String {
    format!("lines of {path}:")
}

/// What stands above the rows of a text inside a document.
pub(super) fn rows_of_text(path: &str) -> String {
    format!("rows of {path}:")
}

/// What stands above rows: where they are, and their names.
fn above<'r>(place: Option<&str>, rows: &'r Rows<'_>) -> impl Iterator<Item = Cow<'r, str>> {
    place.map(|path| Cow::Owned(rows_of_text(path))).into_iter().chain(rows.header())
}

/// Calls `then` with what `path` leads to. A text on the way is read as the document that it is.
fn at_path(
    root: Value<'_>,
    path: &Path,
    nothing: impl FnOnce(String) -> ViewError,
    then: impl FnOnce(Units<'_, '_>) -> Result<View, ViewError>,
) -> Result<View, ViewError> {
    let found = path.values(root);
    if !found.is_empty() {
        return then(&mut found.into_iter().map(|value| value.string().unwrap_or_else(|| written(value))));
    }
    if let Some((text, rest)) = path.beyond_text(root) {
        let text = &*without_sequences(&text);
        let tree = xml::as_json(text);
        if let Some(document) = document_in(tree.as_deref().unwrap_or(text)) {
            return at_path(document.root(), &rest, nothing, then);
        }
    }
    Err(nothing(path.nearest(root)))
}

fn counted_rows(total: usize) -> String {
    format!("there {} {}", if total == 1 { "is" } else { "are" }, number(total, "row"))
}

fn number(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// `start..end` as positions in a sequence of `total`, where negative numbers count from the end.
pub(super) fn resolve(start: i64, end: Option<i64>, total: usize) -> (usize, usize) {
    let place = |at: i64| match usize::try_from(at) {
        Ok(at) => at.min(total),
        Err(_) => total.saturating_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    (place(start), end.map_or(total, place))
}

/// `count` positions spread evenly over `total`, the first and the last among them.
fn spread(total: usize, count: usize) -> Vec<usize> {
    match count.min(total) {
        1 => vec![0],
        count => (0..count).map(|step| (step as u128 * (total - 1) as u128 / (count - 1) as u128) as usize).collect(),
    }
}

fn kind_name(value: Value<'_>) -> &'static str {
    match value.kind() {
        Kind::Object => "an object",
        Kind::Array => "an array",
        Kind::String => "a string",
        Kind::Number => "a number",
        Kind::Bool => "a truth value",
        Kind::Null => "null",
        Kind::Call => "an expression",
    }
}

/// A value on one line, if that is possible at a reasonable size.
pub(super) fn written(value: Value<'_>) -> Cow<'_, str> {
    let text = value.text();
    if !text.contains('\n') {
        return Cow::Borrowed(text);
    }
    value.minified(MOST_MINIFIED).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Calls `then` with the value of `text`, read as by [`document`], or as XML.
fn with_document<T>(
    text: &str,
    selector: &Selector,
    then: impl FnOnce(Value<'_>) -> Result<T, ViewError>,
) -> Result<T, ViewError> {
    let text = &*without_sequences(text);
    let tree = xml::as_json(text);
    match document(tree.as_deref().unwrap_or(text)) {
        Ok(document) => then(document.root()),
        Err(error) => Err(ViewError::NotJson { selector: selector.clone(), fault: error.into() }),
    }
}

/// Parses `text` as JSON, Python or JSON lines, ignoring text before the literal and behind one that breaks off.
fn document(text: &str) -> Result<Document<'_>, LiteralError> {
    if let Some(document) = document_in(text) {
        return Ok(document);
    }
    let whole = match Document::parse_any(text) {
        Ok(document) => return Ok(document),
        Err(error) => error,
    };
    // A long message may come before the JSON.
    let start = text.find(['{', '[']).ok_or_else(|| whole.clone())?;
    let inner = text.get(start..).unwrap_or_default();
    Document::parse_any(inner).map_err(|_| whole)
}

/// The rows of a text.
pub(super) enum Rows<'a> {
    /// The items of an array, below a row of names if there is one.
    Values {
        header: Option<Value<'a>>,
        array: Value<'a>,
    },
    Records {
        header: Option<&'a str>,
        spans: Vec<(usize, usize)>,
        text: &'a str,
    },
    Lines(&'a str),
}

impl<'a> Rows<'a> {
    /// The items of an array.
    pub(super) fn of(array: Value<'a>) -> Self {
        Self::Values { header: header_of(array), array }
    }

    fn len(&self) -> usize {
        match self {
            Self::Values { array, .. } => row_count(*array),
            Self::Records { spans, .. } => spans.len(),
            Self::Lines(text) => line_count(text),
        }
    }

    /// The header line above the rows.
    fn header(&self) -> Option<Cow<'a, str>> {
        match self {
            Self::Values { header, .. } => header.map(written),
            Self::Records { header, .. } => header.map(Cow::Borrowed),
            Self::Lines(_) => None,
        }
    }

    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = Cow<'a, str>> + '_> {
        match self {
            Self::Values { header, array } => Box::new(array.items().skip(usize::from(header.is_some())).map(written)),
            Self::Records { spans, text, .. } => {
                Box::new(spans.iter().map(|&(start, end)| Cow::Borrowed(text.get(start..end).unwrap_or_default())))
            }
            Self::Lines(text) => Box::new(lines(text).map(Cow::Borrowed)),
        }
    }
}

/// Calls `then` with the rows of `text`, and with the path of the text in a document that they are those of.
fn with_rows<T>(text: &str, media_type: &str, then: impl FnOnce(Option<&str>, &Rows<'_>) -> T) -> T {
    let document = document_in(text);
    let root = document.as_ref().map(Document::root);
    if let Some(inner) = root.and_then(|root| inner_text(root, has_rows)) {
        let plain = without_sequences(&inner.text);
        let within = document_in(&plain);
        let array = within.as_ref().and_then(|document| rows_of(document.root()));
        if let Some(rows) = array.map(Rows::of).or_else(|| records(&inner.text, "")) {
            return then(Some(&inner.path), &rows);
        }
    }
    if let Some(array) = root.and_then(rows_of) {
        return then(None, &Rows::of(array));
    }
    if let Some(json) = xml::as_json(text)
        && let Ok(document) = Document::parse(&json, Dialect::Json)
        && let Some(array) = rows_below(document.root())
    {
        return then(None, &Rows::of(array));
    }
    then(None, &records(text, media_type).unwrap_or(Rows::Lines(text)))
}

/// The rows of a text that is a table by its look or by its media type.
fn records<'a>(text: &'a str, media_type: &str) -> Option<Rows<'a>> {
    let claimed = || {
        let delimiter = match media_type {
            _ if media_type.contains("tab-separated") => b'\t',
            _ if media_type.contains("csv") => b',',
            _ => return None,
        };
        spans_of(text, Format::Delimited(Delimited::usual(delimiter)))
    };
    let RowSpans { header, rows } = rows_in(text).or_else(claimed)?;
    let header = header.and_then(|(start, end)| text.get(start..end));
    Some(Rows::Records { header, spans: rows, text })
}
