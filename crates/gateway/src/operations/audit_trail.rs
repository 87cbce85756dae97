//! Reads an audit log again: whether its lines follow each other, and which of them are about something.

use std::collections::BTreeSet;
use std::io::{self, BufRead};

use serde::Serialize;

use crate::telemetry::audit_line::{AuditDecision, AuditEvent, AuditLine, FIRST, LONGEST_LINE, hash};

/// Bytes of a line that are read, at most: much more than the longest has.
const MOST: u64 = 4 * LONGEST_LINE as u64;

/// What a check of an audit log found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditCheck {
    /// Lines that follow each other, from the first.
    pub lines: u64,
    /// Places where text was not finished and the chain goes on behind it.
    pub torn: u64,
    /// Lines that the gateway says it could not write.
    pub lost: u64,
    /// Requests that were allowed and whose end is not there: the process ended meanwhile, or they are still served.
    pub open: u64,
    /// SHA-256 of the last line of the file whose place this one took, as its first line says.
    pub after: Option<String>,
    /// SHA-256 of the last line that fits, in hexadecimal.
    pub head: String,
    /// The hash that was looked for, and whether a line has it.
    pub holds: Option<bool>,
    /// The first line that does not fit; `None` when all do.
    pub misfit: Option<Misfit>,
}

/// A line that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Misfit {
    /// Its place in the file, from 1.
    pub line: u64,
    /// Why.
    pub reason: String,
}

impl AuditCheck {
    /// Whether every line fits, and the hash that was looked for is there.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.misfit.is_none() && self.holds != Some(false)
    }

    /// Checks a log up to the first line that does not fit; `head` is a hash that one of its lines must have, as an
    /// earlier check gave it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(mut text: impl BufRead, head: Option<&str>) -> io::Result<Self> {
        let mut check = Self {
            lines: 0,
            torn: 0,
            lost: 0,
            open: 0,
            after: None,
            head: FIRST.to_owned(),
            holds: head.map(|head| head == FIRST),
            misfit: None,
        };
        // The last line, and what is unfinished behind it.
        let (mut before, mut pieces, mut seq) = (Vec::new(), 0_u64, 0);
        let mut open = BTreeSet::new();
        let mut place = 0;
        let mut former = FIRST.to_owned();
        loop {
            let mut bytes = Vec::new();
            if io::Read::take(&mut text, MOST).read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            place += 1;
            bytes.pop_if(|byte| *byte == b'\n');
            let misfit = |reason: String| Some(Misfit { line: place, reason });
            let line = match AuditLine::read(&bytes) {
                Ok(line) => line,
                // The next line must say that this is not a line.
                Err(reason) => {
                    if bytes.len() as u64 >= MOST {
                        check.misfit = misfit("it is longer than any line of an audit log".to_owned());
                        break;
                    }
                    if pieces == 0 {
                        check.misfit = misfit(format!("it is not a line of an audit log: {reason}"));
                    }
                    pieces += 1;
                    if !before.is_empty() {
                        before.push(b'\n');
                    }
                    before.extend_from_slice(&bytes);
                    if before.len() as u64 > 2 * MOST {
                        break;
                    }
                    continue;
                }
            };
            let expected = if before.is_empty() { FIRST.to_owned() } else { hash(&before) };
            let goes_on = pieces == 0 || (line.torn && line.event == AuditEvent::Started);
            if !goes_on {
                // What was found before stays: the text in front of this line is not one that was not finished.
                break;
            }
            if line.prev != expected || line.seq != seq + 1 {
                check.misfit = match (line.seq == seq + 1, place) {
                    (_, 1) => misfit("it is not the first line of its log: lines before it are missing".to_owned()),
                    (true, _) if pieces > 0 => check.misfit.take(),
                    (true, _) => {
                        // The line before is the one that does not fit.
                        check.lines -= 1;
                        check.head = former;
                        let reason = format!("it has changed since line {place} was written after it");
                        Some(Misfit { line: place - 1, reason })
                    }
                    (false, _) => misfit(format!(
                        "it has number {} and follows number {seq}: lines are missing, repeated or out of order",
                        line.seq
                    )),
                };
                break;
            }
            if pieces > 0 {
                check.misfit = None;
                check.torn += 1;
            }
            match (line.event, line.decision, line.call) {
                (AuditEvent::Decided, Some(AuditDecision::Allow), _) => drop(open.insert(line.seq)),
                (AuditEvent::Ended, _, Some(call)) => drop(open.remove(&call)),
                _ => {}
            }
            if seq == 0 {
                check.after.clone_from(&line.after);
            }
            (pieces, seq) = (0, line.seq);
            check.lines += 1;
            check.lost = check.lost.saturating_add(line.lost.unwrap_or_default());
            former = std::mem::replace(&mut check.head, hash(&bytes));
            if head == Some(check.head.as_str()) {
                check.holds = Some(true);
            }
            before = bytes;
        }
        check.open = open.len() as u64;
        Ok(check)
    }
}

/// Which lines are shown; a line must have all that is given.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// The name of the caller.
    pub caller: Option<String>,
    /// A part of the id of what is called.
    pub item: Option<String>,
    /// The decision: `allow`, `refuse` or `ask`.
    pub decision: Option<String>,
    /// How it ended, or the code of the refusal.
    pub code: Option<String>,
    /// The beginning of the time, such as `2026-11-22T12`.
    pub time: Option<String>,
}

impl AuditFilter {
    /// Whether a line is shown.
    #[must_use]
    pub fn takes(&self, line: &AuditLine) -> bool {
        let is =
            |wanted: &Option<String>, found: Option<&str>| wanted.as_deref().is_none_or(|wanted| found == Some(wanted));
        is(&self.caller, line.caller.as_deref())
            && is(&self.decision, line.decision.map(|decision| decision.name()))
            && is(&self.code, line.code.as_deref())
            && self.item.as_deref().is_none_or(|part| line.item.as_deref().is_some_and(|item| item.contains(part)))
            && self.time.as_deref().is_none_or(|start| line.time.starts_with(start))
    }

    /// The lines of a log that are shown, in their order; what is not a line is passed over. Whether it is a log: an empty text is,
    /// and one of whose lines at least one is a line of a log.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn lines(
        &self,
        mut text: impl BufRead,
        mut show: impl FnMut(&AuditLine) -> io::Result<()>,
    ) -> io::Result<bool> {
        let (mut is_empty, mut is_log) = (true, false);
        loop {
            let mut bytes = Vec::new();
            if io::Read::take(&mut text, MOST).read_until(b'\n', &mut bytes)? == 0 {
                return Ok(is_empty || is_log);
            }
            is_empty = false;
            let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            if let Ok(line) = AuditLine::read(bytes) {
                is_log = true;
                if self.takes(&line) {
                    show(&line)?;
                }
            }
        }
    }
}
