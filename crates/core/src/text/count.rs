//! What a text costs in model tokens.
//!
//! Counts are exact for the two OpenAI vocabularies, which are part of the binary, so a machine without a network
//! counts the same. There is no silent fallback: the character estimate exists only under its own name, for comparison
//! with tools that use it.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::counter::{self, Vocabulary};
use crate::names::named;

named! {
    /// A way of counting tokens. Every reported count names its estimator.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    pub enum Estimator {
        /// Exact, vocabulary `cl100k_base` (GPT-4, GPT-3.5).
        #[default]
        Cl100kBase = "cl100k_base",
        /// Exact, vocabulary `o200k_base` (GPT-4o and later).
        O200kBase = "o200k_base",
        /// Number of Unicode characters divided by four, rounded down: an estimate, never substituted for a count.
        CharsDiv4 = "chars/4",
    }
}

impl Estimator {
    /// The number of tokens of `text`. The costs of words and other pieces are remembered per thread, so texts that
    /// resemble earlier ones are counted faster.
    #[must_use]
    pub fn count(self, text: &str) -> usize {
        match self {
            Self::Cl100kBase => counter::count(text, Vocabulary::Cl100k),
            Self::O200kBase => counter::count(text, Vocabulary::O200k),
            Self::CharsDiv4 => text.chars().count() / 4,
        }
    }
}

/// The text named no known estimator.
#[derive(Debug, thiserror::Error)]
#[error("unknown token estimator `{0}`; use cl100k_base, o200k_base or chars/4")]
pub struct ParseEstimatorError(String);

impl FromStr for Estimator {
    type Err = ParseEstimatorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|one| one.name() == text).ok_or_else(|| ParseEstimatorError(text.to_owned()))
    }
}

/// The exact `cl100k_base` count of `text` if it is over `limit`, else `None`.
///
/// A token is at least one byte, so a text of at most `limit` bytes is answered without the vocabulary.
#[must_use]
pub fn cl100k_if_over(text: &str, limit: usize) -> Option<usize> {
    if text.len() <= limit {
        return None;
    }
    let count = Estimator::Cl100kBase.count(text);
    (count > limit).then_some(count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_are_those_of_the_named_estimator() {
        let text = "[1/1] github:create_issue#1a2b3c4d (tool) — Opens an issue";
        let counts = Estimator::ALL.map(|estimator| format!("{estimator} {}", estimator.count(text)));
        assert_eq!(counts, ["cl100k_base 24", "o200k_base 24", "chars/4 14"]);
        assert_eq!("o200k_base".parse::<Estimator>().unwrap(), Estimator::O200kBase);
        assert!("gpt-4".parse::<Estimator>().is_err());
    }

    fn assert_equal_to_tiktoken(text: &str) {
        let exact = tiktoken_rs::cl100k_base_singleton().encode_ordinary(text).len();
        assert_eq!(Estimator::Cl100kBase.count(text), exact, "cl100k_base: {text:?}");
        let exact = tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len();
        assert_eq!(Estimator::O200kBase.count(text), exact, "o200k_base: {text:?}");
    }

    #[test]
    fn counts_equal_tiktoken_on_awkward_text() {
        for text in [
            "",
            " ",
            "\n\n\n",
            "  \n  x",
            "don't DON'T we'Ll",
            "123456789 1,234.5",
            "a  b   c\t\td",
            "日本語のテキスト",
            "👩‍👩‍👧‍👦 family",
            "<|endoftext|>",
            "{\"a\":[1,2,{\"b\":null}]}\n",
            "naïve café ﬁle",
            "x\r\n\r\ny ",
            "ⅷ ½ ٣",
            "https://example.org/a?b=c&d=%20#frag",
            "snake_case_name camelCaseName",
        ] {
            assert_equal_to_tiktoken(text);
        }
    }

    proptest! {
        #[test]
        fn counts_equal_tiktoken(text in "(\\PC|[ \\n\\t\\r]|[a-z]{1,8} ){0,60}") {
            assert_equal_to_tiktoken(&text);
        }

        #[test]
        fn the_bound_agrees_with_the_count(text in "\\PC{0,120}", limit in 0usize..80) {
            let count = Estimator::Cl100kBase.count(&text);
            prop_assert_eq!(cl100k_if_over(&text, limit), (count > limit).then_some(count));
        }
    }
}
