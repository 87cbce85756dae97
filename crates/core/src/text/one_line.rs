//! Text from outside on a line of ours.

/// The text on one line, with spaces for control characters: its first `most` characters, and an ellipsis where there are more.
#[must_use]
pub fn on_one_line(text: &str, most: usize) -> String {
    let mut characters = text.chars();
    let mut line: String = characters.by_ref().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if characters.next().is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_of_bounded_length() {
        let cases = [
            ("plain é 日本", 10, "plain é 日本"),
            ("plain é 日本", 9, "plain é 日…"),
            ("a\r\nb\tc\u{1b}[2J\u{9b}", 20, "a  b c [2J "),
            ("ab\n", 2, "ab…"),
            ("ab", 0, "…"),
            ("", 0, ""),
            ("ab", usize::MAX, "ab"),
        ];
        for (text, most, expected) in cases {
            assert_eq!(on_one_line(text, most), expected, "{text:?} to {most}");
        }
    }
}
