//! One file as a list of definitions: which form it has and where each definition begins and ends.
//!
//! Definitions are cut out without being interpreted, so that one bad definition does not cost the others and the bytes
//! stay as they were received.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::{Fault, formats};
use super::too_deep;

/// The list of the templates of resources of a server.
const TEMPLATES: &str = "resourceTemplates";

/// The list that a definition is in, which decides how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Tools in any form.
    Tools,
    /// What a live server lists, which speaks MCP.
    ServerTools,
    ServerResources,
    ServerPrompts,
    /// The older list of a request.
    Functions,
    Resources,
    /// Templates of resources.
    ResourceTemplates,
    /// Templates of resources, as FastMCP lists them.
    Templates,
    Prompts,
    /// Items of the native form.
    Items,
    /// The file itself is the definition.
    Whole,
    /// The file is a skill: its front matter is the definition.
    Skill,
}

impl fmt::Display for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Tools | Self::ServerTools => "tools",
            Self::Functions => "functions",
            Self::Resources | Self::ServerResources => "resources",
            Self::ResourceTemplates => TEMPLATES,
            Self::Templates => "templates",
            Self::Prompts | Self::ServerPrompts => "prompts",
            Self::Items => "items",
            Self::Whole => "top level",
            Self::Skill => "front matter",
        })
    }
}

/// A definition and its position in its list.
#[derive(Debug, Clone)]
pub(super) struct Entry<'t> {
    pub(super) form: Form,
    pub(super) index: usize,
    /// Its name, where the list is a map of definitions by name.
    pub(super) key: Option<String>,
    pub(super) raw: &'t RawValue,
}

impl<'t> Entry<'t> {
    pub(super) fn new(form: Form, index: usize, raw: &'t RawValue) -> Self {
        Self { form, index, key: None, raw }
    }
}

/// A list of definitions, or a map of them by name.
#[derive(Default)]
struct List<'t>(Vec<(Option<String>, &'t RawValue)>);

impl<'de: 't, 't> Deserialize<'de> for List<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<'t>(std::marker::PhantomData<&'t ()>);

        impl<'de: 't, 't> Visitor<'de> for Members<'t> {
            type Value = List<'t>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<'t>, A::Error> {
                let mut entries = Vec::new();
                while let Some(raw) = list.next_element()? {
                    entries.push((None, raw));
                }
                Ok(List(entries))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<List<'t>, A::Error> {
                let mut entries = Vec::new();
                while let Some((key, raw)) = map.next_entry()? {
                    entries.push((Some(key), raw));
                }
                Ok(List(entries))
            }
        }

        deserializer.deserialize_any(Members(std::marker::PhantomData))
    }
}

/// The definitions of one file.
#[derive(Debug)]
pub(super) struct Document<'t> {
    /// The name that the file gives its server.
    pub(super) server: Option<String>,
    /// The version that it gives its server.
    pub(super) server_version: Option<String>,
    pub(super) entries: Vec<Entry<'t>>,
    /// Whether it is one page of an answer, and the others are missing.
    pub(super) is_page: bool,
}

impl<'t> Document<'t> {
    /// Definitions of which the file names no server.
    fn of(entries: Vec<Entry<'t>>) -> Self {
        Self { server: None, server_version: None, entries, is_page: false }
    }
}

/// A fault and its place in the file.
#[derive(Debug)]
pub(super) struct Located {
    /// Line and column, or the name of the top-level member.
    pub(super) place: String,
    pub(super) fault: Fault,
}

/// The members that the known forms have at the top level. Other members of an MCP document are ignored.
#[derive(Deserialize)]
struct Top<'t> {
    #[serde(borrow)]
    server: Option<&'t RawValue>,
    /// What a server says of itself.
    #[serde(borrow, rename = "serverInfo")]
    server_info: Option<&'t RawValue>,
    #[serde(borrow)]
    tools: Option<List<'t>>,
    /// What a request had before it had tools.
    #[serde(borrow)]
    functions: Option<&'t RawValue>,
    /// What a request of Bedrock has around its tools.
    #[serde(borrow, rename = "toolConfig")]
    tool_config: Option<&'t RawValue>,
    #[serde(borrow)]
    resources: Option<Vec<&'t RawValue>>,
    #[serde(borrow, rename = "resourceTemplates")]
    resource_templates: Option<Vec<&'t RawValue>>,
    #[serde(borrow)]
    prompts: Option<Vec<&'t RawValue>>,
    #[serde(borrow)]
    items: Option<&'t RawValue>,
    schema: Option<&'t RawValue>,
    #[serde(borrow)]
    templates: Option<&'t RawValue>,
    /// What an export of flows has.
    flows: Option<IgnoredAny>,
    #[serde(borrow, rename = "nextCursor")]
    next_cursor: Option<&'t RawValue>,
    #[serde(borrow)]
    result: Option<&'t RawValue>,
    #[serde(borrow)]
    error: Option<&'t RawValue>,
}

