//! What providers refuse in the definition of a tool, as a table, and what is done so that they take it.
//!
//! A provider refuses a whole request for one definition that breaks its rules, so a definition is written in the
//! nearest form that it takes, and left out where there is none. Nothing that a call may hold is lost but the empty text
//! among other values: a schema is rewritten in other words, or says less than it did, and the tool itself still checks
//! what it gets.
//! [`Written::notes`] says what was done.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::ToolFormat;
use super::openai::STRICT;
use super::pattern::{is_broken, is_taken_by_openai};
use super::schema::{dependencies, each_schema, exclusive_bounds, loosened, of_arguments, pointer, visit_schemas};
use super::strict::Strict;
use crate::catalog::load::{MAX_NESTING, shortened};
use crate::catalog::{SelectableItem, nesting_depth};
use crate::text::{counted, grouped, sha256_hex};

/// What a provider takes, beside the names of tools (see [`CallNames`](super::CallNames)). All want an object at the
/// root of a schema, without `anyOf`, `oneOf`, `allOf` or a reference there, and the keywords of JSON Schema 2020-12.
#[derive(Debug, Clone, Copy)]
pub(in crate::catalog) struct Rules {
    /// The provider, for people.
    provider: &'static str,
    /// The longest name of an argument, where only letters, digits, `_`, `.` and `-` are taken. Members of arguments
    /// may have any name.
    argument_name: Option<usize>,
    /// Whether each array has to say what its elements are.
    array_items: bool,
    /// Whether a list of values may have the empty text.
    empty_value: bool,
    /// How many tools a request takes.
    most_tools: Option<usize>,
    /// Longer descriptions, in characters, are taken by the provider and refused by others that speak its protocol.
    long_description: Option<usize>,
    /// Whether a pattern is taken. What is no pattern anywhere says nothing, so nobody is sent it.
    pattern: fn(&str) -> bool,
    /// What a schema has to keep to where a definition is strict; `None` where no definition is.
    strict: Option<Strict>,
}

/// Platform documentation (developers.openai.com, "Function calling") and error messages: "schema must have type
/// 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" (langchain-ai/langchainjs#9804), "array
/// schema missing items" (sigoden/aichat#1049), "Expected an array with maximum length 128" (zed-industries/zed#42393).
/// Descriptions had 1,024 characters at most until 2025; since then they have 1,048,576, also at Azure
/// (run-llama/llama_index#18784, "GPT-4.1 known issues" in Azure's documentation), which no catalog exceeds. Patterns are
/// those of Python's `re` ("is not a 'regex'", BerriAI/litellm#40485), without lookaround ("regex lookaround is not
/// supported", vercel/ai#20021).
const OPENAI: Rules = Rules {
    provider: "OpenAI",
    argument_name: None,
    array_items: true,
    empty_value: true,
    most_tools: Some(128),
    long_description: Some(1024),
    pattern: is_taken_by_openai,
    strict: Some(Strict::OPENAI),
};

/// "It also rejects top-level oneOf, anyOf, and allOf, and property names outside letters, digits, underscores, dots,
/// and hyphens (1–64 characters)" (platform.claude.com, "Self-hosted sandboxes"); names of inner members are not looked
/// at (aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws#709). "JSON schema is invalid.
/// It must match JSON Schema draft 2020-12" (anthropics/anthropic-sdk-java#241).
const ANTHROPIC: Rules = Rules {
    provider: "Anthropic",
    argument_name: Some(64),
    array_items: false,
    empty_value: true,
    most_tools: None,
    long_description: None,
    pattern: is_no_broken_pattern,
    strict: Some(Strict::ANTHROPIC),
};

/// "The schema must describe an object where the properties are the parameters to the function" (ai.google.dev,
/// `parametersJsonSchema`), "items: missing field" (NousResearch/hermes-agent#69928), "At most 512 function
/// declarations can be specified" (google-gemini/gemini-cli#19083), "Gemini API rejects empty strings in enums"
/// (langchain-ai/langchainjs#9875).
const GEMINI: Rules = Rules {
    provider: "Gemini",
    argument_name: None,
    array_items: true,
    empty_value: false,
    most_tools: Some(512),
    long_description: None,
    pattern: is_no_broken_pattern,
    strict: None,
};

fn is_no_broken_pattern(pattern: &str) -> bool {
    !is_broken(pattern)
}

impl Rules {
    /// The rules of whom a list in this form is sent to; `None` where the form has no further rules.
    pub(in crate::catalog) fn of(format: ToolFormat) -> Option<&'static Self> {
        match format {
            ToolFormat::OpenAi | ToolFormat::OpenAiResponses => Some(&OPENAI),
            ToolFormat::Anthropic => Some(&ANTHROPIC),
            ToolFormat::Gemini => Some(&GEMINI),
            _ => None,
        }
    }
}

