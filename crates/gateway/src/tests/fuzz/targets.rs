//! What reads foreign input, each with inputs that it accepts.
//!
//! A target is one row of [`targets`]. What it promises about every input (a view that is bounded, a prompt within its
//! budget) is asserted there, beside that it neither panics nor hangs.

use std::borrow::Cow;
use std::io::Cursor;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json, to_string};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::LONGEST;
use crate::catalog::kept_lists;
use crate::common::sync::lock;
use crate::guard::pins::FilePins;
use crate::guard::schema::compiled;
use crate::guard::sign::{SIGNATURE, Signature, SigningConfig};
use crate::guard::state::Pinned;
use crate::operations::client_edit::{Edit, Form, edited};
use crate::operations::recording::{Direction, Recorded};
use crate::protocol::message::{Message, Raw};
use crate::protocol::stateless::RequestMeta;
use crate::protocol::strict;
use crate::protocol::trace_context::TraceContext;
#[cfg(feature = "s3")]
use crate::results::s3::stored_objects;
use crate::server::live::Live;
use crate::server::requests::{Asked, serve_request};
use crate::tests::answers::{ANSWERS, CATALOG};
use crate::tests::shop::{Shop, upstream};
use crate::transport::http::{issuer_metadata, key_sets, signed_tokens};
use crate::upstream::sse::EventReader;
use crate::upstream::token_answers;
use crate::{
    AuditCheck, AuditEvent, AuditLine, CallRows, Caller, CallersConfig, CatalogFile, Client, ClientFile, EventStats,
    Gateway, GatewayConfig, HttpConfig, HttpServer, MODERN_VERSION, Place, Playback, RunningStats,
    Session as ClientSession, SessionRows, Window, convert, serve,
};
use contextweaver_context::adapters::{Format, recognise};
use contextweaver_context::event::{ContextItem, Handle, ItemKind, Phase, Selector};
use contextweaver_context::memory::{LocalMemories, MemorySource, RecallBounds, recall};
use contextweaver_context::store::{ArtifactStore, Clock, MemoryArtifacts, Session, SystemClock};
use contextweaver_context::view::{Bounds, Cursor as ViewCursor, view};
use contextweaver_context::{ContextConfig, Firewall, Memory, Request as PromptRequest, compile, take_in};
use contextweaver_core::catalog::{
    CallNames, Catalog, LoadOptions, SchemaLimits, Strictness, ToolFormat, check_schema, load as load_catalog,
};
use contextweaver_core::text::Estimator;
use contextweaver_core::text::sha256_hex;
use contextweaver_routing::{
    FeedbackLog, NodeId, Request, Router, RoutingConfig, load as load_router, load_graph, save as save_router,
};

/// What reads foreign input.
type Reader<'t> = Box<dyn Fn(&[u8]) + 't>;

/// A reader of foreign input, with inputs that it accepts.
pub(super) struct Target<'t> {
    pub(super) name: &'static str,
    pub(super) seeds: Vec<Vec<u8>>,
    pub(super) read: Reader<'t>,
}

impl<'t> Target<'t> {
    fn new(name: &'static str, seeds: &[impl AsRef<str>], read: impl Fn(&[u8]) + 't) -> Self {
        Self { name, seeds: seeds.iter().map(|seed| seed.as_ref().as_bytes().to_vec()).collect(), read: Box::new(read) }
    }
}

const CONFIG: &str = "mode: gateway\nupstreams:\n  a: {command: npx, args: [-y, x], env: {T: '${env:T}'}}\n  b:\n    url: \
    http://h/mcp\n    headers: &h {a: b}\npolicy: {rules: [{action: deny, tool: 'x*'}]}\nhttp: {max_sessions: 3}\n";

/// What a company has in it: callers with tokens of an issuer, who are themselves to an upstream, and programs in sandboxes.
const COMPANY: &str = "sandbox: {read: [/srv], memory: 64MiB, processes: 9}\nupstreams:\n  a: {command: /bin/x, sandbox: {network: true, \
    write: ['${env:D}'], folder: /var/a}}\n  b:\n    url: https://b.example/mcp\n    credentials: {exchange: {token_endpoint: \
    'https://id.example/token', client_id: g, client_secret: s, audience: b}}\n  c: {url: 'https://c.example/mcp', credentials: \
    {passthrough: {issuer: 'https://id.example', audience: c}}}\nhttp: {oauth: {issuer: 'https://id.example', resource: \
    'https://g.example/mcp', scopes: [{scope: read, profile: p}]}, tokens: [{token: t, name: ann}]}\nprofiles: {p: {tools: ['*']}}\n\
    pinning: {mode: block}\naudit: {file: a.jsonl}\n";

/// Callers of an interface over HTTP.
const CALLERS: [&str; 2] = [
    "callers:\n- {name: a, token: '${env:TOKEN}'}\n- {name: b, token_file: b.token, metrics: true}\n- {name: c, token: t0ken, \
     max_requests_per_minute: 60, max_requests: 4, body_limit_bytes: 9}\n",
    r#"{"callers": [{"name": "a", "token": "s3cret", "token_file": null, "max_requests": null}]}"#,
];

/// Places in a trace: the two headers, and parameters that name one.
const PLACES: [&str; 4] = [
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\na=b,c@d=e f",
    "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more\n",
    r#"{"name":"x","_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=b"}}"#,
    r#"{"_meta":{"progressToken":3}}"#,
];

const FEEDBACK: &str = "{\"at\":1,\"query\":\"read it\",\"tool\":\"fs:read\",\"useful\":true}\n";

const PINS: &str = r#"{"version":1,"pins":[{"server":"s","name":"t","approved":null,"pending":null}]}"#;

const CLIENT_FILE: &str = r#"{"inputs": [{"id": "k", "type": "promptString"}], "mcpServers": {"a": {"command": "npx", "args": ["-y", "x@1"], "env": {"K": "${input:k}"}}, "b": {"url": "https://b.example/mcp", "headers": {"Authorization": "Bearer t"}}}, // mine
"other": [1, 2,]}"#;

