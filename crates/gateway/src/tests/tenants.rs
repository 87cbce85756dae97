//! Callers are tenants: nothing that one was given is of use to another, on any surface.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use super::shop::{Scene, configured, run, scene_of};
use crate::guard::approval::QUESTION;
use crate::guard::canonical::canonical;
use crate::guard::sign::{SIGNATURE, Signature};
use crate::protocol::message::Raw;
use crate::transport::http::server::tests::{Got, Served, initialize, request, send};
use crate::{Caller, ConsoleConfig, ConsoleServer, Gateway, GatewayConfig, Identity, Token, TokenHolder};
use contextweaver_context::event::ContentHash;
use contextweaver_context::store::{Clock, SystemClock};

/// Results of any size are stored, and some are cached.
const STORES: &str =
    "{visibility_profiles: {narrow: {}}, firewall: {threshold_chars: 1}, cache: {read_only: true, allow: ['*']}}";

/// Three callers that differ in their names or in their profiles alone.
fn callers(scene: &Scene) -> Vec<Caller> {
    let known = |name: &str, profile: Option<&str>| {
        scene.known(Identity { name: name.to_owned(), profile: profile.map(str::to_owned) }, None)
    };
    vec![known("ann", None), known("bob", None), known("ann", Some("narrow"))]
}

/// The text of the first block of an answer, as JSON.
fn read(answer: &Value) -> Value {
    serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap_or_default()
}

/// Handles that a caller gets from a tool and from a resource.
async fn stored(scene: &Scene, caller: &Caller) -> Vec<String> {
    let of_tool = scene.call(caller, "tool_execute", json!({"tool_id": scene.id("report")})).await;
    let of_resource = scene.call(caller, "resource_read", json!({"resource_id": "shop:report"})).await;
    let handle = |answer: &Value| read(answer)["artifacts"][0]["handle"].as_str().unwrap_or_default().to_owned();
    vec![handle(&of_tool), handle(&of_resource)]
}

