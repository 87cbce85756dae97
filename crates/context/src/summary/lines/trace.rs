//! Stack traces of Python, Java and its relatives, JavaScript, Rust and Go: the errors with their causes, and the
//! frames from the innermost outwards.

use crate::brief::Piece;

use super::excerpt::{Tally, counted, cut, samples};
use super::rank;

/// The number of frames kept.
const KEPT: usize = 2000;
/// The number of characters of a message.
const MESSAGE_LENGTH: usize = 240;

/// The position of the innermost frame in a list of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// The innermost frame is the last before the message (Python).
    InnermostLast,
    /// The innermost frame is the first after the message.
    InnermostFirst,
}

/// Whether `line` names a frame.
pub(super) fn is_frame(line: &str) -> bool {
    let inner = line.trim_start();
    let indented = inner.len() < line.len();
    (indented && (inner.starts_with("at ") && (inner.contains(':') || inner.contains('('))))
        || (inner.starts_with("File \"") && inner.contains(", line "))
        || (inner.starts_with("... ") && inner.ends_with(" more"))
        || rust_frame(inner).is_some()
        || (line.starts_with('\t') && inner.contains(".go:"))
}

/// Parses the name in a frame of Rust: `12: std::panicking::begin_panic`.
fn rust_frame(line: &str) -> Option<&str> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line.get(digits..)?.strip_prefix(": ")?;
    (digits > 0 && digits < 4 && rest.contains("::") && !rest.contains(' ') || digits > 0 && rest.starts_with("0x"))
        .then_some(rest)
}

/// Whether `line` is the message of an error: `ValueError: …`, `Caused by: …`, `thread 'main' panicked at …`.
pub(super) fn is_message(line: &str) -> bool {
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

/// Describes a stack trace.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let tally = Tally::of(text);
    let style = if text.contains("Traceback (most recent call last)") || text.contains("File \"") {
        Style::InnermostLast
    } else {
        Style::InnermostFirst
    };
    let mut failures: Vec<Failure> = Vec::new();
    let mut frames: Vec<&str> = Vec::new();
    let mut frame_count = 0;
    // The frames since the last message, and the innermost of them.
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
            if style == Style::InnermostFirst
                && let Some(failure) = failures.last_mut()
            {
                failure.innermost = failure.innermost.or(Some(line.trim()));
                failure.frames += 1;
            }
        } else if is_message(line) && !(style == Style::InnermostLast && line.starts_with(' ')) {
            let mut message = line.trim().to_owned();
            // The message of a Rust panic is on the next line.
            if message.ends_with(':')
                && message.contains("panicked at")
                && let Some((_, next)) = lines.peek()
            {
                message = format!("{message} {}", next.trim());
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

/// The error reported at the end, and its causes.
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

#[cfg(test)]
mod tests {
    use super::super::told;

    #[test]
    fn a_python_traceback() {
        let text = "Traceback (most recent call last):\n  File \"/app/a.py\", line 3, in outer\n    inner()\n  File \"/app/b.py\", line 9, in inner\n    int(x)\nValueError: invalid literal\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"/app/main.py\", line 1, in main\n    run()\napp.errors.JobError: job 9 failed\n";
        insta::assert_snapshot!(told(text, 300), @r#"
        [StackTrace]
        stack trace: 13 lines, 2 errors, 3 frames
        first line: Traceback (most recent call last):
        error: app.errors.JobError: job 9 failed
        innermost frame of 1: File "/app/main.py", line 1, in main
        earlier errors:
        line 6: ValueError: invalid literal (File "/app/b.py", line 9, in inner)
        frames, innermost first:
        File "/app/main.py", line 1, in main
        File "/app/b.py", line 9, in inner
        File "/app/a.py", line 3, in outer
        some lines:
        1: Traceback (most recent call last):
        2: File "/app/a.py", line 3, in outer
        3: inner()
        4: File "/app/b.py", line 9, in inner
        5: int(x)
        6: ValueError: invalid literal
        8: The above exception was the direct cause of the following exception:
        10: Traceback (most recent call last):
        11: File "/app/main.py", line 1, in main
        12: run()
        13: app.errors.JobError: job 9 failed
        last line: app.errors.JobError: job 9 failed
        "#);
    }

    #[test]
    fn a_java_trace_with_its_cause() {
        let text = "Exception in thread \"main\" java.lang.IllegalStateException: Could not start\n\tat app.Service.run(Service.java:10)\n\tat app.Main.main(Main.java:3)\nCaused by: java.sql.SQLException: refused\n\tat db.Driver.connect(Driver.java:5)\n\t... 17 more\n";
        insta::assert_snapshot!(told(text, 300), @r#"
        [StackTrace]
        stack trace: 6 lines, 2 errors, 4 frames
        first line: Exception in thread "main" java.lang.IllegalStateException: Could not start
        error: Exception in thread "main" java.lang.IllegalStateException: Could not start
        innermost frame of 2: at app.Service.run(Service.java:10)
        causes and further errors:
        line 4: Caused by: java.sql.SQLException: refused (at db.Driver.connect(Driver.java:5))
        frames, innermost first:
        at app.Service.run(Service.java:10)
        at app.Main.main(Main.java:3)
        at db.Driver.connect(Driver.java:5)
        ... 17 more
        some lines:
        1: Exception in thread "main" java.lang.IllegalStateException: Could not start
        2: at app.Service.run(Service.java:10)
        3: at app.Main.main(Main.java:3)
        4: Caused by: java.sql.SQLException: refused
        5: at db.Driver.connect(Driver.java:5)
        6: ... 17 more
        last line: 	... 17 more
        "#);
    }

    #[test]
    fn a_panic_and_a_type_error() {
        let text = "thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds\nstack backtrace:\n   0: std::panicking::begin_panic\n   1: app::main\n             at ./src/main.rs:4:5\n";
        insta::assert_snapshot!(told(text, 120), @r"
        [StackTrace]
        stack trace: 6 lines, 1 error, 3 frames
        first line: thread 'main' panicked at src/main.rs:4:5:
        error: thread 'main' panicked at src/main.rs:4:5: index out of bounds
        innermost frame of 3: 0: std::panicking::begin_panic
        frames, innermost first:
        0: std::panicking::begin_panic
        1: app::main
        at ./src/main.rs:4:5
        last line:              at ./src/main.rs:4:5
        ");
        let text = "TypeError: x is not a function\n    at load (/app/a.js:3:9)\n    at main (/app/b.js:1:1)\n";
        insta::assert_snapshot!(told(text, 120), @r"
        [StackTrace]
        stack trace: 3 lines, 1 error, 2 frames
        first line: TypeError: x is not a function
        error: TypeError: x is not a function
        innermost frame of 2: at load (/app/a.js:3:9)
        frames, innermost first:
        at load (/app/a.js:3:9)
        at main (/app/b.js:1:1)
        some lines:
        2: at load (/app/a.js:3:9)
        … +2
        last line:     at main (/app/b.js:1:1)
        ");
    }
}
