//! The requests that an upstream has not answered, and what it says meanwhile.
//!
//! Every request gets an id of the gateway's own, so that clients with equal ids do not meet; the id is also the
//! progress token. What comes on the response to a request over HTTP belongs to that request. What an upstream asks
//! otherwise is put to the client whose requests it serves, where that is a single one; when it serves several, nobody
//! can tell whom it means, and it is refused. It may still serve what its caller waits for no longer, until it answers
//! that; as it need not answer what was cancelled, that is taken for over after a while.
//!
//! What waits to be sent is bounded by its bytes: an upstream that does not read holds up its own callers until their
//! time is over, and takes no more memory than that.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::Instant;

use super::call::Call;
use super::fault::Fault;
use super::mailbox::{Event, EventSender};
use crate::common::error::presentable_with;
use crate::common::masks::Masks;
use crate::common::sync::lock;
use crate::common::work::{LONG_MESSAGE, block_in_place_if};
use crate::protocol::message::{self, INTERNAL_ERROR, Members, Message, Outcome, Raw, RpcError, WireError};
use crate::protocol::stateless::{self, CAPABILITIES_KEY, LOG_LEVEL_KEY};
use crate::session::client::{ASKING, Caller, Question, Session};
use crate::session::elicitation::{ELICIT, Questions, capability, check_askable, required};
use crate::session::subscriptions::LONGEST_ADDRESS;

/// Messages that wait to be sent to an upstream, at most.
const QUEUE: usize = 1024;

/// Bytes of them, at most. A longer message waits until the others are gone.
const QUEUE_BYTES: u32 = 32 * 1024 * 1024;

/// Questions of an upstream that wait for their clients, at most.
const MOST_QUESTIONS: usize = 64;

/// Questions to one caller, in all its sessions, at most: nobody takes the room of others.
const MOST_OF_ONE: usize = 16;

/// Sessions with calls that nobody waits for any more and that the upstream has not answered: so many are known.
const MOST_LEFT: usize = 1_024;

/// Such calls of one session: so many are known.
const MOST_LEFT_OF_ONE: usize = 64;

/// Bytes of the state of a task that is passed on, at most: it waits to be heard.
const LONGEST_STATE: usize = 8 * 1024;

/// A message that waits to be sent, and the room that it takes.
#[derive(Debug)]
pub(super) struct Queued {
    text: Bytes,
    may_be_lost: bool,
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

    /// Whether nobody waits for what comes of it: it takes something back.
    pub(super) fn may_be_lost(&self) -> bool {
        self.may_be_lost
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
        self.queue.send(Queued { text, may_be_lost: false, _room: room }).await.map_err(|_| closed())
    }

    /// Sends what may be lost when the upstream does not keep up.
    fn try_send(&self, text: Bytes) {
        if let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(Self::room_for(&text)) {
            let _ = self.queue.try_send(Queued { text, may_be_lost: true, _room: room });
        }
    }
}

/// One side of a connection to an upstream.
#[derive(Debug)]
pub(super) struct Peer {
    upstream: Arc<str>,
    /// What covers the values from the environment in what is said of it.
    masks: Masks,
    next: AtomicU64,
    is_tried_out: AtomicBool,
    table: Mutex<Table>,
    outgoing: Outgoing,
    questions: Arc<Semaphore>,
    /// The clients that are being asked, once for each question.
    asked: watch::Sender<Vec<Arc<Session>>>,
    events: EventSender,
}

/// What is under way on a connection, while it is open.
#[derive(Debug)]
enum Table {
    Open(Open),
    /// Why it is not.
    Closed(Fault),
}

/// What is under way on a connection.
#[derive(Debug, Default)]
struct Open {
    /// The requests that wait.
    waiting: HashMap<u64, Waiting>,
    /// The sessions with calls that nobody waits for any more and that the upstream has not answered: it may serve them
    /// still, and ask about them.
    left: Vec<Left>,
    /// Until when the upstream may serve more of these than are kept, so that nobody knows whom.
    uncounted_until: Option<Instant>,
    /// The questions that are put to clients.
    questions: Vec<Put>,
    /// Who was asked to open an address, by the upstream's name for that: it says later that it is done.
    elicitations: VecDeque<(String, Weak<Session>)>,
}

