//! What learning from feedback gains, as a section of the scorecard.

use super::facts::{FeedbackFacts, Lesson, OBSERVATIONS, WRONG_TENTHS};
use crate::eval::record::{Paired, Verdict};
use crate::eval::statistics::mean;
use crate::results::Results;

use crate::report::document::Document;
use crate::report::number::{MISSING, count, difference, share, short_share, signed};
use crate::report::table::{Table, failures};

pub(super) fn chapter(page: &mut Document, feedback: &Results<FeedbackFacts>) {
    page.heading("Learning from feedback");
    page.block(
        "The default engine, taught with observations (a query and a tool that it needs) from four fifths of the \
         queries and asked the rest, so that every query is put once to an engine that has never seen it. Feedback is \
         off unless a log is given; figures everywhere else are without it.",
    );
    let [gains, reach, harm, worse, failed] = tables(feedback);
    page.table(
        "nDCG@10 without feedback, and what that number of right observations adds to it; `*` where the 95 % interval \
         of the paired difference excludes zero. A collection is included as far as it has that many observations.",
        &gains,
    );
    page.table(
        &format!(
            "What {AT} right observations can gain, and do gain: the share of the queries with a needed tool among the \
             observed ones, and the difference of nDCG@10 on those alone and on all queries. *Word for word*: the \
             difference on all queries when the engine learns only what an identical query led to, with right \
             observations and with half of them wrong. With the 95 % intervals of the paired differences."
        ),
        &reach,
    );
    page.table(
        "The mean of that difference over the collections, by observations (across) and by the share of them that is \
         wrong (down): a wrong one names one of the first five tools shown that are not relevant. In brackets, the \
         number of collections on which nDCG@10 is significantly lower than without feedback. One observation, even a \
         wrong one, is enough for a query that is repeated word for word; where many are, that is what wrong ones \
         cost.",
        &harm,
    );
    if !worse.is_empty() {
        page.table(
            "The collections that these brackets count, with the 95 % intervals of the paired differences.",
            &worse,
        );
    }
    if !failed.is_empty() {
        page.table("Collections that could not be measured.", &failed);
    }
}

/// The tables of the section, for a terminal.
pub(super) fn tables(feedback: &Results<FeedbackFacts>) -> [Table; 5] {
    [gains(feedback), reach(feedback), harm(feedback), worse(feedback), failures("collection", feedback.failed())]
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

/// The number of observations that is looked at closely.
const AT: usize = 100;

fn reach(feedback: &Results<FeedbackFacts>) -> Table {
    let titles = ["collection", "observed", "gain on those", "gain on all", "word for word", "half wrong"];
    let mut table = Table::new(titles);
    for (record, facts) in feedback.measured() {
        let Some(right) = lesson(facts, AT, 0) else { continue };
        let wrong = lesson(facts, AT, 5).map(|lesson| &lesson.word_for_word.difference);
        table.row([
            feedback.label(record),
            short_share(right.observed as f64 / facts.queries.max(1) as f64),
            difference(&right.ndcg_at_10_of_observed.difference),
            difference(&right.ndcg_at_10.difference),
            difference(&right.word_for_word.difference),
            wrong.map_or_else(|| MISSING.to_owned(), difference),
        ]);
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

/// Where and by how much nDCG@10 is significantly lower than without feedback.
fn worse(feedback: &Results<FeedbackFacts>) -> Table {
    let mut table = Table::new(["collection", "wrong", "observations", "difference of nDCG@10"]);
    for (record, facts) in feedback.measured() {
        for lesson in facts.lessons.iter().filter(|lesson| lesson.ndcg_at_10.verdict == Verdict::Worse) {
            table.row([
                feedback.label(record),
                format!("{} %", lesson.wrong_tenths * 10),
                count(lesson.observations),
                difference(&lesson.ndcg_at_10.difference),
            ]);
        }
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
        let lesson = |observations, wrong_tenths, ndcg_at_10: Paired| Lesson {
            observations,
            wrong_tenths,
            recall_at_5: ndcg_at_10.clone(),
            word_for_word: paired(if wrong_tenths > 0 { -0.01 } else { 0.005 }, 0.0, Verdict::Inconclusive),
            observed: 50,
            ndcg_at_10_of_observed: paired(0.12, 0.1, Verdict::Better),
            ndcg_at_10,
        };
        let facts = FeedbackFacts {
            tools: 1000,
            queries: 200,
            available: 50,
            recall_at_5: 0.7,
            ndcg_at_10: 0.6,
            lessons: vec![
                lesson(30, 0, paired(0.03, 0.01, Verdict::Better)),
                lesson(30, 5, paired(-0.02, -0.04, Verdict::Worse)),
                lesson(AT, 0, paired(0.04, 0.01, Verdict::Better)),
                lesson(AT, 5, paired(-0.03, -0.04, Verdict::Worse)),
            ],
        };
        let records = vec![("a", Outcome::Measured(facts)), ("b", Outcome::Failed("no card".to_owned()))];
        let shown = tables(&recorded("test", records)).map(|table| table.plain());
        assert!(shown[0].contains("+.030*") && shown[0].contains("1,000"), "{}", shown[0]);
        let reach = [".25", "+.120 [", "+.040 [", "+.005 [", "−.010 ["];
        assert!(reach.iter().all(|cell| shown[1].contains(cell)), "{}", shown[1]);
        assert!(shown[2].contains("−.020 [1 of 1]") && shown[2].contains("50 %"), "{}", shown[2]);
        assert!(shown[3].lines().count() == 3 && shown[3].contains("−.030 ["), "{}", shown[3]);
        assert!(shown[4].contains("no card"), "{}", shown[4]);
        assert!(tables(&recorded::<FeedbackFacts>("test", Vec::new())).iter().all(Table::is_empty));
    }
}
