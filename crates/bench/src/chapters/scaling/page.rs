//! How cost grows with the catalog, as a chapter of the scorecard: counters, times, slopes, and rivals in one run.

use std::collections::BTreeSet;

use super::facts::ScalingFacts;
use crate::eval::matrix::DEFAULT;
use crate::eval::scaling::{RIVALS_FILE, RivalRow, slope};
use crate::eval::tables::Tables;
use crate::eval::timing::{Subject, TimingRow};
use crate::report::document::{Document, Figure, line_figure};
use crate::report::number::{MISSING, count, fixed, percent, quantity};
use crate::report::plot::{Line, Point, Scale};
use crate::report::recording::Recording;
use crate::report::table::{Table, failures};
use crate::results::{Record, Results};

/// The engine by words alone: the one that other text search libraries are compared with.
const LEXICAL: &str = "lexical";

/// Slopes are fitted from this size on: below it, what a search costs in any case covers what grows.
const SLOPE_FROM: usize = 1_000;

/// What is counted, and how it is read from a record.
type Counter = (&'static str, fn(&ScalingFacts) -> f64);

const COUNTERS: [Counter; 7] = [
    ("terms", |facts| facts.terms as f64),
    ("postings", |facts| facts.postings as f64),
    ("index bytes", |facts| facts.index_bytes as f64),
    ("bytes per tool", |facts| facts.index_bytes as f64 / facts.tools as f64),
    ("postings touched, mean", |facts| facts.touched_mean),
    ("postings touched, p95", |facts| facts.touched_p95),
    ("of them read, mean", |facts| facts.read_mean),
];

pub(super) fn chapter(page: &mut Document, scaling: &Results<ScalingFacts>, recorded: &Tables) {
    let (times, rivals) = (recorded.growth.as_slice(), recorded.rivals.as_slice());
    if scaling.records.is_empty() && times.is_empty() && rivals.is_empty() {
        return;
    }
    page.heading("Growth with size");
    page.block(
        "What a search touches, and what it costs, as the catalog grows. The catalogs are generated for this: words, \
         lengths and servers have the statistics of real ones, but what the tools do has no meaning; the queries are \
         those of the collection around which the catalogs are made. [docs/performance.md](../docs/performance.md) \
         says what bounds each size. The last row of a table is the slope of the least-squares line through the \
         logarithms of the column and of the number of tools, from 1,000 tools on: 0 means that it does not grow, 1 \
         that it grows in proportion.",
    );
    let series = series(scaling, times);
    page.figure(times_figure(&series, rivals));
    page.figure(relative_figure(&series));
    if !scaling.records.is_empty() {
        let [counters, failed] = tables(scaling);
        page.subheading("Counters");
        page.table(
            "For the index without vectors; exact, and the same on every machine. Touched are the postings of a \
             query's words; read are those that the search for ten tools cannot skip.",
            &counters,
        );
        if !failed.is_empty() {
            page.table("Sizes at which nothing could be counted.", &failed);
        }
    }
    if let Some(recording) = Recording::newest(times) {
        page.subheading("Times");
        page.block(&recording.origin());
        page.table(
            "Text in, ten ids out, on one thread after warm-up, in µs; the rest in ms: the index of a loaded catalog, \
             a saved index ready for its first query, its file mapped into memory, the same and the answer to it, and \
             the choice graph. All are medians except p95.",
            &times_table(&recording.rows),
        );
    }
    if !rivals.is_empty() {
        page.subheading("Beside other libraries");
        page.block(
            "Measured by `cargo run --release --manifest-path benches/rivals/Cargo.toml -- --out \
             scorecard/timings/rivals.csv`: the same catalogs and queries in one run on one thread, engines taking \
             turns. In brackets the value as a multiple of that of `lexical`. The share of the first ten is how much \
             an engine finds of what this project's flat BM25 finds.",
        );
        if let Some(origin) = recorded.origin(RIVALS_FILE) {
            page.block(&origin.sentence());
        }
        page.table("Times of a search in µs, of a build in ms, sizes in MB.", &rivals_table(rivals));
    }
}

/// The tables of the counters, for a terminal.
pub(super) fn tables(results: &Results<ScalingFacts>) -> [Table; 2] {
    let rows: Vec<(&ScalingFacts, &str)> =
        measured(results).into_iter().map(|(record, facts)| (facts, results.mark(record))).collect();
    [counters(&rows), failures("tools", results.failed())]
}

/// One row for each size, with the mark behind it, and the slopes.
pub(super) fn counters(rows: &[(&ScalingFacts, &str)]) -> Table {
    let mut table = Table::new(["tools", "servers"].into_iter().chain(COUNTERS.map(|counter| counter.0))).numbered();
    for (facts, mark) in rows {
        let front = [count(facts.tools) + mark, count(facts.namespaces)];
        table.row(front.into_iter().chain(COUNTERS.map(|(_, value)| fixed(value(facts), 0))));
    }
    if !rows.is_empty() {
        let slope =
            |value: fn(&ScalingFacts) -> f64| slope_of(rows.iter().map(|(facts, _)| (facts.tools, value(facts))));
        let front = ["slope".to_owned(), slope(|facts| facts.namespaces as f64)];
        table.row(front.into_iter().chain(COUNTERS.map(|(_, value)| slope(value))));
    }
    table
}

/// By ascending number of tools.
fn measured(results: &Results<ScalingFacts>) -> Vec<(&Record<ScalingFacts>, &ScalingFacts)> {
    let mut rows: Vec<_> = results.measured().collect();
    rows.sort_by_key(|(_, facts)| facts.tools);
    rows
}

fn slope_of(points: impl Iterator<Item = (usize, f64)>) -> String {
    let points: Vec<(f64, f64)> =
        points.filter(|(tools, _)| *tools >= SLOPE_FROM).map(|(tools, value)| (tools as f64, value)).collect();
    slope(&points).map_or_else(|| MISSING.to_owned(), |slope| fixed(slope, 2))
}

/// What is timed: the title of its column, what the rows say, and whether it is the 95th percentile.
const TIMES: [(&str, Subject, Option<&str>, bool); 9] = [
    ("lexical p50", Subject::Search, Some(LEXICAL), false),
    ("lexical p95", Subject::Search, Some(LEXICAL), true),
    ("default p50", Subject::Search, Some(DEFAULT), false),
    ("default p95", Subject::Search, Some(DEFAULT), true),
    ("lexical build", Subject::IndexBuild, Some(LEXICAL), false),
    ("default build", Subject::IndexBuild, Some(DEFAULT), false),
    ("open", Subject::Open, Some(DEFAULT), false),
    ("open, answer", Subject::OpenAndAnswer, Some(DEFAULT), false),
    ("tree", Subject::TreeBuild, None, false),
];

fn timed(rows: &[&TimingRow], (_, subject, engine, is_tail): (&str, Subject, Option<&str>, bool)) -> Vec<(usize, f64)> {
    let own = rows.iter().filter(|row| row.subject == subject && row.engine.as_deref() == engine);
    let mut points: Vec<(usize, f64)> =
        own.filter_map(|row| Some((row.tools?, if is_tail { row.p95 } else { row.median }))).collect();
    points.sort_by(|left, right| left.0.cmp(&right.0).then(left.1.total_cmp(&right.1)));
    points
}

/// The times of one recording by size; also shown in the terminal.
#[must_use]
pub fn times_table(rows: &[&TimingRow]) -> Table {
    let mut table = Table::new(["tools"].into_iter().chain(TIMES.map(|column| column.0))).numbered();
    let columns = TIMES.map(|column| timed(rows, column));
    let sizes: BTreeSet<usize> = columns.iter().flatten().map(|point| point.0).collect();
    for &size in &sizes {
        let cell = |points: &Vec<(usize, f64)>| value_at(points, size).map_or_else(|| MISSING.to_owned(), quantity);
        table.row([count(size)].into_iter().chain(columns.iter().map(cell)));
    }
    if !sizes.is_empty() {
        let slopes = columns.iter().map(|points| slope_of(points.iter().copied()));
        table.row(["slope".to_owned()].into_iter().chain(slopes));
    }
    table
}

fn value_at(points: &[(usize, f64)], size: usize) -> Option<f64> {
    points.iter().find(|point| point.0 == size).map(|point| point.1)
}

/// What is shown of an engine beside others: the measure, the factor to the unit of the table, whether less is better.
const MEASURES: [(&str, f64); 4] =
    [("search p50", 1.0), ("search p95", 1.0), ("index build", 1.0), ("index bytes", 1e-6)];

/// The measure that says whether an engine finds the same tools.
const SHARED: &str = "top 10 shared";

fn rivals_table(rows: &[RivalRow]) -> Table {
    let titles = ["engine"].into_iter().chain(MEASURES.map(|measure| measure.0)).chain(["of the first ten"]);
    let mut table = Table::new(["tools"].into_iter().chain(titles)).numbered().words(&["engine"]);
    let sizes: BTreeSet<usize> = rows.iter().map(|row| row.tools).collect();
    for size in sizes {
        for engine in engines(rows) {
            let value = |engine: &str, measure: &str| {
                let is_it = |row: &&RivalRow| row.tools == size && row.engine == engine && row.measure == measure;
                rows.iter().find(is_it).map(|row| row.value)
            };
            let cell = |(measure, factor): (&str, f64)| {
                let Some(shown) = value(engine, measure) else { return MISSING.to_owned() };
                match value(LEXICAL, measure) {
                    Some(own) if own > 0.0 && engine != LEXICAL => {
                        format!("{} (×{})", quantity(shown * factor), fixed(shown / own, 1))
                    }
                    _ => quantity(shown * factor),
                }
            };
            if value(engine, MEASURES[0].0).is_none() {
                continue;
            }
            let shared = value(engine, SHARED).map_or_else(|| MISSING.to_owned(), percent);
            let front = [count(size), engine.to_owned()];
            table.row(front.into_iter().chain(MEASURES.map(cell)).chain([shared]));
        }
    }
    table
}

/// The engines of the rows, `lexical` first, the others as they come.
fn engines(rows: &[RivalRow]) -> Vec<&str> {
    let mut engines = vec![LEXICAL];
    for row in rows {
        if !engines.contains(&row.engine.as_str()) {
            engines.push(&row.engine);
        }
    }
    engines
}

/// A quantity against size.
struct Series {
    name: &'static str,
    points: Vec<(usize, f64)>,
}

/// What the pictures show: times of searches and builds, bytes, postings touched.
fn series(scaling: &Results<ScalingFacts>, times: &[TimingRow]) -> Vec<Series> {
    let rows = Recording::newest(times).map(|recording| recording.rows).unwrap_or_default();
    let facts = measured(scaling);
    let counted =
        |value: fn(&ScalingFacts) -> f64| facts.iter().map(|(_, facts)| (facts.tools, value(facts))).collect();
    vec![
        Series { name: "default, search", points: timed(&rows, TIMES[2]) },
        Series { name: "lexical, search", points: timed(&rows, TIMES[0]) },
        Series { name: "index build", points: timed(&rows, TIMES[4]) },
        Series { name: "index bytes", points: counted(|facts| facts.index_bytes as f64) },
        Series { name: "postings touched", points: counted(|facts| facts.touched_mean) },
    ]
}

/// How many of the series are times of searches.
const SEARCHES: usize = 2;

fn line(name: &str, color: usize, points: &[(usize, f64)], by: f64) -> Line {
    let point = |&(tools, value): &(usize, f64)| Point { tools, value: value / by, band: None };
    Line { name: name.to_owned(), color, points: points.iter().map(point).collect(), control: Vec::new() }
}

fn times_figure(series: &[Series], rivals: &[RivalRow]) -> Option<Figure> {
    let own = series.iter().take(SEARCHES).map(|series| (series.name, series.points.clone()));
    let libraries = engines(rivals).into_iter().filter(|engine| *engine == "tantivy").map(|engine| {
        let own = rivals.iter().filter(|row| row.engine == engine && row.measure == MEASURES[0].0);
        (engine, own.map(|row| (row.tools, row.value)).collect())
    });
    let lines = own.chain(libraries).enumerate().map(|(color, (name, points)): (usize, (&str, Vec<_>))| {
        let mut points = points;
        points.sort_by_key(|point| point.0);
        line(name, color, &points, 1.0)
    });
    let title = "Median time of a search by catalog size, recorded".to_owned();
    line_figure("growth-time.svg".to_owned(), title, "time per query (µs, logarithmic)", Scale::Log, lines.collect())
}

fn relative_figure(series: &[Series]) -> Option<Figure> {
    let lines = series.iter().enumerate().filter_map(|(color, series)| {
        let base = value_at(&series.points, SLOPE_FROM).filter(|base| *base > 0.0)?;
        Some(line(series.name, color, &series.points, base))
    });
    let title = "Recorded times, and bytes and postings touched by catalog size, relative to 1,000 tools".to_owned();
    let axis = "multiple of the value at 1,000 tools (logarithmic)";
    line_figure("growth-relative.svg".to_owned(), title, axis, Scale::Log, lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::day::Day;
    use crate::eval::record::Outcome;
    use crate::eval::timing::Unit;
    use crate::results::recorded;

    fn results() -> Results<ScalingFacts> {
        let facts = |tools: usize| {
            Outcome::Measured(ScalingFacts {
                tools,
                namespaces: tools / 20,
                terms: tools,
                postings: tools * 40,
                index_bytes: tools * 160,
                queries: 400,
                touched_mean: tools as f64 / 10.0,
                touched_p95: tools as f64 / 4.0,
                read_mean: tools as f64 / 20.0,
            })
        };
        let failed = Outcome::Failed("no memory".to_owned());
        let sizes = [("1000", facts(1_000)), ("10000", facts(10_000)), ("100000", facts(100_000))];
        recorded("scaling", sizes.into_iter().chain([("1000000", failed)]).collect())
    }

    fn times() -> Vec<TimingRow> {
        let row = |subject, engine: Option<&str>, tools: usize, median: f64| TimingRow {
            date: Day::try_from("2026-01-31".to_owned()).unwrap(),
            machine: "desk".to_owned(),
            cpu: "CPU".to_owned(),
            os: "OS".to_owned(),
            rustc: "1".to_owned(),
            revision: "r".to_owned(),
            subject,
            engine: engine.map(str::to_owned),
            tools: Some(tools),
            unit: Unit::Microseconds,
            runs: 1,
            median,
            p95: median * 2.0,
            p99: median * 3.0,
            mad: 0.0,
        };
        let sizes = [1_000, 10_000, 100_000];
        let of = |size: usize| {
            let time = size as f64 / 50.0;
            [
                row(Subject::Search, Some("lexical"), size, time),
                row(Subject::Search, Some("default"), size, time * 2.0),
                row(Subject::IndexBuild, Some("lexical"), size, time),
                row(Subject::TreeBuild, None, size, time),
            ]
        };
        sizes.into_iter().flat_map(of).collect()
    }

    fn rivals() -> Vec<RivalRow> {
        let row = |engine: &str, measure: &str, value: f64| RivalRow {
            engine: engine.to_owned(),
            tools: 1_000,
            measure: measure.to_owned(),
            value,
            unit: String::new(),
        };
        vec![
            row("tantivy", "search p50", 60.0),
            row("lexical", "search p50", 8.0),
            row("tantivy", "index bytes", 2_000_000.0),
            row("tantivy", "top 10 shared", 0.9),
        ]
    }

    #[test]
    fn the_chapter_shows_slopes_ratios_and_failures() {
        let mut page = Document::default();
        let tables = Tables { growth: times(), rivals: rivals(), ..Tables::default() };
        chapter(&mut page, &results(), &tables);
        let text = page.text();
        for shown in ["slope |", "1.00", "60.0 (×7.5)", "90.0 %", "no memory", "growth-time.svg", "growth-relative.svg"]
        {
            assert!(text.contains(shown), "{shown}: {text}");
        }
    }

    #[test]
    fn without_records_there_is_no_chapter() {
        let mut page = Document::default();
        chapter(&mut page, &recorded("scaling", Vec::new()), &Tables::default());
        assert_eq!(page.text(), "");
    }

    #[test]
    fn the_counters_have_a_slope_each() {
        insta::assert_snapshot!(tables(&results())[0].plain(), @r"
          tools  servers    terms   postings  index bytes  bytes per tool  postings touched, mean  postings touched, p95  of them read, mean
          1,000       50    1,000     40,000      160,000             160                     100                    250                  50
         10,000      500   10,000    400,000    1,600,000             160                   1,000                  2,500                 500
        100,000    5,000  100,000  4,000,000   16,000,000             160                  10,000                 25,000               5,000
          slope     1.00     1.00       1.00         1.00            0.00                    1.00                   1.00                1.00
        ");
    }
}
