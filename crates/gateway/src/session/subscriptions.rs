//! Which clients want to hear that a resource has changed.
//!
//! All clients share one connection to an upstream, so the upstream knows of one subscription only: it is made by the
//! first client that wants it and ended by the last. What is said to the upstream about one resource is said in turns,
//! so that it arrives in the order in which clients were counted. Which upstream was asked is remembered: an address
//! may belong to another by the time that the subscription is renewed or ended.

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
pub(crate) const LONGEST_ADDRESS: usize = 8 * 1024;

/// A resource that nobody watches any more, and the upstream that was asked to watch it.
pub(crate) type Forsaken = (String, Arc<str>);

/// Clients by the address of the resource.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<BTreeMap<String, Watched>>);

/// Who watches a resource, and where.
#[derive(Debug, Default)]
struct Watched {
    sessions: Vec<Weak<Session>>,
    /// The name of the upstream that was asked to say when it changes.
    asked: Option<Arc<str>>,
    /// Held while the upstream is told.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Watched {
    fn is_wanted(&self) -> bool {
        self.sessions.iter().any(|session| session.strong_count() > 0)
    }

    fn is_at(&self, upstream: &str) -> bool {
        self.asked.as_deref() == Some(upstream)
    }

    fn watchers(&self) -> Vec<Arc<Session>> {
        self.sessions.iter().filter_map(Weak::upgrade).collect()
    }

    /// Whether it can be forgotten: nobody watches the resource, and nobody but `holders` is about to.
    fn is_idle(&self, holders: usize) -> bool {
        !self.is_wanted() && Arc::strong_count(&self.turn) <= 1 + holders
    }
}

/// The turn to tell the upstream about a resource.
struct Turn<'s> {
    subscriptions: &'s Subscriptions,
    uri: &'s str,
    _held: tokio::sync::OwnedMutexGuard<()>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut all = lock(&self.subscriptions.0);
        if all.get(self.uri).is_some_and(|watched| watched.is_idle(1)) {
            all.remove(self.uri);
        }
    }
}

/// A client that was noted for a resource, which the upstream has not said yet that it watches. It is forgotten when
/// this is dropped, as it is too when the request is taken back.
struct Noted<'s> {
    subscriptions: &'s Subscriptions,
    uri: &'s str,
    session: &'s Arc<Session>,
}

impl Noted<'_> {
    /// The upstream watches it.
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.subscriptions.remove(self.uri, self.session);
    }
}

#[derive(Deserialize)]
struct Subject {
    uri: String,
}

impl Subscriptions {
    /// Takes `resources/subscribe` or `resources/unsubscribe` in, and passes it on where the upstream of this name has to
    /// know.
    ///
    /// # Errors
    /// There is no room for it, or that of `pass`.
    pub(crate) async fn pass<E: From<RpcError>, F: Future<Output = Result<Raw, E>>>(
        &self,
        (session, upstream): (&Arc<Session>, &str),
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
            self.remove(&uri, session);
            return self.end(&uri, pass).await;
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
        let _turn = self.turn(&uri).await;
        // Before it is passed on: whoever ends another subscription meanwhile is not the last.
        let noted = self.add(&uri, session, upstream).then(|| Noted { subscriptions: self, uri: &uri, session });
        // Subscribing again does no harm, and the upstream may have been started anew.
        let answer = pass().await?;
        noted.into_iter().for_each(Noted::keep);
        Ok(answer)
    }

    /// Has the upstream told by `pass` that nobody watches a resource, where that is so when its turn comes.
    ///
    /// # Errors
    /// That of `pass`.
    pub(crate) async fn end<E, F: Future<Output = Result<Raw, E>>>(
        &self,
        uri: &str,
        pass: impl FnOnce() -> F,
    ) -> Result<Raw, E> {
        let _turn = self.turn(uri).await;
        if self.is_wanted(uri) { Ok(Raw::of(&json!({}))) } else { pass().await }
    }

    /// Has the upstream, which has forgotten it, told by `pass` that a resource is watched; `None` where nobody watches
    /// it.
    pub(crate) async fn renew<E, F: Future<Output = Result<Raw, E>>>(
        &self,
        uri: &str,
        pass: impl FnOnce() -> F,
    ) -> Option<Result<Raw, E>> {
        let _turn = self.turn(uri).await;
        if self.is_wanted(uri) { Some(pass().await) } else { None }
    }

    /// The resources that are watched, each with the upstream that was asked to and the clients that want it.
    pub(crate) fn all(&self) -> Vec<(String, Arc<str>, Vec<Arc<Session>>)> {
        let all = lock(&self.0);
        let watched = all.iter().filter_map(|(uri, watched)| {
            let sessions = Some(watched.watchers()).filter(|sessions| !sessions.is_empty())?;
            Some((uri.clone(), watched.asked.clone()?, sessions))
        });
        watched.collect()
    }

    /// The resources that the upstream of this name was asked to watch, and that somebody still wants to be watched.
    pub(crate) fn at(&self, upstream: &str) -> Vec<String> {
        let all = lock(&self.0);
        let own = all.iter().filter(|(_, watched)| watched.is_at(upstream) && watched.is_wanted());
        own.map(|(uri, _)| uri.clone()).collect()
    }

    /// The clients that watch a resource at the upstream of this name.
    pub(crate) fn watchers(&self, upstream: &str, uri: &str) -> Vec<Arc<Session>> {
        let all = lock(&self.0);
        all.get(uri).filter(|watched| watched.is_at(upstream)).map(Watched::watchers).unwrap_or_default()
    }

