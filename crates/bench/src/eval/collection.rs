//! Test collections: a catalog, queries in the words of users, and the tools that answer each.
//!
//! A collection is loaded strictly. The lines of a query file are wire types first (unknown fields refused), then
//! checked against the catalog once; nothing behind a [`Collection`] checks again. A folder may hold a
//! `collection.toml` that states what the collection is, its counts and the hashes of its files; where it stands, it
//! must agree with them. The collections of this project always have one, public ones do not.
//!
//! Not here: growing a collection ([`super::growth`]), judging its quality ([`super::audit`]).

mod about;
mod queries;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use contextweaver_core::catalog::{self, Catalog, CatalogError, Kind, LoadOptions, MAX_FILE_BYTES, SelectableItem};
use contextweaver_core::files::{ReadError, read_file};
use contextweaver_core::text::sha256_hex;

use super::files::{replace_file, without_mark};
use super::record::Origin;

pub use about::{About, Counts, Hashes, ParseAboutError, Sealed, seal};
pub(super) use queries::to_jsonl as queries_jsonl;
pub use queries::{Asked, Query, asked};
pub(crate) use queries::{Names, listed_twice};

/// The file of a collection folder that holds the tools.
pub const CATALOG_FILE: &str = "catalog.json";
/// The file of a collection folder that holds one query per line.
pub const QUERIES_FILE: &str = "queries.jsonl";
/// In some collections, the queries of [`QUERIES_FILE`] as a model would put them to a search: one a line.
pub const ASKED_FILE: &str = "asked.jsonl";
/// The file of a collection folder that says what the collection is.
pub const ABOUT_FILE: &str = "collection.toml";

/// What a collection of one's own is called in measurements and on pages.
pub const YOURS: &str = "yours";

/// A collection is not usable. Every message names the file and, where there is one, the line and the query.
#[derive(Debug, thiserror::Error)]
pub enum CollectionError {
    /// A file could not be read.
    #[error("{}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A file was not written.
    #[error(transparent)]
    Write(#[from] super::files::WriteError),
    /// The catalog was refused.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A line of the query file is not a usable query.
    #[error("{}:{line}: {}{reason}", path.display(), query_prefix(id))]
    Query {
        /// The query file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The id of the query; empty when the line has none.
        id: String,
        /// What is wrong and the way out.
        reason: String,
    },
    /// The query file holds no query.
    #[error("{}: no query; write one JSON object per line", path.display())]
    NoQueries {
        /// The query file.
        path: PathBuf,
    },
    /// `collection.toml` is absent or cannot be read as one.
    #[error("{}: {reason}", path.display())]
    About {
        /// The file.
        path: PathBuf,
        /// What is wrong and the way out.
        reason: String,
    },
    /// `collection.toml` disagrees with the files beside it.
    #[error("{}: {field} is {stated}, the files give {found}; if the change is meant, run `contextweaver gold seal {name}`", path.display())]
    Stale {
        /// The file.
        path: PathBuf,
        /// The name of the collection.
        name: String,
        /// The field that disagrees.
        field: String,
        /// What the file states.
        stated: String,
        /// What the catalog and the queries give.
        found: String,
    },
}

fn query_prefix(id: &str) -> String {
    if id.is_empty() { String::new() } else { format!("query `{id}`: ") }
}

/// A checked collection.
#[derive(Debug, Clone)]
pub struct Collection {
    /// The name of its folder, or the name under which it was opened.
    pub name: String,
    /// Who wrote it.
    pub origin: Origin,
    /// What `collection.toml` says; `None` where there is none.
    pub about: Option<About>,
    /// The tools.
    pub catalog: Arc<Catalog>,
    /// The queries in the order of the file.
    pub queries: Vec<Query>,
    /// The digest of catalog and queries, as [`Hashes::together`] of the two.
    pub inputs_sha256: String,
    /// For every item the first item of its capability, where the collection knows copies of tools; a ranking is then
    /// read by capability, each at the place of its best copy. `None` where every tool stands for itself.
    pub capabilities: Option<Vec<u32>>,
    /// Item numbers in the order in which the catalog file lists the tools.
    file_order: Vec<u32>,
    /// The name of every item in a run file, by item number.
    handles: Vec<String>,
}

/// The bytes of one input file and where they came from.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The path that errors name.
    pub path: &'a Path,
    /// The content.
    pub bytes: &'a [u8],
}

