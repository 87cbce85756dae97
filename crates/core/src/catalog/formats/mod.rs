//! The forms in which others write the definitions of tools: one file per form, with its reader and, where programs send
//! such a list to somebody, its writer.
//!
//! [`ROWS`] says by which members a definition is recognised; the first row that fits reads it. What a form holds beside
//! name, description and schema goes to the metadata of the item, so that nothing of it is lost.

mod a2a;
mod anthropic;
mod bedrock;
mod chainweaver;
mod fastmcp;
mod frameworks;
mod gemini;
mod mcp;
mod names;
mod openai;
mod openapi;
pub(super) mod pattern;
mod peer;
pub(super) mod providers;
pub(super) mod schema;
mod skill;
mod strict;
#[cfg(test)]
mod tests;
mod weaver;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

pub use self::names::{CallNames, fitting_ids, fitting_names};
pub use self::providers::{Refused, Written};
use super::load::{Draft, Fields, begin, settle_safety};
use super::{Fault, Kind, Safety, SelectableItem};

/// The form of a definition, or of a list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolFormat {
    /// What an MCP server lists.
    Mcp,
    /// The native form, which holds everything that an item is.
    Native,
    /// Tools of OpenAI's chat completions.
    OpenAi,
    /// Tools of OpenAI's responses.
    OpenAiResponses,
    /// Bare functions, with `parameters` and no type: the older form of several providers.
    Functions,
    /// Tools of Anthropic's messages.
    Anthropic,
    /// Tools of Gemini.
    Gemini,
    /// Tools of Bedrock's Converse.
    Bedrock,
    /// An OpenAPI 3 document: each operation is a tool.
    OpenApi,
    /// An A2A agent card: each skill is a tool.
    A2a,
    /// What `fastmcp inspect` writes of a server.
    FastMcp,
    /// Tools of LangChain.
    LangChain,
    /// Tools of LlamaIndex.
    LlamaIndex,
    /// Tools of smolagents.
    Smolagents,
    /// Tools of Cohere's first API.
    Cohere,
    /// Tools of the Vercel AI SDK.
    VercelAi,
    /// Items of the Python package `contextweaver`.
    Peer,
    /// The contracts of `weaver-spec`: items, choice cards, capabilities.
    WeaverSpec,
    /// A skill of an agent: a file `SKILL.md`.
    Skill,
    /// Flows of ChainWeaver: each is a tool.
    ChainWeaver,
}

/// No request takes a list of tools of this form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown form `{key}`; use one of {known}")]
pub struct UnknownForm {
    key: String,
    known: String,
}

impl ToolFormat {
    /// The forms that [`Self::write`] writes.
    pub const WRITTEN: [Self; 7] =
        [Self::OpenAi, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Mcp, Self::WeaverSpec, Self::Native];

    /// The forms in which a request takes tools.
    fn of_requests() -> impl Iterator<Item = Self> {
        Self::WRITTEN.into_iter().filter(|format| *format != Self::Native)
    }

    /// The form with this key, of those in which a request takes tools.
    ///
    /// # Errors
    /// [`UnknownForm`], which names them.
    pub fn of_request(key: &str) -> Result<Self, UnknownForm> {
        Self::of_requests().find(|format| format.key() == key).ok_or_else(|| {
            let known: Vec<&str> = Self::of_requests().map(Self::key).collect();
            UnknownForm { key: key.to_owned(), known: known.join(", ") }
        })
    }

