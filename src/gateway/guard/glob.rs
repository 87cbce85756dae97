//! Patterns over names: `*` for any characters, `?` for one.
//!
//! Matching takes at most the product of both lengths, whatever the pattern.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::catalog::SelectableItem;

/// A pattern over ids and names; case counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Glob(String);

impl Glob {
    /// The pattern that this text is.
    #[must_use]
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Whether the whole of `text` fits.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let (pattern, text): (Vec<char>, Vec<char>) = (self.0.chars().collect(), text.chars().collect());
        let (mut at, mut from) = (0, 0);
        // Where to go on when what follows the last star does not fit: after it, one character further.
        let mut retry = None;
        while let Some(found) = text.get(at) {
            match pattern.get(from) {
                Some('*') => {
                    retry = Some((from + 1, at));
                    from += 1;
                }
                Some(wanted) if *wanted == '?' || wanted == found => (at, from) = (at + 1, from + 1),
                _ => match &mut retry {
                    Some((after, start)) => {
                        *start += 1;
                        (from, at) = (*after, *start);
                    }
                    None => return false,
                },
            }
        }
        pattern.get(from..).is_some_and(|rest| rest.iter().all(|c| *c == '*'))
    }

    /// Whether the item's id, its id without version and hash, or its name at the upstream fits.
    #[must_use]
    pub fn names(&self, item: &SelectableItem) -> bool {
        let short = item.id.split(['@', '#']).next().unwrap_or(&item.id);
        [item.id.as_str(), short, item.name.as_str()].into_iter().any(|name| self.matches(name))
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_fit_whole_names() {
        let cases = [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("?", "ä", true),
            ("fs:*", "fs:read#00000000", true),
            ("read", "read_file", false),
            ("a**b", "ab", true),
            ("*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(Glob::new(pattern).matches(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn an_item_is_named_by_id_short_id_or_name() {
        let item = SelectableItem::tool("fs:read@1#0123abcd", "fs", "read", "");
        for pattern in ["fs:read@1#0123abcd", "fs:read", "read", "fs:*"] {
            assert!(Glob::new(pattern).names(&item), "{pattern}");
        }
        assert!(!Glob::new("fs").names(&item));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_regular_expression(pattern in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            let source = format!("^{}$", pattern.replace('*', ".*").replace('?', "."));
            let expected = regex::Regex::new(&source).unwrap().is_match(&text);
            prop_assert_eq!(Glob::new(pattern).matches(&text), expected);
        }
    }
}
