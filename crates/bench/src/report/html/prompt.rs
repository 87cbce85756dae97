//! A compiled prompt as a page: what it holds, what it leaves out and why, and what each part costs.

use std::fmt::Write as _;

use super::super::markup::escaped_xml;
use super::super::number::count;
use super::super::table::Table;
use super::{BARS, bar, page};
use contextweaver_context::event::ItemId;
use contextweaver_context::{BuildStats, ContextPack, FirewallCause, Form};

/// A prompt with what a reader must know beside it.
pub struct PromptPage<'p> {
    /// The prompt and its record.
    pub pack: &'p ContextPack,
    /// The origin of the conversation.
    pub source: &'p str,
    /// What was asked; empty for nothing.
    pub query: &'p str,
    /// The beginning of an event that the prompt leaves out, as far as a reader may see it.
    pub beginning: &'p dyn Fn(&ItemId) -> Option<String>,
}

/// The page of a prompt: one file, without a script and without anything from outside.
#[must_use]
pub fn prompt(shown: &PromptPage<'_>) -> String {
    let PromptPage { pack, source, query, beginning } = shown;
    let stats = &pack.stats;
    let title = format!("Prompt for the phase {}", pack.phase);
    let mut body = format!(
        "<header>\n<h1>{}</h1>\n<p class=\"verdict\"><strong>{} of {} tokens</strong> ({}). {} of {} events are shown.</p>\n",
        escaped_xml(&title),
        count(stats.prompt_tokens),
        count(stats.budget),
        escaped_xml(&stats.token_estimator.to_string()),
        count(stats.included_count),
        count(stats.total_candidates),
    );
    let _ = writeln!(body, "<p class=\"note\">From <bdi>{}</bdi>.</p>", escaped_xml(source));
    if !query.is_empty() {
        let _ = writeln!(body, "<p class=\"note\">Compared with: <bdi>{}</bdi></p>", escaped_xml(query));
    }
    body.push_str(
        "<nav aria-label=\"Sections\"><a href=\"#parts\">Tokens</a> <a href=\"#in\">What is in it</a> <a href=\"#out\">What is \
         left out</a> <a href=\"#text\">The text</a></nav>\n</header>\n<main id=\"main\">\n",
    );
    parts(&mut body, stats);
    included(&mut body, stats);
    dropped(&mut body, stats, beginning);
    results(&mut body, stats);
    let _ = write!(body, "<h2 id=\"text\">The text</h2>\n<pre><bdi>{}</bdi></pre>\n</main>\n", lines(&pack.prompt));
    page(&title, BARS, &body)
}

/// Text of several lines, escaped, whose line ends stay line ends.
fn lines(text: &str) -> String {
    text.split('\n').map(escaped_xml).collect::<Vec<_>>().join("\n")
}

/// The budget as bars: each kind of event, what stands around them, and what is free.
fn parts(body: &mut String, stats: &BuildStats) {
    let mut rows: Vec<(&str, &str, usize)> =
        stats.parts().into_iter().map(|(name, tokens)| (name, "c0", tokens)).collect();
    rows.push(("free", "c4", stats.budget.saturating_sub(stats.prompt_tokens)));
    body.push_str("<h2 id=\"parts\">Tokens by part</h2>\n<ul class=\"bars\">\n");
    for (name, class, tokens) in rows {
        body.push_str(&bar(name, class, &count(tokens), 100.0 * tokens as f64 / stats.budget.max(1) as f64));
    }
    body.push_str(
        "</ul>\n<p class=\"note\">A whole bar is the budget. The parts are counted separately, the prompt as a \
         whole.</p>\n",
    );
}

fn included(body: &mut String, stats: &BuildStats) {
    body.push_str("<h2 id=\"in\">What is in it</h2>\n");
    if stats.included_items.is_empty() {
        body.push_str("<p>No event.</p>\n");
        return;
    }
    let most = stats.included_items.iter().map(|item| item.tokens).max().unwrap_or_default().max(1);
    body.push_str("<ol class=\"bars\">\n");
    for item in &stats.included_items {
        let (class, form) = match item.form {
            Form::Whole => ("c0", ""),
            Form::Condensed => ("c1", ", shortened to fit"),
        };
        let name = format!("{} ({}{form})", item.item_id, item.kind.name());
        body.push_str(&bar(&name, class, &count(item.tokens), 100.0 * item.tokens as f64 / most as f64));
    }
    body.push_str("</ol>\n<p class=\"note\">In the order of the prompt. A whole bar is the largest event.</p>\n");
}

fn dropped(body: &mut String, stats: &BuildStats, beginning: &dyn Fn(&ItemId) -> Option<String>) {
    body.push_str("<h2 id=\"out\">What is left out</h2>\n");
    if stats.dropped_items.is_empty() {
        body.push_str("<p>Nothing.</p>\n");
    } else {
        let mut table = Table::new(["event", "kind", "why", "begins"]).words(&["event", "kind", "why", "begins"]);
        for item in &stats.dropped_items {
            let text = beginning(&item.item_id).unwrap_or_default();
            table.row([item.item_id.to_string(), item.kind.name().to_owned(), item.reason.words(), text]);
        }
        body.push_str(&table.html("Events that the prompt leaves out"));
    }
    if stats.memory_lines_omitted > 0 {
        let _ = writeln!(body, "<p>{} lines of memory did not fit.</p>", count(stats.memory_lines_omitted));
    }
    for note in &stats.notes {
        let _ = writeln!(body, "<p><bdi>{}</bdi></p>", escaped_xml(note));
    }
}

/// What was done with large results.
fn results(body: &mut String, stats: &BuildStats) {
    if stats.firewall_events.is_empty() {
        return;
    }
    let mut table = Table::new(["result", "because", "bytes", "tokens shown"]).words(&["result", "because"]);
    for event in &stats.firewall_events {
        let because = match event.cause {
            FirewallCause::Screened => "it is large",
            FirewallCause::Condensed => "it did not fit",
        };
        let bytes = usize::try_from(event.stats.original_bytes).unwrap_or(usize::MAX);
        table.row([event.item_id.to_string(), because.to_owned(), count(bytes), count(event.stats.summary_tokens)]);
    }
    let _ = write!(
        body,
        "<h2>Results that are not shown whole</h2>\n{}",
        table.html(
            "Results, and what is shown in their \
                                                                                  place"
        )
    );
}
