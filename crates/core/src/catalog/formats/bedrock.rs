//! The form of Bedrock's Converse: `{"toolSpec": {"name": …, "inputSchema": {"json": …}}}`.

use serde_json::{Map, Value};

use super::{is_object, tool, unwrap};
use crate::catalog::Fault;
use crate::catalog::load::{Draft, Fields, shortened};

const WRAPPER: &str = "toolSpec";

pub(super) fn is(members: &Map<String, Value>) -> bool {
    is_object(members, WRAPPER)
}

/// Why an entry beside the tools is none: where the provider keeps the beginning of a request, and its own tools.
pub(super) fn is_none(members: &Map<String, Value>) -> Option<Fault> {
    match members.iter().next().filter(|_| members.len() == 1)? {
        (key, Value::Object(_)) if key == "cachePoint" => Some(Fault::new("`cachePoint` is a mark and no tool")),
        (key, Value::Object(tool)) if key == "systemTool" => {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or(key);
            Some(Fault::new(format!("`{}` is run by the provider and has no definition", shortened(name))))
        }
        _ => None,
    }
}

pub(super) fn read(fields: Fields) -> Result<Draft, Fault> {
    let mut fields = unwrap(fields, WRAPPER)?;
    let schema = fields.nested("inputSchema")?.object("json")?;
    tool(fields, schema)
}
