//! What is counted and recorded about calls, signatures and catalogs.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::diagnostics::{Diagnostics, EventName, Happening};
use super::metrics::Metrics;
use crate::common::error::GatewayError;
use crate::guard::sign::SignatureError;
use crate::protocol::message::{Members, Raw};
use crate::session::client::Session;
use crate::session::context::Trace;
use crate::session::elicitation::is_question;
use crate::surface::meta_tools::MetaTool;
use contextweaver_core::catalog::SelectableItem;

/// Names of arguments in an event, at most.
const MOST_NAMES: usize = 64;

/// Characters of such a name, at most: a longer one counts as unknown.
const LONGEST_NAME: usize = 64;

/// What a signature is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Signed {
    /// A call of a client.
    Call,
    /// The answer of an upstream.
    Answer,
}

impl Signed {
    /// The word under which it is counted and recorded.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Answer => "answer",
        }
    }
}

/// What was called, as far as it is recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Called<'c> {
    /// A meta-tool with its arguments.
    Meta(MetaTool, Option<&'c RawValue>),
    /// A tool by the name under which it is listed, with its own arguments.
    Published(&'c str, Option<&'c RawValue>),
}

#[derive(Deserialize, Default)]
struct Arguments<'a> {
    tool_id: Option<String>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(default)]
    dry_run: bool,
}

/// What is counted and recorded about the calls of a gateway.
#[derive(Debug)]
pub(crate) struct Telemetry {
    /// The counters that metrics show.
    pub(crate) metrics: Metrics,
    /// The file of events, when they are recorded.
    diagnostics: Option<Diagnostics>,
}

/// A call that has ended.
pub(crate) struct Ended<'e> {
    /// What was called, with its arguments.
    pub(crate) called: Called<'e>,
    /// When the call began.
    pub(crate) started: Instant,
    /// The answer, or the failure.
    pub(crate) result: &'e Result<Raw, GatewayError>,
    /// How it was answered.
    pub(crate) trace: &'e Trace,
    /// Tokens of the answer, where they are counted.
    pub(crate) tokens: Option<u64>,
}

impl Telemetry {
    /// Counts, and records events where there is a file for them.
    pub(crate) fn new(diagnostics: Option<Diagnostics>) -> Self {
        Self { metrics: Metrics::default(), diagnostics }
    }

    /// Records a call that has ended; `find` gives the tool of the catalog that is called by a name.
    pub(crate) fn call_ended<'i>(
        &self,
        session: &Session,
        ended: &Ended<'_>,
        find: impl Fn(&str) -> Option<&'i SelectableItem>,
    ) {
        let Some(diagnostics) = &self.diagnostics else { return };
        let duration = ended.started.elapsed();
        let (tool, own, arguments) = match ended.called {
            Called::Meta(tool, arguments) => {
                let own = arguments.and_then(|text| serde_json::from_str::<Arguments<'_>>(text.get()).ok());
                let own = own.unwrap_or_default();
                let arguments = if tool == MetaTool::Execute { own.args } else { arguments };
                (tool, own, arguments)
            }
            Called::Published(name, arguments) => {
                let own = Arguments { tool_id: Some(name.to_owned()), ..Arguments::default() };
                (MetaTool::Execute, own, arguments)
            }
        };
        let found = own.tool_id.as_deref().and_then(find);
        let mut attributes = Map::new();
        let known = match (ended.called, found) {
            (Called::Meta(tool, _), _) if tool != MetaTool::Execute => properties(&tool.definition()["inputSchema"]),
            (_, Some(item)) => item.args_schema.as_deref().map(properties).unwrap_or_default(),
            _ => BTreeSet::new(),
        };
        let (names, unknown) = names(arguments, &known);
        if let Some(tokens) = ended.tokens {
            attributes.insert("answer_tokens".to_owned(), tokens.into());
        }
        attributes.insert("argument_names".to_owned(), names.into());
        if ended.trace.attempts() > 1 {
            attributes.insert("attempts".to_owned(), ended.trace.attempts().into());
        }
        let mut success = true;
        match ended.result {
            Err(error) => {
                success = false;
                attributes.insert("code".to_owned(), json!(error.code));
            }
            Ok(result) if tool == MetaTool::Execute && is_error(result) => {
                success = false;
                attributes.insert("tool_error".to_owned(), true.into());
            }
            Ok(result) if is_question(result) => {
                attributes.insert("input_required".to_owned(), true.into());
            }
            Ok(_) => {}
        }
        attributes.insert("meta_tool".to_owned(), tool.name().into());
        if let Err(error) = ended.result {
            attributes.insert("retryable".to_owned(), error.retryable.into());
        }
        if let Some(tokens) = ended.trace.result_tokens() {
            attributes.insert("result_tokens".to_owned(), tokens.into());
        }
        if unknown > 0 {
            attributes.insert("unknown_arguments".to_owned(), unknown.into());
        }
        let is_ok = ended.result.is_ok();
        let from_cache = is_ok && ended.trace.was_cached();
        let event = if from_cache { EventName::ExecuteCacheHit } else { event_of(tool, is_ok, own.dry_run) };
        diagnostics.record(
            Some(session),
            Happening {
                event,
                success,
                duration: Some(duration),
                tool: found.map(|item| (item.id.clone(), item.namespace.clone())),
                attributes,
            },
        );
    }

    /// Counts and records that a signature was refused, and why; nothing of what was signed.
    pub(crate) fn signature_refused(&self, session: &Session, signed: Signed, error: &SignatureError) {
        self.metrics.signature_refused(signed.label(), error.reason());
        tracing::warn!(of = signed.label(), %error, "a signature is refused");
        let Some(diagnostics) = &self.diagnostics else { return };
        let mut attributes = Map::new();
        attributes.insert("reason".to_owned(), error.reason().into());
        attributes.insert("signed".to_owned(), signed.label().into());
        let event = EventName::SignatureRefused;
        diagnostics.record(Some(session), Happening { event, success: false, duration: None, tool: None, attributes });
    }

    /// Whether events are recorded.
    pub(crate) fn records(&self) -> bool {
        self.diagnostics.is_some()
    }

    /// Records that a catalog is served from now on; `attributes` is an object with its counts.
    pub(crate) fn catalog_loaded(&self, attributes: Value, took: Duration) {
        let (Some(diagnostics), Value::Object(attributes)) = (&self.diagnostics, attributes) else { return };
        let event = EventName::CatalogLoaded;
        diagnostics.record(None, Happening { event, success: true, duration: Some(took), tool: None, attributes });
    }

    /// Waits, for a bounded time, until every event is written.
    pub(crate) async fn flush(&self) {
        if let Some(diagnostics) = &self.diagnostics {
            diagnostics.flush().await;
        }
    }
}

