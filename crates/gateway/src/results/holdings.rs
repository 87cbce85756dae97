//! What one caller has in the store, and the names by which it knows it.
//!
//! All callers share one store. Each sees a part of it: a handle is looked up below a prefix that stands for the
//! caller, so that the handle of another is one that was never there, and the error for it says the same. Handles are
//! made with a key that only the store has: who can guess what a result may be learns nothing from asking for it.

use std::sync::Arc;
use std::time::Duration;

use contextweaver_context::event::{ArtifactRef, ContentHash, Handle};
use contextweaver_context::store::{ArtifactStore, StoreError};
use contextweaver_core::text::hex;

use crate::guard::sign::Key;

/// Hexadecimal digits of a handle. A handle opens nothing to anyone but its caller, so that nobody can try many.
const DIGITS: usize = 12;

/// Hexadecimal digits that stand for a caller within the store.
const OWNER_DIGITS: usize = 32;

/// What the handles of a store are made with.
#[derive(Debug, Clone)]
pub(crate) enum HandleKey {
    /// A secret of the store.
    Secret(Key),
    /// Nothing: equal results have equal handles in every process. For the only client of a gateway in the same
    /// process, which measures or tests it and has the whole store anyway.
    Open,
}

impl HandleKey {
    /// The digits that stand for `tenant` within the store.
    fn of_owner(&self, tenant: &str) -> String {
        let text = format!("owner\n{tenant}");
        let mut digits = match self {
            Self::Secret(key) => key.code(&text),
            Self::Open => open_digits(text.as_bytes()),
        };
        digits.truncate(OWNER_DIGITS);
        digits
    }

    /// The digits of the handles of a result of `tenant`, which `parts` say all of. Results are large, and the keyed
    /// hash of BLAKE3 takes a fraction of the time of HMAC-SHA256.
    pub(crate) fn of_result(&self, tenant: &str, parts: [&[u8]; 3]) -> String {
        let mut digits = match self {
            Self::Secret(key) => {
                let mut hasher = key.hasher("contextweaver: handles of results");
                for part in std::iter::once(tenant.as_bytes()).chain(parts) {
                    // With its length, so that no end of one is taken for the beginning of the next.
                    hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
                }
                hex(hasher.finalize().as_bytes())
            }
            Self::Open => open_digits(&parts.join(&b'\n')),
        };
        digits.truncate(DIGITS);
        digits
    }
}

/// Digits of the hash of `text`: from the eighth, which the results on record have.
fn open_digits(text: &[u8]) -> String {
    ContentHash::of(text).as_str().chars().skip(7).collect()
}

/// The part of a store that belongs to one caller.
#[derive(Clone)]
pub(crate) struct Holdings {
    store: Arc<dyn ArtifactStore>,
    prefix: String,
}

impl Holdings {
    /// What `tenant` has in `store`.
    pub(crate) fn new(store: &Arc<dyn ArtifactStore>, key: &HandleKey, tenant: &str) -> Self {
        let owner = key.of_owner(tenant);
        Self { store: Arc::clone(store), prefix: format!("{owner}/") }
    }

    /// The handle under which the store keeps what the caller calls `handle`.
    fn inner(&self, handle: &Handle) -> Handle {
        Handle::new(format!("{}{handle}", self.prefix))
    }

    /// The handle as the caller knows it; `None` for one of another.
    fn outer(&self, handle: &Handle) -> Option<Handle> {
        handle.as_str().strip_prefix(&self.prefix).map(Handle::new)
    }
}

/// The error as the caller may read it: about the handle that it named.
fn about(handle: &Handle, error: StoreError) -> StoreError {
    let handle = handle.clone();
    match error {
        StoreError::NoArtifact(_) => StoreError::NoArtifact(handle),
        StoreError::Evicted { reason, .. } => StoreError::Evicted { handle, reason },
        StoreError::Altered { expected, found, .. } => StoreError::Altered { handle, expected, found },
        StoreError::TooLarge { size, limit, .. } => StoreError::TooLarge { handle, size, limit },
        other => other,
    }
}

