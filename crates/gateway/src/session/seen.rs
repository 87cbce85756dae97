//! What a client was shown: result texts, handles of stored results, cards.
//!
//! Later answers depend on it: a repeated text is replaced by a reference, a mistyped handle gets suggestions, and cards
//! shown again keep their bytes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, Weak};

use crate::common::sync::lock;
use contextweaver_context::Seen;
use contextweaver_context::event::{ArtifactRef, Handle};
use contextweaver_routing::ChoiceCard;

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
    /// Counts a result of so many bytes, and forgets everything when there are more than `most`.
    pub(crate) fn count(&mut self, bytes: usize, most: usize) {
        self.bytes += bytes + ENTRY;
        if self.bytes > most {
            *self = Self::default();
        }
    }

    /// Bytes of the results in it. The index of a byte takes at most about two.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The histories of all sessions, by when they were used last, with what each holds. Together they are bounded: the ones that rest
/// longest are forgotten when there is too much.
#[derive(Debug)]
pub(crate) struct Histories {
    most: usize,
    noted: Mutex<Noted>,
}

/// What is known of the histories. A note costs a few steps however many there are: every call makes one.
#[derive(Debug, Default)]
struct Noted {
    /// Counts the notes.
    clock: u64,
    /// By the time of their last note.
    by_time: BTreeMap<u64, (Weak<tokio::sync::Mutex<History>>, usize)>,
    /// The time of the last note by address; an address is not used again while a weak reference to it is kept.
    times: BTreeMap<usize, u64>,
    /// Bytes of all.
    total: usize,
    /// Notes until those of sessions that have ended are dropped.
    until_sweep: usize,
}

impl Noted {
    fn remove(&mut self, time: u64) -> Option<(Weak<tokio::sync::Mutex<History>>, usize)> {
        let (history, bytes) = self.by_time.remove(&time)?;
        self.times.remove(&history.as_ptr().addr());
        self.total -= bytes;
        Some((history, bytes))
    }

    /// Drops what has ended. That looks at all, and is done after as many notes as there are.
    fn sweep(&mut self) {
        let ended: Vec<u64> = self
            .by_time
            .iter()
            .filter(|(_, (history, _))| history.strong_count() == 0)
            .map(|(time, _)| *time)
            .collect();
        for time in ended {
            self.remove(time);
        }
        self.until_sweep = self.by_time.len() + 1;
    }
}

