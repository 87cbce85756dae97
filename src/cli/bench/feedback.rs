//! `bench feedback`: collections played as sites that learn.

use std::io::Write;

use anyhow::{Context, Result};
use clap::Args;

use super::Place;
use crate::cli::{Format, Outcome, print_json};
use contextweaver_bench::chapters;
use contextweaver_bench::eval::workspace::Scope;
use contextweaver_bench::results::Day;
use contextweaver_bench::scorecard::{self, Measured};

pub(super) const EXAMPLE: &str = "\
The collections are played as sites that learn: the default engine is taught with observations of some queries and asked
others. `bench run` does the same and writes the results.

Example:
  contextweaver bench feedback";

/// Measure what learning from feedback gains, and what wrong feedback costs
#[derive(Debug, Args)]
pub(in crate::cli) struct FeedbackArgs {
    #[command(flatten)]
    place: Place,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &FeedbackArgs, out: &mut dyn Write) -> Result<Outcome> {
    let bench = args.place.bench(Scope::Usual)?;
    let chapter = chapters::find("feedback").context("no chapter on feedback")?;
    let recordings = Measured::chapter(chapter, &bench, &|_| ())?.recordings(&bench.workspace, &Day::now())?;
    match args.format {
        Format::Json => {
            print_json(out, "bench feedback", &recordings.iter().map(|results| &results.records).collect::<Vec<_>>())?;
        }
        Format::Text => write!(out, "{}", scorecard::terminal(&recordings)?)?,
    }
    Ok(Outcome::Ok)
}
