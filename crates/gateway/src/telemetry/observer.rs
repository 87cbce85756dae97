//! What is counted and recorded about calls, signatures and catalogs.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::activity::{Activity, SeenCall};
use super::audit::{AuditLog, Audited};
use super::audit_line::AuditDecision;
use super::diagnostics::{Diagnostics, EventName, Happening};
use super::metrics::{Exports, Metrics, known_method};
use super::otlp::{OpenSpan, Otlp, OtlpConfig};
use super::otlp_form::SpanKind;
use crate::common::error::GatewayError;
use crate::guard::sign::SignatureError;
use crate::protocol::message::{Members, Raw};
use crate::protocol::stateless;
use crate::protocol::trace_context::TraceContext;
use crate::protocol::transport::Transport;
use crate::session::client::{Caller, Session};
use crate::session::context::Record;
use crate::session::elicitation::is_question;
use crate::surface::meta_tools::MetaTool;
use contextweaver_core::catalog::SelectableItem;

/// Names of arguments in an event, at most.
const MOST_NAMES: usize = 64;

/// Characters of such a name, at most: a longer one counts as unknown.
const LONGEST_NAME: usize = 64;

/// Characters of the name of a caller in an event, at most.
const LONGEST_CALLER: usize = 128;

/// What the conventions of OpenTelemetry call what a request came over.
const TRANSPORT: &str = "network.transport";

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

impl Called<'_> {
    /// The name of the tool that was called, if one was.
    pub(crate) fn tool(&self) -> Option<Cow<'_, str>> {
        match *self {
            Self::Published(name, _) => Some(Cow::Borrowed(name)),
            Self::Meta(MetaTool::Execute, Some(arguments)) => {
                serde_json::from_str::<Arguments<'_>>(arguments.get()).ok()?.tool_id.map(Cow::Owned)
            }
            Self::Meta(..) => None,
        }
    }
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
    pub(crate) metrics: Arc<Metrics>,
    /// The last calls, for whoever looks on.
    pub(crate) activity: Activity,
    /// Where traces and metrics go, when they are sent.
    otlp: Option<Otlp>,
    /// The file of events, when they are recorded.
    diagnostics: Option<Diagnostics>,
    /// The log of decisions, when it is kept.
    audit: Option<AuditLog>,
}

/// How a call ended, as it is counted and shown.
pub(crate) struct Seen {
    /// When it began.
    pub(crate) started: Instant,
    /// `OK`, or how it failed, in a word.
    pub(crate) code: &'static str,
    /// What to do about a failure.
    pub(crate) remedy: Option<&'static str>,
    /// Whether it failed within the gateway.
    pub(crate) refused: bool,
    /// Tokens of the answer, where they are counted.
    pub(crate) tokens: Option<u64>,
    /// Bytes of the answer.
    pub(crate) bytes: usize,
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
    pub(crate) record: &'e Record,
    /// Tokens of the answer, where they are counted.
    pub(crate) tokens: Option<u64>,
}

impl Telemetry {
    /// Counts, and records events and decisions where there are files for them.
    pub(crate) fn new(diagnostics: Option<Diagnostics>, audit: Option<AuditLog>) -> Self {
        Self { metrics: Arc::default(), activity: Activity::default(), otlp: None, diagnostics, audit }
    }

    /// The same, and traces and metrics are sent.
    ///
    /// # Errors
    /// A thread or a client cannot be made.
    pub(crate) fn exporting(mut self, config: Option<&OtlpConfig>) -> io::Result<Self> {
        self.otlp = config.map(|config| Otlp::start(config, Arc::<Metrics>::downgrade(&self.metrics))).transpose()?;
        Ok(self)
    }

    /// Whether anybody wants to know what requests that pass unread are about.
    pub(crate) fn looks_into(&self) -> bool {
        self.audit.is_some() || self.activity.is_watched()
    }

