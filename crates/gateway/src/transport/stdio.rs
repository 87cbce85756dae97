//! The transport on our own standard streams: one client, one message a line.

use std::io;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(unix)]
use tokio::net::{UnixStream, unix::pipe};
use tokio::sync::{mpsc, watch};

use super::PULSE;
use super::crowd::{Crowd, Place};
use crate::guard::sign::unique;
#[cfg(unix)]
use crate::protocol::framing::widen;
use crate::protocol::framing::{Line, LineReader, write_lines};
use crate::protocol::message::{self, INVALID_REQUEST, Message, Raw, RpcError, WireError};
use crate::protocol::stateless::RequestMeta;
use crate::protocol::transport::Transport;
use crate::server::gateway::Gateway;
use crate::server::live::Live;
use crate::server::requests::{Asked, serve_request};
use crate::session::client::{Caller, Running, Session};
use crate::upstream::call::MESSAGE_LIMIT;

/// Requests that are served at a time, at most; answers and notifications of the client are taken all the same.
const MOST_RUNNING: usize = 1_024;

/// Messages that wait to be written, at most.
const QUEUE: usize = 1024;

/// How long requests have to finish when the process is told to end: whoever tells it may soon make it.
const GRACE: Duration = Duration::from_secs(2);

/// Serves one client on standard input and output until its input or `shutdown` ends.
///
/// # Errors
/// The streams cannot be used.
pub async fn serve_stdio(
    gateway: impl Into<Live>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (input, output) = own_streams()?;
    // A task of its own: each time that what a runtime blocks on is woken costs it two system calls more.
    tokio::spawn(serve_until(gateway.into(), (input, output), shutdown)).await.map_err(io::Error::other)?
}

type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Our own standard input and output.
#[cfg(not(unix))]
pub(crate) fn own_streams() -> io::Result<(Input, Output)> {
    Ok((Box::new(tokio::io::stdin()), Box::new(tokio::io::stdout())))
}

/// Our own standard input and output.
#[cfg(unix)]
pub(crate) fn own_streams() -> io::Result<(Input, Output)> {
    let input = input(io::stdin().as_fd())?.unwrap_or_else(|| Box::new(tokio::io::stdin()));
    let output = output(io::stdout().as_fd())?.unwrap_or_else(|| Box::new(tokio::io::stdout()));
    Ok((input, output))
}

/// The stream, if it can be waited for without a thread of its own, which costs two changes of context a message: it
/// is a pipe, or a socket, which is what Node gives to its children.
#[cfg(unix)]
fn input(stream: BorrowedFd<'_>) -> io::Result<Option<Input>> {
    Ok(match pipe::Receiver::from_owned_fd(stream.try_clone_to_owned()?) {
        Ok(pipe) => {
            widen(&pipe);
            Some(Box::new(pipe))
        }
        Err(_) => socket(stream)?.map(|socket| Box::new(socket) as Input),
    })
}

/// As [`input`], for the other direction.
#[cfg(unix)]
fn output(stream: BorrowedFd<'_>) -> io::Result<Option<Output>> {
    Ok(match pipe::Sender::from_owned_fd(stream.try_clone_to_owned()?) {
        Ok(pipe) => {
            widen(&pipe);
            Some(Box::new(pipe))
        }
        Err(_) => socket(stream)?.map(|socket| Box::new(socket) as Output),
    })
}

#[cfg(unix)]
fn socket(stream: BorrowedFd<'_>) -> io::Result<Option<UnixStream>> {
    let socket = std::os::unix::net::UnixStream::from(stream.try_clone_to_owned()?);
    // Only a Unix socket has an address of this kind.
    if socket.local_addr().is_err() {
        return Ok(None);
    }
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket).map(Some)
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
    serve_until(Live::from(gateway), (input, output), std::future::pending()).await
}

