//! A session: everything that compiling a conversation again needs, in one file.
//!
//! The file is JSON with one event, artifact, content, fact or episode per line, so that two files can be compared by
//! eye. Contents are separate from artifacts: bytes that two handles share are written once. Text is written as text,
//! other bytes as base64.
//!
//! Reading is strict: unknown fields, a wrong hash or size, content that no artifact names, and events that break a
//! rule of [`Transcript`] are refused with the file and the place. The adapters read sessions of other programs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::{
    ArtifactStore, EpisodicStore, FactStore, MemoryArtifacts, MemoryEpisodes, MemoryFacts, StoreError, Stores, is_taken,
};
use crate::adapters::{Conversation, SESSION_FILE};
use crate::event::{ArtifactRef, ContentHash, ContextItem, Episode, Fact, Transcript, TranscriptError};
use contextweaver_core::files::{ReadError, WriteError, replace_file_with};

/// The version of the format that this program reads and writes.
pub(super) const SCHEMA: u32 = 1;

/// A conversation together with what it stored.
#[derive(Debug, Default)]
pub struct Session {
    /// The origin of the conversation, for people.
    pub source: String,
    /// The events of the conversation.
    pub transcript: Transcript,
    /// The contents that were kept out of prompts.
    pub artifacts: MemoryArtifacts,
    /// The remembered statements.
    pub facts: MemoryFacts,
    /// The summaries of earlier events.
    pub episodes: MemoryEpisodes,
}

/// How a conversation shows the results whose content is an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Results {
    /// As prompts show them, summarised where they are large.
    Shown,
    /// With their whole content.
    Whole,
}

