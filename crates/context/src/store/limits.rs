//! Limits on how long and how many artifacts are kept.
//!
//! A decorator over any artifact store. It evicts the artifacts that were stored first: those that are too old on every
//! call, and those that are too many after each one that is stored. The order is that of storing, by number; only age
//! needs a clock, which is passed in. Storing a handle again makes it the youngest.
//!
//! Content is counted once, however many handles refer to it. An evicted handle is remembered as evicted until it is
//! stored again or deleted, so that a model learns to repeat the call instead of doubting the handle; only the latest
//! of very many are remembered.
//!
//! An evicted artifact is gone for its readers at once, and removed from the store as soon as that works: a store that
//! refuses to remove one still serves the others.

use std::collections::{BTreeMap, VecDeque};
use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{ArtifactStore, StoreError};
use crate::event::{ArtifactRef, ContentHash, Handle};
use contextweaver_core::sync::lock;

/// The limits of a store. Without limits everything is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The time that an artifact is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Duration>,
    /// The size of all contents together at most, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<NonZeroU64>,
    /// The number of handles at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_artifacts: Option<NonZeroUsize>,
}

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The time since the start of 1970.
    fn now(&self) -> Duration;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        // A clock set before 1970 is useless: nothing gets older.
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

/// When artifacts were stored and which were evicted: what a decorator must know beyond its store. It can be saved, so
/// that ages outlive the process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// The time at which each handle was stored, oldest first.
    stored: Vec<(Handle, Duration)>,
    /// The reasons why handles were evicted.
    evicted: BTreeMap<Handle, String>,
}

/// An artifact store with limits.
#[derive(Debug)]
pub struct Limited<S, C = SystemClock> {
    store: S,
    limits: Limits,
    clock: C,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    /// The entries by the number of their storing.
    by_age: BTreeMap<u64, Entry>,
    numbers: BTreeMap<Handle, u64>,
    /// The size of each content, and the number of handles that refer to it.
    contents: BTreeMap<ContentHash, (u64, usize)>,
    bytes: u64,
    evicted: Evicted,
    /// Those that are evicted and still in the store.
    doomed: VecDeque<Handle>,
    /// When they are tried again, where one could not be removed.
    again: Duration,
    /// Those that are being stored now, with how often: they must not be removed meanwhile.
    arriving: BTreeMap<Handle, usize>,
}

/// How long removing waits after it has failed.
const PAUSE: Duration = Duration::from_secs(60);

/// How long a call removes what others have left behind: a store may be far away.
const LONGEST_REMOVAL: Duration = Duration::from_millis(100);

/// The number of evicted handles that are remembered; an older one counts as unknown.
const MOST_EVICTED: usize = 10_000;

/// The handles that were evicted last, with the reasons.
#[derive(Debug, Default)]
struct Evicted {
    reasons: BTreeMap<Handle, (u64, String)>,
    /// The handles by the number of their eviction.
    order: BTreeMap<u64, Handle>,
}

impl Evicted {
    fn insert(&mut self, handle: Handle, reason: String) {
        self.remove(&handle);
        let number = self.order.last_key_value().map_or(0, |(last, _)| last + 1);
        self.order.insert(number, handle.clone());
        self.reasons.insert(handle, (number, reason));
        if self.order.len() > MOST_EVICTED
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.reasons.remove(&oldest);
        }
    }

    fn remove(&mut self, handle: &Handle) {
        if let Some((number, _)) = self.reasons.remove(handle) {
            self.order.remove(&number);
        }
    }

    fn reason(&self, handle: &Handle) -> Option<&str> {
        self.reasons.get(handle).map(|(_, reason)| reason.as_str())
    }
}

#[derive(Debug)]
struct Entry {
    handle: Handle,
    hash: ContentHash,
    stored: Duration,
}

impl Books {
    /// Notes that the handle was stored, as the youngest.
    fn add(&mut self, reference: &ArtifactRef, stored: Duration) {
        self.remove(&reference.handle);
        self.evicted.remove(&reference.handle);
        let number = self.by_age.last_key_value().map_or(0, |(last, _)| last + 1);
        let ArtifactRef { handle, content_hash: hash, size_bytes, .. } = reference.clone();
        let content = self.contents.entry(hash.clone()).or_insert((size_bytes, 0));
        content.1 += 1;
        if content.1 == 1 {
            self.bytes += size_bytes;
        }
        self.numbers.insert(handle.clone(), number);
        self.by_age.insert(number, Entry { handle, hash, stored });
    }

