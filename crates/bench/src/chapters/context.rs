//! The context engine: event logs in, prompts within a budget out, and what of the log is still in them.
//!
//! Facts are measured in [`crate::eval::context`]; here they are planned, verified and shown. Context engines of others have
//! a results file of their own beside it, which `bench run --engines` records and no run of the scorecard computes. So have
//! scenarios that rest on more than one log: other things are measured on them.

mod fidelity;
mod others;
mod ways;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context, Result};
use rayon::prelude::*;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use self::fidelity::{Headline, Sums};
use self::others::Others;
use self::ways::{WAYS, Ways};
use crate::chapter::{
    Absent, Answer, Chapter, Fresh, Inputs, Plan, Planned, Question, Recordings, Step, Wrong, measurable,
};
use crate::eval::context::fidelity::{Against, AtCap, Fidelity, Label, Survivors};
use crate::eval::context::question::Asks;
use crate::eval::context::record::ContextFacts;
use crate::eval::context::rival::ContextRivalFacts;
use crate::eval::context::run::{configuration, inputs, record, version};
use crate::eval::context::scenario::Scenario;
use crate::eval::context::way::record::WayFacts;
use crate::eval::identity::{Broken, same};
use crate::eval::matrix::Matrix;
use crate::eval::statistics::median;
use crate::eval::tables::Tables;
use crate::eval::workspace::Bench;
use crate::report::document::{Document, Figure};
use crate::report::number::{MISSING, count, fixed, percent, share};
use crate::report::plot::{Interval, IntervalPlot, Scale};
use crate::report::readme::FOLDER;
use crate::report::table::Table;
use crate::results::{KEPT, Results, worst};
use contextweaver_context::ContextConfig;
use contextweaver_context::summary::StructureSummarizer;

pub use self::fidelity::fidelity;

/// The name of the chapter and of the results file of our engine.
pub const NAME: &str = "context";

/// The name of the results file of engines of others.
pub const RIVALS: &str = "context-rivals";

/// The results of our engine.
type ContextResults = Results<Box<ContextFacts>>;

/// What a record of the chapter holds.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum ContextRecord {
    /// Of our engine.
    Own(Box<ContextFacts>),
    /// Of an engine of others.
    Other(Box<ContextRivalFacts>),
    /// Of our engine, on a scenario that rests on more than one log.
    Way(Box<WayFacts>),
}

impl<'de> Deserialize<'de> for ContextRecord {
    /// By the member that only records of one kind have, so that an error names the field that is wrong.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let facts = Value::deserialize(deserializer)?;
        let record = match (facts.get("requirements_sha256"), facts.get("way")) {
            (Some(_), _) => serde_json::from_value(facts).map(Self::Other),
            (None, Some(_)) => serde_json::from_value(facts).map(Self::Way),
            (None, None) => serde_json::from_value(facts).map(Self::Own),
        };
        record.map_err(D::Error::custom)
    }
}

/// The chapter.
#[derive(Debug)]
pub struct ContextChapter;

/// The results of our engine on one log each, those of engines of others, and ours on more than one log.
fn parts(own: &[Results<ContextRecord>]) -> (Vec<ContextResults>, Others, Ways) {
    let results = |name: &'static str| own.iter().filter(move |results| results.name == name);
    let of_ours = |record: &ContextRecord| match record {
        ContextRecord::Own(facts) => Some(facts.clone()),
        ContextRecord::Other(_) | ContextRecord::Way(_) => None,
    };
    let of_others = |record: &ContextRecord| match record {
        ContextRecord::Other(facts) => Some(facts.as_ref().clone()),
        ContextRecord::Own(_) | ContextRecord::Way(_) => None,
    };
    let of_ways = |record: &ContextRecord| match record {
        ContextRecord::Way(facts) => Some(facts.clone()),
        ContextRecord::Own(_) | ContextRecord::Other(_) => None,
    };
    let ours = results(NAME).map(|results| results.picked(of_ours)).collect();
    let others = Others(results(RIVALS).map(|results| results.picked(of_others)).collect());
    (ours, others, Ways(results(WAYS).map(|results| results.picked(of_ways)).collect()))
}

