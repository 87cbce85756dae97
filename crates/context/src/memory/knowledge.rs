//! Knowledge that lies in documents: a file of Markdown, or a folder with such files (the notes of a repository, an OKF
//! bundle, lessons, an expertise pack). Each document is divided at its headings, and each part of it is a memory.
//!
//! A document says in its front matter what it is about, and that it is not for prompts: it was rejected, nobody has
//! reviewed it yet, or it is too sensitive. No clock is read, so the day until which a document holds is said with each of
//! its parts.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::source::{Entry, MOST_ID, Remembered, name_of};
use crate::clean::{clean, one_line};
use crate::config::ContextConfig;
use crate::event::Sensitivity;
use crate::store::redact;
use crate::summary::{Fenced, Fences, fence, heading};
use contextweaver_core::catalog::front_matter;
use contextweaver_core::files::read_kept_file;
use contextweaver_core::text::{counted, sha256_hex};

/// The bytes of a document at most; a larger one is left out.
const MOST_BYTES: u64 = 1 << 20;

/// The bytes of all documents at most.
const MOST_BYTES_TOGETHER: usize = 16 << 20;

/// The number of documents at most.
const MOST_DOCUMENTS: usize = 2_000;

/// The number of files and folders that are looked at for documents at most.
const MOST_MEMBERS: usize = 100_000;

/// The folders within folders at most.
const DEEPEST: usize = 32;

/// The number of memories at most.
const MOST_ENTRIES: usize = 20_000;

/// Characters of the text of a memory at most: a few of them are within what a prompt has for memories.
const MOST_TEXT: usize = 600;

/// Characters of what a memory is headed by at most, and of one heading in it.
pub(super) const MOST_LABEL: usize = 160;
const MOST_HEADING: usize = 80;

/// Characters of the words by which a memory is found beside its text at most.
const MOST_WORDS: usize = 500;

/// Lines that a record gets about a source at most, and the documents that each names.
const MOST_NOTES: usize = 8;
const MOST_NAMED: usize = 3;

/// Folders with what others have made: packages and what was built.
const OF_OTHERS: [&str; 4] = ["node_modules", "target", "vendor", "venv"];

/// What a folder or bundle says about itself, and is no part of what it knows.
const INDEX: &str = "index.md";
const LOG: &str = "log.md";

/// The states in which nothing may enter a prompt: it was not reviewed yet, or it is not held to be right any more.
const WITHHELD: [&str; 9] = [
    "archived",
    "candidate",
    "deprecated",
    "draft",
    "experimental",
    "ignored",
    "in_review",
    "needs_review",
    "rejected",
];

/// What was read of a source, and what its record says of it.
#[derive(Debug, Default)]
pub(super) struct Knowledge {
    pub(super) entries: Vec<Entry>,
    /// The same without secrets, where that is something else.
    pub(super) masked: Option<Vec<Entry>>,
    pub(super) notes: Vec<String>,
}

/// A text without its secrets. What is divided or cut afterwards is masked before: half a secret is not recognised.
fn masked(text: &str) -> String {
    let text = redact(&clean(text)).text.into_owned();
    // The last line that may be a name.
    let (mut whole, mut last) = (String::with_capacity(text.len()), 0..0);
    for line in text.split_inclusive('\n') {
        let said = without_marks(line);
        // The value may stand in a block of code, or below the mark of an entry.
        if said.trim().is_empty() || fence(said).is_some() {
            whole.push_str(line);
            continue;
        }
        // A prompt shows both on one line, and a secret by its name is found on one line alone. Its value may be a list or a
        // block of YAML.
        let named = whole.get(last.clone()).unwrap_or_default().trim_end().trim_end_matches(['|', '>', '-', '+']);
        let name = named.trim_end().trim_end_matches(['*', '_', '`']);
        // An entry of several words says something about the name.
        let is_value = said.len() == line.trim_start().len() || !said.trim().contains(char::is_whitespace);
        let joined = (is_value && name.ends_with(['=', ':'])).then(|| format!("{name} {said}"));
        let redacted = joined.as_deref().map(redact).filter(|redacted| !redacted.found.is_empty());
        // The name may be a heading, so its line stays one.
        let value = |text: &str| text.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned);
        let (start, shown) = match &redacted {
            None => (whole.len(), line.to_owned()),
            Some(redacted) => match value(&redacted.text) {
                Some(value) => (whole.len(), value),
                None => (last.start, redacted.text.to_string()),
            },
        };
        whole.truncate(start);
        whole.push_str(&shown);
        last = start..whole.len();
    }
    whole
}

