//! Reads catalogs from files.
//!
//! The steps: paths are listed ([`load`]), a file becomes a list of definitions in one of the known forms
//! ([`document`]), a definition becomes an item without an id ([`mcp`], [`native`], and [`formats`] for
//! the forms of others), and only when everything has been read do the items get their namespaces and ids ([`assemble`]), because both depend on what else is there.
//!
//! A file or definition that cannot be used stops a strict load and is skipped by a lenient one. Definitions are kept
//! byte for byte beside what was read from them. Of a live server, resource templates are not items, because they
//! cannot be read as they stand.

mod assemble;
mod document;
mod fields;
mod mcp;
mod native;

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) use self::assemble::Draft;
use self::document::{Document, Entry, Form, Located};
pub use self::document::{FrontMatter, front_matter};
pub use self::fields::describe;
pub(super) use self::fields::{Fields, version_text};
pub(super) use self::mcp::{Hints, begin, begin_prompt, settle_safety, take_hints, take_version, tool};
pub(super) use self::native::{FIELDS, all_metadata, is_version_of};
use super::formats::{self, Found, Part, ToolFormat};
use super::{Catalog, CatalogError, Fault};
use crate::files::{Unread, in_words, read_at_most};
use crate::text::on_one_line;

/// Larger files are refused: no real catalog comes near, and the whole file is held in memory.
pub const MAX_FILE_BYTES: u64 = 256 << 20;

/// A larger skill is refused: it is read by a model, and what is long lies beside it.
pub const MAX_SKILL_BYTES: u64 = 1 << 20;

/// Longer descriptions are refused: such a text is data that was put in the wrong place.
pub const MAX_DESCRIPTION_BYTES: usize = 1 << 20;

/// Definitions nested deeper are refused, so that no later step has to guard its stack against them.
pub(super) const MAX_NESTING: usize = 127;

/// What happens to a file or definition that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strictness {
    /// It is an error.
    #[default]
    Strict,
    /// It is left out and reported; the rest is loaded. A path that was named and cannot be read is still an error, and
    /// so is a catalog that ends up empty.
    Lenient,
}

/// How [`load`] treats what it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoadOptions {
    /// What happens to files and definitions that cannot be used.
    pub strictness: Strictness,
}

/// A catalog, and what a lenient load left out of it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The items that could be used.
    pub catalog: Catalog,
    /// What could not be used, in load order. After a strict load, only what is no tool that is offered: what a server has
    /// switched off, and what stands in a list of tools beside them.
    pub left_out: Vec<LeftOut>,
    /// The forms that were recognised, in load order: one entry a file and form.
    pub sources: Vec<Source>,
}

/// Definitions of one form in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The path of the file.
    pub path: PathBuf,
    /// The form that the definitions have.
    pub format: ToolFormat,
    /// How many of them were read; copies of a resource or prompt are counted too.
    pub definitions: usize,
}

/// A file or definition that a lenient load left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The file, and the index and name of the definition in it.
    pub place: String,
    /// Why it cannot be used.
    pub reason: String,
}

impl From<CatalogError> for LeftOut {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Read { path, fault } => Self { place: path.display().to_string(), reason: fault.to_string() },
            CatalogError::Parse { path, place, fault } => {
                Self { place: format!("{}: {place}", path.display()), reason: fault.to_string() }
            }
            CatalogError::Definition { place, fault } => Self { place, reason: fault.to_string() },
            CatalogError::Collision { id, first, second, .. } => {
                Self { place: second, reason: format!("its id `{id}` is already that of {first}") }
            }
            other => Self { place: String::new(), reason: other.to_string() },
        }
    }
}

/// Loads every file and folder of `paths` into one catalog.
///
/// A file holds an array of tools, an object with `tools`, `resources` or `prompts` (a recorded catalog, a
/// `tools/list` result, the JSON-RPC response around one, or a request to a model), a document that tools are made of
/// (OpenAPI, an agent card), or the native form (`schema` and `items`). Each definition is read in the [`ToolFormat`]
/// that it has. A file is YAML when its name ends in `.yaml` or `.yml`, a skill when it ends in `.md`, otherwise JSON. Of a
/// folder every JSON or YAML file that is not hidden is loaded, in the order of file names, each as one server, and with them
/// its `SKILL.md` and those in its folders. The order of files and definitions decides only which of two
/// resources or prompts with one id keeps the bare id.
///
/// # Errors
/// [`CatalogError::Read`] for a path that was named and cannot be read; in strict mode [`CatalogError`] for the first
/// file or definition that cannot be used; [`CatalogError::Empty`] when no item remains.
pub fn load<P: AsRef<Path>>(paths: &[P], options: LoadOptions) -> Result<Loaded, CatalogError> {
    let mut sieve = Sieve::new(options.strictness);
    let mut drafts = Vec::new();
    for path in paths.iter().map(AsRef::as_ref) {
        if path.is_dir() {
            for member in folder_files(path)? {
                let server = member.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                if let Err(error) = read_file(&member, server.as_deref(), &mut drafts, &mut sieve) {
                    sieve.refuse(error)?;
                }
            }
        } else {
            match read_file(path, None, &mut drafts, &mut sieve) {
                Err(error @ CatalogError::Parse { .. }) => sieve.refuse(error)?,
                result => result?,
            }
        }
    }
    let items = assemble::assemble(drafts, &mut sieve)?;
    if items.is_empty() {
        if paths.is_empty() {
            return Err(CatalogError::Empty("no file or folder was given".to_owned()));
        }
        let names: Vec<String> = paths.iter().map(|path| path.as_ref().display().to_string()).collect();
        return Err(CatalogError::Empty(sieve.describe_nothing(&names.join(", "))));
    }
    Ok(Loaded { catalog: Catalog::new(items)?, left_out: sieve.left_out, sources: sieve.sources })
}

/// The definitions that one live server lists, as it sent them.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'l> {
    /// The configured name of the server.
    pub server: &'l str,
    /// The definitions of its tools.
    pub tools: &'l [Box<RawValue>],
    /// The definitions of its resources.
    pub resources: &'l [Box<RawValue>],
    /// The definitions of its prompts.
    pub prompts: &'l [Box<RawValue>],
}

