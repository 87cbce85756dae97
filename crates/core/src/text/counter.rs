//! Exact counts of many texts that resemble each other, as the events of a conversation do.
//!
//! A vocabulary first splits a text into pieces (words, numbers, runs of punctuation) and then encodes each piece on
//! its own. Splitting by regular expression takes most of the time, so ASCII is split by hand here, and only other text
//! by regular expression. A piece that is a token is looked up in the vocabulary's table; the costs of other pieces are
//! remembered, up to some megabytes per thread. The counts are those of the reference implementation, which the tests
//! hold.

use std::cell::RefCell;
use std::sync::LazyLock;

use regex::Regex;
use rustc_hash::FxHashMap;

use super::merge::Merger;
use super::ranks::Ranks;

/// The number of pieces remembered at most, per thread.
const MAX_KNOWN_PIECES: usize = 1 << 16;

/// Longer pieces are not remembered.
const MAX_PIECE_BYTES: usize = 32;

/// A vocabulary with exact counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vocabulary {
    /// The vocabulary `cl100k_base`.
    Cl100k,
    /// The vocabulary `o200k_base`.
    O200k,
}

static CL100K_RANKS: Ranks = Ranks::new(include_bytes!(concat!(env!("OUT_DIR"), "/cl100k_base.ranks")));
static O200K_RANKS: Ranks = Ranks::new(include_bytes!(concat!(env!("OUT_DIR"), "/o200k_base.ranks")));

/// The patterns of the vocabularies, anchored, without the rule that leaves the last white space before a word to it.
static CL100K_PIECE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let patterns = [
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        r"[^\r\n\p{L}\p{N}]?\p{L}+",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+",
    ];
    anchored(&patterns)
});
static O200K_PIECE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let patterns = [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+",
    ];
    anchored(&patterns)
});

/// One regular expression out of `patterns`, anchored at the start. It always compiles: the patterns are fixed, and the
/// tests use them.
fn anchored(patterns: &[&str]) -> Option<Regex> {
    Regex::new(&format!(r"\A(?:{})", patterns.join("|"))).ok()
}

impl Vocabulary {
    pub(super) fn ranks(self) -> &'static Ranks {
        match self {
            Self::Cl100k => &CL100K_RANKS,
            Self::O200k => &O200K_RANKS,
        }
    }

    /// The length of the first piece of a text that is not empty.
    fn piece_length(self, text: &str) -> usize {
        let pattern = match self {
            Self::Cl100k => &CL100K_PIECE,
            Self::O200k => &O200K_PIECE,
        };
        let found = pattern.as_ref().and_then(|pattern| pattern.find(text)).map_or(text, |found| found.as_str());
        match found.chars().next_back() {
            // White space without a line break ends before its last character, unless that is all or ends the text.
            Some(last)
                if found.len() < text.len()
                    && !matches!(last, '\n' | '\r')
                    && found.len() > last.len_utf8()
                    && found.chars().all(char::is_whitespace) =>
            {
                found.len() - last.len_utf8()
            }
            _ => found.len(),
        }
    }
}

/// Counts tokens and remembers the costs of pieces.
struct Counter {
    vocabulary: Vocabulary,
    /// The number of tokens of each piece that is not a single token.
    known: FxHashMap<Box<str>, u32>,
    merger: Merger,
}

thread_local! {
    static CL100K: RefCell<Counter> = RefCell::new(Counter::new(Vocabulary::Cl100k));
    static O200K: RefCell<Counter> = RefCell::new(Counter::new(Vocabulary::O200k));
}

/// The number of tokens of `text`.
pub(super) fn count(text: &str, vocabulary: Vocabulary) -> usize {
    let counter = match vocabulary {
        Vocabulary::Cl100k => &CL100K,
        Vocabulary::O200k => &O200K,
    };
    counter.with_borrow_mut(|counter| counter.count(text))
}

impl Counter {
    fn new(vocabulary: Vocabulary) -> Self {
        Self { vocabulary, known: FxHashMap::default(), merger: Merger::default() }
    }

    fn count(&mut self, text: &str) -> usize {
        if self.known.len() > MAX_KNOWN_PIECES {
            self.known.clear();
        }
        let mut tokens = 0;
        for_each_run(text, |run| {
            let is_ascii = run.is_ascii();
            let mut rest = run;
            while !rest.is_empty() {
                let length = match is_ascii {
                    true => piece_length(rest.as_bytes(), self.vocabulary),
                    false => self.vocabulary.piece_length(rest),
                };
                let (piece, behind) = rest.split_at(length);
                tokens += self.piece(piece);
                rest = behind;
            }
        });
        tokens
    }

