//! Follows a file of events while a gateway appends to it, with bounded memory.
//!
//! What was read is kept as long as it is within the time that is looked at. A file that was replaced or cut off is read from its
//! beginning; one that is missing is waited for. A line that is not finished yet waits for its end.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use time::OffsetDateTime;

use super::event_lines::{BadLines, LONGEST_LINE, Window, read_event};
use super::event_rows::{CallRow, is_call};
use super::event_stats::{Collected, EventStats};
use crate::telemetry::diagnostics::{Event, EventName};

/// Bytes of events that are kept, as they stand in the file, and bytes at its end that are read at first.
const MOST_KEPT: u64 = 64 << 20;

/// Bytes that are read at once.
const AT_ONCE: usize = 1 << 20;

/// What is seen of a file of events at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seen {
    /// The sums of the time that is looked at.
    #[serde(flatten)]
    pub stats: EventStats,
    /// The last calls in it, the latest first.
    pub last_calls: Vec<CallRow>,
    /// Events in it that are not in the sums, since there were more than are kept; 0 where it is not known.
    pub dropped: u64,
}

/// A file of events that is followed.
#[derive(Debug)]
pub struct EventFeed {
    path: PathBuf,
    span: Duration,
    file: Option<File>,
    place: u64,
    /// What was read of a line that has no end yet.
    pending: Vec<u8>,
    /// Whether the rest of a line is passed over, since it is too long or its beginning was not read.
    skips: bool,
    lines: usize,
    kept: VecDeque<(u64, Event)>,
    kept_bytes: u64,
    /// What was served when the oldest event that is kept happened.
    served: Option<Event>,
    bad: BadLines,
    dropped: u64,
}

impl EventFeed {
    /// Follows the file at `path`; events count for the time of `span`.
    #[must_use]
    pub fn of(path: &Path, span: Duration) -> Self {
        Self {
            path: path.to_owned(),
            span,
            file: None,
            place: 0,
            pending: Vec::new(),
            skips: false,
            lines: 0,
            kept: VecDeque::new(),
            kept_bytes: 0,
            served: None,
            bad: BadLines::default(),
            dropped: 0,
        }
    }

    /// Reads what was appended since, and says what is seen at `now`, with the last `calls`.
    ///
    /// # Errors
    /// The file is there and cannot be read, or is not a file.
    pub fn look(&mut self, now: OffsetDateTime, calls: usize) -> io::Result<Seen> {
        self.advance()?;
        let window = Window::of_last(self.span, now);
        while let Some((bytes, _)) = self.kept.front().filter(|(_, event)| window.is_after(event)) {
            self.kept_bytes -= bytes;
            self.forget_first();
        }
        if self.kept.is_empty() {
            self.dropped = 0;
        }
        let mut collected = Collected::new(&window);
        self.served.iter().chain(self.kept.iter().map(|(_, event)| event)).for_each(|event| collected.take(event));
        let of_calls = self.kept.iter().rev().map(|(_, event)| event).filter(|event| is_call(event.event));
        let last_calls = of_calls.take(calls).cloned().map(CallRow::of).collect();
        Ok(Seen { stats: collected.stats(self.bad.clone()), last_calls, dropped: self.dropped })
    }

    fn forget_first(&mut self) {
        if let Some((_, event)) = self.kept.pop_front()
            && event.event == EventName::CatalogLoaded
        {
            self.served = Some(event);
        }
    }

    fn advance(&mut self) -> io::Result<()> {
        let about = match self.path.metadata() {
            Ok(about) => about,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.begin(None);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if !about.is_file() {
            return Err(io::Error::other("it is not a file on a disk"));
        }
        let is_other = match &self.file {
            None => true,
            Some(file) => about.len() < self.place || !is_same(&file.metadata()?, &about),
        };
        if is_other {
            let mut file = File::open(&self.path)?;
            let skipped = about.len().saturating_sub(MOST_KEPT);
            file.seek(SeekFrom::Start(skipped))?;
            self.begin(Some(file));
            (self.place, self.skips) = (skipped, skipped > 0);
        }
        let mut buffer = vec![0; AT_ONCE];
        // What is appended while this reads is for the next look.
        let end = about.len();
        while self.place < end {
            let Some(file) = &mut self.file else { break };
            let most = usize::try_from(end - self.place).unwrap_or(AT_ONCE).min(AT_ONCE);
            let read = file.read(buffer.get_mut(..most).unwrap_or_default())?;
            if read == 0 {
                break;
            }
            self.place += read as u64;
            for piece in buffer.get(..read).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
                self.take(piece);
            }
        }
        Ok(())
    }