/// Something that a caller is given a name of, with what is done by that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surface {
    /// A session over HTTP: a request in it, by its method; a notification; an answer; its stream; its end.
    Request(&'static str),
    Notification,
    Answer,
    Stream,
    End,
    /// The stream of a request, taken up behind an event.
    Event,
    /// The stored result of a tool or a resource: looked into, or read as a resource.
    View(&'static str),
    Read(&'static str),
    /// The same with the method of the protocol, which opens it to nobody.
    Resource,
    /// The rest of a list.
    Cursor,
    /// A result that was kept, by the argument that it is an answer to.
    Cached,
    /// A quota, by the tool that it is for.
    Quota,
    /// An approval, by the state that goes with its question; the question to a client in a session.
    Approval,
    Question,
    /// A request that is being served, taken back.
    Running,
    /// A call that waits for the operator, by its number.
    Case,
    /// The nonce of a signed call.
    Nonce,
}

/// Callers, of whom the first is given names. The third has the same name as the first, and the last is shown nothing.
const TENANTS: [(&str, Option<&str>); 4] =
    [("ann", None), ("bob", None), ("ann", Some("narrow")), ("cid", Some("blind"))];

const ALL: &[usize] = &[1, 2, 3];

/// Every surface, with those to whom its names say nothing.
const SURFACES: &[(Surface, &[usize])] = &[
    (Surface::Request("ping"), ALL),
    (Surface::Request("tools/call"), ALL),
    (Surface::Request("resources/subscribe"), ALL),
    (Surface::Notification, ALL),
    (Surface::Answer, ALL),
    (Surface::Stream, ALL),
    (Surface::End, ALL),
    (Surface::Event, ALL),
    (Surface::View("tool_execute"), ALL),
    (Surface::View("resource_read"), ALL),
    (Surface::Read("tool_execute"), ALL),
    (Surface::Read("resource_read"), ALL),
    (Surface::Resource, ALL),
    // Who is shown the same has the same lists.
    (Surface::Cursor, &[3]),
    (Surface::Cached, ALL),
    // Quotas are for a name, whatever its profile.
    (Surface::Quota, &[1, 3]),
    (Surface::Approval, ALL),
    (Surface::Question, ALL),
    (Surface::Running, ALL),
    (Surface::Case, ALL),
    (Surface::Nonce, ALL),
];

/// A gateway with all surfaces, over HTTP and with a console.
const WORLD: &str = "{visibility_profiles: {narrow: {}, blind: {exclude_namespaces: ['*']}}, \
                     firewall: {threshold_chars: 1}, cache: {read_only: true, allow: ['*']}, \
                     policy: {rules: [{action: require_approval, tool: delete}]}, \
                     rate_limits: {per_tool: {report: {max_calls_per_minute: 3}}}, signing: {keys: {KEYS}}}";

/// A caller in this process and over HTTP.
struct Tenant {
    identity: Identity,
    caller: Caller,
    /// The key that its calls are signed with.
    key: String,
    bearer: String,
    /// Its session over HTTP, in which it can be asked.
    session: String,
}

struct World {
    scene: Scene,
    served: Served,
    tenants: Vec<Tenant>,
    console: SocketAddr,
    operator: String,
    /// The response to the call that waits for an approval.
    waiting: Mutex<Option<TcpStream>>,
}

/// A name like this one that nobody was given.
fn altered(name: &str) -> String {
    let at = name.rfind(|c: char| c.is_ascii_alphanumeric()).unwrap();
    let other = if name[at..].starts_with('0') { '1' } else { '0' };
    format!("{}{other}{}", &name[..at], &name[at + 1..])
}

/// The status and the body of a response; of a stream, which need not end, the status alone.
async fn heard(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    loop {
        let read = stream.read_buf(&mut text).await.unwrap();
        let said = String::from_utf8_lossy(&text);
        if let Some((head, body)) = said.split_once("\r\n\r\n") {
            let status = head.lines().next().unwrap();
            match head.contains("text/event-stream") {
                true => return status.to_owned(),
                false if read == 0 => return format!("{status} {body}"),
                false => {}
            }
        }
        assert!(read > 0, "no response: {said}");
    }
}

impl World {
    async fn open() -> Self {
        let names: Vec<(String, Identity)> = TENANTS
            .map(|(name, profile)| {
                let identity = Identity { name: name.to_owned(), profile: profile.map(str::to_owned) };
                (format!("{name}-{}", profile.unwrap_or_default()), identity)
            })
            .into();
        let keys: Vec<String> = names.iter().map(|(key, _)| format!("{key}: {}", key.repeat(32))).collect();
        let (mut config, shop) = configured(&WORLD.replace("KEYS", &keys.join(", ")), &["shop"]);
        let holder = |(token, identity): &(String, Identity)| TokenHolder {
            token: Token::new(token).unwrap(),
            identity: Arc::new(identity.clone()),
        };
        config.http.tokens = names.iter().map(holder).collect();
        let served = Served::of(config).await;
        let scene = Scene { shop, gateway: Arc::clone(&served.gateway) };
        let at = ConsoleConfig { listen: "127.0.0.1:0".parse().unwrap(), remote: false };
        let console = ConsoleServer::bind(Arc::clone(&served.gateway), at).await.unwrap();
        let url = console.url().unwrap();
        let (address, token) = url.strip_prefix("http://").unwrap().split_once("/#token=").unwrap();
        let (address, operator) = (address.parse().unwrap(), format!("Bearer {token}"));
        tokio::spawn(console.serve(std::future::pending()));
        let mut world =
            Self { scene, served, tenants: Vec::new(), console: address, operator, waiting: Mutex::default() };
        for (key, identity) in names {
            let bearer = format!("Bearer {key}");
            let session = world.session(&bearer, &json!({"elicitation": {}})).await;
            let caller = world.scene.known(identity.clone(), None);
            // Everybody has a handle: of what is named instead the own ones may be part.
            world.scene.call(&caller, "tool_execute", json!({"tool_id": world.scene.id("report")})).await;
            world.tenants.push(Tenant { identity, caller, key, bearer, session });
        }
        world
    }

    /// A new session of the holder of a token, in which it can do so much.
    async fn session(&self, bearer: &str, capabilities: &Value) -> String {
        let opened = self.served.exchange("POST", &[("authorization", bearer)], &initialize(capabilities)).await;
        opened.header("mcp-session-id").unwrap().to_owned()
    }

    /// What is answered to a request over HTTP.
    async fn ask(&self, who: &Tenant, verb: &str, (header, value): (&str, &str), body: &Value) -> String {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut lines = vec![("authorization", who.bearer.as_str()), (header, value)];
        if header != "mcp-session-id" {
            lines.push(("mcp-session-id", &who.session));
        }
        heard(self.served.open(verb, &lines, &body).await).await
    }

    /// A call that somebody has to approve.
    fn sensitive(&self) -> Value {
        json!({"name": "tool_execute", "arguments": {"tool_id": self.scene.id("delete"), "args": {}}})
    }

    /// Makes such a call in a session.
    async fn wait(&self, who: &Tenant, session: &str) -> TcpStream {
        let lines = [("authorization", who.bearer.as_str()), ("mcp-session-id", session)];
        self.served.open("POST", &lines, &request("tools/call", &self.sensitive())).await
    }

    /// The question about such a call, with all that came of the response.
    async fn question(&self, who: &Tenant) -> (Value, String) {
        let (mut stream, mut text) = (self.wait(who, &who.session).await, Vec::new());
        loop {
            assert!(stream.read_buf(&mut text).await.unwrap() > 0);
            let said = String::from_utf8_lossy(&text).into_owned();
            let messages = if said.contains("\r\n\r\n") { Got::of(&said).messages } else { Vec::new() };
            if let Some(asked) = messages.into_iter().find(|message| message["method"] == "elicitation/create") {
                *self.waiting.lock().await = Some(stream);
                return (asked, said);
            }
        }
    }

    /// Whether that call has ended; `ends` says that it will.
    async fn has_ended(&self, ends: bool) -> bool {
        let mut waiting = self.waiting.lock().await;
        let (stream, mut rest) = (waiting.as_mut().unwrap(), Vec::new());
        let read = async { while stream.read_buf(&mut rest).await.unwrap() > 0 {} };
        let patience = Duration::from_millis(if ends { 10_000 } else { 50 });
        tokio::time::timeout(patience, read).await.is_ok()
    }

    /// Has the owner come by a name; with one like it that nobody was given.
    async fn name(&self, surface: Surface, owner: &Tenant) -> (String, String) {
        let near = |name: String| (name.clone(), altered(&name));
        let far = |name: String| (name.clone(), format!("9{name}"));
        match surface {
            Surface::Request(_) | Surface::Notification | Surface::Answer | Surface::Stream | Surface::End => {
                near(owner.session.clone())
            }
            Surface::Event => {
                let (_, said) = self.question(owner).await;
                far(said.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned())
            }
            Surface::View(tool) | Surface::Read(tool) => {
                let handles = stored(&self.scene, &owner.caller).await;
                near(handles[usize::from(tool == "resource_read")].clone())
            }
            Surface::Resource => near(stored(&self.scene, &owner.caller).await[0].clone()),
            Surface::Cursor => far("1".to_owned()),
            Surface::Cached => {
                self.scene.execute(&owner.caller, "price", json!({"id": 1})).await;
                far("1".to_owned())
            }
            Surface::Quota => {
                while self.scene.outcome(&owner.caller, "report", "{}").await == "ok" {}
                ("report".to_owned(), "price".to_owned())
            }
            Surface::Approval => {
                let asked = self.scene.modern_of(owner.identity.clone());
                let question = self.scene.ask(&asked, "tools/call", self.sensitive()).await.unwrap();
                near(question["requestState"].as_str().unwrap().to_owned())
            }
            Surface::Question => near(self.question(owner).await.0["id"].to_string()),
            Surface::Running => {
                self.question(owner).await;
                far("7".to_owned())
            }
            Surface::Case => {
                let session = self.session(&owner.bearer, &json!({})).await;
                *self.waiting.lock().await = Some(self.wait(owner, &session).await);
                loop {
                    if let Some(case) = self.served.gateway.desk().cases().first() {
                        return far(case.id.to_string());
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            Surface::Nonce => {
                assert_eq!(self.show(surface, owner, "nonce-1", true).await, "ok");
                near("nonce-1".to_owned())
            }
        }
    }

    /// What a caller is answered to a name. Whether the name `opens` something only says how long to wait for that.
    async fn show(&self, surface: Surface, who: &Tenant, name: &str, opens: bool) -> String {
        let in_session = ("mcp-session-id", name);
        let own = ("mcp-session-id", who.session.as_str());
        let message = |id: &str, key: &str, value: Value| {
            let id: Value = serde_json::from_str(id).unwrap();
            json!({"jsonrpc": "2.0", "id": id, (key): value})
        };
        let cancelled = |id: &str| {
            let id: Value = serde_json::from_str(id).unwrap();
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        };
        let yes = json!({"action": "accept", "content": {"approve": true}});
        let scene = &self.scene;
        match surface {
            Surface::Request(method) => {
                let params = json!({"name": "tool_browse", "arguments": {"path": "/"}, "uri": "shop:terms"});
                let body: Value = serde_json::from_str(&request(method, &params)).unwrap();
                self.ask(who, "POST", in_session, &body).await
            }
            Surface::Notification => self.ask(who, "POST", in_session, &cancelled("7")).await,
            Surface::Answer => self.ask(who, "POST", in_session, &message("1", "result", json!({}))).await,
            Surface::Stream => self.ask(who, "GET", in_session, &Value::Null).await,
            Surface::End => self.ask(who, "DELETE", in_session, &Value::Null).await,
            Surface::Event => self.ask(who, "GET", ("last-event-id", name), &Value::Null).await,
            Surface::View(_) => {
                let view = json!({"handle": name, "selector": "head:40"});
                scene.call(&who.caller, "tool_view", view).await.to_string()
            }
            Surface::Read(_) => {
                // Who is shown no resources has no such tool.
                let call = json!({"name": "resource_read", "arguments": {"resource_id": name}});
                format!("{:?}", scene.ask(&who.caller, "tools/call", call).await)
            }
            Surface::Resource => format!("{:?}", scene.ask(&who.caller, "resources/read", json!({"uri": name})).await),
            Surface::Cursor => {
                let rest = json!({"path": "/shop", "top_k": 1, "cursor": name});
                scene.call(&who.caller, "tool_browse", rest).await.to_string()
            }
            Surface::Cached => {
                let (before, id) = (scene.calls(), name.parse::<u64>().unwrap());
                scene.execute(&who.caller, "price", json!({"id": id})).await;
                format!("{} calls reach the upstream", scene.calls() - before)
            }
            Surface::Quota => scene.outcome(&who.caller, name, r#"{"id": 1}"#).await,
            Surface::Approval => {
                let mut call = self.sensitive();
                call["requestState"] = name.into();
                call["inputResponses"] = json!({ (QUESTION): yes });
                let mut said = scene.ask(&scene.modern_of(who.identity.clone()), "tools/call", call).await.unwrap();
                // Whoever is asked anew is given a state of its own.
                said.as_object_mut().unwrap().remove("requestState");
                said.to_string()
            }
            Surface::Question => {
                let said = self.ask(who, "POST", own, &message(name, "result", yes)).await;
                format!("{said}, ended: {}", self.has_ended(opens).await)
            }
            Surface::Running => {
                let said = self.ask(who, "POST", own, &cancelled(name)).await;
                format!("{said}, ended: {}", self.has_ended(opens).await)
            }
            Surface::Case => {
                // The operator is who answers there.
                let bearer = if who.key == self.tenants[0].key { &self.operator } else { &who.bearer };
                let lines = [("authorization", bearer.as_str())];
                let path = format!("POST /api/approvals/{name}");
                heard(send(self.console, &path, &lines, r#"{"approve": true}"#).await).await
            }
            Surface::Nonce => {
                let arguments = json!({"tool_id": scene.id("price"), "args": {"id": 1}});
                let timestamp = u64::try_from(SystemClock.now().as_millis()).unwrap();
                let signed = json!({"kind": "call", "tool": "tool_execute", "arguments": arguments, "key": who.key,
                    "timestamp": timestamp, "nonce": name});
                let signing = self.served.gateway.config().guards.signing.as_ref().unwrap();
                let mac = signing.keys[&who.key].code(&canonical(&signed));
                let signature = Signature { key: who.key.clone(), timestamp, nonce: name.to_owned(), mac };
                let call = json!({"name": "tool_execute", "arguments": arguments, "_meta": {(SIGNATURE): signature}});
                let said = read(&scene.ask(&who.caller, "tools/call", call).await.unwrap());
                said["error"].as_str().or(said["status"].as_str()).unwrap().to_owned()
            }
        }
    }
}

#[test]
fn no_surface_opens_what_is_another_callers() {
    run(async {
        for (surface, others) in SURFACES {
            let world = World::open().await;
            let owner = &world.tenants[0];
            let (name, never) = world.name(*surface, owner).await;
            // But for the name itself. A short one is a part of much else, and of no answer.
            let without = |said: String, name: &str| if name.len() > 8 { said.replace(name, "NAME") } else { said };
            for other in others.iter().map(|number| &world.tenants[*number]) {
                let shown = without(world.show(*surface, other, &name, false).await, &name);
                let unknown = without(world.show(*surface, other, &never, false).await, &never);
                assert_eq!(shown, unknown, "{surface:?} of ann, to {}", other.key);
                assert!(!shown.contains("4200"), "{surface:?}: {shown}");
            }
            let unknown = without(world.show(*surface, owner, &never, false).await, &never);
            let shown = without(world.show(*surface, owner, &name, true).await, &name);
            assert_eq!(shown != unknown, *surface != Surface::Resource, "{surface:?}: {shown}");
        }
        // What is for the operator alone is as empty for a caller with a profile as for nobody.
        let world = World::open().await;
        for (page, nobody) in [("GET /healthz", true), ("GET /metrics", false)] {
            let told =
                async |bearer: &str| heard(world.served.open(page, &[("authorization", bearer)], "").await).await;
            assert!(told(&world.tenants[0].bearer).await.contains("shop"), "{page}");
            for tenant in &world.tenants[2..] {
                let told_to = told(&tenant.bearer).await;
                assert!(["shop", "ann", "bob"].iter().all(|name| !told_to.contains(name)), "{page}: {told_to}");
                assert_eq!(told_to == told("Bearer nobody").await, nobody, "{page}: {told_to}");
            }
        }
    });
}

#[test]
fn a_handle_is_not_guessed_from_what_the_result_may_be() {
    run(async {
        let scene = scene_of(STORES, &["shop"]).await;
        let caller = &callers(&scene)[0];
        stored(&scene, caller).await;
        let text = super::shop::REPORT;
        let result = Raw::of(&json!({"content": [{"type": "text", "text": text}]}));
        let key = [scene.id("report").as_bytes(), b"{}", result.bytes()].join(&b'\n');
        let guess = format!("artifact:result:{}", &ContentHash::of(&key).as_str()[7..19]);
        let answer = scene.call(caller, "tool_view", json!({"handle": guess, "selector": "head:40"})).await;
        assert_eq!(read(&answer)["details"]["reason"], "unknown", "{guess}: {answer}");
    });
}

#[test]
fn what_is_stored_on_disk_keeps_its_handle_and_its_owner() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        for path in ["kept", "kept.sqlite"] {
            let path = folder.path().join(path);
            let yaml = format!("{{artifacts: {{path: {}}}, {}", path.display(), &STORES[1..]);
            let (before, after) = (scene_of(&yaml, &["shop"]).await, scene_of(&yaml, &["shop"]).await);
            let handle = &stored(&before, &callers(&before)[0]).await[0];
            assert_eq!(*handle, stored(&after, &callers(&after)[0]).await[0], "a restart uses no handle anew");
            let view = json!({"handle": handle, "selector": "head:40"});
            for (number, caller) in callers(&after).iter().enumerate() {
                let answer = after.call(caller, "tool_view", view.clone()).await;
                assert_eq!(answer["isError"] == true, number != 0, "{path:?}, caller {number}: {answer}");
            }
        }
        // Two stores in memory have two keys.
        let (one, two) = (scene_of(STORES, &["shop"]).await, scene_of(STORES, &["shop"]).await);
        assert_ne!(stored(&one, &callers(&one)[0]).await[0], stored(&two, &callers(&two)[0]).await[0]);
    });
}

#[test]
fn subscriptions_of_one_caller_are_neither_ended_nor_crowded_out_by_another() {
    run(async {
        let scene = scene_of("{mode: proxy, visibility_profiles: {narrow: {}}}", &["shop", "bank"]).await;
        let callers = callers(&scene);
        let terms = json!({"uri": "shop:terms"});
        scene.ask(&callers[0], "resources/subscribe", terms.clone()).await.unwrap();
        let reached = scene.calls();
        scene.ask(&callers[1], "resources/unsubscribe", terms.clone()).await.unwrap();
        assert_eq!(scene.calls(), reached, "the upstream still tells of it");
        let mut refused = None;
        for number in 0..crate::session::subscriptions::MOST_OF_ONE + 1 {
            let answer =
                scene.ask(&callers[1], "resources/subscribe", json!({"uri": format!("shop:page/{number}")})).await;
            refused = answer.err();
        }
        assert!(refused.is_some(), "the resources that one caller watches are bounded");
        scene.ask(&callers[2], "resources/subscribe", json!({"uri": "shop:keys"})).await.unwrap();
    });
}

#[test]
fn a_key_that_cannot_be_kept_is_an_error_and_not_a_weaker_handle() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), b"short").unwrap();
        let yaml = format!("artifacts: {{path: {}}}", folder.path().display());
        let config = GatewayConfig::parse(&yaml, Path::new("."), &|_| None).unwrap();
        let error = Gateway::start(config).await.unwrap_err().to_string();
        assert!(error.contains("key"), "{error}");
    });
}

#[test]
fn a_progress_token_that_cannot_be_read_reaches_no_upstream() {
    run(async {
        let scene = scene_of("{mode: passthrough}", &["shop"]).await;
        let caller = &callers(&scene)[0];
        let ask = async |meta: &str| {
            let text = format!(r#"{{"name": "price", "arguments": {{"id": 1}}, "_meta": {meta}}}"#);
            let params = Raw::of(&serde_json::from_str::<Box<RawValue>>(&text).unwrap());
            scene.ask_raw(caller, "tools/call", &params).await.map(drop)
        };
        let long = format!(r#"{{"progressToken": "{}"}}"#, "x".repeat(300));
        for meta in [
            r#"{"progressToken": 1, "progressToken": 2}"#,
            r#"{}, "_meta": {"progressToken": 2}"#,
            r#"{"progressToken": {"a": 1}}"#,
            &long,
            "7",
        ] {
            assert_eq!(ask(meta).await, Err("-32602 ".to_owned()), "{meta}");
        }
        assert_eq!(scene.calls(), 0);
        assert_eq!(ask(r#"{"progressToken": 1}"#).await, Ok(()));
    });
}
