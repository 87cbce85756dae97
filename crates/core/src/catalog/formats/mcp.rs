//! MCP's form as it is written. Its reader is that of the files that servers list their tools in.

use serde_json::{Map, Value, json};

use super::providers::few;
use super::schema::of_arguments;
use super::{CallNames, ToolFormat, is_object};
use crate::catalog::load::{take_version, version_text};
use crate::catalog::{Catalog, Kind, Safety, SelectableItem, ToolIdParts, parse_tool_id};
use crate::text::counted;

/// Keys that say whose a tool is. The protocol does not have them: whoever asks a server knows it.
const SERVER: [&str; 3] = ["server", "serverDescription", "serverVersion"];

/// The definition as received, or one that says the same.
pub(super) fn write(item: &SelectableItem, name: &str) -> Value {
    let mut members = received(item).unwrap_or_else(|| made(item));
    for key in SERVER {
        members.shift_remove(key);
    }
    members.insert("name".to_owned(), name.into());
    if !members.get("inputSchema").is_some_and(Value::is_object) {
        members.insert("inputSchema".to_owned(), json!({"type": "object"}));
    }
    Value::Object(members)
}

fn received(item: &SelectableItem) -> Option<Map<String, Value>> {
    serde_json::from_str(item.raw.as_ref()?.get()).ok()
}

fn made(item: &SelectableItem) -> Map<String, Value> {
    let mut members = super::openai::described(item, &item.name);
    if item.args_schema.is_some() {
        members.insert("inputSchema".to_owned(), of_arguments(item));
    }
    if let Some(schema) = results(item) {
        members.insert("outputSchema".to_owned(), schema);
    }
    members.extend(beside(item));
    let hint = match item.safety {
        Safety::Undeclared => return members,
        Safety::ReadOnly => "readOnlyHint",
        Safety::Destructive => "destructiveHint",
    };
    let annotations = members.entry("annotations").or_insert_with(|| json!({}));
    annotations[hint] = true.into();
    members
}

/// The schema of results, which has to be one of objects there; `None` where it is not.
fn results(item: &SelectableItem) -> Option<Value> {
    let mut schema = item.output_schema.as_deref()?.clone();
    let members = schema.as_object_mut()?;
    match members.get("type") {
        Some(kind) => (kind == "object").then_some(schema),
        None if is_object(members, "properties") => {
            members.insert("type".to_owned(), "object".into());
            Some(schema)
        }
        None => None,
    }
}

/// Whether what is written of an item has the schema of its results.
pub(super) fn has_results_of(item: &SelectableItem) -> bool {
    item.raw.is_some() || results(item).is_some()
}

/// A note about the tools that are written without the schema of their results.
pub(super) fn no_results<'i>(items: impl Iterator<Item = &'i SelectableItem>) -> Option<String> {
    let without = items.filter(|item| item.output_schema.is_some() && !has_results_of(item));
    let ids: Vec<String> = without.map(|item| item.id.clone()).collect();
    let tools = counted(ids.len(), "tool");
    (!ids.is_empty())
        .then(|| format!("left out the schemas of results of {tools}, which are not objects: {}", few(ids)))
}

/// What the protocol has a key for beside name, description and schemas, of what another form says of an item.
fn beside(item: &SelectableItem) -> Map<String, Value> {
    type Fits = fn(&Value) -> bool;
    const KEYS: [(&str, &str, Fits); 6] = [
        ("title", "title", Value::is_string),
        ("execution", "execution", Value::is_object),
        ("icons", "icons", Value::is_array),
        ("annotations", "annotations", Value::is_object),
        ("_meta", "_meta", Value::is_object),
        ("meta", "_meta", Value::is_object),
    ];
    let said = |(key, of_mcp, fits): (&str, &str, Fits)| {
        let value = item.metadata.get(key).filter(|value| fits(value))?;
        Some((of_mcp.to_owned(), value.clone()))
    };
    KEYS.into_iter().filter_map(said).collect()
}

/// Whether a member of the metadata of an item has a key in the protocol.
pub(super) fn has_key(key: &str) -> bool {
    ["title", "execution", "icons", "annotations", "_meta", "meta", "uri", "mimeType"].contains(&key)
}

/// Whether a resource is one of many: it was listed as a template, or its address has places to fill in, which no
/// address itself has.
#[must_use]
pub fn is_template(item: &SelectableItem) -> bool {
    let has_places = || item.metadata.get("uri").and_then(Value::as_str).is_some_and(|uri| uri.contains('{'));
    let is_listed = |members: Map<String, Value>| members.contains_key("uriTemplate") && !members.contains_key("uri");
    item.kind == Kind::Resource && received(item).map_or_else(has_places, is_listed)
}