    /// From now on another file is read.
    fn begin(&mut self, file: Option<File>) {
        let Self { path, span, .. } = self;
        *self = Self { file, ..Self::of(path, *span) };
    }

    /// Takes a part of the file that ends with a line, or before one does.
    fn take(&mut self, piece: &[u8]) {
        let is_end = piece.ends_with(b"\n");
        if !self.skips {
            self.pending.extend_from_slice(piece);
            if self.pending.len() as u64 > LONGEST_LINE {
                self.bad.add(self.lines + 1, &format!("it is longer than {LONGEST_LINE} bytes"));
                self.pending.clear();
                self.skips = true;
            }
        }
        if !is_end {
            return;
        }
        self.lines += 1;
        if std::mem::take(&mut self.skips) {
            return;
        }
        let line = std::mem::take(&mut self.pending);
        let text = line.trim_ascii();
        if text.is_empty() {
            return;
        }
        match read_event(text, true) {
            Ok(event) => {
                let bytes = line.len() as u64;
                self.kept.push_back((bytes, event));
                self.kept_bytes += bytes;
                while self.kept_bytes > MOST_KEPT
                    && let Some((bytes, _)) = self.kept.front()
                {
                    self.kept_bytes -= bytes;
                    self.dropped += 1;
                    self.forget_first();
                }
            }
            Err(reason) => self.bad.add(self.lines, &reason),
        }
    }
}

#[cfg(unix)]
fn is_same(one: &std::fs::Metadata, other: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same(one: &std::fs::Metadata, other: &std::fs::Metadata) -> bool {
    one.created().ok() == other.created().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    fn line(second: u32, event: &str) -> String {
        format!(
            "{{\"attributes\":{{}},\"duration_ms\":2.0,\"event\":\"{event}\",\"namespace\":null,\"session_id\":\"s\",\"success\":true,\"timestamp\":\"2026-11-22T12:00:{second:02}.000000+00:00\",\"tool_id\":\"a:b\",\"version\":1}}\n"
        )
    }

    #[test]
    fn a_file_is_followed_through_all_that_happens_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let noon = OffsetDateTime::from_unix_timestamp(1_795_348_800).unwrap();
        let mut feed = EventFeed::of(&path, Duration::from_secs(10));
        let mut seen = |second: u64| {
            let seen = feed.look(noon + Duration::from_secs(second), 2).unwrap();
            let times: Vec<&str> = seen.last_calls.iter().map(|call| &call.time[17..19]).collect();
            format!("{} events, {} bad, last {}", seen.stats.events, seen.stats.bad.count, times.join(" "))
        };
        let append = |text: &str| {
            let mut file = File::options().append(true).create(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        let torn = line(4, "browse.completed");
        let mut told = vec![("missing", seen(0))];
        append(&(line(1, "catalog.loaded") + &line(2, "execute.completed")));
        told.push(("there", seen(2)));
        append(&("foreign\n".to_owned() + &line(3, "execute.completed") + &torn[..30]));
        told.push(("a torn end", seen(4)));
        append(&torn[30..]);
        told.push(("its end", seen(4)));
        told.push(("nothing new", seen(12)));
        told.push(("later", seen(13)));
        fs::write(&path, line(14, "execute.completed")).unwrap();
        told.push(("cut off", seen(14)));
        fs::rename(&path, folder.path().join("old.jsonl")).unwrap();
        append(&(line(15, "execute.completed") + &line(16, "execute.completed")));
        told.push(("replaced", seen(16)));
        append(&format!("{}\n{}", "x".repeat(LONGEST_LINE as usize + 2), line(17, "execute.completed")));
        told.push(("a long line", seen(17)));
        fs::remove_file(&path).unwrap();
        told.push(("removed", seen(17)));
        fs::create_dir(&path).unwrap();
        assert!(feed.look(noon, 1).is_err());
        let told: Vec<String> = told.into_iter().map(|(what, seen)| format!("{what}: {seen}")).collect();
        insta::assert_snapshot!(told.join("\n"));
    }
}
