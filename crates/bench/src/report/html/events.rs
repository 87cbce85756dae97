//! What a gateway did as a page, by its file of events: tokens that were saved, calls, how long they took, and errors.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::markup::escaped_xml;
use super::super::number::{MISSING, count, counted, percent, quantity};
use super::super::table::Table;
use super::{BARS, bar, page, stacked};
use contextweaver_core::text::{Price, grouped};
use contextweaver_gateway::{BadLines, Durations, EventStats, Savings, Tally};

/// Bars of a list, at most; tables have all rows.
const MOST_BARS: usize = 20;

/// The page of a file of events: one file, without a script and without anything from outside. `source` is the name of the
/// file; with a price, what was saved is shown in money too.
#[must_use]
pub fn events(source: &str, stats: &EventStats, price: Option<&Price>) -> String {
    let mut body = "<header>\n<h1>What the gateway did</h1>\n".to_owned();
    verdict(&mut body, stats, price);
    let _ = writeln!(body, "<p class=\"note\">From <bdi>{}</bdi>.</p>", escaped_xml(source));
    body.push_str(
        "<nav aria-label=\"Sections\"><a href=\"#tokens\">Tokens</a> <a href=\"#servers\">Servers</a> <a \
         href=\"#tools\">Tools</a> <a href=\"#errors\">Errors</a> <a href=\"#events\">Events</a></nav>\n</header>\n<main \
         id=\"main\">\n",
    );
    tokens(&mut body, stats.savings.as_ref());
    called(&mut body, ("servers", "Calls by server", "server"), &stats.by_server);
    called(&mut body, ("tools", "Calls by tool", "tool"), &stats.by_tool);
    errors(&mut body, &stats.errors);
    body.push_str("<h2 id=\"events\">Events</h2>\n");
    let kinds = stats.by_event.iter().map(|(event, tally)| (event.to_string(), tally));
    let kinds = tallies("event", kinds);
    body.push_str(&if kinds.is_empty() { "<p>None.</p>\n".to_owned() } else { kinds.html("Events by kind") });
    bad_lines(&mut body, &stats.bad);
    body.push_str("</main>\n");
    page("What the gateway did", BARS, &body)
}

fn verdict(body: &mut String, stats: &EventStats, price: Option<&Price>) {
    let saved = stats.savings.as_ref().map(|savings| {
        let saved = savings.saved();
        let (tokens, cost) = (grouped(saved.unsigned_abs()), price.map(|price| price.of(saved.saturating_abs())));
        if saved < 0 {
            let cost = cost.map_or_else(String::new, |cost| format!(" ({})", escaped_xml(&cost)));
            format!("<strong>{tokens} tokens more</strong> than without the gateway{cost}. ")
        } else {
            let cost = cost.map_or_else(String::new, |cost| format!(", {}", escaped_xml(&cost)));
            let share = percent(saved as f64 / savings.without().max(1) as f64);
            format!("<strong>{tokens} tokens saved</strong> ({share}{cost}). ")
        }
    });
    let calls: usize = stats.by_tool.values().map(|tally| tally.count).sum();
    let failed: usize = stats.by_tool.values().map(failed).sum();
    let _ = writeln!(
        body,
        "<p class=\"verdict\">{}{} of tools, {} of them failed.</p>",
        saved.unwrap_or_default(),
        counted(calls, "call", "calls"),
        count(failed)
    );
    let (events, sessions) = (counted(stats.events, "event", "events"), counted(stats.sessions, "session", "sessions"));
    let time = stats.first.as_deref().zip(stats.last.as_deref()).map_or_else(String::new, |(first, last)| {
        format!(", <bdi>{}</bdi> to <bdi>{}</bdi>", escaped_xml(first), escaped_xml(last))
    });
    let since = stats
        .since
        .as_deref()
        .map_or_else(String::new, |since| format!(" Only what ended after <bdi>{}</bdi> counts.", escaped_xml(since)));
    let _ = writeln!(body, "<p>{events} of {sessions}{time}.{since}</p>");
}

fn failed(tally: &Tally) -> usize {
    tally.count.saturating_sub(tally.succeeded)
}