/// As [`serve`], and until `shutdown` ends: then nothing more is read, and requests have a while to finish.
async fn serve_until<R, W>(live: Live, (input, output): (R, W), shutdown: impl Future<Output = ()>) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (out, lines) = mpsc::channel(QUEUE);
    let writing = tokio::spawn(write_lines(output, lines));
    let session = Session::new(format!("stdio-{}", unique()));
    session.open_stream(out.clone());
    live.now().enter(&session);
    let mut input = LineReader::new(input, MESSAGE_LIMIT);
    let mut serving = tokio::task::JoinSet::new();
    let mut pulse = tokio::time::interval(PULSE);
    let (open, closing) = watch::channel(());
    let bytes = Crowd::new(0);
    let mut is_told = false;
    tokio::pin!(shutdown);
    let read = loop {
        tokio::select! {
            line = input.next() => match line {
                Ok(Some(Line::Text(line))) => {
                    let most = live.now().config().http.max_bytes_in_flight;
                    bytes.set_most(most);
                    let place = match serving.len() >= MOST_RUNNING {
                        true => Err(format!("{MOST_RUNNING} requests are being served; wait for one to finish")),
                        false => bytes.enter_with((), line.len()).ok_or_else(|| {
                            format!("with this one, the requests that are being served have more than {most} bytes; \
                                     wait for one to finish")
                        }),
                    };
                    if let Some(work) = receive(&live, &session, line, (&out, place), &closing).await {
                        serving.spawn(work);
                    }
                }
                Ok(Some(Line::TooLong { length, .. })) => {
                    let reason = format!("a message of {length} bytes is over the limit of {MESSAGE_LIMIT}");
                    let error = Err(RpcError::new(INVALID_REQUEST, reason));
                    let _ = out.send(message::response(None, &error)).await;
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            },
            Some(_) = serving.join_next(), if !serving.is_empty() => {}
            _ = pulse.tick() => {}
            () = &mut shutdown => {
                is_told = true;
                break Ok(());
            }
        }
    };
    // What was asked before the input ended is answered, and who listens is told that it ends. Nothing more is read:
    // nobody answers what the client was asked.
    session.end();
    drop(open);
    let ending = async {
        while serving.join_next().await.is_some() {}
        drop((session, out));
        let _ = writing.await;
    };
    tokio::pin!(ending);
    if !is_told {
        tokio::select! {
            () = &mut ending => return read,
            () = &mut shutdown => {}
        }
    }
    if tokio::time::timeout(GRACE, ending).await.is_err() {
        tracing::warn!(seconds = GRACE.as_secs_f64(), "requests that did not finish in time are dropped");
    }
    read
}

/// Takes a message in; what is left to do for it is returned.
async fn receive(
    live: &Live,
    session: &Arc<Session>,
    line: Bytes,
    (out, place): (&mpsc::Sender<Bytes>, Result<Place<()>, String>),
    closing: &watch::Receiver<()>,
) -> Option<impl Future<Output = ()> + Send + use<>> {
    match Message::parse_of_client(line) {
        Ok(Message::Request { id, method, params }) => match place {
            Ok(place) => {
                let caller = (live.clone(), Arc::clone(session), out.clone());
                // At once: the next message may take it back.
                let running = session.begin(&id);
                return Some(request(caller, (id, method, params), closing.clone(), (running, place)));
            }
            Err(reason) => {
                let error = Err(RpcError::new(INVALID_REQUEST, reason));
                let _ = out.send(message::response(Some(&id), &error)).await;
            }
        },
        Ok(Message::Notification { method, params }) => live.now().take(session, &method, params.as_ref()),
        Ok(Message::Response { id, outcome }) => session.answered(&id, outcome),
        // To an answer there is none: the client would take it for that to a request of its own.
        Err(error @ WireError::Answer(_)) => tracing::warn!(%error, "an answer of the client is not usable"),
        Err(error) => {
            let _ = out.send(message::response(error.id(), &Err(error.to_rpc()))).await;
        }
    }
    None
}

