//! The inverted index: query text in, item numbers and scores out.
//!
//! Everything that depends on the catalog alone is computed when the index is built. A posting holds the whole
//! contribution of one term to one item (its *impact*), so that a search is one addition per posting, whatever the
//! scorer. Impacts are integers: sums do not depend on the order of addition, equal scores are really equal, and
//! the parts of an explanation add up to the score without a rest.
//!
//! Searching is exhaustive. Queries for tools carry a dozen terms over short texts, and at that shape dynamic
//! pruning (MaxScore, block-max) costs more than the additions it saves.

use rustc_hash::FxHashMap;

use super::config::{RoutingConfig, Scorer};
use super::exact::ExactNames;
use super::fuzzy;
use super::hit::{Hit, SCORE_UNITS, TopK};
use crate::catalog::{Catalog, SelectableItem};
use crate::text::{Analyzer, for_each_word, is_stop_word};

/// The number of a term in an [`Index`].
pub type TermId = u32;

/// A query has at most this many words that count, unknown ones included; further ones are ignored. Together with
/// `MAX_IMPACT` it keeps every score within 32 bits.
pub const MAX_QUERY_TERMS: usize = 1000;

/// The largest impact of one posting (16.0 in fixed point): idf stays below ln(2 · 10⁶) ≈ 14.5 up to a million items.
const MAX_IMPACT: u32 = 1 << 22;

/// A term weighted in full; fuzzy matches have less.
pub const FULL_WEIGHT: u32 = 256;

/// Marks a surface form that is a stop word.
const STOP: TermId = TermId::MAX;

/// The searchable fields, in the order of [`super::FieldWeights`].
const FIELDS: usize = 5;

/// One item that a term occurs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Posting {
    /// The item's position in [`Catalog::items`].
    pub item: u32,
    /// What one occurrence of the term in the query adds to the item's score, in units of 2⁻¹⁸.
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
    /// The known terms, repeats kept.
    pub terms: Vec<QueryTerm>,
    /// How many words that are not stop words the catalog does not know.
    pub unknown: usize,
    /// The items whose name the query gives exactly, ascending.
    pub exact: Vec<u32>,
}

/// Reusable memory of searches, so that a search allocates only its result. One per thread.
#[derive(Debug, Default)]
pub struct Scratch {
    scores: Vec<u32>,
    query: Query,
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
}

