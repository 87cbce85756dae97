//! Grids of configurations around the defaults: whether another one is better, and what choosing from a grid is worth.
//!
//! Only what the checkout itself holds is swept, so that every run computes the records, whatever else is on the machine.

mod page;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use anyhow::{Result, bail};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::chapter::{Chapter, Fresh, Inputs, Plan, Planned, Recordings, Step, Wrong, measurable};
use crate::eval::collection::Collection;
use crate::eval::context::run;
use crate::eval::context::scenario::Scenario;
use crate::eval::context::sweep as context;
use crate::eval::engine::RouterEngine;
use crate::eval::identity::{Broken, same};
use crate::eval::matrix::DEFAULT;
use crate::eval::record::{Compared, Origin, Outcome};
use crate::eval::sweep as routing;
use crate::eval::tables::Tables;
use crate::eval::version;
use crate::eval::workspace::Bench;
use crate::report::document::Document;
use crate::report::table;
use crate::results::Results;
use contextweaver_context::ContextConfig;
use contextweaver_context::summary::StructureSummarizer;
use contextweaver_core::text::sha256_hex;
use contextweaver_routing::RoutingConfig;

/// The name of the chapter and of its results file.
const NAME: &str = "sweep";

/// The record of the grid of the context engine.
const CONTEXT: &str = "context";

/// The record of the grid of the router.
const ROUTING: &str = "routing";

/// What a record of the chapter holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SweepFacts {
    /// Of the context engine, on scenarios.
    Context(Box<context::Swept>),
    /// Of the router, on collections.
    Routing(Box<routing::Swept>),
}

impl<'de> Deserialize<'de> for SweepFacts {
    /// By the member that only one of them has, so that an error names the field that is wrong.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let facts = Value::deserialize(deserializer)?;
        let record = match facts.get("catalogs") {
            Some(_) => serde_json::from_value(facts).map(Self::Routing),
            None => serde_json::from_value(facts).map(Self::Context),
        };
        record.map_err(D::Error::custom)
    }
}

/// The chapter.
#[derive(Debug)]
pub struct Sweep;

impl Chapter for Sweep {
    type Facts = SweepFacts;

    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self, bench: &Bench) -> Result<Vec<Plan>> {
        let mut cases = Vec::new();
        if !scenarios(bench)?.is_empty() {
            cases.push(CONTEXT);
        }
        if !collections(bench).is_empty() {
            cases.push(ROUTING);
        }
        let planned =
            |case: &str| Planned { case: case.to_owned(), origin: Origin::Embedded, absent: None, inputs_sha256: None };
        let (configuration, version) = of_grids();
        Ok(vec![Plan {
            name: NAME.to_owned(),
            configuration: configuration.clone(),
            version: version.clone(),
            cases: cases.into_iter().map(planned).collect(),
        }])
    }

    fn inputs(&self, bench: &Bench, planned: &Planned) -> Result<Inputs> {
        Ok(Inputs { sha256: inputs(bench, &planned.case)?, beside: String::new() })
    }

    fn cost_ms(&self, _: &Bench, _: &Plan, _: &Planned) -> u64 {
        20_000
    }

    fn measure(&self, bench: &Bench, plans: &[Plan], step: Step<'_>) -> Result<Vec<Fresh<SweepFacts>>> {
        let mut measured = Vec::new();
        for case in measurable(plans) {
            step(&format!("{NAME} of {case}"));
            let outcome = match case {
                CONTEXT => of_context(bench)?.map(Box::new).map(SweepFacts::Context),
                _ => of_routing(bench).map(Box::new).map(SweepFacts::Routing),
            };
            measured.push(Fresh {
                results: NAME.to_owned(),
                case: case.to_owned(),
                inputs_sha256: inputs(bench, case)?,
                outcome: outcome.map_or_else(Outcome::Failed, Outcome::Measured),
            });
        }
        Ok(measured)
    }

    fn wrong(&self, own: &[Results<SweepFacts>], _: &Recordings) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        for (results, (record, facts)) in own.iter().flat_map(|one| one.measured().map(move |row| (one, row))) {
            let mut broken = Broken::default();
            match facts {
                SweepFacts::Context(swept) => check_context(swept, &mut broken),
                SweepFacts::Routing(swept) => check_routing(swept, &mut broken),
            }
            wrong.extend(Wrong::each(&results.name, &record.case, broken.reasons()));
        }
        wrong
    }

    fn render(&self, own: &[Results<SweepFacts>], _: &Tables, document: &mut Document) {
        own.iter().filter(|results| !results.records.is_empty()).for_each(|results| page::chapter(document, results));
    }

    fn terminal(&self, own: &[Results<SweepFacts>]) -> String {
        own.iter().map(|results| table::plain(&[page::words(results)])).collect()
    }
}

