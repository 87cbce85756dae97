use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::catalog::{Catalog, LoadOptions, Loaded, Strictness, load};

fn load_text(name: &str, text: &str, strictness: Strictness) -> Result<Loaded, crate::catalog::CatalogError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    load(&[path], LoadOptions { strictness })
}

/// The forms that a document was recognised as, and its tools, one member a line.
fn shown(document: &Value) -> String {
    let loaded = load_text("a.json", &document.to_string(), Strictness::Strict).unwrap();
    let forms: Vec<String> =
        loaded.sources.iter().map(|source| format!("{} ({})", source.format.key(), source.definitions)).collect();
    let item = |item: &SelectableItem| {
        let line = format!("  {} | {} | {}", item.id, item.description, item.tags.join(","));
        let mut lines = line.trim_end().to_owned() + "\n";
        if item.version.is_some() || item.server_version.is_some() {
            let or_none = |version: &Option<String>| version.clone().unwrap_or_else(|| "-".to_owned());
            let (own, server) = (or_none(&item.version), or_none(&item.server_version));
            lines.push_str(&format!("    version {own}, server {server}\n"));
        }
        if let Some(schema) = &item.args_schema {
            lines.push_str(&format!("    {schema}\n"));
        }
        if !item.metadata.is_empty() {
            lines.push_str(&format!("    metadata {}\n", json!(item.metadata)));
        }
        lines
    };
    forms.join(", ") + "\n" + &loaded.catalog.items().iter().map(item).collect::<String>()
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
}

#[test]
fn an_anthropic_tool_keeps_its_schema() {
    let tool = json!({"name": "weather", "description": "Says the weather", "input_schema": schema()});
    let catalog = Catalog::from_values(&[tool], None).unwrap();
    assert_eq!(catalog.items()[0].args_schema.as_deref(), Some(&schema()));
}

#[test]
fn every_form_is_recognised_and_read() {
    let named = json!({"name": "weather", "description": "Says the weather"});
    let with = |key: &str, value: Value| {
        let mut tool = named.clone();
        tool[key] = value;
        tool
    };
    let function = with("parameters", schema());
    let capitals =
        json!({"type": "OBJECT", "properties": {"city": {"type": "STRING", "nullable": true, "enum": ["a"]}}});
    let documents = [
        json!([with("inputSchema", schema())]),
        json!([{"type": "function", "function": with("parameters", schema())}]),
        json!({"model": "m", "messages": [], "tools": [{"type": "function", "function": {"name": "now", "strict": true}}]}),
        json!([{"type": "function", "name": "weather", "parameters": schema(), "strict": false}, {"type": "custom", "name": "code", "format": {"type": "text"}}]),
        json!({"functions": [function]}),
        json!({"model": "m", "max_tokens": 1, "messages": [], "tools": [with("input_schema", schema())]}),
        json!([{"type": "custom", "name": "weather", "input_schema": schema(), "cache_control": {"type": "ephemeral"}}]),
        json!({"contents": [], "tools": [{"functionDeclarations": [with("parameters", capitals.clone())], "googleSearch": {}}]}),
        json!([{"function_declarations": [with("parameters_json_schema", schema()), {"name": "now"}]}]),
        json!([with("parameters", capitals)]),
        json!({"toolConfig": {"tools": [{"toolSpec": with("inputSchema", json!({"json": schema()}))}]}}),
        json!([with("args_schema", schema()), {"name": "js", "description": "", "schema": schema()}]),
        json!([with("args", json!({"city": {"type": "string"}, "days": {"type": "integer", "default": 1}}))]),
        json!([{"metadata": {"name": "weather", "description": "Says", "fn_schema": schema(), "return_direct": false}}]),
        json!([{"name": "weather", "description": "Says", "fn_schema_str": schema().to_string()}]),
        json!([{"name": "weather", "description": "Says", "inputs": {"city": {"type": "string", "description": "Where"},
            "map": {"type": "image", "nullable": true}}, "output_type": "string"}, {"name": "now", "inputs": {}, "output_type": "any"}]),
        json!([{"name": "weather", "description": "Says", "parameter_definitions": {"city": {"type": "str", "required": true},
            "days": {"description": "Which", "type": "List[int]", "required": false}, "unit": {"type": "Enum"}}}]),
        json!({"tools": {"weather": {"description": "Says", "inputSchema": {"jsonSchema": schema()}}, "now": {"description": "Says"}}}),
        json!({"weather": {"description": "Says", "parameters": schema()}}),
        json!([{"type": "function", "name": "weather", "inputSchema": schema()}]),
        json!({"type": "function", "function": function}),
        json!({
            "protocolVersion": "0.3.0", "name": "Data Agent", "description": "Knows tables", "url": "https://a.example/a2a",
            "capabilities": {}, "skills": [{"id": "sql", "name": "SQL Query", "description": "Runs a query", "tags": ["db"],
            "examples": ["how many rows"]}, {"id": "sum", "name": "sum"}],
        }),
        json!({
            "name": "Routes", "description": "Plans routes", "version": "1.0", "capabilities": {},
            "supportedInterfaces": [{"url": "https://r.example/v1", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}, {"url": "https://r.example/grpc"}],
            "skills": [{"id": "plan", "name": "plan", "description": "Plans"}],
        }),
        json!({"id": "c1", "items": [{"id": "mail:send#0a1b2c3d", "label": "Send mail", "description": "Sends", "capability_id": "m"}]}),
        json!({"id": "d1", "timestamp": "2026-11-27T10:00:00Z", "selected_item_id": null, "choice_cards": [
            {"id": "c1", "context_hint": "One of these", "items": [{"id": "pages", "label": "Find pages", "description": "Finds pages"}]},
            {"id": "c2", "items": [{"id": "now", "label": "now", "description": "Says the time", "metadata": {"cost": 1}}]},
        ]}),
        json!([{"id": "org.app.find", "name": "Find", "version": "1.0.0", "description": "Finds", "input_schema_ref": "https://x.example/s"}]),
        json!([with("inputSchema", schema()), {"type": "function", "function": {"name": "other"}}]),
        json!([{"id": "billing.invoices.find", "kind": "tool", "name": "invoices_find", "description": "Finds invoices", "tags": ["billing", "read-only"],
            "namespace": "billing", "args_schema": schema(), "output_schema": null, "examples": ["all of May"], "constraints": {}, "side_effects": false,
            "cost_hint": 0.5, "metadata": {"owner": "desk"}, "depends_on": ["billing.login"]}, {"id": "close", "kind": "flow", "name": "close", "description": "Closes", "args_schema": {}}]),
    ];
    insta::assert_snapshot!(documents.iter().map(shown).collect::<Vec<_>>().join("\n"), @r#"
    mcp (1)
      mcp:weather#923c4785 | Says the weather |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}

    openai (1)
      mcp:weather#923c4785 | Says the weather |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}

    openai (1)
      mcp:now#e687c177 |  |
        metadata {"strict":true}

    openai-responses (2)
      mcp:code#8adf1122 |  |
        metadata {"format":{"type":"text"},"type":"custom"}
      mcp:weather#923c4785 |  |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}
        metadata {"strict":false}

    functions (1)
      mcp:weather#923c4785 | Says the weather |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}

    anthropic (1)
      mcp:weather#923c4785 | Says the weather |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}

    anthropic (1)
      mcp:weather#923c4785 |  |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}
        metadata {"cache_control":{"type":"ephemeral"}}

    gemini (1)
      mcp:weather#f6d64ad3 | Says the weather |
        {"type":"object","properties":{"city":{"type":["string","null"],"enum":["a",null]}}}

    gemini (2)
      mcp:now#e687c177 |  |
      mcp:weather#923c4785 | Says the weather |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}

    gemini (1)
      mcp:weather#f6d64ad3 | Says the weather |
        {"type":"object","properties":{"city":{"type":["string","null"],"enum":["a",null]}}}

    bedrock (1)
      mcp:weather#923c4785 | Says the weather |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}

    langchain (2)
      mcp:js#92d003c0 |  |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}
      mcp:weather#923c4785 | Says the weather |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}

    langchain (1)
      mcp:weather#724e694f | Says the weather |
        {"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","default":1}},"required":["city"]}

    llama-index (1)
      mcp:weather#923c4785 | Says |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}
        metadata {"return_direct":false}

    llama-index (1)
      mcp:weather#923c4785 | Says |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}

    smolagents (2)
      mcp:now#e687c177 |  |
        {"type":"object","properties":{},"required":[]}
        metadata {"output_type":"any"}
      mcp:weather#c419c6d9 | Says |
        {"type":"object","properties":{"city":{"type":"string","description":"Where"},"map":{}},"required":["city"]}
        metadata {"output_type":"string"}

    cohere (1)
      mcp:weather#90c69f43 | Says |
        {"type":"object","properties":{"city":{"type":"string"},"days":{"description":"Which","type":"array"},"unit":{}},"required":["city"]}

    vercel-ai (2)
      mcp:now#e687c177 | Says |
      mcp:weather#923c4785 | Says |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}

    vercel-ai (1)
      mcp:weather#923c4785 | Says |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}

    vercel-ai (1)
      mcp:weather#923c4785 |  |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}

    openai (1)
      mcp:weather#923c4785 | Says the weather |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}

    a2a (2)
      data-agent:sql#54d7dbcd | SQL Query: Runs a query | db
        {"type":"object","properties":{"message":{"type":"string","description":"What the agent is asked to do, in words"}},"required":["message"]}
        metadata {"url":"https://a.example/a2a"}
      data-agent:sum#4ed384af |  |
        {"type":"object","properties":{"message":{"type":"string","description":"What the agent is asked to do, in words"}},"required":["message"]}
        metadata {"url":"https://a.example/a2a"}

    a2a (1)
      routes:plan#4ac87933 | Plans |
        version -, server 1.0
        {"type":"object","properties":{"message":{"type":"string","description":"What the agent is asked to do, in words"}},"required":["message"]}
        metadata {"url":"https://r.example/v1"}

    weaver-spec (1)
      mail:send#24918ca4 | Send mail: Sends |
        metadata {"capability_id":"m"}

    weaver-spec (2)
      mcp:now#e687c177 | Says the time |
        metadata {"metadata":{"cost":1}}
      mcp:pages#6a52f8b9 | Find pages: Finds pages |

    weaver-spec (1)
      org:app.find#96c9de3b | Find: Finds |
        version 1.0.0, server -
        metadata {"input_schema_ref":"https://x.example/s"}

    mcp (1), openai (1)
      mcp:other#c0b7454d |  |
      mcp:weather#923c4785 | Says the weather |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}

    contextweaver-py (2)
      billing:invoices_find#7f379409 | Finds invoices | billing,read-only
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}
        metadata {"depends_on":["billing.login"],"id":"billing.invoices.find","owner":"desk"}
      mcp:close#d826463a | Closes |
        metadata {"id":"close","kind":"flow"}
    "#);
}

/// A flow of these steps, in a file of its own.
fn flow(kind: &str, steps: &Value) -> Value {
    json!({"type": kind, "name": "settle_order", "version": "1.2.0", "description": "Settles an order.", "steps": steps})
}

/// What is read of flows, a line for each part of an item that is not in [`shown`].
fn flows_of(document: &Value) -> String {
    let loaded = load_text("flows.json", &document.to_string(), Strictness::Strict).unwrap();
    let item = |item: &SelectableItem| {
        let SelectableItem { id, kind, name, server, tags, description, safety, side_effects, .. } = item;
        let tags = tags.join(",");
        let mut lines = format!("{id} | {} `{name}` of {server:?} | {tags} | {description}\n", kind.name());
        let told = [
            ("arguments", item.args_schema.as_deref().map(Value::to_string)),
            ("results", item.output_schema.as_deref().map(Value::to_string)),
            ("requires", (!item.requires.is_empty()).then(|| item.requires.join(" "))),
            ("provides", (!item.provides.is_empty()).then(|| item.provides.join(" "))),
            ("safety", (*safety != Safety::Undeclared).then(|| format!("{safety:?}, side effects: {side_effects}"))),
            ("metadata", Some(item.metadata.keys().cloned().collect::<Vec<_>>().join(" "))),
        ];
        let told = told.into_iter().filter_map(|(name, told)| Some(format!("  {name} {}\n", told?)));
        lines.extend(told);
        lines
    };
    let forms = loaded.sources.iter().map(|source| format!("{} ({})\n", source.format, source.definitions));
    forms.chain(loaded.catalog.items().iter().map(item)).collect()
}

#[test]
fn flows_are_tools() {
    let mapped = |tool: &str, input: Value| json!({"tool_name": tool, "input_mapping": input});
    let left = |mut step: Value, output: Value| {
        step["output_mapping"] = output;
        step
    };
    let line = [
        left(
            mapped("orders.find", json!({"id": "order", "region": "/shop/region", "limit": 3})),
            json!({"total": "sum"}),
        ),
        json!({"flow_name": "charge", "input_mapping": {"amount": "total", "card": "card", "key": "api_key"}, "on_error": "skip"}),
        mapped("mail.send", json!({"to": "address"})),
    ];
    let mut safe = flow("Flow", &json!(line));
    safe["format_version"] = json!("1");
    safe["dynamic_params"] = json!(["api_key"]);
    safe["input_schema_ref"] = json!("shop.models:Order");
    safe["safety"] = json!({"side_effects": "read", "requires_approval": true});
    safe["status"] = json!("needs_review");
    let graph = [
        json!({"step_id": "a", "tool_name": "fetch", "input_mapping": {"url": "url"}}),
        json!({"step_id": "b", "tool_name": "parse", "depends_on": ["a"], "input_mapping": {"text": "body"}}),
        json!({"step_id": "c", "step_type": "capability", "capability_id": "mail.send", "depends_on": ["a", "b"]}),
        json!({"step_id": "d", "tool_name": "log", "input_mapping": {"url": "url", "level": "level"}, "on_error": "fallback:print"}),
    ];
    let mut destructive = flow("DAGFlow", &json!(graph));
    destructive["safety"] = json!({"side_effects": "destructive"});
    destructive["server"] = json!("flows of the desk");
    let export = json!({"flows": [
        {"id": "customer_summary", "name": "Summarize a customer", "description": "Reads orders and invoices.", "version": "2.0",
            "input_schema": schema(), "output_schema": {"type": "object"}, "tags": ["customer", "read-only"]},
        {"id": "dunning", "name": "dunning", "description": "Reminds.", "inputs": schema(), "outputs": null},
        flow("Flow", &json!([{"tool_name": "a"}])),
    ]});
    let compiled = json!([{"flow_id": "org.close_month", "name": null, "version": null, "description": "Closes the month.",
        "input_schema_ref": "https://x.example/s", "tool_dependencies": ["ledger.close"], "side_effects": ["data_write"]}]);
    let documents = [safe, destructive, export, compiled];
    insta::assert_snapshot!(documents.iter().map(flows_of).collect::<Vec<_>>().join("\n"), @r#"
    ChainWeaver flows (1)
    chainweaver:settle_order@1.2.0 | tool `settle_order` of Some("chainweaver") | flow,needs-review,read-only | Settles an order.
      arguments {"type":"object","properties":{"order":{},"shop":{},"card":{}},"required":["order","shop"]}
      requires order shop
      provides total
      safety ReadOnly, side effects: false
      metadata dynamic_params format_version input_schema_ref kind safety status steps type

    ChainWeaver flows (1)
    flows-of-the-desk:settle_order@1.2.0 | tool `settle_order` of Some("flows of the desk") | destructive,flow | Settles an order.
      arguments {"type":"object","properties":{"url":{},"level":{}},"required":["url"]}
      requires url
      safety Destructive, side effects: true
      metadata kind safety steps type

    ChainWeaver flows (3)
    chainweaver:customer_summary@2.0 | tool `customer_summary` of Some("chainweaver") | customer,flow,read-only | Summarize a customer: Reads orders and invoices.
      arguments {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}
      results {"type":"object"}
      safety ReadOnly, side effects: false
      metadata kind
    chainweaver:dunning#cc36e32e | tool `dunning` of Some("chainweaver") | flow | Reminds.
      arguments {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}
      metadata kind
    chainweaver:settle_order@1.2.0 | tool `settle_order` of Some("chainweaver") | flow | Settles an order.
      metadata kind steps type

    ChainWeaver flows (1)
    chainweaver:org.close_month#bcda99fd | tool `org.close_month` of Some("chainweaver") | flow | Closes the month.
      metadata input_schema_ref kind side_effects tool_dependencies
    "#);
}

#[test]
fn flows_in_yaml_are_tools() {
    const WRITTEN: [&str; 5] = ["0.1", "0.2", "1.0.0+b1", "1.0.0+b2", "1.0.0+build/1"];
    let text = "type: Flow\nname: add\nversion: 0.1\nformat_version: 1\ndescription: Adds.\nsteps:\n  - tool_name: add\n    input_mapping: {left: left, right: 3}\n";
    let folder = tempfile::tempdir().unwrap();
    for (number, version) in WRITTEN.iter().enumerate() {
        let path = folder.path().join(format!("{number}.flow.yaml"));
        std::fs::write(path, text.replace("version: 0.1", &format!("version: {version}"))).unwrap();
    }
    let loaded = load(&[folder.path()], LoadOptions::default()).unwrap();
    let ids: Vec<&str> = loaded.catalog.items().iter().map(|item| item.id.as_str()).collect();
    let expected = ["0.1", "0.2", "1.0.0_b1", "1.0.0_b2", "1.0.0_build_1"];
    assert_eq!(ids, expected.map(|version| format!("chainweaver:add@{version}")));
    let whole: Vec<_> = loaded.catalog.items().iter().filter_map(|item| item.version.as_deref()).collect();
    assert_eq!(whole, WRITTEN);
    // A list of a server keeps them apart too, and whole.
    let listing = load_text("l.json", &mcp_listing(&loaded.catalog).to_string(), Strictness::Strict).unwrap().catalog;
    assert_eq!(versions(&listing), versions(&loaded.catalog));
    assert_eq!(mcp_listing(&listing), mcp_listing(&loaded.catalog));
    // What providers take has no place for what flows require.
    assert_eq!(ToolFormat::OpenAi.has_no_place_for(loaded.catalog.items())["requires"], WRITTEN.len());
    assert_eq!(ToolFormat::Mcp.has_no_place_for(loaded.catalog.items())["requires"], WRITTEN.len());
    // What is read is written, and read again.
    let native = load_text("n.json", &loaded.catalog.to_native_json(), Strictness::Strict).unwrap().catalog;
    assert_eq!(native.to_native_json(), loaded.catalog.to_native_json());
    assert_eq!(native.items()[0].requires, ["left"]);
}

#[test]
fn an_export_of_flows_is_read_beside_a_list_of_tools() {
    let flows = |flows: Value| {
        let document = json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}], "flows": flows});
        load_text("a.json", &document.to_string(), Strictness::Strict).map(|loaded| loaded.catalog.len())
    };
    assert_eq!(flows(json!([flow("Flow", &json!([{"tool_name": "x"}]))])).unwrap(), 2);
    // An id is a name too.
    assert_eq!(flows(json!([{"id": "a", "description": "Adds."}])).unwrap(), 2);
    let error = flows(json!([{"id": "a", "tags": "x"}])).unwrap_err().to_string();
    assert!(error.contains("a.json: flows[0] `a`: `tags` must be an array, not a string"), "{error}");
    // Drawings of other programs.
    assert_eq!(flows(json!([{"id": "a", "name": "a", "nodes": []}])).unwrap(), 1);
    let broken = json!({"flows": [5, flow("Flow", &json!([{"tool_name": "x"}]))]});
    let error = load_text("a.json", &broken.to_string(), Strictness::Strict).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("flows[0]: expected an object"), "{error}");
}