    fn piece(&mut self, piece: &str) -> usize {
        let ranks = self.vocabulary.ranks();
        // Every byte is a token.
        if piece.len() == 1 || ranks.get(piece.as_bytes()).is_some() {
            return 1;
        }
        if let Some(&tokens) = self.known.get(piece) {
            return tokens as usize;
        }
        let tokens = self.merger.count(piece.as_bytes(), ranks);
        if piece.len() <= MAX_PIECE_BYTES {
            self.known.insert(piece.into(), tokens as u32);
        }
        tokens
    }
}

/// Cuts the text into runs of ASCII and the stretches between them, each as short as possible.
fn for_each_run<'t>(text: &'t str, mut emit: impl FnMut(&'t str)) {
    let bytes = text.as_bytes();
    let mut start = 0;
    while let Some(found) = bytes.get(start..).and_then(|rest| rest.iter().position(|byte| !byte.is_ascii())) {
        let foreign = start + found;
        let left = (start + 1..=foreign).rev().find(|&at| is_border(bytes, at)).unwrap_or(start);
        let right = (foreign + 1..bytes.len()).find(|&at| is_border(bytes, at)).unwrap_or(bytes.len());
        emit(text.get(start..left).unwrap_or_default());
        emit(text.get(left..right).unwrap_or_default());
        start = right;
    }
    emit(text.get(start..).unwrap_or_default());
}

/// Whether both vocabularies are certain to split before the byte at `at`: between a character that is not white space
/// and a space, and between a line break and a character that is neither white space nor a slash (`o200k_base` joins a
/// slash to the punctuation before the break). Both neighbours are ASCII.
fn is_border(bytes: &[u8], at: usize) -> bool {
    match (bytes.get(at - 1), bytes.get(at)) {
        (Some(before), Some(b' ')) => before.is_ascii_graphic(),
        (Some(b'\n'), Some(next)) => next.is_ascii() && !is_space(*next) && *next != b'/',
        _ => false,
    }
}

/// White space as the patterns of the vocabularies have it, in ASCII.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn is_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Whether a byte is neither white space nor letter nor digit.
fn is_mark(byte: u8) -> bool {
    !is_space(byte) && !byte.is_ascii_alphanumeric()
}

/// The number of leading bytes that pass `test`.
fn run(bytes: &[u8], test: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|&byte| !test(byte)).unwrap_or(bytes.len())
}

/// The length of an English contraction (`'s`, `'ll` …) at the beginning, or 0.
fn contraction(bytes: &[u8]) -> usize {
    let letter = |at: usize| bytes.get(at).map(u8::to_ascii_lowercase);
    match (bytes.first(), letter(1), letter(2)) {
        (Some(b'\''), Some(b's' | b't' | b'm' | b'd'), _) => 2,
        (Some(b'\''), Some(b'r' | b'v'), Some(b'e')) | (Some(b'\''), Some(b'l'), Some(b'l')) => 3,
        _ => 0,
    }
}