/// The items of several live servers, in ascending id order; there may be none. A definition that cannot be used is
/// left out, and so is the second of two tools with one id.
#[must_use]
pub fn load_listings(listings: &[Listing<'_>]) -> (Vec<super::SelectableItem>, Vec<LeftOut>) {
    let mut sieve = Sieve::new(Strictness::Lenient);
    let mut drafts = Vec::new();
    for listing in listings {
        let file: Arc<Path> = Arc::from(Path::new(listing.server));
        let lists = [
            (Form::ServerTools, listing.tools),
            (Form::ServerResources, listing.resources),
            (Form::ServerPrompts, listing.prompts),
        ];
        let entries = lists
            .iter()
            .flat_map(|(form, list)| list.iter().enumerate().map(|(index, raw)| Entry::new(*form, index, raw)));
        let first = drafts.len();
        // A lenient sieve returns no error: it notes what it leaves out.
        let _ = read_definitions(Some(&file), entries, (None, None), &mut drafts, &mut sieve);
        // A live server must not choose its own name: its tools would answer for those of another.
        for (draft, _) in &mut drafts[first..] {
            draft.set_server(listing.server);
        }
    }
    let mut items = assemble::assemble(drafts, &mut sieve).unwrap_or_default();
    items.sort_by(|left, right| left.id.cmp(&right.id));
    (items, sieve.left_out)
}

impl Catalog {
    /// Loads the catalog in a file, or in all files of a folder. [`load`] says which forms are read, and also takes
    /// several paths and files that are partly broken.
    ///
    /// # Errors
    /// As [`load`] in strict mode.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, CatalogError> {
        Ok(load(&[path], LoadOptions::default())?.catalog)
    }

    /// Reads the catalog in a JSON text, in any form that [`load`] reads from a file: an array of MCP tools, the answer
    /// to `tools/list`, or the native form.
    ///
    /// # Errors
    /// [`CatalogError::Definition`] with the place in the text for the first definition that cannot be used,
    /// [`CatalogError::Collision`] for two with one id, [`CatalogError::Empty`] for an empty list.
    ///
    /// ```
    /// use contextweaver_core::catalog::Catalog;
    ///
    /// let catalog = Catalog::from_json(r#"{"tools": [{"name": "get_oncall", "description": "Who is on call."}]}"#)?;
    /// assert_eq!(catalog.len(), 1);
    /// # Ok::<_, contextweaver_core::catalog::CatalogError>(())
    /// ```
    pub fn from_json(json: &str) -> Result<Self, CatalogError> {
        Self::from_json_of(json, None)
    }

    /// As [`Catalog::from_json`]. Definitions that name no server belong to `server`, when it is given.
    ///
    /// # Errors
    /// As [`Catalog::from_json`].
    pub fn from_json_of(json: &str, server: Option<&str>) -> Result<Self, CatalogError> {
        let json = json.strip_prefix('\u{feff}').unwrap_or(json);
        let wrong = |Located { place, fault }| CatalogError::Definition { place, fault };
        let Document { server: named, server_version, entries, .. } = document::parse(json).map_err(wrong)?;
        let mut sieve = Sieve::new(Strictness::Strict);
        let mut drafts = Vec::with_capacity(entries.len());
        let server = (named.as_deref().or(server), server_version.as_deref());
        read_definitions(None, entries.into_iter(), server, &mut drafts, &mut sieve)?;
        Self::new(assemble::assemble(drafts, &mut sieve)?)
    }

    /// A catalog of tool definitions in any form. Those that name no server of their own belong to `server`, when it is given.
    ///
    /// # Errors
    /// [`CatalogError`] for the first definition that cannot be used, for two with one id, and for an empty list.
    pub fn from_values(tools: &[Value], server: Option<&str>) -> Result<Self, CatalogError> {
        let mut drafts = Vec::with_capacity(tools.len());
        let mut sieve = Sieve::new(Strictness::Strict);
        for (index, value) in tools.iter().enumerate() {
            let name = formats::name_of(value).to_owned();
            let place = Place { file: None, form: Form::Tools, index, key: None, inside: String::new(), name };
            let (value, raw) = copy_shallow(value).map_err(|fault| place.error(fault))?;
            let first = drafts.len();
            take_in(place, value, || Arc::clone(&raw), &mut drafts, &mut sieve)?;
            for (draft, _) in &mut drafts[first..] {
                draft.set_server_if_none(server, None);
            }
        }
        Self::new(assemble::assemble(drafts, &mut sieve)?)
    }

    /// The catalog in the native form: indented JSON ending in a newline. Loading it again gives the same items without
    /// the definitions as received ([`SelectableItem::raw`](super::SelectableItem::raw)); what these say beside the fields
    /// of an item is in its metadata then.
    #[must_use]
    pub fn to_native_json(&self) -> String {
        native::to_json(self.items())
    }
}

/// The number of levels of nested objects and arrays: 0 for a scalar, 1 for `{}`.
#[must_use]
pub fn nesting_depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut pending = vec![(value, 0)];
    while let Some((value, depth)) = pending.pop() {
        let depth = depth + usize::from(value.is_object() || value.is_array());
        deepest = deepest.max(depth);
        match value {
            Value::Array(values) => pending.extend(values.iter().map(|value| (value, depth))),
            Value::Object(members) => pending.extend(members.values().map(|value| (value, depth))),
            _ => {}
        }
    }
    deepest
}

fn copy_shallow(value: &Value) -> Result<(Value, Arc<RawValue>), Fault> {
    if nesting_depth(value) > MAX_NESTING {
        return Err(too_deep());
    }
    let raw = serde_json::value::to_raw_value(value).map_err(|error| Fault::new(error.to_string()))?;
    Ok((value.clone(), Arc::from(raw)))
}

pub(super) fn too_deep() -> Fault {
    Fault::new(format!("it is nested deeper than {MAX_NESTING} levels")).with_fix("make it flatter")
}

/// Decides what happens to what cannot be used, and notes what is left out.
#[derive(Debug)]
struct Sieve {
    strictness: Strictness,
    left_out: Vec<LeftOut>,
    sources: Vec<Source>,
}

impl Sieve {
    fn new(strictness: Strictness) -> Self {
        Self { strictness, left_out: Vec::new(), sources: Vec::new() }
    }

    /// Counts a definition of this form.
    fn count(&mut self, file: Option<&Arc<Path>>, format: ToolFormat) {
        let Some(path) = file.map(AsRef::as_ref) else { return };
        // Those of the same file are the last ones.
        let of_file = self.sources.iter_mut().rev().take_while(|source| source.path.as_os_str() == path.as_os_str());
        match of_file.into_iter().find(|source| source.format == format) {
            Some(source) => source.definitions += 1,
            None => self.sources.push(Source { path: path.to_owned(), format, definitions: 1 }),
        }
    }

    /// Returns the error in strict mode, saying that a lenient load would go on, and notes it in lenient mode.
    fn refuse(&mut self, mut error: CatalogError) -> Result<(), CatalogError> {
        if self.strictness == Strictness::Lenient {
            self.left_out.push(error.into());
            return Ok(());
        }
        if let CatalogError::Parse { fault, .. } = &mut error {
            fault.can_be_left_out = true;
        }
        Err(error)
    }

    /// Notes what is left out of every load.
    fn skip(&mut self, error: CatalogError) {
        self.left_out.push(error.into());
    }

    fn describe_nothing(&self, paths: &str) -> String {
        match self.left_out.first() {
            None => format!("{paths}: no tools, resources or prompts are listed"),
            Some(LeftOut { place, reason }) => {
                format!("{paths}: {} left out, the first one {place}: {reason}", self.left_out.len())
            }
        }
    }
}

/// Where a definition is, for messages.
#[derive(Debug, Clone)]
struct Place {
    file: Option<Arc<Path>>,
    form: Form,
    index: usize,
    /// The member of a map of definitions.
    key: Option<String>,
    /// The place in a definition that holds several.
    inside: String,
    name: String,
}

impl Place {
    fn within(&self) -> String {
        let Self { form, index, key, inside, name, .. } = self;
        let place = match (form, key) {
            (Form::Whole, Some(key)) => return format!("{:?}{inside}", shortened(key)),
            (Form::Skill, _) => return form.to_string(),
            (Form::Whole, None) if inside.is_empty() => form.to_string(),
            (Form::Whole, None) => inside.trim_start_matches('.').to_owned(),
            (_, Some(key)) => return format!("{form}[{:?}]{inside}", shortened(key)),
            (_, None) => format!("{form}[{index}]{inside}"),
        };
        if name.is_empty() { place } else { format!("{place} `{}`", shortened(name)) }
    }

