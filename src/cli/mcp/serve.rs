//! `mcp serve`: the gateway on standard streams or over HTTP.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::block_on_runtime;
use super::chain::{self, ConfigArg};
use crate::cli::again::{PATIENCE, read_again};
use crate::cli::http::{HttpArgs, Signal, Told, address, signals};
use crate::cli::terminal::line;
use crate::cli::{Outcome, counted, in_one_line, note};
use contextweaver_core::files::replace_secret_file;
use contextweaver_core::text::grouped;
use contextweaver_gateway::{
    Answered, CatalogFile, ConsoleConfig, ConsoleServer, Gateway, GatewayConfig, HttpControl, HttpServer, Live, Mode,
    Rights, Share, Target, serve_stdio,
};

/// Serve the tools of any number of MCP servers
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Standard output carries only the protocol; messages go to standard error (RUST_LOG=debug for more).

Examples:
  contextweaver mcp serve
  contextweaver mcp serve --config gateway.yaml --dry-run
  contextweaver mcp serve --config gateway.yaml --mode proxy
  contextweaver mcp serve --catalog tools.json --answers answers.json
  contextweaver mcp serve --config gateway.yaml --transport http --listen 127.0.0.1:8080
  contextweaver mcp serve --config gateway.yaml --transport http --listen 0.0.0.0:8080 --token-file token \\
    --allowed-host gateway.example")]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    config: ConfigArg,
    /// A catalog file: it can be browsed, and called if there are answers
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    catalog: Option<PathBuf>,
    /// The answers to calls, reads and prompts of the catalog, JSON
    #[arg(long, value_name = "FILE", requires = "catalog")]
    answers: Option<PathBuf>,
    /// The mode, instead of the one in the configuration
    #[arg(long, value_enum)]
    mode: Option<ModeArg>,
    /// The transport for clients
    #[arg(long, value_enum, default_value_t = Transport::Stdio)]
    transport: Transport,
    #[command(flatten)]
    http: HttpArgs,
    /// Open a console for the operator at this address; its address with a token is printed on standard error
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "dry_run", value_parser = address)]
    console: Option<SocketAddr>,
    /// Let the console listen at an address that other machines can reach; put TLS in front
    #[arg(long, requires = "console")]
    console_remote: bool,
    /// Write the console's token to this file, which only its owner can read, for commands such as `mcp approvals`
    #[arg(long, value_name = "FILE", requires = "console")]
    console_token_file: Option<PathBuf>,
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

/// The file of the configuration; `None` where a catalog is served.
fn file_of(args: &Args) -> Result<Option<PathBuf>> {
    match &args.catalog {
        Some(_) => Ok(None),
        None => args.config.path().map(Some),
    }
}