const CLIENT_TOML: &str =
    "# mine\n[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"-y\", \"x\"]\nenv = { K = \"v\" }\n\n[other]\nx = 1\n";

const CLIENT_YAML: &str =
    "# mine\nmcpServers:\n  a:\n    command: npx\n    args: [-y, x]\n  b: {url: 'https://b.example/mcp'}\nother: 1\n";

/// Catalogs in the forms that JSON has.
const CATALOGS: [(ToolFormat, &str); 25] = [
    (ToolFormat::Mcp, r#"[{"name":"a","description":"b","inputSchema":{"type":"object"}}]"#),
    (ToolFormat::Mcp, r#"{"tools":[{"name":"a"}],"server":"x"}"#),
    (ToolFormat::Mcp, CATALOG),
    (
        ToolFormat::Native,
        r#"{"schema":1,"items":[{"id":"a:now@1.0","kind":"tool","name":"now","description":"The time","namespace":"a",
        "tags":["x"],"args_schema":{"type":"object"},"metadata":{"k":1}}]}"#,
    ),
    (
        ToolFormat::OpenAi,
        r#"{"model":"m","messages":[],"tools":[{"type":"function","function":{"name":"weather","description":"Says it",
        "parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"strict":true}}]}"#,
    ),
    (
        ToolFormat::OpenAiResponses,
        r#"[{"type":"function","name":"weather","parameters":{"type":"object"},"strict":false},
        {"type":"custom","name":"code","format":{"type":"text"}},
        {"type":"namespace","name":"crm","description":"Customers","tools":[{"type":"function","name":"find"}]},
        {"type":"mcp_list_tools","server_label":"s","tools":[{"name":"x","input_schema":{},"annotations":{"read_only":true}}]}]"#,
    ),
    (ToolFormat::Functions, r#"{"functions":[{"name":"weather","parameters":{"type":"object","properties":{}}}]}"#),
    (
        ToolFormat::Anthropic,
        r#"{"model":"m","max_tokens":1,"messages":[],"tools":[{"name":"weather","description":"Says it",
        "input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]}"#,
    ),
    (
        ToolFormat::Gemini,
        r#"{"contents":[],"tools":[{"functionDeclarations":[{"name":"weather","parameters":{"type":"OBJECT","properties":
        {"city":{"type":"STRING","nullable":true,"enum":["a"]},"all":{"anyOf":[{"type":"ARRAY","items":{"type":"NUMBER"}}]}}}}],
        "googleSearch":{}}]}"#,
    ),
    (
        ToolFormat::Bedrock,
        r#"{"toolConfig":{"tools":[{"toolSpec":{"name":"weather","description":"Says it","inputSchema":{"json":
        {"type":"object"}}}}]}}"#,
    ),
    (
        ToolFormat::OpenApi,
        r##"{"openapi":"3.0.3","info":{"title":"Pet Store","version":"1"},"servers":[{"url":"https://pets.example/v1"}],
        "paths":{"/pets/{id}":{"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"integer"}}],
        "get":{"operationId":"getPet","tags":["pets"],"parameters":[{"$ref":"#/components/parameters/Verbose"}]},
        "put":{"requestBody":{"content":{"application/json":{"schema":{"allOf":[{"$ref":"#/components/schemas/Tree"},
        {"type":"object","properties":{"id":{"type":"string"}}}]}}}}}},"/trees":{"$ref":"#/components/pathItems/Trees"}},
        "components":{"parameters":{"Verbose":{"name":"verbose","in":"query","schema":{"type":"boolean"}}},
        "pathItems":{"Trees":{"post":{"requestBody":{"content":{"multipart/form-data":{"schema":
        {"type":"array","items":{"$ref":"#/components/schemas/Tree"}}}}}}}},"schemas":{"Tree":{"type":"object","properties":
        {"age":{"type":"integer","minimum":0,"exclusiveMinimum":true},"next":{"$ref":"#/components/schemas/Tree"}}}}}}"##,
    ),
    (
        ToolFormat::A2a,
        r#"{"protocolVersion":"0.3.0","name":"Data Agent","description":"Knows tables","url":"https://a.example/a2a",
        "capabilities":{},"skills":[{"id":"sql","name":"SQL Query","description":"Runs it","tags":["db"],"examples":["a"]}],
        "supportedInterfaces":[{"url":"https://r.example/v1","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}"#,
    ),
    (ToolFormat::FastMcp, include_str!("../../../../core/src/catalog/formats/samples/fastmcp.json")),
    (ToolFormat::Mcp, include_str!("../../../../core/src/catalog/formats/samples/fastmcp-as-mcp.json")),
    (
        ToolFormat::LangChain,
        r#"[{"name":"weather","args":{"city":{"type":"string"},"days":{"type":"integer","default":1}}},
        {"name":"js","args_schema":{"type":"object"}}]"#,
    ),
    (
        ToolFormat::LlamaIndex,
        r#"[{"metadata":{"name":"weather","description":"Says it","fn_schema":{"type":"object"},"return_direct":false}},
        {"name":"now","description":"The time","fn_schema_str":"{\"type\":\"object\"}"}]"#,
    ),
    (
        ToolFormat::Smolagents,
        r#"[{"name":"weather","description":"Says it","inputs":{"city":{"type":"string","description":"Where"},
        "map":{"type":"image","nullable":true}},"output_type":"string"}]"#,
    ),
    (
        ToolFormat::Cohere,
        r#"[{"name":"weather","description":"Says it","parameter_definitions":{"city":{"type":"str","required":true},
        "days":{"type":"List[int]","required":false}}}]"#,
    ),
    (
        ToolFormat::VercelAi,
        r#"{"tools":{"weather":{"description":"Says it","inputSchema":{"jsonSchema":{"type":"object"}}},"now":{"description":"The time"}}}"#,
    ),
    (
        ToolFormat::Peer,
        r#"[{"id":"billing.find","kind":"tool","name":"find","description":"Finds it","tags":["read-only"],
        "namespace":"billing","args_schema":{"type":"object"},"output_schema":null,"examples":["all of May"],
        "constraints":{},"side_effects":false,"cost_hint":0.5,"depends_on":["billing.login"]}]"#,
    ),
    (
        ToolFormat::WeaverSpec,
        r#"{"id":"d1","selected_item_id":null,"choice_cards":[{"id":"c1","context_hint":"One of these","items":
        [{"id":"pages","label":"Find pages","description":"Finds them","metadata":{"cost":1}}]}]}"#,
    ),
    (
        ToolFormat::WeaverSpec,
        r#"[{"id":"org.app.find","name":"Find","version":"1.0.0","input_schema_ref":"https://x.example/s"}]"#,
    ),
    (
        ToolFormat::ChainWeaver,
        r#"{"type":"DAGFlow","name":"close","version":"1.2.0","description":"Closes it","format_version":"1","safety":
        {"side_effects":"read"},"steps":[{"step_id":"a","tool_name":"fetch","input_mapping":{"url":"url"}},{"step_id":"b",
        "tool_name":"parse","depends_on":["a"],"input_mapping":{"text":"body","level":"level"},"output_mapping":{"x":"y"}}]}"#,
    ),
    (
        ToolFormat::ChainWeaver,
        r#"{"flows":[{"id":"sum","name":"Sum up","description":"Reads it","version":"2.0","input_schema":{"type":"object"},
        "tags":["read-only"]},{"id":"remind","name":"remind","inputs":{},"outputs":null}]}"#,
    ),
    (
        ToolFormat::ChainWeaver,
        r#"[{"flow_id":"org.close","name":null,"version":null,"description":"Closes it","tool_dependencies":["ledger.close"],
        "side_effects":["data_write"]}]"#,
    ),
];

