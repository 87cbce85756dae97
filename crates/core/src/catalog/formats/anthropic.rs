//! Anthropic's form: `{"name": …, "description": …, "input_schema": …}`.

use serde_json::{Map, Value};

use super::openai::{STRICT, described};
use super::providers::few;
use super::schema::of_arguments;
use super::tool;
use crate::catalog::load::{Draft, Fields};
use crate::catalog::{Fault, SelectableItem};
use crate::text::counted;

const SCHEMA: &str = "input_schema";
/// Examples of arguments.
pub(super) const EXAMPLES: &str = "input_examples";
/// Where the provider keeps the beginning of a request.
const CACHE: &str = "cache_control";
/// A request with more marks of [`CACHE`] is refused (platform.claude.com, "Prompt caching").
const MOST_CACHE_MARKS: usize = 4;
/// The longer of the two times for which something is kept. "A ttl='1h' cache_control block must not come after a
/// ttl='5m' cache_control block" (headroomlabs-ai/headroom#2939).
const LONG: &str = "1h";

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
    [CACHE, EXAMPLES, STRICT, "allowed_callers", "eager_input_streaming"].contains(&key)
}

/// The list of a request, and notes about the marks of what is kept that were left out: where tools of several lists
/// have too many, the last ones stay, and of those before one that is kept for longer, none.
pub(super) fn list(mut tools: Vec<Value>) -> (Value, Vec<String>) {
    let is_marked = |tool: &&mut Map<String, Value>| tool.contains_key(CACHE);
    let name = |tool: &Map<String, Value>| tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (mut early, mut many) = (Vec::new(), Vec::new());
    let (mut longer_follows, mut marks) = (false, 0);
    for tool in tools.iter_mut().rev().filter_map(Value::as_object_mut).filter(is_marked) {
        let is_long = tool.get(CACHE).and_then(|mark| mark.get("ttl")).is_some_and(|time| time == LONG);
        if longer_follows && !is_long {
            early.push(name(tool));
        } else if marks == MOST_CACHE_MARKS {
            many.push(name(tool));
        } else {
            (longer_follows, marks) = (longer_follows | is_long, marks + 1);
            continue;
        }
        tool.shift_remove(CACHE);
    }
    let note = |why: &str, mut names: Vec<String>| {
        names.reverse();
        let tools = counted(names.len(), "tool");
        (!names.is_empty()).then(|| format!("left out `{CACHE}` of {tools}, {why}: {}", few(names)))
    };
    let many = note(&format!("as a request has at most {MOST_CACHE_MARKS} of them"), many);
    let early = note("as one that is kept for longer must not come after it", early);
    (Value::Array(tools), early.into_iter().chain(many).collect())
}