/// What a provider would refuse in the definition of a tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "refused", rename_all = "snake_case")]
pub enum Refused {
    /// Arguments have names that are not taken; they are renamed.
    ArgumentNames {
        /// The names.
        names: Vec<String>,
    },
    /// References of the argument schema lead nowhere, or out of it; anything is allowed in their place.
    References {
        /// The references.
        references: Vec<String>,
    },
    /// Patterns are not taken; they are left out.
    Patterns {
        /// The patterns.
        patterns: Vec<String>,
    },
    /// It is declared strict, and has alternatives that a member tells apart in `oneOf` with a `discriminator`, which no
    /// strict schema has; they become `anyOf`.
    Discriminator,
    /// It is declared strict, and its schema does not keep to the rules for that; it is sent without.
    Strict,
    /// The root of the argument schema is put together from others; it becomes one object.
    Root {
        /// The keywords that do so.
        keywords: Vec<String>,
    },
    /// The argument schema has keywords of drafts before 2020-12; they become those of today.
    OlderDraft,
    /// Arrays do not say what their elements are; they say that it may be anything.
    ArrayWithoutItems,
    /// Lists of values are empty, or have the empty text where that is not taken; these are left out.
    EmptyValues,
    /// The arguments cannot be an object; the tool is left out.
    NotAnObject,
    /// The argument schema is not valid; the tool is left out.
    InvalidSchema,
    /// It takes one text, which no other form has a place for; the tool is left out.
    TakesText,
}

impl Refused {
    /// What was done about it, for so many tools.
    fn done(&self, tools: usize) -> String {
        let tools = counted(tools, "tool");
        match self {
            Self::ArgumentNames { .. } => format!("renamed arguments of {tools} (put the names back in calls)"),
            Self::References { .. } => format!("allowed anything where a reference leads nowhere, for {tools}"),
            Self::Patterns { .. } => format!("left out patterns that are not taken, for {tools}"),
            Self::Discriminator => format!("wrote `oneOf` with a `discriminator` as `anyOf`, for {tools}"),
            Self::Strict => format!("left out `strict` of {tools}, whose schemas do not keep to its rules"),
            Self::Root { .. } => format!("made one object of the schemas at the root, for {tools}"),
            Self::OlderDraft => format!("rewrote keywords of older drafts of JSON Schema, for {tools}"),
            Self::ArrayWithoutItems => format!("added `items` to arrays without them, for {tools}"),
            Self::EmptyValues => format!("left out empty values, and lists without any, for {tools}"),
            Self::NotAnObject => format!("left out {tools}, whose arguments are not an object"),
            Self::InvalidSchema => format!("left out {tools}, whose argument schema is not valid"),
            Self::TakesText => format!("left out {tools}, called with a text in place of arguments"),
        }
    }

    /// What it is about in one tool, behind the id.
    fn details(&self) -> String {
        let listed = match self {
            Self::ArgumentNames { names: listed }
            | Self::Root { keywords: listed }
            | Self::References { references: listed }
            | Self::Patterns { patterns: listed } => listed,
            _ => return String::new(),
        };
        let listed = listed.iter().map(|name| format!("`{}`", shortened(name)));
        format!(" ({})", few(listed.collect()))
    }
}

/// A list for a request, and what was done so that its provider takes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The list.
    pub document: Value,
    /// What was changed or left out, and what may be refused nevertheless: one sentence each, for people.
    pub notes: Vec<String>,
}

/// The callable items among `items` as a provider takes them, and notes about what was done.
pub(super) fn adapted<'i>(
    items: impl Iterator<Item = &'i SelectableItem>,
    format: ToolFormat,
) -> (Vec<Cow<'i, SelectableItem>>, Vec<String>) {
    let callable = items.filter(|item| item.kind.is_callable());
    let Some(rules) = Rules::of(format) else { return (callable.map(Cow::Borrowed).collect(), Vec::new()) };
    let (mut list, mut long) = (Vec::new(), Vec::new());
    // One group of each kind, in the order in which they come.
    let mut groups: Vec<(Refused, Vec<String>)> = Vec::new();
    for item in callable {
        let Adapted { item: taken, refused, .. } = adapt(item, rules);
        for refused in refused {
            let shown = format!("{}{}", item.id, refused.details());
            let same = |(first, _): &&mut (Refused, Vec<String>)| {
                std::mem::discriminant(first) == std::mem::discriminant(&refused)
            };
            match groups.iter_mut().find(same) {
                Some((_, tools)) => tools.push(shown),
                None => groups.push((refused, vec![shown])),
            }
        }
        if rules.long_description.is_some_and(|most| item.description.chars().nth(most).is_some()) {
            long.push(item.id.clone());
        }
        list.extend(taken);
    }
    let mut notes: Vec<String> =
        groups.into_iter().map(|(refused, tools)| format!("{}: {}", refused.done(tools.len()), few(tools))).collect();
    let provider = rules.provider;
    if let Some(most) = rules.long_description.filter(|_| !long.is_empty()) {
        let over = format!("{} over {} characters", counted(long.len(), "description"), grouped(most));
        notes.push(format!("{over}, which {provider} takes, but not each server with its interface: {}", few(long)));
    }
    if let Some(most) = rules.most_tools.filter(|most| list.len() > *most) {
        notes.push(format!("{} tools, but a request to {provider} takes at most {most}", grouped(list.len())));
    }
    (list, notes)
}

