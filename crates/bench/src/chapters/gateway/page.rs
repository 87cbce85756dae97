//! The gateway chapter of the scorecard, and its figures.

use std::fmt;

use super::overhead;
use crate::chapter::{Answer, Question};
use crate::eval::everyday::Manner;
use crate::eval::gateway::case::TOGETHER;
use crate::eval::gateway::record::{
    GatewayFacts, KindFacts, KindsFacts, ScenarioFacts, SearchFacts, SessionFacts, SurfaceFacts,
};
use crate::eval::record::{Outcome, Paired};
use crate::eval::statistics::median;
use crate::eval::tables::Tables;
use crate::report::document::{Document, Figure};
use crate::report::number::{MISSING, conclusions, count, difference, estimate, fixed, percent, share};
use crate::report::plot::{Interval, IntervalPlot, Scale};
use crate::report::table::Table;
use crate::results::{Record, Results, worst};

/// The results of the chapter.
pub(super) type GatewayResults = Results<GatewayFacts>;

/// The name of a case without what is measured.
pub(super) fn name(case: &str) -> &str {
    case.split_once('/').map_or(case, |(_, name)| name)
}

/// Catalogs that are shown one by one; the rest is counted.
const SHOWN: usize = 15;

/// The name of a case, its name as it is shown, and its facts.
type Row<'r, F> = (&'r str, String, &'r F);

/// The records of one kind with their facts, in the order of the file.
fn rows<'r, F>(gateway: &'r GatewayResults, facts: impl Fn(&'r GatewayFacts) -> Option<&'r F>) -> Vec<Row<'r, F>> {
    let row = |(record, measured): (&'r Record<GatewayFacts>, &'r GatewayFacts)| {
        let name = name(&record.case);
        Some((name, format!("{name}{}", gateway.mark(record)), facts(measured)?))
    };
    gateway.measured().filter_map(row).collect()
}

/// The largest first.
fn surfaces(gateway: &GatewayResults) -> Vec<Row<'_, SurfaceFacts>> {
    let mut rows = rows(gateway, |measured| match measured {
        GatewayFacts::Surface(facts) => Some(facts),
        _ => None,
    });
    rows.sort_by_key(|(name, _, facts)| (std::cmp::Reverse(facts.direct_tokens), *name));
    rows
}

fn sessions(gateway: &GatewayResults) -> Vec<Row<'_, SessionFacts>> {
    rows(gateway, |measured| match measured {
        GatewayFacts::Session(facts) => Some(facts),
        _ => None,
    })
}

fn scenarios(gateway: &GatewayResults) -> Vec<Row<'_, ScenarioFacts>> {
    rows(gateway, |measured| match measured {
        GatewayFacts::Scenario(facts) => Some(facts),
        _ => None,
    })
}

/// What is listed and found of each kind.
fn kinds(gateway: &GatewayResults) -> Vec<Row<'_, KindsFacts>> {
    rows(gateway, |measured| match measured {
        GatewayFacts::Kinds(facts) => Some(facts),
        _ => None,
    })
}

/// The catalogs of single servers and collections, and all public ones together.
fn apart(gateway: &GatewayResults) -> (Vec<Row<'_, SurfaceFacts>>, Option<Row<'_, SurfaceFacts>>) {
    let (together, single): (Vec<_>, Vec<_>) = surfaces(gateway).into_iter().partition(|(name, ..)| *name == TOGETHER);
    (single, together.into_iter().next())
}

