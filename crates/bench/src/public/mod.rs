//! Public collections: where their files come from, and how they are made from what others publish.
//!
//! The harness measures engines on collections of this project and on collections made from other projects' data, which
//! are not part of this one. The manifest (`data/public.toml`) says for each of the latter which published files it
//! needs, with their checksums, licence and citation, and which bytes must come out; a rule in `rules` makes them. So
//! whoever reaches the sources has the same collections.
//!
//! Not here: downloading, which is the command's business. This module says what to download and judges what came.

mod manifest;
mod rules;
mod upstream;
mod written;

use std::path::{Path, PathBuf};

use contextweaver_core::files::{ReadError, WriteError, make_folder, read_file, replace_file};
use contextweaver_core::text::sha256_hex;

use crate::eval::collection::{CATALOG_FILE, QUERIES_FILE};

pub use manifest::{Host, Manifest, PublicCollection, Source, SourceFile, State};
pub use upstream::RuleError;
pub use written::Files;

use upstream::Upstream;

/// The folder of public collections beside a checkout, where `bench` looks for them unless it is told otherwise.
pub const USUAL_FOLDER: &str = "../shared/data/gold";

/// Where `gold fetch` puts downloads and `gold build` looks for them, unless told otherwise.
pub const USUAL_DOWNLOADS: &str = "downloads";

/// A collection could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A published file is not where it should be, or is larger than the manifest states.
    #[error("{}: not read: {}; run `contextweaver gold fetch {collection}`", unread.path.display(), unread.reason)]
    Read {
        /// The file, and why it is not read.
        unread: ReadError,
        /// The collection that needs it.
        collection: String,
    },
    /// A published file is not the one that the manifest means.
    #[error("{}: {source}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// How it differs.
        source: Mismatch,
    },
    /// A published file is not what the rule reads.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The result could not be written as JSON.
    #[error("the collection cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// The rule gave other bytes than those that the manifest states.
    #[error("{collection}: the {file} that was made is not the measured one: {source}; nothing was written")]
    Differs {
        /// The collection.
        collection: String,
        /// The file.
        file: &'static str,
        /// How it differs.
        source: Mismatch,
    },
    /// A file was not written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Bytes are not those that the manifest states.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// Their number differs.
    #[error("{found} bytes, but the manifest states {stated}")]
    Size {
        /// As the manifest has it.
        stated: u64,
        /// As it came.
        found: u64,
    },
    /// Their checksum differs.
    #[error("SHA-256 {found}, but the manifest states {stated}")]
    Digest {
        /// As the manifest has it.
        stated: String,
        /// As it came.
        found: String,
    },
}

/// What a folder of collections has of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// No folder with its name, or not both files in it.
    Absent,
    /// Files with the bytes that the manifest states.
    Here,
    /// Files with other bytes.
    Differs,
}

impl PublicCollection {
    /// What `folder` has of this collection.
    #[must_use]
    pub fn presence(&self, folder: &Path) -> Presence {
        let folder = folder.join(&self.name);
        let digest = |file: &str| std::fs::read(folder.join(file)).ok().map(|bytes| sha256_hex(&bytes));
        match (digest(CATALOG_FILE), digest(QUERIES_FILE)) {
            (Some(catalog), Some(queries)) if catalog == self.sha256.catalog && queries == self.sha256.queries => {
                Presence::Here
            }
            (Some(_), Some(_)) => Presence::Differs,
            _ => Presence::Absent,
        }
    }

    /// The commands that get this collection, as messages name them.
    #[must_use]
    pub fn how_to_get(&self) -> String {
        format!("run `contextweaver gold fetch {0}` and `contextweaver gold build {0}`", self.name)
    }

    /// The two files of this collection, made from the published files in `downloads`.
    ///
    /// # Errors
    /// [`BuildError`] for a published file that is missing or not the one that the manifest means, and for a result
    /// that a verified entry does not state.
    pub fn build(&self, manifest: &Manifest, downloads: &Path) -> Result<Files, BuildError> {
        let mut upstream = Upstream::default();
        for (source, file) in manifest.files_of(self) {
            let path = source.place(downloads, file);
            let bytes = read_file(&path, file.bytes)
                .map_err(|unread| BuildError::Read { unread, collection: self.name.clone() })?;
            file.check(&bytes).map_err(|source| BuildError::Other { path, source })?;
            upstream.insert(&source.name, &file.path, bytes);
        }
        let files = (self.rule())(&upstream)?.files()?;
        if self.state == State::Verified {
            self.check(&files)?;
        }
        Ok(files)
    }

    /// That these are the files which were measured.
    ///
    /// # Errors
    /// [`BuildError::Differs`].
    pub fn check(&self, files: &Files) -> Result<(), BuildError> {
        let both = [
            (CATALOG_FILE, &files.catalog, &self.sha256.catalog),
            (QUERIES_FILE, &files.queries, &self.sha256.queries),
        ];
        for (file, text, stated) in both {
            manifest::same_digest(stated, text.as_bytes()).map_err(|source| BuildError::Differs {
                collection: self.name.clone(),
                file,
                source,
            })?;
        }
        Ok(())
    }

