//! Records -> Markdown and SVG bytes.
//!
//! The room is pure: it gets parsed results and timings and returns pages as bytes. It runs nothing, reads no clock
//! and knows no file system, so the same records give the same bytes on every run and machine. Every number on a
//! page comes from a record; sentences never repeat one.

mod confidence;
mod context;
mod copies;
mod feedback;
mod figures;
mod gateway;
mod left_out;
mod number;
mod overhead;
mod plot;
pub mod readme;
#[cfg(test)]
mod sample;
mod scaling;
mod scorecard;
mod scores;
mod table;
pub mod terminal;

pub use number::count;

use crate::eval::capability::CopiesResults;
use crate::eval::confidence::ConfidenceResults;
use crate::eval::context::record::ContextResults;
use crate::eval::feedback::FeedbackResults;
use crate::eval::gateway::overhead::OverheadRow;
use crate::eval::gateway::record::GatewayResults;
use crate::eval::left_out::LeftOutResults;
use crate::eval::record::Results;
use crate::eval::scaling::{RivalRow, ScalingResults};
use crate::eval::timing::TimingRow;

/// Everything that pages are rendered from. The order of rows changes nothing; a chapter without results is left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Records<'r> {
    /// The routing engines.
    pub results: &'r [Results],
    /// The context engine.
    pub context: Option<&'r ContextResults>,
    /// The gateway.
    pub gateway: Option<&'r GatewayResults>,
    /// Routers that were taught.
    pub feedback: Option<&'r FeedbackResults>,
    /// How far confidence can be believed.
    pub confidence: Option<&'r ConfidenceResults>,
    /// What copies of tools cost.
    pub copies: Option<&'r CopiesResults>,
    /// The default with tables that have seen nothing of the collection.
    pub left_out: Option<&'r LeftOutResults>,
    /// What was timed in one process.
    pub timings: &'r [TimingRow],
    /// How counters grow with the catalog.
    pub scaling: Option<&'r ScalingResults>,
    /// How times grow with it.
    pub growth: &'r [TimingRow],
    /// What other libraries take for the same.
    pub rivals: &'r [RivalRow],
    /// What a hop through the gateway costs.
    pub overhead: &'r [OverheadRow],
}

/// One rendered file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The file name within the scorecard folder, e.g. `SCORECARD.md`; no page lies in a subfolder.
    pub path: String,
    /// The whole content.
    pub bytes: Vec<u8>,
}

/// All pages of the scorecard: `SCORECARD.md` first, then its pictures in the order in which it shows them.
///
/// A picture for which nothing was recorded is neither made nor shown.
#[must_use]
pub fn pages(records: &Records<'_>) -> Vec<Page> {
    let (text, figures) = scorecard::render(records);
    let mut pages = vec![Page { path: "SCORECARD.md".to_owned(), bytes: text.into_bytes() }];
    pages.extend(figures.into_iter().map(|figure| Page { path: figure.path, bytes: figure.svg.into_bytes() }));
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::eval::record::{Estimate, Outcome};

    fn pages(results: &[Results], timings: &[TimingRow]) -> Vec<Page> {
        super::pages(&Records { results, timings, ..Records::default() })
    }

    fn text(page: &Page) -> &str {
        std::str::from_utf8(&page.bytes).unwrap()
    }

    #[test]
    fn pages_are_the_same_bytes_for_every_order_of_the_input() {
        let (mut results, mut timings) = (sample::results(), sample::timings());
        let first = pages(&results, &timings);
        results.rotate_left(2);
        timings.reverse();
        assert!(pages(&results, &timings) == first);
        assert!(pages(&results, &timings) == first);
    }

    #[test]
    fn the_scorecard_shows_every_picture_once() {
        let pages = pages(&sample::results(), &sample::timings());
        let (scorecard, pictures) = pages.split_first().unwrap();
        assert_eq!(pictures.len(), 7);
        for picture in pictures {
            assert_eq!(text(scorecard).matches(&format!("]({})", picture.path)).count(), 1, "{}", picture.path);
        }
        assert_eq!(text(scorecard).matches("![").count(), pictures.len());
    }

    #[test]
    fn no_page_shows_what_is_not_a_number() {
        let mut results = sample::results();
        for record in results.iter_mut().flat_map(|engine| &mut engine.records) {
            let Outcome::Measured(facts) = &mut record.outcome else { continue };
            facts
                .measures
                .insert("recall@5".to_owned(), Estimate { mean: f64::NAN, low: f64::NAN, high: f64::INFINITY });
            facts.loss.ranking = f64::NEG_INFINITY;
            facts.ties.best = f64::NAN;
            facts.by_namespace.values_mut().for_each(|slice| slice.recall_at_5 = f64::NAN);
            facts.versus_control.iter_mut().for_each(|paired| paired.difference.low = f64::NAN);
            facts.tokens.iter_mut().for_each(|tokens| (tokens.cards_mean, tokens.reduction) = (f64::NAN, f64::NAN));
            facts.work.postings_per_query = f64::INFINITY;
        }
        let mut timings = sample::timings();
        timings.iter_mut().for_each(|row| (row.median, row.p99) = (f64::NAN, f64::INFINITY));
        let pages = pages(&results, &timings);
        let shown = pages.iter().map(text).collect::<String>()
            + &terminal::summary(&results)
            + &terminal::timings(&timings)
            + &readme::block(&Records { results: &results, ..Records::default() });
        assert!(shown.split(|character: char| !character.is_alphanumeric()).all(|word| word != "NaN" && word != "inf"));
    }

    #[test]
    fn without_records_there_is_one_page_that_says_so() {
        let pages = pages(&[], &[]);
        assert_eq!(pages.len(), 1);
        assert!(text(&pages[0]).contains("Nothing is recorded"));
        assert!(text(&pages[0]).contains("No timings are recorded"));
    }
}
