//! Artifacts as files, for several threads and processes.
//!
//! ```text
//! objects/ab/cdef…            the bytes whose SHA-256 is abcdef…
//! objects/ab/cdef….<handle>   an empty file for each handle that means them (the handle as the start of its SHA-256)
//! refs/ref-<handle>.json      what is known about the artifact
//! tmp/                        files that are being written
//! lock                        held by the one that writes
//! key                         a secret of the folder, where one was asked for
//! ```
//!
//! A file gets its name only when its bytes are on disk, and a reference only when its content is, so a process that is
//! killed leaves whole files and never a reference without content. When [`put`](ArtifactStore::put) returns, the bytes
//! and their names are on disk. Writers wait for each other; readers do not wait, except that a reader whose content
//! has just disappeared looks again under the lock. Content is removed with the last handle that refers to it.
//!
//! Files and folders are readable by their owner alone: results may hold anything.
//!
//! The lock is the operating system's (advisory, released when its process ends). Network file systems without such
//! locks are not supported.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{ArtifactStore, StoreError};
use crate::event::{ArtifactRef, ContentHash, Handle};
use contextweaver_core::files::{Readers, make_private_file, make_private_folder, rename_into, sync_folder};
use contextweaver_core::text::sha256_hex;

/// The version of the reference files that this program reads and writes.
const SCHEMA: u32 = 1;

/// The longest handle, in encoded bytes, that is used as a file name unchanged. Some file systems allow only 143 bytes.
const LONGEST: usize = 100;

/// An artifact store in a folder.
#[derive(Debug)]
pub struct FileArtifacts {
    root: PathBuf,
}

/// A reference file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    schema: u32,
    artifact: ArtifactRef,
}

/// Adds the path of the file or folder to an I/O error.
trait At<T> {
    fn at(self, path: &Path) -> Result<T, StoreError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, StoreError> {
        self.map_err(|error| backend(path, error.to_string()))
    }
}

fn backend(path: &Path, reason: impl Into<String>) -> StoreError {
    StoreError::Backend { place: path.display().to_string(), reason: reason.into() }
}

/// `None` when the file does not exist.
fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The handle as part of a file name: lower-case letters, digits, `-` and `_` stand for themselves, every other byte is
/// `%` and two digits, so that no two handles collide on a file system that ignores case. A long handle is cut, and its
/// hash after a `=` tells it from others.
fn file_name(handle: &Handle) -> String {
    let mut name = String::new();
    for byte in handle.as_str().bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            // Writing to a string does not fail.
            _ => drop(write!(name, "%{byte:02x}")),
        }
        if name.len() > LONGEST {
            let hash = sha256_hex(handle.as_str().as_bytes());
            return format!("ref-{name:.30}={hash}.json");
        }
    }
    format!("ref-{name}.json")
}

