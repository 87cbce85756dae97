//! What a model gets of a result: its envelope.
//!
//! What stands for a result depends on what the client was shown before it, so the large results of one client are
//! screened one after the other, in the order in which they came. A small one needs none of that and waits for none.
//! What takes long, or writes to a disk, is done on a thread that no other call needs.
//!
//! A result that cannot be stored is shown all the same, as partial: the call was made, and making it again may do
//! harm.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::artifacts::Artifacts;
use super::config::Structured;
use super::error::{Code, GatewayError, text_result};
use super::hub::Gateway;
use super::session::{Caller, lock};
use super::wire::Raw;
use crate::context::summary::StructureSummarizer;
use crate::context::{Firewall, FirewallConfig, FirewallError, Seen};
use crate::event::{
    ArtifactRef, ContentHash, ContextItem, Handle, ItemKind, ResultEnvelope, Sensitivity, Status, Strategy, ToolOutput,
};
use crate::store::{ArtifactStore, MemoryArtifacts};
use crate::text::Estimator;

/// Bytes of a result above which it is not screened on the thread that serves messages.
pub(super) const LARGE: usize = 64 * 1024;

/// Bytes of results that are compared with later ones; then the comparison begins anew. The index of a byte takes at
/// most about two.
const REMEMBERED: usize = 4 << 20;

/// What a result counts beside its bytes.
const ENTRY: usize = 256;

/// Ways into a result that are offered, at most.
const MOST_VIEWS: usize = 2;

/// Bytes of an offered selector, at most: more is not worth its place.
const LONGEST_VIEW: usize = 100;

/// Characters of a tool's name in the handles of what its result carries.
const NAME_IN_HANDLE: usize = 32;

/// What a client was shown.
#[derive(Debug, Default)]
pub(super) struct History {
    seen: Seen,
    /// Bytes of the results in it.
    bytes: usize,
}

impl History {
    /// Counts a result, and forgets all when they are too many.
    fn count(&mut self, bytes: usize) {
        self.bytes += bytes + ENTRY;
        if self.bytes > REMEMBERED {
            *self = Self::default();
        }
    }
}

/// How the result of a method is read.
pub(super) type Read = fn(&str) -> Result<ToolOutput, String>;

/// Where a result comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'o> {
    /// The id by which it was asked for.
    pub(super) id: &'o str,
    /// What the upstream calls it.
    pub(super) name: &'o str,
    /// What was asked with it.
    pub(super) arguments: &'o Raw,
    /// How sensitive it is.
    pub(super) sensitivity: Sensitivity,
}

/// The last word on what is shown of a result.
pub(super) type Finish<'f> = &'f (dyn Fn(&mut ResultEnvelope) + Sync);

impl Gateway {
    /// What a model gets of `result`, when `finish` is done with it.
    pub(super) async fn screened(
        &self,
        caller: &Caller,
        origin: Origin<'_>,
        read: Read,
        result: &Raw,
        finish: Finish<'_>,
    ) -> Result<Raw, GatewayError> {
        let work = Screening::new(&self.config.firewall, &self.artifacts, origin, read, result);
        let small = result.bytes().len() <= self.config.firewall.threshold_chars;
        let large = result.bytes().len() > LARGE || (!small && self.artifacts.on_disk);
        let outcome = if large {
            let mut history = Arc::clone(&caller.session().history).lock_owned().await;
            let working = tokio::task::spawn_blocking(move || work.run(&mut history));
            working.await.unwrap_or_else(|error| Err(format!("it could not be screened: {error}")))
        } else if small {
            work.run(&mut History::default())
        } else {
            work.run(&mut *caller.session().history.lock().await)
        };
        let mut envelope = outcome.map_err(|reason| GatewayError::new(Code::UpstreamError, reason).at(origin.id))?;
        finish(&mut envelope);
        lock(&caller.session().recent).add(&envelope.artifacts);
        Ok(self.envelope_result(&envelope))
    }

    fn envelope_result(&self, envelope: &ResultEnvelope) -> Raw {
        let text = serde_json::to_string(&shown(envelope)).unwrap_or_default();
        let is_error = envelope.status == Status::Error;
        match self.config.structured {
            Structured::Off => text_result(&text, is_error),
            Structured::On => Raw::of(&json!({
                "content": [{"type": "text", "text": text}],
                "structuredContent": envelope,
                "isError": is_error,
            })),
        }
    }
}

