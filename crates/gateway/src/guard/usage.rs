//! How something is called, in few words: the names and types of its arguments, and an example that its schema accepts.
//!
//! A model sees no schema before it calls. What it is told after a call that did not fit must teach it the next one, so
//! the signature and the example stand in every such refusal. Both come from foreign schemas: they are bounded, cleaned,
//! and an example is checked before it is shown. No signature replaces the schema: what does not fit is counted in it.

use std::borrow::Cow;

use regex::RegexBuilder;
use serde_json::{Map, Value, json};

use super::schema::Checker;
use super::tolerant::resolved;
use crate::common::sanitize::SanitizeConfig;
use contextweaver_context::store::redact;
use contextweaver_core::text::{Estimator, counted};

/// Tokens of a signature, at most (cl100k_base).
pub(crate) const SIGNATURE_TOKENS: usize = 40;

/// Bytes of a signature, at most: what is longer need not be counted.
const SIGNATURE_BYTES: usize = 400;

/// Arguments that are looked at, at most.
const MOST_ARGUMENTS: usize = 64;

/// Members of an object that are written out, at most.
const MOST_MEMBERS: usize = 6;

/// Bytes of a value of an enumeration, at most: others are shown by their type.
const LONGEST_VALUE: usize = 32;

/// Levels of a schema that are looked at.
const MOST_LEVELS: usize = 6;

/// Bytes of an example as JSON, at most.
const EXAMPLE_BYTES: usize = 600;

/// Bytes of a value of the caller's that an example repeats, at most.
const KEPT_BYTES: usize = 120;

/// Values that an example is made of, at most.
const MOST_VALUES: usize = 100;

/// Unknown arguments for which likely ones are looked for, at most.
const MOST_UNKNOWN: usize = 8;

/// Bytes of a name that is compared with others, at most: comparing takes steps by the square of it.
const LONGEST_NAME: usize = 64;

/// Changes of letters between a name and the one that it may mean, at most.
const MOST_CHANGES: usize = 3;

/// How much a signature says.
#[derive(Debug, Clone, Copy)]
struct Detail {
    /// Values of an enumeration; 0: its type alone.
    values: usize,
    /// Levels of objects that are written out.
    levels: usize,
    /// Whether types stand at all.
    types: bool,
}

/// From the most that can be said to the least.
const DETAILS: [Detail; 5] = [
    Detail { values: MOST_ARGUMENTS, levels: 2, types: true },
    Detail { values: MOST_ARGUMENTS, levels: 0, types: true },
    Detail { values: 4, levels: 0, types: true },
    Detail { values: 0, levels: 0, types: true },
    Detail { values: 0, levels: 0, types: false },
];

/// An argument as its schema has it.
struct Argument<'s> {
    name: &'s str,
    required: bool,
    schema: &'s Value,
}

/// The names and types of the arguments that `schema` describes, required ones first:
/// `{title: string, state?: "open"|"closed", …3 more}`. At most [`SIGNATURE_TOKENS`] tokens; without a schema `{}`.
pub(crate) fn signature(schema: Option<&Value>) -> String {
    let Some(root) = schema else { return "{}".to_owned() };
    let mut arguments = Vec::new();
    members(root, root, 0, &mut arguments);
    // A stable sort: among equals the order of the schema stays.
    arguments.sort_by_key(|argument| !argument.required);
    let required = arguments.iter().filter(|argument| argument.required).count();
    let text = |detail: Detail, count: usize| written(root, &arguments, count, detail, 0);
    let all = DETAILS[..3].iter().map(|detail| (*detail, arguments.len()));
    // Which arguments there are says more than the values of each; those that are needed must stand in any case.
    let fewer =
        DETAILS[2..4].iter().flat_map(|detail| (required.max(1)..arguments.len()).rev().map(|count| (*detail, count)));
    let least = (0..=arguments.len()).rev().map(|count| (DETAILS[4], count));
    let mut candidates = all.chain(fewer).chain(least).map(|(detail, count)| clean(&text(detail, count)).into_owned());
    candidates.find(|text| fits(text)).unwrap_or_else(|| "{…}".to_owned())
}

fn fits(text: &str) -> bool {
    text.len() <= SIGNATURE_BYTES && Estimator::Cl100kBase.count(text) <= SIGNATURE_TOKENS
}

