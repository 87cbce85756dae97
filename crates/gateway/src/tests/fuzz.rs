//! Inputs that nobody meant: seeds of every kind of foreign input are mutated and given to what reads them.
//!
//! Each parser is a target, and so is a whole conversation: the lines of a client, with what the upstream answers. What
//! has a checksum gets a right one after it was changed, so that what lies behind the checksum is reached. Every run of
//! the tests tries inputs for a moment; `scripts/fuzz-test SECONDS` does it for as long as one likes, with other seeds
//! each time, and reports inputs tried, panics, the longest input and the highest memory of the process. The inputs
//! follow from the number that the report names, target by target.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;

use super::shop::{Shop, upstream};
use crate::common::sync::lock;
use crate::guard::schema::compiled;
use crate::protocol::message::{Message, Raw};
use crate::protocol::strict;
use crate::upstream::sse::EventReader;
use crate::{EventStats, Gateway, GatewayConfig, Replay, serve};
use contextweaver_context::ContextConfig;
use contextweaver_context::event::{Handle, Selector};
use contextweaver_context::store::{ArtifactStore, Session};
use contextweaver_context::view::{Bounds, Cursor as ViewCursor, view};
use contextweaver_core::catalog::{Catalog, SchemaLimits, check_schema};
use contextweaver_core::text::sha256_hex;
use contextweaver_routing::{Request, Router, RoutingConfig, load as load_router, save as save_router};

/// The longest that one input may take, on a machine that does other things as well.
const LONGEST: Duration = Duration::from_secs(10);

/// Bytes of an input, at most.
const MOST_BYTES: usize = 64 * 1024;

/// Numbers that look random, from a number.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `most`, which is not 0.
    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most as u64).unwrap_or(0)
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// What parsers trip over.
const PIECES: [&[u8]; 40] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b",",
    b":",
    b"null",
    b"true",
    b"-0",
    b"1e999",
    b"9223372036854775808",
    b"0.1",
    b"\\ud800",
    b"\\u0000",
    b"\n",
    b"\r\n",
    b"\n\n",
    b"\0",
    b"\xc0\xae",
    b"\xff",
    "\u{feff}".as_bytes(),
    "\u{202e}".as_bytes(),
    b"${env:",
    b"}",
    b"&a",
    b"*a",
    b"<<: ",
    b"- ",
    b"$ref",
    b"$..",
    b"[*]",
    b"/",
    b"..",
    b"%25",
    b"(a|a)*b",
    b"data: ",
    b"[[",
    b"!!",
];

/// Changes an input in a few places.
fn mutated(dice: &mut Dice, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut input = dice.one_of(seeds).clone();
    for _ in 0..1 + dice.below(6) {
        let at = dice.below(input.len() + 1);
        let end = (at + dice.below(64)).min(input.len());
        match dice.below(9) {
            0 => drop(input.splice(at..end, [])),
            1 => {
                let piece = input[at..end].to_vec();
                drop(input.splice(at..at, piece.repeat(1 + dice.below(40))));
            }
            2 if at < input.len() => input[at] ^= 1 << dice.below(8),
            3 => input.truncate(at),
            4 => {
                let other = dice.one_of(seeds);
                let from = dice.below(other.len() + 1);
                let piece = other[from..(from + dice.below(200)).min(other.len())].to_vec();
                drop(input.splice(at..end, piece));
            }
            5 => {
                let depth = 1 + dice.below(300);
                let piece = dice.one_of(&[&b"["[..], b"{\"a\":", b"- ", b"(", b"&x [", b"..a"]).repeat(depth);
                drop(input.splice(at..at, piece));
            }
            6 => {
                let digits = dice.next().to_string().into_bytes();
                drop(input.splice(at..end.min(at + 3), digits));
            }
            _ => {
                let piece = dice.one_of(&PIECES).to_vec();
                drop(input.splice(at..at, piece));
            }
        }
        input.truncate(MOST_BYTES);
    }
    input
}

/// What reads foreign input.
type Reader<'t> = Box<dyn Fn(&[u8]) + 't>;

