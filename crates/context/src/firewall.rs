//! Replaces large outputs of calls in the prompt by short texts, and keeps the rest reachable.
//!
//! A result with more characters than the threshold is stored whole, byte for byte, and the prompt gets a text within a
//! token cap instead: a line if the conversation showed the same before or the call sent it, the whole in a shorter
//! notation if that fits, or a summary by structure. Small results pass unchanged; content that is not text is stored
//! at any size. If a call failed, the text begins with its message.
//!
//! The text of a result is data: nothing in it is obeyed. Lines written by the firewall itself are in brackets and name
//! only handles that are in the envelope. Content can imitate such a line, but a handle that it invents does not
//! resolve.
//!
//! Raw results are not counted in tokens unless the configuration asks for it, since that takes longer than everything
//! else.

mod call;
mod echo;
mod encoded;
mod facts;
mod ingest;
mod mask;
mod seen;

use std::borrow::Cow;
use std::str;
use std::sync::LazyLock;

use serde_json::Value;

pub use self::facts::fact_records;
pub(crate) use self::ingest::{result_id, structured_label};
pub(crate) use self::mask::Mask;
#[cfg(test)]
pub(crate) use self::seen::COPIED;
pub use self::seen::Seen;

use self::seen::Relation;
use super::clean::{bracketed, without_sequences};
use super::config::{FirewallConfig, RawCount, Secrets};
use super::literal::{Dialect, Document};
use super::summary::{StructureSummarizer, Summarizer, lossless_forms};
use super::view::{automatic, automatic_for};
use crate::event::{
    ArtifactRef, ContentHash, ContextItem, FirewallStats, Handle, ItemId, ItemKind, ResultEnvelope, Strategy,
    ToolOutput, ViewSpec,
};
use crate::store::{ArtifactStore, StoreError, is_taken, redact};
use contextweaver_core::text::{Estimator, largest};

/// The metadata key of a result whose call failed.
const IS_ERROR: &str = "is_error";

/// The metadata key with what the firewall showed in place of a result.
const SHOWN_AS: &str = "firewall";

/// Bytes of a text per token of the cap, up to which its beginning says more than a summary: about a quarter of it.
const EXCERPT: usize = 16;

/// The number of characters by which the beginning of a content is found in its summary.
const QUOTED: usize = 60;

/// What a summary calls the first line of a text, and what stands behind other names of it.
const FIRST_LINE: &str = "first line";
const OF_FIRST_LINE: &str = "(line 0)";

/// The label of a result's artifact.
const RESULT: &str = "result of a call";

/// A note about an overlap takes at most this share of the cap.
const NOTE_SHARE: usize = 10;

/// The number of bytes that a token of text can stand for; larger contents are not counted to see whether they fit.
const MOST_BYTES_PER_TOKEN: usize = 16;

/// Masks what nobody may see in a text, before it is stored.
pub trait Redactor: Send + Sync {
    /// The text with marks in place of what nobody may see.
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str>;
}

/// Keeps large results out of prompts, but reachable.
#[derive(Clone, Copy)]
pub struct Firewall<'a> {
    config: &'a FirewallConfig,
    estimator: Estimator,
    summarizer: &'a dyn Summarizer,
    artifacts: &'a dyn ArtifactStore,
    redactor: Option<&'a dyn Redactor>,
}

/// A result as the prompt shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Screened {
    /// The result; its text is what the prompt shows.
    pub item: ContextItem,
    /// What the firewall did with it.
    pub stats: FirewallStats,
}

/// A result could not be screened.
#[derive(Debug, thiserror::Error)]
pub enum FirewallError {
    /// The content could not be stored or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The content that was to be shortened is not text.
    #[error(
        "the artifact `{handle}` ({media_type}) is not text, so it cannot be shortened; read its bytes from the artifact store"
    )]
    NoText {
        /// The handle of the artifact.
        handle: Handle,
        /// The media type that its source claimed.
        media_type: String,
    },
}