/// Catalogs in the forms that JSON does not have.
const CATALOG_FILES: [&str; 3] = [
    "openapi: 3.1\ninfo: {title: Clock, version: 1.0}\npaths:\n  /now:\n    get:\n      operationId: now\n      responses:\n        \
     200: {description: The time}\n",
    "server: &s desk\ntools:\n  - name: find\n    description: >\n      Find free\n      rooms\n    inputSchema: &o {type: object}\n  - \
     {name: book, inputSchema: *o, tags: [*s]}\n",
    "---\nname: pdf-forms\ndescription: >\n  Fill in the forms\n  of a PDF.\nlicense: MIT\nallowed-tools: Read Bash\nmetadata:\n  \
     version: \"1.0\"\n---\n\n# Steps\n\n1. Read it.\n---\n2. Go on.\n",
];

/// A conversation that every format can hold.
const TALK: &str = concat!(
    r#"{"type":"user_turn","id":"u","text":"What is the price of a thing?"}"#,
    "\n",
    r#"{"type":"tool_call","id":"c","parent_id":"u","text":"{\"name\":\"price\",\"arguments\":{\"of\":\"a thing\"}}"}"#,
    "\n",
    r#"{"type":"tool_result","id":"r","parent_id":"c","text":"[{\"id\": 1, \"price\": 3}, {\"id\": 2, \"price\": 4}]"}"#,
    "\n",
    r#"{"type":"agent_msg","id":"m","parent_id":"r","text":"Three."}"#,
    "\n",
);

/// Results of the kinds that have a summary of their own.
const RESULTS: [&str; 6] = [
    "<html><head><title>t</title></head><body><h1>One</h1><p>text <a href='/x'>link</a></p><table><tr><td>1</td></tr></table></body></html>",
    "# One\n\ntext\n\n## Two\n\n- a\n- b\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "total 8\ndrwxr-xr-x 2 a a 4096 Jan  1 00:00 src\n-rw-r--r-- 1 a a   12 Jan  1 00:00 a.txt\n./src/a.rs:12: let a = 1;\n",
    "{'a': [1, 2.5, None, True], 'b': ('x', b'y'), 'c': {1, 2}}",
    "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\nValueError: it failed\n",
    "[settings]\nname = one\nsize = 2\n",
];

const SESSION: &str = r#"{"format": "contextweaver session", "schema": 1, "source": "x", "events": [{"id": "a", "kind": "user_turn", "text": "hello"}, {"id": "b", "parent_id": "a", "kind": "agent_msg", "text": "there"}], "artifacts": [], "contents": [], "facts": [{"key": "k", "value": "v"}], "episodes": []}"#;

/// Knowledge in documents: of a repository, of an OKF bundle, a lesson.
const DOCUMENTS: [&str; 3] = [
    "# The pool\n\nIt has a thing.\n\n## Limits\n\n```sh\n# no heading\n```\n\nAt most 20.\n\nOther\n-----\n\nThe price is 3.\n",
    "---\ntype: Table\ntitle: Orders\ndescription: What was bought\ntags: [price, &a thing, *a]\nid: orders\nokf_version: 0.2\n\
     stale_after: 2027-01-01\n---\n\nOne row for each thing.\n",
    "---\nstatus: accepted\nkey: pool\nsensitivity: internal\nscope: {tool: db}\napplicable_to: [price]\nexpires_at: 2027-01-01T00:00:00Z\n\
     ---\n# The price of a thing\n\nAsk first.\n",
];

/// Memories as JSON: a memory file, facts, and cards of each kind.
const MEMORIES: [&str; 6] = [
    r#"{"format":"contextweaver memory","schema":1,"rules":{"as_of":"2026-11-24","min_sessions":2,"similarity":60,"forget_after":90},
        "sessions":[{"sha256":"a1","name":"monday","day":"2026-11-23","events":3,"left_out":0,"begins":"0a1b2c3d"}],
        "facts":[{"key":"price","standing":"in_force","agreement":"agreed","count":1,"weight":977,"values":[{"value":"3","seen":
        [{"session":"a1","about":"price","said":"3","events":["u1"]}]}]}],"episodes":[]}"#,
    r#"[{"key":"price","value":"3 for a thing"}]"#,
    r#"{"lesson_id":"l1","title":"The price","body":"Of a thing","tags":["price"],"status":"accepted","expires_at":"2027-01-01"}"#,
    r#"[{"skill_id":"s1","name":"Prices","description":"Of a thing","steps":["ask","say"],"preconditions":["a list"]}]"#,
    r#"{"skills":[{"digest":"x","skill":{"id":"s2","title":"Prices","instructions":["ask for the thing"],"anti_patterns":["guess"]}}]}"#,
    "{\"memory_id\":\"m1\",\"content\":\"The price of a thing\",\"memory_type\":\"fact\",\"sensitivity\":\"public\"}\n{\"id\":\"m2\",\"proposed_lesson\":\"Ask\"}\n",
];

