//! What went wrong, deep in a tree: a few texts under keys that tell of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::profile::{NodeId, Profile};
use super::{rank, shown};
use crate::brief::Piece;
use crate::literal::Value;

/// Words in the keys of what went wrong.
const ERRORS: [&str; 3] = ["error", "exception", "failure"];
/// The key of what explains something, and keys that count beside one of these.
const REASON: &str = "reason";
const BESIDE: [&str; 3] = ["message", "status", "code"];
/// The number of objects with such texts that are told, and of texts of each.
const MOST: usize = 3;
/// The number of texts under one key from which they are none of those.
const MANY: usize = 3;
/// The number of characters of a text.
const TEXT: usize = 160;
/// The number of characters by which a quotation is found again.
const QUOTED: usize = 60;
/// The number of keys of a path that are shown.
const KEYS: usize = 6;

/// What went wrong in a literal.
pub(super) struct Failure {
    /// The statement.
    pub(super) piece: Piece,
    /// The beginning of a text that it quotes, as it is written in the literal.
    pub(super) quoted: String,
}

/// How a text tells of what went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    /// It is what went wrong.
    Error,
    /// It explains something.
    Reason,
    /// It counts beside one of these.
    Beside,
}

impl Word {
    /// How texts under `key` tell of it, if they do.
    fn of(key: &str) -> Option<Self> {
        let key = key.to_lowercase();
        match () {
            () if ERRORS.iter().any(|word| key.contains(word)) => Some(Self::Error),
            () if key == REASON => Some(Self::Reason),
            () if BESIDE.contains(&key.as_str()) => Some(Self::Beside),
            () => None,
        }
    }
}

/// What went wrong below the members of `root`, in the deepest object first.
pub(super) fn of<'d>(profile: &Profile<'d>, root: Value<'d>) -> Option<Failure> {
    let mut objects: BTreeMap<NodeId, Vec<(Word, usize)>> = BTreeMap::new();
    for (id, name) in profile.named() {
        let (Some(word), Some(node), parent) = (Word::of(&name), profile.node(id), profile.parent(id)) else {
            continue;
        };
        if parent != 0 {
            objects.entry(parent).or_default().extend(node.column.few_texts(MANY).map(|at| (word, at)));
        }
    }
    for texts in objects.values_mut() {
        texts.sort_unstable();
    }
    let first = |texts: &[(Word, usize)]| texts.first().map(|(word, _)| *word);
    objects.retain(|_, texts| first(texts).is_some_and(|word| word != Word::Beside));
    let mut objects: Vec<_> = objects.into_iter().collect();
    objects.sort_by_key(|(id, texts)| (first(texts), Reverse(profile.level(*id))));
    let mut quoted = None;
    let mut said: Vec<String> = Vec::new();
    for (_, texts) in objects.into_iter().take(MOST) {
        let texts = texts.into_iter().take(MOST).filter_map(|(_, at)| Text::at(root, at));
        let texts: Vec<Text<'_>> = texts.filter(|text| !text.value.plain().trim().is_empty()).collect();
        quoted = quoted.or_else(|| texts.last().map(|text| text.value.text()));
        let entries = texts.iter().enumerate().map(|(number, Text { path, key, value })| {
            format!("{}: {}", if number == 0 { path } else { key }, shown::value(*value, TEXT))
        });
        said.extend(entries.reduce(|all, entry| format!("{all}; {entry}")));
    }
    let piece = Piece::line(rank::ERROR_PLACE, rank::ERROR, said.first()?.clone());
    let quoted = quoted?.trim_matches(['"', '\'']).chars().take(QUOTED).collect();
    Some(Failure { piece: piece.or(rank::MORE_ERRORS, said.join("; ")), quoted })
}

/// A text with the place where it is.
struct Text<'d> {
    /// The path; of a long one the end, and how deep it is.
    path: String,
    /// The last key of the path.
    key: String,
    value: Value<'d>,
}

impl<'d> Text<'d> {
    /// The text at a byte of the source.
    fn at(root: Value<'d>, at: usize) -> Option<Self> {
        let (mut value, mut steps) = (root, Vec::new());
        while value.is_container() {
            let keys = value.members().map(|(key, _)| Some(key)).chain(std::iter::repeat(None));
            let mut entries = value.items().zip(keys).enumerate();
            let (number, (item, key)) = entries.find(|(_, (item, _))| item.span().end > at)?;
            let step = key.map(|key| shown::member_path("", &key.plain()));
            steps.push(step.unwrap_or_else(|| format!("[{number}]")));
            value = item;
        }
        let depth = steps.len();
        let end = steps.split_off(depth.saturating_sub(KEYS));
        let path = end.join(".").replace(".[", "[");
        let path = if steps.is_empty() { path } else { format!("….{path} (depth {depth})") };
        let key = end.last().cloned().unwrap_or_default();
        (value.span().start == at).then_some(Self { path, key, value })
    }
}
