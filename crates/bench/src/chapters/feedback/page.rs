//! What learning from feedback gains, as a section of the scorecard.

use super::facts::{FeedbackFacts, Lesson, OBSERVATIONS, WRONG_TENTHS};
use crate::eval::record::{Paired, Verdict};
use crate::eval::statistics::mean;
use crate::results::Results;

use crate::report::document::Document;
use crate::report::number::{MISSING, count, share, signed};
use crate::report::table::{Table, failures};

pub(super) fn chapter(page: &mut Document, feedback: &Results<FeedbackFacts>) {
    page.heading("Learning from feedback");
    page.block(
        "The default engine, taught with observations (a query and a tool that it needs) of four fifths of the queries and \
         asked the others, so that every query is asked once of an engine that never saw it. Feedback is off unless a log is \
         given; figures everywhere else are without it.",
    );
    let [gains, harm, failed] = tables(feedback);
    page.table(
        "nDCG@10 without feedback, and what so many right observations add to it; `*` where the 95 % interval of the paired \
         difference excludes zero. A collection takes part as far as it has so many observations.",
        &gains,
    );
    page.table(
        "The mean of that difference over the collections, by observations (across) and by the share of them that is wrong \
         (down): a wrong one names one of the first five tools shown that are not relevant. In brackets on how many of the \
         collections nDCG@10 is significantly lower than without feedback.",
        &harm,
    );
    if !failed.is_empty() {
        page.table("Collections that could not be played.", &failed);
    }
}

/// The tables of the section, for a terminal.
pub(super) fn tables(feedback: &Results<FeedbackFacts>) -> [Table; 3] {
    [gains(feedback), harm(feedback), failures("collection", feedback.failed())]
}

fn lesson(facts: &FeedbackFacts, observations: usize, wrong_tenths: usize) -> Option<&Lesson> {
    let is = |lesson: &&Lesson| (lesson.observations, lesson.wrong_tenths) == (observations, wrong_tenths);
    facts.lessons.iter().find(is)
}

fn gains(feedback: &Results<FeedbackFacts>) -> Table {
    let numbers = OBSERVATIONS.map(count);
    let titles = ["collection", "tools", "queries", "without"].into_iter().chain(numbers.iter().map(String::as_str));
    let mut table = Table::new(titles);
    for (record, facts) in feedback.measured() {
        let mut cells = vec![feedback.label(record), count(facts.tools), count(facts.queries), share(facts.ndcg_at_10)];
        cells.extend(OBSERVATIONS.map(|observations| {
            lesson(facts, observations, 0).map_or_else(|| MISSING.to_owned(), |lesson| gain(&lesson.ndcg_at_10))
        }));
        table.row(cells);
    }
    table
}

fn gain(paired: &Paired) -> String {
    let sure = if paired.verdict == Verdict::Inconclusive { "" } else { "*" };
    format!("{}{sure}", signed(paired.difference.mean))
}

fn harm(feedback: &Results<FeedbackFacts>) -> Table {
    let numbers = OBSERVATIONS.map(count);
    let mut table = Table::new(["wrong"].into_iter().chain(numbers.iter().map(String::as_str)));
    if feedback.measured().next().is_none() {
        return table;
    }
    for wrong_tenths in WRONG_TENTHS {
        let mut cells = vec![format!("{} %", wrong_tenths * 10)];
        cells.extend(OBSERVATIONS.map(|observations| {
            let lessons: Vec<&Paired> = feedback
                .measured()
                .filter_map(|(_, facts)| lesson(facts, observations, wrong_tenths))
                .map(|lesson| &lesson.ndcg_at_10)
                .collect();
            let worse = lessons.iter().filter(|paired| paired.verdict == Verdict::Worse).count();
            if lessons.is_empty() {
                return MISSING.to_owned();
            }
            let mean = mean(lessons.iter().map(|paired| paired.difference.mean));
            format!("{} [{worse} of {}]", signed(mean), lessons.len())
        }));
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::record::{Estimate, Outcome};
    use crate::results::recorded;

    fn paired(mean: f64, low: f64, verdict: Verdict) -> Paired {
        let difference = Estimate { mean, low, high: mean + 0.1 };
        Paired { control: String::new(), difference, differing: 30, p: 0.001, verdict, depends_on_seed: false }
    }

    #[test]
    fn gains_are_by_collection_and_harm_over_all() {
        let lesson = |wrong_tenths, ndcg_at_10: Paired| Lesson {
            observations: 30,
            wrong_tenths,
            recall_at_5: ndcg_at_10.clone(),
            ndcg_at_10,
        };
        let facts = FeedbackFacts {
            tools: 1000,
            queries: 200,
            available: 50,
            recall_at_5: 0.7,
            ndcg_at_10: 0.6,
            lessons: vec![
                lesson(0, paired(0.03, 0.01, Verdict::Better)),
                lesson(5, paired(-0.02, -0.04, Verdict::Worse)),
            ],
        };
        let records = vec![("a", Outcome::Measured(facts)), ("b", Outcome::Failed("no card".to_owned()))];
        let shown = tables(&recorded("test", records)).map(|table| table.plain());
        assert!(shown[0].contains("+.030*") && shown[0].contains("1,000"), "{}", shown[0]);
        assert!(shown[1].contains("−.020 [1 of 1]") && shown[1].contains("50 %"), "{}", shown[1]);
        assert!(shown[2].contains("no card"), "{}", shown[2]);
        assert!(tables(&recorded::<FeedbackFacts>("test", Vec::new())).iter().all(Table::is_empty));
    }
}
