//! The path of a query through this crate: retrieve, navigate, rerank, pack.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use super::beam::{BeamResult, Postings, beam_search, exact_search};
use super::card::{CardDeck, ChoiceCard};
use super::confidence::{self, LEAD_OVER};
use super::config::{ConfigError, Copies, Navigation, RoutingConfig};
use super::copies::CopyGroups;
use super::feedback::{Feedback, Lifts, Observation};
use super::filter::{AllowSet, Filter, FilterError, Placed, Placement};
use super::graph::{ChoiceGraph, GraphError, NodeId, NodeKind};
use super::history::{History, ScorePart, ScoreSource, total_score};
use super::hit::{Hit, SCORE_UNITS};
use super::index::{Depth, Index, Query, QueryTerm, Scratch, weighted};
use super::index_file::IndexFileError;
use super::path::{Path, PathError, resolve};
use super::selection::{Provider, SelectionError, SelectionValidation, selection_schema, validate_selection};
use super::semantic::Table;
use super::semantic::model::{Fusions, Model};
use super::tree::TreeBuilder;
use contextweaver_core::catalog::{Catalog, CatalogError};
use contextweaver_core::text::Analyzer;

/// A router cannot be built, or a request cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// A parameter is out of range.
    #[error("configuration: {0}")]
    Config(#[from] ConfigError),
    /// The choice graph cannot be built.
    #[error("choice graph: {0}")]
    Graph(#[from] GraphError),
    /// A saved index cannot be used.
    #[error(transparent)]
    IndexFile(#[from] IndexFileError),
    /// The filter does not fit the catalog.
    #[error("filter: {0}")]
    Filter(#[from] FilterError),
    /// A path leads nowhere.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The catalog cannot be loaded, or a card cannot be made within its bounds.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// The number of candidates that history may reorder, as a multiple of the number of tools returned.
const RERANKED: usize = 5;

/// The factor by which a search is extended when copies fill it.
const DEEPER: usize = 4;

/// The number of branches in [`Explored::left`] at most.
pub const SHOWN_PRUNED: usize = 5;

/// The number of tools named in a clarifying question.
const ASKED: usize = 3;

thread_local! {
    /// The memory of the searches of [`Router::route`], whose callers pass none.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// What a search found, and how.
struct Found {
    /// The hits, best first.
    hits: Vec<Hit>,
    /// How much the semantic parts count.
    fusion: Fusions,
    /// The branches opened and left by a search down the choice graph.
    explored: Option<BeamResult>,
}

/// Ranks the tools of one catalog under one configuration. Immutable, so it can be shared between threads.
#[derive(Debug)]
pub struct Router {
    catalog: Arc<Catalog>,
    /// The catalog that the index was built from.
    indexed: Arc<Catalog>,
    config: RoutingConfig,
    index: OnceLock<Index>,
    graph: OnceLock<ChoiceGraph>,
    deck: CardDeck,
    feedback: RwLock<Option<Arc<Feedback>>>,
    /// `None` where each copy of a tool has a place of its own.
    copies: Option<CopyGroups>,
}

/// A request to a router.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The query in the words of the user or the model.
    pub query: String,
    /// The number of tools to return; that of the configuration when `None`.
    pub top_k: Option<usize>,
    /// Exclusions, allow lists, pins and quotas.
    pub filter: Filter,
    /// The calls made so far.
    pub history: History,
}

/// The answer to a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Route {
    /// The query as it was asked.
    pub query: String,
    /// The tools, pins first, then best first.
    pub choices: Vec<Choice>,
    /// How likely it is that one of the first five tools fits, in [0, 1]; 1 for an exact name. Assumes that queries
    /// with and without a fitting tool are equally likely.
    pub confidence: f64,
    /// Whether the confidence is below [`RoutingConfig::abstain_below`], and feedback does not know the first tool.
    /// The choices are then only the nearest tools.
    pub no_tool_fits: bool,
    /// Set when the first tools, pins aside, are too close to call, and seem to fit.
    pub ambiguity: Option<Ambiguity>,
    /// The number of words of the query that no tool has, stop words aside.
    pub unknown_words: usize,
    /// How much of the choice graph was searched; `None` where every tool was scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explored: Option<Explored>,
}

/// What a search down the choice graph opened and what it left unopened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explored {
    /// The number of branches of the graph, the root included.
    pub branches: usize,
    /// The number of branches that were opened.
    pub opened: usize,
    /// The number of branches that were not opened although a tool below shares a word with the query.
    pub pruned: usize,
    /// The first of these, highest bound first: at most [`SHOWN_PRUNED`].
    pub left: Vec<Pruned>,
}

/// A branch that was not opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    /// The path of the branch; that of the root for a range of namespaces.
    pub path: String,
    /// The label of the branch.
    pub label: String,
    /// The number of tools below it.
    pub tools: usize,
    /// No tool below it scores more by words, in units of 1/[`SCORE_UNITS`].
    pub bound: u64,
}

/// One tool of a route.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Choice {
    /// The card that the model is shown.
    pub card: ChoiceCard,
    /// Why it is in the route.
    pub placement: Placement,
    /// Its score in units of 1/[`SCORE_UNITS`]: the sum of the parts.
    pub score: u64,
    /// The parts that make up the score.
    pub parts: Vec<Part>,
}

/// One part of a score.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What it comes from.
    pub source: PartSource,
    /// What it adds, in units of 1/[`SCORE_UNITS`]; negative when it subtracts.
    pub value: i64,
}

/// What a part of a score comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartSource {
    /// A word of the query that the tool has.
    Word(String),
    /// The similarity of tool and query by the semantic table.
    Meaning,
    /// The similarity of tool and query by the sentence encoder.
    Model,
    /// The query gives the tool's name.
    ExactName,
    /// The calls made so far.
    History(ScoreSource),
    /// Earlier queries with the same words led to the tool.
    Feedback,
}

/// A choice between tools whose scores are too close to call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ambiguity {
    /// A question to the user that would decide it.
    pub question: String,
    /// The ids of these tools, best first.
    pub ids: Vec<String>,
}

