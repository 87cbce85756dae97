//! What `fastmcp inspect` writes of a server (`--format fastmcp`): tools, resources, templates and prompts, each with a
//! `key`, and the members of MCP in Python's spelling (`input_schema`, `mime_type`).
//!
//! A template is a resource whose URI has places to fill in. What `--format mcp` writes is MCP's form.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::is_text;
use crate::catalog::load::{Draft, Fields, Hints, begin, begin_prompt, settle_safety, take_hints};
use crate::catalog::{Fault, Kind, Safety, SelectableItem};

const KEY: &str = "key";

/// A tool. What else has a `key` stands in a list of its own: see [`is_member`].
pub(super) fn is(members: &Map<String, Value>) -> bool {
    is_text(members, KEY) && members.contains_key("input_schema")
}

/// Whether an entry of a list of resources or prompts has this form.
pub(in crate::catalog) fn is_member(value: &Value) -> bool {
    const OF_MCP: [&str; 3] = ["mimeType", "_meta", "uriTemplate"];
    value
        .as_object()
        .is_some_and(|members| is_text(members, KEY) && !OF_MCP.iter().any(|key| members.contains_key(*key)))
}

pub(super) fn read(mut fields: Fields) -> Result<Draft, Fault> {
    let name = fields.required_text("name")?;
    let mut item = begin(Kind::Tool, &name, &mut fields)?;
    item.args_schema = fields.object("input_schema")?.map(|schema| Arc::new(Value::Object(schema)));
    item.output_schema = fields.object("output_schema")?.map(|schema| Arc::new(Value::Object(schema)));
    // Version 3 and older write MCP's spelling here.
    let mut annotations = fields.nested("annotations")?;
    // What is denied is not what is left unsaid: MCP takes a tool that says nothing for a destructive one.
    let mut denied = Map::new();
    let mut says = |key: &str, of_mcp: &str| {
        let is_said = annotations.has(key) || annotations.has(of_mcp);
        let said = annotations.flag(key)? | annotations.flag(of_mcp)?;
        if is_said && !said {
            denied.insert(of_mcp.to_owned(), false.into());
        }
        Ok(said)
    };
    let destructive = says("destructive_hint", "destructiveHint")?;
    let read_only = says("read_only_hint", "readOnlyHint")?;
    take_hints(&mut item, Hints { destructive, read_only });
    let of_mcp = |key: String| match key.as_str() {
        "idempotent_hint" => "idempotentHint".to_owned(),
        "open_world_hint" => "openWorldHint".to_owned(),
        _ => key,
    };
    let rest: Map<String, Value> = annotations.rest().map(|(key, value)| (of_mcp(key), value)).chain(denied).collect();
    if !rest.is_empty() {
        item.metadata.insert("annotations".to_owned(), Value::Object(rest));
    }
    finish(item, fields)
}

/// A resource, or a template of resources.
pub(in crate::catalog) fn resource(value: Value) -> Result<Draft, Fault> {
    let mut fields = Fields::new(value)?;
    let uri = match fields.nonempty_text("uri_template")? {
        Some(template) => template,
        None => fields.required_text("uri")?,
    };
    let name = fields.nonempty_text("name")?.unwrap_or_else(|| uri.clone());
    let mut item = begin(Kind::Resource, &name, &mut fields)?;
    item.metadata.insert("uri".to_owned(), uri.into());
    item.metadata.extend(fields.nonempty_text("mime_type")?.map(|kind| ("mimeType".to_owned(), kind.into())));
    item.args_schema = fields.object("parameters")?.map(|schema| Arc::new(Value::Object(schema)));
    item.side_effects = false;
    settle_safety(&mut item, Safety::Undeclared);
    finish(item, fields)
}

pub(in crate::catalog) fn prompt(value: Value) -> Result<Draft, Fault> {
    let mut fields = Fields::new(value)?;
    finish(begin_prompt(&mut fields)?, fields)
}

/// The key is kind, name or URI, and version: `tool:add@2.0`. Only the version is said nowhere else.
fn finish(mut item: SelectableItem, mut fields: Fields) -> Result<Draft, Fault> {
    let key = fields.required_text(KEY)?;
    let version = item.version.clone().or_else(|| key.rsplit_once('@').map(|(_, version)| version.to_owned()));
    item.metadata.extend(fields.rest());
    Ok(Draft::of(item).with_version(version))
}
