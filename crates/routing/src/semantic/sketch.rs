//! Sketches of vectors, stored bit by bit, and the search for those that differ least.
//!
//! A *sketch* has one bit per dimension: the sign after a rotation that spreads a vector's information evenly over all
//! dimensions. The share of bits in which two sketches differ is approximately the angle of their vectors divided by π
//! (Charikar, "Similarity Estimation Techniques from Rounding Algorithms", 2002).
//!
//! The same bit of [`SLICE`] items is stored in one *plane*, so that one instruction compares it for as many items as a
//! register has bits. The differences are counted by adders made of logic operations, so every digit of the counts is a
//! plane as well (Harley and Seal's way of counting bits, in Warren, "Hacker's Delight", 2nd ed., §5-1). Which counts
//! are within the limit is then a plane too, and only the items that it marks are looked at one by one.

use super::table::DIMS;

/// One bit per dimension.
pub(super) type Sketch = u128;

/// The number of items whose sketches are stored together.
pub(super) const SLICE: usize = 256;

/// One bit of each item of a slice, as it is stored in an index.
pub(super) type Plane = [u8; SLICE / 8];

/// A plane in the form in which it is computed.
type Lanes = [u64; LANES];
const LANES: usize = SLICE / u64::BITS as usize;

/// The number of bits in which each item of a slice differs from a query: one plane per binary digit, the lowest first.
type Differences = [Lanes; DIGITS];
const DIGITS: usize = DIMS.ilog2() as usize + 1;

/// The largest useful difference: a sketch that differs in more bits points away from the query.
const FARTHEST: usize = DIMS / 2;

/// One slice in this many is sampled to estimate the limit.
const SAMPLED: usize = 8;

/// The signs of a vector after a rotation.
///
/// Some signs are flipped, in a fixed meaningless pattern, before a Walsh–Hadamard transform, twice: as good as a
/// random rotation for this purpose, in n log n additions (Ailon and Chazelle, "Approximate Nearest Neighbors and the
/// Fast Johnson–Lindenstrauss Transform", 2006).
pub(super) fn sketch(vector: &[i8; DIMS]) -> Sketch {
    let mut values = vector.map(i32::from);
    for signs in FLIPPED {
        for (at, value) in values.iter_mut().enumerate() {
            if signs >> at & 1 == 1 {
                *value = -*value;
            }
        }
        let mut half = 1;
        while half < DIMS {
            for pair in values.chunks_exact_mut(2 * half) {
                let (left, right) = pair.split_at_mut(half);
                for (left, right) in left.iter_mut().zip(right) {
                    (*left, *right) = (*left + *right, *left - *right);
                }
            }
            half *= 2;
        }
    }
    values.iter().enumerate().fold(0, |bits, (at, value)| bits | Sketch::from(*value > 0) << at)
}

/// The values whose sign is flipped before each transform: binary digits of the fractional parts of π and e.
const FLIPPED: [u128; 2] = [0x243F_6A88_85A3_08D3_1319_8A2E_0370_7344, 0xB7E1_5162_8AED_2A6A_BF71_5880_9CF4_F3C7];

/// The planes of at most [`SLICE`] sketches; missing items have no bit set.
pub(super) fn planes(sketches: &[Sketch]) -> [Plane; DIMS] {
    let mut planes = [[0; SLICE / 8]; DIMS];
    for (item, sketch) in sketches.iter().enumerate().take(SLICE) {
        for (at, plane) in planes.iter_mut().enumerate() {
            plane[item / 8] |= ((sketch >> at & 1) as u8) << (item % 8);
        }
    }
    planes
}

/// How much the sketches of items differ from that of a query.
pub(super) struct Apart(Vec<Differences>);

impl Apart {
    /// For the first `items` items.
    #[inline(always)]
    pub(super) fn new(slices: &[[Plane; DIMS]], items: usize, query: Sketch) -> Self {
        let items = items.min(slices.len() * SLICE);
        let flips: [u64; DIMS] = std::array::from_fn(|bit| spread(query >> bit));
        let mut differences: Vec<Differences> = Vec::with_capacity(slices.len());
        for slice in &slices[..items.div_ceil(SLICE)] {
            differences.push(differing(slice, &flips));
        }
        forget_after(&mut differences, items);
        Self(differences)
    }

