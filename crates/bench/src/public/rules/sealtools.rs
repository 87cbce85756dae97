//! Seal-Tools: tools in fields of work, and requests with the calls that they need. The development part is taken.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::upstream::{RuleError, Upstream};
use super::super::written::{Asked, Draft};
use super::{json_type, object_schema, property, tool};

const TOOLS: &str = "sealtools/Seal-Tools_Dataset/tool.jsonl";
const DEV: &str = "sealtools/Seal-Tools_Dataset/dev.jsonl";

#[derive(Deserialize)]
struct Api {
    api_name: String,
    api_description: String,
    field: String,
    parameters: Map<String, Value>,
    #[serde(default)]
    required: Vec<String>,
}

#[derive(Deserialize)]
struct Row {
    id: String,
    query: String,
    calling: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    api: String,
}

pub(super) fn build(upstream: &Upstream) -> Result<Draft, RuleError> {
    let apis: Vec<Api> = upstream.json_lines(TOOLS)?;
    let tools = apis.into_iter().map(|api| {
        let properties = api.parameters.into_iter().map(|(name, parameter)| {
            let text = |key: &str| parameter.get(key).and_then(Value::as_str);
            (name, property(json_type(text("type").unwrap_or_default()), text("description")))
        });
        let schema = object_schema(properties.collect(), &api.required);
        let mut tool = tool(&api.api_name, &api.api_description, schema);
        tool.insert("server".to_owned(), json!(api.field));
        tool
    });
    let rows: Vec<Row> = upstream.json_lines(DEV)?;
    let queries =
        rows.into_iter().map(|row| Asked::new(row.id, &row.query, row.calling.into_iter().map(|call| call.api)));
    Ok(Draft { tools: tools.collect(), queries: queries.collect(), ..Draft::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_servers() {
        let mut upstream = Upstream::default();
        let contents = [
            (
                TOOLS,
                r#"{"api_name": "weigh", "api_description": "Weigh it", "field": "Science/Physics", "parameters": {"mass": {"type": "float", "description": "In kg", "example": "3"}}, "required": ["mass"], "responses": {}}
{"api_name": "rest", "api_description": "Rest", "field": "Health", "parameters": {}, "responses": {}}
"#,
            ),
            (DEV, r#"{"id": "dev-easy-0", "query": "Weigh, rest", "calling": [{"api": "weigh"}, {"api": "rest"}]}"#),
        ];
        for (file, text) in contents {
            let (source, path) = file.split_once('/').unwrap();
            upstream.insert(source, path, text.as_bytes().to_vec());
        }
        let files = build(&upstream).unwrap().files().unwrap();
        insta::assert_snapshot!(format!("{}{}", files.catalog, files.queries), @r#"
        [
        {"name": "weigh", "description": "Weigh it", "inputSchema": {"type": "object", "properties": {"mass": {"type": "number", "description": "In kg"}}, "required": ["mass"]}, "server": "Science/Physics"},
        {"name": "rest", "description": "Rest", "inputSchema": {"type": "object", "properties": {}}, "server": "Health"}
        ]
        {"id": "dev-easy-0", "query": "Weigh, rest", "relevant": ["weigh", "rest"]}
        "#);
    }
}
