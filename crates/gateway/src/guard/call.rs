//! A call on its way through the guards, and what a guard is.

use std::pin::Pin;

use serde_json::Value;
use serde_json::value::RawValue;

use super::canonical::canonical_of;
use super::schema::{Checker, SchemaError};
use super::shown::argument_lines;
use super::tolerant::Repair;
use super::usage::{example, misspelt, signature, spelt};
use crate::common::error::{Code, GatewayError};
use crate::common::work::{Exhausted, LARGE, draw_bytes, in_turn_if};
use crate::protocol::message::Raw;
use crate::session::client::Caller;
use crate::session::context::CallContext;
use crate::surface::meta_tools::MetaTool;
use contextweaver_context::event::ResultEnvelope;
use contextweaver_core::catalog::SelectableItem;
use contextweaver_core::text::sha256_hex;

/// What kind of request a call is; each uses its own selection of the guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// A call of a tool, by `tool_execute` or by its published name.
    Tool,
    /// A read of a resource, by `resource_read` or `resources/read`.
    Resource,
    /// A prompt, by `prompt_get`.
    Prompt,
    /// A prompt, by `prompts/get` with its published name.
    PublishedPrompt,
    /// `completion/complete`, for an argument of a prompt or of a resource template.
    Completion,
    /// `resources/subscribe`: one resource is watched.
    Subscription,
    /// A resource that `subscriptions/listen` names.
    Listening,
    /// A tool of the gateway's own that asks no upstream.
    OwnTool,
    /// A request that passes to the only upstream of a passthrough.
    OnlyUpstream,
}

impl Route {
    /// How many there are.
    pub(super) const COUNT: usize = 9;
}

/// The schemas of the item that is called.
pub(crate) trait Schemas: Sync {
    /// The checker of its arguments; `None` when it has no schema.
    ///
    /// # Errors
    /// Why its schema cannot be used.
    fn arguments(&self) -> Result<Option<&Checker>, &SchemaError>;

    /// The checker of its structured results; `None` when it has no schema.
    ///
    /// # Errors
    /// Why its schema cannot be used.
    fn result(&self) -> Result<Option<&Checker>, &SchemaError>;
}

/// A call on its way through the guards: what is asked, and what the guards have found out about it so far.
pub(crate) struct GuardedCall<'c> {
    /// The kind of request.
    pub(crate) route: Route,
    /// The operation that rules and quotas are about.
    pub(crate) operation: MetaTool,
    /// The client's request that makes the call.
    pub(crate) caller: &'c Caller,
    /// What is called; `None` for tools of the gateway's own that ask no upstream.
    pub(crate) item: Option<&'c SelectableItem>,
    /// The schemas of that.
    pub(crate) schemas: Option<&'c dyn Schemas>,
    /// The arguments as the client wrote them.
    pub(crate) written: Option<&'c RawValue>,
    /// What goes along with the call; approval takes out what was meant for it.
    pub(crate) context: CallContext,
    /// The arguments, parsed and repaired, while guards look at them; then `Null`.
    pub(crate) arguments: Value,
    /// The arguments as they are sent, once the guards have looked at them; `None` where that is as they were written.
    sent: Option<Raw>,
    /// What a person who has to approve the call is shown of the arguments.
    pub(super) shown: Vec<String>,
    /// What was repaired in them.
    pub(super) repairs: Vec<Repair>,
    /// The item under the other spellings of its address.
    pub(super) spellings: Vec<SelectableItem>,
    /// Why a person has to approve the call, if one has to.
    pub(super) approval: Option<String>,
    /// What the person of a client of the stateless protocol approved, as one text.
    pub(super) approved: Option<String>,
    /// The key under which the result is cached; `None` when it is not.
    pub(super) cache_key: Option<CacheKey>,
    /// The cached result, if there is one.
    pub(crate) cached: Option<Raw>,
}

