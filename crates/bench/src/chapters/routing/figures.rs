//! Which records go into which picture: one function per figure.
//!
//! A function returns `None` when nothing was recorded that its picture could show.

use crate::eval::record::{Estimate, Facts, Grade};
use crate::eval::timing::{Subject, TimingRow};

use crate::eval::statistics::over_sets;
use crate::report::document::{Figure, line_figure};
use crate::report::number::{count, fixed};
use crate::report::plot::{Forest, Front, HeatMap, Interval, Line, Named, Point, Scale};
use crate::report::recording::Recording;

use super::answers::{common, mean_of};
use super::scores::{BEST, CONTROL, Case, DEFAULT, RECALL, Scores, grade_name, recall};

/// The engines of the headline picture: what users get, with the encoder where it was run, and the two controls.
const HEADLINE: [&str; 4] = [DEFAULT, BEST, CONTROL, "tfidf"];

/// The catalog size at which times are named.
const TIMED_AT: usize = 1_000;

/// recall@5 against catalog size, mixed distractors, with confidence bands: the default beside its controls.
pub(super) fn recall_by_size(scores: &Scores<'_>, collection: &str) -> Option<Figure> {
    let title = format!("{RECALL} by catalog size, default and controls: {collection}, mixed distractors");
    let lines = HEADLINE.iter().enumerate().map(|(color, engine)| Line {
        name: format!("{}{}", engine_name(engine), mark(scores, engine, collection, Grade::Mixed)),
        color,
        points: growth_points(scores, engine, collection, Grade::Mixed, recall_point),
        control: Vec::new(),
    });
    line_figure(format!("{collection}-recall-by-size.svg"), title, &recall_axis(), Scale::Share, lines.collect())
}

/// The name of an engine for readers who have not met it.
fn engine_name(engine: &str) -> &str {
    match engine {
        CONTROL => "flat BM25",
        "tfidf" => "TF-IDF",
        other => other,
    }
}

/// recall@5 of the default engine against catalog size, one line per grade of distractors, each with its control.
pub(super) fn context_rot(scores: &Scores<'_>, collection: &str) -> Option<Figure> {
    let title = format!("{RECALL} by catalog size and distractors, the default and thin flat BM25: {collection}");
    let mean = |facts: &Facts| Some(bare(facts.tools, recall(facts)?.mean));
    let lines = Grade::DISTRACTORS.iter().enumerate().map(|(color, grade)| Line {
        name: format!("{}{}", grade_name(*grade), scores.mark(&[DEFAULT, CONTROL], grown(scores, collection, *grade))),
        color,
        points: growth_points(scores, DEFAULT, collection, *grade, recall_point),
        control: growth_points(scores, CONTROL, collection, *grade, mean),
    });
    line_figure(format!("{collection}-context-rot.svg"), title, &recall_axis(), Scale::Share, lines.collect())
}

fn recall_axis() -> String {
    format!("{RECALL} (mean, 95 % interval)")
}

/// Prompt tokens of all definitions and of ten cards against catalog size.
pub(super) fn tokens(scores: &Scores<'_>, collection: &str) -> Option<Figure> {
    let title = format!("Prompt tokens, all definitions and cards: {collection}, mixed distractors");
    let all = growth_points(scores, DEFAULT, collection, Grade::Mixed, |facts| {
        Some(bare(facts.tools, facts.tokens.as_ref()?.naive as f64))
    });
    let cards = growth_points(scores, DEFAULT, collection, Grade::Mixed, |facts| {
        Some(bare(facts.tools, facts.tokens.as_ref()?.cards_mean))
    });
    let mark = mark(scores, DEFAULT, collection, Grade::Mixed);
    let lines = vec![
        Line { name: format!("all definitions{mark}"), color: 1, points: all, control: Vec::new() },
        Line { name: format!("first ten cards{mark}"), color: 0, points: cards, control: Vec::new() },
    ];
    let y_title = format!("prompt tokens ({}, logarithmic)", estimator(scores, collection)?);
    line_figure(format!("{collection}-tokens.svg"), title, &y_title, Scale::Log, lines)
}

