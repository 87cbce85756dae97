//! Caches vectors on disk by the text that they were made from.
//!
//! One file holds the vectors of one encoder, each under the SHA-256 of the encoder's name and the text: a tool that
//! did not change is never encoded twice, whatever catalog it is in. The file is replaced whole; of two processes that
//! write at the same moment one may lose its additions, which are then made again. A file that is damaged or has
//! another form counts as empty, since everything in it can be made again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Encoder, MODEL_DIMS, ModelVector};
use contextweaver_core::files::{WriteError, make_folder, replace_file};

const MAGIC: &[u8; 8] = b"CWVECTR1";
const KEY: usize = 32;
const RECORD: usize = KEY + MODEL_DIMS;

/// The cache could not be written. What was there before is still there.
pub type CacheError = WriteError;

type Key = [u8; KEY];

/// Vectors by their text.
#[derive(Debug, Default)]
pub struct VectorCache {
    vectors: BTreeMap<Key, ModelVector>,
    path: Option<PathBuf>,
    changed: bool,
}

impl VectorCache {
    /// The cache in the file `path`; empty when there is no usable file.
    #[must_use]
    pub fn open(path: &Path) -> Self {
        let vectors = fs::read(path).ok().and_then(|bytes| parse(&bytes)).unwrap_or_default();
        Self { vectors, path: Some(path.to_owned()), changed: false }
    }

    /// The number of vectors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.vectors.len()
    }

    /// Whether the cache holds no vector.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.vectors.is_empty()
    }

    /// The vector of each text; missing ones are made, all at once.
    pub fn vectors(&mut self, encoder: &dyn Encoder, texts: &[String]) -> Vec<ModelVector> {
        let name = encoder.name();
        let keys: Vec<Key> = texts.iter().map(|text| key(&name, text)).collect();
        let missing: BTreeMap<Key, &String> =
            keys.iter().copied().zip(texts).filter(|(key, _)| !self.vectors.contains_key(key)).collect();
        let new: Vec<String> = missing.values().map(|text| (*text).clone()).collect();
        self.changed |= !new.is_empty();
        self.vectors.extend(missing.into_keys().zip(encoder.encode_tools(&new)));
        keys.iter().map(|key| self.vectors.get(key).copied().unwrap_or_default()).collect()
    }

    /// Writes the additions to the file that the cache was opened from.
    ///
    /// # Errors
    /// [`CacheError`] with the file and the system's error.
    pub fn save(&mut self) -> Result<(), CacheError> {
        let Some(path) = self.path.as_deref().filter(|_| self.changed) else { return Ok(()) };
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        // What another process has added in the meantime is kept.
        for (key, vector) in Self::open(path).vectors {
            self.vectors.entry(key).or_insert(vector);
        }
        replace_file(path, &self.to_bytes())?;
        self.changed = false;
        Ok(())
    }

    /// The bytes of the file: a magic number, the records in the order of their keys, and the SHA-256 of both.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (key, vector) in &self.vectors {
            bytes.extend(key);
            bytes.extend(vector.0.map(i8::cast_unsigned));
        }
        let digest = Sha256::digest(&bytes);
        bytes.extend(digest);
        bytes
    }
}

fn key(encoder: &str, text: &str) -> Key {
    let mut hasher = Sha256::new();
    hasher.update((encoder.len() as u64).to_le_bytes());
    hasher.update(encoder);
    hasher.update(text);
    hasher.finalize().into()
}

fn parse(bytes: &[u8]) -> Option<BTreeMap<Key, ModelVector>> {
    let (content, digest) = bytes.split_last_chunk::<KEY>()?;
    if Sha256::digest(content)[..] != digest[..] {
        return None;
    }
    let (records, rest) = content.strip_prefix(MAGIC)?.as_chunks::<RECORD>();
    let record = |record: &[u8; RECORD]| {
        let (key, vector) = record.split_first_chunk::<KEY>()?;
        Some((*key, ModelVector(vector.first_chunk::<MODEL_DIMS>()?.map(u8::cast_signed))))
    };
    if rest.is_empty() { records.iter().map(record).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts what it is asked to encode.
    #[derive(Debug, Default)]
    struct Counting {
        name: &'static str,
        asked: AtomicUsize,
    }

    impl Encoder for Counting {
        fn name(&self) -> String {
            self.name.to_owned()
        }

        fn bytes(&self) -> usize {
            0
        }

        fn encode_query(&self, text: &str) -> ModelVector {
            self.asked.fetch_add(1, Ordering::Relaxed);
            ModelVector::of(&[text.len() as f32, 1.0])
        }
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn what_did_not_change_is_encoded_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/vectors.bin");
        let (one, other) =
            (Counting { name: "one", ..Counting::default() }, Counting { name: "other", ..Counting::default() });
        let mut cache = VectorCache::open(&path);
        let first = cache.vectors(&one, &texts(&["a", "bb", "a"]));
        assert_eq!(first, [one.encode_query("a"), one.encode_query("bb"), one.encode_query("a")]);
        cache.save().unwrap();
        let mut cache = VectorCache::open(&path);
        assert_eq!(cache.len(), 2);
        assert_eq!(cache.vectors(&one, &texts(&["bb", "ccc", "a"])).len(), 3);
        // Two at first, three by the comparison above, one more now.
        assert_eq!(one.asked.load(Ordering::Relaxed), 6);
        // Another encoder's vectors are others.
        cache.vectors(&other, &texts(&["a"]));
        assert_eq!(other.asked.load(Ordering::Relaxed), 1);
        let mut unchanged = VectorCache::open(&path);
        unchanged.vectors(&one, &texts(&["a"]));
        unchanged.save().unwrap();
        assert_eq!(VectorCache::open(&path).len(), 2);
        assert!(VectorCache::default().save().is_ok());
    }

    #[test]
    fn a_name_and_a_text_are_not_one_another() {
        assert_ne!(key("ab", "c"), key("a", "bc"));
        assert_ne!(key("a", ""), key("", "a"));
    }

    #[test]
    fn a_damaged_file_counts_as_empty() {
        let mut cache = VectorCache::default();
        cache.vectors(&Counting::default(), &texts(&["a", "bb"]));
        let good = cache.to_bytes();
        assert_eq!(parse(&good).unwrap(), cache.vectors);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(parse(&bad).is_none(), "{at}");
        }
        for end in [0, 1, 31, 40, good.len() - RECORD, good.len() - 1] {
            assert!(parse(&good[..end]).is_none(), "{end}");
        }
        assert!(parse(&VectorCache::default().to_bytes()).unwrap().is_empty());
    }
}