impl Request {
    /// A request for the tools that fit `query`, without filters and history.
    #[must_use]
    pub fn new(query: impl Into<String>) -> Self {
        Self { query: query.into(), ..Self::default() }
    }
}

impl Route {
    /// The ids of the choices, best first.
    #[must_use]
    pub fn ids(&self) -> Vec<&str> {
        self.choices.iter().map(|choice| choice.card.id()).collect()
    }

    /// A JSON Schema that lets a model choose only among these tools.
    ///
    /// # Errors
    /// [`SelectionError::NoCandidates`] when the route is empty.
    pub fn selection_schema(&self, provider: Provider) -> Result<serde_json::Value, SelectionError> {
        selection_schema(&self.ids(), provider)
    }

    /// Checks the id that a model returned against these tools.
    #[must_use]
    pub fn validate_selection(&self, selected: &str) -> SelectionValidation {
        validate_selection(selected, &self.ids())
    }
}

impl Router {
    /// A router over `catalog` with the default configuration.
    ///
    /// # Errors
    /// As [`Router::build`].
    pub fn new(catalog: impl Into<Arc<Catalog>>) -> Result<Self, RouteError> {
        Self::build(catalog.into(), RoutingConfig::default())
    }

    /// A router over the catalog at `path`, a file or folder, with the default configuration.
    ///
    /// # Errors
    /// [`RouteError::Catalog`] for a catalog that cannot be loaded.
    pub fn from_path(path: impl AsRef<std::path::Path>) -> Result<Self, RouteError> {
        Self::new(Catalog::from_path(path)?)
    }

    /// A router over the catalog in a JSON text, with the default configuration.
    ///
    /// # Errors
    /// [`RouteError::Catalog`] for a text that is not a catalog.
    pub fn from_json(json: &str) -> Result<Self, RouteError> {
        Self::new(Catalog::from_json(json)?)
    }

    /// Indexes `catalog`. The choice graph is built when it is first needed.
    ///
    /// # Errors
    /// [`RouteError::Config`]; [`RouteError::Graph`] where the configuration navigates by the graph.
    pub fn build(catalog: Arc<Catalog>, config: RoutingConfig) -> Result<Self, RouteError> {
        let router = Self::deferred(catalog, config)?;
        let _ = router.index();
        Ok(router)
    }

    /// As [`Router::build`], but the index is built when something first needs it.
    ///
    /// # Errors
    /// As [`Router::build`].
    pub fn deferred(catalog: Arc<Catalog>, config: RoutingConfig) -> Result<Self, RouteError> {
        config.validate()?;
        let deck = CardDeck::new(Arc::clone(&catalog));
        let copies = copy_groups(&catalog, &config);
        let router = Self {
            indexed: Arc::clone(&catalog),
            catalog,
            config,
            index: OnceLock::new(),
            graph: OnceLock::new(),
            deck,
            feedback: RwLock::default(),
            copies,
        };
        if router.config.navigation != Navigation::Flat {
            router.choice_graph()?;
        }
        Ok(router)
    }

    /// Reuses the index of `before`, a router over an earlier version of the catalog under the same configuration: this
    /// router's index is then made from it in the time that the changes take, as long as they are few. Words keep their
    /// weights until enough has changed for indexing everything anew. `before` goes on answering, so its users need no
    /// lock.
    pub fn follow(&mut self, before: &Self) {
        let index = before.index.get().filter(|_| self.config == before.config && self.index.get().is_none());
        if let Some(index) = index.and_then(|index| index.patched(&before.indexed, &self.catalog, &self.config)) {
            self.index = OnceLock::from(index);
            self.indexed = Arc::clone(&before.indexed);
        }
    }

    /// A router from saved parts, see [`super::load`].
    pub(super) fn from_saved(catalog: Arc<Catalog>, config: RoutingConfig, index: Index, graph: ChoiceGraph) -> Self {
        let deck = CardDeck::new(Arc::clone(&catalog));
        let copies = copy_groups(&catalog, &config);
        Self {
            indexed: Arc::clone(&catalog),
            catalog,
            config,
            index: OnceLock::from(index),
            graph: OnceLock::from(graph),
            deck,
            feedback: RwLock::default(),
            copies,
        }
    }

    /// The router with meaning from `table` instead of the one in the binary: how another table is measured. The table
    /// is not saved with the router.
    #[must_use]
    pub fn with_table(mut self, table: &'static Table) -> Self {
        self.index = OnceLock::from(Index::with_table(&self.catalog, &self.config, table));
        self.indexed = Arc::clone(&self.catalog);
        self
    }

    /// The router with feedback learned from `observations` (the oldest first), in place of any feedback it had.
    #[must_use]
    pub fn with_feedback(self, observations: &[Observation]) -> Self {
        self.learn(observations);
        self
    }

    /// Learns feedback from `observations` (the oldest first), in place of any feedback it had, while others search: a
    /// search that has begun goes on with the earlier feedback.
    pub fn learn(&self, observations: &[Observation]) {
        let feedback = Feedback::learn(observations, &self.catalog, self.index(), self.config.feedback);
        let mut held = self.feedback.write().unwrap_or_else(PoisonError::into_inner);
        *held = Some(Arc::new(feedback));
    }

