//! `tool_execute`: from the id of a tool and arguments to an answer.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::browse::Cards;
use super::calls::Calls;
use crate::catalog::names::published_name;
use crate::catalog::shelf::{Target, Unnamed};
use crate::catalog::view::CatalogView;
use crate::catalog::written::is_same;
use crate::common::error::{Code, GatewayError, text_result};
use crate::common::sanitize::SanitizeConfig;
use crate::guard::call::{GuardedCall, Route};
use crate::protocol::message::{Members, Raw};
use crate::session::client::Caller;
use crate::session::context::CallContext;
use crate::surface::meta_tools::MetaTool;
use crate::surface::mode::Mode;

/// The arguments of `tool_execute`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecuteArgs<'a> {
    /// The id of the tool, or its published name.
    pub(crate) tool_id: String,
    /// The arguments of the tool.
    #[serde(borrow, default)]
    pub(crate) args: Option<&'a RawValue>,
    /// Whether the call is only checked.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

/// Calls a tool by its id, or only checks the call.
///
/// # Errors
/// The tool is not served, a guard refuses the call, or the upstream fails.
pub(crate) async fn execute(
    calls: &Calls,
    cards: &Cards,
    caller: &Caller,
    view: &CatalogView,
    args: &ExecuteArgs<'_>,
    context: CallContext,
) -> Result<Raw, GatewayError> {
    let target = find(view, calls.mode, &args.tool_id)?;
    let call = GuardedCall::new(Route::Tool, MetaTool::Execute, caller, context);
    let mut call = call.of(target.item).with_arguments(&target, args.args);
    calls.guards.checked(&mut call).await?;
    cards.note_shown(caller, view, &target);
    if args.dry_run {
        let checks = calls.guards.report(&call).await?;
        return Ok(dry_run(&target, &checks, calls.guards.sanitize()));
    }
    calls.make(call, target.item, &target.item.id).await
}

/// The tool called `name`: by its id, its published name, or as people and models write these.
///
/// # Errors
/// It is not served, is quarantined, or is one of several of that name; where to look for it in `mode` is said.
pub(crate) fn find<'v>(view: &'v CatalogView, mode: Mode, name: &str) -> Result<Target<'v>, GatewayError> {
    let found = view.tools.as_ref().and_then(|shelf| Some((shelf, view.tool(name)?)));
    if let Some((shelf, (at, item))) = found {
        return Ok(Target { shelf, at, item });
    }
    // Also before another tool of a like name: which of them is meant cannot be known.
    let waits = |(waiting, _): &(&String, &String)| {
        *waiting == name || published_name(waiting) == name || is_same(waiting, name)
    };
    if let Some((id, reason)) = view.quarantined.iter().find(waits) {
        let reason = format!("{reason}; it can be called when its operator has approved that");
        return Err(GatewayError::new(Code::Quarantined, reason).at(id));
    }
    let named = view.tools.as_ref().map_or(Err(Unnamed::NOTHING), |shelf| shelf.named(name));
    named.or_else(|unnamed| {
        view.refuse_absent(name)?;
        Err(unnamed.error(Code::HydrateFailed, "tool", name, mode))
    })
}

fn dry_run(target: &Target<'_>, checks: &[Value], sanitize: &SanitizeConfig) -> Raw {
    let annotations = |raw: &RawValue| -> Option<Map<String, Value>> {
        let members: Members<'_> = serde_json::from_str(raw.get()).ok()?;
        serde_json::from_str(members.get("annotations")?.get()).ok()
    };
    let mut annotations = target.item.raw.as_deref().and_then(annotations).unwrap_or_default();
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
