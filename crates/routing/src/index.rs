//! The index: query text in, item numbers and scores out.
//!
//! Everything that depends on the catalog alone is computed when the index is built ([`super::indexing`]). A posting
//! holds the whole contribution of one term to one item (its *impact*), so that a search is one addition per posting,
//! whatever the scorer. Impacts are integers: sums do not depend on the order of addition, equal scores are really
//! equal, and the parts of an explanation add up to the score exactly.
//!
//! Two neighbouring words of a name, or of the first sentence of a description, form a term of their own, a *pair*; pairs are
//! numbered after the words.
//!
//! Where the configuration gives the semantic table a weight, its part is added in the same units, and so is that of a
//! sentence encoder where the index was given one ([`Fusions`]).

use std::borrow::Cow;

use super::confidence::{Evidence, LEAD_OVER};
use super::config::{RoutingConfig, Scorer};
use super::dictionary::{Dictionary, PairTable};
use super::exact::{ExactNames, Sequence};
use super::fuzzy;
use super::hit::{Hit, SCORE_UNITS, TopK};
use super::image::{Image, Part, long};
use super::indexing::{self, FIELDS};
use super::pasted::without_pasted_lines;
use super::patch::{Patch, Side};
use super::postings::{Found, Lists, Posting, Scores};
use super::semantic::model::{self, Fusions, Model, ModelVector, rank};
use super::semantic::{DocumentVectors, Fusion, Near, QueryVector, Table, TextPieces};
use super::spelling::{MOST_CORRECTED, Spelling, share};
use contextweaver_core::catalog::Catalog;
use contextweaver_core::text::{Analyzer, for_each_compound, for_each_word, is_stop_word};

/// The number of a term in an [`Index`].
pub type TermId = u32;

/// The number of words and pairs of a query that count at most, unknown words and repeats included; further ones are
/// ignored. Together with the largest impact it keeps every score within 32 bits, since the weight of a repeated word
/// is at most its count.
pub const MAX_QUERY_TERMS: usize = 1000;

/// The weight of a term that occurs once in the query; readings of unknown words weigh less, repeated words more.
pub const FULL_WEIGHT: u32 = 256;

/// The weight of a part of a word that the catalog writes in one: tools that write `GitHub` have `git`, `hub` and `github`,
/// and must not stand above those that write `github` for that. What counts nothing would be lost where others write
/// `git hub`, as they do `user id` for `userId`. A half and nothing were tried too.
const PART_WEIGHT: u32 = FULL_WEIGHT / 4;

/// Stands for a stop word in place of a term.
pub(super) const STOP: TermId = TermId::MAX;

/// One term of a query as the index knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryTerm {
    /// The number of the term in the index.
    pub term: TermId,
    /// Its weight in units of 1/[`FULL_WEIGHT`].
    pub weight: u32,
}

/// A query after analysis.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// The known terms, each once.
    pub terms: Vec<QueryTerm>,
    /// The number of words that the catalog does not know, stop words aside.
    pub unknown: usize,
    /// The items whose name the query gives exactly, ascending.
    pub exact: Vec<u32>,
    /// The vector of its meaning, where the index has vectors to compare it with.
    pub meaning: Option<QueryVector>,
    /// Its vector by the sentence encoder, where the index was given one.
    pub model: Option<Box<ModelVector>>,
}

/// Reusable memory for searches, so that a search by words allocates only its result; one with meaning also allocates two
/// numbers for each item. Use one per thread.
#[derive(Debug, Default)]
pub struct Scratch {
    scores: Scores,
    /// The same for items that were added since the image was made.
    second_scores: Scores,
    second_terms: Vec<QueryTerm>,
    query: Query,
    words: Words,
}

impl Scratch {
    /// The number of postings that the last search read: those of the query's terms, except in large catalogs, where
    /// whole blocks that cannot change the result are skipped.
    #[must_use]
    pub fn postings_read(&self) -> usize {
        self.scores.read() + self.second_scores.read()
    }
}

/// How long a ranking is.
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

/// An immutable index over one catalog under one configuration. Can be shared between threads.
#[derive(Debug)]
pub struct Index {
    /// The number of items in the image.
    items: u32,
    image: Image,
    /// What was added and removed since the image was made.
    patch: Option<Patch>,
    reading: Reading,
    /// What meaning of weight 1 can add: the idf of a word that no item has, in score units.
    scale: u64,
    semantic: Option<Semantic>,
    model: Option<(f64, Model)>,
    analyzer: Analyzer,
}

/// The parts of the configuration that decide how a query is read.
#[derive(Debug, Clone, Copy)]
struct Reading {
    scorer: Scorer,
    /// `None` where a repeated word counts as often as it occurs.
    k3: Option<f64>,
    spelling: f64,
    name_share: f64,
    reversed_pairs: f64,
}

impl Reading {
    fn of(config: &RoutingConfig) -> Self {
        let fielded = is_fielded(config.scorer);
        Self {
            scorer: config.scorer,
            k3: fielded.then_some(config.k3),
            spelling: if config.scorer == Scorer::Bm25f { config.spelling } else { 0.0 },
            name_share: if fielded { config.name.share } else { 0.0 },
            reversed_pairs: config.reversed_pairs,
        }
    }

    /// The weight of a term that weighs `weight` each time and occurs `count` times: c (k3 + 1) / (c + k3), the factor
    /// of a query's term frequency in BM25 (Robertson and Zaragoza 2009, §3.5).
    fn repeated(&self, weight: u32, count: u32) -> u32 {
        let count = f64::from(count);
        let times = self.k3.map_or(count, |k3| count * (k3 + 1.0) / (count + k3));
        (f64::from(weight) * times).round() as u32
    }
}

/// Whether a scorer is BM25F with all its additions; the others are the plain formulas.
pub(super) fn is_fielded(scorer: Scorer) -> bool {
    matches!(scorer, Scorer::Bm25f | Scorer::Fuzzy)
}

/// The state of reading a query word by word.
#[derive(Debug, Default)]
struct Words {
    /// How often each of the query's terms occurs; 0 for a pair that it has only the other way round.
    counts: Vec<u32>,
    /// The number of words, readings of unknown words and pairs that counted so far.
    read: usize,
    /// The known word before this one, when only stop words are between them.
    previous: Option<TermId>,
    /// The word that the last one is taken for in the query's meaning, where that is another.
    meant: String,
    /// The word pieces of its meaning.
    pieces: TextPieces,
}

/// The semantic part of an index.
#[derive(Debug, Clone)]
struct Semantic {
    weight: f64,
    table: &'static Table,
}

impl Index {
    /// Indexes every item of `catalog` under the scorer, fields and constants of `config`.
    #[must_use]
    pub fn build(catalog: &Catalog, config: &RoutingConfig) -> Self {
        Self::with_table(catalog, config, Table::builtin())
    }

    /// [`Self::build`] with meaning from `table`.
    pub(super) fn with_table(catalog: &Catalog, config: &RoutingConfig, table: &'static Table) -> Self {
        let image = indexing::build(catalog.items(), config, None, table);
        Self::assemble(image, catalog.len() as u32, config, table)
    }

