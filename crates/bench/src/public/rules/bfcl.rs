//! Berkeley Function Calling Leaderboard: each request comes with a few functions of its own, here they are one catalog.
//!
//! Functions of one name with different descriptions are versions of one tool, `name__vN`, and stand in for one another.
//! Functions of the irrelevance categories are distractors: one whose name the other categories have is left out, since
//! it could be a right answer.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::upstream::{RuleError, Upstream};
use super::super::written::{Asked, Draft};
use super::tool;

const WHEEL: &str = "bfcl/bfcl_eval-2026.3.23-py3-none-any.whl";

/// Categories in the order of the catalog, each with what it gives.
const CATEGORIES: [(&str, Gives); 12] = [
    ("live_simple", Gives::Tools),
    ("live_multiple", Gives::Tools),
    ("live_parallel", Gives::Tools),
    ("live_parallel_multiple", Gives::Tools),
    ("simple_python", Gives::ToolsAndQueries),
    ("simple_java", Gives::ToolsAndQueries),
    ("simple_javascript", Gives::ToolsAndQueries),
    ("multiple", Gives::ToolsAndQueries),
    ("parallel", Gives::ToolsAndQueries),
    ("parallel_multiple", Gives::ToolsAndQueries),
    ("irrelevance", Gives::Distractors),
    ("live_irrelevance", Gives::Distractors),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    Tools,
    ToolsAndQueries,
    Distractors,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    /// Messages by turn.
    question: Vec<Vec<Message>>,
    function: Vec<Function>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: String,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    description: String,
    parameters: Value,
}

#[derive(Deserialize)]
struct Answer {
    id: String,
    /// The calls, each with the function as its key.
    ground_truth: Vec<Map<String, Value>>,
}

pub(super) fn build(upstream: &Upstream) -> Result<Draft, RuleError> {
    let mut wheel = upstream.archive(WHEEL)?;
    let mut catalog = Catalog::default();
    let mut asked = Vec::new();
    for (category, gives) in CATEGORIES {
        let entries: Vec<Entry> = wheel.json_lines(&format!("bfcl_eval/data/BFCL_v4_{category}.json"))?;
        for function in entries.iter().flat_map(|entry| &entry.function) {
            catalog.add(function, gives);
        }
        if gives == Gives::ToolsAndQueries {
            let answers: Vec<Answer> =
                wheel.json_lines(&format!("bfcl_eval/data/possible_answer/BFCL_v4_{category}.json"))?;
            asked.push((entries, answers));
        }
    }
    // A request names the versions of its tools that other categories bring too, so all functions come first.
    let mut queries = Vec::new();
    for (entries, answers) in asked {
        let calls: BTreeMap<String, Vec<Map<String, Value>>> =
            answers.into_iter().map(|answer| (answer.id, answer.ground_truth)).collect();
        for entry in entries {
            let called = calls.get(&entry.id).into_iter().flatten().flat_map(Map::keys);
            let relevant: Vec<String> = called.map(|name| catalog.tool_of(&entry.function, name)).collect();
            let turns = entry.question.iter().flatten().filter(|message| message.role == "user");
            let text: Vec<&str> = turns.map(|message| message.content.as_str()).collect();
            let mut query = Asked::new(entry.id, &text.join("\n"), relevant);
            query.equivalent = catalog.equivalents(&query.relevant);
            queries.push(query);
        }
    }
    Ok(Draft { tools: catalog.tools, queries, ..Draft::default() })
}

#[derive(Default)]
struct Catalog {
    tools: Vec<Map<String, Value>>,
    /// Tool by the name and the description of the function.
    by_function: BTreeMap<(String, String), String>,
    /// Tools by the name of the function, in the order in which they came.
    versions: BTreeMap<String, Vec<String>>,
    /// Names of functions that requests may ask for.
    asked_for: BTreeSet<String>,
}

impl Catalog {
    fn add(&mut self, function: &Function, gives: Gives) {
        let key = (function.name.clone(), function.description.trim().to_owned());
        if self.by_function.contains_key(&key) {
            return;
        }
        if gives != Gives::Distractors {
            self.asked_for.insert(function.name.clone());
        } else if self.asked_for.contains(&function.name) {
            return;
        }
        let versions = self.versions.entry(function.name.clone()).or_default();
        let name = match versions.len() {
            0 => function.name.clone(),
            earlier => format!("{}__v{}", function.name, earlier + 1),
        };
        versions.push(name.clone());
        self.tools.push(tool(&name, &key.1, with_json_types(&function.parameters)));
        self.by_function.insert(key, name);
    }