/// The configuration that the arguments name, as it is now.
fn configuration(args: &Args) -> Result<GatewayConfig> {
    // What is guarded in one mode may be refused in another: the check knows the mode that is served.
    let mode = args.mode.map(|mode| match mode {
        ModeArg::Gateway => Mode::Gateway,
        ModeArg::Proxy => Mode::Proxy,
        ModeArg::Passthrough => Mode::Passthrough,
    });
    let mut config = match &file_of(args)? {
        // A look has the values that a client would start the gateway with.
        Some(path) if args.dry_run => chain::load(path, mode, &[])?.0,
        Some(path) => GatewayConfig::load_for(path, mode, &|name| std::env::var(name).ok())?,
        None => {
            let answers = args.answers.clone();
            let catalog = args.catalog.clone().map(|path| CatalogFile { path, answers });
            GatewayConfig { catalog, mode: mode.unwrap_or_default(), ..GatewayConfig::default() }
        }
    };
    if let (Transport::Stdio, Some(flag)) = (args.transport, args.http.given()) {
        bail!("`{flag}` goes with `--transport http`");
    }
    args.http.apply(&mut config.http)?;
    // Before any server is started for nothing.
    if args.transport == Transport::Http {
        HttpServer::check(&config.http)?;
    }
    if let Some(console) = console(args) {
        ConsoleServer::check(&console).context("--console")?;
    }
    Ok(config)
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let file = file_of(args)?;
    let mut config = configuration(args)?;
    if args.dry_run {
        config = config.without_a_trace();
    }
    let threads = match args.transport {
        // One worker wakes fastest, and with it long work is done elsewhere.
        Transport::Stdio => 1,
        Transport::Http => workers(&config),
    };
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(threads);
    block_on_runtime(&mut builder, async {
        // Before any server is started: one may take long, and would be left behind.
        let mut told = Told::from(signals()?);
        let Some(opening) = told.unless_ended(Gateway::begin(config)).await else {
            Gateway::abandoned().await;
            return ended_early(args);
        };
        let opening = opening.context(NOT_STARTED)?;
        let live = Live::from(Arc::clone(opening.gateway()));
        let opened = async { opening.open().await.context(NOT_STARTED).map(drop) };
        if args.dry_run {
            let Some(opened) = told.unless_ended(opened).await else {
                live.now().close().await;
                return ended_early(args);
            };
            opened?;
            report(&live.now(), out)?;
            report_rights(&live.now(), out)?;
            if let Some(file) = &file {
                let flag = chain::flag(file);
                note(&format!(
                    "next, for the entry of a client: contextweaver mcp import --show-client claude-desktop{flag}"
                ));
            }
        } else {
            serve(args, &live, file.as_deref(), opened, &mut told).await?;
            let gateway = live.now();
            if let Some(savings) = gateway.savings() {
                // Nobody may listen any more.
                let _ = line(
                    &mut std::io::stderr(),
                    format_args!("contextweaver: {}", savings.line(gateway.config().price.as_ref())),
                );
            }
        }
        // A change of the configuration may have started servers that do not serve yet, or have some to end.
        tokio::join!(async { live.now().close().await }, Gateway::abandoned());
        Ok(Outcome::Ok)
    })
}

const NOT_STARTED: &str = "the gateway did not start";

/// What comes of a gateway that was told to end before it served anything.
fn ended_early(args: &Args) -> Result<Outcome> {
    if args.dry_run {
        bail!("it was stopped before it was known what would be served");
    }
    Ok(Outcome::Ok)
}

/// Serves clients until they end or this process is told to; `opened` makes the catalog.
async fn serve(
    args: &Args,
    live: &Live,
    file: Option<&Path>,
    opened: impl Future<Output = Result<()>>,
    told: &mut Told<impl AsyncFnMut() -> Signal>,
) -> Result<()> {
    let is_terminal = std::io::stderr().is_terminal();
    if args.transport == Transport::Stdio && args.console.is_none() && !is_terminal {
        // Only the client asks, so it is answered as soon as that can be, and the catalog is made meanwhile.
        return serve_streams(args, live, opened, told).await;
    }
    let Some(opened) = told.unless_ended(opened).await else { return Ok(()) };
    opened?;
    if is_terminal {
        banner(&live.now(), args.transport, file, &mut std::io::stderr().lock())?;
    }
    let console = open_console(live, args).await?;
    match args.transport {
        Transport::Stdio => serve_streams(args, live, std::future::ready(Ok(())), told).await?,
        Transport::Http => serve_http(args, live, told).await?,
    }
    if let Some((end, serving)) = console {
        drop(end);
        let _ = serving.await;
    }
    Ok(())
}

/// Serves the client on standard streams, and makes the catalog with `opened`.
async fn serve_streams(
    args: &Args,
    live: &Live,
    opened: impl Future<Output = Result<()>>,
    told: &mut Told<impl AsyncFnMut() -> Signal>,
) -> Result<()> {
    // The streams are served on a task of their own; this one heeds signals.
    let (end, ended) = oneshot::channel::<()>();
    let serving = serve_stdio(live.clone(), async move {
        let _ = ended.await;
    });
    tokio::pin!(serving);
    let (leave, left) = oneshot::channel::<()>();
    let served = async {
        tokio::select! {
            served = &mut serving => Ok(served?),
            () = heed(told, args, live, None) => {
                let _ = end.send(());
                let _ = leave.send(());
                Ok(serving.await?)
            }
        }
    };
    // That the gateway could not start is told also when the client has gone before, but who is told to end does not wait.
    let opened = async {
        tokio::select! {
            opened = opened => opened,
            Ok(()) = left => Ok(()),
        }
    };
    tokio::try_join!(opened, served).map(drop)
}

