//! The inverted index: query text in, item numbers and scores out.
//!
//! Everything that depends on the catalog alone is computed when the index is built. A posting holds the whole
//! contribution of one term to one item (its *impact*), so that a search is one addition per posting, whatever the
//! scorer. Impacts are integers: sums do not depend on the order of addition, equal scores are really equal, and
//! the parts of an explanation add up to the score without a rest.
//!
//! Two neighbouring words of a name are a term of their own, a *pair*, numbered behind the words.
//!
//! Where the configuration gives the semantic side a weight, its part is added in the same units, and that of a model
//! where the index was given one ([`Fusions`]).
//!
//! Searching is exhaustive. Queries for tools carry a dozen terms over short texts, and at that shape dynamic
//! pruning (MaxScore, block-max) costs more than the additions it saves.

use rustc_hash::FxHashMap;

use super::config::{NameMatch, Navigation, RoutingConfig, Scorer};
use super::exact::ExactNames;
use super::fuzzy;
use super::hit::{Hit, SCORE_UNITS, TopK};
use super::semantic::model::{Fusions, Model, ModelVector, Sides, rank};
use super::semantic::{DocumentVectors, Fusion, QueryVector, Table};
use super::spelling::{MOST_CORRECTED, Spelling};
use crate::catalog::{Catalog, SelectableItem};
use crate::text::{Analyzer, for_each_word, is_stop_word};

/// The number of a term in an [`Index`].
pub type TermId = u32;

/// A query has at most this many words and pairs that count, unknown words and repeats included; further ones are
/// ignored. Together with `MAX_IMPACT` it keeps every score within 32 bits, since no word weighs more than it is often.
pub const MAX_QUERY_TERMS: usize = 1000;

/// The largest impact of one posting (16.0 in fixed point): idf stays below ln(2 · 10⁶) ≈ 14.5 up to a million items.
const MAX_IMPACT: u32 = 1 << 22;

/// The weight of a term that the query has once; readings of unknown words have less, repeated words more.
pub const FULL_WEIGHT: u32 = 256;

/// Marks a surface form that is a stop word.
const STOP: TermId = TermId::MAX;

/// The searchable fields, in the order of [`super::FieldWeights`].
const FIELDS: usize = 5;

/// The place of the name among them.
const NAME: usize = 0;

/// One item that a term occurs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Posting {
    /// The item's position in [`Catalog::items`].
    pub item: u32,
    /// What the term adds to the item's score when the query has it once, in units of 2⁻¹⁸.
    pub impact: u32,
}

/// One term of a query as the index knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryTerm {
    /// The term.
    pub term: TermId,
    /// Its weight in units of 1/[`FULL_WEIGHT`].
    pub weight: u32,
}

/// A query after analysis.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// The known terms, each once.
    pub terms: Vec<QueryTerm>,
    /// How many words that are not stop words the catalog does not know.
    pub unknown: usize,
    /// The items whose name the query gives exactly, ascending.
    pub exact: Vec<u32>,
    /// What it means, where the index has vectors to compare it with.
    pub meaning: Option<QueryVector>,
    /// What it means to the model, where the index was given one.
    pub model: Option<Box<ModelVector>>,
}

/// Reusable memory of searches, so that a search allocates only its result. One per thread.
#[derive(Debug, Default)]
pub struct Scratch {
    scores: Vec<u32>,
    query: Query,
    words: Words,
}

/// How far down a ranking goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The best `k` items.
    Exactly(usize),
    /// The best `k` items and every item whose score equals the last of them.
    ThroughTies(usize),
}

impl Depth {
    /// The number of items asked for.
    #[must_use]
    pub fn k(self) -> usize {
        match self {
            Self::Exactly(k) | Self::ThroughTies(k) => k,
        }
    }

    /// Cuts a ranking, best first.
    pub(super) fn cut(self, hits: &mut Vec<Hit>) {
        let end = match self {
            Self::Exactly(k) | Self::ThroughTies(k @ 0) => k,
            Self::ThroughTies(k) => {
                let last = hits.get(k - 1).map_or(0, |hit| hit.score);
                hits.partition_point(|hit| hit.score >= last)
            }
        };
        hits.truncate(end);
    }
}

/// What of an index is built once and can be saved.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) items: u32,
    /// Term to number.
    pub(super) terms: FxHashMap<Box<str>, TermId>,
    /// Normalised word to term number, or [`STOP`]: spares the stemmer for every word that the catalog uses.
    pub(super) surfaces: FxHashMap<Box<str>, TermId>,
    /// Two terms that are neighbours in a name to the number of the pair.
    pub(super) pairs: FxHashMap<(TermId, TermId), TermId>,
    /// Start of the postings of each term, then of each pair; one more entry than both.
    pub(super) offsets: Vec<u32>,
    pub(super) postings: Vec<Posting>,
    pub(super) exact: ExactNames,
}

/// An immutable index over one catalog under one configuration. Shared freely between threads.
#[derive(Debug)]
pub struct Index {
    pub(super) parts: Parts,
    reading: Reading,
    spelling: Spelling,
    semantic: Option<Semantic>,
    model: Option<(f64, Model)>,
    analyzer: Analyzer,
}

/// The parts of the configuration that a query is read by.
#[derive(Debug, Clone, Copy)]
struct Reading {
    scorer: Scorer,
    /// `None` where a repeated word counts as often as it is there.
    k3: Option<f64>,
    spelling: f64,
    name_share: f64,
}

impl Reading {
    fn of(config: &RoutingConfig) -> Self {
        let fielded = is_fielded(config.scorer);
        Self {
            scorer: config.scorer,
            k3: fielded.then_some(config.k3),
            spelling: if config.scorer == Scorer::Bm25f { config.spelling } else { 0.0 },
            name_share: if fielded { config.name.share } else { 0.0 },
        }
    }

    /// The weight of a term that weighs `weight` each time and is there `count` times: c (k3 + 1) / (c + k3), the factor
    /// of a query's term frequency in BM25 (Robertson and Zaragoza 2009, §3.5; see [`Builder::field_norms`]).
    fn repeated(&self, weight: u32, count: u32) -> u32 {
        let count = f64::from(count);
        let times = self.k3.map_or(count, |k3| count * (k3 + 1.0) / (count + k3));
        (f64::from(weight) * times).round() as u32
    }
}

/// Whether a scorer is BM25F with all that belongs to it; the others are the plain formulas.
fn is_fielded(scorer: Scorer) -> bool {
    matches!(scorer, Scorer::Bm25f | Scorer::Fuzzy)
}

/// A query while it is read: the words so far.
#[derive(Debug, Default)]
struct Words {
    /// How often each of the query's terms is there.
    counts: Vec<u32>,
    /// Words, readings of unknown words and pairs that counted.
    read: usize,
    /// The known word before, when nothing but stop words is between.
    previous: Option<TermId>,
}

/// The semantic side of an index.
#[derive(Debug)]
struct Semantic {
    weight: f64,
    vectors: DocumentVectors,
}