/// A reader of foreign input, with inputs that it accepts.
struct Target<'t> {
    name: &'static str,
    seeds: Vec<Vec<u8>>,
    read: Reader<'t>,
}

impl<'t> Target<'t> {
    fn new(name: &'static str, seeds: &[&str], read: impl Fn(&[u8]) + 't) -> Self {
        Self { name, seeds: seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect(), read: Box::new(read) }
    }
}

/// What came of the inputs of a target.
#[derive(Default)]
struct Tally {
    tried: u64,
    panics: u64,
    longest: Duration,
}

const CONFIG: &str = "mode: gateway\nupstreams:\n  a: {command: npx, args: [-y, x], env: {T: '${env:T}'}}\n  b:\n    url: \
    http://h/mcp\n    headers: &h {a: b}\npolicy: {rules: [{action: deny, tool: 'x*'}]}\nhttp: {max_sessions: 3}\n";

const SESSION: &str = r#"{"format": "contextweaver session", "schema": 1, "source": "x", "events": [{"id": "a", "kind": "user_turn", "text": "hello"}, {"id": "b", "parent_id": "a", "kind": "agent_msg", "text": "there"}], "artifacts": [], "contents": [], "facts": [{"key": "k", "value": "v"}], "episodes": []}"#;

const RECORDING: &str = "{\"seq\":1,\"direction\":\"client\",\"at_ms\":0,\"message\":{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{}}}\n{\"seq\":2,\"direction\":\"server\",\"at_ms\":3,\"message\":{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[]}}}\n";

const EVENTS: &str = "{\"attributes\":{},\"duration_ms\":12.3,\"event\":\"execute.completed\",\"namespace\":\"git\",\"session_id\":\"s\",\"success\":true,\"timestamp\":\"2026-11-22T12:00:00.000042+00:00\",\"tool_id\":\"git:git_log#1a2b3c4d\",\"version\":1}\n";

const CONTENTS: [&str; 3] = [
    r#"{"a": {"a": [{"a": 1, "b": "x"}, {"a": {"a": {"a": 2}}}]}, "rows": [{"id": 1, "n": "one"}, {"id": 2, "n": "two"}]}"#,
    "id,name,size\n1,one,3\n2,two,4\n3,three,5\n",
    "2026-01-01 INFO start\n2026-01-01 ERROR it failed\n  at line 3\n2026-01-01 INFO end\n",
];

/// The lines of a client, and behind a NUL what its upstream answers.
const CONVERSATION: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"tool_browse","arguments":{"query":"the price of a thing"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"tool_execute","arguments":{"tool_id":"{id}","args":{}}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"tool_view","arguments":{"handle":"artifact:result:0","selector":"json_path:$..a"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"shop:terms"}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"resource_read","arguments":{"resource_id":"shop:page/%2e/1"}}}"#,
    "\n",
    "\0",
    r#"{"content":[{"type":"text","text":"[{\"id\": 1, \"name\": \"one\"}, {\"id\": 2}]"},{"type":"resource_link","uri":"a://b","name":"b"}],"structuredContent":{"n":[1,2,3]},"isError":false}"#,
);

/// The catalog of an index file, and the file.
fn indexed() -> (Arc<Catalog>, Vec<u8>) {
    let tools = json!([
        {"name": "read_file", "description": "Read a file from the disk", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}},
        {"name": "send_mail", "description": "Send a message to somebody", "inputSchema": {"type": "object"}},
        {"name": "list_rooms", "description": "Rooms of the house, by floor", "inputSchema": {"type": "object"}},
    ]);
    let catalog = Arc::new(Catalog::from_json(&tools.to_string()).unwrap());
    let router = Router::build(Arc::clone(&catalog), RoutingConfig::default()).unwrap();
    (catalog, save_router(&router).unwrap())
}