impl<'c> GuardedCall<'c> {
    /// A call about which no guard has decided anything.
    pub(crate) fn new(route: Route, operation: MetaTool, caller: &'c Caller, context: CallContext) -> Self {
        Self {
            route,
            operation,
            caller,
            item: None,
            schemas: None,
            written: None,
            context,
            arguments: Value::Null,
            sent: None,
            shown: Vec::new(),
            repairs: Vec::new(),
            spellings: Vec::new(),
            approval: None,
            approved: None,
            cache_key: None,
            cached: None,
        }
    }

    /// The same call of `item`.
    pub(crate) fn of(mut self, item: &'c SelectableItem) -> Self {
        self.item = Some(item);
        self
    }

    /// The same call with the schemas of its item and the arguments as the client wrote them.
    pub(crate) fn with_arguments(mut self, schemas: &'c dyn Schemas, written: Option<&'c RawValue>) -> Self {
        self.schemas = Some(schemas);
        self.written = written;
        self
    }

    /// The id of what is called, or the name of the gateway's own tool.
    pub(super) fn subject(&self) -> &'c str {
        self.item.map_or(self.operation.name(), |item| item.id.as_str())
    }

    /// Notes what the call is, for those who answer for it later.
    pub(super) fn note_subject(&self) {
        let record = &self.context.record;
        let digest = |bytes: &[u8]| record.wants_digest().then(|| sha256_hex(bytes));
        let arguments = match self.written {
            Some(written) => digest(written.get().as_bytes()),
            None if self.arguments.is_null() => None,
            None => digest(self.arguments.to_string().as_bytes()),
        };
        record.note(|account| {
            account.operation = Some(self.operation.name());
            account.item = self.item.map(|item| item.id.clone());
            account.server = self.item.and_then(|item| item.server.clone());
            account.arguments = arguments;
        });
    }

    /// Notes who approved or declined the call.
    pub(super) fn note_approver(&self, approver: impl Into<String>) {
        let approver = approver.into();
        self.context.record.note(|account| account.approver = Some(approver));
    }

    /// The error about the arguments, with what they may be: their names and types, and an example.
    pub(super) fn taught(&self, error: GatewayError) -> GatewayError {
        let Some(item) = self.item else { return error };
        let schema = item.args_schema.as_deref();
        let names = misspelt(schema, &self.arguments);
        let error = names.iter().fold(error, |error, (wrong, meant)| {
            error.adding(&format!("; `{wrong}` is unknown: did you mean `{meant}`?"))
        });
        let error = error.with("arguments", signature(schema));
        let checker = self.schemas.and_then(|schemas| schemas.arguments().ok().flatten());
        match checker.and_then(|checker| example(schema, checker, &spelt(&self.arguments, &names))) {
            Some(example) => error.with("example", example),
            None => error,
        }
    }

    /// The bytes of the arguments as they were written.
    pub(super) fn written_bytes(&self) -> usize {
        self.written.map_or(0, |written| written.get().len())
    }

    /// The failure of the call because work on its arguments is too much: `what` names that work.
    pub(super) fn exhausted(&self, what: &str, exhausted: Exhausted) -> GatewayError {
        GatewayError::exhausted(Code::ArgsInvalid, what, exhausted).at(self.subject())
    }

    /// Whether checking the arguments may take long: they are, or the schema makes much of little.
    pub(super) fn is_long_to_check(&self) -> bool {
        let Some(written) = self.written else { return false };
        let checker = self.schemas.and_then(|schemas| schemas.arguments().ok().flatten());
        written.get().len() > LARGE || checker.is_some_and(|checker| checker.may_be_long(written.get().len()))
    }

    /// Whether the answer to the call will be the question whether a person approves it.
    pub(super) fn is_to_be_asked_about(&self) -> bool {
        let asks = self.caller.is_modern() && self.caller.can_fill_forms();
        self.approval.is_some() && self.approved.is_none() && asks
    }

    /// Whether a person has to approve the call.
    pub(crate) fn needs_approval(&self) -> bool {
        self.approval.is_some()
    }

    /// The arguments as they were written, if they are sent so: unless they were repaired.
    pub(super) fn sent_as_written(&self) -> Option<&'c RawValue> {
        self.written.filter(|_| self.repairs.is_empty())
    }

    /// The arguments as they are sent.
    pub(crate) fn sent_arguments(&self) -> Raw {
        let sent = self.sent_as_written().map(Raw::of).or_else(|| self.sent.clone());
        sent.unwrap_or_else(|| Raw::of(&self.arguments))
    }

    /// Forgets the parsed arguments, at which no guard looks any more: they take up to sixty times the room of their text,
    /// and a call may wait for long.
    pub(super) fn settle(&mut self) {
        if self.approval.is_some() {
            self.shown = argument_lines(&self.arguments, self.sent_as_written());
        }
        if self.sent_as_written().is_none() && !self.arguments.is_null() {
            self.sent = Some(Raw::of(&self.arguments));
        }
        self.arguments = Value::Null;
    }

    /// The canonical text of the arguments that are sent.
    pub(super) fn canonical_arguments(&self) -> String {
        canonical_of(self.sent_arguments().bytes()).unwrap_or_default()
    }

    /// The same; where the arguments are large, this waits for its turn.
    ///
    /// # Errors
    /// The turn did not come, or the request has used up its budget.
    pub(super) async fn canonical_in_turn(&self) -> Result<String, GatewayError> {
        let bytes = self.written_bytes();
        let canonical = || draw_bytes(bytes).map(|()| self.canonical_arguments());
        let canonical = in_turn_if(bytes > LARGE, canonical).await.flatten();
        canonical.map_err(|exhausted| self.exhausted("reading the arguments", exhausted))
    }
}

