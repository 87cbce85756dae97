//! The report that people open: one HTML file with everything in it, readable without a script.
//!
//! What every reader needs (the verdict, the summary, the worst queries and tools, what is taken for what) is in the markup. A
//! script adds the filter and the view of one query across all engines; it reads the queries and their rankings from a block
//! of JSON, which is compressed where it is large. Everything that comes from a catalog or a queries file is escaped: it is
//! text, never markup.

mod confusion;
mod doctor;
mod events;
mod prompt;
mod route;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use miniz_oxide::deflate::compress_to_vec;
use serde::Serialize;

use self::confusion::Confusion;
pub use self::doctor::doctor;
pub use self::events::events;
pub use self::prompt::{PromptPage, prompt};
pub use self::route::route;
use super::document::Figure;
use super::markup::escaped_xml;
use super::number::{MISSING, count, difference, estimate, percent, share, standing};
use super::table::Table;
use crate::eval::collection::Collection;
use crate::eval::day::Day;
use crate::eval::measure::{FIRST, Measure};
use crate::eval::ranks::Ranks;
use crate::eval::record::{Estimate, Evidence, Facts, Loss};
use crate::eval::run::Evaluation;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Bytes of JSON from which on it is compressed.
const PLAIN: usize = 65_536;

/// Failed queries that stand in the markup; the script shows all of them.
const LISTED: usize = 25;

/// What a badge means.
fn meaning(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Computed => "ranked by this program for this report",
        Evidence::Process => "ranked by another program that this one started",
        Evidence::Recorded => "committed by an earlier run; not run for this report",
        Evidence::Imported => "read from a file; not run here",
    }
}

/// An engine with what it gave on a collection.
#[derive(Debug, Clone, Copy)]
pub struct Ranked<'e> {
    /// The name of the engine.
    pub engine: &'e str,
    /// Where the rankings come from.
    pub evidence: Evidence,
    /// What they give.
    pub evaluation: &'e Evaluation,
}

/// An engine of which an earlier run left the ranks.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'e> {
    /// The name of the engine.
    pub engine: &'e str,
    /// The day of the run.
    pub day: &'e Day,
    /// Its measures.
    pub measures: &'e BTreeMap<String, Estimate>,
    /// The ranks of the needed tools, query by query.
    pub ranks: &'e Ranks,
}

/// An engine that gave nothing.
#[derive(Debug, Clone, Copy)]
pub struct Failed<'e> {
    /// The name of the engine.
    pub engine: &'e str,
    /// Why, beginning with the word for it: missing, unsupported, failed or timed out.
    pub reason: &'e str,
}

/// One collection with the engines that ranked its queries; the first is the one that is judged.
#[derive(Debug)]
pub struct Section<'e> {
    /// Its name.
    pub name: &'e str,
    /// The queries and tools.
    pub collection: &'e Collection,
    /// What ranked them.
    pub ranked: Vec<Ranked<'e>>,
    /// What is recorded of others on the same collection.
    pub recorded: Vec<Recorded<'e>>,
    /// What was asked and gave nothing.
    pub failed: Vec<Failed<'e>>,
    /// Whether it counts in the mean over collections; requests that another section has in other words do not.
    pub counts: bool,
    /// The command that gives these figures.
    pub command: String,
}

/// What stands in the report besides collections.
#[derive(Debug)]
pub struct Extra {
    /// The heading.
    pub title: String,
    /// A sentence on how to read it.
    pub reading: String,
    /// Where it comes from.
    pub evidence: Evidence,
    /// A table.
    pub table: Option<Table>,
    /// Pictures.
    pub figures: Vec<Figure>,
    /// The command that gives the table; below a picture the name of its file stands behind it.
    pub command: String,
}