/// The length of the first piece of a text in ASCII that is not empty, by the patterns of the vocabulary in the order in
/// which they are tried.
fn piece_length(bytes: &[u8], split: Vocabulary) -> usize {
    let [first, rest @ ..] = bytes else { return 0 };
    let first = *first;
    if split == Vocabulary::Cl100k && first == b'\'' && contraction(bytes) > 0 {
        return contraction(bytes);
    }
    // Letters, with one character before them that is neither a digit nor a line break.
    let lead = usize::from(!first.is_ascii_alphanumeric() && !is_break(first));
    let letters = bytes.get(lead..).map_or(0, |tail| match split {
        Vocabulary::Cl100k => run(tail, |byte| byte.is_ascii_alphabetic()),
        Vocabulary::O200k => {
            let upper = run(tail, |byte| byte.is_ascii_uppercase());
            upper + tail.get(upper..).map_or(0, |tail| run(tail, |byte| byte.is_ascii_lowercase()))
        }
    });
    if letters > 0 {
        let length = lead + letters;
        let tail = if split == Vocabulary::O200k { bytes.get(length..).map_or(0, contraction) } else { 0 };
        return length + tail;
    }
    if first.is_ascii_digit() {
        // No further than the piece: a run of digits is cut into many.
        return run(bytes.get(..3).unwrap_or(bytes), |byte| byte.is_ascii_digit());
    }
    // Marks, with one space before them and line breaks after them.
    let lead = usize::from(first == b' ');
    let marks = bytes.get(lead..).map_or(0, |tail| run(tail, is_mark));
    if marks > 0 {
        let length = lead + marks;
        let is_tail = |byte| is_break(byte) || (split == Vocabulary::O200k && byte == b'/');
        return length + bytes.get(length..).map_or(0, |tail| run(tail, is_tail));
    }
    // White space: up to its last line break; else all of it at the end of the text; else all but the last character.
    let spaces = 1 + run(rest, is_space);
    match bytes.get(..spaces).and_then(|spaces| spaces.iter().rposition(|&byte| is_break(byte))) {
        Some(last) => last + 1,
        None if spaces == bytes.len() || spaces == 1 => spaces,
        None => spaces - 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assert_exact(texts: &[&str]) {
        let references = [
            (Vocabulary::Cl100k, tiktoken_rs::cl100k_base_singleton()),
            (Vocabulary::O200k, tiktoken_rs::o200k_base_singleton()),
        ];
        for (vocabulary, reference) in references {
            let mut counter = Counter::new(vocabulary);
            for text in texts.iter().chain(texts) {
                let exact = reference.encode_ordinary(text).len();
                assert_eq!(counter.count(text), exact, "{vocabulary:?}: {text:?}");
            }
        }
    }

    #[test]
    fn each_token_is_that_of_the_reference() {
        let references = [
            (CL100K_RANKS, tiktoken_rs::cl100k_base_singleton(), 100_256),
            (O200K_RANKS, tiktoken_rs::o200k_base_singleton(), 199_998),
        ];
        for (ranks, reference, tokens) in references {
            let known = (0..).map_while(|rank| Some((rank, reference.decode_bytes(&[rank]).ok()?)));
            let equal = known.take_while(|(rank, token)| ranks.get(token) == Some(*rank)).count();
            assert_eq!(equal, tokens);
        }
    }

    #[test]
    fn awkward_texts_count_as_ever() {
        assert_exact(&[
            "",
            " ",
            "  ",
            "\n",
            " \n ",
            "a  b",
            "a \n  b",
            "\t\tx",
            "\t!",
            " !",
            "  !",
            "don't DON'T we'Ll 'sabc",
            "!!'s",
            "XMLHttpRequest's",
            "12345 678",
            "x.\n\n/y",
            "x.\n\n//\r\n/[",
            "é\nabc\n/x\né/\n/z",
            "\u{b}a\u{c}b\u{1c}c",
            "a\u{85}b\n c",
            "日本\n\nplain line\nΩ",
            "}\r\n\r\n  ]",
            "''''ll'",
            "A'S B'LL",
            "-\n-\n",
            "x \r\n",
            "é  \u{a0}\u{2003}x",
            "é\u{2028}\u{a0}",
            "é \u{a0} \n\u{a0}1²³⁴",
            "ÀÉa'LL Ǆé’s ــ́",
        ]);
    }

    /// Runs of one kind take about as long as prose of the same size: no piece is looked for behind its end.
    #[test]
    fn the_time_grows_with_the_text_alone() {
        let time = |part: &str| {
            let text = part.repeat(300_000 / part.len());
            let began = std::time::Instant::now();
            for vocabulary in [Vocabulary::Cl100k, Vocabulary::O200k] {
                Counter::new(vocabulary).count(&text);
            }
            began.elapsed()
        };
        let prose = time("Words and 12 numbers. ");
        for part in ["7", "é7", "7é", "aA", "'s", "\n ", "/", "(7)"] {
            let taken = time(part);
            assert!(taken < prose * 20 + std::time::Duration::from_secs(2), "{part:?}: {taken:?}, prose {prose:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn counts_are_exact(
            pieces in prop::collection::vec(
                prop_oneof![
                    4 => "[ -~]{0,6}",
                    3 => "[a-zA-Z]{1,7}'(s|LL|re|x)?",
                    2 => "[ \\t\\r\\n\\x0b\\x0c/]{1,4}",
                    1 => "[0-9]{1,8}",
                    1 => "\\PC{1,3}",
                ],
                0..12,
            ),
        ) {
            assert_exact(&[&pieces.concat()]);
        }
    }
}
