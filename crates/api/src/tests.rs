//! What is asked and answered, and that the document of all paths says so.

use std::collections::BTreeSet;
use std::sync::Arc;

use contextweaver_context::memory::{LocalMemories, Remembered};
use contextweaver_context::{Audience, ContextConfig, Secrets};
use contextweaver_routing::{Router, RoutingConfig};
use serde_json::{Value, json};

use super::*;

fn engines() -> Engines {
    Engines::new(None, RoutingConfig::default(), ContextConfig::default())
}

fn ask(engines: &Engines, path: &str, body: &Value) -> Result<Value, Problem> {
    engines.answer(Engines::at(path).unwrap(), body.to_string().as_bytes())
}

fn description() -> Value {
    serde_json::from_str(OPENAPI).unwrap()
}

/// The example of each path in the document, with its answer.
#[test]
fn every_operation_is_described_and_its_example_is_answered() {
    let (description, engines) = (description(), engines());
    let described: Vec<&String> =
        description["paths"].as_object().unwrap().keys().filter(|path| path.starts_with("/v1/")).collect();
    let known: Vec<&str> = OPERATIONS.iter().map(|operation| operation.path).collect();
    assert_eq!(described, known);
    for operation in &OPERATIONS {
        let media = &description["paths"][operation.path]["post"]["requestBody"]["content"]["application/json"];
        let example = &media["examples"]["one"]["value"];
        let answer =
            ask(&engines, operation.path, example).unwrap_or_else(|problem| panic!("{}: {problem}", operation.path));
        assert_eq!(answer["schema_version"], 1, "{}", operation.path);
        // A member more or less in a request is told.
        let mut more = example.clone();
        more["surplus"] = json!(1);
        let problem = ask(&engines, operation.path, &more).unwrap_err();
        assert!(problem.kind == Kind::BadRequest && problem.message.contains("surplus"), "{problem}");
        // Nor are members taken by their order.
        let values: Vec<&Value> = example.as_object().unwrap().values().collect();
        for array in [json!([]), json!(values), json!(["abc", "o200k_base"])] {
            let problem = ask(&engines, operation.path, &array).unwrap_err();
            assert!(problem.message.ends_with("it is an array; send an object"), "{problem}");
        }
    }
}

