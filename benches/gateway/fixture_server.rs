//! An MCP server on standard streams with the tools, resources and prompts that the protocol's conformance suite asks
//! for by name: what `scripts/conformance` puts behind a gateway.
//!
//! It speaks both protocols, each request in the one that it is written in. In one thing it does not conform, so that
//! the gateway has something to do: it writes log messages in the stateless protocol whether they are wanted or not.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, sleep};
use std::time::Duration;

use serde_json::{Value, json};

const HANDSHAKE_VERSION: &str = "2025-11-25";
const STATELESS_VERSION: &str = "2026-07-28";

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

const INVALID_PARAMS: i64 = -32_602;
const METHOD_NOT_FOUND: i64 = -32_601;
const RESOURCE_NOT_FOUND: i64 = -32_002;
const MISSING_CAPABILITY: i64 = -32_021;

/// A picture of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// A sound of no length.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

/// How long tools take between two messages.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a client has for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tools without arguments.
const PLAIN_TOOLS: [&str; 24] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_error_handling",
    "test_reconnection",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
    "test_logging_tool",
    "test_streaming_elicitation",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];

#[derive(Debug)]
struct RpcError {
    code: i64,
    message: String,
    data: Option<Value>,
}

type Outcome = Result<Value, RpcError>;

fn refused(code: i64, message: impl Into<String>) -> RpcError {
    RpcError { code, message: message.into(), data: None }
}

/// A request of the client.
struct Request {
    id: Value,
    method: String,
    params: Value,
}

impl Request {
    fn is_stateless(&self) -> bool {
        self.params["_meta"][VERSION_KEY].is_string()
    }

    fn can(&self, capability: &str) -> bool {
        self.params["_meta"][CAPABILITIES_KEY].get(capability).is_some()
    }

    fn name(&self) -> &str {
        self.params["name"].as_str().unwrap_or_default()
    }

    fn argument(&self, name: &str) -> &str {
        self.params["arguments"][name].as_str().unwrap_or_default()
    }
}

#[derive(Default)]
struct Server {
    out: Mutex<()>,
    next: AtomicU64,
    /// Its own requests that wait for the client.
    asked: Mutex<HashMap<u64, mpsc::Sender<Value>>>,
    /// The states of calls that want more input: which round comes next.
    states: Mutex<HashMap<String, usize>>,
    /// The streams of changes: the id of each request, and what it wants to hear.
    streams: Mutex<Vec<(Value, Value)>>,
}

