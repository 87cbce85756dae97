//! The figure that counts: the default engine with a semantic table that has seen nothing of the collection.
//!
//! The table in the binary was trained on pairs of some public collections, and figures there are in-sample. Here each
//! of these is ranked with a table that the same pipeline made without the collection's source
//! (`scripts/train-table --leave-out`): without its queries, without its tools, and without what other sources have in
//! common with them. The other collections are ranked with the table in the binary, which never saw them.
//!
//! Such tables are no part of the repository. Where one is not given, the collection's record stays as committed; it
//! states the hash of the table that it was measured with.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::collection::Collection;
use super::engine::{MeasuredTable, RouterEngine};
use super::measure::Measure;
use super::played::{CollectionFacts, CollectionResults};
use super::record::{Estimate, Loss, Paired};
use super::run::{Evaluation, PromptTokens, evaluate};
use super::statistics::{mean, paired, paired_macro, round6};
use crate::routing::RoutingConfig;
use crate::routing::semantic::Table;
use crate::text::sha256_hex;

/// The collections that the table in the binary learned from, each with the source that it is of.
const IN_SAMPLE: [(&str, &str); 6] = [
    ("bfcl_synth", "bfcl_synth"),
    ("metatool_multi", "metatool"),
    ("metatool_single", "metatool"),
    ("nestful", "nestful"),
    ("sealtools_dev", "sealtools"),
    ("toolalpaca", "toolalpaca"),
];

/// What the differences are taken from: the same engine without a semantic side.
pub const LEXICAL: &str = "lexical";

/// The content of `scorecard/results/left-out.json`.
pub type LeftOutResults = CollectionResults<LeftOutFacts>;

/// What was measured on one collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOutFacts {
    /// Tools in the catalog.
    pub tools: usize,
    /// Queries that a tool answers.
    pub queries: usize,
    /// The source that the table was made without; `None` for the table in the binary.
    pub without: Option<String>,
    /// SHA-256 (hex) of the table.
    pub table_sha256: String,
    /// By words alone.
    pub lexical: Side,
    /// With the table.
    pub default: Side,
    /// The difference of nDCG@10.
    pub ndcg_at_10: Paired,
    /// The difference of recall@5.
    pub recall_at_5: Paired,
    /// The differences query by query, equal ones counted: of nDCG@10, of recall@5, and how many queries have both.
    /// They are what an interval over several collections is made of.
    pub changes: Vec<(f64, f64, usize)>,
}

/// What one engine gives on one collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// nDCG@10.
    pub ndcg_at_10: Estimate,
    /// recall@5.
    pub recall_at_5: Estimate,
    /// Where the recall that is missing at 5 was lost.
    pub loss: Loss,
}

/// One measure over all collections.
#[derive(Debug, Clone, PartialEq)]
pub struct Overall {
    /// The mean over collections by words alone.
    pub lexical: f64,
    /// The same with the tables.
    pub default: f64,
    /// The mean of the differences, by bootstrap of the queries within every collection.
    pub difference: Paired,
}

impl CollectionFacts for LeftOutFacts {
    const NAME: &'static str = "left-out";
    const SCHEMA: u32 = 1;

    fn measure(collection: &Collection, engine: &RouterEngine) -> Result<Self, String> {
        let words = RouterEngine::new(LEXICAL, RoutingConfig { semantic: 0.0, ..engine.config().clone() });
        let lexical = evaluate(collection, &words, PromptTokens::Skip)?;
        let default = evaluate(collection, engine, PromptTokens::Skip)?;
        let pairs = |of: fn(&Evaluation) -> &Vec<f64>| -> Vec<(f64, f64)> {
            of(&default).iter().copied().zip(of(&lexical).iter().copied()).collect()
        };
        let (ndcg, recall) = (pairs(|one| &one.ndcg_at_10), pairs(|one| &one.recall_at_5));
        let table = engine.table();
        Ok(Self {
            tools: default.facts.tools,
            queries: default.facts.answerable,
            without: table.map(|table| table.without.clone()),
            table_sha256: table.map_or_else(Table::builtin_sha256, |table| table.sha256.clone()),
            lexical: Side::of(&lexical)?,
            default: Side::of(&default)?,
            ndcg_at_10: paired(LEXICAL, &ndcg),
            recall_at_5: paired(LEXICAL, &recall),
            changes: changes(&ndcg, &recall),
        })
    }
}

