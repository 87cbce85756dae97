//! Traces and metrics as a collector gets them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::shop::{Shop, run, upstream};
use crate::common::sync::lock;
use crate::server::live::Live;
use crate::server::requests::{Asked, serve_request};
use crate::upstream::Fault;
use crate::wire::Raw;
use crate::{
    Answer, Api, ApiServer, Caller, ClientInfo, Gateway, GatewayConfig, HttpConfig, HttpServer, MODERN_VERSION,
    OtlpConfig, Session, serve,
};

/// What a collector was sent: path, header `x-key`, body.
type Got = Arc<Mutex<Vec<(String, String, Vec<u8>)>>>;

/// A collector that answers with this status; its address, and what it got.
fn collector(status: &'static str) -> (String, Got) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let got = Got::default();
    let into = Arc::clone(&got);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let into = Arc::clone(&into);
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                loop {
                    let mut first = String::new();
                    if reader.read_line(&mut first).unwrap_or_default() == 0 {
                        return;
                    }
                    let (mut length, mut key) = (0, String::new());
                    loop {
                        let mut line = String::new();
                        reader.read_line(&mut line).unwrap();
                        let Some((name, value)) = line.trim().split_once(": ") else { break };
                        match name.to_lowercase().as_str() {
                            "content-length" => length = value.parse().unwrap(),
                            "x-key" => key = value.to_owned(),
                            "content-type" => assert_eq!(value, "application/x-protobuf"),
                            _ => {}
                        }
                    }
                    let mut body = vec![0; length];
                    reader.read_exact(&mut body).unwrap();
                    let path = first.split(' ').nth(1).unwrap().to_owned();
                    lock(&into).push((path, key, body));
                    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").unwrap();
                }
            });
        }
    });
    (address, got)
}

/// The fields of a message of Protocol Buffers: number, and what is there.
enum Part<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

fn parts(mut bytes: &[u8]) -> Vec<(u64, Part<'_>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            shift += 7;
            if first & 0x80 == 0 {
                return value;
            }
        }
    }
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let part = match tag & 7 {
            0 => Part::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_first_chunk().unwrap();
                bytes = rest;
                Part::Number(u64::from_le_bytes(*number))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Part::Bytes(inner)
            }
            wire => panic!("wire type {wire}"),
        };
        parts.push((tag >> 3, part));
    }
    parts
}

fn all(bytes: &[u8], field: u64) -> Vec<&[u8]> {
    let is = |(number, part)| match part {
        Part::Bytes(bytes) if number == field => Some(bytes),
        _ => None,
    };
    parts(bytes).into_iter().filter_map(is).collect()
}

fn number(bytes: &[u8], field: u64) -> u64 {
    let is = |(found, part)| match part {
        Part::Number(number) if found == field => Some(number),
        _ => None,
    };
    parts(bytes).into_iter().find_map(is).unwrap_or_default()
}

fn text(bytes: &[u8], field: u64) -> String {
    all(bytes, field).first().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()).unwrap_or_default()
}

fn hex(bytes: &[u8], field: u64) -> String {
    all(bytes, field).first().map(|bytes| contextweaver_core::text::hex(bytes)).unwrap_or_default()
}

fn attributes(bytes: &[u8], field: u64) -> serde_json::Map<String, Value> {
    let value = |any: &[u8]| if all(any, 1).is_empty() { number(any, 3).into() } else { Value::from(text(any, 1)) };
    let pair = |pair: &[u8]| (text(pair, 1), value(all(pair, 2)[0]));
    all(bytes, field).into_iter().map(pair).collect()
}

/// The messages at `path`, at the field of their spans or metrics.
fn messages(got: &Got, path: &str) -> Vec<Vec<u8>> {
    let got = lock(got);
    let bodies = got.iter().filter(|(at, ..)| at == path);
    bodies.flat_map(|(_, _, body)| all(all(all(body, 1)[0], 2)[0], 2).into_iter().map(<[u8]>::to_vec)).collect()
}

