//! Server-sent events, as a body of HTTP brings them.
//!
//! Only what the protocol uses: `event`, `data`, `id` and `retry`. The data of an event on one line, which is how nearly
//! all servers write it, is a slice of what came in.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use reqwest::header::HeaderValue;

/// One server-sent event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ServerEvent {
    /// Its kind; `message` when empty.
    pub(super) kind: String,
    /// Its data; the lines of it are joined by line ends.
    pub(super) data: Bytes,
}

/// An event is over the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Takes a stream apart into events.
#[derive(Debug)]
pub(crate) struct EventReader {
    buffer: BytesMut,
    /// Bytes of the buffer that hold no line end.
    searched: usize,
    /// The last line ended with a carriage return, of which a line feed may be the rest.
    after_return: bool,
    started: bool,
    kind: String,
    data: Data,
    limit: usize,
    /// The id of the event that is being read: only one that is complete need not come again.
    id: Option<String>,
    /// The id of the latest complete event, to go on from.
    pub(super) last_id: Option<String>,
    /// How long the server wants to be left alone before the stream is opened again.
    pub(super) retry: Option<Duration>,
}

#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    One(Bytes),
    Many(BytesMut),
}

impl Data {
    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(line) => line.len(),
            Self::Many(lines) => lines.len(),
        }
    }

    fn push(&mut self, line: Bytes) {
        let mut lines = match std::mem::take(self) {
            Self::None => return *self = Self::One(line),
            Self::One(first) => BytesMut::from(first),
            Self::Many(lines) => lines,
        };
        lines.extend_from_slice(b"\n");
        lines.extend_from_slice(&line);
        *self = Self::Many(lines);
    }
}

impl EventReader {
    /// A reader of events of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            after_return: false,
            started: false,
            kind: String::new(),
            data: Data::None,
            limit,
            id: None,
            last_id: None,
            retry: None,
        }
    }

    /// Bytes of an event, at most.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// The stream goes on in another body; what was not complete comes again.
    pub(super) fn restart(&mut self) {
        *self = Self { last_id: self.last_id.take(), retry: self.retry, ..Self::new(self.limit) };
    }

    /// Takes in what the stream brings.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next event that is complete.
    pub(crate) fn next(&mut self) -> Option<Result<ServerEvent, TooLong>> {
        while let Some(line) = self.line() {
            if !line.is_empty() {
                self.field(&line);
                if self.data.len() > self.limit {
                    return Some(Err(TooLong));
                }
                continue;
            }
            self.last_id = self.id.take().or(self.last_id.take());
            let kind = std::mem::take(&mut self.kind);
            let data = match std::mem::take(&mut self.data) {
                Data::None => continue,
                Data::One(line) => line,
                Data::Many(lines) => lines.freeze(),
            };
            return Some(Ok(ServerEvent { kind, data }));
        }
        (self.buffer.len() > self.limit).then_some(Err(TooLong))
    }

    fn line(&mut self) -> Option<Bytes> {
        if self.after_return && !self.buffer.is_empty() {
            self.after_return = false;
            if self.buffer.first() == Some(&b'\n') {
                self.buffer.advance(1);
                self.searched = 0;
            }
        }
        let rest = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(at) = memchr::memchr2(b'\n', b'\r', rest).map(|at| self.searched + at) else {
            self.searched = self.buffer.len();
            return None;
        };
        self.after_return = self.buffer.get(at) == Some(&b'\r');
        let mut line = self.buffer.split_to(at).freeze();
        self.buffer.advance(1);
        self.searched = 0;
        if !std::mem::replace(&mut self.started, true) && line.starts_with(b"\xef\xbb\xbf") {
            line.advance(3);
        }
        Some(line)
    }

    fn field(&mut self, line: &Bytes) {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let mut value = line.slice((colon + 1).min(line.len())..);
        if value.first() == Some(&b' ') {
            value.advance(1);
        }
        let text = || String::from_utf8_lossy(&value).into_owned();
        match line.get(..colon).unwrap_or_default() {
            b"data" => self.data.push(value),
            b"event" => self.kind = text(),
            // What no header can carry could not be sent back.
            b"id" if HeaderValue::from_bytes(&value).is_ok() => self.id = Some(text()),
            b"retry" => self.retry = text().parse().ok().map(Duration::from_millis).or(self.retry),
            // A comment, or a field of no known meaning.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(chunks: &[&[u8]], limit: usize) -> (Vec<(String, String)>, Option<TooLong>, EventReader) {
        let mut reader = EventReader::new(limit);
        let mut found = Vec::new();
        for chunk in chunks {
            reader.push(chunk);
            while let Some(event) = reader.next() {
                match event {
                    Ok(event) => found.push((event.kind, String::from_utf8(event.data.to_vec()).unwrap())),
                    Err(error) => return (found, Some(error), reader),
                }
            }
        }
        (found, None, reader)
    }

    #[test]
    fn fields_comments_and_line_ends() {
        let text = "\u{feff}: hello\nid: 7\nretry: 250\ndata: a\n\ndata:b\r\ndata:  c\r\n\r\nevent: x\rdata\r\rid\n\ndata: cut";
        let (found, error, reader) = events(&[text.as_bytes()], 100);
        let expected = [("", "a"), ("", "b\n c"), ("x", "")];
        assert_eq!(found, expected.map(|(kind, data)| (kind.to_owned(), data.to_owned())));
        assert_eq!((error, reader.last_id.as_deref()), (None, Some("")));
        assert_eq!(reader.retry, Some(Duration::from_millis(250)));
    }

    #[test]
    fn an_event_counts_as_read_when_it_is_complete() {
        for (text, expected) in [
            ("id: 1\n\nid: 2\ndata: {\"half", Some("1")),
            ("id: 1\ndata: a\n\nid: 2\ndata: b\n", Some("1")),
            ("id: 1\ndata: a\n\ndata: b\n\n", Some("1")),
            ("id: 1\n", None),
            ("id: 1\n\n", Some("1")),
        ] {
            assert_eq!(events(&[text.as_bytes()], 100).2.last_id.as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn an_event_over_the_limit_ends_the_reading() {
        let long = format!("data: {}", "x".repeat(200));
        assert_eq!(events(&[b"data: a\n\n", long.as_bytes()], 100).1, Some(TooLong));
        let many = "data: xxxxxxxxxx\n".repeat(20);
        assert_eq!(events(&[many.as_bytes()], 100).1, Some(TooLong));
    }

    proptest! {
        #[test]
        fn where_the_stream_is_cut_makes_no_difference(
            text in "(data: [a-c]{0,3}|event: e|id: 1|:|)(\r\n|\n|\r)((data: [a-c]{0,3}|event: e|x|)(\r\n|\n|\r)){0,12}",
            cuts in proptest::collection::vec(0usize..100, 0..6),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect();
            prop_assert_eq!(events(&chunks, 1_000).0, events(&[bytes], 1_000).0);
        }
    }
}
