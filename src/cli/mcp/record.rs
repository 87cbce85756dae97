//! `mcp record`: a session between a client and a server, written down.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{block_on, refuse_existing};
use crate::cli::{Outcome, counted, note};
use contextweaver_gateway::{Recorder, Times, record};

/// Record the messages between a client and a server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Put it before a server in a client's configuration: standard input and output are the session, and the server runs
behind them. A message is written to the file as soon as it is passed on. The file holds whatever the session holds;
only its owner may read it.

Examples:
  contextweaver mcp record --out session.ndjson -- uvx mcp-server-git --repository .
  contextweaver mcp record --out session.ndjson --without-times -- node server.js")]
pub(in crate::cli) struct Args {
    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Leave out times, so that equal sessions give equal files
    #[arg(long)]
    without_times: bool,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// The command that starts the server, with its arguments
    #[arg(last = true, value_name = "CMD", required = true)]
    command: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    refuse_existing(&args.out, args.force)?;
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let place = || args.out.display().to_string();
    let file = options.open(&args.out).with_context(place)?;
    let times = if args.without_times { Times::LeftOut } else { Times::Kept };
    let report = block_on(async { record(&args.command, Recorder::new(file, times)).await.with_context(place) })?;
    let (messages, lines) =
        (counted(report.messages as usize, "message"), counted(report.passed_over as usize, "line"));
    note(&format!("{}: {messages}, {lines} skipped", place()));
    Ok(Outcome::Ok)
}
