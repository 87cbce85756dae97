//! Requests as people say them, and the searches that a model sends for them, over tools of real servers.
//!
//! Other collections ask in words close to those of their tools. Here the same requests are taken twice: as a person
//! speaks, and as a model asks a search that knew the request and not the tools ([`crate::eval::everyday`]). The servers are
//! kept out of everything that is trained.

use std::collections::BTreeSet;

use anyhow::Result;

use super::confidence::BY_DEFAULT;
use crate::chapter::{Absent, Answer, Chapter, Fresh, Plan, Planned, Question, Recordings, Step, Wrong, measurable};
use crate::eval::abstention::told_apart;
use crate::eval::engine::{Engine, RouterEngine};
use crate::eval::everyday::{COLLECTION, Interleaved, Manner, in_order, in_turn};
use crate::eval::identity::{Broken, of_facts};
use crate::eval::matrix::{CONTROL, DEFAULT, Matrix};
use crate::eval::record::{Facts, NothingFits, Outcome, Slice};
use crate::eval::run::{Evaluation, PromptTokens, evaluate, follows_from_ranks};
use crate::eval::statistics::round6;
use crate::eval::tables::Tables;
use crate::eval::version;
use crate::eval::workspace::{Bench, Scope};
use crate::report::document::Document;
use crate::report::number::{MISSING, conclusion, count, difference, estimate, part, share};
use crate::report::readme::FOLDER;
use crate::report::table::{self, Table};
use crate::results::Results;
use contextweaver_routing::NOTHING_FITS_BELOW;

/// The engines, in the order of the tables.
const ENGINES: [&str; 4] = [DEFAULT, BEST, "lexical", CONTROL];

/// The default with the encoder.
const BEST: &str = "best";

