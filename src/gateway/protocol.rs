//! What a client may ask, in both eras of the protocol.

use std::time::Instant;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::browse::Shelves;
use super::config::Mode;
use super::diagnostics::{Called, Signed, Trace};
use super::error::{Code, GatewayError, text_result};
use super::execute::{Along, ExecuteArgs, find};
use super::guard::sanitize::Scope;
use super::hub::{Gateway, at_length};
use super::modern;
use super::question::{Questions, is_question};
use super::session::{Caller, ClientInfo, LEGACY_VERSIONS, Session};
use super::snapshot::Snapshot;
use super::surface::MetaTool;
use super::upstream::{Call, Upstream, own_info};
use super::wire::{INTERNAL_ERROR, INVALID_PARAMS, Outcome, Raw, RpcError, check_params, is_object};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallParams<'p> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'p RawValue>,
    #[serde(borrow)]
    input_responses: Option<&'p RawValue>,
    #[serde(borrow)]
    request_state: Option<&'p RawValue>,
    #[serde(rename = "_meta", borrow)]
    meta: Option<Meta<'p>>,
}

impl CallParams<'_> {
    fn along(&self) -> Along {
        Along {
            progress: self.meta.as_ref().and_then(|meta| meta.progress_token).map(Raw::of),
            input_responses: self.input_responses.map(Raw::of),
            request_state: self.request_state.map(Raw::of),
            trace: Trace::default(),
        }
    }
}

#[derive(Deserialize)]
struct Meta<'m> {
    #[serde(rename = "progressToken", borrow)]
    progress_token: Option<&'m RawValue>,
    #[serde(rename = "contextweaver/signature", borrow)]
    signature: Option<&'m RawValue>,
}

impl Gateway {
    /// Answers a request.
    ///
    /// # Errors
    /// An error of JSON-RPC, for what is no request of the protocol. Failures of tools are results.
    pub async fn answer(&self, caller: &Caller, method: &str, params: Option<&Raw>) -> Outcome {
        check_params(params)?;
        if !caller.is_modern() {
            return self.route(caller, method, params).await;
        }
        modern::check_method(method)?;
        let outcome = self.route(caller, method, params).await;
        outcome.map(|result| modern::completed(method, result)).map_err(modern::translated)
    }

    async fn route(&self, caller: &Caller, method: &str, params: Option<&Raw>) -> Outcome {
        match method {
            "initialize" => self.initialize(caller, params),
            "server/discover" if caller.is_modern() => Ok(self.discover()),
            "server/discover" => Err(modern::meta_required()),
            "ping" => Ok(Raw::of(&json!({}))),
            "tools/list" => match self.only_upstream() {
                Some(upstream) => {
                    let page = pass(upstream, caller, Questions::AsTheyCame, method, params).await;
                    page.map(|page| upstream.select_of(page))
                }
                None => self.merged(caller, method, params).await,
            },
            "tools/call" => self.tool_call(caller, params).await,
            "logging/setLevel" => Ok(Raw::of(&json!({}))),
            "resources/subscribe" | "resources/unsubscribe" => {
                let upstream = self.watched(caller, method, params).await?;
                let pass = || pass(upstream, caller, self.questions(), method, params);
                let result = self.subscriptions.pass(caller.session(), method, params, pass).await?;
                match (method, modern::named(method, params)) {
                    ("resources/subscribe", Some(uri)) => caller.session().watch(&uri),
                    (_, Some(uri)) => caller.session().unwatch(&uri),
                    _ => {}
                }
                Ok(result)
            }
            _ => match self.only_upstream() {
                Some(upstream) => self.passed_by(upstream, caller, method, params).await,
                None => self.merged(caller, method, params).await,
            },
        }
    }

    /// The answer of the only upstream, cleaned where that is wanted of whatever passes; a question stays as it is.
    async fn passed_by(&self, upstream: &Upstream, caller: &Caller, method: &str, params: Option<&Raw>) -> Outcome {
        let result = pass(upstream, caller, Questions::AsTheyCame, method, params).await?;
        let is_content = matches!(method, "tools/call" | "resources/read" | "prompts/get" | "completion/complete");
        let cleaned = is_content && self.guards.sanitize().scope == Scope::All && !is_question(&result);
        Ok(if cleaned { self.guards.passed(result) } else { result })
    }

    /// Takes a notification of a client.
    pub fn take(&self, session: &Session, method: &str, params: Option<&Raw>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled {
            request_id: Box<RawValue>,
        }
        if method == "notifications/cancelled"
            && let Some(Ok(cancelled)) = params.map(Raw::read::<Cancelled>)
        {
            session.cancel(&Raw::of(&cancelled.request_id));
        }
    }

