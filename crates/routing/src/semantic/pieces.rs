//! Splits words into pieces of the table: greedy longest match.

use rustc_hash::FxHashMap;

/// The number of a piece in its table.
pub(super) type PieceId = u16;

/// The pieces of a table. A piece is either at the start of a word or inside one.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    starts: Side,
    insides: Side,
}

#[derive(Debug, Default)]
struct Side {
    numbers: FxHashMap<&'static [u8], PieceId>,
    longest: usize,
}

impl Side {
    /// The longest piece at the start of `text`: its length in bytes and its number.
    fn longest_of(&self, text: &[u8]) -> Option<(usize, PieceId)> {
        let lengths = 1..=text.len().min(self.longest);
        lengths.rev().find_map(|length| Some((length, *self.numbers.get(&text[..length])?)))
    }
}

impl Pieces {
    pub(super) fn with_capacity(count: usize) -> Self {
        let mut pieces = Self::default();
        pieces.starts.numbers.reserve(count);
        pieces
    }

    /// Adds a piece; returns `false` when it is already known.
    pub(super) fn insert(&mut self, text: &'static [u8], inside: bool, id: PieceId) -> bool {
        let side = if inside { &mut self.insides } else { &mut self.starts };
        side.longest = side.longest.max(text.len());
        side.numbers.insert(text, id).is_none()
    }

    /// Whether a normalised word is one piece.
    pub(super) fn is_word(&self, word: &str) -> bool {
        self.starts.numbers.contains_key(word.as_bytes())
    }

    /// Calls `visit` with the pieces of a normalised word, in order. A byte that begins no piece is skipped, and a word
    /// with a character outside ASCII has no pieces.
    pub(super) fn for_each(&self, word: &str, mut visit: impl FnMut(PieceId)) {
        if !word.is_ascii() {
            return;
        }
        let word = word.as_bytes();
        let mut at = 0;
        while at < word.len() {
            let side = if at == 0 { &self.starts } else { &self.insides };
            match side.longest_of(&word[at..]) {
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
        let mut pieces = Pieces::default();
        for (id, (text, inside)) in
            [("web", false), ("we", false), ("hook", true), ("h", true), ("s", true), ("b", true)]
                .into_iter()
                .enumerate()
        {
            assert!(pieces.insert(text.as_bytes(), inside, id as PieceId));
        }
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
}
