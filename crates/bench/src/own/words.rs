//! What was judged, in words: as lines for a terminal, and as the text of a comment on a change.
//!
//! Texts of queries and names of tools come from files that anybody may have written: on a page they stand as code, so
//! that none of them is a link, a mention or a tag.

use std::fmt::Write as _;

use super::gate::{Against, Judged, Moved, Power};
use super::workspace::OwnWorkspace;
use crate::eval::decision::Word;
use crate::report::markup::visible;
use crate::report::number::{MISSING, could_be_seen, count, counted, estimate, fixed, rank, share, signed};
use crate::report::table::Table;
use contextweaver_gateway::quoted;

/// The mark by which a comment is found again, and whether anything moved.
pub const MARK: &str = "<!-- contextweaver-gate";

/// Rows of what moved that a comment shows, and that a terminal prints, before the rest.
const SHOWN: usize = 10;

/// Rows that a comment holds at most: hosts refuse comments above 65,536 characters.
const MOST: usize = 100;

/// The longest text of a query that is shown, in characters.
const LONGEST: usize = 80;

/// How the committed results stand to what was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// Nothing was committed to compare with, or it is not asked.
    NotAsked,
    /// The file holds what was computed.
    Same,
    /// It does not.
    Differs,
    /// It holds what was computed before, since this may not be what the next run is judged against.
    Kept,
}

impl Judged {
    /// Whether a reader has anything to see: a failed gate, or a rank or a count of tokens that changed.
    #[must_use]
    pub fn is_news(&self) -> bool {
        let moved = self.against.as_ref().is_some_and(|one| {
            !one.moved.is_empty() || one.before.tokens.is_some_and(|before| self.tokens != Some(before))
        });
        moved || !self.failed.is_empty() || !self.reservations().is_empty()
    }

    /// What makes the comparison say less than it seems to, each as the end of a sentence: a gate cannot tell a change that
    /// removes the queries which would fail, or moves its own limits, from an honest one. A reader can.
    fn reservations(&self) -> Vec<String> {
        let Some(against) = &self.against else { return Vec::new() };
        let mut all = Vec::new();
        if against.engine != self.engine {
            all.push(format!("`{}` is compared with `{}`", self.engine, visible(&against.engine)));
        } else if against.judged != self.engine {
            all.push(format!("`{}` is judged, and `{}` was before", self.engine, visible(&against.judged)));
        }
        if against.only_in_base > 0 {
            let of = against.only_in_base + against.decision.queries;
            let (gone, of) = (count(against.only_in_base), count(of));
            all.push(format!("{gone} of {of} earlier queries are gone or were changed, and are not compared"));
        }
        if !against.limits.is_empty() {
            all.push(format!("gate.toml changed: {}", visible(&against.limits.join(", "))));
        }
        all
    }
}

/// The lines of the gate for a terminal: verdict, what failed, what moved, power.
#[must_use]
pub fn plain(judged: &Judged, workspace: &OwnWorkspace, committed: Committed) -> String {
    let mut text = format!("{}\n{}\n", verdict(judged, committed), what_to_do(judged, workspace, committed));
    for failure in &judged.failed {
        let _ = writeln!(text, "failed: {failure}");
    }
    if let Some(against) = &judged.against {
        for line in inputs(against) {
            let _ = writeln!(text, "{line}");
        }
        if let Some(worst) = worst(against) {
            let query = shortened(&worst.text);
            let _ = writeln!(
                text,
                "worst query: {} \"{query}\", worst tool: {}, rank {} -> {}",
                visible(&worst.query),
                visible(&worst.tool),
                rank(worst.before),
                rank(worst.after)
            );
        }
        if !against.moved.is_empty() {
            let _ = write!(text, "\n{}", moved_table(&against.moved).plain());
            if against.moved.len() > SHOWN {
                let _ = writeln!(text, "… and {} more", against.moved.len() - SHOWN);
            }
            text.push('\n');
        }
    }
    let _ = writeln!(text, "{}", power(&judged.power));
    text
}

