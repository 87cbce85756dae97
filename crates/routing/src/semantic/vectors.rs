//! The vectors of a catalog and the search for the nearest.
//!
//! Comparing every vector in full would read all of them for every query, so a search takes a cheaper first look and
//! compares only the best of it in full:
//!
//! - In a small catalog the first look reads the first dimensions, which carry most by the way the table is made. They
//!   are stored together in memory.
//! - In a large one it reads *sketches* of one bit per dimension: see [`super::sketch`].
//!
//! What a first look may lose are neighbours far down the list; the tests hold it against a plain comparison of everything.

use std::borrow::Borrow;

use pulp::{Arch, NullaryFnOnce};
use rayon::prelude::*;

use super::sketch::{Apart, Plane, SLICE, Sketch, planes, sketch};
use super::table::{DIMS, QueryVector, Table, ToolVector};
use crate::image::{Image, ImageBuilder, Part};
use contextweaver_core::catalog::SelectableItem;

/// The number of dimensions that the first look reads in a small catalog.
const HEAD: usize = 64;

/// Catalogs of more items use sketches instead.
const MOST_HEADS: usize = 4096;

/// The first look keeps this many times the number of items asked for, and never fewer than [`LEAST_KEPT`].
const KEPT: usize = 2;
const LEAST_KEPT: usize = 64;

/// Sketches are coarse: a look at them keeps this many times more.
const SKETCHED: usize = 8;

/// The number of dimensions multiplied at a time.
const LANES: usize = 16;

/// The number of rows compared before the near ones among them are picked.
const BLOCK: usize = 128;

/// An item near a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Near {
    /// The item's position in [`contextweaver_core::catalog::Catalog::items`].
    pub item: u32,
    /// The cosine of item and query in units of 1/90 000 (both vectors are at a scale of 300).
    pub similarity: i32,
}

impl Near {
    /// Sorts the nearest first, ties by item.
    pub(crate) fn order(&self) -> u64 {
        let far = !(self.similarity as u32 ^ 1 << 31);
        u64::from(far) << 32 | u64::from(self.item)
    }
}

/// The vectors of all items of a catalog, by item number, read in place in an index.
#[derive(Debug, Clone, Copy)]
pub struct DocumentVectors<'i> {
    vectors: &'i [[u8; DIMS]],
    /// The sketches of each [`SLICE`] items; empty in a small catalog.
    sketches: &'i [[Plane; DIMS]],
}

/// The first dimensions of the vectors of a small catalog, as the integers that the machine multiplies fastest: bytes
/// would have to be widened each time.
#[derive(Debug, Default)]
pub(crate) struct Heads(Vec<[i16; HEAD]>);

impl Heads {
    /// The heads of these vectors, where the first look needs them.
    pub(crate) fn of(vectors: &DocumentVectors) -> Self {
        let needed = if vectors.sketches.is_empty() { vectors.vectors } else { &[] };
        Self(
            needed
                .iter()
                .filter_map(|vector| vector.first_chunk().map(|head| head.map(|value| i16::from(value as i8))))
                .collect(),
        )
    }
}

impl<'i> DocumentVectors<'i> {
    /// Encodes every item into the next parts of an image.
    pub(crate) fn build<I: Borrow<SelectableItem> + Sync>(items: &[I], table: &Table, image: &mut ImageBuilder) {
        let vectors: Vec<ToolVector> = items.par_iter().map(|item| table.encode_tool(item.borrow())).collect();
        Self::write(&vectors, MOST_HEADS, image);
    }

    /// Adds the vectors, and sketches when they are more than `most_heads`.
    fn write(vectors: &[ToolVector], most_heads: usize, image: &mut ImageBuilder) {
        image.push(Part::Vectors, vectors.iter().map(|vector| vector.0.map(|value| value as u8)));
        let sketched = if vectors.len() > most_heads { vectors } else { &[] };
        let slice = |vectors: &[ToolVector]| {
            let sketches: Vec<Sketch> = vectors.iter().map(|vector| sketch(&vector.0)).collect();
            planes(&sketches)
        };
        let slices: Vec<[Plane; DIMS]> = sketched.par_chunks(SLICE).map(slice).collect();
        image.push(Part::Sketches, slices.as_flattened());
    }

