//! `mcp serve`: the gateway on standard streams.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::cli::Outcome;
use crate::gateway::{Gateway, GatewayConfig, Mode, serve_stdio};

/// Serve the tools of any number of MCP servers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Standard output carries the protocol alone; what there is to say goes to standard error (RUST_LOG=debug for more).

Examples:
  contextweaver mcp serve --config gateway.yaml
  contextweaver mcp serve --config gateway.yaml --dry-run
  contextweaver mcp serve --config gateway.yaml --mode proxy")]
pub(in crate::cli) struct Args {
    /// The configuration, YAML or JSON
    #[arg(long, value_name = "FILE", required_unless_present = "catalog")]
    config: Option<PathBuf>,
    /// Tools from a file, to be browsed and not called
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    catalog: Option<PathBuf>,
    /// What clients are shown, instead of what the configuration says
    #[arg(long, value_enum)]
    mode: Option<ModeArg>,
    /// Start the upstreams, say what would be served, and end
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ModeArg {
    /// Three meta-tools
    Gateway,
    /// Every tool, without its schema
    Proxy,
    /// Every tool as its server defines it
    Passthrough,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let mut config = match &args.config {
        Some(path) => GatewayConfig::load(path)?,
        None => GatewayConfig { catalog: args.catalog.clone(), ..GatewayConfig::default() },
    };
    if let Some(mode) = args.mode {
        config.mode = match mode {
            ModeArg::Gateway => Mode::Gateway,
            ModeArg::Proxy => Mode::Proxy,
            ModeArg::Passthrough => Mode::Passthrough,
        };
    }
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::builder()
                .with_default_directive(tracing::Level::WARN.into())
                .from_env_lossy(),
        )
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    // One client: a single thread wakes fastest.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let gateway = Gateway::start(config).await.context("the gateway did not start")?;
        if args.dry_run {
            report(&gateway, out)?;
        } else {
            serve_stdio(Arc::clone(&gateway)).await?;
        }
        gateway.close().await;
        Ok(Outcome::Ok)
    });
    // A thread that reads a standard input which does not end must not hold the process.
    runtime.shutdown_background();
    outcome
}

fn report(gateway: &Gateway, out: &mut dyn Write) -> Result<()> {
    let counts = gateway.snapshot().counts();
    let mode = serde_json::to_value(gateway.config().mode)?;
    writeln!(
        out,
        "mode {}: {} tools, {} resources, {} prompts; {} definitions left out",
        mode.as_str().unwrap_or_default(),
        counts.tools,
        counts.resources,
        counts.prompts,
        counts.left_out
    )?;
    for upstream in gateway.reports() {
        let state = match (&upstream.fault, &upstream.version) {
            (Some(fault), _) => fault.clone(),
            (None, version) => format!("{} tools, speaks {}", upstream.tools, version.as_deref().unwrap_or("-")),
        };
        writeln!(out, "  {}: {state}", upstream.name)?;
    }
    Ok(())
}
