//! The index: query text in, item numbers and scores out.
//!
//! Everything that depends on the catalog alone is computed when the index is built ([`super::indexing`]). A posting holds
//! the whole contribution of one term to one item (its *impact*), so that a search is one addition per posting,
//! whatever the scorer. Impacts are integers: sums do not depend on the order of addition, equal scores are really
//! equal, and the parts of an explanation add up to the score without a rest.
//!
//! Two neighbouring words of a name are a term of their own, a *pair*, numbered behind the words.
//!
//! Where the configuration gives the semantic side a weight, its part is added in the same units ([`Fusion`]).

use super::config::{RoutingConfig, Scorer};
use super::dictionary::{Dictionary, PairTable};
use super::exact::{ExactNames, Sequence};
use super::fuzzy;
use super::hit::{Hit, SCORE_UNITS, TopK};
use super::image::{Image, Part};
use super::indexing;
use super::postings::{Found, Lists, Posting, Scores};
use super::semantic::{DocumentVectors, Fusion, Heads, QueryVector, Table};
use super::spelling::{MOST_CORRECTED, Spelling};
use crate::catalog::Catalog;
use crate::text::{Analyzer, for_each_word, is_stop_word};

/// The number of a term in an [`Index`].
pub type TermId = u32;

/// A query has at most this many words and pairs that count, unknown words and repeats included; further ones are
/// ignored. With the largest impact it keeps every score within 32 bits, since no word weighs more than it is often.
pub const MAX_QUERY_TERMS: usize = 1000;

/// The weight of a term that the query has once; readings of unknown words have less, repeated words more.
pub const FULL_WEIGHT: u32 = 256;

/// Marks a word that is a stop word.
pub(super) const STOP: TermId = TermId::MAX;

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
}

/// Reusable memory of searches, so that a search allocates only its result. One per thread.
#[derive(Debug, Default)]
pub struct Scratch {
    scores: Scores,
    query: Query,
    words: Words,
}

impl Scratch {
    /// How many postings the last search read: those of the query's terms, unless whole blocks of a large catalog could
    /// not change the result.
    #[must_use]
    pub fn postings_read(&self) -> usize {
        self.scores.read()
    }
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
    items: u32,
    image: Image,
    reading: Reading,
    semantic: Option<Semantic>,
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
    /// of a query's term frequency in BM25 (Robertson and Zaragoza 2009, §3.5).
    fn repeated(&self, weight: u32, count: u32) -> u32 {
        let count = f64::from(count);
        let times = self.k3.map_or(count, |k3| count * (k3 + 1.0) / (count + k3));
        (f64::from(weight) * times).round() as u32
    }
}

/// Whether a scorer is BM25F with all that belongs to it; the others are the plain formulas.
pub(super) fn is_fielded(scorer: Scorer) -> bool {
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
    heads: Heads,
}

impl Index {
    /// Indexes every item of `catalog` under the scorer, fields and constants of `config`.
    #[must_use]
    pub fn build(catalog: &Catalog, config: &RoutingConfig) -> Self {
        Self::assemble(indexing::build(catalog, config), catalog.len() as u32, config)
    }

    /// The index over `items` items whose image was built under `config`. Takes the image as it is: one that was
    /// damaged gives wrong answers, and nothing worse.
    pub(super) fn assemble(image: Image, items: u32, config: &RoutingConfig) -> Self {
        let heads = || Heads::of(&DocumentVectors::of(&image));
        let semantic = config.is_semantic().then(|| Semantic { weight: config.semantic, heads: heads() });
        Self { items, image, reading: Reading::of(config), semantic, analyzer: Analyzer::default() }
    }

