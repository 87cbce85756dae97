//! The clients that are connected, for messages to all of them.

use std::sync::{Arc, Mutex, Weak};

use super::client::Session;
use crate::common::sync::lock;
use crate::protocol::message::Raw;

/// The sessions that hear of changes.
#[derive(Debug, Default)]
pub(crate) struct Clients(Mutex<Vec<Weak<Session>>>);

impl Clients {
    /// Enters a session, which hears of changes for as long as somebody holds it. Entering it again changes nothing.
    pub(crate) fn enter(&self, session: &Arc<Session>) {
        let mut sessions = lock(&self.0);
        sessions.retain(|other| other.strong_count() > 0 && !std::ptr::eq(other.as_ptr(), Arc::as_ptr(session)));
        sessions.push(Arc::downgrade(session));
    }

    /// Sends a notification to every client that wants it.
    pub(crate) fn tell_all(&self, method: &str, params: Option<&Raw>) {
        let sessions: Vec<Arc<Session>> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        sessions.iter().for_each(|session| session.tell(method, params));
    }

    /// How many are connected.
    pub(crate) fn count(&self) -> usize {
        lock(&self.0).iter().filter(|session| session.strong_count() > 0).count()
    }
}