impl Chapter for ContextChapter {
    type Facts = ContextRecord;

    fn name(&self) -> &'static str {
        NAME
    }

    fn files(&self, matrix: &Matrix) -> Vec<String> {
        let rivals = (!matrix.context_rivals.is_empty()).then_some(RIVALS);
        [NAME].into_iter().chain(rivals).chain([WAYS]).map(str::to_owned).collect()
    }

    fn plan(&self, bench: &Bench) -> Result<Vec<Plan>> {
        let config = ContextConfig::default();
        let planned = |scenario: &Scenario| Planned {
            case: scenario.name.clone(),
            origin: scenario.origin,
            absent: (!bench.workspace.has_scenario(scenario)).then_some(Absent::Inputs),
            inputs_sha256: None,
        };
        let scenarios = bench.workspace.scenarios()?;
        let ours = Plan {
            name: NAME.to_owned(),
            configuration: configuration(&config),
            version: version(&config),
            cases: scenarios.iter().map(planned).collect(),
        };
        let files = self.files(&bench.matrix);
        let others = files.iter().any(|file| file == RIVALS).then(|| others::plan(&bench.matrix, &scenarios));
        Ok([Some(ours), others.transpose()?, Some(ways::plan(bench)?)].into_iter().flatten().collect())
    }

    fn inputs(&self, bench: &Bench, planned: &Planned) -> Result<Inputs> {
        if let Some(inputs) = ways::inputs_of(bench, &planned.case)? {
            return Ok(inputs);
        }
        let all = bench.workspace.scenarios()?;
        let scenario = all.iter().find(|scenario| scenario.name == planned.case).context("a plan for no scenario")?;
        let catalog = bench.workspace.catalog_sha256(scenario)?;
        Ok(Inputs { sha256: inputs(scenario, catalog.as_deref())?, beside: String::new() })
    }

    fn measure(&self, bench: &Bench, plans: &[Plan], step: Step<'_>) -> Result<Vec<Fresh<ContextRecord>>> {
        let all = bench.workspace.scenarios()?;
        let wanted: BTreeSet<&str> = measurable(plans).collect();
        let here: Vec<&Scenario> = all.iter().filter(|scenario| wanted.contains(scenario.name.as_str())).collect();
        let catalogs = bench.workspace.counted_catalogs(&here)?;
        let config = ContextConfig::default();
        let run = |scenario: &&Scenario| {
            step(&format!("context of {}", scenario.name));
            let catalog = scenario.catalog.as_ref().and_then(|name| catalogs.get(name));
            let (inputs_sha256, outcome) = record(scenario, catalog, &config, &StructureSummarizer)?;
            let outcome = outcome.map(ContextRecord::Own);
            Ok(Fresh { results: NAME.to_owned(), case: scenario.name.clone(), inputs_sha256, outcome })
        };
        let mut fresh = here.par_iter().map(run).collect::<Result<Vec<Fresh<ContextRecord>>>>()?;
        fresh.extend(ways::measure(bench, &wanted, step)?);
        Ok(fresh)
    }

    fn wrong(&self, own: &[Results<ContextRecord>], _: &Recordings) -> Vec<Wrong> {
        let (ours, others, ways) = parts(own);
        let mut wrong = others.wrong(&ours);
        wrong.extend(ways.wrong());
        for (results, (record, facts)) in ours.iter().flat_map(|one| one.measured().map(move |row| (one, row))) {
            let mut broken = Broken::default();
            check(facts, &mut broken);
            wrong.extend(Wrong::each(&results.name, &record.case, broken.reasons()));
        }
        wrong
    }

    fn render(&self, own: &[Results<ContextRecord>], _: &Tables, document: &mut Document) {
        let (ours, others, ways) = parts(own);
        ours.iter().for_each(|results| chapter(document, results, &others, &ways));
    }

    fn terminal(&self, own: &[Results<ContextRecord>]) -> String {
        let (ours, _, ways) = parts(own);
        ours.iter().map(terminal).chain([ways.terminal()]).collect()
    }

    fn front(&self, own: &[Results<ContextRecord>]) -> Vec<String> {
        let (ours, others, _) = parts(own);
        ours.iter().filter_map(|results| sentence(results, &others)).collect()
    }

    fn answers(&self, own: &[Results<ContextRecord>], _: &Tables) -> Vec<Answer> {
        let (ours, others, ways) = parts(own);
        let answers =
            ours.iter().flat_map(|results| answers(results, &others).into_iter().chain(others.answer(results)));
        answers.chain(ways.answer()).collect()
    }

    fn speaks_of(&self, name: &str) -> bool {
        name == NAME || name == WAYS
    }
}

