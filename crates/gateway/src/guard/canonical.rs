//! One text for equal JSON values: what is hashed, signed and looked up.
//!
//! Members are sorted by UTF-16 code units and numbers written as in RFC 8785, with one difference: whole numbers that
//! a double cannot hold keep all their digits, so that two ids beyond 2^53 are never one. What is passed on as it is
//! written may have more digits than a [`Value`] holds: its canonical text follows from its own.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use crate::common::numbers::{Tokens, digits_beyond, is_held};
use crate::protocol::strict::{MOST_VALUES, has_at_most};

/// Whole numbers of less than this are written without an exponent when they came as a double.
const PLAIN: i32 = 21;

/// The canonical text of `value`.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

/// The canonical text of what `written` says, which was read as `value`; each number of it counts with all its digits.
pub(crate) fn canonical_as_written(written: &str, value: &Value) -> String {
    if is_all_held(written) { canonical(value) } else { rewritten(written, Form::Canonical) }
}

/// The canonical text of what `written` says; `None` where it is not JSON, or of so many values that they are not read at
/// once.
pub(crate) fn canonical_of(written: impl AsRef<[u8]>) -> Option<String> {
    let written = std::str::from_utf8(written.as_ref()).ok().filter(|written| has_at_most(written, MOST_VALUES))?;
    serde_json::from_str(written).ok().map(|value| canonical_as_written(written, &value))
}

/// What `written` says on one line, with each number as it stands there.
pub(crate) fn shown_as_written(written: &str) -> String {
    rewritten(written, Form::Shown)
}

/// The canonical text of a list of these canonical texts.
pub(crate) fn canonical_list(elements: &[&str]) -> String {
    format!("[{}]", elements.join(","))
}

/// The canonical text of an object with these members, whose values are canonical texts and whose names are sorted.
pub(crate) fn canonical_object(members: &[(&str, &str)]) -> String {
    let members: Vec<String> = members.iter().map(|(name, value)| member(name, value)).collect();
    format!("{{{}}}", members.join(","))
}

fn member(name: &str, value: &str) -> String {
    let mut text = String::new();
    write_string(name, &mut text);
    text.push(':');
    text.push_str(value);
    text
}

/// Whether a [`Value`] says all that the numbers of `text` say.
fn is_all_held(text: &str) -> bool {
    Tokens(text).all(|token| is_held(token, ecmascript))
}

/// Values come from the parser, which bounds their depth.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => write_number(number, text),
        Value::String(string) => write_string(string, text),
        Value::Array(elements) => {
            text.push('[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write(element, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            sorted.sort_unstable_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
            text.push('{');
            for (at, (key, value)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_string(key, text);
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
    }
}

/// The serialiser escapes exactly what RFC 8785 wants escaped, in the same way.
fn write_string(string: &str, text: &mut String) {
    text.push_str(&serde_json::to_string(string).unwrap_or_default());
}

fn write_number(number: &Number, text: &mut String) {
    match number.as_f64() {
        Some(double) if number.is_f64() => text.push_str(&ecmascript(double)),
        _ => text.push_str(&number.to_string()),
    }
}

/// How a text is written anew.
#[derive(Clone, Copy)]
enum Form {
    /// As in [`canonical`].
    Canonical,
    /// With members in their order and numbers as they were.
    Shown,
}

/// `text` in another form, with the digits of each number.
fn rewritten(text: &str, form: Form) -> String {
    let mut tokens = Tokens(text);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // It was read before. Whatever could not be read again would still be no other text.
    Rewriter { tokens: &mut tokens, form }.deserialize(&mut deserializer).unwrap_or_else(|_| text.to_owned())
}

/// Writes a value while it is read. The parser comes by its numbers in the order in which they stand in the text.
struct Rewriter<'r, 't> {
    tokens: &'r mut Tokens<'t>,
    form: Form,
}

impl<'t> Rewriter<'_, 't> {
    fn next(&mut self) -> Rewriter<'_, 't> {
        Rewriter { tokens: &mut *self.tokens, form: self.form }
    }

    fn number<E: Error>(self, number: &Number) -> Result<String, E> {
        let token = self.tokens.next().ok_or_else(|| E::custom("there are more numbers than in the text"))?;
        if let Form::Shown = self.form {
            return Ok(token.to_owned());
        }
        let mut held = String::new();
        write_number(number, &mut held);
        Ok(digits_beyond(token, &held).unwrap_or(held))
    }
}

