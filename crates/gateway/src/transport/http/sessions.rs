//! The clients of the handshake era, by the id that they carry.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::streams::Streams;
use crate::common::sync::lock;
use crate::guard::state::SessionBounds;
use crate::session::client::Session;
use crate::session::identity::Identity;
use contextweaver_core::text::hex;

/// A session cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoSession {
    /// The caller uses all that it may have.
    #[error("you have {0} sessions in use, which is the limit; end one with DELETE")]
    OwnInUse(usize),
    /// There are as many as there may be.
    #[error("too many sessions are in use; try again later")]
    Full,
    /// There can be no id that nobody guesses.
    #[error("no session, since the system provides no randomness")]
    NoRandomness,
}

/// Sessions that are open.
#[derive(Debug)]
pub(super) struct Sessions {
    entries: Mutex<HashMap<String, Arc<Entry>>>,
    limits: Mutex<SessionBounds>,
    now: fn() -> Instant,
}

#[derive(Debug)]
struct Entry {
    session: Arc<Session>,
    /// The streams of its requests.
    streams: Streams,
    /// Requests and streams of it that are open.
    visits: AtomicUsize,
    /// When the last of them ended.
    rests_since: Mutex<Instant>,
    now: fn() -> Instant,
}

impl Entry {
    /// Since when nothing of it is open; `None` while something is.
    fn rests_since(&self) -> Option<Instant> {
        (self.visits.load(Ordering::Acquire) == 0).then(|| *lock(&self.rests_since))
    }
}

/// A session that is used; it does not expire meanwhile.
#[derive(Debug)]
pub(super) struct Visit(Arc<Entry>);

impl Visit {
    fn new(entry: &Arc<Entry>) -> Self {
        entry.visits.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(entry))
    }
}

impl Visit {
    /// The streams of the requests of the session.
    pub(super) fn streams(&self) -> &Streams {
        &self.0.streams
    }
}

impl Clone for Visit {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Deref for Visit {
    type Target = Arc<Session>;

    fn deref(&self) -> &Arc<Session> {
        &self.0.session
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        *lock(&self.0.rests_since) = (self.0.now)();
        self.0.visits.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Sessions {
    /// No sessions yet.
    pub(super) fn new(limits: SessionBounds, now: fn() -> Instant) -> Self {
        Self { entries: Mutex::default(), limits: Mutex::new(limits), now }
    }

    /// From now on these limits are in force; what is open stays.
    pub(super) fn limit(&self, limits: SessionBounds) {
        *lock(&self.limits) = limits;
    }

    /// The limits that are in force.
    pub(super) fn limits(&self) -> SessionBounds {
        *lock(&self.limits)
    }

    /// Opens a session; where there are too many, the one of the same caller that was idle longest makes room. Where
    /// replicas share them (`shared`), and all callers have too many here, it is that of any caller: it stays open for all
    /// replicas, and is taken up again when it is used.
    ///
    /// # Errors
    /// All of the caller's are in use, or others have all sessions, or the system gives no randomness for an id.
    pub(super) fn open(&self, owner: &Arc<Identity>, shared: bool) -> Result<Visit, NoSession> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|_| NoSession::NoRandomness)?;
        let id = hex(&random);
        self.sweep();
        let mut entries = lock(&self.entries);
        let own = |entry: &&Arc<Entry>| entry.session.identity().name == owner.name;
        let count = entries.values().filter(own).count();
        let limits = self.limits();
        let is_own_limit = count >= limits.most_of_one;
        if is_own_limit || entries.len() >= limits.most {
            let of_any = shared && !is_own_limit;
            let resting = entries.iter().filter(|(_, entry)| of_any || own(entry));
            let resting = resting.filter_map(|(id, entry)| Some((entry.rests_since()?, id)));
            let reason = if is_own_limit { NoSession::OwnInUse(count) } else { NoSession::Full };
            let longest = resting.min().ok_or(reason)?.1.clone();
            if let Some(entry) = entries.remove(&longest) {
                entry.session.close_stream();
            }
        }
        Ok(self.insert(&mut entries, id, owner))
    }

    /// Takes up a session that another replica has opened. Where there is no room, the one that rests longest is let go,
    /// whosever it is: it stays open, and is taken up again when it is used.
    ///
    /// # Errors
    /// All are in use.
    pub(super) fn adopt(&self, id: &str, owner: &Arc<Identity>) -> Result<Visit, NoSession> {
        let mut entries = lock(&self.entries);
        if !entries.contains_key(id) && entries.len() >= self.limits().most {
            let resting = entries.iter().filter_map(|(id, entry)| Some((entry.rests_since()?, id)));
            let longest = resting.min().ok_or(NoSession::Full)?.1.clone();
            entries.remove(&longest);
        }
        // Another request may have taken it up meanwhile.
        let known = entries.get(id).filter(|entry| entry.session.identity() == &**owner);
        if let Some(visit) = known.map(Visit::new) {
            return Ok(visit);
        }
        Ok(self.insert(&mut entries, id.to_owned(), owner))
    }