    fn feedback(&self) -> Option<Arc<Feedback>> {
        self.feedback.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The router with a sentence encoder: `model`, built for the same catalog, counts at the configured weight.
    #[must_use]
    pub fn with_model(mut self, model: Model) -> Self {
        let _ = self.index();
        if let Some(index) = self.index.get_mut() {
            index.set_model(model, &self.config);
        }
        self
    }

    /// The catalog that is routed over.
    #[must_use]
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The configuration that the router was built with.
    #[must_use]
    pub fn config(&self) -> &RoutingConfig {
        &self.config
    }

    /// The index over the catalog, built on first use.
    #[must_use]
    pub fn index(&self) -> &Index {
        if let Some(index) = self.index.get() {
            return index;
        }
        // Building uses all threads: a thread that waited here for another thread's index could be one that it needs.
        let index = Index::build(&self.catalog, &self.config);
        self.index.get_or_init(|| index)
    }

    /// The cards of the catalog's items.
    #[must_use]
    pub fn deck(&self) -> &CardDeck {
        &self.deck
    }

    /// The choice graph, if it has been built already.
    #[must_use]
    pub fn graph(&self) -> Option<&ChoiceGraph> {
        self.graph.get()
    }

    /// The choice graph, built on first use.
    ///
    /// # Errors
    /// [`RouteError::Graph`].
    pub fn choice_graph(&self) -> Result<&ChoiceGraph, RouteError> {
        if let Some(graph) = self.graph.get() {
            return Ok(graph);
        }
        let graph = TreeBuilder::new(self.config.tree).build(&self.catalog)?;
        // Another thread may have been faster; both graphs are equal.
        Ok(self.graph.get_or_init(|| graph))
    }

    /// The `k` best items for `text`: the shortest path, for serving and timing.
    #[must_use]
    pub fn search(&self, text: &str, k: usize, scratch: &mut Scratch) -> Vec<Hit> {
        if self.feedback().is_some() || self.copies.is_some() {
            let query = self.index().analyze(text);
            let Found { hits: mut found, fusion, .. } = self.find(&query, k, |_| true, scratch);
            let lifts = self.lift_found(&mut found, text, &query, &fusion, |_| true, scratch);
            found.iter_mut().for_each(|hit| hit.score += lift(&lifts, hit.item));
            self.fold(&mut found, |hit| hit.item, |_| false);
            found.truncate(k);
            return found;
        }
        match self.config.navigation {
            Navigation::Flat => self.index().search(text, Depth::Exactly(k), |_| true, scratch),
            _ => self.navigate(&self.index().analyze(text), Depth::Exactly(k), |_| true, scratch).hits,
        }
    }

    /// The ranking of an analysed query, as evaluation reads it. A beam search never returns more than the configured
    /// number of tools here, whatever the depth: asking it for more would make it search longer, and so rank the first
    /// tools better than it serves them. Where copies share a place there are no ties to go through.
    #[must_use]
    pub fn rank(&self, query: &Query, depth: Depth, scratch: &mut Scratch) -> Vec<Hit> {
        let depth = match self.config.navigation {
            Navigation::Flat | Navigation::Exact => depth,
            Navigation::Beam(_) => Depth::Exactly(depth.k().min(self.config.top_k)),
        };
        self.ranked(query, depth, |_| true, scratch)
    }

    fn ranked(&self, query: &Query, depth: Depth, allow: impl Fn(u32) -> bool, scratch: &mut Scratch) -> Vec<Hit> {
        if self.copies.is_none() {
            return self.navigate(query, depth, allow, scratch).hits;
        }
        let mut found = self.find(query, depth.k(), allow, scratch).hits;
        self.fold(&mut found, |hit| hit.item, |_| false);
        found.truncate(depth.k());
        found
    }

    /// The best items, from at least `k` groups of copies where there are so many; copies are still included.
    fn find(&self, query: &Query, k: usize, allow: impl Fn(u32) -> bool, scratch: &mut Scratch) -> Found {
        let mut depth = k;
        loop {
            let found = self.navigate(query, Depth::Exactly(depth), &allow, scratch);
            let Some(copies) = &self.copies else { return found };
            let hits = &found.hits;
            if hits.len() < depth || copies.count(hits.iter().map(|hit| hit.item)) >= k {
                return found;
            }
            depth = depth.saturating_mul(DEEPER);
        }
    }

    /// Leaves one place to each group of copies: the first in the order of the ranking, unless another must be kept.
    fn fold<T>(&self, ranked: &mut Vec<T>, item: impl Fn(&T) -> u32, keep: impl Fn(u32) -> bool) {
        if let Some(copies) = &self.copies {
            copies.fold(ranked, item, keep);
        }
    }

    /// The best items. A search down the graph goes by words alone and does not include ties: what follows the last
    /// place of an exact search was never scored.
    fn navigate(&self, query: &Query, depth: Depth, allow: impl Fn(u32) -> bool, scratch: &mut Scratch) -> Found {
        let k = depth.k();
        let (Some(graph), true) = (self.graph.get(), self.config.navigation != Navigation::Flat) else {
            let (hits, fusion) = self.index().search_query(query, depth, allow, scratch);
            return Found { hits, fusion, explored: None };
        };
        let postings = AllowedPostings { index: self.index(), query, allow: &allow };
        let terms: Vec<u32> = (0..query.terms.len() as u32).collect();
        let mut found = match self.config.navigation {
            Navigation::Beam(beam) => beam_search(graph, &terms, &postings, beam, k, self.config.confidence_gap),
            Navigation::Flat | Navigation::Exact => exact_search(graph, &terms, &postings, k),
        };
        let hits = std::mem::take(&mut found.hits).into_iter().map(|(item, score)| Hit { item, score }).collect();
        let hits = self.index().with_exact(query, hits, k, allow, scratch);
        Found { hits, fusion: Fusions::default(), explored: Some(found) }
    }

    /// What a search down the graph looked at, in a form to show to people.
    fn explored(&self, found: &BeamResult) -> Option<Explored> {
        let graph = self.graph.get()?;
        let pruned = |(node, bound): &(NodeId, u64)| Pruned {
            path: Path::of(graph, *node).as_str().to_owned(),
            label: graph.node(*node).label.clone(),
            tools: graph.size(*node),
            bound: *bound,
        };
        Some(Explored {
            branches: graph.len() - graph.items(),
            opened: found.expanded.len(),
            pruned: found.pruned.len(),
            left: found.pruned.iter().take(SHOWN_PRUNED).map(pruned).collect(),
        })
    }

    /// How likely it is that one of the first five of `hits`, the ranking of `query`, fits, in [0, 1].
    #[must_use]
    pub fn confidence(&self, query: &Query, hits: &[Hit]) -> f64 {
        if !query.exact.is_empty() {
            return 1.0;
        }
        confidence::estimate(self.index().evidence(query, hits.get(..=LEAD_OVER).unwrap_or(hits)))
    }

    /// The first of `hits`, a ranking, when they are too close to call, best first: the tools to ask about. Otherwise
    /// empty.
    #[must_use]
    pub fn too_close<'h>(&self, hits: &'h [Hit]) -> &'h [Hit] {
        let near = close(hits.iter().map(|hit| hit.score), self.config.confidence_gap);
        hits.get(..near).unwrap_or_default()
    }

    /// [`Self::rank`] as if the catalog did not have the items `left_out`.
    #[must_use]
    pub fn rank_without(
        &self,
        query: &Query,
        depth: Depth,
        left_out: &BTreeSet<u32>,
        scratch: &mut Scratch,
    ) -> Vec<Hit> {
        self.ranked(query, depth, |item| !left_out.contains(&item), scratch)
    }

    /// Routes a request.
    ///
    /// # Errors
    /// [`RouteError::Filter`] when the filter names what the catalog does not have or leaves nothing.
    pub fn route(&self, request: &Request) -> Result<Route, RouteError> {
        let top_k = request.top_k.unwrap_or(self.config.top_k);
        let allowed = request.filter.compile(&self.catalog)?;
        let mut query = self.index().analyze(&request.query);
        // A name that may not be shown is no answer, so it makes nothing certain.
        query.exact.retain(|item| allowed.allows(*item));
        let (found, fusion, best, confidence, lifts, explored) = SCRATCH.with_borrow_mut(|scratch| {
            let Found { hits: mut found, fusion, explored } = self.retrieve(&query, request, &allowed, top_k, scratch);
            let best = found.first().map_or(0, |hit| hit.score);
            let mut distinct = found.clone();
            self.fold(&mut distinct, |hit| hit.item, |_| false);
            let confidence = self.confidence(&query, &distinct);
            self.add_pins(&mut found, &query, &fusion, request, &allowed, scratch);
            let allow = |item| allowed.allows(item);
            let lifts = self.lift_found(&mut found, &request.query, &query, &fusion, allow, scratch);
            (found, fusion, best, confidence, lifts, explored)
        });
        let mut ranked = self.rerank(found, best, &lifts, request, top_k);
        let is_pinned = |item: u32| self.id(item).is_some_and(|id| request.filter.pins.iter().any(|pin| pin == id));
        self.fold(&mut ranked, |(hit, _)| hit.item, is_pinned);
        let scored: Vec<(u32, u64)> = ranked.iter().map(|(hit, _)| (hit.item, hit.score)).collect();
        let placed = request.filter.apply_quota_and_pins(&scored, &self.catalog, &allowed, top_k);
        let words = self.index().words(&request.query);
        let parts = |placed: &Placed| placed.position.map(|at| ranked[at].1.as_slice()).unwrap_or_default();
        let lift = |placed: &Placed| placed.position.map_or(0, |_| lift(&lifts, placed.item));
        let choices = placed.iter().map(|placed| {
            let mut choice = self.pack(placed, &words, &query, &fusion, parts(placed), lift(placed));
            choice.card = self.with_alternatives(choice.card, placed.item, &allowed);
            choice
        });
        let choices: Vec<Choice> = choices.collect();
        // What earlier calls led to fits whatever its words are.
        let is_learned = |choice: &Choice| choice.parts.iter().any(|part| part.source == PartSource::Feedback);
        let first_is_learned = choices.first().is_some_and(is_learned);
        let no_tool_fits = confidence < self.config.abstain_below && !first_is_learned;
        Ok(Route {
            // Among tools that do not fit there is nothing to choose.
            ambiguity: if no_tool_fits { None } else { self.ambiguity(&choices) },
            choices,
            confidence,
            no_tool_fits,
            unknown_words: query.unknown,
            explored: explored.and_then(|found| self.explored(&found)),
            query: request.query.clone(),
        })
    }

    fn id(&self, item: u32) -> Option<&str> {
        self.catalog.items().get(item as usize).map(|item| item.id.as_str())
    }

    /// `card` with those copies of `item` that may be shown.
    fn with_alternatives(&self, card: ChoiceCard, item: u32, allowed: &AllowSet) -> ChoiceCard {
        let Some(copies) = &self.copies else { return card };
        let others = copies.alternatives(item).filter(|other| allowed.allows(*other));
        let ids: Vec<&str> = others.filter_map(|other| self.id(other)).collect();
        if ids.is_empty() { card } else { card.with_alternatives(&ids) }
    }

    /// The cards at a path of the choice graph: one for each child, or the single card of a leaf. Navigation nodes have
    /// cards of kind `internal` with their path as id.
    ///
    /// # Errors
    /// [`RouteError::Path`] for a path that leads nowhere, [`RouteError::Graph`].
    pub fn browse(&self, path: &Path) -> Result<Vec<ChoiceCard>, RouteError> {
        let graph = self.choice_graph()?;
        let card = |id: NodeId| {
            let node = graph.node(id);
            match node.kind {
                NodeKind::Leaf(item) => self.deck.shown(item).clone(),
                _ => {
                    let namespace = graph.namespace(id).unwrap_or_default();
                    ChoiceCard::node(Path::of(graph, id).as_str(), &node.label, &node.hint, namespace).card
                }
            }
        };
        Ok(resolve(graph, path)?.children.into_iter().map(card).collect())
    }

    /// Enough candidates for reordering and quotas to choose from.
    fn retrieve(
        &self,
        query: &Query,
        request: &Request,
        allowed: &AllowSet,
        top_k: usize,
        scratch: &mut Scratch,
    ) -> Found {
        let depth = match (request.history == History::default(), request.filter.namespace_quota) {
            (_, Some(_)) => self.catalog.len(),
            // At least as many as confidence reads.
            (true, None) => top_k.max(LEAD_OVER + 1),
            (false, None) => top_k.saturating_mul(RERANKED).max(LEAD_OVER + 1),
        };
        self.find(query, depth.max(1), |item| allowed.allows(item), scratch)
    }

    /// Adds the pinned items that the query finds and that were not retrieved, so that a pin's score does not depend on
    /// how many tools were asked for.
    fn add_pins(
        &self,
        found: &mut Vec<Hit>,
        query: &Query,
        fusion: &Fusions,
        request: &Request,
        allowed: &AllowSet,
        scratch: &mut Scratch,
    ) {
        let pins = request.filter.pins.iter().filter_map(|id| self.catalog.position(id));
        for item in pins.map(|number| number as u32).filter(|item| allowed.allows(*item)) {
            if !found.iter().any(|hit| hit.item == item) {
                let score = self.index().score(query, fusion, item, scratch);
                found.extend((score > 0).then_some(Hit { item, score }));
            }
        }
    }

    /// What feedback adds to each item, by item. A query that gives a tool's name is answered by the name alone; where
    /// the words find nothing, a score of one stands in for the best.
    ///
    /// The lifted items that were not retrieved are added, and everything is sorted by score with lifts. An item without a
    /// lift that was not retrieved ranks behind those that were, so the first ones are exact.
    fn lift_found(
        &self,
        found: &mut Vec<Hit>,
        text: &str,
        query: &Query,
        fusion: &Fusions,
        allow: impl Fn(u32) -> bool,
        scratch: &mut Scratch,
    ) -> BTreeMap<u32, u64> {
        let Some(feedback) = self.feedback().filter(|_| query.exact.is_empty()) else { return BTreeMap::new() };
        let best = found.iter().map(|hit| hit.score).max().filter(|best| *best > 0).unwrap_or(SCORE_UNITS);
        let Lifts { by_item: mut lifts, repeated } =
            feedback.lifts(text, query.meaning.as_ref(), self.index().rarities(query), best);
        let known: BTreeSet<u32> = found.iter().map(|hit| hit.item).collect();
        let lifted: BTreeSet<u32> = lifts.keys().copied().chain(repeated).collect();
        for item in lifted.into_iter().filter(|item| !known.contains(item) && allow(*item)) {
            found.push(Hit { item, score: self.index().score(query, fusion, item, scratch) });
        }
        let with_lift = |hit: &Hit, lifts: &BTreeMap<u32, u64>| hit.score + lift(lifts, hit.item);
        if let Some(repeated) = repeated.and_then(|item| found.iter().find(|hit| hit.item == item)) {
            let others = found.iter().filter(|hit| hit.item != repeated.item);
            let first = others.map(|hit| with_lift(hit, &lifts)).max().unwrap_or(0);
            if with_lift(repeated, &lifts) <= first {
                lifts.insert(repeated.item, first + 1 - repeated.score);
            }
        }
        found.sort_by_key(|hit| Hit { item: hit.item, score: with_lift(hit, &lifts) }.order());
        lifts
    }

    /// The candidates with what feedback and history add or subtract, best first. History is looked up only for the
    /// pins and for candidates that it could bring among the first `top_k`; a quota has many more candidates, which
    /// keep their retrieval score.
    fn rerank(
        &self,
        found: Vec<Hit>,
        best: u64,
        lifts: &BTreeMap<u32, u64>,
        request: &Request,
        top_k: usize,
    ) -> Vec<(Hit, Vec<ScorePart>)> {
        let analyzer = Analyzer::default();
        let history = request.history.prepare(&self.catalog, &analyzer);
        let adjusted = if request.history == History::default() { usize::MAX } else { top_k.saturating_mul(RERANKED) };
        let adjust = |(at, hit): (usize, Hit)| {
            let item = &self.catalog.items()[hit.item as usize];
            let parts = if at < adjusted || request.filter.pins.contains(&item.id) {
                history.adjustments(item, &analyzer, hit.score, best)
            } else {
                vec![ScorePart { source: ScoreSource::Retrieval, value: hit.score as i64 }]
            };
            (Hit { item: hit.item, score: total_score(&parts) + lift(lifts, hit.item) }, parts)
        };
        let mut ranked: Vec<_> = found.into_iter().enumerate().map(adjust).collect();
        ranked.sort_by_key(|(hit, _)| hit.order());
        ranked
    }

    fn pack(
        &self,
        placed: &Placed,
        words: &[(String, Vec<QueryTerm>)],
        query: &Query,
        fusion: &Fusions,
        adjusted: &[ScorePart],
        lift: u64,
    ) -> Choice {
        let mut parts = Vec::new();
        for part in adjusted {
            match part.source {
                ScoreSource::Retrieval => {
                    parts.extend(self.retrieval_parts(words, query, fusion, placed.item, part.value));
                }
                source => parts.push(Part { source: PartSource::History(source), value: part.value }),
            }
        }
        if lift > 0 {
            parts.push(Part { source: PartSource::Feedback, value: lift as i64 });
        }
        let card = self.deck.shown(placed.item).clone();
        let score = (placed.score as f64 / SCORE_UNITS as f64 * 1e4).round() / 1e4;
        Choice { card: card.with_score(score), placement: placed.placement, score: placed.score, parts }
    }

    /// The parts of a retrieval score: the words of the query in the item, its meaning, and the exact name as the
    /// remainder of `total`.
    fn retrieval_parts(
        &self,
        words: &[(String, Vec<QueryTerm>)],
        query: &Query,
        fusion: &Fusions,
        item: u32,
        total: i64,
    ) -> Vec<Part> {
        let words = self.index().explain_words(words, item);
        let mut parts: Vec<Part> = words
            .into_iter()
            .map(|(word, value)| Part { source: PartSource::Word(word), value: value as i64 })
            .collect();
        let meaning = self.index().semantic_part(query, fusion, item) as i64;
        parts.extend((meaning > 0).then_some(Part { source: PartSource::Meaning, value: meaning }));
        let model = self.index().model_part(query, fusion, item) as i64;
        parts.extend((model > 0).then_some(Part { source: PartSource::Model, value: model }));
        let sum: i64 = parts.iter().map(|part| part.value).sum();
        if query.exact.binary_search(&item).is_ok() {
            parts.push(Part { source: PartSource::ExactName, value: total - sum });
        }
        parts
    }

    /// A question when the second tool offered is within the confidence gap of the first. Pinned tools are in the route
    /// whatever the query says, so they are not compared.
    fn ambiguity(&self, choices: &[Choice]) -> Option<Ambiguity> {
        let ranked = || choices.iter().filter(|choice| choice.placement == Placement::Ranked);
        let near = close(ranked().map(|choice| choice.score), self.config.confidence_gap);
        let near: Vec<&ChoiceCard> = ranked().take(near).map(|choice| &choice.card).collect();
        if near.is_empty() {
            return None;
        }
        let ids: Vec<&str> = near.iter().map(|card| card.id()).collect();
        let namespaces = ids.iter().filter_map(|id| self.catalog.get(id)).map(|item| item.namespace.as_str());
        let namespaces: BTreeSet<&str> = namespaces.collect();
        let names: Vec<&str> = near.iter().map(|card| card.name()).collect();
        let question = if namespaces.len() > 1 {
            format!("Which of these do you mean: {}?", quoted(&namespaces.into_iter().collect::<Vec<_>>()))
        } else {
            let distinct: BTreeSet<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
            let told_apart = distinct.len() == names.len();
            format!("Which of these should be done: {}?", quoted(if told_apart { &names } else { &ids }))
        };
        Some(Ambiguity { question, ids: ids.into_iter().map(str::to_owned).collect() })
    }
}

