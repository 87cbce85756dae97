//! Gemini's form: functions inside a tool, with a JSON Schema (`parametersJsonSchema`) or a schema in its own dialect
//! (`parameters`, after OpenAPI 3.0, with types in capitals).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::openai::described;
use super::providers::rename_keys;
use super::schema::{Role, each_schema, lower_types, nullable_types, of_arguments, role};
use super::{Part, name_of, tool};
use crate::catalog::load::{Draft, Fields};
use crate::catalog::{Fault, SelectableItem};

/// What a tool calls its list of functions: in JSON, and in the Python library.
const LISTS: [&str; 2] = ["functionDeclarations", "function_declarations"];
const SCHEMAS: [&str; 2] = ["parametersJsonSchema", "parameters_json_schema"];
const DIALECT: &str = "parameters";
/// The same of a result.
const RESULTS: [&str; 2] = ["responseJsonSchema", "response_json_schema"];
const RESULT_DIALECT: &str = "response";
/// The order in which a model writes the members of an object.
const ORDERING: &str = "propertyOrdering";

pub(super) fn is_list(members: &Map<String, Value>) -> bool {
    LISTS.iter().any(|list| members.get(*list).is_some_and(Value::is_array))
}

pub(super) fn read_list(members: Map<String, Value>) -> Result<Vec<Part>, Fault> {
    let mut parts = Vec::new();
    // Tools of Google's own may stand beside the list.
    for (key, value) in members {
        let Value::Array(functions) = value else { continue };
        if !LISTS.contains(&key.as_str()) {
            continue;
        }
        parts.extend(functions.into_iter().enumerate().map(|(index, function)| Part {
            inside: format!(".{key}[{index}]"),
            name: name_of(&function).to_owned(),
            draft: Fields::new(function).and_then(read),
        }));
    }
    Ok(parts)
}

/// A function outside of a list that names it as Gemini's.
pub(super) fn is(members: &Map<String, Value>) -> bool {
    let of_dialect = |schema: &Value| {
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("");
        !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_uppercase())
    };
    SCHEMAS.iter().any(|key| members.contains_key(*key)) || members.get(DIALECT).is_some_and(of_dialect)
}

pub(super) fn read(mut fields: Fields) -> Result<Draft, Fault> {
    let arguments = schema(&mut fields, SCHEMAS, DIALECT)?;
    let result = schema(&mut fields, RESULTS, RESULT_DIALECT)?;
    let mut draft = tool(fields, arguments)?;
    draft.item.output_schema = result.map(|members| Arc::new(Value::Object(members)));
    Ok(draft)
}

/// A schema under one of `keys`, else one in Gemini's own dialect.
fn schema(fields: &mut Fields, keys: [&str; 2], dialect: &str) -> Result<Option<Map<String, Value>>, Fault> {
    let mut schema = None;
    for key in keys {
        schema = fields.object(key)?.or(schema);
    }
    if schema.is_some() {
        return Ok(schema);
    }
    let Some(members) = fields.object(dialect)? else { return Ok(None) };
    let mut schema = Value::Object(members);
    camel_case(&mut schema);
    each_schema(&mut schema, &plain);
    Ok(schema.as_object_mut().map(std::mem::take))
}

/// The keywords of a schema as the API writes them: the Python library says `any_of`, and `null` for what is unset.
fn camel_case(schema: &mut Value) {
    const SPELT: [(&str, &str); 13] = [
        ("any_of", "anyOf"),
        ("one_of", "oneOf"),
        ("additional_properties", "additionalProperties"),
        ("prefix_items", "prefixItems"),
        ("max_items", "maxItems"),
        ("min_items", "minItems"),
        ("max_length", "maxLength"),
        ("min_length", "minLength"),
        ("max_properties", "maxProperties"),
        ("min_properties", "minProperties"),
        ("property_ordering", ORDERING),
        ("defs", "$defs"),
        ("ref", "$ref"),
    ];
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(camel_case),
        Value::Object(members) => {
            members.retain(|key, value| !value.is_null() || ["default", "example"].contains(&key.as_str()));
            rename_keys(members, &BTreeMap::from(SPELT));
            for (keyword, value) in members.iter_mut() {
                match role(keyword) {
                    Role::Schema => camel_case(value),
                    Role::Map => value.as_object_mut().into_iter().flatten().for_each(|(_, schema)| camel_case(schema)),
                    Role::Data => {}
                }
            }
        }
        _ => {}
    }
}

/// A schema of the dialect in the words of JSON Schema. Its counts are of the type int64, which the API writes as
/// texts.
fn plain(schema: &mut Map<String, Value>) {
    const COUNTS: [&str; 6] = ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"];
    lower_types(schema);
    nullable_types(schema);
    for key in COUNTS {
        if let Some(count) = schema.get_mut(key)
            && let Some(number) = count.as_str().and_then(|text| text.parse::<u64>().ok())
        {
            *count = number.into();
        }
    }
    schema.shift_remove(ORDERING);
    if schema.get("format").is_some_and(|format| format == "enum") {
        schema.shift_remove("format");
    }
}

pub(super) fn write(item: &SelectableItem, name: &str) -> Value {
    let mut members = described(item, name);
    if item.args_schema.is_some() {
        members.insert(SCHEMAS[0].to_owned(), of_arguments(item));
    }
    Value::Object(members)
}

/// The list of a request: one tool with all functions.
pub(super) fn list(functions: &[Value]) -> Value {
    match functions.is_empty() {
        true => json!([]),
        false => json!([{LISTS[0]: functions}]),
    }
}
