//! The vectors of a catalog and the search for the nearest.
//!
//! In all but the largest catalogs every vector is compared in full. They are stored in *panels*: the same two dimensions
//! of [`PANEL`] tools stand side by side, so that one instruction multiplies those of as many tools as a register holds,
//! and no sum has to be taken across a register.
//!
//! Beyond [`MOST_COMPARED`] tools that would read too much memory. There, a search takes a cheaper first look, at *sketches*
//! of one bit per dimension ([`super::sketch`]), and compares only the best of it in full; the vectors are stored one
//! after the other. What that look may lose are neighbours far down the list; the tests hold it against a comparison of
//! everything.

use std::borrow::Borrow;

use pulp::bytemuck::{cast, cast_slice};
use pulp::{Arch, NullaryFnOnce, Simd, WithSimd};
use rayon::prelude::*;

use super::sketch::{Apart, Plane, SLICE, Sketch, planes, sketch};
use super::table::{DIMS, QueryVector, Table, ToolVector};
use crate::image::{Image, ImageBuilder, Part};
use contextweaver_core::catalog::SelectableItem;

/// Larger catalogs have sketches. Up to here it takes less time to compare everything than to look at sketches and at the
/// vectors that they point to. The tests of this crate have catalogs of both kinds.
const MOST_COMPARED: usize = if cfg!(test) { 100 } else { 32_768 };

/// The number of tools whose vectors are stored together.
const PANEL: usize = 32;

/// Two dimensions of the tools of a panel.
type Pairs = [u8; 2 * PANEL];

/// The bytes of a panel, which holds [`DIMS`] / 2 [`Pairs`]. Places without a tool have zeros.
const PANEL_BYTES: usize = PANEL * DIMS;

/// The first look keeps this many times the number of items asked for, and never fewer than [`LEAST_KEPT`].
const KEPT: usize = 2;
const LEAST_KEPT: usize = 64;

/// Sketches are coarse: a look at them keeps this many times more.
const SKETCHED: usize = 8;

/// The number of dimensions multiplied at a time.
const LANES: usize = 16;

/// The number of similarities among which the near ones are picked together.
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
pub enum DocumentVectors<'i> {
    /// Those of a catalog in which everything is compared.
    Panels(Panels<'i>),
    /// Those of a larger catalog.
    Rows(Rows<'i>),
}

/// Vectors that are all compared with every query.
#[derive(Debug, Clone, Copy)]
pub struct Panels<'i>(&'i [[u8; PANEL_BYTES]]);

/// Vectors of which sketches tell those to compare.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'i> {
    vectors: &'i [[u8; DIMS]],
    /// The sketches of each [`SLICE`] items.
    sketches: &'i [[Plane; DIMS]],
}

impl<'i> DocumentVectors<'i> {
    /// Encodes every item into the next parts of an image.
    pub(crate) fn build<I: Borrow<SelectableItem> + Sync>(items: &[I], table: &Table, image: &mut ImageBuilder) {
        let vectors: Vec<ToolVector> = items.par_iter().map(|item| table.encode_tool(item.borrow())).collect();
        Self::write(&vectors, MOST_COMPARED, image);
    }

    /// Adds the vectors: in panels, or one by one with sketches when they are more than `most_compared`.
    fn write(vectors: &[ToolVector], most_compared: usize, image: &mut ImageBuilder) {
        if vectors.len() <= most_compared {
            image.push(Part::Vectors, vectors.chunks(PANEL).map(panel));
            return;
        }
        image.push(Part::Vectors, vectors.iter().map(|vector| vector.0.map(|value| value as u8)));
        let slice = |vectors: &[ToolVector]| {
            let sketches: Vec<Sketch> = vectors.iter().map(|vector| sketch(&vector.0)).collect();
            planes(&sketches)
        };
        let slices: Vec<[Plane; DIMS]> = vectors.par_chunks(SLICE).map(slice).collect();
        image.push(Part::Sketches, slices.as_flattened());
    }