    /// The index over `items` items whose image was built under `config` with `table`. The image is not checked: a
    /// damaged one gives wrong answers, and nothing worse.
    pub(super) fn assemble(image: Image, items: u32, config: &RoutingConfig, table: &'static Table) -> Self {
        let semantic = config.is_semantic().then_some(Semantic { weight: config.semantic, table });
        Self {
            items,
            image,
            patch: None,
            reading: Reading::of(config),
            scale: (idf(items as usize, 0) * SCORE_UNITS as f64).round() as u64,
            semantic,
            model: None,
            analyzer: Analyzer::default(),
        }
    }

    /// Adds `model`, which was built for the same catalog, to all later scores.
    pub(super) fn set_model(&mut self, model: Model, config: &RoutingConfig) {
        let wanted = config.model.weight > 0.0 && config.has_meaning();
        self.model = wanted.then_some((config.model.weight, model));
    }

    /// This index, built from `old`, updated to `new`: in the time that the changes take, plus one comparison of the
    /// two catalogs. Words keep the weights that they have in `old`. `None` when indexing anew is better: too much
    /// differs, or the scorer is a plain formula.
    pub(super) fn patched(&self, old: &Catalog, new: &Catalog, config: &RoutingConfig) -> Option<Self> {
        if config.scorer != Scorer::Bm25f {
            return None;
        }
        let first = Self {
            items: self.items,
            image: self.image.clone(),
            patch: None,
            reading: self.reading,
            scale: self.scale,
            semantic: self.semantic.clone(),
            model: None,
            analyzer: Analyzer::default(),
        };
        let patch = Patch::between(&first, old, new, config)?;
        Some(Self { patch: Some(patch), ..first })
    }

