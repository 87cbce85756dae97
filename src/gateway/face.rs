//! What both faces do with a request: count it, heed its cancellation, answer it.

use std::sync::Arc;

use super::hub::Gateway;
use super::metrics::Ending;
use super::session::{Caller, Session};
use super::subscribe::{Filter, Subscription, ended};
use super::wire::{Outcome, Raw};

/// A request of a client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) id: &'a Raw,
    pub(super) method: &'a str,
    pub(super) params: Option<&'a Raw>,
}

/// What comes of a request; `None` when the client took it back. A stream of changes ends when `closing` does.
pub(super) async fn serve_request(
    gateway: &Gateway,
    caller: &Caller,
    asked: &Asked<'_>,
    closing: impl Future<Output = ()>,
) -> Option<Outcome> {
    let running = caller.session().begin(asked.id);
    let timer = gateway.metrics.begin(asked.method);
    let answer = async {
        match asked.method {
            "subscriptions/listen" if caller.is_modern() => listen(gateway, caller, asked, closing).await,
            _ => gateway.answer(caller, asked.method, asked.params).await,
        }
    };
    let outcome = tokio::select! {
        outcome = answer => outcome,
        // A request that was taken back gets no answer.
        () = running.cancelled() => return None,
    };
    timer.end(if outcome.is_ok() { Ending::Ok } else { Ending::Error });
    Some(outcome)
}

/// Serves a stream of changes until `closing` ends.
async fn listen(gateway: &Gateway, caller: &Caller, asked: &Asked<'_>, closing: impl Future<Output = ()>) -> Outcome {
    /// Ends the subscription also when its client is gone.
    struct Listening<'l>(&'l Arc<Session>, &'l Raw);
    impl Drop for Listening<'_> {
        fn drop(&mut self) {
            self.0.unsubscribe(self.1);
        }
    }
    let filter = Filter::read(asked.params)?.supported_by(&gateway.capabilities());
    let filter = filter.permitted(|uri| gateway.may_hear_of(caller, uri));
    let subscription = Subscription::new(asked.id.clone(), filter, caller.out().clone());
    subscription.acknowledge();
    let session = caller.session();
    session.subscribe(subscription);
    gateway.enter(session);
    let _listening = Listening(session, asked.id);
    closing.await;
    Ok(ended(asked.id))
}
