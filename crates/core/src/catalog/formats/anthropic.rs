//! Anthropic's form: `{"name": …, "description": …, "input_schema": …}`.

use serde_json::{Map, Value};

use super::openai::described;
use super::schema::of_arguments;
use super::tool;
use crate::catalog::load::{Draft, Fields};
use crate::catalog::{Fault, SelectableItem};

const SCHEMA: &str = "input_schema";
/// Examples of arguments.
pub(super) const EXAMPLES: &str = "input_examples";
/// Where the provider keeps the beginning of a request.
const CACHE: &str = "cache_control";
/// A request with more marks of [`CACHE`] is refused (platform.claude.com, "Prompt caching").
const MOST_CACHE_MARKS: usize = 4;

pub(super) fn is(members: &Map<String, Value>) -> bool {
    members.contains_key(SCHEMA)
}

pub(super) fn read(mut fields: Fields) -> Result<Draft, Fault> {
    let schema = fields.object(SCHEMA)?;
    if fields.get("type").is_some_and(|kind| kind == "custom") {
        fields.take("type");
    }
    tool(fields, schema)
}

pub(super) fn write(item: &SelectableItem, name: &str) -> Value {
    let mut members = described(item, name);
    members.insert(SCHEMA.to_owned(), of_arguments(item));
    members
        .extend(item.metadata.iter().filter(|(key, _)| has_key(key)).map(|(key, value)| (key.clone(), value.clone())));
    Value::Object(members)
}

/// Whether a member of the metadata of an item has a key in this form. `defer_loading` is not kept: it hides a tool
/// from the model until a search tool of the provider finds it, and here the tool was found already.
pub(super) fn has_key(key: &str) -> bool {
    [CACHE, EXAMPLES].contains(&key)
}

/// The list of a request, with the last marks of what is kept where tools of several lists have too many.
pub(super) fn list(mut tools: Vec<Value>) -> Value {
    let marked = tools.iter_mut().rev().filter_map(Value::as_object_mut).filter(|tool| tool.contains_key(CACHE));
    marked.skip(MOST_CACHE_MARKS).for_each(|tool| drop(tool.shift_remove(CACHE)));
    Value::Array(tools)
}
