//! Tools, resources and prompts behind one gateway: what the lists of each kind cost a client, what browsing costs in their
//! place, and what it finds.
//!
//! A request needs items of one kind and is put to the search of that kind, as a client's model would: that it knows which
//! kind it needs is taken for granted. What counts as found is what stands on the page that the gateway answers with.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::json;

use super::case::Reader;
use super::exchange::{texts, tokens};
use super::record::{KindFacts, KindsFacts, RecallFacts, SearchFacts};
use super::scenario::Shelf;
use super::stage::{Server, Stage};
use crate::eval::collection::{ASKED_FILE, CATALOG_FILE, Collection, QUERIES_FILE, Query};
use crate::eval::everyday::in_order;
use crate::eval::matrix::CONTROL;
use crate::eval::measure::{Found, Judgement, Measure};
use crate::eval::ranks::Ranks;
use crate::eval::record::{Estimate, Origin, Paired};
use crate::eval::statistics::paired_by_tool;
use contextweaver_core::catalog::Kind;
use contextweaver_gateway::{GatewayConfig, LocalClient, Mode};
use contextweaver_routing::{RoutingConfig, Scorer};

/// The folder in `gold/`.
pub const COLLECTION: &str = "library";

/// How an index of the gateway is made that ranks like the control of the matrix: flat BM25.
#[must_use]
pub fn control() -> RoutingConfig {
    RoutingConfig { scorer: Scorer::Bm25, k1: 1.2, b: 0.75, ..RoutingConfig::default() }
}

/// A collection with servers that have all three kinds, and its requests in both wordings.
#[derive(Debug)]
pub struct Requests {
    servers: Vec<Server>,
    /// As people say them.
    said: Collection,
    /// The same requests as a model would put them to a search.
    asked: Collection,
}

impl Requests {
    /// The collection in `folder`.
    ///
    /// # Errors
    /// A file that cannot be read or says something wrong, wordings of other requests, or a request that needs items of more
    /// than one kind or none.
    pub fn read(reader: &mut Reader, folder: &Path) -> Result<Self> {
        let servers = reader.collection(folder)?;
        let asked_path = folder.join(ASKED_FILE);
        reader.file(&folder.join(QUERIES_FILE))?;
        reader.file(&asked_path)?;
        let said = Collection::load(folder, Origin::Embedded)?;
        let asked = Collection::from_files(&said.name, Origin::Embedded, &folder.join(CATALOG_FILE), &asked_path)?;
        for (said_query, asked_query) in said.queries.iter().zip(&asked.queries) {
            let key = |query: &Query| (query.id.clone(), query.groups.clone());
            if key(said_query) != key(asked_query) {
                bail!(
                    "{}: `{}` is not the request `{}` of {QUERIES_FILE}, or needs other items; give both the same id and `relevant`",
                    asked_path.display(),
                    asked_query.id,
                    said_query.id
                );
            }
            if shelf_of(&said, said_query).is_none() {
                bail!(
                    "{}: `{}` needs items of several kinds, or none; ask for one kind",
                    folder.join(QUERIES_FILE).display(),
                    said_query.id
                );
            }
        }
        if said.queries.len() != asked.queries.len() {
            bail!(
                "{}: {} requests, and {} in {QUERIES_FILE}",
                asked_path.display(),
                asked.queries.len(),
                said.queries.len()
            );
        }
        Ok(Self { servers, said, asked })
    }
}

/// Where the items of a kind stand; what is neither a resource nor a prompt is called like a tool.
fn shelf(kind: Kind) -> Shelf {
    match kind {
        Kind::Resource => Shelf::Resources,
        Kind::Prompt => Shelf::Prompts,
        _ => Shelf::Tools,
    }
}

/// Where everything that a request needs stands; `None` where that is on several shelves or nothing.
fn shelf_of(collection: &Collection, query: &Query) -> Option<Shelf> {
    let items = collection.catalog.items();
    let mut needed = query.groups.iter().flatten().filter_map(|item| items.get(*item as usize));
    let first = shelf(needed.next()?.kind);
    needed.all(|item| shelf(item.kind) == first).then_some(first)
}

/// A gateway before the servers of a collection, whose items it knows by the gateway's ids.
struct Desk {
    client: LocalClient,
    items: BTreeMap<String, u32>,
}

/// What a search showed: items in the order of the page, and its tokens.
struct Page {
    items: Vec<u32>,
    tokens: usize,
}

