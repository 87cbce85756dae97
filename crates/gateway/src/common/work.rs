//! Work on what came from outside that may take long: validation, ranking, views, summaries, cleaning.
//!
//! It never runs on a thread that serves messages, at most a few pieces of it run at a time, however many clients ask
//! for it, and whose request has no time left for it gets an error that says what was asked too much of. So what one
//! client asks for delays others that ask for the same kind of work, and nobody else: a request that needs none of it,
//! such as `/healthz`, waits for none.
//!
//! One caller has at most half of the places, however much it asks for: what another asks for begins all the same. The only
//! client of a process has all of them.
//!
//! All work of a request draws from one [`Budget`], also what is short; what is for no request, such as an index that is
//! made in the background, draws from none.
//!
//! Work that has begun is not interrupted; each kind of it counts its own steps. It keeps its place until it ends, also
//! when nobody waits for it any more, so that abandoned work cannot pile up. While it waits for a network or a program it needs
//! no processor: then it lends its place to other work, also of its caller. On a runtime with one thread there is nobody else
//! to delay: work runs where it is, and no time is drawn, so that figures do not depend on how busy the machine is.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, Weak};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::budget::{Budget, Spent, WorkConfig, most_values};
use super::sync::lock;

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

/// A request that is served.
#[derive(Clone)]
struct Served {
    /// Whose it is; `None` for the only client of a process.
    whose: Option<Arc<str>>,
    budget: Arc<Budget>,
}

tokio::task_local! {
    /// The request that the task serves, also on the threads of its long work.
    static SERVED: Served;
}

/// Serves a request of a caller, or of the only client of the process where that has no name: the long work in it is that
/// caller's, and all of its work draws from one budget.
pub(crate) fn work_of<F: Future>(
    whose: &str,
    config: WorkConfig,
    serving: F,
) -> impl Future<Output = F::Output> + use<F> {
    let whose = (!whose.is_empty()).then(|| Arc::from(whose));
    SERVED.scope(Served { whose, budget: Arc::new(Budget::new(config)) }, serving)
}

/// Draws steps from the budget of the request that is served, if one is.
///
/// # Errors
/// Fewer are left.
pub(crate) fn draw_steps(steps: u64) -> Result<(), Exhausted> {
    SERVED.try_with(|served| served.budget.draw_steps(steps)).unwrap_or(Ok(())).map_err(Exhausted::from)
}

/// Draws bytes from the budget of the request that is served, if one is.
///
/// # Errors
/// Fewer are left.
pub(crate) fn draw_bytes(bytes: usize) -> Result<(), Exhausted> {
    SERVED.try_with(|served| served.budget.draw_bytes(bytes as u64)).unwrap_or(Ok(())).map_err(Exhausted::from)
}

/// Draws what reading a text of so many bytes takes, and visiting each of its values once.
///
/// # Errors
/// Fewer steps or bytes are left.
pub(crate) fn draw_text(bytes: usize) -> Result<(), Exhausted> {
    draw_bytes(bytes)?;
    draw_steps(most_values(bytes))
}

/// The time of a piece of long work, with the wait for its turn. It is drawn from the request when the piece ends, however
/// it does.
struct Clock {
    budget: Arc<Budget>,
    begun: Instant,
    /// What was left then.
    left: Duration,
}

