//! What the forms share about schemas: what looks like one, where schemas are inside a schema, and the keywords of the
//! dialects after OpenAPI 3.0.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::catalog::SelectableItem;

/// What stands under a keyword of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A schema, or an array of schemas.
    Schema,
    /// Schemas by name.
    Map,
    /// Data, in which nothing is a keyword.
    Data,
}

pub(super) fn role(keyword: &str) -> Role {
    match keyword {
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => Role::Map,
        "items"
        | "prefixItems"
        | "additionalItems"
        | "additionalProperties"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contains"
        | "propertyNames"
        | "not"
        | "if"
        | "then"
        | "else"
        | "allOf"
        | "anyOf"
        | "oneOf" => Role::Schema,
        _ => Role::Data,
    }
}

/// Calls `change` with a schema and every schema in it, the inner ones first.
pub(super) fn each_schema(schema: &mut Value, change: &impl Fn(&mut Map<String, Value>)) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(|schema| each_schema(schema, change)),
        Value::Object(members) => {
            for (keyword, value) in members.iter_mut() {
                match role(keyword) {
                    Role::Schema => each_schema(value, change),
                    Role::Map => {
                        value.as_object_mut().into_iter().flatten().for_each(|(_, schema)| each_schema(schema, change));
                    }
                    Role::Data => {}
                }
            }
            change(members);
        }
        _ => {}
    }
}

/// Whether a value is meant to be the schema of arguments.
pub(super) fn is_schema(value: &Value) -> bool {
    let Some(members) = value.as_object() else { return false };
    let typed = |kind: &str| kind.eq_ignore_ascii_case("object");
    members.is_empty()
        || members.get("type").and_then(Value::as_str).is_some_and(typed)
        || members.get("properties").is_some_and(Value::is_object)
        || ["$ref", "anyOf", "oneOf", "allOf"].iter().any(|key| members.contains_key(*key))
}

/// Types in the words of JSON Schema: `STRING` is `string`.
pub(super) fn lower_types(schema: &mut Map<String, Value>) {
    if let Some(Value::String(kind)) = schema.get_mut("type") {
        kind.make_ascii_lowercase();
    }
}

/// `nullable` in the words of JSON Schema.
pub(super) fn nullable_types(schema: &mut Map<String, Value>) {
    if !schema.get("nullable").is_some_and(Value::is_boolean) {
        return;
    }
    if schema.shift_remove("nullable") != Some(Value::Bool(true)) {
        return;
    }
    match schema.get_mut("type") {
        Some(kind @ Value::String(_)) if *kind != "null" => *kind = json!([kind.take(), "null"]),
        Some(_) => {}
        None => {
            if let Some(Value::Array(options)) = schema.get_mut("anyOf") {
                options.push(json!({"type": "null"}));
            }
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

/// Bounds that exclude themselves in the words of JSON Schema since draft 6: `minimum` with `exclusiveMinimum: true` is
/// `exclusiveMinimum`. Says whether there were any.
pub(super) fn exclusive_bounds(schema: &mut Map<String, Value>) -> bool {
    let mut changed = false;
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match (schema.get(exclusive), schema.get(bound).cloned()) {
            (Some(Value::Bool(true)), Some(value)) => {
                schema.shift_remove(bound);
                schema.insert(exclusive.to_owned(), value);
            }
            (Some(Value::Bool(_)), _) => drop(schema.shift_remove(exclusive)),
            _ => continue,
        }
        changed = true;
    }
    changed
}

/// What a reference within a document points to, as a JSON Pointer; `None` for one that leaves the document or names an
/// anchor.
pub(super) fn pointer(reference: &str) -> Option<Cow<'_, str>> {
    let pointer = reference.strip_prefix('#').filter(|pointer| pointer.is_empty() || pointer.starts_with('/'))?;
    if !pointer.contains('%') {
        return Some(pointer.into());
    }
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.bytes();
    while let Some(byte) = rest.next() {
        let decoded = match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        };
        bytes.push(decoded);
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// The schema of an item's arguments as providers want it: an object, whether the item says so or not.
pub(super) fn of_arguments(item: &SelectableItem) -> Value {
    let Some(schema) = item.args_schema.as_deref() else { return json!({"type": "object", "properties": {}}) };
    match schema {
        Value::Object(members) if !members.contains_key("type") => {
            let mut typed = Map::from_iter([("type".to_owned(), "object".into())]);
            typed.extend(members.clone());
            Value::Object(typed)
        }
        schema => schema.clone(),
    }
}
