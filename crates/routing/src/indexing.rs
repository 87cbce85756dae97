//! Builds the image of an index from items.
//!
//! Items are read in blocks of [`BLOCK`], several at once: every block numbers its own words and terms as they come.
//! The blocks are then combined in order, which numbers the terms of the whole catalog as reading it item by item
//! would, so the bytes depend neither on the number of threads nor on their timing. A block of items is also a block of
//! postings, so a term of a block becomes a chunk of its list.

use std::borrow::Borrow;
use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::config::{Field, NameMatch, RoutingConfig, Scorer};
use super::dictionary::{Dictionary, PairTable};
use super::exact::ExactNames;
use super::hit::SCORE_UNITS;
use super::image::{Image, ImageBuilder, Part};
use super::index::{Index, STOP, TermId, idf, is_fielded};
use super::postings::{BLOCK, Directory, MAX_IMPACT, packed};
use super::semantic::{DocumentVectors, Table};
use super::sentence::whole_words;
use super::spelling::Spelling;
use contextweaver_core::catalog::SelectableItem;
use contextweaver_core::text::{Analyzer, for_each_compound, for_each_word, is_stop_word};

/// The searchable fields, in the order of [`super::FieldWeights`].
pub(super) const FIELDS: usize = 5;

/// The positions of the name and of the description among them.
const NAME: usize = 0;
const DESCRIPTION: usize = 1;

/// The least divisor of a term frequency: that of an empty field where `b` is 1 would make it infinite.
const LEAST_DIVISOR: f64 = 1e-9;

/// The number of blocks whose impacts are held at the same time.
const BATCH: usize = 64;

/// The image of an index over `items`.
///
/// Scores depend on the whole catalog: on the number of items, on how many have a word, and on mean lengths. With
/// `base`, the index of another catalog, these numbers are taken from there, so that the items score as they would in
/// it; words that it does not have are as frequent as they are here. The vectors come from `table`.
pub(super) fn build<I: Borrow<SelectableItem> + Sync>(
    items: &[I],
    config: &RoutingConfig,
    base: Option<&Index>,
    table: &Table,
) -> Image {
    let reader = Reader::new(config);
    let blocks: Vec<Block> = items.par_chunks(BLOCK).map(|items| reader.read(items)).collect();
    let vocabulary = Vocabulary::of(&blocks);
    let counted = Statistics::of(&blocks, &vocabulary);
    let pairs = Pairs::of(&blocks, &vocabulary);
    let mut directory = Directory::new(
        counted.chunks.iter().zip(&counted.frequencies).map(|(chunks, postings)| (*chunks, *postings)),
        pairs.lists().map(|list| (pairs.blocks_of(list), pairs.items_of(list))),
    );
    let statistics = match base {
        Some(base) => counted.corrected_by(base, &vocabulary),
        None => counted,
    };
    let Vocabulary { words, terms, numbers } = vocabulary;
    let (words, terms) = (sorted(words), sorted(terms));

    let mut image = ImageBuilder::default();
    image.push(Part::Means, statistics.means().map(f64::to_le_bytes));
    push_words(&words, [Part::WordSlots, Part::WordEntries, Part::WordText], &mut image);
    push_words(&terms, [Part::TermSlots, Part::TermEntries, Part::TermText], &mut image);
    let first_pair = terms.len() as TermId;
    let (starts, seconds) = PairTable::encode(pairs.lists().map(|list| list[0].0), first_pair);
    image.push(Part::PairStarts, starts);
    image.push(Part::PairSeconds, seconds);

    let scoring = Scoring::new(config, &statistics);
    let mut postings = vec![0u8; directory.postings() * 4];
    let (cells, _) = postings.as_chunks_mut::<4>();
    put_words(&scoring, &blocks, &numbers, &mut directory, cells);
    let mut stems = vec![""; terms.len()];
    terms.iter().for_each(|(stem, number)| stems[*number as usize] = stem);
    for (number, list) in (first_pair..).zip(pairs.lists()) {
        let known = base.map_or(0, |base| base.pair_frequency(list[0].0, &stems));
        pairs.score(list, known, &scoring, &blocks, |block, scored| directory.put(number, block, scored, cells));
    }
    drop(blocks);
    image.push(Part::Lists, directory.lists());
    image.push(Part::Chunks, directory.chunks());
    image.push(Part::ChunkStarts, directory.starts());
    image.push(Part::Postings, [postings]);

    ExactNames::build(items, &mut image);
    let spelt = if config.scorer == Scorer::Bm25f && config.spelling > 0.0 { &words[..] } else { &[] };
    let spelt = spelt.iter().filter(|(_, term)| *term != STOP).map(|(word, term)| (&**word, *term));
    Spelling::build(spelt, &mut image);
    if config.is_semantic() {
        DocumentVectors::build(items, table, &mut image);
    }
    image.finish()
}