/// The report as HTML.
///
/// # Errors
/// A number that JSON cannot hold.
pub fn render(title: &str, sections: &[Section<'_>], extras: &[Extra]) -> Result<String, serde_json::Error> {
    let mut body = String::new();
    banner(&mut body, title, sections);
    let _ = writeln!(body, "<main id=\"main\">");
    failures(&mut body, sections);
    summary(&mut body, sections);
    body.push_str(
        "<section id=\"confusions\" aria-labelledby=\"confusions-title\">\n<h2 id=\"confusions-title\">Mistaken for \
         another</h2>\n",
    );
    sections.iter().for_each(|section| confusions(&mut body, section));
    body.push_str("</section>\n");
    extras.iter().for_each(|extra| further(&mut body, extra));
    legend(&mut body);
    body.push_str("</main>\n");
    let data = data(sections)?;
    Ok(page(title, "", &format!("{body}{data}<script>\n{SCRIPT}</script>\n")))
}

/// A whole page: a title, rules beside those of every report, and what stands in it, with the main part under the id `main`.
fn page(title: &str, style: &str, body: &str) -> String {
    let title = escaped_xml(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n\
         <body>\n<a class=\"skip\" href=\"#main\">Skip to the report</a>\n{body}</body>\n</html>\n"
    )
}

/// The rules of pages with bars.
const BARS: &str = include_str!("bars.css");

/// A row of a list of bars: a name, an amount, and the bar of `share` percent; the amount says what the bar shows.
fn bar(name: &str, class: &str, amount: &str, share: f64) -> String {
    stacked(name, amount, &[(class, share)])
}

/// The same with a bar of several parts, each with its class and its share in percent; of several, those of no length are
/// left out, since the thinnest can be seen.
fn stacked(name: &str, amount: &str, parts: &[(&str, f64)]) -> String {
    let part = |(class, share): &(&str, f64)| {
        format!("<span class=\"{class}\" style=\"width:{:.1}%\"></span>", share.clamp(0.0, 100.0))
    };
    format!(
        "<li><span class=\"name\"><bdi>{}</bdi></span><span class=\"n\">{}</span><span class=\"bar\" \
         aria-hidden=\"true\">{}</span></li>\n",
        escaped_xml(name),
        escaped_xml(amount),
        parts.iter().filter(|(_, share)| parts.len() == 1 || *share > 0.0).map(part).collect::<String>()
    )
}

/// The verdict and one thing to do next.
fn banner(body: &mut String, title: &str, sections: &[Section<'_>]) {
    let _ = writeln!(body, "<header>\n<h1>{}</h1>", escaped_xml(title));
    let verdicts: Vec<String> = sections.iter().filter_map(verdict).collect();
    match verdicts.as_slice() {
        [] => body.push_str("<p class=\"verdict\">No query has a relevant tool, so there is nothing to judge.</p>\n"),
        [one] => {
            let _ = writeln!(body, "<p class=\"verdict\">{one}</p>");
        }
        several => {
            if let Some(mean) = mean_verdict(sections) {
                let _ = writeln!(body, "<p class=\"verdict\">{mean}</p>");
            }
            body.push_str("<details>\n<summary>By collection</summary>\n<ul>\n");
            several.iter().for_each(|one| {
                let _ = writeln!(body, "<li>{one}</li>");
            });
            body.push_str("</ul>\n</details>\n");
        }
    }
    if let Some(next) = next_step(sections) {
        let _ = writeln!(body, "<p class=\"next\"><strong>Next:</strong> {next}</p>");
    }
    body.push_str(
        "<nav aria-label=\"Sections\"><a href=\"#failures\">Failures</a> <a href=\"#summary\">Summary</a> <a \
         href=\"#confusions\">Mistaken for another</a> <a href=\"#legend\">How to read it</a></nav>\n</header>\n",
    );
}

/// What the first engine finds, beside the next one.
fn verdict(section: &Section<'_>) -> Option<String> {
    let first = section.ranked.first()?;
    let recall = first.evaluation.facts.measures.get("recall@5").filter(|_| first.evaluation.facts.answerable > 0)?;
    let failed = failed(section, first).count();
    let mut text = format!(
        "<bdi>{}</bdi> finds <strong>{}</strong> of the needed tools among the first five on <bdi>{}</bdi>; {} of {} queries lack \
         one",
        escaped_xml(first.engine),
        percent(recall.mean),
        escaped_xml(section.name),
        count(failed),
        count(first.evaluation.facts.answerable),
    );
    let others = section.ranked.iter().skip(1).filter_map(|other| {
        let recall = other.evaluation.facts.measures.get("recall@5")?;
        Some(format!("<bdi>{}</bdi> {}", escaped_xml(other.engine), percent(recall.mean)))
    });
    let recorded = section.recorded.iter().filter_map(|one| Some((one.engine, one.measures.get("recall@5")?.mean)));
    let others: Vec<String> = others.chain(best_recorded(recorded)).collect();
    if !others.is_empty() {
        let _ = write!(text, " ({})", others.join(", "));
    }
    text.push('.');
    Some(text)
}

/// The two recorded engines that find most, said to be recorded: one of them may be a relative of the first engine.
fn best_recorded<'e>(found: impl Iterator<Item = (&'e str, f64)>) -> Option<String> {
    let mut found: Vec<(&str, f64)> = found.collect();
    found.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(right.0)));
    let shown = |(engine, mean): &(&str, f64)| format!("<bdi>{}</bdi> {}", escaped_xml(engine), percent(*mean));
    let best: Vec<String> = found.iter().take(2).map(shown).collect();
    (!best.is_empty()).then(|| format!("the best recorded {}", best.join(" and ")))
}

