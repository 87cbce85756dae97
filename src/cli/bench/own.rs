//! `bench run | check | sweep` in a workspace of one's own.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use super::run::progress;
use super::sweep::{corrected, print_edges};
use crate::cli::files::{Files, writable};
use crate::cli::{Format, Outcome, note, print_json};
use contextweaver_bench::chapters::routing::facts;
use contextweaver_bench::comparison::evaluations::Evaluations;
use contextweaver_bench::eval::collection::Collection;
use contextweaver_bench::eval::files::replace_file;
use contextweaver_bench::eval::record::Evidence;
use contextweaver_bench::eval::run::Evaluation;
use contextweaver_bench::eval::sweep as routing;
use contextweaver_bench::eval::vary::Vary;
use contextweaver_bench::own::results::{parse_base, read_base};
use contextweaver_bench::own::words::{self, Committed};
use contextweaver_bench::own::{Judged, Measured, OwnWorkspace, RESULTS_FILE, judge, measure};
use contextweaver_bench::report;
use contextweaver_bench::report::html::{self, Extra, Ranked, Section};
use contextweaver_bench::results::compare::Difference;
use contextweaver_gateway::quoted;

/// Differences from the committed file that are printed.
const SHOWN: usize = 10;

/// The form of the output of `bench check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum CheckFormat {
    /// For people.
    #[default]
    Text,
    /// For machines: one JSON document.
    Json,
    /// The text of a comment on a change; in a workspace of one's own.
    Markdown,
}

#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    judged: &'a Judged,
    /// Whether `bench run` wrote the results.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<bool>,
    #[serde(skip_serializing_if = "<[Difference]>::is_empty")]
    committed_differs: &'a [Difference],
}

/// What was measured in a workspace, with its collection.
struct Fresh {
    collection: Collection,
    evaluations: Vec<(String, Evaluation)>,
    measured: Measured,
}

/// What belongs to a workspace, and no report may replace.
fn files(own: &OwnWorkspace) -> Files {
    Files::default().read("the workspace", own.inputs()).read("the workspace", [own.path(RESULTS_FILE)])
}

/// The collection of a workspace, which has something to measure.
fn answerable(own: &OwnWorkspace) -> Result<Collection> {
    let collection = own.collection()?;
    if collection.counts().answerable == 0 {
        bail!("no query of your catalog has a relevant tool, so there is nothing to judge");
    }
    Ok(collection)
}

fn fresh(own: &OwnWorkspace) -> Result<Fresh> {
    let collection = answerable(own)?;
    let evaluations = measure(own, &collection)?;
    let measured = Measured::of(&own.limits, &collection, &evaluations);
    Ok(Fresh { collection, evaluations, measured })
}

/// The report of what was measured and judged.
fn report(own: &OwnWorkspace, fresh: &Fresh, judged: &Judged, committed: Committed) -> Result<String> {
    let ranked = fresh.evaluations.iter().map(|(engine, evaluation)| Ranked {
        engine,
        evidence: Evidence::Computed,
        evaluation,
    });
    let section = Section {
        counts: true,
        name: "your catalog",
        collection: &fresh.collection,
        ranked: ranked.collect(),
        recorded: Vec::new(),
        failed: Vec::new(),
        command: own.eval_command(),
    };
    let (reading, table) = words::summary(judged, own, committed);
    let gate = Extra {
        title: "The gate".to_owned(),
        reading,
        evidence: Evidence::Computed,
        table: Some(table),
        figures: Vec::new(),
        command: format!("contextweaver bench run --root {}", quoted(&own.shown())),
    };
    Ok(html::render("Your catalog", &[section], &[gate])?)
}

fn judged(own: &OwnWorkspace, fresh: &Fresh, base: Option<&Evaluations>) -> Result<Judged> {
    judge(&own.limits, &fresh.collection, &fresh.measured, base).context("gate.toml names no engine")
}

/// Measures, judges against the results of the last run, and writes the new ones. Where these may not be the next to be
/// judged against ([`Judged::may_be_recorded`]), the last ones stay. `accept` writes the new ones all the same. `html` is
/// where the report goes.
pub(super) fn run(
    own: &OwnWorkspace,
    html: Option<&Path>,
    accept: bool,
    format: Format,
    out: &mut dyn Write,
) -> Result<Outcome> {
    files(own).page(html).check()?;
    html.map_or(Ok(()), |path| writable("--html", path))?;
    let path = own.path(RESULTS_FILE);
    let base = path.exists().then(|| read_base(&path)).transpose().context(
        "the last results cannot be read to compare with; restore the file, or remove it to start without a comparison",
    )?;
    let fresh = fresh(own)?;
    let judged = judged(own, &fresh, base.as_ref())?;
    let holds = judged.failed.is_empty();
    let written = judged.may_be_recorded() || accept || base.is_none();
    let committed = if written { Committed::NotAsked } else { Committed::Kept };
    let page = html.map(|path| Ok::<_, anyhow::Error>((path, report(own, &fresh, &judged, committed)?))).transpose()?;
    if let Some((path, page)) = &page {
        replace_file(path, page.as_bytes())?;
    }
    // Last, so that a run that fails leaves what the next one is judged against.
    if written {
        replace_file(&path, fresh.measured.to_json()?.as_bytes())?;
    }
    match format {
        Format::Json => {
            print_json(out, "bench run", &Output { judged: &judged, written: Some(written), committed_differs: &[] })?;
        }
        Format::Text => {
            for one in &fresh.measured.evaluations {
                writeln!(out, "your catalog, engine {}\n{}", one.configuration, facts(&one.facts))?;
            }
            write!(out, "{}", words::plain(&judged, own, committed))?;
            match written {
                true => writeln!(out, "\nWrote {} — commit it", path.display())?,
                false => writeln!(out, "\nNot written: {}", path.display())?,
            }
            if let Some((path, _)) = &page {
                writeln!(out, "Wrote {}", path.display())?;
            }
        }
    }
    if !judged.is_comparable() && !accept {
        bail!("the last results share no query with this workspace; `--accept` replaces them with the new ones");
    }
    Ok(if holds { Outcome::Ok } else { Outcome::Drift })
}

