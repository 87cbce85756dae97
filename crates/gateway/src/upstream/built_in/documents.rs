//! A folder of texts as a server: its tools search and read.
//!
//! A search looks first whether the listing of the folder (paths, sizes and times of the documents) is still that of last
//! time, and reads all of them again where it is not. So a change is found at the next search, unless it leaves the size and
//! the time of a file as they were. The ranking is that of tools, by words alone, over passages in place of tools.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::folder::{self, LeftOut, Listing};
use super::passages::{Passage, passages};
use super::{BuiltInError, beginning, reading};
use crate::upstream::in_process::Stop;
use crate::upstream::toolset::{Tool, Toolset};
use contextweaver_core::catalog::{Catalog, SelectableItem};
use contextweaver_routing::{Depth, Index, RoutingConfig, Scratch};

/// Passages of a folder, at most.
const MOST_PASSAGES: usize = 100_000;

/// Passages of one answer, at most, and when the call does not say.
const MOST_FOUND: usize = 20;
const USUALLY_FOUND: usize = 5;

/// Bytes of a passage that an answer shows, at most: a line may be longer than a passage ought to be.
const MOST_SHOWN: usize = 4_000;

/// Bytes of a document that one answer to `read` shows, at most.
const MOST_READ: usize = 64 * 1024;

/// Characters of a query, at most.
const MOST_QUERY: usize = 1_000;

/// Between two looks whether another call has read the folder.
const PAUSE: Duration = Duration::from_millis(5);

/// Where a passage stands.
struct Place {
    path: Arc<str>,
    heading: String,
    first: usize,
    last: usize,
}

/// The passages of a folder as it was listed, with their index.
struct Shelf {
    listing: Listing,
    left_out: LeftOut,
    places: Vec<Place>,
    /// The passages as items, numbered as the places, and the index over them; none where there are no passages.
    ranked: Option<(Catalog, Index)>,
}

/// The documents of one folder.
struct Documents {
    folder: PathBuf,
    shelf: Mutex<Option<Arc<Shelf>>>,
}

/// The server of a folder.
///
/// # Errors
/// [`BuiltInError`]: it is not a folder that can be read.
pub(crate) fn server(root: &Path) -> Result<Toolset, BuiltInError> {
    folder::check(root)?;
    let documents = Arc::new(Documents { folder: root.to_owned(), shelf: Mutex::default() });
    let searched = Arc::clone(&documents);
    let search = Tool::long("search", SEARCH, search_schema(), move |arguments, stop| searched.search(arguments, stop))
        .with("outputSchema", found_schema())
        .with("annotations", reading())
        .with("tags", json!(["documents", "search"]));
    let read = Tool::long("read", READ, read_schema(), move |arguments, _| documents.read(arguments))
        .with("outputSchema", text_schema())
        .with("annotations", reading())
        .with("tags", json!(["documents", "read"]));
    Ok(Toolset::of("documents", env!("CARGO_PKG_VERSION"), [search, read]))
}

/// What of a folder is not served: it is listed and read once, and nothing is kept.
///
/// # Errors
/// As [`server`].
pub(crate) fn look(root: &Path) -> Result<LeftOut, BuiltInError> {
    folder::check(root)?;
    let listing = Listing::of(root);
    let mut left_out = listing.left_out.clone();
    let mut room = MOST_PASSAGES;
    for entry in &listing.entries {
        match folder::text_of(root, &entry.path) {
            Ok(text) => drop(cut(&entry.path, &text, &mut room, &mut left_out)),
            Err(error) => left_out.add(&entry.path, error),
        }
    }
    Ok(left_out)
}

/// The passages of a document, where there is `room` for them.
fn cut<'t>(path: &str, text: &'t str, room: &mut usize, left_out: &mut LeftOut) -> Vec<Passage<'t>> {
    let name = path.to_ascii_lowercase();
    let is_markdown = [".md", ".mdx", ".markdown"].iter().any(|ending| name.ends_with(ending));
    if let Some(found) = passages(text, is_markdown, *room) {
        *room -= found.len();
        return found;
    }
    left_out.add(path, format_args!("with those before it there are more than {MOST_PASSAGES} passages"));
    Vec::new()
}

