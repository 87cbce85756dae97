//! One client: what it can do, what it asks, and what may be asked of it.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot};

use super::backlog::Backlog;
use super::identity::{Identity, Presented};
use super::seen::{History, RecentHandles, Searches, ShownCards};
use crate::common::sync::lock;
use crate::protocol::client_info::{ClientInfo, LogLevel};
use crate::protocol::message::{self, INTERNAL_ERROR, Outcome, Raw, RpcError};
use crate::protocol::subscription::{Subscription, uri_of};
use crate::protocol::trace_context::TraceContext;
use crate::protocol::transport::Transport;
use crate::protocol::versions::MODERN_VERSION;

/// How long a person has to answer what an upstream asks through the client.
pub(crate) const ASKING: Duration = Duration::from_secs(300);

/// How often it is looked whether another replica was given the answer to a question.
pub(crate) const LOOK: Duration = Duration::from_millis(300);

/// What is on its way between replicas.
pub(crate) type Underway<'p, T> = Pin<Box<dyn Future<Output = T> + Send + 'p>>;

/// Brings answers of clients to the replica that asked, where each may be given the answers to the questions of others.
pub(crate) trait Post: std::fmt::Debug + Send + Sync {
    /// Notes that an answer is waited for. Where that fails, only an answer that comes here is taken.
    fn expect<'p>(&'p self, session: &'p str, number: u64, lasts: Duration) -> Underway<'p, ()>;

    /// The answer that another replica was given.
    fn fetch<'p>(&'p self, session: &'p str, number: u64) -> Underway<'p, Option<Outcome>>;
}

/// A client that is connected.
#[derive(Debug)]
pub struct Session {
    /// Tells sessions apart; on HTTP it is the session id.
    id: String,
    identity: Arc<Identity>,
    /// Whose what is stored for it is: the same for all sessions of one caller.
    tenant: String,
    client: Mutex<Arc<ClientInfo>>,
    /// What waits to be read by the client; made when it is first told something.
    backlog: OnceLock<Backlog>,
    /// Where messages go that belong to no request.
    unasked: Mutex<Option<mpsc::Sender<Bytes>>>,
    /// What the client of the stateless protocol listens to.
    subscriptions: Mutex<Vec<Subscription>>,
    /// The resources of whose changes the client of the handshake era wants to hear.
    watched: Mutex<BTreeSet<String>>,
    /// The number of the record that was taken over last, where replicas share the session.
    revision: Mutex<Option<u64>>,
    /// Held while that record is changed from here.
    pub(crate) changing: tokio::sync::Mutex<()>,
    /// The gateway's own requests that wait for the client's answer; `None` when the session has ended.
    asked: Mutex<Option<HashMap<u64, Pending>>>,
    next: AtomicU64,
    /// How answers come here that another replica was given.
    post: OnceLock<Arc<dyn Post>>,
    /// The client's requests that are being served, for cancellation.
    running: Mutex<HashMap<Raw, Arc<Notify>>>,
    /// The results that the conversation has shown; held while one is shaped.
    pub(crate) history: Arc<tokio::sync::Mutex<History>>,
    /// The handles that the client was given last.
    pub(crate) recent: Mutex<RecentHandles>,
    /// Cards that were shown, for stable prefixes.
    pub(crate) shown: Mutex<ShownCards>,
    /// What was searched last, where searches learn from calls.
    pub(crate) searches: Mutex<Searches>,
}

impl Session {
    /// A client that has said nothing yet. Its calls are counted for this session alone; what is stored for it belongs
    /// to whoever runs the gateway, also in a later session. For clients that must not share anything there is
    /// [`Session::of`].
    #[must_use]
    pub fn new(id: impl Into<String>) -> Arc<Self> {
        let id = id.into();
        let identity = Identity { name: id.clone(), profile: None };
        Self::with_tenant(id, Arc::new(identity), String::new())
    }

    /// A session of a client that is known.
    #[must_use]
    pub fn of(id: impl Into<String>, identity: Arc<Identity>) -> Arc<Self> {
        let tenant = identity.tenant();
        Self::with_tenant(id.into(), identity, tenant)
    }