/// How many of the first of descending `scores` are within the share `gap` of the best, at most [`ASKED`]; 0 when the
/// best stands alone.
fn close(scores: impl Iterator<Item = u64>, gap: f64) -> usize {
    let mut scores = scores.map(|score| score as f64).peekable();
    let best = scores.peek().copied().unwrap_or(0.0);
    match scores.take_while(|score| best - score <= gap * best).take(ASKED).count() {
        1 => 0,
        near => near,
    }
}

fn copy_groups(catalog: &Catalog, config: &RoutingConfig) -> Option<CopyGroups> {
    (config.copies == Copies::Together).then(|| CopyGroups::of(catalog))
}

/// What feedback adds to the score of an item.
fn lift(lifts: &BTreeMap<u32, u64>, item: u32) -> u64 {
    lifts.get(&item).copied().unwrap_or(0)
}

/// The postings of one query's terms as beam search reads them: terms by their position in the query, at their weight,
/// without the items that are not allowed.
struct AllowedPostings<'a, A> {
    index: &'a Index,
    query: &'a Query,
    allow: &'a A,
}

impl<A: Fn(u32) -> bool> Postings for AllowedPostings<'_, A> {
    fn for_each(&self, place: u32, visit: &mut dyn FnMut(u32, u32)) {
        let Some(term) = self.query.terms.get(place as usize) else { return };
        for posting in self.index.postings(term.term) {
            if (self.allow)(posting.item) {
                visit(posting.item, weighted(posting.impact, term.weight));
            }
        }
    }
}