impl<'de> DeserializeSeed<'de> for Rewriter<'_, '_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Rewriter<'_, '_> {
    type Value = String;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<String, A::Error> {
        // Of two members of one name the last counts, as in a `Value`.
        let (mut members, mut places) = (Vec::new(), BTreeMap::new());
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(self.next())?;
            let text = member(&name, &value);
            match places.get(&name) {
                Some(&at) => members[at] = (name, text),
                None => {
                    places.insert(name.clone(), members.len());
                    members.push((name, text));
                }
            }
        }
        if let Form::Canonical = self.form {
            members.sort_unstable_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
        }
        let members: Vec<String> = members.into_iter().map(|(_, text)| text).collect();
        Ok(format!("{{{}}}", members.join(",")))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<String, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = elements.next_element_seed(self.next())? {
            texts.push(text);
        }
        Ok(format!("[{}]", texts.join(",")))
    }

    fn visit_unit<E: Error>(self) -> Result<String, E> {
        Ok("null".to_owned())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<String, E> {
        self.number(&value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<String, E> {
        self.number(&value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<String, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("no finite number"))?;
        self.number(&number)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<String, E> {
        let mut text = String::new();
        write_string(value, &mut text);
        Ok(text)
    }
}

/// A finite double as ECMAScript writes it: the shortest digits that read back, an exponent below 10^-6 and from 10^21.
fn ecmascript(double: f64) -> String {
    if double == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{:e}", double.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if double < 0.0 { "-" } else { "" };
    // Digits before the point.
    let (count, before) = (digits.len() as i32, exponent + 1);
    let number = if count <= before && before <= PLAIN {
        format!("{digits}{}", "0".repeat((before - count) as usize))
    } else if 0 < before && before <= PLAIN {
        let (whole, rest) = digits.split_at(before as usize);
        format!("{whole}.{rest}")
    } else if -6 < before && before <= 0 {
        format!("0.{}{digits}", "0".repeat(before.unsigned_abs() as usize))
    } else {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let plus = if exponent < 0 { "" } else { "+" };
        format!("{first}{point}{rest}e{plus}{exponent}")
    };
    format!("{sign}{number}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_written_as_in_the_standard() {
        let cases = [
            // The examples of RFC 8785, sections 3.2.2 and 3.2.3 and appendix B.
            (
                r#"{"numbers":[333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001]}"#,
                r#"{"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27]}"#,
            ),
            (
                r#"{"literals":[null, true, false], "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"}"#,
                "{\"literals\":[null,true,false],\"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}",
            ),
            (
                r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#,
                "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}",
            ),
            (
                "[-0.0, 5e-324, -5e-324, 1.7976931348623157e308, 9007199254740992.0, 295147905179352830000.0]",
                "[0,5e-324,-5e-324,1.7976931348623157e+308,9007199254740992,295147905179352830000]",
            ),
            (
                "[999999999999999900000.0, 1e21, 9.999999999999997e22, 0.000001, 0.0000001, 333333333.3333332]",
                "[999999999999999900000,1e+21,9.999999999999997e+22,0.000001,1e-7,333333333.3333332]",
            ),
            (
                "[1.0, 1, 100.0, -1.5, 9007199254740993, 18446744073709551615]",
                "[1,1,100,-1.5,9007199254740993,18446744073709551615]",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(canonical(&serde_json::from_str(text).unwrap()), expected);
        }
    }

    fn as_written(text: &str) -> String {
        canonical_as_written(text, &serde_json::from_str(text).unwrap())
    }

    #[test]
    fn numbers_beyond_64_bits_keep_their_digits() {
        let cases = [
            ("12345678901234567890124", "12345678901234567890124"),
            ("-12345678901234567890999", "-12345678901234567890999"),
            ("1.2345678901234567890124e22", "12345678901234567890124"),
            ("123456789012345678901240E-1", "12345678901234567890124"),
            ("18446744073709551616", "18446744073709551616"),
            // A double that is beyond the whole numbers that it tells apart.
            ("9007199254740993.0", "9007199254740993"),
            ("0.12345678901234567890", "1234567890123456789e-19"),
            // What would be read as null.
            ("1e-400", "1e-400"),
            ("1e-99999999999999999999", "1e-99999999999999999999"),
            // What is held stays as it was.
            ("-0", "0"),
            ("0e99999999999999999999", "0"),
            ("333333333.33333329", "333333333.3333333"),
            ("1000000000000000000000", "1e+21"),
            ("295147905179352830000", "295147905179352830000"),
            ("18446744073709551615", "18446744073709551615"),
        ];
        for (text, expected) in cases {
            assert_eq!(as_written(text), expected, "{text}");
            assert_eq!(shown_as_written(text), text);
        }
        let text = r#"{"b" : ["9\\\"9", 99999999999999999999991, {}], "a":{"x":null, "n":1.50}, "\u0061" : [true, 2]}"#;
        assert_eq!(as_written(text), r#"{"a":[true,2],"b":["9\\\"9",99999999999999999999991,{}]}"#);
        let shown = r#"{"b":["9\\\"9",99999999999999999999991,{}],"a":[true,2]}"#;
        assert_eq!(shown_as_written(text), shown);
    }

    proptest! {
        #[test]
        fn whole_numbers_of_two_texts_are_two(left in "-?[1-9][0-9]{0,39}", right in "-?[1-9][0-9]{0,39}", last in 0..10) {
            prop_assume!(left != right);
            prop_assert_ne!(as_written(&left), as_written(&right));
            // Those that differ in the last digit are the nearest of all.
            let neighbour = format!("{}{last}", &left[..left.len() - 1]);
            prop_assume!(neighbour != left && neighbour.trim_start_matches('-') != "0");
            prop_assert_ne!(as_written(&format!("[{left}]")), as_written(&format!("[{neighbour}]")));
            prop_assert_eq!(as_written(&format!("{left}e0")), as_written(&format!("{left}.0")));
        }

        #[test]
        fn what_is_held_is_written_as_before(signed in any::<i64>(), unsigned in any::<u64>(), bits in any::<u64>()) {
            let double = f64::from_bits(bits);
            prop_assume!(double.is_finite());
            let forms = [format!("{double}"), format!("{double:e}"), Value::from(double).to_string(), ecmascript(double)];
            for text in forms.into_iter().chain([signed.to_string(), unsigned.to_string()]) {
                prop_assert_eq!(as_written(&text), canonical(&serde_json::from_str(&text).unwrap()), "{}", text);
            }
        }

        #[test]
        fn all_else_is_written_as_before(text in "\\PC{0,8}", number in any::<i64>(), more in any::<f64>()) {
            prop_assume!(more.is_finite());
            let value = serde_json::json!({"b": [text, number, {(text.clone()): more}], (text): null, "a": true});
            let with = |large: &str| format!("[{large},{value}]");
            let written = as_written(&with("99999999999999999999991"));
            prop_assert_eq!(written, with("99999999999999999999991").replace(&value.to_string(), &canonical(&value)));
        }

        #[test]
        fn doubles_read_back(bits in any::<u64>()) {
            let double = f64::from_bits(bits);
            prop_assume!(double.is_finite());
            prop_assert_eq!(ecmascript(double).parse::<f64>().unwrap(), double);
        }

        #[test]
        fn the_order_of_members_does_not_matter(mut members in proptest::collection::vec(("\\PC{0,4}", any::<i64>()), 0..6)) {
            members.dedup_by(|left, right| left.0 == right.0);
            members.sort();
            members.dedup_by(|left, right| left.0 == right.0);
            let forth: Value = members.iter().map(|(key, value)| (key.clone(), Value::from(*value))).collect();
            let back: Value = members.iter().rev().map(|(key, value)| (key.clone(), Value::from(*value))).collect();
            prop_assert_eq!(canonical(&forth), canonical(&back));
            let read: Value = serde_json::from_str(&canonical(&forth)).unwrap();
            prop_assert_eq!(read, forth);
        }
    }
}
