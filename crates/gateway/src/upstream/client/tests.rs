//! What upstreams do, and what becomes of those who ask them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

use super::*;
use crate::common::masks::Noted;
use crate::config::file::GatewayConfig;
use crate::config::startup::StartConfig;
use crate::protocol::client_info::ClientInfo;
use crate::protocol::framing::{Line, LineReader};
use crate::protocol::message::RpcError;
use crate::server::gateway::Gateway;
use crate::server::live::Live;
use crate::server::requests::{Asked, serve_request};
use crate::session::client::{Caller, Session};
use crate::session::elicitation::Questions;
use crate::session::identity::Identity;
use crate::surface::mode::Mode;
use crate::tests::shop::Scene;
use crate::upstream::config::{Confinement, UpstreamConfig};
use crate::upstream::mailbox::Events;
use crate::upstream::retry::RetryConfig;

/// Long enough for whatever must happen.
const AMPLE: Duration = Duration::from_secs(20);

/// Long enough to see that something does not happen, where that cannot be seen otherwise.
const BRIEF: Duration = Duration::from_millis(40);

fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(AMPLE * 2, test).await.expect("the test hangs") })
}

/// The other end of a connection.
struct Server {
    input: LineReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
}

impl Server {
    async fn hear(&mut self) -> Value {
        match self.input.next().await.unwrap() {
            Some(Line::Text(line)) => serde_json::from_slice(&line).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    async fn say(&mut self, text: &str) {
        self.output.write_all(text.as_bytes()).await.unwrap();
        self.output.write_all(b"\n").await.unwrap();
    }

    async fn answer(&mut self, asked: &Value, result: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string()).await;
    }
}

fn connection(limit: usize) -> (Connected, Server, Events) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (events, heard) = EventSender::channel();
    let (input, output) = tokio::io::split(ours);
    let link = LineLink::over(&Arc::from("up"), input, output, limit, events);
    let (input, output) = tokio::io::split(theirs);
    (Connected::on(Link::Lines(link)), Server { input: LineReader::new(input, usize::MAX), output }, heard)
}

#[test]
fn what_requests_go_over_follows_from_how_it_is_reached() {
    let (url, headers) = ("http://h/mcp".to_owned(), BTreeMap::new());
    let child = Target::Stdio {
        command: "x".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        confinement: Confinement::default(),
    };
    for (target, expected) in [
        (child, Some(Transport::Pipe)),
        (Target::Http { url: url.clone(), headers: headers.clone() }, Some(Transport::Tcp)),
        (Target::Sse { url, headers }, Some(Transport::Tcp)),
        (Target::Documents { folder: PathBuf::from("d") }, None),
    ] {
        let upstream = Upstream::new("up", UpstreamConfig::new(target), EventSender::channel().0);
        assert_eq!(upstream.transport(), expected);
    }
}

/// A client, and what it is sent.
fn client(capabilities: &Value) -> (Caller, mpsc::Receiver<Bytes>) {
    let capabilities = capabilities.as_object().cloned().unwrap().into_iter().collect();
    let client = ClientInfo { version: LEGACY_VERSIONS[0].to_owned(), capabilities, log: None };
    let (out, sent) = mpsc::channel(16);
    (Caller::new(Session::new("client"), client, out), sent)
}

/// A call on nobody's behalf.
static PLAIN: Call<'static> =
    Call { method: "tools/call", params: None, caller: None, progress: None, questions: Questions::AsTheyCame };

fn call<'c>(caller: Option<&'c Caller>, progress: Option<&'c Raw>) -> Call<'c> {
    Call { caller, progress, ..PLAIN }
}

fn text(raw: &Raw) -> &str {
    std::str::from_utf8(raw.bytes()).unwrap()
}

