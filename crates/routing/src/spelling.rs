//! Finds the known words that a misspelt word may stand for.
//!
//! A *reading* is a word of the catalog one edit away (an insertion, deletion, substitution or swap of neighbours: the
//! optimal string alignment distance) with the same first letter, which people seldom mistype. Words are kept in blocks
//! by first letter and length, so a look-up compares a word with a few dozen others and not with the whole vocabulary;
//! a comparison of the first and the last letters leaves few of these.
//!
//! Only words of `a`–`z` take part: names and numbers in a query are arguments more often than misspelt tools.

use std::slice::ChunksExact;

use super::image::{Image, ImageBuilder, Part, long, number};
use super::index::{FULL_WEIGHT, QueryTerm, TermId};

/// The shortest word that can be a reading, in letters: too many words are one edit away from shorter ones.
const SHORTEST_READING: usize = 4;

/// The shortest word of a query that is corrected, in letters.
const SHORTEST: usize = 5;

/// The longest word that is corrected, in letters.
const LONGEST: usize = 24;

/// At most this many unknown words of a query are corrected, the first ones: a query with more of them is not a query
/// with typos.
pub(super) const MOST_CORRECTED: usize = 32;

/// The number of readings of one word at most, the first in alphabetical order.
const READINGS: usize = 3;

/// The lengths from [`SHORTEST_READING`] to [`LONGEST`], and one more.
const LENGTHS: usize = LONGEST + 2 - SHORTEST_READING;

const BLOCKS: usize = 26 * LENGTHS;

/// The words of a catalog by first letter and length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spelling<'i> {
    /// Per block of words where its letters and its terms begin, and one more entry; empty when there are no words.
    blocks: &'i [[u8; 8]],
    /// The words of each block in alphabetical order, their letters one after another.
    letters: &'i [u8],
    terms: &'i [[u8; 4]],
}

impl<'i> Spelling<'i> {
    pub(super) fn of(image: &'i Image) -> Self {
        Self {
            blocks: image.cells(Part::SpellingBlocks),
            letters: image.part(Part::SpellingLetters),
            terms: image.cells(Part::SpellingTerms),
        }
    }

    /// Adds the blocks of words to an image, from every word in alphabetical order with the term that it stands for.
    pub(super) fn build<'w>(words: impl Iterator<Item = (&'w str, TermId)>, image: &mut ImageBuilder) {
        let mut placed: Vec<(usize, &str, TermId)> =
            words.filter_map(|(word, term)| Some((block_of(word.as_bytes())?, word, term))).collect();
        placed.sort_by_key(|(block, ..)| *block);
        let mut starts = Vec::new();
        let (mut letters, mut next) = (0u32, 0);
        for block in 0..if placed.is_empty() { 0 } else { BLOCKS + 1 } {
            starts.push((u64::from(letters) | (next as u64) << 32).to_le_bytes());
            while let Some((_, word, _)) = placed.get(next).filter(|(of, ..)| *of == block) {
                letters += word.len() as u32;
                next += 1;
            }
        }
        image.push(Part::SpellingBlocks, starts);
        image.push(Part::SpellingLetters, placed.iter().map(|(_, word, _)| word));
        image.push(Part::SpellingTerms, placed.iter().map(|(.., term)| term.to_le_bytes()));
    }

    /// Checks that every word stands for one of the first `terms` terms; the error says what is wrong.
    pub(super) fn check(&self, terms: usize) -> Result<(), &'static str> {
        let all = self.terms.iter().all(|term| (u32::from_le_bytes(*term) as usize) < terms);
        if all { Ok(()) } else { Err("a word for spelling correction stands for no term") }
    }

    /// The words of a block, and their terms.
    fn block(&self, block: usize, length: usize) -> (ChunksExact<'i, u8>, &'i [[u8; 4]]) {
        let start = |block: usize| {
            let start = long(self.blocks, block);
            (start as u32 as usize, (start >> 32) as usize)
        };
        let ((letters, terms), (letters_end, terms_end)) = (start(block), start(block + 1));
        let letters = self.letters.get(letters..letters_end).unwrap_or_default();
        (letters.chunks_exact(length), self.terms.get(terms..terms_end).unwrap_or_default())
    }

    /// Calls `visit` with each reading of `word` and its term.
    pub(super) fn for_each_reading(&self, word: &str, mut visit: impl FnMut(&'i [u8], TermId)) {
        let word = word.as_bytes();
        if !(SHORTEST..=LONGEST).contains(&word.len()) || !word.iter().all(u8::is_ascii_lowercase) {
            return;
        }
        let ends = Ends::of(word);
        for length in word.len() - 1..=word.len() + 1 {
            let Some(block) = block_at(word[0], length) else { continue };
            let (words, terms) = self.block(block, length);
            for (at, other) in words.enumerate().filter(|(_, other)| ends.meet(other)) {
                if one_edit_apart(word, other) && at < terms.len() {
                    visit(other, number(terms, at));
                }
            }
        }
    }
}