/// What must hold among the counts of one scenario.
fn check(facts: &ContextFacts, broken: &mut Broken) {
    let dropped: usize = facts.dropped.values().sum();
    broken.unless(facts.included + dropped == facts.candidates, "what is shown and left out is not what there was");
    broken.unless(facts.candidates <= facts.events, "more candidates than events");
    broken.unless(facts.prompt_tokens <= facts.budget, "the prompt is over its budget");
    broken.ratio("budget use", facts.budget_use, facts.prompt_tokens as f64, facts.budget as f64);
    let (naive, all) = (&facts.naive, carried(facts));
    let expected = if all == 0 { 0.0 } else { 1.0 - facts.prompt_tokens as f64 / all as f64 };
    broken.unless(same(naive.reduction, expected), format!("saved: {} is not what the tokens give", naive.reduction));
    broken.unless(facts.prompt_tokens <= naive.history, "the prompt is longer than the conversation");
    let kept = &facts.kept;
    broken.unless(kept.missing.len() <= kept.required, "more required items are missing than there are");
    let facts_found = kept.facts_in_prompt + kept.facts_by_view + kept.lost.len();
    broken.unless(facts_found == kept.facts, "facts in the prompt, by view and lost are not all facts");
    broken.unless(kept.calls_accounted <= kept.calls, "more calls are accounted for than there are");
    let firewall = &facts.firewall;
    broken.unless(firewall.recovered <= firewall.contents, "more contents are recovered than there are");
    broken.unless(firewall.shown_tokens <= firewall.result_tokens, "a part of the results costs more than all of them");
    if let Some(prefix) = &facts.prefix {
        broken.share("prefix", prefix.mean);
        broken.ascending("the least and the mean prefix", &[prefix.least, prefix.mean]);
    }
    if let Some(fidelity) = &facts.fidelity {
        fidelity.caps.iter().for_each(|at| check_cap(at, Some(fidelity.results), broken));
        // People ask about some of the results.
        fidelity.questions.iter().for_each(|at| check_cap(at, None, broken));
    }
}

/// What must hold among what survives of a text for each result: parts are those of the whole.
fn check_survivors<L: Label>(kept: &Survivors<L>, broken: &mut Broken) {
    let sums = |parts: &mut dyn Iterator<Item = (usize, usize)>| {
        parts.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
    };
    let all = (kept.all.asked, kept.all.kept);
    let classes = sums(&mut kept.classes.values().map(|one| (one.asked, one.kept)));
    let kinds = sums(&mut kept.kinds.values().map(|one| (one.asked, one.kept)));
    let core = kept.classes.iter().filter(|(class, _)| class.is_in_core());
    let core = sums(&mut core.map(|(_, one)| (one.asked, one.kept)));
    broken.unless(classes == all && kinds == all, "classes or kinds do not add up to all probes");
    broken.unless(core == (kept.core.asked, kept.core.kept), "the core classes do not add up to the core");
    let parts = kept.classes.values().chain(kept.kinds.values());
    broken.unless(parts.into_iter().all(|one| one.kept <= one.asked), "more probes survive than were asked");
}