/// A line of Markdown or YAML without what makes it an entry of a list, or a part of a quotation.
fn without_marks(line: &str) -> &str {
    static MARKS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\A(?:\s|[-*+>•◦▪‣–—]|\[[ xX]\]|\(?(?:[0-9]{1,4}|[A-Za-z])[.)][ \t])*").ok());
    let end = MARKS.as_ref().and_then(|marks| marks.find(line)).map_or(0, |marks| marks.end());
    line.get(end..).unwrap_or_default()
}

/// Members without the secrets in their texts.
pub(super) fn masked_members(members: &Map<String, Value>) -> Map<String, Value> {
    fn of(value: &Value) -> Value {
        match value {
            Value::String(text) => masked(text).into(),
            Value::Array(values) => values.iter().map(of).collect(),
            Value::Object(members) => masked_members(members).into(),
            other => other.clone(),
        }
    }
    members.iter().map(|(key, value)| (key.clone(), of(value))).collect()
}

/// Whether a name is that of a Markdown file.
pub(super) fn is_document(path: &Path) -> bool {
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    ["md", "markdown"].iter().any(|one| ending.eq_ignore_ascii_case(one))
}

/// The knowledge in a document.
///
/// # Errors
/// Why there is none.
pub(super) fn document(path: &Path) -> Result<Knowledge, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (document, _) = Document::read(&name, path)?;
    known(&[document], LeftOut::default())
}

/// The knowledge in the documents of a folder and of the folders in it. Links are not followed, and what is hidden or was
/// installed or built is left alone.
///
/// # Errors
/// What of the folder cannot be read or is too large, or that nothing was found in it.
pub(super) fn folder(path: &Path) -> Result<Knowledge, String> {
    let found = documents(path)?;
    if found.is_empty() {
        return Err("no Markdown file (*.md) is in the folder".to_owned());
    }
    let unreadable = |(place, path): &&Found| path.to_str().is_none() && place.contains(char::REPLACEMENT_CHARACTER);
    let names: Vec<&str> = found.iter().filter(unreadable).map(|(place, _)| place.as_str()).collect();
    let (mut documents, left_out) = read(&found)?;
    if is_bundle(&documents) {
        documents.retain(|document| !document.is_named(INDEX) && !document.is_named(LOG));
    }
    let mut known = known(&documents, left_out)?;
    if !names.is_empty() {
        known.notes.push(format!("not UTF-8: the names of {}", listed(&names)));
    }
    Ok(known)
}

/// A file by its path in the folder. Of names that are not UTF-8 several may be written in one way.
type Found = (String, PathBuf);

/// The Markdown files of a folder.
fn documents(root: &Path) -> Result<BTreeSet<Found>, String> {
    const FIX: &str = "name a folder in it";
    let mut found = BTreeSet::new();
    let (mut folders, mut members) = (vec![(root.to_owned(), String::new(), 0)], 0);
    while let Some((folder, before, depth)) = folders.pop() {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        for member in std::fs::read_dir(&folder).map_err(failed)? {
            let member = member.map_err(failed)?;
            members += 1;
            if members > MOST_MEMBERS {
                return Err(format!("the folder holds more than {MOST_MEMBERS} files and folders; {FIX}"));
            }
            let name = member.file_name().to_string_lossy().into_owned();
            let (path, inside) = (member.path(), format!("{before}{name}"));
            // The type of a link is that of the link: it may lead out of the folder.
            let kind = member.file_type().map_err(failed)?;
            if name.starts_with('.') || kind.is_dir() && OF_OTHERS.contains(&name.as_str()) {
                continue;
            }
            if kind.is_dir() && depth == DEEPEST {
                return Err(format!("its folders lie more than {DEEPEST} deep; {FIX}"));
            }
            if kind.is_dir() {
                folders.push((path, format!("{inside}/"), depth + 1));
            } else if kind.is_file() && is_document(&path) {
                found.insert((inside, path));
            }
            if found.len() > MOST_DOCUMENTS {
                return Err(format!("the folder holds more than {MOST_DOCUMENTS} Markdown files; {FIX}"));
            }
        }
    }
    Ok(found)
}