impl Shelf {
    /// Reads and indexes the documents of a listing.
    fn read(folder: &Path, listing: Listing, stop: &Stop) -> Result<Self, String> {
        let mut left_out = listing.left_out.clone();
        let (mut places, mut items, mut room) = (Vec::new(), Vec::new(), MOST_PASSAGES);
        for entry in &listing.entries {
            if stop.is_due() {
                return Err(too_slow(stop));
            }
            let text = match folder::text_of(folder, &entry.path) {
                Ok(text) => text,
                Err(error) => {
                    left_out.add(&entry.path, error);
                    continue;
                }
            };
            let path: Arc<str> = Arc::from(entry.path.as_str());
            for Passage { heading, first, last, text } in cut(&entry.path, &text, &mut room, &mut left_out) {
                // Items are numbered in the order of their ids.
                let id = format!("{:08}", items.len());
                items.push(SelectableItem::tool(&id, "documents", &format!("{path} {heading}"), text));
                places.push(Place { path: Arc::clone(&path), heading, first, last });
            }
        }
        if !left_out.is_empty() {
            tracing::warn!(folder = %folder.display(), %left_out, "documents that are not searched");
        }
        let config = RoutingConfig { semantic: 0.0, ..RoutingConfig::default() };
        // Only an empty catalog is refused: the ids are those of here.
        let ranked = Catalog::new(items).ok().map(|catalog| {
            let index = Index::build(&catalog, &config);
            (catalog, index)
        });
        Ok(Self { listing, left_out, places, ranked })
    }
}

impl Documents {
    /// The passages of the folder as it is now. One call reads it, and others wait for that.
    fn shelf(&self, stop: &Stop) -> Result<Arc<Shelf>, String> {
        folder::check(&self.folder).map_err(|error| error.to_string())?;
        let listing = Listing::of(&self.folder);
        let mut shelf = loop {
            match self.shelf.try_lock() {
                Ok(shelf) => break shelf,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if stop.is_due() => return Err(too_slow(stop)),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            }
        };
        if let Some(shelf) = shelf.as_ref().filter(|shelf| shelf.listing == listing) {
            return Ok(Arc::clone(shelf));
        }
        let read = Arc::new(Shelf::read(&self.folder, listing, stop)?);
        *shelf = Some(Arc::clone(&read));
        Ok(read)
    }

    fn search(&self, arguments: &Map<String, Value>, stop: &Stop) -> Result<Value, String> {
        let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
        let limit = number(arguments, "limit").unwrap_or(USUALLY_FOUND).min(MOST_FOUND);
        let shelf = self.shelf(stop)?;
        let mut found = Vec::new();
        if let Some((catalog, index)) = &shelf.ranked {
            for hit in index.search(query, Depth::Exactly(limit), |_| true, &mut Scratch::default()) {
                let at = hit.item as usize;
                let Some((place, item)) = shelf.places.get(at).zip(catalog.items().get(at)) else { continue };
                let (text, is_whole) = beginning(&item.description, MOST_SHOWN);
                found.push(json!({
                    "path": &*place.path,
                    "heading": place.heading,
                    "first_line": place.first,
                    "last_line": place.last,
                    "text": if is_whole { text.to_owned() } else { format!("{text}…") },
                }));
            }
        }
        let mut result = Map::new();
        if found.is_empty() {
            let documents = shelf.listing.entries.len();
            let note = format!("no passage of the {documents} documents shares a word with the query");
            result.insert("note".to_owned(), note.into());
        } else if !shelf.left_out.is_empty() {
            result.insert("note".to_owned(), shelf.left_out.to_string().into());
        }
        result.insert("passages".to_owned(), found.into());
        Ok(result.into())
    }