    fn with_tenant(id: String, identity: Arc<Identity>, tenant: String) -> Arc<Self> {
        Arc::new(Self {
            id,
            identity,
            tenant,
            client: Mutex::default(),
            backlog: OnceLock::new(),
            unasked: Mutex::default(),
            subscriptions: Mutex::default(),
            watched: Mutex::default(),
            revision: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            asked: Mutex::new(Some(HashMap::new())),
            next: AtomicU64::new(1),
            post: OnceLock::new(),
            running: Mutex::default(),
            history: Arc::default(),
            recent: Mutex::default(),
            shown: Mutex::default(),
            searches: Mutex::default(),
        })
    }

    /// The id of the session.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The client that the session belongs to.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The name of its client, as operators see it: `local` for clients on standard streams, which have none.
    pub(crate) fn label(&self) -> &str {
        if self.tenant.is_empty() { "local" } else { &self.identity.name }
    }

    /// Whose what is stored for it is.
    pub(crate) fn tenant(&self) -> &str {
        &self.tenant
    }

    /// What the client says about itself.
    #[must_use]
    pub fn client(&self) -> Arc<ClientInfo> {
        Arc::clone(&lock(&self.client))
    }

    pub(crate) fn set_client(&self, client: impl Into<Arc<ClientInfo>>) {
        *lock(&self.client) = client.into();
    }

    /// From now on the client wants no log messages below this level.
    pub(crate) fn set_log_level(&self, least: LogLevel) {
        let mut client = lock(&self.client);
        *client = Arc::new(ClientInfo { log: Some(least), ..ClientInfo::clone(&client) });
    }

    /// Opens the stream of messages that belong to no request; an earlier one is closed.
    pub fn open_stream(&self, stream: mpsc::Sender<Bytes>) {
        *lock(&self.unasked) = Some(stream);
    }

    /// Closes the stream of messages that belong to no request.
    pub(crate) fn close_stream(&self) {
        *lock(&self.unasked) = None;
    }

    /// Tells the client of a change. A client that does not listen for it misses it.
    pub fn tell(&self, method: &str, params: Option<&Raw>) {
        let uri = uri_of(method, params);
        for subscription in lock(&self.subscriptions).iter() {
            subscription.tell(method, params, uri.as_deref(), |message| self.backlog().admit(message));
        }
        // A client that has not shaken hands listens by subscriptions alone.
        let shook_hands = !lock(&self.client).version.is_empty();
        let wanted = uri.is_none_or(|uri| lock(&self.watched).contains(&*uri));
        if let Some(stream) = &*lock(&self.unasked)
            && shook_hands
            && wanted
        {
            // A client that does not read its stream must not hold up the others.
            let message = self.backlog().admit(message::notification(method, params));
            message.into_iter().for_each(|message| drop(stream.try_send(message)));
        }
    }

    /// What waits to be read by the client.
    fn backlog(&self) -> &Backlog {
        self.backlog.get_or_init(|| Backlog::of(&self.tenant))
    }

    /// Enters a subscription, which lasts until it is forgotten.
    pub(crate) fn subscribe(&self, subscription: Subscription) {
        lock(&self.subscriptions).push(subscription);
    }

    /// Forgets the subscription with this id.
    pub(crate) fn unsubscribe(&self, id: &Raw) {
        lock(&self.subscriptions).retain(|subscription| subscription.id() != id);
    }

    /// Whether a subscription is about this resource.
    pub(crate) fn listens_to(&self, uri: &str) -> bool {
        lock(&self.subscriptions).iter().any(|subscription| subscription.names(uri))
    }

    /// Notes that the client wants to hear of changes of a resource.
    pub(crate) fn watch(&self, uri: &str) {
        lock(&self.watched).insert(uri.to_owned());
    }

    /// Notes that it does not any more.
    pub(crate) fn unwatch(&self, uri: &str) {
        lock(&self.watched).remove(uri);
    }

    /// From now on the gateway's own requests are numbered from here, and answers come by this post too: where several
    /// replicas ask one client, no two of them may use the same number, or an answer would be taken for that to another
    /// question.
    pub(crate) fn join(&self, first: u64, post: Arc<dyn Post>) {
        self.next.fetch_max(first, Ordering::Relaxed);
        // It is the same post each time.
        let _ = self.post.set(post);
    }

    /// A number that this session has not used: no other replica uses it for the session either.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether an answer with this id is waited for here.
    pub(crate) fn awaits(&self, id: &Raw) -> bool {
        let is_pending = |id| lock(&self.asked).as_ref().is_some_and(|asked| asked.contains_key(&id));
        id.read::<u64>().is_ok_and(is_pending)
    }

