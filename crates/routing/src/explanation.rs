//! Why a tool is in a route, in one line for people.
//!
//! The parts are rounded so that what is printed still adds up. Nothing is decided here.

use std::fmt;

use super::filter::Placement;
use super::history::ScoreSource;
use super::hit::SCORE_UNITS;
use super::router::{Choice, PartSource};

impl fmt::Display for PartSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Word(word) => word,
            Self::Meaning => "(meaning)",
            Self::Model => "(model)",
            Self::ExactName => "(exact name)",
            Self::Feedback => "(feedback)",
            Self::History(ScoreSource::Retrieval) => "(retrieval)",
            Self::History(ScoreSource::AlreadyCalled) => "(already called)",
            Self::History(ScoreSource::LastResult) => "(last result)",
            Self::History(ScoreSource::RequirementsMet) => "(requirements met)",
            Self::History(ScoreSource::DependencyNotCalled) => "(dependency not called)",
        })
    }
}

impl Choice {
    /// The parts of the score in hundredths, in their order, rounded so that they add up to the rounded score.
    #[must_use]
    pub fn hundredths(&self) -> Vec<i64> {
        hundredths(self)
    }

    /// What the score is made of: `score 12.34 = 8.10 deploy + 4.24 rollback`. The numbers shown add up exactly.
    #[must_use]
    pub fn explanation(&self) -> String {
        let hundredths = hundredths(self);
        let mut sum = String::new();
        for (part, hundredths) in self.parts.iter().zip(&hundredths) {
            let sign = match (sum.is_empty(), *hundredths < 0) {
                (true, false) => "",
                (true, true) => "−",
                (false, false) => " + ",
                (false, true) => " − ",
            };
            let value = hundredths.unsigned_abs() as f64 / 100.0;
            sum.push_str(&format!("{sign}{value:.2} {}", part.source));
        }
        let pinned = if self.placement == Placement::Pinned { "pinned; " } else { "" };
        match sum.is_empty() {
            true => format!("{pinned}score 0"),
            false => format!("{pinned}score {:.2} = {sum}", hundredths.iter().sum::<i64>() as f64 / 100.0),
        }
    }
}

/// The parts of a score in hundredths, rounded so that they add up to the rounded score: each is rounded down, and
/// what is then missing goes to those that lost most.
fn hundredths(choice: &Choice) -> Vec<i64> {
    let units = SCORE_UNITS as i64;
    let scaled: Vec<i64> = choice.parts.iter().map(|part| part.value * 100).collect();
    let mut rounded: Vec<i64> = scaled.iter().map(|value| value.div_euclid(units)).collect();
    let total = (choice.score as i64 * 100 + units / 2).div_euclid(units);
    let mut order: Vec<usize> = (0..scaled.len()).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse(scaled[at].rem_euclid(units)), at));
    let missing = usize::try_from(total - rounded.iter().sum::<i64>()).unwrap_or(0);
    for &at in order.iter().take(missing) {
        rounded[at] += 1;
    }
    rounded
}
