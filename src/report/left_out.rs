//! The figure that counts, as the first chapter of the scorecard: the default engine where its table has seen nothing.

use crate::eval::left_out::{LEXICAL, LeftOutFacts, LeftOutResults, Overall, Side, overall};
use crate::eval::record::{Estimate, Paired};
use crate::eval::timing::{Subject, TimingRow};

use super::figures::{self, Figure};
use super::number::{MISSING, count, difference, estimate, quantity, share};
use super::scorecard::{Document, verdict_name};
use super::scores::{BEST, DEFAULT, RECALL, Scores};
use super::table::{Table, failures};

/// The name of the row of means.
const MEAN: &str = "mean";

/// The measures of the chapter, in the order of [`overall`].
const MEASURES: [&str; 2] = ["nDCG@10", RECALL];

pub(super) fn chapter(page: &mut Document, left_out: &LeftOutResults, scores: &Scores<'_>, timed: &[&TimingRow]) {
    page.heading("The figure that counts");
    page.block(
        "The default engine against its words alone, on each collection with a semantic table that has seen nothing of \
         it. Where the table in the binary was trained on pairs of a collection's source, one is used that the same \
         pipeline made without that source: without its queries, without its tools, and without what other sources \
         have in common with them (`bench left-out`). The other collections are ranked with the table in the binary, \
         which never saw them. Everywhere else on this page `default` is the engine that users get.",
    );
    page.figure(figure(left_out));
    for (at, measure) in MEASURES.into_iter().enumerate() {
        page.subheading(&format!("{measure}, table left out"));
        page.table(
            "The mean with its interval; the difference is paired, and the interval of the mean over collections \
             resamples the queries within each. `without` is the source that the table was made without.",
            &measured(left_out, Some(scores), at),
        );
    }
    page.subheading("Where recall is lost, table left out");
    page.table("As [below](#where-recall-is-lost): a row sums to one.", &losses(left_out));
    let cost = cost(scores, timed);
    if !cost.is_empty() {
        page.subheading("What a query costs");
        page.table(
            "Median time of a search in microseconds by the number of tools (across), of the newest day that was \
             recorded, and of several recordings the slowest; [Latency](#latency) has the rest.",
            &cost,
        );
    }
    let failed = failures("collection", left_out.failed());
    if !failed.is_empty() {
        page.table("Collections that could not be ranked.", &failed);
    }
}

/// The tables of the chapter, for a terminal.
pub(super) fn tables(left_out: &LeftOutResults) -> [Table; 4] {
    [
        measured(left_out, None, 0),
        measured(left_out, None, 1),
        losses(left_out),
        failures("collection", left_out.failed()),
    ]
}

/// The default engine's recall@5 on a collection that its table has not seen.
pub(super) fn recall_of(left_out: &LeftOutResults, collection: &str) -> Option<Estimate> {
    let mut measured = left_out.measured();
    measured.find(|(name, _)| *name == collection).map(|(_, facts)| facts.default.recall_at_5)
}

/// The means over all collections as a sentence.
pub(super) fn sentence(left_out: &LeftOutResults) -> Option<String> {
    let [ndcg, recall] = overall(left_out)?;
    let figure = |measure: &str, one: &Overall| {
        let found = difference(&one.difference.difference);
        format!("{measure} {} with meaning and {} by words alone ({found})", share(one.default), share(one.lexical))
    };
    let collections = count(left_out.measured().count());
    Some(format!(
        "Mean over {collections} collections, each with a semantic table that has seen nothing of it: {}, {}.",
        figure(MEASURES[0], &ndcg),
        figure(MEASURES[1], &recall),
    ))
}

fn side(side: &Side, measure: usize) -> &Estimate {
    if measure == 0 { &side.ndcg_at_10 } else { &side.recall_at_5 }
}

fn paired(facts: &LeftOutFacts, measure: usize) -> &Paired {
    if measure == 0 { &facts.ndcg_at_10 } else { &facts.recall_at_5 }
}

/// One measure on every collection and over all; with `scores` also that of the best engine, where it was run.
fn measured(left_out: &LeftOutResults, scores: Option<&Scores<'_>>, measure: usize) -> Table {
    let best = scores.filter(|scores| scores.engines().contains(&BEST));
    let titles = ["collection", "tools", "queries", "without", LEXICAL, DEFAULT, "difference", "verdict"];
    let titles = titles.into_iter().chain(best.map(|_| BEST));
    let mut table = Table::new(titles).words(&["without", "verdict"]);
    for (name, facts) in left_out.measured() {
        let paired = paired(facts, measure);
        let cells = [
            name.to_owned(),
            count(facts.tools),
            count(facts.queries),
            facts.without.clone().unwrap_or_else(|| MISSING.to_owned()),
            estimate(side(&facts.lexical, measure)),
            estimate(side(&facts.default, measure)),
            difference(&paired.difference),
            verdict_name(paired.verdict).to_owned(),
        ];
        let of_best =
            best.map(|scores| scores.cell(BEST, name, |facts| facts.measures.get(MEASURES[measure]).map(estimate)));
        table.row(cells.into_iter().chain(of_best));
    }
    if let Some(overall) = overall(left_out) {
        let Overall { lexical, default, difference: paired } = &overall[measure];
        let missing = || MISSING.to_owned();
        table.row([
            MEAN.to_owned(),
            missing(),
            missing(),
            missing(),
            share(*lexical),
            share(*default),
            difference(&paired.difference),
            verdict_name(paired.verdict).to_owned(),
        ]);
    }
    table
}

