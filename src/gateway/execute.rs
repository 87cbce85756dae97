//! `tool_execute`: from an id and arguments to an answer, through every guard.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::config::Mode;
use super::diagnostics::{Signed, Trace};
use super::error::{Code, GatewayError, text_result};
use super::guard::consent::Agreed;
use super::guard::sanitize::SanitizeConfig;
use super::guard::schema::{Quote, refused, violations};
use super::guard::sign::{SIGNATURE, Signature};
use super::guard::tolerant::{Repair, repair};
use super::guard::{Source, strict, unusable};
use super::hub::Gateway;
use super::question::is_question;
use super::screen::Origin;
use super::session::Caller;
use super::snapshot::{Shelf, Snapshot, published_name};
use super::surface::MetaTool;
use super::upstream::{Call, Fault, Upstream};
use super::wire::{Members, Raw};
use crate::adapters::from_mcp_result;
use crate::catalog::SelectableItem;
use crate::event::ToolOutput;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecuteArgs<'a> {
    pub(super) tool_id: String,
    #[serde(borrow, default)]
    pub(super) args: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) dry_run: bool,
}

/// What of a client's request goes on with the call that it causes.
#[derive(Debug, Clone, Default)]
pub(super) struct Along {
    /// Its progress token.
    pub(super) progress: Option<Raw>,
    /// Its answers to what the upstream asked instead of a result.
    pub(super) input_responses: Option<Raw>,
    /// What the upstream wants back with the answers.
    pub(super) request_state: Option<Raw>,
    /// What is recorded of how the call is answered.
    pub(super) trace: Trace,
}

impl Along {
    /// Whether it brings answers to what the upstream asked.
    fn is_answer(&self) -> bool {
        self.input_responses.is_some() || self.request_state.is_some()
    }

    /// Parameters of the call, with the answers.
    pub(super) fn params(&self, params: &Raw) -> Raw {
        let answers = [("inputResponses", &self.input_responses), ("requestState", &self.request_state)];
        if answers.iter().all(|(_, answer)| answer.is_none()) {
            return params.clone();
        }
        let mut members: Members<'_> = params.read().unwrap_or_default();
        for (name, answer) in answers {
            if let Some(answer) = answer {
                members.set(name, answer);
            }
        }
        Raw::of(&members)
    }
}

/// The parameters of `tools/call` and `prompts/get`.
pub(super) fn call_params(name: &str, arguments: &Raw, signature: Option<&Signature>) -> Raw {
    #[derive(Serialize)]
    struct Params<'p> {
        name: &'p str,
        arguments: &'p RawValue,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<Value>,
    }
    let meta = signature.map(|signature| json!({ SIGNATURE: signature }));
    Raw::of(&Params { name, arguments: &arguments.to_raw_value(), meta })
}

