//! The grids of configurations, as a chapter of the scorecard.

use super::{CONTEXT, ROUTING, SweepFacts};
use crate::eval::context::sweep as context;
use crate::eval::decision::Standing;
use crate::eval::record::Compared;
use crate::eval::sweep as routing;
use crate::report::document::Document;
use crate::report::number::{MISSING, count, difference, fixed, share, standing};
use crate::report::table::{Table, failures};
use crate::results::Results;

/// The page.
pub(super) fn chapter(page: &mut Document, own: &Results<SweepFacts>) {
    page.heading("Sweep of configurations");
    page.block(
        "Is another configuration better than the default? Grids of configurations are measured on what the repository \
         itself contains and compared with the default, case by case. `better` and `worse` mean that a sign-flip test \
         finds a difference at the 5 % level after Holm's correction and that its interval excludes zero; `same` that \
         no answer differs or the interval stays within one point, whatever the test finds. One measure of all \
         configurations of a grid except the default is corrected together: for the context engine, what is kept and \
         fidelity; for the router, the means over collections of nDCG@10 and of recall@5. `p` is the probability \
         before the correction and `p, Holm` that after it; the results file has both for each collection too, \
         corrected by collection.",
    );
    page.block(
        "The figures are in-sample, and not corrected for that: the default was chosen on these scenarios and \
         collections, and the best of many that is chosen here looks better than it is. The rows of choices made \
         without what they are scored on show by how much. `bench check` computes all of it again. `bench sweep` tries \
         the same grids on everything on a machine, including public collections and scenarios, and other values with \
         `--vary`.",
    );
    page.table("How many configurations of each grid differ from the default, by measure.", &words(own));
    for (record, facts) in own.measured() {
        let mark = own.mark(record);
        match facts {
            SweepFacts::Context(swept) => of_context(page, swept, mark),
            SweepFacts::Routing(swept) => of_routing(page, swept, mark),
        }
    }
    let failed = failures("grid", own.failed());
    if !failed.is_empty() {
        page.table("Grids that could not be measured, with the reason.", &failed);
    }
    page.subheading("What is varied");
    page.block(
        "For the context engine, every combination of these values is tried: the tokens of a summary, the threshold of \
         deduplication, a factor of all budgets (a scenario that sets its own budget keeps it), and the weights by \
         which items are chosen. For the router, each number is varied alone; `x` is a factor of the weight of a \
         field, and `others` are whole configurations.",
    );
    page.verbatim(&own.configuration);
}

/// The measures of a grid with the differences of its configurations from the default, which is left out.
fn measures(facts: &SweepFacts) -> Vec<(&'static str, Vec<&Compared>)> {
    match facts {
        SweepFacts::Context(swept) => {
            let others = || swept.configurations.iter().skip(1);
            vec![
                ("kept", others().map(|one| &one.kept_against_first).collect()),
                ("fidelity", others().map(|one| &one.fidelity_against_first).collect()),
            ]
        }
        SweepFacts::Routing(swept) => {
            let others = || swept.configurations.iter().skip(1);
            vec![
                ("nDCG@10", others().map(|one| &one.ndcg_against_first).collect()),
                ("recall@5", others().map(|one| &one.recall_against_first).collect()),
            ]
        }
    }
}

/// How many configurations are said to be what, by grid and measure.
pub(super) fn words(own: &Results<SweepFacts>) -> Table {
    let words = [Standing::Better, Standing::Same, Standing::Inconclusive, Standing::Worse];
    let titles =
        ["grid", "measure", "compared"].map(str::to_owned).into_iter().chain(words.map(|word| word.to_string()));
    let mut table = Table::new(titles).words(&["measure"]);
    for (record, facts) in own.measured() {
        for (measure, compared) in measures(facts) {
            let found = words.map(|word| compared.iter().filter(|one| Standing::of(&one.paired) == word).count());
            let front = [own.label(record), measure.to_owned(), count(compared.len())];
            table.row(front.into_iter().chain(found.map(count)));
        }
    }
    table
}

/// A probability with four decimals; the least that can be drawn is one in ten thousand.
fn chance(p: f64) -> String {
    fixed(p, 4)
}

/// What stands in the rows of held-out choices for the candidates that were chosen.
fn chosen(chosen: &std::collections::BTreeMap<String, usize>) -> String {
    chosen.iter().map(|(name, times)| format!("{name} ({})", count(*times))).collect::<Vec<_>>().join("; ")
}

/// A sentence on each parameter whose best value may lie beyond the grid.
fn edges(page: &mut Document, edges: &[(String, f64)]) {
    if edges.is_empty() {
        return;
    }
    let named: Vec<String> = edges.iter().map(|(parameter, value)| format!("{parameter} ({value})")).collect();
    page.block(&format!(
        "Best at the first or the last value that was tried, where a configuration could go further, so a better one \
         may lie beyond: {}.",
        named.join(", ")
    ));
}