impl Collection {
    /// The collection in `folder`, which gives it its name.
    ///
    /// # Errors
    /// Any [`CollectionError`]. A folder of [`Origin::Embedded`] must hold a `collection.toml`.
    pub fn load(folder: &Path, origin: Origin) -> Result<Self, CollectionError> {
        let name = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let mut collection = Self::from_files(&name, origin, &folder.join(CATALOG_FILE), &folder.join(QUERIES_FILE))?;
        let path = folder.join(ABOUT_FILE);
        if origin == Origin::Embedded || path.exists() {
            let about = About::read(&path, &name)?;
            about.check(&path, &Hashes::of_folder(folder)?, &collection)?;
            collection.about = Some(about);
        }
        Ok(collection)
    }

    /// A collection of any catalog (a file of any form that [`catalog::load`] knows, or a folder of such files) and
    /// any query file.
    ///
    /// # Errors
    /// Any [`CollectionError`] but those about `collection.toml`, which is not read.
    pub fn from_files(name: &str, origin: Origin, catalog: &Path, queries: &Path) -> Result<Self, CollectionError> {
        let loaded = catalog::load(&[catalog], LoadOptions::default())?.catalog;
        if catalog.is_dir() {
            return Self::of_catalog(name, origin, Arc::new(loaded), queries);
        }
        let (bytes, query_bytes) = (read(catalog)?, read(queries)?);
        Self::assemble(name, origin, Arc::new(loaded), &bytes, Source { path: queries, bytes: &query_bytes })
    }

    /// A collection of a loaded catalog and any query file.
    ///
    /// # Errors
    /// Any [`CollectionError`] but those about catalogs and `collection.toml`.
    pub fn of_catalog(
        name: &str,
        origin: Origin,
        catalog: Arc<Catalog>,
        queries: &Path,
    ) -> Result<Self, CollectionError> {
        let bytes = read(queries)?;
        Self::of_parts(name, origin, catalog, Source { path: queries, bytes: &bytes })
    }

    /// A collection of a loaded catalog and queries in memory.
    ///
    /// # Errors
    /// As [`Self::of_catalog`], but for those about reading files.
    pub fn of_parts(
        name: &str,
        origin: Origin,
        catalog: Arc<Catalog>,
        queries: Source,
    ) -> Result<Self, CollectionError> {
        // What was loaded has no bytes of its own: its native form stands for it.
        let bytes = catalog.to_native_json().into_bytes();
        Self::assemble(name, origin, catalog, &bytes, queries)
    }

    /// A collection of a catalog in memory (a JSON array of MCP tools) and queries in memory.
    ///
    /// # Errors
    /// Any [`CollectionError`] but those about reading files and `collection.toml`.
    pub fn from_bytes(name: &str, origin: Origin, tools: Source, queries: Source) -> Result<Self, CollectionError> {
        let values: Vec<Value> = serde_json::from_slice(tools.bytes).map_err(|error| CatalogError::Parse {
            path: tools.path.to_owned(),
            place: format!("line {}, column {}", error.line(), error.column()),
            fault: catalog::Fault::new(error.to_string()),
        })?;
        let catalog = Arc::new(Catalog::from_values(&values, None)?);
        Self::assemble(name, origin, catalog, tools.bytes, queries)
    }

    fn assemble(
        name: &str,
        origin: Origin,
        catalog: Arc<Catalog>,
        catalog_bytes: &[u8],
        queries: Source,
    ) -> Result<Self, CollectionError> {
        let handles = handles(&catalog);
        let file_order = file_order(catalog_bytes, &catalog);
        let hashes = Hashes::of(catalog_bytes, &with_line_feeds(queries.bytes));
        let inputs_sha256 = hashes.together();
        let queries = queries::parse(queries, &catalog, &handles)?;
        Ok(Self {
            name: name.to_owned(),
            origin,
            about: None,
            catalog,
            queries,
            inputs_sha256,
            capabilities: None,
            file_order,
            handles,
        })
    }

    /// The name by which a run file names the item: its name when no other item has it, else `server:name`, or its id
    /// where even that is not enough.
    ///
    /// # Panics
    /// When `item` is not a number of this catalog.
    #[must_use]
    pub fn tool_handle(&self, item: u32) -> &str {
        &self.handles[item as usize]
    }

