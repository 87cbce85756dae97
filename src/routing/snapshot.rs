//! A built index and graph as bytes, so that a process starts without building them.
//!
//! The bytes are a line of JSON that says what it holds, then the payload. It is only ever used together with the
//! catalog that it was built from and the version that made it: a snapshot of another catalog, configuration or version
//! is refused as stale, since a version may analyse or score otherwise; one whose bytes changed is refused as damaged. A
//! checksum does not make a payload safe, so every number in it is checked too. Reading and writing files is the
//! caller's business. It is a cache, so there is no migration between versions: build it again.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::config::RoutingConfig;
use super::exact::ExactNames;
use super::graph::ChoiceGraph;
use super::index::{Index, Parts, Posting, TermId};
use super::router::{RouteError, Router};
use crate::catalog::Catalog;
use crate::text::{hex, sha256_hex};

const FORMAT: &str = "contextweaver-index";
const SCHEMA: u32 = 2;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A snapshot is not usable.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Not a snapshot, or one of another version.
    #[error("{0}; build it again with `contextweaver build`")]
    Unknown(String),
    /// The bytes are not those that were made.
    #[error("damaged ({0}); build it again with `contextweaver build`")]
    Damaged(String),
    /// Made for another catalog or configuration, or by another version.
    #[error("stale: built from another {0}; build it again with `contextweaver build`")]
    Stale(&'static str),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    schema: u32,
    version: String,
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
    pairs: Vec<((TermId, TermId), TermId)>,
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
        field(item.kind.name());
        field(&item.namespace);
        field(&item.definition_json());
        field(&item.tags.len().to_string());
        item.tags.iter().for_each(|tag| field(tag));
        for optional in [&item.server, &item.server_description] {
            field(if optional.is_some() { "given" } else { "missing" });
            field(optional.as_deref().unwrap_or(""));
        }
    }
    hex(&hasher.finalize())
}

/// The index and the choice graph of `router` as bytes, to be loaded with the same catalog and configuration. Builds
/// the graph if nothing has needed it yet.
///
/// # Errors
/// [`RouteError::Graph`] when the graph cannot be built; [`SnapshotError::Damaged`] if the parts cannot be encoded,
/// which no router has.
pub fn save(router: &Router) -> Result<Vec<u8>, RouteError> {
    let (index, catalog) = (router.index(), router.catalog());
    let payload = Payload {
        items: index.parts.items,
        terms: sorted(&index.parts.terms),
        surfaces: sorted(&index.parts.surfaces),
        pairs: sorted(&index.parts.pairs),
        offsets: index.parts.offsets.clone(),
        postings: index.parts.postings.clone(),
        exact: index.parts.exact.clone(),
        graph: router.choice_graph()?.clone(),
    };
    let encode = |error: String| SnapshotError::Damaged(error);
    let payload = postcard::to_stdvec(&payload).map_err(|error| encode(error.to_string()))?;
    let header = Header {
        format: FORMAT.to_owned(),
        schema: SCHEMA,
        version: VERSION.to_owned(),
        items: catalog.len(),
        catalog_sha256: catalog_sha256(catalog),
        configuration: router.config().clone(),
        payload_bytes: payload.len(),
        payload_sha256: sha256_hex(&payload),
    };
    let mut bytes = serde_json::to_vec(&header).map_err(|error| encode(error.to_string()))?;
    bytes.push(b'\n');
    bytes.extend(payload);
    Ok(bytes)
}

