//! Stack traces of Python, Java and its relatives, JavaScript, Rust and Go: the errors with their causes, and the
//! frames from the innermost outwards.

use crate::brief::Piece;

use super::excerpt::{Tally, cut, samples};
use super::rank;
use contextweaver_core::text::counted;

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

impl Style {
    fn of(text: &str) -> Self {
        if text.contains("Traceback (most recent call last)") || text.contains("File \"") {
            Self::InnermostLast
        } else {
            Self::InnermostFirst
        }
    }
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

/// Whether a line says how many frames are those of the error before.
fn is_count(line: &str) -> bool {
    line.trim_start().starts_with("... ")
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
    const MARKS: [&str; 6] =
        ["Caused by: ", "Exception in thread", "panic: ", "Unhandled exception. ", "---> ", "[cause]: "];
    if MARKS.iter().any(|mark| line.starts_with(mark)) {
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

/// In the path or the name of a frame: it is of a library or of the runtime, not of the program that failed.
const LIBRARIES: [&str; 12] = [
    "site-packages/",
    "dist-packages/",
    "/lib/python",
    "/local/python",
    "<frozen ",
    "node_modules/",
    "node:",
    "(internal/",
    "(<anonymous>)",
    "/rustc/",
    "/registry/src/",
    "/go/pkg/mod/",
];
/// How the names of frames of libraries begin that say no path: of the platforms, and of what most programs on them use.
const LIBRARY_NAMES: [&str; 34] = [
    "java.",
    "javax.",
    "jakarta.",
    "jdk.",
    "sun.",
    "com.sun.",
    "java.base/",
    "java.desktop/",
    "kotlin.",
    "kotlinx.",
    "scala.",
    "clojure.",
    "groovy.",
    "org.springframework.",
    "org.apache.",
    "org.hibernate.",
    "org.eclipse.",
    "org.junit.",
    "org.postgresql.",
    "com.mysql.",
    "com.zaxxer.",
    "com.google.",
    "com.fasterxml.",
    "io.netty.",
    "reactor.",
    "System.",
    "Microsoft.",
    "Quartz.",
    "std::",
    "core::",
    "alloc::",
    "__rustc::",
    "tokio::",
    "runtime.",
];

/// Whether a frame is of a library or of the runtime.
fn is_library(frame: &str) -> bool {
    let name = frame.trim_start().trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ':' | ' '));
    let name = name.strip_prefix("at ").unwrap_or(name);
    let name = name.split_once(" - ").filter(|_| name.starts_with("0x")).map_or(name, |(_, name)| name);
    LIBRARIES.iter().any(|part| frame.contains(part)) || LIBRARY_NAMES.iter().any(|start| name.starts_with(start))
}

/// The line below a frame that shows where in the source it is: the source itself, marks under it, or its path.
fn belongs(frame: &str, line: &str) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_path = rust_frame(frame.trim_start()).is_some() && line.trim_start().starts_with("at ");
    is_path || (frame.trim_start().starts_with("File \"") && !is_frame(line) && indent(line) > indent(frame))
}

/// How much of the frames of the program itself is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frames {
    /// With their sources.
    Sources,
    /// Without.
    Places,
    /// Of each error the innermost only.
    Innermost,
}

/// The trace without marks under sources, without what was said once, and with the number of the frames of libraries in
/// their place; then also without the sources; then with one frame for each error. Of these the ones of at most `limit` bytes,
/// and the last.
pub(super) fn shorter(text: &str, limit: usize) -> Vec<String> {
    let form = |frames| Some(calls(text, frames)).filter(|form| form.len() <= limit || frames == Frames::Innermost);
    [Frames::Sources, Frames::Places, Frames::Innermost].into_iter().filter_map(form).collect()
}

/// A frame with what stands below it, and whether it is the first or the last of the text.
struct Frame<'a> {
    line: &'a str,
    below: Vec<&'a str>,
    is_end: bool,
}

