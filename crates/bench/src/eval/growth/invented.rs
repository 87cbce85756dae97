//! Catalogs of any size with the statistics of real ones: for speed and counters, not for quality.
//!
//! The distractors beside this file are sentences that people would write, so there is an end to them, and their words
//! are few. What a search costs at a million tools depends on none of that, but on how many words there are, how often
//! each occurs, how long texts are, and that tools of one server share their words. These four are drawn here, and the
//! texts are word salad.
//!
//! The figures were measured on the union of the public collections and of 70 catalogs of real servers (13 258 tools,
//! about 800 000 words):
//!
//! - **Frequencies.** The word of rank r has a share ∝ 1/r up to a bend and ∝ r^−2.2 behind it: two regimes, as Ferrer
//!   i Cancho and Solé found for all large corpora ("Two Regimes in the Frequency of Words", J. Quant. Linguist. 8,
//!   2001). The tail gives the growth of the vocabulary by itself, V ∝ n^(1/2.2) (Heaps' law with the measured β =
//!   0.455).
//! - **Known words.** The words of the base collection have ranks by their own frequency there: word i has rank i^1.15
//!   in the union, since a catalog of everything speaks of more than the base does. Its queries so meet posting
//!   lists as long as those that they would meet in the union.
//! - **Servers.** Sizes are log-normal with a median of 14. Half of a tool's words come from a topic that its server
//!   has drawn from the same distribution, which leaves the frequencies as they are and puts equal words side by side.
//!
//! A catalog of a smaller size is part of a larger one of the same seed, and tools do not depend on threads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rayon::prelude::*;
use serde_json::{Map, Value, json};

use super::super::collection::Collection;
use super::super::rng::Rng;
use super::phrase::{Style, capitalised};
use super::{Core, STYLES};
use contextweaver_core::catalog::{Catalog, CatalogError, SelectableItem};
use contextweaver_core::text::{for_each_word, is_stop_word};

/// The rank up to which frequencies fall with the rank, and behind which they fall with its power [`TAIL`]. Above the
/// 2 000 that the union shows, since tools of one server repeat one another's words.
const BEND: usize = 2_600;

/// The exponent of the tail: the inverse of the measured β.
const TAIL: f64 = 2.2;

/// The exponent by which a rank in the base becomes one in the catalog.
const SPREAD: f64 = 1.15;

/// No word is rarer than that of this rank; a billion words would hold one in 3 000 behind it.
const LAST_RANK: usize = 1 << 22;

/// Words that a server draws as its topic.
const TOPIC: usize = 60;

/// Draws from the head of the distribution are looked up in so many places.
const SLOTS: usize = 1 << 16;

/// The core of `base` and tools of invented servers around it, `size` together. The queries of `base` can be asked of
/// it; which tools answer them is of no use here.
///
/// # Errors
/// [`CatalogError::Empty`] for no tools.
pub fn scaled(base: &Collection, size: usize, seed: u64) -> Result<Catalog, CatalogError> {
    let rng = Rng::new(seed);
    let core = Core::choose(base, &mut rng.fork("core"));
    let words = Words::of(base);
    let own = base.catalog.items();
    let mut items: Vec<SelectableItem> = Vec::with_capacity(size);
    items.extend(core.tools.iter().take(size).filter_map(|&tool| own.get(tool as usize)).cloned());
    let servers = (0..).map(|number| Server::draw(number, &rng));
    let mut room = size - items.len();
    let wanted: Vec<(Server, usize)> = servers
        .map_while(|server| {
            let taken = server.size.min(room);
            room -= taken;
            (taken > 0).then_some((server, taken))
        })
        .collect();
    items.par_extend(wanted.into_par_iter().flat_map_iter(|(server, tools)| server.tools(tools, &words)));
    Catalog::new(items)
}

/// The distribution of words.
struct Words {
    /// Rank (from 0) to word, where it is one of the base.
    known: BTreeMap<usize, String>,
    /// Ranks of the head, each in as many places as its share asks for; the places behind them are the tail's.
    head: Vec<u16>,
}