/// The estimator of the first recorded token counts of a collection.
fn estimator<'a>(scores: &Scores<'a>, collection: &str) -> Option<&'a str> {
    let cases = scores.cases(|case| case.collection == collection);
    cases.iter().find_map(|case| Some(scores.facts(DEFAULT, case.name)?.tokens.as_ref()?.estimator.as_str()))
}

/// Median search time of every engine against catalog size; `rows` are those of one recording.
pub(super) fn latency(scores: &Scores<'_>, rows: &[&TimingRow]) -> Option<Figure> {
    let searches: Vec<&TimingRow> = rows.iter().filter(|row| row.subject == Subject::Search).copied().collect();
    let lines = scores.engines().into_iter().enumerate().map(|(color, engine)| {
        let own = searches.iter().filter(|row| row.engine.as_deref() == Some(engine));
        let mut points: Vec<Point> =
            own.filter_map(|row| Some(bare(row.tools?, row.median * row.unit.microseconds()))).collect();
        points.sort_by_key(|point| point.tools);
        Line { name: engine.to_owned(), color, points, control: Vec::new() }
    });
    let title = "Median search time by catalog size and engine, recorded".to_owned();
    line_figure("latency.svg".to_owned(), title, "time per query (µs, logarithmic)", Scale::Log, lines.collect())
}

/// What `point` makes of the facts at every size to which the collection was grown with this grade.
fn growth_points(
    scores: &Scores<'_>,
    engine: &str,
    collection: &str,
    grade: Grade,
    point: impl Fn(&Facts) -> Option<Point>,
) -> Vec<Point> {
    grown(scores, collection, grade).filter_map(|case| point(scores.facts(engine, case)?)).collect()
}

/// The cases of a collection grown with this grade, by size.
fn grown<'a>(scores: &Scores<'a>, collection: &str, grade: Grade) -> impl Iterator<Item = &'a str> {
    scores.sizes(collection).into_iter().filter_map(move |size| scores.grown(collection, grade, size))
}

/// What stands behind the name of a line through all of these cases.
fn mark(scores: &Scores<'_>, engine: &str, collection: &str, grade: Grade) -> &'static str {
    scores.mark(&[engine], grown(scores, collection, grade))
}

fn recall_point(facts: &Facts) -> Option<Point> {
    let Estimate { mean, low, high } = *recall(facts)?;
    Some(Point { tools: facts.tools, value: mean, band: Some((low, high)) })
}

fn bare(tools: usize, value: f64) -> Point {
    Point { tools, value, band: None }
}

/// recall@5 by namespace of the relevant tools and engine, of one collection as it is.
pub(super) fn namespaces(scores: &Scores<'_>, case: &str) -> Option<Figure> {
    let engines: Vec<&str> =
        scores.engines().into_iter().filter(|engine| scores.facts(engine, case).is_some()).collect();
    let slices = &scores.any_facts(case)?.by_namespace;
    let rows = slices.iter().map(|(namespace, slice)| {
        let value = |engine: &&str| Some(scores.facts(engine, case)?.by_namespace.get(namespace)?.recall_at_5);
        (format!("{namespace} ({})", count(slice.queries)), engines.iter().map(value).collect())
    });
    // The worst of the first engine stand first: those are what a reader looks for.
    let mut rows: Vec<(String, Vec<Option<f64>>)> = rows.collect();
    rows.sort_by(|left, right| {
        let first = |row: &(String, Vec<Option<f64>>)| row.1.first().copied().flatten().unwrap_or(f64::INFINITY);
        first(left).total_cmp(&first(right)).then_with(|| left.0.cmp(&right.0))
    });
    let title = format!("{RECALL} by namespace and engine: {case}");
    let map = HeatMap {
        title: title.clone(),
        note: format!("Mean {RECALL}; queries per namespace in brackets."),
        columns: engines.iter().map(|engine| format!("{engine}{}", scores.mark(&[engine], [case]))).collect(),
        rows,
    };
    map.svg().map(|svg| Figure { path: format!("{case}-namespaces.svg"), alt: title, svg })
}

/// recall@5 of the default engine less that of the control, on every collection as it is.
pub(super) fn versus_control(scores: &Scores<'_>) -> Option<Figure> {
    let cases = scores.cases(|case| case.growth.is_none());
    let paired = |case: &Case<'_>| {
        let Estimate { mean, low, high } = scores.facts(DEFAULT, case.name)?.versus_control.as_ref()?.difference;
        let mark = scores.mark(&[DEFAULT, CONTROL], [case.name]);
        Some((format!("{}{mark}", case.name), Interval { mean, low, high }))
    };
    let rows: Vec<(String, Interval)> = cases.iter().filter_map(paired).collect();
    let together = over_sets(&rows.iter().map(|(_, one)| one.mean).collect::<Vec<_>>());
    let title = format!("{RECALL} of the default engine less that of flat BM25, by collection");
    let forest = Forest {
        title: title.clone(),
        x_title: "difference, 95 % interval; hollow: may be none".to_owned(),
        rows,
        together: together.map(|Estimate { mean, low, high }| ("any such".to_owned(), Interval { mean, low, high })),
    };
    forest.svg().map(|svg| Figure { path: "versus-control.svg".to_owned(), alt: title, svg })
}

