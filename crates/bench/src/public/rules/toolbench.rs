//! ToolBench: endpoints of RapidAPI and requests for them, of which the solvable ones were checked by people.
//!
//! The catalog holds the endpoints that come with the requests and those of two corpora of retrieval, whose entries are
//! texts with labelled parts. A tool is named `<RapidAPI tool> :: <endpoint>`.

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::upstream::{RuleError, Upstream, refuse};
use super::super::written::{Asked, Draft};
use super::{json_type, object_schema, property, tool};

/// Sets of requests in the order of the catalog.
const SETS: [&str; 6] = ["G1_instruction", "G1_category", "G1_tool", "G2_instruction", "G2_category", "G3_instruction"];
const CORPORA: [&str; 2] = ["colt/datasets/ToolBenchG3/corpus.jsonl", "colt/datasets/ToolLens/corpus.jsonl"];

/// The parts of an entry of a corpus: category, tool, endpoint, description, required and optional parameters.
const ENTRY: &str = r"(?s)^category_name:(.*?), tool_name:(.*?), api_name:(.*?), api_description:(.*), required_params: (\[.*?\]), optional_params: (\[.*?\]), return_schema: .*$";

#[derive(Deserialize)]
struct Row {
    query_id: u64,
    query: String,
    api_list: Vec<Api>,
    #[serde(rename = "relevant APIs")]
    relevant: Vec<Vec<String>>,
}

#[derive(Deserialize)]
struct Api {
    category_name: String,
    tool_name: String,
    api_name: String,
    api_description: Option<String>,
    #[serde(default)]
    required_parameters: Vec<Parameter>,
    #[serde(default)]
    optional_parameters: Vec<Parameter>,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    description: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    text: String,
}

pub(super) fn build(upstream: &Upstream) -> Result<Draft, RuleError> {
    let mut draft = Draft::default();
    for set in SETS {
        let rows: Vec<Row> = upstream.json(&format!("stabletoolbench/solvable_queries/test_instruction/{set}.json"))?;
        for row in rows {
            draft.tools.extend(row.api_list.into_iter().map(definition));
            let relevant = row.relevant.iter().map(|parts| {
                let parts: Vec<&str> = parts.iter().map(|part| part.trim()).collect();
                parts.join(" :: ")
            });
            draft.queries.push(Asked::new(format!("{set}-{}", row.query_id), &row.query, relevant));
        }
    }
    let form = Regex::new(ENTRY).map_err(|error| refuse("pattern of a corpus", &error))?;
    for corpus in CORPORA {
        let entries: Vec<Entry> = upstream.json_lines(corpus)?;
        for (entry, line) in entries.iter().zip(1..) {
            let place = format!("{corpus}:{line}");
            let parts = form.captures(&entry.text).ok_or_else(|| refuse(&place, &"the entry lacks a part"))?;
            let (_, [category, tool, api, description, required, optional]) = parts.extract();
            let parameters = |text: &str| serde_json::from_str(text).map_err(|error| refuse(&place, &error));
            draft.tools.push(definition(Api {
                category_name: category.to_owned(),
                tool_name: tool.to_owned(),
                api_name: api.to_owned(),
                api_description: Some(description.trim().to_owned()),
                required_parameters: parameters(required)?,
                optional_parameters: parameters(optional)?,
            }));
        }
    }
    Ok(draft)
}

fn definition(api: Api) -> Map<String, Value> {
    let (server, endpoint) = (api.tool_name.trim(), api.api_name.trim());
    let mut required: Vec<String> = Vec::new();
    for parameter in &api.required_parameters {
        if !required.contains(&parameter.name) {
            required.push(parameter.name.clone());
        }
    }
    let parameters = api.required_parameters.into_iter().chain(api.optional_parameters);
    let properties = parameters.map(|parameter| {
        let kind = json_type(parameter.kind.as_deref().unwrap_or_default());
        (parameter.name, property(kind, parameter.description.as_deref()))
    });
    let schema = object_schema(properties.collect(), &required);
    let description = api.api_description.unwrap_or_default();
    let mut tool = tool(&format!("{server} :: {endpoint}"), &description, schema);
    tool.insert("server".to_owned(), json!(server));
    tool.insert("category".to_owned(), json!(api.category_name.trim()));
    tool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_requests_come_before_those_of_corpora() {
        let mut upstream = Upstream::default();
        let api = json!({
            "category_name": "Data", "tool_name": "Kick ", "api_name": "Clips", "api_description": null,
            "required_parameters": [{"name": "q", "type": "NUMBER", "description": "", "default": ""}],
            "optional_parameters": [{"name": "day", "type": "DATE (YYYY-MM-DD)", "description": "When"}], "method": "GET",
        });
        let row = json!({"query_id": 7, "query": "Clips", "api_list": [api], "relevant APIs": [["Kick ", "Clips"]]});
        for set in SETS {
            let rows = if set == "G1_tool" { json!([row]) } else { json!([]) };
            let path = format!("solvable_queries/test_instruction/{set}.json");
            upstream.insert("stabletoolbench", &path, rows.to_string().into_bytes());
        }
        let text = "category_name:Food, tool_name:Cook, api_name:List, api_description: All, sorted. , required_params: [], optional_params: [{\"name\": \"n\", \"type\": \"string\", \"description\": \"a, b\"}], return_schema: {}";
        let known = text.replace("Cook", "Kick").replace("api_name:List", "api_name:Clips");
        for (corpus, text) in CORPORA.iter().zip([text, known.as_str()]) {
            let (source, path) = corpus.split_once('/').unwrap();
            upstream.insert(source, path, json!({"_id": "0", "text": text}).to_string().into_bytes());
        }
        let files = build(&upstream).unwrap().files().unwrap();
        insta::assert_snapshot!(format!("{}{}", files.catalog, files.queries), @r#"
        [
        {"name": "Kick :: Clips", "description": "", "inputSchema": {"type": "object", "properties": {"q": {"type": "number"}, "day": {"type": "string", "description": "When"}}, "required": ["q"]}, "server": "Kick", "category": "Data"},
        {"name": "Cook :: List", "description": "All, sorted.", "inputSchema": {"type": "object", "properties": {"n": {"type": "string", "description": "a, b"}}}, "server": "Cook", "category": "Food"}
        ]
        {"id": "G1_tool-7", "query": "Clips", "relevant": ["Kick :: Clips"]}
        "#);
        upstream.insert("colt", "datasets/ToolLens/corpus.jsonl", br#"{"text": "category_name:Food"}"#.to_vec());
        let error = build(&upstream).unwrap_err().to_string();
        assert_eq!(error, "colt/datasets/ToolLens/corpus.jsonl:1: the entry lacks a part");
    }
}