#[test]
fn noise_and_answers_that_nobody_waits_for_are_passed_over() {
    run(async {
        let (connected, mut server, _events) = connection(10_000);
        let serve = async {
            for n in 0..3 {
                let asked = server.hear().await;
                server.say("Starting…\n\n{\"half\":\n[1]\n17\n\"x\"\n{\"jsonrpc\":\"2.0\"}").await;
                server.output.write_all(b"\xff\xfe\x00\n").await.unwrap();
                server.say(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#).await;
                server.say(r#"{"jsonrpc":"2.0","id":"none","result":{}}"#).await;
                server.answer(&asked, json!(n)).await;
                server.answer(&asked, json!("again")).await;
            }
        };
        let ask = async {
            for n in 0..3 {
                let answer = connected.request(&PLAIN, AMPLE).await.unwrap();
                assert_eq!(text(&answer), n.to_string());
            }
        };
        tokio::join!(serve, ask);
    });
}

#[test]
fn an_answer_may_come_in_a_batch() {
    run(async {
        let (connected, mut server, _events) = connection(10_000);
        let call = call(None, None);
        let asking = connected.request(&call, AMPLE);
        let answering = async {
            let asked = server.hear().await;
            let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": 7});
            let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
            server.say(&json!([log, 1, answer]).to_string()).await;
        };
        let (answer, ()) = tokio::join!(asking, answering);
        assert_eq!(text(&answer.unwrap()), "7");
    });
}

#[test]
fn an_answer_over_the_limit_fails_its_own_request_at_once() {
    run(async {
        let (connected, mut server, _events) = connection(100_000);
        let serve = async {
            let (one, two) = (server.hear().await, server.hear().await);
            server.answer(&one, json!("x".repeat(20_000_000))).await;
            server.answer(&two, json!("fine")).await;
        };
        let one = async { connected.request(&PLAIN, AMPLE).await };
        let two = async { connected.request(&PLAIN, AMPLE).await };
        let ((), one, two) = tokio::join!(serve, one, two);
        let answers = [one, two].map(|answer| answer.map_err(|fault| fault.to_string()));
        assert!(answers[0].as_ref().unwrap_err().contains("over the limit of 100000"), "{answers:?}");
        assert_eq!(text(answers[1].as_ref().unwrap()), r#""fine""#);
    });
}

#[test]
fn a_message_that_is_none_fails_the_request_that_it_names() {
    run(async {
        let broken = ["{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[}", "{\"id\": 2, \"jsonrpc\":\"2.0\"}"];
        let (connected, mut server, _events) = connection(10_000);
        for text in broken {
            let (answer, ()) = tokio::join!(connected.request(&PLAIN, AMPLE), async {
                server.hear().await;
                // A line of a log, with a number of its own.
                server.say("{\"level\":\"info\",\"id\":2}").await;
                server.say(text).await;
            });
            assert!(matches!(answer, Err(Fault::Malformed(_))), "{text}: {answer:?}");
        }
    });
}

#[test]
fn who_waits_learns_at_once_that_the_upstream_is_gone_and_so_does_who_comes_later() {
    run(async {
        let (connected, mut server, _events) = connection(10_000);
        let one = async { connected.request(&PLAIN, AMPLE).await };
        let two = async { connected.request(&PLAIN, AMPLE).await };
        let leave = async {
            server.hear().await;
            server.hear().await;
            server.say(r#"{"jsonrpc":"2.0","id":1,"resu"#).await;
            drop(server);
        };
        let (one, two, ()) = tokio::join!(one, two, leave);
        let late = connected.request(&PLAIN, AMPLE).await;
        for answer in [one, two, late] {
            assert!(matches!(answer, Err(Fault::Unavailable(_))), "{answer:?}");
        }
        assert!(!connected.is_usable());
    });
}

#[test]
fn what_is_not_waited_for_any_more_is_taken_back() {
    run(async {
        let (connected, mut server, _events) = connection(10_000);
        let late = connected.request(&PLAIN, BRIEF).await;
        assert!(matches!(late, Err(Fault::Timeout(_))), "{late:?}");
        let left = tokio::time::timeout(BRIEF, connected.request(&PLAIN, AMPLE)).await;
        assert!(left.is_err());
        for id in [1, 2] {
            let asked = server.hear().await;
            assert_eq!((&asked["id"], &asked["method"]), (&json!(id), &json!("tools/call")));
            let back = server.hear().await;
            assert_eq!(
                (&back["params"]["requestId"], &back["method"]),
                (&json!(id), &json!("notifications/cancelled"))
            );
        }
        // What was answered is not taken back: the next that comes is the next request.
        for id in [3, 4] {
            let (answer, ()) = tokio::join!(connected.request(&PLAIN, AMPLE), async {
                let asked = server.hear().await;
                assert_eq!((&asked["id"], &asked["method"]), (&json!(id), &json!("tools/call")));
                server.answer(&asked, json!({})).await;
            });
            answer.unwrap();
        }
    });
}

#[test]
fn who_does_not_read_takes_no_more_memory_than_the_queue() {
    run(async {
        let (connected, mut server, _events) = connection(10_000);
        let params = Raw::of(&"x".repeat(20 * 1024 * 1024));
        let long = Call { params: Some(&params), ..PLAIN };
        for _ in 0..4 {
            let answer = connected.request(&long, BRIEF).await;
            assert!(matches!(answer, Err(Fault::Timeout(_))), "{answer:?}");
        }
        // The pipe held a part of the first, and the queue one more: the others were never sent.
        let (answer, asked) = tokio::join!(connected.request(&PLAIN, AMPLE), async {
            let mut long = 0;
            loop {
                let asked = server.hear().await;
                if asked["method"] == "tools/call" && asked["params"].is_null() {
                    server.answer(&asked, json!({})).await;
                    return long;
                }
                long += u32::from(asked["method"] == "tools/call");
            }
        });
        answer.unwrap();
        assert!((1..=2).contains(&asked), "{asked}");
    });
}

#[test]
fn progress_goes_to_its_caller_under_the_callers_own_token() {
    run(async {
        let (connected, mut server, _events) = connection(10_000);
        let (caller, mut sent) = client(&json!({}));
        let token = Raw::of(&"mine");
        let with_token = call(Some(&caller), Some(&token));
        let serve = async {
            let asked = server.hear().await;
            assert_eq!(asked["params"]["_meta"]["progressToken"], asked["id"]);
            let progress = json!({"progressToken": asked["id"], "progress": 1, "extra": [1.50]});
            for params in [json!({"progressToken": 77, "progress": 1}), progress] {
                let said = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
                server.say(&said.to_string()).await;
            }
            server.answer(&asked, json!({})).await;
        };
        let (answer, ()) = tokio::join!(connected.request(&with_token, AMPLE), serve);
        answer.unwrap();
        let sent: Vec<Bytes> = std::iter::from_fn(|| sent.try_recv().ok()).collect();
        let expected = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":1,"extra":[1.5]}}"#;
        assert_eq!(sent, [Bytes::from(expected)]);
    });
}

#[test]
fn a_question_goes_to_the_one_client_that_is_being_served() {
    run(async {
        let (connected, mut server, _events) = connection(10_000);
        let able = json!({"sampling": {}, "roots": {}});
        let (one, mut sent) = client(&able);
        let (two, _sent) = client(&able);
        let ask = |n: u32, method: &str| json!({"jsonrpc": "2.0", "id": format!("q{n}"), "method": method, "params": {"n": n}});
        let serve = async {
            let first = server.hear().await;
            server.say(&ask(1, "sampling/createMessage").to_string()).await;
            let answered = server.hear().await;
            assert_eq!(answered, json!({"jsonrpc": "2.0", "id": "q1", "result": {"said": 7}}));
            // The client cannot do that, and nobody can do the other.
            for (n, method) in [(2, "elicitation/create"), (3, "no/such")] {
                server.say(&ask(n, method).to_string()).await;
                assert_eq!(server.hear().await["error"]["code"], -32601, "{method}");
            }
            server.say(&ask(4, "ping").to_string()).await;
            assert_eq!(server.hear().await["result"], json!({}));
            first
        };
        let client_side = async {
            let question: Value = serde_json::from_slice(&sent.recv().await.unwrap()).unwrap();
            assert_eq!((&question["method"], &question["params"]["n"]), (&json!("sampling/createMessage"), &json!(1)));
            one.session().answered(&Raw::of(&question["id"]), Ok(Raw::of(&json!({"said": 7}))));
        };
        let first_call = call(Some(&one), None);
        let mut waiting = Box::pin(connected.request(&first_call, AMPLE));
        let first = tokio::select! {
            answer = &mut waiting => panic!("{answer:?}"),
            (first, ()) = async { tokio::join!(serve, client_side) } => first,
        };
        // With two clients nobody can tell whom it means.
        let second_call = call(Some(&two), None);
        let serve = async {
            let second = server.hear().await;
            server.say(&ask(5, "roots/list").to_string()).await;
            let refused = server.hear().await["error"].take();
            assert_eq!(refused["code"], -32603);
            assert!(refused["message"].as_str().unwrap().contains("several clients are being served"), "{refused}");
            server.answer(&first, json!(1)).await;
            server.answer(&second, json!(2)).await;
        };
        let (first, second, ()) = tokio::join!(waiting, connected.request(&second_call, AMPLE), serve);
        assert_eq!((text(&first.unwrap()), text(&second.unwrap())), ("1", "2"));
        server.say(&ask(6, "roots/list").to_string()).await;
        let refused = server.hear().await["error"].take();
        assert!(refused["message"].as_str().unwrap().contains("no call of a client is being served"), "{refused}");
    });
}

/// A question of the upstream, under the id `id`.
fn asking(id: &str, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// What a client was sent next.
async fn next(sent: &mut mpsc::Receiver<Bytes>) -> Value {
    serde_json::from_slice(&sent.recv().await.unwrap()).unwrap()
}

#[test]
fn what_is_asked_about_a_call_that_nobody_waits_for_is_put_to_nobody_else() {
    run(async {
        let (connected, mut server, _events) = connection(10_000);
        let able = json!({"roots": {}});
        let ((one, mut of_one), (two, mut of_two)) = (client(&able), client(&able));
        let own = call(Some(&one), None);
        let first = tokio::select! {
            answer = connected.request(&own, AMPLE) => panic!("{answer:?}"),
            first = server.hear() => first,
        };
        assert_eq!(server.hear().await["method"], "notifications/cancelled");
        let serve = async {
            let second = server.hear().await;
            server.say(&asking("q1", "roots/list", &json!({}))).await;
            assert_eq!(server.hear().await["error"]["code"], -32603);
            // Now it is not at work on the first any more.
            server.answer(&first, json!(1)).await;
            server.say(&asking("q2", "roots/list", &json!({}))).await;
            assert_eq!(server.hear().await["result"], json!({"roots": []}));
            server.answer(&second, json!(2)).await;
        };
        let answer = async {
            let question = next(&mut of_two).await;
            two.session().answered(&Raw::of(&question["id"]), Ok(Raw::of(&json!({"roots": []}))));
        };
        let second = call(Some(&two), None);
        let (answered, (), ()) = tokio::join!(connected.request(&second, AMPLE), serve, answer);
        assert_eq!(text(&answered.unwrap()), "2");
        assert!(of_one.try_recv().is_err() && of_two.try_recv().is_err());
    });
}

#[test]
fn more_calls_without_an_end_than_are_counted_stop_all_questions() {
    run(async {
        let (connected, _server, _events) = connection(10_000);
        let Link::Lines(link) = &connected.link else { panic!() };
        let leave = |caller: &Caller| {
            let own = call(Some(caller), None);
            let (mut ticket, _) = link.peer().enter(&own, None, AMPLE).unwrap();
            ticket.sent();
        };
        let (one, _sent) = client(&json!({"roots": {}}));
        let own = call(Some(&one), None);
        let _held = link.peer().enter(&own, None, AMPLE).unwrap();
        (0..5_000).for_each(|_| leave(&one));
        assert!(link.peer().would_ask(), "all are its own");
        let (other, _sent) = client(&json!({}));
        leave(&other);
        assert!(!link.peer().would_ask());
        let mut id = 5_002;
        link.peer().settle(&Raw::of(&id), Ok(Ok(Raw::of(&1))));
        assert!(link.peer().would_ask());
        for _ in 0..1_024 {
            leave(&client(&json!({})).0);
        }
        // All of them are answered, except the one that was not counted.
        for _ in 0..1_024 {
            id += 1;
            link.peer().settle(&Raw::of(&id), Ok(Ok(Raw::of(&1))));
        }
        assert!(!link.peer().would_ask());
    });
}

#[test]
fn a_call_that_is_never_answered_stops_questions_of_others_for_a_bounded_time() {
    run(async {
        let (connected, _server, _events) = connection(10_000);
        let Link::Lines(link) = &connected.link else { panic!() };
        let leave = |caller: &Caller| {
            let own = call(Some(caller), None);
            let (mut ticket, _) = link.peer().enter(&own, None, BRIEF * 10).unwrap();
            ticket.sent();
        };
        let (one, _sent) = client(&json!({"roots": {}}));
        let own = call(Some(&one), None);
        let _held = link.peer().enter(&own, None, AMPLE).unwrap();
        let (other, _sent) = client(&json!({}));
        // One of a session that has ended, more than are kept of one session, and of more sessions than are kept.
        for case in 0..3 {
            assert!(link.peer().would_ask());
            match case {
                0 => leave(&client(&json!({})).0),
                1 => (0..100).for_each(|_| leave(&other)),
                _ => (0..1_100).for_each(|_| leave(&client(&json!({})).0)),
            }
            assert!(!link.peer().would_ask(), "{case}");
            while !link.peer().would_ask() {
                tokio::time::sleep(BRIEF).await;
            }
        }
    });
}

#[test]
fn a_question_ends_with_its_call_and_both_sides_learn_of_it() {
    run(async {
        let (connected, mut server, _events) = connection(10_000);
        let (caller, mut sent) = client(&json!({"sampling": {}}));
        let own = call(Some(&caller), None);
        let ask = asking("q", "sampling/createMessage", &json!({}));
        // It ends because nobody waits for it, because it is answered, and because the upstream wants no answer.
        for end in 0..3 {
            let mut waiting = Box::pin(connected.request(&own, AMPLE));
            let asked = async {
                let asked = server.hear().await;
                server.say(&ask).await;
                (asked, next(&mut sent).await)
            };
            let (asked, question) = tokio::select! {
                answer = &mut waiting => panic!("{answer:?}"),
                asked = asked => asked,
            };
            match end {
                0 => drop(waiting),
                1 => {
                    let (answer, ()) = tokio::join!(waiting, server.answer(&asked, json!(1)));
                    answer.unwrap();
                }
                _ => {
                    let params = json!({"requestId": "q"});
                    let back = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
                    server.say(&back.to_string()).await;
                    let told = next(&mut sent).await;
                    assert_eq!(told["params"]["requestId"], question["id"]);
                    // The next that it hears is not an answer.
                    let (answer, ()) = tokio::join!(waiting, server.answer(&asked, json!(1)));
                    answer.unwrap();
                    let (answer, heard) = tokio::join!(connected.request(&own, BRIEF), server.hear());
                    assert!(answer.is_err() && heard["method"] == "tools/call", "{heard}");
                    return;
                }
            }
            let told = next(&mut sent).await;
            assert_eq!(
                (&told["method"], &told["params"]["requestId"]),
                (&json!("notifications/cancelled"), &question["id"])
            );
            let mut heard = vec![server.hear().await];
            if end == 0 {
                heard.push(server.hear().await);
            }
            // The call is taken back too, before or after it.
            let answer = heard.iter().find(|heard| heard["method"].is_null()).unwrap();
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("q"), &json!(-32603)));
            if end == 0 {
                server.answer(&asked, json!(0)).await;
            }
        }
    });
}

#[test]
fn a_caller_gets_a_share_of_the_questions_and_its_session_ends_them() {
    run(async {
        let (connected, mut server, _events) = connection(10_000);
        let (caller, mut sent) = client(&json!({"sampling": {}}));
        let own = call(Some(&caller), None);
        let mut waiting = Box::pin(connected.request(&own, AMPLE));
        let flood = async {
            server.hear().await;
            for n in 0..17 {
                server.say(&asking(&format!("q{n}"), "sampling/createMessage", &json!({}))).await;
            }
            let refused = server.hear().await;
            assert!(refused["error"]["message"].as_str().unwrap().contains("16 questions"), "{refused}");
            for _ in 0..16 {
                next(&mut sent).await;
            }
            caller.session().end();
            for _ in 0..16 {
                assert_eq!(server.hear().await["error"]["code"], -32603);
            }
        };
        tokio::select! {
            answer = &mut waiting => panic!("{answer:?}"),
            () = flood => {}
        }
    });
}

#[test]
fn a_form_is_not_an_address_and_who_was_sent_there_hears_that_it_is_done() {
    run(async {
        let (connected, mut server, _events) = connection(10_000);
        let (caller, mut sent) = client(&json!({"elicitation": {"form": {}}}));
        let (other, _other_sent) = client(&json!({"elicitation": {"url": {}}}));
        let (stream, mut unasked) = mpsc::channel(16);
        other.session().set_client(other.client().clone());
        other.session().open_stream(stream);
        let url = json!({"mode": "url", "elicitationId": "e1", "url": "https://h.example", "message": "go"});
        for (caller, form) in [(&caller, -32603), (&other, -32602)] {
            let own = call(Some(caller), None);
            let serve = async {
                let asked = server.hear().await;
                server.say(&asking("f", "elicitation/create", &json!({"message": "?"}))).await;
                server.say(&asking("u", "elicitation/create", &url)).await;
                let refused = server.hear().await;
                let expected = if form == -32602 { "f" } else { "u" };
                assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(expected), &json!(-32602)));
                server.answer(&asked, json!(1)).await;
                let ended = server.hear().await;
                assert_eq!(ended["error"]["code"], -32603);
            };
            let (answer, ()) = tokio::join!(connected.request(&own, AMPLE), serve);
            answer.unwrap();
        }
        assert_eq!(next(&mut sent).await["params"]["message"], "?");
        // An error may send a person to an address, too.
        let own = call(Some(&other), None);
        let serve = async {
            let asked = server.hear().await;
            let mut required = url.clone();
            required["elicitationId"] = "e2".into();
            let error = json!({"code": -32042, "message": "go", "data": {"elicitations": [required]}});
            server.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}).to_string()).await;
        };
        let (answer, ()) = tokio::join!(connected.request(&own, AMPLE), serve);
        assert!(matches!(answer, Err(Fault::Rpc(_))), "{answer:?}");
        for id in ["unknown", "e1", "e1", "e2"] {
            let params = json!({"elicitationId": id});
            let done = json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params});
            server.say(&done.to_string()).await;
        }
        for expected in ["e1", "e2"] {
            assert_eq!(next(&mut unasked).await["params"]["elicitationId"], expected);
        }
        server.say("{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}").await;
        server.hear().await;
        assert!(unasked.try_recv().is_err(), "once");
    });
}