    /// The vectors of an index.
    pub(crate) fn of(image: &'i Image) -> Self {
        Self { vectors: image.cells(Part::Vectors), sketches: image.cells(Part::Sketches).as_chunks().0 }
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.vectors.len()
    }

    /// Whether there are no vectors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.vectors.is_empty()
    }

    /// The similarity of one item; 0 for an item that does not exist.
    #[must_use]
    #[inline(always)]
    pub fn similarity(&self, item: u32, query: &QueryVector) -> i32 {
        if let Some(vector) = self.vectors.get(item as usize) { dot(vector, &query.0) } else { 0 }
    }

    /// Reads a byte of each cache line of the vectors of `items`: vectors that are far apart are fetched from memory
    /// one after the other when each is compared before the next is requested, and all at once when they are only
    /// touched.
    #[inline(always)]
    fn touch(&self, items: &[u32]) {
        let mut read = 0;
        for item in items {
            if let Some(vector) = self.vectors.get(*item as usize) {
                read |= vector[0] | vector[DIMS / 2] | vector[DIMS - 1];
            }
        }
        std::hint::black_box(read);
    }

    /// The `k` items nearest to `query` that `allow` lets through, best first, ties by item, none with a similarity of
    /// 0 or less; and the best similarity of all items except those of `gone` (ascending), at least 0, which depends on
    /// neither `k` nor `allow`.
    pub(crate) fn proposals(
        &self,
        heads: &Heads,
        query: &QueryVector,
        k: usize,
        gone: &[u32],
        allow: &impl Fn(u32) -> bool,
    ) -> (Vec<Near>, i32) {
        let least = k.saturating_mul(KEPT).max(LEAST_KEPT);
        let (mut near, best) = Arch::new().dispatch(Look { vectors: *self, heads, query, least, gone, allow });
        keep(&mut near, k);
        near.retain(|near| near.similarity > 0);
        near.sort_unstable_by_key(Near::order);
        (near, best)
    }

    /// The `k` nearest items by comparing every vector in full, as a first look may lose some of them.
    #[cfg(test)]
    fn nearest_plain(&self, query: &QueryVector, k: usize, allow: impl Fn(u32) -> bool) -> Vec<Near> {
        let mut near = best(self.vectors, k, 0, &allow, |row| dot(row, &query.0));
        near.sort_unstable_by_key(Near::order);
        near
    }
}

/// A first look, to be run in the machine's widest instructions: everything is inlined where it is run.
struct Look<'a, A> {
    vectors: DocumentVectors<'a>,
    heads: &'a Heads,
    query: &'a QueryVector,
    /// The number of items to compare in full.
    least: usize,
    /// The items that were removed, ascending.
    gone: &'a [u32],
    allow: &'a A,
}

impl<A: Fn(u32) -> bool> NullaryFnOnce for Look<'_, A> {
    /// What the look keeps of the allowed items, with the full similarity; and the best similarity, at least 0, of the
    /// [`LEAST_KEPT`] that it keeps of all.
    type Output = (Vec<Near>, i32);

    #[inline(always)]
    fn call(self) -> (Vec<Near>, i32) {
        if self.vectors.sketches.is_empty() { self.by_heads() } else { self.by_sketches() }
    }
}

