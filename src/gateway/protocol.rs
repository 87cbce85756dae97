//! What a client may ask, in both eras of the protocol.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::browse::Shelves;
use super::config::Mode;
use super::diagnostics::Called;
use super::error::{Code, GatewayError, text_result};
use super::execute::{ExecuteArgs, find};
use super::hub::Gateway;
use super::modern;
use super::session::{Caller, ClientInfo, LEGACY_VERSIONS, Session};
use super::snapshot::{Snapshot, published_name};
use super::surface::MetaTool;
use super::upstream::{Call, Upstream, own_info};
use super::wire::{INTERNAL_ERROR, INVALID_PARAMS, Outcome, Raw, RpcError};

/// Tools of a page of `tools/list`: some clients refuse messages over 1 MiB.
const PAGE: usize = 1_000;

#[derive(Deserialize)]
struct CallParams<'p> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'p RawValue>,
    #[serde(rename = "_meta", borrow)]
    meta: Option<Meta<'p>>,
}

#[derive(Deserialize)]
struct Meta<'m> {
    #[serde(rename = "progressToken", borrow)]
    progress_token: Option<&'m RawValue>,
}

impl Gateway {
    /// Answers a request.
    ///
    /// # Errors
    /// An error of JSON-RPC, for what is no request of the protocol. Failures of tools are results.
    pub async fn answer(&self, caller: &Caller, method: &str, params: Option<&Raw>) -> Outcome {
        if !caller.is_modern() {
            return self.route(caller, method, params).await;
        }
        modern::check_method(method)?;
        Ok(modern::completed(method, self.route(caller, method, params).await?))
    }

    async fn route(&self, caller: &Caller, method: &str, params: Option<&Raw>) -> Outcome {
        match method {
            "initialize" => self.initialize(caller, params),
            "server/discover" if caller.is_modern() => Ok(self.discover()),
            "server/discover" => Err(modern::meta_required()),
            "ping" => Ok(Raw::of(&json!({}))),
            "tools/list" => self.tool_list(caller, params).await,
            "tools/call" => self.tool_call(caller, params).await,
            "logging/setLevel" => Ok(Raw::of(&json!({}))),
            "resources/subscribe" | "resources/unsubscribe" => match self.only_upstream() {
                Some(upstream) => {
                    let pass = || pass(upstream, caller, method, params);
                    let result = self.subscriptions.pass(caller.session(), method, params, pass).await?;
                    match (method, modern::named(method, params)) {
                        ("resources/subscribe", Some(uri)) => caller.session().watch(&uri),
                        (_, Some(uri)) => caller.session().unwatch(&uri),
                        _ => {}
                    }
                    Ok(result)
                }
                None => Err(RpcError::method_not_found(method)),
            },
            _ => match self.only_upstream() {
                Some(upstream) => pass(upstream, caller, method, params).await,
                None => Err(RpcError::method_not_found(method)),
            },
        }
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
    fn only_upstream(&self) -> Option<&Upstream> {
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
            None => json!({"tools": {"listChanged": true}}),
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

    async fn tool_list(&self, caller: &Caller, params: Option<&Raw>) -> Outcome {
        if let Some(upstream) = self.only_upstream() {
            return pass(upstream, caller, "tools/list", params).await.map(|page| upstream.select_of(page));
        }
        #[derive(Deserialize, Default)]
        struct ListParams {
            cursor: Option<String>,
        }
        let snapshot = self.snapshot();
        let tools = snapshot.tool_list.get_or_init(|| self.listed(&snapshot));
        let tools: Vec<&RawValue> = tools.read().unwrap_or_default();
        let cursor = params.map(Raw::read::<ListParams>).transpose().map_err(RpcError::invalid_params)?;
        let from = match cursor.and_then(|params| params.cursor) {
            None => 0,
            Some(cursor) => cursor
                .parse()
                .ok()
                .filter(|from| *from < tools.len())
                .ok_or_else(|| RpcError::invalid_params(format!("the cursor `{cursor}` is none that was given")))?,
        };
        let end = (from + PAGE).min(tools.len());
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct ListResult<'l> {
            tools: &'l [&'l RawValue],
            #[serde(skip_serializing_if = "Option::is_none")]
            next_cursor: Option<String>,
        }
        let next_cursor = (end < tools.len()).then(|| end.to_string());
        Ok(Raw::of(&ListResult { tools: tools.get(from..end).unwrap_or_default(), next_cursor }))
    }

    /// The definitions that this mode lists.
    fn listed(&self, snapshot: &Snapshot) -> Raw {
        let (resources, prompts) = (snapshot.resources.is_some(), snapshot.prompts.is_some());
        let mut tools: Vec<Value> =
            MetaTool::offered(self.config.mode, resources, prompts).into_iter().map(MetaTool::definition).collect();
        if let (Mode::Proxy | Mode::Passthrough, Some(shelf)) = (self.config.mode, &snapshot.tools) {
            for item in shelf.router.catalog().items() {
                let name = published_name(&item.id);
                tools.push(match (self.config.mode, &item.raw) {
                    (Mode::Passthrough, Some(raw)) => {
                        let mut tool: Value = serde_json::from_str(raw.get()).unwrap_or_default();
                        tool["name"] = name.into();
                        tool
                    }
                    _ => {
                        let at = shelf.router.catalog().position(&item.id).unwrap_or_default();
                        let card = shelf.router.deck().card(at as u32);
                        let description = card.map(|card| card.description().to_owned()).unwrap_or_default();
                        json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
                    }
                });
            }
        }
        Raw::of(&tools)
    }

