//! Members that stand twice in an object.
//!
//! Parsers take the first or the last of two members with one name. What is checked here and what an upstream reads
//! would be two values, so that such a text is refused; names are compared as they are read, escapes resolved.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Refuses a JSON text in which an object has two members of one name, at whatever depth.
///
/// # Errors
/// The name, or what is wrong with the text.
pub(in crate::gateway) fn check(text: &str) -> Result<(), serde_json::Error> {
    Once.deserialize(&mut serde_json::Deserializer::from_str(text))
}

/// A value in which no name stands twice.
struct Once;

impl<'de> DeserializeSeed<'de> for Once {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Once {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        #[derive(Deserialize, PartialEq, Eq, Hash)]
        struct Name<'n>(#[serde(borrow)] Cow<'n, str>);
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<Name<'de>>()? {
            if names.contains(&name) {
                return Err(A::Error::custom(format!("`{}` stands twice in one object; write it once", name.0)));
            }
            names.insert(name);
            map.next_value_seed(Once)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while elements.next_element_seed(Once)?.is_some() {}
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

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
    }

    proptest! {
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
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
        }
    }
}
