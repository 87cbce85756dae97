//! `mcp events`: a summary of a gateway's file of events.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::super::{Format, Outcome, print_json};
use super::terminal::{line, shown};
use contextweaver_gateway::{Durations, EventStats, Tally};

/// Summarise a gateway's file of events: success, durations, errors
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A gateway whose configuration names a file in `diagnostics` appends an event a call to it. Lines that are no events are
named and passed over.

Examples:
  contextweaver mcp events --events gateway.jsonl
  contextweaver mcp events --events gateway.jsonl --format json")]
pub(in crate::cli) struct Args {
    /// The file of events
    #[arg(long, value_name = "FILE")]
    events: PathBuf,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let place = || args.events.display().to_string();
    let file = File::open(&args.events).with_context(place)?;
    let stats = EventStats::read(BufReader::new(file)).with_context(place)?;
    match args.format {
        Format::Json => print_json(out, "mcp events", &stats)?,
        Format::Text => print(out, &stats)?,
    }
    Ok(Outcome::Ok)
}

fn print(out: &mut dyn Write, stats: &EventStats) -> Result<()> {
    let (first, last) = (stats.first.as_deref().unwrap_or("-"), stats.last.as_deref().unwrap_or("-"));
    line(out, format_args!("{} events of {} sessions, {first} to {last}", stats.events, stats.sessions))?;
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