    /// The single upstream of a passthrough.
    pub(super) fn only_upstream(&self) -> Option<&Upstream> {
        let mut upstreams = self.upstreams().values();
        match (self.config.mode, upstreams.next(), upstreams.next()) {
            (Mode::Passthrough, Some(upstream), None) => Some(upstream),
            _ => None,
        }
    }

    fn initialize(&self, caller: &Caller, params: Option<&Raw>) -> Outcome {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InitializeParams {
            protocol_version: String,
            #[serde(default)]
            capabilities: Map<String, Value>,
        }
        let params: InitializeParams = read(params)?;
        let asked = params.protocol_version.as_str();
        let version = LEGACY_VERSIONS.into_iter().find(|version| *version == asked).unwrap_or(LEGACY_VERSIONS[0]);
        caller.session().set_client(ClientInfo {
            version: version.to_owned(),
            capabilities: params.capabilities,
            log: None,
        });
        let mut result = json!({
            "protocolVersion": version,
            "capabilities": self.capabilities(),
            "serverInfo": self.info(),
        });
        if let (Some(instructions), Some(result)) = (self.instructions(), result.as_object_mut()) {
            result.insert("instructions".to_owned(), instructions.into());
        }
        Ok(Raw::of(&result))
    }

    fn discover(&self) -> Raw {
        let mut result = json!({
            "supportedVersions": modern::versions(),
            "capabilities": self.capabilities(),
            "_meta": {"io.modelcontextprotocol/serverInfo": self.info()},
        });
        if let (Some(instructions), Some(result)) = (self.instructions(), result.as_object_mut()) {
            result.insert("instructions".to_owned(), instructions.into());
        }
        Raw::of(&result)
    }

    fn info(&self) -> Value {
        let mut info = own_info();
        if let Some(info) = info.as_object_mut() {
            info.insert("name".to_owned(), self.config.name.as_str().into());
        }
        info
    }

    /// What the gateway offers, as it tells its clients.
    pub(super) fn capabilities(&self) -> Value {
        match self.only_upstream().and_then(Upstream::server) {
            Some(server) => Value::Object(server.capabilities),
            None => self.merged_capabilities(),
        }
    }

    fn instructions(&self) -> Option<String> {
        match self.config.mode {
            Mode::Gateway => Some(
                "Find tools with tool_browse, call them with tool_execute, and look into large results with tool_view."
                    .to_owned(),
            ),
            Mode::Proxy => {
                Some("Tools are listed without their schemas: tool_hydrate gives one, tool_execute calls.".to_owned())
            }
            Mode::Passthrough => self.only_upstream()?.server()?.instructions,
        }
    }

    async fn tool_call(&self, caller: &Caller, params: Option<&Raw>) -> Outcome {
        if let Some(upstream) = self.only_upstream() {
            if !upstream.takes_all() {
                let call: CallParams<'_> = read(params)?;
                if !upstream.takes(&call.name) {
                    return Err(RpcError::new(INVALID_PARAMS, format!("unknown tool: {}", call.name)));
                }
            }
            return self.passed_by(upstream, caller, "tools/call", params).await;
        }
        let params: CallParams<'_> = read(params)?;
        let signature = params.meta.as_ref().and_then(|meta| meta.signature).map(Raw::of);
        match self.guards.verify(&params.name, params.arguments, signature.as_ref()).await {
            Ok(None) => self.checked_call(caller, &params).await,
            Ok(Some(call)) => {
                let answer = self.checked_call(caller, &params).await?;
                // What is signed is what goes out.
                let answer = if caller.is_modern() { modern::completed("tools/call", answer) } else { answer };
                Ok(self.guards.signed(&call, answer))
            }
            Err(error) => {
                self.signature_refused(caller.session(), Signed::Call, &error);
                Ok(error.of_call().to_result())
            }
        }
    }

    /// A call whose signature, if it has one, is right.
    async fn checked_call(&self, caller: &Caller, params: &CallParams<'_>) -> Outcome {
        let along = params.along();
        let snapshot = self.snapshot_for(caller);
        let (resources, prompts) = (snapshot.resources.is_some(), snapshot.prompts.is_some());
        let offered = MetaTool::offered(self.config.mode, resources, prompts);
        let Some(tool) = MetaTool::named(&params.name).filter(|tool| offered.contains(tool)) else {
            return self.published_call(caller, &snapshot, params, &along).await;
        };
        let started = Instant::now();
        let result = self.meta_call(caller, &snapshot, tool, params.arguments, &along).await;
        self.observe(caller.session(), &snapshot, Called::Meta(tool, params.arguments), started, &result, &along.trace);
        if tool == MetaTool::Execute {
            self.metrics.called(result.as_ref().err().map(|error| error.code));
        }
        Ok(result.unwrap_or_else(|error| {
            tracing::info!(tool = tool.name(), %error, "failed");
            error.to_result()
        }))
    }