/// The chapter.
pub(super) fn chapter(page: &mut Document, gateway: &GatewayResults, tables: &Tables) {
    page.heading("Gateway");
    page.block(
        "What a client sees of servers through the gateway. Catalogs and sessions recorded with public servers are not \
         part of the repository; where they are absent, their rows are kept from an earlier run and marked. The \
         scenarios are the project's own. Everything goes through a running gateway; the servers behind it are \
         simulated. Tokens are exact counts (cl100k_base).",
    );
    page.subheading("Surface");
    page.figure(surface_figure(gateway));
    page.table(
        "Tokens of the definitions: as the servers list them, in gateway mode, which lists three tools of its own \
         (more with resources or prompts upstream), and in proxy mode, which lists every tool without its schema; then \
         the largest page of ten cards, with the names of all tools as queries. Shown are the largest catalogs, the \
         others together, and all public ones behind one gateway.",
        &surface_table(gateway),
    );
    by_kind(page, gateway);
    page.subheading("Recorded sessions");
    page.figure(session_figure(gateway));
    if let Some(played) = Played::of(gateway) {
        page.block(&format!("Each session counts equally: {played}."));
    }
    page.table(
        "Calls that real servers once answered, made again through `tool_execute`. Tokens of the texts of their \
         results, and of the gateway's answers; on the wire a result also has structured content and base64. Artifacts \
         are recovered when the store returns, byte for byte, what a server gave, and viewed when `tool_view` shows \
         the beginning of a text unchanged. Definitions are those of the session's servers; the surface is what \
         replaces them. In sums marked `*`, some servers have no list, and those of their tools that are called count \
         without schemas.",
        &session_table(gateway),
    );
    if let Some(played) = Played::of(gateway) {
        page.block(&format!(
            "Together the results have {} tokens and the answers {}. That sum says little: the two largest sessions \
             make up {} of it.",
            count(played.results),
            count(played.answers),
            percent(played.largest),
        ));
    }
    let refused = refusals(gateway);
    if !refused.is_empty() {
        page.table("Calls that the gateway did not pass on, and why.", &refused);
    }
    page.subheading("Scenarios");
    page.table(
        "Steps that went as the scenario says, tokens of the texts of results and of the answers to the same calls, of \
         browsing and of views, and the failures that were provoked.",
        &scenario_table(gateway),
    );
    let failed = failures(gateway);
    if !failed.is_empty() {
        page.table("What went differently.", &failed);
    }
    overhead::section(page, tables);
}

/// The tables of the chapter, for a terminal.
pub(super) fn tables(gateway: &GatewayResults) -> [Table; 7] {
    [
        surface_table(gateway),
        kind_table(gateway),
        found_table(gateway),
        session_table(gateway),
        refusals(gateway),
        scenario_table(gateway),
        failures(gateway),
    ]
}

/// What is listed and found of tools, resources and prompts; nothing without such a collection.
fn by_kind(page: &mut Document, gateway: &GatewayResults) {
    let all = kinds(gateway);
    if all.is_empty() {
        return;
    }
    page.subheading("Tools, resources and prompts");
    for (name, _, facts) in &all {
        page.block(&format!(
            "The collection [`gold/{name}`](../gold/{name}/README.md): {} servers of a public library behind one \
             gateway, written for this project, as were its requests. Each request needs items of one kind and is put \
             to the gateway's search of that kind (`tool_browse`, `resource_browse`, `prompt_browse`), twice: as \
             people speak and as a model asks. It is assumed that the kind is known, and one author wrote the items \
             and both wordings: a model that does not know the items would use other words.",
            count(facts.servers),
        ));
    }
    page.table(
        "Tokens of the lists of all servers (`tools/list`, `resources/list`, `prompts/list`), of the gateway's own \
         tools for that kind, and of a page of at most ten cards, on average over all requests. *Saved* compares the \
         list with those tools and one page together. Clients show models the list of tools; many show only those \
         resources and prompts that a person picks, and then there is nothing to save.",
        &kind_table(gateway),
    );
    page.table(
        "How much of what a request needs is the first card, and among the first five, with 95 % intervals; beside it the \
         control, a gateway whose indexes rank by flat BM25, with recall@5 less that of the control. Verdicts are corrected for the \
         number of rows.",
        &found_table(gateway),
    );
}

