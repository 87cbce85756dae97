//! `mcp serve`: the gateway on standard streams or over HTTP.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use super::block_on_runtime;
use super::chain;
use super::terminal::line;
use crate::cli::http::{HttpArgs, signalled};
use crate::cli::{Outcome, note};
use contextweaver_gateway::{Gateway, GatewayConfig, HttpServer, Mode, Target, grouped, serve_stdio};

/// Serve the tools of any number of MCP servers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Standard output carries the protocol alone; what there is to say goes to standard error (RUST_LOG=debug for more).

Examples:
  contextweaver mcp serve
  contextweaver mcp serve --config gateway.yaml --dry-run
  contextweaver mcp serve --config gateway.yaml --mode proxy
  contextweaver mcp serve --config gateway.yaml --transport http --listen 127.0.0.1:8080
  contextweaver mcp serve --config gateway.yaml --transport http --listen 0.0.0.0:8080 --token-file token \\
    --allowed-host gateway.example")]
pub(in crate::cli) struct Args {
    /// The configuration, YAML or JSON [default: gateway.yaml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A catalog file: its tools can be browsed and not called
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    catalog: Option<PathBuf>,
    /// The mode, instead of the one in the configuration
    #[arg(long, value_enum)]
    mode: Option<ModeArg>,
    /// The transport for clients
    #[arg(long, value_enum, default_value_t = Transport::Stdio)]
    transport: Transport,
    #[command(flatten)]
    http: HttpArgs,
    /// Start the upstreams, show what would be served, and exit; nothing is written
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// One client, on standard input and output
    Stdio,
    /// Many clients, over streamable HTTP
    Http,
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
    // What is guarded in one mode may be refused in another: the check knows the mode that is served.
    let mode = args.mode.map(|mode| match mode {
        ModeArg::Gateway => Mode::Gateway,
        ModeArg::Proxy => Mode::Proxy,
        ModeArg::Passthrough => Mode::Passthrough,
    });
    let file = match &args.catalog {
        Some(_) => None,
        None => Some(chain::config(args.config.as_deref())?),
    };
    let mut config = match &file {
        Some(path) => GatewayConfig::load_for(path, mode)?,
        None => {
            let catalog = args.catalog.clone();
            GatewayConfig { catalog, mode: mode.unwrap_or_default(), ..GatewayConfig::default() }
        }
    };
    if let (Transport::Stdio, Some(flag)) = (args.transport, args.http.given()) {
        bail!("`{flag}` goes with `--transport http`");
    }
    args.http.apply(&mut config.http)?;
    if args.dry_run {
        config = config.without_a_trace();
    }
    let mut builder = match args.transport {
        Transport::Stdio => tokio::runtime::Builder::new_current_thread(),
        Transport::Http => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(workers(&config));
            builder
        }
    };
    block_on_runtime(&mut builder, async {
        let gateway = Gateway::start(config).await.context("the gateway did not start")?;
        if args.dry_run {
            report(&gateway, out)?;
            if let Some(file) = &file {
                let flag = chain::flag(file);
                note(&format!(
                    "next, for the entry of a client: contextweaver mcp import --show-client claude-desktop{flag}"
                ));
            }
        } else {
            if std::io::stderr().is_terminal() {
                banner(&gateway, args.transport, file.as_deref(), &mut std::io::stderr().lock())?;
            }
            match args.transport {
                Transport::Stdio => serve_stdio(Arc::clone(&gateway)).await?,
                Transport::Http => serve_http(&gateway).await?,
            }
            if let Some(savings) = gateway.savings() {
                // Nobody may listen any more.
                let _ = line(
                    &mut std::io::stderr(),
                    format_args!("contextweaver: {}", savings.line(gateway.config().price.as_ref())),
                );
            }
        }
        gateway.close().await;
        Ok(Outcome::Ok)
    })
}

