//! Text of no other kind: prose, settings, and the output of commands.
//!
//! No statement about these is shown to be worth more than their own beginning and end, so that little is said.

use crate::brief::Piece;
use crate::split::lines;

use super::excerpt::{Tally, cut, samples};
use super::log::{Errors, may_tell_of_error, reports_error, tells_of_error};
use super::rank;
use super::template::Templates;
use contextweaver_core::text::counted;

/// The number of words of a line, on average, from which a text is prose.
const PROSE: usize = 8;
/// The number of different errors of which the lines around them are shown.
const ERRORS: usize = 3;
/// The number of lines before and after each of them.
const BEFORE: usize = 2;
const AFTER: usize = 10;
/// How often lines like one of these occur at most.
const RARE: usize = 3;
/// The number of characters of such a line.
const LENGTH: usize = 160;

/// Describes a plain text: its size, its ends, and what went wrong.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let tally = Tally::of(text);
    // The same text has the same size whatever ends its lines.
    let characters = text.chars().count() - memchr::memchr_iter(b'\r', text.as_bytes()).count();
    let size = format!("{}, {}", counted(tally.lines, "line"), counted(characters, "character"));
    let mut pieces = vec![Piece::line(rank::SHAPE_PLACE, rank::SHAPE, size)];
    pieces.extend(tally.ends());
    if may_tell_of_error(text) {
        let words = text.split_ascii_whitespace().filter(|word| !word.contains('=')).count();
        // Prose that has the word error in it is not a report of one.
        let is_error: fn(&str) -> bool = if words < tally.filled * PROSE { tells_of_error } else { reports_error };
        let mut errors = Errors::default();
        for (number, line) in (0..).zip(lines(text)).filter(|(_, line)| is_error(line)) {
            errors.add(number, line);
        }
        pieces.extend(told(&errors, &tally));
        pieces.extend(excerpt(text, &errors, tally.last));
    }
    pieces.extend(samples(text, &tally));
    pieces
}

/// How many lines tell of an error, and the first of them unless the text begins with it.
fn told(errors: &Errors, tally: &Tally) -> Option<Piece> {
    if errors.count > 1 && errors.first.is_some_and(|(_, first)| first == tally.first) {
        let count = counted(errors.count, "error line");
        return Some(Piece::line(rank::ERROR_PLACE, rank::ERROR, format!("{count}, among them the first")));
    }
    errors.pieces("error line", tally.last).into_iter().next()
}

/// The lines around the first errors, without those that are like many others and without `shown`, which is said anyway.
fn excerpt(text: &str, errors: &Errors, shown: &str) -> Option<Piece> {
    let starts: Vec<usize> = errors.different().take(ERRORS).map(|(number, _)| number).collect();
    let mut templates = Templates::default();
    for (number, line) in (0..).zip(lines(text)) {
        templates.add(line, number);
    }
    let first = starts.first().copied()?;
    let is_near =
        |number: usize| starts.iter().any(|&start| (start.saturating_sub(BEFORE)..=start + AFTER).contains(&number));
    let end = starts.last().map_or(0, |last| last + AFTER + 1);
    let entries: Vec<String> = (0..end)
        .zip(lines(text))
        .filter(|(number, line)| *number != first && is_near(*number) && !line.trim().is_empty() && *line != shown)
        .filter(|(_, line)| (1..=RARE).contains(&templates.count_of(line)))
        .map(|(number, line)| format!("{number}: {}", cut(line.trim(), LENGTH)))
        .collect();
    (!entries.is_empty())
        .then(|| Piece::list(rank::EXCERPT_PLACE, "", entries, "\n", (rank::STAT + 1, 1), rank::STAT + 1))
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
    fn long_lines_that_report_an_error_are_counted() {
        let word = |n: usize| ["alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple"][n % 8];
        let line = |n: usize| (1..=9).map(|at| word(n / at + at)).collect::<Vec<_>>().join(" ");
        let text: String = (0..180)
            .map(|n| match n {
                90 => "ERROR: deployment of service payments failed, image pay:1.4 was not found\n".to_owned(),
                120 => "It is no error if this one has failed before, as everybody knows by now.\n".to_owned(),
                _ => line(n) + "\n",
            })
            .collect();
        insta::assert_snapshot!(told(&text, 80), @r"
        [Plain]
        180 lines, 8949 characters
        first line: birch cedar elm fir hazel larch maple alder birch
        1 error line, first (line 90): ERROR: deployment of service payments failed, image pay:1.4 was not found
        last line: fir elm larch alder alder elm alder larch fir
        ");
        let compiler: String = (0..60)
            .map(|n| format!("src/c{n}.tsx({n},7): error TS2322: Type 'string' is not assignable to type 'number'.\n"))
            .collect();
        insta::assert_snapshot!(told(&compiler, 80), @r"
        [Plain]
        60 lines, 4960 characters
        first line: src/c0.tsx(0,7): error TS2322: Type 'string' is not assignable to type 'number'.
        60 error lines, among them the first
        last line: src/c59.tsx(59,7): error TS2322: Type 'string' is not assignable to type 'number'.
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
        2 error lines, first (line 33): tests/m0.py::case_33 FAILED
        some lines:
        20: tests/m2.py::case_20 PASSED
        … +40
        last line: = 1 failed, 39 passed in 3.21s =
        ");
    }

    #[test]
    fn what_stands_around_an_error_is_shown() {
        let word = |n: usize| ["alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple"][n % 8];
        let line = |n: usize| format!("{} {} {}\n", word(n), word(n / 8), word(n / 64));
        let text: String = (0..300)
            .map(|n| match n {
                150 => "step deploy failed\n  quota exceeded in eu-west\n\n  ask for twelve more cores\n".to_owned(),
                _ => line(n),
            })
            .collect();
        insta::assert_snapshot!(told(&text, 90), @r"
        [Plain]
        303 lines, 4932 characters
        first line: alder alder alder
        1 error line, first (line 150): step deploy failed
        148: fir cedar cedar
        149: hazel cedar cedar
        151: quota exceeded in eu-west
        153: ask for twelve more cores
        154: maple cedar cedar
        155: alder elm cedar
        … +5
        last line: elm hazel fir
        ");
    }

    #[test]
    fn settings_are_plain() {
        insta::assert_snapshot!(told("[server]\nport = 80\nhost = \"a\"\n\n[client]\ntimeout = 3\n", 40), @r#"
        [Plain]
        6 lines, 52 characters
        first line: [server]
        some lines:
        2: host = "a"
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