/// The texts of schemas are foreign.
fn clean(text: &str) -> Cow<'_, str> {
    match SanitizeConfig::default().clean(text) {
        Cow::Owned(clean) => Cow::Owned(clean.replace(char::is_control, " ")),
        Cow::Borrowed(_) if text.contains(char::is_control) => Cow::Owned(text.replace(char::is_control, " ")),
        Cow::Borrowed(text) => Cow::Borrowed(text),
    }
}

/// The first `count` of these arguments in braces, with the number of the others.
fn written(root: &Value, arguments: &[Argument<'_>], count: usize, detail: Detail, level: usize) -> String {
    let mut shown: Vec<String> = Vec::new();
    for argument in arguments.iter().take(count) {
        let name = match is_plain(argument.name) {
            true => Cow::Borrowed(argument.name),
            false => Cow::Owned(json!(argument.name).to_string()),
        };
        let mark = if argument.required { "" } else { "?" };
        shown.push(match detail.types {
            true => format!("{name}{mark}: {}", kind(root, argument.schema, detail, level + 1)),
            false => format!("{name}{mark}"),
        });
    }
    match arguments.len() - shown.len() {
        0 => {}
        left if shown.is_empty() => shown.push(counted(left, "argument")),
        left => shown.push(format!("…{left} more")),
    }
    format!("{{{}}}", shown.join(", "))
}

/// Whether a name can stand in a text as it is.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$'))
}

/// The type that `schema` describes, in the notation of TypeScript.
fn kind(root: &Value, schema: &Value, detail: Detail, level: usize) -> String {
    let Some(schema) = resolved(root, schema).filter(|_| level <= MOST_LEVELS) else { return "any".to_owned() };
    let one_of = |values: &[Value]| -> Option<String> {
        let short = |value: &Value| Some(value.to_string()).filter(|text| text.len() <= LONGEST_VALUE);
        let mut shown: Vec<String> = values.iter().take(detail.values).map(short).collect::<Option<_>>()?;
        match values.len() - shown.len() {
            _ if shown.is_empty() => return None,
            0 => {}
            left => shown.push(format!("…{left} more")),
        }
        Some(shown.join("|"))
    };
    if let Some(text) = schema.get("const").and_then(|value| one_of(std::slice::from_ref(value))) {
        return text;
    }
    if let Some(text) = schema.get("enum").and_then(Value::as_array).and_then(|values| one_of(values)) {
        return text;
    }
    let union = |kinds: Vec<String>| {
        let mut different: Vec<String> = Vec::new();
        kinds.into_iter().for_each(|kind| {
            if !different.contains(&kind) {
                different.push(kind);
            }
        });
        different.join("|")
    };
    match schema.get("type") {
        Some(Value::String(name)) => return named(root, schema, name, detail, level),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str).take(MOST_MEMBERS);
            return union(names.map(|name| named(root, schema, name, detail, level)).collect());
        }
        _ => {}
    }
    if let Some(branches) = branches(schema) {
        return union(branches.iter().take(MOST_MEMBERS).map(|branch| kind(root, branch, detail, level + 1)).collect());
    }
    if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
        let kinds = parts.iter().take(MOST_MEMBERS).map(|part| kind(root, part, detail, level + 1));
        return kinds.into_iter().find(|kind| kind != "any").unwrap_or_else(|| "any".to_owned());
    }
    match () {
        () if schema.get("properties").is_some() => named(root, schema, "object", detail, level),
        () if schema.get("items").is_some() => named(root, schema, "array", detail, level),
        () => match schema.get("enum").and_then(|values| values.get(0)) {
            Some(Value::String(_)) => "string".to_owned(),
            Some(Value::Number(_)) => "number".to_owned(),
            _ => "any".to_owned(),
        },
    }
}

/// The type called `name` with what `schema` says about its parts.
fn named(root: &Value, schema: &Value, name: &str, detail: Detail, level: usize) -> String {
    match name {
        "array" => {
            let inner =
                schema.get("items").map_or_else(|| "any".to_owned(), |items| kind(root, items, detail, level + 1));
            if inner.contains('|') { format!("({inner})[]") } else { format!("{inner}[]") }
        }
        "object" if level <= detail.levels => {
            let mut inner = Vec::new();
            members(root, schema, level, &mut inner);
            if inner.is_empty() || inner.len() > MOST_MEMBERS {
                return name.to_owned();
            }
            inner.sort_by_key(|argument| !argument.required);
            written(root, &inner, inner.len(), detail, level)
        }
        name => name.to_owned(),
    }
}

