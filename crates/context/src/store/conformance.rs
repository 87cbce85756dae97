//! The rules of the four traits, checked on any backend.
//!
//! A backend is given as a function that makes an empty store; it is called many times. No test framework is needed:
//! the first broken rule is returned as a [`Failure`]. A backend that keeps files should give each store its own
//! folder.
//!
//! ```
//! use contextweaver_context::store::{MemoryEvents, conformance};
//!
//! conformance::events(MemoryEvents::default).unwrap();
//! ```

use std::fmt::Debug;

use super::{ArtifactStore, EpisodicStore, EventLog, FactStore, StoreError};
use crate::event::{
    ArtifactRef, ContentHash, ContextItem, Episode, Fact, Handle, ItemKind, Sensitivity, Transcript, TranscriptError,
};

/// A backend broke a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the rule \"{rule}\" is broken: {detail}")]
pub struct Failure {
    /// The rule in words.
    pub rule: &'static str,
    /// What was expected and what was found.
    pub detail: String,
}

/// The number of threads that use one store at the same time.
const THREADS: usize = 4;
/// The number of entries that each of them adds.
const EACH: usize = 10;

/// Names that a backend may mistake for something else: paths, patterns, other spellings of each other.
const NAMES: [&str; 22] = [
    "artifact:result:tc1",
    "plain",
    "PLAIN",
    "Plain",
    "",
    " ",
    ".",
    "..",
    "../up",
    "/root",
    "a/b",
    "a\\b",
    "con",
    "%41",
    "A",
    "nul\0byte",
    "line\nbreak",
    "é",
    "e\u{301}",
    "木🌳",
    "'; DROP TABLE artifacts; --",
    "*",
];

/// A name that is longer than a file name may be.
fn long_name(last: char) -> String {
    "ü".repeat(300) + &last.to_string()
}

fn names() -> Vec<String> {
    NAMES.iter().map(|&name| name.to_owned()).chain([long_name('a'), long_name('b')]).collect()
}

fn fail<T>(rule: &'static str, detail: impl Into<String>) -> Result<T, Failure> {
    Err(Failure { rule, detail: detail.into() })
}

/// The value of a call that must succeed.
fn done<T>(rule: &'static str, result: Result<T, StoreError>) -> Result<T, Failure> {
    result.or_else(|error| fail(rule, format!("unexpected error: {error}")))
}

fn same<T: PartialEq + Debug>(rule: &'static str, found: &T, expected: &T) -> Result<(), Failure> {
    if found == expected { Ok(()) } else { fail(rule, format!("expected {expected:?}, found {found:?}")) }
}

/// Runs `work` on several threads at once, each with its number.
fn at_once(work: impl Fn(usize) -> Result<(), Failure> + Sync) -> Result<(), Failure> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let work = &work;
                    move || work(thread)
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| fail("threads may share a store", "a thread panicked"))
        })
    })
}

fn event(id: &str, parent: Option<&str>) -> ContextItem {
    let item = ContextItem::new(id, ItemKind::AgentMsg, format!("text of {id}"));
    match parent {
        Some(parent) => item.under(parent),
        None => item,
    }
}

/// An event in which every field is set.
fn full_event() -> ContextItem {
    let mut item = event("full", Some("plain")).with_sensitivity(Sensitivity::Restricted);
    item.kind = ItemKind::ToolResult;
    item.text = "line\nwith \"quotes\", \0, é and 🌳".to_owned();
    item.token_estimate = Some(7);
    item.metadata.insert("z".to_owned(), serde_json::json!([1, -2, 0.5, true, null, {"y": "x", "a": ""}]));
    item.metadata.insert("a".to_owned(), serde_json::json!(u64::MAX));
    item.artifact = Some(ArtifactRef {
        handle: Handle::new("artifact:result:tc1"),
        media_type: "text/plain".to_owned(),
        size_bytes: 3,
        label: "three bytes".to_owned(),
        content_hash: ContentHash::of(b"abc"),
    });
    item
}

/// Checks an [`EventLog`].
///
/// # Errors
/// [`Failure`] with the first broken rule.
pub fn events<S: EventLog>(make: impl Fn() -> S) -> Result<(), Failure> {
    events_are_kept(&make())?;
    events_that_break_a_rule_are_refused(&make())?;
    events_of_threads_are_kept(&make())
}