fn sorted<K: Clone + Ord>(table: &FxHashMap<K, TermId>) -> Vec<(K, TermId)> {
    let mut entries: Vec<_> = table.iter().map(|(key, &term)| (key.clone(), term)).collect();
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
    if payload.items as usize != catalog.len() {
        let reason = format!("it has {} items, the catalog {}", payload.items, catalog.len());
        return Err(damaged(reason).into());
    }
    let parts = Parts {
        items: payload.items,
        terms: payload.terms.into_iter().collect(),
        surfaces: payload.surfaces.into_iter().collect(),
        pairs: payload.pairs.into_iter().collect(),
        offsets: payload.offsets,
        postings: payload.postings,
        exact: payload.exact,
    };
    let index = Index::from_parts(parts, &catalog, &config).map_err(|reason| damaged(reason.to_owned()))?;
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
    if head.get("version").and_then(serde_json::Value::as_str) != Some(VERSION) {
        return Err(SnapshotError::Stale("version of contextweaver"));
    }
    let header: Header =
        serde_json::from_value(head).map_err(|error| SnapshotError::Damaged(format!("header: {error}")))?;
    let payload = &bytes[end + 1..];
    if payload.len() != header.payload_bytes {
        let reason = format!("{} bytes instead of {}", payload.len(), header.payload_bytes);
        return Err(SnapshotError::Damaged(reason));
    }
    if sha256_hex(payload) != header.payload_sha256 {
        return Err(SnapshotError::Damaged("checksum differs".to_owned()));
    }
    Ok((header, payload))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalog::{Kind, SelectableItem};
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
        let newer = String::from_utf8_lossy(&good).replace("\"schema\":2", "\"schema\":3").into_bytes();
        let version = format!("\"version\":\"{VERSION}\"");
        let older = String::from_utf8_lossy(&good).replace(&version, "\"version\":\"0.0.0\"").into_bytes();
        let seen = [
            refused(&older, "Open an issue", &same),
            refused(&good, "Close an issue", &same),
            refused(&good, "Open an issue", &other),
            refused(&flipped, "Open an issue", &same),
            refused(&good[..good.len() - 1], "Open an issue", &same),
            refused(&newer, "Open an issue", &same),
            refused(b"[]\n", "Open an issue", &same),
            refused(b"", "Open an issue", &same),
        ];
        insta::assert_snapshot!(seen.join("\n"), @r"
        stale: built from another version of contextweaver; build it again with `contextweaver build`
        stale: built from another catalog; build it again with `contextweaver build`
        stale: built from another configuration; build it again with `contextweaver build`
        damaged (checksum differs); build it again with `contextweaver build`
        damaged (440 bytes instead of 441); build it again with `contextweaver build`
        its format version is not 2; build it again with `contextweaver build`
        not a snapshot; build it again with `contextweaver build`
        not a snapshot; build it again with `contextweaver build`
        ");
    }

    /// Snapshot bytes with a payload changed by `forge` and a checksum that is right.
    fn forged(forge: impl FnOnce(&mut Payload)) -> Vec<u8> {
        let good = saved();
        let (mut header, payload) = read_header(&good).unwrap();
        let mut payload: Payload = postcard::from_bytes(payload).unwrap();
        forge(&mut payload);
        let payload = postcard::to_stdvec(&payload).unwrap();
        header.payload_bytes = payload.len();
        header.payload_sha256 = sha256_hex(&payload);
        let mut bytes = serde_json::to_vec(&header).unwrap();
        bytes.push(b'\n');
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn a_forged_payload_is_refused() {
        let mut other = catalog("Open an issue").items().to_vec();
        other.push(SelectableItem::tool("wiki:more#00000003", "wiki", "more", ""));
        let names = ExactNames::of(&Catalog::new(other).unwrap());
        let forgeries: [(&str, Vec<u8>); 14] = [
            ("items", forged(|payload| payload.items = 3)),
            ("term", forged(|payload| payload.terms[0].1 = 9999)),
            ("terms", forged(|payload| drop(payload.terms.pop()))),
            ("surface", forged(|payload| payload.surfaces[0].1 = 9999)),
            ("pair", forged(|payload| payload.pairs[0].1 = 0)),
            ("pairs", forged(|payload| payload.pairs.truncate(1))),
            ("offset", forged(|payload| payload.offsets[1] = 9999)),
            ("start", forged(|payload| payload.offsets[0] = 1)),
            ("no offsets", forged(|payload| payload.offsets.clear())),
            ("postings", forged(|payload| payload.postings.clear())),
            ("posting item", forged(|payload| payload.postings[0].item = 2)),
            ("no impact", forged(|payload| payload.postings[0].impact = 0)),
            ("impact", forged(|payload| payload.postings[0].impact = u32::MAX)),
            ("exact", forged(|payload| payload.exact = names)),
        ];
        for (what, bytes) in forgeries {
            let error = load(&bytes, catalog("Open an issue"), RoutingConfig::default()).map(drop).unwrap_err();
            assert!(matches!(error, RouteError::Snapshot(SnapshotError::Damaged(_))), "{what}: {error}");
        }
        assert!(load(&forged(|_| {}), catalog("Open an issue"), RoutingConfig::default()).is_ok());
    }

    #[test]
    fn every_part_of_an_item_changes_the_checksum() {
        let item = || SelectableItem {
            tags: vec!["a b".to_owned()],
            ..SelectableItem::tool("forge:x#00000001", "forge", "x", "")
        };
        let others = [
            item(),
            SelectableItem { tags: vec!["a".to_owned(), "b".to_owned()], ..item() },
            SelectableItem { server: Some(String::new()), ..item() },
            SelectableItem { server_description: Some(String::new()), ..item() },
            SelectableItem { kind: Kind::Agent, ..item() },
            SelectableItem { namespace: "forge2".to_owned(), ..item() },
        ];
        let sums: std::collections::BTreeSet<String> =
            others.map(|item| catalog_sha256(&Catalog::new(vec![item]).unwrap())).into_iter().collect();
        assert_eq!(sums.len(), 6);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(noise in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..2000, value in any::<u8>()) {
            let load = |bytes: &[u8]| load(bytes, catalog("Open an issue"), RoutingConfig::default());
            prop_assert!(load(&noise).is_err());
            let mut bytes = saved();
            let at = at % bytes.len();
            // A header can say the same in other letters: `1e0` for `1.0`.
            let in_header = bytes[..at].iter().all(|byte| *byte != b'\n');
            if bytes[at] != value {
                bytes[at] = value;
                prop_assert!(load(&bytes).is_err() || in_header, "byte {}", at);
            }
        }
    }
}
