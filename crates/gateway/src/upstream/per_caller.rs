//! Connections of which every caller has its own.
//!
//! A connection is for one token: what one caller was given, no other is, and what one token permits, no other does. They
//! are bounded in number, altogether and for each caller; those that nobody has used for a while, and those whose token
//! ends, are closed.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::fault::Fault;
use crate::common::sync::lock;
use crate::session::client::Caller;
use crate::session::identity::Presented;

/// Connections to one upstream, at most.
const MOST: usize = 1_000;

/// Connections of one caller to one upstream, at most: one for each of its tokens.
const MOST_OF_ONE: usize = 8;

/// How long a connection is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(5 * 60);

/// How often those are looked for.
const SWEEP: Duration = Duration::from_secs(30);

/// How long a failure to get credentials stands for the next tries, and credentials that the server refuses.
pub(super) const GRUDGE: Duration = Duration::from_secs(1);

/// What is closed when it is not needed any more.
pub(super) trait Connection: Send + Sync + 'static {
    /// Ends it.
    fn end(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// Connections, by caller and token.
#[derive(Debug)]
pub(super) struct PerCaller<C> {
    slots: Mutex<HashMap<[u8; 32], Arc<Slot<C>>>>,
}

#[derive(Debug)]
struct Slot<C> {
    tenant: String,
    used: Mutex<Instant>,
    /// Held while a connection is prepared, so that one token is exchanged once at a time.
    state: Arc<tokio::sync::Mutex<State<C>>>,
    /// The task that prepares it.
    making: Mutex<Option<AbortHandle>>,
}

#[derive(Debug)]
enum State<C> {
    Empty,
    Failed { fault: Fault, at: Instant },
    Ready { connection: Arc<C>, since: Instant, until: Instant },
}

impl<C: Connection> PerCaller<C> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { slots: Mutex::default() })
    }

    /// The connection of the caller; `make` makes one with when it ends, where there is none that still is good. That goes
    /// on when the call has ended that began it, and the next call finds what came of it.
    ///
    /// # Errors
    /// There are too many in use, or it cannot be made.
    pub(super) async fn of<F: Future<Output = Result<(C, Instant), Fault>> + Send + 'static>(
        self: &Arc<Self>,
        caller: &Caller,
        shown: &Presented,
        make: impl FnOnce() -> F,
    ) -> Result<Arc<C>, Fault> {
        let slot = self.slot(caller.session().tenant(), shown)?;
        let mut state = Arc::clone(&slot.state).lock_owned().await;
        *lock(&slot.used) = Instant::now();
        match &*state {
            State::Ready { connection, until, .. } if *until > Instant::now() => return Ok(Arc::clone(connection)),
            State::Failed { fault, at } if at.elapsed() < GRUDGE => return Err(fault.clone()),
            _ => {}
        }
        if let State::Ready { connection, .. } = std::mem::replace(&mut *state, State::Empty) {
            end_unless_used(connection);
        }
        let make = make();
        let making = tokio::spawn(async move {
            let made = make.await.map(|(connection, until)| (Arc::new(connection), until));
            let now = Instant::now();
            *state = match &made {
                Ok((connection, until)) => {
                    State::Ready { connection: Arc::clone(connection), since: now, until: *until }
                }
                Err(fault) => State::Failed { fault: fault.clone(), at: now },
            };
            made.map(|(connection, _)| connection)
        });
        *lock(&slot.making) = Some(making.abort_handle());
        making.await.unwrap_or_else(|_| Err(Fault::Unavailable("getting a token for it was broken off".to_owned())))
    }

    /// Gives a connection up whose server refuses the credentials, so that the next is made with others. Whether the caller
    /// has no connection now: one that was made a moment ago stays, or a server that refuses all would have them made for
    /// every call.
    pub(super) fn give_up(&self, caller: &Caller, shown: &Presented, refused: Arc<C>) -> bool {
        let Some(slot) = lock(&self.slots).get(&key_of(caller.session().tenant(), shown)).cloned() else {
            return false;
        };
        // Where it is held, another is being made.
        let Ok(mut state) = slot.state.try_lock() else { return true };
        match &*state {
            State::Ready { connection, since, .. }
                if Arc::ptr_eq(connection, &refused) && since.elapsed() >= GRUDGE => {}
            // Another call has given it up.
            State::Ready { connection, .. } => return !Arc::ptr_eq(connection, &refused),
            _ => return true,
        }
        drop(refused);
        if let State::Ready { connection, .. } = std::mem::replace(&mut *state, State::Empty) {
            end_unless_used(connection);
        }
        true
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        lock(&self.slots).len()
    }

    /// Closes all of them, side by side: none waits for another that is slow to end.
    pub(super) async fn close(&self) {
        let slots = std::mem::take(&mut *lock(&self.slots));
        let ends = slots.into_values().map(|slot| async move {
            lock(&slot.making).take().iter().for_each(AbortHandle::abort);
            let state = std::mem::replace(&mut *slot.state.lock().await, State::Empty);
            if let State::Ready { connection, .. } = state {
                connection.end().await;
            }
        });
        ends.collect::<JoinSet<()>>().join_all().await;
    }

    fn slot(self: &Arc<Self>, tenant: &str, shown: &Presented) -> Result<Arc<Slot<C>>, Fault> {
        let key = key_of(tenant, shown);
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get(&key) {
            return Ok(Arc::clone(slot));
        }
        let is_own = |slot: &Slot<C>| slot.tenant == tenant;
        if slots.values().filter(|slot| is_own(slot)).count() >= MOST_OF_ONE {
            make_room(&mut slots, is_own)?;
        } else if slots.len() >= MOST {
            make_room(&mut slots, |_| true)?;
        }
        let slot = Arc::new(Slot {
            tenant: tenant.to_owned(),
            used: Mutex::new(Instant::now()),
            state: Arc::new(tokio::sync::Mutex::new(State::Empty)),
            making: Mutex::default(),
        });
        if slots.is_empty() {
            tokio::spawn(Self::sweep(Arc::downgrade(self)));
        }
        slots.insert(key, Arc::clone(&slot));
        Ok(slot)
    }

    /// Closes those that are not needed any more, until there are none.
    async fn sweep(connections: Weak<Self>) {
        loop {
            tokio::time::sleep(SWEEP).await;
            let Some(connections) = connections.upgrade() else { return };
            if connections.sweep_at(Instant::now()) {
                return;
            }
        }
    }

    /// Closes those that have not been used for long, or whose token has ended; whether none is left.
    fn sweep_at(&self, now: Instant) -> bool {
        let mut slots = lock(&self.slots);
        slots.retain(|_, slot| {
            let is_idle = now.saturating_duration_since(*lock(&slot.used)) >= IDLE;
            let has_ended = || match slot.state.try_lock().as_deref() {
                Ok(State::Ready { until, .. }) => *until <= now,
                _ => false,
            };
            !((is_idle || has_ended()) && is_free(slot) && release(slot))
        });
        slots.is_empty()
    }
}