    fn remove(&mut self, handle: &Handle) {
        let Some(entry) = self.numbers.remove(handle).and_then(|number| self.by_age.remove(&number)) else { return };
        if let Some((size, uses)) = self.contents.get_mut(&entry.hash) {
            *uses -= 1;
            if *uses == 0 {
                self.bytes -= *size;
                self.contents.remove(&entry.hash);
            }
        }
    }

    /// The oldest artifact and the limit that it exceeds, if any. One that is being stored again is about to be the youngest.
    fn over(&self, limits: &Limits, now: Duration) -> Option<(Handle, String)> {
        let (_, oldest) = self.by_age.first_key_value()?;
        if self.arriving.contains_key(&oldest.handle) {
            return None;
        }
        let reason = match limits {
            Limits { ttl: Some(ttl), .. } if now.saturating_sub(oldest.stored) >= *ttl => {
                format!("it was kept for {} s", ttl.as_secs_f64())
            }
            Limits { max_bytes: Some(max), .. } if self.bytes > max.get() => {
                format!("the store holds at most {max} bytes")
            }
            Limits { max_artifacts: Some(max), .. } if self.by_age.len() > max.get() => {
                format!("the store holds at most {max} artifacts")
            }
            _ => return None,
        };
        Some((oldest.handle.clone(), reason))
    }

    fn arrives(&mut self, handle: &Handle) {
        *self.arriving.entry(handle.clone()).or_default() += 1;
    }

    fn has_arrived(&mut self, handle: &Handle) {
        if let Some(times) = self.arriving.get_mut(handle) {
            *times -= 1;
            if *times == 0 {
                self.arriving.remove(handle);
            }
        }
    }
}

impl<S: ArtifactStore, C: Clock> Limited<S, C> {
    /// A decorator of `store`. Artifacts in it that are not in the ledger are as old as the store says, and otherwise
    /// count as stored now, in the order of their handles. A new decorator takes an empty ledger.
    ///
    /// # Errors
    /// [`StoreError`] when the store could not be listed.
    pub fn new(store: S, limits: Limits, clock: C, ledger: Ledger) -> Result<Self, StoreError> {
        let mut there: BTreeMap<Handle, ArtifactRef> =
            store.list()?.into_iter().map(|reference| (reference.handle.clone(), reference)).collect();
        let mut books = Books::default();
        for (handle, stored) in ledger.stored {
            if let Some(reference) = there.remove(&handle) {
                books.add(&reference, stored);
            }
        }
        let now = clock.now();
        let mut known = store.stored()?;
        known.sort_by(|(one, first), (other, second)| first.cmp(second).then_with(|| one.cmp(other)));
        for (handle, stored) in known {
            if let Some(reference) = there.remove(&handle) {
                // A clock that was set back makes nothing older than it is.
                books.add(&reference, stored.min(now));
            }
        }
        there.values().for_each(|reference| books.add(reference, now));
        for (handle, reason) in ledger.evicted {
            if !books.numbers.contains_key(&handle) {
                books.evicted.insert(handle, reason);
            }
        }
        let limited = Self { store, limits, clock, books: Mutex::new(books) };
        limited.evict(&mut lock(&limited.books));
        Ok(limited)
    }

    /// The ledger for the next decorator of the same store.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        let books = lock(&self.books);
        Ledger {
            stored: books.by_age.values().map(|entry| (entry.handle.clone(), entry.stored)).collect(),
            evicted: books
                .evicted
                .reasons
                .iter()
                .map(|(handle, (_, reason))| (handle.clone(), reason.clone()))
                .collect(),
        }
    }

    /// The store itself, consuming the decorator.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.store
    }

    /// Evicts the oldest artifacts until the limits are kept, and removes what is evicted as far as that works now.
    fn evict(&self, books: &mut Books) {
        let now = self.clock.now();
        while let Some((handle, reason)) = books.over(&self.limits, now) {
            books.remove(&handle);
            books.evicted.insert(handle.clone(), reason);
            books.doomed.push_back(handle);
        }
        // A clock that was set back must not make it wait for longer.
        if (Duration::from_nanos(1)..=PAUSE).contains(&books.again.saturating_sub(now)) {
            return;
        }
        let began = Instant::now();
        for _ in 0..books.doomed.len() {
            let Some(handle) = books.doomed.pop_front() else { break };
            let is_back = books.numbers.contains_key(&handle);
            let stays = books.arriving.contains_key(&handle);
            if !is_back && (stays || self.store.delete(&handle).is_err()) {
                books.doomed.push_back(handle);
                if !stays {
                    books.again = now + PAUSE;
                }
            }
            if began.elapsed() > LONGEST_REMOVAL {
                break;
            }
        }
        // Of very many that cannot be removed, the first are left to whoever keeps the store.
        while books.doomed.len() > MOST_EVICTED {
            books.doomed.pop_front();
        }
    }

    /// Refuses a handle that was evicted.
    fn check(&self, handle: &Handle) -> Result<(), StoreError> {
        let mut books = lock(&self.books);
        self.evict(&mut books);
        match books.evicted.reason(handle) {
            Some(reason) => Err(StoreError::Evicted { handle: handle.clone(), reason: reason.to_owned() }),
            None => Ok(()),
        }
    }

    /// The answer of the store, unless the handle was evicted in the meantime.
    fn unless_evicted<T>(&self, handle: &Handle, ask: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.check(handle)?;
        match ask() {
            Err(StoreError::NoArtifact(_)) => {
                self.check(handle)?;
                Err(StoreError::NoArtifact(handle.clone()))
            }
            other => other,
        }
    }
}

