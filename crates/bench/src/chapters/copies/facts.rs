//! What copies cost on one collection.

use serde::{Deserialize, Serialize};

use crate::eval::collection::Collection;
use crate::eval::engine::RouterEngine;
use crate::eval::error::EvalError;
use crate::eval::growth::{SEED, grow};
use crate::eval::record::{Grade, Growth, Paired};
use crate::eval::run::recall_as_served;
use crate::eval::statistics::{mean, paired_by_tool, round6};
use contextweaver_routing::{Copies, RoutingConfig};

/// Tools after growth, where a collection has fewer.
pub const SIZES: [usize; 2] = [1000, 10_000];

/// What the differences are taken from.
const ORIGINAL: &str = "without copies";

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

impl CopiesFacts {
    /// Measures `engine` on `collection` grown to each of `sizes` that is more than it has.
    pub(super) fn at(sizes: &[usize], collection: &Collection, engine: &RouterEngine) -> Result<Self, EvalError> {
        let recalls = |collection: &Collection, copies: Copies| {
            recall_as_served(collection, &RoutingConfig { copies, ..engine.config().clone() })
        };
        let original = recalls(collection, Copies::Apart)?;
        let tools = collection.first_tools();
        let against = |recalls: Vec<f64>| {
            let pairs: Vec<(f64, f64)> = recalls.into_iter().zip(original.iter().copied()).collect();
            paired_by_tool(ORIGINAL, &pairs, &tools)
        };
        let mut grown = Vec::new();
        for size in sizes.iter().copied().filter(|size| *size > collection.catalog.len()) {
            let growth = Growth { grade: Grade::Copies, size };
            let copied = grow(collection, growth, SEED)?;
            let apart = against(recalls(&copied, Copies::Apart)?);
            let together = against(recalls(&copied, Copies::Together)?);
            grown.push(Grown { tools: size, apart, together });
        }
        Ok(Self {
            tools: collection.catalog.len(),
            queries: original.len(),
            original: round6(mean(original.iter().copied())),
            original_together: against(recalls(collection, Copies::Together)?),
            grown,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::eval::collection::Source;
    use crate::eval::record::Origin;

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
        let words = RouterEngine::new("default", RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        let facts = CopiesFacts::at(&SIZES, &collection, &words).unwrap();
        assert_eq!((facts.tools, facts.queries, facts.original), (3, 2, 1.0));
        assert_eq!(facts.original_together.difference.mean, 0.0);
        for grown in &facts.grown {
            assert_eq!(grown.together.difference.mean, 0.0, "{grown:?}");
        }
        assert!(facts.grown[0].apart.difference.mean < 0.0, "{facts:?}");
        assert_eq!(facts.grown.len(), SIZES.len());
    }
}
