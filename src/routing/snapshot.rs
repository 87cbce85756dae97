//! A built index and graph as one file, so that a process starts without building them.
//!
//! The file is a line of JSON that says what it holds, then the payload. It is only ever used together with the
//! catalog that it was built from: a file of another catalog or configuration is refused as stale, one whose bytes
//! changed as damaged. It is a cache, so there is no migration between versions: build it again.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::config::RoutingConfig;
use super::exact::ExactNames;
use super::graph::ChoiceGraph;
use super::index::{Index, Posting, TermId};
use crate::catalog::Catalog;

const FORMAT: &str = "contextweaver-index";
const SCHEMA: u32 = 1;

/// A snapshot file was not written or is not usable.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not a snapshot, or one of another version.
    #[error("{}: {reason}; build it again with `contextweaver build`", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The bytes are not those that were written.
    #[error("{}: damaged ({reason}); build it again with `contextweaver build`", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How that shows.
        reason: String,
    },
    /// Written for another catalog or configuration.
    #[error("{}: stale: built from another {what}; build it again with `contextweaver build`", path.display())]
    Stale {
        /// The file.
        path: PathBuf,
        /// `catalog` or `configuration`.
        what: &'static str,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    schema: u32,
    items: usize,
    catalog_sha256: String,
    configuration: RoutingConfig,
    payload_bytes: usize,
    payload_sha256: String,
}

#[derive(Serialize, Deserialize)]
struct Payload {
    items: u32,
    /// Sorted, so that the bytes do not depend on a hash table's order.
    terms: Vec<(Box<str>, TermId)>,
    surfaces: Vec<(Box<str>, TermId)>,
    offsets: Vec<u32>,
    postings: Vec<Posting>,
    exact: ExactNames,
    graph: ChoiceGraph,
}

/// SHA-256 (hex) over everything of a catalog that routing reads, in id order.
#[must_use]
pub fn catalog_sha256(catalog: &Catalog) -> String {
    let mut hasher = Sha256::new();
    let mut field = |text: &str| {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    for item in catalog.items() {
        field(&item.id);
        field(&item.definition_json());
        field(&item.tags.join(" "));
        field(item.server.as_deref().unwrap_or(""));
        field(item.server_description.as_deref().unwrap_or(""));
    }
    hex(&hasher.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes `index` and `graph` to `path`, whole or not at all.
///
/// # Errors
/// [`SnapshotError::Io`].
pub fn save(
    path: &Path,
    catalog: &Catalog,
    config: &RoutingConfig,
    index: &Index,
    graph: &ChoiceGraph,
) -> Result<(), SnapshotError> {
    let io = |source| SnapshotError::Io { path: path.to_owned(), source };
    let payload = Payload {
        items: index.items,
        terms: sorted(&index.terms),
        surfaces: sorted(&index.surfaces),
        offsets: index.offsets.clone(),
        postings: index.postings.clone(),
        exact: index.exact.clone(),
        graph: graph.clone(),
    };
    let payload = postcard::to_stdvec(&payload).map_err(|error| io(std::io::Error::other(error)))?;
    let header = Header {
        format: FORMAT.to_owned(),
        schema: SCHEMA,
        items: catalog.len(),
        catalog_sha256: catalog_sha256(catalog),
        configuration: config.clone(),
        payload_bytes: payload.len(),
        payload_sha256: hex(&Sha256::digest(&payload)),
    };
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(io)?;
    serde_json::to_writer(&mut file, &header).map_err(|error| io(error.into()))?;
    file.write_all(b"\n").and_then(|()| file.write_all(&payload)).map_err(io)?;
    file.persist(path).map_err(|error| io(error.error))?;
    Ok(())
}

fn sorted(table: &FxHashMap<Box<str>, TermId>) -> Vec<(Box<str>, TermId)> {
    let mut entries: Vec<_> = table.iter().map(|(word, &term)| (word.clone(), term)).collect();
    entries.sort_unstable();
    entries
}

/// Reads what [`save`] wrote, for the same catalog and configuration.
///
/// # Errors
/// [`SnapshotError`]: the file cannot be read, is no snapshot of this version, is damaged, or is stale.
pub fn load(path: &Path, catalog: &Catalog, config: &RoutingConfig) -> Result<(Index, ChoiceGraph), SnapshotError> {
    let bytes = fs::read(path).map_err(|source| SnapshotError::Io { path: path.to_owned(), source })?;
    let unknown = |reason: String| SnapshotError::Unknown { path: path.to_owned(), reason };
    let damaged = |reason: String| SnapshotError::Damaged { path: path.to_owned(), reason };
    let end = bytes.iter().position(|&byte| byte == b'\n').ok_or_else(|| unknown("not a snapshot".to_owned()))?;
    let head: serde_json::Value =
        serde_json::from_slice(&bytes[..end]).map_err(|_| unknown("not a snapshot".to_owned()))?;
    if head.get("format").and_then(serde_json::Value::as_str) != Some(FORMAT) {
        return Err(unknown("not a snapshot".to_owned()));
    }
    let schema = head.get("schema").and_then(serde_json::Value::as_u64);
    if schema != Some(u64::from(SCHEMA)) {
        return Err(unknown(format!("its format version is not {SCHEMA}")));
    }
    let header: Header = serde_json::from_value(head).map_err(|error| damaged(format!("header: {error}")))?;
    let payload = &bytes[end + 1..];
    if payload.len() != header.payload_bytes {
        return Err(damaged(format!("{} bytes instead of {}", payload.len(), header.payload_bytes)));
    }
    if hex(&Sha256::digest(payload)) != header.payload_sha256 {
        return Err(damaged("checksum differs".to_owned()));
    }
    let stale = |what| SnapshotError::Stale { path: path.to_owned(), what };
    if header.catalog_sha256 != catalog_sha256(catalog) {
        return Err(stale("catalog"));
    }
    if header.configuration != *config {
        return Err(stale("configuration"));
    }
    let payload: Payload = postcard::from_bytes(payload).map_err(|error| damaged(error.to_string()))?;
    payload.graph.validate(catalog.items()).map_err(|error| damaged(error.to_string()))?;
    let index = Index::from_parts(
        payload.items,
        payload.terms.into_iter().collect(),
        payload.surfaces.into_iter().collect(),
        payload.offsets,
        payload.postings,
        payload.exact,
        config.scorer,
    );
    Ok((index, payload.graph))
}
