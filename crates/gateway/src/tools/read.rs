//! `resource_read` and `prompt_get`: what a model gets of resources and prompts.
//!
//! Both are results like those of tools: a summary where they are large, the whole by its handle. A resource may also
//! be named by its URI, since the results of tools link to resources that no list names.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::calls::Calls;
use crate::catalog::shelf::{Shelf, Target};
use crate::catalog::view::CatalogView;
use crate::common::error::{Code, GatewayError};
use crate::guard::call::{GuardedCall, Route};
use crate::protocol::message::Raw;
use crate::session::client::Caller;
use crate::session::context::CallContext;
use crate::surface::meta_tools::MetaTool;

/// The arguments of `resource_read`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadArgs {
    resource_id: String,
}

/// The arguments of `prompt_get`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetArgs<'a> {
    prompt_id: String,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

/// Reads a resource by its id or URI.
///
/// # Errors
/// The resource is not served, a guard refuses the read, or the upstream fails.
pub(crate) async fn resource_read(
    calls: &Calls,
    caller: &Caller,
    view: &CatalogView,
    args: &ReadArgs,
    context: CallContext,
) -> Result<Raw, GatewayError> {
    let id = args.resource_id.as_str();
    let listed = find_in(view.resources.as_ref(), id).map(|target| Cow::Borrowed(target.item));
    let Some(item) = listed.or_else(|| view.resource_at(id)) else {
        let reason = "no such resource is in the catalog now; find one with resource_browse";
        return Err(GatewayError::new(Code::ResourceNotFound, reason).at(id));
    };
    let mut call = GuardedCall::new(Route::Resource, MetaTool::ResourceRead, caller, context).of(&item);
    call.arguments = json!({ "uri": item.metadata.get("uri").and_then(Value::as_str).unwrap_or(&item.name) });
    calls.guards.checked(&mut call).await?;
    calls.make(call, &item, id).await
}

/// Fills in a prompt by its id.
///
/// # Errors
/// The prompt is not served, a guard refuses it, or the upstream fails.
pub(crate) async fn prompt_get(
    calls: &Calls,
    caller: &Caller,
    view: &CatalogView,
    args: &GetArgs<'_>,
    context: CallContext,
) -> Result<Raw, GatewayError> {
    let id = args.prompt_id.as_str();
    let Some(target) = find_in(view.prompts.as_ref(), id) else {
        let reason = "no such prompt is in the catalog now; find one with prompt_browse";
        return Err(GatewayError::new(Code::PromptNotFound, reason).at(id));
    };
    let call = GuardedCall::new(Route::Prompt, MetaTool::PromptGet, caller, context);
    let mut call = call.of(target.item).with_arguments(&target, args.args);
    calls.guards.checked(&mut call).await?;
    calls.make(call, target.item, id).await
}

/// The item called `id`.
fn find_in<'v>(shelf: Option<&'v Shelf>, id: &str) -> Option<Target<'v>> {
    let shelf = shelf?;
    shelf.item(id).map(|(at, item)| Target { shelf, at, item })
}