const RECORDING: &str = "{\"seq\":1,\"direction\":\"client\",\"at_ms\":0,\"message\":{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{}}}\n{\"seq\":2,\"direction\":\"server\",\"at_ms\":3,\"message\":{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[]}}}\n";

/// Sessions as `mcp record` has written them: of a client with the gateway, in both eras of the protocol, and of a client
/// with a server that asks it questions, reports progress and changes its lists. The client is the Python SDK, the tools are
/// those of `mcp-server-git`, the other server is `@modelcontextprotocol/server-everything`.
const RECORDED: [&str; 3] = [
    include_str!("testdata/session.ndjson"),
    include_str!("testdata/stateless.ndjson"),
    include_str!("testdata/everything.ndjson"),
];

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

/// The messages of a recording that one side has sent, byte by byte.
fn said(recording: &str, by: Direction) -> Vec<String> {
    let lines = recording.lines().map(|line| serde_json::from_str::<Recorded<Box<RawValue>>>(line).unwrap());
    lines.filter(|line| line.direction == by).map(|line| line.message.get().to_owned()).collect()
}

/// What clients said to the gateway in recorded sessions, with this tool in place of theirs, and results of a recorded server
/// behind a NUL.
fn recorded_conversations(id: &str) -> Vec<String> {
    let [session, stateless, server] = RECORDED;
    let result = |message: &String| {
        let answer: Value = serde_json::from_str(message).unwrap();
        answer["result"].get("content").map(|_| answer["result"].to_string())
    };
    let results: Vec<String> = said(server, Direction::Server).iter().filter_map(result).collect();
    let conversation = |recording: &str, part: &str| {
        let lines = said(recording, Direction::Client).join("\n").replace("git:git_log", id);
        let result = results.iter().find(|result| result.contains(part)).unwrap();
        format!("{lines}\n\0{result}")
    };
    vec![conversation(session, "structuredContent"), conversation(stateless, "resource_link")]
}

/// The guards whose gateway reads signatures, and the state of approvals.
const GUARDS: &str = ", signing: {keys: {peer: 0123456789abcdef0123456789abcdef}}, \
                      policy: {rules: [{action: require_approval, tool: report}]}";

/// Conversations with that gateway: a call that a person approves, before and after its upstream asks something too; the same
/// with a state and signatures that nobody has made; and a call of the handshake era.
fn guarded_conversations() -> [String; 3] {
    const MADE: &str = r#""{signature}""#;
    const MADE_UP: &str = r#"{"key":"peer","timestamp":1790000000000,"nonce":"n","mac":"00ff"}"#;
    let meta = format!(
        r#""io.modelcontextprotocol/protocolVersion":"{MODERN_VERSION}","io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{}}}},"#
    );
    let call = |tool: &str, meta: &str, signature: &str, more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"tool_execute","arguments":{{"tool_id":"shop:{tool}","args":{{"id":1}}}},"_meta":{{{meta}"contextweaver/signature":{signature}}}{more}}}}}"#
        )
    };
    let ticket =
        json!({"stage": "approved", "until": 9_999_999_999_999_u64, "nonce": "n", "state": "own", "mac": "00ff"});
    let answers = |name: &str, content: &str, state: &str| {
        format!(
            r#","inputResponses":{{"{name}":{{"action":"accept","content":{{{content}}}}}}},"requestState":{state}"#
        )
    };
    let (yes, state) = (r#""approve":true"#, r#""{state}""#);
    let approved = [
        call("report", &meta, MADE, ""),
        call("report", &meta, MADE, &answers("contextweaver/approval", yes, state)),
        call("report", &meta, MADE, &answers("who", r#""name":"x""#, state)),
        r#"{"resultType":"input_required","requestState":"own state","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}"#.to_owned(),
    ];
    let made_up = [
        call("report", &meta, MADE, &answers("contextweaver/approval", yes, &json!(ticket.to_string()).to_string())),
        call("report", &meta, MADE_UP, ""),
        call("price", &meta, MADE, ""),
        format!(r#"{{"content":[{{"type":"text","text":"7"}}],"_meta":{{"contextweaver/signature":{MADE_UP}}}}}"#),
    ];
    let shaken = [
        CONVERSATION.lines().next().unwrap_or_default().to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
        call("price", "", MADE, ""),
        r#"{"content":[{"type":"text","text":"the price is 7"}],"_meta":{"k":1}}"#.to_owned(),
    ];
    [approved, made_up, shaken].map(|[first, second, third, answer]| format!("{first}\n{second}\n{third}\n\0{answer}"))
}

/// The answer with a signature, where its call has one and it has none of its own.
fn signed(signing: Option<&SigningConfig>, params: Option<&Raw>, answer: Raw) -> Raw {
    let params: Value = params.and_then(|params| params.read().ok()).unwrap_or_default();
    let call = Signature::deserialize(&params["_meta"][SIGNATURE]).ok();
    match signing.zip(call) {
        Some((signing, call)) if memmem::find(answer.bytes(), SIGNATURE.as_bytes()).is_none() => {
            signing.sign_result(&answer, &call, SystemClock.now()).unwrap_or(answer)
        }
        _ => answer,
    }
}

/// The request with a signature in the place of `"{signature}"`.
fn with_signature<'l>(line: &'l str, signing: &SigningConfig) -> Cow<'l, str> {
    #[derive(Deserialize)]
    struct Line<'l> {
        #[serde(borrow)]
        params: Params<'l>,
    }
    #[derive(Deserialize)]
    struct Params<'p> {
        name: String,
        #[serde(borrow)]
        arguments: Option<&'p RawValue>,
    }
    let none = RawValue::from_string("{}".to_owned()).unwrap();
    let signature = serde_json::from_str::<Line<'_>>(line).ok().and_then(|Line { params }| {
        signing.sign_call("peer", &params.name, params.arguments.unwrap_or(&none), SystemClock.now())
    });
    match signature {
        Some(signature) => line.replace(r#""{signature}""#, &to_string(&signature).unwrap()).into(),
        None => line.into(),
    }
}

