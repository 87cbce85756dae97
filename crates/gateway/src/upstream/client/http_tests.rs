//! HTTP upstreams against a server that shows what it is sent and answers as it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::*;
use crate::common::error::Code;
use crate::protocol::client_info::ClientInfo;
use crate::session::client::Session;
use crate::upstream::config::UpstreamConfig;
use crate::upstream::mailbox::Events;

const AMPLE: Duration = Duration::from_secs(20);

pub(super) fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(AMPLE * 2, test).await.expect("the test hangs") })
}

/// What the server was sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    verb: String,
    path: String,
    headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    /// The body as it came.
    pub(crate) text: String,
    /// The connection that it came on.
    connection: usize,
}

impl Asked {
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or("-")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// What the server answers.
pub(crate) enum Reply {
    Whole(u16, &'static str, String),
    Headed(u16, &'static [(&'static str, &'static str)], String),
    /// Server-sent events, until the sender is dropped.
    Stream(mpsc::UnboundedReceiver<String>),
}

pub(crate) fn result(asked: &Asked, result: &Value) -> Reply {
    Reply::Whole(
        200,
        "application/json",
        json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result}).to_string(),
    )
}

fn error(asked: &Asked, status: u16, code: i64) -> Reply {
    let error = json!({"jsonrpc": "2.0", "id": asked.body["id"], "error": {"code": code, "message": "no"}});
    Reply::Whole(status, "application/json", error.to_string())
}

fn events(events: &[&str]) -> Reply {
    Reply::Whole(200, "text/event-stream; charset=utf-8", events.concat())
}

/// What a server of the handshake era says at the start.
pub(crate) fn greeting(asked: &Asked) -> Option<Reply> {
    match (asked.verb.as_str(), asked.method()) {
        ("GET", _) => Some(Reply::Whole(405, "text/plain", String::new())),
        ("DELETE", _) => Some(Reply::Whole(200, "text/plain", String::new())),
        (_, "initialize") => {
            Some(result(asked, &json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}})))
        }
        (_, method) if method.starts_with("notifications/") => Some(Reply::Whole(202, "text/plain", String::new())),
        (_, "server/discover") => Some(error(asked, 400, -32000)),
        _ => None,
    }
}

pub(crate) type Log = Arc<Mutex<Vec<Asked>>>;

/// Starts a server; its address, and what it is sent.
pub(crate) async fn serve(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> (String, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (log, answer): (Log, _) = (Log::default(), Arc::new(answer));
    let asked = Arc::clone(&log);
    tokio::spawn(async move {
        for connection in 0.. {
            let Ok((stream, _)) = listener.accept().await else { return };
            let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
            tokio::spawn(async move { attend(stream, connection, &*answer, &log).await });
        }
    });
    (format!("http://{address}/mcp"), asked)
}

async fn attend(
    stream: TcpStream,
    connection: usize,
    answer: &(impl Fn(&Asked) -> Reply + Send + Sync),
    log: &Log,
) -> Option<()> {
    let (input, mut output) = stream.into_split();
    let mut input = BufReader::new(input);
    loop {
        let mut asked = Asked { connection, ..Asked::default() };
        let mut line = String::new();
        input.read_line(&mut line).await.ok()?;
        let mut first = line.split(' ');
        (asked.verb, asked.path) = (first.next()?.to_owned(), first.next()?.to_owned());
        loop {
            let mut line = String::new();
            input.read_line(&mut line).await.ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            asked.headers.insert(name.to_lowercase(), value.to_owned());
        }
        let mut body = vec![0; asked.header("content-length").map_or(0, |length| length.parse().unwrap())];
        input.read_exact(&mut body).await.ok()?;
        asked.body = serde_json::from_slice(&body).unwrap_or_default();
        asked.text = String::from_utf8(body).unwrap_or_default();
        lock(log).push(asked.clone());
        let (status, headers, body) = match answer(&asked) {
            Reply::Whole(status, kind, body) => (status, format!("content-type: {kind}\r\n"), body),
            Reply::Headed(status, headers, body) => {
                (status, headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect(), body)
            }
            Reply::Stream(mut events) => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                output.write_all(head.as_bytes()).await.ok()?;
                while let Some(event) = events.recv().await {
                    output.write_all(event.as_bytes()).await.ok()?;
                }
                return None;
            }
        };
        let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n", body.len());
        output.write_all(head.as_bytes()).await.ok()?;
        output.write_all(body.as_bytes()).await.ok()?;
    }
}

