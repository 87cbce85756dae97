//! `mcp events`, also called `mcp stats`: what a gateway did, by its file of events or by the metrics of one that runs.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::super::{Format, Outcome, print_json};
use super::block_on;
use super::chain;
use super::running;
use super::terminal::{line, shown};
use contextweaver_gateway::{Durations, EventStats, GatewayConfig, Price, Savings, Tally, grouped};

/// Say what a gateway did: tokens spared, success, durations, errors
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A gateway whose configuration names a file in `diagnostics` appends an event a call to it. Lines that are no events are
named and passed over. A gateway that serves over HTTP can be asked while it runs.

Examples:
  contextweaver mcp stats --events gateway.jsonl
  contextweaver mcp stats
  contextweaver mcp stats --url http://127.0.0.1:8080 --token-file token
  contextweaver mcp events --events gateway.jsonl --format json")]
pub(in crate::cli) struct Args {
    /// The file of events
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    events: Option<PathBuf>,
    /// A configuration: its file of events, and its price of tokens [default: gateway.yaml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A gateway that runs: the address that it says it listens at
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// A file with the bearer token for `--url`
    #[arg(long, value_name = "FILE", requires = "url")]
    token_file: Option<PathBuf>,
    /// The price of a million tokens, to say what was spared in money [default: the configuration's]
    #[arg(long, value_name = "AMOUNT")]
    price: Option<f64>,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How long a gateway has to give its metrics.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let is_named = args.events.is_some() || args.url.is_some();
    let path = match &args.config {
        None if is_named => None,
        named => Some(chain::config(named.as_deref())?),
    };
    let config = path.as_deref().map(GatewayConfig::load).transpose()?;
    let mut price = config.as_ref().and_then(|config| config.price.clone());
    if let Some(amount) = args.price {
        if !amount.is_finite() || amount < 0.0 {
            bail!("--price: {amount} is not a price; give a number that is not negative");
        }
        let currency = price.map_or_else(|| "$".to_owned(), |price| price.currency);
        price = Some(Price { per_million_tokens: amount, currency });
    }
    if let Some(url) = &args.url {
        let running::Answer { address, status, text } =
            block_on(running::get(url, "/metrics", args.token_file.as_deref(), PATIENCE))?;
        if !status.is_success() {
            let hint = if status == 401 { "; give its token with --token-file" } else { "" };
            bail!("{address}: the gateway answers {status}{hint}");
        }
        let savings = Savings::of_metrics(&text)
            .with_context(|| format!("{url} says nothing of tokens; only a gateway in mode `gateway` does"))?;
        match args.format {
            Format::Json => print_json(out, "mcp stats", &savings)?,
            Format::Text => spared(out, &savings, price.as_ref())?,
        }
        return Ok(Outcome::Ok);
    }
    let path = match (&args.events, config.and_then(|config| config.diagnostics)) {
        (Some(path), _) => path.clone(),
        (None, Some(path)) => path,
        (None, None) => bail!("the configuration names no file in `diagnostics`; add one, or name it with --events"),
    };
    let place = || path.display().to_string();
    let file = File::open(&path).with_context(place)?;
    let stats = EventStats::read(BufReader::new(file)).with_context(place)?;
    match args.format {
        Format::Json => print_json(out, "mcp events", &stats)?,
        Format::Text => print(out, &stats, price.as_ref())?,
    }
    Ok(Outcome::Ok)
}

/// What was spared, part by part.
fn spared(out: &mut dyn Write, savings: &Savings, price: Option<&Price>) -> Result<()> {
    let spent = savings.spent;
    let rows = [
        ("definitions", savings.definitions, savings.surface),
        ("results", spent.results, spent.answers),
        ("searches and the rest", 0, spent.other),
        ("all", savings.without(), savings.with()),
    ];
    let sessions = if savings.sessions == 1 { "session" } else { "sessions" };
    writeln!(out, "\n{:>14}  {:>14}  tokens of {} {sessions}", "without", "with", savings.sessions)?;
    for (what, without, with) in rows {
        writeln!(out, "{:>14}  {:>14}  {what}", grouped(without), grouped(with))?;
    }
    writeln!(out, "\n{}", savings.line(price))?;
    Ok(())
}

fn print(out: &mut dyn Write, stats: &EventStats, price: Option<&Price>) -> Result<()> {
    let (first, last) = (stats.first.as_deref().unwrap_or("-"), stats.last.as_deref().unwrap_or("-"));
    line(out, format_args!("{} events of {} sessions, {first} to {last}", stats.events, stats.sessions))?;
    if let Some(savings) = &stats.savings {
        spared(out, savings, price)?;
    }
    let events = stats.by_event.iter().map(|(event, tally)| {
        let name = serde_json::to_value(event).unwrap_or_default();
        (name.as_str().unwrap_or_default().to_owned(), tally)
    });
    table(out, "event", &events.collect::<Vec<_>>())?;
    table(out, "tool", &stats.by_tool.iter().map(|(tool, tally)| (shown(tool), tally)).collect::<Vec<_>>())?;
    if !stats.errors.is_empty() {
        writeln!(out, "\nerrors")?;
        for (code, count) in &stats.errors {
            line(out, format_args!("  {count:>7}  {code}"))?;
        }
    }
    if stats.bad_lines > 0 {
        writeln!(out, "\n{} lines are not events", stats.bad_lines)?;
        for bad in &stats.first_bad_lines {
            line(out, format_args!("  line {}: {}", bad.line, bad.reason))?;
        }
    }
    Ok(())
}

fn table(out: &mut dyn Write, what: &str, rows: &[(String, &Tally)]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default().max(what.len());
    writeln!(
        out,
        "\n{what:width$}  {:>7}  {:>7}  {:>9}  {:>9}  {:>9}",
        "count", "success", "p50 ms", "p95 ms", "max ms"
    )?;
    for (name, tally) in rows {
        let success = format!("{:.1} %", 100.0 * tally.success_rate);
        write!(out, "{name:width$}  {:>7}  {success:>7}", tally.count)?;
        match tally.duration_ms {
            Some(Durations { p50, p95, max }) => writeln!(out, "  {p50:>9.3}  {p95:>9.3}  {max:>9.3}")?,
            None => writeln!(out, "  {:>9}  {:>9}  {:>9}", "-", "-", "-")?,
        }
    }
    Ok(())
}
