//! Parses text into a tape.

use std::fmt;

use super::{Kind, LENGTH_BITS, Word, word};

/// The number of arrays and objects inside each other at most.
pub const MAX_DEPTH: usize = 512;

/// The number of bytes of a text at most.
pub const MAX_BYTES: usize = (1 << LENGTH_BITS) - 1;

/// The language of a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// JSON as in RFC 8259.
    Json,
    /// What `repr` prints in Python, and all of JSON.
    Python,
}

/// A text is not a literal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no literal: {problem} at byte {offset} (line {line})")]
pub struct LiteralError {
    /// The byte at which reading stopped.
    pub offset: usize,
    /// The line of that byte, from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// Something else was found where this is needed.
    Expected(&'static str),
    /// A string has no closing quote.
    UnclosedString,
    /// A backslash in a string is not followed by a known escape.
    Escape,
    /// A JSON string holds a control character that is not escaped.
    ControlCharacter,
    /// More than [`MAX_DEPTH`] arrays and objects are inside each other.
    TooDeep,
    /// The text has more than [`MAX_BYTES`] bytes.
    TooLarge,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expected(what) => write!(formatter, "expected {what}"),
            Self::UnclosedString => formatter.write_str("the string is not closed"),
            Self::Escape => formatter.write_str("unknown escape in a string"),
            Self::ControlCharacter => formatter.write_str("control character in a string; write it as \\u00XX"),
            Self::TooDeep => write!(formatter, "more than {MAX_DEPTH} levels of nesting"),
            Self::TooLarge => write!(formatter, "more than {MAX_BYTES} bytes"),
        }
    }
}

pub(super) fn one(text: &str, dialect: Dialect) -> Result<Vec<Word>, LiteralError> {
    let (parser, outcome) = run(text, dialect, |parser| {
        parser.value()?;
        parser.skip_whitespace();
        if parser.peek().is_some() { Err(Problem::Expected("the end of the text")) } else { Ok(()) }
    });
    outcome.map(|()| parser.tape)
}

pub(super) fn prefix(text: &str, dialect: Dialect) -> Result<(Vec<Word>, usize), LiteralError> {
    let (parser, outcome) = run(text, dialect, Parser::value);
    outcome.map(|()| (parser.tape, parser.at))
}

pub(super) fn sequence(text: &str, dialect: Dialect) -> Result<Vec<Word>, LiteralError> {
    let (parser, outcome) = run(text, dialect, |parser| {
        parser.open(Shape::List { close: 0 })?;
        loop {
            parser.skip_whitespace();
            match parser.peek() {
                Some(b'[' | b'{' | b'(') => parser.value()?,
                None => {
                    parser.close();
                    return Ok(());
                }
                Some(_) => return Err(Problem::Expected("an array or object")),
            }
            if let Some(frame) = parser.stack.last_mut() {
                frame.count += 1;
            }
        }
    });
    outcome.map(|()| parser.tape)
}

pub(super) fn partial(text: &str, dialect: Dialect) -> Option<(Vec<Word>, Option<LiteralError>)> {
    let (mut parser, outcome) = run(text, dialect, Parser::value);
    let error = outcome.err();
    if error.is_some() {
        parser.close_all();
    }
    (!parser.tape.is_empty()).then_some((parser.tape, error))
}

fn run<'a>(
    text: &'a str,
    dialect: Dialect,
    read: impl FnOnce(&mut Parser<'a>) -> Result<(), Problem>,
) -> (Parser<'a>, Result<(), LiteralError>) {
    let mut parser = Parser { bytes: text.as_bytes(), at: 0, dialect, tape: Vec::new(), stack: Vec::new() };
    let outcome = if text.len() > MAX_BYTES { Err(Problem::TooLarge) } else { read(&mut parser) };
    let outcome = outcome.map_err(|problem| {
        let offset = parser.at.min(text.len());
        let before = parser.bytes.get(..offset).unwrap_or_default();
        LiteralError { offset, line: memchr::memchr_iter(b'\n', before).count() + 1, problem }
    });
    (parser, outcome)
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    dialect: Dialect,
    tape: Vec<Word>,
    stack: Vec<Frame>,
}

/// An array or object that is not closed yet.
#[derive(Clone, Copy)]
struct Frame {
    /// Its position on the tape.
    at: usize,
    /// The number of complete items or members so far.
    count: usize,
    /// The position on the tape where the last of them ends.
    complete: usize,
    /// What comes next in it.
    shape: Shape,
}

#[derive(Clone, Copy)]
enum Shape {
    /// Items up to the bracket `close`.
    List { close: u8 },
    /// A Python brace, which may open a set or a dictionary: the first colon decides.
    Brace,
    /// An object in which a key comes next.
    Key,
    /// An object in which the value of a key comes next.
    Member,
}