    /// Its name on the command line and in JSON.
    #[must_use]
    pub fn key(self) -> &'static str {
        self.names().0
    }

    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Mcp => ("mcp", "MCP"),
            Self::Native => ("native", "native"),
            Self::OpenAi => ("openai", "OpenAI chat completions"),
            Self::OpenAiResponses => ("openai-responses", "OpenAI responses"),
            Self::Functions => ("functions", "functions"),
            Self::Anthropic => ("anthropic", "Anthropic messages"),
            Self::Gemini => ("gemini", "Gemini"),
            Self::Bedrock => ("bedrock", "Bedrock Converse"),
            Self::OpenApi => ("openapi", "OpenAPI"),
            Self::A2a => ("a2a", "A2A agent card"),
            Self::FastMcp => ("fastmcp", "FastMCP"),
            Self::LangChain => ("langchain", "LangChain"),
            Self::LlamaIndex => ("llama-index", "LlamaIndex"),
            Self::Smolagents => ("smolagents", "smolagents"),
            Self::Cohere => ("cohere", "Cohere"),
            Self::VercelAi => ("vercel-ai", "Vercel AI SDK"),
            Self::Peer => ("contextweaver-py", "contextweaver (Python)"),
            Self::WeaverSpec => ("weaver-spec", "weaver-spec"),
            Self::Skill => ("agent-skill", "Agent Skills"),
            Self::ChainWeaver => ("chainweaver", "ChainWeaver flows"),
        }
    }

    /// The callable items among `items` as the list that goes into a request, under the names of `names`: an array of
    /// definitions that its provider takes. [`Self::WeaverSpec`] gives an array of choice cards, which hold items by
    /// their ids. `None` for a form that is only read, and for [`Self::Native`], which
    /// [`Catalog::to_native_json`](super::Catalog::to_native_json) writes.
    #[must_use]
    pub fn write<'i>(self, items: impl IntoIterator<Item = &'i SelectableItem>, names: &CallNames) -> Option<Value> {
        self.write_noted(items, names).map(|written| written.document)
    }

    /// As [`Self::write`], with notes about what was changed or left out so that the provider takes the list.
    #[must_use]
    pub fn write_noted<'i>(
        self,
        items: impl IntoIterator<Item = &'i SelectableItem>,
        names: &CallNames,
    ) -> Option<Written> {
        let write: fn(&SelectableItem, &str) -> Value = match self {
            Self::Mcp => mcp::write,
            Self::OpenAi => openai::write_chat,
            Self::OpenAiResponses => openai::write_responses,
            Self::Anthropic => anthropic::write,
            Self::Gemini => gemini::write,
            Self::WeaverSpec => weaver::write,
            _ => return None,
        };
        let (items, mut notes) = providers::adapted(items.into_iter(), self);
        let written = items.iter().map(|item| write(item, names.name(&item.id).unwrap_or(&item.name)));
        let written: Vec<Value> = written.collect();
        if self == Self::Mcp {
            notes.extend(mcp::no_results(items.iter().map(AsRef::as_ref)));
        }
        let document = match self {
            Self::Gemini => gemini::list(&written),
            Self::Anthropic => {
                let (list, of_marks) = anthropic::list(written);
                notes.extend(of_marks);
                list
            }
            Self::WeaverSpec => weaver::cards(&written),
            _ => Value::Array(written),
        };
        Some(Written { document, notes })
    }

    /// What is known of `items` beside names, descriptions, schemas of arguments, tags and servers, and has no place in this
    /// form: each member of their metadata, and fields such as `output_schema` and `version`, and how many of them have it.
    #[must_use]
    pub fn has_no_place_for<'i>(self, items: impl IntoIterator<Item = &'i SelectableItem>) -> BTreeMap<&'i str, usize> {
        let has_place = |key: &str| match self {
            Self::Native => true,
            Self::Mcp => mcp::has_key(key),
            Self::Anthropic => anthropic::has_key(key),
            Self::OpenAi | Self::OpenAiResponses => openai::has_key(key),
            _ => false,
        };
        // Items of other kinds have no place in the lists of providers at all.
        let items = items.into_iter().filter(|item| self == Self::Mcp || item.kind.is_callable());
        let mut counts = BTreeMap::new();
        for item in items {
            let results = item.output_schema.is_some() && !self.has_results_of(item);
            let version = item.version.is_some() && !matches!(self, Self::Native | Self::Mcp | Self::WeaverSpec);
            let of_server = item.server_version.is_some() && !matches!(self, Self::Native | Self::Mcp);
            let keys = item.metadata.keys().map(String::as_str).filter(|key| !has_place(key));
            let fields = [
                (results, "output_schema"),
                (version, "version"),
                (of_server, "server_version"),
                (!item.depends_on.is_empty() && self != Self::Native, "depends_on"),
                (!item.provides.is_empty() && self != Self::Native, "provides"),
                (!item.requires.is_empty() && self != Self::Native, "requires"),
            ];
            for key in keys.chain(fields.into_iter().filter_map(|(lost, key)| lost.then_some(key))) {
                *counts.entry(key).or_default() += 1;
            }
        }
        counts
    }
}

