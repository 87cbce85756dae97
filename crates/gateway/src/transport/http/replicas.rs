//! Sessions that every replica serves.
//!
//! Where replicas share their state on a server, a session stands there with what another replica must know of it: the
//! protocol version, what the client can do, and the resources that it watches. A replica that is asked for a session
//! which it does not hold takes it up from there; each request asks whether the session is still open, so that one that
//! was ended is ended everywhere. What a replica remembers to spare tokens (texts and cards that were shown, searches)
//! stays with it: another shows them whole again. Requests that a replica is serving end with it. The answer to its question
//! reaches it whichever replica is given it; a notification that takes a request back does not.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::sessions::Visit;
use super::streams::Stream;
use crate::guard::state::{Opened, SessionBounds, SharedSessions, State};
use crate::protocol::client_info::{Capabilities, ClientInfo, LogLevel};
use crate::protocol::message::{self, INTERNAL_ERROR, INVALID_REQUEST, Message, Outcome, Raw, RpcError};
use crate::protocol::stateless;
use crate::session::client::{ASKING, LOOK, Post, Session, Underway};
use crate::session::identity::Identity;
use contextweaver_context::store::{Clock, StoreError, SystemClock};

/// Bytes of a session's id, at most: ours have 32.
const LONGEST_ID: usize = 64;

/// What stands on the server for a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Record {
    version: String,
    capabilities: Capabilities,
    /// The lowest level of log messages that it wants; all when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log: Option<LogLevel>,
    watched: Vec<String>,
    /// Counts the changes, so that no replica takes an earlier record for news.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
}

/// What a request changes of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    Watch(String),
    Unwatch(String),
    Log(LogLevel),
}

impl Change {
    /// What a request that was answered well changes; `None` where that is nothing.
    fn of(method: &str, params: Option<&Raw>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Params {
            level: LogLevel,
        }
        let uri = || stateless::named(method, params).map(Cow::into_owned);
        match method {
            "resources/subscribe" => uri().map(Self::Watch),
            "resources/unsubscribe" => uri().map(Self::Unwatch),
            "logging/setLevel" => params?.read::<Params>().ok().map(|params| Self::Log(params.level)),
            _ => None,
        }
    }
}

impl Record {
    fn of(session: &Session) -> Self {
        let ClientInfo { version, capabilities, log } = (*session.client()).clone();
        let revision = Some(session.revision().map_or(0, |last| last + 1));
        Self { version, capabilities, log, watched: session.watched(), revision }
    }

    fn read(text: &str) -> Result<Self, RpcError> {
        serde_json::from_str(text).map_err(|error| {
            tracing::error!(%error, "the shared state has an unknown record for a session");
            RpcError::new(INTERNAL_ERROR, "the session cannot be read; start another with `initialize`")
        })
    }

    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The record after a change, which it may show already.
    fn with(mut self, change: &Change) -> Self {
        let before = self.clone();
        match change {
            Change::Watch(uri) if self.watched.contains(uri) => {}
            Change::Watch(uri) => self.watched.push(uri.clone()),
            Change::Unwatch(uri) => self.watched.retain(|other| other != uri),
            Change::Log(level) => self.log = Some(*level),
        }
        if self != before {
            self.revision = Some(self.revision.map_or(0, |last| last + 1));
        }
        self
    }

    /// Has the session be as it says, unless the session knows a later one.
    fn restore(self, session: &Session) {
        let Self { version, capabilities, log, watched, revision } = self;
        session.take_over(revision, ClientInfo { version, capabilities, log }, watched);
    }
}

/// What the shared state says of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing: each replica has its own sessions.
    Own,
    /// It is open, and this is its record.
    Open(String),
    /// There is none, or it was ended.
    Closed,
}

/// Runs `work` on the sessions of a state off the threads of the runtime; `None` where replicas share none.
async fn run<T: Send + 'static>(
    state: &Arc<dyn State>,
    work: impl FnOnce(&dyn SharedSessions) -> Result<T, StoreError> + Send + 'static,
) -> Result<Option<T>, RpcError> {
    if state.sessions().is_none() {
        return Ok(None);
    }
    let state = Arc::clone(state);
    let worked = tokio::task::spawn_blocking(move || state.sessions().map(work).transpose()).await;
    worked.map_err(|error| error.to_string()).and_then(|worked| worked.map_err(|error| error.to_string())).map_err(
        |error| {
            tracing::error!(%error, "the sessions that replicas share cannot be reached");
            RpcError::new(INTERNAL_ERROR, "the sessions that replicas share cannot be reached now; try again")
        },
    )
}

/// What is known of the session of this client; asking counts as using it.
///
/// # Errors
/// The state cannot be used.
pub(super) async fn look_up(
    state: &Arc<dyn State>,
    id: &str,
    client: &Identity,
    limits: SessionBounds,
) -> Result<Known, RpcError> {
    if id.len() > LONGEST_ID {
        return Ok(Known::Closed);
    }
    let (id, owner, now) = (id.to_owned(), client.tenant(), SystemClock.now());
    let found = run(state, move |sessions| sessions.session(&id, &owner, now, limits.idle)).await?;
    Ok(match found {
        None => Known::Own,
        Some(Some(record)) => Known::Open(record),
        Some(None) => Known::Closed,
    })
}

