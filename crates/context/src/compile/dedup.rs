//! Stage 6: of items that say the same, only the best stays.
//!
//! The search is exact and near-linear. A set equal to an earlier one gets the same outcome. For the others there are
//! two ways to find the kept sets that may be similar, and the one that meets fewer is taken:
//! - **by rare terms**: two sets whose Jaccard similarity reaches t share at least t·|x| terms of either set x, so with
//!   the terms in one fixed order, rare ones first, they share a term among the first |x| − ⌈t·|x|⌉ + 1 of each
//!   (Chaudhuri et al. 2006; Xiao et al. 2008);
//! - **by equal parts**: they differ in at most d = (1 − t) / t · |x| terms, so of d + 1 parts into which terms fall by
//!   their hash one is the same in both (Arasu et al. 2006; Deng et al. 2015). It serves where many items are made of
//!   few words, none of which is rare.
//!
//! Length and a 128-bit signature rule out most of them before terms are compared.
//!
//! Never dropped here, because the similarity of terms cannot show that nothing is lost:
//! - **user turns and calls**: a repeated request or call is an event of its own, and calls cost little;
//! - **anything that another candidate depends on**, so that no chain breaks;
//! - **short items** (fewer than [`MIN_TERMS`] terms): the results `ok` of two calls are equal as sets and say two
//!   things.
//!
//! Items are compared within their kind: that a document says what the assistant said is evidence, not repetition. And
//! they are compared only where the words that similarity passes over are the same, in the same order:
//! - **a policy** and **a result** must agree in all words, a result also in those of its call: one word turns a rule
//!   into its opposite, and one figure is what a second call was made for;
//! - **anything else** must agree in its numbers, names, paths and words that turn the meaning, and all words of what is
//!   dropped must stand in what stays, in the same order and with few words between them: `from the old host to the
//!   new` has the words of its opposite, and a month or `done` in place of another word is another statement.
//!
//! Of a repeated result the call stays, and the record of the drop names the result that says the same. The better
//! score stays, which within a kind is mostly the later one.

use std::cell::OnceCell;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;

use rustc_hash::{FxHashMap, FxHasher};

use super::Ledger;
use super::score::Scored;
use crate::event::{ItemKind, Transcript};
use crate::stats::DropReason;
use contextweaver_core::text::{Analyzer, TermSet, for_each_word, jaccard};

/// Items with fewer distinct terms are not compared.
const MIN_TERMS: usize = 8;

/// How many words more than what is dropped has what stays, at most.
const MOST_MORE: usize = 2;

/// How many sets of the same terms in another order are compared with those after them, at most.
const MOST_ORDERS: usize = 64;

/// The number of kept items that can be looked through in the time in which one part is made and looked up.
const ENTRIES_PER_LOOKUP: usize = 4;

/// Words that turn a statement into its opposite or limit it, beside those with an apostrophe.
pub(crate) const TURNING: &[&str] = &[
    "not", "no", "never", "none", "nothing", "nobody", "neither", "nor", "without", "cannot", "only", "unless",
    "except", "until", "before", "after", "if", "when", "while", "but", "instead", "stop", "avoid", "nicht", "kein",
    "nie", "ne", "pas",
];

/// 2^64 divided by the golden ratio, odd: the multiplier of Fibonacci hashing (Knuth, volume 3, 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The items without near-duplicates, in their order.
pub(super) fn remove<'t>(
    transcript: &Transcript,
    ranked: Vec<Scored<'t>>,
    threshold: f64,
    ledger: &mut Ledger,
) -> Vec<Scored<'t>> {
    let mut needed = vec![false; transcript.len()];
    for scored in &ranked {
        if let Some(parent) = transcript.parent(scored.position) {
            needed[parent] = true;
        }
    }
    let comparable = |scored: &Scored| {
        !matches!(scored.item.kind, ItemKind::UserTurn | ItemKind::ToolCall)
            && !needed[scored.position]
            && scored.terms.len() >= MIN_TERMS
    };
    let call_of = |scored: &Scored| {
        let call = transcript.parent(scored.position).and_then(|parent| transcript.items().get(parent));
        call.map(|call| call.text.as_str()).unwrap_or_default()
    };
    let group = |scored: &Scored| {
        let (kind, text) = (scored.item.kind, scored.item.text.as_str());
        let fixed = match kind {
            ItemKind::Policy => fingerprint(words(text)),
            ItemKind::ToolResult => fingerprint(words(call_of(scored)).chain(["\n"]).chain(words(text))),
            _ => fingerprint(words(text).filter(|word| is_telling(word))),
        };
        (kind, fixed)
    };
    let sets: Vec<Option<((ItemKind, u64), &TermSet)>> =
        ranked.iter().map(|scored| comparable(scored).then(|| (group(scored), &scored.terms))).collect();
    let orders: Vec<OnceCell<Vec<u64>>> = vec![OnceCell::new(); ranked.len()];
    let order = |place: usize| orders[place].get_or_init(|| order(&ranked[place].item.text));
    let says_all = |place: usize, of: usize| {
        // The words of these are the same anyway.
        let is_fixed = matches!(ranked[place].item.kind, ItemKind::Policy | ItemKind::ToolResult);
        is_fixed || is_within(order(place), order(of))
    };
    let duplicates = duplicates(&sets, threshold, says_all);
    let originals: Vec<Option<_>> = duplicates.iter().map(|of| of.map(|place| ranked[place].item.id.clone())).collect();
    let mut kept = Vec::with_capacity(ranked.len());
    for (scored, original) in ranked.into_iter().zip(originals) {
        match original {
            Some(of) => ledger.drop(&scored.item, DropReason::Duplicate { of }),
            None => kept.push(scored),
        }
    }
    kept
}

