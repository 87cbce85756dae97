//! Logs: levels, the time that they cover, the first error, and which messages recur or occur once.

use std::cmp::Reverse;
use std::sync::LazyLock;

use regex::Regex;

use crate::brief::{Piece, Text, Wording};

use super::excerpt::{Tally, cut, samples};
use super::rank;
use super::template::Templates;
use contextweaver_core::text::counted;

/// The number of bytes of a line in which its time and its level are looked for.
const PREFIX: usize = 160;
/// The number of characters of an error or a message in its wordings.
const MESSAGE_LENGTHS: [usize; 3] = [100, 180, 400];

/// Of so many times one may be earlier than the one before: several processors write messages.
const FALLING: usize = 10;

/// The number of characters of a message after its time in the shortest wording.
const BRIEF_MESSAGE: usize = 40;

/// The level of a log line, in ascending order of severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Trace,
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Fatal,
}

impl Level {
    const ALL: [Self; 7] =
        [Self::Fatal, Self::Error, Self::Warning, Self::Notice, Self::Info, Self::Debug, Self::Trace];

    fn of(word: &str) -> Option<Self> {
        let mut upper = [0u8; 9];
        let upper = upper.get_mut(..word.len())?;
        upper.copy_from_slice(word.as_bytes());
        upper.make_ascii_uppercase();
        Some(match &*upper {
            b"TRACE" | b"VERBOSE" | b"FINE" | b"FINER" | b"FINEST" => Self::Trace,
            b"DEBUG" | b"DBG" => Self::Debug,
            b"INFO" | b"INF" | b"LOG" => Self::Info,
            b"NOTICE" => Self::Notice,
            b"WARN" | b"WARNING" | b"WRN" => Self::Warning,
            b"ERROR" | b"ERR" | b"SEVERE" => Self::Error,
            b"FATAL" | b"CRITICAL" | b"CRIT" | b"PANIC" | b"ALERT" | b"EMERG" => Self::Fatal,
            _ => return None,
        })
    }
}

/// The number of words of a line that are read.
const MOST_WORDS: usize = 64;

/// The level of a line: the first word in its front part that is a level and is written in capitals, in brackets, after
/// `level=`, or before a colon.
pub(super) fn level(line: &str) -> Option<(Level, &str)> {
    let bytes = line.as_bytes();
    let front = bytes.get(..PREFIX).unwrap_or(bytes);
    let mut start = None;
    let mut quotes = 0;
    for (at, &byte) in front.iter().chain(std::iter::once(&b' ')).enumerate() {
        if byte.is_ascii_alphabetic() {
            start = start.or(Some(at));
            continue;
        }
        let found = start.take().filter(|&from| (3..=9).contains(&(at - from))).and_then(|from| {
            let word = line.get(from..at)?;
            let level = Level::of(word)?;
            let capitals = word.bytes().all(|byte| byte.is_ascii_uppercase()) && quotes == 0;
            let before = from.checked_sub(1).and_then(|at| front.get(at));
            let enclosed = matches!(
                (before, byte),
                (Some(b'['), b']') | (Some(b'<'), b'>') | (Some(b'('), b')') | (Some(b'|'), b'|')
            );
            let labelled = line.get(..from).is_some_and(|front| {
                let front = front.trim_end_matches(['"', '\'', ' ', ':', '=']);
                let before = |label: &&str| front.strip_suffix(*label);
                let named = ["level", "lvl", "severity", "levelname"].iter().find_map(before);
                // In an address it is what somebody asked for.
                named.is_some_and(|before| !before.ends_with(['?', '&']))
            });
            let opening = byte == b':'
                && line
                    .get(..from)
                    .is_some_and(|front| front.trim().is_empty() || front.ends_with("] ") || front.ends_with(": "));
            let bracketed = byte == b'[' && from == 0;
            (capitals || enclosed || labelled || opening || bracketed).then_some((level, word))
        });
        if found.is_some() {
            return found;
        }
        quotes ^= usize::from(byte == b'"');
    }
    // The format of glog: `W0102 12:30:01.123456  123 file.cc:12] text`.
    let mark = bytes.first().zip(bytes.get(1..5)).filter(|(_, digits)| digits.iter().all(u8::is_ascii_digit));
    let level = match mark.filter(|_| bytes.get(5) == Some(&b' '))?.0 {
        b'I' => Level::Info,
        b'W' => Level::Warning,
        b'E' => Level::Error,
        b'F' => Level::Fatal,
        _ => return None,
    };
    Some((level, line.get(..1)?))
}

static TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(:\d\d)?([.,]\d+)?(Z|\s?[+-]\d\d:?\d\d)?",
        r"|\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d( [+-]\d{4})?",
        r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d( \d{4})?",
        r"|\b\d\d:\d\d:\d\d([.,]\d+)?",
        // The seconds since a start, and since 1970 up to the year 2033; other numbers are amounts and names.
        r"|^\[ *\d+\.\d{3,}\]",
        r"|^1\d{9}(\d{3}|\.\d+)?\b",
    ))
    .expect("a fixed pattern")
});