impl Semantic {
    /// `None` where the configuration leaves it out: weight 0, a scorer that is there as a plain formula, or a
    /// navigation that follows words.
    fn of(catalog: &Catalog, config: &RoutingConfig) -> Option<Self> {
        let wanted = config.semantic > 0.0 && has_meaning(config);
        wanted.then(|| Self { weight: config.semantic, vectors: DocumentVectors::build(catalog, Table::builtin()) })
    }
}

/// Whether anything but words counts.
fn has_meaning(config: &RoutingConfig) -> bool {
    config.scorer == Scorer::Bm25f && config.navigation == Navigation::Flat
}

impl Index {
    /// Indexes every item of `catalog` under the scorer, fields and constants of `config`.
    #[must_use]
    pub fn build(catalog: &Catalog, config: &RoutingConfig) -> Self {
        let mut builder = Builder::new(config);
        for item in catalog.items() {
            builder.add(item);
        }
        builder.finish(catalog, config)
    }

    /// Puts a loaded index together again.
    ///
    /// # Errors
    /// What no index that was built can be: a number that points outside, lists out of order, an impact out of range.
    pub(super) fn from_parts(parts: Parts, catalog: &Catalog, config: &RoutingConfig) -> Result<Self, &'static str> {
        let Parts { items, terms, surfaces, pairs, offsets, postings, exact } = &parts;
        let check = |holds: bool, reason| if holds { Ok(()) } else { Err(reason) };
        let known = terms.len() as u64;
        let all = known + pairs.len() as u64;
        check(offsets.len() as u64 == all + 1, "there is not one list of postings for each term and pair")?;
        check(pairs.values().all(|&pair| (known..all).contains(&u64::from(pair))), "a pair is out of range")?;
        check(terms.values().all(|&term| u64::from(term) < known), "a term is out of range")?;
        let is_known = |&term: &TermId| term == STOP || u64::from(term) < known;
        check(surfaces.values().all(is_known), "a word stands for no term")?;
        check(offsets.first() == Some(&0) && offsets.is_sorted(), "the lists of postings overlap")?;
        check(
            offsets.last().map(|&end| end as usize) == Some(postings.len()),
            "the lists do not end with the postings",
        )?;
        check(postings.iter().all(|posting| posting.item < *items), "a posting is of no item")?;
        let in_range = |posting: &Posting| (1..=MAX_IMPACT).contains(&posting.impact);
        check(postings.iter().all(in_range), "an impact is out of range")?;
        check(exact.are_within(*items), "a name is of no item")?;
        let index = Self::assemble(parts, catalog, config);
        let ascends = |term| index.postings(term).is_sorted_by(|left, right| left.item < right.item);
        check((0..all as u32).all(ascends), "postings are out of order")?;
        Ok(index)
    }

    fn assemble(parts: Parts, catalog: &Catalog, config: &RoutingConfig) -> Self {
        let reading = Reading::of(config);
        let words = parts.surfaces.iter().filter(|(_, term)| **term != STOP && reading.spelling > 0.0);
        let spelling = Spelling::of(words.map(|(word, &term)| (&**word, term)));
        let semantic = Semantic::of(catalog, config);
        Self { parts, reading, spelling, semantic, model: None, analyzer: Analyzer::default() }
    }

    /// Lets `model`, which was built for the same catalog, have its say from now on.
    pub(super) fn set_model(&mut self, model: Model, config: &RoutingConfig) {
        let wanted = config.model.weight > 0.0 && has_meaning(config);
        self.model = wanted.then_some((config.model.weight, model));
    }

    /// The number of indexed items.
    #[must_use]
    pub fn items(&self) -> usize {
        self.parts.items as usize
    }

    /// The number of distinct terms, pairs not counted.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.parts.terms.len()
    }

    /// The number of postings.
    #[must_use]
    pub fn postings_total(&self) -> usize {
        self.parts.postings.len()
    }

    /// The items that a term or pair occurs in, ascending.
    #[must_use]
    pub fn postings(&self, term: TermId) -> &[Posting] {
        let at = term as usize;
        match (self.parts.offsets.get(at), self.parts.offsets.get(at + 1)) {
            (Some(&start), Some(&end)) => &self.parts.postings[start as usize..end as usize],
            _ => &[],
        }
    }

    /// Analyses a query.
    #[must_use]
    pub fn analyze(&self, text: &str) -> Query {
        let mut query = Query::default();
        self.analyze_into(text, &mut query, &mut Words::default());
        query
    }

    fn analyze_into(&self, text: &str, query: &mut Query, words: &mut Words) {
        let mut sequence = self.parts.exact.sequence();
        self.read(text, query, words, |word, _| sequence.push(word));
        self.parts.exact.find(&sequence, text, &mut query.exact);
        query.meaning = self.semantic.as_ref().map(|_| Table::builtin().encode_query(text));
        query.model = self.model.as_ref().map(|(_, model)| Box::new(model.encode(text)));
    }

    /// Reads the words of `text` into `query`. `each` is told of every word, stop words included, with how many terms
    /// the query had before it; what was added since is what the word, and the word before with it, stand for.
    fn read(&self, text: &str, query: &mut Query, words: &mut Words, mut each: impl FnMut(&str, &Query)) {
        query.terms.clear();
        query.exact.clear();
        query.unknown = 0;
        words.counts.clear();
        words.read = 0;
        words.previous = None;
        for_each_word(text, |word| {
            self.push_word(word, query, words);
            each(word, query);
        });
        for (term, &count) in query.terms.iter_mut().zip(&words.counts) {
            if count > 1 {
                term.weight = self.reading.repeated(term.weight, count);
            }
        }
    }

    /// Adds what one normalised word stands for, and the pair that it makes with the word before.
    fn push_word(&self, word: &str, query: &mut Query, words: &mut Words) {
        if words.read >= MAX_QUERY_TERMS {
            return;
        }
        match self.lookup(word) {
            Some(STOP) => {}
            Some(term) => {
                push_term(QueryTerm { term, weight: FULL_WEIGHT }, query, words);
                if let Some(previous) = words.previous.replace(term)
                    && words.read < MAX_QUERY_TERMS
                    && let Some(&pair) = self.parts.pairs.get(&(previous, term))
                {
                    push_term(QueryTerm { term: pair, weight: FULL_WEIGHT }, query, words);
                }
            }
            None => {
                words.read += 1;
                words.previous = None;
                query.unknown += 1;
                self.read_unknown(word, query, words);
            }
        }
    }

    /// Adds the terms that an unknown word may be a misspelling of.
    fn read_unknown(&self, word: &str, query: &mut Query, words: &mut Words) {
        let mut readings = Vec::new();
        if self.reading.scorer == Scorer::Fuzzy && query.unknown <= fuzzy::MOST_CORRECTED {
            fuzzy::expand(self, word, &mut readings);
        } else if self.reading.spelling > 0.0 && query.unknown <= MOST_CORRECTED {
            self.spelling.read(word, self.reading.spelling, &mut readings);
        }
        for reading in readings {
            push_term(reading, query, words);
        }
    }

    /// The term of a normalised word, [`STOP`], or `None` for a word that the catalog does not know.
    fn lookup(&self, word: &str) -> Option<TermId> {
        if let Some(&term) = self.parts.surfaces.get(word) {
            return Some(term);
        }
        if is_stop_word(word) {
            return Some(STOP);
        }
        self.parts.terms.get(&*self.analyzer.stem(word)).copied()
    }

    /// The best items for `text`: score descending, then item number ascending. Items that share no term with
    /// the query, are not named by it and are not near it in meaning are left out. `allow` is asked only about items
    /// that would enter the result.
    pub fn search(&self, text: &str, depth: Depth, allow: impl Fn(u32) -> bool, scratch: &mut Scratch) -> Vec<Hit> {
        let mut query = std::mem::take(&mut scratch.query);
        self.analyze_into(text, &mut query, &mut scratch.words);
        let (hits, _) = self.search_query(&query, depth, allow, scratch);
        scratch.query = query;
        hits
    }

    /// [`Self::search`] for a query that is already analysed, and how much the semantic side counts for it, which depends
    /// on neither `depth` nor `allow`.
    pub fn search_query(
        &self,
        query: &Query,
        depth: Depth,
        allow: impl Fn(u32) -> bool,
        scratch: &mut Scratch,
    ) -> (Vec<Hit>, Fusions) {
        self.accumulate(query, scratch);
        if let Some(sides) = self.sides(query) {
            let (hits, fusions) = rank(&scratch.scores, &sides, depth, &allow);
            let lifted = self.lift_exact(query, &scratch.scores, &fusions, &allow);
            scratch.scores.fill(0);
            return (merge_exact(hits, lifted, depth), fusions);
        }
        if let (Some(semantic), Some(meaning)) = (&self.semantic, &query.meaning) {
            let Semantic { weight, vectors } = semantic;
            let (hits, fusion) = Fusion::rank(*weight, &scratch.scores, vectors, meaning, depth, &allow);
            let fusions = Fusions { table: fusion, ..Fusions::default() };
            let lifted = self.lift_exact(query, &scratch.scores, &fusions, &allow);
            scratch.scores.fill(0);
            return (merge_exact(hits, lifted, depth), fusions);
        }
        let mut top = TopK::new(depth.k());
        top.scan(&scratch.scores, &allow);
        let lifted = self.lift_exact(query, &scratch.scores, &Fusions::default(), &allow);
        let mut hits = top.into_hits();
        if let (Depth::ThroughTies(k), Some(last)) = (depth, hits.last().copied())
            && hits.len() == k
        {
            let tied = scratch.scores.iter().enumerate().skip(last.item as usize + 1);
            let tied = tied.filter(|&(item, &score)| u64::from(score) == last.score && allow(item as u32));
            hits.extend(tied.map(|(item, &score)| Hit { item: item as u32, score: u64::from(score) }));
        }
        scratch.scores.fill(0);
        (merge_exact(hits, lifted, depth), Fusions::default())
    }

    /// `hits` of a navigation with the items that the query names exactly on top, cut to `k`.
    pub(super) fn with_exact(
        &self,
        query: &Query,
        hits: Vec<Hit>,
        k: usize,
        allow: impl Fn(u32) -> bool,
        scratch: &mut Scratch,
    ) -> Vec<Hit> {
        if query.exact.is_empty() {
            return hits;
        }
        self.accumulate(query, scratch);
        let lifted = self.lift_exact(query, &scratch.scores, &Fusions::default(), &allow);
        scratch.scores.fill(0);
        merge_exact(hits, lifted, Depth::Exactly(k))
    }

    /// The score of every item, by item number: the exhaustive control for navigation and for explanations.
    #[must_use]
    pub fn score_all(&self, query: &Query) -> Vec<u64> {
        let mut scratch = Scratch::default();
        self.accumulate(query, &mut scratch);
        let fusion = self.fusion_of(query, &scratch.scores);
        let best = scratch.scores.iter().copied().max().unwrap_or(0);
        let mut scores: Vec<u64> = scratch.scores.iter().copied().map(u64::from).collect();
        for (item, score) in scores.iter_mut().enumerate() {
            *score += self.meaning_parts(query, &fusion, item as u32);
        }
        if !query.exact.is_empty() {
            let bonus = exact_bonus(u64::from(best) + fusion.most());
            for &item in &query.exact {
                scores[item as usize] += bonus;
            }
        }
        scores
    }

    /// The score of one item as a search for `query` that gave `fusion` has it.
    pub(super) fn score(&self, query: &Query, fusion: &Fusions, item: u32, scratch: &mut Scratch) -> u64 {
        let words: u64 = query.terms.iter().map(|&term| self.contribution(term, item)).sum();
        let score = words + self.meaning_parts(query, fusion, item);
        if query.exact.binary_search(&item).is_err() {
            return score;
        }
        self.accumulate(query, scratch);
        let best = scratch.scores.iter().copied().max().unwrap_or(0);
        scratch.scores.fill(0);
        score + exact_bonus(u64::from(best) + fusion.most())
    }

    fn fusion_of(&self, query: &Query, scores: &[u32]) -> Fusions {
        if let Some(sides) = self.sides(query) {
            return sides.fusions(scores);
        }
        let (Some(semantic), Some(meaning)) = (&self.semantic, &query.meaning) else { return Fusions::default() };
        let (_, best) = semantic.vectors.nearest_and_best(meaning, 1, |_| true);
        let table = Fusion::new(semantic.weight, scores.iter().copied().max().unwrap_or(0), best);
        Fusions { table, ..Fusions::default() }
    }

    /// What a model compares, where the index has one.
    fn sides<'q>(&'q self, query: &'q Query) -> Option<Sides<'q>> {
        let (weight, model) = self.model.as_ref()?;
        let table = self.semantic.as_ref().zip(query.meaning.as_ref());
        Some(Sides {
            table: table.map(|(semantic, meaning)| (semantic.weight, &semantic.vectors, meaning)),
            model: (*weight, model, query.model.as_deref()?),
        })
    }

    /// What table and model add to the score of `item`.
    fn meaning_parts(&self, query: &Query, fusions: &Fusions, item: u32) -> u64 {
        self.semantic_part(query, fusions, item) + self.model_part(query, fusions, item)
    }

    /// What the meaning of `query` to the model adds to the score of `item`.
    pub(super) fn model_part(&self, query: &Query, fusions: &Fusions, item: u32) -> u64 {
        let (Some((_, model)), Some(meaning)) = (&self.model, &query.model) else { return 0 };
        fusions.model.part(model.similarity(item, meaning))
    }

    /// What the meaning of `query` adds to the score of `item`.
    pub(super) fn semantic_part(&self, query: &Query, fusion: &Fusions, item: u32) -> u64 {
        let (Some(semantic), Some(meaning)) = (&self.semantic, &query.meaning) else { return 0 };
        fusion.table.part(semantic.vectors.similarity(item, meaning))
    }

    /// What each word of `text` adds to the score of `item`, in query order, and each pair behind its second word; what
    /// adds nothing is left out. A word stands for its repeats and its other forms. The values, the
    /// semantic part and the bonus of an exact name are the whole score.
    #[must_use]
    pub fn explain(&self, text: &str, item: u32) -> Vec<(String, u64)> {
        self.explain_words(&self.words(text), item)
    }

    /// The words and pairs of `text` with the terms that they stand for, each term with the first that does: what
    /// [`Self::explain_words`] needs once for many items.
    pub(super) fn words(&self, text: &str) -> Vec<(String, Vec<QueryTerm>)> {
        let mut query = Query::default();
        // For each new term its place and what the text calls it.
        let mut called: Vec<(usize, String)> = Vec::new();
        let mut before = String::new();
        self.read(text, &mut query, &mut Words::default(), |word, query| {
            for (at, term) in query.terms.iter().enumerate().skip(called.len()) {
                let is_pair = term.term as usize >= self.parts.terms.len();
                called.push((at, if is_pair { format!("{before} {word}") } else { word.to_owned() }));
            }
            if self.lookup(word) != Some(STOP) {
                before.clear();
                before.push_str(word);
            }
        });
        let mut words: Vec<(String, Vec<QueryTerm>)> = Vec::new();
        for (at, name) in called {
            match words.last_mut() {
                Some((last, terms)) if *last == name => terms.push(query.terms[at]),
                _ => words.push((name, vec![query.terms[at]])),
            }
        }
        words
    }

    /// [`Self::explain`] for words that are already looked up.
    pub(super) fn explain_words(&self, words: &[(String, Vec<QueryTerm>)], item: u32) -> Vec<(String, u64)> {
        let value = |terms: &[QueryTerm]| terms.iter().map(|&term| self.contribution(term, item)).sum::<u64>();
        let values = words.iter().map(|(word, terms)| (word, value(terms)));
        values.filter(|(_, value)| *value > 0).map(|(word, value)| (word.clone(), value)).collect()
    }

    /// What one query term adds to one item.
    fn contribution(&self, QueryTerm { term, weight }: QueryTerm, item: u32) -> u64 {
        let postings = self.postings(term);
        let at = postings.binary_search_by_key(&item, |posting| posting.item);
        at.map_or(0, |at| u64::from(weighted(postings[at].impact, weight)))
    }

    /// How many postings a search for `query` reads.
    #[must_use]
    pub fn postings_read(&self, query: &Query) -> usize {
        query.terms.iter().map(|term| self.postings(term.term).len()).sum()
    }

    fn accumulate(&self, query: &Query, scratch: &mut Scratch) {
        scratch.scores.resize(self.parts.items as usize, 0);
        let scores = &mut scratch.scores[..];
        for &QueryTerm { term, weight } in &query.terms {
            if weight == FULL_WEIGHT {
                for posting in self.postings(term) {
                    if let Some(score) = scores.get_mut(posting.item as usize) {
                        *score += posting.impact;
                    }
                }
            } else {
                for posting in self.postings(term) {
                    if let Some(score) = scores.get_mut(posting.item as usize) {
                        *score += weighted(posting.impact, weight);
                    }
                }
            }
        }
    }

    /// The items that the query names exactly, above everything else.
    fn lift_exact(&self, query: &Query, scores: &[u32], fusion: &Fusions, allow: &impl Fn(u32) -> bool) -> Vec<Hit> {
        if query.exact.is_empty() {
            return Vec::new();
        }
        // The best score is taken over all items, not only the allowed ones, so that a filter changes no score.
        let best = scores.iter().copied().max().unwrap_or(0);
        let bonus = exact_bonus(u64::from(best) + fusion.most());
        let score = |item: u32| u64::from(scores[item as usize]) + self.meaning_parts(query, fusion, item) + bonus;
        let allowed = query.exact.iter().filter(|&&item| allow(item));
        let mut lifted: Vec<Hit> = allowed.map(|&item| Hit { item, score: score(item) }).collect();
        lifted.sort_unstable_by_key(Hit::order);
        lifted
    }

    /// The score of an item that would answer `query` in full, in units of 2⁻¹⁸: the idf of its words, unknown ones
    /// counted as the rarest possible, and the whole share of a name. It is a yardstick that makes the scores of queries
    /// comparable and not quite a bound: a word in every field comes close to its idf, and pairs, which hardly any item
    /// has, come on top. The plain scorers have no share of a name; that of [`Scorer::TfIdf`] has another scale.
    #[must_use]
    pub fn ideal(&self, query: &Query) -> f64 {
        let total = self.rarities(query);
        if total > 0.0 { (total + self.reading.name_share) * SCORE_UNITS as f64 } else { 0.0 }
    }

    /// The share of the query that `score` accounts for, in [0, 1]: the score over [`Self::ideal`] and what the semantic
    /// side can add to it, cut at 1. It is one half of confidence: an unanswerable query has words that no tool carries.
    #[must_use]
    pub fn coverage(&self, query: &Query, score: u64) -> f64 {
        // Each semantic side can add its weight to the best of the words.
        let table = query.meaning.and(self.semantic.as_ref()).map_or(0.0, |semantic| semantic.weight);
        let model = query.model.as_ref().and(self.model.as_ref()).map_or(0.0, |(weight, _)| *weight);
        let fused = 1.0 + table + model;
        let ideal = self.ideal(query) * fused;
        if ideal > 0.0 { (score as f64 / ideal).min(1.0) } else { 0.0 }
    }
}

