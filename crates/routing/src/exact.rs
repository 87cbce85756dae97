//! A query that gives a tool's name finds that tool, whatever the scores are.
//!
//! Names are compared as sequences of words, so `create_issue`, `createIssue` and `create issue` are one name. The
//! whole query may be the name; inside a longer query only what looks like an identifier counts, since `search` or
//! `list` are ordinary words there. An identifier ends where another script or a bracket begins, so a name is found
//! in `请使用create_issue工具` and in `create_issue(title)`.
//!
//! An operation of an HTTP API is also named by its path, alone or behind its method: `GET /orders/{id}`.

use std::borrow::Borrow;

use rayon::prelude::*;
use serde_json::Value;

use super::dictionary::mixed;
use super::image::{Image, ImageBuilder, Part, number};
use contextweaver_core::catalog::SelectableItem;
use contextweaver_core::text::for_each_word;

/// The longest name that is looked for, in words.
const LONGEST: usize = 64;

/// The average number of names per bucket, as a power of two.
const BUCKET_BITS: u32 = 2;

/// The word sequences of all names, qualified names and ids, ascending by hash and item. The upper bits of a sequence's
/// hash select its bucket, the next 32 are kept with the item. A bucket has fewer than eight names on average, so other
/// words are taken for a name with a probability below 2⁻²⁹.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExactNames<'i> {
    /// Where each bucket begins, and the end of the last.
    buckets: &'i [[u8; 4]],
    /// Per name the kept part of its hash (upper half) and its item.
    names: &'i [[u8; 8]],
}

/// A running hash of a sequence of words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sequence {
    hash: u64,
    words: usize,
}

impl Sequence {
    pub(super) fn new() -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, words: 0 }
    }

    /// Appends a normalised word (FNV-1a over its bytes and a separator).
    pub(super) fn push(&mut self, word: &str) {
        self.words += 1;
        if self.words <= LONGEST {
            let bytes = word.bytes().chain([b' ']);
            self.hash = bytes.fold(self.hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        }
    }

    fn of(text: &str) -> Self {
        let mut sequence = Self::new();
        for_each_word(text, |word| sequence.push(word));
        sequence
    }

    /// The hash, unless the sequence is empty or too long.
    fn hash(&self) -> Option<u64> {
        (1..=LONGEST).contains(&self.words).then(|| mixed(self.hash))
    }
}

impl<'i> ExactNames<'i> {
    pub(super) fn of(image: &'i Image) -> Self {
        Self { buckets: image.cells(Part::NameBuckets), names: image.cells(Part::Names) }
    }

    /// Adds the names of all items to an index image.
    pub(super) fn build<I: Borrow<SelectableItem> + Sync>(items: &[I], image: &mut ImageBuilder) {
        let numbered = items.par_iter().enumerate();
        let hashes = numbered.flat_map_iter(|(number, item)| {
            hashes_of(item.borrow()).into_iter().flatten().map(move |hash| (hash, number as u32))
        });
        let mut names: Vec<(u64, u32)> = hashes.collect();
        names.par_sort_unstable();
        names.dedup();
        let bits = names.len().checked_ilog2().unwrap_or(0).saturating_sub(BUCKET_BITS);
        let starts =
            (0..=1u64 << bits).map(|bucket| names.partition_point(|(hash, _)| bucket_of(*hash, bits) < bucket));
        image.push(Part::NameBuckets, starts.map(|start| (start as u32).to_le_bytes()));
        image.push(Part::Names, names.iter().map(|(hash, item)| cell(kept(*hash, bits), *item)));
    }

