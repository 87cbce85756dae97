//! A catalog without servers whose calls are answered from a file.

use std::path::Path;

use serde_json::{Value, json};

use crate::server::local_client::LocalClient;
use crate::{AuditLine, CatalogFile, GatewayConfig};

/// Tools of no server and of one, with a resource and a prompt.
pub(super) const CATALOG: &str = r#"{"tools": [
    {"name": "convert", "description": "Convert a sum", "inputSchema": {"type": "object",
        "properties": {"sum": {"type": "number"}, "to": {"type": "string"}}, "required": ["sum"]}},
    {"name": "list", "description": "List currencies", "server": "bank"},
    {"name": "pay", "description": "Pay a sum", "server": "bank"}],
    "resources": [{"uri": "rates://today", "name": "rates"}, {"uri": "rates://old", "name": "old", "server": "bank"}],
    "prompts": [{"name": "explain", "description": "Explain a rate", "arguments": [{"name": "to", "required": true}]}]}"#;

pub(super) const ANSWERS: &str = r#"{
    "tools": {
        "convert": {
            "when": [{"arguments": {"to": "CHF", "sum": 1}, "result": {"content": [{"type": "text", "text": "0.93 CHF"}]}}],
            "otherwise": {"content": [{"type": "text", "text": "no rate"}], "isError": true}
        },
        "bank:list": {"when": [{"arguments": {}, "result": {"content": [{"type": "text", "text": "EUR, CHF"}]}}]}
    },
    "resources": {"rates://today": {"contents": [{"uri": "rates://today", "mimeType": "text/plain", "text": "1 EUR = 0.93 CHF"}]}},
    "prompts": {"explain": {"messages": [{"role": "user", "content": {"type": "text", "text": "Explain the rate."}}]}}
}"#;

fn client(folder: &Path, yaml: &str) -> LocalClient {
    let (path, answers) = (folder.join("catalog.json"), folder.join("answers.json"));
    std::fs::write(&path, CATALOG).unwrap();
    std::fs::write(&answers, ANSWERS).unwrap();
    let mut config = GatewayConfig::parse(yaml, folder, &|_| None).unwrap();
    config.catalog = Some(CatalogFile { path, answers: Some(answers) });
    LocalClient::start(config).unwrap()
}

#[test]
fn calls_reads_and_prompts_are_answered_and_what_has_no_answer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    // A call that fails for good is not made again.
    let client =
        client(folder.path(), "{retry: {max_attempts: 3, base_delay: 60}, http: {sessions_memory_bytes: 4000000}}");
    let execute = |tool: &str, args: Value| ("tool_execute", json!({"tool_id": tool, "args": args}));
    let cases = [
        execute("convert", json!({"sum": 1.0, "to": "CHF"})),
        execute("convert", json!({"sum": 2, "to": "CHF"})),
        execute("convert", json!({"to": "CHF"})),
        execute("bank:list", json!({})),
        execute("bank:list", json!({"region": "EU"})),
        execute("bank:pay", json!({})),
        ("resource_read", json!({"resource_id": "rates://today"})),
        ("resource_read", json!({"resource_id": "rates://old"})),
        ("prompt_get", json!({"prompt_id": "explain", "args": {"to": "CHF"}})),
        ("prompt_get", json!({"prompt_id": "explain"})),
    ];
    let mut said = String::new();
    for (tool, arguments) in cases {
        let answer: Value = client.call(tool, &arguments).unwrap().read().unwrap();
        let texts: Vec<&str> =
            answer["content"].as_array().unwrap().iter().flat_map(|part| part["text"].as_str()).collect();
        said += &format!("{}{}\n", if answer["isError"] == true { "! " } else { "" }, texts.join("\n"));
    }
    insta::assert_snapshot!(said, @r#"
    0.93 CHF
    ! no rate
    ! {"error":"ARGS_INVALID","message":"the arguments: \"sum\" is a required property","path":"mcp:convert#0b0d4d8e","retryable":false,"details":{"violations":[{"path":"","reason":"\"sum\" is a required property"}],"arguments":"{sum: number, to?: string}","example":{"sum":1,"to":"CHF"}}}
    EUR, CHF
    ! {"error":"UPSTREAM_UNAVAILABLE","message":"the file of `answers` has no answer for these arguments; add one under `tools`, or an `otherwise`","path":"bank:list#8e99f625","retryable":false}
    ! {"error":"UPSTREAM_UNAVAILABLE","message":"the file of `answers` has no answer for it; add one under `tools`","path":"bank:pay#a399aee8","retryable":false}
    1 EUR = 0.93 CHF
    ! {"error":"UPSTREAM_UNAVAILABLE","message":"the file of `answers` has no answer for it; add one under `resources`","path":"rates://old","retryable":false}
    Explain the rate.
    ! {"error":"ARGS_INVALID","message":"the arguments: \"to\" is a required property","path":"prompt::mcp:explain#80a8882b","retryable":false,"details":{"violations":[{"path":"","reason":"\"to\" is a required property"}],"arguments":"{to: string}","example":{"to":"<to>"}}}
    "#);
    let answered = client.gateway().answered().unwrap();
    let shares = [answered.tools, answered.resources, answered.prompts].map(|share| (share.answered, share.all));
    assert_eq!(shares, [(2, 3), (1, 2), (1, 1)]);
}