impl<A: Fn(u32) -> bool> Look<'_, A> {
    #[inline(always)]
    fn by_heads(&self) -> (Vec<Near>, i32) {
        let there = |item: u32| self.gone.binary_search(&item).is_err();
        let mut near = self.nearest_heads(self.least, &there);
        // The nearest of all come first, whose best similarity no filter may change.
        let first = LEAST_KEPT.min(near.len());
        if first < near.len() {
            near.select_nth_unstable_by_key(first, Near::order);
        }
        self.compare(&mut near);
        let best = near[..first].iter().map(|near| near.similarity).max().unwrap_or(0).max(0);
        if !near.iter().all(|near| (self.allow)(near.item)) {
            near = self.nearest_heads(self.least, self.allow);
            self.compare(&mut near);
        }
        (near, best)
    }

    /// The `k` nearest by the first dimensions, with the similarity by these.
    #[inline(always)]
    fn nearest_heads(&self, k: usize, allow: &impl Fn(u32) -> bool) -> Vec<Near> {
        let Some(head) = self.query.0.first_chunk::<HEAD>().map(widened) else { return Vec::new() };
        best(&self.heads.0, k, i32::MIN, allow, |row| {
            row.iter().zip(&head).map(|(&row, &head)| i32::from(row) * i32::from(head)).sum()
        })
    }

    #[inline(always)]
    fn by_sketches(&self) -> (Vec<Near>, i32) {
        let Self { vectors, query, .. } = self;
        let apart = Apart::new(vectors.sketches, vectors.len(), sketch(&query.0));
        let there = |item: u32| self.gone.binary_search(&item).is_err();
        let first = apart.closest(LEAST_KEPT * SKETCHED, &there);
        let items = apart.closest(self.least.saturating_mul(SKETCHED), self.allow);
        vectors.touch(&items);
        let mut near: Vec<Near> = items.iter().map(|item| Near { item: *item, similarity: 0 }).collect();
        self.compare(&mut near);
        // Nearly all of these are in the cache by now, so that comparing them again costs less than looking for them.
        let mut best = 0;
        for item in first {
            best = best.max(vectors.similarity(item, query));
        }
        (near, best)
    }

    /// Replaces the similarities by those of all dimensions.
    #[inline(always)]
    fn compare(&self, near: &mut [Near]) {
        for near in near {
            near.similarity = self.vectors.similarity(near.item, self.query);
        }
    }
}

fn widened(head: &[i8; HEAD]) -> [i16; HEAD] {
    head.map(i16::from)
}

/// The inner product. Sums of this many products of two bytes are far within 32 bits.
#[inline(always)]
fn dot(left: &[u8; DIMS], right: &[i8; DIMS]) -> i32 {
    // One sum per lane, added up once: a sum over all dimensions at once is vectorised well for one width of registers
    // and badly for others.
    let mut sums = [0; LANES];
    for (left, right) in left.as_chunks::<LANES>().0.iter().zip(right.as_chunks::<LANES>().0) {
        for (sum, (&left, &right)) in sums.iter_mut().zip(left.iter().zip(right)) {
            *sum += i32::from(left as i8) * i32::from(right);
        }
    }
    sums.iter().sum()
}

/// Moves what `keep` lets through to the front, in order, and returns how many there are. Has no branch on the answer,
/// which could not be predicted.
#[inline(always)]
fn keep_where<T: Copy>(cells: &mut [T], keep: impl Fn(T) -> bool) -> usize {
    let mut kept = 0;
    for at in 0..cells.len() {
        let cell = cells[at];
        cells[kept] = cell;
        kept += usize::from(keep(cell));
    }
    kept
}

