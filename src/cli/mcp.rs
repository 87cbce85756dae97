//! `mcp`: the gateway and what belongs to it.

mod serve;

use std::io::Write;

use anyhow::Result;
use clap::Subcommand;

use super::Outcome;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve the tools of any number of MCP servers to one client or many
    Serve(serve::Args),
}

pub(super) fn run(command: &Command, out: &mut dyn Write) -> Result<Outcome> {
    match command {
        Command::Serve(args) => serve::run(args, out),
    }
}
