//! Whether confidence can be believed, and whether the right questions are asked back.
//!
//! Every answerable query of a collection is asked twice: with all tools, and with those that answer it left out of the
//! ranking, which makes of it a query that no tool answers and that sounds like the others. Queries that nothing answered
//! in the first place are asked once. An answer is right when one of the first five tools is relevant.
//!
//! Leaving out keeps the word statistics of the whole catalog, which differ by a tool or two from those of a catalog that
//! never had them.

mod asked;
mod facts;
mod page;

use super::collections::CollectionChapter;
use super::routing::Ranked;
use crate::eval::collection::Collection;
use crate::eval::engine::RouterEngine;
use crate::eval::error::EvalError;
use crate::eval::identity::{Broken, same};
use crate::eval::matrix::DEFAULT;
use crate::eval::tables::Tables;
use crate::report::document::Document;
use crate::report::table::Table;
use crate::results::Results;

pub(super) use asked::BY_DEFAULT;
pub use asked::Step;
pub use facts::{ConfidenceFacts, Questions, THRESHOLD_TENTHS, Threshold};

/// The chapter.
#[derive(Debug)]
pub struct Confidence;

impl CollectionChapter for Confidence {
    type Facts = ConfidenceFacts;

    fn name(&self) -> &'static str {
        "confidence"
    }

    fn measure(&self, collection: &Collection, engine: &RouterEngine) -> Result<ConfidenceFacts, EvalError> {
        ConfidenceFacts::measure(collection, engine)
    }

    fn check(&self, case: &str, facts: &ConfidenceFacts, ranked: &Ranked, broken: &mut Broken) {
        broken.share("ECE", facts.ece);
        broken.abstention(&facts.abstention);
        let tenths: Vec<usize> = facts.thresholds.iter().map(|threshold| threshold.tenths).collect();
        broken.unless(tenths == THRESHOLD_TENTHS, "the thresholds are not those that are tried");
        let silent = |of: fn(&Threshold) -> f64| facts.thresholds.iter().map(of).collect::<Vec<f64>>();
        for (name, shares) in [
            ("right answers lost", silent(|threshold| threshold.right_lost)),
            ("refusals gained", silent(|threshold| threshold.silence_gained)),
        ] {
            shares.iter().for_each(|one| broken.share(name, *one));
            broken.ascending(&format!("{name} by threshold"), &shares);
        }
        broken.share("ECE as asked", facts.ece_as_asked);
        let near = (facts.ece_as_asked - asked::error(&facts.as_asked)).abs() <= 0.01;
        broken.unless(near, "ECE as asked: the steps of confidence give another");
        let known = facts.as_asked.iter().all(|step| step.hundredths < asked::STEPS);
        broken.unless(known, "a confidence above 1");
        let ascending = facts.as_asked.windows(2).all(|pair| pair[0].hundredths < pair[1].hundredths);
        let queries: usize = facts.as_asked.iter().map(|step| step.queries()).sum();
        let whole = queries == facts.answerable + facts.unanswerable;
        broken.unless(ascending && whole, "the steps of confidence are not of all queries, in order");
        let Questions { asked, among, first_when_asked, first_otherwise } = facts.questions;
        [asked, among, first_when_asked, first_otherwise].into_iter().for_each(|one| broken.share("questions", one));
        let Some(plain) = ranked.facts(DEFAULT, case) else { return };
        let is_same = (facts.answerable, facts.unanswerable) == (plain.answerable, plain.unanswerable);
        broken.unless(is_same, "its queries are not those that `default` has there");
        // What is asked about and what is not are all queries: together the first tools are as often relevant as ever.
        if let Some(hit) = plain.measures.get("hit@1") {
            let first = asked * first_when_asked + (1.0 - asked) * first_otherwise;
            broken.unless(same(first, hit.mean), format!("hit@1 is {} there, and with questions {first}", hit.mean));
        }
    }

    fn render(&self, own: &Results<ConfidenceFacts>, _: &Tables, document: &mut Document) {
        page::chapter(document, own);
    }

    fn tables(&self, own: &Results<ConfidenceFacts>) -> Vec<Table> {
        page::tables(own).into()
    }
}
