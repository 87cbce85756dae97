//! Requests by method, in both eras of the protocol.

use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::passthrough::Passthrough;
use crate::catalog::serving::Serving;
use crate::catalog::view::CatalogView;
use crate::common::error::{Code, GatewayError};
use crate::common::sync::lock;
use crate::common::work::{LONG_MESSAGE, in_turn_if};
use crate::guard::sign::Signature;
use crate::protocol::client_info::{Capabilities, ClientInfo, LONGEST_INTRODUCTION, LogLevel};
use crate::protocol::message::{INVALID_PARAMS, Outcome, ProgressToken, Raw, RpcError, check_params};
use crate::protocol::stateless;
use crate::protocol::versions::LEGACY_VERSIONS;
use crate::session::client::{Caller, Session};
use crate::session::context::{CallContext, Record};
use crate::session::elicitation::is_question;
use crate::surface::meta_tools::MetaTool;
use crate::surface::mode::Mode;
use crate::telemetry::observer::{Called, Ended, Seen, Signed, Telemetry, ending, is_error};
use crate::telemetry::savings::tokens_of;
use crate::tools::execute::find;
use crate::tools::own_tools::OwnTools;
use crate::upstream::client::own_info;

/// Answers requests by their methods.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    /// What clients are shown.
    pub(super) mode: Mode,
    /// The name that the gateway gives itself.
    pub(super) name: String,
    /// The catalog that is served now.
    pub(super) serving: Arc<Serving>,
    /// What is counted and recorded.
    pub(super) telemetry: Arc<Telemetry>,
    /// The gateway's own tools.
    pub(super) tools: OwnTools,
    /// What passes to upstreams.
    pub(crate) passthrough: Passthrough,
}

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
    fn context(&self, record: Record) -> CallContext {
        CallContext {
            progress: self.meta.as_ref().and_then(|meta| meta.progress_token).map(ProgressToken::raw),
            input_responses: self.input_responses.map(Raw::of),
            request_state: self.request_state.map(Raw::of),
            record,
        }
    }
}

#[derive(Deserialize)]
struct Meta<'m> {
    #[serde(rename = "progressToken", borrow)]
    progress_token: Option<ProgressToken<'m>>,
    #[serde(rename = "contextweaver/signature", borrow)]
    signature: Option<&'m RawValue>,
}

impl Dispatcher {
    /// Answers a request of a client.
    ///
    /// # Errors
    /// An error of JSON-RPC, for what is not a request of the protocol, and for a call before which a person has to do
    /// something. Failures of tools are results.
    pub(super) async fn answer(&self, caller: &Caller, method: &str, params: Option<&Raw>) -> Outcome {
        check_params(params)?;
        if !caller.is_modern() {
            return self.route(caller, method, params).await;
        }
        stateless::check_method(method)?;
        let outcome = self.route(caller, method, params).await;
        outcome.map(|result| stateless::completed(method, result)).map_err(stateless::translated)
    }

    async fn route(&self, caller: &Caller, method: &str, params: Option<&Raw>) -> Outcome {
        let needs_catalog = match method {
            "initialize" | "server/discover" => !self.passthrough.is_introduced_without_catalog(),
            "ping" | "logging/setLevel" => false,
            "tools/list" => !self.passthrough.lists_tools_without_catalog(),
            _ => true,
        };
        if needs_catalog {
            self.serving.opened().await;
        }
        match method {
            "initialize" => self.initialize(caller, params),
            "server/discover" if caller.is_modern() => Ok(self.discover()),
            "server/discover" => Err(stateless::meta_required()),
            "ping" => Ok(Raw::of(&json!({}))),
            "logging/setLevel" => {
                caller.session().set_log_level(level_of(params)?);
                Ok(Raw::of(&json!({})))
            }
            "tools/call" if !self.passthrough.has_only_upstream() => Box::pin(self.tool_call(caller, params)).await,
            _ => self.passthrough.answer(caller, method, params).await,
        }
    }

    /// Takes a notification of a client.
    pub(super) fn take(&self, session: &Session, method: &str, params: Option<&Raw>) {
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
        if method == "notifications/roots/list_changed" {
            self.passthrough.tell_only(method, params);
        }
    }

