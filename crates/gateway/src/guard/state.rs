//! What replicas of a gateway share: quotas, nonces, cached results and pins.
//!
//! Each is a small trait. [`MemoryState`] serves one process, [`SqliteState`](super::sqlite_state::SqliteState) all on one
//! machine that open the same file, and [`RedisState`](super::redis_state::RedisState) all that reach the same server, which
//! share sessions too. What the last two acknowledged outlives a restart. Every structure is bounded: what is full refuses
//! or evicts, and never forgets what safety rests on. The time is always given by the caller.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;

use super::pin::Pin;
use super::quota::Quota;
use crate::common::sync::lock;
use contextweaver_context::store::StoreError;

/// The window of quotas that count calls a minute.
pub const MINUTE: Duration = Duration::from_secs(60);

/// How long calls of a caller are remembered after its last.
pub(super) const IDLE: Duration = Duration::from_secs(24 * 60 * 60);

/// Subjects with their scopes that quotas are kept for, at most. Tests fill them up.
pub(super) const MOST_SUBJECTS: usize = if cfg!(test) { 1_000 } else { 100_000 };

/// A call that a quota is asked for.
#[derive(Debug, Clone)]
pub struct Want {
    /// The name of the caller.
    pub subject: String,
    /// What is called: a meta-tool or a tool's id.
    pub scope: String,
    /// How much of it the subject may do.
    pub quota: Quota,
}

/// A quota is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exceeded {
    /// The meta-tool or the id of the tool whose quota it is.
    pub scope: String,
    /// After how long the call would be permitted; `None` when that is not while it is remembered.
    pub retry_after: Option<Duration>,
}

/// Whether asking uses the quota up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// The call will be made.
    Use,
    /// The caller only wants to know.
    Look,
}

/// Counts calls against quotas.
pub trait Quotas {
    /// Whether all these are permitted at `now`. With [`Take::Use`] all are counted when all are permitted, and none
    /// otherwise. A clock that goes back makes nobody wait longer than a minute.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn take(&self, wants: &[Want], now: Duration, take: Take) -> Result<Result<(), Exceeded>, StoreError>;
}

/// What is known of a nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// It was not seen before, and is remembered now.
    Fresh,
    /// It was seen before, or is so old that it might have been.
    Seen,
    /// There is no room to remember it: it must be refused.
    Full,
}

/// What a nonce is used for once. Those of one kind neither crowd out nor date those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NonceKind {
    /// A signed call. Its moment is the time of the signature.
    Call,
    /// An approval that a client brings. Its moment is when it expires.
    Approval,
}

impl NonceKind {
    /// The name of it in a store.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "nonces",
            Self::Approval => "approvals",
        }
    }
}

/// Remembers nonces by the moments that belong to them.
pub trait Nonces {
    /// Remembers a nonce of the moment `at`, when there are fewer than `most` others of its kind. Those of moments before
    /// `oldest` are forgotten, and a nonce whose moment is no later than one that was forgotten counts as seen: neither a
    /// clock that goes back nor a longer window opens anything.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn remember(
        &self,
        kind: NonceKind,
        nonce: &str,
        oldest: Duration,
        at: Duration,
        most: usize,
    ) -> Result<Freshness, StoreError>;
}

/// Keeps results for a while.
pub trait Results {
    /// The result under `key`, unless it expired; it counts as used.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn cached(&self, key: &str, now: Duration) -> Result<Option<Bytes>, StoreError>;

    /// Keeps a result until `until`. When there are more than `most`, those go that were used longest ago.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn cache(&self, key: &str, result: &Bytes, until: Duration, most: usize) -> Result<(), StoreError>;

    /// Forgets all of them.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn clear_cache(&self) -> Result<(), StoreError>;
}

/// Tells states of the pins apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stamp(pub(super) String);

/// Keeps the definitions of tools that were seen.
pub trait Pinned {
    /// All pins, by server and name.
    ///
    /// # Errors
    /// The backend failed, or holds something that is not a pin.
    fn pins(&self) -> Result<Vec<Pin>, StoreError>;

    /// Shows `work` all pins, by server and name, and writes those that it returns, as one step: nobody else reads or
    /// writes in between. Each replaces the one of its server and name; where there are none nothing is written. Returns
    /// the stamp of what is there then.
    ///
    /// # Errors
    /// The backend failed, or holds something that is not a pin; nothing is then changed.
    fn change_pins(&self, work: &mut dyn FnMut(&[Pin]) -> Vec<Pin>) -> Result<Stamp, StoreError>;