/// Parts of the words that indicate an error: a quick test that few lines pass.
static SUSPECT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("(?i)error|exception|fail|panic|fatal|traceback").expect("a fixed pattern"));

/// The time stamp in the front part of a line.
pub(super) fn time(line: &str) -> Option<&str> {
    TIME.find(line.get(..line.floor_char_boundary(PREFIX))?).map(|found| found.as_str())
}

/// The number in brackets at the front of a line, as the seconds since a start: `[   12.345]`.
pub(super) fn uptime(line: &str) -> Option<f64> {
    line.strip_prefix('[')?.split_once(']')?.0.trim_start().parse().ok()
}

/// Whether the numbers in brackets at the front of `lines` fall, as times do not.
pub(super) fn uptimes_fall(lines: &[&str]) -> bool {
    let numbers: Vec<f64> = lines.iter().filter_map(|line| uptime(line)).collect();
    numbers.windows(2).filter(|pair| pair[1] < pair[0]).count() * FALLING > numbers.len()
}

/// Whether a line begins with its time, and has something behind it.
pub(super) fn begins_with_time(line: &str) -> bool {
    // The brackets around the seconds since a start are a part of the time.
    let fronts = [line, line.trim_start_matches('[')];
    let behind = fronts.into_iter().find_map(|line| line.strip_prefix(time(line)?));
    behind.is_some_and(|behind| behind.starts_with([' ', ']']) && behind.trim_start_matches(']').starts_with(' '))
}

/// The status code of a request, as servers write it that do not write `"GET / HTTP/1.1" 200`: behind the method and the
/// path (Express), in a column (Gin), after `Completed` (Rails), and as a field.
static STATUS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"(?:\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) "?(?:/|https?:)[^\s"]*"? |\[GIN\] [^|]*\| *|\bCompleted "#,
        r#"|\bstatus(?:_?code)?"?(?:=|: ?))([1-5]\d\d)(?:[\s,|}\]]|$)"#,
    ))
    .expect("a fixed pattern")
});

/// The status code in a line of an HTTP server's access log.
fn status(line: &str) -> Option<u16> {
    let quoted = || {
        let (_, after) = line.split_once("HTTP/")?;
        let (_, after) = after.split_once("\" ")?;
        after.get(..3)?.parse().ok().filter(|code| (100..600).contains(code))
    };
    quoted().or_else(|| STATUS.captures(line)?.get(1)?.as_str().parse().ok())
}

/// Whether any line of the text can indicate an error: one pass instead of a test per line.
pub(super) fn may_tell_of_error(text: &str) -> bool {
    SUSPECT.is_match(text) || FAILED.iter().any(|mark| text.contains(mark))
}

/// Whether the words of a line say that it is an error, although it carries no level.
pub(super) fn tells_of_error(line: &str) -> bool {
    const WORDS: [&str; 9] =
        ["error", "exception", "traceback", "panicked", "fatal", "failed", "failure", "fail", "panic"];
    if begins_with_any(line, &FAILED) {
        return true;
    }
    if !SUSPECT.is_match(line) || begins_with_any(line, &PASSED) {
        return false;
    }
    // A word inside a path or an identifier is a name.
    let mut words = line.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '/' | '.' | '-')));
    let told = words.by_ref().filter(|word| !word.is_empty()).take(24).any(|word| {
        let word = word.trim_end_matches(['.', '-']);
        let exact = WORDS.iter().any(|known| word.eq_ignore_ascii_case(known));
        exact || (word.len() > 6 && (word.ends_with("Error") || word.ends_with("Exception")))
    });
    told && !says_none(line)
}

/// How a line begins that is a report of an error whatever stands in the lines around it: with a word in capitals, or with
/// one before a colon or a code, perhaps behind marks in brackets or a place.
static REPORT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(?:\[[^\]]*\][: ]*)*(?:\[?(?:ERROR|FATAL|FAILED|FAILURE|FAIL|PANIC)\b",
        r"|(?:[\w.,:()+@/\\-]+: )?(?:fatal |Fatal )?[Ee]rror(?:\[\w+\])?(?: [A-Z]{1,8}\d+)?:)",
    ))
    .expect("a fixed pattern")
});

/// Whether a line reports an error in a way that prose does not, which may have the word in it.
pub(super) fn reports_error(line: &str) -> bool {
    let is_report = || REPORT.is_match(message(line)) || is_exception(line);
    begins_with_any(line, &FAILED) || (SUSPECT.is_match(line) && is_report() && !says_none(line))
}

/// How a line begins that reports what went well, or what did not, whatever that is called.
const PASSED: [&str; 10] = ["✓", "✔", "√", "✅", "ok ", "PASS ", "PASS:", "PASSED ", "Passed ", "--- PASS"];
const FAILED: [&str; 6] = ["✕", "✗", "✘", "✖", "❌", "not ok "];