    fn read(&self, arguments: &Map<String, Value>) -> Result<Value, String> {
        let path = arguments.get("path").and_then(Value::as_str).unwrap_or_default();
        let text = folder::text_of(&self.folder, path).map_err(|error| error.to_string())?;
        let lines: Vec<&str> = text.lines().collect();
        let first = number(arguments, "first_line").unwrap_or(1);
        let last = number(arguments, "last_line").unwrap_or(usize::MAX).min(lines.len());
        if lines.is_empty() {
            return Ok(format!("{path} is empty").into());
        }
        if first > last {
            return Err(format!(
                "`{path}` has {} lines; ask for lines from 1 to that, the first before the last",
                lines.len()
            ));
        }
        let (mut shown, mut end) = (String::new(), first - 1);
        for line in &lines[first - 1..last] {
            if end >= first && shown.len() + line.len() >= MOST_READ {
                break;
            }
            shown.push_str(beginning(line, MOST_READ).0);
            shown.push('\n');
            end += 1;
        }
        let mut head = format!("{path}, lines {first} to {end} of {}", lines.len());
        if end < last {
            head += &format!("; the next: first_line = {}", end + 1);
        }
        if lines[first - 1..end].iter().any(|line| line.len() > MOST_READ) {
            head += &format!("; a line is cut after {MOST_READ} bytes");
        }
        Ok(format!("{head}\n\n{shown}").into())
    }
}

fn number(arguments: &Map<String, Value>, name: &str) -> Option<usize> {
    arguments.get(name).and_then(Value::as_u64).map(|number| usize::try_from(number).unwrap_or(usize::MAX).max(1))
}

fn too_slow(stop: &Stop) -> String {
    let seconds = stop.limit().as_secs_f64();
    format!(
        "reading the folder takes longer than {seconds} s; raise `timeout` of this server, or name a narrower folder"
    )
}

const SEARCH: &str = "Search the documents of a folder. Gives the passages that fit the query best, each with its document, heading and lines.";

const READ: &str = "Read a document of the folder, or some of its lines.";

fn search_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string", "minLength": 1, "maxLength": MOST_QUERY,
                "description": "What you look for, in words that the documents may have.",
            },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": MOST_FOUND,
                "description": format!("Passages at most; {USUALLY_FOUND} by default."),
            },
        },
        "required": ["query"],
        "additionalProperties": false,
    })
}

fn found_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "passages": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "heading": {"type": "string"},
                        "first_line": {"type": "integer"},
                        "last_line": {"type": "integer"},
                        "text": {"type": "string"},
                    },
                    "required": ["path", "heading", "first_line", "last_line", "text"],
                },
            },
            "note": {"type": "string"},
        },
        "required": ["passages"],
    })
}

fn read_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {
                "type": "string", "minLength": 1, "maxLength": 4096,
                "description": "The path of the document below the folder, as `search` gives it.",
            },
            "first_line": {"type": "integer", "minimum": 1, "description": "Where to begin; 1 by default."},
            "last_line": {"type": "integer", "minimum": 1, "description": "Where to end; the end by default."},
        },
        "required": ["path"],
        "additionalProperties": false,
    })
}