/// What must hold among what survives at one cap of `results`, where their number is known.
fn check_cap<L: Label>(at: &AtCap<L>, results: Option<usize>, broken: &mut Broken) {
    let met = |against: &Against<L>| -> usize {
        let duels = against.duels.values();
        duels.map(|duel| duel.results_won + duel.results_lost + duel.results_even).sum()
    };
    let results = results.or_else(|| at.controls.values().next().map(met)).unwrap_or_default();
    let whole = |kept: &Survivors<L>, broken: &mut Broken| {
        check_survivors(kept, broken);
        broken.unless(kept.tokens <= results * at.cap, "the texts are over their cap");
    };
    whole(&at.kept, broken);
    for (control, against) in &at.controls {
        whole(&against.kept, broken);
        for (kind, ours) in &at.kept.kinds {
            let theirs = against.kept.kinds.get(kind).copied().unwrap_or_default();
            let duel = against.duels.get(kind).copied().unwrap_or_default();
            let name = control.name();
            broken.unless(ours.asked == theirs.asked, format!("{name} is asked otherwise about {kind}"));
            broken.unless(
                ours.kept + duel.lost == theirs.kept + duel.won,
                format!("what the summary of {kind} wins and loses against {name} is not the difference"),
            );
        }
        broken.unless(met(against) == results, "a result is compared more or less than once");
    }
}

/// The scenarios that were measured with their labels, in the order of the records.
fn measured(context: &ContextResults) -> Vec<(String, &ContextFacts)> {
    context.measured().map(|(record, facts)| (context.label(record), facts.as_ref())).collect()
}

/// The pages: one function per section, in their order.
fn chapter(page: &mut Document, context: &ContextResults, others: &Others, ways: &Ways) {
    page.heading("Context");
    page.block(
        "What the context engine makes of event logs: a prompt within its budget, large results behind a firewall. The \
         scenarios of the project are part of the repository; those called `recorded` (real sessions) and `peer` (logs \
         of the Python project) are not; where they are absent, their rows are kept from an earlier run and marked. \
         Tokens are exact counts.",
    );
    page.figure(tokens_figure(context));
    tokens_section(page, context);
    if !others.is_empty() {
        others_section(page, context, others);
    }
    prompt_section(page, context);
    firewall_section(page, context);
    ways.render(page);
    let failed = failures(context);
    if !failed.is_empty() {
        page.table("Scenarios for which no prompt was compiled, with the reason.", &failed);
    }
    page.subheading("Configuration of the context engine");
    page.verbatim(&context.configuration);
    page.page("fidelity");
    let sums = Sums { probes: together(context), people: by_people(context), others: others.caps() };
    let mark = context.worst_mark();
    fidelity_section(page, &sums, mark);
    classes_section(page, &sums, mark);
    kinds_section(page, &sums, mark);
    verdicts_section(page, &sums, mark);
    page.subheading("Needles through views");
    page.table("Needles through one view: the share that is reached, and its tokens.", &views(context));
}

fn tokens_section(page: &mut Document, context: &ContextResults) {
    page.subheading("Tokens");
    if let Some(savings) = Savings::of(context) {
        page.block(&format!(
            "The median of {} scenarios saves **{}** of the tokens of its conversation, and **{}** prompts are longer than \
             their conversation.",
            count(savings.scenarios),
            percent(savings.median),
            count(savings.grown),
        ));
    }
    page.table(
        "The history is the conversation as text: all events one after another, calls with the names of their \
         functions, links and descriptions of pictures as JSON, without saying who speaks. The definitions of a \
         catalog are added only where all calls of the conversation are to that catalog. A prompt gets headings only \
         where it is still no longer than the history with them.",
        &tokens(context),
    );
    if let Some(savings) = Savings::of(context) {
        page.block(&format!(
            "Together the conversations have {} tokens and the prompts {}. That sum says little: the three longest \
             conversations make up {} of it.",
            count(savings.carried),
            count(savings.prompts),
            percent(savings.longest),
        ));
    }
}