fn main() {
    let server = Server::default();
    thread::scope(|scope| {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            let Ok(mut message) = serde_json::from_str::<Value>(&line) else { continue };
            let (id, method) = (message["id"].take(), message["method"].take());
            match (id, method) {
                (Value::Null, Value::String(method)) => server.notified(&method, &message["params"]),
                (id, Value::String(method)) => {
                    let request = Request { id, method, params: message["params"].take() };
                    let server = &server;
                    scope.spawn(move || server.serve(&request));
                }
                (id, _) => {
                    let waiting = id.as_u64().and_then(|id| lock(&server.asked).remove(&id));
                    if let Some(waiting) = waiting {
                        let _ = waiting.send(message);
                    }
                }
            }
        }
        // Whoever still waits for an answer gets none.
        lock(&server.asked).clear();
    });
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    fn serve(&self, request: &Request) {
        if request.method == "subscriptions/listen" {
            return self.listen(request);
        }
        let message = match self.answer(request) {
            Ok(mut result) => {
                if request.is_stateless() {
                    complete(&request.method, &mut result);
                }
                json!({"jsonrpc": "2.0", "id": request.id, "result": result})
            }
            Err(error) => {
                let mut written = json!({"code": error.code, "message": error.message});
                if let Some(data) = error.data {
                    written["data"] = data;
                }
                json!({"jsonrpc": "2.0", "id": request.id, "error": written})
            }
        };
        self.say(&message);
    }

    fn answer(&self, request: &Request) -> Outcome {
        match request.method.as_str() {
            "initialize" => Ok(json!({
                "protocolVersion": HANDSHAKE_VERSION,
                "capabilities": capabilities(),
                "serverInfo": {"name": "fixture-server", "version": "1"},
            })),
            "server/discover" => Ok(json!({
                "supportedVersions": [STATELESS_VERSION, HANDSHAKE_VERSION],
                "capabilities": capabilities(),
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fixture-server", "version": "1"}},
            })),
            "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => Ok(json!({})),
            "tools/list" => Ok(json!({ "tools": tools() })),
            "tools/call" => self.call(request),
            "resources/list" => Ok(json!({ "resources": resources() })),
            "resources/templates/list" => Ok(json!({"resourceTemplates": [{
                "uriTemplate": "test://template/{id}/data",
                "name": "Resource Template",
                "description": "A resource for each id",
                "mimeType": "application/json",
            }]})),
            "resources/read" => read(request),
            "prompts/list" => Ok(json!({ "prompts": prompts() })),
            "prompts/get" => self.prompt(request),
            "completion/complete" => Ok(json!({"completion": {"values": [], "total": 0, "hasMore": false}})),
            method => Err(refused(METHOD_NOT_FOUND, format!("no method {method}"))),
        }
    }

    fn call(&self, request: &Request) -> Outcome {
        let image = || json!({"type": "image", "data": PNG, "mimeType": "image/png"});
        match request.name() {
            "test_simple_text" => Ok(text("This is a simple text response for testing.")),
            "test_image_content" => Ok(json!({"content": [image()]})),
            "test_audio_content" => Ok(json!({"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]})),
            "test_embedded_resource" => Ok(json!({"content": [embedded(
                "test://embedded-resource", "text/plain", "This is an embedded resource content.",
            )]})),
            "test_multiple_content_types" => {
                let json = "{\"test\":\"data\",\"value\":123}";
                let resource = embedded("test://mixed-content-resource", "application/json", json);
                Ok(json!({"content": [{"type": "text", "text": "Multiple content types test:"}, image(), resource]}))
            }
            "test_tool_with_logging" | "test_logging_tool" => {
                for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                    self.notify("notifications/message", &json!({"level": "info", "data": message}));
                    sleep(PAUSE);
                }
                Ok(text("Three messages were logged."))
            }
            "test_tool_with_progress" => {
                let token = &request.params["_meta"]["progressToken"];
                for progress in [0, 50, 100] {
                    if !token.is_null() {
                        let params = json!({"progressToken": token, "progress": progress, "total": 100});
                        self.notify("notifications/progress", &params);
                    }
                    sleep(PAUSE);
                }
                Ok(text("Done."))
            }
            "test_error_handling" => {
                let mut result = text("This tool intentionally returns an error for testing");
                result["isError"] = true.into();
                Ok(result)
            }
            "test_reconnection" => {
                sleep(2 * PAUSE);
                Ok(text("Done."))
            }
            "test_sampling" => {
                let asked = sampling(request.argument("prompt"), 100);
                Ok(self.asked_of_client(request, &asked, |answer| {
                    format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or("none"))
                }))
            }
            "test_elicitation" => {
                let properties = json!({"response": {"type": "string", "description": "User's response"}});
                self.elicited(request, request.argument("message"), &properties, &["response"])
            }
            "test_elicitation_sep1034_defaults" => self.elicited(request, "Please review", &defaults(), &[]),
            "test_elicitation_sep1330_enums" => self.elicited(request, "Please choose", &choices(), &[]),
            "json_schema_2020_12_tool" | "test_x_mcp_header" => Ok(text(&request.params["arguments"].to_string())),
            "test_trigger_tool_change" => Ok(self.changed("toolsListChanged", "notifications/tools/list_changed")),
            "test_trigger_prompt_change" => {
                Ok(self.changed("promptsListChanged", "notifications/prompts/list_changed"))
            }
            _ => self.call_with_input(request),
        }
    }

    /// Calls of the stateless protocol that want input of the client.
    fn call_with_input(&self, request: &Request) -> Outcome {
        let name = || elicitation("What is your name?", &json!({"name": {"type": "string"}}), &["name"]);
        let capital = || sampling("What is the capital of France?", 100);
        let roots = || json!({"method": "roots/list", "params": {}});
        let confirm = || elicitation("Please confirm", &json!({"ok": {"type": "boolean"}}), &["ok"]);
        let (rounds, keeps_state) = match request.name() {
            "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
                (vec![json!({"user_name": name()})], false)
            }
            "test_input_required_result_sampling" | "test_missing_capability" => {
                (vec![json!({"capital_question": capital()})], false)
            }
            "test_input_required_result_list_roots" => (vec![json!({"client_roots": roots()})], false),
            "test_input_required_result_capabilities" => {
                let mut wanted = json!({});
                if request.can("elicitation") {
                    wanted["user_name"] = name();
                }
                if request.can("sampling") {
                    wanted["capital_question"] = capital();
                }
                (vec![wanted], false)
            }
            "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
                (vec![json!({"confirm": confirm()})], true)
            }
            "test_input_required_result_multiple_inputs" => {
                let greeting = sampling("Generate a greeting", 50);
                (vec![json!({"user_name": name(), "greeting": greeting, "client_roots": roots()})], true)
            }
            "test_input_required_result_multi_round" => {
                let color = elicitation(
                    "Step 2: what is your favorite color?",
                    &json!({"color": {"type": "string"}}),
                    &["color"],
                );
                (vec![json!({"step1": name()}), json!({"step2": color})], true)
            }
            name => return Err(refused(INVALID_PARAMS, format!("no tool {name}"))),
        };
        let more = self.input(request, &rounds, keeps_state)?;
        Ok(more.unwrap_or_else(|| text(&format!("state-ok: {}", request.params["inputResponses"]))))
    }

    fn prompt(&self, request: &Request) -> Outcome {
        let message = |content: Value| json!({"role": "user", "content": content});
        let said = |text: &str| message(json!({"type": "text", "text": text}));
        let messages = match request.name() {
            "test_simple_prompt" => vec![said("This is a simple prompt for testing.")],
            "test_prompt_with_arguments" => {
                let (first, second) = (request.argument("arg1"), request.argument("arg2"));
                vec![said(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
            }
            "test_prompt_with_embedded_resource" => {
                let text = "Embedded resource content for testing.";
                let resource = embedded(request.argument("resourceUri"), "text/plain", text);
                vec![message(resource), said("Please process the embedded resource above.")]
            }
            "test_prompt_with_image" => {
                let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
                vec![message(image), said("Please analyze the image above.")]
            }
            "test_input_required_result_prompt" => {
                let context = json!({"context": {"type": "string"}});
                let question = elicitation("What context should the prompt use?", &context, &["context"]);
                if let Some(more) = self.input(request, &[json!({ "user_context": question })], false)? {
                    return Ok(more);
                }
                vec![said(&format!("In this context: {}", request.params["inputResponses"]["user_context"]["content"]))]
            }
            name => return Err(refused(INVALID_PARAMS, format!("no prompt {name}"))),
        };
        Ok(json!({ "messages": messages }))
    }

    /// What is still to be asked of the client; `None` when every round is answered.
    fn input(&self, request: &Request, rounds: &[Value], keeps_state: bool) -> Result<Option<Value>, RpcError> {
        let round = match request.params["requestState"].as_str() {
            None => 0,
            Some(state) => {
                let known = lock(&self.states).get(state).copied();
                known.ok_or_else(|| refused(INVALID_PARAMS, "the state is none that was given out"))?
            }
        };
        let answers = &request.params["inputResponses"];
        let is_answered = |round: &Value| {
            round
                .as_object()
                .is_some_and(|wanted| !wanted.is_empty() && wanted.keys().all(|key| answers[key].is_object()))
        };
        let next = round + usize::from(rounds.get(round).is_some_and(is_answered));
        let Some(wanted) = rounds.get(next) else { return Ok(None) };
        for (method, capability) in
            [("elicitation/create", "elicitation"), ("sampling/createMessage", "sampling"), ("roots/list", "roots")]
        {
            let uses = wanted.as_object().is_some_and(|wanted| wanted.values().any(|asked| asked["method"] == method));
            if uses && !request.can(capability) {
                let mut error = refused(MISSING_CAPABILITY, format!("the client lacks {capability}"));
                error.data = Some(json!({"requiredCapabilities": {capability: {}}}));
                return Err(error);
            }
        }
        let mut result = json!({"resultType": "input_required", "inputRequests": wanted});
        if keeps_state {
            let state = format!("state-{}", self.next.fetch_add(1, Ordering::Relaxed));
            lock(&self.states).insert(state.clone(), next);
            result["requestState"] = state.into();
        }
        Ok(Some(result))
    }

    /// The result of a call that asks the client, as the protocol with a handshake allows.
    fn asked_of_client(&self, request: &Request, asked: &Value, read: impl Fn(&Value) -> String) -> Value {
        if request.is_stateless() {
            return failed("servers of the stateless protocol send no requests");
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = mpsc::channel();
        lock(&self.asked).insert(id, sender);
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": asked["method"], "params": asked["params"]}));
        match answer.recv_timeout(PATIENCE) {
            Ok(answer) if answer["result"].is_object() => text(&read(&answer["result"])),
            Ok(answer) => failed(&format!("the client refused: {}", answer["error"])),
            Err(_) => failed("the client did not answer"),
        }
    }

    fn elicited(&self, request: &Request, message: &str, properties: &Value, required: &[&str]) -> Outcome {
        let asked = elicitation(message, properties, required);
        Ok(self.asked_of_client(request, &asked, |answer| {
            format!("Elicitation completed: action={}, content={}", answer["action"], answer["content"])
        }))
    }

    fn listen(&self, request: &Request) {
        let wanted = request.params["notifications"].clone();
        let params = json!({"notifications": wanted, "_meta": {SUBSCRIPTION_KEY: request.id}});
        lock(&self.streams).push((request.id.clone(), wanted));
        self.notify("notifications/subscriptions/acknowledged", &params);
    }

    fn notified(&self, method: &str, params: &Value) {
        if method == "notifications/cancelled" {
            lock(&self.streams).retain(|(id, _)| *id != params["requestId"]);
        }
    }

    /// Tells who listens that a list has changed; without streams it is the protocol with a handshake.
    fn changed(&self, wanted: &str, method: &str) -> Value {
        let streams = lock(&self.streams).clone();
        for (id, filter) in &streams {
            if filter[wanted] == true {
                self.notify(method, &json!({"_meta": {SUBSCRIPTION_KEY: id}}));
            }
        }
        if streams.is_empty() {
            self.notify(method, &json!({}));
        }
        text("The list has changed.")
    }

    fn notify(&self, method: &str, params: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn say(&self, message: &Value) {
        let _one_at_a_time = lock(&self.out);
        let mut out = io::stdout();
        // A client that is gone is noticed at the end of the input.
        let _ = out.write_all(format!("{message}\n").as_bytes()).and_then(|()| out.flush());
    }
}

/// Adds what the stateless protocol wants of results.
fn complete(method: &str, result: &mut Value) {
    if result["resultType"].is_null() {
        result["resultType"] = "complete".into();
    }
    if method.ends_with("/list") || matches!(method, "resources/read" | "server/discover") {
        result["ttlMs"] = 1_000.into();
        result["cacheScope"] = "public".into();
    }
}

fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true},
        "logging": {},
        "completions": {},
    })
}

