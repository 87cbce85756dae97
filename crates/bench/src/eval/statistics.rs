//! What a set of per-query values says about queries that were not asked.
//!
//! Queries are the unit of sampling: intervals come from a percentile bootstrap over queries (Efron and Tibshirani,
//! *An Introduction to the Bootstrap*, 1993, ch. 13). Seed and number of resamples are constants, and the drawn
//! queries depend on their number alone, so every measure and every engine of one query set is resampled alike.
//! Figures in record types are rounded here, before anything is concluded from them: a verdict agrees with the
//! digits that stand beside it.

use std::collections::BTreeMap;

use super::record::{Compared, Estimate, Paired, Verdict};
use super::rng::Rng;

/// Resamples of every bootstrap.
pub const RESAMPLES: usize = 2_000;

/// The seed of every bootstrap.
pub const BOOTSTRAP_SEED: u64 = 2_026;

/// Other seeds, with which a conclusion is drawn again: one that depends on the seed is marked.
pub const OTHER_SEEDS: [u64; 4] = [1, 2, 3, 4];

/// With fewer pairs that differ than this an exact test decides, and not a bootstrap, which is too bold there.
pub const FEW: usize = 20;

/// The level below which a difference counts as shown.
pub const LEVEL: f64 = 0.05;

/// Sign flips drawn where there are too many to count.
const FLIPS: usize = 9_999;

/// Percentiles of the two ends of an interval.
const INTERVAL: [f64; 2] = [2.5, 97.5];

/// `value` at the six decimals of the results files, without a negative zero.
#[must_use]
pub fn round6(value: f64) -> f64 {
    (value * 1e6).round() / 1e6 + 0.0
}

/// The arithmetic mean; 0 of nothing.
#[must_use]
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

/// The least and the most of some values; infinity and its negative of none.
#[must_use]
pub fn ends(values: &[f64]) -> [f64; 2] {
    values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], one| [least.min(*one), most.max(*one)])
}

/// The mean of every column with its 95 % interval, rounded to six decimals. `rows` holds one row per query and one
/// column per measure, all of the length of the first; without rows there are no estimates.
///
/// All columns share one set of resamples. Equal rows are counted, not added one by one: per-query measures take
/// few distinct values, and a resample costs one draw per query whatever the number of columns.
#[must_use]
pub fn estimate_all(rows: &[Vec<f64>]) -> Vec<Estimate> {
    estimate_with(rows, BOOTSTRAP_SEED)
}

/// The same by another seed.
fn estimate_with(rows: &[Vec<f64>], seed: u64) -> Vec<Estimate> {
    let Some(columns) = rows.first().map(Vec::len) else { return Vec::new() };
    let (distinct, kind_of) = distinct_rows(rows);
    let means_of = |counts: &[u32]| -> Vec<f64> {
        let mut sums = vec![0.0; columns];
        for (row, count) in distinct.iter().zip(counts) {
            let count = f64::from(*count);
            for (sum, value) in sums.iter_mut().zip(*row) {
                *sum += count * value;
            }
        }
        sums.into_iter().map(|sum| sum / rows.len() as f64).collect()
    };

    let mut counts = vec![0u32; distinct.len()];
    kind_of.iter().for_each(|kind| counts[*kind] += 1);
    let means = means_of(&counts);

    let mut rng = Rng::new(seed);
    let mut resampled: Vec<Vec<f64>> = vec![Vec::with_capacity(RESAMPLES); columns];
    for _ in 0..RESAMPLES {
        counts.fill(0);
        for _ in 0..rows.len() {
            counts[kind_of[rng.below(rows.len())]] += 1;
        }
        for (column, mean) in resampled.iter_mut().zip(means_of(&counts)) {
            column.push(mean);
        }
    }
    means.into_iter().zip(resampled).map(|(mean, column)| interval(mean, column)).collect()
}

/// The different rows, and for every row which of them it is.
fn distinct_rows(rows: &[Vec<f64>]) -> (Vec<&[f64]>, Vec<usize>) {
    let mut known: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    let mut distinct = Vec::new();
    let mut kind_of = Vec::with_capacity(rows.len());
    for row in rows {
        let kind = *known.entry(row.iter().map(|value| value.to_bits()).collect()).or_insert(distinct.len());
        if kind == distinct.len() {
            distinct.push(row.as_slice());
        }
        kind_of.push(kind);
    }
    (distinct, kind_of)
}

fn interval(mean: f64, mut resampled: Vec<f64>) -> Estimate {
    resampled.sort_unstable_by(f64::total_cmp);
    let [low, high] = INTERVAL.map(|percent| round6(percentile(&resampled, percent)));
    Estimate { mean: round6(mean), low, high }
}

/// The mean difference (engine − control) over the same queries. A pair holds the values of the engine and of the control
/// for one query; without pairs nothing can be concluded.
#[must_use]
pub fn paired(control: &str, pairs: &[(f64, f64)]) -> Paired {
    paired_by_tool(control, pairs, &[])
}

