//! What is wrong with the tools of a catalog, from a model's point of view.
//!
//! An error keeps a tool from being called correctly; a warning makes it hard to choose or costly to carry; a note is
//! worth knowing. The findings are data: showing them is the caller's business.

use std::collections::{BTreeMap, HashSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::formats::Refused;
use super::formats::pattern::is_broken;
use super::formats::providers::refused_by;
use super::formats::schema::{Role, role};
use super::load::{MAX_NESTING, shortened};
use super::near::{Neighbours, neighbours};
use super::schema::{SchemaLimits, SchemaProblem, check_schema};
use super::{Catalog, Kind, Safety, SelectableItem, nesting_depth};
use crate::names::named;
use crate::text::{Analyzer, TermSet, cl100k_if_over};

/// A description with more `cl100k_base` tokens is reported. Of the tools of 70 public servers 3 % have more.
pub const LONG_DESCRIPTION_TOKENS: usize = 512;

/// Two tools are near-duplicates when the terms of their names, descriptions and parameters have at least this
/// Jaccard similarity.
pub const NEAR_DUPLICATE: f64 = 0.85;

named! {
    /// How bad a finding is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum Severity as "severity" {
        /// Worth knowing; nothing has to be done.
        Note = "note",
        /// Makes the tool hard to choose, or costly.
        Warning = "warning",
        /// Keeps the tool from being called correctly.
        Error = "error",
    }
}

/// Which schema of a tool a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaPart {
    /// The schema of the arguments.
    Arguments,
    /// The schema of the structured result.
    Result,
}

impl SchemaPart {
    /// What it is called: `argument schema` or `result schema`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Arguments => "argument schema",
            Self::Result => "result schema",
        }
    }
}

/// A problem that [`lint`] looks for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum Problem {
    /// A schema is invalid or risky.
    Schema {
        /// The schema that is invalid or risky.
        part: SchemaPart,
        /// What is wrong with it.
        #[serde(flatten)]
        finding: SchemaProblem,
    },
    /// The argument schema does not say `"type": "object"`, which MCP requires.
    ArgumentsNotObject,
    /// It has no argument schema, but a member that looks like one under a key that no format has.
    UnreadSchema {
        /// The member, as a JSON pointer in the definition.
        at: String,
    },
    /// An object must have members that it does not describe.
    UndeclaredRequired {
        /// Their names.
        names: Vec<String>,
    },
    /// Providers refuse a request with this definition. The lists that are written here have it in a form that they
    /// take, or do without it.
    Refused {
        /// The providers.
        by: Vec<&'static str>,
        /// What they refuse.
        #[serde(flatten)]
        what: Refused,
    },
    /// It declares itself both read-only and destructive.
    ContradictorySafety,
    /// There is no description.
    MissingDescription,
    /// The description is longer than [`LONG_DESCRIPTION_TOKENS`].
    LongDescription {
        /// Its `cl100k_base` tokens.
        tokens: usize,
        /// The limit that it exceeds, in the same tokens.
        limit: usize,
    },
    /// The name does not follow MCP's recommendation: 1 to 128 of `A`–`Z`, `a`–`z`, `0`–`9`, `_`, `-`, `.`.
    UnusualName {
        /// The name as the server gave it.
        name: String,
    },
    /// Name, description and argument schema equal those of another tool.
    Duplicate {
        /// The id of the first such tool.
        of: String,
    },
    /// The words are nearly those of another tool.
    NearDuplicate {
        /// The id of the most similar tool.
        of: String,
        /// Their Jaccard similarity.
        similarity: f64,
        /// Tools that are at least as similar as [`NEAR_DUPLICATE`], that one included.
        count: usize,
    },
    /// Parameters have no description.
    UndescribedParameters {
        /// How many parameters have no description.
        count: usize,
        /// The names of the first few.
        examples: Vec<String>,
    },
    /// It depends on items that the catalog does not have.
    UnknownDependencies {
        /// Their ids, as the definition has them.
        ids: Vec<String>,
    },
    /// It requires what no item provides.
    UnprovidedRequirements {
        /// The names of these facts or resources.
        names: Vec<String>,
    },
}