#[test]
fn a_flow_that_cannot_run_is_refused_with_its_place() {
    let step = |id: &str, after: &[&str]| json!({"step_id": id, "tool_name": "x", "depends_on": after});
    let many: Vec<Value> = (0..1_001).map(|_| json!({"tool_name": "x"})).collect();
    let with = |key: &str, value: Value| {
        let mut flow = flow("Flow", &json!([{"tool_name": "x"}]));
        flow[key] = value;
        flow
    };
    let documents = [
        flow("Flow", &json!([])),
        flow("Flow", &json!({"a": 1})),
        with("steps", Value::Null),
        with("type", json!("Graph")),
        with("type", Value::Null),
        with("name", json!(" ")),
        with("format_version", json!("2.0")),
        flow("Flow", &json!(["x"])),
        flow("Flow", &json!([{"tool_name": "x"}, {"input_mapping": {}}])),
        flow("Flow", &json!([{"tool_name": "x", "flow_name": "y"}])),
        flow("Flow", &json!([{"tool_name": "x", "input_mapping": "all"}])),
        flow("Flow", &json!([{"capability_id": "c", "step_type": "capability", "tool_name": null}])),
        flow("DAGFlow", &json!([{"tool_name": "x"}])),
        flow("DAGFlow", &json!([{"step_id": "a", "step_type": "capability"}])),
        flow("DAGFlow", &json!([step("a", &[]), step("a", &[])])),
        flow("DAGFlow", &json!([step("a", &["b"])])),
        flow("DAGFlow", &json!([step("a", &["c"]), step("b", &["a"]), step("c", &["b"]), step("d", &[])])),
        flow("Flow", &json!(many)),
        json!({"flows": [{"flow_id": "a"}, 3]}),
        json!({"flows": [{"flow_id": "a", "tags": "x"}]}),
        json!({"flows": []}),
        json!({"flows": [{"id": "drawing", "name": "d", "data": {"nodes": []}}]}),
    ];
    let messages = documents.iter().map(|document| {
        let message = load_text("a.json", &document.to_string(), Strictness::Strict).unwrap_err().to_string();
        message.split_once("a.json: ").unwrap().1.replace(", or leave it out with --lenient", "") + "\n"
    });
    insta::assert_snapshot!(messages.collect::<String>(), @r#"
    top level `settle_order`: `steps` is missing or empty; correct it
    top level `settle_order`: `steps` must be an array, not an object; correct it
    top level `settle_order`: `steps` is missing or empty; correct it
    top level `settle_order`: unknown `type` `Graph`; write `Flow`, or `DAGFlow` for steps with `depends_on`
    top level `settle_order`: `type` is missing, or is not a string; write `Flow`, or `DAGFlow` for steps with `depends_on`
    top level ` `: `name` is missing or empty; correct it
    top level `settle_order`: a flow of `format_version` 2.0; save it with a ChainWeaver that writes version 1
    top level `settle_order`: steps[0]: expected an object, not a string; correct it
    top level `settle_order`: steps[1]: a step needs one `tool_name` or `flow_name`, and has 0; correct it
    top level `settle_order`: steps[0]: a step needs one `tool_name` or `flow_name`, and has 2; correct it
    top level `settle_order`: steps[0]: `input_mapping` must be an object, not a string; correct it
    top level `settle_order`: steps[0]: a step needs one `tool_name` or `flow_name`, and has 0; correct it
    top level `settle_order`: steps[0]: `step_id` is missing or empty; correct it
    top level `settle_order`: steps[0]: a step needs one `capability_id`, and has 0; correct it
    top level `settle_order`: two steps have the `step_id` `a`; give each its own
    top level `settle_order`: step `a` depends on `b`, which is no step of the flow; correct it
    top level `settle_order`: its steps wait for each other, so none of them can be the first; correct `depends_on`
    top level `settle_order`: it has 1001 steps, over the limit of 1000; move some of them into a flow of their own
    flows[1]: expected an object, not a number; correct it
    flows[0]: `tags` must be an array, not a string; correct it
    top level: `flows` has no flow of ChainWeaver: an object with `steps`, or with an `id`; give a list of tools, such as an answer to `tools/list` or a file of `mcp capture`
    top level: `flows` has no flow of ChainWeaver: an object with `steps`, or with an `id`; give a list of tools, such as an answer to `tools/list` or a file of `mcp capture`
    "#);
    // A lenient load keeps the others of an export.
    let export = json!({"flows": [{"flow_id": "a"}, 3]}).to_string();
    let loaded = load_text("a.json", &export, Strictness::Lenient).unwrap();
    assert_eq!((loaded.catalog.len(), loaded.left_out.len()), (1, 1));
}

/// What `fastmcp inspect` writes of samples/server.py, which scripts/python-recipes compares with the real one.
const FASTMCP: &str = include_str!("samples/fastmcp.json");
const FASTMCP_AS_MCP: &str = include_str!("samples/fastmcp-as-mcp.json");

#[test]
fn what_fastmcp_inspects_is_read() {
    let read = |text: &str| load_text("inspected.json", text, Strictness::Strict).unwrap();
    let (own, mcp) = (read(FASTMCP), read(FASTMCP_AS_MCP));
    insta::assert_snapshot!(shown(&serde_json::from_str(FASTMCP).unwrap()), @r#"
    fastmcp (6)
      front-desk:cancel_booking#99e8e1fb | Cancel a booking and give its deposit back. | billing,destructive,rooms
        version -, server 1.2.0
        {"additionalProperties":false,"properties":{"booking_id":{"type":"string"}},"required":["booking_id"],"type":"object"}
        metadata {"meta":{"owner":"desk"}}
      front-desk:find_rooms#08ffb0b5 | Find free rooms. | read-only,rooms
        version -, server 1.2.0
        {"additionalProperties":false,"properties":{"beds":{"description":"How many beds are needed","type":"integer"},"quiet":{"default":false,"type":"boolean"}},"required":["beds"],"type":"object"}
        metadata {"annotations":{"title":"Find rooms"}}
      front-desk:now#e687c177 | The time at the desk. |
        version -, server 1.2.0
        {"additionalProperties":false,"properties":{},"type":"object"}
      prompt::front-desk:welcome#5c97c784 | A letter of welcome. | letters
        version -, server 1.2.0
        {"type":"object","properties":{"guest":{"description":"The name of the guest\n\nProvide a value matching the following JSON schema: {\"description\":\"The name of the guest\",\"type\":\"string\"}. Encode non-string values as JSON.","type":"string"},"language":{"type":"string"}},"required":["guest"]}
      resource::front-desk:rates#21e194cc | The rates of this season. | billing
        version -, server 1.2.0
        metadata {"mimeType":"application/json","uri":"desk://rates"}
      resource::front-desk:room#3636f05e | What is known of a room. |
        version -, server 1.2.0
        {"additionalProperties":false,"properties":{"number":{"type":"integer"}},"required":["number"],"type":"object"}
        metadata {"mimeType":"text/plain","uri":"desk://rooms/{number}"}
    "#);
    let line = |item: &SelectableItem| (item.id.clone(), item.server.clone(), item.description.clone(), item.safety);
    let mcp_lines: Vec<_> = mcp.catalog.items().iter().map(line).collect();
    let own_lines: Vec<_> = own.catalog.items().iter().map(line).collect();
    assert_eq!(own_lines, mcp_lines);
    // MCP does not say what the places in the URI of a template take.
    let of_both = own.catalog.items().iter().filter_map(|own| Some((own, mcp.catalog.get(&own.id)?)));
    for (own, mcp) in of_both.filter(|(own, _)| own.name != "room") {
        assert_eq!((&own.args_schema, &own.output_schema), (&mcp.args_schema, &mcp.output_schema), "{}", own.id);
    }
    // Written as MCP's, it is what a server lists.
    let listed = mcp_listing(&own.catalog);
    assert_eq!(listed.pointer("/resources/0/mimeType"), Some(&json!("application/json")), "{listed:#}");
    assert_eq!(listed.pointer("/tools/0/server"), Some(&json!("Front Desk")), "{listed:#}");
}

#[test]
fn the_name_of_a_server_is_a_text_or_in_an_object() {
    let tool = json!({"name": "now", "inputSchema": {"type": "object"}});
    let server = |document: Value| match load_text("a.json", &document.to_string(), Strictness::Strict) {
        Ok(loaded) => loaded.catalog.items()[0].server.clone().unwrap_or_else(|| "-".to_owned()),
        Err(error) => error.to_string().rsplit_once(": ").unwrap().1.to_owned(),
    };
    let named = |key: &str, value: Value| server(json!({key: value, "tools": [tool]}));
    assert_eq!(named("server", json!("a")), "a");
    assert_eq!(named("server", json!({"name": "a", "version": "1"})), "a");
    assert_eq!(named("server", json!({"version": "1"})), "-");
    assert_eq!(named("server", Value::Null), "-");
    assert_eq!(named("serverInfo", json!({"name": "a", "title": null})), "a");
    assert_eq!(named("serverInfo", json!([1])), "-");
    assert_eq!(server(json!({"server": "b", "serverInfo": {"name": "a"}, "tools": [tool]})), "b");
    insta::assert_snapshot!(named("server", json!(7)), @"`server` must be a string, or an object with a string `name`; correct it, or leave it out with --lenient");
    insta::assert_snapshot!(named("server", json!({"name": 7})), @"`server` must be a string, or an object with a string `name`; correct it, or leave it out with --lenient");
}

/// Documents that give versions, in each place that a form has for them.
fn versioned() -> Vec<Value> {
    let tool = |members: Value| {
        let mut tool = json!({"name": "t", "description": "d", "inputSchema": {"type": "object"}});
        tool.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        tool
    };
    let listed = json!([tool(json!({})), tool(json!({"name": "u", "server": "other"}))]);
    vec![
        json!([tool(json!({"_meta": {"version": "1.4.0"}}))]),
        json!([tool(json!({"_meta": {"version": "1.4 beta"}, "version": "1.3"}))]),
        json!([tool(json!({"_meta": {"fastmcp": {"version": "2.0", "tags": []}}}))]),
        json!([tool(json!({"version": " 3.1 ", "serverVersion": 7, "server": "s"}))]),
        json!([tool(json!({"version": {"major": 1}, "_meta": {"version": "x\ny"}}))]),
        json!([tool(json!({"version": "", "serverVersion": "v".repeat(101)}))]),
        json!({"serverInfo": {"name": "s", "version": "0.9"}, "tools": listed}),
        json!({"server": {"name": "s", "version": 2}, "serverInfo": {"version": "0.9"}, "tools": listed, "prompts": [{"name": "p", "version": "5"}]}),
        json!({"server": {"name": "s", "version": "2.0"}, "tools": [{"key": "tool:t@1.1", "name": "t", "version": "1.1", "input_schema": {"type": "object"}}],
            "resources": [{"key": "resource:a:b@4", "uri": "a:b", "name": "b"}]}),
        json!([{"name": "t", "description": "d", "version": "1.0.0", "input_schema": {"type": "object"}}]),
        json!({"name": "a", "url": "https://a.example", "version": "3.0", "capabilities": {}, "skills": [{"id": "s", "name": "s"}, {"id": "t", "name": "t", "version": "2"}]}),
        json!({"openapi": "3.1.0", "info": {"title": "s", "version": 1.5}, "paths": {"/t": {"get": {"operationId": "t"}}}}),
        json!([{"id": "org.t", "name": "T", "version": "1.0.0", "description": "d", "input_schema_ref": "https://x.example/s"}]),
        json!([{"id": "t", "kind": "tool", "name": "t", "namespace": "s", "description": "d", "version": "6"}]),
        json!({"schema": 1, "items": [{"name": "t", "namespace": "s", "version": "8", "server_version": "9"}]}),
    ]
}

/// The ids of a catalog with their versions and those of their servers.
fn versions(catalog: &Catalog) -> Vec<String> {
    let line = |item: &SelectableItem| format!("{} {:?} {:?}", item.id, item.version, item.server_version);
    catalog.items().iter().map(line).collect()
}

#[test]
fn versions_are_found_where_a_form_has_them() {
    let shown = |document: &Value| {
        let catalog = load_text("a.json", &document.to_string(), Strictness::Strict).unwrap().catalog;
        // The native form has them, and only as fields of their own.
        let native = catalog.to_native_json();
        let again = load_text("b.json", &native, Strictness::Strict).unwrap().catalog;
        assert_eq!((versions(&again), again.to_native_json()), (versions(&catalog), native));
        // So have the lists of servers that are written here, where the id is made anew.
        let listing = load_text("c.json", &mcp_listing(&catalog).to_string(), Strictness::Strict).unwrap().catalog;
        let of = |catalog: &Catalog| -> Vec<_> {
            catalog
                .items()
                .iter()
                .map(|item| (item.name.clone(), item.version.clone(), item.server_version.clone()))
                .collect()
        };
        assert_eq!(of(&listing), of(&catalog));
        versions(&catalog).join("\n") + "\n"
    };
    insta::assert_snapshot!(versioned().iter().map(shown).collect::<String>(), @r#"
    mcp:t@1.4.0 Some("1.4.0") None
    mcp:t#d58d7ad5 Some("1.4 beta") None
    mcp:t#d58d7ad5 Some("2.0") None
    s:t#d58d7ad5 Some("3.1") Some("7")
    mcp:t#d58d7ad5 None None
    mcp:t#d58d7ad5 None None
    other:u#713abce8 None None
    s:t#d58d7ad5 None Some("0.9")
    other:u#713abce8 None None
    prompt::s:p#c758fcaa Some("5") Some("2")
    s:t#d58d7ad5 None Some("2")
    resource::s:b@4 Some("4") Some("2.0")
    s:t@1.1 Some("1.1") Some("2.0")
    mcp:t#d58d7ad5 Some("1.0.0") None
    a:s#2ac7154f None Some("3.0")
    a:t#633700d8 Some("2") Some("3.0")
    s:t#d58d7ad5 None Some("1.5")
    org:t#6bd9fe15 Some("1.0.0") None
    s:t#d58d7ad5 Some("6") None
    s:t#d58d7ad5 Some("8") Some("9")
    "#);
    let skill = |front: &str| {
        let loaded =
            load_text("SKILL.md", &skill(&format!("name: x\ndescription: y\n{front}")), Strictness::Strict).unwrap();
        (loaded.catalog.items()[0].version.clone(), json!(loaded.catalog.items()[0].metadata["license"]))
    };
    let both = "license: MIT\nversion: 1.2\nmetadata: {version: \"2\"}";
    assert_eq!(skill(both), (Some("1.2".to_owned()), json!("MIT")));
    assert_eq!(skill("license: MIT\nmetadata: {version: 2.0.1}"), (Some("2.0.1".to_owned()), json!("MIT")));
}

#[test]
fn versions_are_written_where_a_form_has_a_place() {
    let tools = [
        json!({"name": "a", "server": "s", "serverVersion": "3", "version": "1.0", "input_schema": {"type": "object"}}),
        json!({"name": "b", "server": "s", "input_schema": {"type": "object"}}),
    ];
    let catalog = Catalog::from_values(&tools, None).unwrap();
    assert_eq!(
        catalog.items()[0].id,
        Catalog::from_values(&[json!({"name": "a", "server": "s", "input_schema": {"type": "object"}})], None)
            .unwrap()
            .items()[0]
            .id
    );
    insta::assert_snapshot!(mcp_listing(&catalog), @r#"{"tools":[{"name":"a","inputSchema":{"type":"object"},"version":"1.0","server":"s","serverVersion":"3"},{"name":"b","inputSchema":{"type":"object"},"server":"s"}]}"#);
    let cards = ToolFormat::WeaverSpec.write(catalog.items(), &CallNames::as_they_are()).unwrap();
    assert_eq!(
        cards.pointer("/0/items/0/metadata/contextweaver"),
        Some(&json!({"kind": "tool", "server": "s", "version": "1.0"}))
    );
    let read = load_text("a.json", &cards.to_string(), Strictness::Strict).unwrap().catalog;
    assert_eq!((&read.items()[0].id, read.items()[0].version.as_deref()), (&catalog.items()[0].id, Some("1.0")));
    // A request has no place for them, and that of the server is told with the server.
    for format in ToolFormat::WRITTEN {
        let request = format.write(catalog.items(), &CallNames::as_they_are()).map(|list| list.to_string());
        let said = format.has_no_place_for(catalog.items());
        let has = !["openai", "openai-responses", "anthropic", "gemini"].contains(&format.key());
        assert_eq!(!said.contains_key("version"), has, "{format}");
        assert!(request.is_none_or(|text| text.contains("version") == (format == ToolFormat::WeaverSpec)), "{format}");
    }
}

/// A member of a live server keeps its bytes, whatever members it has.
#[test]
fn a_live_resource_with_a_key_is_one_of_mcp() {
    let raw = |text: &str| serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
    let (resources, prompts) = ([raw(r#"{"uri":"a:b","name":"b","key":"x"}"#)], [raw(r#"{"name":"p","key":"x"}"#)]);
    let listing = crate::catalog::Listing { server: "s", tools: &[], resources: &resources, prompts: &prompts };
    let (items, left_out) = crate::catalog::load_listings(&[listing]);
    assert!(left_out.is_empty() && items.len() == 2 && items.iter().all(|item| item.raw.is_some()), "{items:?}");
}

fn pets() -> Value {
    json!({
        "openapi": "3.0.3",
        "info": {"title": "Pet Store", "version": "1", "description": "Everything about pets.\n\nLong text."},
        "servers": [{"url": "https://pets.example/v1"}],
        "paths": {
            "/pets/{id}": {
                "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
                "get": {"operationId": "getPet", "summary": "Get a pet.", "description": "Get a pet by its number.", "tags": ["pets"],
                    "parameters": [{"$ref": "#/components/parameters/Verbose"}, {"name": "Accept", "in": "header"}]},
                "put": {"summary": "Change a pet", "requestBody": {"required": true, "content": {"application/json":
                    {"schema": {"$ref": "#/components/schemas/Pet"}}}}},
                "delete": {"operationId": "deletePet", "deprecated": true, "parameters": [
                    {"name": "id", "in": "query", "schema": {"type": "string"}, "description": "Why"}]},
            },
            "/pets": {
                "post": {"operationId": "addPet", "description": "Adds", "requestBody": {"required": true, "content": {"application/json":
                    {"schema": {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"type": "object", "properties": {"owner": {"type": "string"}}, "required": ["owner"]}]}}}}},
                "patch": {"operationId": "changePets", "requestBody": {"content": {"multipart/form-data":
                    {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}}}, "description": "All of them"}},
            },
            "/trees": {"$ref": "#/components/pathItems/Trees"},
        },
        "components": {
            "parameters": {"Verbose": {"name": "verbose", "in": "query", "description": "Say more",
                "schema": {"type": "boolean", "example": true, "xml": {"name": "v"}}}},
            "pathItems": {"Trees": {"post": {"operationId": "plant", "requestBody": {"content": {"application/json":
                {"schema": {"$ref": "#/components/schemas/Tree"}}}}}}},
            "schemas": {
                "Pet": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string", "nullable": true, "description": "Called"},
                    "age": {"type": "integer", "minimum": 0, "exclusiveMinimum": true},
                    "kind": {"$ref": "#/components/schemas/Kind"}}},
                "Kind": {"type": "string", "enum": ["cat", "dog"]},
                "Tree": {"type": "object", "properties": {"nullable": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}}},
            },
        },
    })
}

#[test]
fn the_summary_of_an_operation_is_a_sentence() {
    let described = |summary: &str| {
        let document = json!({"openapi": "3.1.0", "info": {"title": "T"}, "paths": {"/f": {"get": {"summary": summary, "description": "Anyone may."}}}});
        load_text("a.json", &document.to_string(), Strictness::Strict).unwrap().catalog.items()[0].description.clone()
    };
    for (summary, expected) in [
        ("Open an issue", "Open an issue.\n\nAnyone may."),
        ("Open `it`", "Open `it`.\n\nAnyone may."),
        ("Open it.", "Open it.\n\nAnyone may."),
        ("Open it?", "Open it?\n\nAnyone may."),
        ("打开。", "打开。\n\nAnyone may."),
    ] {
        assert_eq!(described(summary), expected);
    }
}

#[test]
fn operations_are_tools() {
    insta::assert_snapshot!(shown(&pets()), @r##"
    openapi (6)
      pet-store:addPet#169b50f7 | Adds |
        version -, server 1
        {"type":"object","properties":{"name":{"type":["string","null"],"description":"Called"},"age":{"type":"integer","exclusiveMinimum":0},"kind":{"type":"string","enum":["cat","dog"]},"owner":{"type":"string"}},"required":["name","owner"]}
        metadata {"method":"post","path":"/pets","servers":["https://pets.example/v1"]}
      pet-store:changePets#776b86df | PATCH /pets |
        version -, server 1
        {"type":"object","properties":{"body":{"type":"array","items":{"type":"object","required":["name"],"properties":{"name":{"type":["string","null"],"description":"Called"},"age":{"type":"integer","exclusiveMinimum":0},"kind":{"type":"string","enum":["cat","dog"]}}},"description":"All of them"}}}
        metadata {"arguments":{"body":"body"},"content_type":"multipart/form-data","method":"patch","path":"/pets","servers":["https://pets.example/v1"]}
      pet-store:deletePet#94ef2cc6 | DELETE /pets/{id} | deprecated,destructive
        version -, server 1
        {"type":"object","properties":{"id":{"type":"integer"},"query_id":{"type":"string","description":"Why"}},"required":["id"]}
        metadata {"arguments":{"id":"path","query_id":{"in":"query","name":"id"}},"method":"delete","path":"/pets/{id}","servers":["https://pets.example/v1"]}
      pet-store:getPet#94eb547b | Get a pet by its number. | pets,read-only
        version -, server 1
        {"type":"object","properties":{"id":{"type":"integer"},"verbose":{"type":"boolean","description":"Say more","examples":[true]}},"required":["id"]}
        metadata {"arguments":{"id":"path","verbose":"query"},"method":"get","path":"/pets/{id}","servers":["https://pets.example/v1"]}
      pet-store:plant#35811994 | POST /trees |
        version -, server 1
        {"type":"object","properties":{"nullable":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/Tree"}}},"$defs":{"Tree":{"type":"object","properties":{"nullable":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/Tree"}}}}}}
        metadata {"method":"post","path":"/trees","servers":["https://pets.example/v1"]}
      pet-store:put_pets_id#eaf3422c | Change a pet |
        version -, server 1
        {"type":"object","properties":{"id":{"type":"integer"},"name":{"type":["string","null"],"description":"Called"},"age":{"type":"integer","exclusiveMinimum":0},"kind":{"type":"string","enum":["cat","dog"]}},"required":["id","name"]}
        metadata {"arguments":{"id":"path"},"method":"put","path":"/pets/{id}","servers":["https://pets.example/v1"]}
    "##);
    let loaded = load_text("a.json", &pets().to_string(), Strictness::Strict).unwrap();
    let pet = loaded.catalog.items().iter().find(|item| item.name == "getPet").unwrap();
    assert_eq!((pet.server.as_deref(), pet.safety), (Some("Pet Store"), Safety::ReadOnly));
    assert_eq!(pet.server_description.as_deref(), Some("Everything about pets."));
    assert!(pet.raw.is_none());
}

