//! Work on what came from outside that may take long: validation, ranking, views, summaries, cleaning.
//!
//! It never runs on a thread that serves messages, at most a few pieces of it run at a time, however many clients ask
//! for it, and who waits for longer than its budget gets an error that says what was asked too much of. So what one
//! client asks for delays others that ask for the same kind of work, and nobody else: a request that needs none of it,
//! such as `/healthz`, waits for none.
//!
//! One caller has at most half of the places, however much it asks for: what another asks for begins all the same. The only
//! client of a process has all of them.
//!
//! Work that has begun is not interrupted; each kind of it counts its own steps. It keeps its place until it ends, also
//! when nobody waits for it any more, so that abandoned work cannot pile up. While it waits for a network or a program it needs
//! no processor: then it lends its place to other work, also of its caller. On a runtime with one thread there is nobody else
//! to delay: work runs where it is.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, Weak};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::sync::lock;

/// What one piece of work of a request may take, with the wait for its turn.
pub(crate) const BUDGET: Duration = Duration::from_secs(30);

/// Bytes from which reading, checking or cleaning a text counts as long.
pub(crate) const LARGE: usize = 64 * 1024;

/// Bytes from which finding the parts of a message counts as long: it takes some 30 ms for 10 MB.
pub(crate) const LONG_MESSAGE: usize = 1024 * 1024;

/// Pieces of work that run at a time: one processor stays free for messages, where there are more than two.
static PLACES: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(places()));

/// How many there are, at least two.
pub(crate) fn places() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).saturating_sub(1).max(2)
}

/// Pieces of work that lend their place while they wait, at most: each keeps a thread.
static LENT: Semaphore = Semaphore::const_new(128);

/// Pieces of work that one caller has begun, most of which wait for a network or a program then, at most: each keeps a thread.
const OWN_BEGUN: usize = 32;

/// How long work that has waited waits for a place again. It goes on without one then: what it holds, such as a lock of a
/// store, may be what the work in all places waits for.
const AGAIN: Duration = Duration::from_millis(50);