/// What took how many tokens without the gateway and with it.
fn tokens(body: &mut String, savings: Option<&Savings>) {
    body.push_str("<h2 id=\"tokens\">Tokens</h2>\n");
    let Some(savings) = savings else {
        body.push_str("<p>No event counts tokens: only those of the mode <code>gateway</code> do.</p>\n");
        return;
    };
    let spent = savings.spent;
    let (without, with) = ("c4", "c0");
    let rows = [
        ("definitions, without the gateway", without, savings.definitions),
        ("definitions, with it", with, savings.surface),
        ("results, without the gateway", without, spent.results),
        ("results, with it", with, spent.answers),
        ("searches and the rest, with it", with, spent.other),
        ("all, without the gateway", without, savings.without()),
        ("all, with it", with, savings.with()),
    ];
    let most = savings.without().max(savings.with()).max(1) as f64;
    body.push_str("<ul class=\"bars\">\n");
    for (what, class, tokens) in rows {
        body.push_str(&bar(what, class, &grouped(tokens), 100.0 * tokens as f64 / most));
    }
    let _ = writeln!(
        body,
        "</ul>\n<p class=\"note\">By cl100k_base, of {}; definitions count once for each. A whole bar is the larger sum.</p>",
        counted(usize::try_from(savings.sessions).unwrap_or(usize::MAX), "session", "sessions")
    );
}

/// Calls as bars and as a table: the most called first, then by name.
fn called(body: &mut String, (id, heading, what): (&str, &str, &str), all: &BTreeMap<String, Tally>) {
    let _ = writeln!(body, "<h2 id=\"{id}\">{heading}</h2>");
    let mut rows: Vec<(&str, &Tally)> = all.iter().map(|(name, tally)| (name.as_str(), tally)).collect();
    // Stable sorts: among equals the order of the names stays.
    rows.sort_by_key(|(_, tally)| Reverse(tally.count));
    let Some(most) = rows.first().map(|(_, tally)| tally.count.max(1) as f64) else {
        body.push_str("<p>None.</p>\n");
        return;
    };
    body.push_str("<ul class=\"bars\">\n");
    for (name, tally) in rows.iter().take(MOST_BARS) {
        let amount = match failed(tally) {
            0 => counted(tally.count, "call", "calls"),
            failed => format!("{}, {} failed", counted(tally.count, "call", "calls"), count(failed)),
        };
        let share = |calls: usize| 100.0 * calls as f64 / most;
        body.push_str(&stacked(name, &amount, &[("c0", share(tally.succeeded)), ("c5", share(failed(tally)))]));
    }
    let _ = writeln!(
        body,
        "</ul>\n<p class=\"note\">{}A whole bar is the most calls; its end in the other colour is those that failed.</p>",
        first_of(rows.len())
    );
    let mut slowest: Vec<(&str, Durations)> =
        rows.iter().filter_map(|(name, tally)| Some((*name, tally.duration_ms?))).collect();
    slowest.sort_by(|(_, left), (_, right)| right.p95.total_cmp(&left.p95));
    if let Some(longest) = slowest.first().map(|(_, slowest)| slowest.p95.max(f64::MIN_POSITIVE)) {
        body.push_str("<h3>How long they took</h3>\n<ul class=\"bars\">\n");
        for (name, Durations { p50, p95, .. }) in slowest.iter().take(MOST_BARS) {
            let amount = format!("half within {} ms, 95 % within {} ms", quantity(*p50), quantity(*p95));
            let share = |time: f64| time / longest * 100.0;
            body.push_str(&stacked(name, &amount, &[("c0", share(*p50)), ("c1", share(p95 - p50))]));
        }
        let _ = writeln!(
            body,
            "</ul>\n<p class=\"note\">{}A whole bar is the longest of these times; the first colour ends at the median.</p>",
            first_of(slowest.len())
        );
    }
    let rows = rows.into_iter().map(|(name, tally)| (name.to_owned(), tally));
    body.push_str(&tallies(what, rows).html(heading));
}

/// What is said of a list that does not show all.
fn first_of(all: usize) -> String {
    if all > MOST_BARS { format!("The first {MOST_BARS} of {}. ", count(all)) } else { String::new() }
}

fn tallies<'t>(what: &str, rows: impl Iterator<Item = (String, &'t Tally)>) -> Table {
    let mut table = Table::new([what, "count", "success", "median ms", "95 % within ms", "longest ms"]);
    for (name, tally) in rows {
        let times = tally.duration_ms.map(|Durations { p50, p95, max }| [p50, p95, max].map(quantity));
        let [median, most, longest] = times.unwrap_or_else(|| [MISSING; 3].map(str::to_owned));
        table.row([name, count(tally.count), percent(tally.success_rate), median, most, longest]);
    }
    table
}