/// An index file whose header has the checksum of what follows.
fn with_checksum(file: &[u8]) -> Option<Vec<u8>> {
    let end = file.iter().position(|byte| *byte == b'\n')?;
    let (head, payload) = (file.get(..end)?, file.get(end + 1..)?);
    let mut header: Map<String, Value> = serde_json::from_slice(head).ok()?;
    let mut digest = Sha256::new();
    for length in header.get("index_bytes")?.as_array()? {
        digest.update(length.as_u64()?.to_le_bytes());
    }
    digest.update(payload);
    let hex: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    header.insert("payload_sha256".to_owned(), hex.into());
    let mut mended = serde_json::to_vec(&header).ok()?;
    mended.resize((mended.len() + 1).next_multiple_of(end + 1) - 1, b' ');
    mended.push(b'\n');
    mended.extend_from_slice(payload);
    Some(mended)
}

/// A session file with an artifact, and the same with the hash that its content has after a change.
fn kept_session() -> String {
    let session = Session::parse(SESSION.as_bytes(), Path::new("s")).unwrap();
    session.artifacts.put(&Handle::new("artifact:1"), CONTENTS[0].as_bytes(), "application/json", "x").unwrap();
    let mut written = Vec::new();
    session.write(&mut written).unwrap();
    String::from_utf8(written).unwrap()
}

fn with_hashes(file: &[u8]) -> Option<Vec<u8>> {
    let mut session: Value = serde_json::from_slice(file).ok()?;
    let contents = session.get_mut("contents")?.as_array_mut()?;
    let mut text = Vec::new();
    for content in contents.iter_mut().filter_map(Value::as_object_mut) {
        let body = content.get("body").and_then(|body| body.get("text")).and_then(Value::as_str).unwrap_or_default();
        let (before, after) = (content.get("content_hash").cloned(), sha256_hex(body.as_bytes()));
        let size = body.len();
        content.insert("content_hash".to_owned(), after.clone().into());
        text.push((before, after, size));
    }
    for artifact in session.get_mut("artifacts")?.as_array_mut()?.iter_mut().filter_map(Value::as_object_mut) {
        if let Some((_, after, size)) = text.iter().find(|(before, ..)| before.as_ref() == artifact.get("content_hash"))
        {
            artifact.insert("content_hash".to_owned(), after.clone().into());
            artifact.insert("size_bytes".to_owned(), (*size).into());
        }
    }
    serde_json::to_vec(&session).ok()
}

/// A gateway in front of an upstream that answers calls with what it is told to.
struct Conversing {
    runtime: Runtime,
    gateway: Arc<Gateway>,
    answer: Arc<Mutex<Option<Raw>>>,
    id: String,
}

impl Conversing {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let answer: Arc<Mutex<Option<Raw>>> = Arc::default();
        let (told, shop) = (Arc::clone(&answer), Shop::called("shop"));
        let mut config = GatewayConfig::parse("{firewall: {threshold_chars: 20}}", Path::new("."), &|_| None).unwrap();
        let reply = move |method: &str, params: Option<&Raw>| match lock(&told).clone() {
            Some(answer) if matches!(method, "tools/call" | "resources/read") => Ok(answer),
            _ => shop.answer(method, params),
        };
        config.upstreams.insert("shop".to_owned(), upstream(reply));
        let gateway = runtime.block_on(Gateway::start(config)).unwrap();
        let view = gateway.catalog();
        let items = view.tools.as_ref().unwrap().router.catalog().items();
        let id = items.iter().find(|item| item.name == "report").unwrap().id.clone();
        Self { runtime, gateway, answer, id }
    }

    fn converse(&self, input: &[u8]) {
        let (said, answer) = input.split_at(input.iter().position(|byte| *byte == 0).unwrap_or(input.len()));
        *lock(&self.answer) =
            serde_json::from_slice::<&serde_json::value::RawValue>(answer.get(1..).unwrap_or_default())
                .ok()
                .map(Raw::of);
        let said = Cursor::new(said.to_vec());
        let serving = serve(Arc::clone(&self.gateway), said, tokio::io::sink());
        let ended = self.runtime.block_on(async { tokio::time::timeout(LONGEST, serving).await });
        assert!(ended.is_ok(), "the conversation hangs");
    }
}

fn text(input: &[u8]) -> &str {
    std::str::from_utf8(input).unwrap_or_default()
}

