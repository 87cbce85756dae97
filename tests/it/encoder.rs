//! A gateway that searches by the sentence encoder too.

use std::io::{BufRead, BufReader, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Files, TOOLS};

/// The tool that a gateway with this configuration finds first, asked until that is `wanted` or the time is over.
fn found_first(files: &Files, config: &str, request: &str, wanted: &str, patience: Duration) -> String {
    let vectors = files.path("vectors").display().to_string();
    let mut child =
        files.start_with(&["mcp", "serve", "--config", config], &[("CONTEXTWEAVER_VECTORS", vectors.as_str())]);
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut ask = |method: &str, params: Value| -> Value {
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).unwrap();
        let mut line = String::new();
        while !line.contains("\"id\":1") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "the gateway has ended");
        }
        serde_json::from_str(&line).unwrap()
    };
    let client = json!({"name": "t", "version": "1"});
    ask("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}));
    let search = json!({"name": "tool_browse", "arguments": {"query": request}});
    let end = Instant::now() + patience;
    let found = loop {
        let page = ask("tools/call", search.clone())["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        let first = page.lines().find_map(|line| line.split_once('#')).map(|(name, _)| name.to_owned());
        if first.as_deref() == Some(wanted) || Instant::now() >= end {
            break first.unwrap_or(page);
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    drop(input);
    assert!(child.wait().unwrap().success());
    found
}

#[test]
fn a_gateway_with_the_encoder_finds_what_shares_no_word_with_the_request() {
    let files = Files::new();
    files.write("tools.json", TOOLS);
    files.write("words.yaml", "catalog: tools.json");
    files.write("meaning.yaml", "{catalog: tools.json, encoder: true}");
    let (request, wanted) = ("tell Anna that the party is off", "mail:send_mail");
    assert_ne!(found_first(&files, "words.yaml", request, wanted, Duration::ZERO), wanted);
    assert!(!files.path("vectors").exists());
    // It answers from its start, and reads the tools meanwhile.
    assert_eq!(found_first(&files, "meaning.yaml", request, wanted, Duration::from_secs(60)), wanted);
    assert!(files.path("vectors").is_dir());
}