#[test]
fn log_messages_reach_who_is_served_and_changes_are_heard() {
    run(async {
        let (connected, mut server, mut events) = connection(10_000);
        let (caller, mut sent) = client(&json!({}));
        let serve = async {
            let asked = server.hear().await;
            for method in ["message", "tools/list_changed", "resources/list_changed", "prompts/list_changed", "odd"] {
                server.say(&json!({"jsonrpc": "2.0", "method": format!("notifications/{method}")}).to_string()).await;
            }
            let updated = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a:b", "junk": [1]}});
            server.say(&updated.to_string()).await;
            server.answer(&asked, json!({})).await;
        };
        let own = call(Some(&caller), None);
        let (answer, ()) = tokio::join!(connected.request(&own, AMPLE), serve);
        answer.unwrap();
        assert_eq!(sent.try_recv().unwrap(), r#"{"jsonrpc":"2.0","method":"notifications/message"}"#);
        assert!(sent.try_recv().is_err());
        let heard: Vec<Event> = std::iter::from_fn(|| events.try_recv()).map(|(_, event)| event).collect();
        let [Event::ToolsChanged, Event::ResourcesChanged, Event::PromptsChanged, Event::ResourceUpdated(uri)] =
            heard.as_slice()
        else {
            panic!("{heard:?}")
        };
        assert_eq!(uri, "a:b");
    });
}

#[test]
fn a_flood_of_questions_is_refused_beyond_a_number() {
    run(async {
        let (connected, mut server, _events) = connection(10_000);
        let (caller, _sent) = client(&json!({"sampling": {}}));
        let own = call(Some(&caller), None);
        let mut waiting = Box::pin(connected.request(&own, AMPLE));
        let flood = async {
            server.hear().await;
            for n in 0..100 {
                let ask = json!({"jsonrpc": "2.0", "id": n, "method": "sampling/createMessage"});
                server.say(&ask.to_string()).await;
            }
            server.hear().await
        };
        tokio::select! {
            answer = &mut waiting => panic!("{answer:?}"),
            refused = flood => assert_eq!(refused["error"]["code"], -32603),
        }
    });
}

#[test]
fn a_ping_is_answered_while_as_many_questions_wait_as_may() {
    run(async {
        let (connected, mut server, _events) = connection(10_000);
        let Link::Lines(link) = &connected.link else { panic!() };
        let _questions = link.peer().take_all_places().unwrap();
        server.say(&asking("p", "ping", &json!({}))).await;
        assert_eq!(server.hear().await, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
        server.say(&asking("q", "roots/list", &json!({}))).await;
        assert_eq!(server.hear().await["error"]["code"], -32603);
    });
}

/// An upstream of this process with the tools `echo` and `other`, whose other requests `answer` answers.
fn in_process(answer: impl Fn(&str, Option<&Raw>) -> Result<Raw, Fault> + Send + Sync + 'static) -> UpstreamConfig {
    let serve = move |method: &str, params: Option<&Raw>| match method {
        "initialize" => Ok(Raw::of(&json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}))),
        "tools/list" if params.is_none() => Ok(Raw::of(&json!({"tools": [{"name": "echo"}], "nextCursor": "2"}))),
        "tools/list" => Ok(Raw::of(&json!({"tools": [{"name": "other"}, {"no": "name"}]}))),
        _ => answer(method, params),
    };
    UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(Target::InProcess(InProcess::new(serve))) }
}

