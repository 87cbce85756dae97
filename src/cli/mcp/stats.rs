//! `mcp stats`, also called `mcp events`: what a gateway did, by its file of events or by the metrics of one that runs.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::Serialize;
use time::OffsetDateTime;

use super::super::files::{Files, writable, write};
use super::super::price::checked;
use super::super::source::CatalogSource;
use super::super::{Format, Outcome, counted, note, print_json};
use super::block_on;
use super::chain;
use super::rows;
use super::running::{self, Running};
use super::watch::{json_line, watch, watch_gateway, written};
use crate::cli::terminal::{line, shown};
use contextweaver_bench::report::html;
use contextweaver_bench::report::table::Table;
use contextweaver_core::files::ReadError;
use contextweaver_core::text::{Price, grouped};
use contextweaver_gateway::{
    AuditCheck, BadLine, BadLines, CallRows, Durations, EventFeed, EventStats, GatewayConfig, RunningStats, Savings,
    Seen, SessionRows, Tally, ToolRows, Window,
};

/// Show what a gateway did: tokens saved, success, durations, errors
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A gateway whose configuration names a file in `diagnostics` appends one event per call to it. Lines that are not
events are named and skipped. A gateway that serves over HTTP can be asked while it runs, for totals only. With
--watch, the figures are updated until Ctrl-C; to a pipe they are written again whenever something changes.

Examples:
  contextweaver mcp stats --events gateway.jsonl
  contextweaver mcp stats
  contextweaver mcp stats --by session --price 3
  contextweaver mcp stats --by call --limit 50
  contextweaver mcp stats --by tool --catalog servers/
  contextweaver mcp stats --window 1h
  contextweaver mcp stats --window 7d --html stats.html
  contextweaver mcp stats --watch
  contextweaver mcp stats --url http://127.0.0.1:8080 --token-file token --watch
  contextweaver mcp stats --events gateway.jsonl --format json")]
pub(in crate::cli) struct Args {
    /// The file of events
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    events: Option<PathBuf>,
    /// A configuration: its file of events, and its price of tokens [default: gateway.yaml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    running: Running,
    /// The price of a million tokens, to show the savings in money [default: the configuration's]
    #[arg(long, value_name = "AMOUNT")]
    price: Option<f64>,
    /// Show rows instead: the last sessions or calls, the latest first, or the tools, the most called first
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Option<By>,
    /// With `--by tool`, the catalog of the tools that are served: a file, or a folder with one file per server; may
    /// be repeated
    #[arg(long, value_name = "PATH", requires = "by")]
    catalog: Vec<PathBuf>,
    /// Maximum number of rows to show; `--format json` has all tools
    #[arg(long, value_name = "N", default_value = "20", requires = "by")]
    limit: NonZeroUsize,
    /// Only what ended within this time before now: 90s, 15m, 1h, 7d [default: all, and 15m with --watch]
    #[arg(long, value_name = "TIME", conflicts_with = "url", value_parser = span)]
    window: Option<Duration>,
    /// Follow what happens until Ctrl-C
    #[arg(long, conflicts_with = "by")]
    watch: bool,
    /// Also write the figures as an HTML page: tokens, calls by server and tool, times, and errors with what to do
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "by", "watch"])]
    html: Option<PathBuf>,
    /// How often the file is read, or the gateway asked
    #[arg(long, value_name = "SECONDS", default_value_t = 2, requires = "watch",
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Output format; with `--watch`, one line each time
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A time, written as a number and its unit.
fn span(text: &str) -> Result<Duration, String> {
    const MOST: u64 = 366 * 86_400;
    let wrong = || "write a number of seconds, minutes, hours or days, such as 90s, 15m, 1h or 7d".to_owned();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(number.len()..).unwrap_or_default() {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let seconds = number.parse::<u64>().map_err(|_| wrong())?.saturating_mul(unit);
    if !(1..=MOST).contains(&seconds) {
        return Err("must be one second at least, and 366 days at most".to_owned());
    }
    Ok(Duration::from_secs(seconds))
}

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// What each session saved: definitions that were not sent, results that were held back, and what that cost
    Session,
    /// What each call was, how it was decided, and its tokens
    Call,
    /// How often each tool was called and what its results took; with `--catalog` also what its definition takes, and
    /// which tools were never called
    Tool,
}

