//! Calls of the gateway's own tools, and of tools by the names under which they are listed.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::browse::{BrowseArgs, Cards, Shelves};
use super::calls::Calls;
use super::execute::{ExecuteArgs, execute, find};
use super::read::{ReadArgs, prompt_get, resource_read};
use super::view::{ViewArgs, show};
use crate::catalog::shelf::Target;
use crate::catalog::view::CatalogView;
use crate::common::error::{Code, GatewayError, text_result};
use crate::common::work::{LARGE, draw_text, in_turn_if};
use crate::guard::call::{Clearance, GuardedCall, Route};
use crate::guard::usage::signature;
use crate::protocol::message::{Raw, is_object};
use crate::session::client::Caller;
use crate::session::context::{CallContext, Record};
use crate::surface::meta_tools::MetaTool;
use contextweaver_context::event::Handle;
use contextweaver_context::store::ArtifactStore;

/// The gateway's own tools, with what they need.
#[derive(Debug)]
pub(crate) struct OwnTools {
    /// How cards are found and shown.
    pub(crate) cards: Cards,
    /// How calls are made.
    pub(crate) calls: Calls,
}

/// What a tool that asks no upstream is called with, and the record of the call.
struct Asked<'a> {
    arguments: Option<&'a RawValue>,
    record: Record,
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
        let asked = Asked { arguments, record: context.record.clone() };
        if !tool.is_call() {
            self.admit(caller, tool, &asked).await?;
        }
        let search = async |shelves| {
            let args: BrowseArgs = args(tool, arguments)?;
            if let Some(target) = args.whole(view, shelves) {
                // A definition is what hydration gives, and what is said about that holds.
                self.admit(caller, MetaTool::Hydrate, &asked).await?;
                return self.definition(caller, view, &target).await;
            }
            let is_long = self.cards.takes_long(view, shelves, &args);
            let span = self.calls.telemetry.work_span(caller, "route");
            let found = in_turn_if(is_long, || self.cards.browse(caller, view, shelves, &args)).await;
            drop(span);
            let found =
                found.map_err(|exhausted| GatewayError::exhausted(Code::RateLimited, "the search", exhausted))?;
            found.map_err(|error| match error.code {
                Code::ArgsInvalid => taught(tool, error.message()),
                _ => error,
            })
        };
        match tool {
            MetaTool::Browse => search(Shelves::Tools).await,
            MetaTool::ResourceBrowse => search(Shelves::Resources).await,
            MetaTool::PromptBrowse => search(Shelves::Prompts).await,
            MetaTool::Execute => execute(calls, &self.cards, caller, view, &args(tool, arguments)?, context).await,
            MetaTool::View => self.view(caller, view, args(tool, arguments)?).await,
            MetaTool::Hydrate => self.hydrate(caller, view, &args::<HydrateArgs>(tool, arguments)?.tool_id).await,
            MetaTool::ResourceRead => {
                let args: ReadArgs = args(tool, arguments)?;
                // What a result names by a handle is read like what a list names.
                if view.resource(args.id()).is_none() && self.has(caller, args.id()) {
                    self.admit(caller, MetaTool::View, &asked).await?;
                    return self.view(caller, view, ViewArgs::beginning(args.id())).await;
                }
                Box::pin(resource_read(calls, caller, view, &args, context)).await
            }
            MetaTool::PromptGet => Box::pin(prompt_get(calls, caller, view, &args(tool, arguments)?, context)).await,
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
    async fn admit(&self, caller: &Caller, tool: MetaTool, asked: &Asked<'_>) -> Result<(), GatewayError> {
        let context = CallContext { record: asked.record.clone(), ..CallContext::default() };
        let mut call = GuardedCall::new(Route::OwnTool, tool, caller, context);
        call.written = asked.arguments;
        let guards = &self.calls.guards;
        guards.checked(&mut call).await?;
        // Nobody is asked about these: see the table of guards.
        guards.clear(&mut call).await.map(|clearance| debug_assert!(matches!(clearance, Clearance::Go)))
    }

    /// Whether the caller has an artifact of this handle.
    fn has(&self, caller: &Caller, handle: &str) -> bool {
        self.calls.firewall.artifacts.of(caller.session()).reference(&Handle::new(handle)).is_ok()
    }

    /// A part of a stored result.
    async fn view(&self, caller: &Caller, view: &CatalogView, args: ViewArgs) -> Result<Raw, GatewayError> {
        let (firewall, sanitize) = (&self.calls.firewall, self.calls.guards.sanitize());
        if view.resource(args.handle()).is_some() && !self.has(caller, args.handle()) {
            let reason = "this is a resource and no handle of a result; read it with resource_read";
            return Err(GatewayError::new(Code::ViewFailed, reason).at(args.handle()).with("reason", "resource"));
        }
        show(&firewall.artifacts, firewall.media_bytes, sanitize, caller, args).await
    }

    /// The full definition of the tool of this name.
    async fn hydrate(&self, caller: &Caller, view: &CatalogView, name: &str) -> Result<Raw, GatewayError> {
        self.definition(caller, view, &find(view, self.calls.mode, name)?).await
    }

    /// The full definition of a tool.
    async fn definition(&self, caller: &Caller, view: &CatalogView, target: &Target<'_>) -> Result<Raw, GatewayError> {
        let (definition, sanitize) = (target.item.definition(), self.calls.guards.sanitize());
        let clean = || draw_text(definition.len()).map(|()| text_result(&sanitize.json(&definition), false));
        let shown = in_turn_if(definition.len() > LARGE, clean).await.flatten().map_err(|exhausted| {
            GatewayError::exhausted(Code::HydrateFailed, "cleaning the definition", exhausted).at(&target.item.id)
        })?;
        self.cards.note_shown(caller, view, target);
        Ok(shown)
    }
}

/// The arguments of a tool of the gateway's own.
fn args<'a, T: Deserialize<'a>>(tool: MetaTool, arguments: Option<&'a RawValue>) -> Result<T, GatewayError> {
    let text = arguments.map_or("{}", RawValue::get);
    let refused = |reason: String| taught(tool, &reason);
    if !is_object(text.as_bytes()) {
        return Err(refused("the arguments must be an object".to_owned()));
    }
    // Those of a tool or a prompt go on as they are.
    if text.len() > LARGE && !matches!(tool, MetaTool::Execute | MetaTool::PromptGet) {
        return Err(refused(format!("the arguments have {} bytes; at most {LARGE} are read", text.len())));
    }
    serde_json::from_str(text).map_err(|error| refused(error.to_string()))
}

/// The refusal of arguments of a tool of the gateway's own, with what they may be.
pub(crate) fn taught(tool: MetaTool, reason: &str) -> GatewayError {
    GatewayError::new(Code::ArgsInvalid, format!("{}: {reason}", tool.name()))
        .with("arguments", signature(Some(&tool.schema())))
        .with("example", tool.example())
}
