//! What goes out: one message, or a stream of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, Sleep};

use super::sessions::Visit;
use super::streams::Follower;
use crate::protocol::headers::{EVENTS, JSON};
use crate::protocol::message::{self, Outcome, Raw, RpcError};

/// After how long a silent stream says that it is still there, so that nobody on the way cuts it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What becomes of a request whose client is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leave {
    /// It is finished: in the handshake era only a notification takes a request back.
    Finish,
    /// It is taken back: in the stateless protocol that is what closing means.
    Cancel,
}

/// The serving of one request: what comes of it, or nothing.
pub(super) struct Work {
    serving: Option<Pin<Box<dyn Future<Output = Option<Outcome>> + Send>>>,
    leave: Leave,
}

impl Work {
    pub(super) fn new(leave: Leave, serving: impl Future<Output = Option<Outcome>> + Send + 'static) -> Self {
        Self { serving: Some(Box::pin(serving)), leave }
    }
}

impl Future for Work {
    type Output = Option<Outcome>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(serving) = &mut self.serving else { return Poll::Ready(None) };
        let outcome = ready!(serving.as_mut().poll(context));
        self.serving = None;
        Poll::Ready(outcome)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let (Leave::Finish, Some(serving), Ok(runtime)) =
            (self.leave, self.serving.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(serving);
        }
    }
}

/// The body of a response.
pub(super) enum Reply {
    /// A body in one piece.
    Whole(Option<Bytes>),
    /// A stream of server-sent events.
    Events(Box<Events>),
}

/// Messages as they come, and the answer at the end.
pub(super) struct Events {
    /// The message that made a stream of the response.
    first: Option<Bytes>,
    messages: mpsc::Receiver<Bytes>,
    end: End,
    keep_alive: Interval,
    lease: Lease,
    mark: Option<Mark>,
}

/// What the events of a stream are marked with, so that a client can say up to where it has heard.
pub(super) struct Mark {
    /// Whether an event with the mark and nothing else still comes first.
    is_due: bool,
    next: Box<dyn FnMut() -> String + Send + Sync>,
}

impl Mark {
    /// The mark that `next` gives for each event; `is_due` says whether one without a message comes first.
    pub(super) fn new(is_due: bool, next: impl FnMut() -> String + Send + Sync + 'static) -> Self {
        Self { is_due, next: Box::new(next) }
    }
}

/// For how long a caller is admitted: an open stream ends with it.
#[derive(Debug, Default)]
pub(super) struct Lease {
    /// When what the caller showed expires.
    pub(super) until: Option<Pin<Box<Sleep>>>,
    /// What admitted it: gone when the configuration has it no longer.
    pub(super) by: Option<Weak<()>>,
}

impl Lease {
    fn has_ended(&mut self, context: &mut Context<'_>) -> bool {
        let is_withdrawn = self.by.as_ref().is_some_and(|by| by.strong_count() == 0);
        is_withdrawn || self.until.as_mut().is_some_and(|until| until.as_mut().poll(context).is_ready())
    }
}

/// How a stream ends.
pub(super) enum End {
    /// With what comes of the request with this id.
    Answer(Raw, Work),
    /// With this, or with nothing more.
    Text(Option<Bytes>),
    /// With the stream of a request of a session, which is in use until then.
    Follow {
        follower: Follower,
        /// Whether an event with an id and nothing else still comes first.
        is_primed: bool,
        _used: Visit,
    },
    /// When nobody sends to it any more.
    Feed,
    /// When nobody sends to it any more; the session is in use until then.
    Closed {
        /// The session, held while its stream is open.
        _used: Visit,
    },
}

impl Events {
    fn poll_text(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.lease.has_ended(context) {
            self.end = End::Text(None);
            return Poll::Ready(None);
        }
        if let Some(mark) = self.mark.as_mut().filter(|mark| mark.is_due) {
            mark.is_due = false;
            return Poll::Ready(Some(primer(&(mark.next)())));
        }
        if let End::Follow { follower, is_primed, .. } = &mut self.end {
            if std::mem::take(is_primed) {
                return Poll::Ready(Some(primer(&follower.position().to_string())));
            }
            if let Poll::Ready(next) = follower.poll_next(context) {
                return Poll::Ready(next.map(|message| event(Some(&follower.position().to_string()), &message)));
            }
            return self.poll_alive(context);
        }
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(event(None, &first)));
        }
        if let End::Answer(id, work) = &mut self.end
            && let Poll::Ready(outcome) = Pin::new(work).poll(context)
        {
            self.end = End::Text(outcome.map(|outcome| message::response(Some(id), &outcome)));
        }
        // What was said before the answer comes before it.
        match (self.messages.poll_recv(context), &mut self.end) {
            (Poll::Ready(Some(message)), _) => {
                let mark = self.mark.as_mut().map(|mark| (mark.next)());
                Poll::Ready(Some(event(mark.as_deref(), &message)))
            }
            (_, End::Text(last)) => Poll::Ready(last.take().map(|text| event(None, &text))),
            (Poll::Ready(None), End::Closed { .. } | End::Feed) => Poll::Ready(None),
            _ => self.poll_alive(context),
        }
    }

    /// Says from time to time that the stream is still there.
    fn poll_alive(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        ready!(self.keep_alive.poll_tick(context));
        Poll::Ready(Some(Bytes::from_static(b": still here\n\n")))
    }
}

