//! Questions that a person wrote about one result, each with the words of the result that answer it: a second set beside
//! the probes, which a program derives.
//!
//! Nothing is shared with the probes but the results: other hands, other kinds, another rule. An answer survives in a text
//! where it stands exactly as in the result, but for case and the width of white space, and no letter or digit continues
//! it. It stands once in the whole result, so a text that has it has it from there; what names it need not be beside it.

use contextweaver_core::names::named;
use serde::{Deserialize, Serialize};

named! {
    /// What a question asks for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum Asks {
        /// Who or what something is called.
        Name = "name",
        /// How much or how many.
        Amount = "amount",
        /// When something was or is to be.
        Time = "time",
        /// Where something is.
        Place = "place",
        /// Why something is so, or what went wrong.
        Cause = "cause",
        /// In which state something is, or what was decided.
        State = "state",
    }
}

/// A question about a result, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The event that is the result.
    pub item: String,
    /// What is asked for.
    pub asks: Asks,
    /// The question, for readers: no rule looks at it.
    pub question: String,
    /// The words of the result that answer it.
    pub answer: String,
}

impl Question {
    /// Whether the answer stands in `text`.
    #[must_use]
    pub fn survives(&self, text: &Plain) -> bool {
        text.count(&self.answer) > 0
    }

    /// Whether the answer stands in the result exactly once, so that it can be taken for nothing else.
    #[must_use]
    pub fn is_unambiguous(&self, result: &Plain) -> bool {
        result.count(&self.answer) == 1
    }
}

/// A text in lower case with single blanks between words.
#[derive(Debug)]
pub struct Plain(String);

impl Plain {
    /// The text, ready for searching.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" "))
    }

    /// How often `words` stand in it, with neither letter nor digit beside them.
    fn count(&self, words: &str) -> usize {
        let Self(words) = Self::new(words);
        let in_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let apart = |&(start, found): &(usize, &str)| {
            let before = self.0.get(..start).and_then(|text| text.chars().next_back());
            let after = self.0.get(start + found.len()..).and_then(|text| text.chars().next());
            !(in_word(before) && in_word(found.chars().next()) || in_word(after) && in_word(found.chars().next_back()))
        };
        if words.is_empty() { 0 } else { self.0.match_indices(words.as_str()).filter(apart).count() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_stands_as_it_is_between_words() {
        for (text, answer, count) in [
            ("Total: 1,204 EUR", "1,204", 1),
            ("Total: 1,204 EUR", "204", 1),
            ("Total: 11204 EUR", "1204", 0),
            ("the  Pump\n failed", "pump FAILED", 1),
            ("pumps failed", "pump", 0),
            ("a b a", "a", 2),
            ("größer", "größe", 0),
            ("\"id\": \"x-9\"", "x-9", 1),
            ("anything", " ", 0),
        ] {
            assert_eq!(Plain::new(text).count(answer), count, "{text} / {answer}");
        }
    }
}
