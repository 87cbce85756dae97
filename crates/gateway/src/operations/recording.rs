//! Records the messages of a session between a client and a server as it runs.
//!
//! The recorder stands between the two on standard streams and changes nothing: every line that is JSON is passed on and
//! written, `{"seq":…,"direction":"client","at_ms":…,"message":…}`, the message byte for byte. A line that is not is passed
//! on to the server, which has to answer it, and not to the client, which may fail over it; neither is written. Messages
//! hold whatever the session held: a recording is as secret as the session was.

use std::io::{self, Write};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Command;
use tokio::sync::mpsc;

use crate::common::sync::lock;
use crate::protocol::framing::{Line, LineReader, write_lines};
use crate::transport::stdio::own_streams;
use crate::upstream::call::MESSAGE_LIMIT;

/// Messages that wait to be written to either side, at most.
const QUEUE: usize = 1024;

/// How long the server has to leave when the client has left.
const GRACE: Duration = Duration::from_secs(5);

/// The side that sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The client, to the server.
    Client,
    /// The server, to the client.
    Server,
}

/// A line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recorded<M> {
    /// Counts the lines from 1.
    pub(crate) seq: u64,
    /// The side that sent the message.
    pub(crate) direction: Direction,
    /// Milliseconds since the start of the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at_ms: Option<u64>,
    /// The message as it was sent.
    pub(crate) message: M,
}

/// Whether a recording has times, which make it differ from run to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Times {
    /// Messages carry the time at which they were sent.
    #[default]
    Kept,
    /// Messages carry no time, so that recordings can be compared.
    LeftOut,
}

/// A session was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The server cannot be started.
    #[error("`{command}` cannot be started: {reason}")]
    Start {
        /// The program that did not start.
        command: String,
        /// The error of the system.
        reason: io::Error,
    },
    /// Our own streams cannot be used.
    #[error("the standard streams cannot be used: {0}")]
    Streams(io::Error),
    /// The recording cannot be written. The session went on.
    #[error("the recording ends after {written} messages: {reason}")]
    Write {
        /// What was written before.
        written: u64,
        /// The error of the system.
        reason: io::Error,
    },
}

/// The counts of a finished recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordReport {
    /// Messages that were written.
    pub messages: u64,
    /// Lines that are not JSON, or too long.
    pub passed_over: u64,
}

/// Writes the messages of a session to a file.
#[derive(Debug)]
pub struct Recorder<W> {
    sink: W,
    started: Instant,
    times: Times,
    report: RecordReport,
    failed: Option<io::Error>,
}

impl<W: Write> Recorder<W> {
    /// A recorder to `sink`.
    pub fn new(sink: W, times: Times) -> Self {
        Self { sink, started: Instant::now(), times, report: RecordReport::default(), failed: None }
    }

    /// Writes a line of a session down; whether it is JSON.
    fn note(&mut self, direction: Direction, line: &[u8]) -> bool {
        let Ok(message) = serde_json::from_slice::<&RawValue>(line) else {
            self.report.passed_over += 1;
            return false;
        };
        if self.failed.is_none() {
            let at_ms = match self.times {
                Times::Kept => u64::try_from(self.started.elapsed().as_millis()).ok(),
                Times::LeftOut => None,
            };
            let recorded = Recorded { seq: self.report.messages + 1, direction, at_ms, message };
            let written = serde_json::to_vec(&recorded).map_err(io::Error::from).and_then(|mut text| {
                text.push(b'\n');
                self.sink.write_all(&text)?;
                self.sink.flush()
            });
            match written {
                Ok(()) => self.report.messages += 1,
                Err(error) => {
                    tracing::error!(%error, "the recording ends here; the session continues");
                    self.failed = Some(error);
                }
            }
        }
        true
    }

    fn end(self) -> Result<RecordReport, RecordError> {
        match self.failed {
            None => Ok(self.report),
            Some(reason) => Err(RecordError::Write { written: self.report.messages, reason }),
        }
    }
}

/// Runs a server for the client on our own standard streams and writes down what they say, until either ends.
///
/// # Errors
/// [`RecordError`].
pub async fn record<W: Write>(command: &[String], recorder: Recorder<W>) -> Result<RecordReport, RecordError> {
    let (input, output) = own_streams().map_err(RecordError::Streams)?;
    record_between(command, recorder, input, output).await
}