/// The median time of a search among [`TIMED_AT`] tools, in µs.
fn search_time(recording: Option<&Recording<'_>>, engine: &str) -> Option<f64> {
    let is_it = |row: &&&TimingRow| {
        row.subject == Subject::Search && row.engine.as_deref() == Some(engine) && row.tools == Some(TIMED_AT)
    };
    let rows = recording?.rows.iter().filter(is_it);
    rows.map(|row| row.median * row.unit.microseconds()).max_by(f64::total_cmp)
}

/// What engines find, take and show: recall@5 over all collections by time of a search, with the tokens of their cards.
pub(super) fn front(scores: &Scores<'_>, recording: Option<&Recording<'_>>) -> Option<Figure> {
    let engines = scores.engines();
    let cases = common(scores, &engines);
    let point = |(color, engine): (usize, &&str)| {
        let tokens = mean_of(scores, engine, &cases, |facts| Some(facts.tokens.as_ref()?.cards_mean))?;
        Some(Named {
            name: format!("{}, {} tokens", engine_name(engine), fixed(tokens, 0)),
            color,
            cost: search_time(recording, engine)?,
            gain: mean_of(scores, engine, &cases, |facts| recall(facts).map(|one| one.mean))?,
            is_hollow: false,
        })
    };
    let points: Vec<Named> = engines.iter().enumerate().filter_map(point).collect();
    let title =
        format!("{RECALL}, time of a search and prompt tokens by engine: mean of {} collections", count(cases.len()));
    let front = Front {
        title: title.clone(),
        x_title: format!("µs a search among {} tools, recorded", count(TIMED_AT)),
        y_title: format!("{RECALL}, mean; the line is what no engine beats"),
        points,
    };
    front.svg().map(|svg| Figure { path: "front.svg".to_owned(), alt: title, svg })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chapters::routing::sample;

    #[test]
    fn every_figure_has_its_file_and_nothing_unprintable() {
        let (results, timings) = (sample::results(), sample::timings());
        let scores = Scores::new(&results);
        let rows: Vec<&TimingRow> = timings.iter().collect();
        let figures = [
            recall_by_size(&scores, "workbench"),
            context_rot(&scores, "workbench"),
            tokens(&scores, "workbench"),
            latency(&scores, &rows),
            namespaces(&scores, "workbench"),
            versus_control(&scores),
            front(&scores, Recording::newest(&timings).as_ref()),
        ];
        let paths: Vec<String> = figures
            .into_iter()
            .map(|figure| {
                let Figure { path, svg, .. } = figure.unwrap();
                assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{path}");
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{path}");
                path
            })
            .collect();
        assert_eq!(
            paths,
            [
                "workbench-recall-by-size.svg",
                "workbench-context-rot.svg",
                "workbench-tokens.svg",
                "latency.svg",
                "workbench-namespaces.svg",
                "versus-control.svg",
                "front.svg"
            ]
        );
    }

    #[test]
    fn nothing_recorded_gives_no_figure() {
        let scores = Scores::new(&[]);
        assert!(recall_by_size(&scores, "workbench").is_none());
        assert!(tokens(&scores, "workbench").is_none());
        assert!(latency(&scores, &[]).is_none());
        assert!(namespaces(&scores, "workbench").is_none());
        assert!(versus_control(&scores).is_none());
        assert!(front(&scores, None).is_none());
    }
}
