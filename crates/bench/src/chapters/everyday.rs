//! Requests as people say them, and the searches that a model sends for them, over tools of real servers.
//!
//! Other collections ask in words close to those of their tools. Here the same requests are taken twice: as a person
//! speaks, and as a model asks a search that knew the request and not the tools ([`crate::eval::everyday`]). The servers are
//! kept out of everything that is trained.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::chapter::{Absent, Answer, Chapter, Fresh, Plan, Planned, Question, Recordings, Step, Wrong, measurable};
use crate::eval::abstention::told_apart;
use crate::eval::engine::{Engine, RouterEngine};
use crate::eval::everyday::{COLLECTION, Interleaved, Manner, in_order, in_turn};
use crate::eval::identity::{Broken, of_facts};
use crate::eval::matrix::{CONTROL, DEFAULT, Matrix};
use crate::eval::record::{Facts, Outcome};
use crate::eval::run::{PromptTokens, evaluate, follows_from_ranks};
use crate::eval::tables::Tables;
use crate::eval::version;
use crate::eval::workspace::{Bench, Scope};
use crate::report::document::Document;
use crate::report::number::{MISSING, conclusion, count, difference, estimate, share};
use crate::report::readme::FOLDER;
use crate::report::table::{self, Table};
use crate::results::Results;

/// The engines, in the order of the tables.
const ENGINES: [&str; 4] = [DEFAULT, "best", "lexical", CONTROL];

/// The facts are those of an engine on any collection.
type EverydayFacts = Box<Facts>;

/// The name of the chapter and of its results file.
pub(crate) const NAME: &str = COLLECTION;

/// The chapter.
#[derive(Debug)]
pub struct Everyday;

