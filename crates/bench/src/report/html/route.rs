//! A routing decision as a page: the tools that were chosen, what each score is made of, and what stood behind them.

use std::fmt::Write as _;

use super::super::markup::escaped_xml;
use super::super::number::{count, share};
use super::super::table::Table;
use super::{BARS, bar, page};
use contextweaver_routing::{Choice, Explored, PartSource, Placement, Route, SCORE_UNITS};

/// The page of a route: one file, without a script and without anything from outside. `behind` are the tools that came next.
#[must_use]
pub fn route(route: &Route, behind: &[Choice]) -> String {
    let title = format!("Tools for: {}", route.query);
    let mut body = format!(
        "<header>\n<h1>Tools for: <bdi>{}</bdi></h1>\n<p class=\"verdict\">{} chosen, confidence <strong>{}</strong>.</p>\n",
        escaped_xml(&route.query),
        count(route.choices.len()),
        share(route.confidence),
    );
    if route.no_tool_fits {
        body.push_str("<p class=\"next\">Nothing fits well: these are only the nearest tools.</p>\n");
    }
    if let Some(ambiguity) = &route.ambiguity {
        let _ = writeln!(
            body,
            "<p class=\"next\"><strong>Close call:</strong> <bdi>{}</bdi></p>",
            escaped_xml(&ambiguity.question)
        );
    }
    if route.unknown_words > 0 {
        let _ = writeln!(body, "<p>Words of the query that appear in no tool: {}.</p>", count(route.unknown_words));
    }
    body.push_str(
        "<nav aria-label=\"Sections\"><a href=\"#chosen\">Chosen</a> <a href=\"#behind\">Runners-up</a></nav>\n\
         </header>\n<main id=\"main\">\n<h2 id=\"chosen\">Chosen</h2>\n",
    );
    // One scale for all bars, so that tools can be compared.
    let most = route.choices.iter().map(reach).max().unwrap_or(1).max(1);
    if route.choices.is_empty() {
        body.push_str("<p>No tool shares a word with this query.</p>\n");
    }
    for (number, choice) in (1..).zip(&route.choices) {
        card(&mut body, (number, route.choices.len()), choice, most);
    }
    if !route.choices.is_empty() {
        body.push_str(
            "<p class=\"note\">The parts of a score add up to it. A whole bar is the largest sum of parts.</p>\n",
        );
    }
    others(&mut body, route, behind);
    if let Some(explored) = &route.explored {
        unopened(&mut body, explored);
    }
    body.push_str("</main>\n");
    page(&title, BARS, &body)
}

/// What the parts of a choice that add to its score come to, in hundredths.
fn reach(choice: &Choice) -> i64 {
    choice.hundredths().into_iter().filter(|value| *value > 0).sum()
}

fn points(hundredths: i64) -> String {
    let sign = if hundredths < 0 { "−" } else { "" };
    format!("{sign}{}.{:02}", hundredths.unsigned_abs() / 100, hundredths.unsigned_abs() % 100)
}

/// The class of a part's bar: words, meaning, names, what came before, and what subtracts.
fn class(source: &PartSource, value: i64) -> &'static str {
    match source {
        _ if value < 0 => "c5",
        PartSource::Word(_) => "c0",
        PartSource::Meaning | PartSource::Model => "c1",
        PartSource::ExactName => "c2",
        PartSource::Feedback | PartSource::History(_) => "c3",
    }
}

fn card(body: &mut String, (number, of): (usize, usize), choice: &Choice, most: i64) {
    let values = choice.hundredths();
    let pinned = if choice.placement == Placement::Pinned { " (pinned)" } else { "" };
    let _ = write!(
        body,
        "<article>\n<h3>{number}. <bdi>{}</bdi></h3>\n<p class=\"note\"><code><bdi>{}</bdi></code></p>\n<p>Score \
         <strong>{}</strong>{pinned}</p>\n<ul class=\"bars\">\n",
        escaped_xml(choice.card.name()),
        escaped_xml(&choice.card.line(number, of)),
        points(values.iter().sum()),
    );
    for (part, value) in choice.parts.iter().zip(&values) {
        let share = 100.0 * value.unsigned_abs() as f64 / most as f64;
        body.push_str(&bar(&part.source.to_string(), class(&part.source, *value), &points(*value), share));
    }
    body.push_str("</ul>\n</article>\n");
}

fn others(body: &mut String, route: &Route, behind: &[Choice]) {
    body.push_str("<h2 id=\"behind\">Runners-up</h2>\n");
    if behind.is_empty() {
        body.push_str("<p>No other tool that was searched shares a word with the query.</p>\n");
        return;
    }
    let mut table = Table::new(["tool", "score", "because of"]).words(&["tool", "because of"]);
    for choice in behind {
        let values = choice.hundredths();
        let parts = choice.parts.iter().zip(&values).map(|(part, value)| format!("{} {}", points(*value), part.source));
        table.row([choice.card.id().to_owned(), points(values.iter().sum()), parts.collect::<Vec<_>>().join(", ")]);
    }
    body.push_str(&table.html("The next tools"));
    let last = route.choices.last().map(|choice| choice.hundredths().iter().sum::<i64>());
    if let (Some(last), Some(next)) = (last, behind.first().map(|choice| choice.hundredths().iter().sum::<i64>())) {
        let _ = writeln!(
            body,
            "<p class=\"note\">The last one chosen has {}, the next one {}.</p>",
            points(last),
            points(next)
        );
    }
}

/// Branches of the choice graph that were not opened.
fn unopened(body: &mut String, Explored { branches, opened, pruned, left }: &Explored) {
    let _ = writeln!(
        body,
        "<h2>Branches</h2>\n<p>{} of {} branches of the choice graph were opened; {} that share a word with the query were not.</p>",
        count(*opened),
        count(*branches),
        count(*pruned)
    );
    if !left.is_empty() {
        let mut table = Table::new(["path", "label", "tools", "no tool scores more than"]).words(&["path", "label"]);
        for branch in left {
            let bound = format!("{:.2}", branch.bound as f64 / SCORE_UNITS as f64);
            table.row([branch.path.clone(), branch.label.clone(), count(branch.tools), bound]);
        }
        body.push_str(&table.html("The first branches that were not opened"));
    }
}