    /// The resources of whose changes it wants to hear, by address.
    pub(crate) fn watched(&self) -> Vec<String> {
        lock(&self.watched).iter().cloned().collect()
    }

    /// The number of the record that was taken over last.
    pub(crate) fn revision(&self) -> Option<u64> {
        *lock(&self.revision)
    }

    /// Takes over what a record says, where replicas share the session: the client, and the resources of whose changes
    /// it wants to hear. One that is not newer than the last changes nothing: it was read before another request
    /// changed the session.
    pub(crate) fn take_over(&self, revision: Option<u64>, client: ClientInfo, watched: Vec<String>) {
        let mut taken = lock(&self.revision);
        // Earlier versions, which may serve beside this one, do not number theirs.
        if revision.is_some() && *taken >= revision {
            return;
        }
        *taken = revision.or(*taken);
        let now = self.client();
        if now.version != client.version || now.log != client.log {
            self.set_client(client);
        }
        *lock(&self.watched) = watched.into_iter().collect();
    }

    /// Hands the client's answer to the task that asked.
    pub(crate) fn answered(&self, id: &Raw, outcome: Outcome) {
        if let Some(pending) = id.read::<u64>().ok().and_then(|id| self.pending(id)) {
            let _ = pending.answer.send(outcome);
        }
    }

    /// Takes out what waits for the answer to a request of the gateway's own.
    fn pending(&self, number: u64) -> Option<Pending> {
        lock(&self.asked).as_mut()?.remove(&number)
    }

    /// The session has ended: nobody is asked any more, and who waits for an answer gets none.
    pub(crate) fn end(&self) {
        self.close_stream();
        lock(&self.asked).take();
    }

    /// Notes that a request is served; the returned guard forgets it. `None` when one with this id is served already:
    /// nobody could tell which of them is taken back.
    pub(crate) fn begin(self: &Arc<Self>, id: &Raw) -> Option<Running> {
        let (id, cancelled) = (id.canonical(), Arc::new(Notify::new()));
        match lock(&self.running).entry(id.clone()) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(free) => free.insert(Arc::clone(&cancelled)),
        };
        Some(Running { session: Arc::clone(self), id, cancelled })
    }

    /// Takes a request of the client back.
    pub(crate) fn cancel(&self, id: &Raw) {
        if let Some(cancelled) = lock(&self.running).get(&id.canonical()) {
            cancelled.notify_one();
        }
    }
}

/// A request that is being served.
#[derive(Debug)]
pub(crate) struct Running {
    session: Arc<Session>,
    id: Raw,
    cancelled: Arc<Notify>,
}

impl Running {
    /// Ends when the client takes the request back.
    pub(crate) async fn cancelled(&self) {
        self.cancelled.notified().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.session.running).remove(&self.id);
    }
}

/// One request of a client: what it says about itself, and the way back to it while the request is served.
#[derive(Debug, Clone)]
pub struct Caller {
    session: Arc<Session>,
    client: Arc<ClientInfo>,
    /// Messages that belong to the request, before its answer.
    out: mpsc::Sender<Bytes>,
    /// The place of the request in a trace.
    trace: Option<Arc<TraceContext>>,
    /// What the request came over; `None` where it came over nothing.
    transport: Option<Transport>,
    /// The token of an authorization server that the request came with.
    presented: Option<Arc<Presented>>,
}

impl Caller {
    /// The caller of a request of `session` whose messages go to `out`.
    #[must_use]
    pub fn new(session: Arc<Session>, client: impl Into<Arc<ClientInfo>>, out: mpsc::Sender<Bytes>) -> Self {
        Self { session, client: client.into(), out, trace: None, transport: None, presented: None }
    }

    /// The same within a trace.
    pub(crate) fn within(mut self, trace: Option<TraceContext>) -> Self {
        self.trace = trace.map(Arc::new);
        self
    }

    /// The same with what the request came over.
    pub(crate) fn over(mut self, transport: Transport) -> Self {
        self.transport = Some(transport);
        self
    }

    /// What the request came over; `None` where it came over nothing.
    pub(crate) fn transport(&self) -> Option<Transport> {
        self.transport
    }

