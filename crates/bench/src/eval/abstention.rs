//! Whether an engine's confidence tells which queries it should leave unanswered.
//!
//! Queries are answered in descending confidence. Equal confidences have no order: inside a tie the errors are spread
//! evenly, which is their mean over all orders, so nothing here depends on how the queries were listed.

use super::record::{Abstention, Estimate, Facts, NothingFits, Part, RiskPoint};
use super::statistics::round6;

/// The standard deviations between the middle and the ends of a 95 % interval.
const NORMAL_95: f64 = 1.96;

/// What would come of answering a query with the first five tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// At least one of them is relevant.
    Right,
    /// A tool answers the query and is not among them.
    Wrong,
    /// No tool answers the query: only silence is right.
    Unanswerable,
}

/// The risk–coverage curve and its summaries from the confidence and the answer of every query; `None` unless there
/// are both answerable and unanswerable ones. All figures are rounded to six decimals.
///
/// The risk at a coverage is the share of [`Answer::Wrong`] and [`Answer::Unanswerable`] among the queries answered
/// (El-Yaniv and Wiener, "On the Foundations of Noise-free Selective Classification", JMLR 11, 2010). AURC is the
/// mean risk over the coverages 1/n, 2/n … 1 (Geifman, Uziel and El-Yaniv, "Bias-Reduced Uncertainty Estimation for
/// Deep Neural Classifiers", ICLR 2019). AUROC is the Mann–Whitney statistic with mid-ranks: the probability that an
/// answerable query has more confidence than an unanswerable one, a tie counting one half (Hanley and McNeil,
/// Radiology 143(1), 1982).
#[must_use]
pub fn abstention(queries: &[(f64, Answer)]) -> Option<Abstention> {
    let auroc = auroc(queries)?;
    let errors = Errors::of(queries);
    let n = queries.len() as f64;
    let aurc = (1..=queries.len()).map(|answered| errors.risk(answered as f64)).sum::<f64>() / n;
    let point = |tenths: u8| {
        let coverage = f64::from(tenths) / 10.0;
        RiskPoint { coverage, risk: round6(errors.risk(coverage * n)) }
    };
    Some(Abstention { aurc: round6(aurc), auroc: round6(auroc), curve: (1..=10).map(point).collect(), ece: None })
}

/// How well the confidence of an engine tells the queries that a tool answers from the others: AUROC with its 95 % interval
/// (Hanley and McNeil, Radiology 143(1), 1982, for which the queries are a sample); `None` without both sorts of queries.
#[must_use]
pub fn told_apart(facts: &Facts) -> Option<Estimate> {
    let area = facts.abstention.as_ref()?.auroc;
    let (yes, no) = (facts.answerable as f64, facts.unanswerable as f64);
    if facts.answerable == 0 || facts.unanswerable == 0 {
        return None;
    }
    let square = area * area;
    let (one, other) = (area / (2.0 - area) - square, 2.0 * square / (1.0 + area) - square);
    let variance = (area * (1.0 - area) + (yes - 1.0) * one + (no - 1.0) * other) / (yes * no);
    let half = NORMAL_95 * variance.max(0.0).sqrt();
    Some(Estimate { mean: area, low: round6((area - half).max(0.0)), high: round6((area + half).min(1.0)) })
}

/// The expected calibration error over ten bins of equal width: the mean distance between confidence and the share of
/// [`Answer::Right`], bins weighted by their queries; rounded to six decimals, 0 of nothing (Naeini, Cooper and
/// Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian Binning", AAAI 2015).
#[must_use]
pub fn calibration_error(queries: &[(f64, Answer)]) -> f64 {
    const BINS: usize = 10;
    let mut surplus = [0.0; BINS];
    for (confidence, answer) in by_confidence(queries) {
        let bin = ((confidence * BINS as f64) as usize).min(BINS - 1);
        surplus[bin] += confidence - f64::from(u8::from(answer == Answer::Right));
    }
    round6(surplus.iter().map(|sum| sum.abs()).sum::<f64>() / queries.len().max(1) as f64)
}

/// How many queries of each sort have a confidence `below` this.
#[must_use]
pub fn nothing_fits(queries: &[(f64, Answer)], below: f64) -> NothingFits {
    let part = |sort: Answer| {
        let own = || queries.iter().filter(|(_, answer)| *answer == sort);
        Part { queries: own().filter(|(confidence, _)| *confidence < below).count(), of: own().count() }
    };
    NothingFits {
        below,
        right: part(Answer::Right),
        wrong: part(Answer::Wrong),
        unanswerable: part(Answer::Unanswerable),
    }
}

/// Errors made so far as a function of the queries answered so far: straight within a tie.
struct Errors {
    /// Queries and errors at the end of each tie, ascending, from (0, 0).
    corners: Vec<(f64, f64)>,
}

impl Errors {
    fn of(queries: &[(f64, Answer)]) -> Self {
        let mut corners = vec![(0.0, 0.0)];
        let (mut answered, mut errors) = (0, 0);
        for tied in by_confidence(queries).chunk_by(|left, right| left.0 == right.0) {
            answered += tied.len();
            errors += tied.iter().filter(|(_, answer)| *answer != Answer::Right).count();
            corners.push((answered as f64, errors as f64));
        }
        Self { corners }
    }

    /// The share of errors among the first `answered` queries (a positive number, not necessarily whole).
    fn risk(&self, answered: f64) -> f64 {
        let next = self.corners.partition_point(|(end, _)| *end < answered).clamp(1, self.corners.len() - 1);
        let ((start, before), (end, after)) = (self.corners[next - 1], self.corners[next]);
        (before + (after - before) * (answered - start) / (end - start)) / answered
    }
}