    /// The items that differ least, by number: `least` of those that `allow` lets through, and all that differ as little
    /// as the last. Items that differ in more than half of the bits are left out, since they point away.
    #[inline(always)]
    pub(super) fn closest(&self, least: usize, allow: &impl Fn(u32) -> bool) -> Vec<u32> {
        let differences = &self.0;
        let mut wanted = least;
        loop {
            let limit = limit(differences, wanted);
            let mut found = Vec::with_capacity(wanted.saturating_mul(2).min(differences.len() * SLICE));
            let mut refused = false;
            for (slice, start) in differences.iter().zip((0u32..).step_by(SLICE)) {
                for (mut near, start) in at_most(slice, limit).into_iter().zip((start..).step_by(64)) {
                    while near != 0 {
                        let item = start + near.trailing_zeros();
                        near &= near - 1;
                        if allow(item) {
                            found.push(item);
                        } else {
                            refused = true;
                        }
                    }
                }
            }
            if !refused {
                return found;
            }
            // The limit was computed for all items; it is raised until enough allowed items are within it.
            if found.len() >= least || limit == FARTHEST {
                cut(&mut found, differences, least);
                return found;
            }
            wanted = wanted.saturating_mul(4);
        }
    }
}

/// Keeps `least` of `found`, and all that differ as little as the last of them.
fn cut(found: &mut Vec<u32>, differences: &[Differences], least: usize) {
    let difference = |item: u32| -> usize {
        let (slice, place) = (item as usize / SLICE, item as usize % SLICE);
        let digits = differences[slice].iter().enumerate();
        digits.map(|(digit, lanes)| ((lanes[place / 64] >> (place % 64) & 1) as usize) << digit).sum()
    };
    let mut counts = [0; FARTHEST + 1];
    found.iter().for_each(|item| counts[difference(*item)] += 1);
    let mut within = 0;
    let limit = counts.iter().position(|count| {
        within += count;
        within >= least
    });
    if let Some(limit) = limit {
        found.retain(|item| difference(*item) <= limit);
    }
}

/// Gives the places of the last slice beyond `items` a difference larger than any real one.
fn forget_after(differences: &mut [Differences], items: usize) {
    let Some(last) = differences.last_mut() else { return };
    let there = (items - 1) % SLICE + 1;
    for (lane, start) in (0..SLICE).step_by(64).enumerate() {
        let none = u64::MAX.checked_shl(there.saturating_sub(start) as u32).unwrap_or(0);
        last.iter_mut().for_each(|digit| digit[lane] |= none);
    }
}