/// The first and the last letters of a word. A word that is one edit away shares one of the two ends: with `d` letters
/// in common at the start, no edit reaches further than the letters `d` and `d + 1`, and the two ends together are one
/// letter shorter than the word, so one of them is untouched.
struct Ends {
    first: u32,
    first_mask: u32,
    last: u32,
    last_mask: u32,
}

impl Ends {
    /// The ends of a word of at least [`SHORTEST`] letters.
    fn of(word: &[u8]) -> Self {
        let unused = |letters: usize| 8 * 4usize.saturating_sub(letters) as u32;
        Self {
            first: first_four(word),
            first_mask: u32::MAX >> unused(word.len() / 2),
            last: last_four(word),
            last_mask: u32::MAX << unused((word.len() - 1) / 2),
        }
    }

    /// Whether another word has the same first letters or the same last ones.
    fn meet(&self, other: &[u8]) -> bool {
        (self.first ^ first_four(other)) & self.first_mask == 0 || (self.last ^ last_four(other)) & self.last_mask == 0
    }
}

fn first_four(word: &[u8]) -> u32 {
    word.first_chunk().map_or(0, |letters| u32::from_le_bytes(*letters))
}

fn last_four(word: &[u8]) -> u32 {
    word.last_chunk().map_or(0, |letters| u32::from_le_bytes(*letters))
}

/// Adds the terms of `readings` to `terms`. Readings share the weight: each of n has weight / √n, so that their squares
/// add up to the same.
pub(super) fn share(mut readings: Vec<(&[u8], TermId)>, weight: f64, terms: &mut Vec<QueryTerm>) {
    if readings.is_empty() {
        return;
    }
    readings.sort_unstable();
    // Forms of one stem need not be neighbours in the alphabet; each term still counts once.
    let mut distinct: Vec<TermId> = Vec::with_capacity(READINGS);
    for (_, term) in readings {
        if distinct.len() < READINGS && !distinct.contains(&term) {
            distinct.push(term);
        }
    }
    let shared = (weight * f64::from(FULL_WEIGHT) / (distinct.len() as f64).sqrt()).round() as u32;
    terms.extend(distinct.into_iter().map(|term| QueryTerm { term, weight: shared }));
}

/// The block of a word; `None` for a word that cannot be a reading.
fn block_of(word: &[u8]) -> Option<usize> {
    let first = word.iter().all(u8::is_ascii_lowercase).then(|| word.first().copied()).flatten()?;
    block_at(first, word.len())
}

fn block_at(first: u8, length: usize) -> Option<usize> {
    let length = length.checked_sub(SHORTEST_READING).filter(|length| *length < LENGTHS)?;
    Some(usize::from(first.checked_sub(b'a')?) * LENGTHS + length)
}

