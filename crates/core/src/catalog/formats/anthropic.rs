//! Anthropic's form: `{"name": …, "description": …, "input_schema": …}`.

use serde_json::{Map, Value};

use super::openai::described;
use super::schema::of_arguments;
use super::tool;
use crate::catalog::load::{Draft, Fields};
use crate::catalog::{Fault, SelectableItem};

const SCHEMA: &str = "input_schema";

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
    Value::Object(members)
}
