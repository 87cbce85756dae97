//! `tool_execute`: from an id and arguments to an answer, through every guard.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::config::{Mode, Structured};
use super::error::{Code, GatewayError, text_result};
use super::guard::sanitize::SanitizeConfig;
use super::guard::schema::{Quote, refused, violations};
use super::guard::sign::SIGNATURE;
use super::guard::tolerant::{Repair, repair};
use super::guard::{Origin, unusable};
use super::hub::Gateway;
use super::session::{Caller, lock};
use super::snapshot::{Shelf, Snapshot, published_name};
use super::surface::MetaTool;
use super::upstream::{Call, Fault, Upstream};
use super::wire::{Members, Raw};
use crate::adapters::from_mcp_result;
use crate::catalog::SelectableItem;
use crate::context::Firewall;
use crate::context::summary::StructureSummarizer;
use crate::event::{ContentHash, ContextItem, ItemKind, ResultEnvelope, Strategy};
use crate::text::Estimator;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecuteArgs<'a> {
    pub(super) tool_id: String,
    #[serde(borrow, default)]
    pub(super) args: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) dry_run: bool,
}

/// A tool that was found and may be called.
pub(super) struct Target<'s> {
    pub(super) shelf: &'s Shelf,
    pub(super) at: usize,
    pub(super) item: &'s SelectableItem,
}

impl Gateway {
    /// Calls a tool by its id.
    pub(super) async fn execute(
        &self,
        caller: &Caller,
        snapshot: &Snapshot,
        args: &ExecuteArgs<'_>,
        progress: Option<&Raw>,
    ) -> Result<Raw, GatewayError> {
        let target = find(snapshot, &args.tool_id)?;
        let item = target.item;
        let admission = self.guards.gate(caller, MetaTool::Execute, Some(item))?;
        let arguments = checked(&target, args.args, self.config.tolerant_args)?;
        self.guards.check_promise(target.shelf, target.at, item)?;
        if args.dry_run {
            let checks = self.guards.report(caller, &admission, item, &arguments.repairs).await?;
            return Ok(dry_run(&target, &checks, self.guards.sanitize()));
        }
        self.guards.count(caller, MetaTool::Execute, item).await?;
        self.guards.approve(caller, &admission, item, &arguments.value).await?;
        let key = self.guards.cache_key(item, &arguments.value);
        let kept = match &key {
            Some(key) => self.guards.cached(key).await,
            None => None,
        };
        let (result, origin) = match kept {
            Some(result) => (result, Origin::Cache),
            None => {
                let result = self.dispatch(caller, item, &arguments.raw, progress).await?;
                self.guards.check_output(target.shelf, target.at, item, &result)?;
                (result, Origin::Upstream)
            }
        };
        let answer = match self.config.mode {
            Mode::Gateway => {
                let note = |envelope: &mut _| self.guards.finish(item, envelope, &arguments.repairs, origin);
                self.screened(caller, item, &arguments.raw, &result, &note)?
            }
            Mode::Proxy | Mode::Passthrough => self.guards.passed(result.clone()),
        };
        if let (Some(key), Origin::Upstream) = (key, origin) {
            self.guards.keep(key, &result).await;
        }
        Ok(answer)
    }

