//! The catalogs of the Python package `contextweaver`: a bare list of items with `id` and `kind`.
//!
//! Its ids have no grammar, so an item gets an id of ours and keeps that one in its metadata, with what refers to the ids of
//! others.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{is_text, tool};
use crate::catalog::load::{Draft, Fields, shortened};
use crate::catalog::{Fault, Kind};

pub(super) fn is(members: &Map<String, Value>) -> bool {
    ["id", "kind", "name"].iter().all(|key| is_text(members, key)) && !members.contains_key("label")
}

pub(super) fn read(mut fields: Fields) -> Result<Draft, Fault> {
    let kind = fields.required_text("kind")?;
    let schema = |schema: Map<String, Value>| Some(schema).filter(|schema| !schema.is_empty());
    let arguments = fields.object("args_schema")?.and_then(schema);
    let result = fields.object("output_schema")?.and_then(schema);
    let server = fields.nonempty_text("namespace")?;
    let (examples, provides, requires) =
        (fields.texts("examples")?, fields.texts("provides")?, fields.texts("requires")?);
    let constraints = fields.object("constraints")?.unwrap_or_default();
    let said = fields.has("side_effects");
    let side_effects = fields.flag("side_effects")?;
    let cost_hint = match fields.take("cost_hint") {
        None => 0.0,
        Some(cost) => cost.as_f64().filter(|cost| *cost >= 0.0).ok_or_else(|| {
            Fault::new(format!("`cost_hint` must be a number of at least 0, not {}", shortened(&cost.to_string())))
        })?,
    };
    let metadata = fields.object("metadata")?.unwrap_or_default();
    let mut draft = tool(fields, arguments)?;
    let item = &mut draft.item;
    item.kind = match kind.as_str() {
        "tool" => Kind::Tool,
        "agent" => Kind::Agent,
        "skill" => Kind::Skill,
        "resource" => Kind::Resource,
        "prompt" => Kind::Prompt,
        "internal" => Kind::Internal,
        // Several steps that something else takes: called as a tool is.
        "flow" => {
            item.metadata.insert("kind".to_owned(), "flow".into());
            Kind::Tool
        }
        other => {
            let problem = format!("unknown `kind` `{}`", shortened(other));
            let fix = "use tool, agent, skill, flow, resource, prompt or internal";
            return Err(Fault::new(problem).with_fix(fix));
        }
    };
    item.output_schema = result.map(|schema| Arc::new(Value::Object(schema)));
    item.server = server.or(item.server.take());
    item.side_effects = if said { side_effects } else { item.side_effects };
    item.cost_hint = cost_hint;
    item.examples = examples;
    item.constraints = constraints.into_iter().collect();
    item.provides = provides;
    item.requires = requires;
    for (key, value) in metadata {
        item.metadata.entry(key).or_insert(value);
    }
    Ok(Draft::of(draft.item))
}