fn errors(body: &mut String, errors: &BTreeMap<String, usize>) {
    body.push_str("<h2 id=\"errors\">Errors</h2>\n");
    if errors.is_empty() {
        body.push_str("<p>None.</p>\n");
    } else {
        let mut rows: Vec<(&String, &usize)> = errors.iter().collect();
        rows.sort_by_key(|(_, times)| Reverse(**times));
        let mut table = Table::new(["error", "times", "what to do"]).words(&["what to do"]);
        for (code, times) in rows {
            table.row([code.as_str(), &count(*times), EventStats::remedy(code).unwrap_or(MISSING)]);
        }
        body.push_str(&table.html("Errors, and what to do about them"));
    }
    body.push_str(
        "<p class=\"note\">A call whose tool said that it failed is no error here; it counts as failed above.</p>\n",
    );
}

/// Lines of the file that are not events.
fn bad_lines(body: &mut String, bad: &BadLines) {
    if bad.count == 0 {
        return;
    }
    let are = if bad.count == 1 { "is not an event" } else { "are not events" };
    let _ = writeln!(body, "<h2>Other lines</h2>\n<p>{} {are}.</p>", counted(bad.count, "line", "lines"));
    let mut table = Table::new(["line", "why"]).numbered().words(&["why"]);
    for line in &bad.first {
        table.row([count(line.line), line.reason.clone()]);
    }
    body.push_str(&table.html("The first lines that are not events"));
}

#[cfg(test)]
mod tests {
    use contextweaver_gateway::Window;

    use super::*;

    const HOSTILE: &str = "<script>alert('&')</script>";

    fn line(event: &str, tool: Option<&str>, milliseconds: f64, attributes: &serde_json::Value) -> String {
        let server = tool.map(|tool| tool.split(':').next().unwrap());
        let line = serde_json::json!({"attributes": attributes, "duration_ms": milliseconds, "event": event,
            "namespace": server, "session_id": "s", "success": !event.ends_with("failed"),
            "timestamp": "2026-11-22T12:00:00.000042+00:00", "tool_id": tool, "version": 1});
        format!("{line}\n")
    }

    fn read(lines: &[String]) -> EventStats {
        EventStats::read(lines.concat().as_bytes(), &Window::all()).unwrap()
    }

    fn body(page: &str) -> &str {
        page.split_once("<body>\n").unwrap().1
    }