/// What the providers would refuse in the definition of an item, each with those who would.
#[cfg(feature = "lint")]
pub(in crate::catalog) fn refused_by(item: &SelectableItem) -> BTreeMap<Refused, Vec<&'static str>> {
    const ALL: [Rules; 3] = [OPENAI, ANTHROPIC, GEMINI];
    let mut found: BTreeMap<Refused, Vec<&'static str>> = BTreeMap::new();
    for rules in ALL {
        for refused in adapt(item, &rules).refused {
            found.entry(refused).or_default().push(rules.provider);
        }
    }
    found
}

/// The original names of the arguments of an item that are written under other names in this form, by those.
pub(super) fn renamed(item: &SelectableItem, format: ToolFormat) -> BTreeMap<String, String> {
    let Some((rules, longest)) = Rules::of(format).and_then(|rules| Some((rules, rules.argument_name?))) else {
        return BTreeMap::new();
    };
    let plain = |schema: &Value| {
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let mut names = properties.map(|(name, _)| name.as_str());
        schema.as_object().is_some_and(|root| of_root(root).is_empty()) && names.all(|name| is_taken(name, longest))
    };
    match item.args_schema.as_deref() {
        Some(schema) if !plain(schema) => adapt(item, rules).names,
        _ => BTreeMap::new(),
    }
}

/// Whether a name of an argument has only characters that are taken, and not too many.
fn is_taken(name: &str, longest: usize) -> bool {
    (1..=longest).contains(&name.len()) && name.chars().all(is_allowed)
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

/// An item as a provider takes it.
struct Adapted<'i> {
    /// The item; `None` if it is left out.
    item: Option<Cow<'i, SelectableItem>>,
    /// What was refused as it was.
    refused: Vec<Refused>,
    /// The original names of renamed arguments, by the new ones.
    names: BTreeMap<String, String>,
}

fn adapt<'i>(item: &'i SelectableItem, rules: &Rules) -> Adapted<'i> {
    let left_out = |refused| Adapted { item: None, refused: vec![refused], names: BTreeMap::new() };
    let as_it_is = || Adapted { item: Some(Cow::Borrowed(item)), refused: Vec::new(), names: BTreeMap::new() };
    let is_strict = item.metadata.get(STRICT) == Some(&Value::Bool(true));
    let breaks = |schema: &Value| is_strict && rules.strict.is_some_and(|strict| !strict.is_kept_by(schema));
    let Some(schema) = item.args_schema.as_deref() else {
        if item.metadata.get("type").is_some_and(|kind| kind == "custom") {
            return left_out(Refused::TakesText);
        }
        if !breaks(&of_arguments(item)) {
            return as_it_is();
        }
        let mut item = item.clone();
        item.metadata.remove(STRICT);
        return Adapted { item: Some(Cow::Owned(item)), refused: vec![Refused::Strict], names: BTreeMap::new() };
    };
    let Arguments { mut schema, mut refused, names, conditions } = match Arguments::of(schema, rules) {
        Ok(arguments) if arguments.refused.is_empty() && !breaks(&arguments.schema) => return as_it_is(),
        Ok(arguments) => arguments,
        Err(refused) => return left_out(refused),
    };
    let mut item = item.clone();
    if breaks(&schema) {
        let mut plain = schema.clone();
        each_schema(&mut plain, &without_discriminator);
        without_lost_words(&mut plain);
        if breaks(&plain) {
            refused.push(Refused::Strict);
            item.metadata.remove(STRICT);
        } else {
            refused.push(Refused::Discriminator);
            schema = plain;
        }
    }
    item.args_schema = Some(Arc::new(schema));
    for sentence in conditions.said() {
        let between = if item.description.is_empty() { "" } else { "\n\n" };
        item.description.extend([between, &sentence]);
    }
    let examples = item.metadata.get_mut(super::anthropic::EXAMPLES).and_then(Value::as_array_mut);
    for example in examples.into_iter().flatten().filter_map(Value::as_object_mut) {
        rename_keys(example, &new_names(&names));
    }
    Adapted { item: Some(Cow::Owned(item)), refused, names }
}

/// Names of arguments that have to be given together; one of the sets is needed.
type Choices = Vec<Vec<String>>;