/// The names in backquotes as a list: `a`, `b` or `c`.
fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use proptest::prelude::*;

    use super::*;
    use crate::{BeamConfig, Scorer, TreeConfig};
    use contextweaver_core::catalog::{Kind, Safety, SelectableItem};

    fn items() -> Vec<SelectableItem> {
        let tool = |namespace: &str, name: &str, description: &str| {
            SelectableItem::tool(&format!("{namespace}:{name}#00000000"), namespace, name, description)
        };
        vec![
            tool("forge", "create_issue", "Open a new issue in a repository"),
            tool("forge", "list_issues", "List the issues of a repository"),
            SelectableItem {
                safety: Safety::Destructive,
                tags: vec!["destructive".to_owned()],
                ..tool("forge", "delete_repository", "Delete a repository with its issues for good")
            },
            tool("tracker", "createTicket", "Open a new issue in the tracker"),
            tool("mail", "send_mail", "Send a letter about an issue"),
        ]
    }

    fn router(items: Vec<SelectableItem>, config: RoutingConfig) -> Router {
        Router::build(Arc::new(Catalog::new(items).unwrap()), config).unwrap()
    }

    #[test]
    fn all_threads_may_ask_for_an_index_at_once() {
        use rayon::prelude::*;
        let tool = |number: u32| {
            SelectableItem::tool(&format!("a:tool_{number}#00000000"), "a", &format!("tool_{number}"), "Does a thing")
        };
        let catalog = Arc::new(Catalog::new((0..3000).map(tool).collect()).unwrap());
        let router = Router::deferred(catalog, RoutingConfig::default()).unwrap();
        let sizes: Vec<usize> = (0..64).into_par_iter().map(|_| router.index().items()).collect();
        assert_eq!(sizes, vec![3000; 64]);
    }

    fn request(query: &str) -> Request {
        Request { query: query.to_owned(), ..Request::default() }
    }

    fn names(route: &Route) -> Vec<&str> {
        route.choices.iter().map(|choice| choice.card.name()).collect()
    }

    #[test]
    fn a_route_is_ranked_explained_and_asked_about() {
        let config = RoutingConfig { semantic: 0.4, ..RoutingConfig::default() };
        let route = router(items(), config).route(&request("open a new issue")).unwrap();
        let mut seen: Vec<String> = route
            .choices
            .iter()
            .map(|choice| {
                let parts: Vec<String> =
                    choice.parts.iter().map(|part| format!("{:?} {}", part.source, part.value)).collect();
                format!("{} {} = {}", choice.card.name(), choice.score, parts.join(" + "))
            })
            .collect();
        seen.push(format!("{:?}", route.ambiguity));
        insta::assert_snapshot!(seen.join("\n"), @r#"
        create_issue 579648 = Word("open") 110159 + Word("new") 110159 + Word("open new") 32130 + Word("issue") 34255 + Word("new issue") 32130 + Meaning 260815
        createTicket 408975 = Word("open") 110159 + Word("new") 110159 + Word("open new") 32130 + Word("issue") 10949 + Word("new issue") 32130 + Meaning 113448
        list_issues 113234 = Word("issue") 31970 + Meaning 81264
        send_mail 20228 = Word("issue") 12165 + Meaning 8063
        delete_repository 17867 = Word("issue") 10949 + Meaning 6918
        None
        "#);
    }

    #[test]
    fn filters_pins_and_quotas_shape_the_result() {
        let router = router(items(), RoutingConfig::default());
        let route = |filter: Filter| {
            names(&router.route(&Request { filter, ..request("issue repository") }).unwrap()).join(" ")
        };
        let all = route(Filter::default());
        assert_eq!(all.split(' ').count(), 5, "{all}");
        let refuse = Filter { refuse_safety: [Safety::Destructive].into(), ..Filter::default() };
        assert!(!route(refuse).contains("delete_repository"));
        let pins = Filter { pins: vec!["mail:send_mail#00000000".to_owned()], ..Filter::default() };
        assert!(route(pins).starts_with("send_mail "));
        let quota = Filter { namespace_quota: NonZeroUsize::new(1), ..Filter::default() };
        assert_eq!(route(quota).split(' ').count(), 3);
        let allow = Filter { allow_namespaces: vec!["tracker".to_owned()], ..Filter::default() };
        assert_eq!(route(allow), "createTicket");
        let unknown = Filter { allow_namespaces: vec!["traker".to_owned()], ..Filter::default() };
        let error = router.route(&Request { filter: unknown, ..request("x") }).unwrap_err().to_string();
        assert!(error.contains("did you mean `tracker`"), "{error}");
    }

    #[test]
    fn a_called_tool_gives_way() {
        let router = router(items(), RoutingConfig::default());
        let first = router.route(&request("open a new issue")).unwrap().ids()[0].to_owned();
        let history = History { called: vec![first.clone()], ..History::default() };
        let route = router.route(&Request { history, ..request("open a new issue") }).unwrap();
        assert_ne!(route.ids()[0], first);
    }

    #[test]
    fn an_exact_name_is_certain() {
        let route = router(items(), RoutingConfig::default()).route(&request("createTicket")).unwrap();
        assert_eq!((names(&route)[0], route.confidence), ("createTicket", 1.0));
        assert!(route.choices[0].parts.iter().any(|part| part.source == PartSource::ExactName));
    }

    #[test]
    fn a_route_says_when_no_tool_seems_to_fit() {
        let words = || RoutingConfig { semantic: 0.0, abstain_below: 0.0, ..RoutingConfig::default() };
        let config = RoutingConfig { abstain_below: 0.3, ..words() };
        for (query, fits) in
            [("open a new issue in the tracker", true), ("what is the issue with my car engine", false)]
        {
            let asked = |config: &RoutingConfig| router(items(), config.clone()).route(&request(query)).unwrap();
            assert_eq!(asked(&config).no_tool_fits, !fits, "{query}: {}", asked(&config).confidence);
            assert!(!asked(&config).choices.is_empty() && !asked(&words()).no_tool_fits);
        }
        assert!(router(items(), config).route(&request("zebra")).unwrap().no_tool_fits);
    }

    #[test]
    fn nobody_is_asked_to_choose_among_tools_that_do_not_fit() {
        let twins = || (1..3).map(|n| SelectableItem::tool(&format!("a:t#0000000{n}"), "a", "t", "Open an issue"));
        let asked = |abstain_below: f64| {
            let config = RoutingConfig { abstain_below, ..RoutingConfig::default() };
            let route = router(twins().collect(), config).route(&request("open an issue")).unwrap();
            (route.no_tool_fits, route.ambiguity.is_some(), route.choices.len())
        };
        assert_eq!(asked(0.0), (false, true, 2));
        assert_eq!(asked(1.0), (true, false, 2));
    }

    #[test]
    fn confidence_does_not_depend_on_how_many_are_asked_for() {
        let router = router(items(), RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        let confidence =
            |top_k| router.route(&Request { top_k: Some(top_k), ..request("new issue") }).unwrap().confidence;
        assert_eq!(confidence(1), confidence(5));
        let query = router.index().analyze("new issue");
        let hits = router.rank(&query, Depth::Exactly(5), &mut Scratch::default());
        assert_eq!(router.confidence(&query, &hits), confidence(5));
        let left_out = hits.first().map(|hit| hit.item).into_iter().collect();
        let left = router.rank_without(&query, Depth::Exactly(5), &left_out, &mut Scratch::default());
        assert_eq!(left, hits[1..]);
    }

    #[test]
    fn an_exact_name_that_is_filtered_out_makes_nothing_certain() {
        let router = router(items(), RoutingConfig::default());
        let filter = Filter { exclude_ids: vec!["tracker:createTicket#00000000".to_owned()], ..Filter::default() };
        let route = router.route(&Request { filter, ..request("createTicket issue createTicket") }).unwrap();
        assert!(!route.choices.is_empty() && route.confidence < 1.0, "{}", route.confidence);
    }

    #[test]
    fn a_beam_returns_as_many_tools_as_a_request_asks_for() {
        let many = (0..60).map(|n| {
            SelectableItem::tool(&format!("s{}:mail_{n}#00000000", n % 6), &format!("s{}", n % 6), "mail", "Send mail")
        });
        let navigation = Navigation::Beam(BeamConfig { width: 1, max_depth: 8 });
        let router = router(many.collect(), RoutingConfig { navigation, ..RoutingConfig::default() });
        let route = |top_k| router.route(&Request { top_k, ..request("mail") }).unwrap().choices.len();
        assert_eq!((route(Some(25)), route(None)), (25, 10));
        let query = router.index().analyze("mail");
        assert_eq!(router.rank(&query, Depth::ThroughTies(25), &mut Scratch::default()).len(), 10);
    }

    #[test]
    fn the_score_of_a_pin_does_not_depend_on_how_many_are_asked_for() {
        let router = router(items(), RoutingConfig::default());
        let pins = vec!["mail:send_mail#00000000".to_owned(), "forge:list_issues#00000000".to_owned()];
        let called = vec!["forge:list_issues#00000000".to_owned()];
        for query in ["open a new issue", "letter", "use createTicket or send_mail", "zebra"] {
            for history in [History::default(), History { called: called.clone(), ..History::default() }] {
                let shown = |top_k| {
                    let filter = Filter { pins: pins.clone(), ..Filter::default() };
                    let request = Request { top_k: Some(top_k), filter, history: history.clone(), ..request(query) };
                    let route = router.route(&request).unwrap();
                    let pinned = route.choices.iter().filter(|choice| choice.placement == Placement::Pinned);
                    pinned.map(|choice| format!("{} {:?}", choice.score, choice.parts)).collect::<Vec<_>>()
                };
                assert_eq!(shown(1), shown(5), "{query}");
                assert_eq!(shown(1).len(), 2);
            }
        }
    }

    #[test]
    fn what_is_asked_about_is_what_is_offered() {
        let asked = |config: RoutingConfig, items: Vec<SelectableItem>, filter: Filter, top_k: usize| {
            let route = router(items, config)
                .route(&Request { filter, top_k: Some(top_k), ..request("open a new issue") })
                .unwrap();
            route.ambiguity.map(|ambiguity| ambiguity.question)
        };
        let config = || RoutingConfig { abstain_below: 0.0, ..RoutingConfig::default() };
        assert_eq!(asked(config(), items(), Filter::default(), 1), None, "one tool is no choice");
        let pins = Filter { pins: vec!["tracker:createTicket#00000000".to_owned()], ..Filter::default() };
        assert_eq!(asked(config(), items(), pins, 5), None, "a pin is not compared");
        let twins = |name: &'static str| {
            (1..3).map(|n| SelectableItem::tool(&format!("a:t#0000000{n}"), "a", name, "Open a new issue")).collect()
        };
        let exact = || RoutingConfig { confidence_gap: 0.0, ..config() };
        let question = "Which of these should be done: `a:t#00000001` or `a:t#00000002`?";
        assert_eq!(asked(exact(), twins("t"), Filter::default(), 5).as_deref(), Some(question));
        assert_eq!(asked(exact(), items(), Filter::default(), 5), None, "no tie");
        let hidden =
            |name: &str, n: usize| SelectableItem::tool(&format!("a:t#0000000{n}"), "a", name, "Open an issue");
        let cleaned = asked(config(), vec![hidden("x\u{202E}y", 1), hidden("z", 2)], Filter::default(), 5).unwrap();
        assert!(!cleaned.contains('\u{202E}'), "{cleaned}");
    }

    const WORDS: [&str; 9] = ["mail", "send", "list", "issue", "create", "page", "branch", "file", "the"];

    fn sentence() -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(&WORDS[..]), 0..7).prop_map(|words| words.join(" "))
    }

    fn tools() -> impl Strategy<Value = Vec<SelectableItem>> {
        let tool = (0usize..4, prop::sample::select(&WORDS[..]), sentence());
        prop::collection::vec(tool, 1..60).prop_map(|tools| {
            let item = |(number, (server, name, text)): (usize, (usize, &str, String))| {
                let namespace = format!("server{server}");
                SelectableItem::tool(&format!("{namespace}:{name}#{number:08x}"), &namespace, name, &text)
            };
            tools.into_iter().enumerate().map(item).collect()
        })
    }

    proptest! {
        #[test]
        fn parts_add_up_and_order_of_loading_changes_nothing(
            tools in tools(), query in sentence(), fuzzy in any::<bool>(), called in 0usize..60,
        ) {
            let scorer = if fuzzy { Scorer::Fuzzy } else { Scorer::Bm25f };
            let config = RoutingConfig { scorer, ..RoutingConfig::default() };
            let called = tools.get(called).map(|item| item.id.clone());
            let history = History { called: called.into_iter().collect(), ..History::default() };
            let request = Request { history, ..request(&query) };
            let mut reversed = tools.clone();
            reversed.reverse();
            let route = router(tools, config.clone()).route(&request).unwrap();
            for choice in &route.choices {
                let sum: i64 = choice.parts.iter().map(|part| part.value).sum();
                prop_assert_eq!(sum, choice.score as i64);
            }
            let again = router(reversed, config).route(&request).unwrap();
            prop_assert_eq!(serde_json::to_string(&route).unwrap(), serde_json::to_string(&again).unwrap());
        }

        #[test]
        fn browsing_reaches_every_tool_that_has_a_card(
            names in prop::collection::vec((0usize..2, "(x[a-z0-9]{1,3}_|very_long_name_){1,9}"), 1..90),
            max_children in 2usize..8,
        ) {
            let namespaces = ["n", "a-namespace-of-many-words-that-is-as-long-as-they-ever-are-in-fact"];
            let tool = |(number, (space, name)): (usize, (usize, String))| {
                let text = name.replace('_', " ");
                SelectableItem::tool(&format!("n:t{number}"), &namespaces[space][..namespaces[space].len().min(60)], &name, &text)
            };
            let items: Vec<_> = names.into_iter().enumerate().map(tool).collect();
            let count = items.len();
            let router = router(items, RoutingConfig { tree: TreeConfig { max_children }, ..RoutingConfig::default() });
            let (mut open, mut reached) = (vec!["/".to_owned()], 0);
            while let Some(path) = open.pop() {
                for card in router.browse(&path.parse().unwrap()).map_err(|error| TestCaseError::fail(error.to_string()))? {
                    match card.kind() {
                        Kind::Internal => open.push(card.id().to_owned()),
                        _ => reached += 1,
                    }
                }
            }
            prop_assert_eq!(reached, count);
        }

        #[test]
        fn an_exact_search_is_the_flat_ranking(
            tools in tools(), query in sentence(), max_children in 2usize..8, top_k in 1usize..12,
        ) {
            let tree = TreeConfig { max_children };
            let flat = RoutingConfig { tree, semantic: 0.0, ..RoutingConfig::default() };
            let exact = RoutingConfig { navigation: Navigation::Exact, ..flat };
            let request = Request { top_k: Some(top_k), ..request(&query) };
            let route = |config| router(tools.clone(), config).route(&request).unwrap();
            let (mut flat, exact) = (route(flat), route(exact));
            let explored = exact.explored.clone().unwrap();
            prop_assert!(explored.opened <= explored.branches && explored.left.len() <= explored.pruned);
            flat.explored.clone_from(&exact.explored);
            prop_assert_eq!(serde_json::to_string(&flat).unwrap(), serde_json::to_string(&exact).unwrap());
        }

        #[test]
        fn a_wide_beam_is_the_flat_ranking(tools in tools(), query in sentence(), max_children in 2usize..8) {
            let navigation = Navigation::Beam(BeamConfig { width: usize::MAX, max_depth: 64 });
            let tree = TreeConfig { max_children };
            let flat = RoutingConfig { tree, semantic: 0.0, ..RoutingConfig::default() };
            let beam = RoutingConfig { navigation, tree, ..RoutingConfig::default() };
            let search = |config| router(tools.clone(), config).search(&query, 10, &mut Scratch::default());
            prop_assert_eq!(search(flat), search(beam));
        }
    }
}