impl Index {
    /// The idf of all words of a query together at their weights, unknown ones counted as the rarest possible.
    pub(super) fn rarities(&self, query: &Query) -> f64 {
        let words = query.terms.iter().filter(|term| (term.term as usize) < self.parts.terms.len());
        let known: f64 = words
            .map(|&QueryTerm { term, weight }| {
                idf(self.parts.items as usize, self.postings(term).len()) * f64::from(weight) / f64::from(FULL_WEIGHT)
            })
            .sum();
        known + self.rarity_of_unknown() * query.unknown as f64
    }

    /// The idf of a word that no item has: the rarest possible.
    pub(super) fn rarity_of_unknown(&self) -> f64 {
        idf(self.parts.items as usize, 0)
    }

    /// The idf of one stem; that of a word in no item for one that the catalog does not know.
    pub(super) fn rarity(&self, stem: &str) -> f64 {
        idf(self.parts.items as usize, self.parts.terms.get(stem).map_or(0, |term| self.postings(*term).len()))
    }
}

/// Adds a term to a query, or counts it once more.
fn push_term(new: QueryTerm, query: &mut Query, words: &mut Words) {
    words.read += 1;
    match query.terms.iter().position(|known| known.term == new.term) {
        Some(at) => {
            query.terms[at].weight = query.terms[at].weight.max(new.weight);
            words.counts[at] += 1;
        }
        None => {
            query.terms.push(new);
            words.counts.push(1);
        }
    }
}

