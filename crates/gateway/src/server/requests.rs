//! What every transport does with a request: count it, heed its cancellation, answer it.

use std::sync::Arc;

use super::gateway::Gateway;
use super::live::Live;
use crate::protocol::message::{INTERNAL_ERROR, INVALID_REQUEST, Outcome, Raw, RpcError};
use crate::protocol::subscription::{Filter, Subscription, ended};
use crate::session::client::{Caller, Running, Session};
use crate::telemetry::metrics::Ending;
use crate::telemetry::observer::is_error;

/// A request of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) id: &'a Raw,
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a Raw>,
}

/// What comes of a request, which the session has begun unless it serves one with this id already; `None` when the
/// client took it back. A stream of changes ends when `closing` does.
///
/// A request ends at the gateway where it began. A stream of changes may outlast many, and goes on with each.
pub(crate) async fn serve_request(
    live: &Live,
    caller: &Caller,
    (asked, running): (&Asked<'_>, Option<Running>),
    closing: impl Future<Output = ()>,
) -> Option<Outcome> {
    let gateway = live.now();
    let telemetry = Arc::clone(gateway.telemetry());
    let mut timer = telemetry.metrics.begin(asked.method);
    let Some(running) = running else {
        timer.end(Ending::Error);
        let reason = "a request with this id is being served; give each its own";
        return Some(Err(RpcError::new(INVALID_REQUEST, reason)));
    };
    let target = telemetry.target(asked.method, asked.params);
    let mut span = telemetry.request_span(caller, (asked.id, asked.method, asked.params), target.as_deref());
    let inside = span.as_ref().map(|span| caller.clone().within(Some(span.context().clone())));
    let caller = inside.as_ref().unwrap_or(caller);
    let answer = async {
        match asked.method {
            "subscriptions/listen" if caller.is_modern() => {
                Box::pin(listen(live, gateway, (caller, asked), closing)).await
            }
            _ => within_deadline(&gateway, caller, asked).await,
        }
    };
    let outcome = tokio::select! {
        biased;
        // A request that was taken back gets no answer.
        () = running.cancelled() => {
            span.iter_mut().for_each(|span| span.fail("cancelled"));
            return None;
        }
        outcome = answer => outcome,
    };
    if let ("tools/call", Some(tool), Ok(result)) = (asked.method, &target, &outcome)
        // A name that a client has made up fails, in whatever way.
        && !is_error(result)
    {
        timer.calls(tool);
    }
    match (&mut span, &outcome) {
        (Some(span), Err(error)) => {
            span.set("rpc.response.status_code", &error.code.to_string());
            span.fail(error.code.to_string());
        }
        (Some(span), Ok(result)) if asked.method == "tools/call" && is_error(result) => span.fail("tool_error"),
        _ => {}
    }
    timer.end(if outcome.is_ok() { Ending::Ok } else { Ending::Error });
    Some(outcome)
}

/// The answer of the gateway, or that it took too long.
async fn within_deadline(gateway: &Gateway, caller: &Caller, asked: &Asked<'_>) -> Outcome {
    let deadline = gateway.config().deadline;
    let answer = tokio::time::timeout(deadline, gateway.answer(caller, asked.method, asked.params));
    answer.await.unwrap_or_else(|_| {
        let reason = format!("took longer than {} s, the `deadline_seconds` of a request", deadline.as_secs_f64());
        Err(RpcError::new(INTERNAL_ERROR, reason))
    })
}

/// A subscription that lasts until this is dropped, also because its client is gone.
struct Listening<'l> {
    live: &'l Live,
    session: &'l Arc<Session>,
    id: &'l Raw,
    uris: Vec<String>,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.session.unsubscribe(self.id);
        self.uris.retain(|uri| !self.session.listens_to(uri));
        self.live.now().dispatcher().passthrough.unwatch(self.session, &self.uris);
    }
}

