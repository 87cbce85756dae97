//! What upstreams say unasked, on its way to the gateway.
//!
//! One that talks without end must take neither memory nor the place of what others say: of each upstream an event that
//! says no more than one that waits already is left out, and changes of resources, which all say something else, wait up
//! to a number. So what waits is bounded by the number of upstreams, and the loss of a connection is never lost.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use crate::common::sync::lock;
use crate::protocol::message::Raw;

/// What an upstream says unasked, and what becomes of it.
#[derive(Debug, Clone)]
pub enum Event {
    /// Its tools are others now.
    ToolsChanged,
    /// Somebody waits to know what its tools are now.
    ToolsWanted,
    /// Its resources are others now.
    ResourcesChanged,
    /// Its prompts are others now.
    PromptsChanged,
    /// The resource with this URI has other content now.
    ResourceUpdated(String),
    /// A task is in another state; the parameters of the notification.
    TaskStatus(Raw),
    /// It is connected anew: it knows nothing of what was asked of it on another connection.
    Connected,
    /// The connection to the upstream broke.
    Lost,
    /// Any of its lists may be another now: it was not heard for a while, or was started anew.
    MayDiffer,
}

impl Event {
    fn kind(&self) -> usize {
        match self {
            Self::ToolsChanged => 0,
            Self::ResourcesChanged => 1,
            Self::PromptsChanged => 2,
            Self::Lost => 3,
            Self::Connected => 4,
            Self::ToolsWanted => 5,
            Self::MayDiffer => 6,
            Self::ResourceUpdated(_) => UPDATES,
            Self::TaskStatus(_) => UPDATES + 1,
        }
    }

    /// How many of its kind may wait.
    fn most(&self) -> usize {
        if self.kind() >= UPDATES { MOST_UPDATES } else { 1 }
    }
}

/// The kind of changes of resources; those of tasks are the kind after it, and the last.
const UPDATES: usize = 7;

/// Changes of resources of an upstream that wait to be heard, at most, and as many of tasks.
const MOST_UPDATES: usize = 256;

/// How many events of each kind wait, by upstream.
type Waiting = Arc<Mutex<HashMap<Arc<str>, [usize; UPDATES + 2]>>>;

/// Where upstreams say what nobody asked.
#[derive(Debug, Clone)]
pub struct EventSender {
    /// Bounded by what may wait of each upstream.
    queue: mpsc::UnboundedSender<(Arc<str>, Event)>,
    waiting: Waiting,
}

/// Where it is heard.
#[derive(Debug)]
pub struct Events {
    queue: mpsc::UnboundedReceiver<(Arc<str>, Event)>,
    waiting: Waiting,
}

impl EventSender {
    /// A sender and the receiver of what is sent.
    #[must_use]
    pub fn channel() -> (Self, Events) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let waiting = Waiting::default();
        (Self { queue: sender, waiting: Arc::clone(&waiting) }, Events { queue: receiver, waiting })
    }

    /// Says what happened to `upstream`.
    pub(super) fn send(&self, upstream: &Arc<str>, event: Event) {
        let mut waiting = lock(&self.waiting);
        let counts = waiting.entry(Arc::clone(upstream)).or_default();
        match counts.get_mut(event.kind()) {
            Some(count) if *count < event.most() => {
                *count += 1;
                // Nobody may listen any more.
                let _ = self.queue.send((Arc::clone(upstream), event));
            }
            _ => tracing::trace!(%upstream, ?event, "dropped: too many wait already"),
        }
    }
}

impl Events {
    /// The next; `None` when no sender is left.
    pub async fn recv(&mut self) -> Option<(Arc<str>, Event)> {
        let next = self.queue.recv().await;
        next.inspect(|(upstream, event)| self.heard(upstream, event))
    }

    /// The next that is there.
    #[cfg(test)]
    pub(super) fn try_recv(&mut self) -> Option<(Arc<str>, Event)> {
        let next = self.queue.try_recv().ok();
        next.inspect(|(upstream, event)| self.heard(upstream, event))
    }

    fn heard(&self, upstream: &Arc<str>, event: &Event) {
        if let Some(count) = lock(&self.waiting).get_mut(upstream).and_then(|counts| counts.get_mut(event.kind())) {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_one_takes_a_bounded_place_and_none_of_others() {
        let (sender, mut events) = EventSender::channel();
        let (loud, quiet) = (Arc::from("loud"), Arc::from("quiet"));
        let flood = || {
            for _ in 0..10_000 {
                sender.send(&loud, Event::ToolsChanged);
                sender.send(&loud, Event::PromptsChanged);
                sender.send(&loud, Event::ResourceUpdated("a:b".to_owned()));
            }
        };
        flood();
        sender.send(&loud, Event::Lost);
        sender.send(&quiet, Event::ToolsChanged);
        let mut heard = |name: &str| {
            let all: Vec<_> = std::iter::from_fn(|| events.try_recv()).collect();
            (all.len(), all.iter().any(|(upstream, _)| **upstream == *name))
        };
        assert_eq!(heard("quiet"), (2 + MOST_UPDATES + 1 + 1, true));
        flood();
        assert_eq!(heard("loud"), (2 + MOST_UPDATES, true), "what was heard may be said again");
    }
}
