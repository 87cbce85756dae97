//! The first sentence of a description, which says what a tool is for; limits and advice follow.
//!
//! What is read here need not be well cut: a sentence that ends early loses some words, and a long one may end inside a word. Cards,
//! which people see, find the ends of sentences more carefully ([`super::card`]).

/// The longest first sentence that is read, in bytes: the rest of a longer one says no more about the subject.
const SENTENCE_BYTES: usize = 240;

/// The first sentence of a description, at most its first 240 bytes.
pub(super) fn first_sentence(description: &str) -> &str {
    let start = cut(description.trim_start(), SENTENCE_BYTES);
    let ends = [start.find(". "), start.find('\n')].into_iter().flatten();
    cut(start, ends.min().unwrap_or(start.len()))
}

/// The first sentence without a word that its end cuts.
pub(super) fn whole_words(description: &str) -> &str {
    let sentence = first_sentence(description);
    let is_of_word = |c: char| c.is_alphanumeric() || c == '\'' || c == '’';
    if description.trim_start()[sentence.len()..].starts_with(is_of_word) {
        sentence.trim_end_matches(is_of_word)
    } else {
        sentence
    }
}

/// The longest beginning of `text` of at most `bytes` bytes.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_ends_at_a_full_stop_or_a_line() {
        let long = "word ".repeat(60);
        let table = [
            ("", ""),
            ("  Create an issue. Needs a token.", "Create an issue"),
            ("List pull requests\n\nDrafts too.", "List pull requests"),
            ("Reads v1.2 of it", "Reads v1.2 of it"),
            (&long, &long[..240]),
        ];
        for (description, expected) in table {
            assert_eq!(first_sentence(description), expected, "{description}");
        }
        assert_eq!(first_sentence(&"é".repeat(200)).len(), 240);
    }
}
