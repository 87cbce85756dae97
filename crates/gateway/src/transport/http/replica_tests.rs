//! Streams that are taken up again, and two replicas with one state.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::super::listener::SWEEP;
use super::sweep_of;
use super::tests::{Got, Served, call, initialize, modern, request};
use crate::guard::sign::unique;
use crate::protocol::versions::MODERN_VERSION;

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
        // Each event has an id of its own, which begins with what stands for the lists.
        let mut ids: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
        let list = |id: &str| id.split('.').next().unwrap().to_owned();
        assert!(ids.iter().all(|id| list(id) == list(&first)) && !ids.contains(&&*first), "{text}");
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{text}");
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

#[tokio::test]
async fn the_stream_of_a_request_is_taken_up_where_it_broke_off() {
    let served = Served::start("{}").await;
    let id = served.session().await;
    let session = ("mcp-session-id", id.as_str());
    let (mut stream, mut text) = (served.open("POST", &[session], &call("nap")).await, String::new());
    read_to(&mut stream, &mut text, "notifications/message").await;
    read_to(&mut stream, &mut text, "}\n\n").await;
    let last = last_id(&text);
    drop(stream);
    let number = last.strip_suffix("-1").unwrap();
    let first = format!("{number}-0");
    assert!(text.contains(&format!("id: {first}\ndata:\n")), "{text}");
    // The answer comes to who asks for the rest, once it is there, and again to who asks again.
    for (from, expected) in [
        (last.as_str(), vec!["answer"]),
        (last.as_str(), vec!["answer"]),
        (first.as_str(), vec!["notifications/message", "answer"]),
    ] {
        let got = served.exchange("GET", &[session, ("last-event-id", from)], "").await;
        assert_eq!((got.status, got.kinds()), (200, expected));
    }
    let end = format!("{number}-2");
    let got = served.exchange("GET", &[session, ("last-event-id", &end)], "").await;
    assert_eq!((got.status, got.kinds()), (204, vec![]), "there is nothing more");
    // What was never sent, or belongs to another session, cannot be taken up.
    let other = served.session().await;
    for (session, from) in
        [(id.as_str(), format!("{number}-3")), (id.as_str(), "999-0".to_owned()), (other.as_str(), last.clone())]
    {
        let lines = [("mcp-session-id", session), ("last-event-id", &*from)];
        assert_eq!(served.exchange("GET", &lines, "").await.status, 410, "{from}");
    }
    served.stop().await;
}

#[tokio::test]
async fn a_stream_that_ends_without_an_answer_is_not_asked_for_again_and_again() {
    let served = Served::start("{stream_after_seconds: 0.05}").await;
    let id = served.session().await;
    let session = ("mcp-session-id", id.as_str());
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}).to_string();
    let (mut stream, mut text) = (served.open("POST", &[session], &call("hold")).await, String::new());
    read_to(&mut stream, &mut text, "id: ").await;
    let first = last_id(&text);
    // Who goes on gets the id to go on from before anything else: without it, a client asks for the stream of the session.
    let (mut again, mut rest) = (served.open("GET", &[session, ("last-event-id", &first)], "").await, String::new());
    read_to(&mut again, &mut rest, "\ndata:\n\n").await;
    assert_eq!(last_id(&rest), first);
    assert_eq!(served.exchange("POST", &[session], &cancel).await.status, 202);
    again.read_to_string(&mut rest).await.unwrap();
    let got = served.exchange("GET", &[session, ("last-event-id", &first)], "").await;
    assert_eq!((got.status, got.kinds()), (204, vec![]));
    served.stop().await;
}

#[tokio::test]
async fn an_answer_that_takes_long_comes_in_a_stream() {
    let served = Served::start("{stream_after_seconds: 0.05}").await;
    let id = served.session().await;
    let session = ("mcp-session-id", id.as_str());
    let mut stream = served.open("POST", &[session], &call("hold")).await;
    let mut text = String::new();
    read_to(&mut stream, &mut text, "id: ").await;
    assert!(text.contains("text/event-stream") && last_id(&text).ends_with("-0"), "{text}");
    let lines = [("mcp-protocol-version", MODERN_VERSION), ("mcp-method", "tools/call"), ("mcp-name", "hold")];
    let params = modern(json!({"name": "hold", "arguments": {}}));
    let mut stream = served.open("POST", &lines, &request("tools/call", &params)).await;
    let mut text = String::new();
    read_to(&mut stream, &mut text, "text/event-stream").await;
}