    fn error(&self, fault: Fault) -> CatalogError {
        match &self.file {
            Some(file) => CatalogError::Parse { path: file.to_path_buf(), place: self.within(), fault },
            None => CatalogError::Definition { place: self.within(), fault },
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(formatter, "{}: {}", file.display(), self.within()),
            None => formatter.write_str(&self.within()),
        }
    }
}

/// A name in a message: on one line and of bounded length whatever the file holds.
pub(super) fn shortened(name: &str) -> String {
    on_one_line(name, 80)
}

/// The files of a folder that [`load`] reads, in its order.
///
/// # Errors
/// [`CatalogError::Read`] when the folder cannot be read, or has none.
pub fn folder_files(folder: &Path) -> Result<Vec<PathBuf>, CatalogError> {
    let unreadable = |error: std::io::Error| read_error(folder, Fault::new(error.to_string()));
    let mut members = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let (name, path) = (entry.file_name(), entry.path());
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let inner = path.join(SKILL);
        if is_yaml(&path) || extension_is(&path, "json") || name == SKILL {
            members.push((name, path));
        } else if inner.is_file() {
            members.push((name, inner));
        }
    }
    if members.is_empty() {
        let fault = Fault::new("the folder has no *.json, *.yaml or *.yml file and no SKILL.md");
        return Err(read_error(folder, fault));
    }
    members.sort_unstable();
    Ok(members.into_iter().map(|(_, path)| path).collect())
}

/// The file of a skill, in a folder of its own.
const SKILL: &str = "SKILL.md";

fn extension_is(path: &Path, wanted: &str) -> bool {
    path.extension().and_then(OsStr::to_str).is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

fn is_yaml(path: &Path) -> bool {
    extension_is(path, "yaml") || extension_is(path, "yml")
}

fn read_error(path: &Path, fault: Fault) -> CatalogError {
    CatalogError::Read { path: path.to_owned(), fault }
}

/// Reads one file into `drafts`. `server` is what the server is called when neither the file nor the tool says it.
fn read_file(
    path: &Path,
    server: Option<&str>,
    drafts: &mut Vec<(Draft, Place)>,
    sieve: &mut Sieve,
) -> Result<(), CatalogError> {
    let is_skill = extension_is(path, "md");
    let text = match is_skill {
        true => read_text(path, MAX_SKILL_BYTES, "move the longest parts into files beside it")?,
        false => read_text(path, MAX_FILE_BYTES, "split it into one file per server")?,
    };
    let parse_error = |Located { place, fault }| CatalogError::Parse { path: path.to_owned(), place, fault };
    if is_skill {
        let json = document::skill_to_json(&text).map_err(parse_error)?;
        read_entries(path, &document::skill(&json).map_err(parse_error)?, server, drafts, sieve)
    } else if is_yaml(path) {
        let json = document::yaml_to_json(&text).map_err(parse_error)?;
        // Positions in the converted text mean nothing to the reader of the YAML file.
        let document = document::parse(&json).map_err(|error| parse_error(document::top_level(error.fault)))?;
        read_entries(path, &document, server, drafts, sieve)
    } else {
        read_entries(path, &document::parse(&text).map_err(parse_error)?, server, drafts, sieve)
    }
}

/// The text of a file of at most `limit` bytes; `fix` is what to do about a larger one.
fn read_text(path: &Path, limit: u64, fix: &str) -> Result<String, CatalogError> {
    let unreadable = |error: std::io::Error| read_error(path, Fault::new(in_words(&error)));
    if path.is_dir() {
        return Err(read_error(path, Fault::new("it is a folder").with_fix("replace it with a catalog file")));
    }
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let too_large = || {
        let fault = Fault::new(format!("the file is over the limit of {} MiB", limit >> 20));
        read_error(path, fault.with_fix(fix))
    };
    if file.metadata().map_err(unreadable)?.len() > limit {
        return Err(too_large());
    }
    // Only a regular file has a length in advance.
    let bytes = read_at_most(file, limit).map_err(|reason| match reason {
        Unread::TooLarge { .. } => too_large(),
        reason => read_error(path, Fault::new(reason.to_string())),
    })?;
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count();
        CatalogError::Parse {
            path: path.to_owned(),
            place: format!("line {line}, byte {at} of the file"),
            fault: Fault::new("invalid UTF-8").with_fix("save the file as UTF-8"),
        }
    })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

fn read_entries(
    path: &Path,
    document: &Document<'_>,
    server: Option<&str>,
    drafts: &mut Vec<(Draft, Place)>,
    sieve: &mut Sieve,
) -> Result<(), CatalogError> {
    if document.is_page {
        let fault = Fault::new("what follows: this is one page of a longer answer");
        let fault = fault.with_fix("`contextweaver mcp capture` saves all of it");
        sieve.skip(CatalogError::Parse { path: path.to_owned(), place: "nextCursor".to_owned(), fault });
    }
    drafts.reserve(document.entries.len());
    let server = (document.server.as_deref().or(server), document.server_version.as_deref());
    read_definitions(Some(&Arc::from(path)), document.entries.iter().cloned(), server, drafts, sieve)
}

/// Reads definitions. `server` is the name of the server that has those that name none, and its version.
fn read_definitions<'t>(
    file: Option<&Arc<Path>>,
    entries: impl Iterator<Item = Entry<'t>>,
    (server, version): (Option<&str>, Option<&str>),
    drafts: &mut Vec<(Draft, Place)>,
    sieve: &mut Sieve,
) -> Result<(), CatalogError> {
    for Entry { form, index, key, raw } in entries {
        let mut place = Place { file: file.cloned(), form, index, key, inside: String::new(), name: String::new() };
        let first = drafts.len();
        match document::parse_entry(raw, &mut place.name) {
            Ok(value) => take_in(place, value, || Arc::from(raw.to_owned()), drafts, sieve)?,
            Err(fault) => sieve.refuse(place.error(fault))?,
        }
        for (draft, _) in &mut drafts[first..] {
            draft.set_server_if_none(server, version);
        }
    }
    Ok(())
}

