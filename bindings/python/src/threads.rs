//! Where work runs that uses several threads.
//!
//! A process that was forked, as servers and `multiprocessing` fork theirs, has the memory of its parent and none of its
//! threads: work handed to the pool that all of a program shares would wait for ever. So each process has a pool of its own.

use std::mem;
use std::process;
use std::sync::{Arc, Mutex};

use contextweaver_core::sync::lock;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The pool, and the process whose threads it has.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Does `work` on the threads of this process, with the interpreter lock released.
pub(crate) fn together<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| match pool() {
        Some(pool) => pool.install(work),
        None => work(),
    })
}

/// The pool of this process; none where the system gives no threads.
fn pool() -> Option<Arc<ThreadPool>> {
    let mut held = lock(&POOL);
    if let Some((owner, pool)) = held.as_ref()
        && *owner == process::id()
    {
        return Some(Arc::clone(pool));
    }
    let pool = Arc::new(ThreadPoolBuilder::new().build().ok()?);
    // Letting go of the parent's pool would wait for its threads.
    mem::forget(held.replace((process::id(), Arc::clone(&pool))));
    Some(pool)
}