/// The same where `tools` has the first tool that each query needs. Queries that need the same tool are not independent
/// evidence, so that they are also resampled, and their signs flipped, together; the wider interval and the higher
/// probability are given. Without tools, or with another number of them than of pairs, queries are all that there is.
#[must_use]
pub fn paired_by_tool(control: &str, pairs: &[(f64, f64)], tools: &[u32]) -> Paired {
    let differences: Vec<f64> = pairs.iter().map(|(engine, control)| engine - control).collect();
    let rows: Vec<Vec<f64>> = differences.iter().map(|difference| vec![*difference]).collect();
    let nothing = Estimate { mean: 0.0, low: 0.0, high: 0.0 };
    let by_query = |seed: u64| estimate_with(&rows, seed).first().copied().unwrap_or(nothing);
    judged(control, &[differences], &[tools], by_query)
}

/// What differences by query say, one list a set, with the interval that `by_query` gives for a seed, and with the first
/// tools that the queries of the sets need, where those of all sets are known.
fn judged(control: &str, differences: &[Vec<f64>], tools: &[&[u32]], by_query: impl Fn(u64) -> Estimate) -> Paired {
    let differing = differences.iter().flatten().filter(|difference| **difference != 0.0).count();
    if differing == 0 {
        // Whatever is drawn, it is nothing.
        let difference = Estimate { mean: 0.0, low: 0.0, high: 0.0 };
        let verdict = Verdict::Inconclusive;
        return Paired { control: control.to_owned(), difference, differing, p: 1.0, verdict, depends_on_seed: false };
    }
    let are_known = differences.iter().zip(tools).all(|(set, tools)| set.len() == tools.len());
    let clusters: Vec<Vec<(f64, usize)>> = match are_known && tools.len() == differences.len() {
        true => differences.iter().zip(tools).map(|(set, tools)| clusters(tools, set)).collect(),
        false => Vec::new(),
    };
    // What each unit adds to the mean over the sets.
    let weight = |queries: usize| (differences.len() * queries) as f64;
    let alone: Vec<f64> =
        differences.iter().flat_map(|set| set.iter().map(move |one| one / weight(set.len()))).collect();
    let together: Vec<f64> = (clusters.iter().zip(differences))
        .flat_map(|(own, set)| own.iter().map(move |(sum, _)| sum / weight(set.len())))
        .collect();
    let by = |seed: u64| {
        let (mut difference, mut p) = (by_query(seed), sign_flip(&alone, seed));
        if !together.is_empty() {
            let by_tool = clustered_with(&clusters, seed);
            if by_tool.high - by_tool.low > difference.high - difference.low {
                difference = by_tool;
            }
            p = p.max(sign_flip(&together, seed));
        }
        let p = round6(p);
        (difference, p, verdict_alone(&difference, differing, p))
    };
    let (difference, p, verdict) = by(BOOTSTRAP_SEED);
    let is_drawn = differing >= FEW && !is_clear(&difference, p);
    let depends_on_seed = is_drawn && OTHER_SEEDS.into_iter().any(|seed| by(seed).2 != verdict);
    Paired { control: control.to_owned(), difference, differing, p, verdict, depends_on_seed }
}

/// What a difference says by itself, of which `differing` queries are the evidence and `p` is the probability: what its interval
/// says, where the probability is at most the level. A bootstrap of few differences is too bold, and there the sign decides.
#[must_use]
pub fn verdict_alone(difference: &Estimate, differing: usize, p: f64) -> Verdict {
    match p <= LEVEL {
        true if differing < FEW => Verdict::of_sign(difference.mean),
        true => Verdict::of(difference),
        false => Verdict::Inconclusive,
    }
}

/// Whether a verdict is the same by every seed, so that it needs no second look: where the probability is half or twice the
/// level, or an end of the interval a quarter of its width from zero, more than ten standard errors of the draws lie between.
fn is_clear(difference: &Estimate, p: f64) -> bool {
    let Estimate { low, high, .. } = *difference;
    let room = (high - low) / 4.0;
    let is_found = p < LEVEL / 2.0 && low.abs().min(high.abs()) > room;
    is_found || p > LEVEL * 2.0
}

/// The differences of queries, summed over those that need the same tool first, with their number.
fn clusters(tools: &[u32], differences: &[f64]) -> Vec<(f64, usize)> {
    let mut sums: BTreeMap<u32, (f64, usize)> = BTreeMap::new();
    for (tool, difference) in tools.iter().zip(differences) {
        let sum = sums.entry(*tool).or_default();
        *sum = (sum.0 + difference, sum.1 + 1);
    }
    sums.into_values().collect()
}

/// Differences that are looked at side by side, with what each says there: as by itself, unless Holm's correction for their
/// number leaves nothing of it.
#[must_use]
pub fn corrected(paired: &[&Paired]) -> Vec<Paired> {
    compared(paired).into_iter().map(|one| one.paired).collect()
}

