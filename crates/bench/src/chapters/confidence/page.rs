//! How far the default engine's confidence can be believed, as a chapter of the scorecard.

use super::asked;
use super::facts::{ConfidenceFacts, Questions, THRESHOLD_TENTHS, Threshold};
use crate::eval::record::RiskPoint;
use crate::eval::statistics::mean;
use crate::results::Results;

use crate::report::document::Document;
use crate::report::number::{MISSING, count, share};
use crate::report::table::{Table, failures};
use contextweaver_routing::NOTHING_FITS_BELOW;

/// The name of the row of means.
const MEAN: &str = "mean";

pub(super) fn chapter(page: &mut Document, confidence: &Results<ConfidenceFacts>) {
    let [calibration, as_asked, by_default, thresholds, questions, failed] = tables(confidence);
    page.heading("Confidence of the default engine");
    page.table(
        "Real requests that no tool serves are on the pages about [abstention](routing-queries.md#abstention) and \
         [everyday requests](everyday.md), with the engine `best` and flat BM25 beside the default. Here every \
         answerable query is asked twice: with its tools, and with them left out of the ranking, so that no tool \
         answers it although it sounds like the others. Confidence says how likely it is that one of the first five \
         tools is relevant. ECE is the mean distance of confidence from the share of right answers, better when lower; \
         AUROC, AURC and the risks are defined as on those pages.",
        &calibration,
    );
    page.table(
        "The same queries as they are asked, once each, in the mix that the collection has: ECE; ECE after a correction of \
         the confidence that was fitted on the other collections; and a threshold that was chosen on them, with the shares of \
         right answers lost, of wrong answers withheld, and of queries without a tool that are refused.",
        &as_asked,
    );
    page.table(
        &format!(
            "What the default of `abstain_below`, {}, does to these queries: right answers that are not given, wrong ones \
             that are withheld, and queries without a tool that are refused. A gateway searches as models ask: [everyday \
             requests](everyday.md#requests-that-no-tool-serves) have the same counts, with the engine `best` beside the \
             default.",
            share(NOTHING_FITS_BELOW)
        ),
        &by_default,
    );
    page.table(
        "What `abstain_below` would do at these confidences (across): the share of right answers lost, and the share of queries \
         without a tool that are rightly refused.",
        &thresholds,
    );
    page.subheading("Clarifying questions");
    page.table(
        "How often the first tools are too close to call and a question is asked back, how often a relevant tool is among \
         those asked about, and how often the first tool is relevant when a question is asked and when none is.",
        &questions,
    );
    if !failed.is_empty() {
        page.table("Collections that could not be measured.", &failed);
    }
}

/// The tables of the sections, for a terminal.
pub(super) fn tables(confidence: &Results<ConfidenceFacts>) -> [Table; 6] {
    [
        calibration(confidence),
        asked::table(confidence),
        asked::by_default(confidence),
        thresholds(confidence),
        questions(confidence),
        failures("collection", confidence.failed()),
    ]
}

/// One row for each collection with `cells` in front of the figures `of` it, and a row of their means.
fn rows<const N: usize>(
    table: &mut Table,
    confidence: &Results<ConfidenceFacts>,
    counts: impl Fn(&ConfidenceFacts) -> Vec<usize>,
    of: impl Fn(&ConfidenceFacts) -> [Option<f64>; N],
) {
    let measured: Vec<_> = confidence.measured().collect();
    let cell = |figure: Option<f64>| figure.map_or_else(|| MISSING.to_owned(), share);
    for (record, facts) in &measured {
        let front = std::iter::once(confidence.label(record)).chain(counts(facts).into_iter().map(count));
        table.row(front.chain(of(facts).map(cell)).collect::<Vec<_>>());
    }
    if let [(_, first), ..] = &measured[..] {
        let front = std::iter::once(MEAN.to_owned()).chain(vec![MISSING.to_owned(); counts(first).len()]);
        let means = (0..N).map(|at| {
            let figures: Option<Vec<f64>> = measured.iter().map(|(_, facts)| of(facts)[at]).collect();
            cell(figures.map(mean))
        });
        table.row(front.chain(means).collect::<Vec<_>>());
    }
}