    /// The vectors of an index.
    pub(crate) fn of(image: &'i Image) -> Self {
        let sketches = image.cells(Part::Sketches).as_chunks().0;
        if sketches.is_empty() {
            Self::Panels(Panels(image.cells(Part::Vectors)))
        } else {
            Self::Rows(Rows { vectors: image.cells(Part::Vectors), sketches })
        }
    }

    /// Whether these are the vectors of so many items.
    #[must_use]
    pub fn are_of(&self, items: usize) -> bool {
        match self {
            Self::Panels(Panels(panels)) => panels.len() == items.div_ceil(PANEL),
            Self::Rows(Rows { vectors, .. }) => vectors.len() == items,
        }
    }

    /// The similarity of one item; 0 for an item that does not exist.
    #[must_use]
    pub fn similarity(&self, item: u32, query: &QueryVector) -> i32 {
        match self {
            Self::Panels(panels) => panels.similarity(item, query),
            Self::Rows(rows) => rows.similarity(item, query),
        }
    }

    /// The similarities of the first `items`, by item number, in a catalog in which everything is compared; `None` in a
    /// larger one.
    pub(crate) fn all(&self, query: &QueryVector, items: usize) -> Option<Vec<i32>> {
        let Self::Panels(panels) = self else { return None };
        let mut all = panels.compared(query);
        all.truncate(items);
        Some(all)
    }

    /// The `k` items nearest to `query` that `allow` lets through, best first, ties by item, none with a similarity of
    /// 0 or less; and the best similarity of all items except those of `gone` (ascending), at least 0, which depends on
    /// neither `k` nor `allow`.
    pub(crate) fn proposals(
        &self,
        query: &QueryVector,
        k: usize,
        gone: &[u32],
        allow: &impl Fn(u32) -> bool,
    ) -> (Vec<Near>, i32) {
        let (mut near, best) = match self {
            Self::Panels(panels) => {
                let all = panels.compared(query);
                let there = |item: u32| gone.binary_search(&item).is_err();
                let nearest =
                    best(&all, 1, 0, &there, |similarity| *similarity).first().map_or(0, |near| near.similarity);
                (best(&all, k, 0, allow, |similarity| *similarity), nearest)
            }
            Self::Rows(rows) => {
                let least = k.saturating_mul(KEPT).max(LEAST_KEPT);
                Arch::new().dispatch(Look { rows, query, least, gone, allow })
            }
        };
        keep(&mut near, k);
        near.retain(|near| near.similarity > 0);
        near.sort_unstable_by_key(Near::order);
        (near, best)
    }

    /// The `k` nearest items by comparing each vector by itself, as a first look may lose some of them.
    #[cfg(test)]
    fn nearest_plain(&self, items: u32, query: &QueryVector, k: usize, allow: impl Fn(u32) -> bool) -> Vec<Near> {
        let all: Vec<i32> = (0..items).map(|item| self.similarity(item, query)).collect();
        let mut near = best(&all, k, 0, &allow, |similarity| *similarity);
        near.sort_unstable_by_key(Near::order);
        near
    }
}

/// The bytes of a panel.
fn panel(vectors: &[ToolVector]) -> [u8; PANEL_BYTES] {
    let mut panel = [0; PANEL_BYTES];
    let (pairs, _) = panel.as_chunks_mut::<{ 2 * PANEL }>();
    for (at, vector) in vectors.iter().enumerate() {
        for (pairs, values) in pairs.iter_mut().zip(vector.0.as_chunks::<2>().0) {
            (pairs[2 * at], pairs[2 * at + 1]) = (values[0] as u8, values[1] as u8);
        }
    }
    panel
}