fn branches(schema: &Value) -> Option<&[Value]> {
    schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array).map(Vec::as_slice)
}

/// The arguments that `schema` names, also in what it refers to and in all parts of an `allOf`.
fn members<'s>(root: &'s Value, schema: &'s Value, level: usize, found: &mut Vec<Argument<'s>>) {
    let Some(schema) = resolved(root, schema).filter(|_| level <= MOST_LEVELS) else { return };
    let required: Vec<&str> = names_of(schema).collect();
    for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if found.len() < MOST_ARGUMENTS && !found.iter().any(|known| known.name == name) {
            found.push(Argument { name, required: required.contains(&name.as_str()), schema });
        }
    }
    for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten().take(MOST_MEMBERS) {
        members(root, part, level + 1, found);
    }
    for argument in found.iter_mut().filter(|argument| required.contains(&argument.name)) {
        argument.required = true;
    }
}

fn names_of(schema: &Value) -> impl Iterator<Item = &str> {
    let required = schema.get("required").and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str).take(MOST_ARGUMENTS)
}

/// Arguments among those `given` that `schema` does not name, each with the one that is not given and that it may mean: a
/// required one, or any where the schema takes no others.
pub(crate) fn misspelt<'a>(schema: Option<&'a Value>, given: &'a Value) -> Vec<(&'a str, &'a str)> {
    /// What may name arguments in a way that is not followed here.
    const UNFOLLOWED: [&str; 5] = ["anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"];
    let Some((root, given)) = schema.zip(given.as_object()) else { return Vec::new() };
    let Some(whole) = resolved(root, root).filter(|whole| UNFOLLOWED.iter().all(|key| whole.get(key).is_none())) else {
        return Vec::new();
    };
    let mut arguments = Vec::new();
    members(root, root, 0, &mut arguments);
    if arguments.len() >= MOST_ARGUMENTS {
        return Vec::new();
    }
    let is_comparable = |name: &str| name.len() <= LONGEST_NAME && is_plain(name);
    let takes_others = whole.get("additionalProperties") != Some(&Value::Bool(false));
    let is_known = |name: &str| arguments.iter().any(|argument| argument.name == name);
    let is_missing = |argument: &&Argument<'_>| {
        (argument.required || !takes_others) && !given.contains_key(argument.name) && is_comparable(argument.name)
    };
    let missing: Vec<&Argument<'_>> = arguments.iter().filter(is_missing).collect();
    let unknown = given.keys().map(String::as_str).filter(|name| !is_known(name) && is_comparable(name));
    let mut found: Vec<(&str, &str)> = Vec::new();
    for name in unknown.take(MOST_UNKNOWN) {
        let free = missing.iter().filter(|argument| found.iter().all(|(_, meant)| *meant != argument.name));
        let likely =
            free.filter_map(|argument| Some((changes(name, argument.name)?, !argument.required, argument.name)));
        if let Some((.., meant)) = likely.min() {
            found.push((name, meant));
        }
    }
    found
}

/// Changes of letters from one name to the other, whatever their case; `None` where there are too many for a misspelling.
fn changes(one: &str, other: &str) -> Option<usize> {
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    let (short, long) = (one.chars().count(), other.chars().count());
    let (short, long) = (short.min(long), short.max(long));
    let most = MOST_CHANGES.min(long / 3);
    // So many letters are of one name alone.
    if long - short > most {
        return None;
    }
    Some(strsim::osa_distance(&one, &other)).filter(|changes| *changes <= most)
}

