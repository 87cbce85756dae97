//! NESTFUL: requests that need calls of calls, over functions of RapidAPI, of SGD and of Glaive.
//!
//! Requests name functions whose definitions are missing in a few cases; these are dropped. What Glaive's specification
//! calls `parameters` is empty or no table of arguments and is not read.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::upstream::{RuleError, Upstream};
use super::super::written::{Asked, Draft};
use super::{json_type, object_schema, property, tool};

/// Parts in the order of the catalog: the label in the ids of requests, specification, requests.
const PARTS: [(&str, &str, &str); 3] = [
    ("exec", "nestful/data/executable/executable-spec.json", "nestful/data/executable/executable-data.json"),
    (
        "sgd",
        "nestful/data/non-executable/non-executable-sgd-spec.json",
        "nestful/data/non-executable/non-executable-sgd-data.json",
    ),
    (
        "glaive",
        "nestful/data/non-executable/non-executable-glaive-spec.json",
        "nestful/data/non-executable/non-executable-glaive-data.json",
    ),
];

/// The call that names what the whole sequence returns.
const RESULT: &str = "var_result";

#[derive(Deserialize)]
struct Spec {
    name: String,
    description: String,
    #[serde(default, alias = "arguments")]
    query_parameters: Map<String, Value>,
}

#[derive(Deserialize)]
struct Row {
    input: String,
    output: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    name: String,
}

pub(super) fn build(upstream: &Upstream) -> Result<Draft, RuleError> {
    let mut draft = Draft::default();
    for (label, specs, rows) in PARTS {
        let specs: Vec<Spec> = upstream.json(specs)?;
        draft.tools.extend(specs.iter().map(definition));
        let rows: Vec<Row> = upstream.json(rows)?;
        draft.queries.extend(rows.into_iter().zip(0..).map(|(row, number)| {
            let calls = row.output.into_iter().map(|call| call.name).filter(|name| name != RESULT);
            Asked::new(format!("nestful-{label}-{number:03}"), &row.input, calls)
        }));
    }
    Ok(draft)
}

fn definition(spec: &Spec) -> Map<String, Value> {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, parameter) in &spec.query_parameters {
        let Some(parameter) = parameter.as_object() else { continue };
        let text = |key: &str| parameter.get(key).and_then(Value::as_str);
        properties.insert(name.clone(), property(json_type(text("type").unwrap_or("string")), text("description")));
        if parameter.get("required") == Some(&Value::Bool(true)) {
            required.push(name.clone());
        }
    }
    let mut definition = tool(&spec.name, &spec.description, object_schema(properties, &required));
    if let Some((server, _)) = spec.name.split_once('.') {
        definition.insert("server".to_owned(), json!(server));
    }
    definition
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_parts_make_one_catalog() {
        let mut upstream = Upstream::default();
        let spec =
            |name: &str, key: &str, parameters: Value| json!([{"name": name, "description": "D", key: parameters}]);
        let contents = [
            (
                spec(
                    "Fly",
                    "query_parameters",
                    json!({"to": {"type": "String", "description": "Where", "required": true}, "n": 3}),
                ),
                json!([{"input": "Fly ", "output": [{"name": "Fly"}, {"name": "Fly"}, {"name": "var_result"}]}]),
            ),
            (
                spec("Buses.Find", "arguments", json!({"day": {"description": "", "required": false}})),
                json!([{"input": "Bus", "output": [{"name": "Buses.Find"}]}]),
            ),
            (
                spec("Fly", "parameters", json!({"type": "object"})),
                json!([{"input": "Lost", "output": [{"name": "absent"}]}]),
            ),
        ];
        for ((_, specs, rows), (spec, row)) in PARTS.into_iter().zip(contents) {
            for (file, value) in [(specs, spec), (rows, row)] {
                let (source, path) = file.split_once('/').unwrap();
                upstream.insert(source, path, value.to_string().into_bytes());
            }
        }
        let files = build(&upstream).unwrap().files().unwrap();
        insta::assert_snapshot!(format!("{}{}", files.catalog, files.queries), @r#"
        [
        {"name": "Fly", "description": "D", "inputSchema": {"type": "object", "properties": {"to": {"type": "string", "description": "Where"}}, "required": ["to"]}},
        {"name": "Buses.Find", "description": "D", "inputSchema": {"type": "object", "properties": {"day": {"type": "string"}}}, "server": "Buses"}
        ]
        {"id": "nestful-exec-000", "query": "Fly", "relevant": ["Fly"]}
        {"id": "nestful-sgd-000", "query": "Bus", "relevant": ["Buses.Find"]}
        "#);
    }
}