    fn insert(&self, entries: &mut HashMap<String, Arc<Entry>>, id: String, owner: &Arc<Identity>) -> Visit {
        let now = self.now;
        let (visits, rests_since) = (AtomicUsize::new(0), Mutex::new(now()));
        let (session, streams) = (Session::of(id.clone(), Arc::clone(owner)), Streams::default());
        let entry = Arc::new(Entry { session, streams, visits, rests_since, now });
        let visit = Visit::new(&entry);
        entries.insert(id, entry);
        visit
    }

    /// The sessions that are in use now.
    pub(super) fn in_use(&self) -> Vec<Visit> {
        lock(&self.entries).values().filter(|entry| entry.rests_since().is_none()).map(Visit::new).collect()
    }

    /// The session with this id, if it is open and belongs to this client.
    pub(super) fn visit(&self, id: &str, client: &Identity) -> Option<Visit> {
        let entries = lock(&self.entries);
        let entry = entries.get(id).filter(|entry| !self.is_expired(entry));
        entry.filter(|entry| entry.session.identity() == client).map(Visit::new)
    }

    /// Ends a session, its stream of unasked messages, and what its client is being asked.
    pub(super) fn close(&self, id: &str) {
        if let Some(entry) = lock(&self.entries).remove(id) {
            entry.session.end();
        }
    }

    /// Ends every stream of unasked messages; the sessions stay.
    pub(super) fn close_streams(&self) {
        lock(&self.entries).values().for_each(|entry| entry.session.close_stream());
    }

    /// Ends the sessions that were not used for too long, and forgets the old streams of the others.
    pub(super) fn sweep(&self) {
        let mut entries = lock(&self.entries);
        entries.retain(|_, entry| !self.is_expired(entry));
        entries.values().for_each(|entry| entry.streams.sweep((self.now)()));
    }

    fn is_expired(&self, entry: &Entry) -> bool {
        let rests_since = entry.rests_since();
        rests_since.is_some_and(|since| (self.now)().saturating_duration_since(since) >= self.limits().idle)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;
    use crate::config::http::anyone;

    thread_local! {
        static START: Instant = Instant::now();
        static ELAPSED: Cell<u64> = const { Cell::new(0) };
    }

    fn now() -> Instant {
        START.with(|start| *start) + Duration::from_secs(ELAPSED.get())
    }

    fn limits(idle: u64, most: usize, most_of_one: usize) -> SessionBounds {
        SessionBounds { idle: Duration::from_secs(idle), most, most_of_one }
    }

    fn pass(seconds: u64) {
        ELAPSED.set(ELAPSED.get() + seconds);
    }

    #[test]
    fn a_session_expires_when_it_rests_and_not_before() {
        let sessions = Sessions::new(limits(10, 8, 8), now);
        let visit = sessions.open(&anyone(), false).unwrap();
        let id = visit.id().to_owned();
        pass(100);
        drop(visit);
        pass(9);
        drop(sessions.visit(&id, &anyone()).unwrap());
        pass(9);
        assert!(sessions.visit(&id, &anyone()).is_some());
        let other = Identity { name: "another".to_owned(), profile: None };
        assert!(sessions.visit(&id, &other).is_none(), "a session is its owner's");
        pass(10);
        assert!(sessions.visit(&id, &anyone()).is_none());
        sessions.sweep();
        assert!(lock(&sessions.entries).is_empty());
    }

    #[test]
    fn the_one_that_rests_longest_makes_room() {
        let sessions = Sessions::new(limits(100, 2, 2), now);
        let open = || {
            pass(1);
            let visit = sessions.open(&anyone(), false).ok()?;
            Some((visit.id().to_owned(), visit))
        };
        let (first, in_use) = open().unwrap();
        let (second, visit) = open().unwrap();
        assert!(first != second && first.len() == 32);
        assert!(open().is_none(), "both are in use");
        drop(visit);
        let (third, _also_in_use) = open().unwrap();
        let known: Vec<bool> = [&first, &second, &third].map(|id| sessions.visit(id, &anyone()).is_some()).into();
        assert_eq!(known, [true, false, true]);
        drop(in_use);
        sessions.close(&first);
        assert!(sessions.visit(&first, &anyone()).is_none() && open().is_some());
    }

    #[test]
    fn no_caller_ends_a_session_of_another() {
        let sessions = Sessions::new(limits(100, 4, 2), now);
        let known = |name: &str| Arc::new(Identity { name: name.to_owned(), profile: None });
        let open = |name: &str| {
            pass(1);
            sessions.open(&known(name), false).map(|visit| visit.id().to_owned())
        };
        let first = open("a").unwrap();
        let of_b: Vec<String> = (0..50).map(|_| open("b").unwrap()).collect();
        let is_open = |id: &str, name: &str| sessions.visit(id, &known(name)).is_some();
        assert!(is_open(&first, "a"));
        assert_eq!(of_b.iter().filter(|id| is_open(id, "b")).count(), 2);
        let in_use: Vec<Visit> = (0..2).map(|_| sessions.open(&known("b"), false).unwrap()).collect();
        assert_eq!(open("b"), Err(NoSession::OwnInUse(2)));
        open("c").unwrap();
        assert_eq!(open("d"), Err(NoSession::Full), "what others have is theirs");
        assert!(is_open(&first, "a") && open("c").is_ok());
        drop(in_use);
    }
}