fn others_section(page: &mut Document, context: &ContextResults, others: &Others) {
    page.subheading("Beside other engines");
    page.block(&format!(
        "Third-party context engines get the same conversations with the same query and budget, through the interface \
         for [engines](../docs/engines.md), and return a prompt as text. Recorded {} by `contextweaver bench run \
         --engines all` (†); `bench check` never computes them. The harness counts the tokens and looks for the facts. \
         Our engine can also give a fact through a view, which is not counted here. Some have no notion of a budget, \
         and only the Python package knows hidden events or phases: [what each was given](../docs/engines.md).",
        others.days()
    ));
    page.table(
        "Over the scenarios for which an engine gave a prompt: tokens of all prompts, the median share that they save \
         of their conversation, prompts over their budget, facts that they state, and texts that they show but must \
         not.",
        &others.prompts(context),
    );
    page.table("Versions.", &others.versions());
}

fn prompt_section(page: &mut Document, context: &ContextResults) {
    page.subheading("What is in the prompt");
    page.figure(budget_figure(context));
    page.table(
        "Events shown, left out and shortened; required items and planted facts that the prompt contains, those that \
         one view reaches, and those that are lost; the share of a prompt with which the next one begins when the \
         conversation continues, which is zero where the conversation gets its headings in between.",
        &kept(context),
    );
}

fn firewall_section(page: &mut Document, context: &ContextResults) {
    page.subheading("Firewall");
    page.table(
        "Tokens of the results that the firewall looked at, as the prompt may show them; contents that must come back from the artifact store (large \
         texts, pictures, files), and those that do, byte for byte.",
        &firewall(context),
    );
}

fn fidelity_section(page: &mut Document, sums: &Sums, mark: &str) {
    page.heading("Fidelity of summaries");
    page.figure(fidelity::figure(&sums.probes, mark));
    page.block(
        "Questions with known answers are asked about every result over the threshold. There are two sets. **Probes** \
         are derived by a program; one survives if a text states its label and answer together. The core consists of \
         shape, ends, statistics, sums, leaves and errors; an outline names files, definitions or headings; a needle \
         is one row, value or line drawn at random, which views are for. **What people ask** was written by hand, with \
         the words of the result that answer it; an answer survives if it appears unchanged. [What the two \
         share](../docs/bias.md). The summaries are compared with texts of at most as many tokens that anyone can \
         make: the beginning, whole lines from the beginning, beginning and end, and those two under the number of \
         items or lines; and with what third-party engines leave (†), with the texts that are over the cap.",
    );
    page.table(&format!("Survival of both sets, over all scenarios{mark}."), &fidelity::caps(sums));
}

fn classes_section(page: &mut Document, sums: &Sums, mark: &str) {
    page.subheading("By class");
    for at in &sums.probes {
        page.table(&format!("By class, at {} tokens{mark}.", count(at.cap)), &fidelity::classes(at, "class"));
    }
    page.subheading("What people ask");
    for at in &sums.people {
        let reading = format!("By what is asked for, at {} tokens{mark}.", count(at.cap));
        page.table(&reading, &fidelity::classes(at, "asked for"));
    }
}

fn kinds_section(page: &mut Document, sums: &Sums, mark: &str) {
    page.subheading("By kind of content");
    page.block(
        "Won and lost are the questions that only the summary, or only head + tail, answers; then the results for \
         which either answers more. p is McNemar's exact test over questions, corrected for the number of kinds \
         (Holm); questions about one result are similar, so it is overconfident. The exact sign test over results, \
         uncorrected, is not, but with fewer than six results it cannot show anything.",
    );
    for at in &sums.probes {
        let reading = format!("All probes by kind of content, at {} tokens{mark}.", count(at.cap));
        page.table(&reading, &fidelity::kinds(at));
    }
    for at in &sums.people {
        let reading = format!("What people ask by kind of content, at {} tokens{mark}.", count(at.cap));
        page.table(&reading, &fidelity::kinds(at));
    }
}

