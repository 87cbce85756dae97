//! One text for equal JSON values: what is hashed, signed and looked up.
//!
//! Members are sorted by UTF-16 code units and numbers written as in RFC 8785, with one difference: whole numbers that
//! a double cannot hold keep all their digits, so that two ids beyond 2^53 are never one.

use serde_json::{Number, Value};

/// Whole numbers of less than this are written without an exponent when they came as a double.
const PLAIN: i32 = 21;

/// The canonical text of `value`.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
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

    proptest! {
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