/// A document that was read.
struct Document {
    /// Its path in the folder, or its name.
    place: String,
    front: Map<String, Value>,
    body: String,
}

impl Document {
    /// The document, and its bytes.
    fn read(place: &str, path: &Path) -> Result<(Self, usize), String> {
        let bytes = read_kept_file(path, MOST_BYTES).map_err(|error| error.reason.to_string())?;
        let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8; save it as UTF-8".to_owned())?;
        let shown = first_shown(&text);
        if shown.lines().next().is_some_and(|line| line.trim_end() == "+++") {
            return Err("its front matter is TOML; write it as YAML, between two lines `---`".to_owned());
        }
        let is_first = shown.len() == text.trim_start_matches('\u{feff}').len();
        let front = match is_first || begins_with_member(shown) {
            true => front_matter(shown).map_err(|fault| fault.to_string())?,
            false => None,
        };
        let (front, body) = front.unwrap_or_else(|| (Map::new(), text.as_str()));
        let body = without_comments(body).into_owned();
        Ok((Self { place: place.to_owned(), front, body }, text.len()))
    }

    /// The same without its secrets.
    fn masked(&self) -> Self {
        let Self { place, front, body } = self;
        Self { place: masked(place), front: masked_members(front), body: masked(body) }
    }

    fn is_named(&self, name: &str) -> bool {
        self.place.rsplit('/').next().unwrap_or_default().eq_ignore_ascii_case(name)
    }

    fn says(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.front.get(*key).is_some_and(|value| !value.is_null()))
    }
}

/// The text from its first line that says something: what stands before a front matter takes nothing from what that says.
fn first_shown(text: &str) -> &str {
    let mut rest = text.trim_start_matches('\u{feff}');
    loop {
        let line = rest.split_inclusive('\n').next().unwrap_or_default();
        let comment = line.trim_start().strip_prefix("<!--").and_then(|_| rest.split_once("-->"));
        rest = match comment {
            Some((_, behind)) => behind,
            None if line.trim().is_empty() && !line.is_empty() => rest.get(line.len()..).unwrap_or_default(),
            None => return rest,
        };
    }
}

/// Whether the second line that says something is `key: value`: a line `---` behind something else may as well be a rule.
fn begins_with_member(text: &str) -> bool {
    let line = text.lines().filter(|line| !line.trim().is_empty()).nth(1);
    let name = line.and_then(|line| line.split_once(':')).map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-".contains(c))
}

/// The documents at these paths, and those that cannot be read.
fn read(paths: &BTreeSet<Found>) -> Result<(Vec<Document>, LeftOut), String> {
    let (mut documents, mut left_out, mut bytes) = (Vec::new(), LeftOut::default(), 0);
    for (place, path) in paths {
        match Document::read(place, path) {
            Ok((document, length)) => {
                bytes += length;
                documents.push(document);
            }
            Err(reason) => left_out.add(reason, place),
        }
        if bytes > MOST_BYTES_TOGETHER {
            let most = MOST_BYTES_TOGETHER >> 20;
            return Err(format!("its Markdown files have more than {most} MiB together; name a folder in it"));
        }
    }
    Ok((documents, left_out))
}

/// What is in documents.
fn known(documents: &[Document], mut left_out: LeftOut) -> Result<Knowledge, String> {
    let (mut entries, mut masked) = (Entries::default(), Entries::default());
    let mut keys: BTreeMap<&str, Vec<&Document>> = BTreeMap::new();
    for document in documents {
        if let Some(reason) = withheld(&document.front) {
            left_out.add(reason, &document.place);
            continue;
        }
        if let Some(key) = text(&document.front, "key") {
            keys.entry(key).or_default().push(document);
        }
        entries.add_document(document)?;
        masked.add_document(&document.masked())?;
    }
    let notes = left_out.notes().into_iter().chain(conflicts(&keys)).collect();
    entries.finish(masked, notes)
}