impl<S: ArtifactStore, C: Clock> ArtifactStore for Limited<S, C> {
    /// As the trait says. Artifacts that have to make room are removed after the new one is stored, so that a failure
    /// loses nothing. What cannot be removed now is removed by a later call.
    fn put(&self, handle: &Handle, bytes: &[u8], media_type: &str, label: &str) -> Result<ArtifactRef, StoreError> {
        let size = bytes.len() as u64;
        if let Some(limit) = self.limits.max_bytes.map(NonZeroU64::get).filter(|&limit| size > limit) {
            return Err(StoreError::TooLarge { handle: handle.clone(), size, limit });
        }
        // Others are served while it is stored.
        lock(&self.books).arrives(handle);
        let stored = self.store.put(handle, bytes, media_type, label);
        let mut books = lock(&self.books);
        books.has_arrived(handle);
        let reference = stored?;
        books.add(&reference, self.clock.now());
        self.evict(&mut books);
        Ok(reference)
    }

    fn get(&self, handle: &Handle) -> Result<Arc<[u8]>, StoreError> {
        self.unless_evicted(handle, || self.store.get(handle))
    }

    fn reference(&self, handle: &Handle) -> Result<ArtifactRef, StoreError> {
        self.unless_evicted(handle, || self.store.reference(handle))
    }

    fn list(&self) -> Result<Vec<ArtifactRef>, StoreError> {
        self.evict(&mut lock(&self.books));
        let mut there = self.store.list()?;
        let books = lock(&self.books);
        there.retain(|reference| books.evicted.reason(&reference.handle).is_none());
        Ok(there)
    }

    fn delete(&self, handle: &Handle) -> Result<bool, StoreError> {
        let mut books = lock(&self.books);
        let known = self.store.delete(handle)?;
        books.remove(handle);
        books.evicted.remove(handle);
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{FileArtifacts, MemoryArtifacts, SqliteStore, conformance};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Seconds that a test turns on.
    #[derive(Debug, Default)]
    struct Hand(AtomicU64);

    impl Clock for &Hand {
        fn now(&self) -> Duration {
            Duration::from_secs(self.0.load(Ordering::Relaxed))
        }
    }

    fn limits(ttl: Option<u64>, max_bytes: Option<u64>, max_artifacts: Option<usize>) -> Limits {
        Limits {
            ttl: ttl.map(Duration::from_secs),
            max_bytes: max_bytes.and_then(NonZeroU64::new),
            max_artifacts: max_artifacts.and_then(NonZeroUsize::new),
        }
    }

    fn limited(limits: Limits, clock: &Hand) -> Limited<MemoryArtifacts, &Hand> {
        Limited::new(MemoryArtifacts::default(), limits, clock, Ledger::default()).unwrap()
    }

    fn put(store: &impl ArtifactStore, handle: &str, content: &str) {
        store.put(&Handle::new(handle), content.as_bytes(), "text/plain", "").unwrap();
    }

    #[test]
    fn age_in_files_outlives_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let open = |now: u64| {
            let clock = Hand::default();
            clock.0.store(now, Ordering::Relaxed);
            let files = FileArtifacts::open(folder.path().join("files")).unwrap();
            let database = SqliteStore::open(folder.path().join("a.sqlite")).unwrap().artifacts();
            // The clock lives as long as the test.
            let clock: &Hand = Box::leak(Box::new(clock));
            let ttl = limits(Some(100), None, None);
            (
                Limited::new(files, ttl, clock, Ledger::default()).unwrap(),
                Limited::new(database, ttl, clock, Ledger::default()).unwrap(),
            )
        };
        let now = SystemClock.now().as_secs();
        let (files, database) = open(now);
        put(&files, "a", "x");
        put(&database, "a", "x");
        let (files, database) = open(now + 50);
        assert_eq!([there(&files), there(&database)], ["a", "a"]);
        let (files, database) = open(now + 150);
        assert_eq!([there(&files), there(&database)], ["", ""]);
    }

