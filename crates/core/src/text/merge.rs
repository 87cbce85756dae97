//! The number of tokens of one piece of text, by byte-pair encoding.
//!
//! Of all neighbours that together form a token, the pair whose token ranks lowest is merged first, the leftmost of
//! equals, until no pair forms one. A queue by rank and place finds them, so a piece of `n` bytes takes `n log n`
//! steps. A very long piece is divided into windows, which bounds the memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ranks::Ranks;

/// The number of bytes of a piece that are merged at once.
const WINDOW: usize = 64 * 1024;

/// Marks the absence of a rank or place.
const NONE: u32 = u32::MAX;

/// Merges bytes into tokens. Kept between calls so that its memory is reused.
#[derive(Debug, Default)]
pub(super) struct Merger {
    /// Per start of a part, the start of the next part.
    next: Vec<u32>,
    /// Per start of a part, the start of the part before it.
    previous: Vec<u32>,
    /// Per start of a part, the rank of the token that it forms with the next part, or [`NONE`]; also [`NONE`] where no
    /// part starts.
    pairs: Vec<u32>,
    /// Pairs to be merged, by rank and place; outdated entries are skipped.
    queue: BinaryHeap<Reverse<(u32, u32)>>,
}

impl Merger {
    /// The number of tokens of `piece`.
    pub(super) fn count(&mut self, piece: &[u8], ranks: &Ranks) -> usize {
        let mut window = WINDOW;
        loop {
            if let Some(count) = self.count_in_windows(piece, window, ranks) {
                return count;
            }
            window *= 2;
        }
    }

    /// The number of tokens, with at most the bytes of a window merged at once. Two tokens that are neighbours in the
    /// encoding of one text are neighbours in that of any text whose remainder fits on either side, so a window may
    /// begin between two tokens of the previous window if its own encoding begins with the second of them. `None` when
    /// it does not.
    fn count_in_windows(&mut self, piece: &[u8], window: usize, ranks: &Ranks) -> Option<usize> {
        let (mut rest, mut count, mut expected) = (piece, 0, None);
        loop {
            let (now, _) = rest.split_at_checked(window).unwrap_or((rest, &[]));
            self.join(now, ranks);
            let mut ends = self.ends();
            let first = ends.next();
            if expected.is_some() && expected != first {
                return None;
            }
            if now.len() == rest.len() {
                return Some(count + usize::from(first.is_some()) + ends.count());
            }
            // The cut at the end of the window can only change its last tokens.
            let kept = first.into_iter().chain(ends).take_while(|end| *end <= window / 4 * 3);
            let (tokens, cut) = kept.fold((0, 0), |(tokens, _), end| (tokens + 1, end));
            if tokens == 0 {
                return None;
            }
            expected = self.next.get(cut).map(|end| *end as usize - cut);
            count += tokens;
            rest = rest.get(cut..).unwrap_or_default();
        }
    }

    /// The ends of the tokens found.
    fn ends(&self) -> impl Iterator<Item = usize> {
        let mut at = 0;
        std::iter::from_fn(move || {
            at = *self.next.get(at)? as usize;
            Some(at)
        })
    }

    /// Merges the bytes of a text until no neighbours form a token.
    fn join(&mut self, text: &[u8], ranks: &Ranks) {
        let length = text.len() as u32;
        self.next.clear();
        self.next.extend(1..=length);
        self.previous.clear();
        self.previous.extend((0..length).map(|at| at.wrapping_sub(1)));
        self.pairs.clear();
        self.pairs.resize(text.len(), NONE);
        self.queue.clear();
        for at in 0..length {
            self.pair(at, text, ranks);
        }
        while let Some(Reverse((rank, at))) = self.queue.pop() {
            if self.pairs.get(at as usize) == Some(&rank) {
                self.join_at(at, text, ranks);
            }
        }
    }

    /// Merges the part at `at` with the next.
    fn join_at(&mut self, at: u32, text: &[u8], ranks: &Ranks) {
        let Some(gone) = self.after(at) else { return };
        let Some(end) = self.after(gone) else { return };
        if let Some(next) = self.next.get_mut(at as usize) {
            *next = end;
        }
        if let Some(pair) = self.pairs.get_mut(gone as usize) {
            *pair = NONE;
        }
        if let Some(previous) = self.previous.get_mut(end as usize) {
            *previous = at;
        }
        self.pair(at, text, ranks);
        if let Some(&before) = self.previous.get(at as usize)
            && before != NONE
        {
            self.pair(before, text, ranks);
        }
    }

    fn after(&self, at: u32) -> Option<u32> {
        self.next.get(at as usize).copied()
    }

    /// Looks up the token that the part at `at` and the next part form.
    fn pair(&mut self, at: u32, text: &[u8], ranks: &Ranks) {
        let end = self.after(at).and_then(|next| self.after(next));
        let rank = end.and_then(|end| ranks.get(text.get(at as usize..end as usize)?));
        if let Some(pair) = self.pairs.get_mut(at as usize) {
            *pair = rank.unwrap_or(NONE);
        }
        if let Some(rank) = rank {
            self.queue.push(Reverse((rank, at)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::counter::Vocabulary;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn windows_change_no_count(piece in "[ab]{0,300}|[a-z]{0,300}|(the|of|and|ing|z){0,90}|\\PC{0,120}") {
            let ranks = Vocabulary::Cl100k.ranks();
            let mut merger = Merger::default();
            let whole = merger.count(piece.as_bytes(), ranks);
            for window in [1, 2, 7, 16, 64] {
                let mut grown = window;
                let count = loop {
                    match merger.count_in_windows(piece.as_bytes(), grown, ranks) {
                        Some(count) => break count,
                        None => grown *= 2,
                    }
                };
                prop_assert_eq!(count, whole, "{} from {}", grown, window);
            }
        }
    }
}
