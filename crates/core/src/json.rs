//! JSON values, as many as a budget has: read, a small value takes seventy times the room of its text.

use std::cell::Cell;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// What becomes of two members of one object that have one name. Names are compared as they are read, with escapes resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// The last one counts.
    LastWins,
    /// The text is refused.
    OnlyOnce,
}

/// Reads JSON texts that have a number of values together, at most.
#[derive(Debug)]
pub struct Reader {
    names: Names,
    left: Cell<usize>,
    is_spent: Cell<bool>,
}

impl Reader {
    /// For so many values.
    #[must_use]
    pub fn new(names: Names, values: usize) -> Self {
        Self { names, left: Cell::new(values), is_spent: Cell::new(false) }
    }

    /// The value of a JSON text.
    ///
    /// # Errors
    /// The text is not JSON, has more values than are left, or has a name twice in one object where it may be there only
    /// once.
    pub fn read(&self, text: &str) -> Result<Value, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let value = Seed(self).deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }

    /// Whether a text had more values than were left. From then on nothing is left.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.is_spent.get()
    }
}

#[derive(Clone, Copy)]
struct Seed<'r>(&'r Reader);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let Some(left) = self.0.left.get().checked_sub(1) else {
            self.0.is_spent.set(true);
            return Err(D::Error::custom("it has more values than are read at once; send fewer"));
        };
        self.0.left.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if self.0.names == Names::OnlyOnce && members.contains_key(&name) {
                return Err(A::Error::custom(format!("`{name}` appears twice in one object; write it once")));
            }
            let value = map.next_value_seed(self)?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = elements.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_read_until_none_is_left() {
        let reader = Reader::new(Names::LastWins, 5);
        assert_eq!(reader.read(r#"{"a": [1, 2]}"#).unwrap()["a"][1], 2);
        assert!(reader.read("1 2").is_err() && !reader.is_spent());
        assert!(reader.read("[]").is_err() && reader.is_spent());
        let deep = "[".repeat(10_000);
        for (values, is_spent) in [(9, true), (usize::MAX, false)] {
            let reader = Reader::new(Names::LastWins, values);
            assert!(reader.read(&deep).is_err(), "depth is bounded");
            assert_eq!(reader.is_spent(), is_spent);
        }
    }

    #[test]
    fn a_name_stands_twice_where_it_may() {
        let text = r#"{"a": {"b": 1, "\u0062": 2}}"#;
        assert_eq!(Reader::new(Names::LastWins, 9).read(text).unwrap()["a"]["b"], 2);
        let error = Reader::new(Names::OnlyOnce, 9).read(text).unwrap_err();
        assert!(error.to_string().starts_with("`b` appears twice in one object; write it once"), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_the_library_reads(text in r#"[\[\]{}:,"\\a0-9.eE+ -]{0,12}"#) {
            let plain = serde_json::from_str::<Value>(&text).ok();
            prop_assert_eq!(Reader::new(Names::LastWins, usize::MAX).read(&text).ok(), plain);
        }
    }
}