    /// The handles that are there.
    fn there(store: &impl ArtifactStore) -> String {
        let handles: Vec<String> = store.list().unwrap().into_iter().map(|one| one.handle.to_string()).collect();
        handles.join(" ")
    }

    fn refused(store: &impl ArtifactStore, handle: &str) -> String {
        let handle = Handle::new(handle);
        let error = store.get(&handle).unwrap_err().to_string();
        assert_eq!(store.reference(&handle).unwrap_err().to_string(), error);
        error
    }

    /// A store from which nothing can be removed, while it says so.
    #[derive(Debug, Default)]
    struct Stubborn {
        store: MemoryArtifacts,
        keeps: std::sync::atomic::AtomicBool,
        asked: AtomicU64,
    }

    impl ArtifactStore for Stubborn {
        fn put(&self, handle: &Handle, bytes: &[u8], kind: &str, label: &str) -> Result<ArtifactRef, StoreError> {
            self.store.put(handle, bytes, kind, label)
        }

        fn get(&self, handle: &Handle) -> Result<Arc<[u8]>, StoreError> {
            self.store.get(handle)
        }

        fn reference(&self, handle: &Handle) -> Result<ArtifactRef, StoreError> {
            self.store.reference(handle)
        }

        fn list(&self) -> Result<Vec<ArtifactRef>, StoreError> {
            self.store.list()
        }

