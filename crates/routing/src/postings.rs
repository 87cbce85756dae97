//! Lists of postings in blocks of items, and the searches through them.
//!
//! Items are in blocks of [`BLOCK`] by number. The postings of a term in one block are a *chunk*, and a directory holds
//! where each chunk begins and the highest impact in it. A search adds up one block at a time, whose scores stay in the
//! first-level cache whatever the size of the catalog.
//!
//! In a large catalog the directory gives an upper bound on the scores of each block. Blocks are read from the highest
//! bound down until none can change the result: the hits are the same as after reading everything, ties included.
//!
//! A posting is a 32-bit number: the item's place in the block in the upper bits, the impact in the lower bits. Impacts
//! keep all their bits, so nothing has to be scored again.

use std::cmp::Reverse;
use std::ops::Range;

use super::hit::{Hit, TopK};
use super::image::{Image, Part, number};
use super::index::{FULL_WEIGHT, QueryTerm, TermId, weighted};

/// The number of items in a block.
pub(super) const BLOCK: usize = 1 << PLACE_BITS;

const PLACE_BITS: u32 = 10;
const IMPACT_BITS: u32 = 32 - PLACE_BITS;

/// The largest impact: just below 16 in fixed point. The idf stays below ln(2 · 10⁶) ≈ 14.5 up to a million items.
pub(super) const MAX_IMPACT: u32 = (1 << IMPACT_BITS) - 1;

/// The directory keeps the upper 16 bits of an impact.
const MAX_SHIFT: u32 = IMPACT_BITS - 16;

/// The directory stores the start of the postings of every so many-th chunk, and for each chunk the distance from
/// there: less than 2¹⁶, since a chunk has at most as many postings as a block has items.
const STRIDE: usize = (1 << 16) / BLOCK;

/// Up to this many blocks everything is read: computing bounds would cost more than they save.
const BLOCKS_READ_WHOLE: usize = 16;

/// One item that a term occurs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    /// The item's position in [`contextweaver_core::catalog::Catalog::items`].
    pub item: u32,
    /// What the term adds to the item's score when the query has it once, in units of 2⁻¹⁸.
    pub impact: u32,
}

/// All lists of postings of an index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lists<'i> {
    pub(super) items: u32,
    /// Per term the position of its first chunk; one more entry at the end.
    pub(super) lists: &'i [[u8; 4]],
    /// Per chunk its directory entry; one more at the end.
    pub(super) chunks: &'i [[u8; 6]],
    /// Where the postings of every [`STRIDE`]-th chunk begin.
    pub(super) starts: &'i [[u8; 4]],
    pub(super) postings: &'i [[u8; 4]],
    /// Items that were removed, ascending: they score nothing.
    pub(super) gone: &'i [u32],
}

/// The directory entry of a chunk, three fields of 16 bits.
#[derive(Debug, Clone, Copy, Default)]
struct Chunk {
    block: u16,
    /// The upper bits of the highest impact.
    highest: u16,
    /// The distance of its postings from those of the last [`STRIDE`]-th chunk.
    offset: u16,
}

impl Chunk {
    fn of(cell: &[u8; 6]) -> Self {
        let [b0, b1, h0, h1, o0, o1] = *cell;
        let number = |low, high| u16::from_le_bytes([low, high]);
        Self { block: number(b0, b1), highest: number(h0, h1), offset: number(o0, o1) }
    }

    fn cell(self) -> [u8; 6] {
        let [b0, b1] = self.block.to_le_bytes();
        let [h0, h1] = self.highest.to_le_bytes();
        let [o0, o1] = self.offset.to_le_bytes();
        [b0, b1, h0, h1, o0, o1]
    }

    /// An upper bound on the impacts in the chunk.
    fn bound(self) -> u32 {
        u32::from(self.highest) << MAX_SHIFT | ((1 << MAX_SHIFT) - 1)
    }
}

