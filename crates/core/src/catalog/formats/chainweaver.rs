//! Flows of ChainWeaver: a flow is a tool that is made of steps, and each step calls a tool or another flow.
//!
//! A flow comes as a file of its own (`type` is `Flow` or `DAGFlow`), in an export (`{"flows": […]}`), or as a
//! `CompiledFlow` of `weaver-spec` (`flow_id`). An export may hold the schemas of arguments and results; the others name
//! classes of a Python program, which are not there. The arguments are then what the first steps look up before any other
//! step can have given it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Part, is_text, name_of, tool};
use crate::catalog::load::{Draft, Fields, settle_safety, shortened};
use crate::catalog::tool_id::version_in_id;
use crate::catalog::{Fault, Safety, describe};

/// The server of all flows, and the tag that tells them from other tools.
const SERVER: &str = "chainweaver";
const TAG: &str = "flow";

/// The types of a flow: its steps run in their order, or as their `depends_on` says.
const LINE: &str = "Flow";
const GRAPH: &str = "DAGFlow";

/// The version of the form that is read, up to its first dot.
const VERSION: &str = "1";

/// ChainWeaver refuses a flow with more steps.
const MOST_STEPS: usize = 1_000;

/// A flow, wherever it comes from, that says itself what it is.
pub(super) fn is(members: &Map<String, Value>) -> bool {
    let typed = members.get("type").is_some_and(|kind| kind == LINE || kind == GRAPH);
    let step = |step: &Value| ["tool_name", "flow_name"].iter().any(|key| step.get(key).is_some_and(Value::is_string));
    let steps = members.get("steps").and_then(Value::as_array).is_some_and(|steps| steps.iter().any(step));
    typed || steps || is_text(members, "flow_id") && !members.contains_key("inputSchema")
}

/// An export: a list of flows, which may have nothing but an id and their place in it to tell what they are. Other programs
/// export what they call flows too: drawings, with what is drawn in these members.
pub(super) fn is_export(members: &Map<String, Value>) -> bool {
    let flow = |flow: &Value| {
        flow.as_object().is_some_and(|flow| {
            is(flow) || is_text(flow, "id") && !["data", "nodes"].iter().any(|key| flow.contains_key(*key))
        })
    };
    members.get("flows").and_then(Value::as_array).is_some_and(|flows| flows.iter().any(flow))
}

pub(super) fn read_export(members: Map<String, Value>) -> Result<Vec<Part>, Fault> {
    let flows = Fields::new(Value::Object(members))?.list("flows")?;
    let part = |(index, flow): (usize, Value)| Part {
        inside: format!(".flows[{index}]"),
        name: name_of(&flow).to_owned(),
        draft: Fields::new(flow).and_then(read),
    };
    Ok(flows.into_iter().enumerate().map(part).collect())
}

pub(super) fn read(mut fields: Fields) -> Result<Draft, Fault> {
    let id = match fields.nonempty_text("flow_id")? {
        None => fields.nonempty_text("id")?,
        id => id,
    };
    check_version(&fields)?;
    let steps = steps(&fields, id.is_some())?;
    let mut tags = vec![TAG.to_owned()];
    let state = fields.get("status").and_then(Value::as_str);
    tags.extend(
        state.filter(|state| ["needs_review", "disabled"].contains(state)).map(|state| state.replace('_', "-")),
    );
    let safety = fields.get("safety").map_or(Safety::Undeclared, declared);
    let arguments = schema(&mut fields, ["input_schema", "inputs"])?;
    let results = schema(&mut fields, ["output_schema", "outputs"])?;
    if let Some(id) = id {
        fields = named(fields, id)?;
    }
    let mut draft = tool(fields, arguments.or_else(|| steps.schema()))?;
    let item = &mut draft.item;
    item.server.get_or_insert_with(|| SERVER.to_owned());
    item.tags.append(&mut tags);
    settle_safety(item, safety);
    item.side_effects = item.safety != Safety::ReadOnly;
    item.output_schema = results.map(|schema| Arc::new(Value::Object(schema)));
    item.requires = steps.required;
    item.provides = steps.given;
    item.metadata.insert("kind".to_owned(), TAG.into());
    // A flow is run by its name and version, and several versions may stand side by side, also where ids cannot hold a
    // character of them, such as the `+` of a build.
    let version = item.version.as_deref().map(version_in_id);
    Ok(Draft::of(draft.item).with_version(version))
}

/// The schema under the first of these keys that is there; an empty one says nothing.
fn schema(fields: &mut Fields, [key, other]: [&str; 2]) -> Result<Option<Map<String, Value>>, Fault> {
    let schema = if fields.has(key) { fields.object(key)? } else { fields.object(other)? };
    Ok(schema.filter(|schema| !schema.is_empty()))
}

