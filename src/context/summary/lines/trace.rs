//! Stack traces of Python, Java and its relatives, JavaScript, Rust and Go: the errors with their causes, and the
//! frames from the innermost outwards.

use crate::context::brief::Piece;

use super::excerpt::{Tally, counted, cut, samples};
use super::rank;

/// Frames that are kept.
const KEPT: usize = 2000;
/// Characters of a message.
const MESSAGE_LENGTH: usize = 240;

/// Where in a list of frames the innermost one stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// The innermost frame is the last before the message (Python).
    InnermostLast,
    /// The innermost frame is the first after the message.
    InnermostFirst,
}

/// Whether `line` names a frame.
pub fn is_frame(line: &str) -> bool {
    let inner = line.trim_start();
    let indented = inner.len() < line.len();
    (indented && (inner.starts_with("at ") && (inner.contains(':') || inner.contains('('))))
        || (inner.starts_with("File \"") && inner.contains(", line "))
        || (inner.starts_with("... ") && inner.ends_with(" more"))
        || rust_frame(inner).is_some()
        || (line.starts_with('\t') && inner.contains(".go:"))
}

/// `12: std::panicking::begin_panic`.
fn rust_frame(line: &str) -> Option<&str> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line.get(digits..)?.strip_prefix(": ")?;
    (digits > 0 && digits < 4 && rest.contains("::") && !rest.contains(' ') || digits > 0 && rest.starts_with("0x"))
        .then_some(rest)
}

/// Whether `line` says what went wrong: `ValueError: …`, `Caused by: …`, `thread 'main' panicked at …`.
pub fn is_message(line: &str) -> bool {
    let line = line.trim_start();
    if line.starts_with("Caused by: ") || line.starts_with("Exception in thread") || line.starts_with("panic: ") {
        return true;
    }
    if line.starts_with("thread '") && line.contains("panicked at") || line.starts_with("Uncaught ") {
        return true;
    }
    let name = line.split([':', ' ']).next().unwrap_or_default();
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'$'));
    let colon = line.get(name.len()..).is_some_and(|rest| rest.starts_with(": ") || rest.is_empty() || rest == ":");
    let short = name.rsplit('.').next().unwrap_or_default();
    let kind = ["Error", "Exception", "Exit", "Interrupt", "Warning", "Failure", "Fault"]
        .iter()
        .any(|end| short.ends_with(end));
    plain && colon && kind && short.starts_with(|c: char| c.is_ascii_uppercase())
}

#[derive(Debug)]
struct Failure<'a> {
    message: String,
    line: usize,
    innermost: Option<&'a str>,
    frames: usize,
}

/// What a stack trace says.
pub fn pieces(text: &str) -> Vec<Piece> {
    let tally = Tally::of(text);
    let style = if text.contains("Traceback (most recent call last)") || text.contains("File \"") {
        Style::InnermostLast
    } else {
        Style::InnermostFirst
    };
    let mut failures: Vec<Failure> = Vec::new();
    let mut frames: Vec<&str> = Vec::new();
    let mut frame_count = 0;
    // Frames since the last message, and the innermost of them.
    let (mut since, mut last_frame) = (0, None);
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        if is_frame(line) {
            frame_count += 1;
            since += 1;
            last_frame = Some(line.trim());
            if frames.len() < KEPT {
                frames.push(line.trim());
            }
            if style == Style::InnermostFirst {
                if let Some(failure) = failures.last_mut() {
                    failure.innermost = failure.innermost.or(Some(line.trim()));
                    failure.frames += 1;
                }
            }
        } else if is_message(line) && !(style == Style::InnermostLast && line.starts_with(' ')) {
            let mut message = line.trim().to_owned();
            // The message of a Rust panic stands on the next line.
            if message.ends_with(':') && message.contains("panicked at") {
                if let Some((_, next)) = lines.peek() {
                    message = format!("{message} {}", next.trim());
                }
            }
            let (innermost, frames) =
                if style == Style::InnermostLast { (last_frame.take(), since) } else { (None, 0) };
            failures.push(Failure { message, line: number, innermost, frames });
            since = 0;
        }
    }
    let mut pieces = vec![Piece::line(
        rank::SHAPE_PLACE,
        rank::SHAPE,
        format!(
            "stack trace: {}, {}, {}",
            counted(tally.lines, "line"),
            counted(failures.len(), "error"),
            counted(frame_count, "frame")
        ),
    )];
    pieces.extend(tally.ends());
    pieces.extend(chain(&failures, style));
    let entries: Vec<String> = match style {
        Style::InnermostFirst => frames.iter().map(|frame| cut(frame, 160)).collect(),
        Style::InnermostLast => frames.iter().rev().map(|frame| cut(frame, 160)).collect(),
    };
    if !entries.is_empty() {
        let head = "frames, innermost first:\n";
        pieces.push(Piece::list(rank::OUTLINE_PLACE, head, entries, "\n", (rank::OUTLINE, 2), rank::WHOLE_OUTLINE));
    }
    pieces.extend(samples(text, &tally));
    pieces
}

/// What was reported at the end, and its causes.
fn chain(failures: &[Failure], style: Style) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let reported = match style {
        Style::InnermostFirst => failures.first(),
        Style::InnermostLast => failures.last(),
    };
    let Some(reported) = reported else { return pieces };
    let mut head = format!("error: {}", cut(&reported.message, MESSAGE_LENGTH));
    if let Some(frame) = reported.innermost {
        head.push_str(&format!("\ninnermost frame of {}: {}", reported.frames, cut(frame, 200)));
    }
    pieces.push(Piece::line(rank::ERROR_PLACE, rank::ERROR, head));
    let others: Vec<String> = failures
        .iter()
        .filter(|failure| failure.line != reported.line)
        .map(|failure| {
            let frame = failure.innermost.map(|frame| format!(" ({})", cut(frame, 120))).unwrap_or_default();
            format!("line {}: {}{frame}", failure.line, cut(&failure.message, MESSAGE_LENGTH))
        })
        .collect();
    if !others.is_empty() {
        let head = match style {
            Style::InnermostFirst => "causes and further errors:\n",
            Style::InnermostLast => "earlier errors:\n",
        };
        let least = (rank::STAT, 2);
        pieces.push(Piece::list(rank::ERROR_PLACE + 1, head, others, "\n", least, rank::SECOND_OUTLINE));
    }
    pieces
}