impl ArtifactStore for Holdings {
    fn put(&self, handle: &Handle, bytes: &[u8], media_type: &str, label: &str) -> Result<ArtifactRef, StoreError> {
        let kept = self.store.put(&self.inner(handle), bytes, media_type, label);
        kept.map(|kept| ArtifactRef { handle: handle.clone(), ..kept }).map_err(|error| about(handle, error))
    }

    fn get(&self, handle: &Handle) -> Result<Arc<[u8]>, StoreError> {
        self.store.get(&self.inner(handle)).map_err(|error| about(handle, error))
    }

    fn reference(&self, handle: &Handle) -> Result<ArtifactRef, StoreError> {
        let kept = self.store.reference(&self.inner(handle));
        kept.map(|kept| ArtifactRef { handle: handle.clone(), ..kept }).map_err(|error| about(handle, error))
    }

    fn list(&self) -> Result<Vec<ArtifactRef>, StoreError> {
        let own = |kept: ArtifactRef| Some(ArtifactRef { handle: self.outer(&kept.handle)?, ..kept });
        Ok(self.store.list()?.into_iter().filter_map(own).collect())
    }

    fn delete(&self, handle: &Handle) -> Result<bool, StoreError> {
        self.store.delete(&self.inner(handle)).map_err(|error| about(handle, error))
    }

    fn stored(&self) -> Result<Vec<(Handle, Duration)>, StoreError> {
        let own = |(handle, time)| Some((self.outer(&handle)?, time));
        Ok(self.store.stored()?.into_iter().filter_map(own).collect())
    }

    /// [`HandleKey::of_result`] makes them.
    fn names_by_content(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use contextweaver_context::store::MemoryArtifacts;

    use super::*;

    #[test]
    fn each_caller_sees_its_own_part_alone() {
        let store: Arc<dyn ArtifactStore> = Arc::new(MemoryArtifacts::default());
        let key = HandleKey::Secret(Key::new([7; 32]).unwrap());
        let [ann, bob] = ["ann", "bob"].map(|tenant| Holdings::new(&store, &key, tenant));
        let handle = Handle::new("artifact:1");
        ann.put(&handle, b"hers", "text/plain", "").unwrap();
        assert_eq!(&*ann.get(&handle).unwrap(), b"hers");
        assert_eq!(bob.get(&handle).unwrap_err().to_string(), "no artifact `artifact:1`");
        assert_eq!(bob.reference(&handle).unwrap_err().to_string(), "no artifact `artifact:1`");
        assert!(!bob.delete(&handle).unwrap() && bob.list().unwrap().is_empty());
        bob.put(&handle, b"his", "text/plain", "").unwrap();
        assert_eq!((&*ann.get(&handle).unwrap(), &*bob.get(&handle).unwrap()), (&b"hers"[..], &b"his"[..]));
        assert_eq!(ann.list().unwrap(), [ann.reference(&handle).unwrap()]);
        // Nobody gets out of the own part by the name of another.
        let inner = store.list().unwrap().remove(0).handle;
        assert!(ann.get(&inner).is_err() && bob.get(&inner).is_err());
    }

    #[test]
    fn digits_depend_on_the_key() {
        let [one, two] = [1, 2].map(|byte| HandleKey::Secret(Key::new([byte; 32]).unwrap()));
        let parts: [&[u8]; 3] = [b"a", b"b", b"c"];
        let digits = [&one, &two, &HandleKey::Open].map(|key| key.of_result("ann", parts));
        assert!(digits.iter().all(|digits| digits.len() == DIGITS), "{digits:?}");
        assert!(digits[0] != digits[1] && digits[1] != digits[2] && digits[0] == one.of_result("ann", parts));
        assert_ne!(digits[0], one.of_result("bob", parts));
    }
}