/// The catalog of an index file, and the file.
pub(super) fn indexed() -> (Arc<Catalog>, Vec<u8>) {
    let tools = json!([
        {"name": "read_file", "description": "Read a file from the disk", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}},
        {"name": "send_mail", "description": "Send a message to somebody", "inputSchema": {"type": "object"}},
        {"name": "list_rooms", "description": "Rooms of the house, by floor", "inputSchema": {"type": "object"}},
    ]);
    let catalog = Arc::new(Catalog::from_json(&tools.to_string()).unwrap());
    let router = Router::build(Arc::clone(&catalog), RoutingConfig::default()).unwrap();
    (catalog, save_router(&router).unwrap())
}

/// The header of an index file, its length with the end of its line, and what follows.
fn parted(file: &[u8]) -> Option<(Map<String, Value>, usize, &[u8])> {
    let end = file.iter().position(|byte| *byte == b'\n')?;
    Some((serde_json::from_slice(file.get(..end)?).ok()?, end + 1, file.get(end + 1..)?))
}

/// The index and the graph of an index file.
fn halves<'f>(header: &Map<String, Value>, payload: &'f [u8]) -> Option<(&'f [u8], &'f [u8])> {
    let graph = usize::try_from(header.get("graph_bytes")?.as_u64()?).ok()?;
    payload.split_at_checked(payload.len().checked_sub(graph)?)
}

/// An index file with this graph in the place of its own.
fn with_graph(file: &[u8], graph: &[u8]) -> Option<Vec<u8>> {
    let (mut header, length, payload) = parted(file)?;
    let (index, _) = halves(&header, payload)?;
    header.insert("graph_bytes".to_owned(), graph.len().into());
    joined(header, length, &[index, graph].concat())
}

/// An index file whose header has the checksum of what follows.
pub(super) fn with_checksum(file: &[u8]) -> Option<Vec<u8>> {
    let (header, length, payload) = parted(file)?;
    joined(header, length, payload)
}

/// The same of its parts. The header is filled up to a multiple of `length`, which keeps what follows in its alignment.
fn joined(mut header: Map<String, Value>, length: usize, payload: &[u8]) -> Option<Vec<u8>> {
    let mut digest = Sha256::new();
    for length in header.get("index_bytes")?.as_array()? {
        digest.update(length.as_u64()?.to_le_bytes());
    }
    digest.update(payload);
    let hex: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    header.insert("payload_sha256".to_owned(), hex.into());
    let mut mended = serde_json::to_vec(&header).ok()?;
    mended.resize((mended.len() + 1).next_multiple_of(length) - 1, b' ');
    mended.push(b'\n');
    mended.extend_from_slice(payload);
    Some(mended)
}

/// A session file with an artifact, and the same with the hash that its content has after a change.
pub(super) fn kept_session() -> String {
    let session = Session::parse(SESSION.as_bytes(), Path::new("s")).unwrap();
    session.artifacts.put(&Handle::new("artifact:1"), CONTENTS[0].as_bytes(), "application/json", "x").unwrap();
    let mut written = Vec::new();
    session.write(&mut written).unwrap();
    String::from_utf8(written).unwrap()
}

pub(super) fn with_hashes(file: &[u8]) -> Option<Vec<u8>> {
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

/// A log of two lines.
fn audit_log() -> String {
    let line = |event, seq| AuditLine { seq, time: "2026-01-01T00:00:00Z".to_owned(), ..AuditLine::new(event) };
    let lines =
        [line(AuditEvent::Started, 1), line(AuditEvent::Stopped, 2)].map(|line| to_string(&line).unwrap() + "\n");
    String::from_utf8(chained(lines.concat().as_bytes())).unwrap()
}

/// A log in which each line has the hash of the one before.
fn chained(log: &[u8]) -> Vec<u8> {
    let (mut before, mut chained) = ("0".repeat(64), Vec::new());
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        let mended = serde_json::from_slice::<Map<String, Value>>(line).ok().and_then(|mut members| {
            members.insert("prev".to_owned(), before.clone().into());
            to_string(&members).ok()
        });
        let line = mended.map_or_else(|| line.trim_ascii_end().to_vec(), String::into_bytes);
        before = sha256_hex(&line);
        chained.extend(line);
        chained.push(b'\n');
    }
    chained
}

/// A gateway in front of an upstream that answers calls with what it is told to.
pub(super) struct Conversing {
    runtime: Runtime,
    gateway: Arc<Gateway>,
    answer: Arc<Mutex<Option<Raw>>>,
    id: String,
    address: SocketAddr,
}

/// The token that the gateway over HTTP wants to see.
const TOKEN: &str = "0123456789abcdef";

impl Conversing {
    /// A gateway without guards.
    pub(super) fn open() -> Self {
        Self::with("")
    }

    /// A gateway that signs and checks signatures, and asks before one tool is called.
    pub(super) fn guarded() -> Self {
        Self::with(GUARDS)
    }