impl Chapter for Everyday {
    type Facts = EverydayFacts;

    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self, bench: &Bench) -> Result<Vec<Plan>> {
        let engines = engines(&bench.matrix);
        let mut cases = Vec::new();
        for manner in Manner::of(&bench.workspace) {
            let collection = manner.collection(&bench.workspace)?;
            let too_large = |engine: &RouterEngine| engine.has_encoder() && bench.scope == Scope::Usual;
            cases.extend(engines.iter().map(|engine| Planned {
                case: case(manner, engine.name()),
                origin: manner.origin(),
                absent: match collection {
                    None => Some(Absent::Inputs),
                    Some(_) => too_large(engine).then_some(Absent::TooLarge),
                },
                inputs_sha256: collection.as_ref().map(|collection| collection.inputs_sha256.clone()),
            }));
        }
        let versions: Vec<&str> = engines.iter().map(|engine| version::of_engine(engine)).collect();
        let in_turn = in_turn(vec![in_order(&[3, 1, 2]), in_order(&[1, 5]), in_order(&[4])]);
        let items: Vec<u32> = in_turn.hits.iter().map(|hit| hit.item).collect();
        Ok(vec![Plan {
            name: Chapter::name(self).to_owned(),
            configuration: engines
                .iter()
                .map(|engine| format!("# {}\n{}\n", engine.name(), engine.configuration()))
                .collect(),
            version: version::of(&versions.join(" "), &items),
            cases,
        }])
    }

    fn cost_ms(&self, _: &Bench, _: &Plan, planned: &Planned) -> u64 {
        if planned.case.ends_with("/best") { 10_000 } else { 200 }
    }

    fn measure(&self, bench: &Bench, plans: &[Plan], step: Step<'_>) -> Result<Vec<Fresh<EverydayFacts>>> {
        let wanted: BTreeSet<&str> = measurable(plans).collect();
        let engines = engines(&bench.matrix);
        let mut measured = Vec::new();
        for manner in Manner::ALL {
            let own: Vec<&&RouterEngine> =
                engines.iter().filter(|engine| wanted.contains(case(manner, engine.name()).as_str())).collect();
            if own.is_empty() {
                continue;
            }
            let Some(collection) = manner.collection(&bench.workspace)? else { continue };
            let control = bench.matrix.engine(CONTROL);
            let control = control.map(|control| evaluate(&collection, &Interleaved(control), PromptTokens::Skip));
            let control = control.transpose()?;
            for engine in own {
                let case = case(manner, engine.name());
                step(&case);
                let tools = collection.first_tools();
                let outcome = match evaluate(&collection, &Interleaved(engine), PromptTokens::Skip) {
                    Ok(own) if engine.name() == CONTROL => Outcome::Measured(Box::new(own.of_control(&tools))),
                    Ok(own) => {
                        let control = control.as_ref().map(|control| control.recall_at_5.as_slice());
                        Outcome::Measured(Box::new(own.against_control(control, &tools)))
                    }
                    Err(error) => Outcome::Failed(error.to_string()),
                };
                let (results, inputs_sha256) = (Chapter::name(self).to_owned(), collection.inputs_sha256.clone());
                measured.push(Fresh { results, case, inputs_sha256, outcome });
            }
        }
        Ok(measured)
    }

    fn wrong(&self, own: &[Results<EverydayFacts>], _: &Recordings) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        for (results, (record, facts)) in own.iter().flat_map(|one| one.measured().map(move |row| (one, row))) {
            let mut broken = Broken::default();
            let control = record.case.split_once('/').map(|(manner, _)| format!("{manner}/{CONTROL}"));
            let control = results.measured().find(|(other, _)| Some(&other.case) == control.as_ref());
            if let Some((_, control)) = control {
                let size = |facts: &Facts| (facts.tools, facts.answerable, facts.unanswerable);
                broken.unless(size(facts) == size(control), "its tools and requests are not those of the control");
                broken.unless(
                    follows_from_ranks(facts, control),
                    "recall@5: the ranks give another difference from the control",
                );
            }
            let reasons = of_facts(facts).into_iter().chain(broken.reasons());
            wrong.extend(Wrong::each(&results.name, &record.case, reasons));
        }
        wrong
    }

    fn render(&self, own: &[Results<EverydayFacts>], _: &Tables, document: &mut Document) {
        let Some(results) = own.iter().find(|results| !results.records.is_empty()) else { return };
        document.heading("Everyday requests");
        document.block(&reading(results));
        document.table(
            "Measures with their 95 % intervals, and recall@5 less that of flat BM25 on the same requests.",
            &measures(results),
        );
        document
            .table("recall@5 by the kind of request, as people speak; their number in brackets.", &by_kind(results));
        document.table(
            "How well confidence tells a request that no tool serves from one that a tool does: AUROC with its 95 % interval (.500 is \
             chance), and ECE, the mean distance of confidence from the share of right answers. In a crowd, tools of other \
             servers may serve some of the requests that count as served by none.",
            &telling_none(results),
        );
    }

    fn terminal(&self, own: &[Results<EverydayFacts>]) -> String {
        own.iter().map(|results| table::plain(&[measures(results)])).collect()
    }

    fn front(&self, own: &[Results<EverydayFacts>]) -> Vec<String> {
        let sentence = |results: &Results<EverydayFacts>| {
            let recall =
                |manner: Manner, engine: &str| facts(results, manner, engine).map(|facts| shown(facts, "recall@5"));
            let both = |manner: Manner| {
                Some(format!("{} ({}, flat BM25)", recall(manner, DEFAULT)?, recall(manner, CONTROL)?))
            };
            let [said, asked] = Manner::ALONE.map(both);
            Some(format!(
                "[Everyday requests]({FOLDER}everyday.md) to real servers that nothing was trained on: recall@5 {} as models ask \
                 for them, {} in people's own words.",
                asked?, said?
            ))
        };
        own.iter().filter_map(sentence).collect()
    }

    fn answers(&self, own: &[Results<EverydayFacts>], _: &Tables) -> Vec<Answer> {
        let Some(results) = own.iter().find(|results| results.measured().next().is_some()) else { return Vec::new() };
        let mut answers = vec![Answer::new(
            Question::Good,
            format!(
                "[Everyday requests](everyday.md), as people said them and as models asked for the same; *none*: how well confidence tells \
                 those that no tool serves, AUROC (.500 is chance):\n\n{}",
                in_short(results).markdown().trim_end()
            ),
        )];
        let recall = |engine: &str| facts(results, Manner::Said, engine).map(|facts| shown(facts, "recall@5"));
        if let Some((ours, control)) = recall(DEFAULT).zip(recall(CONTROL)) {
            answers.push(Answer::new(
                Question::Failure,
                format!("Requests in [people's own words](everyday.md): recall@5 {ours} (flat BM25 {control})."),
            ));
        }
        answers
    }
}

fn engines(matrix: &Matrix) -> Vec<&RouterEngine> {
    ENGINES.iter().filter_map(|name| matrix.engine(name)).collect()
}

