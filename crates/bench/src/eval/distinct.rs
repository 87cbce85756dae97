//! Maps of JSON in which no key occurs twice: which of the two holds could not be told.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Reads such a map; `what` says in messages what its keys name.
///
/// # Errors
/// Those of the members, and a key that occurs twice.
pub(crate) fn distinct<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    deserializer: D,
    what: &'static str,
) -> Result<BTreeMap<String, V>, D::Error> {
    struct Distinct<V>(&'static str, PhantomData<V>);

    impl<'de, V: Deserialize<'de>> Visitor<'de> for Distinct<V> {
        type Value = BTreeMap<String, V>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((key, value)) = members.next_entry::<String, V>()? {
                if map.contains_key(&key) {
                    return Err(A::Error::custom(format_args!("{} `{key}` occurs twice", self.0)));
                }
                map.insert(key, value);
            }
            Ok(map)
        }
    }

    deserializer.deserialize_map(Distinct(what, PhantomData))
}