/// Every kind, with its name and the mark of its record.
fn each_kind(gateway: &GatewayResults) -> Vec<(String, &KindFacts)> {
    let mut each = Vec::new();
    for (name, label, facts) in kinds(gateway) {
        let mark = label.strip_prefix(name).unwrap_or_default();
        each.extend(facts.kinds.iter().map(|kind| (format!("{}{mark}", kind.kind.name()), kind)));
    }
    each
}

fn kind_table(gateway: &GatewayResults) -> Table {
    let titles = ["kind", "items", "list", "gateway's tools", "ten cards", "largest page", "saved"];
    let mut table = Table::new(titles);
    for (name, facts) in each_kind(gateway) {
        let page = facts.page_tokens as f64 / facts.pages.max(1) as f64;
        let instead = facts.surface_tokens as f64 + page;
        let list = facts.list_tokens as f64;
        table.row([
            name,
            count(facts.items),
            count(facts.list_tokens),
            count(facts.surface_tokens),
            fixed(page, 0),
            count(facts.largest_page),
            if instead < list { percent(1.0 - instead / list) } else { MISSING.to_owned() },
        ]);
    }
    table
}

fn found_table(gateway: &GatewayResults) -> Table {
    let titles = [
        "kind",
        "wording",
        "requests",
        "recall@1",
        "recall@5",
        "recall@1, flat BM25",
        "recall@5, flat BM25",
        "less flat BM25",
        "verdict",
    ];
    let mut table = Table::new(titles).words(&["wording", "verdict"]);
    let kinds = each_kind(gateway);
    let mut rows: Vec<(&str, Manner, &SearchFacts)> = Vec::new();
    for (name, facts) in &kinds {
        rows.extend([(name.as_str(), Manner::Said, &facts.said), (name.as_str(), Manner::Asked, &facts.asked)]);
    }
    let paired: Vec<&Paired> = rows.iter().map(|(_, _, facts)| &facts.versus_control).collect();
    for ((name, manner, facts), verdict) in rows.iter().zip(conclusions(&paired)) {
        table.row([
            (*name).to_owned(),
            manner.title().to_owned(),
            count(facts.first_tools.len()),
            estimate(&facts.ours.recall_at_1),
            estimate(&facts.ours.recall_at_5),
            share(facts.control.recall_at_1.mean),
            share(facts.control.recall_at_5.mean),
            difference(&facts.versus_control.difference),
            verdict,
        ]);
    }
    table
}

fn surface_table(gateway: &GatewayResults) -> Table {
    let mut table = Table::new(["catalog", "tools", "direct", "gateway", "proxy", "saved", "largest page"]);
    let (single, together) = apart(gateway);
    let row = |name: &str, facts: &SurfaceFacts| {
        [
            name.to_owned(),
            count(facts.tools),
            count(facts.direct_tokens),
            count(facts.gateway_tokens),
            count(facts.proxy_tokens),
            saved(facts.gateway_tokens, facts.direct_tokens),
            count(facts.page_tokens),
        ]
    };
    for (_, label, facts) in single.iter().take(SHOWN) {
        table.row(row(label, facts));
    }
    let rest: Vec<&SurfaceFacts> = single.iter().skip(SHOWN).map(|(_, _, facts)| *facts).collect();
    if !rest.is_empty() {
        let sum = |of: fn(&SurfaceFacts) -> usize| rest.iter().map(|facts| of(facts)).sum::<usize>();
        let others = SurfaceFacts {
            servers: sum(|facts| facts.servers),
            tools: sum(|facts| facts.tools),
            unusable: sum(|facts| facts.unusable),
            direct_tokens: sum(|facts| facts.direct_tokens),
            gateway_tokens: sum(|facts| facts.gateway_tokens),
            proxy_tokens: sum(|facts| facts.proxy_tokens),
            queries: sum(|facts| facts.queries),
            page_tokens: rest.iter().map(|facts| facts.page_tokens).max().unwrap_or_default(),
            page_query: None,
        };
        // A sum is kept where one of its parts is.
        let parts = single.iter().skip(SHOWN).filter_map(|(name, ..)| {
            let case = format!("surface/{name}");
            gateway.records.iter().find(|record| record.case == case).map(|record| gateway.mark(record))
        });
        let label = format!("{} others, one gateway each{}", count(rest.len()), worst(parts));
        table.row(row(&label, &others));
    }
    if let Some((_, label, facts)) = together {
        table.row(row(&format!("{label} ({})", count(facts.servers)), facts));
    }
    table
}