/// Serves a request, which has its place until then.
async fn request(
    (live, session, out): (Live, Arc<Session>, mpsc::Sender<Bytes>),
    (id, method, params): (Raw, String, Option<Raw>),
    mut closing: watch::Receiver<()>,
    (running, _place): (Option<Running>, Place<()>),
) {
    let outcome = match RequestMeta::read(params.as_ref()).client() {
        Err(error) => Some(Err(error)),
        Ok(client) => {
            let client = client.map_or_else(|| session.client(), Arc::new);
            let caller = Caller::new(session, client, out.clone()).over(Transport::Pipe);
            let asked = Asked { id: &id, method: &method, params: params.as_ref() };
            let closing = async {
                let _ = closing.changed().await;
            };
            serve_request(&live, &caller, (&asked, running), closing).await
        }
    };
    if let Some(outcome) = outcome {
        let _ = out.send(message::response(Some(&id), &outcome)).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::{GatewayConfig, MODERN_VERSION, StartConfig};

    #[tokio::test]
    async fn a_subscription_lasts_until_the_input_ends() {
        let startup = StartConfig { fail_on_empty_catalog: false, ..StartConfig::default() };
        let gateway = Gateway::start(GatewayConfig { startup, ..GatewayConfig::default() }).await.unwrap();
        let (mut client, server) = tokio::io::duplex(4096);
        let (input, output) = tokio::io::split(server);
        let params = json!({
            "notifications": {"toolsListChanged": true},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        });
        let listen = json!({"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": params});
        client.write_all(format!("{listen}\n").as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        serve(gateway, input, output).await.unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        let said: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(said[0]["method"], "notifications/subscriptions/acknowledged");
        assert_eq!((&said[1]["id"], &said[1]["result"]["resultType"]), (&json!("s"), &json!("complete")));
    }

    #[tokio::test]
    async fn a_request_is_taken_back_by_the_next_message_however_its_id_is_written() {
        let startup = StartConfig { fail_on_empty_catalog: false, ..StartConfig::default() };
        let gateway = Gateway::start(GatewayConfig { startup, ..GatewayConfig::default() }).await.unwrap();
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        for (id, same) in [("\"ab\"", "\"ab\""), ("\"\\u0061b\"", "\"ab\""), ("12", "12.0")] {
            let (mut client, server) = tokio::io::duplex(4096);
            let (input, output) = tokio::io::split(server);
            let params = json!({"notifications": {}, "_meta": meta});
            let lines = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"subscriptions/listen\",\"params\":{params}}}\n\
                 {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{same}}}}}\n",
            );
            client.write_all(lines.as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            serve(Arc::clone(&gateway), input, output).await.unwrap();
            let mut said = String::new();
            client.read_to_string(&mut said).await.unwrap();
            assert!(!said.contains("\"result\""), "{said}");
        }
    }

    #[tokio::test]
    async fn who_is_told_to_end_reads_no_more_and_says_goodbye() {
        let startup = StartConfig { fail_on_empty_catalog: false, ..StartConfig::default() };
        let gateway = Gateway::start(GatewayConfig { startup, ..GatewayConfig::default() }).await.unwrap();
        let (mut client, server) = tokio::io::duplex(4096);
        let (tell, told) = tokio::sync::oneshot::channel::<()>();
        let shutdown = async {
            let _ = told.await;
        };
        let serving = tokio::spawn(serve_until(Live::from(gateway), tokio::io::split(server), shutdown));
        client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
        let mut answer = [0; 36];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
        // The client's input is still open.
        tell.send(()).unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(5), serving).await;
        ended.expect("it ends").unwrap().unwrap();
        assert!(client.write_all(b"\n").await.is_err(), "nobody reads");
    }

    /// A gateway in front of one server: `ask` asks the client for its roots and is answered when that was, and `hang`
    /// is not answered.
    #[cfg(unix)]
    async fn asking() -> Arc<Gateway> {
        use crate::upstream::config::Confinement;
        use crate::{Era, Mode, Target, UpstreamConfig};

        let script = r#"while read -r line; do
            id=${line#*\"id\":}; id=${id%%,*}
            case "$line" in
                *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{}}}';;
                *'"ask"'*) call=$id; echo '{"jsonrpc":"2.0","id":"q","method":"roots/list"}';;
                *'"id":"q"'*) echo '{"jsonrpc":"2.0","id":'$call',"result":{"content":[]}}';;
            esac
        done"#;
        let target = Target::Stdio {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env: Default::default(),
            confinement: Confinement::default(),
        };
        let startup = StartConfig { fail_on_empty_catalog: false, ..StartConfig::default() };
        let mut config = GatewayConfig { startup, mode: Mode::Passthrough, ..GatewayConfig::default() };
        let up = UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(target) };
        config.upstreams.insert("up".to_owned(), up);
        Gateway::start(config).await.unwrap()
    }

    /// What a client says that can tell its roots and calls a tool.
    #[cfg(unix)]
    fn calling(tool: &str) -> String {
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"roots": {}},
            "clientInfo": {"name": "c", "version": "1"},
        });
        let call = json!({"name": tool, "arguments": {}});
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call});
        format!("{hello}\n{call}\n")
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn what_the_client_is_asked_ends_with_its_input() {
        let gateway = asking().await;
        let (client, server) = tokio::io::duplex(4096);
        let (input, output) = tokio::io::split(server);
        let serving = tokio::spawn(serve(Arc::clone(&gateway), input, output));
        let (said, mut say) = tokio::io::split(client);
        say.write_all(calling("ask").as_bytes()).await.unwrap();
        let mut said = LineReader::new(said, 4096);
        let mut next = async || match said.next().await.unwrap() {
            Some(Line::Text(line)) => serde_json::from_slice::<Value>(&line).unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(next().await["id"], 1);
        assert_eq!(next().await["method"], "roots/list");
        say.shutdown().await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(20), serving).await;
        ended.expect("it ends").unwrap().unwrap();
        let answer = next().await;
        assert_eq!((&answer["id"], &answer["result"]["content"]), (&json!(2), &json!([])), "{answer}");
        gateway.close().await;
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn who_is_told_to_end_after_its_input_has_ended_ends() {
        let gateway = asking().await;
        let (mut client, server) = tokio::io::duplex(4096);
        let (tell, told) = tokio::sync::oneshot::channel::<()>();
        let shutdown = async {
            let _ = told.await;
        };
        let live = Live::from(Arc::clone(&gateway));
        let serving = tokio::spawn(serve_until(live, tokio::io::split(server), shutdown));
        client.write_all(calling("hang").as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = [0; 36];
        client.read_exact(&mut answer).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!serving.is_finished(), "what was asked before is waited for");
        tell.send(()).unwrap();
        let ended = tokio::time::timeout(GRACE * 5, serving).await;
        ended.expect("it ends").unwrap().unwrap();
        gateway.close().await;
    }

    #[tokio::test]
    async fn an_answer_that_is_none_is_not_answered() {
        let startup = StartConfig { fail_on_empty_catalog: false, ..StartConfig::default() };
        let gateway = Gateway::start(GatewayConfig { startup, ..GatewayConfig::default() }).await.unwrap();
        let (mut client, server) = tokio::io::duplex(4096);
        let (input, output) = tokio::io::split(server);
        let lines = b"{\"id\":1,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n";
        client.write_all(lines).await.unwrap();
        client.shutdown().await.unwrap();
        serve(gateway, input, output).await.unwrap();
        let mut said = String::new();
        client.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn pipes_and_sockets_are_waited_for_and_files_are_not() {
        let (from_pipe, to_pipe) = io::pipe().unwrap();
        let (one_end, other_end) = std::os::unix::net::UnixStream::pair().unwrap();
        for (from, to) in [(from_pipe.as_fd(), to_pipe.as_fd()), (one_end.as_fd(), other_end.as_fd())] {
            let (mut input, mut output) = (input(from).unwrap().unwrap(), output(to).unwrap().unwrap());
            output.write_all(b"a line\n").await.unwrap();
            output.flush().await.unwrap();
            let mut read = [0; 7];
            input.read_exact(&mut read).await.unwrap();
            assert_eq!(&read, b"a line\n");
        }
        let file = tempfile::tempfile().unwrap();
        assert!(input(file.as_fd()).unwrap().is_none());
        assert!(output(file.as_fd()).unwrap().is_none());
    }
}
