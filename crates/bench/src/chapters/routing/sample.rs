//! Made-up results of the shape of a real run, for tests: every engine, every case, smooth numbers.

use std::collections::BTreeMap;

use crate::eval::ranks::Ranks;
use crate::eval::record::{
    Abstention, Estimate, Facts, Grade, Growth, Loss, Origin, Outcome, Paired, RiskPoint, Slice, Ties, Tokens, Verdict,
    Work,
};
use crate::eval::timing::{Subject, TimingRow, Unit};
use crate::results::{Day, Record, Results, recorded};

const ENGINES: [(&str, f64); 5] =
    [("default", 0.0), ("bm25", -0.03), ("tfidf", -0.07), ("fuzzy", 0.012), ("beam", -0.16)];
const SIZES: [usize; 8] = [50, 100, 250, 500, 1000, 2500, 5000, 10_000];
const EMBEDDED: [(&str, usize, usize, f64); 2] = [("workbench", 187, 412, 0.83), ("household", 96, 164, 0.88)];
const PUBLIC: [(&str, usize, usize, f64); 8] = [
    ("bfcl_synth", 1127, 1050, 0.91),
    ("contextweaver_83", 83, 200, 0.85),
    ("metatool_multi", 199, 497, 0.62),
    ("metatool_single", 199, 2997, 0.71),
    ("nestful", 937, 290, 0.55),
    ("sealtools_dev", 4076, 700, 0.76),
    ("toolalpaca", 431, 199, 0.66),
    ("toolbench", 3912, 764, 0.48),
];
const NAMESPACES: [&str; 16] = [
    "accounting",
    "browser",
    "calendar",
    "chat",
    "cloud",
    "crm",
    "database",
    "design",
    "docs",
    "email",
    "files",
    "git",
    "hr",
    "monitoring",
    "payments",
    "tickets",
];
const REGISTERS: [&str; 5] = ["chatty", "non_english", "plain", "terse", "typos"];

/// The results of five engines on all cases of the benchmark matrix.
pub(crate) fn results() -> Vec<Results<Box<Facts>>> {
    ENGINES.map(|(engine, offset)| engine_results(engine, offset)).into()
}

/// The results of the default engine and of the control on two small cases, one of which failed.
pub(crate) fn few_results() -> Vec<Results<Box<Facts>>> {
    let mut results: Vec<Results<Box<Facts>>> =
        ENGINES[..2].iter().map(|(engine, offset)| engine_results(engine, *offset)).collect();
    for one in &mut results {
        one.records.retain(|record| ["household", "toolbench"].contains(&record.case.as_str()));
    }
    results[0].records[1].outcome = Outcome::Failed("toolbench: 2 tools | share an id".to_owned());
    results
}

/// One small set of facts with every part present.
pub(crate) fn facts() -> Facts {
    facts_of(&Shape { engine: "default", offset: 0.0, base: 0.83, tools: 1000, queries: 412, embedded: true })
}

/// A recording of every subject on one machine, and an older one.
pub(crate) fn timings() -> Vec<TimingRow> {
    let mut rows = vec![timing("2025-12-01", Subject::Search, Some("default"), Some(1000), Unit::Microseconds, 99.0)];
    for (engine, factor) in [("default", 1.0), ("bm25", 0.8), ("tfidf", 0.9), ("fuzzy", 7.5), ("beam", 3.0)] {
        for size in SIZES {
            let median = factor * (2.0 + 0.14 * (size as f64).sqrt());
            rows.push(timing("2026-01-31", Subject::Search, Some(engine), Some(size), Unit::Microseconds, median));
        }
    }
    for size in [1000, 10_000] {
        let median = 0.009 * size as f64;
        rows.push(timing("2026-01-31", Subject::IndexBuild, Some("default"), Some(size), Unit::Milliseconds, median));
    }
    rows.push(timing("2026-01-31", Subject::RouteColdProcess, Some("default"), Some(1000), Unit::Milliseconds, 31.5));
    rows.push(timing("2026-01-31", Subject::HelpColdProcess, None, None, Unit::Milliseconds, 1.8));
    rows.push(timing("2026-01-31", Subject::Card, None, None, Unit::Microseconds, 9.3));
    rows
}

fn timing(
    date: &str,
    subject: Subject,
    engine: Option<&str>,
    tools: Option<usize>,
    unit: Unit,
    median: f64,
) -> TimingRow {
    TimingRow {
        date: Day::try_from(date.to_owned()).unwrap(),
        machine: "desk".to_owned(),
        cpu: "Some CPU @ 3.0 GHz".to_owned(),
        os: "Linux 6.1".to_owned(),
        rustc: "1.95.0".to_owned(),
        revision: "abc1234".to_owned(),
        subject,
        engine: engine.map(str::to_owned),
        tools,
        unit,
        runs: 2000,
        median,
        p95: median * 1.6,
        p99: median * 2.1,
        mad: median * 0.07,
    }
}

