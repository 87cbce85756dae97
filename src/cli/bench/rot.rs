//! `bench rot`: what is left of recall on your queries as your catalog grows.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rayon::prelude::*;
use serde::Serialize;

use super::run::progress;
use crate::cli::files::{writable, write};
use crate::cli::source::{CatalogSource, read_config};
use crate::cli::{Outcome as Exit, note, print_json};
use contextweaver_bench::chapters::routing::context_rot;
use contextweaver_bench::chapters::seeds::titles;
use contextweaver_bench::eval::collection::Collection;
use contextweaver_bench::eval::engine::RouterEngine;
use contextweaver_bench::eval::growth::{CORE_TOOLS, GrowthError, SEED, SIZES, grow};
use contextweaver_bench::eval::matrix::{CONTROL, builtin_engine};
use contextweaver_bench::eval::record::{Compared, Estimate, Facts, Grade, Growth, Paired};
use contextweaver_bench::eval::run::{PromptTokens, against, evaluate};
use contextweaver_bench::eval::statistics::{compared, ends, mean, round6};
use contextweaver_bench::report::number::{BY_SEED, concluded, conclusion, count, difference, estimate, share, signed};
use contextweaver_bench::report::table::Table;

pub(super) const EXAMPLE: &str = "\
Flat BM25 (`bm25`) is measured beside your configuration on the same catalogs and queries.
It takes about a minute for a hundred tools; fewer sizes and seeds take less.

Examples:
  contextweaver bench rot --catalog tools.json --queries queries.jsonl
  contextweaver bench rot --catalog tools.json --queries queries.jsonl --grade near_duplicate --size 200 --size 2000
  contextweaver bench rot --catalog tools.json --queries queries.jsonl --seeds 20 --grade mixed --size 1000
  contextweaver bench rot --catalog tools.json --queries queries.jsonl --svg rot.svg
  contextweaver bench rot --catalog tools.json --queries queries.jsonl --format csv";

/// Grow your own catalog with distractors and see how much recall is left
#[derive(Debug, Args)]
pub(in crate::cli) struct RotArgs {
    #[command(flatten)]
    source: CatalogSource,
    /// Queries, one JSON object per line
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Routing configuration (TOML) [default: built in]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Kind of distractors: unrelated, sibling, near_duplicate, keyword_stuffed, mixed or copies; may be repeated
    /// [default: all but copies]
    #[arg(long, value_name = "GRADE")]
    grade: Vec<Grade>,
    /// Number of tools after growth; may be repeated [default: 50 to 10 000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    size: Vec<u32>,
    /// Draw the distractors with this many seeds: least and most show how much of a figure is chance
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// Draw the curves of the first seed into this file, with the control as a thin line beside each
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Form,
}

/// The form of the output of `bench rot`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Form {
    /// For people.
    #[default]
    Text,
    /// For machines: one JSON document.
    Json,
    /// A table with one row for each kind and number of distractors, comma-separated.
    Csv,
}

/// One point of a curve.
#[derive(Debug, Clone, Serialize)]
struct Point {
    grade: Grade,
    tools: usize,
    /// Tools of the catalog that are among them: its core, or for copies all.
    own_tools: usize,
    /// Tools of the catalog as it is.
    of_tools: usize,
    /// Queries that are asked: those that these tools answer in full.
    queries: usize,
    /// Queries of the file that a tool answers.
    of_queries: usize,
    /// With the first seed: the mean over the queries, and its interval.
    recall_at_5: Estimate,
    /// The mean over the queries with each seed.
    by_seed: Vec<f64>,
    /// The least of these.
    least: f64,
    /// The most.
    most: f64,
    /// The same of flat BM25.
    control: Control,
}

/// What flat BM25 finds among the same tools, and how far one's own is ahead.
#[derive(Debug, Clone, Serialize)]
struct Control {
    /// Its name.
    engine: &'static str,
    /// With the first seed: the mean over the queries, and its interval.
    recall_at_5: Estimate,
    /// The mean over the queries with each seed.
    by_seed: Vec<f64>,
    /// Yours less the control, query by query with the first seed, beside all other points.
    difference: Compared,
    /// Yours less the control with each seed.
    difference_by_seed: Vec<f64>,
    /// The seeds with which yours is ahead.
    led: usize,
}

/// What a kind and number of distractors leave of one's own and of the control, with each seed; the facts are those of the
/// first, those of one's own with the difference from the control.
struct Drawn {
    facts: Facts,
    control: Facts,
    by_seed: Vec<f64>,
    control_by_seed: Vec<f64>,
}

