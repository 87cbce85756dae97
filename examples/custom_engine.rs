//! An engine of one's own, measured beside ours on the same queries: `cargo run --example custom_engine`.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use contextweaver::eval::collection::Collection;
use contextweaver::eval::engine::{Engine, Prepared, Ranking, RouterEngine, Size};
use contextweaver::eval::error::EvalError;
use contextweaver::eval::record::Origin;
use contextweaver::eval::run::{PromptTokens, against, evaluate};
use contextweaver::routing::Hit;
use contextweaver::{Catalog, RoutingConfig};

const COLLECTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/gold/household");

/// Ranks tools by how many words of the query they carry.
struct SharedWords;

struct Ready(Vec<BTreeSet<String>>);

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2).map(str::to_lowercase).collect()
}

impl Engine for SharedWords {
    fn name(&self) -> &str {
        "shared words"
    }
    fn configuration(&self) -> String {
        String::new()
    }
    fn prepare(&self, catalog: &Arc<Catalog>) -> Result<Box<dyn Prepared>, EvalError> {
        let tools = catalog.items().iter().map(|item| words(&format!("{} {}", item.name, item.description)));
        Ok(Box::new(Ready(tools.collect())))
    }
}

impl Prepared for Ready {
    fn rank(&self, query: &str, depth: usize) -> Ranking {
        let asked = words(query);
        let scored =
            (0..).zip(&self.0).map(|(item, tool)| Hit { item, score: asked.intersection(tool).count() as u64 });
        let mut hits: Vec<Hit> = scored.filter(|hit| hit.score > 0).collect();
        hits.sort_by_key(|hit| (std::cmp::Reverse(hit.score), hit.item));
        // The harness wants every tool that ties with the last one.
        let last = hits.get(depth.saturating_sub(1)).map_or(0, |hit| hit.score);
        hits.retain(|hit| hit.score >= last);
        Ranking { confidence: 1.0, postings: self.0.len(), hits }
    }
    fn top(&self, query: &str, k: usize) -> Vec<u32> {
        self.rank(query, k).hits.iter().take(k).map(|hit| hit.item).collect()
    }
    fn exhaustive(&self, _: &str) -> Option<Vec<u64>> {
        None
    }
    fn size(&self) -> Size {
        Size::default()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let collection = Collection::load(Path::new(COLLECTION), Origin::Embedded)?;
    let ours = evaluate(&collection, &RouterEngine::new("default", RoutingConfig::default()), PromptTokens::Skip)?;
    let yours = evaluate(&collection, &SharedWords, PromptTokens::Skip)?;
    println!("{}: {} tools, {} queries", collection.name, ours.facts.tools, collection.queries.len());
    for (name, evaluation) in [("default", &ours), (SharedWords.name(), &yours)] {
        let recall = evaluation.facts.measures["recall@5"];
        println!("{name:13} recall@5 {:.3} [{:.3}, {:.3}]", recall.mean, recall.low, recall.high);
    }
    let paired = against("default", &ours.recall_at_5, &yours.recall_at_5);
    println!("yours - ours  {:+.3}: {:?}", paired.difference.mean, paired.verdict);
    Ok(())
}