/// The smallest difference within which there are `wanted` items; at most [`FARTHEST`].
#[inline(always)]
fn limit(differences: &[Differences], wanted: usize) -> usize {
    // Binary search on a sample, then single steps on everything.
    let (mut low, mut high) = (0, FARTHEST);
    while low < high {
        let middle = (low + high) / 2;
        if within(differences.iter().step_by(SAMPLED), middle) * SAMPLED < wanted {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while low < FARTHEST && within(differences.iter(), low) < wanted {
        low += 1;
    }
    while low > 0 && within(differences.iter(), low - 1) >= wanted {
        low -= 1;
    }
    low
}

/// The number of items that differ in at most `limit` bits.
#[inline(always)]
fn within<'d>(differences: impl Iterator<Item = &'d Differences>, limit: usize) -> usize {
    let mut within = 0;
    for slice in differences {
        for lane in at_most(slice, limit) {
            within += lane.count_ones() as usize;
        }
    }
    within
}

/// The items that differ in at most `limit` bits.
#[inline(always)]
fn at_most(differences: &Differences, limit: usize) -> Lanes {
    let mut most = [u64::MAX; LANES];
    for (at, digit) in differences.iter().enumerate() {
        let set = spread((limit >> at) as u128);
        for (most, digit) in most.iter_mut().zip(digit) {
            // A digit that only the limit has makes the difference smaller, one that only the difference has makes it
            // larger.
            *most = (!digit & (*most | set)) | (*most & set);
        }
    }
    most
}

/// The number of bits in which each sketch of a slice differs from the query whose bits are `flips`.
#[inline(always)]
fn differing(slice: &[Plane; DIMS], flips: &[u64; DIMS]) -> Differences {
    let (mut ones, mut twos, mut fours, mut eights) = ([0; LANES], [0; LANES], [0; LANES], [0; LANES]);
    let mut higher = [[0; LANES]; DIGITS - 4];
    for (planes, flips) in slice.as_chunks::<16>().0.iter().zip(flips.as_chunks::<16>().0) {
        let mut bits = planes.as_chunks::<8>().0.iter().zip(flips.as_chunks::<8>().0);
        let mut carried = [[0; LANES]; 2];
        for (carried, (planes, flips)) in carried.iter_mut().zip(&mut bits) {
            let mut pairs = [[0; LANES]; 4];
            for (pair, at) in pairs.iter_mut().zip([0, 2, 4, 6]) {
                let bit = |at: usize| flipped(&planes[at], flips[at]);
                *pair = add(&mut ones, bit(at), bit(at + 1));
            }
            let [one, two, three, four] = pairs;
            let (low, high) = (add(&mut twos, one, two), add(&mut twos, three, four));
            *carried = add(&mut fours, low, high);
        }
        let [low, high] = carried;
        let mut carry = add(&mut eights, low, high);
        for digit in &mut higher {
            carry = add(digit, carry, [0; LANES]);
        }
    }
    let [sixteens, thirty_twos, sixty_fours, all] = higher;
    [ones, twos, fours, eights, sixteens, thirty_twos, sixty_fours, all]
}

/// Copies the lowest of `bits` to all bits.
#[inline(always)]
fn spread(bits: u128) -> u64 {
    (bits as u64 & 1).wrapping_neg()
}

#[inline(always)]
fn flipped(plane: &Plane, flip: u64) -> Lanes {
    let mut lanes = [0; LANES];
    for (lane, bytes) in lanes.iter_mut().zip(plane.as_chunks::<8>().0) {
        *lane = u64::from_le_bytes(*bytes) ^ flip;
    }
    lanes
}

/// Adds two bits to `digit` at each place, and returns the carry.
#[inline(always)]
fn add(digit: &mut Lanes, left: Lanes, right: Lanes) -> Lanes {
    let mut carry = [0; LANES];
    for lane in 0..LANES {
        let either = left[lane] ^ right[lane];
        carry[lane] = (left[lane] & right[lane]) | (either & digit[lane]);
        digit[lane] ^= either;
    }
    carry
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn signs_differ_as_angles_do() {
        let of = |seed: i32| {
            let mut vector = [0i8; DIMS];
            vector.iter_mut().zip(0..).for_each(|(value, at)| *value = ((at * seed + at * at * 7) % 23 - 11) as i8);
            vector
        };
        let (one, other) = (of(5), of(12));
        let differing = |left: &[i8; DIMS], right: &[i8; DIMS]| (sketch(left) ^ sketch(right)).count_ones();
        let opposite = one.map(|value| -value);
        let mut near = one;
        near[..8].copy_from_slice(&other[..8]);
        assert_eq!(differing(&one, &one), 0);
        assert!(differing(&one, &opposite) > 120);
        assert!(differing(&one, &near) < 40, "{}", differing(&one, &near));
        assert!((45..=83).contains(&differing(&one, &other)), "{}", differing(&one, &other));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn the_closest_are_those_of_counting_one_by_one(
            query in any::<Sketch>(),
            // What differs from the query, in bits that two or three random numbers have in common: near and far ones.
            noise in prop::collection::vec((any::<[u64; 6]>(), 0usize..3), 0..1200),
            items in 0usize..1300,
            least in prop_oneof![0usize..40, 0usize..1500],
            modulus in prop_oneof![Just(1u32), 1u32..40],
        ) {
            let sketches: Vec<Sketch> = noise
                .iter()
                .map(|([a, b, c, d, e, f], common)| {
                    let whole = |high: &u64, low: &u64| Sketch::from(*high) << 64 | Sketch::from(*low);
                    let masks = [whole(c, d), whole(e, f)];
                    masks.iter().take(*common).fold(whole(a, b), |bits, mask| bits & mask) ^ query
                })
                .collect();
            let slices: Vec<[Plane; DIMS]> = sketches.chunks(SLICE).map(planes).collect();
            let allow = |item: u32| item.is_multiple_of(modulus);
            let found = Apart::new(&slices, items.min(sketches.len()), query).closest(least, &allow);

            let there = (0u32..).zip(&sketches).take(items).filter(|(item, _)| allow(*item));
            let mut apart: Vec<(u32, u32)> = there.map(|(item, sketch)| ((sketch ^ query).count_ones(), item)).collect();
            apart.retain(|(difference, _)| *difference as usize <= FARTHEST);
            apart.sort_unstable();
            let last = |place: usize| apart.get(place).map(|(difference, _)| *difference);
            let limit = least.checked_sub(1).map_or(Some(0), last);
            let mut expected: Vec<u32> = apart
                .iter()
                .filter(|(difference, _)| limit.is_none_or(|limit| *difference <= limit))
                .map(|(_, item)| *item)
                .collect();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
