//! The budget of a request: what is too much for it fails and names what was too much, and costs nobody else anything.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::shop::{Scene, Who, run, upstream};
use crate::protocol::message::Raw;
use crate::{Caller, Gateway, GatewayConfig, Live, WorkConfig};

/// A kind of work.
struct Kind {
    name: &'static str,
    /// What else is in the configuration.
    yaml: &'static str,
    /// A budget that is too small for `asked`.
    work: WorkConfig,
    /// A tool of the gateway and its arguments; an argument `handle` is that of a stored result.
    asked: (&'static str, Value),
    /// What is said.
    said: &'static str,
    /// The beginning of what that is about.
    about: &'static str,
    /// What fits into the budget.
    fits: (&'static str, Value),
}

/// Bytes of a text that is long work to look through.
const LONG: usize = 100_000;

fn steps(steps: u64) -> WorkConfig {
    WorkConfig { steps, ..WorkConfig::default() }
}

fn bytes(bytes: u64) -> WorkConfig {
    WorkConfig { bytes, ..WorkConfig::default() }
}

fn execute(tool: &str, args: &Value) -> (&'static str, Value) {
    ("tool_execute", json!({"tool_id": format!("works:{tool}"), "args": args}))
}

fn view(selector: &Value) -> (&'static str, Value) {
    ("tool_view", json!({"handle": "", "selector": selector}))
}

fn kinds() -> Vec<Kind> {
    let kind = |name, work, asked, said, about| {
        let fits = execute("numbers", &json!({"list": [1]}));
        Kind { name, yaml: "{}", work, asked, said, about, fits }
    };
    let checking = "checking the arguments against the schema takes more than is left of the 2000 steps";
    let proxy = "{mode: proxy, sanitize: {scope: all}}";
    let queries = json!({"queries": ["the first one", "the second one", "the third one"]});
    vec![
        kind(
            "reading of arguments",
            bytes(5_000),
            execute("numbers", &json!({"note": "x".repeat(5_000)})),
            "reading the arguments takes more than is left of the 5000 bytes",
            "works:numbers#",
        ),
        kind(
            "validation of arguments",
            steps(2_000),
            execute("numbers", &json!({"list": vec![1; 2_000]})),
            checking,
            "works:numbers#",
        ),
        kind(
            "regular expression of a schema",
            steps(2_000),
            execute("pattern", &json!({"text": "b"})),
            checking,
            "works:pattern#",
        ),
        Kind {
            yaml: "tolerant_args: true",
            ..kind(
                "repair",
                steps(2_000),
                execute("numbers", &json!({"list": vec!["1"; 1_500]})),
                "repairing the arguments takes more than is left of the 2000 steps",
                "works:numbers#",
            )
        },
        kind(
            "validation of a result",
            steps(2_000),
            execute("promise", &json!({})),
            "checking the result against the output schema takes more than is left of the 2000 steps",
            "works:promise#",
        ),
        kind(
            "summary",
            steps(2_000),
            execute("long", &json!({})),
            "bytes cannot be shown, since summarising it takes more than is left of the 2000 steps",
            "works:long#",
        ),
        kind(
            "selector",
            steps(2_000),
            view(&json!({"type": "lines", "start": 5, "end": 7})),
            r#"the selector {"type":"lines","start":5,"end":7} takes more than is left of the 2000 steps"#,
            "artifact:",
        ),
        kind(
            "regular expression of a selector",
            // Enough for any other selector.
            steps(LONG as u64 * 2 / 3),
            view(&json!("grep:line 7")),
            r#"the selector "grep:line 7" takes more than is left of the 66666 steps"#,
            "artifact:",
        ),
        kind(
            "bytes of a view",
            bytes(5_000),
            view(&json!("head:5")),
            r#"the selector "head:5" takes more than is left of the 5000 bytes"#,
            "artifact:",
        ),
        Kind {
            fits: ("tool_browse", json!({"query": "the third one"})),
            ..kind(
                "ranking of several queries",
                steps(40),
                ("tool_browse", queries),
                "tool_browse: the query `the third one` takes more than is left of the 40 steps",
                "",
            )
        },
        Kind {
            yaml: proxy,
            ..kind(
                "sanitising of a result",
                steps(2_000),
                execute("long", &json!({})),
                "cleaning its result takes more than is left of the 2000 steps",
                "works:long#",
            )
        },
        Kind {
            yaml: proxy,
            ..kind(
                "sanitising of a definition",
                steps(2_000),
                ("tool_hydrate", json!({"tool_id": "works:wide"})),
                "cleaning the definition takes more than is left of the 2000 steps",
                "works:wide#",
            )
        },
    ]
}

/// A gateway in front of tools each of which makes one kind of work.
fn works(yaml: &str) -> GatewayConfig {
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let tool = |name: &str, description: &str, properties: Value| json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties}});
    let mut promise = tool("promise", "gives numbers", json!({}));
    promise["outputSchema"] = json!({"type": "object", "properties": {"list": list}});
    let tools = json!([
        tool("numbers", "takes numbers", json!({"list": list, "note": {"type": "string"}})),
        tool("pattern", "takes a text", json!({"text": {"type": "string", "pattern": "^(?!a)"}})),
        promise,
        tool("long", "writes a long text", json!({})),
        tool("wide", &"says much ".repeat(500), json!({})),
    ]);
    let answer = move |method: &str, params: Option<&Raw>| {
        let params: Value = params.and_then(|params| params.read().ok()).unwrap_or_default();
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        Ok(Raw::of(&match (method, params["name"].as_str()) {
            ("initialize", _) => {
                json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "w", "version": "1"}})
            }
            ("tools/list", _) => json!({"tools": tools}),
            (_, Some("promise")) => json!({"content": [], "structuredContent": {"list": vec![7; 2_000]}}),
            (_, Some("long")) => text(&"a line 7.\n".repeat(LONG / 10)),
            _ => text("done"),
        }))
    };
    let mut config = GatewayConfig::parse(yaml, Path::new("."), &|_| None).unwrap();
    config.upstreams.insert("works".to_owned(), upstream(answer));
    config
}