    fn initialize(&self, caller: &Caller, params: Option<&Raw>) -> Outcome {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InitializeParams {
            protocol_version: String,
            #[serde(default)]
            capabilities: Capabilities,
        }
        if let Some(params) = params.filter(|params| params.bytes().len() > LONGEST_INTRODUCTION) {
            let reason = format!(
                "they have {} bytes; a client introduces itself in {LONGEST_INTRODUCTION}",
                params.bytes().len()
            );
            return Err(RpcError::invalid_params(reason));
        }
        let params: InitializeParams = read(params)?;
        let asked = params.protocol_version.as_str();
        let version = LEGACY_VERSIONS.into_iter().find(|version| *version == asked).unwrap_or(LEGACY_VERSIONS[0]);
        caller.session().set_client(ClientInfo {
            version: version.to_owned(),
            capabilities: params.capabilities,
            log: None,
        });
        Ok(self.introduced(json!({
            "protocolVersion": version,
            "capabilities": self.passthrough.capabilities(),
            "serverInfo": self.info(),
        })))
    }

    fn discover(&self) -> Raw {
        self.introduced(json!({
            "supportedVersions": stateless::versions(),
            "capabilities": self.passthrough.capabilities(),
            "_meta": {"io.modelcontextprotocol/serverInfo": self.info()},
        }))
    }

    /// The result with which the gateway introduces itself, with its instructions if it has any.
    fn introduced(&self, mut result: Value) -> Raw {
        if let (Some(instructions), Some(result)) = (self.instructions(), result.as_object_mut()) {
            result.insert("instructions".to_owned(), instructions.into());
        }
        Raw::of(&result)
    }

    fn info(&self) -> Value {
        let mut info = own_info();
        if let Some(info) = info.as_object_mut() {
            info.insert("name".to_owned(), self.name.as_str().into());
        }
        info
    }

    fn instructions(&self) -> Option<String> {
        match self.mode {
            Mode::Gateway => Some(
                "Find tools with tool_browse (two or three short queries at once), call them with tool_execute, and look \
                 into large results with tool_view."
                    .to_owned(),
            ),
            Mode::Proxy => {
                Some("Tools are listed without their schemas: tool_hydrate gives one, tool_execute calls.".to_owned())
            }
            Mode::Passthrough => self.passthrough.instructions(),
        }
    }

