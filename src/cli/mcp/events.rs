//! `mcp events`, also called `mcp stats`: what a gateway did, by its file of events or by the metrics of one that runs.

use std::fs::File;
use std::io::{BufReader, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use super::super::{Format, Outcome, print_json};
use super::block_on;
use super::chain;
use super::rows;
use super::running;
use super::terminal::{line, shown};
use contextweaver_gateway::{
    BadLines, CallRows, Durations, EventStats, GatewayConfig, Price, Savings, SessionRows, Tally, grouped,
};

/// Say what a gateway did: tokens spared, success, durations, errors
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A gateway whose configuration names a file in `diagnostics` appends an event a call to it. Lines that are no events are
named and passed over. A gateway that serves over HTTP can be asked while it runs, for its sums alone.

Examples:
  contextweaver mcp stats --events gateway.jsonl
  contextweaver mcp stats
  contextweaver mcp stats --by session --price 3
  contextweaver mcp stats --by call --limit 50
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
    /// Show the last sessions or calls instead, a row each, the latest first
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Option<By>,
    /// Rows that are shown, at most
    #[arg(long, value_name = "N", default_value = "20", requires = "by")]
    limit: NonZeroUsize,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// What each session spared: definitions that were not sent, results that were held back, and what that cost
    Session,
    /// What each call was, how it was decided, and its tokens
    Call,
}

/// How long a gateway has to give its metrics.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if args.by.is_some() && args.url.is_some() {
        bail!("--by: a gateway that runs says sums alone; sessions and calls are in its file of events, see --events");
    }
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
    let file = open(&path, args.by == Some(By::Session))?;
    let limit = args.limit.get();
    match (args.by, args.format) {
        (None, format) => {
            let stats = EventStats::read(file).with_context(place)?;
            match format {
                Format::Json => print_json(out, "mcp events", &stats)?,
                Format::Text => print(out, &stats, price.as_ref())?,
            }
        }
        (Some(By::Session), format) => {
            let sessions = SessionRows::read(file, limit, price.as_ref()).with_context(place)?;
            match format {
                Format::Json => print_json(out, "mcp stats session", &sessions)?,
                Format::Text => rows::sessions(out, &sessions)?,
            }
        }
        (Some(By::Call), format) => {
            let calls = CallRows::read(file, limit).with_context(place)?;
            match format {
                Format::Json => print_json(out, "mcp stats call", &calls)?,
                Format::Text => rows::calls(out, &calls)?,
            }
        }
    }
    Ok(Outcome::Ok)
}

/// Opens a file of events; one that is read `twice` must be a file on a disk.
fn open(path: &Path, twice: bool) -> Result<BufReader<File>> {
    let place = || path.display().to_string();
    let about = path.metadata().with_context(place)?;
    if about.is_dir() {
        bail!("{}: it is a folder; name the file that `diagnostics` of the configuration names", path.display());
    }
    if twice && !about.is_file() {
        bail!("{}: sessions are read from a file on a disk, since it is read twice; save this to one", path.display());
    }
    Ok(BufReader::new(File::open(path).with_context(place)?))
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
    bad_lines(out, &stats.bad)
}

/// What was no event, where there was something.
pub(super) fn bad_lines(out: &mut dyn Write, bad: &BadLines) -> Result<()> {
    if bad.count > 0 {
        writeln!(out, "\n{} lines are not events", bad.count)?;
        for bad in &bad.first {
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