/// Gives a session what its record says, where that is news.
///
/// # Errors
/// The record is not one of ours.
pub(super) fn restore(session: &Session, record: &str) -> Result<(), RpcError> {
    Record::read(record).map(|record| record.restore(session))
}

/// Keeps a session for the other replicas after a request that changed it, before its answer goes out.
///
/// # Errors
/// The state cannot be used, or there are as many sessions as there may be.
pub(super) async fn keep(
    state: &Arc<dyn State>,
    session: &Session,
    (method, params): (&str, Option<&Raw>),
    limits: SessionBounds,
    outcome: Option<&Outcome>,
) -> Result<(), RpcError> {
    if !matches!(outcome, Some(Ok(_))) || state.sessions().is_none() {
        return Ok(());
    }
    match Change::of(method, params) {
        Some(change) => changed(state, session, change).await,
        None if method == "initialize" => opened(state, session, limits).await,
        None => Ok(()),
    }
}

/// Enters a session for all replicas.
async fn opened(state: &Arc<dyn State>, session: &Session, limits: SessionBounds) -> Result<(), RpcError> {
    let (id, owner, now) = (session.id().to_owned(), session.tenant().to_owned(), SystemClock.now());
    let record = Record::of(session);
    let text = record.text();
    match run(state, move |sessions| sessions.open_session(&id, &owner, &text, now, limits)).await? {
        Some(Opened::Full) => Err(RpcError::new(INTERNAL_ERROR, "too many sessions are in use; try again later")),
        None | Some(Opened::Open) => {
            record.restore(session);
            Ok(())
        }
    }
}

/// Changes what all replicas know of a session. Requests of one session may do so at the same time, at several
/// replicas.
async fn changed(state: &Arc<dyn State>, session: &Session, change: Change) -> Result<(), RpcError> {
    let _one_at_a_time = session.changing.lock().await;
    let (id, owner) = (session.id().to_owned(), session.tenant().to_owned());
    let mut work = move |record: &str| match Record::read(record) {
        Ok(record) => record.with(&change).text(),
        Err(_) => record.to_owned(),
    };
    let record = run(state, move |sessions| sessions.change_session(&id, &owner, &mut work)).await?.flatten();
    record.map_or(Ok(()), |record| restore(session, &record))
}

/// Prepares a session that was opened or taken up here: its questions have numbers that no other replica uses.
///
/// # Errors
/// The system gives no randomness for them.
pub(super) fn prepare(state: &Arc<dyn State>, session: &Session) -> Result<(), RpcError> {
    if state.sessions().is_none() {
        return Ok(());
    }
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| {
        RpcError::new(INTERNAL_ERROR, format!("no session, since the system provides no randomness: {error}"))
    })?;
    // Numbers that every client of JSON can hold, with room to count on.
    session.join(u64::from_le_bytes(random) >> 12, Arc::new(Shelf(Arc::clone(state))));
    Ok(())
}

/// Bytes of an answer that is left for another replica, at most.
const LONGEST_ANSWER: usize = 262_144;

/// Where answers are left for the replica that waits for them.
struct Shelf(Arc<dyn State>);

impl std::fmt::Debug for Shelf {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Shelf")
    }
}

impl Post for Shelf {
    fn expect<'p>(&'p self, session: &'p str, number: u64, lasts: Duration) -> Underway<'p, ()> {
        let session = session.to_owned();
        Box::pin(async move {
            // What went wrong is in the log.
            let _ = run(&self.0, move |sessions| sessions.expect_answer(&session, number, lasts)).await;
        })
    }

    fn fetch<'p>(&'p self, session: &'p str, number: u64) -> Underway<'p, Option<Outcome>> {
        let session = session.to_owned();
        Box::pin(async move {
            let left = run(&self.0, move |sessions| sessions.take_answer(&session, number)).await.ok()??;
            match Message::parse(left?) {
                Ok(Message::Response { outcome, .. }) => Some(outcome),
                _ => None,
            }
        })
    }
}

/// Takes an answer of a client: hands it to who waits for it here, or leaves it for the replica that does. What nobody
/// waits for is dropped.
///
/// # Errors
/// The state cannot be used, or the answer is too long to be left.
pub(super) async fn answered(
    state: &Arc<dyn State>,
    session: &Session,
    id: &Raw,
    outcome: Outcome,
) -> Result<(), RpcError> {
    if session.awaits(id) || state.sessions().is_none() {
        session.answered(id, outcome);
        return Ok(());
    }
    let Ok(number) = id.read::<u64>() else { return Ok(()) };
    let text = message::response(Some(id), &outcome);
    if text.len() > LONGEST_ANSWER {
        let reason = format!("another replica asked, and the answer has more than {LONGEST_ANSWER} bytes");
        return Err(RpcError::new(INVALID_REQUEST, reason));
    }
    let session = session.id().to_owned();
    run(state, move |sessions| sessions.leave_answer(&session, number, &text)).await.map(drop)
}