    /// The upstream that was asked to watch a resource.
    pub(crate) fn asked(&self, uri: &str) -> Option<Arc<str>> {
        lock(&self.0).get(uri)?.asked.clone()
    }

    /// The resources that were watched by clients which are gone, with the upstreams that were asked to; they are forgotten
    /// here.
    pub(crate) fn forsaken(&self) -> Vec<Forsaken> {
        let mut forsaken = Vec::new();
        lock(&self.0).retain(|uri, watched| {
            let is_idle = watched.is_idle(0);
            if is_idle {
                forsaken.extend(watched.asked.take().map(|upstream| (uri.clone(), upstream)));
            }
            !is_idle
        });
        forsaken
    }

    async fn turn<'s>(&'s self, uri: &'s str) -> Turn<'s> {
        let turn = Arc::clone(&lock(&self.0).entry(uri.to_owned()).or_default().turn);
        Turn { subscriptions: self, uri, _held: turn.lock_owned().await }
    }

    fn is_wanted(&self, uri: &str) -> bool {
        lock(&self.0).get(uri).is_some_and(Watched::is_wanted)
    }

    fn has_room_for(&self, uri: &str) -> bool {
        let mut watched = lock(&self.0);
        if watched.len() >= MOST {
            watched.retain(|_, watched| !watched.is_idle(0));
        }
        watched.len() < MOST || watched.contains_key(uri)
    }

    /// Whether the caller watches as many others as it may.
    fn is_full_for(&self, uri: &str, session: &Session) -> bool {
        let is_own = |other: &Weak<Session>| other.upgrade().is_some_and(|other| other.tenant() == session.tenant());
        let watched = lock(&self.0);
        let others = watched.iter().filter(|(other, watched)| *other != uri && watched.sessions.iter().any(is_own));
        others.take(MOST_OF_ONE).count() == MOST_OF_ONE
    }

    /// Notes that the client wants to hear of it, and that this upstream is asked; returns whether the client did not
    /// want to before.
    fn add(&self, uri: &str, session: &Arc<Session>, upstream: &str) -> bool {
        let mut all = lock(&self.0);
        let watched = all.entry(uri.to_owned()).or_default();
        watched.asked = Some(Arc::from(upstream));
        let sessions = &mut watched.sessions;
        sessions.retain(|other| other.strong_count() > 0);
        let is_new = !sessions.iter().any(|other| is(other, session));
        if is_new {
            sessions.push(Arc::downgrade(session));
        }
        is_new
    }

    /// Forgets that the client wants to hear of it; where no client is left that does, what is to be told to whom.
    pub(crate) fn remove(&self, uri: &str, session: &Arc<Session>) -> Option<Forsaken> {
        let mut all = lock(&self.0);
        let watched = all.get_mut(uri)?;
        watched.sessions.retain(|other| other.strong_count() > 0 && !is(other, session));
        if !watched.sessions.is_empty() {
            return None;
        }
        let asked = watched.asked.clone();
        if watched.is_idle(0) {
            all.remove(uri);
        }
        asked.map(|upstream| (uri.to_owned(), upstream))
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
            runtime.block_on(subscriptions.pass((session, "up"), method, Some(&params), pass)).unwrap();
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
        assert!(lock(&subscriptions.0).is_empty());
    }

    #[tokio::test]
    async fn who_ends_a_subscription_while_another_begins_is_not_the_last() {
        let subscriptions = Subscriptions::default();
        let (first, second) = (Session::new("one"), Session::new("two"));
        let params = Raw::of(&json!({"uri": "a"}));
        let said = RefCell::new(Vec::new());
        let say = async |what: &'static str, wait: u32| {
            for _ in 0..wait {
                tokio::task::yield_now().await;
            }
            said.borrow_mut().push(what);
            Ok::<_, RpcError>(Raw::of(&json!({})))
        };
        let (on, off) = ("resources/subscribe", "resources/unsubscribe");
        let (first_at, second_at) = ((&first, "up"), (&second, "up"));
        subscriptions.pass(first_at, on, Some(&params), || say("on", 0)).await.unwrap();
        let (begun, ended) = tokio::join!(
            biased;
            subscriptions.pass(second_at, on, Some(&params), || say("on", 5)),
            subscriptions.pass(first_at, off, Some(&params), || say("off", 0)),
        );
        assert!(begun.is_ok() && ended.is_ok());
        assert_eq!(said.take(), ["on", "on"]);
        // The other way round the upstream hears of the end first.
        let (ended, begun) = tokio::join!(
            biased;
            subscriptions.pass(second_at, off, Some(&params), || say("off", 5)),
            subscriptions.pass(first_at, on, Some(&params), || say("on", 0)),
        );
        assert!(begun.is_ok() && ended.is_ok());
        assert_eq!(said.take(), ["off", "on"]);
        assert_eq!((subscriptions.at("up"), subscriptions.at("other")), (vec!["a".to_owned()], Vec::new()));
        let refused = subscriptions.pass(second_at, on, Some(&params), || async { Err(RpcError::new(-1, "no")) }).await;
        assert!(refused.is_err());
        // It is taken back before the upstream has answered.
        tokio::select! {
            biased;
            answer = subscriptions.pass(second_at, on, Some(&params), || say("on", 1)) => panic!("{answer:?}"),
            () = std::future::ready(()) => {}
        }
        drop(first);
        let forsaken = vec![("a".to_owned(), Arc::from("up"))];
        assert_eq!((subscriptions.at("up").len(), subscriptions.forsaken()), (0, forsaken));
        assert!(subscriptions.forsaken().is_empty());
    }
}
