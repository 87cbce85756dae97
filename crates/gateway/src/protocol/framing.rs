//! Messages on a byte stream: one a line.

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// Bytes asked for in one read: what a pipe holds.
const CHUNK: usize = 64 * 1024;

/// Free bytes below which a buffer is enlarged before it is read into: what is left of one serves small messages.
const LEAST: usize = 4 * 1024;

/// Bytes that a pipe holds, where the system permits it: a large message takes few turns. A user's pipes hold 64 MiB
/// together before the system makes new ones small.
#[cfg(target_os = "linux")]
const PIPE: usize = 256 * 1024;

/// Bytes of either end of a line that is too long that are kept: there is the id.
const END: usize = 256;

/// A line of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its end, not blank.
    Text(Bytes),
    /// A line over the limit, of which only the ends are left.
    TooLong {
        /// The first bytes of the line.
        head: Bytes,
        /// The last bytes of the line.
        tail: Bytes,
        /// How many bytes it had.
        length: usize,
    },
}

/// Takes a stream apart into lines of at most a given length.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    source: R,
    buffer: BytesMut,
    /// Bytes of the buffer that hold no line end.
    searched: usize,
    limit: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(source: R, limit: usize) -> Self {
        Self { source, buffer: BytesMut::with_capacity(CHUNK), searched: 0, limit }
    }

    /// The next line that is not blank; `None` at the end of the stream. What follows the last line end is a line too.
    ///
    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> std::io::Result<Option<Line>> {
        loop {
            let found = memchr::memchr(b'\n', &self.buffer[self.searched..]);
            if let Some(at) = found {
                let mut line = self.buffer.split_to(self.searched + at);
                self.buffer.advance(1);
                self.searched = 0;
                if line.last() == Some(&b'\r') {
                    line.truncate(line.len() - 1);
                }
                if line.iter().any(|byte| !byte.is_ascii_whitespace()) {
                    return Ok(Some(Line::Text(line.freeze())));
                }
                continue;
            }
            self.searched = self.buffer.len();
            if self.searched > self.limit {
                return self.skip().await.map(Some);
            }
            if self.buffer.capacity() - self.buffer.len() < LEAST {
                self.buffer.reserve(self.buffer.len().max(CHUNK));
            }
            if self.source.read_buf(&mut self.buffer).await? == 0 {
                self.searched = 0;
                let rest = self.buffer.split().freeze();
                let blank = rest.iter().all(u8::is_ascii_whitespace);
                return Ok((!blank).then_some(Line::Text(rest)));
            }
        }
    }

    /// Passes over the rest of a line that is too long.
    async fn skip(&mut self) -> std::io::Result<Line> {
        let head = Bytes::copy_from_slice(&self.buffer[..END.min(self.buffer.len())]);
        let mut length = 0;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer) {
                let tail = Bytes::copy_from_slice(&self.buffer[at.saturating_sub(END)..at]);
                self.buffer.advance(at + 1);
                self.searched = 0;
                return Ok(Line::TooLong { head, tail, length: length + at });
            }
            let passed = self.buffer.len().saturating_sub(END);
            length += passed;
            self.buffer.advance(passed);
            self.buffer.reserve(CHUNK);
            if self.source.read_buf(&mut self.buffer).await? == 0 {
                self.searched = 0;
                let tail = self.buffer.split().freeze();
                return Ok(Line::TooLong { head, length: length + tail.len(), tail });
            }
        }
    }
}

/// Lets a pipe hold more.
#[cfg(target_os = "linux")]
pub(crate) fn widen(pipe: &impl std::os::fd::AsFd) {
    // Where the system refuses, the pipe keeps its size.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
}

/// Other systems do not say how much a pipe holds.
#[cfg(not(target_os = "linux"))]
pub(crate) fn widen<P>(_pipe: &P) {}

/// Writes what comes, a line each, until all senders are gone or the stream is closed.
pub(crate) async fn write_lines<W, L>(mut sink: W, mut lines: mpsc::Receiver<L>)
where
    W: AsyncWrite + Unpin,
    L: AsRef<[u8]>,
{
    const TOGETHER: usize = 64;
    /// Bytes up to which lines are copied to be written in one go.
    const SMALL: usize = 16 * 1024;
    /// Writes without waiting after a wait that gained nothing.
    const SELDOM: u32 = 16;
    let mut batch = Vec::with_capacity(TOGETHER);
    let mut buffer = BytesMut::new();
    // With several clients more is often about to be sent: one write for all wakes the reader once. A client alone would pay
    // two system calls a message for the turn that is waited, so it is waited seldom while it gains nothing.
    let mut unwaited = 0;
    while lines.recv_many(&mut batch, TOGETHER).await > 0 {
        if unwaited > 0 {
            unwaited -= 1;
        } else {
            let before = batch.len();
            tokio::task::yield_now().await;
            while batch.len() < TOGETHER
                && let Ok(line) = lines.try_recv()
            {
                batch.push(line);
            }
            if batch.len() == before {
                unwaited = SELDOM;
            }
        }
        for line in batch.drain(..) {
            let text = line.as_ref();
            if text.len() > SMALL {
                // The line end goes along, so that the reader does not wake up for it alone.
                let mut whole = Buf::chain(text, &b"\n"[..]);
                if write_out(&mut sink, &mut buffer).await.is_err() || sink.write_all_buf(&mut whole).await.is_err() {
                    return;
                }
            } else {
                buffer.extend_from_slice(text);
                buffer.extend_from_slice(b"\n");
            }
        }
        if write_out(&mut sink, &mut buffer).await.is_err() || sink.flush().await.is_err() {
            return;
        }
    }
}

async fn write_out<W: AsyncWrite + Unpin>(sink: &mut W, buffer: &mut BytesMut) -> std::io::Result<()> {
    let written = sink.write_all(buffer).await;
    buffer.clear();
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, limit: usize) -> Vec<Line> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut reader = LineReader::new(text.as_bytes(), limit);
            let mut lines = Vec::new();
            while let Some(line) = reader.next().await.unwrap() {
                lines.push(line);
            }
            lines
        })
    }

    fn text(line: &'static str) -> Line {
        Line::Text(Bytes::from_static(line.as_bytes()))
    }

    #[test]
    fn blank_lines_are_none_and_the_last_needs_no_end() {
        assert_eq!(lines("a\r\n\n \t\nb\nc", 100), [text("a"), text("b"), text("c")]);
        assert_eq!(lines("\n", 100), []);
    }

    #[test]
    fn a_line_over_the_limit_is_passed_over() {
        let long = format!("{{\"id\":7,{}}}", "x".repeat(200_000));
        let found = lines(&format!("a\n{long}\nb\n"), 1_000);
        assert_eq!((&found[0], &found[2], found.len()), (&text("a"), &text("b"), 3));
        let Line::TooLong { head, tail, length } = &found[1] else { panic!() };
        assert!(head.starts_with(b"{\"id\":7,x") && tail.ends_with(b"x}"));
        assert_eq!((*length, tail.len()), (long.len(), END));
    }
}