fn events_are_kept(log: &impl EventLog) -> Result<(), Failure> {
    const EMPTY: &str = "a new log is empty";
    same(EMPTY, &done(EMPTY, log.len())?, &0)?;
    same(EMPTY, &done(EMPTY, log.is_empty())?, &true)?;
    same(EMPTY, &done(EMPTY, log.transcript())?.len(), &0)?;
    same(EMPTY, &done(EMPTY, log.get("plain"))?, &None)?;

    const KEPT: &str = "events come back as they were, in the order in which they were added";
    let mut added: Vec<ContextItem> = names().iter().map(|name| event(name, None)).collect();
    added.push(full_event());
    for item in &added {
        done(KEPT, log.append(item.clone()))?;
        same(KEPT, &done(KEPT, log.get(item.id.as_str()))?.as_ref(), &Some(item))?;
    }
    same(KEPT, &done(KEPT, log.len())?, &added.len())?;
    same(KEPT, &done(KEPT, log.is_empty())?, &false)?;
    same(KEPT, &done(KEPT, log.transcript())?.into_items(), &added)
}

fn events_that_break_a_rule_are_refused(log: &impl EventLog) -> Result<(), Failure> {
    const REFUSED: &str =
        "an event with a taken id, a missing parent or itself as parent is refused as by Transcript::push";
    const UNCHANGED: &str = "a refused event changes nothing";
    let mut expected = Transcript::default();
    let tries = [
        event("a", None),
        event("a", None),
        event("b", Some("missing")),
        event("b", Some("b")),
        event("b", Some("a")),
        event("a", Some("b")),
        event("c", Some("b")),
        event("missing", None),
    ];
    for item in tries {
        let found: Result<(), TranscriptError> = match log.append(item.clone()) {
            Ok(()) => Ok(()),
            Err(StoreError::Event(error)) => Err(error),
            Err(error) => return fail(REFUSED, format!("`{}`: unexpected error: {error}", item.id)),
        };
        same(REFUSED, &found, &expected.push(item))?;
        same(UNCHANGED, &done(UNCHANGED, log.len())?, &expected.len())?;
    }
    same(UNCHANGED, &done(UNCHANGED, log.transcript())?, &expected)
}

fn events_of_threads_are_kept(log: &impl EventLog) -> Result<(), Failure> {
    const RULE: &str = "every event of several threads is kept, those of one thread in their order";
    const ONCE: &str = "of several threads that append the same id, one succeeds";
    let wins = std::sync::atomic::AtomicUsize::new(0);
    at_once(|thread| {
        for number in 0..EACH {
            let parent = number.checked_sub(1).map(|before| format!("{thread}:{before}"));
            done(RULE, log.append(event(&format!("{thread}:{number}"), parent.as_deref())))?;
            match log.append(event(&format!("shared:{number}"), None)) {
                Ok(()) => wins.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
                Err(StoreError::Event(TranscriptError::Duplicate { .. })) => 0,
                Err(error) => return fail(ONCE, format!("unexpected error: {error}")),
            };
        }
        Ok(())
    })?;
    same(ONCE, &wins.into_inner(), &EACH)?;
    let items = done(RULE, log.transcript())?.into_items();
    for thread in 0..THREADS {
        let prefix = format!("{thread}:");
        let found: Vec<&str> = items.iter().map(|item| item.id.as_str()).filter(|id| id.starts_with(&prefix)).collect();
        let expected: Vec<String> = (0..EACH).map(|number| format!("{prefix}{number}")).collect();
        same(RULE, &found, &expected.iter().map(String::as_str).collect())?;
    }
    Ok(())
}

/// Checks an [`ArtifactStore`].
///
/// # Errors
/// [`Failure`] with the first broken rule.
pub fn artifacts<S: ArtifactStore>(make: impl Fn() -> S) -> Result<(), Failure> {
    artifacts_are_not_invented(&make())?;
    artifacts_are_kept(&make())?;
    artifacts_are_replaced(&make())?;
    artifacts_are_forgotten(&make())?;
    artifacts_of_threads_are_kept(&make())
}

fn no_artifact<T: Debug>(rule: &'static str, handle: &Handle, result: &Result<T, StoreError>) -> Result<(), Failure> {
    match result {
        Err(StoreError::NoArtifact(named)) if named == handle => Ok(()),
        other => fail(rule, format!("`{handle}`: expected StoreError::NoArtifact, found {other:?}")),
    }
}