/// Which arguments go together, where no schema that is taken can say it.
#[derive(Default)]
struct Conditions {
    /// Of each of these, one set is needed.
    choices: Vec<Choices>,
    /// Arguments that are not given together.
    excluded: Choices,
}

impl Conditions {
    /// Adds what else holds.
    fn add(&mut self, other: Self) {
        for choices in other.choices {
            if !self.choices.contains(&choices) {
                self.choices.push(choices);
            }
        }
        for set in other.excluded {
            if !self.excluded.contains(&set) {
                self.excluded.push(set);
            }
        }
    }

    fn names(&mut self) -> impl Iterator<Item = &mut String> {
        self.choices.iter_mut().flatten().chain(&mut self.excluded).flatten()
    }

    /// Each condition in words; none of those that are too long for a sentence.
    fn said(&self) -> Vec<String> {
        const MOST: usize = 8;
        let fits = |sets: &Choices| sets.len() <= MOST && sets.iter().all(|set| set.len() <= MOST);
        let list = |names: &Vec<String>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let lists = |sets: &Choices| sets.iter().map(list).collect::<Vec<_>>().join("; ");
        let choices = self.choices.iter().filter(|sets| sets.len() > 1 && fits(sets)).take(MOST);
        let mut sentences: Vec<String> =
            choices.map(|sets| format!("One of these sets of arguments is required: {}.", lists(sets))).collect();
        let (alone, together): (Choices, Choices) = self.excluded.iter().cloned().partition(|set| set.len() == 1);
        if !together.is_empty() && fits(&together) {
            sentences.push(format!("These arguments are not given together: {}.", lists(&together)));
        }
        if !alone.is_empty() && fits(&alone) {
            sentences.push(format!("These arguments are not given: {}.", list(&alone.concat())));
        }
        sentences
    }
}

/// A schema of arguments as a provider takes it.
struct Arguments {
    schema: Value,
    /// What was refused as it was.
    refused: Vec<Refused>,
    /// The original names of renamed arguments, by the new ones.
    names: BTreeMap<String, String>,
    conditions: Conditions,
}

impl Arguments {
    /// # Errors
    /// What the schema cannot be written without.
    fn of(schema: &Value, rules: &Rules) -> Result<Self, Refused> {
        if !schema.is_object() {
            return Err(Refused::NotAnObject);
        }
        if nesting_depth(schema) > MAX_NESTING {
            return Err(Refused::InvalidSchema);
        }
        let mut schema = schema.clone();
        let mut refused = Vec::new();
        let references = lost_references(&schema);
        if !references.is_empty() {
            let is_lost = |members: &Map<String, Value>| {
                members.get("$ref").and_then(Value::as_str).is_some_and(|reference| references.contains(reference))
            };
            loosened(&mut schema, &mut |members| is_lost(members) && members.shift_remove("$ref").is_some());
            refused.push(Refused::References { references: references.into_iter().collect() });
        }
        let keywords = schema.as_object().map(of_root).unwrap_or_default();
        let mut conditions = Conditions::default();
        if !keywords.is_empty() {
            refused.push(Refused::Root { keywords });
            let (root, of_parts) = one_object(&schema).ok_or(Refused::NotAnObject)?;
            (schema, conditions) = (Value::Object(root), of_parts);
        }
        let (older, without_items) = (Cell::new(false), Cell::new(false));
        each_schema(&mut schema, &|schema| {
            let changed = exclusive_bounds(schema) | tuples(schema) | dependencies(schema);
            older.set(older.get() | changed);
            if rules.array_items && is_array(schema) && !schema.contains_key("items") {
                schema.insert("items".to_owned(), json!({}));
                without_items.set(true);
            }
        });
        if older.get() {
            refused.push(Refused::OlderDraft);
            schema.as_object_mut().and_then(|root| root.shift_remove("$schema"));
        }
        if without_items.get() {
            refused.push(Refused::ArrayWithoutItems);
        }
        if without_empty_values(&mut schema, rules.empty_value) {
            refused.push(Refused::EmptyValues);
        }
        let patterns = without_patterns(&mut schema, rules.pattern);
        if !patterns.is_empty() {
            refused.push(Refused::Patterns { patterns });
        }
        let names = rules.argument_name.map(|longest| argument_names(&schema, longest)).unwrap_or_default();
        if !names.is_empty() {
            refused.push(Refused::ArgumentNames { names: names.values().cloned().collect() });
            let to = new_names(&names);
            rename(&mut schema, &to, 0);
            each_schema(&mut schema, &|schema| rename_references(schema, &to));
            let named = |name: &mut String| {
                if let Some(new) = to.get(name.as_str()) {
                    *name = (*new).to_owned();
                }
            };
            conditions.names().for_each(named);
        }
        if !refused.is_empty() {
            without_lost_words(&mut schema);
        }
        // What was put together may be deeper than its parts.
        if nesting_depth(&schema) > MAX_NESTING {
            return Err(Refused::NotAnObject);
        }
        if is_valid(&schema) { Ok(Self { schema, refused, names, conditions }) } else { Err(Refused::InvalidSchema) }
    }
}

