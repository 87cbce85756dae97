//! The collection of everyday requests in its three manners, and how a request of several lines is answered.
//!
//! The same requests are taken as a person says them, as a model asks a search for them, and as the model asks among the
//! tools of many more servers. Where a model sent two searches, they are two lines of one request; whoever answers gets
//! them one by one, and its answers are taken in turn.

mod crowd;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use super::collection::{ASKED_FILE, CATALOG_FILE, Collection, QUERIES_FILE, Query};
use super::engine::{Engine, Prepared, Ranking, RouterEngine, Size};
use super::error::EvalError;
use super::record::Origin;
use super::workspace::Workspace;
use contextweaver_core::catalog::Catalog;
use contextweaver_routing::Hit;

/// The folder in `gold/`.
pub const COLLECTION: &str = "everyday";

/// Catalogs of other servers, beside the checkout.
const CATALOGS: &str = "../shared/data/catalogs";

/// How requests are put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// In a person's own words.
    Said,
    /// As a model asks a search for tools.
    Asked,
    /// The same, among the tools of many more servers.
    Crowded,
}

impl Manner {
    /// The manners over the servers of the collection alone.
    pub const ALONE: [Self; 2] = [Self::Said, Self::Asked];

    /// All of them.
    pub const ALL: [Self; 3] = [Self::Said, Self::Asked, Self::Crowded];

    /// The manners of a workspace: all, or none in a checkout without the collection.
    pub fn of(workspace: &Workspace) -> impl Iterator<Item = Self> {
        let is_here = workspace.path("gold").join(COLLECTION).is_dir();
        Self::ALL.into_iter().filter(move |_| is_here)
    }

    /// The name in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Said => "said",
            Self::Asked => "asked",
            Self::Crowded => "crowded",
        }
    }

    /// The words for it in tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Said => "as people speak",
            Self::Asked => "as models ask",
            Self::Crowded => "as models ask, in a crowd",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Self::Said => QUERIES_FILE,
            Self::Asked | Self::Crowded => ASKED_FILE,
        }
    }

    /// Whose the tools are: those of a crowd are published by others.
    #[must_use]
    pub fn origin(self) -> Origin {
        if self == Self::Crowded { Origin::Public } else { Origin::Embedded }
    }

    /// The collection; `None` where the catalogs of other servers are not here.
    ///
    /// # Errors
    /// A file that cannot be read or says something wrong.
    pub fn collection(self, workspace: &Workspace) -> Result<Option<Collection>> {
        let folder = workspace.path("gold").join(COLLECTION);
        if self == Self::Crowded {
            let catalogs = workspace.path(CATALOGS);
            return catalogs.is_dir().then(|| crowd::collection(&folder, &catalogs)).transpose();
        }
        let load =
            |queries: &Path| Collection::from_files(COLLECTION, Origin::Embedded, &folder.join(CATALOG_FILE), queries);
        Ok(Some(load(&folder.join(self.file()))?))
    }
}

/// The searches of a request: its lines in the everyday collection. In any other a query is one search, of however many lines.
#[must_use]
pub fn searches_of<'q>(collection: &Collection, query: &'q Query) -> Vec<&'q str> {
    match collection.name == COLLECTION {
        true => query.text.lines().collect(),
        false => vec![&query.text],
    }
}

/// An engine that takes every line of a query for a query and gives their answers in turn.
#[derive(Debug)]
pub struct Interleaved<'e>(pub &'e RouterEngine);

impl Engine for Interleaved<'_> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn configuration(&self) -> String {
        self.0.configuration()
    }

    fn prepare(&self, catalog: &Arc<Catalog>) -> Result<Box<dyn Prepared>, EvalError> {
        Ok(Box::new(PreparedInterleaved(self.0.prepare(catalog)?)))
    }
}

struct PreparedInterleaved(Box<dyn Prepared>);

impl Prepared for PreparedInterleaved {
    fn rank(&self, query: &str, depth: usize) -> Ranking {
        in_turn(query.lines().map(|line| self.0.rank(line, depth)).collect())
    }

    fn top(&self, query: &str, k: usize) -> Vec<u32> {
        self.rank(query, k).hits.iter().take(k).map(|hit| hit.item).collect()
    }

    fn exhaustive(&self, query: &str) -> Option<Vec<u64>> {
        (query.lines().count() < 2).then(|| self.0.exhaustive(query)).flatten()
    }

    fn size(&self) -> Size {
        self.0.size()
    }
}

/// The collection with a query for every line of its queries, for an engine that knows nothing of several lines.
#[must_use]
pub fn line_by_line(collection: &Collection) -> Collection {
    let lines = |query: &Query| -> Vec<Query> {
        let line = |(number, text): (usize, &str)| Query {
            id: format!("{}.{number}", query.id),
            text: text.to_owned(),
            ..query.clone()
        };
        (1..).zip(query.text.lines()).map(line).collect()
    };
    let mut apart = collection.clone();
    apart.queries = collection.queries.iter().flat_map(lines).collect();
    apart
}

/// The rankings of the queries of `collection`, from those of [`line_by_line`] in their order.
#[must_use]
pub fn together(collection: &Collection, rankings: Vec<Ranking>) -> Vec<Ranking> {
    let mut rankings = rankings.into_iter();
    let of = |query: &Query| in_turn(rankings.by_ref().take(query.text.lines().count()).collect());
    collection.queries.iter().map(of).collect()
}

