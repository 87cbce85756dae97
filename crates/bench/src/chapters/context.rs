//! The context engine: event logs in, prompts within a budget out, and what of the log is still in them.
//!
//! Facts are measured in [`crate::eval::context`]; here they are planned, verified and shown.

use std::fmt::Write as _;

use anyhow::Result;
use rayon::prelude::*;

use crate::chapter::{Absent, Chapter, Fresh, Plan, Planned, Recordings, Step, Wrong};
use crate::eval::context::fidelity::{AtCap, Fidelity, Survival};
use crate::eval::context::probe::Class;
use crate::eval::context::record::ContextFacts;
use crate::eval::context::run::{configuration, record, version};
use crate::eval::context::scenario::Scenario;
use crate::eval::identity::{Broken, same};
use crate::eval::tables::Tables;
use crate::eval::workspace::Bench;
use crate::report::document::{Document, Figure};
use crate::report::number::{MISSING, count, fixed, percent, share};
use crate::report::plot::{Interval, IntervalPlot, Line, LineChart, Point, Scale};
use crate::report::table::Table;
use crate::results::Results;
use contextweaver_context::ContextConfig;
use contextweaver_context::summary::StructureSummarizer;

/// The results of the chapter.
type ContextResults = Results<Box<ContextFacts>>;

/// The chapter.
#[derive(Debug)]
pub struct ContextChapter;

impl Chapter for ContextChapter {
    type Facts = Box<ContextFacts>;

    fn name(&self) -> &'static str {
        "context"
    }

    fn plan(&self, bench: &Bench) -> Result<Vec<Plan>> {
        let config = ContextConfig::default();
        let planned = |scenario: &Scenario| Planned {
            case: scenario.name.clone(),
            origin: scenario.origin,
            absent: (!bench.workspace.has_scenario(scenario)).then_some(Absent::Inputs),
            inputs_sha256: None,
        };
        Ok(vec![Plan {
            name: Chapter::name(self).to_owned(),
            configuration: configuration(&config),
            version: version(&config),
            cases: bench.workspace.scenarios()?.iter().map(planned).collect(),
        }])
    }

    fn measure(&self, bench: &Bench, _: &[Plan], step: Step<'_>) -> Result<Vec<Fresh<Box<ContextFacts>>>> {
        let all = bench.workspace.scenarios()?;
        let here: Vec<&Scenario> = all.iter().filter(|scenario| bench.workspace.has_scenario(scenario)).collect();
        let catalogs = bench.workspace.counted_catalogs(&here)?;
        let config = ContextConfig::default();
        let run = |scenario: &&Scenario| {
            step(&format!("context of {}", scenario.name));
            let catalog = scenario.catalog.as_ref().and_then(|name| catalogs.get(name));
            let (inputs_sha256, outcome) = record(scenario, catalog, &config, &StructureSummarizer)?;
            Ok(Fresh { results: Chapter::name(self).to_owned(), case: scenario.name.clone(), inputs_sha256, outcome })
        };
        here.par_iter().map(run).collect()
    }

    fn wrong(&self, own: &[ContextResults], _: &Recordings) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        for (results, (record, facts)) in own.iter().flat_map(|one| one.measured().map(move |row| (one, row))) {
            let mut broken = Broken::default();
            check(facts, &mut broken);
            wrong.extend(broken.reasons().into_iter().map(|reason| Wrong {
                results: results.name.clone(),
                case: record.case.clone(),
                reason,
            }));
        }
        wrong
    }

    fn render(&self, own: &[ContextResults], _: &Tables, document: &mut Document) {
        own.iter().for_each(|results| chapter(document, results));
    }

    fn terminal(&self, own: &[ContextResults]) -> String {
        own.iter().map(terminal).collect()
    }

    fn front(&self, own: &[ContextResults]) -> Vec<String> {
        own.iter().filter_map(sentence).collect()
    }
}

/// What must hold among the counts of one scenario.
fn check(facts: &ContextFacts, broken: &mut Broken) {
    let dropped: usize = facts.dropped.values().sum();
    broken.unless(facts.included + dropped == facts.candidates, "what is shown and left out is not what there was");
    broken.unless(facts.candidates <= facts.events, "more candidates than events");
    broken.unless(facts.prompt_tokens <= facts.budget, "the prompt is over its budget");
    broken.ratio("budget use", facts.budget_use, facts.prompt_tokens as f64, facts.budget as f64);
    let naive = &facts.naive;
    for (name, tools, reduction) in [
        ("saved", naive.definitions, naive.reduction),
        ("saved from the listing", naive.listing, naive.reduction_from_listing),
    ] {
        let all = tools.unwrap_or_default() + naive.history;
        let expected = if all == 0 { 0.0 } else { 1.0 - facts.prompt_tokens as f64 / all as f64 };
        broken.unless(same(reduction, expected), format!("{name}: {reduction} is not what the tokens give"));
    }
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
    let caps = facts.fidelity.iter().flat_map(|fidelity| &fidelity.caps);
    for at in caps {
        for survival in std::iter::once(&at.core).chain(at.classes.values()).chain(at.kinds.values()) {
            broken.unless(survival.kept <= survival.asked, "more probes survive than were asked");
        }
    }
}