/// Adds the table of words to an image.
fn push_words(words: &[(Box<str>, TermId)], [slots, entries, text]: [Part; 3], image: &mut ImageBuilder) {
    let bytes = Dictionary::encode(words.iter().map(|(word, value)| (&**word, *value)));
    image.push(slots, bytes.slots);
    image.push(entries, bytes.entries);
    image.push(text, [bytes.text]);
}

/// Writes the postings of all words to their places, some blocks at a time.
fn put_words(
    scoring: &Scoring,
    blocks: &[Block],
    numbers: &[Vec<TermId>],
    directory: &mut Directory,
    cells: &mut [[u8; 4]],
) {
    let numbered: Vec<(u16, &Block, &[TermId])> =
        (0..).zip(blocks.iter().zip(numbers)).map(|(at, (block, numbers))| (at, block, &numbers[..])).collect();
    for batch in numbered.chunks(BATCH) {
        let scored: Vec<Vec<u32>> =
            batch.par_iter().map(|(_, block, numbers)| scoring.postings(block, numbers)).collect();
        for ((at, block, numbers), scored) in batch.iter().zip(scored) {
            let mut from = 0;
            for (term, count) in numbers.iter().zip(&block.frequencies) {
                let until = from + *count as usize;
                directory.put(*term, *at, &scored[from..until], cells);
                from = until;
            }
        }
    }
}

fn sorted(words: FxHashMap<Box<str>, TermId>) -> Vec<(Box<str>, TermId)> {
    let mut sorted: Vec<_> = words.into_iter().collect();
    sorted.par_sort_unstable();
    sorted
}

/// One term in one item: how often it occurs in each field.
struct Occurrence {
    /// The number of the term in its block.
    term: u32,
    /// The item's position in its block.
    item: u16,
    counts: [u16; FIELDS],
}

/// Where a pair occurs: in the name of an item or in its description. Ascending by item.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u32);

impl Place {
    fn of(item: usize, in_description: bool) -> Self {
        Self((item as u32) << 1 | u32::from(in_description))
    }

    /// The same place of an item whose block begins at `first`.
    fn after(self, first: usize) -> Self {
        Self(self.0 + ((first as u32) << 1))
    }

    fn item(self) -> u32 {
        self.0 >> 1
    }

    fn is_in_description(self) -> bool {
        self.0 & 1 == 1
    }
}

/// What is read of a block of items.
#[derive(Default)]
struct Block {
    /// Every word with the number of its term, or [`STOP`], in the order of their first occurrence.
    words: Vec<(Box<str>, u32)>,
    /// The terms in the order of their numbers.
    terms: Vec<Box<str>>,
    /// How many items each term is in.
    frequencies: Vec<u32>,
    /// The occurrences of terms, item by item.
    occurrences: Vec<Occurrence>,
    /// Every pair that occurs in a name or in the first sentence of a description with its place, in the order of the texts.
    pairs: Vec<((u32, u32), Place)>,
    /// The number of words per item and field, stop words not counted.
    lengths: Vec<[u32; FIELDS]>,
}

/// Reads blocks of items; shared by all threads.
struct Reader {
    analyzer: Analyzer,
    weights: [Field; FIELDS],
    /// Whether neighbouring words of names are indexed.
    with_pairs: bool,
    /// Whether those of descriptions are.
    with_description_pairs: bool,
    /// Whether the parts of `LinkedIn` are indexed as one word too.
    with_compounds: bool,
}

impl Reader {
    fn new(config: &RoutingConfig) -> Self {
        let with_pairs = is_fielded(config.scorer) && config.name.pairs > 0.0 && config.fields.name.weight > 0.0;
        Self {
            analyzer: Analyzer::default(),
            weights: weights(config),
            with_pairs,
            with_description_pairs: with_pairs
                && config.description_pairs > 0.0
                && config.fields.description.weight > 0.0,
            with_compounds: is_fielded(config.scorer),
        }
    }

