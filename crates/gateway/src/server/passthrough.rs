//! Requests that pass to upstreams under the methods of the protocol, and the lists that the gateway serves itself.
//!
//! With a single upstream in the mode passthrough every request passes to it unchanged. With several, resources and
//! prompts appear as those of one server: a resource goes to the upstream that its address belongs to, a prompt goes by
//! its published name. Beside the names, requests and answers stay as they are; they pass the guards of reads and
//! prompts.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::catalog::serving::Serving;
use crate::catalog::shelf::Target;
use crate::catalog::view::CatalogView;
use crate::common::error::{Code, GatewayError};
use crate::common::work::{LARGE, draw_bytes, in_turn_if};
use crate::guard::call::{Clearance, GuardedCall, Route};
use crate::guard::pipeline::Guards;
use crate::protocol::message::{
    INTERNAL_ERROR, INVALID_PARAMS, Members, Outcome, ProgressToken, RESOURCE_NOT_FOUND, Raw, RpcError,
};
use crate::protocol::stateless;
use crate::protocol::strict;
use crate::session::client::{Caller, Session};
use crate::session::context::{CallContext, Record};
use crate::session::elicitation::{Questions, is_question};
use crate::session::subscriptions::{Forsaken, Subscriptions};
use crate::surface::meta_tools::MetaTool;
use crate::surface::mode::Mode;
use crate::telemetry::audit::Audited;
use crate::telemetry::observer::{Seen, Telemetry, ending};
use crate::tools::questions::QuestionRules;
use crate::upstream::call::Call;
use crate::upstream::client::Upstream;
use crate::upstream::fault::Fault;
use crate::upstream::registry::Upstreams;
use contextweaver_core::catalog::SelectableItem;
use contextweaver_core::text::sha256_hex;

/// The request to hear of changes of a resource.
const SUBSCRIBE: &str = "resources/subscribe";

/// What passes to upstreams.
#[derive(Debug)]
pub(crate) struct Passthrough {
    /// What clients are shown.
    pub(super) mode: Mode,
    /// The catalog that is served now.
    pub(super) serving: Arc<Serving>,
    /// Where requests pass to.
    pub(super) upstreams: Arc<Upstreams>,
    /// What requests have to pass.
    pub(super) guards: Arc<Guards>,
    /// What is counted and recorded of it.
    pub(super) telemetry: Arc<Telemetry>,
    /// How questions of upstreams are put to clients.
    pub(super) questions: QuestionRules,
    /// The clients that want to hear of changes of resources.
    pub(super) subscriptions: Arc<Subscriptions>,
}

/// What a request names.
struct Named<'v> {
    route: Route,
    operation: MetaTool,
    upstream: &'v Upstream,
    item: Cow<'v, SelectableItem>,
    /// The item on its shelf, and its arguments, where it has a schema for them.
    target: Option<Target<'v>>,
    /// What a person who approves it is shown.
    arguments: Value,
}

/// Why a request got no result: what its client is told, and what that counts as.
struct Failed {
    error: RpcError,
    /// The kind of a failure of the gateway, or of its connection to the upstream. What the upstream or the protocol says
    /// has none, whatever stands in it.
    code: Option<Code>,
    /// Whether the gateway itself has refused it.
    is_refused: bool,
}

impl From<RpcError> for Failed {
    fn from(error: RpcError) -> Self {
        Self { error, code: None, is_refused: false }
    }
}

impl From<GatewayError> for Failed {
    fn from(error: GatewayError) -> Self {
        Self { error: error.to_rpc(), code: Some(error.code), is_refused: true }
    }
}

impl Failed {
    /// That the upstream called `name` failed, or answered with an error, which goes on as it came.
    fn of(fault: Fault, name: &str) -> Self {
        match fault {
            Fault::Rpc(error) => error.into(),
            fault => {
                let error = RpcError::new(INTERNAL_ERROR, fault.to_error(name).message());
                Self { error, code: Some(fault.code()), is_refused: false }
            }
        }
    }
}

/// What comes of a request, before it is counted.
type Passed = Result<Raw, Failed>;

#[derive(Deserialize, Default)]
struct ListParams {
    cursor: Option<String>,
}

