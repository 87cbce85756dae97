//! What is wrong or risky with a JSON Schema from an untrusted source.
//!
//! Schemas come from servers, so they are checked against the meta-schema of their draft and bounded in size, depth and
//! properties. References are followed inside the document only, each `$id` and `$ref` read against the base that it
//! stands under, as a validator reads it; nothing is ever fetched. Every walk here uses a list instead of the stack and
//! visits a node once, so no schema can exhaust either.
//!
//! A reference cycle is called cyclic when it consumes no input (`$ref` to itself, or through `allOf` and its like):
//! a validator would not end. Recursion through a property or an array element is ordinary and only noted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use jsonschema::{Uri, uri};
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::{Map, Value};

use super::nesting_depth;
use crate::text::{grouped, percent_decoded};

/// Bounds on the complexity of a schema; the defaults are generous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SchemaLimits {
    /// Bytes of the schema as compact JSON.
    pub bytes: usize,
    /// Levels of nested objects and arrays.
    pub depth: usize,
    /// Entries of all `properties` together.
    pub properties: usize,
}

impl Default for SchemaLimits {
    fn default() -> Self {
        Self { bytes: 65_536, depth: 32, properties: 512 }
    }
}

/// One finding about a schema. Places are JSON Pointers into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "schema_problem", rename_all = "snake_case")]
pub enum SchemaProblem {
    /// It breaks the meta-schema of its draft; the first place is reported.
    Invalid {
        /// The place of the violation.
        at: String,
        /// What the validator reports.
        reason: String,
    },
    /// It is larger than the limit.
    TooLarge {
        /// Bytes as compact JSON.
        bytes: usize,
        /// The limit that it exceeds, in bytes.
        limit: usize,
    },
    /// It is nested deeper than the limit.
    TooDeep {
        /// Levels of nested objects and arrays.
        depth: usize,
        /// The limit that it exceeds, in levels.
        limit: usize,
    },
    /// It has more properties than the limit.
    TooManyProperties {
        /// Entries of all `properties` together.
        properties: usize,
        /// The limit that it exceeds, in entries.
        limit: usize,
    },
    /// A reference into the document leads nowhere.
    DanglingRef {
        /// The text of the reference.
        reference: String,
        /// The first place where it occurs.
        at: String,
    },
    /// A reference leads back to itself without consuming input.
    CyclicRef {
        /// The text of the reference.
        reference: String,
        /// The first place where it occurs.
        at: String,
    },
    /// A reference leaves the document; it is not followed.
    RemoteRef {
        /// The text of the reference.
        reference: String,
        /// The first place where it occurs.
        at: String,
    },
    /// The schema is recursive, which is allowed; a reader that expands references must stop somewhere.
    Recursive {
        /// The text of a reference on the cycle.
        reference: String,
        /// The first place where it occurs.
        at: String,
    },
    /// Checking one value may take so many steps that a small value stops the checker: alternatives that lead to the
    /// same place multiply.
    Explosive {
        /// Subschemas that one value may be checked against.
        ways: u64,
        /// The limit that they exceed.
        limit: u64,
    },
    /// `$schema` names no published draft; 2020-12, the default of MCP, was assumed.
    UnknownDialect {
        /// The value of `$schema`.
        dialect: String,
    },
}

impl SchemaProblem {
    /// The problem in words. `schema` says which schema has it: `the argument schema`.
    #[must_use]
    pub fn told(&self, schema: &str) -> String {
        let place = |at: &str| if at.is_empty() { "the root".to_owned() } else { at.to_owned() };
        match self {
            Self::Invalid { at, reason } => format!("{schema} is not valid at {}: {reason}", place(at)),
            Self::TooLarge { bytes, limit } => {
                format!("{schema} has {} bytes, over {}", grouped(*bytes), grouped(*limit))
            }
            Self::TooDeep { depth, limit } => format!("{schema} is {depth} levels deep, over {limit}"),
            Self::TooManyProperties { properties, limit } => {
                format!("{schema} has {} properties, over {limit}", grouped(*properties))
            }
            Self::Explosive { limit, .. } => {
                format!("checking one value against {schema} may take more than {} steps", grouped(*limit as usize))
            }
            Self::DanglingRef { reference, at } => {
                format!("in {schema} {reference:?} at {} leads nowhere", place(at))
            }
            Self::CyclicRef { reference, at } => {
                format!("in {schema} {reference:?} at {} leads back to itself", place(at))
            }
            Self::RemoteRef { reference, at } => {
                format!("in {schema} {reference:?} at {} is outside of it", place(at))
            }
            Self::Recursive { reference, at } => format!("{schema} is recursive: {reference:?} at {}", place(at)),
            Self::UnknownDialect { dialect } => {
                format!("{schema} has the unknown dialect {dialect:?}; checked as 2020-12")
            }
        }
    }
}

/// Deeper schemas are not given to code that recurses: the meta-schema validator and the serialiser.
const MAX_RECURSION: usize = 128;

