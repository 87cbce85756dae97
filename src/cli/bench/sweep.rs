//! `bench sweep`: a grid of configurations, and which of them are worth having.

use std::io::Write;

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use rayon::prelude::*;
use serde::Serialize;

use super::Place;
use super::run::progress;
use crate::cli::{Format, Outcome, note, print_json};
use crate::context::summary::StructureSummarizer;
use crate::eval::context::sweep;
use crate::eval::engine::RouterEngine;
use crate::eval::record::{Origin, Paired};
use crate::eval::run::{Evaluation, PromptTokens, against, evaluate};
use crate::report;
use crate::routing::{BeamConfig, Field, FieldWeights, Navigation, RoutingConfig, Scorer};

pub(super) const EXAMPLE: &str = "\
Every configuration is compared with the default, case by case: `better` and `worse` mean that the interval of the paired
difference excludes zero. Of many comparisons some will by chance.

Examples:
  contextweaver bench sweep
  contextweaver bench sweep --what routing --all --format json";

/// What is varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum What {
    /// The context engine, on the context scenarios.
    #[default]
    Context,
    /// The router, on the embedded collections.
    Routing,
}

/// Try a grid of configurations and show the ones that nothing beats
#[derive(Debug, Args)]
pub(in crate::cli) struct SweepArgs {
    #[command(flatten)]
    place: Place,
    /// What is varied
    #[arg(long, value_enum, default_value_t)]
    what: What,
    /// Show every configuration, not only the default and the fronts
    #[arg(long)]
    all: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &SweepArgs, out: &mut dyn Write) -> Result<Outcome> {
    match args.what {
        What::Context => context(args, out),
        What::Routing => routing(args, out),
    }
}

fn context(args: &SweepArgs, out: &mut dyn Write) -> Result<Outcome> {
    let workspace = args.place.workspace()?;
    let all = workspace.scenarios()?;
    let mut scenarios = Vec::new();
    for scenario in all.iter().filter(|scenario| scenario.is_present()) {
        let (_, conversation) = scenario.log()?;
        scenarios.push((scenario, conversation));
    }
    let candidates = sweep::grid();
    let bar = progress(candidates.len());
    let outcomes = sweep::sweep(&candidates, &scenarios, &StructureSummarizer, || bar.inc(1));
    bar.finish_and_clear();
    let outcomes = outcomes.map_err(|message| anyhow!(message))?;
    let shown: Vec<&sweep::Outcome> = outcomes
        .iter()
        .enumerate()
        .filter(|(at, one)| args.all || *at == 0 || one.on_front_of_kept || one.on_front_of_fidelity)
        .map(|(_, one)| one)
        .collect();
    if args.format == Format::Json {
        print_json(out, &shown)?;
        return Ok(Outcome::Ok);
    }
    note(&format!("{} configurations on {} scenarios", outcomes.len(), scenarios.len()));
    write!(out, "{}", report::terminal::sweep(&shown))?;
    Ok(Outcome::Ok)
}

/// One configuration of the router.
#[derive(Serialize)]
struct Routed {
    name: String,
    tokens: f64,
    recall_at_5: f64,
    on_front: bool,
    against_default: Paired,
}

