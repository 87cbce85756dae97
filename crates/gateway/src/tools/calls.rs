//! The one way of a call from the guards to an upstream and back to the model.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::questions::QuestionRules;
use crate::common::error::{Code, GatewayError};
use crate::common::work::{LARGE, in_turn_if};
use crate::guard::call::{Clearance, GuardedCall, Route};
use crate::guard::pipeline::Guards;
use crate::guard::sign::{SIGNATURE, Signature};
use crate::protocol::message::Raw;
use crate::results::content::{Read, contents, messages, tool_result};
use crate::results::firewall::{Origin, ResultFirewall};
use crate::session::elicitation::is_question;
use crate::surface::mode::Mode;
use crate::telemetry::observer::{Signed, Telemetry, is_error};
use crate::upstream::call::Call;
use crate::upstream::client::Upstream;
use crate::upstream::fault::Fault;
use crate::upstream::registry::Upstreams;
use crate::upstream::retry::RetryConfig;
use contextweaver_core::catalog::SelectableItem;

/// The member of `_meta` that says how long the upstream of a call took, in milliseconds.
const DURATION: &str = "contextweaver/duration_ms";

/// What calls need on their way.
#[derive(Debug)]
pub(crate) struct Calls {
    /// What a call has to pass.
    pub(crate) guards: Arc<Guards>,
    /// The upstreams that answer.
    pub(crate) upstreams: Arc<Upstreams>,
    /// What is counted and recorded of it.
    pub(crate) telemetry: Arc<Telemetry>,
    /// What a model is shown of its result.
    pub(crate) firewall: ResultFirewall,
    /// How questions of upstreams are put to clients.
    pub(crate) questions: QuestionRules,
    /// When it is made again.
    pub(crate) retry: RetryConfig,
    /// How results are presented.
    pub(crate) mode: Mode,
    /// Whether results of tools say how long the upstream took.
    pub(crate) durations: bool,
}

/// How an upstream is asked for one kind of call.
struct Method {
    name: &'static str,
    read: Read,
    /// Whether a call that failed for a moment is made again.
    retries: bool,
}

impl Method {
    fn of(route: Route) -> Self {
        match route {
            Route::Resource => Self { name: "resources/read", read: contents, retries: false },
            Route::Prompt => Self { name: "prompts/get", read: messages, retries: false },
            _ => Self { name: "tools/call", read: tool_result, retries: true },
        }
    }
}

impl Calls {
    /// Makes a call that the guards have checked, about what the client named `id`.
    ///
    /// # Errors
    /// A guard refuses it, or the upstream fails.
    pub(crate) async fn make(
        &self,
        mut call: GuardedCall<'_>,
        item: &SelectableItem,
        id: &str,
    ) -> Result<Raw, GatewayError> {
        if let Clearance::Ask(question) = self.guards.clear(&mut call).await? {
            return Ok(question);
        }
        let credentials =
            self.upstreams.of_server(item.server.as_deref()).and_then(|upstream| upstream.credentials_rule());
        self.telemetry.allowed(call.caller, credentials, &call.context.record).await?;
        let method = Method::of(call.route);
        let arguments = call.sent_arguments();
        let exhausted = |what: &str, error| GatewayError::exhausted(Code::UpstreamError, what, error);
        let (result, took) = match &call.cached {
            Some(result) => {
                call.context.record.set_cached();
                (result.clone(), None)
            }
            None => {
                let upstream = self.upstreams.of_item(item.server.as_deref(), id)?;
                let (result, took) = self.exchange(&call, upstream, item, &method, &arguments, id).await?;
                let is_large = result.bytes().len() > LARGE;
                if is_question(&result) {
                    return self.questions.ask_back(&self.guards, &call, upstream.name(), id, &result).await;
                }
                let checked = in_turn_if(is_large, || self.guards.check_result(&call, &result)).await;
                checked.map_err(|error| exhausted("checking its result", error).at(id))??;
                (result, Some(took))
            }
        };
        let answer = match self.mode {
            Mode::Gateway => {
                let sensitivity = self.guards.sensitivity(item);
                let origin = Origin { id, name: &item.name, arguments: &arguments, sensitivity };
                let present = |envelope: &mut _| self.guards.present(&call, envelope);
                let record = &call.context.record;
                let mut span = self.telemetry.work_span(call.caller, "firewall");
                let shaped = self.firewall.shaped(call.caller, origin, method.read, &result, &present, record);
                let answer = Box::pin(shaped).await?;
                if let Some(span) = &mut span {
                    span.set("contextweaver.result.bytes", &result.bytes().len().to_string());
                    span.set("contextweaver.answer.bytes", &answer.bytes().len().to_string());
                }
                answer
            }
            Mode::Proxy | Mode::Passthrough => {
                let presented = self.guards.present_raw(call.route, result.clone()).await;
                presented.map_err(|error| exhausted("cleaning its result", error).at(id))?
            }
        };
        self.guards.keep(&call, &result).await;
        // Behind what is kept: neither the cache nor an artifact has a time in it.
        let Some(took) = took.filter(|_| self.durations && matches!(call.route, Route::Tool)) else {
            return Ok(answer);
        };
        let is_large = answer.bytes().len() > LARGE;
        let timed = in_turn_if(is_large, || with_duration(&answer, took)).await;
        timed.map_err(|error| exhausted("writing its duration", error).at(id))
    }