    /// A gateway with this in its configuration beside what every one has.
    fn with(more: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let answer: Arc<Mutex<Option<Raw>>> = Arc::default();
        let (told, shop) = (Arc::clone(&answer), Shop::called("shop"));
        let mut config = GatewayConfig::parse(
            &format!("{{firewall: {{threshold_chars: 20}}, http: {{token: '{TOKEN}'}}{more}}}"),
            Path::new("."),
            &|_| None,
        )
        .unwrap();
        config.http.listen.set_port(0);
        let http = config.http.clone();
        if let Some(signing) = &mut config.guards.signing {
            signing.upstreams.insert("shop".to_owned(), "peer".to_owned());
        }
        let signing = config.guards.signing.clone();
        let reply = move |method: &str, params: Option<&Raw>| {
            let answer = match lock(&told).clone() {
                Some(answer) if matches!(method, "tools/call" | "resources/read") => answer,
                _ => shop.answer(method, params)?,
            };
            Ok(signed(signing.as_ref(), params, answer))
        };
        config.upstreams.insert("shop".to_owned(), upstream(reply));
        let gateway = runtime.block_on(Gateway::start(config)).unwrap();
        let view = gateway.catalog();
        let items = view.tools.as_ref().unwrap().router.catalog().items();
        let id = items.iter().find(|item| item.name == "report").unwrap().id.clone();
        let server = runtime.block_on(HttpServer::bind(Arc::clone(&gateway), http)).unwrap();
        let address = server.address().unwrap();
        runtime.spawn(server.serve(std::future::pending()));
        Self { runtime, gateway, answer, id, address }
    }

    /// Sends bytes over a connection that is closed for writing after them; what comes back is HTTP or nothing.
    fn ask(&self, input: &[u8]) {
        let asked = async {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            // It may be answered and closed before all is written.
            let _ = stream.write_all(input).await;
            let _ = stream.shutdown().await;
            let mut answer = Vec::new();
            let _ = stream.take(1 << 20).read_to_end(&mut answer).await;
            answer
        };
        let answer = self.runtime.block_on(async { tokio::time::timeout(LONGEST, asked).await });
        let answer = answer.expect("the connection hangs");
        // A request in the older version is answered in it.
        let is_older = memmem::find(input, b"HTTP/1.0").is_some() && answer.starts_with(b"HTTP/1.0 ");
        assert!(answer.is_empty() || is_older || answer.starts_with(b"HTTP/1.1 "), "{}", answer.escape_ascii());
    }

    /// The lines of a client; its upstream answers with what is behind a NUL.
    fn told<'i>(&self, input: &'i [u8]) -> &'i [u8] {
        let (said, answer) = input.split_at(input.iter().position(|byte| *byte == 0).unwrap_or(input.len()));
        let answer = serde_json::from_slice::<&RawValue>(answer.get(1..).unwrap_or_default());
        *lock(&self.answer) = answer.ok().map(Raw::of);
        said
    }

    /// The results that a client gets which makes its requests one after the other. Where they have `"{signature}"`, they
    /// are signed, and where they have `"{state}"`, they bring back the last state that a result has.
    fn converse_in_turns(&self, input: &[u8]) -> Vec<Value> {
        let said = String::from_utf8_lossy(self.told(input));
        let signing = self.gateway.config().guards.signing.as_ref().unwrap();
        let (session, live) = (ClientSession::new("s"), Live::from(Arc::clone(&self.gateway)));
        let (mut state, mut results) = (Value::Null, Vec::new());
        for line in said.split('\n') {
            let line = line.replace(r#""{state}""#, &state.to_string());
            let line = with_signature(&line, signing).into_owned();
            let Ok(Message::Request { id, method, params }) = Message::parse_of_client(line.into()) else { continue };
            let Ok(client) = RequestMeta::read(params.as_ref()).client() else { continue };
            let client = client.map_or_else(|| session.client(), Arc::new);
            // What else it is told, it does not hear.
            let caller = Caller::new(Arc::clone(&session), client, mpsc::channel(1).0);
            let asked = Asked { id: &id, method: &method, params: params.as_ref() };
            let served = serve_request(&live, &caller, (&asked, session.begin(&id)), std::future::ready(()));
            let ended = self.runtime.block_on(async { tokio::time::timeout(LONGEST, served).await });
            let result = ended.expect("the conversation hangs").and_then(Result::ok);
            let result: Value = result.and_then(|result| result.read().ok()).unwrap_or_default();
            if let Some(given) = result.get("requestState") {
                state = given.clone();
            }
            results.push(result);
        }
        results
    }

    fn converse(&self, input: &[u8]) {
        let said = Cursor::new(self.told(input).to_vec());
        let serving = serve(Arc::clone(&self.gateway), said, tokio::io::sink());
        let ended = self.runtime.block_on(async { tokio::time::timeout(LONGEST, serving).await });
        assert!(ended.is_ok(), "the conversation hangs");
    }
}

fn text(input: &[u8]) -> &str {
    std::str::from_utf8(input).unwrap_or_default()
}

/// What reads what an object in a bucket says of itself.
#[cfg(feature = "s3")]
fn of_a_bucket<'t>() -> Vec<Target<'t>> {
    let (objects, read) = stored_objects();
    vec![Target::new("object in a bucket", &objects, read)]
}

/// Nothing: this build has no buckets.
#[cfg(not(feature = "s3"))]
fn of_a_bucket<'t>() -> Vec<Target<'t>> {
    Vec::new()
}

