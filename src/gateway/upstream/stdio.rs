//! An upstream that is a child process.
//!
//! It gets pipes of its own for all three streams: it must not read our standard input, and what it prints on its
//! standard output that is no message is passed over. Its standard error goes to the log, line by line.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, mpsc};

use super::peer::Peer;
use super::{Event, Fault};
use crate::gateway::lines::{Line, LineReader, write_lines};
use crate::gateway::wire::Message;

/// Messages that wait to be written to an upstream, at most.
const QUEUE: usize = 1024;

/// How long a child has to leave when its input ends.
const GRACE: Duration = Duration::from_secs(2);

/// Bytes of a line of a child's standard error that go to the log.
const LONGEST_LOG_LINE: usize = 8 * 1024;

/// A child process and what it was asked.
#[derive(Debug)]
pub(super) struct StdioLink {
    pub(super) peer: Arc<Peer>,
    alive: Arc<AtomicBool>,
    child: Mutex<Child>,
}

impl StdioLink {
    /// Starts a child.
    pub(super) fn spawn(
        upstream: &Arc<str>,
        (command, args): (&str, &[String]),
        env: &BTreeMap<String, String>,
        cwd: Option<&Path>,
        limit: usize,
        events: mpsc::UnboundedSender<(Arc<str>, Event)>,
    ) -> Result<Self, Fault> {
        let mut process = Command::new(command);
        process.args(args).envs(env).kill_on_drop(true);
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(cwd) = cwd {
            process.current_dir(cwd);
        }
        let mut child =
            process.spawn().map_err(|error| Fault::Unavailable(format!("`{command}` cannot be started: {error}")))?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Fault::Unavailable(format!("`{command}` has no standard streams")));
        };
        let (outgoing, lines) = mpsc::channel::<Bytes>(QUEUE);
        tokio::spawn(write_lines(stdin, lines));
        let peer = Peer::new(Arc::clone(upstream), outgoing, events);
        let alive = Arc::new(AtomicBool::new(true));
        tokio::spawn(read(
            LineReader::new(stdout, limit),
            Arc::clone(&peer),
            Arc::clone(&alive),
            Arc::clone(upstream),
            limit,
        ));
        tokio::spawn(log(LineReader::new(stderr, LONGEST_LOG_LINE), Arc::clone(upstream)));
        Ok(Self { peer, alive, child: Mutex::new(child) })
    }

    /// Whether the child still speaks.
    pub(super) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// Ends the child: its input is closed, and after a while it is killed.
    pub(super) async fn close(&self) {
        self.peer.close("the gateway is shutting down");
        let mut child = self.child.lock().await;
        if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
            let _ = child.kill().await;
        }
    }
}

async fn read(
    mut lines: LineReader<tokio::process::ChildStdout>,
    peer: Arc<Peer>,
    alive: Arc<AtomicBool>,
    upstream: Arc<str>,
    limit: usize,
) {
    loop {
        match lines.next().await {
            Ok(Some(Line::Text(line))) => match Message::parse(line) {
                Ok(message) => peer.receive(message),
                Err(error) => tracing::debug!(%upstream, %error, "a line that is no message was passed over"),
            },
            Ok(Some(Line::TooLong { head, tail, length })) => peer.too_long(id_in(&head, &tail), length, limit),
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%upstream, %error, "its output cannot be read");
                break;
            }
        }
    }
    alive.store(false, Ordering::Release);
    peer.close("the process has ended its output");
}

async fn log(mut lines: LineReader<tokio::process::ChildStderr>, upstream: Arc<str>) {
    while let Ok(Some(line)) = lines.next().await {
        let (Line::Text(text) | Line::TooLong { head: text, .. }) = line;
        let text = String::from_utf8_lossy(&text);
        tracing::debug!(%upstream, "{}", crate::store::redact(&text).text);
    }
}

/// The id of a message of which only the ends are known: servers write it first or last.
fn id_in(head: &[u8], tail: &[u8]) -> Option<u64> {
    const KEY: &[u8] = b"\"id\":";
    let number = |text: &[u8]| {
        let digits = text.iter().copied().skip_while(u8::is_ascii_whitespace).take_while(u8::is_ascii_digit);
        String::from_utf8(digits.collect()).ok()?.parse().ok()
    };
    let first = memchr::memmem::find(head, KEY).filter(|at| *at < 64).and_then(|at| number(&head[at + KEY.len()..]));
    first.or_else(|| memchr::memmem::rfind(tail, KEY).and_then(|at| number(&tail[at + KEY.len()..])))
}

#[cfg(test)]
mod tests {
    use super::id_in;

    #[test]
    fn the_id_of_a_long_message_is_at_one_of_its_ends() {
        let cases: [(&str, &str, Option<u64>); 4] = [
            (r#"{"jsonrpc":"2.0","id":17,"result":{"content":[{"id":3"#, r#"x"}]}}"#, Some(17)),
            (r#"{"result":{"content":["#, r#"{"id":4}]},"jsonrpc":"2.0","id": 18}"#, Some(18)),
            (r#"{"result":{"content":["#, r#"xxxx"#, None),
            (r#"{"jsonrpc":"2.0","id":"a","result":"#, r#"}"#, None),
        ];
        for (head, tail, expected) in cases {
            assert_eq!(id_in(head.as_bytes(), tail.as_bytes()), expected, "{head}");
        }
    }
}