fn verdicts_section(page: &mut Document, sums: &Sums, mark: &str) {
    let probes = sums.probes.iter().find(|at| at.cap == fidelity::DEFAULT_CAP);
    let people = sums.people.iter().find(|at| at.cap == fidelity::DEFAULT_CAP);
    if let Some(at) = probes {
        page.subheading("Better than head + tail or not");
        if let Some(people) = people {
            page.table(
                &format!(
                    "At {} tokens{mark}, with the questions that only the summary and only head + tail answers. \
                     Better: by the test over questions and by the one over results. Better by questions: not by the \
                     one over results. The answer to what people ask is often at the beginning or the end: a title, a \
                     commit message, the last line of a log. Most summaries give these a share of their tokens, and \
                     the rest to what is in between. Of listings they give only the number of entries and the largest \
                     ones, of trees little more than the shape. Changes, sources and traces are first stripped of what \
                     says little: lines that both files have, function bodies, library frames.",
                    count(at.cap)
                ),
                &fidelity::verdicts(at, people),
            );
        }
        page.block(&fidelity::ends_alone());
        page.block(&format!("By probes: {}", fidelity::unproven(at)));
    }
    if let Some(at) = people {
        page.block(&format!("By what people ask: {}", fidelity::unproven(at)));
    }
}

fn tokens(context: &ContextResults) -> Table {
    let mut table = Table::new(["scenario", "events", "history", "definitions", "prompt", "saved"]);
    for (label, facts) in measured(context) {
        table.row([
            label,
            count(facts.events),
            count(facts.naive.history),
            facts.naive.definitions.map_or_else(|| MISSING.to_owned(), count),
            count(facts.prompt_tokens),
            percent(facts.naive.reduction),
        ]);
    }
    table
}

/// What all scenarios together say: each counts alike, so the median comes first.
struct Savings {
    scenarios: usize,
    /// The median of what a prompt saves.
    median: f64,
    /// Prompts that are longer than their conversation.
    grown: usize,
    /// Tokens of the conversations.
    carried: usize,
    /// Tokens of the prompts.
    prompts: usize,
    /// The share of `carried` that the three longest conversations have.
    longest: f64,
}

impl Savings {
    /// `None` without a measured scenario.
    fn of(context: &ContextResults) -> Option<Self> {
        let all = measured(context);
        let mut carried: Vec<usize> = all.iter().map(|(_, facts)| carried(facts)).collect();
        let reductions: Vec<f64> = all.iter().map(|(_, facts)| facts.naive.reduction).collect();
        carried.sort_unstable();
        let sum: usize = carried.iter().sum();
        (sum > 0).then(|| Self {
            scenarios: all.len(),
            median: median(&reductions),
            grown: all.iter().filter(|(_, facts)| facts.prompt_tokens > facts.naive.history).count(),
            carried: sum,
            prompts: all.iter().map(|(_, facts)| facts.prompt_tokens).sum(),
            longest: carried.iter().rev().take(3).sum::<usize>() as f64 / sum as f64,
        })
    }
}

/// Tokens of what the conversation carries.
fn carried(facts: &ContextFacts) -> usize {
    facts.naive.history + facts.naive.definitions.unwrap_or_default()
}

