//! The requests that an upstream has not answered, and what it says meanwhile.
//!
//! Every request gets an id of the gateway's own, so that clients with equal ids do not meet; the id is also the
//! progress token. What an upstream asks while it serves a single client's requests is put to that client; when it
//! serves several, nobody can tell whom it means, and it is refused.
//!
//! What waits to be sent is bounded by its bytes: an upstream that does not read holds up its own callers until their
//! time is over, and takes no more memory than that.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::Instant;

use super::call::Call;
use super::fault::Fault;
use super::mailbox::{Event, EventSender};
use crate::common::sync::lock;
use crate::common::work::{LONG_MESSAGE, block_in_place_if};
use crate::protocol::message::{self, INTERNAL_ERROR, Members, Message, Outcome, Raw, RpcError, WireError};
use crate::protocol::stateless::CAPABILITIES_KEY;
use crate::session::client::{Caller, Session};
use crate::session::elicitation::{Questions, capability};

/// Messages that wait to be sent to an upstream, at most.
const QUEUE: usize = 1024;

/// Bytes of them, at most. A longer message waits until the others are gone.
const QUEUE_BYTES: u32 = 32 * 1024 * 1024;

/// Questions of an upstream that wait for their clients, at most.
const MOST_QUESTIONS: usize = 64;

/// A message that waits to be sent, and the room that it takes.
#[derive(Debug)]
pub(super) struct Queued {
    text: Bytes,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Queued {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

impl Queued {
    /// The bytes of the message, without a line end.
    pub(super) fn text(&self) -> &Bytes {
        &self.text
    }
}

/// The way to an upstream.
#[derive(Debug)]
struct Outgoing {
    queue: mpsc::Sender<Queued>,
    room: Arc<Semaphore>,
}

impl Outgoing {
    fn room_for(text: &Bytes) -> u32 {
        u32::try_from(text.len()).unwrap_or(QUEUE_BYTES).min(QUEUE_BYTES)
    }

    async fn send(&self, text: Bytes) -> Result<(), Fault> {
        let closed = || Fault::Unavailable("the connection is closed".to_owned());
        let room = Arc::clone(&self.room).acquire_many_owned(Self::room_for(&text)).await.map_err(|_| closed())?;
        self.queue.send(Queued { text, _room: room }).await.map_err(|_| closed())
    }

    /// Sends what may be lost when the upstream does not keep up.
    fn try_send(&self, text: Bytes) {
        if let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(Self::room_for(&text)) {
            let _ = self.queue.try_send(Queued { text, _room: room });
        }
    }
}

/// One side of a connection to an upstream.
#[derive(Debug)]
pub(super) struct Peer {
    upstream: Arc<str>,
    next: AtomicU64,
    table: Mutex<Table>,
    outgoing: Outgoing,
    questions: Arc<Semaphore>,
    /// The clients that are being asked, once for each question.
    asked: watch::Sender<Vec<Arc<Session>>>,
    events: EventSender,
}

/// A client is being asked, until this is dropped.
struct Asking<'a>(&'a Peer, Arc<Session>);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asked.send_modify(|asked| {
            if let Some(at) = asked.iter().position(|session| Arc::ptr_eq(session, &self.1)) {
                asked.swap_remove(at);
            }
        });
    }
}

/// The requests that wait, while the connection is open.
#[derive(Debug)]
enum Table {
    Open(HashMap<u64, Waiting>),
    /// Why it is not.
    Closed(String),
}

#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Result<Outcome, Fault>>,
    caller: Option<Caller>,
    /// The caller's own token, if it wants to hear of progress.
    progress: Option<Raw>,
    questions: Questions,
}

/// A request in the table; taken back when it is dropped before its answer.
#[derive(Debug)]
pub(super) struct Ticket<'p> {
    peer: &'p Peer,
    id: u64,
    answer: oneshot::Receiver<Result<Outcome, Fault>>,
    /// Whether the upstream is told that the answer is not wanted any more.
    revocable: bool,
}

