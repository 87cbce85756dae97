//! JSON and Python literals as a tape of spans over their source text.
//!
//! Results of tools are JSON, or what `repr` prints in Python, or neither. Summaries, views and the comparison of
//! results need their structure and, for each value, exactly what was written; a tree of decoded values takes ten times
//! the memory and loses the notation. So a value is a span: eight bytes for a scalar, sixteen for an array or object,
//! in document order. Nothing is copied, nothing recurses, and depth is bounded by [`MAX_DEPTH`].
//!
//! The JSON dialect accepts what RFC 8259 does, lone surrogates and numbers of any size included. The Python dialect
//! accepts more than `repr` prints: it is a superset of JSON, so that `NaN`, single quotes, trailing commas and words
//! of both languages pass in one text. Calls such as `datetime.date(2024, 5, 1)` are scalars, `Decimal('1.5')` is a
//! number, tuples and sets are arrays. Comments and unquoted keys are not accepted.

mod decimal;
mod equal;
mod parse;
mod write;

use std::borrow::Cow;
use std::ops::Range;

pub use decimal::{Decimal, Sum};
pub use parse::{Dialect, LiteralError, MAX_BYTES, MAX_DEPTH, Problem};

/// A literal and its source text.
#[derive(Debug, Clone)]
pub struct Document<'a> {
    text: &'a str,
    /// Scalars take one word, arrays and objects two, followed by what they hold (alternating keys and values).
    tape: Vec<Word>,
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Keys and values; also a Python `dict`.
    Object,
    /// Items; also a Python list, tuple or set.
    Array,
    /// A text; also Python `bytes`.
    String,
    /// A number; also `nan`, `inf` and `Decimal('…')`.
    Number,
    /// True or false.
    Bool,
    /// `null` or `None`.
    Null,
    /// A Python expression that is none of these, e.g. `datetime.date(2024, 5, 1)`.
    Call,
}

/// One value of a document.
#[derive(Debug, Clone, Copy)]
pub struct Value<'d> {
    document: &'d Document<'d>,
    at: u32,
}

/// Bits 0-31: the start of the span. Bits 32-35: the kind. Bits 36-63: the length of a scalar, or the number of entries
/// of an array or object, whose second word holds the end of the span (bits 0-31) and the tape position after its
/// contents (bits 32-63).
type Word = u64;

const LENGTH_BITS: u32 = 28;

fn word(start: usize, kind: Kind, length: usize) -> Word {
    let mask = (1 << LENGTH_BITS) - 1;
    (start as Word & 0xFFFF_FFFF) | (kind as Word) << 32 | (length as Word & mask) << 36
}

impl<'a> Document<'a> {
    /// Parses the single value in `text`, with white space around it.
    ///
    /// # Errors
    /// [`LiteralError`] with where and why `text` is not such a literal.
    pub fn parse(text: &'a str, dialect: Dialect) -> Result<Self, LiteralError> {
        parse::one(text, dialect).map(|tape| Self { text, tape })
    }

    /// Parses as JSON, or otherwise as Python.
    ///
    /// # Errors
    /// The error of the dialect that read further.
    pub fn parse_any(text: &'a str) -> Result<Self, LiteralError> {
        Self::parse(text, Dialect::Json).or_else(|json| {
            Self::parse(text, Dialect::Python).map_err(|python| if python.offset > json.offset { python } else { json })
        })
    }

    /// Parses the value at the start of `text`, after white space, and returns the byte where it ends.
    ///
    /// # Errors
    /// [`LiteralError`] with where and why `text` does not begin with a literal.
    pub fn prefix(text: &'a str, dialect: Dialect) -> Result<(Self, usize), LiteralError> {
        parse::prefix(text, dialect).map(|(tape, end)| (Self { text, tape }, end))
    }

    /// Parses arrays and objects one after the other, e.g. JSON lines, as the items of one array.
    ///
    /// # Errors
    /// [`LiteralError`] with where and why `text` is not such a sequence.
    pub fn sequence(text: &'a str, dialect: Dialect) -> Result<Self, LiteralError> {
        parse::sequence(text, dialect).map(|tape| Self { text, tape })
    }

    /// Parses as much as possible of a text that breaks off or goes wrong: arrays and objects end there, and an
    /// unfinished entry is left out. Returns the error too, if there was one; `None` if nothing could be read.
    #[must_use]
    pub fn partial(text: &'a str, dialect: Dialect) -> Option<(Self, Option<LiteralError>)> {
        parse::partial(text, dialect).map(|(tape, error)| (Self { text, tape }, error))
    }

    /// The outermost value.
    #[must_use]
    pub fn root(&self) -> Value<'_> {
        Value { document: self, at: 0 }
    }

    /// The source text.
    #[must_use]
    pub fn source(&self) -> &'a str {
        self.text
    }
}

impl<'d> Value<'d> {
    /// Where the value is: a number that no other value of the document has.
    #[must_use]
    pub fn place(&self) -> u32 {
        self.at
    }

    /// The kind of the value.
    #[must_use]
    pub fn kind(self) -> Kind {
        match (self.word(0) >> 32) & 0xF {
            0 => Kind::Object,
            1 => Kind::Array,
            2 => Kind::String,
            3 => Kind::Number,
            4 => Kind::Bool,
            5 => Kind::Null,
            _ => Kind::Call,
        }
    }