/// The text of a comment. Its first line is a mark that a reader does not see, with `moved` where there is something to
/// tell and `same` where there is nothing; the verdict and what to do follow.
#[must_use]
pub fn markdown(judged: &Judged, workspace: &OwnWorkspace, committed: Committed) -> String {
    let news = if judged.is_news() || committed == Committed::Differs { "moved" } else { "same" };
    let mut text = format!(
        "{MARK} {news} -->\n**{}**\n\n{}\n",
        verdict(judged, committed),
        what_to_do(judged, workspace, committed)
    );
    if !judged.failed.is_empty() {
        text.push('\n');
    }
    for failure in &judged.failed {
        let _ = writeln!(text, "- failed: {failure}");
    }
    let moved = judged.against.as_ref().map_or(&[][..], |one| &one.moved);
    if !moved.is_empty() {
        let _ = write!(text, "\n{}", moved_markdown(moved, SHOWN));
    }
    text.push_str("\n<details><summary>Figures, and what could have been seen</summary>\n\n");
    text.push_str(&figures(judged).markdown());
    for line in judged.against.iter().flat_map(inputs) {
        let _ = writeln!(text, "\n{line}.");
    }
    let _ = writeln!(text, "\n{}.", power(&judged.power));
    if moved.len() > SHOWN {
        let rest = moved.get(SHOWN..).unwrap_or_default();
        let _ = write!(text, "\nThe other changes:\n\n{}", moved_markdown(rest, MOST));
        if rest.len() > MOST {
            let _ = writeln!(text, "\n… and {} more.", rest.len() - MOST);
        }
    }
    text.push_str("\n</details>\n");
    text
}

/// The verdict with what to do, and the figures before and now: what a report says of the gate.
#[must_use]
pub fn summary(judged: &Judged, workspace: &OwnWorkspace, committed: Committed) -> (String, Table) {
    let failed: String = judged.failed.iter().map(|failure| format!(" Failed: {failure}.")).collect();
    let next = what_to_do(judged, workspace, committed);
    (format!("{}.{failed} {next} {}.", verdict(judged, committed), power(&judged.power)), figures(judged))
}

/// One sentence: what became of the workspace.
fn verdict(judged: &Judged, committed: Committed) -> String {
    let word = judged.against.as_ref().map(|one| one.decision.word);
    let Some(against) = &judged.against else {
        let passed = if judged.failed.is_empty() { "Gate passed" } else { "Gate failed" };
        let recall = estimate(&judged.recall_at_5);
        let queries = counted(judged.queries, "query", "queries");
        return format!("{passed}: recall@5 of your catalog is {recall} over {queries}");
    };
    let decision = &against.decision;
    let head = match word {
        _ if !judged.failed.is_empty() && word != Some(Word::Regressed) => "Gate failed",
        Some(Word::Regressed) => "Regressed",
        Some(Word::Improved) => "Improved",
        Some(Word::Same) if !judged.is_news() && committed == Committed::Differs => "Not recorded",
        Some(Word::Same) if !judged.is_news() => "Nothing moved",
        // The margin hides what the queries show.
        Some(Word::Same) if decision.high < 0.0 => "Lower, within the margin",
        Some(Word::Same) => "Same",
        Some(Word::NotComparable) => {
            return "Not comparable: no query was asked the same way before and now".to_owned();
        }
        Some(Word::Inconclusive) | None => "Inconclusive",
    };
    let unrecorded = judged.failed.is_empty() && committed == Committed::Differs && head != "Not recorded";
    let head = if unrecorded { format!("{head}, not recorded") } else { head.to_owned() };
    let (before, after) = (share(against.recall_before), share(against.recall_after));
    let tokens = match (against.before.tokens, judged.tokens) {
        (Some(before), Some(now)) if before != now => format!("; {} -> {} tokens", count(before), count(now)),
        _ => String::new(),
    };
    let reservations: String = judged.reservations().iter().map(|one| format!("; {one}")).collect();
    if against.moved.is_empty() {
        let queries = counted(decision.queries, "query", "queries");
        return format!("{head}: recall@5 of your catalog is {after} over {queries}, as before{tokens}{reservations}");
    }
    format!(
        "{head}: recall@5 of your catalog {before} -> {after}, {} (90 % interval {} to {}) over {} queries, p {}{tokens}\
         {reservations}",
        signed(decision.difference),
        signed(decision.low),
        signed(decision.high),
        count(decision.queries),
        probability(decision.p)
    )
}