fn upstream(url: &str, era: Era) -> (Upstream, Events) {
    let headers = BTreeMap::from([("authorization".to_owned(), "Bearer s3cret".to_owned())]);
    let config = UpstreamConfig { era, ..UpstreamConfig::new(Target::Http { url: url.to_owned(), headers }) };
    let (sender, receiver) = EventSender::channel();
    (Upstream::new("up", config, sender), receiver)
}

async fn call(upstream: &Upstream) -> Result<String, Fault> {
    let params = Raw::of(&json!({"name": "écho", "arguments": {}}));
    let call = Call::own("tools/call", Some(&params));
    upstream.request(call).await.map(|raw| String::from_utf8(raw.bytes().to_vec()).unwrap())
}

/// What is heard next, besides that it is connected.
async fn heard_of(events: &mut Events) -> Event {
    loop {
        match events.recv().await.unwrap().1 {
            Event::Connected => {}
            event => return event,
        }
    }
}

/// A server of the handshake era with a session, which answers calls by `answer`.
async fn in_session(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> (String, Log) {
    serve(move |asked| match asked.method() {
        "initialize" => {
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}});
            let body = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result});
            Reply::Headed(200, &[("content-type", "application/json"), ("mcp-session-id", "s")], body.to_string())
        }
        "notifications/cancelled" => answer(asked),
        _ => greeting(asked).unwrap_or_else(|| answer(asked)),
    })
    .await
}

/// A client that can be asked for its roots, and what it is sent.
fn rooted(name: &str) -> (Caller, mpsc::Receiver<bytes::Bytes>) {
    let capabilities = json!({"roots": {}}).as_object().cloned().unwrap();
    let capabilities = capabilities.into_iter().collect();
    let client = ClientInfo { version: LEGACY_VERSIONS[0].to_owned(), capabilities, log: None };
    let (out, sent) = mpsc::channel(16);
    (Caller::new(Session::new(name), client, out), sent)
}

/// Calls a tool on behalf of a client.
async fn call_as(upstream: &Upstream, caller: &Caller, name: &str) -> Result<String, Fault> {
    let params = Raw::of(&json!({"name": name, "arguments": {}}));
    let call = Call { caller: Some(caller), ..Call::own("tools/call", Some(&params)) };
    upstream.request(call).await.map(|raw| String::from_utf8(raw.bytes().to_vec()).unwrap())
}

#[test]
fn what_comes_on_the_response_to_a_call_belongs_to_it() {
    run(async {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (stream, ids) = (Mutex::new(Some(receiver)), Arc::new(Mutex::new(Vec::new())));
        let seen = Arc::clone(&ids);
        let (url, log) = in_session(move |asked| {
            if asked.method() != "tools/call" {
                return Reply::Whole(202, "text/plain", String::new());
            }
            lock(&seen).push(asked.body["id"].clone());
            match asked.body["params"]["name"].as_str() {
                Some("slow") => Reply::Stream(lock(&stream).take().unwrap()),
                _ => {
                    // On the response to this call: an answer to the other, a message and a question.
                    let other = &lock(&seen)[0];
                    let said = [
                        json!({"jsonrpc": "2.0", "id": other, "result": "of another"}),
                        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "own"}}),
                        json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}),
                        json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": "own"}),
                    ];
                    let said: Vec<String> = said.iter().map(|message| format!("data: {message}\n\n")).collect();
                    let (sender, receiver) = mpsc::unbounded_channel();
                    tokio::spawn(async move {
                        for message in &said[..3] {
                            sender.send(message.clone()).unwrap();
                        }
                        tokio::time::sleep(Duration::from_millis(200)).await;
                        sender.send(said[3].clone()).unwrap();
                    });
                    Reply::Stream(receiver)
                }
            }
        })
        .await;
        let (upstream, _events) = upstream(&url, Era::Legacy);
        let ((one, mut of_one), (two, mut of_two)) = (rooted("one"), rooted("two"));
        let slow = call_as(&upstream, &one, "slow");
        let quick = async {
            while lock(&ids).is_empty() {
                tokio::task::yield_now().await;
            }
            let quick = call_as(&upstream, &two, "quick");
            let answer = async {
                let told: Value = serde_json::from_slice(&of_two.recv().await.unwrap()).unwrap();
                assert_eq!(told["params"]["data"], "own");
                let question: Value = serde_json::from_slice(&of_two.recv().await.unwrap()).unwrap();
                assert_eq!(question["method"], "roots/list");
                two.session().answered(&Raw::of(&question["id"]), Ok(Raw::of(&json!({"roots": [1]}))));
            };
            let (answered, ()) = tokio::join!(quick, answer);
            assert_eq!(answered.unwrap(), r#""own""#);
            let own = json!({"jsonrpc": "2.0", "id": lock(&ids)[0], "result": "slow"});
            sender.send(format!("data: {own}\n\n")).unwrap();
        };
        let (slow, ()) = tokio::join!(slow, quick);
        assert_eq!(slow.unwrap(), r#""slow""#);
        assert!(of_one.try_recv().is_err(), "nothing of it was for the other");
        assert!(lock(&log).iter().any(|asked| asked.body["id"] == "q" && asked.body["result"]["roots"] == json!([1])));
    });
}