fn begins_with_any(line: &str, marks: &[&str]) -> bool {
    let line = line.trim_start();
    marks.iter().any(|mark| line.starts_with(mark))
}

/// Whether all that a line says of errors is that there are none: `0 errors`, `no error`, `0 tests failed`, `failed=0`.
fn says_none(line: &str) -> bool {
    // Each word with what stands before it.
    let mut words: Vec<(&str, &str)> = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric()).filter(|_| words.len() < MOST_WORDS) {
        let (between, from) = rest.split_at(start);
        let end = from.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(from.len());
        let (word, behind) = from.split_at(end);
        words.push((between, word));
        rest = behind;
    }
    let is_blank = |text: &str| !text.is_empty() && text.trim().is_empty();
    let is_error = |word: &str| {
        let word = word.to_ascii_lowercase();
        ["error", "fail", "exception"].iter().any(|known| word.starts_with(known))
    };
    let is_absent = |at: usize| {
        let value = words.get(at + 1).filter(|(between, _)| matches!(between.trim(), ":" | "="));
        if let Some((_, value)) = value {
            return matches!(*value, "0" | "none" | "None" | "null" | "nil");
        }
        // `0 failed`, `0 tests failed`; not the `0` of the name before.
        let back = |steps: usize| {
            let at = at.checked_sub(steps)?;
            let between = words.get(at + 1..=at + steps)?.iter().all(|(between, _)| is_blank(between));
            words.get(at).map(|(_, word)| *word).filter(|_| between)
        };
        let lone = words.get(at + 1).is_some_and(|(between, word)| is_blank(between) && *word == "0");
        matches!(back(1), Some("0" | "no" | "No" | "without"))
            || back(2) == Some("0")
            || (at + 2 == words.len() && lone)
    };
    let mut told = (0..words.len()).filter(|&at| words.get(at).is_some_and(|(_, word)| is_error(word))).peekable();
    told.peek().is_some() && told.all(is_absent)
}