/// The same with the probabilities that Holm's correction gives.
#[must_use]
pub fn compared(family: &[&Paired]) -> Vec<Compared> {
    let adjusted = holm(&family.iter().map(|one| one.p).collect::<Vec<f64>>());
    let of = |(one, p): (&&Paired, f64)| {
        let p_holm = round6(p);
        let verdict = if p_holm <= LEVEL { one.verdict } else { Verdict::Inconclusive };
        Compared { paired: Paired { verdict, ..(*one).clone() }, p_holm }
    };
    family.iter().zip(adjusted).map(of).collect()
}

/// Corrects the differences of several from the first of them. The first is its difference from itself and does not count to the
/// family of the others. What they are corrected for already is forgotten.
pub fn correct_against_first(family: Vec<&mut Compared>) {
    let alone = |one: &&mut Compared| {
        let Paired { difference, differing, p, .. } = one.paired;
        Paired { verdict: verdict_alone(&difference, differing, p), ..one.paired.clone() }
    };
    let alone: Vec<Paired> = family.iter().map(alone).collect();
    let Some((first, others)) = alone.split_first() else { return };
    let others = compared(&others.iter().collect::<Vec<_>>());
    let all = std::iter::once(Compared::alone(first.clone())).chain(others);
    family.into_iter().zip(all).for_each(|(one, corrected)| *one = corrected);
}

/// The two-sided probability that flipped signs give a sum as far from 0, under the hypothesis that each value is as
/// likely as its opposite (Fisher, *The Design of Experiments*, 1935). All flips are counted up to [`FEW`] values, which
/// is exact; of more, some thousands are drawn by `seed`, and the share is (b + 1) / (B + 1) (Phipson and Smyth,
/// "Permutation P-values Should Never Be Zero", 2010). Values are finite and of any size; 1 of nothing.
#[must_use]
pub fn sign_flip(values: &[f64], seed: u64) -> f64 {
    let unit = unit(values);
    // Whole numbers, and a tolerance of their rounding: sums that are equal must not differ in their last bit.
    let whole: Vec<i64> =
        values.iter().filter(|value| **value != 0.0).map(|value| (value / unit * 1e12).round() as i64).collect();
    if whole.is_empty() {
        return 1.0;
    }
    let seen = whole.iter().sum::<i64>().abs() - whole.len() as i64;
    if whole.len() <= FEW {
        return flipped_in_all_ways(&whole, seen);
    }
    // The sums of eight values by the byte that says which of them are flipped: a draw adds one of each table.
    let tables: Vec<[i64; 256]> = whole.chunks(8).map(sums_by_flips).collect();
    let mut rng = Rng::new(seed).fork("sign flips");
    let mut as_far = 0;
    for _ in 0..FLIPS {
        let mut sum = 0;
        for eight in tables.chunks(8) {
            for (sums, flips) in eight.iter().zip(rng.next_u64().to_le_bytes()) {
                sum += sums[usize::from(flips)];
            }
        }
        as_far += usize::from(sum.abs() >= seen);
    }
    (as_far + 1) as f64 / (FLIPS + 1) as f64
}

/// The share of all ways to flip signs that give a sum of at least `seen`. Each way differs from the one before in one value
/// (a Gray code), and the last value is never flipped: all signs flipped give the same distance.
fn flipped_in_all_ways(whole: &[i64], seen: i64) -> f64 {
    let half = 1u32 << (whole.len() - 1);
    let mut signed = whole.to_vec();
    let mut sum: i64 = whole.iter().sum();
    let mut as_far = u32::from(sum.abs() >= seen);
    for way in 1..half {
        let value = &mut signed[way.trailing_zeros() as usize];
        sum -= 2 * *value;
        *value = -*value;
        as_far += u32::from(sum.abs() >= seen);
    }
    f64::from(as_far) / f64::from(half)
}

/// The sums of at most eight values, by the bits that say which of them are flipped; those beyond the values say nothing.
fn sums_by_flips(values: &[i64]) -> [i64; 256] {
    let mut sums = [values.iter().sum(); 256];
    for flips in 1..256usize {
        let value = values.get(flips.trailing_zeros() as usize).copied().unwrap_or_default();
        sums[flips] = sums[flips & (flips - 1)] - 2 * value;
    }
    sums
}

/// What values are divided by before they become whole numbers: 1 for shares of a mean of measures. Larger ones would
/// overflow, and smaller ones would be rounded away.
fn unit(values: &[f64]) -> f64 {
    let largest = values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    if largest > 1.0 {
        // The sum has to fit too, however many values there are.
        largest.max(values.iter().map(|value| value.abs() / 1e6).sum())
    } else if largest > 0.0 && largest < 1e-7 {
        largest
    } else {
        1.0
    }
}

