//! Which texts say the same.
//!
//! Two texts are compared word by word, in order. What carries no meaning is left out of the comparison: case, quotes,
//! punctuation at the end of words, articles, `please`, and the endings that only inflect a word. Everything else counts:
//! a sign, a currency, a path or a name is compared as it is written. Values taken as equal hide a conflict, and the wrong
//! one may be told; values taken as different cost a line. So what is in doubt is different.

use std::collections::HashMap;

use crate::compile::{TURNING, one_line};
use contextweaver_core::text::Analyzer;

/// Endings that make another word of a word (an operator is no operation), without the letters that inflections change.
const DERIVING: &[&str] = &[
    "ion", "ment", "ness", "nes", "er", "or", "iv", "al", "abl", "ibl", "li", "iti", "ism", "ist", "anc", "enc", "ful",
    "les", "ic", "ant", "ent", "ou", "ag", "ship", "at", "iz", "ifi",
];

const QUOTES: [char; 3] = ['"', '\'', '`'];

/// The place of a text among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of the texts that count as one with it.
    pub(super) group: usize,
    /// The number of those among them that differ from it in nothing that carries meaning.
    pub(super) meaning: usize,
}

/// The place of each text. Texts without a difference in meaning are one. With a `percent` under 100, so are statements of
/// which one has all words of the other in the same order, at least that share of its own, and beside them no number, sign
/// or word that turns its meaning: it adds a detail.
pub(super) fn places(texts: &[&str], percent: u8) -> Vec<Place> {
    let reader = Reader::default();
    let mut meanings = Groups::of(texts.len());
    let mut plain: HashMap<String, usize> = HashMap::new();
    let mut read: HashMap<Vec<String>, usize> = HashMap::new();
    let mut words: Vec<Vec<String>> = Vec::with_capacity(texts.len());
    for (at, text) in texts.iter().enumerate() {
        let text = Text::of(text);
        let same = *plain.entry(text.plain()).or_insert(at);
        meanings.join(same, at);
        let meaning = reader.words(&text);
        let same = *read.entry(meaning.clone()).or_insert(at);
        meanings.join(same, at);
        words.push(meaning);
    }
    let meanings: Vec<usize> = (0..texts.len()).map(|at| meanings.root(at)).collect();
    let mut groups: Vec<usize> = meanings.clone();
    if percent < 100 {
        let first: Vec<usize> = (0..texts.len()).filter(|&at| meanings[at] == at).collect();
        for chain in chains(&first, &words, usize::from(percent)) {
            let least = chain.iter().copied().min().unwrap_or_default();
            chain.into_iter().for_each(|at| groups[at] = least);
        }
    }
    meanings.iter().map(|&meaning| Place { group: groups[meaning], meaning }).collect()
}

/// The texts `of`, those together of which each adds details to the next one. A text that could be the beginning of several
/// others stands alone: these contradict each other, and it says nothing about which one holds.
fn chains(of: &[usize], words: &[Vec<String>], percent: usize) -> Vec<Vec<usize>> {
    let mut times: HashMap<&str, usize> = HashMap::new();
    of.iter().flat_map(|&at| &words[at]).for_each(|word| *times.entry(word).or_default() += 1);
    let mut order: Vec<usize> = of.to_vec();
    order.sort_by_key(|&at| (std::cmp::Reverse(words[at].len()), at));
    let mut chains: Vec<Vec<usize>> = Vec::new();
    // A longer text has all words of a shorter one, the rarest among them.
    let mut holders: HashMap<&str, Vec<usize>> = HashMap::new();
    for at in order {
        let own = &words[at];
        let rarest = own.iter().min_by_key(|word| (times.get(word.as_str()), *word));
        let near = rarest.and_then(|word| holders.get(word.as_str())).into_iter().flatten().copied();
        let mut fitting = near.filter(|&chain| {
            let [longest, shortest] = ends(&chains[chain]);
            own.len() * 100 >= percent * words[longest].len() && adds_details(&words[shortest], own)
        });
        match (fitting.next(), fitting.next()) {
            (Some(chain), None) => chains[chain].push(at),
            _ => {
                let mut distinct: Vec<&str> = own.iter().map(String::as_str).collect();
                distinct.sort_unstable();
                distinct.dedup();
                distinct.into_iter().for_each(|word| holders.entry(word).or_default().push(chains.len()));
                chains.push(vec![at]);
            }
        }
    }
    chains
}

/// The first and the last of a chain, which has one at least.
fn ends(chain: &[usize]) -> [usize; 2] {
    [chain.first().copied().unwrap_or_default(), chain.last().copied().unwrap_or_default()]
}

/// Whether `longer` is `shorter` and some plain words.
fn adds_details(longer: &[String], shorter: &[String]) -> bool {
    let is_detail = |word: &str| word.chars().all(char::is_alphabetic) && !TURNING.contains(&word);
    let mut wanted = shorter.iter().peekable();
    for word in longer {
        if wanted.peek() == Some(&word) {
            wanted.next();
        } else if !is_detail(word) {
            return false;
        }
    }
    wanted.peek().is_none()
}

/// Numbers that belong together.
struct Groups {
    parents: Vec<usize>,
}

