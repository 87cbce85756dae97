//! Exact counts of many texts that resemble each other, as the events of a conversation do.
//!
//! A vocabulary first splits a text into pieces (words, numbers, runs of punctuation) and then encodes each piece on
//! its own. Splitting by regular expression takes most of the time, and most pieces are met again and again; so ASCII
//! is split by hand here and the cost of a piece is remembered, up to some megabytes for each thread. Other text is
//! counted by the library. The counts are those of the library, which the tests hold.

use std::cell::RefCell;

use bpe_openai::Tokenizer;
use rustc_hash::FxHashMap;

/// Pieces that are remembered at most.
const MAX_KNOWN_PIECES: usize = 1 << 16;

/// Longer pieces are not remembered.
const MAX_PIECE_BYTES: usize = 32;

/// An exact vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vocabulary {
    /// `cl100k_base`.
    Cl100k,
    /// `o200k_base`.
    O200k,
}

impl Vocabulary {
    fn tokenizer(self) -> &'static Tokenizer {
        match self {
            Self::Cl100k => bpe_openai::cl100k_base(),
            Self::O200k => bpe_openai::o200k_base(),
        }
    }
}

/// Counts tokens and remembers the costs of pieces.
struct Counter {
    vocabulary: Vocabulary,
    known: FxHashMap<Box<str>, u32>,
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
        Self { vocabulary, known: FxHashMap::default() }
    }

    fn count(&mut self, text: &str) -> usize {
        if self.known.len() > MAX_KNOWN_PIECES {
            self.known.clear();
        }
        let mut tokens = 0;
        for_each_run(text, |run| {
            if !run.is_ascii() {
                tokens += self.vocabulary.tokenizer().count(run);
                return;
            }
            let mut rest = run;
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(piece_length(rest.as_bytes(), self.vocabulary));
                tokens += self.piece(piece);
                rest = behind;
            }
        });
        tokens
    }

    fn piece(&mut self, piece: &str) -> usize {
        // Every byte is a token.
        if piece.len() == 1 {
            return 1;
        }
        if let Some(&tokens) = self.known.get(piece) {
            return tokens as usize;
        }
        let tokens = self.vocabulary.tokenizer().bpe.count(piece.as_bytes());
        if piece.len() <= MAX_PIECE_BYTES {
            self.known.insert(piece.into(), tokens as u32);
        }
        tokens
    }
}

/// Cuts the text where both vocabularies split for certain: between a line break and an ASCII character that is neither
/// white space nor a slash (which `o200k_base` draws to punctuation before the break). Each run is ASCII as long as it
/// can be.
fn for_each_run<'t>(text: &'t str, mut emit: impl FnMut(&'t str)) {
    if text.is_ascii() {
        return emit(text);
    }
    let bytes = text.as_bytes();
    let (mut start, mut was_ascii) = (0, true);
    let mut line_start = 0;
    let borders = memchr::memchr_iter(b'\n', bytes)
        .map(|at| at + 1)
        .filter(|&at| bytes.get(at).is_some_and(|next| next.is_ascii() && !is_space(*next) && *next != b'/'));
    for border in borders.chain([bytes.len()]) {
        let line_is_ascii = bytes.get(line_start..border).is_none_or(<[u8]>::is_ascii);
        if line_is_ascii != was_ascii {
            emit(text.get(start..line_start).unwrap_or_default());
            (start, was_ascii) = (line_start, line_is_ascii);
        }
        line_start = border;
    }
    emit(text.get(start..).unwrap_or_default());
}

/// White space as the patterns of the vocabularies have it, in ASCII.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn is_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Neither white space nor letter nor digit.
fn is_mark(byte: u8) -> bool {
    !is_space(byte) && !byte.is_ascii_alphanumeric()
}

/// The number of bytes at the beginning that fulfil `test`.
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
    // Letters, with one character before them that is no digit and no line break.
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
        return run(bytes, |byte| byte.is_ascii_digit()).min(3);
    }
    // Marks, with one space before and line breaks behind them.
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
        for vocabulary in [Vocabulary::Cl100k, Vocabulary::O200k] {
            let mut counter = Counter::new(vocabulary);
            for text in texts.iter().chain(texts) {
                assert_eq!(counter.count(text), vocabulary.tokenizer().count(text), "{vocabulary:?}: {text:?}");
            }
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
        ]);
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
