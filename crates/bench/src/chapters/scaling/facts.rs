//! The counters of an engine on a catalog of one size.

use std::hint::black_box;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::eval::collection::{Collection, Query};
use crate::eval::engine::RouterEngine;
use crate::eval::growth::{SEED, scaled};
use crate::eval::latency;
use crate::eval::record::Outcome;
use crate::eval::statistics::{mean, percentile, round6};
use contextweaver_core::catalog::Catalog;
use contextweaver_routing::{Depth, Index, RoutingConfig, Scratch};

/// What was counted at one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalingFacts {
    /// Tools in the catalog.
    pub tools: usize,
    /// Servers that they are of.
    pub namespaces: usize,
    /// Distinct terms of the index.
    pub terms: usize,
    /// Postings of the index.
    pub postings: usize,
    /// Bytes of the index without vectors.
    pub index_bytes: usize,
    /// Queries that were asked.
    pub queries: usize,
    /// Postings of the terms of a query: the mean over the queries.
    pub touched_mean: f64,
    /// The same, 95th percentile.
    pub touched_p95: f64,
    /// Postings that a search by words for the first ten reads, since it may pass over some: the mean over the queries.
    pub read_mean: f64,
}

/// What `engine` counts on a catalog of `size` tools around `base`.
#[must_use]
pub fn count(base: &Collection, engine: &RouterEngine, size: usize) -> Outcome<ScalingFacts> {
    match scaled(base, size, SEED) {
        Ok(catalog) => Outcome::Measured(facts(&catalog, base, engine)),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

fn facts(catalog: &Catalog, base: &Collection, engine: &RouterEngine) -> ScalingFacts {
    // The postings are the same with and without meaning, and the vectors would take most of the time.
    let index = Index::build(catalog, &RoutingConfig { semantic: 0.0, ..engine.config().clone() });
    let counts = |scratch: &mut Scratch, query: &Query| {
        let analyzed = index.analyze(&query.text);
        black_box(index.search_query(&analyzed, Depth::Exactly(latency::TOP), |_| true, scratch));
        (index.postings_of(&analyzed) as f64, scratch.postings_read() as f64)
    };
    let counted: Vec<(f64, f64)> = base.queries.par_iter().map_init(Scratch::default, counts).collect();
    let mut touched: Vec<f64> = counted.iter().map(|(touched, _)| *touched).collect();
    touched.sort_by(f64::total_cmp);
    ScalingFacts {
        tools: catalog.len(),
        namespaces: catalog.namespaces().len(),
        terms: index.terms(),
        postings: index.postings_total(),
        index_bytes: index.bytes(),
        queries: touched.len(),
        touched_mean: round6(mean(touched.iter().copied())),
        touched_p95: round6(percentile(&touched, 95.0)),
        read_mean: round6(mean(counted.iter().map(|(_, read)| *read))),
    }
}