    async fn meta_call(
        &self,
        caller: &Caller,
        snapshot: &Snapshot,
        tool: MetaTool,
        arguments: Option<&RawValue>,
        along: &Along,
    ) -> Result<Raw, GatewayError> {
        // What calls something is admitted when it is known what that is.
        if !matches!(tool, MetaTool::Execute | MetaTool::ResourceRead | MetaTool::PromptGet) {
            self.guards.admit(caller, tool).await?;
        }
        let search = |shelves| {
            let args = args(tool, arguments)?;
            at_length(|| self.browse(caller, snapshot, shelves, &args))
        };
        match tool {
            MetaTool::Browse => search(Shelves::Tools),
            MetaTool::ResourceBrowse => search(Shelves::Resources),
            MetaTool::PromptBrowse => search(Shelves::Prompts),
            MetaTool::Execute => self.execute(caller, snapshot, &args(tool, arguments)?, along).await,
            MetaTool::View => self.view(caller, args(tool, arguments)?).await,
            MetaTool::Hydrate => self.hydrate(caller, snapshot, &args::<HydrateArgs>(tool, arguments)?.tool_id),
            MetaTool::ResourceRead => self.resource_read(caller, snapshot, &args(tool, arguments)?, along).await,
            MetaTool::PromptGet => self.prompt_get(caller, snapshot, &args(tool, arguments)?, along).await,
        }
    }

    /// A call of a tool by the name under which it is listed.
    async fn published_call(
        &self,
        caller: &Caller,
        snapshot: &Snapshot,
        params: &CallParams<'_>,
        along: &Along,
    ) -> Outcome {
        let unknown = || RpcError::new(INVALID_PARAMS, format!("unknown tool: {}", params.name));
        if self.config.mode == Mode::Gateway || snapshot.tool(&params.name).is_none() {
            return Err(unknown());
        }
        let args = ExecuteArgs { tool_id: params.name.clone(), args: params.arguments, dry_run: false };
        let started = Instant::now();
        let result = self.execute(caller, snapshot, &args, along).await;
        self.observe(
            caller.session(),
            snapshot,
            Called::Published(&params.name, params.arguments),
            started,
            &result,
            &along.trace,
        );
        self.metrics.called(result.as_ref().err().map(|error| error.code));
        Ok(result.unwrap_or_else(|error| error.to_result()))
    }

    /// The full definition of a tool.
    fn hydrate(&self, caller: &Caller, snapshot: &Snapshot, id: &str) -> Result<Raw, GatewayError> {
        let target = find(snapshot, id)?;
        self.note_shown(caller, snapshot, &target);
        let item = target.item;
        let definition = item.raw.as_ref().map_or_else(|| item.definition_json(), |raw| raw.get().to_owned());
        Ok(text_result(&self.guards.sanitize().json(&definition), false))
    }
}

/// Passes a request on as it is.
pub(super) async fn pass(
    upstream: &Upstream,
    caller: &Caller,
    questions: Questions,
    method: &str,
    params: Option<&Raw>,
) -> Outcome {
    #[derive(Deserialize, Default)]
    struct Progress<'p> {
        #[serde(rename = "_meta", borrow)]
        meta: Option<Meta<'p>>,
    }
    let token = params.and_then(|params| params.read::<Progress<'_>>().ok()?.meta?.progress_token.map(Raw::of));
    let call = Call { method, params, caller: Some(caller), progress: token.as_ref(), questions };
    upstream.request(call).await.map_err(|fault| match fault {
        super::upstream::Fault::Rpc(error) => error,
        fault => RpcError::new(INTERNAL_ERROR, fault.to_error(upstream.name()).message()),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HydrateArgs {
    tool_id: String,
}

/// The arguments of a meta-tool.
fn args<'a, T: Deserialize<'a>>(tool: MetaTool, arguments: Option<&'a RawValue>) -> Result<T, GatewayError> {
    let text = arguments.map_or("{}", RawValue::get);
    let refused = |reason: String| GatewayError::new(Code::ArgsInvalid, format!("{}: {reason}", tool.name()));
    if !is_object(text.as_bytes()) {
        return Err(refused("the arguments must be an object".to_owned()));
    }
    serde_json::from_str(text).map_err(|error| refused(error.to_string()))
}

fn read<'r, T: Deserialize<'r>>(params: Option<&'r Raw>) -> Result<T, RpcError> {
    match params {
        Some(params) => params.read().map_err(RpcError::invalid_params),
        None => serde_json::from_str("{}").map_err(RpcError::invalid_params),
    }
}
