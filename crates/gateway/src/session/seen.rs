//! What a client was shown: result texts, handles of stored results, cards.
//!
//! Later answers depend on it: a repeated text is replaced by a reference, a mistyped handle gets suggestions, and cards
//! shown again keep their bytes.

use std::collections::{BTreeMap, VecDeque};

use contextweaver_context::Seen;
use contextweaver_context::event::{ArtifactRef, Handle};
use contextweaver_routing::ChoiceCard;

/// Bytes of results that are compared with later ones; above that the comparison starts anew. The index of a byte takes
/// at most about two.
const MOST_BYTES: usize = 4 << 20;

/// What a result counts in addition to its bytes.
const ENTRY: usize = 256;

/// The results that a client was shown.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The index over their texts.
    pub(crate) seen: Seen,
    /// Bytes of the results in it, each with the cost of an entry.
    bytes: usize,
}

impl History {
    /// Counts a result of so many bytes, and forgets everything when there are too many.
    pub(crate) fn count(&mut self, bytes: usize) {
        self.bytes += bytes + ENTRY;
        if self.bytes > MOST_BYTES {
            *self = Self::default();
        }
    }
}

/// The handles that a client was given last, oldest first.
#[derive(Debug, Default)]
pub(crate) struct RecentHandles(VecDeque<Handle>);

impl RecentHandles {
    /// Handles that are remembered.
    const MOST: usize = 64;

    /// Notes the handles of these artifacts as the youngest.
    pub(crate) fn add(&mut self, artifacts: &[ArtifactRef]) {
        for artifact in artifacts {
            self.0.retain(|handle| *handle != artifact.handle);
            if self.0.len() == Self::MOST {
                self.0.pop_front();
            }
            self.0.push_back(artifact.handle.clone());
        }
    }

    /// The handles, youngest first.
    pub(crate) fn youngest(&self) -> impl Iterator<Item = &Handle> {
        self.0.iter().rev()
    }
}

/// The cards that a client was shown, each as it was first shown.
#[derive(Debug, Default)]
pub(crate) struct ShownCards {
    /// The generation of the catalog that they belong to; a refresh starts anew.
    generation: u64,
    cards: BTreeMap<String, ChoiceCard>,
}

impl ShownCards {
    /// The cards of this generation by id; cards of another generation are forgotten.
    pub(crate) fn of(&mut self, generation: u64) -> &mut BTreeMap<String, ChoiceCard> {
        if self.generation != generation {
            *self = Self { generation, cards: BTreeMap::new() };
        }
        &mut self.cards
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contextweaver_context::store::{ArtifactStore, MemoryArtifacts};

    #[test]
    fn the_history_is_forgotten_when_it_is_too_large() {
        let mut history = History::default();
        history.count(MOST_BYTES - 2 * ENTRY);
        assert_eq!(history.bytes, MOST_BYTES - ENTRY);
        history.count(1);
        assert_eq!(history.bytes, 0);
    }

    #[test]
    fn the_last_handles_are_remembered_once_each() {
        let artifact = |name: &str| MemoryArtifacts::default().put(&Handle::new(name), b"x", "text/plain", "").unwrap();
        let mut recent = RecentHandles::default();
        for number in 0..100 {
            recent.add(&[artifact(&number.to_string()), artifact("again")]);
        }
        let handles: Vec<&str> = recent.youngest().map(Handle::as_str).collect();
        assert_eq!((handles.len(), handles[0], handles[1]), (RecentHandles::MOST, "again", "99"));
    }
}