impl Passthrough {
    /// Whether every request passes to a single upstream.
    pub(super) fn has_only_upstream(&self) -> bool {
        self.upstreams.only().is_some()
    }

    /// Answers a request that the gateway does not answer by its own tools.
    ///
    /// # Errors
    /// The method is not offered, a guard refuses the request, or the upstream's error.
    pub(super) async fn answer(&self, caller: &Caller, method: &str, params: Option<&Raw>) -> Outcome {
        // What most calls do not need is in a box here and below: it is large, and would be copied with each of them.
        if let SUBSCRIBE | "resources/unsubscribe" = method {
            return Box::pin(self.subscribe(caller, method, params)).await;
        }
        match (self.upstreams.only(), method) {
            (Some(upstream), "tools/list") => {
                let page = self.pass(upstream, caller, Questions::AsTheyCame, method, params).await;
                page.map(|page| upstream.select_of(page)).map_err(|failed| failed.error)
            }
            (Some(upstream), _) => self.pass_to_only(upstream, caller, method, params).await,
            (None, _) => Box::pin(self.merged(caller, method, params)).await,
        }
    }

    /// Passes a notification of a client on, where every request passes to a single upstream.
    pub(super) fn tell_only(&self, method: &str, params: Option<&Raw>) {
        if let Some(upstream) = self.upstreams.only() {
            upstream.tell(method, params);
        }
    }

    /// The answer of the only upstream, cleaned where that is wanted of everything; a question stays as it is.
    async fn pass_to_only(&self, upstream: &Upstream, caller: &Caller, method: &str, params: Option<&Raw>) -> Outcome {
        if method == "tools/call" && !upstream.takes_all() {
            #[derive(Deserialize)]
            struct Named {
                name: String,
            }
            let params = params.ok_or_else(|| RpcError::invalid_params("missing field `name`"))?;
            let Named { name } = params.read().map_err(RpcError::invalid_params)?;
            if !upstream.takes(&name) {
                return Err(RpcError::new(INVALID_PARAMS, format!("unknown tool: {name}")));
            }
        }
        const CONTENT: [&str; 4] = ["tools/call", "resources/read", "prompts/get", "completion/complete"];
        let content = CONTENT.into_iter().find(|known| *known == method);
        let (record, started) = (self.telemetry.new_record(), Instant::now());
        let audited = content.and_then(|method| {
            self.note_unguarded(upstream, method, params, &record);
            self.telemetry.audited(caller, &record)
        });
        if audited.is_some() {
            let credentials = upstream.credentials_rule();
            self.telemetry.allowed(caller, credentials, &record).await.map_err(|error| error.to_rpc())?;
        }
        let result = self.traced(upstream, caller, Questions::AsTheyCame, method, params).await;
        let result = match result {
            Ok(result) if content.is_some() && !is_question(&result) => {
                self.presented(Route::OnlyUpstream, result).await.map_err(Failed::from)
            }
            result => result,
        };
        self.settled(caller, &record, started, audited, result).await
    }

    /// Passes a request on, with its place in a trace where traces are sent.
    async fn traced(
        &self,
        upstream: &Upstream,
        caller: &Caller,
        questions: Questions,
        method: &str,
        params: Option<&Raw>,
    ) -> Passed {
        let name = caller.trace().and_then(|_| stateless::named(method, params));
        let named = (upstream.name(), upstream.transport());
        let mut span = self.telemetry.upstream_span(caller, named, method, name.as_deref().unwrap_or_default());
        let inside = span.as_ref().map(|span| span.context().set_in(params));
        let outcome = self.pass(upstream, caller, questions, method, inside.as_ref().or(params)).await;
        if let (Some(span), Err(failed)) = (&mut span, &outcome) {
            span.fail(failed.error.code.to_string());
        }
        outcome
    }