/// Whether a schema is one of JSON Schema 2020-12. A build without the checks of the lint takes it on trust.
#[cfg(feature = "lint")]
fn is_valid(schema: &Value) -> bool {
    jsonschema::draft202012::meta::is_valid(schema)
}

#[cfg(not(feature = "lint"))]
fn is_valid(_: &Value) -> bool {
    true
}

/// Keywords at the root of a schema that no provider takes there.
const OF_ROOT: [&str; 6] = ["$ref", "allOf", "anyOf", "oneOf", "not", "enum"];

fn of_root(root: &Map<String, Value>) -> Vec<String> {
    let typed = root.get("type").is_some_and(|kind| kind != "object").then_some("type");
    OF_ROOT.into_iter().filter(|key| root.contains_key(*key)).chain(typed).map(str::to_owned).collect()
}

/// The references of a schema that lead nowhere in it. Where an inner schema has an address of its own, references in
/// it may be about that one, so only those that leave the document are judged.
fn lost_references(schema: &Value) -> BTreeSet<String> {
    let (mut references, mut anchors, mut addresses) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    visit_schemas(schema, &mut |members| {
        let text = |key: &str| members.get(key).and_then(Value::as_str);
        references.extend(text("$ref"));
        anchors.extend(["$anchor", "$dynamicAnchor"].into_iter().filter_map(text));
        addresses.extend(text("$id"));
    });
    let inner = addresses.len() > usize::from(schema.get("$id").is_some_and(Value::is_string));
    let is_lost = |reference: &str| {
        let (address, anchor) = reference.split_once('#').unwrap_or((reference, ""));
        if !address.is_empty() {
            let is_known = |known: &&str| {
                let known = known.trim_end_matches('#');
                known.strip_suffix(address).is_some_and(|base| base.is_empty() || base.ends_with('/'))
            };
            return !addresses.iter().any(is_known);
        }
        match pointer(reference) {
            _ if inner || reference.is_empty() => false,
            Some(place) => schema.pointer(&place).is_none(),
            None => !anchors.contains(anchor),
        }
    };
    references.into_iter().filter(|reference| is_lost(reference)).map(str::to_owned).collect()
}

/// Leaves out the lists of values that have none, and the empty text in others unless it is taken. Says whether there was
/// any of these.
fn without_empty_values(schema: &mut Value, is_taken: bool) -> bool {
    let changed = Cell::new(false);
    if !is_taken {
        each_schema(schema, &|members| {
            let Some(Value::Array(values)) = members.get_mut("enum") else { return };
            let all = values.len();
            values.retain(|value| value != "");
            changed.set(changed.get() || values.len() < all);
        });
    }
    // Nobody means that no value fits.
    let lists = loosened(schema, &mut |members| {
        let is_empty = members.get("enum").and_then(Value::as_array).is_some_and(Vec::is_empty);
        is_empty && members.shift_remove("enum").is_some()
    });
    changed.get() || lists
}

/// Leaves out the patterns of a schema that are not taken, and returns them.
fn without_patterns(schema: &mut Value, is_taken: fn(&str) -> bool) -> Vec<String> {
    let mut left_out: BTreeSet<String> = BTreeSet::new();
    loosened(schema, &mut |members| {
        let pattern = members.get("pattern").and_then(Value::as_str).filter(|pattern| !is_taken(pattern));
        let mut changed = false;
        if let Some(pattern) = pattern.map(str::to_owned) {
            members.shift_remove("pattern");
            left_out.insert(pattern);
            changed = true;
        }
        if let Some(Value::Object(by_pattern)) = members.get_mut("patternProperties") {
            let all = by_pattern.len();
            left_out.extend(by_pattern.keys().filter(|pattern| !is_taken(pattern)).cloned());
            by_pattern.retain(|pattern, _| is_taken(pattern));
            if by_pattern.len() < all {
                // What a pattern allowed must not be refused as another member.
                ["additionalProperties", "unevaluatedProperties"]
                    .iter()
                    .for_each(|key| drop(members.shift_remove(*key)));
                changed = true;
            }
        }
        changed
    });
    left_out.into_iter().collect()
}