impl Side {
    fn of(evaluation: &Evaluation) -> Result<Self, String> {
        let facts = &evaluation.facts;
        let estimate = |measure: Measure| {
            let found = facts.measures.get(&measure.to_string()).copied();
            found.ok_or_else(|| "no tool answers any query".to_owned())
        };
        Ok(Self {
            ndcg_at_10: estimate(Measure::NDCG_10)?,
            recall_at_5: estimate(Measure::RECALL_5)?,
            loss: facts.loss,
        })
    }
}

/// The differences of two measures by query, equal ones counted, ascending.
fn changes(first: &[(f64, f64)], second: &[(f64, f64)]) -> Vec<(f64, f64, usize)> {
    // In millionths, as results files have them.
    let whole = |(engine, control): (f64, f64)| ((engine - control) * 1e6).round() as i64;
    let mut counts: BTreeMap<(i64, i64), usize> = BTreeMap::new();
    for (first, second) in first.iter().zip(second) {
        *counts.entry((whole(*first), whole(*second))).or_default() += 1;
    }
    let share = |millionths: i64| round6(millionths as f64 / 1e6);
    counts.into_iter().map(|((first, second), count)| (share(first), share(second), count)).collect()
}

/// nDCG@10 and recall@5 over all collections that were measured; `None` without one.
#[must_use]
pub fn overall(results: &LeftOutResults) -> Option<[Overall; 2]> {
    results.measured().next()?;
    let over = |side: fn(&Side) -> f64, change: fn(&(f64, f64, usize)) -> f64| {
        let pairs = |facts: &LeftOutFacts| -> Vec<(f64, f64)> {
            facts.changes.iter().flat_map(|one| std::iter::repeat_n((change(one), 0.0), one.2)).collect()
        };
        let sets: Vec<Vec<(f64, f64)>> = results.measured().map(|(_, facts)| pairs(facts)).collect();
        Overall {
            lexical: mean(results.measured().map(|(_, facts)| side(&facts.lexical))),
            default: mean(results.measured().map(|(_, facts)| side(&facts.default))),
            difference: paired_macro(LEXICAL, &sets),
        }
    };
    let ndcg = over(|side| side.ndcg_at_10.mean, |change| change.0);
    Some([ndcg, over(|side| side.recall_at_5.mean, |change| change.1)])
}

/// The default engine for `collection` with a table that has seen nothing of it: `default` itself where that is so,
/// else with the table from `tables`, a folder with one folder for each source, as `scripts/train-table` writes them.
/// `None` where that table is not there.
///
/// # Errors
/// A file that cannot be read, or a table that is not what its manifest says or was not made without the source.
pub fn engine_for(default: &RouterEngine, collection: &str, tables: Option<&Path>) -> Result<Option<RouterEngine>> {
    let Some((_, source)) = IN_SAMPLE.iter().find(|(name, _)| *name == collection) else {
        return Ok(Some(default.clone()));
    };
    match tables.map(|tables| tables.join(source)) {
        Some(folder) if folder.is_dir() => {
            let table = read(&folder, source).with_context(|| folder.display().to_string())?;
            Ok(Some(default.clone().with_table(table)))
        }
        _ => Ok(None),
    }
}