fn calibration(confidence: &Results<ConfidenceFacts>) -> Table {
    let titles =
        ["collection", "answerable", "unanswerable", "ECE", "AUROC", "AURC", "risk at half", "risk at four fifths"];
    let mut table = Table::new(titles);
    let risk = |facts: &ConfidenceFacts, coverage: f64| {
        let at = |point: &&RiskPoint| (point.coverage - coverage).abs() < 1e-6;
        facts.abstention.curve.iter().find(at).map(|point| point.risk)
    };
    rows(
        &mut table,
        confidence,
        |facts| vec![facts.answerable, facts.unanswerable],
        |facts| {
            let (half, most) = (risk(facts, 0.5), risk(facts, 0.8));
            [Some(facts.ece), Some(facts.abstention.auroc), Some(facts.abstention.aurc), half, most]
        },
    );
    table
}

fn thresholds(confidence: &Results<ConfidenceFacts>) -> Table {
    let titles = THRESHOLD_TENTHS.map(|tenths| [format!(".{tenths} lost"), format!(".{tenths} refused")]);
    let titles = std::iter::once("collection".to_owned()).chain(titles.into_iter().flatten());
    let mut table = Table::new(titles);
    let figures = |facts: &ConfidenceFacts| {
        let mut figures = [None; 2 * THRESHOLD_TENTHS.len()];
        for (at, tenths) in THRESHOLD_TENTHS.into_iter().enumerate() {
            let found: Option<&Threshold> = facts.thresholds.iter().find(|threshold| threshold.tenths == tenths);
            figures[2 * at] = found.map(|threshold| threshold.right_lost);
            figures[2 * at + 1] = found.map(|threshold| threshold.silence_gained);
        }
        figures
    };
    rows(&mut table, confidence, |_| Vec::new(), figures);
    table
}

fn questions(confidence: &Results<ConfidenceFacts>) -> Table {
    let mut table =
        Table::new(["collection", "asked", "relevant among them", "first right, asked", "first right, not asked"]);
    rows(
        &mut table,
        confidence,
        |_| Vec::new(),
        |facts| {
            let Questions { asked, among, first_when_asked, first_otherwise } = facts.questions;
            [asked, among, first_when_asked, first_otherwise].map(Some)
        },
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chapters::confidence::Step;
    use crate::eval::record::{Abstention, Outcome};
    use crate::results::recorded;

    fn facts(ece: f64) -> Outcome<ConfidenceFacts> {
        let curve = vec![RiskPoint { coverage: 0.5, risk: 0.25 }];
        Outcome::Measured(ConfidenceFacts {
            answerable: 1000,
            unanswerable: 7,
            ece,
            abstention: Abstention { aurc: 0.3, auroc: 0.7, curve, ece: None },
            thresholds: vec![Threshold { tenths: 2, right_lost: 0.011, silence_gained: 0.122 }],
            questions: Questions { asked: 0.4, among: 0.8, first_when_asked: 0.5, first_otherwise: 0.9 },
            ece_as_asked: 0.25,
            as_asked: vec![Step { hundredths: 40, right: 3, wrong: 1, unanswerable: 0 }],
        })
    }

    #[test]
    fn figures_are_by_collection_and_meant() {
        let records = vec![("a", facts(0.1)), ("b", facts(0.3)), ("c", Outcome::Failed("no card".to_owned()))];
        let shown = tables(&recorded("test", records)).map(|table| table.plain());
        let mean = shown[0].lines().last().unwrap();
        assert!(shown[0].contains("1,000") && mean.starts_with(MEAN) && mean.contains(".200"), "{}", shown[0]);
        assert!(shown[1].contains(".250"), "{}", shown[1]);
        assert!(shown[2].contains("3 of 3") && shown[2].contains("1 of 1"), "{}", shown[2]);
        assert!(shown[3].contains(".011") && shown[3].contains(".122"), "{}", shown[3]);
        assert!(shown[4].contains(".900"), "{}", shown[4]);
        assert!(shown[5].contains("no card"), "{}", shown[5]);
        assert!(tables(&recorded::<ConfidenceFacts>("test", Vec::new())).iter().all(Table::is_empty));
    }
}