/// A schema as one object with all arguments that it allows, and which of them go together. `None` if it allows no
/// object, or none that can be put together.
fn one_object(schema: &Value) -> Option<(Map<String, Value>, Conditions)> {
    let mut merger = Merger { root: schema, left: MOST_PARTS };
    let Members { properties, required, dependent, conditions } = merger.members(schema, 0)?;
    if merger.left == 0 || refers_into_parts(schema) {
        return None;
    }
    let mut own = schema.as_object()?.clone();
    for _ in 0..DEEPEST_PART {
        let Some(Value::String(reference)) = own.shift_remove("$ref") else { break };
        for (key, value) in schema.pointer(&pointer(&reference)?)?.as_object()? {
            own.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    let mut root = Map::from_iter([("type".to_owned(), json!("object")), ("properties".to_owned(), json!(properties))]);
    if !required.is_empty() {
        root.insert("required".to_owned(), json!(required));
    }
    if !dependent.is_empty() {
        root.insert("dependentRequired".to_owned(), Value::Object(dependent));
    }
    // Which alternative it is says nothing where they are put together.
    let is_left = |key: &str| !OF_ROOT.contains(&key) && !["required", DISCRIMINATOR].contains(&key);
    own.retain(|key, _| is_left(key) && !root.contains_key(key));
    root.extend(own);
    Some((root, conditions))
}

/// Of more parts, or of parts in more parts, no object is made.
const MOST_PARTS: usize = 64;
const DEEPEST_PART: usize = 8;

/// Whether a reference leads into what the root is put together from, which is gone when it is one object.
fn refers_into_parts(schema: &Value) -> bool {
    let mut found = false;
    visit_schemas(schema, &mut |schema| {
        let reference = schema.get("$ref").and_then(Value::as_str).unwrap_or_default();
        found |= ["#/allOf", "#/anyOf", "#/oneOf", "#/not"].iter().any(|part| reference.starts_with(part));
    });
    found
}

/// What a schema says about the members of an object.
#[derive(Default)]
struct Members {
    properties: Map<String, Value>,
    required: Vec<String>,
    /// Names by the name of an argument that needs them.
    dependent: Map<String, Value>,
    conditions: Conditions,
}

impl Members {
    /// Adds what is said of the same object.
    fn add(&mut self, other: Self) {
        for (name, schema) in other.properties {
            match self.properties.get_mut(&name) {
                Some(own) if *own == schema => {}
                Some(own) => *own = json!({"allOf": [own.take(), schema]}),
                None => drop(self.properties.insert(name, schema)),
            }
        }
        for name in other.required {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
        for (name, needed) in other.dependent {
            match self.dependent.get_mut(&name).and_then(Value::as_array_mut) {
                Some(known) => {
                    let new = needed.as_array().into_iter().flatten();
                    let new: Vec<Value> = new.filter(|name| !known.contains(name)).cloned().collect();
                    known.extend(new);
                }
                None => drop(self.dependent.insert(name, needed)),
            }
        }
        self.conditions.add(other.conditions);
    }

    /// What is said of an object that is one of several.
    fn of_either(either: Vec<Self>) -> Self {
        let mut schemas: Map<String, Value> = Map::new();
        let sets: Choices = either.iter().map(|members| members.required.clone()).collect();
        for (name, schema) in either.into_iter().flat_map(|members| members.properties) {
            match schemas.entry(name).or_insert_with(|| json!([])) {
                Value::Array(known) if !known.contains(&schema) => known.push(schema),
                _ => {}
            }
        }
        for schema in schemas.values_mut() {
            match schema.as_array_mut().map(std::mem::take) {
                Some(mut one) if one.len() == 1 => *schema = one.remove(0),
                several => *schema = json!({"anyOf": several}),
            }
        }
        let first = sets.first().cloned().unwrap_or_default();
        let required: Vec<String> =
            first.into_iter().filter(|name| sets.iter().all(|set| set.contains(name))).collect();
        let differ = sets.iter().all(|set| set.len() > required.len());
        let choices = if differ { vec![sets] } else { Vec::new() };
        let conditions = Conditions { choices, excluded: Vec::new() };
        Self { properties: schemas, required, dependent: Map::new(), conditions }
    }
}

/// Puts together what the parts of a schema say.
struct Merger<'s> {
    root: &'s Value,
    /// Parts that may still be looked at.
    left: usize,
}

impl<'s> Merger<'s> {
    /// What a schema says about an object; `None` if it allows none.
    fn members(&mut self, schema: &'s Value, depth: usize) -> Option<Members> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || depth > DEEPEST_PART {
            self.left = 0;
            return None;
        }
        let Value::Object(schema) = schema else { return (*schema == Value::Bool(true)).then(Members::default) };
        let is_object = match schema.get("type") {
            None => true,
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            Some(kind) => kind == "object",
        };
        if !is_object {
            return None;
        }
        let names = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let mut members = Members {
            properties: schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default(),
            required: names.map(str::to_owned).collect(),
            dependent: dependent(schema),
            conditions: Conditions {
                choices: Vec::new(),
                excluded: schema.get("not").map(excluded).unwrap_or_default(),
            },
        };
        if let Some(reference) = schema.get("$ref") {
            let target = self.root.pointer(&pointer(reference.as_str()?)?)?;
            members.add(self.members(target, depth + 1)?);
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            members.add(self.members(part, depth + 1)?);
        }
        for either in ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(*key)?.as_array()) {
            let mut parts: Vec<Members> = either.iter().filter_map(|part| self.members(part, depth + 1)).collect();
            members.add(match parts.len() {
                0 => return None,
                // What is no object is no alternative.
                1 => parts.remove(0),
                _ => Members::of_either(parts),
            });
        }
        Some(members)
    }
}

