//! Tables from words, and from pairs of numbers, to numbers: in an image, read where they lie.
//!
//! Open addressing with linear probing over at least twice as many slots as entries. A slot of the word table holds
//! half of the word's hash and the number of its entry plus one, so that a probe touches the text only where it is
//! almost surely the right one. Entries are in alphabetical order: the bytes depend on the words alone.

use super::image::{long, number};

/// Words to numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dictionary<'i> {
    slots: &'i [[u8; 8]],
    /// Per word the end of its text and its number.
    entries: &'i [[u8; 8]],
    text: &'i [u8],
}

/// The three parts of a dictionary as bytes.
pub(super) struct DictionaryBytes {
    pub(super) slots: Vec<[u8; 8]>,
    pub(super) entries: Vec<[u8; 8]>,
    pub(super) text: Vec<u8>,
}

impl<'i> Dictionary<'i> {
    pub(super) fn new(slots: &'i [[u8; 8]], entries: &'i [[u8; 8]], text: &'i [u8]) -> Self {
        Self { slots, entries, text }
    }

    /// The tables of `words`, which are distinct and in alphabetical order.
    pub(super) fn encode<'w>(words: impl ExactSizeIterator<Item = (&'w str, u32)>) -> DictionaryBytes {
        let size = slots_for(words.len());
        let mut bytes =
            DictionaryBytes { slots: vec![[0; 8]; size], entries: Vec::with_capacity(words.len()), text: Vec::new() };
        for (entry, (word, value)) in (1u64..).zip(words) {
            bytes.text.extend_from_slice(word.as_bytes());
            bytes.entries.push((bytes.text.len() as u64 | u64::from(value) << 32).to_le_bytes());
            let hash = hash(word.as_bytes());
            let mut at = hash as usize & (size - 1);
            while bytes.slots[at] != [0; 8] {
                at = (at + 1) & (size - 1);
            }
            bytes.slots[at] = (hash & HIGH | entry).to_le_bytes();
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
        let mut at = hash as usize & last;
        // A table that was damaged may have no free slot.
        for _ in 0..=last {
            let slot = long(self.slots, at);
            let entry = (slot & !HIGH) as usize;
            if entry == 0 {
                return None;
            }
            if (slot ^ hash) & HIGH == 0 && same(self.text(entry - 1), word.as_bytes()) {
                return Some(self.value(entry - 1));
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
        let end = |entry: usize| (long(self.entries, entry) & !HIGH) as usize;
        let start = entry.checked_sub(1).map_or(0, end);
        self.text.get(start..end(entry)).unwrap_or_default()
    }

    fn value(&self, entry: usize) -> u32 {
        (long(self.entries, entry) >> 32) as u32
    }
}

/// The upper half of a number.
const HIGH: u64 = 0xFFFF_FFFF_0000_0000;

/// Pairs of numbers to numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct PairTable<'i> {
    /// First, second, and the number plus one.
    slots: &'i [[u8; 12]],
}

impl<'i> PairTable<'i> {
    pub(super) fn new(slots: &'i [[u8; 12]]) -> Self {
        Self { slots }
    }

    /// The table of distinct pairs, numbered from `first` on.
    pub(super) fn encode(pairs: impl ExactSizeIterator<Item = (u32, u32)>, first: u32) -> Vec<[u8; 12]> {
        let size = slots_for(pairs.len());
        let mut slots = vec![[0; 12]; size];
        for (value, pair) in (first + 1..).zip(pairs) {
            let mut at = hash_of_pair(pair) as usize & (size - 1);
            while slots[at][8..] != [0; 4] {
                at = (at + 1) & (size - 1);
            }
            slots[at] = pair_slot(pair, value);
        }
        slots
    }

    /// The number of a pair.
    pub(super) fn get(&self, pair: (u32, u32)) -> Option<u32> {
        let last = self.slots.len().checked_sub(1)?;
        let wanted = pair_slot(pair, 0);
        let mut at = hash_of_pair(pair) as usize & last;
        for _ in 0..=last {
            let slot = self.slots.get(at)?;
            let value = number(slot[8..].as_chunks().0, 0);
            if value == 0 {
                return None;
            }
            if slot[..8] == wanted[..8] {
                return Some(value - 1);
            }
            at = (at + 1) & last;
        }
        None
    }

    /// All pairs with their numbers, in no order that means anything.
    pub(super) fn iter(self) -> impl Iterator<Item = ((u32, u32), u32)> + 'i {
        self.slots.iter().filter_map(|slot| {
            let (cells, _) = slot.as_chunks();
            Some(((number(cells, 0), number(cells, 1)), number(cells, 2).checked_sub(1)?))
        })
    }
}

fn pair_slot((first, second): (u32, u32), value: u32) -> [u8; 12] {
    let mut slot = [0; 12];
    slot[..4].copy_from_slice(&first.to_le_bytes());
    slot[4..8].copy_from_slice(&second.to_le_bytes());
    slot[8..].copy_from_slice(&value.to_le_bytes());
    slot
}

/// A power of two, at least twice as many as there are entries.
fn slots_for(entries: usize) -> usize {
    (entries * 2).next_power_of_two()
}

fn hash_of_pair((first, second): (u32, u32)) -> u64 {
    mixed(u64::from(first) << 32 | u64::from(second))
}

/// A hash that is the same on every machine and in every version.
fn hash(word: &[u8]) -> u64 {
    let (chunks, rest) = word.as_chunks::<8>();
    let add = |hash: u64, number: u64| (hash.rotate_left(5) ^ number).wrapping_mul(FACTOR);
    let start = word.len() as u64;
    mixed(add(chunks.iter().fold(start, |hash, chunk| add(hash, u64::from_le_bytes(*chunk))), tail(rest)))
}

/// Whether two words are the same. Most are too short for a call to pay.
fn same(one: &[u8], other: &[u8]) -> bool {
    let ((chunks, rest), (other_chunks, other_rest)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let equal = |(one, other): (&[u8; 8], &[u8; 8])| u64::from_le_bytes(*one) == u64::from_le_bytes(*other);
    one.len() == other.len() && chunks.iter().zip(other_chunks).all(equal) && tail(rest) == tail(other_rest)
}

/// Fewer than eight bytes as a number, little endian: read from both ends, as wide as they are long.
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

/// 2⁶⁴ over the golden ratio, odd.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Every bit of a number to every bit of the result (the finaliser of MurmurHash3 by Appleby).
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
            pairs in prop::collection::btree_set((0u32..9, 0u32..9), 0..60), first in 0u32..1000,
        ) {
            let slots = PairTable::encode(pairs.iter().copied(), first);
            let table = PairTable::new(&slots);
            for pair in (0..9).flat_map(|one| (0..9).map(move |two| (one, two))) {
                let place = pairs.iter().position(|known| *known == pair);
                prop_assert_eq!(table.get(pair), place.map(|place| first + place as u32));
            }
            let all: BTreeMap<(u32, u32), u32> = table.iter().collect();
            prop_assert_eq!(all, pairs.iter().copied().zip(first..).collect());
        }

        #[test]
        fn damaged_tables_end_a_search(slots in prop::collection::vec(any::<u64>(), 0..9), word in ".{0,9}") {
            let slots: Vec<[u8; 8]> = slots.into_iter().map(u64::to_le_bytes).collect();
            let _ = Dictionary::new(&slots, &slots, b"text").get(&word);
            let slots: Vec<[u8; 12]> = slots.iter().map(|slot| pair_slot((1, 2), number(&[[slot[0]; 4]], 0))).collect();
            let _ = PairTable::new(&slots).get((3, 4));
        }
    }
}