/// A text together with its form.
struct Content<'c> {
    text: &'c str,
    media_type: &'c str,
    /// The text parsed as a JSON or Python literal, if it is an array or object in either.
    document: Option<Document<'c>>,
}

impl<'c> Content<'c> {
    fn of(text: &'c str) -> Self {
        let opens = text.trim_start().starts_with(['{', '[', '(']);
        let read = |dialect| opens.then(|| Document::parse(text, dialect).ok()).flatten();
        let (media_type, document) = match read(Dialect::Json) {
            Some(json) => ("application/json", Some(json)),
            None => ("text/plain", read(Dialect::Python)),
        };
        Self { text, media_type, document }
    }

    /// The views that are worth offering for the artifact.
    fn views(&self, artifact: &ArtifactRef) -> Vec<ViewSpec> {
        match &self.document {
            Some(document) => automatic_for(artifact, self.text, Some(document)),
            None => automatic(artifact, self.text.as_bytes()),
        }
    }
}

impl<'a> Firewall<'a> {
    /// A firewall that summarises with `summarizer`, counts with `estimator` and stores in `artifacts`.
    #[must_use]
    pub fn new(
        config: &'a FirewallConfig,
        estimator: Estimator,
        summarizer: &'a dyn Summarizer,
        artifacts: &'a dyn ArtifactStore,
    ) -> Self {
        Self { config, estimator, summarizer, artifacts, redactor: None }
    }

    /// The same with another redactor, which masks what is taken in whatever the configuration says of secrets.
    #[must_use]
    pub fn redacted_by(self, redactor: Option<&'a dyn Redactor>) -> Self {
        Self { redactor, ..self }
    }

    /// A firewall with the default configuration that stores in `artifacts` and summarises large results by their
    /// structure, with [`StructureSummarizer`].
    #[must_use]
    pub fn with_defaults(artifacts: &'a dyn ArtifactStore) -> Self {
        static DEFAULTS: LazyLock<FirewallConfig> = LazyLock::new(FirewallConfig::default);
        Self::new(&DEFAULTS, Estimator::default(), &StructureSummarizer, artifacts)
    }

    /// Takes in one result by itself, named `name`: its envelope holds the text that a prompt shows in its place and the
    /// handles of what was stored. [`Firewall::ingest`] does this for the results of a conversation, which may repeat.
    ///
    /// # Errors
    /// As [`Firewall::ingest`].
    pub fn result(&self, name: &str, output: &ToolOutput) -> Result<ResultEnvelope, FirewallError> {
        let call = ContextItem::new(name, ItemKind::ToolCall, name);
        let (_, envelope) = self.ingest(&call, output, &mut Seen::default())?;
        Ok(envelope)
    }

    /// The configuration of the firewall.
    #[must_use]
    pub fn config(&self) -> &FirewallConfig {
        self.config
    }

    /// Screens a result that is in the log as text: returns what the prompt shows. Unchanged when the result is small
    /// or was screened before (it has an artifact). `seen` is what was shown before it; the result is added to it.
    ///
    /// # Errors
    /// [`FirewallError::Store`] when the content could not be stored.
    pub fn screen(
        &self,
        call: Option<&ContextItem>,
        result: &ContextItem,
        seen: &mut Seen,
    ) -> Result<Screened, FirewallError> {
        if let Some(screened) = self.screen_if_needed(call, result, seen)? {
            return Ok(screened);
        }
        let (bytes, tokens) = (result.text.len() as u64, self.raw_count(&result.text));
        let stats = self.stats(Strategy::Passthrough, bytes, tokens, self.estimator.count(&result.text));
        Ok(Screened { item: result.clone(), stats })
    }

