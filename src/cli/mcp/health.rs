//! `mcp health`: whether a running gateway is ready, for health checks of containers and for people.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use reqwest::StatusCode;
use serde::{Deserialize, Serialize};

use super::watch::{json_line, watch_gateway, written};
use super::{block_on, running};
use crate::cli::terminal::{line, shown};
use crate::cli::{Format, Outcome, counted, print_json};

/// Ask a running gateway whether it is ready
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It is ready when it serves at least one tool, resource or prompt. Exit codes: 0 if it is, 1 if it is not, 2 if it cannot
be reached or does not know the token. With the token, or if none is set, the state of each server is shown too. A
gateway on standard streams is asked at its console. With --watch it follows what happens until Ctrl-C.

Examples:
  contextweaver mcp health
  contextweaver mcp status --watch
  contextweaver mcp health --url http://127.0.0.1:8080 --token-file token --format json
  contextweaver mcp health --url http://127.0.0.1:7070 --token-file console-token")]
pub(in crate::cli) struct Args {
    /// The address that the gateway says it listens at, or that of its console
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// A file with the bearer token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// How long the gateway has to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
    /// Follow the state until Ctrl-C; a gateway that does not answer for a while is asked again
    #[arg(long)]
    watch: bool,
    /// How often the gateway is asked
    #[arg(long, value_name = "SECONDS", default_value_t = 2, requires = "watch",
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Output format; with `--watch`, one line each time
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What `GET /healthz` answers.
#[derive(Debug, Serialize, Deserialize)]
struct Health {
    live: bool,
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstreams: Option<Vec<Upstream>>,
}

/// The part of an upstream's state that is shown.
#[derive(Debug, Serialize, Deserialize)]
struct Upstream {
    name: String,
    tools: usize,
    resources: usize,
    prompts: usize,
    circuit: String,
    fault: Option<String>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if !args.watch {
        let health = block_on(ask(args))?;
        match args.format {
            Format::Json => print_json(out, "mcp health", &health)?,
            Format::Text => print(out, &health)?,
        }
        return Ok(if health.ready { Outcome::Ok } else { Outcome::Drift });
    }
    watch_gateway(&args.url, args.interval, args.format, out, async || {
        let health = ask(args).await?;
        match args.format {
            Format::Json => json_line("mcp health", &health),
            Format::Text => written(|view| print(view, &health)),
        }
    })
}

/// The health of the gateway.
async fn ask(args: &Args) -> Result<Health> {
    let patience = Duration::from_secs(args.timeout);
    let running::Answer { address, status, text } =
        running::get(&args.url, "/healthz", args.token_file.as_deref(), patience).await?;
    // A gateway that is not ready says so with 503, and the same body; any other status is a refusal, or another server's.
    if !matches!(status, StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE) {
        let said = text.lines().next().unwrap_or_default().chars().take(200).collect::<String>();
        bail!("{address}: the server answered {status} {}", shown(&said));
    }
    let health = serde_json::from_str::<Health>(&text)
        .with_context(|| format!("{address}: this is not the health of a gateway"))?;
    if let (Some(_), None) = (&args.token_file, &health.upstreams) {
        // Anybody is told whether it is ready: only another question tells whether it knows the token.
        let running::Answer { status, .. } =
            running::get(&args.url, "/metrics", args.token_file.as_deref(), patience).await?;
        if status == StatusCode::UNAUTHORIZED {
            bail!(running::unknown_token(&address, args.token_file.as_deref()));
        }
    }
    Ok(health)
}

fn print(out: &mut dyn Write, health: &Health) -> Result<()> {
    let upstreams = health.upstreams.as_deref().unwrap_or_default();
    match health.ready {
        true => writeln!(out, "ready")?,
        false => writeln!(out, "not ready: there is no tool, resource or prompt to serve")?,
    }
    for Upstream { name, tools, resources, prompts, circuit, fault } in upstreams {
        let what = match fault {
            Some(fault) => fault.clone(),
            None => [(tools, "tool"), (resources, "resource"), (prompts, "prompt")]
                .map(|(count, noun)| counted(*count, noun))
                .join(", "),
        };
        line(out, format_args!("  {name}  circuit {circuit}  {what}"))?;
    }
    Ok(())
}
