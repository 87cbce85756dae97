//! Reads a file of events line by line, with bounded memory.
//!
//! A line that is not an event is named and skipped: a file that a full disk or another version has touched still tells
//! the rest.

use std::io::{self, BufRead, Read};
use std::time::Duration;

use serde::Serialize;
use time::OffsetDateTime;

use crate::telemetry::diagnostics::{EVENT_VERSION, Event, EventName};
use crate::telemetry::run::timestamp;

/// Lines that are not events and are named, at most; the others are counted.
const MOST_BAD_LINES: usize = 20;

/// Bytes of a line that are read, at most: much more than an event has.
pub(super) const LONGEST_LINE: u64 = 256 * 1024;

/// Characters of the reason why a line is not an event, at most: it may quote the line.
const LONGEST_REASON: usize = 120;

/// A line that is not an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BadLine {
    /// Its number, from 1.
    pub line: usize,
    /// Why the line is not an event.
    pub reason: String,
}

/// The lines of a file that are not events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct BadLines {
    /// How many there are.
    #[serde(rename = "bad_lines")]
    pub count: usize,
    /// The first of them.
    #[serde(rename = "first_bad_lines")]
    pub first: Vec<BadLine>,
}

impl BadLines {
    /// Adds a line that is not an event.
    pub(super) fn add(&mut self, line: usize, reason: &str) {
        self.count += 1;
        if self.first.len() < MOST_BAD_LINES {
            let reason = reason.chars().take(LONGEST_REASON).collect();
            self.first.push(BadLine { line, reason });
        }
    }
}

/// The events of which time count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Window {
    since: Option<String>,
}

impl Window {
    /// Events of all times.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Events that ended within `span` before `now`, and later ones.
    #[must_use]
    pub fn of_last(span: Duration, now: OffsetDateTime) -> Self {
        let since = time::Duration::try_from(span).ok().and_then(|span| now.checked_sub(span));
        Self { since: since.map(timestamp) }
    }

    /// When it begins, UTC; `None` for events of all times.
    #[must_use]
    pub fn since(&self) -> Option<&str> {
        self.since.as_deref()
    }

    /// Whether an event ended before it. All times have one form, so that their texts are in the order of time.
    pub(super) fn is_after(&self, event: &Event) -> bool {
        self.since.as_deref().is_some_and(|since| event.timestamp.as_str() < since)
    }
}

/// The event of a line, which `is_finished` by a line end.
///
/// # Errors
/// Why it is not an event.
pub(super) fn read_event(line: &[u8], is_finished: bool) -> Result<Event, String> {
    match serde_json::from_slice::<Event>(line) {
        // The members of an event in their order would be taken for one.
        Ok(_) if line.trim_ascii_start().first() != Some(&b'{') => Err("it is not an object".to_owned()),
        Ok(event) if event.version == EVENT_VERSION && !is_timestamp(&event.timestamp) => {
            Err("`timestamp` is not a time in UTC such as 2026-11-22T12:00:00.000042+00:00".to_owned())
        }
        Ok(event) if event.version == EVENT_VERSION => Ok(event),
        Ok(event) => Err(format!("version {} is not {EVENT_VERSION}", event.version)),
        Err(error) if is_finished => Err(told(&error)),
        Err(error) => Err(format!("it is not finished: {}", told(&error))),
    }
}

/// Whether a text is a time in the form of [`timestamp`], with parts of a second or without: only such texts are in the order
/// of time.
fn is_timestamp(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00";
    let Some((whole, parts)) = text.strip_suffix("+00:00").and_then(|text| text.split_at_checked(FORM.len())) else {
        return false;
    };
    let fits = |(one, of_form): (u8, &u8)| one == *of_form || (*of_form == b'0' && one.is_ascii_digit());
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    whole.bytes().zip(FORM).all(fits) && (parts.is_empty() || parts.strip_prefix('.').is_some_and(are_digits))
}

/// The message of a JSON error without its own line number, which is always 1, and without all that would have been right.
fn told(error: &serde_json::Error) -> String {
    let text = error.to_string().replace(" at line 1 column ", " at column ");
    match (text.split_once(", expected one of "), text.rsplit_once(" at column ")) {
        (Some((wrong, _)), Some((_, column))) => format!("{wrong} at column {column}"),
        _ => text,
    }
}

/// The events of a file, one at a time.
#[derive(Debug)]
pub(super) struct EventLines<R> {
    input: R,
    line: Vec<u8>,
    number: usize,
    bad: BadLines,
    window: Window,
}