/// Grows with each seed, and measures both engines on what it gives; `None` where no recall is known.
fn drawn(
    collection: &Collection,
    engine: &RouterEngine,
    control: &RouterEngine,
    growth: Growth,
    seeds: u64,
) -> Result<Option<Drawn>> {
    let one = |seed: u64| {
        let grown = grow(collection, growth, seed)?;
        let (own, control) =
            (evaluate(&grown, engine, PromptTokens::Skip)?, evaluate(&grown, control, PromptTokens::Skip)?);
        let paired = against(CONTROL, &control.recall_at_5, &own.recall_at_5);
        Ok((Facts { versus_control: Some(paired), ..own.facts }, control.facts))
    };
    let all = (SEED..SEED + seeds).into_par_iter().map(one).collect::<Result<Vec<(Facts, Facts)>>>()?;
    let recall = |facts: &Facts| facts.measures.get("recall@5").map(|one| one.mean);
    let by_seed: Option<Vec<f64>> = all.iter().map(|(own, _)| recall(own)).collect();
    let control_by_seed: Option<Vec<f64>> = all.iter().map(|(_, control)| recall(control)).collect();
    let (Some(by_seed), Some(control_by_seed)) = (by_seed, control_by_seed) else { return Ok(None) };
    let first = all.into_iter().next();
    Ok(first.map(|(facts, control)| Drawn { facts, control, by_seed, control_by_seed }))
}

impl Control {
    /// What the two gave, once and with each seed.
    fn of(drawn: &Drawn) -> Option<Self> {
        let pairs = drawn.by_seed.iter().zip(&drawn.control_by_seed);
        let difference_by_seed: Vec<f64> = pairs.map(|(own, control)| round6(own - control)).collect();
        Some(Self {
            engine: CONTROL,
            recall_at_5: *drawn.control.measures.get("recall@5")?,
            by_seed: drawn.control_by_seed.clone(),
            difference: Compared::alone(drawn.facts.versus_control.clone()?),
            led: difference_by_seed.iter().filter(|difference| **difference > 0.0).count(),
            difference_by_seed,
        })
    }
}

pub(super) fn run(args: &RotArgs, out: &mut dyn Write) -> Result<Exit> {
    let files = args.source.files().read("--queries", [&args.queries]).read("--config", &args.config);
    files.written("--svg", &args.svg).check()?;
    args.svg.as_deref().map_or(Ok(()), |path| writable("--svg", path))?;
    let collection = args.source.collection(&args.queries)?;
    if collection.counts().answerable == 0 {
        bail!("{}: no query has a relevant tool, so there is no recall to lose", args.queries.display());
    }
    let engine = RouterEngine::new("yours", read_config(args.config.as_deref())?);
    let control = builtin_engine(CONTROL)?;
    let mut curves = measure(args, &collection, &engine, &control)?;
    correct(&mut curves.points);
    let Curves { points, own, control } = curves;
    if let Some(path) = &args.svg {
        let svg = context_rot(own, control).context("nothing to draw: no query can be answered at these sizes")?;
        write(path, svg.as_bytes())?;
    }
    match args.format {
        Form::Json => print_json(out, "bench rot", &points)?,
        Form::Csv => write!(out, "{}", figures(&points).csv())?,
        Form::Text => print(out, &points, args.seeds)?,
    }
    Ok(Exit::Ok)
}

/// What was measured, and what is drawn of it.
#[derive(Default)]
struct Curves {
    points: Vec<Point>,
    /// The facts of one's own with the first seed.
    own: Vec<(Growth, Facts)>,
    /// Those of the control.
    control: Vec<(Growth, Facts)>,
}

