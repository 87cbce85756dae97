//! Stores that live as long as the process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{ArtifactStore, EpisodicStore, EventLog, FactStore, StoreError};
use crate::event::{ArtifactRef, ContentHash, ContextItem, Episode, Fact, Handle, Transcript};

/// A lock whose holder panicked still guards whole values: every change here is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Events in memory.
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

/// Artifacts in memory.
#[derive(Debug, Default)]
pub struct MemoryArtifacts(Mutex<BTreeMap<Handle, (ArtifactRef, Arc<[u8]>)>>);

impl ArtifactStore for MemoryArtifacts {
    fn put(&self, handle: &Handle, bytes: &[u8], media_type: &str, label: &str) -> Result<ArtifactRef, StoreError> {
        let reference = ArtifactRef {
            handle: handle.clone(),
            media_type: media_type.to_owned(),
            size_bytes: bytes.len() as u64,
            label: label.to_owned(),
            content_hash: ContentHash::of(bytes),
        };
        lock(&self.0).insert(handle.clone(), (reference.clone(), bytes.into()));
        Ok(reference)
    }

    fn get(&self, handle: &Handle) -> Result<Arc<[u8]>, StoreError> {
        let found = lock(&self.0).get(handle).map(|(_, bytes)| Arc::clone(bytes));
        found.ok_or_else(|| StoreError::NoArtifact(handle.clone()))
    }

    fn reference(&self, handle: &Handle) -> Result<ArtifactRef, StoreError> {
        let found = lock(&self.0).get(handle).map(|(reference, _)| reference.clone());
        found.ok_or_else(|| StoreError::NoArtifact(handle.clone()))
    }

    fn list(&self) -> Result<Vec<ArtifactRef>, StoreError> {
        Ok(lock(&self.0).values().map(|(reference, _)| reference.clone()).collect())
    }

    fn delete(&self, handle: &Handle) -> Result<bool, StoreError> {
        Ok(lock(&self.0).remove(handle).is_some())
    }
}

/// Facts in memory.
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

/// Episodes in memory.
#[derive(Debug, Default)]
pub struct MemoryEpisodes(Mutex<Vec<Episode>>);

impl EpisodicStore for MemoryEpisodes {
    fn put(&self, episode: Episode) -> Result<(), StoreError> {
        let mut episodes = lock(&self.0);
        match episodes.iter_mut().find(|other| other.id == episode.id) {
            Some(other) => *other = episode,
            None => episodes.push(episode),
        }
        Ok(())
    }

    fn latest(&self, count: usize) -> Result<Vec<Episode>, StoreError> {
        let episodes = lock(&self.0);
        Ok(episodes.iter().skip(episodes.len().saturating_sub(count)).cloned().collect())
    }

    fn all(&self) -> Result<Vec<Episode>, StoreError> {
        Ok(lock(&self.0).clone())
    }

    fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let mut episodes = lock(&self.0);
        let before = episodes.len();
        episodes.retain(|episode| episode.id != id);
        Ok(episodes.len() < before)
    }
}