/// A probability after the letter p: `= .031`, or `< .001`.
fn probability(p: f64) -> String {
    if p < 0.001 { "< .001".to_owned() } else { format!("= {}", share(p)) }
}

/// One sentence: what a reader should do next.
fn what_to_do(judged: &Judged, workspace: &OwnWorkspace, committed: Committed) -> String {
    let run = format!("contextweaver bench run --root {}", quoted(&workspace.shown()));
    let [record, accept] = ["", " --accept"].map(|more| format!("run `{run}{more}` and commit results.json"));
    let word = judged.against.as_ref().map(|one| one.decision.word);
    if !judged.failed.is_empty() {
        let whether = match word {
            Some(Word::Regressed) => format!(
                "Find the definition that costs the ranks below with `{}`, where OLD is the catalog as it was",
                workspace.impact_command()
            ),
            _ => "Correct what failed, or change the threshold in gate.toml if it no longer holds".to_owned(),
        };
        return match committed {
            Committed::Differs => {
                format!("{whether}; results.json is not up to date either: to record it anyway, {accept}.")
            }
            Committed::Kept => {
                format!(
                    "{whether}. results.json was not written, so the next run is judged against the same record; \
                         --accept writes it."
                )
            }
            _ => format!("{whether}."),
        };
    }
    match (committed, word) {
        (Committed::Differs, Some(Word::NotComparable)) => format!(
            "The queries are not the same as before, and results.json does not match what your catalog gives now: {accept}."
        ),
        (Committed::Differs, Some(Word::Same)) if judged.has_loss() => format!(
            "results.json does not match what your catalog gives now, and such losses add up: look at the largest one; to \
             record it anyway, {accept}."
        ),
        (Committed::Differs, _) if judged.has_loss() => format!(
            "results.json does not match what your catalog gives now, and so few queries do not tell whether the loss is \
             chance: look at the largest one; to record it anyway, {accept}."
        ),
        (Committed::Differs, _) => format!("results.json does not match what your catalog gives now: {record}."),
        (Committed::Kept, Some(Word::Inconclusive)) => {
            "No gate failed, and so few queries do not tell whether the loss is chance: look at the largest one. results.json was \
             not written, so the next run is judged against the same record; --accept writes it."
                .to_owned()
        }
        (Committed::Kept, Some(Word::Same)) => {
            "No gate failed, and such losses add up: look at the largest one. results.json was not written, so the next run is \
             judged against the same record; --accept writes it."
                .to_owned()
        }
        (_, Some(Word::Same)) if judged.has_loss() => {
            "No gate failed, and such losses add up: look at the largest one.".to_owned()
        }
        (_, Some(Word::Inconclusive)) => {
            "No gate failed; look at the largest loss, since so few queries prove nothing.".to_owned()
        }
        (Committed::Kept, Some(Word::NotComparable)) => {
            format!("The queries are not the same as before, so results.json was not written: {accept}.")
        }
        (_, Some(Word::NotComparable)) => format!("The queries are not the same as before: {record} there too."),
        _ if !judged.reservations().is_empty() => {
            "No gate failed; look at what changed beside the catalog, which no gate judges.".to_owned()
        }
        _ => "Nothing to do.".to_owned(),
    }
}

