//! Vectors on disk, by what they were made of.
//!
//! One file holds the vectors of one encoder, each under the SHA-256 of the encoder's name and the text: a tool that
//! did not change is never encoded twice, whatever catalog it is in. The file is replaced whole; two processes that write
//! at once lose each other's additions, which are then made again. A file that is damaged, or of another form, counts as
//! empty: everything in it can be made again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Encoder, MODEL_DIMS, ModelVector};
use crate::store::files_io::{WriteError, make_folder, replace_file};

const MAGIC: &[u8; 8] = b"CWVECTR1";
const KEY: usize = 32;
const RECORD: usize = KEY + MODEL_DIMS;

/// The cache could not be written. What was there before is still there.
pub type CacheError = WriteError;

type Key = [u8; KEY];

/// Vectors by the text that they are of.
#[derive(Debug, Default)]
pub struct VectorCache {
    vectors: BTreeMap<Key, ModelVector>,
    path: Option<PathBuf>,
    changed: bool,
}

impl VectorCache {
    /// The cache in the file `path`; empty where there is none that can be used.
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

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.vectors.is_empty()
    }

    /// The vector of each text; those that are not known are made, all at once.
    pub fn vectors(&mut self, encoder: &dyn Encoder, texts: &[String]) -> Vec<ModelVector> {
        let name = encoder.name();
        let keys: Vec<Key> = texts.iter().map(|text| key(&name, text)).collect();
        let missing: BTreeMap<Key, &String> =
            keys.iter().copied().zip(texts).filter(|(key, _)| !self.vectors.contains_key(key)).collect();
        let new: Vec<String> = missing.values().map(|text| (*text).clone()).collect();
        self.changed |= !new.is_empty();
        self.vectors.extend(missing.into_keys().zip(encoder.encode_all(&new)));
        keys.iter().map(|key| self.vectors.get(key).copied().unwrap_or_default()).collect()
    }

    /// Writes what was added to the file that the cache was opened from.
    ///
    /// # Errors
    /// [`CacheError`].
    pub fn save(&mut self) -> Result<(), CacheError> {
        let Some(path) = self.path.as_deref().filter(|_| self.changed) else { return Ok(()) };
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        replace_file(path, &self.to_bytes())?;
        self.changed = false;
        Ok(())
    }

    /// A mark, the records in the order of their keys, and the SHA-256 of both.
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