/// An event without a message, which gives a client the id that it can take the stream up from.
fn primer(id: &str) -> Bytes {
    Bytes::from(format!("id: {id}\ndata:\n\n"))
}

/// A message as an event, with its id where it has one.
fn event(id: Option<&str>, message: &Bytes) -> Bytes {
    const HEAD: &[u8] = b"event: message\ndata: ";
    const TAIL: &[u8] = b"\n\n";
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    let mut text = BytesMut::with_capacity(id.len() + HEAD.len() + message.len() + TAIL.len());
    text.put_slice(id.as_bytes());
    text.put_slice(HEAD);
    text.put_slice(message);
    text.put_slice(TAIL);
    text.freeze()
}

impl Reply {
    /// Marks the events of a stream.
    pub(super) fn marked(&mut self, mark: Mark) {
        if let Self::Events(events) = self {
            events.mark = Some(mark);
        }
    }

    /// Ends a stream with the lease of its caller.
    pub(super) fn lent(&mut self, lease: Lease) {
        if let Self::Events(events) = self {
            events.lease = lease;
        }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let text = match &mut *self {
            Self::Whole(text) => text.take(),
            Self::Events(events) => ready!(events.poll_text(context)),
        };
        Poll::Ready(text.map(|text| Ok(Frame::data(text))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(text) => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

/// A response with one text.
pub(super) fn whole(status: StatusCode, media_type: &'static str, text: impl Into<Bytes>) -> Response<Reply> {
    let mut response = Response::new(Reply::Whole(Some(text.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Response<Reply> {
    let mut response = Response::new(Reply::Whole(None));
    *response.status_mut() = status;
    response
}

/// A response of `messages` after `first`, until `end`.
pub(super) fn events(first: Option<Bytes>, messages: mpsc::Receiver<Bytes>, end: End) -> Response<Reply> {
    let keep_alive = tokio::time::interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
    let mut response = Response::new(Reply::Events(Box::new(Events {
        first,
        messages,
        end,
        keep_alive,
        lease: Lease::default(),
        mark: None,
    })));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies that gather responses would hold the events back.
    response.headers_mut().insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// A stream that ends at once, for a request that was taken back.
pub(super) fn nothing() -> Response<Reply> {
    let (_, no_messages) = mpsc::channel(1);
    events(None, no_messages, End::Text(None))
}

/// A response of what a follower hears.
pub(super) fn following(follower: Follower, is_primed: bool, used: Visit) -> Response<Reply> {
    // Its messages come from the stream that it follows.
    let (_, no_messages) = mpsc::channel(1);
    events(None, no_messages, End::Follow { follower, is_primed, _used: used })
}

/// A request that is not served, and why.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    reason: Reason,
    /// What the client may do about it, in the form of the header `WWW-Authenticate`.
    challenge: Option<String>,
    /// Seconds after which the client may try again, where the status says that it may.
    retry_after: u64,
}

#[derive(Debug)]
enum Reason {
    Text(String),
    Rpc(Option<Raw>, RpcError),
}

impl Refused {
    /// Refused with a line of text instead of a message of JSON-RPC.
    pub(super) fn text(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: Reason::Text(reason.into()), challenge: None, retry_after: 1 }
    }

    /// Refused with an error of JSON-RPC.
    pub(super) fn rpc(status: StatusCode, id: Option<Raw>, error: RpcError) -> Self {
        Self { status, reason: Reason::Rpc(id, error), challenge: None, retry_after: 1 }
    }

    /// Refused for want of a token.
    pub(super) fn unauthorized() -> Self {
        Self::text(StatusCode::UNAUTHORIZED, "a bearer token is needed: `Authorization: Bearer …`")
            .with_challenge("Bearer".to_owned())
    }

    /// The same with what the client may do about it.
    pub(super) fn with_challenge(self, challenge: String) -> Self {
        Self { challenge: Some(challenge), ..self }
    }

    /// The same, to be tried again after so many seconds.
    pub(super) fn with_retry_after(self, seconds: u64) -> Self {
        Self { retry_after: seconds, ..self }
    }

    /// The status that it is refused with.
    #[cfg(test)]
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// Why, as a line of text.
    pub(super) fn reason(&self) -> String {
        match &self.reason {
            Reason::Text(text) => text.clone(),
            Reason::Rpc(_, error) => error.message.clone(),
        }
    }

    /// The response that says so.
    pub(super) fn into_response(self) -> Response<Reply> {
        let mut response = match self.reason {
            Reason::Text(text) => whole(self.status, "text/plain; charset=utf-8", text),
            Reason::Rpc(id, error) => whole(self.status, JSON, message::response(id.as_ref(), &Err(error))),
        };
        if matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(self.retry_after));
        }
        if let Some(challenge) = self.challenge.and_then(|challenge| HeaderValue::from_str(&challenge).ok()) {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
