//! What meaning adds: the default engine against its words alone, on every collection.
//!
//! The default adds the similarity of a semantic table to its lexical score. The table in the program was trained on none
//! of the collections' sources, which a test holds against its manifest, so that every figure here is of data that it has
//! not seen. Everything else is equal: the same engine with the weight of the table at zero.

mod facts;
mod page;

use super::collections::CollectionChapter;
use super::routing::Ranked;
use crate::eval::collection::Collection;
use crate::eval::engine::RouterEngine;
use crate::eval::error::EvalError;
use crate::eval::identity::{Broken, same};
use crate::eval::matrix::DEFAULT;
use crate::eval::record::{Estimate, Paired};
use crate::eval::tables::Tables;
use crate::report::document::Document;
use crate::report::table::Table;
use crate::results::Results;

pub use facts::{LEXICAL, MeaningFacts, Overall, Side, overall};

/// The chapter.
#[derive(Debug)]
pub struct Meaning;

impl CollectionChapter for Meaning {
    type Facts = MeaningFacts;

    fn name(&self) -> &'static str {
        "meaning"
    }

    fn measure(&self, collection: &Collection, engine: &RouterEngine) -> Result<MeaningFacts, EvalError> {
        MeaningFacts::measure(collection, engine)
    }

    fn check(&self, case: &str, facts: &MeaningFacts, ranked: &Ranked, broken: &mut Broken) {
        let changes = |of: fn(&(f64, f64, usize)) -> f64| {
            let sum: f64 = facts.changes.iter().map(|change| of(change) * change.2 as f64).sum();
            sum / facts.queries.max(1) as f64
        };
        let queries: usize = facts.changes.iter().map(|change| change.2).sum();
        broken.unless(queries == facts.queries, "the changes are of a different number of queries");
        let ascending = facts.changes.windows(2).all(|pair| (pair[0].0, pair[0].1) < (pair[1].0, pair[1].1));
        broken.unless(ascending, "the changes are out of order");
        let of_tools =
            facts.by_tool.iter().fold((0.0, 0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2));
        let of_all = (changes(|change| change.0), changes(|change| change.1));
        let mean = |sum: f64| sum / facts.queries.max(1) as f64;
        let agree = of_tools.2 == facts.queries && same(mean(of_tools.0), of_all.0) && same(mean(of_tools.1), of_all.1);
        broken.unless(agree, "the changes by tool are not those by query");
        type OfSide = fn(&Side) -> &Estimate;
        let measures: [(&str, OfSide, &Paired, f64); 2] = [
            ("nDCG@10", |side| &side.ndcg_at_10, &facts.ndcg_at_10, changes(|change| change.0)),
            ("recall@5", |side| &side.recall_at_5, &facts.recall_at_5, changes(|change| change.1)),
        ];
        for (measure, of, paired, changed) in measures {
            let (default, lexical) = (of(&facts.default), of(&facts.lexical));
            broken.estimate(&format!("{measure} by words"), lexical);
            broken.estimate(&format!("{measure} with meaning"), default);
            broken.paired(measure, paired);
            broken.difference(measure, default.mean, lexical.mean, paired.difference.mean);
            broken.unless(same(changed, paired.difference.mean), format!("{measure}: the changes give {changed}"));
            for (engine, side) in [(DEFAULT, default), (LEXICAL, lexical)] {
                let known = ranked.facts(engine, case).and_then(|facts| facts.measures.get(measure));
                broken.unless(
                    known.is_none_or(|known| known == side),
                    format!("{measure}: `{engine}` has a different figure"),
                );
            }
        }
        for (engine, side) in [(DEFAULT, &facts.default), (LEXICAL, &facts.lexical)] {
            broken.loss(&format!("loss of `{engine}`"), side.recall_at_5.mean, &side.loss);
            let Some(known) = ranked.facts(engine, case) else { continue };
            let is_same = side.loss == known.loss && (facts.tools, facts.queries) == (known.tools, known.answerable);
            broken.unless(is_same, format!("its tools, queries and losses are not those that `{engine}` has there"));
        }
    }

    fn render(&self, own: &Results<MeaningFacts>, tables: &Tables, document: &mut Document) {
        page::chapter(document, own, tables);
    }

    fn tables(&self, own: &Results<MeaningFacts>) -> Vec<Table> {
        page::tables(own).into()
    }

    fn front(&self, own: &Results<MeaningFacts>) -> Vec<String> {
        page::sentence(own).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::eval::collection::Source;
    use crate::eval::matrix::Matrix;
    use crate::eval::record::{Origin, Outcome, Verdict};
    use crate::results::recorded;
    use contextweaver_routing::RoutingConfig;

    const MANIFEST: &str = include_str!("../../../../routing/src/semantic/table.json");

    fn collection() -> Collection {
        let tools = br#"[
            {"name": "get_forecast", "description": "Returns the weather forecast for a city"},
            {"name": "send_message", "description": "Sends an electronic letter to a recipient"},
            {"name": "list_files", "description": "Lists the files of a folder"}
        ]"#;
        let queries = br#"{"id": "1", "query": "will it rain tomorrow", "relevant": ["get_forecast"]}
            {"id": "2", "query": "weather forecast", "relevant": ["get_forecast"]}
            {"id": "3", "query": "water the plants", "relevant": []}"#;
        let source = |bytes| Source { path: Path::new("test"), bytes };
        Collection::from_bytes("nestful", Origin::Public, source(tools), source(queries)).unwrap()
    }

    #[test]
    fn the_table_has_seen_the_source_of_no_collection() {
        let manifest: Value = serde_json::from_str(MANIFEST).unwrap();
        let trained: Vec<&String> = manifest["pairs_by_source"].as_object().unwrap().keys().collect();
        assert!(trained.len() > 3, "{trained:?}");
        let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let matrix = Matrix::load(&scenarios).unwrap();
        let mut collections: Vec<&str> = matrix.cases.iter().map(|case| case.collection.as_str()).collect();
        collections.dedup();
        assert!(collections.len() >= 10, "{collections:?}");
        for collection in collections {
            // `sealtools_dev` is of the source `sealtools`, `metatool_multi` of `metatool`.
            let seen = trained.iter().find(|source| collection.starts_with(source.as_str()));
            assert_eq!(seen, None, "{collection}");
        }
    }

    #[test]
    fn the_table_is_what_makes_the_difference() {
        let default = RouterEngine::new(DEFAULT, RoutingConfig::default());
        let facts = Meaning.measure(&collection(), &default).unwrap();
        assert_eq!((facts.tools, facts.queries), (3, 2));
        assert_eq!((facts.lexical.ndcg_at_10.mean, facts.default.ndcg_at_10.mean), (0.5, 1.0));
        assert_eq!((facts.lexical.loss.vocabulary, facts.default.loss.vocabulary), (0.5, 0.0));
        assert_eq!(facts.changes, [(0.0, 0.0, 1), (1.0, 1.0, 1)]);
        let mut broken = Broken::default();
        Meaning.check("nestful", &facts, &Ranked::default(), &mut broken);
        assert_eq!(broken.reasons(), Vec::<String>::new());
        let [ndcg, recall] = overall(&recorded("meaning", vec![("nestful", Outcome::Measured(facts))])).unwrap();
        assert_eq!((ndcg.lexical, ndcg.default, ndcg.difference.difference.mean), (0.5, 1.0, 0.5));
        assert_eq!(recall.difference.verdict, Verdict::Inconclusive);
        assert_eq!(overall(&recorded("meaning", Vec::new())), None);
        // Without the table nothing is added.
        let words = RouterEngine::new("words", RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        assert_eq!(Meaning.measure(&collection(), &words).unwrap().ndcg_at_10.difference.mean, 0.0);
    }

    #[test]
    fn a_side_that_is_raised_no_longer_gives_the_difference() {
        let default = RouterEngine::new(DEFAULT, RoutingConfig::default());
        let mut facts = Meaning.measure(&collection(), &default).unwrap();
        for estimate in [&mut facts.default.ndcg_at_10, &mut facts.default.recall_at_5] {
            (estimate.mean, estimate.low, estimate.high) = (0.9, 0.8, 1.0);
        }
        let mut broken = Broken::default();
        Meaning.check("nestful", &facts, &Ranked::default(), &mut broken);
        let reasons = broken.reasons().join("\n");
        assert!(reasons.contains("nDCG@10: 0.9 − 0.5 is not the difference 0.5"), "{reasons}");
        assert!(reasons.contains("what was found and lost sums to 0.9"), "{reasons}");
    }
}
