//! The gateway: what a client is shown of servers through it, and what calls cost.
//!
//! Facts are measured in [`crate::eval::gateway`]; here they are planned, verified and shown.

mod overhead;
mod page;

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use rayon::prelude::*;

use crate::chapter::{
    Absent, Answer, Chapter, Fresh, Inputs, Plan, Planned, Question, Recordings, Step, Wrong, measurable,
};
use crate::eval::gateway::case::{Case, TOGETHER};
use crate::eval::gateway::kinds;
use crate::eval::gateway::record::{GatewayFacts, Injected, KindFacts, SurfaceFacts};
use crate::eval::gateway::run::{configuration, inputs, record, version};
use crate::eval::identity::Broken;
use crate::eval::record::Origin;
use crate::eval::tables::Tables;
use crate::eval::workspace::Bench;
use crate::report::document::Document;
use crate::report::table;

use page::{GatewayResults, name};

/// The chapter.
#[derive(Debug)]
pub struct GatewayChapter;

impl Chapter for GatewayChapter {
    type Facts = GatewayFacts;

    fn name(&self) -> &'static str {
        "gateway"
    }

    fn plan(&self, bench: &Bench) -> Result<Vec<Plan>> {
        let planned = |case: &Case| Planned {
            case: case.id(),
            origin: case.origin,
            absent: (!case.is_here()).then_some(Absent::Inputs),
            inputs_sha256: None,
        };
        Ok(vec![Plan {
            name: Chapter::name(self).to_owned(),
            configuration: configuration(),
            version: version(),
            cases: bench.workspace.gateway().cases()?.iter().map(planned).collect(),
        }])
    }

    fn inputs(&self, bench: &Bench, planned: &Planned) -> Result<Inputs> {
        let cases = bench.workspace.gateway().cases()?;
        let case = cases.iter().find(|case| case.id() == planned.case).context("a plan for no case")?;
        Ok(Inputs { sha256: inputs(case)?, beside: String::new() })
    }

    fn measure(&self, bench: &Bench, plans: &[Plan], step: Step<'_>) -> Result<Vec<Fresh<GatewayFacts>>> {
        let cases = bench.workspace.gateway().cases()?;
        let wanted: BTreeSet<&str> = measurable(plans).collect();
        let here: Vec<&Case> = cases.iter().filter(|case| wanted.contains(case.id().as_str())).collect();
        let run = |case: &&Case| {
            step(&case.id());
            let (inputs_sha256, outcome) = record(case)?;
            Ok(Fresh { results: Chapter::name(self).to_owned(), case: case.id(), inputs_sha256, outcome })
        };
        // A gateway blocks the thread that calls it. On the threads that build indexes it would wait for itself.
        let threads = rayon::ThreadPoolBuilder::new().build()?;
        threads.install(|| here.par_iter().map(run).collect())
    }

    fn wrong(&self, own: &[GatewayResults], _: &Recordings) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        for results in own {
            let all = Together::of(results);
            for (record, facts) in results.measured() {
                let mut broken = Broken::default();
                check(facts, &mut broken);
                if let GatewayFacts::Surface(facts) = facts
                    && name(&record.case) == TOGETHER
                {
                    broken.unless(all.is(facts), "it is not the sum of the public catalogs");
                }
                wrong.extend(Wrong::each(&results.name, &record.case, broken.reasons()));
            }
        }
        wrong
    }

    fn render(&self, own: &[GatewayResults], tables: &Tables, document: &mut Document) {
        own.iter().for_each(|results| page::chapter(document, results, tables));
    }

    fn terminal(&self, own: &[GatewayResults]) -> String {
        own.iter().map(|results| table::plain(&page::tables(results))).collect()
    }

    fn front(&self, own: &[GatewayResults]) -> Vec<String> {
        own.iter().filter_map(page::sentence).collect()
    }

    fn answers(&self, own: &[GatewayResults], tables: &Tables) -> Vec<Answer> {
        let hop = overhead::answer(tables).map(|text| Answer::new(Question::Cost, text));
        own.iter().flat_map(page::answers).chain(hop).collect()
    }
}

/// What the public catalogs have one by one.
#[derive(Debug, Default)]
struct Together {
    servers: usize,
    direct_tokens: usize,
}

impl Together {
    fn of(results: &GatewayResults) -> Self {
        let mut sum = Self::default();
        for (record, facts) in results.measured().filter(|(record, _)| record.origin == Origin::Public) {
            if let GatewayFacts::Surface(facts) = facts
                && name(&record.case) != TOGETHER
            {
                sum.servers += facts.servers;
                sum.direct_tokens += facts.direct_tokens;
            }
        }
        sum
    }

    fn is(&self, facts: &SurfaceFacts) -> bool {
        (self.servers, self.direct_tokens) == (facts.servers, facts.direct_tokens)
    }
}

/// What must hold among the figures of one kind of item.
fn check_kind(facts: &KindFacts, broken: &mut Broken) {
    let name = facts.kind.name();
    let mut requests = 0;
    for (manner, search) in [("said", &facts.said), ("asked", &facts.asked)] {
        requests += search.first_tools.len();
        for (whose, recall) in [("ours", &search.ours), ("control", &search.control)] {
            broken.estimate(&format!("{name}, {manner}, {whose}: recall@1"), &recall.recall_at_1);
            broken.estimate(&format!("{name}, {manner}, {whose}: recall@5"), &recall.recall_at_5);
            broken.unless(
                recall.ranks.queries() == search.first_tools.len() && *recall == kinds::recall(recall.ranks.clone()),
                format!("{name}, {manner}, {whose}: the ranks give other recalls"),
            );
        }
        broken.paired(&format!("{name}, {manner}"), &search.versus_control);
        let difference = kinds::difference(&search.ours.ranks, &search.control.ranks, &search.first_tools);
        broken.unless(
            difference == search.versus_control,
            format!("{name}, {manner}: the ranks give another difference from the control"),
        );
    }
    broken.unless(facts.pages == requests, format!("{name}: there are more or fewer pages than requests"));
    broken.unless(
        facts.largest_page <= facts.page_tokens && facts.page_tokens <= facts.pages * facts.largest_page,
        format!("{name}: the pages do not add up"),
    );
}

/// What must hold among the counts of one case.
fn check(facts: &GatewayFacts, broken: &mut Broken) {
    let injected = match facts {
        GatewayFacts::Surface(facts) => {
            broken.unless(facts.queries <= facts.tools, "more names than tools");
            broken.unless((facts.page_tokens > 0) == facts.page_query.is_some(), "a page of no query, or none of one");
            return;
        }
        GatewayFacts::Kinds(facts) => {
            facts.kinds.iter().for_each(|kind| check_kind(kind, broken));
            return;
        }
        GatewayFacts::Session(facts) => {
            let passed = facts.calls.checked_sub(facts.refused.len());
            broken.unless(passed.is_some_and(|passed| facts.altered <= passed), "more calls went wrong than there are");
            &facts.injected
        }
        GatewayFacts::Scenario(facts) => {
            broken.unless(facts.failures.len() <= facts.steps, "more steps failed than there are");
            &facts.injected
        }
    };
    let Injected { artifacts, recovered, viewed, texts, .. } = injected;
    broken.unless(recovered <= artifacts && texts <= artifacts, "more artifacts are recovered than there are");
    broken.unless(viewed <= texts, "more texts are viewed than there are");
}