/// The words of a text, without the punctuation around them. A sign or a currency is part of a number.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let edge = |c: char| c.is_ascii_punctuation() && !matches!(c, '+' | '-' | '<' | '>' | '=' | '$' | '%' | '#');
    text.split_whitespace().map(move |word| word.trim_matches(edge)).filter(|word| !word.is_empty())
}

/// Whether a word says something that similar texts may say differently: a number, a name, a path, a negation, a sign.
fn is_telling(word: &str) -> bool {
    let is_plain = word.chars().all(|c| c.is_alphabetic() && !c.is_uppercase());
    !is_plain || TURNING.contains(&word)
}

/// The words of a text in order, by their stems.
fn order(text: &str) -> Vec<u64> {
    let analyzer = Analyzer::default();
    let mut words = Vec::new();
    for_each_word(text, |word| words.push(fingerprint(std::iter::once(&*analyzer.stem(word)))));
    words
}

/// Whether all of `words` stand in `others` in the same order, with at most [`MOST_MORE`] between them.
fn is_within(words: &[u64], others: &[u64]) -> bool {
    let Some(mut spare) = others.len().checked_sub(words.len()).filter(|more| *more <= MOST_MORE) else {
        return false;
    };
    let mut at = 0;
    for word in words {
        while others.get(at) != Some(word) {
            if spare == 0 {
                return false;
            }
            spare -= 1;
            at += 1;
        }
        at += 1;
    }
    true
}

fn fingerprint<'w>(words: impl Iterator<Item = &'w str>) -> u64 {
    let mut hasher = FxHasher::default();
    words.for_each(|word| word.hash(&mut hasher));
    hasher.finish()
}

/// For each set the first kept set before it in its group that is at least as similar as `threshold` and of which
/// `says_all` holds, if any; a set without one is kept. A `None` in the input takes no part in the comparison.
fn duplicates<G: Copy + Eq + Hash>(
    sets: &[Option<(G, &TermSet)>],
    threshold: f64,
    says_all: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    let mut found = vec![None; sets.len()];
    if threshold > 1.0 {
        return found;
    }
    let mut index = Index::of(sets, threshold);
    let mut equal: FxHashMap<(G, &[u64]), (usize, usize)> = FxHashMap::default();
    for (place, entry) in sets.iter().enumerate() {
        // Sets without terms are similar to nothing.
        let Some((group, set)) = entry.filter(|(_, set)| !set.is_empty()) else { continue };
        let (last, orders) = equal.entry((group, set.hashes())).or_insert((place, 0));
        if *orders > 0 {
            let earlier = found[*last].unwrap_or(*last);
            if says_all(place, earlier) {
                found[place] = Some(earlier);
                continue;
            }
            if *orders == MOST_ORDERS {
                continue;
            }
        }
        (*last, *orders) = (place, *orders + 1);
        let own = Entry { place: place as u32, length: set.len() as u32, signature: signature(set) };
        let same = |other: u32| {
            let is_similar = |(_, other): (G, &TermSet)| jaccard(set, other) >= threshold;
            sets.get(other as usize).copied().flatten().is_some_and(is_similar) && says_all(place, other as usize)
        };
        found[place] = index.candidates(group, set, &own).into_iter().find(|&other| same(other)).map(|at| at as usize);
        if found[place].is_none() {
            index.insert(group, set, own);
        }
    }
    found
}

