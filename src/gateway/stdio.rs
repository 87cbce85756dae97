//! The face on our own standard streams: one client, one message a line.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::guard::sign::unique;
use super::hub::Gateway;
use super::lines::{Line, LineReader, write_lines};
use super::protocol::stateless_client;
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
    // A pipe can be waited for without a thread of its own, which costs two changes of context a message.
    let (input, output) = (io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?);
    let input: Box<dyn AsyncRead + Send + Unpin> = match pipe::Receiver::from_owned_fd(input) {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdin()),
    };
    let output: Box<dyn AsyncWrite + Send + Unpin> = match pipe::Sender::from_owned_fd(output) {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdout()),
    };
    serve(gateway, input, output).await
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
    let session = Session::new(format!("stdio-{}", unique()));
    session.open_stream(out.clone());
    gateway.enter(&session);
    let mut input = LineReader::new(input, MESSAGE_LIMIT);
    let mut serving = tokio::task::JoinSet::new();
    let read = loop {
        tokio::select! {
            line = input.next() => match line {
                Ok(Some(Line::Text(line))) => {
                    if let Some(work) = receive(&gateway, &session, line, &out).await {
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
    // What was asked before the input ended is answered.
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
) -> Option<impl Future<Output = ()> + Send + use<>> {
    match Message::parse(line) {
        Ok(Message::Request { id, method, params }) => {
            let (gateway, session, out) = (Arc::clone(gateway), Arc::clone(session), out.clone());
            return Some(request(gateway, session, out, id, method, params));
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
    gateway: Arc<Gateway>,
    session: Arc<Session>,
    out: mpsc::Sender<Bytes>,
    id: Raw,
    method: String,
    params: Option<Raw>,
) {
    let running = session.begin(&id);
    let outcome = match stateless_client(params.as_ref()) {
        Err(error) => Err(error),
        Ok(client) => {
            let client = client.unwrap_or_else(|| session.client());
            let caller = Caller::new(Arc::clone(&session), client, out.clone());
            tokio::select! {
                outcome = gateway.answer(&caller, &method, params.as_ref()) => outcome,
                // A request that was taken back gets no answer.
                () = running.cancelled() => return,
            }
        }
    };
    let _ = out.send(wire::response(Some(&id), &outcome)).await;
}
