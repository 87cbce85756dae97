//! The text that most of a JSON document is, as where a shell answers with its output in a member.

use std::borrow::Cow;

use super::content::{document_in, rows_in};
use super::rows::{path_below, row_count, rows_of};
use super::shown::selector_path;
use crate::clean::without_sequences;
use crate::literal::{Kind, Value};

/// The number of bytes of a text from which its lines are what is asked for: a shorter one is read at a glance.
const LEAST: usize = 600;

/// A text inside a document.
pub(crate) struct Inner<'d> {
    /// Where it is, as a JSONPath.
    pub(crate) path: String,
    pub(crate) text: Cow<'d, str>,
}

/// The text that most of `root` is, if it is `wanted`. Where that is a document itself, a text that most of this one is comes
/// first.
pub(crate) fn inner_text(root: Value<'_>, wanted: fn(&str) -> bool) -> Option<Inner<'_>> {
    let (value, path) = main_text(root, "$")?;
    let text = value.string()?;
    let deeper = document_in(&without_sequences(&text)).and_then(|document| {
        let inner = inner_text(document.root(), wanted)?;
        let below = inner.path.strip_prefix('$').unwrap_or_default();
        Some(Inner { path: path_below(&path, below), text: Cow::Owned(inner.text.into_owned()) })
    });
    deeper.or_else(|| wanted(&text).then_some(Inner { path, text }))
}

/// The long string that is more than half of `root`, which has the path `base`, and its path. Values one after the other, as
/// JSON lines, have none: each is a line or a row, however long one of them is.
pub(crate) fn main_text<'d>(root: Value<'d>, base: &str) -> Option<(Value<'d>, String)> {
    let is_most = |value: &Value<'_>| value.span().len() * 2 > root.span().len();
    if is_sequence(root) {
        return None;
    }
    let (mut value, mut path) = (root, base.to_owned());
    loop {
        match value.kind() {
            Kind::Object => {
                let (key, member) = value.members().find(|(_, member)| is_most(member))?;
                (value, path) = (member, selector_path(&path, &key.plain()));
            }
            Kind::Array => {
                let (at, item) = value.items().enumerate().find(|(_, item)| is_most(item))?;
                (value, path) = (item, format!("{path}[{at}]"));
            }
            Kind::String if path != base && value.span().len() > LEAST => return Some((value, path)),
            _ => return None,
        }
    }
}

/// Whether the items of `root` stand one after the other without brackets around them.
fn is_sequence(root: Value<'_>) -> bool {
    let lead = |first: Value<'_>| root.text().get(..first.span().start - root.span().start);
    root.kind() == Kind::Array && root.items().next().and_then(lead).is_some_and(|lead| lead.trim().is_empty())
}

/// Whether a text has several lines.
pub(crate) fn has_lines(text: &str) -> bool {
    text.contains('\n')
}

/// Whether a text has rows of its own.
pub(crate) fn has_rows(text: &str) -> bool {
    count_of_rows(text).is_some()
}

/// The number of rows in a text that is a literal or a table.
pub(crate) fn count_of_rows(text: &str) -> Option<usize> {
    match document_in(&without_sequences(text)) {
        Some(document) => rows_of(document.root()).map(row_count),
        None => rows_in(text).map(|spans| spans.rows.len()),
    }
}