/// The kept sets, by what a similar set has in common with them.
struct Index<G> {
    threshold: f64,
    /// The number of sets that have a term.
    frequency: FxHashMap<u64, u32>,
    by_term: FxHashMap<(G, u64), Vec<Entry>>,
    by_part: FxHashMap<(G, Part), Vec<Entry>>,
}

impl<G: Copy + Eq + Hash> Index<G> {
    /// An empty index for some of the sets.
    fn of(sets: &[Option<(G, &TermSet)>], threshold: f64) -> Self {
        let mut frequency: FxHashMap<u64, u32> = FxHashMap::default();
        for (_, set) in sets.iter().flatten() {
            for &term in set.hashes() {
                *frequency.entry(term).or_default() += 1;
            }
        }
        Self { threshold, frequency, by_term: FxHashMap::default(), by_part: FxHashMap::default() }
    }

    fn insert(&mut self, group: G, set: &TermSet, own: Entry) {
        for term in prefix(set, self.threshold, &self.frequency) {
            self.by_term.entry((group, term)).or_default().push(own);
        }
        if self.has_parts() {
            for part in parts(set, self.parts_of(f64::from(own.length))) {
                self.by_part.entry((group, part)).or_default().push(own);
            }
        }
    }

    /// The places of the sets that may be similar, in ascending order, some of them more than once.
    fn candidates(&self, group: G, set: &TermSet, own: &Entry) -> Vec<u32> {
        let mut lists = self.with_terms(group, set);
        let met = |lists: &[&[Entry]]| lists.iter().map(|list| list.len()).sum::<usize>();
        let counts = self.counts_of_parts(set.len());
        let lookups: usize = counts.clone().map(|count| count + set.len()).sum();
        if self.has_parts() && met(&lists) > lookups * ENTRIES_PER_LOOKUP {
            let with_parts = self.with_parts(group, set, counts);
            if met(&with_parts) < met(&lists) {
                lists = with_parts;
            }
        }
        let reached = lists.into_iter().flatten().filter(|other| own.may_reach(other, self.threshold));
        let mut places: Vec<u32> = reached.map(|other| other.place).collect();
        places.sort_unstable();
        places
    }

    fn with_terms(&self, group: G, set: &TermSet) -> Vec<&[Entry]> {
        let terms = prefix(set, self.threshold, &self.frequency);
        terms.into_iter().filter_map(|term| self.by_term.get(&(group, term)).map(Vec::as_slice)).collect()
    }

    fn with_parts(&self, group: G, set: &TermSet, counts: RangeInclusive<usize>) -> Vec<&[Entry]> {
        let parts = counts.flat_map(|count| parts(set, count));
        parts.filter_map(|part| self.by_part.get(&(group, part)).map(Vec::as_slice)).collect()
    }

    /// Whether sets are found by parts too: with fewer than two terms in each part they would rule out little.
    fn has_parts(&self) -> bool {
        self.difference(1.0) <= 0.5
    }

    /// The number of terms in which a set of `length` terms and a similar one differ at most.
    fn difference(&self, length: f64) -> f64 {
        (1.0 - self.threshold) / self.threshold * length
    }

    /// The number of parts into which a kept set of `length` terms is divided.
    fn parts_of(&self, length: f64) -> usize {
        // Rounding errors may only increase the number of parts.
        (self.difference(length) + 1e-6) as usize + 1
    }

    /// The numbers of parts of the sets that may be similar to one of `length` terms.
    fn counts_of_parts(&self, length: usize) -> RangeInclusive<usize> {
        let length = length as f64;
        // Rounding errors may only let more lengths in.
        self.parts_of((length * self.threshold - 1e-6).max(0.0))..=self.parts_of(length / self.threshold + 1e-6)
    }
}

/// One part of a set.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Part {
    /// The number of parts of the set.
    count: u32,
    number: u32,
    /// The sum of the terms in this part.
    sum: u64,
}

/// The set divided into `count` parts.
fn parts(set: &TermSet, count: usize) -> impl Iterator<Item = Part> {
    let mut sums = vec![0u64; count];
    for &term in set.hashes() {
        // The upper half of a product depends on all bits of the term.
        let upper = term.wrapping_mul(GOLDEN) >> 32;
        let sum = &mut sums[((upper * count as u64) >> 32) as usize];
        *sum = sum.wrapping_add(term);
    }
    sums.into_iter().enumerate().map(move |(number, sum)| Part { count: count as u32, number: number as u32, sum })
}

/// What is known of a kept set without looking at its terms.
#[derive(Clone, Copy)]
struct Entry {
    place: u32,
    length: u32,
    signature: u128,
}

