//! A query that gives a tool's name finds that tool, whatever the scores say.
//!
//! Names are compared as sequences of words, so `create_issue`, `createIssue` and `create issue` are one name. The
//! whole query may be the name; inside a longer query only what looks like an identifier counts, since `search` or
//! `list` are ordinary words there. An identifier ends where another script or a bracket begins, so a name is found
//! in `请使用create_issue工具` and in `create_issue(title)`.

use std::collections::BTreeMap;

use crate::catalog::Catalog;
use crate::text::for_each_word;

/// The word sequences of all names, qualified names and ids.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct ExactNames {
    /// Sequence to the items that bear it, ascending. A sequence is kept as its 64-bit hash: two names share one by
    /// accident with probability 2⁻⁶⁴.
    by_sequence: BTreeMap<u64, Vec<u32>>,
    /// Words in the longest sequence.
    longest: usize,
}

/// A running hash of a sequence of words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sequence {
    hash: u64,
    words: usize,
    longest: usize,
}

impl Sequence {
    fn new(longest: usize) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, words: 0, longest }
    }

    /// Appends a normalised word (FNV-1a over its bytes and a separator).
    pub(super) fn push(&mut self, word: &str) {
        self.words += 1;
        if self.words <= self.longest {
            let bytes = word.bytes().chain([b' ']);
            self.hash = bytes.fold(self.hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        }
    }

    fn of(text: &str) -> Self {
        let mut sequence = Self::new(usize::MAX);
        for_each_word(text, |word| sequence.push(word));
        sequence
    }
}

impl ExactNames {
    pub(super) fn of(catalog: &Catalog) -> Self {
        let mut names = Self::default();
        for (number, item) in catalog.items().iter().enumerate() {
            let qualified = format!("{} {}", item.namespace, item.name);
            let server = item.server.as_deref().map(|server| format!("{server} {}", item.name));
            for name in [Some(item.name.as_str()), Some(&qualified), Some(&item.id), server.as_deref()] {
                names.insert(name.unwrap_or_default(), number as u32);
            }
        }
        names
    }

    fn insert(&mut self, name: &str, item: u32) {
        let sequence = Sequence::of(name);
        if sequence.words == 0 {
            return;
        }
        self.longest = self.longest.max(sequence.words);
        let items = self.by_sequence.entry(sequence.hash).or_default();
        if items.last() != Some(&item) {
            items.push(item);
        }
    }

    /// Whether every name is of one of the first `items` items.
    pub(super) fn are_within(&self, items: u32) -> bool {
        self.by_sequence.values().flatten().all(|item| *item < items)
    }

    /// An empty sequence to push the query's words into.
    pub(super) fn sequence(&self) -> Sequence {
        Sequence::new(self.longest)
    }

    /// Adds to `found` the items named by the whole query or by an identifier in it, ascending without repeats.
    pub(super) fn find(&self, query: &Sequence, text: &str, found: &mut Vec<u32>) {
        if query.words <= self.longest
            && let Some(items) = self.by_sequence.get(&query.hash)
        {
            found.extend_from_slice(items);
        }
        for run in text.split(|character| !is_of_identifier(character)) {
            if !self.find_identifier(run, text, found) && run.contains(QUALIFIERS) {
                for piece in run.split(QUALIFIERS) {
                    self.find_identifier(piece, text, found);
                }
            }
        }
        if !text.is_ascii() {
            for token in text.split_ascii_whitespace().filter(|token| !token.is_ascii()) {
                self.find_identifier(token, text, found);
            }
        }
        if found.len() > 1 {
            found.sort_unstable();
            found.dedup();
        }
    }

    /// Adds to `found` the items that `token`, without the punctuation around it, names; whether there are any. The
    /// whole `text` is not asked about again.
    fn find_identifier(&self, token: &str, text: &str, found: &mut Vec<u32>) -> bool {
        let token = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        if token.len() == text.len() || !is_identifier(token) {
            return false;
        }
        let items = self.by_sequence.get(&Sequence::of(token).hash);
        found.extend_from_slice(items.map_or(&[], Vec::as_slice));
        items.is_some()
    }
}

/// Between the parts of a qualified name.
const QUALIFIERS: [char; 3] = ['/', ':', '.'];

/// Whether a character can stand in the ids and names of most catalogs.
fn is_of_identifier(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | ':' | '/' | '#' | '@' | '-')
}

/// Whether a token is written as identifiers are: joined by `_ - . : /`, or with a capital inside.
fn is_identifier(token: &str) -> bool {
    let bytes = token.as_bytes();
    bytes.len() > 2
        && bytes.windows(2).any(|pair| {
            matches!(pair[0], b'_' | b'-' | b'.' | b':' | b'/')
                || (pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::SelectableItem;

    #[test]
    fn names_are_found_as_people_write_them() {
        let items = vec![
            SelectableItem::tool("forge:create_issue#00000001", "forge", "create_issue", ""),
            SelectableItem::tool("mail:search#00000002", "mail", "search", ""),
            SelectableItem::tool("wiki:search#00000003", "wiki", "search", ""),
            SelectableItem::tool("wiki:zoek_größe#00000004", "wiki", "zoek_größe", ""),
        ];
        let names = ExactNames::of(&Catalog::new(items).unwrap());
        let find = |query: &str| {
            let mut sequence = names.sequence();
            for_each_word(query, |word| sequence.push(word));
            let mut found = Vec::new();
            names.find(&sequence, query, &mut found);
            found
        };
        let table: [(&str, &[u32]); 21] = [
            ("create_issue", &[0]),
            ("createIssue", &[0]),
            ("Create Issue", &[0]),
            ("call forge.create_issue for me", &[0]),
            ("use `create_issue`, please", &[0]),
            ("forge:create_issue#00000001", &[0]),
            ("search", &[1, 2]),
            ("wiki search", &[2]),
            ("search my mail", &[]),
            ("create an issue", &[]),
            ("请使用create_issue工具", &[0]),
            ("create_issue(title)", &[0]),
            ("call create_issue/list", &[0]),
            ("create_issue/list", &[0]),
            ("see docs/forge.create_issue.", &[0]),
            ("call forge.create_issue/list", &[0]),
            ("forge:create_issue#00000001(title)", &[0]),
            ("用zoek_größe", &[]),
            ("use `zoek_größe`", &[3]),
            ("search/list.it", &[]),
            ("open https://x.org/search", &[]),
        ];
        for (query, expected) in table {
            assert_eq!(find(query), expected, "{query}");
        }
    }
}