/// What stands for a token of a caller.
fn key_of(tenant: &str, shown: &Presented) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in [tenant.as_bytes(), b"\0", shown.token.text().as_bytes()] {
        digest.update(part);
    }
    digest.finalize().into()
}

/// Whether no call is on its way with it. Nobody finds it meanwhile: the map of all is held.
fn is_free<C>(slot: &Arc<Slot<C>>) -> bool {
    let is_unused = || match slot.state.try_lock().as_deref() {
        Ok(State::Ready { connection, .. }) => Arc::strong_count(connection) == 1,
        Ok(_) => true,
        Err(_) => false,
    };
    Arc::strong_count(slot) == 1 && is_unused()
}

/// Closes the connection of a slot that is free.
fn release<C: Connection>(slot: &Slot<C>) -> bool {
    let Ok(mut state) = slot.state.try_lock() else { return false };
    if let State::Ready { connection, .. } = std::mem::replace(&mut *state, State::Empty) {
        end_unless_used(connection);
    }
    true
}

/// Ends a connection that no call is on its way with; another ends with its last call.
fn end_unless_used<C: Connection>(connection: Arc<C>) {
    if Arc::strong_count(&connection) == 1 {
        tokio::spawn(connection.end());
    }
}

/// Closes the one of these that has not been used for the longest time.
fn make_room<C: Connection>(
    slots: &mut HashMap<[u8; 32], Arc<Slot<C>>>,
    may_go: impl Fn(&Slot<C>) -> bool,
) -> Result<(), Fault> {
    let free = slots.iter().filter(|(_, slot)| may_go(slot) && is_free(slot));
    let oldest = free.min_by_key(|(_, slot)| *lock(&slot.used)).map(|(key, _)| *key);
    let slot = oldest.and_then(|oldest| slots.remove(&oldest));
    let busy = "too many callers, or tokens of one caller, use it at this moment; try again later";
    slot.filter(|slot| release(slot)).map(drop).ok_or_else(|| Fault::Unavailable(busy.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::mpsc;

    use crate::common::secret::Secret;
    use crate::protocol::client_info::ClientInfo;
    use crate::session::client::Session;
    use crate::session::identity::Identity;

    /// A connection that counts when it ends.
    #[derive(Debug)]
    struct Counted(Arc<AtomicUsize>);

    impl Connection for Counted {
        fn end(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(async move {
                self.0.fetch_add(1, Ordering::SeqCst);
            })
        }
    }

    fn caller(name: &str) -> Caller {
        let identity = Identity { name: name.to_owned(), profile: None };
        Caller::new(Session::of("s", Arc::new(identity)), ClientInfo::default(), mpsc::channel(1).0)
    }

    fn shown(token: &str) -> Presented {
        let until = Instant::now() + Duration::from_secs(3_600);
        Presented { token: Secret::new(token), issuer: String::new(), audiences: Vec::new(), until }
    }

    async fn of(
        all: &Arc<PerCaller<Counted>>,
        name: &str,
        token: &str,
        ended: &Arc<AtomicUsize>,
    ) -> Result<Arc<Counted>, Fault> {
        let made = Ok((Counted(Arc::clone(ended)), Instant::now() + Duration::from_secs(600)));
        all.of(&caller(name), &shown(token), || async { made }).await
    }

    #[tokio::test]
    async fn connections_are_apart_bounded_and_closed_when_nobody_uses_them() {
        let (all, ended) = (PerCaller::new(), Arc::new(AtomicUsize::new(0)));
        let of = async |name: &str, token: &str| of(&all, name, token, &ended).await;
        let ended = || ended.load(Ordering::SeqCst);
        let ann = of("ann", "t").await.unwrap();
        assert!(Arc::ptr_eq(&ann, &of("ann", "t").await.unwrap()));
        assert!(!Arc::ptr_eq(&ann, &of("bob", "t").await.unwrap()), "one token of two callers");
        assert!(!Arc::ptr_eq(&ann, &of("ann", "u").await.unwrap()), "two tokens of one caller");
        for number in 0..MOST_OF_ONE {
            of("ann", &number.to_string()).await.unwrap();
        }
        assert_eq!(all.count(), MOST_OF_ONE + 1);
        assert!(Arc::ptr_eq(&ann, &of("ann", "t").await.unwrap()), "what is in use stays");
        let mut used = vec![ann];
        for number in 1..MOST_OF_ONE {
            used.push(of("ann", &number.to_string()).await.unwrap());
        }
        let busy = of("ann", "one too many").await.unwrap_err().to_string();
        assert!(busy.contains("too many"), "{busy}");
        assert!(of("bob", "t").await.is_ok(), "nobody else is held up");
        drop(used);
        assert!(!all.sweep_at(Instant::now()), "they are not idle yet");
        assert!(all.sweep_at(Instant::now() + IDLE));
        tokio::task::yield_now().await;
        assert_eq!((all.count(), ended()), (0, MOST_OF_ONE + 3));
        // It goes on after that.
        of("ann", "t").await.unwrap();
        assert_eq!(all.count(), 1);
        all.close().await;
        assert_eq!(all.count(), 0);
    }

    /// A connection that ends when as many others are ending.
    #[derive(Debug)]
    struct Slow(Arc<tokio::sync::Barrier>);

    impl Connection for Slow {
        fn end(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(async move {
                self.0.wait().await;
            })
        }
    }

    #[tokio::test]
    async fn at_the_end_none_waits_for_another() {
        let (all, together) = (PerCaller::new(), Arc::new(tokio::sync::Barrier::new(3)));
        for name in ["ann", "bob", "cyd"] {
            let made = Ok((Slow(Arc::clone(&together)), Instant::now() + Duration::from_secs(600)));
            all.of(&caller(name), &shown("t"), || async { made }).await.unwrap();
        }
        tokio::time::timeout(Duration::from_secs(5), all.close()).await.expect("they end one after the other");
    }

    #[tokio::test]
    async fn what_takes_longer_than_a_call_is_found_by_the_next_and_given_up_at_the_end() {
        let (all, tries) = (PerCaller::new(), AtomicUsize::new(0));
        let of = |name: &'static str, takes: Duration| {
            let (all, tries) = (&all, &tries);
            let make = move || {
                tries.fetch_add(1, Ordering::SeqCst);
                let made = Ok((Counted(Arc::default()), Instant::now() + Duration::from_secs(600)));
                async move {
                    tokio::time::sleep(takes).await;
                    made
                }
            };
            async move { all.of(&caller(name), &shown("t"), make).await }
        };
        let (slow, endless) = (Duration::from_millis(100), Duration::from_secs(600));
        assert!(tokio::time::timeout(slow / 10, of("ann", slow)).await.is_err());
        of("ann", slow).await.unwrap();
        assert_eq!(tries.load(Ordering::SeqCst), 1);
        let (broken_off, ()) = tokio::join!(biased; of("bob", endless), all.close());
        assert!(matches!(broken_off, Err(Fault::Unavailable(_))), "{broken_off:?}");
    }

    #[tokio::test]
    async fn what_ends_is_made_anew_and_what_fails_is_not_tried_at_once() {
        let (all, ended) = (PerCaller::new(), Arc::new(AtomicUsize::new(0)));
        let of = async |seconds: f64| {
            let until = Instant::now() + Duration::from_secs_f64(seconds);
            let made = Ok((Counted(Arc::clone(&ended)), until));
            all.of(&caller("ann"), &shown("t"), || async { made }).await.unwrap()
        };
        let first = of(0.05).await;
        tokio::time::sleep(Duration::from_millis(60)).await;
        let second = of(60.0).await;
        assert!(!Arc::ptr_eq(&first, &second) && Arc::ptr_eq(&second, &of(60.0).await));
        let tries = AtomicUsize::new(0);
        for (wait, expected) in [(Duration::ZERO, 1), (Duration::ZERO, 1), (GRUDGE, 2)] {
            tokio::time::sleep(wait).await;
            let failing = || {
                tries.fetch_add(1, Ordering::SeqCst);
                async { Err(Fault::Credentials("no".to_owned())) }
            };
            let failed = all.of(&caller("bob"), &shown("t"), failing).await;
            assert!(matches!(failed, Err(Fault::Credentials(_))));
            assert_eq!(tries.load(Ordering::SeqCst), expected);
        }
    }
}
