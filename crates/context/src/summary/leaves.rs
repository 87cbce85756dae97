//! The values of a row of objects, each with the path that leads to it.

use std::collections::BTreeMap;

use super::column::Column;
use super::shown;
use super::table::Table;
use crate::literal::{Kind, Value};

/// The number of values of a row that are shown, and of members or items of one value that are looked into.
const MOST: usize = 60;
/// The number of levels of a row that are looked into, and of values.
const LEVELS: usize = 12;
const SEEN: usize = 1000;

/// The value to which `keys` lead from `row`.
pub(super) fn below<'v>(row: Value<'v>, keys: &[String]) -> Option<Value<'v>> {
    keys.iter().try_fold(row, |value, key| value.get(key))
}

/// The values of a row of `table` with short names of their columns, without those that are the same in every row; those
/// that are different in every row come last.
pub(super) fn varying<'v>(row: Value<'v>, table: &Table<'_>) -> Vec<(String, Value<'v>)> {
    if row.kind() == Kind::Array && row.len() == table.names.len() {
        return table.names.iter().cloned().zip(row.items()).collect();
    }
    let columns: BTreeMap<&str, &Column> =
        table.columns.iter().map(|(name, column)| (name.as_str(), *column)).collect();
    let column = |path: &String| columns.get(path.as_str());
    let mut found = Vec::new();
    add(row, String::new(), LEVELS, &mut SEEN.clone(), &mut found);
    found.retain(|(path, _)| column(path).is_none_or(|column| column.constant().is_none()));
    found.sort_by_key(|(path, _)| column(path).is_some_and(|column| column.is_unique_text()));
    let names = table.short_names();
    let named = |path: String| names.get(path.as_str()).map_or(path.clone(), |name| (*name).to_owned());
    found.into_iter().take(MOST).map(|(path, value)| (named(path), value)).collect()
}

/// Adds the scalars below `value` and the lists of scalars, with their paths, until `seen` more values were looked at.
fn add<'v>(value: Value<'v>, path: String, levels: usize, seen: &mut usize, found: &mut Vec<(String, Value<'v>)>) {
    if levels == 0 || *seen == 0 {
        return;
    }
    *seen -= 1;
    match value.kind() {
        Kind::Object => {
            for (key, member) in value.members().take(MOST) {
                let path = shown::member_path(&path, &key.plain());
                add(member, path, levels - 1, seen, found);
            }
        }
        Kind::Array if value.items().any(Value::is_container) => {
            for item in value.items().take(MOST) {
                add(item, format!("{path}[*]"), levels - 1, seen, found);
            }
        }
        _ => found.push((path, value)),
    }
}