impl Clock {
    /// Begins a piece of the request that is served. One that is for no request has the time that a request has by default.
    fn start() -> Result<Self, Exhausted> {
        let budget = SERVED.try_with(|served| Arc::clone(&served.budget));
        let budget = budget.unwrap_or_else(|_| Arc::new(Budget::new(WorkConfig::default())));
        let left = budget.time_left()?;
        Ok(Self { budget, begun: Instant::now(), left })
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.budget.draw_time(self.begun.elapsed());
    }
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
async fn place(patience: Duration) -> Result<Place, Exhausted> {
    let own = SERVED.try_with(|served| served.whose.as_ref().map(own)).ok().flatten();
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
    tokio::time::timeout(patience, waiting).await.map_err(|_| Exhausted::Busy(patience))
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
    /// The budget of its request has not enough left for it.
    #[error(transparent)]
    Spent(#[from] Spent),
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

/// Waits for what has to be there before long work can begin, for as long as the request has time.
///
/// # Errors
/// It did not come in time.
pub(crate) async fn in_time<T>(waiting: impl Future<Output = T>) -> Result<T, Exhausted> {
    let clock = Clock::start()?;
    tokio::time::timeout(clock.left, waiting).await.map_err(|_| Exhausted::Busy(clock.left))
}

/// Does work that borrows, when its turn comes.
///
/// # Errors
/// The turn did not come while the request had time.
pub(crate) async fn in_turn<T>(work: impl FnOnce() -> T) -> Result<T, Exhausted> {
    if !has_threads() {
        return Ok(work());
    }
    let clock = Clock::start()?;
    let place = place(clock.left).await?;
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

/// Does work on a thread of its own, when its turn comes, and gives it up when the request has no time left.
///
/// # Errors
/// It took longer, or broke off.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Exhausted> {
    if !has_threads() {
        return Ok(work());
    }
    let clock = Clock::start()?;
    let done = aside_after(clock.left, clock.left, work).await;
    done.map_err(|exhausted| match exhausted {
        Exhausted::TooLong(_) => clock.budget.out_of_time().into(),
        other => other,
    })
}

/// Does work of an upstream that is code of this process, on a thread of its own. It has `patience` for its turn, and `budget`
/// with the wait for it, which are those of an upstream: of the time of the request it draws nothing.
///
/// # Errors
/// It took longer, or broke off.
pub(crate) async fn aside_after<T: Send + 'static>(
    patience: Duration,
    budget: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Exhausted> {
    if !has_threads() {
        return Ok(work());
    }
    let start = Instant::now();
    let place = place(patience).await?;
    let served = SERVED.try_with(Served::clone);
    let working = tokio::task::spawn_blocking(move || {
        let _holding = Holding::begin(place);
        match served {
            Ok(served) => SERVED.sync_scope(served, work),
            Err(_) => work(),
        }
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

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    /// The budget of a request that has so much time for long work.
    fn having(time: Duration) -> WorkConfig {
        WorkConfig { seconds: time.as_secs_f64(), ..WorkConfig::default() }
    }

    /// A request of nobody's that has so much time.
    fn within<F: Future>(time: Duration, serving: F) -> impl Future<Output = F::Output> {
        work_of("", having(time), serving)
    }

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
                outcomes.push(tokio::spawn(within(SHORT, aside(move || endless()))));
            }
            for outcome in outcomes {
                assert_eq!(outcome.await.unwrap(), Err(Exhausted::Spent(Spent::Seconds(SHORT))));
            }
            // What was given up has its place still: more of it does not begin, and what is short goes on.
            let more = tokio::spawn(async { (within(SHORT, in_turn(|| ())).await, within(SHORT, aside(|| ())).await) });
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
                    tokio::spawn(work_of("greedy", having(4 * SHORT), aside(move || endless())))
                })
                .collect();
            tokio::task::yield_now().await;
            tokio::time::sleep(SHORT).await;
            let other = work_of("other", having(4 * SHORT), async { (in_turn(|| 1).await, aside(|| 2).await) });
            assert_eq!(tokio::spawn(other).await.unwrap(), (Ok(1), Ok(2)));
            let more = tokio::spawn(work_of("greedy", having(SHORT), in_turn(|| ())));
            assert_eq!(more.await.unwrap(), Err(Exhausted::Busy(SHORT)));
            drop(end);
            for outcome in greedy {
                let _ = outcome.await.unwrap();
            }
            assert_eq!(tokio::spawn(work_of("greedy", WorkConfig::default(), in_turn(|| 3))).await.unwrap(), Ok(3));
            // What waits for a network costs nobody, its own caller neither, however many callers do.
            let (end, ended) = channel::<()>();
            let ended = std::sync::Mutex::new(ended);
            let answer = std::sync::Arc::new(move || ended.lock().unwrap().recv().unwrap_or_default());
            let waits = |caller: usize| {
                let answer = std::sync::Arc::clone(&answer);
                let work = aside(move || while_waiting(|| answer()));
                tokio::spawn(work_of(&format!("of a bucket {caller}"), having(40 * SHORT), work))
            };
            let callers = (1..2 * places()).chain([0; OWN_BEGUN - 1]);
            let mut waiting: Vec<_> = callers.map(waits).collect();
            tokio::time::sleep(SHORT).await;
            for whose in ["other", "of a bucket 0"] {
                let more = work_of(whose, having(4 * SHORT), aside(|| 2));
                assert_eq!(tokio::spawn(more).await.unwrap(), Ok(2), "{whose}");
            }
            waiting.push(waits(0));
            tokio::time::sleep(SHORT).await;
            let more = tokio::spawn(work_of("of a bucket 0", having(SHORT), in_turn(|| ())));
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
                    tokio::spawn(work_of("of a store", having(40 * SHORT), aside(work)))
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
            pieces_of_one_request_share_its_time().await;
        });
    }

    const TICK: Duration = Duration::from_millis(60);

    /// What begins long work, or waits for it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Piece {
        InTurn,
        Aside,
        InTime,
        /// Of an upstream in this process, which has a time of its own.
        OfAnUpstream,
    }

    impl Piece {
        async fn takes(self, time: Duration) -> Result<(), Exhausted> {
            match self {
                Self::InTurn => in_turn_if(true, || sleep(time)).await,
                Self::Aside => aside(move || sleep(time)).await,
                Self::InTime => in_time(tokio::time::sleep(time)).await,
                Self::OfAnUpstream => aside_after(20 * TICK, 20 * TICK, move || sleep(time)).await,
            }
        }
    }

    /// Two pieces that take more time together than a request has: the second is not begun, or given up.
    async fn pieces_of_one_request_share_its_time() {
        let has = 10 * TICK;
        let spent = Err(Exhausted::Spent(Spent::Seconds(has)));
        for (first, second, expected) in [
            // A turn that has begun ends.
            ((Piece::InTurn, 11 * TICK), (Piece::InTurn, TICK), (Ok(()), spent)),
            ((Piece::InTurn, 11 * TICK), (Piece::Aside, TICK), (Ok(()), spent)),
            ((Piece::InTurn, 11 * TICK), (Piece::InTime, TICK), (Ok(()), spent)),
            ((Piece::InTurn, 11 * TICK), (Piece::OfAnUpstream, TICK), (Ok(()), Ok(()))),
            ((Piece::InTurn, 6 * TICK), (Piece::Aside, 6 * TICK), (Ok(()), spent)),
            ((Piece::Aside, 6 * TICK), (Piece::Aside, 6 * TICK), (Ok(()), spent)),
            ((Piece::InTime, 6 * TICK), (Piece::Aside, 6 * TICK), (Ok(()), spent)),
            ((Piece::OfAnUpstream, 6 * TICK), (Piece::Aside, 6 * TICK), (Ok(()), Ok(()))),
            ((Piece::Aside, 11 * TICK), (Piece::InTurn, TICK), (spent, spent)),
        ] {
            let both = async move { (first.0.takes(first.1).await, second.0.takes(second.1).await) };
            assert_eq!(tokio::spawn(within(has, both)).await.unwrap(), expected, "{first:?}, {second:?}");
        }
        // The wait of the second is what the first has left.
        let both = async { (Piece::InTurn.takes(6 * TICK).await, Piece::InTime.takes(6 * TICK).await) };
        let (first, second) = tokio::spawn(within(has, both)).await.unwrap();
        assert_eq!(first, Ok(()));
        assert!(matches!(second, Err(Exhausted::Busy(waited)) if waited <= 4 * TICK), "{second:?}");
    }

    /// What comes of drawing steps on each of the threads that a request uses, and then of drawing bytes.
    async fn drawn() -> [Result<(), Exhausted>; 5] {
        let here = draw_steps(4);
        let in_turn = in_turn(|| draw_steps(4)).await.flatten();
        let aside = aside(|| draw_steps(4)).await.flatten();
        [here, in_turn, aside, draw_text(3), draw_text(8)]
    }

    #[test]
    fn all_work_of_a_request_draws_from_its_budget_and_other_work_from_none() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            assert_eq!(draw_steps(u64::MAX), Ok(()), "it is for no request");
            let few = WorkConfig { steps: 10, bytes: 10, ..WorkConfig::default() };
            let spent = (Err(Exhausted::Spent(Spent::Steps(10))), Err(Exhausted::Spent(Spent::Bytes(10))));
            // Another request has a budget of its own.
            for _ in 0..2 {
                let drawn = tokio::spawn(work_of("ann", few, drawn())).await.unwrap();
                assert_eq!(drawn, [Ok(()), Ok(()), spent.0, Ok(()), spent.1]);
            }
        });
    }
}
