//! What copies of tools cost, apart and together, as a chapter of the scorecard.

use super::facts::{CopiesFacts, Grown, SIZES};
use crate::chapter::{Answer, Question};
use crate::eval::record::{Estimate, Paired};
use crate::eval::statistics::over_sets;
use crate::results::Results;

use crate::report::document::Document;
use crate::report::number::{MISSING, count, difference, share};
use crate::report::table::{Table, failures};

pub(super) fn chapter(page: &mut Document, copies: &Results<CopiesFacts>) {
    let [served, failed] = tables(copies);
    page.heading("Copies apart and together");
    page.table(
        "recall@5 of the default engine as it is used: each place counts, and any copy of a relevant tool counts as \
         the tool. First without copies; then the difference when tools of the same catalog that are alike share a \
         place (`copies = \"together\"`); then the differences at each size with copies apart and together.",
        &served,
    );
    if !failed.is_empty() {
        page.table("Collections that could not be grown.", &failed);
    }
}

/// What copies on other servers cost, in a sentence.
pub(super) fn answer(copies: &Results<CopiesFacts>) -> Option<Answer> {
    let size = SIZES[0];
    let [apart, together] = over_collections(copies, size)?;
    let text = format!(
        "[Copies](copies.md) of tools on several servers crowd out the others: at {} tools the mean recall@5 of {} \
         collections changes by {}, with `copies = \"together\"` by {}.",
        count(size),
        count(grown_to(copies, size).len()),
        difference(&apart),
        difference(&together),
    );
    Some(Answer::new(Question::Failure, text))
}

/// What was measured on the collections that were grown to `size` tools.
fn grown_to(copies: &Results<CopiesFacts>, size: usize) -> Vec<&Grown> {
    copies.measured().filter_map(|(_, facts)| facts.grown.iter().find(|grown| grown.tools == size)).collect()
}

/// The mean changes with copies apart and together, each with the interval for other collections; `None` of fewer than two.
fn over_collections(copies: &Results<CopiesFacts>, size: usize) -> Option<[Estimate; 2]> {
    let at = grown_to(copies, size);
    let of = |paired: fn(&Grown) -> &Paired| {
        over_sets(&at.iter().map(|grown| paired(grown).difference.mean).collect::<Vec<f64>>())
    };
    Some([of(|grown| &grown.apart)?, of(|grown| &grown.together)?])
}

/// The tables of the chapter, for a terminal.
pub(super) fn tables(copies: &Results<CopiesFacts>) -> [Table; 2] {
    [served(copies), failures("collection", copies.failed())]
}

fn served(copies: &Results<CopiesFacts>) -> Table {
    let sizes = SIZES.map(|size| [format!("{} apart", count(size)), format!("{} together", count(size))]);
    let front = ["collection", "tools", "without copies", "together"].map(str::to_owned);
    let mut table = Table::new(front.into_iter().chain(sizes.into_iter().flatten()));
    for (record, facts) in copies.measured() {
        let CopiesFacts { tools, original, original_together, grown, .. } = facts;
        let mut cells =
            vec![copies.label(record), count(*tools), share(*original), difference(&original_together.difference)];
        for size in SIZES {
            let found: Option<&Grown> = grown.iter().find(|grown| grown.tools == size);
            let pair = found.map(|grown| [&grown.apart, &grown.together].map(|paired| difference(&paired.difference)));
            cells.extend(pair.unwrap_or([MISSING, MISSING].map(str::to_owned)));
        }
        table.row(cells);
    }
    let over: Vec<Option<[Estimate; 2]>> = SIZES.iter().map(|size| over_collections(copies, *size)).collect();
    if over.iter().any(Option::is_some) {
        let cells = over.iter().flat_map(|pair| match pair {
            Some(pair) => pair.each_ref().map(difference),
            None => [MISSING; 2].map(str::to_owned),
        });
        let first = [format!("mean of those grown so{}", copies.worst_mark())];
        table.row(first.into_iter().chain([MISSING; 3].map(str::to_owned)).chain(cells));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::record::{Outcome, Verdict};
    use crate::results::recorded;

    #[test]
    fn differences_are_by_size() {
        let paired = |mean: f64| Paired {
            control: String::new(),
            difference: Estimate { mean, low: mean, high: mean },
            differing: 3,
            p: 0.5,
            verdict: Verdict::Inconclusive,
            depends_on_seed: false,
        };
        let facts = CopiesFacts {
            tools: 83,
            queries: 200,
            original: 0.823,
            original_together: paired(0.0),
            grown: vec![Grown { tools: SIZES[0], apart: paired(-0.2), together: paired(-0.001) }],
        };
        let records = vec![("a", Outcome::Measured(facts)), ("b", Outcome::Failed("too small".to_owned()))];
        let shown = tables(&recorded("test", records)).map(|table| table.plain());
        assert!(shown[0].contains(".823") && shown[0].contains("−.200") && shown[0].contains(MISSING), "{}", shown[0]);
        assert!(shown[1].contains("too small"), "{}", shown[1]);
    }
}
