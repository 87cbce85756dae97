//! What is said of a text, and behind it the text's own beginning and end.
//!
//! In a short text, in prose, in settings and in listings, what a reader looks for often stands first or last, and no statement
//! about the text replaces it. There the structure gets a part of the cap, and the text itself the rest.

use super::{Pieces, lines};
use crate::brief::{Piece, pack};
use contextweaver_core::text::{Estimator, largest};

/// Between the beginning and the end.
const GAP: &str = "\n…\n";
/// Bytes of text per token, beyond which nothing is tried.
const BYTES_PER_TOKEN: usize = 8;
/// Below so many tokens for the text itself the structure gets the whole cap.
const LEAST: usize = 24;

/// How much of the cap what stands around errors gets with it, in hundredths.
const EXCERPT: usize = 50;
/// How much of the cap the size and the first error get where the share would be too small for them, in hundredths.
const NEEDED: usize = 60;

/// `pieces` in at most `share` hundredths of the cap, then the first of `forms` that fits into what is left of it, or the
/// beginning and the end of the last. What went wrong in the middle is said whatever the share.
pub(super) fn around(pieces: &[Piece], forms: &[&str], share: usize, cap: usize, estimator: Estimator) -> String {
    let said = unquoted(pieces);
    if let Some(told) = whole(&said, forms, share, cap, estimator) {
        return told;
    }
    let content = forms.last().copied().unwrap_or_default();
    let needed: Pieces = said.iter().filter_map(lines::needed).collect();
    let (size, errors): (Pieces, Pieces) = needed.into_iter().partition(lines::is_size);
    let packed = |pieces: &[Piece]| pack(pieces, cap * NEEDED / 100, estimator);
    let least = (cap * share / 100).max(estimator.count(&packed(&size)) + 1).min(cap);
    let told = cut(pieces, content, least, cap, estimator);
    let excerpt: Pieces = said.iter().filter(|piece| lines::is_excerpt(piece)).cloned().collect();
    let is_told = |statement: &str| told.contains(lines::quoted(statement));
    let excerpt = packed(&excerpt);
    let untold = excerpt.lines().filter(|line| !is_told(line)).count();
    if is_told(&packed(&errors)) && untold * 2 <= excerpt.lines().count() {
        return told;
    }
    let needed = estimator.count(&packed(&[size, errors].concat())) + 1;
    let around = if excerpt.is_empty() { 0 } else { cap * EXCERPT / 100 };
    cut(pieces, content, least.max(needed).max(around).min(cap), cap, estimator)
}

/// The statements that do not quote the text.
fn unquoted(pieces: &[Piece]) -> Pieces {
    pieces.iter().filter(|piece| !lines::quotes_ends(piece.place)).cloned().collect()
}

/// `pieces` in at most `own` tokens, and behind them the beginning and the end of `content`.
fn cut(pieces: &[Piece], content: &str, own: usize, cap: usize, estimator: Estimator) -> String {
    if cap - own < LEAST {
        return pack(pieces, cap, estimator);
    }
    let said = pack(&unquoted(pieces), own, estimator);
    let before = if said.is_empty() { String::new() } else { format!("{said}\n") };
    let mut room = cap.saturating_sub(estimator.count(&before) + estimator.count(GAP));
    loop {
        let begin = head(content, room.div_ceil(2), estimator);
        let rest = content.get(begin.len()..).unwrap_or_default();
        let end = tail(rest, room.saturating_sub(estimator.count(begin)), estimator);
        let text = format!("{before}{}{GAP}{}", begin.trim_end(), end.trim_end());
        // Tokens of parts do not add up exactly.
        if estimator.count(&text) <= cap {
            return text;
        }
        if room == 0 {
            return pack(pieces, cap, estimator);
        }
        room -= 1;
    }
}

/// What is said, and behind it the first of `forms` that fits whole.
fn whole(said: &[Piece], forms: &[&str], share: usize, cap: usize, estimator: Estimator) -> Option<String> {
    let size: Pieces = said.iter().filter_map(lines::needed).filter(lines::is_size).collect();
    let own = (cap * share / 100).max(estimator.count(&pack(&size, cap, estimator)) + 1);
    // What stands around an error stands in the whole.
    let said: Pieces = said.iter().filter(|piece| !lines::is_excerpt(piece)).cloned().collect();
    let said = pack(&said, own, estimator);
    forms.iter().map(|form| form.trim_end()).filter(|form| form.len() <= cap * BYTES_PER_TOKEN).find_map(|form| {
        let text = if said.is_empty() { (*form).to_owned() } else { format!("{said}\n{form}") };
        (estimator.count(&text) <= cap).then_some(text)
    })
}

/// The longest beginning of at most `room` tokens, up to the end of a line or at least of a word where one is near.
fn head(text: &str, room: usize, estimator: Estimator) -> &str {
    let until = |at: usize| text.get(..text.floor_char_boundary(at)).unwrap_or_default();
    let found = until(largest(text.len().min(room * BYTES_PER_TOKEN), |at| estimator.count(until(at)) <= room));
    if found.len() == text.len() || text.get(found.len()..).is_some_and(|rest| rest.starts_with('\n')) {
        return found;
    }
    let line = found.rfind('\n').filter(|at| *at * 2 >= found.len());
    let end = line.or_else(|| found.rfind(char::is_whitespace).filter(|at| *at * 4 >= found.len() * 3));
    end.and_then(|end| found.get(..end)).unwrap_or(found)
}

/// The longest end of at most `room` tokens, from the beginning of a line or at least of a word where one is near.
fn tail(text: &str, room: usize, estimator: Estimator) -> &str {
    let from =
        |length: usize| text.get(text.ceil_char_boundary(text.len().saturating_sub(length))..).unwrap_or_default();
    let found = from(largest(text.len().min(room * BYTES_PER_TOKEN), |at| estimator.count(from(at)) <= room));
    if found.len() == text.len() || text.get(..text.len() - found.len()).is_some_and(|rest| rest.ends_with('\n')) {
        return found;
    }
    let line = found.find('\n').filter(|at| *at * 2 <= found.len());
    let start = line.or_else(|| found.find(char::is_whitespace).filter(|at| *at * 4 <= found.len()));
    start.and_then(|start| found.get(start + 1..)).unwrap_or(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_stands_behind_what_is_said_of_it() {
        let text: String = (0..60).map(|number| format!("line {number}: größe\n")).collect();
        let pieces = [Piece::line(0, 0, "60 lines")];
        let told = around(&pieces, &[&text], 40, 60, Estimator::Cl100kBase);
        assert!(told.starts_with("60 lines\nline 0: größe\nline 1: größe\n"), "{told}");
        assert!(told.ends_with("\nline 58: größe\nline 59: größe"), "{told}");
        let whole = told.lines().skip(1).filter(|line| *line != "…").all(|line| text.contains(&format!("{line}\n")));
        assert!(whole, "{told}");
    }

    proptest! {
        #[test]
        fn the_cap_is_kept(text in "(\\PC{0,9}|[a-z ]{0,30}|\\n|日本){0,40}", share in 0usize..101, cap in 0usize..120) {
            for estimator in Estimator::ALL {
                let told = around(&[Piece::line(0, 0, "said")], &[&text], share, cap, estimator);
                prop_assert!(estimator.count(&told) <= cap, "{told}");
            }
        }
    }
}
