//! MCP definitions (`tools/list`, `resources/list`, `prompts/list`) as items.
//!
//! What the protocol does not name is left alone: it stays in the definition as received. Six keys are read beyond
//! the protocol: `server`, `serverDescription`, `tags` and `category`, because public tool collections carry them, and
//! `version` and `serverVersion`.
//! Annotations are what a server says about itself; nothing here is a decision about what may be called.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::tool_id::version_in_id;
use super::super::{Fault, Kind, Safety, SelectableItem};
use super::assemble::Draft;
use super::fields::{Fields, version_text};

pub(in crate::catalog) fn tool(mut fields: Fields) -> Result<Draft, Fault> {
    let mut item = begin(Kind::Tool, &fields.required_text("name")?, &mut fields)?;
    item.args_schema = fields.object("inputSchema")?.map(schema);
    item.output_schema = fields.object("outputSchema")?.map(schema);
    let mut annotations = fields.nested("annotations")?;
    let read_only = annotations.flag("readOnlyHint")?;
    let destructive = annotations.flag("destructiveHint")?;
    take_hints(&mut item, Hints { destructive, read_only });
    finish(item, fields)
}

pub(super) fn resource(value: Value) -> Result<Draft, Fault> {
    addressed(value, URI)
}

/// A template of resources: its URI has places to fill in.
pub(super) fn template(value: Value) -> Result<Draft, Fault> {
    addressed(value, "uriTemplate")
}

/// A resource whose URI is under `key`.
fn addressed(value: Value, key: &str) -> Result<Draft, Fault> {
    let mut fields = Fields::new(value)?;
    let uri = fields.required_text(key)?;
    let name = fields.nonempty_text("name")?.unwrap_or_else(|| uri.clone());
    let mut item = begin(Kind::Resource, &name, &mut fields)?;
    item.metadata.insert(URI.to_owned(), Value::String(uri));
    item.side_effects = false;
    settle_safety(&mut item, Safety::Undeclared);
    finish(item, fields)
}

pub(super) fn prompt(value: Value) -> Result<Draft, Fault> {
    let mut fields = Fields::new(value)?;
    finish(begin_prompt(&mut fields)?, fields)
}

/// What all prompts say of themselves.
pub(in crate::catalog) fn begin_prompt(fields: &mut Fields) -> Result<SelectableItem, Fault> {
    let mut item = begin(Kind::Prompt, &fields.required_text("name")?, fields)?;
    item.args_schema = prompt_schema(fields.list("arguments")?)?;
    item.side_effects = false;
    settle_safety(&mut item, Safety::Undeclared);
    Ok(item)
}

/// The key of [`SelectableItem::metadata`] that holds the URI of a resource.
pub(super) const URI: &str = "uri";

fn schema(members: Map<String, Value>) -> Arc<Value> {
    Arc::new(Value::Object(members))
}

/// What all three kinds share; id and namespace are assigned later.
pub(in crate::catalog) fn begin(kind: Kind, name: &str, fields: &mut Fields) -> Result<SelectableItem, Fault> {
    let mut description = fields.text("description")?.unwrap_or_default();
    if kind == Kind::Tool && description.trim().is_empty() {
        description = title(fields).unwrap_or(description);
    }
    let mut item = SelectableItem::tool("", "", name, &description);
    item.kind = kind;
    item.server = fields.nonempty_text("server")?;
    item.server_description = fields.nonempty_text("serverDescription")?;
    item.version = fields.version("version");
    item.server_version = fields.version("serverVersion");
    item.tags = fields.texts("tags")?;
    item.tags.extend(fields.nonempty_text("category")?);
    Ok(item)
}

/// What a tool is called for people: all that is said of one without a description.
fn title(fields: &Fields) -> Option<String> {
    let of_annotations = || fields.get("annotations").and_then(|annotations| annotations.get("title"));
    let titles = [fields.get("title"), of_annotations()].into_iter().flatten();
    titles.filter_map(Value::as_str).find(|title| !title.trim().is_empty()).map(str::to_owned)
}