impl<R: BufRead> EventLines<R> {
    /// The events of `input` within `window`, and every `catalog.loaded` before it: it says what was served then.
    pub(super) fn of(input: R, window: &Window) -> Self {
        Self { input, line: Vec::new(), number: 0, bad: BadLines::default(), window: window.clone() }
    }

    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<Event>> {
        loop {
            self.line.clear();
            let read = self.input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            let is_finished = self.line.ends_with(b"\n");
            if !is_finished && read as u64 == LONGEST_LINE && self.input.skip_until(b'\n')? > 0 {
                self.refuse(&format!("it is longer than {LONGEST_LINE} bytes"));
                continue;
            }
            let line = self.line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            match read_event(line, is_finished) {
                Ok(event) if event.event != EventName::CatalogLoaded && self.window.is_after(&event) => {}
                Ok(event) => return Ok(Some(event)),
                Err(reason) => self.refuse(&reason),
            }
        }
    }

    fn refuse(&mut self, reason: &str) {
        self.bad.add(self.number, reason);
    }

    /// What was not an event so far.
    pub(super) fn into_bad(self) -> BadLines {
        self.bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = r#"{"attributes":{},"duration_ms":null,"event":"browse.completed","namespace":null,"session_id":"s","success":true,"timestamp":"2026-11-22T12:00:00+00:00","tool_id":null,"version":1}"#;

    #[test]
    fn whatever_a_file_holds_its_events_are_read_and_the_rest_is_counted() {
        let long = format!("{{\"x\":\"{}\"}}", "y".repeat(2 * LONGEST_LINE as usize));
        let exact = "z".repeat(LONGEST_LINE as usize);
        let many = "no\n".repeat(30);
        let cases = [
            ("nothing", String::new(), 0, 0, ""),
            ("empty lines", "\n \r\n\n".to_owned(), 0, 0, ""),
            ("ends of lines of Windows", format!("{EVENT}\r\n{EVENT}\r\n"), 2, 0, ""),
            ("an end that is missing", format!("{EVENT}\n{EVENT}"), 2, 0, ""),
            (
                "a torn end",
                format!("{EVENT}\n{}", &EVENT[..20]),
                1,
                1,
                "2: it is not finished: EOF while parsing a string at column 20",
            ),
            (
                "a torn line that another follows",
                format!("{}\n{EVENT}\n", &EVENT[..20]),
                1,
                1,
                "1: EOF while parsing a string at column 20",
            ),
            ("a line of a log", format!("INFO start\n{EVENT}\n"), 1, 1, "1: expected value at column 1"),
            ("another object", format!("{{\"a\":1}}\n{EVENT}\n"), 1, 1, "1: missing field `event` at column 7"),
            (
                "an event that is not known",
                EVENT.replace("browse.completed", "x") + "\n",
                0,
                1,
                "1: unknown variant `x` at column 47",
            ),
            (
                "no time",
                EVENT.replace("2026-", "later "),
                0,
                1,
                "1: `timestamp` is not a time in UTC such as 2026-11-22T12:00:00.000042+00:00",
            ),
            ("a list", "[1]\n".to_owned(), 0, 1, "1: invalid type: integer `1`, expected a map at column 2"),
            ("another version", EVENT.replace("\"version\":1", "\"version\":2"), 0, 1, "1: version 2 is not 1"),
            ("what no event is as long as", format!("{long}\n{EVENT}\n"), 1, 1, "1: it is longer than 262144 bytes"),
            ("an end of that length", exact, 0, 1, "1: it is not finished: expected value at column 1"),
            ("a foreign file", many, 0, 30, "1: expected ident at column 2"),
        ];
        for (what, text, events, bad, first) in cases {
            let mut lines = EventLines::of(text.as_bytes(), &Window::all());
            let mut found = 0;
            while lines.next().unwrap().is_some() {
                found += 1;
            }
            let named = lines.into_bad();
            assert_eq!((found, named.count), (events, bad), "{what}");
            assert_eq!(named.first.len(), bad.min(MOST_BAD_LINES), "{what}");
            let told = named.first.first().map(|bad| format!("{}: {}", bad.line, bad.reason));
            assert_eq!(told.unwrap_or_default(), first, "{what}");
        }
        let bytes = b"\xff\xfe\x00\n\xc3\x28\n";
        let mut lines = EventLines::of(&bytes[..], &Window::all());
        assert!(lines.next().unwrap().is_none());
        assert_eq!(lines.into_bad().count, 2);
    }
}
