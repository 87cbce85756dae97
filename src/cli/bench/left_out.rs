//! `bench left-out`: the default engine with tables that have seen nothing of the collection.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use super::Place;
use super::played::Played;
use crate::cli::{Format, Outcome, note, print_json};
use crate::eval::left_out::{LeftOutFacts, engine_for};
use crate::eval::matrix::Matrix;
use crate::eval::workspace::{Collections, Workspace};
use crate::report;

pub(super) const EXAMPLE: &str = "\
The semantic table in the binary was trained on pairs of some public collections. Tables that were not are made once,
one for each source; then the results are written, and `bench render` shows them.

Example:
  for source in bfcl_synth metatool nestful sealtools toolalpaca; do
    scripts/train-table DATA tables/$source --leave-out $source
  done
  contextweaver bench left-out --tables tables";

/// Measure the default with tables that have seen nothing of the collection, and write the results
#[derive(Debug, Args)]
pub(in crate::cli) struct LeftOutArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    tables: Tables,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Where the tables with a source left out are
#[derive(Debug, Args)]
pub(super) struct Tables {
    /// The folder of semantic tables without a source, one folder for each [default: their rows stay as committed]
    #[arg(long, value_name = "DIR")]
    tables: Option<PathBuf>,
}

impl Tables {
    /// Every collection with the engine that has seen nothing of it.
    pub(super) fn played(
        &self,
        workspace: &Workspace,
        matrix: &Matrix,
        collections: &Collections,
    ) -> Result<Played<LeftOutFacts>> {
        let tables: Option<&Path> = self.tables.as_deref();
        Played::by(workspace, matrix, collections, |default, name| engine_for(default, name, tables))
    }
}

pub(super) fn run(args: &LeftOutArgs, out: &mut dyn Write) -> Result<Outcome> {
    let workspace = args.place.workspace()?;
    let matrix = workspace.matrix()?;
    let collections = workspace.collections(&matrix.cases)?;
    let played = args.tables.played(&workspace, &matrix, &collections)?;
    let results = played.compute();
    workspace.write_chapter(&results)?;
    let absent = played.absent();
    if !absent.is_empty() {
        note(&format!("not measured, their collections or tables are not here: {}", absent.join(", ")));
    }
    match args.format {
        Format::Json => print_json(out, &results)?,
        Format::Text => write!(out, "{}", report::terminal::left_out(&results))?,
    }
    Ok(Outcome::Ok)
}