/// Adds what one definition gives to `drafts`: a tool, or several where its form holds several.
fn take_in(
    place: Place,
    value: Value,
    raw: impl FnOnce() -> Arc<RawValue>,
    drafts: &mut Vec<(Draft, Place)>,
    sieve: &mut Sieve,
) -> Result<(), CatalogError> {
    let in_tools = matches!(place.form, Form::Tools | Form::Functions | Form::Whole);
    let in_lists = in_tools || matches!(place.form, Form::Resources | Form::Templates | Form::Prompts);
    if let Some(fault) = formats::is_none(&value, in_tools).filter(|_| in_lists) {
        sieve.skip(place.error(fault));
        return Ok(());
    }
    if let Some(fault) = formats::beside_functions(&value).filter(|_| in_tools) {
        sieve.skip(place.error(fault));
    }
    let found = match place.form {
        Form::Tools | Form::Functions | Form::Whole => formats::read(value, place.key.as_deref()),
        Form::ServerTools => Found::One(ToolFormat::Mcp, Fields::new(value).and_then(mcp::tool)),
        Form::Resources if formats::is_fastmcp(&value) => {
            Found::One(ToolFormat::FastMcp, formats::fastmcp_resource(value))
        }
        Form::Resources | Form::ServerResources => Found::One(ToolFormat::Mcp, mcp::resource(value)),
        Form::ResourceTemplates => Found::One(ToolFormat::Mcp, mcp::template(value)),
        Form::Templates => Found::One(ToolFormat::FastMcp, formats::fastmcp_resource(value)),
        Form::Prompts if formats::is_fastmcp(&value) => Found::One(ToolFormat::FastMcp, formats::fastmcp_prompt(value)),
        Form::Prompts | Form::ServerPrompts => Found::One(ToolFormat::Mcp, mcp::prompt(value)),
        Form::Items => Found::One(ToolFormat::Native, native::item(value)),
        Form::Skill => Found::One(ToolFormat::Skill, formats::skill(value)),
    };
    let mut add =
        |place: Place, format: ToolFormat, draft: Result<Draft, Fault>, raw: Option<Arc<RawValue>>| match draft
            .and_then(bounded)
        {
            Ok(mut draft) => {
                draft.item.raw = raw;
                sieve.count(place.file.as_ref(), format);
                drafts.push((draft, place));
                Ok(())
            }
            Err(fault) => sieve.refuse(place.error(fault)),
        };
    match found {
        Found::One(format, draft) => {
            let received = format == ToolFormat::Mcp && draft.is_ok();
            add(place, format, draft, received.then(raw))
        }
        Found::Many(format, parts) => parts.into_iter().try_for_each(|Part { inside, name, draft }| {
            add(Place { inside, name, ..place.clone() }, format, draft, None)
        }),
    }
}