/// The share of `before` that `after` saves; small results cost more in an envelope, and save nothing.
fn saved(after: usize, before: usize) -> String {
    if after >= before { MISSING.to_owned() } else { percent(1.0 - after as f64 / before as f64) }
}

fn of(part: usize, whole: usize) -> String {
    format!("{} / {}", count(part), count(whole))
}

fn session_table(gateway: &GatewayResults) -> Table {
    let titles = [
        "session",
        "calls",
        "refused",
        "definitions",
        "surface",
        "results",
        "on the wire",
        "answers",
        "saved",
        "artifacts",
        "recovered",
        "viewed",
    ];
    let mut table = Table::new(titles);
    for (_, label, facts) in sessions(gateway) {
        let injected = &facts.injected;
        table.row([
            label,
            count(facts.calls),
            count(facts.refused.len()),
            format!("{}{}", count(facts.direct_tokens), if facts.unlisted.is_empty() { "" } else { "*" }),
            count(facts.gateway_tokens),
            count(injected.raw_tokens),
            count(injected.wire_tokens),
            count(injected.answer_tokens),
            saved(injected.answer_tokens, injected.raw_tokens),
            count(injected.artifacts),
            of(injected.recovered, injected.artifacts),
            of(injected.viewed, injected.texts),
        ]);
    }
    table
}

fn refusals(gateway: &GatewayResults) -> Table {
    let mut table = Table::new(["session", "call", "tool", "code", "message"]).words(&["tool", "code", "message"]);
    for (_, label, facts) in sessions(gateway) {
        for refusal in &facts.refused {
            table.row([
                label.clone(),
                count(refusal.call),
                refusal.tool.clone(),
                refusal.code.clone(),
                refusal.message.clone(),
            ]);
        }
    }
    table
}

fn scenario_table(gateway: &GatewayResults) -> Table {
    let titles = [
        "scenario",
        "passed",
        "results",
        "answers",
        "saved",
        "browsing",
        "views",
        "artifacts",
        "recovered",
        "failures",
    ];
    let mut table = Table::new(titles).words(&["failures"]);
    for (_, label, facts) in scenarios(gateway) {
        let injected = &facts.injected;
        let codes: Vec<String> = facts.codes.iter().map(|(code, times)| format!("{code} {times}")).collect();
        table.row([
            label,
            of(facts.passed(), facts.steps),
            count(injected.raw_tokens),
            count(injected.answer_tokens),
            saved(injected.answer_tokens, injected.raw_tokens),
            count(facts.browse_tokens),
            count(facts.view_tokens),
            count(injected.artifacts),
            of(injected.recovered, injected.artifacts),
            if codes.is_empty() { MISSING.to_owned() } else { codes.join(", ") },
        ]);
    }
    table
}

fn failures(gateway: &GatewayResults) -> Table {
    let mut table = Table::new(["case", "message"]).words(&["message"]);
    for record in &gateway.records {
        match &record.outcome {
            Outcome::Failed(message) => table.row([record.case.as_str(), message]),
            Outcome::Measured(GatewayFacts::Scenario(facts)) => {
                facts.failures.iter().for_each(|failure| table.row([record.case.as_str(), failure]));
            }
            Outcome::Measured(GatewayFacts::Session(facts)) if facts.altered > 0 => {
                table.row([
                    record.case.clone(),
                    format!("{} calls reached a server with other bytes", count(facts.altered)),
                ]);
            }
            Outcome::Measured(_) => {}
        }
    }
    table
}

