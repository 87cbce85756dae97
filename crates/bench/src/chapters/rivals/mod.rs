//! Engines of others beside ours on the same collections, all through the door of `docs/engines.md`, as a chapter.
//!
//! Its records are never computed by a run of the scorecard: these engines have to be installed. `bench run --engines`
//! records them, and they are marked as recorded. What can be checked without running them is checked: that every
//! mean follows from the recorded ranks, and that ours gave through the door what they give inside.

mod page;

use anyhow::Result;

use super::collections::inputs_of;
use super::everyday;
use super::routing::Ranked;
use crate::chapter::{Absent, Answer, Chapter, Fresh, Plan, Planned, Recordings, Step, Wrong};
use crate::eval::everyday::Manner;
use crate::eval::identity::{Broken, same};
use crate::eval::matrix::Matrix;
use crate::eval::process::PROTOCOL;
use crate::eval::record::Facts;
use crate::eval::rival::{MEASURES, RivalFacts};
use crate::eval::tables::Tables;
use crate::eval::workspace::Bench;
use crate::report::document::Document;
use crate::report::table;
use crate::results::Results;

/// The chapter.
#[derive(Debug)]
pub struct Rivals;

/// The name of the chapter and of its first results file.
pub const NAME: &str = "rivals";

/// The results file of the everyday requests.
pub const EVERYDAY: &str = "everyday-rivals";

pub use crate::eval::rival::{case, parts};

impl Chapter for Rivals {
    type Facts = RivalFacts;

    fn name(&self) -> &'static str {
        NAME
    }

    fn files(&self, matrix: &Matrix) -> Vec<String> {
        if matrix.rivals.is_empty() { Vec::new() } else { [NAME, EVERYDAY].map(str::to_owned).to_vec() }
    }

    fn plan(&self, bench: &Bench) -> Result<Vec<Plan>> {
        let planned = |engine: &str, collection: &str, origin, inputs_sha256| Planned {
            case: case(engine, collection),
            origin,
            absent: Some(Absent::Recorded),
            inputs_sha256,
        };
        let plan = |name: &str, cases| Plan {
            name: name.to_owned(),
            configuration: bench.matrix.rivals.iter().map(|one| format!("{}: {}\n", one.name, one.command())).collect(),
            version: format!("protocol {PROTOCOL}"),
            cases,
        };
        let plain = bench.matrix.plain_cases();
        let on_plain = bench.matrix.rivals.iter().flat_map(|rival| {
            plain.iter().map(move |(name, of)| {
                planned(&rival.name, name, of.origin, inputs_of(of, bench.collections.get(name).map(AsRef::as_ref)))
            })
        });
        let mut plans = vec![plan(NAME, on_plain.collect())];
        let mut on_everyday = Vec::new();
        for manner in Manner::of(&bench.workspace) {
            let inputs = manner.collection(&bench.workspace)?.map(|collection| collection.inputs_sha256);
            let rivals = bench.matrix.rivals.iter();
            on_everyday
                .extend(rivals.map(|rival| planned(&rival.name, manner.name(), manner.origin(), inputs.clone())));
        }
        plans.push(plan(EVERYDAY, on_everyday));
        plans.retain(|_| !bench.matrix.rivals.is_empty());
        Ok(plans)
    }

    fn measure(&self, _: &Bench, _: &[Plan], _: Step<'_>) -> Result<Vec<Fresh<RivalFacts>>> {
        Ok(Vec::new())
    }

    fn wrong(&self, own: &[Results<RivalFacts>], all: &Recordings) -> Vec<Wrong> {
        let ranked = Ranked::of(all);
        // Results were read with their facts; what is of another shape has been refused.
        let everyday: Vec<Results<Box<Facts>>> =
            all.of(everyday::NAME).iter().filter_map(|one| one.typed().ok()).collect();
        let mut wrong = Vec::new();
        let records = own.iter().flat_map(|one| one.measured().map(move |(record, facts)| (one, record, facts)));
        for (results, record, facts) in records {
            let (engine, collection) = parts(&record.case);
            let inside = match results.name.as_str() {
                EVERYDAY => everyday.iter().find_map(|one| everyday::facts_of(one, collection, engine)),
                _ => ranked.facts(engine, collection),
            };
            let mut broken = Broken::default();
            broken.unless(facts.recomputed() == facts.measures, "its measures are not those that its ranks give");
            broken.unless(facts.order_changes <= facts.order_asked, "more answers changed than were asked for");
            let tools = facts.first_tools.len();
            broken.unless(
                tools == 0 || tools == facts.ranks.queries(),
                "it names tools for other queries than it ranked",
            );
            let stated = facts.measures.keys().map(String::as_str);
            broken.unless(stated.eq(sorted(MEASURES)), "it has different measures than are recorded");
            if let Some(inside) = inside {
                let is_same = facts
                    .measures
                    .iter()
                    .all(|(name, value)| inside.measures.get(name).is_some_and(|one| same(one.mean, value.mean)));
                let what = format!(
                    "`{engine}` gives different figures inside the harness: run `contextweaver bench run --engines \
                     {engine}`"
                );
                broken.unless(is_same, what);
            }
            wrong.extend(Wrong::each(&results.name, &record.case, broken.reasons()));
        }
        wrong
    }

    fn render(&self, own: &[Results<RivalFacts>], tables: &Tables, page: &mut Document) {
        if let Some(results) = named(own, NAME) {
            page::chapter(page, results, named(own, EVERYDAY), tables);
        }
    }

    fn front(&self, own: &[Results<RivalFacts>]) -> Vec<String> {
        own.iter().filter(|results| results.name == NAME).filter_map(page::front).collect()
    }

    fn answers(&self, own: &[Results<RivalFacts>], tables: &Tables) -> Vec<Answer> {
        named(own, NAME).map_or_else(Vec::new, |results| page::answers(results, named(own, EVERYDAY), tables))
    }

    fn terminal(&self, own: &[Results<RivalFacts>]) -> String {
        let plain = |results: &Results<RivalFacts>| match results.name.as_str() {
            EVERYDAY => table::plain(&[page::everyday(results)]),
            _ => table::plain(&page::quality(results)),
        };
        own.iter().map(plain).collect()
    }
}

/// The results file of this name.
fn named<'r>(own: &'r [Results<RivalFacts>], name: &str) -> Option<&'r Results<RivalFacts>> {
    own.iter().find(|results| results.name == name)
}

fn sorted(names: [&str; MEASURES.len()]) -> [&str; MEASURES.len()] {
    let mut names = names;
    names.sort_unstable();
    names
}
