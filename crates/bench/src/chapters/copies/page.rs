//! What copies of tools cost, apart and together, as a chapter of the scorecard.

use super::facts::{CopiesFacts, Grown, SIZES};
use crate::chapter::{Answer, Question};
use crate::eval::statistics::mean;
use crate::results::Results;

use crate::report::document::Document;
use crate::report::number::{MISSING, count, difference, share, signed};
use crate::report::table::{Table, failures};

pub(super) fn chapter(page: &mut Document, copies: &Results<CopiesFacts>) {
    let [served, failed] = tables(copies);
    page.heading("Copies apart and together");
    page.table(
        "recall@5 of the default engine as it serves: each place counts, and any copy of a relevant tool is as good as the \
         tool. Without copies; the difference when tools of the same catalog that are alike share a place \
         (`copies = \"together\"`); then the differences at each size with copies apart and together.",
        &served,
    );
    if !failed.is_empty() {
        page.table("Collections that could not be grown.", &failed);
    }
}

/// What copies on other servers cost, in a sentence.
pub(super) fn answer(copies: &Results<CopiesFacts>) -> Option<Answer> {
    let size = SIZES[0];
    let at: Vec<&Grown> =
        copies.measured().filter_map(|(_, facts)| facts.grown.iter().find(|grown| grown.tools == size)).collect();
    (!at.is_empty()).then(|| {
        let of = |paired: fn(&Grown) -> f64| signed(mean(at.iter().map(|grown| paired(grown))));
        let text = format!(
            "[Copies](copies.md) of tools on several servers crowd out the others: grown by them to {} tools, the mean of {} \
             collections changes by {}, and by {} with `copies = \"together\"`.",
            count(size),
            count(at.len()),
            of(|grown| grown.apart.difference.mean),
            of(|grown| grown.together.difference.mean),
        );
        Answer::new(Question::Failure, text)
    })
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
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::record::{Estimate, Outcome, Paired, Verdict};
    use crate::results::recorded;

    #[test]
    fn differences_are_by_size() {
        let paired = |mean: f64| Paired {
            control: String::new(),
            difference: Estimate { mean, low: mean, high: mean },
            differing: 3,
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