    fn read<I: Borrow<SelectableItem>>(&self, items: &[I]) -> Block {
        let mut open = OpenBlock {
            reader: self,
            block: Block::default(),
            words: FxHashMap::default(),
            terms: FxHashMap::default(),
            latest: Vec::new(),
        };
        for item in items {
            open.item(item.borrow());
        }
        open.block
    }
}

fn weights(config: &RoutingConfig) -> [Field; FIELDS] {
    let fields = &config.fields;
    [fields.name, fields.description, fields.parameters, fields.tags, fields.server]
}

/// A block while it is being read.
struct OpenBlock<'r> {
    reader: &'r Reader,
    block: Block,
    words: FxHashMap<Box<str>, u32>,
    terms: FxHashMap<Box<str>, u32>,
    /// For each term its latest entry in the occurrences.
    latest: Vec<u32>,
}

impl OpenBlock<'_> {
    fn item(&mut self, item: &SelectableItem) {
        self.block.lengths.push([0; FIELDS]);
        self.name(&item.name);
        self.field(DESCRIPTION, &item.description);
        self.description_pairs(&item.description);
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

    /// Reads the pairs of a description, whose words are counted already.
    fn description_pairs(&mut self, description: &str) {
        if !self.reader.with_description_pairs {
            return;
        }
        let place = Place::of(self.block.lengths.len() - 1, true);
        let mut previous = None;
        for_each_word(whole_words(description), |word| {
            let term = self.term(word);
            if term != STOP
                && let Some(previous) = previous.replace(term)
            {
                self.block.pairs.push(((previous, term), place));
            }
        });
    }

    fn name(&mut self, text: &str) {
        let place = Place::of(self.block.lengths.len() - 1, false);
        let mut previous = None;
        self.each_term(NAME, text, |open, term| {
            if let Some(previous) = previous.replace(term).filter(|_| open.reader.with_pairs) {
                open.block.pairs.push(((previous, term), place));
            }
        });
    }

    fn field(&mut self, field: usize, text: &str) {
        self.each_term(field, text, |_, _| ());
    }

    /// Counts the terms of a text in a field, and calls `each` with every one.
    fn each_term(&mut self, field: usize, text: &str, mut each: impl FnMut(&mut Self, u32)) {
        if self.reader.weights[field].weight <= 0.0 || text.is_empty() {
            return;
        }
        for_each_word(text, |word| {
            let term = self.term(word);
            if term != STOP {
                let block = &mut self.block;
                let item = block.lengths.len() - 1;
                block.lengths[item][field] += 1;
                self.count(term, field);
                each(self, term);
            }
        });
        // They are other forms of words that are counted already: no text is longer for them, and a query that has the words of
        // a name has all of the name.
        let field = if field == NAME { DESCRIPTION } else { field };
        if self.reader.with_compounds && self.reader.weights[field].weight > 0.0 {
            for_each_compound(text, |compound, _| {
                let term = self.term(compound);
                if term != STOP {
                    self.count(term, field);
                }
            });
        }
    }

    fn term(&mut self, word: &str) -> u32 {
        if let Some(&term) = self.words.get(word) {
            return term;
        }
        let term = if is_stop_word(word) {
            STOP
        } else {
            let stem = self.reader.analyzer.stem(word);
            match self.terms.get(&*stem) {
                Some(&term) => term,
                None => {
                    let term = self.latest.len() as u32;
                    self.terms.insert(Box::from(&*stem), term);
                    self.block.terms.push(Box::from(&*stem));
                    self.block.frequencies.push(0);
                    self.latest.push(u32::MAX);
                    term
                }
            }
        };
        self.words.insert(Box::from(word), term);
        self.block.words.push((Box::from(word), term));
        term
    }

    fn count(&mut self, term: u32, field: usize) {
        let block = &mut self.block;
        let item = block.lengths.len() - 1;
        let latest = self.latest[term as usize] as usize;
        match block.occurrences.get_mut(latest) {
            Some(occurrence) if usize::from(occurrence.item) == item => {
                occurrence.counts[field] = occurrence.counts[field].saturating_add(1);
            }
            _ => {
                let mut counts = [0; FIELDS];
                counts[field] = 1;
                self.latest[term as usize] = block.occurrences.len() as u32;
                block.frequencies[term as usize] += 1;
                block.occurrences.push(Occurrence { term, item: item as u16, counts });
            }
        }
    }
}