fn upstream(config: UpstreamConfig) -> Upstream {
    Upstream::new("up", config, EventSender::channel().0)
}

fn names(listing: &Listing) -> Vec<Value> {
    let name = |tool: &RawValue| serde_json::from_str::<Value>(tool.get()).unwrap()["name"].take();
    listing.tools.iter().map(|tool| name(tool)).collect()
}

#[test]
fn lists_are_read_to_their_end_and_only_what_is_wanted_is_taken() {
    type Globs<'g> = &'g [&'g str];
    let cases: [(Globs<'_>, Globs<'_>, &[Option<&str>]); 4] = [
        (&[], &[], &[Some("echo"), Some("other"), None]),
        (&["e*"], &[], &[Some("echo"), None]),
        (&[], &["?cho"], &[Some("other"), None]),
        (&["echo", "other"], &["o*"], &[Some("echo"), None]),
    ];
    for (include, exclude, expected) in cases {
        let owned = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let mut config = in_process(|_, _| Ok(Raw::of(&1)));
        (config.include_tools, config.exclude_tools) = (owned(include), owned(exclude));
        let upstream = upstream(config);
        let listing = run(upstream.list(AMPLE)).unwrap();
        assert_eq!(
            names(&listing),
            expected.iter().map(|name| json!(name)).collect::<Vec<_>>(),
            "{include:?} {exclude:?}"
        );
        let page = upstream.select_of(Raw::of(&json!({"ttlMs": 1, "tools": [{"name": "echo"}], "x": 2})));
        let kept = expected.contains(&Some("echo"));
        assert_eq!(
            text(&page),
            if kept { r#"{"ttlMs":1,"tools":[{"name":"echo"}],"x":2}"# } else { r#"{"ttlMs":1,"tools":[],"x":2}"# }
        );
    }
}

#[test]
fn a_list_without_an_end_is_an_error() {
    let endless = |method: &str, params: Option<&Raw>| match (method, params) {
        ("initialize", _) => Ok(Raw::of(&json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}))),
        _ => Ok(Raw::of(&json!({"tools": [], "nextCursor": "again"}))),
    };
    let config = UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(Target::InProcess(InProcess::new(endless))) };
    let listed = run(upstream(config).list(AMPLE));
    assert!(matches!(&listed, Err(Fault::Malformed(reason)) if reason.contains("same cursor")), "{listed:?}");
    // Pages that are each small enough.
    let words = "x".repeat(4 * 1024 * 1024);
    let vast = move |method: &str, params: Option<&Raw>| match (method, params) {
        ("initialize", _) => Ok(Raw::of(&json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}))),
        _ => {
            let next = params.map_or(0, |params| params.bytes().len());
            Ok(Raw::of(&json!({"tools": [{"name": words}], "nextCursor": "n".repeat(next)})))
        }
    };
    let config = UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(Target::InProcess(InProcess::new(vast))) };
    let fault = run(upstream(config).list(AMPLE)).unwrap_err().to_string();
    assert_eq!(fault, "its answer is not usable: `tools/list`: it has more than 67108864 bytes");
}

#[test]
fn a_server_without_the_lists_that_it_declares_is_served_for_its_tools() {
    let listed = |missing: &'static str, code: i64| {
        let serve = move |method: &str, _: Option<&Raw>| match method {
            "initialize" => {
                let offered = json!({"tools": {}, "resources": {}, "prompts": {}});
                Ok(Raw::of(&json!({"protocolVersion": "2025-11-25", "capabilities": offered})))
            }
            _ if method == missing => Err(Fault::Rpc(RpcError::new(code, "no"))),
            "tools/list" => Ok(Raw::of(&json!({"tools": [{"name": "echo"}]}))),
            _ => Ok(Raw::of(&json!({"resources": [{"uri": "a:b"}], "prompts": [{"name": "p"}]}))),
        };
        let target = Target::InProcess(InProcess::new(serve));
        run(upstream(UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(target) }).list(AMPLE))
    };
    for (missing, resources, prompts) in [("resources/list", 0, 1), ("prompts/list", 1, 0)] {
        let listing = listed(missing, -32601).unwrap();
        let counts = (names(&listing).len(), listing.resources.len(), listing.prompts.len());
        assert_eq!(counts, (1, resources, prompts), "{missing}");
    }
    for (missing, code) in [("tools/list", -32601), ("prompts/list", -32603)] {
        let message = listed(missing, code).unwrap_err().to_string();
        assert_eq!(message, format!("it answered with error {code}: `{missing}`: no"));
    }
}

#[test]
fn who_fails_in_a_row_is_left_alone_and_errors_of_tools_are_no_failures() {
    run(async {
        let calls = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&calls);
        let ill = upstream(in_process(move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
            Err(Fault::Timeout(Duration::ZERO))
        }));
        let mut last = Ok(Raw::of(&0));
        for _ in 0..10 {
            last = ill.request(PLAIN).await;
        }
        assert!(matches!(last, Err(Fault::CircuitOpen { failures: PATIENCE, .. })), "{last:?}");
        assert_eq!(calls.load(Ordering::Relaxed), PATIENCE);
        let well = upstream(in_process(|_, _| Err(Fault::Rpc(RpcError::new(-1, "no")))));
        for _ in 0..10 {
            assert!(matches!(well.request(PLAIN).await, Err(Fault::Rpc(_))));
        }
    });
}

#[test]
fn an_upstream_that_speaks_only_the_handshake_is_found_out_by_any_error() {
    run(async {
        for fault in [Fault::Rpc(RpcError::new(-32602, "")), Fault::Malformed(String::new()), Fault::Timeout(AMPLE)] {
            let asked = Arc::new(Mutex::new(Vec::new()));
            let log = Arc::clone(&asked);
            let serve = move |method: &str, _: Option<&Raw>| {
                lock(&log).push(method.to_owned());
                match method {
                    "server/discover" => Err(fault.clone()),
                    "initialize" => Ok(Raw::of(&json!({"protocolVersion": "2024-11-05", "capabilities": {}}))),
                    _ => Ok(Raw::of(&json!({}))),
                }
            };
            let upstream = upstream(UpstreamConfig::new(Target::InProcess(InProcess::new(serve))));
            upstream.request(PLAIN).await.unwrap();
            assert_eq!(upstream.server().unwrap().version, "2024-11-05");
            upstream.link.store(None);
            // The second time it is known.
            upstream.request(PLAIN).await.unwrap();
            let expected = ["server/discover", "initialize", "tools/call", "initialize", "tools/call"];
            assert_eq!(*lock(&asked), expected);
        }
    });
}

#[test]
fn a_server_that_knows_no_members_of_capabilities_is_greeted_without_them() {
    run(async {
        let unknown = |code| Fault::Rpc(RpcError::new(code, "unrecognized field `form`"));
        for (fault, greetings) in [
            (None, 1),
            (Some(unknown(-32603)), 2),
            (Some(Fault::Status { status: 400, retry_after: None }), 2),
            (Some(unknown(-32601)), 1),
            (Some(Fault::Status { status: 401, retry_after: None }), 1),
        ] {
            let greeted = Arc::new(Mutex::new(Vec::new()));
            let (log, refusal) = (Arc::clone(&greeted), fault.clone());
            let serve = move |method: &str, params: Option<&Raw>| {
                if method != "initialize" {
                    return Ok(Raw::of(&json!({})));
                }
                let mut params: Value = params.unwrap().read().unwrap();
                let offered = params["capabilities"].take();
                let is_plain = offered["elicitation"] == json!({}) && offered["sampling"] == json!({});
                lock(&log).push(offered);
                match refusal.clone().filter(|_| !is_plain) {
                    Some(fault) => Err(fault),
                    None => Ok(Raw::of(&json!({"protocolVersion": "2025-06-18", "capabilities": {}}))),
                }
            };
            let target = Target::InProcess(InProcess::new(serve));
            let upstream = upstream(UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(target) });
            let answered = upstream.request(PLAIN).await;
            assert_eq!(answered.is_ok(), fault.is_none() || greetings == 2, "{fault:?}: {answered:?}");
            let greeted = lock(&greeted);
            assert_eq!(greeted.len(), greetings, "{fault:?}");
            let full = json!({"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}});
            assert_eq!(greeted[0], full);
        }
    });
}

/// A server in the shell: `calls` says what it does with a call, whose id is `$id`.
fn shell(calls: &str) -> UpstreamConfig {
    let script = format!(
        r#"while read -r line; do
            id=${{line#*\"id\":}}; id=${{id%%,*}}
            case "$line" in
                *'"method":"initialize"'*) echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}';;
                *'"method":"tools/call"'*) {calls};;
            esac
        done"#
    );
    in_shell(script)
}