/// A whole catalog as the lists of a server, each definition with the name of the server that it is of.
#[must_use]
pub fn listing(catalog: &Catalog) -> Value {
    let names = CallNames::as_they_are();
    let of = |wanted: fn(&SelectableItem) -> bool| -> Vec<Value> {
        let items = catalog.items().iter().filter(|item| wanted(item));
        items.filter_map(|item| member(item, &names)).collect()
    };
    let lists = [
        ("tools", of(|item| item.kind.is_callable())),
        ("resources", of(|item| item.kind == Kind::Resource && !is_template(item))),
        ("resourceTemplates", of(is_template)),
        ("prompts", of(|item| item.kind == Kind::Prompt)),
    ];
    let lists = lists.into_iter().filter(|(name, list)| *name == "tools" || !list.is_empty());
    Value::Object(lists.map(|(name, list)| (name.to_owned(), Value::Array(list))).collect())
}

fn member(item: &SelectableItem, names: &CallNames) -> Option<Value> {
    let mut value = match item.kind {
        Kind::Resource => Value::Object(received(item).unwrap_or_else(|| resource(item))),
        Kind::Prompt => Value::Object(received(item).unwrap_or_else(|| prompt(item))),
        _ => ToolFormat::Mcp.write([item], names)?.as_array_mut()?.pop()?,
    };
    let members = value.as_object_mut()?;
    // What the protocol has no key for is read from these.
    let tags: Vec<&String> = item.tags.iter().filter(|tag| Some(tag.as_str()) != item.safety.tag()).collect();
    if item.raw.is_none() && !tags.is_empty() {
        members.insert("tags".to_owned(), json!(tags));
    }
    // In `_meta` it is a part of the id; beside the name it is not.
    let id = parse_tool_id(&item.id).ok();
    if let Some(version) = id.as_ref().and_then(ToolIdParts::version).filter(|_| meta_version(members).is_none()) {
        let meta = members.entry("_meta").or_insert_with(|| json!({}));
        meta.as_object_mut()?.insert("version".to_owned(), version.into());
    }
    let version = item.version.as_ref().filter(|version| said_version(members).as_ref() != Some(*version));
    members.extend(version.map(|version| ("version".to_owned(), version.as_str().into())));
    for (key, text) in SERVER.into_iter().zip([&item.server, &item.server_description, &item.server_version]) {
        if let Some(text) = text {
            members.insert(key.to_owned(), text.as_str().into());
        }
    }
    Some(value)
}

/// The version that a definition gives.
fn said_version(members: &Map<String, Value>) -> Option<String> {
    meta_version(members).or_else(|| version_text(members.get("version")?))
}

fn meta_version(members: &Map<String, Value>) -> Option<String> {
    let of_meta = members.get("_meta").and_then(Value::as_object).cloned();
    of_meta.and_then(|mut meta| take_version(&mut meta))
}

fn resource(item: &SelectableItem) -> Map<String, Value> {
    let uri = item.metadata.get("uri").and_then(Value::as_str).unwrap_or(&item.name);
    let key = if is_template(item) { "uriTemplate" } else { "uri" };
    let mut members = Map::from_iter([(key.to_owned(), uri.into())]);
    members.extend(super::openai::described(item, &item.name));
    members.extend(beside(item));
    members.extend(item.metadata.get("mimeType").map(|kind| ("mimeType".to_owned(), kind.clone())));
    members
}

fn prompt(item: &SelectableItem) -> Map<String, Value> {
    let mut members = super::openai::described(item, &item.name);
    members.extend(beside(item));
    let schema = item.args_schema.as_deref();
    let required = schema.and_then(|schema| schema.get("required")?.as_array()).map(Vec::as_slice).unwrap_or_default();
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object()).into_iter().flatten();
    let arguments: Vec<Value> = properties
        .map(|(name, property)| {
            let mut argument = json!({"name": name});
            if let Some(description) = property.get("description") {
                argument["description"] = description.clone();
            }
            if required.iter().any(|required| required == name.as_str()) {
                argument["required"] = true.into();
            }
            argument
        })
        .collect();
    if !arguments.is_empty() {
        members.insert("arguments".to_owned(), arguments.into());
    }
    members
}
