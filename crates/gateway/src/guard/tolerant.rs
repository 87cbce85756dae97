//! The repair of arguments that a model wrote as a string where the schema demands another type.
//!
//! Five fixed rules, each applied only where the type in the schema demands it: a field that may be a string is never
//! touched, no name is changed and nothing is removed. What is not repaired is validated as it came.

use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::protocol::strict;

/// A rule by which an argument is repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rule {
    /// The arguments were a string that holds an object.
    ParseStringifiedObject,
    /// A whole number as text.
    StrToInteger,
    /// A number as text.
    StrToNumber,
    /// `true` or `false` as text.
    StrToBoolean,
    /// `null` as text.
    StrToNull,
}

/// What was done to the arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Repair {
    /// The rule that was applied.
    pub(crate) rule: Rule,
    /// Where: a JSON Pointer into the arguments.
    pub(crate) path: String,
}

/// Repairs `arguments` where `schema` demands it; empty when they stay as they came.
pub(crate) fn repair(arguments: &mut Value, schema: Option<&Value>) -> Vec<Repair> {
    let mut repairs = Vec::new();
    if let Some(object) = arguments.as_str().and_then(stringified) {
        *arguments = Value::Object(object);
        repairs.push(Repair { rule: Rule::ParseStringifiedObject, path: String::new() });
    }
    if let (Some(schema), Value::Object(_)) = (schema, &*arguments) {
        Walk { root: schema, repairs: &mut repairs }.visit(arguments, schema, "");
    }
    repairs
}

/// The object that a text holds, within the bounds of arguments that come as an object.
fn stringified(text: &str) -> Option<Map<String, Value>> {
    match strict::parse(text.strip_prefix('\u{feff}').unwrap_or(text).trim()) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

/// References followed from one place, at most.
const MOST_REFERENCES: usize = 16;

struct Walk<'w> {
    root: &'w Value,
    repairs: &'w mut Vec<Repair>,
}

impl Walk<'_> {
    /// The depth is that of the arguments, which the parser bounds.
    fn visit(&mut self, value: &mut Value, schema: &Value, path: &str) {
        let Some(schema) = resolved(self.root, schema) else { return };
        match value {
            Value::String(text) => {
                if let Some((rule, repaired)) = demanded(text, schema) {
                    *value = repaired;
                    self.repairs.push(Repair { rule, path: path.to_owned() });
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    if let Some(schema) = schema.get("properties").and_then(|properties| properties.get(key)) {
                        let key = key.replace('~', "~0").replace('/', "~1");
                        self.visit(member, schema, &format!("{path}/{key}"));
                    }
                }
            }
            Value::Array(elements) => {
                let Some(schema) = schema.get("items") else { return };
                for (at, element) in elements.iter_mut().enumerate() {
                    self.visit(element, schema, &format!("{path}/{at}"));
                }
            }
            _ => {}
        }
    }
}

/// The schema that `schema` refers to within the document `root`, or itself.
pub(super) fn resolved<'s>(root: &'s Value, schema: &'s Value) -> Option<&'s Value> {
    let mut schema = schema;
    for _ in 0..MOST_REFERENCES {
        match schema.get("$ref").and_then(Value::as_str) {
            None => return Some(schema),
            Some(reference) => schema = root.pointer(reference.strip_prefix('#')?)?,
        }
    }
    None
}

/// What `text` stands for when the schema demands something else than a string.
fn demanded(text: &str, schema: &Value) -> Option<(Rule, Value)> {
    let types = types(schema)?;
    if types.contains(&"string") {
        return None;
    }
    let rules = types.iter().filter_map(|kind| match *kind {
        "integer" => integer(text).map(|number| (Rule::StrToInteger, Value::Number(number))),
        "number" => number(text).map(|number| (Rule::StrToNumber, Value::Number(number))),
        "boolean" => text.parse::<bool>().ok().map(|value| (Rule::StrToBoolean, Value::Bool(value))),
        "null" => (text == "null").then_some((Rule::StrToNull, Value::Null)),
        _ => None,
    });
    // An integer is also a number: the more exact rule is the one that is named.
    rules.min_by_key(|(rule, _)| *rule as u8)
}

/// The types that the schema permits; `None` when it does not say.
fn types(schema: &Value) -> Option<Vec<&str>> {
    match schema.get("type") {
        Some(Value::String(kind)) => return Some(vec![kind]),
        Some(Value::Array(kinds)) => return kinds.iter().map(Value::as_str).collect(),
        _ => {}
    }
    let branches = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
    let of_each: Option<Vec<Vec<&str>>> = branches
        .iter()
        // One level: what is deeper is not beyond doubt.
        .map(|branch| branch.get("type").and(types(branch)))
        .collect();
    of_each.map(|types| types.concat()).filter(|types| !types.is_empty())
}