/// The reusable memory of a search.
#[derive(Debug, Default)]
pub(super) struct Scores {
    /// The scores of the items of all blocks, or of one block at a time. All are 0 between searches.
    scores: Vec<u32>,
    /// Whether the scores are those of all blocks.
    whole: bool,
    bounds: Vec<(u32, u32)>,
    /// Per block and term of the query the number of the chunk plus one; 0 for none.
    places: Vec<u32>,
    read: usize,
}

impl Scores {
    /// How many postings the last search read.
    pub(super) fn read(&self) -> usize {
        self.read
    }

    /// Resets the count of postings read by the last search.
    pub(super) fn forget_read(&mut self) {
        self.read = 0;
    }
}

/// The result of a search by words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The best items, score descending, ties by item.
    pub(super) hits: Vec<Hit>,
    /// The best score of any item, whether allowed or not.
    pub(super) best: u32,
}

impl<'i> Lists<'i> {
    /// The lists of an image over `items` items, of which `gone`, ascending, were removed.
    pub(super) fn of(image: &'i Image, items: usize, gone: &'i [u32]) -> Self {
        Self {
            items: items as u32,
            lists: image.cells(Part::Lists),
            chunks: image.cells(Part::Chunks),
            starts: image.cells(Part::ChunkStarts),
            postings: image.cells(Part::Postings),
            gone,
        }
    }

    /// The number of postings of a term.
    pub(super) fn frequency(&self, term: TermId) -> usize {
        let (first, end) = self.chunk_range(term);
        self.start(end).saturating_sub(self.start(first))
    }