/// More subschemas than this for one value are [`SchemaProblem::Explosive`]. Of the real catalogs that were looked at, none
/// comes near.
pub const MOST_WAYS: u64 = 4096;

/// What checking a value against a schema may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaWeight {
    /// Subschemas that one value may be checked against, at most; each is visited once for each way that leads to it.
    pub ways: u64,
    /// Steps of checking one value: as `ways`, with what patterns and enumerations take.
    pub steps: u64,
    /// References that lead back into a recursion: at each level of a value, so many alternatives at most.
    pub branches: usize,
}

/// What a subschema and everything that it leads to cost: fields as in [`SchemaWeight`].
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    ways: u64,
    steps: u64,
}

impl Cost {
    fn plus(self, other: Self, times: u64) -> Self {
        let add = |own: u64, other: u64| own.saturating_add(other.saturating_mul(times));
        Self { ways: add(self.ways, other.ways), steps: add(self.steps, other.steps) }
    }

    /// The larger of either; both need not be of one subschema.
    fn max(self, other: Self) -> Self {
        Self { ways: self.ways.max(other.ways), steps: self.steps.max(other.steps) }
    }
}

/// Steps of a regular expression that goes back and tries again, for one text.
const BACKTRACKING: u64 = 50_000;

/// What a subschema costs itself, its parts aside.
fn own_steps(schema: &Value) -> u64 {
    let choices = schema.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
    let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let pattern = schema.get("pattern").and_then(Value::as_str);
    let costly = patterns.map(String::as_str).chain(pattern).filter(|pattern| goes_back(pattern)).count();
    1 + choices as u64 / 4 + costly as u64 * BACKTRACKING
}

/// Whether a pattern looks around or refers back; all others are read in one pass.
fn goes_back(pattern: &str) -> bool {
    let refers_back =
        pattern.as_bytes().windows(2).any(|pair| pair[0] == b'\\' && (pair[1].is_ascii_digit() || pair[1] == b'k'));
    refers_back || ["(?=", "(?!", "(?<", "(?>", "(?("].iter().any(|part| pattern.contains(part))
}

/// What checking values against `schema` may cost.
#[must_use]
pub fn weigh_schema(schema: &Value) -> SchemaWeight {
    SchemaGraph::of(schema).weight()
}

/// All findings about `schema`, in an order that depends on nothing else. Each reference is reported once, by its
/// text.
#[must_use]
pub fn check_schema(schema: &Value, limits: &SchemaLimits) -> Vec<SchemaProblem> {
    let mut problems = Vec::new();
    let depth = nesting_depth(schema);
    if depth <= MAX_RECURSION {
        problems.extend(check_dialect(schema));
        let bytes = serialised_size(schema);
        if bytes > limits.bytes {
            problems.push(SchemaProblem::TooLarge { bytes, limit: limits.bytes });
        }
    }
    if depth > limits.depth {
        problems.push(SchemaProblem::TooDeep { depth, limit: limits.depth });
    }
    let graph = SchemaGraph::of(schema);
    if graph.properties > limits.properties {
        let limit = limits.properties;
        problems.push(SchemaProblem::TooManyProperties { properties: graph.properties, limit });
    }
    problems.extend(graph.reference_problems());
    let ways = graph.weight().ways;
    if ways > MOST_WAYS {
        problems.push(SchemaProblem::Explosive { ways, limit: MOST_WAYS });
    }
    problems
}

fn serialised_size(value: &Value) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Neither the counter nor a JSON value can fail.
    serde_json::to_writer(&mut counter, value).ok();
    counter.0
}

/// Checks a schema against the meta-schema of its draft; the validator carries the drafts with it.
fn check_dialect(schema: &Value) -> Vec<SchemaProblem> {
    let dialect = schema.get("$schema").and_then(Value::as_str);
    let known = dialect.map_or(Some("2020-12"), |dialect| {
        let dialect = dialect.trim_end_matches('#').trim_end_matches('/');
        let (_, tail) = dialect.split_once("://json-schema.org/")?;
        tail.strip_suffix("/schema").map(|tail| tail.strip_prefix("draft/").unwrap_or(tail))
    });
    let checked = match known {
        Some("draft-04") => jsonschema::draft4::meta::validate(schema),
        Some("draft-06") => jsonschema::draft6::meta::validate(schema),
        Some("draft-07") => jsonschema::draft7::meta::validate(schema),
        Some("2019-09") => jsonschema::draft201909::meta::validate(schema),
        _ => jsonschema::draft202012::meta::validate(schema),
    };
    let invalid = checked.err().map(|error| {
        let at = error.instance_path().to_string();
        let reason = match (error.instance().as_ref(), at.ends_with("/type")) {
            // The meta-schema only says that none of its alternatives fits; an unknown type is the most common cause.
            (Value::String(name), true) => format!("{name:?} is not a type of JSON Schema"),
            _ => error.to_string(),
        };
        SchemaProblem::Invalid { at, reason: bounded(&reason) }
    });
    let published = matches!(known, Some("draft-04" | "draft-06" | "draft-07" | "2019-09" | "2020-12"));
    let unknown =
        dialect.filter(|_| !published).map(|dialect| SchemaProblem::UnknownDialect { dialect: bounded(dialect) });
    invalid.into_iter().chain(unknown).collect()
}

