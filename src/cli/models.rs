//! `models`: the sentence encoder that `route --model` uses, and the vectors that are kept of tools.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;

use super::{Format, Outcome, note, print_json};
use contextweaver_routing::Router;
use contextweaver_routing::semantic::model::place;

/// Show the sentence encoder that `route --model` uses
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  contextweaver models show")]
pub(super) enum Command {
    /// Show what the encoder is called, and where the vectors of tools are kept
    #[command(after_help = "Example:\n  contextweaver models show --format json")]
    Show(ShowArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(command: &Command, out: &mut dyn Write) -> Result<Outcome> {
    match command {
        Command::Show(args) => show(args, out),
    }
}

/// `router` with what the encoder adds.
pub(super) fn with_model(router: Router) -> Result<Router> {
    let (router, failed) = place::attach(router, place::encoder()?);
    if let Some(error) = failed {
        note(&format!("the vectors of the tools have to be computed again next time: {error}"));
    }
    Ok(router)
}

#[derive(Serialize)]
struct Shown {
    /// A name that differs for every encoder that gives other vectors.
    encoder: String,
    /// Where the vectors are; none where no folder for a user's data is known.
    folder: Option<PathBuf>,
    /// Tools whose vectors are kept.
    vectors: usize,
}

fn show(args: &ShowArgs, out: &mut dyn Write) -> Result<Outcome> {
    let shown = Shown { encoder: place::encoder()?.name(), folder: place::folder(), vectors: place::cache().len() };
    match args.format {
        Format::Json => print_json(out, "models show", &shown)?,
        Format::Text => {
            writeln!(out, "{}", shown.encoder)?;
            match &shown.folder {
                Some(folder) => writeln!(out, "vectors of {} tools are kept in {}", shown.vectors, folder.display())?,
                None => writeln!(out, "vectors are not kept: set {} to a folder", place::FOLDER_VARIABLE)?,
            }
        }
    }
    Ok(Outcome::Ok)
}
