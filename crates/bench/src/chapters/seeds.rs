//! Growth and context rot over several draws of distractors, with the default and its control.
//!
//! Every engine is measured with one seed, in another chapter. Here the catalog is grown with more, which draw another core
//! of tools, other queries and other distractors: the mean over the seeds and its interval are what such a catalog would give,
//! and not what one draw gave.

use std::sync::Arc;

use anyhow::Result;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::collections::default_engine;
use crate::chapter::{Answer, Chapter, Fresh, Plan, Planned, Question, Recordings, Step, Wrong, measurable};
use crate::eval::collection::Collection;
use crate::eval::engine::{Engine, RouterEngine};
use crate::eval::error::EvalError;
use crate::eval::growth::{SIZES, grow};
use crate::eval::identity::{Broken, same};
use crate::eval::matrix::{CONTROL, DEFAULT, Matrix};
use crate::eval::record::{Estimate, Grade, Growth, Origin, Outcome};
use crate::eval::run::recall_as_served;
use crate::eval::scaling::COLLECTION;
use crate::eval::statistics::{ends, mean, over_sets, round6};
use crate::eval::tables::Tables;
use crate::eval::workspace::Bench;
use crate::eval::{probe, version};
use crate::report::document::{Document, Figure, line_figure};
use crate::report::number::{MISSING, count, difference, estimate, share, signed};
use crate::report::plot::{Line, Point, Scale};
use crate::report::table::{self, Table};
use crate::results::Results;

/// The seeds of growth, that of the other chapters among them.
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

/// recall@5 at one size, a value for each seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtSize {
    /// Tools after growth.
    pub tools: usize,
    /// Queries that were asked, over all seeds.
    pub queries: usize,
    /// Of the default engine.
    pub default: Vec<f64>,
    /// Of the control.
    pub control: Vec<f64>,
}

/// The sizes of one kind of distractors.
pub type SeedFacts = Vec<AtSize>;

/// The chapter.
#[derive(Debug)]
pub struct Seeds;

impl Chapter for Seeds {
    type Facts = SeedFacts;

    fn name(&self) -> &'static str {
        "seeds"
    }

    fn plan(&self, bench: &Bench) -> Result<Vec<Plan>> {
        let engine = default_engine(bench)?;
        let control = control(&bench.matrix)?;
        let case = |base: &Arc<Collection>, grade: Grade| Planned {
            case: grade.name().to_owned(),
            origin: Origin::Embedded,
            absent: None,
            inputs_sha256: Some(base.inputs_sha256.clone()),
        };
        let base = bench.collections.get(COLLECTION);
        let on_probe = measure(probe::collection(), Grade::Mixed, engine, control, &[100], &[1]);
        let versions = format!("{} {}", version::of_engine(engine), version::of_engine(control));
        Ok(vec![Plan {
            name: Chapter::name(self).to_owned(),
            configuration: engine.configuration(),
            version: version::of(&versions, &on_probe.map_err(|error| error.to_string())),
            cases: base.into_iter().flat_map(|base| Grade::DISTRACTORS.map(|grade| case(base, grade))).collect(),
        }])
    }

    fn cost_ms(&self, _: &Bench, _: &Plan, _: &Planned) -> u64 {
        14_000
    }

    fn measure(&self, bench: &Bench, plans: &[Plan], step: Step<'_>) -> Result<Vec<Fresh<SeedFacts>>> {
        let Some(base) = bench.collections.get(COLLECTION) else { return Ok(Vec::new()) };
        let (engine, control) = (default_engine(bench)?, control(&bench.matrix)?);
        let mut measured = Vec::new();
        for case in measurable(plans) {
            step(&format!("{case} distractors of {} seeds", SEEDS.len()));
            let outcome = measure(base, case.parse()?, engine, control, &SIZES, &SEEDS);
            measured.push(Fresh {
                results: Chapter::name(self).to_owned(),
                case: case.to_owned(),
                inputs_sha256: base.inputs_sha256.clone(),
                outcome: outcome.map_or_else(|error| Outcome::Failed(error.to_string()), Outcome::Measured),
            });
        }
        Ok(measured)
    }

    fn wrong(&self, own: &[Results<SeedFacts>], all: &Recordings) -> Vec<Wrong> {
        let ranked = super::routing::Ranked::of(all);
        let mut wrong = Vec::new();
        for (results, (record, facts)) in own.iter().flat_map(|one| one.measured().map(move |row| (one, row))) {
            let mut broken = Broken::default();
            broken.unless(facts.iter().map(|one| one.tools).eq(SIZES), "the sizes are not those to which it is grown");
            for one in facts {
                let values = || one.default.iter().chain(&one.control);
                values().for_each(|value| broken.share("recall@5", *value));
                let whole = one.default.len() == SEEDS.len() && one.control.len() == SEEDS.len();
                broken.unless(whole, "not one value for each seed");
                let Ok(grade) = record.case.parse() else { continue };
                // The first seed is that of the other chapters. Searches here stop at five hits and not after ties.
                let case = Growth { grade, size: one.tools }.case(COLLECTION);
                for (engine, values) in [(DEFAULT, &one.default), (CONTROL, &one.control)] {
                    let known = ranked.facts(engine, &case).and_then(|facts| facts.measures.get("recall@5"));
                    let is_same = known.zip(values.first()).is_none_or(|(known, own)| (known.mean - own).abs() < 0.01);
                    broken.unless(is_same, format!("recall@5 of `{engine}` with {} tools differs there", one.tools));
                }
            }
            wrong.extend(Wrong::each(&results.name, &record.case, broken.reasons()));
        }
        wrong
    }

    fn render(&self, own: &[Results<SeedFacts>], _: &Tables, document: &mut Document) {
        if own.iter().all(|results| results.records.is_empty()) {
            return;
        }
        document.heading("Growth by seeds");
        own.iter().for_each(|results| {
            document.figure(figure(results));
            document.table(
                &format!(
                    "recall@5 of `{DEFAULT}` and `{CONTROL}` when {COLLECTION} is grown with {} seeds: the mean over \
                     the seeds with its 95 % interval (Student's t over the seeds), and the lowest and the highest of \
                     any. The difference is taken seed by seed; \"led\" counts the seeds with which `{DEFAULT}` is \
                     ahead. At {} tools there are no distractors yet, only the core.",
                    SEEDS.len(),
                    SIZES[0],
                ),
                &by_size(results),
            );
        });
    }

    fn answers(&self, own: &[Results<SeedFacts>], _: &Tables) -> Vec<Answer> {
        own.iter().filter_map(crowded).map(|text| Answer::new(Question::Failure, text)).collect()
    }

    fn terminal(&self, own: &[Results<SeedFacts>]) -> String {
        own.iter().map(|results| table::plain(&[by_size(results)])).collect()
    }
}