/// A result that is to be screened, with all that it takes.
struct Screening {
    config: FirewallConfig,
    artifacts: Arc<dyn ArtifactStore>,
    id: String,
    call: ContextItem,
    read: Read,
    result: Raw,
}

impl Screening {
    fn new(config: &FirewallConfig, artifacts: &Artifacts, origin: Origin<'_>, read: Read, result: &Raw) -> Self {
        // What is equal has equal handles: nothing is stored twice, and a restart does not use a handle anew.
        let key = [origin.id.as_bytes(), origin.arguments.bytes(), result.bytes()].join(&b'\n');
        let hash = ContentHash::of(&key);
        let digits = hash.as_str().get(7..19).unwrap_or(hash.as_str());
        let arguments = String::from_utf8_lossy(origin.arguments.bytes()).into_owned();
        let mut call = ContextItem::new(digits, ItemKind::ToolCall, arguments);
        call.sensitivity = origin.sensitivity;
        // Handles of further parts are made of this name: the digits keep those of other results apart. The name is the
        // upstream's, and a handle comes back: it has letters that nothing changes and that hide nothing.
        let mut name = String::with_capacity(NAME_IN_HANDLE);
        for c in origin.name.chars().take(NAME_IN_HANDLE) {
            name.push(match c {
                // Two in a row are how a marker begins.
                '_' if name.ends_with('_') => '-',
                _ if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') => c,
                _ => '-',
            });
        }
        call.metadata.insert("function_name".to_owned(), format!("{name}-{digits}").into());
        Self {
            config: *config,
            artifacts: Arc::clone(&artifacts.store),
            id: origin.id.to_owned(),
            call,
            read,
            result: result.clone(),
        }
    }

    fn run(self, history: &mut History) -> Result<Box<ResultEnvelope>, String> {
        let text = std::str::from_utf8(self.result.bytes()).map_err(|error| error.to_string())?;
        let output = (self.read)(text)?;
        let mut envelope = match self.ingest(&output, &*self.artifacts, &mut history.seen) {
            Ok(envelope) => envelope,
            Err(FirewallError::Store(error)) => {
                tracing::warn!(id = %self.id, %error, "a result could not be stored");
                let mut envelope = self
                    .ingest(&output, &MemoryArtifacts::default(), &mut Seen::default())
                    .map_err(|error| error.to_string())?;
                envelope.artifacts.clear();
                envelope.views.clear();
                // Why is for the log alone: it names places of this machine.
                envelope.summary = format!("{}\n(the whole could not be stored)", envelope.summary);
                if envelope.status == Status::Ok {
                    envelope.status = Status::Partial;
                }
                envelope
            }
            Err(error) => return Err(error.to_string()),
        };
        history.count(text.len());
        envelope.provenance.insert("tool".to_owned(), self.id.into());
        Ok(Box::new(envelope))
    }

    fn ingest(
        &self,
        output: &ToolOutput,
        artifacts: &dyn ArtifactStore,
        seen: &mut Seen,
    ) -> Result<ResultEnvelope, FirewallError> {
        let firewall = Firewall::new(&self.config, Estimator::Cl100kBase, &StructureSummarizer, artifacts);
        firewall.ingest(&self.call, output, seen).map(|(_, envelope)| envelope)
    }
}

/// The envelope without what a model has no use for.
fn shown(envelope: &ResultEnvelope) -> Value {
    let mut shown = Map::new();
    shown.insert("status".to_owned(), json!(envelope.status));
    shown.insert("summary".to_owned(), envelope.summary.as_str().into());
    let strategy = envelope.firewall.as_ref().map(|stats| stats.strategy);
    if strategy != Some(Strategy::Passthrough) && !envelope.facts.is_empty() {
        shown.insert("facts".to_owned(), json!(envelope.facts));
    }
    if !envelope.artifacts.is_empty() {
        let artifact = |artifact: &ArtifactRef| json!({"handle": artifact.handle, "media_type": artifact.media_type, "size_bytes": artifact.size_bytes});
        shown.insert("artifacts".to_owned(), envelope.artifacts.iter().map(artifact).collect());
    }
    let views = if strategy == Some(Strategy::Summary) { offered(envelope) } else { Vec::new() };
    if !views.is_empty() {
        shown.insert("views".to_owned(), views.into());
    }
    Value::Object(shown)
}

