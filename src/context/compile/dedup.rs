//! Stage 6: of items that say the same, the best one stays.
//!
//! The search is exact and near-linear. Two sets whose Jaccard similarity reaches t share at least t·|x| terms of
//! either set x, so with the terms in one fixed order they share a term among the first |x| − ⌈t·|x|⌉ + 1 of each
//! (Chaudhuri et al. 2006; Xiao et al. 2008). Rare terms come first, so few kept items are met; length and a signature
//! of 128 bits sort out most of those before terms are compared.
//!
//! What is never left out here, because the similarity of terms cannot tell that nothing is lost:
//! - **user turns and calls**: a repeated request or call is an event of its own, and calls cost little;
//! - **anything that another candidate depends on**, so that no chain breaks;
//! - **short items** (fewer than [`MIN_TERMS`] terms): results `ok` of two calls are equal as sets and say two things.
//!
//! Items are compared within their kind: that a document says what the assistant said is evidence, not repetition. Of
//! a repeated result the call stays, and the account names the result that says the same. The better score stays,
//! which within a kind is mostly the later one.

use rustc_hash::FxHashMap;

use super::Ledger;
use super::score::Scored;
use crate::context::stats::DropReason;
use crate::event::{ItemKind, Transcript};
use crate::text::{TermSet, jaccard};

/// Items with fewer distinct terms are not compared.
const MIN_TERMS: usize = 8;

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
    let sets: Vec<Option<(ItemKind, &TermSet)>> =
        ranked.iter().map(|scored| comparable(scored).then_some((scored.item.kind, &scored.terms))).collect();
    let duplicates = duplicates(&sets, threshold);
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

/// For each set the first kept one before it in its group that is at least as similar as `threshold`, if any; a set
/// without one is kept. `None` in the input is neither compared nor compared with.
fn duplicates<G: Copy + Eq + std::hash::Hash>(sets: &[Option<(G, &TermSet)>], threshold: f64) -> Vec<Option<usize>> {
    let mut frequency: FxHashMap<u64, u32> = FxHashMap::default();
    for (_, set) in sets.iter().flatten() {
        for &term in set.hashes() {
            *frequency.entry(term).or_default() += 1;
        }
    }
    let mut by_term: FxHashMap<(G, u64), Vec<Entry>> = FxHashMap::default();
    let mut met: Vec<u32> = Vec::new();
    let mut found = vec![None; sets.len()];
    for (place, entry) in sets.iter().enumerate() {
        let Some((group, set)) = *entry else { continue };
        let own = Entry { place: place as u32, length: set.len() as u32, signature: signature(set) };
        let prefix = prefix(set, threshold, &frequency);
        met.clear();
        for &term in &prefix {
            let others = by_term.get(&(group, term)).map(Vec::as_slice).unwrap_or_default();
            met.extend(others.iter().filter(|other| own.may_reach(other, threshold)).map(|other| other.place));
        }
        met.sort_unstable();
        let same = |other: u32| {
            sets.get(other as usize).copied().flatten().is_some_and(|(_, other)| jaccard(set, other) >= threshold)
        };
        found[place] = met.iter().copied().find(|&other| same(other)).map(|other| other as usize);
        if found[place].is_none() {
            for &term in &prefix {
                by_term.entry((group, term)).or_default().push(own);
            }
        }
    }
    found
}

/// What is known of a kept set without looking at its terms.
#[derive(Clone, Copy)]
struct Entry {
    place: u32,
    length: u32,
    signature: u128,
}

impl Entry {
    /// Whether the similarity of the two sets may reach `threshold`. A similarity of t means a symmetric difference of
    /// at most (1 − t) / (1 + t) of the two lengths together, and each bit in which the signatures differ stands for a
    /// term of the difference (Sandes et al. 2020).
    fn may_reach(&self, other: &Self, threshold: f64) -> bool {
        let most = (1.0 - threshold) / (1.0 + threshold) * f64::from(self.length + other.length);
        let lengths = self.length.abs_diff(other.length);
        let bits = (self.signature ^ other.signature).count_ones();
        // Rounding errors may only let more pass.
        f64::from(lengths.max(bits)) <= most + 1e-6
    }
}

/// A bit for each term, at one of 128 places.
fn signature(set: &TermSet) -> u128 {
    set.hashes().iter().fold(0, |bits, hash| bits | 1 << (hash >> 57))
}

/// The rarest terms of the set: enough that a set as similar as `threshold` has one of them among its own.
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
    use crate::text::Analyzer;

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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_join_finds_what_all_pairs_find(
            texts in prop::collection::vec((0u8..2, prop::collection::vec(0u8..14, 0..16), any::<bool>()), 0..40),
            threshold in prop::sample::select(vec![0.05, 0.3, 0.5, 2.0 / 3.0, 0.75, 0.8, 0.85, 0.9, 1.0, 1.5]),
        ) {
            let analyzer = Analyzer::default();
            let sets: Vec<(u8, TermSet, bool)> = texts
                .iter()
                .map(|(group, words, compared)| {
                    let text: Vec<String> = words.iter().map(|word| format!("w{word}x")).collect();
                    (*group, TermSet::of(&analyzer, &text.join(" ")), *compared)
                })
                .collect();
            let sets: Vec<Option<(u8, &TermSet)>> =
                sets.iter().map(|(group, set, compared)| compared.then_some((*group, set))).collect();
            prop_assert_eq!(duplicates(&sets, threshold), all_pairs(&sets, threshold));
        }
    }
}