/// The scenarios that were measured with their labels, in the order of the records.
fn measured(context: &ContextResults) -> Vec<(String, &ContextFacts)> {
    context.measured().map(|(record, facts)| (context.label(record), facts.as_ref())).collect()
}

/// The page.
fn chapter(page: &mut Document, context: &ContextResults) {
    page.heading("Context");
    page.block(
        "What the context engine makes of event logs: a prompt within its budget, large results behind a firewall. The \
         scenarios of the project are part of the repository; those called `recorded` (real sessions) and `peer` (logs of \
         the Python project) are not, and where they are absent their rows are kept from an earlier run and marked. Tokens \
         are exact counts.",
    );
    page.figure(tokens_figure(context));
    page.subheading("Tokens");
    page.table(
        "The naive prompt holds the whole history and the definitions of all tools of the scenario's catalog; the listing \
         names each tool in one line instead, as the Python project counts. The history counts texts alone: pictures and links \
         cost a prompt their name and handle, but stand in no history.",
        &tokens(context),
    );
    page.subheading("What is in the prompt");
    page.figure(budget_figure(context));
    page.table(
        "Events shown, left out and shortened; required items and planted facts that the prompt holds, those that one view \
         reaches, and those that are lost; the share of a prompt that begins the next one when the conversation goes on.",
        &kept(context),
    );
    page.subheading("Firewall");
    page.table(
        "Tokens of the results that the firewall looked at, as the prompt may show them; contents that must come back from the artifact store (large \
         texts, pictures, files), and those that do, byte for byte.",
        &firewall(context),
    );
    page.subheading("Fidelity");
    page.figure(fidelity_figure(context));
    page.block(
        "Questions with known answers are asked about every result over the threshold; one survives where a summary states \
         label and answer together. The core holds shape, ends, statistics, sums, leaves and errors; an outline names \
         files, definitions or headings; a needle is one row, value or line drawn at random, for which there are views.",
    );
    let mark = context.worst_mark();
    let reading = format!("Survival by class and by the cap on a summary's tokens, over all scenarios{mark}.");
    page.table(&reading, &classes(context));
    page.table(&format!("The same without needles, by kind of content{mark}."), &kinds(context));
    page.table("Needles through one view: the share that is reached, and its tokens.", &views(context));
    let failed = failures(context);
    if !failed.is_empty() {
        page.table("Scenarios for which no prompt was compiled, with the reason.", &failed);
    }
    page.subheading("Configuration of the context engine");
    page.verbatim(&context.configuration);
}

