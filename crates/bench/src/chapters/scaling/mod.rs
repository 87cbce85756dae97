//! How the default engine grows with the catalog, from a hundred tools to a million: counters, which are the same on every
//! machine.
//!
//! The catalogs are made around a collection, whose queries are asked at every size. The largest takes minutes and is
//! measured when everything is asked for; else its record is kept. Times are recorded apart ([`crate::eval::scaling`]), and
//! so is what other libraries take.

mod facts;
mod page;

use anyhow::Result;

use super::collections::default_engine;
use crate::chapter::{Absent, Chapter, Fresh, Plan, Planned, Recordings, Step, Wrong};
use crate::eval::collection::Collection;
use crate::eval::engine::Engine;
use crate::eval::identity::Broken;
use crate::eval::record::{Origin, Outcome};
use crate::eval::scaling::{COLLECTION, RIVALS_FILE, RivalRow, SIZES};
use crate::eval::tables::Tables;
use crate::eval::workspace::{Bench, Scope};
use crate::eval::{probe, version};
use crate::report::document::Document;
use crate::report::table::{self, Table};
use crate::results::Results;

pub use facts::{ScalingFacts, count};
pub use page::times_table;

/// The largest size whose counters every run computes.
pub const USUAL: usize = 100_000;

/// Tools of the catalog that the version is taken of.
const PROBED: usize = 100;

/// The chapter.
#[derive(Debug)]
pub struct Scaling;

impl Chapter for Scaling {
    type Facts = ScalingFacts;

    fn name(&self) -> &'static str {
        "scaling"
    }

    fn plan(&self, bench: &Bench) -> Result<Vec<Plan>> {
        let engine = default_engine(bench)?;
        let case = |base: &std::sync::Arc<Collection>, size: usize| Planned {
            case: size.to_string(),
            origin: Origin::Embedded,
            absent: (size > USUAL && bench.scope == Scope::Usual).then_some(Absent::TooLarge),
            inputs_sha256: Some(base.inputs_sha256.clone()),
        };
        // In a checkout without the collection there is nothing to count.
        let base = bench.collections.get(COLLECTION);
        Ok(vec![Plan {
            name: Chapter::name(self).to_owned(),
            configuration: engine.configuration(),
            version: version::of(version::of_engine(engine), &count(probe::collection(), engine, PROBED)),
            cases: base.into_iter().flat_map(|base| SIZES.map(|size| case(base, size))).collect(),
        }])
    }

    fn cost_ms(&self, _: &Bench, _: &Plan, planned: &Planned) -> u64 {
        10 + planned.case.parse::<u64>().unwrap_or_default() / 20
    }

    fn measure(&self, bench: &Bench, plans: &[Plan], step: Step<'_>) -> Result<Vec<Fresh<ScalingFacts>>> {
        let Some(base) = bench.collections.get(COLLECTION) else { return Ok(Vec::new()) };
        let engine = default_engine(bench)?;
        let mut measured = Vec::new();
        for planned in plans.iter().flat_map(|plan| &plan.cases).filter(|planned| planned.absent.is_none()) {
            step(&format!("{} tools", planned.case));
            measured.push(Fresh {
                results: Chapter::name(self).to_owned(),
                case: planned.case.clone(),
                inputs_sha256: base.inputs_sha256.clone(),
                outcome: count(base, engine, planned.case.parse()?),
            });
        }
        Ok(measured)
    }

    fn wrong(&self, own: &[Results<ScalingFacts>], _: &Recordings) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        for results in own {
            let mut measured: Vec<(&str, &ScalingFacts)> =
                results.measured().map(|(record, facts)| (record.case.as_str(), facts)).collect();
            measured.sort_by_key(|(case, _)| case.parse::<usize>().unwrap_or(usize::MAX));
            let before = std::iter::once(None).chain(measured.iter().map(|(_, facts)| Some(*facts)));
            for ((case, facts), before) in measured.iter().zip(before) {
                let mut broken = Broken::default();
                check(case, facts, before, &mut broken);
                wrong.extend(Wrong::each(&results.name, case, broken.reasons()));
            }
        }
        wrong
    }

    fn wrong_tables(&self, own: &[Results<ScalingFacts>], tables: &Tables) -> Vec<Wrong> {
        let measured = own.iter().flat_map(|results| results.measured().map(move |row| (results, row)));
        let mut wrong = Vec::new();
        for (results, (record, facts)) in measured {
            // The one figure of other libraries' tables that is computed here too.
            let of_index = |row: &&RivalRow| (row.engine.as_str(), row.measure.as_str()) == ("lexical", "index bytes");
            let rival = tables.rivals.iter().filter(of_index).find(|row| row.tools == facts.tools);
            if let Some(row) = rival.filter(|row| row.value != facts.index_bytes as f64) {
                let (recorded, own) = (row.value, facts.index_bytes);
                let reason = format!("{RIVALS_FILE} has {recorded} bytes for this index, but it has {own}");
                wrong.push(Wrong { results: results.name.clone(), case: record.case.clone(), reason });
            }
        }
        wrong
    }

    fn render(&self, own: &[Results<ScalingFacts>], tables: &Tables, document: &mut Document) {
        own.iter().for_each(|results| page::chapter(document, results, tables));
    }

    fn terminal(&self, own: &[Results<ScalingFacts>]) -> String {
        own.iter().map(|results| table::plain(&page::tables(results))).collect()
    }
}