#[test]
fn the_other_modes_list_and_answer_the_same() {
    for mode in ["proxy", "passthrough"] {
        let folder = tempfile::tempdir().unwrap();
        let client = client(folder.path(), &format!("{{mode: {mode}}}"));
        let ask = |method: &str, params: Value| -> Result<Value, String> {
            let answer = client.request(method, &params);
            answer.map(|result| result.read().unwrap()).map_err(|error| format!("{} {}", error.code, error.message))
        };
        let listed = ask("resources/list", json!({})).unwrap();
        assert_eq!(listed["resources"].as_array().unwrap().len(), 2, "{listed}");
        let read = ask("resources/read", json!({"uri": "rates://today"})).unwrap();
        assert_eq!(read["contents"][0]["text"], "1 EUR = 0.93 CHF");
        let refused = ask("resources/read", json!({"uri": "rates://old"})).unwrap_err();
        assert!(refused.contains("no answer for it; add one under `resources`"), "{refused}");
        let unknown = ask("resources/read", json!({"uri": "rates://never"})).unwrap_err();
        assert_eq!(unknown, "-32002 no upstream has the resource `rates://never`");
        let prompts = ask("prompts/list", json!({})).unwrap();
        let name = prompts["prompts"][0]["name"].clone();
        let prompt = ask("prompts/get", json!({"name": name, "arguments": {"to": "CHF"}})).unwrap();
        assert_eq!(prompt["messages"][0]["content"]["text"], "Explain the rate.");
        let tools = ask("tools/list", json!({})).unwrap();
        let tools = tools["tools"].as_array().unwrap();
        let convert = tools.iter().find(|tool| tool["name"].as_str().unwrap().contains("convert")).unwrap();
        let called = ask("tools/call", json!({"name": convert["name"], "arguments": {"sum": 1, "to": "CHF"}})).unwrap();
        assert_eq!(called["content"][0]["text"], "0.93 CHF");
    }
}

#[test]
fn guards_and_the_audit_log_see_such_a_call_as_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let yaml =
        format!("{{audit: {{file: {}}}, policy: {{rules: [{{action: deny, tool: 'bank:list'}}]}}}}", log.display());
    let client = client(folder.path(), &yaml);
    for tool in ["convert", "bank:list", "bank:pay"] {
        client.call("tool_execute", &json!({"tool_id": tool, "args": {"sum": 1}})).unwrap();
    }
    drop(client);
    let text = std::fs::read_to_string(log).unwrap();
    let lines: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<AuditLine>(line).unwrap())
        .filter_map(|line| {
            let code = line.code.map(|code| format!(" {code}")).unwrap_or_default();
            Some(format!("{} {}{code}", line.item?, line.decision?.name()))
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    mcp:convert#0b0d4d8e allow
    bank:list#8e99f625 refuse POLICY_DENIED
    bank:pay#a399aee8 allow
    ");
}