/// Shortens a validator's message: it quotes the offending value, which can be the whole schema.
fn bounded(text: &str) -> String {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Keywords whose value is a schema for the same instance: they consume no input.
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords whose value is a list of schemas for the same instance.
const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords whose value maps names to schemas for the same instance.
const IN_PLACE_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose value is a schema (or a list of them) for a part of the instance.
const CHILDREN: [&str; 9] = [
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// Keywords whose value maps names to schemas for a part of the instance: patterns may meet, names do not.
const PATTERNS: &str = "patternProperties";
const PROPERTIES: &str = "properties";
/// Keywords whose value maps names to schemas that apply only where they are referred to.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// What an edge of the schema graph does with the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// The same instance is validated by the target.
    InPlace,
    /// A part of the instance is validated by the target.
    Part,
    /// As [`Edge::Part`], and by no other target of this kind: the members of `properties`.
    Property,
    /// The target is only defined here.
    Definition,
}

/// A subschema. Its place is kept as a step from its parent, since places are needed for findings only.
struct Node<'s> {
    schema: &'s Value,
    parent: usize,
    step: Step<'s>,
    /// The node whose `$id` is the base of references here.
    resource: usize,
}

/// The way from a node to its child.
enum Step<'s> {
    /// The value of a keyword.
    Keyword(&'s str),
    /// A member of the value of a keyword.
    Member(&'s str, &'s str),
    /// An element of the value of a keyword.
    Element(&'s str, usize),
    /// Everything after the first `/` of a JSON Pointer.
    Pointer(String),
}

/// All subschemas that are reachable from the root, and how they apply.
struct SchemaGraph<'s> {
    nodes: Vec<Node<'s>>,
    edges: Vec<(usize, usize, Edge)>,
    /// Per reference its node, its text and its target; `Err` when it is not followed.
    references: Vec<(usize, &'s str, Result<usize, Unresolved>)>,
    properties: usize,
    /// The nodes whose `$id` names another schema, too: nobody can say which one is meant.
    ambiguous: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unresolved {
    Dangling,
    Remote,
}

impl<'s> SchemaGraph<'s> {
    fn of(root: &'s Value) -> Self {
        let mut graph =
            Self { nodes: Vec::new(), edges: Vec::new(), references: Vec::new(), properties: 0, ambiguous: Vec::new() };
        let mut builder = Builder::of(root);
        builder.add(&mut graph, root, 0, Step::Keyword(""));
        let mut next = 0;
        let mut pending: Vec<(usize, &'s str)> = Vec::new();
        // References are resolved once all anchors are known; their targets may hold more of both.
        loop {
            while next < graph.nodes.len() {
                builder.expand(&mut graph, next, &mut pending);
                next += 1;
            }
            if pending.is_empty() {
                return graph;
            }
            for (node, text) in std::mem::take(&mut pending) {
                let target = builder.resolve(&mut graph, node, text);
                if let Ok(target) = target {
                    graph.edges.push((node, target, Edge::InPlace));
                }
                graph.references.push((node, text, target));
            }
        }
    }

    fn place(&self, node: usize) -> String {
        let mut steps = Vec::new();
        let mut at = node;
        while at != 0 {
            let Node { parent, step, .. } = &self.nodes[at];
            steps.push(step);
            at = *parent;
        }
        let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
        let steps = steps.into_iter().rev().map(|step| match step {
            Step::Keyword(keyword) => format!("/{}", escaped(keyword)),
            Step::Member(keyword, name) => format!("/{}/{}", escaped(keyword), escaped(name)),
            Step::Element(keyword, index) => format!("/{}/{index}", escaped(keyword)),
            Step::Pointer(pointer) => format!("/{pointer}"),
        });
        steps.collect()
    }

    /// Whether a `$dynamicRef` has more than one anchor to lead to: which one depends on the way to it.
    fn has_open_dynamic_reference(&self) -> bool {
        let mut anchors: BTreeMap<&str, usize> = BTreeMap::new();
        for name in self.nodes.iter().filter_map(|node| node.schema.get("$dynamicAnchor")?.as_str()) {
            *anchors.entry(name).or_default() += 1;
        }
        let mut references =
            self.nodes.iter().filter_map(|node| node.schema.get("$dynamicRef")?.as_str()?.split_once('#'));
        references.any(|(_, name)| anchors.get(name).is_some_and(|count| *count > 1))
    }

    /// Adds up what a value may be checked against: alternatives for the same value and for the same part of it add up, of
    /// different properties the most expensive counts. A recursion counts as the sum of its subschemas, each once.
    fn weight(&self) -> SchemaWeight {
        let count = self.nodes.len();
        let applied: Vec<(usize, usize, Edge)> =
            self.edges.iter().filter(|edge| edge.2 != Edge::Definition).copied().collect();
        let component =
            components(count, &applied.iter().map(|(from, to, _)| (*from, *to)).collect::<Vec<(usize, usize)>>());
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
        (0..count).for_each(|node| members[component[node]].push(node));
        // Edges that leave a component, by node; and the components that wait for another, once for each edge.
        let mut leaving: Vec<Vec<(usize, Edge)>> = vec![Vec::new(); count];
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut open = vec![0usize; count];
        for &(from, to, edge) in &applied {
            let (source, target) = (component[from], component[to]);
            if source != target {
                leaving[from].push((target, edge));
                waiting[target].push(source);
                open[source] += 1;
            }
        }
        let mut ready: Vec<usize> = (0..count).filter(|&one| !members[one].is_empty() && open[one] == 0).collect();
        let mut costs = vec![Cost::default(); count];
        while let Some(one) = ready.pop() {
            for &node in &members[one] {
                let schema = self.nodes[node].schema;
                let mut sum = Cost { ways: 1, steps: own_steps(schema) };
                let mut property = Cost::default();
                // To know what was evaluated, the alternatives are gone through once more, and those in them again.
                let is_unevaluated =
                    ["unevaluatedProperties", "unevaluatedItems"].iter().any(|key| schema.get(key).is_some());
                let times = if is_unevaluated { 3 } else { 1 };
                for &(target, edge) in &leaving[node] {
                    match edge {
                        Edge::Property => property = property.max(costs[target]),
                        Edge::InPlace => sum = sum.plus(costs[target], times),
                        _ => sum = sum.plus(costs[target], 1),
                    }
                }
                costs[one] = costs[one].plus(sum.plus(property, 1), 1);
            }
            for &source in &waiting[one] {
                open[source] -= 1;
                if open[source] == 0 {
                    ready.push(source);
                }
            }
        }
        let back = |(node, _, target): &&(usize, &str, Result<usize, Unresolved>)| {
            target.is_ok_and(|target| component[*node] == component[target])
        };
        let branches = self.references.iter().filter(back).count();
        let Cost { ways, steps } = component.first().map_or_else(Cost::default, |root| costs[*root]);
        let ways = if self.has_open_dynamic_reference() { u64::MAX } else { ways };
        SchemaWeight { ways, steps: steps.max(ways), branches }
    }

    fn reference_problems(&self) -> Vec<SchemaProblem> {
        let count = self.nodes.len();
        let edges = |keep: fn(Edge) -> bool| {
            let kept = self.edges.iter().filter(move |edge| keep(edge.2));
            components(count, &kept.map(|(from, to, _)| (*from, *to)).collect::<Vec<_>>())
        };
        let in_place = edges(|edge| edge == Edge::InPlace);
        let applied = edges(|edge| edge != Edge::Definition);
        let mut sorted: BTreeMap<(u8, &str), usize> = BTreeMap::new();
        for (node, text, target) in &self.references {
            let class = match target {
                Err(Unresolved::Dangling) => 0,
                Ok(target) if in_place[*node] == in_place[*target] => 1,
                Err(Unresolved::Remote) => 2,
                Ok(target) if applied[*node] == applied[*target] => 3,
                Ok(_) => continue,
            };
            sorted.entry((class, text)).or_insert(*node);
        }
        let problem = |((class, text), node): ((u8, &str), usize)| {
            let (reference, at) = (bounded(text), self.place(node));
            match class {
                0 => SchemaProblem::DanglingRef { reference, at },
                1 => SchemaProblem::CyclicRef { reference, at },
                2 => SchemaProblem::RemoteRef { reference, at },
                _ => SchemaProblem::Recursive { reference, at },
            }
        };
        let twice = self.ambiguous.iter().map(|node| SchemaProblem::Invalid {
            at: format!("{}/$id", self.place(*node)),
            reason: "another schema here has the same `$id`; give each its own".to_owned(),
        });
        twice.take(1).chain(sorted.into_iter().map(problem)).collect()
    }
}

/// What is known while a graph is being built.
struct Builder<'s> {
    /// The node of each subschema, by its address.
    numbers: FxHashMap<*const Value, usize>,
    /// The node of each (resource, anchor).
    anchors: FxHashMap<(usize, &'s str), usize>,
    /// The node of each `$id`, resolved.
    ids: FxHashMap<String, usize>,
    /// The base of references by the node that sets it; `None` where its `$id` is not an address.
    bases: FxHashMap<usize, Option<Uri<String>>>,
    /// Whether what stands beside a `$ref` means nothing, as up to draft 7.
    is_legacy: bool,
}

/// The base of a schema that has no `$id`, as validators have it.
const NO_BASE: &str = "json-schema:///";

impl<'s> Builder<'s> {
    fn of(root: &Value) -> Self {
        let dialect = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        Self {
            numbers: FxHashMap::default(),
            anchors: FxHashMap::default(),
            ids: FxHashMap::default(),
            bases: [(0, uri::from_str(NO_BASE).ok())].into_iter().collect(),
            is_legacy: dialect.contains("/draft-0"),
        }
    }

    /// The address that `text` says under the base of a resource, without its fragment.
    fn address(&self, resource: usize, text: &str) -> Option<Uri<String>> {
        let base = self.bases.get(&resource)?.as_ref()?;
        let text = text.split_once('#').map_or(text, |(address, _)| address);
        uri::resolve_against(&base.borrow(), text).ok()
    }

    fn add(&mut self, graph: &mut SchemaGraph<'s>, schema: &'s Value, parent: usize, step: Step<'s>) -> usize {
        *self.numbers.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            let resource = graph.nodes.get(parent).map_or(0, |node| node.resource);
            graph.nodes.push(Node { schema, parent, step, resource });
            graph.nodes.len() - 1
        })
    }

    /// Adds the subschemas of a node, notes the names that it defines, and puts its references on `pending`.
    fn expand(&mut self, graph: &mut SchemaGraph<'s>, node: usize, pending: &mut Vec<(usize, &'s str)>) {
        let Value::Object(members) = graph.nodes[node].schema else { return };
        self.note_names(graph, node, members);
        for (keyword, value) in members {
            let keyword = keyword.as_str();
            if let (true, Value::String(text)) = (REFERENCES.contains(&keyword), value) {
                pending.push((node, text));
            }
            if let (Value::Object(map), true) = (value, keyword == "properties") {
                graph.properties += map.len();
            }
            let direct = |edge| (edge, value.is_object() || value.is_boolean());
            let (edge, single) = match keyword {
                _ if IN_PLACE.contains(&keyword) => direct(Edge::InPlace),
                _ if CHILDREN.contains(&keyword) => direct(Edge::Part),
                _ if IN_PLACE_LISTS.contains(&keyword) || IN_PLACE_MAPS.contains(&keyword) => (Edge::InPlace, false),
                PATTERNS => (Edge::Part, false),
                PROPERTIES => (Edge::Property, false),
                _ if DEFINITIONS.contains(&keyword) => (Edge::Definition, false),
                _ => continue,
            };
            let mut link = |builder: &mut Self, schema, step| {
                let target = builder.add(graph, schema, node, step);
                graph.edges.push((node, target, edge));
            };
            match value {
                _ if single => link(self, value, Step::Keyword(keyword)),
                Value::Array(list) => {
                    for (index, schema) in list.iter().enumerate() {
                        link(self, schema, Step::Element(keyword, index));
                    }
                }
                Value::Object(map) => {
                    for (name, schema) in map {
                        link(self, schema, Step::Member(keyword, name));
                    }
                }
                _ => {}
            }
        }
    }

    fn note_names(&mut self, graph: &mut SchemaGraph<'s>, node: usize, members: &'s Map<String, Value>) {
        if self.is_legacy && members.contains_key("$ref") {
            return;
        }
        if let Some(Value::String(id)) = members.get("$id")
            && !id.starts_with('#')
        {
            let address = self.address(graph.nodes[node].resource, id);
            if let Some(address) = &address {
                let first = *self.ids.entry(address.as_str().to_owned()).or_insert(node);
                if graph.nodes[first].schema != graph.nodes[node].schema {
                    graph.ambiguous.push(node);
                }
            }
            self.bases.insert(node, address);
            graph.nodes[node].resource = node;
        }
        let resource = graph.nodes[node].resource;
        for keyword in ["$anchor", "$dynamicAnchor", "$id"] {
            if let Some(Value::String(anchor)) = members.get(keyword) {
                let anchor = if keyword == "$id" { anchor.strip_prefix('#') } else { Some(anchor.as_str()) };
                if let Some(anchor) = anchor {
                    self.anchors.entry((resource, anchor)).or_insert(node);
                }
            }
        }
    }

    /// The node that a reference leads to.
    fn resolve(&mut self, graph: &mut SchemaGraph<'s>, node: usize, text: &'s str) -> Result<usize, Unresolved> {
        let (base, fragment) = text.split_once('#').unwrap_or((text, ""));
        let resource = match base {
            "" => graph.nodes[node].resource,
            _ => {
                let address = self.address(graph.nodes[node].resource, base).ok_or(Unresolved::Remote)?;
                *self.ids.get(address.as_str()).ok_or(Unresolved::Remote)?
            }
        };
        let fragment = unescaped(fragment);
        if fragment.is_empty() {
            return Ok(resource);
        }
        let Some(pointer) = fragment.strip_prefix('/') else {
            let anchors: &FxHashMap<(usize, &str), usize> = &self.anchors;
            return anchors.get(&(resource, &fragment)).copied().ok_or(Unresolved::Dangling);
        };
        let root = graph.nodes[resource].schema;
        let target = root.pointer(&format!("/{pointer}")).ok_or(Unresolved::Dangling)?;
        Ok(self.add(graph, target, resource, Step::Pointer(pointer.to_owned())))
    }
}