    /// The answer of the tool's upstream, as it came.
    pub(super) async fn dispatch(
        &self,
        caller: &Caller,
        item: &SelectableItem,
        arguments: &Raw,
        progress: Option<&Raw>,
    ) -> Result<Raw, GatewayError> {
        #[derive(Serialize)]
        struct Params<'p> {
            name: &'p str,
            arguments: &'p RawValue,
            #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
            meta: Option<Value>,
        }
        let upstream = self.upstream(item)?;
        let signature = self.guards.sign_call(upstream.name(), &item.name, arguments);
        let meta = signature.as_ref().map(|signature| json!({ SIGNATURE: signature }));
        let arguments = arguments.to_raw_value();
        let params = Raw::of(&Params { name: &item.name, arguments: &arguments, meta });
        let call = Call { method: "tools/call", params: Some(&params), caller: Some(caller), progress };
        let tried = self.config.retry.run(|| upstream.request(call)).await;
        if tried.attempts > 1 {
            tracing::info!(upstream = upstream.name(), attempts = tried.attempts, "the call was made again");
        }
        let answer = tried.answer.map_err(|fault| failed(upstream.name(), &fault, &item.id))?;
        self.guards.verify_result(signature.as_ref(), answer).map_err(|error| error.at(&item.id))
    }

    pub(super) fn upstream(&self, item: &SelectableItem) -> Result<&Upstream, GatewayError> {
        let upstream = self.upstream_of(item.server.as_deref()).map(|upstream| &**upstream);
        upstream.ok_or_else(|| {
            let reason = "no upstream is configured for it: the catalog is served for browsing only";
            GatewayError::new(Code::UpstreamUnavailable, reason).at(&item.id)
        })
    }

    /// What a model gets of a result; `finish` has the last word on what it is shown.
    pub(super) fn screened(
        &self,
        caller: &Caller,
        item: &SelectableItem,
        arguments: &Raw,
        result: &Raw,
        finish: &(dyn Fn(&mut ResultEnvelope) + Sync),
    ) -> Result<Raw, GatewayError> {
        let bad = |reason: String| GatewayError::new(Code::UpstreamError, reason).at(&item.id);
        if is_input_required(result) {
            return Ok(result.clone());
        }
        let text = std::str::from_utf8(result.bytes()).map_err(|error| bad(error.to_string()))?;
        let output = from_mcp_result(text).map_err(|error| bad(error.to_string()))?;
        // What is equal has equal handles: nothing is stored twice, and a restart does not use a handle anew.
        let key = [item.id.as_bytes(), arguments.bytes(), result.bytes()].join(&b'\n');
        let hash = ContentHash::of(&key);
        let id = hash.as_str().get(7..19).unwrap_or(hash.as_str());
        let mut call =
            ContextItem::new(id, ItemKind::ToolCall, String::from_utf8_lossy(arguments.bytes()).into_owned());
        call.metadata.insert("tool".to_owned(), item.name.as_str().into());
        call.sensitivity = self.guards.sensitivity(item);
        let firewall =
            Firewall::new(&self.config.firewall, Estimator::Cl100kBase, &StructureSummarizer, &*self.artifacts.0);
        let mut seen = std::mem::take(&mut *lock(&caller.session().seen));
        let envelope = firewall.ingest(&call, &output, &mut seen);
        *lock(&caller.session().seen) = seen;
        let (_, mut envelope) = envelope.map_err(|error| bad(error.to_string()))?;
        finish(&mut envelope);
        Ok(self.envelope_result(&envelope, output.is_error))
    }

    fn envelope_result(&self, envelope: &ResultEnvelope, is_error: bool) -> Raw {
        let text = serde_json::to_string(&shown(envelope)).unwrap_or_default();
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

/// The envelope without what a model has no use for.
fn shown(envelope: &ResultEnvelope) -> Value {
    let mut shown = Map::new();
    shown.insert("status".to_owned(), json!(envelope.status));
    shown.insert("summary".to_owned(), envelope.summary.as_str().into());
    let whole = envelope.firewall.as_ref().is_some_and(|stats| stats.strategy == Strategy::Passthrough);
    if !whole && !envelope.facts.is_empty() {
        shown.insert("facts".to_owned(), json!(envelope.facts));
    }
    if !envelope.artifacts.is_empty() {
        let artifact = |artifact: &crate::event::ArtifactRef| json!({"handle": artifact.handle, "media_type": artifact.media_type, "size_bytes": artifact.size_bytes});
        shown.insert("artifacts".to_owned(), envelope.artifacts.iter().map(artifact).collect());
    }
    Value::Object(shown)
}

/// The tool called `id`.
pub(super) fn find<'s>(snapshot: &'s Snapshot, id: &str) -> Result<Target<'s>, GatewayError> {
    let found = snapshot.tools.as_ref().and_then(|shelf| Some((shelf, snapshot.tool(id)?)));
    if let Some((shelf, (at, item))) = found {
        return Ok(Target { shelf, at, item });
    }
    let waits = |(waiting, _): &(&String, &String)| *waiting == id || published_name(waiting) == id;
    if let Some((id, reason)) = snapshot.quarantined.iter().find(waits) {
        let reason = format!("{reason}; it can be called when its operator has approved that");
        return Err(GatewayError::new(Code::Quarantined, reason).at(id));
    }
    let reason = "no such tool is in the catalog now; find one with tool_browse";
    Err(GatewayError::new(Code::HydrateFailed, reason).at(id))
}

/// Arguments that a tool's schema accepts.
struct Arguments {
    /// As they are sent: as they were written, unless they were repaired.
    raw: Raw,
    value: Value,
    repairs: Vec<Repair>,
}

/// The arguments, when the tool's schema accepts them.
fn checked(target: &Target<'_>, args: Option<&RawValue>, is_tolerant: bool) -> Result<Arguments, GatewayError> {
    let id = &target.item.id;
    let refuse = |reason: String| GatewayError::new(Code::ArgsInvalid, reason).at(id);
    let text = args.map_or("{}", RawValue::get);
    let mut value: Value = serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
    let repairs = if is_tolerant { repair(&mut value, target.item.args_schema.as_deref()) } else { Vec::new() };
    if !value.is_object() {
        return Err(refuse("`args` must be an object".to_owned()));
    }
    let validator = target.shelf.validator(target.at).map_err(|reason| unusable(target.item, reason))?;
    let violations = validator.map(|validator| violations(validator, &value, Quote::Values)).unwrap_or_default();
    if !violations.is_empty() {
        return Err(refused(Code::ArgsInvalid, "the arguments", id, &violations));
    }
    let raw = match args {
        // What was valid goes on as it was written.
        Some(args) if repairs.is_empty() => Raw::of(args),
        _ => Raw::of(&value),
    };
    Ok(Arguments { raw, value, repairs })
}

fn dry_run(target: &Target<'_>, checks: &[Value], sanitize: &SanitizeConfig) -> Raw {
    let mut annotations: Map<String, Value> = target
        .item
        .raw
        .as_ref()
        .and_then(|raw| {
            serde_json::from_str::<Members<'_>>(raw.get())
                .ok()?
                .get("annotations")
                .map(RawValue::get)
                .and_then(|text| serde_json::from_str(text).ok())
        })
        .unwrap_or_default();
    annotations.insert("verified".to_owned(), false.into());
    let report = json!({
        "dry_run": true,
        "tool_id": target.item.id,
        "upstream_name": target.item.name,
        "args_valid": true,
        "annotations": annotations,
        "checks": checks,
    });
    text_result(&sanitize.clean(&report.to_string()), false)
}

pub(super) fn failed(upstream: &str, fault: &Fault, id: &str) -> GatewayError {
    fault.to_error(upstream).at(id)
}

/// Whether a result asks the caller for more, in the stateless protocol.
fn is_input_required(result: &Raw) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kind<'k> {
        #[serde(borrow)]
        result_type: Option<std::borrow::Cow<'k, str>>,
    }
    result.read::<Kind<'_>>().is_ok_and(|kind| kind.result_type.as_deref() == Some("input_required"))
}