async fn record_between<W: Write>(
    command: &[String],
    recorder: Recorder<W>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<RecordReport, RecordError> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| RecordError::Start { command: String::new(), reason: io::ErrorKind::NotFound.into() })?;
    let start = |reason| RecordError::Start { command: program.clone(), reason };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(start)?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(start(io::ErrorKind::BrokenPipe.into()));
    };
    let (to_server, server_lines) = mpsc::channel::<Bytes>(QUEUE);
    let (to_client, client_lines) = mpsc::channel::<Bytes>(QUEUE);
    tokio::spawn(write_lines(stdin, server_lines));
    let answering = tokio::spawn(write_lines(output, client_lines));
    let recorder = Mutex::new(recorder);
    {
        let asked = pump(LineReader::new(input, MESSAGE_LIMIT), &recorder, Direction::Client, to_server);
        let answered = pump(LineReader::new(stdout, MESSAGE_LIMIT), &recorder, Direction::Server, to_client);
        tokio::pin!(answered);
        tokio::select! {
            () = asked => {
                // The server's input has ended with the client's; what it still says is heard.
                let _ = tokio::time::timeout(GRACE, &mut answered).await;
            }
            () = &mut answered => {}
        }
    }
    if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
    // A client that reads no more holds nobody up.
    let _ = tokio::time::timeout(GRACE, answering).await;
    recorder.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).end()
}

async fn pump<W: Write>(
    mut lines: LineReader<impl AsyncRead + Unpin>,
    recorder: &Mutex<Recorder<W>>,
    direction: Direction,
    to: mpsc::Sender<Bytes>,
) {
    while let Ok(Some(line)) = lines.next().await {
        match line {
            Line::Text(line) => {
                let is_json = lock(recorder).note(direction, &line);
                if (is_json || direction == Direction::Client) && to.send(line).await.is_err() {
                    return;
                }
            }
            Line::TooLong { length, .. } => {
                tracing::warn!(length, limit = MESSAGE_LIMIT, "a message over the limit was not recorded");
                lock(recorder).report.passed_over += 1;
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    /// A server in a few lines of shell: one answer a request, noise and progress in between.
    pub(crate) const SERVER: &str = r#"
read a; echo noise; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}'
read b
read c; echo '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}'
echo '{"jsonrpc":"2.0","id":"x","result":{"content":[{"type":"text","text":"one"}],"n":1.0e0}}'
read d; echo '{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no such tool"}}'
"#;

    pub(crate) const CLIENT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"say","arguments":{"b":1,"a":"é"},"_meta":{"progressToken":"t"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"nope"}}
"#;

    /// The recording of a session and what the client saw.
    pub(crate) async fn recorded() -> (String, String) {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let mut recording = Vec::new();
        let command = ["sh", "-c", SERVER].map(str::to_owned);
        let recorder = Recorder::new(&mut recording, Times::LeftOut);
        let report = record_between(&command, recorder, CLIENT.as_bytes(), ours).await.unwrap();
        assert_eq!(report, RecordReport { messages: 8, passed_over: 1 });
        let mut seen = String::new();
        theirs.read_to_string(&mut seen).await.unwrap();
        (String::from_utf8(recording).unwrap(), seen)
    }

    #[tokio::test]
    async fn both_sides_are_written_as_they_spoke() {
        let (recording, seen) = recorded().await;
        // Questions and answers cross, so their order may differ: each direction has its own.
        let of = |direction: &str| {
            let lines = recording.lines().filter(|line| line.contains(&format!("\"direction\":\"{direction}\"")));
            let messages = lines.map(|line| {
                let recorded: Recorded<Box<RawValue>> = serde_json::from_str(line).unwrap();
                format!("{}\n", recorded.message.get())
            });
            messages.collect::<String>()
        };
        assert_eq!(of("client"), CLIENT);
        assert_eq!(of("server"), seen);
        assert!(seen.contains("\"n\":1.0e0") && !seen.contains("noise"));
    }

    #[tokio::test]
    async fn a_full_disk_ends_the_recording_and_not_the_session() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let command = ["cat".to_owned()];
        let ended = record_between(&command, Recorder::new(Full, Times::Kept), &b"{\"a\":1}\n"[..], ours).await;
        let mut seen = String::new();
        theirs.read_to_string(&mut seen).await.unwrap();
        assert_eq!(seen, "{\"a\":1}\n");
        assert!(matches!(ended, Err(RecordError::Write { written: 0, .. })), "{ended:?}");
    }
}