#[tokio::test]
async fn a_question_waits_for_the_client_that_was_cut_off() {
    let served = Served::start("{}").await;
    let id = served.session().await;
    let session = ("mcp-session-id", id.as_str());
    let (mut stream, mut text) = (served.open("POST", &[session], &call("ask")).await, String::new());
    read_to(&mut stream, &mut text, "id: ").await;
    drop(stream);
    let first = format!("{}-0", last_id(&text).split('-').next().unwrap());
    let (mut stream, mut text) = (served.open("GET", &[session, ("last-event-id", &first)], "").await, String::new());
    read_to(&mut stream, &mut text, "elicitation/create").await;
    read_to(&mut stream, &mut text, "}\n\n").await;
    let asked = Got::of(&text).messages.into_iter().find(|message| message["method"] == "elicitation/create").unwrap();
    // Who takes the stream up a second time hears it, and the first hears no more.
    let last = last_id(&text);
    let mut second = served.open("GET", &[session, ("last-event-id", &last)], "").await;
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(!rest.contains("data"), "{rest}");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}}).to_string();
    assert_eq!(served.exchange("POST", &[session], &answer).await.status, 202);
    let mut rest = String::new();
    second.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("done") && rest.contains("-2\n"), "{rest}");
    served.stop().await;
}

#[tokio::test]
async fn an_early_client_gets_ids_and_no_empty_event() {
    let served = Served::start("{}").await;
    let early = initialize(&json!({})).replace("2025-11-25", "2025-06-18");
    let id = served.exchange("POST", &[], &early).await.header("mcp-session-id").unwrap().to_owned();
    let mut stream = served.open("POST", &[("mcp-session-id", id.as_str())], &call("slow")).await;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(!text.contains("data:\n") && text.contains("-3\n"), "{text}");
    served.stop().await;
}

/// The status with which a caller is answered in a session.
async fn ping(served: &Served, who: (&str, &str), session: &str) -> u16 {
    served.exchange("POST", &[who, ("mcp-session-id", session)], &request("ping", &json!({}))).await.status
}

#[test]
fn sessions_in_use_are_told_of_before_they_could_expire_elsewhere() {
    let seconds = Duration::from_secs;
    assert_eq!(sweep_of(seconds(1_800)), SWEEP);
    for idle in [1, 10, 29, 30, 45] {
        assert!(2 * sweep_of(seconds(idle)) < seconds(idle), "{idle}");
    }
    assert!(sweep_of(Duration::ZERO) > Duration::ZERO);
}

/// Runs where `CONTEXTWEAVER_TEST_REDIS` has the URL of a server, as in `scripts/replicas-test`.
#[tokio::test]
async fn a_session_in_use_does_not_expire_however_short_it_may_rest() {
    let Ok(url) = std::env::var("CONTEXTWEAVER_TEST_REDIS") else { return };
    let state = format!("mode: passthrough, state: {{url: '{url}', prefix: 'test:{}'}}", unique());
    let http = "{session_idle_seconds: 1}";
    let (one, two) = (Served::configured(&state, http).await, Served::configured(&state, http).await);
    let id = one.session().await;
    let lines = [("mcp-session-id", id.as_str()), ("connection", "keep-alive")];
    let stream = one.open("GET", &lines, "").await;
    let ping = async || two.exchange("POST", &lines[..1], &request("ping", &json!({}))).await.status;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(ping().await, 200);
    drop(stream);
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(ping().await, 404);
}

/// Runs where `CONTEXTWEAVER_TEST_REDIS` has the URL of a server, as in `scripts/replicas-test`.
#[tokio::test]
async fn a_session_that_cannot_be_kept_is_refused_and_may_be_opened_later() {
    let Ok(url) = std::env::var("CONTEXTWEAVER_TEST_REDIS") else { return };
    let prefix = format!("test:{}", unique());
    let state = format!("mode: passthrough, state: {{url: '{url}', prefix: '{prefix}'}}");
    let http = "{max_sessions: 1, max_sessions_per_caller: 1, tokens: [{name: a, token: token-of-a-0123456789abcdef}, {name: b, token: token-of-b-0123456789abcdef}]}";
    let (one, two) = (Served::configured(&state, http).await, Served::configured(&state, http).await);
    let open = async |served: &Served, caller: &str| {
        let token = format!("Bearer token-of-{caller}-0123456789abcdef");
        let got = served.exchange("POST", &[("authorization", &token)], &initialize(&json!({}))).await;
        (got.status, got.header("retry-after").map(str::to_owned), got.header("mcp-session-id").is_some())
    };
    let refused = (503, Some("1".to_owned()), false);
    assert_eq!(open(&one, "a").await, (200, None, true));
    assert_eq!(open(&two, "b").await, refused, "another has all sessions");
    // What stands there cannot be written to.
    let mut server = redis::Client::open(url).unwrap().get_connection().unwrap();
    redis::cmd("SET").arg(format!("{{{prefix}}}:sessions")).arg("x").exec(&mut server).unwrap();
    assert_eq!(open(&two, "a").await, refused);
    one.stop().await;
    two.stop().await;
}

