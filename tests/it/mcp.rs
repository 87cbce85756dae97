//! The commands around the gateway, in front of a server that is itself a replayed session.

use crate::support::Files;

/// A session with a server of two tools.
const SESSION: &str = r#"{"seq":1,"direction":"client","message":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}}
{"seq":2,"direction":"server","message":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"notes","version":"1"}}}}
{"seq":3,"direction":"client","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}
{"seq":4,"direction":"server","message":{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read","description":"Read a note.","inputSchema":{"type":"object"},"x":1.0e0},{"name":"find.all","description":"Find notes.","inputSchema":{"type":"objekt"}}]}}}
"#;

fn files() -> Files {
    let files = Files::new();
    files.write("session.ndjson", SESSION);
    let config = format!(
        "{{\"upstreams\": {{\"notes\": {{\"command\": {:?}, \"args\": [\"mcp\", \"replay\", {:?}]}}}}}}",
        env!("CARGO_BIN_EXE_contextweaver"),
        files.path("session.ndjson")
    );
    files.write("gateway.json", config);
    files
}

#[test]
fn what_a_server_lists_is_saved_and_served() {
    let files = files();
    let program = env!("CARGO_BIN_EXE_contextweaver");
    let snapshot = ["mcp", "snapshot", "--out", "notes.json", "--", program, "mcp", "replay", "session.ndjson"];
    let mut shown = vec![files.run(&snapshot).shown(), std::fs::read_to_string(files.path("notes.json")).unwrap()];
    shown.push(files.run(&snapshot).shown());
    shown.push(files.run(&["mcp", "inspect", "--catalog", "notes.json"]).shown());
    shown.push(files.run(&["mcp", "snapshot", "--out", "x.json", "--", "no-such-program"]).shown());
    shown.push(files.run(&["mcp", "snapshot", "--out", "x.json"]).shown());
    assert_eq!(files.names(), ["gateway.json", "notes.json", "session.ndjson"]);
    insta::assert_snapshot!(shown.join("\n"), @"");
}

#[test]
fn a_configuration_is_inspected_and_examined() {
    let files = files();
    let inspected = files.run(&["mcp", "inspect", "--config", "gateway.json"]).shown();
    let examined = files.run(&["mcp", "doctor", "--config", "gateway.json", "--notes"]).shown();
    let milliseconds = |line: &str| match line.split_once("started in ") {
        Some((before, _)) => format!("{before}started in N ms"),
        None => line.to_owned(),
    };
    let examined: Vec<String> = examined.lines().map(milliseconds).collect();
    insta::assert_snapshot!(inspected, @"");
    insta::assert_snapshot!(examined.join("\n"), @"");
    insta::assert_snapshot!(files.run(&["mcp", "doctor", "--config", "none.yaml"]).shown(), @"");
}

#[test]
fn servers_of_a_client_are_taken_over_without_their_secrets() {
    let files = files();
    let client = r#"{"mcpServers": {
        // the forge
        "forge": {"command": "npx", "args": ["-y", "forge-mcp"], "env": {"FORGE_TOKEN": "hunter2", "LOG": "debug"}},
        "contextweaver": {"command": "contextweaver", "args": ["mcp", "serve", "--config", "x.yaml"]},
    }}"#;
    files.write("claude_desktop_config.json", client);
    let import = ["mcp", "import", "claude_desktop_config.json"];
    let mut shown = vec![files.run(&import).shown()];
    shown.push(files.run(&[&import[..], &["--write", "gateway.yaml"]].concat()).shown());
    shown.push(std::fs::read_to_string(files.path("gateway.yaml")).unwrap());
    shown.push(files.run(&[&import[..], &["--write", "gateway.yaml"]].concat()).shown());
    files.write("broken.json", "{\n  // no\n  \"mcpServers\": {\"a\" 1}\n}");
    shown.push(files.run(&["mcp", "import", "broken.json"]).shown());
    let shown = shown.join("\n");
    assert!(!shown.contains("hunter2"));
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn events_are_counted() {
    let files = files();
    let event = |event: &str, success: bool, more: &str| {
        format!(
            "{{\"attributes\":{{{more}}},\"duration_ms\":2.5,\"event\":\"{event}\",\"namespace\":\"notes\",\"session_id\":\"a\",\"success\":{success},\"timestamp\":\"2026-11-22T12:00:00.000000+00:00\",\"tool_id\":\"notes:read#00000000\",\"version\":1}}\n"
        )
    };
    let lines = [
        event("execute.completed", true, ""),
        event("execute.failed", false, "\"code\":\"ARGS_INVALID\""),
        "torn\n".to_owned(),
        event("browse.completed", true, ""),
    ];
    files.write("events.jsonl", lines.concat());
    insta::assert_snapshot!(files.run(&["mcp", "stats", "--events", "events.jsonl"]).shown(), @"");
    insta::assert_snapshot!(files.run(&["mcp", "stats", "--events", "none.jsonl"]).shown(), @"");
}

#[test]
fn a_recording_that_is_none_is_refused_with_its_line() {
    let files = files();
    files.write("bad.ndjson", "\n{\"seq\": 1}\n");
    insta::assert_snapshot!(files.run(&["mcp", "replay", "bad.ndjson"]).shown(), @"");
}