    /// As [`Self::screen`]; `None` for a result that stays as it is.
    pub(super) fn screen_if_needed(
        &self,
        call: Option<&ContextItem>,
        result: &ContextItem,
        seen: &mut Seen,
    ) -> Result<Option<Screened>, FirewallError> {
        if let Some(artifact) = &result.artifact {
            seen.add_whole(artifact);
            let stats = self.stats(shown_as(result), artifact.size_bytes, None, self.estimator.count(&result.text));
            return Ok(Some(Screened { item: result.clone(), stats }));
        }
        let raw = self.without_secrets(&result.text);
        if !self.is_large(&raw) {
            // A result that had secrets in it is changed, however small it is.
            let Cow::Owned(clean) = raw else { return Ok(None) };
            let stats = self.stats(
                Strategy::Passthrough,
                clean.len() as u64,
                self.raw_count(&clean),
                self.estimator.count(&clean),
            );
            return Ok(Some(Screened { item: ContextItem { text: clean, ..result.clone() }, stats }));
        }
        let mut item = ContextItem { text: String::new(), ..result.clone() };
        let content = Content::of(&raw);
        let artifact = self.keep(&result.id, &content, RESULT)?;
        let (text, strategy) =
            self.stand_in(call, &content, &artifact, is_error(result), self.config.summary_tokens, seen);
        item.text = text;
        item.artifact = Some(artifact);
        item.metadata.insert(SHOWN_AS.to_owned(), strategy_name(strategy).into());
        let stats = self.stats(strategy, raw.len() as u64, self.raw_count(&raw), self.estimator.count(&item.text));
        Ok(Some(Screened { item, stats }))
    }

    /// Screens a call whose text is as large as a large result: it is stored, and the prompt gets the short arguments
    /// and a description of the long ones. `None` for a call that stays as it is.
    ///
    /// # Errors
    /// [`FirewallError::Store`] when the text could not be stored.
    pub(super) fn screen_call(&self, call: &ContextItem) -> Result<Option<Screened>, FirewallError> {
        let raw = self.without_secrets(&call.text);
        if call.artifact.is_some() || !self.is_large(&raw) {
            return Ok(None);
        }
        let artifact = self.keep(&call.id, &Content::of(&raw), "text of a call")?;
        let text = self.call(&raw, self.config.summary_tokens);
        let tokens = self.estimator.count(&text);
        let stats = self.stats(Strategy::Summary, raw.len() as u64, self.raw_count(&raw), tokens);
        Ok(Some(Screened { item: ContextItem { text, artifact: Some(artifact), ..call.clone() }, stats }))
    }

    /// The content of an item (from its artifact, or its text) in at most `cap` tokens: for the packer when an item
    /// does not fit as it is. Content that fits is returned unchanged.
    ///
    /// # Errors
    /// [`FirewallError::Store`] when the content could not be read, [`FirewallError::NoText`] when it is not text.
    pub fn condense(&self, result: &ContextItem, cap: usize) -> Result<String, FirewallError> {
        let screened = result.artifact.is_some();
        let text = if screened { Cow::Borrowed(&*result.text) } else { self.without_secrets(&result.text) };
        if self.fits(&text, cap) {
            return Ok(text.into_owned());
        }
        if result.artifact.is_none() && result.kind != ItemKind::ToolCall && text.len() <= cap.saturating_mul(EXCERPT) {
            return Ok(self.excerpt(&text, cap));
        }
        let failed = is_error(result);
        let is_call = result.kind == ItemKind::ToolCall;
        let Some(artifact) = &result.artifact else {
            return Ok(if is_call { self.call(&text, cap) } else { self.summary(&Content::of(&text), failed, cap) });
        };
        let bytes = self.artifacts.get(&artifact.handle)?;
        let content = str::from_utf8(&bytes).map_err(|_| FirewallError::NoText {
            handle: artifact.handle.clone(),
            media_type: artifact.media_type.clone(),
        })?;
        if is_call {
            return Ok(self.call(content, cap));
        }
        let content = Content { text: content, media_type: &artifact.media_type, document: None };
        Ok(self.summary(&content, failed, cap))
    }