/// A session could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file is of another kind.
    #[error("{}: not a session: {reason}", path.display())]
    Foreign {
        /// The path of the file.
        path: PathBuf,
        /// What tells that it is not one.
        reason: String,
    },
    /// The file is a session, and its JSON is damaged.
    #[error("{}: not a session: {reason}", path.display())]
    Syntax {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong, with line and column.
        reason: String,
    },
    /// The file is in another version of the format.
    #[error("{}: this session has schema {found}; this version reads schema {SCHEMA}", path.display())]
    Schema {
        /// The path of the file.
        path: PathBuf,
        /// The version that the file states.
        found: u32,
    },
    /// The events are not a transcript.
    #[error("{}: {source}", path.display())]
    Events {
        /// The path of the file.
        path: PathBuf,
        /// The rule that they break.
        source: TranscriptError,
    },
    /// An artifact, a fact or an episode breaks a rule.
    #[error("{}: {reason}", path.display())]
    Content {
        /// The path of the file.
        path: PathBuf,
        /// The artifact, fact or episode, and what is wrong with it.
        reason: String,
    },
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The content of a session file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    format: String,
    schema: u32,
    #[serde(default)]
    source: String,
    events: Vec<ContextItem>,
    #[serde(default)]
    artifacts: Vec<ArtifactRef>,
    #[serde(default)]
    contents: Vec<Content>,
    #[serde(default)]
    facts: Vec<Fact>,
    #[serde(default)]
    episodes: Vec<Episode>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content {
    pub(super) content_hash: ContentHash,
    body: Body,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Body {
    Text(String),
    Base64(String),
}

impl Content {
    /// The bytes, checked against their hash. `place` is the position in messages, from 1.
    pub(super) fn bytes(self, place: usize) -> Result<Arc<[u8]>, String> {
        let content: Arc<[u8]> = match self.body {
            Body::Text(text) => text.into_bytes().into(),
            Body::Base64(code) => {
                STANDARD.decode(code).map_err(|error| format!("content {place}: not base64: {error}"))?.into()
            }
        };
        let (found, stored) = (ContentHash::of(&content), self.content_hash);
        if found != stored {
            return Err(format!("content {place} was altered: it has the hash {found}, not {stored}"));
        }
        Ok(content)
    }
}

/// Checks a reference against the content that it names.
pub(super) fn agrees(reference: &ArtifactRef, content: Option<&Arc<[u8]>>) -> Result<(), String> {
    let ArtifactRef { handle, content_hash, size_bytes, .. } = reference;
    match content {
        None => Err(format!("artifact `{handle}`: its content {content_hash} is not in the file")),
        Some(content) if *size_bytes != content.len() as u64 => {
            Err(format!("artifact `{handle}`: size_bytes is {size_bytes}, but its content has {}", content.len()))
        }
        Some(_) => Ok(()),
    }
}

/// The members by which a file is recognised, whatever else it holds.
#[derive(Deserialize)]
struct Head {
    format: String,
    schema: u32,
}

impl Session {
    /// The value of the member `format` of a session file, by which it is recognised.
    pub const FORMAT: &str = SESSION_FILE;

    /// Reads a session from a file.
    ///
    /// # Errors
    /// As [`Session::parse`], and [`SessionError::Read`] when the file cannot be read.
    pub fn load(path: &Path) -> Result<Self, SessionError> {
        let bytes = std::fs::read(path).map_err(ReadError::at(path))?;
        Self::parse(&bytes, path)
    }

    /// Reads a session from the bytes of a file; `path` is what errors name.
    ///
    /// # Errors
    /// [`SessionError`] with the first broken rule, the file and the place.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, SessionError> {
        let wire: Wire = serde_json::from_slice(bytes).map_err(|error| {
            // Another version has other fields: its number says more than the first unknown field.
            match serde_json::from_slice::<Head>(bytes) {
                Ok(head) if head.format == Self::FORMAT && head.schema != SCHEMA => {
                    SessionError::Schema { path: path.to_owned(), found: head.schema }
                }
                Ok(head) if head.format != Self::FORMAT => foreign(path, &head.format),
                Err(_) if !is_begun(bytes) => {
                    let reason = format!("it has no `format` `{}`", Self::FORMAT);
                    SessionError::Foreign { path: path.to_owned(), reason }
                }
                _ => SessionError::Syntax { path: path.to_owned(), reason: error.to_string() },
            }
        })?;
        if wire.format != Self::FORMAT {
            return Err(foreign(path, &wire.format));
        }
        if wire.schema != SCHEMA {
            return Err(SessionError::Schema { path: path.to_owned(), found: wire.schema });
        }
        let content = |reason: String| SessionError::Content { path: path.to_owned(), reason };
        distinct("fact", wire.facts.iter().map(|fact| fact.key.as_str())).map_err(content)?;
        distinct("episode", wire.episodes.iter().map(|episode| episode.id.as_str())).map_err(content)?;
        let session = Self {
            source: wire.source,
            transcript: Transcript::new(wire.events)
                .map_err(|source| SessionError::Events { path: path.to_owned(), source })?,
            artifacts: artifacts(wire.artifacts, wire.contents).map_err(content)?,
            ..Self::default()
        };
        wire.facts.into_iter().try_for_each(|fact| session.facts.put(fact))?;
        wire.episodes.into_iter().try_for_each(|episode| session.episodes.put(episode))?;
        Ok(session)
    }

    /// Writes the session to a file, which is replaced whole or not at all.
    ///
    /// # Errors
    /// [`SessionError::Write`]; what was there before is still there.
    pub fn save(&self, path: &Path) -> Result<(), SessionError> {
        Ok(replace_file_with(path, |out| self.write(out))?)
    }

    /// Writes the session as the content of a file.
    ///
    /// # Errors
    /// The error of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_from(&self.source, out)
    }

    /// The same, as if it came from `source`.
    pub(crate) fn write_from(&self, source: &str, out: &mut dyn Write) -> io::Result<()> {
        let references = self.artifacts.list().map_err(io::Error::other)?;
        let facts = self.facts.all().map_err(io::Error::other)?;
        let episodes = self.episodes.all().map_err(io::Error::other)?;
        write!(out, "{{\n\"format\": \"{}\",\n\"schema\": {SCHEMA},\n\"source\": ", Self::FORMAT)?;
        serde_json::to_writer(&mut *out, source)?;
        lines(out, "events", self.transcript.items().iter())?;
        lines(out, "artifacts", references.iter())?;
        self.write_contents(out, &references)?;
        lines(out, "facts", facts.iter())?;
        lines(out, "episodes", episodes.iter())?;
        out.write_all(b"\n}\n")
    }

    /// Writes each content once, at the first artifact that names it. One at a time is held as JSON.
    fn write_contents(&self, out: &mut dyn Write, references: &[ArtifactRef]) -> io::Result<()> {
        let mut written = BTreeSet::new();
        let fresh = references.iter().filter(|reference| written.insert(&reference.content_hash));
        let mut list = List::open(out, "contents")?;
        for reference in fresh {
            let bytes = self.artifacts.get(&reference.handle).map_err(io::Error::other)?;
            let body = match std::str::from_utf8(&bytes) {
                Ok(text) => Body::Text(text.to_owned()),
                Err(_) => Body::Base64(STANDARD.encode(&bytes)),
            };
            list.item(&Content { content_hash: reference.content_hash.clone(), body })?;
        }
        list.close()
    }

    /// The session as a conversation that an adapter can write. Large results keep their summaries, unless `results`
    /// asks for the whole content; the summary of a result that is not text is kept in any case.
    ///
    /// # Errors
    /// [`StoreError`] when an artifact was altered or a store failed.
    pub fn conversation(&self, results: Results) -> Result<Conversation, StoreError> {
        let mut events = Vec::with_capacity(self.transcript.len());
        for item in self.transcript.items() {
            let mut item = item.clone();
            if let (Results::Whole, Some(artifact)) = (results, &item.artifact)
                && let Ok(text) = String::from_utf8(self.artifacts.get(&artifact.handle)?.to_vec())
            {
                item.text = text;
            }
            item.artifact = None;
            events.push(item.into());
        }
        Ok(Conversation { events, facts: self.facts.all()?, episodes: self.episodes.all()?, ..Conversation::default() })
    }

    /// A session with everything that four stores hold.
    ///
    /// # Errors
    /// [`StoreError`] when a store failed, or an artifact was altered.
    pub fn from_stores(source: impl Into<String>, stores: &Stores) -> Result<Self, StoreError> {
        let session = Self { source: source.into(), transcript: stores.events.transcript()?, ..Self::default() };
        copy_artifacts(stores.artifacts.as_ref(), &session.artifacts)?;
        copy_memory((stores.facts.as_ref(), stores.episodes.as_ref()), (&session.facts, &session.episodes))?;
        Ok(session)
    }

    /// Copies the session into four stores: the events after those that are there, facts and episodes in place of what has
    /// the same key or id.
    ///
    /// # Errors
    /// [`StoreError::Event`] when an event's id is taken, [`StoreError::Taken`] when a handle has other content there: then
    /// nothing is copied. [`StoreError`] when a store failed; what was copied before that stays.
    pub fn copy_to(&self, stores: &Stores) -> Result<(), StoreError> {
        let references = self.artifacts.list()?;
        let mut log = stores.events.transcript()?;
        self.transcript.items().iter().try_for_each(|item| log.push(item.bare()))?;
        for ArtifactRef { handle, content_hash, .. } in &references {
            if is_taken(stores.artifacts.as_ref(), handle, || content_hash.clone())? {
                return Err(StoreError::Taken(handle.clone()));
            }
        }
        // Artifacts first: an event in the log never names content that is not there yet.
        copy_artifacts(&self.artifacts, stores.artifacts.as_ref())?;
        stores.events.append_all(self.transcript.items())?;
        copy_memory((&self.facts, &self.episodes), (stores.facts.as_ref(), stores.episodes.as_ref()))
    }
}