    /// Changes when the pins do.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn pins_stamp(&self) -> Result<Stamp, StoreError>;

    /// Writes these, all or none; each replaces the one of its server and name.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn put_pins(&self, pins: &[Pin]) -> Result<(), StoreError> {
        self.change_pins(&mut |_| pins.to_vec()).map(drop)
    }

    /// Removes the pins of a server, or of one of its tools; how many.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn remove_pins(&self, server: &str, name: Option<&str>) -> Result<usize, StoreError>;
}

/// What sessions of one gateway are held to, wherever they are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionBounds {
    /// How long a session may rest.
    pub idle: Duration,
    /// Sessions at a time.
    pub most: usize,
    /// Of one caller.
    pub most_of_one: usize,
}

/// Whether a session could be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// It is open.
    Open,
    /// All sessions that there may be are in use by others.
    Full,
}

/// Sessions that every replica serves: what a replica must know of a session that another has opened.
pub trait SharedSessions {
    /// Opens a session of `owner`, or keeps another record of one that is open. Where the owner has as many as it may, or
    /// there are as many as there may be, the one of the owner that was used longest ago makes room.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn open_session(
        &self,
        id: &str,
        owner: &str,
        record: &str,
        now: Duration,
        bounds: SessionBounds,
    ) -> Result<Opened, StoreError>;

    /// The record of an open session of this owner, which counts as used; `None` where there is none.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn session(&self, id: &str, owner: &str, now: Duration, idle: Duration) -> Result<Option<String>, StoreError>;

    /// Changes the record of a session that is open, and returns it; `None` where the session is closed, which stays
    /// so. `work` is given the record, and again where others change it at the same time.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn change_session(
        &self,
        id: &str,
        owner: &str,
        work: &mut dyn FnMut(&str) -> String,
    ) -> Result<Option<String>, StoreError>;

    /// Ends a session of this owner, for all replicas.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn close_session(&self, id: &str, owner: &str) -> Result<(), StoreError>;

    /// Notes that the answer to a question with this number is waited for, so long at most.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn expect_answer(&self, session: &str, number: u64, lasts: Duration) -> Result<(), StoreError>;

    /// Whether an answer with this number is waited for, or lies there.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn is_expected(&self, session: &str, number: u64) -> Result<bool, StoreError>;

    /// Leaves an answer for the replica that waits for it; whether one does. The first stands.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn leave_answer(&self, session: &str, number: u64, answer: &[u8]) -> Result<bool, StoreError>;

    /// The answer that was left. It stays for as long as it was to be waited for.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn answer(&self, session: &str, number: u64) -> Result<Option<Bytes>, StoreError>;

    /// The answer that was left, which is then there no more.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn take_answer(&self, session: &str, number: u64) -> Result<Option<Bytes>, StoreError>;

    /// Notes that the answer is waited for no longer; one that was left is there no more.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn forget_answer(&self, session: &str, number: u64) -> Result<(), StoreError>;
}

/// The whole state that replicas share.
pub trait State: Quotas + Nonces + Results + Pinned + Send + Sync {
    /// Whether its methods wait for a disk or a network.
    fn waits(&self) -> bool;

    /// Why what keeps it could not be reached when it was last tried; `None` where it was, or nothing has to be reached.
    fn fault(&self) -> Option<String> {
        None
    }

    /// Sessions that every replica serves; `None` where each replica has its own.
    fn sessions(&self) -> Option<&dyn SharedSessions> {
        None
    }

    /// The key that replicas make tickets of approvals with: `fresh` where there is none yet. `None` where each replica
    /// has its own.
    ///
    /// # Errors
    /// The backend cannot be read or written.
    fn shared_key(&self, fresh: &[u8; 32]) -> Result<Option<[u8; 32]>, StoreError> {
        let _ = fresh;
        Ok(None)
    }
}