/// The tools of several rankings in turn, each once: the first of all, the second of all. A single ranking stays as it is.
#[must_use]
pub fn in_turn(mut rankings: Vec<Ranking>) -> Ranking {
    if rankings.len() == 1 {
        return rankings.remove(0);
    }
    let longest = rankings.iter().map(|ranking| ranking.hits.len()).max().unwrap_or_default();
    let mut seen = BTreeSet::new();
    let places = (0..longest).flat_map(|place| rankings.iter().filter_map(move |ranking| ranking.hits.get(place)));
    let items: Vec<u32> = places.map(|hit| hit.item).filter(|item| seen.insert(*item)).collect();
    Ranking {
        confidence: rankings.iter().map(|ranking| ranking.confidence).fold(0.0, f64::max),
        postings: rankings.iter().map(|ranking| ranking.postings).sum(),
        ..in_order(&items)
    }
}

/// A ranking in this order without ties.
#[must_use]
pub fn in_order(items: &[u32]) -> Ranking {
    let hits = items.iter().zip((1..=items.len() as u64).rev()).map(|(&item, score)| Hit { item, score });
    Ranking { hits: hits.collect(), confidence: 0.0, postings: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::collection::Source;
    use crate::eval::run::{PromptTokens, evaluate, evaluate_imported};
    use contextweaver_routing::RoutingConfig;

    fn workspace() -> Workspace {
        Workspace::find(Some(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")), None).unwrap()
    }

    fn two_lines() -> Collection {
        let tools = br#"[{"name": "send_mail", "description": "Send a letter"}, {"name": "list_files", "description": "List a folder"},
            {"name": "get_forecast", "description": "The weather"}]"#;
        let lines = br#"{"id": "1", "query": "letter\nfolder", "relevant": ["send_mail", "list_files"]}
            {"id": "2", "query": "weather", "relevant": ["get_forecast"]}"#;
        let source = |bytes| Source { path: Path::new("test"), bytes };
        Collection::from_bytes("t", Origin::Embedded, source(tools), source(lines)).unwrap()
    }

    #[test]
    fn lines_are_searches_in_the_everyday_collection_alone() {
        let mut collection = two_lines();
        let searches = |collection: &Collection| searches_of(collection, &collection.queries[0]).join("|");
        assert_eq!(searches(&collection), "letter\nfolder");
        collection.name = COLLECTION.to_owned();
        assert_eq!(searches(&collection), "letter|folder");
    }

    #[test]
    fn answers_of_several_queries_are_taken_in_turn() {
        let items = |ranking: Ranking| ranking.hits.iter().map(|hit| hit.item).collect::<Vec<_>>();
        assert_eq!(items(in_turn(vec![in_order(&[3, 1, 2]), in_order(&[1, 5]), in_order(&[])])), [3, 1, 5, 2]);
        let tied = Ranking { hits: vec![Hit { item: 1, score: 2 }, Hit { item: 4, score: 2 }], ..in_order(&[]) };
        assert_eq!(in_turn(vec![tied.clone()]), tied);
        assert_eq!(items(in_turn(Vec::new())), [0_u32; 0]);
    }

    #[test]
    fn two_queries_find_what_one_of_them_cannot() {
        let collection = two_lines();
        let words = RouterEngine::new("words", RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        let evaluation = evaluate(&collection, &Interleaved(&words), PromptTokens::Skip).unwrap();
        assert_eq!(evaluation.facts.measures["recall@3"].mean, 1.0);
        assert_eq!(evaluation.rankings[0].hits.len(), 2);
        // The same by an engine that was asked line by line.
        let apart = line_by_line(&collection);
        assert_eq!(apart.queries.iter().map(|query| query.id.as_str()).collect::<Vec<_>>(), ["1.1", "1.2", "2.1"]);
        let asked = evaluate(&apart, &words, PromptTokens::Skip).unwrap().rankings;
        let imported = evaluate_imported(&collection, together(&collection, asked), PromptTokens::Skip).unwrap();
        assert_eq!(imported.facts.measures, evaluation.facts.measures);
        assert_eq!(imported.facts.ranks, evaluation.facts.ranks);
    }

    #[test]
    fn what_is_said_and_what_is_asked_are_the_same_requests() {
        let workspace = workspace();
        let [said, asked] = Manner::ALONE.map(|manner| manner.collection(&workspace).unwrap().unwrap());
        assert!(said.queries.len() >= 400, "{}", said.queries.len());
        let labels = |collection: &Collection| -> Vec<_> {
            collection.queries.iter().map(|query| (query.id.clone(), query.groups.clone())).collect()
        };
        assert_eq!(labels(&said), labels(&asked));
    }

    #[test]
    fn a_crowd_has_the_same_requests_and_more_that_is_right() {
        let workspace = workspace();
        let Some(crowd) = Manner::Crowded.collection(&workspace).unwrap() else {
            println!("skipped: no catalogs of other servers beside the checkout");
            return;
        };
        let asked = Manner::Asked.collection(&workspace).unwrap().unwrap();
        let labels = |collection: &Collection| -> usize {
            collection.queries.iter().flat_map(|query| &query.groups).flatten().count()
        };
        assert_eq!(crowd.queries.len(), asked.queries.len());
        assert!(
            crowd.catalog.len() > 1500 && labels(&crowd) > labels(&asked) + 100,
            "{} {}",
            crowd.catalog.len(),
            labels(&crowd)
        );
    }
}