fn dot(tokens: usize) -> Option<Interval> {
    let value = tokens as f64;
    (tokens > 0).then_some(Interval { mean: value, low: value, high: value })
}

fn figure(path: &str, title: &str, series: &[&str], rows: Vec<(String, Vec<Option<Interval>>)>) -> Option<Figure> {
    let plot = IntervalPlot {
        title: title.to_owned(),
        x_title: "tokens (logarithmic)".to_owned(),
        scale: Scale::Log,
        series: series.iter().map(|name| (*name).to_owned()).collect(),
        rows,
        one_lane: false,
    };
    plot.svg().map(|svg| Figure { path: path.to_owned(), alt: title.to_owned(), svg })
}

fn surface_figure(gateway: &GatewayResults) -> Option<Figure> {
    let (single, together) = apart(gateway);
    let rows = together.iter().chain(single.iter().take(SHOWN)).map(|(_, label, facts)| {
        let name = format!("{label} ({})", count(facts.tools));
        (name, vec![dot(facts.gateway_tokens), dot(facts.direct_tokens)])
    });
    let title = "Tokens of the tools that a client is shown, by catalog (tools)";
    figure("gateway-surface.svg", title, &["gateway mode", "direct"], rows.collect())
}

fn session_figure(gateway: &GatewayResults) -> Option<Figure> {
    let rows = sessions(gateway).into_iter().map(|(_, label, facts)| {
        let injected = &facts.injected;
        (label, vec![dot(injected.answer_tokens), dot(injected.raw_tokens)])
    });
    let title = "Tokens of results and of the gateway's answers, by recorded session";
    figure("gateway-sessions.svg", title, &["answers", "results"], rows.collect())
}

/// One sentence for the project's front page; `None` when nothing was measured.
pub(super) fn sentence(gateway: &GatewayResults) -> Option<String> {
    let (_, together) = apart(gateway);
    let (_, _, all) = together?;
    let played = Played::of(gateway).map(|played| format!("; {played}")).unwrap_or_default();
    Some(format!(
        "Gateway: the {} tools of {} real servers are {} tokens of definitions, {} without their schemas (the control, proxy \
         mode), and {} behind one gateway{played}.",
        count(all.tools),
        count(all.servers),
        count(all.direct_tokens),
        count(all.proxy_tokens),
        count(all.gateway_tokens),
    ))
}

/// What the surface and the sessions save, and where they do not.
pub(super) fn answers(gateway: &GatewayResults) -> Vec<Answer> {
    let (_, together) = apart(gateway);
    let surface = together.map(|(_, _, all)| {
        let text = format!(
            "Behind one [gateway](gateway.md) the {} tools of {} real servers take {} tokens instead of {} (the control, all listed \
             without their schemas, {}), and a search at most {}.",
            count(all.tools),
            count(all.servers),
            count(all.gateway_tokens),
            count(all.direct_tokens),
            count(all.proxy_tokens),
            count(all.page_tokens),
        );
        Answer::new(Question::Saving, text)
    });
    let played = Played::of(gateway).filter(|played| played.grown > 0).map(|played| {
        let text = format!(
            "Servers with small results gain nothing from the gateway: in {} of {} recorded sessions the answers had \
             more tokens than the results.",
            count(played.grown),
            count(played.sessions),
        );
        Answer::new(Question::Avoid, text)
    });
    surface.into_iter().chain(played).collect()
}

/// What all recorded sessions together say: each counts alike, so the median comes first.
struct Played {
    sessions: usize,
    calls: usize,
    /// The median of what answers save of results.
    median: f64,
    /// Sessions whose answers have more tokens than the results.
    grown: usize,
    /// Tokens of all results.
    results: usize,
    /// Tokens of all answers.
    answers: usize,
    /// The share of `results` that the two largest sessions have.
    largest: f64,
}