/// The words and terms of all blocks.
#[derive(Default)]
struct Vocabulary {
    words: FxHashMap<Box<str>, TermId>,
    terms: FxHashMap<Box<str>, TermId>,
    /// Per block the number in the whole catalog of each of its terms.
    numbers: Vec<Vec<TermId>>,
}

impl Vocabulary {
    fn of(blocks: &[Block]) -> Self {
        let mut all = Self::default();
        for block in blocks {
            let mut number = |term: &str| match all.terms.get(term) {
                Some(&number) => number,
                None => {
                    let number = all.terms.len() as TermId;
                    all.terms.insert(Box::from(term), number);
                    number
                }
            };
            let numbers: Vec<TermId> = block.terms.iter().map(|term| number(term)).collect();
            for (word, term) in &block.words {
                if !all.words.contains_key(word) {
                    all.words.insert(word.clone(), numbers.get(*term as usize).copied().unwrap_or(STOP));
                }
            }
            all.numbers.push(numbers);
        }
        all
    }
}

/// The statistics of the whole catalog that scores depend on.
struct Statistics {
    items: usize,
    /// Per term the number of items that have it.
    frequencies: Vec<usize>,
    /// Per term the number of blocks that have it.
    chunks: Vec<usize>,
    /// The mean length of each field over the items that have it at all, since most catalogs leave some fields empty.
    field_means: [f64; FIELDS],
    /// The mean length of an item.
    mean: f64,
}

impl Statistics {
    fn of(blocks: &[Block], vocabulary: &Vocabulary) -> Self {
        let mut frequencies = vec![0; vocabulary.terms.len()];
        let mut chunks = vec![0; vocabulary.terms.len()];
        for (block, numbers) in blocks.iter().zip(&vocabulary.numbers) {
            for (term, count) in numbers.iter().zip(&block.frequencies) {
                frequencies[*term as usize] += *count as usize;
                chunks[*term as usize] += 1;
            }
        }
        let lengths = || blocks.iter().flat_map(|block| &block.lengths);
        let items = lengths().count();
        let field_means = std::array::from_fn(|field| {
            let filled = lengths().filter(|lengths| lengths[field] > 0).count();
            let total: u64 = lengths().map(|lengths| u64::from(lengths[field])).sum();
            total as f64 / filled.max(1) as f64
        });
        let total: u64 = lengths().flatten().map(|length| u64::from(*length)).sum();
        Self { items, frequencies, chunks, field_means, mean: total as f64 / items as f64 }
    }

    /// These statistics, replaced by those of another index where it has them.
    fn corrected_by(self, base: &Index, vocabulary: &Vocabulary) -> Self {
        let mut frequencies = self.frequencies;
        for (term, number) in &vocabulary.terms {
            if let Some(known) = base.stem_frequency(term) {
                frequencies[*number as usize] = known;
            }
        }
        let [mean, field_means @ ..] = base.means();
        Self { items: base.items_at_build(), frequencies, field_means, mean, ..self }
    }

    /// The mean length of an item, then that of each field.
    fn means(&self) -> [f64; FIELDS + 1] {
        let mut means = [self.mean; FIELDS + 1];
        means[1..].copy_from_slice(&self.field_means);
        means
    }
}

/// The formula of a scorer with the statistics of the catalog.
struct Scoring<'c> {
    config: &'c RoutingConfig,
    weights: [Field; FIELDS],
    statistics: &'c Statistics,
    /// The idf by term, as the scorer defines it.
    idf: Vec<f64>,
}

impl<'c> Scoring<'c> {
    fn new(config: &'c RoutingConfig, statistics: &'c Statistics) -> Self {
        let items = statistics.items;
        let smoothed = |with: usize| libm::log((1.0 + items as f64) / (1.0 + with as f64)) + 1.0;
        let of = |&with: &usize| if config.scorer == Scorer::TfIdf { smoothed(with) } else { idf(items, with) };
        Self { config, weights: weights(config), statistics, idf: statistics.frequencies.iter().map(of).collect() }
    }