    /// The postings of a term, ascending by item.
    pub(super) fn iter(self, term: TermId) -> impl Iterator<Item = Posting> + 'i {
        let (first, end) = self.chunk_range(term);
        (first..end).flat_map(move |chunk| {
            let base = self.block(chunk) * BLOCK as u32;
            let postings = self.chunk(chunk).iter().map(|posting| u32::from_le_bytes(*posting));
            postings.map(move |posting| Posting { item: base + place(posting), impact: posting & MAX_IMPACT })
        })
    }

    /// The impact of a term in an item; 0 when the item does not have it.
    pub(super) fn impact(&self, term: TermId, item: u32) -> u32 {
        let (first, end) = self.chunk_range(term);
        let block = item / BLOCK as u32;
        let chunks = self.entries(first..end);
        chunks
            .binary_search_by_key(&block, |cell| u32::from(Chunk::of(cell).block))
            .map_or(0, |chunk| self.impact_in(first + chunk, item))
    }

    /// The impact that a chunk of the item's block has for the item.
    fn impact_in(&self, chunk: usize, item: u32) -> u32 {
        let postings = self.chunk(chunk);
        let wanted = item % BLOCK as u32;
        let at = postings.binary_search_by_key(&wanted, |posting| place(u32::from_le_bytes(*posting)));
        at.map_or(0, |at| number(postings, at) & MAX_IMPACT)
    }

    /// The `k` best items that `allow` lets through; it is called only for items that would enter. What is left in
    /// `scores` is for [`Self::score_of`], until [`Self::clear`].
    pub(super) fn search(
        &self,
        terms: &[QueryTerm],
        k: usize,
        allow: &impl Fn(u32) -> bool,
        scores: &mut Scores,
    ) -> Found {
        if self.blocks() > BLOCKS_READ_WHOLE {
            return self.search_pruned(terms, k, allow, scores);
        }
        let all = self.score_all(terms, scores);
        let mut top = TopK::new(k);
        let best = top.scan(0, all, allow);
        Found { hits: top.into_hits(), best }
    }

    /// The score of every item; kept until [`Self::clear`].
    pub(super) fn score_all<'s>(&self, terms: &[QueryTerm], scores: &'s mut Scores) -> &'s [u32] {
        scores.whole = true;
        scores.scores.resize(self.blocks() * BLOCK, 0);
        scores.read = 0;
        let (blocks, _) = scores.scores.as_chunks_mut::<BLOCK>();
        for term in terms {
            let (first, end) = self.chunk_range(term.term);
            for chunk in first..end {
                let postings = self.chunk(chunk);
                scores.read += postings.len();
                if let Some(block) = blocks.get_mut(self.block(chunk) as usize) {
                    add(block, postings, term.weight);
                }
            }
        }
        for item in self.gone {
            if let Some(score) = scores.scores.get_mut(*item as usize) {
                *score = 0;
            }
        }
        &scores.scores[..self.items as usize]
    }

    /// The score of one item after a search for `terms`.
    pub(super) fn score_of(&self, terms: &[QueryTerm], item: u32, scores: &Scores) -> u32 {
        if scores.whole {
            return scores.scores.get(item as usize).copied().unwrap_or(0);
        }
        let places = scores.places.get(item as usize / BLOCK * terms.len()..).unwrap_or_default();
        let in_chunk = |(term, place): (&QueryTerm, &u32)| {
            let impact = place.checked_sub(1).map_or(0, |chunk| self.impact_in(chunk as usize, item));
            weighted(impact, term.weight)
        };
        terms.iter().zip(places).map(in_chunk).sum()
    }

    /// Clears the scores of the last search.
    pub(super) fn clear(&self, scores: &mut Scores) {
        if scores.whole {
            scores.scores.fill(0);
            scores.whole = false;
        }
    }

    /// [`Self::search`] with bounds on the blocks.
    fn search_pruned(&self, terms: &[QueryTerm], k: usize, allow: &impl Fn(u32) -> bool, scores: &mut Scores) -> Found {
        let Scores { scores: window, whole, bounds, places, read } = scores;
        (*whole, *read) = (false, 0);
        bounds.clear();
        bounds.extend((0..self.blocks() as u32).map(|block| (0, block)));
        places.clear();
        places.resize(bounds.len() * terms.len(), 0);
        for (at, term) in terms.iter().enumerate() {
            let (first, end) = self.chunk_range(term.term);
            for (chunk, cell) in (first..).zip(self.entries(first..end)) {
                let entry = Chunk::of(cell);
                let block = usize::from(entry.block);
                let Some((bound, _)) = bounds.get_mut(block) else { continue };
                *bound += weighted(entry.bound(), term.weight);
                places[block * terms.len() + at] = chunk as u32 + 1;
            }
        }
        bounds.retain(|(bound, _)| *bound > 0);
        bounds.sort_unstable_by_key(|(bound, block)| (Reverse(*bound), *block));
        window.clear();
        window.resize(BLOCK, 0);
        let mut top = TopK::new(k);
        let mut best = 0;
        for &(bound, block) in &*bounds {
            if bound < top.threshold() && bound <= best {
                break;
            }
            let Some(window) = window.first_chunk_mut::<BLOCK>() else { break };
            let places = &places[block as usize * terms.len()..];
            for (term, place) in terms.iter().zip(places) {
                if let Some(chunk) = place.checked_sub(1) {
                    let postings = self.chunk(chunk as usize);
                    *read += postings.len();
                    add(window, postings, term.weight);
                }
            }
            let first = block * BLOCK as u32;
            let items = (self.items.saturating_sub(first) as usize).min(BLOCK);
            let gone = self.gone.iter().skip(self.gone.partition_point(|item| *item < first));
            for item in gone.take_while(|item| **item < first + BLOCK as u32) {
                window[(item - first) as usize] = 0;
            }
            best = best.max(top.scan(first, &window[..items], allow));
            window.fill(0);
        }
        window.clear();
        Found { hits: top.into_hits(), best }
    }

    fn blocks(&self) -> usize {
        (self.items as usize).div_ceil(BLOCK)
    }

    fn chunk_range(&self, term: TermId) -> (usize, usize) {
        let at = term as usize;
        (number(self.lists, at) as usize, number(self.lists, at + 1) as usize)
    }

    fn block(&self, chunk: usize) -> u32 {
        u32::from(self.entry(chunk).block)
    }

    fn entry(&self, chunk: usize) -> Chunk {
        self.chunks.get(chunk).map_or_else(Chunk::default, Chunk::of)
    }

    fn entries(&self, chunks: Range<usize>) -> &'i [[u8; 6]] {
        self.chunks.get(chunks).unwrap_or_default()
    }

    fn start(&self, chunk: usize) -> usize {
        (number(self.starts, chunk / STRIDE) as usize).saturating_add(usize::from(self.entry(chunk).offset))
    }

    fn chunk(&self, chunk: usize) -> &'i [[u8; 4]] {
        self.postings.get(self.start(chunk)..self.start(chunk + 1)).unwrap_or_default()
    }

    /// Checks what all lists that were built satisfy; the error says what is wrong.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let check = |holds: bool, reason| if holds { Ok(()) } else { Err(reason) };
        let lists = self.lists.iter().map(|list| u32::from_le_bytes(*list));
        check(number(self.lists, 0) == 0 && lists.is_sorted(), "the lists of postings overlap")?;
        let chunks = self.chunks.len().saturating_sub(1);
        check(
            number(self.lists, self.lists.len().wrapping_sub(1)) as usize == chunks,
            "a list of postings is missing",
        )?;
        check(self.starts.len() == self.chunks.len().div_ceil(STRIDE), "a chunk has no place")?;
        let starts = (0..self.chunks.len()).map(|chunk| self.start(chunk));
        check(self.start(0) == 0 && starts.is_sorted(), "the chunks of postings overlap")?;
        check(self.start(chunks) == self.postings.len(), "the chunks do not end with the postings")?;
        for term in 0..self.lists.len().saturating_sub(1) as u32 {
            let (first, end) = self.chunk_range(term);
            check(
                (first..end).is_sorted_by(|one, next| self.block(*one) < self.block(*next)),
                "chunks are out of order",
            )?;
            for chunk in first..end {
                let postings = self.chunk(chunk).iter().map(|posting| u32::from_le_bytes(*posting));
                let highest = postings.clone().map(|posting| posting & MAX_IMPACT).max().unwrap_or(0);
                check(
                    highest >> MAX_SHIFT == u32::from(self.entry(chunk).highest),
                    "a bound differs from the highest impact of its chunk",
                )?;
                let ascends = postings.clone().is_sorted_by(|one, next| place(*one) < place(*next));
                check(ascends, "postings are out of order")?;
                check(postings.clone().all(|posting| posting & MAX_IMPACT > 0), "an impact is out of range")?;
                let base = u64::from(self.block(chunk)) * BLOCK as u64;
                let is_of_item = |posting| base + u64::from(place(posting)) < u64::from(self.items);
                check(postings.clone().all(is_of_item), "a posting belongs to no item")?;
            }
        }
        Ok(())
    }
}

