//! Words to pieces of the table: greedy longest match.

use crate::routing::dictionary::{Dictionary, DictionaryBytes};

/// The number of a piece in its table.
pub(super) type PieceId = u16;

/// The pieces of a table. A piece stands either at the start of a word or inside one.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    starts: Side,
    insides: Side,
}

#[derive(Debug, Default)]
struct Side {
    numbers: DictionaryBytes,
    longest: usize,
}

impl Side {
    /// `None` when a piece is there twice.
    fn new(mut pieces: Vec<(&str, PieceId)>) -> Option<Self> {
        pieces.sort_unstable();
        if pieces.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return None;
        }
        let longest = pieces.iter().map(|(text, _)| text.len()).max().unwrap_or(0);
        let numbers = Dictionary::encode(pieces.iter().map(|(text, id)| (*text, u32::from(*id))));
        Some(Self { numbers, longest })
    }

    /// The longest piece that `text`, which is ASCII, begins with: its length and number.
    fn longest_of(&self, text: &str) -> Option<(usize, PieceId)> {
        let numbers = self.numbers.read();
        let lengths = 1..=text.len().min(self.longest);
        lengths.rev().find_map(|length| Some((length, numbers.get(text.get(..length)?)? as PieceId)))
    }
}

impl Pieces {
    /// Of the pieces at starts and those inside, each of which is ASCII; `None` when one is there twice.
    pub(super) fn new(starts: Vec<(&str, PieceId)>, insides: Vec<(&str, PieceId)>) -> Option<Self> {
        Some(Self { starts: Side::new(starts)?, insides: Side::new(insides)? })
    }

    /// Calls `visit` with the pieces of a normalised word, in order. A byte that begins no piece is skipped, and a word
    /// with a character outside ASCII has no pieces.
    pub(super) fn for_each(&self, word: &str, mut visit: impl FnMut(PieceId)) {
        if !word.is_ascii() {
            return;
        }
        let mut at = 0;
        while let Some(rest) = word.get(at..).filter(|rest| !rest.is_empty()) {
            let side = if at == 0 { &self.starts } else { &self.insides };
            match side.longest_of(rest) {
                Some((length, id)) => {
                    visit(id);
                    at += length;
                }
                None => at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_piece_wins() {
        let insides = vec![("hook", 2), ("h", 3), ("s", 4), ("b", 5)];
        let pieces = Pieces::new(vec![("web", 0), ("we", 1)], insides).unwrap();
        let table: [(&str, &[PieceId]); 6] = [
            ("web", &[0]),
            ("webhooks", &[0, 2, 4]),
            ("webs", &[0, 4]),
            ("xhook", &[2]),
            ("weh", &[1, 3]),
            ("wéb", &[]),
        ];
        for (word, expected) in table {
            let mut found = Vec::new();
            pieces.for_each(word, |id| found.push(id));
            assert_eq!(found, expected, "{word}");
        }
    }

    #[test]
    fn a_piece_is_there_once() {
        assert!(Pieces::new(vec![("a", 0)], vec![("a", 1)]).is_some());
        assert!(Pieces::new(vec![("a", 0), ("b", 1), ("a", 2)], Vec::new()).is_none());
    }
}