fn tools() -> Vec<Value> {
    let tool = |name: &str, schema: Value| json!({"name": name, "description": described(name), "inputSchema": schema});
    let text = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let mut tools: Vec<Value> =
        PLAIN_TOOLS.iter().map(|name| tool(name, json!({"type": "object", "properties": {}}))).collect();
    tools.push(tool("test_sampling", text("prompt")));
    tools.push(tool("test_elicitation", text("message")));
    let mut with_header = text("region");
    with_header["properties"]["region"]["x-mcp-header"] = "Region".into();
    tools.push(tool("test_x_mcp_header", with_header));
    tools.push(tool("json_schema_2020_12_tool", schema_of_2020_12()));
    tools
}

/// A description made of a name.
fn described(name: &str) -> String {
    format!("Part of the conformance suite: {}", name.replace('_', " "))
}

/// Every keyword that must come through unharmed.
fn schema_of_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

fn resources() -> Vec<Value> {
    [
        ("test://static-text", "Static Text Resource", "text/plain"),
        ("test://static-binary", "Static Binary Resource", "image/png"),
        ("test://watched-resource", "Watched Resource", "text/plain"),
    ]
    .map(|(uri, name, kind)| json!({"uri": uri, "name": name, "description": described(name), "mimeType": kind}))
    .into()
}