/// The messages, and the frames that were not shown yet; those of libraries only where the program has none of its own, or
/// where the text begins or ends with them.
fn calls(text: &str, shown: Frames) -> String {
    let style = Style::of(text);
    let has_own = text.lines().any(|line| is_frame(line) && !is_library(line));
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let is_headed = |(at, line): (usize, &&str)| {
        let before = at.checked_sub(1).and_then(|at| lines.get(at)).copied().unwrap_or_default();
        is_frame(line) && !belongs(before, line)
    };
    let mut heads = lines.iter().enumerate().filter(|head| is_headed(*head)).map(|(at, _)| at);
    let ends = [heads.next(), heads.next_back()];
    let mut said = String::new();
    let mut seen = rustc_hash::FxHashSet::default();
    // The frames since the last message; none for one that is left out.
    let mut frames: Vec<Option<Frame<'_>>> = Vec::new();
    let mut rest = lines.iter().copied().enumerate().peekable();
    while let Some((at, line)) = rest.next() {
        if !is_frame(line) {
            write(&mut said, &mut frames, style, shown);
            said.extend([line, "\n"]);
            continue;
        }
        let mut below = Vec::new();
        while let Some((_, next)) = rest.next_if(|(_, next)| belongs(line, next)) {
            below.push(next);
        }
        // The path says it where there is one.
        let path = below.iter().find(|line| is_frame(line)).copied();
        let is_new = seen.insert((line, below.clone()));
        let is_end = ends.contains(&Some(at));
        let is_kept = is_end || (is_new && !(has_own && is_library(path.unwrap_or(line))));
        frames.push(is_kept.then_some(Frame { line, below, is_end }));
    }
    write(&mut said, &mut frames, style, shown);
    said
}

