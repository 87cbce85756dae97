//! Schemas that come from somebody else: which are usable, and what they say of arguments and results.
//!
//! A schema is bounded and checked against the meta-schema of its own draft before a validator is made of it, nothing
//! that it refers to outside is fetched, and its regular expressions may backtrack only so far. One that is not usable
//! makes its tool fail with `SCHEMA_INVALID` when it is called; with `on_invalid: raise` the catalog is refused.

use jsonschema::{Draft, PatternOptions, Validator};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::common::error::{Code, GatewayError};
use crate::common::work::{Exhausted, draw_steps};
use contextweaver_context::store::redact;
use contextweaver_core::catalog::{
    MOST_WAYS, SchemaLimits, SchemaProblem, SchemaWeight, SelectableItem, check_schema, nesting_depth, weigh_schema,
};

/// What happens to a catalog with a schema that has findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInvalid {
    /// The tool is served; when its schema is not usable, calls of it fail.
    #[default]
    Flag,
    /// The catalog is refused.
    Raise,
}

/// Whether results are checked against the output schemas of their tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputCheck {
    /// A result that does not fit is an error of the upstream.
    #[default]
    Enforce,
    /// A result that does not fit is logged.
    Warn,
    /// They are not checked.
    Off,
}

/// Bounds on schemas, and what is done with them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SchemaConfig {
    /// Bytes of a schema as compact JSON.
    pub max_bytes: usize,
    /// Levels of nested objects and arrays.
    pub max_depth: usize,
    /// Entries of all `properties` together.
    pub max_properties: usize,
    /// What happens when a schema has findings.
    pub on_invalid: OnInvalid,
    /// Whether results are checked.
    pub output: OutputCheck,
}

impl Default for SchemaConfig {
    fn default() -> Self {
        let SchemaLimits { bytes, depth, properties } = SchemaLimits::default();
        Self {
            max_bytes: bytes,
            max_depth: depth,
            max_properties: properties,
            on_invalid: OnInvalid::Flag,
            output: OutputCheck::Enforce,
        }
    }
}

/// What is wrong with the schemas of an item.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The id of the item with the schema.
    pub id: String,
    /// Which schema: `inputSchema` or `outputSchema`.
    pub schema: &'static str,
    /// The problem of the schema.
    #[serde(flatten)]
    pub problem: SchemaProblem,
}

impl Finding {
    /// The problem in one line.
    #[must_use]
    pub fn described(&self) -> String {
        named(&self.problem)
    }
}

impl SchemaConfig {
    /// The bounds on schemas.
    pub(crate) fn limits(&self) -> SchemaLimits {
        SchemaLimits { bytes: self.max_bytes, depth: self.max_depth, properties: self.max_properties }
    }

    /// What is wrong with the schemas of these items, notes on ordinary recursion aside; in the order of the items.
    #[must_use]
    pub fn findings(&self, items: &[SelectableItem]) -> Vec<Finding> {
        let limits = self.limits();
        let of_item = |item: &SelectableItem| {
            let of_schema = |(name, schema): (&'static str, &Value)| {
                let counts = |problem: &SchemaProblem| !matches!(problem, SchemaProblem::Recursive { .. });
                let finding = |problem| Finding { id: item.id.clone(), schema: name, problem };
                check_schema(schema, &limits).into_iter().filter(counts).map(finding).collect::<Vec<_>>()
            };
            schemas_of(item).flat_map(of_schema).collect::<Vec<_>>()
        };
        items.par_iter().flat_map_iter(of_item).collect()
    }
}

/// The schemas of these items that are explosive, in the order of the items: a part of what [`SchemaConfig::findings`]
/// finds, without holding each schema against its meta-schema.
pub(super) fn explosive_among(items: &[SelectableItem]) -> Vec<Finding> {
    let of_item = |item: &SelectableItem| {
        let of_schema = |(name, schema): (&'static str, &Value)| {
            let ways = weigh_schema(schema).ways;
            let problem = SchemaProblem::Explosive { ways, limit: MOST_WAYS };
            (ways > MOST_WAYS).then(|| Finding { id: item.id.clone(), schema: name, problem })
        };
        schemas_of(item).filter_map(of_schema).collect::<Vec<_>>()
    };
    items.par_iter().flat_map_iter(of_item).collect()
}