    /// Passes a request on as it is.
    async fn pass(
        &self,
        upstream: &Upstream,
        caller: &Caller,
        questions: Questions,
        method: &str,
        params: Option<&Raw>,
    ) -> Passed {
        #[derive(Deserialize, Default)]
        struct Progress<'p> {
            #[serde(rename = "_meta", borrow)]
            meta: Option<Meta<'p>>,
        }
        #[derive(Deserialize)]
        struct Meta<'m> {
            #[serde(rename = "progressToken", borrow)]
            progress_token: Option<ProgressToken<'m>>,
        }
        // What cannot be read would go on with its own token, which may be that of somebody else's request to the upstream.
        let progress = params.map(Raw::read::<Progress<'_>>).transpose().map_err(RpcError::invalid_params)?;
        let token = progress.and_then(|progress| progress.meta?.progress_token.map(ProgressToken::raw));
        let call = Call { method, params, caller: Some(caller), progress: token.as_ref(), questions };
        let asked = Instant::now();
        let answer = upstream.request(call).await;
        let failure = answer.as_ref().err().map(Fault::code);
        self.telemetry.metrics.asked(upstream.name(), method, failure, asked.elapsed());
        answer.map_err(|fault| Failed::of(fault, upstream.name()))
    }

    /// What comes of a request, after it is counted, shown and in the log of decisions.
    async fn settled(
        &self,
        caller: &Caller,
        record: &Record,
        started: Instant,
        audited: Option<Audited<'_>>,
        outcome: Passed,
    ) -> Outcome {
        let (code, remedy, refused) = match &outcome {
            Ok(result) => (ending(&Ok(result.clone())), None, false),
            Err(failed) => {
                let word = failed.code.map_or("RPC_ERROR", Code::word);
                (word, failed.code.map(Code::remedy), failed.is_refused)
            }
        };
        let outcome = match audited {
            Some(audited) => audited.end(code, outcome.is_err()).await.map_err(Failed::from).and(outcome),
            None => outcome,
        };
        let bytes = outcome.as_ref().map_or(0, |result| result.bytes().len());
        self.telemetry.saw(caller.session(), record, &Seen { started, code, remedy, refused, tokens: None, bytes });
        outcome.map_err(|failed| failed.error)
    }

    /// Notes what a request to the only upstream is about, which no guard looks at. What it names is read only where
    /// somebody wants to know.
    fn note_unguarded(&self, upstream: &Upstream, method: &'static str, params: Option<&Raw>, record: &Record) {
        record.note(|account| account.operation = Some(method));
        if !self.telemetry.looks_into() {
            return;
        }
        let members: Members<'_> = params.and_then(|params| params.read().ok()).unwrap_or_default();
        let name = members.get("name").and_then(|name| serde_json::from_str::<String>(name.get()).ok());
        let view = self.serving.view();
        let item = name.filter(|_| method == "tools/call").and_then(|name| {
            let items = view.tools.as_ref()?.router.catalog().items();
            items.iter().find(|item| item.name == name).map(|item| item.id.clone())
        });
        record.note(|account| {
            account.server = Some(upstream.name().to_owned());
            account.item = item;
            let digest = |text: &RawValue| record.wants_digest().then(|| sha256_hex(text.get().as_bytes()));
            account.arguments = members.get("arguments").and_then(digest);
        });
    }

    /// Answers what belongs to lists, resources and prompts of all upstreams together.
    async fn merged(&self, caller: &Caller, method: &str, params: Option<&Raw>) -> Outcome {
        let view = self.serving.view_for(caller);
        let shows_all = self.mode != Mode::Gateway;
        let lists = view.lists(self.mode);
        let pages = match method {
            "tools/list" => &lists.tools,
            "resources/list" if shows_all => &lists.resources,
            "resources/templates/list" if shows_all => &lists.templates,
            "prompts/list" if shows_all => &lists.prompts,
            "resources/read" | "prompts/get" | "completion/complete" if shows_all => {
                return self.routed(caller, &view, method, params).await;
            }
            _ => return Err(RpcError::method_not_found(method)),
        };
        let read = params.map(Raw::read::<ListParams>).transpose().map_err(RpcError::invalid_params)?;
        pages.answer(read.and_then(|params| params.cursor).as_deref())
    }

    /// Passes a request to the upstream whose resource or prompt it names, through the guards.
    async fn routed(&self, caller: &Caller, view: &CatalogView, method: &str, params: Option<&Raw>) -> Outcome {
        let (record, started) = (self.telemetry.new_record(), Instant::now());
        let audited = self.telemetry.audited(caller, &record);
        let outcome = self.guarded(caller, view, (method, params), record.clone()).await;
        self.settled(caller, &record, started, audited, outcome).await
    }

    async fn guarded(
        &self,
        caller: &Caller,
        view: &CatalogView,
        (method, params): (&str, Option<&Raw>),
        record: Record,
    ) -> Passed {
        let params = params.ok_or_else(|| RpcError::invalid_params("they are missing"))?;
        // The text goes on as it is: it must say what is guarded, in whatever parser.
        let text = std::str::from_utf8(params.bytes()).map_err(RpcError::invalid_params)?;
        let check = || draw_bytes(text.len()).map(|()| strict::check(text));
        let checked = in_turn_if(text.len() > LARGE, check)
            .await
            .flatten()
            .map_err(|exhausted| GatewayError::exhausted(Code::ArgsInvalid, "reading the parameters", exhausted));
        checked?.map_err(RpcError::invalid_params)?;
        let mut members: Members<'_> = params.read().map_err(RpcError::invalid_params)?;
        let named = match method {
            "resources/read" => self.named_resource(view, Route::Resource, &text_of(&members, "uri")?)?,
            "prompts/get" => self.named_prompt(view, &text_of(&members, "name")?)?,
            _ => self.named_reference(view, &mut members)?,
        };
        let context = CallContext {
            progress: None,
            input_responses: members.get("inputResponses").map(Raw::of),
            request_state: members.get("requestState").map(Raw::of),
            record,
        };
        let refused = |error: &GatewayError| tracing::info!(method, %error, "refused");
        let arguments = members.get("arguments").map(RawValue::to_owned);
        let mut call = GuardedCall::new(named.route, named.operation, caller, context).of(&named.item);
        match &named.target {
            Some(target) => call = call.with_arguments(target, arguments.as_deref()),
            None => call.arguments.clone_from(&named.arguments),
        }
        self.guards.checked(&mut call).await.inspect_err(refused)?;
        if let Clearance::Ask(question) = self.guards.clear(&mut call).await.inspect_err(refused)? {
            return Ok(question);
        }
        let credentials = named.upstream.credentials_rule();
        self.telemetry.allowed(caller, credentials, &call.context.record).await.inspect_err(refused)?;
        if method == "prompts/get" {
            members.set("name", &Raw::of(&named.item.name));
        }
        members.remove("inputResponses");
        members.remove("requestState");
        let params = call.context.params(Raw::of(&members));
        let questions = self.questions.presented();
        let result = self.traced(named.upstream, caller, questions, method, Some(&params)).await?;
        if is_question(&result) {
            let (upstream, id) = (named.upstream.name(), &named.item.id);
            let question = self.questions.ask_back(&self.guards, &call, upstream, id, &result).await;
            return Ok(question.inspect_err(refused)?);
        }
        Ok(self.presented(call.route, result).await?)
    }

    /// A result that is passed on, cleaned where that is configured.
    async fn presented(&self, route: Route, result: Raw) -> Result<Raw, GatewayError> {
        let presented = self.guards.present_raw(route, result).await;
        presented.map_err(|exhausted| GatewayError::exhausted(Code::UpstreamError, "cleaning the result", exhausted))
    }

    fn named_resource<'v>(&'v self, view: &'v CatalogView, route: Route, uri: &str) -> Result<Named<'v>, RpcError> {
        let missing = || no_resource(uri);
        let item = view.resource_at(uri).ok_or_else(missing)?;
        let upstream = self.owner(&item).ok_or_else(missing)?;
        let arguments = json!({ "uri": uri });
        Ok(Named { route, operation: MetaTool::ResourceRead, upstream, item, target: None, arguments })
    }

    fn named_prompt<'v>(&'v self, view: &'v CatalogView, published: &str) -> Result<Named<'v>, RpcError> {
        let target = view.prompt(published).ok_or_else(|| no_prompt(published))?;
        let upstream = self.owner(target.item).ok_or_else(|| no_prompt(published))?;
        Ok(Named {
            route: Route::PublishedPrompt,
            operation: MetaTool::PromptGet,
            upstream,
            item: Cow::Borrowed(target.item),
            target: Some(target),
            arguments: Value::Null,
        })
    }

    /// What a completion is for; its reference becomes the upstream's own.
    fn named_reference<'v>(&'v self, view: &'v CatalogView, members: &mut Members<'_>) -> Result<Named<'v>, RpcError> {
        let reference =
            members.get("ref").ok_or_else(|| RpcError::invalid_params("`ref` is missing"))?.get().to_owned();
        let mut reference: Members<'_> = serde_json::from_str(&reference).map_err(RpcError::invalid_params)?;
        let (route, arguments) = (Route::Completion, Value::Null);
        let named = match text_of(&reference, "type")?.as_str() {
            "ref/prompt" => {
                let named = self.named_prompt(view, &text_of(&reference, "name")?)?;
                reference.set("name", &Raw::of(&named.item.name));
                Named { route, target: None, ..named }
            }
            "ref/resource" => {
                let uri = text_of(&reference, "uri")?;
                let template = view.routes().server_of_template(&uri).map(|server| view.unlisted(server, &uri));
                match template.and_then(|item| Some((self.owner(&item)?, item))) {
                    Some((upstream, item)) => {
                        let (operation, item) = (MetaTool::ResourceRead, Cow::Owned(item));
                        Named { route, operation, upstream, item, target: None, arguments }
                    }
                    None => Named { arguments, ..self.named_resource(view, route, &uri)? },
                }
            }
            other => return Err(RpcError::invalid_params(format!("`ref.type` is `{other}`"))),
        };
        members.set("ref", &Raw::of(&reference));
        Ok(named)
    }

    /// Serves `resources/subscribe` and `resources/unsubscribe`.
    async fn subscribe(&self, caller: &Caller, method: &str, params: Option<&Raw>) -> Outcome {
        let result = self.passed(caller, method, params).await?;
        match (method, stateless::named(method, params)) {
            (SUBSCRIBE, Some(uri)) => caller.session().watch(&uri),
            (_, Some(uri)) => caller.session().unwatch(&uri),
            _ => {}
        }
        Ok(result)
    }

    /// Has a resource watched, or not any more, for all clients together.
    async fn passed(&self, caller: &Caller, method: &str, params: Option<&Raw>) -> Outcome {
        let (record, started) = (self.telemetry.new_record(), Instant::now());
        let audited = self.telemetry.audited(caller, &record).filter(|_| method == SUBSCRIBE);
        let passed = async {
            let upstream = self.watched(caller, method, params, record.clone()).await?;
            let pass = || self.pass(&upstream, caller, self.questions.presented(), method, params);
            self.subscriptions.pass((caller.session(), upstream.name()), method, params, pass).await
        };
        let outcome = passed.await;
        self.settled(caller, &record, started, audited, outcome).await
    }

    /// The upstream of the resource that is to be watched, or not any more; watching is guarded as reading is.
    async fn watched(
        &self,
        caller: &Caller,
        method: &str,
        params: Option<&Raw>,
        record: Record,
    ) -> Result<Arc<Upstream>, Failed> {
        #[derive(Deserialize)]
        struct Subject {
            uri: String,
        }
        if let Some(upstream) = self.upstreams.only() {
            if method == SUBSCRIBE {
                record.note(|account| {
                    account.operation = Some(SUBSCRIBE);
                    account.server = Some(upstream.name().to_owned());
                });
                self.telemetry.allowed(caller, upstream.credentials_rule(), &record).await?;
            }
            return Ok(Arc::clone(upstream));
        }
        if self.mode == Mode::Gateway {
            return Err(RpcError::method_not_found(method).into());
        }
        let params = params.ok_or_else(|| RpcError::invalid_params("they are missing"))?;
        let Subject { uri } = params.read().map_err(RpcError::invalid_params)?;
        let view = self.serving.view_for(caller);
        let missing = || no_resource(&uri);
        let item = view.resource_at(&uri).ok_or_else(missing)?;
        if method == SUBSCRIBE {
            let context = CallContext { record, ..CallContext::default() };
            let mut call = GuardedCall::new(Route::Subscription, MetaTool::ResourceRead, caller, context).of(&item);
            call.arguments = json!({ "uri": uri });
            self.guards.check(&mut call)?;
            // The method belongs to the era in which a person is asked at once.
            self.guards.clear(&mut call).await?;
            let upstream = self.upstreams.of_server(item.server.as_deref());
            let credentials = upstream.and_then(|upstream| upstream.credentials_rule());
            self.telemetry.allowed(caller, credentials, &call.context.record).await?;
        }
        // Whoever was asked to watch it is told of the end.
        let asked = self.subscriptions.asked(&uri).filter(|_| method != SUBSCRIBE);
        let upstream = asked.and_then(|asked| self.upstreams.get(&asked));
        Ok(upstream.or_else(|| self.upstreams.of_server(item.server.as_deref())).cloned().ok_or_else(missing)?)
    }

    /// Whether the caller may hear of changes of the resource without anybody being asked.
    pub(crate) fn may_hear_of(&self, caller: &Caller, uri: &str) -> bool {
        self.audible(caller, uri).is_some_and(|(_, needs_approval)| !needs_approval)
    }

    /// The upstream of a resource of whose changes the caller may hear, and whether a person has to approve that; `None`
    /// where it may not.
    fn audible(&self, caller: &Caller, uri: &str) -> Option<(&Arc<Upstream>, bool)> {
        if let Some(upstream) = self.upstreams.only() {
            return Some((upstream, false));
        }
        if self.mode == Mode::Gateway {
            return None;
        }
        let view = self.serving.view_for(caller);
        let item = view.resource_at(uri)?;
        let context = CallContext::default();
        let mut call = GuardedCall::new(Route::Listening, MetaTool::ResourceRead, caller, context).of(&item);
        self.guards.check(&mut call).ok()?;
        Some((self.upstreams.of_server(item.server.as_deref())?, call.needs_approval()))
    }

    /// Ends what clients watch since the gateway `before` this one permitted it, where this one does not: what is hidden or
    /// refused, and what belongs to another upstream. What a person has approved stays approved.
    pub(super) fn review_watched(&self, before: &Self) {
        let mut forsaken = Vec::new();
        for (uri, asked, sessions) in self.subscriptions.all() {
            for session in sessions {
                let caller = Caller::new(Arc::clone(&session), session.client(), mpsc::channel(1).0);
                let may_go_on = self.audible(&caller, &uri).is_some_and(|(upstream, needs_approval)| {
                    let was_approved = || before.audible(&caller, &uri).is_some_and(|(_, needed)| needed);
                    let is_same = upstream.name() == &*asked && !upstream.config().credentials.is_per_caller();
                    is_same && (!needs_approval || was_approved())
                });
                if !may_go_on {
                    session.unwatch(&uri);
                    forsaken.extend(self.subscriptions.remove(&uri, &session));
                }
            }
        }
        // One that is gone, or another now, knows nothing of it.
        forsaken.retain(|(_, name)| before.upstreams.get(name).is_some_and(|upstream| self.upstreams.has(upstream)));
        self.forsake(forsaken);
    }

    /// Has a resource watched for a client that listens to a stream of changes.
    ///
    /// # Errors
    /// A guard refuses it, or the upstream's error.
    pub(super) async fn watch(&self, caller: &Caller, uri: &str) -> Result<(), RpcError> {
        self.passed(caller, SUBSCRIBE, Some(&Raw::of(&json!({ "uri": uri })))).await.map(drop)
    }

    /// Ends that for these resources. Upstreams are told in the background.
    pub(super) fn unwatch(&self, session: &Arc<Session>, uris: &[String]) {
        self.forsake(uris.iter().filter_map(|uri| self.subscriptions.remove(uri, session)));
    }

    /// Ends that for the resources of clients that are gone.
    pub(super) fn sweep_watched(&self) {
        self.forsake(self.subscriptions.forsaken());
    }

    /// Tells upstreams that nobody watches these resources.
    fn forsake(&self, forsaken: impl IntoIterator<Item = Forsaken>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        for (uri, asked) in forsaken {
            let Some(upstream) = self.upstreams.get(&asked).cloned() else { continue };
            let subscriptions = Arc::clone(&self.subscriptions);
            runtime.spawn(async move {
                let params = Raw::of(&json!({ "uri": uri }));
                let tell = || upstream.request(Call::own("resources/unsubscribe", Some(&params)));
                if let Err(fault) = subscriptions.end(&uri, tell).await {
                    let fault = upstream.shown(fault);
                    tracing::debug!(upstream = upstream.name(), %fault, "a resource is still watched");
                }
            });
        }
    }

    fn owner(&self, item: &SelectableItem) -> Option<&Upstream> {
        self.upstreams.of_server(item.server.as_deref()).map(|upstream| &**upstream)
    }

    /// The instructions of the only upstream.
    pub(super) fn instructions(&self) -> Option<String> {
        self.upstreams.only()?.introduced()?.instructions.clone()
    }

    /// Whether [`Passthrough::capabilities`] can be said before the catalog is made.
    pub(super) fn is_introduced_without_catalog(&self) -> bool {
        self.mode == Mode::Gateway || self.serving.knows_lists()
    }

    /// Whether `tools/list` can be answered before the catalog is made. In mode `gateway` it shows meta-tools, and which
    /// ones depends only on whether there are resources and prompts.
    pub(super) fn lists_tools_without_catalog(&self) -> bool {
        let view = self.serving.view();
        self.mode == Mode::Gateway && self.serving.knows_lists() && !view.has_resources() && !view.has_prompts()
    }

    /// The capabilities that the gateway declares.
    pub(super) fn capabilities(&self) -> Value {
        if let Some(server) = self.upstreams.only().and_then(|upstream| upstream.introduced()) {
            return Value::Object(server.capabilities.clone());
        }
        // Each upstream may log, also one that has not introduced itself yet.
        let mut offered = json!({"tools": {"listChanged": true}, "logging": {}});
        if self.mode == Mode::Gateway {
            return offered;
        }
        let view = self.serving.view();
        let any = |can: fn(&Map<String, Value>) -> bool| {
            self.upstreams.iter().any(|upstream| upstream.introduced().is_some_and(|server| can(&server.capabilities)))
        };
        if view.has_resources() {
            let subscribes = any(|can| can.get("resources").is_some_and(|resources| resources["subscribe"] == true));
            offered["resources"] = json!({"listChanged": true, "subscribe": subscribes});
        }
        if view.has_prompts() {
            offered["prompts"] = json!({"listChanged": true});
        }
        if any(|can| can.contains_key("completions")) {
            offered["completions"] = json!({});
        }
        offered
    }
}