/// Writes the frames that are shown, and how many are left out.
fn write(said: &mut String, frames: &mut Vec<Option<Frame<'_>>>, style: Style, shown: Frames) {
    if shown == Frames::Innermost {
        let is_between = |frame: &Option<Frame<'_>>| frame.as_ref().is_some_and(|frame| !frame.is_end);
        let innermost = match style {
            Style::InnermostLast => frames.iter().rposition(is_between),
            Style::InnermostFirst => frames.iter().position(is_between),
        };
        for (at, frame) in frames.iter_mut().enumerate() {
            if Some(at) != innermost && is_between(frame) {
                *frame = None;
            }
        }
    }
    let is_mark = |line: &str| line.trim().bytes().all(|byte| matches!(byte, b'^' | b'~' | b' '));
    for part in frames.chunk_by(|one, next| one.is_none() && next.is_none()) {
        let Some(Some(Frame { line, below, .. })) = part.first() else {
            said.push_str(&format!("  … {}\n", counted(part.len(), "frame")));
            continue;
        };
        said.extend([*line, "\n"]);
        let wanted = |line: &&&str| is_frame(line) || (shown == Frames::Sources && !is_mark(line));
        below.iter().filter(wanted).for_each(|line| said.extend([*line, "\n"]));
    }
    frames.clear();
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
    let style = Style::of(text);
    let mut failures: Vec<Failure> = Vec::new();
    // Each with its path, where the line below says it.
    let mut frames: Vec<(&str, Option<&str>)> = Vec::new();
    let mut frame_count = 0;
    // The frames since the last message, and the innermost of them.
    let (mut since, mut last_frame) = (0, None);
    let mut lines = (0..).zip(text.lines()).peekable();
    let mut before = "";
    while let Some((number, line)) = lines.next() {
        let is_below = belongs(std::mem::replace(&mut before, line), line);
        if is_frame(line) && is_count(line) {
            continue;
        }
        if is_frame(line) && is_below {
            if frame_count == frames.len()
                && let Some((_, path)) = frames.last_mut()
            {
                *path = Some(line.trim());
            }
        } else if is_frame(line) {
            frame_count += 1;
            since += 1;
            last_frame = Some(line.trim());
            if frames.len() < KEPT {
                frames.push((line.trim(), None));
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
    if style == Style::InnermostLast {
        frames.reverse();
    }
    let shown = |(frame, path): &(&str, Option<&str>)| match path {
        Some(path) => format!("{} {}", cut(frame, 160), cut(path, 160)),
        None => cut(frame, 160),
    };
    let entries: Vec<String> = frames.iter().map(shown).collect();
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
    fn less_and_less_of_a_trace() {
        let text = "Traceback (most recent call last):\n  File \"/app/a.py\", line 3, in outer\n    inner()\n    ^^^^^^^\n  File \"/app/b.py\", line 9, in inner\n    get(x)\n  File \"/usr/lib/python3.11/json/decoder.py\", line 1, in get\n    raise\n  File \"/usr/lib/python3.11/json/decoder.py\", line 2, in get\n    raise\nValueError: invalid\n";
        let forms = super::shorter(text, 1_000);
        insta::assert_snapshot!(forms[0], @r#"
        Traceback (most recent call last):
          File "/app/a.py", line 3, in outer
            inner()
          File "/app/b.py", line 9, in inner
            get(x)
          … 1 frame
          File "/usr/lib/python3.11/json/decoder.py", line 2, in get
            raise
        ValueError: invalid
        "#);
        insta::assert_snapshot!(forms[2], @r#"
        Traceback (most recent call last):
          File "/app/a.py", line 3, in outer
          File "/app/b.py", line 9, in inner
          … 1 frame
          File "/usr/lib/python3.11/json/decoder.py", line 2, in get
        ValueError: invalid
        "#);
        let java = "x.Y: no\n\tat java.util.List.get(List.java:1)\n\tat own.A.f(A.java:2)\n\tat own.A.f(A.java:2)\n\tat own.Main.main(Main.java:3)\n";
        assert_eq!(
            super::shorter(java, 1_000)[1],
            "x.Y: no\n\tat java.util.List.get(List.java:1)\n\tat own.A.f(A.java:2)\n  … 1 frame\n\tat own.Main.main(Main.java:3)\n"
        );
        let library = "x.Y: no\n\tat java.util.List.get(List.java:1)\n\tat java.util.List.a(List.java:2)\n";
        assert_eq!(super::shorter(library, 1_000)[1], library, "a trace of a library alone is shown");
    }

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
        line 5: ValueError: invalid literal (File "/app/b.py", line 9, in inner)
        frames, innermost first:
        File "/app/main.py", line 1, in main
        File "/app/b.py", line 9, in inner
        File "/app/a.py", line 3, in outer
        some lines:
        0: Traceback (most recent call last):
        1: File "/app/a.py", line 3, in outer
        2: inner()
        3: File "/app/b.py", line 9, in inner
        4: int(x)
        5: ValueError: invalid literal
        7: The above exception was the direct cause of the following exception:
        9: Traceback (most recent call last):
        10: File "/app/main.py", line 1, in main
        11: run()
        12: app.errors.JobError: job 9 failed
        last line: app.errors.JobError: job 9 failed
        "#);
    }

    #[test]
    fn a_java_trace_with_its_cause() {
        let text = "Exception in thread \"main\" java.lang.IllegalStateException: Could not start\n\tat app.Service.run(Service.java:10)\n\tat app.Main.main(Main.java:3)\nCaused by: java.sql.SQLException: refused\n\tat db.Driver.connect(Driver.java:5)\n\t... 17 more\n";
        insta::assert_snapshot!(told(text, 300), @r#"
        [StackTrace]
        stack trace: 6 lines, 2 errors, 3 frames
        first line: Exception in thread "main" java.lang.IllegalStateException: Could not start
        error: Exception in thread "main" java.lang.IllegalStateException: Could not start
        innermost frame of 2: at app.Service.run(Service.java:10)
        causes and further errors:
        line 3: Caused by: java.sql.SQLException: refused (at db.Driver.connect(Driver.java:5))
        frames, innermost first:
        at app.Service.run(Service.java:10)
        at app.Main.main(Main.java:3)
        at db.Driver.connect(Driver.java:5)
        some lines:
        0: Exception in thread "main" java.lang.IllegalStateException: Could not start
        1: at app.Service.run(Service.java:10)
        2: at app.Main.main(Main.java:3)
        3: Caused by: java.sql.SQLException: refused
        4: at db.Driver.connect(Driver.java:5)
        5: ... 17 more
        last line: 	... 17 more
        "#);
    }

    #[test]
    fn a_panic_and_a_type_error() {
        let text = "thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds\nstack backtrace:\n   0: std::panicking::begin_panic\n   1: app::main\n             at ./src/main.rs:4:5\n";
        insta::assert_snapshot!(told(text, 120), @r"
        [StackTrace]
        stack trace: 6 lines, 1 error, 2 frames
        first line: thread 'main' panicked at src/main.rs:4:5:
        error: thread 'main' panicked at src/main.rs:4:5: index out of bounds
        innermost frame of 2: 0: std::panicking::begin_panic
        frames, innermost first:
        0: std::panicking::begin_panic
        1: app::main at ./src/main.rs:4:5
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
        1: at load (/app/a.js:3:9)
        … +2
        last line:     at main (/app/b.js:1:1)
        ");
    }
}
