//! A memory as an MCP server: its tools search, list, keep and forget.
//!
//! It is an upstream within this process, so that a gateway in front of it speaks the protocol and guards it as any other
//! server. What is kept comes from a model: it is put on one line and bounded, without secrets, terminal sequences and the
//! markers of chat templates, and there may be so many facts and episodes and no more.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::protocol::message::{Raw, RpcError};
use crate::protocol::versions::LEGACY_VERSIONS;
use crate::upstream::fault::Fault;
use crate::upstream::in_process::Answer;
use contextweaver_context::clean::clean;
use contextweaver_context::event::{Episode, Fact, Phase};
use contextweaver_context::memory::{MemorySource, RecallBounds, SourceError, SqliteMemories, recall, shareable};
use contextweaver_context::store::{StoreError, Stores, redact};
use contextweaver_context::{ContextConfig, Secrets, one_line};
use contextweaver_core::text::sha256_hex;

/// Characters of the key of a fact at most.
const MOST_KEY: usize = 100;

/// Characters of a fact, of an episode and of a query at most.
const MOST_TEXT: usize = 1_000;

/// Facts of one answer to `list` at most.
const MOST_LISTED: usize = 50;

/// Characters of a value that `list` shows.
const GLANCE: usize = 120;

/// How much a memory gives and takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryBounds {
    /// What one answer to a search gives at most.
    pub recall: RecallBounds,
    /// The number of facts that the store may have when one more is kept, and of episodes.
    pub kept: usize,
}

impl Default for MemoryBounds {
    fn default() -> Self {
        Self { recall: RecallBounds { tokens: 1_000, memories: 16 }, kept: 1_000 }
    }
}

/// Memories that are served.
pub struct MemoryServer {
    /// What is written to; none for a server that only reads.
    store: Option<Stores>,
    sources: Vec<Box<dyn MemorySource>>,
    bounds: MemoryBounds,
    config: ContextConfig,
}

/// A tool, and whether it needs a store that may be written.
struct Tool {
    name: &'static str,
    writes: bool,
    definition: fn() -> Value,
    call: fn(&MemoryServer, &Map<String, Value>) -> Result<String, String>,
}

const TOOLS: [Tool; 5] = [
    Tool { name: "search", writes: false, definition: search_definition, call: MemoryServer::search },
    Tool { name: "list", writes: true, definition: list_definition, call: MemoryServer::list },
    Tool { name: "remember", writes: true, definition: remember_definition, call: MemoryServer::remember },
    Tool { name: "record", writes: true, definition: record_definition, call: MemoryServer::record },
    Tool { name: "forget", writes: true, definition: forget_definition, call: MemoryServer::forget },
];

impl MemoryServer {
    /// Serves `sources`, which are searched and not changed.
    #[must_use]
    pub fn new(sources: Vec<Box<dyn MemorySource>>, bounds: MemoryBounds) -> Self {
        let mut config = ContextConfig::default();
        // Whoever asks is a model: what a source remembers of a secret is masked on its way, as what is kept.
        config.firewall.secrets = Secrets::Redact;
        Self { store: None, sources, bounds, config }
    }

    /// The same, and the SQLite store at `path`, which is searched first and changed; it is made where there is none.
    ///
    /// # Errors
    /// [`SourceError`] when the file is no store of ours, or cannot be opened or made.
    pub fn with_store(mut self, path: &Path) -> Result<Self, SourceError> {
        let refuse = |error: StoreError| SourceError { source_name: path.display().to_string(), reason: told(error) };
        self.store = Some(Stores::sqlite(path).map_err(refuse)?);
        self.sources.insert(0, Box::new(SqliteMemories::open(path)?));
        Ok(self)
    }