/// An impact at a weight, rounded down.
pub(super) fn weighted(impact: u32, weight: u32) -> u32 {
    // No word weighs more than it is often: the quotient is at most MAX_IMPACT · MAX_QUERY_TERMS, within 32 bits.
    (u64::from(impact) * u64::from(weight) / u64::from(FULL_WEIGHT)) as u32
}

/// What an exact name adds: enough to stand above the best score without it.
pub(super) fn exact_bonus(best: u64) -> u64 {
    best + SCORE_UNITS
}

fn merge_exact(hits: Vec<Hit>, mut lifted: Vec<Hit>, depth: Depth) -> Vec<Hit> {
    if lifted.is_empty() {
        return hits;
    }
    let named: Vec<u32> = lifted.iter().map(|hit| hit.item).collect();
    let rest = hits.into_iter().filter(|hit| !named.contains(&hit.item));
    lifted.extend(rest);
    match depth {
        Depth::Exactly(k) => lifted.truncate(k),
        Depth::ThroughTies(0) => lifted.clear(),
        Depth::ThroughTies(k) if lifted.len() > k => {
            let last = lifted[k - 1].score;
            let end = lifted.iter().skip(k).take_while(|hit| hit.score == last).count();
            lifted.truncate(k + end);
        }
        Depth::ThroughTies(_) => {}
    }
    lifted
}

