//! The door of gateways: any MCP server that lets its clients search the tools of other servers takes part as it is.
//!
//! The servers behind it are played: each is a recording (an answer to `initialize`, and the list of its tools) that
//! `contextweaver mcp playback` serves. The gateway is started with a configuration that names them, its search tool is
//! called with every query, and the tools are found in the result by a pointer. Here names are what tools are known by,
//! so they cannot be made up; the order is shuffled.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::program::{Launch, Program, bounded, micros};
use super::{Answer, Hello, Hiding, Limits, ProcessError, Session, TOP, folder};
use crate::eval::collection::Collection;
use crate::eval::rng::Rng;
use contextweaver_core::catalog::{Listing, load_listings};

/// In a command, the configuration with a member `mcpServers`, as most clients and gateways read it.
const MCP_SERVERS: &str = "{config}";

/// In a command, the configuration with a member `upstreams`, as our gateway reads it.
const UPSTREAMS: &str = "{upstreams}";

/// Catalogs of more servers are played by one, so that there are not hundreds of processes.
const MOST_SERVERS: usize = 32;

/// The version of MCP that is spoken on both sides.
const VERSION: &str = "2025-06-18";

/// Messages that a gateway may send before it answers, at most.
const UNASKED: usize = 1_000;

/// Pages of a list of tools, at most.
const PAGES: usize = 100;

/// What stands between server and tool where gateways join them.
pub(in crate::eval) const JOINTS: [&str; 7] = [":", "__", "_", ".", "/", "-", "___"];

/// The tool that is asked, and where its results name tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchTool {
    /// The name of the tool.
    pub name: String,
    /// The argument that takes the query.
    pub argument: String,
    /// JSON pointer into the result of the call, with `*` for every element of a list. Text that is JSON is looked into;
    /// other text is searched for names of tools.
    pub ids: String,
    /// The program that plays a server: `contextweaver`.
    pub player: PathBuf,
}

/// A gateway that runs before played servers.
pub(super) struct Gateway {
    program: Program,
    tool: SearchTool,
    names: Names,
    limits: Limits,
    asked: u64,
    /// Whether an answer to a query had a text at the pointer.
    has_texts: bool,
}

/// What a gateway may call each tool.
#[derive(Default)]
struct Names {
    items: BTreeMap<String, u32>,
    /// Names that more than one tool would have.
    ambiguous: BTreeSet<String>,
}

impl Names {
    fn add(&mut self, name: String, item: u32) {
        if self.items.insert(name.clone(), item).is_some_and(|other| other != item) {
            self.ambiguous.insert(name);
        }
    }

    /// The names of every tool of `servers`: its own, those joined with its server's, and its canonical id, in which a name
    /// that repeats its server or that ids cannot hold is another.
    fn of(servers: &Played, collection: &Collection) -> Self {
        let mut names = Self::default();
        let raw = |tool: &(String, u32)| to_raw_value(&definition(tool, collection)).ok();
        let lists: Vec<(&str, Vec<Box<RawValue>>)> =
            servers.iter().map(|(server, tools)| (server.as_str(), tools.iter().filter_map(raw).collect())).collect();
        let listing = |(server, tools)| Listing { server, tools, resources: &[], prompts: &[] };
        let listings: Vec<Listing> = lists.iter().map(|(server, tools)| listing((*server, tools.as_slice()))).collect();
        let loaded = load_listings(&listings).0;
        let ids: BTreeMap<(&str, &str), &str> =
            loaded.iter().map(|item| ((item.server.as_deref().unwrap_or_default(), &*item.name), &*item.id)).collect();
        for (server, tools) in servers {
            for (name, item) in tools {
                JOINTS.iter().for_each(|joint| names.add(format!("{server}{joint}{name}"), *item));
                names.add(name.clone(), *item);
                if let Some(id) = ids.get(&(server.as_str(), name.as_str())) {
                    names.add(id.split('#').next().unwrap_or_default().to_owned(), *item);
                }
            }
        }
        names
    }

    fn get(&self, name: &str) -> Option<u32> {
        self.items.get(name).copied().filter(|_| !self.ambiguous.contains(name))
    }

    /// The tools that a text names, in order: the whole of it, or the first in each line, since the rest of a line
    /// describes. Behind `#` a gateway may have a mark of its own.
    fn in_text(&self, text: &str) -> Vec<u32> {
        if let Some(item) = self.get(text.trim()) {
            return vec![item];
        }
        let plain = |word: &str| self.get(word).or_else(|| self.get(word.split('#').next().unwrap_or_default()));
        let is_part = |c: char| c.is_alphanumeric() || "_-.:/#".contains(c);
        text.lines().filter_map(|line| line.split(|c| !is_part(c)).find_map(plain)).collect()
    }
}