/// The `k` rows with the highest `score` above `least`, ties by number, in no particular order.
#[inline(always)]
fn best<R>(rows: &[R], k: usize, least: i32, allow: &impl Fn(u32) -> bool, score: impl Fn(&R) -> i32) -> Vec<Near> {
    if k == 0 {
        return Vec::new();
    }
    let mut found: Vec<Near> = Vec::with_capacity(k.saturating_mul(2).saturating_add(BLOCK).min(rows.len()));
    // A row at or below the `k`-th score so far cannot enter: of equal scores the later has the higher number.
    let mut threshold = least;
    let mut near = [Near { item: 0, similarity: 0 }; BLOCK];
    for (at, block) in rows.chunks(BLOCK).enumerate() {
        let mut count = 0;
        for (item, row) in ((at * BLOCK) as u32..).zip(block) {
            let similarity = score(row);
            near[count % BLOCK] = Near { item, similarity };
            count += usize::from(similarity > threshold);
        }
        let count = keep_where(&mut near[..count], |near| allow(near.item));
        found.extend_from_slice(&near[..count]);
        if found.len() >= k.saturating_mul(2) {
            keep(&mut found, k);
            threshold = found.last().map_or(least, |last| last.similarity);
        }
    }
    keep(&mut found, k);
    found
}

/// Keeps the `k` nearest, the last of them at the end, the others in no particular order.
fn keep(found: &mut Vec<Near>, k: usize) {
    if let Some(last) = k.checked_sub(1).filter(|last| *last < found.len()) {
        found.select_nth_unstable_by_key(last, Near::order);
    }
    found.truncate(k);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vector() -> impl Strategy<Value = [i8; DIMS]> {
        prop::collection::vec(-3i8..=3, DIMS).prop_map(|values| {
            let mut vector = [0; DIMS];
            vector.copy_from_slice(&values);
            vector
        })
    }

    /// An image with these vectors, and sketches of them if wanted.
    fn image(rows: &[[i8; DIMS]], sketched: bool) -> Image {
        let mut image = ImageBuilder::until(Part::Vectors);
        let vectors: Vec<ToolVector> = rows.iter().copied().map(ToolVector).collect();
        DocumentVectors::write(&vectors, if sketched { 0 } else { MOST_HEADS }, &mut image);
        image.finish()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn the_scan_equals_sorting_everything(
            rows in prop::collection::vec(vector(), 0..200),
            values in vector(),
            k in 0usize..20,
            modulus in 1u32..4,
        ) {
            let query = QueryVector(values);
            let image = image(&rows, false);
            let vectors = DocumentVectors::of(&image);
            let allow = |item: u32| item.is_multiple_of(modulus);
            let mut expected: Vec<Near> = (0..rows.len() as u32)
                .filter(|item| allow(*item))
                .map(|item| {
                    let row = rows[item as usize];
                    let similarity = (0..DIMS).map(|at| i32::from(row[at]) * i32::from(values[at])).sum();
                    Near { item, similarity }
                })
                .filter(|near| near.similarity > 0)
                .collect();
            expected.sort_by_key(Near::order);
            expected.truncate(k);
            prop_assert_eq!(vectors.nearest_plain(&query, k, allow), expected);
        }

        #[test]
        fn the_first_look_never_invents(
            rows in prop::collection::vec(vector(), 100..200), values in vector(), sketched in any::<bool>(),
        ) {
            let query = QueryVector(values);
            let image = image(&rows, sketched);
            let vectors = DocumentVectors::of(&image);
            let heads = Heads::of(&vectors);
            prop_assert_eq!(heads.0.is_empty(), sketched);
            let (fast, best) = vectors.proposals(&heads, &query, 10, &[], &|_| true);
            let plain = vectors.nearest_plain(&query, 10, |_| true);
            prop_assert!(plain.first().map_or(0, |near| near.similarity) >= best);
            prop_assert_eq!(vectors.proposals(&heads, &query, 150, &[], &|_| true).1, best);
            prop_assert_eq!(vectors.proposals(&heads, &query, 10, &[], &|item| item % 3 == 0).1, best);
            prop_assert!(fast.is_sorted_by_key(Near::order));
            for near in &fast {
                prop_assert_eq!(near.similarity, vectors.similarity(near.item, &query));
            }
            // What was kept is in the order of the plain search.
            let kept: Vec<Near> = plain.iter().filter(|near| fast.contains(near)).copied().collect();
            prop_assert_eq!(&fast[..kept.len()], &kept[..]);
        }
    }
}