impl Problem {
    /// How bad it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Self::UnreadSchema { .. } => Severity::Error,
            Self::Schema { finding, .. } => match finding {
                SchemaProblem::Invalid { .. } | SchemaProblem::DanglingRef { .. } | SchemaProblem::CyclicRef { .. } => {
                    Severity::Error
                }
                SchemaProblem::TooLarge { .. }
                | SchemaProblem::TooDeep { .. }
                | SchemaProblem::TooManyProperties { .. }
                | SchemaProblem::Explosive { .. }
                | SchemaProblem::RemoteRef { .. } => Severity::Warning,
                SchemaProblem::Recursive { .. } | SchemaProblem::UnknownDialect { .. } => Severity::Note,
            },
            Self::ContradictorySafety
            | Self::ArgumentsNotObject
            | Self::UndeclaredRequired { .. }
            | Self::Refused { .. }
            | Self::MissingDescription
            | Self::LongDescription { .. }
            | Self::UnusualName { .. }
            | Self::Duplicate { .. }
            | Self::UnknownDependencies { .. } => Severity::Warning,
            // Tools that create and update the same thing often differ in little more than the verb. What no item
            // provides may be there from the beginning.
            Self::NearDuplicate { .. } | Self::UndescribedParameters { .. } | Self::UnprovidedRequirements { .. } => {
                Severity::Note
            }
        }
    }
}

/// A problem of one item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The id of the item.
    pub id: String,
    /// How bad it is.
    pub severity: Severity,
    /// The problem that was found.
    #[serde(flatten)]
    pub problem: Problem,
}

/// The findings about a catalog.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LintReport {
    /// Items that were looked at: all of the catalog.
    pub items: usize,
    /// How many findings there are of each severity, all three always present.
    pub counts: BTreeMap<Severity, usize>,
    /// The worst first, then by id.
    pub findings: Vec<Finding>,
}

/// Looks at every item of `catalog`.
#[must_use]
pub fn lint(catalog: &Catalog, limits: &SchemaLimits) -> LintReport {
    let items = catalog.items();
    let mut findings: Vec<Finding> = items
        .par_iter()
        .flat_map_iter(|item| check_item(item, limits).into_iter().map(|problem| finding(item, problem)))
        .collect();
    let duplicates = duplicates(items);
    findings.extend(near(items, &duplicates));
    findings.extend(missing(catalog));
    findings.extend(duplicates.iter().enumerate().filter_map(|(position, of)| {
        of.map(|of| finding(&items[position], Problem::Duplicate { of: items[of].id.clone() }))
    }));
    findings.sort_by(|left, right| right.severity.cmp(&left.severity).then_with(|| left.id.cmp(&right.id)));
    let mut counts = BTreeMap::from(Severity::ALL.map(|severity| (severity, 0)));
    for finding in &findings {
        *counts.entry(finding.severity).or_default() += 1;
    }
    LintReport { items: items.len(), counts, findings }
}

fn finding(item: &SelectableItem, problem: Problem) -> Finding {
    Finding { id: item.id.clone(), severity: problem.severity(), problem }
}

/// The problems of an item that can be seen without the other items.
fn check_item(item: &SelectableItem, limits: &SchemaLimits) -> Vec<Problem> {
    let mut problems = Vec::new();
    let schemas = [(SchemaPart::Arguments, &item.args_schema), (SchemaPart::Result, &item.output_schema)];
    for (part, schema) in schemas {
        let findings = schema.iter().flat_map(|schema| check_schema(schema, limits));
        let broken = schema.iter().flat_map(|schema| broken_patterns(schema));
        problems.extend(findings.chain(broken).map(|finding| Problem::Schema { part, finding }));
    }
    if item.args_schema.as_ref().is_some_and(|schema| schema.get("type").and_then(Value::as_str) != Some("object")) {
        problems.push(Problem::ArgumentsNotObject);
    }
    if item.kind.is_callable() && item.args_schema.is_none() {
        problems.extend(unread_schema(item).map(|at| Problem::UnreadSchema { at }));
    }
    if let Some(schema) = item.args_schema.as_deref().filter(|_| item.kind.is_callable()) {
        let mut names = Vec::new();
        undeclared(schema, 0, &mut names);
        problems.extend((!names.is_empty()).then_some(Problem::UndeclaredRequired { names }));
        // That it is not valid, and that references lead nowhere, was found above.
        let is_new = |what: &Refused| !matches!(what, Refused::InvalidSchema | Refused::References { .. });
        let refused = refused_by(item).into_iter().filter(|(what, _)| is_new(what));
        problems.extend(refused.map(|(what, by)| Problem::Refused { by, what }));
    }
    if item.safety == Safety::Destructive && declares_read_only(item) {
        problems.push(Problem::ContradictorySafety);
    }
    if item.description.trim().is_empty() {
        problems.push(Problem::MissingDescription);
    }
    if let Some(tokens) = cl100k_if_over(&item.description, LONG_DESCRIPTION_TOKENS) {
        problems.push(Problem::LongDescription { tokens, limit: LONG_DESCRIPTION_TOKENS });
    }
    if item.kind == Kind::Tool && !is_recommended_name(&item.name) {
        problems.push(Problem::UnusualName { name: item.name.clone() });
    }
    problems.extend(undescribed_parameters(item));
    problems
}