fn kept(context: &ContextResults) -> Table {
    let titles = [
        "scenario",
        "phase",
        "budget",
        "used",
        "shown",
        "left out",
        "shortened",
        "required",
        "facts",
        "by view",
        "lost",
        "forbidden",
        "prefix",
    ];
    let mut table = Table::new(titles).words(&["phase"]);
    for (label, facts) in measured(context) {
        let kept = &facts.kept;
        let of = |part: usize, whole: usize| format!("{} / {}", count(part), count(whole));
        table.row([
            label,
            facts.phase.name().to_owned(),
            count(facts.budget),
            percent(facts.budget_use),
            count(facts.included),
            count(facts.dropped.values().sum()),
            count(facts.condensed),
            of(kept.required - kept.missing.len(), kept.required),
            of(kept.facts_in_prompt, kept.facts),
            count(kept.facts_by_view),
            count(kept.lost.len()),
            count(kept.forbidden.len()),
            facts.prefix.map_or_else(|| MISSING.to_owned(), |prefix| share(prefix.mean)),
        ]);
    }
    table
}

fn firewall(context: &ContextResults) -> Table {
    let titles = ["scenario", "bytes", "tokens shown", "all results", "artifacts", "contents", "recovered"];
    let mut table = Table::new(titles);
    for (label, facts) in measured(context) {
        let firewall = &facts.firewall;
        table.row([
            label,
            count(firewall.original_bytes as usize),
            count(firewall.shown_tokens),
            count(firewall.result_tokens),
            count(firewall.artifacts),
            count(firewall.contents),
            count(firewall.recovered),
        ]);
    }
    table
}

/// The fidelity of all scenarios together, cap by cap.
fn together(context: &ContextResults) -> Vec<AtCap> {
    joined(fidelities(context).flat_map(|(_, fidelity)| &fidelity.caps))
}

/// The same for what people ask.
fn by_people(context: &ContextResults) -> Vec<AtCap<Asks>> {
    joined(fidelities(context).flat_map(|(_, fidelity)| &fidelity.questions))
}

fn joined<'a, L: Label>(all: impl Iterator<Item = &'a AtCap<L>>) -> Vec<AtCap<L>> {
    let mut sums: Vec<AtCap<L>> = Vec::new();
    for at in all {
        match sums.iter_mut().find(|sum| sum.cap == at.cap) {
            Some(sum) => sum.join(at),
            None => sums.push(at.clone()),
        }
    }
    sums.sort_by_key(|sum| sum.cap);
    sums
}

fn fidelities(context: &ContextResults) -> impl Iterator<Item = (String, &Fidelity)> {
    measured(context).into_iter().filter_map(|(label, facts)| Some((label, facts.fidelity.as_ref()?)))
}

fn views(context: &ContextResults) -> Table {
    let mut table = Table::new(["scenario", "needles", "reached", "median", "p90", "most"]);
    for (label, fidelity) in fidelities(context) {
        let Some(views) = fidelity.views else { continue };
        table.row([
            label,
            count(views.reached.asked),
            count(views.reached.kept),
            fixed(views.median, 0),
            fixed(views.p90, 0),
            count(views.most),
        ]);
    }
    table
}

fn failures(context: &ContextResults) -> Table {
    crate::report::table::failures("scenario", context.failed())
}

fn dot(value: f64) -> Option<Interval> {
    Some(Interval { mean: value, low: value, high: value })
}

/// Tokens of the naive and of the compiled prompt by scenario.
fn tokens_figure(context: &ContextResults) -> Option<Figure> {
    let title = "Prompt tokens by scenario: the whole conversation, and compiled".to_owned();
    let rows = measured(context)
        .into_iter()
        .map(|(label, facts)| (label, vec![dot(facts.prompt_tokens as f64), dot(carried(facts) as f64)]));
    let plot = IntervalPlot {
        title: title.clone(),
        x_title: "tokens (logarithmic)".to_owned(),
        scale: Scale::Log,
        series: vec!["compiled".to_owned(), "conversation".to_owned()],
        rows: rows.collect(),
        one_lane: false,
    };
    plot.svg().map(|svg| Figure { path: "context-tokens.svg".to_owned(), alt: title, svg })
}

