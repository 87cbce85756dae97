//! Bounded parts of artifacts: what a model gets when a summary is not enough.
//!
//! A selector denotes a sequence of units: lines, rows, values, matches. An answer holds as many whole units as its
//! bounds allow, and a [`Cursor`] names where it stopped; a unit that is larger than the bounds by itself is cut
//! between characters and goes on in the next answer. The answers to one selector, put together, are the whole
//! selection.
//!
//! Decided here:
//! - Values of JSON and Python are shown as they were written, without line breaks and indentation. A string that a
//!   path leads to is shown without quotes and escapes.
//! - Rows are the items of the outermost array, or else of the longest array within three levels of objects; the
//!   records of CSV, whose header line stands above them; the values of JSON lines; else lines.
//! - Lines end at a line feed, and a carriage return before it is no part of them. Other separators of Unicode are
//!   characters like any other.
//!
//! Not here: where artifacts are kept, and which selectors a prompt should offer for what reason.

mod automatic;
mod grep;
mod path;
mod units;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

pub(super) use automatic::automatic_for;
pub use automatic::{automatic, drilldown_tool_spec};
pub use path::{Path, PathError};

use crate::event::{Handle, Selector};
use crate::text::Estimator;

/// The most that one answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    max_bytes: usize,
    max_tokens: usize,
    estimator: Estimator,
}

impl Bounds {
    /// At least one character always fits: smaller numbers count as 16.
    #[must_use]
    pub fn new(max_bytes: usize, max_tokens: usize, estimator: Estimator) -> Self {
        Self { max_bytes: max_bytes.max(16), max_tokens: max_tokens.max(16), estimator }
    }
}

impl Default for Bounds {
    /// 8 000 bytes and 2 000 tokens of `cl100k_base`.
    fn default() -> Self {
        Self::new(8000, 2000, Estimator::Cl100kBase)
    }
}

/// Where an answer stopped: the number of the next unit (from 0) and the byte of it at which to go on. Written `12` or
/// `12+340`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Cursor {
    unit: usize,
    byte: usize,
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.unit)?;
        if self.byte > 0 { write!(formatter, "+{}", self.byte) } else { Ok(()) }
    }
}

impl FromStr for Cursor {
    type Err = ViewError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (unit, byte) = text.split_once('+').unwrap_or((text, "0"));
        match (unit.parse(), byte.parse()) {
            (Ok(unit), Ok(byte)) => Ok(Self { unit, byte }),
            _ => Err(ViewError::Cursor(text.to_owned())),
        }
    }
}

/// A part of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The units, one a line.
    pub text: String,
    /// Where to go on; `None` when this was the end.
    pub next: Option<Cursor>,
}

/// There is no such part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The artifact is no text.
    #[error("`{handle}` is {media_type} of {bytes} bytes and no text; views show text")]
    Binary {
        /// The artifact.
        handle: Handle,
        /// Its media type.
        media_type: String,
        /// Its size.
        bytes: usize,
    },
    /// Nothing is selected.
    #[error("`{selector}` selects nothing: {found}")]
    Nothing {
        /// What was asked for.
        selector: Selector,
        /// What is there instead.
        found: String,
    },
    /// The selector asks for structure that the artifact does not have.
    #[error("`{selector}` needs JSON: {reason}")]
    NotJson {
        /// What was asked for.
        selector: Selector,
        /// Where and why the text is no JSON.
        reason: String,
    },
    /// A path does not read.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A regular expression does not read.
    #[error("the pattern `{pattern}` is not usable: {reason}")]
    Pattern {
        /// The expression.
        pattern: String,
        /// Why not.
        reason: String,
    },
    /// A cursor does not read, or belongs to another selector or artifact.
    #[error("the cursor `{0}` does not fit; pass on the one that the last answer named, with the same selector")]
    Cursor(String),
}

/// The part of `content` that `selector` denotes, from `cursor` on, as much of it as `bounds` allow.
///
/// # Errors
/// The content is no text, has not the structure that the selector needs, or nothing is selected.
pub fn view(
    handle: &Handle,
    content: &[u8],
    media_type: &str,
    selector: &Selector,
    cursor: Cursor,
    bounds: Bounds,
) -> Result<View, ViewError> {
    let binary =
        || ViewError::Binary { handle: handle.clone(), media_type: media_type.to_owned(), bytes: content.len() };
    let text = std::str::from_utf8(content).map_err(|_| binary())?;
    units::select(text, media_type, selector, |units| page(units, cursor, bounds))
}

