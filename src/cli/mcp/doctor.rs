//! `mcp doctor`: what is wrong with a configuration, and what to do.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use super::block_on;
use super::terminal::line;
use crate::cli::{Format, Outcome, print_json};
use contextweaver_core::catalog::Severity;
use contextweaver_gateway::{Confusable, Examination, examine, grouped};

/// Pairs of tools that are shown without `--notes`, at most.
const MOST_PAIRS: usize = 5;

/// Check a configuration and the servers behind it, and say what to fix
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every server is started and asked for its lists; no tool is called.
Exit codes: 0 everything works, 1 something does not, 2 the check itself failed.

Examples:
  contextweaver mcp doctor --config gateway.yaml
  contextweaver mcp doctor --config gateway.yaml --notes
  contextweaver mcp doctor --config gateway.yaml --format json")]
pub(in crate::cli) struct Args {
    /// The configuration, YAML or JSON
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Also show notes (JSON always has them)
    #[arg(long)]
    notes: bool,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let environment = |name: &str| std::env::var(name).ok();
    let found = block_on(async { Ok(examine(&args.config, &environment).await) })?;
    match args.format {
        Format::Json => print_json(out, "mcp doctor", &found)?,
        Format::Text => print(out, &found, args.notes)?,
    }
    Ok(if found.has_errors() { Outcome::Drift } else { Outcome::Ok })
}

fn print(out: &mut dyn Write, found: &Examination, notes: bool) -> Result<()> {
    for health in &found.upstreams {
        match (&health.version, health.start_ms) {
            (Some(version), Some(start)) => line(
                out,
                format_args!(
                    "{}: {} tools, {} resources, {} prompts; speaks {version}; started in {start} ms",
                    health.name, health.tools, health.resources, health.prompts
                ),
            )?,
            _ => line(out, format_args!("{}: does not work", health.name))?,
        }
    }
    if let Some(outlook) = &found.outlook {
        let saved = outlook.tokens.saturating_sub(outlook.listed_tokens) as f64 * 100.0 / outlook.tokens.max(1) as f64;
        let saved = if saved >= 0.5 { format!(", {saved:.0} % less") } else { String::new() };
        let mode = serde_json::to_value(outlook.mode)?;
        writeln!(
            out,
            "a client sees {} tools of {} tokens (mode {}) instead of {} tools of {} tokens{saved}",
            outlook.listed_tools,
            grouped(outlook.listed_tokens),
            mode.as_str().unwrap_or_default(),
            outlook.tools,
            grouped(outlook.tokens)
        )?;
    }
    if !found.confusable.is_empty() {
        let rest = found.confusable.len().saturating_sub(if notes { usize::MAX } else { MOST_PAIRS });
        writeln!(out, "easily taken for each other, since their words are nearly the same:")?;
        for Confusable { tool, with, similarity } in found.confusable.iter().take(found.confusable.len() - rest) {
            line(out, format_args!("  {tool} and {with} ({:.0} % alike)", similarity * 100.0))?;
        }
        if rest > 0 {
            writeln!(out, "  and {rest} more pairs (--notes)")?;
        }
        writeln!(out, "  list one of a pair in `exclude_tools` where the other is enough")?;
    }
    for complaint in found.complaints.iter().filter(|complaint| notes || complaint.severity > Severity::Note) {
        let severity = match complaint.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        line(out, format_args!("{severity}: {}: {}", complaint.place, complaint.problem))?;
        line(out, format_args!("  {}", complaint.remedy))?;
    }
    let count = |severity| found.complaints.iter().filter(|complaint| complaint.severity == severity).count();
    writeln!(
        out,
        "{} errors, {} warnings, {} notes",
        count(Severity::Error),
        count(Severity::Warning),
        count(Severity::Note)
    )?;
    Ok(())
}