    /// The same with the token that the request came with.
    pub(crate) fn presenting(mut self, presented: Option<Arc<Presented>>) -> Self {
        self.presented = presented;
        self
    }

    /// The token of an authorization server that the request came with.
    pub(crate) fn presented(&self) -> Option<&Presented> {
        self.presented.as_deref()
    }

    /// The place of the request in a trace.
    pub(crate) fn trace(&self) -> Option<&TraceContext> {
        self.trace.as_deref()
    }

    /// The client that it belongs to.
    #[must_use]
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// What the client says about itself.
    #[must_use]
    pub fn client(&self) -> &ClientInfo {
        &self.client
    }

    /// Where messages of the request go.
    pub(crate) fn out(&self) -> &mpsc::Sender<Bytes> {
        &self.out
    }

    /// Whether the person behind the client can be asked with a form.
    #[must_use]
    pub fn can_fill_forms(&self) -> bool {
        self.client.elicits("form")
    }

    /// Whether it speaks the stateless protocol.
    #[must_use]
    pub fn is_modern(&self) -> bool {
        self.client.version == MODERN_VERSION
    }

    /// Sends a notification that belongs to the request. A client gets the log messages that it asked for and no others;
    /// one of the handshake era that has not set a level gets all. A client that does not keep up misses it: it must not
    /// hold up the upstream, which others use.
    pub fn notify(&self, method: &str, params: Option<&Raw>) {
        if method == "notifications/message" && !self.wants_log(params) {
            return;
        }
        let message = self.session.backlog().admit(message::notification(method, params));
        message.into_iter().for_each(|message| drop(self.out.try_send(message)));
    }

    /// The lowest level of log messages that the client has named.
    fn named_level(&self) -> Option<LogLevel> {
        // In the handshake era the level is that of the session, also for requests that began before it was set.
        if self.is_modern() { self.client.log } else { self.session.client().log }
    }

    /// The lowest level of log messages that an upstream of the stateless protocol is asked for; `None` where it is asked for
    /// none.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.named_level().or_else(|| (!self.is_modern()).then_some(LogLevel::Debug))
    }

    fn wants_log(&self, params: Option<&Raw>) -> bool {
        #[derive(serde::Deserialize)]
        struct Log {
            level: LogLevel,
        }
        let Some(least) = self.named_level() else { return !self.is_modern() };
        let level = params.and_then(|params| params.read::<Log>().ok()).map(|log| log.level);
        level.is_some_and(|level| level >= least)
    }

    /// Asks the client; in the stateless protocol that is impossible.
    ///
    /// # Errors
    /// The client's error, or that it did not answer.
    pub async fn ask(&self, method: &str, params: Option<&Raw>) -> Outcome {
        self.question(method)?.put(method, params).await
    }

    /// A question to the client, under a number of its own, which is not put yet.
    ///
    /// # Errors
    /// It cannot be asked in its protocol, or its session has ended.
    pub(crate) fn question(&self, method: &str) -> Result<Question, RpcError> {
        if self.is_modern() {
            return Err(RpcError::method_not_found(method));
        }
        let number = self.session.number();
        let (sender, answer) = oneshot::channel();
        let mut asked = lock(&self.session.asked);
        let asked = asked.as_mut().ok_or_else(|| RpcError::new(INTERNAL_ERROR, "the client has ended its session"))?;
        asked.insert(number, Pending { answer: sender, is_put: false });
        Ok(Question { caller: self.clone(), number, answer })
    }

    /// Takes the question with this number back, if the client has not answered it; whoever waits for the answer gets
    /// none.
    pub(crate) fn take_back(&self, number: u64) {
        if self.session.pending(number).is_some_and(|pending| pending.is_put) {
            let params = Raw::of(&json!({"requestId": number, "reason": "the answer is not wanted any more"}));
            self.notify("notifications/cancelled", Some(&params));
        }
    }
}

/// Where the answer to a question goes.
#[derive(Debug)]
struct Pending {
    answer: oneshot::Sender<Outcome>,
    /// Whether the client has been asked.
    is_put: bool,
}

/// A question of the gateway; taken back when it is dropped before its answer: the call that it belongs to may be over.
#[derive(Debug)]
pub(crate) struct Question {
    caller: Caller,
    number: u64,
    answer: oneshot::Receiver<Outcome>,
}

