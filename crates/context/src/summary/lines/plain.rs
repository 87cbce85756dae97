//! Text of no other kind: prose, settings, and the output of commands.
//!
//! No statement about these is shown to be worth more than their own beginning and end, so that little is said.

use crate::brief::Piece;
use crate::split::lines;

use super::excerpt::{Tally, samples};
use super::log::{Errors, may_tell_of_error, tells_of_error};
use super::rank;
use contextweaver_core::text::counted;

/// The number of words of a line, on average, from which a text is prose.
const PROSE: usize = 8;

/// Describes a plain text: its size, its ends, and what went wrong.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let tally = Tally::of(text);
    // The same text has the same size whatever ends its lines.
    let characters = text.chars().count() - memchr::memchr_iter(b'\r', text.as_bytes()).count();
    let size = format!("{}, {}", counted(tally.lines, "line"), counted(characters, "character"));
    let mut pieces = vec![Piece::line(rank::SHAPE_PLACE, rank::SHAPE, size)];
    pieces.extend(tally.ends());
    // Prose that has the word error in it is not a report of one.
    if may_tell_of_error(text) && text.split_ascii_whitespace().count() < tally.filled * PROSE {
        let mut errors = Errors::default();
        for (number, line) in (1..).zip(lines(text)).filter(|(_, line)| tells_of_error(line)) {
            errors.add(number, line);
        }
        pieces.extend(errors.pieces("error line").into_iter().next());
    }
    pieces.extend(samples(text, &tally));
    pieces
}

#[cfg(test)]
mod tests {
    use super::super::told;

    #[test]
    fn prose_tells_its_size_and_no_errors() {
        let text =
            "Paragraph that says that the clocks were striking thirteen. The heating has failed again.\n\n".repeat(12);
        insta::assert_snapshot!(told(&text, 60), @r"
        [Plain]
        24 lines, 1092 characters
        first line: Paragraph that says that the clocks were striking thirteen. The heating has failed again.
        last line: Paragraph that says that the clocks were striking thirteen. The heating has failed again.
        ");
    }

    #[test]
    fn the_output_of_a_command_tells_what_went_wrong() {
        let text: String = (0..40)
            .map(|n| format!("tests/m{}.py::case_{n} {}\n", n % 3, if n == 33 { "FAILED" } else { "PASSED" }))
            .chain(["= 1 failed, 39 passed in 3.21s =\n".to_owned()])
            .collect();
        insta::assert_snapshot!(told(&text, 80), @r"
        [Plain]
        41 lines, 1143 characters
        first line: tests/m0.py::case_0 PASSED
        2 error lines, first (line 34): tests/m0.py::case_33 FAILED
        some lines:
        21: tests/m2.py::case_20 PASSED
        … +40
        last line: = 1 failed, 39 passed in 3.21s =
        ");
    }

    #[test]
    fn settings_are_plain() {
        insta::assert_snapshot!(told("[server]\nport = 80\nhost = \"a\"\n\n[client]\ntimeout = 3\n", 40), @r#"
        [Plain]
        6 lines, 52 characters
        first line: [server]
        some lines:
        3: host = "a"
        … +4
        last line: timeout = 3
        "#);
    }

    #[test]
    fn one_long_line() {
        insta::assert_snapshot!(told(&"lorem ipsum dolor ".repeat(9000), 60), @r"
        [Plain]
        1 line, 162000 characters
        first line: lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum…
        the line ends: …lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor
        ");
        insta::assert_snapshot!(told(&"QUJD".repeat(5000), 120), @r"
        [Plain]
        1 line, 20000 characters
        first line: … (20000 characters without a break)
        ");
    }
}
