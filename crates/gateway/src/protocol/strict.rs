//! JSON in which no object has two members of one name.
//!
//! Parsers take the first or the last of two members with one name: what is checked here and what an upstream reads
//! would be two values. Such a text is refused. Names are compared as they are read, with escapes resolved. A text of very
//! many values is refused too: read, they take seventy times the room of their text.

use serde_json::Value;

use contextweaver_core::json::{Names, Reader};

/// Values in one text, at most.
pub(crate) const MOST_VALUES: usize = 250_000;

/// Whether a JSON text has at most so many values. Nothing is read for that: the memory that reading would take is what is
/// to be spared.
pub(crate) fn has_at_most(text: &str, most: usize) -> bool {
    // A value takes two bytes at least, with what stands between it and the next.
    if text.len() / 2 < most {
        return true;
    }
    let bytes = text.as_bytes();
    // The first value of a container stands behind no comma.
    let begins = |at: usize| bytes.iter().skip(at).find(|byte| !byte.is_ascii_whitespace());
    let (mut values, mut at) = (1_usize, 0);
    while let Some(byte) = bytes.get(at).filter(|_| values <= most) {
        at += 1;
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b',' => values += 1,
            b'[' | b'{' if !matches!(begins(at), Some(b']' | b'}')) => values += 1,
            _ => {}
        }
    }
    values <= most
}

/// The place behind the string whose inside begins at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found + 1;
        if bytes.get(at - 1) == Some(&b'"') {
            return at;
        }
        // What is escaped.
        at += 1;
    }
    bytes.len()
}

/// The value of a JSON text in which no object has two members of one name, at whatever depth.
///
/// # Errors
/// The name that stands twice, more than 250,000 values, or what is wrong with the text.
pub(crate) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    parse_within(text, MOST_VALUES)
}

/// As [`parse`], for at most so many values.
///
/// # Errors
/// As [`parse`].
pub(crate) fn parse_within(text: &str, most: usize) -> Result<Value, serde_json::Error> {
    Reader::new(Names::OnlyOnce, most).read(text)
}

/// Refuses a JSON text in which an object has two members of one name, at whatever depth.
///
/// # Errors
/// As [`parse`].
pub(crate) fn check(text: &str) -> Result<(), serde_json::Error> {
    parse(text).map(drop)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_stands_once_in_each_object() {
        let cases = [
            (r#"{"a":1,"b":{"a":[{"a":null},{"a":true}]},"c":1.5}"#, None),
            (r#"[1,"a","a",-1]"#, None),
            (r#"{"a":1,"a":1}"#, Some("`a`")),
            (r#"{"a":1,"\u0061":1}"#, Some("`a`")),
            (r#"{"x":[0,{"y":{"path":"/a","path":"/b"}}]}"#, Some("`path`")),
            (r#"{"":1,"":2}"#, Some("``")),
            (r#"{"a":"#, Some("EOF")),
        ];
        for (text, expected) in cases {
            let message = check(text).err().map(|error| error.to_string());
            match expected {
                None => assert_eq!(message, None, "{text}"),
                Some(part) => assert!(message.as_ref().is_some_and(|message| message.contains(part)), "{message:?}"),
            }
        }
        assert!(check(&"[".repeat(10_000)).is_err(), "depth is bounded");
        assert!(check("{} {}").is_err(), "nothing follows the value");
        let values = |number: usize| format!("[{}1]", "1,".repeat(number - 2));
        assert!(check(&values(MOST_VALUES)).is_ok());
        assert!(check(&values(MOST_VALUES + 1)).unwrap_err().to_string().contains("more values"));
    }

    proptest! {
        #[test]
        fn values_are_counted_without_being_read(
            parts in proptest::collection::vec(
                prop_oneof![Just("[]"), Just("{ }"), Just("[ 1,2]"), Just(r#"{"a,[":"]\\\"{,"}"#), Just("\"x,\\\\\""), Just("-1.5")],
                1..8,
            ),
        ) {
            let text = format!("[{}]", parts.join(" , "));
            let plain = serde_json::from_str::<Value>(&text).unwrap();
            let mut open = vec![&plain];
            let mut count = 0;
            while let Some(value) = open.pop() {
                count += 1;
                match value {
                    Value::Array(elements) => open.extend(elements),
                    Value::Object(members) => open.extend(members.values()),
                    _ => {}
                }
            }
            prop_assert!(has_at_most(&text, count));
            prop_assert!(!has_at_most(&text, count - 1) || text.len() / 2 < count - 1);
        }

        #[test]
        fn what_was_read_once_reads_the_same_in_any_parser(
            names in proptest::collection::vec("[ab]{0,2}", 0..6), depth in 0_usize..3,
        ) {
            let mut text = names.iter().map(|name| format!("{name:?}:1")).collect::<Vec<_>>().join(",");
            text = format!("{{{text}}}");
            for _ in 0..depth {
                text = format!("{{\"in\":[{text}]}}");
            }
            let mut single = names.clone();
            single.sort_unstable();
            single.dedup();
            prop_assert_eq!(check(&text).is_ok(), single.len() == names.len());
            let plain = serde_json::from_str::<Value>(&text).unwrap();
            prop_assert!(parse(&text).map_or(true, |value| value == plain));
        }
    }
}