/// The lines that indicate an error, as far as they are needed.
#[derive(Debug, Default)]
pub(super) struct Errors<'a> {
    /// The number of such lines.
    pub(super) count: usize,
    /// The first of them with its number, from 0.
    pub(super) first: Option<(usize, &'a str)>,
    /// The last and the one before.
    last: [Option<(usize, &'a str)>; 2],
    templates: Templates<'a>,
}

impl<'a> Errors<'a> {
    /// Counts a line that indicates an error.
    pub(super) fn add(&mut self, number: usize, line: &'a str) {
        self.count += 1;
        self.first = self.first.or(Some((number, line)));
        self.last = [Some((number, line)), self.last[0]];
        self.templates.add(line, number);
    }

    /// The first errors of each pattern with their numbers, in order.
    pub(super) fn different(&self) -> impl Iterator<Item = (usize, &'a str)> {
        self.templates.groups().iter().map(|group| (group.line, group.first))
    }

    /// How many errors there are, the first verbatim, the last, and the different ones, without `shown`, which is said
    /// anyway.
    pub(super) fn pieces(&self, noun: &str, shown: &str) -> Vec<Piece> {
        let Some((number, first)) = self.first else { return Vec::new() };
        let head = format!("{}, first (line {number})", counted(self.count, noun));
        let [short, longer, longest] =
            MESSAGE_LENGTHS.map(|length| format!("{head}: {}", cut(first.trim_start(), length)));
        let shortest = format!("{head}: {}", cut(message(first), MESSAGE_LENGTHS[0] / 2));
        let piece =
            Piece::line(rank::ERROR_PLACE, rank::ERROR, shortest).or(rank::STAT, short).or(rank::MORE_STAT, longer);
        let mut pieces = vec![piece.or(rank::LONGER, longest)];
        if let Some((number, last)) =
            self.last.into_iter().flatten().find(|last| last.1 != shown).filter(|last| last.0 != number)
        {
            let text = format!("last {noun} (line {number}): {}", cut(last.trim_start(), MESSAGE_LENGTHS[0]));
            pieces.push(Piece::line(rank::ERROR_PLACE + 1, rank::SECOND_OUTLINE, text));
        }
        let further: Vec<_> = self.templates.groups().iter().skip(1).filter(|group| group.first != shown).collect();
        if further.len() > 1 {
            let entries = further
                .iter()
                .map(|group| {
                    let line = cut(group.first.trim_start(), MESSAGE_LENGTHS[0]);
                    format!("×{} (line {}): {line}", group.count, group.line)
                })
                .collect();
            pieces.push(Piece::list(
                rank::ERROR_PLACE + 2,
                &format!("further different {noun}s:\n"),
                entries,
                "\n",
                (rank::OUTLINE, 1),
                rank::SECOND_OUTLINE,
            ));
        }
        pieces
    }
}

/// Describes a log.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let tally = Tally::of(text);
    let mut levels: Vec<(Level, usize)> = Level::ALL.into_iter().map(|level| (level, 0)).collect();
    let mut words = [""; 7];
    let mut statuses: std::collections::BTreeMap<u16, usize> = std::collections::BTreeMap::new();
    let mut templates = Templates::default();
    let mut errors = Errors::default();
    let mut warnings = Errors::default();
    let mut worded = Errors::default();
    let mut fatal = Errors::default();
    let mut raised = Templates::default();
    let access = text.lines().take(50).filter(|line| status(line).is_some()).count() > 5;
    for (number, line) in (0..).zip(text.lines()) {
        if line.trim_start().is_empty() {
            continue;
        }
        templates.add(line, number);
        if let Some((level, word)) = level(line) {
            if let Some(index) = levels.iter().position(|(known, _)| *known == level) {
                levels[index].1 += 1;
                words[index] = if words[index].is_empty() { word } else { words[index] };
            }
            match level {
                Level::Error => errors.add(number, line),
                Level::Fatal => {
                    errors.add(number, line);
                    fatal.add(number, line);
                }
                Level::Warning => warnings.add(number, line),
                _ => {}
            }
        // The status of a request says more than the words of its address.
        } else if !(access && status(line).is_some()) && tells_of_error(line) {
            worded.add(number, line);
            if is_exception(line) {
                raised.add(line, number);
            }
        }
        if access && let Some(code) = status(line) {
            *statuses.entry(code).or_default() += 1;
            if code >= 500 {
                errors.add(number, line);
            }
        }
    }
    if errors.count == 0 {
        errors = std::mem::take(&mut worded);
    }
    let mut pieces = vec![shape(&tally, &templates)];
    pieces.extend(tally.ends().into_iter().map(|piece| brief_end(piece, &tally)));
    pieces.extend(errors.pieces("error", tally.last).into_iter().map(|mut piece| {
        // The first error is worth more than the text of the last line.
        if let Some(first) = piece.wordings.first_mut().filter(|wording| wording.rank == rank::ERROR) {
            first.rank = rank::ENDS - 1;
        }
        piece
    }));
    pieces.extend(worst(&fatal));
    pieces.extend(exceptions(&raised));
    pieces.extend(warnings.pieces("warning", tally.last).into_iter().take(1).map(|mut piece| {
        piece.place = rank::ERROR_PLACE + 3;
        piece.wordings.truncate(1);
        for wording in &mut piece.wordings {
            wording.rank = rank::WHOLE_OUTLINE - 1;
        }
        piece
    }));
    let counts: Vec<String> = levels
        .iter()
        .zip(words)
        .filter(|((_, count), _)| *count > 0)
        .map(|((_, count), word)| format!("{word} {count}"))
        .collect();
    if !counts.is_empty() {
        pieces.push(Piece::line(rank::STAT_PLACE, rank::SHAPE + 1, format!("levels: {}", counts.join(", "))));
    }
    if !statuses.is_empty() {
        let counts: Vec<String> = statuses.iter().map(|(code, count)| format!("{code} ×{count}")).collect();
        pieces.push(Piece::line(rank::STAT_PLACE, rank::SHAPE + 2, format!("status codes: {}", counts.join(", "))));
    }
    pieces.extend(times(text));
    pieces.extend(messages(&templates, &tally));
    pieces.extend(samples(text, &tally));
    pieces
}

/// Puts shorter wordings of the first or last line before the others: its time and the start of its message.
fn brief_end(mut piece: Piece, tally: &Tally) -> Piece {
    let (label, line) =
        if piece.place == rank::FIRST_LINE_PLACE { ("first line", tally.first) } else { ("last line", tally.last) };
    let stamp = time(line).and_then(|stamp| line.find(stamp).map(|at| at + stamp.len())).unwrap_or_default();
    let brief = cut(line, line.get(..stamp).map_or(0, |front| front.chars().count()) + BRIEF_MESSAGE);
    for (wording, rank) in piece.wordings.iter_mut().zip([rank::ENDS + 2, rank::MORE_STAT]) {
        wording.rank = rank;
    }
    let wording = |rank, text: &str| Wording { rank, text: Text::Whole(format!("{label}: {text}")) };
    // The time at which a log ends is worth more than its last message.
    let time = line.get(..stamp).filter(|front| !front.is_empty() && label == "last line");
    let mut wordings: Vec<Wording> = time.map(|time| wording(rank::ENDS, &format!("{time}…"))).into_iter().collect();
    wordings.push(wording(rank::ENDS + u32::from(time.is_some()), &brief));
    wordings.append(&mut piece.wordings);
    piece.wordings = wordings;
    piece
}

/// How a line begins that names what led to the exception before it.
const CAUSE: &str = "Caused by: ";

/// Whether a line has the name of an exception and its message: `KeyError: 'name'`, `Caused by: x.YException: …`.
fn is_exception(line: &str) -> bool {
    let line = line.trim_start();
    let thread = line.strip_prefix("Exception in thread \"").and_then(|rest| Some(rest.split_once("\" ")?.1));
    let line = thread.or_else(|| line.strip_prefix(CAUSE)).unwrap_or(line);
    let name = line.split_once(": ").map_or("", |(name, _)| name);
    (name.ends_with("Error") || name.ends_with("Exception"))
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
}

/// The first line of the worst level, unless it is the first error anyway.
fn worst(fatal: &Errors) -> Option<Piece> {
    let (number, line) = fatal.first?;
    let wording =
        |length| format!("{}, first (line {number}): {}", counted(fatal.count, "fatal"), cut(message(line), length));
    Some(
        Piece::line(rank::ERROR_PLACE, rank::ENDS - 2, wording(MESSAGE_LENGTHS[0] / 2))
            .or(rank::MORE_STAT, wording(MESSAGE_LENGTHS[1])),
    )
}

/// The exceptions in traces between the messages, the most frequent first; of causes the last first, behind what they
/// led to.
fn exceptions(raised: &Templates) -> Option<Piece> {
    let mut groups = raised.frequent();
    groups.sort_by_key(|group| {
        let is_cause = group.first.trim_start().starts_with(CAUSE);
        (Reverse(group.count), is_cause, if is_cause { usize::MAX - group.line } else { group.line })
    });
    let entries: Vec<String> =
        groups.iter().map(|group| format!("{} ×{}", cut(group.first.trim_start(), 100), group.count)).collect();
    (!entries.is_empty()).then(|| {
        let least = (rank::ENDS + 1, 1);
        Piece::list(rank::ERROR_PLACE + 1, "exceptions: ", entries, ", ", least, rank::OUTLINE)
    })
}

/// The line without its time, if that is at the front.
fn message(line: &str) -> &str {
    let line = line.trim_start();
    let stamp = time(line).filter(|stamp| line.starts_with(stamp)).map_or(0, str::len);
    line.get(stamp..).unwrap_or(line).trim_start()
}

fn shape(tally: &Tally, templates: &Templates) -> Piece {
    let more = if templates.others > 0 { "more than " } else { "" };
    let kinds = counted(templates.groups().len(), "kind");
    let text = format!("log: {}, {more}{kinds} of message", counted(tally.lines, "line"));
    Piece::line(rank::SHAPE_PLACE, rank::SHAPE, text)
}

/// The form of a time stamp that begins with its year, and the part of it that grows with the time: up to its seconds.
/// Stamps of one form are ordered by that part.
fn dated(stamp: &str) -> Option<([&str; 3], &str)> {
    let separator = stamp.get(4..5).filter(|separator| ["-", "/"].contains(separator))?;
    let end = if stamp.get(16..17) == Some(":") { 19 } else { 16 };
    let zone = stamp.get(end..)?.trim_start_matches(|c: char| matches!(c, '.' | ',') || c.is_ascii_digit());
    Some(([separator, stamp.get(10..11)?, zone], stamp.get(..end)?))
}

/// From when to when the messages are. Logs that were put together do not end with their last time, and times without a
/// date begin again each day: where nothing tells which is the last, only the first and the last stamp are named.
fn times(text: &str) -> Option<Piece> {
    let mut stamps = text.lines().filter_map(time);
    let first = stamps.next()?;
    let mut last = first;
    let range = if let Some((form, at)) = dated(first) {
        let (mut least, mut most, mut is_one_form) = ((at, first), (at, first), true);
        // Those without a date are times within a message.
        for (stamp, (other, at)) in stamps.filter_map(|stamp| Some((stamp, dated(stamp)?))) {
            is_one_form &= other == form;
            if at < least.0 {
                least = (at, stamp);
            }
            if at >= most.0 {
                most = (at, stamp);
            }
            last = stamp;
        }
        is_one_form.then_some((least.1, most.1))
    } else {
        let mut is_sorted = true;
        for stamp in stamps {
            is_sorted &= (last.len(), last) <= (stamp.len(), stamp);
            last = stamp;
        }
        is_sorted.then_some((first, last))
    };
    let text = match range {
        Some((least, most)) => format!("time range: {least} to {most}"),
        None => format!("first time {first}, last time {last}"),
    };
    Some(Piece::line(rank::STAT_PLACE, rank::STAT, text))
}

/// Messages by pattern: the most frequent and, in equal number, those that occur once.
fn messages(templates: &Templates, tally: &Tally) -> Vec<Piece> {
    let frequent = templates.frequent();
    let recurring: Vec<String> = frequent
        .iter()
        .take_while(|group| group.count > 1)
        .take(200)
        .map(|group| format!("×{}: {}", group.count, cut(group.first.trim_start(), 140)))
        .collect();
    let rare: Vec<String> = frequent
        .iter()
        .filter(|group| group.count == 1 && group.first != tally.first && group.first != tally.last)
        .take(200)
        .map(|group| format!("line {}: {}", group.line, cut(group.first.trim_start(), 140)))
        .collect();
    let mut pieces = Vec::new();
    if !recurring.is_empty() {
        let head = "messages by frequency, numbers vary:\n";
        let later = rank::WHOLE_OUTLINE;
        pieces.push(Piece::list(rank::OUTLINE_PLACE, head, recurring, "\n", (rank::OUTLINE, 2), later));
    }
    if !rare.is_empty() && frequent.len() * 2 < tally.lines {
        let head = "lines that occur once:\n";
        let least = (rank::OUTLINE + 1, 2);
        pieces.push(Piece::list(rank::SECOND_OUTLINE_PLACE, head, rare, "\n", least, rank::SECOND_OUTLINE));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::*;

    #[test]
    fn levels_and_times() {
        let cases = [
            ("2026-11-01 00:00:00,000 INFO  [w] started", Some(Level::Info), Some("2026-11-01 00:00:00,000")),
            ("2026-11-01T00:00:00Z level=error msg=\"no INFO\"", Some(Level::Error), Some("2026-11-01T00:00:00Z")),
            ("Nov  1 00:00:00 host kernel: text", None, Some("Nov  1 00:00:00")),
            ("[warn] careful", Some(Level::Warning), None),
            ("error: no such file", Some(Level::Error), None),
            ("error[E0308]: mismatched types", Some(Level::Error), None),
            ("W0102 12:30:01.123456  123 file.cc:12] text", Some(Level::Warning), Some("12:30:01.123456")),
            ("an error in prose", None, None),
        ];
        for (line, expected, stamp) in cases {
            assert_eq!(level(line).map(|(level, _)| level), expected, "{line}");
            assert_eq!(time(line), stamp, "{line}");
        }
    }

    #[test]
    fn numbers_at_the_front_of_a_line_are_times_in_few_forms() {
        for (line, stamp) in [
            ("1764500000 started", Some("1764500000")),
            ("1764500000123 started", Some("1764500000123")),
            ("1764500000.25 started", Some("1764500000.25")),
            ("[    0.000000] usb 1-0", Some("[    0.000000]")),
            // Orders, telephone numbers, losses and containers.
            ("4100000000 order shipped", None),
            ("15551230000 called in", None),
            ("0.7825 loss at step 0", None),
            ("000000000000   app:0", None),
        ] {
            assert_eq!(time(line), stamp, "{line}");
        }
        let begins =
            ["[   12.345] usb 1-0", "[2026-11-01 10:00:00] a", "10:00:00 a", "0.7825 loss"].map(begins_with_time);
        assert_eq!(begins, [true, true, true, false]);
        let log = |number: &dyn Fn(usize) -> f64| -> String {
            (0..60).map(|n| format!("[{:8.4}] alder birch\n", number(n))).collect()
        };
        let kind = |text: &str| told(text, 60).lines().next().unwrap_or_default().to_owned();
        let late = |n: usize| if n == 30 { 29.5 } else { n as f64 };
        assert_eq!([kind(&log(&late)), kind(&log(&|n| 0.9 - n as f64 / 100.0))], ["[Log]", "[Plain]"]);
    }

    #[test]
    fn the_blanks_before_a_time_make_no_other_message() {
        let text: String = (0..120).map(|n| format!("[{:12.6}] usb 1-{n}: new device\n", n as f64)).collect();
        assert!(told(&text, 60).contains("log: 120 lines, 1 kind of message"), "{}", told(&text, 60));
    }

    #[test]
    fn reports_of_errors_are_told_from_prose() {
        for (line, expected) in [
            ("ERROR could not apply migration 80", true),
            ("2026-11-01 10:00:00 [worker] FATAL: no space", true),
            ("[ERROR] no space", true),
            ("error[E0308]: mismatched types", true),
            ("src/main.c:12:5: error: expected expression", true),
            ("src/c.tsx(1,2): error TS2322: Type", true),
            ("ValueError: bad", true),
            ("❌ test number 50", true),
            ("FAILED: 0, passed: 12", false),
            ("Errors are told from prose.", false),
            ("The heating has failed again.", false),
            ("an ERROR: in the middle", false),
            ("print(f\"{path}: error: {text}\")", false),
        ] {
            assert_eq!(reports_error(line), expected, "{line}");
        }
    }

    #[test]
    fn a_range_of_times_holds_all_of_them() {
        for (about, lines, expected) in [
            (
                "in order",
                "2026-11-01 10:00:00 a\n2026-11-01 10:00:05,250 b",
                "time range: 2026-11-01 10:00:00 to 2026-11-01 10:00:05,250",
            ),
            (
                "three logs, the latest in the middle",
                "2026-11-01 10:00:00 a\n2026-11-03 09:00:00 b\n2026-10-30 10:00:00 c\n2026-11-02 08:00:00 d",
                "time range: 2026-10-30 10:00:00 to 2026-11-03 09:00:00",
            ),
            (
                "a time within a message",
                "2026-11-01 10:00:00 a\n  retry at 09:00:00\n2026-11-01 10:00:07 b",
                "time range: 2026-11-01 10:00:00 to 2026-11-01 10:00:07",
            ),
            (
                "two zones",
                "2026-11-01T10:00:00Z a\n2026-11-01T10:30:00+02:00 b",
                "first time 2026-11-01T10:00:00Z, last time 2026-11-01T10:30:00+02:00",
            ),
            ("no date", "10:00:00 a\n23:00:00 b\n11:00:00 c", "first time 10:00:00, last time 11:00:00"),
            ("no date, in order", "10:00:00 a\n11:00:00 b\n23:00:00 c", "time range: 10:00:00 to 23:00:00"),
            (
                "two months",
                "Oct 31 10:00:00 a\nNov  1 10:00:00 b",
                "first time Oct 31 10:00:00, last time Nov  1 10:00:00",
            ),
            ("uptime", "[    9.123] a\n[   10.001] b", "time range: [    9.123] to [   10.001]"),
        ] {
            let piece = times(lines).unwrap();
            assert!(format!("{piece:?}").contains(expected), "{about}: {piece:?}");
        }
    }

    #[test]
    fn words_that_tell_of_an_error() {
        let cases = [
            ("Failed to open connection", true),
            ("ValueError: bad", true),
            ("0 errors, 3 warnings", false),
            ("src/error.rs", false),
            ("test_error_handling ok", false),
            ("  ✓ handles error (2 ms)", false),
            ("ok 3 - raises an exception", false),
            ("  ✕ adds tax (2 ms)", true),
            ("❌ adds tax", true),
            ("✅ reports an error", false),
            ("not ok 4 - adds", true),
            ("100% tests passed, 0 tests failed out of 200", false),
            ("Failed: 0, Passed: 120", false),
            ("fail 0", false),
            ("error: null", false),
            ("unreachable=0    failed=1    skipped=0", true),
            ("unreachable=0    failed=0    skipped=0", false),
            ("3 failed, 0 errors", true),
        ];
        for (line, expected) in cases {
            assert_eq!(tells_of_error(line), expected, "{line}");
        }
    }

    #[test]
    fn a_log() {
        let text: String = (0..60)
            .map(|n| match n {
                17 => "2026-11-01 00:00:17 ERROR disk full on /dev/sda\n".to_owned(),
                40 => "2026-11-01 00:00:40 WARN retrying\n".to_owned(),
                _ => format!("2026-11-01 00:00:{n:02} INFO batch {n} took {} ms\n", n * 3),
            })
            .collect();
        insta::assert_snapshot!(told(&text, 300), @r"
        [Log]
        log: 60 lines, 3 kinds of message
        first line: 2026-11-01 00:00:00 INFO batch 0 took 0 ms
        1 error, first (line 17): 2026-11-01 00:00:17 ERROR disk full on /dev/sda
        1 warning, first (line 40): WARN retrying
        levels: ERROR 1, WARN 1, INFO 58
        time range: 2026-11-01 00:00:00 to 2026-11-01 00:00:59
        messages by frequency, numbers vary:
        ×58: 2026-11-01 00:00:00 INFO batch 0 took 0 ms
        lines that occur once:
        line 17: 2026-11-01 00:00:17 ERROR disk full on /dev/sda
        line 40: 2026-11-01 00:00:40 WARN retrying
        some lines:
        15: 2026-11-01 00:00:15 INFO batch 15 took 45 ms
        29: 2026-11-01 00:00:29 INFO batch 29 took 87 ms
        … +28
        last line: 2026-11-01 00:00:59 INFO batch 59 took 177 ms
        ");
        insta::assert_snapshot!(told(&text, 100), @r"
        [Log]
        log: 60 lines, 3 kinds of message
        first line: 2026-11-01 00:00:00 INFO batch 0 took 0 ms
        1 error, first (line 17): ERROR disk full on /dev/sda
        levels: ERROR 1, WARN 1, INFO 58
        last line: 2026-11-01 00:00:59 INFO batch 59 took 177 ms
        ");
    }

    #[test]
    fn the_last_cause_of_an_exception_is_named() {
        let trace = "java.lang.IllegalStateException: payment refused\n\tat app.Pay.run(Pay.java:7)\nCaused by: app.GatewayException: no answer\n\tat app.Gateway.call(Gateway.java:9)\nCaused by: java.net.SocketTimeoutException: connect timed out to pay.internal:8443\n\t... 3 more\n";
        let text: String = (0..40)
            .map(|n| match n {
                20 => format!("2026-11-01 00:00:20 ERROR order 7 failed\n{trace}"),
                _ => format!("2026-11-01 00:00:{n:02} INFO batch {n} took {} ms\n", n * 3),
            })
            .collect();
        insta::assert_snapshot!(told(&text, 190), @r"
        [Log]
        log: 46 lines, 8 kinds of message
        first line: 2026-11-01 00:00:00 INFO batch 0 took 0 ms
        1 error, first (line 20): 2026-11-01 00:00:20 ERROR order 7 failed
        exceptions: java.lang.IllegalStateException: payment refused ×1, Caused by: java.net.SocketTimeoutException: connect timed out to pay.internal:8443 ×1, Caused by: app.GatewayException: no answer ×1
        levels: ERROR 1, INFO 39
        time range: 2026-11-01 00:00:00 to 2026-11-01 00:00:39
        last line: 2026-11-01 00:00:39 INFO batch 39 took 117 ms
        ");
        assert!(is_exception("Exception in thread \"main\" java.lang.RuntimeException: no"));
        assert!(!is_exception("Caused by: nobody"));
    }

    #[test]
    fn the_last_line_is_not_repeated_as_an_error() {
        let text: String = (0..40)
            .map(|n| format!("INFO     cart:{n} recalculated\n"))
            .chain([
                "tests/test_cart.py:42: AssertionError\n".to_owned(),
                "FAILED tests/test_cart.py::test_total - assert 10 == 9\n".to_owned(),
                "==== 1 failed, 39 passed in 3.21s ====\n".to_owned(),
            ])
            .collect();
        insta::assert_snapshot!(told(&text, 140), @r"
        [Log]
        log: 43 lines, 4 kinds of message
        first line: INFO     cart:0 recalculated
        3 errors, first (line 40): tests/test_cart.py:42: AssertionError
        levels: INFO 40
        messages by frequency, numbers vary:
        ×40: INFO     cart:0 recalculated
        lines that occur once:
        line 40: tests/test_cart.py:42: AssertionError
        line 41: FAILED tests/test_cart.py::test_total - assert 10 == 9
        some lines:
        21: INFO     cart:21 recalculated
        … +42
        last line: ==== 1 failed, 39 passed in 3.21s ====
        ");
    }

    #[test]
    fn the_status_of_a_request_is_found_however_servers_write_it() {
        for (line, expected) in [
            ("1.2.3.4 - - [24/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 503 12", Some(503)),
            ("2026-11-24T10:00:00 GET /item/7 500", Some(500)),
            ("GET /api/users 404 12.345 ms - 15", Some(404)),
            ("[GIN] 2026/11/24 - 10:00:00 | 502 |     12.3ms |  127.0.0.1 | GET      \"/ping\"", Some(502)),
            ("Completed 422 Unprocessable Entity in 8ms", Some(422)),
            ("level=info msg=\"request completed\" status=504 path=/a", Some(504)),
            (r#"{"method":"GET","path":"/a","status":200,"ms":3}"#, Some(200)),
            (r#"{"path":"/a","status_code": 201}"#, Some(201)),
            // Neither codes nor requests.
            ("GET /item/500 in 200 ms", None),
            ("status=running exit=500", None),
            ("status=5000", None),
            ("got 500 results", None),
        ] {
            assert_eq!(status(line), expected, "{line}");
        }
        let log: String = (0..1000)
            .map(|n| {
                format!("2026-11-24T10:{:02}:00 GET /item/{n} {}\n", n / 60, if n % 100 == 42 { 500 } else { 200 })
            })
            .collect();
        let described = told(&log, 250);
        assert!(described.contains("status codes: 200 ×990, 500 ×10"), "{described}");
        assert!(described.contains("10 errors, first (line 42): 2026-11-24T10:00:00 GET /item/42 500"), "{described}");
    }

    #[test]
    fn an_access_log() {
        let text: String = (0..60)
            .map(|n| {
                format!(
                    "10.0.0.{n} - - [21/Nov/2026:10:00:{n:02} +0000] \"GET /{n} HTTP/1.1\" {} 12\n",
                    if n == 9 { 503 } else { 200 }
                )
            })
            .collect();
        insta::assert_snapshot!(told(&text, 250), @r#"
        [Log]
        log: 60 lines, 1 kind of message
        first line: 10.0.0.0 - - [21/Nov/2026:10:00:00 +0000] "GET /0 HTTP/1.1" 200 12
        1 error, first (line 9): 10.0.0.9 - - [21/Nov/2026:10:00:09 +0000] "GET /9 HTTP/1.1" 503 12
        status codes: 200 ×59, 503 ×1
        time range: 21/Nov/2026:10:00:00 +0000 to 21/Nov/2026:10:00:59 +0000
        last line: 10.0.0.59 - - [21/Nov/2026:10:00:59 +0000] "GET /59 HTTP/1.1" 200 12
        "#);
    }
}
