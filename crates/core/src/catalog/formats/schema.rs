//! What the forms share about schemas: what looks like one, where schemas are inside a schema, and the keywords of the
//! dialects after OpenAPI 3.0.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::catalog::SelectableItem;

/// What stands under a keyword of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::catalog) enum Role {
    /// A schema, or an array of schemas.
    Schema,
    /// Schemas by name.
    Map,
    /// Data, in which nothing is a keyword.
    Data,
}

pub(in crate::catalog) fn role(keyword: &str) -> Role {
    match keyword {
        // Of `dependencies`, the lists of names are no schemas, and nothing is found in them.
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies" => Role::Map,
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

/// Calls `visit` with a schema and every schema in it.
pub(super) fn visit_schemas<'s>(schema: &'s Value, visit: &mut impl FnMut(&'s Map<String, Value>)) {
    match schema {
        Value::Array(schemas) => schemas.iter().for_each(|schema| visit_schemas(schema, visit)),
        Value::Object(members) => {
            visit(members);
            for (keyword, value) in members {
                match role(keyword) {
                    Role::Schema => visit_schemas(value, visit),
                    Role::Map => {
                        let schemas = value.as_object().into_iter().flatten();
                        schemas.for_each(|(_, schema)| visit_schemas(schema, visit));
                    }
                    Role::Data => {}
                }
            }
        }
        _ => {}
    }
}

/// Lets a schema and every schema in it say less, the inner ones first. `change` says whether it did. Where saying less
/// would mean more, as under `not`, the keyword goes too: no value is refused that was taken before.
pub(super) fn loosened(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>) -> bool) -> bool {
    let changed = loosen(schema, change);
    if changed {
        // What a reference leads to may say less now, so it counts as changed where it stands.
        loosen(schema, &mut |members| members.contains_key("$ref"));
    }
    changed
}

fn loosen(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>) -> bool) -> bool {
    match schema {
        Value::Array(schemas) => {
            let mut changed = false;
            for schema in schemas {
                changed |= loosen(schema, change);
            }
            changed
        }
        Value::Object(members) => {
            let mut loosened: Vec<String> = Vec::new();
            for (keyword, value) in members.iter_mut() {
                let mut changed = false;
                match role(keyword) {
                    Role::Schema => changed = loosen(value, change),
                    Role::Map => {
                        for (_, schema) in value.as_object_mut().into_iter().flatten() {
                            changed |= loosen(schema, change);
                        }
                    }
                    Role::Data => {}
                }
                if changed {
                    loosened.push(keyword.clone());
                }
            }
            for keyword in &loosened {
                match keyword.as_str() {
                    "not" => drop(members.shift_remove("not")),
                    "if" => ["if", "then", "else"].iter().for_each(|key| drop(members.shift_remove(*key))),
                    "contains" => drop(members.shift_remove("maxContains")),
                    // Of alternatives that say less, more than one may fit.
                    "oneOf" => {
                        let alternatives = members.shift_remove("oneOf");
                        if let Some(alternatives) = alternatives.filter(|_| !members.contains_key("anyOf")) {
                            members.insert("anyOf".to_owned(), alternatives);
                        }
                    }
                    _ => {}
                }
            }
            change(members) || !loosened.is_empty()
        }
        _ => false,
    }
}

/// `dependencies`, of drafts before 2019-09, in the words of today: a list of names says what else is required, a
/// schema what else holds. Says whether there were any.
pub(super) fn dependencies(schema: &mut Map<String, Value>) -> bool {
    let Some(Value::Object(dependencies)) = schema.shift_remove("dependencies") else { return false };
    for (name, dependency) in dependencies {
        let keyword = if dependency.is_array() { "dependentRequired" } else { "dependentSchemas" };
        let known = schema.entry(keyword).or_insert_with(|| json!({}));
        if let Some(known) = known.as_object_mut() {
            known.entry(name).or_insert(dependency);
        }
    }
    true
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