/// The mean over collections of what the first engine finds, beside the engines that ranked all of them too, and the best
/// two of those that are recorded on all.
fn mean_verdict(sections: &[Section<'_>]) -> Option<String> {
    let judged: Vec<&Section<'_>> =
        sections.iter().filter(|section| section.counts && verdict(section).is_some()).collect();
    let mean = |of: &dyn Fn(&Section<'_>) -> Option<f64>| -> Option<f64> {
        judged.iter().map(|section| of(section)).sum::<Option<f64>>().map(|sum| sum / judged.len() as f64)
    };
    let recall = |measures: &BTreeMap<String, Estimate>| Some(measures.get("recall@5")?.mean);
    let ranked_mean = |engine: &str| {
        mean(&|section| recall(&section.ranked.iter().find(|one| one.engine == engine)?.evaluation.facts.measures))
    };
    let recorded_mean =
        |engine: &str| mean(&|section| recall(section.recorded.iter().find(|one| one.engine == engine)?.measures));
    let first = judged.first()?.ranked.first()?;
    let mut text = format!(
        "<bdi>{}</bdi> finds <strong>{}</strong> of the needed tools among the first five, the mean over {} collections",
        escaped_xml(first.engine),
        percent(ranked_mean(first.engine)?),
        count(judged.len()),
    );
    let others = judged.first()?.ranked.iter().skip(1).filter_map(|other| {
        Some(format!("<bdi>{}</bdi> {}", escaped_xml(other.engine), percent(ranked_mean(other.engine)?)))
    });
    let recorded = judged.first()?.recorded.iter().filter_map(|one| Some((one.engine, recorded_mean(one.engine)?)));
    let others: Vec<String> = others.chain(best_recorded(recorded)).collect();
    if !others.is_empty() {
        let _ = write!(text, " ({})", others.join(", "));
    }
    text.push('.');
    Some(text)
}

/// One thing to do: what costs the first engine most.
fn next_step(sections: &[Section<'_>]) -> Option<String> {
    let (section, first) = sections.iter().find_map(|section| Some((section, section.ranked.first()?)))?;
    let Loss { vocabulary, pruning, tie, ranking, .. } = first.evaluation.facts.loss;
    let worst = confusion::worst_tool(section.collection, first.evaluation);
    let tool = worst.map_or_else(String::new, |(item, failed)| {
        let name = escaped_xml(section.collection.tool_handle(item));
        format!(" Begin with <code><bdi>{name}</bdi></code>, which {} queries miss.", count(failed))
    });
    let most = [vocabulary, pruning, tie, ranking].into_iter().fold(0.0, f64::max);
    Some(match most {
        0.0 => "nothing is lost at five tools; gate on it with <code>bench eval --baseline</code>.".to_owned(),
        most if most == vocabulary => {
            format!("put your users' words into the descriptions of tools that share none with the query.{tool}")
        }
        most if most == ranking => {
            format!("say in the descriptions what distinguishes tools that are mistaken for each other.{tool}")
        }
        most if most == tie => {
            format!("distinguish tools that score the same; the order of ids decides between them.{tool}")
        }
        _ => "route with <code>navigation = \"flat\"</code>: the navigation leaves out tools that scoring finds."
            .to_owned(),
    })
}

/// A query that lacks a needed tool among the first five: its place, and the worst of the ranks, `None` for not found.
fn failed<'e>(section: &'e Section<'_>, ranked: &'e Ranked<'_>) -> impl Iterator<Item = (usize, Option<usize>)> + 'e {
    let outcomes = section.collection.queries.iter().zip(&ranked.evaluation.outcomes).enumerate();
    outcomes.filter_map(|(at, (_, outcome))| {
        let ranks = outcome.as_ref()?.found.ranks();
        let worst = if ranks.contains(&None) { None } else { ranks.iter().flatten().max().copied() };
        worst.is_none_or(|rank| rank > FIRST).then_some((at, worst))
    })
}

/// The filter and the first of the failed queries.
fn failures(body: &mut String, sections: &[Section<'_>]) {
    body.push_str(
        "<section id=\"failures\" aria-labelledby=\"failures-title\">\n<h2 id=\"failures-title\">Failures first</h2>\n\
         <form id=\"filter\" role=\"search\" hidden>\n<label for=\"query\">Filter</label>\n<input id=\"query\" \
         type=\"search\" autocomplete=\"off\" spellcheck=\"false\" aria-describedby=\"syntax\" value=\"rank&gt;5\">\n\
         <p id=\"syntax\" class=\"note\">Words are searched for in queries, ids and tools. <code>rank&gt;5</code> \
         <code>rank:none</code> <code>engine:NAME</code> <code>collection:NAME</code> <code>tool:NAME</code> \
         <code>took:NAME</code> <code>because:ranking</code> <code>register:terse</code>; <code>-</code> in front \
         negates a term, quotes keep words together.</p>\n<p id=\"count\" role=\"status\"></p>\n</form>\n<section \
         id=\"one\" tabindex=\"-1\" aria-live=\"polite\" hidden></section>\n<div class=\"scroll\" role=\"region\" \
         aria-label=\"Queries\" tabindex=\"0\">\n<table id=\"queries\">\n<caption>Queries whose tools are not all \
         among the first five</caption>\n<thead><tr><th scope=\"col\">query</th><th scope=\"col\">asked</th><th \
         scope=\"col\">needed</th><th scope=\"col\" class=\"n\">rank</th><th scope=\"col\">first</th><th \
         scope=\"col\">because</th></tr></thead>\n<tbody>\n",
    );
    let mut listed = 0;
    for section in sections {
        let Some(first) = section.ranked.first() else { continue };
        for (at, rank) in failed(section, first).take(LISTED.saturating_sub(listed)) {
            row(body, section, first, at, rank);
            listed += 1;
        }
    }
    body.push_str("</tbody>\n</table>\n</div>\n<p><button id=\"more\" type=\"button\" hidden>Show more</button></p>\n");
    sections.iter().for_each(|section| command(body, &format!("{} --failures", section.command)));
    body.push_str("</section>\n");
}

fn row(body: &mut String, section: &Section<'_>, ranked: &Ranked<'_>, at: usize, rank: Option<usize>) {
    let (query, collection) = (&section.collection.queries[at], section.collection);
    let name = |item: u32| format!("<bdi>{}</bdi>", escaped_xml(collection.tool_handle(item)));
    let needed: Vec<String> = query.groups.iter().filter_map(|group| group.first()).map(|item| name(*item)).collect();
    let first = ranked.evaluation.rankings.get(at).and_then(|ranking| ranking.hits.first());
    let because = ranked.evaluation.outcomes[at].as_ref().map_or_else(String::new, |one| one.loss.causes().join("; "));
    let _ = writeln!(
        body,
        "<tr><th scope=\"row\"><bdi>{}/{}</bdi></th><td><bdi>{}</bdi></td><td>{}</td><td class=\"n\">{}</td><td>{}</td>\
         <td>{because}</td></tr>",
        escaped_xml(section.name),
        escaped_xml(&query.id),
        escaped_xml(&query.text),
        needed.join("<br>"),
        rank.map_or_else(|| "–".to_owned(), count),
        first.map_or_else(|| "–".to_owned(), |hit| name(hit.item)),
    );
}

/// The measures of every engine on every collection.
fn summary(body: &mut String, sections: &[Section<'_>]) {
    body.push_str(
        "<section id=\"summary\" aria-labelledby=\"summary-title\">\n<h2 id=\"summary-title\">Summary</h2>\n",
    );
    for section in sections {
        let facts = section.ranked.first().map(|one| &one.evaluation.facts);
        let _ = writeln!(
            body,
            "<h3><bdi>{}</bdi></h3>\n<p>{} tools, {} queries that a tool answers, {} that none does.</p>",
            escaped_xml(section.name),
            count(section.collection.catalog.len()),
            count(facts.map_or(0, |facts| facts.answerable)),
            count(facts.map_or(0, |facts| facts.unanswerable)),
        );
        body.push_str(
            "<div class=\"scroll\" role=\"region\" aria-label=\"Measures\" tabindex=\"0\">\n<table>\n<caption>Measures, with 95 % \
             intervals; the difference is from the first engine, query by query</caption>\n<thead><tr><th \
             scope=\"col\">engine</th><th scope=\"col\">evidence</th><th scope=\"col\" class=\"n\">recall@5</th><th \
             scope=\"col\" class=\"n\">nDCG@10</th><th scope=\"col\" class=\"n\">hit@1</th><th scope=\"col\" \
             class=\"n\">difference of recall@5</th><th scope=\"col\" class=\"n\">tokens of cards</th></tr></thead>\n<tbody>\n",
        );
        let first = section.ranked.first().map(|one| one.evaluation.recall_at_5.as_slice()).unwrap_or_default();
        for (at, ranked) in section.ranked.iter().enumerate() {
            let facts: &Facts = &ranked.evaluation.facts;
            let tokens = facts.tokens.as_ref().map(|tokens| tokens.cards_mean);
            let own = (at > 0).then_some(ranked.evaluation.recall_at_5.as_slice());
            measures(
                body,
                ranked.engine,
                &badge(ranked.evidence),
                &facts.measures,
                own.map(|own| (first, own)),
                tokens,
            );
        }
        for recorded in &section.recorded {
            let badge = format!("{} {}", badge(Evidence::Recorded), recorded.day);
            let own = recorded.ranks.values(Measure::RECALL_5);
            measures(body, recorded.engine, &badge, recorded.measures, Some((first, &own)), None);
        }
        for Failed { engine, reason } in &section.failed {
            let (engine, reason) = (escaped_xml(engine), escaped_xml(reason));
            let _ = writeln!(
                body,
                "<tr><th scope=\"row\"><bdi>{engine}</bdi></th><td colspan=\"6\"><bdi>{reason}</bdi></td></tr>"
            );
        }
        body.push_str("</tbody>\n</table>\n</div>\n");
        command(body, &section.command);
    }
    body.push_str("</section>\n");
}

/// A row of the summary; `paired` are the values of the first engine and its own, query by query.
fn measures(
    body: &mut String,
    engine: &str,
    badge: &str,
    measures: &BTreeMap<String, Estimate>,
    paired: Option<(&[f64], &[f64])>,
    tokens: Option<f64>,
) {
    let shown = |measure: &str| measures.get(measure).map_or_else(|| MISSING.to_owned(), estimate);
    let paired = paired.filter(|(first, own)| !first.is_empty() && first.len() == own.len()).map(|(first, own)| {
        let paired = crate::eval::run::against("first", first, own);
        format!("{} {}", difference(&paired.difference), standing(&paired))
    });
    let hit = measures.get("hit@1").map_or_else(|| MISSING.to_owned(), |one| share(one.mean));
    let tokens = tokens.map_or_else(|| MISSING.to_owned(), |tokens| count(tokens.round() as usize));
    let _ = writeln!(
        body,
        "<tr><th scope=\"row\"><bdi>{}</bdi></th><td>{badge}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{hit}</td><td class=\"n\">{}</td><td class=\"n\">{tokens}</td></tr>",
        escaped_xml(engine),
        shown("recall@5"),
        shown("nDCG@10"),
        paired.unwrap_or_else(|| MISSING.to_owned()),
    );
}

fn badge(evidence: Evidence) -> String {
    let (word, meaning) = (evidence.name(), meaning(evidence));
    format!("<span class=\"badge {word}\" title=\"{meaning}\">{word}</span>")
}

fn command(body: &mut String, command: &str) {
    let _ = writeln!(body, "<p class=\"command\"><code>{}</code></p>", escaped_xml(command));
}

/// Which tools are taken for which, by the first engine.
fn confusions(body: &mut String, section: &Section<'_>) {
    let Some(first) = section.ranked.first() else { return };
    let confusion = Confusion::of(section.collection, first.evaluation);
    let _ = writeln!(
        body,
        "<h3><bdi>{}</bdi> by <bdi>{}</bdi></h3>\n{}",
        escaped_xml(section.name),
        escaped_xml(first.engine),
        confusion.html(section.collection),
    );
    command(body, &format!("{} --html report.html", section.command));
}

fn further(body: &mut String, extra: &Extra) {
    let _ = writeln!(
        body,
        "<section>\n<h2>{} {}</h2>\n<p>{}</p>",
        escaped_xml(&extra.title),
        badge(extra.evidence),
        escaped_xml(&extra.reading)
    );
    if let Some(table) = &extra.table {
        body.push_str(&table.html(&extra.title));
    }
    for figure in &extra.figures {
        let (alt, data) = (escaped_xml(&figure.alt), BASE64_STANDARD.encode(&figure.svg));
        let _ = writeln!(body, "<img alt=\"{alt}\" src=\"data:image/svg+xml;base64,{data}\">");
        command(body, &format!("{} # {}", extra.command, figure.path));
    }
    if extra.figures.is_empty() {
        command(body, &extra.command);
    }
    body.push_str("</section>\n");
}

fn legend(body: &mut String) {
    body.push_str("<section id=\"legend\">\n<h2>How to read it</h2>\n<dl>\n");
    for evidence in [Evidence::Computed, Evidence::Process, Evidence::Recorded, Evidence::Imported] {
        let _ = writeln!(body, "<dt>{}</dt><dd>{}.</dd>", badge(evidence), meaning(evidence));
    }
    body.push_str(
        "<dt>recall@5</dt><dd>The mean share of the needed tools among the first five.</dd>\n<dt>nDCG@10</dt><dd>How \
         high the needed tools rank among the first ten.</dd>\n<dt>rank</dt><dd>The place of the lowest-ranked needed \
         tool; – where one was not found.</dd>\n</dl>\n<noscript><p>Without scripts the report shows the first \
         failures and all summaries; the filter and the view of one query need a script.</p></noscript>\n</section>\n",
    );
}

/// What the script reads: short keys, tools by number.
#[derive(Serialize)]
struct Data<'e> {
    shown: usize,
    collections: Vec<CollectionData<'e>>,
}

#[derive(Serialize)]
struct CollectionData<'e> {
    name: &'e str,
    tools: Vec<&'e str>,
    engines: Vec<EngineData<'e>>,
    queries: Vec<QueryData<'e>>,
}

#[derive(Serialize)]
struct EngineData<'e> {
    name: &'e str,
    evidence: Evidence,
}

#[derive(Serialize)]
struct QueryData<'e> {
    id: &'e str,
    text: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    register: Option<&'e str>,
    /// Needed tools: the named one and its equivalents.
    needed: &'e [Vec<u32>],
    /// By engine.
    of: Vec<AnswerData>,
}

