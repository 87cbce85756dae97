//! What a schema has to keep to where a definition is strict: the provider makes a grammar of it, so that no call can
//! break it, and refuses the request where it cannot.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::schema::{pointer, visit_schemas};

/// The rules of a provider for strict schemas. All want `additionalProperties: false` on every object, and know what
/// each value is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strict {
    /// Whether every property has to be required.
    all_required: bool,
    /// Keywords of which one says what a value is.
    kinds: &'static [&'static str],
    /// Keywords that are not taken.
    not_taken: &'static [&'static str],
    /// The largest `minItems`.
    most_least_items: u64,
    /// Whether a schema may lead back to itself.
    recursion: bool,
}

/// Keywords that neither provider takes: they are about more than one place of a value.
const OF_NEITHER: [&str; 19] = [
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "maxProperties",
    "minContains",
    "minProperties",
    "not",
    "oneOf",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

impl Strict {
    /// "All fields must be required", "additionalProperties: false must always be set in objects"
    /// (developers.openai.com, "Structured model outputs"); "schema must have a 'type' key"; "'default' is not
    /// permitted" (567-labs/instructor#1074).
    pub(super) const OPENAI: Self = Self {
        all_required: true,
        kinds: &["type", "$ref", "anyOf"],
        not_taken: &["allOf", "default"],
        most_least_items: u64::MAX,
        recursion: true,
    };

    /// "Recursive schemas", "external $ref", "numerical constraints", "string constraints", "array constraints beyond
    /// minItems of 0 or 1" are not supported (platform.claude.com, "Structured outputs").
    pub(super) const ANTHROPIC: Self = Self {
        all_required: false,
        kinds: &["type", "$ref", "anyOf", "allOf", "enum", "const"],
        not_taken: &[
            "exclusiveMaximum",
            "exclusiveMinimum",
            "maximum",
            "maxItems",
            "maxLength",
            "minimum",
            "minLength",
            "multipleOf",
        ],
        most_least_items: 1,
        recursion: false,
    };

    /// Whether a schema of arguments keeps to the rules.
    pub(super) fn is_kept_by(&self, schema: &Value) -> bool {
        let mut kept = schema.get("type").is_some_and(|kind| kind == "object");
        visit_schemas(schema, &mut |members| kept &= self.is_kept_in(members));
        kept && (self.recursion || !is_recursive(schema))
    }

    fn is_kept_in(&self, schema: &Map<String, Value>) -> bool {
        let has = |key: &&str| schema.contains_key(*key);
        if !self.kinds.iter().any(has) || OF_NEITHER.iter().chain(self.not_taken).any(has) {
            return false;
        }
        let is = |wanted: &str| match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == wanted),
            Some(kind) => kind == wanted,
            None => false,
        };
        if is("array") {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            return schema.get("items").is_some_and(Value::is_object) && least <= self.most_least_items;
        }
        if !is("object") && !schema.contains_key("properties") {
            return true;
        }
        let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let properties = schema.get("properties").and_then(Value::as_object);
        let is_required = |name: &String| required.iter().any(|required| required == name.as_str());
        let known = |(name, schema): (&String, &Value)| schema.is_object() && (!self.all_required || is_required(name));
        schema.get("additionalProperties") == Some(&Value::Bool(false)) && properties.into_iter().flatten().all(known)
    }
}

/// Whether a reference leads back to where it stands. One with too many references to follow counts as such.
fn is_recursive(schema: &Value) -> bool {
    const MOST: usize = 64;
    let of = |schema: &Value| {
        let mut references = BTreeSet::new();
        visit_schemas(schema, &mut |members| {
            references.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
        });
        references
    };
    let mut left = of(schema);
    if left.len() > MOST {
        return true;
    }
    let target = |reference: &str| schema.pointer(&pointer(reference)?);
    let mut edges: Vec<(String, BTreeSet<String>)> =
        left.iter().map(|from| (from.clone(), target(from).map(of).unwrap_or_default())).collect();
    // What leads to nothing that is left cannot be on a way back.
    loop {
        let before = left.len();
        edges.retain(|(from, to)| {
            let leads_on = to.iter().any(|to| left.contains(to));
            if !leads_on {
                left.remove(from);
            }
            leads_on
        });
        if left.len() == before {
            return before > 0;
        }
    }
}