fn foreign(path: &Path, format: &str) -> SessionError {
    let reason = format!("its format is `{format}`; a session has `{SESSION_FILE}`");
    SessionError::Foreign { path: path.to_owned(), reason }
}

/// Whether a file that cannot be read begins as [`Session::write`] begins.
fn is_begun(bytes: &[u8]) -> bool {
    const LOOKED_AT: usize = 100;
    let start = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    memchr::memmem::find(start, format!("\"{SESSION_FILE}\"").as_bytes()).is_some()
}

fn copy_artifacts(from: &dyn ArtifactStore, to: &dyn ArtifactStore) -> Result<(), StoreError> {
    from.list()?.into_iter().try_for_each(|ArtifactRef { handle, media_type, label, .. }| {
        to.put(&handle, &from.get(&handle)?, &media_type, &label).map(drop)
    })
}

/// What a conversation remembers.
type Remembered<'s> = (&'s dyn FactStore, &'s dyn EpisodicStore);

fn copy_memory((facts, episodes): Remembered<'_>, (to_facts, to_episodes): Remembered<'_>) -> Result<(), StoreError> {
    facts.all()?.into_iter().try_for_each(|fact| to_facts.put(fact))?;
    episodes.all()?.into_iter().try_for_each(|episode| to_episodes.put(episode))
}

