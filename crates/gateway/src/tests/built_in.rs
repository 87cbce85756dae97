//! Servers that need no process, asked through the gateway.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::shop::run;
use crate::config::file::GatewayConfig;
use crate::protocol::client_info::ClientInfo;
use crate::protocol::message::Raw;
use crate::server::gateway::Gateway;
use crate::session::client::{Caller, Session};

/// A query that has no end of its own.
const ENDLESS: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";

/// A folder with a manual, a database, and what must not be reached.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("manual")).unwrap();
    write("manual/lamps.md", "# Lamps\n\n## Repair\n\nReplace the bulb.\n\n## Prices\n\nThe shop has them.\n");
    write("manual/sofa.txt", "A sofa has no bulb.\n");
    write("secret.md", "s3cret");
    let shop = rusqlite::Connection::open(folder.path().join("shop.sqlite")).unwrap();
    shop.execute_batch("CREATE TABLE lamps (name TEXT, price REAL); INSERT INTO lamps VALUES ('desk', 12.5)").unwrap();
    folder
}

async fn served(folder: &Path) -> std::sync::Arc<Gateway> {
    let yaml = "
upstreams:
  manual: {documents: manual}
  shop: {database: shop.sqlite}
  hasty: {database: shop.sqlite, timeout: 0.5}
policy:
  default: deny
  tags: {open: ['manual:*', '*:query']}
  rules: [{action: allow, tags: [open]}]
";
    Gateway::start(GatewayConfig::parse(yaml, folder, &|_| None).unwrap()).await.unwrap()
}

/// What a model is told of a call.
async fn told(gateway: &Gateway, tool: &str, arguments: Value) -> String {
    let client = ClientInfo { version: "2025-11-25".to_owned(), ..ClientInfo::default() };
    let caller = Caller::new(Session::new("s"), client, mpsc::channel(8).0);
    let params = json!({"name": "tool_execute", "arguments": {"tool_id": tool, "args": arguments}});
    let answer = gateway.answer(&caller, "tools/call", Some(&Raw::of(&params))).await.unwrap();
    let answer: Value = answer.read().unwrap();
    let error = if answer["isError"] == true { "! " } else { "" };
    format!("{error}{}", answer["content"][0]["text"].as_str().unwrap())
}

#[test]
fn what_a_built_in_server_has_passes_the_gateway_as_any_other() {
    run(async {
        let folder = folder();
        let gateway = served(folder.path()).await;
        let mut said = String::new();
        for (tool, arguments) in [
            ("manual:search", json!({"query": "replace a bulb", "limit": 1})),
            ("manual:read", json!({"path": "lamps.md", "first_line": 7})),
            ("manual:read", json!({"path": "../secret.md"})),
            ("manual:read", json!({"path": "lamps.md", "first_line": 0})),
            ("shop:query", json!({"sql": "SELECT price FROM lamps WHERE name = ?", "parameters": ["desk"]})),
            ("shop:query", json!({"sql": "DELETE FROM lamps"})),
            ("shop:query", json!({"sql": "SELECT 1; SELECT 2"})),
            ("shop:schema", json!({})),
        ] {
            said += &format!("{}\n", told(&gateway, tool, arguments).await);
        }
        insta::assert_snapshot!(said, @r###"
        {"passages":[{"path":"lamps.md","heading":"Lamps > Repair","first_line":1,"last_line":5,"text":"# Lamps\n\n## Repair\n\nReplace the bulb."}]}
        lamps.md, lines 7 to 9 of 9

        ## Prices

        The shop has them.

        ! `../secret.md` leads out of the folder, or to what is hidden; name a path as `search` gives it, such as guide/start.md
        ! {"error":"ARGS_INVALID","message":"/first_line: 0 is less than the minimum of 1","path":"manual:read#4ffa2240","retryable":false,"details":{"violations":[{"path":"/first_line","reason":"0 is less than the minimum of 1"}],"arguments":"{path: string, first_line?: integer, last_line?: integer}","example":{"path":"lamps.md"}}}
        {"columns":["price"],"rows":[[12.5]]}
        ! the database is only read, and the statement asks for a change of lamps; write one SELECT
        ! there is more than one statement; ask for one at a time, without a `;` between
        ! {"error":"POLICY_DENIED","message":"the policy of this gateway refuses it","path":"shop:schema#59760d4a","retryable":false}
        "###);
        gateway.close().await;
    });
}

#[test]
fn a_query_that_does_not_end_costs_its_caller_alone() {
    run(async {
        let folder = folder();
        let gateway = served(folder.path()).await;
        let asked = std::sync::Arc::clone(&gateway);
        let endless = tokio::spawn(async move { told(&asked, "shop:query", json!({ "sql": ENDLESS })).await });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(told(&gateway, "manual:search", json!({"query": "sofa"})).await.contains("sofa.txt"));
        let one = json!({"sql": "SELECT count(*) FROM lamps"});
        assert_eq!(told(&gateway, "shop:query", one.clone()).await, r#"{"columns":["count(*)"],"rows":[[1]]}"#);
        assert!(!endless.is_finished(), "it had ended by itself, and nothing was shown");
        // Who goes away leaves nothing running: its place is free again.
        endless.abort();
        // More of them than failures that open a circuit breaker: a query that takes too long is not a failure of the server.
        for _ in 0..6 {
            let ended = told(&gateway, "hasty:query", json!({ "sql": ENDLESS })).await;
            assert!(ended.starts_with("! ended after 0.45 s"), "{ended}");
        }
        assert_eq!(told(&gateway, "hasty:query", one).await, r#"{"columns":["count(*)"],"rows":[[1]]}"#);
        gateway.close().await;
    });
}