/// Whether one more call is permitted after `total`, the `recent` of them within the last minute, oldest first.
pub(super) fn judge(want: &Want, recent: &[Duration], total: u64, now: Duration) -> Result<(), Exceeded> {
    let exceeded = |retry_after| Err(Exceeded { scope: want.scope.clone(), retry_after });
    if want.quota.max_calls_per_session.is_some_and(|most| total >= most.get()) {
        return exceeded(None);
    }
    let Some(most) = want.quota.max_calls_per_minute else { return Ok(()) };
    let most = most.get() as usize;
    // The call that must leave the window before the next may be made.
    match recent.len().checked_sub(most).and_then(|at| recent.get(at)) {
        Some(first) => exceeded(Some((*first + MINUTE).saturating_sub(now))),
        None => Ok(()),
    }
}

/// There is no room to count another subject.
pub(super) fn crowded() -> Exceeded {
    Exceeded { scope: "sessions".to_owned(), retry_after: Some(MINUTE) }
}

#[derive(Debug, Default)]
struct Calls {
    recent: VecDeque<Duration>,
    total: u64,
    last: Duration,
}

impl Calls {
    /// Whether the last of them was so long ago that none counts any more.
    fn is_forgotten(&self, now: Duration) -> bool {
        self.last + IDLE < now
    }
}

/// The nonces of one kind.
#[derive(Debug, Default)]
struct Remembered {
    known: HashSet<String>,
    by_time: BTreeSet<(Duration, String)>,
    /// The latest moment that was forgotten.
    forgotten: Duration,
}

#[derive(Debug, Default)]
struct Cached {
    results: HashMap<String, (Bytes, Duration, u64)>,
    by_use: BTreeMap<u64, String>,
    uses: u64,
}

impl Cached {
    fn touch(&mut self, key: &str) {
        self.uses += 1;
        if let Some(entry) = self.results.get_mut(key) {
            self.by_use.remove(&entry.2);
            entry.2 = self.uses;
            self.by_use.insert(self.uses, key.to_owned());
        }
    }

    fn remove(&mut self, key: &str) {
        if let Some((_, _, used)) = self.results.remove(key) {
            self.by_use.remove(&used);
        }
    }
}

/// The state of one process.
#[derive(Debug, Default)]
pub struct MemoryState {
    calls: Mutex<HashMap<(String, String), Calls>>,
    nonces: Mutex<BTreeMap<NonceKind, Remembered>>,
    results: Mutex<Cached>,
    pins: Mutex<BTreeMap<(String, String), Pin>>,
}

impl Quotas for MemoryState {
    fn take(&self, wants: &[Want], now: Duration, take: Take) -> Result<Result<(), Exceeded>, StoreError> {
        let mut calls = lock(&self.calls);
        let keys: Vec<_> = wants.iter().map(|want| (want.subject.clone(), want.scope.clone())).collect();
        for (want, key) in wants.iter().zip(&keys) {
            let Some(known) = calls.get_mut(key) else { continue };
            if known.is_forgotten(now) {
                *known = Calls::default();
            }
            known.recent.iter_mut().for_each(|at| *at = (*at).min(now));
            while known.recent.front().is_some_and(|at| *at + MINUTE <= now) {
                known.recent.pop_front();
            }
            if let Err(exceeded) = judge(want, known.recent.make_contiguous(), known.total, now) {
                return Ok(Err(exceeded));
            }
        }
        if take == Take::Look {
            return Ok(Ok(()));
        }
        let fresh = |calls: &HashMap<(String, String), Calls>| {
            keys.iter().filter(|key| !calls.contains_key(*key)).collect::<HashSet<_>>().len()
        };
        // Far from the bound nobody asks which of them are known.
        let is_full = |calls: &HashMap<(String, String), Calls>| {
            calls.len() + keys.len() > MOST_SUBJECTS && calls.len() + fresh(calls) > MOST_SUBJECTS
        };
        if is_full(&calls) {
            calls.retain(|_, calls| !calls.is_forgotten(now));
            if is_full(&calls) {
                return Ok(Err(crowded()));
            }
        }
        for (want, key) in wants.iter().zip(keys) {
            let known = calls.entry(key).or_default();
            known.total += 1;
            known.last = now;
            if want.quota.max_calls_per_minute.is_some() {
                known.recent.push_back(now);
            }
        }
        Ok(Ok(()))
    }
}

