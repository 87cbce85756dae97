//! `tool_execute`: from an id and arguments to an answer, through every guard.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::config::Mode;
use super::error::{Code, GatewayError, text_result};
use super::hub::Gateway;
use super::screen::Origin;
use super::session::Caller;
use super::snapshot::{Shelf, Snapshot};
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
#[derive(Debug, Default)]
pub(super) struct Along {
    /// Its progress token.
    pub(super) progress: Option<Raw>,
    /// Its answers to what the upstream asked instead of a result.
    pub(super) input_responses: Option<Raw>,
    /// What the upstream wants back with the answers.
    pub(super) request_state: Option<Raw>,
}

impl Along {
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
pub(super) fn call_params(name: &str, arguments: &Raw) -> Raw {
    #[derive(Serialize)]
    struct Params<'p> {
        name: &'p str,
        arguments: &'p RawValue,
    }
    Raw::of(&Params { name, arguments: &arguments.to_raw_value() })
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
        along: &Along,
    ) -> Result<Raw, GatewayError> {
        let target = find(snapshot, &args.tool_id)?;
        let arguments = checked(&target, args.args)?;
        self.note_shown(caller, snapshot, &target);
        if args.dry_run {
            return Ok(dry_run(&target));
        }
        let result = self.dispatch(caller, target.item, &arguments, along).await?;
        let origin = Origin { id: &target.item.id, name: &target.item.name, arguments: &arguments };
        match self.config.mode {
            Mode::Gateway => self.screened(caller, origin, tool_result, &result).await,
            Mode::Proxy | Mode::Passthrough => Ok(result),
        }
    }

    /// The answer of the tool's upstream, as it came.
    pub(super) async fn dispatch(
        &self,
        caller: &Caller,
        item: &SelectableItem,
        arguments: &Raw,
        along: &Along,
    ) -> Result<Raw, GatewayError> {
        let upstream = self.upstream(item)?;
        let params = along.params(&call_params(&item.name, arguments));
        let progress = along.progress.as_ref();
        let call = Call { method: "tools/call", params: Some(&params), caller: Some(caller), progress };
        let tried = self.config.retry.run(|| upstream.request(call)).await;
        if tried.attempts > 1 {
            tracing::info!(upstream = upstream.name(), attempts = tried.attempts, "the call was made again");
        }
        tried.answer.map_err(|fault| failed(upstream.name(), &fault, &item.id))
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
    match found {
        Some((shelf, (at, item))) => Ok(Target { shelf, at, item }),
        None => {
            let reason = "no such tool is in the catalog now; find one with tool_browse";
            Err(GatewayError::new(Code::HydrateFailed, reason).at(id))
        }
    }
}

/// The arguments, when the tool's schema accepts them.
pub(super) fn checked(target: &Target<'_>, args: Option<&RawValue>) -> Result<Raw, GatewayError> {
    let refuse = |reason: String| GatewayError::new(Code::ArgsInvalid, reason).at(&target.item.id);
    let text = args.map_or("{}", RawValue::get);
    let value: Value = serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
    if !value.is_object() {
        return Err(refuse("`args` must be an object".to_owned()));
    }
    let validator = target.shelf.validator(target.at).map_err(|reason| {
        GatewayError::new(Code::SchemaInvalid, format!("the tool's own schema is not usable: {reason}"))
            .at(&target.item.id)
    })?;
    if let Some(validator) = validator {
        let mut errors: Vec<(String, String)> = validator
            .iter_errors(&value)
            .map(|error| (error.instance_path().to_string(), error.to_string()))
            .take(MOST_ERRORS)
            .collect();
        errors.sort();
        if let Some((path, reason)) = errors.first() {
            let place = if path.is_empty() { "the arguments" } else { path };
            let violations: Vec<Value> =
                errors.iter().map(|(path, reason)| json!({"path": path, "reason": reason})).collect();
            return Err(refuse(format!("{place}: {reason}")).with("violations", violations));
        }
    }
    // What was valid goes on as it was written.
    Ok(args.map_or_else(|| Raw::of(&value), Raw::of))
}

/// Violations of a schema that are reported, at most.
const MOST_ERRORS: usize = 5;

fn dry_run(target: &Target<'_>) -> Raw {
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
        "checks": [{"name": "schema_validation", "status": "pass"}],
    });
    text_result(&report.to_string(), false)
}

/// A `CallToolResult`.
fn tool_result(text: &str) -> Result<ToolOutput, String> {
    from_mcp_result(text).map_err(|error| error.to_string())
}

pub(super) fn failed(upstream: &str, fault: &Fault, id: &str) -> GatewayError {
    fault.to_error(upstream).at(id)
}