/// The same arguments, where these names are replaced.
pub(crate) fn spelt(given: &Value, names: &[(&str, &str)]) -> Value {
    let name = |name: &String| {
        names.iter().find(|(wrong, _)| wrong == name).map_or(name.clone(), |(_, meant)| (*meant).to_owned())
    };
    match given {
        Value::Object(members) if !names.is_empty() => {
            members.iter().map(|(key, value)| (name(key), value.clone())).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// Arguments that `schema` accepts, as `checker` confirms: those that are required, and what fits of those that were
/// `given`. `None` where none could be made, or none that is short, or the check of one is long work.
pub(crate) fn example(schema: Option<&Value>, checker: &Checker, given: &Value) -> Option<Value> {
    let root = schema?;
    let mut steps = 0;
    let mut accepts = |value: &Value| {
        let short = value.to_string();
        short.len() <= EXAMPLE_BYTES && matches!(clean(&short), Cow::Borrowed(_)) && checker.accepts(value, &mut steps)
    };
    let mut maker = Maker { root, left: MOST_VALUES };
    let mut example = maker.value(root, "", 0)?;
    let has_base = accepts(&example);
    // What the caller got right stays: it shows which part was wrong.
    for (name, value) in given.as_object().into_iter().flatten().take(MOST_ARGUMENTS) {
        let text = value.to_string();
        if text.len() > KEPT_BYTES || matches!(redact(&text).text, Cow::Owned(_)) {
            continue;
        }
        let Some(members) = example.as_object_mut() else { break };
        let before = members.insert(name.clone(), value.clone());
        if accepts(&example) == has_base {
            // Without a base there is nothing to compare with until the whole fits.
            continue;
        }
        if !has_base {
            return Some(example);
        }
        let Some(members) = example.as_object_mut() else { break };
        match before {
            Some(before) => members.insert(name.clone(), before),
            None => members.shift_remove(name),
        };
    }
    has_base.then_some(example)
}

/// Makes values that schemas describe.
struct Maker<'s> {
    root: &'s Value,
    /// Values that may still be made.
    left: usize,
}

impl<'s> Maker<'s> {
    /// A value for the argument `name` that `schema` should accept.
    fn value(&mut self, schema: &'s Value, name: &str, level: usize) -> Option<Value> {
        self.left = self.left.checked_sub(1).filter(|_| level <= MOST_LEVELS)?;
        let schema = resolved(self.root, schema)?;
        let first = |key: &str| schema.get(key).and_then(|values| values.get(0));
        let stated = schema.get("const").or_else(|| first("examples")).or_else(|| first("enum"));
        if let Some(value) = stated.or_else(|| schema.get("default")).filter(|value| !value.is_null()) {
            return Some(value.clone());
        }
        let kind = match schema.get("type") {
            Some(Value::String(kind)) => Some(kind.as_str()),
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
            _ if schema.get("properties").is_some() => Some("object"),
            _ if schema.get("items").is_some() => Some("array"),
            _ => None,
        };
        let parts = schema.get("allOf").and_then(Value::as_array);
        match kind {
            Some("string") => Some(string(schema, name).into()),
            Some("integer" | "number") => Some(number(schema)),
            Some("boolean") => Some(false.into()),
            Some("null") => Some(Value::Null),
            Some("array") => self.array(schema, name, level),
            Some("object") => self.object(schema, level),
            _ => match (branches(schema), parts) {
                (Some(branches), _) => {
                    let is_null = |branch: &&Value| branch.get("type").and_then(Value::as_str) == Some("null");
                    let mut branches = branches.iter().take(MOST_MEMBERS).filter(|branch| !is_null(branch));
                    branches.find_map(|branch| self.value(branch, name, level + 1))
                }
                (None, Some(parts)) => {
                    let made = parts.iter().take(MOST_MEMBERS).filter_map(|part| self.value(part, name, level + 1));
                    made.reduce(merged)
                }
                (None, None) => Some(placeholder(name).into()),
            },
        }
    }

    fn object(&mut self, schema: &'s Value, level: usize) -> Option<Value> {
        let mut made = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        for name in names_of(schema) {
            let value = match properties.and_then(|properties| properties.get(name)) {
                Some(schema) => self.value(schema, name, level + 1)?,
                None => placeholder(name).into(),
            };
            made.insert(name.to_owned(), value);
        }
        let mut made = Value::Object(made);
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten().take(MOST_MEMBERS) {
            made = merged(made, self.object(resolved(self.root, part)?, level + 1)?);
        }
        // Where one of several sets of arguments is needed, the first.
        if let Some(branch) = branches(schema).and_then(<[Value]>::first).and_then(|branch| resolved(self.root, branch))
        {
            for name in names_of(branch) {
                let own = branch.get("properties").and_then(|own| own.get(name));
                let Some(schema) = own.or_else(|| properties?.get(name)) else { continue };
                let value = self.value(schema, name, level + 1)?;
                made = merged(made, json!({ name: value }));
            }
        }
        Some(made)
    }

    fn array(&mut self, schema: &'s Value, name: &str, level: usize) -> Option<Value> {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let count = usize::try_from(least.max(1)).ok().filter(|count| *count <= MOST_MEMBERS)?;
        let Some(items) = schema.get("items").filter(|items| items.is_object()) else { return Some(json!([])) };
        (0..count).map(|_| self.value(items, name, level + 1)).collect::<Option<Vec<_>>>().map(Value::from)
    }
}

/// The members of both objects; the value of `other` where one of them is not an object.
fn merged(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut members), Value::Object(others)) => {
            members.extend(others);
            Value::Object(members)
        }
        (_, other) => other,
    }
}

