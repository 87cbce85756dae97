//! The streams of requests in a session, which a client can take up again.
//!
//! A request whose answer is a stream is served apart from its connection. Each event has an id; a client that was cut off
//! sends the last one that it has in `Last-Event-ID` of a `GET`, and hears the rest, the answer included. A stream that has
//! ended is kept for a while, as long as the ended streams of its session have few bytes in all. Where replicas share
//! sessions, the answer that nobody fetched is left for the others; the notifications before it are not.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};

use crate::common::sync::lock;
use crate::protocol::message::{self, Outcome, Raw};

/// Messages of a request or stream that wait for its client, at most.
pub(super) const QUEUE: usize = 256;

/// Bytes of events that were sent and are still kept, for one stream.
const KEPT: usize = 65_536;

/// Bytes of notifications that wait for a client, at most.
const WAITING: usize = 1_048_576;

/// Bytes of the ended streams of one session, at most.
const ENDED_BYTES: usize = 131_072;

/// Ended streams of one session, at most.
const ENDED: usize = 8;

/// How long an ended stream is kept.
const LASTS: Duration = Duration::from_secs(300);

/// Where in a stream of a session a client is: the number of the stream, and that of its last event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) stream: u64,
    pub(super) event: u64,
}

impl Position {
    /// The position that an id of an event stands for; `None` for ids of other streams.
    pub(super) fn parse(id: &str) -> Option<Self> {
        let (stream, event) = id.split_once('-')?;
        Some(Self { stream: stream.parse().ok()?, event: event.parse().ok()? })
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}-{}", self.stream, self.event)
    }
}

/// The streams of one session.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<VecDeque<Arc<Stream>>>);

impl Streams {
    /// Enters a stream that goes on after this position: nothing up to there is kept here.
    pub(super) fn begin(&self, after: Position) -> Arc<Stream> {
        let inner = Inner { gone: after.event, sent: after.event, ..Inner::default() };
        let stream = Arc::new(Stream { number: after.stream, inner: Mutex::new(inner), settled: Notify::new() });
        let mut streams = lock(&self.0);
        streams.retain(|other| other.number != after.stream);
        streams.push_back(Arc::clone(&stream));
        stream
    }

    /// Forgets the stream with this number.
    pub(super) fn forget(&self, number: u64) {
        lock(&self.0).retain(|stream| stream.number != number);
    }

    /// What follows this position; `None` where that is not kept any more. Whoever followed the stream before hears no more.
    pub(super) fn follow(&self, from: Position) -> Option<Follower> {
        let stream = lock(&self.0).iter().find(|stream| stream.number == from.stream).cloned()?;
        let is_kept = {
            let inner = lock(&stream.inner);
            (inner.gone..=inner.last()).contains(&from.event)
        };
        is_kept.then(|| stream.follow(from.event))
    }

    /// Forgets ended streams that are old at `now`, and the first of those that are too many or too large.
    pub(super) fn sweep(&self, now: Instant) {
        let mut streams = lock(&self.0);
        let (mut count, mut bytes) = (0, 0);
        let mut keep: Vec<bool> = Vec::with_capacity(streams.len());
        for stream in streams.iter().rev() {
            let inner = lock(&stream.inner);
            let Some(ended) = inner.ended else {
                keep.push(true);
                continue;
            };
            count += 1;
            bytes += inner.bytes;
            let is_young = now.saturating_duration_since(ended) < LASTS;
            keep.push(is_young && count <= ENDED && bytes <= ENDED_BYTES);
        }
        let mut keep = keep.into_iter().rev();
        streams.retain(|_| keep.next().unwrap_or(false));
    }
}

/// The events of one request.
#[derive(Debug)]
pub(super) struct Stream {
    number: u64,
    inner: Mutex<Inner>,
    /// Told when nobody follows it, or all has been sent.
    settled: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    /// The events that are kept; the number of the first is `gone + 1`.
    events: VecDeque<Bytes>,
    gone: u64,
    /// The bytes of these events.
    bytes: usize,
    /// The number of the last event that was sent to somebody.
    sent: u64,
    ended: Option<Instant>,
    /// Counts those that have followed the stream; the last one does.
    follower: u64,
    is_followed: bool,
    waker: Option<Waker>,
}

impl Inner {
    fn last(&self) -> u64 {
        self.gone + self.events.len() as u64
    }

    fn push(&mut self, event: Bytes) {
        self.bytes += event.len();
        self.events.push_back(event);
        self.waker.take().into_iter().for_each(Waker::wake);
    }

    /// Keeps a copy in place of the event with this number, which was sent: the message itself counts as one that waits
    /// for as long as it is held.
    fn keep_copy(&mut self, number: u64) {
        let at = number.checked_sub(self.gone + 1).and_then(|at| usize::try_from(at).ok());
        if let Some(event) = at.and_then(|at| self.events.get_mut(at)) {
            *event = Bytes::copy_from_slice(event);
        }
    }

    /// Forgets what was sent and is too much.
    fn trim(&mut self) {
        while self.bytes > KEPT && self.gone < self.sent {
            let Some(first) = self.events.pop_front() else { return };
            self.bytes -= first.len();
            self.gone += 1;
        }
    }
}

impl Stream {
    /// Follows what comes after an event, or what is kept of it.
    pub(super) fn follow(self: &Arc<Self>, after: u64) -> Follower {
        let mut inner = lock(&self.inner);
        inner.waker.take().into_iter().for_each(Waker::wake);
        inner.follower += 1;
        inner.is_followed = true;
        // What came after it did not arrive, whoever it was sent to.
        inner.sent = after.clamp(inner.gone, inner.last());
        Follower { stream: Arc::clone(self), follower: inner.follower, at: inner.sent }
    }