#[derive(Serialize)]
struct AnswerData {
    /// By needed tool.
    ranks: Vec<Option<usize>>,
    first: Vec<u32>,
    because: Vec<&'static str>,
}

fn data(sections: &[Section<'_>]) -> Result<String, serde_json::Error> {
    let answer = |ranked: &Ranked<'_>, at: usize| {
        let outcome = ranked.evaluation.outcomes.get(at).and_then(Option::as_ref);
        let hits = ranked.evaluation.rankings.get(at).map(|ranking| ranking.hits.as_slice()).unwrap_or_default();
        AnswerData {
            ranks: outcome.map(|outcome| outcome.found.ranks().to_vec()).unwrap_or_default(),
            first: hits.iter().take(FIRST).map(|hit| hit.item).collect(),
            because: outcome.map(|outcome| outcome.loss.causes()).unwrap_or_default(),
        }
    };
    let of = |section: &'_ Section<'_>| -> Result<String, serde_json::Error> {
        // Recorded ranks are those of the queries that need a tool.
        let mut recorded: Vec<_> = section.recorded.iter().map(|recorded| recorded.ranks.iter()).collect();
        let queries = section.collection.queries.iter().enumerate().map(|(at, query)| {
            let next = |ranks: &mut dyn Iterator<Item = &[Option<usize>]>| match query.groups.is_empty() {
                true => Vec::new(),
                false => ranks.next().map(<[_]>::to_vec).unwrap_or_default(),
            };
            let ranks: Vec<_> = recorded.iter_mut().map(|ranks| next(ranks)).collect();
            let recorded = ranks.into_iter().map(|ranks| AnswerData { ranks, first: Vec::new(), because: Vec::new() });
            QueryData {
                id: &query.id,
                text: &query.text,
                register: query.register.as_deref(),
                needed: &query.groups,
                of: section.ranked.iter().map(|ranked| answer(ranked, at)).chain(recorded).collect(),
            }
        });
        let tools = (0..section.collection.catalog.len() as u32).map(|item| section.collection.tool_handle(item));
        let ranked = section.ranked.iter().map(|one| EngineData { name: one.engine, evidence: one.evidence });
        let recorded = section.recorded.iter();
        let recorded = recorded.map(|one| EngineData { name: one.engine, evidence: Evidence::Recorded });
        let engines = ranked.chain(recorded);
        let collection = CollectionData {
            name: section.name,
            tools: tools.collect(),
            engines: engines.collect(),
            queries: queries.collect(),
        };
        serde_json::to_string(&collection)
    };
    let parts = sections.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    let empty = serde_json::to_string(&Data { shown: FIRST, collections: Vec::new() })?;
    let json = empty.replace("[]", &format!("[{}]", parts.join(",")));
    Ok(if json.len() < PLAIN {
        // No element of HTML can end or begin inside: `<` is written as JSON writes any character.
        let json = json.replace('<', "\\u003c");
        format!("<script id=\"data\" type=\"application/json\">{json}</script>\n")
    } else {
        let packed = BASE64_STANDARD.encode(compress_to_vec(json.as_bytes(), 9));
        format!("<script id=\"data\" type=\"application/json\" data-packed=\"deflate-raw\">{packed}</script>\n")
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::eval::collection::Source;
    use crate::eval::engine::RouterEngine;
    use crate::eval::record::Origin;
    use crate::eval::run::{PromptTokens, evaluate};
    use contextweaver_routing::RoutingConfig;

    const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}";

    fn collection(queries: usize) -> Collection {
        let tools = serde_json::json!([
            {"name": HOSTILE, "description": "Opens a ticket <b>now</b>"},
            {"name": "send_mail", "description": "Sends a letter"},
            {"name": "list_files", "description": "Lists the files of a folder"},
        ]);
        let mut text = String::new();
        for at in 0..queries {
            let line = serde_json::json!({"id": format!("q{at}"), "query": format!("{HOSTILE} letter {at}"), "relevant": ["list_files"]});
            let _ = writeln!(text, "{line}");
        }
        let _ = writeln!(text, "{}", serde_json::json!({"id": "none", "query": "pizza", "relevant": []}));
        let source = |bytes| Source { path: Path::new("test"), bytes };
        let tools = tools.to_string();
        Collection::from_bytes("a<b", Origin::Public, source(tools.as_bytes()), source(text.as_bytes())).unwrap()
    }

    fn report(queries: usize) -> String {
        let collection = collection(queries);
        let engine = RouterEngine::new("default", RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        let evaluation = evaluate(&collection, &engine, PromptTokens::Skip).unwrap();
        // Of a run that found every tool at the second place.
        let ranks: Ranks = (0..queries).map(|_| vec![Some(2)]).collect();
        let (measures, day) = (ranks.measures(), Day::now());
        let ranked = |name| Ranked { engine: name, evidence: Evidence::Computed, evaluation: &evaluation };
        let section = Section {
            name: &collection.name,
            collection: &collection,
            ranked: vec![ranked("default"), ranked("o<ther")],
            recorded: vec![Recorded { engine: "elsewhere", day: &day, measures: &measures, ranks: &ranks }],
            failed: vec![Failed { engine: "b<ad", reason: "timed out: <img> took more than 1 ms" }],
            counts: true,
            command: "contextweaver bench eval --catalog 'a & b'".to_owned(),
        };
        render("Report of a<b", &[section], &[]).unwrap()
    }

    #[test]
    fn nothing_foreign_is_markup() {
        for html in [report(3), report(400)] {
            assert_eq!(html.matches("<script").count(), 2, "the data and the script");
            assert_eq!(html.matches("</script").count(), 2);
            assert!(!html.contains("<img") && !html.contains("<b>now") && !html.contains("a<b"));
            assert!(html.contains("&lt;/script&gt;") && html.contains("--catalog &#39;a &amp; b&#39;"));
        }
    }

    #[test]
    fn several_collections_are_one_mean_and_a_list() {
        let collection = collection(3);
        let engine = RouterEngine::new("default", RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        let evaluation = evaluate(&collection, &engine, PromptTokens::Skip).unwrap();
        let ranks = |rank: usize| -> Ranks { (0..3).map(|_| vec![Some(rank)]).collect() };
        let (high, low, day) = (ranks(1), ranks(9), Day::now());
        let measures = [&high, &low].map(Ranks::measures);
        let section = |name: &'static str| Section {
            name,
            collection: &collection,
            ranked: vec![Ranked { engine: "default", evidence: Evidence::Computed, evaluation: &evaluation }],
            recorded: vec![
                Recorded { engine: "far", day: &day, measures: &measures[1], ranks: &low },
                Recorded { engine: "near", day: &day, measures: &measures[0], ranks: &high },
            ],
            failed: Vec::new(),
            counts: name != "again",
            command: format!("contextweaver bench eval --catalog {name}.json"),
        };
        let picture = |path: &str| Figure { path: path.to_owned(), alt: "a".to_owned(), svg: "<svg/>".to_owned() };
        let extra = Extra {
            title: "t".to_owned(),
            reading: String::new(),
            evidence: Evidence::Recorded,
            table: None,
            figures: vec![picture("one.svg"), picture("two.svg")],
            command: "draw".to_owned(),
        };
        let html = render("r", &[section("farm"), section("town"), section("again")], &[extra]).unwrap();
        assert_eq!(html.matches("class=\"verdict\"").count(), 1);
        let mean = "the mean over 2 collections (the best recorded <bdi>near</bdi> 100.0 % and <bdi>far</bdi> 0.0 %).</p>\n<details>\n<summary>By collection";
        assert!(html.contains(mean), "{html}");
        assert_eq!(
            html.matches("(the best recorded <bdi>near</bdi> 100.0 % and <bdi>far</bdi> 0.0 %)").count(),
            4,
            "and of each collection"
        );
        for command in ["farm.json --failures", "town.json --html report.html", "draw # one.svg", "draw # two.svg"] {
            assert!(html.contains(&format!("{command}</code>")), "{command}");
        }
        let alone = render("r", &[section("farm")], &[]).unwrap();
        assert!(!alone.contains("<details>") && !alone.contains("the mean over"));
    }

    #[test]
    fn the_data_is_plain_where_it_is_small_and_packed_where_it_is_not() {
        let data = |html: &str| {
            html.split_once("type=\"application/json\"").unwrap().1.split_once("</script>").unwrap().0.to_owned()
        };
        let small = data(&report(3));
        let json: serde_json::Value = serde_json::from_str(&small[1..]).unwrap();
        assert_eq!(json["collections"][0]["queries"][0]["text"], format!("{HOSTILE} letter 0"));
        assert_eq!(json["collections"][0]["queries"][3]["of"][0]["ranks"], serde_json::json!([]));
        assert_eq!(json["collections"][0]["engines"][2]["name"], "elsewhere");
        assert_eq!(json["collections"][0]["queries"][2]["of"][2]["ranks"], serde_json::json!([2]));
        assert_eq!(json["collections"][0]["queries"][3]["of"][2]["ranks"], serde_json::json!([]));
        let large = data(&report(400));
        let packed = large.strip_prefix(" data-packed=\"deflate-raw\">").unwrap();
        let bytes = miniz_oxide::inflate::decompress_to_vec(&BASE64_STANDARD.decode(packed).unwrap()).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(json["collections"][0]["queries"].as_array().unwrap().len(), 401);
    }

    #[test]
    fn the_same_input_gives_the_same_bytes_and_reads_without_a_script() {
        let html = report(40);
        assert!(html == report(40));
        let markup = html.split("<script id").next().unwrap();
        assert!(
            markup.contains("40 of 40 queries lack one")
                && markup.contains(
                    "<strong>Next:</strong> put your users' \
                                                                             words"
                )
        );
        assert_eq!(markup.matches("<th scope=\"row\"><bdi>a&lt;b/q").count(), LISTED);
        assert!(markup.contains("list_files"));
        assert!(markup.contains("<td colspan=\"6\"><bdi>timed out: &lt;img&gt; took"));
    }
}
