//! Numbers that are passed on as they are written.
//!
//! An answer is read and written anew, and what 64 bits do not hold would become a neighbour of it.

use serde_json::Value;

use super::answer_forms::{AnswersFault, member};
use crate::common::numbers::{MOST_DIGITS, Tokens};

/// Refuses a document with a number that 64 bits do not hold as it is written in `text`.
///
/// # Errors
/// The place of the first such number.
pub(super) fn check(text: &str, document: &Value) -> Result<(), AnswersFault> {
    let Some((mut before, token)) = Tokens(text).enumerate().find(|(_, token)| !is_exact(token)) else {
        return Ok(());
    };
    let place = place_of(document, "", 0, &mut before).unwrap_or_default();
    let short: String = token.chars().take(40).collect();
    let more = if short.len() < token.len() { "…" } else { "" };
    let problem = format!("the number {short}{more} has more digits than 64 bits hold; write it as a text");
    Err(AnswersFault::new(place, problem))
}

/// Whether 64 bits hold the number as it is written.
fn is_exact(token: &str) -> bool {
    if token.parse::<i64>().is_ok() || token.parse::<u64>().is_ok() {
        return true;
    }
    let mantissa = token.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    // Nulls at the ends say how large it is.
    digits.trim_matches('0').len() <= MOST_DIGITS
}

/// The place of the number before which there are `before` others in `value`.
fn place_of(value: &Value, place: &str, level: usize, before: &mut usize) -> Option<String> {
    match value {
        Value::Number(_) if *before == 0 => Some(place.to_owned()),
        Value::Number(_) => {
            *before -= 1;
            None
        }
        Value::Array(values) => values
            .iter()
            .enumerate()
            .find_map(|(at, value)| place_of(value, &format!("{place}[{at}]"), level + 1, before)),
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let is_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            // On the second level are the names of a catalog.
            let place = match (level, is_word) {
                (0, true) => name.clone(),
                (level, true) if level != 1 => format!("{place}.{name}"),
                _ => member(place, name),
            };
            place_of(value, &place, level + 1, before)
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_as_exact_as_it_is_written() {
        let cases = [
            ("9223372036854775807", true),
            ("-9223372036854775808", true),
            ("18446744073709551615", true),
            ("18446744073709551616", false),
            ("-9223372036854775809", false),
            ("123456789012345678901234567890", false),
            ("1e300", true),
            ("100000000000000000000000", true),
            ("0.1", true),
            ("-0.0001234567890123456", true),
            ("0.12345678901234567890", false),
            ("12345678901234567890.5e-3", false),
        ];
        for (text, expected) in cases {
            assert_eq!(is_exact(text), expected, "{text}");
        }
    }

    #[test]
    fn the_place_of_the_first_is_said() {
        let cases = [
            (r#"{"a": {"b": {"c": [1, "2\" 99999999999999999999991", -3.5e2, null]}}}"#, None),
            (r#"{"a": {"b": {"c": [1, "2\"", 99999999999999999999991]}}}"#, Some(r#"a["b"].c[2]"#)),
            (r#"{"a": {"b": {"c d": {"\\": 0.123456789012345678}, "e": 1}}}"#, Some(r#"a["b"]["c d"]["\\"]"#)),
            ("99999999999999999999991", Some("")),
        ];
        for (text, expected) in cases {
            let document = serde_json::from_str(text).unwrap();
            let place = check(text, &document).err().map(|fault| fault.place);
            assert_eq!(place.as_deref(), expected, "{text}");
        }
    }
}