/// What a script of the shell serves by the older protocol.
fn in_shell(script: String) -> UpstreamConfig {
    let target = Target::Stdio {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), script],
        env: BTreeMap::new(),
        confinement: Confinement::default(),
    };
    UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(target) }
}

const ECHO_PID: &str = r#"echo '{"jsonrpc":"2.0","id":'$id',"result":'$$'}'"#;

async fn gone(pid: i32) {
    // A child of ours is reaped; one of a child's by whoever has adopted it, in its own time.
    let id = rustix::process::Pid::from_raw(pid).unwrap();
    let is_there = || rustix::process::test_kill_process(id).is_ok();
    // Where nobody reaps it, it is there as what is left of a process.
    let waits = || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    let ended = || !is_there() || waits();
    while !ended() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_process_ends_with_all_that_it_started() {
    run(async {
        let child = r#"sleep 600 & echo '{"jsonrpc":"2.0","id":'$id',"result":['$$','$!']}'"#;
        for close in [true, false] {
            let upstream = upstream(shell(child));
            let pids: Vec<i32> = upstream.request(PLAIN).await.unwrap().read().unwrap();
            if close {
                upstream.close().await;
            } else {
                drop(upstream);
            }
            for pid in pids {
                gone(pid).await;
            }
        }
    });
}

#[test]
fn a_process_that_dies_fails_who_waits_and_is_started_again() {
    run(async {
        let (events, mut heard) = EventSender::channel();
        let upstream = Arc::new(Upstream::new("up", shell("exit 3"), events));
        let answer = upstream.request(PLAIN).await;
        assert!(matches!(&answer, Err(Fault::Ended { .. })), "{answer:?}");
        let (name, event) = heard.recv().await.unwrap();
        assert!(matches!(event, Event::Lost) && &*name == "up", "{event:?}");
        Upstream::revive(Arc::downgrade(&upstream)).await;
        assert!(upstream.usable().is_some());
        assert!(matches!(heard.try_recv(), Some((_, Event::Connected))));
        assert!(matches!(heard.try_recv(), Some((_, Event::MayDiffer))));
    });
}

#[test]
fn who_asks_sees_no_value_from_the_environment_but_in_the_error_of_the_upstream_itself() {
    run(async {
        let environment = |_: &str| Some("s3cr3t-value".to_owned());
        let noted = Noted::new(&environment, Path::new("."));
        noted.expand("${env:V}").unwrap();
        let up = in_process(|method, _| match method {
            "tools/call" => Err(Fault::Malformed("it says s3cr3t-value".to_owned())),
            _ => Err(Fault::Rpc(RpcError::new(-1, "no s3cr3t-value"))),
        });
        let upstream = upstream(UpstreamConfig { masks: noted.masks(), ..up });
        let fault = upstream.request(PLAIN).await.unwrap_err();
        assert_eq!(fault.to_string(), "its answer is not usable: it says ${env:V}");
        let refused = upstream.request(Call { method: "prompts/get", ..PLAIN }).await.unwrap_err();
        assert!(matches!(&refused, Fault::Rpc(error) if error.message == "no s3cr3t-value"), "{refused}");
        assert_eq!(upstream.shown(refused).to_string(), "it answered with error -1: no ${env:V}");
    });
}

#[test]
fn a_server_introduces_itself_within_a_bound() {
    run(async {
        let long = InProcess::new(|_: &str, _: Option<&Raw>| {
            let info = json!({"name": "x".repeat(300_000), "version": "1"});
            Ok(Raw::of(&json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info})))
        });
        let config = UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(Target::InProcess(long)) };
        let upstream = upstream(config);
        let fault = upstream.list(AMPLE).await.unwrap_err().to_error("up").message().to_owned();
        assert!(fault.starts_with("upstream `up`: ") && fault.contains("over 262144"), "{fault}");
        assert!(upstream.server().is_none());
    });
}

#[test]
fn a_changed_tool_of_a_server_that_came_back_is_not_called_before_it_is_reviewed() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        // From the second start on, it is slow to list, one of its tools is another, and one is gone.
        let script = r#"echo x >> "$COUNTER"; n=$(wc -l < "$COUNTER" | tr -d ' ')
        while read -r line; do
            id=${line#*\"id\":}; id=${id%%,*}
            case "$line" in
                *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}';;
                *'"tools/list"'*) gone=
                    [ "$n" = 1 ] && gone=,'{"name":"gone","inputSchema":{"type":"object"}}' || sleep 1
                    echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"same","inputSchema":{"type":"object"}},{"name":"other","description":"'$n'","inputSchema":{"type":"object"}}'"$gone"']}}';;
                *'"die"'*) exit 1;;
                *'"tools/call"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"of start '$n'"}]}}';;
            esac
        done"#;
        let target = Target::Stdio {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env: BTreeMap::from([("COUNTER".to_owned(), folder.path().join("starts").display().to_string())]),
            confinement: Confinement::default(),
        };
        let yaml = format!("{{mode: proxy, pins: {{mode: strict, file: '{}'}}}}", folder.path().join("pins").display());
        let mut config = GatewayConfig::parse(&yaml, folder.path(), &|_| None).unwrap();
        let up = UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(target) };
        config.upstreams.insert("up".to_owned(), up);
        let gateway = Gateway::start(config).await.unwrap();
        let (caller, _sent) = client(&json!({}));
        let snapshot = gateway.catalog();
        let call = async |name: &str, arguments: Value| {
            let items = snapshot.tools.as_ref().unwrap().router.catalog().items();
            let id = &items.iter().find(|item| item.name == name).unwrap().id;
            let params = Raw::of(&json!({"name": id, "arguments": arguments}));
            text(&gateway.answer(&caller, "tools/call", Some(&params)).await.unwrap()).to_owned()
        };
        assert!(call("other", json!({})).await.contains("of start 1"));
        assert!(call("other", json!({"die": 1})).await.contains("UPSTREAM_UNAVAILABLE"));
        let (same, other, gone) =
            tokio::join!(call("same", json!({})), call("other", json!({})), call("gone", json!({})));
        assert!(same.contains("of start 2"), "{same}");
        assert!(other.contains("QUARANTINED") && other.contains("changed (description)"), "{other}");
        assert!(gone.contains("QUARANTINED") && gone.contains("not list the tool any more"), "{gone}");
        gateway.close().await;
    });
}

#[test]
fn a_configuration_that_is_refused_changes_nothing_of_what_is_reviewed() {
    run(async {
        let up = in_process(|_, _| Ok(Raw::of(&json!({}))));
        let config = |pins: &str| {
            let mut config =
                GatewayConfig::parse(&format!("{{mode: proxy, pins: {{mode: '{pins}'}}}}"), Path::new("."), &|_| None)
                    .unwrap();
            config.upstreams.insert("up".to_owned(), up.clone());
            config
        };
        let live = Live::from(Gateway::start(config("strict")).await.unwrap());
        let holds = || live.now().upstreams().get("up").unwrap().vetting.holds();
        assert!(holds());
        let missing = Target::Stdio {
            command: "/no/such/program".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            confinement: Confinement::default(),
        };
        let mut broken = config("off");
        broken.upstreams.insert("no".to_owned(), UpstreamConfig { required: true, ..UpstreamConfig::new(missing) });
        assert!(live.replace(broken).await.is_err());
        assert!(holds());
        live.replace(config("off")).await.unwrap();
        assert!(!holds());
        live.replace(config("strict")).await.unwrap();
        assert!(holds());
    });
}