fn of_context(page: &mut Document, swept: &context::Swept, mark: &str) {
    page.subheading(&format!("Grid of the {CONTEXT} engine"));
    let mut table = Table::new([
        "configuration",
        "tokens",
        "kept",
        "fidelity",
        "front of",
        "kept from the default",
        "p",
        "p, Holm",
        "fidelity from the default",
        "p",
        "p, Holm",
    ])
    .words(&["front of"]);
    for (at, one) in swept.configurations.iter().enumerate() {
        let fronts = [(one.on_front_of_kept, "kept"), (one.on_front_of_fidelity, "fidelity")];
        let fronts: Vec<&str> = fronts.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect();
        if at > 0 && fronts.is_empty() {
            continue;
        }
        let front = [one.name.clone(), count(one.tokens), share(one.kept), share(one.fidelity), fronts.join(", ")];
        let cells = front.into_iter().chain(cells(&one.kept_against_first)).chain(cells(&one.fidelity_against_first));
        table.row(cells);
    }
    page.table(
        &format!(
            "The default and the configurations that nothing beats{mark}: no other keeps at least as much, or has at \
             least as much fidelity, for fewer tokens, or more for the same number. Tokens are those of all prompts; \
             kept is the share of required items and planted facts that a prompt states or one view reaches, fidelity \
             the share of core probes that survives in summaries."
        ),
        &table,
    );
    if let (Some(first), Some(held)) = (swept.configurations.first(), &swept.held_out) {
        let mut table = Table::new(["choice", "kept", "tokens", "chosen"]).words(&["chosen"]);
        table.row([first.name.clone(), share(first.kept), count(first.tokens), MISSING.to_owned()]);
        if let Some(best) = best(&swept.configurations, |one| (one.kept, std::cmp::Reverse(one.tokens))) {
            table.row(["best of all".to_owned(), share(best.kept), count(best.tokens), best.name.clone()]);
        }
        table.row(["left out".to_owned(), share(held.kept), count(held.tokens), chosen(&held.chosen)]);
        page.table(
            &format!(
                "What choosing is worth{mark}: the default; the configuration that keeps the most, with the fewest \
                 tokens among equals; and for each scenario the one that is best in this way on all others, scored on \
                 the one that was left out."
            ),
            &table,
        );
    }
    edges(page, &swept.at_the_edge);
}

/// The best of outcomes, the first of equals.
fn best<O, V: PartialOrd>(outcomes: &[O], value: impl Fn(&O) -> V) -> Option<&O> {
    outcomes.iter().reduce(|best, one| if value(one) > value(best) { one } else { best })
}

/// A difference with its word, and its probability before and after the correction.
fn cells(compared: &Compared) -> [String; 3] {
    let Compared { paired, p_holm } = compared;
    [format!("{} {}", difference(&paired.difference), standing(paired)), chance(paired.p), chance(*p_holm)]
}

fn of_routing(page: &mut Document, swept: &routing::Swept, mark: &str) {
    page.subheading(&format!("Grid of {ROUTING}"));
    let mut table = Table::new([
        "configuration",
        "nDCG@10",
        "recall@5",
        "nDCG@10 from the default",
        "p",
        "p, Holm",
        "recall@5 from the default",
        "p",
        "p, Holm",
    ]);
    for one in &swept.configurations {
        let front = [one.name.clone(), share(one.ndcg_at_10), share(one.recall_at_5)];
        table.row(front.into_iter().chain(cells(&one.ndcg_against_first)).chain(cells(&one.recall_against_first)));
    }
    let names: Vec<&str> = swept.catalogs.keys().map(String::as_str).collect();
    page.table(&format!("Means over the collections {}{mark}.", names.join(" and ")), &table);
    if let (Some(first), Some(held)) = (swept.configurations.first(), &swept.held_out) {
        let mut table = Table::new(["choice", "nDCG@10", "recall@5", "chosen"]).words(&["chosen"]);
        table.row([first.name.clone(), share(first.ndcg_at_10), share(first.recall_at_5), MISSING.to_owned()]);
        if let Some(best) = best(&swept.configurations, |one| one.ndcg_at_10) {
            table.row(["best of all".to_owned(), share(best.ndcg_at_10), share(best.recall_at_5), best.name.clone()]);
        }
        let (ndcg, recall) = (share(held.ndcg_at_10), share(held.recall_at_5));
        table.row(["left out".to_owned(), ndcg, recall, chosen(&held.chosen)]);
        page.table(
            &format!(
                "What choosing is worth{mark}: the default; the configuration with the best nDCG@10; and for each catalog the one \
                 that is best on the collections of the others, scored on those of the catalog that was left out."
            ),
            &table,
        );
    }
    edges(page, &swept.at_the_edge);
}