enum Next {
    /// An item comes next, or the end of the array or object that was opened.
    First,
    /// An item comes next.
    Item,
    /// A separator or an end comes next.
    After,
}

impl<'a> Parser<'a> {
    /// Reads one value, and everything in it.
    fn value(&mut self) -> Result<(), Problem> {
        let base = self.stack.len();
        let mut next = Next::Item;
        loop {
            if matches!(next, Next::After) && self.stack.len() == base {
                return Ok(());
            }
            self.skip_whitespace();
            next = match next {
                Next::First if self.at_close() => self.close_bracket(),
                Next::First | Next::Item => self.item()?,
                Next::After => self.after_item()?,
            };
        }
    }

    /// Reads a scalar, or the opening of an array or object.
    fn item(&mut self) -> Result<Next, Problem> {
        let json = self.dialect == Dialect::Json;
        let start = self.at;
        let byte = self.peek();
        if json && byte != Some(b'"') && matches!(self.stack.last(), Some(Frame { shape: Shape::Key, .. })) {
            return Err(Problem::Expected("a key in double quotes"));
        }
        let kind = match byte {
            Some(b'"') => self.string(b'"')?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'[') => return self.open(Shape::List { close: b']' }),
            Some(b'{') => return self.open(if json { Shape::Key } else { Shape::Brace }),
            Some(b'(') if !json => return self.open(Shape::List { close: b')' }),
            Some(b'\'') if !json => self.string(b'\'')?,
            _ if json => self.json_word()?,
            _ => self.python_word()?,
        };
        self.tape.push(word(start, kind, self.at - start));
        Ok(Next::After)
    }

    /// Reads a colon, a comma or a closing bracket.
    fn after_item(&mut self) -> Result<Next, Problem> {
        let byte = self.peek();
        let python = self.dialect == Dialect::Python;
        let length = self.tape.len();
        let Some(frame) = self.stack.last_mut() else { return Ok(Next::After) };
        match (frame.shape, byte) {
            (Shape::Key | Shape::Brace, Some(b':')) => {
                frame.shape = Shape::Member;
                self.at += 1;
                return Ok(Next::Item);
            }
            (Shape::Key, _) => return Err(Problem::Expected("`:`")),
            (Shape::Brace, _) => frame.shape = Shape::List { close: b'}' },
            (Shape::Member, _) => frame.shape = Shape::Key,
            (Shape::List { .. }, _) => {}
        }
        frame.count += 1;
        frame.complete = length;
        if byte == Some(b',') {
            self.at += 1;
            return Ok(if python { Next::First } else { Next::Item });
        }
        if self.at_close() {
            return Ok(self.close_bracket());
        }
        Err(Problem::Expected(match self.stack.last() {
            Some(Frame { shape: Shape::List { close: b']' }, .. }) => "`,` or `]`",
            Some(Frame { shape: Shape::List { close: b')' }, .. }) => "`,` or `)`",
            _ => "`,` or `}`",
        }))
    }

    fn at_close(&self) -> bool {
        let close = self.stack.last().map(|frame| match frame.shape {
            Shape::List { close } => close,
            Shape::Brace | Shape::Key | Shape::Member => b'}',
        });
        close.is_some() && close == self.peek()
    }

    fn open(&mut self, shape: Shape) -> Result<Next, Problem> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(Problem::TooDeep);
        }
        let at = self.tape.len();
        self.tape.extend([self.at as Word, 0]);
        self.stack.push(Frame { at, count: 0, complete: at + 2, shape });
        // The array around a sequence has no bracket.
        if !matches!(shape, Shape::List { close: 0 }) {
            self.at += 1;
        }
        Ok(Next::First)
    }

    fn close_bracket(&mut self) -> Next {
        self.at += 1;
        self.close();
        Next::After
    }

    /// Closes the innermost array or object, which ends here.
    fn close(&mut self) {
        if let Some(frame) = self.stack.pop() {
            let kind = if matches!(frame.shape, Shape::List { .. }) { Kind::Array } else { Kind::Object };
            let next = self.tape.len() as Word;
            if let Some([first, second]) = self.tape.get_mut(frame.at..frame.at + 2) {
                *first = word(*first as usize, kind, frame.count);
                *second = self.at as Word | next << 32;
            }
        }
    }

    /// Closes everything that is open, without the unfinished entry of each.
    fn close_all(&mut self) {
        let mut inner = false;
        while let Some(frame) = self.stack.last_mut() {
            if inner && matches!(frame.shape, Shape::List { .. } | Shape::Member) {
                frame.count += 1;
                frame.complete = self.tape.len();
            }
            self.tape.truncate(frame.complete);
            self.close();
            inner = true;
        }
    }

    /// Reads a string from its opening quote to after the closing one.
    fn string(&mut self, quote: u8) -> Result<Kind, Problem> {
        let start = self.at;
        let mut at = start + 1;
        loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let Some(length) = memchr::memchr2(quote, b'\\', rest) else {
                return Err(Problem::UnclosedString);
            };
            let json = self.dialect == Dialect::Json;
            let piece = rest.get(..length).unwrap_or_default();
            if json && piece.iter().fold(false, |found, byte| found | (*byte < 0x20)) {
                self.at = at + piece.iter().position(|byte| *byte < 0x20).unwrap_or_default();
                return Err(Problem::ControlCharacter);
            }
            at += length;
            if self.bytes.get(at) == Some(&quote) {
                self.at = at + 1;
                return Ok(Kind::String);
            }
            let known = match self.bytes.get(at + 1) {
                Some(b'u') if json => {
                    let digits = self.bytes.get(at + 2..at + 6).unwrap_or_default();
                    digits.len() == 4 && digits.iter().all(u8::is_ascii_hexdigit)
                }
                Some(byte) if json => b"\"\\/bfnrt".contains(byte),
                byte => byte.is_some(),
            };
            if !known {
                self.at = at;
                return Err(Problem::Escape);
            }
            at += 2;
        }
    }

    fn number(&mut self) -> Result<Kind, Problem> {
        let start = self.at;
        self.skip_if(|byte| byte == b'-');
        if self.dialect == Dialect::Python && self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
            return match self.take_word() {
                b"inf" | b"nan" | b"Infinity" | b"NaN" => Ok(Kind::Number),
                _ => Err(self.expected_at(start, "a number")),
            };
        }
        let leading = self.peek();
        let digits = self.skip_digits();
        if digits == 0 || (leading == Some(b'0') && digits > 1) {
            return Err(self.expected_at(start, "a number"));
        }
        if self.skip_if(|byte| byte == b'.') && self.skip_digits() == 0 && self.dialect == Dialect::Json {
            return Err(Problem::Expected("a digit"));
        }
        if self.skip_if(|byte| byte == b'e' || byte == b'E') {
            self.skip_if(|byte| byte == b'+' || byte == b'-');
            if self.skip_digits() == 0 {
                return Err(Problem::Expected("a digit"));
            }
        }
        Ok(Kind::Number)
    }

    fn json_word(&mut self) -> Result<Kind, Problem> {
        let start = self.at;
        match self.take_word() {
            b"true" | b"false" => Ok(Kind::Bool),
            b"null" => Ok(Kind::Null),
            _ => Err(self.expected_at(start, "a value")),
        }
    }

    fn python_word(&mut self) -> Result<Kind, Problem> {
        let start = self.at;
        let word = self.take_word();
        match (word, self.peek()) {
            (b"True" | b"False" | b"true" | b"false", _) => return Ok(Kind::Bool),
            (b"None" | b"null", _) => return Ok(Kind::Null),
            (b"inf" | b"nan" | b"Infinity" | b"NaN", _) => return Ok(Kind::Number),
            (b"b" | b"B" | b"u" | b"r" | b"rb" | b"br", Some(quote @ (b'"' | b'\''))) => return self.string(quote),
            (b"", Some(b'<')) => {}
            (b"", _) | (_, None) => return Err(self.expected_at(start, "a value")),
            (_, Some(b'(')) => {}
            _ => return Err(self.expected_at(start, "a value")),
        }
        let decimal = matches!(word, b"Decimal" | b"decimal.Decimal");
        self.skip_balanced(start)?;
        let text = self.bytes.get(start..self.at).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let number = decimal && text.is_some_and(|text| super::write::inside_decimal(text).len() < text.len());
        Ok(if number { Kind::Number } else { Kind::Call })
    }

    /// Reads from an opening bracket to after the bracket that closes it. `start` is where an error is reported.
    fn skip_balanced(&mut self, start: usize) -> Result<(), Problem> {
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'(' | b'[' | b'{' | b'<' => open += 1,
                b')' | b']' | b'}' | b'>' => open -= 1,
                b'"' | b'\'' => {
                    self.string(byte)?;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return Ok(());
            }
        }
        Err(self.expected_at(start, "a value"))
    }

    fn expected_at(&mut self, start: usize, what: &'static str) -> Problem {
        self.at = start;
        Problem::Expected(what)
    }

    fn take_word(&mut self) -> &'a [u8] {
        let start = self.at;
        while self.skip_if(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.') {}
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    fn skip_digits(&mut self) -> usize {
        let start = self.at;
        while self.skip_if(|byte| byte.is_ascii_digit()) {}
        self.at - start
    }

    fn skip_whitespace(&mut self) {
        while self.skip_if(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {}
    }

    fn skip_if(&mut self, condition: impl Fn(u8) -> bool) -> bool {
        let met = self.peek().is_some_and(condition);
        self.at += usize::from(met);
        met
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}
