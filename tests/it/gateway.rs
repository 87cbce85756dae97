//! A real client before the gateway, in one process; the upstreams are child processes of this very test binary.

use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use contextweaver::gateway::{Gateway, GatewayConfig, serve};
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

// ---------------------------------------------------------------------------------------------------------------------
// The upstream

/// Says which upstream the child process is; the variable of its name decides that it is one.
const ROLE: &str = "TEST_UPSTREAM";

struct Upstream {
    role: String,
    out: Mutex<std::io::Stdout>,
    renamed: AtomicBool,
    cancelled: AtomicUsize,
}

/// Not a test of its own: where the variable is set, this process is an upstream.
#[test]
fn upstream() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let upstream = Arc::new(Upstream {
        role,
        out: Mutex::new(std::io::stdout()),
        renamed: AtomicBool::new(false),
        cancelled: AtomicUsize::new(0),
    });
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line.unwrap()) else { continue };
        let upstream = Arc::clone(&upstream);
        // Calls that take long must not hold up others.
        std::thread::spawn(move || upstream.receive(&message));
    }
    std::process::exit(0);
}

impl Upstream {
    fn receive(&self, message: &Value) {
        let method = message["method"].as_str().unwrap_or_default();
        if method == "notifications/cancelled" {
            self.cancelled.fetch_add(1, Ordering::SeqCst);
        }
        let Some(id) = message.get("id") else { return };
        let params = &message["params"];
        let (kind, answer) = match self.answer(method, params) {
            Ok(result) => ("result", result),
            Err(error) => ("error", error),
        };
        self.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"{kind}":{answer}}}"#));
        if params["name"] == "rename" {
            self.renamed.store(true, Ordering::SeqCst);
            self.write(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        }
    }

    fn write(&self, line: &str) {
        let mut out = self.out.lock().unwrap();
        writeln!(out, "{line}").unwrap();
        out.flush().unwrap();
    }

    fn is_modern(&self) -> bool {
        self.role.starts_with("modern")
    }

    /// A result or an error, as text: what passes a gateway must keep its bytes.
    fn answer(&self, method: &str, params: &Value) -> Result<String, String> {
        let capabilities =
            r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"completions":{}}"#;
        let role = &self.role;
        Ok(match method {
            "server/discover" if self.is_modern() => {
                format!(r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{capabilities}}}"#)
            }
            "initialize" if !self.is_modern() => format!(
                r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{{"name":"{role}","version":"1"}}}}"#
            ),
            "tools/list" => self.tools(params),
            "tools/call" => return self.call(params),
            "resources/list" => format!(
                r#"{{"resources":[{{"uri":"mem://{role}/readme","name":"readme","description":"how to begin with {role}"}},{{"uri":"mem://{role}/logo","name":"logo","mimeType":"image/png"}},{{"uri":"mem://shared","name":"shared of {role}"}}]}}"#
            ),
            "resources/templates/list" => {
                format!(r#"{{"resourceTemplates":[{{"uriTemplate":"mem://{role}/page/{{number}}","name":"page"}}]}}"#)
            }
            "resources/read" => match params["uri"].as_str().unwrap_or_default() {
                uri if uri.ends_with("/logo") => {
                    format!(r#"{{"contents":[{{"uri":"{uri}","mimeType":"image/png","blob":"iVBORw0KGgoA/w=="}}]}}"#)
                }
                uri if uri.ends_with("/readme") => {
                    format!(r#"{{"contents":[{{"uri":"{uri}","text":{}}}]}}"#, json!(numbered(400)))
                }
                uri => format!(r#"{{"contents":[{{"uri":"{uri}","text":"{role} has {uri}"}}]}}"#),
            },
            "prompts/list" => {
                r#"{"prompts":[{"name":"greet","description":"greets somebody","arguments":[{"name":"who","required":true}],"x":1.50}]}"#.to_owned()
            }
            "prompts/get" => format!(
                r#"{{"messages":[{{"role":"user","content":{{"type":"text","text":"{role}: {} {}"}}}}]}}"#,
                params["name"].as_str().unwrap(),
                params["arguments"]["who"].as_str().unwrap()
            ),
            "completion/complete" => {
                format!(r#"{{"completion":{{"values":["{role} {}"]}}}}"#, params["ref"]["name"].as_str().unwrap_or("uri"))
            }
            "resources/subscribe" => {
                self.write(&json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params}).to_string());
                "{}".to_owned()
            }
            _ => return Err(r#"{"code":-32601,"message":"no such method"}"#.to_owned()),
        })
    }

    /// Two pages of tools.
    fn tools(&self, params: &Value) -> String {
        let echo = if self.renamed.load(Ordering::SeqCst) { "echo_again" } else { "echo" };
        let tool = |name: &str, about: &str, properties: Value, required: &[&str]| {
            json!({"name": name, "description": about, "execution": {"taskSupport": "forbidden"},
                "inputSchema": {"type": "object", "properties": properties, "required": required}})
        };
        let (tools, next) = if params["cursor"].is_null() {
            let tools = json!([
                tool(echo, "Repeats a text", json!({"text": {"type": "string"}}), &["text"]),
                tool("lines", "Writes numbered lines", json!({"count": {"type": "integer"}}), &["count"]),
                tool("fail", "Fails", json!({}), &[]),
                tool("picture", "Draws a picture", json!({}), &[]),
                tool("pictures", "Draws two pictures", json!({}), &[]),
            ]);
            (tools, r#","nextCursor":"more""#)
        } else {
            let tools = json!([
                tool("sleep", "Waits", json!({"ms": {"type": "integer"}}), &["ms"]),
                tool("cancelled", "Counts what was cancelled", json!({}), &[]),
                tool("ask", "Asks for a name", json!({}), &[]),
                tool("odd", "Answers oddly", json!({}), &[]),
                tool("refuse", "Answers with an error", json!({}), &[]),
                tool("rename", "Renames the tool that repeats", json!({}), &[]),
                {"name": "untyped", "description": "Says nothing of its input", "inputSchema": {}},
                {"name": "broken", "description": "Has a broken schema", "inputSchema": {"type": "object", "required": 7}},
                {"description": "has no name"},
            ]);
            (tools, "")
        };
        format!(r#"{{"tools":{tools}{next}}}"#)
    }

    fn call(&self, params: &Value) -> Result<String, String> {
        let (role, arguments) = (&self.role, &params["arguments"]);
        let text =
            |text: &str| Ok(format!(r#"{{"content":[{{"type":"text","text":{}}}],"isError":false}}"#, json!(text)));
        match params["name"].as_str().unwrap_or_default() {
            // Spaces and the form of the number are part of the bytes.
            "echo" | "echo_again" => Ok(format!(
                r#"{{ "content":[{{"type":"text","text":{}}}], "x":1.50}}"#,
                json!(format!("{role}: {}", arguments["text"].as_str().unwrap()))
            )),
            "lines" => text(&numbered(arguments["count"].as_u64().unwrap() as usize)),
            "fail" => Ok(r#"{"content":[{"type":"text","text":"no such row"}],"isError":true}"#.to_owned()),
            "pictures" => Ok(
                r#"{"content":[{"type":"image","data":"iVBORw0KGgoA/w==","mimeType":"image/png"},{"type":"image","data":"iVBORw0KGgoAAA==","mimeType":"image/png"}]}"#
                    .to_owned(),
            ),
            "picture" => Ok(format!(
                r#"{{"content":[{{"type":"image","data":"iVBORw0KGgoA/w==","mimeType":"image/png"}},{{"type":"resource_link","uri":"mem://{role}/page/7","name":"page 7"}}]}}"#
            )),
            "sleep" => {
                if let Some(token) = params["_meta"].get("progressToken") {
                    self.write(&format!(
                        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
                    ));
                }
                std::thread::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap()));
                text("slept")
            }
            "cancelled" => text(&self.cancelled.load(Ordering::SeqCst).to_string()),
            "ask" => match params["inputResponses"]["who"]["content"]["name"].as_str() {
                None => Ok(r#"{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}},"requestState":"s 1"}"#.to_owned()),
                Some(name) => text(&format!("{name} with {}", params["requestState"])),
            },
            "odd" => Ok(r#"{"answer":42}"#.to_owned()),
            "refuse" => Err(r#"{"code":-32050,"message":"not today"}"#.to_owned()),
            "rename" | "untyped" => text("done"),
            other => Err(format!(r#"{{"code":-32602,"message":"unknown tool {other}"}}"#)),
        }
    }
}

fn numbered(count: usize) -> String {
    (0..count).map(|number| format!("line {number} of a result that goes on and on\n")).collect()
}

// ---------------------------------------------------------------------------------------------------------------------
// The gateway and its clients

/// A gateway before the upstreams with these roles, with further lines of configuration.
async fn gateway(roles: &[&str], more: &str) -> Arc<Gateway> {
    let exe = std::env::current_exe().unwrap();
    let upstreams: Vec<String> = roles
        .iter()
        .map(|role| {
            json!({*role: {"command": exe, "args": ["gateway::upstream", "--exact", "--nocapture"], "env": {ROLE: role}}})
                .to_string()
        })
        .map(|json| json[1..json.len() - 1].to_owned())
        .collect();
    let text = format!("upstreams: {{{}}}\n{more}\n", upstreams.join(","));
    let config = GatewayConfig::parse(&text, Path::new("."), &|_| None).unwrap();
    Gateway::start(config).await.unwrap()
}

/// A client that says what it sees: one line a message.
struct Wire {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    out: WriteHalf<DuplexStream>,
    modern: bool,
    next: u64,
    /// What came without being asked for.
    unasked: Vec<Value>,
}

impl Wire {
    fn new(gateway: &Arc<Gateway>) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(far);
        tokio::spawn(serve(Arc::clone(gateway), input, output));
        let (input, out) = tokio::io::split(near);
        Self { lines: BufReader::new(input).lines(), out, modern: false, next: 1, unasked: Vec::new() }
    }

    fn modern(mut self) -> Self {
        self.modern = true;
        self
    }

    async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        if self.modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
        }
        let id = self.next;
        self.next += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    async fn write(&mut self, message: &Value) {
        self.out.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// The line of the answer to `id`.
    async fn line(&mut self, id: u64) -> String {
        loop {
            let line = tokio::time::timeout(Duration::from_secs(30), self.lines.next_line()).await.unwrap();
            let line = line.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return line;
            }
            self.unasked.push(message);
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        let mut message: Value = serde_json::from_str(&self.line(id).await).unwrap();
        let kind = if message.get("error").is_some() { "error" } else { "result" };
        message[kind].take()
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// The text of the answer to a call.
    async fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
    }

    /// The answer to a call of a tool: its JSON, or the envelope that a plain text stands for.
    async fn json(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"));
        let status = if result["isError"] == true { "error" } else { "ok" };
        enveloped(text).unwrap_or_else(|| json!({"status": status, "summary": text}))
    }

    async fn execute(&mut self, id: &str, args: Value) -> Value {
        self.json("tool_execute", json!({"tool_id": id, "args": args})).await
    }
}

/// The envelope, failure or report that a text is; `None` for a result that is shown as it came.
fn enveloped(text: &str) -> Option<Value> {
    let said: Value = serde_json::from_str(text).ok()?;
    let is_own = ["status", "error", "dry_run", "name"].iter().any(|member| said.get(member).is_some());
    (is_own || said.is_array()).then_some(said)
}

/// The id of the tool that an upstream calls `name`.
fn id_of(gateway: &Gateway, server: &str, name: &str) -> String {
    let snapshot = gateway.catalog();
    let shelves = [&snapshot.tools, &snapshot.resources, &snapshot.prompts];
    let items = shelves.into_iter().flatten().flat_map(|shelf| shelf.router.catalog().items());
    let found = items.into_iter().find(|item| item.server.as_deref() == Some(server) && item.name == name);
    found.unwrap_or_else(|| panic!("{server} has no {name}")).id.clone()
}

/// A client of the official library that hears of changed lists.
struct Listener(mpsc::UnboundedSender<()>);

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.0.send(());
    }
}

/// A client of the official library whose person agrees, and what that person was asked.
struct Agreeing(mpsc::UnboundedSender<String>);

impl ClientHandler for Agreeing {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.capabilities = ClientCapabilities::builder().enable_elicitation().build();
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, rmcp::ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else { panic!("{request:?}") };
        let content = if message.starts_with("Allow") { json!({"approve": true}) } else { json!({"name": "Ann"}) };
        let _ = self.0.send(message.lines().next().unwrap_or_default().to_owned());
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }
}

type Client = RunningService<RoleClient, Listener>;

async fn client(gateway: &Arc<Gateway>, lifecycle: ClientLifecycleMode) -> (Client, mpsc::UnboundedReceiver<()>) {
    let (near, far) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(far);
    tokio::spawn(serve(Arc::clone(gateway), input, output));
    let (sender, changes) = mpsc::unbounded_channel();
    (Listener(sender).serve_with_lifecycle(near, lifecycle).await.unwrap(), changes)
}

async fn answer(client: &Client, tool: &'static str, arguments: Value) -> String {
    let Value::Object(arguments) = arguments else { panic!("{arguments}") };
    let result = client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await.unwrap();
    result.content[0].as_text().unwrap().text.clone()
}

fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

// ---------------------------------------------------------------------------------------------------------------------
// Gateway mode

#[tokio::test]
async fn a_client_of_either_protocol_finds_calls_and_views() {
    for (role, lifecycle) in [("legacy", ClientLifecycleMode::Initialize), ("modern", modern())] {
        let gateway = gateway(&[role], "").await;
        let (client, _changes) = client(&gateway, lifecycle).await;
        let tools: Vec<String> =
            client.list_all_tools().await.unwrap().into_iter().map(|tool| tool.name.into_owned()).collect();
        assert_eq!(
            tools,
            [
                "tool_browse",
                "tool_execute",
                "tool_view",
                "resource_browse",
                "resource_read",
                "prompt_browse",
                "prompt_get"
            ]
        );
        let page = answer(&client, "tool_browse", json!({"query": "write numbered lines"})).await;
        let id = page.split(' ').next().unwrap();
        assert_eq!(id, id_of(&gateway, role, "lines"));
        let envelope = answer(&client, "tool_execute", json!({"tool_id": id, "args": {"count": 500}})).await;
        let envelope: Value = serde_json::from_str(&envelope).unwrap();
        assert_eq!((&envelope["status"], envelope["views"].as_array().unwrap().len()), (&json!("ok"), 2));
        let (handle, view) = (&envelope["artifacts"][0]["handle"], &envelope["views"][1]);
        let shown = answer(&client, "tool_view", json!({"handle": handle, "selector": view})).await;
        assert!(shown.ends_with("line 499 of a result that goes on and on"), "{view}: {shown}");
        client.cancel().await.unwrap();
        gateway.close().await;
    }
}

#[tokio::test]
async fn a_renamed_tool_is_told_and_its_old_id_leads_nowhere() {
    let gateway = gateway(&["legacy"], "").await;
    let (client, mut changes) = client(&gateway, ClientLifecycleMode::Initialize).await;
    let old = id_of(&gateway, "legacy", "echo");
    answer(&client, "tool_execute", json!({"tool_id": id_of(&gateway, "legacy", "rename")})).await;
    tokio::time::timeout(Duration::from_secs(30), changes.recv()).await.unwrap().unwrap();
    let failed = answer(&client, "tool_execute", json!({"tool_id": old, "args": {"text": "x"}})).await;
    assert!(failed.starts_with(r#"{"error":"HYDRATE_FAILED""#), "{failed}");
    let new = id_of(&gateway, "legacy", "echo_again");
    let answered = answer(&client, "tool_execute", json!({"tool_id": new, "args": {"text": "x"}})).await;
    assert_eq!(answered, "legacy: x");
}

#[tokio::test]
async fn tools_of_one_name_go_to_their_own_upstreams() {
    let gateway = gateway(&["left", "modern_right"], "").await;
    let mut wire = Wire::new(&gateway);
    assert_eq!(gateway.catalog().counts().tools, 26);
    for role in ["left", "modern_right"] {
        let envelope = wire.execute(&id_of(&gateway, role, "echo"), json!({"text": "x"})).await;
        assert_eq!(envelope["summary"], format!("{role}: x"));
    }
    assert_eq!(wire.text("tool_browse", json!({"path": "/"})).await.lines().count(), 2);
}

#[tokio::test]
async fn every_failure_has_its_code() {
    let gateway = gateway(&["legacy"], "").await;
    let mut wire = Wire::new(&gateway);
    let id = |name: &str| id_of(&gateway, "legacy", name);
    let execute = |tool: &str, args: Value| ("tool_execute", json!({"tool_id": id(tool), "args": args}));
    let cases = [
        (("tool_browse", json!({"query": "x", "path": "/"})), "ARGS_INVALID"),
        (("tool_browse", json!({"query": "x", "cursor": "1"})), "ARGS_INVALID"),
        (("tool_browse", json!({"path": "/", "cursor": "9"})), "ARGS_INVALID"),
        (("tool_browse", json!({"words": "x"})), "ARGS_INVALID"),
        (("tool_browse", json!({"path": "//"})), "PATH_INVALID"),
        (("tool_browse", json!({"path": "/nowhere"})), "PATH_NOT_FOUND"),
        (("tool_execute", json!({"tool_id": "legacy:none#00000000"})), "HYDRATE_FAILED"),
        (execute("echo", json!({"text": 7})), "ARGS_INVALID"),
        (execute("echo", json!([])), "ARGS_INVALID"),
        (execute("broken", json!({})), "SCHEMA_INVALID"),
        (execute("odd", json!({})), "UPSTREAM_ERROR"),
        (execute("refuse", json!({})), "UPSTREAM_ERROR"),
        (("tool_view", json!({"handle": "artifact:none", "selector": "head:10"})), "VIEW_FAILED"),
        (("tool_view", json!({"handle": "artifact:none", "selector": "no"})), "VIEW_FAILED"),
        (("resource_read", json!({"resource_id": "resource::legacy:none#00000000"})), "RESOURCE_NOT_FOUND"),
        (("prompt_get", json!({"prompt_id": "prompt::legacy:none#00000000"})), "PROMPT_NOT_FOUND"),
        (("prompt_get", json!({"prompt_id": id("greet"), "args": {}})), "ARGS_INVALID"),
    ];
    for ((tool, arguments), code) in cases {
        let result = wire.call(tool, arguments.clone()).await;
        let error: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!((&error["error"], &error["retryable"]), (&json!(code), &json!(false)), "{arguments}: {error}");
        assert_eq!(result["isError"], true);
    }
    let failed = wire.execute(&id("fail"), json!({})).await;
    assert_eq!((&failed["status"], &failed["summary"]), (&json!("error"), &json!("no such row")));
    for method in ["resources/list", "resources/read", "prompts/list", "completion/complete", "no/such"] {
        assert_eq!(wire.ask(method, json!({"uri": "mem://shared"})).await["code"], -32601, "{method}");
    }
}

#[tokio::test]
async fn resources_and_prompts_are_found_read_and_viewed() {
    let gateway = gateway(&["left", "right"], "").await;
    let mut wire = Wire::new(&gateway);
    // Tools, resources and prompts never stand on one page; the first line may say that they do not fit well, and the last
    // may be a question.
    for (tool, query, prefix) in [
        ("resource_browse", "how to begin", "resource::"),
        ("prompt_browse", "greets somebody", "prompt::"),
        ("tool_browse", "greets somebody with the readme", "l"),
    ] {
        let page = wire.text(tool, json!({"query": query})).await;
        let is_said = |line: &&str| line.starts_with('(') || line.starts_with("nothing fits");
        let ids: Vec<&str> = page.lines().filter(|line| !is_said(line)).collect();
        let fitting = ids.iter().all(|id| id.starts_with(prefix) || (prefix == "l" && !id.contains("::")));
        assert!(fitting && (1..=10).contains(&ids.len()), "{page}");
    }
    let read = wire.json("resource_read", json!({"resource_id": id_of(&gateway, "right", "readme")})).await;
    assert_eq!(read["status"], "ok");
    let last = json!({"handle": read["artifacts"][0]["handle"], "selector": {"type": "lines", "start": -1}});
    assert_eq!(wire.text("tool_view", last).await, "line 399 of a result that goes on and on");
    let logo = wire.call("resource_read", json!({"resource_id": id_of(&gateway, "left", "logo")})).await;
    let picture = json!([{"type": "image", "data": "iVBORw0KGgoA/w==", "mimeType": "image/png"}]);
    assert_eq!(logo["content"], picture, "who reads a picture sees it");
    // A handle is read like a resource, and a resource is not a handle.
    let handle = &read["artifacts"][0]["handle"];
    let whole = wire.text("resource_read", json!({"resource_id": handle})).await;
    assert!(whole.starts_with("line 0 of a result"), "{whole}");
    let id = id_of(&gateway, "right", "readme");
    let failed = wire.json("tool_view", json!({"handle": id, "selector": "head:10"})).await;
    assert_eq!((&failed["error"], &failed["details"]["reason"]), (&json!("VIEW_FAILED"), &json!("resource")));
    // What a result links to is in no list.
    let page = wire.json("resource_read", json!({"resource_id": "mem://right/page/7"})).await;
    assert_eq!(page["summary"], "right has mem://right/page/7");
    let greeting = json!({"prompt_id": id_of(&gateway, "right", "greet"), "args": {"who": "you"}});
    assert_eq!(wire.json("prompt_get", greeting).await["summary"], "right: greet you");
}

#[tokio::test]
async fn pictures_go_on_as_pictures_and_large_ones_by_their_handles() {
    const PICTURE: &str = "iVBORw0KGgoA/w==";
    let picture = json!({"type": "image", "data": PICTURE, "mimeType": "image/png"});
    for (settings, goes_on) in [("", true), ("media_bytes: 16", true), ("media_bytes: 15", false)] {
        let gateway = gateway(&["legacy"], settings).await;
        let mut wire = Wire::new(&gateway);
        let id = id_of(&gateway, "legacy", "picture");
        let answer = wire.call("tool_execute", json!({"tool_id": id})).await;
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(!text.contains("iVBOR") && text.contains("[link page 7, mem://legacy/page/7]"), "{text}");
        if goes_on {
            assert_eq!((text.lines().count(), &answer["content"][1]), (1, &picture), "{settings}");
            continue;
        }
        assert_eq!(answer["content"].as_array().unwrap().len(), 1);
        let handle = &enveloped(text).unwrap()["artifacts"][0]["handle"];
        let failed = wire.json("tool_view", json!({"handle": handle, "selector": "head:10"})).await;
        assert!(failed["message"].as_str().unwrap().contains("media_bytes"), "{failed}");
    }
}

#[tokio::test]
async fn a_stored_picture_is_viewed_as_one() {
    // The first picture uses up what one answer carries; the second is asked for by its handle.
    let gateway = gateway(&["legacy"], "media_bytes: 16").await;
    let mut wire = Wire::new(&gateway);
    let answer = wire.call("tool_execute", json!({"tool_id": id_of(&gateway, "legacy", "pictures")})).await;
    let text = answer["content"][0]["text"].as_str().unwrap();
    let handle = enveloped(text).unwrap()["artifacts"][0]["handle"].clone();
    assert_eq!(answer["content"].as_array().unwrap().len(), 2, "{answer}");
    for (tool, arguments) in [
        ("tool_view", json!({"handle": handle, "selector": "head:10"})),
        ("resource_read", json!({"resource_id": handle})),
    ] {
        assert_eq!(wire.call(tool, arguments).await["content"][0]["type"], "image", "{tool}");
    }
}

#[tokio::test]
async fn a_failed_view_says_what_there_is() {
    let gateway = gateway(&["legacy"], "artifacts: {max_artifacts: 1}").await;
    let mut wire = Wire::new(&gateway);
    let lines = id_of(&gateway, "legacy", "lines");
    let first = wire.execute(&lines, json!({"count": 100})).await["artifacts"][0]["handle"].clone();
    let second = wire.execute(&lines, json!({"count": 101})).await["artifacts"][0]["handle"].clone();
    let evicted = wire.json("tool_view", json!({"handle": first, "selector": "head:10"})).await;
    assert_eq!(evicted["details"], json!({"reason": "evicted", "nearest": [second]}));
    let typo = format!("{}0", second.as_str().unwrap());
    let unknown = wire.json("tool_view", json!({"handle": typo, "selector": "head:10"})).await;
    assert_eq!((&unknown["details"]["reason"], &unknown["details"]["nearest"][0]), (&json!("unknown"), &second));
    let nothing =
        wire.json("tool_view", json!({"handle": second, "selector": {"type": "json_keys", "keys": ["a"]}})).await;
    let views = nothing["details"]["views"].as_array().unwrap().clone();
    assert_eq!((&nothing["details"]["reason"], views.len()), (&json!("selector"), 2));
    let shown = wire.text("tool_view", json!({"handle": second, "selector": views[0]})).await;
    assert!(shown.starts_with("line 0 "), "{shown}");
    // Another client learns nothing of these handles.
    let other = Wire::new(&gateway).json("tool_view", json!({"handle": typo, "selector": "head:10"})).await;
    assert_eq!(other["details"], json!({"reason": "unknown"}));
}

#[tokio::test]
async fn a_view_goes_on_with_its_cursor_to_the_end() {
    let gateway = gateway(&["legacy"], "").await;
    let mut wire = Wire::new(&gateway);
    let envelope = wire.execute(&id_of(&gateway, "legacy", "lines"), json!({"count": 3000})).await;
    let mut view = json!({"handle": envelope["artifacts"][0]["handle"], "selector": {"type": "lines"}});
    let mut whole = String::new();
    loop {
        let page = wire.text("tool_view", view.clone()).await;
        assert!(page.len() < 9000);
        let Some((text, cursor)) = page.split_once("\n[more: cursor ") else {
            whole.push_str(&page);
            break;
        };
        whole.push_str(text);
        whole.push('\n');
        view["cursor"] = cursor.trim_end_matches(']').into();
    }
    assert_eq!(whole, numbered(3000).trim_end());
}

#[tokio::test]
async fn concurrent_results_are_each_their_own() {
    let gateway = gateway(&["legacy"], "").await;
    let mut wire = Wire::new(&gateway);
    let lines = id_of(&gateway, "legacy", "lines");
    let mut asked = Vec::new();
    for number in 0..24_u64 {
        // Small ones, ones that are summarised, and ones that leave the serving thread.
        let count = number + [3, 100, 3000][number as usize % 3];
        let params = json!({"name": "tool_execute", "arguments": {"tool_id": lines, "args": {"count": count}}});
        asked.push((count, wire.send("tools/call", params).await));
    }
    let mut answers = std::collections::BTreeMap::new();
    while answers.len() < asked.len() {
        let line =
            tokio::time::timeout(Duration::from_secs(60), wire.lines.next_line()).await.unwrap().unwrap().unwrap();
        let mut message: Value = serde_json::from_str(&line).unwrap();
        answers.insert(message["id"].as_u64().unwrap(), message["result"]["content"][0]["text"].take());
    }
    for (count, id) in asked {
        let text = answers[&id].as_str().unwrap();
        match enveloped(text) {
            None => assert_eq!(text.lines().count() as u64, count),
            Some(envelope) => {
                let view =
                    json!({"handle": envelope["artifacts"][0]["handle"], "selector": {"type": "lines", "start": -1}});
                let last = wire.text("tool_view", view).await;
                assert_eq!(last, format!("line {} of a result that goes on and on", count - 1));
            }
        }
    }
}

#[tokio::test]
async fn a_result_of_ten_megabytes_comes_as_a_summary() {
    let gateway = gateway(&["legacy"], "").await;
    let mut wire = Wire::new(&gateway);
    let lines = id_of(&gateway, "legacy", "lines");
    let large = json!({"name": "tool_execute", "arguments": {"tool_id": lines, "args": {"count": 250_000}}});
    let large = wire.send("tools/call", large).await;
    // Others are served meanwhile: the answer to the small call is there before that to the large one.
    let small = wire.execute(&lines, json!({"count": 1})).await;
    assert_eq!((&small["status"], wire.unasked.len()), (&json!("ok"), 0));
    let answer: Value = serde_json::from_str(&wire.line(large).await).unwrap();
    let envelope: Value = serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert!(envelope["artifacts"][0]["size_bytes"].as_u64().unwrap() > 10_000_000);
    assert!(envelope.to_string().len() < 8_000);
}

#[tokio::test]
async fn progress_comes_under_the_clients_token_and_cancellation_reaches_the_upstream() {
    let gateway = gateway(&["legacy"], "").await;
    let mut wire = Wire::new(&gateway);
    let (sleep, cancelled) = (id_of(&gateway, "legacy", "sleep"), id_of(&gateway, "legacy", "cancelled"));
    let params = |ms: u64| json!({"name": "tool_execute", "arguments": {"tool_id": sleep, "args": {"ms": ms}}, "_meta": {"progressToken": "mine"}});
    wire.ask("tools/call", params(1)).await;
    assert_eq!(wire.unasked[0]["params"], json!({"progressToken": "mine", "progress": 1}));
    let id = wire.send("tools/call", params(60_000)).await;
    while wire.unasked.len() < 2 {
        let line = wire.lines.next_line().await.unwrap().unwrap();
        wire.unasked.push(serde_json::from_str(&line).unwrap());
    }
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    wire.write(&notice).await;
    while wire.execute(&cancelled, json!({})).await["summary"] != "1" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(wire.unasked.iter().all(|message| message["id"] != id), "what was cancelled is not answered");
}

#[tokio::test]
async fn a_question_goes_to_the_client_and_its_answer_to_the_upstream() {
    for mode in ["gateway", "proxy", "passthrough"] {
        let gateway = gateway(&["modern", "legacy"], &format!("mode: {mode}")).await;
        let mut wire = Wire::new(&gateway).modern();
        let id = id_of(&gateway, "modern", "ask");
        let mut params = match mode {
            "passthrough" => json!({"name": contextweaver::gateway::published_name(&id), "arguments": {}}),
            _ => json!({"name": "tool_execute", "arguments": {"tool_id": id}}),
        };
        let question = wire.ask("tools/call", params.clone()).await;
        assert_eq!((&question["resultType"], &question["requestState"]), (&json!("input_required"), &json!("s 1")));
        assert_eq!(question["inputRequests"]["who"]["params"]["message"], "modern asks: who?");
        params["inputResponses"] = json!({"who": {"action": "accept", "content": {"name": "Ann"}}});
        params["requestState"] = question["requestState"].clone();
        let answer = wire.ask("tools/call", params).await.to_string();
        assert!(answer.contains("Ann with") && answer.contains("s 1"), "{mode}: {answer}");
    }
}

#[tokio::test]
async fn a_real_client_of_either_protocol_approves_and_answers() {
    let policy = "policy: {rules: [{action: require_approval, tool: '*'}]}";
    let gateway = gateway(&["modern"], policy).await;
    for lifecycle in [ClientLifecycleMode::Initialize, modern()] {
        let is_modern = lifecycle != ClientLifecycleMode::Initialize;
        let (near, far) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(far);
        tokio::spawn(serve(Arc::clone(&gateway), input, output));
        let (sender, mut asked) = mpsc::unbounded_channel();
        let client = Agreeing(sender).serve_with_lifecycle(near, lifecycle).await.unwrap();
        let name = if is_modern { "ask" } else { "echo" };
        let id = id_of(&gateway, "modern", name);
        let arguments = json!({"tool_id": id, "args": if is_modern { json!({}) } else { json!({"text": "x"}) }});
        let Value::Object(arguments) = arguments else { panic!() };
        let params = CallToolRequestParams::new("tool_execute").with_arguments(arguments);
        let result = client.call_tool(params).await.unwrap();
        let text = result.content[0].as_text().unwrap().text.clone();
        let approval = format!("Allow a call to `{id}`? the policy of this gateway wants a person to approve it");
        assert_eq!(asked.recv().await.unwrap(), approval);
        match is_modern {
            true => {
                assert_eq!(asked.recv().await.unwrap(), "modern asks: who?");
                assert!(text.contains("Ann with"), "{text}");
            }
            false => assert!(text.contains("modern: x"), "{text}"),
        }
        assert!(asked.try_recv().is_err());
        client.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn cards_that_were_seen_come_first_and_unchanged() {
    let gateway = gateway(&["left", "right"], "cache_stable: true\ncards: json\ntop_k: 3").await;
    let mut wire = Wire::new(&gateway);
    let left = |name: &str| id_of(&gateway, "left", name);
    let ids = |cards: &Value| {
        cards.as_array().unwrap().iter().map(|card| card["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = wire.json("tool_browse", json!({"query": "left repeat a text"})).await;
    assert!(ids(&first).is_sorted() && ids(&first).contains(&left("echo")), "{first}");
    // All seen: no mark, and the bytes are those of before although the scores would be others.
    let again = wire.json("tool_browse", json!({"query": "repeat a text"})).await;
    for card in
        again.as_array().unwrap().iter().filter(|card| ids(&first).contains(&card["id"].as_str().unwrap().to_owned()))
    {
        assert!(first.as_array().unwrap().contains(card), "{card}");
    }
    // What failed to hydrate is not seen; what was executed is.
    wire.execute("left:none#00000000", json!({})).await;
    wire.execute(&left("fail"), json!({})).await;
    let page = ids(&wire.json("tool_browse", json!({"path": "/left"})).await);
    let mark = page.iter().position(|id| id == "__cache_breakpoint__").unwrap();
    let (old, new) = (page[..mark].to_vec(), page[mark + 1..].to_vec());
    assert!(old.is_sorted() && new.is_sorted() && !new.is_empty());
    assert!(old.contains(&left("fail")) && old.contains(&left("echo")) && new.contains(&left("sleep")), "{page:?}");
    let page = ids(&wire.json("tool_browse", json!({"path": "/left"})).await);
    assert!(!page.contains(&"__cache_breakpoint__".to_owned()) && page.is_sorted());
    // Another client has seen nothing.
    let page = ids(&Wire::new(&gateway).json("tool_browse", json!({"path": "/left"})).await);
    assert!(!page.contains(&"__cache_breakpoint__".to_owned()));
}

// ---------------------------------------------------------------------------------------------------------------------
// The modes that show everything

#[tokio::test]
async fn proxy_mode_lists_every_tool_and_passes_results_unchanged() {
    let gateway = gateway(&["left", "right"], "mode: proxy").await;
    let (client, _changes) = client(&gateway, ClientLifecycleMode::Initialize).await;
    let tools = client.list_all_tools().await.unwrap();
    let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!((tools.len(), names.len()), (2 + 26, 2 + 26));
    assert!(tools.iter().skip(2).all(|tool| tool.input_schema.len() == 1 && tool.name.len() <= 64));
    let mut wire = Wire::new(&gateway);
    let id = id_of(&gateway, "right", "echo");
    let name = contextweaver::gateway::published_name(&id);
    assert!(names.contains(name.as_str()));
    for tool_id in [&id, &name] {
        let definition = wire.json("tool_hydrate", json!({"tool_id": tool_id})).await;
        assert_eq!(
            (&definition["name"], &definition["execution"]["taskSupport"]),
            (&json!("echo"), &json!("forbidden"))
        );
        for params in [
            json!({"name": "tool_execute", "arguments": {"tool_id": tool_id, "args": {"text": "x"}}}),
            json!({"name": name, "arguments": {"text": "x"}}),
        ] {
            let asked = wire.send("tools/call", params).await;
            let line = wire.line(asked).await;
            let expected = r#"{ "content":[{"type":"text","text":"right: x"}], "x":1.50}"#;
            assert!(line.ends_with(&format!(r#""result":{expected}}}"#)), "{line}");
        }
    }
    assert_eq!(wire.call("no_such_tool", json!({})).await["code"], -32602);
    let refused = wire.json("tool_execute", json!({"tool_id": name, "args": {"text": 7}})).await;
    assert_eq!(refused["error"], "ARGS_INVALID");
}

#[tokio::test]
async fn resources_and_prompts_of_several_upstreams_are_one_servers() {
    for mode in ["proxy", "passthrough"] {
        let gateway = gateway(&["left", "right"], &format!("mode: {mode}")).await;
        let (client, _changes) = client(&gateway, ClientLifecycleMode::Initialize).await;
        let uris: Vec<String> =
            client.list_all_resources().await.unwrap().into_iter().map(|resource| resource.uri).collect();
        assert_eq!(
            uris,
            ["mem://left/readme", "mem://left/logo", "mem://shared", "mem://right/readme", "mem://right/logo"]
        );
        assert_eq!(client.list_all_resource_templates().await.unwrap().len(), 2);
        let prompts = client.list_all_prompts().await.unwrap();
        assert_eq!(prompts.len(), 2);
        let mut wire = Wire::new(&gateway);
        for (uri, role) in [("mem://shared", "left"), ("mem://right/page/3", "right"), ("mem://left/page/3", "left")] {
            let read = wire.ask("resources/read", json!({"uri": uri})).await;
            assert_eq!(read["contents"][0]["text"], format!("{role} has {uri}"));
        }
        assert_eq!(wire.ask("resources/subscribe", json!({"uri": "other://x"})).await["code"], -32002);
        wire.ask("initialize", json!({"protocolVersion": "2025-11-25"})).await;
        wire.unasked.clear();
        wire.ask("resources/subscribe", json!({"uri": "mem://right/readme"})).await;
        wire.ask("resources/subscribe", json!({"uri": "mem://right/readme"})).await;
        while wire.unasked.is_empty() {
            wire.ask("ping", json!({})).await;
        }
        assert_eq!(wire.unasked[0]["params"], json!({"uri": "mem://right/readme"}));
        let missing = wire.ask("resources/read", json!({"uri": "other://x"})).await;
        assert_eq!((&missing["code"], &missing["data"]["uri"]), (&json!(-32002), &json!("other://x")));
        let name = &prompts.iter().find(|prompt| prompt.name.starts_with("right__")).unwrap().name;
        let got = wire.ask("prompts/get", json!({"name": name, "arguments": {"who": "you"}})).await;
        assert_eq!(got["messages"][0]["content"]["text"], "right: greet you");
        assert_eq!(wire.ask("prompts/get", json!({"name": "greet"})).await["code"], -32602);
        for (reference, expected) in [
            (json!({"type": "ref/prompt", "name": name}), "right greet"),
            (json!({"type": "ref/resource", "uri": "mem://left/page/{number}"}), "left uri"),
        ] {
            let params = json!({"ref": reference, "argument": {"name": "who", "value": ""}});
            let completed = wire.ask("completion/complete", params).await;
            assert_eq!(completed["completion"]["values"][0], expected);
        }
    }
}

#[tokio::test]
async fn passthrough_over_several_upstreams_keeps_definitions_and_voids_no_list() {
    let gateway = gateway(&["left", "right"], "mode: passthrough").await;
    let (client, _changes) = client(&gateway, modern()).await;
    assert_eq!(client.list_all_tools().await.unwrap().len(), 26);
    let listed = Wire::new(&gateway).ask("tools/list", json!({})).await;
    let tools = listed["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool["inputSchema"]["type"] == "object"));
    let echo = tools.iter().find(|tool| tool["name"].as_str().unwrap().starts_with("left__echo")).unwrap();
    assert_eq!(
        (&echo["execution"]["taskSupport"], &echo["inputSchema"]["required"][0]),
        (&json!("forbidden"), &json!("text"))
    );
}

#[tokio::test]
async fn a_path_of_many_children_is_shown_page_by_page() {
    let files = crate::support::Files::new();
    let tools: Vec<Value> = (0..65)
        .map(|number| json!({"name": "get", "server": format!("server{number:02}"), "description": "x"}))
        .collect();
    let catalog = files.write("tools.json", json!({ "tools": tools }).to_string());
    let config = GatewayConfig::parse(&json!({ "catalog": catalog }).to_string(), Path::new("."), &|_| None).unwrap();
    let gateway = Gateway::start(config).await.unwrap();
    let mut wire = Wire::new(&gateway);
    let (mut seen, mut view) = (Vec::new(), json!({"path": "/"}));
    for left in [45, 25, 5, 0] {
        let page = wire.text("tool_browse", view.clone()).await;
        let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
        if left > 0 {
            assert_eq!(lines.pop().unwrap(), format!("(20 of 65; cursor {} goes on)", 65 - left));
        }
        seen.extend(lines);
        view["cursor"] = (65 - left).to_string().into();
    }
    assert!(seen.len() == 65 && seen.is_sorted() && seen[64].starts_with("/server64"), "{seen:?}");
    let called = wire.execute(&seen[0], json!({})).await;
    assert_eq!(called["error"], "HYDRATE_FAILED");
    let id = wire.text("tool_browse", json!({"path": "/server00"})).await;
    let called = wire.execute(id.split(' ').next().unwrap(), json!({})).await;
    assert_eq!(called["error"], "UPSTREAM_UNAVAILABLE");
}

#[tokio::test]
async fn what_is_stored_outlives_the_gateway_where_a_path_is_given() {
    let files = crate::support::Files::new();
    for store in ["results.sqlite", "results"] {
        let path = files.path(store);
        let more = format!("artifacts: {{path: {}, ttl_seconds: null}}", json!(path));
        let first = gateway(&["legacy"], &more).await;
        let envelope = Wire::new(&first).execute(&id_of(&first, "legacy", "lines"), json!({"count": 100})).await;
        first.close().await;
        let second = gateway(&["legacy"], &more).await;
        let view = json!({"handle": envelope["artifacts"][0]["handle"], "selector": {"type": "lines", "start": -1}});
        let shown = Wire::new(&second).text("tool_view", view).await;
        assert_eq!(shown, "line 99 of a result that goes on and on", "{store}");
    }
}

#[tokio::test]
async fn a_result_that_cannot_be_stored_is_shown_all_the_same() {
    let gateway = gateway(&["legacy"], "artifacts: {max_bytes: 1000}").await;
    let envelope = Wire::new(&gateway).execute(&id_of(&gateway, "legacy", "lines"), json!({"count": 100})).await;
    assert_eq!((&envelope["status"], envelope.get("artifacts")), (&json!("partial"), None));
    let summary = envelope["summary"].as_str().unwrap();
    assert!(summary.contains("line 0 ") && summary.contains("could not be stored"), "{summary}");
}