    fn tools(&self) -> impl Iterator<Item = &'static Tool> {
        let writes = self.store.is_some();
        TOOLS.iter().filter(move |tool| writes || !tool.writes)
    }

    fn call(&self, params: Option<&Raw>) -> Result<Value, RpcError> {
        let params: Value = params.and_then(|params| params.read().ok()).unwrap_or_default();
        let name = params["name"].as_str().unwrap_or_default();
        let tool = self.tools().find(|tool| tool.name == name);
        let tool = tool.ok_or_else(|| RpcError::invalid_params(format!("there is no tool `{}`", glance(name))))?;
        let none = Map::new();
        let arguments = params["arguments"].as_object().unwrap_or(&none);
        let (text, is_error) = match (tool.call)(self, arguments) {
            Ok(text) => (text, false),
            Err(reason) => (reason, true),
        };
        Ok(json!({"content": [{"type": "text", "text": text}], "isError": is_error}))
    }

    fn search(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let query = text(arguments, "query", MOST_TEXT)?;
        let (mut lines, mut left_out) = (Vec::new(), 0);
        let mut left = self.bounds.recall;
        let mut failed = Vec::new();
        for source in &self.sources {
            match recall(source.as_ref(), (Phase::Answer, &query), left, &self.config) {
                Ok(found) => {
                    left.tokens = left.tokens.saturating_sub(found.tokens);
                    left.memories = left.memories.saturating_sub(found.facts.len());
                    left_out += found.left_out;
                    lines.extend(found.facts.iter().map(|fact| format!("- {}: {}", fact.key, fact.value)));
                }
                Err(error) => failed.push(format!("({error})")),
            }
        }
        if lines.is_empty() && failed.len() == self.sources.len() {
            return Err(failed.join("\n"));
        }
        if lines.is_empty() {
            lines.push("nothing is remembered that shares a word with this".to_owned());
        }
        if left_out > 0 {
            lines.push(format!("({left_out} more do not fit or say the same)"));
        }
        lines.append(&mut failed);
        Ok(lines.join("\n"))
    }

    fn list(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let stores = self.stores()?;
        let after = arguments.get("after").and_then(Value::as_str).unwrap_or_default();
        let facts = stores.facts.all().map_err(told)?;
        let facts = shareable(facts, &stores.events.transcript().map_err(told)?);
        let mut rest = facts.iter().filter(|fact| fact.key.as_str() > after);
        let shown: Vec<&Fact> = rest.by_ref().take(MOST_LISTED).collect();
        let mut lines: Vec<String> =
            shown.iter().map(|fact| format!("- {}: {}", glance(&fact.key), glance(&kept(&fact.value)))).collect();
        match (shown.last(), rest.count()) {
            (None, _) if after.is_empty() => lines.push("nothing is remembered yet".to_owned()),
            (None, _) => lines.push("no key comes after this one".to_owned()),
            (Some(last), more) if more > 0 => {
                lines.push(format!("({more} more; call again with after = {})", Value::from(last.key.as_str())));
            }
            (Some(_), _) => {}
        }
        Ok(lines.join("\n"))
    }

    fn remember(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let stores = self.stores()?;
        let (key, value) = (text(arguments, "key", MOST_KEY)?, text(arguments, "value", MOST_TEXT)?);
        if key.contains(":fact:") {
            return Err("`key`: `:fact:` stands in the keys of what results gave; use another".to_owned());
        }
        let before = stores.facts.get(&key).map_err(told)?;
        if before.is_none() {
            room(stores.facts.all().map_err(told)?.len(), self.bounds.kept, "facts")?;
        }
        stores.facts.put(Fact { key: key.clone(), value }).map_err(told)?;
        Ok(match before {
            None => format!("kept as {key}"),
            Some(before) => format!("kept as {key}, in place of: {}", glance(&before.value)),
        })
    }

    fn record(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let stores = self.stores()?;
        let summary = text(arguments, "summary", MOST_TEXT)?;
        // What happened twice in the same words is one episode.
        let id = format!("note-{}", sha256_hex(summary.as_bytes()).get(..12).unwrap_or_default());
        let episodes = stores.episodes.all().map_err(told)?;
        if !episodes.iter().any(|episode| episode.id == id) {
            room(episodes.len(), self.bounds.kept, "episodes")?;
        }
        stores.episodes.put(Episode { id: id.clone(), summary }).map_err(told)?;
        Ok(format!("kept as {id}"))
    }

    fn forget(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let stores = self.stores()?;
        let key = arguments.get("key").and_then(Value::as_str).unwrap_or_default();
        let fact = stores.facts.delete(key).map_err(told)?;
        if fact || stores.episodes.delete(key).map_err(told)? {
            return Ok(format!("forgotten: {}", glance(key)));
        }
        Err(format!("nothing is kept as `{}`; `list` shows the keys", glance(key)))
    }

    fn stores(&self) -> Result<&Stores, String> {
        self.store.as_ref().ok_or_else(|| "this memory is only read".to_owned())
    }
}