impl Histories {
    /// No histories yet; they may hold `most` bytes together.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, noted: Mutex::default() }
    }

    /// Notes that a history was used and holds so much now.
    pub(crate) fn used(&self, history: &Arc<tokio::sync::Mutex<History>>, bytes: usize) {
        let mut noted = lock(&self.noted);
        let address = Arc::as_ptr(history).addr();
        if let Some(time) = noted.times.get(&address).copied() {
            noted.remove(time);
        }
        let time = noted.clock;
        noted.clock += 1;
        noted.by_time.insert(time, (Arc::downgrade(history), bytes));
        noted.times.insert(address, time);
        noted.total += bytes;
        noted.until_sweep = noted.until_sweep.saturating_sub(1);
        if noted.until_sweep == 0 || noted.total > self.most {
            noted.sweep();
        }
        while noted.total > self.most
            && let Some(oldest) = noted.by_time.keys().next().copied()
            && let Some((oldest, _)) = noted.remove(oldest)
        {
            // One that is in use is noted again when it was used.
            if let Some(oldest) = oldest.upgrade()
                && let Ok(mut oldest) = oldest.try_lock()
            {
                *oldest = History::default();
            }
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

/// What a client searched last, and what was found: which query led to which tool is known by what it then calls.
#[derive(Debug, Default)]
pub(crate) struct Searches(VecDeque<Vec<(String, BTreeSet<String>)>>);

impl Searches {
    /// Searches that are remembered.
    const MOST: usize = 8;

    /// Bytes of a query that is remembered, at most.
    const LONGEST: usize = 2_000;

    /// Notes a search: its queries, each with the ids that it found.
    pub(crate) fn add(&mut self, queries: Vec<(String, BTreeSet<String>)>) {
        let is_short = |(query, _): &(String, _)| query.len() <= Self::LONGEST && !query.trim().is_empty();
        if self.0.len() == Self::MOST {
            self.0.pop_front();
        }
        self.0.push_back(queries.into_iter().filter(is_short).collect());
    }

    /// The queries of the last search that found the tool; each leads there once.
    pub(crate) fn led_to(&mut self, id: &str) -> Vec<String> {
        let took = |queries: &mut Vec<(String, BTreeSet<String>)>| -> Vec<String> {
            queries.iter_mut().filter_map(|(query, ids)| ids.remove(id).then(|| query.clone())).collect()
        };
        self.0.iter_mut().rev().map(took).find(|queries| !queries.is_empty()).unwrap_or_default()
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
        let most = 10 * ENTRY;
        let mut history = History::default();
        history.count(most - 2 * ENTRY, most);
        assert_eq!(history.bytes(), most - ENTRY);
        history.count(1, most);
        assert_eq!(history.bytes(), 0);
    }

    #[test]
    fn of_all_histories_those_are_forgotten_that_rest_longest() {
        let histories = Histories::new(3 * ENTRY);
        let sessions: Vec<_> = (0..4).map(|_| Arc::new(tokio::sync::Mutex::new(History::default()))).collect();
        let note = |session: &Arc<tokio::sync::Mutex<History>>| {
            let mut history = session.try_lock().unwrap();
            history.count(0, usize::MAX);
            let bytes = history.bytes();
            drop(history);
            histories.used(session, bytes);
        };
        sessions[..3].iter().for_each(note);
        let held = || sessions.iter().map(|session| session.try_lock().unwrap().bytes() / ENTRY).collect::<Vec<_>>();
        assert_eq!(held(), [1, 1, 1, 0]);
        note(&sessions[0]);
        assert_eq!(held(), [2, 0, 1, 0], "the second rests longest");
        note(&sessions[3]);
        assert_eq!(held(), [2, 0, 0, 1]);
        // One alone may hold no more than all.
        (0..3).for_each(|_| note(&sessions[3]));
        assert_eq!(held().iter().sum::<usize>(), 0);
    }

    #[test]
    fn what_is_noted_of_histories_is_what_there_is() {
        let histories = Histories::new(1_000);
        let kept: Vec<_> = (0..5).map(|_| Arc::new(tokio::sync::Mutex::new(History::default()))).collect();
        for round in 0..100_usize {
            for history in &kept {
                histories.used(history, round);
            }
            // Sessions that end at once.
            histories.used(&Arc::default(), 1);
        }
        let mut noted = lock(&histories.noted);
        assert!(noted.by_time.len() <= 2 * kept.len() + 2, "{}", noted.by_time.len());
        noted.sweep();
        assert_eq!((noted.by_time.len(), noted.times.len(), noted.total), (kept.len(), kept.len(), 5 * 99));
    }

    #[test]
    fn the_last_search_that_found_a_tool_led_to_it_once() {
        let mut searches = Searches::default();
        let found = |query: &str, ids: &[&str]| (query.to_owned(), ids.iter().map(|id| (*id).to_owned()).collect());
        searches.add(vec![found("list issues", &["a", "b"])]);
        searches.add(vec![found("create issue", &["b"]), found("report bug", &["b"]), found(" ", &["b"])]);
        searches.add(vec![found(&"x".repeat(Searches::LONGEST + 1), &["b"])]);
        assert_eq!(searches.led_to("b"), ["create issue", "report bug"]);
        assert_eq!(searches.led_to("b"), ["list issues"]);
        assert!(searches.led_to("b").is_empty() && searches.led_to("c").is_empty());
        (0..Searches::MOST).for_each(|number| searches.add(vec![found(&number.to_string(), &["d"])]));
        assert!(searches.led_to("a").is_empty(), "it is forgotten");
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