/// Refuses a description over the limit.
fn bounded(draft: Draft) -> Result<Draft, Fault> {
    let length = draft.item.description.len();
    if length > MAX_DESCRIPTION_BYTES {
        let fault =
            Fault::new(format!("its description has {length} bytes, over the limit of {MAX_DESCRIPTION_BYTES}"));
        return Err(fault.with_fix("shorten it"));
    }
    Ok(draft)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::catalog::{Kind, Safety, SelectableItem, format_primitive_id, parse_primitive_id};

    /// A folder with the given files.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    const LENIENT: LoadOptions = LoadOptions { strictness: Strictness::Lenient };
    const STRICT: LoadOptions = LoadOptions { strictness: Strictness::Strict };

    fn load_text(name: &str, text: &str, options: LoadOptions) -> Result<Loaded, CatalogError> {
        let folder = folder(&[(name, text)]);
        load(&[folder.path().join(name)], options)
    }

    /// One line per item: id, kind, server, tags and safety, whether something has side effects.
    fn listing(catalog: &Catalog) -> String {
        let line = |item: &SelectableItem| {
            let SelectableItem { id, kind, name, server, tags, safety, side_effects, .. } = item;
            let server = server.as_deref().unwrap_or("-");
            let effects = if *side_effects { "effects" } else { "pure" };
            format!("{id} | {} `{name}` of {server} | {} | {safety:?} {effects}\n", kind.name(), tags.join(","))
        };
        catalog.items().iter().map(line).collect()
    }

    #[test]
    fn every_form_is_read() {
        let tool = r#"{"name": "read_file", "description": "Reads", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}"#;
        let yaml = "tools:\n  - name: read_file\n    description: Reads\n    inputSchema: {type: object, properties: {path: {type: string}}, required: [path]}\n";
        let forms = [
            ("a.json", format!("[{tool}]")),
            ("b.json", format!("\u{feff} {{\"tools\": [{tool}], \"nextCursor\": null}}")),
            ("c.json", format!(r#"{{"jsonrpc": "2.0", "id": 1, "result": {{"tools": [{tool}]}}}}"#)),
            (
                "d.json",
                format!(r#"{{"package": "x", "tools": [{tool}], "resources": null, "items": 3, "result": "ok"}}"#),
            ),
            ("e.yaml", yaml.to_owned()),
            ("f.yml", format!("[{tool}]")),
        ];
        for (name, text) in forms {
            let loaded = load_text(name, &text, STRICT).unwrap();
            assert_eq!(
                listing(&loaded.catalog),
                "mcp:read_file#85b56782 | tool `read_file` of - |  | Undeclared effects\n",
                "{name}"
            );
        }
    }

    #[test]
    fn one_page_of_an_answer_is_said_to_be_one() {
        let page = |cursor: &str| format!(r#"{{"tools": [{{"name": "a"}}], "nextCursor": {cursor}}}"#);
        for (cursor, is_page) in [(r#""abc""#, true), ("null", false), ("\"\"", false)] {
            for text in [page(cursor), format!(r#"{{"jsonrpc": "2.0", "id": 1, "result": {}}}"#, page(cursor))] {
                let loaded = load_text("a.json", &text, STRICT).unwrap();
                let said: Vec<String> = loaded.left_out.iter().map(|left| left.reason.clone()).collect();
                let expected =
                    "what follows: this is one page of a longer answer; `contextweaver mcp capture` saves all of it";
                assert_eq!(said, if is_page { vec![expected] } else { vec![] }, "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_list_of_tools_is_told_apart() {
        let cases = [
            ("notes.txt", "hello there", "top level: it is not JSON; give a list of tools"),
            (
                "a.json",
                "{\"name\": \"a\"}\n{\"name\": \"b\"}\n",
                "each line is a document of its own; put the lines into one array",
            ),
            (
                "mcp.json",
                r#"{"mcpServers": {"a": {"command": "npx"}}}"#,
                "it is the file of an MCP client: it names servers, and no tools",
            ),
            (
                "mcp.json",
                r#"{"servers": {"a": {"url": "https://a"}}, "inputs": []}"#,
                "`contextweaver init DIR --client FILE`",
            ),
            ("a.json", r#"{"servers": {}}"#, "it has none of the keys"),
        ];
        for (name, text, expected) in cases {
            let said = load_text(name, text, STRICT).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn a_snapshot_has_tools_resources_and_prompts() {
        let text = r#"{
            "server": "Acme Docs", "registry": "npm",
            "tools": [
                {"name": "get", "_meta": {"version": "1.4.0"}, "annotations": {"readOnlyHint": true}},
                {"name": "put", "_meta": {"version": "not a version"}, "annotations": {"destructiveHint": true, "readOnlyHint": true}},
                {"name": "Acme Docs.wipe it", "_meta": {"version": "2"}, "tags": ["b", "destructive", "b"], "category": "a"},
                {"name": "other", "server": "Else", "serverDescription": "Another one", "annotations": null}
            ],
            "resources": [
                {"uri": "file:///docs/readme.md", "name": "README.md", "description": "Read me"},
                {"uri": "file:///docs/other.md"},
                {"uri": "file:///docs/readme.md", "name": "README.md", "description": "Another"},
                {"uri": "file:///docs/readme.md", "name": "README.md", "description": "Read me"},
                {"uri": "file:///docs/readme.md", "name": "README.md", "description": "Another"}
            ],
            "prompts": [{"name": "sum_up", "arguments": [{"name": "repo", "required": true, "description": "Which"}, {"name": "lang"}]}]
        }"#;
        let loaded = load_text("acme.json", text, STRICT).unwrap();
        insta::assert_snapshot!(listing(&loaded.catalog), @r"
        acme-docs:get@1.4.0 | tool `get` of Acme Docs | read-only | ReadOnly pure
        acme-docs:put#738119e2 | tool `put` of Acme Docs | destructive | Destructive effects
        acme-docs:wipe_it@2#c17ba72b | tool `Acme Docs.wipe it` of Acme Docs | a,b,destructive | Destructive effects
        else:other#c0b7454d | tool `other` of Else |  | Undeclared effects
        prompt::acme-docs:sum_up#83b2fdfe | prompt `sum_up` of Acme Docs |  | Undeclared pure
        resource::acme-docs:README.md#a8c506b1 | resource `README.md` of Acme Docs |  | Undeclared pure
        resource::acme-docs:README.md#a8c506b1~2 | resource `README.md` of Acme Docs |  | Undeclared pure
        resource::acme-docs:file_docs_other.md#e4b1c794 | resource `file:///docs/other.md` of Acme Docs |  | Undeclared pure
        ");
        let prompt = loaded.catalog.items().iter().find(|item| item.kind == Kind::Prompt).unwrap();
        insta::assert_snapshot!(prompt.args_schema.as_deref().unwrap().to_string(), @r#"{"type":"object","properties":{"repo":{"description":"Which","type":"string"},"lang":{"type":"string"}},"required":["repo"]}"#);
        let other = loaded.catalog.items().iter().find(|item| item.name == "other").unwrap();
        assert_eq!(other.server_description.as_deref(), Some("Another one"));
    }

    #[test]
    fn a_folder_is_one_server_a_file() {
        let folder = folder(&[
            ("github.json", r#"[{"name": "create_issue"}, {"name": "github.close"}, {"name": "x", "server": "own"}]"#),
            ("Git Lab.yaml", "- name: create_issue\n"),
            (
                "named.json",
                r#"{"server": "Named Server", "tools": [{"name": "a.b"}], "resources": [{"uri": "x://1"}]}"#,
            ),
            ("notes.txt", "not a catalog"),
            (".hidden.json", "not a catalog"),
        ]);
        let loaded = load(&[folder.path()], STRICT).unwrap();
        insta::assert_snapshot!(listing(&loaded.catalog), @r"
        git-lab:create_issue#e069a61d | tool `create_issue` of Git Lab |  | Undeclared effects
        github:close#492d7b67 | tool `github.close` of github |  | Undeclared effects
        github:create_issue#e069a61d | tool `create_issue` of github |  | Undeclared effects
        named-server:a.b#a25c3fd6 | tool `a.b` of Named Server |  | Undeclared effects
        own:x#a32362d4 | tool `x` of own |  | Undeclared effects
        resource::named-server:x_1#2477234d | resource `x://1` of Named Server |  | Undeclared pure
        ");
    }

    #[test]
    fn definitions_are_kept_byte_for_byte() {
        let tool = r#"{ "z":1.50,"name" : "x", "inputSchema": {"b":1e2,"a":{}}, "\u00e9": "\u00e9" }"#;
        let loaded = load_text("a.json", &format!("[\n{tool}\n]"), STRICT).unwrap();
        assert_eq!(loaded.catalog.items()[0].raw.as_deref().unwrap().get(), tool);
        let loaded = load_text("a.yaml", "- {z: on, name: no, b: [1, true]}", STRICT).unwrap();
        assert_eq!(loaded.catalog.items()[0].raw.as_deref().unwrap().get(), r#"{"z":"on","name":"no","b":[1,true]}"#);
    }

    #[test]
    fn the_native_form_round_trips() {
        let yaml = r#"
schema: 1
items:
  - name: billing.invoices.create
    namespace: Billing
    description: Makes an invoice
    tags: [money, destructive]
    args_schema: {type: object, properties: {amount: {type: number}}}
    output_schema: {type: object}
    examples: [bill the client]
    constraints: {max_amount: 100}
    cost_hint: 0.5
    depends_on: ["billing:login@1"]
    provides: [invoice]
    requires: [client]
    metadata: {owner: finance}
  - {name: helper, kind: agent, safety: read_only, server: Some Agents}
  - {id: "resource::docs:readme#12345678~2", kind: resource, name: readme, namespace: docs, metadata: {uri: "x://y"}}
  - {kind: prompt, name: sum up, namespace: docs, side_effects: true}
"#;
        let first = load_text("a.yaml", yaml, STRICT).unwrap().catalog;
        insta::assert_snapshot!(listing(&first), @r"
        billing:invoices.create#38b9f081 | tool `billing.invoices.create` of Billing | destructive,money | Destructive effects
        prompt::docs:sum_up#db9a95ca | prompt `sum up` of docs |  | Undeclared effects
        resource::docs:readme#12345678~2 | resource `readme` of - |  | Undeclared pure
        some-agents:helper#5e236e23 | agent `helper` of Some Agents | read-only | ReadOnly pure
        ");
        let written = first.to_native_json();
        let second = load_text("a.json", &written, STRICT).unwrap().catalog;
        assert_eq!(second.to_native_json(), written);
        let mixed = r#"{"server": "S", "tools": [{"name": "a b", "inputSchema": {"type": "object"}}], "resources": [{"uri": "u"}, {"uri": "u", "title": "t"}]}"#;
        let first = load_text("a.json", mixed, STRICT).unwrap().catalog;
        let second = load_text("b.json", &first.to_native_json(), STRICT).unwrap().catalog;
        assert_eq!(listing(&first), listing(&second));
    }

    /// The message of a strict load, without the folder.
    fn refusal(name: &str, text: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let message = load(&[&path], STRICT).unwrap_err().to_string();
        message.replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn bad_input_names_the_place_and_the_fix() {
        let deep = format!(
            "[{{\"name\": \"d\", \"inputSchema\": {}{}}}]",
            "{\"a\":".repeat(200),
            "1".to_owned() + &"}".repeat(200)
        );
        let deep_unknown = format!("{{\"x\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let deep_block = "- ".repeat(1000);
        let deep_yaml = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let level = |n: usize| format!("l{}: &l{} [{}]\n", n + 1, n + 1, vec![format!("*l{n}"); 20].join(", "));
        let laughs = "l0: &l0 x\n".to_owned() + &(0..7).map(level).collect::<String>() + "tools: []";
        let nested_anchors = (0..120).map(|n| format!("&n{n} [")).collect::<String>() + &"x, ".repeat(20_000);
        let many_anchors = nested_anchors + &"]".repeat(120);
        let cases: Vec<(&str, &[u8])> = vec![
            ("a.json", b""),
            ("a.json", b"[{\"name\": \"x\"},\n {\"name\": }]"),
            ("a.json", b"[{\"name\": \"x\"}"),
            ("a.json", b"\"tools\""),
            ("a.json", b"tools"),
            ("a.json", b"[]"),
            ("a.json", b"{\"tools\": []}"),
            ("a.json", b"{\"tool\": []}"),
            ("a.json", b"{\"tools\": {\"name\": 1}}"),
            ("a.json", b"{\"jsonrpc\": \"2.0\", \"error\": {\"code\": -32601, \"message\": \"no such method\"}}"),
            ("a.json", b"{\"result\": []}"),
            ("a.json", b"[3]"),
            ("a.json", b"[[\"name\"]]"),
            ("a.json", b"[{\"name\": \"ok\"}, {\"name\": 3}]"),
            ("a.json", b"[{\"description\": \"nameless\"}]"),
            ("a.json", b"[{\"name\": \"x\", \"description\": [1]}]"),
            ("a.json", b"[{\"name\": \"x\", \"inputSchema\": true}]"),
            ("a.json", b"[{\"name\": \"x\", \"annotations\": {\"readOnlyHint\": \"yes\"}}]"),
            ("a.json", b"[{\"name\": \"x\", \"tags\": [\"a\", 1]}]"),
            ("a.json", b"{\"prompts\": [{\"name\": \"p\", \"arguments\": [{\"nome\": 1}]}]}"),
            ("a.json", b"{\"resources\": [{\"name\": \"r\"}]}"),
            ("a.json", b"[{\"name\": \"x\"}, {\"name\": \"x\"}]"),
            ("a.json", b"[{\"name\": \"\\ud800\"}]"),
            ("a.json", b"[\n{\"name\": \"\xff\"}]"),
            ("a.json", deep.as_bytes()),
            ("a.json", deep_unknown.as_bytes()),
            ("a.yaml", b"- name: x\n  description: [a\n"),
            ("a.yaml", b"- name: x\n- 7\n"),
            ("a.yaml", b"tools: 7\n"),
            ("a.yaml", b"a: &a [x, x]\nb: &b [*a, *a, *a, *a]\ntools: *c"),
            ("a.yaml", deep_yaml.as_bytes()),
            ("a.yaml", deep_block.as_bytes()),
            ("a.json", b"{\"schema\": 2, \"items\": []}"),
            ("a.json", b"{\"items\": []}"),
            ("a.json", b"[{\"name\": \"x\"}, {\"id\": \"x\", \"kind\": \"robot\", \"name\": \"x\"}]"),
            ("a.yaml", b"- {id: x, kind: tool, name: x, cost_hint: -1}"),
            ("a.yaml", b"- name: x\n  name: y\n"),
            ("a.yaml", b"- name: x\n--- \n- name: y\n"),
            ("a.yaml", laughs.as_bytes()),
            ("a.yaml", many_anchors.as_bytes()),
            ("a.json", b"{\"prompts\": [{\"name\": \"p\", \"arguments\": [{\"name\": \"a\"}, {\"name\": \"a\"}]}]}"),
            ("a.json", b"{\"schema\": 1, \"items\": [], \"extra\": 1}"),
            ("a.json", b"{\"schema\": 1, \"items\": [{\"name\": \"x\", \"descripton\": \"\"}]}"),
            ("a.json", b"{\"schema\": 1, \"items\": [{\"name\": \"x\", \"cost_hint\": -1}]}"),
            ("a.json", b"{\"schema\": 1, \"items\": [{\"name\": \"x\", \"args_schema\": []}]}"),
            ("a.json", b"{\"schema\": 1, \"items\": [{\"name\": \"x\", \"id\": \"x\"}]}"),
            ("a.json", b"{\"schema\": 1, \"items\": [{\"name\": \"x\", \"id\": \"prompt::a:x@1\"}]}"),
            ("a.json", b"{\"schema\": 1, \"items\": [{\"name\": \"x\", \"id\": \"a:x@1\", \"namespace\": \"b\"}]}"),
            ("a.json", b"{\"schema\": 1, \"items\": [{\"name\": \"x\", \"id\": \"a:x@1~2\"}]}"),
            ("a.json", b"{\"schema\": 1, \"items\": [{\"name\": \"x\", \"id\": \"a:x@1\"}, {\"name\": \"x\", \"id\": \"a:x@1\"}]}"),
        ];
        let messages: String = cases.iter().map(|(name, text)| refusal(name, text) + "\n").collect();
        insta::assert_snapshot!(messages, @r#"
        a.json: top level: the file is empty; put a server's answer to `tools/list` in it, or leave it out with --lenient
        a.json: line 2, column 11: expected value; correct it, or leave it out with --lenient
        a.json: line 1, column 14: EOF while parsing a list; correct it, or leave it out with --lenient
        a.json: top level: expected an array of tools or an object; give a list of tools, such as an answer to `tools/list` or a file of `mcp capture`, or leave it out with --lenient
        a.json: top level: it is not JSON; give a list of tools, such as an answer to `tools/list` or a file of `mcp capture`, or leave it out with --lenient
        the catalog is empty: a.json: no tools, resources or prompts are listed
        the catalog is empty: a.json: no tools, resources or prompts are listed
        a.json: top level: it has none of the keys `tools`, `resources`, `prompts` and `items`; give a list of tools, such as an answer to `tools/list` or a file of `mcp capture`, or leave it out with --lenient
        a.json: tools["name"]: expected an object, not a number; correct it, or leave it out with --lenient
        a.json: top level: a JSON-RPC error response: {"code": -32601, "message": "no such method"}; ask the server again, or leave it out with --lenient
        a.json: result: invalid length 0, expected an object with `tools`, `resources` or `prompts`; correct it, or leave it out with --lenient
        a.json: tools[0]: expected an object, not a number; correct it, or leave it out with --lenient
        a.json: tools[0]: expected an object, not an array; correct it, or leave it out with --lenient
        a.json: tools[1]: `name` must be a string, not a number; correct it, or leave it out with --lenient
        a.json: tools[0]: `name` is missing or empty; correct it, or leave it out with --lenient
        a.json: tools[0] `x`: `description` must be a string, not an array; correct it, or leave it out with --lenient
        a.json: tools[0] `x`: `inputSchema` must be an object, not a boolean; correct it, or leave it out with --lenient
        a.json: tools[0] `x`: `readOnlyHint` must be true or false, not a string; correct it, or leave it out with --lenient
        a.json: tools[0] `x`: `tags` must be an array of strings, not a number; correct it, or leave it out with --lenient
        a.json: prompts[0] `p`: `arguments`: `name` is missing or empty; correct it, or leave it out with --lenient
        a.json: resources[0] `r`: `uri` is missing or empty; correct it, or leave it out with --lenient
        duplicate id `mcp:x#a32362d4`: a.json: tools[0] `x` and a.json: tools[1] `x`; remove one, or give its server another name, or leave the second out with --lenient
        a.json: tools[0]: unexpected end of hex escape; correct it, or leave it out with --lenient
        a.json: line 2, byte 12 of the file: invalid UTF-8; save the file as UTF-8, or leave it out with --lenient
        a.json: tools[0] `d`: it is nested deeper than 127 levels; make it flatter, or leave it out with --lenient
        a.json: top level: it has none of the keys `tools`, `resources`, `prompts` and `items`; give a list of tools, such as an answer to `tools/list` or a file of `mcp capture`, or leave it out with --lenient
        a.yaml: line 2, column 16: unclosed bracket '['; correct it, or leave it out with --lenient
        a.yaml: tools[1]: expected an object, not a number; correct it, or leave it out with --lenient
        a.yaml: top level: invalid type: integer `7`, expected a sequence; correct it, or leave it out with --lenient
        a.yaml: line 3, column 8: alias references unknown anchor; correct it, or leave it out with --lenient
        a.yaml: line 1, column 256: it is nested deeper than 127 levels; make it flatter, or leave it out with --lenient
        a.yaml: line 1, column 257: it is nested deeper than 127 levels; make it flatter, or leave it out with --lenient
        a.json: top level: `schema` is 2; write the file with schema 1, or leave it out with --lenient
        a.json: top level: `schema` is missing; write the native form as {"schema": 1, "items": [...]}, or leave it out with --lenient
        a.json: tools[1] `x`: unknown `kind` `robot`; use tool, agent, skill, flow, resource, prompt or internal, or leave it out with --lenient
        a.yaml: tools[0] `x`: `cost_hint` must be a number of at least 0, not -1; correct it, or leave it out with --lenient
        a.yaml: line 2, column 3: the key `name` occurs twice; remove one, or leave it out with --lenient
        a.yaml: line 2, column 1: it holds more than one document; keep one per file, or leave it out with --lenient
        a.yaml: line 6, column 30: its anchors and aliases grow too large when expanded; write the values out, or leave it out with --lenient
        a.yaml: line 1, column 25547: its anchors and aliases grow too large when expanded; write the values out, or leave it out with --lenient
        a.json: prompts[0] `p`: `arguments`: two are named `a`; rename one, or leave it out with --lenient
        a.json: line 1, column 34: unknown field `extra`, expected `schema` or `items`; correct it, or leave it out with --lenient
        a.json: items[0] `x`: unknown field `descripton`, expected one of `id`, `kind`, `name`, `description`, `namespace`, `server`, `server_description`, `version`, `server_version`, `tags`, `args_schema`, `output_schema`, `examples`, `constraints`, `side_effects`, `safety`, `cost_hint`, `depends_on`, `provides`, `requires`, `metadata`; correct it, or leave it out with --lenient
        a.json: items[0] `x`: `cost_hint` must be a finite number of at least 0, not -1; correct it, or leave it out with --lenient
        a.json: items[0] `x`: `args_schema` must be an object; correct it, or leave it out with --lenient
        a.json: items[0] `x`: `x` is not a tool id (namespace:name[@version][#hash8]): there is no `:` after a namespace; correct it, or leave it out with --lenient
        a.json: items[0] `x`: `prompt::a:x@1` is not the id of a tool; correct it, or leave it out with --lenient
        a.json: items[0] `x`: `namespace` is `b`, but its id has `a`; correct it, or leave it out with --lenient
        a.json: items[0] `x`: `a:x@1~2` is not the id of a tool; correct it, or leave it out with --lenient
        duplicate id `a:x@1`: a.json: items[0] `x` and a.json: items[1] `x`; remove one, or give its server another name, or leave the second out with --lenient
        "#);
    }

    #[test]
    fn paths_that_hold_no_catalog() {
        let folder = folder(&[("large.json", ""), ("readme.md", "")]);
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("empty")).unwrap();
        std::fs::create_dir_all(at("outer/inner.json")).unwrap();
        std::fs::File::options().write(true).open(at("large.json")).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        let message = |path: PathBuf, options| {
            let message = load(&[path], options).unwrap_err().to_string();
            message.replace(&folder.path().display().to_string(), "")
        };
        let messages = [
            message(at("absent.json"), LENIENT),
            message(at("empty"), STRICT),
            message(at("outer"), STRICT),
            message(at("outer"), LENIENT),
            message(at("large.json"), LENIENT),
            load::<&Path>(&[], STRICT).unwrap_err().to_string(),
        ];
        insta::assert_snapshot!(messages.join("\n"), @r"
        /absent.json: there is no such file
        /empty: the folder has no *.json, *.yaml or *.yml file and no SKILL.md
        /outer/inner.json: it is a folder; replace it with a catalog file
        the catalog is empty: /outer: 1 left out, the first one /outer/inner.json: it is a folder; replace it with a catalog file
        /large.json: the file is over the limit of 256 MiB; split it into one file per server
        the catalog is empty: no file or folder was given
        ");
    }

    #[test]
    fn a_lenient_load_keeps_the_rest_and_reports() {
        let long = "x".repeat(MAX_DESCRIPTION_BYTES + 1);
        let folder = folder(&[
            (
                "a.json",
                &format!(
                    r#"[{{"name": "good"}}, {{"name": "long", "description": "{long}"}}, {{"name": 1}}, {{"name": "good"}}]"#
                ),
            ),
            ("b.json", "[{"),
            ("c.json", r#"{"tools": []}"#),
            ("d.yaml", "- name: good"),
        ]);
        assert!(load(&[folder.path()], STRICT).unwrap_err().to_string().contains("1048577 bytes"));
        let loaded = load(&[folder.path()], LENIENT).unwrap();
        let left_out = loaded.left_out.iter().map(|LeftOut { place, reason }| format!("{place}: {reason}\n"));
        let left_out = left_out.collect::<String>().replace(&format!("{}/", folder.path().display()), "");
        insta::assert_snapshot!(listing(&loaded.catalog) + &left_out, @r"
        a:good#24c5ebb9 | tool `good` of a |  | Undeclared effects
        d:good#24c5ebb9 | tool `good` of d |  | Undeclared effects
        a.json: tools[1] `long`: its description has 1048577 bytes, over the limit of 1048576; shorten it
        a.json: tools[2]: `name` must be a string, not a number
        b.json: line 1, column 2: EOF while parsing an object
        a.json: tools[3] `good`: its id `a:good#24c5ebb9` is already that of a.json: tools[0] `good`
        ");
    }

    #[test]
    fn a_lenient_load_leaves_out_a_named_file() {
        let folder = folder(&[("bad.json", "[{"), ("good.json", r#"[{"name": "good"}]"#), ("bad.yaml", "tools: 7")]);
        let at = |name: &str| folder.path().join(name);
        let loaded = load(&[at("bad.json"), at("good.json"), at("bad.yaml")], LENIENT).unwrap();
        assert_eq!(loaded.catalog.len(), 1);
        let places: Vec<String> = loaded.left_out.iter().map(|left_out| left_out.place.clone()).collect();
        let expected = ["bad.json: line 1, column 2", "bad.yaml: top level"];
        assert_eq!(places, expected.map(|place| format!("{}/{place}", folder.path().display())));
        let error = load(&[at("bad.json"), at("good.json")], STRICT).unwrap_err().to_string();
        assert!(error.ends_with("; correct it, or leave it out with --lenient"), "{error}");
        assert!(matches!(load(&[at("bad.json")], LENIENT), Err(CatalogError::Empty(_))));
        assert!(matches!(load(&[at("good.json"), at("absent.json")], LENIENT), Err(CatalogError::Read { .. })));
    }

    #[test]
    fn values_from_code_make_a_catalog() {
        let tools = [json!({"name": "b", "title": "B"}), json!({"name": "a", "server": "own"})];
        let catalog = Catalog::from_values(&tools, Some("My Server")).unwrap();
        insta::assert_snapshot!(listing(&catalog), @r"
        my-server:b#0eb0d799 | tool `b` of My Server |  | Undeclared effects
        own:a#fdad281d | tool `a` of own |  | Undeclared effects
        ");
        assert_eq!(catalog.items()[0].raw.as_deref().unwrap().get(), r#"{"name":"b","title":"B"}"#);
        let error = Catalog::from_values(&[json!({"name": "a"}), json!({"name": true})], None).unwrap_err();
        assert_eq!(error.to_string(), "tools[1]: `name` must be a string, not a boolean");
        let deep = (0..500).fold(json!(1), |inner, _| json!([inner]));
        let error = Catalog::from_values(&[json!({"name": "deep", "x": deep})], None).unwrap_err();
        assert_eq!(error.to_string(), "tools[0] `deep`: it is nested deeper than 127 levels; make it flatter");
        assert!(matches!(Catalog::from_values(&[], None), Err(CatalogError::Empty(_))));
    }

    #[test]
    fn everything_of_a_document_belongs_to_the_server_it_is_given() {
        let tool = json!({"name": "a", "description": "b"});
        let lists = json!({
            "tools": [tool], "resources": [{"uri": "file:///x", "name": "r"}], "prompts": [{"name": "p"}],
        });
        for document in [lists.clone(), json!({"jsonrpc": "2.0", "id": 1, "result": lists}), json!([tool])] {
            let alone = Catalog::from_json(&document.to_string()).unwrap();
            let catalog = Catalog::from_json_of(&document.to_string(), Some("My Server")).unwrap();
            assert_eq!(catalog.len(), alone.len());
            let servers: BTreeSet<Option<&str>> = catalog.items().iter().map(|item| item.server.as_deref()).collect();
            assert_eq!(servers, BTreeSet::from([Some("My Server")]), "{document}");
        }
        // What names its server, or has its id, keeps it.
        for document in [
            json!({"server": "own", "tools": [tool]}).to_string(),
            Catalog::from_json(&lists.to_string()).unwrap().to_native_json(),
        ] {
            let alone = Catalog::from_json(&document).unwrap();
            assert_eq!(listing(&Catalog::from_json_of(&document, Some("s")).unwrap()), listing(&alone));
        }
    }

    #[test]
    fn two_servers_of_one_namespace_do_not_collide() {
        let folder = folder(&[
            ("a.json", r#"{"server": "GitHub", "tools": [{"name": "x"}]}"#),
            ("b.json", r#"{"server": "github", "tools": [{"name": "x"}]}"#),
        ]);
        let loaded = load(&[folder.path()], STRICT).unwrap();
        insta::assert_snapshot!(listing(&loaded.catalog), @r"
        github-f911:x#a32362d4 | tool `x` of GitHub |  | Undeclared effects
        github:x#a32362d4 | tool `x` of github |  | Undeclared effects
        ");
    }

    #[test]
    fn the_public_catalogs_load() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/catalogs");
        if !folder.is_dir() {
            eprintln!("skipped: {} is not there", folder.display());
            return;
        }
        let loaded = load(&[&folder], STRICT).unwrap();
        let items = loaded.catalog.items();
        assert_eq!(items.iter().filter(|item| item.kind == Kind::Tool).count(), 1924);
        let namespaces: BTreeSet<&str> = items.iter().map(|item| item.namespace.as_str()).collect();
        assert_eq!(namespaces.len(), 70);
        for item in items {
            let id = parse_primitive_id(&item.id).unwrap();
            assert_eq!(format_primitive_id(&id), item.id);
            assert_eq!(id.parts.namespace(), item.namespace);
        }
        let native = loaded.catalog.to_native_json();
        assert_eq!(load_text("native.json", &native, STRICT).unwrap().catalog.to_native_json(), native);
    }

    #[test]
    fn the_public_collections_load() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/gold");
        let Ok(collections) = std::fs::read_dir(&folder) else {
            eprintln!("skipped: {} is not there", folder.display());
            return;
        };
        for collection in collections {
            let path = collection.unwrap().path().join("catalog.json");
            let expected = serde_json::from_str::<Vec<Value>>(&std::fs::read_to_string(&path).unwrap()).unwrap().len();
            let catalog = load(&[&path], STRICT).unwrap().catalog;
            assert_eq!(catalog.len(), expected);
            assert!(catalog.items().iter().all(|item| parse_primitive_id(&item.id).is_ok()));
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let word = proptest::sample::select(vec![
            "name",
            "description",
            "inputSchema",
            "properties",
            "required",
            "tools",
            "items",
            "schema",
            "kind",
            "id",
            "resources",
            "prompts",
            "uri",
            "arguments",
            "annotations",
            "readOnlyHint",
            "tags",
            "server",
            "result",
            "_meta",
            "version",
            "a:b@1",
            "tool",
            "",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-2i64..9).prop_map(Value::from),
            word.clone().prop_map(Value::from),
            "\\PC{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((word.clone(), inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn no_bytes_panic(bytes in any::<Vec<u8>>(), name in proptest::sample::select(vec!["a.json", "a.yaml"])) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            load(&[&path], LENIENT).ok();
            load(&[folder.path()], LENIENT).ok();
        }

        #[test]
        fn no_json_panics_and_what_loads_is_valid(value in any_json(), text in "[\\[\\]{}:,\"a0 \n&*!|>-]{0,40}") {
            for (name, text) in [("a.json", value.to_string()), ("a.yaml", value.to_string()), ("b.yaml", text)] {
                if let Ok(loaded) = load_text(name, &text, LENIENT) {
                    for item in loaded.catalog.items() {
                        let canonical = item.id.split('~').next().unwrap();
                        prop_assert!(parse_primitive_id(canonical).is_ok(), "{}", item.id);
                        prop_assert!(item.safety != Safety::ReadOnly || item.tags.contains(&"read-only".to_owned()));
                    }
                    let native = loaded.catalog.to_native_json();
                    let again = load_text("c.json", &native, STRICT).unwrap().catalog;
                    prop_assert_eq!(again.to_native_json(), native);
                }
            }
        }

        #[test]
        fn the_order_of_files_and_tools_changes_nothing(
            names in proptest::collection::btree_set("[a-cA-C]{1,2}[ ._][a-c]{0,2}(_x_y)?", 1..12),
            servers in proptest::collection::vec(proptest::sample::select(vec!["GitHub", "github", "git hub", "Git-Hub"]), 12),
            turn in 0usize..12,
        ) {
            let tools: Vec<Value> =
                names.iter().zip(&servers).map(|(name, server)| json!({"name": name, "server": server})).collect();
            let forward = Catalog::from_values(&tools, None).unwrap();
            let mut turned = tools.clone();
            turned.rotate_left(turn % tools.len());
            turned.reverse();
            prop_assert_eq!(listing(&forward), listing(&Catalog::from_values(&turned, None).unwrap()));
            // The same tools as files of any names.
            let file = |index: usize| json!([tools[index]]).to_string();
            let one = tempfile::tempdir().unwrap();
            let other = tempfile::tempdir().unwrap();
            for index in 0..tools.len() {
                std::fs::write(one.path().join(format!("{index}.json")), file(index)).unwrap();
                std::fs::write(other.path().join(format!("{}.json", tools.len() - index)), file(index)).unwrap();
            }
            let listed = |folder: &tempfile::TempDir| listing(&load(&[folder.path()], STRICT).unwrap().catalog);
            prop_assert_eq!(listed(&one), listed(&other));
            prop_assert_eq!(listed(&one), listing(&forward));
        }
    }
}