/// How long a gateway has to give its metrics.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if args.by.is_some() && args.running.url.is_some() {
        bail!("--by: a running gateway gives only totals; sessions and calls are in its file of events, see --events");
    }
    if !args.catalog.is_empty() && args.by != Some(By::Tool) {
        bail!("--catalog goes with `--by tool`");
    }
    let is_named = args.events.is_some() || args.running.url.is_some();
    let configuration = match &args.config {
        None if is_named => None,
        named => Some(chain::config(named.as_deref())?),
    };
    let config = configuration.as_deref().map(GatewayConfig::load).transpose()?;
    let mut price = config.as_ref().and_then(|config| config.price.clone());
    if let Some(amount) = args.price {
        let stated = Price { per_million_tokens: amount, ..price.unwrap_or_else(|| Price::dollars(amount)) };
        price = Some(checked(stated)?);
    }
    if let Some(url) = &args.running.url {
        return of_running(args, url, price.as_ref(), out);
    }
    let (option, path) = match (&args.events, config.and_then(|config| config.diagnostics)) {
        (Some(path), _) => ("--events", path.clone()),
        (None, Some(path)) => ("`diagnostics`", path),
        (None, None) => bail!("the configuration names no file in `diagnostics`; add one, or name it with --events"),
    };
    let files = Files::default().read("--config", &configuration).read(option, [&path]);
    files.page(&args.html).check()?;
    args.html.iter().try_for_each(|path| writable("--html", path))?;
    if args.watch {
        return follow(args, &path, price.as_ref(), out);
    }
    if args.events.is_none() && !path.exists() {
        bail!("there are no calls yet: the gateway writes {} when a client uses it", path.display());
    }
    of_file(args, &path, price.as_ref(), out)?;
    Ok(Outcome::Ok)
}

/// What a file of events says.
fn of_file(args: &Args, path: &Path, price: Option<&Price>, out: &mut dyn Write) -> Result<()> {
    let window = args.window.map_or_else(Window::all, |span| Window::of_last(span, OffsetDateTime::now_utc()));
    let place = || path.display().to_string();
    let file = open(path, args.by == Some(By::Session))?;
    let (format, limit) = (args.format, args.limit.get());
    match args.by {
        None => {
            let stats = EventStats::read(file, &window).with_context(place)?;
            refuse_foreign(path, &stats.bad)?;
            if let Some(to) = &args.html {
                write(to, html::events(&place(), &stats, price).as_bytes())?;
            }
            put(out, format, "mcp stats", &stats, |out| print(out, &stats, price))
        }
        Some(By::Session) => {
            let sessions = SessionRows::read(file, limit, &window, price).with_context(place)?;
            refuse_foreign(path, &sessions.bad)?;
            put(out, format, "mcp stats session", &sessions, |out| rows::sessions(out, &sessions))
        }
        Some(By::Call) => {
            let calls = CallRows::read(file, limit, &window).with_context(place)?;
            refuse_foreign(path, &calls.bad)?;
            put(out, format, "mcp stats call", &calls, |out| rows::calls(out, &calls))
        }
        Some(By::Tool) => {
            let source = CatalogSource { catalog: args.catalog.clone(), lenient: true };
            let catalog = (!source.catalog.is_empty()).then(|| source.load()).transpose()?;
            let tools = ToolRows::read(file, &window, catalog.as_deref()).with_context(place)?;
            refuse_foreign(path, &tools.bad)?;
            if catalog.is_some() && tools.knows_none() {
                note("none of these tools is in the catalog; name its servers there as in the configuration");
            }
            put(out, format, "mcp stats tool", &tools, |out| rows::tools(out, &tools, limit))
        }
    }
}

/// Prints what was found in the form that was asked for.
fn put(
    out: &mut dyn Write,
    format: Format,
    kind: &str,
    found: &impl Serialize,
    text: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    match format {
        Format::Json => print_json(out, kind, found),
        Format::Text => text(out),
    }
}