#[test]
fn a_process_is_kept_between_calls_and_what_it_says_last_counts() {
    run(async {
        let upstream = upstream(shell(&format!("{ECHO_PID}; test -n \"${{line##*last*}}\" || exit 0")));
        let pid = async |method: &'static str| {
            let params = Raw::of(&json!({ "note": method }));
            let call = Call { params: Some(&params), ..PLAIN };
            upstream.request(call).await.unwrap().read::<i32>().unwrap()
        };
        let first = pid("first").await;
        assert_eq!(pid("second").await, first);
        assert_eq!(pid("last").await, first);
        gone(first).await;
        // Whoever asks while the end is being noticed may be told so.
        let third = loop {
            match upstream.request(PLAIN).await {
                Ok(pid) => break pid.read::<i32>().unwrap(),
                Err(fault) => {
                    assert!(matches!(fault, Fault::Unavailable(_) | Fault::Ended { .. }), "{fault:?}");
                }
            }
        };
        assert_ne!(third, first);
    });
}

#[test]
fn what_a_process_printed_before_it_ended_is_for_whoever_runs_the_gateway() {
    let script = "for n in 1 2 3 4 5 6; do printf '\\033[31mline %s\\033[0m\\n\\n' $n >&2; done; exit 3";
    let fault = run(upstream(shell(script)).request(PLAIN)).unwrap_err();
    assert_eq!(fault.to_string(), "the process has ended (exit status: 3)");
    assert_eq!(
        fault.in_full(),
        "the process has ended (exit status: 3); it printed: line 2 / line 3 / line 4 / line 5 / line 6"
    );
    let long = run(upstream(shell("printf '%0900d\\nlast\\n' 7 >&2; exit 3")).request(PLAIN)).unwrap_err().in_full();
    assert!(long.ends_with("… / last") && long.chars().count() < 600, "{long}");
}

#[test]
fn a_program_that_is_not_there_is_unavailable() {
    let target = Target::Stdio {
        command: "/no/such/program".to_owned(),
        args: vec![],
        env: BTreeMap::new(),
        confinement: Confinement::default(),
    };
    let answer = run(upstream(UpstreamConfig::new(target)).request(PLAIN));
    assert!(matches!(&answer, Err(Fault::Unavailable(reason)) if reason.contains("/no/such/program")), "{answer:?}");
}

#[test]
fn what_is_closed_stays_closed() {
    run(async {
        let upstream = upstream(in_process(|_, _| Ok(Raw::of(&1))));
        upstream.request(PLAIN).await.unwrap();
        upstream.close().await;
        let answer = upstream.request(PLAIN).await;
        assert!(matches!(&answer, Err(Fault::Unavailable(reason)) if reason == CLOSED), "{answer:?}");
    });
}

async fn gateway(mode: Mode, upstreams: Vec<(&str, UpstreamConfig)>) -> Arc<Gateway> {
    let upstreams = upstreams.into_iter().map(|(name, config)| (name.to_owned(), config)).collect();
    let retry = RetryConfig { max_attempts: 3, base_delay: 0.0, ..RetryConfig::default() };
    Gateway::start(GatewayConfig { mode, upstreams, retry, ..GatewayConfig::default() }).await.unwrap()
}

#[test]
fn calls_are_made_again_and_a_server_that_lists_nothing_harms_nobody() {
    run(async {
        let calls = AtomicU32::new(0);
        let shaky = in_process(move |_, _| match calls.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Err(Fault::Timeout(Duration::ZERO)),
            n => Ok(Raw::of(&n)),
        });
        let silent = UpstreamConfig {
            era: Era::Legacy,
            ..UpstreamConfig::new(Target::InProcess(InProcess::new(|_: &str, _: Option<&Raw>| {
                Err(Fault::Timeout(Duration::ZERO))
            })))
        };
        let gateway = gateway(Mode::Proxy, vec![("shaky", shaky), ("silent", silent)]).await;
        let (caller, _sent) = client(&json!({}));
        let snapshot = gateway.catalog();
        let id = &snapshot.tools.as_ref().unwrap().router.catalog().items()[0].id;
        let params = Raw::of(&json!({"name": id, "arguments": {}}));
        let answer = gateway.answer(&caller, "tools/call", Some(&params)).await.unwrap();
        assert_eq!(text(&answer), "2");
    });
}

#[test]
fn tools_that_are_left_out_are_neither_listed_nor_called_in_a_passthrough() {
    run(async {
        let mut config = in_process(|_, params| Ok(params.cloned().unwrap()));
        config.exclude_tools = vec!["e*".to_owned()];
        let gateway = gateway(Mode::Passthrough, vec![("up", config)]).await;
        let (caller, _sent) = client(&json!({}));
        let listed = gateway.answer(&caller, "tools/list", None).await.unwrap();
        assert_eq!(text(&listed), r#"{"tools":[],"nextCursor":"2"}"#);
        let called = async |name: &str| {
            let params = Raw::of(&json!({ "name": name }));
            gateway.answer(&caller, "tools/call", Some(&params)).await
        };
        assert_eq!(called("echo").await.unwrap_err().message, "unknown tool: echo");
        assert_eq!(text(&called("other").await.unwrap()), r#"{"name":"other"}"#);
    });
}

#[test]
fn a_process_that_comes_back_with_other_tools_is_listed_anew() {
    run(async {
        let counter = tempfile::NamedTempFile::new().unwrap();
        let script = r#"echo x >> "$COUNTER"; n=$(wc -l < "$COUNTER" | tr -d ' ')
        while read -r line; do
            id=${line#*\"id\":}; id=${id%%,*}
            case "$line" in
                *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}';;
                *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"start_'$n'"}]}}';;
                *'"tools/call"'*) exit 1;;
            esac
        done"#;
        let target = Target::Stdio {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env: BTreeMap::from([("COUNTER".to_owned(), counter.path().display().to_string())]),
            confinement: Confinement::default(),
        };
        let config = UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(target) };
        let gateway = gateway(Mode::Proxy, vec![("up", config)]).await;
        let (caller, mut told) = client(&json!({}));
        let session = Arc::clone(caller.session());
        session.set_client(caller.client().clone());
        let (stream, mut unasked) = mpsc::channel(16);
        session.open_stream(stream);
        gateway.enter(&session);
        let names = || -> Vec<String> {
            let snapshot = gateway.catalog();
            let items = snapshot.tools.as_ref().map(|shelf| shelf.router.catalog().items().to_vec());
            items.unwrap_or_default().into_iter().map(|item| item.name).collect()
        };
        assert_eq!(names(), ["start_1"]);
        let call = Call { caller: Some(&caller), ..PLAIN };
        let answer = gateway.upstreams().get("up").unwrap().request(call).await;
        assert!(matches!(answer, Err(Fault::Unavailable(_) | Fault::Ended { .. })), "{answer:?}");
        let said = unasked.recv().await.unwrap();
        assert!(said.windows(12).any(|window| window == b"list_changed"), "{said:?}");
        assert_eq!(names(), ["start_2"]);
        assert!(told.try_recv().is_err());
        gateway.close().await;
    });
}

#[test]
fn lists_that_cannot_be_read_are_read_again_until_they_can() {
    run(async {
        let lists = Arc::new(AtomicU32::new(0));
        let asked = Arc::clone(&lists);
        let warming = InProcess::new(move |method: &str, _: Option<&Raw>| match method {
            "initialize" => Ok(Raw::of(&json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}))),
            // Also after it was connected anew, which it is once.
            "tools/list" if asked.fetch_add(1, Ordering::Relaxed) < 4 => {
                Err(Fault::Rpc(RpcError::new(-32_603, "the index is being loaded")))
            }
            "tools/list" => Ok(Raw::of(&json!({"tools": [{"name": "ready", "inputSchema": {"type": "object"}}]}))),
            other => Err(Fault::Rpc(RpcError::method_not_found(other))),
        });
        let config = UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(Target::InProcess(warming)) };
        let other = in_process(|_, _| Ok(Raw::of(&json!({}))));
        let gateway = gateway(Mode::Gateway, vec![("warming", config), ("other", other)]).await;
        let is_there = || gateway.catalog().listings.get("warming").is_some_and(|listing| !listing.tools.is_empty());
        assert!(!is_there());
        while !is_there() {
            tokio::time::sleep(BRIEF).await;
        }
        assert!(gateway.reports().iter().all(|report| report.fault.is_none()));
        let read = lists.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(lists.load(Ordering::Relaxed), read, "and then no more");
        gateway.close().await;
    });
}