/// The result of a JSON-RPC response.
#[derive(Deserialize)]
#[serde(expecting = "an object with `tools`, `resources` or `prompts`")]
struct Lists<'t> {
    #[serde(borrow)]
    tools: Option<List<'t>>,
    #[serde(borrow)]
    resources: Option<Vec<&'t RawValue>>,
    #[serde(borrow, rename = "resourceTemplates")]
    resource_templates: Option<Vec<&'t RawValue>>,
    #[serde(borrow)]
    prompts: Option<Vec<&'t RawValue>>,
    #[serde(borrow, rename = "nextCursor")]
    next_cursor: Option<&'t RawValue>,
}

impl Lists<'_> {
    /// Whether a server said where its list goes on.
    fn is_page(&self) -> bool {
        self.next_cursor.is_some_and(|cursor| !["null", "\"\""].contains(&cursor.get()))
    }

    fn is_none(&self) -> bool {
        self.tools.is_none() && self.resources.is_none() && self.resource_templates.is_none() && self.prompts.is_none()
    }
}

/// The fix for a file that has no definitions.
const GIVE_TOOLS: &str = "give a list of tools, such as an answer to `tools/list` or a file of `mcp capture`";

/// The fix for a file that is almost in the native form.
const WRITE_NATIVE: &str = "write the native form as {\"schema\": 1, \"items\": [...]}";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Native<'t> {
    schema: Option<u32>,
    #[serde(borrow)]
    items: Vec<&'t RawValue>,
}

/// Cuts a JSON text into definitions.
pub(super) fn parse(text: &str) -> Result<Document<'_>, Located> {
    match text.trim_start().bytes().next() {
        Some(b'[') => {
            let tools: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| located(&error))?;
            Ok(Document::of(listed(Form::Tools, tools).collect()))
        }
        Some(b'{') => parse_object(text),
        None => {
            let fix = "put a server's answer to `tools/list` in it";
            Err(top_level(Fault::new("the file is empty").with_fix(fix)))
        }
        Some(_) => {
            let is_json = serde_json::from_str::<&RawValue>(text).is_ok();
            let problem = if is_json { "expected an array of tools or an object" } else { "it is not JSON" };
            Err(top_level(Fault::new(problem).with_fix(GIVE_TOOLS)))
        }
    }
}

