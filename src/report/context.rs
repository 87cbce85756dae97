//! The context chapter of the scorecard, and its figures.

use crate::eval::context::fidelity::{AtCap, Fidelity, Survival};
use crate::eval::context::probe::Class;
use crate::eval::context::record::{ContextFacts, ContextOutcome, ContextRecord, ContextResults};

use super::figures::Figure;
use super::number::{MISSING, count, fixed, percent, share};
use super::plot::{Interval, IntervalPlot, Line, LineChart, Point, Scale};
use super::scorecard::Document;
use super::table::Table;

/// The scenarios that were measured, in the order of the records.
fn measured(context: &ContextResults) -> Vec<(&ContextRecord, &ContextFacts)> {
    let pair = |record| facts_of(record).map(|facts| (record, facts));
    context.records.iter().filter_map(pair).collect()
}

fn facts_of(record: &ContextRecord) -> Option<&ContextFacts> {
    match &record.outcome {
        ContextOutcome::Measured(facts) => Some(facts),
        ContextOutcome::Failed(_) => None,
    }
}

/// The chapter.
pub(super) fn chapter(page: &mut Document, context: &ContextResults) {
    page.heading("Context");
    page.block(
        "What the context engine makes of event logs: a prompt within its budget, large results behind a firewall. The \
         scenarios of the project are part of the repository; those called `recorded` (real sessions) and `peer` (logs of \
         the Python project) are not, and where they are absent their rows stay as they were committed. Tokens are exact \
         counts.",
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
    page.table("Survival by class and by the cap on a summary's tokens, over all scenarios.", &classes(context));
    page.table("The same without needles, by kind of content.", &kinds(context));
    page.table("Needles through one view: the share that is reached, and its tokens.", &views(context));
    let failed = failures(context);
    if !failed.is_empty() {
        page.table("Scenarios for which no prompt was compiled, with the reason.", &failed);
    }
    page.subheading("Configuration of the context engine");
    let lines: Vec<String> =
        context.configuration.lines().map(|line| format!("    {line}").trim_end().to_owned()).collect();
    page.block(&lines.join("\n"));
}

fn tokens(context: &ContextResults) -> Table {
    let titles = ["scenario", "events", "history", "definitions", "prompt", "saved", "listing", "saved from it"];
    let mut table = Table::new(titles);
    for (record, facts) in measured(context) {
        let tools = |tokens: Option<usize>| tokens.map_or_else(|| MISSING.to_owned(), count);
        table.row([
            record.scenario.clone(),
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
    for (record, facts) in measured(context) {
        let kept = &facts.kept;
        let of = |part: usize, whole: usize| format!("{} / {}", count(part), count(whole));
        table.row([
            record.scenario.clone(),
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
    for (record, facts) in measured(context) {
        let firewall = &facts.firewall;
        table.row([
            record.scenario.clone(),
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

fn fidelities(context: &ContextResults) -> impl Iterator<Item = (&ContextRecord, &Fidelity)> {
    measured(context).into_iter().filter_map(|(record, facts)| Some((record, facts.fidelity.as_ref()?)))
}

fn survival(survival: Option<&Survival>) -> String {
    let shown = survival.and_then(|one| Some(format!("{} ({} / {})", share(one.share()?), one.kept, one.asked)));
    shown.unwrap_or_else(|| MISSING.to_owned())
}

fn by_cap(sums: &[AtCap], title: &str) -> Table {
    let caps: Vec<String> = sums.iter().map(|sum| format!("at {}", count(sum.cap))).collect();
    Table::new(std::iter::once(title.to_owned()).chain(caps))
}

pub(super) fn class_rows(sums: &[AtCap]) -> Table {
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

pub(super) fn kind_rows(sums: &[AtCap]) -> Table {
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
    for (record, fidelity) in fidelities(context) {
        let Some(views) = fidelity.views else { continue };
        table.row([
            record.scenario.clone(),
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
    let failed = context.records.iter().filter_map(|record| match &record.outcome {
        ContextOutcome::Measured(_) => None,
        ContextOutcome::Failed(message) => Some((record.scenario.as_str(), message.as_str())),
    });
    super::table::failures("scenario", failed)
}

fn dot(value: f64) -> Option<Interval> {
    Some(Interval { mean: value, low: value, high: value })
}

/// Tokens of the naive and of the compiled prompt by scenario.
pub(super) fn tokens_figure(context: &ContextResults) -> Option<Figure> {
    let title = "Prompt tokens by scenario: everything, and compiled".to_owned();
    let rows = measured(context).into_iter().map(|(record, facts)| {
        let naive = facts.naive.history + facts.naive.definitions.unwrap_or_default();
        (record.scenario.clone(), vec![dot(facts.prompt_tokens as f64), dot(naive as f64)])
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
    let rows =
        measured(context).into_iter().map(|(record, facts)| (record.scenario.clone(), vec![dot(facts.budget_use)]));
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
    let title = "Survival of probes by tokens of a summary, over all scenarios".to_owned();
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
pub(super) fn sentence(context: &ContextResults) -> Option<String> {
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