    /// The whole content of an item of which the text shows a part; `None` for any other item, and for content that is
    /// not there any more or is not text.
    pub(super) fn original(&self, item: &ContextItem) -> Option<String> {
        let bytes = self.artifacts.get(&item.artifact.as_ref()?.handle).ok()?;
        str::from_utf8(&bytes).ok().map(str::to_owned)
    }

    fn is_large(&self, text: &str) -> bool {
        text.len() > self.config.threshold_chars && text.chars().nth(self.config.threshold_chars).is_some()
    }

    /// Whether `text` takes at most `cap` tokens; a text that is far too long is not counted.
    fn fits(&self, text: &str, cap: usize) -> bool {
        text.len() <= cap.saturating_mul(MOST_BYTES_PER_TOKEN) && self.estimator.count(text) <= cap
    }

    fn without_secrets<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.config.secrets {
            Secrets::Keep => Cow::Borrowed(text),
            Secrets::Redact => redact(text).text,
        }
    }

    /// A text as it is taken in: without secrets where the configuration has them masked, or as the redactor of others gives
    /// it.
    #[must_use]
    pub fn taken_in<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.redactor {
            Some(redactor) => redactor.redact(text),
            None => self.without_secrets(text),
        }
    }

    /// Stores the content of the event called `id`, under the first of `artifact:ID`, `artifact:ID~2`, `artifact:ID~3` and so
    /// on that belongs to no other content. The handle is what prompts show, whatever is in the id.
    fn keep(&self, id: &ItemId, content: &Content<'_>, label: &str) -> Result<ArtifactRef, StoreError> {
        let bytes = content.text.as_bytes();
        let first = Handle::new(format!("artifact:{}", bracketed(id.as_str())));
        let mut handle = first.clone();
        for number in 2.. {
            if self.artifacts.names_by_content() || !is_taken(self.artifacts, &handle, || ContentHash::of(bytes))? {
                break;
            }
            handle = Handle::new(format!("{first}~{number}"));
        }
        self.artifacts.put(&handle, bytes, content.media_type, label)
    }

    /// The text that the prompt shows in place of `content`, in at most `cap` tokens.
    fn stand_in(
        &self,
        call: Option<&ContextItem>,
        content: &Content<'_>,
        artifact: &ArtifactRef,
        failed: bool,
        cap: usize,
        seen: &mut Seen,
    ) -> (String, Strategy) {
        let relation = seen.relation(content.text, artifact, self.artifacts);
        if relation.is_new() {
            seen.add(content.text, artifact);
        }
        self.stand_in_for(call, content, &relation, failed, cap)
    }

    /// As [`Self::stand_in`], for content of which it is known how it relates to what was shown before.
    fn stand_in_for(
        &self,
        call: Option<&ContextItem>,
        content: &Content<'_>,
        relation: &Relation,
        failed: bool,
        cap: usize,
    ) -> (String, Strategy) {
        if !relation.is_new() {
            return (self.clipped(&self.repeat(relation, content, cap), cap), Strategy::Repeat);
        }
        if let Some(line) = call.and_then(|call| echo::line(call, content.text)) {
            return (self.clipped(&line, cap), Strategy::Echo);
        }
        if self.fits(content.text, cap) {
            return (content.text.to_owned(), Strategy::Compact);
        }
        let note = match relation {
            Relation::Overlap { with, percent } => format!("({percent} % of this stands in {with})"),
            _ => String::new(),
        };
        let cost = if note.is_empty() { 0 } else { self.estimator.count(&format!("\n{note}")) };
        let noted = cost > 0 && cost <= cap / NOTE_SHARE;
        let text = self.summary(content, failed, if noted { cap - cost } else { cap });
        let strategy = if is_lossless(&text, content) { Strategy::Compact } else { Strategy::Summary };
        (if noted { self.clipped(&format!("{text}\n{note}"), cap) } else { text }, strategy)
    }

    /// A repeat as the prompt shows it where the result that it names is not shown: with its own content, as if nothing but what
    /// is in `seen` had been shown before. The result is added to that. `None` where there is nothing to show: content that is
    /// gone, or no text.
    pub(super) fn screen_repeat(
        &self,
        call: Option<&ContextItem>,
        result: &ContextItem,
        seen: &mut Seen,
    ) -> Option<Screened> {
        let (artifact, raw) = (result.artifact.as_ref()?, self.original(result)?);
        let relation = seen.relation(&raw, artifact, self.artifacts);
        let screened = self.restated(call, result, &raw, &relation);
        if relation.is_new() {
            seen.add(&raw, artifact);
        }
        screened
    }

    /// As [`Self::screen_repeat`], without adding the result to `seen`.
    pub(super) fn show_repeat(
        &self,
        call: Option<&ContextItem>,
        result: &ContextItem,
        seen: &Seen,
    ) -> Option<Screened> {
        let (artifact, raw) = (result.artifact.as_ref()?, self.original(result)?);
        self.restated(call, result, &raw, &seen.relation(&raw, artifact, self.artifacts))
    }

    /// Adds a result to what was shown, as [`Self::screen_repeat`] does.
    pub(super) fn remember_repeat(&self, result: &ContextItem, seen: &mut Seen) {
        if let (Some(artifact), Some(raw)) = (&result.artifact, self.original(result))
            && seen.relation(&raw, artifact, self.artifacts).is_new()
        {
            seen.add(&raw, artifact);
        }
    }

    /// A result with its content `raw`, which relates in this way to what was shown before. `None` where there is nothing
    /// to show.
    fn restated(
        &self,
        call: Option<&ContextItem>,
        result: &ContextItem,
        raw: &str,
        relation: &Relation,
    ) -> Option<Screened> {
        // Lines about further parts stay, behind those about the ends of the content.
        let mut beside = lines_behind(&result.text);
        while beside.starts_with("first: ") || beside.starts_with("last: ") {
            beside = lines_behind(beside);
        }
        let cap = self.config.summary_tokens;
        let cost = if beside.is_empty() { 0 } else { self.estimator.count(&format!("\n{beside}")) };
        let failed = is_error(result);
        let (text, strategy) = self.stand_in_for(call, &Content::of(raw), relation, failed, cap.saturating_sub(cost));
        if text.is_empty() {
            return None;
        }
        let mut item = result.clone();
        item.text = if beside.is_empty() { text } else { self.clipped(&format!("{text}\n{beside}"), cap) };
        item.metadata.insert(SHOWN_AS.to_owned(), strategy_name(strategy).into());
        let stats = self.stats(strategy, raw.len() as u64, self.raw_count(raw), self.estimator.count(&item.text));
        Some(Screened { item, stats })
    }

    /// The line for a result that was shown before, with its first and last line where those differ from the earlier
    /// result's and fit.
    fn repeat(&self, relation: &Relation, content: &Content<'_>, cap: usize) -> String {
        let (lines, chars) = (content.text.lines().count(), content.text.chars().count());
        let size = if lines > 1 { format!("{lines} lines, {chars} characters") } else { format!("{chars} characters") };
        match relation {
            Relation::Part { of, place } => {
                let place = if place.is_empty() { String::new() } else { format!(", {place} (from 0)") };
                let line = format!("(part of {of}{place}: {size})");
                let with_ends = ends(content).map(|(first, last)| format!("{line}\nfirst: {first}\nlast: {last}"));
                with_ends.filter(|text| self.estimator.count(text) <= cap / 2).unwrap_or(line)
            }
            Relation::Same(of) => format!("(same as {of}: {size})"),
            Relation::New | Relation::Overlap { .. } => String::new(),
        }
    }

    /// A summary in at most `cap` tokens. For a failed call it begins with the message.
    fn summary(&self, content: &Content<'_>, failed: bool, cap: usize) -> String {
        let Content { text: whole, media_type, document } = content;
        let summarized = |cap| match document {
            Some(document) => self.summarizer.summarize_literal(document, media_type, cap, self.estimator),
            None => self.summarizer.summarize(whole, media_type, cap, self.estimator),
        };
        let text = summarized(cap);
        // A summary shows the content without what colours it.
        let plain = &*without_sequences(whole);
        let message = if failed { first_paragraph(plain) } else { "" };
        let clipped = if message.is_empty() { String::new() } else { self.clipped(message, cap / 2) };
        if clipped.is_empty() || text.starts_with(message) {
            return self.clipped(&text, cap);
        }
        // Where a summary shows the beginning of the content, that is the message.
        if let Some((beginning, others)) = apart(&text, plain).filter(|(head, _)| head.len() * 2 >= clipped.len()) {
            return self.clipped(&below(beginning, &others), cap);
        }
        let cost = self.estimator.count(&format!("{clipped}\n"));
        let rest = summarized(cap.saturating_sub(cost));
        let others = apart(&rest, plain).map(|(_, others)| others);
        self.clipped(&below(&clipped, &others.unwrap_or(rest)), cap)
    }

    /// As many of the first words as fit into `cap` tokens, or nearly as many, with an ellipsis.
    fn excerpt(&self, text: &str, cap: usize) -> String {
        let mut end = text.len();
        while end > 0 {
            let kept = text.get(..text.floor_char_boundary(end)).unwrap_or_default();
            let kept = kept.rfind(char::is_whitespace).and_then(|space| kept.get(..space)).unwrap_or_default();
            let shown = format!("{} …", kept.trim_end());
            let tokens = self.estimator.count(&shown);
            if tokens <= cap {
                return shown;
            }
            // Tokens are of about equal length.
            end = kept.len().min(kept.len() * cap / tokens + 1);
        }
        self.clipped(text, cap)
    }

    /// The text, or as many of its first characters as fit into `cap` tokens with an ellipsis.
    fn clipped(&self, text: &str, cap: usize) -> String {
        if self.fits(text, cap) {
            return text.to_owned();
        }
        let most = cap.saturating_mul(MOST_BYTES_PER_TOKEN);
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).take_while(|&at| at <= most).collect();
        let cut = |chars: usize| format!("{}…", text.get(..ends.get(chars).copied().unwrap_or(0)).unwrap_or_default());
        // More characters cost more tokens, or nearly so; the last test is exact.
        let text = cut(largest(ends.len(), |chars| self.estimator.count(&cut(chars)) <= cap));
        if self.estimator.count(&text) <= cap { text } else { String::new() }
    }

    /// The number of tokens of a raw result, if the configuration asks for it.
    fn raw_count(&self, text: &str) -> Option<usize> {
        (self.config.raw_count == RawCount::Exact).then(|| self.estimator.count(text))
    }

    fn stats(&self, strategy: Strategy, bytes: u64, tokens: Option<usize>, shown: usize) -> FirewallStats {
        FirewallStats {
            strategy,
            threshold_chars: self.config.threshold_chars,
            original_bytes: bytes,
            original_tokens: tokens,
            summary_tokens: shown,
            estimator: self.estimator,
        }
    }
}