    /// What a request names, which is read where traces or metrics are sent.
    pub(crate) fn target<'p>(&self, method: &str, params: Option<&'p Raw>) -> Option<Cow<'p, str>> {
        self.otlp.as_ref().and_then(|_| stateless::named(method, params))
    }

    /// A span of a request of a client, which names `target`; `None` when traces are not sent.
    pub(crate) fn request_span(
        &self,
        caller: &Caller,
        (id, method, params): (&Raw, &str, Option<&Raw>),
        target: Option<&str>,
    ) -> Option<OpenSpan<'_>> {
        let otlp = self.otlp.as_ref()?;
        let parent = TraceContext::of_params(params);
        let mut span = otlp.begin(SpanKind::Server, parent.as_ref().or(caller.trace()))?;
        // What a client may choose freely stands in an attribute and not in the name.
        let own = target.filter(|_| method == "tools/call").and_then(MetaTool::named);
        span.named(known_method(method), own.map(MetaTool::name));
        span.set("mcp.method.name", known_method(method));
        span.set("jsonrpc.request.id", &id.id_text());
        if let Some(transport) = caller.transport() {
            span.set(TRANSPORT, transport.word());
        }
        span.set("mcp.session.id", &otlp.number_of(caller.session()));
        if !caller.client().version.is_empty() {
            span.set("mcp.protocol.version", &caller.client().version);
        }
        span.set("contextweaver.caller", caller.session().label());
        match (method, target) {
            ("tools/call", Some(name)) => {
                span.set("gen_ai.operation.name", "execute_tool");
                span.set("gen_ai.tool.name", name);
            }
            ("prompts/get", Some(name)) => span.set("gen_ai.prompt.name", name),
            ("resources/read" | "resources/subscribe" | "resources/unsubscribe", Some(uri)) => {
                span.set("mcp.resource.uri", uri);
            }
            _ => {}
        }
        Some(span)
    }

    /// A span of one time that an upstream is asked, over `transport` where it is another process; `None` when traces are
    /// not sent or the request is in none.
    pub(crate) fn upstream_span(
        &self,
        caller: &Caller,
        (upstream, transport): (&str, Option<Transport>),
        method: &str,
        name: &str,
    ) -> Option<OpenSpan<'_>> {
        let mut span = self.otlp.as_ref()?.begin(SpanKind::Client, Some(caller.trace()?))?;
        span.named(known_method(method), Some(name).filter(|_| matches!(method, "tools/call" | "prompts/get")));
        span.set("mcp.method.name", known_method(method));
        span.set("contextweaver.upstream", upstream);
        if let Some(transport) = transport {
            span.set(TRANSPORT, transport.word());
        }
        match method {
            "tools/call" => {
                span.set("gen_ai.operation.name", "execute_tool");
                span.set("gen_ai.tool.name", name);
            }
            "prompts/get" => span.set("gen_ai.prompt.name", name),
            "resources/read" => span.set("mcp.resource.uri", name),
            _ => {}
        }
        Some(span)
    }

    /// A span of work of the gateway itself within a request; `None` when traces are not sent or the request is in none.
    pub(crate) fn work_span(&self, caller: &Caller, work: &'static str) -> Option<OpenSpan<'_>> {
        let mut span = self.otlp.as_ref()?.begin(SpanKind::Internal, Some(caller.trace()?))?;
        span.named(work, None);
        Some(span)
    }

    /// Counts a call that has ended, and shows it to whoever looks on. A request of which no operation was noted is not a call.
    pub(crate) fn saw(&self, session: &Session, record: &Record, seen: &Seen) {
        let took = seen.started.elapsed();
        let account = record.account();
        let Some(operation) = account.operation else { return };
        let caller = session.label();
        let tool = account.item.as_deref().map_or(operation, |item| item.split('#').next().unwrap_or_default());
        self.metrics.ended(tool, caller, seen.code, took);
        if !self.activity.is_watched() {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.activity.saw(SeenCall {
            time: now.as_secs_f64(),
            tool: tool.to_owned(),
            caller: caller.to_owned(),
            decision: AuditDecision::of(&account, seen.refused),
            guard: account.guard,
            rule: account.rule,
            approver: account.approver,
            code: seen.code.to_owned(),
            remedy: seen.remedy,
            tokens: seen.tokens,
            result_tokens: record.result_tokens(),
            bytes: seen.bytes,
            ms: took.as_secs_f64() * 1e3,
        });
    }

    /// What was lost on the way to files and collectors.
    pub(crate) fn exports(&self) -> Exports {
        Exports {
            audit_failures: self.audit.as_ref().map(AuditLog::failures),
            spans_lost: self.otlp.as_ref().map(Otlp::lost),
        }
    }

    /// The record of a call that begins.
    pub(crate) fn new_record(&self) -> Record {
        Record::new(self.audit.is_some())
    }

    /// Follows a request to its end, where a log of decisions is kept.
    pub(crate) fn audited<'a>(&'a self, caller: &'a Caller, record: &Record) -> Option<Audited<'a>> {
        self.audit.as_ref().map(|log| Audited::new(log, caller, record.clone()))
    }

    /// Writes that a request is allowed, before its upstream is asked.
    ///
    /// # Errors
    /// It cannot be written, and the request is to be refused.
    pub(crate) async fn allowed(
        &self,
        caller: &Caller,
        credentials: Option<String>,
        record: &Record,
    ) -> Result<(), GatewayError> {
        record.note(|account| (account.allowed, account.credentials) = (true, credentials));
        match &self.audit {
            Some(log) => {
                let decision = AuditDecision::of(&record.account(), false);
                Box::pin(log.decided(caller, record, decision, None)).await
            }
            None => Ok(()),
        }
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
            (Called::Meta(tool, _), _) if tool != MetaTool::Execute => properties(&tool.schema()),
            (_, Some(item)) => item.args_schema.as_deref().map(properties).unwrap_or_default(),
            _ => BTreeSet::new(),
        };
        let (names, unknown) = names(arguments, &known);
        if let Some(tokens) = ended.tokens {
            attributes.insert("answer_tokens".to_owned(), tokens.into());
        }
        attributes.insert("argument_names".to_owned(), names.into());
        if ended.record.attempts() > 1 {
            attributes.insert("attempts".to_owned(), ended.record.attempts().into());
        }
        attributes.insert("caller".to_owned(), caller_of(session).into());
        if let Err(error) = ended.result {
            attributes.insert("code".to_owned(), json!(error.code));
        }
        let decided = AuditDecision::of(&ended.record.account(), ended.result.is_err());
        attributes.insert("decision".to_owned(), decided.name().into());
        let mut success = true;
        match ended.result {
            Err(_) => success = false,
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
        if let Some(tokens) = ended.record.result_tokens() {
            attributes.insert("result_tokens".to_owned(), tokens.into());
        }
        if unknown > 0 {
            attributes.insert("unknown_arguments".to_owned(), unknown.into());
        }
        let is_ok = ended.result.is_ok();
        let from_cache = is_ok && ended.record.was_cached();
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
        attributes.insert("caller".to_owned(), caller_of(session).into());
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

    /// Records that another configuration is in force; `digest` is the SHA-256 of its text.
    pub(crate) fn reloaded(&self, digest: &str) {
        if let Some(audit) = &self.audit {
            audit.reloaded(digest);
        }
    }

    /// Waits, for a bounded time, until every event and decision is written; nothing more comes.
    pub(crate) async fn close(&self) {
        if let Some(audit) = &self.audit {
            audit.close().await;
        }
        if let Some(otlp) = &self.otlp {
            otlp.flush().await;
        }
        if let Some(diagnostics) = &self.diagnostics {
            diagnostics.flush().await;
        }
    }
}

/// The name of a caller, as events have it.
fn caller_of(session: &Session) -> String {
    session.label().chars().take(LONGEST_CALLER).collect()
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

/// How a call ended, in a word.
pub(crate) fn ending(result: &Result<Raw, GatewayError>) -> &'static str {
    match result {
        Err(error) => error.code.word(),
        Ok(result) if is_error(result) => "TOOL_ERROR",
        Ok(result) if is_question(result) => "INPUT_REQUIRED",
        Ok(_) => "OK",
    }
}

/// Whether a `CallToolResult` says that the tool failed.
pub(crate) fn is_error(result: &Raw) -> bool {
    // Of two members of one name, either may be what the client reads.
    let says = |(name, value): &(Cow<'_, str>, Cow<'_, RawValue>)| name == "isError" && value.get() == "true";
    result.read::<Members<'_>>().is_ok_and(|members| members.0.iter().any(says))
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
