//! Work on what came from outside that may take long: validation, ranking, views, summaries, cleaning.
//!
//! It never runs on a thread that serves messages, at most a few pieces of it run at a time, however many clients ask
//! for it, and who waits for longer than its budget gets an error that says what was asked too much of. So what one
//! client asks for delays others that ask for the same kind of work, and nobody else: a request that needs none of it,
//! such as `/healthz`, waits for none.
//!
//! Work that has begun is not interrupted; each kind of it counts its own steps. It keeps its place until it ends, also
//! when nobody waits for it any more, so that abandoned work cannot pile up. On a runtime with one thread there is
//! nobody else to delay: work runs where it is.

use std::sync::LazyLock;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

/// What one piece of work of a request may take, with the wait for its turn.
pub(crate) const BUDGET: Duration = Duration::from_secs(30);

/// Bytes from which reading, checking or cleaning a text counts as long.
pub(crate) const LARGE: usize = 64 * 1024;

/// Pieces of work that run at a time: one processor stays free for messages, where there are more than two.
static PLACES: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(places()));

fn places() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).saturating_sub(1).max(2)
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
    let place = tokio::time::timeout(budget, PLACES.acquire()).await.map_err(|_| Exhausted::Busy(budget))?;
    let done = tokio::task::block_in_place(work);
    drop(place);
    Ok(done)
}

/// Does work that may be long, or not: only long work waits for its turn.
///
/// # Errors
/// As [`in_turn`].
pub(crate) async fn in_turn_if<T>(is_long: bool, work: impl FnOnce() -> T) -> Result<T, Exhausted> {
    if is_long { in_turn(work).await } else { Ok(work()) }
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
    if !has_threads() {
        return Ok(work());
    }
    let start = std::time::Instant::now();
    let place = tokio::time::timeout(budget, PLACES.acquire()).await.map_err(|_| Exhausted::Busy(budget))?;
    let working = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(place);
        done
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
            // While work runs in its place, the only worker serves others.
            let (long, short) = (tokio::spawn(in_turn(|| sleep(4 * SHORT))), Instant::now());
            tokio::spawn(tokio::task::yield_now()).await.unwrap();
            assert!(short.elapsed() < 3 * SHORT);
            long.await.unwrap().unwrap();
        });
    }
}