impl Words {
    fn of(base: &Collection) -> Self {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut count = |text: &str| for_each_word(text, |word| *counts.entry(word.to_owned()).or_default() += 1);
        for item in base.catalog.items() {
            count(&item.name);
            count(&item.description);
            item.for_each_parameter(|name, description| {
                count(name);
                count(description);
            });
        }
        let mut asked: BTreeSet<String> = BTreeSet::new();
        for query in &base.queries {
            for_each_word(&query.text, |word| {
                asked.insert(word.to_owned());
            });
        }
        asked.retain(|word| !counts.contains_key(word));
        let mut order: Vec<(String, usize)> = counts.into_iter().collect();
        order.sort_by(|one, two| two.1.cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
        let all = order.into_iter().map(|(word, _)| word).chain(asked);
        let rank = |place: usize| libm::pow(place as f64, SPREAD) as usize - 1;
        Self { known: all.zip(1..).map(|(word, place)| (rank(place), word)).collect(), head: head() }
    }

    /// The rank of a word of a text.
    fn draw(&self, rng: &mut Rng) -> usize {
        let place = rng.below(SLOTS);
        match self.head.get(place) {
            Some(&rank) => usize::from(rank),
            // The distribution function of a power law, inverted.
            None => ((BEND as f64 * libm::pow(unit(rng), 1.0 / (1.0 - TAIL))) as usize).min(LAST_RANK),
        }
    }

    fn write(&self, rank: usize, text: &mut String) {
        match self.known.get(&rank) {
            Some(word) => text.push_str(word),
            None => invent(rank, text),
        }
    }

    fn word(&self, rank: usize) -> String {
        let mut word = String::new();
        self.write(rank, &mut word);
        word
    }

    /// Whether the word can be part of a name: no stop word, and letters alone.
    fn is_name(&self, rank: usize) -> bool {
        let is_fit = |word: &String| word.bytes().all(|byte| byte.is_ascii_lowercase()) && !is_stop_word(word);
        self.known.get(&rank).is_none_or(is_fit)
    }
}

/// The ranks of the head by their shares, in units of one slot.
fn head() -> Vec<u16> {
    let harmonic: f64 = (1..=BEND).map(|rank| 1.0 / rank as f64).sum();
    // The integral of the tail, in shares of the first word.
    let whole = harmonic + 1.0 / (TAIL - 1.0);
    let (mut slots, mut reached) = (Vec::with_capacity(SLOTS), 0.0);
    for rank in 0..BEND {
        reached += 1.0 / (rank + 1) as f64;
        slots.resize((reached / whole * SLOTS as f64) as usize, rank as u16);
    }
    slots
}

/// A uniform number in (0, 1].
fn unit(rng: &mut Rng) -> f64 {
    ((rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// A log-normal number with this median and this spread of its logarithm. Twelve uniform numbers are near enough to
/// normal for lengths.
fn lognormal(median: f64, spread: f64, rng: &mut Rng) -> f64 {
    let normal = (0..12).map(|_| unit(rng)).sum::<f64>() - 6.0;
    median * libm::exp(spread * normal)
}

const ONSETS: [&str; 20] =
    ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "t", "v", "z", "br", "dr", "gr", "kl", "pl", "st", "tr"];
const VOWELS: [&str; 5] = ["a", "e", "i", "o", "u"];

/// An invented word, another one for every number: its syllables are the digits, the last one first, two at least.
fn invent(number: usize, text: &mut String) {
    let (mut rest, mut syllables) = (number, 0);
    while rest > 0 || syllables < 2 {
        text.push_str(ONSETS[rest % ONSETS.len()]);
        rest /= ONSETS.len();
        text.push_str(VOWELS[rest % VOWELS.len()]);
        rest /= VOWELS.len();
        syllables += 1;
    }
}

/// First words of names with their shares: what most tools of real servers begin with.
const VERBS: [&str; 20] = [
    "get", "list", "get", "list", "create", "get", "search", "update", "list", "delete", "get", "create", "find",
    "add", "set", "run", "check", "fetch", "send", "remove",
];

/// An invented server.
struct Server {
    number: usize,
    size: usize,
    rng: Rng,
}

impl Server {
    fn draw(number: usize, rng: &Rng) -> Self {
        let mut rng = rng.fork(&format!("server {number}"));
        let size = lognormal(14.0, 1.2, &mut rng).clamp(1.0, 200.0) as usize;
        Self { number, size, rng }
    }

    /// The first `count` of its tools.
    fn tools(mut self, count: usize, words: &Words) -> Vec<SelectableItem> {
        // Behind all ranks of words, so that the names of servers are words of their own.
        let mut server = String::new();
        invent(LAST_RANK + 1 + self.number, &mut server);
        let topic: Vec<usize> = (0..TOPIC).map(|_| words.draw(&mut self.rng)).collect();
        let nouns: Vec<String> =
            topic.iter().filter(|rank| words.is_name(**rank)).map(|rank| words.word(*rank)).collect();
        let style = STYLES[self.rng.below(STYLES.len())];
        let text = Text { words, topic: &topic, nouns: &nouns };
        // Tools of one server take the same arguments again and again.
        let schemas: Vec<Arc<Value>> =
            (0..self.size.div_ceil(3)).map(|_| Arc::new(text.schema(&mut self.rng))).collect();
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let mut tools = Vec::with_capacity(count);
        while tools.len() < count {
            let mut name = text.name(style, &mut self.rng);
            if !taken.insert(name.clone()) {
                name.push_str(&taken.len().to_string());
                taken.insert(name.clone());
            }
            let id = format!("{server}:{name}@1");
            let mut item = SelectableItem::tool(&id, &server, &name, &text.description(&mut self.rng));
            item.server = Some(server.clone());
            item.args_schema = schemas.get(self.rng.below(schemas.len())).cloned();
            tools.push(item);
        }
        tools
    }
}

/// What the texts of one server are made of.
struct Text<'s> {
    words: &'s Words,
    topic: &'s [usize],
    /// The words of the topic that can be part of a name.
    nouns: &'s [String],
}

impl Text<'_> {
    fn rank(&self, rng: &mut Rng) -> usize {
        if rng.below(2) == 0 { self.topic[rng.below(self.topic.len())] } else { self.words.draw(rng) }
    }

    fn noun(&self, rng: &mut Rng) -> &str {
        self.nouns.get(rng.below(self.nouns.len())).map_or("item", String::as_str)
    }

    /// A verb and one to three words of the topic.
    fn name(&self, style: Style, rng: &mut Rng) -> String {
        let verb = VERBS[rng.below(VERBS.len())];
        let nouns = 1 + rng.below(2) + rng.below(2);
        let mut parts = vec![verb];
        parts.extend((0..nouns).map(|_| self.noun(rng)));
        style.join(parts.into_iter())
    }

    fn sentence(&self, words: usize, rng: &mut Rng) -> String {
        let mut text = String::with_capacity(words * 7);
        for at in 0..words {
            if at > 0 {
                text.push(' ');
            }
            self.words.write(self.rank(rng), &mut text);
        }
        capitalised(&text) + "."
    }

    fn description(&self, rng: &mut Rng) -> String {
        let words = lognormal(16.0, 0.6, rng).clamp(4.0, 80.0) as usize;
        self.sentence(words, rng)
    }

    /// No to eight arguments, most of them described in a few words.
    fn schema(&self, rng: &mut Rng) -> Value {
        let mut properties = Map::new();
        for _ in 0..rng.below(5) + rng.below(5) {
            let mut name = self.noun(rng).to_owned();
            if rng.below(2) == 0 {
                name = format!("{name}_{}", self.noun(rng));
            }
            let kind = ["string", "string", "integer", "boolean"][rng.below(4)];
            let words = 3 + rng.below(10);
            let property = match rng.below(4) {
                0 => json!({"type": kind}),
                _ => json!({"type": kind, "description": self.sentence(words, rng)}),
            };
            properties.insert(name, property);
        }
        json!({"type": "object", "properties": properties})
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::{CORE_TOOLS, SEED};
    use super::*;
    use crate::eval::record::Origin;
    use crate::eval::scaling::slope;

    fn workbench() -> Collection {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../gold/workbench");
        Collection::load(&folder, Origin::Embedded).unwrap()
    }

    fn texts(catalog: &Catalog) -> BTreeMap<String, String> {
        let text = |item: &SelectableItem| (item.id.clone(), item.definition_json());
        catalog.items().iter().map(text).collect()
    }

    /// Words that occur, and how many different ones.
    fn counted(catalog: &Catalog) -> (usize, usize) {
        let (mut words, mut all) = (BTreeSet::new(), 0);
        for item in catalog.items() {
            let mut count = |text: &str| {
                for_each_word(text, |word| {
                    all += 1;
                    words.insert(word.to_owned());
                });
            };
            count(&item.name);
            count(&item.description);
            item.for_each_parameter(|name, description| {
                count(name);
                count(description);
            });
        }
        (all, words.len())
    }

    #[test]
    fn a_smaller_catalog_is_part_of_a_larger_one_whatever_the_threads() {
        let base = workbench();
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let small = texts(&alone.install(|| scaled(&base, 500, SEED)).unwrap());
        let large = texts(&scaled(&base, 2_000, SEED).unwrap());
        assert_eq!((small.len(), large.len()), (500, 2_000));
        assert!(small.iter().all(|(id, text)| large.get(id) == Some(text)));
        assert_ne!(small, texts(&scaled(&base, 500, SEED + 1).unwrap()));
    }

    #[test]
    fn every_size_can_be_had() {
        let base = workbench();
        assert!(scaled(&base, 0, SEED).is_err());
        for size in [1, CORE_TOOLS, CORE_TOOLS + 1] {
            assert_eq!(scaled(&base, size, SEED).unwrap().len(), size);
        }
    }

    #[test]
    fn the_vocabulary_grows_as_in_the_union_of_real_catalogs() {
        let base = workbench();
        let points: Vec<(f64, f64)> = [1_000, 4_000, 16_000]
            .iter()
            .map(|size| counted(&scaled(&base, *size, SEED).unwrap()))
            .map(|(words, vocabulary)| (words as f64, vocabulary as f64))
            .collect();
        let beta = slope(&points).unwrap();
        assert!((0.40..0.52).contains(&beta), "{beta} of {points:?}");
    }

    #[test]
    fn invented_words_differ() {
        let words: BTreeSet<String> = (0..50_000)
            .map(|number| {
                let mut word = String::new();
                invent(number, &mut word);
                word
            })
            .collect();
        assert_eq!(words.len(), 50_000);
    }
}