impl Answer for MemoryServer {
    fn answer(&self, method: &str, params: Option<&Raw>) -> Result<Raw, Fault> {
        let answer = match method {
            "initialize" => json!({
                "protocolVersion": LEGACY_VERSIONS[0],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "memory", "version": env!("CARGO_PKG_VERSION")},
            }),
            "ping" => json!({}),
            "tools/list" => {
                let definition = |tool: &Tool| {
                    let mut definition = Map::from_iter([("name".to_owned(), tool.name.into())]);
                    definition.extend((tool.definition)().as_object().cloned().unwrap_or_default());
                    definition
                };
                json!({"tools": self.tools().map(definition).collect::<Vec<_>>()})
            }
            "tools/call" => self.call(params).map_err(Fault::Rpc)?,
            _ => return Err(Fault::Rpc(RpcError::method_not_found(method))),
        };
        Ok(Raw::of(&answer))
    }
}

/// A text among the arguments, as it may be kept: on one line, clean, without secrets, of at most `most` characters.
fn text(arguments: &Map<String, Value>, name: &str, most: usize) -> Result<String, String> {
    let given = arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    if given.chars().nth(most).is_some() {
        return Err(format!("`{name}` has more than {most} characters; say it shorter"));
    }
    match kept(given) {
        kept if kept.is_empty() => Err(format!("`{name}` says nothing")),
        kept => Ok(kept),
    }
}

/// A text as it may be kept and shown.
fn kept(text: &str) -> String {
    one_line(&redact(&clean(text)).text)
}

/// The beginning of a text, for a line of an answer.
fn glance(text: &str) -> String {
    match text.char_indices().nth(GLANCE) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

fn room(there: usize, most: usize, what: &str) -> Result<(), String> {
    if there < most {
        return Ok(());
    }
    Err(format!("the memory has {there} {what}, as many as it may; forget one first"))
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn member(description: &str, most: usize) -> Value {
    json!({"type": "string", "description": description, "minLength": 1, "maxLength": most})
}

fn search_definition() -> Value {
    json!({
        "description": "Search what is remembered: facts and episodes that share words with the query, the best first.",
        "inputSchema": {
            "type": "object",
            "properties": {"query": member("What you want to know, in words that the memory may have.", MOST_TEXT)},
            "required": ["query"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    })
}

fn list_definition() -> Value {
    json!({
        "description": "List the remembered facts by key.",
        "inputSchema": {
            "type": "object",
            "properties": {"after": member("Show the keys after this one.", MOST_TEXT)},
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    })
}

fn remember_definition() -> Value {
    json!({
        "description": "Remember a fact under a key. A fact with the same key is replaced.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "key": member("What the fact is about, in a few words.", MOST_KEY),
                "value": member("What is so. Not a secret: those are masked.", MOST_TEXT),
            },
            "required": ["key", "value"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
    })
}

fn record_definition() -> Value {
    json!({
        "description": "Record an episode: in one or two sentences what was done and what came of it.",
        "inputSchema": {
            "type": "object",
            "properties": {"summary": member("What happened.", MOST_TEXT)},
            "required": ["summary"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
    })
}

fn forget_definition() -> Value {
    json!({
        "description": "Forget a fact by its key, or an episode by its id.",
        "inputSchema": {
            "type": "object",
            "properties": {"key": member("The key or id.", MOST_TEXT)},
            "required": ["key"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false},
    })
}