impl Peer {
    /// A connection on which nothing was asked yet, and the messages that it wants to be sent.
    pub(super) fn new(upstream: Arc<str>, events: EventSender) -> (Arc<Self>, mpsc::Receiver<Queued>) {
        let (queue, queued) = mpsc::channel(QUEUE);
        let peer = Self {
            upstream,
            next: AtomicU64::new(1),
            table: Mutex::new(Table::Open(HashMap::new())),
            outgoing: Outgoing { queue, room: Arc::new(Semaphore::new(QUEUE_BYTES as usize)) },
            questions: Arc::new(Semaphore::new(MOST_QUESTIONS)),
            asked: watch::Sender::default(),
            events,
        };
        (Arc::new(peer), queued)
    }

    /// The name of the upstream.
    pub(super) fn upstream(&self) -> &Arc<str> {
        &self.upstream
    }

    /// Queues a message; waits while the queue is full.
    pub(super) async fn send(&self, text: Bytes) -> Result<(), Fault> {
        self.outgoing.send(text).await
    }

    /// Enters a request, of which the text is returned with it.
    ///
    /// # Errors
    /// The connection is closed.
    pub(super) fn enter(&self, call: &Call<'_>, meta: Option<&Value>) -> Result<(Ticket<'_>, Bytes), Fault> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        let (caller, progress) = (call.caller.cloned(), call.progress.cloned());
        let waiting = Waiting { answer: sender, caller, progress, questions: call.questions };
        match &mut *lock(&self.table) {
            Table::Open(table) => table.insert(id, waiting),
            Table::Closed(reason) => return Err(Fault::Unavailable(reason.clone())),
        };
        let dressed;
        let params = if meta.is_some() || call.progress.is_some() {
            dressed = dress(call, call.progress.is_some().then_some(id), meta);
            Some(&dressed)
        } else {
            call.params
        };
        let text = message::request(&Raw::of(&id), call.method, params);
        Ok((Ticket { peer: self, id, answer, revocable: call.method != "initialize" }, text))
    }

    /// Takes a request out of the table.
    fn take(&self, id: u64) -> Option<Waiting> {
        match &mut *lock(&self.table) {
            Table::Open(table) => table.remove(&id),
            Table::Closed(_) => None,
        }
    }

    /// Ends when the upstream has had `time` for a request of `caller`. Its clock stands still while it waits for what
    /// that client answers: a person takes longer than a program.
    pub(super) async fn patience(&self, caller: Option<&Caller>, time: Duration) {
        let Some(caller) = caller else { return tokio::time::sleep(time).await };
        let is_asked = |asked: &Vec<Arc<Session>>| asked.iter().any(|session| Arc::ptr_eq(session, caller.session()));
        let (mut asked, mut left) = (self.asked.subscribe(), time);
        loop {
            let began = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(left) => return,
                Ok(_) = asked.wait_for(is_asked) => {}
            }
            left = left.saturating_sub(began.elapsed());
            // The sender lives as long as this peer.
            let _ = asked.wait_for(|asked| !is_asked(asked)).await;
        }
    }

    /// Takes in a message of the upstream.
    pub(super) fn receive(self: &Arc<Self>, message: Message) {
        match message {
            Message::Response { id, outcome } => self.settle(&id, Ok(outcome)),
            Message::Notification { method, params } => self.notified(&method, params),
            Message::Request { id, method, params } => {
                let Ok(place) = Arc::clone(&self.questions).try_acquire_owned() else {
                    let busy = RpcError::new(INTERNAL_ERROR, format!("{MOST_QUESTIONS} questions wait already"));
                    return self.outgoing.try_send(message::response(Some(&id), &Err(busy)));
                };
                let peer = Arc::clone(self);
                tokio::spawn(async move {
                    let outcome = peer.asked(&method, params.as_ref()).await;
                    let _ = peer.outgoing.send(message::response(Some(&id), &outcome)).await;
                    drop(place);
                });
            }
        }
    }

    /// Gives a request its answer; an answer that nobody waits for is dropped.
    pub(super) fn settle(&self, id: &Raw, answer: Result<Outcome, Fault>) {
        // Some servers return the id as text.
        let number = id.read::<u64>().ok().or_else(|| id.read::<String>().ok()?.parse().ok());
        let waiting = number.and_then(|number| self.take(number));
        match waiting {
            Some(waiting) => {
                let _ = waiting.answer.send(answer);
            }
            None => tracing::debug!(upstream = %self.upstream, ?id, "an answer that nobody waits for"),
        }
    }

    /// Fails every request that waits and all that come: the connection is gone. The first reason stays.
    pub(super) fn close(&self, reason: &str) {
        let mut table = lock(&self.table);
        if let Table::Open(waiting) = &mut *table {
            let waiting = std::mem::take(waiting);
            *table = Table::Closed(reason.to_owned());
            drop(table);
            for waiting in waiting.into_values() {
                let _ = waiting.answer.send(Err(Fault::Unavailable(reason.to_owned())));
            }
        }
    }

    /// The connection broke without the gateway's doing.
    pub(super) fn lost(&self, reason: &str) {
        tracing::warn!(upstream = %self.upstream, reason, "the connection is lost");
        self.close(reason);
        self.events.send(&self.upstream, Event::Lost);
    }

    /// The answer to `id`, as far as that is known, came and is not usable.
    pub(super) fn fail(&self, id: Option<u64>, fault: Fault) {
        tracing::warn!(upstream = %self.upstream, ?id, %fault, "a message was skipped");
        if let Some(id) = id {
            self.settle(&Raw::of(&id), Err(fault));
        }
    }

    fn notified(&self, method: &str, params: Option<Raw>) {
        let event = match method {
            "notifications/progress" => return self.progressed(params.as_ref()),
            "notifications/message" => {
                let callers = self.callers();
                callers.iter().for_each(|(caller, _)| caller.notify(method, params.as_ref()));
                return;
            }
            "notifications/tools/list_changed" => Event::ToolsChanged,
            "notifications/resources/list_changed" => Event::ResourcesChanged,
            "notifications/prompts/list_changed" => Event::PromptsChanged,
            "notifications/resources/updated" => Event::ResourceUpdated(params),
            _ => return,
        };
        self.events.send(&self.upstream, event);
    }

    /// Passes progress on under the caller's own token.
    fn progressed(&self, params: Option<&Raw>) {
        let Some(mut members) = params.and_then(|params| params.read::<Members<'_>>().ok()) else { return };
        let token = members.get("progressToken").and_then(|token| serde_json::from_str::<u64>(token.get()).ok());
        let target = token.and_then(|token| match &*lock(&self.table) {
            Table::Open(table) => {
                let waiting = table.get(&token)?;
                Some((waiting.caller.clone()?, waiting.progress.clone()?))
            }
            Table::Closed(_) => None,
        });
        if let Some((caller, token)) = target {
            members.set("progressToken", &token);
            caller.notify("notifications/progress", Some(&Raw::of(&members)));
        }
    }

    /// The callers whose requests are being served, one of each client, and how questions are put to them.
    fn callers(&self) -> Vec<(Caller, Questions)> {
        let mut callers: Vec<(u64, (Caller, Questions))> = match &*lock(&self.table) {
            Table::Open(table) => {
                let asking = |waiting: &Waiting| Some((waiting.caller.clone()?, waiting.questions));
                table.iter().filter_map(|(id, waiting)| Some((*id, asking(waiting)?))).collect()
            }
            Table::Closed(_) => Vec::new(),
        };
        callers.sort_unstable_by_key(|(id, _)| *id);
        let mut single: Vec<(Caller, Questions)> = Vec::new();
        for (_, (caller, questions)) in callers {
            if !single.iter().any(|(other, _)| Arc::ptr_eq(other.session(), caller.session())) {
                single.push((caller, questions));
            }
        }
        single
    }

    async fn asked(&self, method: &str, params: Option<&Raw>) -> Outcome {
        if method == "ping" {
            return Ok(Raw::of(&json!({})));
        }
        let Some(capability) = capability(method) else { return Err(RpcError::method_not_found(method)) };
        match self.callers().as_slice() {
            [(caller, questions)] if caller.client().can(capability) => {
                let params = questions.present(&self.upstream, method, params).map_err(RpcError::invalid_params)?;
                let session = Arc::clone(caller.session());
                self.asked.send_modify(|asked| asked.push(Arc::clone(&session)));
                let _asking = Asking(self, session);
                caller.ask(method, params.as_ref()).await
            }
            _ => Err(RpcError::method_not_found(method)),
        }
    }
}