fn read(request: &Request) -> Outcome {
    let uri = request.params["uri"].as_str().unwrap_or_default();
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let content = match (uri, id) {
        ("test://static-text", _) => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
        }
        ("test://static-binary", _) => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        ("test://watched-resource", _) => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "Watched resource content"})
        }
        (_, Some(id)) => {
            let text = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string();
            json!({"uri": uri, "mimeType": "application/json", "text": text})
        }
        _ => {
            let code = if request.is_stateless() { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
            let mut error = refused(code, "no such resource");
            error.data = Some(json!({ "uri": uri }));
            return Err(error);
        }
    };
    Ok(json!({ "contents": [content] }))
}

fn prompts() -> Vec<Value> {
    let prompt = |name: &str, arguments: &[&str]| {
        let argument = |name: &&str| json!({"name": name, "description": described(name), "required": true});
        let arguments: Vec<Value> = arguments.iter().map(argument).collect();
        json!({"name": name, "description": described(name), "arguments": arguments})
    };
    vec![
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ]
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn failed(reason: &str) -> Value {
    let mut result = text(reason);
    result["isError"] = true.into();
    result
}

fn embedded(uri: &str, kind: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}})
}

fn sampling(prompt: &str, most_tokens: u64) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": most_tokens}})
}

fn elicitation(message: &str, properties: &Value, required: &[&str]) -> Value {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

/// A field of each primitive type with what it is when nothing is entered.
fn defaults() -> Value {
    json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    })
}

/// Every form of a choice.
fn choices() -> Value {
    let plain = ["option1", "option2", "option3"];
    let titled = [("value1", "First Option"), ("value2", "Second Option"), ("value3", "Third Option")]
        .map(|(value, title)| json!({"const": value, "title": title}));
    json!({
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": titled}},
    })
}