/// Whether the call of `result` failed.
pub(crate) fn is_error(result: &ContextItem) -> bool {
    result.metadata.get(IS_ERROR) == Some(&Value::Bool(true))
}

/// The handle of the result that the text of `result` names in place of its content; `None` for any other item.
pub(crate) fn repeated(result: &ContextItem) -> Option<&str> {
    if result.artifact.is_none() || shown_as(result) != Strategy::Repeat {
        return None;
    }
    let line = result.text.lines().next()?.strip_suffix(')')?;
    let named = line.strip_prefix("(same as ").or_else(|| line.strip_prefix("(part of "))?;
    // The size holds no colon and the place no comma; a handle may hold both.
    let (of, _) = named.rsplit_once(": ")?;
    let placed = of.strip_suffix(" (from 0)").and_then(|of| of.rsplit_once(", "));
    Some(placed.map_or(of, |(of, _)| of))
}

/// The lines behind the first one.
fn lines_behind(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, rest)| rest)
}

/// What an earlier screening showed in place of `result`.
fn shown_as(result: &ContextItem) -> Strategy {
    let named =
        |strategy: &Strategy| result.metadata.get(SHOWN_AS).and_then(Value::as_str) == Some(strategy_name(*strategy));
    let strategies = [Strategy::Passthrough, Strategy::Compact, Strategy::Repeat, Strategy::Echo];
    strategies.into_iter().find(named).unwrap_or(Strategy::Summary)
}