/// Probabilities adjusted for their number by Holm, "A Simple Sequentially Rejective Multiple Test Procedure",
/// Scandinavian Journal of Statistics 6(2), 1979: at most the level of them are below it by chance, in the order given.
#[must_use]
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|left, right| probabilities[*left].total_cmp(&probabilities[*right]));
    let mut adjusted = vec![1.0; probabilities.len()];
    let mut highest: f64 = 0.0;
    for (place, index) in order.into_iter().enumerate() {
        highest = highest.max(probabilities[index] * (probabilities.len() - place) as f64).min(1.0);
        adjusted[index] = highest;
    }
    adjusted
}

/// False discovery rates by Benjamini and Hochberg, "Controlling the False Discovery Rate", Journal of the Royal
/// Statistical Society B 57(1), 1995, in the order given.
#[must_use]
pub fn false_discovery(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|left, right| probabilities[*right].total_cmp(&probabilities[*left]));
    let mut adjusted = vec![1.0; probabilities.len()];
    let mut lowest: f64 = 1.0;
    for (place, index) in order.into_iter().enumerate() {
        let rank = (probabilities.len() - place) as f64;
        lowest = lowest.min(probabilities[index] * probabilities.len() as f64 / rank);
        adjusted[index] = lowest;
    }
    adjusted
}

/// The mean over sets of the mean within each, by bootstrap of the values within every set: the sets are those that there
/// are, their queries a sample. Sets without values are left out.
#[must_use]
pub fn macro_mean(sets: &[Vec<f64>]) -> Estimate {
    let sets: Vec<Vec<f64>> = sets.iter().filter(|set| !set.is_empty()).cloned().collect();
    macro_with(&sets, BOOTSTRAP_SEED)
}

/// The same by a seed. No set may be empty.
fn macro_with(sets: &[Vec<f64>], seed: u64) -> Estimate {
    let mut rng = Rng::new(seed);
    let mut resample = || {
        mean(sets.iter().map(|set| {
            let mut sum = 0.0;
            for _ in set {
                sum += set[rng.below(set.len())];
            }
            sum / set.len() as f64
        }))
    };
    let resampled = (0..RESAMPLES).map(|_| resample()).collect();
    interval(mean(sets.iter().map(|set| mean(set.iter().copied()))), resampled)
}

/// The mean over sets of the mean difference (engine − control) within each, as [`macro_mean`] takes it. Sets without pairs
/// are left out.
#[must_use]
pub fn paired_macro(control: &str, sets: &[Vec<(f64, f64)>]) -> Paired {
    paired_macro_by_tool(control, sets, &[])
}

/// The same where `tools` has for every set the first tools that its queries need; see [`paired_by_tool`].
#[must_use]
pub fn paired_macro_by_tool(control: &str, sets: &[Vec<(f64, f64)>], tools: &[&[u32]]) -> Paired {
    let of = |pairs: &Vec<(f64, f64)>| pairs.iter().map(|(engine, control)| engine - control).collect();
    let differences: Vec<Vec<f64>> = sets.iter().filter(|pairs| !pairs.is_empty()).map(of).collect();
    let tools: Vec<&[u32]> = tools.iter().copied().filter(|tools| !tools.is_empty()).collect();
    judged(control, &differences, &tools, |seed| macro_with(&differences, seed))
}

/// The interval of the same mean when queries that need the same tool stand or fall together: clusters are resampled whole
/// within every set. A cluster is the sum of its differences and the number of its queries.
#[must_use]
pub fn clustered_macro(sets: &[Vec<(f64, usize)>]) -> Estimate {
    clustered_with(sets, BOOTSTRAP_SEED)
}

fn clustered_with(sets: &[Vec<(f64, usize)>], seed: u64) -> Estimate {
    let ratio = |clusters: &mut dyn Iterator<Item = (f64, usize)>| {
        let (sum, queries) = clusters.fold((0.0, 0), |(sum, queries), one| (sum + one.0, queries + one.1));
        sum / queries.max(1) as f64
    };
    let sets: Vec<&Vec<(f64, usize)>> = sets.iter().filter(|set| !set.is_empty()).collect();
    let mut rng = Rng::new(seed);
    let mut resample = || mean(sets.iter().map(|set| ratio(&mut (0..set.len()).map(|_| set[rng.below(set.len())]))));
    let resampled = (0..RESAMPLES).map(|_| resample()).collect();
    interval(mean(sets.iter().map(|set| ratio(&mut set.iter().copied()))), resampled)
}

impl Verdict {
    /// What a difference that is no chance says by its sign.
    #[must_use]
    pub fn of_sign(difference: f64) -> Self {
        match difference {
            over if over > 0.0 => Self::Better,
            under if under < 0.0 => Self::Worse,
            _ => Self::Inconclusive,
        }
    }

    /// What the interval of a difference says: an interval that holds zero, or touches it, is inconclusive.
    #[must_use]
    pub fn of(difference: &Estimate) -> Self {
        if difference.low > 0.0 {
            Self::Better
        } else if difference.high < 0.0 {
            Self::Worse
        } else {
            Self::Inconclusive
        }
    }
}

