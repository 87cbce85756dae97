//! Whether a change made things better or worse, in five words, with what could have been seen.
//!
//! Base and head answered the same queries, so their differences are compared query by query: a sign-flip test under the
//! hypothesis that each difference is as likely as its opposite (Fisher, *The Design of Experiments*, 1935; with the
//! correction (b + 1) / (B + 1) of Phipson and Smyth, 2010), exact where few queries differ. "Same" has to be shown too:
//! by equal answers, or by an interval that stays within one point (two one-sided tests, Schuirmann, 1987). What is
//! neither shown to differ nor to be the same is inconclusive, with how much more it takes.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::rng::Rng;
use super::statistics::{mean, minimum_detectable_difference, percentile, round6};

/// Up to so many queries that differ, all their sign flips are counted: a million at most.
const EXACT: usize = 20;

/// Sign flips drawn where there are more.
const FLIPS: usize = 9_999;

/// Resamples of the interval.
const RESAMPLES: usize = 2_000;

/// The seed of both.
const SEED: u64 = 2_026;

/// The level below which a difference counts as shown.
pub const LEVEL: f64 = 0.05;

/// A difference within this counts as none, in units of the measure.
pub const MARGIN: f64 = 0.01;

/// What became of a measure from base to head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Head is worse.
    Regressed,
    /// Head is better.
    Improved,
    /// The answers are equal, or any difference is shown to be within [`MARGIN`].
    Same,
    /// Neither a difference nor its absence is shown.
    Inconclusive,
    /// The inputs differ.
    NotComparable,
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Regressed => "regressed",
            Self::Improved => "improved",
            Self::Same => "same",
            Self::Inconclusive => "inconclusive",
            Self::NotComparable => "not comparable",
        })
    }
}

/// A verdict with what it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Decision {
    /// The verdict.
    pub word: Word,
    /// Queries that both answered.
    pub queries: usize,
    /// Those whose values differ.
    pub differing: usize,
    /// The mean of head − base.
    pub difference: f64,
    /// The 90 % interval of the difference: percentiles of a bootstrap over queries.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The two-sided probability of a difference as large by chance alone.
    pub p: f64,
    /// The difference that these queries show four times out of five.
    pub could_have_seen: f64,
    /// How many queries more would show a difference of [`MARGIN`] four times out of five; 0 when these do.
    pub more_queries: usize,
}

/// Compares `pairs` of base and head, one a query.
#[must_use]
pub fn decide(pairs: &[(f64, f64)]) -> Decision {
    let differences: Vec<f64> = pairs.iter().map(|(base, head)| head - base).collect();
    let queries = differences.len();
    let difference = mean(differences.iter().copied());
    let nonzero: Vec<f64> = differences.iter().copied().filter(|value| *value != 0.0).collect();
    let (low, high) = interval(&differences);
    let p = sign_flip(&nonzero);
    let variance = mean(differences.iter().map(|value| (value - difference).powi(2)));
    let deviation = if queries > 1 { (variance * queries as f64 / (queries - 1) as f64).sqrt() } else { 0.0 };
    let could_have_seen = minimum_detectable_difference(queries, deviation).unwrap_or(0.0);
    let needed = (could_have_seen / MARGIN).powi(2) * queries as f64;
    let more_queries = (needed.ceil() as usize).saturating_sub(queries);
    let word = if nonzero.is_empty() || (low >= -MARGIN && high <= MARGIN) {
        Word::Same
    } else if p <= LEVEL {
        if difference < 0.0 { Word::Regressed } else { Word::Improved }
    } else {
        Word::Inconclusive
    };
    Decision {
        word,
        queries,
        differing: nonzero.len(),
        difference: round6(difference),
        low: round6(low),
        high: round6(high),
        p: round6(p),
        could_have_seen: round6(could_have_seen),
        more_queries,
    }
}

/// The two-sided probability that flipped signs give a sum as far from 0.
fn sign_flip(differences: &[f64]) -> f64 {
    if differences.is_empty() {
        return 1.0;
    }
    // Whole numbers: sums that are equal must not differ in their last bit.
    let whole: Vec<i64> = differences.iter().map(|value| (value * 1e9).round() as i64).collect();
    let seen = whole.iter().sum::<i64>().abs();
    if whole.len() <= EXACT {
        let all = 1u32 << whole.len();
        let sum = |flips: u32| -> i64 {
            whole.iter().enumerate().map(|(place, value)| if flips >> place & 1 == 1 { -value } else { *value }).sum()
        };
        let as_far = (0..all).filter(|flips| sum(*flips).abs() >= seen).count();
        return as_far as f64 / f64::from(all);
    }
    let mut rng = Rng::new(SEED).fork("sign flips");
    let mut as_far = 0;
    for _ in 0..FLIPS {
        let (mut bits, mut left, mut sum) = (0u64, 0, 0i64);
        for value in &whole {
            if left == 0 {
                (bits, left) = (rng.next_u64(), 64);
            }
            sum += if bits & 1 == 1 { -value } else { *value };
            bits >>= 1;
            left -= 1;
        }
        as_far += usize::from(sum.abs() >= seen);
    }
    (as_far + 1) as f64 / (FLIPS + 1) as f64
}