impl Question {
    /// The number under which the client knows it.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Who is asked.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Puts it to the client, and waits for the answer.
    ///
    /// # Errors
    /// The client's error, or that it did not answer.
    pub(crate) async fn put(&mut self, method: &str, params: Option<&Raw>) -> Outcome {
        let Self { caller, number, answer } = self;
        let session = &caller.session;
        let gone = || RpcError::new(INTERNAL_ERROR, "the client did not answer");
        let post = session.post.get();
        if let Some(post) = post {
            post.expect(&session.id, *number, ASKING).await;
        }
        match lock(&session.asked).as_mut().and_then(|asked| asked.get_mut(number)) {
            Some(pending) => pending.is_put = true,
            None => return Err(gone()),
        }
        let asked = async {
            if caller.out.send(message::request(&Raw::of(number), method, params)).await.is_ok() {
                tokio::time::sleep(ASKING).await;
            }
            Err(gone())
        };
        tokio::select! {
            biased;
            answer = answer => answer.unwrap_or_else(|_| Err(gone())),
            answer = elsewhere(post, &session.id, *number) => answer,
            outcome = asked => outcome,
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.caller.take_back(self.number);
    }
}

/// The answer that another replica was given; without end where there is no post.
async fn elsewhere(post: Option<&Arc<dyn Post>>, session: &str, number: u64) -> Outcome {
    let Some(post) = post else { return std::future::pending().await };
    loop {
        tokio::time::sleep(LOOK).await;
        if let Some(outcome) = post.fetch(session, number).await {
            return outcome;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::message::Message;

    #[tokio::test]
    async fn log_messages_below_the_level_that_was_set_are_not_sent() {
        let (out, mut messages) = mpsc::channel(8);
        let client = |version: &str, log| ClientInfo { version: version.to_owned(), log, ..ClientInfo::default() };
        let session = Session::new("s");
        let legacy = Caller::new(Arc::clone(&session), client("2025-11-25", None), out.clone());
        let modern = |log| Caller::new(Arc::clone(&session), client(MODERN_VERSION, log), out.clone());
        let mut sent = |caller: &Caller, level: &str| {
            let params = Raw::of(&serde_json::json!({ "level": level }));
            caller.notify("notifications/message", Some(&params));
            messages.try_recv().is_ok()
        };
        assert!(sent(&legacy, "debug") && sent(&legacy, "loud"), "all is sent until a level is set");
        session.set_log_level(LogLevel::Error);
        assert!(!sent(&legacy, "warning") && sent(&legacy, "error") && sent(&legacy, "alert"));
        assert!(!sent(&modern(None), "alert") && sent(&modern(Some(LogLevel::Info)), "info"));
        assert_eq!(session.client().version, "", "nothing else changes");
    }

    #[tokio::test]
    async fn a_question_is_waited_for_no_longer_than_whoever_asks_waits() {
        let (out, mut messages) = mpsc::channel(8);
        let caller = Caller::new(Session::new("s"), ClientInfo::default(), out);
        let session = caller.session();
        for is_answered in [true, false] {
            let asked = async {
                let Message::Request { id, .. } = Message::parse(messages.recv().await.unwrap()).unwrap() else {
                    panic!()
                };
                assert!(session.awaits(&id));
                if is_answered {
                    session.answered(&id, Ok(Raw::of(&1)));
                    std::future::pending::<()>().await;
                }
                id
            };
            let id = tokio::select! {
                answer = caller.ask("roots/list", None) => {
                    assert!(is_answered && answer.is_ok());
                    None
                }
                id = asked => Some(id),
            };
            assert!(id.as_ref().is_none_or(|id| !session.awaits(id)));
            assert!(lock(&session.asked).as_ref().is_some_and(HashMap::is_empty));
            let Some(id) = id else { continue };
            // The client may close its form.
            let Message::Notification { method, params } = Message::parse(messages.recv().await.unwrap()).unwrap()
            else {
                panic!()
            };
            assert_eq!(method, "notifications/cancelled");
            let params: serde_json::Value = params.unwrap().read().unwrap();
            assert_eq!(Raw::of(&params["requestId"]), id);
        }
        session.end();
        let ended = caller.ask("roots/list", None).await.unwrap_err();
        assert!(ended.message.contains("ended"), "{ended:?}");
    }
}