/// Runs where `CONTEXTWEAVER_TEST_REDIS` has the URL of a server, as in `scripts/replicas-test`.
#[tokio::test]
async fn any_replica_serves_any_session() {
    let Ok(url) = std::env::var("CONTEXTWEAVER_TEST_REDIS") else { return };
    let state = format!("mode: passthrough, state: {{url: '{url}', prefix: 'test:{}'}}", unique());
    let http = "{max_sessions: 3, max_sessions_per_caller: 2, tokens: [{name: a, token: token-of-a-0123456789abcdef}, {name: b, token: token-of-b-0123456789abcdef}]}";
    let (one, two) = (Served::configured(&state, http).await, Served::configured(&state, http).await);
    let other = Served::configured(&state, http).await;
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
    // A client that was cut off fetches the answer at another replica.
    let (mut stream, mut text) = (two.open("POST", &lines, &call("nap")).await, String::new());
    read_to(&mut stream, &mut text, "notifications/message").await;
    read_to(&mut stream, &mut text, "}\n\n").await;
    drop(stream);
    let last = last_id(&text);
    let resumed = [lines[0], lines[1], ("last-event-id", last.as_str())];
    let got = one.exchange("GET", &resumed, "").await;
    assert_eq!((got.status, got.kinds()), (200, vec!["answer"]));
    assert_eq!(one.exchange("GET", &resumed, "").await.kinds(), ["answer"], "it is kept where it was fetched");
    assert_eq!(other.exchange("GET", &resumed, "").await.kinds(), ["answer"], "a client may be cut off there too");
    other.stop().await;
    let unknown = [lines[0], lines[1], ("last-event-id", "5-1")];
    assert_eq!(one.exchange("GET", &unknown, "").await.status, 410);
    // A request that is taken back at the one is waited for at the other no longer.
    let patient = Served::configured(&state, &http.replacen('{', "{stream_after_seconds: 0.05, ", 1)).await;
    let (mut stream, mut text) = (patient.open("POST", &lines, &call("hold")).await, String::new());
    read_to(&mut stream, &mut text, "id: ").await;
    let held = last_id(&text);
    let resumed = [lines[0], lines[1], ("last-event-id", held.as_str())];
    let mut waiting = one.open("GET", &resumed, "").await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}).to_string();
    assert_eq!(patient.exchange("POST", &lines, &cancel).await.status, 202);
    stream.read_to_string(&mut text).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(10), waiting.read_to_string(&mut text)).await;
    assert!(ended.is_ok(), "it ends at the other replica too");
    assert_eq!(one.exchange("GET", &resumed, "").await.status, 410);
    // So is an answer that was fetched where it was given.
    let (mut stream, mut text) = (patient.open("POST", &lines, &call("nap")).await, String::new());
    stream.read_to_string(&mut text).await.unwrap();
    let last = last_id(&text);
    let resumed = [lines[0], lines[1], ("last-event-id", last.as_str())];
    let settled = async { while one.exchange("GET", &resumed, "").await.status != 410 {} };
    assert!(tokio::time::timeout(Duration::from_secs(10), settled).await.is_ok());
    patient.stop().await;
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
    // What many requests change at the same moment has all of their changes, at each replica.
    let lines = [a, ("mcp-session-id", second.as_str())];
    let uris: Vec<String> = (0..40).map(|number| format!("a://{number}")).collect();
    let mut asked = Vec::new();
    for (number, uri) in uris.iter().enumerate() {
        let served = if number % 4 == 0 { &two } else { &one };
        let ask = json!({"jsonrpc": "2.0", "id": number, "method": "resources/subscribe", "params": {"uri": uri}});
        asked.push(served.open("POST", &lines, &ask.to_string()).await);
    }
    for mut stream in asked {
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert!(text.contains("\"result\""), "{text}");
    }
    for served in [&one, &two] {
        let again = [lines[0], lines[1], ("last-event-id", "of-an-earlier-list")];
        let (mut stream, mut text) = (served.open("GET", &again, "").await, String::new());
        for uri in &uris {
            read_to(&mut stream, &mut text, &format!("\"{uri}\"")).await;
        }
    }
    one.stop().await;
    // A replica that is gone takes no session with it.
    assert_eq!(ping(&two, a, &second).await, 200);
    two.stop().await;
}