    /// Checks that every name belongs to one of `items` items; the error says what is wrong.
    pub(super) fn check(&self, items: u32) -> Result<(), &'static str> {
        let all = self.names.iter().map(parts).all(|(_, item)| item < items);
        if all { Ok(()) } else { Err("a name belongs to no item") }
    }

    /// The items that bear the name of this hash, ascending.
    fn items_of(&self, hash: u64) -> impl Iterator<Item = u32> + use<'i> {
        let bits = self.buckets.len().saturating_sub(1).checked_ilog2().unwrap_or(0);
        let bucket = bucket_of(hash, bits) as usize;
        let (start, end) = (number(self.buckets, bucket) as usize, number(self.buckets, bucket + 1) as usize);
        let wanted = kept(hash, bits);
        let of_bucket = self.names.get(start..end).unwrap_or_default().iter().map(parts);
        let same = of_bucket.skip_while(move |(kept, _)| *kept != wanted);
        same.take_while(move |(kept, _)| *kept == wanted).map(|(_, item)| item)
    }

    /// Adds to `found` the items named by the whole query or by an identifier in it, ascending without repeats.
    pub(super) fn find(&self, query: &Sequence, text: &str, found: &mut Vec<u32>) {
        if let Some(hash) = query.hash() {
            found.extend(self.items_of(hash));
        }
        for_each_path(text, |method, path| {
            found.extend(path_hash(method, path).into_iter().flat_map(|hash| self.items_of(hash)));
        });
        for_each_joined_run(text, |run| {
            if !self.find_identifier(run, text, found) && run.contains(QUALIFIERS) {
                for piece in run.split(QUALIFIERS) {
                    self.find_identifier(piece, text, found);
                }
            }
        });
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

    /// Adds to `found` the items that `token` names, without the punctuation around it; returns whether there are any.
    /// A token that is the whole `text` is not looked up again.
    fn find_identifier(&self, token: &str, text: &str, found: &mut Vec<u32>) -> bool {
        let token = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        if token.len() == text.len() || !is_identifier(token) {
            return false;
        }
        let before = found.len();
        found.extend(Sequence::of(token).hash().into_iter().flat_map(|hash| self.items_of(hash)));
        found.len() > before
    }
}

/// The names of an item: its own name, its name in its namespace, its id, its name on its server, and, of an operation of an
/// HTTP API, its path without and with its method.
fn hashes_of(item: &SelectableItem) -> [Option<u64>; 6] {
    let of = |before: &str, text: &str| {
        let mut sequence = Sequence::new();
        for_each_word(before, |word| sequence.push(word));
        for_each_word(text, |word| sequence.push(word));
        sequence.hash()
    };
    let server = item.server.as_deref().and_then(|server| of(server, &item.name));
    let text = |key: &str| item.metadata.get(key).and_then(Value::as_str);
    let path = text("path").filter(|path| path.starts_with('/'));
    let path = text("method").zip(path);
    let [alone, behind] = path.map_or([None; 2], |(method, path)| [path_hash("", path), path_hash(method, path)]);
    [of("", &item.name), of(&item.namespace, &item.name), of("", &item.id), server, alone, behind]
}

/// The hash of a path behind a method, or alone behind none. No word is a slash, so no other name is taken for a path.
fn path_hash(method: &str, path: &str) -> Option<u64> {
    let mut sequence = Sequence::new();
    sequence.push("/");
    for_each_word(method, |word| sequence.push(word));
    sequence.push("/");
    let before = sequence.words;
    for_each_word(path, |word| sequence.push(word));
    sequence.hash().filter(|_| sequence.words > before)
}

/// Calls `visit` with each path that `text` writes as one token, and the method in front of it; with no method where another
/// word is there.
fn for_each_path<'t>(text: &'t str, mut visit: impl FnMut(&'t str, &'t str)) {
    const METHODS: [&str; 9] = ["delete", "get", "head", "options", "patch", "post", "put", "query", "trace"];
    const OPENING: [char; 4] = ['`', '"', '\'', '('];
    if !text.contains('/') {
        return;
    }
    let mut before = "";
    for token in text.split_ascii_whitespace().map(|token| token.trim_start_matches(OPENING)) {
        if token.starts_with('/') {
            let is_method = METHODS.iter().any(|method| before.eq_ignore_ascii_case(method));
            visit(if is_method { before } else { "" }, token);
        }
        before = token;
    }
}

fn bucket_of(hash: u64, bits: u32) -> u64 {
    hash.checked_shr(u64::BITS - bits).unwrap_or(0)
}

/// The bits of a hash below those that select its bucket.
fn kept(hash: u64, bits: u32) -> u32 {
    (hash << bits >> 32) as u32
}

fn cell(kept: u32, item: u32) -> [u8; 8] {
    (u64::from(kept) << 32 | u64::from(item)).to_le_bytes()
}

/// The kept part of a name's hash, and the name's item.
fn parts(cell: &[u8; 8]) -> (u32, u32) {
    let name = u64::from_le_bytes(*cell);
    ((name >> 32) as u32, name as u32)
}

/// The characters between the parts of a qualified name.
const QUALIFIERS: [char; 3] = ['/', ':', '.'];

/// The role of a byte in the ids and names of most catalogs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A byte that occurs in none, as those of all characters outside ASCII.
    Outside,
    Lower,
    Upper,
    /// One of `_ - . : /`, which join words.
    Joint,
    Other,
}

