//! Splits text into word pieces and numbers them: the tokenizer of uncased BERT.
//!
//! Control characters are dropped, accents removed and letters lowered; the text is split at white space and around
//! punctuation and ideographs, and each word into the longest pieces that the vocabulary has (Devlin et al., "BERT",
//! 2019, and the `BertTokenizer` published with it). Marks of the model inside a text, such as `[SEP]`, are plain text
//! here.

use std::sync::LazyLock;

use regex::Regex;
use rustc_hash::FxHashMap;
use unicode_normalization::UnicodeNormalization;

use super::ModelError;

/// Longer words count as unknown, in characters.
const LONGEST_WORD: usize = 100;

const INSIDE: &str = "##";

/// White space that is kept although it is a control character, then everything that is dropped.
static DROPPED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[[\p{C}\x{FFFD}]--[\t\n\r]]").ok());
static MARK: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\p{Mn}").ok());

/// A word: one punctuation character or ideograph, or everything up to the next one. BERT counts every ASCII character
/// that is neither letter nor digit as punctuation.
static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let alone = [
        r"\p{P}$+<=>^`|~",
        r"\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}\x{F900}-\x{FAFF}\x{20000}-\x{2A6DF}",
        r"\x{2A700}-\x{2CEAF}\x{2F800}-\x{2FA1F}",
    ];
    let alone = alone.concat();
    Regex::new(&format!(r"[{alone}]|[^\s{alone}]+")).ok()
});

/// The pieces of a model's vocabulary, by text.
#[derive(Debug)]
pub(super) struct WordPieces {
    starts: FxHashMap<Box<str>, u32>,
    insides: FxHashMap<Box<str>, u32>,
    /// `[CLS]`, before the first piece of a text.
    first: u32,
    /// `[SEP]`, after the last piece.
    last: u32,
    /// `[UNK]`, in place of an unknown word.
    unknown: u32,
    /// `[unused0]`, before the pieces of a query: an entry of the vocabulary that the published model never used.
    query: u32,
}

impl WordPieces {
    /// Parses a vocabulary: one piece a line, numbered from 0, with `##` before pieces inside a word.
    ///
    /// # Errors
    /// [`ModelError`] when it lacks one of the marks `[CLS]`, `[SEP]`, `[UNK]` and `[unused0]`.
    pub(super) fn parse(vocabulary: &str) -> Result<Self, ModelError> {
        let (mut starts, mut insides) = (FxHashMap::default(), FxHashMap::default());
        for (line, number) in vocabulary.lines().zip(0..) {
            match line.strip_prefix(INSIDE).filter(|piece| !piece.is_empty()) {
                Some(piece) => insides.insert(Box::from(piece), number),
                None => starts.insert(Box::from(line), number),
            };
        }
        let mark = |mark: &str| starts.get(mark).copied().ok_or(ModelError::Unusable("the vocabulary lacks a mark"));
        let (first, last, unknown, query) = (mark("[CLS]")?, mark("[SEP]")?, mark("[UNK]")?, mark("[unused0]")?);
        Ok(Self { starts, insides, first, last, unknown, query })
    }

    /// The number of pieces.
    pub(super) fn len(&self) -> usize {
        self.starts.len() + self.insides.len()
    }

    /// The pieces of the text of a tool between the two marks, cut at `most` pieces, the marks included.
    pub(super) fn encode_tool(&self, text: &str, most: usize) -> Vec<u32> {
        self.encode(vec![self.first], text, most)
    }

    /// The pieces of a query, as those of a tool, with the mark of a query behind the first mark.
    pub(super) fn encode_query(&self, text: &str, most: usize) -> Vec<u32> {
        self.encode(vec![self.first, self.query], text, most)
    }

    /// What `found` begins with, then the pieces of `text` and the last mark: `most` pieces at most.
    fn encode(&self, mut found: Vec<u32>, text: &str, most: usize) -> Vec<u32> {
        let (Some(dropped), Some(mark), Some(word)) = (&*DROPPED, &*MARK, &*WORD) else { return found };
        let text = dropped.replace_all(text, "");
        let text: String = if text.is_ascii() { text.into_owned() } else { text.nfd().collect() };
        let text = mark.replace_all(&text, "").to_lowercase();
        let most = most.saturating_sub(1);
        for word in word.find_iter(&text) {
            if found.len() >= most {
                break;
            }
            self.push_word(word.as_str(), &mut found);
        }
        found.truncate(most);
        found.push(self.last);
        found
    }

    fn push_word(&self, word: &str, found: &mut Vec<u32>) {
        let before = found.len();
        let mut rest = word;
        while !rest.is_empty() {
            let side = if rest.len() == word.len() { &self.starts } else { &self.insides };
            let ends = rest.char_indices().map(|(at, char)| at + char.len_utf8()).rev();
            let longest = ends.map(|end| rest.split_at(end)).find_map(|(piece, left)| Some((side.get(piece)?, left)));
            let known = longest.filter(|_| word.len() <= LONGEST_WORD || word.chars().count() <= LONGEST_WORD);
            let Some((piece, left)) = known else {
                found.truncate(before);
                found.push(self.unknown);
                return;
            };
            found.push(*piece);
            rest = left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOCABULARY: &str =
        "[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\nrun\n,\n_\n北\ncafe\n##s\na\n##a\n##\n[unused0]\n";

    #[test]
    fn texts_are_cut_as_the_model_was_trained() {
        let pieces = WordPieces::parse(VOCABULARY).unwrap();
        let long = "a".repeat(LONGEST_WORD + 1);
        let table: [(&str, &[u32]); 13] = [
            ("", &[]),
            ("unaffable", &[3, 4, 5]),
            ("UNAFFABLE  \t run", &[3, 4, 5, 6]),
            ("run,run_run", &[6, 7, 6, 8, 6]),
            ("Cafés", &[10, 11]),
            ("Cafe\u{301}", &[10]),
            ("ru\u{200b}n\u{0}", &[6]),
            ("run北run", &[6, 9, 6]),
            ("xun", &[0]),
            ("unx run", &[0, 6]),
            ("aaa", &[12, 13, 13]),
            (&long, &[0]),
            ("run\u{a0}run", &[6, 6]),
        ];
        for (text, expected) in table {
            assert_eq!(pieces.encode_tool(text, 512), [&[1], expected, &[2]].concat(), "{text}");
            assert_eq!(pieces.encode_query(text, 512), [&[1, 15], expected, &[2]].concat(), "{text}");
        }
        assert_eq!(pieces.encode_tool("run run run", 4), [1, 6, 6, 2]);
        assert_eq!(pieces.encode_tool("unaffable", 4), [1, 3, 4, 2]);
        assert_eq!(pieces.encode_query("unaffable", 5), [1, 15, 3, 4, 2]);
        // The text of a query is no mark of a query.
        assert_eq!(pieces.encode_query("[unused0]", 512)[..2], [1, 15]);
        assert!(!pieces.encode_tool("[unused0]", 512).contains(&15));
        assert_eq!(pieces.len(), 16);
    }

    #[test]
    fn a_vocabulary_without_its_marks_is_refused() {
        let marks = ["[CLS]", "[SEP]", "[UNK]", "[unused0]"];
        assert!(WordPieces::parse(&marks.join("\n")).is_ok());
        for missing in marks {
            assert!(WordPieces::parse(&marks.join("\n").replace(missing, "run")).is_err(), "{missing}");
        }
    }
}