/// The language that most requests are in, and that the table and the encoder know best.
const ENGLISH: &str = "en";

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
                let own = evaluate(&collection, &Interleaved(engine), PromptTokens::Skip).map(in_detail);
                let outcome = match own {
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
            broken.unless(!facts.by_language.is_empty(), "it says nothing about languages");
            let below = facts.nothing_fits.map(|found| found.below);
            broken.unless(
                below == Some(NOTHING_FITS_BELOW),
                format!("it says nothing about what is told below a confidence of {NOTHING_FITS_BELOW}"),
            );
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
        document.subheading("By kind and language");
        document
            .table("recall@5 by the kind of request, as people speak; their number in brackets.", &by_kind(results));
        document.table(
            "recall@5 by the language in which people speak: of their own words (said), and of what models ask for the same, \
             always in English (asked).",
            &by_language(results),
        );
        document.subheading("Requests that no tool serves");
        document.table(
            "How well confidence tells a request that no tool serves from one that a tool does: AUROC with its 95 % interval (.500 is \
             chance), and ECE, the mean distance of confidence from the share of right answers. In a crowd, tools of other \
             servers may serve some of the requests that count as served by none.",
            &telling_none(results),
        );
        document.table(
            &format!(
                "What the default of `abstain_below`, {}, does to these requests, as on the page about \
                 [confidence](confidence.md): below it a search says that nothing fits well, and shows the nearest tools all \
                 the same. Right answers of which that is said, wrong ones, and requests that no tool serves.",
                share(NOTHING_FITS_BELOW)
            ),
            &by_default(results),
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
            let apart =
                facts(results, Manner::Said, DEFAULT).and_then(by_english).map_or_else(String::new, |[own, other]| {
                    format!(" ({} in English, {} in other languages)", share(own.recall_at_5), share(other.recall_at_5))
                });
            Some(format!(
                "[Everyday requests]({FOLDER}everyday.md) to real servers that nothing was trained on: recall@5 {} as models ask \
                 for them, {} in people's own words{apart}.",
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
            let other = |engine: &str| {
                let [_, other] = facts(results, Manner::Said, engine).and_then(by_english)?;
                Some(share(other.recall_at_5))
            };
            let others = other(DEFAULT).zip(other(CONTROL)).map_or_else(String::new, |(ours, control)| {
                format!(", in other [languages](everyday.md#by-kind-and-language) than English {ours} ({control})")
            });
            answers.push(Answer::new(
                Question::Failure,
                format!(
                    "Requests in [people's own words](everyday.md): recall@5 {ours} (flat BM25 {control}){others}."
                ),
            ));
        }
        answers
    }
}

fn engines(matrix: &Matrix) -> Vec<&RouterEngine> {
    ENGINES.iter().filter_map(|name| matrix.engine(name)).collect()
}

/// The evaluation with what only everyday requests say in their facts.
fn in_detail(mut own: Evaluation) -> Evaluation {
    own.facts.by_language.clone_from(&own.by_language);
    own.facts.nothing_fits = own.nothing_fits;
    own
}

/// The requests in English, and those in all other languages; `None` without either.
fn by_english(facts: &Facts) -> Option<[Slice; 2]> {
    let together = |is_english: bool| {
        let own = facts.by_language.iter().filter(|(language, _)| (*language == ENGLISH) == is_english);
        let (queries, found) = own.fold((0, 0.0), |(queries, found), (_, slice)| {
            (queries + slice.queries, found + slice.recall_at_5 * slice.queries as f64)
        });
        (queries > 0).then(|| Slice { queries, recall_at_5: round6(found / queries as f64) })
    };
    Some([together(true)?, together(false)?])
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
    for engine in [DEFAULT, BEST, CONTROL] {
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

/// What people said in each language, and what models asked for the same.
fn by_language(results: &Results<EverydayFacts>) -> Table {
    let columns: Vec<(Manner, &str)> =
        Manner::ALONE.into_iter().flat_map(|manner| [DEFAULT, BEST, CONTROL].map(|engine| (manner, engine))).collect();
    let titles =
        columns.iter().map(|(manner, engine)| format!("{}: {}", manner.name(), label(results, *manner, engine)));
    let mut table = Table::new(["language", "requests"].map(str::to_owned).into_iter().chain(titles));
    let Some(first) = facts(results, Manner::Said, CONTROL) else { return table };
    let mut row = |name: &str, of: &dyn Fn(&Facts) -> Option<Slice>| {
        let Some(Slice { queries, .. }) = of(first) else { return };
        let cells = columns.iter().map(|(manner, engine)| {
            let slice = facts(results, *manner, engine).and_then(of);
            slice.map_or_else(|| MISSING.to_owned(), |slice| share(slice.recall_at_5))
        });
        table.row([name.to_owned(), count(queries)].into_iter().chain(cells));
    };
    let (english, others): (Vec<&String>, Vec<&String>) =
        first.by_language.keys().partition(|language| *language == ENGLISH);
    for language in english.into_iter().chain(others) {
        row(language, &|facts| facts.by_language.get(language).copied());
    }
    row(&format!("all but {ENGLISH}"), &|facts| by_english(facts).map(|[_, others]| others));
    table
}

/// What the default of `abstain_below` does, without the encoder and with it.
fn by_default(results: &Results<EverydayFacts>) -> Table {
    let mut table = Table::new(["requests", "engine"].into_iter().chain(BY_DEFAULT)).words(&["engine"]);
    for (manner, engine, facts) in rows(results).filter(|(_, engine, _)| [DEFAULT, BEST].contains(engine)) {
        let Some(NothingFits { right, wrong, unanswerable, .. }) = facts.nothing_fits else { continue };
        let counts = [right, wrong, unanswerable].map(|one| part(one.queries, one.of));
        table.row([manner.title().to_owned(), label(results, manner, engine)].into_iter().chain(counts));
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

    use serde_json::Value;

    use super::*;
    use crate::eval::collection::{ASKED_FILE, CATALOG_FILE, Collection, QUERIES_FILE, Source};
    use crate::eval::engine::EncoderChoice;
    use crate::eval::measure::Measure;
    use crate::eval::record::{Origin, Part};
    use crate::eval::statistics::mean;
    use crate::results::recorded;
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

    /// Two requests in English, which words find, one in German and one in Japanese, which they do not, and one that no tool
    /// serves.
    fn facts_of_languages() -> Facts {
        let tools = br#"[{"name": "send_mail", "description": "Send a letter"}, {"name": "list_files", "description": "List a folder"}]"#;
        let queries = r#"{"id": "1", "query": "letter", "relevant": ["send_mail"], "lang": "en"}
            {"id": "2", "query": "Brief", "relevant": ["send_mail"], "lang": "de"}
            {"id": "3", "query": "手紙", "relevant": ["send_mail"], "lang": "ja"}
            {"id": "4", "query": "folder", "relevant": ["list_files"], "lang": "en"}
            {"id": "5", "query": "zebra", "relevant": [], "lang": "de"}"#;
        let source = |bytes| Source { path: Path::new("test"), bytes };
        let collection =
            Collection::from_bytes("t", Origin::Embedded, source(tools), source(queries.as_bytes())).unwrap();
        let words = RouterEngine::new("words", RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        in_detail(evaluate(&collection, &Interleaved(&words), PromptTokens::Skip).unwrap()).facts
    }

    #[test]
    fn languages_and_what_is_told_that_nothing_fits_are_counted_and_held_by_the_rest() {
        let facts = facts_of_languages();
        let told = facts.nothing_fits.unwrap();
        assert_eq!(
            (told.right.of, told.wrong, told.unanswerable),
            (2, Part { queries: 2, of: 2 }, Part { queries: 1, of: 1 })
        );
        let of = |facts: Facts| {
            let both = [CONTROL, DEFAULT]
                .map(|engine| (case(Manner::Said, engine), Outcome::Measured(Box::new(facts.clone()))));
            recorded(NAME, both.iter().map(|(case, outcome)| (case.as_str(), outcome.clone())).collect())
        };
        let results = of(facts.clone());
        let shown = by_language(&results).plain();
        let rows: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
        let row =
            |name: &str| rows.iter().find(|row| row.first() == Some(&name)).map(|row| row[row.len() - 7..].to_vec());
        let cells = |queries, found| Some(vec![queries, found, MISSING, found, MISSING, MISSING, MISSING]);
        assert_eq!(
            [row("en"), row("de"), row("all")],
            [cells("2", "1.000"), cells("1", ".000"), cells("2", ".000")],
            "{shown}"
        );
        let shown = by_default(&results).plain();
        assert!(shown.contains("as people speak") && shown.contains("2 of 2") && shown.contains("1 of 1"), "{shown}");

        let wrong = |facts: Facts| Everyday.wrong(&[of(facts)], &Recordings::default()).len();
        assert_eq!(wrong(facts.clone()), 0);
        let change = |change: &dyn Fn(&mut Facts)| {
            let mut changed = facts.clone();
            change(&mut changed);
            wrong(changed)
        };
        assert!(change(&|facts| facts.by_language.clear()) > 0);
        assert!(change(&|facts| facts.by_language.get_mut("de").unwrap().recall_at_5 = 0.5) > 0);
        assert!(change(&|facts| facts.by_language.get_mut("de").unwrap().queries = 2) > 0);
        assert!(change(&|facts| facts.nothing_fits = None) > 0);
        assert!(change(&|facts| facts.nothing_fits.as_mut().unwrap().below = 0.4) > 0);
        assert!(change(&|facts| facts.nothing_fits.as_mut().unwrap().wrong.queries = 3) > 0);
        assert!(change(&|facts| facts.nothing_fits.as_mut().unwrap().right.of = 1) > 0);
    }

    /// The values of a member of the lines of a file in `gold/`.
    fn member(file: &str, name: &str) -> Vec<Value> {
        let text =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gold").join(file)).unwrap();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()[name].take()).collect()
    }

    /// The text about the collection on one line.
    fn about() -> String {
        let about = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gold/everyday/README.md");
        std::fs::read_to_string(about).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_said_about_the_collection_is_counted() {
        let asked = member("everyday/asked.jsonl", "query");
        let asked: Vec<&str> = asked.iter().map(|query| query.as_str().unwrap()).collect();
        let two = asked.iter().filter(|query| query.lines().count() == 2).count();
        let about = about();
        assert!(about.contains(&format!("{two} requests got two queries")), "{two}");

        let training = member("training/everyday.jsonl", "asked");
        let training: BTreeSet<String> = training
            .iter()
            .flat_map(|queries| queries.as_array().unwrap())
            .map(|one| one.as_str().unwrap().to_lowercase())
            .collect();
        let known: Vec<bool> =
            asked.iter().map(|query| query.lines().any(|line| training.contains(&line.to_lowercase()))).collect();
        let count = known.iter().filter(|known| **known).count();
        assert!(about.contains(&format!("{count} of the {} requests", asked.len())), "{count}");

        // Without these, no engine finds more or less by a hundredth.
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scorecard/results/everyday.json");
        let results = Results::<EverydayFacts>::from_json(NAME, &std::fs::read_to_string(file).unwrap()).unwrap();
        let served = member("everyday/asked.jsonl", "relevant");
        let served = served.iter().map(|relevant| !relevant.as_array().unwrap().is_empty());
        let known: Vec<bool> =
            known.into_iter().zip(served).filter(|(_, served)| *served).map(|(known, _)| known).collect();
        for (manner, engine, facts) in rows(&results).filter(|(manner, ..)| *manner != Manner::Said) {
            assert_eq!(facts.ranks.queries(), known.len());
            for measure in Measure::ALL.into_iter().filter(|one| ["recall@1", "recall@5"].contains(&&*one.to_string()))
            {
                let all = facts.ranks.values(measure);
                let rest = all.iter().zip(&known).filter(|(_, known)| !**known).map(|(value, _)| *value);
                let moved = mean(rest) - mean(all.iter().copied());
                assert!(moved.abs() < 0.01, "{manner:?} {engine} {measure}: {moved}");
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
