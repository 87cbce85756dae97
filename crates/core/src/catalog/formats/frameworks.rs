//! What programs print of the tools of LangChain, LlamaIndex, smolagents and the Vercel AI SDK, and the form of Cohere's
//! first API, which lists arguments in the same way as smolagents: each by its name, with a type in a word.

use serde_json::{Map, Value, json};

use super::schema::is_schema;
use super::{is_object, is_text, tool, unwrap};
use crate::catalog::Fault;
use crate::catalog::load::{Draft, Fields};

/// A tool of the Vercel AI SDK beside its name in a map, or as its providers get it.
pub(super) fn is_vercel(members: &Map<String, Value>) -> bool {
    let wrapped = |schema: &Value| schema.get("jsonSchema").is_some_and(Value::is_object);
    let typed = members.get("type").is_some_and(|kind| kind == "function") && is_object(members, "inputSchema");
    typed || ["inputSchema", "parameters"].iter().any(|key| members.get(*key).is_some_and(wrapped))
}

/// A tool that a provider runs, as the Vercel AI SDK names it: by an id such as `openai.web_search`, without a schema.
pub(super) fn is_of_provider(members: &Map<String, Value>) -> bool {
    members.get("type").is_some_and(|kind| kind == "provider-defined" || kind == "provider")
        && is_text(members, "id")
        && !["inputSchema", "parameters"].iter().any(|key| is_object(members, key))
}

pub(super) fn read_vercel(mut fields: Fields) -> Result<Draft, Fault> {
    let key = if fields.has("inputSchema") { "inputSchema" } else { "parameters" };
    let mut schema = fields.object(key)?;
    // `jsonSchema(…)` keeps a schema under this key.
    if let Some(inner) = schema.as_mut().and_then(|schema| schema.get_mut("jsonSchema")?.as_object_mut()) {
        schema = Some(std::mem::take(inner));
    }
    if fields.get("type").is_some_and(|kind| kind == "function") {
        fields.take("type");
    }
    tool(fields, schema)
}

/// `args_schema` of `BaseTool`, `args` (its properties alone), or `schema` in JavaScript.
pub(super) fn is_langchain(members: &Map<String, Value>) -> bool {
    let properties = |args: &Value| args.as_object().is_some_and(|args| args.values().all(Value::is_object));
    is_object(members, "args_schema")
        || is_text(members, "name")
            && (members.get("args").is_some_and(properties) || members.get("schema").is_some_and(is_schema))
}

pub(super) fn read_langchain(mut fields: Fields) -> Result<Draft, Fault> {
    for key in ["args_schema", "schema"] {
        if fields.has(key) {
            let schema = fields.object(key)?;
            return tool(fields, schema);
        }
    }
    let properties = fields.object("args")?.map(|properties| {
        // A property that may be left out has a default there.
        let required: Vec<&String> =
            properties.iter().filter(|(_, property)| property.get("default").is_none()).map(|(name, _)| name).collect();
        let required = json!(required);
        Map::from_iter([
            ("type".to_owned(), "object".into()),
            ("properties".to_owned(), Value::Object(properties)),
            ("required".to_owned(), required),
        ])
    });
    tool(fields, properties)
}

/// `ToolMetadata`, alone or under `metadata`, with its schema as `fn_schema` or, as a text, `fn_schema_str`.
pub(super) fn is_llama_index(members: &Map<String, Value>) -> bool {
    let wrapped = |metadata: &Value| metadata.get("name").is_some_and(Value::is_string);
    is_object(members, "fn_schema")
        || is_text(members, "fn_schema_str")
        || !members.contains_key("name") && members.get("metadata").is_some_and(wrapped)
}

pub(super) fn read_llama_index(mut fields: Fields) -> Result<Draft, Fault> {
    if !fields.has("name") && fields.has("metadata") {
        fields = unwrap(fields, "metadata")?;
    }
    let mut schema = None;
    for key in ["fn_schema", "parameters"] {
        schema = if schema.is_some() { schema } else { fields.object(key)? };
    }
    if let Some(text) = fields.text("fn_schema_str")? {
        let wrong = |error| Fault::new(format!("`fn_schema_str` is not a schema: {error}"));
        schema = Some(match schema {
            Some(schema) => schema,
            None => serde_json::from_str(&text).map_err(wrong)?,
        });
    }
    tool(fields, schema)
}

/// `inputs` of a tool of smolagents, which also says what the tool returns.
pub(super) fn is_smolagents(members: &Map<String, Value>) -> bool {
    is_text(members, "output_type") && members.get("inputs").is_some_and(is_arguments)
}

pub(super) fn read_smolagents(mut fields: Fields) -> Result<Draft, Fault> {
    let inputs = fields.object("inputs")?.unwrap_or_default();
    let is_required = |argument: &mut Map<String, Value>| argument.remove("nullable") != Some(Value::Bool(true));
    tool(fields, Some(of_arguments(inputs, is_required)))
}

/// `parameter_definitions` of a tool of Cohere's first API.
pub(super) fn is_cohere(members: &Map<String, Value>) -> bool {
    members.get("parameter_definitions").is_some_and(is_arguments)
}

pub(super) fn read_cohere(mut fields: Fields) -> Result<Draft, Fault> {
    let definitions = fields.object("parameter_definitions")?.unwrap_or_default();
    let is_required = |argument: &mut Map<String, Value>| argument.remove("required") == Some(Value::Bool(true));
    tool(fields, Some(of_arguments(definitions, is_required)))
}

/// Whether these are arguments by their names, each with its type.
fn is_arguments(arguments: &Value) -> bool {
    let typed = |argument: &Value| argument.get("type").is_some_and(|kind| kind.is_string() || kind.is_array());
    arguments.as_object().is_some_and(|arguments| arguments.values().all(typed))
}

/// A schema of arguments that are listed by name. `is_required` takes out of an argument what says so.
fn of_arguments(
    mut arguments: Map<String, Value>,
    is_required: fn(&mut Map<String, Value>) -> bool,
) -> Map<String, Value> {
    let mut required = Vec::new();
    for (name, argument) in &mut arguments {
        let Some(argument) = argument.as_object_mut() else { continue };
        if is_required(argument) {
            required.push(name.clone());
        }
        match argument.get("type").and_then(Value::as_str).map(json_type) {
            Some(Some(kind)) => _ = argument.insert("type".to_owned(), kind.into()),
            // What JSON Schema has no word for may be anything.
            Some(None) => _ = argument.remove("type"),
            None => {}
        }
    }
    Map::from_iter([
        ("type".to_owned(), "object".into()),
        ("properties".to_owned(), Value::Object(arguments)),
        ("required".to_owned(), json!(required)),
    ])
}

/// The type of JSON Schema for a word that names a type in JSON Schema or in Python.
fn json_type(word: &str) -> Option<&'static str> {
    let word = word.trim().to_ascii_lowercase();
    Some(match word.split('[').next().unwrap_or_default() {
        "string" | "str" => "string",
        "integer" | "int" => "integer",
        "number" | "float" => "number",
        "boolean" | "bool" => "boolean",
        "array" | "list" | "tuple" | "set" => "array",
        "object" | "dict" => "object",
        "null" | "none" => "null",
        _ => return None,
    })
}