fn text_of(members: &Members<'_>, key: &str) -> Result<String, RpcError> {
    let value = members.get(key).map(|value| serde_json::from_str::<String>(value.get()));
    let value = value.transpose().map_err(RpcError::invalid_params)?;
    value.ok_or_else(|| RpcError::invalid_params(format!("`{key}` is missing")))
}

fn no_prompt(published: &str) -> RpcError {
    RpcError::new(INVALID_PARAMS, format!("unknown prompt: {published}"))
}

fn no_resource(uri: &str) -> RpcError {
    let mut error = RpcError::new(RESOURCE_NOT_FOUND, format!("no upstream has the resource `{uri}`"));
    error.data = serde_json::value::to_raw_value(&json!({ "uri": uri })).ok();
    error
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::tests::shop::{Scene, Shop, Who, run, upstream};
    use crate::{Gateway, GatewayConfig};

    /// An upstream whose tools fail in one way each.
    fn answer(method: &str, params: Option<&Raw>) -> Result<Raw, Fault> {
        let params: Value = params.and_then(|params| params.read().ok()).unwrap_or_default();
        let offered = json!({"tools": {}, "resources": {"subscribe": true}});
        let answer = match (method, params["name"].as_str().unwrap_or_default()) {
            ("initialize", _) => json!({"protocolVersion": "2025-11-25", "capabilities": offered}),
            ("tools/list", _) => {
                let names = ["good", "bad", "slow", "gone", "mimic"];
                json!({"tools": names.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))})
            }
            (_, "bad") => json!({"content": [], "isError": true}),
            (_, "slow") => return Err(Fault::Timeout(Duration::from_secs(1))),
            (_, "gone") => return Err(Fault::Unavailable("it has ended".to_owned())),
            (_, "mimic") => {
                let mut error = RpcError::new(-32_000, "no");
                error.data = serde_json::value::to_raw_value(&json!({"error": "POLICY_DENIED"})).ok();
                return Err(Fault::Rpc(error));
            }
            _ => json!({"content": []}),
        };
        Ok(Raw::of(&answer))
    }

    async fn scene() -> Scene {
        let mut config = GatewayConfig::parse("mode: passthrough", Path::new("."), &|_| None).unwrap();
        config.upstreams.insert("up".to_owned(), upstream(answer));
        Scene { shop: Arc::new(Shop::called("up")), gateway: Gateway::start(config).await.unwrap() }
    }

    /// What a client is told, and what is counted.
    async fn answers_and_counts(scene: &Scene) -> String {
        let caller = scene.client(Who::Mute);
        let mut lines = Vec::new();
        for (method, name) in [
            ("tools/call", "good"),
            ("tools/call", "bad"),
            ("tools/call", "slow"),
            ("tools/call", "gone"),
            ("tools/call", "mimic"),
            ("resources/read", ""),
            ("resources/subscribe", ""),
            ("resources/unsubscribe", ""),
            ("tools/list", ""),
        ] {
            let params = Raw::of(&json!({"name": name, "uri": "up:terms"}));
            if let Err(RpcError { code, message, data }) = scene.gateway.answer(&caller, method, Some(&params)).await {
                lines
                    .push(format!("{name}: {code} {message} {}", data.map_or("-".to_owned(), |data| data.to_string())));
            }
        }
        let metrics = scene.gateway.metrics_text();
        let counted = metrics.lines().filter_map(|line| line.strip_prefix("contextweaver_calls_total"));
        lines.extend(counted.map(str::to_owned));
        lines.join("\n")
    }

    #[test]
    fn calls_of_an_only_upstream_are_counted_whoever_looks_and_failures_have_the_gateways_own_names() {
        run(async {
            let unwatched = scene().await;
            insta::assert_snapshot!(answers_and_counts(&unwatched).await, @r#"
            slow: -32603 upstream `up`: no answer within 1 s -
            gone: -32603 upstream `up`: it has ended -
            mimic: -32000 no {"error":"POLICY_DENIED"}
            {tool="resources/read",caller="Mute",code="OK"} 1
            {tool="resources/subscribe",caller="Mute",code="OK"} 1
            {tool="tools/call",caller="Mute",code="OK"} 1
            {tool="tools/call",caller="Mute",code="RPC_ERROR"} 1
            {tool="tools/call",caller="Mute",code="TOOL_ERROR"} 1
            {tool="tools/call",caller="Mute",code="UPSTREAM_TIMEOUT"} 1
            {tool="tools/call",caller="Mute",code="UPSTREAM_UNAVAILABLE"} 1
            "#);
            let watched = scene().await;
            watched.gateway.telemetry().activity.watch();
            insta::assert_snapshot!(answers_and_counts(&watched).await, @r#"
            slow: -32603 upstream `up`: no answer within 1 s -
            gone: -32603 upstream `up`: it has ended -
            mimic: -32000 no {"error":"POLICY_DENIED"}
            {tool="resources/read",caller="Mute",code="OK"} 1
            {tool="resources/subscribe",caller="Mute",code="OK"} 1
            {tool="up:bad",caller="Mute",code="TOOL_ERROR"} 1
            {tool="up:gone",caller="Mute",code="UPSTREAM_UNAVAILABLE"} 1
            {tool="up:good",caller="Mute",code="OK"} 1
            {tool="up:mimic",caller="Mute",code="RPC_ERROR"} 1
            {tool="up:slow",caller="Mute",code="UPSTREAM_TIMEOUT"} 1
            "#);
            let (calls, _) = watched.gateway.telemetry().activity.follow();
            let shown: Vec<String> = calls
                .iter()
                .map(|call| {
                    format!("{} {} {} {}", call.tool, call.decision.name(), call.code, call.remedy.unwrap_or("-"))
                })
                .collect();
            insta::assert_snapshot!(shown.join("\n"), @r#"
            up:good allow OK -
            up:bad allow TOOL_ERROR -
            up:slow allow UPSTREAM_TIMEOUT raise `timeout` of this upstream, or see why the server is slow
            up:gone allow UPSTREAM_UNAVAILABLE start the server; `contextweaver mcp doctor` checks it
            up:mimic allow RPC_ERROR -
            resources/read allow OK -
            resources/subscribe allow OK -
            "#);
        });
    }
}