/// Whether documents are the concepts of a bundle: the folder says so in its index, or each of them says what it is.
fn is_bundle(documents: &[Document]) -> bool {
    let root = documents.iter().find(|document| document.place.eq_ignore_ascii_case(INDEX));
    let mut concepts =
        documents.iter().filter(|document| !document.is_named(INDEX) && !document.is_named(LOG)).peekable();
    root.is_some_and(|index| index.says(&["okf_version", "version"]))
        || concepts.peek().is_some() && concepts.all(|document| document.says(&["type", "key", "status"]))
}

/// What several documents say under one key, each in another way.
fn conflicts(keys: &BTreeMap<&str, Vec<&Document>>) -> Vec<String> {
    let told = |(key, documents): (&&str, &Vec<&Document>)| {
        let said: BTreeSet<&str> = documents.iter().map(|document| document.body.trim()).collect();
        let places: Vec<&str> = documents.iter().map(|document| document.place.as_str()).collect();
        let told = || format!("`{}` is said in {} ways: {}", one_line(&masked(key)), said.len(), listed(&places));
        (said.len() > 1).then(told)
    };
    keys.iter().filter_map(told).collect()
}

/// The members that say whether something is for prompts.
const STATES: [&str; 2] = ["status", "lifecycle_state"];
const LEVEL: &str = "sensitivity";

/// Why a document or card with these members is not for prompts, if it is not: by them, or by those of something within
/// them.
pub(super) fn withheld<'m>(members: impl IntoIterator<Item = (&'m String, &'m Value)> + Clone) -> Option<String> {
    let mut own = members.clone().into_iter().filter(|(_, value)| !value.is_null());
    own.find_map(|(name, value)| withheld_by(name, value))
        .or_else(|| members.into_iter().find_map(|(_, value)| withheld_within(value)))
}

/// Why something within a document or card keeps it out of prompts, if something does. A `status` may be that of anything
/// there, and a number or an object under the other names may measure or describe something: only a text is one of ours.
fn withheld_within(value: &Value) -> Option<String> {
    match value {
        Value::Array(values) => values.iter().find_map(withheld_within),
        Value::Object(members) => {
            let told = |(name, value): (&String, &Value)| {
                let is_ours = !name.trim().eq_ignore_ascii_case(STATES[0]);
                let own = match value {
                    Value::String(_) | Value::Array(_) if is_ours => withheld_by(name, value),
                    // `{"level": "restricted"}`; what nobody here knows is no level there.
                    Value::Object(within) if is_ours => {
                        let known = |value: &Value| withheld_by(name, value).filter(|why| !why.ends_with("unknown"));
                        within.values().filter(|value| value.is_string()).find_map(known)
                    }
                    _ => None,
                };
                own.or_else(|| withheld_within(value))
            };
            members.iter().find_map(told)
        }
        _ => None,
    }
}

/// Why a member keeps what has it out of prompts, if it does.
fn withheld_by(name: &str, value: &Value) -> Option<String> {
    let name = name.trim().to_lowercase();
    if STATES.contains(&name.as_str()) {
        return state_withheld(&name, value);
    }
    if name != LEVEL {
        return None;
    }
    match value.as_str().unwrap_or_default().trim().to_lowercase().parse::<Sensitivity>() {
        Ok(level) if level < ContextConfig::default().policy.sensitivity_floor => None,
        Ok(level) => Some(format!("`{LEVEL}` is `{level}`")),
        // What nobody here knows may be for nobody here.
        Err(_) => Some(format!("`{LEVEL}` is unknown")),
    }
}

