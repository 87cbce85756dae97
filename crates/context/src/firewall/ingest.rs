//! Turns the output of a call, as a server sends it, into the event for the log and the envelope for the caller.
//!
//! The texts of all parts, joined by line breaks, are the main content. Other content is stored as artifacts,
//! `mcp:<tool>:<kind>:<number>`, and a line in brackets names each of them in its place. A handle always belongs to one
//! content: a number that is taken by other bytes is skipped.
//!
//! Structured content that carries the same data as the text (half of what servers send) is stored and shown once. It
//! is the same when it equals the text, read as a value if it is one; when it wraps the text in an object with one key;
//! or when it is an array with a text part for each item. Otherwise both are stored and shown.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::facts::{clip, facts};
use super::seen::Seen;
use super::{Content, Firewall, FirewallError, IS_ERROR, MOST_BYTES_PER_TOKEN, Mask, RESULT, SHOWN_AS, strategy_name};
use crate::brief::{Piece, pack};
use crate::clean::one_line;
use crate::config::Secrets;
use crate::event::{
    ArtifactRef, ContentHash, ContextItem, Handle, ItemId, ItemKind, Part, PartBody, ResultEnvelope, Status, Strategy,
    ToolOutput, ViewSpec,
};
use crate::literal::{Kind, Value as Literal};
use crate::store::StoreError;
use crate::view::automatic;

/// What is shown for an output without content.
const NOTHING: &str = "(no content)";

/// The metadata key of a call with the name of what it calls.
const FUNCTION_NAME: &str = "function_name";

/// Lines about further parts take at most this share of the cap.
const NOTES_SHARE: usize = 3;

/// A part of what is shown of an output, in the order of its parts.
enum Segment<'o> {
    /// Text of the result.
    Text(&'o str),
    /// A line written by the firewall.
    Note(String),
}

/// The parts of an output as they are taken in.
struct Intake<'f, 'o> {
    firewall: &'f Firewall<'f>,
    tool: String,
    seen: &'f mut Seen,
    segments: Vec<Segment<'o>>,
    artifacts: Vec<ArtifactRef>,
    views: Vec<ViewSpec>,
    /// Links with everything that the server said of them, since the artifact holds only the address.
    links: Vec<Value>,
    /// Whether a part did not decode or could not be stored.
    incomplete: bool,
}

