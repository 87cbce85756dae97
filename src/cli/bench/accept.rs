//! `bench accept`: the digest and the origin of a recorded table, in the list of them.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::Place;
use crate::cli::{Format, Outcome, note, print_json};
use contextweaver_bench::eval::{machine, tables};

pub(super) const EXAMPLE: &str = "\
A recorded table is never computed again. `bench check` compares its bytes with the digest that this command notes in
scorecard/timings/timings.json, and names it if they differ. Programs that record tables there note it themselves.

Example:
  contextweaver bench accept scorecard/timings/rivals.csv --machine desk";

/// Accept a recorded table as it is, by noting its digest
#[derive(Debug, Args)]
pub(in crate::cli) struct AcceptArgs {
    #[command(flatten)]
    place: Place,
    /// A table in scorecard/timings/
    table: PathBuf,
    /// The machine it was recorded on, if its rows do not name it [default: this one]
    #[arg(long, value_name = "NAME", value_parser = machine::parse_name)]
    machine: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &AcceptArgs, out: &mut dyn Write) -> Result<Outcome> {
    let shown = || args.table.display().to_string();
    let name = args.table.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{}: not the name of a table", shown()))?;
    let workspace = args.place.workspace()?;
    let own = workspace.path(tables::FOLDER).join(name);
    if args.table.canonicalize().with_context(shown)?
        != own.canonicalize().with_context(|| own.display().to_string())?
    {
        bail!("{}: recorded tables are in {}; name the file there", shown(), workspace.path(tables::FOLDER).display());
    }
    let origin = tables::accept(&workspace, name, args.machine.as_deref())?;
    match args.format {
        Format::Json => print_json(out, "bench accept", &origin)?,
        Format::Text => writeln!(out, "{name}: {}", origin.sentence())?,
    }
    note("`contextweaver bench render` shows it");
    Ok(Outcome::Ok)
}
