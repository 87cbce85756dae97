//! A built index and graph saved as bytes, so that a process starts without building them.
//!
//! The bytes are a line of JSON that describes them, then the index as it is in memory, then the graph. They can only
//! be used with the catalog that they were built from and by the version that wrote them: an index file of another
//! catalog, configuration or version is refused as stale, since a version may analyse or score differently; one whose
//! bytes changed is refused as damaged. A checksum does not make a payload safe, so every number in it is checked too.
//! Reading and writing files is the caller's business. An index file is a cache, so there is no migration between
//! versions: build it again.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::config::RoutingConfig;
use super::graph::ChoiceGraph;
use super::image::{ALIGNMENT, Image, PARTS};
use super::index::Index;
use super::router::{RouteError, Router};
use super::semantic::Table;
use contextweaver_core::catalog::Catalog;
use contextweaver_core::text::hex;

/// What an index file says that it is, in its first line.
pub const INDEX_FILE: &str = "contextweaver-index";

const SCHEMA: u32 = 9;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An index file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexFileError {
    /// The bytes are not an index file, or are in another version of its format.
    #[error("{0}; build it again with `contextweaver build`")]
    Unknown(String),
    /// The bytes differ from those that were written.
    #[error("damaged ({0}); build it again with `contextweaver build`")]
    Damaged(String),
    /// The file was made for another catalog or configuration, or by another version.
    #[error("stale: built from a different {0}; build it again with `contextweaver build`")]
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
    /// The length of every part of the index in bytes, in their order.
    index_bytes: [u64; PARTS],
    graph_bytes: usize,
    payload_sha256: String,
}