impl Desk {
    fn open(requests: &Requests, routing: RoutingConfig) -> Result<Self, String> {
        let config = GatewayConfig { routing, ..Stage::default().gateway(&requests.servers, Mode::Gateway) };
        let client = LocalClient::start(config).map_err(|error| error.to_string())?;
        let numbers: BTreeMap<_, u32> = (requests.said.catalog.items().iter().zip(0..))
            .map(|(item, number)| ((shelf(item.kind).tool(), item.server.as_deref(), item.name.as_str()), number))
            .collect();
        let view = client.gateway().catalog();
        let mut items = BTreeMap::new();
        for item in [&view.tools, &view.resources, &view.prompts]
            .into_iter()
            .flatten()
            .flat_map(|shelf| shelf.router.catalog().items())
        {
            let key = (shelf(item.kind).tool(), item.server.as_deref(), item.name.as_str());
            let number = numbers
                .get(&key)
                .ok_or_else(|| format!("the gateway serves {}, which the collection lacks", item.id))?;
            items.insert(item.id.clone(), *number);
        }
        match items.len() == numbers.len() {
            true => Ok(Self { client, items }),
            false => Err(format!("the gateway serves {} of {} items", items.len(), numbers.len())),
        }
    }

    /// The first page for a query. A line of it begins with an id, or is a note.
    fn search(&self, shelf: Shelf, query: &str) -> Result<Page, String> {
        let answer = self.client.call(shelf.tool(), &json!({ "query": query })).map_err(|error| error.message)?;
        let text = texts(&answer);
        let item = |line: &str| self.items.get(line.split(' ').next()?).copied();
        Ok(Page { items: text.lines().filter_map(item).collect(), tokens: tokens(&text) })
    }

    /// Tokens of the gateway's own tools for a shelf, as it lists them. `tool_view`, which all kinds share, is one of the tools'.
    fn surface_tokens(&self, shelf: Shelf) -> Result<usize, String> {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let prefix = shelf.tool().trim_end_matches("browse");
        let tools = self.client.tools().map_err(|error| error.message)?;
        let is_own = |text: &&str| serde_json::from_str::<Named>(text).is_ok_and(|tool| tool.name.starts_with(prefix));
        let own: Vec<&str> = tools.iter().map(|tool| tool.get()).filter(is_own).collect();
        Ok(tokens(&format!("[{}]", own.join(","))))
    }
}

/// The facts of a collection.
///
/// # Errors
/// A gateway did not start, or does not list or browse.
pub fn facts(requests: &Requests) -> Result<KindsFacts, String> {
    let (ours, control) = (Desk::open(requests, RoutingConfig::default())?, Desk::open(requests, control())?);
    let kinds = Shelf::ALL.into_iter().map(|shelf| kind(requests, shelf, &ours, &control)).collect::<Result<_, _>>()?;
    Ok(KindsFacts { servers: requests.servers.len(), kinds })
}

fn kind(requests: &Requests, of: Shelf, ours: &Desk, control: &Desk) -> Result<KindFacts, String> {
    let items = requests.said.catalog.items().iter().filter(|item| shelf(item.kind) == of).count();
    let mut pages = Vec::new();
    let said = manner(&requests.said, of, ours, control, &mut pages)?;
    let asked = manner(&requests.asked, of, ours, control, &mut pages)?;
    Ok(KindFacts {
        kind: of,
        items,
        list_tokens: requests.servers.iter().map(|server| tokens(&server.list(of))).sum(),
        surface_tokens: ours.surface_tokens(of)?,
        pages: pages.len(),
        page_tokens: pages.iter().sum(),
        largest_page: pages.iter().copied().max().unwrap_or_default(),
        said,
        asked,
    })
}

/// What both gateways find for the requests of one kind in one wording. The tokens of our pages are added to `pages`.
fn manner(
    collection: &Collection,
    of: Shelf,
    ours: &Desk,
    control: &Desk,
    pages: &mut Vec<usize>,
) -> Result<SearchFacts, String> {
    let queries: Vec<&Query> =
        collection.queries.iter().filter(|query| shelf_of(collection, query) == Some(of)).collect();
    let (mut found, mut found_by_control) = (Vec::new(), Vec::new());
    for query in &queries {
        let judgement = Judgement { groups: query.groups.clone() };
        let page = ours.search(of, &query.text)?;
        pages.push(page.tokens);
        found.extend(Found::of(&in_order(&page.items).hits, &judgement));
        found_by_control.extend(Found::of(&in_order(&control.search(of, &query.text)?.items).hits, &judgement));
    }
    let first_tools: Vec<u32> = queries.iter().filter_map(|query| query.first_tool()).collect();
    let (ranks, ranks_of_control) = (Ranks::of(&found), Ranks::of(&found_by_control));
    Ok(SearchFacts {
        versus_control: difference(&ranks, &ranks_of_control, &first_tools),
        ours: recall(ranks),
        control: recall(ranks_of_control),
        first_tools,
    })
}