/// Inverse document frequency ln(1 + (N − n + ½) / (n + ½)): Robertson and Spärck Jones' weight as Lucene keeps it
/// positive.
fn idf(items: usize, items_with: usize) -> f64 {
    let (items, with) = (items as f64, items_with as f64);
    libm::log(1.0 + (items - with + 0.5) / (with + 0.5))
}

/// One term in one item: how often it occurs in each field.
struct Occurrence {
    term: TermId,
    item: u32,
    counts: [u16; FIELDS],
}

struct Builder {
    analyzer: Analyzer,
    weights: [super::Field; FIELDS],
    /// Whether neighbouring words of names are indexed.
    with_pairs: bool,
    terms: FxHashMap<Box<str>, TermId>,
    surfaces: FxHashMap<Box<str>, TermId>,
    /// For each term, its latest entry in `occurrences`.
    latest: Vec<u32>,
    occurrences: Vec<Occurrence>,
    /// Every pair that occurs in a name, with its item, as the names have them.
    pairs: Vec<((TermId, TermId), u32)>,
    /// Words per item and field, stop words not counted.
    lengths: Vec<[u32; FIELDS]>,
}

impl Builder {
    fn new(config: &RoutingConfig) -> Self {
        let fields = &config.fields;
        Self {
            analyzer: Analyzer::default(),
            weights: [fields.name, fields.description, fields.parameters, fields.tags, fields.server],
            with_pairs: is_fielded(config.scorer) && config.name.pairs > 0.0 && fields.name.weight > 0.0,
            terms: FxHashMap::default(),
            surfaces: FxHashMap::default(),
            latest: Vec::new(),
            occurrences: Vec::new(),
            pairs: Vec::new(),
            lengths: Vec::new(),
        }
    }

    fn add(&mut self, item: &SelectableItem) {
        self.lengths.push([0; FIELDS]);
        self.name(&item.name);
        self.field(1, &item.description);
        item.for_each_parameter(|name, description| {
            self.field(2, name);
            self.field(2, description);
        });
        for tag in &item.tags {
            self.field(3, tag);
        }
        self.field(4, item.server.as_deref().unwrap_or(&item.namespace));
        self.field(4, item.server_description.as_deref().unwrap_or(""));
    }

    fn name(&mut self, text: &str) {
        let item = self.lengths.len() as u32 - 1;
        let mut previous = None;
        self.each_term(NAME, text, |builder, term| {
            if let Some(previous) = previous.replace(term).filter(|_| builder.with_pairs) {
                builder.pairs.push(((previous, term), item));
            }
        });
    }

    fn field(&mut self, field: usize, text: &str) {
        self.each_term(field, text, |_, _| ());
    }

    /// Counts the terms of a text in a field and hands each on.
    fn each_term(&mut self, field: usize, text: &str, mut each: impl FnMut(&mut Self, TermId)) {
        if self.weights[field].weight <= 0.0 || text.is_empty() {
            return;
        }
        for_each_word(text, |word| {
            let term = self.term(word);
            if term != STOP {
                self.count(term, field);
                each(self, term);
            }
        });
    }

    fn term(&mut self, word: &str) -> TermId {
        if let Some(&term) = self.surfaces.get(word) {
            return term;
        }
        let term = if is_stop_word(word) {
            STOP
        } else {
            let stem = self.analyzer.stem(word);
            match self.terms.get(&*stem) {
                Some(&term) => term,
                None => {
                    let term = self.latest.len() as TermId;
                    self.terms.insert(Box::from(&*stem), term);
                    self.latest.push(u32::MAX);
                    term
                }
            }
        };
        self.surfaces.insert(Box::from(word), term);
        term
    }

    fn count(&mut self, term: TermId, field: usize) {
        let item = self.lengths.len() - 1;
        self.lengths[item][field] += 1;
        let latest = self.latest[term as usize] as usize;
        match self.occurrences.get_mut(latest) {
            Some(occurrence) if occurrence.item as usize == item => {
                occurrence.counts[field] = occurrence.counts[field].saturating_add(1);
            }
            _ => {
                let mut counts = [0; FIELDS];
                counts[field] = 1;
                self.latest[term as usize] = self.occurrences.len() as u32;
                self.occurrences.push(Occurrence { term, item: item as u32, counts });
            }
        }
    }

    fn finish(mut self, catalog: &Catalog, config: &RoutingConfig) -> Index {
        let mut frequencies = vec![0usize; self.latest.len()];
        for occurrence in &self.occurrences {
            frequencies[occurrence.term as usize] += 1;
        }
        let norms = self.field_norms();
        let impacts = self.impacts(config, &frequencies, &norms);
        let words = self.occurrences.iter().zip(impacts).map(|(one, impact)| (one.term, one.item, impact));
        let mut entries: Vec<(TermId, u32, f64)> = words.collect();
        let pairs = self.add_pairs(config, &norms, &mut entries);
        let mut offsets = vec![0u32; self.latest.len() + pairs.len() + 1];
        for (term, ..) in &entries {
            offsets[*term as usize + 1] += 1;
        }
        for at in 1..offsets.len() {
            offsets[at] += offsets[at - 1];
        }
        let mut next = offsets.clone();
        let mut postings = vec![Posting { item: 0, impact: 0 }; entries.len()];
        for (term, item, impact) in entries {
            let at = &mut next[term as usize];
            let impact = ((impact * SCORE_UNITS as f64).round() as u32).clamp(1, MAX_IMPACT);
            postings[*at as usize] = Posting { item, impact };
            *at += 1;
        }
        let parts = Parts {
            items: catalog.len() as u32,
            terms: self.terms,
            surfaces: self.surfaces,
            pairs,
            offsets,
            postings,
            exact: ExactNames::of(catalog),
        };
        Index::assemble(parts, catalog, config)
    }