fn artifacts_are_not_invented(store: &impl ArtifactStore) -> Result<(), Failure> {
    const RULE: &str = "a new store knows no artifact";
    for name in names() {
        let handle = Handle::new(name);
        no_artifact(RULE, &handle, &store.get(&handle))?;
        no_artifact(RULE, &handle, &store.reference(&handle))?;
        same(RULE, &done(RULE, store.delete(&handle))?, &false)?;
    }
    same(RULE, &done(RULE, store.list())?, &Vec::new())
}

/// A sequence of `count` bytes of every value, without short periods.
fn bytes(count: usize) -> Vec<u8> {
    let mut state = 1u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..count).map(next).collect()
}

fn artifacts_are_kept(store: &impl ArtifactStore) -> Result<(), Failure> {
    const STAMP: &str = "the reference names handle, media type, size, label and the SHA-256 of the bytes";
    const EXACT: &str = "bytes come back exactly";
    const LIST: &str = "the list holds every artifact, by handle";
    let contents = [Vec::new(), b"text\r\n".to_vec(), vec![0], b"\xff\xfe\x00".to_vec(), bytes(70_000)];
    let all = names().into_iter().zip(contents.iter().cycle().cloned()).chain([("large".to_owned(), bytes(5_000_000))]);
    let mut expected = Vec::new();
    for (name, content) in all {
        let handle = Handle::new(name);
        let reference = super::reference(&handle, &content, "text/x; charset=\"é\"", "a \"label\"\n🌳");
        same(STAMP, &done(STAMP, store.put(&handle, &content, &reference.media_type, &reference.label))?, &reference)?;
        expected.push((reference, content));
    }
    for (reference, content) in &expected {
        let handle = &reference.handle;
        same(STAMP, &done(STAMP, store.reference(handle))?, reference)?;
        if done(EXACT, store.get(handle))?[..] != content[..] {
            return fail(EXACT, format!("`{handle}`: other bytes came than the {} that were put", content.len()));
        }
    }
    let mut references: Vec<ArtifactRef> = expected.into_iter().map(|(reference, _)| reference).collect();
    references.sort_by(|a, b| a.handle.cmp(&b.handle));
    same(LIST, &done(LIST, store.list())?, &references)
}

fn artifacts_are_replaced(store: &impl ArtifactStore) -> Result<(), Failure> {
    const RULE: &str = "a handle means what was put last, and no other handle changes";
    let [a, b] = ["a", "b"].map(Handle::new);
    done(RULE, store.put(&a, b"shared", "one", "first"))?;
    done(RULE, store.put(&b, b"shared", "one", "first"))?;
    for (content, media_type, label) in
        [("shared", "one", "first"), ("shared", "two", "second"), ("other", "two", "second"), ("third", "", "")]
    {
        let reference = done(RULE, store.put(&a, content.as_bytes(), media_type, label))?;
        same(RULE, &reference, &super::reference(&a, content.as_bytes(), media_type, label))?;
        same(RULE, &done(RULE, store.reference(&a))?, &reference)?;
        same(RULE, &&*done(RULE, store.get(&a))?, &content.as_bytes())?;
        same(RULE, &&*done(RULE, store.get(&b))?, &&b"shared"[..])?;
        same(RULE, &done(RULE, store.list())?.len(), &2)?;
    }
    Ok(())
}

fn artifacts_are_forgotten(store: &impl ArtifactStore) -> Result<(), Failure> {
    const RULE: &str = "a forgotten handle is unknown, and content that another handle shares stays";
    let [a, b] = ["a", "b"].map(Handle::new);
    done(RULE, store.put(&a, b"shared", "one", ""))?;
    done(RULE, store.put(&b, b"shared", "one", ""))?;
    for (handle, left) in [(&a, vec![&b]), (&b, vec![])] {
        same(RULE, &done(RULE, store.delete(handle))?, &true)?;
        same(RULE, &done(RULE, store.delete(handle))?, &false)?;
        no_artifact(RULE, handle, &store.get(handle))?;
        no_artifact(RULE, handle, &store.reference(handle))?;
        for other in &left {
            same(RULE, &&*done(RULE, store.get(other))?, &&b"shared"[..])?;
        }
        let list = done(RULE, store.list())?;
        same(RULE, &list.iter().map(|reference| &reference.handle).collect(), &left)?;
    }
    done(RULE, store.put(&a, b"again", "one", ""))?;
    same(RULE, &&*done(RULE, store.get(&a))?, &&b"again"[..])
}