    #[test]
    fn what_a_gateway_did_is_a_page() {
        use serde_json::json;
        let done = |tool, milliseconds| {
            line("execute.completed", Some(tool), milliseconds, &json!({"answer_tokens": 300, "result_tokens": 45_678}))
        };
        let stats = read(&[
            line("catalog.loaded", None, 20.0, &json!({"definition_tokens": 13_102, "surface_tokens": 795})),
            line("browse.completed", None, 0.25, &json!({"answer_tokens": 400})),
            done("notes:read#5fdc4b3f", 4.0),
            done("notes:read#5fdc4b3f", 8.0),
            line(
                "execute.failed",
                Some("notes:find#3d3da7cd"),
                2.0,
                &json!({"answer_tokens": 35, "code": "ARGS_INVALID"}),
            ),
            done("wiki:page#00000000", 1_600.0),
            line("view.failed", None, 0.5, &json!({"code": "NEW_CODE"})),
            "{\"torn\":".to_owned(),
        ]);
        let price = Price { per_million_tokens: 3.0, currency: "EUR".to_owned() };
        insta::assert_snapshot!(body(&events("gateway.jsonl", &stats, Some(&price))), @r##"
        <a class="skip" href="#main">Skip to the report</a>
        <header>
        <h1>What the gateway did</h1>
        <p class="verdict"><strong>148,006 tokens saved</strong> (98.6 %, EUR 0.44). 4 calls of tools, 1 of them failed.</p>
        <p>7 events of 1 session, <bdi>2026-11-22T12:00:00.000042+00:00</bdi> to <bdi>2026-11-22T12:00:00.000042+00:00</bdi>.</p>
        <p class="note">From <bdi>gateway.jsonl</bdi>.</p>
        <nav aria-label="Sections"><a href="#tokens">Tokens</a> <a href="#servers">Servers</a> <a href="#tools">Tools</a> <a href="#errors">Errors</a> <a href="#events">Events</a></nav>
        </header>
        <main id="main">
        <h2 id="tokens">Tokens</h2>
        <ul class="bars">
        <li><span class="name"><bdi>definitions, without the gateway</bdi></span><span class="n">13,102</span><span class="bar" aria-hidden="true"><span class="c4" style="width:8.7%"></span></span></li>
        <li><span class="name"><bdi>definitions, with it</bdi></span><span class="n">795</span><span class="bar" aria-hidden="true"><span class="c0" style="width:0.5%"></span></span></li>
        <li><span class="name"><bdi>results, without the gateway</bdi></span><span class="n">137,034</span><span class="bar" aria-hidden="true"><span class="c4" style="width:91.3%"></span></span></li>
        <li><span class="name"><bdi>results, with it</bdi></span><span class="n">900</span><span class="bar" aria-hidden="true"><span class="c0" style="width:0.6%"></span></span></li>
        <li><span class="name"><bdi>searches and the rest, with it</bdi></span><span class="n">435</span><span class="bar" aria-hidden="true"><span class="c0" style="width:0.3%"></span></span></li>
        <li><span class="name"><bdi>all, without the gateway</bdi></span><span class="n">150,136</span><span class="bar" aria-hidden="true"><span class="c4" style="width:100.0%"></span></span></li>
        <li><span class="name"><bdi>all, with it</bdi></span><span class="n">2,130</span><span class="bar" aria-hidden="true"><span class="c0" style="width:1.4%"></span></span></li>
        </ul>
        <p class="note">By cl100k_base, of 1 session; definitions count once for each. A whole bar is the larger sum.</p>
        <h2 id="servers">Calls by server</h2>
        <ul class="bars">
        <li><span class="name"><bdi>notes</bdi></span><span class="n">3 calls, 1 failed</span><span class="bar" aria-hidden="true"><span class="c0" style="width:66.7%"></span><span class="c5" style="width:33.3%"></span></span></li>
        <li><span class="name"><bdi>wiki</bdi></span><span class="n">1 call</span><span class="bar" aria-hidden="true"><span class="c0" style="width:33.3%"></span></span></li>
        </ul>
        <p class="note">A whole bar is the most calls; its end in the other colour is those that failed.</p>
        <h3>How long they took</h3>
        <ul class="bars">
        <li><span class="name"><bdi>wiki</bdi></span><span class="n">half within 1,600 ms, 95 % within 1,600 ms</span><span class="bar" aria-hidden="true"><span class="c0" style="width:100.0%"></span></span></li>
        <li><span class="name"><bdi>notes</bdi></span><span class="n">half within 4.00 ms, 95 % within 8.00 ms</span><span class="bar" aria-hidden="true"><span class="c0" style="width:0.2%"></span><span class="c1" style="width:0.2%"></span></span></li>
        </ul>
        <p class="note">A whole bar is the longest of these times; the first colour ends at the median.</p>
        <div class="scroll" role="region" aria-label="Calls by server" tabindex="0">
        <table class="plain">
        <caption>Calls by server</caption>
        <thead><tr><th scope="col">server</th><th scope="col" class="n">count</th><th scope="col" class="n">success</th><th scope="col" class="n">median ms</th><th scope="col" class="n">95 % within ms</th><th scope="col" class="n">longest ms</th></tr></thead>
        <tbody>
        <tr><th scope="row">notes</th><td class="n">3</td><td class="n">66.7 %</td><td class="n">4.00</td><td class="n">8.00</td><td class="n">8.00</td></tr>
        <tr><th scope="row">wiki</th><td class="n">1</td><td class="n">100.0 %</td><td class="n">1,600</td><td class="n">1,600</td><td class="n">1,600</td></tr>
        </tbody>
        </table>
        </div>
        <h2 id="tools">Calls by tool</h2>
        <ul class="bars">
        <li><span class="name"><bdi>notes:read#5fdc4b3f</bdi></span><span class="n">2 calls</span><span class="bar" aria-hidden="true"><span class="c0" style="width:100.0%"></span></span></li>
        <li><span class="name"><bdi>notes:find#3d3da7cd</bdi></span><span class="n">1 call, 1 failed</span><span class="bar" aria-hidden="true"><span class="c5" style="width:50.0%"></span></span></li>
        <li><span class="name"><bdi>wiki:page#00000000</bdi></span><span class="n">1 call</span><span class="bar" aria-hidden="true"><span class="c0" style="width:50.0%"></span></span></li>
        </ul>
        <p class="note">A whole bar is the most calls; its end in the other colour is those that failed.</p>
        <h3>How long they took</h3>
        <ul class="bars">
        <li><span class="name"><bdi>wiki:page#00000000</bdi></span><span class="n">half within 1,600 ms, 95 % within 1,600 ms</span><span class="bar" aria-hidden="true"><span class="c0" style="width:100.0%"></span></span></li>
        <li><span class="name"><bdi>notes:read#5fdc4b3f</bdi></span><span class="n">half within 4.00 ms, 95 % within 8.00 ms</span><span class="bar" aria-hidden="true"><span class="c0" style="width:0.2%"></span><span class="c1" style="width:0.2%"></span></span></li>
        <li><span class="name"><bdi>notes:find#3d3da7cd</bdi></span><span class="n">half within 2.00 ms, 95 % within 2.00 ms</span><span class="bar" aria-hidden="true"><span class="c0" style="width:0.1%"></span></span></li>
        </ul>
        <p class="note">A whole bar is the longest of these times; the first colour ends at the median.</p>
        <div class="scroll" role="region" aria-label="Calls by tool" tabindex="0">
        <table class="plain">
        <caption>Calls by tool</caption>
        <thead><tr><th scope="col">tool</th><th scope="col" class="n">count</th><th scope="col" class="n">success</th><th scope="col" class="n">median ms</th><th scope="col" class="n">95 % within ms</th><th scope="col" class="n">longest ms</th></tr></thead>
        <tbody>
        <tr><th scope="row">notes:read#5fdc4b3f</th><td class="n">2</td><td class="n">100.0 %</td><td class="n">4.00</td><td class="n">8.00</td><td class="n">8.00</td></tr>
        <tr><th scope="row">notes:find#3d3da7cd</th><td class="n">1</td><td class="n">0.0 %</td><td class="n">2.00</td><td class="n">2.00</td><td class="n">2.00</td></tr>
        <tr><th scope="row">wiki:page#00000000</th><td class="n">1</td><td class="n">100.0 %</td><td class="n">1,600</td><td class="n">1,600</td><td class="n">1,600</td></tr>
        </tbody>
        </table>
        </div>
        <h2 id="errors">Errors</h2>
        <div class="scroll" role="region" aria-label="Errors, and what to do about them" tabindex="0">
        <table class="plain">
        <caption>Errors, and what to do about them</caption>
        <thead><tr><th scope="col">error</th><th scope="col" class="n">times</th><th scope="col">what to do</th></tr></thead>
        <tbody>
        <tr><th scope="row">ARGS_INVALID</th><td class="n">1</td><td>the caller is told what the arguments may be; if it happens often, try `tolerant_args`</td></tr>
        <tr><th scope="row">NEW_CODE</th><td class="n">1</td><td>–</td></tr>
        </tbody>
        </table>
        </div>
        <p class="note">A call whose tool said that it failed is no error here; it counts as failed above.</p>
        <h2 id="events">Events</h2>
        <div class="scroll" role="region" aria-label="Events by kind" tabindex="0">
        <table class="plain">
        <caption>Events by kind</caption>
        <thead><tr><th scope="col">event</th><th scope="col" class="n">count</th><th scope="col" class="n">success</th><th scope="col" class="n">median ms</th><th scope="col" class="n">95 % within ms</th><th scope="col" class="n">longest ms</th></tr></thead>
        <tbody>
        <tr><th scope="row">catalog.loaded</th><td class="n">1</td><td class="n">100.0 %</td><td class="n">20.0</td><td class="n">20.0</td><td class="n">20.0</td></tr>
        <tr><th scope="row">browse.completed</th><td class="n">1</td><td class="n">100.0 %</td><td class="n">0.25</td><td class="n">0.25</td><td class="n">0.25</td></tr>
        <tr><th scope="row">execute.completed</th><td class="n">3</td><td class="n">100.0 %</td><td class="n">8.00</td><td class="n">1,600</td><td class="n">1,600</td></tr>
        <tr><th scope="row">execute.failed</th><td class="n">1</td><td class="n">0.0 %</td><td class="n">2.00</td><td class="n">2.00</td><td class="n">2.00</td></tr>
        <tr><th scope="row">view.failed</th><td class="n">1</td><td class="n">0.0 %</td><td class="n">0.50</td><td class="n">0.50</td><td class="n">0.50</td></tr>
        </tbody>
        </table>
        </div>
        <h2>Other lines</h2>
        <p>1 line is not an event.</p>
        <div class="scroll" role="region" aria-label="The first lines that are not events" tabindex="0">
        <table class="plain">
        <caption>The first lines that are not events</caption>
        <thead><tr><th scope="col" class="n">line</th><th scope="col">why</th></tr></thead>
        <tbody>
        <tr><th scope="row" class="n">8</th><td>it is not finished: EOF while parsing a value at column 8</td></tr>
        </tbody>
        </table>
        </div>
        </main>
        </body>
        </html>
        "##);
    }

    #[test]
    fn nothing_foreign_is_markup() {
        let attributes = serde_json::json!({"answer_tokens": 1, "result_tokens": 9, "code": HOSTILE});
        let hostile = line("execute.failed", Some(HOSTILE), 2.0, &attributes);
        let no_time = hostile.replace("2026-11-22T12:00:00.000042+00:00", HOSTILE);
        let stats = read(&[hostile.clone(), no_time, hostile.replace("execute.failed", HOSTILE)]);
        let price = Price { per_million_tokens: 3.0, currency: "<script>".to_owned() };
        let page = events(HOSTILE, &EventStats { since: Some(HOSTILE.to_owned()), ..stats }, Some(&price));
        assert!(!page.contains("<script") && !page.contains("('&')"), "{page}");
        let escaped = "&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;";
        // The beginning, the file; two bars and a row of a server and of a tool; the code; the line.
        assert_eq!(page.matches(escaped).count(), 2 + 3 + 3 + 1 + 1, "{page}");
        assert!(page.contains("&lt;script&gt; 0.00"), "{page}");
    }

    #[test]
    fn what_there_is_nothing_of_is_said() {
        insta::assert_snapshot!(body(&events("gateway.jsonl", &read(&[]), None)), @r##"
        <a class="skip" href="#main">Skip to the report</a>
        <header>
        <h1>What the gateway did</h1>
        <p class="verdict">0 calls of tools, 0 of them failed.</p>
        <p>0 events of 0 sessions.</p>
        <p class="note">From <bdi>gateway.jsonl</bdi>.</p>
        <nav aria-label="Sections"><a href="#tokens">Tokens</a> <a href="#servers">Servers</a> <a href="#tools">Tools</a> <a href="#errors">Errors</a> <a href="#events">Events</a></nav>
        </header>
        <main id="main">
        <h2 id="tokens">Tokens</h2>
        <p>No event counts tokens: only those of the mode <code>gateway</code> do.</p>
        <h2 id="servers">Calls by server</h2>
        <p>None.</p>
        <h2 id="tools">Calls by tool</h2>
        <p>None.</p>
        <h2 id="errors">Errors</h2>
        <p>None.</p>
        <p class="note">A call whose tool said that it failed is no error here; it counts as failed above.</p>
        <h2 id="events">Events</h2>
        <p>None.</p>
        </main>
        </body>
        </html>
        "##);
    }

    #[test]
    fn lists_of_bars_are_bounded_and_tables_are_not() {
        let none = serde_json::json!({});
        let lines: Vec<String> = (0..23)
            .map(|tool| line("execute.completed", Some(&format!("a:t{tool:02}#00000000")), 0.0, &none))
            .collect();
        let page = events("gateway.jsonl", &read(&lines), None);
        let told = "The first 20 of 23. ";
        assert_eq!((page.matches(told).count(), page.matches("a:t22#").count()), (2, 1), "{page}");
        assert!(page.contains("<bdi>a:t19#00000000</bdi>") && !page.contains("NaN"), "{page}");
    }

    #[test]
    fn more_tokens_than_without_the_gateway_are_no_savings() {
        let loaded = serde_json::json!({"definition_tokens": 40, "surface_tokens": 795});
        let searched = serde_json::json!({"answer_tokens": 400});
        let stats = read(&[line("catalog.loaded", None, 1.0, &loaded), line("browse.completed", None, 1.0, &searched)]);
        let page = events("gateway.jsonl", &stats, Some(&Price::dollars(10.0)));
        let told =
            "<strong>1,155 tokens more</strong> than without the gateway ($0.01). 0 calls of tools, 0 of them failed.";
        assert!(page.contains(told), "{page}");
    }
}