fn parse_object(text: &str) -> Result<Document<'_>, Located> {
    let top: Top<'_> = serde_json::from_str(text).map_err(|error| of_lines(text).unwrap_or_else(|| located(&error)))?;
    let Named { name: server, version: server_version } = server_of(top.server, top.server_info)?;
    let fastmcp = top.server.is_some_and(|server| server.get().starts_with('{'));
    let (resources, resource_templates) = (top.resources, top.resource_templates);
    let next_cursor = top.next_cursor;
    let lists = Lists { tools: top.tools, resources, resource_templates, prompts: top.prompts, next_cursor };
    let within = |place: &str, error: &serde_json::Error| Located {
        place: place.to_owned(),
        fault: Fault::new(without_position(error)),
    };
    let lists = match (lists.is_none(), top.items, top.result, top.error) {
        (false, ..) => lists,
        (true, Some(items), ..) => match of_others(text, top.schema, items) {
            Some(document) => return Ok(document),
            None => return parse_native(text),
        },
        (true, None, Some(result), _) => {
            serde_json::from_str(result.get()).map_err(|error| within("result", &error))?
        }
        (true, None, None, Some(error)) => {
            let error = super::shortened(error.get());
            let fault = Fault::new(format!("a JSON-RPC error response: {error}"));
            return Err(top_level(fault.with_fix("ask the server again")));
        }
        (true, None, None, None) => match top.tool_config {
            Some(tools) => serde_json::from_str(tools.get()).map_err(|error| within("toolConfig", &error))?,
            None => lists,
        },
    };
    let has_lists = !lists.is_none();
    let is_page = lists.is_page();
    let mut entries = Vec::new();
    if let Some(functions) = top.functions.filter(|_| lists.is_none()) {
        let functions: Vec<&RawValue> =
            serde_json::from_str(functions.get()).map_err(|error| within("functions", &error))?;
        entries.extend(listed(Form::Functions, functions));
    } else if lists.is_none() {
        entries = whole(text).ok_or_else(|| {
            let (problem, fix) = match top.flows {
                None if is_of_a_client(text) => (
                    "it is the file of an MCP client: it names servers, and no tools",
                    "`contextweaver init DIR --client FILE` puts a gateway in front of the servers, and `contextweaver mcp \
                     capture` saves the tools of one",
                ),
                None => ("it has none of the keys `tools`, `resources`, `prompts` and `items`", GIVE_TOOLS),
                Some(_) => ("`flows` has no flow of ChainWeaver: an object with `steps`, or with an `id`", GIVE_TOOLS),
            };
            top_level(Fault::new(problem).with_fix(fix))
        })?;
    }
    let tools = lists.tools.unwrap_or_default().0.into_iter().enumerate();
    entries.extend(tools.map(|(index, (key, raw))| Entry { key, ..Entry::new(Form::Tools, index, raw) }));
    entries.extend(listed(Form::Resources, lists.resources.unwrap_or_default()));
    entries.extend(listed(Form::ResourceTemplates, lists.resource_templates.unwrap_or_default()));
    if let Some(templates) = top.templates.filter(|_| fastmcp) {
        let templates: Vec<&RawValue> =
            serde_json::from_str(templates.get()).map_err(|error| within("templates", &error))?;
        entries.extend(listed(Form::Templates, templates));
    }
    entries.extend(listed(Form::Prompts, lists.prompts.unwrap_or_default()));
    if has_lists && top.flows.is_some() {
        entries.extend(whole(text).into_iter().flatten());
    }
    Ok(Document { server, server_version, entries, is_page })
}

/// Whether an object names servers as MCP clients do.
fn is_of_a_client(text: &str) -> bool {
    const KEYS: [&str; 4] = ["mcpServers", "servers", "context_servers", "mcp_servers"];
    let Ok(Value::Object(members)) = serde_json::from_str(text) else { return false };
    let is_server = |entry: &Value| ["command", "url"].iter().any(|key| entry.get(*key).is_some());
    let has_servers = |servers: &Value| servers.as_object().is_some_and(|servers| servers.values().any(is_server));
    KEYS.iter().any(|key| members.get(*key).is_some_and(has_servers))
}

/// The fault of a text that is not one document, but one in each line.
fn of_lines(text: &str) -> Option<Located> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).take(2);
    let is_object = |line: &str| serde_json::from_str::<Map<String, Value>>(line).is_ok();
    let are_objects = lines.next().is_some_and(is_object) && lines.next().is_some_and(is_object);
    are_objects
        .then(|| top_level(Fault::new("each line is a document of its own").with_fix("put the lines into one array")))
}

/// What a file says of its server.
#[derive(Default)]
struct Named {
    name: Option<String>,
    version: Option<String>,
}

/// Name and version of the server in `server` (a text, or an object as FastMCP writes it), else in `serverInfo`.
fn server_of(server: Option<&RawValue>, info: Option<&RawValue>) -> Result<Named, Located> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Said {
        Text(String),
        Object { name: Option<String>, version: Option<Value> },
    }
    let said = |raw: &RawValue| match serde_json::from_str(raw.get()) {
        Ok(Said::Text(name)) => Ok(Named { name: Some(name), version: None }),
        Ok(Said::Object { name, version }) => {
            Ok(Named { name, version: version.as_ref().and_then(super::version_text) })
        }
        Err(_) => Err(()),
    };
    let of_server = server.map(said).transpose().map_err(|()| {
        let fault = Fault::new("`server` must be a string, or an object with a string `name`");
        top_level(fault)
    })?;
    let of_server = of_server.unwrap_or_default();
    // What is of no use here is ignored, as other members are.
    let of_info = info.and_then(|info| said(info).ok()).unwrap_or_default();
    let named = |name: &String| !name.trim().is_empty();
    Ok(Named {
        name: of_server.name.filter(named).or_else(|| of_info.name.filter(named)),
        version: of_server.version.or(of_info.version),
    })
}

/// A skill as JSON: an array of its front matter and the text behind it.
pub(super) fn skill_to_json(text: &str) -> Result<String, Located> {
    let parts = formats::skill_parts(text);
    let (front, body) = parts.map_err(|fault| Located { place: "line 1".to_owned(), fault })?;
    let front = yaml_to_json(front)?;
    Ok(format!("[{front},{}]", Value::from(body)))
}

