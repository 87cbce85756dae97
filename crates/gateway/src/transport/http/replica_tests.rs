//! Streams that are taken up again, and two replicas with one state.

use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::tests::{Got, Served, call, initialize, request};
use crate::guard::sign::unique;

/// Reads a stream until it holds `part`.
async fn read_to(stream: &mut TcpStream, text: &mut String, part: &str) {
    while !text.contains(part) {
        let mut chunk = [0; 4096];
        let length = stream.read(&mut chunk).await.unwrap();
        assert!(length > 0, "the stream ended: {text}");
        text.push_str(std::str::from_utf8(&chunk[..length]).unwrap());
    }
}

/// The id of the last event in this text.
fn last_id(text: &str) -> String {
    text.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned()
}

#[tokio::test]
async fn a_stream_that_is_taken_up_again_tells_what_may_have_been_missed() {
    let served = Served::start("{}").await;
    let id = served.session().await;
    let session = [("mcp-session-id", id.as_str())];
    let watch = request("resources/subscribe", &json!({"uri": "a://2"}));
    assert_eq!(served.exchange("POST", &session, &watch).await.status, 200);
    let (mut stream, mut text) = (served.open("GET", &session, "").await, String::new());
    read_to(&mut stream, &mut text, "\ndata:\n\n").await;
    let first = last_id(&text);
    drop(stream);
    // Nothing has changed but what is watched, perhaps; then the lists have.
    let updated = "notifications/resources/updated";
    for (last, expected) in [
        (first.as_str(), vec![updated]),
        (
            "of-an-earlier-list",
            vec![
                "notifications/tools/list_changed",
                "notifications/resources/list_changed",
                "notifications/prompts/list_changed",
                updated,
            ],
        ),
    ] {
        let lines = [session[0], ("last-event-id", last)];
        let (mut stream, mut text) = (served.open("GET", &lines, "").await, String::new());
        read_to(&mut stream, &mut text, "a://2").await;
        assert_eq!(Got::of(&text).kinds(), expected, "{text}");
        assert_eq!(last_id(&text), first);
        drop(stream);
    }
    let twice = [session[0], ("last-event-id", "a"), ("Last-Event-ID", "b")];
    assert_eq!(served.exchange("GET", &twice, "").await.status, 400);
    // A client of an earlier version does not know events without a message.
    let early = initialize(&json!({})).replace("2025-11-25", "2025-06-18");
    let id = served.exchange("POST", &[], &early).await.header("mcp-session-id").unwrap().to_owned();
    let (mut stream, mut text) = (served.open("GET", &[("mcp-session-id", id.as_str())], "").await, String::new());
    assert_eq!(served.exchange("POST", &[("mcp-session-id", id.as_str())], &call("change")).await.status, 200);
    read_to(&mut stream, &mut text, "list_changed").await;
    assert!(!text.contains("data:\n") && text.contains("\nid: "), "{text}");
    drop(stream);
    served.stop().await;
}

/// The status with which a caller is answered in a session.
async fn ping(served: &Served, who: (&str, &str), session: &str) -> u16 {
    served.exchange("POST", &[who, ("mcp-session-id", session)], &request("ping", &json!({}))).await.status
}

/// Runs where `CONTEXTWEAVER_TEST_REDIS` has the URL of a server, as in `scripts/replicas-test`.
#[tokio::test]
async fn any_replica_serves_any_session() {
    let Ok(url) = std::env::var("CONTEXTWEAVER_TEST_REDIS") else { return };
    let state = format!("mode: passthrough, state: {{url: '{url}', prefix: 'test:{}'}}", unique());
    let http = "{max_sessions: 3, max_sessions_per_caller: 2, tokens: [{name: a, token: token-of-a-0123456789abcdef}, {name: b, token: token-of-b-0123456789abcdef}]}";
    let (one, two) = (Served::configured(&state, http).await, Served::configured(&state, http).await);
    let (a, b) = (
        ("authorization", "Bearer token-of-a-0123456789abcdef"),
        ("authorization", "Bearer token-of-b-0123456789abcdef"),
    );
    let open = |served| async move {
        let got = Served::exchange(served, "POST", &[a], &initialize(&json!({"elicitation": {}}))).await;
        got.header("mcp-session-id").unwrap().to_owned()
    };
    let first = open(&one).await;
    let lines = [a, ("mcp-session-id", first.as_str())];
    assert_eq!(ping(&two, a, &first).await, 200, "what one has opened the other serves");
    assert_eq!(ping(&two, b, &first).await, 404, "to its owner alone");
    // What the client said of itself is known there: it can be asked. Its answer comes to the other replica.
    let mut stream = two.open("POST", &lines, &call("ask")).await;
    let mut text = String::new();
    read_to(&mut stream, &mut text, "elicitation/create").await;
    read_to(&mut stream, &mut text, "\n\n").await;
    let asked = Got::of(&text).messages.into_iter().find(|message| message["method"] == "elicitation/create").unwrap();
    let mut answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {}}});
    assert!(asked["id"].as_u64().unwrap() > 1_000, "the numbers of replicas are far from each other");
    assert_eq!(one.exchange("POST", &lines, &answer.to_string()).await.status, 202);
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.contains("done"), "{text}");
    // What nobody waits for is dropped.
    answer["id"] = 7.into();
    assert_eq!(one.exchange("POST", &lines, &answer.to_string()).await.status, 202);
    // The bounds are those of all replicas together.
    let second = open(&two).await;
    assert_eq!(ping(&one, a, &second).await, 200);
    let third = open(&one).await;
    assert_eq!(ping(&two, a, &third).await, 200);
    assert_eq!(ping(&one, a, &first).await, 404, "the one used longest ago has made room");
    // What is ended at one is ended at all.
    let lines = [a, ("mcp-session-id", third.as_str())];
    assert_eq!(two.exchange("DELETE", &lines, "").await.status, 204);
    assert_eq!(ping(&one, a, &third).await, 404);
    assert_eq!(ping(&two, a, &third).await, 404);
    one.stop().await;
    // A replica that is gone takes no session with it.
    assert_eq!(ping(&two, a, &second).await, 200);
    two.stop().await;
}
