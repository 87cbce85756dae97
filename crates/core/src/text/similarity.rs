//! How similar two texts are as sets of terms.

use rustc_hash::FxHashMap;

use super::{Analyzer, for_each_word, is_stop_word};

/// The number of words remembered at most; a long conversation has far fewer.
const MAX_KNOWN_WORDS: usize = 1 << 16;

/// The distinct terms of a text, hashed and sorted: a compact form for many comparisons.
///
/// Two different terms share a hash with probability 2^-64, which is far below any error that a similarity
/// threshold could see.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TermSet {
    hashes: Vec<u64>,
}

impl TermSet {
    /// The set of terms that `analyzer` finds in `text`.
    #[must_use]
    pub fn of(analyzer: &Analyzer, text: &str) -> Self {
        let mut hashes: Vec<u64> = analyzer.terms(text).iter().map(|term| fnv1a(term)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Self { hashes }
    }

    /// The number of distinct terms.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether the text had no terms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The hashes in ascending order.
    #[must_use]
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// How many terms of `self` also occur in `other`.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> usize {
        let (mut left, mut right, mut shared) = (0, 0, 0);
        while left < self.hashes.len() && right < other.hashes.len() {
            match self.hashes[left].cmp(&other.hashes[right]) {
                std::cmp::Ordering::Less => left += 1,
                std::cmp::Ordering::Greater => right += 1,
                std::cmp::Ordering::Equal => {
                    shared += 1;
                    left += 1;
                    right += 1;
                }
            }
        }
        shared
    }
}

/// Makes the term sets of many texts, remembering the terms of words it has met.
#[derive(Debug, Default)]
pub struct Terms {
    analyzer: Analyzer,
    /// The hash of the term of a word; `None` for a stop word.
    known: FxHashMap<Box<str>, Option<u64>>,
}

impl Terms {
    /// The same as [`TermSet::of`].
    #[must_use]
    pub fn set(&mut self, text: &str) -> TermSet {
        let Self { analyzer, known } = self;
        if known.len() > MAX_KNOWN_WORDS {
            known.clear();
        }
        let mut hashes = Vec::new();
        for_each_word(text, |word| {
            let hash = match known.get(word) {
                Some(hash) => *hash,
                None => {
                    let hash = (!is_stop_word(word)).then(|| fnv1a(&analyzer.stem(word)));
                    known.insert(word.into(), hash);
                    hash
                }
            };
            hashes.extend(hash);
        });
        hashes.sort_unstable();
        hashes.dedup();
        TermSet { hashes }
    }
}

/// The Jaccard similarity |A ∩ B| / |A ∪ B|, in [0, 1]; 0 when both sets are empty.
#[must_use]
pub fn jaccard(left: &TermSet, right: &TermSet) -> f64 {
    let shared = left.intersection(right);
    let union = left.len() + right.len() - shared;
    if union == 0 { 0.0 } else { shared as f64 / union as f64 }
}

/// FNV-1a, 64 bit: stable across platforms and versions, which the standard hasher does not promise.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jaccard_counts_shared_terms() {
        let analyzer = Analyzer::default();
        let set = |text| TermSet::of(&analyzer, text);
        assert_eq!(jaccard(&set("create an issue"), &set("issue creation")), 1.0 / 3.0_f64.max(1.0));
        assert_eq!(jaccard(&set("list files"), &set("listing the file")), 1.0);
        assert_eq!(jaccard(&set(""), &set("")), 0.0);
    }

    #[test]
    fn remembered_words_give_the_same_sets() {
        let (analyzer, mut terms) = (Analyzer::default(), Terms::default());
        for text in ["create an issue", "Issues created by the creators", "", "查询 issue 天气", "create an issue"]
        {
            assert_eq!(terms.set(text), TermSet::of(&analyzer, text), "{text}");
        }
    }
}
