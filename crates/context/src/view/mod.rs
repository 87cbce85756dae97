//! Bounded parts of artifacts: what a model gets when a summary is not enough.
//!
//! A selector selects a sequence of units: lines, rows, values, matches. An answer holds as many whole units as its
//! bounds allow, and a [`Cursor`] names where it stopped; a unit that is larger than the bounds by itself is cut
//! between characters and continues in the next answer. The answers to one selector, put together, are the whole
//! selection.
//!
//! Decided here:
//! - Values of JSON and Python are shown as they were written, without line breaks and indentation. A string that a
//!   path leads to is shown without quotes and escapes.
//! - Rows are the items of the outermost array, or otherwise of the longest array within three levels of objects, and of
//!   arrays with a single object; the records of CSV; the values of JSON lines; otherwise lines. A row of names is above
//!   the rows and not one of them.
//! - A document is what a summary takes for one: a text may stand before it, and it may break off.
//! - Lines and rows of a document that is a text for the most part are those of this text, if it has such, below a line
//!   that says where it is; that text may be a document in turn. Matches come from this text or from the rows first, then
//!   from every other value, below its path.
//! - A path leads on into a text that is a document itself.
//! - XML is read as the JSON that it stands for, and its rows are looked for below its root; lines and matches are those
//!   of the XML.
//! - Lines end at a line feed; a carriage return before it is not part of the line. Other separators of Unicode are
//!   ordinary characters.
//!
//! Not here: where artifacts are kept, and which selectors a prompt should offer.

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
use crate::literal::LiteralError;
use contextweaver_core::text::{Estimator, largest};

/// The bounds on one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    max_bytes: usize,
    max_tokens: usize,
    estimator: Estimator,
}

impl Bounds {
    /// Bounds in bytes and in tokens of `estimator`. Numbers below 16 count as 16, so that one character always fits.
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

/// Where an answer stopped: the number of the next unit (from 0) and the byte in it at which to continue. Written `12`
/// or `12+340`.
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
    /// The units, one per line.
    pub text: String,
    /// Where to continue; `None` at the end of the selection.
    pub next: Option<Cursor>,
}

/// A selector cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The artifact is not text.
    #[error("`{handle}` is {media_type} of {bytes} bytes and not text; views show text only")]
    Binary {
        /// The handle of the artifact.
        handle: Handle,
        /// The media type of the artifact.
        media_type: String,
        /// The size of the artifact in bytes.
        bytes: usize,
    },
    /// Nothing is selected.
    #[error("`{selector}` selects nothing: {found}")]
    Nothing {
        /// What was asked for.
        selector: Selector,
        /// What the artifact has instead, for the message.
        found: String,
    },
    /// The selector asks for structure that the artifact does not have.
    #[error("`{selector}` needs JSON: {fault}")]
    NotJson {
        /// What was asked for.
        selector: Selector,
        /// What is there instead.
        fault: JsonFault,
    },
    /// A path is malformed.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A regular expression is malformed or too large.
    #[error("the pattern `{pattern}` is not usable: {reason}")]
    Pattern {
        /// The expression as it was given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A cursor is malformed, or belongs to another selector or artifact.
    #[error("the cursor `{0}` does not fit; pass on the one that the last answer named, with the same selector")]
    Cursor(String),
}

/// Why a content has no values for a selector of JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// The text is not a literal of JSON or Python; the error says where.
    #[error(transparent)]
    Literal(#[from] LiteralError),
    /// The outermost value is of this kind, e.g. `an array`, and no object.
    #[error("the value is {0} and has no keys")]
    NoKeys(&'static str),
}

/// The part of `content` that `selector` selects, from `cursor` on, as much of it as `bounds` allow.
///
/// # Errors
/// [`ViewError`] when the content is not text, does not have the structure that the selector needs, or when nothing is
/// selected.
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

/// The selected units, in order.
type Units<'i, 'u> = &'i mut (dyn Iterator<Item = Cow<'u, str>> + 'i);

/// As many units as fit, one per line.
fn page(units: Units<'_, '_>, cursor: Cursor, bounds: Bounds) -> Result<View, ViewError> {
    // The bound on bytes keeps this short: more units would not fit.
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

/// The longest prefix of `unit` within the bounds; at least one character.
fn beginning(unit: &str, bounds: Bounds) -> &str {
    let cut = |bytes: usize| unit.get(..unit.floor_char_boundary(bytes)).unwrap_or_default();
    let fits = |bytes: usize| bounds.estimator.count(cut(bytes)) <= bounds.max_tokens;
    let first = unit.chars().next().map_or(0, char::len_utf8);
    cut(largest(bounds.max_bytes.min(unit.len()), fits).max(first))
}

#[cfg(test)]
mod tests;