/// The bodies that `docs/http.md` shows, asked of a server that was started with a catalog.
#[test]
fn the_body_of_each_path_on_the_page_is_answered() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/http.md")).unwrap();
    let block = page.split_once("\nA body for each path").and_then(|(_, rest)| rest.split("```").nth(1)).unwrap();
    let bodies: Vec<(String, Value)> = block
        .strip_prefix("text\n")
        .unwrap()
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, body)| (format!("/v1/{name}"), serde_json::from_str(body).unwrap()))
        .collect();
    let paths: BTreeSet<&str> = bodies.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, OPERATIONS.iter().map(|operation| operation.path).collect());
    let served = page.split_once("serve --catalog ").and_then(|(_, rest)| rest.split_whitespace().next()).unwrap();
    let tools = std::fs::read_to_string(format!("{}/../../{served}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let router = Router::from_json(&tools).unwrap();
    let engines = Engines::new(Some(router), RoutingConfig::default(), ContextConfig::default());
    for (path, body) in bodies {
        let answer = ask(&engines, &path, &body).unwrap_or_else(|problem| panic!("{path} {body}: {problem}"));
        assert_eq!(answer["schema_version"], 1, "{path} {body}: {answer}");
        if path == "/v1/route" {
            assert_eq!(
                (&answer["no_tool_fits"], answer["choices"][0]["card"]["name"].as_str()),
                (&json!(false), Some("set_lights"))
            );
        }
    }
}

/// What a generated client takes for an object without any member is one that may have all.
#[test]
fn an_object_of_which_no_member_is_named_says_that_it_may_have_any() {
    fn closed(at: &str, schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(members) => {
                let is_object = members.get("type").is_some_and(|kind| {
                    kind == "object" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("object")))
                });
                if is_object && !members.contains_key("properties") && !members.contains_key("additionalProperties") {
                    found.push(at.to_owned());
                }
                members.iter().for_each(|(name, member)| closed(&format!("{at}/{name}"), member, found));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(n, item)| closed(&format!("{at}/{n}"), item, found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    closed("", &description()["components"]["schemas"], &mut found);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn wrong_requests_name_what_is_wrong() {
    let tools = json!([{"name": "a", "inputSchema": {"type": "object"}}]);
    let table = [
        ("/v1/route", json!({"query": "x"}), 400, "`catalog` is missing"),
        ("/v1/route", json!({"query": "x", "catalog": {"tools": 7}}), 422, "`catalog`"),
        (
            "/v1/route",
            json!({"query": "x", "catalog": tools, "top_k": 0}),
            400,
            "`top_k`: expected a whole number from 1 to",
        ),
        ("/v1/route", json!({"query": "x", "catalog": tools, "top_k": 1.5}), 400, "`top_k`: expected a whole number"),
        ("/v1/route", json!({"top_k": 1e20, "query": "a:b", "catalog": tools}), 400, "to 9007199254740991 at line 1"),
        ("/v1/route", json!({"query": "x", "catalog": tools, "top_k": null}), 400, "null"),
        (
            "/v1/route",
            json!({"query": "x", "top_k": "3"}),
            400,
            "takes: `top_k`: invalid type: string \"3\", expected a whole number at line 1",
        ),
        ("/v1/route", json!({"a\n": 1, "query": 7}), 400, "unknown field"),
        ("/v1/route", json!({"catalog": tools, "query": 7, "tags": []}), 400, "`query`: invalid type: integer `7`"),
        (
            "/v1/route",
            json!({"query": "x", "tags": ["a", {"b": 1}]}),
            400,
            "`tags`: invalid type: map, expected a string",
        ),
        ("/v1/route", json!({"query": "x", "top_k": [1]}), 400, "takes: `top_k`: invalid type: sequence"),
        ("/v1/route", json!({"query": ["x"], "top_k": 3}), 400, "takes: `query`: invalid type: sequence"),
        ("/v1/route", json!({"top_k": 3}), 400, "takes: missing field `query`"),
        ("/v1/route", json!({"query": "", "catalog": tools}), 422, "`query`: it is empty"),
        ("/v1/route", json!({"query": " ", "catalog": tools}), 422, "`query`: it is empty"),
        ("/v1/route", json!("x"), 400, "it is no object; send one"),
        ("/v1/route", json!({"query": "x", "catalog": tools, "as": "cobol"}), 400, "openai"),
        ("/v1/compile", json!({"conversation": "nothing that is known"}), 422, "`conversation`"),
        ("/v1/compile", json!({"conversation": [], "phase": "sing"}), 400, "sing"),
        ("/v1/compile", json!({"conversation": [], "phase": {"answer": null}}), 400, "expected a string"),
        ("/v1/handoff", json!({"conversation": [], "for": {"agent": null}}), 400, "expected a string"),
        ("/v1/count", json!({"text": "a", "tokenizer": {"cl100k_base": null}}), 400, "expected a string"),
        ("/v1/compact", json!({"result": "a", "tokenizer": {"cl100k_base": null}}), 400, "expected a string"),
        (
            "/v1/compile",
            json!({"conversation": [{"role": "user", "content": "a"}], "memory": 100}),
            422,
            "the server was started without a memory",
        ),
        ("/v1/view", json!({"selector": "lines:0..1"}), 400, "`content`"),
        ("/v1/view", json!({"content": "a", "selector": "colour:blue"}), 422, "`selector`"),
        ("/v1/view", json!({"content": "a", "selector": "lines:0..1", "cursor": "%"}), 422, "`cursor`: the cursor `%`"),
        ("/v1/view", json!({"content": "a", "selector": "lines:0..1", "cursor": "9"}), 422, "`cursor`: the cursor `9`"),
        ("/v1/compile", json!({"conversation": []}), 422, "`conversation`: it is empty"),
        ("/v1/handoff", json!({"conversation": []}), 422, "`conversation`: it is empty"),
        (
            "/v1/view",
            json!({"conversation": [{"role": "user", "content": "a"}], "handle": "artifact:x", "selector": "lines:0..1"}),
            422,
            "artifact:x",
        ),
        ("/v1/count", json!({"text": 7}), 400, "`text`"),
        ("/v1/evaluate", json!({"catalog": tools, "queries": [], "engines": ["best"]}), 400, "best"),
        ("/v1/evaluate", json!({"catalog": tools, "queries": [], "engines": ["none"]}), 422, "none"),
        (
            "/v1/evaluate",
            json!({"catalog": tools, "queries": [{"id": "1", "query": "x", "relevant": ["b"]}]}),
            422,
            "b",
        ),
    ];
    for (path, body, status, said) in table {
        let problem = ask(&engines(), path, &body).unwrap_err();
        assert!(problem.kind.status() == status && problem.message.contains(said), "{path} {body}: {problem:?}");
    }
}

#[test]
fn a_body_that_is_no_json_says_so() {
    let table = [
        ("", "the body is empty; send an object of JSON"),
        (" \n", "the body is empty; send an object of JSON"),
        ("nojson", "the body is not JSON: expected ident at line 1 column 2"),
        (r#"{"query": "#, "the body is not JSON: EOF while parsing a value at line 1 column 10"),
    ];
    for (body, said) in table {
        let problem = engines().answer(Engines::at("/v1/route").unwrap(), body.as_bytes()).unwrap_err();
        assert_eq!((problem.kind, problem.message.as_str()), (Kind::BadRequest, said), "{body}");
    }
}

#[test]
fn the_catalog_of_the_start_answers_and_one_of_a_request_goes_before_it() {
    let default = Router::from_json(r#"[{"name": "pay_bill", "description": "Pay a bill"}]"#).unwrap();
    let engines = Engines::new(Some(default), RoutingConfig::default(), ContextConfig::default());
    let first = |body: &Value| {
        let answer = ask(&engines, "/v1/route", body).unwrap();
        answer["choices"][0]["card"]["id"].as_str().unwrap().to_owned()
    };
    assert!(first(&json!({"query": "pay the bill"})).contains("pay_bill"));
    // More catalogs than are kept, and the first once more.
    for round in [0, 1, 2, 3, 4, 5, 0] {
        let catalog = json!([{"name": format!("tool_{round}"), "description": "Pay a bill"}]);
        let body = json!({"query": "pay the bill", "catalog": catalog});
        assert!(first(&body).contains(&format!("tool_{round}")));
    }
}

#[test]
fn the_memory_of_the_start_is_searched_where_a_request_asks_for_it() {
    let notes = vec![Remembered { id: "pool".to_owned(), text: "The pool has 40 connections.".to_owned() }];
    let engines = engines().with_memory(Arc::new(LocalMemories::new("notes", notes)));
    let conversation = json!([{"role": "user", "content": "how large is the pool?"}]);
    let prompt = |memory: &Value| {
        let mut body = json!({"conversation": conversation, "query": "pool"});
        body.as_object_mut().unwrap().extend(memory.as_object().unwrap().clone());
        ask(&engines, "/v1/compile", &body).unwrap()
    };
    let with = prompt(&json!({"memory": 100}));
    assert!(with["prompt"].as_str().unwrap().contains("- notes:pool: The pool has 40"), "{with}");
    assert!(with["stats"]["notes"][0].as_str().unwrap().starts_with("memory `notes`: 1 "), "{with}");
    assert!(!prompt(&json!({}))["prompt"].as_str().unwrap().contains("notes:"));
}

#[test]
fn what_a_prompt_leaves_out_can_be_seen_with_the_same_conversation() {
    let rows: Vec<Value> = (0..2000).map(|row| json!({"row": row, "state": "fine"})).collect();
    let conversation = json!([
        {"role": "user", "content": "show the rows"},
        {"role": "assistant", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "rows", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": Value::from(rows).to_string()},
    ]);
    let compiled =
        ask(&engines(), "/v1/compile", &json!({"conversation": conversation, "query": "rows", "budget": 900})).unwrap();
    assert!(compiled["stats"]["prompt_tokens"].as_u64().unwrap() <= 900);
    let handle = compiled["artifacts"][0].as_str().unwrap();
    let viewed = json!({"conversation": conversation, "handle": handle, "selector": "rows:1998..2000"});
    let viewed = ask(&engines(), "/v1/view", &viewed).unwrap();
    assert!(viewed["text"].as_str().unwrap().contains("1999"), "{viewed}");
}

#[test]
fn what_is_seen_of_a_content_is_masked_as_prompts_are() {
    let key = format!("AKIA{}", "IOSFODNN7EXAMPLE");
    let viewed = |secrets: Secrets| {
        let mut config = ContextConfig::default();
        config.firewall.secrets = secrets;
        let engines = Engines::new(None, RoutingConfig::default(), config);
        let body = json!({"content": {"rows": [{"key": key}]}, "selector": "json_path:$.rows[0].key"});
        ask(&engines, "/v1/view", &body).unwrap()["text"].clone()
    };
    assert_eq!(viewed(Secrets::Redact), "[REDACTED: aws_access_key]");
    assert_eq!(viewed(Secrets::Keep), key);
}

#[test]
fn a_hand_over_is_for_whom_the_request_says() {
    let conversation = json!([
        {"role": "user", "content": "why did the job fail?"},
        {"role": "assistant", "content": "The disk is full. I will ask for a larger one."},
    ]);
    let ask = |more: &[(&str, &str)]| {
        let mut body = json!({"conversation": conversation, "query": "is a larger disk right", "budget": 300});
        more.iter().for_each(|(name, value)| body[*name] = json!(value));
        ask(&engines(), "/v1/handoff", &body)
    };
    let text = |answer: Value| answer["text"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(text(ask(&[("for", "advisor")]).unwrap()), @r"
    [QUESTION]
    - is a larger disk right
    [GOAL]
    - why did the job fail? (m1)
    [DECIDED]
    - The disk is full. I will ask for a larger one. (m2)
    ");
    let agent = text(ask(&[("for", "agent")]).unwrap());
    assert!(agent.starts_with("[GOAL]\n") && agent == text(ask(&[]).unwrap()), "{agent}");
    let problem = ask(&[("for", "judge")]).unwrap_err();
    assert!(problem.kind == Kind::BadRequest && problem.message.contains("`judge`, expected `agent` or `advisor`"));
    let described = &description()["components"]["schemas"]["HandoffRequest"]["properties"]["for"]["enum"];
    assert_eq!(*described, json!(Audience::ALL.iter().map(|one| one.name()).collect::<Vec<_>>()));
}

#[test]
fn a_list_of_tools_is_what_a_request_takes() {
    let catalog = json!([{"name": "pay_bill", "description": "Pay a bill", "inputSchema": {"type": "object"}}]);
    let body = json!({"query": "pay the bill", "catalog": catalog, "as": "anthropic"});
    let answer = ask(&engines(), "/v1/route", &body).unwrap();
    assert_eq!(answer["tools"][0]["name"], "pay_bill");
    assert_eq!(answer["names"].as_object().unwrap().len(), 1);
    assert_eq!(answer.get("arguments"), None);
    let schema = json!({"type": "object", "properties": {"filter[x]": {"type": "string"}}});
    let renamed = json!([{"name": "pay_bill", "description": "Pay a bill", "inputSchema": schema}]);
    let body = json!({"query": "pay the bill", "catalog": renamed, "as": "anthropic"});
    let answer = ask(&engines(), "/v1/route", &body).unwrap();
    assert_eq!(answer["arguments"], json!({"pay_bill": {"filter_x": "filter[x]"}}));
    let body = json!({"query": "pay the bill", "catalog": catalog, "as": "weaver-spec"});
    let cards = ask(&engines(), "/v1/route", &body).unwrap();
    let id = &cards["tools"][0]["items"][0]["id"];
    assert_eq!(cards["names"], json!({id.as_str().unwrap(): id}));
    // A prompt whose name the query gives takes no tool's place.
    let prompt = json!({"name": "pay_the_bill", "description": "Pay the bill"});
    let both = json!({"tools": catalog, "prompts": [prompt]});
    let body = json!({"query": "pay the bill", "catalog": both, "as": "openai", "top_k": 1});
    let answer = ask(&engines(), "/v1/route", &body).unwrap();
    assert_eq!(answer["tools"][0]["function"]["name"], "pay_bill");
}
