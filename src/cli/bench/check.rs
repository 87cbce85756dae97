//! `bench check`: the code still produces the committed numbers, the pages still show them, nothing vanished.

use std::fs;
use std::io::Write;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::Place;
use super::context::Scenarios;
use super::gateway::GatewayCases;
use super::growth::Scaling;
use super::left_out::Tables;
use super::played::Played;
use super::run::{compute, pages};
use crate::cli::{Format, Outcome, print_json};
use crate::context::ContextConfig;
use crate::eval::capability::CopiesFacts;
use crate::eval::confidence::ConfidenceFacts;
use crate::eval::context::results::wrong_rows;
use crate::eval::context::run::version;
use crate::eval::engine::Engine;
use crate::eval::feedback::FeedbackFacts;
use crate::eval::matrix::Matrix;
use crate::eval::record::Results;
use crate::eval::results::{Chapter, ChapterRecord, Difference, differences};
use crate::eval::workspace::Collections;
use crate::report::Records;

/// Differences printed before the rest is only counted.
const SHOWN: usize = 20;

/// Compute the results again and compare: exit 1 and the first differences when anything moved
#[derive(Debug, Args)]
pub(in crate::cli) struct CheckArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    tables: Tables,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Serialize)]
struct Verdict {
    /// Facts that are not what the results files say.
    facts: Vec<Difference>,
    /// Committed rows of collections that are not here and that this version of the engine did not make.
    kept: Vec<String>,
    /// Pages that do not show what the results files say.
    pages: Vec<String>,
    /// Result files of no engine, and pictures that no page shows.
    strays: Vec<String>,
    /// Cases that were compared with nothing, since their collections are not here.
    not_run: Vec<String>,
}

pub(super) fn run(args: &CheckArgs, out: &mut dyn Write) -> Result<Outcome> {
    let workspace = args.place.workspace()?;
    let matrix = workspace.matrix()?;
    let collections = workspace.collections(&matrix.cases)?;
    let committed = workspace.read_results(&matrix)?;
    let computed = compute(&matrix, &collections, &committed)?;
    let mut facts = Vec::new();
    for results in &computed {
        match committed.iter().find(|other| other.engine == results.engine) {
            Some(other) => facts.extend(differences(other, results)?),
            None => facts.push(no_file(&results.engine, results.records.len())),
        }
    }
    let scenarios = Scenarios::of(&workspace)?;
    let context = scenarios.compute(&workspace)?;
    facts.extend(chapter_differences(scenarios.committed.as_ref(), &context)?);
    let cases = GatewayCases::of(&workspace)?;
    let gateway = cases.compute()?;
    facts.extend(chapter_differences(cases.committed.as_ref(), &gateway)?);
    let feedback = Played::<FeedbackFacts>::of(&workspace, &matrix, &collections)?;
    let confidence = Played::<ConfidenceFacts>::of(&workspace, &matrix, &collections)?;
    let copies = Played::<CopiesFacts>::of(&workspace, &matrix, &collections)?;
    let scaling = Scaling::of(&workspace, &matrix, &collections)?;
    facts.extend(scaling.differences()?);
    facts.extend(feedback.differences()?);
    facts.extend(confidence.differences()?);
    facts.extend(copies.differences()?);
    let left_out = args.tables.played(&workspace, &matrix, &collections)?;
    facts.extend(left_out.differences()?);
    let mut kept = kept_rows(&matrix, &collections, &committed);
    let is_here = |scenario: &_| workspace.has_scenario(scenario);
    let engine = version(&ContextConfig::default());
    kept.extend(wrong_rows(&scenarios.all, scenarios.committed.as_ref(), &engine, is_here));
    kept.extend(cases.wrong_rows());
    kept.extend(feedback.wrong_rows());
    kept.extend(confidence.wrong_rows());
    kept.extend(copies.wrong_rows());
    kept.extend(scaling.wrong_rows());
    kept.extend(left_out.wrong_rows());
    let mut stale = Vec::new();
    let records = Records {
        results: &committed,
        context: scenarios.committed.as_ref(),
        gateway: cases.committed.as_ref(),
        feedback: feedback.committed.as_ref(),
        confidence: confidence.committed.as_ref(),
        copies: copies.committed.as_ref(),
        scaling: scaling.committed.as_ref(),
        left_out: left_out.committed.as_ref(),
        ..Records::default()
    };
    let rendered = pages(&workspace, &records)?;
    let paths: Vec<&str> = rendered.iter().map(|page| page.path.as_str()).collect();
    let stray_pages = workspace.stray_pages(&paths)?;
    for page in rendered {
        if fs::read(workspace.path(&page.path)).ok().as_deref() != Some(&page.bytes) {
            stale.push(page.path);
        }
    }
    let strays = workspace.stray_results(&matrix)?;
    let verdict = Verdict {
        facts,
        kept,
        pages: stale,
        strays: strays
            .iter()
            .map(|path| format!("{}: no engine of that name; delete the file", path.display()))
            .chain(stray_pages.iter().map(|path| format!("{}: no page of that name; delete the file", path.display())))
            .collect(),
        not_run: super::absent(&matrix.cases, &collections)
            .into_iter()
            .chain(scenarios.absent(&workspace))
            .chain(cases.absent())
            .collect(),
    };
    match args.format {
        Format::Json => print_json(out, &verdict)?,
        Format::Text => print(&verdict, out)?,
    }
    Ok(if verdict.is_same() { Outcome::Ok } else { Outcome::Drift })
}

