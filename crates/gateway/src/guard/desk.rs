//! Calls that wait for the operator's approval, where the operator has opened a console.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use tokio::sync::oneshot;

use crate::common::sync::lock;

/// Calls that wait at a time, at most.
const MOST: usize = 256;

/// What the operator is shown of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Case {
    /// The number of the case.
    pub(crate) id: u64,
    /// The name of the caller.
    pub(crate) caller: String,
    /// Its visibility profile.
    pub(crate) profile: Option<String>,
    /// The id of what is called.
    pub(crate) item: String,
    /// Why somebody has to approve it.
    pub(crate) reason: String,
    /// The arguments, a line each, shortened and without secrets.
    pub(crate) arguments: Vec<String>,
}

/// The cases that wait.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    is_open: AtomicBool,
    next: AtomicU64,
    cases: Mutex<BTreeMap<u64, (Case, oneshot::Sender<bool>)>>,
}

impl Desk {
    /// From now on somebody answers.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    /// Nobody answers any more: what waits is declined.
    pub(crate) fn close(&self) {
        self.is_open.store(false, Ordering::Relaxed);
        lock(&self.cases).clear();
    }

    /// Whether somebody answers.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Whether another case can be laid before the operator.
    pub(super) fn has_room(&self) -> bool {
        self.is_open() && lock(&self.cases).len() < MOST
    }

    /// Lays a case before the operator; `None` when nobody answers, or too many wait. It is taken back when what is
    /// returned is dropped.
    pub(super) fn lay(self: &Arc<Self>, case: Case) -> Option<Laid> {
        let mut cases = lock(&self.cases);
        if !self.is_open() || cases.len() >= MOST {
            return None;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        cases.insert(id, (Case { id, ..case }, sender));
        Some(Laid { desk: Arc::clone(self), id, answer })
    }

    /// The cases that wait, those that came first in front.
    pub(crate) fn cases(&self) -> Vec<Case> {
        lock(&self.cases).values().map(|(case, _)| case.clone()).collect()
    }

    /// Answers a case; whether it still waited.
    pub(crate) fn answer(&self, id: u64, approve: bool) -> bool {
        let case = lock(&self.cases).remove(&id);
        case.is_some_and(|(_, sender)| sender.send(approve).is_ok())
    }
}

/// A case that waits.
pub(super) struct Laid {
    desk: Arc<Desk>,
    id: u64,
    answer: oneshot::Receiver<bool>,
}

impl Laid {
    /// What the operator answers; a desk that closes declines.
    pub(super) async fn answered(&mut self) -> bool {
        (&mut self.answer).await.unwrap_or(false)
    }
}

impl Drop for Laid {
    fn drop(&mut self) {
        lock(&self.desk.cases).remove(&self.id);
    }
}
