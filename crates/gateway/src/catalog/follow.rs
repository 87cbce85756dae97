//! Acting on what upstreams say unasked: lists are read again, connections are made again, clients are told.
//!
//! Every upstream is on its own: its lists are read while those of others are, and what it says meanwhile is kept until
//! that has ended, once. One that says without end that its lists changed is read after pauses that double up to half a
//! minute, and again at once when it has been quiet for a while. A call that waits to know its tools waits for no
//! pause.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::serving::Serving;
use crate::protocol::message::Raw;
use crate::session::subscriptions::Subscriptions;
use crate::upstream::call::Call;
use crate::upstream::client::Upstream;
use crate::upstream::mailbox::{Event, Events};

/// How long changes of an upstream's lists are gathered before they are read again, and the first pause after that.
const SHORTEST: Duration = Duration::from_millis(200);

/// The longest pause between two readings of one upstream's lists.
const LONGEST: Duration = Duration::from_secs(30);

/// How often it is looked whether somebody else changed the pins.
const PINS: Duration = Duration::from_secs(2);

/// What stands among the methods where nobody said that a list is another: clients hear of it only if one is.
const DOUBT: &str = "";

/// Which lists are to be read again, and when.
#[derive(Debug, Default)]
struct Rereads(BTreeMap<Arc<str>, Reread>);

/// What an upstream said that its lists are no longer.
#[derive(Debug, Default)]
struct Reread {
    /// What clients are to be told when they are read; nothing is to be read when empty.
    methods: BTreeSet<&'static str>,
    /// When they are read; `None` while they are, and while nothing is to be read.
    due: Option<Instant>,
    is_running: bool,
    /// Whether somebody waits for them, so that no pause is made before they are read again.
    is_wanted: bool,
    /// When they were last read.
    ended: Option<Instant>,
    /// The pause after that.
    pause: Duration,
}

impl Reread {
    fn schedule(&mut self, now: Instant) {
        if self.is_wanted {
            self.due = Some(now);
            return;
        }
        // An upstream that reports a change within twice the pause has not been quiet.
        let again = self.ended.filter(|ended| now < *ended + self.pause * 2);
        self.pause = if again.is_some() { (self.pause * 2).min(LONGEST) } else { SHORTEST };
        let gathered = now + SHORTEST;
        self.due = Some(again.map_or(gathered, |ended| gathered.max(ended + self.pause)));
    }
}

impl Rereads {
    /// The upstream said that a list of it changed.
    fn note(&mut self, upstream: Arc<str>, method: &'static str, now: Instant) {
        let reread = self.0.entry(upstream).or_default();
        reread.methods.insert(method);
        if !reread.is_running && reread.due.is_none() {
            reread.schedule(now);
        }
    }

    /// Somebody waits to know what a list of the upstream is now.
    fn want(&mut self, upstream: Arc<str>, method: &'static str, now: Instant) {
        let reread = self.0.entry(upstream).or_default();
        reread.methods.insert(method);
        reread.is_wanted = true;
        if !reread.is_running {
            reread.schedule(now);
        }
    }

    /// Its lists have been read; `left` is what clients are still to be told, where that failed.
    fn ended(&mut self, upstream: &Arc<str>, left: BTreeSet<&'static str>, now: Instant) {
        let Some(reread) = self.0.get_mut(upstream) else { return };
        reread.is_running = false;
        reread.ended = Some(now);
        reread.methods.extend(left);
        if !reread.methods.is_empty() {
            reread.schedule(now);
        }
    }

    /// Those whose lists are to be read now, each with what clients are to be told.
    fn begin(&mut self, now: Instant) -> Vec<(Arc<str>, BTreeSet<&'static str>)> {
        let due = self.0.iter_mut().filter(|(_, reread)| reread.due.is_some_and(|due| due <= now));
        due.map(|(upstream, reread)| {
            reread.due = None;
            reread.is_running = true;
            reread.is_wanted = false;
            (Arc::clone(upstream), std::mem::take(&mut reread.methods))
        })
        .collect()
    }