/// Every fact in which the committed results of a chapter differ from those that are computed now.
pub(super) fn chapter_differences<R: ChapterRecord>(
    committed: Option<&Chapter<R>>,
    computed: &Chapter<R>,
) -> Result<Vec<Difference>> {
    Ok(match committed {
        Some(committed) => computed.differences(committed)?,
        None if computed.records.is_empty() => Vec::new(),
        None => vec![no_file(R::NAME, computed.records.len())],
    })
}

/// Results of which there is no committed file.
fn no_file(name: &str, records: usize) -> Difference {
    Difference {
        engine: name.to_owned(),
        case: String::new(),
        fact: format!("scorecard/results/{name}.json"),
        committed: None,
        computed: Some(Value::from(records)),
    }
}

impl Verdict {
    fn is_same(&self) -> bool {
        self.facts.is_empty() && self.kept.is_empty() && self.pages.is_empty() && self.strays.is_empty()
    }
}

/// What is wrong with the rows that cannot be computed here: each case and engine must have one, made by the version
/// of the engine that is here.
fn kept_rows(matrix: &Matrix, collections: &Collections, committed: &[Results]) -> Vec<String> {
    let mut wrong = Vec::new();
    for case in &matrix.cases {
        let here = collections.get(&case.collection).is_some();
        for name in case.engines.iter().filter(|name| !here || !matrix.is_here(name)) {
            let version = matrix.engine(name).map(Engine::version).unwrap_or_default();
            let records = committed.iter().find(|results| results.engine == *name).map(|results| &results.records);
            match records.and_then(|records| records.iter().find(|record| record.case == case.id)) {
                None => wrong.push(format!("{name} · {}: no committed row", case.id)),
                Some(record) if record.engine_version != version => wrong.push(format!(
                    "{name} · {}: the row is of version {}, the engine here is {version}",
                    case.id, record.engine_version
                )),
                Some(_) => {}
            }
        }
    }
    wrong
}

fn print(verdict: &Verdict, out: &mut dyn Write) -> Result<()> {
    for difference in verdict.facts.iter().take(SHOWN) {
        let show = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), abbreviated);
        let (committed, computed) = (show(&difference.committed), show(&difference.computed));
        let place = [difference.engine.as_str(), &difference.case, &difference.fact].map(str::to_owned);
        let place: Vec<String> = place.into_iter().filter(|part| !part.is_empty()).collect();
        writeln!(out, "{}: committed {committed}, computed {computed}", place.join(" · "))?;
    }
    if verdict.facts.len() > SHOWN {
        writeln!(out, "… and {} more facts", verdict.facts.len() - SHOWN)?;
    }
    for row in verdict.kept.iter().take(SHOWN) {
        writeln!(out, "{row}; run where its collection is")?;
    }
    if verdict.kept.len() > SHOWN {
        writeln!(out, "… and {} more rows of absent collections", verdict.kept.len() - SHOWN)?;
    }
    for page in &verdict.pages {
        writeln!(out, "{page}: does not show the committed results")?;
    }
    for stray in &verdict.strays {
        writeln!(out, "{stray}")?;
    }
    if !verdict.not_run.is_empty() {
        writeln!(out, "not re-run, their collections are not here: {}", verdict.not_run.join(", "))?;
    }
    match (verdict.facts.is_empty(), verdict.pages.is_empty()) {
        _ if verdict.is_same() => writeln!(out, "same: facts, pages and coverage")?,
        (true, true) => {}
        (true, false) => writeln!(out, "drift; if it is meant: contextweaver bench render")?,
        (false, _) => writeln!(out, "drift; if it is meant: contextweaver bench run")?,
    }
    Ok(())
}

/// A value short enough for one line.
fn abbreviated(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 { text } else { text.chars().take(59).chain(['…']).collect() }
}
