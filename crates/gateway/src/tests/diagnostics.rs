//! What a gateway records of calls.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::common::error::Code;
use crate::surface::meta_tools::MetaTool;
use crate::upstream::{Fault, InProcess};
use crate::wire::Raw;
use crate::{Caller, ClientInfo, Era, Event, Gateway, GatewayConfig, Session, Target, UpstreamConfig};

/// `schemas/events.json`, which describes a line.
fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../schemas/events.json")).unwrap()
}

/// The lines of a file are those that the schema describes.
fn fit(text: &str) {
    let schema = jsonschema::draft202012::new(&schema()).unwrap();
    for line in text.lines() {
        let faults: Vec<String> =
            schema.iter_errors(&serde_json::from_str(line).unwrap()).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{line}: {faults:?}");
    }
}

#[test]
fn the_schemas_name_every_word_that_a_line_may_have() {
    let audit: Value = serde_json::from_str(include_str!("../../../../schemas/audit.json")).unwrap();
    let (schema, codes) = (schema(), &audit["properties"]["code"]["enum"]);
    let attributes = &schema["$defs"]["Call"]["properties"];
    assert_eq!(attributes["code"]["enum"], json!(Code::WORDS));
    assert!(Code::WORDS.iter().all(|word| codes.as_array().unwrap().contains(&json!(word))), "{codes}");
    let named: Vec<&str> = attributes["meta_tool"]["enum"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
    let tools = MetaTool::ALL.map(MetaTool::name);
    assert_eq!(BTreeSet::from_iter(named), BTreeSet::from_iter(tools));
}

#[tokio::test]
async fn calls_are_recorded_without_what_they_carry() {
    let folder = tempfile::tempdir().unwrap();
    let (catalog, events) = (folder.path().join("tools.json"), folder.path().join("events.jsonl"));
    let tools = r#"[{"name":"send_mail","description":"Send a mail","inputSchema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}}]"#;
    std::fs::write(&catalog, tools).unwrap();
    let config =
        GatewayConfig { catalog: Some(catalog.into()), diagnostics: Some(events.clone()), ..Default::default() };
    let gateway = Gateway::start(config).await.unwrap();
    let id = gateway.catalog().tools.as_ref().unwrap().router.catalog().items()[0].id.clone();
    let (out, _client) = mpsc::channel(16);
    let caller = Caller::new(Session::new("s"), ClientInfo::default(), out);
    let calls = [
        json!({"name": "tool_browse", "arguments": {"query": "SECRET words"}}),
        json!({"name": "tool_browse", "arguments": {"path": "/SECRET"}}),
        json!({"name": "tool_execute", "arguments": {"tool_id": id, "args": {"to": "SECRET"}, "dry_run": true}}),
        json!({"name": "tool_execute", "arguments": {"tool_id": id, "args": {"to": "SECRET"}}}),
        json!({"name": "tool_execute", "arguments": {"tool_id": "SECRET", "args": {"a": 1}}}),
        json!({"name": "tool_execute", "arguments": {"tool_id": id, "args": {"to": "", "SECRET": 1, "SECRET2": 2}}}),
        json!({"name": "tool_view", "arguments": {"handle": "SECRET", "selector": "SECRET"}}),
    ];
    for call in calls {
        gateway.answer(&caller, "tools/call", Some(&Raw::of(&call))).await.unwrap();
    }
    gateway.close().await;
    let text = std::fs::read_to_string(events).unwrap();
    assert!(!text.contains("SECRET"), "{text}");
    fit(&text);
    let shown: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<Event>(line).unwrap())
        .map(|event| {
            format!("{} {} {:?} {}", json!(event.event), event.success, event.namespace, json!(event.attributes))
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    "catalog.loaded" true None {"generation":1,"left_out":0,"prompts":0,"resources":0,"tools":1,"definition_tokens":33,"surface_tokens":794}
    "browse.completed" true None {"answer_tokens":49,"argument_names":["query"],"caller":"local","decision":"allow","meta_tool":"tool_browse"}
    "browse.failed" false None {"answer_tokens":52,"argument_names":["path"],"caller":"local","code":"PATH_INVALID","decision":"refuse","meta_tool":"tool_browse","retryable":false}
    "execute.dry_run" true Some("mcp") {"answer_tokens":67,"argument_names":["to"],"caller":"local","decision":"allow","meta_tool":"tool_execute"}
    "execute.failed" false Some("mcp") {"answer_tokens":56,"argument_names":["to"],"caller":"local","code":"UPSTREAM_UNAVAILABLE","decision":"allow","meta_tool":"tool_execute","retryable":false}
    "execute.failed" false None {"answer_tokens":35,"argument_names":[],"caller":"local","code":"HYDRATE_FAILED","decision":"refuse","meta_tool":"tool_execute","retryable":false,"unknown_arguments":1}
    "execute.failed" false Some("mcp") {"answer_tokens":56,"argument_names":["to"],"caller":"local","code":"UPSTREAM_UNAVAILABLE","decision":"allow","meta_tool":"tool_execute","retryable":false,"unknown_arguments":2}
    "view.failed" false None {"answer_tokens":72,"argument_names":["handle","selector"],"caller":"local","code":"VIEW_FAILED","decision":"refuse","meta_tool":"tool_view","retryable":false}
    "#);
}

#[tokio::test]
async fn attempts_and_kept_results_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let events = folder.path().join("events.jsonl");
    let calls = AtomicU32::new(0);
    let answer = move |method: &str, _: Option<&Raw>| match method {
        "initialize" => Ok(Raw::of(&json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}))),
        "tools/list" => Ok(Raw::of(&json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}))),
        _ if calls.fetch_add(1, Ordering::Relaxed) == 0 => Err(Fault::Timeout(Duration::ZERO)),
        _ => Ok(Raw::of(&json!({"content": []}))),
    };
    let text = "{cache: {read_only: true, allow: ['*']}, retry: {max_attempts: 2, base_delay: 0}}";
    let mut config = GatewayConfig::parse(text, Path::new("/"), &|_| None).unwrap();
    let target = Target::InProcess(InProcess::new(answer));
    let upstream = UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(target) };
    config.upstreams.insert("u".to_owned(), upstream);
    config.diagnostics = Some(events.clone());
    let gateway = Gateway::start(config).await.unwrap();
    let id = gateway.catalog().tools.as_ref().unwrap().router.catalog().items()[0].id.clone();
    let (out, _client) = mpsc::channel(16);
    let caller = Caller::new(Session::new("s"), ClientInfo::default(), out);
    for _ in 0..2 {
        let call = Raw::of(&json!({"name": "tool_execute", "arguments": {"tool_id": id}}));
        gateway.answer(&caller, "tools/call", Some(&call)).await.unwrap();
    }
    gateway.close().await;
    let text = std::fs::read_to_string(events).unwrap();
    fit(&text);
    let events = text.lines().skip(1).map(|line| serde_json::from_str::<Event>(line).unwrap());
    let shown: Vec<String> =
        events.map(|event| format!("{} {}", json!(event.event), json!(event.attributes.get("attempts")))).collect();
    assert_eq!(shown, [r#""execute.completed" 2"#, r#""execute.cache_hit" null"#]);
}
