//! What the selector `rows` means in a literal: one array, and its items below a row of names.
//!
//! A summary says `row 41` of that array alone, and gives the path of any other row.

use super::profile::{Mode, has_header, mode};
use crate::literal::{Kind, Value};

/// The number of levels of objects, and of arrays with a single item, that are searched for rows.
const LEVELS: usize = 3;

/// The number of items from which an array below the only item of another one is a table of its own.
const LEAST_ROWS: usize = 3;

/// The outermost array, or the longest within a few levels of objects; the first of equals. Below an array with a single
/// object there may be a longer one, of objects or arrays.
pub(crate) fn rows_of(root: Value<'_>) -> Option<Value<'_>> {
    let mut level = vec![(root, false)];
    let mut best: Option<Value<'_>> = None;
    for _ in 0..=LEVELS {
        let mut below = Vec::new();
        for (value, is_in_item) in level {
            let is_only_item = value.kind() == Kind::Array && value.len() == 1;
            if value.kind() == Kind::Array
                && best.is_none_or(|best| value.len() > best.len())
                && (!is_in_item || value.len() >= LEAST_ROWS && value.items().any(Value::is_container))
            {
                best = Some(value);
            }
            if value.kind() == Kind::Object || is_only_item {
                let inner = value.items().filter(|inner| inner.kind() == Kind::Object || !is_only_item);
                below.extend(
                    inner.filter(|inner| inner.is_container()).map(|inner| (inner, is_in_item || is_only_item)),
                );
            }
        }
        level = below;
    }
    best
}

/// The rows below the root of an XML document, which is around everything.
pub(crate) fn rows_below(document: Value<'_>) -> Option<Value<'_>> {
    document.items().next().and_then(rows_of)
}

/// The first item of an array, where it names the columns of the others.
pub(crate) fn header_of(rows: Value<'_>) -> Option<Value<'_>> {
    (mode(rows) == Mode::Rows && has_header(rows)).then(|| rows.at(0)).flatten()
}

/// The number of rows of an array.
pub(crate) fn row_count(rows: Value<'_>) -> usize {
    rows.len() - usize::from(header_of(rows).is_some())
}

/// The JSONPath of what has the path `path` in a summary of what is at `base`.
pub(crate) fn path_below(base: &str, path: &str) -> String {
    let dot = if path.is_empty() || path.starts_with(['.', '[']) { "" } else { "." };
    format!("{base}{dot}{path}")
}