/// The case of an engine in a manner.
fn case(manner: Manner, engine: &str) -> String {
    format!("{}/{engine}", manner.name())
}

fn facts<'r>(results: &'r Results<EverydayFacts>, manner: Manner, engine: &str) -> Option<&'r Facts> {
    facts_of(results, manner.name(), engine)
}

/// What an engine gave on the requests in the manner of this name.
pub(super) fn facts_of<'r>(results: &'r Results<EverydayFacts>, manner: &str, engine: &str) -> Option<&'r Facts> {
    let case = format!("{manner}/{engine}");
    results.measured().find(|(record, _)| record.case == case).map(|(_, facts)| facts.as_ref())
}

fn shown(facts: &Facts, measure: &str) -> String {
    facts.measures.get(measure).map_or_else(|| MISSING.to_owned(), |one| share(one.mean))
}

fn reading(results: &Results<EverydayFacts>) -> String {
    let sizes =
        Manner::ALONE.iter().find_map(|manner| facts(results, *manner, CONTROL)).map_or_else(String::new, |facts| {
            format!(
                " {} requests that a tool serves and {} that none does, over {} tools of {} servers.",
                count(facts.answerable),
                count(facts.unanswerable),
                count(facts.tools),
                count(facts.namespaces)
            )
        });
    format!(
        "The collection [`gold/everyday`](../gold/everyday/README.md):{sizes} \"As people speak\" is what somebody \
         says, rarely with a word of the tool. \"As models ask\" is what a model that knew the request but not the \
         tools sent to a search; where it sent two queries, their answers are taken alternately. \"In a crowd\" is the \
         same queries among the tools of all real servers that the project has catalogs of; other servers' tools that \
         do the same count as right where the query names no product. No server of the collection is in the training \
         data of any table or encoder here."
    )
}

fn rows(results: &Results<EverydayFacts>) -> impl Iterator<Item = (Manner, &'static str, &Facts)> {
    let pairs = Manner::ALL.into_iter().flat_map(|manner| ENGINES.map(|engine| (manner, engine)));
    pairs.filter_map(|(manner, engine)| Some((manner, engine, facts(results, manner, engine)?)))
}

/// What stands behind the name of an engine whose record was not computed by this run.
fn label(results: &Results<EverydayFacts>, manner: Manner, engine: &str) -> String {
    let case = case(manner, engine);
    let mark = results.records.iter().find(|record| record.case == case).map_or("", |record| results.mark(record));
    format!("{engine}{mark}")
}

fn measures(results: &Results<EverydayFacts>) -> Table {
    let titles = ["requests", "engine", "recall@1", "recall@5", "recall@10", "nDCG@10", "less flat BM25", "verdict"];
    let mut table = Table::new(titles).words(&["engine", "verdict"]);
    for (manner, engine, facts) in rows(results) {
        let shown = |measure: &str| facts.measures.get(measure).map_or_else(|| MISSING.to_owned(), estimate);
        let paired = facts.versus_control.as_ref();
        table.row([
            manner.title().to_owned(),
            label(results, manner, engine),
            shown("recall@1"),
            shown("recall@5"),
            shown("recall@10"),
            shown("nDCG@10"),
            paired.map_or_else(|| MISSING.to_owned(), |paired| difference(&paired.difference)),
            paired.map_or_else(|| MISSING.to_owned(), conclusion),
        ]);
    }
    table
}

/// What users get, with the encoder and without, beside the control: both manners beside each other.
fn in_short(results: &Results<EverydayFacts>) -> Table {
    let wanted = ["recall@1", "recall@5"];
    let titles = Manner::ALONE
        .iter()
        .flat_map(|manner| wanted.into_iter().chain(["none"]).map(|measure| format!("{}: {measure}", manner.name())));
    let mut table = Table::new(["engine".to_owned()].into_iter().chain(titles));
    for engine in [DEFAULT, "best", CONTROL] {
        let both = Manner::ALONE.map(|manner| facts(results, manner, engine));
        if both.iter().all(Option::is_none) {
            continue;
        }
        let cells = both.iter().flat_map(|facts| {
            let missing = || MISSING.to_owned();
            let found = wanted.map(|measure| facts.map_or_else(missing, |facts| shown(facts, measure)));
            let none = facts.and_then(told_apart).map_or_else(missing, |area| estimate(&area));
            found.into_iter().chain([none])
        });
        table.row([label(results, Manner::Said, engine)].into_iter().chain(cells));
    }
    table
}