/// The strongly connected component of every node: two nodes are in one when each leads to the other.
fn components(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut forward = vec![Vec::new(); count];
    let mut backward = vec![Vec::new(); count];
    for (from, to) in edges {
        forward[*from].push(*to);
        backward[*to].push(*from);
    }
    let mut seen = vec![false; count];
    let mut finished = Vec::with_capacity(count);
    for start in 0..count {
        // A node is pushed with the number of its next edge, which replaces the stack of a recursive walk.
        let mut path = Vec::new();
        if !std::mem::replace(&mut seen[start], true) {
            path.push((start, 0));
        }
        while let Some((node, edge)) = path.last_mut() {
            match forward[*node].get(*edge) {
                Some(&next) => {
                    *edge += 1;
                    if !std::mem::replace(&mut seen[next], true) {
                        path.push((next, 0));
                    }
                }
                None => {
                    finished.push(*node);
                    path.pop();
                }
            }
        }
    }
    let mut component = vec![usize::MAX; count];
    for root in finished.into_iter().rev() {
        let mut pending = vec![root];
        while let Some(node) = pending.pop() {
            if component[node] == usize::MAX {
                component[node] = root;
                pending.extend(&backward[node]);
            }
        }
    }
    component
}

/// The fragment of a URI without its escapes; one that is not UTF-8 then is kept as it was.
fn unescaped(fragment: &str) -> Cow<'_, str> {
    if !fragment.contains('%') {
        return Cow::Borrowed(fragment);
    }
    String::from_utf8(percent_decoded(fragment)).map_or(Cow::Borrowed(fragment), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn found(schema: &Value) -> String {
        let problems = check_schema(schema, &SchemaLimits::default());
        problems.iter().map(|problem| serde_json::to_string(problem).unwrap() + "\n").collect()
    }

    #[test]
    fn ordinary_schemas_have_no_findings() {
        for schema in [
            json!({}),
            json!(true),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}, "items": {"$ref": "#/definitions/a"}}),
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {"a b": {"$anchor": "x"}}, "allOf": [{"$ref": "#/$defs/a%20b"}, {"$ref": "#x"}]}),
            json!({"$id": "https://e.org/s", "$defs": {"a/b~": {"$ref": "https://e.org/s#/properties/p"}}, "properties": {"p": {}, "q": {"$ref": "#/$defs/a~1b~0"}}}),
            json!({"$defs": {"in": {"$id": "urn:in", "$defs": {"x": {}}, "not": {"$ref": "#/$defs/x"}}}, "items": {"$ref": "urn:in"}}),
            json!({"$id": "https://e.org/a/root", "$defs": {"t": {"$id": "t", "$defs": {"x": {}}}, "b": {"$id": "/b"}},
                "properties": {"p": {"$ref": "t#/$defs/x"}, "q": {"$ref": "https://e.org/a/t"}, "r": {"$ref": "../b"}, "s": {"$ref": "root#/properties/p"}}}),
            json!({"$defs": {"t": {"$id": "t"}, "d": {"$id": "dir/", "$defs": {"t": {"$id": "t"}}, "items": {"$ref": "t"}}}, "$ref": "t"}),
            json!({"$defs": {"one": {"$id": "t", "type": "string"}, "same": {"$id": "t", "type": "string"}}}),
            json!({"properties": {"$ref": {"type": "string"}, "default": {"enum": [{"$ref": "#/nowhere"}]}}}),
        ] {
            assert_eq!(found(&schema), "", "{schema}");
        }
    }

    #[test]
    fn what_is_said_against_a_base_is_read_so_or_refused() {
        // What another base makes of the same text is another place: here the first `t` is harmless.
        let hidden = |target: Value| {
            json!({"$defs": {
                "harmless": {"$id": "t"},
                "dir": {"$id": "dir/", "$defs": {"t": target}, "items": {"$ref": "t"}},
            }, "$ref": "dir/"})
        };
        let any_of = |next: Value| json!({"anyOf": [next, next]});
        let mut heavy = doubling(40, any_of);
        heavy["$id"] = "t".into();
        assert!(found(&hidden(heavy)).contains("explosive"));
        assert!(found(&hidden(json!({"$id": "t", "$ref": "../dir/t"}))).contains("cyclic_ref"));
        // Up to draft 7, nothing beside a reference counts.
        let legacy = json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {
            "a": {"$id": "http://e.org/x/", "$ref": "t"}, "t": {"$id": "t"}}, "items": {"$ref": "#/definitions/a"}});
        assert_eq!(found(&legacy), "");
        for (schema, problem) in [
            (json!({"$defs": {"t": {"$id": "t"}}, "items": {"$ref": "other"}}), "remote_ref"),
            (json!({"$id": "urn:x", "items": {"$ref": "y"}}), "remote_ref"),
            (json!({"$id": "https://e.org/a", "items": {"$ref": "#/$defs/none"}}), "dangling_ref"),
            (
                json!({"$defs": {"a": {"$id": "t", "type": "string"}, "b": {"$id": "./t", "type": "null"}}}),
                "the same `$id`",
            ),
        ] {
            let found = found(&schema);
            assert!(found.contains(problem), "{schema}: {found}");
        }
    }

    /// `levels` of two alternatives that lead to the same place, each below `step`.
    fn doubling(levels: usize, step: impl Fn(Value) -> Value) -> Value {
        let mut definitions = Map::new();
        for level in 0..levels {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            definitions.insert(format!("d{level}"), step(next));
        }
        definitions.insert(format!("d{levels}"), json!({"type": "string"}));
        json!({"$defs": definitions, "$ref": "#/$defs/d0"})
    }

    #[test]
    fn alternatives_that_meet_multiply_and_different_properties_do_not() {
        let ways = |schema: &Value| weigh_schema(schema).ways;
        let any_of = |next: Value| json!({"anyOf": [next, next]});
        assert!(ways(&doubling(4, any_of)) < 100);
        assert!(ways(&doubling(20, any_of)) > 1 << 20);
        assert_eq!(ways(&doubling(100, any_of)), u64::MAX);
        // The same part by its name and by a pattern.
        let twice = |next: Value| json!({"properties": {"a": next}, "patternProperties": {"^a": next}});
        assert!(ways(&doubling(20, twice)) > 1 << 20);
        // A type that many properties share is visited once for each of them.
        let shared = |next: Value| json!({"properties": {"a": next, "b": next, "c": next}});
        assert!(ways(&doubling(20, shared)) < 100);
        let filter = json!({"$defs": {"f": {"oneOf": [
            {"properties": {"and": {"$ref": "#/$defs/f"}}}, {"properties": {"or": {"$ref": "#/$defs/f"}}}]}},
            "$ref": "#/$defs/f"});
        // What was evaluated is found out by going through the alternatives again.
        let unevaluated = (0..12).fold(
            json!({"properties": {"a": {}}}),
            |inner, _| json!({"anyOf": [inner], "unevaluatedProperties": false}),
        );
        assert!(ways(&unevaluated) > MOST_WAYS);
        let dynamic = json!({"$defs": {"a": {"$dynamicAnchor": "n"}, "b": {"$id": "urn:b", "$dynamicAnchor": "n"}},
            "$dynamicRef": "#n"});
        assert_eq!(ways(&dynamic), u64::MAX);
        let steps = |schema: Value| weigh_schema(&schema).steps;
        assert!(steps(json!({"pattern": "^(a|a)*(?!c)$"})) > BACKTRACKING && steps(json!({"pattern": "^a+$"})) == 1);
        assert!(steps(json!({"enum": vec![1; 4000]})) > 1000);
        assert_eq!(weigh_schema(&filter).branches, 2);
        assert!(ways(&filter) < 20);
        let found = found(&doubling(40, any_of));
        assert!(found.ends_with("\"limit\":4096}\n") && found.contains("explosive"), "{found}");
    }

    #[test]
    fn findings_name_the_place() {
        let findings = [
            json!({"type": "objekt", "properties": {"a": {"minLength": -1}}}),
            json!({"properties": {"a": {"type": "strnig"}}}),
            json!({"$schema": "https://example.org/mine", "type": "object"}),
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"a": {"exclusiveMinimum": 3}}}),
            json!({"properties": {"a/b": {"$ref": "#/$defs/absent"}, "c": {"$ref": "#absent"}, "d": {"items": {"$ref": "#/$defs/absent"}}}}),
            json!({"properties": {"a": {"$ref": "https://example.org/other.json#/x"}}}),
            json!({"$ref": "#"}),
            json!({"$defs": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}}),
            json!({"$defs": {"tree": {"properties": {"children": {"items": {"$ref": "#/$defs/tree"}}}}}, "$ref": "#/$defs/tree"}),
            json!({"x": {"y": {"not": {"$ref": "#/x/y"}}}, "items": [{"$ref": "#/x/y"}]}),
        ]
        .map(|schema| format!("{schema}\n{}", found(&schema)));
        insta::assert_snapshot!(findings.join("\n"), @r##"
        {"type":"objekt","properties":{"a":{"minLength":-1}}}
        {"schema_problem":"invalid","at":"/properties/a/minLength","reason":"-1 is less than the minimum of 0"}

        {"properties":{"a":{"type":"strnig"}}}
        {"schema_problem":"invalid","at":"/properties/a/type","reason":"\"strnig\" is not a type of JSON Schema"}

        {"$schema":"https://example.org/mine","type":"object"}
        {"schema_problem":"unknown_dialect","dialect":"https://example.org/mine"}

        {"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"exclusiveMinimum":3}}}
        {"schema_problem":"invalid","at":"/properties/a/exclusiveMinimum","reason":"3 is not of type \"boolean\""}

        {"properties":{"a/b":{"$ref":"#/$defs/absent"},"c":{"$ref":"#absent"},"d":{"items":{"$ref":"#/$defs/absent"}}}}
        {"schema_problem":"dangling_ref","reference":"#/$defs/absent","at":"/properties/a~1b"}
        {"schema_problem":"dangling_ref","reference":"#absent","at":"/properties/c"}

        {"properties":{"a":{"$ref":"https://example.org/other.json#/x"}}}
        {"schema_problem":"remote_ref","reference":"https://example.org/other.json#/x","at":"/properties/a"}

        {"$ref":"#"}
        {"schema_problem":"cyclic_ref","reference":"#","at":""}

        {"$defs":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}},"properties":{"x":{"$ref":"#/$defs/a"}}}
        {"schema_problem":"cyclic_ref","reference":"#/$defs/a","at":"/$defs/b"}
        {"schema_problem":"cyclic_ref","reference":"#/$defs/b","at":"/$defs/a/anyOf/1"}

        {"$defs":{"tree":{"properties":{"children":{"items":{"$ref":"#/$defs/tree"}}}}},"$ref":"#/$defs/tree"}
        {"schema_problem":"recursive","reference":"#/$defs/tree","at":"/$defs/tree/properties/children/items"}

        {"x":{"y":{"not":{"$ref":"#/x/y"}}},"items":[{"$ref":"#/x/y"}]}
        {"schema_problem":"invalid","at":"/items","reason":"[{\"$ref\":\"#/x/y\"}] is not of types \"boolean\", \"object\""}
        {"schema_problem":"cyclic_ref","reference":"#/x/y","at":"/x/y/not"}
        "##);
    }

    #[test]
    fn limits_are_inclusive() {
        let limits = SchemaLimits { bytes: 58, depth: 3, properties: 2 };
        let within = json!({"properties": {"a": {}, "b": {}}, "description": "12345678901"});
        assert_eq!((within.to_string().len(), nesting_depth(&within)), (58, 3));
        assert_eq!(check_schema(&within, &limits), []);
        let over = json!({"properties": {"a": {"properties": {"b": {}}}, "c": {}}, "description": "1234567890"});
        assert_eq!(
            check_schema(&over, &limits),
            [
                SchemaProblem::TooLarge { bytes: 78, limit: 58 },
                SchemaProblem::TooDeep { depth: 5, limit: 3 },
                SchemaProblem::TooManyProperties { properties: 3, limit: 2 },
            ]
        );
    }

    #[test]
    fn hostile_schemas_end() {
        let chain = |length: usize| {
            let link =
                |i: usize| (format!("d{i}"), json!({"allOf": [{"$ref": format!("#/$defs/d{}", (i + 1) % length)}]}));
            json!({"$defs": (0..length).map(link).collect::<Map<String, Value>>()})
        };
        let cycles = check_schema(&chain(20_000), &SchemaLimits::default());
        assert_eq!(cycles.iter().filter(|problem| matches!(problem, SchemaProblem::CyclicRef { .. })).count(), 20_000);
        // Every reference makes the pointer of the next one longer.
        let growing =
            json!({"x": {"$ref": "#/x/$ref"}, "items": {"$ref": "#/items/x/items/x"}, "not": {"$ref": "#/x"}});
        assert!(found(&growing).contains("dangling_ref"));
        for depth in [30, 100, 128, 129, 3000] {
            let deep = (0..depth).fold(json!({}), |inner, _| json!({"not": inner}));
            let too_deep = SchemaProblem::TooDeep { depth: depth + 1, limit: 32 };
            assert_eq!(check_schema(&deep, &SchemaLimits::default()), if depth > 31 { vec![too_deep] } else { vec![] });
        }
    }

    /// Whether two nodes lead to each other, by walking from each.
    fn lead_to_each_other(edges: &[(usize, usize)], one: usize, other: usize) -> bool {
        let leads = |from: usize, to: usize| {
            let (mut seen, mut pending) = (vec![from], vec![from]);
            while let Some(node) = pending.pop() {
                for (_, next) in edges.iter().filter(|edge| edge.0 == node) {
                    if !seen.contains(next) {
                        seen.push(*next);
                        pending.push(*next);
                    }
                }
            }
            seen.contains(&to)
        };
        leads(one, other) && leads(other, one)
    }

    proptest! {
        #[test]
        fn components_are_those_of_the_definition(edges in proptest::collection::vec((0usize..9, 0usize..9), 0..24)) {
            let component = components(9, &edges);
            for one in 0..9 {
                for other in 0..9 {
                    prop_assert_eq!(component[one] == component[other], lead_to_each_other(&edges, one, other));
                }
            }
        }

        #[test]
        fn no_schema_panics(
            keys in proptest::collection::vec(proptest::sample::select(vec![
                "$ref", "$defs", "properties", "items", "allOf", "not", "$id", "$anchor", "#/$defs/a", "#", "#a", "a",
                "%zz", "#/%e9/~2", "$schema", "type", "urn:x",
            ]), 1..40),
            shape in proptest::collection::vec(0u8..4, 1..40),
        ) {
            let mut schema = json!("#/$defs/a");
            for (key, shape) in keys.iter().zip(&shape) {
                schema = match shape {
                    0 => json!({*key: schema}),
                    1 => json!({*key: schema, "$ref": key}),
                    2 => json!([schema, {"$id": key}]),
                    _ => json!({"$defs": {"a": schema}, "$anchor": key, "$ref": "#/$defs/a"}),
                };
            }
            let _ = check_schema(&schema, &SchemaLimits { bytes: 10, depth: 4, properties: 1 });
        }
    }
}