impl ToolFormat {
    /// Whether the schema of the results of an item has a place in this form.
    fn has_results_of(self, item: &SelectableItem) -> bool {
        match self {
            Self::Native => true,
            Self::Mcp => mcp::has_results_of(item),
            _ => false,
        }
    }
}

impl fmt::Display for ToolFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl Serialize for ToolFormat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

pub(super) use self::fastmcp::{is_member as is_fastmcp, prompt as fastmcp_prompt, resource as fastmcp_resource};
pub use self::mcp::{is_template, listing as mcp_listing};
pub(super) use self::openapi::is_document as is_openapi;
pub(super) use self::skill::{parts as skill_parts, read as skill};
pub use self::weaver::routing_decision;

/// A tool out of a definition that holds several.
#[derive(Debug)]
pub(super) struct Part {
    /// Where it is in the definition: `.skills[0]`.
    pub(super) inside: String,
    /// Its name, for messages.
    pub(super) name: String,
    pub(super) draft: Result<Draft, Fault>,
}

/// How the definitions of a row are read.
#[derive(Clone, Copy)]
enum Reader {
    One(fn(Fields) -> Result<Draft, Fault>),
    Many(fn(Map<String, Value>) -> Result<Vec<Part>, Fault>),
}

/// A form, what tells its definitions from others, and its reader.
struct Row {
    format: ToolFormat,
    is: fn(&Map<String, Value>) -> bool,
    reader: Reader,
}

/// The forms in the order in which a definition is compared with them. A definition that no row knows is read as MCP's.
const ROWS: &[Row] = &[
    row(ToolFormat::OpenApi, openapi::is_document, Reader::Many(openapi::read)),
    row(ToolFormat::ChainWeaver, chainweaver::is_export, Reader::Many(chainweaver::read_export)),
    row(ToolFormat::ChainWeaver, chainweaver::is, Reader::One(chainweaver::read)),
    row(ToolFormat::OpenAi, openai::is_chat, Reader::One(openai::read_chat)),
    row(ToolFormat::OpenAiResponses, openai::is_namespace, Reader::Many(openai::read_namespace)),
    row(ToolFormat::OpenAiResponses, openai::is_server, Reader::Many(openai::read_server)),
    row(ToolFormat::Gemini, gemini::is_list, Reader::Many(gemini::read_list)),
    row(ToolFormat::Bedrock, bedrock::is, Reader::One(bedrock::read)),
    row(ToolFormat::A2a, a2a::is_card, Reader::Many(a2a::read)),
    row(ToolFormat::VercelAi, frameworks::is_vercel, Reader::One(frameworks::read_vercel)),
    row(ToolFormat::Mcp, |members| members.contains_key("inputSchema"), Reader::One(super::load::tool)),
    row(ToolFormat::Peer, peer::is, Reader::One(peer::read)),
    row(ToolFormat::FastMcp, fastmcp::is, Reader::One(fastmcp::read)),
    row(ToolFormat::Anthropic, anthropic::is, Reader::One(anthropic::read)),
    row(ToolFormat::LangChain, frameworks::is_langchain, Reader::One(frameworks::read_langchain)),
    row(ToolFormat::LlamaIndex, frameworks::is_llama_index, Reader::One(frameworks::read_llama_index)),
    row(ToolFormat::Smolagents, frameworks::is_smolagents, Reader::One(frameworks::read_smolagents)),
    row(ToolFormat::Cohere, frameworks::is_cohere, Reader::One(frameworks::read_cohere)),
    row(ToolFormat::Gemini, gemini::is, Reader::One(gemini::read)),
    row(ToolFormat::OpenAiResponses, openai::is_responses, Reader::One(openai::read_responses)),
    row(ToolFormat::Functions, openai::is_function, Reader::One(openai::read_function)),
    row(ToolFormat::Functions, openai::is_named_schema, Reader::One(openai::read_named_schema)),
    row(ToolFormat::WeaverSpec, weaver::is, Reader::One(weaver::read)),
    row(ToolFormat::WeaverSpec, weaver::is_card, Reader::Many(weaver::read_card)),
];

const fn row(format: ToolFormat, is: fn(&Map<String, Value>) -> bool, reader: Reader) -> Row {
    Row { format, is, reader }
}

/// Whether an object is a definition by itself, and not only by standing in a list of tools.
pub(super) fn is_definition(members: &Map<String, Value>) -> bool {
    ROWS.iter().any(|row| (row.is)(members)) || frameworks::is_of_provider(members)
}