pub(super) fn targets<'t>(
    (conversing, guarded): (&'t Conversing, &'t Conversing),
    indexed: &'t (Arc<Catalog>, Vec<u8>),
) -> Vec<Target<'t>> {
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
    let (header, _, payload) = parted(&indexed.1).unwrap();
    let own_graph = halves(&header, payload).unwrap().1.to_vec();
    let graph = |input: &[u8]| {
        let Ok(graph) = load_graph(with_graph(&indexed.1, input).unwrap()) else { return false };
        assert_eq!(graph.walk(NodeId::ROOT, usize::MAX).count(), graph.len(), "every node has one place");
        assert_eq!(graph.size(NodeId::ROOT), graph.items());
        true
    };
    assert!(graph(&own_graph));
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("b.token"), "s3cret\n").unwrap();
    let callers = move |input: &[u8]| {
        let parsed = CallersConfig::parse(text(input), folder.path(), &|name| Some(name.to_owned()));
        let mut config = HttpConfig::default();
        let Some(Ok(())) = parsed.ok().map(|callers| callers.admit(&mut config)) else { return false };
        assert!(!config.tokens.is_empty(), "somebody is let in");
        assert_eq!(config.tokens.len(), config.callers.len(), "each caller has a token and bounds of its own");
        true
    };
    assert!(CALLERS.iter().all(|written| callers(written.as_bytes())));
    let place = |input: &[u8]| {
        let input = text(input);
        let (parent, state) = input.split_once('\n').unwrap_or((input, ""));
        if let Some(place) = TraceContext::parse(parent, Some(state)) {
            let passed_on = place.set_in(None);
            assert_eq!(TraceContext::of_params(Some(&passed_on)), Some(place), "a place is passed on as it is");
        }
        if let Ok(params) = serde_json::from_str::<&RawValue>(input).map(Raw::of)
            && let Some(place) = TraceContext::of_params(Some(&params))
        {
            drop(place.set_in(Some(&params)));
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
        if let Ok(mut playback) = Playback::load(input) {
            let asked = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#);
            drop(playback.take(Message::parse(asked).unwrap()));
        }
    };
    let catalog = |input: &[u8]| {
        let Ok(catalog) = Catalog::from_json(text(input)) else { return };
        for format in ToolFormat::WRITTEN {
            drop(format.write(catalog.items(), &CallNames::new(catalog.items(), format)));
        }
        let again = Catalog::from_json(&catalog.to_native_json());
        assert!(again.is_ok_and(|again| again.len() == catalog.len()), "what is written is read again");
    };
    let folder = TempDir::new().unwrap();
    let catalog_file = move |input: &[u8]| {
        for name in ["catalog.yaml", "SKILL.md"] {
            let path = folder.path().join(name);
            std::fs::write(&path, input).unwrap();
            drop(load_catalog(&[path], LoadOptions { strictness: Strictness::Lenient }));
        }
    };
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("catalog.json"), CATALOG).unwrap();
    let answered = move |input: &[u8]| {
        let [path, answers] = ["catalog.json", "answers.json"].map(|name| folder.path().join(name));
        std::fs::write(&answers, input).unwrap();
        CatalogFile { path, answers: Some(answers) }.check().is_ok()
    };
    assert!(answered(ANSWERS.as_bytes()));
    let files = |input: &[u8]| {
        let input = text(input);
        let gateway = json!({"command": "contextweaver", "args": ["mcp", "serve"]});
        for (form, key) in [(Form::Json, "mcpServers"), (Form::Toml, "mcp_servers"), (Form::Yaml, "mcpServers")] {
            let edit = Edit {
                place: vec![key.to_owned()],
                remove: vec!["a".to_owned()],
                insert: vec![("contextweaver".to_owned(), gateway.clone())],
            };
            let _ = edited(form, input, &[edit]);
        }
        for client in Client::all().map(Some).chain([None]) {
            let place = Place { client, path: "/home/a/file".into(), folder: None };
            if let Ok(file) = ClientFile::of(place, input.to_owned()) {
                drop(convert(&[file], Some(Path::new("/home/a"))));
            }
        }
    };
    let talk = |input: &[u8]| {
        let Ok((_, conversation)) = recognise(input, "f") else { return };
        let (artifacts, config) = (MemoryArtifacts::default(), ContextConfig::default());
        let firewall = Firewall::with_defaults(&artifacts);
        let Ok(intake) = take_in(conversation, &firewall) else { return };
        for budget in [40, 400] {
            let asked = PromptRequest { budget: Some(budget), ..PromptRequest::new(Phase::Answer, "the price") };
            let pack = compile(&intake.transcript, &Memory::default(), &firewall, &asked, &config);
            assert!(pack.is_ok_and(|pack| pack.stats.prompt_tokens <= budget), "a prompt is within its budget");
        }
    };
    let folder = TempDir::new().unwrap();
    let memories = move |input: &[u8]| {
        for name in ["memory.md", "memory.json"] {
            let path = folder.path().join(name);
            std::fs::write(&path, input).unwrap();
            let Ok(memories) = LocalMemories::load(&path) else { continue };
            let (bounds, config) = (RecallBounds::default(), ContextConfig::default());
            let recalled = recall(&memories, (Phase::Answer, "the price of a thing"), bounds, &config, None).unwrap();
            let tokens = recalled.facts.iter().map(|fact| Estimator::default().count(&fact.value)).sum::<usize>();
            assert!(tokens <= bounds.tokens, "memories are within their tokens");
        }
    };
    let documents: Vec<&str> = DOCUMENTS.iter().chain(&MEMORIES).copied().collect();
    let result = |input: &[u8]| {
        let artifacts = MemoryArtifacts::default();
        let item = ContextItem::new("r", ItemKind::ToolResult, text(input));
        for cap in [20, 100] {
            let shown = Firewall::with_defaults(&artifacts).condense(&item, cap).unwrap();
            assert!(Estimator::default().count(&shown) <= cap, "a summary is within its tokens");
        }
    };
    let folder = TempDir::new().unwrap();
    let pins = move |input: &[u8]| {
        let file = folder.path().join("pins.json");
        std::fs::write(&file, input).unwrap();
        if let Ok(pins) = FilePins::new(&file).pins() {
            pins.iter().for_each(|pin| drop(pin.complaint()));
        }
    };
    let talks: Vec<String> = {
        let (_, conversation) = recognise(TALK.as_bytes(), "f").unwrap();
        Format::ALL.iter().filter_map(|format| format.write(&conversation).ok()).collect()
    };
    let results: Vec<String> = CONTENTS.iter().chain(&RESULTS).map(|result| result.repeat(12)).collect();
    let ((tokens, token), (sets, key_set)) = (signed_tokens(), key_sets());
    let ((metadata, issuer), (token_answers, token_answer)) = (issuer_metadata(), token_answers());
    let (lists, kept_list) = kept_lists();
    let requests = [("POST", CONVERSATION.lines().next().unwrap_or_default()), ("GET", ""), ("DELETE", "")].map(|(verb, body)| {
        format!(
            "{verb} /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\nmcp-protocol-version: 2025-11-25\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    });
    let chunked = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\naccept: */*\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\nGET /metrics HTTP/1.1\r\n\
         host: localhost\r\norigin: http://localhost\r\n\r\n"
    );
    let older = "GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n";
    let requests: Vec<&str> = requests.iter().map(String::as_str).chain([chunked.as_str(), older]).collect();
    let conversations =
        [vec![CONVERSATION.replace("{id}", &conversing.id)], recorded_conversations(&conversing.id)].concat();
    let sides = [Direction::Client, Direction::Server];
    let recorded = RECORDED.iter().flat_map(|recording| sides.map(|side| said(recording, side)).concat());
    let messages: Vec<String> = conversations[0].lines().map(str::to_owned).chain(recorded).collect();
    let gateway_schema = include_str!("../../../../../schemas/routing.json");
    let kept = kept_session();
    let all = vec![
        Target::new("message", &messages, message),
        Target::new(
            "event stream",
            &["event: message\nid: 1\nretry: 5\ndata: {\"a\":1}\ndata: {}\n\n: x\r\n\r\ndata:\n\n"],
            stream,
        ),
        Target::new("configuration", &[CONFIG, COMPANY, r#"{"upstreams": {"a": {"command": "x"}}}"#], |input| {
            let _ = GatewayConfig::parse(text(input), Path::new("/"), &|name| Some(name.to_owned()));
        }),
        Target::new("callers", &CALLERS, move |input| {
            let _ = callers(input);
        }),
        Target::new("place in a trace", &PLACES, place),
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
        Target::new("catalog", &CATALOGS.map(|(_, written)| written), catalog),
        Target::new("file of a catalog", &CATALOG_FILES, catalog_file),
        Target::new("answers", &[ANSWERS], move |input| {
            let _ = answered(input);
        }),
        Target::new("kept lists", &[lists], kept_list),
        Target::new("file of a client", &[CLIENT_FILE, CLIENT_TOML, CLIENT_YAML], files),
        Target::new("pins", &[PINS], pins),
        Target::new("feedback", &[FEEDBACK], |input| drop(FeedbackLog::parse(input))),
        Target::new("audit log", &[&audit_log()], |input| {
            drop(AuditCheck::read(input, None));
            drop(AuditCheck::read(chained(input).as_slice(), None));
        }),
        Target::new("signed token", &tokens, token),
        Target::new("keys of an issuer", &sets, key_set),
        Target::new("metadata of an issuer", &metadata, issuer),
        Target::new("answer of a token endpoint", &token_answers, token_answer),
        Target::new("transcript", &talks, talk),
        Target::new("memories", &documents, memories),
        Target::new("result", &results, result),
        Target::new("events", &[EVENTS], |input| {
            drop(EventStats::read(input, &Window::all()));
            drop(CallRows::read(input, 2, &Window::all()));
            drop(SessionRows::read(std::io::Cursor::new(input), 1, &Window::all(), None));
            drop(RunningStats::of_metrics(text(input)));
        }),
        Target::new("session file", &[SESSION, &kept], session),
        Target { name: "index file", seeds: vec![indexed.1.clone()], read: Box::new(index) },
        Target {
            name: "choice graph",
            seeds: vec![own_graph],
            read: Box::new(move |input: &[u8]| {
                let _ = graph(input);
            }),
        },
        Target::new("recording", &[&[RECORDING], &RECORDED[..]].concat(), recording),
        Target::new("request over HTTP", &requests, |input| conversing.ask(input)),
        Target::new("conversation", &conversations, |input| conversing.converse(input)),
        Target::new("guarded conversation", &guarded_conversations(), |input| drop(guarded.converse_in_turns(input))),
    ];
    all.into_iter().chain(of_a_bucket()).collect()
}

#[test]
fn what_is_signed_and_approved_is_taken_and_what_is_made_up_is_not() {
    let guarded = Conversing::guarded();
    let [approved, made_up, shaken] =
        guarded_conversations().map(|conversation| guarded.converse_in_turns(conversation.as_bytes()));
    let asked = |result: &Value| result["inputRequests"].as_object().and_then(|asked| asked.keys().next()).cloned();
    let said = |result: &Value| result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        approved.iter().map(asked).collect::<Vec<_>>(),
        ["contextweaver/approval", "who", "who"].map(|name| Some(name.to_owned()))
    );
    assert!(approved.iter().all(|result| result["_meta"][SIGNATURE].is_object()), "{approved:?}");
    assert_eq!(asked(&made_up[0]).as_deref(), Some("contextweaver/approval"), "{made_up:?}");
    assert!(said(&made_up[1]).contains("AUTH_FAILED"), "{made_up:?}");
    assert!(said(&made_up[2]).contains("the answer is refused: its signature is not valid"), "{made_up:?}");
    assert!(shaken[1]["_meta"][SIGNATURE].is_object() && said(&shaken[1]).contains("the price is 7"), "{shaken:?}");
}

#[test]
fn the_catalogs_have_the_forms_that_they_stand_for() {
    let folder = TempDir::new().unwrap();
    for (format, written) in CATALOGS {
        let path = folder.path().join("catalog.json");
        std::fs::write(&path, written).unwrap();
        let loaded = load_catalog(&[path], LoadOptions::default()).unwrap();
        assert!(loaded.sources.iter().any(|source| source.format == format), "{format}: {:?}", loaded.sources);
    }
}

#[test]
fn the_memories_are_read() {
    let folder = TempDir::new().unwrap();
    for (name, written) in
        DOCUMENTS.map(|one| ("memory.md", one)).into_iter().chain(MEMORIES.map(|one| ("memory.json", one)))
    {
        let path = folder.path().join(name);
        std::fs::write(&path, written).unwrap();
        let recalled = LocalMemories::load(&path).unwrap().search("price of a thing", RecallBounds::default()).unwrap();
        assert!(!recalled.is_empty(), "{written}");
    }
}
