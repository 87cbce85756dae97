//! Tables from words, and from pairs of numbers, to numbers, read in place in an index image.
//!
//! Words: open addressing with linear probing over at least twice as many slots as entries. The lower bits of a slot,
//! as many as are needed to number the slots, hold the number of an entry plus one; the upper bits hold bits of the
//! word's hash, so that a probe reads the text only where it almost certainly matches. Entries are in alphabetical
//! order, so the bytes depend on the words alone.
//!
//! Pairs: for each first number its second numbers, ascending. Pairs are numbered by their place, so no number is
//! stored.

use super::image::{long, number};

/// A table from words to numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dictionary<'i> {
    slots: &'i [[u8; 4]],
    /// Per word the end of its text, and its number.
    entries: &'i [[u8; 8]],
    text: &'i [u8],
}

/// The three parts of a dictionary as bytes.
pub(super) struct DictionaryBytes {
    pub(super) slots: Vec<[u8; 4]>,
    pub(super) entries: Vec<[u8; 8]>,
    pub(super) text: Vec<u8>,
}

impl<'i> Dictionary<'i> {
    pub(super) fn new(slots: &'i [[u8; 4]], entries: &'i [[u8; 8]], text: &'i [u8]) -> Self {
        Self { slots, entries, text }
    }

    /// The tables of `words`, which are distinct and in alphabetical order.
    pub(super) fn encode<'w>(words: impl ExactSizeIterator<Item = (&'w str, u32)>) -> DictionaryBytes {
        let size = slots_for(words.len());
        let mut bytes =
            DictionaryBytes { slots: vec![[0; 4]; size], entries: Vec::with_capacity(words.len()), text: Vec::new() };
        let last = size - 1;
        for (entry, (word, value)) in (1u32..).zip(words) {
            bytes.text.extend_from_slice(word.as_bytes());
            bytes.entries.push((bytes.text.len() as u64 | u64::from(value) << 32).to_le_bytes());
            let hash = hash(word.as_bytes());
            let mut at = hash as usize & last;
            while bytes.slots[at] != [0; 4] {
                at = (at + 1) & last;
            }
            bytes.slots[at] = (mark(hash, last) | entry).to_le_bytes();
        }
        bytes
    }

    /// The number of words.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The number of a word.
    pub(super) fn get(&self, word: &str) -> Option<u32> {
        let hash = hash(word.as_bytes());
        let last = self.slots.len().checked_sub(1)?;
        let mark = mark(hash, last);
        let mut at = hash as usize & last;
        // A damaged table may have no free slot.
        for _ in 0..=last {
            let slot = number(self.slots, at);
            let entry = (slot as usize & last).checked_sub(1)?;
            if slot & !(last as u32) == mark && same(self.text(entry), word.as_bytes()) {
                return Some(self.value(entry));
            }
            at = (at + 1) & last;
        }
        None
    }

    /// All words with their numbers, in alphabetical order.
    pub(super) fn iter(self) -> impl Iterator<Item = (&'i [u8], u32)> {
        (0..self.entries.len()).map(move |entry| (self.text(entry), self.value(entry)))
    }

    fn text(&self, entry: usize) -> &'i [u8] {
        let end = |entry: usize| long(self.entries, entry) as u32 as usize;
        let start = entry.checked_sub(1).map_or(0, end);
        self.text.get(start..end(entry)).unwrap_or_default()
    }

    fn value(&self, entry: usize) -> u32 {
        (long(self.entries, entry) >> 32) as u32
    }
}

/// A table from pairs of numbers to numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct PairTable<'i> {
    /// Per first number where its pairs begin, and the end of the last; empty where there is no pair.
    starts: &'i [[u8; 4]],
    /// The second number of every pair, ascending for each first one.
    seconds: &'i [[u8; 4]],
}

impl<'i> PairTable<'i> {
    pub(super) fn new(starts: &'i [[u8; 4]], seconds: &'i [[u8; 4]]) -> Self {
        Self { starts, seconds }
    }

