//! What the harness measures: anything that ranks the tools of a catalog for a query.
//!
//! The project's own router comes in by the same trait as any rival, so that nothing is measured by a special way.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use super::error::EvalError;
use contextweaver_core::catalog::Catalog;
use contextweaver_routing::semantic::Table;
use contextweaver_routing::semantic::model::{Encoder, Model, VectorCache, place};
use contextweaver_routing::{Depth, Hit, Query, Router, RoutingConfig, Scratch};

/// An engine under test.
pub trait Engine: Sync {
    /// The name under which results are filed.
    fn name(&self) -> &str;

    /// The parameters, as text that a person can read.
    fn configuration(&self) -> String;

    /// Makes the engine ready for a catalog.
    ///
    /// # Errors
    /// Why it cannot serve this catalog; the harness records the message as the outcome of the case.
    fn prepare(&self, catalog: &Arc<Catalog>) -> Result<Box<dyn Prepared>, EvalError>;
}

/// An engine that is ready for queries on one catalog.
pub trait Prepared: Sync {
    /// The best `depth` tools, and every tool whose score equals the last of them, best first.
    fn rank(&self, query: &str, depth: usize) -> Ranking;

    /// The item numbers of the best `k` tools, best first: what serving needs, and what is timed.
    fn top(&self, query: &str, k: usize) -> Vec<u32>;

    /// The score of every tool without any navigation, by item number. `None` for an engine that cannot tell; its
    /// losses are then all counted as ranking.
    fn exhaustive(&self, query: &str) -> Option<Vec<u64>>;

    /// How large the prepared state is.
    fn size(&self) -> Size;
}

/// The answer to one query.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// Score descending, ties by item.
    pub hits: Vec<Hit>,
    /// How sure the engine is that the first tools answer the query, in [0, 1].
    pub confidence: f64,
    /// Postings (or what corresponds to them) that the terms of the query have.
    pub postings: usize,
}

impl Ranking {
    /// The ranking of tools whose scores fall or stay, with whole scores from `best` down that keep the order and the ties.
    /// Nothing is known of confidence and work.
    pub(super) fn of_scores(best: u64, tools: &[(u32, f64)]) -> Self {
        let mut hits: Vec<Hit> = Vec::with_capacity(tools.len());
        let mut score = best;
        for (place, (item, value)) in tools.iter().enumerate() {
            if place > 0 && tools[place - 1].1 != *value {
                score -= 1;
            }
            hits.push(Hit { item: *item, score });
        }
        Self { hits, confidence: 0.0, postings: 0 }
    }
}

/// The size of an engine's state for one catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Distinct terms of the index.
    pub terms: usize,
    /// Postings of the index.
    pub postings: usize,
    /// Nodes of a navigation graph, 0 without one.
    pub graph_nodes: usize,
    /// Bytes of learned weights that the engine brings, whatever the catalog: tables and encoders.
    pub weights_bytes: usize,
}

/// Whether an engine has a sentence encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EncoderChoice {
    /// It does without.
    #[default]
    None,
    /// The one that is part of the program.
    MiniLm,
}

/// The project's router under one configuration.
#[derive(Debug, Clone)]
pub struct RouterEngine {
    name: String,
    config: RoutingConfig,
    choice: EncoderChoice,
    /// In place of the one of this program.
    encoder: Option<Arc<dyn Encoder>>,
    /// Computed once, since a probe is measured for it.
    version: OnceLock<String>,
}

impl RouterEngine {
    /// An engine called `name`.
    #[must_use]
    pub fn new(name: &str, config: RoutingConfig) -> Self {
        Self { name: name.to_owned(), config, choice: EncoderChoice::None, encoder: None, version: OnceLock::new() }
    }

    /// The engine with or without an encoder.
    #[must_use]
    pub fn with(self, choice: EncoderChoice) -> Self {
        Self { choice, encoder: None, version: OnceLock::new(), ..self }
    }

    /// The engine with this encoder.
    #[must_use]
    pub fn with_encoder(self, encoder: Arc<dyn Encoder>) -> Self {
        Self { encoder: Some(encoder), ..self.with(EncoderChoice::MiniLm) }
    }

    /// Whether it encodes sentences.
    #[must_use]
    pub fn has_encoder(&self) -> bool {
        self.choice != EncoderChoice::None
    }

    /// What `compute` gives, computed on the first call.
    pub(super) fn version_by(&self, compute: impl FnOnce(&Self) -> String) -> &str {
        self.version.get_or_init(|| compute(self))
    }

    fn encoder(&self) -> Result<Arc<dyn Encoder>, EvalError> {
        match &self.encoder {
            Some(encoder) => Ok(Arc::clone(encoder)),
            None => Ok(place::encoder()?),
        }
    }

    /// The configuration as the router takes it.
    #[must_use]
    pub fn config(&self) -> &RoutingConfig {
        &self.config
    }
}

impl Engine for RouterEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn configuration(&self) -> String {
        // A configuration is plain data, which TOML can always express.
        let configuration = toml::to_string(&self.config).unwrap_or_default();
        match self.choice {
            EncoderChoice::None => configuration,
            EncoderChoice::MiniLm => format!("{configuration}\n# with the sentence encoder\n"),
        }
    }

    fn prepare(&self, catalog: &Arc<Catalog>) -> Result<Box<dyn Prepared>, EvalError> {
        let router = Router::build(Arc::clone(catalog), self.config.clone())?;
        let mut weights_bytes = if self.config.is_semantic() { Table::BUILTIN_BYTES } else { 0 };
        let router = match self.choice {
            EncoderChoice::None => router,
            EncoderChoice::MiniLm => {
                let encoder = self.encoder()?;
                weights_bytes += encoder.bytes();
                // In memory: what another program left on this machine must not decide what is measured.
                let model = Model::build(encoder, router.catalog(), &mut VectorCache::default());
                router.with_model(model)
            }
        };
        Ok(Box::new(PreparedRouter { router, weights_bytes }))
    }
}

struct PreparedRouter {
    router: Router,
    weights_bytes: usize,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Prepared for PreparedRouter {
    fn rank(&self, text: &str, depth: usize) -> Ranking {
        let index = self.router.index();
        let query: Query = index.analyze(text);
        let hits = SCRATCH.with_borrow_mut(|scratch| self.router.rank(&query, Depth::ThroughTies(depth), scratch));
        Ranking { confidence: self.router.confidence(&query, &hits), postings: index.postings_of(&query), hits }
    }

    fn top(&self, text: &str, k: usize) -> Vec<u32> {
        let hits = SCRATCH.with_borrow_mut(|scratch| self.router.search(text, k, scratch));
        hits.iter().map(|hit| hit.item).collect()
    }

    fn exhaustive(&self, text: &str) -> Option<Vec<u64>> {
        let index = self.router.index();
        Some(index.score_all(&index.analyze(text)))
    }

    fn size(&self) -> Size {
        let index = self.router.index();
        Size {
            terms: index.terms(),
            postings: index.postings_total(),
            graph_nodes: self.router.graph().map_or(0, contextweaver_routing::ChoiceGraph::len),
            weights_bytes: self.weights_bytes,
        }
    }
}