async fn gateway(endpoint: &str, more: &str, shop: &Arc<Shop>, sent: &Arc<Mutex<Vec<Value>>>) -> Arc<Gateway> {
    let yaml = format!(
        "{{otlp: {{endpoint: '{endpoint}', headers: {{x-key: '${{env:KEY}}'}}, attributes: {{place: here}}{more}}}}}"
    );
    let mut config = GatewayConfig::parse(&yaml, Path::new("."), &|_| Some("s3cret".to_owned())).unwrap();
    assert!(!format!("{config:?}").contains("s3cret"));
    let (own, sent) = (Arc::clone(shop), Arc::clone(sent));
    let answer = move |method: &str, params: Option<&Raw>| {
        lock(&sent).push(json!([method, params.map(|params| params.read::<Value>().unwrap())]));
        own.answer(method, params)
    };
    config.upstreams.insert("shop".to_owned(), upstream(answer));
    Gateway::start(config).await.unwrap()
}

async fn call(gateway: &Arc<Gateway>, name: &str, more: Value) {
    let client = ClientInfo { version: "2025-11-25".to_owned(), ..ClientInfo::default() };
    let caller = Caller::new(Session::new("secret-session"), client, mpsc::channel(8).0);
    let mut params = json!({"name": "tool_execute", "arguments": {"tool_id": name, "args": {"id": 1}}});
    params.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    let (id, params) = (Raw::of(&1), Raw::of(&params));
    let asked = Asked { id: &id, method: "tools/call", params: Some(&params) };
    let running = caller.session().begin(&id);
    let live = Live::from(Arc::clone(gateway));
    serve_request(&live, &caller, (&asked, running), std::future::pending()).await.unwrap().unwrap();
}

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_call_is_a_span_with_one_below_for_the_upstream_which_hears_of_it_and_for_each_work() {
    run(async {
        let (endpoint, got) = collector("200 OK");
        let (shop, sent) = (Arc::new(Shop::called("shop")), Arc::default());
        let gateway = gateway(&endpoint, "", &shop, &sent).await;
        call(&gateway, "price", json!({"_meta": {"traceparent": PARENT, "tracestate": "a=b"}})).await;
        call(&gateway, "delete", json!({})).await;
        call(&gateway, "", json!({"name": "tool_browse", "arguments": {"query": "price"}})).await;
        gateway.close().await;
        let spans = messages(&got, "/v1/traces");
        assert_eq!(spans.len(), 8);
        let shown: Vec<String> = spans
            .iter()
            .map(|span| {
                assert!(number(span, 7) > 0 && number(span, 8) >= number(span, 7));
                let mut attributes = attributes(span, 9);
                if let Some(session) = attributes.get_mut("mcp.session.id") {
                    assert_eq!(session.as_str().unwrap().len(), 32);
                    *session = "SESSION".into();
                }
                let status = all(span, 15).first().map_or(0, |status| number(status, 3));
                format!("{} kind={} status={status} {}", text(span, 5), number(span, 6), json!(attributes))
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        tools/call price kind=3 status=0 {"mcp.method.name":"tools/call","contextweaver.upstream":"shop","gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"price"}
        firewall kind=1 status=0 {"contextweaver.result.bytes":"61","contextweaver.answer.bytes":"56"}
        tools/call tool_execute kind=2 status=0 {"mcp.method.name":"tools/call","jsonrpc.request.id":"1","mcp.session.id":"SESSION","mcp.protocol.version":"2025-11-25","contextweaver.caller":"local","gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"tool_execute"}
        tools/call delete kind=3 status=2 {"mcp.method.name":"tools/call","contextweaver.upstream":"shop","gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"delete","error.type":"tool_error"}
        firewall kind=1 status=0 {"contextweaver.result.bytes":"60","contextweaver.answer.bytes":"60"}
        tools/call tool_execute kind=2 status=2 {"mcp.method.name":"tools/call","jsonrpc.request.id":"1","mcp.session.id":"SESSION","mcp.protocol.version":"2025-11-25","contextweaver.caller":"local","gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"tool_execute","error.type":"tool_error"}
        route kind=1 status=0 {}
        tools/call tool_browse kind=2 status=0 {"mcp.method.name":"tools/call","jsonrpc.request.id":"1","mcp.session.id":"SESSION","mcp.protocol.version":"2025-11-25","contextweaver.caller":"local","gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"tool_browse"}
        "#);
        let (below, above) = (&spans[0], &spans[2]);
        assert_eq!(hex(below, 1), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!((hex(above, 4), text(above, 3)), ("b7ad6b7169203331".to_owned(), "a=b".to_owned()));
        assert_eq!([hex(below, 4), hex(&spans[1], 4)], [hex(above, 2), hex(above, 2)]);
        assert!(hex(&spans[5], 4).is_empty() && hex(&spans[5], 1) != hex(above, 1), "a trace of its own");
        let sent = lock(&sent);
        let called = sent.iter().find(|one| one[0] == "tools/call").unwrap();
        let traceparent = format!("00-{}-{}-01", hex(below, 1), hex(below, 2));
        assert_eq!(called[1]["_meta"], json!({"traceparent": traceparent, "tracestate": "a=b"}));
        assert_eq!(called[1]["arguments"], json!({"id": 1}));
        // Who says all this, and with which header.
        let got = lock(&got);
        assert!(got.iter().all(|(_, key, _)| key == "s3cret"));
        let resource = attributes(all(all(&got[0].2, 1)[0], 1)[0], 1);
        assert_eq!((&resource["service.name"], &resource["place"]), (&json!("contextweaver"), &json!("here")));
    });
}

#[test]
fn metrics_are_sent_with_their_labels_and_at_the_end() {
    run(async {
        let (endpoint, got) = collector("200 OK");
        let (shop, sent) = (Arc::new(Shop::called("shop")), Arc::default());
        let gateway = gateway(&endpoint, ", traces: false", &shop, &sent).await;
        call(&gateway, "price", json!({})).await;
        gateway.close().await;
        assert!(messages(&got, "/v1/traces").is_empty());
        let metrics = messages(&got, "/v1/metrics");
        let named =
            |name: &str| metrics.iter().find(|metric| text(metric, 1) == name).unwrap_or_else(|| panic!("{name}"));
        let point = all(all(named("contextweaver.calls"), 7)[0], 1)[0].to_vec();
        assert_eq!(number(&point, 6), 1);
        let labels =
            json!({"gen_ai.tool.name": "shop:price", "contextweaver.caller": "local", "contextweaver.code": "OK"});
        assert_eq!(Value::from(attributes(&point, 7)), labels);
        let operation = json!({"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool"});
        for (name, key, value) in [
            ("mcp.server.operation.duration", "gen_ai.tool.name", "tool_execute"),
            ("mcp.client.operation.duration", "contextweaver.upstream", "shop"),
        ] {
            let points = all(all(named(name), 9)[0], 1);
            let [point] = points[..] else { panic!("{name} has {} points", points.len()) };
            let mut labels = operation.clone();
            labels[key] = value.into();
            assert_eq!(Value::from(attributes(point, 9)), labels, "{name}");
            assert_eq!((number(point, 4), all(point, 6)[0].len(), all(point, 7)[0].len()), (1, 13 * 8, 12 * 8));
        }
    });
}

#[test]
fn the_name_of_a_call_that_fails_has_no_series() {
    run(async {
        let (endpoint, got) = collector("200 OK");
        let (shop, sent) = (Arc::new(Shop::called("shop")), Arc::default());
        let gateway = gateway(&endpoint, ", traces: false", &shop, &sent).await;
        call(&gateway, "delete", json!({})).await;
        gateway.close().await;
        let metrics = messages(&got, "/v1/metrics");
        let took = metrics.iter().find(|metric| text(metric, 1) == "mcp.server.operation.duration").unwrap();
        let points = all(all(took, 9)[0], 1);
        assert!(!points.is_empty());
        assert!(points.iter().all(|point| !attributes(point, 9).contains_key("gen_ai.tool.name")));
    });
}

#[test]
fn an_upstream_that_fails_is_timed_with_its_failure_whichever_way_it_is_asked() {
    run(async {
        for (mode, call) in [
            ("gateway", json!({"name": "tool_execute", "arguments": {"tool_id": "price", "args": {"id": 1}}})),
            ("passthrough", json!({"name": "price", "arguments": {"id": 1}})),
        ] {
            let (endpoint, got) = collector("200 OK");
            let yaml = format!("{{mode: {mode}, otlp: {{endpoint: '{endpoint}', headers: {{x-key: s3cret}}}}}}");
            let mut config = GatewayConfig::parse(&yaml, Path::new("."), &|_| None).unwrap();
            let shop = Shop::called("shop");
            let answer = move |method: &str, params: Option<&Raw>| match method {
                "tools/call" => Err(Fault::Timeout(Duration::from_secs(1))),
                _ => shop.answer(method, params),
            };
            config.upstreams.insert("shop".to_owned(), upstream(answer));
            let gateway = Gateway::start(config).await.unwrap();
            let caller = Caller::new(Session::new("s"), ClientInfo::default(), mpsc::channel(8).0);
            let _ = gateway.answer(&caller, "tools/call", Some(&Raw::of(&call))).await;
            gateway.close().await;
            let metrics = messages(&got, "/v1/metrics");
            let asked = metrics.iter().find(|metric| text(metric, 1) == "mcp.client.operation.duration").unwrap();
            let points = all(all(asked, 9)[0], 1);
            let labels: Vec<Value> = points.iter().map(|point| attributes(point, 9).into()).collect();
            let expected = json!([{"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool",
                "contextweaver.upstream": "shop", "error.type": "UPSTREAM_TIMEOUT"}]);
            assert_eq!(Value::from(labels), expected, "{mode}");
        }
    });
}

#[test]
fn a_span_says_what_its_request_came_over_and_which_it_was() {
    run(async {
        let (endpoint, got) = collector("200 OK");
        let (shop, sent) = (Arc::new(Shop::called("shop")), Arc::default());
        let gateway = gateway(&endpoint, "", &shop, &sent).await;
        let line = "{\"jsonrpc\":\"2.0\",\"id\":\"p\\u0069ng\",\"method\":\"ping\"}\n";
        serve(Arc::clone(&gateway), line.as_bytes(), tokio::io::sink()).await.unwrap();
        let http = HttpConfig { listen: "127.0.0.1:0".parse().unwrap(), ..HttpConfig::default() };
        let server = HttpServer::bind(Arc::clone(&gateway), http).await.unwrap();
        let address = format!("http://{}/mcp", server.address().unwrap());
        let serving = tokio::spawn(server.serve(std::future::pending()));
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        for (id, method, params, version) in [
            (json!(7), "initialize", hello, "2025-11-25"),
            (json!("two"), "tools/list", json!({"_meta": meta}), MODERN_VERSION),
        ] {
            let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            let request = reqwest::Client::new().post(&address).body(message.to_string());
            let request = request.header("content-type", "application/json").header("mcp-protocol-version", version);
            let request = request.header("accept", "application/json, text/event-stream").header("mcp-method", method);
            let answer = request.send().await.unwrap();
            assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
        }
        serving.abort();
        gateway.close().await;
        let spans = messages(&got, "/v1/traces");
        let shown = spans.iter().map(|span| {
            let attributes = attributes(span, 9);
            json!([text(span, 5), attributes["jsonrpc.request.id"], attributes["network.transport"]])
        });
        let expected = json!([["ping", "ping", "pipe"], ["initialize", "7", "tcp"], ["tools/list", "two", "tcp"]]);
        assert_eq!(Value::from(shown.collect::<Vec<_>>()), expected);
    });
}

#[test]
fn a_collector_that_does_not_answer_costs_spans_and_nothing_else() {
    run(async {
        let (shop, sent) = (Arc::new(Shop::called("shop")), Arc::default());
        // Nobody listens there any more.
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let gateway = gateway(&format!("http://{gone}"), "", &shop, &sent).await;
        let start = std::time::Instant::now();
        for _ in 0..1_500 {
            call(&gateway, "price", json!({})).await;
        }
        assert!(start.elapsed() < Duration::from_secs(60));
        gateway.close().await;
        let metrics = gateway.metrics_text();
        let lost = |reason: &str| -> u64 {
            let start = format!("contextweaver_otlp_spans_lost_total{{reason=\"{reason}\"}} ");
            metrics.lines().find_map(|line| line.strip_prefix(&*start)).unwrap().parse().unwrap()
        };
        assert!(lost("queue_full") + lost("export_failed") > 0, "{metrics}");
        let (refusing, got) = collector("400 Bad Request");
        let gateway = super::otlp::gateway(&refusing, "", &shop, &sent).await;
        call(&gateway, "price", json!({})).await;
        gateway.close().await;
        assert_eq!(messages(&got, "/v1/traces").len(), 3, "what is refused is not sent again");
        assert!(gateway.metrics_text().contains("contextweaver_otlp_spans_lost_total{reason=\"export_failed\"} 3"));
    });
}

#[test]
fn a_trace_that_is_not_recorded_is_passed_on_all_the_same() {
    run(async {
        let (endpoint, got) = collector("200 OK");
        let (shop, sent) = (Arc::new(Shop::called("shop")), Arc::default());
        let gateway = gateway(&endpoint, ", sample: 0", &shop, &sent).await;
        call(&gateway, "price", json!({})).await;
        call(&gateway, "price", json!({"_meta": {"traceparent": PARENT.replace("-01", "-00")}})).await;
        gateway.close().await;
        assert!(messages(&got, "/v1/traces").is_empty());
        let sent = lock(&sent);
        let called: Vec<&Value> = sent.iter().filter(|one| one[0] == "tools/call").collect();
        assert!(called.iter().all(|one| one[1]["_meta"]["traceparent"].as_str().unwrap().ends_with("-00")));
    });
}

/// An interface with two paths, of which one fails.
struct TwoPaths;

impl Api for TwoPaths {
    fn path(&self, path: &str) -> Option<&'static str> {
        ["/v1/well", "/v1/ill"].into_iter().find(|known| *known == path)
    }

    fn is_long(&self, _: &'static str) -> bool {
        false
    }

    fn answer(&self, path: &'static str, _: &[u8]) -> Answer {
        Answer { status: if path == "/v1/well" { 200 } else { 500 }, body: "{}".to_owned() }
    }

    fn description(&self) -> &'static str {
        "{}"
    }

    fn refusal(&self, _: &str) -> String {
        "{}".to_owned()
    }
}

/// Serves the interface with this section, asks it for each path with a method and a `traceparent`, and ends it; what
/// `/metrics` says before that.
async fn asked(section: &str, questions: &[(&str, &str, Option<&str>)]) -> String {
    let config = OtlpConfig::parse(section, &|_| Some("s3cret".to_owned())).unwrap();
    let http = HttpConfig { listen: "127.0.0.1:0".parse().unwrap(), ..HttpConfig::default() };
    let server = ApiServer::bind(Arc::new(TwoPaths), http).await.unwrap().exporting(&config).unwrap();
    let address = format!("http://{}", server.address().unwrap());
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async {
        let _ = ended.await;
    }));
    let client = reqwest::Client::new();
    for (method, path, traceparent) in questions {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = client.request(method, format!("{address}{path}"));
        request = request.header("content-type", "application/json").body(r#"{"query":"of-nobody-else"}"#);
        if let Some(traceparent) = traceparent {
            request = request.header("traceparent", *traceparent);
        }
        request.send().await.unwrap();
    }
    let metrics = client.get(format!("{address}/metrics")).send().await.unwrap().text().await.unwrap();
    drop(end);
    serving.await.unwrap();
    metrics
}

#[test]
fn a_question_over_http_is_a_span_in_the_trace_of_its_caller_and_is_counted() {
    run(async {
        let (endpoint, got) = collector("200 OK");
        let section = format!("{{otlp: {{endpoint: '{endpoint}', headers: {{x-key: '${{env:KEY}}'}}}}}}");
        let questions = [
            ("POST", "/v1/well", Some(PARENT)),
            ("POST", "/v1/ill", None),
            ("BREW", "/v1/well", None),
            ("POST", "/v1/well", Some(&*PARENT.replace("-01", "-00"))),
            ("POST", "/v1/none", None),
            ("GET", "/healthz", None),
        ];
        let page = asked(&section, &questions).await;
        assert!(page.contains("contextweaver_answers_total{path=\"/v1/well\",status=\"200\"} 2"), "{page}");
        assert!(page.contains("contextweaver_otlp_spans_lost_total{reason=\"queue_full\"} 0"), "{page}");
        let spans = messages(&got, "/v1/traces");
        let shown: Vec<String> = spans
            .iter()
            .map(|span| {
                assert!(number(span, 7) > 0 && number(span, 8) >= number(span, 7));
                let status = all(span, 15).first().map_or(0, |status| number(status, 3));
                let attributes = json!(attributes(span, 9));
                format!("{} kind={} status={status} {attributes}", text(span, 5), number(span, 6))
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        POST /v1/well kind=2 status=0 {"http.request.method":"POST","http.route":"/v1/well","contextweaver.caller":"http","http.response.status_code":200}
        POST /v1/ill kind=2 status=2 {"http.request.method":"POST","http.route":"/v1/ill","contextweaver.caller":"http","http.response.status_code":500,"error.type":"500"}
        HTTP /v1/well kind=2 status=0 {"http.request.method":"_OTHER","http.route":"/v1/well","contextweaver.caller":"http","http.response.status_code":405}
        "#);
        assert_eq!(hex(&spans[0], 1), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(hex(&spans[0], 4), "b7ad6b7169203331");
        assert!(hex(&spans[1], 4).is_empty() && hex(&spans[1], 1) != hex(&spans[0], 1), "a trace of its own");
        let metrics = messages(&got, "/v1/metrics");
        let named = |name: &str| metrics.iter().find(|metric| text(metric, 1) == name).unwrap();
        let took = all(named("http.server.request.duration"), 9)[0].to_vec();
        let points: Vec<_> =
            all(&took, 1).iter().map(|point| json!([attributes(point, 9), number(point, 4)])).collect();
        insta::assert_snapshot!(json!(points), @r#"[[{"http.route":"/v1/ill","http.response.status_code":500},1],[{"http.route":"/v1/well","http.response.status_code":200},2],[{"http.route":"/v1/well","http.response.status_code":405},1]]"#);
        let got = lock(&got);
        assert!(got.iter().all(|(_, key, _)| key == "s3cret"));
        assert!(
            got.iter().all(|(.., body)| !body.windows(14).any(|part| part == b"of-nobody-else")),
            "no question is sent"
        );
    });
}

#[test]
fn a_collector_that_refuses_costs_the_questions_nothing() {
    run(async {
        let (endpoint, got) = collector("400 Bad Request");
        let page = asked(&format!("{{otlp: {{endpoint: '{endpoint}'}}}}"), &[("POST", "/v1/well", None); 3]).await;
        assert!(page.contains("contextweaver_answers_total{path=\"/v1/well\",status=\"200\"} 3"), "{page}");
        assert_eq!(messages(&got, "/v1/traces").len(), 3);
        let silent = format!("{{otlp: {{endpoint: '{endpoint}', traces: false, metrics: false}}}}");
        asked(&silent, &[("POST", "/v1/well", None)]).await;
        assert_eq!(messages(&got, "/v1/traces").len(), 3, "nothing more came");
    });
}

#[test]
fn what_is_no_collector_is_refused() {
    let parse = |yaml: &str| GatewayConfig::parse(yaml, Path::new("."), &|_| None).unwrap_err().to_string();
    for (yaml, expected) in [
        ("otlp: {endpoint: here}", "otlp.endpoint: must be the address of a collector"),
        ("otlp: {endpoint: 'http://h', sample: 2}", "otlp.sample: is 2; it must be from 0 to 1"),
        ("otlp: {endpoint: 'http://h', interval_seconds: 0}", "otlp.interval_seconds: is 0"),
        ("otlp: {endpoint: 'http://h', headers: {a: '${env:NO}'}}", "otlp.headers.a: the variable `NO` is not set"),
        ("otlp: {endpoint: 'http://h', headers: {'a b': c}}", "otlp.headers.a b: is not a header"),
    ] {
        assert!(parse(yaml).contains(expected), "{yaml}: {}", parse(yaml));
        let alone = OtlpConfig::parse(&format!("{{{yaml}}}"), &|_| None).unwrap_err().to_string();
        assert!(alone.contains(expected), "{yaml}: {alone}");
    }
    let more = OtlpConfig::parse("{otlp: {endpoint: 'http://h'}, mode: proxy}", &|_| None).unwrap_err().to_string();
    assert!(more.contains("unknown field `mode`"), "{more}");
}