/// Notes that the answer of a stream will be there, and where it can be fetched when it was not here.
pub(super) async fn expect(state: &Arc<dyn State>, session: &Session, number: u64) {
    let session = session.id().to_owned();
    // What went wrong is in the log; the stream can then be taken up here alone.
    let _ = run(state, move |sessions| sessions.expect_answer(&session, number, ASKING)).await;
}

/// Leaves the answer of a stream that nobody fetched here for the other replicas. Where there is none, or it is too long,
/// they wait for it no longer.
pub(super) async fn leave(state: &Arc<dyn State>, session: &Session, number: u64, answer: Option<Bytes>) {
    let session = session.id().to_owned();
    let left = run(state, move |sessions| match answer.filter(|answer| answer.len() <= LONGEST_ANSWER) {
        Some(answer) => sessions.leave_answer(&session, number, &answer).map(drop),
        None => sessions.forget_answer(&session, number),
    });
    // What went wrong is in the log.
    let _ = left.await;
}

/// Whether another replica serves, or has served, the stream with this number.
///
/// # Errors
/// The state cannot be used.
pub(super) async fn is_elsewhere(state: &Arc<dyn State>, session: &Session, number: u64) -> Result<bool, RpcError> {
    let session = session.id().to_owned();
    Ok(run(state, move |sessions| sessions.is_expected(&session, number)).await?.unwrap_or(false))
}

/// Brings the answer of a stream of another replica as soon as it is there, while somebody here waits for it and that replica
/// serves it.
pub(super) async fn fetch(state: &Arc<dyn State>, session: &Visit, stream: &Stream) {
    let (id, number) = (session.id().to_owned(), stream.number());
    let until = tokio::time::Instant::now() + ASKING;
    while stream.is_followed() && tokio::time::Instant::now() < until {
        let asked = id.clone();
        // It stays there: this connection may break too, and the client ask another replica.
        let left = run(state, move |sessions| sessions.answer(&asked, number)).await;
        if let Ok(Some(Some(answer))) = left {
            return stream.end(Some(answer));
        }
        if matches!(is_elsewhere(state, session, number).await, Ok(false)) {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    // Whoever comes later looks again.
    session.streams().forget(number);
    stream.end(None);
}

/// Ends a session for all replicas.
///
/// # Errors
/// The state cannot be used; the session may be open elsewhere.
pub(super) async fn end(state: &Arc<dyn State>, session: &Session) -> Result<(), RpcError> {
    let (id, owner) = (session.id().to_owned(), session.tenant().to_owned());
    run(state, move |sessions| sessions.close_session(&id, &owner)).await.map(drop)
}

/// Says of sessions with an open request or stream that they are in use. Those that were ended elsewhere are returned.
pub(super) async fn touch(state: &Arc<dyn State>, visits: Vec<Visit>, limits: SessionBounds) -> Vec<Visit> {
    let mut ended = Vec::new();
    for visit in visits {
        match look_up(state, visit.id(), visit.identity(), limits).await {
            Ok(Known::Closed) => ended.push(visit),
            Ok(_) => {}
            // The next time.
            Err(_) => break,
        }
    }
    ended
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_changes_of_a_session_what_it_is_about_and_an_earlier_record_changes_nothing() {
        let session = Session::new("s");
        session.set_client(ClientInfo { version: "2025-11-25".to_owned(), ..ClientInfo::default() });
        let first = Record::of(&session);
        restore(&session, &first.text()).unwrap();
        let change = |method: &str, params| Change::of(method, Some(&Raw::of(&params))).unwrap();
        let watch = |uri: &str| change("resources/subscribe", json!({"uri": uri}));
        // Two requests at once: one record after the other, whatever the session has of its own at that moment.
        let one = first.clone().with(&watch("a://1"));
        let both = one.clone().with(&watch("a://2")).with(&change("logging/setLevel", json!({"level": "error"})));
        session.watch("a://1");
        session.watch("a://2");
        restore(&session, &both.text()).unwrap();
        // What was read before comes late.
        for late in [&first, &one] {
            restore(&session, &late.text()).unwrap();
            assert_eq!(session.watched(), ["a://1", "a://2"]);
            assert_eq!(session.client().log, Some(LogLevel::Error));
        }
        let less = both.with(&change("resources/unsubscribe", json!({"uri": "a://1"})));
        restore(&session, &less.text()).unwrap();
        assert_eq!(session.watched(), ["a://2"]);
        assert_eq!(less.clone().with(&watch("a://2")), less, "it says so already");
        // A replica of an earlier version keeps no numbers.
        restore(&session, &Record { revision: None, ..one }.text()).unwrap();
        assert_eq!((session.watched(), session.revision()), (vec!["a://1".to_owned()], less.revision));
        assert!(restore(&session, "{}").is_err());
        assert_eq!(Change::of("tools/call", Some(&Raw::of(&json!({"name": "x"})))), None);
    }
}