impl Played {
    /// `None` without a session that has results.
    fn of(gateway: &GatewayResults) -> Option<Self> {
        let all: Vec<&SessionFacts> = sessions(gateway).into_iter().map(|(_, _, facts)| facts).collect();
        let mut raw: Vec<usize> = all.iter().map(|facts| facts.injected.raw_tokens).collect();
        raw.sort_unstable();
        let results: usize = raw.iter().sum();
        let tokens = || all.iter().map(|facts| (facts.injected.answer_tokens, facts.injected.raw_tokens));
        let saved = tokens().filter(|(_, raw)| *raw > 0).map(|(answer, raw)| 1.0 - answer as f64 / raw as f64);
        (results > 0).then(|| Self {
            sessions: all.len(),
            calls: all.iter().map(|facts| facts.calls).sum(),
            median: median(&saved.collect::<Vec<f64>>()),
            grown: tokens().filter(|(answer, raw)| answer > raw).count(),
            results,
            answers: tokens().map(|(answer, _)| answer).sum(),
            largest: raw.iter().rev().take(2).sum::<usize>() as f64 / results as f64,
        })
    }
}

impl fmt::Display for Played {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "of {} sessions with {} calls, recorded with real servers, the median saves {} of the tokens of its results \
             through it ({} in all, {} without it), and {} cost more",
            count(self.sessions),
            count(self.calls),
            percent(self.median),
            count(self.answers),
            count(self.results),
            count(self.grown),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::gateway::kinds;
    use crate::eval::gateway::record::{Injected, Refusal};
    use crate::eval::gateway::scenario::Shelf;
    use crate::eval::ranks::Ranks;
    use crate::results::recorded;

    fn surface(tools: usize) -> Outcome<GatewayFacts> {
        Outcome::Measured(GatewayFacts::Surface(SurfaceFacts {
            servers: 1,
            tools,
            unusable: 0,
            direct_tokens: tools * 500,
            gateway_tokens: 700,
            proxy_tokens: tools * 60,
            queries: tools,
            page_tokens: 300 + tools,
            page_query: Some("read".to_owned()),
        }))
    }

    /// A kind of which one of two requests is found as people speak, by the control none, and both as models ask.
    fn kind_of(kind: Shelf, list_tokens: usize) -> KindFacts {
        let search = |ranks: &str, control: &str| {
            let (ours, control): (Ranks, Ranks) =
                (serde_json::from_str(ranks).unwrap(), serde_json::from_str(control).unwrap());
            SearchFacts {
                versus_control: kinds::difference(&ours, &control, &[4, 7]),
                ours: kinds::recall(ours),
                control: kinds::recall(control),
                first_tools: vec![4, 7],
            }
        };
        KindFacts {
            kind,
            items: 12,
            list_tokens,
            surface_tokens: 300,
            pages: 4,
            page_tokens: 1_212,
            largest_page: 400,
            said: search("[[2],[null]]", "[[null],[null]]"),
            asked: search("[[1],[3]]", "[[1],[3]]"),
        }
    }

