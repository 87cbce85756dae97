//! Calls that wait for the operator's approval, where the operator has opened a console.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use tokio::sync::oneshot;

use crate::common::sync::lock;

/// Calls that wait at a time, at most.
const MOST: usize = 256;

/// Those of one caller, at most: nobody keeps the operator from seeing the calls of others.
const MOST_OF_ONE: usize = MOST / 4;

/// Cases that ended of which it is still known how, at most.
const MOST_ENDED: usize = 1_024;

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The operator approved it.
    Approved,
    /// The operator declined it.
    Declined,
    /// It does not wait any more: its client answered or went away, or nobody answered in time.
    Gone,
}

/// What came of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    /// It is the answer to the case.
    Now,
    /// The case had ended.
    TooLate(Ending),
    /// There was no such case.
    Unknown,
}

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
    /// How the last cases ended that the operator answered; what else is not among the cases is gone.
    answered: Mutex<BTreeMap<u64, Ending>>,
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

    /// Whether another case of this caller can be laid before the operator.
    pub(super) fn has_room_for(&self, caller: &str) -> bool {
        self.is_open() && has_room(&lock(&self.cases), caller)
    }

    /// Lays a case before the operator; `None` when nobody answers, or too many wait, of all callers or of this one. It is
    /// taken back when what is returned is dropped.
    pub(super) fn lay(self: &Arc<Self>, case: Case) -> Option<Laid> {
        let mut cases = lock(&self.cases);
        if !self.is_open() || !has_room(&cases, &case.caller) {
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

    /// Answers a case.
    pub(crate) fn answer(&self, id: u64, approve: bool) -> Answered {
        // Held to the end, so that of two answers one is the first.
        let mut cases = lock(&self.cases);
        match cases.remove(&id) {
            Some((_, sender)) => {
                if sender.send(approve).is_err() {
                    return Answered::TooLate(Ending::Gone);
                }
                let mut answered = lock(&self.answered);
                answered.insert(id, if approve { Ending::Approved } else { Ending::Declined });
                if answered.len() > MOST_ENDED {
                    answered.pop_first();
                }
                Answered::Now
            }
            None if (1..=self.next.load(Ordering::Relaxed)).contains(&id) => {
                Answered::TooLate(lock(&self.answered).get(&id).copied().unwrap_or(Ending::Gone))
            }
            None => Answered::Unknown,
        }
    }
}

/// Whether one more case of this caller may wait.
fn has_room<S>(cases: &BTreeMap<u64, (Case, S)>, caller: &str) -> bool {
    let of_caller = || cases.values().filter(|(case, _)| case.caller == caller).count();
    cases.len() < MOST && of_caller() < MOST_OF_ONE
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_leaves_room_for_others() {
        let desk = Arc::new(Desk::default());
        let case = |caller: &str| Case {
            id: 0,
            caller: caller.to_owned(),
            profile: None,
            item: "s:t".to_owned(),
            reason: String::new(),
            arguments: Vec::new(),
        };
        assert!(desk.lay(case("a")).is_none(), "nobody answers");
        desk.open();
        let mut laid: Vec<Laid> = std::iter::from_fn(|| desk.lay(case("a"))).take(MOST).collect();
        assert_eq!(laid.len(), MOST_OF_ONE);
        assert!(!desk.has_room_for("a") && desk.has_room_for("b"));
        for other in ["b", "c", "d", "e"] {
            laid.extend(std::iter::from_fn(|| desk.lay(case(other))).take(MOST));
        }
        assert_eq!((laid.len(), desk.has_room_for("f")), (MOST, false));
        // What is taken back leaves its place.
        laid.pop();
        assert!(desk.has_room_for("f") && !desk.has_room_for("a"));
    }
}