fn targets<'t>(conversing: &'t Conversing, indexed: &'t (Arc<Catalog>, Vec<u8>)) -> Vec<Target<'t>> {
    let message = |input: &[u8]| {
        let parsed = Message::parse(Bytes::copy_from_slice(input));
        if let Ok(Message::Request { params, .. }) = parsed {
            let _ = params.map(|params| strict::check(text(params.bytes())).is_ok());
        }
    };
    let stream = |input: &[u8]| {
        for size in [1, 7, input.len().max(1)] {
            let mut reader = EventReader::new(4096);
            for chunk in input.chunks(size) {
                reader.push(chunk);
                while let Some(Ok(_)) = reader.next() {}
            }
        }
    };
    let selector = |input: &[u8]| {
        let input = text(input);
        let (first, rest) = input.split_once('\n').unwrap_or((input, ""));
        let written = first.parse::<Selector>().ok();
        let Some(selector) = written.or_else(|| serde_json::from_str(first).ok()) else { return };
        for (content, kind) in
            CONTENTS.into_iter().chain([rest]).zip(["application/json", "text/csv", "text/plain", ""])
        {
            let shown =
                view(&Handle::new("h"), content.as_bytes(), kind, &selector, ViewCursor::default(), Bounds::default());
            assert!(shown.is_ok_and(|shown| shown.text.len() > 100_000).eq(&false), "a view is bounded");
        }
    };
    let schema = |input: &[u8]| {
        let Ok(schema) = serde_json::from_slice::<Value>(input) else { return };
        let _ = check_schema(&schema, &SchemaLimits::default());
        if let Ok(checker) = compiled(&schema) {
            for value in
                [json!({}), json!({"a": [1, "x", {"a": {"a": null}}], "and": [{"or": [{"and": []}]}]}), json!([[1]])]
            {
                checker.try_on(&value);
            }
        }
    };
    let index = |input: &[u8]| {
        let (catalog, _) = indexed;
        for bytes in [Some(input.to_vec()), with_checksum(input)].into_iter().flatten() {
            if let Ok(router) = load_router(bytes, Arc::clone(catalog), RoutingConfig::default()) {
                let _ = router.route(&Request { query: "read a file".to_owned(), ..Request::default() });
            }
        }
    };
    let session = |input: &[u8]| {
        for bytes in [Some(input.to_vec()), with_hashes(input)].into_iter().flatten() {
            if let Ok(session) = Session::parse(&bytes, Path::new("s")) {
                let _ = session.write(&mut Vec::new());
            }
        }
    };
    let recording = |input: &[u8]| {
        if let Ok(mut replay) = Replay::load(input) {
            let asked = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#);
            drop(replay.take(Message::parse(asked).unwrap()));
        }
    };
    let conversation = CONVERSATION.replace("{id}", &conversing.id);
    let gateway_schema = include_str!("../../../../schemas/routing.json");
    let kept = kept_session();
    vec![
        Target::new("message", &conversation.lines().collect::<Vec<_>>(), message),
        Target::new(
            "event stream",
            &["event: message\nid: 1\nretry: 5\ndata: {\"a\":1}\ndata: {}\n\n: x\r\n\r\ndata:\n\n"],
            stream,
        ),
        Target::new("configuration", &[CONFIG, r#"{"upstreams": {"a": {"command": "x"}}}"#], |input| {
            let _ = GatewayConfig::parse(text(input), Path::new("/"), &|name| Some(name.to_owned()));
        }),
        Target::new(
            "configuration of contexts",
            &["[budgets]\nanswer = 100\n[firewall]\nthreshold_chars = 3\n"],
            |input| {
                let _ = ContextConfig::from_toml(text(input));
            },
        ),
        Target::new(
            "selector",
            &[
                "json_path:$..a..a\n{\"a\":1}",
                "lines:-5..\nx",
                "rows:0..10\na,b",
                "head:10",
                "grep:a+b\nab",
                "json_keys:a,b",
                "{\"type\":\"lines\",\"start\":0,\"end\":20}",
            ],
            selector,
        ),
        Target::new(
            "schema",
            &[
                gateway_schema,
                r##"{"$defs":{"f":{"oneOf":[{"properties":{"and":{"items":{"$ref":"#/$defs/f"}}}},{"properties":{"or":{"items":{"$ref":"#/$defs/f"}}}}]}},"$ref":"#/$defs/f"}"##,
                r##"{"$id":"http://h/a","type":"object","properties":{"a":{"pattern":"^(a+)+$"}},"$defs":{"b":{"$id":"b","$anchor":"c"}},"allOf":[{"$ref":"b#c"}]}"##,
            ],
            schema,
        ),
        Target::new(
            "catalog",
            &[
                r#"[{"name":"a","description":"b","inputSchema":{"type":"object"}}]"#,
                r#"{"tools":[{"name":"a"}],"server":"x"}"#,
            ],
            |input| {
                let _ = Catalog::from_json(text(input));
            },
        ),
        Target::new("events", &[EVENTS], |input| drop(EventStats::read(input))),
        Target::new("session file", &[SESSION, &kept], session),
        Target { name: "index file", seeds: vec![indexed.1.clone()], read: Box::new(index) },
        Target::new("recording", &[RECORDING], recording),
        Target::new("conversation", &[&conversation], |input| conversing.converse(input)),
    ]
}

