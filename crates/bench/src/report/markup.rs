//! Foreign text in HTML, in pictures and in files of XML: one way to escape it.

use std::fmt::Write as _;

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