/// What the grids vary, as TOML, and the version of the two engines under their defaults: no configuration of a grid is known to
/// give the same when one of these gives something else. Computed once.
fn of_grids() -> &'static (String, String) {
    static GRIDS: LazyLock<(String, String)> = LazyLock::new(|| {
        let grids = toml::Table::from_iter([
            (CONTEXT.to_owned(), toml::Value::Table(context::values_of_grid())),
            (ROUTING.to_owned(), toml::Value::Table(routing::values_of_grid())),
        ]);
        // Numbers and names, which TOML can always express.
        let configuration = toml::to_string(&grids).unwrap_or_default();
        let engine = RouterEngine::new(DEFAULT, RoutingConfig::default());
        let versions = [run::version(&ContextConfig::default()), version::of_engine(&engine).to_owned()];
        let version = version::of(&configuration, &versions);
        (configuration, version)
    });
    &GRIDS
}

/// The scenarios of the checkout that are one log.
fn scenarios(bench: &Bench) -> Result<Vec<Scenario>> {
    let all = bench.workspace.scenarios()?;
    Ok(all.into_iter().filter(|scenario| scenario.origin == Origin::Embedded).collect())
}

/// The collections of the checkout, in the order of their names.
fn collections(bench: &Bench) -> Vec<&Collection> {
    let cases = bench.matrix.plain_cases();
    let own: BTreeSet<&str> =
        cases.into_iter().filter(|(_, case)| case.origin == Origin::Embedded).map(|(name, _)| name).collect();
    own.into_iter().filter_map(|name| bench.collections.get(name)).map(AsRef::as_ref).collect()
}

/// SHA-256 (hex) of what a record is measured on.
fn inputs(bench: &Bench, case: &str) -> Result<String> {
    let digests = match case {
        CONTEXT => scenarios(bench)?.iter().map(|one| Ok(run::inputs(one, None)?)).collect::<Result<Vec<String>>>()?,
        ROUTING => collections(bench).into_iter().map(|one| one.inputs_sha256.clone()).collect(),
        other => bail!("{other}: a plan for no grid"),
    };
    Ok(sha256_hex(digests.join("\n").as_bytes()))
}

fn of_context(bench: &Bench) -> Result<Result<context::Swept, String>> {
    let scenarios = scenarios(bench)?;
    let mut here = Vec::new();
    for scenario in &scenarios {
        let (_, conversation) = scenario.log()?;
        here.push((scenario, conversation));
    }
    Ok(context::Swept::of(&context::grid(), &here, &StructureSummarizer, || ()))
}

fn of_routing(bench: &Bench) -> Result<routing::Swept, String> {
    routing::Swept::of(&routing::grid(), &collections(bench), || ()).map_err(|error| error.to_string())
}