    /// Its number, which no other stream of the session has.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether anybody follows it.
    pub(super) fn is_followed(&self) -> bool {
        lock(&self.inner).is_followed
    }

    /// Takes a message; a notification more than may wait for a client is dropped. Questions are few, and somebody
    /// waits for the answers.
    pub(super) fn take(&self, message: Bytes) {
        let mut inner = lock(&self.inner);
        let waiting = inner.last() - inner.sent;
        let has_room = waiting < QUEUE as u64 && inner.bytes + message.len() <= KEPT + WAITING;
        if has_room || !message::is_notification(&message) {
            inner.push(message);
            inner.trim();
        }
    }

    /// Ends it with this message, or with nothing more.
    pub(super) fn end(&self, answer: Option<Bytes>) {
        let mut inner = lock(&self.inner);
        inner.ended = Some(Instant::now());
        answer.into_iter().for_each(|answer| inner.push(answer));
        inner.waker.take().into_iter().for_each(Waker::wake);
    }

    /// Waits until nobody follows the stream, or all has been sent; the last event where that was not.
    async fn unsent(&self) -> Option<Bytes> {
        loop {
            let settled = self.settled.notified();
            {
                let inner = lock(&self.inner);
                if inner.sent == inner.last() {
                    return None;
                }
                if !inner.is_followed {
                    return inner.events.back().cloned();
                }
            }
            settled.await;
        }
    }

    /// Serves the request with this id: its messages come first, then what comes of it. Returns the answer when it is sure
    /// that nobody fetched it here.
    pub(super) async fn serve(
        &self,
        id: &Raw,
        mut work: impl Future<Output = Option<Outcome>> + Unpin,
        mut messages: mpsc::Receiver<Bytes>,
    ) -> Option<Bytes> {
        let outcome = loop {
            tokio::select! {
                biased;
                Some(message) = messages.recv() => self.take(message),
                outcome = &mut work => break outcome,
            }
        };
        while let Ok(message) = messages.try_recv() {
            self.take(message);
        }
        let is_answered = outcome.is_some();
        self.end(outcome.map(|outcome| message::response(Some(id), &outcome)));
        if is_answered { self.unsent().await } else { None }
    }
}

/// Hears a stream from some event on, until another does.
#[derive(Debug)]
pub(super) struct Follower {
    stream: Arc<Stream>,
    follower: u64,
    /// The number of the last event that it was given.
    at: u64,
}

impl Follower {
    /// Where it is.
    pub(super) fn position(&self) -> Position {
        Position { stream: self.stream.number, event: self.at }
    }

    /// Whether it has heard all that there is, and nothing more comes.
    pub(super) fn is_at_end(&self) -> bool {
        let inner = lock(&self.stream.inner);
        inner.ended.is_some() && self.at == inner.last()
    }

    /// The next event; `None` at the end of the stream, or when another follows it.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut inner = lock(&self.stream.inner);
        if inner.follower != self.follower {
            return Poll::Ready(None);
        }
        let next = usize::try_from(self.at - inner.gone).ok().and_then(|at| inner.events.get(at).cloned());
        let Some(event) = next else {
            if inner.ended.is_some() {
                return Poll::Ready(None);
            }
            inner.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        self.at += 1;
        inner.sent = inner.sent.max(self.at);
        inner.trim();
        inner.keep_copy(self.at);
        if inner.ended.is_some() {
            self.stream.settled.notify_one();
        }
        Poll::Ready(Some(event))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut inner = lock(&self.stream.inner);
        if inner.follower == self.follower {
            inner.is_followed = false;
            inner.waker = None;
            self.stream.settled.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::backlog::Backlog;

    #[test]
    fn of_what_nobody_reads_only_notifications_are_left_out() {
        let streams = Streams::default();
        let stream = streams.begin(Position { stream: 1, event: 0 });
        let note = message::notification("notifications/message", None);
        (0..QUEUE * 2).for_each(|_| stream.take(note.clone()));
        let question = message::request(&Raw::of(&1), "elicitation/create", None);
        stream.take(question.clone());
        let mut follower = stream.follow(0);
        let mut context = Context::from_waker(Waker::noop());
        let heard: Vec<Bytes> = std::iter::from_fn(|| match follower.poll_next(&mut context) {
            Poll::Ready(next) => next,
            Poll::Pending => None,
        })
        .collect();
        assert_eq!((heard.len(), heard.last()), (QUEUE + 1, Some(&question)));
    }

    #[test]
    fn what_was_read_waits_no_longer_and_can_be_heard_again() {
        let (streams, backlog) = (Streams::default(), Backlog::default());
        let stream = streams.begin(Position { stream: 1, event: 0 });
        let note = message::notification("notifications/message", None);
        (0..3).for_each(|_| stream.take(backlog.admit(note.clone()).unwrap()));
        let mut context = Context::from_waker(Waker::noop());
        let mut hear = |follower: &mut Follower| match follower.poll_next(&mut context) {
            Poll::Ready(next) => next,
            Poll::Pending => None,
        };
        // One of this length is let in when no other waits.
        let vast = Bytes::from(vec![b'x'; 16 * 1024 * 1024]);
        let mut follower = stream.follow(0);
        for _ in 0..3 {
            assert!(backlog.admit(vast.clone()).is_none());
            assert_eq!(hear(&mut follower).as_ref(), Some(&note));
        }
        assert!(backlog.admit(vast).is_some());
        let mut again = streams.follow(Position { stream: 1, event: 1 }).unwrap();
        let heard: Vec<Bytes> = std::iter::from_fn(|| hear(&mut again)).collect();
        assert_eq!(heard, [note.clone(), note]);
    }
}