/// Units in their order.
type Units<'i, 'u> = &'i mut (dyn Iterator<Item = Cow<'u, str>> + 'i);

/// As many units as fit, one a line.
fn page(units: Units<'_, '_>, cursor: Cursor, bounds: Bounds) -> Result<View, ViewError> {
    // The bound on bytes keeps this short, and more never fits.
    let mut taken: Vec<Cow<'_, str>> = Vec::new();
    let mut bytes = 0;
    let mut more = false;
    for (number, unit) in units.enumerate().skip(cursor.unit) {
        let skipped = if number == cursor.unit { cursor.byte } else { 0 };
        let rest = match unit {
            _ if skipped == 0 => unit,
            Cow::Borrowed(unit) => Cow::Borrowed(unit.get(skipped..).ok_or_else(|| cursor_error(cursor))?),
            Cow::Owned(unit) => Cow::Owned(unit.get(skipped..).ok_or_else(|| cursor_error(cursor))?.to_owned()),
        };
        if bytes + rest.len() > bounds.max_bytes && !taken.is_empty() {
            more = true;
            break;
        }
        bytes += rest.len() + 1;
        taken.push(rest);
    }
    if taken.is_empty() {
        return Err(cursor_error(cursor));
    }
    // A line break ends a token of the vocabularies, so units can be counted one by one; the loop makes certain that
    // the whole is within its bounds for every estimator.
    let mut allowed = bounds.max_tokens;
    loop {
        let view = fill(&taken, more, cursor, Bounds { max_tokens: allowed, ..bounds });
        let tokens = bounds.estimator.count(&view.text);
        if tokens <= bounds.max_tokens || allowed <= 1 {
            return Ok(view);
        }
        allowed = allowed.saturating_sub(tokens - bounds.max_tokens).max(1);
    }
}

fn cursor_error(cursor: Cursor) -> ViewError {
    ViewError::Cursor(cursor.to_string())
}

/// The first of `units` that fit; `more` says whether others follow them.
fn fill(units: &[Cow<'_, str>], more: bool, cursor: Cursor, bounds: Bounds) -> View {
    let mut text = String::new();
    let mut tokens = 0;
    for (number, unit) in units.iter().enumerate() {
        let start = if number == 0 { cursor.byte } else { 0 };
        let here = Cursor { unit: cursor.unit + number, byte: start };
        let cost = (unit.len() <= bounds.max_bytes).then(|| bounds.estimator.count(&format!("{unit}\n")));
        match cost.filter(|cost| tokens + cost <= bounds.max_tokens) {
            Some(cost) => {
                if number > 0 {
                    text.push('\n');
                }
                text.push_str(unit);
                tokens += cost;
            }
            None if number == 0 => {
                let part = beginning(unit, bounds);
                let next = Cursor { byte: start + part.len(), ..here };
                let ends = part.len() == unit.len();
                let after = Cursor { unit: here.unit + 1, byte: 0 };
                let next = if ends { (more || units.len() > 1).then_some(after) } else { Some(next) };
                return View { text: part.to_owned(), next };
            }
            None => return View { text, next: Some(here) },
        }
    }
    let next = more.then_some(Cursor { unit: cursor.unit + units.len(), byte: 0 });
    View { text, next }
}

/// The longest beginning of `unit` within the bounds; one character at least.
fn beginning(unit: &str, bounds: Bounds) -> &str {
    let cut = |bytes: usize| unit.get(..unit.floor_char_boundary(bytes)).unwrap_or_default();
    let (mut low, mut high) = (0, bounds.max_bytes.min(unit.len()));
    while low < high {
        let middle = usize::midpoint(low, high + 1);
        if bounds.estimator.count(cut(middle)) <= bounds.max_tokens { low = middle } else { high = middle - 1 }
    }
    let first = unit.chars().next().map_or(0, char::len_utf8);
    cut(low.max(first))
}

#[cfg(test)]
mod tests;