/// The calls of a session that nobody waits for any more. The session may have ended.
#[derive(Debug)]
struct Left {
    session: Weak<Session>,
    /// Each with the end of the time in which the upstream may serve it still.
    calls: Vec<(u64, Instant)>,
    /// The end of that time for calls beyond those that are kept.
    uncounted_until: Option<Instant>,
}

impl Left {
    fn is_of(&self, session: &Arc<Session>) -> bool {
        std::ptr::eq(self.session.as_ptr(), Arc::as_ptr(session))
    }

    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.uncounted_until.is_none()
    }
}

/// A question that is put to a client.
#[derive(Debug)]
struct Put {
    /// The upstream's id of it.
    id: Raw,
    /// The request that it belongs to, where the upstream says so.
    of: Option<u64>,
    caller: Caller,
    /// The number under which the client knows it.
    number: u64,
    /// Whether the upstream does not want the answer any more.
    is_taken_back: bool,
}

impl Open {
    /// Takes a request out, and its questions back.
    fn take(&mut self, id: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&id);
        for put in self.questions.iter().filter(|put| !self.serves(put)) {
            put.caller.take_back(put.number);
        }
        waiting
    }

    /// Notes who is to open an address, by the upstream's name for that.
    fn note_elicitation(&mut self, name: String, session: &Arc<Session>) {
        if self.elicitations.len() == MOST_QUESTIONS {
            self.elicitations.pop_front();
        }
        self.elicitations.push_back((name, Arc::downgrade(session)));
    }

    /// Notes what the caller of a request is to do at addresses before it asks again.
    fn note_required(&mut self, waiting: &Waiting, answer: &Result<Outcome, Fault>) {
        let (Some(caller), Ok(Err(error))) = (&waiting.caller, answer) else { return };
        for params in required(error).into_iter().flatten() {
            if let Ok(Some(name)) = check_askable(caller.client(), ELICIT, Some(&params)) {
                self.note_elicitation(name, caller.session());
            }
        }
    }

    /// Whether a request is under way that the question may belong to.
    fn serves(&self, put: &Put) -> bool {
        let is_of = |waiting: &Waiting| waiting.caller.as_ref().is_some_and(|caller| is_same(caller, &put.caller));
        match put.of {
            Some(id) => self.waiting.contains_key(&id),
            None => self.waiting.values().any(is_of),
        }
    }

    /// Notes that nobody waits for this call any more, which the upstream may go on with `until` then.
    fn leave(&mut self, id: u64, caller: &Caller, until: Instant) {
        self.forget_left(Instant::now());
        let (session, count) = (caller.session(), self.left.len());
        match self.left.iter_mut().find(|left| left.is_of(session)) {
            Some(left) if left.calls.len() < MOST_LEFT_OF_ONE => left.calls.push((id, until)),
            Some(left) => left.uncounted_until = left.uncounted_until.max(Some(until)),
            None if count < MOST_LEFT => {
                let session = Arc::downgrade(session);
                self.left.push(Left { session, calls: vec![(id, until)], uncounted_until: None });
            }
            None => self.uncounted_until = self.uncounted_until.max(Some(until)),
        }
    }

    /// Forgets the calls that the upstream serves no longer at `now`: it need not answer what was cancelled.
    fn forget_left(&mut self, now: Instant) {
        let is_over = |until: &mut Instant| *until <= now;
        self.uncounted_until.take_if(is_over);
        self.left.retain_mut(|left| {
            left.calls.retain(|(_, until)| *until > now);
            left.uncounted_until.take_if(is_over);
            !left.is_empty()
        });
    }

    /// Notes that the upstream has answered a call that nobody waited for any more; whether it was one.
    fn settle_left(&mut self, id: u64) -> bool {
        let is_it = |(other, _): &(u64, Instant)| *other == id;
        let Some(left) = self.left.iter_mut().find(|left| left.calls.iter().any(is_it)) else { return false };
        left.calls.retain(|call| !is_it(call));
        self.left.retain(|left| !left.is_empty());
        true
    }

    /// Whom the upstream means with a question, and how that is put; of the request `of` where it says so.
    ///
    /// # Errors
    /// Why nobody can tell.
    fn meant(&mut self, of: Option<u64>) -> Result<(&Caller, Questions), &'static str> {
        const NOBODY: &str = "no call of a client is being served";
        const SEVERAL: &str = "several clients are being served, and nobody can tell which of them is meant";
        self.forget_left(Instant::now());
        if let Some(id) = of {
            let waiting = self.waiting.get(&id).ok_or("the call that it belongs to is over")?;
            return Ok((waiting.caller.as_ref().ok_or(NOBODY)?, waiting.questions));
        }
        let calls = self.waiting.iter();
        let calls = calls.filter_map(|(id, waiting)| Some((*id, waiting.caller.as_ref()?, waiting.questions)));
        let (_, meant, shown) = calls.min_by_key(|(id, ..)| *id).ok_or(NOBODY)?;
        let is_other = |other: &Caller| !is_same(other, meant);
        let is_alone = self.uncounted_until.is_none()
            && !self.waiting.values().any(|waiting| waiting.caller.as_ref().is_some_and(is_other))
            && self.left.iter().all(|left| left.is_of(meant.session()));
        if is_alone { Ok((meant, shown)) } else { Err(SEVERAL) }
    }
}