    /// Whether it is an array or an object.
    #[must_use]
    pub fn is_container(self) -> bool {
        matches!(self.kind(), Kind::Object | Kind::Array)
    }

    /// The range of its bytes in the source.
    #[must_use]
    pub fn span(self) -> Range<usize> {
        let start = (self.word(0) & 0xFFFF_FFFF) as usize;
        if self.is_container() {
            start..(self.word(1) & 0xFFFF_FFFF) as usize
        } else {
            start..start + (self.word(0) >> 36) as usize
        }
    }

    /// The value as it was written.
    #[must_use]
    pub fn text(self) -> &'d str {
        self.document.text.get(self.span()).unwrap_or_default()
    }

    /// The number of items or members; 0 for scalars.
    #[must_use]
    pub fn len(self) -> usize {
        if self.is_container() { (self.word(0) >> 36) as usize } else { 0 }
    }

    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The items of an array, or the values of an object, in order.
    pub fn items(self) -> impl Iterator<Item = Value<'d>> {
        let object = self.kind() == Kind::Object;
        let mut at = self.at + 2;
        (0..self.len()).map(move |_| {
            if object {
                at = Value { document: self.document, at }.after();
            }
            let value = Value { document: self.document, at };
            at = value.after();
            value
        })
    }

    /// The keys and values of an object, in order; nothing for other kinds. Keys are strings in JSON, any value in
    /// Python.
    pub fn members(self) -> impl Iterator<Item = (Value<'d>, Value<'d>)> {
        let mut at = self.at + 2;
        let count = if self.kind() == Kind::Object { self.len() } else { 0 };
        (0..count).map(move |_| {
            let key = Value { document: self.document, at };
            let value = Value { document: self.document, at: key.after() };
            at = value.after();
            (key, value)
        })
    }

    /// The value of `key` in an object; the last one if there are several. Takes time in proportion to the members.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Value<'d>> {
        self.members().filter(|(name, _)| name.is_text(key)).last().map(|(_, value)| value)
    }

    /// The item at `index` of an array. Takes time in proportion to the index.
    #[must_use]
    pub fn at(self, index: usize) -> Option<Value<'d>> {
        if self.kind() == Kind::Array { self.items().nth(index) } else { None }
    }

    /// A string without its quotes and escapes. A lone surrogate becomes U+FFFD.
    #[must_use]
    pub fn string(self) -> Option<Cow<'d, str>> {
        (self.kind() == Kind::String).then(|| write::decoded(self.text()))
    }

    /// A string without quotes and escapes, anything else as it was written: the name of a key or the content of a
    /// cell.
    #[must_use]
    pub fn plain(self) -> Cow<'d, str> {
        self.string().unwrap_or_else(|| Cow::Borrowed(self.number().unwrap_or_else(|| self.text())))
    }

    /// A number as it was written, without `Decimal('…')` around it.
    #[must_use]
    pub fn number(self) -> Option<&'d str> {
        (self.kind() == Kind::Number).then(|| write::inside_decimal(self.text()))
    }

    /// Whether it is the string `text`, or is written like it.
    #[must_use]
    pub fn is_text(self, text: &str) -> bool {
        self.plain() == text
    }

    /// The value and everything in it, in document order.
    #[must_use]
    pub fn descendants(self) -> Descendants<'d> {
        Descendants { document: self.document, at: self.at, end: self.after(), open: Vec::new() }
    }

    fn word(self, offset: u32) -> Word {
        self.document.tape.get((self.at + offset) as usize).copied().unwrap_or_default()
    }

    /// The tape position after the value and everything in it.
    fn after(self) -> u32 {
        if self.is_container() { (self.word(1) >> 32) as u32 } else { self.at + 1 }
    }
}

/// Values in document order.
#[derive(Debug)]
pub struct Descendants<'d> {
    document: &'d Document<'d>,
    at: u32,
    end: u32,
    /// For each array or object around the next value its end on the tape, and its kind.
    open: Vec<(u32, Kind)>,
}

/// A value met on a walk, with its place.
#[derive(Debug, Clone, Copy)]
pub struct Visit<'d> {
    /// The depth: 0 for the value where the walk began, 1 for its entries, and so on.
    pub depth: usize,
    /// Its key, if it is a member of an object.
    pub key: Option<Value<'d>>,
    /// The value itself.
    pub value: Value<'d>,
}

impl<'d> Iterator for Descendants<'d> {
    type Item = Visit<'d>;

    fn next(&mut self) -> Option<Visit<'d>> {
        while self.open.last().is_some_and(|(end, _)| *end == self.at) {
            self.open.pop();
        }
        if self.at >= self.end {
            return None;
        }
        let mut value = Value { document: self.document, at: self.at };
        let mut key = None;
        if matches!(self.open.last(), Some((_, Kind::Object))) {
            key = Some(value);
            value.at = value.after();
        }
        let depth = self.open.len();
        self.at = if value.is_container() {
            self.open.push((value.after(), value.kind()));
            value.at + 2
        } else {
            value.at + 1
        };
        Some(Visit { depth, key, value })
    }
}

#[cfg(test)]
mod tests;