fn finish(mut item: SelectableItem, mut fields: Fields) -> Result<Draft, Fault> {
    let mut meta = fields.object("_meta")?.unwrap_or_default();
    let version = meta.get("version").and_then(Value::as_str).map(str::to_owned);
    let of_meta = take_version(&mut meta);
    // Beside the name it is whole where that in an id cannot be.
    let is_whole = |version: &String| of_meta.as_deref().is_none_or(|of_meta| version_in_id(version) == of_meta);
    item.version = item.version.take().filter(is_whole).or(of_meta);
    Ok(Draft::of(item).with_version(version))
}

/// Takes out the version that the `_meta` of a definition gives: its own, or the one that FastMCP writes there.
pub(in crate::catalog) fn take_version(meta: &mut Map<String, Value>) -> Option<String> {
    [None, Some("fastmcp"), Some("_fastmcp")].into_iter().find_map(|of| {
        let members = match of {
            None => &mut *meta,
            Some(key) => meta.get_mut(key)?.as_object_mut()?,
        };
        let version = version_text(members.get("version")?)?;
        members.shift_remove("version");
        let is_empty = members.is_empty();
        if let Some(key) = of.filter(|_| is_empty) {
            meta.shift_remove(key);
        }
        Some(version)
    })
}

/// Settles the safety class of an item from what it declares and from its tags (`destructive` wins), and makes the tags
/// agree with it, sorted and without repeats.
pub(in crate::catalog) fn settle_safety(item: &mut SelectableItem, declared: Safety) {
    let tagged = |safety: Safety| declared == safety || item.tags.iter().any(|tag| Some(tag.as_str()) == safety.tag());
    item.safety =
        [Safety::Destructive, Safety::ReadOnly].into_iter().find(|safety| tagged(*safety)).unwrap_or_default();
    item.tags.retain(|tag| ![Safety::Destructive.tag(), Safety::ReadOnly.tag()].contains(&Some(tag.as_str())));
    item.tags.extend(item.safety.tag().map(str::to_owned));
    item.tags.sort_unstable();
    item.tags.dedup();
}

/// What a definition says of its tool's safety.
#[derive(Clone, Copy)]
pub(in crate::catalog) struct Hints {
    pub(in crate::catalog) destructive: bool,
    pub(in crate::catalog) read_only: bool,
}

/// Takes over what a definition says of its tool's safety.
pub(in crate::catalog) fn take_hints(item: &mut SelectableItem, said: Hints) {
    let declared = match said {
        Hints { destructive: true, .. } => Safety::Destructive,
        Hints { read_only: true, .. } => Safety::ReadOnly,
        Hints { .. } => Safety::Undeclared,
    };
    settle_safety(item, declared);
    item.side_effects = item.safety != Safety::ReadOnly;
}

/// The arguments of a prompt as a JSON Schema, so that they are searched and checked like those of a tool.
fn prompt_schema(arguments: Vec<Value>) -> Result<Option<Arc<Value>>, Fault> {
    if arguments.is_empty() {
        return Ok(None);
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    for argument in arguments {
        let in_arguments = |fault: Fault| Fault { problem: format!("`arguments`: {}", fault.problem), ..fault };
        let mut fields = Fields::new(argument).map_err(in_arguments)?;
        let name = fields.required_text("name").map_err(in_arguments)?;
        let mut property = BTreeMap::from([("type", "string".to_owned())]);
        property.extend(fields.text("description")?.map(|description| ("description", description)));
        if fields.flag("required")? {
            required.push(Value::String(name.clone()));
        }
        if properties.insert(name.clone(), json!(property)).is_some() {
            let fault = Fault::new(format!("`arguments`: two are named `{}`", super::shortened(&name)));
            return Err(fault.with_fix("rename one"));
        }
    }
    Ok(Some(Arc::new(json!({"type": "object", "properties": properties, "required": required}))))
}