/// Whether the optimal string alignment distance of two words is exactly one.
fn one_edit_apart(left: &[u8], right: &[u8]) -> bool {
    let same = left.iter().zip(right).take_while(|(one, other)| one == other).count();
    let (left, right) = (&left[same..], &right[same..]);
    // An edit affects two letters at most: words that differ after them need no closer look.
    if left.len().min(right.len()) > 2 && left.last() != right.last() {
        return false;
    }
    match (left, right) {
        ([], []) => false,
        ([_, rest @ ..], _) if rest == right => true,
        (_, [_, rest @ ..]) if rest == left => true,
        ([_, rest @ ..], [_, other @ ..]) if rest == other => true,
        ([a, b, rest @ ..], [c, d, other @ ..]) => a == d && b == c && rest == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn readings(words: &[&str], query: &str) -> Vec<(TermId, u32)> {
        let mut numbered: Vec<(&str, TermId)> = words.iter().zip(0..).map(|(&word, term)| (word, term)).collect();
        numbered.sort_unstable();
        let mut image = ImageBuilder::until(Part::SpellingBlocks);
        Spelling::build(numbered.into_iter(), &mut image);
        let image = image.finish();
        let (mut readings, mut terms) = (Vec::new(), Vec::new());
        Spelling::of(&image).for_each_reading(query, |word, term| readings.push((word, term)));
        share(readings, 1.0, &mut terms);
        terms.iter().map(|term| (term.term, term.weight)).collect()
    }

    #[test]
    fn a_word_is_read_as_what_is_one_edit_away() {
        let words = ["weather", "whether", "wether", "list", "lisp", "forecast", "x", "Über"];
        let shared = (f64::from(FULL_WEIGHT) / 3f64.sqrt()).round() as u32;
        let table: [(&str, &[(TermId, u32)]); 8] = [
            ("forcast", &[(5, FULL_WEIGHT)]),
            ("forecsat", &[(5, FULL_WEIGHT)]),
            ("waether", &[(0, shared), (2, shared), (1, shared)]),
            ("lista", &[(3, FULL_WEIGHT)]),
            ("orecast", &[]),
            ("lis", &[]),
            ("forcst", &[]),
            ("überx", &[]),
        ];
        for (query, expected) in table {
            assert_eq!(readings(&words, query), expected, "{query}");
        }
    }

    #[test]
    fn nothing_is_read_as_a_word_that_is_known_or_too_long() {
        let long = "a".repeat(LONGEST + 1);
        assert_eq!(readings(&[&long], &long[..LONGEST]), [(0, FULL_WEIGHT)]);
        assert_eq!(readings(&[&long[..LONGEST]], &long), []);
        assert_eq!(readings(&["weather"], "weather"), []);
        assert_eq!(readings(&[], "weather"), []);
    }

    proptest! {
        #[test]
        fn one_edit_is_that_of_the_plain_distance(left in "[ab]{0,6}", right in "[ab]{0,6}") {
            let plain = strsim::osa_distance(&left, &right) == 1;
            prop_assert_eq!(one_edit_apart(left.as_bytes(), right.as_bytes()), plain);
        }

        #[test]
        fn an_edit_leaves_one_end_alone(word in "[ab]{5,12}", other in "[ab]{4,13}") {
            let (word, other) = (word.as_bytes(), other.as_bytes());
            prop_assert!(!one_edit_apart(word, other) || Ends::of(word).meet(other));
        }

        #[test]
        fn the_blocks_find_what_a_scan_of_all_words_finds(
            words in prop::collection::btree_set("[abc]{1,7}", 0..40), query in "[abc]{1,7}",
        ) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let close = |word: &&&str| {
                word.len() >= SHORTEST_READING && word[..1] == query[..1] && strsim::osa_distance(word, &query) == 1
            };
            let plain: Vec<TermId> =
                words.iter().zip(0..).filter(|(word, _)| close(word)).map(|(_, term)| term).take(READINGS).collect();
            let found: Vec<TermId> = readings(&words, &query).iter().map(|(term, _)| *term).collect();
            prop_assert_eq!(found, if query.len() < SHORTEST { Vec::new() } else { plain });
        }
    }
}