    /// The answer of the upstream as it came, its signature checked and removed, and how long the attempt took that it
    /// answered.
    async fn exchange(
        &self,
        call: &GuardedCall<'_>,
        upstream: &Upstream,
        item: &SelectableItem,
        method: &Method,
        arguments: &Raw,
        id: &str,
    ) -> Result<(Raw, Duration), GatewayError> {
        let context = &call.context;
        let (signatures, to_sign) = (self.guards.signatures(), self.guards.to_sign(call, upstream.name()).await?);
        let attempt = || async {
            // A signature is accepted once: each attempt has its own.
            let signature = to_sign.as_ref().and_then(|text| signatures.sign_call(upstream.name(), &item.name, text));
            let params = match call.route {
                Route::Resource => arguments.clone(),
                _ => call_params(&item.name, arguments, signature.as_ref()),
            };
            let params = context.params(params);
            let name: &str = match call.route {
                Route::Resource => id,
                _ => &item.name,
            };
            let named = (upstream.name(), upstream.transport());
            let mut span = self.telemetry.upstream_span(call.caller, named, method.name, name);
            let params = span.as_ref().map_or(params.clone(), |span| span.context().set_in(Some(&params)));
            let request = Call {
                method: method.name,
                params: Some(&params),
                caller: Some(call.caller),
                progress: context.progress.as_ref(),
                questions: self.questions.presented(),
            };
            let asked = Instant::now();
            let answer = upstream.request(request).await;
            let took = asked.elapsed();
            let failure = answer.as_ref().err().map(Fault::code);
            self.telemetry.metrics.asked(upstream.name(), method.name, failure, took);
            match (&mut span, &answer) {
                (Some(span), Err(fault)) => span.fail(fault.to_error(upstream.name()).code.word()),
                (Some(span), Ok(result)) if is_error(result) => span.fail("tool_error"),
                _ => {}
            }
            answer.map(|answer| (signature, answer, took))
        };
        let answer = if method.retries {
            let tried = self.retry.run(attempt).await;
            context.record.set_attempts(tried.attempts);
            if tried.attempts > 1 {
                tracing::info!(upstream = upstream.name(), attempts = tried.attempts, "the call was made again");
            }
            tried.answer
        } else {
            attempt().await
        };
        let (signature, answer, took) = answer.map_err(|fault| {
            let required = match &fault {
                Fault::Rpc(error) => self.questions.required_by(call.caller, upstream.name(), error),
                _ => None,
            };
            upstream.shown(fault).to_error(upstream.name()).at(id).requiring(required)
        })?;
        let verified = signatures.verify_answer(signature.as_ref(), &answer).await.map_err(|error| {
            self.telemetry.signature_refused(call.caller.session(), Signed::Answer, &error);
            error.of_answer(&answer).at(id)
        });
        Ok((verified?, took))
    }
}

/// A result that says how long its upstream took; what else is in its `_meta` stays.
fn with_duration(answer: &Raw, took: Duration) -> Raw {
    answer.with_meta(|meta| meta.set(DURATION, &Raw::of(&((took.as_secs_f64() * 1e6).round() / 1e3))))
}

/// The parameters of `tools/call` and `prompts/get`.
fn call_params(name: &str, arguments: &Raw, signature: Option<&Signature>) -> Raw {
    #[derive(Serialize)]
    struct Params<'p> {
        name: &'p str,
        arguments: &'p RawValue,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<Value>,
    }
    let meta = signature.map(|signature| json!({ SIGNATURE: signature }));
    Raw::of(&Params { name, arguments: &arguments.to_raw_value(), meta })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_joins_what_is_said_of_a_result() {
        let took = Duration::from_nanos(1_234_567);
        for (answer, expected) in [
            (r#"{"content":[]}"#, r#"{"content":[],"_meta":{"contextweaver/duration_ms":1.235}}"#),
            (
                r#"{"_meta":{"k":123456789012345678901234567890,"contextweaver/duration_ms":7},"content":[]}"#,
                r#"{"_meta":{"k":123456789012345678901234567890,"contextweaver/duration_ms":1.235},"content":[]}"#,
            ),
            (r#"{"content":[],"_meta":null}"#, r#"{"content":[],"_meta":{"contextweaver/duration_ms":1.235}}"#),
            ("[]", "[]"),
        ] {
            let timed = with_duration(&Raw::of_text(answer.to_owned()), took);
            assert_eq!(std::str::from_utf8(timed.bytes()).unwrap(), expected);
        }
    }
}
