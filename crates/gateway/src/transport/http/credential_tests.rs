//! Calls that go on as their callers, from one end to the other: two callers with tokens of an authorization server, one with
//! a fixed token, a token endpoint, and an upstream that says whom it sees.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::jwt::tests::Signer;
use super::door_tests::Issuer;
use super::tests::{Served, initialize, request};
use crate::config::file::GatewayConfig;
use crate::upstream::client::http_tests::{Reply, greeting, result, serve};

const GATEWAY: &str = "http://gateway.test/mcp";
const UP: &str = "https://up.example/mcp";

/// The subject of a token.
fn subject(token: &str) -> String {
    use base64::Engine;
    let body = token.split('.').nth(1).unwrap();
    let body = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(body).unwrap();
    serde_json::from_slice::<Value>(&body).unwrap()["sub"].as_str().unwrap().to_owned()
}

/// What the upstream says to a call of this token, as text, or the text of the error.
async fn who(served: &Served, token: &str) -> String {
    let bearer = format!("Bearer {token}");
    let opened = served.exchange("POST", &[("authorization", &bearer)], &initialize(&json!({}))).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let headers = [("authorization", bearer.as_str()), ("mcp-session-id", &session)];
    let listed = served.exchange("POST", &headers, &request("tools/list", &json!({}))).await;
    let id = listed.messages[0]["result"]["tools"].as_array().unwrap().iter();
    let id = id.filter_map(|tool| tool["name"].as_str()).find(|name| name.contains("who")).unwrap().to_owned();
    let call = request("tools/call", &json!({"name": id, "arguments": {}}));
    let answer = served.exchange("POST", &headers, &call).await;
    answer.messages.last().unwrap()["result"]["content"][0]["text"].as_str().unwrap_or("-").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_sees_who_calls_and_nobody_gets_what_another_got() {
    let signer = Signer::ec();
    let issuer = Issuer::start(json!({"keys": [signer.published("a")]})).await;
    let (url, log) = serve(|asked| match (greeting(asked), asked.method()) {
        (Some(reply), _) => reply,
        (_, "tools/list") => result(
            asked,
            &json!({"tools": [{"name": "who", "description": "Say who asks", "inputSchema": {"type": "object"}}]}),
        ),
        _ => {
            let text = format!("you are {}", asked.header("authorization").unwrap_or("nobody"));
            result(asked, &json!({"content": [{"type": "text", "text": text}]}))
        }
    })
    .await;
    let (token_url, exchanges) = serve(|asked| {
        let token = asked.text.split("subject_token=").nth(1).unwrap().split('&').next().unwrap();
        let body = match subject(token).as_str() {
            "eve" => return Reply::Whole(400, "application/json", json!({"error": "invalid_grant"}).to_string()),
            name => json!({"access_token": format!("of-{name}"), "token_type": "Bearer", "expires_in": 300}),
        };
        Reply::Whole(200, "application/json", body.to_string())
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "mode": "proxy",
        "policy": {"read_only": ["*who"]},
        // Results are kept, and are not for other callers.
        "cache": {"read_only": true},
        "audit": {"file": "audit.jsonl"},
        "upstreams": {
            "up": {"url": url, "era": "legacy", "headers": {"Authorization": "Bearer own"}, "credentials": {"exchange": {
                "token_endpoint": token_url, "client_id": "g", "client_secret": "s", "audience": UP}}},
        },
        "http": {
            "tokens": [{"name": "fixed", "token": "s3cret"}],
            "oauth": {"issuer": issuer.name(), "resource": GATEWAY},
        },
    });
    let config = GatewayConfig::parse(&config.to_string(), folder.path(), &|_| None).unwrap();
    let served = Arc::new(Served::of(config).await);
    let token = |name: &str| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let body = json!({"iss": issuer.name(), "aud": GATEWAY, "sub": name, "exp": now + 600});
        signer.token(&json!({"alg": "ES256", "kid": "a"}), &body)
    };
    let calls = (0..12).map(|number| {
        let name = ["ann", "bob"][number % 2];
        let (served, token) = (Arc::clone(&served), token(name));
        tokio::spawn(async move { (name, who(&served, &token).await) })
    });
    for call in calls.collect::<Vec<_>>() {
        let (name, text) = call.await.unwrap();
        assert_eq!(text, format!("you are Bearer of-{name}"));
    }
    let refused = who(&served, &token("eve")).await;
    assert!(refused.contains("AUTH_FAILED") && refused.contains("upstream `up`") && refused.contains("invalid_grant"));
    assert!(who(&served, "s3cret").await.contains("has shown no token of the authorization server"));
    let lines = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    assert!(lines.contains(r#""credentials":"upstreams.up.credentials.exchange","decision":"allow""#), "{lines}");
    // Every token has a session of its own to the upstream, and none of them reached it.
    let subjects = exchanges.lock().unwrap().iter().map(|asked| asked.text.clone()).collect::<Vec<_>>().concat();
    assert!(subjects.contains("subject_token=eyJ") && !lines.contains("eyJ") && !lines.contains("of-ann"));
    let seen: Vec<String> =
        log.lock().unwrap().iter().filter_map(|asked| asked.header("authorization").map(str::to_owned)).collect();
    assert!(
        seen.iter().all(|seen| matches!(seen.as_str(), "Bearer own" | "Bearer of-ann" | "Bearer of-bob")),
        "{seen:?}"
    );
    Arc::into_inner(served).unwrap().stop().await;
}