/// What stands for a text that only the caller knows.
fn placeholder(name: &str) -> String {
    if name.is_empty() { "text".to_owned() } else { format!("<{name}>") }
}

/// Texts that patterns often ask for.
const TEXTS: [&str; 20] = [
    "a",
    "A",
    "1",
    "abc",
    "ABC",
    "12",
    "123",
    "1234",
    "12345678",
    "abc-123",
    "ABC-123",
    "owner/name",
    "1.0.0",
    "2025-01-31",
    "2025-01-31T09:30:00Z",
    "09:30",
    "1h",
    "#1a2b3c",
    "/a",
    "a@example.com",
];

fn string(schema: &Value, name: &str) -> String {
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok());
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        let pattern = RegexBuilder::new(pattern).size_limit(1 << 16).build();
        let matches = |text: &&&str| pattern.as_ref().is_ok_and(|pattern| pattern.is_match(text));
        if let Some(text) = TEXTS.iter().find(matches) {
            return (*text).to_owned();
        }
    }
    let text = match schema.get("format").and_then(Value::as_str) {
        Some("date") => "2025-01-31",
        Some("date-time") => "2025-01-31T09:30:00Z",
        Some("time") => "09:30:00Z",
        Some("duration") => "P1D",
        Some("email") => "name@example.com",
        Some("uri" | "url" | "iri") => "https://example.com",
        Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
        Some("hostname") => "example.com",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        _ => &placeholder(name),
    };
    let mut text = text.to_owned();
    let least = bound("minLength").unwrap_or(0).min(EXAMPLE_BYTES);
    while text.chars().count() < least {
        text.push('x');
    }
    match bound("maxLength") {
        Some(most) if text.chars().count() > most => {
            text.chars().filter(|c| c.is_alphanumeric()).chain("xxxxxxxx".chars()).take(most).collect()
        }
        _ => text,
    }
}