/// The patterns of a schema that no engine reads, each with its place. The meta-schemas say that a pattern is a regular
/// expression, but their validators need not look.
fn broken_patterns(schema: &Value) -> Vec<SchemaProblem> {
    let mut problems = Vec::new();
    if nesting_depth(schema) <= MAX_NESTING {
        find_broken(schema, Role::Schema, "", &mut problems);
    }
    problems
}

fn find_broken(value: &Value, is: Role, at: &str, problems: &mut Vec<SchemaProblem>) {
    match value {
        Value::Array(schemas) if is == Role::Schema => {
            for (index, schema) in schemas.iter().enumerate() {
                find_broken(schema, is, &format!("{at}/{index}"), problems);
            }
        }
        Value::Object(members) => {
            for (key, value) in members {
                let at = || format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                let mut check = |pattern: &str| {
                    if is_broken(pattern) {
                        let reason = format!("`{}` is no regular expression", shortened(pattern));
                        problems.push(SchemaProblem::Invalid { at: at(), reason });
                    }
                };
                match (is, key.as_str()) {
                    (Role::Schema, "pattern") => value.as_str().into_iter().for_each(&mut check),
                    (Role::Schema, "patternProperties") => {
                        value.as_object().into_iter().flatten().for_each(|(pattern, _)| check(pattern));
                    }
                    _ => {}
                }
                let inner = if is == Role::Map { Role::Schema } else { role(key) };
                if inner != Role::Data {
                    find_broken(value, inner, &at(), problems);
                }
            }
        }
        _ => {}
    }
}

/// The names of required members that objects do not describe, in objects that say all about their members themselves.
fn undeclared(schema: &Value, depth: usize, names: &mut Vec<String>) {
    const ELSEWHERE: [&str; 6] = ["$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"];
    const DEPTH: usize = 6;
    let Some(members) = schema.as_object().filter(|_| depth <= DEPTH) else { return };
    if let Some(properties) = members.get("properties").and_then(Value::as_object) {
        if !ELSEWHERE.iter().any(|key| members.contains_key(*key)) {
            let required = members.get("required").and_then(Value::as_array).into_iter().flatten();
            let unknown = required.filter_map(Value::as_str).filter(|name| !properties.contains_key(*name));
            names.extend(unknown.map(str::to_owned));
        }
        properties.values().for_each(|property| undeclared(property, depth + 1, names));
    }
    members.get("items").into_iter().for_each(|items| undeclared(items, depth + 1, names));
}

/// The first member of a definition that looks like the schema of its arguments, which were not read.
fn unread_schema(item: &SelectableItem) -> Option<String> {
    let received = item.raw.as_ref().and_then(|raw| serde_json::from_str::<Map<String, Value>>(raw.get()).ok());
    match received {
        Some(members) => unread_member(&members, 0),
        None => unread_member(&item.metadata.clone().into_iter().collect(), 0),
    }
}