#[test]
fn a_call_that_is_refused_ends_no_other_and_is_made_once() {
    run(async {
        let (sender, receiver) = mpsc::unbounded_channel();
        let stream = Mutex::new(Some(receiver));
        let (url, log) = in_session(move |asked| match asked.body["params"]["name"].as_str() {
            Some("slow") => Reply::Stream(lock(&stream).take().unwrap()),
            Some("bad") => error(asked, 400, -32_602),
            Some("odd") => Reply::Whole(400, "text/plain", "that is no request".to_owned()),
            _ => result(asked, &json!(1)),
        })
        .await;
        let (upstream, _events) = upstream(&url, Era::Legacy);
        let ((one, _), (two, _)) = (rooted("one"), rooted("two"));
        let count = |name: &str| lock(&log).iter().filter(|asked| asked.body["params"]["name"] == name).count();
        let others = async {
            while count("slow") == 0 {
                tokio::task::yield_now().await;
            }
            let bad = call_as(&upstream, &two, "bad").await;
            assert!(matches!(&bad, Err(Fault::Rpc(error)) if error.code == -32_602), "{bad:?}");
            // It does not say that this was not done.
            let odd = call_as(&upstream, &two, "odd").await;
            assert!(matches!(odd, Err(Fault::Status { status: 400, .. })), "{odd:?}");
            assert_eq!(call_as(&upstream, &two, "good").await.unwrap(), "1");
            tokio::time::sleep(LOOK * 2).await;
            let id = lock(&log).iter().find(|asked| asked.body["params"]["name"] == "slow").unwrap().body["id"].clone();
            let own = json!({"jsonrpc": "2.0", "id": id, "result": "slow"});
            sender.send(format!("data: {own}\n\n")).unwrap();
        };
        let (slow, ()) = tokio::join!(call_as(&upstream, &one, "slow"), others);
        assert_eq!(slow.unwrap(), r#""slow""#);
        assert_eq!((count("bad"), count("odd"), count("slow")), (1, 1, 1));
        let handshakes = lock(&log).iter().filter(|asked| asked.method() == "initialize").count();
        assert_eq!(handshakes, 2, "one more for the status alone, which may mean the session");
        // The former connection ends when it serves nobody.
        while !lock(&log).iter().any(|asked| asked.verb == "DELETE") {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn what_is_taken_back_does_not_hold_up_answers() {
    run(async {
        let senders = Mutex::new(Vec::new());
        let (url, log) = in_session(move |asked| {
            let (sender, receiver) = mpsc::unbounded_channel();
            match (asked.method(), asked.body["params"]["name"].as_str()) {
                (_, Some("asks")) => {
                    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"});
                    sender.send(format!("data: {question}\n\n")).unwrap();
                }
                ("-", _) => return Reply::Whole(202, "text/plain", String::new()),
                _ => {}
            }
            lock(&senders).push(sender);
            Reply::Stream(receiver)
        })
        .await;
        let (upstream, _events) = upstream(&url, Era::Legacy);
        let (caller, mut sent) = rooted("one");
        for _ in 0..10 {
            let left = tokio::time::timeout(Duration::from_millis(50), call_as(&upstream, &caller, "hangs")).await;
            assert!(left.is_err());
        }
        let answer = async {
            let question: Value = serde_json::from_slice(&sent.recv().await.unwrap()).unwrap();
            caller.session().answered(&Raw::of(&question["id"]), Ok(Raw::of(&json!({"roots": []}))));
            while !lock(&log).iter().any(|asked| asked.body["id"] == "q") {
                tokio::task::yield_now().await;
            }
        };
        let answered = tokio::time::timeout(Duration::from_secs(5), async {
            tokio::select! {
                call = call_as(&upstream, &caller, "asks") => panic!("{call:?}"),
                () = answer => {}
            }
        });
        answered.await.expect("the answer waits");
    });
}

#[test]
fn the_handshake_era_with_a_session() {
    run(async {
        let (url, log) = serve(|asked| match asked.method() {
            "initialize" => {
                let body = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": {"protocolVersion": "2025-06-18", "capabilities": {}}});
                let headers = &[("content-type", "application/json"), ("mcp-session-id", "s1")];
                Reply::Headed(200, headers, body.to_string())
            }
            _ => greeting(asked).unwrap_or_else(|| result(asked, &json!({"a": [1.50]}))),
        })
        .await;
        let (upstream, _events) = upstream(&url, Era::Auto);
        for _ in 0..3 {
            assert_eq!(call(&upstream).await.unwrap(), r#"{"a":[1.5]}"#);
        }
        upstream.close().await;
        let log = lock(&log);
        let rows: Vec<String> = log
            .iter()
            .filter(|asked| asked.verb != "GET")
            .map(|asked| {
                let header = |name: &str| asked.header(name).unwrap_or("-").to_owned();
                let [session, version, method] = ["mcp-session-id", "mcp-protocol-version", "mcp-method"].map(header);
                format!("{} {} {session} {version} {method}", asked.verb, asked.method())
            })
            .collect();
        insta::assert_snapshot!(rows.join("\n"), @r"
        POST server/discover - 2026-07-28 server/discover
        POST initialize - - -
        POST notifications/initialized s1 2025-06-18 -
        POST tools/call s1 2025-06-18 -
        POST tools/call s1 2025-06-18 -
        POST tools/call s1 2025-06-18 -
        DELETE - s1 2025-06-18 -
        ");
        assert!(log.iter().all(|asked| asked.header("authorization") == Some("Bearer s3cret") && asked.path == "/mcp"));
        // The stream for what comes unasked may have been tried at the same time.
        let connections: BTreeSet<usize> = log.iter().map(|asked| asked.connection).collect();
        assert!(connections.len() <= 3 && log.len() >= 8, "{connections:?}");
    });
}

#[test]
fn the_stateless_era_says_in_headers_what_it_asks() {
    run(async {
        let (url, log) = serve(|asked| match asked.method() {
            "server/discover" => result(asked, &json!({"supportedVersions": ["2026-07-28"], "capabilities": {}})),
            _ => result(asked, &json!({})),
        })
        .await;
        let (upstream, _events) = upstream(&url, Era::Auto);
        call(&upstream).await.unwrap();
        let log = lock(&log);
        let asked = log.last().unwrap();
        assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(asked.header("mcp-method"), Some("tools/call"));
        assert_eq!(asked.header("mcp-name"), Some("=?base64?w6ljaG8=?="));
        assert_eq!(asked.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    });
}

#[test]
fn changes_are_asked_for_in_the_stateless_era() {
    run(async {
        let (sender, receiver) = mpsc::unbounded_channel();
        let receiver = Mutex::new(Some(receiver));
        let (url, log) = serve(move |asked| match asked.method() {
            "server/discover" => {
                let capabilities = json!({"tools": {"listChanged": true}});
                result(asked, &json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities}))
            }
            "subscriptions/listen" => match lock(&receiver).take() {
                Some(stream) => Reply::Stream(stream),
                None => error(asked, 200, -1),
            },
            _ => result(asked, &json!({})),
        })
        .await;
        let (upstream, mut heard) = upstream(&url, Era::Modern);
        call(&upstream).await.unwrap();
        sender
            .send("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n".to_owned())
            .unwrap();
        assert!(matches!(heard_of(&mut heard).await, Event::ToolsChanged));
        let listen = lock(&log).iter().find(|asked| asked.method() == "subscriptions/listen").cloned().unwrap();
        assert_eq!(listen.body["params"]["notifications"]["toolsListChanged"], true);
    });
}

#[test]
fn answers_on_a_stream_come_with_what_belongs_to_them() {
    run(async {
        let (url, log) = serve(|asked| {
            greeting(asked).unwrap_or_else(|| {
                let id = &asked.body["id"];
                events(&[
                    ": hello\n\ndata: no message\n\nevent: other\ndata: {}\n\n",
                    "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n",
                    "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"ping\"}\n\n",
                    &format!(
                        "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\ndata: \"result\":{{\"a\": 1 }}}}\n\n"
                    ),
                ])
            })
        })
        .await;
        let (upstream, mut heard) = upstream(&url, Era::Legacy);
        for _ in 0..2 {
            assert_eq!(call(&upstream).await.unwrap(), r#"{"a": 1 }"#);
            assert!(matches!(heard_of(&mut heard).await, Event::ToolsChanged));
        }
        // The question in the stream is answered by a message of its own.
        while !lock(&log).iter().any(|asked| asked.body["id"] == "q" && asked.body["result"] == json!({})) {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_stream_that_ends_early_is_taken_up_where_it_was_left() {
    run(async {
        let (url, log) = serve(|asked| match (asked.verb.as_str(), asked.header("last-event-id")) {
            ("GET", Some("7")) => events(&["data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":5}\n\n"]),
            // The answer breaks off: it has not come, although its id has.
            _ => {
                greeting(asked).unwrap_or_else(|| events(&["id: 7\nretry: 1\ndata:\n\n", "id: 8\ndata: {\"jsonrpc\":"]))
            }
        })
        .await;
        let (upstream, _events) = upstream(&url, Era::Legacy);
        assert_eq!(call(&upstream).await.unwrap(), "5");
        assert_eq!(lock(&log).iter().filter(|asked| asked.method() == "tools/call").count(), 1);
    });
}

#[test]
fn a_session_that_is_not_known_any_more_is_replaced_once() {
    run(async {
        for status in [404, 400] {
            #[derive(Clone, Copy, PartialEq)]
            enum Memory {
                Good,
                Lost,
                None,
            }
            let memory = Arc::new(Mutex::new(Memory::Good));
            let remembered = Arc::clone(&memory);
            let (url, log) = serve(move |asked| {
                let mut memory = lock(&remembered);
                match asked.method() {
                    _ if asked.header("mcp-session-id").is_some() && *memory != Memory::Good => {
                        let error = json!({"code": -32_000, "message": "Bad Request: No valid session ID provided"});
                        let body = json!({"jsonrpc": "2.0", "error": error, "id": null});
                        Reply::Whole(status, "application/json", body.to_string())
                    }
                    "initialize" => {
                        if *memory == Memory::Lost {
                            *memory = Memory::Good;
                        }
                        let result = json!({"protocolVersion": "2025-11-25"});
                        let body = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result});
                        let headers = &[("content-type", "application/json"), ("mcp-session-id", "s")];
                        Reply::Headed(200, headers, body.to_string())
                    }
                    _ => greeting(asked).unwrap_or_else(|| result(asked, &json!(7))),
                }
            })
            .await;
            let handshakes = || lock(&log).iter().filter(|asked| asked.method() == "initialize").count();
            let (upstream, mut heard) = upstream(&url, Era::Legacy);
            assert_eq!((call(&upstream).await.unwrap(), handshakes()), ("7".to_owned(), 1));
            assert!(heard.try_recv().is_none());
            *lock(&memory) = Memory::Lost;
            assert_eq!((call(&upstream).await.unwrap(), handshakes()), ("7".to_owned(), 2));
            // A server that has lost its sessions was started anew, and may be another version.
            assert!(matches!(heard_of(&mut heard).await, Event::MayDiffer));
            *lock(&memory) = Memory::None;
            let answer = call(&upstream).await;
            assert!(matches!(answer, Err(Fault::Status { .. })), "{answer:?}");
            assert_eq!(handshakes(), 3, "once more, and not again and again");
        }
    });
}

#[test]
fn statuses_and_bodies_become_faults() {
    run(async {
        let cases: [(Reply, &str, &str); 8] = [
            (Reply::Whole(401, "text/plain", "token s3cret".to_owned()), "AUTH_FAILED", "status 401"),
            (Reply::Whole(403, "text/plain", String::new()), "PERMISSION_DENIED", "status 403"),
            (Reply::Headed(429, &[("retry-after", "7")], String::new()), "RATE_LIMITED", "status 429"),
            (Reply::Whole(503, "text/plain", String::new()), "UPSTREAM_UNAVAILABLE", "status 503"),
            (Reply::Headed(302, &[("location", "http://127.0.0.1:1/")], String::new()), "UPSTREAM_ERROR", "status 302"),
            (Reply::Whole(200, "text/html", "<p>".to_owned()), "UPSTREAM_ERROR", "of type"),
            (Reply::Whole(200, "application/json", "{".to_owned()), "UPSTREAM_ERROR", "not JSON"),
            (Reply::Whole(200, "text/event-stream", "data: {}\n\n".to_owned()), "UPSTREAM_UNAVAILABLE", "stream ended"),
        ];
        for (reply, code, reason) in cases {
            let reply = Mutex::new(Some(reply));
            let (url, _log) = serve(move |asked| greeting(asked).unwrap_or_else(|| lock(&reply).take().unwrap())).await;
            let (upstream, _events) = upstream(&url, Era::Legacy);
            let fault = call(&upstream).await.unwrap_err();
            let error = fault.to_error("up");
            assert_eq!(serde_json::to_value(error.code).unwrap(), code, "{fault:?}");
            assert!(error.message().contains(reason), "{error}");
            assert_eq!(error.details.get("retry_after"), (code == "RATE_LIMITED").then(|| json!(7)).as_ref());
        }
    });
}

#[test]
fn a_server_that_may_speak_only_the_older_http_is_said_to() {
    let found = async |era, status, body: &'static str| {
        let (url, _log) = serve(move |_| Reply::Whole(status, "application/json", body.to_owned())).await;
        let fault = call(&upstream(&url, era).0).await.unwrap_err();
        (fault.code(), fault.to_string())
    };
    run(async {
        for (status, body) in [(404, "Cannot POST /sse"), (405, "")] {
            for era in [Era::Auto, Era::Legacy] {
                let (code, said) = found(era, status, body).await;
                let expected = format!("it answered `initialize` with HTTP status {status}: ");
                assert!(said.starts_with(&expected) && said.contains("`type: sse`"), "{era:?}: {said}");
                assert_eq!(code, Code::UpstreamError);
            }
        }
        let error = r#"{"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "no tenant"}}"#;
        for (era, status, body) in [(Era::Legacy, 404, error), (Era::Legacy, 406, ""), (Era::Modern, 404, "")] {
            let (_, said) = found(era, status, body).await;
            assert!(!said.contains("sse"), "{era:?} {status}: {said}");
        }
        // One that is configured as such a server, and does not take what is posted where it said.
        let opened = Mutex::new(Vec::new());
        let (url, _log) = serve(move |asked| {
            if asked.verb != "GET" {
                return Reply::Whole(404, "text/plain", String::new());
            }
            let (sender, receiver) = mpsc::unbounded_channel();
            sender.send("event: endpoint\ndata: /messages\n\n".to_owned()).unwrap();
            lock(&opened).push(sender);
            Reply::Stream(receiver)
        })
        .await;
        let fault = call(&older_upstream(url).0).await.unwrap_err();
        assert!(matches!(fault, Fault::Status { status: 404, .. }), "{fault:?}");
    });
}

#[test]
fn an_error_of_the_protocol_may_come_with_status_400() {
    run(async {
        let (url, _log) = serve(|asked| greeting(asked).unwrap_or_else(|| error(asked, 400, -32_602))).await;
        let (upstream, _events) = upstream(&url, Era::Legacy);
        let answer = call(&upstream).await;
        assert!(matches!(&answer, Err(Fault::Rpc(error)) if error.code == -32_602), "{answer:?}");
    });
}

#[test]
fn a_redirection_is_followed_within_the_origin() {
    run(async {
        let (url, _log) = serve(|asked| {
            if asked.path == "/mcp" {
                return Reply::Headed(307, &[("location", "/mcp/")], String::new());
            }
            greeting(asked).unwrap_or_else(|| result(asked, &json!(1)))
        })
        .await;
        let (upstream, _events) = upstream(&url, Era::Legacy);
        assert_eq!(call(&upstream).await.unwrap(), "1");
    });
}

#[test]
fn who_cannot_be_reached_is_unavailable_and_his_address_not_shown() {
    run(async {
        let (upstream, _events) = upstream("http://127.0.0.1:1/key-s3cret", Era::Auto);
        let fault = call(&upstream).await.unwrap_err();
        assert!(matches!(fault, Fault::Unavailable(_)) && !fault.to_string().contains("s3cret"), "{fault}");
    });
}

#[test]
fn the_unasked_stream_is_heard_and_opened_again() {
    run(async {
        let (url, log) = serve(|asked| {
            if asked.verb == "GET" {
                return match asked.header("last-event-id") {
                    None => events(&["id: 1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"]),
                    Some(_) => events(&["data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}\n\n"]),
                };
            }
            greeting(asked).unwrap_or_else(|| result(asked, &json!(1)))
        })
        .await;
        let (upstream, mut heard) = upstream(&url, Era::Legacy);
        call(&upstream).await.unwrap();
        assert!(matches!(heard_of(&mut heard).await, Event::ToolsChanged));
        assert!(matches!(heard_of(&mut heard).await, Event::PromptsChanged));
        assert!(lock(&log).iter().any(|asked| asked.header("last-event-id") == Some("1")));
    });
}

#[test]
fn what_a_server_may_have_said_while_no_stream_was_open_is_asked_for() {
    run(async {
        let (url, log) = serve(|asked| {
            if asked.verb == "GET" {
                return events(&["retry: 100\n\n"]);
            }
            greeting(asked).unwrap_or_else(|| result(asked, &json!(1)))
        })
        .await;
        let (upstream, mut heard) = upstream(&url, Era::Legacy);
        call(&upstream).await.unwrap();
        assert!(matches!(heard_of(&mut heard).await, Event::MayDiffer));
        let opened = lock(&log).iter().filter(|asked| asked.verb == "GET").count();
        assert!(opened >= 2, "nothing is missed before the first");
    });
}

/// A server of the older HTTP whose stream names `endpoint`; the streams that it has opened.
async fn older(endpoint: &'static str) -> (String, Log, Arc<Mutex<Vec<mpsc::UnboundedSender<String>>>>) {
    let streams: Arc<Mutex<Vec<mpsc::UnboundedSender<String>>>> = Arc::default();
    let opened = Arc::clone(&streams);
    let (url, log) = serve(move |asked| {
        if asked.verb == "GET" {
            let (sender, receiver) = mpsc::unbounded_channel();
            sender.send(format!("event: endpoint\ndata: {endpoint}\n\n")).unwrap();
            lock(&opened).push(sender);
            return Reply::Stream(receiver);
        }
        let answer = match asked.method() {
            "initialize" => Some(json!({"protocolVersion": "2024-11-05", "capabilities": {}})),
            "tools/call" => Some(json!(7)),
            _ => None,
        };
        if let (Some(result), Some(stream)) = (answer, lock(&opened).last()) {
            let message = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result});
            stream.send(format!("event: message\ndata: {message}\n\n")).unwrap();
        }
        Reply::Whole(202, "text/plain", "Accepted".to_owned())
    })
    .await;
    (url, log, streams)
}

fn older_upstream(url: String) -> (Upstream, Events) {
    let target = Target::Sse { url, headers: BTreeMap::new() };
    let config = UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(target) };
    let (sender, heard) = EventSender::channel();
    (Upstream::new("up", config, sender), heard)
}

#[test]
fn the_older_http_answers_on_its_stream() {
    run(async {
        let (url, log, streams) = older("/messages?session=1").await;
        let (upstream, mut heard) = older_upstream(url);
        assert_eq!(call(&upstream).await.unwrap(), "7");
        assert!(lock(&log).iter().all(|asked| (asked.verb == "GET") != (asked.path == "/messages?session=1")));
        // The stream breaks off, and the next call opens another.
        lock(&streams).clear();
        assert!(matches!(heard_of(&mut heard).await, Event::Lost));
        assert_eq!(call(&upstream).await.unwrap(), "7");
    });
}

#[test]
fn the_older_http_is_not_led_elsewhere() {
    run(async {
        let (url, _log, _streams) = older("http://127.0.0.1:1/messages").await;
        let answer = call(&older_upstream(url).0).await;
        assert!(matches!(&answer, Err(Fault::Malformed(reason)) if reason.contains("another origin")), "{answer:?}");
    });
}