#[cfg(feature = "yaml")]
#[test]
fn operations_in_yaml_are_tools() {
    let yaml = "openapi: 3.1\ninfo: {title: Clock, version: 1.0}\npaths:\n  /now:\n    get:\n      operationId: now\n      responses:\n        200: {description: The time}\n";
    let loaded = load_text("a.yaml", yaml, Strictness::Strict).unwrap();
    assert_eq!(loaded.catalog.items()[0].id, "clock:now#e687c177");
    assert_eq!(loaded.sources[0].format, ToolFormat::OpenApi);
}

#[test]
fn what_is_no_tool_is_refused_with_its_place() {
    let documents = [
        json!([{"type": "tool", "description": "d"}]),
        json!([{"type": "haystack.tools.tool.Tool", "data": {"name": "x", "description": "d", "parameters": schema()}}]),
        json!([{"type": "function", "function": {"description": "nameless"}}]),
        json!([{"type": "function", "function": {"name": "x", "parameters": [1]}}]),
        json!([{"functionDeclarations": [{"name": "x"}, {"name": "y", "parametersJsonSchema": 3}]}]),
        json!([{"name": "x", "input_schema": "object"}]),
        json!([{"lc": 1, "type": "not_implemented", "id": ["a"]}]),
        json!({"tools": {"x": {"description": "d", "inputSchema": 3}}}),
        json!([{"metadata": {"name": "x"}, "fn_schema_str": "{"}]),
        json!({"name": "a", "url": "u", "skills": [{"id": "x", "tags": 3}]}),
        json!({"swagger": "2.0", "info": {}, "paths": {}}),
        json!({"openapi": "4.0", "paths": {}}),
        json!({"openapi": "3.0.0", "paths": {"/a": {"get": 3}}}),
        json!({"openapi": "3.0.0", "paths": {"/a": {"get": {"parameters": [{"name": "x"}]}}}}),
        json!({"openapi": "3.0.0", "paths": {"/a": {"get": {"parameters": [{"$ref": "other.yaml#/x"}]}}}}),
        json!({"openapi": "3.0.0", "paths": {"/a": {"$ref": "#/paths/~1a"}}}),
        json!({"openapi": "3.0.0", "paths": {}}),
        json!({"functions": 3}),
    ];
    let messages = documents.iter().map(|document| {
        let message = load_text("a.json", &document.to_string(), Strictness::Strict).unwrap_err().to_string();
        message.split_once("a.json: ").unwrap().1.replace(", or leave it out with --lenient", "") + "\n"
    });
    insta::assert_snapshot!(messages.collect::<String>(), @r#"
    tools[0]: a definition of the type `tool` has no `name`; give it one, or remove it
    tools[0]: a definition of the type `haystack.tools.tool.Tool` is of no known form; write it as MCP has it: `name`, `description` and `inputSchema`
    tools[0]: `name` is missing or empty; correct it
    tools[0] `x`: `parameters` must be an object, not an array; correct it
    tools[0].functionDeclarations[1] `y`: `parametersJsonSchema` must be an object, not a number; correct it
    tools[0] `x`: `input_schema` must be an object, not a string; correct it
    tools[0]: a LangChain dump without a schema; write the tool's `name`, `description` and `args_schema`
    tools["x"]: `inputSchema` must be an object, not a number; correct it
    tools[0] `x`: `fn_schema_str` is not a schema: EOF while parsing an object at line 1 column 1; correct it
    skills[0] `x`: `tags` must be an array, not a number; correct it
    top level: a document of Swagger 2.0; convert it to OpenAPI 3.0 or 3.1
    top level: a document of OpenAPI 4.0; convert it to OpenAPI 3.0 or 3.1
    paths["/a"].get `get_a`: expected an object, not a number; correct it
    paths["/a"].get `get_a`: a parameter has no `name`, or its `in` is not one of path, query, header, cookie, querystring; correct it
    paths["/a"].get `get_a`: `other.yaml#/x` points to nothing in the document; bundle the document into one file
    paths["/a"]: its references keep leading to further references; correct it
    no tools, resources or prompts are listed
    functions: invalid type: integer `3`, expected a sequence; correct it
    "#);
}

#[test]
fn a_shortlist_is_written_as_the_list_of_a_request() {
    let tools = [
        json!({"name": "git.log", "server": "git", "description": "Shows", "inputSchema": {"properties": {"n": {"type": "integer"}}}, "annotations": {"readOnlyHint": true}, "title": "Log"}),
        json!({"type": "function", "function": {"name": "search", "strict": true, "parameters": schema()}, "server": "a"}),
        json!({"name": "search", "server": "b", "description": "Searches"}),
    ];
    let catalog = Catalog::from_values(&tools, None).unwrap();
    let written = ToolFormat::WRITTEN.iter().filter_map(|format| {
        let names = CallNames::new(catalog.items(), *format);
        Some(format!("{}\n{}\n", format.key(), format.write(catalog.items(), &names)?))
    });
    insta::assert_snapshot!(written.collect::<String>(), @r#"
    openai
    [{"type":"function","function":{"name":"a_search","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}},{"type":"function","function":{"name":"b_search","description":"Searches"}},{"type":"function","function":{"name":"git_log","description":"Shows","parameters":{"type":"object","properties":{"n":{"type":"integer"}}}}}]
    openai-responses
    [{"type":"function","name":"a_search","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"strict":false},{"type":"function","name":"b_search","description":"Searches","parameters":{"type":"object","properties":{}},"strict":false},{"type":"function","name":"git_log","description":"Shows","parameters":{"type":"object","properties":{"n":{"type":"integer"}}},"strict":false}]
    anthropic
    [{"name":"a_search","input_schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}},{"name":"b_search","description":"Searches","input_schema":{"type":"object","properties":{}}},{"name":"git_log","description":"Shows","input_schema":{"type":"object","properties":{"n":{"type":"integer"}}}}]
    gemini
    [{"functionDeclarations":[{"name":"a_search","parametersJsonSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}},{"name":"b_search","description":"Searches"},{"name":"git_log","description":"Shows","parametersJsonSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}]}]
    mcp
    [{"name":"a_search","inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}},{"name":"b_search","description":"Searches","inputSchema":{"type":"object"}},{"name":"git.log","description":"Shows","inputSchema":{"properties":{"n":{"type":"integer"}}},"annotations":{"readOnlyHint":true},"title":"Log"}]
    weaver-spec
    [{"id":"card-82aa585dedb56f7e","items":[{"id":"a:search#c779c45a","label":"search","description":"search","capability_id":"a:search#c779c45a","metadata":{"contextweaver":{"kind":"tool","server":"a"}}},{"id":"b:search#6f6573d7","label":"search","description":"Searches","capability_id":"b:search#6f6573d7","metadata":{"contextweaver":{"kind":"tool","server":"b"}}},{"id":"git:log#49d03628","label":"git.log","description":"Shows","capability_id":"git:log#49d03628","metadata":{"contextweaver":{"kind":"tool","server":"git","tags":["read-only"]}}}]}]
    "#);
    insta::assert_snapshot!(mcp_listing(&catalog).to_string(), @r#"{"tools":[{"name":"search","inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"server":"a"},{"name":"search","description":"Searches","inputSchema":{"type":"object"},"server":"b"},{"name":"git.log","description":"Shows","inputSchema":{"properties":{"n":{"type":"integer"}}},"annotations":{"readOnlyHint":true},"title":"Log","server":"git"}]}"#);
    let none = ToolFormat::Gemini.write([], &CallNames::as_they_are()).unwrap();
    assert_eq!((none, ToolFormat::OpenApi.write([], &CallNames::as_they_are())), (json!([]), None));
}

/// Tools as providers refuse them: from servers, from OpenAPI documents, and from generators of schemas.
fn refused() -> Vec<Value> {
    let tool =
        |name: &str, schema: Value| json!({"name": name, "description": "Does", "server": "s", "inputSchema": schema});
    let text = json!({"type": "string"});
    vec![
        tool(
            "filters",
            json!({"type": "object", "properties": {
            "filter[name]": text, "$top": {"type": "integer"}, "top": {"$ref": "#/properties/$top"}, "ключ": text,
            "a b": text, "a[b]": text, "inner": {"type": "object", "properties": {"$top": text}},
            "same": {"$ref": "#/properties/filter%5Bname%5D"},
        }, "required": ["filter[name]", "top"], "dependentRequired": {"$top": ["filter[name]"]}}),
        ),
        tool(
            "either",
            json!({"anyOf": [
                {"type": "object", "properties": {"kind": {"const": "route"}, "route": text}, "required": ["kind", "route"]},
                {"type": "object", "properties": {"kind": {"const": "file"}, "path": text}, "required": ["kind", "path"]},
                {"type": "null"},
            ]}),
        ),
        tool(
            "one",
            json!({"type": "object", "properties": {"k": text}, "oneOf": [{"required": ["k"]}, {"properties": {"z": text}, "required": ["z"]}]}),
        ),
        tool(
            "all",
            json!({"allOf": [{"$ref": "#/$defs/paged"}, {"properties": {"q": text, "page": {"minimum": 1}}, "required": ["q"]}],
            "$defs": {"paged": {"type": "object", "properties": {"page": {"type": "integer"}}}}}),
        ),
        tool(
            "refers",
            json!({"$ref": "#/definitions/A", "definitions": {"A": {"type": "object", "description": "An A",
            "properties": {"q": text}, "required": ["q"], "additionalProperties": false}}}),
        ),
        tool("nullable", json!({"type": ["object", "null"], "properties": {"q": text}})),
        tool(
            "older",
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": {
            "n": {"type": "integer", "minimum": 0, "exclusiveMinimum": true},
            "pair": {"type": "array", "items": [text, {"type": "integer"}], "additionalItems": false, "minItems": 2}}}),
        ),
        tool(
            "lists",
            json!({"type": "object", "properties": {"xs": {"type": "array"}, "m": {"type": ["string", "array"]},
            "box": {"type": "array", "prefixItems": [text]}, "default": {"default": {"type": "array"}}}}),
        ),
        tool("array", json!({"type": "array", "items": text})),
        tool("itself", json!({"$ref": "#"})),
        tool("invalid", json!({"type": "object", "properties": {"a": {"type": "any"}}})),
        json!({"type": "custom", "name": "code", "description": "Runs", "server": "s", "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"}}),
        tool("plain", json!({"properties": {"a.b-c": text}})),
    ]
}

#[test]
fn what_a_provider_refuses_is_written_so_that_it_is_taken() {
    let catalog = Catalog::from_values(&refused(), None).unwrap();
    let shown = |format: ToolFormat| {
        let names = CallNames::new(catalog.items(), format);
        let Written { document, notes } = format.write_noted(catalog.items(), &names).unwrap();
        let list = document.pointer("/0/functionDeclarations").unwrap_or(&document).as_array().unwrap().clone();
        let lines: String = list.iter().map(|tool| format!("{tool}\n")).collect();
        format!("{lines}{}\n", notes.join("\n"))
    };
    insta::assert_snapshot!(shown(ToolFormat::Anthropic), @r##"
    {"name":"all","description":"Does","input_schema":{"type":"object","properties":{"page":{"allOf":[{"type":"integer"},{"minimum":1}]},"q":{"type":"string"}},"required":["q"],"$defs":{"paged":{"type":"object","properties":{"page":{"type":"integer"}}}}}}
    {"name":"either","description":"Does\n\nOne of these sets of arguments is required: `kind`, `route`; `kind`, `path`.","input_schema":{"type":"object","properties":{"kind":{"anyOf":[{"const":"route"},{"const":"file"}]},"route":{"type":"string"},"path":{"type":"string"}},"required":["kind"]}}
    {"name":"filters","description":"Does","input_schema":{"type":"object","properties":{"filter_name":{"type":"string"},"top_81bf98e4":{"type":"integer"},"top":{"$ref":"#/properties/top_81bf98e4"},"_1de36a32":{"type":"string"},"a_b_c8687a08":{"type":"string"},"a_b_26974bc5":{"type":"string"},"inner":{"type":"object","properties":{"$top":{"type":"string"}}},"same":{"$ref":"#/properties/filter_name"}},"required":["filter_name","top"],"dependentRequired":{"top_81bf98e4":["filter_name"]}}}
    {"name":"lists","description":"Does","input_schema":{"type":"object","properties":{"xs":{"type":"array"},"m":{"type":["string","array"]},"box":{"type":"array","prefixItems":[{"type":"string"}]},"default":{"default":{"type":"array"}}}}}
    {"name":"nullable","description":"Does","input_schema":{"type":"object","properties":{"q":{"type":"string"}}}}
    {"name":"older","description":"Does","input_schema":{"type":"object","properties":{"n":{"type":"integer","exclusiveMinimum":0},"pair":{"type":"array","items":false,"minItems":2,"prefixItems":[{"type":"string"},{"type":"integer"}]}}}}
    {"name":"one","description":"Does\n\nOne of these sets of arguments is required: `k`; `z`.","input_schema":{"type":"object","properties":{"k":{"type":"string"},"z":{"type":"string"}}}}
    {"name":"plain","description":"Does","input_schema":{"type":"object","properties":{"a.b-c":{"type":"string"}}}}
    {"name":"refers","description":"Does","input_schema":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"definitions":{"A":{"type":"object","description":"An A","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}},"description":"An A","additionalProperties":false}}
    made one object of the schemas at the root, for 5 tools: s:all#48ec6e47 (`allOf`), s:either#c9663e8b (`anyOf`), s:nullable#14339eb0 (`type`), s:one#18919bee (`oneOf`), s:refers#216583bd (`$ref`)
    left out 2 tools, whose arguments are not an object: s:array#24854f7d, s:itself#1fe3f330
    left out 1 tool, called with a text in place of arguments: s:code#8adf1122
    renamed arguments of 1 tool (put the names back in calls): s:filters#2a5ab8b3 (`ключ`, `a[b]`, `a b`, `filter[name]`, `$top`)
    left out 1 tool, whose argument schema is not valid: s:invalid#4dab62c5
    rewrote keywords of older drafts of JSON Schema, for 1 tool: s:older#45559a8e
    "##);
    insta::assert_snapshot!(shown(ToolFormat::OpenAi), @r##"
    {"type":"function","function":{"name":"all","description":"Does","parameters":{"type":"object","properties":{"page":{"allOf":[{"type":"integer"},{"minimum":1}]},"q":{"type":"string"}},"required":["q"],"$defs":{"paged":{"type":"object","properties":{"page":{"type":"integer"}}}}}}}
    {"type":"function","function":{"name":"either","description":"Does\n\nOne of these sets of arguments is required: `kind`, `route`; `kind`, `path`.","parameters":{"type":"object","properties":{"kind":{"anyOf":[{"const":"route"},{"const":"file"}]},"route":{"type":"string"},"path":{"type":"string"}},"required":["kind"]}}}
    {"type":"function","function":{"name":"filters","description":"Does","parameters":{"type":"object","properties":{"filter[name]":{"type":"string"},"$top":{"type":"integer"},"top":{"$ref":"#/properties/$top"},"ключ":{"type":"string"},"a b":{"type":"string"},"a[b]":{"type":"string"},"inner":{"type":"object","properties":{"$top":{"type":"string"}}},"same":{"$ref":"#/properties/filter%5Bname%5D"}},"required":["filter[name]","top"],"dependentRequired":{"$top":["filter[name]"]}}}}
    {"type":"function","function":{"name":"lists","description":"Does","parameters":{"type":"object","properties":{"xs":{"type":"array","items":{}},"m":{"type":["string","array"],"items":{}},"box":{"type":"array","prefixItems":[{"type":"string"}],"items":{}},"default":{"default":{"type":"array"}}}}}}
    {"type":"function","function":{"name":"nullable","description":"Does","parameters":{"type":"object","properties":{"q":{"type":"string"}}}}}
    {"type":"function","function":{"name":"older","description":"Does","parameters":{"type":"object","properties":{"n":{"type":"integer","exclusiveMinimum":0},"pair":{"type":"array","items":false,"minItems":2,"prefixItems":[{"type":"string"},{"type":"integer"}]}}}}}
    {"type":"function","function":{"name":"one","description":"Does\n\nOne of these sets of arguments is required: `k`; `z`.","parameters":{"type":"object","properties":{"k":{"type":"string"},"z":{"type":"string"}}}}}
    {"type":"function","function":{"name":"plain","description":"Does","parameters":{"type":"object","properties":{"a.b-c":{"type":"string"}}}}}
    {"type":"function","function":{"name":"refers","description":"Does","parameters":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"definitions":{"A":{"type":"object","description":"An A","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}},"description":"An A","additionalProperties":false}}}
    made one object of the schemas at the root, for 5 tools: s:all#48ec6e47 (`allOf`), s:either#c9663e8b (`anyOf`), s:nullable#14339eb0 (`type`), s:one#18919bee (`oneOf`), s:refers#216583bd (`$ref`)
    left out 2 tools, whose arguments are not an object: s:array#24854f7d, s:itself#1fe3f330
    left out 1 tool, called with a text in place of arguments: s:code#8adf1122
    left out 1 tool, whose argument schema is not valid: s:invalid#4dab62c5
    added `items` to arrays without them, for 1 tool: s:lists#2e3cd5ba
    rewrote keywords of older drafts of JSON Schema, for 1 tool: s:older#45559a8e
    "##);
    insta::assert_snapshot!(shown(ToolFormat::Gemini), @r##"
    {"name":"all","description":"Does","parametersJsonSchema":{"type":"object","properties":{"page":{"allOf":[{"type":"integer"},{"minimum":1}]},"q":{"type":"string"}},"required":["q"],"$defs":{"paged":{"type":"object","properties":{"page":{"type":"integer"}}}}}}
    {"name":"either","description":"Does\n\nOne of these sets of arguments is required: `kind`, `route`; `kind`, `path`.","parametersJsonSchema":{"type":"object","properties":{"kind":{"anyOf":[{"const":"route"},{"const":"file"}]},"route":{"type":"string"},"path":{"type":"string"}},"required":["kind"]}}
    {"name":"filters","description":"Does","parametersJsonSchema":{"type":"object","properties":{"filter[name]":{"type":"string"},"$top":{"type":"integer"},"top":{"$ref":"#/properties/$top"},"ключ":{"type":"string"},"a b":{"type":"string"},"a[b]":{"type":"string"},"inner":{"type":"object","properties":{"$top":{"type":"string"}}},"same":{"$ref":"#/properties/filter%5Bname%5D"}},"required":["filter[name]","top"],"dependentRequired":{"$top":["filter[name]"]}}}
    {"name":"lists","description":"Does","parametersJsonSchema":{"type":"object","properties":{"xs":{"type":"array","items":{}},"m":{"type":["string","array"],"items":{}},"box":{"type":"array","prefixItems":[{"type":"string"}],"items":{}},"default":{"default":{"type":"array"}}}}}
    {"name":"nullable","description":"Does","parametersJsonSchema":{"type":"object","properties":{"q":{"type":"string"}}}}
    {"name":"older","description":"Does","parametersJsonSchema":{"type":"object","properties":{"n":{"type":"integer","exclusiveMinimum":0},"pair":{"type":"array","items":false,"minItems":2,"prefixItems":[{"type":"string"},{"type":"integer"}]}}}}
    {"name":"one","description":"Does\n\nOne of these sets of arguments is required: `k`; `z`.","parametersJsonSchema":{"type":"object","properties":{"k":{"type":"string"},"z":{"type":"string"}}}}
    {"name":"plain","description":"Does","parametersJsonSchema":{"type":"object","properties":{"a.b-c":{"type":"string"}}}}
    {"name":"refers","description":"Does","parametersJsonSchema":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"definitions":{"A":{"type":"object","description":"An A","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}},"description":"An A","additionalProperties":false}}
    made one object of the schemas at the root, for 5 tools: s:all#48ec6e47 (`allOf`), s:either#c9663e8b (`anyOf`), s:nullable#14339eb0 (`type`), s:one#18919bee (`oneOf`), s:refers#216583bd (`$ref`)
    left out 2 tools, whose arguments are not an object: s:array#24854f7d, s:itself#1fe3f330
    left out 1 tool, called with a text in place of arguments: s:code#8adf1122
    left out 1 tool, whose argument schema is not valid: s:invalid#4dab62c5
    added `items` to arrays without them, for 1 tool: s:lists#2e3cd5ba
    rewrote keywords of older drafts of JSON Schema, for 1 tool: s:older#45559a8e
    "##);
    // What a model says is what the tool knows.
    let names = CallNames::new(catalog.items(), ToolFormat::Anthropic);
    let id = names.id("filters").unwrap();
    insta::assert_snapshot!(json!(names.arguments(id)), @r#"{"_1de36a32":"ключ","a_b_26974bc5":"a[b]","a_b_c8687a08":"a b","filter_name":"filter[name]","top_81bf98e4":"$top"}"#);
    let mut call = json!({"filter_name": "x", "inner": {"$top": "1"}, "top": 3});
    names.restore(id, call.as_object_mut().unwrap());
    assert_eq!(call, json!({"filter[name]": "x", "inner": {"$top": "1"}, "top": 3}));
    assert_eq!(CallNames::new(catalog.items(), ToolFormat::OpenAi).arguments(id), None);
}

#[test]
fn the_limits_of_a_request_are_said() {
    let tool =
        |number: usize| json!({"name": format!("t{number}"), "server": "s", "description": "d".repeat(1000 + number)});
    let catalog = Catalog::from_values(&(0..130).map(tool).collect::<Vec<_>>(), None).unwrap();
    let notes = |format: ToolFormat| {
        format.write_noted(catalog.items(), &CallNames::new(catalog.items(), format)).unwrap().notes.join("\n")
    };
    insta::assert_snapshot!(notes(ToolFormat::OpenAiResponses), @r"
    105 descriptions over 1,024 characters, which OpenAI takes, but not each server with its interface: s:t100#8b2bf762, s:t101#eeed3fa2, s:t102#75e9170c, s:t103#c0ab00a3, s:t104#3f41c021 and 100 more
    130 tools, but a request to OpenAI takes at most 128
    ");
    assert_eq!([notes(ToolFormat::Anthropic), notes(ToolFormat::Gemini), notes(ToolFormat::Mcp)].concat(), "");
}

#[test]
fn what_a_form_has_a_key_for_is_kept_and_the_rest_is_said() {
    let tools = [
        json!({"name": "w", "description": "d", "input_schema": {"type": "object", "properties": {"$l": {}}}, "cache_control": {"type": "ephemeral"}, "input_examples": [{"$l": "x"}], "defer_loading": true}),
        json!({"name": "v", "description": "d", "input_schema": schema(), "defer_loading": true}),
    ];
    let catalog = Catalog::from_values(&tools, None).unwrap();
    let written = |format: ToolFormat| format.write(catalog.items(), &CallNames::new(catalog.items(), format)).unwrap();
    insta::assert_snapshot!(written(ToolFormat::Anthropic), @r#"[{"name":"v","description":"d","input_schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}},{"name":"w","description":"d","input_schema":{"type":"object","properties":{"l":{}}},"cache_control":{"type":"ephemeral"},"input_examples":[{"l":"x"}]}]"#);
    let lost = |format: ToolFormat| json!(format.has_no_place_for(catalog.items())).to_string();
    let lost = [ToolFormat::Anthropic, ToolFormat::OpenAi, ToolFormat::Mcp, ToolFormat::Native].map(lost);
    insta::assert_snapshot!(lost.join("\n"), @r#"
    {"defer_loading":2}
    {"cache_control":1,"defer_loading":2,"input_examples":1}
    {"cache_control":1,"defer_loading":2,"input_examples":1}
    {}
    "#);
    let marked = |number: usize| json!({"name": format!("t{number}"), "input_schema": schema(), "cache_control": {"type": "ephemeral"}});
    let many = Catalog::from_values(&(0..6).map(marked).collect::<Vec<_>>(), None).unwrap();
    let list = ToolFormat::Anthropic.write(many.items(), &CallNames::new(many.items(), ToolFormat::Anthropic)).unwrap();
    let marks: Vec<bool> = list.as_array().unwrap().iter().map(|tool| tool.get("cache_control").is_some()).collect();
    assert_eq!(marks, [false, false, true, true, true, true]);
}

/// What is written of one tool in a form, and the notes about it.
fn written(format: ToolFormat, tool: &Value) -> (Value, String) {
    let catalog = Catalog::from_values(std::slice::from_ref(tool), Some("s")).unwrap();
    let names = CallNames::new(catalog.items(), format);
    let Written { document, notes } = format.write_noted(catalog.items(), &names).unwrap();
    let tool = document.pointer("/0/functionDeclarations/0").unwrap_or(&document[0]);
    (tool.get("function").unwrap_or(tool).clone(), notes.join("\n"))
}

/// The arguments of a tool with this schema, as a provider gets them, and the notes about it.
fn arguments(format: ToolFormat, schema: &Value) -> (Value, String) {
    let (tool, notes) = written(format, &json!({"name": "t", "description": "D", "inputSchema": schema}));
    let schema = ["parameters", "input_schema", "parametersJsonSchema"].iter().find_map(|key| tool.get(*key));
    (schema.cloned().unwrap_or_default(), notes)
}

#[test]
fn empty_values_are_left_out() {
    let shown = |format: ToolFormat, schema: &Value| {
        let (schema, notes) = arguments(format, &json!({"type": "object", "properties": {"a": schema}}));
        format!("{} {}", notes.starts_with("left out empty values"), schema["properties"]["a"])
    };
    let schemas = [
        json!({"type": "string", "enum": ["", "x"]}),
        json!({"type": "string", "enum": [""]}),
        json!({"type": "array", "items": {"type": "string", "enum": []}}),
        json!({"type": "string", "enum": ["x"], "default": ""}),
        json!({"not": {"enum": []}}),
    ];
    let seen = |format: ToolFormat| schemas.iter().map(|schema| shown(format, schema)).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(seen(ToolFormat::Gemini), @r#"
    true {"type":"string","enum":["x"]}
    true {"type":"string"}
    true {"type":"array","items":{"type":"string"}}
    false {"type":"string","enum":["x"],"default":""}
    true {}
    "#);
    let others = [ToolFormat::OpenAi, ToolFormat::Anthropic].map(seen);
    assert_eq!(others[0], others[1]);
    insta::assert_snapshot!(others[0], @r#"
    false {"type":"string","enum":["","x"]}
    false {"type":"string","enum":[""]}
    true {"type":"array","items":{"type":"string"}}
    false {"type":"string","enum":["x"],"default":""}
    true {}
    "#);
}

#[test]
fn an_object_has_its_properties_for_openai() {
    for schema in [json!({}), json!({"type": "object"}), json!({"type": "object", "additionalProperties": false})] {
        for format in [ToolFormat::OpenAi, ToolFormat::OpenAiResponses] {
            let (written, notes) = arguments(format, &schema);
            assert_eq!(
                (&written["type"], &written["properties"], &*notes),
                (&json!("object"), &json!({}), ""),
                "{schema}"
            );
        }
        assert_eq!(arguments(ToolFormat::Anthropic, &schema).0.get("properties"), None);
    }
    // Inner objects do not need any.
    let inner = json!({"type": "object", "properties": {"a": {"type": "object"}}});
    assert_eq!(arguments(ToolFormat::OpenAi, &inner).0, inner);
}

#[test]
fn strict_is_kept_where_the_schema_keeps_to_its_rules() {
    let text = json!({"type": "string"});
    let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let with = |mut schema: Value, key: &str, value: Value| {
        schema[key] = value;
        schema
    };
    let tree = json!({"type": "object", "properties": {"t": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]}}, "required": ["t"], "additionalProperties": false});
    let refers =
        with(object(json!({"a": {"$ref": "#/$defs/t"}}), json!(["a"])), "$defs", json!({"t": {"type": "string"}}));
    // The schema, and whether OpenAI and Anthropic take it as a strict one.
    let cases = [
        (object(json!({"a": text}), json!(["a"])), [true, true]),
        (object(json!({}), json!([])), [true, true]),
        (object(json!({"a": text}), json!([])), [false, true]),
        (json!({"type": "object", "properties": {"a": text}, "required": ["a"]}), [false, false]),
        (object(json!({"a": {"type": "object", "properties": {}}}), json!(["a"])), [false, false]),
        (object(json!({"a": object(json!({"b": text}), json!(["b"]))}), json!(["a"])), [true, true]),
        // `items` are added, and say nothing of what stands there.
        (object(json!({"a": {"type": "array"}}), json!(["a"])), [false, false]),
        (object(json!({"a": {"type": "array", "items": text}}), json!(["a"])), [true, true]),
        (object(json!({"a": {"type": "array", "items": text, "minItems": 2}}), json!(["a"])), [true, false]),
        (object(json!({"a": {}}), json!(["a"])), [false, false]),
        (object(json!({"a": {"enum": [1, 2]}}), json!(["a"])), [false, true]),
        (object(json!({"a": {"type": "integer", "minimum": 1}}), json!(["a"])), [true, false]),
        (object(json!({"a": {"type": "string", "default": "x"}}), json!(["a"])), [false, true]),
        (object(json!({"a": {"oneOf": [text, {"type": "null"}]}}), json!(["a"])), [false, false]),
        (object(json!({"a": {"type": ["string", "null"]}}), json!(["a"])), [true, true]),
        (refers, [true, true]),
        (with(object(json!({"a": {"$ref": "#/$defs/t"}}), json!(["a"])), "$defs", json!({"t": tree})), [true, false]),
        (object(json!({"a": {"$ref": "#"}}), json!(["a"])), [true, false]),
        (object(json!({"a": {"type": "string", "pattern": "^(?!a)"}}), json!(["a"])), [true, true]),
    ];
    for (schema, expected) in cases {
        let tool = json!({"name": "t", "description": "D", "input_schema": schema, "strict": true});
        for (format, expected) in [ToolFormat::OpenAi, ToolFormat::Anthropic].into_iter().zip(expected) {
            let (tool, notes) = written(format, &tool);
            assert_eq!(tool.get("strict") == Some(&json!(true)), expected, "{format} {schema}");
            assert_eq!(notes.contains("left out `strict` of 1 tool, whose"), !expected, "{format} {schema} {notes}");
        }
    }
    // Alternatives that a member tells apart are the same in other words.
    let alternative = |kind: &str| object(json!({"kind": {"type": "string", "const": kind}}), json!(["kind"]));
    let union = |keyword: &str| {
        let mapping = json!({"a": format!("#/properties/x/{keyword}/0")});
        let about = json!({"propertyName": "kind", "mapping": mapping});
        object(json!({"x": {keyword: [alternative("a"), alternative("b")], "discriminator": about}}), json!(["x"]))
    };
    let without = |mut schema: Value| {
        schema["properties"]["x"].as_object_mut().unwrap().shift_remove("discriminator");
        schema
    };
    for (keyword, expected, changed) in [("oneOf", without(union("anyOf")), true), ("anyOf", union("anyOf"), false)] {
        let tool = json!({"name": "t", "description": "D", "input_schema": union(keyword), "strict": true});
        for (format, key) in [(ToolFormat::OpenAi, "parameters"), (ToolFormat::Anthropic, "input_schema")] {
            let (tool, notes) = written(format, &tool);
            assert_eq!((&tool[key], &tool["strict"]), (&expected, &json!(true)), "{format} {keyword}");
            assert_eq!(
                notes.contains("wrote `oneOf` with a `discriminator` as `anyOf`, for 1 tool"),
                changed,
                "{notes}"
            );
        }
        // What is not strict is taken as it is.
        let plain = json!({"name": "t", "description": "D", "input_schema": union(keyword)});
        assert_eq!(
            written(ToolFormat::OpenAi, &plain),
            (json!({"name": "t", "description": "D", "parameters": union(keyword)}), String::new())
        );
    }
    let open = with(union("oneOf"), "additionalProperties", json!(true));
    let tool = json!({"name": "t", "description": "D", "input_schema": open, "strict": true});
    let (tool, notes) = written(ToolFormat::OpenAi, &tool);
    assert_eq!((tool.get("strict"), &tool["parameters"]), (None, &open), "{notes}");
    // Without a schema nothing is closed, and what is not strict stays as it is.
    let tool = |strict: bool| json!({"type": "function", "function": {"name": "t", "strict": strict}});
    assert_eq!(written(ToolFormat::OpenAi, &tool(true)).0.get("strict"), None);
    assert_eq!(written(ToolFormat::OpenAiResponses, &tool(true)).0["strict"], false);
    assert_eq!(
        written(ToolFormat::Anthropic, &tool(false)),
        (json!({"name": "t", "input_schema": {"type": "object", "properties": {}}, "strict": false}), String::new())
    );
    let own =
        json!({"name": "t", "input_schema": schema(), "allowed_callers": ["direct"], "eager_input_streaming": true});
    assert_eq!(written(ToolFormat::Anthropic, &own), (own.clone(), String::new()));
}

#[test]
fn what_is_not_taken_in_a_schema_makes_it_say_less() {
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let lookahead = json!({"type": "string", "pattern": "^(?!undefined$|null$)"});
    let plain = json!({"type": "string"});
    // A schema, and what OpenAI gets.
    let cases = [
        (object(json!({"a": lookahead})), object(json!({"a": plain}))),
        (object(json!({"a": {"pattern": "^\\p{L}+$"}})), object(json!({"a": {}}))),
        (object(json!({"pattern": {"type": "string", "pattern": "[("}})), object(json!({"pattern": plain}))),
        (object(json!({"a": {"default": {"pattern": "[("}}})), object(json!({"a": {"default": {"pattern": "[("}}}))),
        // Under these, to say less would be to allow less.
        (object(json!({"a": {"type": "string", "not": lookahead}})), object(json!({"a": plain}))),
        (
            object(json!({"a": {"oneOf": [lookahead, {"const": 1}]}})),
            object(json!({"a": {"anyOf": [plain, {"const": 1}]}})),
        ),
        (object(json!({"a": {"if": lookahead, "then": {"minLength": 2}, "else": {}}})), object(json!({"a": {}}))),
        (
            object(json!({"a": {"patternProperties": {"^(?=a)": {}, "^b": {}}, "additionalProperties": false}})),
            object(json!({"a": {"patternProperties": {"^b": {}}}})),
        ),
        (
            object(
                json!({"a": {"$ref": "#/$defs/Gone", "description": "A"}, "b": {"items": {"$ref": "https://x.example/s.json"}}}),
            ),
            object(json!({"a": {"description": "A"}, "b": {"items": {}}})),
        ),
        (object(json!({"a": {"not": {"$ref": "#/$defs/Gone"}}})), object(json!({"a": {}}))),
        (json!({"$ref": "#/$defs/Gone"}), object(json!({}))),
    ];
    for (schema, expected) in cases {
        let (written, notes) = arguments(ToolFormat::OpenAi, &schema);
        assert_eq!(written, expected, "{schema}");
        assert_eq!(notes.is_empty(), schema == expected, "{notes}");
    }
    // What leads somewhere in the document stays.
    let whole = json!({"type": "object", "properties": {"a": {"$ref": "#name"}, "b": {"$ref": "#/$defs/b"}, "c": {"$ref": "#"}, "d": {"$ref": "d.json"}},
        "$defs": {"b": {"$anchor": "name"}, "d": {"$id": "https://x.example/d.json"}}});
    assert_eq!(arguments(ToolFormat::OpenAi, &whole), (whole.clone(), String::new()));
    let both = object(json!({"a": lookahead, "b": {"$ref": "#/$defs/Gone"}, "c": {"pattern": "[("}}));
    insta::assert_snapshot!(arguments(ToolFormat::OpenAi, &both).1, @r"
    allowed anything where a reference leads nowhere, for 1 tool: s:t#b562cdc1 (`#/$defs/Gone`)
    left out patterns that are not taken, for 1 tool: s:t#b562cdc1 (`[(`, `^(?!undefined$|null$)`)
    ");
    // The others read other patterns, but none reads what is none.
    insta::assert_snapshot!(arguments(ToolFormat::Anthropic, &both).1, @r"
    allowed anything where a reference leads nowhere, for 1 tool: s:t#b562cdc1 (`#/$defs/Gone`)
    left out patterns that are not taken, for 1 tool: s:t#b562cdc1 (`[(`)
    ");
}

#[test]
fn words_of_discriminators_lead_to_what_a_provider_gets() {
    let union = |at: &str| {
        let first = format!("{at}/oneOf/0");
        let about = json!({"propertyName": "k", "mapping": {"a": first, "s": "#/$defs/S"}, "defaultMapping": first});
        json!({"oneOf": [{"type": "string"}, {"$ref": "#/$defs/S"}], "discriminator": about})
    };
    let object = |name: &str, value: Value| json!({"type": "object", "properties": {name: value}, "$defs": {"S": {"type": "object"}}});
    let pattern = json!({"type": "string", "pattern": "(?=a)"});
    let root = json!({"oneOf": [object("a b", union("#/oneOf/0/properties/a%20b")), {"type": "object"}], "discriminator": {"propertyName": "k"}, "$defs": {"S": {"type": "object"}}});
    let mut renamed = object("a b", union("#/properties/a%20b"));
    renamed["discriminator"] = json!({"propertyName": "a b"});
    let mut loosened = object("a", union("#/properties/a"));
    loosened["properties"]["a"]["oneOf"][0] = pattern;
    let cases = [(ToolFormat::Anthropic, renamed), (ToolFormat::OpenAi, root), (ToolFormat::OpenAi, loosened)];
    insta::assert_snapshot!(cases.map(|(format, schema)| arguments(format, &schema).0.to_string()).join("\n"), @r##"
    {"type":"object","properties":{"a_b":{"oneOf":[{"type":"string"},{"$ref":"#/$defs/S"}],"discriminator":{"propertyName":"k","mapping":{"a":"#/properties/a_b/oneOf/0","s":"#/$defs/S"},"defaultMapping":"#/properties/a_b/oneOf/0"}}},"$defs":{"S":{"type":"object"}},"discriminator":{"propertyName":"a_b"}}
    {"type":"object","properties":{"a b":{"oneOf":[{"type":"string"},{"$ref":"#/$defs/S"}],"discriminator":{"propertyName":"k","mapping":{"s":"#/$defs/S"}}}},"$defs":{"S":{"type":"object"}}}
    {"type":"object","properties":{"a":{"discriminator":{"propertyName":"k","mapping":{"s":"#/$defs/S"}},"anyOf":[{"type":"string"},{"$ref":"#/$defs/S"}]}},"$defs":{"S":{"type":"object"}}}
    "##);
}

#[test]
fn what_goes_together_is_said() {
    let text = json!({"type": "string"});
    let some =
        |names: &[&str]| json!({"anyOf": names.iter().map(|name| json!({"required": [name]})).collect::<Vec<_>>()});
    let object = |key: &str, value: Value| json!({"type": "object", "properties": {"a": text, "b": text, "c": text, "d": text}, key: value});
    let cases = [
        object("allOf", json!([some(&["a", "b"]), some(&["c", "d"])])),
        object("not", json!({"required": ["a", "b"]})),
        object(
            "allOf",
            json!([{"not": {"required": ["a", "b"]}}, {"not": {"anyOf": [{"required": ["c"]}, {"type": "object", "required": ["c", "d"]}]}}]),
        ),
        object("not", json!({"properties": {"a": {"const": 1}}, "required": ["a"]})),
        object("anyOf", json!([{"type": "null"}, {"allOf": [some(&["a", "b"])]}])),
        object("allOf", json!([{"dependencies": {"a": ["b"]}}, {"dependentRequired": {"a": ["c"]}}])),
        object(
            "dependencies",
            json!({"a": ["b"], "c": {"required": ["d"], "properties": {"d": {"minimum": 1, "exclusiveMinimum": true}}}}),
        ),
    ];
    let shown = cases.iter().map(|schema| {
        let (tool, _) =
            written(ToolFormat::Anthropic, &json!({"name": "t", "description": "D", "inputSchema": schema}));
        let mut schema = tool["input_schema"].clone();
        schema.as_object_mut().unwrap().shift_remove("properties");
        format!("{} {schema}\n", tool["description"])
    });
    insta::assert_snapshot!(shown.collect::<String>(), @r#"
    "D\n\nOne of these sets of arguments is required: `a`; `b`.\n\nOne of these sets of arguments is required: `c`; `d`." {"type":"object"}
    "D\n\nThese arguments are not given together: `a`, `b`." {"type":"object"}
    "D\n\nThese arguments are not given together: `a`, `b`; `c`, `d`.\n\nThese arguments are not given: `c`." {"type":"object"}
    "D" {"type":"object"}
    "D\n\nOne of these sets of arguments is required: `a`; `b`." {"type":"object"}
    "D" {"type":"object","dependentRequired":{"a":["b","c"]}}
    "D" {"type":"object","dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"],"properties":{"d":{"exclusiveMinimum":1}}}}}
    "#);
}

#[test]
fn marks_of_what_is_kept_come_in_the_order_that_is_taken() {
    // The marks of a list, and those that are kept: `l` for an hour, `s` for five minutes.
    let cases = [
        ("ls", "ls"),
        ("sl", "-l"),
        ("ssll", "--ll"),
        ("slsls", "-l-ls"),
        ("l-s", "l-s"),
        ("lssss", "-ssss"),
        ("slllll", "--llll"),
    ];
    for (marks, expected) in cases {
        let tool = |(index, mark): (usize, char)| {
            let mut tool = json!({"name": format!("t{index}"), "description": "D", "input_schema": schema()});
            match mark {
                'l' => tool["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"}),
                's' => tool["cache_control"] = json!({"type": "ephemeral"}),
                _ => {}
            }
            tool
        };
        let tools: Vec<Value> = marks.chars().enumerate().map(tool).collect();
        let catalog = Catalog::from_values(&tools, None).unwrap();
        let names = CallNames::new(catalog.items(), ToolFormat::Anthropic);
        let Written { document, notes } = ToolFormat::Anthropic.write_noted(catalog.items(), &names).unwrap();
        let mark = |tool: &Value| match tool.get("cache_control") {
            Some(mark) if mark.get("ttl").is_some() => 'l',
            Some(_) => 's',
            None => '-',
        };
        assert_eq!(document.as_array().unwrap().iter().map(mark).collect::<String>(), expected);
        assert_eq!(notes.is_empty(), marks == expected, "{notes:?}");
    }
}

#[test]
fn what_is_no_tool_that_is_offered_is_left_out_of_every_load() {
    let documents = [
        json!({"toolConfig": {"tools": [{"toolSpec": {"name": "a", "inputSchema": {"json": schema()}}}, {"cachePoint": {"type": "default"}}, {"systemTool": {"name": "nova_grounding"}}]}}),
        json!([{"name": "a", "input_schema": schema()}, {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}, {"type": "computer_20250124", "name": "computer", "display_width_px": 9}]),
        json!([{"type": "function", "name": "a", "parameters": schema()}, {"type": "web_search_preview"}, {"type": "file_search", "vector_store_ids": ["v"]}, {"type": "code_interpreter", "container": {"type": "auto"}}, {"type": "computer_use_preview", "environment": "browser"}, {"type": "mcp", "server_label": "s", "server_url": "u"}]),
        json!([{"functionDeclarations": [{"name": "a"}], "googleSearch": {}}, {"google_search": {}}, {"url_context": {}, "code_execution": {}}]),
        json!({"tools": {"a": {"description": "d", "inputSchema": {"jsonSchema": schema()}}, "web": {"type": "provider-defined", "id": "openai.web_search", "args": {}}}}),
        json!({"a": {"description": "d", "inputSchema": {"jsonSchema": schema()}}, "web": {"type": "provider", "id": "openai.web_search", "name": "web", "args": {"maxUses": 3}}}),
        json!({"server": {"name": "d"}, "tools": [{"key": "a", "name": "a", "input_schema": schema(), "enabled": true}, {"key": "b", "name": "b", "input_schema": schema(), "enabled": false}],
            "resources": [{"key": "r", "uri": "a:b", "name": "r", "enabled": false}], "prompts": [{"key": "p", "name": "p", "enabled": false}]}),
    ];
    let shown = documents.iter().map(|document| {
        let loaded = load_text("a.json", &document.to_string(), Strictness::Strict).unwrap();
        let names: Vec<&str> = loaded.catalog.items().iter().map(|item| item.name.as_str()).collect();
        assert_eq!(names, ["a"]);
        let left_out = loaded
            .left_out
            .iter()
            .map(|left_out| format!("{}: {}\n", left_out.place.split_once("a.json: ").unwrap().1, left_out.reason));
        left_out.collect::<String>()
    });
    insta::assert_snapshot!(shown.collect::<String>(), @r#"
    tools[1]: `cachePoint` is a mark and no tool
    tools[2]: `nova_grounding` is run by the provider and has no definition
    tools[1] `web_search`: `web_search_20250305` is run by the provider and has no definition
    tools[2] `computer`: `computer_20250124` is run by the provider and has no definition
    tools[1]: `web_search_preview` is run by the provider and has no definition
    tools[2]: `file_search` is run by the provider and has no definition
    tools[3]: `code_interpreter` is run by the provider and has no definition
    tools[4]: `computer_use_preview` is run by the provider and has no definition
    tools[5]: `mcp` is run by the provider and has no definition
    tools[0]: `googleSearch` is run by the provider and has no definition
    tools[1]: `google_search` is run by the provider and has no definition
    tools[2]: `url_context` is run by the provider and has no definition
    tools["web"]: `openai.web_search` is run by the provider and has no definition
    "web": `openai.web_search` is run by the provider and has no definition
    tools[1] `b`: its server has switched it off
    resources[0] `r`: its server has switched it off
    prompts[0] `p`: its server has switched it off
    "#);
}

#[test]
fn a_schema_with_a_title_and_the_tools_of_a_server_are_read() {
    let book = json!([{"type": "object", "title": "book_table", "description": "Book", "properties": {"seats": {"title": "Seats", "type": "integer"}}, "required": ["seats"]}]);
    let listed = json!([{"type": "mcp_list_tools", "id": "m1", "server_label": "Desk", "tools": [
        {"name": "find", "description": "Find", "input_schema": schema(), "annotations": {"read_only": true}},
        {"name": "close", "input_schema": schema(), "annotations": null},
    ]}]);
    insta::assert_snapshot!([book, listed].iter().map(shown).collect::<Vec<_>>().join("\n"), @r#"
    functions (1)
      mcp:book_table#bffceef0 | Book |
        {"type":"object","properties":{"seats":{"title":"Seats","type":"integer"}},"required":["seats"]}

    openai-responses (2)
      desk:close#f4f5e220 |  |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}
      desk:find#35afd4e6 | Find | read-only
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}
        metadata {"annotations":{"read_only":true}}
    "#);
    let nameless = json!([{"type": "object", "properties": {}}]);
    let error = load_text("a.json", &nameless.to_string(), Strictness::Strict).unwrap_err().to_string();
    insta::assert_snapshot!(error.split_once("a.json: ").unwrap().1, @"tools[0]: a JSON Schema without a name; give it a `title`, or make it the `inputSchema` of a tool with a `name`, or leave it out with --lenient");
}

#[test]
fn a_title_stands_for_a_description_that_is_not_there() {
    let tool = |members: Value| {
        let mut tool = json!({"name": "t", "inputSchema": {"type": "object"}});
        tool.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let catalog = Catalog::from_values(&[tool.clone()], None).unwrap();
        // What is written as MCP is what was received.
        assert_eq!(ToolFormat::Mcp.write(catalog.items(), &CallNames::as_they_are()), Some(json!([tool])));
        catalog.items()[0].description.clone()
    };
    assert_eq!(tool(json!({"title": "Book a table"})), "Book a table");
    assert_eq!(tool(json!({"annotations": {"title": "Book a table"}, "description": " "})), "Book a table");
    assert_eq!(tool(json!({"title": "One", "annotations": {"title": "Other"}})), "One");
    assert_eq!(tool(json!({"title": "Book a table", "description": "Books"})), "Books");
    assert_eq!(tool(json!({"title": 3})), "");
}

#[test]
fn templates_are_written_and_read_again() {
    let listed = json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}], "resources": [{"uri": "a:b", "name": "r"}],
        "resourceTemplates": [{"uriTemplate": "u://{id}", "name": "prof", "description": "P", "mimeType": "text/plain"}]});
    let loaded = load_text("a.json", &listed.to_string(), Strictness::Strict).unwrap();
    assert_eq!(mcp_listing(&loaded.catalog), listed);
    let alone = json!({"jsonrpc": "2.0", "id": 1, "result": {"resourceTemplates": listed["resourceTemplates"]}});
    insta::assert_snapshot!(shown(&alone), @r#"
    mcp (1)
      resource::mcp:prof#01577c9e | P |
        metadata {"uri":"u://{id}"}
    "#);
    // A resource is no template for what else it says.
    let odd = json!({"resources": [{"uri": "a:b", "uriTemplate": "a:{b}", "name": "r"}]});
    let odd = load_text("a.json", &odd.to_string(), Strictness::Strict).unwrap().catalog;
    assert_eq!(odd.items()[0].metadata["uri"], "a:b");
    // The native form has all of it too.
    let native = load_text("a.json", &loaded.catalog.to_native_json(), Strictness::Strict).unwrap();
    assert_eq!(mcp_listing(&native.catalog)["resourceTemplates"], listed["resourceTemplates"]);
}

#[test]
fn the_native_form_keeps_what_a_definition_says() {
    let tool = json!({"name": "t", "title": "T", "description": "D", "inputSchema": schema(), "outputSchema": schema(), "icons": [{"src": "a:b"}],
        "annotations": {"title": "A", "readOnlyHint": true, "openWorldHint": false}, "execution": {"taskSupport": "optional"}, "_meta": {"version": "2", "x": 1}, "server": "s"});
    let catalog = Catalog::from_values(std::slice::from_ref(&tool), None).unwrap();
    let native = load_text("a.json", &catalog.to_native_json(), Strictness::Strict).unwrap().catalog;
    assert_eq!(mcp_listing(&native)["tools"], json!([tool]));
    assert_eq!(native.items()[0].id, catalog.items()[0].id);
    assert_eq!(native.to_native_json(), catalog.to_native_json());
}

#[test]
fn a_body_without_a_schema_is_an_argument() {
    let body = |content: Value| json!({"openapi": "3.1.0", "info": {"title": "F"}, "paths": {"/f": {"put": {"operationId": "f", "requestBody": {"required": true, "content": content}}}}});
    let object = json!({"schema": {"type": "object", "properties": {"a": {"type": "string"}}}});
    let documents = [
        body(json!({"application/octet-stream": {}})),
        body(json!({"application/json": {}})),
        body(json!({"application/json": {}, "multipart/form-data": object})),
        body(json!({"multipart/form-data": {}})),
    ];
    insta::assert_snapshot!(documents.iter().map(shown).collect::<String>(), @r#"
    openapi (1)
      f:f#adbc1141 | PUT /f |
        {"type":"object","properties":{"body":{"type":"string"}},"required":["body"]}
        metadata {"arguments":{"body":"body"},"content_type":"application/octet-stream","method":"put","path":"/f","servers":[]}
    openapi (1)
      f:f#adbc1141 | PUT /f |
        {"type":"object","properties":{"body":{}},"required":["body"]}
        metadata {"arguments":{"body":"body"},"method":"put","path":"/f","servers":[]}
    openapi (1)
      f:f#974958e9 | PUT /f |
        {"type":"object","properties":{"a":{"type":"string"}}}
        metadata {"content_type":"multipart/form-data","method":"put","other_content_types":["application/json"],"path":"/f","servers":[]}
    openapi (1)
      f:f#a0d130ff | PUT /f |
        {"type":"object"}
        metadata {"content_type":"multipart/form-data","method":"put","path":"/f","servers":[]}
    "#);
}

#[test]
fn what_the_python_library_of_gemini_prints_is_read() {
    let tools = json!([{"function_declarations": [{"name": "f", "description": "F", "parameters": {"type": "OBJECT", "any_of": null, "properties": {
        "any_of": {"type": "STRING", "max_length": "20", "nullable": null},
        "xs": {"type": "ARRAY", "min_items": "1", "items": {"any_of": [{"type": "STRING"}, {"type": "INTEGER", "default": null}]}},
    }, "property_ordering": ["xs"], "additional_properties": {"type": "STRING"}}, "response": {"type": "STRING"}}]}]);
    let loaded = load_text("a.json", &tools.to_string(), Strictness::Strict).unwrap();
    let item = &loaded.catalog.items()[0];
    insta::assert_snapshot!(item.args_schema.as_deref().unwrap(), @r#"{"type":"object","properties":{"any_of":{"type":"string","maxLength":20},"xs":{"type":"array","minItems":1,"items":{"anyOf":[{"type":"string"},{"type":"integer","default":null}]}}},"additionalProperties":{"type":"string"}}"#);
    // The results of MCP's tools are objects, and the lists of requests have none.
    let Written { document, notes } =
        ToolFormat::Mcp.write_noted(loaded.catalog.items(), &CallNames::as_they_are()).unwrap();
    assert_eq!(document[0].get("outputSchema"), None);
    insta::assert_snapshot!(notes.join("\n"), @"left out the schemas of results of 1 tool, which are not objects: mcp:f#28384023");
    let lost = [ToolFormat::Gemini, ToolFormat::Mcp, ToolFormat::Native]
        .map(|format| json!(format.has_no_place_for(loaded.catalog.items())));
    assert_eq!(lost, [json!({"output_schema": 1}), json!({"output_schema": 1}), json!({})]);
}

#[test]
fn what_fastmcp_denies_is_written() {
    let tool = |annotations: Value| {
        let tool = json!({"key": "t", "name": "t", "input_schema": {"type": "object"}, "annotations": annotations});
        written(ToolFormat::Mcp, &tool).0.get("annotations").cloned().unwrap_or_default()
    };
    let additive = json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true});
    assert_eq!(tool(additive.clone()), additive);
    assert_eq!(
        tool(json!({"read_only_hint": true, "destructive_hint": false})),
        json!({"readOnlyHint": true, "destructiveHint": false})
    );
    assert_eq!(tool(json!({"read_only_hint": null})), Value::Null);
}

#[test]
fn what_mcp_has_a_key_for_is_written() {
    let inspected = json!({"server": {"name": "Desk"},
        "tools": [{"key": "tool:greet@", "name": "greet", "description": "Hi", "input_schema": {"type": "object"}, "title": "Greeter", "annotations": {"read_only_hint": true, "idempotent_hint": true}, "meta": {"owner": "desk"}}],
        "resources": [{"key": "data://c", "uri": "data://c", "name": "cfg", "title": "Settings", "mime_type": "application/json"}],
        "templates": [{"key": "u://{id}", "uri_template": "u://{id}", "name": "prof", "description": "P"}],
        "prompts": [{"key": "p", "name": "p", "title": "Asks"}]});
    let loaded = load_text("a.json", &inspected.to_string(), Strictness::Strict).unwrap();
    insta::assert_snapshot!(mcp_listing(&loaded.catalog), @r#"{"tools":[{"name":"greet","description":"Hi","inputSchema":{"type":"object"},"title":"Greeter","annotations":{"idempotentHint":true,"readOnlyHint":true},"_meta":{"owner":"desk"},"server":"Desk"}],"resources":[{"uri":"data://c","name":"cfg","title":"Settings","mimeType":"application/json","server":"Desk"}],"resourceTemplates":[{"uriTemplate":"u://{id}","name":"prof","description":"P","server":"Desk"}],"prompts":[{"name":"p","title":"Asks","server":"Desk"}]}"#);
}

#[test]
fn a_schema_leaves_gemini_in_the_words_of_json_schema() {
    let tools = json!({"tools": [{"functionDeclarations": [{"name": "set_light", "description": "Set", "parameters": {"type": "OBJECT", "properties": {
        "temperature": {"type": "STRING", "enum": ["daylight", "cool"], "format": "enum"},
        "colours": {"type": "ARRAY", "minItems": "1", "maxItems": "8", "items": {"type": "STRING", "maxLength": "20", "format": "date-time"}},
        "scene": {"type": "OBJECT", "propertyOrdering": ["b", "a"], "properties": {"a": {"type": "STRING"}, "b": {"type": "STRING"}}},
    }, "required": ["temperature"]}, "response": {"type": "OBJECT", "properties": {"ok": {"type": "BOOLEAN"}}}}]}]});
    let loaded = load_text("a.json", &tools.to_string(), Strictness::Strict).unwrap();
    let light = &loaded.catalog.items()[0];
    insta::assert_snapshot!(format!("{}\n{}\n{:?}", light.args_schema.as_deref().unwrap(), light.output_schema.as_deref().unwrap(), light.metadata), @r#"
    {"type":"object","properties":{"temperature":{"type":"string","enum":["daylight","cool"]},"colours":{"type":"array","minItems":1,"maxItems":8,"items":{"type":"string","maxLength":20,"format":"date-time"}},"scene":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}},"required":["temperature"]}
    {"type":"object","properties":{"ok":{"type":"boolean"}}}
    {}
    "#);
}

#[test]
fn functions_of_a_namespace_are_tools_of_a_server() {
    let request = json!({"model": "m", "input": "x", "tools": [{"type": "namespace", "name": "crm", "description": "Customers and orders", "tools": [
        {"type": "function", "name": "get_customer", "description": "Gets", "parameters": schema(), "defer_loading": true},
        {"type": "function", "name": "list_orders", "description": "Lists"},
        {"type": "function", "name": 3},
    ]}]});
    let mut good = request.clone();
    good.pointer_mut("/tools/0/tools").unwrap().as_array_mut().unwrap().pop();
    insta::assert_snapshot!(shown(&good), @r#"
    openai-responses (2)
      crm:get_customer#fc2efc2b | Gets |
        {"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}
        metadata {"defer_loading":true}
      crm:list_orders#1df5fb60 | Lists |
    "#);
    let loaded = load_text("a.json", &good.to_string(), Strictness::Strict).unwrap();
    assert_eq!(loaded.catalog.items()[0].server_description.as_deref(), Some("Customers and orders"));
    let error = load_text("a.json", &request.to_string(), Strictness::Strict).unwrap_err().to_string();
    insta::assert_snapshot!(error.split_once("a.json: ").unwrap().1, @"tools[0].tools[2]: `name` must be a string, not a number; correct it, or leave it out with --lenient");
}

#[test]
fn a_request_holds_what_its_operation_takes() {
    let item = json!({"type": "object", "required": ["id", "sku"], "properties": {"id": {"type": "string", "readOnly": true}, "sku": {"type": "string"}}});
    let document = json!({
        "openapi": "3.0.3", "info": {"title": "Shop"},
        "servers": [{"url": "https://{region}.shop.example/{basePath}", "variables": {"region": {"default": "eu", "enum": ["eu", "us"]}, "basePath": {"default": "v2"}}}, {"url": "https://{none}.example"}],
        "paths": {
            "/orders/{a}/{b}": {"post": {"operationId": "place", "parameters": [{"name": "b", "in": "path", "required": true, "schema": {"type": "integer"}}, {"name": "a", "in": "query", "schema": {}}], "requestBody": {"required": true, "content": {
                "application/json": {"schema": {"type": "object", "required": ["id", "items"], "properties": {"id": {"type": "string", "readOnly": true}, "items": {"type": "array", "items": item}}}},
                "application/x-www-form-urlencoded": {"schema": {"type": "object"}},
            }}}},
            "/orders/{id}": {"put": {"operationId": "change", "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}], "requestBody": {"content": {
                "application/json": {"schema": item},
            }}}},
        },
    });
    insta::assert_snapshot!(shown(&document), @r#"
    openapi (2)
      shop:change#7f98669e | PUT /orders/{id} |
        {"type":"object","properties":{"id":{"type":"string"},"sku":{"type":"string"}},"required":["id"]}
        metadata {"arguments":{"id":"path"},"method":"put","path":"/orders/{id}","servers":["https://eu.shop.example/v2","https://{none}.example"]}
      shop:place#80873597 | POST /orders/{a}/{b} |
        {"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"},"query_a":{},"items":{"type":"array","items":{"type":"object","required":["sku"],"properties":{"sku":{"type":"string"}}}}},"required":["a","b","items"]}
        metadata {"arguments":{"a":"path","b":"path","query_a":{"in":"query","name":"a"}},"method":"post","other_content_types":["application/x-www-form-urlencoded"],"path":"/orders/{a}/{b}","servers":["https://eu.shop.example/v2","https://{none}.example"]}
    "#);
}

#[test]
fn how_parameters_are_written_stands_with_their_places() {
    let schema = json!({"schema": {"type": "array", "items": {"type": "string"}}});
    let place = |of: &str, said: Value| {
        let mut parameter = if said.get("content").is_some() { json!({}) } else { schema.clone() };
        parameter.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
        (parameter["name"], parameter["in"]) = (json!("x"), json!(of));
        let path = if of == "path" { "/f/{x}" } else { "/f" };
        let document =
            json!({"openapi": "3.1.0", "info": {"title": "T"}, "paths": {path: {"get": {"parameters": [parameter]}}}});
        let loaded = load_text("a.json", &document.to_string(), Strictness::Strict).unwrap();
        loaded.catalog.items()[0].metadata["arguments"]["x"].to_string()
    };
    let cases = [
        ("path", json!({})),
        ("path", json!({"style": "simple", "explode": false})),
        ("path", json!({"style": "matrix", "explode": true})),
        ("path", json!({"style": "label", "explode": false})),
        ("header", json!({"explode": true})),
        ("query", json!({"style": "form", "explode": true, "allowReserved": false})),
        ("query", json!({"explode": false, "allowReserved": true})),
        ("query", json!({"style": "deepObject", "explode": true})),
        ("query", json!({"style": "deepObject"})),
        ("query", json!({"style": "pipeDelimited", "explode": false})),
        ("cookie", json!({"style": "form"})),
        ("cookie", json!({"style": "cookie", "explode": true})),
        ("query", json!({"style": "no style", "explode": "yes", "allowReserved": 1})),
        ("query", json!({"content": {"application/json": {"schema": {}}}, "style": "deepObject"})),
        ("query", json!({"content": {"application/json": {}}, "schema": {}, "explode": false})),
        ("querystring", json!({"content": {"application/x-www-form-urlencoded": {"schema": {}}}})),
    ];
    let shown = cases.into_iter().map(|(of, said)| format!("{of} {said}: {}\n", place(of, said.clone())));
    insta::assert_snapshot!(shown.collect::<String>(), @r#"
    path {}: "path"
    path {"style":"simple","explode":false}: "path"
    path {"style":"matrix","explode":true}: {"in":"path","style":"matrix","explode":true}
    path {"style":"label","explode":false}: {"in":"path","style":"label"}
    header {"explode":true}: {"in":"header","explode":true}
    query {"style":"form","explode":true,"allowReserved":false}: "query"
    query {"explode":false,"allowReserved":true}: {"in":"query","explode":false,"allowReserved":true}
    query {"style":"deepObject","explode":true}: {"in":"query","style":"deepObject","explode":true}
    query {"style":"deepObject"}: {"in":"query","style":"deepObject"}
    query {"style":"pipeDelimited","explode":false}: {"in":"query","style":"pipeDelimited"}
    cookie {"style":"form"}: "cookie"
    cookie {"style":"cookie","explode":true}: {"in":"cookie","style":"cookie"}
    query {"style":"no style","explode":"yes","allowReserved":1}: "query"
    query {"content":{"application/json":{"schema":{}}},"style":"deepObject"}: {"in":"query","content_type":"application/json"}
    query {"content":{"application/json":{}},"schema":{},"explode":false}: {"in":"query","explode":false}
    querystring {"content":{"application/x-www-form-urlencoded":{"schema":{}}}}: {"in":"querystring","content_type":"application/x-www-form-urlencoded"}
    "#);
}

#[test]
fn a_renamed_parameter_keeps_how_it_is_written() {
    let parameters =
        json!([{"name": "id", "in": "query", "style": "pipeDelimited", "schema": {"type": "array", "items": {}}}]);
    let document = json!({"openapi": "3.1.0", "info": {"title": "T"}, "paths": {"/f/{id}": {"get": {"operationId": "f", "parameters": parameters}}}});
    insta::assert_snapshot!(shown(&document), @r#"
    openapi (1)
      t:f#894e7f4b | GET /f/{id} | read-only
        {"type":"object","properties":{"id":{"type":"string"},"query_id":{"type":"array","items":{}}},"required":["id"]}
        metadata {"arguments":{"id":"path","query_id":{"in":"query","name":"id","style":"pipeDelimited"}},"method":"get","path":"/f/{id}","servers":[]}
    "#);
}

#[test]
fn how_the_members_of_a_form_are_written_is_kept() {
    let encoding = |media: &str, encoding: Value| {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}, "b": {"type": "object"}}});
        let body = json!({"content": {media: {"schema": schema, "encoding": encoding}}});
        let document =
            json!({"openapi": "3.1.0", "info": {"title": "T"}, "paths": {"/f": {"post": {"requestBody": body}}}});
        let loaded = load_text("a.json", &document.to_string(), Strictness::Strict).unwrap();
        loaded.catalog.items()[0].metadata.get("encoding").map_or_else(|| "-".to_owned(), Value::to_string)
    };
    let all = json!({"a": {"contentType": "image/png, image/jpeg", "headers": {"X-A": {"schema": {}}}}, "b": {"style": "deepObject", "explode": true, "allowReserved": false}});
    let cases = [
        ("multipart/form-data", all.clone()),
        ("multipart/mixed", json!({"a": {"style": "form"}, "b": {}})),
        (
            "application/x-www-form-urlencoded; charset=utf-8",
            json!({"a": {"explode": false, "style": "spaceDelimited"}}),
        ),
        ("application/x-www-form-urlencoded", json!({"a": {"style": "?", "explode": 0, "contentType": ["x"]}, "b": 3})),
        ("multipart/form-data", json!([1])),
        ("application/json", all),
    ];
    let shown = cases.into_iter().map(|(media, said)| format!("{media}: {}\n", encoding(media, said)));
    insta::assert_snapshot!(shown.collect::<String>(), @r#"
    multipart/form-data: {"a":{"contentType":"image/png, image/jpeg"},"b":{"style":"deepObject","explode":true,"allowReserved":false}}
    multipart/mixed: {"a":{"style":"form"}}
    application/x-www-form-urlencoded; charset=utf-8: {"a":{"style":"spaceDelimited","explode":false}}
    application/x-www-form-urlencoded: -
    multipart/form-data: -
    application/json: -
    "#);
}

/// The arguments of an operation with this body, in a document with these schemas.
fn arguments_of(body: &Value, schemas: &Value) -> Value {
    let body = json!({"content": {"application/json": {"schema": body}}});
    let document = json!({"openapi": "3.1.0", "info": {"title": "T"}, "paths": {"/f": {"post": {"requestBody": body}}}, "components": {"schemas": schemas}});
    let loaded = load_text("a.json", &document.to_string(), Strictness::Strict).unwrap();
    loaded.catalog.items()[0].args_schema.as_deref().cloned().unwrap_or_default()
}

#[test]
fn discriminators_lead_to_where_the_alternatives_stand() {
    let to = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let one_of = |discriminator: Value| json!({"oneOf": [to("Cat"), to("Dog")], "discriminator": discriminator});
    let pet = |discriminator: Value| json!({"type": "object", "properties": {"pet": one_of(discriminator)}});
    let schemas = json!({
        "Cat": {"type": "object", "properties": {"lives": {"type": "integer"}}},
        "Dog": {"type": "object", "properties": {"breed": {"type": "string"}}},
        "Fox": {"type": "object", "properties": {"friend": {"$ref": "#/components/schemas/Animal"}}},
        "Animal": {"oneOf": [to("Cat"), to("Fox")], "discriminator": {"propertyName": "kind"}},
        "Base": {"type": "object", "properties": {"kind": {"type": "string"}}, "discriminator": {"propertyName": "kind", "mapping": {"cat": "Cat"}}},
    });
    let mapped = json!({"propertyName": "kind", "mapping": {"cat": "#/components/schemas/Cat", "tom": "Cat", "cow": "Cow", "bird": "birds.json", "odd": 1}, "x-more": 1});
    let bodies = [
        pet(mapped),
        pet(json!({"propertyName": "kind", "mapping": {"Dog": "Cat"}})),
        one_of(json!({"propertyName": "kind"})),
        to("Animal"),
        json!({"type": "array", "items": {"anyOf": [{"type": "string"}, to("Cat")], "discriminator": {"propertyName": "kind"}}}),
        json!({"type": "object", "properties": {"a/b c%": {"type": "object", "additionalProperties": one_of(json!({"propertyName": "kind"}))}}}),
        json!({"type": "object", "properties": {"discriminator": {"type": "string"}, "x".repeat(300): one_of(json!({"propertyName": "kind"}))}}),
        to("Base"),
        pet(json!({"mapping": {"cat": "Cat"}})),
        pet(json!("kind")),
        pet(json!({"propertyName": "kind", "defaultMapping": "Dog"})),
        one_of(
            json!({"propertyName": "kind", "mapping": {"cat": "Cat"}, "defaultMapping": "#/components/schemas/Cat"}),
        ),
        pet(json!({"propertyName": "kind", "defaultMapping": "Fox"})),
        json!({"type": "object", "properties": {"x".repeat(300): one_of(json!({"propertyName": "kind", "defaultMapping": "Cat"}))}}),
    ];
    let shown = bodies.iter().map(|body| {
        let schema = arguments_of(body, &schemas);
        // Each word leads to a schema.
        visit(&schema, &mut |mapping| {
            for (word, reference) in mapping {
                let pointer = super::schema::pointer(reference.as_str().unwrap()).unwrap();
                assert!(schema.pointer(&pointer).is_some(), "{word}: {reference} in {schema}");
            }
        });
        schema.to_string().replace(&"x".repeat(300), "xxx") + "\n"
    });
    insta::assert_snapshot!(shown.collect::<String>(), @r##"
    {"type":"object","properties":{"pet":{"oneOf":[{"type":"object","properties":{"lives":{"type":"integer"}}},{"type":"object","properties":{"breed":{"type":"string"}}}],"discriminator":{"propertyName":"kind","mapping":{"cat":"#/properties/pet/oneOf/0","tom":"#/properties/pet/oneOf/0","Dog":"#/properties/pet/oneOf/1"}}}}}
    {"type":"object","properties":{"pet":{"oneOf":[{"type":"object","properties":{"lives":{"type":"integer"}}},{"type":"object","properties":{"breed":{"type":"string"}}}],"discriminator":{"propertyName":"kind","mapping":{"Dog":"#/properties/pet/oneOf/0"}}}}}
    {"type":"object","properties":{"body":{"oneOf":[{"type":"object","properties":{"lives":{"type":"integer"}}},{"type":"object","properties":{"breed":{"type":"string"}}}],"discriminator":{"propertyName":"kind","mapping":{"Cat":"#/properties/body/oneOf/0","Dog":"#/properties/body/oneOf/1"}}}}}
    {"type":"object","properties":{"body":{"oneOf":[{"type":"object","properties":{"lives":{"type":"integer"}}},{"type":"object","properties":{"friend":{"$ref":"#/$defs/Animal"}}}],"discriminator":{"propertyName":"kind","mapping":{"Cat":"#/properties/body/oneOf/0","Fox":"#/properties/body/oneOf/1"}}}},"$defs":{"Animal":{"oneOf":[{"$ref":"#/$defs/Cat"},{"$ref":"#/$defs/Fox"}],"discriminator":{"propertyName":"kind","mapping":{"Cat":"#/$defs/Cat","Fox":"#/$defs/Fox"}}},"Cat":{"type":"object","properties":{"lives":{"type":"integer"}}},"Fox":{"type":"object","properties":{"friend":{"$ref":"#/$defs/Animal"}}}}}
    {"type":"object","properties":{"body":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"object","properties":{"lives":{"type":"integer"}}}],"discriminator":{"propertyName":"kind","mapping":{"Cat":"#/properties/body/items/anyOf/1"}}}}}}
    {"type":"object","properties":{"a/b c%":{"type":"object","additionalProperties":{"oneOf":[{"type":"object","properties":{"lives":{"type":"integer"}}},{"type":"object","properties":{"breed":{"type":"string"}}}],"discriminator":{"propertyName":"kind","mapping":{"Cat":"#/properties/a~1b%20c%25/additionalProperties/oneOf/0","Dog":"#/properties/a~1b%20c%25/additionalProperties/oneOf/1"}}}}}}
    {"type":"object","properties":{"discriminator":{"type":"string"},"xxx":{"oneOf":[{"type":"object","properties":{"lives":{"type":"integer"}}},{"type":"object","properties":{"breed":{"type":"string"}}}],"discriminator":{"propertyName":"kind"}}}}
    {"type":"object","properties":{"kind":{"type":"string"}},"discriminator":{"propertyName":"kind"}}
    {"type":"object","properties":{"pet":{"oneOf":[{"type":"object","properties":{"lives":{"type":"integer"}}},{"type":"object","properties":{"breed":{"type":"string"}}}]}}}
    {"type":"object","properties":{"pet":{"oneOf":[{"type":"object","properties":{"lives":{"type":"integer"}}},{"type":"object","properties":{"breed":{"type":"string"}}}]}}}
    {"type":"object","properties":{"pet":{"oneOf":[{"type":"object","properties":{"lives":{"type":"integer"}}},{"type":"object","properties":{"breed":{"type":"string"}}}],"discriminator":{"propertyName":"kind","mapping":{"Cat":"#/properties/pet/oneOf/0","Dog":"#/properties/pet/oneOf/1"},"defaultMapping":"#/properties/pet/oneOf/1"}}}}
    {"type":"object","properties":{"body":{"oneOf":[{"type":"object","properties":{"lives":{"type":"integer"}}},{"type":"object","properties":{"breed":{"type":"string"}}}],"discriminator":{"propertyName":"kind","mapping":{"cat":"#/properties/body/oneOf/0","Dog":"#/properties/body/oneOf/1"},"defaultMapping":"#/properties/body/oneOf/0"}}}}
    {"type":"object","properties":{"pet":{"oneOf":[{"type":"object","properties":{"lives":{"type":"integer"}}},{"type":"object","properties":{"breed":{"type":"string"}}}],"discriminator":{"propertyName":"kind","mapping":{"Cat":"#/properties/pet/oneOf/0","Dog":"#/properties/pet/oneOf/1"}}}}}
    {"type":"object","properties":{"xxx":{"oneOf":[{"type":"object","properties":{"lives":{"type":"integer"}}},{"type":"object","properties":{"breed":{"type":"string"}}}],"discriminator":{"propertyName":"kind"}}}}
    "##);
}

/// Calls `with` with the words of each discriminator in a schema.
fn visit(schema: &Value, with: &mut impl FnMut(&Map<String, Value>)) {
    super::schema::visit_schemas(schema, &mut |members| {
        members
            .get("discriminator")
            .and_then(|about| about.get("mapping")?.as_object())
            .into_iter()
            .for_each(&mut *with);
    });
}

/// A document whose discriminators have more words than the schema of an operation may.
fn wordy() -> Value {
    let to = |number: usize| json!({"$ref": format!("#/components/schemas/a{number}")});
    let words: Map<String, Value> =
        (0..20_000).map(|word| (format!("w{word}"), json!(format!("a{}", word % 500)))).collect();
    let about = json!({"propertyName": "k", "mapping": words});
    let union = json!({"oneOf": (0..500).map(to).collect::<Vec<_>>(), "discriminator": about});
    let mut schemas: Map<String, Value> =
        (0..500).map(|number| (format!("a{number}"), json!({"type": "object"}))).collect();
    schemas.insert("base".to_owned(), json!({"type": "object", "discriminator": about}));
    let body = |schema: Value| json!({"post": {"requestBody": {"content": {"application/json": {"schema": schema}}}}});
    let mut paths: Map<String, Value> =
        (0..300).map(|number| (format!("/p{number}"), body(json!({"$ref": "#/components/schemas/base"})))).collect();
    paths.insert("/u".to_owned(), body(union));
    json!({"openapi": "3.1.0", "info": {"title": "t"}, "paths": paths, "components": {"schemas": schemas}})
}

/// Operations whose references are woven in a way that is hard to follow.
fn hostile() -> Vec<(&'static str, Value)> {
    let document = |schemas: Map<String, Value>, operations: usize| {
        let body = json!({"content": {"application/json": {"schema": {"$ref": "#/components/schemas/a0"}}}});
        let paths: Map<String, Value> =
            (0..operations).map(|number| (format!("/p{number}"), json!({"post": {"requestBody": body}}))).collect();
        json!({"openapi": "3.1.0", "info": {"title": "t"}, "paths": paths, "components": {"schemas": schemas}})
    };
    let to = |number: usize| json!({"$ref": format!("#/components/schemas/a{number}")});
    let schemas = |count: usize, make: &dyn Fn(usize) -> Value| -> Map<String, Value> {
        (0..count).map(|number| (format!("a{number}"), make(number))).collect()
    };
    let wide = |number: usize| {
        let members: Map<String, Value> = (0..10).map(|key| (format!("k{key}"), to(number + 1))).collect();
        json!({"type": "object", "properties": members})
    };
    let long = "x".repeat(100_000);
    vec![
        ("wordy", wordy()),
        ("laughs", document(schemas(30, &wide), 50)),
        ("chain", document(schemas(50_000, &|number| to(number + 1)), 3)),
        ("circle", document(schemas(1000, &|number| to((number + 1) % 1000)), 3)),
        ("itself", document(schemas(1, &|_| to(0)), 3)),
        (
            "nested",
            document(schemas(5000, &|number| json!({"type": "object", "properties": {"x": to(number + 1)}})), 20),
        ),
        ("complete", document(schemas(200, &|_| json!({"anyOf": (0..200).map(to).collect::<Vec<_>>()})), 30)),
        (
            "large",
            document(
                schemas(
                    100,
                    &|number| json!({"description": long, "type": "object", "properties": {"x": to(number + 1)}}),
                ),
                500,
            ),
        ),
        (
            "many",
            document(schemas(1, &|_| json!({"type": "object", "properties": {"x": {"description": long}}})), 5000),
        ),
        ("deep", {
            let deep = (0..100).fold(json!({}), |inner, _| json!({"not": inner}));
            document(
                schemas(
                    3,
                    &|number| json!({"type": "object", "properties": {"x": deep, "y": {"not": to(number + 1)}}}),
                ),
                3,
            )
        }),
        (
            "odd",
            document(
                schemas(
                    3,
                    &|_| json!({"$ref": "#/components/schemas/%61%zz~2", "properties": {"$ref": {"$ref": "#"}}}),
                ),
                3,
            ),
        ),
    ]
}

#[test]
fn woven_references_end() {
    let mut lines = String::new();
    for (name, document) in hostile() {
        let Value::Object(members) = document else { unreachable!() };
        let start = Instant::now();
        let parts = super::openapi::read(members).unwrap();
        // Alone, each takes a fraction of this.
        assert!(start.elapsed() < Duration::from_secs(60), "{name}: {:?}", start.elapsed());
        let read: Vec<&Draft> = parts.iter().filter_map(|part| part.draft.as_ref().ok()).collect();
        let largest = read.iter().filter_map(|draft| Some(draft.item.args_schema.as_ref()?.to_string().len())).max();
        assert!(largest.unwrap_or(0) <= 2 << 20, "{name}");
        let why = parts.iter().find_map(|part| Some(part.draft.as_ref().err()?.to_string()));
        lines.push_str(&format!("{name}: {} of {} read", read.len(), parts.len()));
        lines.push_str(&why.map_or_else(String::new, |why| format!("; {why}")));
        lines.push('\n');
    }
    insta::assert_snapshot!(lines, @r"
    wordy: 300 of 301 read; its schema grows too large when expanded; make it smaller
    laughs: 50 of 50 read
    chain: 0 of 3 read; its schema grows too large when expanded; make it smaller
    circle: 3 of 3 read
    itself: 3 of 3 read
    nested: 20 of 20 read
    complete: 0 of 30 read; its schema grows too large when expanded; make it smaller
    large: 0 of 500 read; its schema grows too large when expanded; make it smaller
    many: 1336 of 5000 read; the operations of the document grow too large when expanded; split it into several documents
    deep: 3 of 3 read
    odd: 3 of 3 read
    ");
}

#[test]
fn what_references_lead_to_stays_in_the_schema() {
    let tree = json!({"openapi": "3.0.0", "paths": {"/t": {"post": {"operationId": "t", "requestBody": {"content": {"application/json":
        {"schema": {"$ref": "#/components/schemas/T~1x"}}}}}}},
        "components": {"schemas": {"T/x": {"type": "object", "properties": {"left": {"$ref": "#/components/schemas/T~1x"}, "gone": {"$ref": "#/components/schemas/none"}}}}}});
    let loaded = load_text("a.json", &tree.to_string(), Strictness::Strict).unwrap();
    insta::assert_snapshot!(loaded.catalog.items()[0].args_schema.as_deref().unwrap().to_string(), @r##"{"type":"object","properties":{"left":{"$ref":"#/$defs/T_1x"},"gone":{"$ref":"#/components/schemas/none"}},"$defs":{"T_1x":{"type":"object","properties":{"left":{"$ref":"#/$defs/T_1x"},"gone":{"$ref":"#/components/schemas/none"}}}}}"##);
}

/// Schemas of arguments that every format can hold: objects that say so.
fn any_schema() -> impl Strategy<Value = Value> {
    let word = "[a-z]{1,5}|type|properties|parameters|name|jsonSchema|\\$ref";
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        "\\PC{0,5}"
            .prop_map(|text| json!({"type": "string", "description": text, "enum": [format!("v{text}"), null, 1.5]})),
        Just(json!({"type": ["integer", "null"], "minimum": -3, "default": {"type": "STRING", "nullable": true}})),
        Just(json!({})),
    ];
    let schema = leaf.prop_recursive(3, 12, 4, move |inner| {
        prop_oneof![
            inner.clone().prop_map(|schema| json!({"type": "array", "items": schema})),
            proptest::collection::btree_map(word, inner, 0..4).prop_map(
                |properties| json!({"type": "object", "properties": properties, "additionalProperties": false})
            ),
        ]
    });
    proptest::collection::btree_map(word, schema, 0..4)
        .prop_map(|properties| json!({"type": "object", "properties": properties}))
}

fn any_json() -> impl Strategy<Value = Value> {
    let word = proptest::sample::select(vec![
        "name",
        "description",
        "inputSchema",
        "input_schema",
        "parameters",
        "properties",
        "type",
        "function",
        "custom",
        "functionDeclarations",
        "toolSpec",
        "json",
        "jsonSchema",
        "args_schema",
        "args",
        "fn_schema",
        "fn_schema_str",
        "metadata",
        "key",
        "templates",
        "uri_template",
        "resources",
        "server",
        "skills",
        "id",
        "url",
        "label",
        "items",
        "choice_cards",
        "kind",
        "tool",
        "openapi",
        "3.1.0",
        "info",
        "title",
        "paths",
        "/p/{x}",
        "get",
        "post",
        "requestBody",
        "content",
        "application/json",
        "schema",
        "$ref",
        "#/paths/~1p~1{x}/get",
        "#",
        "components",
        "in",
        "query",
        "required",
        "allOf",
        "discriminator",
        "propertyName",
        "mapping",
        "version",
        "nullable",
        "tools",
        "functions",
        "toolConfig",
        "OBJECT",
        "object",
        "pattern",
        "(?=a)",
        "#/$defs/a",
        "anyOf",
        "oneOf",
        "not",
        "dependencies",
        "strict",
        "resourceTemplates",
        "uriTemplate",
        "mcp_list_tools",
        "enabled",
        "cache_control",
        "DAGFlow",
        "flows",
        "flow_id",
        "steps",
        "step_id",
        "tool_name",
        "depends_on",
        "input_mapping",
        "output_mapping",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..9).prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((word.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_again(
        tools in proptest::collection::btree_map(
            "[a-zA-Z_][a-zA-Z0-9_-]{0,12}|[a-z]{1,3}[. /][a-z]{1,3}|[a-z]{60,70}",
            ("\\PC{0,12}", proptest::option::of(any_schema()), proptest::sample::select(vec!["one", "two"])),
            1..8,
        ),
    ) {
        let values: Vec<Value> = tools
            .iter()
            .map(|(name, (description, schema, server))| {
                let mut tool = json!({"name": name, "description": description, "server": server});
                if let Some(schema) = schema {
                    tool["inputSchema"] = schema.clone();
                }
                tool
            })
            .collect();
        let catalog = Catalog::from_values(&values, None).unwrap();
        for format in ToolFormat::WRITTEN {
            let names = match format {
                ToolFormat::Native => CallNames::as_they_are(),
                format => CallNames::new(catalog.items(), format),
            };
            let text = match format.write(catalog.items(), &names) {
                Some(list) => list.to_string(),
                None => catalog.to_native_json(),
            };
            let loaded = load_text("a.json", &text, Strictness::Strict).unwrap();
            prop_assert!(loaded.sources.iter().all(|source| source.format == format), "{:?}", loaded.sources);
            prop_assert_eq!(loaded.catalog.len(), catalog.len());
            for item in loaded.catalog.items() {
                let id = names.id(&item.name).unwrap_or(&item.id);
                let original = catalog.get(id).unwrap();
                prop_assert_eq!(&item.description, &original.description);
                let unsaid = |schema: Option<&Value>| {
                    schema.cloned().filter(|schema| *schema != json!({"type": "object", "properties": {}}) && *schema != json!({"type": "object"}))
                };
                // A card has no schemas.
                let expected = original.args_schema.as_deref().filter(|_| format != ToolFormat::WeaverSpec);
                let mut written = item.args_schema.as_deref().cloned();
                let properties = written.as_mut().and_then(|schema| schema.get_mut("properties")?.as_object_mut());
                properties.into_iter().for_each(|properties| names.restore(id, properties));
                prop_assert_eq!(unsaid(written.as_ref()), unsaid(expected), "{}", text);
                if format == ToolFormat::WeaverSpec {
                    prop_assert_eq!((&item.id, &item.name, &item.server), (&original.id, &original.name, &original.server));
                }
            }
        }
        let listing = mcp_listing(&catalog).to_string();
        let again = load_text("a.json", &listing, Strictness::Strict).unwrap().catalog;
        prop_assert_eq!(again.items().iter().map(|item| &item.name).collect::<Vec<_>>(), catalog.items().iter().map(|item| &item.name).collect::<Vec<_>>());
        prop_assert_eq!(mcp_listing(&again).to_string(), listing);
    }

    #[test]
    fn what_is_written_is_what_providers_take(schema in any_json(), others in any_json()) {
        let schemas = [schema.clone(), json!({"anyOf": [schema, others]}), json!({"allOf": [schema, {"properties": {"type": others}}]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": schema, "b": others}})];
        let tools: Vec<Value> = schemas.iter().filter(|schema| schema.is_object()).enumerate()
            .map(|(number, schema)| json!({"name": format!("t{number}"), "inputSchema": schema})).collect();
        let catalog = Catalog::from_values(&tools, None).unwrap();
        for format in [ToolFormat::OpenAi, ToolFormat::Anthropic, ToolFormat::Gemini] {
            let list = format.write(catalog.items(), &CallNames::new(catalog.items(), format)).unwrap();
            let again = load_text("a.json", &list.to_string(), Strictness::Strict);
            let Ok(again) = again else { prop_assert!(list == json!([]), "{list}"); continue };
            for item in again.catalog.items() {
                // What is written is taken as it is.
                let names = CallNames::new(again.catalog.items(), format);
                let Written { document, notes } = format.write_noted([item], &names).unwrap();
                prop_assert!(notes.is_empty() && document != json!([]), "{notes:?} {list}");
            }
        }
    }

    #[test]
    fn no_definition_panics(value in any_json(), key in proptest::option::of("[a-z]{1,3}")) {
        for document in [value.clone(), json!([value]), json!({"tools": value}), json!({"openapi": "3.0.0", "paths": value, "components": value})] {
            if let Ok(loaded) = load_text("a.json", &document.to_string(), Strictness::Lenient) {
                for format in ToolFormat::WRITTEN {
                    let _ = format.write(loaded.catalog.items(), &CallNames::new(loaded.catalog.items(), format));
                }
                let native = loaded.catalog.to_native_json();
                prop_assert_eq!(load_text("b.json", &native, Strictness::Strict).unwrap().catalog.to_native_json(), native);
                let _ = mcp_listing(&loaded.catalog);
            }
        }
        let _ = read(value, key.as_deref());
    }
}

/// What the contracts of `weaver-spec` require of a routing decision, of its cards and of their items.
fn breaks_the_contract(decision: &Value) -> Option<String> {
    let said = |value: &Value, keys: &[&str]| {
        let missing = keys.iter().find(|key| value[**key].as_str().is_none_or(str::is_empty));
        missing.map(|key| format!("`{key}` of {value}"))
    };
    let cards = decision["choice_cards"].as_array().filter(|cards| !cards.is_empty());
    let Some(cards) = cards else { return Some("no card".to_owned()) };
    let of_cards = cards.iter().find_map(|card| {
        let items = card["items"].as_array().filter(|items| (1..=20).contains(&items.len()));
        let Some(items) = items else { return Some(format!("the items of {card}")) };
        said(card, &["id"]).or_else(|| items.iter().find_map(|item| said(item, &["id", "label", "description"])))
    });
    let moment = decision["timestamp"].as_str().is_some_and(crate::text::is_date_time);
    said(decision, &["id"]).or(of_cards).or_else(|| (!moment).then(|| "`timestamp`".to_owned()))
}

#[test]
fn a_routing_decision_has_what_its_contract_requires() {
    let tool = |number: usize| json!({"name": format!("tool_{number}"), "description": "Does", "server": "s", "inputSchema": schema()});
    let mut tools: Vec<Value> = (0..45).map(tool).collect();
    tools.push(json!({"name": "silent", "server": "b b", "annotations": {"readOnlyHint": true}, "tags": ["t"]}));
    let catalog = Catalog::from_values(&tools, None).unwrap();
    let now = "2026-11-27T10:00:00Z";
    let decision = routing_decision(catalog.items(), "do it", now).unwrap();
    assert_eq!(breaks_the_contract(&decision), None, "{decision:#}");
    let cards = decision["choice_cards"].as_array().unwrap();
    assert_eq!(cards.iter().map(|card| card["items"].as_array().unwrap().len()).collect::<Vec<_>>(), [20, 20, 6]);
    // Ids tell cards and decisions apart, and are those of the same content.
    assert_ne!(cards[0]["id"], cards[1]["id"]);
    assert_eq!(routing_decision(catalog.items(), "do it", now).unwrap(), decision);
    assert_ne!(routing_decision(catalog.items(), "do", now).unwrap()["id"], decision["id"]);
    // No schema is in a card, and what the contract has no place for is in its metadata.
    assert!(!decision.to_string().contains("city"), "{decision}");
    let only: Vec<&SelectableItem> = catalog.items().iter().filter(|item| item.name == "silent").collect();
    insta::assert_snapshot!(routing_decision(only, "", now).unwrap(), @r#"{"id":"decision-f5c4d3362295dc6f","choice_cards":[{"id":"card-d5cabab7878a912f","items":[{"id":"b-b:silent#ad669dc8","label":"silent","description":"silent","capability_id":"b-b:silent#ad669dc8","metadata":{"contextweaver":{"kind":"tool","server":"b b","tags":["read-only","t"]}}}]}],"selected_item_id":null,"selected_card_id":null,"timestamp":"2026-11-27T10:00:00Z"}"#);
    // The decision is read again, and each tool has the id that it had.
    let again = load_text("a.json", &decision.to_string(), Strictness::Strict).unwrap();
    assert_eq!(again.sources[0].format, ToolFormat::WeaverSpec);
    let line = |item: &SelectableItem| {
        (
            item.id.clone(),
            item.name.clone(),
            item.server.clone(),
            item.description.clone(),
            item.tags.clone(),
            item.safety,
        )
    };
    assert_eq!(
        again.catalog.items().iter().map(line).collect::<Vec<_>>(),
        catalog.items().iter().map(line).collect::<Vec<_>>()
    );
    let wrong = |items: &[SelectableItem], moment: &str| routing_decision(items, "", moment).unwrap_err().to_string();
    insta::assert_snapshot!(wrong(catalog.items(), "today"), @"`today` is not a timestamp; write it as 2026-11-27T10:00:00Z");
    insta::assert_snapshot!(wrong(&[], now), @"a routing decision needs at least one tool, but none was found");
}

/// As a program writes an object of the contract: with null for what is not there.
#[test]
fn a_capability_may_have_no_schemas() {
    let capability = json!([{"id": "pay.refund", "name": "Refund", "version": "1.2.0", "description": "Pays back.",
        "input_schema_ref": null, "output_schema_ref": null, "tags": [], "metadata": {}}]);
    let loaded = load_text("a.json", &capability.to_string(), Strictness::Strict).unwrap();
    let item = &loaded.catalog.items()[0];
    insta::assert_snapshot!(format!("{} {} | {} | {:?} {}", loaded.sources[0].format, item.name, item.description, item.version, json!(item.metadata)), @r#"weaver-spec pay.refund | Refund: Pays back. | Some("1.2.0") {"metadata":{}}"#);
}

#[test]
fn what_a_card_of_ours_says_wrong_is_refused() {
    let item = |id: &str, kind: &str| {
        let card = json!([{"id": "c", "items": [{"id": id, "label": "now", "description": "now", "metadata": {"own": 1, "contextweaver": {"kind": kind}}}]}]);
        match load_text("a.json", &card.to_string(), Strictness::Strict) {
            Ok(loaded) => {
                let item = &loaded.catalog.items()[0];
                format!("{} {} `{}` {}", item.id, item.kind.name(), item.description, json!(item.metadata))
            }
            Err(error) => error.to_string().rsplit_once("a.json: ").unwrap().1.to_owned(),
        }
    };
    insta::assert_snapshot!(item("a:now@2", "agent"), @r#"a:now@2 agent `` {"metadata":{"own":1}}"#);
    insta::assert_snapshot!(item("now", "tool"), @"tools[0].items[0] `now`: `now` is not a tool id (namespace:name[@version][#hash8]): there is no `:` after a namespace; correct it, or leave it out with --lenient");
    insta::assert_snapshot!(item("a:now@2", "prompt"), @"tools[0].items[0] `a:now@2`: unknown `kind` `prompt`; use tool, agent or skill, or leave it out with --lenient");
}

/// A skill with this front matter.
fn skill(front: &str) -> String {
    format!("---\n{front}\n---\n\n# Steps\n\n1. Read it.\n---\n2. Go on.\n")
}

#[test]
fn skills_are_read_from_their_front_matter() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "pdf/SKILL.md",
        &skill(
            "name: pdf-forms\ndescription: >\n  Fill in the forms\n  of a PDF.\nlicense: MIT\nallowed-tools: Read Bash\nmetadata:\n  version: \"1.0\"",
        ),
    );
    write("pdf/scripts/fill.py", "print()");
    write("mail/SKILL.md", "\u{feff}---\r\nname: mail\r\ndescription: Answer mail.\r\n---\r\n");
    write(".drafts/SKILL.md", "no skill");
    write("notes/README.md", "no skill");
    write("desk.json", r#"[{"name": "find_rooms", "description": "Find free rooms"}]"#);
    let loaded = load(&[folder.path()], LoadOptions::default()).unwrap();
    let line = |item: &SelectableItem| {
        let SelectableItem { id, kind, server, description, metadata, .. } = item;
        format!("{id} | {} of {server:?} | {description:?} | {}", kind.name(), json!(metadata))
    };
    insta::assert_snapshot!(loaded.catalog.items().iter().map(line).collect::<Vec<_>>().join("\n"), @r##"
    desk:find_rooms#5ab0a785 | tool of Some("desk") | "Find free rooms" | {}
    skills:mail#1cab3eab | skill of Some("skills") | "Answer mail." | {}
    skills:pdf-forms#0bc2681f | skill of Some("skills") | "Fill in the forms of a PDF." | {"allowed-tools":"Read Bash","instructions":"# Steps\n\n1. Read it.\n---\n2. Go on.","license":"MIT","metadata":{"version":"1.0"}}
    "##);
    assert_eq!(loaded.catalog.items()[2].version.as_deref(), Some("1.0"));
    let forms: Vec<&str> = loaded.sources.iter().map(|source| source.format.key()).collect();
    assert_eq!(forms, ["mcp", "agent-skill", "agent-skill"]);
    // The file, its folder and the folder of all give the same skill, and so does the native form.
    let of = |path: &str| load(&[folder.path().join(path)], LoadOptions::default()).unwrap().catalog;
    assert_eq!(of("pdf/SKILL.md").to_native_json(), of("pdf").to_native_json());
    assert!(loaded.catalog.get(&of("pdf").items()[0].id).is_some());
    let native = load_text("n.json", &loaded.catalog.to_native_json(), Strictness::Strict).unwrap().catalog;
    assert_eq!(native.to_native_json(), loaded.catalog.to_native_json());
}

#[test]
fn a_skill_without_name_or_description_is_refused_with_its_place() {
    let refused = |text: &str| {
        let error = load_text("SKILL.md", text, Strictness::Strict).unwrap_err().to_string();
        error[error.find("SKILL.md").unwrap()..].to_owned()
    };
    let deep = format!("name: x\ndescription: y\nmore: {}1{}", "[".repeat(200), "]".repeat(200));
    let long = "x".repeat(1 << 20);
    let wrong = [
        "",
        "# A page\n\nname: x",
        "---",
        "---\nname: x\ndescription: y\n",
        "---\n---\nname: x",
        &skill("- name: x"),
        &skill("description: y"),
        &skill("name: x\ndescription: ' '"),
        &skill("name: 7\ndescription: y"),
        &skill("name: x\ndescription: Use this when: needed"),
        &skill("name: x\nname: y\ndescription: z"),
        &skill(&deep),
        &skill(&format!("name: x\ndescription: {long}")),
    ];
    insta::assert_snapshot!(wrong.map(refused).join("\n"), @"
    SKILL.md: line 1: the file has no front matter; begin it with a line `---`, then `name: …`, `description: …` and a line `---`, or leave it out with --lenient
    SKILL.md: line 1: the file has no front matter; begin it with a line `---`, then `name: …`, `description: …` and a line `---`, or leave it out with --lenient
    SKILL.md: line 1: the file has no front matter; begin it with a line `---`, then `name: …`, `description: …` and a line `---`, or leave it out with --lenient
    SKILL.md: line 1: the front matter does not end; put a line `---` after it, or leave it out with --lenient
    SKILL.md: front matter: expected an object, not null; correct it, or leave it out with --lenient
    SKILL.md: front matter: expected an object, not an array; correct it, or leave it out with --lenient
    SKILL.md: front matter: `name` is missing or empty; correct it, or leave it out with --lenient
    SKILL.md: front matter: `description` is missing or empty; correct it, or leave it out with --lenient
    SKILL.md: front matter: `name` must be a string, not a number; correct it, or leave it out with --lenient
    SKILL.md: line 3, column 27: mapping values are not allowed in this context; correct it, or leave it out with --lenient
    SKILL.md: line 3, column 1: the key `name` occurs twice; remove one, or leave it out with --lenient
    SKILL.md: line 4, column 134: it is nested deeper than 127 levels; make it flatter, or leave it out with --lenient
    SKILL.md: the file is over the limit of 1 MiB; move the longest parts into files beside it
    ");
    // Of a folder with a broken one, a lenient load keeps the rest.
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("a", skill("name: a\ndescription: b")), ("b", skill("name: b"))] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("SKILL.md"), text).unwrap();
    }
    assert!(load(&[folder.path()], LoadOptions::default()).is_err());
    let loaded = load(&[folder.path()], LoadOptions { strictness: Strictness::Lenient }).unwrap();
    assert_eq!((loaded.catalog.len(), loaded.left_out.len()), (1, 1));
    assert!(loaded.left_out[0].place.ends_with("b/SKILL.md: front matter"), "{:?}", loaded.left_out);
}

proptest! {
    #[test]
    fn no_skill_panics(text in "(---\r?\n)?(name: [a-z]{0,3}\n|description: \\PC{0,5}\n|\\PC{0,9}\n|---\n|---){0,6}") {
        let _ = load_text("SKILL.md", &text, Strictness::Strict);
        let _ = load_text("SKILL.md", &text, Strictness::Lenient);
    }
}

/// Every JSON example of the page about formats is read, in the form that its heading names.
#[test]
fn the_examples_of_the_page_are_read() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    let page = std::fs::read_to_string(page).unwrap();
    let section = page.split("\n### Other tool-list formats\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut read = Vec::new();
    let mut rest = section;
    while let Some((before, after)) = rest.split_once("```json\n") {
        let (example, after) = after.split_once("\n```").unwrap();
        let key = before.rsplit_once("**`").unwrap().1.split('`').next().unwrap();
        let loaded = load_text("a.json", example, Strictness::Strict).unwrap();
        assert_eq!(loaded.sources.iter().map(|source| source.format.key()).collect::<Vec<_>>(), [key], "{example}");
        for item in loaded.catalog.items() {
            let has_schema = item.args_schema.is_some() || item.raw.is_none() && key == "weaver-spec";
            assert!(has_schema && !item.description.is_empty(), "{example}");
        }
        read.push(key.to_owned());
        rest = after;
    }
    for format in [
        "mcp",
        "openai",
        "openai-responses",
        "functions",
        "anthropic",
        "gemini",
        "bedrock",
        "openapi",
        "a2a",
        "fastmcp",
        "langchain",
        "llama-index",
        "smolagents",
        "cohere",
        "vercel-ai",
        "contextweaver-py",
        "weaver-spec",
        "chainweaver",
    ] {
        assert!(read.iter().any(|key| key == format), "{format}");
    }
}

#[test]
fn the_front_matter_of_a_document_is_read() {
    let read = |text: &str| match crate::catalog::front_matter(text) {
        Ok(Some((members, body))) => format!("{} {body:?}", json!(members)),
        Ok(None) => "none".to_owned(),
        Err(fault) => fault.to_string(),
    };
    let table = [
        "# A page\n",
        "---",
        "--- a\n---\n",
        "\u{feff}---\r\ntitle: x\r\ntags: [no, 2026-09-23]\r\n---\r\n\r\nText.\r\n",
        "---\n# nothing but this\n\n---\n\nText.\n\n---\n",
        "---\n---",
        "---\ntitle: x\n",
        "---\n- x\n---\n",
        "---\ntitle: a: b\n---\n",
    ];
    insta::assert_snapshot!(table.map(read).join("\n"), @r#"
    none
    none
    none
    {"title":"x","tags":["no","2026-09-23"]} "Text."
    {} "Text.\n\n---"
    {} ""
    the front matter does not end; put a line `---` after it
    the front matter is an array; write it as lines `key: value`
    line 2, column 9: mapping values are not allowed in this context
    "#);
}
