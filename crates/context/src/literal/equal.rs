//! Equality of values, whatever their notation.

use super::{Decimal, Kind, Value};

impl Value<'_> {
    /// Whether both are the same value: white space, the order of keys, escapes and the notation of numbers (`1`,
    /// `1.0`, `1e0`) make no difference. A key that occurs twice is two members. Numbers of more than 38 digits are the
    /// same only if they are written the same way.
    #[must_use]
    pub fn same(self, other: Value<'_>) -> bool {
        let mut open = vec![(self, other)];
        while let Some((one, other)) = open.pop() {
            if one.kind() != other.kind() || one.len() != other.len() {
                return false;
            }
            match one.kind() {
                Kind::Array => open.extend(one.items().zip(other.items())),
                Kind::Object => {
                    let keys = one.members().zip(other.members());
                    if keys.into_iter().all(|((one, _), (other, _))| one.plain() == other.plain()) {
                        open.extend(one.items().zip(other.items()));
                        continue;
                    }
                    for ((one, value), (other, other_value)) in by_key(one).into_iter().zip(by_key(other)) {
                        if one != other {
                            return false;
                        }
                        open.push((value, other_value));
                    }
                }
                _ if !same_scalar(one, other) => return false,
                _ => {}
            }
        }
        true
    }
}

fn by_key(object: Value<'_>) -> Vec<(std::borrow::Cow<'_, str>, Value<'_>)> {
    let mut members: Vec<_> = object.members().map(|(key, value)| (key.plain(), value)).collect();
    members.sort_by(|(one, _), (other, _)| one.cmp(other));
    members
}

/// Whether two scalars of one kind are the same.
fn same_scalar(one: Value<'_>, other: Value<'_>) -> bool {
    if one.text() == other.text() {
        return true;
    }
    match one.kind() {
        Kind::String => one.string() == other.string(),
        Kind::Number => {
            let decimal = |value: Value<'_>| value.number().and_then(Decimal::parse);
            decimal(one).is_some() && decimal(one) == decimal(other)
        }
        Kind::Bool => one.text().eq_ignore_ascii_case(other.text()),
        Kind::Null => true,
        _ => false,
    }
}