impl Firewall<'_> {
    /// Takes in a call's output as a server sends it: returns the event for the log (`result:<call id>`, a child of the
    /// call and as sensitive as the call) and the envelope for the caller.
    ///
    /// # Errors
    /// The text of the result could not be stored. A further part that could not be stored is named as such in the
    /// text, and the status is then [`Status::Partial`].
    pub fn ingest(
        &self,
        call: &ContextItem,
        output: &ToolOutput,
        seen: &mut Seen,
    ) -> Result<(ContextItem, ResultEnvelope), FirewallError> {
        let clean;
        let output = match (self.config.secrets, self.redactor) {
            (Secrets::Keep, None) => output,
            _ => {
                clean = self.redacted(output);
                &clean
            }
        };
        let mut item = event_of(call, output.is_error);
        let mut intake = Intake::of(self, call, seen);
        output.parts.iter().for_each(|part| intake.take(part));
        let joined = intake.joined();
        let (mut main, mut extra) = (Content::of(&joined), output.structured.as_deref().map(Content::of));
        if joined.trim().is_empty() {
            main = extra.take().unwrap_or(main);
        } else if extra.as_ref().is_some_and(|structured| carries(&intake.texts(), &main, structured)) {
            extra = None;
        }
        let extra = extra.and_then(|content| intake.take_structured(content));
        let Intake { seen, mut segments, mut artifacts, mut views, links, incomplete, .. } = intake;
        if joined.trim().is_empty() && !main.text.trim().is_empty() {
            segments.push(Segment::Text(main.text));
        }
        // A text that is large by itself need not be joined with the other parts to know that the whole is large.
        let whole = if self.is_large(main.text) { None } else { Some(shown(&segments, extra.as_ref())) };
        let small = whole.filter(|whole| !self.is_large(whole));
        let strategy = if let Some(whole) = small {
            item.text = if whole.is_empty() { NOTHING.to_owned() } else { whole };
            Strategy::Passthrough
        } else {
            let notes = segments.iter().filter_map(|segment| match segment {
                Segment::Note(note) => Some(note.clone()),
                Segment::Text(_) => None,
            });
            let artifact = if main.text.is_empty() { None } else { Some(self.keep(&item.id, &main, RESULT)?) };
            let content = &main;
            let main = artifact.as_ref().map(|artifact| (&main, artifact));
            let (text, strategy) = self.replace(call, main, extra.as_ref(), notes.collect(), output.is_error, seen);
            item.text = text;
            item.metadata.insert(SHOWN_AS.to_owned(), strategy_name(strategy).into());
            item.artifact.clone_from(&artifact);
            views.splice(0..0, artifact.iter().flat_map(|artifact| content.views(artifact)));
            artifacts.splice(0..0, artifact);
            strategy
        };
        let contents: Vec<&Content<'_>> =
            [Some(&main), extra.as_ref().map(|(content, _)| content)].into_iter().flatten().collect();
        let mut facts: Vec<String> = contents
            .iter()
            .rev()
            .flat_map(|content| facts(content.text, content.document.as_ref(), self.config))
            .collect();
        facts.truncate(self.config.max_facts);
        let original: usize = contents.iter().map(|content| content.text.len()).sum();
        let original_tokens = contents.iter().map(|content| self.raw_count(content.text)).sum();
        let envelope = ResultEnvelope {
            status: match (output.is_error, incomplete) {
                (true, _) => Status::Error,
                (false, true) => Status::Partial,
                (false, false) => Status::Ok,
            },
            summary: item.text.clone(),
            facts,
            artifacts,
            views,
            provenance: provenance(&item, call, output, links),
            firewall: Some(self.stats(strategy, original as u64, original_tokens, self.estimator.count(&item.text))),
        };
        Ok((item, envelope))
    }

    /// The output with a mark in place of every secret in its texts and in what the server said of them.
    fn redacted(&self, output: &ToolOutput) -> ToolOutput {
        let mut mask = Mask::of(self);
        let mut output = output.clone();
        output.structured.iter_mut().for_each(|text| mask.text(text));
        mask.members(&mut output.other);
        for part in &mut output.parts {
            mask.members(&mut part.annotations);
            mask.members(&mut part.other);
            match &mut part.body {
                PartBody::Text(text) => mask.text(text),
                PartBody::ResourceText { uri, text, .. } => [uri, text].into_iter().for_each(|text| mask.text(text)),
                PartBody::ResourceBlob { uri, bytes, .. } => {
                    mask.text(uri);
                    mask.bytes(bytes);
                }
                PartBody::ResourceLink { uri, name, about } => {
                    [uri, name].into_iter().for_each(|text| mask.text(text));
                    mask.members(about);
                }
                PartBody::Unknown(value) => mask.value("", value),
                PartBody::Image { bytes, .. } | PartBody::Audio { bytes, .. } => mask.bytes(bytes),
            }
        }
        output
    }

    /// Takes in a result that was processed elsewhere: returns the event for the log, as [`Firewall::ingest`] makes it, and
    /// the facts to remember. What the envelope says is kept as it is. Facts are bounded in number and length by the
    /// configuration, and secrets are masked where that says so, in labels too. The event refers to the first artifact
    /// of the envelope that is in the store with the same content; where none is, the first one is in its metadata, as
    /// `artifact_ref`.
    ///
    /// # Errors
    /// [`FirewallError::Store`] when the store failed.
    pub fn admit(
        &self,
        call: &ContextItem,
        envelope: &ResultEnvelope,
    ) -> Result<(ContextItem, Vec<String>), FirewallError> {
        let mut mask = Mask::of(self);
        let mut item = event_of(call, envelope.status == Status::Error);
        item.text.clone_from(&envelope.summary);
        mask.text(&mut item.text);
        if let Some(stats) = envelope.firewall.as_ref().filter(|stats| stats.strategy != Strategy::Passthrough) {
            item.metadata.insert(SHOWN_AS.to_owned(), strategy_name(stats.strategy).into());
        }
        for artifact in &envelope.artifacts {
            match self.artifacts.reference(&artifact.handle) {
                Ok(mut kept) if kept.content_hash == artifact.content_hash => {
                    mask.text(&mut kept.label);
                    item.artifact = Some(kept);
                    break;
                }
                Ok(_) | Err(StoreError::NoArtifact(_) | StoreError::Evicted { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let (None, Some(elsewhere)) = (&item.artifact, envelope.artifacts.first()) {
            let mut elsewhere = elsewhere.clone();
            mask.text(&mut elsewhere.label);
            // References always serialise.
            let elsewhere = serde_json::to_value(elsewhere).unwrap_or_default();
            item.metadata.insert("artifact_ref".to_owned(), elsewhere);
        }
        let facts = envelope.facts.iter().map(|fact| clip(&self.taken_in(fact), self.config.max_fact_chars));
        let facts = facts.filter(|fact| !fact.is_empty()).take(self.config.max_facts).collect();
        Ok((item, facts))
    }

    /// Stores the content of a result that was processed elsewhere under the handles by which its envelope names it. A
    /// handle that is taken stays as it is, and content in which something is masked is not what the envelope names.
    ///
    /// # Errors
    /// [`FirewallError::Store`] when the store failed.
    pub(crate) fn keep_named(&self, envelope: &ResultEnvelope, content: &str) -> Result<(), FirewallError> {
        let content = self.taken_in(content);
        let hash = ContentHash::of(content.as_bytes());
        for ArtifactRef { handle, media_type, label, .. } in
            envelope.artifacts.iter().filter(|artifact| artifact.content_hash == hash)
        {
            if let Err(StoreError::NoArtifact(_)) = self.artifacts.reference(handle) {
                self.artifacts.put(handle, content.as_bytes(), media_type, &self.taken_in(label))?;
            }
        }
        Ok(())
    }

    /// What the prompt shows of an output that is too large: the replacement of its text, the replacement of its
    /// structured content where that says something different, and the lines that name further parts.
    fn replace(
        &self,
        call: &ContextItem,
        main: Option<(&Content<'_>, &ArtifactRef)>,
        extra: Option<&(Content<'_>, ArtifactRef)>,
        notes: Vec<String>,
        failed: bool,
        seen: &mut Seen,
    ) -> (String, Strategy) {
        let cap = self.config.summary_tokens;
        let cost = |text: &str| self.estimator.count(&format!("{text}\n"));
        let share = if main.is_none() && extra.is_none() { cap } else { cap / NOTES_SHARE };
        let mut lines: Vec<String> = Vec::new();
        let mut left = cap;
        let notes = pack(&[Piece::list(0, "", notes, "\n", (0, 1), 1)], share, self.estimator);
        if !notes.is_empty() {
            left = left.saturating_sub(cost(&notes));
        }
        let mut strategy = Strategy::Summary;
        if let Some((content, artifact)) = main {
            // The structured content gets what it needs, up to half of the cap.
            let reserved = extra.map_or(0, |(extra, artifact)| {
                let most = left / 2;
                let small = extra.text.len() <= most.saturating_mul(MOST_BYTES_PER_TOKEN);
                if small { cost(&labelled(artifact, extra.text)).min(most) } else { most }
            });
            let (text, shown_as) = self.stand_in(Some(call), content, artifact, failed, left - reserved, seen);
            left = left.saturating_sub(cost(&text));
            strategy = shown_as;
            lines.push(text);
        }
        if let Some((content, artifact)) = extra {
            let label = cost(&labelled(artifact, ""));
            let (text, _) = self.stand_in(None, content, artifact, false, left.saturating_sub(label), seen);
            lines.push(labelled(artifact, &text));
        }
        lines.extend(Some(notes).filter(|notes| !notes.is_empty()));
        (self.clipped(&lines.join("\n"), cap), strategy)
    }
}

impl<'f, 'o> Intake<'f, 'o> {
    fn of(firewall: &'f Firewall<'f>, call: &ContextItem, seen: &'f mut Seen) -> Self {
        let tool = tool_name(call);
        Self {
            firewall,
            tool,
            seen,
            segments: Vec::new(),
            artifacts: Vec::new(),
            views: Vec::new(),
            links: Vec::new(),
            incomplete: false,
        }
    }

    /// Takes in one part: text as it is, anything else as an artifact and a line that names it.
    fn take(&mut self, part: &'o Part) {
        match &part.body {
            PartBody::Text(text) => self.segments.push(Segment::Text(text)),
            PartBody::Image { bytes, media_type } => self.file("image", &one_line(media_type), bytes, media_type),
            PartBody::Audio { bytes, media_type } => self.file("audio", &one_line(media_type), bytes, media_type),
            PartBody::ResourceBlob { uri, media_type, bytes } => {
                let media_type = media_type.as_deref().unwrap_or("application/octet-stream");
                self.file(
                    "resource",
                    &format!("resource {}, {}", one_line(uri), one_line(media_type)),
                    bytes,
                    media_type,
                );
            }
            PartBody::ResourceText { uri, media_type, text } => {
                let media_type = media_type.as_deref().unwrap_or("text/plain");
                let about = format!("resource {}, {}", one_line(uri), one_line(media_type));
                self.file("resource", &about, text.as_bytes(), media_type);
                self.segments.push(Segment::Text(text));
            }
            PartBody::ResourceLink { uri, name, about } => {
                let label = format!("link {}, {}", one_line(name), one_line(uri));
                if let Some(artifact) = self.store("resource_link", uri.as_bytes(), "text/uri-list", &label) {
                    self.segments.push(Segment::Note(format!("[{label}: {}]", artifact.handle)));
                    self.links.push(json!({"handle": artifact.handle, "uri": uri, "name": name, "about": about}));
                    self.artifacts.push(artifact);
                }
            }
            PartBody::Unknown(value) => {
                self.incomplete = true;
                let kind = value.get("type").and_then(Value::as_str).unwrap_or("of no type");
                let json = value.to_string();
                self.file("unknown", &format!("unknown part {}", one_line(kind)), json.as_bytes(), "application/json");
            }
        }
    }

    /// Stores a part that is not text, or stores it in addition to its text, and names it in a line.
    fn file(&mut self, kind: &str, about: &str, bytes: &[u8], media_type: &str) {
        if let Some(artifact) = self.store(kind, bytes, media_type, about) {
            let note = format!("[{about}, {} bytes: {}]", artifact.size_bytes, artifact.handle);
            self.segments.push(Segment::Note(note));
            self.views.extend(automatic(&artifact, bytes));
            self.artifacts.push(artifact);
        }
    }

    /// Stores structured content that says something different from the text.
    fn take_structured(&mut self, content: Content<'o>) -> Option<(Content<'o>, ArtifactRef)> {
        let artifact =
            self.store("structured_content", content.text.as_bytes(), content.media_type, "structured content")?;
        self.views.extend(content.views(&artifact));
        self.artifacts.push(artifact.clone());
        Some((content, artifact))
    }

    /// Stores under the first free handle of the kind; when that fails, a line says so.
    fn store(&mut self, kind: &str, bytes: &[u8], media_type: &str, label: &str) -> Option<ArtifactRef> {
        match self.put(kind, bytes, media_type, label) {
            Ok(artifact) => Some(artifact),
            Err(error) => {
                self.incomplete = true;
                self.segments.push(Segment::Note(format!("[{label}, {} bytes: not stored: {error}]", bytes.len())));
                None
            }
        }
    }

    fn put(&mut self, kind: &str, bytes: &[u8], media_type: &str, label: &str) -> Result<ArtifactRef, StoreError> {
        let (artifacts, hash) = (self.firewall.artifacts, ContentHash::of(bytes));
        let family = format!("mcp:{}:{kind}", self.tool);
        let mut number = self.seen.parts.get(&family).copied().unwrap_or(0);
        loop {
            let handle = Handle::new(match (kind, number) {
                ("structured_content", 0) => family.clone(),
                _ => format!("{family}:{number}"),
            });
            number += 1;
            match artifacts.reference(&handle) {
                Ok(other) if other.content_hash != hash => {}
                Err(StoreError::Evicted { .. }) => {}
                Ok(_) | Err(StoreError::NoArtifact(_)) => {
                    self.seen.parts.insert(family, number);
                    return artifacts.put(&handle, bytes, media_type, label);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn texts(&self) -> Vec<&'o str> {
        let text = |segment: &Segment<'o>| match segment {
            Segment::Text(text) => Some(*text),
            Segment::Note(_) => None,
        };
        self.segments.iter().filter_map(text).collect()
    }

    /// All text, one part after the other.
    fn joined(&self) -> Cow<'o, str> {
        match self.texts().as_slice() {
            [text] => Cow::Borrowed(text),
            texts => Cow::Owned(texts.join("\n")),
        }
    }
}

/// Whether the text, `joined` from `texts`, says everything that the structured content does.
fn carries(texts: &[&str], joined: &Content<'_>, structured: &Content<'_>) -> bool {
    let Some(document) = &structured.document else { return joined.text.trim() == structured.text.trim() };
    let outer = document.root();
    let wrapped = outer.items().next().filter(|_| outer.kind() == Kind::Object && outer.len() == 1);
    [Some(outer), wrapped].into_iter().flatten().any(|value| {
        let by_item = || value.items().zip(texts).all(|(item, text)| says(&Content::of(text), item));
        let items = value.kind() == Kind::Array && value.len() == texts.len() && texts.len() > 1;
        says(joined, value) || (items && by_item())
    })
}

/// Whether the text is `value`, as a text or in some notation.
fn says(text: &Content<'_>, value: Literal<'_>) -> bool {
    match value.kind() {
        Kind::String => value.string().is_some_and(|string| string.trim() == text.text.trim()),
        Kind::Object | Kind::Array => text.document.as_ref().is_some_and(|document| document.root().same(value)),
        _ => text.text.trim() == value.text(),
    }
}

/// All segments, in the order of the parts.
fn shown(segments: &[Segment<'_>], extra: Option<&(Content<'_>, ArtifactRef)>) -> String {
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    lines.extend(segments.iter().map(|segment| match segment {
        Segment::Text(text) => Cow::Borrowed(*text),
        Segment::Note(note) => Cow::Borrowed(note.as_str()),
    }));
    lines.extend(extra.map(|(content, artifact)| Cow::Owned(labelled(artifact, content.text))));
    lines.join("\n")
}

/// Structured content below the line that names it.
fn labelled(artifact: &ArtifactRef, text: &str) -> String {
    format!("{}\n{text}", structured_label(artifact.handle.as_str()))
}

/// The line above structured content that is shown in the text of its result.
pub(crate) fn structured_label(handle: &str) -> String {
    format!("[structured content: {handle}]")
}

/// The id of the result of the call `call`.
pub(crate) fn result_id(call: &ItemId) -> ItemId {
    format!("result:{call}").into()
}

/// The event of the result of `call`, without its text.
fn event_of(call: &ContextItem, failed: bool) -> ContextItem {
    let mut item = ContextItem::new(result_id(&call.id), ItemKind::ToolResult, "")
        .under(call.id.clone())
        .with_sensitivity(call.sensitivity);
    if let Some(name) = call.metadata.get(FUNCTION_NAME) {
        item.metadata.insert(FUNCTION_NAME.to_owned(), name.clone());
    }
    if failed {
        item.metadata.insert(IS_ERROR.to_owned(), Value::Bool(true));
    }
    item
}

/// The name of what was called: from the metadata, or the text before the arguments.
fn tool_name(call: &ContextItem) -> String {
    let named = call.metadata.get(FUNCTION_NAME).and_then(Value::as_str);
    let name = one_line(named.or_else(|| call.text.split(['(', '{', ' ', '\n']).next()).unwrap_or_default());
    if name.is_empty() { "tool".to_owned() } else { name }
}

/// Where the result came from, and what the server said besides the content.
fn provenance(item: &ContextItem, call: &ContextItem, output: &ToolOutput, links: Vec<Value>) -> Map<String, Value> {
    let mut provenance = Map::new();
    provenance.insert("source_item_id".to_owned(), item.id.as_str().into());
    provenance.insert("tool".to_owned(), tool_name(call).into());
    let of_parts = |members: fn(&Part) -> &Map<String, Value>| -> Vec<Value> {
        let parts = output.parts.iter().enumerate().filter(|(_, part)| !members(part).is_empty());
        let entry = |(number, part)| {
            let mut entry = Map::from_iter([("part_index".to_owned(), Value::from(number))]);
            entry.extend(members(part).clone());
            Value::Object(entry)
        };
        parts.map(entry).collect()
    };
    let lists = [
        ("content_annotations", of_parts(|part| &part.annotations)),
        ("content_members", of_parts(|part| &part.other)),
        ("resource_links", links),
    ];
    for (name, list) in lists {
        if !list.is_empty() {
            provenance.insert(name.to_owned(), Value::Array(list));
        }
    }
    if !output.other.is_empty() {
        provenance.insert("result_members".to_owned(), Value::Object(output.other.clone()));
    }
    provenance
}