fn artifacts_of_threads_are_kept(store: &impl ArtifactStore) -> Result<(), Failure> {
    const RULE: &str = "every artifact of several threads is kept, and what one forgets never harms another";
    const WHOLE: &str = "a handle that several threads replace has the whole bytes of one of them";
    let shared = Handle::new("shared");
    at_once(|thread| {
        for number in 0..EACH {
            let own = Handle::new(format!("{thread}:{number}"));
            // Equal bytes in all threads: they share content that some of them forget at the same time.
            let content = format!("content {number}");
            done(RULE, store.put(&own, content.as_bytes(), "text/plain", ""))?;
            same(RULE, &&*done(RULE, store.get(&own))?, &content.as_bytes())?;
            if thread % 2 == 0 {
                same(RULE, &done(RULE, store.delete(&own))?, &true)?;
            }
            done(WHOLE, store.put(&shared, &vec![thread as u8; 1 + thread * 1000], "text/plain", ""))?;
            let found = done(WHOLE, store.get(&shared))?;
            let whole = found.iter().all(|byte| Some(byte) == found.first());
            if !whole || found.len() != 1 + found.first().map_or(0, |&byte| usize::from(byte) * 1000) {
                return fail(WHOLE, format!("found {} bytes that no thread has put", found.len()));
            }
        }
        Ok(())
    })?;
    for thread in 0..THREADS {
        for number in 0..EACH {
            let own = Handle::new(format!("{thread}:{number}"));
            if thread % 2 == 0 {
                no_artifact(RULE, &own, &store.get(&own))?;
            } else {
                same(RULE, &&*done(RULE, store.get(&own))?, &format!("content {number}").as_bytes())?;
            }
        }
    }
    Ok(())
}

/// Checks a [`FactStore`].
///
/// # Errors
/// [`Failure`] with the first broken rule.
pub fn facts<S: FactStore>(make: impl Fn() -> S) -> Result<(), Failure> {
    const EMPTY: &str = "a new store knows no fact";
    let store = make();
    same(EMPTY, &done(EMPTY, store.all())?, &Vec::new())?;
    same(EMPTY, &done(EMPTY, store.get("plain"))?, &None)?;
    same(EMPTY, &done(EMPTY, store.delete("plain"))?, &false)?;

    const KEPT: &str = "facts come back as they were, by key; the last under a key stands";
    let fact = |key: &str, value: &str| Fact { key: key.to_owned(), value: value.to_owned() };
    let mut expected: Vec<Fact> = names().iter().map(|name| fact(name, &format!("value of {name}"))).collect();
    for one in &expected {
        done(KEPT, store.put(fact(&one.key, "replaced")))?;
        done(KEPT, store.put(one.clone()))?;
    }
    for one in &expected {
        same(KEPT, &done(KEPT, store.get(&one.key))?.as_ref(), &Some(one))?;
    }
    expected.sort_by(|a, b| a.key.cmp(&b.key));
    same(KEPT, &done(KEPT, store.all())?, &expected)?;

    const FORGOTTEN: &str = "a forgotten fact is unknown, and the others stay";
    same(FORGOTTEN, &done(FORGOTTEN, store.delete("plain"))?, &true)?;
    same(FORGOTTEN, &done(FORGOTTEN, store.delete("plain"))?, &false)?;
    same(FORGOTTEN, &done(FORGOTTEN, store.get("plain"))?, &None)?;
    expected.retain(|one| one.key != "plain");
    same(FORGOTTEN, &done(FORGOTTEN, store.all())?, &expected)?;

    const THREADED: &str = "every fact of several threads is kept";
    let store = make();
    at_once(|thread| {
        (0..EACH).try_for_each(|number| done(THREADED, store.put(fact(&format!("{thread}:{number}"), ""))))
    })?;
    same(THREADED, &done(THREADED, store.all())?.len(), &(THREADS * EACH))
}