/// Threads that serve clients. A call to a child process is little work and many wake-ups, of which each further thread
/// adds some, and the children take their share of the processors; a call over HTTP is twice the work.
fn workers(config: &GatewayConfig) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let is_local = |target: &Target| matches!(target, Target::Stdio { .. });
    if config.upstreams.values().all(|upstream| is_local(&upstream.target)) {
        processors.div_ceil(2)
    } else {
        processors
    }
}

async fn serve_http(gateway: &Arc<Gateway>) -> Result<()> {
    let server = HttpServer::bind(Arc::clone(gateway), gateway.config().http.clone()).await?;
    let ended = signalled()?;
    // Who started it with port 0 learns here where it is, and that signals end it orderly from now on.
    writeln!(std::io::stderr(), "listening at http://{}/mcp", server.address()?)?;
    server.serve(ended).await;
    Ok(())
}

/// What a person at a terminal sees, who would otherwise think that nothing happens: what is served, what it spares, and
/// how to go on.
fn banner(gateway: &Gateway, transport: Transport, file: Option<&Path>, out: &mut dyn Write) -> Result<()> {
    report(gateway, out)?;
    if let Some((definitions, surface)) = gateway.definition_tokens() {
        let spared = definitions.saturating_sub(surface) as f64 * 100.0 / definitions.max(1) as f64;
        writeln!(
            out,
            "definitions: {} tokens instead of {}{}",
            grouped(surface),
            grouped(definitions),
            if spared > 0.0 { format!(" ({spared:.0} % less)") } else { String::new() }
        )?;
    }
    match (transport, file) {
        (Transport::Stdio, Some(file)) => {
            line(out, "waits for a client on standard input; Ctrl-D or Ctrl-C ends it. Clients start it themselves:")?;
            let flag = chain::flag(file);
            line(out, format_args!("  contextweaver mcp import --show-client claude-desktop{flag}"))?;
        }
        (Transport::Stdio, None) => line(out, "waits for a client on standard input; Ctrl-D or Ctrl-C ends it")?,
        (Transport::Http, _) => {
            let has_token = !gateway.config().http.tokens.is_empty();
            let header = if has_token { ", with the header `Authorization: Bearer TOKEN`" } else { "" };
            line(out, format_args!("clients connect to the address below{header}; Ctrl-C ends it"))?;
        }
    }
    Ok(())
}

fn report(gateway: &Gateway, out: &mut dyn Write) -> Result<()> {
    let counts = gateway.catalog().counts();
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
        line(out, format_args!("  {}: {state}", upstream.name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_banner_says_what_is_served_and_how_to_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tools.json");
        let tool = |number: usize| format!(r#"{{"name":"t{number}","description":"{}"}}"#, "Sends a mail. ".repeat(40));
        let tools: Vec<String> = (0..20).map(tool).collect();
        std::fs::write(&path, format!(r#"{{"server":"mail","tools":[{}]}}"#, tools.join(","))).unwrap();
        let shown = |flags: &[&str]| {
            let args = Line::parse_from(["serve", "--config", "gateway.yaml"].iter().chain(flags)).args;
            let config = GatewayConfig { catalog: Some(path.clone()), ..GatewayConfig::default() };
            let mut out = Vec::new();
            super::super::block_on(async {
                let gateway = Gateway::start(config).await?;
                banner(&gateway, args.transport, args.config.as_deref(), &mut out)
            })
            .unwrap();
            String::from_utf8(out).unwrap()
        };
        insta::assert_snapshot!(shown(&[]), @r"
        mode gateway: 20 tools, 0 resources, 0 prompts; 0 definitions left out
        definitions: 795 tokens instead of 3,540 (78 % less)
        waits for a client on standard input; Ctrl-D or Ctrl-C ends it. Clients start it themselves:
          contextweaver mcp import --show-client claude-desktop
        ");
        assert!(shown(&["--transport", "http"]).contains("clients connect to the address below; Ctrl-C ends it"));
    }
}