impl Entry {
    /// Whether the similarity of the two sets can reach `threshold`. A similarity of t means a symmetric difference of
    /// at most (1 − t) / (1 + t) of the two lengths together, and each bit in which the signatures differ stands for a
    /// term of the difference (Sandes et al. 2020).
    fn may_reach(&self, other: &Self, threshold: f64) -> bool {
        let most = (1.0 - threshold) / (1.0 + threshold) * f64::from(self.length + other.length);
        let lengths = self.length.abs_diff(other.length);
        let bits = (self.signature ^ other.signature).count_ones();
        // Rounding errors may only let more sets pass.
        f64::from(lengths.max(bits)) <= most + 1e-6
    }
}

/// A bit for each term, at one of 128 places.
fn signature(set: &TermSet) -> u128 {
    set.hashes().iter().fold(0, |bits, hash| bits | 1 << (hash.wrapping_mul(GOLDEN) >> 57))
}

/// The rarest terms of the set: enough of them that a set as similar as `threshold` shares one.
fn prefix(set: &TermSet, threshold: f64, frequency: &FxHashMap<u64, u32>) -> Vec<u64> {
    let length = set.len();
    // Rounding errors may only make the prefix longer.
    let shared = (threshold * length as f64 - 1e-6).ceil().clamp(1.0, length.max(1) as f64) as usize;
    let keep = (length + 1 - shared).min(length);
    let mut terms: Vec<(u32, u64)> =
        set.hashes().iter().map(|&term| (frequency.get(&term).copied().unwrap_or_default(), term)).collect();
    if keep < terms.len() {
        terms.select_nth_unstable(keep);
        terms.truncate(keep);
    }
    terms.into_iter().map(|(_, term)| term).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use contextweaver_core::text::Analyzer;

    /// Every pair is compared.
    fn all_pairs(sets: &[Option<(u8, &TermSet)>], threshold: f64) -> Vec<Option<usize>> {
        let mut found: Vec<Option<usize>> = Vec::new();
        for (place, entry) in sets.iter().enumerate() {
            let same = |other: &usize| match (entry, sets[*other]) {
                (Some((group, set)), Some((other_group, other))) => {
                    *group == other_group && jaccard(set, other) >= threshold
                }
                _ => false,
            };
            found.push((0..place).filter(|&other| found[other].is_none()).find(same));
        }
        found
    }

    /// Sets of few words in two groups; some are not compared.
    fn sets() -> impl Strategy<Value = Vec<Option<(u8, TermSet)>>> {
        let one = (0u8..2, prop::collection::vec(0u8..14, 0..16), prop::bool::weighted(0.8));
        prop::collection::vec(one, 0..40).prop_map(|texts| {
            let analyzer = Analyzer::default();
            let set = |words: Vec<u8>| {
                let text: Vec<String> = words.iter().map(|word| format!("w{word}x")).collect();
                TermSet::of(&analyzer, &text.join(" "))
            };
            texts.into_iter().map(|(group, words, compared)| compared.then(|| (group, set(words)))).collect()
        })
    }

    fn threshold() -> impl Strategy<Value = f64> {
        prop::sample::select(vec![0.05, 0.3, 0.5, 2.0 / 3.0, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0, 1.5])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_join_finds_what_all_pairs_find(sets in sets(), threshold in threshold()) {
            let sets: Vec<_> = sets.iter().map(|one| one.as_ref().map(|(group, set)| (*group, set))).collect();
            prop_assert_eq!(duplicates(&sets, threshold, |_, _| true), all_pairs(&sets, threshold));
        }

        #[test]
        fn each_way_alone_meets_all_that_are_similar(sets in sets(), threshold in threshold()) {
            let sets: Vec<_> = sets.iter().map(|one| one.as_ref().map(|(group, set)| (*group, set))).collect();
            let mut index = Index::of(&sets, threshold);
            for (place, entry) in sets.iter().enumerate() {
                let Some((group, set)) = *entry else { continue };
                let own = Entry { place: place as u32, length: set.len() as u32, signature: signature(set) };
                let mut ways = vec![index.with_terms(group, set)];
                if index.has_parts() {
                    ways.push(index.with_parts(group, set, index.counts_of_parts(set.len())));
                }
                for (other, _) in sets[..place].iter().enumerate().filter(|(_, other)| {
                    other.is_some_and(|(other, one)| other == group && jaccard(one, set) >= threshold)
                }) {
                    for way in &ways {
                        let met = way.iter().copied().flatten().find(|entry| entry.place as usize == other);
                        prop_assert!(met.is_some_and(|entry| own.may_reach(entry, threshold)));
                    }
                }
                index.insert(group, set, own);
            }
        }
    }
}