fn unread_member(members: &Map<String, Value>, depth: usize) -> Option<String> {
    const DEPTH: usize = 3;
    const OTHERS: [&str; 5] = ["outputSchema", "output_schema", "annotations", "_meta", "icons"];
    let argument = |value: &Value| value.get("name").is_some() && value.get("type").is_some();
    members.iter().filter(|(key, _)| !OTHERS.contains(&key.as_str())).find_map(|(key, value)| {
        let at = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        match value {
            Value::Object(inner) => {
                let typed = inner.get("type").and_then(Value::as_str);
                let is_object = typed.is_some_and(|kind| kind.eq_ignore_ascii_case("object"));
                // Parameters by their names, each with a type.
                let are_typed =
                    !inner.is_empty() && inner.values().all(|one| one.get("type").is_some_and(Value::is_string));
                if is_object || are_typed || inner.get("properties").is_some_and(Value::is_object) {
                    return Some(at);
                }
                (depth < DEPTH).then(|| unread_member(inner, depth + 1)).flatten().map(|below| at + &below)
            }
            // A list of arguments, each with name and type.
            Value::Array(values) => (!values.is_empty() && values.iter().all(argument)).then_some(at),
            _ => None,
        }
    })
}

/// Whether the definition as received says read-only; the item itself keeps only the class that wins.
fn declares_read_only(item: &SelectableItem) -> bool {
    let definition = item.raw.as_ref().and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    definition.is_some_and(|definition| {
        let hint = definition.pointer("/annotations/readOnlyHint").and_then(Value::as_bool);
        let tags = definition.get("tags").and_then(Value::as_array);
        hint == Some(true) || tags.is_some_and(|tags| tags.iter().any(|tag| tag.as_str() == Safety::ReadOnly.tag()))
    })
}

fn is_recommended_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

fn undescribed_parameters(item: &SelectableItem) -> Option<Problem> {
    const EXAMPLES: usize = 5;
    let (mut count, mut examples) = (0, Vec::new());
    item.for_each_parameter(|name, description| {
        if description.trim().is_empty() {
            count += 1;
            if examples.len() < EXAMPLES {
                examples.push(name.to_owned());
            }
        }
    });
    (count > 0).then_some(Problem::UndescribedParameters { count, examples })
}

/// What items depend on and require that is nowhere in the catalog.
fn missing(catalog: &Catalog) -> Vec<Finding> {
    let items = catalog.items();
    let provided: HashSet<&str> = items.iter().flat_map(|item| &item.provides).map(String::as_str).collect();
    // Items of the Python package keep the ids that they refer to each other by.
    let foreign: HashSet<&str> = items.iter().filter_map(|item| item.metadata.get("id")?.as_str()).collect();
    let mut findings = Vec::new();
    for item in items {
        let own = item.depends_on.iter().map(String::as_str).filter(|id| catalog.get(id).is_none());
        let others = item.metadata.get("depends_on").and_then(Value::as_array).into_iter().flatten();
        let others = others.filter_map(Value::as_str).filter(|id| !foreign.contains(id));
        let ids: Vec<String> = own.chain(others).map(str::to_owned).collect();
        let names = item.requires.iter().filter(|name| !provided.contains(name.as_str()));
        let names: Vec<String> = names.cloned().collect();
        let unknown = (!ids.is_empty()).then_some(Problem::UnknownDependencies { ids });
        let unprovided = (!names.is_empty()).then_some(Problem::UnprovidedRequirements { names });
        findings.extend(unknown.into_iter().chain(unprovided).map(|problem| finding(item, problem)));
    }
    findings
}

/// For every item the position of the first callable item with the same name, description and argument schema, when
/// that is another item.
fn duplicates(items: &[SelectableItem]) -> Vec<Option<usize>> {
    let mut first: BTreeMap<String, usize> = BTreeMap::new();
    let positions = items.iter().enumerate().map(|(position, item)| {
        if !item.kind.is_callable() {
            return None;
        }
        let first = *first.entry(item.definition_json()).or_insert(position);
        (first != position).then_some(first)
    });
    positions.collect()
}