/// What must hold in a grid of the context engine.
fn check_context(swept: &context::Swept, broken: &mut Broken) {
    let grid = context::grid();
    let names = |one: &context::Row| one.trials.iter().map(|trial| trial.scenario.clone()).collect::<Vec<_>>();
    let Some(first) = swept.configurations.first() else {
        return broken.unless(false, "it has no configuration");
    };
    let is_grid = swept.configurations.iter().map(|one| &one.name).eq(grid.iter().map(|candidate| &candidate.name));
    let is_whole = swept.configurations.iter().all(|one| names(one) == names(first));
    broken.unless(is_grid, "the configurations are not those of the grid");
    broken.unless(is_whole, "a configuration was run on other scenarios than the first");
    if !(is_grid && is_whole) {
        return;
    }
    for one in &swept.configurations {
        one.trials.iter().for_each(|trial| broken.share("kept", trial.kept));
        compared(&one.name, &one.kept_against_first, one.kept - first.kept, broken);
        compared(&one.name, &one.fidelity_against_first, one.fidelity - first.fidelity, broken);
    }
    let holds = swept.again(&grid) == *swept;
    broken.unless(
        holds,
        "sums, fronts, corrected probabilities or what choosing is worth do not follow from its configurations",
    );
}

/// What must hold in a grid of the router.
fn check_routing(swept: &routing::Swept, broken: &mut Broken) {
    let grid = routing::grid();
    let names = |one: &routing::Row| one.collections.iter().map(|on| on.name.clone()).collect::<Vec<_>>();
    let Some(first) = swept.configurations.first() else {
        return broken.unless(false, "it has no configuration");
    };
    let is_grid = swept.configurations.iter().map(|one| &one.name).eq(grid.iter().map(|candidate| &candidate.name));
    let is_whole = swept.configurations.iter().all(|one| names(one) == names(first));
    let is_known = names(first).iter().eq(swept.catalogs.keys());
    broken.unless(is_grid, "the configurations are not those of the grid");
    broken.unless(is_whole && is_known, "a configuration was measured on other collections than the first");
    if !(is_grid && is_whole && is_known) {
        return;
    }
    for one in &swept.configurations {
        compared(&one.name, &one.ndcg_against_first, one.ndcg_at_10 - first.ndcg_at_10, broken);
        compared(&one.name, &one.recall_against_first, one.recall_at_5 - first.recall_at_5, broken);
        for (on, base) in one.collections.iter().zip(&first.collections) {
            let name = format!("{} on {}", one.name, on.name);
            broken.share(&name, on.ndcg_at_10);
            broken.share(&name, on.recall_at_5);
            compared(&name, &on.ndcg_against_first, on.ndcg_at_10 - base.ndcg_at_10, broken);
            compared(&name, &on.recall_against_first, on.recall_at_5 - base.recall_at_5, broken);
        }
    }
    let holds = swept.again(&grid) == *swept;
    broken.unless(
        holds,
        "means, corrected probabilities or what choosing is worth do not follow from its configurations",
    );
}