impl Groups {
    fn of(count: usize) -> Self {
        Self { parents: (0..count).collect() }
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    /// The smaller number stays, so that the groups do not depend on the order in which pairs are found.
    fn join(&mut self, left: usize, right: usize) {
        let (left, right) = (self.root(left), self.root(right));
        self.parents[left.max(right)] = left.min(right);
    }
}

/// A text as words, without quotes and the punctuation behind them.
struct Text {
    words: Vec<String>,
    /// Whether a sentence begins with the word.
    begins: Vec<bool>,
}

impl Text {
    fn of(text: &str) -> Self {
        let line: String = one_line(text).chars().map(plain_sign).collect();
        let (mut words, mut begins, mut is_first) = (Vec::new(), Vec::new(), true);
        for word in line.split(' ').filter(|word| !word.is_empty()) {
            begins.push(is_first);
            words.push(bare(word).to_owned());
            is_first = word.trim_end_matches(QUOTES).ends_with(['.', '!', '?', ':']);
        }
        Self { words, begins }
    }

    fn plain(&self) -> String {
        self.words.iter().map(|word| word.to_lowercase()).collect::<Vec<_>>().join(" ")
    }
}

/// Apostrophes, quotes and minus signs have several forms.
fn plain_sign(sign: char) -> char {
    match sign {
        '‘' | '’' | 'ʼ' => '\'',
        '“' | '”' | '„' | '«' | '»' => '"',
        '−' => '-',
        other => other,
    }
}

/// A word without quotes around it and punctuation behind it. The dots of `..` and a sign that stands alone are no
/// punctuation.
fn bare(word: &str) -> &str {
    let mut bare = word.trim_start_matches(QUOTES);
    loop {
        let shorter = bare.trim_end_matches(QUOTES);
        let behind = |rest: &&str| rest.ends_with(|c: char| c.is_alphanumeric() || ")]}%\"'`".contains(c));
        let shorter = shorter.strip_suffix(['.', ',', ';', ':', '!']).filter(behind).unwrap_or(shorter);
        if shorter.len() == bare.len() {
            break;
        }
        bare = shorter;
    }
    if bare.is_empty() { word } else { bare }
}

/// Reads the words of a text that carry its meaning.
#[derive(Default)]
struct Reader {
    analyzer: Analyzer,
}

impl Reader {
    fn words(&self, text: &Text) -> Vec<String> {
        let is_lower = |word: &str| !word.contains(char::is_uppercase);
        let mut said = Vec::with_capacity(text.words.len());
        for (at, word) in text.words.iter().enumerate() {
            let next = text.words.get(at + 1);
            let begins = text.begins.get(at) == Some(&true);
            let lower = word.to_lowercase();
            if !lower.chars().all(|c| c.is_alphabetic() || c == '\'') {
                said.push(lower);
                continue;
            }
            // An article has something behind it, and the A of a plan is none.
            let is_article =
                matches!(lower.as_str(), "a" | "an" | "the") && next.is_some() && (begins || is_lower(word));
            if is_article || (lower == "please" && text.words.len() > 1) {
                continue;
            }
            let verb = match lower.strip_suffix("n't") {
                Some("ca") => Some("can"),
                Some("wo") => Some("will"),
                Some("sha") => Some("shall"),
                Some("ai") => Some("is"),
                Some(verb) if !verb.is_empty() => Some(verb),
                _ => Some("can").filter(|_| lower == "cannot"),
            };
            if let Some(verb) = verb {
                said.extend([self.inflected(verb), "not".to_owned()]);
                continue;
            }
            // A name has no inflections: Adam is not Adams. A sentence begins with a capital, whatever the word is.
            let is_common = is_lower(word) || begins && next.is_some_and(|next| is_lower(next));
            said.push(if is_common { self.inflected(&lower) } else { lower });
        }
        said
    }

    /// A word without its inflection, in lower case: its stem, and what derives it from another word of this stem.
    fn inflected(&self, word: &str) -> String {
        if TURNING.contains(&word) || !word.is_ascii() {
            return word.to_owned();
        }
        let mut bare = word.strip_suffix('s').unwrap_or(word);
        for ending in ["ing", "ed", "e"] {
            if let Some(shorter) = bare.strip_suffix(ending) {
                bare = shorter;
                break;
            }
        }
        let derived = match bare.strip_suffix('y') {
            Some(start) => format!("{start}i"),
            None => bare.to_owned(),
        };
        let ending = DERIVING.iter().find(|ending| derived.ends_with(**ending)).copied().unwrap_or_default();
        format!("{}{ending}", self.analyzer.stem(word))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn inflections_go_and_other_words_stay() {
        let reader = Reader::default();
        let same = |left: &str, right: &str| reader.inflected(left) == reader.inflected(right);
        for (left, right) in [
            ("restart", "restarts"),
            ("restart", "restarted"),
            ("run", "running"),
            ("copy", "copies"),
            ("policy", "policies"),
            ("create", "creating"),
            ("enable", "enabled"),
            ("server", "servers"),
            ("database", "databases"),
            ("offer", "offered"),
        ] {
            assert!(same(left, right), "{left} {right}");
        }
        for (left, right) in [
            ("operator", "operation"),
            ("product", "production"),
            ("serve", "server"),
            ("deploy", "deployment"),
            ("universe", "university"),
            ("organ", "organization"),
        ] {
            assert!(!same(left, right), "{left} {right}");
        }
    }

    proptest! {
        #[test]
        fn any_texts_have_places(texts in prop::collection::vec("(?s).{0,24}|[a-c' .!\"-]{0,12}", 0..12), percent in 1u8..=100) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let places = places(&texts, percent);
            prop_assert_eq!(places.len(), texts.len());
            for (at, place) in places.iter().enumerate() {
                prop_assert!(place.group <= place.meaning && place.meaning <= at);
                prop_assert_eq!(places[place.meaning].group, place.group);
            }
        }
    }
}