/// Measures again and compares: with the committed results, and the gate with `base` where it is given. `html` is where the
/// report goes.
pub(super) fn check(
    own: &OwnWorkspace,
    base: Option<&Path>,
    html: Option<&Path>,
    format: CheckFormat,
    out: &mut dyn Write,
) -> Result<Outcome> {
    files(own).read("--base", base).page(html).check()?;
    html.map_or(Ok(()), |path| writable("--html", path))?;
    let base = base.map(read_base).transpose()?;
    let path = own.path(RESULTS_FILE);
    let text = fs::read_to_string(&path).with_context(|| {
        format!(
            "{}: run `contextweaver bench run --root {}` first, and commit it",
            path.display(),
            quoted(&own.shown())
        )
    })?;
    let earlier = parse_base(&path, text.as_bytes())?;
    let fresh = fresh(own)?;
    let differs = fresh.measured.differences(&text)?;
    let committed = if differs.is_empty() { Committed::Same } else { Committed::Differs };
    let judged = judged(own, &fresh, Some(base.as_ref().unwrap_or(&earlier)))?;
    if let Some(path) = html {
        replace_file(path, report(own, &fresh, &judged, committed)?.as_bytes())?;
    }
    match format {
        CheckFormat::Json => {
            print_json(out, "bench check", &Output { judged: &judged, written: None, committed_differs: &differs })?;
        }
        CheckFormat::Markdown => write!(out, "{}", words::markdown(&judged, own, committed))?,
        CheckFormat::Text => {
            write!(out, "{}", words::plain(&judged, own, committed))?;
            print_differences(&differs, out)?;
        }
    }
    if !judged.is_comparable() {
        match base {
            Some(_) => {
                bail!(
                    "the base shares no query with this workspace; record it again with this catalog and these queries"
                )
            }
            None => bail!(
                "{RESULTS_FILE} shares no query with this workspace; `contextweaver bench run --root {} --accept` replaces it",
                quoted(&own.shown())
            ),
        }
    }
    let holds = judged.failed.is_empty() && differs.is_empty();
    Ok(if holds { Outcome::Ok } else { Outcome::Drift })
}

fn print_differences(differs: &[Difference], out: &mut dyn Write) -> Result<()> {
    if differs.is_empty() {
        return Ok(());
    }
    let facts = if differs.len() == 1 { "fact" } else { "facts" };
    writeln!(out, "\n{RESULTS_FILE} differs from what is computed in {} {facts}:", differs.len())?;
    for difference in differs.iter().take(SHOWN) {
        let shown = |value: &Option<Value>| {
            words::shortened(&value.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string))
        };
        let (committed, computed) = (shown(&difference.committed), shown(&difference.computed));
        let place = [&difference.case, &difference.fact];
        let place: Vec<&str> = place.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let place = words::shortened(&place.join(" · "));
        writeln!(out, "  {place}: committed {committed}, computed {computed}")?;
    }
    if differs.len() > SHOWN {
        writeln!(out, "  … and {} more", differs.len() - SHOWN)?;
    }
    Ok(())
}

/// The grid of the router on the catalog of the workspace.
pub(super) fn sweep(
    own: &OwnWorkspace,
    vary: &[Vary],
    all: bool,
    format: Format,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let candidates = routing::grid_of(vary).context("--vary")?;
    let collection = answerable(own)?;
    let bar = progress(candidates.len());
    let swept = routing::Swept::of(&candidates, &[&collection], || bar.inc(1));
    bar.finish_and_clear();
    let routing::Swept { configurations: outcomes, at_the_edge: edges, .. } = swept?;
    if format == Format::Json {
        let found = serde_json::json!({ "in_sample": true, "configurations": outcomes, "at_the_edge": edges });
        print_json(out, "bench sweep", &found)?;
        return Ok(Outcome::Ok);
    }
    note(&format!("{} configurations on your catalog", outcomes.len()));
    write!(out, "{}", report::trials::routing_sweep(&outcomes, all))?;
    writeln!(
        out,
        "\nAll rows are measured on the queries that you would choose by. {}\n\
         Keep a part of your queries out of this workspace and measure your choice on them, with `bench eval --config`.",
        corrected(outcomes.len())
    )?;
    print_edges(&edges, out)
}