/// A server that is played: its name, and its tools with their items.
type Played = BTreeMap<String, Vec<(String, u32)>>;

/// The tools of a catalog by the server that will list them, in an order drawn from `rng`.
fn played(collection: &Collection, rng: &Rng) -> Played {
    let items = collection.catalog.items();
    let mut order: Vec<u32> = (0..items.len() as u32).collect();
    rng.fork("tools").shuffle(&mut order);
    let named: BTreeSet<&str> = items.iter().filter_map(|item| item.server.as_deref()).collect();
    let apart = named.len() <= MOST_SERVERS;
    let mut servers: Played = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for number in order {
        let item = &items[number as usize];
        let server = item.server.as_deref().filter(|_| apart).unwrap_or("tools");
        // One server cannot have two tools of one name.
        let mut name = item.name.clone();
        while !taken.insert((server.to_owned(), name.clone())) {
            name = format!("{}_{name}", item.server.as_deref().unwrap_or("other"));
        }
        servers.entry(server.to_owned()).or_default().push((name, number));
    }
    servers
}

/// A tool as its server lists it.
fn definition((name, number): &(String, u32), collection: &Collection) -> Value {
    let item = &collection.catalog.items()[*number as usize];
    let schema = item.args_schema.as_ref().map_or(json!({"type": "object"}), |schema| json!(schema));
    let schema = if schema.is_object() { schema } else { json!({"type": "object"}) };
    json!({"name": name, "description": item.description, "inputSchema": schema})
}

/// The recording of a server that only lists its tools.
fn recording(server: &str, tools: &[(String, u32)], collection: &Collection) -> String {
    let info = json!({"name": server, "version": "1"});
    let hello = json!({"protocolVersion": VERSION, "capabilities": {"tools": {}}, "serverInfo": info});
    let list = json!({"tools": tools.iter().map(|tool| definition(tool, collection)).collect::<Vec<Value>>()});
    let mut lines = String::new();
    let answers = [("initialize", hello), ("tools/list", list), ("ping", json!({}))];
    for (id, (method, result)) in (1..).zip(answers) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}});
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        for (direction, message) in [("client", request), ("server", answer)] {
            let seq = lines.lines().count() + 1;
            let line = json!({"seq": seq, "direction": direction, "message": message});
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
    }
    lines
}

impl Gateway {
    /// Writes the recordings and the configuration, and starts a program with them.
    pub(super) fn start(
        launch: Launch<'_>,
        tool: &SearchTool,
        limits: Limits,
        collection: &Collection,
        rng: &Rng,
    ) -> Result<Self, ProcessError> {
        let folder = folder()?;
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            let failed = |error: std::io::Error| ProcessError::Failed(format!("{name}: {error}"));
            std::fs::write(&path, text).map_err(failed).map(|()| path)
        };
        let played = played(collection, rng);
        let names = Names::of(&played, collection);
        let mut servers = serde_json::Map::new();
        for (number, (server, tools)) in played.iter().enumerate() {
            let path = write(&format!("{number}.ndjson"), recording(server, tools, collection))?;
            let launch = json!({"command": tool.player, "args": ["mcp", "playback", path]});
            servers.insert(server.clone(), launch);
        }
        let config = write("config.json", json!({"mcpServers": servers}).to_string())?;
        let upstreams = write("upstreams.json", json!({"upstreams": servers}).to_string())?;
        let word = |word: &OsString| match word.to_str() {
            Some(MCP_SERVERS) => config.clone().into_os_string(),
            Some(UPSTREAMS) => upstreams.clone().into_os_string(),
            _ => word.clone(),
        };
        let command: Vec<OsString> = launch.command.iter().map(word).collect();
        let launch = Launch { command: &command, ..launch };
        let program = Program::start(launch, folder)?;
        Ok(Self { program, tool: tool.clone(), names, limits, asked: 0, has_texts: false })
    }

    /// Asks for `method`, and answers what the gateway asks meanwhile.
    pub(super) fn request(
        &mut self,
        what: &str,
        method: &str,
        params: &Value,
        limit: Duration,
    ) -> Result<(Value, u64), ProcessError> {
        self.asked += 1;
        let id = self.asked;
        let start = Instant::now();
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.program.send(what, &request.to_string())?;
        for _ in 0..UNASKED {
            let text = self.program.receive(what, start, limit)?;
            let us = micros(start.elapsed());
            let Ok(Value::Object(mut message)) = serde_json::from_str(&text) else {
                return Err(self.program.failed(format!("{what}: {:?} is not a message of MCP", bounded(&text))));
            };
            match (message.get("method").and_then(Value::as_str), message.get("id")) {
                (Some(asked), Some(own)) => {
                    let answer = match asked {
                        "ping" => json!({"jsonrpc": "2.0", "id": own, "result": {}}),
                        _ => json!({"jsonrpc": "2.0", "id": own, "error": {"code": -32601, "message": "not offered"}}),
                    };
                    self.program.send(what, &answer.to_string())?;
                }
                (Some(_), None) => {}
                (None, Some(own)) if *own == json!(id) => {
                    let error = message.get("error").filter(|error| !error.is_null()).map(Value::to_string);
                    return match (message.remove("result"), error) {
                        (Some(result), None) => Ok((result, us)),
                        (_, error) => {
                            let error = bounded(&error.unwrap_or_default());
                            Err(self.program.failed(format!("{what}: it says {error}")))
                        }
                    };
                }
                _ => return Err(self.program.failed(format!("{what}: it answered what was not asked"))),
            }
        }
        Err(self.program.failed(format!("{what}: more than {UNASKED} messages before the answer")))
    }
}

