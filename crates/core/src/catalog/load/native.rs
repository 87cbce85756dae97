//! The native form: every field of an item, in a file that a person can write and a program can write back.
//!
//! Unknown fields are refused here, unlike in MCP definitions: this format is ours, so an unknown field is a
//! misspelt one.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::{Fault, Kind, Safety, SelectableItem};
use super::assemble::{Draft, GivenId};
use super::fields::version_text;
use super::mcp::settle_safety;

/// The number of the format; files with another number are refused.
pub(super) const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct File {
    schema: u32,
    items: Vec<Item>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default)]
    kind: Kind,
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_version: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    args_schema: Option<Arc<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_schema: Option<Arc<Value>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    examples: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    constraints: BTreeMap<String, Value>,
    /// `None` means that it follows from the safety class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    side_effects: Option<bool>,
    #[serde(default)]
    safety: Safety,
    #[serde(default)]
    cost_hint: f64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    provides: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    requires: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, Value>,
}

pub(super) fn item(value: Value) -> Result<Draft, Fault> {
    if !value.is_object() {
        return Err(Fault::new("expected an object"));
    }
    let wire: Item = serde_json::from_value(value).map_err(|error| Fault::new(error.to_string()))?;
    check(&wire)?;
    let id = wire.id.as_deref().map(|id| GivenId::check(id, wire.kind, wire.namespace.as_deref())).transpose()?;
    let mut item = SelectableItem {
        id: String::new(),
        kind: wire.kind,
        name: wire.name,
        namespace: String::new(),
        // With an id, the namespace is canonical and no longer the name of the server.
        server: wire.server.or_else(|| wire.namespace.clone().filter(|_| id.is_none())),
        server_description: wire.server_description,
        version: wire.version.filter(|version| !version.trim().is_empty()),
        server_version: wire.server_version.filter(|version| !version.trim().is_empty()),
        description: wire.description,
        tags: wire.tags,
        args_schema: wire.args_schema,
        output_schema: wire.output_schema,
        safety: Safety::Undeclared,
        side_effects: true,
        cost_hint: wire.cost_hint,
        examples: wire.examples,
        constraints: wire.constraints,
        depends_on: wire.depends_on,
        provides: wire.provides,
        requires: wire.requires,
        metadata: wire.metadata,
        raw: None,
    };
    settle_safety(&mut item, wire.safety);
    item.side_effects = wire.side_effects.unwrap_or(match item.kind {
        Kind::Resource | Kind::Prompt => false,
        Kind::Tool | Kind::Agent | Kind::Skill | Kind::Internal => item.safety != Safety::ReadOnly,
    });
    Ok(Draft { server: wire.namespace.or_else(|| item.server.clone()), item, version: None, id })
}

fn check(wire: &Item) -> Result<(), Fault> {
    if wire.name.trim().is_empty() {
        return Err(Fault::new("`name` is empty"));
    }
    if !wire.cost_hint.is_finite() || wire.cost_hint < 0.0 {
        let found = wire.cost_hint;
        return Err(Fault::new(format!("`cost_hint` must be a finite number of at least 0, not {found}")));
    }
    for (key, schema) in [("args_schema", &wire.args_schema), ("output_schema", &wire.output_schema)] {
        if schema.as_ref().is_some_and(|schema| !schema.is_object()) {
            return Err(Fault::new(format!("`{key}` must be an object")));
        }
    }
    Ok(())
}

pub(super) fn to_json(items: &[SelectableItem]) -> String {
    let file = File { schema: SCHEMA, items: items.iter().map(wire).collect() };
    // Strings, finite numbers and JSON values always serialise.
    let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
    text.push('\n');
    text
}

fn wire(item: &SelectableItem) -> Item {
    Item {
        id: Some(item.id.clone()),
        kind: item.kind,
        name: item.name.clone(),
        description: item.description.clone(),
        namespace: Some(item.namespace.clone()),
        server: item.server.clone(),
        server_description: item.server_description.clone(),
        version: item.version.clone(),
        server_version: item.server_version.clone(),
        tags: item.tags.clone(),
        args_schema: item.args_schema.clone(),
        output_schema: item.output_schema.clone(),
        examples: item.examples.clone(),
        constraints: item.constraints.clone(),
        side_effects: Some(item.side_effects),
        safety: item.safety,
        cost_hint: item.cost_hint,
        depends_on: item.depends_on.clone(),
        provides: item.provides.clone(),
        requires: item.requires.clone(),
        metadata: all_metadata(item),
    }
}

/// Members of an MCP definition that an item has fields for.
pub(in crate::catalog) const FIELDS: [&str; 10] = [
    "name",
    "description",
    "inputSchema",
    "outputSchema",
    "arguments",
    "uri",
    "server",
    "serverDescription",
    "tags",
    "category",
];

/// Whether a member of a definition says nothing but a version that the item has a field for.
pub(in crate::catalog) fn is_version_of(item: &SelectableItem, key: &str, value: &Value) -> bool {
    let of_item = match key {
        "version" => &item.version,
        "serverVersion" => &item.server_version,
        _ => return false,
    };
    of_item.is_some() && version_text(value) == *of_item
}

/// The metadata of an item, with what its definition as received says beside its fields: title, annotations, `_meta`.
pub(in crate::catalog) fn all_metadata(item: &SelectableItem) -> BTreeMap<String, Value> {
    let mut metadata = item.metadata.clone();
    let received = item.raw.as_ref().and_then(|raw| serde_json::from_str::<Map<String, Value>>(raw.get()).ok());
    for (key, value) in received.into_iter().flatten() {
        // The address of a template is kept as that of a resource.
        let is_kept = FIELDS.contains(&key.as_str()) || key == "uriTemplate" || is_version_of(item, &key, &value);
        if !is_kept && !value.is_null() {
            metadata.entry(key).or_insert(value);
        }
    }
    metadata
}
