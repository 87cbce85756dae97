//! `bench feedback`: collections played as sites that learn.

use std::io::Write;

use anyhow::Result;
use clap::Args;

use super::Place;
use super::played::Played;
use crate::cli::{Format, Outcome, print_json};
use crate::eval::feedback::FeedbackFacts;
use crate::report;

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
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &FeedbackArgs, out: &mut dyn Write) -> Result<Outcome> {
    let workspace = args.place.workspace()?;
    let matrix = workspace.matrix()?;
    let collections = workspace.collections(&matrix.cases)?;
    let results = Played::<FeedbackFacts>::of(&workspace, &matrix, &collections)?.compute();
    match args.format {
        Format::Json => print_json(out, &results)?,
        Format::Text => write!(out, "{}", report::terminal::feedback(&results))?,
    }
    Ok(Outcome::Ok)
}