fn number(schema: &Value) -> Value {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|least| least + 1.0));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|most| most - 1.0));
    let mut number = 1.0_f64.max(least.unwrap_or(f64::MIN)).min(most.unwrap_or(f64::MAX));
    if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
        number = (number / step).ceil() * step;
    }
    // A whole number is written as one.
    if number.fract() == 0.0 && number.abs() < 9e15 { json!(number as i64) } else { json!(number) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::guard::schema::compiled;

    fn of(schema: &Value) -> String {
        signature(Some(schema))
    }

    #[test]
    fn signatures_say_names_types_and_values() {
        let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
        let cases = [
            (json!({}), "{}"),
            (json!({"type": "object"}), "{}"),
            (
                object(json!({"state": {"enum": ["open", "closed"]}, "title": {"type": "string"}}), json!(["title"])),
                r#"{title: string, state?: "open"|"closed"}"#,
            ),
            (
                object(
                    json!({"a": {"type": ["integer", "null"]}, "b": {"type": "array", "items": {"type": "string"}},
                    "c": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "string"}]}, "d": {}, "e": true}),
                    json!([]),
                ),
                "{a?: integer|null, b?: string[], c?: string|integer, d?: any, e?: any}",
            ),
            (
                object(json!({"at": {"$ref": "#/$defs/p"}, "far": {"$ref": "http://elsewhere/"}}), json!(["at"])),
                "{at: any, far?: any}",
            ),
            (
                json!({"$defs": {"p": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x"]}},
                    "properties": {"at": {"$ref": "#/$defs/p"}, "more": {"type": "array", "items": {"enum": [1, 2]}}}}),
                "{at?: {x: number, y?: number}, more?: (1|2)[]}",
            ),
            (
                json!({"allOf": [{"properties": {"a": {"const": "x"}}, "required": ["b"]}, {"properties": {"b": {"type": "boolean"}}}]}),
                r#"{a?: "x", b?: boolean}"#,
            ),
            (object(json!({"a b": {"type": "string"}, "": {}}), json!([])), r#"{"a b"?: string, ""?: any}"#),
            (object(json!({"k\u{1b}<|im_start|>\u{202e}": {}}), json!([])), r#"{"k\u001b"?: any}"#),
        ];
        for (schema, expected) in cases {
            assert_eq!(of(&schema), expected);
        }
        assert_eq!(signature(None), "{}");
    }

    #[test]
    fn what_does_not_fit_is_counted_and_required_names_come_first() {
        let mut properties = Map::new();
        for number in 0..30 {
            let values: Vec<String> = (0..30).map(|value| format!("value_{value}")).collect();
            properties.insert(format!("argument_{number}"), json!({"type": "string", "enum": values}));
        }
        let schema = json!({"properties": properties, "required": ["argument_29", "argument_7"]});
        assert_eq!(
            of(&schema),
            r#"{argument_7: string, argument_29: string, argument_0?: string, argument_1?: string, argument_2?: string, …25 more}"#
        );
        let all: Vec<String> = (0..30).map(|number| format!("argument_{number}")).collect();
        let schema = json!({"properties": properties, "required": all});
        assert!(of(&schema).starts_with("{argument_0, argument_1") && of(&schema).ends_with(" more}"));
        let long = json!({"properties": {"x".repeat(3_000): {}}});
        assert_eq!(of(&long), "{1 argument}");
    }

    proptest! {
        #[test]
        fn a_signature_is_bounded_whatever_the_schema(
            names in prop::collection::btree_map("\\PC{0,40}", "\\PC{0,40}", 0..80), required in any::<bool>(),
        ) {
            let properties: Map<String, Value> = names
                .iter()
                .map(|(name, value)| (name.clone(), json!({"enum": [value, name], "properties": {value: {"type": value}}})))
                .collect();
            let required: Vec<&String> = names.keys().filter(|_| required).collect();
            let text = of(&json!({"properties": properties, "required": required}));
            prop_assert!(Estimator::Cl100kBase.count(&text) <= SIGNATURE_TOKENS, "{}", text);
            prop_assert!(!text.contains(char::is_control));
        }
    }

    fn example_of(schema: &Value, given: &Value) -> Option<Value> {
        example(Some(schema), &compiled(schema).unwrap(), given)
    }

    #[test]
    fn an_example_is_what_the_schema_accepts_and_keeps_what_was_right() {
        let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        let issue = object(
            json!({"title": {"type": "string"}, "state": {"enum": ["open", "closed"]}, "count": {"type": "integer", "minimum": 5, "multipleOf": 3},
                "due": {"type": "string", "format": "date"}, "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2}}),
            json!(["title", "count", "due", "tags"]),
        );
        let whole = json!({"title": "<title>", "count": 6, "due": "2025-01-31", "tags": ["<tags>", "<tags>"]});
        assert_eq!(example_of(&issue, &json!({})), Some(whole));
        let given =
            json!({"title": "T", "state": "shut", "count": "7", "tags": "x", "labels": [], "due": "2026-01-01"});
        let kept = json!({"title": "T", "count": 6, "due": "2026-01-01", "tags": ["<tags>", "<tags>"]});
        assert_eq!(example_of(&issue, &given), Some(kept));
        let secret = json!({"title": format!("AKIA{}", "IOSFODNN7EXAMPLE"), "state": "closed"});
        let example = example_of(&issue, &secret).unwrap();
        assert_eq!((&example["title"], &example["state"]), (&json!("<title>"), &json!("closed")));
    }

    #[test]
    fn a_misspelt_argument_is_told_and_its_value_kept() {
        let object = |closed: bool, required: Value| {
            json!({"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}, "id": {}},
                "required": required, "additionalProperties": !closed})
        };
        let open = object(false, json!(["query"]));
        let closed = object(true, json!(["query"]));
        let cases = [
            (&open, json!({"querry": "deploy"}), vec![("querry", "query")], json!({"query": "deploy"})),
            (
                &open,
                json!({"qeury": "deploy", "limit": 3}),
                vec![("qeury", "query")],
                json!({"query": "deploy", "limit": 3}),
            ),
            (&open, json!({"QUERY": "deploy"}), vec![("QUERY", "query")], json!({"query": "deploy"})),
            // The value is of another type.
            (&open, json!({"querry": 5}), vec![("querry", "query")], json!({"query": "<query>"})),
            // What is not needed, other words, short names, and what is there already.
            (&open, json!({"limmit": 3}), vec![], json!({"query": "<query>", "limmit": 3})),
            (&open, json!({"question": "deploy"}), vec![], json!({"query": "<query>", "question": "deploy"})),
            (&open, json!({"query": 5, "querry": "deploy"}), vec![], json!({"query": "<query>", "querry": "deploy"})),
            (
                &closed,
                json!({"query": "a", "limmit": 3, "di": 1}),
                vec![("limmit", "limit")],
                json!({"query": "a", "limit": 3}),
            ),
            (&closed, json!({"querry": "a", "queery": "b"}), vec![("querry", "query")], json!({"query": "a"})),
        ];
        for (schema, given, expected, example) in cases {
            let found = misspelt(Some(schema), &given);
            assert_eq!(found, expected, "{given}");
            let made = example_of(schema, &spelt(&given, &found)).unwrap();
            assert_eq!(made, example, "{given}");
        }
        // What a branch may name is not known to be wrong.
        let branched =
            json!({"properties": {"query": {}}, "required": ["query"], "anyOf": [{"properties": {"querry": {}}}]});
        for (schema, given) in [
            (Some(&branched), json!({"querry": 1})),
            (None, json!({"querry": 1})),
            (Some(&open), json!({"que\u{1b}ry": 1})),
            (Some(&open), json!([1])),
        ] {
            assert_eq!(misspelt(schema, &given), [], "{given}");
        }
    }

    #[test]
    fn names_are_compared_in_time_whatever_the_schema() {
        let names = |end: &str| (0..60).map(|number| format!("{}{number:02}{end}", "x".repeat(60))).collect::<Vec<_>>();
        let properties: Map<String, Value> = names("").into_iter().map(|name| (name, json!({}))).collect();
        let schema = json!({"properties": properties, "required": names("")});
        let given: Map<String, Value> =
            (0..100_000).map(|number| (format!("{}{number}", "x".repeat(55)), json!(1))).collect();
        let start = std::time::Instant::now();
        assert!(misspelt(Some(&schema), &given.into()).len() <= MOST_UNKNOWN);
        assert!(start.elapsed().as_secs() < 2, "{:?}", start.elapsed());
    }

    #[test]
    fn examples_follow_the_schema_or_there_is_none() {
        let of = |schema: Value| {
            example_of(&json!({"properties": {"v": schema}, "required": ["v"]}), &json!({}))
                .map(|made| made["v"].clone())
        };
        let cases = [
            (json!({"type": "string", "pattern": "^[A-Z]+-[0-9]+$"}), Some(json!("ABC-123"))),
            (json!({"type": "string", "pattern": "^zz[0-9]{9}$"}), None),
            (json!({"type": "string", "minLength": 6}), Some(json!("<v>xxx"))),
            (json!({"type": "string", "maxLength": 2}), Some(json!("vx"))),
            (json!({"type": "number", "maximum": 0.5}), Some(json!(0.5))),
            (json!({"anyOf": [{"type": "null"}, {"type": "boolean"}]}), Some(json!(false))),
            (json!({"default": "d", "type": "string"}), Some(json!("d"))),
            (json!({"default": "d", "type": "integer"}), None),
            (
                json!({"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                {"properties": {"b": {}}, "required": ["b"]}]}),
                Some(json!({"a": 1, "b": "<b>"})),
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "integer"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
                Some(json!({"a": 1})),
            ),
            (json!({"not": {}}), None),
            (json!({"enum": ["<|im_start|>"]}), None),
            (json!({"enum": ["x".repeat(1_000)]}), None),
            (json!({"type": "array", "items": {"type": "string"}, "minItems": 1_000}), None),
        ];
        for (schema, expected) in cases {
            assert_eq!(of(schema.clone()), expected, "{schema}");
        }
        // A tree without an end, whose root needs itself.
        let endless = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]});
        assert_eq!(example_of(&endless, &json!({})), None);
    }
}