#[test]
fn the_clock_of_an_upstream_stands_still_while_a_person_is_asked() {
    run(async {
        let (connected, mut server, _events) = connection(10_000);
        let (caller, mut sent) = client(&json!({"elicitation": {}}));
        let time = Duration::from_secs(1);
        let serve = async {
            let asked = server.hear().await;
            server.say(r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}"#).await;
            let question: Value = serde_json::from_slice(&sent.recv().await.unwrap()).unwrap();
            // Longer than the upstream has in all.
            tokio::time::sleep(time + BRIEF).await;
            caller.session().answered(&Raw::of(&question["id"]), Ok(Raw::of(&json!({"action": "accept"}))));
            assert_eq!(server.hear().await["result"]["action"], "accept");
            server.answer(&asked, json!(1)).await;
            server
        };
        let own = call(Some(&caller), None);
        let (answer, server) = tokio::join!(connected.request(&own, time), serve);
        assert_eq!(text(&answer.unwrap()), "1");
        // Without a question it runs on.
        let late = connected.request(&own, BRIEF).await;
        assert!(matches!(late, Err(Fault::Timeout(_))), "{late:?}");
        drop(server);
    });
}

#[test]
fn what_one_changes_gets_through_while_another_floods_and_does_not_answer() {
    run(async {
        let script = |first: &str, list: &str| {
            let script = format!(
                r#"n=0; while read -r line; do
                id=${{line#*\"id\":}}; id=${{id%%,*}}
                case "$line" in
                    *'"initialize"'*) echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}}}}}}';;
                    *'"tools/list"'*) n=$((n+1)); {list};;
                    *'"tools/call"'*) echo '{{"jsonrpc":"2.0","id":'$id',"result":{{}}}}'; {first};;
                esac
                done"#
            );
            in_shell(script)
        };
        let changed = r#"echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'"#;
        let list = r#"echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"list_'$n'"}]}}'"#;
        let flood = format!("(while :; do {changed} || exit; done) &");
        let upstreams = [
            // Its lists are answered once.
            ("loud", script(&flood, &format!("test $n = 1 && {list}"))),
            ("quiet", script(changed, list)),
        ];
        let upstreams = upstreams.into_iter().map(|(name, config)| (name.to_owned(), config)).collect();
        // As long as the whole test: who waits for the loud one waits for ever.
        let startup = StartConfig { upstream_timeout: Duration::from_secs(1_000), ..StartConfig::default() };
        let config = GatewayConfig { upstreams, startup, ..GatewayConfig::default() };
        let gateway = Gateway::start(config).await.unwrap();
        let has = |name: &str| {
            let snapshot = gateway.catalog();
            let items = snapshot.tools.as_ref().map(|shelf| shelf.router.catalog().items().to_vec());
            items.unwrap_or_default().iter().any(|item| item.namespace == "quiet" && item.name == name)
        };
        assert!(has("list_1"));
        gateway.upstreams().get("loud").unwrap().request(PLAIN).await.unwrap();
        for name in ["list_2", "list_3"] {
            gateway.upstreams().get("quiet").unwrap().request(PLAIN).await.unwrap();
            while !has(name) {
                tokio::time::sleep(BRIEF).await;
            }
        }
        gateway.close().await;
    });
}

#[test]
fn an_upstream_that_cannot_be_asked_is_reported_so() {
    run(async {
        let served = in_process(|_, params| Ok(params.cloned().unwrap()));
        let gateway = gateway(Mode::Proxy, vec![("b", served), ("a", shell("exit 3"))]).await;
        let upstream = gateway.upstreams().get("a").unwrap();
        assert!(upstream.trouble().is_none());
        assert!(gateway.metrics_text().contains("upstream_up{upstream=\"a\"} 1"));
        let mut faults = std::collections::BTreeSet::new();
        while faults.len() < 2 {
            let _ = upstream.request(PLAIN).await;
            if let Some(fault) = &gateway.reports()[0].fault {
                faults.insert(fault.chars().take(9).collect::<String>());
            }
        }
        assert_eq!(Vec::from_iter(faults), ["circuit o", "it is not"]);
        gateway.close().await;
    });
}

#[test]
fn resources_of_a_stateless_server_are_watched_with_its_stream() {
    run(async {
        let (mut connected, mut server, mut events) = connection(10_000);
        let capabilities = json!({"resources": {"subscribe": true}});
        connected.meta = Some(json!({}));
        Arc::make_mut(&mut connected.server).capabilities = capabilities.as_object().cloned().unwrap();
        let upstream = Upstream::new(
            "up",
            UpstreamConfig::new(Target::InProcess(InProcess::new(|_: &str, _: Option<&Raw>| {
                Err(Fault::Timeout(Duration::ZERO))
            }))),
            EventSender::channel().0,
        );
        let connected = Arc::new(connected);
        connected.listen(upstream.watched.subscribe(), Masks::default(), |_| {});
        upstream.link.store(Some(connected));
        let watch = async |method: &'static str, uri: &str| {
            let params = Raw::of(&json!({ "uri": uri }));
            upstream.request(Call { method, params: Some(&params), ..PLAIN }).await.unwrap();
        };
        watch("resources/subscribe", "a:1").await;
        let first = server.hear().await;
        assert_eq!(first["params"]["notifications"]["resourceSubscriptions"], json!(["a:1"]));
        watch("resources/subscribe", "a:1").await;
        watch("resources/subscribe", "a:2").await;
        let taken_back = server.hear().await;
        assert_eq!(
            (&taken_back["method"], &taken_back["params"]["requestId"]),
            (&json!("notifications/cancelled"), &first["id"])
        );
        let second = server.hear().await;
        assert_eq!(second["params"]["notifications"]["resourceSubscriptions"], json!(["a:1", "a:2"]));
        server.say(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:2"}}"#).await;
        assert!(matches!(events.recv().await, Some((_, Event::ResourceUpdated(uri))) if uri == "a:2"));
        watch("resources/unsubscribe", "a:1").await;
        watch("resources/unsubscribe", "a:2").await;
        assert_eq!(server.hear().await["params"]["requestId"], second["id"]);
    });
}

#[test]
fn what_a_stateless_server_may_have_said_while_its_stream_was_away_is_asked_for() {
    run(async {
        let (mut connected, mut server, _events) = connection(10_000);
        let capabilities = json!({"tools": {"listChanged": true}, "prompts": {"listChanged": true}, "resources": {}});
        connected.meta = Some(json!({}));
        Arc::make_mut(&mut connected.server).capabilities = capabilities.as_object().cloned().unwrap();
        let (told, mut heard) = mpsc::unbounded_channel();
        let (_watched, watched) = watch::channel(BTreeSet::new());
        Arc::new(connected).listen(watched, Masks::default(), move |event| told.send(event).unwrap());
        let first = server.hear().await;
        assert!(heard.try_recv().is_err(), "the lists are read when it is connected");
        server.answer(&first, json!({})).await;
        assert_eq!(server.hear().await["method"], "subscriptions/listen");
        let again = [heard.recv().await.unwrap(), heard.recv().await.unwrap()];
        assert!(matches!(again, [Event::ToolsChanged, Event::PromptsChanged]), "{again:?}");
        assert!(heard.try_recv().is_err(), "it does not say when its resources change");
    });
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named_and_not_the_program() {
    let target = Target::Stdio {
        command: "sh".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        confinement: Confinement::Open { inherit: Default::default(), cwd: Some("/no/such/folder".into()) },
    };
    let config = UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(target) };
    let fault = crate::Capture::of("a", config, Duration::from_secs(5)).await.unwrap_err().to_string();
    assert!(fault.contains("`cwd` /no/such/folder is not a folder"), "{fault}");
}

/// A server with the resource `mem://NAME/1`, and what it and others were asked to watch.
fn watchable(name: &'static str, asked: &Arc<Mutex<Vec<String>>>) -> UpstreamConfig {
    let asked = Arc::clone(asked);
    let offered = json!({"resources": {"subscribe": true}});
    let serve = move |method: &str, params: Option<&Raw>| {
        if let Some(verb) = method.strip_prefix("resources/").filter(|verb| verb.ends_with("subscribe")) {
            let uri = params.and_then(|params| stateless::named("resources/read", Some(params))).unwrap_or_default();
            lock(&asked).push(format!("{name} {verb} {uri}"));
        }
        Ok(Raw::of(&match method {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": offered}),
            "resources/list" => json!({"resources": [{"uri": format!("mem://{name}/1"), "name": "one"}]}),
            _ => json!({}),
        }))
    };
    UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(Target::InProcess(InProcess::new(serve))) }
}

/// Enters a client that hears of changes, and returns where.
fn listening(gateway: &Gateway, caller: &Caller) -> mpsc::Receiver<Bytes> {
    let (stream, told) = mpsc::channel(64);
    let session = caller.session();
    session.set_client(caller.client().clone());
    session.open_stream(stream);
    gateway.enter(session);
    told
}