/// An immutable index over one catalog under one configuration. Shared freely between threads.
#[derive(Debug)]
pub struct Index {
    pub(super) items: u32,
    /// Term to number.
    pub(super) terms: FxHashMap<Box<str>, TermId>,
    /// Normalised word to term number, or [`STOP`]: spares the stemmer for every word that the catalog uses.
    pub(super) surfaces: FxHashMap<Box<str>, TermId>,
    /// Start of each term's postings; one more entry than terms.
    pub(super) offsets: Vec<u32>,
    pub(super) postings: Vec<Posting>,
    pub(super) exact: ExactNames,
    pub(super) scorer: Scorer,
    analyzer: Analyzer,
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
    pub(super) fn from_parts(
        items: u32,
        terms: FxHashMap<Box<str>, TermId>,
        surfaces: FxHashMap<Box<str>, TermId>,
        offsets: Vec<u32>,
        postings: Vec<Posting>,
        exact: ExactNames,
        scorer: Scorer,
    ) -> Result<Self, &'static str> {
        let check = |holds: bool, reason| if holds { Ok(()) } else { Err(reason) };
        let known = terms.len() as u64;
        check(offsets.len() as u64 == known + 1, "there is not one list of postings for each term")?;
        check(terms.values().all(|&term| u64::from(term) < known), "a term is out of range")?;
        let is_known = |&term: &TermId| term == STOP || u64::from(term) < known;
        check(surfaces.values().all(is_known), "a word stands for no term")?;
        check(offsets.first() == Some(&0) && offsets.is_sorted(), "the lists of postings overlap")?;
        check(
            offsets.last().map(|&end| end as usize) == Some(postings.len()),
            "the lists do not end with the postings",
        )?;
        check(postings.iter().all(|posting| posting.item < items), "a posting is of no item")?;
        let in_range = |posting: &Posting| (1..=MAX_IMPACT).contains(&posting.impact);
        check(postings.iter().all(in_range), "an impact is out of range")?;
        check(exact.are_within(items), "a name is of no item")?;
        let index = Self { items, terms, surfaces, offsets, postings, exact, scorer, analyzer: Analyzer::default() };
        let ascends = |term| index.postings(term).is_sorted_by(|left, right| left.item < right.item);
        check((0..index.terms() as u32).all(ascends), "postings are out of order")?;
        Ok(index)
    }

    /// The number of indexed items.
    #[must_use]
    pub fn items(&self) -> usize {
        self.items as usize
    }

    /// The number of distinct terms.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of postings.
    #[must_use]
    pub fn postings_total(&self) -> usize {
        self.postings.len()
    }

    /// The items that `term` occurs in, ascending.
    #[must_use]
    pub fn postings(&self, term: TermId) -> &[Posting] {
        let at = term as usize;
        match (self.offsets.get(at), self.offsets.get(at + 1)) {
            (Some(&start), Some(&end)) => &self.postings[start as usize..end as usize],
            _ => &[],
        }
    }

    /// Analyses a query.
    #[must_use]
    pub fn analyze(&self, text: &str) -> Query {
        let mut query = Query::default();
        self.analyze_into(text, &mut query);
        query
    }

    fn analyze_into(&self, text: &str, query: &mut Query) {
        query.terms.clear();
        query.exact.clear();
        query.unknown = 0;
        let mut sequence = self.exact.sequence();
        for_each_word(text, |word| {
            sequence.push(word);
            self.push_word(word, query);
        });
        self.exact.find(&sequence, text, &mut query.exact);
    }

    /// Adds what one normalised word stands for.
    fn push_word(&self, word: &str, query: &mut Query) {
        if query.terms.len() + query.unknown >= MAX_QUERY_TERMS {
            return;
        }
        match self.lookup(word) {
            Some(STOP) => {}
            Some(term) => query.terms.push(QueryTerm { term, weight: FULL_WEIGHT }),
            None => {
                query.unknown += 1;
                if self.scorer == Scorer::Fuzzy && query.unknown <= fuzzy::MOST_CORRECTED {
                    fuzzy::expand(self, word, &mut query.terms);
                }
            }
        }
    }

    /// The term of a normalised word, [`STOP`], or `None` for a word that the catalog does not know.
    fn lookup(&self, word: &str) -> Option<TermId> {
        if let Some(&term) = self.surfaces.get(word) {
            return Some(term);
        }
        if is_stop_word(word) {
            return Some(STOP);
        }
        self.terms.get(&*self.analyzer.stem(word)).copied()
    }

    /// The best items for `text`: score descending, then item number ascending. Items that share no term with
    /// the query and are not named by it are left out. `allow` is asked only about items that would enter the
    /// result.
    pub fn search(&self, text: &str, depth: Depth, allow: impl Fn(u32) -> bool, scratch: &mut Scratch) -> Vec<Hit> {
        let mut query = std::mem::take(&mut scratch.query);
        self.analyze_into(text, &mut query);
        let hits = self.search_query(&query, depth, allow, scratch);
        scratch.query = query;
        hits
    }

    /// [`Self::search`] for a query that is already analysed.
    pub fn search_query(
        &self,
        query: &Query,
        depth: Depth,
        allow: impl Fn(u32) -> bool,
        scratch: &mut Scratch,
    ) -> Vec<Hit> {
        self.accumulate(query, scratch);
        let mut top = TopK::new(depth.k());
        top.scan(&scratch.scores, &allow);
        let lifted = self.lift_exact(query, &scratch.scores, &allow);
        let mut hits = top.into_hits();
        if let (Depth::ThroughTies(k), Some(last)) = (depth, hits.last().copied())
            && hits.len() == k
        {
            let tied = scratch.scores.iter().enumerate().skip(last.item as usize + 1);
            let tied = tied.filter(|&(item, &score)| u64::from(score) == last.score && allow(item as u32));
            hits.extend(tied.map(|(item, &score)| Hit { item: item as u32, score: u64::from(score) }));
        }
        scratch.scores.fill(0);
        merge_exact(hits, lifted, depth)
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
        let lifted = self.lift_exact(query, &scratch.scores, &allow);
        scratch.scores.fill(0);
        merge_exact(hits, lifted, Depth::Exactly(k))
    }

    /// The score of every item, by item number: the exhaustive control for navigation and for explanations.
    #[must_use]
    pub fn score_all(&self, query: &Query) -> Vec<u64> {
        let mut scratch = Scratch::default();
        self.accumulate(query, &mut scratch);
        let mut scores: Vec<u64> = scratch.scores.iter().copied().map(u64::from).collect();
        if !query.exact.is_empty() {
            let bonus = exact_bonus(scores.iter().copied().max().unwrap_or(0));
            for &item in &query.exact {
                scores[item as usize] += bonus;
            }
        }
        scores
    }

    /// The score of one item as a search for `query` gives it.
    pub(super) fn score(&self, query: &Query, item: u32, scratch: &mut Scratch) -> u64 {
        let words: u64 = query.terms.iter().map(|&term| self.contribution(term, item)).sum();
        if query.exact.binary_search(&item).is_err() {
            return words;
        }
        self.accumulate(query, scratch);
        let best = scratch.scores.iter().copied().max().unwrap_or(0);
        scratch.scores.fill(0);
        words + exact_bonus(u64::from(best))
    }

    /// What each word of `text` adds to the score of `item`, in query order, repeats added up; words that add nothing
    /// are left out. The values and the bonus of an exact name are the whole score.
    #[must_use]
    pub fn explain(&self, text: &str, item: u32) -> Vec<(String, u64)> {
        self.explain_words(&self.words(text), item)
    }

    /// The words of `text` with the terms that they stand for, repeats together: what [`Self::explain_words`] needs
    /// once for many items.
    pub(super) fn words(&self, text: &str) -> Vec<(String, Vec<QueryTerm>)> {
        let mut words: Vec<(String, Vec<QueryTerm>)> = Vec::new();
        let mut query = Query::default();
        for_each_word(text, |word| {
            let before = query.terms.len();
            self.push_word(word, &mut query);
            let added = &query.terms[before..];
            match words.iter_mut().find(|(other, _)| other == word) {
                _ if added.is_empty() => {}
                Some((_, terms)) => terms.extend_from_slice(added),
                None => words.push((word.to_owned(), added.to_vec())),
            }
        });
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
        scratch.scores.resize(self.items as usize, 0);
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
    fn lift_exact(&self, query: &Query, scores: &[u32], allow: &impl Fn(u32) -> bool) -> Vec<Hit> {
        if query.exact.is_empty() {
            return Vec::new();
        }
        // The best score is taken over all items, not only the allowed ones, so that a filter changes no score.
        let best = scores.iter().copied().max().unwrap_or(0);
        let bonus = exact_bonus(u64::from(best));
        let mut lifted: Vec<Hit> = query
            .exact
            .iter()
            .filter(|&&item| allow(item))
            .map(|&item| Hit { item, score: u64::from(scores[item as usize]) + bonus })
            .collect();
        lifted.sort_unstable_by_key(Hit::order);
        lifted
    }

    /// The share of the query that `score` accounts for, in [0, 1]: the score over the sum of the words' idf as BM25
    /// has it, unknown words counted as the rarest possible. No BM25 or BM25F score reaches that sum; under
    /// [`Scorer::TfIdf`], whose scores have another scale, it is a yardstick and no ceiling, and the share is cut at 1. It
    /// is what confidence is made of: an unanswerable query has words that no tool carries.
    #[must_use]
    pub fn coverage(&self, query: &Query, score: u64) -> f64 {
        let ceiling = |items_with: usize| idf(self.items as usize, items_with) * SCORE_UNITS as f64;
        let known: f64 = query.terms.iter().map(|term| ceiling(self.postings(term.term).len())).sum();
        let total = known + ceiling(0) * query.unknown as f64;
        if total > 0.0 { (score as f64 / total).min(1.0) } else { 0.0 }
    }
}