/// What differs in the inputs, in sentences without their full stops.
fn inputs(against: &Against) -> Vec<String> {
    let mut lines = Vec::new();
    if !against.same_inputs {
        lines.push(
            "the catalog or the queries changed; only queries that were asked the same way are \
                    compared"
                .to_owned(),
        );
    }
    if against.not_in_base > 0 {
        lines.push(format!(
            "queries that are new or were changed, and are not compared: {}",
            count(against.not_in_base)
        ));
    }
    if against.only_in_base > 0 {
        let only = count(against.only_in_base);
        lines.push(format!("earlier queries that are gone or were changed, and are not compared: {only}"));
    }
    lines
}

fn worst(against: &Against) -> Option<&Moved> {
    against.moved.first().filter(|moved| moved.gain() < 0.0)
}

/// What could have been seen, in one sentence without its full stop.
fn power(power: &Power) -> String {
    let mut text = format!(
        "{}, of which {} % are assumed to change: {}",
        counted(power.queries, "query", "queries"),
        fixed(power.differing * 100.0, 0),
        could_be_seen(power.could_have_seen, power.margin, power.more_queries, None),
    );
    if power.hardly_fails {
        text.push_str(". With so few queries this gate can hardly fail");
    }
    text
}

fn figures(judged: &Judged) -> Table {
    let mut table = Table::new(["your catalog", "before", "now"]);
    let before = judged.against.as_ref().map(|one| one.before).unwrap_or_default();
    let counted = |value: Option<usize>| value.map_or_else(|| MISSING.to_owned(), count);
    let shared = |value: Option<f64>| value.map_or_else(|| MISSING.to_owned(), share);
    table.row(["tools".to_owned(), counted(before.tools), count(judged.tools)]);
    table.row(["queries with an answer".to_owned(), counted(before.queries), count(judged.queries)]);
    table.row(["tokens of all definitions".to_owned(), counted(before.tokens), counted(judged.tokens)]);
    table.row(["recall@5".to_owned(), shared(before.recall_at_5), estimate(&judged.recall_at_5)]);
    table.row(["nDCG@10".to_owned(), shared(before.ndcg_at_10), estimate(&judged.ndcg_at_10)]);
    table
}

fn moved_table(moved: &[Moved]) -> Table {
    let mut table = Table::new(["query", "asked", "tool", "before", "now"]).words(&["asked", "tool"]);
    for one in moved.iter().take(SHOWN) {
        let [query, asked, tool] = [&one.query, &one.text, &one.tool].map(|text| shortened(text));
        table.row([query, asked, tool, rank(one.before), rank(one.after)]);
    }
    table
}

/// One line of at most 80 characters, as [`visible`] has it.
#[must_use]
pub fn shortened(text: &str) -> String {
    let line = visible(text);
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// The rows as a Markdown table whose texts are code: within it nothing is a link, a mention or a tag.
fn moved_markdown(moved: &[Moved], most: usize) -> String {
    let mut text = "| query | asked | tool | before | now |\n| --- | --- | --- | ---: | ---: |\n".to_owned();
    for one in moved.iter().take(most) {
        let [query, asked, tool] = [&one.query, &one.text, &one.tool].map(|text| code(text));
        let _ = writeln!(text, "| {query} | {asked} | {tool} | {} | {} |", rank(one.before), rank(one.after));
    }
    text
}

/// A text as code in a Markdown table. A backtick would end the code and a bar the cell.
#[must_use]
pub fn code(text: &str) -> String {
    let text = shortened(text).replace('`', "'").replace('|', "\\|");
    format!("`{}`", if text.trim().is_empty() { "-" } else { text.trim() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hostile_texts_stay_in_their_cell(text in "\\PC{0,120}|[`|@<>\n\\[\\]()!-]{0,40}") {
            let shown = code(&text);
            let inner = shown.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')).unwrap();
            prop_assert!(!inner.contains(['`', '\n', '\r']));
            prop_assert!(!inner.is_empty() && inner.chars().count() <= 2 * LONGEST + 2);
            prop_assert!(inner.replace("\\|", "").chars().all(|c| c != '|'));
        }
    }
}