/// Checks an [`EpisodicStore`].
///
/// # Errors
/// [`Failure`] with the first broken rule.
pub fn episodes<S: EpisodicStore>(make: impl Fn() -> S) -> Result<(), Failure> {
    const EMPTY: &str = "a new store knows no episode";
    let store = make();
    same(EMPTY, &done(EMPTY, store.all())?, &Vec::new())?;
    same(EMPTY, &done(EMPTY, store.latest(3))?, &Vec::new())?;
    same(EMPTY, &done(EMPTY, store.delete("plain"))?, &false)?;

    const KEPT: &str = "episodes come back as they were, oldest first";
    let episode = |id: &str, summary: &str| Episode { id: id.to_owned(), summary: summary.to_owned() };
    let mut expected: Vec<Episode> = names().iter().map(|name| episode(name, &format!("summary of {name}"))).collect();
    for one in &expected {
        done(KEPT, store.put(one.clone()))?;
    }
    same(KEPT, &done(KEPT, store.all())?, &expected)?;

    const REPLACED: &str = "an episode with a known id takes the place of the other";
    if let Some(one) = expected.iter_mut().find(|one| one.id == "plain") {
        one.summary = "replaced".to_owned();
    }
    done(REPLACED, store.put(episode("plain", "replaced")))?;
    same(REPLACED, &done(REPLACED, store.all())?, &expected)?;

    const FORGOTTEN: &str = "a forgotten episode is unknown, and a new one stands last";
    same(FORGOTTEN, &done(FORGOTTEN, store.delete("PLAIN"))?, &true)?;
    same(FORGOTTEN, &done(FORGOTTEN, store.delete("PLAIN"))?, &false)?;
    expected.retain(|one| one.id != "PLAIN");
    expected.push(episode("PLAIN", "back"));
    done(FORGOTTEN, store.put(episode("PLAIN", "back")))?;
    same(FORGOTTEN, &done(FORGOTTEN, store.all())?, &expected)?;

    const LATEST: &str = "the latest are the last, oldest first";
    for count in [0, 1, 3, expected.len(), expected.len() + 1, usize::MAX] {
        let last = expected.iter().skip(expected.len().saturating_sub(count)).cloned().collect();
        same(LATEST, &done(LATEST, store.latest(count))?, &last)?;
    }

    const THREADED: &str = "every episode of several threads is kept";
    let store = make();
    at_once(|thread| {
        (0..EACH).try_for_each(|number| done(THREADED, store.put(episode(&format!("{thread}:{number}"), ""))))
    })?;
    same(THREADED, &done(THREADED, store.all())?.len(), &(THREADS * EACH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{MemoryArtifacts, MemoryEpisodes, MemoryEvents, MemoryFacts};
    use std::sync::Arc;

    #[derive(Clone, Copy)]
    enum Bug {
        Invents,
        DropsLabel,
        TrimsText,
        IgnoresCase,
        Unsorted,
        KeepsTheFirst,
        DeletesNothing,
    }

    /// A store of artifacts with a bug.
    struct Broken(MemoryArtifacts, Bug);

    impl Broken {
        fn handle(&self, handle: &Handle) -> Handle {
            match self.1 {
                Bug::IgnoresCase => Handle::new(handle.as_str().to_lowercase()),
                _ => handle.clone(),
            }
        }
    }

    impl ArtifactStore for Broken {
        fn put(&self, handle: &Handle, bytes: &[u8], media_type: &str, label: &str) -> Result<ArtifactRef, StoreError> {
            match self.1 {
                Bug::KeepsTheFirst if self.0.reference(handle).is_ok() => self.0.reference(handle),
                Bug::DropsLabel => self.0.put(handle, bytes, media_type, ""),
                Bug::TrimsText => {
                    self.0.put(handle, bytes.trim_ascii_end(), media_type, label)?;
                    Ok(crate::store::reference(handle, bytes, media_type, label))
                }
                _ => self
                    .0
                    .put(&self.handle(handle), bytes, media_type, label)
                    .map(|reference| ArtifactRef { handle: handle.clone(), ..reference }),
            }
        }

        fn get(&self, handle: &Handle) -> Result<Arc<[u8]>, StoreError> {
            match self.1 {
                Bug::Invents => Ok(self.0.get(handle).unwrap_or_else(|_| Arc::from(Vec::new()))),
                _ => self.0.get(&self.handle(handle)),
            }
        }

        fn reference(&self, handle: &Handle) -> Result<ArtifactRef, StoreError> {
            self.0.reference(&self.handle(handle)).map_err(|_| StoreError::NoArtifact(handle.clone()))
        }

        fn list(&self) -> Result<Vec<ArtifactRef>, StoreError> {
            let mut list = self.0.list()?;
            if matches!(self.1, Bug::Unsorted) {
                list.reverse();
            }
            Ok(list)
        }

        fn delete(&self, handle: &Handle) -> Result<bool, StoreError> {
            match self.1 {
                Bug::DeletesNothing => Ok(self.0.get(handle).is_ok()),
                _ => self.0.delete(&self.handle(handle)),
            }
        }
    }

    /// A log that loses a field.
    struct Forgetful(MemoryEvents);

    impl EventLog for Forgetful {
        fn append(&self, mut item: ContextItem) -> Result<(), StoreError> {
            item.metadata.clear();
            self.0.append(item)
        }

        fn get(&self, id: &str) -> Result<Option<ContextItem>, StoreError> {
            self.0.get(id)
        }

        fn transcript(&self) -> Result<Transcript, StoreError> {
            self.0.transcript()
        }

        fn len(&self) -> Result<usize, StoreError> {
            self.0.len()
        }
    }

    /// A log that takes anything.
    struct Unchecked(MemoryEvents);

    impl EventLog for Unchecked {
        fn append(&self, item: ContextItem) -> Result<(), StoreError> {
            self.0.append(item).or(Ok(()))
        }

        fn get(&self, id: &str) -> Result<Option<ContextItem>, StoreError> {
            self.0.get(id)
        }

        fn transcript(&self) -> Result<Transcript, StoreError> {
            self.0.transcript()
        }

        fn len(&self) -> Result<usize, StoreError> {
            self.0.len()
        }
    }

    /// Facts and episodes in the wrong order.
    struct Reversed<S>(S);

    impl FactStore for Reversed<MemoryFacts> {
        fn put(&self, fact: Fact) -> Result<(), StoreError> {
            self.0.put(fact)
        }

        fn get(&self, key: &str) -> Result<Option<Fact>, StoreError> {
            self.0.get(key)
        }

        fn all(&self) -> Result<Vec<Fact>, StoreError> {
            Ok(self.0.all()?.into_iter().rev().collect())
        }

        fn delete(&self, key: &str) -> Result<bool, StoreError> {
            self.0.delete(key)
        }
    }

    impl EpisodicStore for Reversed<MemoryEpisodes> {
        fn put(&self, episode: Episode) -> Result<(), StoreError> {
            self.0.put(episode)
        }

        fn latest(&self, count: usize) -> Result<Vec<Episode>, StoreError> {
            Ok(self.0.latest(count)?.into_iter().rev().collect())
        }

        fn all(&self) -> Result<Vec<Episode>, StoreError> {
            self.0.all()
        }

        fn delete(&self, id: &str) -> Result<bool, StoreError> {
            self.0.delete(id)
        }
    }

    #[test]
    fn a_broken_store_breaks_a_rule_by_name() {
        let artifacts = |bug| artifacts(move || Broken(MemoryArtifacts::default(), bug));
        let failures = [
            artifacts(Bug::Invents),
            artifacts(Bug::DropsLabel),
            artifacts(Bug::TrimsText),
            artifacts(Bug::IgnoresCase),
            artifacts(Bug::Unsorted),
            artifacts(Bug::KeepsTheFirst),
            artifacts(Bug::DeletesNothing),
            events(|| Forgetful(MemoryEvents::default())),
            events(|| Unchecked(MemoryEvents::default())),
            facts(|| Reversed(MemoryFacts::default())),
            episodes(|| Reversed(MemoryEpisodes::default())),
        ];
        let rules = failures.map(|result| result.map_or_else(|failure| failure.rule, |()| "no rule"));
        insta::assert_snapshot!(rules.join("\n"), @r"
        a new store knows no artifact
        the reference names handle, media type, size, label and the SHA-256 of the bytes
        the reference names handle, media type, size, label and the SHA-256 of the bytes
        a new store knows no artifact
        the list holds every artifact, by handle
        a handle means what was put last, and no other handle changes
        a forgotten handle is unknown, and content that another handle shares stays
        events come back as they were, in the order in which they were added
        an event with a taken id, a missing parent or itself as parent is refused as by Transcript::push
        facts come back as they were, by key; the last under a key stands
        the latest are the last, oldest first
        ");
    }

    #[test]
    fn a_failure_says_what_was_expected() {
        let failure = facts(|| Reversed(MemoryFacts::default())).unwrap_err().to_string();
        assert!(failure.starts_with("the rule \"facts come back as they were, by key; the last under a key stands\" is broken: expected [Fact"), "{failure}");
    }
}
