//! What feedback gains and what wrong feedback costs: collections played as sites that learn.
//!
//! The answerable queries of a collection are put in a random order of a fixed seed and cut into five parts. Each part is
//! asked in turn of a router that was taught with observations of the other four, so every query is asked once and by a
//! router that never saw it. An observation is a query with one of its relevant tools; a wrong one has instead a tool
//! drawn from the first five that are shown for it and are not relevant, or from the catalog where there are none: what
//! somebody picks who trusts the ranking.
//! More observations begin with the fewer ones, and a wrong share makes the same observations wrong at every number.
//!
//! The requests of `gold/everyday` take part in both manners, though they are not a collection of the matrix: several people ask for
//! one tool there, in words that are not the tool's. A request of several lines is so many queries, answered in turn, and each tool
//! is observed with the line that found it best.
//!
//! What can be gained is counted beside: the queries of which a tool is observed, and what a rule would gain that knows nothing but
//! queries that come again word for word. Few do in a collection, and many on a site.

mod facts;
mod page;

use anyhow::Result;

use super::collections::{CollectionChapter, Own};
use super::routing::Ranked;
use crate::eval::collection::Collection;
use crate::eval::engine::RouterEngine;
use crate::eval::error::EvalError;
use crate::eval::everyday::{self, Manner};
use crate::eval::identity::Broken;
use crate::eval::matrix::DEFAULT;
use crate::eval::tables::Tables;
use crate::eval::workspace::Workspace;
use crate::report::document::Document;
use crate::report::table::Table;
use crate::results::Results;

pub use facts::{FeedbackFacts, Lesson, OBSERVATIONS, WRONG_TENTHS};

/// The chapter.
#[derive(Debug)]
pub struct Feedback;

impl CollectionChapter for Feedback {
    type Facts = FeedbackFacts;

    fn name(&self) -> &'static str {
        "feedback"
    }

    fn measure(&self, collection: &Collection, engine: &RouterEngine) -> Result<FeedbackFacts, EvalError> {
        FeedbackFacts::measure(collection, engine)
    }

    fn own(&self, workspace: &Workspace) -> Result<Vec<Own>> {
        let own = |manner: Manner| {
            let case = format!("{}_{}", everyday::COLLECTION, manner.name());
            Ok(Own { case, origin: manner.origin(), collection: manner.collection(workspace)? })
        };
        Manner::of(workspace).filter(|manner| Manner::ALONE.contains(manner)).map(own).collect()
    }

    fn check(&self, case: &str, facts: &FeedbackFacts, ranked: &Ranked, broken: &mut Broken) {
        for lesson in &facts.lessons {
            let Lesson { observations, wrong_tenths, recall_at_5, ndcg_at_10, .. } = lesson;
            let name = |measure: &str| format!("{measure} after {observations} observations, {wrong_tenths}/10 wrong");
            let of_observed = &lesson.ndcg_at_10_of_observed;
            broken.paired(&name("nDCG@10 where the tool is observed"), of_observed);
            let are_some =
                lesson.observed <= facts.queries && of_observed.differing <= lesson.observed.min(ndcg_at_10.differing);
            broken.unless(are_some, name("more queries than there are with an observed tool and a difference"));
            for (measure, before, paired) in [
                ("recall@5", facts.recall_at_5, recall_at_5),
                ("nDCG@10", facts.ndcg_at_10, ndcg_at_10),
                ("nDCG@10 by repeats", facts.ndcg_at_10, &lesson.word_for_word),
            ] {
                broken.paired(&name(measure), paired);
                let after = before + paired.difference.mean;
                broken.unless((-1e-5..=1.00001).contains(&after), format!("{}: {after} is not a share", name(measure)));
            }
        }
        let known = |observations: &usize| *observations <= facts.available;
        let expected = OBSERVATIONS.iter().copied().filter(known);
        let expected: Vec<(usize, usize)> = expected.flat_map(|one| WRONG_TENTHS.map(|wrong| (one, wrong))).collect();
        let found: Vec<(usize, usize)> =
            facts.lessons.iter().map(|lesson| (lesson.observations, lesson.wrong_tenths)).collect();
        broken.unless(found == expected, "the lessons are not those that so many observations give");
        let Some(plain) = ranked.facts(DEFAULT, case) else { return };
        // Searches here stop at ten hits, there they go on through ties, which may move a tool within the ten.
        let without =
            |measure: &str, value: f64| plain.measures.get(measure).is_none_or(|one| (one.mean - value).abs() < 1e-3);
        let is_same = (facts.tools, facts.queries) == (plain.tools, plain.answerable)
            && without("recall@5", facts.recall_at_5)
            && without("nDCG@10", facts.ndcg_at_10);
        broken.unless(is_same, "without feedback it is not what `default` has there");
    }

    fn render(&self, own: &Results<FeedbackFacts>, _: &Tables, document: &mut Document) {
        page::chapter(document, own);
    }

    fn tables(&self, own: &Results<FeedbackFacts>) -> Vec<Table> {
        page::tables(own).into()
    }
}