/// The definition in the JSON of a skill.
pub(super) fn skill(json: &str) -> Result<Document<'_>, Located> {
    let raw = serde_json::from_str(json).map_err(|error| top_level(fault_of(without_position(&error))))?;
    Ok(Document::of(vec![Entry::new(Form::Skill, 0, raw)]))
}

/// A document with `items` that is not ours: a choice card.
fn of_others<'t>(text: &'t str, schema: Option<&RawValue>, items: &RawValue) -> Option<Document<'t>> {
    #[derive(Deserialize)]
    struct Labelled {
        #[serde(rename = "label")]
        _label: String,
    }
    let labelled = || serde_json::from_str::<Vec<Labelled>>(items.get()).is_ok_and(|items| !items.is_empty());
    let entries = if schema.is_none() && labelled() { whole(text)? } else { return None };
    Some(Document::of(entries))
}

/// A file that is a definition itself (an OpenAPI document, an agent card, a single tool) or a map of definitions.
fn whole(text: &str) -> Option<Vec<Entry<'_>>> {
    let Ok(Value::Object(members)) = serde_json::from_str(text) else {
        // What is too deep for a value is refused as a definition is, if it is one at all.
        let raw = serde_json::from_str::<&RawValue>(text).ok()?;
        let top: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
        let kind = |key: &str| top.get(key).map_or(Value::Null, |_| Value::from(""));
        let keys = ["openapi", "swagger", "paths"].map(|key| (key.to_owned(), kind(key)));
        let shallow = keys.into_iter().filter(|(_, value)| !value.is_null()).collect();
        return formats::is_openapi(&shallow).then(|| vec![Entry::new(Form::Whole, 0, raw)]);
    };
    if formats::is_definition(&members) {
        return Some(vec![Entry::new(Form::Whole, 0, serde_json::from_str(text).ok()?)]);
    }
    let named = |(key, value): (&String, &Value)| {
        let Value::Object(members) = value else { return false };
        let mut members = members.clone();
        members.entry("name").or_insert_with(|| key.as_str().into());
        formats::is_definition(&members)
    };
    if members.is_empty() || !members.iter().all(named) {
        return None;
    }
    let map: List<'_> = serde_json::from_str(text).ok()?;
    let entries = map.0.into_iter().enumerate();
    Some(entries.map(|(index, (key, raw))| Entry { key, ..Entry::new(Form::Whole, index, raw) }).collect())
}

fn parse_native(text: &str) -> Result<Document<'_>, Located> {
    let native: Native<'_> = serde_json::from_str(text).map_err(|error| located(&error))?;
    match native.schema {
        Some(super::native::SCHEMA) => {}
        None => return Err(top_level(Fault::new("`schema` is missing").with_fix(WRITE_NATIVE))),
        Some(other) => {
            let expected = super::native::SCHEMA;
            let fault = Fault::new(format!("`schema` is {other}"));
            return Err(top_level(fault.with_fix(format!("write the file with schema {expected}"))));
        }
    }
    Ok(Document::of(listed(Form::Items, native.items).collect()))
}

fn listed<'t>(form: Form, list: Vec<&'t RawValue>) -> impl Iterator<Item = Entry<'t>> {
    list.into_iter().enumerate().map(move |(index, raw)| Entry::new(form, index, raw))
}

pub(super) fn top_level(fault: Fault) -> Located {
    Located { place: "top level".to_owned(), fault }
}

fn located(error: &serde_json::Error) -> Located {
    let place = format!("line {}, column {}", error.line(), error.column());
    Located { place, fault: Fault::new(without_position(error)) }
}

fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}

/// The value of one definition. Its name, when there is one, is written to `name` for messages, even when parsing
/// fails.
pub(super) fn parse_entry(raw: &RawValue, name: &mut String) -> Result<Value, Fault> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(value) => {
            formats::name_of(&value).clone_into(name);
            Ok(value)
        }
        Err(error) => {
            if let Ok(named) = serde_json::from_str::<Named>(raw.get()) {
                *name = named.name;
            }
            Err(fault_of(without_position(&error)))
        }
    }
}

/// Converts YAML to JSON, so that both are read the same way from here. Only `true` and `false` are booleans: a tool
/// called `on` or a country `no` is a text. The limits stop alias bombs and deep nesting; the size of a plain document
/// is bounded by the size of its file.
pub(super) fn yaml_to_json(text: &str) -> Result<String, Located> {
    Ok(yaml(text, 32_000_000, 1 << 28)?.to_string())
}