fn text_schema() -> Value {
    json!({"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]})
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn documents(files: &[(&str, &str)]) -> (tempfile::TempDir, Documents) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let documents = Documents { folder: folder.path().to_owned(), shelf: Mutex::default() };
        (folder, documents)
    }

    fn ever() -> Stop {
        Stop::after(Duration::MAX)
    }

    fn searched(documents: &Documents, arguments: &Value) -> Value {
        documents.search(arguments.as_object().unwrap(), &ever()).unwrap()
    }

    #[test]
    fn the_best_passages_come_first_and_changes_are_found() {
        let (folder, documents) = documents(&[
            ("care.md", "# Care\n\n## Water\n\nWater the fern twice a week.\n\n## Light\n\nKeep it out of the sun.\n"),
            ("price.txt", "A fern costs 12.\n"),
            ("bytes.md", ""),
        ]);
        fs::write(folder.path().join("bytes.md"), b"fern \xff").unwrap();
        let found = searched(&documents, &json!({"query": "how often to water a fern", "limit": 1}));
        insta::assert_snapshot!(found, @r##"{"note":"1 left out: bytes.md: `bytes.md` is not UTF-8","passages":[{"path":"care.md","heading":"Care > Water","first_line":1,"last_line":5,"text":"# Care\n\n## Water\n\nWater the fern twice a week."}]}"##);
        assert_eq!(searched(&documents, &json!({"query": "fern"}))["passages"].as_array().unwrap().len(), 2);
        assert!(Arc::ptr_eq(&documents.shelf(&ever()).unwrap(), &documents.shelf(&ever()).unwrap()));
        fs::write(folder.path().join("new.md"), "Repot the cactus in spring.\n").unwrap();
        let found = searched(&documents, &json!({"query": "repot cactus"}));
        assert_eq!(found["passages"][0]["path"], "new.md");
        let none = searched(&documents, &json!({"query": "zeppelin"}));
        assert_eq!(none, json!({"note": "no passage of the 4 documents shares a word with the query", "passages": []}));
    }

    #[test]
    fn a_folder_without_documents_or_that_is_gone_says_so() {
        let (folder, documents) = documents(&[]);
        assert_eq!(searched(&documents, &json!({"query": "x"}))["passages"], json!([]));
        let path = folder.path().to_owned();
        drop(folder);
        let gone = documents.search(json!({"query": "x"}).as_object().unwrap(), &ever()).unwrap_err();
        assert!(
            gone.starts_with(&path.display().to_string())
                && gone.contains(
                    "; name something that \
                                                                                exists"
                ),
            "{gone}"
        );
        assert!(server(&path).is_err());
    }

    #[test]
    fn a_call_that_is_over_reads_nothing() {
        let (_folder, documents) = documents(&[("a.md", "text")]);
        let over = Stop::after(Duration::ZERO);
        let refused = documents.search(json!({"query": "text"}).as_object().unwrap(), &over).unwrap_err();
        assert!(refused.contains("takes longer than 0 s"), "{refused}");
        let _held = documents.shelf.lock().unwrap();
        assert!(documents.shelf(&over).is_err(), "nobody waits for another beyond the end");
    }

    #[test]
    fn lines_of_a_document_are_read_within_bounds() {
        let long = format!("{}\nlast\n", "x".repeat(MOST_READ + 5));
        let many = format!("{}\n", "y".repeat(99)).repeat(2_000);
        let (_folder, documents) =
            documents(&[("a.md", "one\ntwo\nthree"), ("empty.md", ""), ("long.md", &long), ("many.md", &many)]);
        let read = |arguments: Value| {
            let read = documents.read(arguments.as_object().unwrap());
            read.map_or_else(|error| format!("! {error}"), |text| text.as_str().unwrap().to_owned())
        };
        assert_eq!(read(json!({"path": "a.md"})), "a.md, lines 1 to 3 of 3\n\none\ntwo\nthree\n");
        let some = read(json!({"path": "a.md", "first_line": 2, "last_line": 2}));
        assert_eq!(some, "a.md, lines 2 to 2 of 3\n\ntwo\n");
        assert_eq!(read(json!({"path": "empty.md"})), "empty.md is empty");
        assert!(read(json!({"path": "a.md", "first_line": 4})).starts_with("! `a.md` has 3 lines; "));
        assert!(read(json!({"path": "a.md", "first_line": 3, "last_line": 2})).starts_with("! `a.md` has 3 lines; "));
        assert!(read(json!({"path": "../a.md"})).starts_with("! `../a.md` leads out of the folder"));
        let head = |text: String| text.lines().next().unwrap().to_owned();
        assert_eq!(
            head(read(json!({"path": "many.md"}))),
            "many.md, lines 1 to 655 of 2000; the next: first_line = 656"
        );
        let cut = read(json!({"path": "long.md"}));
        assert!(cut.len() < MOST_READ + 200, "{}", cut.len());
        assert_eq!(
            head(cut),
            format!("long.md, lines 1 to 1 of 2; the next: first_line = 2; a line is cut after {MOST_READ} bytes")
        );
    }
}
