//! Reads words that the catalog does not know as the known words closest to them, for
//! [`Scorer::Fuzzy`](super::Scorer::Fuzzy).

use super::index::{FULL_WEIGHT, Index, QueryTerm, TermId};

/// Shorter words are not corrected: too many words are one edit away from them.
const SHORTEST: usize = 4;

/// At most this many unknown words of a query are corrected, the first ones: each is compared with every word of the
/// catalog, and a query with more of them is not a query with typos.
pub(super) const MOST_CORRECTED: usize = 32;

/// The number of readings of one word at most.
const READINGS: usize = 3;

/// Adds the terms whose surface forms are within one edit of `word` (two from eight letters on), weighted by
/// 1 − distance / length. An edit is an insertion, deletion, substitution or swap of neighbours (optimal string
/// alignment). Only the closest readings are taken, ties by the surface form.
pub(super) fn expand(index: &Index, word: &str, terms: &mut Vec<QueryTerm>) {
    let length = word.chars().count();
    if length < SHORTEST || !word.is_ascii() {
        return;
    }
    let allowed = if length >= 8 { 2 } else { 1 };
    let mut readings: Vec<(usize, &str, TermId)> = index
        .words_table()
        .iter()
        .filter_map(|(surface, term)| Some((std::str::from_utf8(surface).ok()?, term)))
        .filter(|(surface, _)| {
            surface.is_ascii() && surface.len() >= SHORTEST && surface.len().abs_diff(length) <= allowed
        })
        .filter(|(_, term)| index.frequency(*term) > 0)
        .map(|(surface, term)| (strsim::osa_distance(word, surface), surface, term))
        .filter(|(distance, ..)| *distance <= allowed)
        .collect();
    readings.sort_unstable();
    let Some(&(closest, ..)) = readings.first() else { return };
    let weight = (FULL_WEIGHT as usize * (length - closest) / length) as u32;
    let before = terms.len();
    // Forms of one stem need not be neighbours in the alphabet; each term still counts once.
    for &(_, _, term) in readings.iter().take_while(|(distance, ..)| *distance == closest) {
        let read = &terms[before..];
        if read.len() < READINGS && !read.iter().any(|other| other.term == term) {
            terms.push(QueryTerm { term, weight });
        }
    }
}
