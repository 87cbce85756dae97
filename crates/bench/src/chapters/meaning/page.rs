//! What meaning adds, as the first chapter of the scorecard.

use super::facts::{LEXICAL, MeaningFacts, Overall, Side, overall};
use crate::eval::matrix::DEFAULT;
use crate::eval::record::{Estimate, Paired, Verdict};
use crate::eval::statistics::over_sets;
use crate::eval::tables::Tables;
use crate::eval::timing::{Subject, TimingRow};
use crate::report::document::{Document, Figure};
use crate::report::number::{
    MISSING, conclusion, conclusions, count, difference, estimate, quantity, share, verdict_name,
};
use crate::report::plot::{Forest, Interval};
use crate::report::recording::Recording;
use crate::report::table::{Table, failures};
use crate::results::Results;

/// The name of the row of means.
const MEAN: &str = "mean";

/// The name of the row of the same mean with queries of one tool resampled together.
const BY_TOOL: &str = "mean, by tool";

/// The name of the row of what other collections would give.
const ANY: &str = "mean of any such";

/// The measures of the chapter, in the order of [`overall`].
const MEASURES: [&str; 2] = ["nDCG@10", "recall@5"];

/// The engines whose times stand side by side.
const TIMED: [&str; 3] = [LEXICAL, DEFAULT, "best"];

pub(super) fn chapter(page: &mut Document, meaning: &Results<MeaningFacts>, tables: &Tables) {
    page.heading("What meaning adds");
    page.block(
        "The default engine against the same engine with words alone, on each collection. The difference between the \
         two is the semantic table built into the program. It was trained on pairs from sources other than these \
         collections, so it has seen none of them.",
    );
    page.figure(figure(meaning));
    for (at, measure) in MEASURES.into_iter().enumerate() {
        page.subheading(&format!("{measure} with and without meaning"));
        page.table(
            "The mean with its interval; the difference is paired. The interval of the mean over collections resamples \
             the queries within each: it holds for these collections. By tool, queries that need the same tool first \
             are resampled together, as they are not independent evidence. The interval of any collections (Student's \
             t over the differences) is for others like these.",
            &measured(meaning, at),
        );
    }
    page.subheading("Where recall is lost with and without meaning");
    page.table("As in [where recall is lost](routing-loss.md#where-recall-is-lost): a row without its last column sums to one.", &losses(meaning));
    let cost = cost(tables);
    if !cost.is_empty() {
        page.subheading("What a query costs");
        page.table(
            "Recorded, not computed: median time of a search in microseconds by the number of tools (across), on the \
             newest day, and the slowest of several recordings; [Latency](routing-cost.md#latency) has the rest.",
            &cost,
        );
    }
    let failed = failures("collection", meaning.failed());
    if !failed.is_empty() {
        page.table("Collections that could not be ranked.", &failed);
    }
}

/// The tables of the chapter, for a terminal.
pub(super) fn tables(meaning: &Results<MeaningFacts>) -> [Table; 4] {
    [measured(meaning, 0), measured(meaning, 1), losses(meaning), failures("collection", meaning.failed())]
}

/// The means over all collections as a sentence.
pub(super) fn sentence(meaning: &Results<MeaningFacts>) -> Option<String> {
    let [ndcg, recall] = overall(meaning)?;
    let figure = |at: usize, one: &Overall| {
        let (measure, found) = (MEASURES[at], difference(&one.difference.difference));
        let any = of_any(meaning, at).map(|any| format!("; for any such collections {}", difference(&any)));
        let any = any.unwrap_or_default();
        format!(
            "{measure} {} with meaning and {} by words alone ({found}{any})",
            share(one.default),
            share(one.lexical)
        )
    };
    let collections = count(meaning.measured().count());
    Some(format!(
        "Mean over {collections} collections, none of which the semantic table was trained on, though a few constants were \
         [chosen](docs/bias.md) on them: {}, {}.",
        figure(0, &ndcg),
        figure(1, &recall),
    ))
}

/// What a mean over other collections of this kind would give.
fn of_any(meaning: &Results<MeaningFacts>, measure: usize) -> Option<Estimate> {
    let differences: Vec<f64> = meaning.measured().map(|(_, facts)| paired(facts, measure).difference.mean).collect();
    over_sets(&differences)
}