fn read(folder: &Path, source: &str) -> Result<MeasuredTable> {
    #[derive(Deserialize)]
    struct Manifest {
        table: Named,
        left_out: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Named {
        sha256: String,
    }
    let bytes = fs::read(folder.join("table.bin")).context("table.bin")?;
    let manifest = fs::read_to_string(folder.join("table.json")).context("table.json")?;
    let manifest: Manifest = serde_json::from_str(&manifest).context("table.json")?;
    let sha256 = sha256_hex(&bytes);
    ensure!(manifest.table.sha256 == sha256, "table.json is of another table; make both again");
    ensure!(manifest.left_out.iter().any(|left| left == source), "the table was made with {source}; leave it out");
    // A table lives as long as the process, as the one in the binary does.
    let table = Box::leak(Box::new(Table::parse(Vec::leak(bytes))?));
    Ok(MeasuredTable { table, without: source.to_owned(), sha256 })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::collection::Source;
    use super::super::played::CollectionRecord;
    use super::super::record::{Origin, Outcome, Verdict};
    use super::*;

    const BUILTIN: &[u8] = include_bytes!("../routing/semantic/table.bin");
    const MANIFEST: &str = include_str!("../routing/semantic/table.json");

    fn default() -> RouterEngine {
        RouterEngine::new("default", RoutingConfig::default())
    }

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
    fn every_source_of_the_table_that_is_a_collection_is_known() {
        let manifest: Value = serde_json::from_str(MANIFEST).unwrap();
        let trained = manifest["pairs_by_source"].as_object().unwrap();
        for (collection, source) in IN_SAMPLE {
            assert!(trained.contains_key(source) && collection.starts_with(source), "{collection}");
        }
        for collection in ["household", "workbench", "toolbench", "contextweaver_83"] {
            assert!(!trained.keys().any(|source| collection.starts_with(source.as_str())), "{collection}");
        }
    }

    #[test]
    fn only_a_table_that_was_made_without_the_source_is_used() {
        assert!(engine_for(&default(), "workbench", None).unwrap().unwrap().table().is_none());
        assert!(engine_for(&default(), "nestful", None).unwrap().is_none());
        let tables = tempfile::tempdir().unwrap();
        assert!(engine_for(&default(), "nestful", Some(tables.path())).unwrap().is_none());
        let folder = tables.path().join("nestful");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("table.bin"), BUILTIN).unwrap();
        let seen = |manifest: Value| {
            fs::write(folder.join("table.json"), manifest.to_string()).unwrap();
            engine_for(&default(), "nestful", Some(tables.path())).map_err(|error| format!("{error:#}"))
        };
        let mut manifest: Value = serde_json::from_str(MANIFEST).unwrap();
        assert!(seen(manifest.clone()).unwrap_err().contains("leave it out"));
        manifest["left_out"] = json!(["nestful"]);
        let engine = seen(manifest.clone()).unwrap().unwrap();
        assert_eq!(engine.table().unwrap().sha256, Table::builtin_sha256());
        manifest["table"]["sha256"] = json!("0");
        assert!(seen(manifest).unwrap_err().contains("another table"));
    }

    #[test]
    fn the_table_is_what_makes_the_difference() {
        let measured = |engine: &RouterEngine| {
            let record = CollectionRecord::<LeftOutFacts>::of(&collection(), engine);
            let Outcome::Measured(facts) = &record.outcome else { panic!("{record:?}") };
            (facts.clone(), LeftOutResults::new(String::new(), vec![record]))
        };
        let (facts, results) = measured(&default());
        assert_eq!((facts.tools, facts.queries, &facts.without), (3, 2, &None));
        assert_eq!((facts.lexical.ndcg_at_10.mean, facts.default.ndcg_at_10.mean), (0.5, 1.0));
        assert_eq!((facts.lexical.loss.vocabulary, facts.default.loss.vocabulary), (0.5, 0.0));
        assert_eq!(facts.changes, [(0.0, 0.0, 1), (1.0, 1.0, 1)]);
        let [ndcg, recall] = overall(&results).unwrap();
        assert_eq!((ndcg.lexical, ndcg.default, ndcg.difference.difference.mean), (0.5, 1.0, 0.5));
        assert_eq!(recall.difference.verdict, Verdict::Inconclusive);
        assert_eq!(overall(&LeftOutResults::new(String::new(), Vec::new())), None);
        // A table that knows nothing adds nothing.
        let table = Box::leak(Box::new(Table::default()));
        let nothing = MeasuredTable { table, without: "nestful".to_owned(), sha256: "0".to_owned() };
        let (facts, _) = measured(&default().with_table(nothing));
        assert_eq!((facts.without.as_deref(), facts.ndcg_at_10.difference.mean), (Some("nestful"), 0.0));
    }
}
