//! A comparison as text for a terminal.

use std::fmt::Write as _;

use super::outcomes::Value;
use super::{Comparison, SetComparison, WorstQuery};
use crate::eval::decision::{Decision, Word};
use crate::report::markup::visible;
use crate::report::number::{apart, could_be_seen_as, count, counted, score, share, signed, signed_score};
use crate::report::table::Table;

/// Below this false discovery rate a descriptive measure is listed when more than a few are.
const TELLING: f64 = 0.05;

/// What is said of figures on the collections of this project.
pub const IN_SAMPLE: &str = "in-sample: the constants of the default were chosen on these collections, so it looks better here than \
                             elsewhere";

/// The verdict, its power, the sets, and what stands out.
#[must_use]
pub fn plain(comparison: &Comparison) -> String {
    let Comparison { measure, base, head, verdict, margin, .. } = comparison;
    let [measure, base, head] = [measure, base, head].map(|name| visible(name));
    let mut text = format!("{measure}, {base} -> {head}: {}\n", verdict.word);
    for reason in &comparison.differing_inputs {
        let _ = writeln!(text, "  {}", visible(reason));
    }
    let (figures, rests_on) = match comparison.described.is_empty() {
        true => (SCORES, rests_on(verdict, comparison.sets.len(), *margin, SCORES)),
        false => (SHARES, power(verdict, comparison.sets.len(), *margin)),
    };
    let _ = writeln!(text, "{rests_on}");
    match comparison.sets.as_slice() {
        [one] => {
            let _ = writeln!(text, "  {}", hits(one, !comparison.described.is_empty()));
        }
        several => {
            let _ = write!(text, "\n{}", sets(several, figures).plain());
        }
    }
    let telling = comparison.described.iter().filter(|row| row.q <= TELLING && row.base != row.head);
    let mut table = Table::new(["also", "base", "head", "difference", "p", "q"]);
    for row in telling {
        let difference = signed(row.head - row.base);
        table.row([row.measure.clone(), share(row.base), share(row.head), difference, chance(row.p), chance(row.q)]);
    }
    if !table.is_empty() {
        let _ = write!(text, "\n{}", table.plain());
    }
    if let Some(worst) = &comparison.worst_query {
        let _ = write!(text, "\n{}", worst_query(worst));
    }
    if let Some(worst) = &comparison.worst_tool {
        let (queries, lost) = (count(worst.queries), share(-worst.difference));
        let [tool, set] = [&worst.tool, &worst.set].map(|name| visible(name));
        let _ = writeln!(text, "worst tool   {tool} ({set}): its {queries} queries lose {lost} together");
    }
    if comparison.in_sample {
        let _ = writeln!(text, "\n{IN_SAMPLE}");
    }
    text
}

/// How a figure and how a difference is written.
type Figures = [fn(f64) -> String; 2];

/// Of measures from 0 to 1.
const SHARES: Figures = [share, signed];

/// Of scores of any size.
const SCORES: Figures = [score, signed_score];

/// What a verdict on a measure rests on, and what could have been seen.
#[must_use]
pub fn power(verdict: &Decision, sets: usize, margin: f64) -> String {
    // Below a thousandth, which the queries are counted for, it could not be read.
    rests_on(verdict, sets, margin.max(0.001), SHARES)
}

fn rests_on(verdict: &Decision, sets: usize, margin: f64, [figure, signed]: Figures) -> String {
    let Decision { queries, differing, clusters, difference, low, high, p, .. } = verdict;
    let over = if sets > 1 { format!(" in {sets} sets of equal weight") } else { String::new() };
    let mut text = format!(
        "  {} (90 % interval {} to {}) over {}{over}, of which {} differ; p {}\n",
        signed(*difference),
        signed(*low),
        signed(*high),
        counted(*queries, "query", "queries"),
        count(*differing),
        equals(*p),
    );
    if clusters < queries {
        let _ = writeln!(text, "  queries for the same tool count together: {} tools", count(*clusters));
    }
    let Decision { could_have_seen, assumed_differing, more_queries, .. } = verdict;
    let seen = could_be_seen_as(figure, *could_have_seen, margin, *more_queries, *assumed_differing);
    let _ = write!(text, "  {seen}");
    if let Some(other) = verdict.another_seed {
        let _ = write!(text, "\n  at the edge: another seed says {other}");
    }
    text
}

/// Queries that lost and won their hit, or scores that fell and rose, with the exact probability of so uneven a split.
fn hits(set: &SetComparison, of_ranks: bool) -> String {
    let (lost, won, p) = (count(set.lost), count(set.won), equals(set.p_hits));
    match of_ranks {
        true => format!("hits in the first five: {lost} lost, {won} won; p {p} (exact McNemar)"),
        false => format!("scores: {lost} fell, {won} rose; p {p} (exact sign test); higher counts as better"),
    }
}

fn sets(rows: &[SetComparison], [figure, signed]: Figures) -> Table {
    let titles = [
        "set",
        "queries",
        "base",
        "head",
        "difference",
        "90 % from",
        "to",
        "lost",
        "won",
        "p, hits",
        "p, Holm",
        "verdict",
    ];
    let mut table = Table::new(titles).words(&["verdict"]);
    for row in rows {
        let SetComparison { set, base, head, verdict, p_holm, lost, won, p_hits } = row;
        let seed = if verdict.another_seed.is_some() && verdict.word != Word::Inconclusive { " §" } else { "" };
        table.row([
            visible(set),
            count(verdict.queries),
            figure(*base),
            figure(*head),
            signed(verdict.difference),
            signed(verdict.low),
            signed(verdict.high),
            count(*lost),
            count(*won),
            chance(*p_hits),
            chance(*p_holm),
            format!("{}{seed}", verdict.word),
        ]);
    }
    table
}

fn worst_query(worst: &WorstQuery) -> String {
    let WorstQuery { set, query, text, wanted, base, head } = worst;
    let asked = text.as_ref().map_or_else(String::new, |text| format!(" \"{}\"", visible(text)));
    let wanted = if wanted.is_empty() { String::new() } else { format!(", for {}", visible(&wanted.join(", "))) };
    let [query, set] = [query, set].map(|name| visible(name));
    let (before, now) = match (base, head, shown(base), shown(head)) {
        (Value::Score(base), Value::Score(head), before, now) if before == now => apart(*base, *head),
        (.., before, now) => (before, now),
    };
    format!("worst query  {query} ({set}){asked}{wanted}: {before} -> {now}\n")
}

fn shown(value: &Value) -> String {
    match value {
        Value::Score(value) => score(*value),
        Value::Ranks(ranks) => {
            let rank =
                |rank: &Option<usize>| rank.map_or_else(|| "not found".to_owned(), |rank| format!("rank {rank}"));
            ranks.iter().map(rank).collect::<Vec<_>>().join(", ")
        }
    }
}

/// A probability behind its name: `= .0020`, `< .0001`.
fn equals(p: f64) -> String {
    let figure = chance(p);
    if figure.starts_with('<') { figure } else { format!("= {figure}") }
}

/// A probability.
fn chance(p: f64) -> String {
    if p < 0.0001 { "< .0001".to_owned() } else { format!("{p:.4}").trim_start_matches('0').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_is_equal_to_a_figure_or_below_one() {
        for (p, expected) in [(1.0, "= 1.0000"), (0.002, "= .0020"), (0.0001, "= .0001"), (0.0, "< .0001")] {
            assert_eq!(equals(p), expected);
        }
    }
}