/// Why a state, or one of several, keeps something out of prompts.
fn state_withheld(key: &str, value: &Value) -> Option<String> {
    let unknown = || Some(format!("`{key}` is unknown"));
    let states = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let told = |state: &Value| {
        let Some(text) = state.as_str() else { return unknown() };
        // `rejected (2024)` and `draft, rejected` say it beside something else, `Deprecated by ADR-12` with more behind it.
        let mut parts = text.split([',', ';', '/', '|', '(', ')']);
        let words: Vec<&str> = parts.next().unwrap_or_default().split_whitespace().collect();
        let begins = (1..=words.len().min(2)).filter_map(|count| Some(words.get(..count)?.join(" ")));
        let mut said = begins.chain(parts.map(str::to_owned)).map(|said| state_name(&said));
        let state = said.find_map(|said| WITHHELD.iter().find(|state| said == **state))?;
        Some(format!("`{key}` is `{state}`"))
    };
    if states.is_empty() { unknown() } else { states.iter().find_map(told) }
}

/// A state in the form of [`WITHHELD`]: `In-Review!` and `inReview` are `in_review`.
fn state_name(state: &str) -> String {
    let state = state.trim_matches(|c: char| !c.is_alphanumeric());
    let (mut name, mut before) = (String::new(), ' ');
    for c in state.chars() {
        let is_between = !c.is_alphanumeric();
        if (is_between || before.is_lowercase() && c.is_uppercase()) && !name.ends_with('_') {
            name.push('_');
        }
        name.extend(c.to_lowercase().filter(|_| !is_between));
        before = c;
    }
    name
}

/// The day from which something does not hold any more, as its source says it.
pub(super) fn until(members: &Map<String, Value>) -> String {
    let told = |value: &Value| match value {
        Value::String(text) if !text.trim().is_empty() => Some(format!(" (until {})", cut(text.trim(), 30))),
        Value::Number(seconds) => Some(format!(" (until {seconds} in Unix time)")),
        _ => None,
    };
    ["stale_after", "expires_at"].iter().find_map(|key| told(members.get(*key)?)).unwrap_or_default()
}

/// The text of a member, unless it is empty.
pub(super) fn text<'m>(members: &'m Map<String, Value>, key: &str) -> Option<&'m str> {
    members.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// The words of members that are texts or lists of texts.
pub(super) fn words(members: &Map<String, Value>, keys: &[&str]) -> String {
    let mut words = String::new();
    for value in keys.iter().filter_map(|key| members.get(*key)) {
        let one = value.as_str().into_iter();
        for word in one.chain(value.as_array().into_iter().flatten().filter_map(Value::as_str)) {
            if words.len() < MOST_WORDS {
                words.push_str(cut(word, MOST_WORDS));
                words.push(' ');
            }
        }
    }
    words
}

/// What was left out, by the reason.
#[derive(Default)]
pub(super) struct LeftOut(BTreeMap<String, Vec<String>>);

impl LeftOut {
    pub(super) fn add(&mut self, reason: String, place: &str) {
        self.0.entry(reason).or_default().push(place.to_owned());
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let told = |(reason, places): (&String, &Vec<String>)| {
            let places: Vec<&str> = places.iter().map(String::as_str).collect();
            format!("left out: {} ({reason})", listed(&places))
        };
        self.0.iter().map(told).collect()
    }
}

/// The first few of some names, without the secrets in them, and how many more there are.
fn listed(names: &[&str]) -> String {
    let mut shown: Vec<String> = names.iter().take(MOST_NAMED).map(|name| one_line(&masked(name))).collect();
    if names.len() > MOST_NAMED {
        shown.push(format!("{} more", names.len() - MOST_NAMED));
    }
    shown.join(", ")
}

/// Memories with ids of their own.
#[derive(Default)]
pub(super) struct Entries {
    entries: Vec<Entry>,
    /// The last number of the ids that a prompt shows in this way.
    ids: BTreeMap<String, usize>,
}

impl Entries {
    /// Adds a text in as many memories as it takes, each headed by the label.
    pub(super) fn add(&mut self, id: &str, label: &str, text: &str, words: &str) -> Result<(), String> {
        let label = label.trim_end_matches([':', ' ']);
        for piece in pieces(text) {
            if self.entries.len() == MOST_ENTRIES {
                return Err(format!("it makes more than {MOST_ENTRIES} memories; divide it"));
            }
            let id = self.own_id(id);
            let text = if label.is_empty() { piece.to_owned() } else { format!("{label}: {piece}") };
            self.entries.push(Entry { memory: Remembered { id, text }, words: words.to_owned() });
        }
        Ok(())
    }