/// What arguments need others, by their names.
fn dependent(schema: &Map<String, Value>) -> Map<String, Value> {
    let lists = ["dependentRequired", "dependencies"].iter().filter_map(|key| schema.get(*key)?.as_object()).flatten();
    lists.filter(|(_, needed)| needed.is_array()).map(|(name, needed)| (name.clone(), needed.clone())).collect()
}

/// The sets of arguments that a schema under `not` is about, where it is about nothing else.
fn excluded(not: &Value) -> Choices {
    let set = |schema: &Value| -> Option<Vec<String>> {
        let members = schema.as_object()?;
        let known = |(key, value): (&String, &Value)| key == "required" || key == "type" && value == "object";
        let names = members.get("required")?.as_array()?.iter().map(|name| name.as_str().map(str::to_owned));
        let names: Vec<String> = members.iter().all(known).then_some(names)?.collect::<Option<_>>()?;
        (!names.is_empty()).then_some(names)
    };
    let several = not.as_object().filter(|members| members.len() == 1).and_then(|members| members.get("anyOf"));
    match several.and_then(Value::as_array) {
        // None of them may hold.
        Some(sets) => sets.iter().map(set).collect::<Option<_>>().unwrap_or_default(),
        None => set(not).into_iter().collect(),
    }
}

/// Tuples in the words of 2020-12: a list in `items` is `prefixItems`. Says whether it was one.
fn tuples(schema: &mut Map<String, Value>) -> bool {
    if !schema.get("items").is_some_and(Value::is_array) {
        return false;
    }
    let others = schema.shift_remove("additionalItems").unwrap_or_else(|| json!({}));
    match schema.insert("items".to_owned(), others) {
        // An empty list says nothing, and is not allowed there.
        Some(Value::Array(first)) if !first.is_empty() => {
            drop(schema.insert("prefixItems".to_owned(), Value::Array(first)));
        }
        _ => {}
    }
    true
}

fn is_array(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        Some(kind) => kind == "array",
        None => false,
    }
}

/// New names for the arguments of an object that have names which are not taken, each with the original. A name that
/// two would have, or that is taken, ends in a digest of the original.
fn argument_names(schema: &Value, longest: usize) -> BTreeMap<String, String> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let (kept, renamed): (Vec<&str>, Vec<&str>) =
        properties.map(|(name, _)| name.as_str()).partition(|name| is_taken(name, longest));
    let mut wanted: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in renamed {
        let fitting: String = name.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
        wanted.entry(fitting.trim_matches('_').to_owned()).or_default().push(name);
    }
    let mut taken: BTreeSet<String> = kept.into_iter().map(str::to_owned).collect();
    let mut names = BTreeMap::new();
    for (fitting, originals) in wanted {
        let is_free = originals.len() == 1 && is_taken(&fitting, longest) && !taken.contains(&fitting);
        for original in originals {
            let new = if is_free { fitting.clone() } else { marked(&fitting, original, longest, &taken) };
            taken.insert(new.clone());
            names.insert(new, original.to_owned());
        }
    }
    names
}

/// The beginning of a name, and a digest of the original that makes it one of its own.
fn marked(fitting: &str, original: &str, longest: usize, taken: &BTreeSet<String>) -> String {
    const DIGITS: usize = 8;
    let begin = &fitting[..fitting.len().min(longest.saturating_sub(DIGITS + 1))];
    let mut whole = original.to_owned();
    loop {
        let digest = sha256_hex(whole.as_bytes());
        let name = format!("{begin}_{}", &digest[..DIGITS]);
        if !taken.contains(&name) {
            return name;
        }
        whole.push('~');
    }
}

fn new_names(names: &BTreeMap<String, String>) -> BTreeMap<&str, &str> {
    names.iter().map(|(new, original)| (original.as_str(), new.as_str())).collect()
}

/// Renames members, which keep their order.
pub(super) fn rename_keys(members: &mut Map<String, Value>, to: &BTreeMap<&str, &str>) {
    if members.keys().any(|key| to.contains_key(key.as_str())) {
        let renamed = std::mem::take(members).into_iter();
        *members = renamed
            .map(|(key, value)| (to.get(key.as_str()).map_or(key.clone(), |new| (*new).to_owned()), value))
            .collect();
    }
}