    /// Answers `tools/call`, after the signature of the call is checked.
    async fn tool_call(&self, caller: &Caller, params: Option<&Raw>) -> Outcome {
        let is_long = params.is_some_and(|params| params.bytes().len() > LONG_MESSAGE);
        let read = in_turn_if(is_long, || read::<CallParams<'_>>(params)).await;
        let params = read.map_err(|exhausted| {
            GatewayError::exhausted(Code::RateLimited, "reading the call", exhausted).to_rpc()
        })??;
        let signature = params.meta.as_ref().and_then(|meta| meta.signature);
        let signatures = self.tools.calls.guards.signatures();
        match signatures.verify_call(&params.name, params.arguments, signature).await {
            Ok(None) => self.checked_call(caller, &params).await,
            Ok(Some(call)) => {
                let answer = self.checked_call(caller, &params).await?;
                self.signed(caller, &call, answer).await
            }
            Err(error) => {
                self.telemetry.signature_refused(caller.session(), Signed::Call, &error);
                let (refusal, record) = (error.of_call(), self.telemetry.new_record());
                record.note(|account| account.guard = Some("signature"));
                if let Some(audited) = self.telemetry.audited(caller, &record) {
                    // It is refused either way.
                    let _ = audited.end(refusal.code.word(), true).await;
                }
                Ok(refusal.to_result())
            }
        }
    }

    /// The answer to a call with this signature. Without one it would be taken for one that somebody has changed: what is
    /// too large for that is left out.
    async fn signed(&self, caller: &Caller, call: &Signature, answer: Raw) -> Outcome {
        let too_large = || {
            let reason = "the answer has more values than are signed, and is left out; the call was made";
            GatewayError::new(Code::UpstreamError, reason).to_result()
        };
        let sign = async |answer| {
            // What is signed is what goes out.
            let answer = if caller.is_modern() { stateless::completed("tools/call", answer) } else { answer };
            self.tools.calls.guards.signatures().sign_answer(call, answer).await.map_err(|exhausted| {
                let what = "the call was made; signing its answer";
                GatewayError::exhausted(Code::UpstreamError, what, exhausted).to_rpc()
            })
        };
        match sign(answer).await? {
            Some(signed) => Ok(signed),
            None => Ok(sign(too_large()).await?.unwrap_or_else(too_large)),
        }
    }

    /// A call whose signature, if it has one, is right.
    async fn checked_call(&self, caller: &Caller, params: &CallParams<'_>) -> Outcome {
        let context = params.context(self.telemetry.new_record());
        let (started, record) = (Instant::now(), context.record.clone());
        let audited = self.telemetry.audited(caller, &record);
        let view = self.serving.view_for(caller);
        let own = MetaTool::named(&params.name)
            .filter(|tool| tool.is_served(self.mode, view.resources.is_some(), view.prompts.is_some()));
        record.note(|account| account.operation = Some(own.map_or("tools/call", MetaTool::name)));
        let (called, counts, result) = match own {
            Some(tool) => {
                let result = self.tools.call(caller, &view, tool, params.arguments, context).await;
                (Called::Meta(tool, params.arguments), tool == MetaTool::Execute, result)
            }
            None if self.mode == Mode::Gateway || view.tool(&params.name).is_none() => {
                if let Some(audited) = audited {
                    // It is refused either way.
                    let _ = audited.end(Code::HydrateFailed.word(), true).await;
                }
                return Err(RpcError::new(INVALID_PARAMS, format!("unknown tool: {}", params.name)));
            }
            None => {
                let result = self.tools.call_published(caller, &view, &params.name, params.arguments, context).await;
                (Called::Published(&params.name, params.arguments), true, result)
            }
        };
        let result = match audited {
            Some(audited) => audited.end(ending(&result), result.is_err()).await.and(result),
            None => result,
        };
        let counted = || record.answer_tokens().unwrap_or_else(|| tokens_of(&result));
        let tokens = (self.mode == Mode::Gateway).then(counted);
        if let Some(tokens) = tokens {
            self.telemetry.metrics.spent(record.result_tokens(), tokens);
        }
        let ended = Ended { called, started, result: &result, record: &record, tokens };
        self.ended(caller, &view, &ended, counts);
        result.or_else(|error| {
            tracing::info!(tool = params.name, %error, "failed");
            error.to_outcome()
        })
    }

    /// Learns from a tool that was found by a search and then answered well.
    fn learn(&self, caller: &Caller, view: &CatalogView, ended: &Ended<'_>) {
        let was_made = ended.record.attempts() > 0 || ended.record.was_cached();
        let Ok(result) = ended.result else { return };
        if !self.serving.learns() || !was_made || is_error(result) || is_question(result) {
            return;
        }
        if let Some(item) =
            ended.called.tool().and_then(|name| find(view, self.mode, &name).ok()).map(|target| target.item)
        {
            let queries = lock(&caller.session().searches).led_to(&item.id);
            self.serving.observe_success(queries, item.id.clone());
        }
    }

    /// Records a call that has ended; one that calls a tool counts as such.
    fn ended(&self, caller: &Caller, view: &CatalogView, ended: &Ended<'_>, counts: bool) {
        let find = |name: &str| find(view, self.mode, name).ok().map(|target| target.item);
        self.telemetry.call_ended(caller.session(), ended, find);
        self.telemetry.saw(
            caller.session(),
            ended.record,
            &Seen {
                started: ended.started,
                code: ending(ended.result),
                remedy: ended.result.as_ref().err().map(|error| error.code.remedy()),
                refused: ended.result.is_err(),
                tokens: ended.tokens,
                bytes: ended.result.as_ref().map_or(0, |result| result.bytes().len()),
            },
        );
        if counts {
            self.learn(caller, view, ended);
            self.telemetry.metrics.called(ended.result.as_ref().err().map(|error: &GatewayError| error.code));
        }
    }
}

fn read<'r, T: Deserialize<'r>>(params: Option<&'r Raw>) -> Result<T, RpcError> {
    match params {
        Some(params) => params.read().map_err(RpcError::invalid_params),
        None => serde_json::from_str("{}").map_err(RpcError::invalid_params),
    }
}

/// The level of log messages that a client sets.
fn level_of(params: Option<&Raw>) -> Result<LogLevel, RpcError> {
    #[derive(Deserialize)]
    struct Wanted {
        level: LogLevel,
    }
    let read = params.and_then(|params| params.read::<Wanted>().ok());
    let levels = "debug, info, notice, warning, error, critical, alert, emergency";
    read.map(|Wanted { level }| level)
        .ok_or_else(|| RpcError::invalid_params(format!("`level` must be one of {levels}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_the_protocol() {
        let cases = [
            (json!({"level": "debug"}), true),
            (json!({"level": "emergency"}), true),
            (json!({"level": "loud"}), false),
            (json!({"level": 3}), false),
            (json!({}), false),
        ];
        assert!(LogLevel::Debug < LogLevel::Emergency);
        for (params, is_level) in cases {
            assert_eq!(level_of(Some(&Raw::of(&params))).is_ok(), is_level, "{params}");
        }
        assert_eq!(level_of(None).unwrap_err().code, INVALID_PARAMS);
    }
}