    /// Writes the files of this collection into its folder below `folder`.
    ///
    /// # Errors
    /// [`WriteError`] with what the system said.
    pub fn write(&self, files: &Files, folder: &Path) -> Result<PathBuf, WriteError> {
        let folder = folder.join(&self.name);
        make_folder(&folder)?;
        // The queries first: a catalog that is there means that both are.
        replace_file(&folder.join(QUERIES_FILE), files.queries.as_bytes())?;
        replace_file(&folder.join(CATALOG_FILE), files.catalog.as_bytes())?;
        Ok(folder)
    }
}

/// How to get the public collection `name`, for messages about one that is not there; `None` for a name that the
/// manifest does not have.
#[must_use]
pub fn how_to_get(name: &str) -> Option<String> {
    Manifest::builtin().ok()?.collection(name).map(PublicCollection::how_to_get)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manifest of one collection whose source is this text.
    fn manifest_of(text: &str, state: &str, digest: &str) -> Manifest {
        let sha256 = sha256_hex(text.as_bytes());
        let empty = sha256_hex(b"[]");
        let real = "data/eval_real.json";
        let toml = format!(
            "[source.toolalpaca]\ngithub = \"o/r\"\ncommit = \"{commit}\"\nlicence = \"MIT\"\ncitation = \"c\"\nfiles = [\n\
             {{ path = \"data/eval_simulated.json\", bytes = {bytes}, sha256 = \"{sha256}\" }},\n\
             {{ path = \"{real}\", bytes = 2, sha256 = \"{empty}\" }},\n]\n\
             [collection.toolalpaca]\ntitle = \"t\"\nsources = [\"toolalpaca\"]\nmade = \"m\"\ntools = 1\nqueries = 1\n\
             {state}\nsha256 = {{ catalog = \"{digest}\", queries = \"{digest}\" }}\n",
            commit = "0123456789abcdef0123456789abcdef01234567",
            bytes = text.len(),
        );
        Manifest::parse("m.toml", &toml).unwrap()
    }

    const API: &str = r#"[{"Name": "n", "Description": "d", "Function_Description": {"f": "F"}, "Instructions": ["q"],
        "Golden_Answers": [[{"Action": "f"}]]}]"#;

    #[test]
    fn a_collection_is_made_from_a_folder_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let (downloads, gold) = (folder.path().join("downloads"), folder.path().join("gold"));
        let zeros = "0".repeat(64);
        let unverified = manifest_of(API, "state = \"unverified\"\ndiffers = \"not run\"", &zeros);
        let verified = manifest_of(API, "state = \"verified\"", &zeros);
        let message = |manifest: &Manifest| {
            let error = manifest.collection("toolalpaca").unwrap().build(manifest, &downloads).unwrap_err();
            error.to_string().replace(&downloads.display().to_string(), "DOWNLOADS")
        };
        assert_eq!(
            message(&verified),
            "DOWNLOADS/toolalpaca/data/eval_simulated.json: not read: there is no such file; \
             run `contextweaver gold fetch toolalpaca`"
        );
        let put = |path: &str, text: &str| {
            let path = downloads.join("toolalpaca/data").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("eval_simulated.json", API);
        put("eval_real.json", "[ ]");
        assert_eq!(
            message(&verified),
            "DOWNLOADS/toolalpaca/data/eval_real.json: not read: it has more than 2 bytes; \
             run `contextweaver gold fetch toolalpaca`"
        );
        put("eval_real.json", "[");
        assert_eq!(message(&verified), "DOWNLOADS/toolalpaca/data/eval_real.json: 1 bytes, but the manifest states 2");
        put("eval_real.json", "{}");
        assert!(message(&verified).contains("eval_real.json: SHA-256 44136fa3"), "{}", message(&verified));
        put("eval_real.json", "[]");
        assert!(
            message(&verified)
                .starts_with("toolalpaca: the catalog.json that was made is not the measured one: SHA-256"),
            "{}",
            message(&verified)
        );

        let collection = unverified.collection("toolalpaca").unwrap();
        let files = collection.build(&unverified, &downloads).unwrap();
        assert_eq!(collection.presence(&gold), Presence::Absent);
        collection.write(&files, &gold).unwrap();
        assert_eq!(collection.presence(&gold), Presence::Differs);
        assert_eq!(std::fs::read_to_string(gold.join("toolalpaca/catalog.json")).unwrap(), files.catalog);
        assert!(collection.check(&files).is_err());
    }

    #[test]
    fn every_public_collection_of_the_matrix_has_an_entry_and_a_rule() {
        let matrix = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let matrix = crate::eval::matrix::Matrix::load(&matrix).unwrap();
        let public = matrix.cases.into_iter().filter(|case| case.origin == crate::eval::record::Origin::Public);
        for case in public {
            assert!(how_to_get(&case.collection).is_some(), "{}", case.collection);
        }
        assert_eq!(how_to_get("garage"), None);
    }

    /// Checked wherever the downloads are: `CONTEXTWEAVER_DOWNLOADS` names their folder.
    #[test]
    fn the_measured_bytes_come_out() {
        let Some(downloads) = std::env::var_os("CONTEXTWEAVER_DOWNLOADS").map(PathBuf::from) else { return };
        let manifest = Manifest::builtin().unwrap();
        for collection in manifest.collections() {
            if let Err(error) = collection.build(manifest, &downloads).and_then(|files| collection.check(&files)) {
                panic!("{}: {error}", collection.name);
            }
        }
    }
}
