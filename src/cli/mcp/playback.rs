//! `mcp playback`: a recording served without its server.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::block_on;
use crate::cli::Outcome;
use contextweaver_core::files::ReadError;
use contextweaver_gateway::{Playback, serve_playback};

/// Serve a recording without its server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A request gets the answer that the recording has for the same method and parameters, at once; what is not in the recording
is refused. In a gateway's configuration it takes the place of the server:
  upstreams:
    git: {command: contextweaver, args: [mcp, playback, session.ndjson]}

Example:
  contextweaver mcp playback session.ndjson")]
pub(in crate::cli) struct Args {
    /// A file that `mcp record` wrote
    #[arg(value_name = "FILE")]
    recording: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let file = File::open(&args.recording).map_err(ReadError::at(&args.recording))?;
    let playback = Playback::load(BufReader::new(file)).with_context(|| args.recording.display().to_string())?;
    block_on(async { Ok(serve_playback(playback).await?) })?;
    Ok(Outcome::Ok)
}
