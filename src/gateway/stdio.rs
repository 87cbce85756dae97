//! The face on our own standard streams: one client, one message a line.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};

use super::face::{Asked, serve_request};
use super::hub::Gateway;
use super::lines::{Line, LineReader, write_lines};
use super::modern::RequestMeta;
use super::session::{Caller, Session};
use super::upstream::MESSAGE_LIMIT;
use super::wire::{self, INVALID_REQUEST, Message, Raw, RpcError};

/// Messages that wait to be written, at most.
const QUEUE: usize = 1024;

/// Serves one client on standard input and output until its input ends.
///
/// # Errors
/// The streams cannot be used.
pub async fn serve_stdio(gateway: Arc<Gateway>) -> io::Result<()> {
    let (input, output) = own_streams()?;
    serve(gateway, input, output).await
}

type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Our own standard input and output.
pub(super) fn own_streams() -> io::Result<(Input, Output)> {
    // A pipe can be waited for without a thread of its own, which costs two changes of context a message.
    let (input, output) = (io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?);
    let input: Input = match pipe::Receiver::from_owned_fd(input) {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdin()),
    };
    let output: Output = match pipe::Sender::from_owned_fd(output) {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdout()),
    };
    Ok((input, output))
}

/// Serves one client on a pair of streams until its input ends.
///
/// # Errors
/// The input cannot be read.
pub async fn serve<R, W>(gateway: Arc<Gateway>, input: R, output: W) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (out, lines) = mpsc::channel(QUEUE);
    let writing = tokio::spawn(write_lines(output, lines));
    let session = Session::new("stdio");
    session.open_stream(out.clone());
    gateway.enter(&session);
    let mut input = LineReader::new(input, MESSAGE_LIMIT);
    let mut serving = tokio::task::JoinSet::new();
    let (open, closing) = watch::channel(());
    let read = loop {
        tokio::select! {
            line = input.next() => match line {
                Ok(Some(Line::Text(line))) => {
                    if let Some(work) = receive(&gateway, &session, line, &out, &closing).await {
                        serving.spawn(work);
                    }
                }
                Ok(Some(Line::TooLong { length, .. })) => {
                    let reason = format!("a message of {length} bytes is over the limit of {MESSAGE_LIMIT}");
                    let error = Err(RpcError::new(INVALID_REQUEST, reason));
                    let _ = out.send(wire::response(None, &error)).await;
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            },
            Some(_) = serving.join_next(), if !serving.is_empty() => {}
        }
    };
    // What was asked before the input ended is answered, and who listens is told that it ends.
    drop(open);
    while serving.join_next().await.is_some() {}
    drop((session, out));
    let _ = writing.await;
    read
}

/// Takes a message in; what is left to do for it is returned.
async fn receive(
    gateway: &Arc<Gateway>,
    session: &Arc<Session>,
    line: Bytes,
    out: &mpsc::Sender<Bytes>,
    closing: &watch::Receiver<()>,
) -> Option<impl Future<Output = ()> + Send + use<>> {
    match Message::parse(line) {
        Ok(Message::Request { id, method, params }) => {
            let caller = (Arc::clone(gateway), Arc::clone(session), out.clone());
            return Some(request(caller, id, method, params, closing.clone()));
        }
        Ok(Message::Notification { method, params }) => gateway.take(session, &method, params.as_ref()),
        Ok(Message::Response { id, outcome }) => session.answered(&id, outcome),
        Err(error) => {
            let _ = out.send(wire::response(None, &Err(error.to_rpc()))).await;
        }
    }
    None
}

async fn request(
    (gateway, session, out): (Arc<Gateway>, Arc<Session>, mpsc::Sender<Bytes>),
    id: Raw,
    method: String,
    params: Option<Raw>,
    mut closing: watch::Receiver<()>,
) {
    let outcome = match RequestMeta::read(params.as_ref()).client() {
        Err(error) => Some(Err(error)),
        Ok(client) => {
            let client = client.unwrap_or_else(|| session.client());
            let caller = Caller::new(session, client, out.clone());
            let asked = Asked { id: &id, method: &method, params: params.as_ref() };
            let closing = async {
                let _ = closing.changed().await;
            };
            serve_request(&gateway, &caller, &asked, closing).await
        }
    };
    if let Some(outcome) = outcome {
        let _ = out.send(wire::response(Some(&id), &outcome)).await;
    }
}
