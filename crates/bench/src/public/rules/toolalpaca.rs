//! ToolAlpaca: public APIs with a description of each function in one text, and requests with their right calls.
//!
//! Descriptions end where the arguments begin. Requests whose calls name a function that no description has are dropped.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::upstream::{RuleError, Upstream, refuse};
use super::super::written::{Asked, Draft};
use super::{object_schema, property, tool};

const PARTS: [&str; 2] = ["eval_simulated", "eval_real"];

#[derive(Deserialize)]
struct Api {
    #[serde(rename = "Name")]
    name: String,
    #[serde(rename = "Description")]
    description: String,
    #[serde(rename = "Function_Description")]
    functions: Map<String, Value>,
    #[serde(rename = "Instructions")]
    instructions: Vec<String>,
    #[serde(rename = "Golden_Answers")]
    answers: Vec<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(rename = "Action")]
    action: String,
}

/// Among the functions of an API, the text on the types that they share.
const SHARED_TYPES: &str = "components";

pub(super) fn build(upstream: &Upstream) -> Result<Draft, RuleError> {
    let mut draft = Draft::default();
    for part in PARTS {
        let file = format!("toolalpaca/data/{part}.json");
        let apis: Vec<Api> = upstream.json(&file)?;
        for api in apis {
            for (name, text) in api.functions.iter().filter(|(name, _)| *name != SHARED_TYPES) {
                let text = text.as_str().unwrap_or_default();
                let properties = arguments(text).map_err(|error| refuse(&file, &format!("`{name}`: {error}")))?;
                let description = text.split_once("\nParameters:").map_or(text, |(before, _)| before);
                let mut tool = tool(name, description, object_schema(properties, &[]));
                tool.insert("server".to_owned(), json!(api.name));
                tool.insert("serverDescription".to_owned(), json!(api.description));
                draft.tools.push(tool);
            }
            let asked = api.instructions.iter().zip(api.answers).zip(0..);
            draft.queries.extend(asked.map(|((instruction, calls), number)| {
                let calls = calls.into_iter().map(|call| call.action);
                Asked::new(format!("{part}-{}-{number}", api.name), instruction, calls)
            }));
        }
    }
    Ok(draft)
}

/// The arguments of a function: a JSON object of texts on a line of its own.
fn arguments(text: &str) -> serde_json::Result<Map<String, Value>> {
    let after = text.split_once("\nParameters: {").map(|(_, after)| after);
    let Some((inner, _)) = after.and_then(|after| after.split_once("}\n")) else { return Ok(Map::new()) };
    let named: Map<String, Value> = serde_json::from_str(&format!("{{{inner}}}"))?;
    Ok(named.into_iter().map(|(name, text)| (name, property("string", text.as_str()))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_from_descriptions() {
        let mut upstream = Upstream::default();
        let functions = json!({
            "find": "Find it.\nParameters: {\"q\": \"Required. string. What.\"}\nOutput: Found.\n",
            "bare": "Parameters: {\"q\": \"string.\"}\nOutput: None.",
            "components": "",
        });
        let api = json!({
            "Name": "Finder", "Description": "Finds", "Function_Description": functions,
            "Instructions": [" Find me", "Find you"],
            "Golden_Answers": [[{"Action": "find"}, {"Action": "find"}], [{"Action": "getDetails"}]],
        });
        upstream.insert("toolalpaca", "data/eval_simulated.json", json!([api]).to_string().into_bytes());
        upstream.insert("toolalpaca", "data/eval_real.json", b"[]".to_vec());
        let files = build(&upstream).unwrap().files().unwrap();
        insta::assert_snapshot!(format!("{}{}", files.catalog, files.queries), @r#"
        [
        {"name": "find", "description": "Find it.", "inputSchema": {"type": "object", "properties": {"q": {"type": "string", "description": "Required. string. What."}}}, "server": "Finder", "serverDescription": "Finds"},
        {"name": "bare", "description": "Parameters: {\"q\": \"string.\"}\nOutput: None.", "inputSchema": {"type": "object", "properties": {}}, "server": "Finder", "serverDescription": "Finds"}
        ]
        {"id": "eval_simulated-Finder-0", "query": "Find me", "relevant": ["find"]}
        "#);
    }
}