/// The schemas that an item has, by their names.
fn schemas_of(item: &SelectableItem) -> impl Iterator<Item = (&'static str, &Value)> {
    let schemas = [("inputSchema", &item.args_schema), ("outputSchema", &item.output_schema)];
    schemas.into_iter().filter_map(|(name, schema)| Some((name, schema.as_deref()?)))
}

/// Bytes of a schema that a validator is made of, at most, whatever the configured limit flags.
const MOST_BYTES: usize = 1 << 20;

/// Levels of a schema that a validator is made of, at most: making one recurses.
const MOST_DEPTH: usize = 128;

/// Steps back that a regular expression may take for one text.
const MOST_STEPS_BACK: usize = 100_000;

/// Bytes of a compiled regular expression.
const MOST_PATTERN_BYTES: usize = 1 << 20;

/// A schema cannot be used: no validator can be made of it. The reason is one line without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SchemaError(String);

/// The failure of a call of `item`, whose own schema cannot be used.
pub(super) fn unusable(item: &SelectableItem, error: &SchemaError) -> GatewayError {
    GatewayError::new(Code::SchemaInvalid, format!("the tool's own schema is not usable: {error}")).at(&item.id)
}

/// Steps that checking one value may take, at most.
pub(crate) const MOST_STEPS: u64 = 50_000_000;

/// Steps that saying where a value does not fit may take: the validator follows every alternative then, and remembers
/// what was wrong in each.
const MOST_REPORT_STEPS: u64 = 200_000;

/// From so many steps on, other requests do not wait for a check.
const LONG_STEPS: u64 = 500_000;

/// A schema that values are checked against, with what that may cost.
#[derive(Debug)]
pub struct Checker {
    validator: Validator,
    weight: SchemaWeight,
}

impl Checker {
    /// The places where `value` does not fit, at most five; empty when it fits. One without a place says why there is
    /// none: the check would take too long, or saying where.
    ///
    /// # Errors
    /// The request has fewer steps left than the check may take.
    pub(crate) fn violations(&self, value: &Value, quote: Quote) -> Result<Vec<Violation>, Exhausted> {
        let whole = |reason: String| Ok(vec![Violation { path: String::new(), reason }]);
        let steps = self.steps(value);
        if steps > MOST_STEPS {
            return whole(format!("checking it against the schema may take {steps} steps, over {MOST_STEPS}"));
        }
        draw_steps(steps)?;
        if self.validator.is_valid(value) {
            return Ok(Vec::new());
        }
        // Where a recursion has alternatives, each level of the value multiplies them.
        let levels = u32::try_from(nesting_depth(value)).unwrap_or(u32::MAX);
        let branches = u64::try_from(self.weight.branches).unwrap_or(u64::MAX).max(1);
        if steps.saturating_mul(branches.saturating_pow(levels)) > MOST_REPORT_STEPS {
            return whole("it does not fit the schema, and saying where would take too long".to_owned());
        }
        Ok(violations(&self.validator, value, quote))
    }

    /// Steps that checking `value` may take.
    pub(crate) fn steps(&self, value: &Value) -> u64 {
        self.weight.steps.saturating_mul(values_in(value))
    }

    /// Whether the value fits, as one of several that are tried: no, where all of them together take too long, or more steps
    /// than the request has left. What they take is added to `steps`.
    pub(super) fn accepts(&self, value: &Value, steps: &mut u64) -> bool {
        let own = self.steps(value);
        *steps = steps.saturating_add(own);
        *steps <= MOST_REPORT_STEPS && draw_steps(own).is_ok() && self.validator.is_valid(value)
    }

    /// Checks a value, whatever comes of it.
    #[cfg(test)]
    pub(crate) fn try_on(&self, value: &Value) {
        let _ = self.violations(value, Quote::Values);
    }