impl Gateway {
    /// The tools that it lists, on all pages.
    pub(super) fn listed(&mut self, limit: Duration) -> Result<Vec<Value>, ProcessError> {
        const WHAT: &str = "the list of tools";
        let (mut tools, mut params) = (Vec::new(), json!({}));
        for _ in 0..PAGES {
            let (page, _) = self.request(WHAT, "tools/list", &params, limit)?;
            tools.extend(page.get("tools").and_then(Value::as_array).into_iter().flatten().cloned());
            match page.get("nextCursor").filter(|cursor| !cursor.is_null()) {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return Ok(tools),
            }
        }
        Err(self.program.failed(format!("{WHAT} has more than {PAGES} pages")))
    }

    /// The tools that texts name, each once, in order.
    pub(super) fn tools(&self, texts: &[String]) -> Vec<u32> {
        let mut seen = BTreeSet::new();
        texts.iter().flat_map(|text| self.names.in_text(text)).filter(|item| seen.insert(*item)).collect()
    }

    /// Those of `texts` that name no tool.
    pub(super) fn unknown<'t>(&self, texts: &'t [String]) -> Vec<&'t str> {
        texts.iter().filter(|text| self.names.in_text(text).is_empty()).map(String::as_str).collect()
    }
}

impl Session for Gateway {
    fn hello(&mut self) -> Result<Hello, ProcessError> {
        let client = json!({"name": "contextweaver-bench", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client});
        let (result, _) = self.request("initialize", "initialize", &params, self.limits.load)?;
        let us = self.program.age_us();
        let text = |place: &str| result.pointer(place).and_then(Value::as_str).map(bounded);
        let (name, version) = (text("/serverInfo/name"), text("/serverInfo/version"));
        match (name, version) {
            (Some(name), Some(version)) if !version.is_empty() => {
                self.program.send("initialize", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
                Ok(Hello { name, version, us })
            }
            _ => Err(self.program.failed("it does not say its name and version; without a version there is no row")),
        }
    }

    /// The catalog is in the configuration: what is waited for is the first search.
    fn load(&mut self) -> Result<u64, ProcessError> {
        let tools = self.listed(self.limits.load)?;
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool.get("name")?.as_str()).collect();
        if !names.contains(&self.tool.name.as_str()) {
            let shown = bounded(&names.join(", "));
            return Err(self.program.failed(format!("it has no tool `{}`; it has {shown}", self.tool.name)));
        }
        let params = json!({"name": self.tool.name, "arguments": {&self.tool.argument: "tool"}});
        self.request("a first search", "tools/call", &params, self.limits.load)?;
        Ok(self.program.age_us())
    }

    fn ping(&mut self) -> Result<u64, ProcessError> {
        Ok(self.request("a ping", "ping", &json!({}), self.limits.route)?.1)
    }

    fn route(&mut self, query: &str) -> Result<Answer, ProcessError> {
        let what = format!("the query {:?}", bounded(query));
        let params = json!({"name": self.tool.name, "arguments": {&self.tool.argument: query}});
        let (result, seen_us) = self.request(&what, "tools/call", &params, self.limits.route)?;
        if result.get("isError") == Some(&Value::Bool(true)) {
            let said = bounded(&result.get("content").map_or_else(String::new, Value::to_string));
            return Err(self.program.failed(format!("{what}: its tool failed: {said}")));
        }
        let texts = texts(&result, &self.tool.ids);
        self.has_texts |= !texts.is_empty();
        let mut tools = self.tools(&texts);
        tools.truncate(TOP);
        let tools = tools.into_iter().enumerate().map(|(place, item)| (item, -(place as f64))).collect();
        Ok(Answer { tools, seen_us, own_us: None })
    }