impl Ticket<'_> {
    /// Waits for the answer to the request.
    pub(super) async fn answer(&mut self) -> Result<Raw, Fault> {
        read((&mut self.answer).await.ok())
    }

    /// The upstream has refused the request or is out of reach: there is nothing to take back.
    pub(super) fn forget(mut self) {
        self.revocable = false;
    }

    /// The answer, when it is there.
    pub(super) fn answered(&mut self) -> Option<Result<Raw, Fault>> {
        match self.answer.try_recv() {
            Ok(answer) => Some(read(Some(answer))),
            Err(oneshot::error::TryRecvError::Empty) => None,
            Err(oneshot::error::TryRecvError::Closed) => Some(read(None)),
        }
    }
}

fn read(answer: Option<Result<Outcome, Fault>>) -> Result<Raw, Fault> {
    match answer {
        Some(Ok(outcome)) => outcome.map_err(Fault::Rpc),
        Some(Err(fault)) => Err(fault),
        None => Err(Fault::Unavailable("the connection is closed".to_owned())),
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        // What was answered is in the table no more.
        if self.peer.take(self.id).is_some() && self.revocable {
            let params = Raw::of(&json!({"requestId": self.id, "reason": "the answer is not wanted any more"}));
            self.peer.outgoing.try_send(message::notification("notifications/cancelled", Some(&params)));
        }
    }
}

