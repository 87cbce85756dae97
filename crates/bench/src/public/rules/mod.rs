//! How each collection is made from what others publish: one file for each published form, one row for each collection.
//!
//! A rule reads published files and returns tools and requests in order. What all collections share (which requests
//! are dropped, how text is trimmed, how files are written) is in [`super::written`].

mod bfcl;
mod contextweaver;
mod metatool;
mod nestful;
mod python;
mod sealtools;
mod toolalpaca;
mod toolbench;

use serde_json::{Map, Value, json};

use super::upstream::{RuleError, Upstream};
use super::written::Draft;

/// Makes a collection from its published files.
pub(super) type Rule = fn(&Upstream) -> Result<Draft, RuleError>;

/// The rule of each collection.
const RULES: [(&str, Rule); 8] = [
    ("bfcl_synth", bfcl::build),
    ("contextweaver_83", contextweaver::build),
    ("metatool_multi", metatool::build_multi),
    ("metatool_single", metatool::build_single),
    ("nestful", nestful::build),
    ("sealtools_dev", sealtools::build),
    ("toolalpaca", toolalpaca::build),
    ("toolbench", toolbench::build),
];

/// The rule for the collection `name`.
pub(super) fn of(name: &str) -> Option<Rule> {
    RULES.iter().find(|(rule, _)| *rule == name).map(|(_, rule)| *rule)
}

/// A tool definition with its keys in this order.
fn tool(name: &str, description: &str, schema: Value) -> Map<String, Value> {
    let mut tool = Map::new();
    tool.insert("name".to_owned(), json!(name));
    tool.insert("description".to_owned(), json!(description));
    tool.insert("inputSchema".to_owned(), schema);
    tool
}

/// A schema of an object; `required` is left out when nothing is.
fn object_schema(properties: Map<String, Value>, required: &[String]) -> Value {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    Value::Object(schema)
}

/// A property; a description that is absent or empty is left out.
fn property(kind: &str, description: Option<&str>) -> Value {
    let mut property = Map::new();
    property.insert("type".to_owned(), json!(kind));
    if let Some(description) = description.filter(|text| !text.is_empty()) {
        property.insert("description".to_owned(), json!(description));
    }
    Value::Object(property)
}

/// The JSON Schema type for a type as authors write it: `str`, `NUMBER`, `List[int]`, `date (YYYY-MM-DD)`.
///
/// The first of the parts below that occurs decides. `ENUM` is a number by that, which it should not be; the measured
/// collections have it so, and no engine reads the types of arguments.
fn json_type(written: &str) -> &'static str {
    let written = written.to_lowercase();
    let parts = [
        ("int", "integer"),
        ("num", "number"),
        ("float", "number"),
        ("bool", "boolean"),
        ("list", "array"),
        ("array", "array"),
        ("dict", "object"),
        ("object", "object"),
    ];
    parts.iter().find(|(part, _)| written.contains(part)).map_or("string", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_in_every_spelling() {
        let table = [
            ("str", "string"),
            ("String", "string"),
            ("DATE (YYYY-MM-DD)", "string"),
            ("int", "integer"),
            ("NUMBER", "number"),
            ("ENUM", "number"),
            ("bool", "boolean"),
            ("Array", "array"),
            ("dict", "object"),
        ];
        for (written, expected) in table {
            assert_eq!(json_type(written), expected, "{written}");
        }
    }
}