/// What ends a console, and the task that serves it.
type Console = (oneshot::Sender<()>, JoinHandle<()>);

/// Where the console is, if one is wanted.
fn console(args: &Args) -> Option<ConsoleConfig> {
    args.console.map(|listen| ConsoleConfig { listen, remote: args.console_remote })
}

/// Opens the console, where one is wanted.
async fn open_console(live: &Live, args: &Args) -> Result<Option<Console>> {
    let Some(config) = console(args) else { return Ok(None) };
    let server = ConsoleServer::bind(live.clone(), config).await.context("--console")?;
    if let Some(path) = &args.console_token_file {
        replace_secret_file(path, format!("{}\n", server.token()).as_bytes()).context("--console-token-file")?;
    }
    // Whoever reads this line finds the file written.
    note(&format!("console at {}", server.url()?));
    let (end, ended) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async {
        let _ = ended.await;
    }));
    Ok(Some((end, serving)))
}

/// Threads that serve clients. A call to a child process is little work and many wake-ups, of which each further thread
/// adds some, and the children take their share of the processors; a call over HTTP is twice the work.
fn workers(config: &GatewayConfig) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let is_local =
        |target: &Target| matches!(target, Target::Stdio { .. } | Target::Documents { .. } | Target::Database { .. });
    if config.upstreams.values().all(|upstream| is_local(&upstream.target)) {
        processors.div_ceil(2)
    } else {
        processors
    }
}

async fn serve_http(args: &Args, live: &Live, told: &mut Told<impl AsyncFnMut() -> Signal>) -> Result<()> {
    let http = live.now().config().http.clone();
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    let server = HttpServer::bind(live.clone(), http).await?;
    let (control, address) = (server.control(), server.address()?);
    // Who started it with port 0 learns here where it is.
    note(&format!("listening at {scheme}://{address}/mcp"));
    server.serve(heed(told, args, live, Some(&control))).await;
    Ok(())
}

/// Does what this process is told by signals until one tells it to end.
async fn heed(told: &mut Told<impl AsyncFnMut() -> Signal>, args: &Args, live: &Live, control: Option<&HttpControl>) {
    while told.next().await == Signal::Reload {
        let Some(outcome) = told.unless_ended(reload(args, live, control)).await else { return };
        // Nobody may listen any more.
        let _ = match outcome {
            Ok(stays) if stays.is_empty() => {
                line(&mut std::io::stderr(), "contextweaver: the configuration was read again and is in force")
            }
            Ok(stays) => line(
                &mut std::io::stderr(),
                format_args!(
                    "contextweaver: the configuration was read again and is in force, except for what needs a restart: {}",
                    stays.join(", ")
                ),
            ),
            Err(error) => line(
                &mut std::io::stderr(),
                format_args!("contextweaver: the previous configuration stays in force: {}", in_one_line(&error)),
            ),
        };
    }
}