impl Nonces for MemoryState {
    fn remember(
        &self,
        kind: NonceKind,
        nonce: &str,
        oldest: Duration,
        at: Duration,
        most: usize,
    ) -> Result<Freshness, StoreError> {
        let mut all = lock(&self.nonces);
        let nonces = all.entry(kind).or_default();
        while nonces.by_time.first().is_some_and(|(at, _)| *at < oldest)
            && let Some((at, nonce)) = nonces.by_time.pop_first()
        {
            nonces.known.remove(&nonce);
            nonces.forgotten = nonces.forgotten.max(at);
        }
        if at <= nonces.forgotten || nonces.known.contains(nonce) {
            return Ok(Freshness::Seen);
        }
        if nonces.known.len() >= most {
            return Ok(Freshness::Full);
        }
        nonces.known.insert(nonce.to_owned());
        nonces.by_time.insert((at, nonce.to_owned()));
        Ok(Freshness::Fresh)
    }
}

impl Results for MemoryState {
    fn cached(&self, key: &str, now: Duration) -> Result<Option<Bytes>, StoreError> {
        let mut cached = lock(&self.results);
        if cached.results.get(key).is_some_and(|(_, until, _)| *until <= now) {
            cached.remove(key);
        }
        cached.touch(key);
        Ok(cached.results.get(key).map(|(result, ..)| result.clone()))
    }

    fn cache(&self, key: &str, result: &Bytes, until: Duration, most: usize) -> Result<(), StoreError> {
        let mut cached = lock(&self.results);
        cached.remove(key);
        cached.results.insert(key.to_owned(), (result.clone(), until, 0));
        cached.touch(key);
        while cached.results.len() > most
            && let Some((_, oldest)) = cached.by_use.pop_first()
        {
            cached.results.remove(&oldest);
        }
        Ok(())
    }

    fn clear_cache(&self) -> Result<(), StoreError> {
        *lock(&self.results) = Cached::default();
        Ok(())
    }
}

impl Pinned for MemoryState {
    fn pins(&self) -> Result<Vec<Pin>, StoreError> {
        Ok(lock(&self.pins).values().cloned().collect())
    }

    fn change_pins(&self, work: &mut dyn FnMut(&[Pin]) -> Vec<Pin>) -> Result<Stamp, StoreError> {
        let mut pins = lock(&self.pins);
        let before: Vec<Pin> = pins.values().cloned().collect();
        pins.extend(work(&before).into_iter().map(|pin| ((pin.server.clone(), pin.name.clone()), pin)));
        Ok(Stamp::default())
    }

    /// Nobody else writes here.
    fn pins_stamp(&self) -> Result<Stamp, StoreError> {
        Ok(Stamp::default())
    }

    fn remove_pins(&self, server: &str, name: Option<&str>) -> Result<usize, StoreError> {
        let mut pins = lock(&self.pins);
        let before = pins.len();
        pins.retain(|(of, called), _| of != server || name.is_some_and(|name| name != called));
        Ok(before - pins.len())
    }
}

impl State for MemoryState {
    fn waits(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU32, NonZeroU64};
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::common::redis::RedisConfig;
    use crate::guard::pin::Fingerprint;
    use crate::guard::redis_state::RedisState;
    use crate::guard::sign::unique;
    use crate::guard::sqlite_state::SqliteState;