    /// For every answerable query, in their order, the first tool that it needs: what queries are clustered by.
    #[must_use]
    pub fn first_tools(&self) -> Vec<u32> {
        self.queries.iter().filter_map(Query::first_tool).collect()
    }

    /// What tells each query that a tool answers from another with the same id: a digest of its text and of the tools that
    /// answer it, in twelve hexadecimal digits, by id. A tool goes by its server and its name: its handle would be another
    /// as soon as a second server has a tool of that name, and just then it has to be seen what becomes of the query.
    #[must_use]
    pub fn digests(&self) -> BTreeMap<String, String> {
        let full = full_handles(&self.catalog);
        let full = |number: u32| full[number as usize].clone();
        let asked = self.queries.iter().filter(|query| !query.groups.is_empty());
        asked.map(|query| (query.id.clone(), digest(query, full))).collect()
    }

    /// The digests that the same queries have in files where tools go by their names alone or by their handles, by id: those
    /// that earlier versions of the program wrote.
    #[must_use]
    pub(crate) fn digests_by_handle(&self) -> BTreeMap<String, BTreeSet<String>> {
        let items = self.catalog.items();
        let both = |query: &Query| {
            let by_name = digest(query, |number| items[number as usize].name.clone());
            BTreeSet::from([by_name, digest(query, |number| self.tool_handle(number).to_owned())])
        };
        let asked = self.queries.iter().filter(|query| !query.groups.is_empty());
        asked.map(|query| (query.id.clone(), both(query))).collect()
    }

    /// Item numbers in the order in which the catalog file lists the tools (id order where the file is not an array).
    #[must_use]
    pub fn file_order(&self) -> &[u32] {
        &self.file_order
    }

    /// The counts that `collection.toml` states.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let namespaces: BTreeSet<&str> = self.catalog.items().iter().map(|item| item.namespace.as_str()).collect();
        let unanswerable = self.queries.iter().filter(|query| query.groups.is_empty()).count();
        let of_kind = |kind: Kind| self.catalog.items().iter().filter(|item| item.kind == kind).count();
        let (resources, prompts) = (of_kind(Kind::Resource), of_kind(Kind::Prompt));
        Counts {
            tools: self.catalog.len() - resources - prompts,
            resources,
            prompts,
            namespaces: namespaces.len(),
            queries: self.queries.len(),
            answerable: self.queries.len() - unanswerable,
            multi_tool: self.queries.iter().filter(|query| query.groups.len() > 1).count(),
            unanswerable,
        }
    }

    /// The languages of the queries, sorted; empty where the query file names none.
    #[must_use]
    pub fn languages(&self) -> Vec<String> {
        let languages: BTreeSet<&str> = self.queries.iter().filter_map(|query| query.lang.as_deref()).collect();
        languages.into_iter().map(str::to_owned).collect()
    }
}

/// A digest of what a query asks and of the tools that answer it, which `name` names.
pub(crate) fn digest(query: &Query, name: impl Fn(u32) -> String) -> String {
    let groups: Vec<Vec<String>> =
        query.groups.iter().map(|group| group.iter().map(|item| name(*item)).collect()).collect();
    // Texts and lists: writing them cannot fail.
    let text = serde_json::to_string(&(&query.text, groups)).unwrap_or_default();
    sha256_hex(text.as_bytes()).get(..12).unwrap_or_default().to_owned()
}

/// `server:name` where there is a server, else the name: unlike a bare name it stays unambiguous when tools are added
/// under other servers.
pub(super) fn full_handle(server: Option<&str>, name: &str) -> String {
    server.map_or_else(|| name.to_owned(), |server| format!("{server}:{name}"))
}

/// What names each item in another catalog too, by item number: [`full_handle`], and its id where that names another item or
/// several.
pub(super) fn full_handles(catalog: &Catalog) -> Vec<String> {
    let handles = handles(catalog);
    let names = Names::new(catalog, &handles);
    let of = |(item, number): (&SelectableItem, u32)| {
        let full = full_handle(item.server.as_deref(), &item.name);
        if names.resolve(&full) == Ok(number) { full } else { item.id.clone() }
    };
    catalog.items().iter().zip(0..).map(of).collect()
}