/// Renames arguments in a schema, and in the schemas in it that are about the same object.
fn rename(schema: &mut Value, to: &BTreeMap<&str, &str>, depth: usize) {
    const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
    const IN_PLACE: [&str; 4] = ["if", "then", "else", "not"];
    let Some(schema) = schema.as_object_mut().filter(|_| depth <= MAX_NESTING) else { return };
    let rename_value = |name: &mut Value| {
        if let Some(new) = name.as_str().and_then(|name| to.get(name)) {
            *name = (*new).into();
        }
    };
    let rename_values = |names: &mut Value| names.as_array_mut().into_iter().flatten().for_each(rename_value);
    for (keyword, value) in schema.iter_mut() {
        match keyword.as_str() {
            "properties" => value.as_object_mut().into_iter().for_each(|members| rename_keys(members, to)),
            "required" => rename_values(value),
            DISCRIMINATOR => value.get_mut("propertyName").into_iter().for_each(rename_value),
            "dependentRequired" | "dependentSchemas" | "dependencies" => {
                if let Some(members) = value.as_object_mut() {
                    rename_keys(members, to);
                    for (_, value) in members.iter_mut() {
                        rename_values(value);
                        rename(value, to, depth + 1);
                    }
                }
            }
            list if LISTS.contains(&list) => {
                value.as_array_mut().into_iter().flatten().for_each(|part| rename(part, to, depth + 1));
            }
            part if IN_PLACE.contains(&part) => rename(value, to, depth + 1),
            _ => {}
        }
    }
}

/// Lets a reference to an argument, or to what is in it, lead to its new name.
fn rename_references(schema: &mut Map<String, Value>, to: &BTreeMap<&str, &str>) {
    const ARGUMENTS: &str = "/properties/";
    let new = |reference: &str| {
        let pointer = pointer(reference)?;
        let path = pointer.strip_prefix(ARGUMENTS)?;
        let (name, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
        let new = to.get(name.replace("~1", "/").replace("~0", "~").as_str())?;
        Some(format!("#{ARGUMENTS}{new}{rest}"))
    };
    let rename = |reference: &mut Value| {
        if let Some(new) = reference.as_str().and_then(new) {
            *reference = new.into();
        }
    };
    schema.get_mut("$ref").into_iter().for_each(rename);
    if let Some(discriminator) = discriminator(schema) {
        discriminator.get_mut(DEFAULT).into_iter().for_each(rename);
        words(discriminator).into_iter().flatten().for_each(|(_, reference)| rename(reference));
    }
}

/// The keyword that says which member of a value tells which of the alternatives beside it is meant. Providers take it for
/// one that they do not know, except where a schema is strict.
const DISCRIMINATOR: &str = "discriminator";

/// Its member with a reference to the alternative of a value that says none of its words.
const DEFAULT: &str = "defaultMapping";

/// The discriminator of a schema.
fn discriminator(schema: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    schema.get_mut(DISCRIMINATOR)?.as_object_mut()
}

/// The words of a discriminator, each with a reference to its alternative.
fn words(discriminator: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    discriminator.get_mut("mapping")?.as_object_mut()
}

/// Alternatives in the words of every provider. What tells them apart is in them too.
fn without_discriminator(schema: &mut Map<String, Value>) {
    if schema.contains_key("anyOf") || !schema.get("oneOf").is_some_and(Value::is_array) {
        return;
    }
    if schema.shift_remove(DISCRIMINATOR).is_some() {
        rename_keys(schema, &BTreeMap::from([("oneOf", "anyOf")]));
    }
}

/// Takes out what leads from discriminators to alternatives that are not where they were.
fn without_lost_words(schema: &mut Value) {
    let mut references = BTreeSet::new();
    visit_schemas(schema, &mut |members| {
        let Some(discriminator) = members.get(DISCRIMINATOR) else { return };
        let words = discriminator.get("mapping").and_then(Value::as_object).into_iter().flatten();
        let all = words.map(|(_, reference)| reference).chain(discriminator.get(DEFAULT));
        references.extend(all.filter_map(Value::as_str));
    });
    let is_lost = |reference: &&str| pointer(reference).is_some_and(|pointer| schema.pointer(&pointer).is_none());
    let lost: BTreeSet<String> = references.into_iter().filter(is_lost).map(str::to_owned).collect();
    if lost.is_empty() {
        return;
    }
    let is_lost = |reference: &Value| reference.as_str().is_some_and(|reference| lost.contains(reference));
    each_schema(schema, &|members| {
        let Some(discriminator) = discriminator(members) else { return };
        if let Some(words) = words(discriminator) {
            words.retain(|_, reference| !is_lost(reference));
        }
        if discriminator.get(DEFAULT).is_some_and(is_lost) {
            discriminator.shift_remove(DEFAULT);
        }
    });
}

/// The first few of a list, and how many more there are.
pub(super) fn few(list: Vec<String>) -> String {
    const FEW: usize = 5;
    let more = list.len().saturating_sub(FEW);
    let mut shown = list;
    shown.truncate(FEW);
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {} more", grouped(more)) }
}