    /// Checks what no image that was built can be: a number that points outside, lists out of order, an impact out of
    /// range.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let check = |holds: bool, reason| if holds { Ok(()) } else { Err(reason) };
        let lists = self.lists();
        let known = self.terms();
        let all = lists.lists.len().saturating_sub(1);
        let stems = self.stems();
        check(stems.iter().all(|(_, term)| (term as usize) < known), "a term is out of range")?;
        let is_known = |term: TermId| term == STOP || (term as usize) < known;
        check(self.words_table().iter().all(|(_, term)| is_known(term)), "a word stands for no term")?;
        check(self.pairs().values().all(|pair| (known..all).contains(&(pair as usize))), "a pair is out of range")?;
        check(
            self.pairs().values().count() + known == all,
            "there is not one list of postings for each term and pair",
        )?;
        lists.check()?;
        ExactNames::of(&self.image).check(self.items)?;
        Spelling::of(&self.image).check(known)?;
        let vectors = if self.semantic.is_some() { self.items() } else { 0 };
        check(self.vectors().len() == vectors, "there is not one vector for each item")
    }

    /// The bytes that it consists of.
    pub(super) fn image(&self) -> &Image {
        &self.image
    }

    /// The size in bytes, in memory and in a file.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.image.bytes().len()
    }

    /// The number of indexed items.
    #[must_use]
    pub fn items(&self) -> usize {
        self.items as usize
    }

    /// The number of distinct terms, pairs not counted.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.stems().len()
    }

    /// The number of postings.
    #[must_use]
    pub fn postings_total(&self) -> usize {
        self.lists().postings.len()
    }

    /// The items that a term or pair occurs in, ascending.
    pub fn postings(&self, term: TermId) -> impl Iterator<Item = Posting> {
        self.lists().iter(term)
    }

    /// How many items a term or pair occurs in.
    #[must_use]
    pub fn frequency(&self, term: TermId) -> usize {
        self.lists().frequency(term)
    }

    /// Every word of the catalog, as it is written there, with its term or [`STOP`].
    pub(super) fn words_table(&self) -> Dictionary<'_> {
        let image = &self.image;
        Dictionary::new(image.cells(Part::WordSlots), image.cells(Part::WordEntries), image.part(Part::WordText))
    }

    fn stems(&self) -> Dictionary<'_> {
        let image = &self.image;
        Dictionary::new(image.cells(Part::TermSlots), image.cells(Part::TermEntries), image.part(Part::TermText))
    }

    fn pairs(&self) -> PairTable<'_> {
        PairTable::new(self.image.cells(Part::PairSlots))
    }

    fn lists(&self) -> Lists<'_> {
        let image = &self.image;
        Lists {
            items: self.items,
            lists: image.cells(Part::Lists),
            chunks: image.cells(Part::Chunks),
            postings: image.cells(Part::Postings),
        }
    }

    fn vectors(&self) -> DocumentVectors<'_> {
        DocumentVectors::of(&self.image)
    }

    /// Analyses a query.
    #[must_use]
    pub fn analyze(&self, text: &str) -> Query {
        let mut query = Query::default();
        self.analyze_into(text, &mut query, &mut Words::default());
        query
    }

    fn analyze_into(&self, text: &str, query: &mut Query, words: &mut Words) {
        let mut sequence = Sequence::new();
        self.read(text, query, words, |word, _| sequence.push(word));
        ExactNames::of(&self.image).find(&sequence, text, &mut query.exact);
        query.meaning = self.semantic.as_ref().map(|_| Table::builtin().encode_query(text));
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
                    && let Some(pair) = self.pairs().get((previous, term))
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
            Spelling::of(&self.image).read(word, self.reading.spelling, &mut readings);
        }
        for reading in readings {
            push_term(reading, query, words);
        }
    }

    /// The term of a normalised word, [`STOP`], or `None` for a word that the catalog does not know.
    fn lookup(&self, word: &str) -> Option<TermId> {
        if let Some(term) = self.words_table().get(word) {
            return Some(term);
        }
        if is_stop_word(word) {
            return Some(STOP);
        }
        self.stems().get(&self.analyzer.stem(word))
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
    ) -> (Vec<Hit>, Fusion) {
        let (lists, scores) = (self.lists(), &mut scratch.scores);
        let (hits, found_best, fusion) = match (&self.semantic, &query.meaning) {
            (Some(semantic), Some(meaning)) => {
                let proposed = Fusion::proposed(depth.k());
                let Found { hits, best } = lists.search(&query.terms, proposed, &allow, scores);
                let (near, nearest) = self.vectors().proposals(&semantic.heads, meaning, proposed, &allow);
                let fusion = Fusion::new(semantic.weight, best, nearest);
                let lexical = |item| lists.score_of(&query.terms, item, scores);
                let similarity = |item| self.vectors().similarity(item, meaning);
                (fusion.rank(&hits, &near, lexical, similarity, depth), best, fusion)
            }
            _ => {
                let (hits, best) = match depth {
                    Depth::Exactly(k) => {
                        let Found { hits, best } = lists.search(&query.terms, k, &allow, scores);
                        (hits, best)
                    }
                    Depth::ThroughTies(k) => {
                        let all = lists.score_all(&query.terms, scores);
                        (through_ties(all, k, &allow), all.iter().copied().max().unwrap_or(0))
                    }
                };
                (hits, best, Fusion::default())
            }
        };
        let words = |item| lists.score_of(&query.terms, item, scores);
        let lifted = self.lift_exact(query, found_best, &fusion, &allow, words);
        lists.clear(scores);
        (merge_exact(hits, lifted, depth), fusion)
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
        let best = self.best(query, scratch);
        let words = |item| self.lists().score(&query.terms, item);
        let lifted = self.lift_exact(query, best, &Fusion::default(), &allow, words);
        merge_exact(hits, lifted, Depth::Exactly(k))
    }

    /// The best score by words of any item.
    fn best(&self, query: &Query, scratch: &mut Scratch) -> u32 {
        let found = self.lists().search(&query.terms, 1, &|_| true, &mut scratch.scores);
        self.lists().clear(&mut scratch.scores);
        found.best
    }

    /// The score of every item, by item number: the exhaustive control for navigation and for explanations.
    #[must_use]
    pub fn score_all(&self, query: &Query) -> Vec<u64> {
        let mut scores = Scores::default();
        let words = self.lists().score_all(&query.terms, &mut scores);
        let best = words.iter().copied().max().unwrap_or(0);
        let fusion = self.fusion_of(query, best);
        let mut scores: Vec<u64> = words.iter().copied().map(u64::from).collect();
        for (item, score) in scores.iter_mut().enumerate() {
            *score += self.semantic_part(query, &fusion, item as u32);
        }
        if !query.exact.is_empty() {
            let bonus = exact_bonus(u64::from(best) + fusion.most());
            for &item in &query.exact {
                if let Some(score) = scores.get_mut(item as usize) {
                    *score += bonus;
                }
            }
        }
        scores
    }

    /// The score of one item as a search for `query` that gave `fusion` has it.
    pub(super) fn score(&self, query: &Query, fusion: &Fusion, item: u32, scratch: &mut Scratch) -> u64 {
        let words = u64::from(self.lists().score(&query.terms, item));
        let score = words + self.semantic_part(query, fusion, item);
        if query.exact.binary_search(&item).is_err() {
            return score;
        }
        score + exact_bonus(u64::from(self.best(query, scratch)) + fusion.most())
    }

    fn fusion_of(&self, query: &Query, best: u32) -> Fusion {
        let (Some(semantic), Some(meaning)) = (&self.semantic, &query.meaning) else { return Fusion::default() };
        let (_, nearest) = self.vectors().proposals(&semantic.heads, meaning, 1, &|_| true);
        Fusion::new(semantic.weight, best, nearest)
    }

    /// What the meaning of `query` adds to the score of `item`.
    pub(super) fn semantic_part(&self, query: &Query, fusion: &Fusion, item: u32) -> u64 {
        match &query.meaning {
            Some(meaning) => fusion.part(self.vectors().similarity(item, meaning)),
            None => 0,
        }
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
                let is_pair = term.term as usize >= self.terms();
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
        u64::from(weighted(self.lists().impact(term, item), weight))
    }

    /// How many postings the terms of a query have: what a search reads where it leaves nothing out.
    #[must_use]
    pub fn postings_read(&self, query: &Query) -> usize {
        query.terms.iter().map(|term| self.frequency(term.term)).sum()
    }

    /// The items that the query names exactly, above everything else. `words` is an item's score by words, `best` the best
    /// of any item, so that a filter changes no score.
    fn lift_exact(
        &self,
        query: &Query,
        best: u32,
        fusion: &Fusion,
        allow: &impl Fn(u32) -> bool,
        words: impl Fn(u32) -> u32,
    ) -> Vec<Hit> {
        if query.exact.is_empty() {
            return Vec::new();
        }
        let bonus = exact_bonus(u64::from(best) + fusion.most());
        let score = |item: u32| u64::from(words(item)) + self.semantic_part(query, fusion, item) + bonus;
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
        // The semantic side can add its weight to the best of the words.
        let fused = 1.0 + query.meaning.and(self.semantic.as_ref()).map_or(0.0, |semantic| semantic.weight);
        let ideal = self.ideal(query) * fused;
        if ideal > 0.0 { (score as f64 / ideal).min(1.0) } else { 0.0 }
    }
}