/// The answer to a call.
async fn ask(gateway: &Gateway, caller: &Caller, (tool, arguments): &(&'static str, Value)) -> Value {
    let params = Raw::of(&json!({"name": tool, "arguments": arguments}));
    gateway.answer(caller, "tools/call", Some(&params)).await.unwrap().read().unwrap()
}

/// The text of an answer as JSON.
fn read(answer: &Value) -> Value {
    serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap_or_default()
}

#[test]
fn what_is_too_much_for_a_request_is_named_and_costs_nobody_else_anything() {
    run(async {
        for mut kind in kinds() {
            let name = kind.name;
            let config = works(kind.yaml);
            let live = Live::from(Gateway::start(config.clone()).await.unwrap());
            let scene = Scene { shop: Arc::default(), gateway: live.now() };
            let (caller, other) = (scene.client(Who::Mute), scene.client(Who::Other));
            if kind.asked.1.get("handle").is_some() {
                let stored = ask(&live.now(), &caller, &execute("long", &json!({}))).await;
                kind.asked.1["handle"] = read(&stored)["artifacts"][0]["handle"].clone();
            }
            let answer = ask(&live.now(), &caller, &kind.asked).await;
            assert_ne!(answer["isError"], true, "{name}, with the budget that a request has by default: {answer}");
            live.replace(GatewayConfig { work: kind.work, ..config }).await.unwrap();
            let gateway = live.now();
            let (failed, answer) = tokio::join!(ask(&gateway, &caller, &kind.asked), ask(&gateway, &other, &kind.fits));
            let failure = read(&failed);
            let [said, about] = ["message", "path"].map(|member| failure[member].as_str().unwrap_or_default());
            assert!(said.contains(kind.said) && about.starts_with(kind.about), "{name}: {failed}");
            let field = if kind.work.bytes < WorkConfig::default().bytes { "`work.bytes`" } else { "`work.steps`" };
            assert!(said.contains(field), "{name}: {said}");
            assert_eq!(failure["retryable"], false, "{name}");
            assert_ne!(answer["isError"], true, "{name}, another caller: {answer}");
            // The next request of the same caller has a budget of its own.
            let answer = ask(&gateway, &caller, &kind.fits).await;
            assert_ne!(answer["isError"], true, "{name}, another request: {answer}");
            gateway.close().await;
        }
    });
}