/// The directory of lists while they are being filled, block after block.
pub(super) struct Directory {
    /// Per term the position of its first chunk, then the end of the last.
    lists: Vec<u32>,
    /// Per chunk the start of its postings, its highest impact and its block; one more entry at the end.
    chunks: Vec<(u32, u16, u16)>,
    /// Per term the positions of its next chunk and its next posting.
    next: Vec<(u32, u32)>,
    postings: usize,
}

impl Directory {
    /// A directory for terms, and pairs after them, with this many chunks and postings each.
    pub(super) fn new(
        terms: impl Iterator<Item = (usize, usize)>,
        pairs: impl Iterator<Item = (usize, usize)>,
    ) -> Self {
        let mut directory = Self { lists: Vec::new(), chunks: Vec::new(), next: Vec::new(), postings: 0 };
        let mut chunk = 0;
        for (chunks, postings) in terms.chain(pairs) {
            directory.lists.push(chunk);
            directory.next.push((chunk, directory.postings as u32));
            chunk += chunks as u32;
            directory.postings += postings;
        }
        directory.lists.push(chunk);
        directory.chunks = vec![(directory.postings as u32, 0, 0); chunk as usize + 1];
        directory
    }

    /// The number of postings.
    pub(super) fn postings(&self) -> usize {
        self.postings
    }

    /// Writes the postings of one term in its next block to their place in `cells`.
    pub(super) fn put(&mut self, term: TermId, block: u16, postings: &[u32], cells: &mut [[u8; 4]]) {
        let (chunk, start) = self.next[term as usize];
        let highest = postings.iter().map(|posting| posting & MAX_IMPACT).max().unwrap_or(0) >> MAX_SHIFT;
        self.chunks[chunk as usize] = (start, highest as u16, block);
        for (cell, posting) in cells[start as usize..].iter_mut().zip(postings) {
            *cell = posting.to_le_bytes();
        }
        self.next[term as usize] = (chunk + 1, start + postings.len() as u32);
    }

