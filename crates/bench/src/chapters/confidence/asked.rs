//! Confidence over the queries of a collection as they are asked, without a second asking.
//!
//! The mix of a collection is its own: most have no query that nothing answers. So calibration is looked at in that mix,
//! and what is fitted (a threshold, a correction of the confidence) is fitted on the other collections only.

use serde::{Deserialize, Serialize};

use super::facts::ConfidenceFacts;
use crate::eval::abstention::{Answer, calibration_error};
use crate::eval::statistics::{mean, round6};
use crate::report::number::{MISSING, count, part, share};
use crate::report::table::Table;
use crate::results::Results;
use contextweaver_routing::NOTHING_FITS_BELOW;

/// Steps of confidence.
pub(super) const STEPS: usize = 100;

/// Queries of about the same confidence, by what the first five tools were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The confidence in hundredths, rounded down; one of 1 is with those of .99.
    pub hundredths: usize,
    /// At least one is relevant.
    pub right: usize,
    /// None is, though a tool answers.
    pub wrong: usize,
    /// No tool answers.
    pub unanswerable: usize,
}

impl Step {
    /// The number of the step; a file may state one beyond the last.
    fn place(self) -> usize {
        self.hundredths.min(STEPS - 1)
    }

    fn middle(self) -> f64 {
        (self.hundredths as f64 + 0.5) / STEPS as f64
    }

    pub(super) fn queries(self) -> usize {
        self.right + self.wrong + self.unanswerable
    }
}

/// Counts queries by their confidence; steps without a query are left out.
pub(super) fn steps(asked: &[(f64, Answer)]) -> Vec<Step> {
    let mut steps: Vec<Step> = (0..STEPS).map(|hundredths| Step { hundredths, ..Step::default() }).collect();
    for (confidence, answer) in asked {
        let step = &mut steps[((confidence * STEPS as f64) as usize).min(STEPS - 1)];
        match answer {
            Answer::Right => step.right += 1,
            Answer::Wrong => step.wrong += 1,
            Answer::Unanswerable => step.unanswerable += 1,
        }
    }
    steps.retain(|step| step.queries() > 0);
    steps
}

/// What others teach about the confidence of a collection: each of them weighs the same.
struct Fitted {
    /// The share of right answers by step of confidence: pooled neighbours that would fall otherwise.
    right: Vec<f64>,
    /// The confidence, in hundredths, below which silence is best: right answers kept and others withheld weigh the same
    /// (Youden, "Index for Rating Diagnostic Tests", Cancer 3(1), 1950).
    threshold: usize,
}

impl Fitted {
    fn on(others: &[&[Step]]) -> Self {
        let mut weights = vec![(0.0, 0.0); STEPS];
        for steps in others {
            let all: usize = steps.iter().map(|step| step.queries()).sum();
            for step in *steps {
                let weight = &mut weights[step.place()];
                weight.0 += step.right as f64 / all as f64;
                weight.1 += (step.wrong + step.unanswerable) as f64 / all as f64;
            }
        }
        Self { right: ascending(&weights), threshold: best_threshold(&weights) }
    }
}

/// The share of right ones by step as an ascending function: adjacent violators are pooled (Ayer et al., "An Empirical
/// Distribution Function for Sampling with Incomplete Information", Annals of Mathematical Statistics 26(4), 1955).
fn ascending(weights: &[(f64, f64)]) -> Vec<f64> {
    // Right, others, steps.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    let share = |block: &(f64, f64, usize)| if block.0 + block.1 > 0.0 { block.0 / (block.0 + block.1) } else { 0.0 };
    for (right, other) in weights {
        blocks.push((*right, *other, 1));
        while let [.., before, last] = &blocks[..] {
            let is_empty = last.0 + last.1 == 0.0 || before.0 + before.1 == 0.0;
            if !is_empty && share(before) < share(last) {
                break;
            }
            let merged = (before.0 + last.0, before.1 + last.1, before.2 + last.2);
            blocks.truncate(blocks.len() - 2);
            blocks.push(merged);
        }
    }
    blocks.iter().flat_map(|block| std::iter::repeat_n(share(block), block.2)).collect()
}

fn best_threshold(weights: &[(f64, f64)]) -> usize {
    let all = weights.iter().fold((0.0, 0.0), |sum, weight| (sum.0 + weight.0, sum.1 + weight.1));
    let (mut best, mut at) = (f64::MIN, 0);
    let mut below = (0.0, 0.0);
    for (threshold, weight) in weights.iter().enumerate() {
        let kept = 1.0 - below.0 / f64::max(all.0, f64::MIN_POSITIVE);
        let withheld = below.1 / f64::max(all.1, f64::MIN_POSITIVE);
        if kept + withheld > best {
            (best, at) = (kept + withheld, threshold);
        }
        below = (below.0 + weight.0, below.1 + weight.1);
    }
    at
}

/// One collection with what was fitted on the others.
struct LeftOut {
    corrected: f64,
    threshold: usize,
    lost: Option<f64>,
    withheld: Option<f64>,
    refused: Option<f64>,
}

fn left_out(own: &[Step], others: &[&[Step]]) -> LeftOut {
    let Fitted { right, threshold } = Fitted::on(others);
    let corrected: Vec<(f64, Answer)> = own.iter().flat_map(|step| answers(*step, right[step.place()])).collect();
    let [lost, withheld, refused] = OF_EACH.map(|of| match below(own, threshold, of) {
        (_, 0) => None,
        (part, all) => Some(part as f64 / all as f64),
    });
    LeftOut { corrected: calibration_error(&corrected), threshold, lost, withheld, refused }
}