/// The queries in descending confidence.
fn by_confidence(queries: &[(f64, Answer)]) -> Vec<(f64, Answer)> {
    // A negative zero equals zero here, as it does in a comparison.
    let mut sorted: Vec<_> = queries.iter().map(|(confidence, answer)| (confidence + 0.0, *answer)).collect();
    sorted.sort_by(|left, right| right.0.total_cmp(&left.0));
    sorted
}

fn auroc(queries: &[(f64, Answer)]) -> Option<f64> {
    // Twice the number of (answerable, unanswerable) pairs in the right order, so that a half is a whole number.
    let (mut twice_ordered, mut answerable, mut unanswerable) = (0, 0, 0);
    for tied in by_confidence(queries).chunk_by(|left, right| left.0 == right.0) {
        let silent = tied.iter().filter(|(_, answer)| *answer == Answer::Unanswerable).count();
        let tied_answerable = tied.len() - silent;
        twice_ordered += silent * (2 * answerable + tied_answerable);
        answerable += tied_answerable;
        unanswerable += silent;
    }
    let pairs = answerable * unanswerable;
    (pairs > 0).then(|| twice_ordered as f64 / (2 * pairs) as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Answer::{Right, Unanswerable, Wrong};
    use super::*;

    #[test]
    fn figures_worked_by_hand() {
        let queries = [(0.9, Right), (0.8, Right), (0.7, Unanswerable), (0.6, Right), (0.5, Wrong)];
        let figures = abstention(&queries).unwrap();
        // Risks at 1..=5 answered: 0, 0, 1/3, 1/4, 2/5.
        assert_eq!(figures.aurc, round6((1.0 / 3.0 + 0.25 + 0.4) / 5.0));
        // Of the four answerable queries, two have more confidence than the unanswerable one.
        assert_eq!(figures.auroc, 0.5);
        let risks: Vec<f64> = figures.curve.iter().map(|point| point.risk).collect();
        // Coverage .5 is 2.5 queries: half of the third, which is an error.
        assert_eq!(risks, [0.0, 0.0, 0.0, 0.0, 0.2, 0.333333, 0.285714, 0.25, 0.333333, 0.4]);
        assert_eq!(figures.curve[2].coverage, 0.3);
    }

    #[test]
    fn calibration_is_off_by_what_confidence_promises_too_much_or_too_little() {
        // The last bin promises 2.9 and keeps 2, that of .8 promises .85 and keeps 1, that of .2 promises .5 and keeps 1.
        let queries = [(0.95, Right), (0.85, Right), (0.95, Wrong), (0.25, Right), (0.25, Unanswerable), (1.0, Right)];
        let expected = ((2.9_f64 - 2.0).abs() + (0.85_f64 - 1.0).abs() + (0.5_f64 - 1.0).abs()) / 6.0;
        assert!((calibration_error(&queries) - expected).abs() < 1e-6);
        assert_eq!(calibration_error(&[]), 0.0);
    }

    #[test]
    fn what_is_told_that_nothing_fits_is_below_the_threshold() {
        let queries =
            [(0.5, Right), (0.4, Right), (0.9, Wrong), (0.1, Unanswerable), (0.49, Unanswerable), (0.5, Unanswerable)];
        let found = nothing_fits(&queries, 0.5);
        let parts = [found.right, found.wrong, found.unanswerable].map(|part| (part.queries, part.of));
        assert_eq!((found.below, parts), (0.5, [(1, 2), (0, 1), (2, 3)]));
    }

    #[test]
    fn equal_confidences_tell_nothing() {
        let queries = [(0.0, Right), (-0.0, Unanswerable), (0.0, Wrong), (0.0, Right)];
        let figures = abstention(&queries).unwrap();
        assert_eq!([figures.aurc, figures.auroc], [0.5, 0.5]);
        assert!(figures.curve.iter().all(|point| point.risk == 0.5));
    }

    #[test]
    fn perfect_separation_and_its_opposite() {
        let right = abstention(&[(2.0, Right), (1.0, Unanswerable)]).unwrap();
        let wrong = abstention(&[(1.0, Right), (2.0, Unanswerable)]).unwrap();
        assert_eq!([right.auroc, right.aurc, wrong.auroc, wrong.aurc], [1.0, 0.25, 0.0, 0.75]);
    }

    #[test]
    fn both_sorts_of_queries_are_needed() {
        assert_eq!(abstention(&[]), None);
        assert_eq!(abstention(&[(1.0, Right), (0.5, Wrong)]), None);
        assert_eq!(abstention(&[(1.0, Unanswerable)]), None);
    }

    fn queries() -> impl Strategy<Value = Vec<(f64, Answer)>> {
        let answer = prop_oneof![Just(Right), Just(Wrong), Just(Unanswerable)];
        prop::collection::vec(((0u8..5).prop_map(f64::from), answer), 0..30)
    }

    proptest! {
        #[test]
        fn the_order_of_queries_changes_nothing(
            (listed, shuffled) in queries().prop_flat_map(|list| (Just(list.clone()), Just(list).prop_shuffle()))
        ) {
            prop_assert_eq!(abstention(&listed), abstention(&shuffled));
        }

        #[test]
        fn auroc_counts_pairs(list in queries()) {
            let of = |wanted: bool| list.iter().filter(move |(_, answer)| (*answer == Unanswerable) == wanted);
            let wins: f64 = of(false)
                .flat_map(|yes| of(true).map(move |no| if yes.0 > no.0 { 1.0 } else if yes.0 == no.0 { 0.5 } else { 0.0 }))
                .sum();
            let pairs = of(false).count() * of(true).count();
            match auroc(&list) {
                Some(auroc) => prop_assert!((auroc - wins / pairs as f64).abs() < 1e-12),
                None => prop_assert_eq!(pairs, 0),
            }
        }
    }
}