    pub(super) fn lists(&self) -> impl Iterator<Item = [u8; 4]> {
        self.lists.iter().map(|list| list.to_le_bytes())
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = [u8; 6]> {
        self.chunks.chunks(STRIDE).flat_map(|chunks| {
            let (base, ..) = chunks[0];
            chunks
                .iter()
                .map(move |&(start, highest, block)| Chunk { block, highest, offset: (start - base) as u16 }.cell())
        })
    }

    pub(super) fn starts(&self) -> impl Iterator<Item = [u8; 4]> {
        self.chunks.iter().step_by(STRIDE).map(|(start, ..)| start.to_le_bytes())
    }
}

/// A posting as a number.
pub(super) fn packed(item: u32, impact: u32) -> u32 {
    (item % BLOCK as u32) << IMPACT_BITS | impact
}

fn place(posting: u32) -> u32 {
    posting >> IMPACT_BITS
}

/// Adds the postings of one chunk to the scores of its block.
fn add(scores: &mut [u32; BLOCK], postings: &[[u8; 4]], weight: u32) {
    let postings = postings.iter().map(|posting| u32::from_le_bytes(*posting));
    if weight == FULL_WEIGHT {
        for posting in postings {
            scores[place(posting) as usize] += posting & MAX_IMPACT;
        }
    } else {
        for posting in postings {
            scores[place(posting) as usize] += weighted(posting & MAX_IMPACT, weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bytes of lists over `items` items, from each term's items and impacts.
    struct Made {
        items: u32,
        lists: Vec<[u8; 4]>,
        chunks: Vec<[u8; 6]>,
        starts: Vec<[u8; 4]>,
        postings: Vec<[u8; 4]>,
    }

    impl Made {
        fn of(items: u32, terms: &[Vec<(u32, u32)>]) -> Self {
            let block = |item: u32| (item / BLOCK as u32) as u16;
            let chunked = |term: &Vec<(u32, u32)>| -> Vec<(u16, Vec<u32>)> {
                let chunks = term.chunk_by(|one, next| block(one.0) == block(next.0));
                chunks
                    .map(|chunk| {
                        (block(chunk[0].0), chunk.iter().map(|(item, impact)| packed(*item, *impact)).collect())
                    })
                    .collect()
            };
            let sizes = terms.iter().map(|term| (chunked(term).len(), term.len()));
            let mut directory = Directory::new(sizes, std::iter::empty());
            let mut postings = vec![[0; 4]; directory.postings()];
            for (number, term) in (0..).zip(terms) {
                for (block, chunk) in chunked(term) {
                    directory.put(number, block, &chunk, &mut postings);
                }
            }
            let (lists, chunks) = (directory.lists().collect(), directory.chunks().collect());
            Self { items, lists, chunks, starts: directory.starts().collect(), postings }
        }

        fn lists(&self) -> Lists<'_> {
            let Self { items, lists, chunks, starts, postings } = self;
            Lists { items: *items, lists, chunks, starts, postings, gone: &[] }
        }
    }

    fn terms() -> impl Strategy<Value = (u32, Vec<Vec<(u32, u32)>>)> {
        // Few different impacts, so that scores are often equal; some lists are dense, some are rare.
        (1u32..6000).prop_flat_map(|items| {
            let list = (1u32..400, 0u32..400, 1u32..5).prop_map(move |(step, first, levels)| {
                let items = (first..items).step_by(step as usize);
                items.map(|item| (item, (item.wrapping_mul(2_654_435_761) >> 16) % levels * 70_000 + 1)).collect()
            });
            (Just(items), prop::collection::vec(list, 1..7))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_way_to_search_is_the_plain_one(
            (items, terms) in terms(),
            weights in prop::collection::vec(prop::sample::select(&[FULL_WEIGHT, 100, 400][..]), 7),
            k in 0usize..40,
            modulus in 1u32..4,
            gone in prop::collection::btree_set(0u32..6000, 0..9),
        ) {
            let made = Made::of(items, &terms);
            let gone: Vec<u32> = gone.into_iter().filter(|item| *item < items).collect();
            let lists = Lists { gone: &gone, ..made.lists() };
            prop_assert_eq!(lists.check(), Ok(()));
            let query: Vec<QueryTerm> =
                (0..terms.len() as u32).zip(&weights).map(|(term, weight)| QueryTerm { term, weight: *weight }).collect();
            let mut plain = vec![0u32; items as usize];
            for (term, weight) in terms.iter().zip(&weights) {
                for (item, impact) in term {
                    plain[*item as usize] += weighted(*impact, *weight);
                }
            }
            gone.iter().for_each(|item| plain[*item as usize] = 0);
            let allow = |item: u32| item.is_multiple_of(modulus);
            let mut hits: Vec<Hit> = (0..).zip(&plain).map(|(item, score)| Hit { item, score: u64::from(*score) }).collect();
            hits.retain(|hit| hit.score > 0 && allow(hit.item));
            hits.sort_by_key(Hit::order);
            hits.truncate(k);
            let expected = Found { hits, best: plain.iter().copied().max().unwrap_or(0) };
            let mut scores = Scores::default();
            // Twice with one memory: a search must leave nothing behind.
            for _ in 0..2 {
                prop_assert_eq!(&lists.search(&query, k, &allow, &mut scores), &expected);
                for (item, score) in (0..).zip(&plain).step_by(97).filter(|(item, _)| !gone.contains(item)) {
                    prop_assert_eq!(lists.score_of(&query, item, &scores), *score);
                    let parts = query.iter().map(|term| weighted(lists.impact(term.term, item), term.weight));
                    prop_assert_eq!(parts.sum::<u32>(), *score);
                }
                lists.clear(&mut scores);
                prop_assert_eq!(&lists.search_pruned(&query, k, &allow, &mut scores), &expected);
                if !gone.contains(&0) {
                    prop_assert_eq!(lists.score_of(&query, 0, &scores), plain[0]);
                }
                lists.clear(&mut scores);
            }
        }

        #[test]
        fn a_list_is_read_as_it_was_written((items, terms) in terms()) {
            let made = Made::of(items, &terms);
            for (number, term) in (0..).zip(&terms) {
                let read: Vec<(u32, u32)> = made.lists().iter(number).map(|posting| (posting.item, posting.impact)).collect();
                prop_assert_eq!(&read, term);
                prop_assert_eq!(made.lists().frequency(number), term.len());
            }
            prop_assert_eq!(made.lists().frequency(terms.len() as u32), 0);
        }
    }

    #[test]
    fn full_blocks_are_within_the_reach_of_an_offset() {
        let items = (BLOCK * (2 * STRIDE + 1)) as u32;
        let all: Vec<(u32, u32)> = (0..items).map(|item| (item, item % 1000 + 1)).collect();
        let made = Made::of(items, &[all.clone(), vec![(items - 1, 5)]]);
        let read: Vec<(u32, u32)> = made.lists().iter(0).map(|posting| (posting.item, posting.impact)).collect();
        assert!(read == all);
        assert_eq!(made.lists().impact(1, items - 1), 5);
        assert_eq!(made.lists().check(), Ok(()));
        assert_eq!(made.starts.len(), 3);
    }

    #[test]
    fn blocks_that_cannot_matter_are_not_read() {
        let rare = vec![(40_000, MAX_IMPACT)];
        let common: Vec<(u32, u32)> = (0..50_000).map(|item| (item, 1000)).collect();
        let made = Made::of(50_000, &[rare, common]);
        let query = [0, 1].map(|term| QueryTerm { term, weight: FULL_WEIGHT });
        let mut scores = Scores::default();
        let found = made.lists().search(&query, 1, &|_| true, &mut scores);
        assert_eq!(found.hits, [Hit { item: 40_000, score: u64::from(MAX_IMPACT) + 1000 }]);
        assert_eq!(scores.read(), BLOCK + 1);
    }
}