impl FileArtifacts {
    /// Opens the artifacts in `root`, which is created when it is missing. Half-written files of a killed process are
    /// removed.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the folders cannot be created or written.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let store = Self { root: root.into() };
        for folder in [store.root.clone(), store.root.join("objects"), store.root.join("refs"), store.root.join("tmp")]
        {
            make_private_folder(&folder).at(&folder)?;
        }
        sync_folder(&store.root).at(&store.root)?;
        let _lock = store.lock()?;
        // Writers hold the lock, so these files belong to nobody.
        let tmp = store.root.join("tmp");
        for entry in fs::read_dir(&tmp).at(&tmp)? {
            let path = entry.at(&tmp)?.path();
            if_there(fs::remove_file(&path)).at(&path)?;
        }
        Ok(store)
    }

    /// The secret of this folder, the same for every process that opens it: `fresh`, where it had none.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the file cannot be read or written, or what it holds is not a key.
    pub fn key(&self, fresh: &[u8; 32]) -> Result<[u8; 32], StoreError> {
        let _lock = self.lock()?;
        let path = self.root.join("key");
        let Some(kept) = if_there(fs::read(&path)).at(&path)? else {
            rename_into(&self.root.join("tmp"), &path, Readers::Owner, |out| out.write_all(fresh)).at(&path)?;
            return Ok(*fresh);
        };
        let bytes = kept.len();
        let reason = || format!("has {bytes} bytes, but a key has 32; delete the file");
        kept.try_into().map_err(|_| backend(&path, reason()))
    }

    /// Waits until nobody writes, and keeps other writers out until the file is dropped.
    fn lock(&self) -> Result<File, StoreError> {
        let path = self.root.join("lock");
        let file = make_private_file(&path).at(&path)?;
        file.lock().at(&path)?;
        Ok(file)
    }

    fn reference_path(&self, handle: &Handle) -> PathBuf {
        self.root.join("refs").join(file_name(handle))
    }

    fn object_path(&self, hash: &ContentHash) -> PathBuf {
        let (folder, name) = hash.as_str().split_at_checked(2).unwrap_or_default();
        self.root.join("objects").join(folder).join(name)
    }

    /// The path of the empty file that says that `handle` refers to the content.
    fn use_path(&self, hash: &ContentHash, handle: &Handle) -> PathBuf {
        self.object_path(hash).with_extension(format!("{:.32}", sha256_hex(handle.as_str().as_bytes())))
    }

    fn read_reference(path: &Path) -> Result<Option<ArtifactRef>, StoreError> {
        let Some(bytes) = if_there(fs::read(path)).at(path)? else { return Ok(None) };
        let wire: Wire = serde_json::from_slice(&bytes)
            .map_err(|error| backend(path, format!("not a reference to an artifact: {error}")))?;
        if wire.schema != SCHEMA {
            return Err(backend(path, format!("schema {}; this version reads schema {SCHEMA}", wire.schema)));
        }
        if path.file_name() != Some(file_name(&wire.artifact.handle).as_ref()) {
            return Err(backend(path, format!("the file of another handle, `{}`", wire.artifact.handle)));
        }
        Ok(Some(wire.artifact))
    }

    /// Makes the content durable, with the note that `handle` refers to it.
    fn write_object(&self, reference: &ArtifactRef, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.object_path(&reference.content_hash);
        let objects = self.root.join("objects");
        let folder = path.parent().unwrap_or(&objects);
        if !folder.is_dir() {
            make_private_folder(folder).and_then(|()| sync_folder(&objects)).at(folder)?;
        }
        // Content that was altered on disk is repaired by the next caller that stores it.
        if if_there(fs::read(&path)).at(&path)?.is_none_or(|there| there != bytes) {
            rename_into(&self.root.join("tmp"), &path, Readers::Owner, |out| out.write_all(bytes)).at(&path)?;
        }
        let note = self.use_path(&reference.content_hash, &reference.handle);
        make_private_file(&note).and_then(|_| sync_folder(folder)).at(&note)
    }

    fn write_reference(&self, reference: &ArtifactRef) -> Result<(), StoreError> {
        let path = self.reference_path(&reference.handle);
        let wire = Wire { schema: SCHEMA, artifact: reference.clone() };
        let write = |out: &mut dyn io::Write| Ok(serde_json::to_writer(out, &wire)?);
        rename_into(&self.root.join("tmp"), &path, Readers::Owner, write).at(&path)
    }

    /// Removes the note that `handle` refers to the content, and the content when no other handle does.
    fn release(&self, handle: &Handle, hash: &ContentHash) -> Result<(), StoreError> {
        let note = self.use_path(hash, handle);
        if_there(fs::remove_file(&note)).at(&note)?;
        let path = self.object_path(hash);
        let folder = path.parent().unwrap_or(&self.root);
        let prefix = format!("{}.", path.file_name().unwrap_or_default().to_string_lossy());
        for entry in fs::read_dir(folder).at(folder)? {
            if entry.at(folder)?.file_name().to_string_lossy().starts_with(&prefix) {
                return Ok(());
            }
        }
        if_there(fs::remove_file(&path)).at(&path)?;
        Ok(())
    }

    /// The verified bytes; `None` when there is no such content.
    fn read_object(&self, reference: &ArtifactRef) -> Result<Option<Arc<[u8]>>, StoreError> {
        let path = self.object_path(&reference.content_hash);
        let Some(bytes) = if_there(fs::read(&path)).at(&path)? else { return Ok(None) };
        let found = ContentHash::of(&bytes);
        if found == reference.content_hash {
            Ok(Some(bytes.into()))
        } else {
            let ArtifactRef { handle, content_hash, .. } = reference.clone();
            Err(StoreError::Altered { handle, expected: content_hash, found })
        }
    }
}