/// The most memory that the process had, in bytes, as far as the system says it.
fn highest_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Panics of the process, on whatever thread: tasks of a conversation take theirs with them.
static PANICS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The number that the inputs follow from.
    static FIRST: Cell<u64> = const { Cell::new(0x9E37_79B9_7F4A_7C15) };
}

#[test]
fn no_input_panics_hangs_or_grows() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let asked = number("FUZZ_SECONDS");
    if asked.is_some() {
        // No other test runs then.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.fetch_add(1, Ordering::Relaxed);
            before(panic);
        }));
    }
    if let Some(first) = number("FUZZ_FIRST").filter(|first| *first != 0) {
        FIRST.set(first);
    }
    let (conversing, indexed) = (Conversing::new(), indexed());
    // What is mended is taken: changes are not lost behind a checksum.
    let mended = with_checksum(&indexed.1).unwrap();
    assert!(load_router(mended, Arc::clone(&indexed.0), RoutingConfig::default()).is_ok());
    let kept = with_hashes(kept_session().replace("one", "two").as_bytes()).unwrap();
    Session::parse(&kept, Path::new("s")).unwrap();
    let targets = targets(&conversing, &indexed);
    let each = asked.map_or(Duration::from_millis(150), Duration::from_secs) / u32::try_from(targets.len()).unwrap();
    let mut report = format!("inputs follow from FUZZ_FIRST={}\n\n", FIRST.get());
    report += "| input | tried | panics | longest |\n|---|---|---|---|\n";
    let (mut all, mut failed) = (Tally::default(), Vec::new());
    for target in &targets {
        // The seeds themselves are read first: what is wrong with them is wrong with the test.
        target.seeds.iter().for_each(|seed| (target.read)(seed));
        let (mut dice, mut tally, end) = (Dice(FIRST.get()), Tally::default(), Instant::now() + each);
        while Instant::now() < end {
            let input = mutated(&mut dice, &target.seeds);
            let (start, panics) = (Instant::now(), PANICS.load(Ordering::Relaxed));
            let outcome = catch_unwind(AssertUnwindSafe(|| (target.read)(&input)));
            let took = start.elapsed();
            tally.tried += 1;
            tally.longest = tally.longest.max(took);
            let panicked = outcome.is_err() || PANICS.load(Ordering::Relaxed) > panics;
            if panicked || took > LONGEST {
                tally.panics += u64::from(panicked);
                failed.push(format!("{}: {:.1000}", target.name, input.escape_ascii().to_string()));
            }
        }
        let Tally { tried, panics, longest } = tally;
        let _ = writeln!(report, "| {} | {tried} | {panics} | {} ms |", target.name, longest.as_millis());
        all = Tally { tried: all.tried + tried, panics: all.panics + panics, longest: all.longest.max(longest) };
    }
    let _ = writeln!(report, "| all | {} | {} | {} ms |", all.tried, all.panics, all.longest.as_millis());
    let _ = writeln!(report, "\nhighest memory: {} MB", highest_memory() >> 20);
    println!("{report}");
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(asked.is_none() || highest_memory() < 1 << 30, "too much memory");
}