/// An impact at a reduced weight, rounded down.
pub(super) fn weighted(impact: u32, weight: u32) -> u32 {
    // Both factors fit into 32 bits, and weight ≤ FULL_WEIGHT keeps the quotient within the impact.
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
    terms: FxHashMap<Box<str>, TermId>,
    surfaces: FxHashMap<Box<str>, TermId>,
    /// For each term, its latest entry in `occurrences`.
    latest: Vec<u32>,
    occurrences: Vec<Occurrence>,
    /// Words per item and field, stop words not counted.
    lengths: Vec<[u32; FIELDS]>,
}

impl Builder {
    fn new(config: &RoutingConfig) -> Self {
        let fields = &config.fields;
        Self {
            analyzer: Analyzer::default(),
            weights: [fields.name, fields.description, fields.parameters, fields.tags, fields.server],
            terms: FxHashMap::default(),
            surfaces: FxHashMap::default(),
            latest: Vec::new(),
            occurrences: Vec::new(),
            lengths: Vec::new(),
        }
    }

    fn add(&mut self, item: &SelectableItem) {
        self.lengths.push([0; FIELDS]);
        self.field(0, &item.name);
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

    fn field(&mut self, field: usize, text: &str) {
        if self.weights[field].weight <= 0.0 || text.is_empty() {
            return;
        }
        for_each_word(text, |word| {
            let term = self.term(word);
            if term != STOP {
                self.count(term, field);
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

    fn finish(self, catalog: &Catalog, config: &RoutingConfig) -> Index {
        let mut offsets = vec![0u32; self.latest.len() + 1];
        for occurrence in &self.occurrences {
            offsets[occurrence.term as usize + 1] += 1;
        }
        for at in 1..offsets.len() {
            offsets[at] += offsets[at - 1];
        }
        let frequencies: Vec<usize> = offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize).collect();
        let impacts = self.impacts(config, &frequencies);
        let mut next = offsets.clone();
        let mut postings = vec![Posting { item: 0, impact: 0 }; self.occurrences.len()];
        for (occurrence, impact) in self.occurrences.iter().zip(impacts) {
            let at = &mut next[occurrence.term as usize];
            let impact = ((impact * SCORE_UNITS as f64).round() as u32).clamp(1, MAX_IMPACT);
            postings[*at as usize] = Posting { item: occurrence.item, impact };
            *at += 1;
        }
        Index {
            items: catalog.len() as u32,
            terms: self.terms,
            surfaces: self.surfaces,
            offsets,
            postings,
            exact: ExactNames::of(catalog),
            scorer: config.scorer,
            analyzer: self.analyzer,
        }
    }

    /// The impact of every occurrence, by the formula of the scorer.
    fn impacts(&self, config: &RoutingConfig, frequencies: &[usize]) -> Vec<f64> {
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
                let norms = self.field_norms();
                let idf = idf_table(items, frequencies);
                self.per_occurrence(|occurrence| {
                    let norm = &norms[occurrence.item as usize];
                    let tf: f64 = (0..FIELDS).map(|field| f64::from(occurrence.counts[field]) * norm[field]).sum();
                    idf[occurrence.term as usize] * tf / (tf + config.k1)
                })
            }
        }
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

    use super::super::config::{Field, FieldWeights};
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
    fn a_repeated_query_word_counts_twice() {
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
        let config = |scorer| RoutingConfig { scorer, ..RoutingConfig::default() };
        assert_eq!(ranked(&Index::build(&catalog, &config(Scorer::Bm25f)), "wether forcast"), []);
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
        assert_eq!(many.terms.len(), 2 * fuzzy::MOST_CORRECTED);
        assert_eq!(many.terms.len() + many.unknown, MAX_QUERY_TERMS);
    }

    #[test]
    fn the_score_of_one_item_is_that_of_the_search() {
        let tools = [("send_mail", "letter"), ("mail_list", "list of mail"), ("x", "send a letter to a mail list")];
        let index = Index::build(&catalog(&tools), &RoutingConfig::default());
        for text in ["mail list", "mail_list", "please send_mail now", "zebra"] {
            let query = index.analyze(text);
            let mut scratch = Scratch::default();
            let single: Vec<u64> = (0..3).map(|item| index.score(&query, item, &mut scratch)).collect();
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
            let index = Index::build(&catalog(&tools), &RoutingConfig { scorer, ..RoutingConfig::default() });
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
        fn no_query_panics(text in any::<String>()) {
            let tools = [("send_mail", "letter"), ("Ünïcode 查询", "天气")];
            let index = Index::build(&catalog(&tools), &RoutingConfig::default());
            index.search(&text, Depth::ThroughTies(3), |_| true, &mut Scratch::default());
        }
    }
}