/// An exported flow under its id, by which it is run; what people call it comes before the description.
fn named(mut fields: Fields, id: String) -> Result<Fields, Fault> {
    let label = fields.nonempty_text("name")?.filter(|label| *label != id);
    let description = fields.text("description")?.unwrap_or_default();
    let description = match label {
        Some(label) if description.trim().is_empty() => label,
        Some(label) => format!("{label}: {description}"),
        None => description,
    };
    let mut members: Map<String, Value> = fields.rest().collect();
    members.insert("name".to_owned(), id.into());
    members.insert("description".to_owned(), description.into());
    Fields::new(Value::Object(members))
}

fn check_version(fields: &Fields) -> Result<(), Fault> {
    let version = match fields.get("format_version") {
        None => return Ok(()),
        Some(Value::String(version)) => version.clone(),
        Some(version) => version.to_string(),
    };
    match version.split('.').next() {
        Some(VERSION) => Ok(()),
        _ => Err(Fault::new(format!("a flow of `format_version` {}", shortened(&version)))
            .with_fix(format!("save it with a ChainWeaver that writes version {VERSION}"))),
    }
}

/// What a flow declares about its danger.
fn declared(safety: &Value) -> Safety {
    let read_only = safety.get("read_only").and_then(Value::as_bool);
    match (safety.get("side_effects").and_then(Value::as_str), read_only) {
        (Some("destructive"), _) => Safety::Destructive,
        (Some("none" | "read"), None | Some(true)) | (None, Some(true)) => Safety::ReadOnly,
        _ => Safety::Undeclared,
    }
}

/// What the steps of a flow say about the flow.
#[derive(Default)]
struct Steps {
    /// What they look up in the input of the flow.
    arguments: Vec<String>,
    /// Those of these without which the flow fails.
    required: Vec<String>,
    /// The names under which they leave results, where they choose them.
    given: Vec<String>,
}

impl Steps {
    /// The arguments as a schema without types, which the steps do not say.
    fn schema(&self) -> Option<Map<String, Value>> {
        let any = |name: &String| (name.clone(), json!({}));
        let properties: Map<String, Value> = self.arguments.iter().map(any).collect();
        let mut schema =
            Map::from_iter([("type".to_owned(), "object".into()), ("properties".to_owned(), json!(properties))]);
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), json!(self.required));
        }
        (!self.arguments.is_empty()).then_some(schema)
    }
}

/// A step, as far as it says something about the flow.
struct Step {
    id: String,
    /// The steps that come before it.
    after: Vec<String>,
    /// What it looks up.
    reads: Vec<String>,
    /// What it leaves; `None` where that is whatever its tool returns.
    gives: Option<Vec<String>>,
    /// Whether the flow fails with it.
    must_succeed: bool,
}

/// Reads the steps. An exported flow (`exported`) may have none.
fn steps(fields: &Fields, exported: bool) -> Result<Steps, Fault> {
    let kind = fields.get("type").and_then(Value::as_str);
    let is_graph = match (kind, fields.has("type")) {
        (Some(LINE), _) => false,
        (Some(GRAPH), _) => true,
        (None, false) if exported => false,
        _ => {
            let problem = match kind {
                Some(kind) => format!("unknown `type` `{}`", shortened(kind)),
                None => "`type` is missing, or is not a string".to_owned(),
            };
            let fix = format!("write `{LINE}`, or `{GRAPH}` for steps with `depends_on`");
            return Err(Fault::new(problem).with_fix(fix));
        }
    };
    let values = match fields.get("steps") {
        Some(Value::Array(steps)) if !steps.is_empty() => steps,
        None if exported => return Ok(Steps::default()),
        None | Some(Value::Array(_)) => return Err(Fault::new("`steps` is missing or empty")),
        Some(other) => return Err(Fault::new(format!("`steps` must be an array, not {}", describe(other)))),
    };
    if values.len() > MOST_STEPS {
        let problem = format!("it has {} steps, over the limit of {MOST_STEPS}", values.len());
        return Err(Fault::new(problem).with_fix("move some of them into a flow of their own"));
    }
    let read = |(index, value): (usize, &Value)| {
        let place = |fault: Fault| Fault { problem: format!("steps[{index}]: {}", fault.problem), ..fault };
        step(value, is_graph).map_err(place)
    };
    let steps: Vec<Step> = values.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    if is_graph {
        check_graph(&steps)?;
    }
    // What is injected when the flow runs is no argument.
    let injected = fields.get("dynamic_params").and_then(Value::as_array).into_iter().flatten();
    let injected: BTreeSet<&str> = injected.filter_map(Value::as_str).collect();
    Ok(about(&steps, is_graph, &injected))
}