/// recall@5 of a search less that of the control, over requests that need these items first.
#[must_use]
pub fn difference(ours: &Ranks, control: &Ranks, first_tools: &[u32]) -> Paired {
    let values = |ranks: &Ranks| ranks.values(Measure::RECALL_5);
    let pairs: Vec<(f64, f64)> = values(ours).into_iter().zip(values(control)).collect();
    paired_by_tool(CONTROL, &pairs, first_tools)
}

/// The recalls that follow from ranks.
#[must_use]
pub fn recall(ranks: Ranks) -> RecallFacts {
    let measures = ranks.measures();
    let of = |name: &str| measures.get(name).copied().unwrap_or(Estimate { mean: 0.0, low: 0.0, high: 0.0 });
    RecallFacts { recall_at_1: of("recall@1"), recall_at_5: of("recall@5"), ranks }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::eval::collection::seal;
    use crate::eval::workspace::Workspace;

    const CATALOG: &str = r#"{
        "tools": [
            {"name": "lend", "description": "Lend a book", "inputSchema": {"type": "object"}, "server": "desk"},
            {"name": "renew", "description": "Prolong a loan", "inputSchema": {"type": "object"}, "server": "desk"}
        ],
        "resources": [
            {"uri": "desk://rules", "name": "lend", "description": "Rules of lending", "server": "desk"},
            {"uri": "press://logos", "name": "logos", "description": "Logos for print", "server": "press"}
        ],
        "prompts": [{"name": "reminder", "description": "Write to a late reader", "server": "desk"}]
    }"#;

    const SAID: &str = r#"{"id": "1", "query": "a book is taken home", "relevant": ["desk:renew"]}
{"id": "2", "query": "rules of lending", "relevant": ["logos"]}
{"id": "3", "query": "write to the late one", "relevant": ["reminder"]}
"#;

    const ASKED: &str = r#"{"id": "1", "query": "prolong loan", "relevant": ["renew"]}
{"id": "2", "query": "logos", "relevant": ["logos"]}
{"id": "3", "query": "reminder", "relevant": ["reminder"]}
"#;

    fn read(asked: &str) -> Result<Requests> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [(CATALOG_FILE, CATALOG), (QUERIES_FILE, SAID), (ASKED_FILE, asked)] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        seal(folder.path()).unwrap();
        Requests::read(&mut Reader::default(), folder.path())
    }

    #[test]
    fn each_kind_is_searched_by_itself() {
        let facts = facts(&read(ASKED).unwrap()).unwrap();
        assert_eq!(facts.servers, 2);
        let shown = |kind: &KindFacts| {
            let first = |search: &SearchFacts| search.ours.recall_at_1.mean;
            (kind.kind, kind.items, first(&kind.said), first(&kind.asked))
        };
        let expected = [(Shelf::Tools, 2, 0.0, 1.0), (Shelf::Resources, 2, 0.0, 1.0), (Shelf::Prompts, 1, 1.0, 1.0)];
        assert_eq!(facts.kinds.iter().map(shown).collect::<Vec<_>>(), expected);
        for kind in &facts.kinds {
            assert!(kind.list_tokens > 0 && kind.surface_tokens > 0, "{kind:?}");
            assert!(
                kind.pages == 2 && kind.largest_page <= 450 && kind.page_tokens <= 2 * kind.largest_page,
                "{kind:?}"
            );
        }
    }

    #[test]
    fn both_wordings_are_of_the_same_requests() {
        for (asked, expected) in [
            (ASKED.replace(r#"["logos"]"#, r#"["reminder"]"#), "is not the request `2`"),
            (ASKED.lines().next().unwrap().to_owned(), "1 requests, and 3"),
        ] {
            let error = format!("{:#}", read(&asked).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_collection_is_in_order_and_its_control_is_that_of_the_matrix() {
        let workspace = Workspace::find(Some(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")), None).unwrap();
        assert_eq!(workspace.matrix().unwrap().engine(CONTROL).unwrap().config(), &control());
        let requests = Requests::read(&mut Reader::default(), &workspace.path("gold").join(COLLECTION)).unwrap();
        for of in Shelf::ALL {
            let own = requests.said.queries.iter().filter(|query| shelf_of(&requests.said, query) == Some(of));
            assert!(own.count() >= 40, "{of:?}");
        }
    }
}
