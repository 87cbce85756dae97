//! `mcp remove`: one server fewer in a configuration.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::add::written;
use super::chain;
use super::import::refuse_clients_file;
use crate::cli::Outcome;
use crate::cli::terminal::line;

/// Remove a server from a configuration
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Comments and everything else in the file stay where that is possible; otherwise it is written anew without comments,
beside a copy of what it was.

Examples:
  contextweaver mcp remove git
  contextweaver mcp remove git --config gateway.yaml")]
pub(in crate::cli) struct Args {
    /// The name of the server in the configuration
    name: String,
    /// The configuration [default: gateway.yaml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let path = chain::config(args.config.as_deref())?;
    let home = std::env::home_dir();
    refuse_clients_file(&path, std::iter::empty(), home.as_deref(), &std::env::current_dir()?, "--config")?;
    let present = chain::present(&path, &[])?;
    let name = &*args.name;
    if !present.has(name) {
        match present.names().as_slice() {
            [] => bail!("{}: there is no server `{name}`; it lists none", path.display()),
            names => bail!("{}: there is no server `{name}`; it has {}", path.display(), names.join(", ")),
        }
    }
    let without = present
        .without(name, &path)
        .context("nothing was written, since the result would not be a valid configuration")?;
    written(&path, without.text, without.is_rewritten)?;
    line(out, format_args!("{}: removed `{name}`", path.display()))?;
    Ok(Outcome::Ok)
}