/// Serves a stream of changes until `closing` ends. The gateway where it begins is let go once it watches: another may
/// take its place, and none is kept for a stream.
async fn listen(
    live: &Live,
    gateway: Arc<Gateway>,
    (caller, asked): (&Caller, &Asked<'_>),
    closing: impl Future<Output = ()>,
) -> Outcome {
    gateway.opened().await;
    let passthrough = &gateway.dispatcher().passthrough;
    let filter = Filter::read(asked.params)?.supported_by(&passthrough.capabilities());
    let filter = filter.permitted(|uri| passthrough.may_hear_of(caller, uri));
    let uris = filter.resources().to_vec();
    let subscription = Subscription::new(asked.id.clone(), filter, caller.out().clone());
    subscription.acknowledge();
    let session = caller.session();
    session.subscribe(subscription);
    gateway.enter(session);
    let listening = Listening { live, session, id: asked.id, uris };
    let uris = listening.uris.as_slice();
    let watching = async move {
        gateway.watch(caller, uris).await;
        drop(gateway);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = watching => {}
        () = closing => {}
    }
    Ok(ended(asked.id))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::mpsc;

    use super::*;
    use crate::{ClientInfo, GatewayConfig, MODERN_VERSION, StartConfig};

    #[tokio::test]
    async fn a_request_is_small() {
        let startup = StartConfig { fail_on_empty_catalog: false, ..StartConfig::default() };
        let gateway = Gateway::start(GatewayConfig { startup, ..GatewayConfig::default() }).await.unwrap();
        let caller = Caller::new(Session::new("s"), ClientInfo::default(), mpsc::channel(16).0);
        let id = Raw::of(&1);
        let asked = Asked { id: &id, method: "ping", params: None };
        // It is copied into the memory of a task for every request: what few requests await, or is large, is in boxes.
        let (live, running) = (Live::from(gateway), caller.session().begin(&id));
        let size = size_of_val(&serve_request(&live, &caller, (&asked, running), std::future::pending()));
        assert!((1..4_000).contains(&size), "{size} bytes");
    }

    #[tokio::test]
    async fn a_stream_of_changes_keeps_no_gateway_that_another_has_replaced() {
        let startup = StartConfig { fail_on_empty_catalog: false, ..StartConfig::default() };
        let config = GatewayConfig { startup, ..GatewayConfig::default() };
        let live = Live::from(Gateway::start(config.clone()).await.unwrap());
        let first = Arc::downgrade(&live.now());
        let client = ClientInfo { version: MODERN_VERSION.to_owned(), ..ClientInfo::default() };
        let (out, mut messages) = mpsc::channel(16);
        let caller = Caller::new(Session::new("s"), client, out);
        let (id, params) = (Raw::of(&1), Raw::of(&json!({"notifications": {"toolsListChanged": true}})));
        let listening = Asked { id: &id, method: "subscriptions/listen", params: Some(&params) };
        let running = caller.session().begin(&id);
        let stream = serve_request(&live, &caller, (&listening, running), std::future::pending());
        let replaced = async {
            messages.recv().await.expect("it is acknowledged");
            live.replace(config).await.unwrap();
            messages.recv().await.expect("the next tells of changes too");
            while first.strong_count() > 0 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            ended = stream => panic!("{ended:?}"),
            () = replaced => {}
        }
    }

    #[tokio::test]
    async fn of_two_requests_with_one_id_the_second_is_refused_and_the_first_can_be_taken_back() {
        let startup = StartConfig { fail_on_empty_catalog: false, ..StartConfig::default() };
        let gateway = Gateway::start(GatewayConfig { startup, ..GatewayConfig::default() }).await.unwrap();
        let client = ClientInfo { version: MODERN_VERSION.to_owned(), ..ClientInfo::default() };
        let caller = Caller::new(Session::new("s"), client, mpsc::channel(16).0);
        let (id, params) = (Raw::of(&1), Raw::of(&json!({"notifications": {"toolsListChanged": true}})));
        let listening = Asked { id: &id, method: "subscriptions/listen", params: Some(&params) };
        let (live, begin) = (Live::from(gateway), || caller.session().begin(&id));
        let first = serve_request(&live, &caller, (&listening, begin()), std::future::pending());
        let then = async {
            let again = serve_request(&live, &caller, (&listening, begin()), std::future::pending()).await;
            caller.session().cancel(&id);
            again
        };
        let (first, again) = tokio::join!(biased; first, then);
        assert!(first.is_none(), "{first:?}");
        assert_eq!(again.unwrap().unwrap_err().code, INVALID_REQUEST);
        assert!(caller.session().begin(&id).is_some(), "the id is free again");
    }
}
