//! JSON values, as many as a budget has: read, a small value takes seventy times the room of its text.

use std::cell::Cell;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Values that may be read yet.
pub(super) struct Budget {
    left: Cell<usize>,
    is_spent: Cell<bool>,
}

impl Budget {
    /// For so many values.
    pub(super) fn new(values: usize) -> Self {
        Self { left: Cell::new(values), is_spent: Cell::new(false) }
    }

    /// The value of a JSON text; `None` where it has more values than are left. From then on nothing is left.
    ///
    /// # Errors
    /// The text is not JSON.
    pub(super) fn parse(&self, text: &str) -> Result<Option<Value>, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let read = Seed(self).deserialize(&mut deserializer);
        if self.is_spent.get() {
            return Ok(None);
        }
        let value = read?;
        deserializer.end()?;
        Ok(Some(value))
    }
}

#[derive(Clone, Copy)]
struct Seed<'b>(&'b Budget);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let Some(left) = self.0.left.get().checked_sub(1) else {
            self.0.is_spent.set(true);
            return Err(D::Error::custom("too many values"));
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
    fn a_budget_is_spent_value_by_value() {
        let budget = Budget::new(5);
        assert_eq!(budget.parse(r#"{"a": [1, 2]}"#).unwrap().unwrap()["a"][1], 2);
        assert!(budget.parse("1 2").is_err());
        assert_eq!(budget.parse("[]").unwrap(), None);
        assert!(Budget::new(9).parse(&"[".repeat(10_000)).is_ok_and(|value| value.is_none()));
        assert!(Budget::new(usize::MAX).parse(&"[".repeat(10_000)).is_err(), "depth is bounded");
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_the_library_reads(text in r#"[\[\]{}:,"\\a0-9.eE+ -]{0,12}"#) {
            let plain = serde_json::from_str::<Value>(&text).ok();
            prop_assert_eq!(Budget::new(usize::MAX).parse(&text).ok().flatten(), plain);
        }
    }
}
