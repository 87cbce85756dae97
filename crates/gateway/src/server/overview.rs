//! What an operator sees of a running gateway at one moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::gateway::Gateway;
use crate::catalog::view::{CatalogView, ChangedDefinition};
use crate::common::sync::lock;
use crate::guard::desk::Case;
use crate::results::artifacts::Artifacts as StoredResults;
use crate::upstream::breaker::CircuitState;
use contextweaver_context::clean::{is_joiner, is_unseen};
use contextweaver_context::event::ArtifactRef;
use contextweaver_core::catalog::SelectableItem;
use contextweaver_core::text::Estimator;

/// Tools that are shown, at most.
const MOST_TOOLS: usize = 300;

/// Artifacts that are shown, at most.
const MOST_ARTIFACTS: usize = 50;

/// Bytes of a definition of which the difference is shown, at most.
const LONGEST_DEFINITION: usize = 64 * 1024;

/// Lines of such a difference, at most.
const MOST_LINES: usize = 400;

/// What an operator sees.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Overview {
    name: String,
    servers: Vec<Server>,
    tools: Tools,
    definitions: Option<Definitions>,
    /// What was spared, in one line.
    savings: Option<String>,
    /// What was spared over time: seconds since the first, tokens without the gateway and with it.
    pub(crate) history: Vec<(u64, u64, u64)>,
    pub(crate) approvals: Vec<Case>,
    pins: Vec<Changed>,
    artifacts: Artifacts,
}

#[derive(Debug, Clone, Serialize)]
struct Server {
    name: String,
    tools: usize,
    resources: usize,
    prompts: usize,
    version: Option<String>,
    circuit: CircuitState,
    fault: Option<String>,
    remedy: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Tools {
    all: usize,
    /// Those with the most tokens.
    some: Vec<Tool>,
}

#[derive(Debug, Clone, Serialize)]
struct Tool {
    id: String,
    tokens: usize,
    calls: u64,
    failed: u64,
    mean_ms: f64,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Definitions {
    servers: u64,
    listed: u64,
}

#[derive(Debug, Clone, Serialize)]
struct Changed {
    id: String,
    reason: String,
    remedy: String,
    /// Lines, each with `same`, `add` or `gone`; empty where the earlier definition is not known.
    diff: Vec<(&'static str, String)>,
}

#[derive(Debug, Clone, Default, Serialize)]
struct Artifacts {
    count: usize,
    bytes: u64,
    on_disk: bool,
    largest: Vec<Artifact>,
}

#[derive(Debug, Clone, Serialize)]
struct Artifact {
    handle: String,
    media_type: String,
    bytes: u64,
}

/// What takes long to find out, and changes seldom.
#[derive(Debug, Default)]
pub(crate) struct Slow {
    /// The view that the tokens are of.
    generation: Option<u64>,
    tokens: Vec<(String, usize)>,
    artifacts: Arc<Mutex<Looked>>,
    pins: Vec<Changed>,
}

/// What was last known of the stored results.
#[derive(Debug, Default)]
struct Looked {
    found: Artifacts,
    /// When they are looked at again; `None` before the first look.
    next: Option<Instant>,
    is_looking: bool,
}

/// How often stored results are looked at.
const EVERY: Duration = Duration::from_secs(5);

/// A look at stored results rests for so many times as long as it took: a store elsewhere is asked for each of them.
const REST: u32 = 20;

/// How long a look at stored results is waited for. What it finds later is shown later.
const PATIENCE: Duration = Duration::from_millis(200);

impl Slow {
    /// Looks again at what may have changed. It may take a while, and wait for a disk.
    pub(crate) fn look(&mut self, gateway: &Gateway) {
        let view = gateway.catalog();
        if self.generation != Some(view.generation) {
            self.generation = Some(view.generation);
            self.tokens = tokens(&view);
            self.pins = view.quarantined.iter().map(|(id, reason)| waiting(id, reason, view.changed.get(id))).collect();
        }
        self.look_at_artifacts(gateway.artifacts());
    }