impl ArtifactStore for FileArtifacts {
    fn put(&self, handle: &Handle, bytes: &[u8], media_type: &str, label: &str) -> Result<ArtifactRef, StoreError> {
        let reference = super::reference(handle, bytes, media_type, label);
        let _lock = self.lock()?;
        // A reference that cannot be read is replaced; its content, if any, stays, since other handles may refer to it.
        let before = Self::read_reference(&self.reference_path(handle)).unwrap_or_default();
        self.write_object(&reference, bytes)?;
        self.write_reference(&reference)?;
        if let Some(before) = before.filter(|before| before.content_hash != reference.content_hash) {
            self.release(handle, &before.content_hash)?;
        }
        Ok(reference)
    }

    fn get(&self, handle: &Handle) -> Result<Arc<[u8]>, StoreError> {
        let reference = self.reference(handle)?;
        if let Some(bytes) = self.read_object(&reference)? {
            return Ok(bytes);
        }
        // Between the two reads the handle was replaced or deleted; under the lock nothing changes.
        let _lock = self.lock()?;
        let reference = self.reference(handle)?;
        self.read_object(&reference)?.ok_or_else(|| {
            let path = self.object_path(&reference.content_hash);
            backend(&path, format!("the content of the artifact `{handle}` is missing"))
        })
    }

    fn reference(&self, handle: &Handle) -> Result<ArtifactRef, StoreError> {
        Self::read_reference(&self.reference_path(handle))?.ok_or_else(|| StoreError::NoArtifact(handle.clone()))
    }

    fn list(&self) -> Result<Vec<ArtifactRef>, StoreError> {
        let refs = self.root.join("refs");
        let mut references = Vec::new();
        for entry in fs::read_dir(&refs).at(&refs)? {
            let name = entry.at(&refs)?.file_name();
            let ours = name.to_str().is_some_and(|name| name.starts_with("ref-") && name.ends_with(".json"));
            if ours {
                // A file that is gone was deleted in the meantime.
                references.extend(Self::read_reference(&refs.join(name))?);
            }
        }
        references.sort_by(|a: &ArtifactRef, b| a.handle.cmp(&b.handle));
        Ok(references)
    }

    /// A reference file is written anew whenever its artifact is stored, so its time is that of storing.
    fn stored(&self) -> Result<Vec<(Handle, Duration)>, StoreError> {
        let since = |reference: ArtifactRef| {
            let written = fs::metadata(self.reference_path(&reference.handle)).ok()?.modified().ok()?;
            Some((reference.handle, written.duration_since(UNIX_EPOCH).ok()?))
        };
        Ok(self.list()?.into_iter().filter_map(since).collect())
    }