    /// A backend, by what opens the state of this name anew; `folder` is for files.
    type Backend = (&'static str, Box<dyn Fn(&str) -> Arc<dyn State>>);

    /// The backends whose state outlives what opened it. That on a server takes part where
    /// `CONTEXTWEAVER_TEST_REDIS` has its URL, as in `scripts/replicas-test`.
    fn lasting(folder: &std::path::Path) -> Vec<Backend> {
        let folder = folder.to_owned();
        let file = move |name: &str| -> Arc<dyn State> {
            Arc::new(SqliteState::open(folder.join(format!("{name}.db"))).unwrap())
        };
        let mut backends: Vec<Backend> = vec![("sqlite", Box::new(file))];
        if let Ok(url) = std::env::var("CONTEXTWEAVER_TEST_REDIS") {
            let prefix = unique();
            let server = move |name: &str| -> Arc<dyn State> {
                let config = RedisConfig::new(&url, &format!("test:{prefix}:{name}"), None).unwrap();
                Arc::new(RedisState::open(&config).unwrap())
            };
            backends.push(("redis", Box::new(server)));
        }
        backends
    }

    /// All of them; that in memory is another at each time.
    fn backends(folder: &std::path::Path) -> Vec<Backend> {
        let mut backends = lasting(folder);
        backends.push(("memory", Box::new(|_| Arc::new(MemoryState::default()))));
        backends
    }

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn want(subject: &str, scope: &str, minute: u32, session: u64) -> Want {
        let quota =
            Quota { max_calls_per_minute: NonZeroU32::new(minute), max_calls_per_session: NonZeroU64::new(session) };
        Want { subject: subject.to_owned(), scope: scope.to_owned(), quota }
    }

    fn quotas(state: &dyn State) {
        let two = want("s", "x", 2, 0);
        let take = |wants: &[Want], seconds| state.take(wants, at(seconds), Take::Use).unwrap();
        let over =
            |scope: &str, seconds: Option<u64>| Err(Exceeded { scope: scope.to_owned(), retry_after: seconds.map(at) });
        assert_eq!(take(std::slice::from_ref(&two), 1000), Ok(()));
        assert_eq!(take(std::slice::from_ref(&two), 1010), Ok(()));
        // A look uses nothing, and what is refused uses nothing either.
        assert_eq!(state.take(std::slice::from_ref(&two), at(1020), Take::Look).unwrap(), over("x", Some(40)));
        assert_eq!(take(&[want("s", "y", 1, 0), two.clone()], 1020), over("x", Some(40)));
        assert_eq!(state.take(&[want("s", "y", 1, 0)], at(1020), Take::Look).unwrap(), Ok(()));
        // Another subject has its own.
        assert_eq!(take(&[want("t", "x", 2, 0)], 1020), Ok(()));
        // The first leaves the window after a minute, and the window slides.
        assert_eq!(take(std::slice::from_ref(&two), 1059), over("x", Some(1)));
        assert_eq!(take(std::slice::from_ref(&two), 1060), Ok(()));
        assert_eq!(take(std::slice::from_ref(&two), 1061), over("x", Some(9)));
        // A clock that goes back an hour costs a minute.
        assert_eq!(take(&[want("b", "x", 1, 0)], 9000), Ok(()));
        assert_eq!(take(&[want("b", "x", 1, 0)], 5400), over("x", Some(60)));
        assert_eq!(take(&[want("b", "x", 1, 0)], 5460), Ok(()));
        // What a session may do in all.
        assert_eq!(take(&[want("s", "z", 0, 2)], 2000), Ok(()));
        assert_eq!(take(&[want("s", "z", 0, 2)], 2100), Ok(()));
        assert_eq!(take(&[want("s", "z", 0, 2)], 3000), over("z", None));
    }

    fn nonces(state: &dyn State) {
        let kept = |kind, nonce, oldest, moment| state.remember(kind, nonce, at(oldest), at(moment), 2).unwrap();
        let remember = |nonce, oldest, moment| kept(NonceKind::Call, nonce, oldest, moment);
        assert_eq!(remember("a", 100, 160), Freshness::Fresh);
        assert_eq!(remember("a", 101, 160), Freshness::Seen);
        assert_eq!(remember("a", 160, 160), Freshness::Seen, "to its last moment");
        assert_eq!(kept(NonceKind::Approval, "a", 160, 160), Freshness::Fresh, "another kind");
        assert_eq!(remember("b", 102, 170), Freshness::Fresh);
        assert_eq!(remember("c", 103, 171), Freshness::Full, "nothing is forgotten to make room");
        assert_eq!(remember("b", 103, 171), Freshness::Seen);
        assert_eq!(remember("c", 161, 180), Freshness::Fresh, "what is too old makes room");
        // The clock goes back, or the window is longer: what was forgotten is not fresh again.
        assert_eq!(remember("a", 100, 160), Freshness::Seen);
        // What another kind has forgotten makes nothing older.
        assert_eq!(kept(NonceKind::Approval, "b", 400, 500), Freshness::Fresh);
        assert_eq!(kept(NonceKind::Approval, "c", 600, 700), Freshness::Fresh);
        assert_eq!(remember("d", 171, 181), Freshness::Fresh);
    }

    fn results(state: &dyn State) {
        let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
        let put = |key, until| state.cache(key, &bytes("r"), at(until), 2).unwrap();
        let has = |key, now| state.cached(key, at(now)).unwrap().is_some();
        put("a", 60);
        assert!(has("a", 59) && !has("a", 60) && !has("a", 10), "what expired is gone");
        put("a", 60);
        put("b", 60);
        assert!(has("a", 1));
        put("c", 60);
        assert!(has("a", 1) && !has("b", 1) && has("c", 1), "the one used longest ago goes");
        state.cache("a", &bytes("new"), at(60), 2).unwrap();
        assert_eq!(state.cached("a", at(1)).unwrap(), Some(bytes("new")));
        state.clear_cache().unwrap();
        assert!(!has("a", 1) && !has("c", 1));
    }

    fn pin(server: &str, name: &str) -> Pin {
        Pin::new(server, Fingerprint::of(&serde_json::json!({"name": name, "inputSchema": {}})))
    }

    fn pins(state: &dyn State) {
        state.put_pins(&[pin("b", "x"), pin("a", "y"), pin("a", "x")]).unwrap();
        state.put_pins(&[pin("a", "y")]).unwrap();
        assert_eq!(state.pins().unwrap(), [pin("a", "x"), pin("a", "y"), pin("b", "x")]);
        assert_eq!(state.remove_pins("a", Some("z")).unwrap(), 0);
        let before = state.pins_stamp().unwrap();
        assert_eq!(state.remove_pins("a", Some("x")).unwrap(), 1);
        // What lives with the process has one stamp for all times.
        assert!(before == Stamp::default() || state.pins_stamp().unwrap() != before);
        assert_eq!(state.remove_pins("b", None).unwrap(), 1);
        assert_eq!(state.pins().unwrap(), [pin("a", "y")]);
    }

    fn subjects(state: &dyn State) {
        // Two wants of one call are counted both; a name of any form is a name.
        let odd = want("s\u{0}{}\n", "\u{1f980} x", 2, 0);
        assert_eq!(state.take(&[odd.clone(), odd.clone()], at(100), Take::Use).unwrap(), Ok(()));
        assert!(state.take(std::slice::from_ref(&odd), at(100), Take::Look).unwrap().is_err());
        assert_eq!(state.take(&[], at(100), Take::Use).unwrap(), Ok(()));
        // What a caller may do in all is forgotten a day after its last call, whether others call meanwhile or not; a
        // call that is refused is none.
        let one = want("day", "x", 0, 1);
        let take = |time, how| state.take(std::slice::from_ref(&one), time, how).unwrap().is_ok();
        let next = at(1000) + IDLE + at(1);
        let asked = [(at(1000), Take::Use), (at(2000), Take::Use), (at(1000) + IDLE, Take::Use), (next, Take::Look)];
        assert_eq!(asked.map(|(time, how)| take(time, how)), [true, false, false, true]);
        assert!(take(next, Take::Use) && !take(next, Take::Use), "it is counted from the beginning again");
    }

    fn crowds(state: &dyn State) {
        let one = |number: usize| want(&number.to_string(), "x", 0, 2);
        let take = |wants: &[Want], seconds| state.take(wants, at(seconds), Take::Use).unwrap();
        let most: Vec<Want> = (0..MOST_SUBJECTS).map(one).collect();
        assert_eq!(take(&most, 1000), Ok(()));
        // Who is known may call on. Of what is refused since one of it has no room, nothing is counted.
        assert_eq!(take(&[one(1), one(MOST_SUBJECTS)], 1001), Err(crowded()));
        assert_eq!(take(&[one(1), one(2)], 1001), Ok(()));
        assert_eq!(take(&[one(1)], 1002), Err(Exceeded { scope: "x".to_owned(), retry_after: None }));
        // Two of one that is not known take one place, which those have left that have called long ago.
        let later = 1001 + IDLE.as_secs();
        assert_eq!(take(&[one(MOST_SUBJECTS), one(MOST_SUBJECTS)], later), Ok(()));
        assert!(take(&[one(MOST_SUBJECTS)], later).is_err());
    }

    fn pins_side_by_side(state: &dyn State) {
        std::thread::scope(|scope| {
            for server in ["a", "b", "c"] {
                scope.spawn(move || {
                    for number in 0..5 {
                        state.put_pins(&[pin(server, &number.to_string())]).unwrap();
                    }
                });
            }
        });
        assert_eq!(state.pins().unwrap().len(), 15, "no change is lost");
        let before = state.pins_stamp().unwrap();
        assert_eq!(state.pins_stamp().unwrap(), before);
        assert_eq!(state.change_pins(&mut |_| Vec::new()).unwrap(), before, "nothing was changed");
    }

    #[test]
    fn every_backend_keeps_the_rules() {
        let folder = tempfile::tempdir().unwrap();
        for (name, open) in backends(folder.path()) {
            let rules = [quotas, nonces, results, pins, subjects, crowds, pins_side_by_side];
            for (number, rule) in rules.into_iter().enumerate() {
                println!("{name}: rule {number}");
                rule(&*open(&number.to_string()));
            }
        }
    }

    #[test]
    fn a_restart_and_a_second_replica_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for (name, open) in lasting(folder.path()) {
            println!("{name}");
            let first = open("s");
            first.take(&[want("s", "x", 1, 0)], at(1), Take::Use).unwrap().unwrap();
            first.remember(NonceKind::Call, "n", at(1), at(60), 9).unwrap();
            first.cache("k", &Bytes::from_static(b"r"), at(60), 9).unwrap();
            first.put_pins(&[pin("a", "x")]).unwrap();
            let kept = |state: &dyn State| {
                assert!(state.take(&[want("s", "x", 1, 0)], at(2), Take::Use).unwrap().is_err());
                assert_eq!(state.remember(NonceKind::Call, "n", at(2), at(60), 9).unwrap(), Freshness::Seen);
                assert!(state.cached("k", at(2)).unwrap().is_some());
                assert_eq!(state.pins().unwrap().len(), 1);
            };
            kept(&*open("s"));
            drop(first);
            kept(&*open("s"));
        }
    }

