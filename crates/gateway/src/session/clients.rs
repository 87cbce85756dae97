//! The clients that are connected, for messages to all of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::client::Session;
use crate::common::sync::lock;
use crate::protocol::message::Raw;

/// The sessions that hear of changes.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    held: Mutex<Vec<Weak<Session>>>,
    /// How many have ever been entered.
    entered: AtomicU64,
}

impl Clients {
    /// Enters a session, which hears of changes for as long as somebody holds it. Entering it again changes nothing.
    pub(crate) fn enter(&self, session: &Arc<Session>) {
        let mut sessions = lock(&self.held);
        sessions.retain(|other| other.strong_count() > 0);
        let is_known = sessions.iter().any(|other| std::ptr::eq(other.as_ptr(), Arc::as_ptr(session)));
        if !is_known {
            self.entered.fetch_add(1, Ordering::Relaxed);
            sessions.push(Arc::downgrade(session));
        }
    }

    /// Sends a notification to every client that wants it.
    pub(crate) fn tell_all(&self, method: &str, params: Option<&Raw>) {
        let sessions: Vec<Arc<Session>> = lock(&self.held).iter().filter_map(Weak::upgrade).collect();
        sessions.iter().for_each(|session| session.tell(method, params));
    }

    /// How many are connected.
    pub(crate) fn count(&self) -> usize {
        lock(&self.held).iter().filter(|session| session.strong_count() > 0).count()
    }

    /// How many have connected so far.
    pub(crate) fn entered(&self) -> u64 {
        self.entered.load(Ordering::Relaxed)
    }
}
