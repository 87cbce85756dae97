//! `mcp`: the gateway, and the commands that prepare, check and watch it.

mod add;
mod approvals;
mod audit;
mod call;
mod capture;
mod chain;
mod doctor;
mod health;
pub(super) mod import;
mod incident_pack;
mod memory_serve;
mod pins;
mod playback;
mod preview;
mod record;
mod reload;
mod remove;
mod rows;
mod running;
mod serve;
mod stats;
mod watch;

use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};
use clap::Subcommand;
use tracing_appender::non_blocking::NonBlockingBuilder;

use super::Outcome;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve the tools of any number of MCP servers to one client or many
    Serve(serve::Args),
    /// Show what a configuration or a catalog would serve, and the tokens that this saves
    Preview(preview::Args),
    /// Check a configuration and the servers behind it, and say what to fix
    Doctor(doctor::Args),
    /// List or call tools through the gateway, as a client does
    Call(call::Args),
    /// Import the servers of an MCP client, or print the entry that puts the gateway in front of one
    Import(import::Args),
    /// Add a server to a configuration, which is made if there is none
    Add(add::Args),
    /// Remove a server from a configuration
    Remove(remove::Args),
    /// Save the definitions that a server lists as a catalog file
    Capture(capture::Args),
    /// Serve facts and episodes as the tools of an MCP server
    MemoryServe(memory_serve::Args),
    /// Record the messages between a client and a server
    Record(record::Args),
    /// Serve a recording without its server
    Playback(playback::Args),
    /// Manage the pinned definitions of tools: list, approve, reset
    Pins(pins::Args),
    /// Answer calls that wait for an approval at the console: list, approve, decline
    Approvals(approvals::Args),
    /// Tell a running gateway to read its configuration again
    Reload(reload::Args),
    /// Ask a running gateway whether it is ready, and how each server is doing
    #[command(visible_alias = "status")]
    Health(health::Args),
    /// Check the audit log of a gateway, and show what it says
    Audit(audit::Args),
    /// Show what a gateway did: tokens saved, success, durations, errors
    #[command(visible_alias = "events")]
    Stats(stats::Args),
    /// Collect what others need to help you, without secrets, in one archive
    IncidentPack(incident_pack::Args),
}

pub(super) fn run(command: &Command, out: &mut dyn Write) -> Result<Outcome> {
    match command {
        Command::Serve(args) => serve::run(args, out),
        Command::Preview(args) => preview::run(args, out),
        Command::Doctor(args) => doctor::run(args, out),
        Command::Call(args) => call::run(args, out),
        Command::Import(args) => import::run(args, out),
        Command::Add(args) => add::run(args, out),
        Command::Remove(args) => remove::run(args, out),
        Command::Capture(args) => capture::run(args, out),
        Command::MemoryServe(args) => memory_serve::run(args),
        Command::Record(args) => record::run(args),
        Command::Playback(args) => playback::run(args),
        Command::Pins(args) => pins::run(args, out),
        Command::Approvals(args) => approvals::run(args, out),
        Command::Reload(args) => reload::run(args, out),
        Command::Health(args) => health::run(args, out),
        Command::Audit(args) => audit::run(args, out),
        Command::Stats(args) => stats::run(args, out),
        Command::IncidentPack(args) => incident_pack::run(args, out),
    }
}

/// Lines of the log that wait for whoever reads standard error, at most.
const LOG_LINES: usize = 1_000;

/// Runs `work` to its end on one thread, with the log on standard error.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    // One client: a single thread wakes fastest.
    block_on_runtime(&mut tokio::runtime::Builder::new_current_thread(), work)
}

/// As [`block_on`], on the runtime that `builder` makes.
pub(super) fn block_on_runtime<T>(
    builder: &mut tokio::runtime::Builder,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let filter = tracing_subscriber::EnvFilter::builder().with_default_directive(tracing::Level::WARN.into());
    // A thread of its own writes the log: nobody may read standard error, and no request waits for that. Lines over so many
    // are lost.
    let log = NonBlockingBuilder::default().buffered_lines_limit(LOG_LINES);
    let (log, _written_at_the_end) = log.finish(std::io::stderr());
    // One that is set already stays.
    let _ =
        tracing_subscriber::fmt().with_env_filter(filter.from_env_lossy()).with_writer(log).with_ansi(false).try_init();
    let runtime = builder.enable_all().build()?;
    let outcome = runtime.block_on(work);
    // A thread that reads a standard input which does not end must not hold the process.
    runtime.shutdown_background();
    outcome
}

/// Refuses to overwrite an existing file unless `force` is set.
pub(super) fn refuse_existing(path: &Path, force: bool) -> Result<()> {
    if !force && path.exists() {
        bail!("{} already exists; name another file, or overwrite it with --force", path.display());
    }
    Ok(())
}
