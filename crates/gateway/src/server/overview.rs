//! What an operator sees of a running gateway at one moment.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::gateway::Gateway;
use crate::catalog::view::{CatalogView, ChangedDefinition};
use crate::guard::desk::Case;
use crate::upstream::breaker::CircuitState;
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
    artifacts: Option<(Instant, Artifacts)>,
    pins: Vec<Changed>,
}

impl Slow {
    /// Looks again at what may have changed. It may take a while, and wait for a disk.
    pub(crate) fn look(&mut self, gateway: &Gateway) {
        const EVERY: Duration = Duration::from_secs(5);
        let view = gateway.catalog();
        if self.generation != Some(view.generation) {
            self.generation = Some(view.generation);
            self.tokens = tokens(&view);
            self.pins = view.quarantined.iter().map(|(id, reason)| waiting(id, reason, view.changed.get(id))).collect();
        }
        if self.artifacts.as_ref().is_none_or(|(looked, _)| looked.elapsed() > EVERY) {
            let store = gateway.artifacts();
            let found = store.all().map(|all| Artifacts {
                count: all.len(),
                bytes: all.iter().map(|artifact| artifact.size_bytes).sum(),
                on_disk: store.on_disk,
                largest: all
                    .into_iter()
                    .take(MOST_ARTIFACTS)
                    .map(|artifact| Artifact {
                        handle: artifact.handle.to_string(),
                        media_type: artifact.media_type,
                        bytes: artifact.size_bytes,
                    })
                    .collect(),
            });
            self.artifacts = Some((Instant::now(), found.unwrap_or_default()));
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
            artifacts: slow.artifacts.as_ref().map(|(_, artifacts)| artifacts.clone()).unwrap_or_default(),
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
            lines.push((kind(change.tag()), change.value().trim_end_matches('\n').to_owned()));
        }
    }
    lines.truncate(MOST_LINES);
    lines
}