/// The 5th and 95th percentile of the mean of resampled differences.
fn interval(differences: &[f64]) -> (f64, f64) {
    let mut rng = Rng::new(SEED).fork("interval");
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| mean((0..differences.len()).map(|_| differences[rng.below(differences.len())])))
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    (percentile(&means, 5.0), percentile(&means, 95.0))
}

#[cfg(test)]
mod tests {
    use super::super::statistics::sign_test;
    use super::*;

    /// `queries` pairs of hits of which head loses and wins so many.
    fn pairs(queries: usize, lost: usize, won: usize) -> Vec<(f64, f64)> {
        let pair = |number: usize| {
            if number < lost {
                (1.0, 0.0)
            } else if number < lost + won {
                (0.0, 1.0)
            } else {
                (1.0, 1.0)
            }
        };
        (0..queries).map(pair).collect()
    }

    #[test]
    fn a_verdict_is_one_of_four_words() {
        let table = [
            ("equal answers", pairs(30, 0, 0), Word::Same),
            ("no queries", pairs(0, 0, 0), Word::Same),
            ("shown to be within a point", pairs(10_000, 20, 20), Word::Same),
            ("within a point though it is significant", pairs(10_000, 60, 20), Word::Same),
            ("worse", pairs(200, 20, 2), Word::Regressed),
            ("better", pairs(200, 2, 20), Word::Improved),
            ("too few differ", pairs(200, 4, 0), Word::Inconclusive),
        ];
        for (what, pairs, expected) in table {
            let decision = decide(&pairs);
            assert_eq!(decision.word, expected, "{what}: {decision:?}");
        }
    }

    #[test]
    fn probabilities_are_those_of_scipy() {
        // scipy.stats.binomtest(lost, lost + won).pvalue
        let table = [
            (0, 0, 1.0),
            (4, 0, 0.125),
            (5, 0, 0.0625),
            (2, 20, 0.000_121_116_638_183_593_75),
            (30, 12, 0.007_915_897_334_896_727),
        ];
        for (lost, won, expected) in table {
            let found = sign_test(won, lost);
            assert!((found - expected).abs() < 1e-9, "{lost} {won}: {found}");
        }
        // scipy.stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
        for (differences, expected) in [(vec![-1.0; 4], 0.125), (vec![0.5, -0.25, 1.0], 0.5), (vec![1.0; 6], 0.03125)] {
            assert!((sign_flip(&differences) - expected).abs() < 1e-12, "{differences:?}");
        }
        // Drawn flips, within the error of 9 999 draws.
        let drawn: Vec<f64> = pairs(42, 30, 12).iter().map(|(base, head)| head - base).collect();
        assert!((sign_flip(&drawn) - 0.007_915_9).abs() < 0.003);
    }

    #[test]
    fn what_could_have_been_seen_falls_with_the_queries() {
        let few = decide(&pairs(200, 10, 10));
        let many = decide(&pairs(2_000, 100, 100));
        assert_eq!(few.word, Word::Inconclusive);
        assert!(few.could_have_seen > 0.05 && many.could_have_seen < 0.03, "{few:?} {many:?}");
        let needed = few.queries + few.more_queries;
        assert!((7_000..9_000).contains(&needed), "{needed}");
    }

    /// One query in eight differs from run to run; `loss` of the base's hits are lost besides.
    fn simulated(runs: usize, queries: usize, loss: f64) -> (usize, usize) {
        let mut rng = Rng::new(7).fork("simulation");
        let mut chance = || rng.next_u64() as f64 / u64::MAX as f64;
        let (mut regressed, mut wrong) = (0, 0);
        for _ in 0..runs {
            let pairs: Vec<(f64, f64)> = (0..queries)
                .map(|_| match chance() {
                    c if c < 0.04 => (1.0, 0.0),
                    c if c < 0.08 => (0.0, 1.0),
                    c if c < 0.08 + loss => (1.0, 0.0),
                    _ => (1.0, 1.0),
                })
                .collect();
            match decide(&pairs).word {
                Word::Regressed => regressed += 1,
                Word::Improved => wrong += 1,
                _ => {}
            }
        }
        (regressed, wrong)
    }

    #[test]
    fn false_alarms_stay_at_their_level_and_a_loss_of_three_points_is_found() {
        let (lost, won) = simulated(150, 1_000, 0.0);
        assert!(lost + won <= 15, "{lost} + {won} false alarms in 150");
        let (found, wrong) = simulated(60, 1_000, 0.03);
        assert!(found >= 48 && wrong == 0, "{found} of 60 found, {wrong} called better");
    }
}
