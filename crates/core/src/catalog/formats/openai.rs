//! OpenAI's two forms, and bare functions.

use serde_json::{Map, Value, json};

use super::schema::{is_schema, of_arguments};
use super::{Part, blurb, is_object, is_text, name_of, tool, unwrap};
use crate::catalog::load::{Draft, Fields, Hints, shortened, take_hints};
use crate::catalog::{Fault, SelectableItem};

/// Whether a strict schema was asked for: the schema is then made for it.
pub(super) const STRICT: &str = "strict";

/// `{"type": "function", "function": {"name": …, "parameters": …}}`, and `custom`, whose argument is a text.
pub(super) fn is_chat(members: &Map<String, Value>) -> bool {
    let custom = members.get("type").is_some_and(|kind| kind == "custom");
    is_object(members, "function") || custom && is_object(members, "custom")
}

pub(super) fn read_chat(fields: Fields) -> Result<Draft, Fault> {
    let key = if fields.has("function") { "function" } else { "custom" };
    read_function(unwrap(fields, key)?)
}

/// `{"type": "function", "name": …, "parameters": …}`.
pub(super) fn is_responses(members: &Map<String, Value>) -> bool {
    members.get("type").is_some_and(|kind| kind == "function" || kind == "custom") && is_text(members, "name")
}

pub(super) fn read_responses(fields: Fields) -> Result<Draft, Fault> {
    read_function(fields)
}

/// `{"type": "namespace", "name": …, "tools": […]}`: functions that belong together, as of one server.
pub(super) fn is_namespace(members: &Map<String, Value>) -> bool {
    members.get("type").is_some_and(|kind| kind == "namespace") && members.get("tools").is_some_and(Value::is_array)
}

pub(super) fn read_namespace(members: Map<String, Value>) -> Result<Vec<Part>, Fault> {
    of_server(members, "name", read_function)
}

/// `{"type": "mcp_list_tools", "server_label": …, "tools": […]}`: what a response says of the tools of an MCP server.
pub(super) fn is_server(members: &Map<String, Value>) -> bool {
    members.get("type").is_some_and(|kind| kind == "mcp_list_tools")
        && members.get("tools").is_some_and(Value::is_array)
}

pub(super) fn read_server(members: Map<String, Value>) -> Result<Vec<Part>, Fault> {
    of_server(members, "server_label", read_listed)
}

/// A tool that a response lists: `{"name": …, "input_schema": …, "annotations": {"read_only": …}}`.
fn read_listed(mut fields: Fields) -> Result<Draft, Fault> {
    let schema = fields.object("input_schema")?;
    let mut draft = tool(fields, schema)?;
    let says =
        |key: &str| draft.item.metadata.get("annotations").and_then(|said| said.get(key)) == Some(&Value::Bool(true));
    let said = Hints { destructive: says("destructiveHint"), read_only: says("read_only") || says("readOnlyHint") };
    take_hints(&mut draft.item, said);
    Ok(draft)
}

/// The tools in the list of a server, whose name is under `key`.
fn of_server(
    members: Map<String, Value>,
    key: &str,
    read: fn(Fields) -> Result<Draft, Fault>,
) -> Result<Vec<Part>, Fault> {
    let mut server = Fields::new(Value::Object(members))?;
    let name = shortened(&server.required_text(key)?);
    let description = server.nonempty_text("description")?.as_deref().and_then(blurb);
    let function = |value: Value| {
        let mut item = Fields::new(value).and_then(read)?.item;
        item.server = Some(name.clone());
        item.server_description.clone_from(&description);
        Ok(Draft::of(item))
    };
    let parts = server.list("tools")?.into_iter().enumerate().map(|(index, value)| Part {
        inside: format!(".tools[{index}]"),
        name: name_of(&value).to_owned(),
        draft: function(value),
    });
    Ok(parts.collect())
}

/// The JSON Schema of an object, as Pydantic prints it of a class: its title is the name of the tool.
pub(super) fn is_named_schema(members: &Map<String, Value>) -> bool {
    members.get("type").is_some_and(|kind| kind == "object")
        && members.get("title").and_then(Value::as_str).is_some_and(|title| !title.trim().is_empty())
        && is_object(members, "properties")
        && !members.contains_key("name")
}

pub(super) fn read_named_schema(fields: Fields) -> Result<Draft, Fault> {
    let (about, schema): (Map<String, Value>, Map<String, Value>) =
        fields.rest().partition(|(key, _)| ["title", "description"].contains(&key.as_str()));
    let mut about = Fields::new(Value::Object(about))?;
    let name = about.required_text("title")?;
    let description = about.text("description")?.unwrap_or_default();
    tool(Fields::new(json!({"name": name, "description": description}))?, Some(schema))
}

/// `{"name": …, "parameters": …}`, where the parameters are a schema and no list of one's own.
pub(super) fn is_function(members: &Map<String, Value>) -> bool {
    members.get("parameters").is_some_and(is_schema)
}

pub(super) fn read_function(mut fields: Fields) -> Result<Draft, Fault> {
    let schema = fields.object("parameters")?;
    if fields.get("type").is_some_and(|kind| kind == "function") {
        fields.take("type");
    }
    tool(fields, schema)
}

/// Whether a member of the metadata of an item has a key in these forms.
pub(super) fn has_key(key: &str) -> bool {
    key == STRICT
}

pub(super) fn write_chat(item: &SelectableItem, name: &str) -> Value {
    let mut function = described(item, name);
    if item.args_schema.is_some() {
        function.insert("parameters".to_owned(), parameters(item));
    }
    if let Some(strict) = item.metadata.get(STRICT).filter(|strict| strict.is_boolean()) {
        function.insert(STRICT.to_owned(), strict.clone());
    }
    json!({"type": "function", "function": function})
}

pub(super) fn write_responses(item: &SelectableItem, name: &str) -> Value {
    let mut function = Map::from_iter([("type".to_owned(), "function".into())]);
    function.extend(described(item, name));
    function.insert("parameters".to_owned(), parameters(item));
    // Where nothing is said, a schema is strict there, and most schemas are not made for it.
    let strict = item.metadata.get(STRICT).and_then(Value::as_bool).unwrap_or(false);
    function.insert(STRICT.to_owned(), strict.into());
    Value::Object(function)
}

/// The schema of arguments with its `properties`, without which it is refused ("object schema missing properties"); of
/// inner objects, they are not asked for.
fn parameters(item: &SelectableItem) -> Value {
    let mut schema = of_arguments(item);
    if let Some(members) = schema.as_object_mut() {
        members.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// Name and, where there is one, description.
pub(super) fn described(item: &SelectableItem, name: &str) -> Map<String, Value> {
    let mut members = Map::from_iter([("name".to_owned(), name.into())]);
    if !item.description.is_empty() {
        members.insert("description".to_owned(), item.description.as_str().into());
    }
    members
}
