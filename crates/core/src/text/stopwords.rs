//! The English function words that carry no information about which tool is meant.
//!
//! The list holds words by their grammar only (articles, pronouns, prepositions, auxiliaries, politeness);
//! verbs and nouns that could name an action stay searchable, however common they are.

/// Sorted, lower case, so that the words of a letter are neighbours.
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "after",
    "all",
    "also",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "both",
    "but",
    "by",
    "can",
    "could",
    "did",
    "do",
    "does",
    "doing",
    "don",
    "each",
    "either",
    "else",
    "etc",
    "every",
    "few",
    "for",
    "from",
    "further",
    "had",
    "has",
    "have",
    "having",
    "he",
    "her",
    "here",
    "hers",
    "herself",
    "hey",
    "hi",
    "him",
    "himself",
    "his",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "itself",
    "just",
    "kindly",
    "let",
    "may",
    "me",
    "might",
    "mine",
    "more",
    "most",
    "must",
    "my",
    "myself",
    "no",
    "nor",
    "not",
    "of",
    "off",
    "on",
    "once",
    "only",
    "or",
    "other",
    "our",
    "ours",
    "ourselves",
    "out",
    "over",
    "own",
    "please",
    "same",
    "shall",
    "she",
    "should",
    "since",
    "so",
    "some",
    "such",
    "than",
    "thanks",
    "that",
    "the",
    "their",
    "theirs",
    "them",
    "themselves",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "through",
    "to",
    "too",
    "under",
    "until",
    "up",
    "upon",
    "us",
    "very",
    "via",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "whether",
    "which",
    "while",
    "who",
    "whom",
    "whose",
    "why",
    "will",
    "with",
    "within",
    "without",
    "would",
    "you",
    "your",
    "yours",
    "yourself",
    "yourselves",
];

/// Whether `word` (already normalised to lower case) is an English function word.
#[must_use]
pub fn is_stop_word(word: &str) -> bool {
    let letter = word.bytes().next().and_then(|first| first.checked_sub(b'a'));
    let ends = letter.and_then(|letter| STARTS.get(usize::from(letter)..)?.first_chunk());
    ends.and_then(|&[start, end]| STOP_WORDS.get(start..end)).is_some_and(|words| words.contains(&word))
}

/// Where the words of each letter begin, and the end of the last.
static STARTS: [usize; 27] = {
    let mut starts = [0; 27];
    let mut letter = 0;
    while letter < 27 {
        let mut at = 0;
        while at < STOP_WORDS.len() && (STOP_WORDS[at].as_bytes()[0] - b'a') < letter as u8 {
            at += 1;
        }
        starts[letter] = at;
        letter += 1;
    }
    starts
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_so_that_every_word_is_found() {
        assert!(STOP_WORDS.is_sorted());
        assert!(STOP_WORDS.iter().all(|word| is_stop_word(word)));
        assert!(["", "a1", "alls", "z", "zzz", "{", "Über", "A"].iter().all(|word| !is_stop_word(word)));
    }
}