    #[test]
    fn a_quota_is_not_exceeded_by_callers_side_by_side() {
        let folder = tempfile::tempdir().unwrap();
        for (name, open) in backends(folder.path()) {
            let state = open("s");
            let permitted = std::thread::scope(|scope| {
                let one = || {
                    (0..10).filter(|_| state.take(&[want("s", "x", 7, 0)], at(5), Take::Use).unwrap().is_ok()).count()
                };
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
            });
            assert_eq!(permitted, 7, "{name}");
        }
    }

    #[test]
    fn a_nonce_is_fresh_for_one_of_many() {
        let folder = tempfile::tempdir().unwrap();
        for (name, open) in backends(folder.path()) {
            let state = open("s");
            let fresh = std::thread::scope(|scope| {
                let one = || {
                    (0..20)
                        .filter(|n| {
                            state.remember(NonceKind::Call, &n.to_string(), at(5), at(60), 99).unwrap()
                                == Freshness::Fresh
                        })
                        .count()
                };
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
            });
            assert_eq!(fresh, 20, "{name}");
        }
    }

    #[test]
    fn sessions_and_the_key_are_shared_where_the_state_is_on_a_server() {
        let folder = tempfile::tempdir().unwrap();
        for (name, open) in backends(folder.path()) {
            let (state, second) = (open("s"), open("s"));
            assert_eq!(state.sessions().is_some(), name == "redis", "{name}");
            let key = state.shared_key(&[1; 32]).unwrap();
            assert_eq!(key.is_some(), name == "redis", "{name}");
            assert_eq!(second.shared_key(&[2; 32]).unwrap(), key, "the first key stays");
            let (Some(sessions), Some(others)) = (state.sessions(), second.sessions()) else { continue };
            let bounds = SessionBounds { idle: at(10), most: 3, most_of_one: 2 };
            let open = |id, owner, now| sessions.open_session(id, owner, "{}", at(now), bounds).unwrap();
            let is_open = |id, owner, now| others.session(id, owner, at(now), at(10)).unwrap().is_some();
            assert_eq!(open("1", "a", 100), Opened::Open);
            assert!(is_open("1", "a", 105) && !is_open("1", "b", 105), "a session is its owner's");
            assert!(is_open("1", "a", 114) && !is_open("1", "a", 124), "it expires when it rests");
            assert_eq!((open("1", "a", 200), open("2", "a", 201)), (Opened::Open, Opened::Open));
            assert!(is_open("1", "a", 202));
            assert_eq!(open("3", "a", 203), Opened::Open);
            assert!(is_open("1", "a", 203) && !is_open("2", "a", 203), "the one used longest ago makes room");
            assert_eq!((open("4", "b", 204), open("5", "c", 204)), (Opened::Open, Opened::Full));
            sessions.close_session("1", "b").unwrap();
            assert!(is_open("1", "a", 205), "no caller ends a session of another");
            others.close_session("1", "a").unwrap();
            let more = |record: &str| format!("{record}+");
            assert_eq!(sessions.change_session("1", "a", &mut |record| more(record)).unwrap(), None);
            assert!(!is_open("1", "a", 205), "what was ended stays so");
            assert_eq!(
                sessions.change_session("3", "b", &mut |record| more(record)).unwrap(),
                None,
                "it is its owner's"
            );
            // What two change at the same time has both changes.
            let mut is_second = false;
            let changed = others.change_session("3", "a", &mut |record| {
                if !std::mem::replace(&mut is_second, true) {
                    let first = sessions.change_session("3", "a", &mut |record| more(record)).unwrap();
                    assert_eq!(first.as_deref(), Some("{}+"));
                }
                more(record)
            });
            assert_eq!(changed.unwrap().as_deref(), Some("{}++"));
            assert_eq!(sessions.session("3", "a", at(205), at(10)).unwrap().as_deref(), Some("{}++"));
            // An answer is for who waits for it, once; what nobody waits for is not kept.
            assert!(!others.leave_answer("3", 7, b"yes").unwrap());
            sessions.expect_answer("3", 7, at(60)).unwrap();
            assert!(!others.leave_answer("3", 8, b"yes").unwrap() && !others.leave_answer("4", 7, b"yes").unwrap());
            assert_eq!(sessions.take_answer("3", 7).unwrap(), None);
            assert!(others.leave_answer("3", 7, b"yes").unwrap() && !others.leave_answer("3", 7, b"no").unwrap());
            for _ in 0..2 {
                assert_eq!(sessions.answer("3", 7).unwrap().as_deref(), Some(&b"yes"[..]), "whoever looks finds it");
            }
            assert_eq!(sessions.take_answer("3", 7).unwrap().as_deref(), Some(&b"yes"[..]));
            assert_eq!(others.answer("3", 7).unwrap(), None);
            assert_eq!(sessions.take_answer("3", 7).unwrap(), None);
            sessions.expect_answer("3", 9, at(60)).unwrap();
            others.forget_answer("3", 9).unwrap();
            assert!(!sessions.is_expected("3", 9).unwrap() && !others.leave_answer("3", 9, b"yes").unwrap());
        }
    }