/// Why an entry of a list of tools is left out of every load: its own author wrote it as no tool that is offered.
pub(super) fn is_none(value: &Value, in_tools: bool) -> Option<Fault> {
    let members = value.as_object()?;
    let of_fastmcp = if in_tools { fastmcp::is(members) } else { fastmcp::is_member(value) };
    if of_fastmcp && members.get("enabled") == Some(&Value::Bool(false)) {
        return Some(Fault::new("its server has switched it off"));
    }
    let of_provider = || run_by_provider(members).map(by_provider);
    bedrock::is_none(members).or_else(of_provider).filter(|_| in_tools)
}

/// What a provider runs itself that stands beside functions in one definition. The functions are read nevertheless.
pub(super) fn beside_functions(value: &Value) -> Option<Fault> {
    let members = value.as_object().filter(|members| gemini::is_list(members))?;
    let own: Vec<&str> = members.keys().map(String::as_str).filter(|key| OF_GEMINI.contains(key)).collect();
    match own.as_slice() {
        [] => None,
        [one] => Some(by_provider(one)),
        several => {
            Some(Fault::new(format!("`{}` are run by the provider and have no definitions", several.join("`, `"))))
        }
    }
}

/// The tools of its own that Gemini has, by the member that asks for one.
const OF_GEMINI: [&str; 13] = [
    "googleSearch",
    "google_search",
    "googleSearchRetrieval",
    "google_search_retrieval",
    "codeExecution",
    "code_execution",
    "urlContext",
    "url_context",
    "googleMaps",
    "google_maps",
    "computerUse",
    "computer_use",
    "fileSearch",
];

/// How the types begin under which other providers list tools of their own, without a name.
const OF_PROVIDERS: [&str; 18] = [
    "apply_patch",
    "bash",
    "browser_search",
    "code_execution",
    "code_interpreter",
    "computer",
    "document_library",
    "file_search",
    "image_generation",
    "local_shell",
    "mcp",
    "memory",
    "shell",
    "text_editor",
    "tool_search",
    "web_fetch",
    "web_search",
    "x_search",
];

/// The name of a tool that a provider runs itself: it has no schema, and there is nothing to choose it by.
fn run_by_provider(members: &Map<String, Value>) -> Option<&str> {
    if frameworks::is_of_provider(members) {
        return members.get("id").and_then(Value::as_str);
    }
    let is_known = |kind: &str| {
        OF_PROVIDERS
            .iter()
            .any(|known| kind.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('_')))
    };
    let kind = typed(members).filter(|kind| is_dated(kind) || is_known(kind) && !members.contains_key("name"));
    let kind = kind.filter(|_| !["input_schema", "inputSchema"].iter().any(|key| members.contains_key(*key)));
    let by_key = || {
        let is_own = !members.is_empty() && members.keys().all(|key| OF_GEMINI.contains(&key.as_str()));
        members.keys().next().map(String::as_str).filter(|_| is_own)
    };
    kind.or_else(by_key).filter(|_| !is_definition(members))
}

/// The type of a definition, where it says more than that it is a function.
fn typed(members: &Map<String, Value>) -> Option<&str> {
    members.get("type").and_then(Value::as_str).filter(|kind| !["function", "custom"].contains(kind))
}

/// Whether a type ends in a day, as those of Anthropic's own tools do.
fn is_dated(kind: &str) -> bool {
    let (before, date) = kind.rsplit_once('_').unwrap_or_default();
    !before.is_empty() && date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit())
}

fn by_provider(name: &str) -> Fault {
    Fault::new(format!("`{}` is run by the provider and has no definition", super::load::shortened(name)))
}

/// What a definition is.
#[expect(clippy::large_enum_variant, reason = "one at a time, and nearly all are the large one")]
pub(super) enum Found {
    One(ToolFormat, Result<Draft, Fault>),
    Many(ToolFormat, Vec<Part>),
}