    async fn tool_call(&self, caller: &Caller, params: Option<&Raw>) -> Outcome {
        if let Some(upstream) = self.only_upstream() {
            if !upstream.takes_all() {
                let call: CallParams<'_> = read(params)?;
                if !upstream.takes(&call.name) {
                    return Err(RpcError::new(INVALID_PARAMS, format!("unknown tool: {}", call.name)));
                }
            }
            return pass(upstream, caller, "tools/call", params).await;
        }
        let params: CallParams<'_> = read(params)?;
        let progress = params.meta.as_ref().and_then(|meta| meta.progress_token).map(Raw::of);
        let snapshot = self.snapshot();
        let (resources, prompts) = (snapshot.resources.is_some(), snapshot.prompts.is_some());
        let offered = MetaTool::offered(self.config.mode, resources, prompts);
        let Some(tool) = MetaTool::named(&params.name).filter(|tool| offered.contains(tool)) else {
            return self.published_call(caller, &snapshot, &params, progress.as_ref()).await;
        };
        let started = Instant::now();
        let result = self.meta_call(caller, &snapshot, tool, params.arguments, progress.as_ref()).await;
        self.observe(caller.session(), &snapshot, Called::Meta(tool, params.arguments), started, &result);
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
        progress: Option<&Raw>,
    ) -> Result<Raw, GatewayError> {
        match tool {
            MetaTool::Browse => self.browse(caller, snapshot, Shelves::Tools, &args(tool, arguments)?),
            MetaTool::ResourceBrowse => self.browse(caller, snapshot, Shelves::Resources, &args(tool, arguments)?),
            MetaTool::PromptBrowse => self.browse(caller, snapshot, Shelves::Prompts, &args(tool, arguments)?),
            MetaTool::Execute => self.execute(caller, snapshot, &args(tool, arguments)?, progress).await,
            MetaTool::View => self.view(&args(tool, arguments)?),
            MetaTool::Hydrate => hydrate(snapshot, &args::<HydrateArgs>(tool, arguments)?.tool_id),
            MetaTool::ResourceRead | MetaTool::PromptGet => Err(GatewayError::new(Code::ArgsInvalid, "not offered")),
        }
    }

    /// A call of a tool by the name under which it is listed.
    async fn published_call(
        &self,
        caller: &Caller,
        snapshot: &Snapshot,
        params: &CallParams<'_>,
        progress: Option<&Raw>,
    ) -> Outcome {
        let unknown = || RpcError::new(INVALID_PARAMS, format!("unknown tool: {}", params.name));
        if self.config.mode == Mode::Gateway || snapshot.tool(&params.name).is_none() {
            return Err(unknown());
        }
        let args = ExecuteArgs { tool_id: params.name.clone(), args: params.arguments, dry_run: false };
        let started = Instant::now();
        let result = self.execute(caller, snapshot, &args, progress).await;
        self.observe(caller.session(), snapshot, Called::Published(&params.name, params.arguments), started, &result);
        self.metrics.called(result.as_ref().err().map(|error| error.code));
        Ok(result.unwrap_or_else(|error| error.to_result()))
    }
}

/// Passes a request on as it is.
async fn pass(upstream: &Upstream, caller: &Caller, method: &str, params: Option<&Raw>) -> Outcome {
    #[derive(Deserialize, Default)]
    struct Progress<'p> {
        #[serde(rename = "_meta", borrow)]
        meta: Option<Meta<'p>>,
    }
    let token = params.and_then(|params| params.read::<Progress<'_>>().ok()?.meta?.progress_token.map(Raw::of));
    let call = Call { method, params, caller: Some(caller), progress: token.as_ref() };
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

fn hydrate(snapshot: &Snapshot, id: &str) -> Result<Raw, GatewayError> {
    let item = find(snapshot, id)?.item;
    let definition = item.raw.as_ref().map_or_else(|| item.definition_json(), |raw| raw.get().to_owned());
    Ok(text_result(&definition, false))
}

/// The arguments of a meta-tool.
fn args<'a, T: Deserialize<'a>>(tool: MetaTool, arguments: Option<&'a RawValue>) -> Result<T, GatewayError> {
    serde_json::from_str(arguments.map_or("{}", RawValue::get))
        .map_err(|error| GatewayError::new(Code::ArgsInvalid, format!("{}: {error}", tool.name())))
}

fn read<'r, T: Deserialize<'r>>(params: Option<&'r Raw>) -> Result<T, RpcError> {
    match params {
        Some(params) => params.read().map_err(RpcError::invalid_params),
        None => serde_json::from_str("{}").map_err(RpcError::invalid_params),
    }
}
