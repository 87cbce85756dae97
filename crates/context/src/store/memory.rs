//! Stores that live as long as the process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::{ArtifactStore, EpisodicStore, EventLog, FactStore, StoreError};
use crate::event::{ArtifactRef, ContentHash, ContextItem, Episode, Fact, Handle, Transcript};
use contextweaver_core::sync::lock;

/// An event log in memory.
#[derive(Debug, Default)]
pub struct MemoryEvents(Mutex<Transcript>);

impl EventLog for MemoryEvents {
    fn append(&self, item: ContextItem) -> Result<(), StoreError> {
        Ok(lock(&self.0).push(item)?)
    }

    fn get(&self, id: &str) -> Result<Option<ContextItem>, StoreError> {
        Ok(lock(&self.0).get(id).cloned())
    }

    fn transcript(&self) -> Result<Transcript, StoreError> {
        Ok(lock(&self.0).clone())
    }

    fn len(&self) -> Result<usize, StoreError> {
        Ok(lock(&self.0).len())
    }
}

/// An artifact store in memory; equal bytes are kept once.
#[derive(Debug, Default)]
pub struct MemoryArtifacts(Mutex<Artifacts>);

#[derive(Debug, Default)]
struct Artifacts {
    references: BTreeMap<Handle, ArtifactRef>,
    /// The bytes, and the number of handles that refer to them.
    contents: BTreeMap<ContentHash, (Arc<[u8]>, usize)>,
}

impl Artifacts {
    fn insert(&mut self, reference: ArtifactRef, bytes: impl FnOnce() -> Arc<[u8]>) {
        let content = self.contents.entry(reference.content_hash.clone()).or_insert_with(|| (bytes(), 0));
        content.1 += 1;
        if let Some(before) = self.references.insert(reference.handle.clone(), reference) {
            self.release(&before.content_hash);
        }
    }

    fn release(&mut self, hash: &ContentHash) {
        if let Some((_, uses)) = self.contents.get_mut(hash) {
            *uses -= 1;
            if *uses == 0 {
                self.contents.remove(hash);
            }
        }
    }
}

impl MemoryArtifacts {
    /// Keeps bytes whose hash and size are known to be those of `reference`.
    pub(super) fn insert(&self, reference: ArtifactRef, bytes: &Arc<[u8]>) {
        lock(&self.0).insert(reference, || Arc::clone(bytes));
    }
}

impl ArtifactStore for MemoryArtifacts {
    fn put(&self, handle: &Handle, bytes: &[u8], media_type: &str, label: &str) -> Result<ArtifactRef, StoreError> {
        let reference = super::reference(handle, bytes, media_type, label);
        lock(&self.0).insert(reference.clone(), || bytes.into());
        Ok(reference)
    }

    fn get(&self, handle: &Handle) -> Result<Arc<[u8]>, StoreError> {
        let artifacts = lock(&self.0);
        let hash = artifacts.references.get(handle).map(|reference| &reference.content_hash);
        let found = hash.and_then(|hash| artifacts.contents.get(hash)).map(|(bytes, _)| Arc::clone(bytes));
        found.ok_or_else(|| StoreError::NoArtifact(handle.clone()))
    }

    fn reference(&self, handle: &Handle) -> Result<ArtifactRef, StoreError> {
        let found = lock(&self.0).references.get(handle).cloned();
        found.ok_or_else(|| StoreError::NoArtifact(handle.clone()))
    }

    fn list(&self) -> Result<Vec<ArtifactRef>, StoreError> {
        Ok(lock(&self.0).references.values().cloned().collect())
    }

    fn delete(&self, handle: &Handle) -> Result<bool, StoreError> {
        let mut artifacts = lock(&self.0);
        let Some(before) = artifacts.references.remove(handle) else { return Ok(false) };
        artifacts.release(&before.content_hash);
        Ok(true)
    }
}

/// A fact store in memory.
#[derive(Debug, Default)]
pub struct MemoryFacts(Mutex<BTreeMap<String, Fact>>);

impl FactStore for MemoryFacts {
    fn put(&self, fact: Fact) -> Result<(), StoreError> {
        lock(&self.0).insert(fact.key.clone(), fact);
        Ok(())
    }

    fn get(&self, key: &str) -> Result<Option<Fact>, StoreError> {
        Ok(lock(&self.0).get(key).cloned())
    }

    fn all(&self) -> Result<Vec<Fact>, StoreError> {
        Ok(lock(&self.0).values().cloned().collect())
    }

    fn delete(&self, key: &str) -> Result<bool, StoreError> {
        Ok(lock(&self.0).remove(key).is_some())
    }
}

/// A store of episodes in memory.
#[derive(Debug, Default)]
pub struct MemoryEpisodes(Mutex<Episodes>);

#[derive(Debug, Default)]
struct Episodes {
    in_order: BTreeMap<u64, Episode>,
    places: BTreeMap<String, u64>,
}

impl EpisodicStore for MemoryEpisodes {
    fn put(&self, episode: Episode) -> Result<(), StoreError> {
        let mut episodes = lock(&self.0);
        let behind = episodes.in_order.last_key_value().map_or(0, |(last, _)| last + 1);
        let place = *episodes.places.entry(episode.id.clone()).or_insert(behind);
        episodes.in_order.insert(place, episode);
        Ok(())
    }

    fn latest(&self, count: usize) -> Result<Vec<Episode>, StoreError> {
        let episodes = lock(&self.0);
        let mut latest: Vec<Episode> = episodes.in_order.values().rev().take(count).cloned().collect();
        latest.reverse();
        Ok(latest)
    }

    fn all(&self) -> Result<Vec<Episode>, StoreError> {
        Ok(lock(&self.0).in_order.values().cloned().collect())
    }

    fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let mut episodes = lock(&self.0);
        let place = episodes.places.remove(id);
        Ok(place.and_then(|place| episodes.in_order.remove(&place)).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance;

    #[test]
    fn memory_keeps_every_rule() {
        conformance::events(MemoryEvents::default).unwrap();
        conformance::artifacts(MemoryArtifacts::default).unwrap();
        conformance::facts(MemoryFacts::default).unwrap();
        conformance::episodes(MemoryEpisodes::default).unwrap();
    }

    #[test]
    fn equal_bytes_are_kept_once_and_as_long_as_a_handle_means_them() {
        let store = MemoryArtifacts::default();
        let [a, b] = ["a", "b"].map(Handle::new);
        for handle in [&a, &b, &a] {
            store.put(handle, b"same", "text/plain", "").unwrap();
        }
        assert!(Arc::ptr_eq(&store.get(&a).unwrap(), &store.get(&b).unwrap()));
        store.put(&a, b"other", "text/plain", "").unwrap();
        assert_eq!((&*store.get(&b).unwrap(), lock(&store.0).contents.len()), (&b"same"[..], 2));
        store.delete(&b).unwrap();
        store.delete(&a).unwrap();
        assert_eq!(lock(&store.0).contents.len(), 0);
    }
}