/// What a gateway that runs says, once or again and again.
fn of_running(args: &Args, url: &str, price: Option<&Price>, out: &mut dyn Write) -> Result<Outcome> {
    let ask = async || {
        let running::Answer { address, status, text } =
            running::get(url, "/metrics", args.running.token_file.as_deref(), PATIENCE).await?;
        if !status.is_success() {
            if status == 401 {
                bail!(running::unknown_token(&address, args.running.token_file.as_deref()));
            }
            bail!("{address}: the gateway answered {status}");
        }
        RunningStats::of_metrics(&text).with_context(|| format!("{address}: these are not the metrics of a gateway"))
    };
    if !args.watch {
        let stats = block_on(ask())?;
        put(out, args.format, "mcp stats url", &stats, |out| print_running(out, &stats, price))?;
        return Ok(Outcome::Ok);
    }
    watch_gateway(url, args.interval, args.format, out, async || {
        let stats = ask().await?;
        match args.format {
            Format::Json => json_line("mcp stats url", &stats),
            Format::Text => written(|view| print_running(view, &stats, price)),
        }
    })
}

/// Follows a file of events.
fn follow(args: &Args, path: &Path, price: Option<&Price>, out: &mut dyn Write) -> Result<Outcome> {
    const CALLS: usize = 10;
    let span = args.window.unwrap_or(Duration::from_secs(15 * 60));
    let head = format!("{}, the last {}; Ctrl-C ends it", shown(&path.display().to_string()), spelled(span));
    let mut feed = EventFeed::of(path, span);
    watch(Duration::from_secs(args.interval), &head, out, async || {
        let seen = feed.look(OffsetDateTime::now_utc(), CALLS).with_context(|| path.display().to_string())?;
        match args.format {
            // What only says that time has passed is not a change.
            Format::Json => json_line("mcp stats", &Seen { stats: EventStats { since: None, ..seen.stats }, ..seen }),
            Format::Text => written(|view| print_seen(view, &seen, span, price)),
        }
    })
}

/// A time in the largest unit that it is a number of.
fn spelled(span: Duration) -> String {
    let seconds = span.as_secs();
    let units = [(86_400, "d"), (3600, "h"), (60, "min")];
    let (length, unit) = units.into_iter().find(|(length, _)| seconds.is_multiple_of(*length)).unwrap_or((1, "s"));
    format!("{} {unit}", seconds / length)
}

/// What happened lately, the most telling first: a terminal may cut off the rest.
fn print_seen(out: &mut dyn Write, seen: &Seen, span: Duration, price: Option<&Price>) -> Result<()> {
    let Seen { stats, last_calls, dropped } = seen;
    let minutes = span.as_secs_f64() / 60.0;
    writeln!(
        out,
        "{} of {}, {:.1} a minute; {}",
        counted(stats.events, "event"),
        counted(stats.sessions, "session"),
        stats.events as f64 / minutes,
        counted(stats.errors.values().sum(), "error")
    )?;
    if *dropped > 0 {
        writeln!(out, "{dropped} earlier events are not counted: there are too many to keep")?;
    }
    if let Some(savings) = &stats.savings {
        writeln!(out, "{}", savings.line(price))?;
    }
    if !last_calls.is_empty() {
        writeln!(out, "\n{}", rows::last(last_calls).trim_end())?;
    }
    table(out, "tool", &stats.by_tool.iter().map(|(tool, tally)| (shown(tool), tally)).collect::<Vec<_>>())?;
    errors(out, &stats.errors)?;
    bad_lines(out, &stats.bad)
}

