//! Seeded pseudo-random numbers for resampling and catalog growth.
//!
//! Written here because committed results depend on every bit: a library may change its stream between versions,
//! and thirty lines need no dependency. Not for secrets.

/// SplitMix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014. Period 2^64.
#[derive(Debug, Clone)]
pub struct Rng {
    seed: u64,
    state: u64,
}

/// 2^64 divided by the golden ratio, made odd: the step of the underlying Weyl sequence.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The output function of SplitMix64: a bijection in which every input bit changes about half of the output bits.
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

impl Rng {
    /// The stream that belongs to `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// The next 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A uniform integer in `0..n`, without modulo bias; 0 when `n` is 0.
    ///
    /// Multiply and reject: Lemire, "Fast Random Integer Generation in an Interval", ACM TOMACS 29(1), 2019.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n as u64;
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let biased = n.wrapping_neg() % n;
            while (product as u64) < biased {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as usize
    }

    /// Puts `items` into a uniformly random order (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// An independent stream for `label`. It depends on the seed and the label alone, not on how many numbers were
    /// drawn, so that a new consumer of one stream cannot move another.
    #[must_use]
    pub fn fork(&self, label: &str) -> Self {
        let absorb = |state: u64, word: u64| mix((state ^ word).wrapping_add(STEP));
        let labelled = label.bytes().map(u64::from).fold(mix(self.seed), absorb);
        // The length closes the label: forking by "a" and then by "b" is not forking by "ab".
        Self::new(absorb(labelled, label.len() as u64 | 1 << 63))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_stream_is_that_of_the_reference_implementation() {
        // First outputs of splitmix64.c by S. Vigna (public domain) for the seed 1234567.
        let mut rng = Rng::new(1_234_567);
        let first: Vec<u64> = (0..5).map(|_| rng.next_u64()).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn bounded_integers_are_uniform() {
        let mut rng = Rng::new(1);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[rng.below(7)] += 1;
        }
        // 10 000 expected in each, standard deviation 93.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 450), "{counts:?}");
        // An interval of 3/4 of the 64-bit range, where taking a remainder would hit the low third twice as often.
        let n = 3 << 62_u64;
        let low = (0..30_000).filter(|_| rng.below(n) < n / 3).count();
        assert!(low.abs_diff(10_000) < 450, "{low}");
        assert_eq!([rng.below(0), rng.below(1)], [0, 0]);
    }

    #[test]
    fn shuffles_reach_every_order_equally() {
        let mut rng = Rng::new(2);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..24_000 {
            let mut items = [0, 1, 2, 3];
            rng.shuffle(&mut items);
            *counts.entry(items).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        assert!(counts.values().all(|count| count.abs_diff(1_000) < 200), "{counts:?}");
    }

    #[test]
    fn forks_depend_on_seed_and_label_alone() {
        let fresh = Rng::new(3);
        let mut used = fresh.clone();
        used.next_u64();
        assert_eq!(fresh.fork("a").next_u64(), used.fork("a").next_u64());
        let streams = [
            fresh.clone(),
            fresh.fork(""),
            fresh.fork("a"),
            fresh.fork("b"),
            fresh.fork("ab"),
            fresh.fork("ba"),
            fresh.fork("a").fork("b"),
            Rng::new(4).fork("a"),
        ];
        let firsts: BTreeSet<u64> = streams.into_iter().map(|mut stream| stream.next_u64()).collect();
        assert_eq!(firsts.len(), 8);
    }
}