fn by_kind(results: &Results<EverydayFacts>) -> Table {
    let Some(first) = facts(results, Manner::Said, CONTROL) else { return Table::new(["engine"]) };
    let kinds: Vec<&String> = first.by_register.keys().collect();
    let titles = kinds.iter().map(|kind| format!("{kind} ({})", count(first.by_register[*kind].queries)));
    let mut table = Table::new(["engine".to_owned()].into_iter().chain(titles));
    for engine in ENGINES {
        let Some(facts) = facts(results, Manner::Said, engine) else { continue };
        let cell = |kind: &&String| {
            facts.by_register.get(*kind).map_or_else(|| MISSING.to_owned(), |slice| share(slice.recall_at_5))
        };
        table.row([label(results, Manner::Said, engine)].into_iter().chain(kinds.iter().map(cell)));
    }
    table
}

fn telling_none(results: &Results<EverydayFacts>) -> Table {
    let titles = Manner::ALL.iter().flat_map(|manner| [manner.title().to_owned(), format!("{}: ECE", manner.name())]);
    let mut table = Table::new(["engine".to_owned()].into_iter().chain(titles));
    let missing = || MISSING.to_owned();
    for engine in ENGINES {
        let cells = Manner::ALL.iter().flat_map(|manner| {
            let facts = facts(results, *manner, engine);
            let ece = facts.and_then(|facts| facts.abstention.as_ref()?.ece);
            [facts.and_then(told_apart).map_or_else(missing, |area| estimate(&area)), ece.map_or_else(missing, share)]
        });
        table.row([label(results, Manner::Said, engine)].into_iter().chain(cells));
    }
    table
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::eval::collection::{ASKED_FILE, CATALOG_FILE, Collection, QUERIES_FILE};
    use crate::eval::engine::EncoderChoice;
    use crate::eval::record::Origin;
    use contextweaver_routing::{RoutingConfig, Scorer};

    #[test]
    fn requests_that_no_tool_serves_are_told_apart() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gold");
        let load = |name: &str, queries: &str| {
            let folder = root.join(name);
            Collection::from_files(name, Origin::Embedded, &folder.join(CATALOG_FILE), &folder.join(queries)).unwrap()
        };
        let default = RouterEngine::new(DEFAULT, RoutingConfig::default());
        let best = default.clone().with(EncoderChoice::MiniLm);
        let flat = RoutingConfig { scorer: Scorer::Bm25, k1: 1.2, b: 0.75, ..RoutingConfig::default() };
        let control = RouterEngine::new(CONTROL, flat);
        let area = |collection: &Collection, engine: &RouterEngine| {
            let evaluation = evaluate(collection, &Interleaved(engine), PromptTokens::Skip).unwrap();
            evaluation.facts.abstention.unwrap().auroc
        };
        // The least of the default, and of the encoder where it is asked: its queries take milliseconds.
        let table = [
            ("household", QUERIES_FILE, 0.74, Some(0.85)),
            ("workbench", QUERIES_FILE, 0.80, None),
            (COLLECTION, ASKED_FILE, 0.92, Some(0.95)),
            (COLLECTION, QUERIES_FILE, 0.45, None),
        ];
        for (name, queries, least, with_encoder) in table {
            let collection = load(name, queries);
            let found = area(&collection, &default);
            assert!(found >= least, "{name} {queries}: {found}");
            assert!(found >= area(&collection, &control), "{name} {queries}: flat BM25 is better than {found}");
            if let Some(least) = with_encoder {
                let found = area(&collection, &best);
                assert!(found >= least, "{name} {queries} with the encoder: {found}");
            }
        }
    }

    #[test]
    fn no_server_of_the_collection_is_among_the_training_data() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gold");
        let about = std::fs::read_to_string(root.join("everyday/README.md")).unwrap();
        let packages: Vec<&str> =
            about.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').nth(2)).collect();
        assert_eq!(packages.len(), 11, "{packages:?}");
        let training = std::fs::read_to_string(root.join("training/everyday.jsonl")).unwrap();
        for package in packages {
            let name = package.trim_start_matches('@').replace('/', "__");
            assert!(!training.contains(&format!("\"server\": \"{name}\"")), "{name}");
        }
    }
}