fn side(side: &Side, measure: usize) -> &Estimate {
    if measure == 0 { &side.ndcg_at_10 } else { &side.recall_at_5 }
}

fn paired(facts: &MeaningFacts, measure: usize) -> &Paired {
    if measure == 0 { &facts.ndcg_at_10 } else { &facts.recall_at_5 }
}

/// One measure on every collection and over all.
fn measured(meaning: &Results<MeaningFacts>, measure: usize) -> Table {
    let titles = ["collection", "tools", "queries", LEXICAL, DEFAULT, "difference", "verdict"];
    let mut table = Table::new(titles).words(&["verdict"]);
    let words = conclusions(&meaning.measured().map(|(_, facts)| paired(facts, measure)).collect::<Vec<_>>());
    for ((record, facts), word) in meaning.measured().zip(words) {
        let paired = paired(facts, measure);
        table.row([
            meaning.label(record),
            count(facts.tools),
            count(facts.queries),
            estimate(side(&facts.lexical, measure)),
            estimate(side(&facts.default, measure)),
            difference(&paired.difference),
            word,
        ]);
    }
    if let Some(overall) = overall(meaning) {
        let Overall { lexical, default, difference: paired, by_tool } = &overall[measure];
        let missing = || MISSING.to_owned();
        table.row([
            format!("{MEAN}{}", meaning.worst_mark()),
            missing(),
            missing(),
            share(*lexical),
            share(*default),
            difference(&paired.difference),
            conclusion(paired),
        ]);
        table.row([
            format!("{BY_TOOL}{}", meaning.worst_mark()),
            missing(),
            missing(),
            missing(),
            missing(),
            difference(by_tool),
            verdict_name(Verdict::of(by_tool)).to_owned(),
        ]);
    }
    if let Some(over) = of_any(meaning, measure) {
        let missing = || MISSING.to_owned();
        table.row([
            format!("{ANY}{}", meaning.worst_mark()),
            missing(),
            missing(),
            missing(),
            missing(),
            difference(&over),
            verdict_name(Verdict::of(&over)).to_owned(),
        ]);
    }
    table
}

fn losses(meaning: &Results<MeaningFacts>) -> Table {
    let titles = ["collection", "engine", MEASURES[1], "vocabulary", "pruning", "tie", "ranking", "rescued"];
    let mut table = Table::new(titles).words(&["engine"]);
    for (record, facts) in meaning.measured() {
        for (engine, side) in [(LEXICAL, &facts.lexical), (DEFAULT, &facts.default)] {
            let loss = &side.loss;
            let shares =
                [side.recall_at_5.mean, loss.vocabulary, loss.pruning, loss.tie, loss.ranking, loss.rescued].map(share);
            table.row([meaning.label(record), engine.to_owned()].into_iter().chain(shares));
        }
    }
    table
}

/// The median search times of the engines side by side, by catalog size.
fn cost(tables: &Tables) -> Table {
    let timed: Vec<&TimingRow> = Recording::newest(&tables.timings).map_or_else(Vec::new, |recording| recording.rows);
    let searches = || timed.iter().filter(|row| row.subject == Subject::Search);
    let mut sizes: Vec<usize> = searches().filter_map(|row| row.tools).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let titles = std::iter::once("engine".to_owned()).chain(sizes.iter().copied().map(count));
    let mut table = Table::new(titles);
    for engine in TIMED {
        let cell = |size: &usize| {
            let rows = searches().filter(|row| row.engine.as_deref() == Some(engine) && row.tools == Some(*size));
            let times = rows.map(|row| row.median * row.unit.microseconds());
            times.max_by(f64::total_cmp).map_or_else(|| MISSING.to_owned(), quantity)
        };
        if searches().any(|row| row.engine.as_deref() == Some(engine)) {
            table.row(std::iter::once(engine.to_owned()).chain(sizes.iter().map(cell)));
        }
    }
    table
}