    proptest! {
        #[test]
        fn no_minute_holds_more_calls_than_permitted(steps in proptest::collection::vec(0u64..20, 1..60), most in 1u32..5) {
            let state = MemoryState::default();
            let (mut now, mut permitted) = (1000, Vec::new());
            for step in steps {
                now += step;
                match state.take(&[want("s", "x", most, 0)], at(now), Take::Use).unwrap() {
                    Ok(()) => permitted.push(now),
                    // What the answer says is the first moment at which the call is permitted.
                    Err(exceeded) => {
                        let wait = exceeded.retry_after.unwrap();
                        prop_assert!(wait > Duration::ZERO);
                        // What is asked about later times must not be the state that goes on.
                        let early = MemoryState::default();
                        for at_second in &permitted {
                            early.take(&[want("s", "x", most, 0)], at(*at_second), Take::Use).unwrap().unwrap();
                        }
                        let look = |after: Duration| early.take(&[want("s", "x", most, 0)], at(now) + after, Take::Look).unwrap();
                        prop_assert!(look(wait - at(1)).is_err());
                        prop_assert!(look(wait).is_ok());
                    }
                }
            }
            for start in &permitted {
                let within = permitted.iter().filter(|at| (*start..*start + 60).contains(at)).count();
                prop_assert!(within <= most as usize);
            }
        }

        #[test]
        fn no_nonce_is_fresh_twice(calls in proptest::collection::vec((0u64..6, 0u64..100), 1..60)) {
            let state = MemoryState::default();
            let mut fresh = std::collections::BTreeSet::new();
            for (nonce, now) in calls {
                // Its time is signed with it, so a nonce always has the same moment.
                let (moment, name) = (at(30 + nonce * 10), nonce.to_string());
                let answer = state.remember(NonceKind::Call, &name, at(now), moment, 100).unwrap();
                if answer == Freshness::Fresh {
                    prop_assert!(fresh.insert(nonce), "{} twice", nonce);
                }
            }
        }
    }
}