fn control(matrix: &Matrix) -> Result<&RouterEngine> {
    matrix.engine(CONTROL).ok_or_else(|| anyhow::anyhow!("engines.toml has no `{CONTROL}`"))
}

fn measure(
    base: &Collection,
    grade: Grade,
    engine: &RouterEngine,
    control: &RouterEngine,
    sizes: &[usize],
    seeds: &[u64],
) -> Result<SeedFacts, EvalError> {
    let at = |size: &usize| {
        let by_seed = seeds.par_iter().map(|seed| {
            let grown = grow(base, Growth { grade, size: *size }, *seed)?;
            let recall = |engine: &RouterEngine| recall_as_served(&grown, engine.config());
            Ok((recall(engine)?, recall(control)?))
        });
        let (default, control): (Vec<Vec<f64>>, Vec<Vec<f64>>) =
            by_seed.collect::<Result<Vec<_>, EvalError>>()?.into_iter().unzip();
        let means = |recalls: &[Vec<f64>]| recalls.iter().map(|one| round6(mean(one.iter().copied()))).collect();
        let queries = default.iter().map(Vec::len).sum();
        Ok(AtSize { tools: *size, queries, default: means(&default), control: means(&control) })
    };
    sizes.iter().map(at).collect()
}

/// The mean over the seeds with its interval; without two seeds there is none.
fn shown(values: &[f64], show: fn(&Estimate) -> String) -> String {
    over_sets(values).as_ref().map_or(MISSING.to_owned(), show)
}

/// What is left among the most distractors over the seeds: of mixed kinds, and of those that are most like the right tool.
fn crowded(results: &Results<SeedFacts>) -> Option<String> {
    let of = |grade: Grade| results.measured().find(|(record, _)| record.case == grade.name());
    let own = |one: &AtSize| shown(&one.default, estimate);
    let control = |one: &AtSize| share(mean(one.control.iter().copied()));
    let (record, facts) = of(Grade::Mixed)?;
    let (first, last) = (facts.first()?, facts.last()?);
    let near = of(Grade::NearDuplicate).and_then(|(_, facts)| facts.last());
    let near = near.map_or_else(String::new, |last| {
        let tools = count(last.tools);
        format!("; {} among {tools} where all are near-duplicates of right tools ({})", own(last), control(last))
    });
    Some(format!(
        "[Crowds](routing-growth.md) of tools hurt: over [{} seeds](seeds.md), recall@5 on {COLLECTION} is {} among {} \
         tools, and {} among {} with added ones of mixed kinds (flat BM25 {} and {}){near}.{}",
        last.default.len(),
        own(first),
        count(first.tools),
        own(last),
        count(last.tools),
        control(first),
        control(last),
        results.mark(record),
    ))
}