/// The 97.5th percentile of Student's t by degrees of freedom, from 1 to 30.
const T_975: [f64; 30] = [
    12.706_204_736_175,
    4.302_652_729_749,
    3.182_446_305_284,
    2.776_445_105_198,
    2.570_581_835_636,
    2.446_911_851_145,
    2.364_624_251_593,
    2.306_004_135_204,
    2.262_157_162_798,
    2.228_138_851_986,
    2.200_985_160_092,
    2.178_812_829_667,
    2.160_368_656_463,
    2.144_786_687_918,
    2.131_449_545_560,
    2.119_905_299_221,
    2.109_815_577_833,
    2.100_922_040_241,
    2.093_024_054_408,
    2.085_963_447_266,
    2.079_613_844_728,
    2.073_873_067_904,
    2.068_657_610_419,
    2.063_898_561_628,
    2.059_538_552_753,
    2.055_529_438_643,
    2.051_830_516_480,
    2.048_407_141_795,
    2.045_229_642_133,
    2.042_272_456_301,
];

/// The mean of one value a set, with the 95 % interval for sets like these: Student's t with n - 1 degrees of freedom
/// (above 30 those of 30, which is wider). Where a bootstrap within the sets says what these sets give, this says what
/// others would. `None` for fewer than two sets.
#[must_use]
pub fn over_sets(values: &[f64]) -> Option<Estimate> {
    let (mean, half) = mean_and_half(values)?;
    Some(Estimate { mean: round6(mean), low: round6(mean - half), high: round6(mean + half) })
}

/// The mean and half the width of its 95 % interval, as they are.
fn mean_and_half(values: &[f64]) -> Option<(f64, f64)> {
    let t = T_975.get(values.len().checked_sub(2)?.min(T_975.len() - 1))?;
    let mean = mean(values.iter().copied());
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64;
    Some((mean, t * (variance / values.len() as f64).sqrt()))
}

/// The smallest mean paired difference that `queries` queries show at the 5 % level (two-sided) with 80 % power:
/// (z.975 + z.8) σ / √n, the normal approximation to the paired t-test (Sakai, "Topic Set Size Design", Information Retrieval
/// Journal 19(3), 2016). `deviation` is σ, the standard deviation of the per-query differences: for a measure of 0 or 1
/// that two engines disagree on for a share d of the queries it is at most √d. `None` without queries.
#[must_use]
pub fn minimum_detectable_difference(queries: usize, deviation: f64) -> Option<f64> {
    const Z_975: f64 = 1.959_963_984_540_054;
    const Z_80: f64 = 0.841_621_233_572_914_3;
    (queries > 0).then(|| (Z_975 + Z_80) * deviation / (queries as f64).sqrt())
}

/// The two-sided exact sign test, for hits that of McNemar (1947): the probability that of `won` + `lost` fair coins the split is at least as uneven; 1 of
/// none.
#[must_use]
pub fn sign_test(won: usize, lost: usize) -> f64 {
    let tosses = won + lost;
    // Terms of the binomial distribution from the least likely on, in logarithms: thousands of coins underflow.
    let mut log = -(tosses as f64) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    for heads in 0..=won.min(lost) {
        tail += libm::exp(log);
        log += libm::log((tosses - heads) as f64 / (heads + 1) as f64);
    }
    (2.0 * tail).min(1.0)
}

/// The largest share of all that `count` of `of` leave possible: the upper end of the one-sided 95 % interval by Clopper and
/// Pearson, "The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial", Biometrika 26(4), 1934, which
/// is exact; 1 of nothing.
#[must_use]
pub fn largest_share(count: usize, of: usize) -> f64 {
    if count >= of {
        return 1.0;
    }
    // The probability of at most `count`, in logarithms: powers of large numbers underflow.
    let at_most = |share: f64| {
        let (hit, miss) = (libm::log(share), libm::log1p(-share));
        let (mut ways, mut sum) = (0.0, 0.0);
        for hits in 0..=count {
            sum += libm::exp(ways + hits as f64 * hit + (of - hits) as f64 * miss);
            ways += libm::log((of - hits) as f64 / (hits + 1) as f64);
        }
        sum
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if at_most(middle) > LEVEL { low = middle } else { high = middle }
    }
    high
}