    fn delete(&self, handle: &Handle) -> Result<bool, StoreError> {
        let _lock = self.lock()?;
        let path = self.reference_path(handle);
        let Some(reference) = Self::read_reference(&path)? else { return Ok(false) };
        fs::remove_file(&path).and_then(|()| sync_folder(&self.root.join("refs"))).at(&path)?;
        self.release(handle, &reference.content_hash)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance;

    fn open(folder: &tempfile::TempDir) -> FileArtifacts {
        FileArtifacts::open(folder.path()).unwrap()
    }

    /// All files below, with their sizes, without the lock.
    fn files(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if !path.ends_with("lock") {
                    let name = path.strip_prefix(folder).unwrap().display().to_string();
                    found.push(format!("{name} {}", fs::metadata(&path).unwrap().len()));
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn files_keep_every_rule() {
        let folder = tempfile::tempdir().unwrap();
        let number = std::cell::Cell::new(0);
        let make = || {
            number.set(number.get() + 1);
            FileArtifacts::open(folder.path().join(number.get().to_string())).unwrap()
        };
        conformance::artifacts(make).unwrap();
    }

    #[test]
    fn names_of_files_are_safe_and_distinct() {
        let name = |text: &str| file_name(&Handle::new(text));
        assert_eq!(name("artifact:result:tc1"), "ref-artifact%3aresult%3atc1.json");
        assert_eq!(name("../A%41"), "ref-%2e%2e%2f%41%2541.json");
        assert_eq!(name(""), "ref-.json");
        let (long, other) = ("ü".repeat(5000), "ü".repeat(5001));
        assert_eq!(name(&long).len(), 30 + 64 + 10);
        assert_ne!(name(&long), name(&other));
        assert_ne!(name(&long), name(&name(&long)));
    }

    proptest::proptest! {
        #[test]
        fn no_two_handles_share_a_file(a in "\\PC{0,60}", b in "[aA%=\\-/.é]{0,60}") {
            for (one, other) in [(&a, &b), (&b, &b.to_uppercase()), (&b, &b.to_lowercase())] {
                let [first, second] = [one, other].map(|text| file_name(&Handle::new(text.as_str())));
                proptest::prop_assert_eq!(one == other, first == second);
                proptest::prop_assert!(first.len() < 143 && first == first.to_ascii_lowercase() && !first.contains('/'));
            }
        }
    }

    #[test]
    fn content_lies_under_its_hash_and_goes_with_its_last_handle() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        let [a, b] = ["a", "b"].map(Handle::new);
        store.put(&a, b"same", "text/plain", "").unwrap();
        store.put(&b, b"same", "text/plain", "").unwrap();
        insta::assert_snapshot!(files(folder.path()).join("\n"), @r"
        objects/09/67115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5 4
        objects/09/67115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5.3e23e8160039594a33894f6564e1b134 0
        objects/09/67115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5.ca978112ca1bbdcafac231b39a23dc4d 0
        refs/ref-a.json 172
        refs/ref-b.json 172
        ");
        store.put(&a, b"other", "text/plain", "").unwrap();
        store.delete(&b).unwrap();
        insta::assert_snapshot!(files(folder.path()).join("\n"), @r"
        objects/d9/298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa 5
        objects/d9/298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa.ca978112ca1bbdcafac231b39a23dc4d 0
        refs/ref-a.json 172
        ");
        store.delete(&a).unwrap();
        assert!(files(folder.path()).is_empty());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_never_read() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        fs::write(folder.path().join("tmp/.tmpAbCdEf"), b"half").unwrap();
        fs::write(folder.path().join("refs/note.txt"), b"not ours").unwrap();
        assert_eq!(store.list().unwrap(), []);
        open(&folder);
        assert_eq!(files(folder.path()), ["refs/note.txt 8"]);
    }

    #[test]
    fn what_was_damaged_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        let handle = Handle::new("a");
        let reference = store.put(&handle, b"content", "text/plain", "").unwrap();
        let object = store.object_path(&reference.content_hash);
        let file = store.reference_path(&handle);
        let whole = fs::read_to_string(&file).unwrap();
        let message = |error: StoreError| error.to_string().replace(&*folder.path().to_string_lossy(), "store");

        fs::write(&object, b"edited").unwrap();
        let mut seen = vec![message(store.get(&handle).unwrap_err())];
        // The same bytes again put it right.
        store.put(&handle, b"content", "text/plain", "").unwrap();
        assert_eq!(&*store.get(&handle).unwrap(), b"content");
        fs::remove_file(&object).unwrap();
        seen.push(message(store.get(&handle).unwrap_err()));
        for damaged in
            [&whole[..20], "", &whole.replace("\"schema\":1", "\"schema\":2"), &whole.replace("\"a\"", "\"b\"")]
        {
            fs::write(&file, damaged).unwrap();
            seen.push(message(store.get(&handle).unwrap_err()));
            assert_eq!(message(store.list().unwrap_err()), seen.last().unwrap().as_str());
        }
        insta::assert_snapshot!(seen.join("\n"), @r"
        the artifact `a` was altered: its content has the hash 1fb9f4097256db2d7b1e13aff79cee44339891a31c556b9cf6093885773b3618, not ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73
        store/objects/ed/7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73: the content of the artifact `a` is missing
        store/refs/ref-a.json: not a reference to an artifact: EOF while parsing a string at line 1 column 20
        store/refs/ref-a.json: not a reference to an artifact: EOF while parsing a value at line 1 column 0
        store/refs/ref-a.json: schema 2; this version reads schema 1
        store/refs/ref-a.json: the file of another handle, `b`
        ");
        store.put(&handle, b"content", "text/plain", "").unwrap();
        assert_eq!(&*store.get(&handle).unwrap(), b"content");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"").unwrap();
        let error = FileArtifacts::open(file.join("store")).unwrap_err().to_string();
        assert!(error.contains("file/store: Not a directory"), "{error}");
    }
}
