//! The names under which items are published where ids cannot stand: in `tools/list` and `prompts/list`.

use std::collections::BTreeMap;

use super::shelf::Shelf;

/// The names under which the items of a shelf are published where ids are not names.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The names in the order of the catalog.
    pub(super) by_item: Vec<String>,
    /// The position of the item of each name.
    pub(super) items: BTreeMap<String, usize>,
}

impl Names {
    pub(super) fn of(shelf: Option<&Shelf>) -> Self {
        let mut names = Self::default();
        let items = shelf.map(|shelf| shelf.router.catalog().items()).unwrap_or_default();
        for (at, item) in items.iter().enumerate() {
            let mut digits = HASH_DIGITS;
            let mut name = published_with(&item.id, digits);
            while names.items.contains_key(&name) && digits < MOST_DIGITS {
                digits += 1;
                name = published_with(&item.id, digits);
            }
            names.items.insert(name.clone(), at);
            names.by_item.push(name);
        }
        names
    }
}

/// Characters of a tool's name that every client accepts, at most.
const LONGEST_NAME: usize = 64;

/// Digits of an id's hash in a name that cannot be read back.
const HASH_DIGITS: usize = 8;

/// All digits that fit beside a letter.
const MOST_DIGITS: usize = 60;

/// The canonical id in the letters that every client accepts in the name of a tool: at most 64 of `A-Z a-z 0-9 _ -`.
///
/// `namespace:name#hash8` becomes `namespace__name__hash8` where that can be read back. Any other id is cut and ends in
/// a dash and digits of its own hash, so that no two ids have one name.
#[must_use]
pub fn published_name(id: &str) -> String {
    published_with(id, HASH_DIGITS)
}

fn published_with(id: &str, digits: usize) -> String {
    if let Some(name) = faithful_name(id) {
        return name;
    }
    let letters = id.strip_prefix(PROMPT).unwrap_or(id).chars().map(|c| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
        _ => '_',
    });
    let name: String = letters.take(LONGEST_NAME - digits - 1).collect();
    let hash = contextweaver_core::text::sha256_hex(id.as_bytes());
    format!("{name}-{}", hash.get(..digits).unwrap_or(&hash))
}

/// What the ids of prompts begin with. Their names are not those of tools, so it is not needed to tell them apart.
const PROMPT: &str = "prompt::";

fn faithful_name(id: &str) -> Option<String> {
    let (namespace, rest) = id.strip_prefix(PROMPT).unwrap_or(id).split_once(':')?;
    let (name, hash) = rest.rsplit_once('#')?;
    // Parts that hold or touch the separator cannot be told from it.
    let is_plain = |part: &str| {
        let letters = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        letters && !part.is_empty() && !part.contains("__") && !part.starts_with('_') && !part.ends_with('_')
    };
    let is_hash = hash.len() == 8 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let faithful = format!("{namespace}__{name}__{hash}");
    (is_plain(namespace) && is_plain(name) && is_hash && faithful.len() <= LONGEST_NAME).then_some(faithful)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_can_be_read_from_its_name_or_ends_in_its_hash() {
        let long = format!("ns:{}#00000000", "n".repeat(100));
        let cases = [
            ("fs:read_file#0badcafe", "fs__read_file__0badcafe".to_owned()),
            ("prompt::fs:greet#0badcafe", "fs__greet__0badcafe".to_owned()),
            (
                "fs:_read#0badcafe",
                format!("fs__read_0badcafe-{}", &contextweaver_core::text::sha256_hex(b"fs:_read#0badcafe")[..8]),
            ),
            ("fs:a.b@1.0", format!("fs_a_b_1_0-{}", &contextweaver_core::text::sha256_hex(b"fs:a.b@1.0")[..8])),
            (&long, format!("ns_{}-{}", "n".repeat(52), &contextweaver_core::text::sha256_hex(long.as_bytes())[..8])),
        ];
        for (id, expected) in cases {
            assert_eq!(published_name(id), expected);
        }
    }

    proptest! {
        #[test]
        fn names_are_safe_and_no_two_ids_share_one(
            ids in prop::collection::btree_set(
                prop_oneof!["[a-c_]{1,4}:[a-c_]{1,4}(@[1_]{1,3})?(#0{8})?", "\\PC{0,300}", "a:[a_.]{60,70}#0{8}"], 1..60,
            ),
        ) {
            let names: BTreeSet<String> = ids.iter().map(|id| published_name(id)).collect();
            prop_assert_eq!(names.len(), ids.len());
            for name in names {
                prop_assert!((1..=64).contains(&name.len()));
                prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'));
            }
        }
    }
}