fn tokens(context: &ContextResults) -> Table {
    let titles = ["scenario", "events", "history", "definitions", "prompt", "saved", "listing", "saved from it"];
    let mut table = Table::new(titles);
    for (label, facts) in measured(context) {
        let tools = |tokens: Option<usize>| tokens.map_or_else(|| MISSING.to_owned(), count);
        table.row([
            label,
            count(facts.events),
            count(facts.naive.history),
            tools(facts.naive.definitions),
            count(facts.prompt_tokens),
            percent(facts.naive.reduction),
            tools(facts.naive.listing),
            percent(facts.naive.reduction_from_listing),
        ]);
    }
    table
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
    let mut sums: Vec<AtCap> = Vec::new();
    for at in fidelities(context).flat_map(|(_, fidelity)| &fidelity.caps) {
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

fn survival(survival: Option<&Survival>) -> String {
    let shown = survival.and_then(|one| Some(format!("{} ({} / {})", share(one.share()?), one.kept, one.asked)));
    shown.unwrap_or_else(|| MISSING.to_owned())
}

fn by_cap(sums: &[AtCap], title: &str) -> Table {
    let caps: Vec<String> = sums.iter().map(|sum| format!("at {}", count(sum.cap))).collect();
    Table::new(std::iter::once(title.to_owned()).chain(caps))
}

fn class_rows(sums: &[AtCap]) -> Table {
    let mut table = by_cap(sums, "class");
    if sums.is_empty() {
        return table;
    }
    let row = |name: &str, show: &dyn Fn(&AtCap) -> String| -> Vec<String> {
        std::iter::once(name.to_owned()).chain(sums.iter().map(show)).collect()
    };
    table.row(row("tokens of all summaries", &|sum| count(sum.tokens)));
    table.row(row("core", &|sum| survival(Some(&sum.core))));
    for class in Class::ALL {
        table.row(row(class.name(), &|sum| survival(sum.classes.get(&class))));
    }
    table
}

fn kind_rows(sums: &[AtCap]) -> Table {
    let mut table = by_cap(sums, "kind");
    for kind in sums.first().into_iter().flat_map(|sum| sum.kinds.keys()) {
        let cells = sums.iter().map(|sum| survival(sum.kinds.get(kind)));
        table.row(std::iter::once(kind.name().to_owned()).chain(cells));
    }
    table
}

fn classes(context: &ContextResults) -> Table {
    class_rows(&together(context))
}

fn kinds(context: &ContextResults) -> Table {
    kind_rows(&together(context))
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
    let title = "Prompt tokens by scenario: everything, and compiled".to_owned();
    let rows = measured(context).into_iter().map(|(label, facts)| {
        let naive = facts.naive.history + facts.naive.definitions.unwrap_or_default();
        (label, vec![dot(facts.prompt_tokens as f64), dot(naive as f64)])
    });
    let plot = IntervalPlot {
        title: title.clone(),
        x_title: "tokens (logarithmic)".to_owned(),
        scale: Scale::Log,
        series: vec!["compiled".to_owned(), "history and definitions".to_owned()],
        rows: rows.collect(),
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
    };
    plot.svg().map(|svg| Figure { path: "context-budget.svg".to_owned(), alt: title, svg })
}

/// Survival against the tokens that a summary may cost.
fn fidelity_figure(context: &ContextResults) -> Option<Figure> {
    let title = format!("Survival of probes by tokens of a summary, over all scenarios{}", context.worst_mark());
    let sums = together(context);
    let line = |name: &str, color: usize, of: &dyn Fn(&AtCap) -> Option<f64>| Line {
        name: name.to_owned(),
        color,
        points: sums.iter().filter_map(|sum| Some(Point { tools: sum.cap, value: of(sum)?, band: None })).collect(),
    };
    let class = |class: Class| move |sum: &AtCap| sum.classes.get(&class).and_then(|one| one.share());
    let chart = LineChart {
        title: title.clone(),
        x_title: "tokens of a summary at most (logarithmic)".to_owned(),
        y_title: "share of probes that survive".to_owned(),
        y_scale: Scale::Share,
        lines: vec![
            line("core", 0, &|sum| sum.core.share()),
            line("outline", 3, &class(Class::Outline)),
            line("needle", 4, &class(Class::Needle)),
        ],
    };
    chart.svg().map(|svg| Figure { path: "context-fidelity.svg".to_owned(), alt: title, svg })
}

/// One sentence for the project's front page; `None` when nothing was measured.
fn sentence(context: &ContextResults) -> Option<String> {
    let all = measured(context);
    let sums = together(context);
    let core = sums.iter().find(|sum| sum.cap == 300).and_then(|sum| sum.core.share())?;
    let naive: usize =
        all.iter().map(|(_, facts)| facts.naive.history + facts.naive.definitions.unwrap_or_default()).sum();
    let prompt: usize = all.iter().map(|(_, facts)| facts.prompt_tokens).sum();
    Some(format!(
        "Context: {} scenarios compile to {} tokens where everything would take {}; summaries of 300 tokens keep {} of \
         the core probes of their results.",
        count(all.len()),
        count(prompt),
        count(naive),
        percent(core),
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

/// What `bench fidelity` prints: survival by class and kind, and what views of needles cost.
#[must_use]
pub fn fidelity(fidelity: &Fidelity) -> String {
    let mut text = format!("{} results, {} bytes\n\n", count(fidelity.results), count(fidelity.bytes));
    text.push_str(&class_rows(&fidelity.caps).plain());
    text.push_str("\nall but needles, by kind of content\n");
    text.push_str(&kind_rows(&fidelity.caps).plain());
    if let Some(views) = fidelity.views {
        let (kept, asked) = (count(views.reached.kept), count(views.reached.asked));
        let (median, p90, most) = (fixed(views.median, 0), fixed(views.p90, 0), count(views.most));
        let _ = writeln!(
            text,
            "\nneedles through one view: {kept} of {asked}; tokens median {median}, p90 {p90}, most {most}"
        );
    }
    text
}