    /// The id, with a number behind it where a prompt would show one that was given already in the same way.
    fn own_id(&mut self, id: &str) -> String {
        let shown = |id: &str| name_of(id, "");
        let first = short_id(id);
        let count = self.ids.get(&shown(&first)).copied().unwrap_or_default();
        let of = |number| if number > 1 { short_id(&format!("{id}.{number}")) } else { first.clone() };
        let own = (count + 1..).map(|number| (number, of(number))).find(|(_, own)| !self.ids.contains_key(&shown(own)));
        let (number, own) = own.unwrap_or((count, first.clone()));
        self.ids.insert(shown(&own), 1);
        self.ids.insert(shown(&first), number);
        own
    }

    fn add_document(&mut self, document: &Document) -> Result<(), String> {
        let Document { place, front, body } = document;
        let sections = sections(body);
        let first = sections.iter().find_map(|section| section.headings.first()).filter(|(level, _)| *level == 1);
        let stem = || place.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(stem, _)| stem);
        let title = text(front, "title").or_else(|| text(front, "name")).or_else(|| Some(first?.1));
        let title = title.unwrap_or_else(stem);
        let id = text(front, "id").unwrap_or(place);
        let said = ["tags", "type", "key", "applicable_to", "scope"];
        let words = format!("{}{}", words(front, &said), cut(place, MOST_HEADING * 2));
        let until = until(front);
        let mut description = text(front, "description");
        for section in &sections {
            let inner = section.headings.iter().map(|(_, heading)| *heading);
            let inner: Vec<&str> = inner.filter(|heading| !heading.eq_ignore_ascii_case(title)).collect();
            let label = [text(front, "key"), Some(title)].into_iter().flatten().chain(inner.iter().copied());
            let label = label.map(|part| cut(part, MOST_HEADING)).collect::<Vec<_>>().join(" > ");
            let label = format!("{}{until}", cut(&label, MOST_LABEL));
            let id = match inner.last().map(|heading| slug(heading)) {
                Some(slug) if !slug.is_empty() => format!("{id}#{slug}"),
                _ => id.to_owned(),
            };
            // It says in short what the whole document does, so it comes first.
            if let Some(description) = description.take() {
                self.add(&id, &label, description, &words)?;
            }
            self.add(&id, &label, section.text, &words)?;
        }
        Ok(())
    }

    /// What was read, the same without secrets, and what the record says of it.
    pub(super) fn finish(self, masked: Self, mut notes: Vec<String>) -> Result<Knowledge, String> {
        if self.entries.is_empty() {
            let why = notes.first().map(|note| format!("; {note}")).unwrap_or_default();
            return Err(format!("there is nothing in it for a prompt{why}"));
        }
        if notes.len() > MOST_NOTES {
            let more = counted(notes.len() - MOST_NOTES, "more note");
            notes.truncate(MOST_NOTES);
            notes.push(more);
        }
        let masked = (masked.entries != self.entries).then_some(masked.entries);
        Ok(Knowledge { entries: self.entries, masked, notes })
    }
}

/// A part of a document under a heading.
struct Section<'t> {
    /// The headings above the text, from the outermost, each with its level.
    headings: Vec<(usize, &'t str)>,
    text: &'t str,
}

/// The text of a document between its headings; the first section is what stands before the first one. What looks like a
/// heading in a block of code is none.
fn sections(body: &str) -> Vec<Section<'_>> {
    let mut sections = Vec::new();
    let (mut headings, mut fences): (Vec<(usize, &str)>, Fences) = Default::default();
    let (mut start, mut at) = (0, 0);
    for line in body.split_inclusive('\n') {
        let plain = fences.next(line) == Fenced::Not;
        if let Some((level, title)) = heading(line).filter(|_| plain) {
            // Lines begin and end where characters do.
            sections.push(Section { headings: headings.clone(), text: body.get(start..at).unwrap_or_default() });
            headings.retain(|(above, _)| *above < level);
            headings.push((level, title));
            start = at + line.len();
        }
        at += line.len();
    }
    sections.push(Section { headings, text: body.get(start..).unwrap_or_default() });
    sections
}