fn routing(args: &SweepArgs, out: &mut dyn Write) -> Result<Outcome> {
    let workspace = args.place.workspace()?;
    let matrix = workspace.matrix()?;
    let cases: Vec<_> =
        matrix.cases.iter().filter(|case| case.origin == Origin::Embedded && case.growth.is_none()).cloned().collect();
    let collections = workspace.collections(&cases)?;
    let candidates = routing_grid();
    let bar = progress(candidates.len());
    let run = |(name, config): &(String, RoutingConfig)| {
        let engine = RouterEngine::new(name, config.clone());
        let evaluated = cases.iter().filter_map(|case| collections.get(&case.collection)).map(|collection| {
            evaluate(collection, &engine, PromptTokens::Count).map_err(|error| anyhow!("{name}: {error}"))
        });
        let evaluated = evaluated.collect::<Result<Vec<Evaluation>>>();
        bar.inc(1);
        evaluated
    };
    let evaluations = candidates.par_iter().map(run).collect::<Result<Vec<_>>>()?;
    bar.finish_and_clear();
    let recalls = |all: &[Evaluation]| -> Vec<f64> { all.iter().flat_map(|one| one.recall_at_5.clone()).collect() };
    let Some(first) = evaluations.first().map(|all| recalls(all)) else { return Ok(Outcome::Ok) };
    let mut rows: Vec<Routed> = Vec::new();
    for ((name, _), all) in candidates.iter().zip(&evaluations) {
        let own = recalls(all);
        let asked = own.len().max(1) as f64;
        let of_collection =
            |one: &Evaluation| Some(one.facts.tokens.as_ref()?.cards_mean * one.recall_at_5.len() as f64);
        let tokens = all.iter().filter_map(of_collection).sum::<f64>() / asked;
        let recall_at_5 = own.iter().sum::<f64>() / asked;
        let against_default = against("default", &first, &own);
        rows.push(Routed { name: name.clone(), tokens, recall_at_5, on_front: false, against_default });
    }
    let points: Vec<(f64, f64)> = rows.iter().map(|row| (row.tokens, row.recall_at_5)).collect();
    for row in &mut rows {
        let beats = |&(tokens, recall): &(f64, f64)| {
            let no_worse = tokens <= row.tokens && recall >= row.recall_at_5;
            no_worse && (tokens < row.tokens || recall > row.recall_at_5)
        };
        row.on_front = !points.iter().any(beats);
    }
    rows.retain(|row| args.all || row.on_front || row.name == "default");
    if args.format == Format::Json {
        print_json(out, &rows)?;
        return Ok(Outcome::Ok);
    }
    writeln!(out, "{:<28} {:>8} {:>9}  front  difference from the default", "configuration", "tokens", "recall@5")?;
    for row in &rows {
        let Routed { name, tokens, recall_at_5, on_front, against_default } = row;
        let front = if *on_front { "yes" } else { "" };
        let difference = report::terminal::paired(against_default);
        writeln!(out, "{name:<28} {tokens:>8.0} {recall_at_5:>9.3}  {front:<5}  {difference}")?;
    }
    Ok(Outcome::Ok)
}

/// The default first, then each of its choices varied: saturation with length normalisation, what the fields weigh, how
/// tools are scored and reached, how many are shown.
fn routing_grid() -> Vec<(String, RoutingConfig)> {
    let default = RoutingConfig::default();
    let mut all = vec![("default".to_owned(), default.clone())];
    for k1 in [0.6, 0.9, 1.1, 1.5, 2.0] {
        for share in [0.0, 0.5, 1.0, 1.3] {
            let mut config = RoutingConfig { k1, ..default.clone() };
            every_field(&mut config.fields).into_iter().for_each(|(_, field)| field.b = (field.b * share).min(1.0));
            all.push((format!("k1 {k1:.1}, b x {share:.1}"), config));
        }
    }
    for position in 0..every_field(&mut default.clone().fields).len() {
        for factor in [0.0, 0.5, 2.0] {
            let mut config = default.clone();
            let varied = every_field(&mut config.fields).into_iter().nth(position).map(|(name, field)| {
                field.weight *= factor;
                format!("{name} x {factor:.1}")
            });
            all.extend(varied.map(|name| (name, config)));
        }
    }
    for b in [0.25, 0.5, 0.75] {
        all.push((format!("flat bm25, b {b:.2}"), RoutingConfig { scorer: Scorer::Bm25, b, ..default.clone() }));
    }
    all.push(("tf-idf".to_owned(), RoutingConfig { scorer: Scorer::TfIdf, ..default.clone() }));
    for width in [2, 8] {
        let beam = Navigation::Beam(BeamConfig { width, ..BeamConfig::default() });
        all.push((format!("beam of {width}"), RoutingConfig { navigation: beam, ..default.clone() }));
    }
    for top_k in [5, 20] {
        all.push((format!("{top_k} cards"), RoutingConfig { top_k, ..default.clone() }));
    }
    all.retain(|(name, config)| name == "default" || *config != default);
    all
}

fn every_field(fields: &mut FieldWeights) -> [(&'static str, &mut Field); 5] {
    let FieldWeights { name, description, parameters, tags, server } = fields;
    [("name", name), ("description", description), ("parameters", parameters), ("tags", tags), ("server", server)]
}