/// What one caller may have.
struct Own {
    begun: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

/// That of each caller that has work.
static OWN: Mutex<Option<HashMap<Arc<str>, Weak<Own>>>> = Mutex::new(None);

tokio::task_local! {
    /// Whose request the task serves.
    static WHOSE: Arc<str>;
}

/// Serves a request of a caller: the long work in it is that caller's.
pub(crate) async fn work_of<T>(whose: &str, serving: impl Future<Output = T>) -> T {
    WHOSE.scope(Arc::from(whose), serving).await
}

/// What a caller may have.
fn own(whose: &Arc<str>) -> Arc<Own> {
    let mut all = lock(&OWN);
    let all = all.get_or_insert_default();
    if let Some(own) = all.get(whose).and_then(Weak::upgrade) {
        return own;
    }
    // Those of callers without work are forgotten.
    all.retain(|_, own| own.strong_count() > 0);
    let own =
        Arc::new(Own { begun: Arc::new(Semaphore::new(OWN_BEGUN)), places: Arc::new(Semaphore::new(places() / 2)) });
    all.insert(Arc::clone(whose), Arc::downgrade(&own));
    own
}

/// The right to do a piece of long work.
struct Place {
    own: Option<OwnPlace>,
    of_all: Option<SemaphorePermit<'static>>,
}

/// The place among those of a caller.
struct OwnPlace {
    own: Arc<Own>,
    _begun: OwnedSemaphorePermit,
    /// None while it is lent, and where it was not to be had again in time.
    place: Option<OwnedSemaphorePermit>,
}

thread_local! {
    /// The place of the work that this thread does.
    static HELD: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// Gives the place back when the work ends, however it does.
struct Holding;

impl Holding {
    fn begin(place: Place) -> Self {
        HELD.set(Some(place));
        Self
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        HELD.take();
    }
}

/// Waits for what needs no processor, such as an answer over a network. Meanwhile other work may use the place of this
/// one, also that of the same caller, of which a bounded number of pieces begin.
pub fn while_waiting<T>(wait: impl FnOnce() -> T) -> T {
    let mut held = HELD.take();
    let (Some(Place { own: Some(OwnPlace { own, place, .. }), of_all }), Ok(lent), Ok(runtime)) =
        (&mut held, LENT.try_acquire(), Handle::try_current())
    else {
        HELD.set(held);
        return wait();
    };
    (*place, *of_all) = (None, None);
    let value = wait();
    // First among the work of the same caller, as it began. No semaphore is ever closed.
    let own = Arc::clone(&own.places).acquire_owned();
    *place = runtime.block_on(tokio::time::timeout(AGAIN, own)).ok().and_then(Result::ok);
    *of_all = runtime.block_on(tokio::time::timeout(AGAIN, PLACES.acquire())).ok().and_then(Result::ok);
    drop(lent);
    HELD.set(held);
    value
}

/// Waits for a place, first among the work of the same caller: of each caller no more wait for one of all places than may
/// have one.
async fn place(budget: Duration) -> Result<Place, Exhausted> {
    let own = WHOSE.try_with(own).ok();
    let waiting = async {
        // No semaphore is ever closed.
        let own = match own {
            Some(own) => match Arc::clone(&own.begun).acquire_owned().await {
                Ok(begun) => {
                    let place = Arc::clone(&own.places).acquire_owned().await.ok();
                    Some(OwnPlace { own, _begun: begun, place })
                }
                Err(_) => None,
            },
            None => None,
        };
        Place { own, of_all: PLACES.acquire().await.ok() }
    };
    tokio::time::timeout(budget, waiting).await.map_err(|_| Exhausted::Busy(budget))
}

/// Work was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Exhausted {
    /// Its turn did not come.
    #[error("waited {} s for other work of the gateway; try again later", .0.as_secs_f64())]
    Busy(Duration),
    /// It took too long.
    #[error("took longer than {} s", .0.as_secs_f64())]
    TooLong(Duration),
    /// It was not begun: what it is about has more values than are read at once.
    #[error("is given up: there are more than {0} values in it")]
    TooMuch(usize),
    /// It was not begun: what it is about cannot be read.
    #[error("is given up: it is nested too deeply, or has a number that is too large")]
    Unreadable,
    /// The thread that did it ended early.
    #[error("broke off")]
    Stopped,
}

fn has_threads() -> bool {
    Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Does work that borrows, when its turn comes.
///
/// # Errors
/// The turn did not come within the budget.
pub(crate) async fn in_turn<T>(work: impl FnOnce() -> T) -> Result<T, Exhausted> {
    in_turn_within(BUDGET, work).await
}

async fn in_turn_within<T>(budget: Duration, work: impl FnOnce() -> T) -> Result<T, Exhausted> {
    if !has_threads() {
        return Ok(work());
    }
    let place = place(budget).await?;
    let done = tokio::task::block_in_place(work);
    drop(place);
    Ok(done)
}

/// Does work that may be long, or not: only long work waits for its turn.
///
/// # Errors
/// As [`in_turn`].
pub(crate) async fn in_turn_if<T>(is_long: bool, work: impl FnOnce() -> T) -> Result<T, Exhausted> {
    // In a box: what is seldom awaited would be copied with every request otherwise.
    if is_long { Box::pin(in_turn(work)).await } else { Ok(work()) }
}

/// Does work without a turn, and where it is long not on a thread that serves messages: for what a connection does with one
/// message at a time.
pub(crate) fn block_in_place_if<T>(is_long: bool, work: impl FnOnce() -> T) -> T {
    if is_long && has_threads() { tokio::task::block_in_place(work) } else { work() }
}

/// Does work on a thread of its own, when its turn comes, and gives it up after the budget. Figures that are taken with
/// one thread do not depend on how busy the machine is.
///
/// # Errors
/// It took longer, or broke off.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Exhausted> {
    aside_within(BUDGET, work).await
}

async fn aside_within<T: Send + 'static>(
    budget: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Exhausted> {
    aside_after(budget, budget, work).await
}

/// As [`aside`], for work that has `patience` for its turn, and `budget` with the wait for it.
///
/// # Errors
/// As [`aside`].
pub(crate) async fn aside_after<T: Send + 'static>(
    patience: Duration,
    budget: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Exhausted> {
    if !has_threads() {
        return Ok(work());
    }
    let start = std::time::Instant::now();
    let place = place(patience).await?;
    let working = tokio::task::spawn_blocking(move || {
        let _holding = Holding::begin(place);
        work()
    });
    match tokio::time::timeout(budget.saturating_sub(start.elapsed()), working).await {
        Ok(done) => done.map_err(|_| Exhausted::Stopped),
        Err(_) => Err(Exhausted::TooLong(budget)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread::sleep;
    use std::time::Instant;

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    /// One test, since all work of a process shares the places.
    #[test]
    fn work_that_does_not_end_costs_its_caller_and_nobody_else() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let (end, ended) = channel::<()>();
            let ended = std::sync::Mutex::new(ended);
            let endless = std::sync::Arc::new(move || ended.lock().unwrap().recv().unwrap_or_default());
            let mut outcomes = Vec::new();
            for _ in 0..places() {
                let endless = std::sync::Arc::clone(&endless);
                outcomes.push(tokio::spawn(async move { aside_within(SHORT, move || endless()).await }));
            }
            for outcome in outcomes {
                assert_eq!(outcome.await.unwrap(), Err(Exhausted::TooLong(SHORT)));
            }
            // What was given up has its place still: more of it does not begin, and what is short goes on.
            let more = tokio::spawn(async { (in_turn_within(SHORT, || ()).await, aside_within(SHORT, || ()).await) });
            assert_eq!(more.await.unwrap(), (Err(Exhausted::Busy(SHORT)), Err(Exhausted::Busy(SHORT))));
            let start = Instant::now();
            tokio::spawn(async { in_turn_if(false, || ()).await }).await.unwrap().unwrap();
            assert!(start.elapsed() < SHORT);
            drop(end);
            let after = tokio::spawn(async { in_turn(|| 1).await });
            assert_eq!(after.await.unwrap(), Ok(1));
            // One caller that takes all it can get leaves room for others.
            let (end, ended) = channel::<()>();
            let ended = std::sync::Mutex::new(ended);
            let endless = std::sync::Arc::new(move || ended.lock().unwrap().recv().unwrap_or_default());
            let greedy: Vec<_> = (0..4 * places())
                .map(|_| {
                    let endless = std::sync::Arc::clone(&endless);
                    tokio::spawn(work_of("greedy", async move { aside_within(4 * SHORT, move || endless()).await }))
                })
                .collect();
            tokio::task::yield_now().await;
            tokio::time::sleep(SHORT).await;
            let other =
                work_of("other", async { (in_turn_within(SHORT, || 1).await, aside_within(SHORT, || 2).await) });
            assert_eq!(tokio::spawn(other).await.unwrap(), (Ok(1), Ok(2)));
            let more = tokio::spawn(work_of("greedy", in_turn_within(SHORT, || ())));
            assert_eq!(more.await.unwrap(), Err(Exhausted::Busy(SHORT)));
            drop(end);
            for outcome in greedy {
                let _ = outcome.await.unwrap();
            }
            assert_eq!(tokio::spawn(work_of("greedy", in_turn(|| 3))).await.unwrap(), Ok(3));
            // What waits for a network costs nobody, its own caller neither, however many callers do.
            let (end, ended) = channel::<()>();
            let ended = std::sync::Mutex::new(ended);
            let answer = std::sync::Arc::new(move || ended.lock().unwrap().recv().unwrap_or_default());
            let waits = |caller: usize| {
                let answer = std::sync::Arc::clone(&answer);
                let work = async move { aside_within(40 * SHORT, move || while_waiting(|| answer())).await };
                tokio::spawn(async move { work_of(&format!("of a bucket {caller}"), work).await })
            };
            let callers = (1..2 * places()).chain([0; OWN_BEGUN - 1]);
            let mut waiting: Vec<_> = callers.map(waits).collect();
            tokio::time::sleep(SHORT).await;
            for whose in ["other", "of a bucket 0"] {
                let more = work_of(whose, async { aside_within(4 * SHORT, || 2).await });
                assert_eq!(tokio::spawn(more).await.unwrap(), Ok(2), "{whose}");
            }
            waiting.push(waits(0));
            tokio::time::sleep(SHORT).await;
            let more = tokio::spawn(work_of("of a bucket 0", in_turn_within(SHORT, || ())));
            assert_eq!(more.await.unwrap(), Err(Exhausted::Busy(SHORT)), "a caller begins only so many");
            drop(end);
            for outcome in waiting {
                assert_eq!(outcome.await.unwrap(), Ok(()));
            }
            // What one piece holds while it waits may be what the next one of its caller waits for.
            let store = std::sync::Arc::new(std::sync::Mutex::new(()));
            let one_by_one: Vec<_> = (0..=places())
                .map(|_| {
                    let store = std::sync::Arc::clone(&store);
                    let work = move || {
                        let held = store.lock().unwrap();
                        while_waiting(|| sleep(SHORT));
                        drop(held);
                    };
                    tokio::spawn(work_of("of a store", async move { aside_within(40 * SHORT, work).await }))
                })
                .collect();
            for outcome in one_by_one {
                assert_eq!(outcome.await.unwrap(), Ok(()));
            }
            // While work runs in its place, the only worker serves others.
            let (long, short) = (tokio::spawn(in_turn(|| sleep(4 * SHORT))), Instant::now());
            tokio::spawn(tokio::task::yield_now()).await.unwrap();
            assert!(short.elapsed() < 3 * SHORT);
            long.await.unwrap().unwrap();
        });
    }
}