        fn delete(&self, handle: &Handle) -> Result<bool, StoreError> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if self.keeps.load(Ordering::Relaxed) {
                return Err(StoreError::Backend { place: "s3://b".to_owned(), reason: "denied".to_owned() });
            }
            self.store.delete(handle)
        }
    }

    #[test]
    fn one_that_cannot_be_removed_takes_nothing_away_from_the_others() {
        let clock = Hand::default();
        let stubborn = Stubborn::default();
        stubborn.keeps.store(true, Ordering::Relaxed);
        let two = limits(None, None, Some(2));
        let store = Limited::new(stubborn, two, &clock, Ledger::default()).unwrap();
        for handle in ["a", "b", "c", "d"] {
            put(&store, handle, handle);
        }
        assert_eq!(there(&store), "c d");
        assert!(refused(&store, "a").contains("was evicted"));
        assert_eq!(*store.get(&Handle::new("d")).unwrap(), *b"d");
        // It is asked once, and not again with every call.
        let stubborn = store.into_inner();
        assert_eq!((there(&stubborn).as_str(), stubborn.asked.load(Ordering::Relaxed)), ("a b c d", 1));
        // A new start works too. What can be removed again is removed after a pause, unless it is back.
        let store = Limited::new(stubborn, two, &clock, Ledger::default()).unwrap();
        put(&store, "a", "a");
        store.store.keeps.store(false, Ordering::Relaxed);
        assert_eq!((there(&store).as_str(), there(&store.store).as_str()), ("a d", "a b c d"));
        clock.0.store(PAUSE.as_secs(), Ordering::Relaxed);
        assert_eq!((there(&store).as_str(), there(&store.store).as_str()), ("a d", "a d"));
    }

    #[test]
    fn evictions_are_remembered_up_to_a_bound() {
        let mut evicted = Evicted::default();
        let handle = |number: usize| Handle::new(format!("h{number}"));
        for number in 0..MOST_EVICTED + 2 {
            evicted.insert(handle(number), number.to_string());
        }
        evicted.insert(handle(2), "again".to_owned());
        evicted.insert(handle(MOST_EVICTED + 2), "last".to_owned());
        assert_eq!((evicted.reason(&handle(1)), evicted.reason(&handle(2))), (None, Some("again")));
        assert_eq!((evicted.reason(&handle(3)), evicted.order.len()), (None, MOST_EVICTED));
        evicted.remove(&handle(4));
        assert_eq!((evicted.reasons.len(), evicted.order.len()), (MOST_EVICTED - 1, MOST_EVICTED - 1));
    }

    #[test]
    fn without_limits_the_rules_of_the_store_hold() {
        let clock = Hand::default();
        conformance::artifacts(|| limited(Limits::default(), &clock)).unwrap();
    }

    #[test]
    fn the_first_stored_goes_first() {
        let clock = Hand::default();
        let store = limited(limits(None, None, Some(3)), &clock);
        for handle in ["d", "c", "b"] {
            put(&store, handle, handle);
        }
        put(&store, "d", "again");
        put(&store, "a", "a");
        assert_eq!(there(&store), "a b d");
        assert_eq!(
            refused(&store, "c"),
            "the artifact `c` was evicted (the store holds at most 3 artifacts); call the tool again to get its content"
        );
        put(&store, "c", "back");
        assert_eq!(there(&store), "a c d");
        assert_eq!(&*store.get(&Handle::new("c")).unwrap(), b"back");
        store.delete(&Handle::new("b")).unwrap();
        assert_eq!(refused(&store, "b"), "no artifact `b`");
        assert_eq!(refused(&store, "z"), "no artifact `z`");
    }

    #[test]
    fn shared_content_counts_once() {
        let clock = Hand::default();
        let store = limited(limits(None, Some(10), None), &clock);
        put(&store, "a", "1234567");
        put(&store, "b", "1234567");
        put(&store, "c", "123");
        assert_eq!(there(&store), "a b c");
        // Both handles of the content must go before there is room.
        put(&store, "d", "4");
        assert_eq!(there(&store), "c d");
        assert!(refused(&store, "a").contains("(the store holds at most 10 bytes)"));
        let large = store.put(&Handle::new("e"), b"12345678901", "", "").unwrap_err();
        assert_eq!(large.to_string(), "the artifact `e` has 11 bytes; the store holds at most 10");
        assert_eq!(there(&store), "c d");
        // Replaced content no longer counts.
        put(&store, "d", "1234567");
        put(&store, "d", "7654321");
        assert_eq!(there(&store), "c d");
    }

    #[test]
    fn what_is_too_old_goes_whenever_the_store_is_asked() {
        let clock = Hand::default();
        let store = limited(limits(Some(10), None, None), &clock);
        put(&store, "a", "a");
        clock.0.store(5, Ordering::Relaxed);
        put(&store, "b", "b");
        clock.0.store(9, Ordering::Relaxed);
        assert_eq!(there(&store), "a b");
        clock.0.store(10, Ordering::Relaxed);
        assert!(refused(&store, "a").contains("(it was kept for 10 s)"));
        // The ledger carries age and evictions over to the next process.
        let ledger: Ledger = serde_json::from_str(&serde_json::to_string(&store.ledger()).unwrap()).unwrap();
        let store = Limited::new(store.into_inner(), limits(Some(10), None, None), &clock, ledger).unwrap();
        assert_eq!(there(&store), "b");
        assert!(refused(&store, "a").contains("was evicted"));
        clock.0.store(15, Ordering::Relaxed);
        assert_eq!(there(&store), "");
        // A clock that goes back evicts nothing.
        put(&store, "c", "c");
        clock.0.store(0, Ordering::Relaxed);
        assert_eq!(there(&store), "c");
    }

    #[test]
    fn what_is_there_already_counts() {
        let clock = Hand::default();
        let inner = MemoryArtifacts::default();
        for handle in ["a", "b", "c"] {
            put(&inner, handle, handle);
        }
        let store = Limited::new(&inner, limits(None, None, Some(2)), &clock, Ledger::default()).unwrap();
        assert_eq!((there(&store), there(&inner)), ("b c".to_owned(), "b c".to_owned()));
    }

    proptest::proptest! {
        #[test]
        fn limits_are_kept_and_the_store_agrees_with_the_books(
            steps in proptest::collection::vec((0usize..6, 0usize..5, proptest::bool::ANY), 0..40)
        ) {
            let clock = Hand::default();
            let store = limited(limits(None, Some(20), Some(4)), &clock);
            for (handle, size, delete) in steps {
                let handle = Handle::new(handle.to_string());
                if delete {
                    store.delete(&handle).unwrap();
                } else {
                    store.put(&handle, &vec![size as u8; size * 4], "", "").unwrap();
                }
                let list = store.list().unwrap();
                let sizes: BTreeMap<_, _> = list.iter().map(|one| (&one.content_hash, one.size_bytes)).collect();
                let bytes: u64 = sizes.values().sum();
                proptest::prop_assert!(bytes <= 20 && list.len() <= 4);
                let books = lock(&store.books);
                proptest::prop_assert_eq!((books.bytes, books.by_age.len()), (bytes, list.len()));
            }
        }
    }
}