fn integer(text: &str) -> Option<Number> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let exact = digits == "0" || (!digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit()));
    let number: Number = serde_json::from_str(text).ok().filter(|_| exact)?;
    (!number.is_f64()).then_some(number)
}

fn number(text: &str) -> Option<Number> {
    // The parser takes spaces around a number; an exact literal has none.
    let bare = !text.starts_with(char::is_whitespace) && !text.ends_with(char::is_whitespace);
    serde_json::from_str(text).ok().filter(|_| bare)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"}, "z": {"type": "null"},
                "s": {"type": "string"}, "any": {}, "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "text": {"type": ["integer", "string"]}, "unsure": {"anyOf": [{"type": "integer"}, {"minimum": 1}]},
                "list": {"type": "array", "items": {"$ref": "#/$defs/n"}}, "deep": {"properties": {"a/b": {"type": "boolean"}}},
                "loop": {"$ref": "#/$defs/loop"}, "far": {"$ref": "http://elsewhere/schema"},
            },
            "$defs": {"n": {"type": "number"}, "loop": {"$ref": "#/$defs/loop"}},
        })
    }

    #[test]
    fn rules_apply_where_the_type_demands_it() {
        let cases = [
            (json!({"i": "5"}), json!({"i": 5}), "str_to_integer /i"),
            (json!({"i": "-12"}), json!({"i": -12}), "str_to_integer /i"),
            (json!({"n": "2.5e3"}), json!({"n": 2500.0}), "str_to_number /n"),
            (json!({"n": "7"}), json!({"n": 7}), "str_to_number /n"),
            (json!({"b": "true", "z": "null"}), json!({"b": true, "z": null}), "str_to_boolean /b, str_to_null /z"),
            (json!({"maybe": "3"}), json!({"maybe": 3}), "str_to_integer /maybe"),
            (json!({"maybe": "null"}), json!({"maybe": null}), "str_to_null /maybe"),
            (json!({"list": ["1", 2, "x"]}), json!({"list": [1, 2, "x"]}), "str_to_number /list/0"),
            (json!({"deep": {"a/b": "false"}}), json!({"deep": {"a/b": false}}), "str_to_boolean /deep/a~1b"),
            (json!("\u{feff} {\"i\": \"1\"}\n"), json!({"i": 1}), "parse_stringified_object , str_to_integer /i"),
        ];
        for (given, expected, named) in cases {
            let mut arguments = given.clone();
            let repairs = repair(&mut arguments, Some(&schema()));
            let name = |repair: &Repair| format!("{} {}", json!(repair.rule).as_str().unwrap(), repair.path);
            assert_eq!(repairs.iter().map(name).collect::<Vec<_>>().join(", "), named, "{given}");
            assert_eq!(arguments.to_string(), expected.to_string());
        }
    }

    #[test]
    fn everything_else_stays_as_it_came() {
        let texts = ["5.0", "05", "+5", " 5", "5 ", "", "-", "1e3", "five", "99999999999999999999", "0x5", "٥", "-0"];
        let mut given: Vec<Value> = texts.iter().map(|text| json!({ "i": text })).collect();
        given.extend(["1e999", "NaN", "Infinity", " 1", "1,5", ".5"].map(|text| json!({ "n": text })));
        given.extend(["True", "1", "yes", "FALSE"].map(|text| json!({ "b": text })));
        given.extend([json!({"z": "None"}), json!({"z": ""}), json!({"s": "5"}), json!({"any": "5"})]);
        given.extend([json!({"text": "5"}), json!({"unsure": "5"}), json!({"unknown": "5"}), json!({"I": "5"})]);
        given.extend([json!({"loop": "5"}), json!({"far": "5"}), json!("[1]"), json!("x"), json!(5), json!({"i": 5})]);
        // A text of which another parser could make something else, and one of very many values.
        given.extend([json!(r#"{"i": 1, "i": 2}"#), json!(format!(r#"{{"m": [{}0]}}"#, "0,".repeat(250_000)))]);
        for before in given {
            let mut after = before.clone();
            assert!(repair(&mut after, Some(&schema())).is_empty(), "{before}");
            assert_eq!(after, before);
        }
    }

    proptest! {
        #[test]
        fn a_repair_is_final_and_only_changes_text(text in "-?[0-9.eE+]{0,12}|true|false|null|\\PC{0,6}", field in "[inbzs]") {
            let mut once = json!({ field.clone(): text });
            let repairs = repair(&mut once, Some(&schema()));
            let mut twice = once.clone();
            prop_assert!(repair(&mut twice, Some(&schema())).is_empty());
            prop_assert_eq!(&twice, &once);
            if !repairs.is_empty() {
                let validator = jsonschema::validator_for(&schema()["properties"][&field]).unwrap();
                prop_assert!(validator.is_valid(&once[&field]), "{}", once);
            }
        }
    }
}