    /// The starts and seconds of distinct pairs of numbers below `terms`, ascending; pairs are numbered from `terms`
    /// on.
    pub(super) fn encode(pairs: impl Iterator<Item = (u32, u32)>, terms: u32) -> (Vec<[u8; 4]>, Vec<[u8; 4]>) {
        let (mut starts, mut seconds) = (Vec::new(), Vec::new());
        for (first, second) in pairs {
            starts.resize(first as usize + 1, (seconds.len() as u32).to_le_bytes());
            seconds.push(second.to_le_bytes());
        }
        if !seconds.is_empty() {
            starts.resize(terms as usize + 1, (seconds.len() as u32).to_le_bytes());
        }
        (starts, seconds)
    }

    /// The number of pairs.
    pub(super) fn len(&self) -> usize {
        self.seconds.len()
    }

    /// The number of a pair.
    pub(super) fn get(&self, (first, second): (u32, u32)) -> Option<u32> {
        let (start, seconds) = self.of(first as usize);
        let place = seconds.binary_search_by_key(&second, |cell| u32::from_le_bytes(*cell)).ok()?;
        Some(self.terms() + start + place as u32)
    }

    /// All pairs with their numbers, ascending.
    pub(super) fn iter(self) -> impl Iterator<Item = ((u32, u32), u32)> + 'i {
        let firsts = (0..self.terms()).flat_map(move |first| {
            let (_, seconds) = self.of(first as usize);
            seconds.iter().map(move |second| (first, u32::from_le_bytes(*second)))
        });
        firsts.zip(self.terms()..)
    }

    /// Checks that this can be a table of pairs of the first `terms` numbers; the error says what is wrong.
    pub(super) fn check(&self, terms: usize) -> Result<(), &'static str> {
        let check = |holds: bool, reason| if holds { Ok(()) } else { Err(reason) };
        let size = if self.seconds.is_empty() { 0 } else { terms + 1 };
        check(self.starts.len() == size, "there is not one list of pairs for each term")?;
        let starts = || self.starts.iter().map(|start| u32::from_le_bytes(*start) as usize);
        let whole = starts().next().unwrap_or(0) == 0 && starts().next_back().unwrap_or(0) == self.seconds.len();
        check(whole && starts().is_sorted(), "the lists of pairs overlap")?;
        let in_range = self.seconds.iter().all(|second| (u32::from_le_bytes(*second) as usize) < terms);
        check(in_range, "a pair is out of range")?;
        check(self.iter().is_sorted_by(|(one, _), (next, _)| one < next), "pairs are out of order")
    }

    /// The number of first numbers.
    fn terms(&self) -> u32 {
        self.starts.len().saturating_sub(1) as u32
    }

    /// Where the pairs of a first number begin, and their second numbers.
    fn of(&self, first: usize) -> (u32, &'i [[u8; 4]]) {
        let (start, end) = (number(self.starts, first), number(self.starts, first + 1));
        (start, self.seconds.get(start as usize..end as usize).unwrap_or_default())
    }
}

/// The number of slots for this many entries: a power of two, at least twice as many.
fn slots_for(entries: usize) -> usize {
    (entries * 2).next_power_of_two()
}

/// The bits of a hash that a slot stores above the number of its entry.
fn mark(hash: u64, last: usize) -> u32 {
    (hash >> 32) as u32 & !(last as u32)
}

/// A hash that is the same on every machine and in every version.
fn hash(word: &[u8]) -> u64 {
    let (chunks, rest) = word.as_chunks::<8>();
    let add = |hash: u64, number: u64| (hash.rotate_left(5) ^ number).wrapping_mul(FACTOR);
    let start = word.len() as u64;
    mixed(add(chunks.iter().fold(start, |hash, chunk| add(hash, u64::from_le_bytes(*chunk))), tail(rest)))
}