fn losses(left_out: &LeftOutResults) -> Table {
    let titles = ["collection", "engine", RECALL, "vocabulary", "pruning", "tie", "ranking"];
    let mut table = Table::new(titles).words(&["engine"]);
    for (name, facts) in left_out.measured() {
        for (engine, side) in [(LEXICAL, &facts.lexical), (DEFAULT, &facts.default)] {
            let loss = &side.loss;
            let shares = [side.recall_at_5.mean, loss.vocabulary, loss.pruning, loss.tie, loss.ranking].map(share);
            table.row([name, engine].map(str::to_owned).into_iter().chain(shares));
        }
    }
    table
}

/// The median search times of the engines side by side, by catalog size.
fn cost(scores: &Scores<'_>, timed: &[&TimingRow]) -> Table {
    let searches = || timed.iter().filter(|row| row.subject == Subject::Search);
    let mut sizes: Vec<usize> = searches().filter_map(|row| row.tools).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let titles = std::iter::once("engine".to_owned()).chain(sizes.iter().copied().map(count));
    let mut table = Table::new(titles);
    for engine in scores.engines_among(&[LEXICAL, DEFAULT, BEST]) {
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

fn figure(left_out: &LeftOutResults) -> Option<Figure> {
    let rows = left_out.measured().map(|(name, facts)| (name, [facts.default.ndcg_at_10, facts.lexical.ndcg_at_10]));
    figures::left_out(MEASURES[0], rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::played::CollectionRecord;
    use crate::eval::record::{Loss, Origin, Outcome, Verdict};
    use crate::report::sample;

    fn results() -> LeftOutResults {
        let side = |mean: f64, vocabulary: f64| {
            let estimate = Estimate { mean, low: mean - 0.1, high: mean + 0.1 };
            let loss = Loss { vocabulary, pruning: 0.0, tie: 0.0, ranking: 1.0 - mean - vocabulary };
            Side { ndcg_at_10: estimate, recall_at_5: estimate, loss }
        };
        let paired = |mean: f64| Paired {
            control: LEXICAL.to_owned(),
            difference: Estimate { mean, low: mean - 0.01, high: mean + 0.01 },
            verdict: Verdict::Better,
        };
        let record = |case: &str, outcome| CollectionRecord {
            case: case.to_owned(),
            origin: Origin::Public,
            engine_version: "1".to_owned(),
            inputs_sha256: String::new(),
            outcome,
        };
        let facts = LeftOutFacts {
            tools: 1000,
            queries: 2,
            without: Some("metatool".to_owned()),
            table_sha256: "0".to_owned(),
            lexical: side(0.6, 0.25),
            default: side(0.7, 0.125),
            ndcg_at_10: paired(0.1),
            recall_at_5: paired(0.1),
            changes: vec![(0.1, 0.1, 2)],
        };
        LeftOutResults::new(
            String::new(),
            vec![record("metatool", Outcome::Measured(facts)), record("other", Outcome::Failed("no tool".to_owned()))],
        )
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
            assert!(!text.contains(BEST), "{text}");
        }
        assert!(shown[2].contains(".250") && shown[2].contains(".125"), "{}", shown[2]);
        assert!(shown[3].contains("no tool"), "{}", shown[3]);
        assert_eq!(recall_of(&results(), "metatool").unwrap().mean, 0.7);
        assert_eq!(recall_of(&results(), "other"), None);
        insta::assert_snapshot!(sentence(&results()).unwrap(), @"Mean over 1 collections, each with a semantic table that has seen nothing of it: nDCG@10 .700 with meaning and .600 by words alone (+.100 [+.100, +.100]), recall@5 .700 with meaning and .600 by words alone (+.100 [+.100, +.100]).");
    }

    #[test]
    fn the_chapter_has_the_picture_and_the_cost_of_what_was_timed() {
        let (results, timings) = (sample::results(), sample::timings());
        let mut page = Document::default();
        chapter(&mut page, &self::results(), &Scores::new(&results), &timings.iter().collect::<Vec<_>>());
        assert!(page.text().starts_with("## The figure that counts\n"));
        assert!(page.text().contains("](left-out.svg)") && page.text().contains("### What a query costs"));
        let empty = LeftOutResults::new(String::new(), Vec::new());
        assert!(tables(&empty).iter().all(Table::is_empty) && sentence(&empty).is_none());
    }
}