/// Reads a definition in any form. `key` is its name where the list that it stands in is a map.
pub(super) fn read(value: Value, key: Option<&str>) -> Found {
    let mut members = match value {
        Value::Object(members) => members,
        other => return Found::One(ToolFormat::Mcp, Fields::new(other).and_then(super::load::tool)),
    };
    if let Some(key) = key {
        members.entry("name").or_insert_with(|| key.into());
    }
    // Nearly all are MCP's, and none of the rows above has its schema under this key without saying its type.
    if key.is_none() && is_object(&members, "inputSchema") && !members.contains_key("type") {
        let wrapped = members.get("inputSchema").is_some_and(|schema| schema.get("jsonSchema").is_some());
        if !wrapped {
            return Found::One(ToolFormat::Mcp, Fields::new(Value::Object(members)).and_then(super::load::tool));
        }
    }
    if let Some(fault) = no_definition(&members) {
        return Found::One(ToolFormat::Mcp, Err(fault));
    }
    let row = ROWS.iter().find(|row| (row.is)(&members));
    let (format, reader) =
        row.map_or((ToolFormat::Mcp, Reader::One(super::load::tool)), |row| (row.format, row.reader));
    // Maps of definitions by name are what the Vercel AI SDK takes.
    let format = match format {
        ToolFormat::Mcp | ToolFormat::Functions if key.is_some() => ToolFormat::VercelAi,
        format => format,
    };
    match reader {
        Reader::One(read) => Found::One(format, Fields::new(Value::Object(members)).and_then(read)),
        Reader::Many(read) => match read(members) {
            Ok(parts) => Found::Many(format, parts),
            Err(fault) => Found::One(format, Err(fault)),
        },
    }
}

/// The name in a definition of any form, for messages.
pub(super) fn name_of(value: &Value) -> &str {
    let names = ["/name", "/function/name", "/toolSpec/name", "/metadata/name", "/id"];
    names.iter().find_map(|pointer| value.pointer(pointer)?.as_str()).unwrap_or("")
}

/// Why an entry of a list of tools is not a definition.
fn no_definition(members: &Map<String, Value>) -> Option<Fault> {
    if members.contains_key("lc") {
        let fault = Fault::new("a LangChain dump without a schema");
        return Some(fault.with_fix("write the tool's `name`, `description` and `args_schema`"));
    }
    if members.get("type").is_some_and(|kind| kind == "object")
        && !members.contains_key("name")
        && !is_definition(members)
    {
        let fault = Fault::new("a JSON Schema without a name");
        return Some(fault.with_fix("give it a `title`, or make it the `inputSchema` of a tool with a `name`"));
    }
    let nameless = typed(members).filter(|_| !members.contains_key("name") && !is_definition(members))?;
    let name = super::load::shortened(nameless);
    // No provider has a dot in a type; a path to a class is how a framework writes its own.
    if name.contains('.') {
        let fault = Fault::new(format!("a definition of the type `{name}` is of no known form"));
        return Some(fault.with_fix("write it as MCP has it: `name`, `description` and `inputSchema`"));
    }
    let fault = Fault::new(format!("a definition of the type `{name}` has no `name`"));
    Some(fault.with_fix("give it one, or remove it"))
}

/// A tool with this schema, and in its metadata what is left of the definition.
fn tool(mut fields: Fields, schema: Option<Map<String, Value>>) -> Result<Draft, Fault> {
    let name = fields.required_text("name")?;
    let mut item = begin(Kind::Tool, &name, &mut fields)?;
    item.args_schema = schema.map(|members| std::sync::Arc::new(Value::Object(members)));
    settle_safety(&mut item, Safety::Undeclared);
    item.metadata = fields.rest().collect::<BTreeMap<_, _>>();
    Ok(Draft::of(item))
}

/// Takes out a member with members of its own, and puts what stands beside it among these: the definition itself.
fn unwrap(mut fields: Fields, key: &str) -> Result<Fields, Fault> {
    let mut inner = fields.object(key)?.unwrap_or_default();
    for (key, value) in fields.rest() {
        inner.entry(key).or_insert(value);
    }
    Fields::new(Value::Object(inner))
}

/// What a document says about its server, when that is short: it stands with every tool.
fn blurb(text: &str) -> Option<String> {
    const LONGEST: usize = 500;
    let first = text.trim().split("\n\n").next().unwrap_or("").trim();
    (!first.is_empty() && first.len() <= LONGEST).then(|| first.to_owned())
}

fn is_object(members: &Map<String, Value>, key: &str) -> bool {
    members.get(key).is_some_and(Value::is_object)
}

fn is_text(members: &Map<String, Value>, key: &str) -> bool {
    members.get(key).is_some_and(Value::is_string)
}