/// Measures each kind and number of distractors that was asked for.
fn measure(args: &RotArgs, collection: &Collection, engine: &RouterEngine, control: &RouterEngine) -> Result<Curves> {
    let grades: Vec<Grade> = if args.grade.is_empty() { Grade::DISTRACTORS.to_vec() } else { args.grade.clone() };
    let sizes: Vec<usize> =
        if args.size.is_empty() { SIZES.to_vec() } else { args.size.iter().map(|&size| size as usize).collect() };
    let mut curves = Curves::default();
    let bar = progress(grades.len() * sizes.len());
    for growth in grades.iter().flat_map(|&grade| sizes.iter().map(move |&size| Growth { grade, size })) {
        bar.set_message(format!("{}, {} tools", growth.grade.name(), count(growth.size)));
        match drawn(collection, engine, control, growth, args.seeds) {
            Ok(Some(drawn)) => curves.add(growth, drawn, collection),
            Ok(None) => {}
            // The usual sizes are tried as far as they go; a size that was asked for must work.
            Err(error) if args.size.is_empty() && error.is::<GrowthError>() => {
                bar.suspend(|| note(&error.to_string()));
            }
            Err(error) => return Err(error),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(curves)
}

impl Curves {
    /// Adds a point, where its recall is known.
    fn add(&mut self, growth: Growth, drawn: Drawn, collection: &Collection) {
        let own = collection.catalog.len();
        let Some(control) = Control::of(&drawn) else { return };
        let Drawn { facts, by_seed, control: of_control, .. } = drawn;
        let Some(&recall_at_5) = facts.measures.get("recall@5") else { return };
        let [least, most] = ends(&by_seed);
        self.points.push(Point {
            grade: growth.grade,
            tools: facts.tools,
            own_tools: if growth.grade == Grade::Copies { own } else { own.min(CORE_TOOLS) },
            of_tools: own,
            of_queries: collection.counts().answerable,
            queries: facts.answerable,
            recall_at_5,
            by_seed,
            least,
            most,
            control,
        });
        self.own.push((growth, facts));
        self.control.push((growth, of_control));
    }
}

/// Prints the points for people.
fn print(out: &mut dyn Write, points: &[Point], seeds: u64) -> Result<()> {
    let queries = by_query(points).plain();
    writeln!(
        out,
        "recall@5 with the first seed, 95 % intervals over the queries; the difference is query by query, and \
         verdicts are corrected for their number (Holm)"
    )?;
    write!(out, "{queries}")?;
    if queries.contains(BY_SEED) {
        writeln!(out, "{}: another seed of the random flips gives another verdict", BY_SEED.trim())?;
    }
    writeln!(
        out,
        "\nrecall@5 over {} of the distractors; the difference is seed by seed, and led counts those ahead",
        if seeds == 1 { "1 seed".to_owned() } else { format!("{seeds} seeds") }
    )?;
    write!(out, "{}", by_seed(points).plain())?;
    writeln!(out, "\n{CONTROL} is the control: flat BM25 on the same catalogs and queries")?;
    for line in parts(points) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Corrects the differences for their number. Points without a distractor are one catalog, whatever their kind, and so are
/// points of one kind and size: each counts once.
fn correct(points: &mut [Point]) {
    let catalog = |point: &Point| (Some(point.grade).filter(|_| point.tools > point.own_tools), point.tools);
    let different: BTreeMap<_, Paired> =
        points.iter().map(|point| (catalog(point), point.control.difference.paired.clone())).collect();
    let corrected = compared(&different.values().collect::<Vec<_>>());
    let corrected: BTreeMap<_, Compared> = different.into_keys().zip(corrected).collect();
    for point in points {
        if let Some(one) = corrected.get(&catalog(point)) {
            point.control.difference = one.clone();
        }
    }
}

/// Both engines with the first seed.
fn by_query(points: &[Point]) -> Table {
    let titles = ["distractors", "tools", "queries", "yours", CONTROL, "difference", "verdict"];
    let mut table = Table::new(titles).words(&["verdict"]);
    for point in points {
        let Paired { difference: found, .. } = &point.control.difference.paired;
        table.row([
            point.grade.name().to_owned(),
            count(point.tools),
            count(point.queries),
            estimate(&point.recall_at_5),
            estimate(&point.control.recall_at_5),
            difference(found),
            conclusion(&point.control.difference.paired),
        ]);
    }
    table
}

/// Both engines over all seeds: the mean, the least and the most.
fn by_seed(points: &[Point]) -> Table {
    let mut table = Table::new(titles("yours"));
    for point in points {
        let spread = |values: &[f64], show: fn(f64) -> String| {
            let [least, most] = ends(values);
            [mean(values.iter().copied()), least, most].map(show)
        };
        let Control { by_seed, difference_by_seed, led, .. } = &point.control;
        let own = [point.grade.name().to_owned(), count(point.tools)].into_iter().chain(spread(&point.by_seed, share));
        let cells = own.chain(spread(by_seed, share)).chain(spread(difference_by_seed, signed));
        table.row(cells.chain([format!("{led} of {}", by_seed.len())]));
    }
    table
}

/// All figures of each point in one row, as the JSON has them.
fn figures(points: &[Point]) -> Table {
    let with = |name: &str, ends: [&str; 3]| ends.map(|end| format!("{name}{end}"));
    let (interval, spread) = (["", " low", " high"], [" mean of seeds", " least of seeds", " most of seeds"]);
    let titles = ["distractors", "tools", "queries", "seeds"].into_iter().map(str::to_owned);
    let three = ["yours", CONTROL, "difference"];
    let of_queries = three.into_iter().flat_map(|name| with(name, interval));
    let of_seeds = three.into_iter().flat_map(|name| with(name, spread));
    let mut table = Table::new(
        titles
            .chain(of_queries)
            .chain(["p", "p holm", "verdict"].map(str::to_owned))
            .chain(of_seeds)
            .chain(["led".to_owned()]),
    );
    for point in points {
        let Control { recall_at_5, by_seed, difference, difference_by_seed, led, .. } = &point.control;
        let Compared { paired, p_holm } = difference;
        let counts = [point.tools, point.queries, by_seed.len()].map(|value| value.to_string());
        let estimates = [&point.recall_at_5, recall_at_5, &paired.difference];
        let estimates =
            estimates.into_iter().flat_map(|one| [one.mean, one.low, one.high]).map(|value| value.to_string());
        let verdict = [paired.p.to_string(), p_holm.to_string(), concluded(paired).to_owned()];
        let seeds = [&point.by_seed, by_seed, difference_by_seed].into_iter().flat_map(|values| {
            let [least, most] = ends(values);
            [round6(mean(values.iter().copied())), least, most].map(|value| value.to_string())
        });
        let row = [point.grade.name().to_owned()].into_iter().chain(counts).chain(estimates);
        table.row(row.chain(verdict).chain(seeds).chain([led.to_string()]));
    }
    table
}

/// Which part of the catalog and of the queries was used, and which sizes have fewer tools than the catalog.
fn parts(points: &[Point]) -> Vec<String> {
    let mut lines = Vec::new();
    let core = points.iter().find(|point| point.grade != Grade::Copies);
    if let Some(Point { own_tools, of_tools, queries, of_queries, .. }) = core {
        lines.push(format!(
            "every size contains the core of your catalog: {} of {} tools, and the {} of {} queries that these answer",
            count(*own_tools),
            count(*of_tools),
            count(*queries),
            count(*of_queries)
        ));
    }
    let smaller: BTreeSet<usize> =
        points.iter().filter(|point| point.tools < point.of_tools).map(|point| point.tools).collect();
    if !smaller.is_empty() {
        let sizes: Vec<String> = smaller.into_iter().map(count).collect();
        lines.push(format!("sizes with fewer tools than your catalog, so easier than it is: {}", sizes.join(", ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use contextweaver_bench::eval::record::Verdict;

    fn point(grade: Grade, tools: usize, p: f64) -> Point {
        let estimate = Estimate { mean: 0.1, low: 0.05, high: 0.2 };
        let difference = Paired {
            control: CONTROL.to_owned(),
            difference: estimate,
            differing: 9,
            p,
            verdict: Verdict::Better,
            depends_on_seed: false,
        };
        let control = Control {
            engine: CONTROL,
            recall_at_5: estimate,
            by_seed: vec![0.5],
            difference: Compared::alone(difference),
            difference_by_seed: vec![0.1],
            led: 1,
        };
        let (own_tools, of_tools, queries, of_queries) = (50, 60, 30, 30);
        let (recall_at_5, by_seed, least, most) = (estimate, vec![0.6], 0.6, 0.6);
        Point { grade, tools, own_tools, of_tools, queries, of_queries, recall_at_5, by_seed, least, most, control }
    }

    #[test]
    fn a_catalog_that_is_measured_several_times_counts_once() {
        let p_holm = |mut points: Vec<Point>| -> Vec<f64> {
            correct(&mut points);
            points.iter().map(|point| point.control.difference.p_holm).collect()
        };
        let (unrelated, sibling) = (Grade::Unrelated, Grade::Sibling);
        // Without a distractor all kinds are one catalog.
        assert_eq!(p_holm(vec![point(unrelated, 50, 0.02), point(sibling, 50, 0.02)]), [0.02, 0.02]);
        assert_eq!(p_holm(vec![point(unrelated, 100, 0.02), point(unrelated, 100, 0.02)]), [0.02, 0.02]);
        let mut three = vec![point(unrelated, 50, 0.03), point(unrelated, 100, 0.02), point(sibling, 100, 0.04)];
        assert_eq!(p_holm(three.clone()), [0.06, 0.06, 0.06]);
        // Every form says the same.
        correct(&mut three);
        let text = by_query(&three).plain();
        assert_eq!(text.matches("inconclusive").count(), 3, "{text}");
        let csv = figures(&three).csv();
        assert!(csv.lines().skip(1).all(|row| row.contains(",0.06,inconclusive,")), "{csv}");
        let json = serde_json::to_string(&three).unwrap();
        assert_eq!(
            json.matches(r#""verdict":"inconclusive","depends_on_seed":false,"p_holm":0.06"#).count(),
            3,
            "{json}"
        );
    }
}