    fn was_read(&self) -> Result<(), ProcessError> {
        if self.has_texts {
            return Ok(());
        }
        let ids = &self.tool.ids;
        Err(self.program.failed(format!(
            "no answer has a text at `{ids}`: name with --mcp-ids where its results name tools; `contextweaver bench \
             check-engine --mcp` shows one"
        )))
    }

    fn hiding(&self) -> &Hiding {
        self.program.hiding()
    }

    fn peak_kib(&self) -> Option<u64> {
        self.program.peak_kib()
    }

    fn end(self: Box<Self>) -> Result<(), ProcessError> {
        self.program.end()
    }
}

/// The texts at a pointer.
pub(super) fn texts(result: &Value, pointer: &str) -> Vec<String> {
    let mut found = Vec::new();
    at(result, pointer, &mut |value| found.extend(value.as_str().map(str::to_owned)));
    found
}

/// Calls `found` with every value at a pointer (RFC 6901, with `*` for every element), looking into text that is JSON.
fn at(value: &Value, pointer: &str, found: &mut dyn FnMut(&Value)) {
    let Some(rest) = pointer.strip_prefix('/') else {
        found(value);
        return;
    };
    let (step, rest) = rest.find('/').map_or((rest, ""), |end| rest.split_at(end));
    match value {
        Value::String(text) => {
            if let Ok(inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str::<Value>(text) {
                at(&inner, pointer, found);
            }
        }
        Value::Array(items) if step == "*" => items.iter().for_each(|item| at(item, rest, found)),
        _ => {
            let step = step.replace("~1", "/").replace("~0", "~");
            if let Some(inner) = value.pointer(&format!("/{}", step.replace('~', "~0").replace('/', "~1"))) {
                at(inner, rest, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::eval::collection::Source;
    use crate::eval::record::Origin;

    #[test]
    fn a_tool_is_known_by_its_canonical_id_too() {
        let tools = r#"[{"name": "forge.open", "server": "forge", "description": "Open"},
            {"name": "Song :: Play it", "server": "Radio One", "description": "Music"}]"#;
        let source = |text: &'static str| Source { path: Path::new("test"), bytes: text.as_bytes() };
        let queries = r#"{"id": "1", "query": "open", "relevant": ["forge.open"]}"#;
        let collection = Collection::from_bytes("test", Origin::Embedded, source(tools), source(queries)).unwrap();
        let names = Names::of(&played(&collection, &Rng::new(1)), &collection);
        let of = |name: &str| collection.catalog.items().iter().position(|item| item.name == name).unwrap() as u32;
        for (text, name) in [
            ("forge:open#5d5bd052 — Open", "forge.open"),
            ("forge.open", "forge.open"),
            ("radio-one:Song_Play_it#12345678 — Music", "Song :: Play it"),
        ] {
            assert_eq!(names.in_text(text), [of(name)], "{text} {:?}", names.items);
        }
    }

    #[test]
    fn a_pointer_finds_every_element_and_looks_into_text() {
        let result = json!({
            "content": [{"text": "[{\"name\": \"a\"}, {\"name\": \"b\"}]"}, {"text": "no JSON"}],
            "structuredContent": {"cards": [{"id": "x"}, {}, {"id": "y"}], "a/b": 1}
        });
        let table = [
            ("/structuredContent/cards/*/id", json!(["x", "y"])),
            ("/structuredContent/a~1b", json!([1])),
            ("/content/0/text/*/name", json!(["a", "b"])),
            ("/content/*/text", json!(["[{\"name\": \"a\"}, {\"name\": \"b\"}]", "no JSON"])),
            ("/content/7", json!([])),
        ];
        for (pointer, expected) in table {
            let mut found = Vec::new();
            at(&result, pointer, &mut |value| found.push(value.clone()));
            assert_eq!(json!(found), expected, "{pointer}");
        }
    }

    #[test]
    fn names_are_found_in_text_where_they_are_one_tools() {
        let mut names = Names::default();
        for (name, item) in
            [("forge:open", 0), ("open", 0), ("post:send", 1), ("send", 1), ("radio:send", 2), ("send", 2)]
        {
            names.add(name.to_owned(), item);
        }
        let table = [
            ("forge:open", vec![0]),
            ("forge:open#1f — Open\npost:send#47a0 — Send", vec![0, 1]),
            ("radio:send#1f", vec![2]),
            ("send", vec![]),
            ("post:send#47a0 — Send a letter, open\nforge:open#9 — Open", vec![1, 0]),
        ];
        for (text, expected) in table {
            assert_eq!(names.in_text(text), expected, "{text}");
        }
    }
}
