//! A built index and graph as bytes, so that a process starts without building them.
//!
//! The bytes are a line of JSON that says what it holds, then the payload. It is only ever used together with the
//! catalog that it was built from: a snapshot of another catalog or configuration is refused as stale, one whose bytes
//! changed as damaged. Reading and writing files is the caller's business. It is a cache, so there is no migration between versions: build it again.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::config::RoutingConfig;
use super::exact::ExactNames;
use super::graph::ChoiceGraph;
use super::index::{Index, Posting, TermId};
use super::router::{RouteError, Router};
use crate::catalog::Catalog;

const FORMAT: &str = "contextweaver-index";
const SCHEMA: u32 = 1;

/// A snapshot is not usable.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Not a snapshot, or one of another version.
    #[error("{0}; build it again with `contextweaver build`")]
    Unknown(String),
    /// The bytes are not those that were made.
    #[error("damaged ({0}); build it again with `contextweaver build`")]
    Damaged(String),
    /// Made for another catalog or configuration.
    #[error("stale: built from another {0}; build it again with `contextweaver build`")]
    Stale(&'static str),
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

/// `index` and `graph` as bytes, to be used with the same catalog and configuration.
///
/// # Errors
/// [`SnapshotError::Damaged`] if the parts cannot be encoded, which no router has.
pub fn save(router: &Router) -> Result<Vec<u8>, RouteError> {
    let (index, catalog) = (router.index(), router.catalog());
    let payload = Payload {
        items: index.items,
        terms: sorted(&index.terms),
        surfaces: sorted(&index.surfaces),
        offsets: index.offsets.clone(),
        postings: index.postings.clone(),
        exact: index.exact.clone(),
        graph: router.choice_graph()?.clone(),
    };
    let encode = |error: String| SnapshotError::Damaged(error);
    let payload = postcard::to_stdvec(&payload).map_err(|error| encode(error.to_string()))?;
    let header = Header {
        format: FORMAT.to_owned(),
        schema: SCHEMA,
        items: catalog.len(),
        catalog_sha256: catalog_sha256(catalog),
        configuration: router.config().clone(),
        payload_bytes: payload.len(),
        payload_sha256: hex(&Sha256::digest(&payload)),
    };
    let mut bytes = serde_json::to_vec(&header).map_err(|error| encode(error.to_string()))?;
    bytes.push(b'\n');
    bytes.extend(payload);
    Ok(bytes)
}

fn sorted(table: &FxHashMap<Box<str>, TermId>) -> Vec<(Box<str>, TermId)> {
    let mut entries: Vec<_> = table.iter().map(|(word, &term)| (word.clone(), term)).collect();
    entries.sort_unstable();
    entries
}

/// The router that [`save`] made `bytes` of, for the same catalog and configuration.
///
/// # Errors
/// [`RouteError::Snapshot`]: not a snapshot of this version, damaged, or stale.
pub fn load(bytes: &[u8], catalog: Arc<Catalog>, config: RoutingConfig) -> Result<Router, RouteError> {
    let (header, payload) = read_header(bytes)?;
    if header.catalog_sha256 != catalog_sha256(&catalog) {
        return Err(SnapshotError::Stale("catalog").into());
    }
    if header.configuration != config {
        return Err(SnapshotError::Stale("configuration").into());
    }
    let damaged = |reason: String| SnapshotError::Damaged(reason);
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
    Ok(Router::from_saved(catalog, config, index, payload.graph))
}

/// The choice graph in `bytes`, without the catalog that it was built from: to look at, not to route with.
///
/// # Errors
/// [`SnapshotError`]: not a snapshot of this version, or damaged.
pub fn load_graph(bytes: &[u8]) -> Result<ChoiceGraph, SnapshotError> {
    let (_, payload) = read_header(bytes)?;
    let payload: Payload = postcard::from_bytes(payload).map_err(|error| SnapshotError::Damaged(error.to_string()))?;
    Ok(payload.graph)
}

/// The checked header, and the payload whose checksum it states.
fn read_header(bytes: &[u8]) -> Result<(Header, &[u8]), SnapshotError> {
    let not_one = || SnapshotError::Unknown("not a snapshot".to_owned());
    let end = bytes.iter().position(|&byte| byte == b'\n').ok_or_else(not_one)?;
    let head: serde_json::Value = serde_json::from_slice(&bytes[..end]).map_err(|_| not_one())?;
    if head.get("format").and_then(serde_json::Value::as_str) != Some(FORMAT) {
        return Err(not_one());
    }
    if head.get("schema").and_then(serde_json::Value::as_u64) != Some(u64::from(SCHEMA)) {
        return Err(SnapshotError::Unknown(format!("its format version is not {SCHEMA}")));
    }
    let header: Header =
        serde_json::from_value(head).map_err(|error| SnapshotError::Damaged(format!("header: {error}")))?;
    let payload = &bytes[end + 1..];
    if payload.len() != header.payload_bytes {
        let reason = format!("{} bytes instead of {}", payload.len(), header.payload_bytes);
        return Err(SnapshotError::Damaged(reason));
    }
    if hex(&Sha256::digest(payload)) != header.payload_sha256 {
        return Err(SnapshotError::Damaged("checksum differs".to_owned()));
    }
    Ok((header, payload))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalog::SelectableItem;
    use crate::routing::{Request, Scorer};

    fn catalog(description: &str) -> Arc<Catalog> {
        let items = vec![
            SelectableItem::tool("forge:create_issue#00000001", "forge", "create_issue", description),
            SelectableItem::tool("mail:send_mail#00000002", "mail", "send_mail", "Send a letter"),
        ];
        Arc::new(Catalog::new(items).unwrap())
    }

    fn saved() -> Vec<u8> {
        save(&Router::build(catalog("Open an issue"), RoutingConfig::default()).unwrap()).unwrap()
    }

    #[test]
    fn a_loaded_router_answers_like_the_built_one() {
        let built = Router::build(catalog("Open an issue"), RoutingConfig::default()).unwrap();
        let loaded = load(&saved(), catalog("Open an issue"), RoutingConfig::default()).unwrap();
        for query in ["open issue", "letters", "create_issue", "nothing"] {
            let route = |router: &Router| {
                let request = Request { query: query.to_owned(), ..Request::default() };
                serde_json::to_string(&router.route(&request).unwrap()).unwrap()
            };
            assert_eq!(route(&built), route(&loaded), "{query}");
        }
        assert_eq!(save(&loaded).unwrap(), saved());
        assert_eq!(load_graph(&saved()).unwrap().items(), 2);
    }

    #[test]
    fn what_is_not_the_same_is_refused_with_the_reason() {
        let other = RoutingConfig { scorer: Scorer::Bm25, ..RoutingConfig::default() };
        let refused = |bytes: &[u8], description: &str, config: &RoutingConfig| {
            load(bytes, catalog(description), config.clone()).unwrap_err().to_string()
        };
        let (good, same) = (saved(), RoutingConfig::default());
        let mut flipped = good.clone();
        *flipped.last_mut().unwrap() ^= 1;
        let newer = String::from_utf8_lossy(&good).replace("\"schema\":1", "\"schema\":2").into_bytes();
        let seen = [
            refused(&good, "Close an issue", &same),
            refused(&good, "Open an issue", &other),
            refused(&flipped, "Open an issue", &same),
            refused(&good[..good.len() - 1], "Open an issue", &same),
            refused(&newer, "Open an issue", &same),
            refused(b"[]\n", "Open an issue", &same),
            refused(b"", "Open an issue", &same),
        ];
        insta::assert_snapshot!(seen.join("\n"), @r"
        stale: built from another catalog; build it again with `contextweaver build`
        stale: built from another configuration; build it again with `contextweaver build`
        damaged (checksum differs); build it again with `contextweaver build`
        damaged (423 bytes instead of 424); build it again with `contextweaver build`
        its format version is not 1; build it again with `contextweaver build`
        not a snapshot; build it again with `contextweaver build`
        not a snapshot; build it again with `contextweaver build`
        ");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(noise in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..2000, value in any::<u8>()) {
            let load = |bytes: &[u8]| load(bytes, catalog("Open an issue"), RoutingConfig::default());
            prop_assert!(load(&noise).is_err());
            let mut bytes = saved();
            let at = at % bytes.len();
            if bytes[at] != value {
                bytes[at] = value;
                prop_assert!(load(&bytes).is_err(), "byte {}", at);
            }
        }
    }
}