/// A member of the file that is an array with one item per line.
struct List<'a> {
    out: &'a mut dyn Write,
    separator: &'static str,
}

impl<'a> List<'a> {
    fn open(out: &'a mut dyn Write, name: &str) -> io::Result<Self> {
        write!(out, ",\n\"{name}\": [")?;
        Ok(Self { out, separator: "\n" })
    }

    fn item(&mut self, item: &impl Serialize) -> io::Result<()> {
        self.out.write_all(self.separator.as_bytes())?;
        self.separator = ",\n";
        Ok(serde_json::to_writer(&mut *self.out, item)?)
    }

    fn close(self) -> io::Result<()> {
        let end: &[u8] = if self.separator == "\n" { b"]" } else { b"\n]" };
        self.out.write_all(end)
    }
}

fn lines<'i, T: Serialize + 'i>(out: &mut dyn Write, name: &str, items: impl Iterator<Item = &'i T>) -> io::Result<()> {
    let mut list = List::open(out, name)?;
    for item in items {
        list.item(item)?;
    }
    list.close()
}

/// Checks artifacts and contents against each other and puts them into a store. Positions in messages count from 1.
fn artifacts(references: Vec<ArtifactRef>, contents: Vec<Content>) -> Result<MemoryArtifacts, String> {
    let mut bytes: BTreeMap<ContentHash, Arc<[u8]>> = BTreeMap::new();
    for (place, content) in (1..).zip(contents) {
        let hash = content.content_hash.clone();
        if bytes.insert(hash.clone(), content.bytes(place)?).is_some() {
            return Err(format!("content {place}: the hash {hash} appears twice"));
        }
    }
    distinct("artifact", references.iter().map(|reference| reference.handle.as_str()))?;
    let mut unused: BTreeSet<ContentHash> = bytes.keys().cloned().collect();
    let store = MemoryArtifacts::default();
    for reference in references {
        let content = bytes.get(&reference.content_hash);
        agrees(&reference, content)?;
        unused.remove(&reference.content_hash);
        if let Some(content) = content {
            store.insert(reference.clone(), content);
        }
    }
    match unused.pop_first() {
        Some(hash) => Err(format!("the content {hash} belongs to no artifact")),
        None => Ok(store),
    }
}