/// The resources of whose changes a client is told until it is told that tools have changed.
async fn updates(told: &mut mpsc::Receiver<Bytes>) -> Vec<Value> {
    let mut updates = Vec::new();
    loop {
        let message = next(told).await;
        match message["method"].as_str().unwrap() {
            "notifications/resources/updated" => updates.push(message["params"]["uri"].clone()),
            "notifications/tools/list_changed" => return updates,
            _ => {}
        }
    }
}

#[test]
fn what_is_watched_is_watched_again_on_another_connection_and_only_its_server_says_that_it_changed() {
    run(async {
        let asked = Arc::default();
        let (a, b) = (watchable("a", &asked), watchable("b", &asked));
        let gateway = gateway(Mode::Proxy, vec![("a", a), ("b", b)]).await;
        let [a, b] = ["a", "b"].map(|name| gateway.upstreams().get(name).unwrap());
        let (caller, _sent) = client(&json!({}));
        let mut told = listening(&gateway, &caller);
        let watched = json!({"uri": "mem://a/1"});
        gateway.answer(&caller, "resources/subscribe", Some(&Raw::of(&watched))).await.unwrap();
        a.link.store(None);
        a.request(PLAIN).await.unwrap();
        assert_eq!(next(&mut told).await["params"], watched, "it may have changed meanwhile");
        assert_eq!(*lock(&asked), ["a subscribe mem://a/1"; 2], "it is watched again");
        b.events.send(&b.name, Event::ResourceUpdated("mem://a/1".to_owned()));
        b.events.send(&b.name, Event::ToolsChanged);
        assert_eq!(next(&mut told).await["method"], "notifications/tools/list_changed", "that was not its own to say");
        a.events.send(&a.name, Event::ResourceUpdated("mem://a/1".to_owned()));
        assert_eq!(next(&mut told).await["params"], watched);
        // Its client is gone, once nobody is telling it anything.
        drop(caller);
        while lock(&asked).last().is_none_or(|last| last != "a unsubscribe mem://a/1") {
            gateway.sweep_watched();
            tokio::task::yield_now().await;
        }
        gateway.close().await;
    });
}

#[test]
fn after_a_reload_only_a_server_that_is_another_is_asked_to_watch_again_and_never_one_in_place_of_its_own() {
    run(async {
        let asked = Arc::default();
        let config = |names: &[&'static str]| {
            let upstreams = names.iter().map(|name| ((*name).to_owned(), watchable(name, &asked))).collect();
            GatewayConfig { mode: Mode::Proxy, upstreams, ..GatewayConfig::default() }
        };
        let same = config(&["a", "b"]);
        let mut without = same.clone();
        without.upstreams.remove("b");
        let live = Live::from(Gateway::start(same.clone()).await.unwrap());
        let (caller, _sent) = client(&json!({}));
        let mut told = listening(&live.now(), &caller);
        let params = Raw::of(&json!({"uri": "mem://b/1"}));
        let ask = async |method: &str| live.now().answer(&caller, method, Some(&params)).await.unwrap();
        ask("resources/subscribe").await;
        for _ in 0..3 {
            live.replace(same.clone()).await.unwrap();
        }
        let say = |changed: Event| {
            let now = live.now();
            let a = now.upstreams().get("a").unwrap();
            a.events.send(&a.name, changed);
        };
        while told.try_recv().is_ok() {}
        say(Event::ToolsChanged);
        assert!(updates(&mut told).await.is_empty());
        assert_eq!(*lock(&asked), ["b subscribe mem://b/1"]);
        let mut other = same.clone();
        other.upstreams.insert("b".to_owned(), watchable("b", &asked));
        live.replace(other).await.unwrap();
        while next(&mut told).await["method"] != "notifications/resources/updated" {}
        for config in [without, same] {
            live.replace(config).await.unwrap();
            while told.try_recv().is_ok() {}
            say(Event::ResourceUpdated("mem://b/1".to_owned()));
            say(Event::ToolsChanged);
            assert!(updates(&mut told).await.is_empty());
        }
        ask("resources/unsubscribe").await;
        assert_eq!(*lock(&asked), ["b subscribe mem://b/1", "b subscribe mem://b/1", "b unsubscribe mem://b/1"]);
    });
}

#[test]
fn after_a_reload_nobody_hears_of_what_is_hidden_or_refused_and_it_is_not_watched_any_more() {
    const OPEN: &str = "{mode: proxy, visibility_profiles: {p: {}}}";
    const HIDDEN: &str = "{mode: proxy, visibility_profiles: {p: {include_namespaces: [a]}}}";
    const DENIED: &str = "{mode: proxy, visibility_profiles: {p: {}}, policy: {rules: [{action: deny, namespace: b}]}}";
    const ASKED: &str =
        "{mode: proxy, visibility_profiles: {p: {}}, policy: {rules: [{action: require_approval, namespace: b}]}}";
    const GATEWAY: &str = "{mode: gateway, visibility_profiles: {p: {}}}";
    const A: &str = "mem://a/1";
    const B: &str = "mem://b/1";
    // What a client of each era hears of.
    let cases: [(&str, &str, [&[&str]; 2]); 6] = [
        (OPEN, OPEN, [&[A, B], &[A, B]]),
        (OPEN, HIDDEN, [&[A], &[A]]),
        (OPEN, DENIED, [&[A], &[A]]),
        (OPEN, ASKED, [&[A], &[A]]),
        // What the person has approved stays approved.
        (ASKED, ASKED, [&[A, B], &[A]]),
        (OPEN, GATEWAY, [&[], &[]]),
    ];
    run(async {
        for (before, after, hears) in cases {
            let asked = Arc::default();
            let upstreams = ["a", "b"].map(|name| (name.to_owned(), watchable(name, &asked)));
            let config = |text: &str| {
                let config = GatewayConfig::parse(text, Path::new("."), &|_| None).unwrap();
                GatewayConfig { upstreams: upstreams.clone().into(), ..config }
            };
            let live = Live::from(Gateway::start(config(before)).await.unwrap());
            let scene = Scene { shop: Arc::default(), gateway: live.now() };
            let identity = Identity { name: "ann".to_owned(), profile: Some("p".to_owned()) };
            let yes = json!({"action": "accept", "content": {"approve": true}});
            let caller = scene.known(identity.clone(), Some(yes));
            let told = listening(&scene.gateway, &caller);
            for uri in [A, B] {
                let params = Raw::of(&json!({ "uri": uri }));
                scene.gateway.answer(&caller, "resources/subscribe", Some(&params)).await.unwrap();
            }
            drop(scene);
            let (out, mut heard) = mpsc::channel(64);
            let modern = ClientInfo { version: MODERN_VERSION.to_owned(), ..ClientInfo::default() };
            let listener = Caller::new(Session::of("listener", Arc::new(identity)), modern, out);
            let stream = live.clone();
            let listening = tokio::spawn(async move {
                let wanted = json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": [A, B]}});
                let (id, params) = (Raw::of(&1), Raw::of(&wanted));
                let running = listener.session().begin(&id);
                let asked = Asked { id: &id, method: "subscriptions/listen", params: Some(&params) };
                serve_request(&stream, &listener, (&asked, running), std::future::pending()).await
            });
            let acknowledged = next(&mut heard).await;
            let watched = acknowledged["params"]["notifications"]["resourceSubscriptions"].as_array().unwrap().len();
            while lock(&asked).len() < 2 + watched {
                tokio::task::yield_now().await;
            }
            live.replace(config(after)).await.unwrap();
            let now = live.now();
            let mut streams = [told, heard];
            streams.iter_mut().for_each(|stream| while stream.try_recv().is_ok() {});
            let [a, b] = ["a", "b"].map(|name| now.upstreams().get(name).unwrap());
            a.events.send(&a.name, Event::ResourceUpdated(A.to_owned()));
            b.events.send(&b.name, Event::ResourceUpdated(B.to_owned()));
            a.events.send(&a.name, Event::ToolsChanged);
            for (stream, expected) in streams.iter_mut().zip(hears) {
                assert_eq!(updates(stream).await, expected, "{before} {after}");
            }
            for (name, uri) in [("a", A), ("b", B)] {
                let ended = format!("{name} unsubscribe {uri}");
                let is_wanted = hears.iter().any(|hears| hears.contains(&uri));
                while !is_wanted && !lock(&asked).contains(&ended) {
                    tokio::task::yield_now().await;
                }
                assert_eq!(lock(&asked).contains(&ended), !is_wanted, "{before} {after}");
            }
            listening.abort();
        }
    });
}
