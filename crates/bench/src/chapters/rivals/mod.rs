//! Engines of others beside ours on the same collections, all through the door of `docs/engines.md`, as a chapter.
//!
//! Its records are never computed by a run of the scorecard: these engines have to be installed. `bench run --engines`
//! records them, and they are marked as recorded. What can be checked without running them is checked: that every
//! mean follows from the recorded ranks, and that ours gave through the door what they give inside.

mod page;

use anyhow::Result;

use super::collections::inputs_of;
use super::routing::Ranked;
use crate::chapter::{Absent, Answer, Chapter, Fresh, Plan, Planned, Recordings, Step, Wrong};
use crate::eval::identity::{Broken, same};
use crate::eval::matrix::Matrix;
use crate::eval::process::PROTOCOL;
use crate::eval::rival::{MEASURES, RivalFacts};
use crate::eval::tables::Tables;
use crate::eval::workspace::Bench;
use crate::report::document::Document;
use crate::report::table;
use crate::results::Results;

/// The chapter.
#[derive(Debug)]
pub struct Rivals;

/// The name of the chapter and of its results file.
pub const NAME: &str = "rivals";

pub use crate::eval::rival::{case, parts};

impl Chapter for Rivals {
    type Facts = RivalFacts;

    fn name(&self) -> &'static str {
        NAME
    }

    fn files(&self, matrix: &Matrix) -> Vec<String> {
        if matrix.rivals.is_empty() { Vec::new() } else { vec![NAME.to_owned()] }
    }

    fn plan(&self, bench: &Bench) -> Result<Vec<Plan>> {
        let plain = bench.matrix.plain_cases();
        let cases = bench.matrix.rivals.iter().flat_map(|rival| {
            plain.iter().map(move |(name, of)| Planned {
                case: case(&rival.name, name),
                origin: of.origin,
                absent: Some(Absent::Recorded),
                inputs_sha256: inputs_of(of, bench.collections.get(name).map(AsRef::as_ref)),
            })
        });
        let plan = Plan {
            name: NAME.to_owned(),
            configuration: bench.matrix.rivals.iter().map(|one| format!("{}: {}\n", one.name, one.command())).collect(),
            version: format!("protocol {PROTOCOL}"),
            cases: cases.collect(),
        };
        Ok(self.files(&bench.matrix).iter().map(|_| plan.clone()).collect())
    }

    fn measure(&self, _: &Bench, _: &[Plan], _: Step<'_>) -> Result<Vec<Fresh<RivalFacts>>> {
        Ok(Vec::new())
    }

    fn wrong(&self, own: &[Results<RivalFacts>], all: &Recordings) -> Vec<Wrong> {
        let ranked = Ranked::of(all);
        let mut wrong = Vec::new();
        for (record, facts) in own.iter().flat_map(Results::measured) {
            let (engine, collection) = parts(&record.case);
            let mut broken = Broken::default();
            broken.unless(facts.recomputed() == facts.measures, "its measures are not those that its ranks give");
            broken.unless(facts.order_changes <= facts.order_asked, "more answers changed than were asked for");
            let tools = facts.first_tools.len();
            broken.unless(tools == 0 || tools == facts.ranks.queries(), "it names tools for other queries than it ranked");
            let stated = facts.measures.keys().map(String::as_str);
            broken.unless(stated.eq(sorted(MEASURES)), "it has other measures than are recorded");
            if let Some(inside) = ranked.facts(engine, collection) {
                let is_same = facts
                    .measures
                    .iter()
                    .all(|(name, value)| inside.measures.get(name).is_some_and(|one| same(one.mean, value.mean)));
                let what = format!(
                    "`{engine}` gives other figures inside the harness: run `contextweaver bench run --engines {engine}`"
                );
                broken.unless(is_same, what);
            }
            let reasons = broken.reasons().into_iter();
            wrong.extend(reasons.map(|reason| Wrong {
                results: NAME.to_owned(),
                case: record.case.clone(),
                reason,
            }));
        }
        wrong
    }

    fn render(&self, own: &[Results<RivalFacts>], tables: &Tables, page: &mut Document) {
        own.iter().for_each(|results| page::chapter(page, results, tables));
    }

    fn front(&self, own: &[Results<RivalFacts>]) -> Vec<String> {
        own.iter().filter_map(page::front).collect()
    }

    fn answers(&self, own: &[Results<RivalFacts>], tables: &Tables) -> Vec<Answer> {
        own.iter().flat_map(|results| page::answers(results, tables)).collect()
    }

    fn terminal(&self, own: &[Results<RivalFacts>]) -> String {
        own.iter().map(|results| table::plain(&page::quality(results))).collect()
    }
}

fn sorted(names: [&str; MEASURES.len()]) -> [&str; MEASURES.len()] {
    let mut names = names;
    names.sort_unstable();
    names
}