/// What a running gateway counted.
fn print_running(out: &mut dyn Write, stats: &RunningStats, price: Option<&Price>) -> Result<()> {
    writeln!(
        out,
        "{}, of {} so far; requests served now: {}",
        counted(stats.sessions as usize, "session"),
        stats.sessions_so_far,
        stats.running
    )?;
    for (upstream, is_up) in &stats.upstreams {
        line(out, format_args!("  {upstream}: {}", if *is_up { "up" } else { "down" }))?;
    }
    // Before the first client, nothing was sent that could have been more.
    if let Some(savings) = stats.savings.as_ref().filter(|savings| stats.sessions_so_far > 0 || savings.spent.calls > 0)
    {
        spared(out, savings, price)?;
    }
    if !stats.by_tool.is_empty() {
        let mut table = Table::new(["tool", "calls", "failed", "mean ms"]);
        for (tool, counted) in &stats.by_tool {
            table.row([
                shown(tool),
                grouped(counted.calls),
                grouped(counted.failed),
                format!("{:.3}", counted.mean_ms),
            ]);
        }
        write!(out, "\n{}", table.plain())?;
    }
    errors(out, &stats.errors)
}

/// Opens a file of events; one that is read `twice` must be a file on a disk.
fn open(path: &Path, twice: bool) -> Result<BufReader<File>> {
    let about = path.metadata().map_err(ReadError::at(path))?;
    if about.is_dir() {
        bail!("{}: it is a folder; name the file that `diagnostics` of the configuration names", path.display());
    }
    if twice && !about.is_file() {
        bail!("{}: sessions are read from a file on a disk, since it is read twice; save this to one", path.display());
    }
    Ok(BufReader::new(File::open(path).map_err(ReadError::at(path))?))
}

/// Refuses a file with `bad` lines and without any event. A stream cannot be read again.
fn refuse_foreign(path: &Path, bad: &BadLines) -> Result<()> {
    let place = || path.display().to_string();
    let Some(first) = bad.first.first().filter(|_| path.is_file()) else { return Ok(()) };
    if EventStats::read(open(path, false)?, &Window::all()).with_context(place)?.events > 0 {
        return Ok(());
    }
    if AuditCheck::read(open(path, false)?, None).with_context(place)?.lines > 0 {
        bail!("{}: this is an audit log; show it with `contextweaver mcp audit show {}`", place(), place());
    }
    let BadLine { line, reason } = first;
    bail!(
        "{}: no line is an event (line {line}: {}); name the file that `diagnostics` of the configuration names",
        place(),
        shown(reason)
    )
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
    let sessions = counted(savings.sessions as usize, "session");
    writeln!(out, "\n{:>14}  {:>14}  tokens of {sessions}", "without", "with")?;
    for (what, without, with) in rows {
        writeln!(out, "{:>14}  {:>14}  {what}", grouped(without), grouped(with))?;
    }
    writeln!(out, "\n{}", savings.line(price))?;
    Ok(())
}

fn print(out: &mut dyn Write, stats: &EventStats, price: Option<&Price>) -> Result<()> {
    let (first, last) = (stats.first.as_deref().unwrap_or("-"), stats.last.as_deref().unwrap_or("-"));
    let (events, sessions) = (counted(stats.events, "event"), counted(stats.sessions, "session"));
    line(out, format_args!("{events} of {sessions}, {first} to {last}"))?;
    if let Some(savings) = &stats.savings {
        spared(out, savings, price)?;
    }
    let events = stats.by_event.iter().map(|(event, tally)| (event.to_string(), tally));
    table(out, "event", &events.collect::<Vec<_>>())?;
    table(out, "tool", &stats.by_tool.iter().map(|(tool, tally)| (shown(tool), tally)).collect::<Vec<_>>())?;
    errors(out, &stats.errors)?;
    bad_lines(out, &stats.bad)
}

/// How often there was which error, where there was one.
fn errors(out: &mut dyn Write, errors: &BTreeMap<String, impl Display>) -> Result<()> {
    if !errors.is_empty() {
        writeln!(out, "\nerrors")?;
    }
    for (code, count) in errors {
        line(out, format_args!("  {count:>7}  {code}"))?;
    }
    Ok(())
}

/// What was not an event, where there was something.
pub(super) fn bad_lines(out: &mut dyn Write, bad: &BadLines) -> Result<()> {
    if bad.count > 0 {
        let are = if bad.count == 1 { "is not an event" } else { "are not events" };
        writeln!(out, "\n{} {are}", counted(bad.count, "line"))?;
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
