//! The bytes of an index and where its parts are.
//!
//! An index is one buffer, the same in memory and in a file, and every part of it is read in place. An index that was
//! built, one that was read and one that is mapped are therefore the same bytes, read by the same code, and opening one
//! takes constant time. Numbers are little endian and read byte by byte, which costs nothing on little-endian machines
//! and is correct on others, whatever the alignment. This module does not know what the parts contain.

use bytes::Bytes;

/// The parts of an index, in the order in which they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// What scores depend on in the catalog: see [`super::indexing`].
    Means,
    /// Words as the catalog writes them: see [`super::dictionary`].
    WordSlots,
    WordEntries,
    WordText,
    /// Stems of words.
    TermSlots,
    TermEntries,
    TermText,
    /// Pairs of neighbouring terms.
    PairStarts,
    PairSeconds,
    /// Lists of postings: see [`super::postings`].
    Lists,
    Chunks,
    ChunkStarts,
    Postings,
    /// Names of items: see [`super::exact`].
    NameBuckets,
    Names,
    /// Words by first letter and length: see [`super::spelling`].
    SpellingBlocks,
    SpellingLetters,
    SpellingTerms,
    /// The vectors of items: see [`super::semantic`].
    Vectors,
    Sketches,
}

/// The number of parts.
pub(super) const PARTS: usize = Part::Sketches as usize + 1;

/// Every part begins at a multiple of this: the length of a cache line.
pub(super) const ALIGNMENT: usize = 64;

/// The bytes of an index with the bounds of its parts.
#[derive(Debug, Clone, Default)]
pub(super) struct Image {
    bytes: Bytes,
    /// Where each part begins and ends.
    bounds: [(usize, usize); PARTS],
}

impl Image {
    /// The parts of these lengths in `bytes`; `None` when the lengths do not add up to that of `bytes`.
    pub(super) fn new(bytes: Bytes, lengths: &[u64; PARTS]) -> Option<Self> {
        let bounds = bounds(lengths)?;
        (end(&bounds) == bytes.len()).then_some(Self { bytes, bounds })
    }

    /// The number of bytes that parts of these lengths take; `None` when it is out of range.
    pub(super) fn size(lengths: &[u64; PARTS]) -> Option<usize> {
        bounds(lengths).map(|bounds| end(&bounds))
    }

    /// All bytes of the index, parts and padding.
    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The length of every part in bytes.
    pub(super) fn lengths(&self) -> [u64; PARTS] {
        self.bounds.map(|(start, end)| (end - start) as u64)
    }

    /// The bytes of one part.
    pub(super) fn part(&self, part: Part) -> &[u8] {
        let (start, end) = self.bounds[part as usize];
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// A part as cells of equal size; bytes that do not fill a cell are left out.
    pub(super) fn cells<const N: usize>(&self, part: Part) -> &[[u8; N]] {
        self.part(part).as_chunks().0
    }
}

fn bounds(lengths: &[u64; PARTS]) -> Option<[(usize, usize); PARTS]> {
    let mut bounds = [(0, 0); PARTS];
    let mut at = 0usize;
    for (bounds, length) in bounds.iter_mut().zip(lengths) {
        let start = at.checked_next_multiple_of(ALIGNMENT)?;
        at = start.checked_add(usize::try_from(*length).ok()?)?;
        *bounds = (start, at);
    }
    Some(bounds)
}

fn end(bounds: &[(usize, usize); PARTS]) -> usize {
    bounds.last().map_or(0, |(_, end)| *end)
}

/// Puts an image together, part by part in order.
#[derive(Debug, Default)]
pub(super) struct ImageBuilder {
    bytes: Vec<u8>,
    bounds: Vec<(usize, usize)>,
}

impl ImageBuilder {
    /// A builder in which all parts before `part` are empty.
    #[cfg(test)]
    pub(super) fn until(part: Part) -> Self {
        Self { bytes: Vec::new(), bounds: vec![(0, 0); part as usize] }
    }

    /// Adds the next part, which must be `part`.
    pub(super) fn push(&mut self, part: Part, bytes: impl IntoIterator<Item: AsRef<[u8]>>) {
        debug_assert_eq!(part as usize, self.bounds.len(), "parts come in their order");
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        let start = self.bytes.len();
        bytes.into_iter().for_each(|piece| self.bytes.extend_from_slice(piece.as_ref()));
        self.bounds.push((start, self.bytes.len()));
    }

    /// The image; parts that were not added are empty.
    pub(super) fn finish(mut self) -> Image {
        let end = self.bytes.len().next_multiple_of(ALIGNMENT);
        if self.bounds.len() < PARTS {
            self.bytes.resize(end, 0);
        }
        self.bounds.resize(PARTS, (end, end));
        let mut bounds = [(0, 0); PARTS];
        bounds.copy_from_slice(&self.bounds);
        Image { bytes: Bytes::from(self.bytes), bounds }
    }
}

/// The number in a cell of four bytes; 0 outside the part.
pub(super) fn number(cells: &[[u8; 4]], at: usize) -> u32 {
    cells.get(at).map_or(0, |cell| u32::from_le_bytes(*cell))
}

/// The number in a cell of eight bytes; 0 outside the part.
pub(super) fn long(cells: &[[u8; 8]], at: usize) -> u64 {
    cells.get(at).map_or(0, |cell| u64::from_le_bytes(*cell))
}