    /// Whether checking a value that is written in so many bytes may be long work. A value takes two bytes at least.
    pub(super) fn may_be_long(&self, bytes: usize) -> bool {
        self.weight.steps.saturating_mul(u64::try_from(bytes / 2).unwrap_or(u64::MAX)) > LONG_STEPS
    }
}

/// The number of values in `value`, itself among them.
fn values_in(value: &Value) -> u64 {
    let mut open = vec![value];
    let mut count = 0;
    while let Some(value) = open.pop() {
        count += 1;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
    }
    count
}

/// The checker of a schema.
///
/// # Errors
/// [`SchemaError`]: the schema is invalid, too large, too deep, refers to something outside it, or checking against it may
/// take too long.
pub(crate) fn compiled(schema: &Value) -> Result<Checker, SchemaError> {
    let limits = SchemaLimits { bytes: MOST_BYTES, depth: MOST_DEPTH, properties: usize::MAX };
    let mut assumed = None;
    for problem in check_schema(schema, &limits) {
        match problem {
            SchemaProblem::Recursive { .. } => {}
            SchemaProblem::UnknownDialect { .. } => assumed = Some(Draft::Draft202012),
            problem => return Err(SchemaError(named(&problem))),
        }
    }
    let patterns = PatternOptions::fancy_regex().backtrack_limit(MOST_STEPS_BACK).size_limit(MOST_PATTERN_BYTES);
    let options = jsonschema::options().offline().with_pattern_options(patterns);
    let options = match assumed {
        Some(draft) => options.with_draft(draft),
        None => options,
    };
    let validator = options.build(schema).map_err(|error| SchemaError(shortened(&error.to_string())))?;
    Ok(Checker { validator, weight: weigh_schema(schema) })
}

/// A finding in one line.
fn named(problem: &SchemaProblem) -> String {
    match problem {
        SchemaProblem::Invalid { at, reason } => format!("{at}: {reason}"),
        SchemaProblem::TooLarge { bytes, limit } => format!("it has {bytes} bytes, over {limit}"),
        SchemaProblem::TooDeep { depth, limit } => format!("it is nested {depth} deep, over {limit}"),
        SchemaProblem::TooManyProperties { properties, limit } => {
            format!("it has {properties} properties, over {limit}")
        }
        SchemaProblem::Explosive { limit, .. } => {
            format!("it is explosive: checking one value may take more than {limit} steps")
        }
        SchemaProblem::DanglingRef { reference, at } => format!("{at}: `{reference}` leads nowhere"),
        SchemaProblem::CyclicRef { reference, at } => format!("{at}: `{reference}` leads back to itself"),
        SchemaProblem::RemoteRef { reference, at } => {
            format!("{at}: `{reference}` is outside the schema, and nothing is fetched")
        }
        SchemaProblem::Recursive { reference, at } => format!("{at}: `{reference}` is recursive"),
        SchemaProblem::UnknownDialect { dialect } => format!("`{dialect}` is not a published draft"),
    }
}

/// Violations that are reported, at most.
const MOST_VIOLATIONS: usize = 5;

/// Violations among which those are looked for that are told: the first by their places.
const MOST_COMPARED: usize = 1_000;

/// Which values a report may quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quote {
    /// The values of the caller may be quoted.
    Values,
    /// None: they come from an upstream.
    Nothing,
}

/// A place where a value does not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Violation {
    /// A JSON Pointer into the value.
    pub(crate) path: String,
    /// What is wrong there.
    pub(crate) reason: String,
}

/// The places where `value` does not fit, at most five; empty when it fits.
fn violations(validator: &Validator, value: &Value, quote: Quote) -> Vec<Violation> {
    let errors = validator.iter_errors(value).take(MOST_COMPARED);
    let mut placed: Vec<_> = errors.map(|error| (error.instance_path().to_string(), error)).collect();
    placed.sort_by(|(left, _), (right, _)| left.cmp(right));
    placed.truncate(MOST_VIOLATIONS);
    let told = placed.into_iter().map(|(path, error)| {
        let reason = match quote {
            Quote::Values => error.to_string(),
            Quote::Nothing => error.masked().to_string(),
        };
        Violation { path, reason: shortened(&reason) }
    });
    let mut found: Vec<Violation> = told.collect();
    found.sort();
    found
}