/// recall@5 of the default over the seeds against catalog size, one line per grade of distractors, each with its control.
fn figure(results: &Results<SeedFacts>) -> Option<Figure> {
    let point = |one: &AtSize, values: &[f64], with_band: bool| {
        let Estimate { mean, low, high } = over_sets(values)?;
        Some(Point { tools: one.tools, value: mean, band: with_band.then_some((low.max(0.0), high.min(1.0))) })
    };
    // In the order and the colours of the picture of one seed.
    let of = |grade: &Grade| results.measured().find(|(record, _)| record.case == grade.name());
    let drawn = Grade::DISTRACTORS.iter().enumerate().filter_map(|(color, grade)| Some((color, of(grade)?)));
    let lines = drawn.map(|(color, (record, facts))| Line {
        name: results.label(record),
        color,
        points: facts.iter().filter_map(|one| point(one, &one.default, true)).collect(),
        control: facts.iter().filter_map(|one| point(one, &one.control, false)).collect(),
    });
    let title = format!(
        "recall@5 by catalog size, distractors and {} seeds, {DEFAULT} and thin flat BM25: {COLLECTION}",
        SEEDS.len()
    );
    let y_title = "recall@5 (mean of the seeds, 95 % interval)";
    line_figure("seeds-rot.svg".to_owned(), title, y_title, Scale::Share, lines.collect())
}

fn by_size(results: &Results<SeedFacts>) -> Table {
    let mut table = Table::new(titles(DEFAULT));
    for (record, facts) in results.measured() {
        for one in facts {
            let pairs = one.default.iter().zip(&one.control);
            let differences: Vec<f64> = pairs.map(|(default, control)| default - control).collect();
            let [default, control] = [&one.default, &one.control]
                .map(|values| [shown(values, estimate)].into_iter().chain(ends(values).map(share)));
            let led = differences.iter().filter(|difference| **difference > 0.0 && !same(**difference, 0.0)).count();
            let front = [results.label(record), count(one.tools)];
            let apart = [shown(&differences, difference)].into_iter().chain(ends(&differences).map(signed));
            let cells = default.chain(control).chain(apart);
            let last = format!("{led} of {}", differences.len());
            table.row(front.into_iter().chain(cells).chain([last]).collect::<Vec<_>>());
        }
    }
    table
}

/// The titles of a table of what an engine called `own` and the control gave over the seeds.
#[must_use]
pub fn titles(own: &str) -> [&str; 12] {
    let (least, most) = ("least", "most");
    ["distractors", "tools", own, least, most, CONTROL, least, most, "difference", least, most, "led"]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::recorded;
    use contextweaver_routing::RoutingConfig;

    #[test]
    fn another_seed_is_another_draw_and_the_same_seed_is_not() {
        let words = RouterEngine::new(DEFAULT, RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        let run = |seeds: &[u64]| measure(probe::collection(), Grade::Mixed, &words, &words, &[100], seeds).unwrap();
        let facts = run(&[1, 2, 1]);
        let [one] = &facts[..] else { panic!("{facts:?}") };
        assert_eq!((one.default[0], one.default.len()), (one.default[2], 3));
        assert_eq!(one.default, one.control);
        assert_ne!(run(&[1])[0].queries, 0);
    }

    #[test]
    fn rows_show_mean_interval_and_spread() {
        let at = |tools: usize, default: [f64; 3]| AtSize {
            tools,
            queries: 12,
            default: default.to_vec(),
            control: vec![0.6, 0.5, 0.4],
        };
        let facts = vec![at(50, [0.9, 0.9, 0.9]), at(1000, [0.5, 0.6, 0.7])];
        let results = recorded("seeds", vec![("mixed", Outcome::Measured(facts))]);
        let shown = by_size(&results).plain();
        let row = shown.lines().last().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        // Student's t with two degrees of freedom: 4.303 · 0.1 / √3.
        let expected =
            "mixed 1,000 .600 [.35, .85] .500 .700 .500 [.25, .75] .400 .600 +.100 [−.397, +.597] −.100 +.300 2 of 3";
        assert_eq!(row, expected, "{shown}");
        let said = crowded(&results).unwrap();
        assert!(
            said.ends_with(
                "is .900 [.90, .90] among 50 tools, and .600 [.35, .85] among 1,000 with added ones of mixed kinds (flat BM25 \
                 .500 and .500)."
            ),
            "{said}"
        );
        let svg = figure(&results).unwrap().svg;
        assert!(svg.contains("mixed: .900 at 50, .600 at 1,000 (control: .500 at 50, .500 at 1,000)"), "{svg}");
        assert!(crowded(&recorded("seeds", Vec::new())).is_none() && figure(&recorded("seeds", Vec::new())).is_none());
    }
}