fn event_of(tool: MetaTool, completed: bool, dry_run: bool) -> EventName {
    match (tool, completed) {
        (MetaTool::Browse | MetaTool::ResourceBrowse | MetaTool::PromptBrowse, true) => EventName::BrowseCompleted,
        (MetaTool::Browse | MetaTool::ResourceBrowse | MetaTool::PromptBrowse, false) => EventName::BrowseFailed,
        (MetaTool::Hydrate, true) => EventName::HydrateCompleted,
        (MetaTool::Hydrate, false) => EventName::HydrateFailed,
        (MetaTool::View, true) => EventName::ViewCompleted,
        (MetaTool::View, false) => EventName::ViewFailed,
        (MetaTool::Execute, true) if dry_run => EventName::ExecuteDryRun,
        (MetaTool::Execute | MetaTool::ResourceRead | MetaTool::PromptGet, true) => EventName::ExecuteCompleted,
        (MetaTool::Execute | MetaTool::ResourceRead | MetaTool::PromptGet, false) => EventName::ExecuteFailed,
    }
}

/// The names of an object's members that are known, in ascending order, and how many others there are.
fn names(arguments: Option<&RawValue>, known: &BTreeSet<String>) -> (Vec<String>, usize) {
    let members = arguments.and_then(|text| serde_json::from_str::<Members<'_>>(text.get()).ok()).unwrap_or_default();
    let names: BTreeSet<&str> = members.0.iter().map(|(name, _)| name.as_ref()).collect();
    let (known, unknown): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| known.contains(*name));
    (known.into_iter().take(MOST_NAMES).map(str::to_owned).collect(), unknown.len())
}

/// The names that a schema gives to arguments.
fn properties(schema: &Value) -> BTreeSet<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let short = |name: &&String| name.chars().nth(LONGEST_NAME).is_none();
    properties.into_iter().flat_map(|properties| properties.keys()).filter(short).cloned().collect()
}

/// Whether a `CallToolResult` says that the tool failed.
fn is_error(result: &Raw) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Outcome {
        #[serde(default)]
        is_error: bool,
    }
    result.read::<Outcome>().is_ok_and(|outcome| outcome.is_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::error::Code;

    #[test]
    fn every_meta_tool_has_its_event() {
        let error = GatewayError::new(Code::PromptNotFound, "x");
        assert_eq!(json!(event_of(MetaTool::PromptGet, false, false)), "execute.failed", "{error}");
        assert_eq!(json!(event_of(MetaTool::Execute, true, true)), "execute.dry_run");
        assert_eq!(json!(event_of(MetaTool::Execute, false, true)), "execute.failed");
        assert_eq!(json!(event_of(MetaTool::ResourceBrowse, true, false)), "browse.completed");
    }
}