/// The members of a front matter, and the text behind it.
pub type FrontMatter<'t> = (Map<String, Value>, &'t str);

/// The members of the front matter of a Markdown document (YAML between two lines `---`, the first of which begins the
/// document), and the text behind it. `None` for a document without front matter.
///
/// # Errors
/// [`Fault`] with the line when the front matter does not end, is not YAML, is not a list of `key: value`, or is larger than
/// any in use, also after its aliases are replaced; in a build without the feature `yaml`, for every front matter.
pub fn front_matter(text: &str) -> Result<Option<FrontMatter<'_>>, Fault> {
    // There may be thousands of documents.
    const MOST_BYTES: usize = 1 << 16;
    const MOST_NODES: usize = 10_000;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.split_once('\n').is_none_or(|(first, _)| first.trim_end() != "---") {
        return Ok(None);
    }
    let (front, body) = formats::skill_parts(text)?;
    if front.trim().is_empty() {
        return Ok(Some((Map::new(), body)));
    }
    if front.len() > MOST_BYTES {
        let problem = format!("the front matter has more than {} KiB", MOST_BYTES >> 10);
        return Err(Fault::new(problem).with_fix("shorten it"));
    }
    let placed = |Located { place, fault }: Located| Fault { problem: format!("{place}: {}", fault.problem), ..fault };
    match yaml(front, MOST_NODES, MOST_BYTES).map_err(placed)? {
        Value::Object(members) => Ok(Some((members, body))),
        // Nothing but comments.
        Value::Null => Ok(Some((Map::new(), body))),
        other => {
            let problem = format!("the front matter is {}", super::describe(&other));
            Err(Fault::new(problem).with_fix("write it as lines `key: value`"))
        }
    }
}

/// The function of this name in a build without YAML: an error that says how to get it.
#[cfg(not(feature = "yaml"))]
fn yaml(_: &str, _: usize, _: usize) -> Result<Value, Located> {
    let fix = "use JSON, or build with the feature `yaml`";
    Err(top_level(Fault::new("this program was built without YAML").with_fix(fix)))
}

/// Reads YAML of at most so many nodes, and so many bytes of texts, also after its aliases are replaced.
#[cfg(feature = "yaml")]
fn yaml(text: &str, nodes: usize, bytes: usize) -> Result<Value, Located> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_depth: super::MAX_NESTING + 1,
            max_nodes: nodes,
            max_events: 2 * nodes,
            max_total_scalar_bytes: bytes,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: (nodes / 2).min(1_000_000) },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error: serde_saphyr::Error| {
        let error = error.without_snippet();
        let mut fault = yaml_fault(error);
        match error.location() {
            None => top_level(fault),
            Some(at) => {
                let place = format!("line {}, column {}", at.line(), at.column());
                if let Some(problem) = fault.problem.strip_suffix(&format!(" at {place}")) {
                    fault.problem = problem.to_owned();
                }
                Located { place, fault }
            }
        }
    })
}

/// What is wrong with a YAML text, without the parser's own names for its limits and options.
#[cfg(feature = "yaml")]
fn yaml_fault(error: &serde_saphyr::Error) -> Fault {
    use serde_saphyr::Error;
    use serde_saphyr::budget::BudgetBreach;
    match error {
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => too_deep(),
        Error::Budget { breach: BudgetBreach::Documents { .. }, .. } | Error::MultipleDocuments { .. } => {
            Fault::new("it holds more than one document").with_fix("keep one per file")
        }
        Error::Budget {
            breach: BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } | BudgetBreach::ScalarBytes { .. },
            ..
        } => Fault::new("it is too large for YAML").with_fix("save it as JSON or split it"),
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            Fault::new("its anchors and aliases grow too large when expanded").with_fix("write the values out")
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            Fault::new(format!("the key `{}` occurs twice", super::shortened(key))).with_fix("remove one")
        }
        Error::DuplicateMappingKey { key: None, .. } => Fault::new("a key occurs twice").with_fix("remove one"),
        Error::AliasError { error, .. } => yaml_fault(error),
        other => fault_of(other.to_string()),
    }
}

/// A parser's message as a fault. Neither parser has a type for its recursion limit.
fn fault_of(message: String) -> Fault {
    if message.starts_with("recursion limit") { too_deep() } else { Fault::new(message) }
}