    /// Ends when lists are to be read.
    async fn due(&self) {
        match self.0.values().filter_map(|reread| reread.due).min() {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }
}

/// An upstream whose lists were read, and what clients are still to be told where they could not be read.
type Read = (Arc<str>, BTreeSet<&'static str>);

/// Acts on what upstreams say unasked, as long as a gateway is there; another may take its place.
pub(crate) async fn follow(
    serving: Arc<ArcSwap<Weak<Serving>>>,
    subscriptions: Arc<Subscriptions>,
    mut events: Events,
) {
    enum Heard {
        Event(Option<(Arc<str>, Event)>),
        Ended(Option<Read>),
        Due,
    }
    let mut rereads = Rereads::default();
    // At most one waits of each upstream that is read.
    let (done, mut ended) = mpsc::channel::<Read>(16);
    loop {
        let heard = tokio::select! {
            event = events.recv() => Heard::Event(event),
            read = ended.recv() => Heard::Ended(read),
            () = rereads.due() => Heard::Due,
        };
        let Some(serving) = serving.load().upgrade() else { return };
        match heard {
            Heard::Event(None) | Heard::Ended(None) => return,
            Heard::Ended(Some((upstream, left))) => rereads.ended(&upstream, left, Instant::now()),
            Heard::Due => {
                for (upstream, methods) in rereads.begin(Instant::now()) {
                    tokio::spawn(reread(Arc::downgrade(&serving), upstream, methods, done.clone()));
                }
            }
            Heard::Event(Some((upstream, Event::ToolsChanged))) => {
                rereads.note(upstream, "notifications/tools/list_changed", Instant::now());
            }
            Heard::Event(Some((upstream, Event::MayDiffer))) => rereads.note(upstream, DOUBT, Instant::now()),
            Heard::Event(Some((upstream, Event::ToolsWanted))) => {
                rereads.want(upstream, "notifications/tools/list_changed", Instant::now());
            }
            Heard::Event(Some((upstream, Event::ResourcesChanged))) => {
                rereads.note(upstream, "notifications/resources/list_changed", Instant::now());
            }
            Heard::Event(Some((upstream, Event::PromptsChanged))) => {
                rereads.note(upstream, "notifications/prompts/list_changed", Instant::now());
            }
            Heard::Event(Some((upstream, Event::ResourceUpdated(uri)))) => {
                tell_of_update(&subscriptions, &upstream, &uri);
            }
            Heard::Event(Some((_, Event::TaskStatus(params)))) => {
                // With several clients nobody can tell whose task it is.
                if serving.upstreams().only().is_some() && serving.clients().count() == 1 {
                    serving.clients().tell_all("notifications/tasks/status", Some(&params));
                }
            }
            Heard::Event(Some((upstream, Event::Connected))) => {
                tokio::spawn(watch_again(Arc::downgrade(&serving), Arc::clone(&subscriptions), upstream));
            }
            Heard::Event(Some((upstream, Event::Lost))) => {
                if let Some(upstream) = serving.upstreams().get(&upstream) {
                    tokio::spawn(Upstream::revive(Arc::downgrade(upstream)));
                }
            }
        }
    }
}

/// Tells the clients that watch a resource at an upstream that it has other content now. Each upstream speaks of what it was
/// asked to watch, and nobody hears of what it may not watch.
fn tell_of_update(subscriptions: &Subscriptions, upstream: &str, uri: &str) {
    let params = Raw::of(&json!({ "uri": uri }));
    let watchers = subscriptions.watchers(upstream, uri);
    watchers.iter().for_each(|session| session.tell("notifications/resources/updated", Some(&params)));
}

/// Has an upstream watch what it watched on another connection. Clients are told of each resource, which may have
/// changed meanwhile.
async fn watch_again(serving: Weak<Serving>, subscriptions: Arc<Subscriptions>, upstream: Arc<str>) {
    for uri in subscriptions.at(&upstream) {
        let Some(asked) = serving.upgrade().and_then(|serving| serving.upstreams().get(&upstream).cloned()) else {
            return;
        };
        let params = Raw::of(&json!({ "uri": uri }));
        let tell = || asked.request(Call::own("resources/subscribe", Some(&params)));
        match subscriptions.renew(&uri, tell).await {
            Some(Ok(_)) => tell_of_update(&subscriptions, &upstream, &uri),
            Some(Err(fault)) => {
                let fault = asked.shown(fault);
                tracing::warn!(%upstream, uri, %fault, "changes of a resource are not heard any more");
            }
            None => {}
        }
    }
}

/// Reads the lists of an upstream again, and tells clients. What cannot be read now is read after a pause: nothing else may
/// ever say again that it changed.
async fn reread(serving: Weak<Serving>, upstream: Arc<str>, methods: BTreeSet<&'static str>, done: mpsc::Sender<Read>) {
    let mut left = BTreeSet::new();
    if let Some(serving) = serving.upgrade()
        && let Some(changed) = serving.upstreams().get(&upstream)
    {
        let is_doubt = methods.iter().all(|method| *method == DOUBT);
        let relisted = match is_doubt {
            true => serving.doubt(changed).await,
            false => serving.refresh_of(std::iter::once(changed)).await,
        };
        match relisted {
            Ok(relisted) if relisted.failed && changed.is_connected() => left = methods,
            // When the connection is there again, the lists are read.
            Ok(relisted) if relisted.failed => drop(tokio::spawn(Upstream::revive(Arc::downgrade(changed)))),
            Ok(relisted) if is_doubt && !relisted.differs => {}
            // A client of the meta-tools knows of tools alone, and which there are depends on all lists.
            Ok(_) if is_doubt || serving.shows_meta_tools_alone() => serving.tell_of_changes(),
            Ok(_) => {
                let told = methods.iter().filter(|method| **method != DOUBT);
                told.for_each(|method| serving.clients().tell_all(method, None));
            }
            Err(error) => {
                tracing::warn!(%error, "the previous catalog is still served");
                left = methods;
            }
        }
    }
    let _ = done.send((upstream, left)).await;
}

/// Serves what others approve or forget in the pins.
pub(crate) async fn watch_pins(serving: Weak<Serving>) {
    loop {
        tokio::time::sleep(PINS).await;
        let Some(serving) = serving.upgrade() else { return };
        let guards = Arc::clone(serving.guards());
        let changed = tokio::task::spawn_blocking(move || guards.pins_have_changed()).await;
        if !changed.unwrap_or(false) {
            continue;
        }
        match serving.review().await {
            Ok(true) => serving.clients().tell_all("notifications/tools/list_changed", None),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "the previous catalog is still served"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_read_after_growing_pauses_and_others_at_once() {
        let start = Instant::now();
        let (loud, quiet): (Arc<str>, Arc<str>) = (Arc::from("loud"), Arc::from("quiet"));
        let mut rereads = Rereads::default();
        let mut read = Vec::new();
        let mut others = Vec::new();
        for millis in 0..200_000_u64 {
            let now = start + Duration::from_millis(millis);
            if millis < 100_000 {
                rereads.note(Arc::clone(&loud), "tools", now);
            }
            if matches!(millis, 50_000 | 199_000) {
                rereads.note(Arc::clone(&quiet), "tools", now);
            }
            if millis == 199_000 {
                rereads.note(Arc::clone(&loud), "prompts", now);
            }
            for (upstream, _) in rereads.begin(now) {
                if upstream == loud && millis < 100_000 {
                    // What it says while it is read is heard after that.
                    rereads.note(Arc::clone(&loud), "tools", now);
                }
                let log = if upstream == loud { &mut read } else { &mut others };
                log.push(millis);
                rereads.ended(&upstream, BTreeSet::new(), now);
            }
        }
        assert_eq!(read, [200, 600, 1_400, 3_000, 6_200, 12_600, 25_400, 51_000, 81_000, 111_000, 199_200]);
        assert_eq!(others, [50_200, 199_200]);
    }

    #[test]
    fn what_could_not_be_read_is_read_again_after_growing_pauses() {
        let start = Instant::now();
        let upstream: Arc<str> = Arc::from("warming up");
        let mut rereads = Rereads::default();
        rereads.note(Arc::clone(&upstream), "tools", start);
        let mut read = Vec::new();
        for millis in 0..40_000_u64 {
            let now = start + Duration::from_millis(millis);
            for (upstream, methods) in rereads.begin(now) {
                assert_eq!(methods, ["tools"].into());
                read.push(millis);
                rereads.ended(&upstream, if millis < 5_000 { methods } else { BTreeSet::new() }, now);
            }
        }
        assert_eq!(read, [200, 600, 1_400, 3_000, 6_200]);
    }

    #[test]
    fn what_somebody_waits_for_is_read_without_a_pause() {
        let start = Instant::now();
        let loud: Arc<str> = Arc::from("loud");
        let mut rereads = Rereads::default();
        let mut read = Vec::new();
        for millis in 0..100_000_u64 {
            let now = start + Duration::from_millis(millis);
            rereads.note(Arc::clone(&loud), "tools", now);
            if matches!(millis, 30_000 | 30_010) {
                rereads.want(Arc::clone(&loud), "tools", now);
            }
            // What is wanted while it is read is read again after that.
            if millis == 30_020 {
                rereads.ended(&loud, BTreeSet::new(), now);
            }
            for (upstream, _) in rereads.begin(now) {
                read.push(millis);
                if millis != 30_000 {
                    rereads.ended(&upstream, BTreeSet::new(), now);
                }
            }
        }
        assert_eq!(read, [200, 600, 1_400, 3_000, 6_200, 12_600, 25_400, 30_000, 30_020, 60_020, 90_020]);
    }
}
