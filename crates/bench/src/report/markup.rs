//! Foreign text in HTML, in pictures and in files of XML, and on lines of terminals and logs: one way for each.

use std::fmt::Write as _;

use contextweaver_gateway::sanitize::is_unseen;

/// `text` as HTML and XML show it, between tags or in quotes. Line feeds and tabs keep their meaning in an attribute too;
/// characters that neither can hold become replacement characters.
#[must_use]
pub fn escaped_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => {
                let _ = write!(out, "&#{};", u32::from(character));
            }
            other if other.is_control() || matches!(other, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

/// A text of others on a line of a terminal or of a CI log, whole: without control characters, line breaks and marks of
/// direction, and so that no runner takes it for one of its commands (`::error::` at the start of a line, `##[error]`
/// anywhere).
#[must_use]
pub fn visible(text: &str) -> String {
    let mut line: String = text.chars().map(|c| if c.is_control() || is_unseen(c) { ' ' } else { c }).collect();
    while line.contains("##") {
        line = line.replace("##", "# #");
    }
    if line.trim_start().starts_with("::") { format!("\\{}", line.trim_start()) } else { line }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_of_others_is_one_line_and_no_command() {
        let table = [
            ("pay a bill", "pay a bill"),
            ("a\n::error::x", "a ::error::x"),
            ("\n::warning::pwn \u{1b}[31m", "\\::warning::pwn  [31m"),
            ("::set-output name=x::y", "\\::set-output name=x::y"),
            ("##[error]x", "# #[error]x"),
            ("see ###vso[x]", "see # # #vso[x]"),
            ("a\u{2028}b\u{202e}c\r\u{85}", "a b c  "),
            ("std::fmt", "std::fmt"),
        ];
        for (text, expected) in table {
            assert_eq!(visible(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_markup(text in any::<String>()) {
            let escaped = escaped_xml(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
            let unknown = |c: char| c.is_control() || c == '\u{fffe}' || c == '\u{ffff}';
            prop_assert!(!escaped.contains(unknown));
            // Every ampersand begins one of the entities above.
            for rest in escaped.split('&').skip(1) {
                let known = ["amp;", "lt;", "gt;", "quot;", "#39;", "#9;", "#10;", "#13;"];
                prop_assert!(known.iter().any(|entity| rest.starts_with(entity)), "{escaped:?}");
            }
        }
    }
}