    /// Looks at what is stored, on a thread of its own, unless that is done already or was done lately.
    fn look_at_artifacts(&self, store: &StoredResults) {
        {
            let mut looked = lock(&self.artifacts);
            if looked.is_looking || looked.next.is_some_and(|next| Instant::now() < next) {
                return;
            }
            looked.is_looking = true;
        }
        let (store, known, (done, is_done)) = (store.clone(), Arc::clone(&self.artifacts), mpsc::channel());
        std::thread::spawn(move || {
            let began = Instant::now();
            let found = store.all().map(|all| Artifacts::of(all, store.on_disk)).unwrap_or_default();
            let next = Some(Instant::now() + EVERY.max(began.elapsed() * REST));
            *lock(&known) = Looked { found, next, is_looking: false };
            // Nobody may wait for it any more.
            let _ = done.send(());
        });
        let _ = is_done.recv_timeout(PATIENCE);
    }
}

impl Artifacts {
    /// Their sums, and the first of them.
    fn of(all: Vec<ArtifactRef>, on_disk: bool) -> Self {
        Self {
            count: all.len(),
            bytes: all.iter().map(|artifact| artifact.size_bytes).sum(),
            on_disk,
            largest: all
                .into_iter()
                .take(MOST_ARTIFACTS)
                .map(|artifact| Artifact {
                    handle: artifact.handle.to_string(),
                    media_type: artifact.media_type,
                    bytes: artifact.size_bytes,
                })
                .collect(),
        }
    }
}

impl Gateway {
    /// What an operator sees now.
    pub(crate) fn overview(&self, slow: &Slow) -> Overview {
        let mut calls: BTreeMap<String, (u64, u64, f64)> = BTreeMap::new();
        for ((tool, _), series) in self.telemetry().metrics.series() {
            let (count, failed, took) = calls.entry(tool).or_default();
            *count += series.durations.count();
            *failed += series.codes.iter().filter(|(code, _)| **code != "OK").map(|(_, count)| count).sum::<u64>();
            *took += series.durations.mean_ms() * series.durations.count() as f64;
        }
        let tool = |(id, tokens): &(String, usize)| {
            let key = id.split('#').next().unwrap_or_default();
            let (count, failed, took) = calls.get(key).copied().unwrap_or_default();
            Tool { id: id.clone(), tokens: *tokens, calls: count, failed, mean_ms: took / count.max(1) as f64 }
        };
        let server = |report: crate::catalog::serving::UpstreamReport| {
            let remedy = report
                .fault
                .as_ref()
                .map(|_| "`contextweaver mcp doctor` says what to do; the gateway keeps trying".to_owned());
            Server {
                remedy,
                name: report.name,
                tools: report.tools,
                resources: report.resources,
                prompts: report.prompts,
                version: report.version,
                circuit: report.circuit,
                fault: report.fault,
            }
        };
        Overview {
            name: self.config().name.clone(),
            servers: self.reports().into_iter().map(server).collect(),
            tools: Tools { all: slow.tokens.len(), some: slow.tokens.iter().take(MOST_TOOLS).map(tool).collect() },
            definitions: self.definition_tokens().map(|(servers, listed)| Definitions { servers, listed }),
            savings: self.savings().map(|savings| savings.line(self.config().price.as_ref())),
            history: Vec::new(),
            approvals: self.desk().cases(),
            pins: slow.pins.clone(),
            artifacts: lock(&slow.artifacts).found.clone(),
        }
    }
}

/// The tools of a view with the tokens of their definitions, most first.
fn tokens(view: &CatalogView) -> Vec<(String, usize)> {
    let items = view.tools.as_ref().map(|shelf| shelf.router.catalog().items()).unwrap_or_default();
    let count = |item: &SelectableItem| (item.id.clone(), Estimator::Cl100kBase.count(&item.definition()));
    let mut tokens: Vec<(String, usize)> = items.iter().map(count).collect();
    tokens.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    tokens
}

/// A definition that waits for approval, as it is shown.
fn waiting(id: &str, reason: &str, changed: Option<&ChangedDefinition>) -> Changed {
    let diff = changed.and_then(|changed| Some(difference(changed.old.as_deref()?, &changed.new))).unwrap_or_default();
    Changed {
        id: id.to_owned(),
        reason: reason.to_owned(),
        remedy: "To approve it: contextweaver mcp pins list --config FILE --pending".to_owned(),
        diff,
    }
}

/// A line in which what a page would not show, or would show elsewhere, is written as an escape: a change must be seen.
fn visible(line: &str) -> String {
    let hides = |c: char| c.is_control() || is_unseen(c) || is_joiner(c);
    let mut shown = String::with_capacity(line.len());
    for c in line.chars() {
        if hides(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

/// The lines of two definitions, each with what became of it.
fn difference(old: &str, new: &str) -> Vec<(&'static str, String)> {
    if old.len().max(new.len()) > LONGEST_DEFINITION {
        return Vec::new();
    }
    let lines = |text: &str| {
        let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        serde_json::to_string_pretty(&value).unwrap_or_default()
    };
    let (old, new) = (lines(old), lines(new));
    let diff = TextDiff::configure().timeout(Duration::from_millis(200)).diff_lines(old.as_str(), new.as_str());
    let kind = |tag| match tag {
        ChangeTag::Equal => "same",
        ChangeTag::Insert => "add",
        ChangeTag::Delete => "gone",
    };
    let mut unified = diff.unified_diff();
    unified.context_radius(2);
    let mut lines = Vec::new();
    for hunk in unified.iter_hunks() {
        for change in hunk.iter_changes() {
            lines.push((kind(change.tag()), visible(change.value().trim_end_matches('\n'))));
        }
    }
    lines.truncate(MOST_LINES);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_in_a_changed_definition_is_seen() {
        let difference = difference(r#"{"a": "Adds."}"#, "{\"a\": \"Adds.\u{e0073}\u{202e}\u{200d}\"}");
        let added: Vec<&str> = difference.iter().filter(|(kind, _)| *kind == "add").map(|(_, line)| &**line).collect();
        assert_eq!(added, [r#"  "a": "Adds.\u{e0073}\u{202e}\u{200d}""#]);
    }
}