    /// Checks what every built image satisfies: that no number points outside, lists are in order and impacts are in
    /// range. The error says what is wrong.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let check = |holds: bool, reason| if holds { Ok(()) } else { Err(reason) };
        let lists = self.lists();
        let known = self.terms();
        let all = lists.lists.len().saturating_sub(1);
        let pairs = pairs(&self.image);
        check(stems(&self.image).iter().all(|(_, term)| (term as usize) < known), "a term is out of range")?;
        let is_known = |term: TermId| term == STOP || (term as usize) < known;
        check(self.words_table().iter().all(|(_, term)| is_known(term)), "a word stands for no term")?;
        pairs.check(known)?;
        check(pairs.len() + known == all, "there is not one list of postings for each term and pair")?;
        lists.check()?;
        ExactNames::of(&self.image).check(self.items)?;
        Spelling::of(&self.image).check(known)?;
        let vectors = if self.semantic.is_some() { self.items() } else { 0 };
        check(self.vectors().are_of(vectors), "there is not one vector for each item")
    }

    /// The bytes of the index as it was built, without a patch.
    pub(super) fn image(&self) -> &Image {
        &self.image
    }

    /// Whether something was added or removed since the image was made.
    pub(super) fn is_patched(&self) -> bool {
        self.patch.is_some()
    }

    /// The size in bytes, in memory and in a file.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.images().map(|image| image.bytes().len()).sum()
    }

    fn images(&self) -> impl Iterator<Item = &Image> {
        std::iter::once(&self.image).chain(self.patch.as_ref().map(|patch| &patch.image))
    }

    /// The number of items in the index.
    #[must_use]
    pub fn items(&self) -> usize {
        self.patch.as_ref().map_or(self.items as usize, Patch::items)
    }

    /// The number of items when the image was made, on which the weights of words are based.
    pub(super) fn items_at_build(&self) -> usize {
        self.items as usize
    }

    /// The mean length of an item and of each field when the image was made, in words.
    pub(super) fn means(&self) -> [f64; FIELDS + 1] {
        let cells = self.image.cells::<8>(Part::Means);
        std::array::from_fn(|at| f64::from_bits(long(cells, at)))
    }

    /// The table that vectors are made with.
    pub(super) fn table(&self) -> &'static Table {
        self.semantic.as_ref().map_or_else(Table::builtin, |semantic| semantic.table)
    }

    /// The number of items that had a stem when the image was made; `None` for an unknown stem.
    pub(super) fn stem_frequency(&self, stem: &str) -> Option<usize> {
        stems(&self.image).get(stem).map(|term| self.lists().frequency(term))
    }

    /// The number of items that had a pair of these terms when the image was made; `stem` gives the stems that the numbers
    /// stand for.
    pub(super) fn pair_frequency(&self, (one, two): (TermId, TermId), stem: &[&str]) -> usize {
        let number = |term: TermId| stem.get(term as usize).and_then(|stem| stems(&self.image).get(stem));
        let pair = number(one).zip(number(two)).and_then(|pair| pairs(&self.image).get(pair));
        pair.map_or(0, |pair| self.lists().frequency(pair))
    }

    /// The numbers in this index of the terms and pairs of another image; those that this index does not have are
    /// numbered after its own.
    pub(super) fn numbers_of(&self, other: &Image) -> Vec<TermId> {
        let all = self.lists().lists.len().saturating_sub(1) as TermId;
        let size = other.cells::<4>(Part::Lists).len().saturating_sub(1) as TermId;
        let mut numbers: Vec<TermId> = (all..all + size).collect();
        for (stem, term) in stems(other).iter() {
            let known = std::str::from_utf8(stem).ok().and_then(|stem| stems(&self.image).get(stem));
            if let (Some(known), Some(number)) = (known, numbers.get_mut(term as usize)) {
                *number = known;
            }
        }
        for ((one, two), pair) in pairs(other).iter() {
            let own = |term: TermId| numbers.get(term as usize).copied().unwrap_or(STOP);
            let known = pairs(&self.image).get((own(one), own(two)));
            if let (Some(known), Some(number)) = (known, numbers.get_mut(pair as usize)) {
                *number = known;
            }
        }
        numbers
    }

    /// The number of distinct terms, pairs not counted.
    #[must_use]
    pub fn terms(&self) -> usize {
        stems(&self.image).len()
    }

    /// The number of postings.
    #[must_use]
    pub fn postings_total(&self) -> usize {
        self.images().map(|image| image.cells::<4>(Part::Postings).len()).sum()
    }

    /// The items in which a term or pair occurs, ascending unless the index is patched.
    pub fn postings(&self, term: TermId) -> impl Iterator<Item = Posting> {
        let patched = self.patch.as_ref();
        let first = self.lists().iter(term).filter_map(move |posting| {
            let Some(patch) = patched else { return Some(posting) };
            Some(Posting { item: patch.number(Side::First, posting.item)?, ..posting })
        });
        let second = patched.and_then(|patch| Some((patch, patch.own_term(term)?)));
        let second = second.into_iter().flat_map(|(patch, term)| {
            let numbered =
                |posting: Posting| Some(Posting { item: patch.number(Side::Second, posting.item)?, ..posting });
            patch.lists().iter(term).filter_map(numbered)
        });
        first.chain(second)
    }

    /// The number of items in which a term or pair occurred when the image was made, on which its weight is based.
    #[must_use]
    pub fn frequency(&self, term: TermId) -> usize {
        let patched = || self.patch.as_ref().and_then(|patch| Some((patch, patch.own_term(term)?)));
        match self.lists().frequency(term) {
            0 => patched().map_or(0, |(patch, term)| patch.lists().frequency(term)),
            known => known,
        }
    }

    /// Every word of the catalog when the image was made, as it is written there, with its term or [`STOP`].
    pub(super) fn words_table(&self) -> Dictionary<'_> {
        words(&self.image)
    }

    fn lists(&self) -> Lists<'_> {
        Lists::of(&self.image, self.items as usize, self.patch.as_ref().map_or(&[], |patch| &patch.gone))
    }

    /// The lists of what was added since, with the query's terms as they are numbered there.
    fn patched_lists(&self, query: &[QueryTerm], terms: &mut Vec<QueryTerm>) -> Option<(&Patch, Lists<'_>)> {
        let patch = self.patch.as_ref()?;
        terms.clear();
        terms.extend(query.iter().filter_map(|term| Some(QueryTerm { term: patch.own_term(term.term)?, ..*term })));
        Some((patch, patch.lists()))
    }

    fn vectors(&self) -> DocumentVectors<'_> {
        DocumentVectors::of(&self.image)
    }

    /// The vector of the meaning of `text` by the table; `None` where the table takes no part or knows nothing of it.
    pub(super) fn meaning(&self, text: &str) -> Option<QueryVector> {
        let table = self.semantic.as_ref()?.table;
        let text = &without_pasted_lines(text);
        let mut pieces = TextPieces::default();
        self.read(text, &mut Query::default(), &mut Words::default(), |_, meant, _| table.read(meant, &mut pieces));
        let meaning = table.encode_read(&pieces);
        (meaning.0.iter().any(|value| *value != 0)).then_some(meaning)
    }

    /// Analyses a query.
    #[must_use]
    pub fn analyze(&self, text: &str) -> Query {
        let mut query = Query::default();
        self.analyze_into(text, &mut query, &mut Words::default());
        query
    }

    fn analyze_into(&self, text: &str, query: &mut Query, words: &mut Words) {
        let text = &without_pasted_lines(text);
        let mut sequence = Sequence::new();
        let mut pieces = std::mem::take(&mut words.pieces);
        pieces.clear();
        self.read(text, query, words, |word, meant, _| {
            sequence.push(word);
            if let Some(semantic) = &self.semantic {
                semantic.table.read(meant, &mut pieces);
            }
        });
        self.read_compounds(text, query, words, |_, _| ());
        ExactNames::of(&self.image).find(&sequence, text, &mut query.exact);
        if let Some(patch) = &self.patch {
            let mut second = Vec::new();
            ExactNames::of(&patch.image).find(&sequence, text, &mut second);
            let first = query.exact.iter().filter_map(|item| patch.number(Side::First, *item));
            let second = second.iter().filter_map(|item| patch.number(Side::Second, *item));
            query.exact = first.chain(second).collect();
            query.exact.sort_unstable();
        }
        query.meaning = self.semantic.as_ref().map(|semantic| semantic.table.encode_read(&pieces));
        words.pieces = pieces;
        query.model = self.model.as_ref().map(|(_, model)| Box::new(model.encode_query(text)));
    }

    /// Reads the words of `text` into `query`. `each` is called with every word, stop words included, the word that it is
    /// taken for in the query's meaning, and the query so far; the terms added since the last call are those of the word,
    /// and of the pair with the word before.
    fn read(&self, text: &str, query: &mut Query, words: &mut Words, mut each: impl FnMut(&str, &str, &Query)) {
        query.terms.clear();
        query.exact.clear();
        query.unknown = 0;
        words.counts.clear();
        words.read = 0;
        words.previous = None;
        for_each_word(text, |word| {
            self.push_word(word, query, words);
            each(word, if words.meant.is_empty() { word } else { &words.meant }, query);
        });
        for (term, &count) in query.terms.iter_mut().zip(&words.counts) {
            if count > 1 {
                term.weight = self.reading.repeated(term.weight, count);
            }
        }
    }

    /// Adds what parts of a word make together, where the catalog knows it: it writes `github`, and `text` has `GitHub`. The
    /// parts and their pairs then count a share ([`PART_WEIGHT`]). `each` is called as by [`Self::read`].
    fn read_compounds(&self, text: &str, query: &mut Query, words: &mut Words, mut each: impl FnMut(&str, &Query)) {
        if !is_fielded(self.reading.scorer) {
            return;
        }
        let mut of_parts: Vec<TermId> = Vec::new();
        for_each_compound(text, |compound, parts| {
            let Some(term) = self.lookup(compound).filter(|term| *term != STOP && words.read < MAX_QUERY_TERMS) else {
                return;
            };
            of_parts.clear();
            let (mut unknown, mut previous) = (0, None);
            for_each_word(parts, |part| match self.lookup(part) {
                Some(STOP) => {}
                Some(term) => {
                    of_parts.push(term);
                    if let Some(one) = previous.replace(term) {
                        of_parts.extend(self.pair((one, term)));
                        of_parts.extend(self.pair((term, one)));
                    }
                }
                None => {
                    unknown += 1;
                    previous = None;
                }
            });
            query.unknown = query.unknown.saturating_sub(unknown);
            for (part, &times) in query.terms.iter_mut().zip(&words.counts) {
                if times < 2 && of_parts.contains(&part.term) {
                    part.weight = part.weight.min(PART_WEIGHT);
                }
            }
            push_term(QueryTerm { term, weight: FULL_WEIGHT }, query, words);
            each(compound, query);
        });
    }

    /// Adds the terms of one normalised word, and the pair that it forms with the word before.
    fn push_word(&self, word: &str, query: &mut Query, words: &mut Words) {
        words.meant.clear();
        if words.read >= MAX_QUERY_TERMS {
            return;
        }
        match self.lookup(word) {
            Some(STOP) => {}
            Some(term) => {
                push_term(QueryTerm { term, weight: FULL_WEIGHT }, query, words);
                if let Some(previous) = words.previous.replace(term) {
                    self.push_pairs(previous, term, query, words);
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

    /// Adds the pairs of two neighbouring words of the query: the one in their order, and the one the other way round, unless the
    /// query has that in order too.
    fn push_pairs(&self, one: TermId, two: TermId, query: &mut Query, words: &mut Words) {
        if words.read < MAX_QUERY_TERMS
            && let Some(pair) = self.pair((one, two))
        {
            push_term(QueryTerm { term: pair, weight: FULL_WEIGHT }, query, words);
        }
        let weight = (self.reading.reversed_pairs * f64::from(FULL_WEIGHT)).round() as u32;
        if weight > 0
            && one != two
            && words.read < MAX_QUERY_TERMS
            && let Some(term) = self.pair((two, one))
            && !query.terms.iter().any(|known| known.term == term)
        {
            push_term(QueryTerm { term, weight }, query, words);
            if let Some(times) = words.counts.last_mut() {
                *times = 0;
            }
        }
    }

    /// Adds the terms of the known words that an unknown word may be a misspelling of.
    fn read_unknown(&self, word: &str, query: &mut Query, words: &mut Words) {
        let mut readings = Vec::new();
        if self.reading.scorer == Scorer::Fuzzy && query.unknown <= fuzzy::MOST_CORRECTED {
            fuzzy::expand(self, word, &mut readings);
        } else if self.reading.spelling > 0.0 && query.unknown <= MOST_CORRECTED {
            let mut spelt: Vec<(&[u8], TermId)> = Vec::new();
            Spelling::of(&self.image).for_each_reading(word, |word, term| spelt.push((word, term)));
            if let Some(patch) = &self.patch {
                Spelling::of(&patch.image).for_each_reading(word, |word, term| {
                    spelt.extend(patch.terms.get(term as usize).map(|term| (word, *term)));
                });
            }
            spelt.sort_unstable();
            spelt.dedup();
            // The pieces of a misspelt word mean something by chance. What the table has as a word is none.
            let is_misspelt = self.semantic.as_ref().is_some_and(|semantic| !semantic.table.knows(word));
            if let ([(reading, _)], true) = (spelt.as_slice(), is_misspelt) {
                words.meant.push_str(std::str::from_utf8(reading).unwrap_or_default());
            }
            share(spelt, self.reading.spelling, &mut readings);
        }
        for reading in readings {
            push_term(reading, query, words);
        }
    }

    /// The term of a normalised word, [`STOP`], or `None` for a word that the catalog does not know.
    fn lookup(&self, word: &str) -> Option<TermId> {
        let of = |tables: fn(&Image) -> Dictionary<'_>, word: &str| {
            let first = tables(&self.image).get(word);
            first.or_else(|| {
                let patch = self.patch.as_ref()?;
                let term = tables(&patch.image).get(word)?;
                if term == STOP { Some(STOP) } else { patch.terms.get(term as usize).copied() }
            })
        };
        if let Some(term) = of(words, word) {
            return Some(term);
        }
        if is_stop_word(word) {
            return Some(STOP);
        }
        of(stems, &self.analyzer.stem(word))
    }

    /// The number of two neighbouring terms.
    fn pair(&self, pair: (TermId, TermId)) -> Option<TermId> {
        pairs(&self.image).get(pair).or_else(|| {
            let patch = self.patch.as_ref()?;
            let pair = pairs(&patch.image).get((patch.own_term(pair.0)?, patch.own_term(pair.1)?))?;
            patch.terms.get(pair as usize).copied()
        })
    }

    /// Whether a term is a pair.
    fn is_pair(&self, term: TermId) -> bool {
        let own = self.lists().lists.len().saturating_sub(1);
        match (term as usize).checked_sub(own) {
            None => term as usize >= self.terms(),
            Some(second) => self.patch.as_ref().is_some_and(|patch| second >= stems(&patch.image).len()),
        }
    }

    /// The best items for `text`: score descending, then item number ascending. Items that share no term with the
    /// query, are not named by it and are not near it in meaning are left out. `allow` is called only for items that
    /// may enter the result, for some of them twice.
    pub fn search(&self, text: &str, depth: Depth, allow: impl Fn(u32) -> bool, scratch: &mut Scratch) -> Vec<Hit> {
        let mut query = std::mem::take(&mut scratch.query);
        self.analyze_into(text, &mut query, &mut scratch.words);
        let (hits, _) = self.search_query(&query, depth, allow, scratch);
        scratch.query = query;
        hits
    }

    /// [`Self::search`] for a query that is already analysed; also returns how much the semantic parts count for it,
    /// which depends on neither `depth` nor `allow`.
    pub fn search_query(
        &self,
        query: &Query,
        depth: Depth,
        allow: impl Fn(u32) -> bool,
        scratch: &mut Scratch,
    ) -> (Vec<Hit>, Fusions) {
        let (hits, best, fusions) = if let (Some((_, model)), Some(meaning)) = (&self.model, &query.model) {
            // Encoding the query costs more than comparing it with every tool.
            let all = self.all_by_words(query, scratch);
            let best = largest(&all);
            let near = query.meaning.as_ref().map(|meaning| self.all_by_meaning(meaning)).unwrap_or_default();
            let fusions = self.fusions(query, self.compares_all().then_some(near.as_slice()));
            let by_table = |item: u32| near.get(item as usize).copied().unwrap_or(0);
            (rank(&all, &fusions, by_table, model.similarities(meaning), depth, &allow), best, fusions)
        } else if let (Some(semantic), Some(meaning)) = (&self.semantic, &query.meaning) {
            let fusion = |nearest| Fusion::new(semantic.weight, self.scale, nearest);
            let (hits, best, table) = if self.compares_all() {
                self.best_of_all(query, meaning, fusion, depth, &allow, scratch)
            } else {
                let proposed = Fusion::proposed(depth.k());
                let Found { hits, best } = self.by_words(query, proposed, &allow, scratch);
                let (near, nearest) = self.by_meaning(meaning, proposed, &allow);
                let table = fusion(nearest);
                let words = |item| self.words_score(query, item, scratch);
                let similarity = |item| self.similarity(item, meaning);
                (table.rank(&hits, &near, words, similarity, depth), best, table)
            };
            (hits, best, Fusions { table, ..Fusions::default() })
        } else {
            match depth {
                Depth::Exactly(k) => {
                    let Found { hits, best } = self.by_words(query, k, &allow, scratch);
                    (hits, best, Fusions::default())
                }
                Depth::ThroughTies(k) => {
                    let all = self.all_by_words(query, scratch);
                    (through_ties(&all, k, &allow), largest(&all), Fusions::default())
                }
            }
        };
        let words = |item| self.words_score(query, item, scratch);
        let lifted = self.lift_exact(query, best, &fusions, &allow, words);
        self.clear(scratch);
        (merge_exact(hits, lifted, depth), fusions)
    }

    /// The `k` best items by words; their scores are kept until [`Self::clear`].
    fn by_words(&self, query: &Query, k: usize, allow: &impl Fn(u32) -> bool, scratch: &mut Scratch) -> Found {
        let Some((patch, second)) = self.patched_lists(&query.terms, &mut scratch.second_terms) else {
            scratch.second_scores.forget_read();
            return self.lists().search(&query.terms, k, allow, &mut scratch.scores);
        };
        let allowed = |side| move |item| patch.number(side, item).is_some_and(allow);
        let first = self.lists().search(&query.terms, k, &allowed(Side::First), &mut scratch.scores);
        let second = second.search(&scratch.second_terms, k, &allowed(Side::Second), &mut scratch.second_scores);
        let mut hits = patch.merged(&first.hits, &second.hits);
        hits.truncate(k);
        Found { hits, best: first.best.max(second.best) }
    }

    /// The score by words of every item of the catalog.
    fn all_by_words<'s>(&self, query: &Query, scratch: &'s mut Scratch) -> Cow<'s, [u32]> {
        let first = self.lists().score_all(&query.terms, &mut scratch.scores);
        let Some((patch, second)) = self.patched_lists(&query.terms, &mut scratch.second_terms) else {
            scratch.second_scores.forget_read();
            return Cow::Borrowed(first);
        };
        let second = second.score_all(&scratch.second_terms, &mut scratch.second_scores);
        Cow::Owned(patch.arranged(first, second))
    }

    /// The score by words of one item after [`Self::by_words`] or [`Self::all_by_words`].
    fn words_score(&self, query: &Query, item: u32, scratch: &Scratch) -> u32 {
        let Some(patch) = &self.patch else { return self.lists().score_of(&query.terms, item, &scratch.scores) };
        match patch.place(item) {
            Some((Side::First, item)) => self.lists().score_of(&query.terms, item, &scratch.scores),
            Some((Side::Second, item)) => {
                let second = patch.lists();
                second.score_of(&scratch.second_terms, item, &scratch.second_scores)
            }
            None => 0,
        }
    }

    fn clear(&self, scratch: &mut Scratch) {
        self.lists().clear(&mut scratch.scores);
        if self.patch.is_some() {
            self.lists().clear(&mut scratch.second_scores);
        }
    }

    /// Whether a search compares the vectors of all items.
    fn compares_all(&self) -> bool {
        let vectors = self.vectors();
        matches!(vectors, DocumentVectors::Panels(_)) && vectors.are_of(self.items as usize)
    }

    /// The best items of those of both images, all compared; the best score by words, and the fusion for the best
    /// similarity.
    fn best_of_all(
        &self,
        query: &Query,
        meaning: &QueryVector,
        fusion: impl Fn(i32) -> Fusion,
        depth: Depth,
        allow: &impl Fn(u32) -> bool,
        scratch: &mut Scratch,
    ) -> (Vec<Hit>, u32, Fusion) {
        let first = self.lists().score_all(&query.terms, &mut scratch.scores);
        let mut near = similarities(self.vectors(), meaning, self.items as usize);
        let Some((patch, lists)) = self.patched_lists(&query.terms, &mut scratch.second_terms) else {
            scratch.second_scores.forget_read();
            let table = fusion(largest(&near));
            return (table.rank_all(first, &near, depth, allow), largest(first), table);
        };
        for item in &patch.gone {
            if let Some(similarity) = near.get_mut(*item as usize) {
                *similarity = 0;
            }
        }
        let second = lists.score_all(&scratch.second_terms, &mut scratch.second_scores);
        let added = similarities(DocumentVectors::of(&patch.image), meaning, patch.added());
        let table = fusion(largest(&near).max(largest(&added)));
        let ranked = |side, scores: &[u32], near: &[i32]| {
            table.rank_all(scores, near, depth, &|item| patch.number(side, item).is_some_and(allow))
        };
        let mut hits = patch.merged(&ranked(Side::First, first, &near), &ranked(Side::Second, second, &added));
        depth.cut(&mut hits);
        (hits, largest(first).max(largest(second)), table)
    }

    /// The similarity of every item of the catalog.
    fn all_by_meaning(&self, meaning: &QueryVector) -> Vec<i32> {
        let first = similarities(self.vectors(), meaning, self.items as usize);
        let Some(patch) = &self.patch else { return first };
        let second = similarities(DocumentVectors::of(&patch.image), meaning, patch.added());
        patch.arranged(&first, &second)
    }

    /// The `k` nearest items by meaning, and the best similarity of all.
    fn by_meaning(&self, meaning: &QueryVector, k: usize, allow: &impl Fn(u32) -> bool) -> (Vec<Near>, i32) {
        let Some(patch) = &self.patch else { return self.vectors().proposals(meaning, k, &[], allow) };
        let allowed = |side| move |item| patch.number(side, item).is_some_and(allow);
        let (first, first_best) = self.vectors().proposals(meaning, k, &patch.gone, &allowed(Side::First));
        let added = DocumentVectors::of(&patch.image);
        let (second, second_best) = added.proposals(meaning, k, &[], &allowed(Side::Second));
        let numbered = |side| move |near: &Near| Some(Near { item: patch.number(side, near.item)?, ..*near });
        let both = first.iter().filter_map(numbered(Side::First));
        let mut near: Vec<Near> = both.chain(second.iter().filter_map(numbered(Side::Second))).collect();
        near.sort_unstable_by_key(Near::order);
        near.truncate(k);
        (near, first_best.max(second_best))
    }

    /// The similarity of an item and a query.
    fn similarity(&self, item: u32, meaning: &QueryVector) -> i32 {
        let Some(patch) = &self.patch else { return self.vectors().similarity(item, meaning) };
        match patch.place(item) {
            Some((Side::First, item)) => self.vectors().similarity(item, meaning),
            Some((Side::Second, item)) => DocumentVectors::of(&patch.image).similarity(item, meaning),
            None => 0,
        }
    }

    /// The `hits` of a navigation with the items that the query names exactly on top, cut to `k`.
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
        let words = |item| query.terms.iter().map(|&term| self.contribution(term, item) as u32).sum();
        let lifted = self.lift_exact(query, best, &Fusions::default(), &allow, words);
        merge_exact(hits, lifted, Depth::Exactly(k))
    }

    /// The best score by words of any item.
    fn best(&self, query: &Query, scratch: &mut Scratch) -> u32 {
        let found = self.by_words(query, 1, &|_| true, scratch);
        self.clear(scratch);
        found.best
    }

    /// The score of every item, by item number: the exhaustive control for navigation and for explanations.
    #[must_use]
    pub fn score_all(&self, query: &Query) -> Vec<u64> {
        let mut scratch = Scratch::default();
        let words = self.all_by_words(query, &mut scratch);
        let best = largest(&words);
        let fusion = self.fusions(query, None);
        let mut scores: Vec<u64> = words.iter().copied().map(u64::from).collect();
        for (item, score) in scores.iter_mut().enumerate() {
            *score += self.meaning_parts(query, &fusion, item as u32);
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

    /// The score that a search for `query` with this `fusion` gives to one item.
    pub(super) fn score(&self, query: &Query, fusion: &Fusions, item: u32, scratch: &mut Scratch) -> u64 {
        let words: u64 = query.terms.iter().map(|&term| self.contribution(term, item)).sum();
        let score = words + self.meaning_parts(query, fusion, item);
        if query.exact.binary_search(&item).is_err() {
            return score;
        }
        score + exact_bonus(u64::from(self.best(query, scratch)) + fusion.most())
    }

    /// How much each semantic part counts for a query; `near` are the similarities of all items by the table, where they
    /// are known.
    fn fusions(&self, query: &Query, near: Option<&[i32]>) -> Fusions {
        let mut fusions = Fusions::default();
        if let (Some(semantic), Some(meaning)) = (&self.semantic, &query.meaning) {
            let nearest = match near {
                Some(near) => largest(near),
                None if self.compares_all() => largest(&self.all_by_meaning(meaning)),
                None => self.by_meaning(meaning, 1, &|_| true).1,
            };
            fusions.table = Fusion::new(semantic.weight, self.scale, nearest);
        }
        if let (Some((weight, model)), Some(meaning)) = (&self.model, &query.model) {
            fusions.model = Fusion::new(*weight, self.scale, model.similarities(meaning).max().unwrap_or(0));
        }
        fusions
    }

    /// What tells whether `hits`, the first of the ranking of `query`, fit it.
    pub(super) fn evidence(&self, query: &Query, hits: &[Hit]) -> Evidence {
        if let (Some((_, model)), Some(meaning)) = (&self.model, &query.model) {
            let best = hits.iter().map(|hit| model.similarity(hit.item, meaning)).max().unwrap_or(0);
            return Evidence::Model { cosine: f64::from(best) / model::UNITS_OF_ONE };
        }
        let rare = self.rarity_of_unknown();
        let Some(first) = hits.first() else { return Evidence::Formula { coverage: 0.0, lead: 0.0 } };
        if !is_fielded(self.reading.scorer) {
            let last = hits.get(LEAD_OVER).map_or(0, |hit| hit.score);
            let lead = first.score.saturating_sub(last) as f64 / SCORE_UNITS as f64 / rare;
            return Evidence::Formula { coverage: self.coverage(query, first.score), lead };
        }
        let words: u64 = query.terms.iter().map(|&term| self.contribution(term, first.item)).sum();
        let all = self.rarities(query);
        let unknown = if all > 0.0 { rare * query.unknown as f64 / all } else { 0.0 };
        Evidence::Words { coverage: self.coverage(query, words), said: all / rare, unknown }
    }

    /// What table and encoder together add to the score of `item`.
    fn meaning_parts(&self, query: &Query, fusions: &Fusions, item: u32) -> u64 {
        self.semantic_part(query, fusions, item) + self.model_part(query, fusions, item)
    }

    /// What the encoder adds to the score of `item`.
    pub(super) fn model_part(&self, query: &Query, fusions: &Fusions, item: u32) -> u64 {
        let (Some((_, model)), Some(meaning)) = (&self.model, &query.model) else { return 0 };
        fusions.model.part(model.similarity(item, meaning))
    }

    /// What the table adds to the score of `item`.
    pub(super) fn semantic_part(&self, query: &Query, fusion: &Fusions, item: u32) -> u64 {
        match &query.meaning {
            Some(meaning) => fusion.table.part(self.similarity(item, meaning)),
            None => 0,
        }
    }

    /// What each word of `text` adds to the score of `item`, in query order, and each pair after its second word; words
    /// that add nothing are left out. A word stands for its repeats and its other forms. These values, the semantic
    /// parts and the bonus of an exact name add up to the whole score.
    #[must_use]
    pub fn explain(&self, text: &str, item: u32) -> Vec<(String, u64)> {
        self.explain_words(&self.words(text), item)
    }

    /// The words and pairs of `text` with the terms that they stand for, each term with the first word that has it:
    /// what [`Self::explain_words`] needs once for many items.
    pub(super) fn words(&self, text: &str) -> Vec<(String, Vec<QueryTerm>)> {
        let text = &without_pasted_lines(text);
        let mut query = Query::default();
        // For each new term its position and its text in the query.
        let mut called: Vec<(usize, String)> = Vec::new();
        let mut before = String::new();
        let mut read = Words::default();
        self.read(text, &mut query, &mut read, |word, _, query| {
            for (at, term) in query.terms.iter().enumerate().skip(called.len()) {
                let is_pair = self.is_pair(term.term);
                called.push((at, if is_pair { format!("{before} {word}") } else { word.to_owned() }));
            }
            if self.lookup(word) != Some(STOP) {
                before.clear();
                before.push_str(word);
            }
        });
        self.read_compounds(text, &mut query, &mut read, |word, query| {
            called.extend((called.len()..query.terms.len()).map(|at| (at, word.to_owned())));
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

    /// The contribution of one query term to one item's score.
    fn contribution(&self, QueryTerm { term, weight }: QueryTerm, item: u32) -> u64 {
        let impact = match self.patch.as_ref().map(|patch| (patch, patch.place(item))) {
            None => self.lists().impact(term, item),
            Some((_, Some((Side::First, item)))) => self.lists().impact(term, item),
            Some((patch, Some((Side::Second, item)))) => {
                let second = patch.lists();
                patch.own_term(term).map_or(0, |term| second.impact(term, item))
            }
            Some((_, None)) => 0,
        };
        u64::from(weighted(impact, weight))
    }

    /// The number of postings of a query's terms: what a search reads when it skips nothing.
    #[must_use]
    pub fn postings_of(&self, query: &Query) -> usize {
        query.terms.iter().map(|term| self.frequency(term.term)).sum()
    }

    /// Puts the items that the query names exactly above everything else. `words` is an item's score by words, `best`
    /// the best of any item, so that a filter changes no score.
    fn lift_exact(
        &self,
        query: &Query,
        best: u32,
        fusion: &Fusions,
        allow: &impl Fn(u32) -> bool,
        words: impl Fn(u32) -> u32,
    ) -> Vec<Hit> {
        if query.exact.is_empty() {
            return Vec::new();
        }
        let bonus = exact_bonus(u64::from(best) + fusion.most());
        let score = |item: u32| u64::from(words(item)) + self.meaning_parts(query, fusion, item) + bonus;
        let allowed = query.exact.iter().filter(|&&item| allow(item));
        let mut lifted: Vec<Hit> = allowed.map(|&item| Hit { item, score: score(item) }).collect();
        lifted.sort_unstable_by_key(Hit::order);
        lifted
    }

    /// The score of an item that would answer `query` in full, in units of 2⁻¹⁸: the idf of its words, with unknown
    /// words counted as the rarest possible, and the whole share of a name. It makes the scores of different queries
    /// comparable. It is not a strict bound: a word in every field comes close to its idf, and pairs, which few items
    /// have, come on top. The plain scorers have no share of a name; that of [`Scorer::TfIdf`] has another scale.
    #[must_use]
    pub fn ideal(&self, query: &Query) -> f64 {
        let total = self.rarities(query);
        if total > 0.0 { (total + self.reading.name_share) * SCORE_UNITS as f64 } else { 0.0 }
    }

    /// The share of the query that a score by words accounts for, in [0, 1]: the score divided by [`Self::ideal`], capped at 1.
    #[must_use]
    pub fn coverage(&self, query: &Query, score: u64) -> f64 {
        let ideal = self.ideal(query);
        if ideal > 0.0 { (score as f64 / ideal).min(1.0) } else { 0.0 }
    }
}

impl Index {
    /// The idf of all words of a query at their weights, added up; unknown words count as the rarest possible.
    pub(super) fn rarities(&self, query: &Query) -> f64 {
        let words = query.terms.iter().filter(|term| !self.is_pair(term.term));
        let known: f64 = words
            .map(|&QueryTerm { term, weight }| {
                idf(self.items_at_build(), self.frequency(term)) * f64::from(weight) / f64::from(FULL_WEIGHT)
            })
            .sum();
        known + self.rarity_of_unknown() * query.unknown as f64
    }

    /// The idf of a word that no item has: the highest possible.
    pub(super) fn rarity_of_unknown(&self) -> f64 {
        idf(self.items_at_build(), 0)
    }

    /// The idf of one stem; for an unknown stem, that of a word in no item.
    pub(super) fn rarity(&self, stem: &str) -> f64 {
        let frequency = self.stem_frequency(stem).or_else(|| {
            let patch = self.patch.as_ref()?;
            let term = stems(&patch.image).get(stem)?;
            Some(self.frequency(*patch.terms.get(term as usize)?))
        });
        idf(self.items_at_build(), frequency.unwrap_or(0))
    }
}

/// The largest of these numbers; 0 where there are none.
fn largest<N: Copy + Ord + Default>(numbers: &[N]) -> N {
    numbers.iter().copied().max().unwrap_or_default()
}

/// The similarities of all `items` of an image.
fn similarities(vectors: DocumentVectors<'_>, meaning: &QueryVector, items: usize) -> Vec<i32> {
    let one_by_one = || (0..items as u32).map(|item| vectors.similarity(item, meaning)).collect();
    vectors.all(meaning, items).unwrap_or_else(one_by_one)
}

/// The `k` best of all scores, and those equal to the last of them.
fn through_ties(scores: &[u32], k: usize, allow: &impl Fn(u32) -> bool) -> Vec<Hit> {
    let mut top = TopK::new(k);
    top.scan(0, scores, allow);
    let mut hits = top.into_hits();
    if let Some(last) = hits.last().copied().filter(|_| hits.len() == k) {
        let after = (last.item + 1..).zip(scores.iter().skip(last.item as usize + 1));
        let tied = after.filter(|&(item, &score)| u64::from(score) == last.score && allow(item));
        hits.extend(tied.map(|(item, &score)| Hit { item, score: u64::from(score) }));
    }
    hits
}

fn words(image: &Image) -> Dictionary<'_> {
    Dictionary::new(image.cells(Part::WordSlots), image.cells(Part::WordEntries), image.part(Part::WordText))
}

fn stems(image: &Image) -> Dictionary<'_> {
    Dictionary::new(image.cells(Part::TermSlots), image.cells(Part::TermEntries), image.part(Part::TermText))
}

fn pairs(image: &Image) -> PairTable<'_> {
    PairTable::new(image.cells(Part::PairStarts), image.cells(Part::PairSeconds))
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

/// An impact times a weight, rounded down.
pub(super) fn weighted(impact: u32, weight: u32) -> u32 {
    // The weight of a repeated word is at most its count: the quotient is at most the largest impact times
    // MAX_QUERY_TERMS.
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

/// Inverse document frequency ln(1 + (N − n + ½) / (n + ½)): the weight of Robertson and Spärck Jones in the form that
/// Lucene uses, which is always positive.
pub(super) fn idf(items: usize, items_with: usize) -> f64 {
    let (items, with) = (items as f64, items_with as f64);
    libm::log(1.0 + (items - with + 0.5) / (with + 0.5))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::config::{Field, FieldWeights, NameMatch};
    use super::*;
    use contextweaver_core::catalog::SelectableItem;

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

    /// Names of two words with capitals, as descriptions, names of tools and people write them.
    #[test]
    fn names_are_found_whether_their_parts_are_apart_or_not() {
        let catalog = catalog(&[
            ("post_a", "Publish a post on LinkedIn."),
            ("post_b", "Publish a post on WordPress."),
            ("facebook_post", "Publish a post."),
            ("assignIPv6Address", "Give an interface one."),
            ("listS3Buckets", "Show storage."),
        ]);
        let index = Index::build(&catalog, &RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        for (query, name) in [
            ("linkedin", "post_a"),
            ("a post on linkedin", "post_a"),
            ("LinkedIn", "post_a"),
            ("publish on wordpress", "post_b"),
            ("FaceBook", "facebook_post"),
            ("ipv6", "assignIPv6Address"),
            ("s3", "listS3Buckets"),
        ] {
            let hits = index.search(query, Depth::Exactly(1), |_| true, &mut Scratch::default());
            assert_eq!(&*catalog.items()[hits[0].item as usize].name, name, "{query}");
            assert_eq!(index.analyze(query).unknown, 0, "{query}");
            let whole: u64 = index.explain(query, hits[0].item).iter().map(|(_, part)| part).sum();
            assert_eq!(hits[0].score, whole, "{query}");
        }
        let plain = Index::build(&catalog, &flat(1.2, 0.75));
        assert!(ranked(&plain, "linkedin").is_empty());
    }

    /// The first tool of each list has the name in one, others have its parts.
    #[test]
    fn a_name_counts_alike_however_the_query_writes_it() {
        for (tools, queries) in [
            (
                [("github_comment_add", "Comment."), ("issue_get", "An issue on GitHub."), ("git_commit", "Commit.")],
                ["comment GitHub", "comment on github", "add comment GitHub"],
            ),
            (
                [("powerpoint_save", "Write it."), ("deck_open", "Open a PowerPoint."), ("point_add", "To a chart.")],
                ["save PowerPoint", "save powerpoint", "saved in PowerPoint"],
            ),
        ] {
            let catalog = catalog(&tools);
            let index = Index::build(&catalog, &RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
            for query in queries {
                let hits = index.search(query, Depth::Exactly(1), |_| true, &mut Scratch::default());
                assert_eq!(&*catalog.items()[hits[0].item as usize].name, tools[0].0, "{query}");
                let whole: u64 = index.explain(query, hits[0].item).iter().map(|(_, part)| part).sum();
                assert_eq!(hits[0].score, whole, "{query}");
            }
        }
        // Where nothing writes it in one, the parts keep their weight; what is said twice keeps it too.
        let catalog = catalog(&[("user_get", "By its id."), ("userid_check", "A number."), ("git_push", "To GitHub.")]);
        let index = Index::build(&catalog, &RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        let weights = |query: &str| index.analyze(query).terms.iter().map(|term| term.weight).collect::<Vec<_>>();
        assert_eq!(weights("getUser"), [FULL_WEIGHT, FULL_WEIGHT, FULL_WEIGHT / 2]);
        assert_eq!(weights("userId"), [PART_WEIGHT, PART_WEIGHT, FULL_WEIGHT]);
        assert!(weights("git: GitHub")[0] > FULL_WEIGHT);
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
        // The other way round the pair weighs half.
        assert_eq!(ranked(&index, "list mail now")[0], (0, round(first + list + 0.5 * pair)));
    }

    #[test]
    fn neighbours_of_a_first_sentence_count_a_share_of_those_of_a_name() {
        let catalog = catalog(&[
            ("alpha", "Create an issue. Then close tickets."),
            ("beta", "Mail lists"),
            ("create_issue_type", "New ones"),
        ]);
        let what_pairs_add = |description_pairs, reversed_pairs, query: &str| {
            let base = RoutingConfig { semantic: 0.0, description_pairs, reversed_pairs, ..RoutingConfig::default() };
            let without = RoutingConfig { name: NameMatch { pairs: 0.0, ..base.name }, ..base };
            let [with, without] = [base, without].map(|config| {
                let index = Index::build(&catalog, &config);
                index.score_all(&index.analyze(query))
            });
            std::array::from_fn::<u64, 3, _>(|item| with[item] - without[item])
        };
        // The names have 1, 1 and 3 words, 5/3 in the mean; a pair is in one tool or in two.
        let long = 1.0 / (0.25 + 0.75 * 3.0 / (5.0 / 3.0));
        let added = |tools: f64, tf: f64| {
            let idf = (1.0 + (3.0 - tools + 0.5) / (tools + 0.5)).ln();
            (0.7 * idf * tf / (tf + 1.0) * SCORE_UNITS as f64).round() as u64
        };
        let table = [
            // The weight in a description, that of the other order, the query; what pairs add to each tool.
            (0.0, 0.5, "create issue", [0, 0, added(1.0, long)]),
            (0.25, 0.5, "create issue", [added(2.0, 0.25), 0, added(2.0, long)]),
            (1.0, 0.5, "create an issue", [added(2.0, 1.0), 0, added(2.0, long)]),
            (0.25, 0.5, "issue to create", [added(2.0, 0.25) / 2, 0, added(2.0, long) / 2]),
            // What the query has in order counts so, and once, wherever it has the other order too.
            (0.25, 0.5, "create issue create", [added(2.0, 0.25), 0, added(2.0, long)]),
            (0.25, 0.5, "issue create issue", [added(2.0, 0.25), 0, added(2.0, long)]),
            (0.25, 0.5, "issue create mail issue create", [added(2.0, 0.25) / 2, 0, added(2.0, long) / 2]),
            (0.25, 0.0, "issue to create", [0, 0, 0]),
            (0.25, 0.5, "close tickets", [0, 0, 0]),
            (0.25, 0.5, "mail list", [0, added(1.0, 0.25), 0]),
        ];
        let found = table.map(|(description, reversed, query, _)| what_pairs_add(description, reversed, query));
        assert_eq!(found, table.map(|(.., expected)| expected));
    }

    #[test]
    fn a_word_that_the_end_of_a_first_sentence_cuts_is_no_word() {
        let text = format!("{}repository settings", "x ".repeat(117));
        assert!(super::super::sentence::first_sentence(&text).ends_with(" reposi"));
        let of = |other: &str| Index::build(&catalog(&[("alpha", &text), ("beta", other)]), &RoutingConfig::default());
        let index = of("y");
        assert_eq!((index.analyze("reposi").unknown, index.stem_frequency("reposi")), (1, None));
        // Nor where another tool has it as one.
        assert_eq!(of("reposi").analyze("x reposi").terms.len(), 2);
    }

    #[test]
    fn a_divisor_of_nothing_gives_no_endless_score() {
        let empty = Field { weight: 8.0, b: 1.0 };
        let fields = FieldWeights { name: empty, ..FieldWeights::default() };
        let config = RoutingConfig { fields, semantic: 0.0, ..RoutingConfig::default() };
        let found =
            ranked(&Index::build(&catalog(&[("the", "create issue"), ("send", "mail")]), &config), "create issue");
        assert!(found.len() == 1 && (0.5..100.0).contains(&found[0].1), "{found:?}");
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
    fn a_misspelt_word_means_what_it_is_read_as() {
        let catalog = catalog(&[("draft_email", "house"), ("list_boards", "board"), ("pay", "charge")]);
        let index = Index::build(&catalog, &RoutingConfig::default());
        let meaning = |query: &str| index.analyze(query).meaning;
        assert_eq!(meaning("emial"), meaning("email"));
        assert_eq!(index.meaning("emial"), meaning("email"));
        // A word of the language, a word with two readings, and one without any mean what their pieces do.
        for word in ["horse", "boarda", "qwertz"] {
            assert_eq!(meaning(word), Some(Table::builtin().encode_query(word)), "{word}");
        }
        assert_ne!(meaning("horse"), meaning("house"));
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

    #[test]
    fn a_patch_finds_what_came_and_not_what_went() {
        let tools: Vec<(String, String)> =
            (0..20).map(|number| (format!("list_things_{number}"), "Lists all of them".to_owned())).collect();
        let tools: Vec<(&str, &str)> = tools.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let (old, config) = (catalog(&tools), RoutingConfig::default());
        let index = Index::build(&old, &config);
        let mut items = old.items().to_vec();
        let gone = items.remove(3);
        items
            .insert(0, SelectableItem::tool("a:walk_zebra#00000000", "a", "walk_zebra", "Takes the animal for a walk"));
        let new = Catalog::new(items.clone()).unwrap();
        let patched = index.patched(&old, &new, &config).unwrap();
        let first = |text: &str| {
            let hits = patched.search(text, Depth::Exactly(1), |_| true, &mut Scratch::default());
            hits.first().map(|hit| new.items()[hit.item as usize].name.as_str())
        };
        assert_eq!(first("a walk for my zebra, please"), Some("walk_zebra"));
        assert_eq!(first("walk_zebra"), Some("walk_zebra"));
        assert_ne!(first(&gone.name), Some(gone.name.as_str()));
        assert_eq!(patched.explain("the zebra", 0)[0].0, "zebra");
        // Too much at once is not a patch.
        items.drain(..4);
        assert!(index.patched(&old, &Catalog::new(items).unwrap(), &config).is_none());
        let plain = RoutingConfig { scorer: Scorer::Bm25, ..RoutingConfig::default() };
        assert!(index.patched(&old, &new, &plain).is_none());
    }

    const WORDS: [&str; 12] =
        ["mail", "send", "list", "issue", "issues", "create", "page", "wiki", "branch", "the", "mails", "file"];

    fn sentence(length: usize) -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(&WORDS[..]), 0..length).prop_map(|words| words.join(" "))
    }

    fn any_tool() -> impl Strategy<Value = (String, String)> {
        let name = prop::collection::vec(prop::sample::select(&WORDS[..]), 1..3).prop_map(|words| words.join("_"));
        (name, sentence(8))
    }

    fn tools() -> impl Strategy<Value = Vec<(String, String)>> {
        prop::collection::vec(any_tool(), 1..150)
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
            // What is found by meaning alone is not all that has a score: see `fuse.rs`.
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
        fn a_patched_index_answers_as_one_that_was_built_whole(
            before in prop::collection::vec(any_tool(), 9..40),
            changes in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(any_tool())), 0..5),
            query in sentence(8),
            k in 1usize..20,
        ) {
            let items = |tools: &[(String, String)]| -> Vec<SelectableItem> {
                let numbered = tools.iter().zip(0..);
                numbered.map(|((name, text), number): (&(String, String), u32)| {
                    SelectableItem::tool(&format!("t:{number:08x}"), "t", name, text)
                }).collect()
            };
            let old = Catalog::new(items(&before)).unwrap();
            let mut after = items(&before);
            for (place, change) in changes {
                let at = place.index(after.len());
                match change {
                    Some((name, text)) if at % 2 == 0 => after[at] = SelectableItem { name, description: text, ..after[at].clone() },
                    Some((name, text)) => {
                        let id = format!("t:{:08x}x", after.len());
                        after.insert(at, SelectableItem::tool(&id, "t", &name, &text));
                    }
                    None => drop(after.remove(at)),
                }
            }
            let Ok(new) = Catalog::new(after) else { return Ok(()) };
            // A word that only removed items have is known all the same; spelling would read it otherwise.
            let config = RoutingConfig { spelling: 0.0, ..RoutingConfig::default() };
            let index = Index::build(&old, &config);
            let Some(patched) = index.patched(&old, &new, &config) else { return Ok(()) };
            let image = indexing::build(new.items(), &config, Some(&index), Table::builtin());
            // A patched index keeps what rare words are worth, as it keeps the weights of all.
            let whole = Index { scale: index.scale, ..Index::assemble(image, new.len() as u32, &config, Table::builtin()) };
            prop_assert_eq!(patched.items(), new.len());
            let mut scratch = Scratch::default();
            for text in [&query, &new.items()[0].name] {
                for depth in [Depth::Exactly(k), Depth::ThroughTies(k)] {
                    let allow = |item: u32| item % 5 != 4;
                    let expected = whole.search(text, depth, allow, &mut Scratch::default());
                    prop_assert_eq!(&patched.search(text, depth, allow, &mut scratch), &expected);
                }
                let (one, other) = (patched.analyze(text), whole.analyze(text));
                prop_assert_eq!(patched.score_all(&one), whole.score_all(&other));
                let (_, fusion) = patched.search_query(&one, Depth::Exactly(1), |_| true, &mut scratch);
                for (item, score) in (0..).zip(whole.score_all(&other)) {
                    prop_assert_eq!(patched.score(&one, &fusion, item, &mut scratch), score);
                }
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
