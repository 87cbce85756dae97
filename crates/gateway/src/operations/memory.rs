//! A memory as an MCP server: its tools search, list, keep and forget.
//!
//! It becomes a set of tools within this process, so that a gateway in front of it guards it as any other server. What is
//! kept comes from a model: it is put on one line and bounded, without secrets, terminal sequences and the markers of chat
//! templates, and there may be so many facts and episodes and no more.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::upstream::toolset::{Tool, Toolset};
use contextweaver_context::clean::clean;
use contextweaver_context::event::{Episode, Fact, Phase};
use contextweaver_context::memory::{MemorySource, RecallBounds, SourceError, SqliteMemories, recall, shareable};
use contextweaver_context::store::{StoreError, Stores, redact, redact_named};
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

/// What is said of a search without an answer.
const NOTHING_SHARED: &str = "nothing is remembered that shares a word with this";

const SEARCH: &str = "Search what is remembered: facts and episodes that share words with the query, the best first.";
const LIST: &str = "List the remembered facts by key.";
const REMEMBER: &str = "Remember a fact under a key. A fact with the same key is replaced.";
const RECORD: &str = "Record an episode: in one or two sentences what was done and what came of it.";
const FORGET: &str = "Forget a fact by its key, or an episode by its id.";

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

/// What a tool does with its arguments: the text of its answer, or why there is none.
type Function = fn(&MemoryServer, &Map<String, Value>) -> Result<String, String>;

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
    /// [`SourceError`] when the file is not a store of ours, or cannot be opened or made.
    pub fn with_store(mut self, path: &Path) -> Result<Self, SourceError> {
        let refuse =
            |error: StoreError| SourceError { source_name: path.display().to_string(), reason: error.without_place() };
        self.store = Some(Stores::sqlite(path).map_err(refuse)?);
        self.sources.insert(0, Box::new(SqliteMemories::open(path)?));
        Ok(self)
    }

    /// The memories as a server: `search`, and where there is a store the tools that list and change it.
    #[must_use]
    pub fn into_tools(self) -> Toolset {
        let memory = Arc::new(self);
        // A store is on a disk and may be large, and a source may be anywhere.
        let tool = |name: &str, description: &str, schema: Value, function: Function| {
            let (memory, allowed) = (Arc::clone(&memory), schema.clone());
            Tool::long(name, description, schema, move |arguments, _| {
                check(arguments, &allowed).and_then(|()| function(&memory, arguments)).map(Value::String)
            })
        };
        let mut tools = vec![tool("search", SEARCH, search_schema(), Self::search).with("annotations", reading())];
        if memory.store.is_some() {
            tools.extend([
                tool("list", LIST, list_schema(), Self::list).with("annotations", reading()),
                tool("remember", REMEMBER, remember_schema(), Self::remember).with("annotations", writing(false)),
                tool("record", RECORD, record_schema(), Self::record).with("annotations", writing(false)),
                tool("forget", FORGET, forget_schema(), Self::forget).with("annotations", writing(true)),
            ]);
        }
        Toolset::of("memory", env!("CARGO_PKG_VERSION"), tools)
    }

    fn search(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let query = text(arguments, "query", MOST_TEXT)?;
        // Without words it is no query, to which everything would be an answer.
        if !query.chars().any(char::is_alphanumeric) {
            return Ok(NOTHING_SHARED.to_owned());
        }
        let (mut lines, mut left_out) = (Vec::new(), 0);
        let mut left = self.bounds.recall;
        let mut failed = Vec::new();
        for source in &self.sources {
            match recall(source.as_ref(), (Phase::Answer, &query), left, &self.config, None) {
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
            lines.push(NOTHING_SHARED.to_owned());
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
        let line = |fact: &&Fact| format!("- {}: {}", glance(&fact.key), glance(&kept_as(&fact.key, &fact.value)));
        let mut lines: Vec<String> = shown.iter().map(line).collect();
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
        let value = kept_as(&key, &value);
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
            Some(before) => format!("kept as {key}, in place of: {}", glance(&kept_as(&key, &before.value))),
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

/// Refuses arguments that the schema does not have, that are no texts, and the lack of one that it requires.
fn check(arguments: &Map<String, Value>, schema: &Value) -> Result<(), String> {
    let known: Vec<&str> =
        schema["properties"].as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
    for (name, value) in arguments {
        if !known.contains(&name.as_str()) {
            return Err(format!("there is no argument `{}`; there is `{}`", glance(name), known.join("`, `")));
        }
        if !value.is_string() {
            return Err(format!("`{name}` must be a text"));
        }
    }
    let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    match required.find(|name| !arguments.contains_key(*name)) {
        Some(missing) => Err(format!("`{missing}` is missing")),
        None => Ok(()),
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

/// The value of a key as it may be kept and shown: the key may tell that it is a secret.
fn kept_as(key: &str, value: &str) -> String {
    one_line(&redact_named(key, &clean(value)))
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

/// The schema of arguments, of which those in `required` must be there.
fn schema(properties: &Value, required: &[&str]) -> Value {
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = false.into();
    schema
}

fn search_schema() -> Value {
    let query = member("What you want to know, in words that the memory may have.", MOST_TEXT);
    schema(&json!({ "query": query }), &["query"])
}

fn list_schema() -> Value {
    schema(&json!({"after": member("Show the keys after this one.", MOST_TEXT)}), &[])
}

fn remember_schema() -> Value {
    let key = member("What the fact is about, in a few words.", MOST_KEY);
    let value = member("What is so. Not a secret: those are masked.", MOST_TEXT);
    schema(&json!({"key": key, "value": value}), &["key", "value"])
}

fn record_schema() -> Value {
    schema(&json!({"summary": member("What happened.", MOST_TEXT)}), &["summary"])
}

fn forget_schema() -> Value {
    schema(&json!({"key": member("The key or id.", MOST_TEXT)}), &["key"])
}

/// The annotations of a tool that changes nothing.
fn reading() -> Value {
    json!({"readOnlyHint": true, "openWorldHint": false})
}

/// The annotations of a tool that changes the store; what is done twice is as done once.
fn writing(destroys: bool) -> Value {
    json!({"readOnlyHint": false, "destructiveHint": destroys, "idempotentHint": true, "openWorldHint": false})
}

#[cfg(test)]
mod tests {
    use super::*;
    use contextweaver_context::Memory;
    use contextweaver_context::memory::LocalMemories;

    fn arguments(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn arguments_are_those_of_the_schema() {
        for (given, said) in [
            (json!({"id": "e1"}), "there is no argument `id`; there is `key`"),
            (json!({"key": "a", "more": 1}), "there is no argument `more`; there is `key`"),
            (json!({"key": 5}), "`key` must be a text"),
            (json!({}), "`key` is missing"),
        ] {
            assert_eq!(check(&arguments(&given), &forget_schema()).unwrap_err(), said);
        }
        assert_eq!(check(&arguments(&json!({"key": "a"})), &forget_schema()), Ok(()));
        assert_eq!(check(&Map::new(), &list_schema()), Ok(()));
    }

    #[test]
    fn a_query_without_words_finds_nothing() {
        let facts = vec![Fact { key: "zone".to_owned(), value: "UTC".to_owned() }];
        let notes = LocalMemories::of("notes", Memory { facts, ..Memory::default() });
        let server = MemoryServer::new(vec![Box::new(notes)], MemoryBounds::default());
        let search = |query: &str| server.search(&arguments(&json!({ "query": query }))).unwrap();
        assert_eq!(search("zone"), "- notes:zone: zone: UTC");
        assert_eq!(search("!?"), NOTHING_SHARED);
    }
}
