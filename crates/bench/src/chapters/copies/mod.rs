//! What copies of tools push out of the first places, and whether sharing a place brings it back.
//!
//! A collection is grown by literal copies of its tools, as many servers that offer the same would grow a catalog. Rankings
//! are read as they are served: each place counts, and any copy of a relevant tool is as good as the tool. With
//! copies apart they fill the places of other tools; with copies together the grown catalog should be as good as the
//! original one.

mod facts;
mod page;

use super::collections::CollectionChapter;
use super::routing::Ranked;
use crate::chapter::Answer;
use crate::eval::collection::Collection;
use crate::eval::engine::RouterEngine;
use crate::eval::error::EvalError;
use crate::eval::identity::Broken;
use crate::eval::matrix::DEFAULT;
use crate::eval::probe;
use crate::eval::tables::Tables;
use crate::report::document::Document;
use crate::report::table::Table;
use crate::results::Results;

pub use facts::{CopiesFacts, Grown, SIZES};

/// The chapter.
#[derive(Debug)]
pub struct CopiesChapter;

impl CollectionChapter for CopiesChapter {
    type Facts = CopiesFacts;

    fn name(&self) -> &'static str {
        "copies"
    }

    fn measure(&self, collection: &Collection, engine: &RouterEngine) -> Result<CopiesFacts, EvalError> {
        CopiesFacts::at(&SIZES, collection, engine)
    }

    fn probe(&self, engine: &RouterEngine) -> Result<CopiesFacts, EvalError> {
        CopiesFacts::at(&[100], probe::collection(), engine)
    }

    fn check(&self, case: &str, facts: &CopiesFacts, ranked: &Ranked, broken: &mut Broken) {
        broken.share("recall@5 without copies", facts.original);
        broken.paired("together", &facts.original_together);
        for Grown { tools, apart, together } in &facts.grown {
            broken.paired(&format!("{tools} tools apart"), apart);
            broken.paired(&format!("{tools} tools together"), together);
        }
        let sizes: Vec<usize> = facts.grown.iter().map(|grown| grown.tools).collect();
        let expected: Vec<usize> = SIZES.into_iter().filter(|size| *size > facts.tools).collect();
        broken.unless(sizes == expected, "the sizes are not those to which it is grown");
        let Some(plain) = ranked.facts(DEFAULT, case) else { return };
        let is_same = (facts.tools, facts.queries) == (plain.tools, plain.answerable);
        broken.unless(is_same, "its tools and queries are not those that `default` has there");
        // Searches here stop at five hits, there they go on through ties, which may move a tool within the five.
        let recall = plain.measures.get("recall@5").map(|one| one.mean);
        let is_same = recall.is_none_or(|recall| (recall - facts.original).abs() < 1e-3);
        broken.unless(is_same, "recall@5 without copies is not that of `default` there");
    }

    fn render(&self, own: &Results<CopiesFacts>, _: &Tables, document: &mut Document) {
        page::chapter(document, own);
    }

    fn tables(&self, own: &Results<CopiesFacts>) -> Vec<Table> {
        page::tables(own).into()
    }

    fn answers(&self, own: &Results<CopiesFacts>) -> Vec<Answer> {
        page::answer(own).into_iter().collect()
    }
}
