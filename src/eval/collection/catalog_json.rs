//! The catalog of a collection: an array of MCP tools, each with the key `server` where it has one.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::catalog::{Catalog, CatalogError, Safety, SelectableItem};

use super::Source;

/// What identifies a tool in the array.
#[derive(Deserialize)]
struct Key {
    name: String,
    server: Option<String>,
}

/// Item numbers in the order of the array; in id order when the text is no array of tools.
pub(super) fn file_order(bytes: &[u8], catalog: &Catalog) -> Vec<u32> {
    let numbers: BTreeMap<(Option<&str>, &str), u32> =
        catalog.items().iter().zip(0..).map(|(item, n)| ((item.server.as_deref(), item.name.as_str()), n)).collect();
    let keys: Vec<Key> = serde_json::from_slice(bytes).unwrap_or_default();
    let order: Vec<u32> =
        keys.iter().filter_map(|key| numbers.get(&(key.server.as_deref(), key.name.as_str())).copied()).collect();
    if order.len() == catalog.len() { order } else { numbers.into_values().collect() }
}

/// A stand-in for the loader of the catalog room, to be replaced by a call to it.
pub(super) fn read_catalog(source: Source) -> Result<Catalog, CatalogError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Tool {
        name: String,
        #[serde(default)]
        description: String,
        input_schema: Option<Value>,
        #[serde(default)]
        annotations: BTreeMap<String, Value>,
        #[serde(default)]
        tags: Vec<String>,
        server: Option<String>,
        server_description: Option<String>,
    }
    let refuse = |place: String, error: &serde_json::Error| CatalogError::Parse {
        path: source.path.to_owned(),
        place,
        reason: error.to_string(),
    };
    let tools: Vec<&RawValue> = serde_json::from_slice(source.bytes).map_err(|e| refuse("array".to_owned(), &e))?;
    let mut items = Vec::with_capacity(tools.len());
    for (index, raw) in tools.into_iter().enumerate() {
        let tool: Tool = serde_json::from_str(raw.get()).map_err(|e| refuse(format!("tool {index}"), &e))?;
        let namespace = tool.server.clone().unwrap_or_else(|| "tools".to_owned());
        let hint = |key: &str| tool.annotations.get(key) == Some(&Value::Bool(true));
        let mut item =
            SelectableItem::tool(&format!("{namespace}:{}", tool.name), &namespace, &tool.name, &tool.description);
        item.safety = match (hint("destructiveHint"), hint("readOnlyHint")) {
            (true, _) => Safety::Destructive,
            (false, true) => Safety::ReadOnly,
            (false, false) => Safety::Undeclared,
        };
        item.side_effects = item.safety != Safety::ReadOnly;
        item.server = tool.server;
        item.server_description = tool.server_description;
        item.tags = tool.tags;
        item.args_schema = tool.input_schema.map(Arc::new);
        item.raw = Some(Arc::from(raw.to_owned()));
        items.push(item);
    }
    Catalog::new(items)
}
