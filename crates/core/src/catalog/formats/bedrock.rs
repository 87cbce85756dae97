//! The form of Bedrock's Converse: `{"toolSpec": {"name": …, "inputSchema": {"json": …}}}`.

use serde_json::{Map, Value};

use super::{is_object, tool, unwrap};
use crate::catalog::Fault;
use crate::catalog::load::{Draft, Fields};

const WRAPPER: &str = "toolSpec";

pub(super) fn is(members: &Map<String, Value>) -> bool {
    is_object(members, WRAPPER)
}

pub(super) fn read(fields: Fields) -> Result<Draft, Fault> {
    let mut fields = unwrap(fields, WRAPPER)?;
    let schema = fields.nested("inputSchema")?.object("json")?;
    tool(fields, schema)
}