/// Whether two words are the same. Most are too short for a call to `memcmp` to pay.
fn same(one: &[u8], other: &[u8]) -> bool {
    let ((chunks, rest), (other_chunks, other_rest)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let equal = |(one, other): (&[u8; 8], &[u8; 8])| u64::from_le_bytes(*one) == u64::from_le_bytes(*other);
    one.len() == other.len() && chunks.iter().zip(other_chunks).all(equal) && tail(rest) == tail(other_rest)
}

/// Fewer than eight bytes as a little-endian number, read from both ends.
fn tail(bytes: &[u8]) -> u64 {
    let over = |width: usize| 8 * (bytes.len() - width) as u32;
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << over(4)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u64::from(u16::from_le_bytes(*first)) | u64::from(u16::from_le_bytes(*last)) << over(2)
    } else {
        bytes.first().map_or(0, |byte| u64::from(*byte))
    }
}

/// 2⁶⁴ divided by the golden ratio, odd.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Spreads every bit of a number over all bits of the result (the finaliser of MurmurHash3 by Appleby).
pub(super) fn mixed(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    hash = (hash ^ hash >> 33).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    hash ^ hash >> 33
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_are_found_as_in_a_map(
            words in prop::collection::btree_map(".{0,12}", any::<u32>(), 0..60), other in ".{0,12}",
        ) {
            let bytes = Dictionary::encode(words.iter().map(|(word, value)| (word.as_str(), *value)));
            let dictionary = Dictionary::new(&bytes.slots, &bytes.entries, &bytes.text);
            for word in words.keys().chain([&other]) {
                prop_assert_eq!(dictionary.get(word), words.get(word).copied());
            }
            let all: BTreeMap<&[u8], u32> = words.iter().map(|(word, value)| (word.as_bytes(), *value)).collect();
            prop_assert_eq!(dictionary.iter().collect::<BTreeMap<_, _>>(), all);
            prop_assert_eq!(dictionary.len(), words.len());
        }

        #[test]
        fn a_tail_is_the_number_of_its_bytes(bytes in prop::collection::vec(any::<u8>(), 0..8)) {
            prop_assert_eq!(tail(&bytes), bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)));
        }

        #[test]
        fn words_are_the_same_when_their_bytes_are(one in "[ab]{0,18}", other in "[ab]{0,18}") {
            prop_assert_eq!(same(one.as_bytes(), other.as_bytes()), one == other);
            prop_assert!(same(one.as_bytes(), one.clone().as_bytes()));
        }

        #[test]
        fn pairs_are_found_by_their_place(
            pairs in prop::collection::btree_set((0u32..9, 0u32..9), 0..60), more in 0u32..1000,
        ) {
            let terms = 9 + more;
            let (starts, seconds) = PairTable::encode(pairs.iter().copied(), terms);
            let table = PairTable::new(&starts, &seconds);
            for pair in (0..10).flat_map(|one| (0..10).map(move |two| (one, two))) {
                let place = pairs.iter().position(|known| *known == pair);
                prop_assert_eq!(table.get(pair), place.map(|place| terms + place as u32));
            }
            let all: Vec<((u32, u32), u32)> = table.iter().collect();
            prop_assert_eq!(all, pairs.iter().copied().zip(terms..).collect::<Vec<_>>());
            prop_assert_eq!(table.len(), pairs.len());
            prop_assert_eq!(table.check(terms as usize), Ok(()));
        }

        #[test]
        fn damaged_tables_end_a_search(
            numbers in prop::collection::vec(prop_oneof![0u32..9, any::<u32>()], 0..9), word in ".{0,9}",
        ) {
            let slots: Vec<[u8; 4]> = numbers.iter().map(|number| number.to_le_bytes()).collect();
            let entries: Vec<[u8; 8]> = numbers.iter().map(|number| u64::from(*number).to_le_bytes()).collect();
            let _ = Dictionary::new(&slots, &entries, b"text").get(&word);
            for at in 0..=slots.len() {
                let (starts, seconds) = slots.split_at(at);
                let table = PairTable::new(starts, seconds);
                let found = (0..9).filter_map(|first| table.get((first, 4))).count();
                let checked = table.check(starts.len().saturating_sub(1));
                prop_assert!(checked.is_err() || (found <= table.len() && table.iter().count() == table.len()));
            }
        }
    }
}
