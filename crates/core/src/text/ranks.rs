//! The tokens of a vocabulary as one table in the binary, used in place and never decoded.
//!
//! A structure on the heap would cost tens of megabytes and tens of milliseconds in every process that counts a text.
//! The build script, which includes this file, makes the table, so both agree about its form. All numbers are
//! little-endian `u32`.
//!
//! | words | content |
//! |---|---|
//! | 2 | the number of tokens; the number of slots, a power of two |
//! | one per slot | 0 when free, else the upper bits of the token's hash and its rank plus one |
//! | one per token, and one | where its bytes start, by rank; the last is the end of all bytes |
//! | the rest | the bytes of all tokens, by rank |

/// Bits of a slot that hold a rank plus one; the others hold bits of the hash.
pub(crate) const RANK_BITS: u32 = 18;

/// A table of tokens and their ranks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranks {
    slots: &'static [[u8; 4]],
    starts: &'static [[u8; 4]],
    bytes: &'static [u8],
}

impl Ranks {
    /// The table in these bytes; a table of another length does not compile.
    pub(crate) const fn new(table: &'static [u8]) -> Self {
        let (words, _) = table.as_chunks::<4>();
        let (header, words) = words.split_at(2);
        let (slots, words) = words.split_at(u32::from_le_bytes(header[1]) as usize);
        let (starts, bytes) = words.split_at(u32::from_le_bytes(header[0]) as usize + 1);
        Self { slots, starts, bytes: bytes.as_flattened() }
    }

    /// The rank of the token with these bytes.
    pub(crate) fn get(&self, token: &[u8]) -> Option<u32> {
        let hash = hash(token);
        let mut at = hash as usize;
        loop {
            // There are always free slots.
            let slot = number(self.slots, at & (self.slots.len() - 1))?;
            let rank = (slot & ((1 << RANK_BITS) - 1)).checked_sub(1)?;
            if slot >> RANK_BITS == mark(hash) && self.token(rank) == Some(token) {
                return Some(rank);
            }
            at += 1;
        }
    }

    fn token(&self, rank: u32) -> Option<&'static [u8]> {
        let rank = rank as usize;
        self.bytes.get(number(self.starts, rank)? as usize..number(self.starts, rank + 1)? as usize)
    }
}

fn number(words: &[[u8; 4]], at: usize) -> Option<u32> {
    words.get(at).map(|word| u32::from_le_bytes(*word))
}

/// FNV-1a, with the upper bits folded into the lower ones, which choose the slot.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
    hash ^ (hash >> 29)
}

/// The bits of a hash that a slot stores.
pub(crate) fn mark(hash: u64) -> u32 {
    (hash >> (32 + RANK_BITS)) as u32
}