    /// The postings of a block, term by term in the order of their numbers in the block.
    fn postings(&self, block: &Block, numbers: &[TermId]) -> Vec<u32> {
        let mut next: Vec<usize> = Vec::with_capacity(block.frequencies.len());
        let mut start = 0;
        for count in &block.frequencies {
            next.push(start);
            start += *count as usize;
        }
        let mut postings = vec![0; start];
        for (occurrence, impact) in block.occurrences.iter().zip(self.impacts(block, numbers)) {
            let at = &mut next[occurrence.term as usize];
            postings[*at] = packed(u32::from(occurrence.item), rounded(impact));
            *at += 1;
        }
        postings
    }

    /// The impact of every occurrence of a block, by the formula of the scorer.
    fn impacts(&self, block: &Block, numbers: &[TermId]) -> Vec<f64> {
        let idf: Vec<f64> = numbers.iter().map(|number| self.idf[*number as usize]).collect();
        let RoutingConfig { k1, b, .. } = *self.config;
        match self.config.scorer {
            Scorer::TfIdf => tf_idf(block, &idf),
            Scorer::Bm25 => {
                let length = |item: u16| f64::from(block.lengths[usize::from(item)].iter().sum::<u32>());
                let norm = |item: u16| 1.0 - b + b * length(item) / self.statistics.mean.max(1.0);
                per_occurrence(block, |occurrence| {
                    let tf = frequency(occurrence);
                    idf[occurrence.term as usize] * tf / (tf + k1 * norm(occurrence.item))
                })
            }
            Scorer::Bm25f | Scorer::Fuzzy => {
                let names = name_information(block, &idf);
                let norms: Vec<[f64; FIELDS]> = block.lengths.iter().map(|lengths| self.norms(lengths)).collect();
                let NameMatch { share, prior, .. } = self.config.name;
                per_occurrence(block, |occurrence| {
                    let (item, idf) = (usize::from(occurrence.item), idf[occurrence.term as usize]);
                    let norm = &norms[item];
                    let tf: f64 = (0..FIELDS).map(|field| f64::from(occurrence.counts[field]) * norm[field]).sum();
                    let of_name = if occurrence.counts[NAME] > 0 { share * idf / (prior + names[item]) } else { 0.0 };
                    idf * tf / (tf + k1) + of_name
                })
            }
        }
    }

    /// For every field of an item: weight / (1 − b + b · length / mean length), the factor of a term frequency in
    /// BM25F (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, §3.6).
    fn norms(&self, lengths: &[u32; FIELDS]) -> [f64; FIELDS] {
        std::array::from_fn(|field| {
            let Field { weight, b } = self.weights[field];
            let mean = self.statistics.field_means[field].max(1.0);
            weight / (1.0 - b + b * f64::from(lengths[field]) / mean).max(LEAST_DIVISOR)
        })
    }
}

/// An impact in fixed point.
fn rounded(impact: f64) -> u32 {
    ((impact * SCORE_UNITS as f64).round() as u32).clamp(1, MAX_IMPACT)
}

fn per_occurrence(block: &Block, impact: impl Fn(&Occurrence) -> f64) -> Vec<f64> {
    block.occurrences.iter().map(impact).collect()
}

/// The number of times a term occurs in an item, in all fields.
fn frequency(occurrence: &Occurrence) -> f64 {
    f64::from(occurrence.counts.iter().map(|&count| u32::from(count)).sum::<u32>())
}

/// For every item the sum of the idf of the distinct words of its name. The share of a word in this sum is what it adds
/// for being part of the name: containment of the name in the query (Broder, "On the Resemblance and Containment of
/// Documents", 1997), with words weighted by idf.
fn name_information(block: &Block, idf: &[f64]) -> Vec<f64> {
    let mut information = vec![0.0; block.lengths.len()];
    for occurrence in block.occurrences.iter().filter(|occurrence| occurrence.counts[NAME] > 0) {
        information[usize::from(occurrence.item)] += idf[occurrence.term as usize];
    }
    information
}