fn step(value: &Value, is_graph: bool) -> Result<Step, Fault> {
    let mut fields = Fields::new(value.clone())?;
    let (tool, flow) = (fields.nonempty_text("tool_name")?, fields.nonempty_text("flow_name")?);
    let delegated = is_graph && fields.text("step_type")?.as_deref() == Some("capability");
    let capability = fields.nonempty_text("capability_id")?.filter(|_| delegated);
    let named = [&tool, &flow, &capability].into_iter().flatten().count();
    if named != 1 {
        let what = if delegated { "`capability_id`" } else { "`tool_name` or `flow_name`" };
        return Err(Fault::new(format!("a step needs one {what}, and has {named}")));
    }
    let id = if is_graph { fields.required_text("step_id")? } else { String::new() };
    let after = if is_graph { fields.texts("depends_on")? } else { Vec::new() };
    let reads =
        fields.object("input_mapping")?.unwrap_or_default().into_iter().filter_map(|(_, value)| looked_up(&value));
    let reads = reads.collect();
    let gives = fields.object("output_mapping")?.map(|names| names.into_iter().map(|(name, _)| name).collect());
    let must_succeed = fields.text("on_error")?.is_none_or(|what| what == "fail");
    Ok(Step { id, after, reads, gives, must_succeed })
}

/// The name that a value of a mapping looks up: itself, or the first part of a JSON pointer. What is no text is a constant.
fn looked_up(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let name = match text.strip_prefix('/') {
        Some(pointer) => pointer.split('/').next().unwrap_or_default().replace("~1", "/").replace("~0", "~"),
        None => text.to_owned(),
    };
    (!name.is_empty()).then_some(name)
}

/// Refuses steps that cannot run in any order.
fn check_graph(steps: &[Step]) -> Result<(), Fault> {
    let mut places = BTreeMap::new();
    for (place, step) in steps.iter().enumerate() {
        if places.insert(step.id.as_str(), place).is_some() {
            let problem = format!("two steps have the `step_id` `{}`", shortened(&step.id));
            return Err(Fault::new(problem).with_fix("give each its own"));
        }
    }
    // How many steps each waits for, and which wait for it.
    let mut waits = vec![0_usize; steps.len()];
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for (place, step) in steps.iter().enumerate() {
        for earlier in &step.after {
            let Some(earlier) = places.get(earlier.as_str()) else {
                let (step, earlier) = (shortened(&step.id), shortened(earlier));
                return Err(Fault::new(format!("step `{step}` depends on `{earlier}`, which is no step of the flow")));
            };
            behind[*earlier].push(place);
            waits[place] += 1;
        }
    }
    let mut ready: Vec<usize> = (0..steps.len()).filter(|place| waits[*place] == 0).collect();
    let mut done = 0;
    while let Some(place) = ready.pop() {
        done += 1;
        for next in &behind[place] {
            waits[*next] -= 1;
            if waits[*next] == 0 {
                ready.push(*next);
            }
        }
    }
    let problem = "its steps wait for each other, so none of them can be the first";
    if done == steps.len() { Ok(()) } else { Err(Fault::new(problem).with_fix("correct `depends_on`")) }
}

/// What a lookup finds is known to be an argument for steps that no other comes before, and in a line as long as each step
/// says what it leaves.
fn about(steps: &[Step], is_graph: bool, injected: &BTreeSet<&str>) -> Steps {
    let mut found = Steps::default();
    // What comes from elsewhere: it is injected, or an earlier step has left it.
    let mut elsewhere: BTreeSet<&str> = injected.clone();
    let (mut seen, mut needed) = (BTreeSet::new(), BTreeSet::new());
    for step in steps.iter().filter(|step| step.after.is_empty()) {
        for name in step.reads.iter().map(String::as_str).filter(|name| !elsewhere.contains(name)) {
            if seen.insert(name) {
                found.arguments.push(name.to_owned());
            }
            if step.must_succeed && needed.insert(name) {
                found.required.push(name.to_owned());
            }
        }
        match &step.gives {
            _ if is_graph => {}
            Some(names) => elsewhere.extend(names.iter().map(String::as_str)),
            None => break,
        }
    }
    let mut given = BTreeSet::new();
    let names = steps.iter().flat_map(|step| step.gives.iter().flatten());
    found.given.extend(names.filter(|name| given.insert(name.as_str())).cloned());
    found
}
