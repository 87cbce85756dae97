//! The vectors of a catalog and the search for the nearest.
//!
//! The first dimensions of a vector are the most telling ones, by the way the table is made. They lie together in
//! memory, so a search looks at them first and compares only the best of that look in full: half of the memory read.
//! What it may lose are neighbours far down the list; [`DocumentVectors::nearest_plain`] compares everything.

use std::cmp::Reverse;

use super::table::{DIMS, QueryVector, Table, ToolVector};
use crate::catalog::Catalog;

/// Dimensions that the first look reads.
const HEAD: usize = 64;

/// The first look keeps this many items for each one that is asked for, and never fewer than [`LEAST_KEPT`].
const KEPT: usize = 2;
const LEAST_KEPT: usize = 64;

/// Items whose similarity is computed before any of them is looked at.
const BLOCK: usize = 64;

/// An item near a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Near {
    /// The item's position in [`Catalog::items`].
    pub item: u32,
    /// The cosine of item and query in units of 1/90 000 (both vectors are at a scale of 300).
    pub similarity: i32,
}

impl Near {
    fn order(&self) -> (Reverse<i32>, u32) {
        (Reverse(self.similarity), self.item)
    }
}

/// The vectors of all items of a catalog, by item number.
#[derive(Debug, Default)]
pub struct DocumentVectors {
    /// In the width of the machine's widest multiplication of whole numbers: bytes would have to be widened each time.
    heads: Vec<[i16; HEAD]>,
    vectors: Vec<[i8; DIMS]>,
}

impl DocumentVectors {
    /// Encodes every item of `catalog`.
    #[must_use]
    pub fn build(catalog: &Catalog, table: &Table) -> Self {
        catalog.items().iter().map(|item| table.encode_tool(item)).collect()
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.vectors.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.vectors.is_empty()
    }

    /// The similarity of one item; 0 for an item that is not there.
    #[must_use]
    pub fn similarity(&self, item: u32, query: &QueryVector) -> i32 {
        self.vectors.get(item as usize).map_or(0, |vector| dot(vector, &query.0))
    }

    /// The `k` items nearest to `query`, best first, ties by item; only items with a similarity above 0 that `allow`
    /// lets through.
    #[must_use]
    pub fn nearest(&self, query: &QueryVector, k: usize, allow: impl Fn(u32) -> bool) -> Vec<Near> {
        self.nearest_and_best(query, k, allow).0
    }

    /// [`Self::nearest`], and the best similarity among the allowed items, at least 0, which does not depend on `k`.
    #[must_use]
    pub fn nearest_and_best(&self, query: &QueryVector, k: usize, allow: impl Fn(u32) -> bool) -> (Vec<Near>, i32) {
        let Some(head) = query.0.first_chunk().map(widened) else { return (Vec::new(), 0) };
        let mut near = best(&self.heads, &head, k.saturating_mul(KEPT).max(LEAST_KEPT), i32::MIN, allow);
        for near in &mut near {
            near.similarity = self.similarity(near.item, query);
        }
        // Only what every `k` keeps may decide.
        let best = near.iter().take(LEAST_KEPT).map(|near| near.similarity).max().unwrap_or(0).max(0);
        near.retain(|near| near.similarity > 0);
        near.sort_unstable_by_key(Near::order);
        near.truncate(k);
        (near, best)
    }

    /// [`Self::nearest`] by comparing every whole vector.
    #[must_use]
    pub fn nearest_plain(&self, query: &QueryVector, k: usize, allow: impl Fn(u32) -> bool) -> Vec<Near> {
        best(&self.vectors, &query.0, k, 0, allow)
    }
}

impl FromIterator<ToolVector> for DocumentVectors {
    fn from_iter<I: IntoIterator<Item = ToolVector>>(vectors: I) -> Self {
        let vectors: Vec<[i8; DIMS]> = vectors.into_iter().map(|vector| vector.0).collect();
        let heads = vectors.iter().filter_map(|vector| vector.first_chunk().map(widened)).collect();
        Self { heads, vectors }
    }
}

/// The inner product. Products of two bytes, this few, are far within 32 bits.
fn dot<T: Copy + Into<i32>, const N: usize>(left: &[T; N], right: &[T; N]) -> i32 {
    left.iter().zip(right).map(|(&left, &right)| left.into() * right.into()).sum()
}

fn widened(head: &[i8; HEAD]) -> [i16; HEAD] {
    head.map(i16::from)
}

/// The `k` rows of the highest inner product with `query` above `least`, best first, ties by number.
fn best<T: Copy + Into<i32>, const N: usize>(
    rows: &[[T; N]],
    query: &[T; N],
    k: usize,
    least: i32,
    allow: impl Fn(u32) -> bool,
) -> Vec<Near> {
    let mut found: Vec<Near> = Vec::new();
    if k == 0 {
        return found;
    }
    // What is not above the `k`-th of those seen so far cannot enter. The list may grow to twice `k` before it is cut.
    let mut threshold = least;
    let mut similarities = [0; BLOCK];
    for (block, rows) in rows.chunks(BLOCK).enumerate() {
        for (similarity, row) in similarities.iter_mut().zip(rows) {
            *similarity = dot(row, query);
        }
        let similarities = &similarities[..rows.len()];
        if !similarities.iter().fold(false, |any, &similarity| any | (similarity > threshold)) {
            continue;
        }
        for (offset, &similarity) in similarities.iter().enumerate() {
            let item = (block * BLOCK + offset) as u32;
            if similarity > threshold && allow(item) {
                found.push(Near { item, similarity });
                if found.len() >= k.saturating_mul(2) {
                    found.select_nth_unstable_by_key(k - 1, Near::order);
                    found.truncate(k);
                    // An equal similarity comes later and so has a higher number: it stays behind.
                    threshold = found.last().map_or(least, |last| last.similarity);
                }
            }
        }
    }
    found.sort_unstable_by_key(Near::order);
    found.truncate(k);
    found
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
            let vectors: DocumentVectors = rows.iter().copied().map(ToolVector).collect();
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
        fn the_first_look_never_invents(rows in prop::collection::vec(vector(), 100..200), values in vector()) {
            let query = QueryVector(values);
            let vectors: DocumentVectors = rows.iter().copied().map(ToolVector).collect();
            let (fast, best) = vectors.nearest_and_best(&query, 10, |_| true);
            let plain = vectors.nearest_plain(&query, 10, |_| true);
            prop_assert!(plain.first().map_or(0, |near| near.similarity) >= best);
            prop_assert_eq!(vectors.nearest_and_best(&query, 150, |_| true).1, best);
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