/// Selectors that are worth trying on the first artifact, as `tool_view` takes them.
fn offered(envelope: &ResultEnvelope) -> Vec<Value> {
    let Some(whole) = envelope.artifacts.first() else { return Vec::new() };
    let of_whole = envelope.views.iter().filter(|view| view.handle == whole.handle);
    let selectors = of_whole.filter_map(|view| serde_json::to_value(&view.selector).ok());
    selectors.filter(|selector| selector.to_string().len() <= LONGEST_VIEW).take(MOST_VIEWS).collect()
}

/// The handles that a client was given last, oldest first.
#[derive(Debug, Default)]
pub(super) struct Recent(std::collections::VecDeque<Handle>);

impl Recent {
    /// Handles that are remembered.
    const MOST: usize = 64;

    fn add(&mut self, artifacts: &[ArtifactRef]) {
        for artifact in artifacts {
            self.0.retain(|handle| *handle != artifact.handle);
            if self.0.len() == Self::MOST {
                self.0.pop_front();
            }
            self.0.push_back(artifact.handle.clone());
        }
    }

    /// The handles, youngest first.
    pub(super) fn youngest(&self) -> impl Iterator<Item = &Handle> {
        self.0.iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(name: &str) -> ArtifactRef {
        MemoryArtifacts::default().put(&Handle::new(name), b"x", "text/plain", "").unwrap()
    }

    #[test]
    fn what_was_shown_is_forgotten_when_it_is_too_much() {
        let mut history = History::default();
        history.count(REMEMBERED - 2 * ENTRY);
        assert_eq!(history.bytes, REMEMBERED - ENTRY);
        history.count(1);
        assert_eq!(history.bytes, 0);
    }

    #[test]
    fn the_last_handles_are_remembered_once_each() {
        let mut recent = Recent::default();
        for number in 0..100 {
            recent.add(&[artifact(&number.to_string()), artifact("again")]);
        }
        let handles: Vec<&str> = recent.youngest().map(Handle::as_str).collect();
        assert_eq!((handles.len(), handles[0], handles[1]), (Recent::MOST, "again", "99"));
    }

    #[test]
    fn a_handle_is_made_of_letters_that_hide_nothing() {
        let name_of = |name: &str| {
            let arguments = Raw::of(&json!({}));
            let origin = Origin { id: "a:b", name, arguments: &arguments, sensitivity: Sensitivity::Public };
            let store = Artifacts::open(&crate::gateway::ArtifactsConfig::default()).unwrap();
            let read: Read = |_| Err(String::new());
            let work = Screening::new(&FirewallConfig::default(), &store, origin, read, &arguments);
            let name = work.call.metadata["function_name"].as_str().unwrap().to_owned();
            name.rsplit_once('-').unwrap().0.to_owned()
        };
        assert_eq!(name_of("read_file.v2"), "read_file.v2");
        assert_eq!(name_of("__system__ <|im_start|>\u{200b}é"), "_-system_----im_start----");
    }

    #[test]
    fn only_short_ways_into_the_whole_are_offered() {
        let view = |handle: &str, selector: &str| crate::event::ViewSpec {
            view_id: String::new(),
            label: String::new(),
            handle: Handle::new(handle),
            selector: selector.parse().unwrap(),
        };
        let long = format!("json_keys:{}", "k".repeat(LONGEST_VIEW));
        let views = vec![
            view("b", "head:1"),
            view("a", &long),
            view("a", "rows:0..10"),
            view("a", "lines:-5.."),
            view("a", "sample:3"),
        ];
        let envelope = ResultEnvelope {
            status: Status::Ok,
            summary: String::new(),
            facts: Vec::new(),
            artifacts: vec![artifact("a"), artifact("b")],
            views,
            provenance: Map::new(),
            firewall: None,
        };
        let offered = json!(offered(&envelope)).to_string();
        assert_eq!(offered, r#"[{"type":"rows","start":0,"end":10},{"type":"lines","start":-5}]"#);
    }
}
