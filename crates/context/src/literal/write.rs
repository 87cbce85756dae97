//! Writes a tape as text: decoded strings, and values as JSON without white space.

use std::borrow::Cow;
use std::fmt::{self, Write};

use super::{Kind, Value};

/// The content of a string literal, without prefix, quotes and escapes. Unknown escapes stay as they are.
pub(super) fn decoded(literal: &str) -> Cow<'_, str> {
    let open = literal.bytes().position(|byte| matches!(byte, b'"' | b'\'')).unwrap_or_default();
    let raw = literal.bytes().take(open).any(|byte| byte == b'r');
    let inside = literal.get(open + 1..literal.len().saturating_sub(1)).unwrap_or_default();
    if raw || memchr::memchr(b'\\', inside.as_bytes()).is_none() {
        return Cow::Borrowed(inside);
    }
    let mut text = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        rest = match escape(after) {
            Some((character, length)) => {
                text.push(character);
                &after[length..]
            }
            None if after.starts_with('\n') => &after[1..],
            None => {
                text.push('\\');
                after
            }
        };
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The character that an escape stands for, and the number of bytes that it takes after the backslash.
fn escape(after: &str) -> Option<(char, usize)> {
    let hex = |from: usize, to: usize| after.get(from..to).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let replacement = char::REPLACEMENT_CHARACTER;
    let simple = match after.bytes().next()? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'a' => '\u{7}',
        b'v' => '\u{b}',
        b'0' => '\0',
        byte @ (b'"' | b'\'' | b'\\' | b'/') => byte as char,
        b'x' => return hex(1, 3).and_then(char::from_u32).map(|character| (character, 3)),
        b'U' => return hex(1, 9).map(|code| (char::from_u32(code).unwrap_or(replacement), 9)),
        b'u' => {
            let high = hex(1, 5)?;
            let low = after.get(5..7).filter(|text| *text == "\\u").and_then(|_| hex(7, 11));
            return match (high, low) {
                (0xD800..0xDC00, Some(low @ 0xDC00..0xE000)) => {
                    char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)).map(|pair| (pair, 11))
                }
                _ => Some((char::from_u32(high).unwrap_or(replacement), 5)),
            };
        }
        _ => return None,
    };
    Some((simple, 1))
}

/// The content of `Decimal('…')`; any other text as it is.
pub(super) fn inside_decimal(text: &str) -> &str {
    let inside = text.strip_prefix("decimal.").unwrap_or(text).strip_prefix("Decimal(");
    let inside = inside.and_then(|rest| rest.strip_suffix(')')).map(|rest| rest.trim_matches(['\'', '"']));
    let digits = |inside: &&str| inside.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    inside.filter(|inside| !inside.is_empty()).filter(digits).unwrap_or(text)
}

impl Value<'_> {
    /// Writes the value as JSON without white space: the order of keys and the notation of numbers stay, and `\u`
    /// escapes of characters that need none are resolved. Values that JSON does not have (`nan`, Python calls) become
    /// strings, and so do keys that are not strings.
    ///
    /// # Errors
    /// The error of `out`, at once: a bounded writer bounds the work.
    fn write_minified(self, out: &mut impl Write) -> fmt::Result {
        // The containers around the value that is written: their end on the tape, whether they have keys, and entries
        // so far.
        let mut open: Vec<(u32, Kind, usize)> = Vec::new();
        let mut value = self;
        loop {
            if let Some((_, kind, written)) = open.last_mut() {
                let key = *kind == Kind::Object && written.is_multiple_of(2);
                let separator = if *written == 0 {
                    ""
                } else if *kind == Kind::Object && !key {
                    ":"
                } else {
                    ","
                };
                out.write_str(separator)?;
                *written += 1;
                if key && value.kind() != Kind::String {
                    out.write_str(&quoted(value.text()))?;
                    value.at = value.after();
                    continue;
                }
            }
            match value.kind() {
                kind @ (Kind::Object | Kind::Array) => {
                    out.write_char(if kind == Kind::Object { '{' } else { '[' })?;
                    open.push((value.after(), kind, 0));
                    value.at += 2;
                }
                _ => {
                    out.write_str(&scalar(value))?;
                    value.at += 1;
                }
            }
            while open.last().is_some_and(|(end, ..)| *end == value.at) {
                let kind = open.pop().map(|(_, kind, _)| kind);
                out.write_char(if kind == Some(Kind::Object) { '}' } else { ']' })?;
            }
            if open.is_empty() {
                return Ok(());
            }
        }
    }

    /// The value as JSON without blanks; `None` when that takes more than `limit` bytes.
    #[must_use]
    pub fn minified(self, limit: usize) -> Option<String> {
        let mut out = Bounded { text: String::new(), limit };
        self.write_minified(&mut out).ok().map(|()| out.text)
    }
}

/// A scalar as JSON.
fn scalar(value: Value<'_>) -> Cow<'_, str> {
    let text = value.text();
    match value.kind() {
        Kind::Bool => Cow::Borrowed(if text.eq_ignore_ascii_case("true") { "true" } else { "false" }),
        Kind::Null => Cow::Borrowed("null"),
        Kind::Number => {
            let number = value.number().unwrap_or(text);
            let json = number.trim_start_matches('-').starts_with(|first: char| first.is_ascii_digit())
                && !number.ends_with('.')
                && !number.contains(".e");
            if json { Cow::Borrowed(number) } else { quoted(number) }
        }
        Kind::String if text.starts_with('"') && !text.contains("\\u") && serde_reads(text) => Cow::Borrowed(text),
        Kind::String => match value.string() {
            // A lone surrogate is not a character: the literal is kept as written.
            Some(string) if string.contains(char::REPLACEMENT_CHARACTER) && text.starts_with('"') => {
                Cow::Borrowed(text)
            }
            string => quoted(&string.unwrap_or_default()),
        },
        _ => quoted(text),
    }
}

/// Whether every escape of a literal in double quotes is a JSON escape.
fn serde_reads(literal: &str) -> bool {
    let mut rest = literal;
    while let Some((_, after)) = rest.split_once('\\') {
        if !after.starts_with(['"', '\\', '/', 'b', 'f', 'n', 'r', 't']) {
            return false;
        }
        rest = &after[1..];
    }
    !literal.bytes().any(|byte| byte < 0x20)
}

fn quoted(text: &str) -> Cow<'static, str> {
    Cow::Owned(serde_json::Value::from(text).to_string())
}

struct Bounded {
    text: String,
    limit: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.text.len() + text.len() > self.limit {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}