/// The key under which a result is cached, and the lists that the call was made on.
#[derive(Debug, Clone)]
pub(super) struct CacheKey {
    /// A hash over the tool's definition and the arguments.
    pub(super) text: String,
    /// How often the kept results had been forgotten when the call began.
    pub(super) epoch: u64,
}

/// What came of asking all guards.
#[derive(Debug)]
pub(crate) enum Clearance {
    /// The call may be made.
    Go,
    /// The client is to be asked with this result first.
    Ask(Raw),
}

/// The work of a guard that waits for something.
pub(super) type Waiting<'g, T> = Pin<Box<dyn Future<Output = T> + Send + 'g>>;

/// One guard. Everything that it does not do stays as it is.
pub(super) trait Guard: Send + Sync {
    /// Decides at once, before anything else of the call happens.
    fn check(&self, _call: &mut GuardedCall<'_>) -> Result<(), GatewayError> {
        Ok(())
    }

    /// Whether [`Guard::wait`] has anything to do for the call.
    fn waits(&self, _call: &GuardedCall<'_>) -> bool {
        false
    }

    /// Decides after waiting for a person, a disk or another process.
    fn wait<'g>(&'g self, _call: &'g mut GuardedCall<'_>) -> Waiting<'g, Result<Clearance, GatewayError>> {
        Box::pin(std::future::ready(Ok(Clearance::Go)))
    }

    /// Decides about the answer of an upstream.
    fn check_result(&self, _call: &GuardedCall<'_>, _result: &Raw) -> Result<(), GatewayError> {
        Ok(())
    }

    /// Keeps a good answer for later calls; `None` when it does not.
    fn keep<'g>(&'g self, _call: &'g GuardedCall<'_>, _result: &'g Raw) -> Option<Waiting<'g, ()>> {
        None
    }

    /// Changes what a model is shown of a result.
    fn present(&self, _call: &GuardedCall<'_>, _envelope: &mut ResultEnvelope) {}

    /// Changes a result that is passed on in the form in which it came.
    ///
    /// # Errors
    /// That would take too much.
    fn present_raw(&self, result: Raw) -> Result<Raw, Exhausted> {
        Ok(result)
    }

    /// What a dry run says about the guard; nothing is used up.
    fn report<'g>(&'g self, _call: &'g GuardedCall<'_>) -> Waiting<'g, Result<Vec<Value>, GatewayError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}