fn budget_figure(context: &ContextResults) -> Option<Figure> {
    let title = "Share of the budget that the prompt uses, by scenario".to_owned();
    let rows = measured(context).into_iter().map(|(label, facts)| (label, vec![dot(facts.budget_use)]));
    let plot = IntervalPlot {
        title: title.clone(),
        x_title: "prompt tokens / budget".to_owned(),
        scale: Scale::Share,
        series: vec!["budget use".to_owned()],
        rows: rows.collect(),
        one_lane: false,
    };
    plot.svg().map(|svg| Figure { path: "context-budget.svg".to_owned(), alt: title, svg })
}

/// What conversations save, and what summaries lose against controls of the same length.
fn answers(context: &ContextResults, others: &Others) -> Vec<Answer> {
    let saved = Savings::of(context).map(|savings| {
        let text = format!(
            "The median of {} [conversations](context.md) saves {}{}",
            count(savings.scenarios),
            percent(savings.median),
            beside_others(context, others, "context.md"),
        );
        Answer::new(Question::Saving, text)
    });
    let (probes, people) = (together(context), by_people(context));
    let fidelity = Headline::of(&probes, &people).map(|headline| {
        let (cap, kept) = (count(fidelity::DEFAULT_CAP), headline.text());
        Answer::new(Question::Good, format!("[Summaries](context-fidelity.md) of {cap} tokens {kept}."))
    });
    let beaten = probes.iter().find(|at| at.cap == fidelity::DEFAULT_CAP).and_then(fidelity::beaten);
    let behind = people.iter().find(|at| at.cap == fidelity::DEFAULT_CAP).and_then(fidelity::behind);
    let failures = [beaten, behind].map(|text| text.map(|text| Answer::new(Question::Failure, text)));
    [saved, fidelity].into_iter().chain(failures).flatten().collect()
}

/// The end of the sentence on savings: how many facts our prompts state and how many are over budget, and the same of engines of
/// others, with the mark of what is recorded; a full stop where there are none.
fn beside_others(context: &ContextResults, others: &Others, page: &str) -> String {
    let Some(beside) = others.beside(context) else { return ".".to_owned() };
    let sum = |of: fn(&ContextFacts) -> usize| count(context.measured().map(|(_, facts)| of(facts)).sum());
    format!(
        "; they state {} of {} planted facts, and {} are over budget ([others]({page}#beside-other-engines): {beside}).{}",
        sum(|facts| facts.kept.facts_in_prompt),
        sum(|facts| facts.kept.facts),
        sum(|facts| usize::from(facts.prompt_tokens > facts.budget)),
        worst([context.worst_mark(), KEPT]),
    )
}

/// What stands on the project's front page; `None` when nothing was measured.
fn sentence(context: &ContextResults, others: &Others) -> Option<String> {
    let savings = Savings::of(context)?;
    let headline = Headline::of(&together(context), &by_people(context))?;
    Some(format!(
        "Context: summaries of {} tokens {}. The median of {} scenarios saves {} of the tokens of its conversation, and {} \
         prompts are longer than theirs{}",
        count(fidelity::DEFAULT_CAP),
        headline.text(),
        count(savings.scenarios),
        percent(savings.median),
        count(savings.grown),
        beside_others(context, others, &format!("{FOLDER}context.md")),
    ))
}

/// What a run prints: tokens, what is missing, and failures.
fn terminal(results: &ContextResults) -> String {
    let titles = ["scenario", "prompt", "budget", "saved", "required", "facts", "lost"];
    let mut table = Table::new(titles);
    let mut text = String::new();
    for (label, facts) in measured(results) {
        table.row([
            label,
            count(facts.prompt_tokens),
            count(facts.budget),
            percent(facts.naive.reduction),
            format!("{}/{}", facts.kept.required - facts.kept.missing.len(), facts.kept.required),
            format!("{}/{}", facts.kept.facts_in_prompt + facts.kept.facts_by_view, facts.kept.facts),
            count(facts.kept.lost.len()),
        ]);
    }
    for (case, message) in results.failed() {
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "failed: {case}: {message}");
    }
    table.plain() + &text
}