fn is_same(one: &Caller, other: &Caller) -> bool {
    Arc::ptr_eq(one.session(), other.session())
}

/// A question that a client is being asked, until this is dropped.
struct Asking {
    peer: Arc<Peer>,
    question: Question,
    shown: Questions,
}

impl Asking {
    /// Puts it to the client; `None` where the upstream does not want the answer any more.
    async fn answer(mut self, method: &str, params: Option<&Raw>) -> Option<Outcome> {
        let outcome = match self.shown.present(&self.peer.upstream, method, params) {
            Ok(params) => self.question.put(method, params.as_ref()).await,
            Err(error) => Err(RpcError::invalid_params(error)),
        };
        let is_wanted = match &*lock(&self.peer.table) {
            Table::Open(open) => !open.questions.iter().any(|put| self.is(put) && put.is_taken_back),
            Table::Closed(_) => false,
        };
        is_wanted.then_some(outcome)
    }

    fn is(&self, put: &Put) -> bool {
        put.number == self.question.number() && is_same(&put.caller, self.question.caller())
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Table::Open(open) = &mut *lock(&self.peer.table) {
            open.questions.retain(|put| !self.is(put));
        }
        self.peer.asked.send_modify(|asked| {
            let session = self.question.caller().session();
            if let Some(at) = asked.iter().position(|other| Arc::ptr_eq(other, session)) {
                asked.swap_remove(at);
            }
        });
    }
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
    /// Whether the upstream may have the request, and be at work on it.
    is_sent: bool,
    /// How long it may be when nobody waits for the answer any more.
    lingers: Duration,
}