/// The numbers of right, of wrong and of unanswerable queries of a step.
const OF_EACH: [fn(&Step) -> usize; 3] = [|step| step.right, |step| step.wrong, |step| step.unanswerable];

/// How many of one kind have a confidence below the threshold, in hundredths, and how many there are.
fn below(steps: &[Step], threshold: usize, of: fn(&Step) -> usize) -> (usize, usize) {
    let part = steps.iter().filter(|step| step.hundredths < threshold).map(of).sum();
    (part, steps.iter().map(of).sum())
}

/// The queries of a step, each with the same confidence.
fn answers(step: Step, confidence: f64) -> impl Iterator<Item = (f64, Answer)> {
    let of = [(Answer::Right, step.right), (Answer::Wrong, step.wrong), (Answer::Unanswerable, step.unanswerable)];
    of.into_iter().flat_map(move |(answer, count)| std::iter::repeat_n((confidence, answer), count))
}

/// The expected calibration error of the steps themselves, each at its middle.
pub(super) fn error(steps: &[Step]) -> f64 {
    calibration_error(&steps.iter().flat_map(|step| answers(*step, step.middle())).collect::<Vec<_>>())
}

/// One row for each collection, and a row of their means.
pub(super) fn table(confidence: &Results<ConfidenceFacts>) -> Table {
    let titles =
        ["collection", "queries", "ECE", "ECE, corrected", "threshold", "right lost", "wrong withheld", "refused"];
    let mut table = Table::new(titles);
    let cell = |value: Option<f64>| value.map_or_else(|| MISSING.to_owned(), share);
    let measured: Vec<_> = confidence.measured().collect();
    let mut columns: [Vec<f64>; 6] = Default::default();
    for (at, (record, facts)) in measured.iter().enumerate() {
        let others: Vec<&[Step]> =
            (0..measured.len()).filter(|&other| other != at).map(|other| &measured[other].1.as_asked[..]).collect();
        let fitted = (!others.is_empty()).then(|| left_out(&facts.as_asked, &others));
        let fitted = fitted.as_ref();
        let figures = [
            Some(facts.ece_as_asked),
            fitted.map(|one| one.corrected),
            fitted.map(|one| one.threshold as f64 / STEPS as f64),
            fitted.and_then(|one| one.lost),
            fitted.and_then(|one| one.withheld),
            fitted.and_then(|one| one.refused),
        ];
        columns.iter_mut().zip(figures).for_each(|(column, figure)| column.extend(figure));
        let queries = facts.as_asked.iter().map(|step| step.queries()).sum();
        let front = [confidence.label(record), count(queries)];
        table.row(front.into_iter().chain(figures.map(cell)).collect::<Vec<_>>());
    }
    if !measured.is_empty() {
        let means = columns.map(|column| cell((!column.is_empty()).then(|| round6(mean(column)))));
        table.row(["mean".to_owned(), MISSING.to_owned()].into_iter().chain(means).collect::<Vec<_>>());
    }
    table
}

/// What the default of `abstain_below` does to right answers, wrong ones, and queries that no tool answers: the titles.
pub(in crate::chapters) const BY_DEFAULT: [&str; 3] = ["right lost", "wrong withheld", "refused"];

/// What the default of `abstain_below` does to the queries of each collection.
pub(super) fn by_default(confidence: &Results<ConfidenceFacts>) -> Table {
    let mut table = Table::new(std::iter::once("collection").chain(BY_DEFAULT));
    let threshold = (NOTHING_FITS_BELOW * STEPS as f64).round() as usize;
    for (record, facts) in confidence.measured() {
        let counts = OF_EACH.map(|of| {
            let (some, all) = below(&facts.as_asked, threshold, of);
            part(some, all)
        });
        table.row([confidence.label(record)].into_iter().chain(counts).collect::<Vec<_>>());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(hundredths: usize, right: usize, wrong: usize, unanswerable: usize) -> Step {
        Step { hundredths, right, wrong, unanswerable }
    }

    #[test]
    fn queries_are_counted_by_confidence() {
        let asked = [(0.0, Answer::Wrong), (0.305, Answer::Right), (0.309, Answer::Unanswerable), (1.0, Answer::Right)];
        assert_eq!(steps(&asked), [step(0, 0, 1, 0), step(30, 1, 0, 1), step(99, 1, 0, 0)]);
    }

    #[test]
    fn what_is_fitted_comes_from_the_others() {
        // Elsewhere three in four are right at .6 and none at .2.
        let others = [step(20, 0, 10, 10), step(60, 30, 10, 0)];
        let own = [step(20, 5, 5, 0), step(60, 3, 1, 0)];
        let LeftOut { corrected, threshold, lost, withheld, refused } = left_out(&own, &[&others]);
        assert_eq!(threshold, 21);
        assert_eq!((lost, withheld, refused), (Some(0.625), Some(5.0 / 6.0), None));
        // Right half of the time where the others say never, and as the others say elsewhere.
        assert_eq!(corrected, round6(5.0 / 14.0));
        assert!(error(&own) > 0.1);
    }

    #[test]
    fn the_corrected_confidence_never_falls() {
        let fitted = ascending(&[(0.2, 0.8), (0.0, 0.0), (0.9, 0.1), (0.5, 0.5), (0.0, 0.0)]);
        assert!(fitted.windows(2).all(|pair| pair[0] <= pair[1]), "{fitted:?}");
        assert_eq!(fitted.len(), 5);
        assert!((fitted[0] - 0.2).abs() < 1e-9 && (fitted[4] - 0.7).abs() < 1e-9, "{fitted:?}");
    }
}