/// The name of the strategy in files.
fn strategy_name(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Passthrough => "passthrough",
        Strategy::Compact => "compact",
        Strategy::Summary => "summary",
        Strategy::Repeat => "repeat",
        Strategy::Echo => "echo",
    }
}

/// Whether a summary shows all of the content in a shorter notation.
fn is_lossless(summary: &str, content: &Content<'_>) -> bool {
    let forms = content.document.as_ref().map(|document| lossless_forms(document.root(), summary.len()));
    forms.into_iter().flatten().any(|form| summary.contains(&form))
}

/// The text up to the first empty line.
fn first_paragraph(text: &str) -> &str {
    let text = text.trim();
    let end = ["\n\n", "\r\n\r\n"].into_iter().filter_map(|breaks| text.find(breaks)).min();
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// The beginning of `content` as `summary` shows it, from the start of a line, and the rest of the summary.
fn apart<'s>(summary: &'s str, content: &str) -> Option<(&'s str, String)> {
    let content = content.trim_start();
    let known = content.char_indices().nth(QUOTED).map_or(content, |(end, _)| content.get(..end).unwrap_or_default());
    let starts_line = |at: usize| summary.get(..at).is_some_and(|before| before.is_empty() || before.ends_with('\n'));
    let (at, _) = summary.match_indices(known).find(|(at, _)| starts_line(*at))?;
    let (before, shown) = summary.split_at_checked(at)?;
    let same = shown.chars().zip(content.chars()).take_while(|(one, other)| one == other);
    let (beginning, behind) = shown.split_at_checked(same.map(|(one, _)| one.len_utf8()).sum())?;
    Some((beginning.trim_end(), format!("{before}{}", behind.trim_start())))
}