impl Panels<'_> {
    fn similarity(&self, item: u32, query: &QueryVector) -> i32 {
        let Some(panel) = self.0.get(item as usize / PANEL) else { return 0 };
        let at = 2 * (item as usize % PANEL);
        let pairs = panel.as_chunks::<{ 2 * PANEL }>().0.iter().zip(query.0.as_chunks::<2>().0);
        let product = |(pairs, values): (&Pairs, &[i8; 2])| {
            let of = |value: i8, stored: u8| i32::from(value) * i32::from(stored as i8);
            of(values[0], pairs[at]) + of(values[1], pairs[at + 1])
        };
        pairs.map(product).sum()
    }

    /// The similarity of every item, and zeros for the places that are left in the last panel.
    fn compared(&self, query: &QueryVector) -> Vec<i32> {
        let comparison = Comparison { panels: self.0, query };
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        {
            if let Some(simd) = pulp::x86::V4::try_new() {
                return Simd::vectorize(simd, With { simd, comparison });
            }
            if let Some(simd) = pulp::x86::V3::try_new() {
                return Simd::vectorize(simd, With { simd, comparison });
            }
        }
        let simd = pulp::Scalar256b;
        Simd::vectorize(simd, With { simd, comparison })
    }
}

/// Products of whole numbers, two by two.
trait Multiply: Simd {
    /// The number of vectors that the sums of a panel take.
    const VECTORS: usize;

    /// For the tools of vector number `at` the sums of the products of a pair of dimensions with two numbers of 16 bits,
    /// the first in the lower half.
    fn products(self, pairs: &Pairs, at: usize, numbers: i32) -> Self::u32s;
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl Multiply for pulp::x86::V4 {
    const VECTORS: usize = PANEL / 16;

    #[inline(always)]
    fn products(self, pairs: &Pairs, at: usize, numbers: i32) -> Self::u32s {
        let pairs = self.convert_i8x32_to_i16x32(cast::<Pairs, [pulp::i8x32; PANEL / 16]>(*pairs)[at]);
        cast(self.multiply_wrapping_add_adjacent_i16x32(pairs, cast(self.splat_i32x16(numbers))))
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl Multiply for pulp::x86::V3 {
    const VECTORS: usize = PANEL / 8;

    #[inline(always)]
    fn products(self, pairs: &Pairs, at: usize, numbers: i32) -> Self::u32s {
        let pairs = self.convert_i8x16_to_i16x16(cast::<Pairs, [pulp::i8x16; PANEL / 8]>(*pairs)[at]);
        cast(self.multiply_wrapping_add_adjacent_i16x16(pairs, cast(self.splat_i32x8(numbers))))
    }
}

/// What the compiler makes vector instructions of, where it knows some.
impl Multiply for pulp::Scalar256b {
    const VECTORS: usize = PANEL / 8;

    #[inline(always)]
    fn products(self, pairs: &Pairs, at: usize, numbers: i32) -> Self::u32s {
        let (first, second) = ((numbers << 16) >> 16, numbers >> 16);
        let pairs = cast::<Pairs, [[[i8; 2]; 8]; PANEL / 8]>(*pairs)[at];
        cast(pairs.map(|[left, right]| i32::from(left) * first + i32::from(right) * second))
    }
}

/// A comparison of a query with all tools.
struct Comparison<'c> {
    panels: &'c [[u8; PANEL_BYTES]],
    query: &'c QueryVector,
}

/// A comparison with the instructions that it is made with.
struct With<'c, S> {
    simd: S,
    comparison: Comparison<'c>,
}

impl<M: Multiply> WithSimd for With<'_, M> {
    type Output = Vec<i32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Vec<i32> {
        let Self { simd, comparison: Comparison { panels, query } } = self;
        let mut numbers = [0; DIMS / 2];
        for (numbers, values) in numbers.iter_mut().zip(query.0.as_chunks::<2>().0) {
            *numbers = i32::from(values[1]) << 16 | i32::from(values[0]) & 0xFFFF;
        }
        let mut all = Vec::with_capacity(panels.len() * PANEL);
        for panel in panels {
            let mut sums = [simd.splat_u32s(0); 4];
            for (pairs, &numbers) in panel.as_chunks::<{ 2 * PANEL }>().0.iter().zip(&numbers) {
                for (at, sum) in sums.iter_mut().enumerate().take(M::VECTORS) {
                    *sum = simd.add_u32s(*sum, simd.products(pairs, at, numbers));
                }
            }
            all.extend_from_slice(cast_slice(&sums[..M::VECTORS]));
        }
        all
    }
}