impl Index {
    /// The idf of all words of a query together at their weights, unknown ones counted as the rarest possible.
    pub(super) fn rarities(&self, query: &Query) -> f64 {
        let words = query.terms.iter().filter(|term| (term.term as usize) < self.terms());
        let known: f64 = words
            .map(|&QueryTerm { term, weight }| {
                idf(self.items(), self.frequency(term)) * f64::from(weight) / f64::from(FULL_WEIGHT)
            })
            .sum();
        known + self.rarity_of_unknown() * query.unknown as f64
    }

    /// The idf of a word that no item has: the rarest possible.
    pub(super) fn rarity_of_unknown(&self) -> f64 {
        idf(self.items(), 0)
    }

    /// The idf of one stem; that of a word in no item for one that the catalog does not know.
    pub(super) fn rarity(&self, stem: &str) -> f64 {
        idf(self.items(), self.stems().get(stem).map_or(0, |term| self.frequency(term)))
    }
}

/// The `k` best of all scores and those equal to the last of them.
fn through_ties(scores: &[u32], k: usize, allow: &impl Fn(u32) -> bool) -> Vec<Hit> {
    let mut top = TopK::ascending(k);
    top.scan(0, scores, allow);
    let mut hits = top.into_hits();
    if let Some(last) = hits.last().copied().filter(|_| hits.len() == k) {
        let after = (last.item + 1..).zip(scores.iter().skip(last.item as usize + 1));
        let tied = after.filter(|&(item, &score)| u64::from(score) == last.score && allow(item));
        hits.extend(tied.map(|(item, &score)| Hit { item, score: u64::from(score) }));
    }
    hits
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
    // No word weighs more than it is often: the quotient is at most the largest impact times MAX_QUERY_TERMS.
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
pub(super) fn idf(items: usize, items_with: usize) -> f64 {
    let (items, with) = (items as f64, items_with as f64);
    libm::log(1.0 + (items - with + 0.5) / (with + 0.5))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::config::{Field, FieldWeights, NameMatch};
    use super::*;
    use crate::catalog::SelectableItem;

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
