//! The requests that an upstream has not answered, and what it says meanwhile.
//!
//! Every request gets an id of the gateway's own, so that clients with equal ids do not meet; the id is also the
//! progress token. What an upstream asks while it serves a single client's requests is put to that client; when it
//! serves several, nobody can tell whom it means, and it is refused.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::{Call, Event, Fault};
use crate::gateway::session::{Caller, lock};
use crate::gateway::wire::{self, Members, Message, Outcome, Raw, RpcError};

/// One side of a connection to an upstream.
#[derive(Debug)]
pub(super) struct Peer {
    upstream: Arc<str>,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// Messages for the upstream.
    pub(super) outgoing: mpsc::Sender<Bytes>,
    events: mpsc::UnboundedSender<(Arc<str>, Event)>,
}

#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Result<Outcome, Fault>>,
    caller: Option<Caller>,
    /// The caller's own token, if it wants to hear of progress.
    progress: Option<Raw>,
}

/// A request in the table; taken back when it is dropped before its answer.
#[derive(Debug)]
pub(super) struct Ticket<'p> {
    peer: &'p Peer,
    pub(super) id: u64,
    answer: oneshot::Receiver<Result<Outcome, Fault>>,
    answered: bool,
    /// Whether the upstream is told that the answer is not wanted any more.
    revocable: bool,
}

impl Peer {
    pub(super) fn new(
        upstream: Arc<str>,
        outgoing: mpsc::Sender<Bytes>,
        events: mpsc::UnboundedSender<(Arc<str>, Event)>,
    ) -> Arc<Self> {
        Arc::new(Self { upstream, next: AtomicU64::new(1), waiting: Mutex::default(), outgoing, events })
    }