impl Rows<'_> {
    #[inline(always)]
    fn similarity(&self, item: u32, query: &QueryVector) -> i32 {
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
}

/// A first look, to be run in the machine's widest instructions: everything is inlined where it is run.
struct Look<'a, A> {
    rows: &'a Rows<'a>,
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
        let Self { rows, query, .. } = self;
        let apart = Apart::new(rows.sketches, rows.vectors.len(), sketch(&query.0));
        let there = |item: u32| self.gone.binary_search(&item).is_err();
        let first = apart.closest(LEAST_KEPT * SKETCHED, &there);
        let items = apart.closest(self.least.saturating_mul(SKETCHED), self.allow);
        rows.touch(&items);
        // A loop, since what an iterator collects would not be compiled for the wide instructions.
        let mut near: Vec<Near> = items.iter().map(|item| Near { item: *item, similarity: 0 }).collect();
        for near in &mut near {
            near.similarity = rows.similarity(near.item, query);
        }
        // Nearly all of these are in the cache by now, so that comparing them again costs less than looking for them.
        let mut best = 0;
        for item in first {
            best = best.max(rows.similarity(item, query));
        }
        (near, best)
    }
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
        DocumentVectors::write(&vectors, if sketched { 0 } else { usize::MAX }, &mut image);
        image.finish()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn everything_compared_equals_comparing_one_by_one(
            rows in prop::collection::vec(vector(), 0..200),
            values in vector(),
            k in 0usize..20,
            modulus in 1u32..4,
            gone in prop::collection::btree_set(0u32..200, 0..9),
        ) {
            let query = QueryVector(values);
            let image = image(&rows, false);
            let vectors = DocumentVectors::of(&image);
            let product = |row: &[i8; DIMS]| (0..DIMS).map(|at| i32::from(row[at]) * i32::from(values[at])).sum();
            let expected: Vec<i32> = rows.iter().map(product).collect();
            prop_assert!(vectors.are_of(rows.len()));
            let all = vectors.all(&query, rows.len());
            prop_assert_eq!(all.as_ref(), Some(&expected));
            for (item, similarity) in (0..).zip(&expected) {
                prop_assert_eq!(vectors.similarity(item, &query), *similarity);
            }
            let allow = |item: u32| item.is_multiple_of(modulus);
            let all = (0u32..).zip(&expected).map(|(item, similarity)| Near { item, similarity: *similarity });
            let mut nearest: Vec<Near> = all.filter(|near| allow(near.item) && near.similarity > 0).collect();
            nearest.sort_by_key(Near::order);
            nearest.truncate(k);
            let gone: Vec<u32> = gone.into_iter().collect();
            let there = (0u32..).zip(&expected).filter(|(item, _)| !gone.contains(item));
            let best = there.map(|(_, similarity)| *similarity).max().unwrap_or(0).max(0);
            prop_assert_eq!(vectors.proposals(&query, k, &gone, &allow), (nearest, best));
        }

        #[test]
        fn the_first_look_never_invents(rows in prop::collection::vec(vector(), 100..200), values in vector()) {
            let query = QueryVector(values);
            let image = image(&rows, true);
            let vectors = DocumentVectors::of(&image);
            prop_assert!(vectors.are_of(rows.len()) && vectors.all(&query, rows.len()).is_none());
            let (fast, best) = vectors.proposals(&query, 10, &[], &|_| true);
            let plain = vectors.nearest_plain(rows.len() as u32, &query, 10, |_| true);
            prop_assert!(plain.first().map_or(0, |near| near.similarity) >= best);
            prop_assert_eq!(vectors.proposals(&query, 150, &[], &|_| true).1, best);
            prop_assert_eq!(vectors.proposals(&query, 10, &[], &|item| item % 3 == 0).1, best);
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
