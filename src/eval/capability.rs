//! What copies of tools push out of the first places, and whether sharing a place brings it back.
//!
//! A collection is grown by literal copies of its tools, as many servers that offer the same would grow a catalog. Rankings
//! are read as they are served: each place counts, and any copy of a relevant tool is as good as the tool. With
//! copies apart they fill the places of other tools; with copies together the grown catalog should be as good as the
//! original one.

use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::collection::{Collection, Query};
use super::engine::RouterEngine;
use super::growth::{SEED, grow};
use super::measure::{Found, Judgement, Measure};
use super::played::{CollectionFacts, CollectionResults};
use super::record::{Grade, Growth, Paired};
use super::statistics::{mean, paired, round6};
use crate::routing::{Copies, Router, RoutingConfig, Scratch};

/// Tools after growth, where a collection has fewer.
pub const SIZES: [usize; 2] = [1000, 10_000];

/// Places that are read.
const SHOWN: usize = 5;

/// What the differences are taken from.
const ORIGINAL: &str = "without copies";

/// The content of `scorecard/results/copies.json`.
pub type CopiesResults = CollectionResults<CopiesFacts>;

/// What was measured on one collection: recall@5 as served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopiesFacts {
    /// Tools without copies.
    pub tools: usize,
    /// Queries that were asked.
    pub queries: usize,
    /// Without copies.
    pub original: f64,
    /// Without copies, tools that are alike sharing a place: the difference.
    pub original_together: Paired,
    /// With copies, by size.
    pub grown: Vec<Grown>,
}

/// One size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grown {
    /// Tools with copies.
    pub tools: usize,
    /// The difference of copies apart from no copies.
    pub apart: Paired,
    /// The difference of copies together from no copies.
    pub together: Paired,
}

impl CollectionFacts for CopiesFacts {
    const NAME: &'static str = "copies";
    const SCHEMA: u32 = 1;

    fn measure(collection: &Collection, engine: &RouterEngine) -> Result<Self, String> {
        let original = recalls(collection, engine, Copies::Apart)?;
        let against = |recalls: Vec<f64>| {
            let pairs: Vec<(f64, f64)> = recalls.into_iter().zip(original.iter().copied()).collect();
            paired(ORIGINAL, &pairs)
        };
        let mut grown = Vec::new();
        for size in SIZES.into_iter().filter(|size| *size > collection.catalog.len()) {
            let growth = Growth { grade: Grade::Copies, size };
            let copied = grow(collection, growth, SEED).map_err(|error| error.to_string())?;
            let apart = against(recalls(&copied, engine, Copies::Apart)?);
            let together = against(recalls(&copied, engine, Copies::Together)?);
            grown.push(Grown { tools: size, apart, together });
        }
        Ok(Self {
            tools: collection.catalog.len(),
            queries: original.len(),
            original: round6(mean(original.iter().copied())),
            original_together: against(recalls(collection, engine, Copies::Together)?),
            grown,
        })
    }
}

/// recall@5 of every answerable query, in query order.
fn recalls(collection: &Collection, engine: &RouterEngine, copies: Copies) -> Result<Vec<f64>, String> {
    let config = RoutingConfig { copies, ..engine.config().clone() };
    let router = Router::build(Arc::clone(&collection.catalog), config).map_err(|error| error.to_string())?;
    let recall = |scratch: &mut Scratch, query: &Query| {
        let hits = router.search(&query.text, SHOWN, scratch);
        Some(Measure::RECALL_5.of(&Found::of(&hits, &Judgement { groups: query.groups.clone() })?))
    };
    let all: Vec<Option<f64>> = collection.queries.par_iter().map_init(Scratch::default, recall).collect();
    Ok(all.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::collection::Source;
    use super::super::played::CollectionRecord;
    use super::super::record::{Origin, Outcome};
    use super::*;

    const TOOLS: &str = r#"[
        {"name": "create_issue", "description": "Open a ticket in the tracker of the forge"},
        {"name": "list_issues", "description": "List the tickets of a project, newest first"},
        {"name": "send_mail", "description": "Send a letter by mail about a ticket"}
    ]"#;
    const QUERIES: &str = r#"{"id": "1", "query": "open a ticket", "relevant": ["create_issue"]}
        {"id": "2", "query": "list tickets and mail a letter", "relevant": ["list_issues", "send_mail"]}
        {"id": "3", "query": "water the plants", "relevant": []}"#;

    #[test]
    fn copies_together_are_as_good_as_none() {
        let source = |text: &'static str| Source { path: Path::new("test"), bytes: text.as_bytes() };
        let collection = Collection::from_bytes("test", Origin::Embedded, source(TOOLS), source(QUERIES)).unwrap();
        let record = CollectionRecord::<CopiesFacts>::of(
            &collection,
            &RouterEngine::new("default", RoutingConfig { semantic: 0.0, ..RoutingConfig::default() }),
        );
        let Outcome::Measured(facts) = record.outcome else { panic!("{record:?}") };
        assert_eq!((facts.tools, facts.queries, facts.original), (3, 2, 1.0));
        assert_eq!(facts.original_together.difference.mean, 0.0);
        for grown in &facts.grown {
            assert_eq!(grown.together.difference.mean, 0.0, "{grown:?}");
        }
        assert!(facts.grown[0].apart.difference.mean < 0.0, "{facts:?}");
        assert_eq!(facts.grown.len(), SIZES.len());
    }
}