    /// Numbers the pairs behind the words and adds their entries: BM25 over the name alone, with the norm of the field,
    /// by the weight of pairs. Sequential dependence, as Metzler and Croft ("A Markov Random Field Model for Term
    /// Dependencies", SIGIR 2005) have it for ordered windows of two, kept to the field where order means most.
    fn add_pairs(
        &mut self,
        config: &RoutingConfig,
        norms: &[[f64; FIELDS]],
        entries: &mut Vec<(TermId, u32, f64)>,
    ) -> FxHashMap<(TermId, TermId), TermId> {
        self.pairs.sort_unstable();
        let mut numbers = FxHashMap::default();
        for same in self.pairs.chunk_by(|left, right| left.0 == right.0) {
            let number = (self.latest.len() + numbers.len()) as TermId;
            numbers.insert(same[0].0, number);
            let in_items = || same.chunk_by(|left, right| left.1 == right.1);
            let idf = idf(self.lengths.len(), in_items().count());
            entries.extend(in_items().map(|times| {
                let item = times[0].1;
                let tf = times.len() as f64 * norms[item as usize][NAME];
                (number, item, config.name.pairs * idf * tf / (tf + config.k1))
            }));
        }
        numbers
    }

    /// The impact of every occurrence, by the formula of the scorer.
    fn impacts(&self, config: &RoutingConfig, frequencies: &[usize], norms: &[[f64; FIELDS]]) -> Vec<f64> {
        let items = self.lengths.len();
        match config.scorer {
            Scorer::TfIdf => self.tf_idf(frequencies),
            Scorer::Bm25 => {
                let lengths: Vec<f64> = self.lengths.iter().map(|l| f64::from(l.iter().sum::<u32>())).collect();
                let mean = lengths.iter().sum::<f64>() / items as f64;
                let idf = idf_table(items, frequencies);
                let norm = |item: u32| 1.0 - config.b + config.b * lengths[item as usize] / mean.max(1.0);
                self.per_occurrence(|occurrence| {
                    let tf = f64::from(occurrence.counts.iter().map(|&count| u32::from(count)).sum::<u32>());
                    idf[occurrence.term as usize] * tf / (tf + config.k1 * norm(occurrence.item))
                })
            }
            Scorer::Bm25f | Scorer::Fuzzy => {
                let idf = idf_table(items, frequencies);
                let names = self.name_information(&idf);
                let NameMatch { share, prior, .. } = config.name;
                self.per_occurrence(|occurrence| {
                    let (item, idf) = (occurrence.item as usize, idf[occurrence.term as usize]);
                    let norm = &norms[item];
                    let tf: f64 = (0..FIELDS).map(|field| f64::from(occurrence.counts[field]) * norm[field]).sum();
                    let of_name = if occurrence.counts[NAME] > 0 { share * idf / (prior + names[item]) } else { 0.0 };
                    idf * tf / (tf + config.k1) + of_name
                })
            }
        }
    }

    /// For every item the idf of the distinct words of its name, added up. A word's share in it is what the word adds
    /// for being of the name: containment of the name in the query (Broder, "On the Resemblance and Containment of
    /// Documents", 1997) with words weighted by idf.
    fn name_information(&self, idf: &[f64]) -> Vec<f64> {
        let mut information = vec![0.0; self.lengths.len()];
        for occurrence in self.occurrences.iter().filter(|occurrence| occurrence.counts[NAME] > 0) {
            information[occurrence.item as usize] += idf[occurrence.term as usize];
        }
        information
    }

    fn per_occurrence(&self, impact: impl Fn(&Occurrence) -> f64) -> Vec<f64> {
        self.occurrences.iter().map(impact).collect()
    }

    /// For every item and field: weight / (1 − b + b · length / mean length), the factor of a term frequency in
    /// BM25F (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, §3.6). The
    /// mean is over the items that have the field at all, since most catalogs leave some fields empty.
    fn field_norms(&self) -> Vec<[f64; FIELDS]> {
        let mut means = [1.0; FIELDS];
        for (field, mean) in means.iter_mut().enumerate() {
            let filled = self.lengths.iter().filter(|lengths| lengths[field] > 0).count();
            let total: u64 = self.lengths.iter().map(|lengths| u64::from(lengths[field])).sum();
            *mean = total as f64 / filled.max(1) as f64;
        }
        let norm = |field: usize, length: u32| {
            let super::Field { weight, b } = self.weights[field];
            weight / (1.0 - b + b * f64::from(length) / means[field].max(1.0)).max(f64::MIN_POSITIVE)
        };
        self.lengths.iter().map(|lengths| std::array::from_fn(|field| norm(field, lengths[field]))).collect()
    }

    /// Cosine TF-IDF, `ltc.ltn` in SMART notation (Manning, Raghavan and Schütze, "Introduction to Information
    /// Retrieval", 2008, §6.4) with the smoothed idf ln((1 + N) / (1 + n)) + 1.
    fn tf_idf(&self, frequencies: &[usize]) -> Vec<f64> {
        let items = self.lengths.len() as f64;
        let idf: Vec<f64> =
            frequencies.iter().map(|&with| libm::log((1.0 + items) / (1.0 + with as f64)) + 1.0).collect();
        let weights = self.per_occurrence(|occurrence| {
            let tf = f64::from(occurrence.counts.iter().map(|&count| u32::from(count)).sum::<u32>());
            (1.0 + libm::log(tf)) * idf[occurrence.term as usize]
        });
        let mut squares = vec![0.0; self.lengths.len()];
        for (occurrence, weight) in self.occurrences.iter().zip(&weights) {
            squares[occurrence.item as usize] += weight * weight;
        }
        let impact = |(occurrence, weight): (&Occurrence, f64)| {
            weight / squares[occurrence.item as usize].sqrt() * idf[occurrence.term as usize]
        };
        self.occurrences.iter().zip(weights).map(impact).collect()
    }
}