    /// Enters a request, of which the text is returned with it.
    pub(super) fn enter(&self, call: &Call<'_>, meta: Option<&Value>) -> (Ticket<'_>, Bytes) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        let waiting = Waiting { answer: sender, caller: call.caller.cloned(), progress: call.progress.cloned() };
        lock(&self.waiting).insert(id, waiting);
        let dressed;
        let params = if meta.is_some() || call.progress.is_some() {
            dressed = dress(call.params, call.progress.is_some().then_some(id), meta);
            Some(&dressed)
        } else {
            call.params
        };
        let text = wire::request(&Raw::of(&id), call.method, params);
        (Ticket { peer: self, id, answer, answered: false, revocable: call.method != "initialize" }, text)
    }

    /// Takes in a message of the upstream.
    pub(super) fn receive(self: &Arc<Self>, message: Message) {
        match message {
            Message::Response { id, outcome } => self.settle(&id, Ok(outcome)),
            Message::Notification { method, params } => self.notified(&method, params),
            Message::Request { id, method, params } => {
                let peer = Arc::clone(self);
                tokio::spawn(async move {
                    let outcome = peer.asked(&method, params.as_ref()).await;
                    let _ = peer.outgoing.send(wire::response(Some(&id), &outcome)).await;
                });
            }
        }
    }

    /// Gives a request its answer; an answer that nobody waits for is dropped.
    pub(super) fn settle(&self, id: &Raw, answer: Result<Outcome, Fault>) {
        // Some servers return the id as text.
        let number = id.read::<u64>().ok().or_else(|| id.read::<String>().ok()?.parse().ok());
        let waiting = number.and_then(|number| lock(&self.waiting).remove(&number));
        match waiting {
            Some(waiting) => {
                let _ = waiting.answer.send(answer);
            }
            None => tracing::debug!(upstream = %self.upstream, ?id, "an answer that nobody waits for"),
        }
    }

    /// Fails every request that waits: the connection is gone.
    pub(super) fn close(&self, reason: &str) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        for waiting in waiting.into_values() {
            let _ = waiting.answer.send(Err(Fault::Unavailable(reason.to_owned())));
        }
    }

    /// The answer to `id` is over the limit.
    pub(super) fn too_long(&self, id: Option<u64>, length: usize, limit: usize) {
        let fault = Fault::Malformed(format!("it has {length} bytes, over the limit of {limit}"));
        tracing::warn!(upstream = %self.upstream, length, limit, "a message over the limit was passed over");
        if let Some(id) = id {
            self.settle(&Raw::of(&id), Err(fault));
        }
    }

    fn notified(&self, method: &str, params: Option<Raw>) {
        let event = match method {
            "notifications/progress" => return self.progressed(params.as_ref()),
            "notifications/message" => {
                let callers = self.callers();
                callers.iter().for_each(|caller| caller.notify(method, params.as_ref()));
                return;
            }
            "notifications/tools/list_changed" => Event::ToolsChanged,
            "notifications/resources/list_changed" => Event::ResourcesChanged,
            "notifications/prompts/list_changed" => Event::PromptsChanged,
            "notifications/resources/updated" => Event::ResourceUpdated(params),
            _ => return,
        };
        let _ = self.events.send((Arc::clone(&self.upstream), event));
    }

    /// Passes progress on under the caller's own token.
    fn progressed(&self, params: Option<&Raw>) {
        let Some(mut members) = params.and_then(|params| params.read::<Members<'_>>().ok()) else { return };
        let token = members.get("progressToken").and_then(|token| serde_json::from_str::<u64>(token.get()).ok());
        let target = token.and_then(|token| {
            let waiting = lock(&self.waiting);
            let waiting = waiting.get(&token)?;
            Some((waiting.caller.clone()?, waiting.progress.clone()?))
        });
        if let Some((caller, token)) = target {
            members.set("progressToken", &token);
            caller.notify("notifications/progress", Some(&Raw::of(&members)));
        }
    }

    /// The callers whose requests are being served, one of each client.
    fn callers(&self) -> Vec<Caller> {
        let mut callers: Vec<(u64, Caller)> = {
            let waiting = lock(&self.waiting);
            waiting.iter().filter_map(|(id, waiting)| Some((*id, waiting.caller.clone()?))).collect()
        };
        callers.sort_unstable_by_key(|(id, _)| *id);
        let mut single: Vec<Caller> = Vec::new();
        for (_, caller) in callers {
            if !single.iter().any(|other| Arc::ptr_eq(other.session(), caller.session())) {
                single.push(caller);
            }
        }
        single
    }

    async fn asked(&self, method: &str, params: Option<&Raw>) -> Outcome {
        if method == "ping" {
            return Ok(Raw::of(&json!({})));
        }
        let callers = self.callers();
        let capability = match method {
            "sampling/createMessage" => "sampling",
            "elicitation/create" => "elicitation",
            "roots/list" => "roots",
            _ => return Err(RpcError::method_not_found(method)),
        };
        match callers.as_slice() {
            [caller] if caller.client().can(capability) => caller.ask(method, params).await,
            _ => Err(RpcError::method_not_found(method)),
        }
    }
}

impl Ticket<'_> {
    /// The answer.
    pub(super) async fn answer(mut self) -> Result<Raw, Fault> {
        let answer = (&mut self.answer).await;
        self.answered = true;
        match answer {
            Ok(Ok(outcome)) => outcome.map_err(Fault::Rpc),
            Ok(Err(fault)) => Err(fault),
            Err(_) => Err(Fault::Unavailable("the connection is closed".to_owned())),
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if lock(&self.peer.waiting).remove(&self.id).is_some() && !self.answered && self.revocable {
            let params = Raw::of(&json!({"requestId": self.id, "reason": "the answer is not wanted any more"}));
            let _ = self.peer.outgoing.try_send(wire::notification("notifications/cancelled", Some(&params)));
        }
    }
}

/// Parameters with what the gateway has to say in their `_meta`.
fn dress(params: Option<&Raw>, progress: Option<u64>, meta: Option<&Value>) -> Raw {
    let mut members: Members<'_> = params.and_then(|params| params.read().ok()).unwrap_or_default();
    let mut own: serde_json::Map<String, Value> =
        members.get("_meta").and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or_default();
    if let Some(token) = progress {
        own.insert("progressToken".to_owned(), token.into());
    }
    if let Some(Value::Object(meta)) = meta {
        own.extend(meta.clone());
    }
    members.set("_meta", &Raw::of(&own));
    Raw::of(&members)
}