/// A summary below the message that it is of, without what it quotes of that.
fn below(message: &str, summary: &str) -> String {
    let lines = summary.lines().filter_map(|line| {
        let quotes = |label: &str| label == FIRST_LINE || label.ends_with(OF_FIRST_LINE);
        let quoted = |quoted: &str| message.trim_start().starts_with(quoted.trim_end_matches('…').trim_end());
        match line.split_once(": ").filter(|(label, rest)| quotes(label) && quoted(rest)) {
            Some((FIRST_LINE, _)) => None,
            Some((label, _)) => Some(label),
            None => Some(line),
        }
    });
    let lines: Vec<&str> = [message].into_iter().chain(lines).collect();
    lines.join("\n").trim_end().to_owned()
}

/// The first and the last row or line.
fn ends(content: &Content<'_>) -> Option<(String, String)> {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    match &content.document {
        Some(document) => {
            let mut rows = document.root().items();
            let first = rows.next()?;
            Some((one_line(first.text()), one_line(rows.last().unwrap_or(first).text())))
        }
        None => {
            let mut lines = content.text.lines().filter(|line| !line.trim().is_empty());
            let first = lines.next()?;
            Some((one_line(first), one_line(lines.next_back().unwrap_or(first))))
        }
    }
}

#[cfg(test)]
mod tests;