    fn sample() -> GatewayResults {
        let injected = Injected {
            raw_tokens: 90_000,
            wire_tokens: 120_000,
            answer_tokens: 1_200,
            artifacts: 3,
            artifact_bytes: 400_000,
            recovered: 3,
            viewed: 1,
            texts: 2,
        };
        let refused = vec![Refusal {
            call: 3,
            tool: "up:read".to_owned(),
            code: "ARGS_INVALID".to_owned(),
            message: "no path".to_owned(),
        }];
        let mut records = vec![
            ("scenario/broken".to_owned(), Outcome::Failed("no log".to_owned())),
            (
                "scenario/faults".to_owned(),
                Outcome::Measured(GatewayFacts::Scenario(ScenarioFacts {
                    steps: 4,
                    failures: vec!["step 2: the answer lacks `x`".to_owned()],
                    codes: [("UPSTREAM_TIMEOUT".to_owned(), 2)].into(),
                    direct_tokens: 200,
                    gateway_tokens: 700,
                    browse_tokens: 90,
                    view_tokens: 40,
                    injected: injected.clone(),
                })),
            ),
            (
                "session/sql".to_owned(),
                Outcome::Measured(GatewayFacts::Session(SessionFacts {
                    calls: 14,
                    altered: 0,
                    refused,
                    unlisted: vec!["up".to_owned()],
                    direct_tokens: 3_000,
                    gateway_tokens: 700,
                    injected,
                })),
            ),
            (
                "kinds/library".to_owned(),
                Outcome::Measured(GatewayFacts::Kinds(KindsFacts {
                    servers: 3,
                    kinds: vec![kind_of(Shelf::Tools, 4_000), kind_of(Shelf::Prompts, 602)],
                })),
            ),
            (format!("surface/{TOGETHER}"), surface(400)),
        ];
        records.extend((1..=17).map(|tools| (format!("surface/server-{tools:02}"), surface(tools))));
        recorded("gateway", records.iter().map(|(case, outcome)| (case.as_str(), outcome.clone())).collect())
    }

    #[test]
    fn the_tables_show_the_largest_and_count_the_rest() {
        let shown: Vec<String> = tables(&sample()).iter().map(Table::plain).collect();
        let [surface, kinds, found, session, refused, scenario, failed]: [String; 7] = shown.try_into().unwrap();
        assert_eq!(surface.lines().count(), 1 + SHOWN + 2, "{surface}");
        assert!(
            surface.contains("2 others, one gateway each") && surface.contains("all catalogs together (1)"),
            "{surface}"
        );
        let cells = |table: &str| -> Vec<String> {
            table.lines().map(|line| line.split_whitespace().collect::<Vec<&str>>().join(" ")).collect()
        };
        let costs = ["tools 12 4,000 300 303 400 84.9 %", "prompts 12 602 300 303 400 –"];
        assert_eq!(cells(&kinds)[1..], costs);
        let finds = [
            "as people speak 2 .000 [.00, .00] .500 [.00, 1.00] .000 .000 +.500 [.000, +1.000] inconclusive",
            "as models ask 2 .500 [.00, 1.00] 1.000 [1.00, 1.00] .500 1.000 .000 [.000, .000] same",
        ];
        let finds: Vec<String> =
            ["tools", "prompts"].iter().flat_map(|kind| finds.map(|found| format!("{kind} {found}"))).collect();
        assert_eq!(cells(&found)[1..], finds);
        assert!(session.contains("3,000*") && session.contains("98.7 %") && session.contains("3 / 3"), "{session}");
        assert!(refused.contains("ARGS_INVALID"), "{refused}");
        assert!(scenario.contains("3 / 4") && scenario.contains("UPSTREAM_TIMEOUT 2"), "{scenario}");
        assert!(failed.contains("no log") && failed.contains("step 2"), "{failed}");
    }

    #[test]
    fn the_chapter_shows_its_pictures_and_a_sentence() {
        let mut page = Document::default();
        chapter(&mut page, &sample(), &Tables::default());
        for picture in ["gateway-surface.svg", "gateway-sessions.svg"] {
            assert_eq!(page.text().matches(picture).count(), 1, "{picture}");
        }
        assert!(page.text().contains("step 2: the answer lacks") && !page.text().contains("What a hop costs"));
        let sentence_of_all = sentence(&sample()).unwrap();
        assert!(sentence_of_all.starts_with("Gateway: the 400 tools of 1 real servers"), "{sentence_of_all}");
        assert!(sentence_of_all.contains("the median saves 98.7 %") && sentence_of_all.contains("and 0 cost more"));
        let none = recorded("gateway", Vec::new());
        assert_eq!(sentence(&none), None);
    }
}