/// Lines as they are wherever git checked them out: without the mark and the carriage returns that Windows adds.
fn with_line_feeds(bytes: &[u8]) -> Cow<'_, [u8]> {
    let bytes = without_mark(bytes);
    if !bytes.contains(&b'\r') {
        return Cow::Borrowed(bytes);
    }
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    Cow::Owned(lines.collect::<Vec<_>>().join(&b'\n'))
}

/// The name of every item in a run file, by item number.
pub(crate) fn handles(catalog: &Catalog) -> Vec<String> {
    let items = catalog.items();
    let full: Vec<String> = items.iter().map(|item| full_handle(item.server.as_deref(), &item.name)).collect();
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let mut full_names: BTreeMap<&str, usize> = BTreeMap::new();
    for (item, full) in items.iter().zip(&full) {
        *names.entry(&item.name).or_default() += 1;
        *full_names.entry(full).or_default() += 1;
    }
    let handle = |(item, full): (&SelectableItem, &String)| {
        if names.get(item.name.as_str()) == Some(&1) {
            item.name.clone()
        } else if full_names.get(full.as_str()) == Some(&1) && !names.contains_key(full.as_str()) {
            full.clone()
        } else {
            item.id.clone()
        }
    };
    items.iter().zip(&full).map(handle).collect()
}

/// Item numbers in the order of the array of tools; in id order when the text is not one.
fn file_order(bytes: &[u8], catalog: &Catalog) -> Vec<u32> {
    #[derive(Deserialize)]
    struct Key {
        name: String,
        server: Option<String>,
    }
    let numbers: BTreeMap<(Option<&str>, &str), u32> =
        catalog.items().iter().zip(0..).map(|(item, n)| ((item.server.as_deref(), item.name.as_str()), n)).collect();
    let keys: Vec<Key> = serde_json::from_slice(bytes).unwrap_or_default();
    let order: Vec<u32> =
        keys.iter().filter_map(|key| numbers.get(&(key.server.as_deref(), key.name.as_str())).copied()).collect();
    let distinct: BTreeSet<u32> = order.iter().copied().collect();
    if distinct.len() == catalog.len() { order } else { (0..).take(catalog.len()).collect() }
}