/// Refuses the second of two equal names.
fn distinct<'n>(what: &str, names: impl Iterator<Item = &'n str>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(format!("{what} `{name}` appears twice"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Handle, ItemKind, Sensitivity};

    fn session() -> Session {
        let session = Session { source: "a test".to_owned(), ..Session::default() };
        for (handle, bytes) in [("a", &b"line\n"[..]), ("b", b"line\n"), ("c", b"\xff\x00"), ("d", b"")] {
            session.artifacts.put(&Handle::new(handle), bytes, "text/plain", "why").unwrap();
        }
        let call = ContextItem::new("tc1", ItemKind::ToolCall, "look(\"é\")");
        let mut result =
            ContextItem::new("r1", ItemKind::ToolResult, "2 rows").under("tc1").with_sensitivity(Sensitivity::Internal);
        result.metadata.insert("z".to_owned(), serde_json::json!({"b": 1, "a": [null, "x"]}));
        result.artifact = Some(session.artifacts.reference(&Handle::new("a")).unwrap());
        session.facts.put(Fact { key: "zone".to_owned(), value: "UTC".to_owned() }).unwrap();
        session.episodes.put(Episode { id: "e2".to_owned(), summary: "first".to_owned() }).unwrap();
        session.episodes.put(Episode { id: "e1".to_owned(), summary: "second".to_owned() }).unwrap();
        Session { transcript: Transcript::new(vec![call, result]).unwrap(), ..session }
    }

    fn saved(session: &Session) -> String {
        let mut bytes = Vec::new();
        session.write(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_file_holds_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.json");
        session().save(&path).unwrap();
        assert_eq!(saved(&Session::load(&path).unwrap()), saved(&session()));
        let error = session().save(&folder.path().join("no/session.json")).unwrap_err().to_string();
        assert!(error.contains("session.json: not written: No such file or directory"), "{error}");
    }

    #[test]
    fn the_file_is_read_by_people_too() {
        insta::assert_snapshot!(saved(&session()), @r#"
        {
        "format": "contextweaver session",
        "schema": 1,
        "source": "a test",
        "events": [
        {"id":"tc1","kind":"tool_call","text":"look(\"é\")","sensitivity":"public"},
        {"id":"r1","kind":"tool_result","text":"2 rows","parent_id":"tc1","sensitivity":"internal","metadata":{"z":{"b":1,"a":[null,"x"]}},"artifact":{"handle":"a","media_type":"text/plain","size_bytes":5,"label":"why","content_hash":"c73b73af8851e9e91bc6b4dc12e7dace0a2bfb931c1d0b8b36ef367319f58cd1"}}
        ],
        "artifacts": [
        {"handle":"a","media_type":"text/plain","size_bytes":5,"label":"why","content_hash":"c73b73af8851e9e91bc6b4dc12e7dace0a2bfb931c1d0b8b36ef367319f58cd1"},
        {"handle":"b","media_type":"text/plain","size_bytes":5,"label":"why","content_hash":"c73b73af8851e9e91bc6b4dc12e7dace0a2bfb931c1d0b8b36ef367319f58cd1"},
        {"handle":"c","media_type":"text/plain","size_bytes":2,"label":"why","content_hash":"ea5dbf9596d187e9500f23e9a680109475341cf4e81f7e043f7d97152c10772f"},
        {"handle":"d","media_type":"text/plain","size_bytes":0,"label":"why","content_hash":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
        ],
        "contents": [
        {"content_hash":"c73b73af8851e9e91bc6b4dc12e7dace0a2bfb931c1d0b8b36ef367319f58cd1","body":{"text":"line\n"}},
        {"content_hash":"ea5dbf9596d187e9500f23e9a680109475341cf4e81f7e043f7d97152c10772f","body":{"base64":"/wA="}},
        {"content_hash":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","body":{"text":""}}
        ],
        "facts": [
        {"key":"zone","value":"UTC"}
        ],
        "episodes": [
        {"id":"e2","summary":"first"},
        {"id":"e1","summary":"second"}
        ]
        }
        "#);
    }

    #[test]
    fn what_is_loaded_is_what_was_saved() {
        for one in [session(), Session::default()] {
            let text = saved(&one);
            let loaded = Session::parse(text.as_bytes(), Path::new("s.json")).unwrap();
            assert_eq!(saved(&loaded), text);
            assert_eq!(loaded.transcript, one.transcript);
            for reference in one.artifacts.list().unwrap() {
                assert_eq!(
                    loaded.artifacts.get(&reference.handle).unwrap(),
                    one.artifacts.get(&reference.handle).unwrap()
                );
            }
        }
    }

    #[test]
    fn stores_give_a_session_and_take_one() {
        let one = session();
        let stores = Stores::default();
        one.copy_to(&stores).unwrap();
        let back = Session::from_stores("a test", &stores).unwrap();
        assert_eq!(saved(&back), saved(&one));
        let twice = one.copy_to(&stores).unwrap_err();
        assert_eq!(twice.to_string(), "event 3: event 1 already has the id `tc1`; ids must be unique");
    }

    #[test]
    fn what_is_no_session_is_refused_by_file_and_place() {
        let good = saved(&session());
        let refused = |from: &str, to: &str| {
            assert!(good.contains(from), "{from}");
            let text = good.replacen(from, to, 1);
            Session::parse(text.as_bytes(), Path::new("s.json")).unwrap_err().to_string()
        };
        let table = [
            ("\"schema\": 1", "\"schema\": 2"),
            ("\"schema\": 1", "\"schema\": 2, \"later\": 0"),
            ("\"schema\": 1", "\"schema\": 1, \"later\": 0"),
            ("contextweaver session", "other"),
            ("\"line\\n\"", "\"line\""),
            ("\"/wA=\"", "\"/w=\""),
            ("\"size_bytes\":2", "\"size_bytes\":3"),
            ("\"handle\":\"c\"", "\"handle\":\"b\""),
            ("\"id\":\"e2\"", "\"id\":\"e1\""),
            ("\"id\":\"tc1\"", "\"id\":\"tc2\""),
            ("\"kind\":\"tool_call\"", "\"kind\":\"tool\""),
            ("\n}\n", ""),
            ("\"format\": \"contextweaver session\"", "\"messages\": []"),
        ];
        let messages: Vec<String> = table.iter().map(|(from, to)| refused(from, to)).collect();
        insta::assert_snapshot!(messages.join("\n"), @r"
        s.json: this session has schema 2; this version reads schema 1
        s.json: this session has schema 2; this version reads schema 1
        s.json: not a session: unknown field `later`, expected one of `format`, `schema`, `source`, `events`, `artifacts`, `contents`, `facts`, `episodes` at line 3 column 20
        s.json: not a session: its format is `other`; a session has `contextweaver session`
        s.json: content 1 was altered: it has the hash 38a9c1e721584da284b90ceea4ed7eb8db15ac4ea86c2c75ec925d5f8799fcf0, not c73b73af8851e9e91bc6b4dc12e7dace0a2bfb931c1d0b8b36ef367319f58cd1
        s.json: content 2: not base64: Invalid padding
        s.json: artifact `c`: size_bytes is 3, but its content has 2
        s.json: artifact `b` appears twice
        s.json: episode `e1` appears twice
        s.json: event 2 (`r1`): its parent `tc1` is not in the log
        s.json: not a session: unknown variant `tool`, expected one of `user_turn`, `agent_msg`, `tool_call`, `tool_result`, `doc_snippet`, `retrieved_doc`, `memory_fact`, `plan_state`, `policy` at line 6 column 25
        s.json: not a session: EOF while parsing an object at line 26 column 1
        s.json: not a session: it has no `format` `contextweaver session`
        ");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = Session::load(Path::new("no/such.json")).unwrap_err().to_string();
        assert!(error.starts_with("no/such.json: "), "{error}");
        let deep = format!("{{\"format\": \"{}\", \"schema\": 1, \"events\": {}", Session::FORMAT, "[".repeat(100_000));
        for bytes in [&b""[..], b"\xff", b"[]", b"null", deep.as_bytes(), b"{\"format\": \"\xff\"}"] {
            let error = Session::parse(bytes, Path::new("s.json")).unwrap_err().to_string();
            assert!(error.starts_with("s.json: not a session: "), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_come_back(contents in proptest::collection::vec(proptest::collection::vec(0u8.., 0..40), 0..6), text in "\\PC*") {
            let one = Session { source: text, ..Session::default() };
            for (place, bytes) in contents.iter().enumerate() {
                one.artifacts.put(&Handle::new(format!("h{place}")), bytes, "", "").unwrap();
            }
            let loaded = Session::parse(saved(&one).as_bytes(), Path::new("s.json")).unwrap();
            proptest::prop_assert_eq!(&loaded.source, &one.source);
            for (place, bytes) in contents.iter().enumerate() {
                proptest::prop_assert_eq!(&*loaded.artifacts.get(&Handle::new(format!("h{place}"))).unwrap(), &bytes[..]);
            }
        }
    }
}