/// The percentile (`percent` in 0..=100) of ascending values, interpolated between neighbours (type 7 of Hyndman and
/// Fan, "Sample Quantiles in Statistical Packages", The American Statistician 50(4), 1996); 0 of nothing.
#[must_use]
pub fn percentile(ascending: &[f64], percent: f64) -> f64 {
    let Some(last) = ascending.len().checked_sub(1) else { return 0.0 };
    let place = (percent / 100.0).clamp(0.0, 1.0) * last as f64;
    let (below, above) = (ascending[place.floor() as usize], ascending[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// The median of values in any order; 0 of nothing.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut ascending = values.to_vec();
    ascending.sort_unstable_by(f64::total_cmp);
    percentile(&ascending, 50.0)
}

/// The median absolute deviation from the median, unscaled; 0 of nothing.
#[must_use]
pub fn mad(values: &[f64]) -> f64 {
    let centre = median(values);
    median(&values.iter().map(|value| (value - centre).abs()).collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use serde::Deserialize;

    use super::super::rng::Rng;
    use super::*;

    /// What SciPy and statsmodels give; `scripts/statistics-fixtures` writes it.
    #[derive(Deserialize)]
    struct Fixtures {
        sign_flip: Vec<Flip>,
        sign_flip_drawn: Vec<Flip>,
        sign_test: Vec<Tosses>,
        holm: Vec<Adjusted>,
        false_discovery: Vec<Adjusted>,
        over_sets: Vec<Sample>,
    }

    #[derive(Deserialize)]
    struct Flip {
        values: Vec<f64>,
        p: f64,
    }

    #[derive(Deserialize)]
    struct Tosses {
        won: usize,
        lost: usize,
        p: f64,
    }

    #[derive(Deserialize)]
    struct Adjusted {
        p: Vec<f64>,
        adjusted: Vec<f64>,
    }

    #[derive(Deserialize)]
    struct Sample {
        values: Vec<f64>,
        interval: [f64; 2],
    }

    #[test]
    fn statistics_are_those_of_scipy() {
        let fixtures: Fixtures = serde_json::from_str(include_str!("statistics.json")).unwrap();
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        for Flip { values, p } in &fixtures.sign_flip {
            let found = sign_flip(values, BOOTSTRAP_SEED);
            assert!(near(found, *p), "{values:?}: {found} instead of {p}");
        }
        for Tosses { won, lost, p } in &fixtures.sign_test {
            let found = sign_test(*won, *lost);
            assert!(near(found, *p), "{won} {lost}: {found} instead of {p}");
        }
        type Adjust = fn(&[f64]) -> Vec<f64>;
        for (adjust, rows) in [(holm as Adjust, &fixtures.holm), (false_discovery, &fixtures.false_discovery)] {
            for Adjusted { p, adjusted } in rows {
                let found = adjust(p);
                assert!(found.iter().zip(adjusted).all(|(found, one)| near(*found, *one)), "{p:?}: {found:?}");
                assert_eq!(found.len(), p.len());
            }
        }
        for Sample { values, interval: [low, high] } in &fixtures.over_sets {
            let (mean, half) = mean_and_half(values).unwrap();
            assert!(near(mean - half, *low) && near(mean + half, *high), "{values:?}: {mean} {half}");
            let rounded = over_sets(values).unwrap();
            assert_eq!((rounded.low, rounded.high), (round6(*low), round6(*high)), "{values:?}");
        }
        // Drawn, so within four standard errors of the draws.
        for Flip { values, p } in &fixtures.sign_flip_drawn {
            let found = sign_flip(values, BOOTSTRAP_SEED);
            let error = 4.0 * (p * (1.0 - p) / FLIPS as f64).sqrt() + 1e-4;
            assert!((found - p).abs() < error, "{} values: {found} instead of {p}", values.len());
        }
    }

    #[test]
    fn what_is_corrected_again_is_as_it_was() {
        let pairs =
            |lost: usize| -> Vec<(f64, f64)> { (0..100).map(|n| (f64::from(u8::from(n >= lost)), 1.0)).collect() };
        let family = || [0, 8, 30, 5].map(|lost| Compared::alone(paired("first", &pairs(lost)))).to_vec();
        let mut once = family();
        correct_against_first(once.iter_mut().collect());
        let is_worse: Vec<bool> = once.iter().map(|one| one.paired.verdict == Verdict::Worse).collect();
        assert_eq!(is_worse, [false, true, true, false]);
        // Of three, the least counts three times, the next twice, and the last once; none below the one before.
        let p: Vec<f64> = once.iter().map(|one| one.p_holm).collect();
        assert_eq!(p, [1.0, 0.015626, 0.0003, 0.0625]);
        let mut again = once.clone();
        correct_against_first(again.iter_mut().collect());
        assert_eq!(again, once);
    }

    #[test]
    fn few_differences_are_judged_exactly() {
        let pairs =
            |lost: usize| -> Vec<(f64, f64)> { (0..400).map(|n| (f64::from(u8::from(n >= lost)), 1.0)).collect() };
        // The interval of four losses in 400 lies below zero; by the signs alone they are one chance in eight.
        let four = paired("flat", &pairs(4));
        assert!(four.difference.high < 0.0, "{four:?}");
        assert_eq!((four.verdict, four.differing), (Verdict::Inconclusive, 4));
        assert_eq!(paired("flat", &pairs(6)).verdict, Verdict::Worse);
    }

    /// The same, flip by flip, over whole numbers.
    fn flipped_plainly(values: &[i64]) -> f64 {
        let seen = values.iter().sum::<i64>().abs();
        let sum = |flips: u32| -> i64 {
            values.iter().enumerate().map(|(at, value)| if flips >> at & 1 == 1 { -value } else { *value }).sum()
        };
        let all = 1u32 << values.len();
        (0..all).filter(|flips| sum(*flips).abs() >= seen).count() as f64 / f64::from(all)
    }

    proptest! {
        #[test]
        fn flips_are_counted_at_any_scale(
            values in prop::collection::vec(-1000i64..=1000, 0..=12),
            scale in prop_oneof![1e-300..1e-290, 1e-12..1e-5, 1e-3..1.0, 1.0..1e3, 1e9..1e12, 1e200..1e300],
        ) {
            let scaled: Vec<f64> = values.iter().map(|value| *value as f64 * scale).collect();
            let values: Vec<i64> = values.into_iter().filter(|value| *value != 0).collect();
            prop_assert_eq!(sign_flip(&scaled, BOOTSTRAP_SEED), flipped_plainly(&values));
        }
    }

    #[test]
    fn signs_are_drawn_one_bit_a_value() {
        for count in [21, 24, 63, 64, 65, 130] {
            let values: Vec<f64> = (1..=count).map(|value| (f64::from(value * 37 % 41) - 16.5) / 100.0).collect();
            let whole: Vec<i64> = values.iter().map(|value| (value * 1e12).round() as i64).collect();
            let seen = whole.iter().sum::<i64>().abs() - whole.len() as i64;
            let mut rng = Rng::new(BOOTSTRAP_SEED).fork("sign flips");
            let mut sum = || -> i64 {
                let sum = |values: &[i64]| -> i64 {
                    let bits = rng.next_u64();
                    let signed = |(place, value): (usize, &i64)| if bits >> place & 1 == 1 { -value } else { *value };
                    values.iter().enumerate().map(signed).sum()
                };
                whole.chunks(64).map(sum).sum()
            };
            let as_far = (0..FLIPS).filter(|_| sum().abs() >= seen).count();
            let p = (as_far + 1) as f64 / (FLIPS + 1) as f64;
            assert_eq!(sign_flip(&values, BOOTSTRAP_SEED), p, "{count} values");
        }
    }

    #[test]
    fn many_large_values_do_not_overflow() {
        let values: Vec<f64> = (0..2_000).map(|value| if value % 2 == 0 { 1e9 } else { -9e8 }).collect();
        let p = sign_flip(&values, BOOTSTRAP_SEED);
        assert!(p > 0.0 && p < 0.2, "{p}");
    }

    #[test]
    fn clusters_widen_the_interval() {
        let queries: Vec<(f64, usize)> = (0..120).map(|query| (f64::from(u8::from(query % 3 == 0)), 1)).collect();
        let tools: Vec<(f64, usize)> = (0..12).map(|tool| (if tool % 3 == 0 { 10.0 } else { 0.0 }, 10)).collect();
        let (alone, together) = (clustered_macro(&[queries]), clustered_macro(&[tools, Vec::new()]));
        assert_eq!((alone.mean, together.mean), (0.333333, 0.333333));
        assert!(together.high - together.low > 2.5 * (alone.high - alone.low), "{alone:?} {together:?}");
    }

    /// The same bootstrap, row by row and column by column.
    fn estimate_plainly(rows: &[Vec<f64>], column: usize) -> Estimate {
        let mut rng = Rng::new(BOOTSTRAP_SEED);
        let n = rows.len();
        let resampled = (0..RESAMPLES).map(|_| mean((0..n).map(|_| rows[rng.below(n)][column]))).collect();
        interval(mean(rows.iter().map(|row| row[column])), resampled)
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1.5e-6
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn counting_equal_rows_changes_nothing(
            rows in prop::collection::vec(prop::collection::vec((0u8..5).prop_map(|v| f64::from(v) / 4.0), 3), 1..40)
        ) {
            let estimates = estimate_all(&rows);
            prop_assert_eq!(estimates.len(), 3);
            for (column, estimate) in estimates.iter().enumerate() {
                let plain = estimate_plainly(&rows, column);
                prop_assert!(close(estimate.mean, plain.mean), "{estimate:?} {plain:?}");
                prop_assert!(close(estimate.low, plain.low) && close(estimate.high, plain.high), "{estimate:?} {plain:?}");
            }
        }
    }

    #[test]
    fn the_interval_is_about_as_wide_as_theory_says() {
        // 300 of 400 queries answered: the normal interval is .75 ± 1.96 √(.75 · .25 / 400) = .75 ± .0424.
        let rows: Vec<Vec<f64>> = (0..400).map(|query| vec![f64::from(u8::from(query % 4 != 0)), 1.0]).collect();
        let estimates = estimate_all(&rows);
        assert_eq!(estimates[0].mean, 0.75);
        assert!((estimates[0].low - 0.7076).abs() < 0.006, "{:?}", estimates[0]);
        assert!((estimates[0].high - 0.7924).abs() < 0.006, "{:?}", estimates[0]);
        assert_eq!(estimates[1], Estimate { mean: 1.0, low: 1.0, high: 1.0 });
        assert_eq!(estimate_all(&[]), []);
    }

    #[test]
    fn verdicts_follow_the_interval() {
        let pairs = |engine: f64, control: f64| -> Vec<(f64, f64)> {
            (0..100).map(|query| if query < 20 { (engine, control) } else { (1.0, 1.0) }).collect()
        };
        assert_eq!(paired("flat", &pairs(1.0, 0.0)).verdict, Verdict::Better);
        assert_eq!(paired("flat", &pairs(0.0, 1.0)).verdict, Verdict::Worse);
        assert_eq!(paired("flat", &pairs(1.0, 1.0)).verdict, Verdict::Inconclusive);
        assert_eq!(paired("flat", &[]).verdict, Verdict::Inconclusive);
        let same = paired("flat", &pairs(0.1, 0.1)).difference;
        assert_eq!(same, Estimate { mean: 0.0, low: 0.0, high: 0.0 });
        let touching = Estimate { mean: 0.1, low: 0.0, high: 0.2 };
        assert_eq!(Verdict::of(&touching), Verdict::Inconclusive);
    }

    #[test]
    fn a_macro_difference_gives_every_set_the_same_weight() {
        let many: Vec<(f64, f64)> = (0..400).map(|query| (f64::from(u8::from(query % 4 != 0)), 0.0)).collect();
        let same = vec![(0.5, 0.5); 10];
        let both = paired_macro("flat", &[many.clone(), same, Vec::new()]);
        assert_eq!((both.difference.mean, both.verdict), (0.375, Verdict::Better));
        // Half the width of the one set that varies, see above.
        assert!((both.difference.low - (0.375 - 0.0212)).abs() < 0.003, "{both:?}");
        let alone = paired_macro("flat", std::slice::from_ref(&many)).difference;
        assert_eq!(alone.mean, paired("flat", &many).difference.mean);
        assert_eq!(paired_macro("flat", &[]).difference, Estimate { mean: 0.0, low: 0.0, high: 0.0 });
    }

    #[test]
    fn the_interval_over_sets_is_that_of_students_t() {
        // scipy.stats.t.interval(.95, 3, loc=np.mean(x), scale=scipy.stats.sem(x))
        let four = over_sets(&[0.1, 0.02, 0.03, 0.05]).unwrap();
        assert_eq!(four, Estimate { mean: 0.05, low: -0.006632, high: 0.106632 });
        assert_eq!(over_sets(&[0.5]), None);
        assert_eq!(over_sets(&[0.5; 40]), Some(Estimate { mean: 0.5, low: 0.5, high: 0.5 }));
    }

    #[test]
    fn the_detectable_difference_shrinks_with_the_root_of_the_queries() {
        let difference = minimum_detectable_difference(400, 0.1_f64.sqrt()).unwrap();
        assert_eq!(round6(difference), 0.044297);
        assert_eq!(minimum_detectable_difference(0, 1.0), None);
    }

    #[test]
    fn the_largest_share_is_that_of_clopper_and_pearson() {
        // Where at most so many are one chance in twenty, by sums of whole numbers; of none it is 1 − .05^(1/n).
        let table = [
            (0, 3, 0.631596850136),
            (1, 3, 0.864649637828),
            (1, 300, 0.015714554892),
            (1, 473, 0.009989707474),
            (2, 600, 0.010455489384),
            (19, 400, 0.068921627484),
        ];
        for (count, of, expected) in table {
            let found = largest_share(count, of);
            assert!((found - expected).abs() < 1e-9, "{count} of {of}: {found} instead of {expected}");
        }
        assert_eq!([largest_share(0, 0), largest_share(3, 3)], [1.0, 1.0]);
    }

    #[test]
    fn order_statistics_of_timings() {
        let values = [4.0, 1.0, 3.0, 2.0, 100.0];
        assert_eq!([median(&values), mad(&values)], [3.0, 1.0]);
        assert_eq!([median(&[1.0, 2.0]), median(&[]), mad(&[])], [1.5, 0.0, 0.0]);
        let ascending: Vec<f64> = (1..=101).map(f64::from).collect();
        assert_eq!([0.0, 50.0, 95.0, 99.0, 100.0].map(|p| percentile(&ascending, p)), [1.0, 51.0, 96.0, 100.0, 101.0]);
        assert_eq!(percentile(&[1.0, 2.0], 75.0), 1.75);
    }

    #[test]
    fn rounding_keeps_six_decimals() {
        assert_eq!([round6(1.0 / 3.0), round6(2.0 / 3.0)], [0.333333, 0.666667]);
        assert!(round6(-1e-9).is_sign_positive());
    }
}