/// Parameters with what the gateway has to say in their `_meta`.
fn dress(call: &Call<'_>, progress: Option<u64>, meta: Option<&Value>) -> Raw {
    let members: Members<'_> = call.params.and_then(|params| params.read().ok()).unwrap_or_default();
    members.with_meta(|own| {
        if let Some(token) = progress {
            own.set("progressToken", &Raw::of(&token));
        }
        let Some(Value::Object(meta)) = meta else { return };
        for (key, value) in meta {
            own.set(key.clone(), &Raw::of(value));
        }
        if let Some(caller) = call.caller {
            own.set(CAPABILITIES_KEY, &askable(caller));
        }
    })
}

/// What an upstream of the stateless protocol may ask a client for: it asks in its result, which a client of the
/// handshake era does not understand.
fn askable(caller: &Caller) -> Raw {
    if caller.is_modern() { caller.client().capabilities.text().clone() } else { Raw::of(&json!({})) }
}

/// The message that a text of an upstream is. While a long one is read, its thread serves no other messages, and another does.
///
/// # Errors
/// It is not a message.
pub(super) fn parsed(text: Bytes) -> Result<Message, WireError> {
    block_in_place_if(text.len() > LONG_MESSAGE, || Message::parse(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::client_info::ClientInfo;
    use crate::protocol::versions::{LEGACY_VERSIONS, MODERN_VERSION};

    #[test]
    fn a_stateless_upstream_hears_what_the_client_can_be_asked() {
        let meta = json!({ CAPABILITIES_KEY: {"roots": {}} });
        let params = Raw::of(&json!({"name": "t", "_meta": {"kept": 1, CAPABILITIES_KEY: {"elicitation": {}}}}));
        let told = |version: Option<&str>| {
            let caller = version.map(|version| {
                let capabilities = [("sampling".to_owned(), json!({}))].into_iter().collect();
                let client = ClientInfo { version: version.to_owned(), capabilities, log: None };
                Caller::new(Session::new("s"), client, mpsc::channel(1).0)
            });
            let call = Call { caller: caller.as_ref(), ..Call::own("tools/call", Some(&params)) };
            let dressed: Value = dress(&call, None, Some(&meta)).read().unwrap();
            assert_eq!((&dressed["name"], &dressed["_meta"]["kept"]), (&json!("t"), &json!(1)));
            dressed["_meta"][CAPABILITIES_KEY].clone()
        };
        assert_eq!(told(None), json!({"roots": {}}));
        assert_eq!(told(Some(MODERN_VERSION)), json!({"sampling": {}}));
        assert_eq!(told(Some(LEGACY_VERSIONS[0])), json!({}));
    }
}