impl Kind {
    const fn of(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' => Self::Lower,
            b'A'..=b'Z' => Self::Upper,
            b'_' | b'-' | b'.' | b':' | b'/' => Self::Joint,
            b'0'..=b'9' | b'#' | b'@' => Self::Other,
            _ => Self::Outside,
        }
    }

    /// Whether two neighbouring bytes are written as in an identifier.
    fn joins(self, next: Self) -> bool {
        self == Self::Joint || (self == Self::Lower && next == Self::Upper)
    }
}

/// [`Kind::of`] for every byte.
static KINDS: [Kind; 256] = {
    let mut kinds = [Kind::Outside; 256];
    let mut byte = 0;
    while byte < kinds.len() {
        kinds[byte] = Kind::of(byte as u8);
        byte += 1;
    }
    kinds
};

/// Calls `visit` with the runs of bytes that can be in an identifier, leaving out runs that contain none.
fn for_each_joined_run<'t>(text: &'t str, mut visit: impl FnMut(&'t str)) {
    let (mut start, mut joined, mut before) = (0, false, Kind::Outside);
    for (at, byte) in text.bytes().chain([b' ']).enumerate() {
        let kind = KINDS[usize::from(byte)];
        if kind == Kind::Outside {
            if joined {
                visit(text.get(start..at).unwrap_or_default());
            }
            (start, joined) = (at + 1, false);
        } else {
            joined |= before.joins(kind);
        }
        before = kind;
    }
}

/// Whether a token is written like an identifier: joined by `_ - . : /`, or with a capital inside.
fn is_identifier(token: &str) -> bool {
    let bytes = token.as_bytes();
    bytes.len() > 2 && bytes.windows(2).any(|pair| Kind::of(pair[0]).joins(Kind::of(pair[1])))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use contextweaver_core::catalog::SelectableItem;

    proptest! {
        #[test]
        fn no_run_with_an_identifier_is_left_out(text in "[aB2_./@ é(]{0,12}") {
            let mut runs = Vec::new();
            for_each_joined_run(&text, |run| runs.push(run));
            let outside = |character: char| !character.is_ascii() || Kind::of(character as u8) == Kind::Outside;
            let worth = |run: &&str| run.split(QUALIFIERS).chain([*run]).any(is_identifier);
            let plain: Vec<&str> = text.split(outside).filter(worth).collect();
            let found: Vec<&str> = runs.iter().copied().filter(worth).collect();
            prop_assert_eq!(found, plain);
        }
    }

    #[test]
    fn names_are_found_as_people_write_them() {
        let operation = |id: &str, method: &str, path: &str| {
            let mut item = SelectableItem::tool(id, "shop", id, "");
            item.metadata =
                [("method", method), ("path", path)].map(|(key, text)| (key.to_owned(), text.into())).into();
            item
        };
        let items = vec![
            SelectableItem::tool("forge:create_issue#00000001", "forge", "create_issue", ""),
            SelectableItem::tool("mail:search#00000002", "mail", "search", ""),
            SelectableItem::tool("wiki:search#00000003", "wiki", "search", ""),
            SelectableItem::tool("wiki:zoek_größe#00000004", "wiki", "zoek_größe", ""),
            operation("shop:a#00000005", "get", "/orders/{id}"),
            operation("shop:b#00000006", "delete", "/orders/{id}"),
            operation("shop:c#00000007", "get", "/"),
        ];
        let mut image = ImageBuilder::until(Part::NameBuckets);
        ExactNames::build(&items, &mut image);
        let image = image.finish();
        let names = ExactNames::of(&image);
        let find = |query: &str| {
            let mut sequence = Sequence::new();
            for_each_word(query, |word| sequence.push(word));
            let mut found = Vec::new();
            names.find(&sequence, query, &mut found);
            found
        };
        let table: [(&str, &[u32]); 30] = [
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
            ("GET /orders/{id}", &[4]),
            ("call `delete /orders/:id`, please", &[5]),
            ("what does /orders/{id} take?", &[4, 5]),
            ("POST /orders/{id}", &[]),
            ("get orders id", &[]),
            ("orders/{id}", &[]),
            ("/orders", &[]),
            ("/search", &[1, 2]),
            ("GET /", &[]),
        ];
        for (query, expected) in table {
            assert_eq!(find(query), expected, "{query}");
        }
    }
}
