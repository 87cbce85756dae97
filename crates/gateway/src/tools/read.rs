//! `resource_read` and `prompt_get`: what a model gets of resources and prompts.
//!
//! Both are results like those of tools: a summary where they are large, the whole by its handle. A resource may also
//! be named by its URI, since the results of tools link to resources that no list names.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::calls::Calls;
use crate::catalog::shelf::{Shelf, Target, Unnamed};
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

impl ReadArgs {
    /// What is read.
    pub(crate) fn id(&self) -> &str {
        &self.resource_id
    }
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
    // An address is exact; only then may it be a name as models write it.
    let item = match view.resource(id) {
        Some(item) => item,
        None => match find_in(view.resources.as_ref(), id) {
            Ok(target) => Cow::Borrowed(target.item),
            Err(unnamed) => {
                view.refuse_absent(id)?;
                return Err(unnamed.error(Code::ResourceNotFound, "resource", id, calls.mode));
            }
        },
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
    let target = find_in(view.prompts.as_ref(), id).or_else(|unnamed| {
        view.refuse_absent(id)?;
        Err(unnamed.error(Code::PromptNotFound, "prompt", id, calls.mode))
    })?;
    let call = GuardedCall::new(Route::Prompt, MetaTool::PromptGet, caller, context);
    let mut call = call.of(target.item).with_arguments(&target, args.args);
    calls.guards.checked(&mut call).await?;
    calls.make(call, target.item, id).await
}

/// The item called `name`.
fn find_in<'v>(shelf: Option<&'v Shelf>, name: &str) -> Result<Target<'v>, Unnamed<'v>> {
    shelf.map_or(Err(Unnamed::NOTHING), |shelf| shelf.named(name))
}