/// Reads the configuration again and puts it in force, as a whole or not at all. The fields that need a restart are
/// returned.
async fn reload(args: &Args, live: &Live, control: Option<&HttpControl>) -> Result<Vec<&'static str>> {
    let args = args.clone();
    let config = read_again("the configuration", PATIENCE, move || configuration(&args)).await?;
    let door = control.map(|control| control.prepare(config.http.clone())).transpose()?;
    let stays = live.replace(config).await?;
    if let (Some(control), Some(door)) = (control, door) {
        control.put(door);
    }
    Ok(stays)
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
            line(
                out,
                "waiting for a client on standard input; Ctrl-D or Ctrl-C ends it. Clients start it themselves:",
            )?;
            let flag = chain::flag(file);
            line(out, format_args!("  contextweaver mcp import --show-client claude-desktop{flag}"))?;
        }
        (Transport::Stdio, None) => line(out, "waiting for a client on standard input; Ctrl-D or Ctrl-C ends it")?,
        (Transport::Http, _) => {
            let http = &gateway.config().http;
            let has_token = !http.tokens.is_empty() || http.oauth.is_some();
            let header = if has_token { ", with the header `Authorization: Bearer TOKEN`" } else { "" };
            line(out, format_args!("clients connect to the address below{header}; Ctrl-C ends it"))?;
        }
    }
    Ok(())
}

fn report(gateway: &Gateway, out: &mut dyn Write) -> Result<()> {
    let counts = gateway.catalog().counts();
    writeln!(
        out,
        "mode {}: {}, {}, {}; {} left out",
        gateway.config().mode,
        counted(counts.tools, "tool"),
        counted(counts.resources, "resource"),
        counted(counts.prompts, "prompt"),
        counted(counts.left_out, "definition")
    )?;
    if let Some(Answered { tools, resources, prompts }) = gateway.answered() {
        let share = |Share { answered, all }: Share, what| format!("{answered} of {}", counted(all, what));
        let [tools, resources, prompts] =
            [(tools, "tool"), (resources, "resource"), (prompts, "prompt")].map(|(of, what)| share(of, what));
        writeln!(out, "answered from a file: {tools}, {resources}, {prompts}")?;
    }
    for upstream in gateway.reports() {
        let state = match (&upstream.fault, &upstream.version) {
            (Some(fault), _) => fault.clone(),
            (None, version) => {
                format!("{}, speaks {}", counted(upstream.tools, "tool"), version.as_deref().unwrap_or("-"))
            }
        };
        line(out, format_args!("  {}: {state}", upstream.name))?;
    }
    Ok(())
}

/// What callers may do with the tools, where the configuration limits that.
fn report_rights(gateway: &Gateway, out: &mut dyn Write) -> Result<()> {
    const MOST: usize = 10;
    let profiles = Rights::of(gateway);
    for Rights { profile, is_default, allowed, approved, refused, hidden } in &profiles {
        let who = match profile {
            None if profiles.len() == 1 => "all callers".to_owned(),
            None => "callers without a profile".to_owned(),
            Some(name) if *is_default => format!("profile {name}, also of callers that have no other"),
            Some(name) => format!("profile {name}"),
        };
        let seen = allowed.len() + approved.len() + refused.len();
        line(out, format_args!("{who}: {seen} of {} shown", counted(seen + hidden.len(), "tool")))?;
        let lists = [("called", allowed), ("called if approved", approved), ("refused", refused), ("hidden", hidden)];
        for (what, tools) in lists.into_iter().filter(|(_, tools)| !tools.is_empty()) {
            let more = tools.len().saturating_sub(MOST);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            let first: Vec<&str> = tools.iter().take(MOST).map(String::as_str).collect();
            line(out, format_args!("  {what}: {}{more}", first.join(", ")))?;
        }
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
            let config = GatewayConfig { catalog: Some(path.clone().into()), ..GatewayConfig::default() };
            let mut out = Vec::new();
            super::super::block_on(async {
                let gateway = Gateway::start(config).await?;
                banner(&gateway, args.transport, args.config.config.as_deref(), &mut out)
            })
            .unwrap();
            String::from_utf8(out).unwrap()
        };
        insta::assert_snapshot!(shown(&[]), @r"
        mode gateway: 20 tools, 0 resources, 0 prompts; 0 definitions left out
        definitions: 794 tokens instead of 3,540 (78 % less)
        waiting for a client on standard input; Ctrl-D or Ctrl-C ends it. Clients start it themselves:
          contextweaver mcp import --show-client claude-desktop
        ");
        assert!(shown(&["--transport", "http"]).contains("clients connect to the address below; Ctrl-C ends it"));
    }
}