/// Counters as a table by size, with their slopes.
#[must_use]
pub fn counters_table(counters: &[Outcome<ScalingFacts>]) -> Table {
    let facts = counters.iter().filter_map(|outcome| match outcome {
        Outcome::Measured(facts) => Some((facts, "")),
        Outcome::Failed(_) => None,
    });
    page::counters(&facts.collect::<Vec<_>>())
}

/// Counters grow with the catalog, and as fast or more slowly than it: an index has a share for each tool, and a query
/// touches at most every posting.
fn check(case: &str, facts: &ScalingFacts, before: Option<&ScalingFacts>, broken: &mut Broken) {
    broken.unless(case == facts.tools.to_string(), "the number of tools is not that of the case");
    broken.unless(facts.namespaces <= facts.tools && facts.terms <= facts.postings, "more groups than members");
    let reads = [facts.read_mean, facts.touched_mean, facts.postings as f64];
    broken.ascending("postings read, touched and in the index", &reads);
    broken.unless(facts.touched_p95 <= facts.postings as f64, "a query touches more postings than there are");
    let Some(before) = before else { return };
    broken.unless(facts.queries == before.queries, "different queries than at the previous size");
    let tools = facts.tools as f64 / before.tools as f64;
    let counters = |facts: &ScalingFacts| {
        let whole = [facts.namespaces, facts.terms, facts.postings, facts.index_bytes].map(|count| count as f64);
        let per_query = [facts.touched_mean, facts.touched_p95, facts.read_mean];
        whole.into_iter().chain(per_query).collect::<Vec<f64>>()
    };
    let names = ["servers", "terms", "postings", "index bytes", "postings touched", "p95", "postings read"];
    for ((name, now), then) in names.into_iter().zip(counters(facts)).zip(counters(before)) {
        broken.unless(now >= then, format!("{name} fall from {then} to {now} with more tools"));
        // Twice as much as in proportion leaves room for what small catalogs have none of.
        broken.unless(now <= then.max(1.0) * tools * 2.0, format!("{name} grow faster than the catalog"));
    }
    let per_tool = |facts: &ScalingFacts| facts.postings as f64 / facts.tools as f64;
    let ratio = per_tool(facts) / per_tool(before);
    broken.unless((0.5..=2.0).contains(&ratio), "the postings of a tool are not those of the previous size");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::engine::RouterEngine;
    use crate::eval::matrix::DEFAULT;
    use crate::results::recorded;
    use contextweaver_routing::RoutingConfig;

    fn measured(size: usize) -> ScalingFacts {
        let engine = RouterEngine::new(DEFAULT, RoutingConfig::default());
        match count(probe::collection(), &engine, size) {
            Outcome::Measured(facts) => facts,
            Outcome::Failed(message) => panic!("{message}"),
        }
    }

    fn wrong(facts: &[ScalingFacts]) -> Vec<String> {
        let cases: Vec<String> = facts.iter().map(|facts| facts.tools.to_string()).collect();
        let outcomes = cases.iter().zip(facts).map(|(case, facts)| (case.as_str(), Outcome::Measured(*facts)));
        let results = recorded("scaling", outcomes.collect());
        Scaling.wrong(&[results], &Recordings::default()).into_iter().map(|wrong| wrong.reason).collect()
    }

    #[test]
    fn the_index_beside_other_libraries_is_the_one_that_is_counted() {
        let results = recorded("scaling", vec![("100", Outcome::Measured(measured(100)))]);
        let row = |value: f64| RivalRow {
            engine: "lexical".to_owned(),
            tools: 100,
            measure: "index bytes".to_owned(),
            value,
            unit: "B".to_owned(),
        };
        let wrong = |value: f64| {
            let tables = Tables { rivals: vec![row(value)], ..Tables::default() };
            Scaling.wrong_tables(std::slice::from_ref(&results), &tables).len()
        };
        let bytes = measured(100).index_bytes as f64;
        assert_eq!((wrong(bytes), wrong(bytes - 1.0)), (0, 1));
    }

    #[test]
    fn counters_are_those_of_the_catalog_of_that_size_and_a_tenth_of_them_is_not() {
        let sizes = [100, 1_000, 10_000].map(measured);
        assert_eq!(sizes.map(|facts| facts.tools), [100, 1_000, 10_000]);
        assert!(sizes[0].terms < sizes[1].terms && sizes[0].postings < sizes[1].postings, "{sizes:?}");
        assert!(sizes[0].touched_mean >= 1.0, "{sizes:?}");
        assert_eq!(wrong(&sizes), Vec::<String>::new());
        let mut forged = sizes;
        for count in [&mut forged[2].postings, &mut forged[2].index_bytes, &mut forged[2].terms] {
            *count /= 10;
        }
        let wrong = wrong(&forged).join("\n");
        assert!(wrong.contains("the postings of a tool are not those of the previous size"), "{wrong}");
    }
}