/// SHA-256 (hex) over the parts of an index, the bytes between them, and the graph. The lengths of the parts are
/// included: a shifted boundary between two parts would leave all bytes as they are.
fn payload_sha256(image: &Image, graph: &[u8]) -> String {
    let mut digest = Sha256::new();
    image.lengths().iter().for_each(|length| digest.update(length.to_le_bytes()));
    digest.update(image.bytes());
    digest.update(graph);
    hex(&digest.finalize())
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
/// [`RouteError::Graph`] when the graph cannot be built; [`IndexFileError::Damaged`] if the parts cannot be encoded,
/// which does not happen for any router.
pub fn save(router: &Router) -> Result<Vec<u8>, RouteError> {
    let (index, catalog) = (router.index(), router.catalog());
    let encode = |error: String| IndexFileError::Damaged(error);
    let graph = postcard::to_stdvec(router.choice_graph()?).map_err(|error| encode(error.to_string()))?;
    let anew;
    let image = if index.is_patched() {
        anew = Index::build(catalog, router.config());
        anew.image()
    } else {
        index.image()
    };
    let header = Header {
        format: INDEX_FILE.to_owned(),
        schema: SCHEMA,
        version: VERSION.to_owned(),
        items: catalog.len(),
        catalog_sha256: catalog_sha256(catalog),
        configuration: router.config().clone(),
        index_bytes: image.lengths(),
        graph_bytes: graph.len(),
        payload_sha256: payload_sha256(image, &graph),
    };
    let mut bytes = serde_json::to_vec(&header).map_err(|error| encode(error.to_string()))?;
    // Spaces before the line end align the index in the file as in memory.
    bytes.resize((bytes.len() + 1).next_multiple_of(ALIGNMENT) - 1, b' ');
    bytes.push(b'\n');
    bytes.extend_from_slice(image.bytes());
    bytes.extend_from_slice(&graph);
    Ok(bytes)
}

/// The router that [`save`] wrote as `bytes`, for the same catalog and configuration.
///
/// # Errors
/// [`RouteError::IndexFile`]: not an index file of this version, damaged, or stale.
pub fn load(bytes: impl Into<Bytes>, catalog: Arc<Catalog>, config: RoutingConfig) -> Result<Router, RouteError> {
    let saved = Saved::read(&bytes.into())?;
    if saved.header.catalog_sha256 != catalog_sha256(&catalog) {
        return Err(IndexFileError::Stale("catalog").into());
    }
    if saved.header.configuration != config {
        return Err(IndexFileError::Stale("configuration").into());
    }
    if saved.header.items != catalog.len() {
        let reason = format!("it has {} items, but the catalog has {}", saved.header.items, catalog.len());
        return Err(IndexFileError::Damaged(reason).into());
    }
    saved.check_sum()?;
    let graph = saved.graph()?;
    let damaged = |reason: String| IndexFileError::Damaged(reason);
    graph.validate(catalog.items()).map_err(|error| damaged(error.to_string()))?;
    let index = Index::assemble(saved.image, catalog.len() as u32, &config, Table::builtin());
    index.check().map_err(|reason| damaged(reason.to_owned()))?;
    Ok(Router::from_saved(catalog, config, index, graph))
}

/// The index in `bytes`, which are used in place: a mapped file is read only where a search needs it. Neither the
/// checksum nor the numbers inside are checked, so the bytes must be those that [`save`] made; other bytes give wrong
/// answers, and nothing worse.
///
/// # Errors
/// [`IndexFileError`]: not an index file of this version, or not of the stated length.
pub fn open_index(bytes: impl Into<Bytes>) -> Result<Index, IndexFileError> {
    let Saved { header, image, .. } = Saved::read(&bytes.into())?;
    let items = u32::try_from(header.items).map_err(|_| IndexFileError::Damaged("too many items".to_owned()))?;
    Ok(Index::assemble(image, items, &header.configuration, Table::builtin()))
}

/// The choice graph in `bytes`, without the catalog that it was built from: to look at, not to route with.
///
/// # Errors
/// [`IndexFileError`]: not an index file of this version, or damaged.
pub fn load_graph(bytes: impl Into<Bytes>) -> Result<ChoiceGraph, IndexFileError> {
    let saved = Saved::read(&bytes.into())?;
    saved.check_sum()?;
    saved.graph()
}

/// The parts of an index file, in place.
struct Saved {
    header: Header,
    image: Image,
    graph: Bytes,
}

impl Saved {
    fn read(bytes: &Bytes) -> Result<Self, IndexFileError> {
        let not_one = || IndexFileError::Unknown("not a saved index".to_owned());
        let damaged = |reason: String| IndexFileError::Damaged(reason);
        let end = bytes.iter().position(|&byte| byte == b'\n').ok_or_else(not_one)?;
        let head: serde_json::Value = serde_json::from_slice(&bytes[..end]).map_err(|_| not_one())?;
        if head.get("format").and_then(serde_json::Value::as_str) != Some(INDEX_FILE) {
            return Err(not_one());
        }
        if head.get("schema").and_then(serde_json::Value::as_u64) != Some(u64::from(SCHEMA)) {
            return Err(IndexFileError::Unknown(format!("its format version is not {SCHEMA}")));
        }
        if head.get("version").and_then(serde_json::Value::as_str) != Some(VERSION) {
            return Err(IndexFileError::Stale("version of contextweaver"));
        }
        let header: Header = serde_json::from_value(head).map_err(|error| damaged(format!("header: {error}")))?;
        let payload = bytes.slice(end + 1..);
        let stated =
            Image::size(&header.index_bytes).and_then(|size| Some((size, size.checked_add(header.graph_bytes)?)));
        match stated {
            Some((size, all)) if all == payload.len() => {
                let image = Image::new(payload.slice(..size), &header.index_bytes);
                let image = image.ok_or_else(|| damaged("the lengths of its parts do not add up".to_owned()))?;
                Ok(Self { header, image, graph: payload.slice(size..) })
            }
            Some((_, all)) => Err(damaged(format!("{} bytes instead of {all}", payload.len()))),
            None => Err(damaged("the stated lengths are out of range".to_owned())),
        }
    }

    fn check_sum(&self) -> Result<(), IndexFileError> {
        let same = payload_sha256(&self.image, &self.graph) == self.header.payload_sha256;
        if same { Ok(()) } else { Err(IndexFileError::Damaged("checksum differs".to_owned())) }
    }

    fn graph(&self) -> Result<ChoiceGraph, IndexFileError> {
        postcard::from_bytes(&self.graph).map_err(|error| IndexFileError::Damaged(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::image::Part;
    use crate::{Depth, Request, Scorer, Scratch};
    use contextweaver_core::catalog::{Kind, SelectableItem};

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
        let loaded = load(saved(), catalog("Open an issue"), RoutingConfig::default()).unwrap();
        for query in ["open issue", "letters", "create_issue", "nothing"] {
            let route = |router: &Router| {
                let request = Request { query: query.to_owned(), ..Request::default() };
                serde_json::to_string(&router.route(&request).unwrap()).unwrap()
            };
            assert_eq!(route(&built), route(&loaded), "{query}");
        }
        assert_eq!(save(&loaded).unwrap(), saved());
        assert_eq!(load_graph(saved()).unwrap().items(), 2);
    }

    #[test]
    fn what_is_not_the_same_is_refused_with_the_reason() {
        let other = RoutingConfig { scorer: Scorer::Bm25, ..RoutingConfig::default() };
        let refused = |bytes: &[u8], description: &str, config: &RoutingConfig| {
            load(bytes.to_vec(), catalog(description), config.clone()).unwrap_err().to_string()
        };
        let (good, same) = (saved(), RoutingConfig::default());
        let mut flipped = good.clone();
        *flipped.last_mut().unwrap() ^= 1;
        let of_another_form =
            String::from_utf8_lossy(&good).replace(&format!("\"schema\":{SCHEMA}"), "\"schema\":0").into_bytes();
        let version = format!("\"version\":\"{VERSION}\"");
        let older = String::from_utf8_lossy(&good).replace(&version, "\"version\":\"0.0.0\"").into_bytes();
        let seen = [
            refused(&older, "Open an issue", &same),
            refused(&good, "Close an issue", &same),
            refused(&good, "Open an issue", &other),
            refused(&flipped, "Open an issue", &same),
            refused(&good[..good.len() - 1], "Open an issue", &same),
            refused(&of_another_form, "Open an issue", &same),
            refused(b"[]\n", "Open an issue", &same),
            refused(b"", "Open an issue", &same),
        ];
        insta::assert_snapshot!(seen.join("\n"), @r"
        stale: built from a different version of contextweaver; build it again with `contextweaver build`
        stale: built from a different catalog; build it again with `contextweaver build`
        stale: built from a different configuration; build it again with `contextweaver build`
        damaged (checksum differs); build it again with `contextweaver build`
        damaged (10185 bytes instead of 10186); build it again with `contextweaver build`
        its format version is not 9; build it again with `contextweaver build`
        not a saved index; build it again with `contextweaver build`
        not a saved index; build it again with `contextweaver build`
        ");
    }

    /// Snapshot bytes with a payload changed by `forge` and a checksum that is right.
    fn forged(forge: impl FnOnce(&Saved, &mut [u8])) -> Vec<u8> {
        let saved = Saved::read(&saved().into()).unwrap();
        let mut payload = saved.image.bytes().to_vec();
        forge(&saved, &mut payload);
        let image = Image::new(payload.into(), &saved.header.index_bytes).unwrap();
        let header = Header { payload_sha256: payload_sha256(&image, &saved.graph), ..saved.header };
        let mut bytes = serde_json::to_vec(&header).unwrap();
        bytes.push(b'\n');
        bytes.extend(image.bytes());
        bytes.extend(&saved.graph);
        bytes
    }

    #[test]
    fn a_forged_payload_is_refused() {
        let number = |part: Part, at: usize, value: u32| {
            let bytes = forged(|saved, payload| {
                let start = saved.image.part(part).as_ptr() as usize - saved.image.bytes().as_ptr() as usize;
                payload[start + at..start + at + 4].copy_from_slice(&value.to_le_bytes());
            });
            let error = load(bytes, catalog("Open an issue"), RoutingConfig::default()).map(drop).unwrap_err();
            error.to_string().replace("; build it again with `contextweaver build`", "")
        };
        let seen = [
            number(Part::WordEntries, 4, 9999),
            number(Part::TermEntries, 4, 9999),
            number(Part::Lists, 0, 1),
            number(Part::Lists, 4, 9999),
            number(Part::Chunks, 4, 9999),
            number(Part::Chunks, 0, 0),
            number(Part::ChunkStarts, 0, 1),
            number(Part::PairStarts, 0, 1),
            number(Part::PairStarts, 4, 9999),
            number(Part::PairSeconds, 0, 9999),
            number(Part::Postings, 0, 2 << 22 | 1),
            number(Part::Postings, 0, 0),
            number(Part::Names, 0, 2),
            number(Part::SpellingTerms, 0, 9999),
        ];
        insta::assert_snapshot!(seen.join("\n"), @r"
        damaged (a word stands for no term)
        damaged (a term is out of range)
        damaged (the lists of postings overlap)
        damaged (the lists of postings overlap)
        damaged (the chunks of postings overlap)
        damaged (a bound differs from the highest impact of its chunk)
        damaged (the chunks of postings overlap)
        damaged (the lists of pairs overlap)
        damaged (the lists of pairs overlap)
        damaged (a pair is out of range)
        damaged (a bound differs from the highest impact of its chunk)
        damaged (a bound differs from the highest impact of its chunk)
        damaged (a name belongs to no item)
        damaged (a word for spelling correction stands for no term)
        ");
        assert!(load(forged(|_, _| {}), catalog("Open an issue"), RoutingConfig::default()).is_ok());
    }

    proptest! {
        #[test]
        fn a_changed_number_is_refused_or_answers(at in any::<prop::sample::Index>(), value in any::<u8>()) {
            let bytes = forged(|_, payload| payload[at.index(payload.len())] = value);
            let opened = open_index(bytes.clone()).unwrap();
            let loaded = load(bytes, catalog("Open an issue"), RoutingConfig::default());
            for text in ["open issue", "create_issue", "leter", "send mail"] {
                let query = opened.analyze(text);
                opened.search_query(&query, Depth::ThroughTies(3), |_| true, &mut Scratch::default());
                let _ = opened.score_all(&query);
                if let Ok(router) = &loaded {
                    router.route(&Request { query: text.to_owned(), ..Request::default() }).unwrap();
                }
            }
        }
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

    #[test]
    fn a_part_that_ends_elsewhere_is_refused() {
        let good = saved();
        let end = good.iter().position(|byte| *byte == b'\n').unwrap();
        let head: serde_json::Value = serde_json::from_slice(&good[..end]).unwrap();
        let mut refused = 0;
        for part in 0..PARTS {
            let length = head["index_bytes"][part].as_u64().unwrap();
            // Where the next part begins does not change.
            let same =
                |other: &u64| other.next_multiple_of(ALIGNMENT as u64) == length.next_multiple_of(ALIGNMENT as u64);
            for other in [length + 1, length + 8, length.saturating_sub(1), length.saturating_sub(4)] {
                let mut head = head.clone();
                head["index_bytes"][part] = other.into();
                let mut bytes = serde_json::to_vec(&head).unwrap();
                bytes.extend_from_slice(&good[end..]);
                let loaded = load(bytes.clone(), catalog("Open an issue"), RoutingConfig::default());
                assert_eq!(loaded.is_err(), other != length, "part {part}: {other} bytes instead of {length}");
                refused += usize::from(other != length && same(&other) && Saved::read(&bytes.into()).is_ok());
            }
        }
        assert!(refused > 10, "{refused} of them are seen by the checksum alone");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(noise in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..2000, value in any::<u8>()) {
            let load = |bytes: &[u8]| load(bytes.to_vec(), catalog("Open an issue"), RoutingConfig::default());
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