/// The failure that reports violations of `what`.
pub(super) fn refused(code: Code, what: &str, id: &str, violations: &[Violation]) -> GatewayError {
    let first = violations.first();
    let place = first.map(|first| first.path.as_str()).filter(|path| !path.is_empty()).unwrap_or(what);
    let reason = first.map_or("", |first| &first.reason);
    GatewayError::new(code, format!("{place}: {reason}")).at(id).with("violations", json!(violations))
}

/// Characters of a reason at most: the validator quotes values, which can be long.
const LONGEST_REASON: usize = 200;

fn shortened(reason: &str) -> String {
    let clean = redact(reason).text;
    match clean.char_indices().nth(LONGEST_REASON) {
        None => clean.into_owned(),
        Some((end, _)) => format!("{}…", clean.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn each_draft_is_taken_as_itself() {
        // `items` as an array is draft-07, `prefixItems` 2020-12; each ignores or refuses the other's.
        let tuple = |dialect: Option<&str>, keyword: &str| {
            let mut schema = json!({"type": "array"});
            schema[keyword] = json!([{"type": "string"}]);
            if let Some(dialect) = dialect {
                schema["$schema"] = dialect.into();
            }
            compiled(&schema).map(|checker| checker.validator.is_valid(&json!([1])))
        };
        let seventh = Some("http://json-schema.org/draft-07/schema#");
        let newest = Some("https://json-schema.org/draft/2020-12/schema");
        assert_eq!(tuple(seventh, "items"), Ok(false));
        assert_eq!(tuple(seventh, "prefixItems"), Ok(true));
        assert_eq!(tuple(newest, "prefixItems"), Ok(false));
        assert_eq!(tuple(None, "prefixItems"), Ok(false));
        assert!(tuple(newest, "items").is_err() && tuple(None, "items").is_err());
        assert_eq!(tuple(Some("https://example.com/own"), "prefixItems"), Ok(false));
    }

    #[test]
    fn what_is_not_usable_says_why() {
        let cases = [
            (json!({"type": "strin"}), "/type: \"strin\" is not a type of JSON Schema"),
            (json!({"$ref": "#"}), "`#` leads back to itself"),
            (json!({"$ref": "#/$defs/none"}), "`#/$defs/none` leads nowhere"),
            (json!({"properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}), "nothing is fetched"),
            (json!({"$ref": "file:///etc/passwd"}), "nothing is fetched"),
            (json!({"pattern": "("}), "("),
            (json!({"pattern": "(?:a{1000}){1000}"}), ""),
            (json!({"description": "x".repeat(MOST_BYTES)}), "bytes, over 1048576"),
        ];
        for (schema, expected) in cases {
            let reason = compiled(&schema).map(drop).unwrap_err().to_string();
            assert!(reason.contains(expected), "{reason}");
            assert!(reason.chars().count() <= LONGEST_REASON + 30, "{reason}");
        }
    }

    #[test]
    fn a_catastrophic_pattern_refuses_instead_of_running() {
        // Exponential for an engine that backtracks without bound.
        let text = format!("{}!", "a".repeat(60));
        for pattern in ["^(a+)+$", "^(?=(a+)+$).*b", "^(a|a)*(?!c)$", "(.*)\\1{5}x"] {
            let checker = compiled(&json!({ "pattern": pattern })).unwrap();
            assert!(!checker.validator.is_valid(&Value::from(text.as_str())), "{pattern}");
        }
        assert!(compiled(&json!({"pattern": "^(?!b)a+$"})).unwrap().validator.is_valid(&json!("aaa")));
    }

    #[test]
    fn what_multiplies_is_refused_or_answered_in_time() {
        use std::time::{Duration, Instant};
        let start = Instant::now();
        // 2.9 kB: forty levels of the same reference twice.
        let mut definitions = serde_json::Map::new();
        for level in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            definitions.insert(format!("d{level}"), json!({"anyOf": [next, next]}));
        }
        definitions.insert("d40".to_owned(), json!({"type": "string"}));
        let reason = compiled(&json!({"$defs": definitions, "$ref": "#/$defs/d0"})).unwrap_err().to_string();
        assert_eq!(reason, "it is explosive: checking one value may take more than 4096 steps");

        // A recursive filter, as real servers have them, and arguments nested 100 deep.
        let filter = json!({"$defs": {"f": {"oneOf": [
            {"type": "object", "properties": {"and": {"$ref": "#/$defs/f"}}, "required": ["and"]},
            {"type": "object", "properties": {"and": {"$ref": "#/$defs/f"}, "x": {}}, "required": ["and"]},
            {"type": "string"}]}}, "$ref": "#/$defs/f"});
        let checker = compiled(&filter).unwrap();
        let nested = |levels: usize| (0..levels).fold(json!(5), |inner, _| json!({"and": inner}));
        assert_ne!(checker.violations(&nested(2), Quote::Values).unwrap()[0].reason, "");
        let deep = checker.violations(&nested(100), Quote::Values).unwrap();
        assert_eq!(deep[0].reason, "it does not fit the schema, and saying where would take too long");

        // A pattern that goes back, for many texts.
        let pattern = json!({"type": "array", "items": {"not": {"pattern": "^(a|a)*(?!c)$"}}});
        let texts = Value::from(vec!["a".repeat(65); 2_000]);
        let refused = compiled(&pattern).unwrap().violations(&texts, Quote::Nothing).unwrap();
        assert!(refused[0].reason.contains("steps, over 50000000"), "{refused:?}");

        // A schema of many ways and a value of many parts.
        let wide = json!({"type": "array", "items": {"anyOf": vec![json!({"type": "string"}); 900]}});
        let long = Value::from(vec![5; 100_000]);
        let refused = compiled(&wide).unwrap().violations(&long, Quote::Nothing).unwrap();
        assert!(refused[0].reason.contains("steps, over 50000000"), "{refused:?}");
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }

    #[test]
    fn the_first_violations_by_their_places_are_told() {
        // A validator goes through properties in its own order.
        let members: Vec<String> = "gfedcba".chars().map(String::from).collect();
        let integers: serde_json::Map<_, _> =
            members.iter().map(|name| (name.clone(), json!({"type": "integer"}))).collect();
        let checker = compiled(&json!({"properties": integers, "required": ["z"]})).unwrap();
        let wrong: serde_json::Map<_, _> = members.iter().map(|name| (name.clone(), json!("x"))).collect();
        let told = checker.violations(&wrong.into(), Quote::Values).unwrap();
        let places: Vec<&str> = told.iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(places, ["", "/a", "/b", "/c", "/d"]);
    }

    #[test]
    fn findings_name_item_schema_and_problem() {
        let mut good = SelectableItem::tool("a:good#00000000", "a", "good", "");
        good.args_schema = Some(Arc::new(json!({"properties": {"next": {"$ref": "#"}}})));
        let mut bad = SelectableItem::tool("a:bad#00000000", "a", "bad", "");
        bad.args_schema = Some(Arc::new(json!({"type": 5})));
        bad.output_schema = Some(Arc::new(json!({"properties": {"a": {}, "b": {}, "c": {"not": {"not": {}}}}})));
        let config = SchemaConfig { max_properties: 2, max_depth: 3, ..SchemaConfig::default() };
        let found = config.findings(&[bad, good]);
        let lines: Vec<String> = found
            .iter()
            .map(|finding| format!("{} {} {}", finding.id, finding.schema, named(&finding.problem)))
            .collect();
        assert!(lines[0].starts_with("a:bad#00000000 inputSchema /type: "), "{}", lines[0]);
        let rest = [
            "a:bad#00000000 outputSchema it is nested 5 deep, over 3",
            "a:bad#00000000 outputSchema it has 3 properties, over 2",
        ];
        assert_eq!(lines[1..], rest);
    }
}
