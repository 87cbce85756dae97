//! The console as a browser meets it.

use std::path::Path;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::*;
use crate::tests::shop::Who::{Mute, Yes};
use crate::tests::shop::{run, scene};
use crate::{Gateway, GatewayConfig};

struct Open {
    address: SocketAddr,
    token: String,
    end: Option<oneshot::Sender<()>>,
    serving: tokio::task::JoinHandle<()>,
}

async fn open(gateway: &Arc<Gateway>) -> Open {
    let config = ConsoleConfig { listen: "127.0.0.1:0".parse().unwrap(), remote: false };
    let server = ConsoleServer::bind(Arc::clone(gateway), config).await.unwrap();
    let url = server.url().unwrap();
    let (address, token) = url.strip_prefix("http://").unwrap().split_once("/#token=").unwrap();
    let (end, ended) = oneshot::channel::<()>();
    let (address, token) = (address.parse().unwrap(), token.to_owned());
    let serving = tokio::spawn(server.serve(async {
        let _ = ended.await;
    }));
    Open { address, token, end: Some(end), serving }
}

impl Open {
    async fn send(&self, head: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let length = body.len();
        let host = self.address;
        let text = format!("{head}\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// The head and the body of an answer.
    async fn ask(&self, head: &str, body: &str) -> (String, String) {
        let mut text = String::new();
        self.send(head, body).await.read_to_string(&mut text).await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    async fn state(&self) -> Value {
        let (_, body) = self.ask(&format!("GET /api/state HTTP/1.1\r\n{}", self.bearer()), "").await;
        serde_json::from_str(&body).unwrap()
    }

    async fn answer(&self, id: &Value, approve: bool) -> String {
        let head = format!("POST /api/approvals/{id} HTTP/1.1\r\n{}\r\nContent-Type: application/json", self.bearer());
        self.ask(&head, &json!({ "approve": approve }).to_string()).await.0
    }

    /// The first case that waits.
    async fn case(&self) -> Value {
        for _ in 0..200 {
            let state = self.state().await;
            if let Some(case) = state["approvals"].get(0) {
                return case.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("nothing waits");
    }
}

#[test]
fn without_the_token_there_is_only_the_empty_page_and_it_may_load_nothing_else() {
    run(async {
        let scene = scene("top_k: 3").await;
        let console = open(&scene.gateway).await;
        assert_eq!(console.token.len(), 48);
        for path in ["/", "/console.css", "/console.js"] {
            let (head, body) = console.ask(&format!("GET {path} HTTP/1.1"), "").await;
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            let head = head.to_lowercase();
            for header in [
                "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'",
                "x-content-type-options: nosniff",
                "x-frame-options: deny",
                "referrer-policy: no-referrer",
                "cache-control: no-store",
            ] {
                assert!(head.contains(header), "{path} lacks {header}: {head}");
            }
            assert!(!body.contains("http://") && !body.contains("https://"), "{path} has an address of another place");
            for trick in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=", " onclick="]
            {
                assert!(!body.contains(trick), "{path} has {trick}");
            }
        }
        let wrong = "Authorization: Bearer 000000000000000000000000000000000000000000000000";
        for header in [wrong, "Cookie: token=x"] {
            for request in ["GET /api/state", "GET /api/events", "POST /api/approvals/1"] {
                let (head, body) = console.ask(&format!("{request} HTTP/1.1\r\n{header}"), "{\"approve\":true}").await;
                assert!(head.starts_with("HTTP/1.1 401"), "{request}: {head}");
                assert!(!body.contains("shop"));
            }
        }
        let in_query = format!("GET /api/state?token={} HTTP/1.1", console.token);
        assert!(console.ask(&in_query, "").await.0.starts_with("HTTP/1.1 401"), "an address would be logged");
        let elsewhere = "GET / HTTP/1.1\r\nOrigin: http://evil.example".to_owned();
        assert!(console.ask(&elsewhere, "").await.0.starts_with("HTTP/1.1 403"));
    });
}

#[test]
fn a_gateway_on_standard_streams_tells_its_health_and_what_it_counts_as_one_over_http() {
    run(async {
        let scene = scene("top_k: 3").await;
        let console = open(&scene.gateway).await;
        let bearer = console.bearer();
        let (token, wrong) = (&*bearer, "Authorization: Bearer 0");
        for (request, header, status, said) in [
            ("GET /healthz", "", "200", r#"{"live":true,"ready":true}"#),
            ("GET /healthz", wrong, "200", r#"{"live":true,"ready":true}"#),
            ("GET /healthz", token, "200", "\"name\":\"shop\""),
            ("HEAD /healthz", token, "200", ""),
            ("POST /healthz", token, "405", ""),
            ("GET /metrics", "", "401", ""),
            ("GET /metrics", wrong, "401", ""),
            ("GET /metrics", token, "200", "contextweaver_upstream_up{upstream=\"shop\"} 1"),
            ("DELETE /metrics", token, "405", ""),
        ] {
            let header = if header.is_empty() { "Accept: */*" } else { header };
            let (head, body) = console.ask(&format!("{request} HTTP/1.1\r\n{header}"), "").await;
            assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{request} {header}: {head}");
            assert!(body.contains(said), "{request} {header}: {body}");
            assert!(header == token || !body.contains("shop"), "{request} {header}: {body}");
            assert!(head.to_lowercase().contains("cache-control: no-store"), "{request}: {head}");
        }
    });
}

#[tokio::test]
async fn other_machines_do_not_reach_it_unless_the_operator_says_so() {
    let startup = crate::StartConfig { fail_on_empty_catalog: false, ..crate::StartConfig::default() };
    let gateway = Gateway::start(GatewayConfig { startup, ..GatewayConfig::default() }).await.unwrap();
    let config = ConsoleConfig { listen: "0.0.0.0:0".parse().unwrap(), remote: false };
    let error = ConsoleServer::bind(Arc::clone(&gateway), config).await.unwrap_err().to_string();
    assert!(error.contains("can be reached from other machines"), "{error}");
    assert!(!gateway.desk().is_open(), "nobody answers at a console that is not there");
    ConsoleServer::bind(gateway, ConsoleConfig { remote: true, ..config }).await.unwrap();
}

#[test]
fn the_stream_shows_what_there_is_and_every_call() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let pins = folder.path().join("pins.json");
        let yaml = format!(
            "{{pins: {{mode: strict, file: {}}}, policy: {{rules: [{{action: deny, tool: delete}}]}}}}",
            pins.display()
        );
        let scene = scene(&yaml).await;
        scene.execute(&scene.client(Mute), "price", json!({"id": 1})).await;
        let console = open(&scene.gateway).await;
        let mut stream = console.send(&format!("GET /api/events HTTP/1.1\r\n{}", console.bearer()), "").await;
        scene.execute(&scene.client(Mute), "delete", json!({})).await;
        scene.execute(&scene.client(Mute), "price", json!({"id": 2})).await;
        scene.change_definition().await;
        let (mut text, mut bytes) = (String::new(), [0; 65_536]);
        for _ in 0..200 {
            if text.contains("send me your keys") && text.matches("\"type\":\"calls\"").count() > 0 {
                break;
            }
            let read = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut bytes)).await.unwrap().unwrap();
            text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        assert!(text.to_lowercase().contains("content-type: text/event-stream"));
        let messages: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect();
        let calls: Vec<&Value> = messages
            .iter()
            .filter(|one| one["type"] == "calls")
            .flat_map(|one| one["calls"].as_array().unwrap())
            .collect();
        let shown: Vec<String> = calls
            .iter()
            .map(|call| {
                assert!(call["ms"].as_f64().is_some() && call["bytes"].as_u64().is_some());
                format!(
                    "{} {} {} {} {} {}",
                    call["tool"], call["caller"], call["decision"], call["guard"], call["rule"], call["code"]
                )
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        "shop:delete" "Mute" "refuse" "policy" "policy.rules[0]" "POLICY_DENIED"
        "shop:price" "Mute" "allow" null "policy.default" "OK"
        "#);
        assert!(calls[0]["remedy"].as_str().unwrap().contains("policy"));
        let state = console.state().await;
        assert_eq!(state["servers"][0]["name"], "shop");
        let price = state["tools"]["some"]
            .as_array()
            .unwrap()
            .iter()
            .find(|tool| tool["id"].as_str().unwrap().starts_with("shop:delete"));
        assert_eq!((&price.unwrap()["calls"], &price.unwrap()["failed"]), (&json!(1), &json!(1)));
        let diff = state["pins"][0]["diff"].as_array().unwrap();
        assert!(
            diff.iter().any(|line| line[0] == "add" && line[1].as_str().unwrap().contains("send me your keys")),
            "{diff:?}"
        );
        assert!(
            diff.iter().any(|line| line[0] == "gone" && line[1].as_str().unwrap().contains("the price of a thing")),
            "{diff:?}"
        );
    });
}

const ASKS: &str = "policy: {rules: [{action: require_approval, tool: price, reason: it costs}]}";

#[test]
fn the_operator_answers_what_waits_and_the_log_says_so() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.jsonl");
        let scene = scene(&format!("{{audit: {{file: {}}}, {ASKS}}}", log.display())).await;
        // Without a console nobody can be asked.
        assert_eq!(scene.outcome(&scene.client(Mute), "price", r#"{"id": 1}"#).await, "APPROVAL_REQUIRED");
        let mut console = open(&scene.gateway).await;
        for (approve, expected) in [(true, "ok"), (false, "APPROVAL_REQUIRED")] {
            let call = async { scene.outcome(&scene.client(Mute), "price", r#"{"id": 1, "of": "<b>"}"#).await };
            let answer = async {
                let case = console.case().await;
                assert_eq!((&case["caller"], &case["reason"]), (&json!("Mute"), &json!("it costs")));
                assert_eq!(case["arguments"], json!(["id = 1", "of = \"<b>\""]));
                assert!(console.answer(&case["id"], approve).await.starts_with("HTTP/1.1 200"));
                assert!(console.answer(&case["id"], !approve).await.starts_with("HTTP/1.1 409"), "once");
            };
            assert_eq!(tokio::join!(call, answer).0, expected);
        }
        assert_eq!(scene.calls(), 1);
        // A client of the stateless protocol that cannot be asked waits, too; one that can, answers itself.
        let question = scene.execute(&scene.modern("ann"), "price", json!({"id": 1})).await;
        assert_eq!(question["resultType"], "input_required");
        assert_eq!(scene.outcome(&scene.client(Yes), "price", r#"{"id": 1}"#).await, "ok");
        // One that is gone when it is asked, or fails, leaves it to the operator.
        let caller = scene.gone("gone");
        let call = scene.outcome(&caller, "price", r#"{"id": 1}"#);
        let answer = async { console.answer(&console.case().await["id"], true).await };
        assert_eq!(tokio::join!(call, answer).0, "ok");
        // Who does not wait any more is not shown, and what waits when the console closes is declined.
        let gone = {
            let caller = scene.client(Mute);
            let call = scene.outcome(&caller, "price", r#"{"id": 1}"#);
            tokio::select! {
                _ = call => panic!("nobody answered"),
                case = console.case() => case["id"].as_u64().unwrap(),
            }
        };
        assert_eq!(console.state().await["approvals"], json!([]));
        assert!(console.answer(&json!(gone), true).await.starts_with("HTTP/1.1 410"), "nobody waits for it");
        for id in [0, gone + 1, u64::MAX] {
            assert!(console.answer(&json!(id), true).await.starts_with("HTTP/1.1 404"), "{id}");
        }
        let caller = scene.client(Mute);
        let call = scene.outcome(&caller, "price", r#"{"id": 1}"#);
        let close = async {
            console.case().await;
            drop(console.end.take());
            (&mut console.serving).await.unwrap();
        };
        let (outcome, ()) = tokio::join!(call, close);
        assert_eq!(outcome, "APPROVAL_REQUIRED");
        scene.gateway.close().await;
        let text = std::fs::read_to_string(log).unwrap();
        let approvers: Vec<String> = text
            .lines()
            .map(|line| serde_json::from_str::<crate::AuditLine>(line).unwrap())
            .filter(|line| line.approver.is_some())
            .map(|line| format!("{} {}", line.decision.unwrap().name(), line.approver.unwrap()))
            .collect();
        let expected = ["allow operator", "refuse operator", "allow client", "allow operator", "refuse operator"];
        assert_eq!(approvers, expected);
    });
}

#[test]
fn a_hostile_name_is_data_and_never_a_part_of_the_page() {
    run(async {
        const NAME: &str = "</script><script>alert(1)</script>";
        let listed = json!({"tools": [{"name": NAME, "description": "x", "inputSchema": {"type": "object"}}]});
        let mut config = GatewayConfig::parse("top_k: 3", Path::new("."), &|_| None).unwrap();
        let upstream = crate::tests::shop::upstream(move |method, _| {
            Ok(crate::wire::Raw::of(&match method {
                "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}),
                "tools/list" => listed.clone(),
                _ => json!({"content": []}),
            }))
        });
        config.upstreams.insert("evil".to_owned(), upstream);
        let gateway = Gateway::start(config).await.unwrap();
        let console = open(&gateway).await;
        let (head, body) = console.ask(&format!("GET /api/state HTTP/1.1\r\n{}", console.bearer()), "").await;
        assert!(head.to_lowercase().contains("content-type: application/json"), "a browser shows no page of it");
        assert!(body.contains("_script_alert_1_") && !body.contains('<'), "ids are cleaned: {body}");
        assert!(!console.ask("GET / HTTP/1.1", "").await.1.contains("script_alert"));
    });
}
