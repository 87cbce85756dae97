//! Configurations side by side as plain text for a terminal: what `bench sweep` and `bench compare` print.

use std::fmt::Write as _;

use super::number::{could_be_seen, count, difference, share, standing};
use super::table::Table;
use crate::eval::context::sweep::Row;
use crate::eval::decision::{Decision, MARGIN};
use crate::eval::record::{Compared, Paired};
use crate::eval::sweep::Row as Routed;

/// A paired difference with what it says.
#[must_use]
pub fn paired(paired: &Paired) -> String {
    format!("{} {}", difference(&paired.difference), standing(paired))
}

/// What `bench sweep --what routing` prints: one row per configuration, and with `collections` one per collection below.
#[must_use]
pub fn routing_sweep(outcomes: &[Routed], collections: bool) -> String {
    let titles = ["configuration", "nDCG@10", "recall@5", "nDCG@10 from the default", "recall@5 from the default"];
    let mut table = Table::new(titles);
    for one in outcomes {
        let row = |name: String, ndcg: f64, recall: f64, of_ndcg: &Compared, of_recall: &Compared| {
            [name, share(ndcg), share(recall), paired(&of_ndcg.paired), paired(&of_recall.paired)]
        };
        let name = one.name.clone();
        table.row(row(name, one.ndcg_at_10, one.recall_at_5, &one.ndcg_against_first, &one.recall_against_first));
        for on in one.collections.iter().filter(|_| collections) {
            let name = format!("  {}", on.name);
            table.row(row(name, on.ndcg_at_10, on.recall_at_5, &on.ndcg_against_first, &on.recall_against_first));
        }
    }
    table.plain()
}

/// What `bench sweep` prints: one row per configuration.
#[must_use]
pub fn sweep(outcomes: &[&Row]) -> String {
    let titles = [
        "configuration",
        "tokens",
        "kept",
        "fidelity",
        "front of kept",
        "front of fidelity",
        "kept from the default",
        "fidelity from the default",
    ];
    let mut table = Table::new(titles).words(&titles[4..]);
    let mark = |on: bool| if on { "yes" } else { "" }.to_owned();
    for one in outcomes {
        table.row([
            one.name.clone(),
            count(one.tokens),
            share(one.kept),
            share(one.fidelity),
            mark(one.on_front_of_kept),
            mark(one.on_front_of_fidelity),
            standing(&one.kept_against_first.paired),
            standing(&one.fidelity_against_first.paired),
        ]);
    }
    table.plain()
}

/// What `bench compare` prints of two configurations of the context engine: scenario by scenario, then what `verdict` says of
/// what is kept.
#[must_use]
pub fn side_by_side_trials(outcomes: &[Row], verdict: &Decision) -> String {
    let [first, second] = outcomes else { return String::new() };
    let mut table = Table::new(["scenario", "tokens A", "tokens B", "kept A", "kept B", "verdict"]).words(&["verdict"]);
    for (left, right) in first.trials.iter().zip(&second.trials) {
        let verdict = match right.kept.total_cmp(&left.kept).then(left.tokens.cmp(&right.tokens)) {
            std::cmp::Ordering::Greater => "B",
            std::cmp::Ordering::Less => "A",
            std::cmp::Ordering::Equal => "same",
        };
        table.row([
            left.scenario.clone(),
            count(left.tokens),
            count(right.tokens),
            share(left.kept),
            share(right.kept),
            verdict.to_owned(),
        ]);
    }
    let mut text = table.plain();
    let _ = writeln!(text, "\ntokens: A {}, B {}", count(first.tokens), count(second.tokens));
    let _ = writeln!(text, "kept, B - A over scenarios: {}", paired(&second.kept_against_first.paired));
    let _ = writeln!(text, "fidelity, B - A over results: {}", paired(&second.fidelity_against_first.paired));
    let Decision { word: verdict, queries, could_have_seen, assumed_differing, more_queries, .. } = verdict;
    let seen = could_be_seen(*could_have_seen, MARGIN, *more_queries, *assumed_differing);
    let seen = seen.replace("queries", "scenarios");
    let _ = writeln!(text, "\nkept, A -> B: {verdict} over {} scenarios; {seen}", count(*queries));
    text.push_str("in-sample: a configuration that was chosen by these scenarios looks better here than elsewhere\n");
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_columns_of_a_sweep_have_one_name() {
        for text in [sweep(&[]), routing_sweep(&[], true)] {
            let titles: Vec<&str> =
                text.lines().next().unwrap().split("  ").filter(|title| !title.is_empty()).collect();
            let names: BTreeSet<&str> = titles.iter().copied().collect();
            assert!(titles.len() >= 5 && names.len() == titles.len(), "{text}");
        }
    }
}
