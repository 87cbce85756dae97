//! Text from outside on a terminal.
//!
//! Names and messages of servers, clients' files and recordings are printed for people who decide by what they read:
//! an escape sequence could rewrite the screen, and a line end could begin a line that says what the program did not.
//! Every line that may hold such text goes through here and stays one line. Contents that were asked for, such as a prompt,
//! are printed byte for byte.

use std::fmt::Display;
use std::io::{self, Write};

use contextweaver_gateway::sanitize::is_unseen;

/// The text with control characters, direction marks and all else that is not seen escaped as in a Rust literal.
pub(super) fn shown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_unseen(c) {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Writes one line, whatever stands in it.
pub(super) fn line(out: &mut dyn Write, text: impl Display) -> io::Result<()> {
    writeln!(out, "{}", shown(&text.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_steer_a_terminal_or_begin_a_line_is_escaped() {
        let cases = [
            ("plain é 日本 👩\u{200d}💻", "plain é 日本 👩\u{200d}💻"),
            ("\u{1b}[31mred\u{1b}]0;title\u{7}", r"\u{1b}[31mred\u{1b}]0;title\u{7}"),
            ("a\r\nerror: forged\tline", r"a\r\nerror: forged\tline"),
            ("\u{9b}2J\u{7f}", r"\u{9b}2J\u{7f}"),
            ("\u{202e}cba\u{2066}\u{2028}", r"\u{202e}cba\u{2066}\u{2028}"),
            ("\u{e0041}\u{200b}", r"\u{e0041}\u{200b}"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text:?}");
        }
        let mut out = Vec::new();
        line(&mut out, format_args!("{}: {}", "git", "x\nforged: pinned")).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "git: x\\nforged: pinned\n");
    }
}
