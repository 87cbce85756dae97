//! Calls of the gateway's own tools, and of tools by the names under which they are listed.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::browse::{Cards, Shelves};
use super::calls::Calls;
use super::execute::{ExecuteArgs, execute, find};
use super::read::{prompt_get, resource_read};
use super::view::show;
use crate::catalog::view::CatalogView;
use crate::common::error::{Code, GatewayError, text_result};
use crate::common::work::in_turn_if;
use crate::guard::call::{Clearance, GuardedCall, Route};
use crate::protocol::message::{Raw, is_object};
use crate::session::client::Caller;
use crate::session::context::CallContext;
use crate::surface::meta_tools::MetaTool;

/// The gateway's own tools, with what they need.
#[derive(Debug)]
pub(crate) struct OwnTools {
    /// How cards are found and shown.
    pub(crate) cards: Cards,
    /// How calls are made.
    pub(crate) calls: Calls,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HydrateArgs {
    tool_id: String,
}

impl OwnTools {
    /// Calls a tool of the gateway's own.
    ///
    /// # Errors
    /// The arguments do not fit, a guard refuses the call, or it fails.
    pub(crate) async fn call(
        &self,
        caller: &Caller,
        view: &CatalogView,
        tool: MetaTool,
        arguments: Option<&RawValue>,
        context: CallContext,
    ) -> Result<Raw, GatewayError> {
        let calls = &self.calls;
        // A tool that asks an upstream is guarded when it is known what it asks for.
        if !tool.is_call() {
            self.admit(caller, tool).await?;
        }
        let search = async |shelves| {
            let args = args(tool, arguments)?;
            let is_long = self.cards.takes_long(view, shelves, &args);
            let found = in_turn_if(is_long, || self.cards.browse(caller, view, shelves, &args)).await;
            found.map_err(|exhausted| GatewayError::exhausted(Code::RateLimited, "the search", exhausted))?
        };
        match tool {
            MetaTool::Browse => search(Shelves::Tools).await,
            MetaTool::ResourceBrowse => search(Shelves::Resources).await,
            MetaTool::PromptBrowse => search(Shelves::Prompts).await,
            MetaTool::Execute => execute(calls, &self.cards, caller, view, &args(tool, arguments)?, context).await,
            MetaTool::View => {
                let (artifacts, sanitize) = (&calls.firewall.artifacts, calls.guards.sanitize());
                show(artifacts, sanitize, caller, args(tool, arguments)?).await
            }
            MetaTool::Hydrate => self.hydrate(caller, view, &args::<HydrateArgs>(tool, arguments)?.tool_id),
            MetaTool::ResourceRead => resource_read(calls, caller, view, &args(tool, arguments)?, context).await,
            MetaTool::PromptGet => prompt_get(calls, caller, view, &args(tool, arguments)?, context).await,
        }
    }

    /// Calls a tool by the name under which it is listed.
    ///
    /// # Errors
    /// A guard refuses the call, or the upstream fails.
    pub(crate) async fn call_published(
        &self,
        caller: &Caller,
        view: &CatalogView,
        name: &str,
        arguments: Option<&RawValue>,
        context: CallContext,
    ) -> Result<Raw, GatewayError> {
        let args = ExecuteArgs { tool_id: name.to_owned(), args: arguments, dry_run: false };
        execute(&self.calls, &self.cards, caller, view, &args, context).await
    }

    /// Lets a tool that asks no upstream pass the guards.
    async fn admit(&self, caller: &Caller, tool: MetaTool) -> Result<(), GatewayError> {
        let mut call = GuardedCall::new(Route::OwnTool, tool, caller, CallContext::default());
        let guards = &self.calls.guards;
        guards.check(&mut call)?;
        // Nobody is asked about these: see the table of guards.
        guards.clear(&mut call).await.map(|clearance| debug_assert!(matches!(clearance, Clearance::Go)))
    }

    /// The full definition of a tool.
    fn hydrate(&self, caller: &Caller, view: &CatalogView, id: &str) -> Result<Raw, GatewayError> {
        let target = find(view, id)?;
        self.cards.note_shown(caller, view, &target);
        let item = target.item;
        let definition = item.raw.as_ref().map_or_else(|| item.definition_json(), |raw| raw.get().to_owned());
        Ok(text_result(&self.calls.guards.sanitize().json(&definition), false))
    }
}

/// The arguments of a tool of the gateway's own.
fn args<'a, T: Deserialize<'a>>(tool: MetaTool, arguments: Option<&'a RawValue>) -> Result<T, GatewayError> {
    let text = arguments.map_or("{}", RawValue::get);
    let refused = |reason: String| GatewayError::new(Code::ArgsInvalid, format!("{}: {reason}", tool.name()));
    if !is_object(text.as_bytes()) {
        return Err(refused("the arguments must be an object".to_owned()));
    }
    serde_json::from_str(text).map_err(|error| refused(error.to_string()))
}