impl Peer {
    /// A connection on which nothing was asked yet, and the messages that it wants to be sent.
    pub(super) fn new(upstream: Arc<str>, masks: Masks, events: EventSender) -> (Arc<Self>, mpsc::Receiver<Queued>) {
        let (queue, queued) = mpsc::channel(QUEUE);
        let peer = Self {
            upstream,
            masks,
            next: AtomicU64::new(1),
            is_tried_out: AtomicBool::new(false),
            table: Mutex::new(Table::Open(Open::default())),
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

    /// A text of the upstream as it is logged.
    pub(super) fn shown(&self, text: &str) -> String {
        presentable_with(text, &self.masks)
    }

    /// Whether the connection is only there to find out which protocol the upstream speaks, so that another is made when it
    /// breaks.
    pub(super) fn try_out(&self, is_tried_out: bool) {
        self.is_tried_out.store(is_tried_out, Ordering::Release);
    }

    /// Queues a message; waits while the queue is full.
    pub(super) async fn send(&self, text: Bytes) -> Result<(), Fault> {
        self.outgoing.send(text).await
    }

    /// Whether a question of which nobody says what it belongs to would be put to somebody.
    #[cfg(test)]
    pub(super) fn would_ask(&self) -> bool {
        match &mut *lock(&self.table) {
            Table::Open(open) => open.meant(None).is_ok(),
            Table::Closed(_) => false,
        }
    }

    /// Takes the places of all questions that may wait.
    #[cfg(test)]
    pub(super) fn take_all_places(&self) -> Option<OwnedSemaphorePermit> {
        let all = u32::try_from(MOST_QUESTIONS).ok()?;
        Arc::clone(&self.questions).try_acquire_many_owned(all).ok()
    }

    /// Queues a message, which is lost while the queue is full.
    pub(super) fn try_send(&self, text: Bytes) {
        self.outgoing.try_send(text);
    }

    /// Enters a request, for which the upstream has `time`, and of which the text is returned with it. When nobody
    /// waits for it any more, the upstream may be at work on it for as long again.
    ///
    /// # Errors
    /// The connection is closed.
    pub(super) fn enter(
        &self,
        call: &Call<'_>,
        meta: Option<&Value>,
        time: Duration,
    ) -> Result<(Ticket<'_>, Bytes), Fault> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        let (caller, progress) = (call.caller.cloned(), call.progress.cloned());
        let waiting = Waiting { answer: sender, caller, progress, questions: call.questions };
        match &mut *lock(&self.table) {
            Table::Open(open) => open.waiting.insert(id, waiting),
            Table::Closed(reason) => return Err(reason.clone()),
        };
        let dressed;
        let params = if meta.is_some() || call.progress.is_some() {
            dressed = dress(call, call.progress.is_some().then_some(id), meta);
            Some(&dressed)
        } else {
            call.params
        };
        let text = message::request(&Raw::of(&id), call.method, params);
        let revocable = call.method != "initialize";
        Ok((Ticket { peer: self, id, answer, revocable, is_sent: false, lingers: time.min(ASKING) }, text))
    }

    /// Whether no request waits.
    pub(super) fn is_idle(&self) -> bool {
        match &*lock(&self.table) {
            Table::Open(open) => open.waiting.is_empty(),
            Table::Closed(_) => true,
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

    /// Takes in a message of the upstream; `of` is the request to which it came as a part of the response, where the
    /// way to the upstream says so.
    pub(super) fn receive(self: &Arc<Self>, message: Message, of: Option<u64>) {
        match message {
            Message::Response { id, .. } if of.is_some_and(|own| number_of(&id) != Some(own)) => {
                let id = self.shown(&format!("{id:?}"));
                tracing::warn!(upstream = %self.upstream, id, "an answer to another request is dropped");
            }
            Message::Response { id, outcome } => self.settle(&id, Ok(outcome)),
            Message::Notification { method, params } => self.notified(&method, params, of),
            Message::Request { id, method, params } => self.asked(id, method, params, of),
        }
    }

    /// Takes in the messages of a batch that came for `of`; whether it is one. What is no message in it is passed over.
    pub(super) fn received_batch(self: &Arc<Self>, text: &Bytes, of: Option<u64>) -> bool {
        let Some(messages) = Message::of_batch(text) else { return false };
        messages.into_iter().flatten().for_each(|message| self.receive(message, of));
        true
    }

    /// Gives a request its answer; an answer that nobody waits for is dropped.
    pub(super) fn settle(&self, id: &Raw, answer: Result<Outcome, Fault>) {
        let waiting = match (number_of(id), &mut *lock(&self.table)) {
            (Some(number), Table::Open(open)) => match open.take(number) {
                None if open.settle_left(number) => return,
                waiting => waiting.inspect(|waiting| open.note_required(waiting, &answer)),
            },
            _ => None,
        };
        match waiting {
            Some(waiting) => {
                let _ = waiting.answer.send(answer);
            }
            None => {
                let upstream = &self.upstream;
                tracing::debug!(%upstream, id = self.shown(&format!("{id:?}")), "an answer that nobody waits for");
            }
        }
    }

    /// Fails every request that waits and all that come: the connection is gone. The first reason stays.
    pub(super) fn close(&self, reason: &str) {
        self.close_for(&Fault::Unavailable(reason.to_owned()));
    }

    fn close_for(&self, reason: &Fault) {
        let mut table = lock(&self.table);
        if let Table::Open(open) = &mut *table {
            let Open { waiting, questions, .. } = std::mem::take(open);
            *table = Table::Closed(reason.clone());
            drop(table);
            questions.iter().for_each(|put| put.caller.take_back(put.number));
            for waiting in waiting.into_values() {
                let _ = waiting.answer.send(Err(reason.clone()));
            }
        }
    }

    /// The connection broke without the gateway's doing.
    pub(super) fn lost(&self, reason: Fault) {
        let reason = reason.covered(&self.masks);
        let told = reason.in_full();
        if self.is_tried_out.load(Ordering::Acquire) {
            tracing::debug!(upstream = %self.upstream, reason = told, "the connection is lost, and another is tried");
        } else {
            tracing::warn!(upstream = %self.upstream, reason = told, "the connection is lost");
        }
        self.close_for(&reason);
        self.events.send(&self.upstream, Event::Lost);
    }

    /// Its lists may have changed without a word that was heard.
    pub(super) fn may_have_missed(&self) {
        self.events.send(&self.upstream, Event::MayDiffer);
    }

    /// The answer to `id`, as far as that is known, came and is not usable.
    pub(super) fn fail(&self, id: Option<u64>, fault: Fault) {
        let fault = fault.covered(&self.masks);
        tracing::warn!(upstream = %self.upstream, ?id, %fault, "a message was skipped");
        if let Some(id) = id {
            self.settle(&Raw::of(&id), Err(fault));
        }
    }

    fn notified(&self, method: &str, params: Option<Raw>, of: Option<u64>) {
        let event = match method {
            "notifications/progress" => return self.progressed(params.as_ref(), of),
            "notifications/message" => {
                self.callers(of).iter().for_each(|caller| caller.notify(method, params.as_ref()));
                return;
            }
            "notifications/cancelled" => return self.taken_back(params.as_ref(), of),
            "notifications/elicitation/complete" => return self.completed(method, params.as_ref()),
            "notifications/tasks/status" => match params {
                Some(params) if params.bytes().len() <= LONGEST_STATE => Event::TaskStatus(params),
                _ => return,
            },
            "notifications/tools/list_changed" => Event::ToolsChanged,
            "notifications/resources/list_changed" => Event::ResourcesChanged,
            "notifications/prompts/list_changed" => Event::PromptsChanged,
            "notifications/resources/updated" => match stateless::named("resources/read", params.as_ref()) {
                // The rest is nobody's, and may be large. No longer address is watched.
                Some(uri) if uri.len() <= LONGEST_ADDRESS => Event::ResourceUpdated(uri.into_owned()),
                _ => return,
            },
            _ => return,
        };
        self.events.send(&self.upstream, event);
    }

    /// Passes progress on under the caller's own token.
    fn progressed(&self, params: Option<&Raw>, of: Option<u64>) {
        let Some(mut members) = params.and_then(|params| params.read::<Members<'_>>().ok()) else { return };
        let token = members.get("progressToken").and_then(|token| serde_json::from_str::<u64>(token.get()).ok());
        let token = token.filter(|token| of.is_none_or(|own| own == *token));
        let target = token.and_then(|token| match &*lock(&self.table) {
            Table::Open(open) => {
                let waiting = open.waiting.get(&token)?;
                Some((waiting.caller.clone()?, waiting.progress.clone()?))
            }
            Table::Closed(_) => None,
        });
        if let Some((caller, token)) = target {
            members.set("progressToken", &token);
            caller.notify("notifications/progress", Some(&Raw::of(&members)));
        }
    }

    /// The caller of a request, or those whose requests are being served, one of each client.
    fn callers(&self, of: Option<u64>) -> Vec<Caller> {
        let mut callers: Vec<(u64, Caller)> = match &*lock(&self.table) {
            Table::Open(Open { waiting, .. }) => {
                let is_meant = |id: &u64| of.is_none_or(|own| own == *id);
                let waiting = waiting.iter().filter(|(id, _)| is_meant(id));
                waiting.filter_map(|(id, waiting)| Some((*id, waiting.caller.clone()?))).collect()
            }
            Table::Closed(_) => Vec::new(),
        };
        callers.sort_unstable_by_key(|(id, _)| *id);
        let mut single: Vec<Caller> = Vec::new();
        for (_, caller) in callers {
            if !single.iter().any(|other| is_same(other, &caller)) {
                single.push(caller);
            }
        }
        single
    }

    /// Takes in a question of the upstream. Whom it means is found at once: soon another may be served.
    fn asked(self: &Arc<Self>, id: Raw, method: String, params: Option<Raw>, of: Option<u64>) {
        let pong = || Ok(Raw::of(&json!({})));
        let Ok(place) = Arc::clone(&self.questions).try_acquire_owned() else {
            // Whether the gateway is there does not depend on what persons answer.
            let outcome = match method.as_str() {
                "ping" => pong(),
                _ => Err(RpcError::new(INTERNAL_ERROR, format!("{MOST_QUESTIONS} questions wait already"))),
            };
            return self.outgoing.try_send(message::response(Some(&id), &outcome));
        };
        let asking = match method.as_str() {
            "ping" => Err(pong()),
            _ => self.enter_question(&id, &method, params.as_ref(), of).map_err(Err),
        };
        let peer = Arc::clone(self);
        tokio::spawn(async move {
            let outcome = match asking {
                Ok(asking) => asking.answer(&method, params.as_ref()).await,
                Err(outcome) => Some(outcome),
            };
            if let Some(outcome) = outcome {
                let _ = peer.outgoing.send(message::response(Some(&id), &outcome)).await;
            }
            drop(place);
        });
    }

    /// Enters a question for the client that the upstream means.
    ///
    /// # Errors
    /// Nobody can tell whom it means, or that client cannot be asked, or is being asked too much already.
    fn enter_question(
        self: &Arc<Self>,
        id: &Raw,
        method: &str,
        params: Option<&Raw>,
        of: Option<u64>,
    ) -> Result<Asking, RpcError> {
        let mut table = lock(&self.table);
        let Table::Open(open) = &mut *table else { return Err(RpcError::method_not_found(method)) };
        if capability(method).is_none() {
            return Err(RpcError::method_not_found(method));
        }
        let meant = open.meant(of).map(|(caller, shown)| (caller.clone(), shown));
        let nobody = |reason| RpcError::new(INTERNAL_ERROR, format!("no client can be asked: {reason}"));
        let (caller, shown) = meant.map_err(nobody)?;
        let elicitation = check_askable(caller.client(), method, params)?;
        let tenant = caller.session().tenant();
        let is_own = |put: &&Put| put.caller.session().tenant() == tenant;
        if open.questions.iter().filter(is_own).count() >= MOST_OF_ONE {
            let busy = format!("{MOST_OF_ONE} questions to this client wait already; wait for an answer");
            return Err(RpcError::new(INTERNAL_ERROR, busy));
        }
        let question = caller.question(method)?;
        if let Some(elicitation) = elicitation {
            open.note_elicitation(elicitation, caller.session());
        }
        let (id, number, session) = (id.canonical(), question.number(), Arc::clone(caller.session()));
        open.questions.push(Put { id, of, caller, number, is_taken_back: false });
        drop(table);
        self.asked.send_modify(|asked| asked.push(session));
        Ok(Asking { peer: Arc::clone(self), question, shown })
    }

    /// The upstream does not want the answer to a question any more.
    fn taken_back(&self, params: Option<&Raw>, of: Option<u64>) {
        let Some(members) = params.and_then(|params| params.read::<Members<'_>>().ok()) else { return };
        let Some(id) = members.get("requestId").map(|id| Raw::of(id).canonical()) else { return };
        let Table::Open(open) = &mut *lock(&self.table) else { return };
        let is_meant = |put: &&mut Put| put.id == id && of.is_none_or(|own| put.of == Some(own));
        if let Some(put) = open.questions.iter_mut().find(is_meant) {
            put.is_taken_back = true;
            put.caller.take_back(put.number);
        }
    }

    /// What the upstream had a client do at an address is done.
    fn completed(&self, method: &str, params: Option<&Raw>) {
        let Some(members) = params.and_then(|params| params.read::<Members<'_>>().ok()) else { return };
        let id = members.get("elicitationId").and_then(|id| serde_json::from_str::<String>(id.get()).ok());
        let session = match &mut *lock(&self.table) {
            Table::Open(Open { elicitations, .. }) => {
                let at = elicitations.iter().position(|(known, _)| Some(known) == id.as_ref());
                at.and_then(|at| elicitations.remove(at)).and_then(|(_, session)| session.upgrade())
            }
            Table::Closed(_) => None,
        };
        if let Some(session) = session {
            session.tell(method, params);
        }
    }
}

/// The number that an id of ours is; some servers return it as text.
fn number_of(id: &Raw) -> Option<u64> {
    id.read::<u64>().ok().or_else(|| id.read::<String>().ok()?.parse().ok())
}

impl Ticket<'_> {
    /// Waits for the answer to the request.
    pub(super) async fn answer(&mut self) -> Result<Raw, Fault> {
        read((&mut self.answer).await.ok())
    }

    /// The number of the request.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The request is on its way: the upstream may be at work on it until it answers.
    pub(super) fn sent(&mut self) {
        self.is_sent = true;
    }

    /// The upstream is not at work on the request: it has refused it, or never had it.
    pub(super) fn not_taken(&mut self) {
        self.is_sent = false;
    }

    /// There is nobody to take the request back from.
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
        let mut table = lock(&self.peer.table);
        let Table::Open(open) = &mut *table else { return };
        // What was answered is in the table no more.
        let Some(waiting) = open.take(self.id) else { return };
        if let (Some(caller), true) = (&waiting.caller, self.is_sent) {
            open.leave(self.id, caller, Instant::now() + self.lingers);
        }
        drop(table);
        if self.revocable && self.is_sent {
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
            if let Some(level) = caller.log_level() {
                own.set(LOG_LEVEL_KEY, &Raw::of(&level));
            }
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
    use std::path::Path;

    use super::*;
    use crate::common::masks::Noted;
    use crate::protocol::client_info::{ClientInfo, LogLevel};
    use crate::protocol::versions::{LEGACY_VERSIONS, MODERN_VERSION};

    #[tokio::test]
    async fn a_message_that_is_skipped_and_a_lost_connection_show_no_value_from_the_environment() {
        let environment = |_: &str| Some("s3cr3t-value".to_owned());
        let noted = Noted::new(&environment, Path::new("."));
        noted.expand("${env:V}").unwrap();
        let (peer, _queued) = Peer::new(Arc::from("up"), noted.masks(), EventSender::channel().0);
        let enter = || peer.enter(&Call::own("tools/call", None), None, Duration::ZERO);
        let (mut ticket, _) = enter().unwrap();
        peer.fail(Some(ticket.id()), Fault::Malformed("it says s3cr3t-value".to_owned()));
        assert_eq!(ticket.answer().await.unwrap_err().to_string(), "its answer is not usable: it says ${env:V}");
        peer.lost(Fault::Unavailable("s3cr3t-value is gone".to_owned()));
        assert_eq!(enter().unwrap_err().to_string(), "${env:V} is gone");
    }

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

    #[test]
    fn a_stateless_upstream_is_asked_for_the_log_messages_that_the_client_gets() {
        let told = |version: &str, own: Option<LogLevel>, of_session: Option<LogLevel>| {
            let session = Session::new("s");
            of_session.into_iter().for_each(|level| session.set_log_level(level));
            let client = ClientInfo { version: version.to_owned(), log: own, ..ClientInfo::default() };
            let caller = Caller::new(session, client, mpsc::channel(1).0);
            let call = Call { caller: Some(&caller), ..Call::own("tools/call", None) };
            let dressed: Value = dress(&call, None, Some(&json!({}))).read().unwrap();
            dressed["_meta"][LOG_LEVEL_KEY].clone()
        };
        let (modern, legacy) = (MODERN_VERSION, LEGACY_VERSIONS[0]);
        assert_eq!(told(modern, Some(LogLevel::Notice), None), "notice");
        assert_eq!(told(modern, None, Some(LogLevel::Error)), Value::Null, "it wants none");
        assert_eq!(told(legacy, None, Some(LogLevel::Error)), "error");
        assert_eq!(told(legacy, None, None), "debug", "it gets all until it says a level");
    }
}