/// Near-duplicates among the callable items. Copies were reported as such and are not compared.
fn near(items: &[SelectableItem], duplicates: &[Option<usize>]) -> Vec<Finding> {
    let compared: Vec<usize> = (0..items.len())
        .filter(|position| items[*position].kind.is_callable() && duplicates[*position].is_none())
        .collect();
    let sets: Vec<TermSet> = compared
        .par_iter()
        .map_init(Analyzer::default, |analyzer, position| terms(analyzer, &items[*position]))
        .collect();
    let found = neighbours(&sets, NEAR_DUPLICATE).into_iter().zip(&compared).filter_map(|(around, position)| {
        let Neighbours { nearest, similarity, count } = around?;
        let of = items[compared[nearest]].id.clone();
        Some(finding(&items[*position], Problem::NearDuplicate { of, similarity, count }))
    });
    found.collect()
}

fn terms(analyzer: &Analyzer, item: &SelectableItem) -> TermSet {
    let mut text = format!("{}\n{}", item.name, item.description);
    item.for_each_parameter(|name, description| {
        for part in [name, description] {
            text.push('\n');
            text.push_str(part);
        }
    });
    TermSet::of(analyzer, &text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(tools: &[Value]) -> String {
        found_in(&Catalog::from_values(tools, Some("s")).unwrap())
    }

    fn found_in(catalog: &Catalog) -> String {
        let report = lint(catalog, &SchemaLimits::default());
        assert_eq!(report.counts.values().sum::<usize>(), report.findings.len());
        report.findings.iter().map(|finding| serde_json::to_string(finding).unwrap() + "\n").collect()
    }

    #[test]
    fn a_tool_in_order_has_no_findings() {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string", "description": "Where"}}});
        let long = "word ".repeat(LONG_DESCRIPTION_TOKENS - 1);
        let tools = [
            json!({"name": "read_file", "description": "Reads", "inputSchema": schema}),
            json!({"name": "write-file.v2", "description": long.trim_end(), "annotations": {"destructiveHint": true}}),
        ];
        assert_eq!(found(&tools), "");
    }

    #[test]
    fn every_problem_is_found() {
        let tools = [
            json!({"name": "list files", "description": " ", "inputSchema": {"properties": {"a": {}, "b": {"items": {"properties": {"c": {}}}}}}}),
            json!({"name": "wipe", "description": "word ".repeat(600), "annotations": {"destructiveHint": true, "readOnlyHint": true}}),
            json!({"name": "tagged", "description": "Both", "tags": ["read-only", "destructive"]}),
            json!({"name": "bad", "description": "Bad", "inputSchema": {"type": "object", "required": "a"}, "outputSchema": {"$ref": "#/a"}}),
            json!({"id": "s.pay", "kind": "tool", "name": "pay", "description": "Pays", "depends_on": ["s.find", "s.pay"], "requires": ["token"]}),
        ];
        insta::assert_snapshot!(found(&tools), @r##"
        {"id":"s:bad#2bd81fe4","severity":"error","problem":"schema","part":"arguments","schema_problem":"invalid","at":"/required","reason":"\"a\" is not of type \"array\""}
        {"id":"s:bad#2bd81fe4","severity":"error","problem":"schema","part":"result","schema_problem":"dangling_ref","reference":"#/a","at":""}
        {"id":"s:list_files#37b3bd9a","severity":"warning","problem":"arguments_not_object"}
        {"id":"s:list_files#37b3bd9a","severity":"warning","problem":"missing_description"}
        {"id":"s:list_files#37b3bd9a","severity":"warning","problem":"unusual_name","name":"list files"}
        {"id":"s:pay#a399aee8","severity":"warning","problem":"unknown_dependencies","ids":["s.find"]}
        {"id":"s:tagged#61d1e831","severity":"warning","problem":"contradictory_safety"}
        {"id":"s:wipe#bb6cf94e","severity":"warning","problem":"contradictory_safety"}
        {"id":"s:wipe#bb6cf94e","severity":"warning","problem":"long_description","tokens":601,"limit":512}
        {"id":"s:list_files#37b3bd9a","severity":"note","problem":"undescribed_parameters","count":3,"examples":["a","b","c"]}
        {"id":"s:pay#a399aee8","severity":"note","problem":"unprovided_requirements","names":["token"]}
        "##);
    }

    #[test]
    fn what_items_refer_to_outside_the_catalog_is_found() {
        let item = |id: &str, depends_on: &[&str], provides: &[&str], requires: &[&str]| {
            let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
            SelectableItem {
                depends_on: owned(depends_on),
                provides: owned(provides),
                requires: owned(requires),
                ..SelectableItem::tool(id, "shop", id.split([':', '@']).nth(1).unwrap(), id)
            }
        };
        let items = vec![
            item("shop:find@1", &[], &["order"], &[]),
            item("shop:refund@1", &["shop:find@1", "shop:find", "gone:login@1"], &[], &["order", "token", "user"]),
            item("shop:send@1", &["shop:find@1"], &["parcel"], &["order", "parcel"]),
        ];
        insta::assert_snapshot!(found_in(&Catalog::new(items).unwrap()), @r#"
        {"id":"shop:refund@1","severity":"warning","problem":"unknown_dependencies","ids":["shop:find","gone:login@1"]}
        {"id":"shop:refund@1","severity":"note","problem":"unprovided_requirements","names":["token","user"]}
        "#);
    }

    #[test]
    fn what_providers_refuse_is_found() {
        let text = json!({"type": "string", "description": "D"});
        let tool = |name: &str, schema: Value| json!({"name": name, "description": "D", "inputSchema": schema});
        let tools = [
            tool("names", json!({"type": "object", "properties": {"filter[x]": text, "ok": text}})),
            tool("root", json!({"type": "object", "properties": {"a": text}, "oneOf": [{"required": ["a"]}]})),
            tool("lists", json!({"type": "object", "properties": {"a": {"type": "array", "description": "D"}}})),
            tool(
                "older",
                json!({"type": "object", "properties": {"a": {"type": "array", "description": "D", "items": [text]}}}),
            ),
            tool("array", json!({"type": "array", "items": text})),
            tool(
                "undeclared",
                json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "array", "description": "D",
                "items": {"properties": {"c": text}, "required": ["d"]}}}}),
            ),
            tool(
                "elsewhere",
                json!({"type": "object", "required": ["x1"], "properties": {}, "patternProperties": {"^x": text}}),
            ),
        ];
        insta::assert_snapshot!(found(&tools), @r#"
        {"id":"s:older#2efa6a15","severity":"error","problem":"schema","part":"arguments","schema_problem":"invalid","at":"/properties/a/items","reason":"[{\"type\":\"string\",\"description\":\"D\"}] is not of types \"boolean\", \"object\""}
        {"id":"s:array#24854f7d","severity":"warning","problem":"arguments_not_object"}
        {"id":"s:array#24854f7d","severity":"warning","problem":"refused","by":["OpenAI","Anthropic","Gemini"],"refused":"not_an_object"}
        {"id":"s:lists#d96c635a","severity":"warning","problem":"refused","by":["OpenAI","Gemini"],"refused":"array_without_items"}
        {"id":"s:names#b2c4a26e","severity":"warning","problem":"refused","by":["Anthropic"],"refused":"argument_names","names":["filter[x]"]}
        {"id":"s:older#2efa6a15","severity":"warning","problem":"refused","by":["OpenAI","Anthropic","Gemini"],"refused":"older_draft"}
        {"id":"s:root#843d1ed8","severity":"warning","problem":"refused","by":["OpenAI","Anthropic","Gemini"],"refused":"root","keywords":["oneOf"]}
        {"id":"s:undeclared#9d1b4ee9","severity":"warning","problem":"undeclared_required","names":["b","d"]}
        "#);
    }

    #[test]
    fn a_pattern_that_no_engine_reads_is_found() {
        let text = |pattern: &str| json!({"type": "string", "description": "D", "pattern": pattern});
        let schema = json!({"type": "object", "properties": {"a/b": text("[("), "pattern": text("^a"), "c": {"description": "D", "default": {"pattern": "("}}},
            "patternProperties": {"*": {"items": {"pattern": "a)"}}}});
        let strict = json!({"type": "function", "function": {"name": "strict", "description": "D", "strict": true, "parameters": {"type": "object", "properties": {"a": text("(?=a)")}}}});
        insta::assert_snapshot!(found(&[json!({"name": "t", "description": "D", "inputSchema": schema}), strict]), @r#"
        {"id":"s:t#eb14c98d","severity":"error","problem":"schema","part":"arguments","schema_problem":"invalid","at":"/properties/a~1b/pattern","reason":"`[(` is no regular expression"}
        {"id":"s:t#eb14c98d","severity":"error","problem":"schema","part":"arguments","schema_problem":"invalid","at":"/patternProperties","reason":"`*` is no regular expression"}
        {"id":"s:t#eb14c98d","severity":"error","problem":"schema","part":"arguments","schema_problem":"invalid","at":"/patternProperties/*/items/pattern","reason":"`a)` is no regular expression"}
        {"id":"s:strict#a571d998","severity":"warning","problem":"refused","by":["OpenAI"],"refused":"patterns","patterns":["(?=a)"]}
        {"id":"s:strict#a571d998","severity":"warning","problem":"refused","by":["OpenAI","Anthropic"],"refused":"strict"}
        {"id":"s:t#eb14c98d","severity":"warning","problem":"refused","by":["Anthropic"],"refused":"argument_names","names":["a/b"]}
        {"id":"s:t#eb14c98d","severity":"warning","problem":"refused","by":["OpenAI","Anthropic","Gemini"],"refused":"patterns","patterns":["*","[(","a)"]}
        "#);
    }

    #[test]
    fn a_schema_under_an_unknown_key_is_found() {
        let schema = json!({"type": "object", "properties": {"a": {"description": "A"}}});
        let tools = [
            json!({"name": "a", "description": "A", "inputs": schema}),
            json!({"name": "b", "description": "B", "spec": {"in/put": {"properties": {}}}}),
            json!({"name": "c", "description": "C", "parameters": [{"name": "x", "type": "string"}]}),
            json!({"type": "function", "function": {"name": "d", "description": "D", "arguments": schema}}),
            json!({"name": "e", "description": "E", "outputSchema": schema, "annotations": {"type": "object"}}),
            json!({"name": "f", "description": "F", "input_schema": schema, "inputs": schema}),
            json!({"name": "g", "description": "G", "inputs": {"city": {"type": "string"}}}),
            json!({"name": "h", "description": "H", "arguments": {"city": {"type": "str", "required": true}}}),
            json!({"name": "i", "description": "I", "inputs": {}, "limits": {"calls": 3}}),
        ];
        insta::assert_snapshot!(found(&tools), @r#"
        {"id":"s:a#fdad281d","severity":"error","problem":"unread_schema","at":"/inputs"}
        {"id":"s:b#0eb0d799","severity":"error","problem":"unread_schema","at":"/spec/in~1put"}
        {"id":"s:c#b1acd239","severity":"error","problem":"unread_schema","at":"/parameters"}
        {"id":"s:d#e4a2c692","severity":"error","problem":"unread_schema","at":"/arguments"}
        {"id":"s:g#934e1be4","severity":"error","problem":"unread_schema","at":"/inputs"}
        {"id":"s:h#8b93102d","severity":"error","problem":"unread_schema","at":"/arguments"}
        "#);
    }

    #[test]
    fn copies_and_near_copies_are_found() {
        let words = "Sends one short message to a named channel of the team workspace right now";
        let tool = |name: &str, server: &str, description: &str| json!({"name": name, "server": server, "description": description});
        let tools = [
            tool("send", "a", words),
            tool("send", "b", words),
            tool("send", "c", words),
            tool("send_later", "a", words),
            tool("send", "d", &format!("{words} tomorrow")),
            tool("delete", "a", "Removes a channel"),
        ];
        insta::assert_snapshot!(found(&tools), @r#"
        {"id":"b:send#24918ca4","severity":"warning","problem":"duplicate","of":"a:send#24918ca4"}
        {"id":"c:send#24918ca4","severity":"warning","problem":"duplicate","of":"a:send#24918ca4"}
        {"id":"a:send#24918ca4","severity":"note","problem":"near_duplicate","of":"a:send_later#2195977e","similarity":0.9090909090909091,"count":2}
        {"id":"a:send_later#2195977e","severity":"note","problem":"near_duplicate","of":"a:send#24918ca4","similarity":0.9090909090909091,"count":1}
        {"id":"d:send#24918ca4","severity":"note","problem":"near_duplicate","of":"a:send#24918ca4","similarity":0.9090909090909091,"count":1}
        "#);
    }
}