fn read(path: &Path) -> Result<Vec<u8>, CollectionError> {
    read_file(path, MAX_FILE_BYTES)
        .map_err(|ReadError { path, reason }| CollectionError::Read { path, reason: reason.to_string() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOOLS: &str = r#"[
{"name": "search", "description": "Search mail", "inputSchema": {"type": "object"}, "server": "mail"},
{"name": "search", "description": "Search pages", "inputSchema": {"type": "object"}, "server": "wiki"},
{"name": "send", "description": "Send mail", "inputSchema": {"type": "object"}, "server": "mail"},
{"name": "The Clique :: concert", "description": "Concert", "inputSchema": {"type": "object"}}
]"#;

    fn collection(lines: &str) -> Result<Collection, CollectionError> {
        let tools = Source { path: Path::new("catalog.json"), bytes: TOOLS.as_bytes() };
        Collection::from_bytes(
            "c",
            Origin::Public,
            tools,
            Source { path: Path::new("q.jsonl"), bytes: lines.as_bytes() },
        )
    }

    #[test]
    fn the_nearest_name_has_the_namespace_that_ids_have() {
        let tools = r#"[{"name": "list", "server": "Pet Shop"}, {"name": "list", "server": "b"}]"#;
        let tools = Source { path: Path::new("catalog.json"), bytes: tools.as_bytes() };
        let queries = r#"{"id": "1", "query": "a", "relevant": ["Pet Shop:lst"]}"#;
        let queries = Source { path: Path::new("q.jsonl"), bytes: queries.as_bytes() };
        let refused = Collection::from_bytes("c", Origin::Public, tools, queries).unwrap_err().to_string();
        assert!(refused.ends_with("the nearest name is `pet-shop:list`"), "{refused}");
    }

    fn refusal(lines: &str) -> String {
        collection(lines).unwrap_err().to_string()
    }

    #[test]
    fn references_are_names_server_names_or_ids() {
        let found = collection(concat!(
            r#"{"id":"1","query":"a","relevant":["wiki:search","send"],"equivalent":{"wiki:search":["mail:search"]}}"#,
            "\n",
            r#"{"id":"2","query":"b","relevant":["The Clique :: concert"],"category":"x"}"#,
            "\n\n",
            r#"{"id":"3","query":"c","relevant":[],"register":"terse","lang":"en"}"#,
        ))
        .unwrap();
        let groups: Vec<Vec<Vec<&str>>> = found
            .queries
            .iter()
            .map(|query| query.groups.iter().map(|g| g.iter().map(|item| found.tool_handle(*item)).collect()).collect())
            .collect();
        assert_eq!(
            groups,
            [vec![vec!["wiki:search", "mail:search"], vec!["send"]], vec![vec!["The Clique :: concert"]], vec![],]
        );
        let order: Vec<&str> = found.file_order().iter().map(|item| found.tool_handle(*item)).collect();
        assert_eq!(order, ["mail:search", "wiki:search", "send", "The Clique :: concert"]);
        let id = found.catalog.items()[0].id.clone();
        let line = format!(r#"{{"id":"1","query":"a","relevant":["{id}"]}}"#);
        assert_eq!(collection(&line).unwrap().queries[0].groups, [[0]]);
        let counts = found.counts();
        assert_eq!((counts.tools, counts.queries, counts.answerable, counts.multi_tool), (4, 3, 2, 1));
    }

    #[test]
    fn refusals_name_the_place_and_the_way_out() {
        let table = [
            (
                r#"{"id":"1","query":"a","relevant":["sned"]}"#,
                "q.jsonl:1: query `1`: no tool is called `sned`; the nearest name is `send`",
            ),
            (
                r#"{"id":"1","query":"a","relevant":["search"]}"#,
                "q.jsonl:1: query `1`: 2 tools are called `search`; write mail:search or wiki:search",
            ),
            (r#"{"id":"1","query":" ","relevant":[]}"#, "q.jsonl:1: query `1`: the query text is empty"),
            (r#"{"id":"","query":"a","relevant":[]}"#, "q.jsonl:1: the id is empty"),
            (
                "{\"id\":\"1\",\"query\":\"a\",\"relevant\":[]}\n{\"id\":\"1\",\"query\":\"b\",\"relevant\":[]}",
                "q.jsonl:2: query `1`: the id was used on line 1 already",
            ),
            (
                r#"{"id":"1","query":"a","relevant":["send","mail:send"]}"#,
                "q.jsonl:1: query `1`: `mail:send` is listed twice; one tool can stand for one need only",
            ),
            (
                r#"{"id":"1","query":"a","relevant":["send"],"equivalent":{"send":["send"]}}"#,
                "q.jsonl:1: query `1`: `send` is listed twice; one tool can stand for one need only",
            ),
            (
                r#"{"id":"1","query":"a","relevant":["send"],"equivalent":{"mail:send":["mail:search"]}}"#,
                "q.jsonl:1: query `1`: `equivalent` names `mail:send`, which is not in `relevant`",
            ),
            (
                r#"{"id":"1","query":"a","relevant":["send"],"equivalent":{"send":["mail:search"],"send":["wiki:search"]}}"#,
                "q.jsonl:1: `equivalent`: tool `send` occurs twice at column 102",
            ),
            (
                "{\"id\":\"1\",\"query\":\"a\",\"relevant\":[],\"answer\":1}",
                "q.jsonl:1: unknown field `answer`, expected one of `id`, `query`, `relevant`, `equivalent`, `register`, `lang`, `category`, `draft` at column 44",
            ),
            ("{\"id\":\"1\"", "q.jsonl:1: the JSON object does not end on this line; write one JSON object per line"),
            (
                "{\n  \"id\": \"1\"\n}",
                "q.jsonl:1: the JSON object does not end on this line; write one JSON object per line",
            ),
            ("[]", "q.jsonl:1: it begins a JSON array; write one JSON object per line, without an array around them"),
            (
                "[{\"id\":\"1\"}]",
                "q.jsonl:1: it begins a JSON array; write one JSON object per line, without an array around them",
            ),
            (
                r#"{"id":"1","query":"a","relevant":["send"],"draft":true}"#,
                "q.jsonl:1: query `1`: it is a draft that nobody has reviewed: make `query` what a user would say and `relevant` the tools that answer it, then remove `\"draft\": true`",
            ),
            ("\n", "q.jsonl: no query; write one JSON object per line"),
        ];
        for (lines, expected) in table {
            assert_eq!(refusal(lines), expected);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_line() {
        let bytes = b"{\"id\":\"1\",\"query\":\"a\",\"relevant\":[]}\n\xff\n";
        let tools = Source { path: Path::new("catalog.json"), bytes: TOOLS.as_bytes() };
        let lines = Source { path: Path::new("q.jsonl"), bytes };
        let error = Collection::from_bytes("c", Origin::Public, tools, lines).unwrap_err();
        assert_eq!(error.to_string(), "q.jsonl:2: the line is not valid UTF-8");
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let collection = collection("\u{feff}{\"id\":\"1\",\"query\":\"a\",\"relevant\":[]}\r\n").unwrap();
        assert_eq!(collection.queries.len(), 1);
        // Nor is it a part of what is measured, as are the ends of lines that git may write.
        let inputs = |lines: &str| self::collection(lines).unwrap().inputs_sha256;
        let plain = "{\"id\":\"1\",\"query\":\"a\",\"relevant\":[]}\n\n";
        assert_eq!(inputs(&format!("\u{feff}{}", plain.replace('\n', "\r\n"))), inputs(plain));
        assert_ne!(inputs(&plain.replace("\n\n", "\n")), inputs(plain));
    }

    #[test]
    fn tools_of_one_name_and_server_go_by_their_ids() {
        let tools = r#"[{"name":"a","server":"s"},{"name":"a","server":"s","inputSchema":{"properties":{"p":{}}}},{"name":"s:b"},{"name":"b","server":"s"},{"name":"b","server":"t"}]"#;
        let source = Source { path: Path::new("catalog.json"), bytes: tools.as_bytes() };
        let query = br#"{"id":"1","query":"x","relevant":["s:b"]}"#;
        let lines = Source { path: Path::new("q.jsonl"), bytes: query };
        let found = Collection::from_bytes("c", Origin::Public, source, lines).unwrap();
        let items = found.catalog.items();
        for (item, number) in items.iter().zip(0..) {
            let expected = match (item.name.as_str(), item.server.as_deref()) {
                ("s:b", None) => "s:b",
                ("b", Some("t")) => "t:b",
                _ => &item.id,
            };
            assert_eq!(found.tool_handle(number), expected);
        }
        assert_eq!(items[found.queries[0].groups[0][0] as usize].name, "s:b", "an exact name comes first");
        // Each is written so that it can be read back, and is another answer.
        let query = |number: u32| Query { groups: vec![vec![number]], ..found.queries[0].clone() };
        let queries: Vec<Query> = (0..5).map(query).collect();
        let mut digests = BTreeSet::new();
        for query in &queries {
            let lines = queries_jsonl(&found, std::iter::once(query), |_| Vec::new());
            let read = Source { path: Path::new("q.jsonl"), bytes: lines.as_bytes() };
            let read = Collection::from_bytes("c", Origin::Public, source, read).unwrap();
            assert_eq!(read.queries[0].groups, query.groups, "{lines}");
            digests.extend(read.digests().into_values());
        }
        assert_eq!(digests.len(), 5);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in any::<Vec<u8>>(), line in "\\{\"id\":\"\\PC{0,3}\",\"query\":\"\\PC{0,5}\",\"relevant\":\\[\"\\PC{0,8}\"\\]\\}") {
            let tools = Source { path: Path::new("catalog.json"), bytes: TOOLS.as_bytes() };
            for bytes in [bytes.as_slice(), line.as_bytes()] {
                Collection::from_bytes("c", Origin::Public, tools, Source { path: Path::new("q.jsonl"), bytes }).ok();
                Collection::from_bytes("c", Origin::Public, Source { path: Path::new("c.json"), bytes }, tools).ok();
            }
        }

        #[test]
        fn queries_survive_being_written(
            text in "\\PC{1,20}x",
            groups in proptest::sample::subsequence(vec![0u32, 1, 2, 3], 0..=4),
            split in 0usize..4,
        ) {
            let mut written = collection(r#"{"id":"1","query":"a","relevant":[],"lang":"en"}"#).unwrap();
            let (one, others) = groups.split_at(split.min(groups.len()));
            written.queries[0].text = text;
            written.queries[0].groups =
                others.iter().map(|item| vec![*item]).chain((!one.is_empty()).then(|| one.to_vec())).collect();
            let lines = queries_jsonl(&written, written.queries.iter(), |_| Vec::new());
            prop_assert_eq!(collection(&lines).unwrap().queries, written.queries);
        }
    }
}