/// An item of a shelf, and where it is there.
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
        along: &Along,
    ) -> Result<Raw, GatewayError> {
        let target = find(snapshot, &args.tool_id)?;
        let item = target.item;
        let admission = self.guards.gate(caller, MetaTool::Execute, Some(item))?;
        let arguments = checked(&target, args.args, self.config.tolerant_args)?;
        self.guards.check_promise(target.shelf, target.at, item)?;
        self.note_shown(caller, snapshot, &target);
        if args.dry_run {
            let checks = self.guards.report(caller, &admission, item, &arguments.repairs).await?;
            return Ok(dry_run(&target, &checks, self.guards.sanitize()));
        }
        let called = (MetaTool::Execute, item);
        let passage = match self.guards.agree(caller, called, &admission, &arguments.value, along).await? {
            Agreed::Go(passage) => passage,
            Agreed::Ask(question) => return Ok(question),
        };
        let along = &passage.along;
        // A call that answers an earlier question is no repetition of it.
        let key = if along.is_answer() { None } else { self.guards.cache_key(item, &arguments.value) };
        let kept = match &key {
            Some(key) => self.guards.cached(key).await,
            None => None,
        };
        let (result, source) = match kept {
            Some(result) => {
                along.trace.set_kept();
                (result, Source::Cache)
            }
            None => {
                let upstream = self.upstream(item)?;
                let result = self.dispatch(caller, upstream, item, &arguments.raw, along).await?;
                if is_question(&result) {
                    return self.asked_back(caller, upstream.name(), &item.id, &passage, &result);
                }
                self.guards.check_output(target.shelf, target.at, item, &result)?;
                (result, Source::Upstream)
            }
        };
        let answer = match self.config.mode {
            Mode::Gateway => {
                let origin = Origin {
                    id: &item.id,
                    name: &item.name,
                    arguments: &arguments.raw,
                    sensitivity: self.guards.sensitivity(item),
                };
                let finish = |envelope: &mut _| self.guards.finish(item, envelope, &arguments.repairs, source);
                self.screened(caller, origin, tool_result, &result, &finish).await?
            }
            Mode::Proxy | Mode::Passthrough => self.guards.passed(result.clone()),
        };
        if let (Some(key), Source::Upstream) = (key, source) {
            self.guards.keep(key, &result).await;
        }
        Ok(answer)
    }

    /// The answer of the tool's upstream, as it came.
    async fn dispatch(
        &self,
        caller: &Caller,
        upstream: &Upstream,
        item: &SelectableItem,
        arguments: &Raw,
        along: &Along,
    ) -> Result<Raw, GatewayError> {
        let (progress, questions) = (along.progress.as_ref(), self.questions());
        // A signature is taken once: each attempt has its own.
        let attempt = || async {
            let signature = self.guards.sign_call(upstream.name(), &item.name, arguments);
            let params = along.params(&call_params(&item.name, arguments, signature.as_ref()));
            let call = Call { method: "tools/call", params: Some(&params), caller: Some(caller), progress, questions };
            upstream.request(call).await.map(|answer| (signature, answer))
        };
        let tried = self.config.retry.run(attempt).await;
        along.trace.set_attempts(tried.attempts);
        if tried.attempts > 1 {
            tracing::info!(upstream = upstream.name(), attempts = tried.attempts, "the call was made again");
        }
        let (signature, answer) = tried.answer.map_err(|fault| failed(upstream.name(), &fault, &item.id))?;
        self.guards.verify_result(signature.as_ref(), &answer).map_err(|error| {
            self.signature_refused(caller.session(), Signed::Answer, &error);
            error.of_answer(&answer).at(&item.id)
        })
    }

    pub(super) fn upstream(&self, item: &SelectableItem) -> Result<&Upstream, GatewayError> {
        self.upstream_for(item.server.as_deref(), &item.id)
    }

    /// The upstream whose items carry `server`, for what is called `id`.
    pub(super) fn upstream_for(&self, server: Option<&str>, id: &str) -> Result<&Upstream, GatewayError> {
        let upstream = self.upstream_of(server).map(|upstream| &**upstream);
        upstream.ok_or_else(|| {
            let reason = "no upstream is configured for it: the catalog is served for browsing only";
            GatewayError::new(Code::UpstreamUnavailable, reason).at(id)
        })
    }
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
pub(super) struct Arguments {
    /// As they are sent: as they were written, unless they were repaired.
    pub(super) raw: Raw,
    pub(super) value: Value,
    repairs: Vec<Repair>,
}

/// The arguments, when the tool's schema accepts them.
pub(super) fn checked(
    target: &Target<'_>,
    args: Option<&RawValue>,
    is_tolerant: bool,
) -> Result<Arguments, GatewayError> {
    let id = &target.item.id;
    let refuse = |reason: String| GatewayError::new(Code::ArgsInvalid, reason).at(id);
    let text = args.map_or("{}", RawValue::get);
    let mut value: Value = serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
    // What goes on is the text: it must say what was checked, in whatever parser.
    strict::check(text).map_err(|error| refuse(error.to_string()))?;
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
    text_result(&sanitize.json(&report.to_string()), false)
}

/// A `CallToolResult`.
fn tool_result(text: &str) -> Result<ToolOutput, String> {
    from_mcp_result(text).map_err(|error| error.to_string())
}

pub(super) fn failed(upstream: &str, fault: &Fault, id: &str) -> GatewayError {
    fault.to_error(upstream).at(id)
}