fn figure(meaning: &Results<MeaningFacts>) -> Option<Figure> {
    let interval = |&Estimate { mean, low, high }: &Estimate| Interval { mean, low, high };
    let rows = meaning.measured().map(|(record, facts)| {
        let label = meaning.label(record);
        (label, interval(&facts.ndcg_at_10.difference))
    });
    let title = format!("{} with meaning less that by words alone, by collection", MEASURES[0]);
    let forest = Forest {
        title: title.clone(),
        x_title: "difference, 95 % interval; hollow: may be none".to_owned(),
        rows: rows.collect(),
        together: of_any(meaning, 0).map(|any| ("any such".to_owned(), interval(&any))),
    };
    forest.svg().map(|svg| Figure { path: "meaning.svg".to_owned(), alt: title, svg })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::day::Day;
    use crate::eval::record::{Loss, Outcome};
    use crate::eval::timing::Unit;
    use crate::results::recorded;

    fn results() -> Results<MeaningFacts> {
        let side = |mean: f64, vocabulary: f64| {
            let estimate = Estimate { mean, low: mean - 0.1, high: mean + 0.1 };
            let loss = Loss { vocabulary, pruning: 0.0, tie: 0.0, ranking: 1.0 - mean - vocabulary, rescued: 0.0 };
            Side { ndcg_at_10: estimate, recall_at_5: estimate, loss }
        };
        let paired = |mean: f64| Paired {
            control: LEXICAL.to_owned(),
            difference: Estimate { mean, low: mean - 0.01, high: mean + 0.01 },
            differing: 30,
            p: 0.001,
            verdict: Verdict::Better,
            depends_on_seed: false,
        };
        let facts = MeaningFacts {
            tools: 1000,
            queries: 2,
            lexical: side(0.6, 0.25),
            default: side(0.7, 0.125),
            ndcg_at_10: paired(0.1),
            recall_at_5: paired(0.1),
            changes: vec![(0.1, 0.1, 2)],
            by_tool: vec![(0.1, 0.1, 1), (0.1, 0.1, 1)],
        };
        let failed = Outcome::Failed("no tool".to_owned());
        recorded("meaning", vec![("metatool", Outcome::Measured(facts)), ("other", failed)])
    }

    #[test]
    fn collections_and_their_mean_stand_side_by_side() {
        let shown = tables(&results()).map(|table| table.plain());
        for text in &shown[..2] {
            let lines: Vec<&str> = text.lines().collect();
            let row = lines.iter().find(|line| line.starts_with("metatool")).unwrap();
            assert!(row.contains("1,000") && row.contains(".600") && row.contains(".700"), "{text}");
            let mean = lines.last().unwrap();
            assert!(mean.starts_with(MEAN) && mean.contains("+.100") && mean.contains("better"), "{text}");
        }
        assert!(shown[2].contains(".250") && shown[2].contains(".125"), "{}", shown[2]);
        assert!(shown[3].contains("no tool"), "{}", shown[3]);
        insta::assert_snapshot!(sentence(&results()).unwrap(), @"Mean over 1 collections, none of which the semantic table was trained on, though a few constants were [chosen](docs/bias.md) on them: nDCG@10 .700 with meaning and .600 by words alone (+.100 [+.100, +.100]), recall@5 .700 with meaning and .600 by words alone (+.100 [+.100, +.100]).");
    }

    #[test]
    fn the_chapter_has_the_picture_and_the_cost_of_what_was_timed() {
        let row = |engine: &str, median: f64| TimingRow {
            date: Day::try_from("2026-01-31".to_owned()).unwrap(),
            machine: "desk".to_owned(),
            cpu: "some".to_owned(),
            os: "some".to_owned(),
            rustc: "1.0.0".to_owned(),
            revision: "abc".to_owned(),
            subject: Subject::Search,
            engine: Some(engine.to_owned()),
            tools: Some(1000),
            unit: Unit::Microseconds,
            runs: 9,
            median,
            p95: median,
            p99: median,
            mad: 0.0,
        };
        let timed = Tables { timings: vec![row(LEXICAL, 4.5), row(DEFAULT, 6.5)], ..Tables::default() };
        let mut page = Document::default();
        chapter(&mut page, &results(), &timed);
        assert!(page.text().starts_with("# What meaning adds\n"));
        assert!(page.text().contains("](meaning.svg)") && page.text().contains("## What a query costs"));
        assert!(page.text().contains("4.50") && page.text().contains("6.50"), "{}", page.text());
        let empty = recorded("meaning", Vec::new());
        assert!(tables(&empty).iter().all(Table::is_empty) && sentence(&empty).is_none());
    }
}