/// A difference is that of the figures, within its interval, with a probability that is one.
fn compared(name: &str, compared: &Compared, expected: f64, broken: &mut Broken) {
    let Compared { paired, p_holm } = compared;
    broken.interval(name, &paired.difference);
    broken.share(&format!("{name}: its probability"), paired.p);
    broken.unless(*p_holm >= paired.p, format!("{name}: its corrected probability is less than the other"));
    broken.unless(same(paired.difference.mean, expected), format!("{name}: its difference is not that of the figures"));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::eval::probe;
    use crate::eval::workspace::{Scope, Workspace};
    use crate::results::recorded;

    fn routed() -> routing::Swept {
        routing::Swept::of(&routing::grid(), &[probe::collection()], || ()).unwrap()
    }

    /// The grid on two short scenarios of the repository.
    fn compiled() -> context::Swept {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let all = Workspace::find(Some(&root), None).unwrap().scenarios().unwrap();
        let here = all.iter().filter(|scenario| ["refund", "travel"].contains(&scenario.name.as_str()));
        let here: Vec<_> = here.map(|scenario| (scenario, scenario.log().unwrap().1)).collect();
        assert_eq!(here.len(), 2);
        context::Swept::of(&context::grid(), &here, &StructureSummarizer, || ()).unwrap()
    }

    fn wrong(facts: &SweepFacts) -> Vec<String> {
        // As it is read from a file.
        let facts = serde_json::from_str(&serde_json::to_string(facts).unwrap()).unwrap();
        let results = recorded(NAME, vec![("any", Outcome::Measured(facts))]);
        Sweep.wrong(&[results], &Recordings::default()).into_iter().map(|wrong| wrong.reason).collect()
    }

    #[test]
    fn what_is_measured_is_not_wrong_and_a_changed_figure_is() {
        let (routed, compiled) = (routed(), compiled());
        assert_eq!(wrong(&SweepFacts::Routing(Box::new(routed.clone()))), Vec::<String>::new());
        assert_eq!(wrong(&SweepFacts::Context(Box::new(compiled.clone()))), Vec::<String>::new());
        type Forge<S> = fn(&mut S);
        let forged: [(Forge<routing::Swept>, &str); 7] = [
            (|swept| swept.configurations[3].ndcg_at_10 -= 0.1, "its difference is not that of the figures"),
            (|swept| swept.configurations[3].ndcg_against_first.p_holm = 1.5, "do not follow"),
            (|swept| swept.configurations[3].recall_against_first.paired.p = 2.0, "which is not a share"),
            (|swept| swept.at_the_edge.push(("k9".to_owned(), 1.0)), "do not follow"),
            (|swept| swept.configurations[3].name.push('x'), "not those of the grid"),
            (|swept| swept.configurations[3].collections.clear(), "on other collections"),
            (|swept| swept.configurations.clear(), "it has no configuration"),
        ];
        for (forge, expected) in forged {
            let mut swept = routed.clone();
            forge(&mut swept);
            let found = wrong(&SweepFacts::Routing(Box::new(swept)));
            assert!(found.iter().any(|reason| reason.contains(expected)), "{expected}: {found:?}");
        }
        let forged: [(Forge<context::Swept>, &str); 6] = [
            (|swept| swept.configurations[3].tokens -= 1, "do not follow"),
            (|swept| swept.configurations[3].on_front_of_kept ^= true, "do not follow"),
            (|swept| swept.configurations[3].trials[1].kept = -0.5, "which is not a share"),
            (|swept| swept.configurations[3].fidelity += 0.1, "its difference is not that of the figures"),
            (|swept| swept.held_out.as_mut().unwrap().tokens += 1, "do not follow"),
            (|swept| swept.configurations[3].trials.truncate(1), "on other scenarios"),
        ];
        for (forge, expected) in forged {
            let mut swept = compiled.clone();
            forge(&mut swept);
            let found = wrong(&SweepFacts::Context(Box::new(swept)));
            assert!(found.iter().any(|reason| reason.contains(expected)), "{expected}: {found:?}");
        }
    }

    #[test]
    fn both_grids_are_shown() {
        let records = vec![
            (CONTEXT, Outcome::Measured(SweepFacts::Context(Box::new(compiled())))),
            (ROUTING, Outcome::Measured(SweepFacts::Routing(Box::new(routed())))),
        ];
        let mut page = Document::default();
        Sweep.render(&[recorded(NAME, records)], &Tables::default(), &mut page);
        let text = page.text();
        for expected in ["| default", "| left out", "| plain bm25f", "| best of all", "p, Holm"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        // Every configuration but the default is compared.
        let compared = format!(" {} |", routing::grid().len() - 1);
        assert!(text.contains(&compared) && text.contains(" 143 |"), "{text}");
    }

    #[test]
    fn what_the_checkout_holds_is_swept_and_nothing_else() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let bench = Bench::open(Workspace::find(Some(&root), None).unwrap(), Scope::Usual).unwrap();
        let names: Vec<&str> = collections(&bench).into_iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["household", "workbench"]);
        assert!(scenarios(&bench).unwrap().iter().all(|one| one.origin == Origin::Embedded && one.is_present()));
        assert_ne!(inputs(&bench, CONTEXT).unwrap(), inputs(&bench, ROUTING).unwrap());
    }
}