fn engine_results(engine: &str, offset: f64) -> Results<Box<Facts>> {
    let mut records = Vec::new();
    for (collection, tools, queries, base) in EMBEDDED {
        let shape = Shape { engine, offset, base, tools, queries, embedded: true };
        records.push(record(collection, Origin::Embedded, &shape));
    }
    for (collection, tools, queries, base) in PUBLIC {
        let shape =
            Shape { engine, offset: offset * 0.8 + 0.01 * (queries % 3) as f64, base, tools, queries, embedded: false };
        records.push(record(collection, Origin::Public, &shape));
    }
    for size in [500, 1000] {
        let base = 0.85 - 0.0001 * size as f64;
        let shape = Shape { engine, offset, base, tools: size, queries: 200, embedded: false };
        let case = Growth { grade: Grade::Copies, size }.case("contextweaver_83");
        records.push(record(&case, Origin::Public, &shape));
    }
    let (collection, _, queries, base) = EMBEDDED[0];
    for (grade, slope) in [
        (Grade::Unrelated, 0.010),
        (Grade::Sibling, 0.045),
        (Grade::NearDuplicate, 0.115),
        (Grade::KeywordStuffed, 0.15),
        (Grade::Mixed, 0.08),
    ] {
        if grade != Grade::Mixed && !["default", "bm25"].contains(&engine) {
            continue;
        }
        for size in SIZES {
            let drop = slope * (size as f64 / 50.0).log10();
            let shape = Shape { engine, offset, base: base + 0.08 - drop, tools: size, queries, embedded: true };
            records.push(record(&Growth { grade, size }.case(collection), Origin::Embedded, &shape));
        }
    }
    let configuration = format!("engine = \"{engine}\"\nk1 = 1.2");
    Results::new(engine, &configuration, "1", records)
}

fn record(case: &str, origin: Origin, shape: &Shape) -> Record<Box<Facts>> {
    let mut one = recorded("", vec![(case, Outcome::Measured(Box::new(facts_of(shape))))]).records;
    Record { origin, ..one.remove(0) }
}

/// What the made-up figures depend on.
struct Shape<'a> {
    engine: &'a str,
    offset: f64,
    base: f64,
    tools: usize,
    queries: usize,
    embedded: bool,
}

fn facts_of(shape: &Shape) -> Facts {
    let recall = (shape.base + shape.offset).clamp(0.02, 0.98);
    let half = 0.9 / (shape.queries as f64).sqrt();
    let measures = |level: f64| -> BTreeMap<String, Estimate> {
        let names = [
            ("recall@1", 0.62),
            ("recall@3", 0.9),
            ("recall@5", 1.0),
            ("recall@10", 1.05),
            ("hit@1", 0.7),
            ("P@5", 0.21),
            ("RR", 0.78),
            ("nDCG@10", 0.84),
            ("full@5", 0.93),
        ];
        names.map(|(name, factor)| (name.to_owned(), around((level * factor).min(0.99), half))).into()
    };
    let loss = 1.0 - recall;
    let pruning = if shape.engine == "beam" { loss * 0.55 } else { 0.0 };
    let rest = loss - pruning;
    let slices = |names: &[&str]| -> BTreeMap<String, Slice> {
        let slice = |at: usize| Slice {
            queries: 12 + 5 * (at % 7),
            recall_at_5: (recall + 0.05 * ((at * 7 % 11) as f64 - 5.0) / 2.0).clamp(0.0, 1.0),
        };
        names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), slice(at))).collect()
    };
    let naive = shape.tools * 148;
    let cards_mean = 412.0 + 9.0 * (shape.tools as f64).log10();
    Facts {
        tools: shape.tools,
        namespaces: (shape.tools / 11).clamp(5, 400),
        answerable: shape.queries,
        unanswerable: if shape.embedded { 44 } else { 0 },
        measures: measures(recall),
        strict: measures(recall - 0.04),
        ties: Ties { best: recall + 0.004, worst: recall - 0.006, expected: recall - 0.001 },
        loss: Loss { vocabulary: rest * 0.3, pruning, tie: rest * 0.05, ranking: rest * 0.65, rescued: 0.0 },
        by_namespace: slices(if shape.embedded { &NAMESPACES } else { &[] }),
        by_register: slices(if shape.embedded { &REGISTERS } else { &[] }),
        by_language: BTreeMap::new(),
        abstention: shape.embedded.then(|| Abstention {
            aurc: 0.11 - shape.offset / 4.0,
            auroc: 0.81 + shape.offset / 4.0,
            curve: (1..=10)
                .map(|at| f64::from(at) / 10.0)
                .map(|coverage| RiskPoint { coverage, risk: 0.03 + 0.2 * coverage * coverage })
                .collect(),
            ece: Some(0.05),
        }),
        nothing_fits: None,
        tokens: Some(Tokens {
            estimator: "cl100k_base".to_owned(),
            naive,
            cards_mean,
            cards_max: 590,
            reduction: 1.0 - cards_mean / naive as f64,
        }),
        first_tools: Vec::new(),
        versus_control: (shape.engine != "bm25").then(|| paired(shape.offset + 0.03, half / 2.0)),
        work: Work {
            terms: 400 + shape.tools * 2,
            postings: shape.tools * 31,
            postings_per_query: 3.7 * shape.tools as f64,
            graph_nodes: if shape.engine == "beam" { shape.tools / 9 } else { 0 },
            weights_bytes: if shape.engine == "default" { 2_100_000 } else { 0 },
        },
        ranks: Ranks::default(),
    }
}

fn around(mean: f64, half: f64) -> Estimate {
    Estimate { mean, low: (mean - half).max(0.0), high: (mean + half).min(1.0) }
}

fn paired(mean: f64, half: f64) -> Paired {
    let difference = Estimate { mean, low: mean - half, high: mean + half };
    let verdict = match difference {
        Estimate { low, .. } if low > 0.0 => Verdict::Better,
        Estimate { high, .. } if high < 0.0 => Verdict::Worse,
        _ => Verdict::Inconclusive,
    };
    let p = if verdict == Verdict::Inconclusive { 0.5 } else { 0.0005 };
    Paired { control: "bm25".to_owned(), difference, differing: 30, p, verdict, depends_on_seed: false }
}
