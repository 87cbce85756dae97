//! `mcp reload`: tells a running gateway to read its configuration again.

use std::io::Write;
use std::path::PathBuf;

#[cfg(unix)]
use anyhow::Context;
use anyhow::{Result, bail};

use crate::cli::Outcome;
use contextweaver_gateway::GatewayConfig;

/// Tell a running gateway to read its configuration again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The gateway checks the whole file first and goes on as before if something is wrong; it reports the outcome on its
standard error. Connections stay open. `kill -HUP PID` does the same.

Examples:
  contextweaver mcp reload --pid 4711
  contextweaver mcp reload --pid 4711 --config gateway.yaml")]
pub(in crate::cli) struct Args {
    /// The process of the gateway
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,
    /// Its configuration, to check it and its catalog before signalling the process
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if let Some(path) = &args.config {
        let config = GatewayConfig::load(path)?;
        if let Some(catalog) = &config.catalog {
            catalog.check()?;
        }
    }
    tell(args.pid)?;
    writeln!(out, "signalled {}; it reports the outcome on its standard error", args.pid)?;
    Ok(Outcome::Ok)
}

/// Sends the signal at which a gateway reads its configuration again.
#[cfg(unix)]
fn tell(process: i32) -> Result<()> {
    use rustix::process::{Pid, Signal, kill_process};

    let pid = Pid::from_raw(process).context("--pid: must be at least 1")?;
    // The signal ends programs that do not expect it: another one must not get it for a mistyped number.
    let theirs = std::fs::read_link(format!("/proc/{process}/exe"));
    if let (Ok(theirs), Ok(own)) = (theirs, std::env::current_exe())
        && theirs.file_name() != own.file_name()
        && !theirs.to_string_lossy().ends_with(" (deleted)")
    {
        bail!("--pid: the process {process} is {}, not a gateway", theirs.display());
    }
    // Other commands of this program do not expect it either.
    let command = std::fs::read(format!("/proc/{process}/cmdline"));
    let serves = |line: &[u8]| {
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.windows(2).any(|pair| pair == [b"mcp".as_slice(), b"serve"])
    };
    if command.is_ok_and(|line| !serves(&line)) {
        bail!("--pid: the process {process} is no gateway: it does not run `mcp serve`");
    }
    kill_process(pid, Signal::HUP).with_context(|| format!("the process {process} cannot be signalled"))
}

/// There is no signal to send.
#[cfg(windows)]
fn tell(process: i32) -> Result<()> {
    bail!("--pid: a process cannot be signalled on Windows; end {process} and start it again")
}