/// Cosine TF-IDF, `ltc.ltn` in SMART notation (Manning, Raghavan and Schütze, "Introduction to Information
/// Retrieval", 2008, §6.4) with the smoothed idf ln((1 + N) / (1 + n)) + 1.
fn tf_idf(block: &Block, idf: &[f64]) -> Vec<f64> {
    let weights =
        per_occurrence(block, |occurrence| (1.0 + libm::log(frequency(occurrence))) * idf[occurrence.term as usize]);
    let mut squares = vec![0.0; block.lengths.len()];
    for (occurrence, weight) in block.occurrences.iter().zip(&weights) {
        squares[usize::from(occurrence.item)] += weight * weight;
    }
    let impact = |(occurrence, weight): (&Occurrence, f64)| {
        weight / f64::sqrt(squares[usize::from(occurrence.item)]) * idf[occurrence.term as usize]
    };
    block.occurrences.iter().zip(weights).map(impact).collect()
}

/// All pairs of neighbouring terms with their places, repeats included, ascending.
struct Pairs {
    all: Vec<((TermId, TermId), Place)>,
    /// The ranges of the entries of each pair.
    ranges: Vec<Range<usize>>,
}

impl Pairs {
    fn of(blocks: &[Block], vocabulary: &Vocabulary) -> Self {
        let mut all = Vec::with_capacity(blocks.iter().map(|block| block.pairs.len()).sum());
        for (at, (block, numbers)) in blocks.iter().zip(&vocabulary.numbers).enumerate() {
            let number = |term: u32| numbers[term as usize];
            let placed =
                |&((one, two), place): &((u32, u32), Place)| ((number(one), number(two)), place.after(at * BLOCK));
            all.extend(block.pairs.iter().map(placed));
        }
        all.par_sort_unstable();
        let mut ranges = Vec::new();
        let mut start = 0;
        for list in all.chunk_by(|one, next| one.0 == next.0) {
            ranges.push(start..start + list.len());
            start += list.len();
        }
        Self { all, ranges }
    }

    /// The entries of each pair; a pair is numbered by its position.
    fn lists(&self) -> impl ExactSizeIterator<Item = &[((TermId, TermId), Place)]> {
        self.ranges.iter().map(|range| &self.all[range.clone()])
    }

    fn items_of(&self, list: &[((TermId, TermId), Place)]) -> usize {
        list.chunk_by(|one, next| one.1.item() == next.1.item()).count()
    }

    fn blocks_of(&self, list: &[((TermId, TermId), Place)]) -> usize {
        list.chunk_by(|one, next| block_of(one.1) == block_of(next.1)).count()
    }

    /// Emits the postings of a pair, block by block: BM25 with the norm of the name, times the weight of pairs; an
    /// occurrence in a description counts a share of one in a name of mean length. `known` is the number of items that
    /// have the pair, where that is known from another index. This
    /// is the sequential dependence of Metzler and Croft ("A Markov Random Field Model for Term Dependencies", SIGIR
    /// 2005) for ordered windows of two, limited to the texts where order means most.
    fn score(
        &self,
        list: &[((TermId, TermId), Place)],
        known: usize,
        scoring: &Scoring,
        blocks: &[Block],
        mut each: impl FnMut(u16, &[u32]),
    ) {
        let RoutingConfig { k1, name: NameMatch { pairs, .. }, description_pairs, .. } = *scoring.config;
        let frequency = if known > 0 { known } else { self.items_of(list) };
        let idf = idf(scoring.statistics.items, frequency);
        let mut scored = Vec::new();
        for of_block in list.chunk_by(|one, next| block_of(one.1) == block_of(next.1)) {
            let number = block_of(of_block[0].1);
            scored.clear();
            scored.extend(of_block.chunk_by(|one, next| one.1.item() == next.1.item()).map(|times| {
                let place = times[0].1.item() % BLOCK as u32;
                let norm = scoring.norms(&blocks[usize::from(number)].lengths[place as usize])[NAME];
                let described = times.iter().filter(|(_, place)| place.is_in_description()).count();
                let named = (times.len() - described) as f64 * norm;
                let tf = named + described as f64 * description_pairs * scoring.weights[NAME].weight;
                packed(place, rounded(pairs * idf * tf / (tf + k1)))
            }));
            each(number, &scored);
        }
    }
}

fn block_of(place: Place) -> u16 {
    (place.item() / BLOCK as u32) as u16
}