fn idf_table(items: usize, frequencies: &[usize]) -> Vec<f64> {
    frequencies.iter().map(|&with| idf(items, with)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::config::{Field, FieldWeights, NameMatch};
    use super::*;

    fn catalog(tools: &[(&str, &str)]) -> Catalog {
        let item = |(number, (name, description)): (usize, &(&str, &str))| {
            SelectableItem::tool(&format!("t:{name}#{number:08x}"), "t", name, description)
        };
        Catalog::new(tools.iter().enumerate().map(item).collect()).unwrap()
    }

    fn flat(k1: f64, b: f64) -> RoutingConfig {
        let off = Field { weight: 0.0, b: 0.0 };
        let on = Field { weight: 1.0, b };
        let fields = FieldWeights { name: on, description: on, parameters: off, tags: off, server: off };
        RoutingConfig { scorer: Scorer::Bm25, k1, b, fields, ..RoutingConfig::default() }
    }

    fn ranked(index: &Index, query: &str) -> Vec<(u32, f64)> {
        let hits = index.search(query, Depth::Exactly(10), |_| true, &mut Scratch::default());
        hits.iter().map(|hit| (hit.item, (hit.score() * 1e4).round() / 1e4)).collect()
    }

    #[test]
    fn bm25_is_the_formula_worked_by_hand() {
        // Three items of lengths 2, 3, 3 (name and description words), mean 8/3. "mail" is in items 0 and 2.
        let catalog = catalog(&[("send_mail", "letter"), ("read_book", "page"), ("mail", "mail")]);
        let names: Vec<&str> = catalog.items().iter().map(|item| item.name.as_str()).collect();
        assert_eq!(names, ["mail", "read_book", "send_mail"]);
        let index = Index::build(&catalog, &flat(1.2, 0.75));
        let idf = (1.0_f64 + 1.5 / 2.5).ln();
        let score = |tf: f64, length: f64| idf * tf / (tf + 1.2 * (0.25 + 0.75 * length / (8.0 / 3.0)));
        let round = |score: f64| (score * 1e4).round() / 1e4;
        assert_eq!(ranked(&index, "mail thing"), [(0, round(score(2.0, 2.0))), (2, round(score(1.0, 3.0)))]);
    }

    #[test]
    fn bm25f_with_its_name_is_the_formula_worked_by_hand() {
        // Names of 2, 2 and 1 words, mean 5/3; descriptions of one word. "mail" is in items 0 and 2, "send" in item 2,
        // "mail list" in item 0 alone.
        let catalog = catalog(&[("mail_list", "letter"), ("read_book", "page"), ("send", "mail")]);
        let off = Field { weight: 0.0, b: 0.0 };
        let fields = FieldWeights {
            name: Field { weight: 2.0, b: 0.5 },
            description: Field { weight: 1.0, b: 0.75 },
            parameters: off,
            tags: off,
            server: off,
        };
        let name = NameMatch { share: 3.0, prior: 1.0, pairs: 0.5 };
        let index = Index::build(
            &catalog,
            &RoutingConfig { k1: 1.2, k3: 1.0, fields, name, semantic: 0.0, ..RoutingConfig::default() },
        );
        let idf = |with: f64| (1.0 + (3.0 - with + 0.5) / (with + 0.5)).ln();
        let (mail, rare) = (idf(2.0), idf(1.0));
        let tf = 2.0 / (0.5 + 0.5 * 2.0 / (5.0 / 3.0));
        let first = mail * tf / (tf + 1.2) + 3.0 * mail / (1.0 + mail + rare);
        let third = mail / (1.0 + 1.2);
        let list = rare * tf / (tf + 1.2) + 3.0 * rare / (1.0 + mail + rare);
        let pair = 0.5 * rare * tf / (tf + 1.2);
        let round = |score: f64| (score * 1e4).round() / 1e4;
        assert_eq!(ranked(&index, "mail thing"), [(0, round(first)), (2, round(third))]);
        // Twice is 2 · 2 / 3 times where k3 is 1, in whole parts of a weight.
        let twice = (4.0 / 3.0 * 256.0_f64).round() / 256.0;
        assert_eq!(ranked(&index, "mail thing mail"), [(0, round(first * twice)), (2, round(third * twice))]);
        assert_eq!(ranked(&index, "mail, the list please")[0], (0, round(first + list + pair)));
        assert_eq!(ranked(&index, "list mail now")[0], (0, round(first + list)));
    }

    #[test]
    fn a_repeated_query_word_counts_twice_in_the_plain_formula() {
        let index = Index::build(&catalog(&[("alpha", "x"), ("beta", "y")]), &flat(1.2, 0.75));
        let once = index.score_all(&index.analyze("the alpha thing"));
        let twice = index.score_all(&index.analyze("the alpha thing alpha"));
        assert_eq!(twice, once.iter().map(|score| score * 2).collect::<Vec<_>>());
    }

    #[test]
    fn an_exact_name_is_first_however_common_its_words_are() {
        let tools: Vec<(String, String)> = (0..50)
            .map(|number| (format!("issue_list_{number}"), "list issue list issue list issue".to_owned()))
            .chain([("list_issues".to_owned(), "a very long text about something else entirely ".repeat(20))])
            .collect();
        let tools: Vec<(&str, &str)> = tools.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let catalog = catalog(&tools);
        let wanted = catalog.items().iter().position(|item| item.name == "list_issues").unwrap() as u32;
        for scorer in [Scorer::TfIdf, Scorer::Bm25, Scorer::Bm25f, Scorer::Fuzzy] {
            let index = Index::build(&catalog, &RoutingConfig { scorer, ..RoutingConfig::default() });
            for query in ["list_issues", "listIssues", "run list_issues on the list of issues"] {
                let hits = index.search(query, Depth::Exactly(1), |_| true, &mut Scratch::default());
                assert_eq!(hits[0].item, wanted, "{scorer:?} {query}");
            }
        }
    }

    #[test]
    fn fuzzy_reads_a_typo_as_the_closest_word() {
        let catalog = catalog(&[("weather", "forecast"), ("whether", "or not")]);
        let config = |scorer| RoutingConfig { scorer, spelling: 0.0, semantic: 0.0, ..RoutingConfig::default() };
        assert_eq!(ranked(&Index::build(&catalog, &config(Scorer::Bm25f)), "wether forcast"), []);
        let words = RoutingConfig { semantic: 0.0, ..RoutingConfig::default() };
        let spelling = Index::build(&catalog, &words);
        assert_eq!(ranked(&spelling, "the forcast").iter().map(|(item, _)| *item).collect::<Vec<_>>(), [0]);
        assert_eq!(spelling.analyze("forcast").unknown, 1);
        let fuzzy = ranked(&Index::build(&catalog, &config(Scorer::Fuzzy)), "the forcast");
        assert_eq!(fuzzy.iter().map(|(item, _)| *item).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn fuzzy_counts_a_term_once_and_corrects_a_bounded_number_of_words() {
        // Both forms of "page" are one edit from "pagex", and "paged" of its own stem stands between them.
        let catalog = catalog(&[("page", "pages"), ("paget", "x")]);
        let index = Index::build(&catalog, &RoutingConfig { scorer: Scorer::Fuzzy, ..RoutingConfig::default() });
        let mut terms: Vec<TermId> = index.analyze("pagex").terms.iter().map(|term| term.term).collect();
        assert_eq!(terms.len(), 2, "page, pages and paget are two terms");
        terms.dedup();
        assert_eq!(terms.len(), 2);
        let many = index.analyze(&"pagex ".repeat(2 * MAX_QUERY_TERMS));
        assert_eq!(many.terms.len(), 2);
        assert_eq!(many.unknown, MAX_QUERY_TERMS - 2 * fuzzy::MOST_CORRECTED);
    }

    #[test]
    fn no_query_is_worth_more_than_its_words_allow() {
        let index = Index::build(&catalog(&[("page_list", "pages"), ("page", "x")]), &flat(1.2, 0.75));
        let query = index.analyze(&"page list ".repeat(MAX_QUERY_TERMS));
        assert_eq!(query.terms.iter().map(|term| term.weight).sum::<u32>(), FULL_WEIGHT * MAX_QUERY_TERMS as u32);
        let fielded = Index::build(&catalog(&[("page_list", "pages"), ("page", "x")]), &RoutingConfig::default());
        let query = fielded.analyze(&"page list pagf ".repeat(MAX_QUERY_TERMS));
        assert!(query.terms.iter().map(|term| term.weight).sum::<u32>() < FULL_WEIGHT * MAX_QUERY_TERMS as u32);
    }

    #[test]
    fn an_explanation_names_words_and_pairs() {
        let words = RoutingConfig { semantic: 0.0, ..RoutingConfig::default() };
        let index = Index::build(&catalog(&[("mail_list", "letters"), ("send_mail", "x")]), &words);
        let text = "a mail list of lists, leters";
        let parts = index.explain(text, 0);
        let named: Vec<&str> = parts.iter().map(|(word, _)| word.as_str()).collect();
        assert_eq!(named, ["mail", "list", "mail list", "leters"]);
        assert_eq!(parts.iter().map(|(_, value)| value).sum::<u64>(), index.score_all(&index.analyze(text))[0]);
    }

    #[test]
    fn a_full_answer_is_worth_about_the_ideal() {
        let tools = [("send_mail", "send mail letter"), ("read_book", "page"), ("mail_list", "letters")];
        let index = Index::build(&catalog(&tools), &RoutingConfig::default());
        let coverage = |text: &str| {
            let query = index.analyze(text);
            index.coverage(&query, index.score_all(&query)[2])
        };
        assert!(coverage("please send the mail") > 0.5);
        assert!(coverage("please send the mail to zebra crossings") < coverage("please send the mail"));
        assert_eq!(coverage("send_mail"), 1.0);
        assert_eq!(index.ideal(&index.analyze("")), 0.0);
    }

    #[test]
    fn the_score_of_one_item_is_that_of_the_search() {
        let tools = [("send_mail", "letter"), ("mail_list", "list of mail"), ("x", "send a letter to a mail list")];
        let index = Index::build(&catalog(&tools), &RoutingConfig::default());
        for text in ["mail list", "mail_list", "please send_mail now", "zebra"] {
            let query = index.analyze(text);
            let mut scratch = Scratch::default();
            let (_, fusion) = index.search_query(&query, Depth::Exactly(1), |_| true, &mut scratch);
            let single: Vec<u64> = (0..3).map(|item| index.score(&query, &fusion, item, &mut scratch)).collect();
            assert_eq!(single, index.score_all(&query), "{text}");
        }
    }

    #[test]
    fn coverage_is_one_at_most_and_falls_with_unknown_words() {
        let index = Index::build(&catalog(&[("send_mail", "letter"), ("read_book", "page")]), &flat(1.2, 0.75));
        let coverage = |text: &str| {
            let query = index.analyze(text);
            index.coverage(&query, index.score_all(&query).into_iter().max().unwrap_or(0))
        };
        assert!(coverage("send mail letter zebra") < coverage("send mail letter"));
        assert_eq!(coverage("zebra"), 0.0);
        assert_eq!(coverage(""), 0.0);
        assert!(coverage("read_book") <= 1.0);
    }

    const WORDS: [&str; 12] =
        ["mail", "send", "list", "issue", "issues", "create", "page", "wiki", "branch", "the", "mails", "file"];

    fn sentence(length: usize) -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(&WORDS[..]), 0..length).prop_map(|words| words.join(" "))
    }

    fn tools() -> impl Strategy<Value = Vec<(String, String)>> {
        let name = prop::collection::vec(prop::sample::select(&WORDS[..]), 1..3).prop_map(|words| words.join("_"));
        prop::collection::vec((name, sentence(8)), 1..150)
    }

    fn scorer() -> impl Strategy<Value = Scorer> {
        prop::sample::select(&[Scorer::TfIdf, Scorer::Bm25, Scorer::Bm25f, Scorer::Fuzzy][..])
    }

    proptest! {
        #[test]
        fn the_top_k_equals_a_plain_sort(
            tools in tools(), query in sentence(8), k in 0usize..20, modulus in 1u32..4, scorer in scorer(),
        ) {
            let tools: Vec<(&str, &str)> = tools.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            // The semantic side compares what both sides propose, not everything.
            let config = RoutingConfig { scorer, semantic: 0.0, ..RoutingConfig::default() };
            let index = Index::build(&catalog(&tools), &config);
            let analyzed = index.analyze(&query);
            let allow = |item: u32| item.is_multiple_of(modulus);
            let scored = index.score_all(&analyzed).into_iter().enumerate();
            let mut plain: Vec<Hit> = scored
                .map(|(item, score)| Hit { item: item as u32, score })
                .filter(|hit| hit.score > 0 && allow(hit.item))
                .collect();
            plain.sort_by_key(Hit::order);
            let mut scratch = Scratch::default();
            // Twice with one scratch: a search must leave nothing behind.
            for _ in 0..2 {
                let exactly = index.search(&query, Depth::Exactly(k), allow, &mut scratch);
                prop_assert_eq!(&exactly[..], &plain[..k.min(plain.len())]);
                let last = plain.get(k.wrapping_sub(1)).map(|hit| hit.score);
                let tied = plain.iter().take_while(|hit| last.is_none_or(|last| hit.score >= last)).count();
                let through = index.search(&query, Depth::ThroughTies(k), allow, &mut scratch);
                prop_assert_eq!(&through[..], &plain[..if k == 0 { 0 } else { tied }]);
            }
        }

        #[test]
        fn the_parts_of_every_item_add_up_to_its_score(tools in tools(), query in sentence(12), scorer in scorer()) {
            let tools: Vec<(&str, &str)> = tools.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            let index = Index::build(&catalog(&tools), &RoutingConfig { scorer, ..RoutingConfig::default() });
            // One word that only spelling knows, and a name in no other order than its own.
            let query = format!("{query} brunch {}", tools[0].0.replace('_', " and the "));
            let analyzed = Query { exact: Vec::new(), ..index.analyze(&query) };
            let (_, fusion) = index.search_query(&analyzed, Depth::Exactly(1), |_| true, &mut Scratch::default());
            for (item, score) in index.score_all(&analyzed).into_iter().enumerate() {
                let parts = index.explain(&query, item as u32);
                let words = parts.iter().map(|(_, value)| value).sum::<u64>();
                prop_assert_eq!(words + index.semantic_part(&analyzed, &fusion, item as u32), score);
            }
        }

        #[test]
        fn no_query_panics(text in any::<String>()) {
            let tools = [("send_mail", "letter"), ("Ünïcode 查询", "天气")];
            let index = Index::build(&catalog(&tools), &RoutingConfig::default());
            index.search(&text, Depth::ThroughTies(3), |_| true, &mut Scratch::default());
        }
    }
}