/// The text without its comments, which a reader of the page does not see. What looks like one in code is none.
fn without_comments(text: &str) -> Cow<'_, str> {
    if !text.contains("<!--") {
        return Cow::Borrowed(text);
    }
    let (mut plain, mut fences, mut rest) = (String::new(), Fences::default(), text);
    while let Some(line) = rest.split_inclusive('\n').next() {
        let end = match fences.next(line) {
            Fenced::Not => without_comments_of_line(rest, &mut plain),
            Fenced::Opens(_) | Fenced::Within => {
                plain.push_str(line);
                line.len()
            }
        };
        rest = rest.get(end..).unwrap_or_default();
    }
    Cow::Owned(plain)
}

/// Writes the first line of a text without its comments, and says where the next line begins: a comment, and code within a
/// paragraph, may go on in further lines.
fn without_comments_of_line(text: &str, plain: &mut String) -> usize {
    let mut at = 0;
    while let Some((rest, next)) = text.get(at..).and_then(|rest| Some((rest, rest.chars().next()?))) {
        let ticks = rest.bytes().take_while(|byte| *byte == b'`').count();
        let shown = match next {
            '`' => code_span(rest, ticks).unwrap_or(ticks),
            // What follows is a character like any other.
            '\\' => 1 + rest.chars().nth(1).filter(char::is_ascii_punctuation).map_or(0, char::len_utf8),
            '<' => {
                match rest.strip_prefix("<!--").map(|comment| comment.split_once("-->")) {
                    Some(Some((_, behind))) => {
                        at = text.len() - behind.len();
                        continue;
                    }
                    // One that does not end is no comment, and neither is any behind it.
                    Some(None) => rest.len(),
                    None => 1,
                }
            }
            other => other.len_utf8(),
        };
        plain.push_str(rest.get(..shown).unwrap_or_default());
        at += shown;
        if next == '\n' {
            break;
        }
    }
    at
}

/// The length of the code within a paragraph that begins with so many backticks, if as many end it.
fn code_span(text: &str, ticks: usize) -> Option<usize> {
    let mut before = 0;
    for line in text.split_inclusive('\n') {
        if line.trim().is_empty() || before > 0 && heading(line).is_some() {
            break;
        }
        let mut at = if before == 0 { ticks } else { 0 };
        while let Some((skipped, rest)) = line.get(at..).and_then(|rest| Some((rest.find('`')?, rest))) {
            let run = rest.bytes().skip(skipped).take_while(|byte| *byte == b'`').count();
            at += skipped + run;
            if run == ticks {
                return Some(before + at);
            }
        }
        before += line.len();
    }
    None
}

/// The text in pieces of at most [`MOST_TEXT`] characters: divided between paragraphs where that leaves pieces that say
/// something, else between lines, sentences or words.
fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text.trim());
    while let Some((most, _)) = rest.char_indices().nth(MOST_TEXT) {
        let window = rest.get(..most).unwrap_or_default();
        let least = most / 3;
        let ends = ["\n\n", "\n", ". ", " "].iter().filter_map(|mark| {
            let at = window.rfind(mark)? + mark.trim_end().len();
            (at > least).then_some(at)
        });
        let end = ends.into_iter().next().unwrap_or(most);
        let (piece, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
        pieces.push(piece.trim());
        rest = behind.trim_start();
    }
    pieces.push(rest);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// At most so many characters from the beginning.
pub(super) fn cut(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((end, _)) => text.get(..end).unwrap_or_default().trim_end(),
        None => text,
    }
}

/// A heading as a part of an id: its letters and digits in lower case, and `-` for what is between them.
fn slug(heading: &str) -> String {
    let words = heading.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("-")
}

/// An id that is shown whole: of a longer one the end, which says most, and a digest of all of it.
fn short_id(id: &str) -> String {
    const DIGITS: usize = 6;
    let length = id.chars().count();
    if length <= MOST_ID {
        return id.to_owned();
    }
    let end: String = id.chars().skip(length + DIGITS + 1 - MOST_ID).collect();
    let digest = sha256_hex(id.as_bytes());
    format!("{end}-{}", cut(&digest, DIGITS))
}

#[cfg(test)]
mod tests;
