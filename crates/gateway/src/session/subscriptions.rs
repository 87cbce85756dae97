//! Which clients want to hear that a resource has changed.
//!
//! All clients share one connection to an upstream, so the upstream knows of one subscription only: it is made by the
//! first client that wants it and ended by the last.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use serde::Deserialize;
use serde_json::json;

use crate::common::sync::lock;
use crate::protocol::message::{Raw, RpcError};
use crate::session::client::Session;

/// Resources that are watched, at most.
const MOST: usize = 10_000;

/// Resources that one caller watches, at most, in all its sessions: nobody takes the room of others.
pub(crate) const MOST_OF_ONE: usize = 1_000;

/// Bytes of an address that is watched, at most: it is kept for as long as the session.
const LONGEST_ADDRESS: usize = 8 * 1024;

/// Clients by the address of the resource.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<BTreeMap<String, Vec<Weak<Session>>>>);

#[derive(Deserialize)]
struct Subject {
    uri: String,
}

impl Subscriptions {
    /// Takes `resources/subscribe` or `resources/unsubscribe` in, and passes it on where the upstream has to know.
    ///
    /// # Errors
    /// There is no room for it, or that of `pass`.
    pub(crate) async fn pass<E: From<RpcError>, F: Future<Output = Result<Raw, E>>>(
        &self,
        session: &Arc<Session>,
        method: &str,
        params: Option<&Raw>,
        pass: impl FnOnce() -> F,
    ) -> Result<Raw, E> {
        let subject = params.map(Raw::read::<Subject>).transpose().map_err(RpcError::invalid_params)?;
        let Some(Subject { uri }) = subject else { return Err(RpcError::invalid_params("`uri` is missing").into()) };
        if uri.len() > LONGEST_ADDRESS {
            return Err(RpcError::invalid_params(format!("`uri` has more than {LONGEST_ADDRESS} bytes")).into());
        }
        if method == "resources/unsubscribe" {
            return if self.remove(&uri, session) { pass().await } else { Ok(Raw::of(&json!({}))) };
        }
        if !self.has_room_for(&uri) {
            return Err(RpcError::invalid_params(format!("{MOST} resources are already being watched")).into());
        }
        if self.is_full_for(&uri, session) {
            let reason = format!(
                "you are already watching {MOST_OF_ONE} resources; make room with \
                                  `resources/unsubscribe`"
            );
            return Err(RpcError::invalid_params(reason).into());
        }
        // Subscribing again does no harm, and the upstream may have been started anew.
        let answer = pass().await?;
        self.add(uri, session);
        Ok(answer)
    }

    fn has_room_for(&self, uri: &str) -> bool {
        let mut watched = lock(&self.0);
        if watched.len() >= MOST {
            watched.retain(|_, sessions| sessions.iter().any(|session| session.strong_count() > 0));
        }
        watched.len() < MOST || watched.contains_key(uri)
    }

    /// Whether the caller watches as many others as it may.
    fn is_full_for(&self, uri: &str, session: &Session) -> bool {
        let is_own = |other: &Weak<Session>| other.upgrade().is_some_and(|other| other.tenant() == session.tenant());
        let watched = lock(&self.0);
        let others = watched.iter().filter(|(other, sessions)| *other != uri && sessions.iter().any(is_own));
        others.take(MOST_OF_ONE).count() == MOST_OF_ONE
    }

    fn add(&self, uri: String, session: &Arc<Session>) {
        let mut watched = lock(&self.0);
        let sessions = watched.entry(uri).or_default();
        sessions.retain(|other| other.strong_count() > 0 && !is(other, session));
        sessions.push(Arc::downgrade(session));
    }

    /// Forgets that the client wants to hear of it, and returns whether no client is left that does.
    pub(crate) fn remove(&self, uri: &str, session: &Arc<Session>) -> bool {
        let mut watched = lock(&self.0);
        let Some(sessions) = watched.get_mut(uri) else { return true };
        sessions.retain(|other| other.strong_count() > 0 && !is(other, session));
        let last = sessions.is_empty();
        if last {
            watched.remove(uri);
        }
        last
    }
}

fn is(weak: &Weak<Session>, session: &Arc<Session>) -> bool {
    std::ptr::eq(weak.as_ptr(), Arc::as_ptr(session))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_upstream_hears_of_every_subscription_and_of_the_last_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let subscriptions = Subscriptions::default();
        let passed = RefCell::new(Vec::new());
        let ask = |session: &Arc<Session>, method: &str, uri: &str| {
            let params = Raw::of(&json!({ "uri": uri }));
            let pass = || async {
                passed.borrow_mut().push(format!("{method} {uri}"));
                Ok::<_, RpcError>(Raw::of(&json!({})))
            };
            runtime.block_on(subscriptions.pass(session, method, Some(&params), pass)).unwrap();
        };
        let (first, second) = (Session::new("one"), Session::new("two"));
        ask(&first, "resources/subscribe", "a");
        ask(&first, "resources/subscribe", "a");
        ask(&second, "resources/subscribe", "a");
        assert_eq!(passed.take(), ["resources/subscribe a"; 3]);
        ask(&first, "resources/unsubscribe", "a");
        assert_eq!(passed.take(), [""; 0]);
        ask(&second, "resources/unsubscribe", "a");
        assert_eq!(passed.take(), ["resources/unsubscribe a"]);
    }
}