    /// The tool for a function that an entry brings.
    fn tool_of(&self, functions: &[Function], name: &str) -> String {
        let function = functions.iter().rfind(|function| function.name == name);
        let key = function.map(|function| (name.to_owned(), function.description.trim().to_owned()));
        key.and_then(|key| self.by_function.get(&key)).map_or(name, String::as_str).to_owned()
    }

    /// For each tool with other versions those.
    fn equivalents(&self, tools: &[String]) -> Vec<(String, Vec<String>)> {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for tool in tools {
            let versions = self.versions.values().find(|versions| versions.contains(tool)).into_iter().flatten();
            let others: Vec<String> = versions.filter(|other| *other != tool).cloned().collect();
            if !others.is_empty() && !found.iter().any(|(known, _)| known == tool) {
                found.push((tool.clone(), others));
            }
        }
        found
    }
}

/// The value with the type `dict` written as JSON Schema has it, at any depth.
fn with_json_types(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(
            object
                .iter()
                .map(|(key, value)| {
                    let is_dict = key == "type" && value == "dict";
                    (key.clone(), if is_dict { json!("object") } else { with_json_types(value) })
                })
                .collect(),
        ),
        Value::Array(values) => values.iter().map(with_json_types).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn entry(id: &str, text: &str, functions: &[(&str, &str)]) -> String {
        let functions: Vec<Value> = functions
            .iter()
            .map(|(name, description)| {
                let side = json!({"type": "float", "description": "Side"});
                let parameters = json!({"type": "dict", "properties": {"side": side, "more": {"type": "dict"}}});
                json!({"name": name, "description": description, "parameters": parameters})
            })
            .collect();
        json!({"id": id, "question": [[{"role": "user", "content": text}]], "function": functions}).to_string()
    }

    #[test]
    fn versions_of_a_function_stand_in_for_one_another() {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (category, gives) in CATEGORIES {
            let (entries, answers) = match category {
                "live_simple" => (entry("live_0", "?", &[("area", "Area of a square. ")]), None),
                "simple_python" => {
                    let first = entry("simple_python_0", "Area of 3?", &[("area", "Area of a cube.")]);
                    let second = entry("simple_python_1", "Sides?", &[("sides", "Sides.")]);
                    let answers = [
                        json!({"id": "simple_python_0", "ground_truth": [{"area": {"side": [3]}}]}),
                        json!({"id": "simple_python_1", "ground_truth": [{"sides": {}}, {"sides": {}}]}),
                    ];
                    (format!("{first}\n{second}"), Some(answers.map(|answer| answer.to_string()).join("\n")))
                }
                "irrelevance" => {
                    let known = entry("irrelevance_0", "?", &[("area", "Another area."), ("volume", "Volume.")]);
                    (format!("{known}\n{}", entry("irrelevance_1", "?", &[("volume", "Volume of a cone.")])), None)
                }
                _ => (String::new(), None),
            };
            let options = SimpleFileOptions::default();
            zip.start_file(format!("bfcl_eval/data/BFCL_v4_{category}.json"), options).unwrap();
            zip.write_all(entries.as_bytes()).unwrap();
            if gives == Gives::ToolsAndQueries {
                zip.start_file(format!("bfcl_eval/data/possible_answer/BFCL_v4_{category}.json"), options).unwrap();
                zip.write_all(answers.unwrap_or_default().as_bytes()).unwrap();
            }
        }
        let mut upstream = Upstream::default();
        let (source, path) = WHEEL.split_once('/').unwrap();
        upstream.insert(source, path, zip.finish().unwrap().into_inner());
        let files = build(&upstream).unwrap().files().unwrap();
        let names: Vec<String> = serde_json::from_str::<Vec<Map<String, Value>>>(&files.catalog)
            .unwrap()
            .into_iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["area", "area__v2", "sides", "volume", "volume__v2"]);
        insta::assert_snapshot!(files.catalog.lines().nth(1).unwrap(), @r#"{"name": "area", "description": "Area of a square.", "inputSchema": {"type": "object", "properties": {"side": {"type": "float", "description": "Side"}, "more": {"type": "object"}}}},"#);
        insta::assert_snapshot!(files.queries, @r#"
        {"id": "simple_python_0", "query": "Area of 3?", "relevant": ["area__v2"], "equivalent": {"area__v2": ["area"]}}
        {"id": "simple_python_1", "query": "Sides?", "relevant": ["sides"]}
        "#);
    }
}
